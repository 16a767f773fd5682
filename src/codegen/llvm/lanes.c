/* lanes.c: what the statements and expressions of a VECTOR loop look like from its lanes, and which reductions can be
 * carried in vector registers.
 *
 * Stride: an i64 expression is uniform (0), moves by a constant from lane to lane, or is varying. Floor division and
 * modulo keep a stride when the base is known to be a multiple (k // 32 inside a block of lanes is uniform). Everything
 * here is static: no code is emitted. Accumulators: a loop can carry `S op= e` of a VECTOR reduce loop inside it as one
 * vector for each element of S when all its accesses to S are such updates; S receives the horizontal result after the
 * loop. Trap: S must be valid memory whenever the outer loop runs, hence the stricter rules for parameters. */
#include "codegen/llvm/emit.h"

/* ---- walking ---- */
static bool walk_all(rx_stmt *const *s, uint32_t n, bool (*f)(void *, const rx_stmt *, rx_ex), void *arg)
{
    for (uint32_t i = 0; i < n; i++)
        if (s[i] && !rx_ll_walk(s[i], f, arg)) return false;
    return true;
}

static bool each(const rx_stmt *s, const rx_ex *x, uint32_t n, bool (*f)(void *, const rx_stmt *, rx_ex), void *arg)
{
    for (uint32_t i = 0; i < n; i++)
        if (!f(arg, s, x[i])) return false;
    return true;
}

bool rx_ll_walk(const rx_stmt *s, bool (*f)(void *arg, const rx_stmt *s, rx_ex x), void *arg)
{
    if (!f(arg, s, NULL)) return false;
    switch (s->kind) {
    case RX_S_SEQ: return walk_all(s->u.seq.at, s->u.seq.n, f, arg);
    case RX_S_FOR: return f(arg, s, s->u.loop.start) && f(arg, s, s->u.loop.extent)
        && walk_all((rx_stmt *[]){s->u.loop.init, s->u.loop.body}, 2, f, arg);
    case RX_S_STORE: return each(s, s->u.store.index, s->u.store.buf->ndim, f, arg) && f(arg, s, s->u.store.value);
    case RX_S_ALLOC: return rx_ll_walk(s->u.alloc.body, f, arg);
    case RX_S_IF: return f(arg, s, s->u.branch.cond)
        && walk_all((rx_stmt *[]){s->u.branch.then, s->u.branch.other}, 2, f, arg);
    case RX_S_LET: return f(arg, s, s->u.let.value) && rx_ll_walk(s->u.let.body, f, arg);
    case RX_S_ASSERT: return f(arg, s, s->u.check.cond);
    case RX_S_PREFETCH: return each(s, s->u.prefetch.index, s->u.prefetch.buf->ndim, f, arg);
    }
    return true;
}

/* Nodes visited are few: the first find ends it, and shared nodes repeat only below other data nodes. */
static bool contains(rx_ex x, bool (*hit)(const void *, rx_ex), const void *arg, uint32_t *budget)
{
    if (hit(arg, x) || (*budget)-- == 0) return true;
    for (uint32_t i = 0; i < x->nargs; i++)
        if (contains(x->a[i], hit, arg, budget)) return true;
    return false;
}

#define LOOK_LIMIT 20000                     /* past it the answer is "yes", the careful one */

static bool is_load_of(const void *arg, rx_ex x) { return x->op == RX_EX_LOAD && (!arg || x->u.buf == arg); }

bool rx_ll_has_load(rx_ex x, const relax_buffer *b)
{
    uint32_t budget = LOOK_LIMIT;
    return contains(x, is_load_of, b, &budget);
}

typedef struct symbols { rx_ex at[128]; uint32_t n; } symbols;

static bool is_symbol_of(const void *arg, rx_ex x)
{
    const symbols *s = arg;
    if (x->op != RX_EX_SYM) return false;
    for (uint32_t i = 0; i < s->n; i++)
        if (s->at[i] == x) return true;
    return false;
}

