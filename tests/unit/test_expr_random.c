/* test_expr_random.c: random expressions, evaluated by a plain tree walk of their own, against canonical form,
 * simplification, bounds, congruences, prover and text form. RELAX_SEED and RELAX_N (number of expressions) change
 * the run. */
#include "testlib.h"

#include "expr/expr.h"

enum { NVARS = 3, POINTS = 24 };

typedef struct ast {
    rx_eop op;                         /* INT: v; SYM: variable v */
    int64_t v;
    struct ast *a[3];
} ast;

typedef struct gen {
    uint64_t seed;
    ast pool[256];
    int used;
} gen;

static uint64_t next(gen *g)
{
    g->seed ^= g->seed << 13;
    g->seed ^= g->seed >> 7;
    g->seed ^= g->seed << 17;
    return g->seed >> 11;
}

static int64_t pick(gen *g, int64_t n) { return (int64_t)(next(g) % (uint64_t)n); }

static ast *node(gen *g, rx_eop op, int64_t v)
{
    ast *t = &g->pool[g->used++];
    *t = (ast){.op = op, .v = v};
    return t;
}

static ast *boolean(gen *g, int depth);

static ast *integer(gen *g, int depth)
{
    static const rx_eop ops[] = {RX_EX_ADD,      RX_EX_ADD,      RX_EX_SUB,      RX_EX_MUL,   RX_EX_FLOORDIV,
                                 RX_EX_FLOORMOD, RX_EX_FLOORDIV, RX_EX_FLOORMOD, RX_EX_MIN,   RX_EX_MAX,
                                 RX_EX_TRUNCDIV, RX_EX_TRUNCMOD, RX_EX_BITAND,   RX_EX_BITOR, RX_EX_BITXOR,
                                 RX_EX_SHL,      RX_EX_SHR};
    if (depth == 0 || g->used > 200 || pick(g, 8) == 0)
        return pick(g, 3) ? node(g, RX_EX_SYM, pick(g, NVARS)) : node(g, RX_EX_INT, pick(g, 13) - 4);
    int64_t k = pick(g, 20);
    if (k == 0) {
        ast *t = node(g, RX_EX_SELECT, 0);
        t->a[0] = boolean(g, depth - 1);
        t->a[1] = integer(g, depth - 1);
        t->a[2] = integer(g, depth - 1);
        return t;
    }
    if (k == 1) {
        ast *t = node(g, RX_EX_CALL, 0);
        t->a[0] = integer(g, depth - 1);
        return t;
    }
    ast *t = node(g, ops[pick(g, sizeof ops / sizeof ops[0])], 0);
    t->a[0] = integer(g, depth - 1);
    bool constant = pick(g, 3) != 0 && t->op != RX_EX_ADD && t->op != RX_EX_MIN && t->op != RX_EX_MAX;
    if (t->op == RX_EX_SHL || t->op == RX_EX_SHR) t->a[1] = node(g, RX_EX_INT, pick(g, 4));
    else t->a[1] = constant ? node(g, RX_EX_INT, pick(g, 12) - 3) : integer(g, depth - 1);
    return t;
}

static ast *boolean(gen *g, int depth)
{
    static const rx_eop cmp[] = {RX_EX_LT, RX_EX_LE, RX_EX_EQ, RX_EX_NE};
    if (depth > 0 && pick(g, 3) == 0) {
        ast *t = node(g, (rx_eop)(RX_EX_AND + pick(g, 3)), 0);
        t->a[0] = boolean(g, depth - 1);
        if (t->op != RX_EX_NOT) t->a[1] = boolean(g, depth - 1);
        return t;
    }
    ast *t = node(g, cmp[pick(g, 4)], 0);
    t->a[0] = integer(g, depth > 0 ? depth - 1 : 0);
    t->a[1] = integer(g, depth > 0 ? depth - 1 : 0);
    return t;
}

