/* op_create.c: tensors from nothing, and shapes as values. */
#include "interp/impl.h"

#include <math.h>

void rx_x_full(rx_opx *o)
{
    const rx_ival *v = o->x[1];
    const void *p = v->kind == RX_I_PRIM ? (const void *)&v->bits : v->data;
    for (int64_t i = 0; i < rx_ival_count(o->y); i++)
        rx_convert(o->y->dtype, rx_el(o->y, i), v->dtype, p);
}

void rx_x_fill(rx_opx *o)
{
    for (int64_t i = 0; i < rx_ival_count(o->y); i++)
        rx_seti(o->y, i, o->op->code == RX_OP_ONES || o->op->code == RX_OP_ONES_LIKE);
    for (int64_t i = 0; i < rx_ival_count(o->y) && rx_dtype_is_float(o->y->dtype); i++)
        rx_setf(o->y, i, o->op->code == RX_OP_ONES || o->op->code == RX_OP_ONES_LIKE);
}

/* a constant attribute as a number */
static double number(const rx_opx *o, const char *key, double absent)
{
    const rx_attr *a = rx_attr_get(o->attrs, key);
    int64_t v;
    if (!a)
        return absent;
    return rx_is_int(a->u.e, &v) ? (double)v : a->u.e->u.f;
}

static int64_t integer(const rx_opx *o, const char *key, int64_t absent)
{
    const rx_attr *a = rx_attr_get(o->attrs, key);
    int64_t v = absent;
    return a && rx_is_int(a->u.e, &v) ? v : absent;
}

static bool is_real(const rx_opx *o, const char *key)
{
    const rx_attr *a = rx_attr_get(o->attrs, key);
    return a && rx_dtype_is_float(a->u.e->dtype);
}

void rx_x_arange(rx_opx *o)
{
    bool real = is_real(o, "start") || is_real(o, "end") || is_real(o, "step");
    for (int64_t i = 0; i < rx_ival_count(o->y); i++) {
        double f = number(o, "start", 0) + (double)i * number(o, "step", 1);
        int64_t k = integer(o, "start", 0) + i * integer(o, "step", 1);
        if (real)
            rx_convert(o->y->dtype, rx_el(o->y, i), RELAX_F64, &f);
        else
            rx_convert(o->y->dtype, rx_el(o->y, i), RELAX_I64, &k);
    }
}

static void set_number(rx_ival *t, int64_t i, double v)
{
    rx_convert(t->dtype, rx_el(t, i), RELAX_F64, &v);
}

void rx_x_eye(rx_opx *o)
{
    int64_t ix[RX_MAX_RANK], k = integer(o, "k", 0);
    for (int64_t i = 0; i < rx_ival_count(o->y); i++) {
        rx_index(o->y->dims, 2, i, ix);
        set_number(o->y, i, ix[1] - ix[0] == k);
    }
}

void rx_x_tri(rx_opx *o)
{
    int64_t ix[RX_MAX_RANK], k = integer(o, "k", 0);
    int32_t n = o->y->ndim;
    for (int64_t i = 0; i < rx_ival_count(o->y); i++) {
        rx_index(o->y->dims, n, i, ix);
        int64_t d = ix[n - 1] - ix[n - 2];
        if (o->op->code == RX_OP_TRIL ? d <= k : d >= k)
            rx_put(o->y, i, o->x[0], i);
        else
            set_number(o->y, i, 0);
    }
}

void rx_x_one_hot(rx_opx *o)
{
    int32_t n = o->y->ndim, axis = rx_axis(rx_iattr(o, "axis", -1), n);
    int64_t ix[RX_MAX_RANK], from[RX_MAX_RANK];
    for (int64_t i = 0; i < rx_ival_count(o->y); i++) {
        rx_index(o->y->dims, n, i, ix);
        for (int32_t k = 0, m = 0; k < n; k++)
            if (k != axis)
                from[m++] = ix[k];
        bool on = rx_geti(o->x[0], rx_offset(o->x[0]->dims, n - 1, from)) == ix[axis];
        set_number(o->y, i, number(o, on ? "on_value" : "off_value", on));
    }
}

/* --- shapes as values --- */

void rx_x_shape_of(rx_opx *o)
{
    o->y = rx_ival_shape(o->a, o->x[0]->dims, o->x[0]->ndim);
}

void rx_x_shape_to_tensor(rx_opx *o)
{
    for (int64_t i = 0; i < rx_ival_count(o->y); i++)
        rx_seti(o->y, i, o->x[0]->dims[i]);
}

void rx_x_tensor_to_shape(rx_opx *o)
{
    const rx_ival *x = o->x[0];
    int64_t n = rx_ival_count(x), d[RX_MAX_RANK];
    if (n > RX_MAX_RANK)
        rx_opx_fail(o, RXE_LIMIT, "%lld extents are too many", (long long)n);
    for (int64_t i = 0; i < n; i++) {
        d[i] = rx_geti(x, i);
        if (d[i] < 0)
            rx_opx_fail(o, RXE_BAD_VALUE, "extent %lld is negative", (long long)d[i]);
    }
    o->y = rx_ival_shape(o->a, d, (int32_t)n);
}
