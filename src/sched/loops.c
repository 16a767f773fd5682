/* loops.c: the loop transformations by name of the loop.
 *
 * Each finds the loop whose variable is given, checks what has to hold, and rewrites the body of the prim func along
 * the path to it. A range of zero or negative length stays empty: halves of a range are taken from max(0, extent)
 * unless it is proved. */
#include "sched/impl.h"

rx_stmt *rx_skip(rx_tb *t)
{
    return rx_seq(t, NULL, 0);
}

rx_stmt *rx_subst_one(rx_tb *t, rx_stmt *s, rx_ex sym, rx_ex value)
{
    rx_map m;
    rx_map_init(&m, rx_scratch(&t->ctx->heap));
    rx_map_put(&m, RX_KEY(sym), (void *)value);
    return rx_stmt_copy(t, s, &m, NULL);
}

rx_ex rx_nonneg_extent(rx_tb *t, const rx_facts *f, rx_ex extent)
{
    rx_ex zero = rx_int(t->ctx, 0);
    if (!(extent->flags & RX_EX_DATA) && rx_prove_le(t->ctx, f, zero, extent) == RX_TRUE)
        return extent;
    return rx_max(t->ctx, extent, zero);
}

rx_parts rx_split_range(rx_tb *t, rx_ex start, rx_ex extent, int64_t factor)
{
    rx_parts p;
    p.count = rx_divi(t->ctx, extent, factor);
    p.rest = rx_modi(t->ctx, extent, factor);
    p.rest_start = rx_add(t->ctx, start, rx_muli(t->ctx, p.count, factor));
    return p;
}

/* --- finding and replacing --- */

typedef struct finder { rx_ex var; rx_stmt *loop; uint32_t found; } finder;

static void find_loop(void *arg, rx_stmt *s)
{
    finder *f = arg;
    if (s->kind != RX_S_FOR || s->u.loop.var != f->var)
        return;
    f->loop = s;
    f->found++;
}

static rx_stmt *loop_of(const rx_prim *p, rx_ex var)
{
    finder f = {.var = var};
    rx_stmt_visit(p->body, find_loop, &f);
    return f.found == 1 ? f.loop : NULL;
}

typedef struct replacer { const rx_stmt *old; rx_stmt *by; } replacer;

static rx_stmt *replace_pair(void *arg, rx_stmt *old, rx_stmt *now)
{
    replacer *r = arg;
    return old == r->old ? r->by : now;
}

static void replace(rx_tb *t, rx_prim *p, const rx_stmt *old, rx_stmt *by)
{
    replacer r = {old, by};
    rx_stmt_map m = {.arg = &r, .pair = replace_pair};
    p->body = rx_stmt_rewrite(t, p->body, &m);
}

static rx_stmt *retype(rx_tb *t, const rx_stmt *l, rx_loop how)
{
    return rx_for(t, l->u.loop.var, l->u.loop.start, l->u.loop.extent, how, l->u.loop.reduce, l->u.loop.init,
                  l->u.loop.body);
}

/* --- the transformations --- */

bool rx_sched_split(rx_tb *t, rx_prim *p, rx_ex var, int64_t factor, rx_tail tail, rx_ex *outer, rx_ex *inner)
{
    relax_context *ctx = t->ctx;
    rx_stmt *l = loop_of(p, var), *body;
    if (!l || factor < 1 || l->u.loop.how == RX_VECTOR)
        return false;
    const char *name = rx_sym_of(var)->name;
    rx_ex zero = rx_int(ctx, 0), o = rx_loopvar(t, rx_strf(ctx, "%so", name)),
          i = rx_loopvar(t, rx_strf(ctx, "%si", name));
    rx_ex extent = rx_nonneg_extent(t, p->facts, l->u.loop.extent);
    rx_ex at = rx_add(ctx, rx_add(ctx, l->u.loop.start, rx_muli(ctx, o, factor)), i);
    rx_parts r = rx_split_range(t, l->u.loop.start, extent, factor);
    rx_ex count = tail == RX_TAIL_LOOP ? r.count : rx_divi(ctx, rx_addi(ctx, extent, factor - 1), factor);
    bool reduce = l->u.loop.reduce;
    body = rx_subst_one(t, l->u.loop.body, var, at);
    if (tail == RX_TAIL_GUARD && !rx_is_value(r.rest, 0))
        body = rx_if(t, rx_lt(ctx, at, rx_add(ctx, l->u.loop.start, extent)), body, NULL);
    body = rx_for(t, i, zero, rx_int(ctx, factor), RX_SERIAL, reduce, NULL, body);
    body = rx_for(t, o, zero, count, l->u.loop.how, reduce, l->u.loop.init, body);
    if (tail == RX_TAIL_LOOP && !rx_is_value(r.rest, 0)) {
        rx_ex v = rx_loopvar(t, name);
        rx_stmt *both[2] = {body, rx_for(t, v, r.rest_start, r.rest, l->u.loop.how, reduce, NULL,
                                         rx_subst_one(t, l->u.loop.body, var, v))};
        body = rx_seq(t, both, 2);
    }
    replace(t, p, l, body);
    *outer = o;
    *inner = i;
    return true;
}

