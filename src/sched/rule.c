/* rule.c: the default schedule.
 *
 * A top-level nest is a chain of spatial loops v1 … vm around a body. Three kinds:
 *  - element-wise (no loops in the body): the last loop runs in vectors with a scalar tail, when that pays;
 *  - reduction (the body holds reduce loops only), two forms:
 *      lanes along vm (C[i, j] += A[i, k] * B[k, j]: bit-preserving but for fma): tiles of several vectors, of one,
 * scalars; lanes along the reduction (… * B[j, k], row sums): partial accumulators for several columns; both in tiles
 * of several rows when a load of the body does not depend on the row;
 *  - other: the loops inside are treated each on its own.
 * Outer loops that are independent run in parallel, fused into one loop over their product, together with blocks of the
 * last loop where it is long; nests that are small for certain stay serial. Every range may be 0 or negative and no
 * constant needs to divide another. What is not understood stays as it is. */
#include "sched/impl.h"

#define CHAIN 16
#define BLOCK 1024                     /* elements of the last loop that one parallel iteration takes (element-wise) */
#define SMALL 16384                    /* nodes computed in all: below it a nest is not worth a barrier */
#define UNKNOWN SMALL                  /* a symbolic extent counts as long */

typedef struct plan {
    rx_tb *t;
    const rx_facts *facts;
    bool exact, fma;
    uint32_t bits, wide;               /* vector width; vectors of a row of a tile: 2 with 16 registers, 4 with 32 */
    rx_sched_info *info;
} plan;

typedef struct chain { rx_stmt *loop[CHAIN]; uint32_t n; rx_stmt *body; } chain;

static rx_stmt *visit(plan *c, rx_stmt *s, bool top);

/* --- pieces --- */

static bool short_range(rx_ex extent, int64_t below)
{
    int64_t n;
    return rx_is_int(extent, &n) && n < below;
}

static chain chain_of(rx_stmt *s)
{
    chain r = {.body = s};
    while (r.n < CHAIN && r.body->kind == RX_S_FOR && r.body->u.loop.how == RX_SERIAL && !r.body->u.loop.reduce) {
        r.loop[r.n++] = r.body;
        r.body = r.body->u.loop.body;
    }
    return r;
}

static rx_stmt *wrap(rx_tb *t, const rx_stmt *loop, rx_loop how, rx_stmt *body)
{
    return rx_for(t, loop->u.loop.var, loop->u.loop.start, loop->u.loop.extent, how, false, NULL, body);
}

static rx_stmt *wrap_all(plan *c, const chain *ch, uint32_t from, uint32_t to, rx_stmt *body)
{
    while (to-- > from)
        body = wrap(c->t, ch->loop[to], RX_SERIAL, body);
    return body;
}

/* the range of loop i changes with an outer loop of the chain, or is loaded */
static bool depends(plan *c, const chain *ch, uint32_t i)
{
    const rx_stmt *l = ch->loop[i];
    if ((l->u.loop.start->flags | l->u.loop.extent->flags) & RX_EX_DATA)
        return true;
    for (uint32_t k = 0; k < i; k++)
        if (rx_uses(c->t->ctx, l->u.loop.start, ch->loop[k]->u.loop.var) ||
            rx_uses(c->t->ctx, l->u.loop.extent, ch->loop[k]->u.loop.var))
            return true;
    return false;
}

static void add_work(void *arg, rx_stmt *s)
{
    double *w = arg;
    int64_t n = UNKNOWN;
    if (s->kind == RX_S_FOR) {
        rx_is_int(s->u.loop.extent, &n);
        *w *= (double)RX_MAX(n, 1);
    }
}

/* nodes computed by a nest, roughly: extents of all loops multiplied (siblings too: an over-estimate) */
static bool is_small(plan *c, rx_stmt *s)
{
    rx_moves m;
    double w;
    rx_moves_of(c->t, s, s->u.loop.var, &m);
    w = (double)m.work + 1;
    rx_stmt_visit(s, add_work, &w);
    return w < SMALL;
}

