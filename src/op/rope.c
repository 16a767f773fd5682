/* rope.c: rotary position embedding.
 *
 * x (…, n, heads, d): token t stands at positions[t], or at start + t when the second argument is a Prim. Pair p of the
 * first rot_dims values of a head (0: all) is turned by position * freq_scale * base^(-2p / rot_dims) / factors[p];
 * style "normal" pairs values 2p and 2p + 1, "neox" p and p + rot_dims / 2. Sine and cosine are multiplied by
 * attn_factor. The rest is copied.
 *
 * Angles grow with the position, so they are formed in f64 and reduced to one turn before sine and cosine are taken in
 * f32; base^(-2p / rot_dims) is a constant per pair. Each token's sines and cosines are computed once for all heads. */
#include <math.h>
#include "op/impl.h"

static int64_t rotated(const rx_attrs *a, rx_ty t)
{
    int64_t r = rx_attr_int(a, "rot_dims", 0);
    return r ? r : rx_const_dim(t->dims[t->ndim - 1], -1);
}

static void check_positions(rx_call *c, rx_ty x)
{
    if (c->types[1] && c->types[1]->kind == RX_TY_PRIM) {
        rx_arg_prim(c, 1);
        return;
    }
    rx_ty p = rx_arg_tensor(c, 1);
    rx_want_int(c, p->dtype, "positions");
    if (p->ndim >= 0 && p->ndim != 1)
        rx_fail_op(c, RXE_RANK, "positions must be of rank 1, not %d", p->ndim);
    if (p->known && x->known)
        rx_same_dim(c, p->dims[0], x->dims[x->ndim - 3], "positions and tokens");
}

rx_ty rx_deduce_rope(rx_call *c)
{
    relax_context *ctx = c->ctx;
    rx_ty x = rx_arg_tensor(c, 0);
    const char *style = rx_attr_str(&c->attrs, "style", "normal");
    rx_want_float(c, x->dtype, "elements");
    if (strcmp(style, "normal") && strcmp(style, "neox"))
        rx_fail_op(c, RXE_ATTR, "style is normal or neox, not %s", style);
    if (x->ndim >= 0 && x->ndim < 3)
        rx_fail_op(c, RXE_RANK, "needs (…, tokens, heads, width), not rank %d", x->ndim);
    check_positions(c, x);
    if (!x->known)
        return x;
    int64_t rot = rotated(&c->attrs, x);
    if (rot < 2 || rot % 2 || rot > 4096)
        rx_fail_op(c, RXE_SHAPE, "the number of rotated dims must be known, even and at most 4096");
    rx_require_cond(c, rx_le(ctx, rx_int(ctx, rot), x->dims[x->ndim - 1]), "the rotated dims lie inside a head");
    if (c->n > 2 && c->types[2]) {
        rx_ty f = rx_arg_tensor(c, 2);
        rx_want_float(c, f->dtype, "factors");
        if (f->ndim >= 0 && f->ndim != 1)
            rx_fail_op(c, RXE_RANK, "factors must be of rank 1, not %d", f->ndim);
        if (f->known)
            rx_same_dim(c, f->dims[0], rx_int(ctx, rot / 2), "factors and rotated pairs");
    }
    return x;
}

#define TURN 6.283185307179586476925286766559

typedef struct turn { rx_legal *l; int64_t half; relax_buffer *rad, *cos, *sin; bool neox; } turn;

/* rad[p]: the angle of pair p for one token, within half a turn of 0 */
static rx_stmt *angle(turn *t, int64_t p, rx_ex pos)
{
    rx_legal *l = t->l;
    relax_context *ctx = l->ctx;
    double f = rx_attr_float(l->attrs, "freq_scale", 1) *
               pow(rx_attr_float(l->attrs, "base", 10000), -(double)p / (double)t->half);
    rx_ex turns = rx_mul(ctx, rx_cast(ctx, RELAX_F64, pos), rx_f(l, RELAX_F64, f / TURN)), ip = rx_int(ctx, p);
    if (l->n > 2 && l->x[2])
        turns = rx_div(ctx, turns, rx_cast(ctx, RELAX_F64, rx_load_at(l, l->x[2], &ip)));
    rx_ex a = rx_sym_new(ctx, "a", RELAX_F64), part = rx_sub(ctx, a, rx_call1(ctx, RX_IN_ROUND, a));
    rx_ex rad = rx_cast(ctx, RELAX_F32, rx_mul(ctx, part, rx_f(l, RELAX_F64, TURN)));
    return rx_let(&l->tb, a, turns, rx_store_at(l, t->rad, &ip, rad));
}

/* body for p = 0 .. n; with a lane variable for 8 * p + lane = 0 .. n */
static rx_stmt *loop8(rx_legal *l, rx_ex p, rx_ex lane, int64_t n, rx_stmt *body)
{
    if (!lane)
        return rx_loop_s(&l->tb, p, rx_int(l->ctx, n), body);
    body = rx_for(&l->tb, lane, rx_int(l->ctx, 0), rx_int(l->ctx, 8), RX_VECTOR, false, NULL, body);
    return rx_loop_s(&l->tb, p, rx_int(l->ctx, n / 8), body);
}

