/* attention.c: attention over tensors, over a key/value cache, and appending to a cache.
 *
 * One query row and head after the other, in parallel; keys and values pass once in blocks of 32 positions. Online
 * softmax (Milakov and Gimelshein 2018): m is the largest score so far, s the sum of exp(score - m), o the weighted sum
 * of values; when a block raises m, s and o are scaled by exp(old m - new m). Everything is f32 and local to the
 * iteration; loops over the head width run in lanes. A row that sees no position gives 0.
 *
 * Query head h uses key/value head h // (heads / groups). Position j is seen by query i at position p when j <= p
 * (causal) and j > p - window (window > 0). Score: q . k * scale, then softcap * tanh(score / softcap), then + mask. */
#include <math.h>
#include "op/impl.h"

#define BLOCK 32                       /* positions scored before they are weighed */
#define MAX_WIDTH 1024

static void check_attrs(rx_call *c)
{
    if (rx_attr_int(&c->attrs, "window", 0) < 0)
        rx_fail_op(c, RXE_ATTR, "window must not be negative");
    if (rx_attr_float(&c->attrs, "softcap", 0) < 0)
        rx_fail_op(c, RXE_ATTR, "softcap must not be negative");
}

/* q (…, h, d), k (…, g, d), v (…, g, e): widths constant, h a multiple of g */
static void check_heads(rx_call *c, rx_ty q, rx_ty k, rx_ty v)
{
    relax_context *ctx = c->ctx;
    int32_t n = q->ndim;
    rx_ex h = q->dims[n - 2], g = k->dims[n - 2];
    rx_same_dim(c, q->dims[n - 1], k->dims[n - 1], "head widths of queries and keys");
    rx_same_dim(c, g, v->dims[n - 2], "heads of keys and values");
    rx_same_dim(c, k->dims[n - 3], v->dims[n - 3], "positions of keys and values");
    rx_require_cond(c, rx_lt(ctx, rx_int(ctx, 0), g), "there are key and value heads");
    rx_require_cond(c, rx_eq(ctx, rx_mod(ctx, h, g), rx_int(ctx, 0)), "query heads are a multiple of key heads");
    for (int i = 0; i < 2; i++) {
        int64_t w = rx_const_dim(i ? v->dims[n - 1] : k->dims[n - 1], -1);
        if (w < 1 || w > MAX_WIDTH)
            rx_fail_op(c, RXE_SHAPE, "head widths must be known, 1 to %d", MAX_WIDTH);
    }
}

static void check_floats(rx_call *c, rx_ty q, rx_ty k, rx_ty v)
{
    rx_want_float(c, q->dtype, "queries");
    rx_want_float(c, k->dtype, "keys");
    rx_want_float(c, v->dtype, "values");
    check_attrs(c);
}

static rx_ty attention_result(rx_call *c, rx_ty q, rx_ty v)
{
    rx_ex *d = rx_arena_dup(c->a, q->dims, (size_t)q->ndim * sizeof *q->dims);
    d[q->ndim - 1] = v->dims[q->ndim - 1];
    return rx_ty_tensor(c->ctx, d, q->ndim, q->dtype);
}

static rx_ty rank_arg(rx_call *c, uint32_t i, int32_t ndim)
{
    rx_ty t = rx_arg_tensor(c, i);
    if (t->ndim >= 0 && t->ndim != ndim)
        rx_fail_op(c, RXE_RANK, "argument %u must be of rank %d, not %d", i, ndim, t->ndim);
    return t;
}

