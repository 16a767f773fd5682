/* create.c: tensors from nothing: constants, ranges, diagonals, one-hot. */
#include <math.h>
#include "op/impl.h"

/* a tensor of the shape value s */
static rx_ty of_shape(rx_call *c, rx_ty s, relax_dtype dt)
{
    return s->known ? rx_ty_tensor(c->ctx, s->dims, s->ndim, dt) : rx_ty_tensor_ndim(c->ctx, s->ndim, dt);
}

/* argument i must be a scalar: a tensor of rank 0 or a Prim */
static rx_ty scalar_arg(rx_call *c, uint32_t i)
{
    rx_ty t = c->types[i];
    if (t && t->kind == RX_TY_PRIM)
        return t;
    t = rx_arg_tensor(c, i);
    if (t->ndim != 0)
        rx_fail_op(c, RXE_RANK, "the value must be a tensor of rank 0");
    return t;
}

rx_ty rx_deduce_full(rx_call *c)
{
    rx_ty s = rx_arg_shape(c, 0), v = scalar_arg(c, 1);
    return of_shape(c, s, rx_attr_dtype(&c->attrs, "dtype", v->dtype));
}

rx_ty rx_deduce_fill(rx_call *c)
{
    return of_shape(c, rx_arg_shape(c, 0), rx_attr_dtype(&c->attrs, "dtype", RELAX_F32));
}

rx_ty rx_deduce_full_like(rx_call *c)
{
    rx_ty t = rx_arg_tensor(c, 0);
    scalar_arg(c, 1);
    return rx_retype(c, t, rx_attr_dtype(&c->attrs, "dtype", t->dtype));
}

rx_ty rx_deduce_fill_like(rx_call *c)
{
    rx_ty t = rx_arg_tensor(c, 0);
    return rx_retype(c, t, rx_attr_dtype(&c->attrs, "dtype", t->dtype));
}

/* a constant number: an integer or float constant expression */
static bool const_number(rx_ex e, double *v)
{
    int64_t i;
    if (e->op == RX_EX_FLOAT)
        *v = e->u.f;
    else if (rx_is_int(e, &i))
        *v = (double)i;
    else
        return false;
    return true;
}

static bool is_real(rx_ex e)
{
    return rx_dtype_is_float(e->dtype);
}

/* extent of a range with float bounds: all must be constants */
static rx_ex real_extent(rx_call *c, rx_ex start, rx_ex end, rx_ex step)
{
    double a, b, s;
    if (!const_number(start, &a) || !const_number(end, &b) || !const_number(step, &s))
        rx_fail_op(c, RXE_ATTR, "a range with floating-point bounds must have constant bounds");
    double n = s != 0 ? ceil((b - a) / s) : NAN;
    if (!(n < 9e15))
        rx_fail_op(c, RXE_ATTR, "the range has no finite extent");
    return rx_int(c->ctx, n > 0 ? (int64_t)n : 0);
}

rx_ty rx_deduce_arange(rx_call *c)
{
    relax_context *ctx = c->ctx;
    rx_ex start = rx_attr_expr(&c->attrs, "start", rx_int(ctx, 0)), end = rx_attr_expr(&c->attrs, "end", NULL);
    rx_ex step = rx_attr_expr(&c->attrs, "step", rx_int(ctx, 1)), n;
    bool real = is_real(start) || is_real(end) || is_real(step);
    relax_dtype dt = rx_attr_dtype(&c->attrs, "dtype", real ? RELAX_F32 : RELAX_I64);
    rx_want_number(c, dt, "elements");
    if (real) {
        n = real_extent(c, start, end, step);
    } else {
        rx_ex zero = rx_int(ctx, 0);
        rx_truth down = rx_prove(ctx, c->f->facts, rx_lt(ctx, step, zero), NULL);
        if (down != RX_TRUE)
            rx_require_cond(c, rx_lt(ctx, zero, step), "a symbolic step must be positive");
        rx_ex span = down == RX_TRUE ? rx_sub(ctx, start, end) : rx_sub(ctx, end, start);
        rx_ex s = down == RX_TRUE ? rx_sub(ctx, zero, step) : step;
        n = rx_div(ctx, rx_add(ctx, span, rx_subi(ctx, s, 1)), s);
        n = rx_simplify(ctx, c->f->facts, rx_max(ctx, n, zero));
    }
    return rx_ty_tensor(ctx, &n, 1, dt);
}

static void extent_attr(rx_call *c, rx_ex e, const char *what)
{
    if (rx_dtype_is_float(e->dtype))
        rx_fail_op(c, RXE_ATTR, "%s must be an integer", what);
    rx_require_cond(c, rx_le(c->ctx, rx_int(c->ctx, 0), e), what);
}

rx_ty rx_deduce_eye(rx_call *c)
{
    rx_ex d[2] = { rx_attr_expr(&c->attrs, "n", NULL) };
    d[1] = rx_attr_expr(&c->attrs, "m", d[0]);
    extent_attr(c, d[0], "n");
    extent_attr(c, d[1], "m");
    return rx_ty_tensor(c->ctx, d, 2, rx_attr_dtype(&c->attrs, "dtype", RELAX_F32));
}

rx_ty rx_deduce_tri(rx_call *c)
{
    rx_ty t = rx_arg_tensor(c, 0);
    if (t->ndim == 0 || t->ndim == 1)
        rx_fail_op(c, RXE_RANK, "needs a matrix or a batch of matrices, not rank %d", t->ndim);
    return t;
}

