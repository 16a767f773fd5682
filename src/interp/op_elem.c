/* op_elem.c: element-wise operators. Real functions are computed in f64 and rounded; where a quotient is floored, every
 * step is rounded to the type it is computed in, because the floor shows the difference. Integers wrap at their width
 * (storing does that). */
#include "interp/impl.h"

#include <math.h>

/* a scalar operand as a tensor of rank 0 */
static const rx_ival *tensor_of(const rx_opx *o, uint32_t i)
{
    const rx_ival *x = o->x[i];
    return x->kind == RX_I_PRIM ? rx_ival_tensor(o->ctx, o->a, x->dtype, NULL, 0, &x->bits) : x;
}

/* a scalar result is computed as a tensor of rank 0 */
static rx_ival *result_tensor(rx_opx *o)
{
    return o->y->kind == RX_I_PRIM ? rx_ival_tensor(o->ctx, o->a, o->y->dtype, NULL, 0, NULL) : o->y;
}

static void put_result(rx_opx *o, const rx_ival *y)
{
    if (o->y->kind == RX_I_PRIM)
        memcpy(&o->y->bits, y->data, y->bytes);
}

static bool nonzero(const rx_ival *t, int64_t i)
{
    return rx_dtype_is_float(t->dtype) ? rx_getf(t, i) != 0 : rx_geti(t, i) != 0;
}

/* --- one operand --- */

static double real1(rx_opcode code, double x)
{
    switch (code) {
    case RX_OP_ABS: return fabs(x);
    case RX_OP_NEGATIVE: return -x;
    case RX_OP_SQUARE: return x * x;
    case RX_OP_RELU: return x > 0 || isnan(x) ? x : 0;
    case RX_OP_FLOOR: return floor(x);
    case RX_OP_CEIL: return ceil(x);
    case RX_OP_ROUND: return nearbyint(x);
    case RX_OP_TRUNC: return trunc(x);
    case RX_OP_EXP: return exp(x);
    case RX_OP_LOG: return log(x);
    case RX_OP_SQRT: return sqrt(x);
    case RX_OP_RSQRT: return 1 / sqrt(x);
    case RX_OP_SIN: return sin(x);
    case RX_OP_COS: return cos(x);
    case RX_OP_TANH: return tanh(x);
    case RX_OP_SIGMOID: return 1 / (1 + exp(-x));
    case RX_OP_SILU: return x / (1 + exp(-x));
    case RX_OP_GELU: return x * (1 + erf(x * 0.70710678118654752440)) / 2;
    case RX_OP_GELU_TANH: return x * (1 + tanh(0.79788456080286535588 * (x + 0.044715 * x * x * x))) / 2;
    default: return erf(x);
    }
}

static int64_t int1(rx_opcode code, relax_dtype t, int64_t x)
{
    switch (code) {
    case RX_OP_ABS: return x < 0 && !rx_dtype_is_uint(t) ? (int64_t)(0 - (uint64_t)x) : x;
    case RX_OP_NEGATIVE: return (int64_t)(0 - (uint64_t)x);
    case RX_OP_SQUARE: return (int64_t)((uint64_t)x * (uint64_t)x);
    case RX_OP_RELU: return x < 0 && !rx_dtype_is_uint(t) ? 0 : x;
    default: return x;
    }
}

void rx_x_unary(rx_opx *o)
{
    const rx_ival *x = o->x[0];
    rx_opcode code = (rx_opcode)o->op->code;
    bool real = rx_dtype_is_float(x->dtype);
    for (int64_t i = 0; i < rx_ival_count(x); i++) {
        if (code == RX_OP_ISNAN)
            rx_seti(o->y, i, real && isnan(rx_getf(x, i)));
        else if (code == RX_OP_LOGICAL_NOT)
            rx_seti(o->y, i, !nonzero(x, i));
        else if (real)
            rx_setf(o->y, i, real1(code, rx_getf(x, i)));
        else
            rx_seti(o->y, i, int1(code, x->dtype, rx_geti(x, i)));
    }
}

/* integers: bounds are rounded inwards and cut to the type's range */
static int64_t clip_int(relax_dtype t, int64_t x, double lo, double hi)
{
    double v = t == RELAX_U64 ? (double)(uint64_t)x : (double)x;
    int64_t bits = 0;
    if (!isnan(lo) && v < ceil(lo)) {
        rx_store_f64(t, &bits, ceil(lo));
        x = rx_load_i64(t, &bits);
        v = ceil(lo);
    }
    if (!isnan(hi) && v > floor(hi)) {
        rx_store_f64(t, &bits, floor(hi));
        x = rx_load_i64(t, &bits);
    }
    return x;
}