static bool uses_symbols(rx_ex x, const symbols *s)
{
    uint32_t budget = LOOK_LIMIT;
    return contains(x, is_symbol_of, s, &budget);
}

/* ---- strides ---- */
static int64_t gcd(int64_t a, int64_t b)
{
    while (b) {
        int64_t t = a % b;
        a = b;
        b = t;
    }
    return a < 0 ? -a : a;
}

bool rx_ll_int_const(rx_ll *e, rx_ex x, int64_t *v)
{
    if (x->op == RX_EX_INT) return *v = x->u.i, true;
    if (x->op == RX_EX_SYM) {
        rx_ll_bind *b = rx_ll_find(e, x);
        if (!b || !b->val.v || b->lane_var || !LLVMIsAConstantInt(b->val.v)) return false;
        return *v = LLVMConstIntGetSExtValue(b->val.v), true;
    }
    int64_t l, r;
    if (x->nargs != 2 || x->dtype != RELAX_I64 || x->op == RX_EX_LOAD) return false;
    if (!rx_ll_int_const(e, x->a[0], &l) || !rx_ll_int_const(e, x->a[1], &r)) return false;
    switch (x->op) {
    case RX_EX_ADD: return rx_add_ok(l, r, v);
    case RX_EX_SUB: return rx_sub_ok(l, r, v);
    case RX_EX_MUL: return rx_mul_ok(l, r, v);
    case RX_EX_MIN: return *v = RX_MIN(l, r), true;
    case RX_EX_MAX: return *v = RX_MAX(l, r), true;
    case RX_EX_FLOORDIV: return l >= 0 && r > 0 && (*v = l / r, true);
    case RX_EX_FLOORMOD: return l >= 0 && r > 0 && (*v = l % r, true);
    default: return false;
    }
}

/* x at lane 0 is a multiple of this; 0: x is 0 */
static int64_t multiple(rx_ll *e, rx_ex x, uint32_t depth)
{
    int64_t v, a, b;
    if (rx_ll_int_const(e, x, &v)) return v < 0 ? -(v + 1) + 1 : v;
    if (depth > 16) return 1;
    if (x->op == RX_EX_SYM) {
        rx_ll_bind *s = rx_ll_find(e, x);
        if (s && s->lane_var && s->val.v && LLVMIsAConstantInt(s->val.v)) return LLVMConstIntGetSExtValue(s->val.v);
        return x->u.sym->divisor > 0 && !(s && s->lane_var) ? x->u.sym->divisor : 1;
    }
    if (x->nargs != 2 || x->op == RX_EX_LOAD) return 1;
    a = multiple(e, x->a[0], depth + 1);
    b = multiple(e, x->a[1], depth + 1);
    switch (x->op) {
    case RX_EX_ADD: case RX_EX_SUB: case RX_EX_MIN: case RX_EX_MAX: case RX_EX_FLOORMOD: return gcd(a, b);
    case RX_EX_MUL: return rx_mul_ok(a, b, &v) && v < ((int64_t)1 << 40) ? v : RX_MAX(a, b);
    case RX_EX_FLOORDIV: return rx_ll_int_const(e, x->a[1], &v) && v > 0 && a % v == 0 ? a / v : 1;
    default: return 1;
    }
}

/* x = base + s * lane divided by a constant c: within one step of c, or by whole steps of it? */
static int64_t stride_of_division(rx_ll *e, rx_ex x, int64_t s)
{
    int64_t c, top;
    if (!rx_ll_int_const(e, x->a[1], &c) || c <= 0 || s == RX_LL_VARYING) return RX_LL_VARYING;
    if (s % c == 0) return x->op == RX_EX_FLOORDIV ? s / c : 0;
    if (s < 0 || !rx_mul_ok(s, (int64_t)e->lanes - 1, &top)) return RX_LL_VARYING;
    int64_t g = gcd(multiple(e, x->a[0], 0), c);
    if (top >= g) return RX_LL_VARYING;
    return x->op == RX_EX_FLOORDIV ? 0 : s;
}