rx_ty rx_deduce_attention(rx_call *c)
{
    rx_ty q = rank_arg(c, 0, 4), k = rank_arg(c, 1, 4), v = rank_arg(c, 2, 4);
    check_floats(c, q, k, v);
    if (!q->known || !k->known || !v->known)
        return rx_ty_tensor_ndim(c->ctx, 4, q->dtype);
    rx_same_dim(c, q->dims[0], k->dims[0], "batches of queries and keys");
    rx_same_dim(c, q->dims[0], v->dims[0], "batches of queries and values");
    check_heads(c, q, k, v);
    if (c->n > 3 && c->types[3]) {
        rx_ty m = rank_arg(c, 3, 4);
        rx_want_float(c, m->dtype, "the mask");
        rx_ex want[] = { q->dims[0], q->dims[2], q->dims[1], k->dims[1] }, one = rx_int(c->ctx, 1);
        for (int i = 0; m->known && i < 4; i++)
            if (rx_prove_eq(c->ctx, c->f->facts, m->dims[i], one) != RX_TRUE)
                rx_same_dim(c, m->dims[i], want[i], rx_strf(c->ctx, "dim %d of the mask", i));
    }
    return attention_result(c, q, v);
}

rx_ty rx_deduce_attention_cache(rx_call *c)
{
    relax_context *ctx = c->ctx;
    rx_ty q = rank_arg(c, 0, 3), k = rank_arg(c, 1, 3), v = rank_arg(c, 2, 3), past = rx_arg_prim(c, 3);
    check_floats(c, q, k, v);
    if (!q->known || !k->known || !v->known)
        return rx_ty_tensor_ndim(ctx, 3, q->dtype);
    check_heads(c, q, k, v);
    rx_require_cond(c, rx_le(ctx, rx_int(ctx, 0), past->dims[0]), "past is not negative");
    rx_require_cond(c, rx_le(ctx, rx_add(ctx, past->dims[0], q->dims[0]), k->dims[0]),
                    "the cache holds the past and the new tokens");
    return attention_result(c, q, v);
}

rx_ty rx_deduce_kv_append(rx_call *c)
{
    relax_context *ctx = c->ctx;
    rx_ty cache = rx_arg_tensor(c, 0), x = rx_arg_tensor(c, 1), past = rx_arg_prim(c, 2);
    rx_want_float(c, cache->dtype, "the cache");
    rx_want_float(c, x->dtype, "new rows");
    if (cache->ndim == 0 || (cache->ndim >= 0 && x->ndim >= 0 && cache->ndim != x->ndim))
        rx_fail_op(c, RXE_RANK, "rows of rank %d do not fit a cache of rank %d", x->ndim, cache->ndim);
    if (!cache->known || !x->known)
        return cache;
    for (int32_t i = 1; i < cache->ndim; i++)
        rx_same_dim(c, cache->dims[i], x->dims[i], rx_strf(ctx, "dim %d of cache and rows", i));
    rx_require_cond(c, rx_le(ctx, rx_int(ctx, 0), past->dims[0]), "past is not negative");
    rx_require_cond(c, rx_le(ctx, rx_add(ctx, past->dims[0], x->dims[0]), cache->dims[0]),
                    "the cache has room for the new rows");
    return cache;
}

/* ---- tensor programs ---- */

/* rows past .. past + n of the cache; the result is the cache's own memory, so the other rows stay */
rx_stmt *rx_legal_kv_append(rx_legal *l)
{
    rx_ty x = l->in[1];
    rx_ex *v = rx_vars(l, (uint32_t)x->ndim), *at = rx_arena_dup(l->tb.a, v, (size_t)(x->ndim + 1) * sizeof *v);
    at[0] = rx_add(l->ctx, v[0], l->in[2]->dims[0]);
    rx_stmt *s = rx_store_at(l, l->y[0], at, rx_cast(l->ctx, l->out->dtype, rx_load_at(l, l->x[1], v)));
    return rx_nest(l, v, x->dims, (uint32_t)x->ndim, s);
}

/* One query row and head. Leading indices are complete but for the last axis; j stands for the position in key and
 * value. */
typedef struct att {
    rx_legal *l;
    int64_t d, e;                      /* widths */
    rx_ex *q, *o;                      /* leading indices of the query and of the result */
    rx_ex kv_head, batch;              /* batch NULL: the cache has none */
    rx_ex from, to;                    /* positions seen: from <= j < to */
    rx_ex *mask;                       /* indices of the mask but for the last; NULL: none */
    relax_buffer *query, *score, *acc, *m, *s;
} att;

