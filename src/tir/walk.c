/* walk.c: traversal and rewriting of statements.
 *
 * Statements are immutable: a rewrite builds new nodes along the changed paths and shares the rest. Symbols are unique
 * objects, so a substitution never captures; substituting the symbol that a loop or let defines renames the definition
 * when the replacement is a symbol too. A buffer whose dims change becomes a new buffer, and the loads and stores below
 * follow it. */
#include "tir/tir.h"

static uint32_t rank_of(const rx_stmt *s)
{
    return s->kind == RX_S_STORE ? s->u.store.buf->ndim : s->u.prefetch.buf->ndim;
}

void rx_stmt_visit(rx_stmt *s, void (*f)(void *arg, rx_stmt *s), void *arg)
{
    if (!s)
        return;
    f(arg, s);
    switch (s->kind) {
    case RX_S_SEQ:
        for (uint32_t i = 0; i < s->u.seq.n; i++)
            rx_stmt_visit(s->u.seq.at[i], f, arg);
        break;
    case RX_S_FOR:
        rx_stmt_visit(s->u.loop.init, f, arg);
        rx_stmt_visit(s->u.loop.body, f, arg);
        break;
    case RX_S_ALLOC: rx_stmt_visit(s->u.alloc.body, f, arg); break;
    case RX_S_IF:
        rx_stmt_visit(s->u.branch.then, f, arg);
        rx_stmt_visit(s->u.branch.other, f, arg);
        break;
    case RX_S_LET: rx_stmt_visit(s->u.let.body, f, arg); break;
    case RX_S_STORE: case RX_S_ASSERT: case RX_S_PREFETCH: break;
    }
}

void rx_stmt_exprs(const rx_stmt *s, void (*f)(void *arg, rx_ex e), void *arg)
{
    switch (s->kind) {
    case RX_S_SEQ: break;
    case RX_S_FOR:
        f(arg, s->u.loop.start);
        f(arg, s->u.loop.extent);
        break;
    case RX_S_STORE:
        for (uint32_t i = 0; i < s->u.store.buf->ndim; i++)
            f(arg, s->u.store.index[i]);
        f(arg, s->u.store.value);
        break;
    case RX_S_ALLOC:
        for (uint32_t i = 0; i < s->u.alloc.buf->ndim; i++) {
            f(arg, s->u.alloc.buf->shape[i]);
            if (s->u.alloc.buf->strides)
                f(arg, s->u.alloc.buf->strides[i]);
        }
        break;
    case RX_S_IF: f(arg, s->u.branch.cond); break;
    case RX_S_LET: f(arg, s->u.let.value); break;
    case RX_S_ASSERT: f(arg, s->u.check.cond); break;
    case RX_S_PREFETCH:
        for (uint32_t i = 0; i < s->u.prefetch.buf->ndim; i++)
            f(arg, s->u.prefetch.index[i]);
        break;
    }
}

static rx_ex map_expr(const rx_stmt_map *m, rx_ex e)
{
    return m->expr ? m->expr(m->arg, e) : e;
}

/* the mapped index, or the same array when nothing changed */
static rx_ex *map_index(rx_tb *t, const rx_stmt_map *m, rx_ex *index, uint32_t n)
{
    rx_ex *r = index;
    for (uint32_t i = 0; i < n; i++) {
        rx_ex e = map_expr(m, index[i]);
        if (e == index[i])
            continue;
        if (r == index)
            r = rx_arena_dup(t->a, index, n * sizeof *index);
        r[i] = e;
    }
    return r;
}

static rx_stmt *map_seq(rx_tb *t, rx_stmt *s, const rx_stmt_map *m)
{
    uint32_t n = s->u.seq.n;
    bool changed = false;
    rx_stmt **at = RX_NEWN(t->a, rx_stmt *, n);
    for (uint32_t i = 0; i < n; i++) {
        at[i] = rx_stmt_rewrite(t, s->u.seq.at[i], m);
        changed |= at[i] != s->u.seq.at[i];
    }
    return changed ? rx_seq(t, at, n) : s;
}

