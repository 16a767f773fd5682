/* op.c: the operators by name. Each is one call of the table's operator; only attributes differ. */
#include "api/builder.h"

typedef relax_value V;
typedef relax_builder B;

static rx_attr attr(B *b, const char *key, rx_akind kind)
{
    return (rx_attr){.key = rx_str(b->mod->ctx, key), .kind = kind};
}

/* An absent optional operand at the end is no operand. (Not inlined: a loop variable beside setjmp alarms gcc.) */
__attribute__((noinline)) static uint32_t given(const rx_op *op, relax_value *const *args, uint32_t n)
{
    while (n && !args[n - 1] && (int32_t)n > op->min_args) n--;
    return n;
}

relax_value *api_op(relax_builder *b, rx_opcode code, relax_value *const *args, uint32_t n, const rx_attr *attrs,
                    uint32_t nattrs)
{
    if (!api_builder(b)) return NULL;
    const rx_op *op = rx_op_get(b->mod->ctx, code);
    const uint32_t present = given(op, args, n);
    if (!api_operands(b, args, present, op->name)) return NULL;
    API_TRY(b->mod->ctx) {
        V *v = rx_emit_op(&b->gb, op, (V **)args, present, attrs, nattrs);
        API_RETURN(v);
    }
    return api_stick(b);
}

static V *op1(B *b, rx_opcode c, V *x) { return api_op(b, c, &x, 1, NULL, 0); }
static V *op2(B *b, rx_opcode c, V *x, V *y) { return api_op(b, c, (V *[]){ x, y }, 2, NULL, 0); }

/* attributes are interned in a frame, as keys may be new */
typedef struct pack { rx_attr at[8]; uint32_t n; bool ok; } pack;
static void add_attr(B *b, pack *p, const char *key, rx_akind kind, const void *v, uint32_t n)
{
    if (!p->ok || !api_operands(b, NULL, 0, "")) {
        p->ok = false;
        return;
    }
    API_TRY(b->mod->ctx) {
        rx_attr a = attr(b, key, kind);
        switch (kind) {
        case RX_A_INT: case RX_A_BOOL: a.u.i = *(const int64_t *)v; break;
        case RX_A_FLOAT: a.u.f = *(const double *)v; break;
        case RX_A_DTYPE: a.u.dtype = *(const relax_dtype *)v; break;
        case RX_A_STR: a.u.s = rx_str(b->mod->ctx, v); break;
        case RX_A_INTS:
            a.u.ints.at = rx_arena_dup(&b->mod->arena, v, n * sizeof(int64_t));
            a.u.ints.n = n;
            break;
        case RX_A_EXPR: a.u.e = v; break;
        case RX_A_EXPRS:
            a.u.exprs.at = rx_arena_dup(&b->mod->arena, v, n * sizeof(rx_ex));
            a.u.exprs.n = n;
            break;
        }
        p->at[p->n] = a;
        rx_leave(&api_ctx->heap, &api_frame);
        p->n++;
        return;
    }
    api_stick(b);
    p->ok = false;
}

