/* op_run.c: one operator call on values: attributes made constant, the result's shape by the operator's own deduction
 * on constant shapes, then the function of its family. The switch over all operators has no default: a new operator
 * does not compile without its row here. Elements are computed in f64 (f32 where the order of rounding shows) and
 * rounded once. */
#include "interp/impl.h"

void rx_opx_fail(const rx_opx *o, enum rx_err e, const char *fmt, ...)
{
    rx_buf b;
    rx_buf_init(&b, rx_scratch(&o->ctx->heap));
    va_list ap;
    va_start(ap, fmt);
    rx_putv(&b, fmt, ap);
    va_end(ap);
    rx_where w = {.function = o->op->name};
    rx_fail(o->ctx, e, &w, "%s", b.at);
}

/* --- helpers of the families --- */

int64_t rx_offset(const int64_t *dims, int32_t ndim, const int64_t *ix)
{
    int64_t o = 0;
    for (int32_t i = 0; i < ndim; i++)
        o = o * dims[i] + ix[i];
    return o;
}

void rx_index(const int64_t *dims, int32_t ndim, int64_t i, int64_t *ix)
{
    for (int32_t k = ndim; k-- > 0;) {
        ix[k] = dims[k] ? i % dims[k] : 0;
        i = dims[k] ? i / dims[k] : 0;
    }
}

int64_t rx_bcast(const rx_ival *t, const int64_t *ix, int32_t ndim)
{
    int64_t o = 0;
    for (int32_t i = 0; i < t->ndim; i++)
        o = o * t->dims[i] + (t->dims[i] == 1 ? 0 : ix[ndim - t->ndim + i]);
    return o;
}

int32_t rx_axis(int64_t axis, int32_t ndim)
{
    return (int32_t)(axis < 0 ? axis + ndim : axis);
}

int64_t rx_iattr(const rx_opx *o, const char *key, int64_t absent)
{
    return rx_attr_int(o->attrs, key, absent);
}

rx_ival *const *rx_spread(const rx_opx *o, uint32_t first, uint32_t *n)
{
    if (o->n == first + 1 && o->x[first]->kind == RX_I_TUPLE) {
        *n = o->x[first]->n;
        return o->x[first]->at;
    }
    *n = o->n - first;
    return o->x + first;
}

int64_t rx_checked_index(const rx_opx *o, int64_t v, bool is_unsigned, int64_t extent, const char *mode)
{
    if (!strcmp(mode, "clip")) {
        v = RX_MAX(RX_MIN(v, extent - 1), 0);
    } else if (!strcmp(mode, "wrap")) {
        if (extent > 0)
            rx_floormod_ok(v, extent, &v);
    } else if (v < 0 && !is_unsigned) {
        v += extent;
    }
    if (v < 0 || v >= extent)
        rx_opx_fail(o, RXE_INDEX, "an index lies outside its axis");
    return v;
}

/* --- making everything constant --- */

static rx_attrs constant_attrs(rx_interp *in, const rx_attrs *attrs, const rx_map *env)
{
    relax_context *ctx = in->ctx;
    rx_arena *a = rx_scratch(&ctx->heap);
    rx_map to;
    rx_map_init(&to, a);
    for (uint32_t i = 0; env && i < env->n; i++)
        if (env->e[i].val)
            rx_map_put(&to, env->e[i].key, (void *)rx_int(ctx, *(const int64_t *)env->e[i].val));
    rx_attrs r = rx_attrs_copy(ctx, a, attrs);
    for (uint32_t i = 0; i < r.n; i++) {
        rx_attr *x = &r.at[i];
        if (x->kind == RX_A_EXPR)
            x->u.e = rx_subst(ctx, x->u.e, &to);
        for (uint32_t k = 0; x->kind == RX_A_EXPRS && k < x->u.exprs.n; k++)
            x->u.exprs.at[k] = rx_subst(ctx, x->u.exprs.at[k], &to);
    }
    return r;
}

/* The 0 of a shape that is computed is an extent of 0; a literal one (rx_ival.bits) keeps the input's. On constants the
 * rule of deduction could not tell them apart. */
