/* deduce.c: steps that deduce functions share: kinds of arguments, axes, equality of dims, broadcasting.
 *
 * Rules kept by all of them: a shape is never given up because one dim is unproved; an equality that is needed but
 * unproved becomes an obligation of the call; one that is disproved fails and names both dims. An unknown dtype ("?")
 * or rank passes every check that it might satisfy. */
#include "op/impl.h"

static const char *type_text(rx_call *c, rx_ty t)
{
    rx_buf b;
    rx_buf_init(&b, c->a);
    if (t)
        rx_print_type(&b, t);
    return b.at ? b.at : "nothing";
}

const char *rx_ex_text(rx_call *c, rx_ex e)
{
    rx_buf b;
    rx_buf_init(&b, c->a);
    rx_print_expr(&b, e);
    return b.at;
}

static rx_ty arg_kind(rx_call *c, uint32_t i, rx_tkind kind, const char *what)
{
    rx_ty t = i < c->n ? c->types[i] : NULL;
    if (!t || t->kind != kind)
        rx_fail_op(c, RXE_TYPE_KIND, "argument %u must be a %s, not %s", i, what, type_text(c, t));
    return t;
}

rx_ty rx_arg_tensor(rx_call *c, uint32_t i)
{
    return arg_kind(c, i, RX_TY_TENSOR, "tensor");
}

rx_ty rx_arg_shape(rx_call *c, uint32_t i)
{
    return arg_kind(c, i, RX_TY_SHAPE, "shape");
}

rx_ty rx_arg_prim(rx_call *c, uint32_t i)
{
    rx_ty t = arg_kind(c, i, RX_TY_PRIM, "scalar Prim(i64)");
    if (t->dtype != RELAX_I64 || !t->known)
        rx_fail_op(c, RXE_TYPE_KIND, "argument %u must be a Prim(i64) of known value, not %s", i, type_text(c, t));
    return t;
}

rx_ty *rx_arg_tensors(rx_call *c, uint32_t first, uint32_t *n)
{
    if (c->n == first + 1 && c->types[first] && c->types[first]->kind == RX_TY_TUPLE) {
        rx_ty t = c->types[first];
        for (uint32_t i = 0; i < t->nelems; i++)
            if (t->elems[i]->kind != RX_TY_TENSOR)
                rx_fail_op(c, RXE_TYPE_KIND, "field %u must be a tensor, not %s", i, type_text(c, t->elems[i]));
        *n = t->nelems;
        return t->elems;
    }
    rx_ty *r = RX_NEWN(c->a, rx_ty, c->n);
    for (uint32_t i = first; i < c->n; i++)
        r[i - first] = rx_arg_tensor(c, i);
    *n = c->n - first;
    return r;
}

void rx_want_float(rx_call *c, relax_dtype t, const char *what)
{
    if (t != RELAX_DTYPE_UNKNOWN && !rx_dtype_is_float(t))
        rx_fail_op(c, RXE_DTYPE, "%s must be floating-point, not %s", what, rx_dtypes[t].name);
}

void rx_want_int(rx_call *c, relax_dtype t, const char *what)
{
    if (t != RELAX_DTYPE_UNKNOWN && !rx_dtype_is_int(t))
        rx_fail_op(c, RXE_DTYPE, "%s must be of an integer type, not %s", what, rx_dtypes[t].name);
}

void rx_want_number(rx_call *c, relax_dtype t, const char *what)
{
    if (t == RELAX_BOOL)
        rx_fail_op(c, RXE_DTYPE, "%s must be numbers, not bool", what);
}

relax_dtype rx_same_dtype(rx_call *c, relax_dtype a, relax_dtype b)
{
    if (a == RELAX_DTYPE_UNKNOWN || b == RELAX_DTYPE_UNKNOWN)
        return RELAX_DTYPE_UNKNOWN;
    if (a != b)
        rx_fail_op(c, RXE_DTYPE, "operands have different data types, %s and %s", rx_dtypes[a].name, rx_dtypes[b].name);
    return a;
}