static int64_t find_stride(rx_ll *e, rx_ex x)
{
    int64_t s[2] = {0, 0}, r;
    bool uniform = true;
    if (x->op == RX_EX_SYM) {
        rx_ll_bind *b = rx_ll_find(e, x);
        return b ? b->stride : 0;
    }
    for (uint32_t i = 0; i < x->nargs; i++) {
        int64_t t = rx_ll_stride(e, x->a[i]);
        if (i < 2) s[i] = t;
        uniform = uniform && t == 0;
    }
    if (x->op == RX_EX_LOAD && rx_ll_buffer(e, x->u.buf)->per_lane) return RX_LL_VARYING;
    if (uniform) return 0;
    if (x->dtype != RELAX_I64 || s[0] == RX_LL_VARYING || s[1] == RX_LL_VARYING) return RX_LL_VARYING;
    switch (x->op) {
    case RX_EX_ADD: return rx_add_ok(s[0], s[1], &r) ? r : RX_LL_VARYING;
    case RX_EX_SUB: return rx_sub_ok(s[0], s[1], &r) ? r : RX_LL_VARYING;
    case RX_EX_MUL:
        if (s[1] == 0 && rx_ll_int_const(e, x->a[1], &r)) return rx_mul_ok(s[0], r, &r) ? r : RX_LL_VARYING;
        if (s[0] == 0 && rx_ll_int_const(e, x->a[0], &r)) return rx_mul_ok(s[1], r, &r) ? r : RX_LL_VARYING;
        return RX_LL_VARYING;
    case RX_EX_FLOORDIV: case RX_EX_FLOORMOD: return s[1] == 0 ? stride_of_division(e, x, s[0]) : RX_LL_VARYING;
    default: return RX_LL_VARYING;
    }
}

int64_t rx_ll_stride(rx_ll *e, rx_ex x)
{
    if (x->op == RX_EX_INT || x->op == RX_EX_FLOAT) return 0;
    if (x->nargs == 0) return find_stride(e, x);
    rx_ll_memo *m = rx_ll_recall(e, x, RX_LL_STRIDE, NULL);
    if (m) return m->stride;
    int64_t s = find_stride(e, x);
    rx_ll_remember(e, x, RX_LL_STRIDE, NULL)->stride = s;
    return s;
}

int64_t rx_ll_index_stride(rx_ll *e, const relax_buffer *b, rx_ex *index)
{
    int64_t r = 0, d;
    for (uint32_t i = 0; i < b->ndim; i++) {
        int64_t s = rx_ll_stride(e, index[i]);
        if (s == RX_LL_VARYING) return s;
        if (b->strides && s) {
            if (!rx_ll_int_const(e, b->strides[i], &d) || !rx_mul_ok(s, d, &s)) return RX_LL_VARYING;
        } else if (!b->strides && r) {
            if (!rx_ll_int_const(e, b->shape[i], &d) || !rx_mul_ok(r, d, &r)) return RX_LL_VARYING;
        }
        if (!rx_add_ok(r, s, &r)) return RX_LL_VARYING;
    }
    return r;
}

/* ---- updates ---- */
static bool is_self(const rx_stmt *s, rx_ex x)
{
    if (x->op != RX_EX_LOAD || x->u.buf != s->u.store.buf) return false;
    for (uint32_t i = 0; i < x->nargs; i++)
        if (x->a[i] != s->u.store.index[i]) return false;
    return true;
}

static bool is_update_op(rx_eop op)
{
    switch (op) {
    case RX_EX_ADD: case RX_EX_SUB: case RX_EX_MUL: case RX_EX_MIN: case RX_EX_MAX: case RX_EX_BITAND: case RX_EX_BITOR:
    case RX_EX_BITXOR: case RX_EX_AND: case RX_EX_OR: return true;
    default: return false;
    }
}

