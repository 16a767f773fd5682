/* join.c: joining, cutting and repeating: concat, split, stack, tile, repeat. */
#include "op/impl.h"

/* dtype and rank that all tensors share (unknown ones fit); ndim -1: no rank is known */
static relax_dtype shared(rx_call *c, rx_ty *t, uint32_t n, int32_t *ndim)
{
    if (n == 0)
        rx_fail_op(c, RXE_ARITY, "needs one tensor or more");
    relax_dtype known = RELAX_DTYPE_UNKNOWN;
    bool all = true;
    *ndim = -1;
    for (uint32_t i = 0; i < n; i++) {
        if (t[i]->dtype == RELAX_DTYPE_UNKNOWN)
            all = false;
        else
            known = known == RELAX_DTYPE_UNKNOWN ? t[i]->dtype : rx_same_dtype(c, known, t[i]->dtype);
        if (t[i]->ndim >= 0 && *ndim >= 0 && t[i]->ndim != *ndim)
            rx_fail_op(c, RXE_RANK, "tensors have different ranks, %d and %d", *ndim, t[i]->ndim);
        *ndim = t[i]->ndim >= 0 ? t[i]->ndim : *ndim;
    }
    return all ? known : RELAX_DTYPE_UNKNOWN;
}

rx_ty rx_deduce_concat(rx_call *c)
{
    relax_context *ctx = c->ctx;
    uint32_t n;
    int32_t ndim;
    rx_ty *t = rx_arg_tensors(c, 0, &n), first = NULL;
    relax_dtype dt = shared(c, t, n, &ndim);
    const rx_attr *a = rx_attr_get(&c->attrs, "axis");
    if (ndim == 0)
        rx_fail_op(c, RXE_RANK, "tensors of rank 0 have no axis");
    if (!a && ndim < 0)
        return rx_ty_tensor_ndim(ctx, 1, dt);
    if (!a && ndim != 1)
        rx_fail_op(c, RXE_RANK, "without an axis the tensors must be of rank 1");
    int32_t axis = rx_norm_axis(c, a ? a->u.i : 0, ndim);
    bool known = true;
    rx_ex *len = RX_NEWN(c->a, rx_ex, n);
    for (uint32_t i = 0; i < n; i++) {
        known &= t[i]->known;
        if (!t[i]->known)
            continue;
        len[i] = t[i]->dims[axis];
        for (int32_t k = 0; first && k < ndim; k++)
            if (k != axis)
                rx_same_dim(c, first->dims[k], t[i]->dims[k], rx_strf(ctx, "dim %d of the tensors", k));
        first = first ? first : t[i];
    }
    if (!known)
        return rx_ty_tensor_ndim(ctx, ndim, dt);
    rx_ex *d = rx_arena_dup(c->a, first->dims, (size_t)ndim * sizeof *first->dims);
    d[axis] = rx_sum(ctx, len, n);
    return rx_ty_tensor(ctx, d, ndim, dt);
}

rx_ty rx_deduce_stack(rx_call *c)
{
    relax_context *ctx = c->ctx;
    uint32_t n;
    int32_t ndim;
    rx_ty *t = rx_arg_tensors(c, 0, &n), first = NULL;
    relax_dtype dt = shared(c, t, n, &ndim);
    if (ndim < 0)
        return rx_ty_tensor_ndim(ctx, -1, dt);
    int32_t axis = rx_norm_axis(c, rx_attr_int(&c->attrs, "axis", 0), ndim + 1);
    for (uint32_t i = 0; i < n; i++) {
        for (int32_t k = 0; first && t[i]->known && k < ndim; k++)
            rx_same_dim(c, first->dims[k], t[i]->dims[k], rx_strf(ctx, "dim %d of the tensors", k));
        first = !first && t[i]->known ? t[i] : first;
    }
    if (!first)
        return rx_ty_tensor_ndim(ctx, ndim + 1, dt);
    rx_ex *d = RX_NEWN(c->a, rx_ex, ndim + 1);
    for (int32_t i = 0, k = 0; i <= ndim; i++)
        d[i] = i == axis ? rx_int(ctx, n) : first->dims[k++];
    return rx_ty_tensor(ctx, d, ndim + 1, dt);
}

/* number of parts of a split; each begins and ends at extents of the axis */
static uint32_t parts_of(const rx_attrs *a)
{
    const rx_attr *ix = rx_attr_get(a, "indices");
    return ix ? ix->u.ints.n + 1 : (uint32_t)rx_attr_int(a, "sections", 1);
}