static pack none(void) { return (pack){ .ok = true }; }
static void add_int(B *b, pack *p, const char *key, int64_t v) { add_attr(b, p, key, RX_A_INT, &v, 0); }
static void add_flag(B *b, pack *p, const char *key, int32_t v)
{
    int64_t i = v != 0;
    add_attr(b, p, key, RX_A_BOOL, &i, 0);
}
static void add_float(B *b, pack *p, const char *key, double v) { add_attr(b, p, key, RX_A_FLOAT, &v, 0); }
/* a number that is no data type must not become an index into the table of them */
static bool good_dtype(B *b, relax_dtype v)
{
    if (v > RELAX_DTYPE_UNKNOWN && v < RELAX_DTYPE_COUNT) return true;
    if (api_operands(b, NULL, 0, ""))
        b->status = rx_error(b->mod->ctx, RXE_BAD_VALUE, NULL, NULL, "%d is no data type", (int)v);
    return false;
}
static void add_dtype(B *b, pack *p, const char *key, relax_dtype v)
{
    if (v == RELAX_DTYPE_UNKNOWN) return;
    if (good_dtype(b, v)) add_attr(b, p, key, RX_A_DTYPE, &v, 0);
    else p->ok = false;
}
static void add_str(B *b, pack *p, const char *key, const char *v)
{
    if (v) add_attr(b, p, key, RX_A_STR, v, 0);
}
static void add_ints(B *b, pack *p, const char *key, const int64_t *v, uint32_t n)
{
    if (n && !v && api_operands(b, NULL, 0, "")) b->status = api_null(b->mod->ctx, key);
    if (n) add_attr(b, p, key, RX_A_INTS, v, n);
}
static void add_exprs(B *b, pack *p, const char *key, const relax_expr *const *v, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        if (api_operands(b, NULL, 0, "") && (!v || !v[i] || v[i]->ctx != b->mod->ctx))
            b->status = api_null(b->mod->ctx, key);
    add_attr(b, p, key, RX_A_EXPRS, v, n);
}

static void add_expr(B *b, pack *p, const char *key, const char *text)
{
    if (!text || !api_operands(b, NULL, 0, "")) return;
    API_TRY(b->mod->ctx) {
        rx_scope_fns sc = { api_symbol, NULL, b->fn };
        p->at[p->n] = attr(b, key, RX_A_EXPR);
        p->at[p->n].u.e = rx_parse_attr_text(b->mod->ctx, text, strlen(text), &sc);
        rx_leave(&api_ctx->heap, &api_frame);
        p->n++;
        return;
    }
    api_stick(b);
    p->ok = false;
}

static V *put(B *b, rx_opcode c, V *const *args, uint32_t n, const pack *p)
{
    return p->ok ? api_op(b, c, args, n, p->at, p->n) : NULL;
}

V *relax_abs(B *b, V *x) { return op1(b, RX_OP_ABS, x); }
V *relax_negative(B *b, V *x) { return op1(b, RX_OP_NEGATIVE, x); }
V *relax_exp(B *b, V *x) { return op1(b, RX_OP_EXP, x); }
V *relax_log(B *b, V *x) { return op1(b, RX_OP_LOG, x); }
V *relax_sqrt(B *b, V *x) { return op1(b, RX_OP_SQRT, x); }
V *relax_rsqrt(B *b, V *x) { return op1(b, RX_OP_RSQRT, x); }
V *relax_sin(B *b, V *x) { return op1(b, RX_OP_SIN, x); }
V *relax_cos(B *b, V *x) { return op1(b, RX_OP_COS, x); }
V *relax_tanh(B *b, V *x) { return op1(b, RX_OP_TANH, x); }
V *relax_sigmoid(B *b, V *x) { return op1(b, RX_OP_SIGMOID, x); }
V *relax_silu(B *b, V *x) { return op1(b, RX_OP_SILU, x); }
V *relax_gelu(B *b, V *x) { return op1(b, RX_OP_GELU, x); }
V *relax_gelu_tanh(B *b, V *x) { return op1(b, RX_OP_GELU_TANH, x); }
V *relax_erf(B *b, V *x) { return op1(b, RX_OP_ERF, x); }
V *relax_relu(B *b, V *x) { return op1(b, RX_OP_RELU, x); }
V *relax_square(B *b, V *x) { return op1(b, RX_OP_SQUARE, x); }
V *relax_floor(B *b, V *x) { return op1(b, RX_OP_FLOOR, x); }
V *relax_ceil(B *b, V *x) { return op1(b, RX_OP_CEIL, x); }
V *relax_round(B *b, V *x) { return op1(b, RX_OP_ROUND, x); }
V *relax_trunc(B *b, V *x) { return op1(b, RX_OP_TRUNC, x); }
V *relax_isnan(B *b, V *x) { return op1(b, RX_OP_ISNAN, x); }
V *relax_logical_not(B *b, V *x) { return op1(b, RX_OP_LOGICAL_NOT, x); }

