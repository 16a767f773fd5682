/* analysis.c: facts about prim funcs that other rooms ask for: parameter access, symbol order, sizes and offsets. */
#include "tir/tir.h"

typedef struct access_walk { relax_context *ctx; rx_access *out; } access_walk;

static void note_load(void *arg, rx_ex e)
{
    access_walk *w = arg;
    if (e->op == RX_EX_LOAD && e->u.buf->param >= 0)
        w->out[e->u.buf->param].reads = true;
}

static void note_expr(void *arg, rx_ex e)
{
    access_walk *w = arg;
    if (e->flags & RX_EX_DATA)
        rx_visit(w->ctx, e, note_load, w);
}

static void note_stmt(void *arg, rx_stmt *s)
{
    access_walk *w = arg;
    rx_stmt_exprs(s, note_expr, w);
    if (s->kind == RX_S_STORE && s->u.store.buf->param >= 0)
        w->out[s->u.store.buf->param].writes = true;
}

void rx_prim_access(const rx_prim *p, rx_access *per_param)
{
    access_walk w = {p->ctx, per_param};
    for (uint32_t i = 0; i < p->nparams; i++)
        per_param[i] = (rx_access){false, false};
    rx_stmt_visit(p->body, note_stmt, &w);
}

static void add_once(rx_arena *a, rx_exvec *out, rx_ex sym)
{
    for (uint32_t i = 0; i < out->n; i++)
        if (out->at[i] == sym)
            return;
    rx_push(a, out, sym);
}

void rx_prim_symbols(relax_context *ctx, rx_arena *a, const rx_prim *p, rx_exvec *out)
{
    (void)ctx;
    for (uint32_t i = 0; i < p->nparams; i++)
        for (uint32_t k = 0; k < p->params[i]->ndim; k++)
            if (rx_sym_of(p->params[i]->shape[k]))
                add_once(a, out, p->params[i]->shape[k]);
    for (uint32_t i = 0; i < p->nsyms; i++)
        add_once(a, out, p->syms[i]);
}

rx_ex rx_buffer_size(relax_context *ctx, const relax_buffer *b)
{
    return rx_product(ctx, b->shape, b->ndim);
}

/* With strides: the sum of index * stride. Without: Horner's rule from the outermost dim. */
rx_ex rx_buffer_offset(relax_context *ctx, const relax_buffer *b, rx_ex *index)
{
    rx_ex r = NULL;
    for (uint32_t i = 0; i < b->ndim; i++) {
        rx_ex term = b->strides ? rx_mul(ctx, index[i], b->strides[i]) : index[i];
        if (r)
            r = rx_add(ctx, b->strides ? r : rx_mul(ctx, r, b->shape[i]), term);
        else
            r = term;
    }
    return r ? r : rx_int(ctx, 0);
}
