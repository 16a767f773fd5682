/* verify.c: the rules of tensor programs, each access proved in bounds or listed; guards for those that are not proved.
 *
 *  T1 parameters: distinct, numbered in order, global, of a known dtype; dims and strides are i64 index expressions
 *  T2 every symbol is defined (a lone dim of a parameter, an extra symbol, a loop or let around) and defined once in
 * its scope T3 every buffer is a parameter or an ALLOC around T4 indices: one i64 expression per dim; stored values
 * have the dtype of the buffer T5 loops: VECTOR extents are constants 2..64, UNROLL extents constants 0..256; a VECTOR
 * loop holds no other VECTOR loop; PARALLEL loops stand at the top (below SEQ and global ALLOC only) and are not
 * reductions T6 init stands on reduce loops only T7 LOCAL buffers have a constant size of at most 256 KiB; scopes are
 * known T8 the error of an ASSERT is a known number T9 statements nest at most RX_MAX_DEPTH deep T10 (RXE_TIR_BOUNDS)
 * no access is outside its buffer for certain
 *
 * Walk: facts grow along the path (ranges of loops, conditions of IF and SELECT, ASSERTs already passed, lets).
 * Conditions that hold a load are beyond the prover; they count as known word for word until a buffer that they read is
 * stored to. PREFETCH is not an access. Code under contradicting facts is dead and not reported. */
#include "tir/text.h"

#define LOCAL_BYTES (256 * 1024)
#define VISITS 100000                  /* expression nodes walked per statement before loads count as unproved unseen */

typedef struct verifier {
    relax_context *ctx;
    rx_arena *a;
    const rx_prim *p;
    const rx_facts *facts;
    rx_exvec syms;                     /* in scope */
    RX_VEC(relax_buffer *) bufs;       /* in scope */
    rx_exvec known;                    /* conditions with loads that hold here; NULL: no longer */
    rx_unproved_vec found;
    uint32_t breaks, depth;
    uint32_t visits;
    bool silent;
    bool in_vector, nested;            /* nested: something other than SEQ and global ALLOC around */
    rx_stmt *at;
    rx_map *seen;
} verifier;

#define BREAK(v, err, ...) do { \
        (v)->breaks++; \
        if (!(v)->silent) \
            rx_report((v)->ctx, (err), &(rx_where){.function = (v)->p->name}, NULL, __VA_ARGS__); \
    } while (0)

static const char *text_of(verifier *v, rx_ex e)
{
    rx_buf b;
    rx_buf_init(&b, v->a);
    rx_print_expr(&b, e);
    return b.at ? b.at : "";
}

/* --- scopes --- */

static bool sym_in_scope(const verifier *v, rx_ex sym)
{
    for (uint32_t i = v->syms.n; i-- > 0;)
        if (v->syms.at[i] == sym)
            return true;
    return false;
}

static bool buf_in_scope(const verifier *v, const relax_buffer *b)
{
    for (uint32_t i = v->bufs.n; i-- > 0;)
        if (v->bufs.at[i] == b)
            return true;
    return false;
}

static void define(verifier *v, rx_ex sym)
{
    if (sym_in_scope(v, sym))
        BREAK(v, RXE_TIR_VERIFY, "T2: symbol '%s' is defined again inside its scope", rx_sym_of(sym)->name);
    rx_push(v->a, &v->syms, sym);
}

static void use_buffer(verifier *v, const relax_buffer *b)
{
    if (!buf_in_scope(v, b))
        BREAK(v, RXE_TIR_VERIFY, "T3: buffer '%s' is used outside its scope", b->name);
}

static void scope_node(void *arg, rx_ex e)
{
    verifier *v = arg;
    if (e->op == RX_EX_SYM && !sym_in_scope(v, e))
        BREAK(v, RXE_TIR_VERIFY, "T2: symbol '%s' is used but not defined", rx_sym_of(e)->name);
    if (e->op != RX_EX_LOAD)
        return;
    use_buffer(v, e->u.buf);
    if (e->nargs != e->u.buf->ndim)
        BREAK(v, RXE_TIR_VERIFY, "T4: buffer '%s' has %u dims and is read with %u", e->u.buf->name, e->u.buf->ndim,
              e->nargs);
    if (e->dtype != e->u.buf->dtype)
        BREAK(v, RXE_TIR_VERIFY, "T4: buffer '%s' is read as another dtype", e->u.buf->name);
    for (uint32_t i = 0; i < e->nargs; i++)
        if (e->a[i]->dtype != RELAX_I64)
            BREAK(v, RXE_TIR_VERIFY, "T4: index %u of buffer '%s' is not i64", i, e->u.buf->name);
}