static rx_stmt *map_loop(rx_tb *t, rx_stmt *s, const rx_stmt_map *m)
{
    rx_ex start = map_expr(m, s->u.loop.start), extent = map_expr(m, s->u.loop.extent);
    rx_stmt *init = s->u.loop.init ? rx_stmt_rewrite(t, s->u.loop.init, m) : NULL;
    rx_stmt *body = rx_stmt_rewrite(t, s->u.loop.body, m);
    if (start == s->u.loop.start && extent == s->u.loop.extent && init == s->u.loop.init && body == s->u.loop.body)
        return s;
    return rx_for(t, s->u.loop.var, start, extent, s->u.loop.how, s->u.loop.reduce, init, body);
}

static rx_stmt *map_store(rx_tb *t, rx_stmt *s, const rx_stmt_map *m)
{
    rx_ex *index = map_index(t, m, s->u.store.index, rank_of(s));
    rx_ex value = map_expr(m, s->u.store.value);
    if (index == s->u.store.index && value == s->u.store.value)
        return s;
    return rx_store(t, s->u.store.buf, index, rank_of(s), value);
}

static rx_stmt *map_branch(rx_tb *t, rx_stmt *s, const rx_stmt_map *m)
{
    rx_ex cond = map_expr(m, s->u.branch.cond);
    rx_stmt *then = rx_stmt_rewrite(t, s->u.branch.then, m);
    rx_stmt *other = s->u.branch.other ? rx_stmt_rewrite(t, s->u.branch.other, m) : NULL;
    if (cond == s->u.branch.cond && then == s->u.branch.then && other == s->u.branch.other)
        return s;
    return rx_if(t, cond, then, other);
}

/* the children rewritten */
static rx_stmt *map_children(rx_tb *t, rx_stmt *s, const rx_stmt_map *m)
{
    switch (s->kind) {
    case RX_S_SEQ: return map_seq(t, s, m);
    case RX_S_FOR: return map_loop(t, s, m);
    case RX_S_STORE: return map_store(t, s, m);
    case RX_S_IF: return map_branch(t, s, m);
    case RX_S_ALLOC: {
        rx_stmt *body = rx_stmt_rewrite(t, s->u.alloc.body, m);
        return body == s->u.alloc.body ? s : rx_alloc_s(t, s->u.alloc.buf, body);
    }
    case RX_S_LET: {
        rx_ex value = map_expr(m, s->u.let.value);
        rx_stmt *body = rx_stmt_rewrite(t, s->u.let.body, m);
        return value == s->u.let.value && body == s->u.let.body ? s : rx_let(t, s->u.let.var, value, body);
    }
    case RX_S_ASSERT: {
        rx_ex cond = map_expr(m, s->u.check.cond);
        return cond == s->u.check.cond ? s : rx_check_s(t, cond, s->u.check.err, s->u.check.text);
    }
    case RX_S_PREFETCH: {
        rx_ex *index = map_index(t, m, s->u.prefetch.index, rank_of(s));
        return index == s->u.prefetch.index ? s : rx_prefetch_s(t, s->u.prefetch.buf, index);
    }
    }
    return s;
}

rx_stmt *rx_stmt_rewrite(rx_tb *t, rx_stmt *s, const rx_stmt_map *m)
{
    rx_stmt *r = map_children(t, s, m);
    if (m->pair)
        r = m->pair(m->arg, s, r);
    return m->stmt ? m->stmt(m->arg, r) : r;
}

/* --- substitution --- */

typedef struct subst {
    rx_tb *t;
    const rx_map *exprs;
    rx_map buffers;                    /* the caller's, and those that changed with their dims */
} subst;

static rx_ex subst_node(void *arg, rx_ex e)
{
    subst *s = arg;
    rx_ex r = s->exprs ? rx_map_get(s->exprs, RX_KEY(e)) : NULL;
    if (r)
        return r;
    relax_buffer *b = e->op == RX_EX_LOAD ? rx_map_get(&s->buffers, RX_KEY(e->u.buf)) : NULL;
    return b ? rx_load(s->t->ctx, b, b->dtype, (rx_ex *)e->a, e->nargs) : e;
}

static rx_ex subst_expr(void *arg, rx_ex e)
{
    subst *s = arg;
    return rx_rewrite(s->t->ctx, e, subst_node, s);
}