bool rx_ll_update(const rx_stmt *s, rx_eop *op, rx_ex *a, rx_ex *b, bool *negate)
{
    rx_ex v = s->u.store.value;
    *b = NULL;
    *negate = false;
    if (v->dtype == RELAX_F16 || v->dtype == RELAX_BF16 || v->dtype >= RELAX_F8E4M3) return false;
    bool fma = v->op == RX_EX_CALL && v->intrin == RX_IN_FMA && is_self(s, v->a[2]);
    if (fma) {
        *op = RX_EX_ADD;
        *a = v->a[0];
        *b = v->a[1];
    } else {
        if (v->nargs != 2 || !is_update_op((rx_eop)v->op)) return false;
        bool first = is_self(s, v->a[0]);
        if (!first && (v->op == RX_EX_SUB || !is_self(s, v->a[1]))) return false;
        *op = v->op == RX_EX_SUB ? RX_EX_ADD : (rx_eop)v->op;
        *negate = v->op == RX_EX_SUB;
        *a = v->a[first ? 1 : 0];
        bool is_float = v->dtype == RELAX_F32 || v->dtype == RELAX_F64;
        if (is_float && v->op == RX_EX_ADD && (*a)->op == RX_EX_MUL) {
            *b = (*a)->a[1];
            *a = (*a)->a[0];
        }
    }
    return !rx_ll_has_load(*a, s->u.store.buf) && (!*b || !rx_ll_has_load(*b, s->u.store.buf));
}

/* ---- can a loop be emitted as lanes? ---- */
typedef struct lanes_check { rx_ll *e; bool reduce, masked; } lanes_check;
static bool check_stmt(lanes_check *c, const rx_stmt *s);

static bool check_store(lanes_check *c, const rx_stmt *s)
{
    rx_ll *e = c->e;
    const relax_buffer *b = s->u.store.buf;
    rx_eop op;
    rx_ex x, y;
    bool negate;
    if (rx_ll_buffer(e, b)->per_lane) return true;
    int64_t stride = rx_ll_index_stride(e, b, s->u.store.index);
    if (!c->reduce) return stride != 0 || (rx_ll_stride(e, s->u.store.value) == 0 && !c->masked);
    if (stride != 0) return stride != RX_LL_VARYING;
    if (!rx_ll_update(s, &op, &x, &y, &negate))
        return rx_ll_stride(e, s->u.store.value) == 0 && !c->masked && !rx_ll_has_load(s->u.store.value, b);
    for (uint32_t i = 0; i < e->accs.n; i++)
        if (e->accs.at[i].buf == b && e->accs.at[i].op == op && e->accs.at[i].lanes == e->lanes) return true;
    return false;
}

static bool check_branch(lanes_check *c, const rx_stmt *s)
{
    bool saved = c->masked;
    c->masked = c->masked || rx_ll_stride(c->e, s->u.branch.cond) != 0;
    bool ok = check_stmt(c, s->u.branch.then) && (!s->u.branch.other || check_stmt(c, s->u.branch.other));
    c->masked = saved;
    return ok;
}

static bool check_stmt(lanes_check *c, const rx_stmt *s)
{
    rx_ll *e = c->e;
    uint32_t nb = e->binds.n, nbuf = e->bufs.n;
    bool ok = true;
    switch (s->kind) {
    case RX_S_SEQ:
        for (uint32_t i = 0; ok && i < s->u.seq.n; i++) ok = check_stmt(c, s->u.seq.at[i]);
        break;
    case RX_S_FOR:
        ok = rx_ll_stride(e, s->u.loop.start) == 0 && rx_ll_stride(e, s->u.loop.extent) == 0
            && (!s->u.loop.init || check_stmt(c, s->u.loop.init)) && check_stmt(c, s->u.loop.body);
        break;
    case RX_S_STORE: ok = check_store(c, s); break;
    case RX_S_ALLOC:
        rx_ll_push(e, &e->bufs, ((rx_ll_buf){.buf = s->u.alloc.buf, .per_lane = true}));
        ok = check_stmt(c, s->u.alloc.body);
        break;
    case RX_S_IF: ok = check_branch(c, s); break;
    case RX_S_LET:
        rx_ll_bind_sym(e, s->u.let.var, (rx_ll_val){0}, rx_ll_stride(e, s->u.let.value), false);
        ok = check_stmt(c, s->u.let.body);
        break;
    case RX_S_ASSERT: case RX_S_PREFETCH: break;
    }
    e->binds.n = nb;
    e->bufs.n = nbuf;
    return ok;
}

