/* copy.c: copies of prim funcs with fresh symbols and buffers; equality and hash up to the names of symbols and
 * buffers.
 *
 * Canonical sums are ordered by the names of their symbols, so two prim funcs that differ in names only can hold
 * differently ordered expressions. Equality therefore maps each expression of one side into the symbols and buffers of
 * the other, where the constructors order it anew and equal pointers mean equal; the hash combines commutative
 * operators without regard to order. Definitions pair up in one fixed order: parameters, symbols of their dims, extra
 * symbols, then loops, lets and ALLOCs. */
#include "tir/tir.h"

/* --- copies --- */

typedef struct fresh { rx_tb *t; rx_map exprs, buffers; } fresh;

static void fresh_sym(fresh *f, rx_ex sym)
{
    if (rx_map_has(&f->exprs, RX_KEY(sym)))
        return;
    rx_sym *old = rx_sym_of(sym);
    rx_ex e = rx_sym_new(f->t->ctx, old->name, sym->dtype);
    rx_sym *s = rx_sym_of(e);
    s->lo = old->lo;
    s->hi = old->hi;
    s->divisor = old->divisor;
    rx_map_put(&f->exprs, RX_KEY(sym), (void *)e);
}

static rx_ex *subst_dims(fresh *f, rx_ex *dims, uint32_t n)
{
    if (!dims)
        return NULL;
    rx_ex *r = RX_NEWN(f->t->a, rx_ex, n);
    for (uint32_t i = 0; i < n; i++)
        r[i] = rx_subst(f->t->ctx, dims[i], &f->exprs);
    return r;
}

static void fresh_buffer(fresh *f, relax_buffer *b)
{
    relax_buffer *r = rx_arena_dup(f->t->a, b, sizeof *b);
    r->shape = subst_dims(f, b->shape, b->ndim);
    r->strides = subst_dims(f, b->strides, b->ndim);
    rx_map_put(&f->buffers, RX_KEY(b), r);
}

static void fresh_defs(void *arg, rx_stmt *s)
{
    fresh *f = arg;
    if (s->kind == RX_S_FOR)
        fresh_sym(f, s->u.loop.var);
    else if (s->kind == RX_S_LET)
        fresh_sym(f, s->u.let.var);
    else if (s->kind == RX_S_ALLOC)
        fresh_buffer(f, s->u.alloc.buf);
}

static void fresh_init(fresh *f, rx_tb *t, const rx_map *exprs, const rx_map *buffers)
{
    f->t = t;
    rx_map_init(&f->exprs, t->a);
    rx_map_init(&f->buffers, t->a);
    for (uint32_t i = 0; exprs && i < exprs->n; i++)
        rx_map_put(&f->exprs, exprs->e[i].key, exprs->e[i].val);
    for (uint32_t i = 0; buffers && i < buffers->n; i++)
        rx_map_put(&f->buffers, buffers->e[i].key, buffers->e[i].val);
}

rx_stmt *rx_stmt_copy(rx_tb *t, rx_stmt *s, const rx_map *exprs, const rx_map *buffers)
{
    fresh f;
    fresh_init(&f, t, exprs, buffers);
    rx_stmt_visit(s, fresh_defs, &f);
    return rx_stmt_subst(t, s, &f.exprs, &f.buffers);
}

rx_prim *rx_prim_copy(rx_tb *t, const rx_prim *p, const char *name)
{
    fresh f;
    fresh_init(&f, t, NULL, NULL);
    rx_exvec syms = {0};
    rx_prim_symbols(t->ctx, t->a, p, &syms);
    for (uint32_t i = 0; i < syms.n; i++)
        fresh_sym(&f, syms.at[i]);
    relax_buffer **params = RX_NEWN(t->a, relax_buffer *, p->nparams);
    for (uint32_t i = 0; i < p->nparams; i++) {
        fresh_buffer(&f, p->params[i]);
        params[i] = rx_map_get(&f.buffers, RX_KEY(p->params[i]));
    }
    rx_stmt_visit(p->body, fresh_defs, &f);
    rx_ex *extra = subst_dims(&f, p->syms, p->nsyms);
    rx_prim *r =
        rx_prim_new(t, name, params, p->nparams, extra, p->nsyms, rx_stmt_subst(t, p->body, &f.exprs, &f.buffers));
    r->origin = p->origin;
    rx_prim_where(t, r, subst_dims(&f, p->where, p->nwhere), p->nwhere);
    return r;
}

/* --- equality --- */

typedef struct pairing { relax_context *ctx; rx_map exprs, buffers, taken; } pairing;