/* leading loops of the chain, at most `most`, that can be one parallel loop */
static uint32_t parallel_prefix(plan *c, const chain *ch, uint32_t most)
{
    uint32_t n = 0;
    while (n < most && !depends(c, ch, n) && rx_loop_independent(c->t, c->facts, ch->loop[n]))
        n++;
    return n;
}

/* --- the parallel loop --- */

/* One parallel loop over the product of the first n loops of the chain and, where blocks is not NULL, of a block
 * counter. The variables are let again inside. */
static rx_stmt *parallel(plan *c, const chain *ch, uint32_t n, rx_ex block, rx_ex blocks, rx_stmt *body)
{
    rx_tb *t = c->t;
    relax_context *ctx = t->ctx;
    rx_ex var[CHAIN + 1], start[CHAIN + 1], extent[CHAIN + 1];
    uint32_t k = 0;
    for (uint32_t i = 0; i < n; i++) {
        const rx_stmt *l = ch->loop[i];
        if (rx_is_value(l->u.loop.extent, 1)) {
            body = rx_let(t, l->u.loop.var, l->u.loop.start, body);
            continue;
        }
        var[k] = l->u.loop.var;
        start[k] = l->u.loop.start;
        extent[k++] = rx_nonneg_extent(t, c->facts, l->u.loop.extent);
    }
    if (blocks) {
        var[k] = block;
        start[k] = rx_int(ctx, 0);
        extent[k++] = blocks;
    }
    if (!k)
        return body;
    c->info->parallel++;
    if (k == 1)
        return rx_for(t, var[0], start[0], extent[0], RX_PARALLEL, false, NULL, body);
    rx_ex f = rx_loopvar(t, "p"), rest = f;
    for (uint32_t i = k; i-- > 0;) {
        rx_ex at = i ? rx_mod(ctx, rest, extent[i]) : rest;
        body = rx_let(t, var[i], rx_add(ctx, start[i], at), body);
        rest = i ? rx_div(ctx, rest, extent[i]) : rest;
    }
    return rx_for(t, f, rx_int(ctx, 0), rx_product(ctx, extent, k), RX_PARALLEL, false, NULL, body);
}

/* a block length, a multiple of `of`, about `want`, that divides a constant extent if one near does */
static int64_t block_length(rx_ex extent, int64_t of, int64_t want)
{
    int64_t n, best = RX_MAX(want / of, 1) * of;
    if (!rx_is_int(extent, &n) || n % of)
        return best;
    for (int64_t b = best; b >= of && b * 4 >= best; b -= of)
        if (n % b == 0)
            return b;
    return best;
}

/* the part of a range that block number b has */
static void block_range(plan *c, const rx_stmt *loop, rx_ex extent, rx_ex b, int64_t length, rx_ex *start, rx_ex *count)
{
    relax_context *ctx = c->t->ctx;
    int64_t n;
    rx_ex from = rx_muli(ctx, b, length), size = rx_int(ctx, length);
    *start = rx_add(ctx, loop->u.loop.start, from);
    *count = rx_is_int(extent, &n) && n % length == 0 ? size : rx_min(ctx, size, rx_sub(ctx, extent, from));
}

/* --- vectors along a loop --- */

/* elements of the widest dtype that a vector holds; fewer when the range is known to be shorter */
static int64_t lanes_of(const plan *c, const rx_moves *m, rx_ex extent)
{
    int64_t n = (int64_t)c->bits / 8 / (int64_t)RX_MAX(m->bytes, 1);
    n = RX_MIN(RX_MAX(n, 2), 64);
    while (n > 4 && short_range(extent, n))
        n /= 2;
    return n;
}

static bool worth_lanes(const rx_moves *m)
{
    if (!m->store_unit || m->store_uniform || m->store_other)
        return false;
    return !m->other || m->calls || m->work >= 6 * m->other;
}

