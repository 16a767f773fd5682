/* sort.c: sorting and operators whose result has as many elements as the values say. They are library functions of the
 * runtime
 * ("rx.sort", …), so only deduction is here. Attributes reach them as i64 arguments; see docs/semantics.md. */
#include "op/impl.h"

rx_ty rx_deduce_sort(rx_call *c)
{
    rx_ty t = rx_arg_tensor(c, 0);
    rx_norm_axis(c, rx_attr_int(&c->attrs, "axis", -1), t->ndim);
    return t;
}

static void index_dtype(rx_call *c, relax_dtype t)
{
    if (t != RELAX_I32 && t != RELAX_I64)
        rx_fail_op(c, RXE_DTYPE, "indices are i32 or i64, not %s", rx_dtypes[t].name);
}

rx_ty rx_deduce_argsort(rx_call *c)
{
    rx_ty t = rx_arg_tensor(c, 0);
    rx_norm_axis(c, rx_attr_int(&c->attrs, "axis", -1), t->ndim);
    relax_dtype dt = rx_attr_dtype(&c->attrs, "dtype", RELAX_I64);
    index_dtype(c, dt);
    return rx_retype(c, t, dt);
}

rx_ty rx_deduce_topk(rx_call *c)
{
    relax_context *ctx = c->ctx;
    rx_ty t = rx_arg_tensor(c, 0);
    const char *ret = rx_attr_str(&c->attrs, "ret_type", "both");
    bool both = strcmp(ret, "both") == 0, values = strcmp(ret, "values") == 0;
    if (!both && !values && strcmp(ret, "indices"))
        rx_fail_op(c, RXE_ATTR, "ret_type is both, values or indices, not %s", ret);
    relax_dtype dt = rx_attr_dtype(&c->attrs, "dtype", RELAX_I64);
    index_dtype(c, dt);
    int64_t k = rx_attr_int(&c->attrs, "k", 1);
    int32_t axis = rx_norm_axis(c, rx_attr_int(&c->attrs, "axis", -1), t->ndim);
    if (t->known && k >= 1) {
        rx_ex *d = rx_arena_dup(c->a, t->dims, (size_t)t->ndim * sizeof *t->dims);
        int64_t len;
        if (rx_is_int(d[axis], &len)) {
            d[axis] = rx_int(ctx, RX_MIN(len, k));
        } else {
            rx_require_cond(c, rx_le(ctx, rx_int(ctx, k), d[axis]), "k elements are there");
            d[axis] = rx_int(ctx, k);
        }
        t = rx_ty_tensor(ctx, d, t->ndim, t->dtype);
    }
    rx_ty pair[] = { t, rx_retype(c, t, dt) };
    return both ? rx_ty_tuple(ctx, pair, 2) : values ? pair[0] : pair[1];
}

rx_ty rx_deduce_unique(rx_call *c)
{
    relax_context *ctx = c->ctx;
    rx_ty t = rx_arg_tensor(c, 0), out[4];
    const rx_attr *a = rx_attr_get(&c->attrs, "axis");
    if (a)
        rx_norm_axis(c, a->u.i, t->ndim);
    uint32_t n = 1;
    rx_ex one = rx_int(ctx, 1);
    bool scalar = t->ndim == 0;
    out[0] = scalar ? rx_ty_tensor(ctx, &one, 1, t->dtype) : rx_ty_tensor_ndim(ctx, a ? t->ndim : 1, t->dtype);
    rx_ty ix = scalar ? rx_ty_tensor(ctx, &one, 1, RELAX_I64) : rx_ty_tensor_ndim(ctx, 1, RELAX_I64);
    static const char *const keys[] = { "return_index", "return_inverse", "return_counts" };
    for (uint32_t i = 0; i < RX_COUNT(keys); i++)
        if (rx_attr_int(&c->attrs, keys[i], 0))
            out[n++] = ix;
    return n == 1 ? out[0] : rx_ty_tuple(ctx, out, n);
}

rx_ty rx_deduce_nonzero(rx_call *c)
{
    rx_arg_tensor(c, 0);
    return rx_ty_tensor_ndim(c->ctx, 2, RELAX_I64);
}
