/* nn.c: softmax, normalisations, sampling.
 *
 * Each row is three or two passes over the same loops; statistics are held in local accumulators of the compute dtype.
 */
#include <math.h>
#include "op/impl.h"

rx_ty rx_deduce_softmax(rx_call *c)
{
    rx_ty t = rx_arg_tensor(c, 0);
    rx_want_float(c, t->dtype, "elements");
    rx_norm_axis(c, rx_attr_int(&c->attrs, "axis", -1), t->ndim);
    return t;
}

rx_ty rx_deduce_rms_norm(rx_call *c)
{
    rx_ty t = rx_arg_tensor(c, 0), w = rx_arg_tensor(c, 1);
    rx_want_float(c, t->dtype, "elements");
    rx_want_float(c, w->dtype, "weights");
    if (w->ndim == 0 || (w->ndim >= 0 && t->ndim >= 0 && w->ndim > t->ndim))
        rx_fail_op(c, RXE_RANK, "weights of rank %d do not fit rank %d", w->ndim, t->ndim);
    for (int32_t i = 0; t->known && w->known && i < w->ndim; i++)
        rx_same_dim(c, t->dims[t->ndim - w->ndim + i], w->dims[i], rx_strf(c->ctx, "dim %d of the weights", i));
    return t;
}

/* gamma or beta: the extents of the normalised axes, in the order of the attribute */
static void check_affine(rx_call *c, rx_ty t, rx_ty w, const rx_attr *axes, const char *what)
{
    rx_want_float(c, w->dtype, what);
    rx_same_dtype(c, t->dtype, w->dtype);
    int32_t n = axes ? (int32_t)axes->u.ints.n : 1;
    if (w->ndim >= 0 && w->ndim != n)
        rx_fail_op(c, RXE_RANK, "%s must be of rank %d, not %d", what, n, w->ndim);
    for (int32_t i = 0; t->known && w->known && i < n; i++)
        rx_same_dim(c, t->dims[rx_norm_axis(c, axes ? axes->u.ints.at[i] : -1, t->ndim)], w->dims[i],
                    rx_strf(c->ctx, "dim %d of %s", i, what));
}

rx_ty rx_deduce_layer_norm(rx_call *c)
{
    rx_ty t = rx_arg_tensor(c, 0), g = rx_arg_tensor(c, 1), b = rx_arg_tensor(c, 2);
    const rx_attr *axes = rx_attr_get(&c->attrs, "axes");
    rx_want_float(c, t->dtype, "elements");
    if (t->ndim >= 0 && axes)
        rx_norm_axes(c, axes, t->ndim);
    if (t->ndim == 0)
        rx_fail_op(c, RXE_RANK, "a tensor of rank 0 has no axis");
    check_affine(c, t, g, axes, "gamma");
    check_affine(c, t, b, axes, "beta");
    for (int32_t i = 0; g->known && b->known && i < g->ndim; i++)
        rx_same_dim(c, g->dims[i], b->dims[i], rx_strf(c->ctx, "dim %d of gamma and beta", i));
    return t;
}

rx_ty rx_deduce_multinomial(rx_call *c)
{
    rx_ty p = rx_arg_tensor(c, 0), u = rx_arg_tensor(c, 1), r = rx_arg_tensor(c, 2);
    rx_want_float(c, p->dtype, "probabilities");
    rx_want_float(c, u->dtype, "samples");
    rx_want_int(c, r->dtype, "rows");
    relax_dtype dt = rx_attr_dtype(&c->attrs, "dtype", RELAX_I64);
    rx_want_int(c, dt, "results");
    rx_ty t[] = { p, u, r };
    for (int i = 0; i < 3; i++)
        if (t[i]->ndim >= 0 && t[i]->ndim != 2)
            rx_fail_op(c, RXE_RANK, "arguments must be of rank 2");
    rx_ex one = rx_int(c->ctx, 1);
    for (int i = 1; i < 3; i++)
        if (t[i]->known)
            rx_same_dim(c, t[i]->dims[1], one, "the second dim of samples and rows");
    if (u->known && r->known)
        rx_same_dim(c, u->dims[0], r->dims[0], "the number of samples and rows");
    return rx_retype(c, u->known || !r->known ? u : r, dt);
}

