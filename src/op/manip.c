/* manip.c: the same elements under another shape or order: reshape, permute, expand, squeeze, broadcast, flip, flatten.
 */
#include "op/impl.h"

/* product of a shape's dims but -1, and where -1 stands (-1: nowhere) */
static rx_ex known_part(rx_call *c, rx_ty s, int32_t *hole)
{
    rx_ex *d = RX_NEWN(c->a, rx_ex, s->ndim + 1);
    uint32_t n = 0;
    *hole = -1;
    for (int32_t i = 0; i < s->ndim; i++) {
        int64_t v;
        if (!rx_is_int(s->dims[i], &v) || v >= 0) {
            d[n++] = s->dims[i];
        } else if (v == -1 && *hole < 0) {
            *hole = i;
        } else {
            rx_fail_op(c, RXE_SHAPE, v == -1 ? "only one dim can be -1" : "dim %d of the new shape is negative", i);
        }
    }
    return rx_product(c->ctx, d, n);
}

/* total / part, exact by obligation; common factors are left out so that a*b*c / (c*b) is a */
static rx_ex rest_of(rx_call *c, rx_ex total, rx_ex part)
{
    relax_context *ctx = c->ctx;
    int64_t p;
    if (rx_is_int(part, &p) && p == 0)
        rx_fail_op(c, RXE_SHAPE, "-1 stands for no one extent beside a dim of 0");
    rx_ex q = rx_simplify(ctx, c->f->facts, rx_div(ctx, total, part));
    rx_require_cond(c, rx_eq(ctx, rx_mul(ctx, q, part), total), "the number of elements is divisible");
    return q;
}

/* A 0 that is a literal keeps the extent of the input at its place. */
static rx_ty keep_zeros(rx_call *c, rx_ty t, rx_ty s)
{
    rx_ex *d = RX_NEWN(c->a, rx_ex, s->ndim + 1);
    for (int32_t i = 0; i < s->ndim; i++) {
        d[i] = s->dims[i];
        if (rx_is_value(d[i], 0) && i < t->ndim)
            d[i] = t->dims[i];
    }
    return rx_ty_shape(c->ctx, d, s->ndim);
}

/* factors of products, to cancel those that both sides have */
static void factors(rx_arena *a, rx_ex e, rx_exvec *out)
{
    if (e->op == RX_EX_MUL) {
        factors(a, e->a[0], out);
        factors(a, e->a[1], out);
    } else {
        rx_push(a, out, e);
    }
}

/* total / part without the factors they share; a factor that is 0 makes the whole statement empty */
static void cancel(rx_call *c, rx_ex *total, rx_ex *part)
{
    rx_exvec x = { 0 }, y = { 0 };
    factors(c->a, *total, &x);
    factors(c->a, *part, &y);
    for (uint32_t i = 0; i < x.n; i++)
        for (uint32_t j = 0; j < y.n; j++)
            if (x.at[i] == y.at[j]) {
                x.at[i] = x.at[--x.n];
                y.at[j] = y.at[--y.n];
                i--;
                break;
            }
    *total = rx_product(c->ctx, x.at, x.n);
    *part = rx_product(c->ctx, y.at, y.n);
}

rx_ty rx_deduce_reshape(rx_call *c)
{
    relax_context *ctx = c->ctx;
    rx_ty t = rx_arg_tensor(c, 0), s = rx_arg_shape(c, 1);
    if (!s->known)
        return rx_ty_tensor_ndim(ctx, s->ndim, t->dtype);
    if (t->known)
        s = keep_zeros(c, t, s);
    int32_t hole;
    rx_ex part = known_part(c, s, &hole);
    if (hole >= 0) {
        if (!t->known)
            return rx_ty_tensor_ndim(ctx, s->ndim, t->dtype);
        rx_ex *d = rx_arena_dup(c->a, s->dims, (size_t)s->ndim * sizeof *s->dims), total = rx_elements(ctx, t);
        cancel(c, &total, &part);
        d[hole] = rest_of(c, total, part);
        return rx_ty_tensor(ctx, d, s->ndim, t->dtype);
    }
    if (t->known)
        rx_same_dim(c, rx_elements(ctx, t), part, "the number of elements");
    return rx_ty_tensor(ctx, s->dims, s->ndim, t->dtype);
}

rx_ty rx_deduce_flatten(rx_call *c)
{
    rx_ty t = rx_arg_tensor(c, 0);
    if (!t->known && t->ndim != 0)
        return rx_ty_tensor_ndim(c->ctx, 1, t->dtype);
    rx_ex n = t->ndim == 0 ? rx_int(c->ctx, 1) : rx_elements(c->ctx, t);
    return rx_ty_tensor(c->ctx, &n, 1, t->dtype);
}

