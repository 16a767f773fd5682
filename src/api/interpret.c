/* interpret.c: a function of a module in the interpreter, with tensors of the host.
 *
 * Compact tensors are lent as they are, so that caches written in place are the host's; strided and read-only ones are
 * copied. A Prim parameter takes a tensor of rank 0. All parameters are given, weights too. */
#include "api/builder.h"
#include "interp/interp.h"
#include "rt/rt.h"

static rx_ival *lend(relax_module *m, rx_arena *a, const DLManagedTensorVersioned *x, const relax_value *param)
{
    relax_context *ctx = m->ctx;
    const DLTensor *d = &x->dl_tensor;
    relax_dtype t;
    int64_t bytes;
    bool compact;
    void *data;
    if (rx_dl_check(ctx, d, param->name, &t, &bytes, &compact, &data) != RELAX_OK)
        rx_unwind(&ctx->heap);
    rx_ival *v = RX_NEW(a, rx_ival);
    *v = (rx_ival){ .kind = RX_I_TENSOR, .dtype = t, .ndim = d->ndim, .data = data, .bytes = (size_t)bytes };
    v->dims = rx_arena_dup(a, d->shape, (size_t)d->ndim * sizeof *d->shape);
    if (!compact || (x->flags & DLPACK_FLAG_BITMASK_READ_ONLY)) {
        v->data = rx_arena_alloc(a, v->bytes + 1, 64);
        rx_dl_copy(d, rx_dtype_bytes(t), v->data);
    }
    if (param->type->kind != RX_TY_PRIM || d->ndim != 0)
        return v;
    rx_ival *p = RX_NEW(a, rx_ival);
    *p = (rx_ival){ .kind = RX_I_PRIM, .dtype = t };
    memcpy(&p->bits, v->data, v->bytes);
    return p;
}

static relax_status give(relax_context *ctx, const char *function, const rx_ival *r, DLManagedTensorVersioned **out)
{
    rx_tensor *t;
    if (r->kind != RX_I_TENSOR)
        return rx_error(ctx, RXE_ARG_KIND, NULL, "return one tensor", "%s: the result is no tensor", function);
    relax_status st = rx_tensor_new(ctx, r->dtype, r->dims, r->ndim, &t);
    if (st != RELAX_OK)
        return st;
    if (r->bytes)
        memcpy(t->data, r->data, r->bytes);
    st = rx_tensor_export(ctx, t, out);
    rx_release(&t->h);
    return st;
}

static relax_function *find(relax_module *m, const char *name, DLManagedTensorVersioned *const *args, uint32_t n)
{
    relax_function *f = rx_module_get(m, name);
    if (!f || f->is_prim)
        rx_fail(m->ctx, RXE_NOT_FOUND, NULL, f ? "'%s' is a tensor program: interpret a function that calls it"
                                               : "no function is named '%s'", name);
    rx_where w = { .function = f->name };
    if (n != f->nparams)
        rx_fail(m->ctx, RXE_ARG_COUNT, &w, "%u arguments are given, there are %u parameters", n, f->nparams);
    for (uint32_t i = 0; i < n; i++)
        if (!args || !args[i])
            rx_fail(m->ctx, RXE_NULL_ARG, &w, "argument %u is NULL", i);
    return f;
}

relax_status relax_interpret(relax_module *m, const char *function, DLManagedTensorVersioned *const *args, uint32_t n,
                             DLManagedTensorVersioned **out)
{
    if (out)
        *out = NULL;
    if (!api_module(m))
        return RELAX_E_INVALID;
    if (!function || !out)
        return api_null(m->ctx, function ? "out" : "the name of a function");
    API_TRY(m->ctx) {
        rx_arena *a = rx_scratch(&m->ctx->heap);
        relax_function *f = find(m, function, args, n);
        rx_ival **v = RX_NEWN(a, rx_ival *, n + 1);
        for (uint32_t i = 0; i < n; i++)
            v[i] = lend(m, a, args[i], f->params[i]);
        rx_interp in = { .ctx = m->ctx, .a = a };
        relax_status st = give(m->ctx, function, rx_interp_run(&in, f, v, n), out);
        API_RETURN(st);
    }
    return api_failed(m->ctx);
}