/* loop over [start, start + extent) with a leaf body: vectors, then the rest one by one */
static rx_stmt *in_vectors(plan *c, const rx_stmt *loop, rx_ex start, rx_ex extent, int64_t lanes)
{
    rx_tb *t = c->t;
    relax_context *ctx = t->ctx;
    rx_parts r = rx_split_range(t, start, extent, lanes);
    rx_ex o = rx_loopvar(t, rx_strf(ctx, "%so", rx_sym_of(loop->u.loop.var)->name)), l = rx_loopvar(t, "l");
    rx_ex at = rx_add(ctx, rx_add(ctx, start, rx_muli(ctx, o, lanes)), l);
    rx_stmt *body = rx_subst_one(t, loop->u.loop.body, loop->u.loop.var, at), *both[2];
    uint32_t n = 0;
    if (!rx_is_value(r.count, 0)) {
        body = rx_for(t, l, rx_int(ctx, 0), rx_int(ctx, lanes), RX_VECTOR, false, NULL, body);
        both[n++] = rx_for(t, o, rx_int(ctx, 0), r.count, RX_SERIAL, false, NULL, body);
        c->info->vector++;
    }
    if (!rx_is_value(r.rest, 0)) {
        rx_ex v = rx_loopvar(t, rx_sym_of(loop->u.loop.var)->name);
        both[n++] = rx_for(t, v, r.rest_start, r.rest, RX_SERIAL, false, NULL,
                           rx_subst_one(t, loop->u.loop.body, loop->u.loop.var, v));
    }
    return rx_seq(t, both, n);
}

static rx_stmt *serial_range(plan *c, const rx_stmt *loop, rx_ex start, rx_ex extent)
{
    return rx_for(c->t, loop->u.loop.var, start, extent, RX_SERIAL, false, NULL, loop->u.loop.body);
}

static rx_stmt *elementwise(plan *c, const chain *ch, bool top)
{
    const rx_stmt *last = ch->loop[ch->n - 1];
    rx_ex v = last->u.loop.var, extent = last->u.loop.extent;
    rx_moves m;
    rx_moves_of(c->t, ch->body, v, &m);
    int64_t lanes = lanes_of(c, &m, extent);
    bool free =
        rx_loop_independent(c->t, c->facts, last) && !((last->u.loop.start->flags | extent->flags) & RX_EX_DATA);
    bool vectors = free && m.plain && worth_lanes(&m) && !short_range(extent, lanes);
    extent = free ? rx_nonneg_extent(c->t, c->facts, extent) : extent;
    uint32_t p = top && !is_small(c, ch->loop[0]) ? parallel_prefix(c, ch, ch->n - 1) : 0;
    bool blocks = free && top && p == ch->n - 1 && !depends(c, ch, p) && !is_small(c, ch->loop[0]) &&
                  !short_range(extent, ch->n > 1 ? 2 * BLOCK : BLOCK / 4);
    rx_ex start = last->u.loop.start, count = extent, b = NULL, nb = NULL;
    if (blocks) {
        int64_t length = block_length(extent, lanes, BLOCK);
        b = rx_loopvar(c->t, rx_strf(c->t->ctx, "%sb", rx_sym_of(v)->name));
        nb = rx_divi(c->t->ctx, rx_addi(c->t->ctx, extent, length - 1), length);
        block_range(c, last, extent, b, length, &start, &count);
    }
    rx_stmt *s = vectors ? in_vectors(c, last, start, count, lanes) : serial_range(c, last, start, count);
    s = wrap_all(c, ch, p, ch->n - 1, s);
    return p || blocks ? parallel(c, ch, p, b, nb, s) : s;
}

/* --- reductions --- */

