/* deps.c: which loops may run in any order, and how accesses move along a loop.
 *
 * Independence of a loop over v: every buffer that the body stores (and does not allocate itself) has an axis on which
 * all its accesses, loads and stores alike, are at c * v + r with one constant c != 0 and one r that does not change
 * inside the loop; or all accesses use one index c * v + r and r is proved to stay in a window of width c while the
 * inner loops run. Anything else counts as dependent. Distinct parameters are distinct memory; a tensor updated in
 * place is one parameter. Moves: the change of the linear offset when v grows by one, as a canonical expression: 0
 * uniform, 1 unit. An index that depends on a let or a local buffer that itself depends on v counts as other. */
#include "sched/impl.h"

typedef struct access { relax_buffer *buf; const rx_ex *index; bool store; } access;
typedef struct deps {
    rx_tb *t;
    RX_VEC(access) at;
    RX_VEC(const relax_buffer *) mine; /* allocated inside */
    RX_VEC(const rx_stmt *) loops;     /* inside */
    rx_exvec inner;                    /* symbols defined inside */
} deps;

/* what an analysis builds goes with the frame of the scheduler */
static rx_arena *tmp(rx_tb *t)
{
    return rx_scratch(&t->ctx->heap);
}

static void note_load(void *arg, rx_ex e)
{
    deps *d = arg;
    access a = {e->u.buf, e->a, false};
    if (e->op == RX_EX_LOAD)
        rx_push(tmp(d->t), &d->at, a);
}

static void note_expr(void *arg, rx_ex e)
{
    deps *d = arg;
    if (e->flags & RX_EX_DATA)
        rx_visit(d->t->ctx, e, note_load, d);
}

static void note_stmt(void *arg, rx_stmt *s)
{
    deps *d = arg;
    if (s->kind == RX_S_PREFETCH)
        return;
    rx_stmt_exprs(s, note_expr, d);
    if (s->kind == RX_S_STORE) {
        access a = {s->u.store.buf, s->u.store.index, true};
        rx_push(tmp(d->t), &d->at, a);
    } else if (s->kind == RX_S_FOR) {
        rx_push(tmp(d->t), &d->loops, s);
        rx_push(tmp(d->t), &d->inner, s->u.loop.var);
    } else if (s->kind == RX_S_LET) {
        rx_push(tmp(d->t), &d->inner, s->u.let.var);
    } else if (s->kind == RX_S_ALLOC) {
        rx_push(tmp(d->t), &d->mine, s->u.alloc.buf);
    }
}

static bool is_mine(const deps *d, const relax_buffer *b)
{
    for (uint32_t i = 0; i < d->mine.n; i++)
        if (d->mine.at[i] == b)
            return true;
    return false;
}

static bool uses_any(relax_context *ctx, rx_ex e, const rx_exvec *syms)
{
    for (uint32_t i = 0; i < syms->n; i++)
        if (rx_uses(ctx, e, syms->at[i]))
            return true;
    return false;
}

/* e with v + 1 for v, less e: its slope along v when it is linear; NULL when it depends on loads or is not */
static rx_ex slope(rx_tb *t, rx_ex e, rx_ex v)
{
    if (e->flags & RX_EX_DATA)
        return NULL;
    rx_map m;
    rx_map_init(&m, tmp(t));
    rx_map_put(&m, RX_KEY(v), (void *)rx_addi(t->ctx, v, 1));
    rx_ex s = rx_sub(t->ctx, rx_subst(t->ctx, e, &m), e);
    return rx_uses(t->ctx, s, v) ? NULL : s;
}

/* All accesses of b on this axis at c * v + r, c a constant other than 0, r fixed during the loop? */
static bool separates(deps *d, const relax_buffer *b, uint32_t axis, rx_ex v)
{
    relax_context *ctx = d->t->ctx;
    rx_ex rest = NULL;
    int64_t c = 0, k;
    for (uint32_t i = 0; i < d->at.n; i++) {
        if (d->at.at[i].buf != b)
            continue;
        rx_ex s = slope(d->t, d->at.at[i].index[axis], v);
        if (!s || !rx_is_int(s, &k) || k == 0 || (rest && k != c))
            return false;
        rx_ex r = rx_sub(ctx, d->at.at[i].index[axis], rx_muli(ctx, v, k));
        if ((rest && r != rest) || rx_uses(ctx, r, v) || uses_any(ctx, r, &d->inner))
            return false;
        rest = r;
        c = k;
    }
    return rest != NULL;
}

