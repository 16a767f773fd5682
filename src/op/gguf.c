/* gguf.c: operators on weights in the block formats of GGUF: decode all, decode rows by index, multiply without
 * decoding to memory.
 *
 * Weights are bytes: u8 (n, row_bytes), row after row as in the file. The programs carry their own schedule (parallel
 * rows, vector lanes), all from the one decoder in gguf_decode.c.
 *
 * matmul_gguf, a few rows of w in each parallel iteration:
 *  - one row of x: each step of 16 decoded values is multiplied into lane accumulators at once;
 *  - more: the rows of w are decoded once into a local buffer, then met by four rows of x at a time, in tiles of 4 x 3
 *    with 8 lanes (12 accumulators: what 16 vector registers of 256 bits carry), the last rows of x one by one. A tile
 *    that reaches past the last row of w computes that row again, with the same result, so there is no tail code.
 * Sums are f32 in lanes, added up at the end: the order differs from a plain sum over k. */
#include "op/impl.h"

#define LINE 64                        /* bytes that one prefetch brings */
#define AHEAD 1536                     /* bytes from a load to its prefetch */
#define TILE_X 4
#define TILE_W 3
#define TILE_LANES 8
#define LOCAL_BYTES (192 * 1024)       /* of decoded rows on a thread's stack */
#define GROUPED_BYTES (128 * 1024)     /* several groups of decoded rows pay when the second-level cache holds them */
#define MAX_GROUPS 4

static const rx_qformat *format_of(const rx_attrs *a)
{
    return rx_qformat_find(rx_attr_str(a, "type", ""));
}

static const rx_qformat *check_format(rx_call *c)
{
    const rx_qformat *q = format_of(&c->attrs);
    if (!q)
        rx_fail_op(c, RXE_ATTR, "the block format %s is not known", rx_attr_str(&c->attrs, "type", ""));
    return q;
}

static rx_ty bytes_arg(rx_call *c, uint32_t i, int32_t ndim)
{
    rx_ty w = rx_arg_tensor(c, i);
    if (w->dtype != RELAX_U8 && w->dtype != RELAX_DTYPE_UNKNOWN)
        rx_fail_op(c, RXE_DTYPE, "weights are bytes (u8), not %s", rx_dtypes[w->dtype].name);
    if (w->ndim == 0 || (ndim > 0 && w->ndim >= 0 && w->ndim != ndim))
        rx_fail_op(c, RXE_RANK, "weights of rank %d", w->ndim);
    return w;
}

/* values in a row of w, whose bytes must be whole blocks */
static rx_ex row_values(rx_call *c, const rx_qformat *q, rx_ty w)
{
    int64_t values, bytes;
    rx_qformat_size(q, &values, &bytes);
    rx_ex d = w->dims[w->ndim - 1];
    rx_require_cond(c, rx_eq(c->ctx, rx_modi(c->ctx, d, bytes), rx_int(c->ctx, 0)), "a row holds whole blocks");
    return rx_muli(c->ctx, rx_divi(c->ctx, d, bytes), values);
}

static relax_dtype float_dtype(rx_call *c, const char *key, relax_dtype absent)
{
    relax_dtype t = rx_attr_dtype(&c->attrs, key, absent);
    rx_want_float(c, t, "results");
    return t;
}

rx_ty rx_deduce_dequant(rx_call *c)
{
    const rx_qformat *q = check_format(c);
    rx_ty w = bytes_arg(c, 0, 0);
    relax_dtype dt = float_dtype(c, "dtype", RELAX_F32);
    if (!w->known)
        return rx_ty_tensor_ndim(c->ctx, w->ndim, dt);
    rx_ex *d = rx_arena_dup(c->a, w->dims, (size_t)w->ndim * sizeof *w->dims);
    d[w->ndim - 1] = row_values(c, q, w);
    return rx_ty_tensor(c->ctx, d, w->ndim, dt);
}

rx_ty rx_deduce_matmul_gguf(rx_call *c)
{
    const rx_qformat *q = check_format(c);
    rx_ty x = rx_arg_tensor(c, 0), w = bytes_arg(c, 1, 2);
    rx_want_float(c, x->dtype, "elements");
    relax_dtype dt = float_dtype(c, "out_dtype", x->dtype);
    if (x->ndim == 0)
        rx_fail_op(c, RXE_RANK, "a tensor of rank 0 has no rows");
    if (!x->known || !w->known)
        return rx_ty_tensor_ndim(c->ctx, x->ndim, dt);
    rx_same_dim(c, x->dims[x->ndim - 1], row_values(c, q, w), "the inner dims");
    rx_ex *d = rx_arena_dup(c->a, x->dims, (size_t)x->ndim * sizeof *x->dims);
    d[x->ndim - 1] = w->dims[0];
    return rx_ty_tensor(c->ctx, d, x->ndim, dt);
}

