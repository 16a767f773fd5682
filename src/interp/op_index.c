/* op_index.c: reading and writing by index. */
#include "interp/impl.h"

#include <math.h>

static int64_t index_at(const rx_opx *o, const rx_ival *t, int64_t i, int64_t extent, const char *mode)
{
    return rx_checked_index(o, rx_geti(t, i), rx_dtype_is_uint(t->dtype), extent, mode);
}

void rx_x_take(rx_opx *o)
{
    const rx_ival *x = o->x[0], *ix = o->x[1];
    const char *mode = rx_attr_str(o->attrs, "mode", "check");
    rx_ival *y = o->y;
    int32_t axis = rx_axis(rx_iattr(o, "axis", 0), x->ndim);
    int64_t at[RX_MAX_RANK], from[RX_MAX_RANK];
    if (ix->kind == RX_I_PRIM)
        ix = rx_ival_tensor(o->ctx, o->a, ix->dtype, NULL, 0, &ix->bits);
    for (int64_t i = 0; i < rx_ival_count(y); i++) {
        rx_index(y->dims, y->ndim, i, at);
        for (int32_t k = 0; k < x->ndim; k++) {
            if (k == axis)
                from[k] = index_at(o, ix, rx_offset(ix->dims, ix->ndim, at + axis), x->dims[k], mode);
            else
                from[k] = k < axis ? at[k] : at[k + ix->ndim - 1];
        }
        rx_put(y, i, x, rx_offset(x->dims, x->ndim, from));
    }
}

/* --- slices --- */

/* first index and number of elements of begin:end:stride over an axis, as NumPy counts */
static int64_t slice_of(int64_t n, int64_t begin, int64_t end, int64_t stride, bool inbound, int64_t *first)
{
    int64_t lo = stride < 0 ? -1 : 0, hi = stride < 0 ? n - 1 : n;
    if (!inbound) {
        begin = begin < 0 ? begin + n : begin;
        end = end < 0 ? end + n : end;
        begin = RX_MIN(RX_MAX(begin, lo), hi);
        end = RX_MIN(RX_MAX(end, lo), hi);
    }
    *first = begin;
    if (stride > 0)
        return end > begin ? (end - begin - 1) / stride + 1 : 0;
    return begin > end ? (begin - end - 1) / -RX_MAX(stride, -INT64_MAX) + 1 : 0;
}

static void copy_slice(rx_ival *y, const rx_ival *x, const int64_t *first, const int64_t *stride)
{
    int64_t at[RX_MAX_RANK];
    for (int64_t i = 0; i < rx_ival_count(y); i++) {
        rx_index(y->dims, y->ndim, i, at);
        for (int32_t k = 0; k < y->ndim; k++)
            at[k] = first[k] + at[k] * stride[k];
        rx_put(y, i, x, rx_offset(x->dims, x->ndim, at));
    }
}

static int64_t attr_at(const rx_opx *o, const char *key, uint32_t i, int64_t absent)
{
    const rx_attr *a = rx_attr_get(o->attrs, key);
    int64_t v = absent;
    if (a)
        rx_is_int(a->u.exprs.at[i], &v);
    return v;
}

void rx_x_slice(rx_opx *o)
{
    const rx_ival *x = o->x[0];
    const rx_attr *axes = rx_attr_get(o->attrs, "axes");
    int64_t first[RX_MAX_RANK] = {0}, stride[RX_MAX_RANK];
    for (int32_t i = 0; i < x->ndim; i++)
        stride[i] = 1;
    for (uint32_t i = 0; i < axes->u.ints.n; i++) {
        int32_t k = rx_axis(axes->u.ints.at[i], x->ndim);
        stride[k] = attr_at(o, "strides", i, 1);
        slice_of(x->dims[k], attr_at(o, "begin", i, 0), attr_at(o, "end", i, 0), stride[k],
                 rx_iattr(o, "assume_inbound", 0) != 0, &first[k]);
    }
    copy_slice(o->y, x, first, stride);
}

void rx_x_dyn_slice(rx_opx *o)
{
    const rx_ival *x = o->x[0];
    int64_t first[RX_MAX_RANK], stride[RX_MAX_RANK], dims[RX_MAX_RANK];
    for (int32_t i = 0; i < x->ndim; i++) {
        stride[i] = rx_geti(o->x[3], i);
        if (stride[i] == 0)
            rx_opx_fail(o, RXE_BAD_VALUE, "the stride of axis %d is 0", i);
        dims[i] = slice_of(x->dims[i], rx_geti(o->x[1], i), rx_geti(o->x[2], i), stride[i], false, &first[i]);
    }
    o->y = rx_ival_tensor(o->ctx, o->a, x->dtype, dims, x->ndim, NULL);
    copy_slice(o->y, x, first, stride);
}

/* --- gathers --- */

void rx_x_gather_elements(rx_opx *o)
{
    const rx_ival *x = o->x[0], *ix = o->x[1];
    int32_t axis = rx_axis(rx_iattr(o, "axis", 0), x->ndim);
    int64_t at[RX_MAX_RANK];
    for (int64_t i = 0; i < rx_ival_count(o->y); i++) {
        rx_index(o->y->dims, x->ndim, i, at);
        at[axis] = index_at(o, ix, i, x->dims[axis], "check");
        rx_put(o->y, i, x, rx_offset(x->dims, x->ndim, at));
    }
}