/* false: no value at this point */
static bool eval(const ast *t, const int64_t *v, int64_t *r)
{
    int64_t x, y;
    if (t->op == RX_EX_INT) return *r = t->v, true;
    if (t->op == RX_EX_SYM) return *r = v[t->v], true;
    if (!eval(t->a[0], v, &x)) return false;
    if (t->op == RX_EX_SELECT) return eval(t->a[x ? 1 : 2], v, r);
    if (t->op == RX_EX_NOT) return *r = !x, true;
    if (t->op == RX_EX_CALL) return *r = x < 0 ? -x : x, true;
    if (!eval(t->a[1], v, &y)) return false;
    if (x > 1 << 30 || x < -(1 << 30) || y > 1 << 30 || y < -(1 << 30)) return false;
    bool div = t->op == RX_EX_FLOORDIV || t->op == RX_EX_FLOORMOD || t->op == RX_EX_TRUNCDIV || t->op == RX_EX_TRUNCMOD;
    if (div && y == 0) return false;
    int64_t q = div ? x / y : 0, m = div ? x % y : 0, f = div && m != 0 && (m < 0) != (y < 0);
    switch ((int)t->op) {
    case RX_EX_ADD: *r = x + y; break;
    case RX_EX_SUB: *r = x - y; break;
    case RX_EX_MUL: *r = x * y; break;
    case RX_EX_FLOORDIV: *r = q - f; break;
    case RX_EX_FLOORMOD: *r = m + f * y; break;
    case RX_EX_TRUNCDIV: *r = q; break;
    case RX_EX_TRUNCMOD: *r = m; break;
    case RX_EX_MIN: *r = x < y ? x : y; break;
    case RX_EX_MAX: *r = x > y ? x : y; break;
    case RX_EX_BITAND: *r = x & y; break;
    case RX_EX_BITOR: *r = x | y; break;
    case RX_EX_BITXOR: *r = x ^ y; break;
    case RX_EX_SHL: *r = x * ((int64_t)1 << y); break;
    case RX_EX_SHR: *r = x >> y; break;
    case RX_EX_LT: *r = x < y; break;
    case RX_EX_LE: *r = x <= y; break;
    case RX_EX_EQ: *r = x == y; break;
    case RX_EX_NE: *r = x != y; break;
    case RX_EX_AND: *r = x && y; break;
    case RX_EX_OR: *r = x || y; break;
    default: return false;
    }
    return true;
}

static rx_ex build(relax_context *ctx, const ast *t, rx_ex *syms)
{
    if (t->op == RX_EX_INT) return rx_int(ctx, t->v);
    if (t->op == RX_EX_SYM) return syms[t->v];
    rx_ex a = build(ctx, t->a[0], syms), b = t->a[1] ? build(ctx, t->a[1], syms) : NULL;
    if (t->op == RX_EX_SELECT) return rx_select(ctx, a, b, build(ctx, t->a[2], syms));
    if (t->op == RX_EX_NOT) return rx_not(ctx, a);
    if (t->op == RX_EX_CALL) return rx_call1(ctx, RX_IN_ABS, a);
    return rx_binary(ctx, t->op, a, b);
}

typedef struct world {
    relax_context *ctx;
    rx_ex syms[NVARS];
    int64_t lo[NVARS], hi[NVARS], mod[NVARS], rest[NVARS], v[NVARS];
    ast *extra;                        /* one more fact, or NULL */
    rx_facts *facts;
    rx_map env;
} world;

static const char *const names[NVARS] = {"x", "y", "z"};

static rx_ex by_name(void *arg, rx_lexer *l, const char *name)
{
    world *w = arg;
    (void)l;
    for (int i = 0; i < NVARS; i++)
        if (!strcmp(names[i], name)) return w->syms[i];
    return NULL;
}