V *relax_clip(B *b, V *x, double lo, double hi)
{
    pack p = none();
    add_float(b, &p, "min", lo);
    add_float(b, &p, "max", hi);
    return put(b, RX_OP_CLIP, &x, 1, &p);
}

V *relax_astype(B *b, V *x, relax_dtype dtype)
{
    pack p = none();
    add_dtype(b, &p, "dtype", dtype);
    return put(b, RX_OP_ASTYPE, &x, 1, &p);
}

V *relax_add(B *b, V *x, V *y) { return op2(b, RX_OP_ADD, x, y); }
V *relax_subtract(B *b, V *x, V *y) { return op2(b, RX_OP_SUBTRACT, x, y); }
V *relax_multiply(B *b, V *x, V *y) { return op2(b, RX_OP_MULTIPLY, x, y); }
V *relax_divide(B *b, V *x, V *y) { return op2(b, RX_OP_DIVIDE, x, y); }
V *relax_power(B *b, V *x, V *y) { return op2(b, RX_OP_POWER, x, y); }
V *relax_floor_divide(B *b, V *x, V *y) { return op2(b, RX_OP_FLOOR_DIVIDE, x, y); }
V *relax_floor_mod(B *b, V *x, V *y) { return op2(b, RX_OP_FLOOR_MOD, x, y); }
V *relax_maximum(B *b, V *x, V *y) { return op2(b, RX_OP_MAXIMUM, x, y); }
V *relax_minimum(B *b, V *x, V *y) { return op2(b, RX_OP_MINIMUM, x, y); }
V *relax_bitwise_and(B *b, V *x, V *y) { return op2(b, RX_OP_BITWISE_AND, x, y); }
V *relax_bitwise_or(B *b, V *x, V *y) { return op2(b, RX_OP_BITWISE_OR, x, y); }
V *relax_bitwise_xor(B *b, V *x, V *y) { return op2(b, RX_OP_BITWISE_XOR, x, y); }
V *relax_left_shift(B *b, V *x, V *y) { return op2(b, RX_OP_LEFT_SHIFT, x, y); }
V *relax_right_shift(B *b, V *x, V *y) { return op2(b, RX_OP_RIGHT_SHIFT, x, y); }
V *relax_equal(B *b, V *x, V *y) { return op2(b, RX_OP_EQUAL, x, y); }
V *relax_not_equal(B *b, V *x, V *y) { return op2(b, RX_OP_NOT_EQUAL, x, y); }
V *relax_less(B *b, V *x, V *y) { return op2(b, RX_OP_LESS, x, y); }
V *relax_less_equal(B *b, V *x, V *y) { return op2(b, RX_OP_LESS_EQUAL, x, y); }
V *relax_greater(B *b, V *x, V *y) { return op2(b, RX_OP_GREATER, x, y); }
V *relax_greater_equal(B *b, V *x, V *y) { return op2(b, RX_OP_GREATER_EQUAL, x, y); }
V *relax_logical_and(B *b, V *x, V *y) { return op2(b, RX_OP_LOGICAL_AND, x, y); }
V *relax_logical_or(B *b, V *x, V *y) { return op2(b, RX_OP_LOGICAL_OR, x, y); }
V *relax_where(B *b, V *cond, V *x, V *y) { return api_op(b, RX_OP_WHERE, (V *[]){ cond, x, y }, 3, NULL, 0); }

static V *reduce(B *b, rx_opcode c, V *x, const int64_t *axes, uint32_t n, int32_t keepdims)
{
    pack p = none();
    add_ints(b, &p, "axis", axes, n);
    add_flag(b, &p, "keepdims", keepdims);
    return put(b, c, &x, 1, &p);
}

