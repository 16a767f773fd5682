/* index.c: reading by index: take, slices, gathers. Index values are checked in front of each use (nest.c:
 * rx_index_var). */
#include "op/impl.h"

static void check_mode(rx_call *c)
{
    const char *m = rx_attr_str(&c->attrs, "mode", "check");
    if (strcmp(m, "check") && strcmp(m, "clip") && strcmp(m, "wrap") && strcmp(m, "unchecked"))
        rx_fail_op(c, RXE_ATTR, "mode is check, clip, wrap or unchecked, not %s", m);
}

/* indices: an integer tensor or an integer Prim (rank 0) */
static rx_ty index_arg(rx_call *c, uint32_t i)
{
    rx_ty t = c->types[i];
    if (!t || t->kind != RX_TY_PRIM)
        t = rx_arg_tensor(c, i);
    rx_want_int(c, t->dtype, "indices");
    return t;
}

rx_ty rx_deduce_take(rx_call *c)
{
    relax_context *ctx = c->ctx;
    rx_ty t = rx_arg_tensor(c, 0), ix = index_arg(c, 1);
    bool prim = ix->kind == RX_TY_PRIM;
    int32_t in = prim ? 0 : ix->ndim;
    check_mode(c);
    const rx_attr *a = rx_attr_get(&c->attrs, "axis");
    if (!a && t->ndim != 1)
        rx_fail_op(c, RXE_RANK, "without an axis the tensor must be of rank 1");
    int32_t axis = rx_norm_axis(c, a ? a->u.i : 0, t->ndim);
    if (t->ndim < 0 || in < 0)
        return rx_ty_tensor_ndim(ctx, -1, t->dtype);
    int32_t n = t->ndim + in - 1;
    if (!t->known || !(prim || ix->known))
        return rx_ty_tensor_ndim(ctx, n, t->dtype);
    rx_ex *d = RX_NEWN(c->a, rx_ex, n + 1);
    int32_t k = 0;
    for (int32_t i = 0; i < t->ndim; i++) {
        if (i != axis)
            d[k++] = t->dims[i];
        for (int32_t j = 0; i == axis && j < in; j++)
            d[k++] = ix->dims[j];
    }
    return rx_ty_tensor(ctx, d, n, t->dtype);
}

rx_stmt *rx_legal_take(rx_legal *l)
{
    rx_ty t = l->in[0], ix = l->in[1];
    int32_t n = l->out->ndim, in = ix->kind == RX_TY_PRIM ? 0 : ix->ndim;
    int32_t axis = (int32_t)rx_attr_int(l->attrs, "axis", 0);
    axis = axis < 0 ? axis + t->ndim : axis;
    rx_ex *v = rx_vars(l, (uint32_t)n), *at = RX_NEWN(l->tb.a, rx_ex, t->ndim);
    rx_ex value = ix->kind == RX_TY_PRIM ? rx_operand(l, 1, v, l->out) : rx_load_at(l, l->x[1], v + axis);
    rx_prefix p = { .n = 0 };
    for (int32_t i = 0; i < t->ndim; i++)
        at[i] = i < axis ? v[i] : i > axis ? v[i + in - 1]
                : rx_index_var(l, &p, value, t->dims[axis], rx_attr_str(l->attrs, "mode", "check"));
    rx_stmt *s = rx_with_prefix(l, &p, rx_store_at(l, l->y[0], v, rx_load_at(l, l->x[0], at)));
    return rx_nest(l, v, l->out->dims, (uint32_t)n, s);
}

/* the attributes of strided_slice per axis of the operand; begin NULL: the axis is whole */
typedef struct cut { rx_ex begin, end, stride; } cut;

static void cuts(const rx_attrs *attrs, relax_context *ctx, int32_t ndim, cut *out)
{
    const rx_attr *axes = rx_attr_get(attrs, "axes"), *b = rx_attr_get(attrs, "begin"), *e = rx_attr_get(attrs, "end");
    const rx_attr *s = rx_attr_get(attrs, "strides");
    for (uint32_t i = 0; i < axes->u.ints.n; i++) {
        int64_t x = axes->u.ints.at[i];
        out[x < 0 ? x + ndim : x] = (cut){ b->u.exprs.at[i], e->u.exprs.at[i], s ? s->u.exprs.at[i] : rx_int(ctx, 1) };
    }
}