/* Reduce loops in a serial place: private accumulators, then partial ones where the loads run along the reduction. */
static rx_stmt *reduce_loop(plan *c, rx_stmt *loop, int64_t unroll)
{
    rx_tb *t = c->t;
    rx_moves m;
    if (loop->u.loop.how != RX_SERIAL)
        return loop;
    if (loop->u.loop.body->kind == RX_S_FOR && loop->u.loop.body->u.loop.reduce) {
        rx_stmt *in = reduce_loop(c, loop->u.loop.body, unroll);
        return rx_for(t, loop->u.loop.var, loop->u.loop.start, loop->u.loop.extent, RX_SERIAL, true, loop->u.loop.init,
                      in);
    }
    rx_moves_of(t, loop->u.loop.body, loop->u.loop.var, &m);
    if (m.loops || !m.plain || m.other || !m.unit ||
        ((loop->u.loop.start->flags | loop->u.loop.extent->flags) & RX_EX_DATA)) {
        rx_stmt *in = m.loops ? visit(c, loop->u.loop.body, false) : loop->u.loop.body;
        return rx_for(t, loop->u.loop.var, loop->u.loop.start, loop->u.loop.extent, RX_SERIAL, true, loop->u.loop.init,
                      in);
    }
    rx_ex extent = rx_nonneg_extent(t, c->facts, loop->u.loop.extent);
    rx_stmt *flat =
        rx_for(t, loop->u.loop.var, loop->u.loop.start, extent, RX_SERIAL, true, loop->u.loop.init, loop->u.loop.body);
    /* functions such as exp keep the machine busy with one accumulator, and unrolling them is much code */
    rx_stmt *r = rx_rfactor(t, flat, lanes_of(c, &m, extent), m.calls ? 1 : unroll, !c->exact);
    if (!r)
        return loop;
    c->info->vector++;
    c->info->reassociates |= !c->exact;
    return r;
}

static rx_stmt *reduce_all(plan *c, rx_stmt *s, int64_t unroll)
{
    rx_tb *t = c->t;
    switch (s->kind) {
    case RX_S_SEQ: {
        rx_stmt **at = RX_NEWN(t->a, rx_stmt *, s->u.seq.n);
        for (uint32_t i = 0; i < s->u.seq.n; i++)
            at[i] = reduce_all(c, s->u.seq.at[i], unroll);
        return rx_seq(t, at, s->u.seq.n);
    }
    case RX_S_ALLOC: return rx_alloc_s(t, s->u.alloc.buf, reduce_all(c, s->u.alloc.body, unroll));
    case RX_S_LET: return rx_let(t, s->u.let.var, s->u.let.value, reduce_all(c, s->u.let.body, unroll));
    case RX_S_FOR: return s->u.loop.reduce ? reduce_loop(c, s, unroll) : s;
    default: return s;
    }
}

static rx_stmt *privatize_all(plan *c, rx_stmt *s)
{
    rx_tb *t = c->t;
    switch (s->kind) {
    case RX_S_SEQ: {
        rx_stmt **at = RX_NEWN(t->a, rx_stmt *, s->u.seq.n);
        for (uint32_t i = 0; i < s->u.seq.n; i++)
            at[i] = privatize_all(c, s->u.seq.at[i]);
        return rx_seq(t, at, s->u.seq.n);
    }
    case RX_S_ALLOC: return rx_alloc_s(t, s->u.alloc.buf, privatize_all(c, s->u.alloc.body));
    case RX_S_LET: return rx_let(t, s->u.let.var, s->u.let.value, privatize_all(c, s->u.let.body));
    case RX_S_FOR: return s->u.loop.reduce ? rx_privatize(t, s) : s;
    default: return s;
    }
}

/* One way to take several iterations of a loop: `unroll` groups of `lanes` (1: no vector). */
typedef struct step { int64_t unroll, lanes; } step;
typedef struct tile {
    plan *c;
    const rx_stmt *row, *col;          /* row NULL: none */
    rx_ex row_start, row_extent;
    step rows[3], cols[3][3];          /* widest first, the last is {1, 1}; columns for each kind of rows */
    uint32_t nrows, ncols[3];
    rx_stmt *body, *single;            /* what one step does; the same for a single row */
} tile;