/* ---- tensor programs ---- */

static rx_ex *copy_vars(rx_legal *l, rx_ex *v, int32_t n, int32_t axis, rx_ex at)
{
    rx_ex *r = rx_arena_dup(l->tb.a, v, (size_t)(n + 1) * sizeof *v);
    r[axis] = at;
    return r;
}

rx_stmt *rx_legal_softmax(rx_legal *l)
{
    relax_context *ctx = l->ctx;
    int32_t n = l->out->ndim, axis = (int32_t)rx_attr_int(l->attrs, "axis", -1);
    axis = axis < 0 ? axis + n : axis;
    rx_ex *v = rx_vars(l, (uint32_t)n), extent = l->out->dims[axis];
    rx_ex k1 = rx_loopvar(&l->tb, "k"), k2 = rx_loopvar(&l->tb, "k");
    relax_dtype dt = rx_compute_dtype(l->out->dtype);
    relax_buffer *m = rx_local(l, "M", dt), *s = rx_local(l, "S", dt);
    rx_ex x1 = rx_up(l, rx_load_at(l, l->x[0], copy_vars(l, v, n, axis, k1)));
    rx_ex x2 = rx_up(l, rx_load_at(l, l->x[0], copy_vars(l, v, n, axis, k2)));
    rx_ex x3 = rx_up(l, rx_load_at(l, l->x[0], v)), mx = rx_get0(l, m), sum = rx_get0(l, s);
    rx_stmt *max =
        rx_reduce_loop(l, k1, extent, rx_set0(l, m, rx_f(l, dt, -INFINITY)), rx_set0(l, m, rx_max(ctx, mx, x1)));
    rx_stmt *add = rx_reduce_loop(l, k2, extent, rx_set0(l, s, rx_zero(l, dt)),
                                  rx_set0(l, s, rx_add(ctx, sum, rx_call1(ctx, RX_IN_EXP, rx_sub(ctx, x2, mx)))));
    rx_ex d = rx_sub(ctx, x3, mx);
    rx_ex r = l->op->code == RX_OP_SOFTMAX ? rx_div(ctx, rx_call1(ctx, RX_IN_EXP, d), sum)
                                           : rx_sub(ctx, d, rx_call1(ctx, RX_IN_LOG, sum));
    rx_stmt *store = rx_loop_s(&l->tb, v[axis], extent, rx_store_at(l, l->y[0], v, rx_down(l, l->out->dtype, r)));
    rx_stmt *body = rx_alloc_s(&l->tb, m, rx_alloc_s(&l->tb, s, rx_seq3(l, max, add, store)));
    for (int32_t i = n; i-- > 0;)
        if (i != axis)
            body = rx_loop_s(&l->tb, v[i], l->out->dims[i], body);
    return body;
}

/* The loops of a normalisation: axes in `in` are normalised. */
typedef struct norm { int32_t n; bool in[RX_MAX_NDIM]; rx_ex *v; rx_ex count; } norm;

static rx_stmt *norm_loops(rx_legal *l, const norm *m, rx_ex *vars, bool normalised, rx_stmt *init, rx_stmt *body)
{
    int32_t first = m->n;
    for (int32_t i = m->n; i-- > 0;)
        first = m->in[i] ? i : first;
    for (int32_t i = m->n; i-- > 0;) {
        if (m->in[i] != normalised)
            continue;
        body = init ? rx_reduce_loop(l, vars[i], l->in[0]->dims[i], i == first ? init : NULL, body)
                    : rx_loop_s(&l->tb, vars[i], l->in[0]->dims[i], body);
    }
    return body;
}