static void check_scope(void *arg, rx_ex e)
{
    verifier *v = arg;
    if (e->flags & (RX_EX_DATA | RX_EX_HAS_SYM))
        rx_visit(v->ctx, e, scope_node, v);
}

/* --- facts --- */

static const rx_facts *with(verifier *v, rx_ex cond)
{
    rx_facts *f = rx_facts_new(v->ctx, v->a, v->facts);
    rx_facts_add(f, cond);
    return f;
}

/* cond holds from here on: conjuncts without loads are facts, the others are known word for word */
static void assume(verifier *v, rx_ex cond)
{
    if (!(cond->flags & RX_EX_DATA)) {
        v->facts = with(v, cond);
        return;
    }
    rx_push(v->a, &v->known, cond);
    if (cond->op != RX_EX_AND)
        return;
    assume(v, cond->a[0]);
    assume(v, cond->a[1]);
}

typedef struct touched { const relax_buffer *buf; bool hit; } touched;

static void note_touch(void *arg, rx_ex e)
{
    touched *t = arg;
    t->hit |= e->op == RX_EX_LOAD && e->u.buf == t->buf;
}

/* a store to b: what was known about its contents is not any more */
static void forget(verifier *v, const relax_buffer *b)
{
    for (uint32_t i = 0; i < v->known.n; i++) {
        touched t = {b, false};
        if (v->known.at[i])
            rx_visit(v->ctx, v->known.at[i], note_touch, &t);
        if (t.hit)
            v->known.at[i] = NULL;
    }
}

static void forget_stored(void *arg, rx_stmt *s)
{
    if (s->kind == RX_S_STORE)
        forget(arg, s->u.store.buf);
}

/* --- accesses --- */

static bool is_known(const verifier *v, rx_ex cond)
{
    for (uint32_t i = 0; i < v->known.n; i++)
        if (v->known.at[i] == cond)
            return true;
    return false;
}

/* the condition under which an access is harmless on one axis */
static rx_ex in_bounds(relax_context *ctx, const rx_unproved *u)
{
    rx_ex cond = rx_and(ctx, rx_le(ctx, rx_int(ctx, 0), u->index), rx_lt(ctx, u->index, u->buf->shape[u->axis]));
    return u->guard ? rx_select(ctx, u->guard, cond, rx_bool(ctx, true)) : cond;
}

static void unproved(verifier *v, relax_buffer *b, uint32_t axis, rx_ex index, rx_ex guard)
{
    rx_unproved u = {v->at, b, axis, index, guard};
    if (is_known(v, in_bounds(v->ctx, &u)))
        return;
    for (uint32_t i = v->found.n; i-- > 0 && v->found.at[i].at == v->at;) {
        const rx_unproved *o = &v->found.at[i];
        if (o->index == index && o->guard == guard && o->buf->shape[o->axis] == b->shape[axis])
            return;
    }
    rx_push(v->a, &v->found, u);
}

static rx_truth holds(verifier *v, rx_ex cond)
{
    if (cond->op == RX_EX_INT)
        return cond->u.i ? RX_TRUE : RX_FALSE;
    if (is_known(v, cond))
        return RX_TRUE;
    return cond->flags & RX_EX_DATA ? RX_UNKNOWN : rx_prove(v->ctx, v->facts, cond, NULL);
}

static void check_access(verifier *v, relax_buffer *b, const rx_ex *index, uint32_t n, const char *verb, rx_ex guard)
{
    for (uint32_t i = 0; i < n && i < b->ndim; i++) {
        if (index[i]->dtype != RELAX_I64)
            continue;
        rx_truth lo = holds(v, rx_le(v->ctx, rx_int(v->ctx, 0), index[i]));
        rx_truth hi = lo == RX_FALSE ? RX_FALSE : holds(v, rx_lt(v->ctx, index[i], b->shape[i]));
        if (lo == RX_TRUE && hi == RX_TRUE)
            continue;
        if (hi != RX_FALSE)
            unproved(v, b, i, index[i], guard);
        else if (!v->facts || !rx_facts_contradict(v->facts))
            BREAK(v, RXE_TIR_BOUNDS, "T10: '%s' is %s at index %s of axis %u, outside its dim %s", b->name, verb,
                  text_of(v, index[i]), i, text_of(v, b->shape[i]));
    }
}

typedef struct blind { verifier *v; rx_ex guard; } blind;

static void blind_load(void *arg, rx_ex e)
{
    blind *x = arg;
    if (e->op != RX_EX_LOAD)
        return;
    for (uint32_t i = 0; i < e->nargs && i < e->u.buf->ndim; i++)
        unproved(x->v, e->u.buf, i, e->a[i], x->guard);
}

