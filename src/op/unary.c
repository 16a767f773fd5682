/* unary.c: element-wise operators of one argument. */
#include <math.h>
#include "op/impl.h"

rx_ty rx_deduce_unary(rx_call *c)
{
    rx_ty t = rx_arg_tensor(c, 0);
    rx_want_number(c, t->dtype, "elements");
    return t;
}

rx_ty rx_deduce_unary_real(rx_call *c)
{
    rx_ty t = rx_arg_tensor(c, 0);
    rx_want_float(c, t->dtype, "elements");
    return t;
}

rx_ty rx_deduce_unary_bool(rx_call *c)
{
    return rx_retype(c, rx_arg_tensor(c, 0), RELAX_BOOL);
}

rx_ty rx_deduce_clip(rx_call *c)
{
    return rx_deduce_unary(c);
}

rx_ty rx_deduce_astype(rx_call *c)
{
    return rx_retype(c, rx_arg_tensor(c, 0), rx_attr_dtype(&c->attrs, "dtype", RELAX_DTYPE_UNKNOWN));
}

/* x in its compute dtype */
static rx_ex number_value(rx_legal *l, rx_ex x)
{
    relax_context *ctx = l->ctx;
    bool real = rx_dtype_is_float(x->dtype);
    switch (l->op->code) {
    case RX_OP_ABS: return rx_dtype_is_uint(x->dtype) ? x : rx_call1(ctx, RX_IN_ABS, x);
    case RX_OP_NEGATIVE: return rx_unary(ctx, RX_EX_NEG, x);
    case RX_OP_SQUARE: return rx_mul(ctx, x, x);
    case RX_OP_RELU: return rx_max(ctx, x, rx_zero(l, x->dtype));
    case RX_OP_FLOOR: return real ? rx_call1(ctx, RX_IN_FLOOR, x) : x;
    case RX_OP_CEIL: return real ? rx_call1(ctx, RX_IN_CEIL, x) : x;
    case RX_OP_ROUND: return real ? rx_call1(ctx, RX_IN_ROUND, x) : x;
    default: return real ? rx_call1(ctx, RX_IN_TRUNC, x) : x;
    }
}

rx_stmt *rx_legal_unary(rx_legal *l)
{
    rx_ex *v = rx_vars(l, (uint32_t)l->out->ndim);
    rx_ex x = rx_load_at(l, l->x[0], v);
    return rx_map_out(l, v, rx_down(l, l->out->dtype, number_value(l, rx_up(l, x))));
}

/* 1 + exp(-x) */
static rx_ex one_plus_exp(rx_legal *l, rx_ex x)
{
    relax_context *ctx = l->ctx;
    return rx_add(ctx, rx_f(l, x->dtype, 1), rx_call1(ctx, RX_IN_EXP, rx_unary(ctx, RX_EX_NEG, x)));
}

/* x / 2 * (1 + t) */
static rx_ex half_x_one_plus(rx_legal *l, rx_ex x, rx_ex t)
{
    relax_context *ctx = l->ctx;
    return rx_mul(ctx, rx_mul(ctx, rx_f(l, x->dtype, 0.5), x), rx_add(ctx, rx_f(l, x->dtype, 1), t));
}

static rx_ex gelu_tanh_value(rx_legal *l, rx_ex x)
{
    relax_context *ctx = l->ctx;
    rx_ex poly = rx_add(ctx, rx_f(l, x->dtype, 1), rx_mul(ctx, rx_mul(ctx, rx_f(l, x->dtype, 0.044715), x), x));
    rx_ex arg = rx_mul(ctx, rx_mul(ctx, rx_f(l, x->dtype, 0.79788456080286535588), x), poly);
    return half_x_one_plus(l, x, rx_call1(ctx, RX_IN_TANH, arg));
}

