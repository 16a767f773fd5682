/* fold.c: operators on constants, with the semantics of the data type.
 *
 * i64 and bool constants are index expressions: mathematical integers, not folded where the result does not fit.
 * Other integers wrap at their width. f32 and narrower floats are computed in double and rounded once (exact for +
 * - * / because double has more than twice their bits; f16 and bf16 pass through f32, as their run-time arithmetic
 * does). What libm would compute is left alone, so that folding cannot differ from the run-time kernel. */
#include "expr/impl.h"

int64_t rx_wrap(relax_dtype t, int64_t v)
{
    if (t == RELAX_BOOL) return v != 0;
    unsigned drop = 64 - (unsigned)rx_dtype_bytes(t) * 8;
    uint64_t u = (uint64_t)v << drop;
    return rx_dtype_is_uint(t) ? (int64_t)(u >> drop) : (int64_t)u >> drop;
}

static bool pow_ok(int64_t a, int64_t b, int64_t *r)
{
    int64_t x = 1;
    if (b < 0) return *r = 0, true;
    if (a >= -1 && a <= 1) return *r = a == 0 ? b == 0 : a == 1 || b % 2 == 0 ? 1 : -1, true;
    for (; b > 0; b--)
        if (!rx_mul_ok(x, a, &x)) return false;
    return *r = x, true;
}

static bool shift_left(int64_t a, int64_t b, int64_t *r)
{
    if (b < 0 || b > 62) return false;
    return rx_mul_ok(a, (int64_t)1 << b, r);
}

bool rx_int_op(rx_eop op, int64_t a, int64_t b, int64_t *r)
{
    switch (op) {
    case RX_EX_ADD: return rx_add_ok(a, b, r);
    case RX_EX_SUB: return rx_sub_ok(a, b, r);
    case RX_EX_MUL: return rx_mul_ok(a, b, r);
    case RX_EX_FLOORDIV: return rx_floordiv_ok(a, b, r);
    case RX_EX_FLOORMOD: return rx_floormod_ok(a, b, r);
    case RX_EX_TRUNCDIV: return b != 0 && !(a == INT64_MIN && b == -1) && (*r = a / b, true);
    case RX_EX_TRUNCMOD: return b != 0 && (*r = b == -1 ? 0 : a % b, true);
    case RX_EX_MIN: return *r = RX_MIN(a, b), true;
    case RX_EX_MAX: return *r = RX_MAX(a, b), true;
    case RX_EX_POW: return pow_ok(a, b, r);
    case RX_EX_BITAND: return *r = a & b, true;
    case RX_EX_BITOR: return *r = a | b, true;
    case RX_EX_BITXOR: return *r = a ^ b, true;
    case RX_EX_SHL: return shift_left(a, b, r);
    case RX_EX_SHR: return b >= 0 && (*r = a >> RX_MIN(b, 63), true);
    case RX_EX_EQ: return *r = a == b, true;
    case RX_EX_NE: return *r = a != b, true;
    case RX_EX_LT: return *r = a < b, true;
    case RX_EX_LE: return *r = a <= b, true;
    case RX_EX_AND: return *r = a && b, true;
    case RX_EX_OR: return *r = a || b, true;
    default: return false;
    }
}

/* fixed width: a and b hold values of t, the result wraps */
static bool wrapped_op(rx_eop op, relax_dtype t, int64_t a, int64_t b, int64_t *r)
{
    bool u = rx_dtype_is_uint(t);
    int64_t width = (int64_t)rx_dtype_bytes(t) * 8;
    uint64_t ua = (uint64_t)a, ub = (uint64_t)b;
    switch (op) {
    case RX_EX_ADD: *r = (int64_t)(ua + ub); break;
    case RX_EX_SUB: *r = (int64_t)(ua - ub); break;
    case RX_EX_MUL: *r = (int64_t)(ua * ub); break;
    case RX_EX_SHL: *r = b < 0 || b >= width ? 0 : (int64_t)(ua << b); break;
    case RX_EX_SHR:
        if (u) *r = b < 0 || b >= width ? 0 : (int64_t)(ua >> b);
        else *r = b < 0 || b >= width ? (a < 0 ? -1 : 0) : a >> b;
        break;
    case RX_EX_FLOORDIV: case RX_EX_TRUNCDIV:
        if (!b) return false;
        if (u) *r = (int64_t)(ua / ub);
        else if (b == -1) *r = (int64_t)(0 - ua);
        else if (!rx_int_op(op, a, b, r)) return false;
        break;
    case RX_EX_FLOORMOD: case RX_EX_TRUNCMOD:
        if (!b) return false;
        if (u) *r = (int64_t)(ua % ub);
        else if (!rx_int_op(op, a, b, r)) return false;
        break;
    case RX_EX_POW:
        *r = 1;
        if (!u && b < 0) return *r = 0, true;
        for (uint64_t base = ua, n = ub; n; n >>= 1, base *= base)
            if (n & 1) *r = (int64_t)((uint64_t)*r * base);
        break;
    case RX_EX_MIN: *r = (u ? ua < ub : a < b) ? a : b; break;
    case RX_EX_MAX: *r = (u ? ua > ub : a > b) ? a : b; break;
    case RX_EX_LT: return *r = u ? ua < ub : a < b, true;
    case RX_EX_LE: return *r = u ? ua <= ub : a <= b, true;
    case RX_EX_EQ: case RX_EX_NE: case RX_EX_BITAND: case RX_EX_BITOR: case RX_EX_BITXOR: return rx_int_op(op, a, b, r);
    default: return false;
    }
    *r = rx_wrap(t, *r);
    return true;
}

