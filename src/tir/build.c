/* build.c: constructors of tensor programs.
 *
 * Statements and buffers are plain arena objects; the constructors copy the arrays they are given and check only what
 * would make the object itself meaningless (dtypes, ranks). Scopes, loop kinds and bounds are the verifier's business.
 */
#include "tir/tir.h"

static rx_ex *dup_exprs(rx_tb *t, rx_ex *e, uint32_t n)
{
    return n ? rx_arena_dup(t->a, e, n * sizeof *e) : NULL;
}

static rx_stmt *new_stmt(rx_tb *t, rx_skind kind)
{
    rx_stmt *s = RX_NEW(t->a, rx_stmt);
    s->kind = kind;
    return s;
}

relax_buffer *rx_buffer(rx_tb *t, const char *name, relax_dtype dt, rx_mem scope, rx_ex *shape, uint32_t ndim)
{
    for (uint32_t i = 0; i < ndim; i++)
        if (shape[i]->dtype != RELAX_I64)
            rx_fail(t->ctx, RXE_DTYPE, NULL, "dim %u of buffer '%s' is not an i64 expression", i, name);
    relax_buffer *b = RX_NEW(t->a, relax_buffer);
    b->name = rx_str(t->ctx, name);
    b->dtype = dt;
    b->scope = scope;
    b->ndim = ndim;
    b->shape = dup_exprs(t, shape, ndim);
    b->param = -1;
    return b;
}

rx_ex rx_loopvar(rx_tb *t, const char *name)
{
    return rx_sym_new(t->ctx, name, RELAX_I64);
}

rx_stmt *rx_for(rx_tb *t, rx_ex var, rx_ex start, rx_ex extent, rx_loop how, bool reduce, rx_stmt *init, rx_stmt *body)
{
    if (!rx_sym_of(var) || var->dtype != RELAX_I64 || start->dtype != RELAX_I64 || extent->dtype != RELAX_I64)
        rx_fail(t->ctx, RXE_DTYPE, NULL, "a loop needs an i64 symbol as variable and i64 bounds");
    rx_stmt *s = new_stmt(t, RX_S_FOR);
    s->u.loop.var = var;
    s->u.loop.start = start;
    s->u.loop.extent = extent;
    s->u.loop.how = how;
    s->u.loop.reduce = reduce;
    s->u.loop.init = init;
    s->u.loop.body = body;
    return s;
}

rx_stmt *rx_loop_s(rx_tb *t, rx_ex var, rx_ex extent, rx_stmt *body)
{
    return rx_for(t, var, rx_int(t->ctx, 0), extent, RX_SERIAL, false, NULL, body);
}

rx_stmt *rx_seq(rx_tb *t, rx_stmt **s, uint32_t n)
{
    uint32_t total = 0;
    for (uint32_t i = 0; i < n; i++)
        total += s[i]->kind == RX_S_SEQ ? s[i]->u.seq.n : 1;
    if (n == 1)
        return s[0];
    rx_stmt **at = RX_NEWN(t->a, rx_stmt *, total);
    uint32_t k = 0;
    for (uint32_t i = 0; i < n; i++) {
        if (s[i]->kind != RX_S_SEQ) {
            at[k++] = s[i];
            continue;
        }
        for (uint32_t j = 0; j < s[i]->u.seq.n; j++)
            at[k++] = s[i]->u.seq.at[j];
    }
    if (total == 1)
        return at[0];
    rx_stmt *r = new_stmt(t, RX_S_SEQ);
    r->u.seq.at = at;
    r->u.seq.n = total;
    return r;
}

/* One i64 expression per dim. */
static void check_index(rx_tb *t, const relax_buffer *b, rx_ex *index, uint32_t n)
{
    if (n != b->ndim)
        rx_fail(t->ctx, RXE_RANK, NULL, "buffer '%s' has %u dims and is indexed with %u", b->name, b->ndim, n);
    for (uint32_t i = 0; i < n; i++)
        if (index[i]->dtype != RELAX_I64)
            rx_fail_hint(t->ctx, RXE_DTYPE, NULL, "cast the index: i64(x)", "index %u of buffer '%s' is %s, not i64",
                         i, b->name, rx_dtypes[index[i]->dtype].name);
}