static rx_ty reshaped(rx_opx *o)
{
    const rx_ival *x = o->x[0], *s = o->x[1];
    rx_ex d[RX_MAX_RANK];
    int64_t part = 1, v[RX_MAX_RANK], hole = -1;
    for (int32_t i = 0; i < s->ndim; i++) {
        v[i] = s->bits >> i & 1 && i < x->ndim ? x->dims[i] : s->dims[i];
        if (v[i] < 0 && (v[i] < -1 || hole >= 0))
            rx_opx_fail(o, RXE_SHAPE, "dim %d of the new shape is %lld", i, (long long)v[i]);
        if (v[i] < 0)
            hole = i;
        else if (!rx_mul_ok(part, v[i], &part))
            rx_opx_fail(o, RXE_LIMIT, "the new shape is too large");
    }
    if (hole >= 0 && part > 0) {
        v[hole] = rx_ival_count(x) / part;
        part *= v[hole];
    }
    if (part != rx_ival_count(x) || (hole >= 0 && v[hole] < 0))
        rx_opx_fail(o, RXE_SHAPE, "%lld elements do not become %lld", (long long)rx_ival_count(x), (long long)part);
    for (int32_t i = 0; i < s->ndim; i++)
        d[i] = rx_int(o->ctx, v[i]);
    return rx_ty_tensor(o->ctx, d, s->ndim, x->dtype);
}

static rx_ty result_type(rx_opx *o, relax_function *f)
{
    if (o->op->code == RX_OP_RESHAPE && o->n == 2 && o->x[0] && o->x[1] && o->x[0]->kind == RX_I_TENSOR &&
        o->x[1]->kind == RX_I_SHAPE)
        return reshaped(o);
    rx_ty *types = RX_NEWN(o->a, rx_ty, (size_t)o->n + 1);
    rx_exvec checks = {0};
    for (uint32_t i = 0; i < o->n; i++)
        types[i] = o->x[i] ? rx_ival_type(o->ctx, o->x[i]) : NULL;
    rx_call c = {.ctx = o->ctx, .f = f, .op = o->op, .types = types, .n = o->n, .attrs = *o->attrs, .checks = &checks,
                 .a = rx_scratch(&o->ctx->heap)};
    return rx_op_deduce(&c);
}

static rx_ival *new_result(rx_opx *o, rx_ty t)
{
    if (t->kind == RX_TY_PRIM) {
        rx_ival *v = rx_ival_int(o->in->a, 0);
        v->dtype = t->dtype;
        return v;
    }
    if (t->kind == RX_TY_SHAPE)
        return NULL;
    return rx_env_new(o->in, NULL, NULL, t);
}

/* --- dispatch --- */