rx_ty rx_deduce_take_gguf(rx_call *c)
{
    const rx_qformat *q = check_format(c);
    rx_ty w = bytes_arg(c, 0, 2), ix = rx_arg_tensor(c, 1);
    relax_dtype dt = float_dtype(c, "dtype", RELAX_F32);
    rx_want_int(c, ix->dtype, "indices");
    if (!w->known || !ix->known)
        return rx_ty_tensor_ndim(c->ctx, ix->ndim < 0 ? -1 : ix->ndim + 1, dt);
    rx_ex *d = RX_NEWN(c->a, rx_ex, ix->ndim + 1);
    for (int32_t i = 0; i < ix->ndim; i++)
        d[i] = ix->dims[i];
    d[ix->ndim] = row_values(c, q, w);
    return rx_ty_tensor(c->ctx, d, ix->ndim + 1, dt);
}

/* ---- decoding to memory ---- */

/* a row of y: y[lead…, base + j0 + v] = value */
typedef struct to_row { relax_buffer *y; rx_ex *lead; rx_ex base; } to_row;

static rx_stmt *store_row(rx_legal *l, void *arg, int64_t j0, rx_ex v, rx_ex value)
{
    to_row *t = arg;
    rx_ex ix[RX_MAX_NDIM];
    for (uint32_t i = 0; i + 1 < t->y->ndim; i++)
        ix[i] = t->lead[i];
    ix[t->y->ndim - 1] = rx_add(l->ctx, rx_addi(l->ctx, t->base, j0), v);
    return rx_store_at(l, t->y, ix, rx_cast(l->ctx, t->y->dtype, value));
}

/* decodes the row of w at `from` into the row of y at `lead` */
static rx_stmt *decode_row(rx_legal *l, const rx_qformat *q, relax_buffer *w, rx_ex *from, relax_buffer *y, rx_ex *lead)
{
    relax_context *ctx = l->ctx;
    int64_t values, bytes;
    rx_qformat_size(q, &values, &bytes);
    rx_ex b = rx_loopvar(&l->tb, "b"), n = rx_divi(ctx, w->shape[w->ndim - 1], bytes);
    rx_qsrc src = { w, from, w->ndim - 1, rx_muli(ctx, b, bytes) };
    if (values == 1) {
        to_row t = { y, lead, b };
        return rx_loop_s(&l->tb, b, n, store_row(l, &t, 0, rx_int(ctx, 0), rx_qplain(l, q, &src)));
    }
    to_row t = { y, lead, rx_muli(ctx, b, values) };
    return rx_loop_s(&l->tb, b, n, rx_qblock(l, q, &src, store_row, &t));
}

/* loops over dims around body, the outermost parallel */
static rx_stmt *parallel_nest(rx_legal *l, rx_ex *vars, rx_ex *dims, uint32_t n, rx_stmt *body)
{
    if (n == 0)
        return body;
    for (uint32_t i = n; i-- > 1;)
        body = rx_loop_s(&l->tb, vars[i], dims[i], body);
    return rx_for(&l->tb, vars[0], rx_int(l->ctx, 0), dims[0], RX_PARALLEL, false, NULL, body);
}

rx_stmt *rx_legal_dequant(rx_legal *l)
{
    uint32_t n = (uint32_t)l->out->ndim - 1;
    rx_ex *v = rx_vars(l, n);
    return parallel_nest(l, v, l->out->dims, n, decode_row(l, format_of(l->attrs), l->x[0], v, l->y[0], v));
}

rx_stmt *rx_legal_take_gguf(rx_legal *l)
{
    uint32_t n = (uint32_t)l->out->ndim - 1;
    rx_ex *v = rx_vars(l, n), row;
    rx_prefix p = { .n = 0 };
    row = rx_index_var(l, &p, rx_load_at(l, l->x[1], v), l->in[0]->dims[0], "check");
    rx_stmt *body = decode_row(l, format_of(l->attrs), l->x[0], &row, l->y[0], v);
    return parallel_nest(l, v, l->out->dims, n, rx_with_prefix(l, &p, body));
}

/* ---- multiplication ---- */