static int64_t lanes_for(int64_t width)
{
    return width % 16 == 0 ? 16 : width % 8 == 0 ? 8 : width % 4 == 0 ? 4 : width % 2 == 0 ? 2 : 1;
}

/* body(index) for all indices of a width, in lanes; index is built by the caller from var and lane */
typedef struct span { rx_ex var, lane, at; int64_t lanes, width; } span;

static span span_of(rx_legal *l, int64_t width)
{
    span s = { .var = rx_loopvar(&l->tb, "c"), .lanes = lanes_for(width), .width = width };
    s.lane = s.lanes > 1 ? rx_loopvar(&l->tb, "v") : NULL;
    s.at = s.lane ? rx_add(l->ctx, rx_muli(l->ctx, s.var, s.lanes), s.lane) : s.var;
    return s;
}

static rx_stmt *span_loop(rx_legal *l, const span *s, rx_stmt *body)
{
    if (s->lane)
        body = rx_for(&l->tb, s->lane, rx_int(l->ctx, 0), rx_int(l->ctx, s->lanes), RX_VECTOR, false, NULL, body);
    return rx_loop_s(&l->tb, s->var, rx_int(l->ctx, s->width / s->lanes), body);
}

static rx_ex key_at(att *a, uint32_t arg, rx_ex j, rx_ex at)
{
    rx_ex ix[4] = { a->batch, j, a->kv_head, at };
    return rx_cast(a->l->ctx, RELAX_F32, rx_load_at(a->l, a->l->x[arg], a->batch ? ix : ix + 1));
}

static rx_ex at1(rx_legal *l, relax_buffer *b, rx_ex i)
{
    return rx_load_at(l, b, &i);
}

static rx_stmt *put1(rx_legal *l, relax_buffer *b, rx_ex i, rx_ex value)
{
    return rx_store_at(l, b, &i, value);
}

static rx_ex muladd(rx_legal *l, rx_ex a, rx_ex b, rx_ex c)
{
    rx_ex args[] = { a, b, c };
    return rx_intrinsic(l->ctx, RX_IN_FMA, args, 3);
}

/* query[0..d) = the query row times scale, as f32 */
static rx_stmt *load_query(att *a)
{
    rx_legal *l = a->l;
    span s = span_of(l, a->d);
    int32_t n = l->in[0]->ndim;
    rx_ex *ix = rx_arena_dup(l->tb.a, a->q, (size_t)n * sizeof *ix);
    ix[n - 1] = s.at;
    double scale = rx_attr_float(l->attrs, "scale", 1 / sqrt((double)a->d));
    rx_ex x = rx_cast(l->ctx, RELAX_F32, rx_load_at(l, l->x[0], ix));
    return span_loop(l, &s, put1(l, a->query, s.at, rx_mul(l->ctx, x, rx_f(l, RELAX_F32, scale))));
}