static void make_facts(world *w, gen *g)
{
    relax_context *ctx = w->ctx;
    w->facts = rx_facts_new(ctx, &ctx->arena, NULL);
    for (int i = 0; i < NVARS; i++) {
        w->syms[i] = rx_sym_new(ctx, names[i], RELAX_I64);
        w->lo[i] = pick(g, 2) ? -20 : pick(g, 8) - 4;
        w->hi[i] = pick(g, 2) ? 20 : w->lo[i] + pick(g, 9);
        w->mod[i] = pick(g, 4) ? 1 : 2 + pick(g, 3);
        w->rest[i] = w->mod[i] > 1 ? pick(g, w->mod[i]) : 0;
        if (w->lo[i] > -20) rx_facts_add(w->facts, rx_le(ctx, rx_int(ctx, w->lo[i]), w->syms[i]));
        if (w->hi[i] < 20) rx_facts_add(w->facts, rx_le(ctx, w->syms[i], rx_int(ctx, w->hi[i])));
        if (w->mod[i] > 1)
            rx_facts_add(w->facts, rx_eq(ctx, rx_modi(ctx, w->syms[i], w->mod[i]), rx_int(ctx, w->rest[i])));
        rx_map_put(&w->env, RX_KEY(w->syms[i]), &w->v[i]);
    }
    w->extra = pick(g, 3) ? NULL : boolean(g, 1);
    if (w->extra) rx_facts_add(w->facts, build(ctx, w->extra, w->syms));
}

/* a point where the facts hold? */
static bool point(world *w, gen *g)
{
    int64_t r;
    for (int i = 0; i < NVARS; i++) {
        int64_t lo = w->lo[i] == -20 ? (pick(g, 4) ? -12 : -300) : w->lo[i],
                hi = w->hi[i] == 20 ? (pick(g, 4) ? 12 : 300) : w->hi[i];
        if (hi < lo) lo = hi - 5;
        w->v[i] = lo + pick(g, hi - lo + 1);
        if (w->mod[i] > 1 && ((w->v[i] % w->mod[i]) + w->mod[i]) % w->mod[i] != w->rest[i]) return false;
    }
    return !w->extra || (eval(w->extra, w->v, &r) && r);
}

static void explain(world *w, const char *what, rx_ex e, rx_ex s)
{
    rx_buf b;
    rx_buf_init(&b, &w->ctx->arena);
    rx_print_expr(&b, e);
    rx_puts(&b, "  ->  ");
    rx_print_expr(&b, s);
    rx_puts(&b, "  under");
    for (uint32_t i = 0; w->extra && i < 1; i++) rx_putc(&b, ' '), rx_print_expr(&b, build(w->ctx, w->extra, w->syms));
    for (int i = 0; i < NVARS; i++)
        rx_putf(&b, " %s=%lld in [%lld,%lld]%%%lld", names[i], (long long)w->v[i], (long long)w->lo[i],
                (long long)w->hi[i], (long long)w->mod[i]);
    print_error("%s: %s\n", what, b.at);
}

static bool agrees(world *w, rx_ex e, int64_t want)
{
    int64_t got;
    return rx_eval(w->ctx, e, &w->env, &got) == RX_EVAL_OK && got == want;
}

static int one(world *w, gen *g, bool is_bool)
{
    relax_context *ctx = w->ctx;
    ast *t = is_bool ? boolean(g, 2) : integer(g, 3);
    rx_ex e = build(ctx, t, w->syms), s = rx_simplify(ctx, w->facts, e);
    int64_t lo = INT64_MIN, hi = INT64_MAX, c = 1, b = 0, r;
    rx_truth truth = RX_UNKNOWN;
    int bad = 0;
    if (is_bool) {
        truth = rx_prove(ctx, w->facts, e, NULL);
    } else {
        rx_bounds(ctx, w->facts, e, &lo, &hi);
        rx_modular(ctx, w->facts, e, &c, &b);
    }
    rx_buf text;
    rx_buf_init(&text, &ctx->arena);
    rx_print_expr(&text, e);
    rx_scope_fns fns = {by_name, NULL, w};
    if (rx_parse_expr_text(ctx, text.at, text.n, &fns) != e)
        explain(w, "text", e, rx_parse_expr_text(ctx, text.at, text.n, &fns)), bad++;
    for (int i = 0; i < POINTS * 3 && !bad; i++) {
        if (!point(w, g) || !eval(t, w->v, &r)) continue;
        if (!agrees(w, e, r)) explain(w, "canonical form", e, rx_int(ctx, r)), bad++;
        if (!agrees(w, s, r)) explain(w, "simplified", e, s), bad++;
        if (r < lo || r > hi) explain(w, "bounds", e, rx_int(ctx, r)), bad++;
        if (c ? (r - b) % c != 0 : r != b) explain(w, "congruence", e, rx_int(ctx, c)), bad++;
        if (truth != RX_UNKNOWN && (truth == RX_TRUE) != (r != 0))
            explain(w, "proof", e, rx_bool(ctx, truth == RX_TRUE)), bad++;
    }
    return bad;
}

