/* op_reduce.c: reductions over axes and running sums. Sums are taken in f64 and rounded once; integers wrap. Over
 * nothing: sum 0, product 1, max the lowest value, min the highest, mean and variance NaN, argmax and argmin -1. NaN
 * wins. */
#include "interp/impl.h"

#include <math.h>

typedef struct red {
    bool in[RX_MAX_RANK];              /* axis is reduced */
    int64_t *group;                    /* element of x -> element of the result */
    int64_t groups;
    int64_t *place;                    /* element of x -> row-major position among its group */
} red;

static void mark_axes(const rx_opx *o, bool *in)
{
    const rx_attr *a = rx_attr_get(o->attrs, "axis");
    int32_t n = o->x[0]->ndim;
    for (int32_t i = 0; i < n; i++)
        in[i] = !a;
    if (a && a->kind == RX_A_INTS)
        for (uint32_t i = 0; i < a->u.ints.n; i++)
            in[rx_axis(a->u.ints.at[i], n)] = true;
    else if (a)
        in[rx_axis(a->u.i, n)] = true;
}

static red groups_of(const rx_opx *o)
{
    const rx_ival *x = o->x[0];
    red r = {.groups = 1};
    int64_t n = rx_ival_count(x), ix[RX_MAX_RANK];
    mark_axes(o, r.in);
    r.group = RX_NEWN(o->a, int64_t, (size_t)n + 1);
    r.place = RX_NEWN(o->a, int64_t, (size_t)n + 1);
    for (int32_t k = 0; k < x->ndim; k++)
        r.groups *= r.in[k] ? 1 : x->dims[k];
    for (int64_t i = 0; i < n; i++) {
        rx_index(x->dims, x->ndim, i, ix);
        for (int32_t k = 0; k < x->ndim; k++) {
            int64_t *to = r.in[k] ? &r.place[i] : &r.group[i];
            *to = *to * x->dims[k] + ix[k];
        }
    }
    return r;
}

static double real_start(rx_opcode c)
{
    return c == RX_OP_PROD ? 1 : c == RX_OP_MAX ? -INFINITY : c == RX_OP_MIN ? INFINITY : 0;
}

static double real_step(rx_opcode c, double s, double x)
{
    switch (c) {
    case RX_OP_PROD: return s * x;
    case RX_OP_MAX: return isnan(s) || isnan(x) ? NAN : x > s ? x : s;
    case RX_OP_MIN: return isnan(s) || isnan(x) ? NAN : x < s ? x : s;
    default: return s + x;
    }
}

static void reduce_real(rx_opx *o, const red *r)
{
    const rx_ival *x = o->x[0];
    rx_opcode c = (rx_opcode)o->op->code;
    int64_t n = rx_ival_count(x), count = r->groups ? n / r->groups : 0;
    double *s = RX_NEWN(o->a, double, (size_t)r->groups + 1), *q = RX_NEWN(o->a, double, (size_t)r->groups + 1);
    for (int64_t g = 0; g < r->groups; g++)
        s[g] = real_start(c);
    for (int64_t i = 0; i < n; i++)
        s[r->group[i]] = real_step(c, s[r->group[i]], rx_getf(x, i));
    for (int64_t g = 0; g < r->groups && (c == RX_OP_MEAN || c == RX_OP_VARIANCE); g++)
        s[g] /= (double)count;
    for (int64_t i = 0; i < n; i++) {
        double d = rx_getf(x, i) - s[r->group[i]];
        q[r->group[i]] += d * d;
    }
    for (int64_t g = 0; g < r->groups; g++)
        rx_setf(o->y, g, c == RX_OP_VARIANCE ? q[g] / (double)count : s[g]);
}

static void reduce_int(rx_opx *o, const red *r)
{
    const rx_ival *x = o->x[0];
    rx_opcode c = (rx_opcode)o->op->code;
    int64_t lo, hi;
    rx_dtype_int_range(x->dtype, &lo, &hi);
    if (x->dtype == RELAX_U64)
        hi = -1;
    if (x->dtype == RELAX_BOOL)
        lo = 0, hi = 1;
    for (int64_t g = 0; g < r->groups; g++)
        rx_seti(o->y, g, c == RX_OP_PROD ? 1 : c == RX_OP_MAX ? lo : c == RX_OP_MIN ? hi : 0);
    for (int64_t i = 0; i < rx_ival_count(x); i++) {
        int64_t g = r->group[i], s = rx_geti(o->y, g), v = rx_geti(x, i);
        bool less = x->dtype == RELAX_U64 ? (uint64_t)v < (uint64_t)s : v < s;
        if (c == RX_OP_MAX || c == RX_OP_MIN)
            s = less == (c == RX_OP_MIN) ? v : s;
        else
            s = (int64_t)(c == RX_OP_PROD ? (uint64_t)s * (uint64_t)v : (uint64_t)s + (uint64_t)v);
        rx_seti(o->y, g, s);
    }
}

void rx_x_reduce(rx_opx *o)
{
    red r = groups_of(o);
    if (rx_dtype_is_float(o->x[0]->dtype))
        reduce_real(o, &r);
    else
        reduce_int(o, &r);
}

/* is element i of x a better one than element k? */
static bool better(const rx_opx *o, const rx_ival *x, int64_t i, int64_t k)
{
    bool max = o->op->code == RX_OP_ARGMAX;
    if (rx_dtype_is_float(x->dtype)) {
        double a = rx_getf(x, i), b = rx_getf(x, k);
        return isnan(b) ? false : isnan(a) || (max ? a > b : a < b);
    }
    int64_t a = rx_geti(x, i), b = rx_geti(x, k);
    if (x->dtype == RELAX_U64)
        return max ? (uint64_t)a > (uint64_t)b : (uint64_t)a < (uint64_t)b;
    return max ? a > b : a < b;
}

void rx_x_argreduce(rx_opx *o)
{
    const rx_ival *x = o->x[0];
    red r = groups_of(o);
    int64_t *best = RX_NEWN(o->a, int64_t, (size_t)r.groups + 1);
    for (int64_t g = 0; g < r.groups; g++)
        best[g] = -1;
    for (int64_t i = 0; i < rx_ival_count(x); i++)
        if (best[r.group[i]] < 0 || better(o, x, i, best[r.group[i]]))
            best[r.group[i]] = i;
    for (int64_t g = 0; g < r.groups; g++)
        rx_seti(o->y, g, best[g] < 0 ? -1 : r.place[best[g]]);
}

void rx_x_cumsum(rx_opx *o)
{
    const rx_ival *x = o->x[0];
    red r = groups_of(o);
    bool real = rx_dtype_is_float(o->y->dtype), before = rx_iattr(o, "exclusive", 0) != 0;
    double *s = RX_NEWN(o->a, double, (size_t)r.groups + 1);
    int64_t *k = RX_NEWN(o->a, int64_t, (size_t)r.groups + 1);
    for (int64_t i = 0; i < rx_ival_count(x); i++) {
        int64_t g = r.group[i], as_int = 0;
        if (!real) {
            rx_convert(o->y->dtype, &as_int, x->dtype, rx_el(x, i));
            as_int = rx_load_i64(o->y->dtype, &as_int);
        }
        if (before)
            real ? rx_setf(o->y, i, s[g]) : rx_seti(o->y, i, k[g]);
        s[g] += real ? rx_getf(x, i) : 0;
        k[g] = (int64_t)((uint64_t)k[g] + (uint64_t)as_int);
        if (!before)
            real ? rx_setf(o->y, i, s[g]) : rx_seti(o->y, i, k[g]);
    }
}
