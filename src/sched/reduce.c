/* reduce.c: reductions: private accumulators, partial accumulators in lanes, fused multiply-add.
 *
 * rx_privatize is bit-preserving: a reduce loop that updates one element of a buffer works on a local scalar instead.
 * rx_rfactor re-associates: lane l of part u takes the elements start + (o * unroll + u) * lanes + l and the partial
 * results meet at the end, before the rest of the range is added one by one. It is exact for integers, which wrap.
 * Neutral elements: 0, 1, and the extremes of the dtype for min and max (NaN still wins). rx_use_fma rounds once where
 * the program rounds twice. */
#include <math.h>
#include "sched/impl.h"

/* --- private accumulators --- */

typedef struct accs { rx_tb *t; rx_exvec inner; RX_VEC(rx_stmt *) stores; } accs;

static void gather(void *arg, rx_stmt *s)
{
    accs *a = arg;
    rx_arena *tmp = rx_scratch(&a->t->ctx->heap);
    if (s->kind == RX_S_FOR)
        rx_push(tmp, &a->inner, s->u.loop.var);
    else if (s->kind == RX_S_LET)
        rx_push(tmp, &a->inner, s->u.let.var);
    else if (s->kind == RX_S_STORE)
        rx_push(tmp, &a->stores, s);
}

typedef struct one_index { const relax_buffer *b; const rx_ex *index; bool other; } one_index;

static void other_load(void *arg, rx_ex e)
{
    one_index *o = arg;
    if (e->op != RX_EX_LOAD || e->u.buf != o->b)
        return;
    for (uint32_t i = 0; i < o->b->ndim; i++)
        o->other |= e->a[i] != o->index[i];
}

typedef struct load_walk { rx_tb *t; one_index o; } load_walk;

static void other_expr(void *arg, rx_ex e)
{
    load_walk *w = arg;
    if (e->flags & RX_EX_DATA)
        rx_visit(w->t->ctx, e, other_load, &w->o);
}

static void other_stmt(void *arg, rx_stmt *s)
{
    load_walk *w = arg;
    rx_stmt_exprs(s, other_expr, w);
    if (s->kind != RX_S_STORE || s->u.store.buf != w->o.b)
        return;
    for (uint32_t i = 0; i < w->o.b->ndim; i++)
        w->o.other |= s->u.store.index[i] != w->o.index[i];
}

/* is the one element that `store` names the only one of its buffer that the loop touches, and does it stay the same? */
static bool one_element(accs *a, rx_stmt *loop, const rx_stmt *store)
{
    relax_buffer *b = store->u.store.buf;
    load_walk w = {a->t, {b, store->u.store.index, false}};
    if (b->scope == RX_MEM_LOCAL && b->ndim == 0)
        return false;                  /* is one already */
    for (uint32_t i = 0; i < b->ndim; i++) {
        if (store->u.store.index[i]->flags & RX_EX_DATA)
            return false;
        for (uint32_t k = 0; k < a->inner.n; k++)
            if (rx_uses(a->t->ctx, store->u.store.index[i], a->inner.at[k]))
                return false;
    }
    rx_stmt_visit(loop, other_stmt, &w);
    return !w.o.other;
}

typedef struct swap { rx_tb *t; relax_buffer *from, *to; } swap;

static rx_ex swap_node(void *arg, rx_ex e)
{
    swap *s = arg;
    return e->op == RX_EX_LOAD && e->u.buf == s->from ? rx_load(s->t->ctx, s->to, s->to->dtype, NULL, 0) : e;
}

static rx_ex swap_expr(void *arg, rx_ex e)
{
    return e->flags & RX_EX_DATA ? rx_rewrite(((swap *)arg)->t->ctx, e, swap_node, arg) : e;
}

static rx_stmt *swap_stmt(void *arg, rx_stmt *x)
{
    swap *s = arg;
    if (x->kind != RX_S_STORE || x->u.store.buf != s->from)
        return x;
    return rx_store(s->t, s->to, NULL, 0, x->u.store.value);
}