static void check_loads(verifier *v, rx_ex e, rx_ex guard);

/* one side of a select: its own facts, its own set of nodes seen */
static void check_side(verifier *v, rx_ex e, rx_ex cond, rx_ex guard)
{
    const rx_facts *facts = v->facts;
    rx_map *seen = v->seen, fresh;
    uint32_t known = v->known.n;
    rx_map_init(&fresh, v->a);
    v->seen = &fresh;
    assume(v, cond);
    check_loads(v, e, guard ? rx_select(v->ctx, guard, cond, rx_bool(v->ctx, false)) : cond);
    v->known.n = known;
    v->seen = seen;
    v->facts = facts;
}

/* every load that evaluation of e can reach, under the facts of the selects around it */
static void check_loads(verifier *v, rx_ex e, rx_ex guard)
{
    if (!(e->flags & RX_EX_DATA) || rx_map_has(v->seen, RX_KEY(e)))
        return;
    rx_map_put(v->seen, RX_KEY(e), v);
    if (++v->visits > VISITS) {
        blind x = {v, guard};
        rx_visit(v->ctx, e, blind_load, &x);
        return;
    }
    if (e->op == RX_EX_SELECT) {
        check_loads(v, e->a[0], guard);
        check_side(v, e->a[1], e->a[0], guard);
        check_side(v, e->a[2], rx_not(v->ctx, e->a[0]), guard);
        return;
    }
    for (uint32_t i = 0; i < e->nargs; i++)
        check_loads(v, e->a[i], guard);
    if (e->op == RX_EX_LOAD)
        check_access(v, e->u.buf, e->a, e->nargs, "read", guard);
}

static void check_expr(void *arg, rx_ex e)
{
    verifier *v = arg;
    rx_map seen;
    check_scope(v, e);
    rx_map_init(&seen, v->a);
    v->seen = &seen;
    v->visits = 0;
    check_loads(v, e, NULL);
}

/* --- statements --- */

static void check_stmt(verifier *v, rx_stmt *s);

/* a statement with scopes, facts and place restored behind it */
static void check_inside(verifier *v, rx_stmt *s)
{
    verifier saved = *v;
    if (++v->depth > RX_MAX_DEPTH)
        BREAK(v, RXE_TIR_VERIFY, "T9: statements are nested deeper than %d", RX_MAX_DEPTH);
    else
        check_stmt(v, s);
    v->depth = saved.depth;
    v->facts = saved.facts;
    v->syms.n = saved.syms.n;
    v->bufs.n = saved.bufs.n;
    v->known.n = RX_MIN(saved.known.n, v->known.n);
    v->in_vector = saved.in_vector;
    v->nested = saved.nested;
}

static void check_kind(verifier *v, const rx_stmt *s)
{
    const char *name = rx_sym_of(s->u.loop.var)->name;
    int64_t n = 0;
    bool fixed = rx_is_int(s->u.loop.extent, &n);
    if (s->u.loop.how == RX_VECTOR && (!fixed || n < 2 || n > 64))
        BREAK(v, RXE_TIR_VERIFY, "T5: the extent of vector loop '%s' is not a constant from 2 to 64", name);
    if (s->u.loop.how == RX_UNROLL && (!fixed || n < 0 || n > 256))
        BREAK(v, RXE_TIR_VERIFY, "T5: the extent of unrolled loop '%s' is not a constant up to 256", name);
    if (v->in_vector && s->u.loop.how == RX_VECTOR)
        BREAK(v, RXE_TIR_VERIFY, "T5: vector loop '%s' stands in a vector loop", name);
    if (s->u.loop.how == RX_PARALLEL && (v->nested || s->u.loop.reduce))
        BREAK(v, RXE_TIR_VERIFY, "T5: parallel loop '%s' %s", name, s->u.loop.reduce ? "is a reduction" :
              "does not stand at the top: only a sequence or a global alloc may be around it");
    if (s->u.loop.init && !s->u.loop.reduce)
        BREAK(v, RXE_TIR_VERIFY, "T6: loop '%s' has an init and is not a reduction", name);
}