rx_ty rx_deduce_permute(rx_call *c)
{
    rx_ty t = rx_arg_tensor(c, 0);
    const rx_attr *a = rx_attr_get(&c->attrs, "axes");
    if (a && t->ndim >= 0 && a->u.ints.n != (uint32_t)t->ndim)
        rx_fail_op(c, RXE_AXIS, "%u axes for rank %d", a->u.ints.n, t->ndim);
    if (t->ndim < 0)
        return a ? rx_ty_tensor_ndim(c->ctx, (int32_t)a->u.ints.n, t->dtype) : t;
    rx_norm_axes(c, a, t->ndim);
    if (!t->known)
        return t;
    rx_ex *d = RX_NEWN(c->a, rx_ex, t->ndim + 1);
    for (int32_t i = 0; i < t->ndim; i++)
        d[i] = t->dims[a ? rx_norm_axis(c, a->u.ints.at[i], t->ndim) : t->ndim - 1 - i];
    return rx_ty_tensor(c->ctx, d, t->ndim, t->dtype);
}

rx_ty rx_deduce_expand(rx_call *c)
{
    rx_ty t = rx_arg_tensor(c, 0);
    const rx_attr *a = rx_attr_get(&c->attrs, "axis");
    if (t->ndim < 0)
        return t;
    int32_t n = t->ndim + (int32_t)a->u.ints.n;
    const bool *in = rx_norm_axes(c, a, n);
    if (!t->known)
        return rx_ty_tensor_ndim(c->ctx, n, t->dtype);
    rx_ex *d = RX_NEWN(c->a, rx_ex, n + 1);
    for (int32_t i = 0, k = 0; i < n; i++)
        d[i] = in[i] ? rx_int(c->ctx, 1) : t->dims[k++];
    return rx_ty_tensor(c->ctx, d, n, t->dtype);
}

rx_ty rx_deduce_squeeze(rx_call *c)
{
    relax_context *ctx = c->ctx;
    rx_ty t = rx_arg_tensor(c, 0);
    const rx_attr *a = rx_attr_get(&c->attrs, "axis");
    if (t->ndim < 0)
        return t;
    const bool *in = a ? rx_norm_axes(c, a, t->ndim) : NULL;
    if (!t->known)
        return rx_ty_tensor_ndim(ctx, a ? t->ndim - (int32_t)a->u.ints.n : -1, t->dtype);
    rx_ex *d = RX_NEWN(c->a, rx_ex, t->ndim + 1), one = rx_int(ctx, 1);
    int32_t n = 0;
    for (int32_t i = 0; i < t->ndim; i++) {
        if (in && in[i]) {
            rx_same_dim(c, t->dims[i], one, rx_strf(ctx, "axis %d is squeezed", i));
            continue;
        }
        rx_truth is1 = in ? RX_FALSE : rx_prove_eq(ctx, c->f->facts, t->dims[i], one);
        if (is1 == RX_UNKNOWN)
            return rx_ty_tensor_ndim(ctx, -1, t->dtype);
        if (is1 == RX_FALSE)
            d[n++] = t->dims[i];
    }
    return rx_ty_tensor(ctx, d, n, t->dtype);
}

rx_ty rx_deduce_broadcast(rx_call *c)
{
    relax_context *ctx = c->ctx;
    rx_ty t = rx_arg_tensor(c, 0), s = rx_arg_shape(c, 1);
    if (t->ndim >= 0 && s->ndim >= 0 && s->ndim < t->ndim)
        rx_fail_op(c, RXE_RANK, "rank %d cannot become rank %d", t->ndim, s->ndim);
    if (!s->known)
        return rx_ty_tensor_ndim(ctx, s->ndim, t->dtype);
    rx_ex one = rx_int(ctx, 1);
    for (int32_t i = 0; t->known && i < t->ndim; i++) {
        rx_ex d = t->dims[i], o = s->dims[s->ndim - t->ndim + i];
        if (rx_prove_eq(ctx, c->f->facts, d, one) == RX_TRUE || rx_prove_eq(ctx, c->f->facts, d, o) == RX_TRUE)
            continue;
        rx_ex cond = rx_or(ctx, rx_eq(ctx, d, one), rx_eq(ctx, d, o));
        if (rx_prove(ctx, c->f->facts, cond, NULL) == RX_FALSE)
            rx_fail_op(c, RXE_SHAPE, "dim %d: %s cannot become %s", i, rx_ex_text(c, d), rx_ex_text(c, o));
        rx_require_cond(c, cond, "broadcast");
    }
    return rx_ty_tensor(ctx, s->dims, s->ndim, t->dtype);
}