V *relax_sum(B *b, V *x, const int64_t *axes, uint32_t n, int32_t keep)
{
    return reduce(b, RX_OP_SUM, x, axes, n, keep);
}
V *relax_mean(B *b, V *x, const int64_t *axes, uint32_t n, int32_t keep)
{
    return reduce(b, RX_OP_MEAN, x, axes, n, keep);
}
V *relax_max(B *b, V *x, const int64_t *axes, uint32_t n, int32_t keep)
{
    return reduce(b, RX_OP_MAX, x, axes, n, keep);
}
V *relax_min(B *b, V *x, const int64_t *axes, uint32_t n, int32_t keep)
{
    return reduce(b, RX_OP_MIN, x, axes, n, keep);
}
V *relax_prod(B *b, V *x, const int64_t *axes, uint32_t n, int32_t keep)
{
    return reduce(b, RX_OP_PROD, x, axes, n, keep);
}
V *relax_variance(B *b, V *x, const int64_t *axes, uint32_t n, int32_t keep)
{
    return reduce(b, RX_OP_VARIANCE, x, axes, n, keep);
}

static V *with_axis(B *b, rx_opcode c, V *const *args, uint32_t n, int64_t axis, const char *flag, int32_t value)
{
    pack p = none();
    add_int(b, &p, "axis", axis);
    if (flag) add_flag(b, &p, flag, value);
    return put(b, c, args, n, &p);
}

V *relax_argmax(B *b, V *x, int64_t axis, int32_t keep)
{
    return with_axis(b, RX_OP_ARGMAX, &x, 1, axis, "keepdims", keep);
}
V *relax_argmin(B *b, V *x, int64_t axis, int32_t keep)
{
    return with_axis(b, RX_OP_ARGMIN, &x, 1, axis, "keepdims", keep);
}
V *relax_cumsum(B *b, V *x, int64_t axis, int32_t exclusive)
{
    return with_axis(b, RX_OP_CUMSUM, &x, 1, axis, "exclusive", exclusive);
}

/* ---- creation ---- */
V *relax_full(B *b, const char *dims, V *fill, relax_dtype dtype)
{
    pack p = none();
    add_dtype(b, &p, "dtype", dtype);
    return put(b, RX_OP_FULL, (V *[]){ relax_shape_text(b, dims), fill }, 2, &p);
}

static V *filled(B *b, rx_opcode c, V *like, relax_dtype dtype)
{
    pack p = none();
    add_dtype(b, &p, "dtype", dtype);
    return put(b, c, &like, 1, &p);
}

V *relax_zeros(B *b, const char *dims, relax_dtype dtype)
{
    return filled(b, RX_OP_ZEROS, relax_shape_text(b, dims), dtype);
}
V *relax_ones(B *b, const char *dims, relax_dtype dtype)
{
    return filled(b, RX_OP_ONES, relax_shape_text(b, dims), dtype);
}
V *relax_zeros_like(B *b, V *x) { return op1(b, RX_OP_ZEROS_LIKE, x); }
V *relax_ones_like(B *b, V *x) { return op1(b, RX_OP_ONES_LIKE, x); }
V *relax_full_like(B *b, V *x, V *fill) { return op2(b, RX_OP_FULL_LIKE, x, fill); }

V *relax_arange(B *b, const char *start, const char *end, const char *step, relax_dtype dtype)
{
    pack p = none();
    add_expr(b, &p, "start", start);
    add_expr(b, &p, "end", end);
    add_expr(b, &p, "step", step);
    add_dtype(b, &p, "dtype", dtype);
    return put(b, RX_OP_ARANGE, NULL, 0, &p);
}

V *relax_eye(B *b, const char *n, const char *m, int64_t k, relax_dtype dtype)
{
    pack p = none();
    add_expr(b, &p, "n", n);
    add_expr(b, &p, "m", m);
    add_int(b, &p, "k", k);
    add_dtype(b, &p, "dtype", dtype);
    return put(b, RX_OP_EYE, NULL, 0, &p);
}

static V *triangle(B *b, rx_opcode c, V *x, int64_t k)
{
    pack p = none();
    add_int(b, &p, "k", k);
    return put(b, c, &x, 1, &p);
}