/* pair two definitions; a symbol of b may have one partner only */
static bool pair_sym(pairing *p, rx_ex a, rx_ex b)
{
    rx_ex known = rx_map_get(&p->exprs, RX_KEY(a));
    if (known || rx_map_has(&p->taken, RX_KEY(b)))
        return known == b;
    rx_sym *x = rx_sym_of(a), *y = rx_sym_of(b);
    if (a->dtype != b->dtype || x->lo != y->lo || x->hi != y->hi || x->divisor != y->divisor)
        return false;
    rx_map_put(&p->exprs, RX_KEY(a), (void *)b);
    rx_map_put(&p->taken, RX_KEY(b), (void *)a);
    return true;
}

static rx_ex pair_node(void *arg, rx_ex e)
{
    pairing *p = arg;
    rx_ex r = rx_map_get(&p->exprs, RX_KEY(e));
    if (r)
        return r;
    relax_buffer *b = e->op == RX_EX_LOAD ? rx_map_get(&p->buffers, RX_KEY(e->u.buf)) : NULL;
    return b ? rx_load(p->ctx, b, b->dtype, (rx_ex *)e->a, e->nargs) : e;
}

static bool same_expr(pairing *p, rx_ex a, rx_ex b)
{
    return a->dtype == b->dtype && rx_rewrite(p->ctx, a, pair_node, p) == b;
}

static bool same_exprs(pairing *p, rx_ex *a, rx_ex *b, uint32_t n)
{
    if (!a || !b)
        return a == b;
    for (uint32_t i = 0; i < n; i++)
        if (!same_expr(p, a[i], b[i]))
            return false;
    return true;
}

static bool pair_buffer(pairing *p, relax_buffer *a, relax_buffer *b)
{
    if (a->dtype != b->dtype || a->scope != b->scope || a->ndim != b->ndim || a->param != b->param)
        return false;
    if (a->ndim && (!same_exprs(p, a->shape, b->shape, a->ndim) || !same_exprs(p, a->strides, b->strides, a->ndim)))
        return false;
    rx_map_put(&p->buffers, RX_KEY(a), b);
    return true;
}

static bool same_buffer(pairing *p, relax_buffer *a, relax_buffer *b)
{
    return rx_map_get(&p->buffers, RX_KEY(a)) == b;
}

static bool same_stmt(pairing *p, const rx_stmt *a, const rx_stmt *b);

static bool same_loop(pairing *p, const rx_stmt *a, const rx_stmt *b)
{
    return a->u.loop.how == b->u.loop.how && a->u.loop.reduce == b->u.loop.reduce &&
           same_expr(p, a->u.loop.start, b->u.loop.start) && same_expr(p, a->u.loop.extent, b->u.loop.extent) &&
           pair_sym(p, a->u.loop.var, b->u.loop.var) && same_stmt(p, a->u.loop.init, b->u.loop.init) &&
           same_stmt(p, a->u.loop.body, b->u.loop.body);
}

static bool same_seq(pairing *p, const rx_stmt *a, const rx_stmt *b)
{
    if (a->u.seq.n != b->u.seq.n)
        return false;
    for (uint32_t i = 0; i < a->u.seq.n; i++)
        if (!same_stmt(p, a->u.seq.at[i], b->u.seq.at[i]))
            return false;
    return true;
}

static bool same_stmt(pairing *p, const rx_stmt *a, const rx_stmt *b)
{
    if (!a || !b)
        return a == b;
    if (a->kind != b->kind)
        return false;
    switch (a->kind) {
    case RX_S_SEQ: return same_seq(p, a, b);
    case RX_S_FOR: return same_loop(p, a, b);
    case RX_S_STORE:
        return same_buffer(p, a->u.store.buf, b->u.store.buf) &&
               same_exprs(p, a->u.store.index, b->u.store.index, a->u.store.buf->ndim) &&
               same_expr(p, a->u.store.value, b->u.store.value);
    case RX_S_ALLOC:
        return pair_buffer(p, a->u.alloc.buf, b->u.alloc.buf) && same_stmt(p, a->u.alloc.body, b->u.alloc.body);
    case RX_S_IF:
        return same_expr(p, a->u.branch.cond, b->u.branch.cond) && same_stmt(p, a->u.branch.then, b->u.branch.then) &&
               same_stmt(p, a->u.branch.other, b->u.branch.other);
    case RX_S_LET:
        return same_expr(p, a->u.let.value, b->u.let.value) && pair_sym(p, a->u.let.var, b->u.let.var) &&
               same_stmt(p, a->u.let.body, b->u.let.body);
    case RX_S_ASSERT:
        return a->u.check.err == b->u.check.err && !strcmp(a->u.check.text, b->u.check.text) &&
               same_expr(p, a->u.check.cond, b->u.check.cond);
    case RX_S_PREFETCH:
        return same_buffer(p, a->u.prefetch.buf, b->u.prefetch.buf) &&
               same_exprs(p, a->u.prefetch.index, b->u.prefetch.index, a->u.prefetch.buf->ndim);
    }
    return false;
}