/* score[t] = query . key[j] with cap and mask */
static rx_stmt *score_one(att *a, rx_ex t, rx_ex j)
{
    rx_legal *l = a->l;
    relax_context *ctx = l->ctx;
    int64_t n = lanes_for(a->d);
    relax_buffer *part = rx_local_n(l, "P", RELAX_F32, n), *sum = rx_local(l, "D", RELAX_F32);
    span z = span_of(l, n), s = span_of(l, a->d);
    rx_ex lane = s.lane ? s.lane : rx_int(ctx, 0), v = rx_loopvar(&l->tb, "v");
    rx_stmt *zero = span_loop(l, &z, put1(l, part, z.at, rx_f(l, RELAX_F32, 0)));
    rx_ex term = muladd(l, at1(l, a->query, s.at), key_at(a, 1, j, s.at), at1(l, part, lane));
    rx_stmt *dot = span_loop(l, &s, put1(l, part, lane, term));
    rx_stmt *init = rx_set0(l, sum, rx_f(l, RELAX_F32, 0)),
            *add = rx_set0(l, sum, rx_add(ctx, rx_get0(l, sum), at1(l, part, v)));
    rx_stmt *fold = rx_for(&l->tb, v, rx_int(ctx, 0), rx_int(ctx, n), n > 1 ? RX_VECTOR : RX_SERIAL, true, init, add);
    rx_ex x = rx_get0(l, sum);
    double cap = rx_attr_float(l->attrs, "softcap", 0);
    if (cap > 0)
        x = rx_mul(ctx, rx_f(l, RELAX_F32, cap), rx_call1(ctx, RX_IN_TANH, rx_div(ctx, x, rx_f(l, RELAX_F32, cap))));
    if (a->mask) {
        a->mask[3] = rx_is_value(l->in[3]->dims[3], 1) ? rx_int(ctx, 0) : j;
        x = rx_add(ctx, x, rx_cast(ctx, RELAX_F32, rx_load_at(l, l->x[3], a->mask)));
    }
    rx_stmt *put[] = { zero, dot, fold, put1(l, a->score, t, x) };
    return rx_alloc_s(&l->tb, part, rx_alloc_s(&l->tb, sum, rx_seq(&l->tb, put, 4)));
}

/* acc[c] = acc[c] * factor */
static rx_stmt *scale_acc(att *a, rx_ex factor)
{
    span s = span_of(a->l, a->e);
    return span_loop(a->l, &s, put1(a->l, a->acc, s.at, rx_mul(a->l->ctx, at1(a->l, a->acc, s.at), factor)));
}

/* acc[c] += score[t] * value[j, c] */
static rx_stmt *weigh_one(att *a, rx_ex t, rx_ex j)
{
    rx_legal *l = a->l;
    span s = span_of(l, a->e);
    rx_ex w = rx_sym_new(l->ctx, "w", RELAX_F32);
    rx_stmt *body = span_loop(l, &s, put1(l, a->acc, s.at, muladd(l, w, key_at(a, 2, j, s.at), at1(l, a->acc, s.at))));
    return rx_let(&l->tb, w, at1(l, a->score, t), body);
}

/* m = the largest of m and the block's scores; then score[t] = exp(score[t] - m), s += their sum */
static rx_stmt *softmax_block(att *a)
{
    rx_legal *l = a->l;
    relax_context *ctx = l->ctx;
    rx_ex old = rx_sym_new(ctx, "old", RELAX_F32), t1 = rx_loopvar(&l->tb, "t"), u = rx_loopvar(&l->tb, "u"),
          m = rx_get0(l, a->m);
    rx_stmt *max = rx_for(&l->tb, t1, rx_int(ctx, 0), rx_int(ctx, BLOCK), RX_VECTOR, true, NULL,
                          rx_set0(l, a->m, rx_max(ctx, m, at1(l, a->score, t1))));
    span s = span_of(l, BLOCK);
    rx_ex none = rx_f(l, RELAX_F32, -INFINITY), zero = rx_f(l, RELAX_F32, 0);
    rx_ex p = rx_call1(ctx, RX_IN_EXP, rx_sub(ctx, at1(l, a->score, s.at), m));
    p = rx_select(ctx, rx_eq(ctx, at1(l, a->score, s.at), none), zero, p);
    rx_stmt *exps = span_loop(l, &s, put1(l, a->score, s.at, p));
    rx_ex factor = rx_sym_new(ctx, "f", RELAX_F32);
    rx_ex scale = rx_select(ctx, rx_eq(ctx, old, none), zero, rx_call1(ctx, RX_IN_EXP, rx_sub(ctx, old, m)));
    rx_stmt *rescale = rx_seq2(l, rx_set0(l, a->s, rx_mul(ctx, rx_get0(l, a->s), factor)), scale_acc(a, factor));
    rx_stmt *moved = rx_if(&l->tb, rx_ne(ctx, old, m), rx_let(&l->tb, factor, scale, rescale), NULL);
    rx_stmt *sum = rx_for(&l->tb, u, rx_int(ctx, 0), rx_int(ctx, BLOCK), RX_VECTOR, true, NULL,
                          rx_set0(l, a->s, rx_add(ctx, rx_get0(l, a->s), at1(l, a->score, u))));
    rx_stmt *steps[] = { max, moved, exps, sum };
    return rx_let(&l->tb, old, m, rx_seq(&l->tb, steps, 4));
}