static rx_ex real_value(rx_legal *l, rx_ex x)
{
    relax_context *ctx = l->ctx;
    switch (l->op->code) {
    case RX_OP_EXP: return rx_call1(ctx, RX_IN_EXP, x);
    case RX_OP_LOG: return rx_call1(ctx, RX_IN_LOG, x);
    case RX_OP_SQRT: return rx_call1(ctx, RX_IN_SQRT, x);
    case RX_OP_RSQRT: return rx_call1(ctx, RX_IN_RSQRT, x);
    case RX_OP_SIN: return rx_call1(ctx, RX_IN_SIN, x);
    case RX_OP_COS: return rx_call1(ctx, RX_IN_COS, x);
    case RX_OP_TANH: return rx_call1(ctx, RX_IN_TANH, x);
    case RX_OP_SIGMOID: return rx_div(ctx, rx_f(l, x->dtype, 1), one_plus_exp(l, x));
    case RX_OP_SILU: return rx_div(ctx, x, one_plus_exp(l, x));
    case RX_OP_GELU:
        return half_x_one_plus(l, x,
                               rx_call1(ctx, RX_IN_ERF, rx_mul(ctx, x, rx_f(l, x->dtype, 0.70710678118654752440))));
    case RX_OP_GELU_TANH: return gelu_tanh_value(l, x);
    default: return rx_call1(ctx, RX_IN_ERF, x);
    }
}

rx_stmt *rx_legal_unary_real(rx_legal *l)
{
    rx_ex *v = rx_vars(l, (uint32_t)l->out->ndim);
    rx_ex x = rx_load_at(l, l->x[0], v);
    return rx_map_out(l, v, rx_down(l, l->out->dtype, real_value(l, rx_up(l, x))));
}

rx_stmt *rx_legal_unary_bool(rx_legal *l)
{
    relax_context *ctx = l->ctx;
    rx_ex *v = rx_vars(l, (uint32_t)l->out->ndim);
    rx_ex x = rx_load_at(l, l->x[0], v);
    if (l->op->code == RX_OP_LOGICAL_NOT) {
        x = x->dtype == RELAX_BOOL ? rx_not(ctx, x) : rx_eq(ctx, rx_up(l, x), rx_zero(l, rx_compute_dtype(x->dtype)));
        return rx_map_out(l, v, x);
    }
    return rx_map_out(l, v,
                      rx_dtype_is_float(x->dtype) ? rx_call1(ctx, RX_IN_ISNAN, rx_up(l, x)) : rx_bool(ctx, false));
}

/* A bound as a constant of t; false: no value of t lies beyond it (infinite, NaN or outside the range of an integer
 * type). */
static bool bound(rx_legal *l, relax_dtype t, double v, bool lower, rx_ex *e)
{
    if (isnan(v) || (isinf(v) && lower == (v < 0)))
        return false;
    if (rx_dtype_is_float(t)) {
        *e = rx_f(l, t, v);
        return true;
    }
    int64_t lo, hi;
    rx_dtype_int_range(t, &lo, &hi);
    v = lower ? ceil(v) : floor(v);
    if (lower ? v <= (double)lo : v >= (double)hi)
        return false;
    *e = rx_const_int(l->ctx, t, v >= (double)hi ? hi : v <= (double)lo ? lo : (int64_t)v);
    return true;
}

rx_stmt *rx_legal_clip(rx_legal *l)
{
    relax_dtype t = rx_compute_dtype(l->out->dtype);
    rx_ex *v = rx_vars(l, (uint32_t)l->out->ndim), x = rx_up(l, rx_load_at(l, l->x[0], v)), e;
    if (bound(l, t, rx_attr_float(l->attrs, "min", -INFINITY), true, &e))
        x = rx_max(l->ctx, x, e);
    if (bound(l, t, rx_attr_float(l->attrs, "max", INFINITY), false, &e))
        x = rx_min(l->ctx, x, e);
    return rx_map_out(l, v, rx_down(l, l->out->dtype, x));
}

rx_stmt *rx_legal_astype(rx_legal *l)
{
    rx_ex *v = rx_vars(l, (uint32_t)l->out->ndim);
    return rx_map_out(l, v, rx_cast(l->ctx, l->out->dtype, rx_load_at(l, l->x[0], v)));
}