void rx_x_clip(rx_opx *o)
{
    const rx_ival *x = o->x[0];
    double lo = rx_attr_float(o->attrs, "min", -INFINITY), hi = rx_attr_float(o->attrs, "max", INFINITY);
    for (int64_t i = 0; i < rx_ival_count(x); i++) {
        if (!rx_dtype_is_float(x->dtype)) {
            rx_seti(o->y, i, clip_int(x->dtype, rx_geti(x, i), lo, hi));
            continue;
        }
        double v = rx_getf(x, i);
        if (v < rx_rounded(x->dtype, lo))
            v = rx_rounded(x->dtype, lo);
        if (v > rx_rounded(x->dtype, hi))
            v = rx_rounded(x->dtype, hi);
        rx_setf(o->y, i, v);
    }
}

void rx_x_astype(rx_opx *o)
{
    for (int64_t i = 0; i < rx_ival_count(o->y); i++)
        rx_put(o->y, i, o->x[0], i);
}

/* --- two operands --- */

static double real2(const rx_opx *o, relax_dtype t, double a, double b)
{
    switch ((rx_opcode)o->op->code) {
    case RX_OP_ADD: return a + b;
    case RX_OP_SUBTRACT: return a - b;
    case RX_OP_MULTIPLY: return a * b;
    case RX_OP_DIVIDE: return a / b;
    case RX_OP_POWER: return pow(a, b);
    case RX_OP_FLOOR_DIVIDE: return floor(rx_rounded(t, a / b));
    case RX_OP_FLOOR_MOD: return a - rx_rounded(t, b * floor(rx_rounded(t, a / b)));
    case RX_OP_MAXIMUM: return isnan(a) || isnan(b) ? NAN : a > b ? a : b;
    default: return isnan(a) || isnan(b) ? NAN : a < b ? a : b;
    }
}

static int64_t power(bool u, int64_t a, int64_t b)
{
    uint64_t r = 1, x = (uint64_t)a, n = (uint64_t)b;
    if (!u && b < 0)
        return 0;
    for (; n; n >>= 1, x *= x)
        if (n & 1)
            r *= x;
    return (int64_t)r;
}

static int64_t quotient(const rx_opx *o, bool u, int64_t a, int64_t b)
{
    rx_opcode code = (rx_opcode)o->op->code;
    int64_t q = 0;
    if (b == 0)
        rx_opx_fail(o, RXE_DIV_ZERO, "a divisor is 0");
    if (u)
        return (int64_t)(code == RX_OP_FLOOR_MOD ? (uint64_t)a % (uint64_t)b : (uint64_t)a / (uint64_t)b);
    if (b == -1)
        return code == RX_OP_FLOOR_MOD ? 0 : (int64_t)(0 - (uint64_t)a);
    if (code == RX_OP_DIVIDE)
        return a / b;
    if (code == RX_OP_FLOOR_DIVIDE)
        rx_floordiv_ok(a, b, &q);
    else
        rx_floormod_ok(a, b, &q);
    return q;
}

static int64_t shift(bool left, relax_dtype t, int64_t a, int64_t b)
{
    bool out = b < 0 || b >= (int64_t)rx_dtype_bytes(t) * 8;
    if (left)
        return out ? 0 : (int64_t)((uint64_t)a << b);
    if (rx_dtype_is_uint(t))
        return out ? 0 : (int64_t)((uint64_t)a >> b);
    return out ? (a < 0 ? -1 : 0) : a >> b;
}