/* positions from + 32 * b … */
static rx_stmt *block(att *a, rx_ex b)
{
    rx_legal *l = a->l;
    relax_context *ctx = l->ctx;
    rx_ex first = rx_add(ctx, a->from, rx_muli(ctx, b, BLOCK)),
          n = rx_min(ctx, rx_int(ctx, BLOCK), rx_sub(ctx, a->to, first));
    rx_ex t = rx_loopvar(&l->tb, "t"), u = rx_loopvar(&l->tb, "t");
    span s = span_of(l, BLOCK);
    rx_stmt *fill = span_loop(l, &s, put1(l, a->score, s.at, rx_f(l, RELAX_F32, -INFINITY)));
    rx_stmt *steps[] = {
        fill,
        rx_loop_s(&l->tb, t, n, score_one(a, t, rx_add(ctx, first, t))),
        softmax_block(a),
        rx_loop_s(&l->tb, u, n, weigh_one(a, u, rx_add(ctx, first, u))),
    };
    return rx_seq(&l->tb, steps, 4);
}

/* the result row: acc / s, 0 when nothing was seen */
static rx_stmt *finish(att *a)
{
    rx_legal *l = a->l;
    relax_context *ctx = l->ctx;
    span s = span_of(l, a->e);
    int32_t n = l->out->ndim;
    rx_ex *ix = rx_arena_dup(l->tb.a, a->o, (size_t)n * sizeof *ix), zero = rx_f(l, RELAX_F32, 0),
          one = rx_f(l, RELAX_F32, 1);
    ix[n - 1] = s.at;
    rx_ex inv = rx_sym_new(ctx, "inv", RELAX_F32), sum = rx_get0(l, a->s);
    rx_ex x = rx_cast(ctx, l->out->dtype, rx_mul(ctx, at1(l, a->acc, s.at), inv));
    rx_ex value = rx_select(ctx, rx_eq(ctx, sum, zero), zero, rx_div(ctx, one, sum));
    return rx_let(&l->tb, inv, value, span_loop(l, &s, rx_store_at(l, l->y[0], ix, x)));
}

static rx_stmt *one_row(att *a)
{
    rx_legal *l = a->l;
    relax_context *ctx = l->ctx;
    a->query = rx_local_n(l, "Q", RELAX_F32, a->d);
    a->score = rx_local_n(l, "W", RELAX_F32, BLOCK);
    a->acc = rx_local_n(l, "O", RELAX_F32, a->e);
    a->m = rx_local(l, "M", RELAX_F32);
    a->s = rx_local(l, "S", RELAX_F32);
    span z = span_of(l, a->e);
    rx_ex b = rx_loopvar(&l->tb, "b"),
          blocks = rx_divi(ctx, rx_addi(ctx, rx_sub(ctx, a->to, a->from), BLOCK - 1), BLOCK);
    rx_stmt *steps[] = {
        load_query(a),
        span_loop(l, &z, put1(l, a->acc, z.at, rx_f(l, RELAX_F32, 0))),
        rx_set0(l, a->m, rx_f(l, RELAX_F32, -INFINITY)),
        rx_set0(l, a->s, rx_f(l, RELAX_F32, 0)),
        rx_loop_s(&l->tb, b, blocks, block(a, b)),
        finish(a),
    };
    rx_stmt *body = rx_seq(&l->tb, steps, 6);
    relax_buffer *bufs[] = { a->query, a->score, a->acc, a->m, a->s };
    for (size_t i = 0; i < RX_COUNT(bufs); i++)
        body = rx_alloc_s(&l->tb, bufs[i], body);
    return body;
}