/* All accesses at one index c * v + r with 0 <= r - (r at the start of the inner loops) < c? */
static bool windows(deps *d, const rx_facts *f, const relax_buffer *b, uint32_t axis, rx_ex v)
{
    relax_context *ctx = d->t->ctx;
    rx_ex e = NULL;
    for (uint32_t i = 0; i < d->at.n; i++) {
        if (d->at.at[i].buf != b)
            continue;
        if (e && d->at.at[i].index[axis] != e)
            return false;
        e = d->at.at[i].index[axis];
    }
    rx_ex c = e ? slope(d->t, e, v) : NULL;
    if (!c || uses_any(ctx, c, &d->inner))
        return false;
    rx_facts *facts = rx_facts_new(ctx, tmp(d->t), f);
    rx_map start;
    rx_map_init(&start, tmp(d->t));
    for (uint32_t i = 0; i < d->loops.n; i++) {
        const rx_stmt *l = d->loops.at[i];
        if ((l->u.loop.start->flags | l->u.loop.extent->flags) & RX_EX_DATA)
            continue;
        rx_map_put(&start, RX_KEY(l->u.loop.var), (void *)l->u.loop.start);
        rx_facts_add(facts, rx_le(ctx, l->u.loop.start, l->u.loop.var));
        rx_facts_add(facts, rx_lt(ctx, l->u.loop.var, rx_add(ctx, l->u.loop.start, l->u.loop.extent)));
    }
    rx_ex r = rx_sub(ctx, e, rx_mul(ctx, c, v)), base = rx_subst(ctx, r, &start);
    if (rx_uses(ctx, r, v) || uses_any(ctx, base, &d->inner))
        return false;
    rx_ex off = rx_sub(ctx, r, base);
    return rx_prove_le(ctx, facts, rx_int(ctx, 0), off) == RX_TRUE &&
           rx_prove(ctx, facts, rx_lt(ctx, off, c), NULL) == RX_TRUE;
}

static bool disjoint(deps *d, const rx_facts *f, const relax_buffer *b, rx_ex v)
{
    for (uint32_t i = 0; i < b->ndim; i++)
        if (separates(d, b, i, v))
            return true;
    for (uint32_t i = 0; i < b->ndim; i++)
        if (windows(d, f, b, i, v))
            return true;
    return false;
}

bool rx_loop_independent(rx_tb *t, const rx_facts *f, const rx_stmt *loop)
{
    deps d = {.t = t};
    if (loop->u.loop.reduce)
        return false;
    rx_stmt_visit(loop->u.loop.body, note_stmt, &d);
    for (uint32_t i = 0; i < d.at.n; i++)
        if (d.at.at[i].store && !is_mine(&d, d.at.at[i].buf) && !disjoint(&d, f, d.at.at[i].buf, loop->u.loop.var))
            return false;
    return true;
}

/* --- moves --- */

typedef struct mover {
    deps d;
    rx_ex v;
    rx_exvec varying;                  /* v and the lets that depend on it */
    rx_moves *m;
    rx_map seen;
} mover;

static void mine_load(void *arg, rx_ex e)
{
    void **p = arg;
    if (e->op == RX_EX_LOAD && is_mine(p[0], e->u.buf))
        *(bool *)p[1] = true;
}

static bool loads_mine(mover *w, rx_ex e)
{
    bool hit = false;
    void *arg[2] = {&w->d, &hit};
    if (e->flags & RX_EX_DATA)
        rx_visit(w->d.t->ctx, e, mine_load, arg);
    return hit;
}

/* 0 uniform, 1 unit, 2 other */
static int move(mover *w, const relax_buffer *b, const rx_ex *index)
{
    relax_context *ctx = w->d.t->ctx;
    bool varies = false;
    for (uint32_t i = 0; i < b->ndim; i++) {
        for (uint32_t k = 1; k < w->varying.n; k++)
            if (rx_uses(ctx, index[i], w->varying.at[k]))
                return 2;
        if (loads_mine(w, index[i]))
            return 2;
        varies |= rx_uses(ctx, index[i], w->v);
    }
    if (!varies)
        return 0;
    for (uint32_t i = 0; i < b->ndim; i++)
        if (index[i]->flags & RX_EX_DATA)
            return 2;
    rx_ex s = slope(w->d.t, rx_buffer_offset(ctx, b, (rx_ex *)index), w->v);
    return !s ? 2 : rx_is_value(s, 0) ? 0 : rx_is_value(s, 1) ? 1 : 2;
}