int32_t rx_norm_axis(rx_call *c, int64_t axis, int32_t ndim)
{
    if (ndim < 0)
        return (int32_t)axis;
    if (axis < -(int64_t)ndim || axis >= ndim)
        rx_fail_op(c, RXE_AXIS, "axis %lld is out of range for rank %d", (long long)axis, ndim);
    return (int32_t)(axis < 0 ? axis + ndim : axis);
}

bool *rx_norm_axes(rx_call *c, const rx_attr *a, int32_t ndim)
{
    bool *in = RX_NEWN(c->a, bool, ndim > 0 ? (size_t)ndim : 1);
    if (!a) {
        for (int32_t i = 0; i < ndim; i++)
            in[i] = true;
        return in;
    }
    for (uint32_t i = 0; i < a->u.ints.n; i++) {
        int32_t x = rx_norm_axis(c, a->u.ints.at[i], ndim);
        if (in[x])
            rx_fail_op(c, RXE_AXIS, "axis %d is given twice", x);
        in[x] = true;
    }
    return in;
}

void rx_same_dim(rx_call *c, rx_ex a, rx_ex b, const char *what)
{
    if (rx_prove_eq(c->ctx, c->f->facts, a, b) == RX_FALSE)
        rx_fail_op(c, RXE_SHAPE, "%s: %s and %s cannot be equal", what, rx_ex_text(c, a), rx_ex_text(c, b));
    rx_require(c->f, c->checks, rx_eq(c->ctx, a, b), what);
}

void rx_require_cond(rx_call *c, rx_ex cond, const char *what)
{
    if (rx_prove(c->ctx, c->f->facts, cond, NULL) == RX_FALSE)
        rx_fail_op(c, RXE_SHAPE, "%s: %s does not hold", what, rx_ex_text(c, cond));
    rx_require(c->f, c->checks, cond, what);
}

/* Two extents a, b become max(a, b) if one is 1, else they must be equal. What is not known to be 1 decides: n against
 * 3 gives 3 (n is 1 or 3); n against m gives n (n == m: a symbolic extent is taken to be no accidental 1); n against n
 * + 2 gives n + 2 (n is 1). */
rx_ex rx_broadcast_dim(rx_call *c, rx_ex a, rx_ex b)
{
    relax_context *ctx = c->ctx;
    rx_ex one = rx_int(ctx, 1);
    rx_truth eq = rx_prove_eq(ctx, c->f->facts, a, b);
    if (eq == RX_TRUE)
        return a;
    rx_truth a1 = rx_prove_eq(ctx, c->f->facts, a, one), b1 = rx_prove_eq(ctx, c->f->facts, b, one);
    if (a1 == RX_TRUE || b1 == RX_TRUE)
        return a1 == RX_TRUE ? b : a;
    if (eq == RX_FALSE && a1 == RX_FALSE && b1 == RX_FALSE)
        rx_fail_op(c, RXE_SHAPE, "dims %s and %s cannot be broadcast", rx_ex_text(c, a), rx_ex_text(c, b));
    int64_t v;
    bool ac = rx_is_int(a, &v), bc = rx_is_int(b, &v);
    if (eq == RX_UNKNOWN && !ac && !bc) {
        rx_same_dim(c, a, b, "broadcast");
        return a;
    }
    rx_ex cond = rx_bool(ctx, false);
    if (a1 != RX_FALSE)
        cond = rx_or(ctx, cond, rx_eq(ctx, a, one));
    if (b1 != RX_FALSE)
        cond = rx_or(ctx, cond, rx_eq(ctx, b, one));
    if (eq == RX_UNKNOWN)
        cond = rx_or(ctx, cond, rx_eq(ctx, a, b));
    rx_require_cond(c, cond, "broadcast");
    return a1 == RX_FALSE ? a : b1 == RX_FALSE ? b : rx_max(ctx, a, b);
}