static relax_buffer *subst_target(subst *s, relax_buffer *b)
{
    relax_buffer *r = rx_map_get(&s->buffers, RX_KEY(b));
    return r ? r : b;
}

static void subst_alloc(subst *s, relax_buffer *b)
{
    if (rx_map_has(&s->buffers, RX_KEY(b)))
        return;
    rx_stmt_map m = {.arg = s, .expr = subst_expr};
    rx_ex *shape = map_index(s->t, &m, b->shape, b->ndim);
    rx_ex *strides = b->strides ? map_index(s->t, &m, b->strides, b->ndim) : NULL;
    if (shape == b->shape && strides == b->strides)
        return;
    relax_buffer *r = rx_arena_dup(s->t->a, b, sizeof *b);
    r->shape = shape;
    r->strides = strides;
    rx_map_put(&s->buffers, RX_KEY(b), r);
}

static rx_stmt *subst_stmt(subst *s, rx_stmt *x);

static rx_stmt *subst_seq(subst *s, rx_stmt *x)
{
    rx_stmt **at = RX_NEWN(s->t->a, rx_stmt *, x->u.seq.n);
    for (uint32_t i = 0; i < x->u.seq.n; i++)
        at[i] = subst_stmt(s, x->u.seq.at[i]);
    return rx_seq(s->t, at, x->u.seq.n);
}

/* the symbol that a loop or let defines, renamed if the map says so */
static rx_ex subst_def(subst *s, rx_ex var)
{
    rx_ex r = s->exprs ? rx_map_get(s->exprs, RX_KEY(var)) : NULL;
    return r && rx_sym_of(r) ? r : var;
}

static rx_stmt *subst_stmt(subst *s, rx_stmt *x)
{
    rx_tb *t = s->t;
    rx_stmt_map m = {.arg = s, .expr = subst_expr};
    switch (x->kind) {
    case RX_S_SEQ: return subst_seq(s, x);
    case RX_S_FOR: {
        rx_ex start = subst_expr(s, x->u.loop.start), extent = subst_expr(s, x->u.loop.extent);
        rx_stmt *init = x->u.loop.init ? subst_stmt(s, x->u.loop.init) : NULL;
        rx_stmt *body = subst_stmt(s, x->u.loop.body);
        return rx_for(t, subst_def(s, x->u.loop.var), start, extent, x->u.loop.how, x->u.loop.reduce, init, body);
    }
    case RX_S_STORE:
        return rx_store(t, subst_target(s, x->u.store.buf), map_index(t, &m, x->u.store.index, rank_of(x)), rank_of(x),
                        subst_expr(s, x->u.store.value));
    case RX_S_ALLOC: {
        subst_alloc(s, x->u.alloc.buf);
        rx_stmt *body = subst_stmt(s, x->u.alloc.body);
        return rx_alloc_s(t, subst_target(s, x->u.alloc.buf), body);
    }
    case RX_S_IF: {
        rx_stmt *then = subst_stmt(s, x->u.branch.then);
        rx_stmt *other = x->u.branch.other ? subst_stmt(s, x->u.branch.other) : NULL;
        return rx_if(t, subst_expr(s, x->u.branch.cond), then, other);
    }
    case RX_S_LET: {
        rx_ex value = subst_expr(s, x->u.let.value);
        return rx_let(t, subst_def(s, x->u.let.var), value, subst_stmt(s, x->u.let.body));
    }
    case RX_S_ASSERT: return rx_check_s(t, subst_expr(s, x->u.check.cond), x->u.check.err, x->u.check.text);
    case RX_S_PREFETCH:
        return rx_prefetch_s(t, subst_target(s, x->u.prefetch.buf), map_index(t, &m, x->u.prefetch.index, rank_of(x)));
    }
    return x;
}

rx_stmt *rx_stmt_subst(rx_tb *t, rx_stmt *s, const rx_map *exprs, const rx_map *buffers)
{
    subst sub = {.t = t, .exprs = exprs};
    rx_map_init(&sub.buffers, t->a);
    for (uint32_t i = 0; buffers && i < buffers->n; i++)
        rx_map_put(&sub.buffers, buffers->e[i].key, buffers->e[i].val);
    return subst_stmt(&sub, s);
}