static void count_node(void *arg, rx_ex e)
{
    mover *w = arg;
    rx_moves *m = w->m;
    if (rx_map_has(&w->seen, RX_KEY(e)) || !(e->flags & RX_EX_DATA))
        return;
    rx_map_put(&w->seen, RX_KEY(e), w);
    m->work++;
    m->bytes = RX_MAX(m->bytes, (uint32_t)rx_dtype_bytes(e->dtype));
    m->calls |= e->op == RX_EX_CALL && e->intrin <= RX_IN_ERF;
    if (e->op != RX_EX_LOAD || is_mine(&w->d, e->u.buf))
        return;
    int k = move(w, e->u.buf, e->a);
    *(k == 0 ? &m->uniform : k == 1 ? &m->unit : &m->other) += 1;
}

static void count_expr(void *arg, rx_ex e)
{
    mover *w = arg;
    if (e->flags & RX_EX_DATA)
        rx_visit(w->d.t->ctx, e, count_node, w);
}

static bool varies(mover *w, rx_ex e)
{
    return uses_any(w->d.t->ctx, e, &w->varying) || loads_mine(w, e);
}

static void count_stmt(void *arg, rx_stmt *s)
{
    mover *w = arg;
    rx_moves *m = w->m;
    if (s->kind == RX_S_ALLOC && s->u.alloc.buf->scope != RX_MEM_LOCAL)
        m->plain = false;
    if (s->kind == RX_S_IF || s->kind == RX_S_ASSERT || s->kind == RX_S_PREFETCH)
        m->plain = false;
    if (s->kind == RX_S_FOR) {
        m->loops = true;
        m->spatial |= !s->u.loop.reduce;
        m->plain &= s->u.loop.how == RX_SERIAL && !varies(w, s->u.loop.start) && !varies(w, s->u.loop.extent);
    }
    if (s->kind == RX_S_LET && varies(w, s->u.let.value))
        rx_push(tmp(w->d.t), &w->varying, s->u.let.var);
    rx_stmt_exprs(s, count_expr, w);
    if (s->kind != RX_S_STORE || is_mine(&w->d, s->u.store.buf))
        return;
    int k = move(w, s->u.store.buf, s->u.store.index);
    *(k == 0 ? &m->store_uniform : k == 1 ? &m->store_unit : &m->store_other) += 1;
    m->bytes = RX_MAX(m->bytes, (uint32_t)rx_dtype_bytes(s->u.store.buf->dtype));
}

void rx_moves_of(rx_tb *t, rx_stmt *s, rx_ex v, rx_moves *m)
{
    mover w = {.d = {.t = t}, .v = v, .m = m};
    *m = (rx_moves){.plain = true, .bytes = 1};
    rx_map_init(&w.seen, tmp(t));
    rx_push(tmp(t), &w.varying, v);
    rx_stmt_visit(s, note_stmt, &w.d);
    rx_stmt_visit(s, count_stmt, &w);
}

/* --- small questions --- */

typedef struct store_query { const relax_buffer *b; bool hit; } store_query;

static void find_store(void *arg, rx_stmt *s)
{
    store_query *q = arg;
    q->hit |= s->kind == RX_S_STORE && s->u.store.buf == q->b;
}

bool rx_stmt_stores(const rx_stmt *s, const relax_buffer *b)
{
    store_query q = {b, false};
    rx_stmt_visit((rx_stmt *)s, find_store, &q);
    return q.hit;
}

static void find_load(void *arg, rx_ex e)
{
    store_query *q = arg;
    q->hit |= e->op == RX_EX_LOAD && e->u.buf == q->b;
}

bool rx_loads_from(relax_context *ctx, rx_ex e, const relax_buffer *b)
{
    store_query q = {b, false};
    if (e->flags & RX_EX_DATA)
        rx_visit(ctx, e, find_load, &q);
    return q.hit;
}

static bool is_self(const rx_stmt *s, rx_ex e)
{
    if (e->op != RX_EX_LOAD || e->u.buf != s->u.store.buf)
        return false;
    for (uint32_t i = 0; i < e->nargs; i++)
        if (e->a[i] != s->u.store.index[i])
            return false;
    return true;
}

bool rx_update_of(relax_context *ctx, const rx_stmt *s, rx_eop *op, rx_ex *e)
{
    rx_ex v = s->u.store.value;
    if (v->nargs != 2 || (v->op != RX_EX_ADD && v->op != RX_EX_MUL && v->op != RX_EX_MIN && v->op != RX_EX_MAX))
        return false;
    int self = is_self(s, v->a[0]) ? 0 : is_self(s, v->a[1]) ? 1 : -1;
    if (self < 0 || rx_loads_from(ctx, v->a[1 - self], s->u.store.buf))
        return false;
    *op = v->op;
    *e = v->a[1 - self];
    return true;
}
