/* scatter.c: writing by index into a copy of the first argument.
 *
 * The program copies, then applies the updates one after the other in row-major order: with "update" the last one to an
 * element wins, so that loop is serial. Values narrower than f32 are combined in f32 and rounded at each step. */
#include "op/impl.h"

static const char *const reductions[] = { "update", "add", "mul", "min", "max" };

static int reduction_of(const rx_attrs *a)
{
    const char *r = rx_attr_str(a, "reduction", "update");
    for (int i = 0; i < (int)RX_COUNT(reductions); i++)
        if (strcmp(r, reductions[i]) == 0)
            return i;
    return -1;
}

static void check_reduction(rx_call *c, rx_ty t)
{
    int r = reduction_of(&c->attrs);
    if (r < 0)
        rx_fail_op(c, RXE_ATTR, "reduction is update, add, mul, min or max, not %s",
                   rx_attr_str(&c->attrs, "reduction", ""));
    if (r > 0)
        rx_want_number(c, t->dtype, "elements");
}

rx_ty rx_deduce_scatter_el(rx_call *c)
{
    relax_context *ctx = c->ctx;
    rx_ty t = rx_arg_tensor(c, 0), ix = rx_arg_tensor(c, 1), u = rx_arg_tensor(c, 2);
    rx_want_int(c, ix->dtype, "indices");
    rx_same_dtype(c, t->dtype, u->dtype);
    check_reduction(c, t);
    int32_t axis = rx_norm_axis(c, rx_attr_int(&c->attrs, "axis", 0), t->ndim);
    if ((ix->ndim >= 0 && u->ndim >= 0 && ix->ndim != u->ndim) ||
        (t->ndim >= 0 && u->ndim >= 0 && t->ndim != u->ndim) || (t->ndim >= 0 && ix->ndim >= 0 && t->ndim != ix->ndim))
        rx_fail_op(c, RXE_RANK, "the tensor, indices and updates must be of one rank, not %d, %d, %d", t->ndim,
                   ix->ndim, u->ndim);
    for (int32_t i = 0; ix->known && u->known && i < ix->ndim; i++)
        rx_same_dim(c, ix->dims[i], u->dims[i], rx_strf(ctx, "dim %d of indices and updates", i));
    for (int32_t i = 0; ix->known && t->known && i < ix->ndim; i++)
        if (i != axis)
            rx_require_cond(c, rx_le(ctx, ix->dims[i], t->dims[i]),
                            rx_strf(ctx, "dim %d of the indices lies inside", i));
    return t;
}

rx_ty rx_deduce_scatter_nd(rx_call *c)
{
    relax_context *ctx = c->ctx;
    rx_ty t = rx_arg_tensor(c, 0), ix = rx_arg_tensor(c, 1), u = rx_arg_tensor(c, 2);
    rx_want_int(c, ix->dtype, "indices");
    rx_same_dtype(c, t->dtype, u->dtype);
    check_reduction(c, t);
    if (ix->ndim == 0)
        rx_fail_op(c, RXE_RANK, "indices must have an axis of tuples");
    int64_t k = ix->known ? rx_const_dim(ix->dims[ix->ndim - 1], -1) : -1;
    if (k >= 0 && t->ndim >= 0 && k > t->ndim)
        rx_fail_op(c, RXE_SHAPE, "index tuples of length %lld are too long for rank %d", (long long)k, t->ndim);
    if (k < 0 || t->ndim < 0 || u->ndim < 0)
        return t;
    int32_t lead = ix->ndim - 1;
    if (u->ndim != lead + t->ndim - k)
        rx_fail_op(c, RXE_RANK, "updates must be of rank %d, not %d", (int)(lead + t->ndim - k), u->ndim);
    for (int32_t i = 0; u->known && t->known && i < u->ndim; i++)
        rx_same_dim(c, u->dims[i], i < lead ? ix->dims[i] : t->dims[i - lead + k],
                    rx_strf(ctx, "dim %d of updates", i));
    return t;
}

rx_ty rx_deduce_index_put(rx_call *c)
{
    relax_context *ctx = c->ctx;
    rx_ty t = rx_arg_tensor(c, 0), v = rx_arg_tensor(c, 1);
    uint32_t n;
    rx_ty *ix = rx_arg_tensors(c, 2, &n);
    rx_same_dtype(c, t->dtype, v->dtype);
    if (rx_attr_int(&c->attrs, "accumulate", 0))
        rx_want_number(c, t->dtype, "elements");
    for (uint32_t i = 0; i < n; i++)
        rx_want_int(c, ix[i]->dtype, "indices");
    if (t->ndim >= 0 && n > (uint32_t)t->ndim)
        rx_fail_op(c, RXE_RANK, "%u index tensors are too many for rank %d", n, t->ndim);
    rx_ty at = rx_broadcast(c, ix, n, RELAX_I64);
    if (t->known && at->known && v->known) {
        int32_t rest = t->ndim - (int32_t)n, m = at->ndim + rest;
        rx_ex *d = RX_NEWN(c->a, rx_ex, m + 1);
        for (int32_t i = 0; i < m; i++)
            d[i] = i < at->ndim ? at->dims[i] : t->dims[i - at->ndim + (int32_t)n];
        if (v->ndim > m)
            rx_fail_op(c, RXE_RANK, "values must be of rank %d or less, not %d", m, v->ndim);
        for (int32_t i = 0; i < v->ndim; i++) {
            rx_ex to = d[m - v->ndim + i];
            if (rx_prove_eq(ctx, c->f->facts, v->dims[i], rx_int(ctx, 1)) != RX_TRUE)
                rx_same_dim(c, v->dims[i], to, rx_strf(ctx, "dim %d of values", i));
        }
    }
    return t;
}

