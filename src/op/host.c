/* host.c: shapes as values. These run in the VM's shape program; there is no tensor program. */
#include "op/impl.h"

rx_ty rx_deduce_shape_of(rx_call *c)
{
    rx_ty t = rx_arg_tensor(c, 0);
    return t->known ? rx_ty_shape(c->ctx, t->dims, t->ndim) : rx_ty_shape_ndim(c->ctx, t->ndim);
}

rx_ty rx_deduce_shape_to_tensor(rx_call *c)
{
    rx_ty s = rx_arg_shape(c, 0);
    if (s->ndim < 0)
        return rx_ty_tensor_ndim(c->ctx, 1, RELAX_I64);
    rx_ex n = rx_int(c->ctx, s->ndim);
    return rx_ty_tensor(c->ctx, &n, 1, RELAX_I64);
}

rx_ty rx_deduce_tensor_to_shape(rx_call *c)
{
    rx_ty t = rx_arg_tensor(c, 0);
    if (t->dtype != RELAX_I64 && t->dtype != RELAX_DTYPE_UNKNOWN)
        rx_fail_op(c, RXE_DTYPE, "extents must be i64, not %s", rx_dtypes[t->dtype].name);
    if (t->ndim >= 0 && t->ndim != 1)
        rx_fail_op(c, RXE_RANK, "extents must be of rank 1, not %d", t->ndim);
    int64_t n = t->known ? rx_const_dim(t->dims[0], -1) : -1;
    if (n > RX_MAX_NDIM)
        rx_fail_op(c, RXE_RANK, "more than %d extents", RX_MAX_NDIM);
    return rx_ty_shape_ndim(c->ctx, (int32_t)n);
}