static bool inits(const rx_stmt *loop, const relax_buffer *b)
{
    return loop->u.loop.init && rx_stmt_stores(loop->u.loop.init, b);
}

static rx_stmt *privatize_one(rx_tb *t, rx_stmt *loop, const rx_stmt *store)
{
    relax_buffer *b = store->u.store.buf, *acc = rx_buffer(t, "acc", b->dtype, RX_MEM_LOCAL, NULL, 0);
    swap s = {t, b, acc};
    rx_stmt_map m = {.arg = &s, .stmt = swap_stmt, .expr = swap_expr};
    rx_stmt *at[3];
    uint32_t n = 0;
    if (!inits(loop, b))
        at[n++] = rx_store(t, acc, NULL, 0, rx_at(t, b, store->u.store.index, b->ndim));
    at[n++] = rx_stmt_rewrite(t, loop, &m);
    at[n++] = rx_store(t, b, store->u.store.index, b->ndim, rx_at(t, acc, NULL, 0));
    return rx_alloc_s(t, acc, rx_seq(t, at, n));
}

/* the other accumulators of the loop, which lies below the allocs and sequences that privatize_one made */
static rx_stmt *privatize_more(rx_tb *t, rx_stmt *s)
{
    if (s->kind == RX_S_FOR)
        return rx_privatize(t, s);
    if (s->kind == RX_S_ALLOC)
        return rx_alloc_s(t, s->u.alloc.buf, privatize_more(t, s->u.alloc.body));
    if (s->kind != RX_S_SEQ)
        return s;
    rx_stmt **at = RX_NEWN(t->a, rx_stmt *, s->u.seq.n);
    for (uint32_t i = 0; i < s->u.seq.n; i++)
        at[i] = privatize_more(t, s->u.seq.at[i]);
    return rx_seq(t, at, s->u.seq.n);
}

rx_stmt *rx_privatize(rx_tb *t, rx_stmt *loop)
{
    accs a = {.t = t};
    rx_stmt_visit(loop, gather, &a);
    for (uint32_t i = 0; i < a.stores.n; i++)
        if (one_element(&a, loop, a.stores.at[i]))
            return privatize_more(t, privatize_one(t, loop, a.stores.at[i]));
    return loop;
}

/* --- partial accumulators --- */

static rx_ex neutral(relax_context *ctx, rx_eop op, relax_dtype t)
{
    int64_t lo, hi;
    if (op == RX_EX_ADD || op == RX_EX_MUL)
        return rx_const_int(ctx, t, op == RX_EX_MUL);
    if (rx_dtype_is_float(t))
        return rx_const_float(ctx, t, op == RX_EX_MAX ? -INFINITY : INFINITY);
    rx_dtype_int_range(t, &lo, &hi);
    if (t == RELAX_U64)
        hi = -1;
    return rx_const_int(ctx, t, op == RX_EX_MAX ? lo : hi);
}

#define MAX_ACCS 8
typedef struct parts {
    rx_tb *t;
    rx_stmt *loop;
    int64_t lanes, unroll;
    uint32_t n;
    const rx_stmt *store[MAX_ACCS];
    relax_buffer *part[MAX_ACCS];
    rx_eop op[MAX_ACCS];
    rx_ex e[MAX_ACCS];
} parts;

static bool take_store(parts *p, const rx_stmt *s, bool floats)
{
    relax_context *ctx = p->t->ctx;
    if (s->kind != RX_S_STORE || p->n == MAX_ACCS || s->u.store.buf->ndim || s->u.store.buf->scope != RX_MEM_LOCAL ||
        s->u.store.buf->dtype == RELAX_BOOL || s->u.store.buf->dtype >= RELAX_F8E4M3)
        return false;
    if ((!floats && rx_dtype_is_float(s->u.store.buf->dtype)) || !rx_update_of(ctx, s, &p->op[p->n], &p->e[p->n]))
        return false;
    for (uint32_t i = 0; i < p->n; i++)
        if (p->store[i]->u.store.buf == s->u.store.buf)
            return false;
    p->store[p->n++] = s;
    return true;
}