/* s = sum over the normalised axes of f(x), f: x^2, x, or (x - mean)^2 */
static rx_stmt *norm_sum(rx_legal *l, const norm *m, relax_buffer *s, int power, rx_ex mean)
{
    relax_context *ctx = l->ctx;
    rx_ex *v = rx_vars(l, (uint32_t)m->n);
    for (int32_t i = 0; i < m->n; i++)
        if (!m->in[i])
            v[i] = m->v[i];
    rx_ex x = rx_up(l, rx_load_at(l, l->x[0], v));
    x = mean ? rx_sub(ctx, x, mean) : x;
    x = power == 2 ? rx_mul(ctx, x, x) : x;
    return norm_loops(l, m, v, true, rx_set0(l, s, rx_zero(l, s->dtype)), rx_set0(l, s, rx_add(ctx, rx_get0(l, s), x)));
}

static norm norm_of(rx_legal *l, const rx_attr *axes, int32_t last)
{
    norm m = { .n = l->in[0]->ndim };
    m.v = rx_vars(l, (uint32_t)m.n);
    for (uint32_t i = 0; axes && i < axes->u.ints.n; i++)
        m.in[axes->u.ints.at[i] < 0 ? axes->u.ints.at[i] + m.n : axes->u.ints.at[i]] = true;
    for (int32_t i = m.n - last; !axes && i < m.n; i++)
        m.in[i] = true;
    rx_ex *d = RX_NEWN(l->tb.a, rx_ex, m.n + 1);
    uint32_t n = 0;
    for (int32_t i = 0; i < m.n; i++)
        if (m.in[i])
            d[n++] = l->in[0]->dims[i];
    m.count = rx_cast(l->ctx, rx_compute_dtype(l->out->dtype), rx_product(l->ctx, d, n));
    return m;
}

/* index of gamma or beta: the normalised axes in the order of the attribute, else in order */
static rx_ex *affine_index(rx_legal *l, const norm *m, const rx_attr *axes)
{
    rx_ex *ix = RX_NEWN(l->tb.a, rx_ex, m->n + 1);
    int32_t k = 0;
    for (uint32_t i = 0; axes && i < axes->u.ints.n; i++)
        ix[k++] = m->v[axes->u.ints.at[i] < 0 ? axes->u.ints.at[i] + m->n : axes->u.ints.at[i]];
    for (int32_t i = 0; !axes && i < m->n; i++)
        if (m->in[i])
            ix[k++] = m->v[i];
    return ix;
}

static rx_ex affine(rx_legal *l, uint32_t arg, rx_ex *ix)
{
    return rx_cast(l->ctx, rx_compute_dtype(l->out->dtype), rx_load_at(l, l->x[arg], ix));
}

/* rsqrt(sum / count + epsilon) */
static rx_ex inverse_root(rx_legal *l, const norm *m, relax_buffer *s)
{
    relax_context *ctx = l->ctx;
    rx_ex eps = rx_f(l, s->dtype, rx_attr_float(l->attrs, "epsilon", 1e-5));
    return rx_call1(ctx, RX_IN_RSQRT, rx_add(ctx, rx_div(ctx, rx_get0(l, s), m->count), eps));
}

rx_stmt *rx_legal_rms_norm(rx_legal *l)
{
    relax_context *ctx = l->ctx;
    norm m = norm_of(l, NULL, l->in[1]->ndim);
    relax_dtype dt = rx_compute_dtype(l->out->dtype);
    relax_buffer *s = rx_local(l, "S", dt), *r = rx_local(l, "R", dt);
    rx_ex x = rx_mul(ctx, rx_up(l, rx_load_at(l, l->x[0], m.v)), rx_get0(l, r));
    x = rx_mul(ctx, x, affine(l, 1, affine_index(l, &m, NULL)));
    rx_stmt *store = norm_loops(l, &m, m.v, true, NULL, rx_store_at(l, l->y[0], m.v, rx_down(l, l->out->dtype, x)));
    rx_stmt *body = rx_seq3(l, norm_sum(l, &m, s, 2, NULL), rx_set0(l, r, inverse_root(l, &m, s)), store);
    return norm_loops(l, &m, m.v, false, NULL, rx_alloc_s(&l->tb, s, rx_alloc_s(&l->tb, r, body)));
}