rx_ty rx_deduce_slice(rx_call *c)
{
    relax_context *ctx = c->ctx;
    rx_ty t = rx_arg_tensor(c, 0);
    const rx_attr *axes = rx_attr_get(&c->attrs, "axes"), *s = rx_attr_get(&c->attrs, "strides");
    uint32_t n = axes->u.ints.n;
    if (rx_attr_get(&c->attrs, "begin")->u.exprs.n != n || rx_attr_get(&c->attrs, "end")->u.exprs.n != n ||
        (s && s->u.exprs.n != n))
        rx_fail_op(c, RXE_ATTR, "axes, begin, end and strides must be of one length");
    if (t->ndim >= 0)
        rx_norm_axes(c, axes, t->ndim);
    if (!t->known)
        return t;
    cut *k = RX_NEWN(c->a, cut, t->ndim + 1);
    rx_ex *d = RX_NEWN(c->a, rx_ex, t->ndim + 1), zero = rx_int(ctx, 0);
    bool inbound = rx_attr_int(&c->attrs, "assume_inbound", 0) != 0;
    cuts(&c->attrs, ctx, t->ndim, k);
    for (int32_t i = 0; i < t->ndim; i++) {
        if (!k[i].begin) {
            d[i] = t->dims[i];
            continue;
        }
        if (rx_prove_eq(ctx, c->f->facts, k[i].stride, zero) == RX_TRUE)
            rx_fail_op(c, RXE_ATTR, "the stride of axis %d is 0", i);
        rx_slice r = rx_slice_axis(ctx, c->f->facts, t->dims[i], k[i].begin, k[i].end, k[i].stride, inbound);
        if (!r.down)
            rx_require_cond(c, rx_lt(ctx, zero, k[i].stride), "a symbolic stride must be positive");
        if (inbound) {
            rx_require_cond(c, rx_le(ctx, rx_int(ctx, r.down ? -1 : 0), k[i].begin), "begin lies inside");
            rx_require_cond(c, rx_le(ctx, r.down ? k[i].begin : k[i].end, t->dims[i]), "the slice lies inside");
        }
        d[i] = r.count;
    }
    return rx_ty_tensor(ctx, d, t->ndim, t->dtype);
}

rx_stmt *rx_legal_slice(rx_legal *l)
{
    relax_context *ctx = l->ctx;
    rx_ty t = l->in[0];
    rx_ex *v = rx_vars(l, (uint32_t)t->ndim), *at = RX_NEWN(l->tb.a, rx_ex, t->ndim + 1);
    cut *k = RX_NEWN(l->tb.a, cut, t->ndim + 1);
    bool inbound = rx_attr_int(l->attrs, "assume_inbound", 0) != 0;
    cuts(l->attrs, ctx, t->ndim, k);
    for (int32_t i = 0; i < t->ndim; i++) {
        at[i] = v[i];
        if (!k[i].begin)
            continue;
        rx_slice r = rx_slice_axis(ctx, NULL, t->dims[i], k[i].begin, k[i].end, k[i].stride, inbound);
        at[i] = rx_add(ctx, r.first, rx_mul(ctx, v[i], k[i].stride));
    }
    return rx_map_out(l, v, rx_load_at(l, l->x[0], at));
}

rx_ty rx_deduce_dyn_slice(rx_call *c)
{
    rx_ty t = rx_arg_tensor(c, 0);
    for (uint32_t i = 1; i < 4; i++) {
        rx_ty b = rx_arg_tensor(c, i);
        if (b->dtype != RELAX_I64 && b->dtype != RELAX_DTYPE_UNKNOWN)
            rx_fail_op(c, RXE_DTYPE, "begin, end and strides must be i64, not %s", rx_dtypes[b->dtype].name);
        if (b->ndim >= 0 && b->ndim != 1)
            rx_fail_op(c, RXE_RANK, "begin, end and strides must be of rank 1");
        if (b->known && t->ndim >= 0)
            rx_same_dim(c, b->dims[0], rx_int(c->ctx, t->ndim), "one bound per axis");
    }
    return rx_ty_tensor_ndim(c->ctx, t->ndim, t->dtype);
}

rx_ty rx_deduce_gather_el(rx_call *c)
{
    relax_context *ctx = c->ctx;
    rx_ty t = rx_arg_tensor(c, 0), ix = rx_arg_tensor(c, 1);
    rx_want_int(c, ix->dtype, "indices");
    if (t->ndim >= 0 && ix->ndim >= 0 && t->ndim != ix->ndim)
        rx_fail_op(c, RXE_RANK, "indices must be of rank %d, not %d", t->ndim, ix->ndim);
    int32_t axis = rx_norm_axis(c, rx_attr_int(&c->attrs, "axis", 0), t->ndim);
    for (int32_t i = 0; t->known && ix->known && i < t->ndim; i++)
        if (i != axis)
            rx_require_cond(c, rx_le(ctx, ix->dims[i], t->dims[i]),
                            rx_strf(ctx, "dim %d of the indices lies inside", i));
    return rx_retype(c, ix, t->dtype);
}