rx_ty rx_deduce_one_hot(rx_call *c)
{
    relax_context *ctx = c->ctx;
    rx_ty t = rx_arg_tensor(c, 0);
    rx_want_int(c, t->dtype, "indices");
    rx_ex on = rx_attr_expr(&c->attrs, "on_value", NULL), off = rx_attr_expr(&c->attrs, "off_value", NULL);
    rx_ex depth = rx_attr_expr(&c->attrs, "depth", NULL);
    double v;
    if (!const_number(on, &v) || !const_number(off, &v) || is_real(on) != is_real(off))
        rx_fail_op(c, RXE_ATTR, "on_value and off_value must be two integers or two floats");
    extent_attr(c, depth, "depth");
    relax_dtype dt = is_real(on) ? RELAX_F32 : RELAX_I64;
    if (t->ndim < 0)
        return rx_ty_tensor_ndim(ctx, -1, dt);
    int32_t axis = rx_norm_axis(c, rx_attr_int(&c->attrs, "axis", -1), t->ndim + 1);
    if (!t->known)
        return rx_ty_tensor_ndim(ctx, t->ndim + 1, dt);
    rx_ex *d = RX_NEWN(c->a, rx_ex, t->ndim + 1);
    for (int32_t i = 0, k = 0; i <= t->ndim; i++)
        d[i] = i == axis ? depth : t->dims[k++];
    return rx_ty_tensor(ctx, d, t->ndim + 1, dt);
}

/* ---- tensor programs ---- */

static rx_stmt *fill_with(rx_legal *l, rx_ex value)
{
    return rx_map_out(l, rx_vars(l, (uint32_t)l->out->ndim), rx_cast(l->ctx, l->out->dtype, value));
}

static rx_stmt *fill_with_arg(rx_legal *l)
{
    return fill_with(l, rx_operand(l, 1, NULL, l->out));
}

rx_stmt *rx_legal_full(rx_legal *l)
{
    return fill_with_arg(l);
}

rx_stmt *rx_legal_full_like(rx_legal *l)
{
    return fill_with_arg(l);
}

rx_stmt *rx_legal_fill(rx_legal *l)
{
    return fill_with(l, rx_f(l, l->out->dtype, l->op->code == RX_OP_ONES || l->op->code == RX_OP_ONES_LIKE));
}

rx_stmt *rx_legal_fill_like(rx_legal *l)
{
    return rx_legal_fill(l);
}

/* start + i * step in i64, or in f64 when a bound is a float, rounded once */
rx_stmt *rx_legal_arange(rx_legal *l)
{
    relax_context *ctx = l->ctx;
    rx_ex start = rx_attr_expr(l->attrs, "start", NULL), step = rx_attr_expr(l->attrs, "step", NULL);
    rx_ex *v = rx_vars(l, 1), i = v[0];
    if (is_real(start) || is_real(step) || is_real(rx_attr_expr(l->attrs, "end", NULL))) {
        start = rx_cast(ctx, RELAX_F64, start);
        step = rx_cast(ctx, RELAX_F64, step);
        i = rx_cast(ctx, RELAX_F64, i);
    }
    return rx_map_out(l, v, rx_cast(ctx, l->out->dtype, rx_add(ctx, start, rx_mul(ctx, i, step))));
}

rx_stmt *rx_legal_eye(rx_legal *l)
{
    relax_context *ctx = l->ctx;
    rx_ex *v = rx_vars(l, 2), k = rx_attr_expr(l->attrs, "k", NULL);
    rx_ex on = rx_eq(ctx, rx_sub(ctx, v[1], v[0]), k);
    return rx_map_out(l, v, rx_select(ctx, on, rx_f(l, l->out->dtype, 1), rx_zero(l, l->out->dtype)));
}

rx_stmt *rx_legal_tri(rx_legal *l)
{
    relax_context *ctx = l->ctx;
    int32_t n = l->out->ndim;
    rx_ex *v = rx_vars(l, (uint32_t)n), d = rx_sub(ctx, v[n - 1], v[n - 2]), k = rx_attr_expr(l->attrs, "k", NULL);
    rx_ex keep = l->op->code == RX_OP_TRIL ? rx_le(ctx, d, k) : rx_le(ctx, k, d);
    return rx_map_out(l, v, rx_select(ctx, keep, rx_load_at(l, l->x[0], v), rx_zero(l, l->out->dtype)));
}

rx_stmt *rx_legal_one_hot(rx_legal *l)
{
    relax_context *ctx = l->ctx;
    int32_t n = l->out->ndim, axis = (int32_t)rx_attr_int(l->attrs, "axis", -1);
    axis = axis < 0 ? axis + n : axis;
    rx_ex *v = rx_vars(l, (uint32_t)n), *ix = RX_NEWN(l->tb.a, rx_ex, n);
    for (int32_t i = 0, k = 0; i < n; i++)
        if (i != axis)
            ix[k++] = v[i];
    rx_ex at = rx_cast(ctx, RELAX_I64, rx_load_at(l, l->x[0], ix));
    rx_ex on = rx_cast(ctx, l->out->dtype, rx_attr_expr(l->attrs, "on_value", NULL));
    rx_ex off = rx_cast(ctx, l->out->dtype, rx_attr_expr(l->attrs, "off_value", NULL));
    return rx_map_out(l, v, rx_select(ctx, rx_eq(ctx, at, v[axis]), on, off));
}
