/* jam.c: runs several iterations of a loop at once, statement by statement (unroll-and-jam).
 *
 * Input: the body of a loop over v with independent iterations. Output: the body for factor iterations, v = base + u *
 * stride. Leaves (stores, checks, branches that differ between iterations, loops that are vectors or unrolled already)
 * run for all u in a small loop of their own; serial loops around leaves stay where they are, so their bounds must not
 * depend on v. A local buffer allocated inside exists once for each u: a new leading dim. A let that depends on v is
 * written out at its uses. Register tiles come from this: jam by lanes (VECTOR), then by rows and columns (UNROLL),
 * around one reduce loop. */
#include "sched/impl.h"

#define GROWN_BYTES (16 * 1024)        /* largest local buffer */

typedef struct jam {
    rx_tb *t;
    rx_ex v, base;
    int64_t stride, factor;
    rx_loop how;
    rx_stmt *whole;                    /* the body, to see what it stores */
    rx_map grown;                      /* local buffer -> buffer with the leading dim */
    rx_map lets;                       /* lets that depend on v -> their values */
    rx_ex u;                           /* of the leaf being built */
    rx_map at_u;                       /* v -> base + u * stride */
    bool failed;
} jam;

typedef struct query { jam *j; bool hit; } query;

static void find_varying(void *arg, rx_ex e)
{
    query *q = arg;
    q->hit |= e == q->j->v || rx_map_has(&q->j->lets, RX_KEY(e)) ||
              (e->op == RX_EX_LOAD && rx_map_has(&q->j->grown, RX_KEY(e->u.buf)));
}

/* may the value differ between the iterations? */
static bool varies(jam *j, rx_ex e)
{
    query q = {j, false};
    rx_visit(j->t->ctx, e, find_varying, &q);
    return q.hit;
}

static void varies_expr(void *arg, rx_ex e)
{
    query *q = arg;
    q->hit |= varies(q->j, e);
}

/* --- leaves --- */

static rx_ex leaf_node(void *arg, rx_ex e)
{
    jam *j = arg;
    rx_ex at = rx_map_get(&j->at_u, RX_KEY(e)), index[17];
    if (at)
        return at;
    relax_buffer *b = e->op == RX_EX_LOAD ? rx_map_get(&j->grown, RX_KEY(e->u.buf)) : NULL;
    if (!b)
        return e;
    index[0] = j->u;
    for (uint32_t i = 0; i < e->nargs; i++)
        index[i + 1] = e->a[i];
    return rx_load(j->t->ctx, b, b->dtype, index, e->nargs + 1);
}

static rx_ex leaf_expr(void *arg, rx_ex e)
{
    jam *j = arg;
    if (j->lets.n)
        e = rx_subst(j->t->ctx, e, &j->lets);
    return rx_rewrite(j->t->ctx, e, leaf_node, j);
}

static rx_stmt *leaf_stmt(void *arg, rx_stmt *s)
{
    jam *j = arg;
    relax_buffer *b = s->kind == RX_S_STORE ? rx_map_get(&j->grown, RX_KEY(s->u.store.buf)) : NULL;
    rx_ex index[17];
    if (!b)
        return s;
    index[0] = j->u;
    for (uint32_t i = 0; i + 1 < b->ndim; i++)
        index[i + 1] = s->u.store.index[i];
    return rx_store(j->t, b, index, b->ndim, s->u.store.value);
}

static rx_stmt *leaf(jam *j, rx_stmt *s)
{
    rx_tb *t = j->t;
    rx_stmt_map m = {.arg = j, .stmt = leaf_stmt, .expr = leaf_expr};
    j->u = rx_loopvar(t, j->how == RX_VECTOR ? "l" : "u");
    rx_map_init(&j->at_u, rx_scratch(&t->ctx->heap));
    rx_map_put(&j->at_u, RX_KEY(j->v), (void *)rx_add(t->ctx, j->base, rx_muli(t->ctx, j->u, j->stride)));
    rx_stmt *body = rx_stmt_rewrite(t, s, &m);
    return rx_for(t, j->u, rx_int(t->ctx, 0), rx_int(t->ctx, j->factor), j->how, false, NULL, body);
}

/* --- the walk --- */

static rx_stmt *walk(jam *j, rx_stmt *s);

static rx_stmt *walk_seq(jam *j, rx_stmt *s)
{
    rx_stmt **at = RX_NEWN(j->t->a, rx_stmt *, s->u.seq.n);
    for (uint32_t i = 0; i < s->u.seq.n; i++)
        at[i] = walk(j, s->u.seq.at[i]);
    return rx_seq(j->t, at, s->u.seq.n);
}