static void random_expressions(void **state)
{
    (void)state;
    const char *n = getenv("RELAX_N"), *seed = getenv("RELAX_SEED");
    volatile int64_t bad = 0;
    int64_t total = n ? atoll(n) : 100000;
    static gen g;
    g.seed = 88172645463325252ull + (seed ? strtoull(seed, NULL, 10) * 0x9E3779B97F4A7C15ull : 0);
    for (volatile int64_t i = 0; i < total && bad < 5; i += 20) {
        tl_heap th;
        relax_context *ctx = tl_context(&th);
        volatile int64_t found = 0;
        TL_TRY(ctx)
        world w = {.ctx = ctx};
        rx_map_init(&w.env, &ctx->arena);
        g.used = 0;
        make_facts(&w, &g);
        for (int k = 0; k < 20; k++) {
            int keep = g.used;
            found = found + one(&w, &g, k % 2);
            g.used = keep;
        }
        TL_END(ctx)
        tl_done(&th, ctx);
        bad = bad + found;
    }
    assert_int_equal(bad, 0);
}

/* ---- near the ends of int64 ---- */
typedef __int128 wide;

static int64_t big(gen *g)
{
    static const int64_t v[] = {INT64_MIN,
                                INT64_MIN + 1,
                                -((int64_t)1 << 62),
                                INT64_MIN / 3,
                                -((int64_t)1 << 31) - 1,
                                -7,
                                -1,
                                0,
                                1,
                                2,
                                3,
                                8,
                                ((int64_t)1 << 31),
                                ((int64_t)1 << 32) + 1,
                                (int64_t)1 << 62,
                                INT64_MAX / 2,
                                INT64_MAX - 1,
                                INT64_MAX};
    return v[pick(g, sizeof v / sizeof v[0])];
}

static ast *large(gen *g, int depth)
{
    static const rx_eop ops[] = {RX_EX_ADD, RX_EX_SUB, RX_EX_MUL, RX_EX_FLOORDIV, RX_EX_FLOORMOD,
                                 RX_EX_MIN, RX_EX_MAX, RX_EX_ADD, RX_EX_TRUNCDIV};
    if (depth == 0) return pick(g, 2) ? node(g, RX_EX_SYM, pick(g, NVARS)) : node(g, RX_EX_INT, big(g));
    ast *t = node(g, ops[pick(g, sizeof ops / sizeof ops[0])], 0);
    t->a[0] = large(g, depth - 1);
    t->a[1] = large(g, depth - 1);
    return t;
}

static bool eval_wide(const ast *t, const int64_t *v, wide *r)
{
    wide x, y, lim = (wide)1 << 100;
    if (t->op == RX_EX_INT) return *r = t->v, true;
    if (t->op == RX_EX_SYM) return *r = v[t->v], true;
    if (!eval_wide(t->a[0], v, &x) || !eval_wide(t->a[1], v, &y)) return false;
    if (t->op == RX_EX_MUL && (x > (wide)1 << 62 || x < -((wide)1 << 62) || y > (wide)1 << 62 || y < -((wide)1 << 62)))
        return false;
    bool div = t->op == RX_EX_FLOORDIV || t->op == RX_EX_FLOORMOD || t->op == RX_EX_TRUNCDIV;
    if (div && y == 0) return false;
    wide q = div ? x / y : 0, m = div ? x % y : 0, f = div && m != 0 && (m < 0) != (y < 0);
    switch ((int)t->op) {
    case RX_EX_ADD: *r = x + y; break;
    case RX_EX_SUB: *r = x - y; break;
    case RX_EX_MUL: *r = x * y; break;
    case RX_EX_FLOORDIV: *r = q - f; break;
    case RX_EX_FLOORMOD: *r = m + f * y; break;
    case RX_EX_TRUNCDIV: *r = q; break;
    case RX_EX_MIN: *r = x < y ? x : y; break;
    default: *r = x > y ? x : y; break;
    }
    return *r < lim && *r > -lim;
}