static bool same_prim(pairing *p, rx_arena *tmp, const rx_prim *a, const rx_prim *b)
{
    if (a->nparams != b->nparams || a->nsyms != b->nsyms || a->nwhere != b->nwhere)
        return false;
    rx_exvec sa = {0}, sb = {0};
    rx_prim_symbols(p->ctx, tmp, a, &sa);
    rx_prim_symbols(p->ctx, tmp, b, &sb);
    if (sa.n != sb.n)
        return false;
    for (uint32_t i = 0; i < sa.n; i++)
        if (!pair_sym(p, sa.at[i], sb.at[i]))
            return false;
    for (uint32_t i = 0; i < a->nparams; i++)
        if (!pair_buffer(p, a->params[i], b->params[i]))
            return false;
    return (!a->nsyms || same_exprs(p, a->syms, b->syms, a->nsyms)) &&
           (!a->nwhere || same_exprs(p, a->where, b->where, a->nwhere)) && same_stmt(p, a->body, b->body);
}

bool rx_prim_equal(relax_context *ctx, const rx_prim *a, const rx_prim *b)
{
    rx_frame f;
    if (RX_ENTER(&ctx->heap, &f)) {
        pairing p = {.ctx = ctx};
        rx_map_init(&p.exprs, rx_scratch(&ctx->heap));
        rx_map_init(&p.buffers, rx_scratch(&ctx->heap));
        rx_map_init(&p.taken, rx_scratch(&ctx->heap));
        bool same = same_prim(&p, rx_scratch(&ctx->heap), a, b);
        rx_leave(&ctx->heap, &f);
        return same;
    }
    rx_unwind(&ctx->heap);
}

/* --- hash --- */

typedef struct hasher { relax_context *ctx; rx_map ordinals, memo; } hasher;

/* definitions are numbered in order of first sight; 0 is an undefined one */
static uint64_t ordinal(const hasher *h, const void *p)
{
    return (uint64_t)(uintptr_t)rx_map_get(&h->ordinals, RX_KEY(p));
}

static void number(hasher *h, const void *p)
{
    if (!rx_map_has(&h->ordinals, RX_KEY(p)))
        rx_map_put(&h->ordinals, RX_KEY(p), (void *)(uintptr_t)(h->ordinals.n + 1));
}

static bool commutes(rx_ex e)
{
    switch (e->op) {
    case RX_EX_ADD: case RX_EX_MUL: case RX_EX_MIN: case RX_EX_MAX: case RX_EX_AND: case RX_EX_OR: return true;
    default: return false;
    }
}

/* Comparisons of index expressions may have been turned round by canonicalisation: only which nodes occur counts. */
static bool turns(rx_ex e)
{
    return !(e->flags & RX_EX_DATA) &&
           (e->op == RX_EX_EQ || e->op == RX_EX_NE || e->op == RX_EX_LT || e->op == RX_EX_LE);
}

static uint64_t hash_expr(hasher *h, rx_ex e);

/* the sum over the operands of a nest of one commutative operator */
static uint64_t hash_bag(hasher *h, rx_ex e, uint8_t op)
{
    if (e->op != op)
        return rx_mix(1, hash_expr(h, e));
    uint64_t sum = 0;
    for (uint32_t i = 0; i < e->nargs; i++)
        sum += hash_bag(h, e->a[i], op);
    return sum;
}

static void add_sym(void *arg, rx_ex e)
{
    hasher *h = ((void **)arg)[0];
    if (e->op == RX_EX_SYM)
        *(uint64_t *)((void **)arg)[1] += rx_mix(2, ordinal(h, e));
}

static uint64_t hash_node(hasher *h, rx_ex e)
{
    uint64_t r = rx_mix(e->op, e->dtype);
    if (turns(e)) {
        uint64_t sum = 0;
        void *arg[2] = {h, &sum};
        rx_visit(h->ctx, e, add_sym, arg);
        return rx_mix(r, sum);
    }
    if (commutes(e))
        return rx_mix(r, hash_bag(h, e, e->op));
    switch (e->op) {
    case RX_EX_SYM: r = rx_mix(r, ordinal(h, e)); break;
    case RX_EX_LOAD: r = rx_mix(r, ordinal(h, e->u.buf)); break;
    case RX_EX_INT: case RX_EX_FLOAT: r = rx_mix(r, (uint64_t)e->u.i); break;
    case RX_EX_CALL: r = rx_mix(r, e->intrin); break;
    default: break;
    }
    for (uint32_t i = 0; i < e->nargs; i++)
        r = rx_mix(r, hash_expr(h, e->a[i]));
    return r;
}