bool rx_ll_lanes_ok(rx_ll *e, const rx_stmt *loop)
{
    lanes_check c = {e, loop->u.loop.reduce, false};
    rx_ll_forget(e);
    bool ok = check_stmt(&c, loop->u.loop.body);
    rx_ll_forget(e);
    return ok;
}

/* ---- accumulators ---- */
typedef struct acc_search {
    rx_ll *e;
    const relax_buffer *buf;
    rx_eop op;
    uint32_t lanes;                          /* of the first update found; 0: none yet */
    rx_ex *index;                            /* of the first update */
    bool same_index, direct, whole;
    symbols inside, lane_side;               /* symbols defined in the loop; those that may differ between lanes */
    uint32_t vector, depth, branches;        /* lanes of the VECTOR reduce loop we are in; loops and branches around */
} acc_search;

static bool add_symbol(symbols *s, rx_ex x)
{
    if (s->n == RX_COUNT(s->at)) return false;
    s->at[s->n++] = x;
    return true;
}

static bool lanes_of(const rx_stmt *s, uint32_t *lanes)
{
    int64_t n = s->u.loop.extent->op == RX_EX_INT ? s->u.loop.extent->u.i : 0;
    if (s->u.loop.how != RX_VECTOR || !s->u.loop.reduce || n < 2 || n > RX_LL_MAX_LANES) return false;
    return *lanes = (uint32_t)n, true;
}

static bool fits_update(acc_search *q, const rx_stmt *s)
{
    rx_eop op;
    rx_ex a, b;
    bool negate;
    if (!q->vector || !rx_ll_update(s, &op, &a, &b, &negate)) return false;
    if (q->lanes && (op != q->op || q->vector != q->lanes)) return false;
    for (uint32_t i = 0; i < q->buf->ndim; i++) {
        rx_ex x = s->u.store.index[i];
        if (rx_ll_has_load(x, NULL) || uses_symbols(x, &q->lane_side)) return false;
        if (q->index && x != q->index[i]) q->same_index = false;
        if (uses_symbols(x, &q->inside)) q->same_index = false;
    }
    q->op = op;
    q->lanes = q->vector;
    if (!q->index) q->index = s->u.store.index;
    q->direct = q->direct && q->depth == 0 && q->branches == 0;
    return true;
}

static bool none_loaded(acc_search *q, const rx_ex *x, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        if (rx_ll_has_load(x[i], q->buf)) return false;
    return true;
}

static bool search(acc_search *q, const rx_stmt *s);

static bool search_loop(acc_search *q, const rx_stmt *s)
{
    uint32_t lanes = 0, outer = q->vector;
    int64_t n;
    rx_ex heads[2] = {s->u.loop.start, s->u.loop.extent};
    if (!none_loaded(q, heads, 2) || !add_symbol(&q->inside, s->u.loop.var)) return false;
    if (s->u.loop.init && !search(q, s->u.loop.init)) return false;
    bool certain = rx_ll_int_const(q->e, s->u.loop.extent, &n) && n > 0;
    if (!outer && lanes_of(s, &lanes)) {
        q->vector = lanes;
        if (!add_symbol(&q->lane_side, s->u.loop.var)) return false;
    }
    q->depth += !certain;
    bool ok = search(q, s->u.loop.body);
    q->depth -= !certain;
    q->vector = outer;
    return ok;
}