rx_stmt *rx_store(rx_tb *t, relax_buffer *b, rx_ex *index, uint32_t n, rx_ex value)
{
    check_index(t, b, index, n);
    if (value->dtype != b->dtype)
        rx_fail(t->ctx, RXE_DTYPE, NULL, "a value of dtype %s is stored to buffer '%s' of dtype %s",
                rx_dtypes[value->dtype].name, b->name, rx_dtypes[b->dtype].name);
    rx_stmt *s = new_stmt(t, RX_S_STORE);
    s->u.store.buf = b;
    s->u.store.index = dup_exprs(t, index, n);
    s->u.store.value = value;
    return s;
}

rx_stmt *rx_alloc_s(rx_tb *t, relax_buffer *b, rx_stmt *body)
{
    rx_stmt *s = new_stmt(t, RX_S_ALLOC);
    s->u.alloc.buf = b;
    s->u.alloc.body = body;
    return s;
}

rx_stmt *rx_if(rx_tb *t, rx_ex cond, rx_stmt *then, rx_stmt *other)
{
    if (cond->dtype != RELAX_BOOL)
        rx_fail(t->ctx, RXE_DTYPE, NULL, "the condition of an if is %s, not bool", rx_dtypes[cond->dtype].name);
    rx_stmt *s = new_stmt(t, RX_S_IF);
    s->u.branch.cond = cond;
    s->u.branch.then = then;
    s->u.branch.other = other;
    return s;
}

rx_stmt *rx_let(rx_tb *t, rx_ex var, rx_ex value, rx_stmt *body)
{
    if (!rx_sym_of(var) || var->dtype != value->dtype)
        rx_fail(t->ctx, RXE_DTYPE, NULL, "a let needs a symbol of the dtype of its value");
    rx_stmt *s = new_stmt(t, RX_S_LET);
    s->u.let.var = var;
    s->u.let.value = value;
    s->u.let.body = body;
    return s;
}

rx_stmt *rx_check_s(rx_tb *t, rx_ex cond, uint32_t err, const char *text)
{
    if (cond->dtype != RELAX_BOOL)
        rx_fail(t->ctx, RXE_DTYPE, NULL, "the condition of an assert is %s, not bool", rx_dtypes[cond->dtype].name);
    rx_stmt *s = new_stmt(t, RX_S_ASSERT);
    s->u.check.cond = cond;
    s->u.check.err = err;
    s->u.check.text = rx_str(t->ctx, text ? text : "");
    return s;
}

rx_stmt *rx_prefetch_s(rx_tb *t, relax_buffer *b, rx_ex *index)
{
    check_index(t, b, index, b->ndim);
    rx_stmt *s = new_stmt(t, RX_S_PREFETCH);
    s->u.prefetch.buf = b;
    s->u.prefetch.index = dup_exprs(t, index, b->ndim);
    return s;
}

rx_ex rx_at(rx_tb *t, relax_buffer *b, rx_ex *index, uint32_t n)
{
    check_index(t, b, index, n);
    return rx_load(t->ctx, b, b->dtype, index, n);
}

rx_prim *rx_prim_new(rx_tb *t, const char *name, relax_buffer **params, uint32_t nparams, rx_ex *syms, uint32_t nsyms,
                     rx_stmt *body)
{
    rx_prim *p = RX_NEW(t->a, rx_prim);
    p->ctx = t->ctx;
    p->name = rx_str(t->ctx, name);
    p->params = nparams ? rx_arena_dup(t->a, params, nparams * sizeof *params) : NULL;
    p->nparams = nparams;
    for (uint32_t i = 0; i < nparams; i++)
        params[i]->param = (int32_t)i;
    p->syms = dup_exprs(t, syms, nsyms);
    p->nsyms = nsyms;
    p->body = body;
    return p;
}

void rx_prim_where(rx_tb *t, rx_prim *p, rx_ex *conds, uint32_t n)
{
    if (!n)
        return;
    rx_ex *all = RX_NEWN(t->a, rx_ex, (size_t)p->nwhere + n);
    rx_facts *facts = rx_facts_new(t->ctx, t->a, p->facts);
    for (uint32_t i = 0; i < p->nwhere; i++)
        all[i] = p->where[i];
    for (uint32_t i = 0; i < n; i++) {
        if (conds[i]->dtype != RELAX_BOOL)
            rx_fail(t->ctx, RXE_DTYPE, NULL, "a condition of '%s' is not a bool", p->name);
        all[p->nwhere + i] = conds[i];
        rx_facts_add(facts, conds[i]);
    }
    p->where = all;
    p->nwhere += n;
    p->facts = facts;
}