static rx_stmt *jam_step(tile *x, rx_stmt *body, const rx_stmt *loop, step s, rx_ex base)
{
    rx_tb *t = x->c->t;
    rx_ex v = loop->u.loop.var, w = v;
    if (body && s.lanes > 1) {
        w = s.unroll > 1 ? rx_loopvar(t, "w") : v;
        body = rx_jam(t, body, v, s.unroll > 1 ? w : base, 1, s.lanes, RX_VECTOR);
        if (s.unroll == 1)
            return body;
    }
    if (body && s.unroll > 1)
        return rx_jam(t, body, w, base, s.lanes, s.unroll, RX_UNROLL);
    return body ? rx_subst_one(t, body, v, base) : NULL;
}

/* loops over a range in the steps of a list; body(x, step number, base) makes what runs in one step. NULL when it
 * cannot */
typedef rx_stmt *(*step_body)(tile *x, uint32_t row, uint32_t i, rx_ex row_base, rx_ex base, rx_ex start, rx_ex extent);

static rx_stmt *in_steps(tile *x, const rx_stmt *loop, const step *steps, uint32_t n, rx_ex start, rx_ex extent,
                         step_body f, uint32_t row, rx_ex row_base, rx_ex col_start, rx_ex col_extent)
{
    rx_tb *t = x->c->t;
    relax_context *ctx = t->ctx;
    rx_stmt *at[3];
    uint32_t k = 0;
    for (uint32_t i = 0; i < n && !rx_is_value(extent, 0); i++) {
        int64_t width = steps[i].unroll * steps[i].lanes;
        rx_parts r = rx_split_range(t, start, extent, width);
        rx_ex o = rx_loopvar(t, rx_sym_of(loop->u.loop.var)->name);
        rx_ex base = rx_add(ctx, start, rx_muli(ctx, o, width));
        if (!rx_is_value(r.count, 0)) {
            rx_stmt *body = f(x, row, i, row_base, base, col_start, col_extent);
            if (!body)
                return NULL;
            at[k++] = rx_for(t, o, rx_int(ctx, 0), r.count, RX_SERIAL, false, NULL, body);
        }
        start = r.rest_start;
        extent = width == 1 ? rx_int(ctx, 0) : r.rest;
    }
    return rx_seq(t, at, k);
}

static rx_stmt *tile_body(tile *x, uint32_t row, uint32_t i, rx_ex row_base, rx_ex base, rx_ex start, rx_ex extent)
{
    (void)start;
    (void)extent;
    rx_stmt *s = jam_step(x, rx_stmt_copy(x->c->t, x->rows[row].unroll == 1 ? x->single : x->body, NULL, NULL), x->col,
                          x->cols[row][i], base);
    return x->row && s ? jam_step(x, s, x->row, x->rows[row], row_base) : s;
}

static rx_stmt *row_body(tile *x, uint32_t row, uint32_t i, rx_ex row_base, rx_ex base, rx_ex start, rx_ex extent)
{
    (void)row;
    (void)row_base;
    return in_steps(x, x->col, x->cols[i], x->ncols[i], start, extent, tile_body, i, base, NULL, NULL);
}

/* the rows and the given range of columns in tiles */
static rx_stmt *in_tiles(tile *x, rx_ex start, rx_ex extent)
{
    if (!x->row)
        return in_steps(x, x->col, x->cols[0], x->ncols[0], start, extent, tile_body, 0, NULL, NULL, NULL);
    return in_steps(x, x->row, x->rows, x->nrows, x->row_start, x->row_extent, row_body, 0, NULL, start, extent);
}

typedef struct reuse_query { plan *c; rx_ex v; rx_exvec inner; bool hit; } reuse_query;

static void find_reuse(void *arg, rx_ex e)
{
    reuse_query *q = arg;
    bool inner = false, own = false;
    if (e->op != RX_EX_LOAD)
        return;
    for (uint32_t i = 0; i < q->inner.n; i++)
        inner |= rx_uses(q->c->t->ctx, e, q->inner.at[i]);
    own = rx_uses(q->c->t->ctx, e, q->v);
    q->hit |= inner && !own;
}