/* false: the buffer is accessed in a way that an accumulator does not serve */
static bool search(acc_search *q, const rx_stmt *s)
{
    bool ok = true;
    switch (s->kind) {
    case RX_S_SEQ:
        for (uint32_t i = 0; ok && i < s->u.seq.n; i++) ok = search(q, s->u.seq.at[i]);
        return ok;
    case RX_S_FOR: return search_loop(q, s);
    case RX_S_STORE:
        if (s->u.store.buf == q->buf) return fits_update(q, s);
        return none_loaded(q, s->u.store.index, s->u.store.buf->ndim) && none_loaded(q, &s->u.store.value, 1);
    case RX_S_ALLOC: return s->u.alloc.buf != q->buf && search(q, s->u.alloc.body);
    case RX_S_IF:
        q->branches++;
        ok = none_loaded(q, &s->u.branch.cond, 1) && search(q, s->u.branch.then)
            && (!s->u.branch.other || search(q, s->u.branch.other));
        q->branches--;
        return ok;
    case RX_S_LET:
        if (!none_loaded(q, &s->u.let.value, 1) || !add_symbol(&q->inside, s->u.let.var)) return false;
        if (q->vector && !add_symbol(&q->lane_side, s->u.let.var)) return false;
        return search(q, s->u.let.body);
    case RX_S_ASSERT: return none_loaded(q, &s->u.check.cond, 1);
    case RX_S_PREFETCH: return none_loaded(q, s->u.prefetch.index, s->u.prefetch.buf->ndim);
    }
    return false;
}

#define ACC_ELEMENTS 64

static bool local_elements(rx_ll *e, const relax_buffer *b, uint64_t *n)
{
    *n = 1;
    for (uint32_t i = 0; i < b->ndim; i++) {
        int64_t d;
        if (!rx_ll_int_const(e, b->shape[i], &d) || d <= 0 || (*n *= (uint64_t)d) > ACC_ELEMENTS) return false;
    }
    return b->strides == NULL;
}

static void try_buffer(rx_ll *e, const rx_stmt *loop, const relax_buffer *b)
{
    acc_search *q = rx_ll_mem(e, sizeof *q);
    *q = (acc_search){.e = e, .buf = b, .same_index = true, .direct = true};
    uint64_t n = 1;
    uint32_t lanes = 0;
    if (!add_symbol(&q->inside, loop->u.loop.var)) return;
    if (lanes_of(loop, &lanes)) {
        q->vector = lanes;
        add_symbol(&q->lane_side, loop->u.loop.var);
    }
    if (!search(q, loop->u.loop.body) || !q->lanes) return;
    bool whole = b->param < 0 && local_elements(e, b, &n);
    if (!whole && !(q->same_index && q->direct)) return;
    rx_ll_push(e, &e->accs, ((rx_ll_acc){b, whole ? NULL : q->index, q->op, q->lanes, whole ? n : 1, NULL}));
}

typedef struct candidates { rx_ll *e; const relax_buffer *at[64]; uint32_t n; } candidates;

static bool note_candidate(void *arg, const rx_stmt *s, rx_ex x)
{
    candidates *c = arg;
    rx_eop op;
    rx_ex a, b;
    bool negate;
    if (x || s->kind != RX_S_STORE || !rx_ll_update(s, &op, &a, &b, &negate)) return true;
    for (uint32_t i = 0; i < c->n; i++)
        if (c->at[i] == s->u.store.buf) return true;
    for (uint32_t i = 0; i < c->e->accs.n; i++)
        if (c->e->accs.at[i].buf == s->u.store.buf) return true;
    if (c->n < RX_COUNT(c->at)) c->at[c->n++] = s->u.store.buf;
    return true;
}

static bool note_vector(void *arg, const rx_stmt *s, rx_ex x)
{
    uint32_t lanes;
    (void)arg;
    return x || s->kind != RX_S_FOR || !lanes_of(s, &lanes);
}

void rx_ll_find_accs(rx_ll *e, const rx_stmt *loop)
{
    candidates c = {.e = e};
    if (rx_ll_walk(loop, note_vector, NULL)) return;
    rx_ll_walk(loop->u.loop.body, note_candidate, &c);
    for (uint32_t i = 0; i < c.n; i++) try_buffer(e, loop, c.at[i]);
}