V *relax_tril(B *b, V *x, int64_t k) { return triangle(b, RX_OP_TRIL, x, k); }
V *relax_triu(B *b, V *x, int64_t k) { return triangle(b, RX_OP_TRIU, x, k); }

static rx_ex number(relax_context *c, relax_dtype t, double v)
{
    int64_t i;
    rx_store_f64(RELAX_I64, &i, v);            /* saturates; NaN is 0 */
    return rx_dtype_is_float(t) ? rx_const_float(c, t, v) : rx_const_int(c, t, i);
}

V *relax_one_hot(B *b, V *indices, int64_t depth, double on, double off, int64_t axis, relax_dtype dtype)
{
    pack p = none();
    add_int(b, &p, "depth", depth);
    if (!good_dtype(b, dtype) || !api_operands(b, NULL, 0, "")) return NULL;
    API_TRY(b->mod->ctx) {
        relax_context *c = b->mod->ctx;
        rx_attr at[4] = {p.at[0], attr(b, "on_value", RX_A_EXPR), attr(b, "off_value", RX_A_EXPR),
                         attr(b, "axis", RX_A_INT)};
        at[1].u.e = number(c, dtype, on);
        at[2].u.e = number(c, dtype, off);
        at[3].u.i = axis;
        V *v = rx_emit_op(&b->gb, rx_op_get(c, RX_OP_ONE_HOT), &indices, 1, at, 4);
        API_RETURN(v);
    }
    return api_stick(b);
}

/* ---- indexing ---- */
V *relax_take(B *b, V *x, V *indices, int64_t axis)
{
    return with_axis(b, RX_OP_TAKE, (V *[]){x, indices}, 2, axis, NULL, 0);
}

V *relax_strided_slice(B *b, V *x, const int64_t *axes, uint32_t n, const relax_expr *const *begin,
                       const relax_expr *const *end, const relax_expr *const *strides)
{
    pack p = none();
    add_ints(b, &p, "axes", axes, n);
    add_exprs(b, &p, "begin", begin, n);
    add_exprs(b, &p, "end", end, n);
    if (strides) add_exprs(b, &p, "strides", strides, n);
    return put(b, RX_OP_STRIDED_SLICE, &x, 1, &p);
}

V *relax_dynamic_strided_slice(B *b, V *x, V *begin, V *end, V *strides)
{
    return api_op(b, RX_OP_DYNAMIC_STRIDED_SLICE, (V *[]){ x, begin, end, strides }, 4, NULL, 0);
}

V *relax_gather_elements(B *b, V *x, V *i, int64_t axis)
{
    return with_axis(b, RX_OP_GATHER_ELEMENTS, (V *[]){x, i}, 2, axis, NULL, 0);
}

V *relax_gather_nd(B *b, V *x, V *indices, int64_t batch_dims)
{
    pack p = none();
    add_int(b, &p, "batch_dims", batch_dims);
    return put(b, RX_OP_GATHER_ND, (V *[]){ x, indices }, 2, &p);
}

V *relax_scatter_elements(B *b, V *x, V *indices, V *updates, int64_t axis, const char *reduction)
{
    pack p = none();
    add_int(b, &p, "axis", axis);
    add_str(b, &p, "reduction", reduction);
    return put(b, RX_OP_SCATTER_ELEMENTS, (V *[]){ x, indices, updates }, 3, &p);
}

V *relax_scatter_nd(B *b, V *x, V *indices, V *updates, const char *reduction)
{
    pack p = none();
    add_str(b, &p, "reduction", reduction);
    return put(b, RX_OP_SCATTER_ND, (V *[]){ x, indices, updates }, 3, &p);
}

V *relax_index_put(B *b, V *x, V *values, V *const *indices, uint32_t n, int32_t accumulate)
{
    enum { MOST = 32 };
    V *args[MOST + 2] = { x, values };
    pack p = none();
    if (!api_operands(b, indices, n, "index_put")) return NULL;
    if (n > MOST) {
        b->status = rx_error(b->mod->ctx, RXE_RANK, NULL, NULL, "index_put: %u index tensors; at most %d", n, MOST);
        return NULL;
    }
    for (uint32_t i = 0; i < n; i++) args[i + 2] = indices[i];
    add_flag(b, &p, "accumulate", accumulate);
    return put(b, RX_OP_INDEX_PUT, args, n + 2, &p);
}