rx_ty rx_broadcast(rx_call *c, const rx_ty *t, uint32_t n, relax_dtype dt)
{
    int32_t ndim = 0;
    bool known = true;
    for (uint32_t i = 0; i < n; i++) {
        if (t[i]->ndim < 0)
            return rx_ty_tensor_ndim(c->ctx, -1, dt);
        ndim = RX_MAX(ndim, t[i]->ndim);
        known &= t[i]->known;
    }
    if (!known)
        return rx_ty_tensor_ndim(c->ctx, ndim, dt);
    rx_ex *d = RX_NEWN(c->a, rx_ex, ndim + 1);
    for (int32_t k = 0; k < ndim; k++)
        for (uint32_t i = 0; i < n; i++) {
            int32_t at = k - (ndim - t[i]->ndim);
            if (at >= 0)
                d[k] = d[k] ? rx_broadcast_dim(c, d[k], t[i]->dims[at]) : t[i]->dims[at];
        }
    return rx_ty_tensor(c->ctx, d, ndim, dt);
}

rx_ty rx_retype(rx_call *c, rx_ty t, relax_dtype dt)
{
    return t->known ? rx_ty_tensor(c->ctx, t->dims, t->ndim, dt) : rx_ty_tensor_ndim(c->ctx, t->ndim, dt);
}

rx_ex rx_elements(relax_context *ctx, rx_ty t)
{
    return rx_product(ctx, t->dims, (uint32_t)t->ndim);
}

relax_dtype rx_attr_dtype(const rx_attrs *a, const char *key, relax_dtype absent)
{
    const rx_attr *x = rx_attr_get(a, key);
    return x ? x->u.dtype : absent;
}

rx_ex rx_attr_expr(const rx_attrs *a, const char *key, rx_ex absent)
{
    const rx_attr *x = rx_attr_get(a, key);
    return x ? x->u.e : absent;
}

/* v as an index into an axis: negative counts from the end, then limited to lo..hi. A select on the sign is left out
 * when the sign is known, and when counting from the end would end at lo too (n - 1 in an axis of n). */
static rx_ex clamp_index(relax_context *ctx, const rx_facts *f, rx_ex v, rx_ex extent, rx_ex lo, rx_ex hi)
{
    rx_ex neg = rx_lt(ctx, v, rx_int(ctx, 0)), back = rx_add(ctx, v, extent), w = v;
    rx_truth t = rx_prove(ctx, f, neg, NULL);
    if (t == RX_TRUE)
        w = back;
    if (t == RX_UNKNOWN) {
        rx_facts *below = rx_facts_new(ctx, rx_scratch(&ctx->heap), f);
        rx_facts_add(below, neg);
        if (rx_prove_le(ctx, below, back, lo) != RX_TRUE)
            w = rx_select(ctx, neg, back, v);
    }
    return rx_simplify(ctx, f, rx_min(ctx, rx_max(ctx, w, lo), hi));
}

/* end - first; through a max in first when that leaves a constant on one side: n - max(n - 1, 0) is min(1, n) */
static rx_ex span_of(relax_context *ctx, rx_ex end, rx_ex first)
{
    int64_t v;
    if (first->op != RX_EX_MAX)
        return rx_sub(ctx, end, first);
    rx_ex x = rx_sub(ctx, end, first->a[0]), y = rx_sub(ctx, end, first->a[1]);
    return rx_is_int(x, &v) || rx_is_int(y, &v) ? rx_min(ctx, x, y) : rx_sub(ctx, end, first);
}

rx_slice rx_slice_axis(relax_context *ctx, const rx_facts *f, rx_ex extent, rx_ex begin, rx_ex end, rx_ex stride,
                       bool inbound)
{
    rx_ex zero = rx_int(ctx, 0), one = rx_int(ctx, 1), lo = zero, hi = extent;
    bool down = rx_prove(ctx, f, rx_lt(ctx, stride, zero), NULL) == RX_TRUE;
    if (down) {
        lo = rx_int(ctx, -1);
        hi = rx_subi(ctx, extent, 1);
    }
    if (!inbound) {
        begin = clamp_index(ctx, f, begin, extent, lo, hi);
        end = clamp_index(ctx, f, end, extent, lo, hi);
    }
    rx_ex step = down ? rx_sub(ctx, zero, stride) : stride;
    rx_ex span = down ? span_of(ctx, begin, end) : span_of(ctx, end, begin);
    rx_ex n = rx_div(ctx, rx_add(ctx, span, rx_sub(ctx, step, one)), step);
    return (rx_slice){ .first = begin, .count = rx_simplify(ctx, f, rx_max(ctx, n, zero)), .down = down };
}