static bool take_body(parts *p, const rx_stmt *body, bool floats)
{
    uint32_t n = body->kind == RX_S_SEQ ? body->u.seq.n : 1;
    for (uint32_t i = 0; i < n; i++)
        if (!take_store(p, body->kind == RX_S_SEQ ? body->u.seq.at[i] : body, floats))
            return false;
    for (uint32_t i = 0; i < p->n; i++)            /* no value may look at an accumulator of the loop */
        for (uint32_t k = 0; k < p->n; k++)
            if (rx_loads_from(p->t->ctx, p->e[i], p->store[k]->u.store.buf))
                return false;
    return n > 0;
}

/* the small loops over u and l; value(u, l) of accumulator i is e with k substituted, or the neutral element */
static rx_stmt *over_parts(parts *p, uint32_t i, rx_ex outer, bool fill)
{
    rx_tb *t = p->t;
    relax_context *ctx = t->ctx;
    rx_ex u = rx_loopvar(t, "u"), l = rx_loopvar(t, "l"), index[2] = {u, l}, zero = rx_int(ctx, 0);
    uint32_t nd = p->unroll > 1 ? 2 : 1;
    rx_ex *at = nd == 2 ? index : index + 1, value;
    if (fill) {
        value = neutral(ctx, p->op[i], p->part[i]->dtype);
    } else {
        rx_ex k = rx_muli(ctx, outer, p->lanes * p->unroll);
        k = nd == 2 ? rx_add(ctx, k, rx_muli(ctx, u, p->lanes)) : k;
        k = rx_add(ctx, rx_add(ctx, p->loop->u.loop.start, k), l);
        rx_map m;
        rx_map_init(&m, rx_scratch(&ctx->heap));
        rx_map_put(&m, RX_KEY(p->loop->u.loop.var), (void *)k);
        value = rx_binary(ctx, p->op[i], rx_at(t, p->part[i], at, nd), rx_subst(ctx, p->e[i], &m));
    }
    rx_stmt *s = rx_store(t, p->part[i], at, nd, value);
    s = rx_for(t, l, zero, rx_int(ctx, p->lanes), RX_VECTOR, false, NULL, s);
    return nd == 2 ? rx_for(t, u, zero, rx_int(ctx, p->unroll), RX_UNROLL, false, NULL, s) : s;
}

/* the partial results into the accumulator: parts onto the first, then its lanes */
static rx_stmt *combine(parts *p, uint32_t i)
{
    rx_tb *t = p->t;
    relax_context *ctx = t->ctx;
    rx_ex l = rx_loopvar(t, "l"), zero = rx_int(ctx, 0), lanes = rx_int(ctx, p->lanes);
    relax_buffer *acc = p->store[i]->u.store.buf;
    rx_stmt *at[2];
    uint32_t n = 0;
    rx_ex first[2] = {zero, l};
    uint32_t nd = p->unroll > 1 ? 2 : 1;
    if (nd == 2) {
        rx_ex u = rx_loopvar(t, "u"), m = rx_loopvar(t, "l"), to[2] = {zero, m}, from[2] = {u, m};
        rx_ex sum = rx_binary(ctx, p->op[i], rx_at(t, p->part[i], to, 2), rx_at(t, p->part[i], from, 2));
        rx_stmt *s = rx_for(t, m, zero, lanes, RX_VECTOR, false, NULL, rx_store(t, p->part[i], to, 2, sum));
        at[n++] = rx_for(t, u, rx_int(ctx, 1), rx_int(ctx, p->unroll - 1), RX_UNROLL, false, NULL, s);
    }
    rx_ex v = rx_binary(ctx, p->op[i], rx_at(t, acc, NULL, 0), rx_at(t, p->part[i], nd == 2 ? first : first + 1, nd));
    at[n++] = rx_for(t, l, zero, lanes, RX_VECTOR, true, NULL, rx_store(t, acc, NULL, 0, v));
    return rx_seq(t, at, n);
}

