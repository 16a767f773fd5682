/* reduce.c: reductions over axes, arg-reductions, running sums.
 *
 * Accumulation is in the compute dtype (f32 for f16 and bf16), in row-major order of the reduced axes. Over nothing:
 * sum 0, product 1, max the smallest value (-inf), min the largest, mean and variance NaN, argmax and argmin -1. */
#include <math.h>
#include "op/impl.h"

/* result of reducing the axes in `in` of t */
static rx_ty reduced(rx_call *c, rx_ty t, const bool *in, bool all, bool keep, relax_dtype dt)
{
    relax_context *ctx = c->ctx;
    if (all && !keep)
        return rx_ty_tensor(ctx, NULL, 0, dt);
    if (t->ndim < 0)
        return rx_ty_tensor_ndim(ctx, -1, dt);
    rx_ex *d = RX_NEWN(c->a, rx_ex, t->ndim + 1);
    int32_t n = 0;
    bool known = t->known || all;
    for (int32_t i = 0; i < t->ndim; i++) {
        if (in[i] && keep)
            d[n++] = rx_int(ctx, 1);
        else if (!in[i])
            d[n++] = t->known ? t->dims[i] : NULL;
    }
    return known ? rx_ty_tensor(ctx, d, n, dt) : rx_ty_tensor_ndim(ctx, n, dt);
}

rx_ty rx_deduce_reduce(rx_call *c)
{
    rx_ty t = rx_arg_tensor(c, 0);
    int32_t code = c->op->code;
    if (code != RX_OP_MAX && code != RX_OP_MIN)
        rx_want_number(c, t->dtype, "elements");
    if (code == RX_OP_MEAN || code == RX_OP_VARIANCE)
        rx_want_float(c, t->dtype, "elements");
    const rx_attr *axis = rx_attr_get(&c->attrs, "axis");
    const bool *in = t->ndim >= 0 ? rx_norm_axes(c, axis, t->ndim) : NULL;
    return reduced(c, t, in, !axis, rx_attr_int(&c->attrs, "keepdims", 0) != 0, t->dtype);
}

/* the axes of an INT attribute that is one axis or, absent, all */
static bool *one_axis(rx_call *c, int32_t ndim, bool *all)
{
    const rx_attr *axis = rx_attr_get(&c->attrs, "axis");
    *all = !axis;
    if (ndim < 0)
        return NULL;
    if (!axis)
        return rx_norm_axes(c, NULL, ndim);
    bool *in = RX_NEWN(c->a, bool, ndim + 1);
    in[rx_norm_axis(c, axis->u.i, ndim)] = true;
    return in;
}

rx_ty rx_deduce_argreduce(rx_call *c)
{
    rx_ty t = rx_arg_tensor(c, 0);
    bool all, *in = one_axis(c, t->ndim, &all);
    return reduced(c, t, in, all, rx_attr_int(&c->attrs, "keepdims", 0) != 0, RELAX_I64);
}

rx_ty rx_deduce_cumsum(rx_call *c)
{
    rx_ty t = rx_arg_tensor(c, 0);
    rx_want_number(c, t->dtype, "elements");
    relax_dtype dt = rx_attr_dtype(&c->attrs, "dtype", t->dtype);
    rx_want_number(c, dt, "sums");
    const rx_attr *axis = rx_attr_get(&c->attrs, "axis");
    if (axis) {
        rx_norm_axis(c, axis->u.i, t->ndim);
        return rx_retype(c, t, dt);
    }
    rx_ex n = t->known ? rx_elements(c->ctx, t) : NULL;
    return t->known ? rx_ty_tensor(c->ctx, &n, 1, dt) : rx_ty_tensor_ndim(c->ctx, 1, dt);
}

/* ---- tensor programs ---- */

/* The loops of a reduction: index[] of the operand and out[] of the result over one variable per axis. */
typedef struct red {
    rx_ex *var;                        /* per axis of the operand: spatial or reduce */
    rx_ex *out; uint32_t nout;         /* indices of the result */
    bool in[RX_MAX_NDIM];              /* axis is reduced */
    rx_ex count;                       /* elements reduced into one */
} red;