typedef struct mm {
    rx_legal *l;
    const rx_qformat *q;
    int64_t values, bytes;
    rx_ex k, n, m;                     /* inner extent, rows of w, rows of x (leading axes taken together) */
    rx_ex blocks;
} mm;

/* leading indices of x and y for row i of the flattened leading axes, then `last` */
static rx_ex *row_index(const mm *g, rx_ex i, rx_ex last)
{
    relax_context *ctx = g->l->ctx;
    rx_ty t = g->l->in[0];
    rx_ex *ix = RX_NEWN(g->l->tb.a, rx_ex, t->ndim);
    for (int32_t a = t->ndim - 1; a-- > 0;) {
        ix[a] = a == 0 ? i : rx_mod(ctx, i, t->dims[a]);
        i = a == 0 ? i : rx_div(ctx, i, t->dims[a]);
    }
    ix[t->ndim - 1] = last;
    return ix;
}

static rx_ex x_at(const mm *g, rx_ex i, rx_ex k)
{
    return rx_cast(g->l->ctx, RELAX_F32, rx_load_at(g->l, g->l->x[0], row_index(g, i, k)));
}

static rx_stmt *put_y(const mm *g, rx_ex i, rx_ex row, rx_ex value)
{
    return rx_store_at(g->l, g->l->y[0], row_index(g, i, row), rx_cast(g->l->ctx, g->l->out->dtype, value));
}

static rx_stmt *lanes(rx_legal *l, rx_ex v, int64_t n, bool reduce, rx_stmt *init, rx_stmt *body)
{
    return rx_for(&l->tb, v, rx_int(l->ctx, 0), rx_int(l->ctx, n), RX_VECTOR, reduce, init, body);
}

static relax_buffer *lane_acc(rx_legal *l, int64_t n, int64_t width)
{
    rx_ex d[] = { rx_int(l->ctx, n), rx_int(l->ctx, width) };
    return rx_buffer(&l->tb, "acc", RELAX_F32, RX_MEM_LOCAL, d, 2);
}

static int64_t width_of(relax_buffer *acc) { return rx_const_dim(acc->shape[1], 1); }

/* acc[0..n, lanes] = 0 */
static rx_stmt *clear(rx_legal *l, relax_buffer *acc, int64_t n)
{
    rx_stmt *s[TILE_X * TILE_W];
    rx_ex v = rx_loopvar(&l->tb, "v");
    for (int64_t i = 0; i < n; i++)
        s[i] = rx_store_at(l, acc, (rx_ex[]){ rx_int(l->ctx, i), v }, rx_f(l, RELAX_F32, 0));
    return lanes(l, v, width_of(acc), false, NULL, rx_seq(&l->tb, s, (uint32_t)n));
}

/* y[i, row] = sum over the lanes of acc[from .. from + n) */
static rx_stmt *sum_lanes(const mm *g, relax_buffer *acc, int64_t from, int64_t n, rx_ex i, rx_ex row)
{
    rx_legal *l = g->l;
    relax_buffer *s = rx_local(l, "S", RELAX_F32);
    rx_ex v = rx_loopvar(&l->tb, "v"), e = NULL;
    for (int64_t a = from; a < from + n; a++) {
        rx_ex x = rx_load_at(l, acc, (rx_ex[]){ rx_int(l->ctx, a), v });
        e = e ? rx_add(l->ctx, e, x) : x;
    }
    rx_stmt *sum = lanes(l, v, width_of(acc), true, rx_set0(l, s, rx_f(l, RELAX_F32, 0)),
                         rx_set0(l, s, rx_add(l->ctx, rx_get0(l, s), e)));
    return rx_alloc_s(&l->tb, s, rx_seq2(l, sum, put_y(g, i, row, rx_get0(l, s))));
}

static rx_ex mul_add(rx_legal *l, rx_ex a, rx_ex b, rx_ex c)
{
    rx_ex args[] = { a, b, c };
    return rx_intrinsic(l->ctx, RX_IN_FMA, args, 3);
}

/* two accumulators take the steps of a block in turn */
typedef struct dot { const mm *g; relax_buffer *acc; rx_ex i, base; } dot;

static rx_stmt *dot_step(rx_legal *l, void *arg, int64_t j0, rx_ex v, rx_ex value)
{
    dot *t = arg;
    rx_ex at[] = { rx_int(l->ctx, j0 / RX_QLANES % 2), v };
    rx_ex x = x_at(t->g, t->i, rx_add(l->ctx, rx_addi(l->ctx, t->base, j0), v));
    return rx_store_at(l, t->acc, at, mul_add(l, value, x, rx_load_at(l, t->acc, at)));
}