/* ---- linear algebra, shapes ---- */
V *relax_matmul(B *b, V *x, V *y) { return op2(b, RX_OP_MATMUL, x, y); }
V *relax_reshape(B *b, V *x, const char *dims) { return op2(b, RX_OP_RESHAPE, x, relax_shape_text(b, dims)); }
V *relax_broadcast_to(B *b, V *x, const char *dims) { return op2(b, RX_OP_BROADCAST_TO, x, relax_shape_text(b, dims)); }

static V *with_ints(B *b, rx_opcode c, V *x, const char *key, const int64_t *v, uint32_t n)
{
    pack p = none();
    add_ints(b, &p, key, v, n);
    return put(b, c, &x, 1, &p);
}

V *relax_permute_dims(B *b, V *x, const int64_t *axes, uint32_t n)
{
    return with_ints(b, RX_OP_PERMUTE_DIMS, x, "axes", axes, n);
}
V *relax_expand_dims(B *b, V *x, const int64_t *axes, uint32_t n)
{
    return with_ints(b, RX_OP_EXPAND_DIMS, x, "axis", axes, n);
}
V *relax_squeeze(B *b, V *x, const int64_t *axes, uint32_t n)
{
    return with_ints(b, RX_OP_SQUEEZE, x, "axis", axes, n);
}
V *relax_tile(B *b, V *x, const int64_t *repeats, uint32_t n)
{
    return with_ints(b, RX_OP_TILE, x, "repeats", repeats, n);
}
V *relax_concat(B *b, V *const *xs, uint32_t n, int64_t axis)
{
    return with_axis(b, RX_OP_CONCAT, xs, n, axis, NULL, 0);
}
V *relax_stack(B *b, V *const *xs, uint32_t n, int64_t axis) { return with_axis(b, RX_OP_STACK, xs, n, axis, NULL, 0); }

V *relax_split(B *b, V *x, int64_t parts, int64_t axis)
{
    pack p = none();
    add_int(b, &p, "sections", parts);
    add_int(b, &p, "axis", axis);
    return put(b, RX_OP_SPLIT, &x, 1, &p);
}

V *relax_split_at(B *b, V *x, const int64_t *at, uint32_t n, int64_t axis)
{
    pack p = none();
    add_attr(b, &p, "indices", RX_A_INTS, at, n);
    add_int(b, &p, "axis", axis);
    return put(b, RX_OP_SPLIT, &x, 1, &p);
}

V *relax_repeat(B *b, V *x, int64_t repeats, int64_t axis)
{
    pack p = none();
    add_int(b, &p, "repeats", repeats);
    add_int(b, &p, "axis", axis);
    return put(b, RX_OP_REPEAT, &x, 1, &p);
}

V *relax_flip(B *b, V *x, int64_t axis) { return with_axis(b, RX_OP_FLIP, &x, 1, axis, NULL, 0); }
V *relax_flatten(B *b, V *x) { return op1(b, RX_OP_FLATTEN, x); }

/* ---- sorting, sets ---- */
V *relax_sort(B *b, V *x, int64_t axis, int32_t descending)
{
    return with_axis(b, RX_OP_SORT, &x, 1, axis, "descending", descending);
}

V *relax_argsort(B *b, V *x, int64_t axis, int32_t descending, relax_dtype dtype)
{
    pack p = none();
    add_int(b, &p, "axis", axis);
    add_flag(b, &p, "descending", descending);
    add_dtype(b, &p, "dtype", dtype);
    return put(b, RX_OP_ARGSORT, &x, 1, &p);
}

V *relax_topk(B *b, V *x, int64_t k, int64_t axis, int32_t largest)
{
    pack p = none();
    add_int(b, &p, "k", k);
    add_int(b, &p, "axis", axis);
    add_flag(b, &p, "largest", largest);
    return put(b, RX_OP_TOPK, &x, 1, &p);
}