static red red_axes(rx_legal *l)
{
    rx_ty t = l->in[0];
    const rx_attr *axis = rx_attr_get(l->attrs, "axis");
    bool keep = rx_attr_int(l->attrs, "keepdims", 0) != 0;
    red r = { .var = rx_vars(l, (uint32_t)t->ndim), .out = RX_NEWN(l->tb.a, rx_ex, t->ndim + 1) };
    rx_ex *n = RX_NEWN(l->tb.a, rx_ex, t->ndim + 1);
    uint32_t nn = 0;
    for (int32_t i = 0; i < t->ndim; i++)
        r.in[i] = !axis;
    for (uint32_t i = 0; axis && i < (axis->kind == RX_A_INTS ? axis->u.ints.n : 1); i++) {
        int64_t x = axis->kind == RX_A_INTS ? axis->u.ints.at[i] : axis->u.i;
        r.in[x < 0 ? x + t->ndim : x] = true;
    }
    for (int32_t i = 0; i < t->ndim; i++) {
        if (r.in[i])
            n[nn++] = t->dims[i];
        if (!r.in[i] || keep)
            r.out[r.nout++] = r.in[i] ? rx_int(l->ctx, 0) : r.var[i];
    }
    r.count = rx_product(l->ctx, n, nn);
    return r;
}

/* reduce loops over the reduced axes around body; init runs before the outermost */
static rx_stmt *red_loops(rx_legal *l, const red *r, rx_ex *vars, rx_stmt *init, rx_stmt *body)
{
    int32_t first = -1;
    for (int32_t i = l->in[0]->ndim; i-- > 0;)
        if (r->in[i])
            first = i;
    for (int32_t i = l->in[0]->ndim; i-- > 0;)
        if (r->in[i])
            body = rx_reduce_loop(l, vars[i], l->in[0]->dims[i], i == first ? init : NULL, body);
    return first < 0 ? rx_seq2(l, init, body) : body;
}

static rx_stmt *spatial_loops(rx_legal *l, const red *r, rx_stmt *body)
{
    for (int32_t i = l->in[0]->ndim; i-- > 0;)
        if (!r->in[i])
            body = rx_loop_s(&l->tb, r->var[i], l->in[0]->dims[i], body);
    return body;
}

/* start value of max (lowest) or min */
static rx_ex extreme(rx_legal *l, relax_dtype t, bool lowest)
{
    if (rx_dtype_is_float(t))
        return rx_f(l, t, lowest ? -INFINITY : INFINITY);
    int64_t lo, hi;
    rx_dtype_int_range(t, &lo, &hi);
    if (t == RELAX_U64)
        hi = -1;
    return rx_const_int(l->ctx, t, lowest ? lo : hi);
}

static rx_ex start_value(rx_legal *l, relax_dtype t)
{
    switch (l->op->code) {
    case RX_OP_MAX: return extreme(l, t, true);
    case RX_OP_MIN: return extreme(l, t, false);
    case RX_OP_PROD: return rx_f(l, t, 1);
    default: return rx_zero(l, t);
    }
}

static rx_ex combine(rx_legal *l, rx_ex s, rx_ex x)
{
    switch (l->op->code) {
    case RX_OP_MAX: return rx_max(l->ctx, s, x);
    case RX_OP_MIN: return rx_min(l->ctx, s, x);
    case RX_OP_PROD: return rx_mul(l->ctx, s, x);
    default: return rx_add(l->ctx, s, x);
    }
}

/* a second pass over the same axes: sum of squared distances from the mean that `s` holds, into q */
static rx_stmt *squares(rx_legal *l, const red *r, relax_buffer *s, relax_buffer *q)
{
    rx_ex *v = rx_vars(l, (uint32_t)l->in[0]->ndim);
    for (int32_t i = 0; i < l->in[0]->ndim; i++)
        if (!r->in[i])
            v[i] = r->var[i];
    rx_ex d = rx_sub(l->ctx, rx_up(l, rx_load_at(l, l->x[0], v)), rx_get0(l, s));
    rx_stmt *body = rx_set0(l, q, rx_add(l->ctx, rx_get0(l, q), rx_mul(l->ctx, d, d)));
    return red_loops(l, r, v, rx_set0(l, q, rx_zero(l, s->dtype)), body);
}