rx_ty rx_deduce_flip(rx_call *c)
{
    rx_ty t = rx_arg_tensor(c, 0);
    rx_norm_axis(c, rx_attr_int(&c->attrs, "axis", 0), t->ndim);
    return t;
}

/* ---- tensor programs ---- */

/* The element of the operand at the same row-major position as `vars` in the result. */
static rx_stmt *same_order(rx_legal *l)
{
    relax_context *ctx = l->ctx;
    rx_ty t = l->in[0];
    rx_ex *v = rx_vars(l, (uint32_t)l->out->ndim), *ix = RX_NEWN(l->tb.a, rx_ex, t->ndim + 1), p = rx_int(ctx, 0);
    for (int32_t i = 0; i < l->out->ndim; i++)
        p = rx_add(ctx, rx_mul(ctx, p, l->out->dims[i]), v[i]);
    for (int32_t i = t->ndim; i-- > 0;) {
        ix[i] = i == 0 ? p : rx_mod(ctx, p, t->dims[i]);
        p = i == 0 ? p : rx_div(ctx, p, t->dims[i]);
    }
    return rx_map_out(l, v, rx_load_at(l, l->x[0], ix));
}

rx_stmt *rx_legal_reshape(rx_legal *l)
{
    return same_order(l);
}

rx_stmt *rx_legal_flatten(rx_legal *l)
{
    return same_order(l);
}

/* an operand whose axes are those of the result, in order, but for some of extent 1 on either side */
static rx_stmt *without_ones(rx_legal *l, const bool *skip_out, const bool *skip_in)
{
    rx_ty t = l->in[0];
    rx_ex *v = rx_vars(l, (uint32_t)l->out->ndim), *ix = RX_NEWN(l->tb.a, rx_ex, t->ndim + 1);
    int32_t k = 0;
    for (int32_t i = 0; i < t->ndim; i++) {
        while (skip_out && skip_out[k])
            k++;
        ix[i] = skip_in && skip_in[i] ? rx_int(l->ctx, 0) : v[k++];
    }
    return rx_map_out(l, v, rx_load_at(l, l->x[0], ix));
}

static bool *marks(rx_legal *l, const rx_attr *a, int32_t n)
{
    bool *in = RX_NEWN(l->tb.a, bool, n + 1);
    for (uint32_t i = 0; i < a->u.ints.n; i++)
        in[a->u.ints.at[i] < 0 ? a->u.ints.at[i] + n : a->u.ints.at[i]] = true;
    return in;
}

rx_stmt *rx_legal_expand(rx_legal *l)
{
    return without_ones(l, marks(l, rx_attr_get(l->attrs, "axis"), l->out->ndim), NULL);
}

rx_stmt *rx_legal_squeeze(rx_legal *l)
{
    const rx_attr *a = rx_attr_get(l->attrs, "axis");
    return a ? without_ones(l, NULL, marks(l, a, l->in[0]->ndim)) : same_order(l);
}

rx_stmt *rx_legal_permute(rx_legal *l)
{
    const rx_attr *a = rx_attr_get(l->attrs, "axes");
    int32_t n = l->out->ndim;
    rx_ex *v = rx_vars(l, (uint32_t)n), *ix = RX_NEWN(l->tb.a, rx_ex, n + 1);
    for (int32_t i = 0; i < n; i++) {
        int64_t x = a ? a->u.ints.at[i] : n - 1 - i;
        ix[x < 0 ? x + n : x] = v[i];
    }
    return rx_map_out(l, v, rx_load_at(l, l->x[0], ix));
}

rx_stmt *rx_legal_broadcast(rx_legal *l)
{
    rx_ex *v = rx_vars(l, (uint32_t)l->out->ndim);
    return rx_map_out(l, v, rx_operand(l, 0, v, l->out));
}

rx_stmt *rx_legal_flip(rx_legal *l)
{
    int32_t n = l->out->ndim, axis = (int32_t)rx_attr_int(l->attrs, "axis", 0);
    axis = axis < 0 ? axis + n : axis;
    rx_ex *v = rx_vars(l, (uint32_t)n), *ix = rx_arena_dup(l->tb.a, v, (size_t)(n + 1) * sizeof *v);
    ix[axis] = rx_sub(l->ctx, rx_subi(l->ctx, l->out->dims[axis], 1), v[axis]);
    return rx_map_out(l, v, rx_load_at(l, l->x[0], ix));
}
