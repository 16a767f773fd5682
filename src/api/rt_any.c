/* rt_any.c: run-time values and tensors by DLPack. Part of librelax_rt. */
#include "api/api.h"
#include "rt/rt.h"

void relax_any_release(relax_any *v)
{
    if (v) rx_any_release(v);
}

relax_any relax_any_retain(const relax_any *v)
{
    relax_any none = { 0 };
    if (!v) return none;
    rx_any_retain(v);
    return *v;
}

static const rx_tuple *tuple_of(const relax_any *v)
{
    return v && v->kind == RELAX_ANY_TUPLE ? (const rx_tuple *)v->u.obj : NULL;
}
static const rx_shape *shape_of(const relax_any *v)
{
    return v && v->kind == RELAX_ANY_SHAPE ? (const rx_shape *)v->u.obj : NULL;
}
static rx_tensor *tensor_of(const relax_any *v)
{
    return v && v->kind == RELAX_ANY_TENSOR ? (rx_tensor *)v->u.obj : NULL;
}

uint32_t relax_any_count(const relax_any *v)
{
    const rx_tuple *t = tuple_of(v);
    const rx_shape *s = shape_of(v);
    return t ? (uint32_t)t->n : s ? (uint32_t)s->n : 0;
}

relax_any relax_any_field(const relax_any *v, uint32_t i)
{
    relax_any r = { 0 };
    if (i >= relax_any_count(v)) return r;
    if (tuple_of(v)) return tuple_of(v)->at[i];
    r.kind = RELAX_ANY_INT;
    r.u.i = shape_of(v)->dims[i];
    return r;
}

relax_status relax_any_dltensor(const relax_any *v, DLTensor *out)
{
    if (!tensor_of(v) || !out) return RELAX_E_INVALID;
    *out = rx_tensor_view(tensor_of(v));
    return RELAX_OK;
}

relax_status relax_any_to_dlpack(relax_context *ctx, const relax_any *v, DLManagedTensorVersioned **out)
{
    if (out) *out = NULL;
    if (!rx_ctx_ok(ctx)) return RELAX_E_INVALID;
    if (!out) return api_null(ctx, "out");
    if (!tensor_of(v)) return rx_error(ctx, RXE_ARG_KIND, NULL, NULL, "the value is no tensor");
    return rx_tensor_export(ctx, tensor_of(v), out);
}

static void give_back(DLManagedTensorVersioned *t)
{
    if (t->deleter) t->deleter(t);
}

relax_status relax_any_from_dlpack(relax_context *ctx, DLManagedTensorVersioned *t, relax_any *out)
{
    rx_tensor *x = NULL;
    relax_status st = RELAX_E_INVALID;
    if (!t) return rx_ctx_ok(ctx) ? api_null(ctx, "the tensor") : RELAX_E_INVALID;
    if (rx_ctx_ok(ctx)) st = out ? rx_tensor_import(ctx, t, &x) : api_null(ctx, "out");
    if (st != RELAX_OK) {
        give_back(t);
        return st;
    }
    *out = (relax_any){ .kind = RELAX_ANY_TENSOR, .u.obj = &x->h };
    return RELAX_OK;
}

relax_status relax_tensor_create(relax_context *ctx, relax_dtype dtype, const int64_t *dims, int32_t ndim,
                                 relax_any *out)
{
    rx_tensor *t;
    if (!rx_ctx_ok(ctx)) return RELAX_E_INVALID;
    if (!out || (ndim > 0 && !dims)) return api_null(ctx, out ? "dims" : "out");
    if (dtype <= 0 || dtype >= RELAX_DTYPE_COUNT || ndim < 0 || ndim > RX_PKG_MAX_NDIM)
        return rx_error(ctx, RXE_BAD_VALUE, NULL, NULL, "a tensor of data type %d and rank %d", (int)dtype, (int)ndim);
    relax_status st = rx_tensor_new(ctx, dtype, dims, ndim, &t);
    if (st != RELAX_OK) return st;
    if (t->bytes) memset(t->data, 0, (size_t)t->bytes);
    *out = (relax_any){ .kind = RELAX_ANY_TENSOR, .u.obj = &t->h };
    return RELAX_OK;
}

relax_status relax_shape_create(relax_context *ctx, const int64_t *dims, int32_t ndim, relax_any *out)
{
    if (!rx_ctx_ok(ctx)) return RELAX_E_INVALID;
    if (!out || (ndim > 0 && !dims)) return api_null(ctx, out ? "dims" : "out");
    if (ndim < 0 || ndim > RX_PKG_MAX_NDIM)
        return rx_error(ctx, RXE_BAD_VALUE, NULL, NULL, "a shape of rank %d; at most %d", (int)ndim, RX_PKG_MAX_NDIM);
    rx_shape *s = rx_shape_new(rx_memfn_of(ctx), dims, ndim);
    if (!s) return rx_error(ctx, RXE_OOM, NULL, NULL, "out of memory");
    *out = (relax_any){ .kind = RELAX_ANY_SHAPE, .u.obj = &s->h };
    return RELAX_OK;
}

relax_status relax_tuple_create(relax_context *ctx, const relax_any *fields, uint32_t n, relax_any *out)
{
    if (!rx_ctx_ok(ctx)) return RELAX_E_INVALID;
    if (!out || (n && !fields)) return api_null(ctx, out ? "fields" : "out");
    for (uint32_t i = 0; i < n; i++)
        if (fields[i].kind == RELAX_ANY_DLTENSOR)
            return rx_error(ctx, RXE_ARG_KIND, NULL, "import it with relax_any_from_dlpack",
                            "field %u is a lent tensor", i);
    rx_tuple *t = n > INT32_MAX ? NULL : rx_tuple_new(rx_memfn_of(ctx), fields, (int32_t)n);
    if (!t) return rx_error(ctx, RXE_OOM, NULL, NULL, "out of memory");
    *out = (relax_any){ .kind = RELAX_ANY_TUPLE, .u.obj = &t->h };
    return RELAX_OK;
}