static rx_stmt *in_parts(parts *p, rx_ex count)
{
    rx_tb *t = p->t;
    rx_ex shape[2] = {rx_int(t->ctx, p->unroll), rx_int(t->ctx, p->lanes)}, outer = rx_loopvar(t, "o");
    rx_stmt *fill[MAX_ACCS], *work[MAX_ACCS], *meet[MAX_ACCS];
    for (uint32_t i = 0; i < p->n; i++) {
        relax_buffer *acc = p->store[i]->u.store.buf;
        const char *name = rx_strf(t->ctx, "%s_part", acc->name);
        p->part[i] =
            rx_buffer(t, name, acc->dtype, RX_MEM_LOCAL, p->unroll > 1 ? shape : shape + 1, p->unroll > 1 ? 2 : 1);
        fill[i] = over_parts(p, i, NULL, true);
        work[i] = over_parts(p, i, outer, false);
        meet[i] = combine(p, i);
    }
    rx_stmt *main = rx_for(t, outer, rx_int(t->ctx, 0), count, RX_SERIAL, true, NULL, rx_seq(t, work, p->n));
    rx_stmt *all[3] = {rx_seq(t, fill, p->n), main, rx_seq(t, meet, p->n)};
    rx_stmt *s = rx_seq(t, all, 3);
    for (uint32_t i = 0; i < p->n; i++)
        s = rx_alloc_s(t, p->part[i], s);
    return s;
}

rx_stmt *rx_rfactor(rx_tb *t, rx_stmt *loop, int64_t lanes, int64_t unroll, bool floats)
{
    parts p = {.t = t, .loop = loop, .lanes = lanes, .unroll = unroll};
    int64_t extent;
    if (!take_body(&p, loop->u.loop.body, floats) || lanes < 2)
        return NULL;
    bool fixed = rx_is_int(loop->u.loop.extent, &extent);
    while (fixed && p.unroll > 1 && extent < lanes * p.unroll)
        p.unroll /= 2;
    if (fixed && extent < lanes)
        return NULL;
    rx_parts r = rx_split_range(t, loop->u.loop.start, loop->u.loop.extent, lanes * p.unroll);
    rx_stmt *at[3];
    uint32_t n = 0;
    if (loop->u.loop.init)
        at[n++] = loop->u.loop.init;
    at[n++] = in_parts(&p, r.count);
    if (!rx_is_value(r.rest, 0)) {
        rx_ex k = rx_loopvar(t, rx_sym_of(loop->u.loop.var)->name);
        rx_stmt *body = rx_subst_one(t, loop->u.loop.body, loop->u.loop.var, k);
        at[n++] = rx_for(t, k, r.rest_start, r.rest, RX_SERIAL, true, NULL, body);
    }
    return rx_seq(t, at, n);
}

/* --- fused multiply-add --- */

typedef struct fma_walk { rx_tb *t; bool used; } fma_walk;

static rx_stmt *fma_stmt(void *arg, rx_stmt *s)
{
    fma_walk *w = arg;
    rx_eop op;
    rx_ex e, args[3];
    if (s->kind != RX_S_STORE || (s->u.store.buf->dtype != RELAX_F32 && s->u.store.buf->dtype != RELAX_F64))
        return s;
    if (!rx_update_of(w->t->ctx, s, &op, &e) || op != RX_EX_ADD || e->op != RX_EX_MUL)
        return s;
    args[0] = e->a[0];
    args[1] = e->a[1];
    args[2] = rx_at(w->t, s->u.store.buf, s->u.store.index, s->u.store.buf->ndim);
    w->used = true;
    return rx_store(w->t, s->u.store.buf, s->u.store.index, s->u.store.buf->ndim,
                    rx_intrinsic(w->t->ctx, RX_IN_FMA, args, 3));
}

rx_stmt *rx_use_fma(rx_tb *t, rx_stmt *s, bool *used)
{
    fma_walk w = {t, false};
    rx_stmt_map m = {.arg = &w, .stmt = fma_stmt};
    s = rx_stmt_rewrite(t, s, &m);
    *used |= w.used;
    return s;
}