static uint64_t hash_expr(hasher *h, rx_ex e)
{
    uint64_t *known = rx_map_get(&h->memo, RX_KEY(e));
    if (known)
        return *known;
    known = RX_NEW(h->memo.a, uint64_t);
    *known = hash_node(h, e);
    rx_map_put(&h->memo, RX_KEY(e), known);
    return *known;
}

static uint64_t hash_buffer(hasher *h, uint64_t r, const relax_buffer *b)
{
    number(h, b);
    r = rx_mix(rx_mix(rx_mix(r, b->dtype), b->scope), b->ndim);
    for (uint32_t i = 0; i < b->ndim; i++) {
        r = rx_mix(r, hash_expr(h, b->shape[i]));
        r = b->strides ? rx_mix(r, hash_expr(h, b->strides[i])) : r;
    }
    return r;
}

static uint64_t hash_stmt(hasher *h, uint64_t r, const rx_stmt *s);

static uint64_t hash_access(hasher *h, uint64_t r, const relax_buffer *b, rx_ex *index)
{
    r = rx_mix(r, ordinal(h, b));
    for (uint32_t i = 0; i < b->ndim; i++)
        r = rx_mix(r, hash_expr(h, index[i]));
    return r;
}

static uint64_t hash_loop(hasher *h, uint64_t r, const rx_stmt *s)
{
    r = rx_mix(rx_mix(r, hash_expr(h, s->u.loop.start)), hash_expr(h, s->u.loop.extent));
    number(h, s->u.loop.var);
    r = rx_mix(r, (uint64_t)s->u.loop.how * 2 + s->u.loop.reduce);
    return hash_stmt(h, hash_stmt(h, r, s->u.loop.init), s->u.loop.body);
}

static uint64_t hash_stmt(hasher *h, uint64_t r, const rx_stmt *s)
{
    if (!s)
        return rx_mix(r, 99);
    r = rx_mix(r, s->kind);
    switch (s->kind) {
    case RX_S_SEQ:
        for (uint32_t i = 0; i < s->u.seq.n; i++)
            r = hash_stmt(h, r, s->u.seq.at[i]);
        return r;
    case RX_S_FOR: return hash_loop(h, r, s);
    case RX_S_STORE: return rx_mix(hash_access(h, r, s->u.store.buf, s->u.store.index), hash_expr(h, s->u.store.value));
    case RX_S_ALLOC: return hash_stmt(h, hash_buffer(h, r, s->u.alloc.buf), s->u.alloc.body);
    case RX_S_IF:
        r = rx_mix(r, hash_expr(h, s->u.branch.cond));
        return hash_stmt(h, hash_stmt(h, r, s->u.branch.then), s->u.branch.other);
    case RX_S_LET:
        r = rx_mix(r, hash_expr(h, s->u.let.value));
        number(h, s->u.let.var);
        return hash_stmt(h, r, s->u.let.body);
    case RX_S_ASSERT: return rx_mix(rx_mix(r, s->u.check.err), hash_expr(h, s->u.check.cond));
    case RX_S_PREFETCH: return hash_access(h, r, s->u.prefetch.buf, s->u.prefetch.index);
    }
    return r;
}

uint64_t rx_prim_hash(relax_context *ctx, const rx_prim *p)
{
    rx_frame f;
    if (RX_ENTER(&ctx->heap, &f)) {
        hasher h = {.ctx = ctx};
        rx_arena *tmp = rx_scratch(&ctx->heap);
        rx_map_init(&h.ordinals, tmp);
        rx_map_init(&h.memo, tmp);
        rx_exvec syms = {0};
        rx_prim_symbols(ctx, tmp, p, &syms);
        for (uint32_t i = 0; i < syms.n; i++)
            number(&h, syms.at[i]);
        uint64_t r = rx_mix(p->nparams, p->nsyms);
        for (uint32_t i = 0; i < p->nparams; i++)
            r = hash_buffer(&h, r, p->params[i]);
        r = hash_stmt(&h, r, p->body);
        rx_leave(&ctx->heap, &f);
        return r;
    }
    rx_unwind(&ctx->heap);
}