rx_stmt *rx_legal_gather_el(rx_legal *l)
{
    rx_ty t = l->in[0];
    int32_t axis = (int32_t)rx_attr_int(l->attrs, "axis", 0);
    axis = axis < 0 ? axis + t->ndim : axis;
    rx_ex *v = rx_vars(l, (uint32_t)t->ndim), *at = rx_arena_dup(l->tb.a, v, (size_t)(t->ndim + 1) * sizeof *v);
    rx_prefix p = { .n = 0 };
    at[axis] = rx_index_var(l, &p, rx_load_at(l, l->x[1], v), t->dims[axis], "check");
    rx_stmt *s = rx_with_prefix(l, &p, rx_store_at(l, l->y[0], v, rx_load_at(l, l->x[0], at)));
    return rx_nest(l, v, l->out->dims, (uint32_t)t->ndim, s);
}

rx_ty rx_deduce_gather_nd(rx_call *c)
{
    relax_context *ctx = c->ctx;
    rx_ty t = rx_arg_tensor(c, 0), ix = rx_arg_tensor(c, 1);
    int32_t batch = (int32_t)rx_attr_int(&c->attrs, "batch_dims", 0);
    rx_want_int(c, ix->dtype, "indices");
    if (batch < 0 || (ix->ndim >= 0 && batch >= ix->ndim) || (t->ndim >= 0 && batch > t->ndim))
        rx_fail_op(c, RXE_ATTR, "batch_dims is out of range");
    if (ix->ndim < 0 || !ix->known || t->ndim < 0)
        return rx_ty_tensor_ndim(ctx, -1, t->dtype);
    int64_t k = rx_const_dim(ix->dims[ix->ndim - 1], -1);
    if (k < 0)
        return rx_ty_tensor_ndim(ctx, -1, t->dtype);
    if (k > t->ndim - batch)
        rx_fail_op(c, RXE_SHAPE, "index tuples of length %lld are too long for rank %d", (long long)k, t->ndim);
    int32_t n = ix->ndim - 1 + t->ndim - batch - (int32_t)k, m = 0;
    if (!t->known)
        return rx_ty_tensor_ndim(ctx, n, t->dtype);
    rx_ex *d = RX_NEWN(c->a, rx_ex, n + 1);
    for (int32_t i = 0; i < ix->ndim - 1; i++) {
        if (i < batch)
            rx_same_dim(c, t->dims[i], ix->dims[i], "batch axes");
        d[m++] = ix->dims[i];
    }
    for (int32_t i = batch + (int32_t)k; i < t->ndim; i++)
        d[m++] = t->dims[i];
    return rx_ty_tensor(ctx, d, n, t->dtype);
}

rx_stmt *rx_legal_gather_nd(rx_legal *l)
{
    relax_context *ctx = l->ctx;
    rx_ty t = l->in[0], ix = l->in[1];
    int32_t batch = (int32_t)rx_attr_int(l->attrs, "batch_dims", 0), lead = ix->ndim - 1;
    int32_t k = (int32_t)rx_const_dim(ix->dims[lead], 0);
    rx_ex *v = rx_vars(l, (uint32_t)l->out->ndim), *at = RX_NEWN(l->tb.a, rx_ex, t->ndim + 1);
    rx_ex *from = RX_NEWN(l->tb.a, rx_ex, ix->ndim + 1);
    rx_prefix p = { .n = 0 };
    for (int32_t i = 0; i < lead; i++)
        from[i] = v[i];
    for (int32_t i = 0; i < t->ndim; i++) {
        if (i < batch) {
            at[i] = v[i];
        } else if (i < batch + k) {
            from[lead] = rx_int(ctx, i - batch);
            at[i] = rx_index_var(l, &p, rx_load_at(l, l->x[1], from), t->dims[i], "check");
        } else {
            at[i] = v[lead + i - batch - k];
        }
    }
    rx_stmt *s = rx_with_prefix(l, &p, rx_store_at(l, l->y[0], v, rx_load_at(l, l->x[0], at)));
    return rx_nest(l, v, l->out->dims, (uint32_t)l->out->ndim, s);
}