static int64_t int2(const rx_opx *o, relax_dtype t, int64_t a, int64_t b)
{
    bool u = t == RELAX_U64, less = u ? (uint64_t)a < (uint64_t)b : a < b;
    rx_opcode code = (rx_opcode)o->op->code;
    switch (code) {
    case RX_OP_ADD: return (int64_t)((uint64_t)a + (uint64_t)b);
    case RX_OP_SUBTRACT: return (int64_t)((uint64_t)a - (uint64_t)b);
    case RX_OP_MULTIPLY: return (int64_t)((uint64_t)a * (uint64_t)b);
    case RX_OP_DIVIDE: case RX_OP_FLOOR_DIVIDE: case RX_OP_FLOOR_MOD: return quotient(o, rx_dtype_is_uint(t), a, b);
    case RX_OP_POWER: return power(rx_dtype_is_uint(t), a, b);
    case RX_OP_MAXIMUM: return less ? b : a;
    case RX_OP_MINIMUM: return less ? a : b;
    case RX_OP_BITWISE_AND: return a & b;
    case RX_OP_BITWISE_OR: return a | b;
    case RX_OP_BITWISE_XOR: return a ^ b;
    default: return shift(code == RX_OP_LEFT_SHIFT, t, a, b);
    }
}

void rx_x_binary(rx_opx *o)
{
    const rx_ival *a = tensor_of(o, 0), *b = tensor_of(o, 1);
    rx_ival *y = result_tensor(o);
    int64_t ix[RX_MAX_RANK];
    for (int64_t i = 0; i < rx_ival_count(y); i++) {
        rx_index(y->dims, y->ndim, i, ix);
        int64_t ia = rx_bcast(a, ix, y->ndim), ib = rx_bcast(b, ix, y->ndim);
        if (rx_dtype_is_float(y->dtype))
            rx_setf(y, i, real2(o, y->dtype, rx_getf(a, ia), rx_getf(b, ib)));
        else
            rx_seti(y, i, int2(o, y->dtype, rx_geti(a, ia), rx_geti(b, ib)));
    }
    put_result(o, y);
}

/* -1, 0, 1; 2: not ordered (NaN). Operands of two types: f64 when one is a float, else i64. */
static int order(const rx_ival *a, int64_t ia, const rx_ival *b, int64_t ib)
{
    if (rx_dtype_is_float(a->dtype) || rx_dtype_is_float(b->dtype)) {
        double x = rx_getf(a, ia), y = rx_getf(b, ib);
        return isnan(x) || isnan(y) ? 2 : (x > y) - (x < y);
    }
    int64_t x = rx_geti(a, ia), y = rx_geti(b, ib);
    if (a->dtype == RELAX_U64 && b->dtype == RELAX_U64)
        return ((uint64_t)x > (uint64_t)y) - ((uint64_t)x < (uint64_t)y);
    return (x > y) - (x < y);
}

static bool compared(rx_opcode code, int c)
{
    switch (code) {
    case RX_OP_EQUAL: return c == 0;
    case RX_OP_NOT_EQUAL: return c != 0;
    case RX_OP_LESS: return c == -1;
    case RX_OP_LESS_EQUAL: return c == -1 || c == 0;
    case RX_OP_GREATER: return c == 1;
    default: return c == 1 || c == 0;
    }
}

static bool logical(rx_opcode code, bool a, bool b)
{
    return code == RX_OP_LOGICAL_AND ? a && b : code == RX_OP_LOGICAL_OR ? a || b : a != b;
}

void rx_x_compare(rx_opx *o)
{
    const rx_ival *a = tensor_of(o, 0), *b = tensor_of(o, 1);
    rx_ival *y = result_tensor(o);
    rx_opcode code = (rx_opcode)o->op->code;
    bool logic = code == RX_OP_LOGICAL_AND || code == RX_OP_LOGICAL_OR || code == RX_OP_LOGICAL_XOR;
    int64_t ix[RX_MAX_RANK];
    for (int64_t i = 0; i < rx_ival_count(y); i++) {
        rx_index(y->dims, y->ndim, i, ix);
        int64_t ia = rx_bcast(a, ix, y->ndim), ib = rx_bcast(b, ix, y->ndim);
        rx_seti(y, i, logic ? logical(code, nonzero(a, ia), nonzero(b, ib)) : compared(code, order(a, ia, b, ib)));
    }
    put_result(o, y);
}

void rx_x_where(rx_opx *o)
{
    const rx_ival *c = o->x[0], *a = o->x[1], *b = o->x[2];
    rx_ival *y = o->y;
    int64_t ix[RX_MAX_RANK];
    for (int64_t i = 0; i < rx_ival_count(y); i++) {
        rx_index(y->dims, y->ndim, i, ix);
        const rx_ival *from = rx_geti(c, rx_bcast(c, ix, y->ndim)) ? a : b;
        rx_put(y, i, from, rx_bcast(from, ix, y->ndim));
    }
}