/* where part p begins, clamped to the extent */
static rx_ex cut_at(relax_context *ctx, const rx_attrs *a, rx_ex extent, uint32_t p)
{
    const rx_attr *ix = rx_attr_get(a, "indices");
    if (p == 0)
        return rx_int(ctx, 0);
    if (p == parts_of(a))
        return extent;
    if (ix)
        return rx_min(ctx, rx_int(ctx, RX_MAX(ix->u.ints.at[p - 1], 0)), extent);
    int64_t n = rx_attr_int(a, "sections", 1);
    rx_ex len = rx_divi(ctx, rx_addi(ctx, extent, n - 1), n);
    return rx_min(ctx, rx_muli(ctx, len, p), extent);
}

rx_ty rx_deduce_split(rx_call *c)
{
    relax_context *ctx = c->ctx;
    rx_ty t = rx_arg_tensor(c, 0);
    bool has_ix = rx_attr_get(&c->attrs, "indices"), has_n = rx_attr_get(&c->attrs, "sections");
    int64_t sections = rx_attr_int(&c->attrs, "sections", 1);
    if (has_ix == has_n)
        rx_fail_op(c, RXE_ATTR, "needs sections or indices, not both");
    if (sections < 1 || sections > 65536)
        rx_fail_op(c, RXE_ATTR, "sections must be 1 to 65536, not %lld", (long long)sections);
    int32_t axis = rx_norm_axis(c, rx_attr_int(&c->attrs, "axis", 0), t->ndim);
    uint32_t n = parts_of(&c->attrs);
    rx_ty *out = RX_NEWN(c->a, rx_ty, n);
    for (uint32_t p = 0; p < n; p++) {
        out[p] = t;
        if (!t->known)
            continue;
        rx_ex *d = rx_arena_dup(c->a, t->dims, (size_t)t->ndim * sizeof *t->dims);
        rx_ex from = cut_at(ctx, &c->attrs, d[axis], p), to = cut_at(ctx, &c->attrs, d[axis], p + 1);
        d[axis] = rx_simplify(ctx, c->f->facts, rx_max(ctx, rx_sub(ctx, to, from), rx_int(ctx, 0)));
        out[p] = rx_ty_tensor(ctx, d, t->ndim, t->dtype);
    }
    return n == 1 ? out[0] : rx_ty_tuple(ctx, out, n);
}

rx_ty rx_deduce_tile(rx_call *c)
{
    relax_context *ctx = c->ctx;
    rx_ty t = rx_arg_tensor(c, 0);
    const rx_attr *r = rx_attr_get(&c->attrs, "repeats");
    for (uint32_t i = 0; i < r->u.ints.n; i++)
        if (r->u.ints.at[i] < 0)
            rx_fail_op(c, RXE_ATTR, "repeats must not be negative");
    if (t->ndim < 0)
        return t;
    int32_t k = (int32_t)r->u.ints.n, n = RX_MAX(t->ndim, k);
    if (!t->known)
        return rx_ty_tensor_ndim(ctx, n, t->dtype);
    rx_ex *d = RX_NEWN(c->a, rx_ex, n + 1);
    for (int32_t i = 0; i < n; i++) {
        int32_t ti = i - (n - t->ndim), ri = i - (n - k);
        d[i] = rx_muli(ctx, ti >= 0 ? t->dims[ti] : rx_int(ctx, 1), ri >= 0 ? r->u.ints.at[ri] : 1);
    }
    return rx_ty_tensor(ctx, d, n, t->dtype);
}

rx_ty rx_deduce_repeat(rx_call *c)
{
    relax_context *ctx = c->ctx;
    rx_ty t = rx_arg_tensor(c, 0);
    const rx_attr *a = rx_attr_get(&c->attrs, "axis");
    int64_t r = rx_attr_int(&c->attrs, "repeats", 1);
    if (r < 0)
        rx_fail_op(c, RXE_ATTR, "repeats must not be negative");
    int32_t axis = a ? rx_norm_axis(c, a->u.i, t->ndim) : 0;
    if (!t->known)
        return a ? t : rx_ty_tensor_ndim(ctx, 1, t->dtype);
    rx_ex *d = RX_NEWN(c->a, rx_ex, t->ndim + 1);
    for (int32_t i = 0; a && i < t->ndim; i++)
        d[i] = t->dims[i];
    d[axis] = rx_muli(ctx, a ? d[axis] : rx_elements(ctx, t), r);
    return rx_ty_tensor(ctx, d, a ? t->ndim : 1, t->dtype);
}

/* ---- tensor programs ---- */

static int32_t axis_attr(const rx_legal *l, int32_t ndim)
{
    int64_t a = rx_attr_int(l->attrs, "axis", 0);
    return (int32_t)(a < 0 ? a + ndim : a);
}