static void check_loop(verifier *v, rx_stmt *s)
{
    relax_context *ctx = v->ctx;
    rx_ex var = s->u.loop.var, start = s->u.loop.start, extent = s->u.loop.extent;
    if (!rx_sym_of(var) || start->dtype != RELAX_I64 || extent->dtype != RELAX_I64) {
        BREAK(v, RXE_TIR_VERIFY, "T4: a loop needs an i64 symbol and i64 bounds");
        return;
    }
    rx_stmt_exprs(s, check_expr, v);
    check_kind(v, s);
    v->nested = true;
    if (s->u.loop.init)
        check_inside(v, s->u.loop.init);
    rx_stmt_visit(s, forget_stored, v);
    define(v, var);
    assume(v, rx_le(ctx, start, var));
    assume(v, rx_lt(ctx, var, rx_is_value(start, 0) ? extent : rx_add(ctx, start, extent)));
    v->in_vector |= s->u.loop.how == RX_VECTOR;
    check_inside(v, s->u.loop.body);
}

static void check_alloc(verifier *v, rx_stmt *s)
{
    relax_buffer *b = s->u.alloc.buf;
    int64_t bytes = (int64_t)rx_dtype_bytes(b->dtype), d;
    rx_stmt_exprs(s, check_scope, v);
    if (b->param >= 0 || buf_in_scope(v, b))
        BREAK(v, RXE_TIR_VERIFY, "T3: buffer '%s' is a parameter or allocated again inside its scope", b->name);
    for (uint32_t i = 0; i < b->ndim && b->scope == RX_MEM_LOCAL; i++)
        if (!rx_is_int(b->shape[i], &d) || d < 0 || !rx_mul_ok(bytes, d, &bytes) || bytes > LOCAL_BYTES) {
            BREAK(v, RXE_TIR_VERIFY, "T7: local buffer '%s' has no constant size of at most %d bytes", b->name,
                  LOCAL_BYTES);
            break;
        }
    v->nested |= b->scope != RX_MEM_GLOBAL;
    rx_push(v->a, &v->bufs, b);
    check_inside(v, s->u.alloc.body);
}

static void check_store(verifier *v, rx_stmt *s)
{
    relax_buffer *b = s->u.store.buf;
    use_buffer(v, b);
    rx_stmt_exprs(s, check_expr, v);
    for (uint32_t i = 0; i < b->ndim; i++)
        if (s->u.store.index[i]->dtype != RELAX_I64)
            BREAK(v, RXE_TIR_VERIFY, "T4: index %u of buffer '%s' is not i64", i, b->name);
    if (s->u.store.value->dtype != b->dtype)
        BREAK(v, RXE_TIR_VERIFY, "T4: a %s is stored to '%s' of dtype %s", rx_dtypes[s->u.store.value->dtype].name,
              b->name, rx_dtypes[b->dtype].name);
    check_access(v, b, s->u.store.index, b->ndim, "written", NULL);
    forget(v, b);
}

static void check_branch(verifier *v, rx_stmt *s)
{
    rx_ex cond = s->u.branch.cond;
    const rx_facts *facts = v->facts;
    uint32_t known = v->known.n;
    check_expr(v, cond);
    v->nested = true;
    assume(v, cond);
    check_inside(v, s->u.branch.then);
    v->facts = facts;
    v->known.n = RX_MIN(known, v->known.n);
    if (!s->u.branch.other)
        return;
    assume(v, rx_not(v->ctx, cond));
    check_inside(v, s->u.branch.other);
}

static void check_let(verifier *v, rx_stmt *s)
{
    rx_ex var = s->u.let.var, value = s->u.let.value;
    check_expr(v, value);
    if (!rx_sym_of(var) || var->dtype != value->dtype) {
        BREAK(v, RXE_TIR_VERIFY, "T4: a let needs a symbol of the dtype of its value");
        return;
    }
    v->nested = true;
    define(v, var);
    if (var->dtype == RELAX_I64 && !(value->flags & RX_EX_DATA))
        assume(v, rx_eq(v->ctx, var, value));
    check_inside(v, s->u.let.body);
}

static void check_stmt(verifier *v, rx_stmt *s)
{
    v->at = s;
    switch (s->kind) {
    case RX_S_SEQ:
        for (uint32_t i = 0; i < s->u.seq.n; i++) {
            rx_stmt *x = s->u.seq.at[i];
            check_inside(v, x);
            if (x->kind == RX_S_ASSERT)
                assume(v, x->u.check.cond);
        }
        break;
    case RX_S_FOR: check_loop(v, s); break;
    case RX_S_STORE: check_store(v, s); break;
    case RX_S_ALLOC: check_alloc(v, s); break;
    case RX_S_IF: check_branch(v, s); break;
    case RX_S_LET: check_let(v, s); break;
    case RX_S_ASSERT:
        check_expr(v, s->u.check.cond);
        if (!rx_tir_err_word(s->u.check.err))
            BREAK(v, RXE_TIR_VERIFY, "T8: an assert has the unknown error number %u", s->u.check.err);
        break;
    case RX_S_PREFETCH:
        use_buffer(v, s->u.prefetch.buf);
        rx_stmt_exprs(s, check_scope, v);
        break;
    }
}