rx_stmt *rx_legal_reduce(rx_legal *l)
{
    relax_context *ctx = l->ctx;
    red r = red_axes(l);
    rx_ex x = rx_up(l, rx_load_at(l, l->x[0], r.var));
    relax_buffer *s = rx_local(l, "S", x->dtype);
    rx_stmt *sum = red_loops(l, &r, r.var, rx_set0(l, s, start_value(l, x->dtype)),
                             rx_set0(l, s, combine(l, rx_get0(l, s), x)));
    rx_ex result = rx_get0(l, s), n = rx_cast(ctx, x->dtype, r.count);
    if (l->op->code == RX_OP_MEAN)
        result = rx_div(ctx, result, n);
    rx_stmt *body;
    if (l->op->code == RX_OP_VARIANCE) {
        relax_buffer *q = rx_local(l, "Q", x->dtype);
        rx_ex var = rx_div(ctx, rx_get0(l, q), n);
        rx_stmt *store = rx_store_at(l, l->y[0], r.out, rx_down(l, l->out->dtype, var));
        rx_stmt *second = rx_alloc_s(&l->tb, q, rx_seq2(l, squares(l, &r, s, q), store));
        body = rx_seq3(l, sum, rx_set0(l, s, rx_div(ctx, result, n)), second);
    } else {
        body = rx_seq2(l, sum, rx_store_at(l, l->y[0], r.out, rx_down(l, l->out->dtype, result)));
    }
    return spatial_loops(l, &r, rx_alloc_s(&l->tb, s, body));
}

/* row-major position among the reduced axes */
static rx_ex position(rx_legal *l, const red *r)
{
    rx_ex p = rx_int(l->ctx, 0);
    for (int32_t i = 0; i < l->in[0]->ndim; i++)
        if (r->in[i])
            p = rx_add(l->ctx, rx_mul(l->ctx, p, l->in[0]->dims[i]), r->var[i]);
    return p;
}

rx_stmt *rx_legal_argreduce(rx_legal *l)
{
    relax_context *ctx = l->ctx;
    red r = red_axes(l);
    rx_ex x = rx_up(l, rx_load_at(l, l->x[0], r.var));
    relax_buffer *best = rx_local(l, "B", x->dtype), *at = rx_local(l, "I", RELAX_I64);
    rx_ex b = rx_get0(l, best), i = rx_get0(l, at);
    rx_ex better = l->op->code == RX_OP_ARGMAX ? rx_lt(ctx, b, x) : rx_lt(ctx, x, b);
    if (rx_dtype_is_float(x->dtype)) {
        rx_ex xn = rx_call1(ctx, RX_IN_ISNAN, x), bn = rx_call1(ctx, RX_IN_ISNAN, b);
        better = rx_or(ctx, better, rx_and(ctx, xn, rx_not(ctx, bn)));
    }
    better = rx_or(ctx, rx_lt(ctx, i, rx_int(ctx, 0)), better);
    rx_stmt *init = rx_seq2(l, rx_set0(l, best, rx_zero(l, x->dtype)), rx_set0(l, at, rx_int(ctx, -1)));
    rx_stmt *take = rx_seq2(l, rx_set0(l, best, x), rx_set0(l, at, position(l, &r)));
    rx_stmt *loops = red_loops(l, &r, r.var, init, rx_if(&l->tb, better, take, NULL));
    rx_stmt *body = rx_seq2(l, loops, rx_store_at(l, l->y[0], r.out, i));
    return spatial_loops(l, &r, rx_alloc_s(&l->tb, best, rx_alloc_s(&l->tb, at, body)));
}

/* The running loops are serial and not marked reduce: every partial sum is a result, so they may not be re-associated.
 */
rx_stmt *rx_legal_cumsum(rx_legal *l)
{
    rx_ty t = l->in[0];
    red r = red_axes(l);
    relax_dtype dt = rx_compute_dtype(l->out->dtype);
    relax_buffer *s = rx_local(l, "S", dt);
    rx_ex *out = r.var, at;
    if (!rx_attr_get(l->attrs, "axis")) {
        at = position(l, &r);
        out = &at;
    }
    rx_ex x = rx_cast(l->ctx, dt, rx_load_at(l, l->x[0], r.var));
    rx_stmt *step = rx_set0(l, s, rx_add(l->ctx, rx_get0(l, s), x));
    rx_stmt *store = rx_store_at(l, l->y[0], out, rx_down(l, l->out->dtype, rx_get0(l, s)));
    rx_stmt *body = rx_attr_int(l->attrs, "exclusive", 0) ? rx_seq2(l, store, step) : rx_seq2(l, step, store);
    for (int32_t i = t->ndim; i-- > 0;)
        if (r.in[i])
            body = rx_loop_s(&l->tb, r.var[i], t->dims[i], body);
    body = rx_alloc_s(&l->tb, s, rx_seq2(l, rx_set0(l, s, rx_zero(l, dt)), body));
    return spatial_loops(l, &r, body);
}