V *relax_unique(B *b, V *x) { return op1(b, RX_OP_UNIQUE, x); }
V *relax_nonzero(B *b, V *x) { return op1(b, RX_OP_NONZERO, x); }

/* ---- neural networks ---- */
V *relax_softmax(B *b, V *x, int64_t axis) { return with_axis(b, RX_OP_SOFTMAX, &x, 1, axis, NULL, 0); }
V *relax_log_softmax(B *b, V *x, int64_t axis) { return with_axis(b, RX_OP_LOG_SOFTMAX, &x, 1, axis, NULL, 0); }

V *relax_rms_norm(B *b, V *x, V *weight, double epsilon)
{
    pack p = none();
    add_float(b, &p, "epsilon", epsilon);
    return put(b, RX_OP_RMS_NORM, (V *[]){ x, weight }, 2, &p);
}

V *relax_layer_norm(B *b, V *x, V *gamma, V *beta, double epsilon)
{
    pack p = none();
    add_float(b, &p, "epsilon", epsilon);
    return put(b, RX_OP_LAYER_NORM, (V *[]){ x, gamma, beta }, 3, &p);
}

V *relax_shape_of(B *b, V *x) { return op1(b, RX_OP_SHAPE_OF, x); }
V *relax_shape_to_tensor(B *b, V *shape) { return op1(b, RX_OP_SHAPE_TO_TENSOR, shape); }
V *relax_tensor_to_shape(B *b, V *x) { return op1(b, RX_OP_TENSOR_TO_SHAPE, x); }
V *relax_multinomial_from_uniform(B *b, V *prob, V *uniform, V *rows)
{
    return api_op(b, RX_OP_MULTINOMIAL_FROM_UNIFORM, (V *[]){ prob, uniform, rows }, 3, NULL, 0);
}

/* ---- any operator ---- */
V *relax_op(B *b, const char *name, V *const *args, uint32_t n, const char *attrs)
{
    if (!api_operands(b, NULL, 0, "")) return NULL;
    relax_context *ctx = b->mod->ctx;
    rx_where w = { .function = b->fn->name };
    const rx_op *op = NULL;
    for (uint32_t i = 0; name && i < ctx->ops->all.n; i++)
        if (!strcmp(ctx->ops->all.at[i]->name, name)) op = ctx->ops->all.at[i];
    if (!op) {
        b->status = rx_error(ctx, RXE_UNKNOWN_OP, &w, "docs/semantics.md lists them; relax_op_describe too",
                             "no operator is named '%s'", name ? name : "(null)");
        return NULL;
    }
    for (uint32_t i = 0; i < n; i++)
        if (args && args[i] && !api_operands(b, &args[i], 1, name)) return NULL;
    API_TRY(ctx) {
        rx_attrs at = rx_parse_attrs_text(b->fn, op, attrs ? attrs : "", attrs ? strlen(attrs) : 0);
        V *v = rx_emit_op(&b->gb, op, (V **)args, n, at.at, at.n);
        API_RETURN(v);
    }
    return api_stick(b);
}

uint32_t relax_op_count(relax_context *ctx)
{
    if (!rx_ctx_ok(ctx)) return 0;
    API_TRY(ctx) {
        rx_ops_init(ctx);
        API_RETURN(ctx->ops->all.n);
    }
    return 0;
}

relax_status relax_op_describe(relax_context *ctx, uint32_t i, relax_op_info *out)
{
    if (i >= relax_op_count(ctx) || !out || out->struct_size < sizeof out->struct_size) return RELAX_E_INVALID;
    const rx_op *op = ctx->ops->all.at[i];
    relax_op_info r = {out->struct_size, op->name,     op->attr_spec ? op->attr_spec : "",
                       op->doc,          op->min_args, op->max_args};
    memcpy(out, &r, RX_MIN(sizeof r, out->struct_size));
    return RELAX_OK;
}