/* positions that a query at position `at` sees among 0..n */
static void seen(att *a, rx_ex at, rx_ex n)
{
    relax_context *ctx = a->l->ctx;
    int64_t window = rx_attr_int(a->l->attrs, "window", 0);
    rx_ex zero = rx_int(ctx, 0);
    a->to = rx_attr_int(a->l->attrs, "causal", 0) ? rx_max(ctx, zero, rx_min(ctx, n, rx_addi(ctx, at, 1))) : n;
    a->from = window ? rx_max(ctx, zero, rx_addi(ctx, at, 1 - window)) : zero;
}

/* q (n, h, d): heads and rows are one parallel loop, so that a single row still fills all threads */
rx_stmt *rx_legal_attention_cache(rx_legal *l)
{
    relax_context *ctx = l->ctx;
    rx_ty q = l->in[0], k = l->in[1], v = l->in[2];
    rx_ex n = q->dims[0], h = q->dims[1], g = k->dims[1], past = l->in[3]->dims[0], p = rx_loopvar(&l->tb, "p");
    rx_ex i = rx_sym_new(ctx, "i", RELAX_I64), head = rx_sym_new(ctx, "h", RELAX_I64);
    rx_ex lead[3] = { i, head, NULL };
    att a = { .l = l, .d = rx_const_dim(q->dims[2], 0), .e = rx_const_dim(v->dims[2], 0), .q = lead, .o = lead };
    a.kv_head = rx_div(ctx, head, rx_div(ctx, h, g));
    seen(&a, rx_add(ctx, past, i), rx_add(ctx, past, n));
    rx_stmt *body = rx_let(&l->tb, i, rx_div(ctx, p, h), rx_let(&l->tb, head, rx_mod(ctx, p, h), one_row(&a)));
    return rx_for(&l->tb, p, rx_int(ctx, 0), rx_mul(ctx, n, h), RX_PARALLEL, false, NULL, body);
}

/* q (b, n, h, d): query i of n stands at position i + m - n of m */
rx_stmt *rx_legal_attention(rx_legal *l)
{
    relax_context *ctx = l->ctx;
    rx_ty q = l->in[0], k = l->in[1], v = l->in[2];
    rx_ex n = q->dims[1], h = q->dims[2], g = k->dims[2], m = k->dims[1], p = rx_loopvar(&l->tb, "p"),
          zero = rx_int(ctx, 0);
    rx_ex b = rx_sym_new(ctx, "b", RELAX_I64), i = rx_sym_new(ctx, "i", RELAX_I64),
          head = rx_sym_new(ctx, "h", RELAX_I64);
    rx_ex lead[4] = { b, i, head, NULL }, mask[4] = { b, head, i, NULL };
    att a = {
        .l = l, .d = rx_const_dim(q->dims[3], 0), .e = rx_const_dim(v->dims[3], 0), .q = lead, .o = lead, .batch = b};
    a.kv_head = rx_div(ctx, head, rx_div(ctx, h, g));
    if (l->n > 3 && l->x[3]) {
        for (int x = 0; x < 3; x++)
            mask[x] = rx_is_value(l->in[3]->dims[x], 1) ? zero : mask[x];
        a.mask = mask;
    }
    seen(&a, rx_add(ctx, i, rx_sub(ctx, m, n)), m);
    rx_ex rows = rx_mul(ctx, n, h);
    rx_stmt *body =
        rx_let(&l->tb, i, rx_div(ctx, rx_mod(ctx, p, rows), h), rx_let(&l->tb, head, rx_mod(ctx, p, h), one_row(&a)));
    body = rx_let(&l->tb, b, rx_div(ctx, p, rows), body);
    return rx_for(&l->tb, p, zero, rx_mul(ctx, q->dims[0], rows), RX_PARALLEL, false, NULL, body);
}