/* cos[p], sin[p] from rad[p] */
static rx_stmt *waves(turn *t)
{
    rx_legal *l = t->l;
    relax_context *ctx = l->ctx;
    rx_ex p = rx_loopvar(&l->tb, "p"), lane = t->half % 8 ? NULL : rx_loopvar(&l->tb, "v");
    rx_ex at = lane ? rx_add(ctx, rx_muli(ctx, p, 8), lane) : p, rad = rx_load_at(l, t->rad, &at);
    rx_ex amp = rx_f(l, RELAX_F32, rx_attr_float(l->attrs, "attn_factor", 1));
    rx_stmt *c = rx_store_at(l, t->cos, &at, rx_mul(ctx, rx_call1(ctx, RX_IN_COS, rad), amp));
    rx_stmt *s = rx_store_at(l, t->sin, &at, rx_mul(ctx, rx_call1(ctx, RX_IN_SIN, rad), amp));
    return loop8(l, p, lane, t->half, rx_seq2(l, c, s));
}

/* the pair p of the head whose leading indices are in v */
static rx_stmt *rotate(turn *t, rx_ex *v, rx_ex p)
{
    rx_legal *l = t->l;
    relax_context *ctx = l->ctx;
    int32_t n = l->out->ndim;
    rx_ex *a = rx_arena_dup(l->tb.a, v, (size_t)(n + 1) * sizeof *v),
          *b = rx_arena_dup(l->tb.a, v, (size_t)(n + 1) * sizeof *v);
    a[n - 1] = t->neox ? p : rx_muli(ctx, p, 2);
    b[n - 1] = rx_addi(ctx, a[n - 1], t->neox ? t->half : 1);
    rx_ex x = rx_up(l, rx_load_at(l, l->x[0], a)), y = rx_up(l, rx_load_at(l, l->x[0], b));
    rx_ex c = rx_cast(ctx, x->dtype, rx_load_at(l, t->cos, &p)), s = rx_cast(ctx, x->dtype, rx_load_at(l, t->sin, &p));
    rx_ex xr = rx_sub(ctx, rx_mul(ctx, x, c), rx_mul(ctx, y, s)),
          yr = rx_add(ctx, rx_mul(ctx, x, s), rx_mul(ctx, y, c));
    relax_dtype dt = l->out->dtype;
    return rx_seq2(l, rx_store_at(l, l->y[0], a, rx_down(l, dt, xr)), rx_store_at(l, l->y[0], b, rx_down(l, dt, yr)));
}

static rx_stmt *pairs(turn *t, rx_ex *v)
{
    rx_legal *l = t->l;
    relax_context *ctx = l->ctx;
    rx_ex p = rx_loopvar(&l->tb, "p"), lane = t->neox && t->half % 8 == 0 ? rx_loopvar(&l->tb, "v") : NULL;
    return loop8(l, p, lane, t->half, rotate(t, v, lane ? rx_add(ctx, rx_muli(ctx, p, 8), lane) : p));
}

/* values beyond the rotated ones */
static rx_stmt *copy_rest(rx_legal *l, rx_ex *v, int64_t rot)
{
    relax_context *ctx = l->ctx;
    int32_t n = l->out->ndim;
    rx_ex *ix = rx_arena_dup(l->tb.a, v, (size_t)(n + 1) * sizeof *v), j = rx_loopvar(&l->tb, "j");
    ix[n - 1] = rx_addi(ctx, j, rot);
    return rx_loop_s(&l->tb, j, rx_subi(ctx, l->out->dims[n - 1], rot),
                     rx_store_at(l, l->y[0], ix, rx_load_at(l, l->x[0], ix)));
}

rx_stmt *rx_legal_rope(rx_legal *l)
{
    relax_context *ctx = l->ctx;
    int32_t n = l->out->ndim;
    int64_t rot = rotated(l->attrs, l->in[0]);
    rx_ex *v = rx_vars(l, (uint32_t)n);
    turn t = { .l = l, .half = rot / 2, .neox = strcmp(rx_attr_str(l->attrs, "style", "normal"), "neox") == 0 };
    t.rad = rx_local_n(l, "R", RELAX_F32, t.half);
    t.cos = rx_local_n(l, "C", RELAX_F32, t.half);
    t.sin = rx_local_n(l, "S", RELAX_F32, t.half);
    rx_ex pos =
        l->in[1]->kind == RX_TY_PRIM ? rx_add(ctx, l->in[1]->dims[0], v[n - 3]) : rx_load_at(l, l->x[1], &v[n - 3]);
    rx_stmt **angles = RX_NEWN(l->tb.a, rx_stmt *, t.half + 1);
    for (int64_t p = 0; p < t.half; p++)
        angles[p] = angle(&t, p, pos);
    angles[t.half] = waves(&t);
    rx_stmt *head = pairs(&t, v);
    if (!rx_is_value(l->out->dims[n - 1], rot))
        head = rx_seq2(l, head, copy_rest(l, v, rot));
    rx_stmt *token = rx_seq2(l, rx_seq(&l->tb, angles, (uint32_t)t.half + 1),
                             rx_loop_s(&l->tb, v[n - 2], l->out->dims[n - 2], head));
    rx_stmt *body = rx_alloc_s(&l->tb, t.rad, rx_alloc_s(&l->tb, t.cos, rx_alloc_s(&l->tb, t.sin, token)));
    for (int32_t i = n - 2; i-- > 1;)
        body = rx_loop_s(&l->tb, v[i], l->out->dims[i], body);
    return rx_for(&l->tb, v[0], rx_int(ctx, 0), l->out->dims[0], RX_PARALLEL, false, NULL, body);
}