/* The bytes that are wanted in a while: rows lie one behind the other, so what is behind the end of a row is the next
 * one. A core waits for memory otherwise: 1.1 to 1.2 times the speed for q8_0. */
static rx_stmt *fetch_ahead(const mm *g, const rx_qsrc *src)
{
    rx_legal *l = g->l;
    rx_stmt *at[8];
    uint32_t n = 0;
    for (int64_t i = 0; i < g->bytes; i += LINE)
        at[n++] = rx_prefetch_s(&l->tb, l->x[1], (rx_ex[]){ src->lead[0], rx_addi(l->ctx, src->off, AHEAD + i) });
    return rx_seq(&l->tb, at, n);
}

/* y[i, row] without a decoded row in between */
static rx_stmt *direct(const mm *g, rx_ex i, rx_ex row)
{
    rx_legal *l = g->l;
    relax_context *ctx = l->ctx;
    rx_ex b = rx_loopvar(&l->tb, "b");
    relax_buffer *acc = lane_acc(l, 2, RX_QLANES);
    rx_qsrc src = { l->x[1], &row, 1, rx_muli(ctx, b, g->bytes) };
    dot t = { g, acc, i, rx_muli(ctx, b, g->values) };
    rx_stmt *block = rx_seq2(l, fetch_ahead(g, &src), rx_qblock(l, g->q, &src, dot_step, &t));
    rx_stmt *blocks = rx_loop_s(&l->tb, b, g->blocks, block);
    return rx_alloc_s(&l->tb, acc, rx_seq3(l, clear(l, acc, 2), blocks, sum_lanes(g, acc, 0, 2, i, row)));
}

/* row of w: the last one instead of those behind it */
static rx_ex row_at(const mm *g, rx_ex row)
{
    return rx_min(g->l->ctx, row, rx_subi(g->l->ctx, g->n, 1));
}

/* D[q, :] = decoded row first + q, for count rows */
static rx_stmt *decode_rows(const mm *g, relax_buffer *d, rx_ex first, int64_t count)
{
    rx_legal *l = g->l;
    rx_ex q = rx_loopvar(&l->tb, "q"), row = row_at(g, rx_add(l->ctx, first, q));
    return rx_loop_s(&l->tb, q, rx_int(l->ctx, count), decode_row(l, g->q, l->x[1], &row, d, &q));
}

/* Rows i, i + 1 … of x with decoded rows from, from + 1 …: acc[TILE_W * a + q, v] += D[from + q, k] * x[i + a, k] */
static rx_stmt *tile(const mm *g, relax_buffer *d, rx_ex i, int nx, rx_ex first, rx_ex from)
{
    rx_legal *l = g->l;
    relax_context *ctx = l->ctx;
    int n = nx * TILE_W;
    relax_buffer *acc = lane_acc(l, n, TILE_LANES);
    rx_ex kk = rx_loopvar(&l->tb, "k"), v = rx_loopvar(&l->tb, "v"), k = rx_add(ctx, rx_muli(ctx, kk, TILE_LANES), v);
    rx_stmt *step[TILE_X * TILE_W], *out[TILE_X * TILE_W];
    for (int t = 0; t < n; t++) {
        rx_ex q = rx_addi(ctx, from, t % TILE_W), xi = rx_addi(ctx, i, t / TILE_W), at[] = { rx_int(ctx, t), v };
        rx_ex w = rx_load_at(l, d, (rx_ex[]){ q, k });
        step[t] = rx_store_at(l, acc, at, mul_add(l, w, x_at(g, xi, k), rx_load_at(l, acc, at)));
        out[t] = sum_lanes(g, acc, t, 1, xi, row_at(g, rx_add(ctx, first, q)));
    }
    rx_stmt *body = lanes(l, v, TILE_LANES, false, NULL, rx_seq(&l->tb, step, (uint32_t)n));
    rx_stmt *loop = rx_loop_s(&l->tb, kk, rx_divi(ctx, g->k, TILE_LANES), body);
    return rx_alloc_s(&l->tb, acc, rx_seq3(l, clear(l, acc, n), loop, rx_seq(&l->tb, out, (uint32_t)n)));
}