static rx_ex fold_float(relax_context *ctx, rx_eop op, relax_dtype t, double a, double b)
{
    double r;
    switch (op) {
    case RX_EX_ADD: r = a + b; break;
    case RX_EX_SUB: r = a - b; break;
    case RX_EX_MUL: r = a * b; break;
    case RX_EX_DIV: r = a / b; break;
    case RX_EX_MIN: r = a != a ? a : b != b ? b : RX_MIN(a, b); break;
    case RX_EX_MAX: r = a != a ? a : b != b ? b : RX_MAX(a, b); break;
    case RX_EX_EQ: return rx_bool(ctx, a == b);
    case RX_EX_NE: return rx_bool(ctx, a != b);
    case RX_EX_LT: return rx_bool(ctx, a < b);
    case RX_EX_LE: return rx_bool(ctx, a <= b);
    default: return NULL;
    }
    /* min and max of zeros of different sign depend on the kernel */
    if ((op == RX_EX_MIN || op == RX_EX_MAX) && a == 0 && b == 0) return NULL;
    return rx_const_float(ctx, t, t == RELAX_F64 ? r : (double)(float)r);
}

rx_ex rx_fold_binary(relax_context *ctx, rx_eop op, rx_ex a, rx_ex b)
{
    relax_dtype t = a->dtype;
    int64_t r;
    if (a->op == RX_EX_FLOAT && b->op == RX_EX_FLOAT) return fold_float(ctx, op, t, a->u.f, b->u.f);
    if (a->op != RX_EX_INT || b->op != RX_EX_INT) return NULL;
    bool ok = rx_is_index(a) ? rx_int_op(op, a->u.i, b->u.i, &r) : wrapped_op(op, t, a->u.i, b->u.i, &r);
    if (!ok) return NULL;
    return rx_const_int(ctx, op >= RX_EX_EQ && op <= RX_EX_OR ? RELAX_BOOL : t, r);
}

rx_ex rx_fold_unary(relax_context *ctx, rx_eop op, rx_ex a)
{
    if (a->op == RX_EX_FLOAT && op == RX_EX_NEG) return rx_const_float(ctx, a->dtype, -a->u.f);
    if (a->op != RX_EX_INT) return NULL;
    if (op == RX_EX_NOT) return rx_bool(ctx, !a->u.i);
    if (op == RX_EX_BITNOT)
        return a->dtype == RELAX_BOOL ? rx_bool(ctx, !a->u.i) : rx_const_int(ctx, a->dtype, ~a->u.i);
    if (op != RX_EX_NEG || (rx_is_index(a) && a->u.i == INT64_MIN)) return NULL;
    return rx_const_int(ctx, a->dtype, (int64_t)(0 - (uint64_t)a->u.i));
}

rx_ex rx_fold_cast(relax_context *ctx, relax_dtype to, rx_ex a)
{
    uint64_t from = 0, d = 0;
    if (a->op == RX_EX_INT) rx_store_i64(a->dtype, &from, a->u.i);
    else if (a->op == RX_EX_FLOAT) rx_store_f64(a->dtype, &from, a->u.f);
    else return NULL;
    rx_convert(to, &d, a->dtype, &from);
    return rx_dtype_is_float(to) ? rx_const_float(ctx, to, rx_load_f64(to, &d))
                                 : rx_const_int(ctx, to, rx_load_i64(to, &d));
}

rx_ex rx_fold_call(relax_context *ctx, rx_intrin f, rx_ex *a)
{
    if (f == RX_IN_ABS && a[0]->op == RX_EX_INT) {
        int64_t v = a[0]->u.i;
        if (rx_dtype_is_uint(a[0]->dtype) || v >= 0) return a[0];
        if (v == INT64_MIN && rx_is_index(a[0])) return NULL;
        return rx_const_int(ctx, a[0]->dtype, (int64_t)(0 - (uint64_t)v));
    }
    if (a[0]->op != RX_EX_FLOAT) return NULL;
    if (f == RX_IN_ABS) return rx_const_float(ctx, a[0]->dtype, __builtin_fabs(a[0]->u.f));
    if (f == RX_IN_ISNAN) return rx_bool(ctx, a[0]->u.f != a[0]->u.f);
    return NULL;
}
