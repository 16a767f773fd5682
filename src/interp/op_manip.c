/* op_manip.c: the same elements under another shape or order. Results are copies: the interpreter has no views but
 * those of lowering. */
#include "interp/impl.h"

void rx_x_copy(rx_opx *o)
{
    if (o->y->bytes)
        memcpy(o->y->data, o->x[0]->data, o->y->bytes);
}

void rx_x_permute(rx_opx *o)
{
    const rx_ival *x = o->x[0];
    const rx_attr *axes = rx_attr_get(o->attrs, "axes");
    int64_t at[RX_MAX_RANK], from[RX_MAX_RANK];
    for (int64_t i = 0; i < rx_ival_count(o->y); i++) {
        rx_index(o->y->dims, x->ndim, i, at);
        for (int32_t k = 0; k < x->ndim; k++)
            from[axes ? rx_axis(axes->u.ints.at[k], x->ndim) : x->ndim - 1 - k] = at[k];
        rx_put(o->y, i, x, rx_offset(x->dims, x->ndim, from));
    }
}

void rx_x_broadcast(rx_opx *o)
{
    int64_t at[RX_MAX_RANK];
    for (int64_t i = 0; i < rx_ival_count(o->y); i++) {
        rx_index(o->y->dims, o->y->ndim, i, at);
        rx_put(o->y, i, o->x[0], rx_bcast(o->x[0], at, o->y->ndim));
    }
}

void rx_x_concat(rx_opx *o)
{
    uint32_t n;
    rx_ival *const *x = rx_spread(o, 0, &n);
    int32_t axis = rx_axis(rx_iattr(o, "axis", 0), o->y->ndim);
    int64_t at[RX_MAX_RANK], before = 0;
    for (uint32_t p = 0; p < n; before += x[p++]->dims[axis])
        for (int64_t i = 0; i < rx_ival_count(x[p]); i++) {
            rx_index(x[p]->dims, x[p]->ndim, i, at);
            at[axis] += before;
            rx_put(o->y, rx_offset(o->y->dims, o->y->ndim, at), x[p], i);
        }
}

void rx_x_stack(rx_opx *o)
{
    uint32_t n;
    rx_ival *const *x = rx_spread(o, 0, &n);
    int32_t axis = rx_axis(rx_iattr(o, "axis", 0), o->y->ndim);
    int64_t at[RX_MAX_RANK], to[RX_MAX_RANK];
    for (uint32_t p = 0; p < n; p++)
        for (int64_t i = 0; i < rx_ival_count(x[p]); i++) {
            rx_index(x[p]->dims, x[p]->ndim, i, at);
            for (int32_t k = 0, m = 0; k < o->y->ndim; k++)
                to[k] = k == axis ? p : at[m++];
            rx_put(o->y, rx_offset(o->y->dims, o->y->ndim, to), x[p], i);
        }
}

/* where a part begins: cut points of the attribute, or multiples of the ceiling of extent / sections */
static int64_t begin_of(const rx_opx *o, uint32_t part, int64_t extent)
{
    const rx_attr *cuts = rx_attr_get(o->attrs, "indices");
    if (part == 0)
        return 0;
    if (cuts)
        return RX_MIN(RX_MAX(cuts->u.ints.at[part - 1], 0), extent);
    int64_t n = rx_iattr(o, "sections", 1);
    return RX_MIN((extent + n - 1) / n * part, extent);
}

void rx_x_split(rx_opx *o)
{
    const rx_ival *x = o->x[0];
    int32_t axis = rx_axis(rx_iattr(o, "axis", 0), x->ndim);
    uint32_t n = o->y->kind == RX_I_TUPLE ? o->y->n : 1;
    int64_t at[RX_MAX_RANK];
    for (uint32_t p = 0; p < n; p++) {
        rx_ival *y = o->y->kind == RX_I_TUPLE ? o->y->at[p] : o->y;
        for (int64_t i = 0; i < rx_ival_count(y); i++) {
            rx_index(y->dims, y->ndim, i, at);
            at[axis] += begin_of(o, p, x->dims[axis]);
            rx_put(y, i, x, rx_offset(x->dims, x->ndim, at));
        }
    }
}

void rx_x_tile(rx_opx *o)
{
    const rx_ival *x = o->x[0];
    int64_t at[RX_MAX_RANK], from[RX_MAX_RANK];
    for (int64_t i = 0; i < rx_ival_count(o->y); i++) {
        rx_index(o->y->dims, o->y->ndim, i, at);
        for (int32_t k = 0; k < x->ndim; k++)
            from[k] = at[k + o->y->ndim - x->ndim] % x->dims[k];
        rx_put(o->y, i, x, rx_offset(x->dims, x->ndim, from));
    }
}

void rx_x_repeat(rx_opx *o)
{
    const rx_ival *x = o->x[0];
    int64_t r = rx_iattr(o, "repeats", 1), at[RX_MAX_RANK];
    bool flat = !rx_attr_get(o->attrs, "axis");
    int32_t axis = flat ? 0 : rx_axis(rx_iattr(o, "axis", 0), x->ndim);
    for (int64_t i = 0; i < rx_ival_count(o->y); i++) {
        rx_index(o->y->dims, o->y->ndim, i, at);
        at[axis] /= r;
        rx_put(o->y, i, x, flat ? at[0] : rx_offset(x->dims, x->ndim, at));
    }
}

void rx_x_flip(rx_opx *o)
{
    const rx_ival *x = o->x[0];
    int32_t axis = rx_axis(rx_iattr(o, "axis", 0), x->ndim);
    int64_t at[RX_MAX_RANK];
    for (int64_t i = 0; i < rx_ival_count(x); i++) {
        rx_index(x->dims, x->ndim, i, at);
        at[axis] = x->dims[axis] - 1 - at[axis];
        rx_put(o->y, i, x, rx_offset(x->dims, x->ndim, at));
    }
}