/* the one loop that is the body of l, if its range does not depend on l */
static rx_stmt *perfect(relax_context *ctx, const rx_stmt *l)
{
    rx_stmt *i = l ? l->u.loop.body : NULL;
    if (!i || i->kind != RX_S_FOR || i->u.loop.init || rx_uses(ctx, i->u.loop.start, l->u.loop.var) ||
        rx_uses(ctx, i->u.loop.extent, l->u.loop.var))
        return NULL;
    return ((i->u.loop.start->flags | i->u.loop.extent->flags) & RX_EX_DATA) ? NULL : i;
}

bool rx_sched_fuse(rx_tb *t, rx_prim *p, rx_ex outer, rx_ex *fused)
{
    relax_context *ctx = t->ctx;
    rx_stmt *l = loop_of(p, outer), *i = perfect(ctx, l);
    if (!i || l->u.loop.reduce != i->u.loop.reduce || i->u.loop.how != RX_SERIAL ||
        (l->u.loop.how != RX_SERIAL && l->u.loop.how != RX_PARALLEL) ||
        (l->u.loop.how == RX_PARALLEL && !rx_loop_independent(t, p->facts, i)))
        return false;
    rx_ex n = rx_nonneg_extent(t, p->facts, l->u.loop.extent), m = rx_nonneg_extent(t, p->facts, i->u.loop.extent);
    rx_ex f = rx_loopvar(t, rx_strf(ctx, "%s_%s", rx_sym_of(outer)->name, rx_sym_of(i->u.loop.var)->name));
    rx_ex a = rx_add(ctx, l->u.loop.start, rx_div(ctx, f, m)), b = rx_add(ctx, i->u.loop.start, rx_mod(ctx, f, m));
    rx_map map;
    rx_map_init(&map, rx_scratch(&ctx->heap));
    rx_map_put(&map, RX_KEY(outer), (void *)a);
    rx_map_put(&map, RX_KEY(i->u.loop.var), (void *)b);
    rx_stmt *body = rx_stmt_copy(t, i->u.loop.body, &map, NULL);
    replace(t, p, l,
            rx_for(t, f, rx_int(ctx, 0), rx_mul(ctx, n, m), l->u.loop.how, l->u.loop.reduce, l->u.loop.init, body));
    *fused = f;
    return true;
}

/* Independent iterations of the outer loop may run in any order among all others. Otherwise those of the inner loop
 * must be independent whatever the outer variable is: it counts as changing inside. */
static bool may_exchange(rx_tb *t, const rx_prim *p, const rx_stmt *l, const rx_stmt *i, const rx_stmt *swapped)
{
    if (l->u.loop.init || l->u.loop.how != RX_SERIAL || i->u.loop.how != RX_SERIAL)
        return false;
    return rx_loop_independent(t, p->facts, l) || rx_loop_independent(t, p->facts, swapped);
}

bool rx_sched_reorder(rx_tb *t, rx_prim *p, rx_ex outer)
{
    rx_stmt *l = loop_of(p, outer), *i = perfect(t->ctx, l);
    if (!i)
        return false;
    rx_stmt *body =
        rx_for(t, outer, l->u.loop.start, l->u.loop.extent, RX_SERIAL, l->u.loop.reduce, NULL, i->u.loop.body);
    body = rx_for(t, i->u.loop.var, i->u.loop.start, i->u.loop.extent, RX_SERIAL, i->u.loop.reduce, NULL, body);
    if (!may_exchange(t, p, l, i, body))
        return false;
    replace(t, p, l, body);
    return true;
}

static bool at_top(const rx_stmt *s, const rx_stmt *l)
{
    if (s == l)
        return true;
    if (s->kind == RX_S_ALLOC)
        return s->u.alloc.buf->scope == RX_MEM_GLOBAL && at_top(s->u.alloc.body, l);
    for (uint32_t i = 0; s->kind == RX_S_SEQ && i < s->u.seq.n; i++)
        if (at_top(s->u.seq.at[i], l))
            return true;
    return false;
}

bool rx_sched_parallel(rx_tb *t, rx_prim *p, rx_ex var)
{
    rx_stmt *l = loop_of(p, var);
    if (!l || l->u.loop.how != RX_SERIAL || !at_top(p->body, l) || !rx_loop_independent(t, p->facts, l))
        return false;
    replace(t, p, l, retype(t, l, RX_PARALLEL));
    return true;
}

static void has_lanes(void *arg, rx_stmt *s)
{
    *(bool *)arg |= (s->kind == RX_S_FOR && (s->u.loop.how == RX_VECTOR || s->u.loop.how == RX_PARALLEL));
}

bool rx_sched_vectorize(rx_tb *t, rx_prim *p, rx_ex var)
{
    rx_stmt *l = loop_of(p, var);
    int64_t n;
    bool nested = false;
    if (!l || l->u.loop.how != RX_SERIAL || !rx_is_int(l->u.loop.extent, &n) || n < 2 || n > 64)
        return false;
    rx_stmt_visit(l->u.loop.body, has_lanes, &nested);
    if (nested || (!l->u.loop.reduce && !rx_loop_independent(t, p->facts, l)))
        return false;
    replace(t, p, l, retype(t, l, RX_VECTOR));
    return true;
}

bool rx_sched_unroll(rx_tb *t, rx_prim *p, rx_ex var)
{
    rx_stmt *l = loop_of(p, var);
    int64_t n;
    if (!l || l->u.loop.how != RX_SERIAL || !rx_is_int(l->u.loop.extent, &n) || n < 0 || n > 64)
        return false;
    replace(t, p, l, retype(t, l, RX_UNROLL));
    return true;
}