static void reuse_expr(void *arg, rx_ex e)
{
    if (e->flags & RX_EX_DATA)
        rx_visit(((reuse_query *)arg)->c->t->ctx, e, find_reuse, arg);
}

static void reuse_stmt(void *arg, rx_stmt *s)
{
    reuse_query *q = arg;
    if (s->kind == RX_S_FOR)
        rx_push(rx_scratch(&q->c->t->ctx->heap), &q->inner, s->u.loop.var);
    rx_stmt_exprs(s, reuse_expr, q);
}

/* does the body load elements, changing with its reduce loops, that are the same for every v? */
static bool reuses(plan *c, rx_stmt *body, rx_ex v)
{
    reuse_query q = {.c = c, .v = v};
    rx_stmt_visit(body, reuse_stmt, &q);
    return q.hit;
}

typedef struct fetcher { plan *c; rx_ex col, lane; rx_exvec loads; } fetcher;

static void find_stream(void *arg, rx_ex e)
{
    fetcher *f = arg;
    if (e->op == RX_EX_LOAD && e->u.buf->param >= 0 && rx_uses(f->c->t->ctx, e, f->col) &&
        rx_uses(f->c->t->ctx, e, f->lane))
        rx_push(rx_scratch(&f->c->t->ctx->heap), &f->loads, e);
}

static rx_stmt *fetch_stmt(void *arg, rx_stmt *s)
{
    fetcher *f = arg;
    rx_tb *t = f->c->t;
    rx_stmt *at[9];
    uint32_t n = 0;
    if (s->kind != RX_S_FOR || s->u.loop.how != RX_VECTOR || s->u.loop.body->kind != RX_S_STORE)
        return s;
    f->loads.n = 0;
    f->lane = s->u.loop.var;
    rx_visit(t->ctx, s->u.loop.body->u.store.value, find_stream, f);
    rx_map m;
    rx_map_init(&m, rx_scratch(&t->ctx->heap));
    rx_map_put(&m, RX_KEY(f->lane), (void *)rx_int(t->ctx, 0));
    rx_map_put(&m, RX_KEY(f->col), (void *)rx_addi(t->ctx, f->col, 4));
    for (uint32_t i = 0; i < f->loads.n && n < 8; i++) {
        rx_ex e = rx_subst(t->ctx, f->loads.at[i], &m);
        at[n++] = rx_prefetch_s(t, e->u.buf, (rx_ex *)e->a);
    }
    at[n++] = s;
    return rx_seq(t, at, n);
}

/* A single row waits for memory: fetch the same place of the next four columns while these run. */
static rx_stmt *fetch_ahead(plan *c, rx_stmt *s, rx_ex col)
{
    fetcher f = {.c = c, .col = col};
    rx_stmt_map m = {.arg = &f, .stmt = fetch_stmt};
    return rx_stmt_rewrite(c->t, s, &m);
}

static void add_cols(tile *x, uint32_t row, int64_t unroll, int64_t lanes)
{
    x->cols[row][x->ncols[row]++] = (step){unroll, lanes};
}

/* Rows in sixes, pairs (where the columns are known: fewer kinds of code otherwise), one by one. Six rows of `wide`
 * vectors leave registers for the operands; a single row has more vectors at work to wait for memory less. */
static void plan_steps(plan *c, tile *x, bool along, bool cols, int64_t lanes)
{
    static const int64_t rows[3] = {6, 2, 1};
    int64_t n;
    for (uint32_t i = x->row ? 0 : 2; i < 3; i++) {
        if (i == 1 && !rx_is_int(x->col->u.loop.extent, &n))
            continue;
        uint32_t r = x->nrows++;
        x->rows[r] = (step){rows[i], 1};
        if (along) {
            add_cols(x, r, rows[i] == 1 ? 8 : c->wide, lanes);
            add_cols(x, r, 1, lanes);
        } else if (cols) {
            add_cols(x, r, rows[i] == 1 ? 4 : c->wide, 1);
        }
        add_cols(x, r, 1, 1);
    }
}