/* ---- tensor programs ---- */

static rx_stmt *copy_first(rx_legal *l)
{
    rx_ex *v = rx_vars(l, (uint32_t)l->out->ndim);
    return rx_map_out(l, v, rx_load_at(l, l->x[0], v));
}

/* y[at] = y[at] (reduction) u */
static rx_stmt *apply(rx_legal *l, int reduction, rx_ex *at, rx_ex u)
{
    if (reduction == 0)
        return rx_store_at(l, l->y[0], at, u);
    relax_context *ctx = l->ctx;
    rx_ex a = rx_up(l, rx_load_at(l, l->y[0], at)), b = rx_up(l, u);
    rx_ex r = reduction == 1 ? rx_add(ctx, a, b) : reduction == 2 ? rx_mul(ctx, a, b)
              : reduction == 3 ? rx_min(ctx, a, b) : rx_max(ctx, a, b);
    return rx_store_at(l, l->y[0], at, rx_down(l, l->out->dtype, r));
}

rx_stmt *rx_legal_scatter_el(rx_legal *l)
{
    rx_ty t = l->in[0], ix = l->in[1];
    int32_t axis = (int32_t)rx_attr_int(l->attrs, "axis", 0);
    axis = axis < 0 ? axis + t->ndim : axis;
    rx_ex *v = rx_vars(l, (uint32_t)t->ndim), *at = rx_arena_dup(l->tb.a, v, (size_t)(t->ndim + 1) * sizeof *v);
    rx_prefix p = { .n = 0 };
    at[axis] = rx_index_var(l, &p, rx_load_at(l, l->x[1], v), t->dims[axis], "check");
    rx_stmt *s = rx_with_prefix(l, &p, apply(l, reduction_of(l->attrs), at, rx_load_at(l, l->x[2], v)));
    return rx_seq2(l, copy_first(l), rx_nest(l, v, ix->dims, (uint32_t)ix->ndim, s));
}

rx_stmt *rx_legal_scatter_nd(rx_legal *l)
{
    relax_context *ctx = l->ctx;
    rx_ty t = l->in[0], ix = l->in[1], u = l->in[2];
    int32_t lead = ix->ndim - 1, k = (int32_t)rx_const_dim(ix->dims[lead], 0);
    rx_ex *v = rx_vars(l, (uint32_t)u->ndim), *at = RX_NEWN(l->tb.a, rx_ex, t->ndim + 1);
    rx_ex *from = RX_NEWN(l->tb.a, rx_ex, ix->ndim + 1);
    rx_prefix p = { .n = 0 };
    for (int32_t i = 0; i < lead; i++)
        from[i] = v[i];
    for (int32_t i = 0; i < t->ndim; i++) {
        from[lead] = rx_int(ctx, i);
        at[i] = i < k ? rx_index_var(l, &p, rx_load_at(l, l->x[1], from), t->dims[i], "check") : v[lead + i - k];
    }
    rx_stmt *s = rx_with_prefix(l, &p, apply(l, reduction_of(l->attrs), at, rx_load_at(l, l->x[2], v)));
    return rx_seq2(l, copy_first(l), rx_nest(l, v, u->dims, (uint32_t)u->ndim, s));
}

/* dims of the broadcast index tensors: deduction has made each extent 1 or that of the result */
static rx_ty index_shape(rx_legal *l)
{
    int32_t n = 0;
    for (uint32_t i = 2; i < l->n; i++)
        n = RX_MAX(n, l->in[i]->ndim);
    rx_ex *d = RX_NEWN(l->tb.a, rx_ex, n + 1);
    for (int32_t k = 0; k < n; k++) {
        d[k] = rx_int(l->ctx, 1);
        for (uint32_t i = 2; i < l->n; i++) {
            int32_t at = k - (n - l->in[i]->ndim);
            if (at < 0 || rx_is_value(l->in[i]->dims[at], 1))
                continue;
            int64_t v;
            if (rx_is_value(d[k], 1) || rx_is_int(l->in[i]->dims[at], &v))
                d[k] = l->in[i]->dims[at];
        }
    }
    return rx_ty_tensor(l->ctx, d, n, RELAX_I64);
}

rx_stmt *rx_legal_index_put(rx_legal *l)
{
    rx_ty t = l->in[0], at_ty = index_shape(l);
    int32_t n = (int32_t)l->n - 2, m = at_ty->ndim + t->ndim - n;
    rx_ex *d = RX_NEWN(l->tb.a, rx_ex, m + 1), *v = rx_vars(l, (uint32_t)m), *at = RX_NEWN(l->tb.a, rx_ex, t->ndim + 1);
    for (int32_t i = 0; i < m; i++)
        d[i] = i < at_ty->ndim ? at_ty->dims[i] : t->dims[i - at_ty->ndim + n];
    rx_ty full = rx_ty_tensor(l->ctx, d, m, RELAX_I64);
    rx_prefix p = { .n = 0 };
    for (int32_t i = 0; i < t->ndim; i++)
        at[i] = i < n ? rx_index_var(l, &p, rx_operand(l, (uint32_t)i + 2, v, at_ty), t->dims[i], "check")
                      : v[at_ty->ndim + i - n];
    rx_stmt *s = apply(l, rx_attr_int(l->attrs, "accumulate", 0) ? 1 : 0, at, rx_operand(l, 1, v, full));
    return rx_seq2(l, copy_first(l), rx_nest(l, v, d, (uint32_t)m, rx_with_prefix(l, &p, s)));
}
