/* value.c: values of the interpreter: tensors, shapes, scalars, tuples. Memory that nobody wrote yet holds 0xff bytes
 * (NaN, -1). */
#include "interp/interp.h"

static int64_t count_of(relax_context *ctx, const int64_t *dims, int32_t ndim, int64_t unit)
{
    int64_t n = unit;
    bool zero = false;
    for (int32_t i = 0; i < ndim; i++) {
        if (dims[i] < 0)
            rx_fail(ctx, RXE_BAD_VALUE, NULL, "dim %d of a tensor is negative: %lld", i, (long long)dims[i]);
        zero |= dims[i] == 0;
    }
    for (int32_t i = 0; i < ndim && !zero; i++)
        if (!rx_mul_ok(n, dims[i], &n))
            rx_fail(ctx, RXE_LIMIT, NULL, "a tensor is too large");
    return zero ? 0 : n;
}

rx_ival *rx_ival_tensor(relax_context *ctx, rx_arena *a, relax_dtype t, const int64_t *dims, int32_t ndim,
                        const void *data)
{
    rx_ival *v = RX_NEW(a, rx_ival);
    v->kind = RX_I_TENSOR;
    v->dtype = t;
    v->ndim = ndim;
    v->bytes = (size_t)count_of(ctx, dims, ndim, (int64_t)rx_dtype_bytes(t));
    v->dims = RX_NEWN(a, int64_t, (size_t)ndim + 1);
    if (ndim)
        memcpy(v->dims, dims, (size_t)ndim * sizeof *dims);
    v->data = rx_arena_alloc(a, v->bytes ? v->bytes : 1, 64);
    if (data && v->bytes)
        memcpy(v->data, data, v->bytes);
    else
        memset(v->data, 0xff, v->bytes);
    return v;
}

rx_ival *rx_ival_shape(rx_arena *a, const int64_t *dims, int32_t ndim)
{
    rx_ival *v = RX_NEW(a, rx_ival);
    v->kind = RX_I_SHAPE;
    v->ndim = ndim;
    v->dims = RX_NEWN(a, int64_t, (size_t)ndim + 1);
    if (ndim)
        memcpy(v->dims, dims, (size_t)ndim * sizeof *dims);
    return v;
}

rx_ival *rx_ival_int(rx_arena *a, int64_t x)
{
    rx_ival *v = RX_NEW(a, rx_ival);
    v->kind = RX_I_PRIM;
    v->dtype = RELAX_I64;
    v->bits = (uint64_t)x;
    return v;
}

rx_ival *rx_ival_tuple(rx_arena *a, rx_ival *const *at, uint32_t n)
{
    rx_ival *v = RX_NEW(a, rx_ival);
    v->kind = RX_I_TUPLE;
    v->n = n;
    v->at = RX_NEWN(a, rx_ival *, (size_t)n + 1);
    if (n)
        memcpy(v->at, at, n * sizeof *at);
    return v;
}

int64_t rx_ival_count(const rx_ival *t)
{
    return (int64_t)(t->bytes / rx_dtype_bytes(t->dtype));
}

rx_ty rx_ival_type(relax_context *ctx, const rx_ival *v)
{
    rx_arena *a = rx_scratch(&ctx->heap);
    rx_ex *d = RX_NEWN(a, rx_ex, (size_t)RX_MAX(v->ndim, 0) + 1);
    for (int32_t i = 0; (v->kind == RX_I_TENSOR || v->kind == RX_I_SHAPE) && i < v->ndim; i++)
        d[i] = rx_int(ctx, v->dims[i]);
    switch (v->kind) {
    case RX_I_TENSOR:
        return rx_ty_tensor(ctx, d, v->ndim, v->dtype);
    case RX_I_SHAPE:
        return rx_ty_shape(ctx, d, v->ndim);
    case RX_I_PRIM:
        return rx_ty_prim(ctx, v->dtype, v->dtype == RELAX_I64 ? rx_int(ctx, (int64_t)v->bits) : NULL);
    case RX_I_TUPLE: {
        rx_ty *e = RX_NEWN(a, rx_ty, (size_t)v->n + 1);
        for (uint32_t i = 0; i < v->n; i++)
            e[i] = rx_ival_type(ctx, v->at[i]);
        return rx_ty_tuple(ctx, e, v->n);
    }
    case RX_I_FUNC:
        return rx_ty_func_opaque(ctx);
    case RX_I_STR:
        break;
    }
    return rx_ty_object(ctx);
}

static void put_tensor(rx_buf *b, const rx_ival *v)
{
    size_t w = rx_dtype_bytes(v->dtype);
    rx_putf(b, "%s(", rx_dtypes[v->dtype].name);
    for (int32_t i = 0; i < v->ndim; i++)
        rx_putf(b, i ? ", %lld" : "%lld", (long long)v->dims[i]);
    rx_puts(b, ")[");
    for (int64_t i = 0; i < rx_ival_count(v); i++) {
        rx_puts(b, i ? ", " : "");
        rx_put_element(b, v->dtype, (const char *)v->data + (size_t)i * w);
    }
    rx_putc(b, ']');
}

void rx_ival_print(rx_buf *b, const rx_ival *v)
{
    switch (v->kind) {
    case RX_I_TENSOR:
        put_tensor(b, v);
        break;
    case RX_I_SHAPE:
        rx_puts(b, "shape(");
        for (int32_t i = 0; i < v->ndim; i++)
            rx_putf(b, i ? ", %lld" : "%lld", (long long)v->dims[i]);
        rx_putc(b, ')');
        break;
    case RX_I_PRIM:
        rx_put_element(b, v->dtype, &v->bits);
        break;
    case RX_I_TUPLE:
        rx_putc(b, '(');
        for (uint32_t i = 0; i < v->n; i++) {
            rx_puts(b, i ? ", " : "");
            rx_ival_print(b, v->at[i]);
        }
        rx_putc(b, ')');
        break;
    case RX_I_FUNC:
        rx_putf(b, "@%s", v->fn->name);
        break;
    case RX_I_STR:
        rx_putf(b, "\"%s\"", v->s);
        break;
    }
}