static void run_op(rx_opx *o)
{
    switch ((rx_opcode)o->op->code) {
    case RX_OP_ABS: case RX_OP_NEGATIVE: case RX_OP_SQUARE: case RX_OP_RELU: case RX_OP_FLOOR: case RX_OP_CEIL:
    case RX_OP_ROUND:
    case RX_OP_TRUNC: case RX_OP_EXP: case RX_OP_LOG: case RX_OP_SQRT: case RX_OP_RSQRT: case RX_OP_SIN: case RX_OP_COS:
    case RX_OP_TANH: case RX_OP_SIGMOID: case RX_OP_SILU: case RX_OP_GELU: case RX_OP_GELU_TANH: case RX_OP_ERF:
    case RX_OP_ISNAN: case RX_OP_LOGICAL_NOT: rx_x_unary(o); break;
    case RX_OP_CLIP: rx_x_clip(o); break;
    case RX_OP_ASTYPE: rx_x_astype(o); break;
    case RX_OP_ADD: case RX_OP_SUBTRACT: case RX_OP_MULTIPLY: case RX_OP_DIVIDE: case RX_OP_POWER:
    case RX_OP_FLOOR_DIVIDE:
    case RX_OP_FLOOR_MOD: case RX_OP_MAXIMUM: case RX_OP_MINIMUM: case RX_OP_BITWISE_AND: case RX_OP_BITWISE_OR:
    case RX_OP_BITWISE_XOR: case RX_OP_LEFT_SHIFT: case RX_OP_RIGHT_SHIFT: rx_x_binary(o); break;
    case RX_OP_EQUAL: case RX_OP_NOT_EQUAL: case RX_OP_LESS: case RX_OP_LESS_EQUAL: case RX_OP_GREATER:
    case RX_OP_GREATER_EQUAL:
    case RX_OP_LOGICAL_AND: case RX_OP_LOGICAL_OR: case RX_OP_LOGICAL_XOR: rx_x_compare(o); break;
    case RX_OP_WHERE: rx_x_where(o); break;
    case RX_OP_SUM: case RX_OP_MEAN: case RX_OP_MAX: case RX_OP_MIN: case RX_OP_PROD:
    case RX_OP_VARIANCE: rx_x_reduce(o); break;
    case RX_OP_ARGMAX: case RX_OP_ARGMIN: rx_x_argreduce(o); break;
    case RX_OP_CUMSUM: rx_x_cumsum(o); break;
    case RX_OP_FULL: case RX_OP_FULL_LIKE: rx_x_full(o); break;
    case RX_OP_ZEROS: case RX_OP_ONES: case RX_OP_ZEROS_LIKE: case RX_OP_ONES_LIKE: rx_x_fill(o); break;
    case RX_OP_ARANGE: rx_x_arange(o); break;
    case RX_OP_EYE: rx_x_eye(o); break;
    case RX_OP_TRIL: case RX_OP_TRIU: rx_x_tri(o); break;
    case RX_OP_ONE_HOT: rx_x_one_hot(o); break;
    case RX_OP_TAKE: rx_x_take(o); break;
    case RX_OP_STRIDED_SLICE: rx_x_slice(o); break;
    case RX_OP_DYNAMIC_STRIDED_SLICE: rx_x_dyn_slice(o); break;
    case RX_OP_GATHER_ELEMENTS: rx_x_gather_elements(o); break;
    case RX_OP_GATHER_ND: rx_x_gather_nd(o); break;
    case RX_OP_SCATTER_ELEMENTS: rx_x_scatter_elements(o); break;
    case RX_OP_SCATTER_ND: rx_x_scatter_nd(o); break;
    case RX_OP_INDEX_PUT: rx_x_index_put(o); break;
    case RX_OP_MATMUL: rx_x_matmul(o); break;
    case RX_OP_RESHAPE: case RX_OP_EXPAND_DIMS: case RX_OP_SQUEEZE: case RX_OP_FLATTEN: rx_x_copy(o); break;
    case RX_OP_PERMUTE_DIMS: rx_x_permute(o); break;
    case RX_OP_BROADCAST_TO: rx_x_broadcast(o); break;
    case RX_OP_CONCAT: rx_x_concat(o); break;
    case RX_OP_SPLIT: rx_x_split(o); break;
    case RX_OP_STACK: rx_x_stack(o); break;
    case RX_OP_TILE: rx_x_tile(o); break;
    case RX_OP_REPEAT: rx_x_repeat(o); break;
    case RX_OP_FLIP: rx_x_flip(o); break;
    case RX_OP_SORT: rx_x_sort(o); break;
    case RX_OP_ARGSORT: rx_x_argsort(o); break;
    case RX_OP_TOPK: rx_x_topk(o); break;
    case RX_OP_UNIQUE: rx_x_unique(o); break;
    case RX_OP_NONZERO: rx_x_nonzero(o); break;
    case RX_OP_SOFTMAX: case RX_OP_LOG_SOFTMAX: rx_x_softmax(o); break;
    case RX_OP_RMS_NORM: case RX_OP_LAYER_NORM: rx_x_norm(o); break;
    case RX_OP_ROPE: rx_x_rope(o); break;
    case RX_OP_ATTENTION: rx_x_attention(o); break;
    case RX_OP_ATTENTION_CACHE: rx_x_attention_cache(o); break;
    case RX_OP_KV_APPEND: rx_x_kv_append(o); break;
    case RX_OP_SHAPE_OF: rx_x_shape_of(o); break;
    case RX_OP_SHAPE_TO_TENSOR: rx_x_shape_to_tensor(o); break;
    case RX_OP_TENSOR_TO_SHAPE: rx_x_tensor_to_shape(o); break;
    case RX_OP_MULTINOMIAL_FROM_UNIFORM: rx_x_multinomial(o); break;
    case RX_OP_DEQUANTIZE_GGUF: rx_x_gguf(o); break;
    case RX_OP_MATMUL_GGUF: rx_x_matmul_gguf(o); break;
    case RX_OP_TAKE_GGUF: rx_x_take_gguf(o); break;
    case RX_OP_COUNT: break;
    }
}

rx_ival *rx_interp_op(rx_interp *in, relax_function *f, const rx_op *op, rx_ival *const *args, uint32_t n,
                      const rx_attrs *attrs, const rx_map *env)
{
    rx_attrs constant = constant_attrs(in, attrs, env);
    rx_opx o = {.in = in, .ctx = in->ctx, .a = in->a, .op = op, .x = args, .n = n, .attrs = &constant};
    rx_ty t = result_type(&o, f);
    if (op->flags & RX_OPF_INPLACE)
        o.y = args[0];
    else if (!(op->flags & RX_OPF_DYNAMIC))
        o.y = new_result(&o, t);
    if (op->code < 0)
        rx_op_by_prim(in, op, args, n, &constant, o.y);
    else
        run_op(&o);
    if (!o.y)
        rx_opx_fail(&o, RXE_INTERNAL, "the operator gave no result");
    return o.y;
}