/* Fills x for the chain; false: no tiles here. *block: columns of one parallel iteration. */
static bool plan_tile(plan *c, const chain *ch, tile *x, int64_t *block)
{
    const rx_stmt *col = ch->loop[ch->n - 1];
    rx_moves m;
    rx_stmt *body = privatize_all(c, ch->body);
    rx_moves_of(c->t, body, col->u.loop.var, &m);
    if (!m.plain || m.spatial || depends(c, ch, ch->n - 1) || !rx_loop_independent(c->t, c->facts, col))
        return false;
    int64_t lanes = lanes_of(c, &m, col->u.loop.extent);
    bool rows = ch->n > 1 && !depends(c, ch, ch->n - 2) && reuses(c, body, ch->loop[ch->n - 2]->u.loop.var) &&
                rx_loop_independent(c->t, c->facts, ch->loop[ch->n - 2]);
    bool along = m.unit && !m.other && !m.store_other && !m.store_uniform && !short_range(col->u.loop.extent, lanes);
    bool cols = !along && reuses(c, body, col->u.loop.var);
    *x = (tile){.c = c, .row = rows ? ch->loop[ch->n - 2] : NULL, .col = col, .body = body, .single = body};
    if (along) {
        *block = block_length(col->u.loop.extent, 8 * lanes, 8 * lanes);
    } else {
        uint32_t vectors = c->info->vector;
        if (!rows && !cols)
            return false;
        x->body = reduce_all(c, body, 1);
        if (c->info->vector == vectors)
            return false;
        x->single = fetch_ahead(c, reduce_all(c, body, 2), col->u.loop.var);
        *block = block_length(col->u.loop.extent, 4, 32);
    }
    plan_steps(c, x, along, cols, lanes);
    return true;
}

/* Blocks for the parallel loop: of columns where there are several, else of rows. b and nb stay NULL when neither is
 * long. */
static void plan_blocks(plan *c, tile *x, int64_t length, rx_ex *b, rx_ex *nb, rx_ex *start, rx_ex *count)
{
    relax_context *ctx = c->t->ctx;
    const rx_stmt *l = x->col;
    bool rows = x->row && short_range(*count, 2 * length);
    if (rows) {
        length = x->rows[0].unroll * 2;
        l = x->row;
    }
    rx_ex extent = rows ? x->row_extent : *count;
    if (short_range(extent, 2 * length))
        return;
    *b = rx_loopvar(c->t, rx_strf(ctx, "%sb", rx_sym_of(l->u.loop.var)->name));
    *nb = rx_divi(ctx, rx_addi(ctx, extent, length - 1), length);
    block_range(c, l, extent, *b, length, rows ? &x->row_start : start, rows ? &x->row_extent : count);
}

/* NULL: not a nest that tiles serve */
static rx_stmt *reduction(plan *c, const chain *ch, bool top)
{
    tile x;
    int64_t length;
    if (!plan_tile(c, ch, &x, &length))
        return NULL;
    uint32_t outer = ch->n - (x.row ? 2 : 1), p = 0;
    rx_ex start = x.col->u.loop.start, count = rx_nonneg_extent(c->t, c->facts, x.col->u.loop.extent), b = NULL,
          nb = NULL;
    if (x.row) {
        x.row_start = x.row->u.loop.start;
        x.row_extent = rx_nonneg_extent(c->t, c->facts, x.row->u.loop.extent);
    }
    if (top && !is_small(c, ch->loop[0])) {
        p = parallel_prefix(c, ch, outer);
        if (p == outer)
            plan_blocks(c, &x, length, &b, &nb, &start, &count);
    }
    rx_stmt *s = in_tiles(&x, start, count);
    if (!s)
        return NULL;
    c->info->tiled++;
    s = wrap_all(c, ch, p, outer, s);
    return p || b ? parallel(c, ch, p, b, nb, s) : s;
}