rx_stmt *rx_legal_concat(rx_legal *l)
{
    relax_context *ctx = l->ctx;
    int32_t n = l->out->ndim, axis = axis_attr(l, n);
    rx_stmt **s = RX_NEWN(l->tb.a, rx_stmt *, l->n);
    rx_ex *before = RX_NEWN(l->tb.a, rx_ex, l->n);
    for (uint32_t i = 0; i < l->n; i++) {
        rx_ex *v = rx_vars(l, (uint32_t)n), *at = rx_arena_dup(l->tb.a, v, (size_t)(n + 1) * sizeof *v);
        at[axis] = rx_add(ctx, v[axis], rx_sum(ctx, before, i));
        s[i] = rx_nest(l, v, l->in[i]->dims, (uint32_t)n, rx_store_at(l, l->y[0], at, rx_load_at(l, l->x[i], v)));
        before[i] = l->in[i]->dims[axis];
    }
    return rx_seq(&l->tb, s, l->n);
}

rx_stmt *rx_legal_stack(rx_legal *l)
{
    int32_t n = l->in[0]->ndim, axis = axis_attr(l, n + 1);
    rx_stmt **s = RX_NEWN(l->tb.a, rx_stmt *, l->n);
    for (uint32_t i = 0; i < l->n; i++) {
        rx_ex *v = rx_vars(l, (uint32_t)n), *at = RX_NEWN(l->tb.a, rx_ex, n + 1);
        for (int32_t k = 0, m = 0; k <= n; k++)
            at[k] = k == axis ? rx_int(l->ctx, i) : v[m++];
        s[i] = rx_nest(l, v, l->in[i]->dims, (uint32_t)n, rx_store_at(l, l->y[0], at, rx_load_at(l, l->x[i], v)));
    }
    return rx_seq(&l->tb, s, l->n);
}

rx_stmt *rx_legal_split(rx_legal *l)
{
    relax_context *ctx = l->ctx;
    rx_ty t = l->in[0];
    int32_t n = t->ndim, axis = axis_attr(l, n);
    uint32_t parts = parts_of(l->attrs);
    rx_stmt **s = RX_NEWN(l->tb.a, rx_stmt *, parts);
    for (uint32_t p = 0; p < parts; p++) {
        rx_ty o = parts == 1 ? l->out : l->out->elems[p];
        rx_ex *v = rx_vars(l, (uint32_t)n), *at = rx_arena_dup(l->tb.a, v, (size_t)(n + 1) * sizeof *v);
        at[axis] = rx_add(ctx, v[axis], cut_at(ctx, l->attrs, t->dims[axis], p));
        s[p] = rx_nest(l, v, o->dims, (uint32_t)n, rx_store_at(l, l->y[p], v, rx_load_at(l, l->x[0], at)));
    }
    return rx_seq(&l->tb, s, parts);
}

rx_stmt *rx_legal_tile(rx_legal *l)
{
    rx_ty t = l->in[0];
    int32_t n = l->out->ndim;
    rx_ex *v = rx_vars(l, (uint32_t)n), *at = RX_NEWN(l->tb.a, rx_ex, t->ndim + 1);
    for (int32_t i = 0; i < t->ndim; i++) {
        int32_t o = i + n - t->ndim;
        at[i] = t->dims[i] == l->out->dims[o] ? v[o] : rx_mod(l->ctx, v[o], t->dims[i]);
    }
    return rx_map_out(l, v, rx_load_at(l, l->x[0], at));
}

rx_stmt *rx_legal_repeat(rx_legal *l)
{
    relax_context *ctx = l->ctx;
    rx_ty t = l->in[0];
    int64_t r = rx_attr_int(l->attrs, "repeats", 1);
    rx_ex *v = rx_vars(l, (uint32_t)l->out->ndim), *at = RX_NEWN(l->tb.a, rx_ex, t->ndim + 1);
    if (r == 0)
        return rx_map_out(l, v, rx_zero(l, l->out->dtype));
    if (rx_attr_get(l->attrs, "axis")) {
        int32_t axis = axis_attr(l, t->ndim);
        for (int32_t i = 0; i < t->ndim; i++)
            at[i] = i == axis ? rx_divi(ctx, v[i], r) : v[i];
    } else {
        rx_ex p = rx_divi(ctx, v[0], r);
        for (int32_t i = t->ndim; i-- > 0;) {
            at[i] = i == 0 ? p : rx_mod(ctx, p, t->dims[i]);
            p = i == 0 ? p : rx_div(ctx, p, t->dims[i]);
        }
    }
    return rx_map_out(l, v, rx_load_at(l, l->x[0], at));
}