static rx_stmt *walk_loop(jam *j, rx_stmt *s)
{
    if (s->u.loop.how != RX_SERIAL)
        return leaf(j, s);
    if (varies(j, s->u.loop.start) || varies(j, s->u.loop.extent))
        j->failed = true;
    rx_stmt *init = s->u.loop.init ? walk(j, s->u.loop.init) : NULL;
    return rx_for(j->t, s->u.loop.var, s->u.loop.start, s->u.loop.extent, RX_SERIAL, s->u.loop.reduce, init,
                  walk(j, s->u.loop.body));
}

static rx_stmt *walk_alloc(jam *j, rx_stmt *s)
{
    relax_buffer *b = s->u.alloc.buf, *g = RX_NEW(j->t->a, relax_buffer);
    int64_t bytes = (int64_t)rx_dtype_bytes(b->dtype) * j->factor, d;
    bool fits = b->scope == RX_MEM_LOCAL && !b->strides && b->ndim < 16;
    for (uint32_t i = 0; i < b->ndim && fits; i++)
        fits = rx_is_int(b->shape[i], &d) && rx_mul_ok(bytes, d, &bytes) && bytes <= GROWN_BYTES;
    if (!fits) {
        j->failed = true;
        return s;
    }
    *g = *b;
    g->ndim = b->ndim + 1;
    g->shape = RX_NEWN(j->t->a, rx_ex, g->ndim);
    g->shape[0] = rx_int(j->t->ctx, j->factor);
    for (uint32_t i = 0; i < b->ndim; i++)
        g->shape[i + 1] = b->shape[i];
    rx_map_put(&j->grown, RX_KEY(b), g);
    return rx_alloc_s(j->t, g, walk(j, s->u.alloc.body));
}

typedef struct load_query { jam *j; bool bad; } load_query;

static void find_unsafe(void *arg, rx_ex e)
{
    load_query *q = arg;
    if (e->op == RX_EX_LOAD)
        q->bad |= rx_map_has(&q->j->grown, RX_KEY(e->u.buf)) || rx_stmt_stores(q->j->whole, e->u.buf);
}

static rx_stmt *walk_let(jam *j, rx_stmt *s)
{
    rx_ex value = s->u.let.value;
    load_query q = {j, false};
    if (!varies(j, value))
        return rx_let(j->t, s->u.let.var, value, walk(j, s->u.let.body));
    rx_visit(j->t->ctx, value, find_unsafe, &q);         /* its uses would read it later */
    j->failed |= q.bad;
    if (j->lets.n)
        value = rx_subst(j->t->ctx, value, &j->lets);
    rx_map_put(&j->lets, RX_KEY(s->u.let.var), (void *)value);
    return walk(j, s->u.let.body);
}

static rx_stmt *walk(jam *j, rx_stmt *s)
{
    switch (s->kind) {
    case RX_S_SEQ: return walk_seq(j, s);
    case RX_S_FOR: return walk_loop(j, s);
    case RX_S_ALLOC: return walk_alloc(j, s);
    case RX_S_LET: return walk_let(j, s);
    case RX_S_STORE: return leaf(j, s);
    case RX_S_IF:
        if (varies(j, s->u.branch.cond))
            return leaf(j, s);
        return rx_if(j->t, s->u.branch.cond, walk(j, s->u.branch.then),
                     s->u.branch.other ? walk(j, s->u.branch.other) : NULL);
    case RX_S_ASSERT: return varies(j, s->u.check.cond) ? leaf(j, s) : s;
    case RX_S_PREFETCH: {
        query q = {j, false};
        rx_stmt_exprs(s, varies_expr, &q);
        return !q.hit ? s : j->how == RX_VECTOR ? rx_skip(j->t) : leaf(j, s);
    }
    }
    return s;
}

rx_stmt *rx_jam(rx_tb *t, rx_stmt *body, rx_ex v, rx_ex base, int64_t stride, int64_t factor, rx_loop how)
{
    jam j = {.t = t, .v = v, .base = base, .stride = stride, .factor = factor, .how = how, .whole = body};
    rx_map_init(&j.grown, rx_scratch(&t->ctx->heap));
    rx_map_init(&j.lets, rx_scratch(&t->ctx->heap));
    rx_stmt *r = walk(&j, body);
    return j.failed ? NULL : r;
}