/* count rows of w from `first` on with all rows of x */
static rx_stmt *decoded(const mm *g, rx_ex first, int64_t count)
{
    rx_legal *l = g->l;
    relax_context *ctx = l->ctx;
    rx_ex dims[] = { rx_int(ctx, count), g->k }, groups = rx_int(ctx, count / TILE_W);
    relax_buffer *d = rx_buffer(&l->tb, "D", RELAX_F32, RX_MEM_LOCAL, dims, 2);
    rx_ex t = rx_loopvar(&l->tb, "t"), r = rx_loopvar(&l->tb, "r");
    rx_ex h = rx_loopvar(&l->tb, "h"), h1 = rx_loopvar(&l->tb, "h");
    rx_ex tiles = rx_divi(ctx, g->m, TILE_X), rest = rx_modi(ctx, g->m, TILE_X), base = rx_muli(ctx, tiles, TILE_X);
    rx_stmt *full = tile(g, d, rx_muli(ctx, t, TILE_X), TILE_X, first, rx_muli(ctx, h, TILE_W));
    rx_stmt *one = tile(g, d, rx_add(ctx, base, r), 1, first, rx_muli(ctx, h1, TILE_W));
    full = rx_loop_s(&l->tb, t, tiles, rx_loop_s(&l->tb, h, groups, full));
    one = rx_loop_s(&l->tb, r, rest, rx_loop_s(&l->tb, h1, groups, one));
    return rx_alloc_s(&l->tb, d, rx_seq3(l, decode_rows(g, d, first, count), full, one));
}

/* element types: a plain nest */
static rx_stmt *plain(const mm *g)
{
    rx_legal *l = g->l;
    relax_context *ctx = l->ctx;
    rx_ex *v = rx_vars(l, (uint32_t)l->out->ndim), k = rx_loopvar(&l->tb, "k"), row = v[l->out->ndim - 1];
    rx_ex *xi = rx_arena_dup(l->tb.a, v, (size_t)l->out->ndim * sizeof *v);
    xi[l->out->ndim - 1] = k;
    rx_qsrc src = { l->x[1], &row, 1, rx_muli(ctx, k, g->bytes) };
    rx_ex x = rx_cast(ctx, RELAX_F32, rx_load_at(l, l->x[0], xi)), w = rx_qplain(l, g->q, &src);
    relax_buffer *s = rx_local(l, "S", RELAX_F32);
    rx_stmt *sum = rx_reduce_loop(l, k, g->k, rx_set0(l, s, rx_f(l, RELAX_F32, 0)),
                                  rx_set0(l, s, rx_add(ctx, rx_get0(l, s), rx_mul(ctx, x, w))));
    rx_stmt *put = rx_store_at(l, l->y[0], v, rx_cast(ctx, l->out->dtype, rx_get0(l, s)));
    return rx_nest(l, v, l->out->dims, (uint32_t)l->out->ndim, rx_alloc_s(&l->tb, s, rx_seq2(l, sum, put)));
}

rx_stmt *rx_legal_matmul_gguf(rx_legal *l)
{
    relax_context *ctx = l->ctx;
    rx_ty x = l->in[0], w = l->in[1];
    mm g = { .l = l, .q = format_of(l->attrs), .n = w->dims[0], .m = rx_product(ctx, x->dims, (uint32_t)x->ndim - 1) };
    rx_qformat_size(g.q, &g.values, &g.bytes);
    g.blocks = rx_divi(ctx, w->dims[1], g.bytes);
    g.k = rx_muli(ctx, g.blocks, g.values);
    if (g.values == 1)
        return plain(&g);
    int64_t k = rx_const_dim(g.k, LOCAL_BYTES), bytes = k * TILE_W * (int64_t)sizeof(float), m = rx_const_dim(g.m, 2);
    int64_t count = TILE_W * RX_MAX(1, RX_MIN(MAX_GROUPS, GROUPED_BYTES / RX_MAX(bytes, 1)));
    rx_ex part = rx_loopvar(&l->tb, "p"), q = rx_loopvar(&l->tb, "q"), i = rx_loopvar(&l->tb, "i");
    rx_ex first = rx_muli(ctx, part, count), here = rx_min(ctx, rx_int(ctx, count), rx_sub(ctx, g.n, first));
    rx_stmt *body = direct(&g, i, rx_add(ctx, first, q));
    body = rx_loop_s(&l->tb, q, here, rx_loop_s(&l->tb, i, g.m, body));
    if (bytes <= LOCAL_BYTES && m > 1)
        body = rx_if(&l->tb, rx_le(ctx, g.m, rx_int(ctx, 1)), body, decoded(&g, first, count));
    rx_ex parts = rx_divi(ctx, rx_addi(ctx, g.n, count - 1), count);
    return rx_for(&l->tb, part, rx_int(ctx, 0), parts, RX_PARALLEL, false, NULL, body);
}
