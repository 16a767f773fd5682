/* matmul.c: matrix product of tensors of any rank.
 *
 * Rank 1 on the left is a row, on the right a column; that axis is not in the result. transpose_a and transpose_b swap
 * the last two axes of an operand of rank 2 or more. Products are summed over k in order, in f32 for f16 and bf16, in
 * f64 for f64, in the result's width (wrapping) for integers. */
#include "op/impl.h"

/* dims of one operand: batch axes, then row and column extents */
typedef struct side { rx_ty t; bool vec, swap; int32_t batch; rx_ex row, col; } side;

static side side_of(relax_context *ctx, rx_ty t, bool swap, bool right)
{
    side s = { .t = t, .vec = t->ndim == 1, .swap = swap && t->ndim > 1, .batch = RX_MAX(t->ndim - 2, 0) };
    if (!t->known)
        return s;
    rx_ex one = rx_int(ctx, 1);
    if (s.vec) {
        s.row = right ? t->dims[0] : one;
        s.col = right ? one : t->dims[0];
    } else {
        s.row = t->dims[t->ndim - (s.swap ? 1 : 2)];
        s.col = t->dims[t->ndim - (s.swap ? 2 : 1)];
    }
    return s;
}

rx_ty rx_deduce_matmul(rx_call *c)
{
    relax_context *ctx = c->ctx;
    rx_ty a = rx_arg_tensor(c, 0), b = rx_arg_tensor(c, 1);
    if (a->ndim == 0 || b->ndim == 0)
        rx_fail_op(c, RXE_RANK, "operands must be of rank 1 or more");
    rx_want_number(c, a->dtype, "operands");
    rx_want_number(c, b->dtype, "operands");
    const rx_attr *od = rx_attr_get(&c->attrs, "out_dtype");
    relax_dtype dt = od ? od->u.dtype : rx_same_dtype(c, a->dtype, b->dtype);
    rx_want_number(c, dt, "results");
    if (a->ndim < 0 || b->ndim < 0)
        return rx_ty_tensor_ndim(ctx, -1, dt);
    side x = side_of(ctx, a, rx_attr_int(&c->attrs, "transpose_a", 0) != 0, false);
    side y = side_of(ctx, b, rx_attr_int(&c->attrs, "transpose_b", 0) != 0, true);
    int32_t batch = RX_MAX(x.batch, y.batch), n = batch + !x.vec + !y.vec;
    if (a->known && b->known)
        rx_same_dim(c, x.col, y.row, "the inner dims");
    if (!a->known || !b->known)
        return n == 0 ? rx_ty_tensor(ctx, NULL, 0, dt) : rx_ty_tensor_ndim(ctx, n, dt);
    rx_ty lead[] = { rx_ty_tensor(ctx, a->dims, x.batch, dt), rx_ty_tensor(ctx, b->dims, y.batch, dt) };
    rx_ty bt = rx_broadcast(c, lead, 2, dt);
    rx_ex *d = RX_NEWN(c->a, rx_ex, n + 2);
    for (int32_t i = 0; i < batch; i++)
        d[i] = bt->dims[i];
    n = batch;
    if (!x.vec)
        d[n++] = x.row;
    if (!y.vec)
        d[n++] = y.col;
    return rx_ty_tensor(ctx, d, n, dt);
}

/* indices of an operand: batch axes by broadcasting, then row i, column j */
static rx_ex *side_index(rx_legal *l, const side *s, rx_ex *vars, rx_ty batch, rx_ex i, rx_ex j, bool right)
{
    rx_ty lead = rx_ty_tensor(l->ctx, s->t->dims, s->batch, s->t->dtype);
    rx_ex *bi = rx_bcast_index(l, lead, vars, batch), *ix = RX_NEWN(l->tb.a, rx_ex, s->t->ndim + 1);
    for (int32_t k = 0; k < s->batch; k++)
        ix[k] = bi[k];
    if (s->vec) {
        ix[0] = right ? i : j;
    } else {
        ix[s->batch] = s->swap ? j : i;
        ix[s->batch + 1] = s->swap ? i : j;
    }
    return ix;
}

rx_stmt *rx_legal_matmul(rx_legal *l)
{
    relax_context *ctx = l->ctx;
    side x = side_of(ctx, l->in[0], rx_attr_int(l->attrs, "transpose_a", 0) != 0, false);
    side y = side_of(ctx, l->in[1], rx_attr_int(l->attrs, "transpose_b", 0) != 0, true);
    int32_t n = l->out->ndim, batch = RX_MAX(x.batch, y.batch);
    rx_ex *v = rx_vars(l, (uint32_t)n), zero = rx_int(ctx, 0), k = rx_loopvar(&l->tb, "k");
    rx_ty bt = rx_ty_tensor(ctx, l->out->dims, batch, RELAX_F32);
    rx_ex i = x.vec ? zero : v[batch], j = y.vec ? zero : v[n - 1];
    relax_dtype dt = rx_compute_dtype(l->out->dtype);
    rx_ex a = rx_cast(ctx, dt, rx_load_at(l, l->x[0], side_index(l, &x, v, bt, i, k, false)));
    rx_ex b = rx_cast(ctx, dt, rx_load_at(l, l->x[1], side_index(l, &y, v, bt, k, j, true)));
    relax_buffer *s = rx_local(l, "S", dt);
    rx_stmt *sum = rx_reduce_loop(l, k, x.col, rx_set0(l, s, rx_zero(l, dt)),
                                  rx_set0(l, s, rx_add(ctx, rx_get0(l, s), rx_mul(ctx, a, b))));
    rx_stmt *store = rx_store_at(l, l->y[0], v, rx_down(l, l->out->dtype, rx_get0(l, s)));
    return rx_nest(l, v, l->out->dims, (uint32_t)n, rx_alloc_s(&l->tb, s, rx_seq2(l, sum, store)));
}
