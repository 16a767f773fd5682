/* prim_run.c: tensor programs on values of the interpreter. */
#include "interp/impl.h"

static void check_buffer(rx_interp *in, const rx_prim *p, uint32_t i, const rx_ival *t)
{
    const relax_buffer *b = p->params[i];
    rx_where w = {.function = p->name};
    if (t->kind != RX_I_TENSOR || t->dtype != b->dtype || t->ndim != (int32_t)b->ndim)
        rx_fail(in->ctx, RXE_ARG_KIND, &w, "buffer %s: expected a tensor %s of rank %u", b->name,
                rx_dtypes[b->dtype].name, b->ndim);
}

static void check_dims(rx_interp *in, const rx_prim *p, const rx_map *env, uint32_t i, const rx_ival *t)
{
    const relax_buffer *b = p->params[i];
    rx_where w = {.function = p->name};
    for (uint32_t k = 0; k < b->ndim; k++) {
        int64_t v = rx_env_int(in->ctx, NULL, env, b->shape[k]);
        if (v != t->dims[k])
            rx_fail(in->ctx, RXE_ARG_DIM, &w, "buffer %s: dim %u is %lld, expected %lld", b->name, k,
                    (long long)t->dims[k], (long long)v);
    }
}

void rx_prim_run(rx_interp *in, const rx_prim *p, rx_ival *const *tensors, uint32_t n, const int64_t *syms,
                 uint32_t nsyms)
{
    relax_context *ctx = in->ctx;
    rx_arena *a = rx_scratch(&ctx->heap);
    rx_where w = {.function = p->name};
    rx_map env;
    rx_exvec order = {0};
    rx_map_init(&env, a);
    if (n != p->nparams || nsyms != p->nsyms)
        rx_fail(ctx, RXE_ARG_COUNT, &w, "takes %u buffers and %u symbols, not %u and %u", p->nparams, p->nsyms, n,
                nsyms);
    for (uint32_t i = 0; i < nsyms; i++)
        rx_map_put(&env, RX_KEY(p->syms[i]), (void *)&syms[i]);
    void **bufs = RX_NEWN(a, void *, (size_t)n + 1);
    for (uint32_t i = 0; i < n; i++) {
        check_buffer(in, p, i, tensors[i]);
        for (uint32_t k = 0; k < p->params[i]->ndim; k++)
            if (rx_sym_of(p->params[i]->shape[k]) && !rx_map_has(&env, RX_KEY(p->params[i]->shape[k])))
                rx_map_put(&env, RX_KEY(p->params[i]->shape[k]), &tensors[i]->dims[k]);
        bufs[i] = tensors[i]->data;
    }
    for (uint32_t i = 0; i < n; i++)
        check_dims(in, p, &env, i, tensors[i]);
    for (uint32_t i = 0; i < p->nwhere; i++)
        if (!rx_env_int(ctx, NULL, &env, p->where[i]))
            rx_fail(ctx, RXE_BOUND_EXCEEDED, &w, "a condition on the symbols does not hold");
    rx_prim_symbols(ctx, a, p, &order);
    int64_t *vals = RX_NEWN(a, int64_t, (size_t)order.n + 1);
    for (uint32_t i = 0; i < order.n; i++)
        vals[i] = rx_env_int(ctx, NULL, &env, order.at[i]);
    rx_interp_prim(ctx, p, bufs, vals);
}

static relax_buffer *buffer_of(rx_tb *t, rx_ty ty, const char *name)
{
    return rx_buffer(t, name, ty->dtype, RX_MEM_GLOBAL, ty->dims, (uint32_t)ty->ndim);
}

void rx_op_by_prim(rx_interp *in, const rx_op *op, rx_ival *const *x, uint32_t n, const rx_attrs *attrs, rx_ival *y)
{
    relax_context *ctx = in->ctx;
    rx_arena *a = rx_scratch(&ctx->heap);
    rx_where w = {.function = op->name};
    rx_legal l = {.ctx = ctx, .tb = {ctx, a}, .op = op, .n = n, .attrs = attrs, .out = rx_ival_type(ctx, y)};
    uint32_t nout = y->kind == RX_I_TUPLE ? y->n : 1, nb = 0;
    rx_ival *const *out = y->kind == RX_I_TUPLE ? y->at : &y;
    if (!op->legalize)
        rx_fail(ctx, RXE_UNKNOWN_OP, &w, "the operator has no tensor program");
    l.in = RX_NEWN(a, rx_ty, (size_t)n + 1);
    l.x = RX_NEWN(a, relax_buffer *, (size_t)n + 1);
    l.y = RX_NEWN(a, relax_buffer *, (size_t)nout + 1);
    relax_buffer **bufs = RX_NEWN(a, relax_buffer *, (size_t)n + nout + 1);
    rx_ival **vals = RX_NEWN(a, rx_ival *, (size_t)n + nout + 1);
    for (uint32_t i = 0; i < n; i++) {
        l.in[i] = x[i] ? rx_ival_type(ctx, x[i]) : NULL;
        if (!x[i] || x[i]->kind != RX_I_TENSOR)
            continue;
        l.x[i] = bufs[nb] = buffer_of(&l.tb, l.in[i], rx_strf(ctx, "X%u", i));
        vals[nb++] = x[i];
    }
    for (uint32_t i = 0; i < nout; i++) {
        l.y[i] = bufs[nb] = buffer_of(&l.tb, rx_ival_type(ctx, out[i]), rx_strf(ctx, "Y%u", i));
        vals[nb++] = out[i];
    }
    rx_stmt *body = op->legalize(&l);
    rx_prim_run(in, rx_prim_new(&l.tb, op->name, bufs, nb, NULL, 0, body), vals, nb, NULL, 0);
}