void rx_x_gather_nd(rx_opx *o)
{
    const rx_ival *x = o->x[0], *ix = o->x[1];
    int32_t batch = (int32_t)rx_iattr(o, "batch_dims", 0), lead = ix->ndim - 1, k = (int32_t)ix->dims[lead];
    int64_t at[RX_MAX_RANK], from[RX_MAX_RANK];
    for (int64_t i = 0; i < rx_ival_count(o->y); i++) {
        rx_index(o->y->dims, o->y->ndim, i, at);
        int64_t tuple = rx_offset(ix->dims, lead, at) * k;
        for (int32_t d = 0; d < x->ndim; d++)
            from[d] = d < batch       ? at[d]
                      : d < batch + k ? index_at(o, ix, tuple + d - batch, x->dims[d], "check")
                                      : at[lead + d - batch - k];
        rx_put(o->y, i, x, rx_offset(x->dims, x->ndim, from));
    }
}

/* --- scatters: a copy, then the updates in row-major order --- */

static void copy_all(rx_ival *y, const rx_ival *x)
{
    if (y->bytes)
        memcpy(y->data, x->data, y->bytes);
}

static void update(rx_opx *o, const char *how, int64_t at, const rx_ival *u, int64_t i)
{
    rx_ival *y = o->y;
    if (!strcmp(how, "update")) {
        rx_put(y, at, u, i);
    } else if (rx_dtype_is_float(y->dtype)) {
        double a = rx_getf(y, at), b = rx_getf(u, i);
        bool nan = isnan(a) || isnan(b);
        double r = !strcmp(how, "add")   ? a + b
                   : !strcmp(how, "mul") ? a * b
                   : nan                 ? NAN
                   : !strcmp(how, "min") ? fmin(a, b)
                                         : fmax(a, b);
        rx_setf(y, at, r);
    } else {
        int64_t a = rx_geti(y, at), b = rx_geti(u, i);
        bool less = y->dtype == RELAX_U64 ? (uint64_t)b < (uint64_t)a : b < a;
        uint64_t sum = !strcmp(how, "add") ? (uint64_t)a + (uint64_t)b : (uint64_t)a * (uint64_t)b;
        rx_seti(y, at, !strcmp(how, "min") ? (less ? b : a) : !strcmp(how, "max") ? (less ? a : b) : (int64_t)sum);
    }
}

void rx_x_scatter_elements(rx_opx *o)
{
    const rx_ival *x = o->x[0], *ix = o->x[1], *u = o->x[2];
    const char *how = rx_attr_str(o->attrs, "reduction", "update");
    int32_t axis = rx_axis(rx_iattr(o, "axis", 0), x->ndim);
    int64_t at[RX_MAX_RANK];
    copy_all(o->y, x);
    for (int64_t i = 0; i < rx_ival_count(ix); i++) {
        rx_index(ix->dims, ix->ndim, i, at);
        at[axis] = index_at(o, ix, i, x->dims[axis], "check");
        update(o, how, rx_offset(x->dims, x->ndim, at), u, i);
    }
}

void rx_x_scatter_nd(rx_opx *o)
{
    const rx_ival *x = o->x[0], *ix = o->x[1], *u = o->x[2];
    const char *how = rx_attr_str(o->attrs, "reduction", "update");
    int32_t lead = ix->ndim - 1, k = (int32_t)ix->dims[lead];
    int64_t at[RX_MAX_RANK], to[RX_MAX_RANK];
    copy_all(o->y, x);
    for (int64_t i = 0; i < rx_ival_count(u); i++) {
        rx_index(u->dims, u->ndim, i, at);
        int64_t tuple = rx_offset(ix->dims, lead, at) * k;
        for (int32_t d = 0; d < x->ndim; d++)
            to[d] = d < k ? index_at(o, ix, tuple + d, x->dims[d], "check") : at[lead + d - k];
        update(o, how, rx_offset(x->dims, x->ndim, to), u, i);
    }
}

void rx_x_index_put(rx_opx *o)
{
    const rx_ival *x = o->x[0], *u = o->x[1];
    uint32_t n;
    rx_ival *const *ix = rx_spread(o, 2, &n);
    const char *how = rx_iattr(o, "accumulate", 0) ? "add" : "update";
    int32_t lead = 0, rest = x->ndim - (int32_t)n;
    int64_t dims[2 * RX_MAX_RANK], at[2 * RX_MAX_RANK], to[RX_MAX_RANK], total = 1;
    for (uint32_t i = 0; i < n; i++)
        lead = RX_MAX(lead, ix[i]->ndim);
    for (int32_t k = 0; k < lead + rest; k++) {
        dims[k] = k < lead ? 1 : x->dims[k - lead + (int32_t)n];
        for (uint32_t i = 0; i < n && k < lead; i++) {
            int32_t m = k - (lead - ix[i]->ndim);
            if (m >= 0 && ix[i]->dims[m] != 1)
                dims[k] = ix[i]->dims[m];
        }
        total *= dims[k];
    }
    copy_all(o->y, x);
    for (int64_t i = 0; i < total; i++) {
        rx_index(dims, lead + rest, i, at);
        for (int32_t d = 0; d < x->ndim; d++)
            to[d] = d < (int32_t)n ? index_at(o, ix[d], rx_bcast(ix[d], at, lead), x->dims[d], "check")
                                   : at[lead + d - (int32_t)n];
        update(o, how, rx_offset(x->dims, x->ndim, to), u, rx_bcast(u, at, lead + rest));
    }
}