/* --- any nest --- */

static rx_stmt *other(plan *c, const chain *ch, bool top)
{
    rx_stmt *body = visit(c, ch->body, false);
    uint32_t p = top && !is_small(c, ch->loop[0]) ? parallel_prefix(c, ch, ch->n) : 0;
    body = wrap_all(c, ch, p, ch->n, body);
    return p ? parallel(c, ch, p, NULL, NULL, body) : body;
}

static rx_stmt *nest(plan *c, rx_stmt *s, bool top)
{
    chain ch = chain_of(s);
    rx_moves m;
    if (!ch.n)
        return s;
    rx_moves_of(c->t, ch.body, ch.loop[ch.n - 1]->u.loop.var, &m);
    if (!m.loops)
        return elementwise(c, &ch, top);
    rx_stmt *r = m.spatial ? NULL : reduction(c, &ch, top);
    return r ? r : other(c, &ch, top);
}

static rx_stmt *visit_loop(plan *c, rx_stmt *s, bool top)
{
    if (s->u.loop.how != RX_SERIAL)
        return s;
    if (!s->u.loop.reduce)
        return nest(c, s, top);
    rx_stmt *p = rx_privatize(c->t, s);
    return p->kind == RX_S_FOR ? reduce_loop(c, p, 4) : reduce_all(c, p, 4);
}

static rx_stmt *visit(plan *c, rx_stmt *s, bool top)
{
    rx_tb *t = c->t;
    switch (s->kind) {
    case RX_S_SEQ: {
        rx_stmt **at = RX_NEWN(t->a, rx_stmt *, s->u.seq.n);
        for (uint32_t i = 0; i < s->u.seq.n; i++)
            at[i] = visit(c, s->u.seq.at[i], top);
        return rx_seq(t, at, s->u.seq.n);
    }
    case RX_S_ALLOC:
        return rx_alloc_s(t, s->u.alloc.buf, visit(c, s->u.alloc.body, top && s->u.alloc.buf->scope == RX_MEM_GLOBAL));
    case RX_S_LET: return rx_let(t, s->u.let.var, s->u.let.value, visit(c, s->u.let.body, false));
    case RX_S_IF:
        return rx_if(t, s->u.branch.cond, visit(c, s->u.branch.then, false),
                     s->u.branch.other ? visit(c, s->u.branch.other, false) : NULL);
    case RX_S_FOR: return visit_loop(c, s, top);
    default: return s;
    }
}

rx_prim *rx_schedule(rx_tb *t, const rx_prim *p, const relax_target *target, bool exact, rx_sched_info *info)
{
    rx_frame f;
    rx_sched_info own;
    rx_prim *volatile r = NULL;
    uint32_t features = target ? target->features : 0;
    if (RX_ENTER(&t->ctx->heap, &f)) {
        plan c = {.t = t,
                  .facts = p->facts,
                  .exact = exact,
                  .bits = target ? target->vector_bits : 128,
                  .info = info ? info : &own};
        c.bits = RX_MIN(RX_MAX(c.bits, 128), 512);
        c.fma = !exact && ((features & RX_F_FMA) || (target && target->arch == RX_ARCH_AARCH64));
        c.wide = (features & RX_F_AVX512) || (target && target->arch == RX_ARCH_AARCH64) ? 4 : 2;
        *c.info = (rx_sched_info){0};
        rx_prim *q = rx_arena_dup(t->a, p, sizeof *p);
        q->body = visit(&c, p->body, true);
        if (c.fma)
            q->body = rx_use_fma(t, q->body, &c.info->reassociates);
        r = q;
        rx_leave(&t->ctx->heap, &f);
        return r;
    }
    rx_unwind(&t->ctx->heap);
}

rx_prim *rx_schedule_default(rx_tb *t, const rx_prim *p, const relax_target *target)
{
    return rx_schedule(t, p, target, false, NULL);
}