/* canonical form and simplification may not overflow where the mathematics does not: a value is right or not given */
static int one_large(world *w, gen *g)
{
    relax_context *ctx = w->ctx;
    ast *t = large(g, 3), *u = large(g, 2);
    rx_ex e = build(ctx, t, w->syms), d = build(ctx, u, w->syms), s = rx_simplify(ctx, NULL, e), c = rx_le(ctx, e, d);
    rx_truth truth = rx_prove(ctx, NULL, c, NULL);
    int64_t lo, hi, m, b, got;
    int bad = 0;
    rx_bounds(ctx, NULL, e, &lo, &hi);
    rx_modular(ctx, NULL, e, &m, &b);
    rx_buf text;
    rx_buf_init(&text, &ctx->arena);
    rx_print_expr(&text, e);
    rx_scope_fns fns = {by_name, NULL, w};
    rx_ex back = rx_parse_expr_text(ctx, text.at, text.n, &fns);
    if (back != e) explain(w, "text", e, back), bad++;
    for (int i = 0; i < POINTS && !bad; i++) {
        wide r, r2;
        for (int k = 0; k < NVARS; k++) w->v[k] = big(g);
        if (!eval_wide(t, w->v, &r)) continue;
        if (rx_eval(ctx, e, &w->env, &got) == RX_EVAL_OK && got != r)
            explain(w, "canonical form", e, rx_int(ctx, got)), bad++;
        if (rx_eval(ctx, s, &w->env, &got) == RX_EVAL_OK && got != r) explain(w, "simplified", e, s), bad++;
        if ((lo != INT64_MIN && r < lo) || (hi != INT64_MAX && r > hi))
            explain(w, "bounds", e, rx_int(ctx, lo != INT64_MIN && r < lo ? lo : hi)), bad++;
        if (m ? (r - b) % m != 0 : r != b) explain(w, "congruence", e, rx_int(ctx, m)), bad++;
        if (truth != RX_UNKNOWN && eval_wide(u, w->v, &r2) && (truth == RX_TRUE) != (r <= r2))
            explain(w, "proof", c, d), bad++;
        if (rx_eval(ctx, c, &w->env, &got) == RX_EVAL_OK && eval_wide(u, w->v, &r2) && got != (r <= r2))
            explain(w, "comparison", c, d), bad++;
    }
    return bad;
}

static void large_numbers(void **state)
{
    (void)state;
    const char *n = getenv("RELAX_N"), *seed = getenv("RELAX_SEED");
    volatile int64_t bad = 0;
    int64_t total = (n ? atoll(n) : 100000) / 50;
    static gen g;
    g.seed = 1234567 + (seed ? strtoull(seed, NULL, 10) * 0x9E3779B97F4A7C15ull : 0);
    for (volatile int64_t i = 0; i < total && bad < 5; i += 20) {
        tl_heap th;
        relax_context *ctx = tl_context(&th);
        volatile int64_t found = 0;
        TL_TRY(ctx)
        world w = {.ctx = ctx};
        rx_map_init(&w.env, &ctx->arena);
        for (int k = 0; k < NVARS; k++) {
            w.syms[k] = rx_sym_new(ctx, names[k], RELAX_I64);
            rx_map_put(&w.env, RX_KEY(w.syms[k]), &w.v[k]);
        }
        for (int k = 0; k < 20; k++) {
            g.used = 0;
            found = found + one_large(&w, &g);
        }
        TL_END(ctx)
        tl_done(&th, ctx);
        bad = bad + found;
    }
    assert_int_equal(bad, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(random_expressions), cmocka_unit_test(large_numbers)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