rx_stmt *rx_legal_layer_norm(rx_legal *l)
{
    relax_context *ctx = l->ctx;
    const rx_attr *axes = rx_attr_get(l->attrs, "axes");
    norm m = norm_of(l, axes, 1);
    relax_dtype dt = rx_compute_dtype(l->out->dtype);
    relax_buffer *s = rx_local(l, "S", dt), *mean = rx_local(l, "A", dt), *r = rx_local(l, "R", dt);
    rx_ex *ix = affine_index(l, &m, axes);
    rx_ex x = rx_sub(ctx, rx_up(l, rx_load_at(l, l->x[0], m.v)), rx_get0(l, mean));
    x = rx_mul(ctx, x, rx_get0(l, r));
    if (rx_attr_int(l->attrs, "scale", 1))
        x = rx_mul(ctx, x, affine(l, 1, ix));
    if (rx_attr_int(l->attrs, "center", 1))
        x = rx_add(ctx, x, affine(l, 2, ix));
    rx_stmt *steps[] = {
        norm_sum(l, &m, s, 1, NULL),
        rx_set0(l, mean, rx_div(ctx, rx_get0(l, s), m.count)),
        norm_sum(l, &m, s, 2, rx_get0(l, mean)),
        rx_set0(l, r, inverse_root(l, &m, s)),
        norm_loops(l, &m, m.v, true, NULL, rx_store_at(l, l->y[0], m.v, rx_down(l, l->out->dtype, x))),
    };
    rx_stmt *body = rx_alloc_s(&l->tb, s, rx_alloc_s(&l->tb, mean, rx_alloc_s(&l->tb, r, rx_seq(&l->tb, steps, 5))));
    return norm_loops(l, &m, m.v, false, NULL, body);
}

/* Cumulative sums in order; the first index whose sum exceeds the sample, the last index when none does. */
rx_stmt *rx_legal_multinomial(rx_legal *l)
{
    relax_context *ctx = l->ctx;
    rx_ty p = l->in[0];
    rx_ex *v = rx_vars(l, 2), j = rx_loopvar(&l->tb, "j"), zero = rx_int(ctx, 0);
    rx_ex at[2] = { v[0], zero }, from[2];
    relax_dtype dt = rx_compute_dtype(p->dtype);
    relax_buffer *s = rx_local(l, "S", dt), *found = rx_local(l, "I", RELAX_I64);
    rx_prefix pre = { .n = 0 };
    from[0] = rx_index_var(l, &pre, rx_load_at(l, l->x[2], at), p->dims[0], "check");
    from[1] = j;
    rx_ex u = rx_cast(ctx, dt, rx_load_at(l, l->x[1], at));
    rx_stmt *step = rx_set0(l, s, rx_add(ctx, rx_get0(l, s), rx_up(l, rx_load_at(l, l->x[0], from))));
    rx_ex hit = rx_and(ctx, rx_lt(ctx, rx_get0(l, found), zero), rx_lt(ctx, u, rx_get0(l, s)));
    rx_stmt *take = rx_if(&l->tb, hit, rx_set0(l, found, j), NULL);
    rx_stmt *loop = rx_loop_s(&l->tb, j, p->dims[1], rx_seq2(l, step, take));
    rx_ex last = rx_select(ctx, rx_lt(ctx, rx_get0(l, found), zero), rx_subi(ctx, p->dims[1], 1), rx_get0(l, found));
    rx_stmt *body[] = { rx_set0(l, s, rx_zero(l, dt)), rx_set0(l, found, rx_int(ctx, -1)), loop,
                        rx_store_at(l, l->y[0], v, rx_cast(ctx, l->out->dtype, last)) };
    rx_stmt *row = rx_alloc_s(&l->tb, s, rx_alloc_s(&l->tb, found, rx_seq(&l->tb, body, 4)));
    return rx_nest(l, v, l->out->dims, 2, rx_with_prefix(l, &pre, row));
}