/* --- the whole --- */

static void check_dims(verifier *v, const relax_buffer *b, rx_ex *dims, const char *what)
{
    for (uint32_t i = 0; i < b->ndim; i++) {
        if (dims[i]->dtype != RELAX_I64 || (dims[i]->flags & RX_EX_DATA))
            BREAK(v, RXE_TIR_VERIFY, "T1: %s %u of '%s' is no i64 index expression", what, i, b->name);
        else
            check_scope(v, dims[i]);
    }
}

static void check_params(verifier *v)
{
    const rx_prim *p = v->p;
    for (uint32_t i = 0; i < p->nparams; i++) {
        relax_buffer *b = p->params[i];
        if (b->param != (int32_t)i || b->scope != RX_MEM_GLOBAL || buf_in_scope(v, b))
            BREAK(v, RXE_TIR_VERIFY, "T1: parameter %u ('%s') is numbered wrongly, repeated or not global", i, b->name);
        if (b->dtype <= RELAX_DTYPE_UNKNOWN || b->dtype >= RELAX_DTYPE_COUNT)
            BREAK(v, RXE_TIR_VERIFY, "T1: parameter '%s' has no dtype", b->name);
        check_dims(v, b, b->shape, "dim");
        if (b->strides)
            check_dims(v, b, b->strides, "stride");
        rx_push(v->a, &v->bufs, b);
    }
}

/* Dims of arguments are never negative. */
static const rx_facts *dim_facts(verifier *v)
{
    rx_facts *f = rx_facts_new(v->ctx, v->a, v->p->facts);
    for (uint32_t i = 0; i < v->p->nparams; i++)
        for (uint32_t k = 0; k < v->p->params[i]->ndim; k++) {
            rx_ex dim = v->p->params[i]->shape[k];
            if (dim->op != RX_EX_INT && dim->dtype == RELAX_I64 && !(dim->flags & RX_EX_DATA))
                rx_facts_add(f, rx_le(v->ctx, rx_int(v->ctx, 0), dim));
        }
    return f;
}

static void run(verifier *v)
{
    for (uint32_t i = 0; i < v->p->nsyms; i++)
        if (!rx_sym_of(v->p->syms[i])) {
            BREAK(v, RXE_TIR_VERIFY, "T1: extra symbol %u is no symbol", i);
            return;
        }
    rx_prim_symbols(v->ctx, v->a, v->p, &v->syms);
    check_params(v);
    for (uint32_t i = 0; i < v->p->nwhere; i++)
        check_scope(v, v->p->where[i]);
    v->facts = dim_facts(v);
    check_inside(v, v->p->body);
}

uint32_t rx_prim_verify(relax_context *ctx, const rx_prim *p, rx_arena *a, rx_unproved_vec *out)
{
    verifier v = {.ctx = ctx, .a = a, .p = p};
    run(&v);
    for (uint32_t i = 0; out && i < v.found.n; i++)
        rx_push(a, out, v.found.at[i]);
    return v.breaks;
}

/* --- guards --- */

typedef struct guarding { rx_tb *t; const rx_unproved_vec *found; } guarding;

static rx_stmt *guard_of(guarding *g, const rx_unproved *u)
{
    relax_context *ctx = g->t->ctx;
    return rx_check_s(g->t, in_bounds(ctx, u), RXE_INDEX, rx_strf(ctx, "axis %u of %s", u->axis, u->buf->name));
}

static rx_stmt *guard_stmt(void *arg, rx_stmt *old, rx_stmt *now)
{
    guarding *g = arg;
    RX_VEC(rx_stmt *) list = {0};
    for (uint32_t i = 0; i < g->found->n; i++)
        if (g->found->at[i].at == old)
            rx_push(g->t->a, &list, guard_of(g, &g->found->at[i]));
    if (!list.n)
        return now;
    rx_push(g->t->a, &list, now);
    return rx_seq(g->t, list.at, list.n);
}

rx_prim *rx_prim_guard(rx_tb *t, const rx_prim *p)
{
    verifier v = {.ctx = t->ctx, .a = t->a, .p = p, .silent = true};
    run(&v);
    guarding g = {t, &v.found};
    rx_stmt_map m = {.arg = &g, .pair = guard_stmt};
    rx_prim *r = rx_arena_dup(t->a, p, sizeof *p);
    r->body = rx_stmt_rewrite(t, p->body, &m);
    return r;
}
