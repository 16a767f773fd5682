/* test_expr_prove.c: prover, bounds, congruences, simplification, solving and upper bounds. Rows: text; facts;
 * answer. */
#include "testlib.h"

#include <time.h>

#include "expr/expr.h"

typedef struct world { relax_context *ctx; rx_map m; rx_facts *facts; } world;

/* n m k h are dims (lo = 0), d is a multiple of 8, the rest is unbounded; p q r are bool */
static rx_ex by_name(void *arg, rx_lexer *l, const char *name)
{
    world *w = arg;
    (void)l;
    rx_ex s = rx_map_get(&w->m, RX_KEY(name));
    if (s) return s;
    s = rx_sym_new(w->ctx, name, strchr("pqr", *name) ? RELAX_BOOL : RELAX_I64);
    if (strchr("nmkhd", *name)) rx_sym_of(s)->lo = 0;
    if (*name == 'd') rx_sym_of(s)->divisor = 8;
    rx_map_put(&w->m, RX_KEY(name), (void *)(uintptr_t)s);
    return s;
}

static rx_ex parse(world *w, const char *s, size_t n)
{
    rx_scope_fns fns = {by_name, NULL, w};
    return rx_parse_expr_text(w->ctx, s, n, &fns);
}

static void begin(world *w, const char *facts)
{
    rx_map_init(&w->m, &w->ctx->arena);
    w->facts = rx_facts_new(w->ctx, &w->ctx->arena, NULL);
    while (*facts) {
        size_t n = strcspn(facts, ";");
        rx_facts_add(w->facts, parse(w, facts, n));
        facts += n + (facts[n] == ';');
    }
}

static const char *text(relax_context *ctx, rx_ex e)
{
    rx_buf b;
    rx_buf_init(&b, &ctx->arena);
    rx_print_expr(&b, e);
    return b.at;
}

static const struct { const char *claim, *facts; rx_truth truth;
} claims[] = {
    /* shapes */
    {"max(0, n) == n", "", RX_TRUE},
    {"n*m == m*n", "", RX_TRUE},
    {"(n*4)//4 == n", "", RX_TRUE},
    {"n == n + 1", "", RX_FALSE},
    {"n == m", "", RX_UNKNOWN},
    {"(n + 1)//2*2 == n", "", RX_UNKNOWN},
    {"(n + 1)//2*2 >= n", "", RX_TRUE},
    {"(n + 1)//2*2 <= n + 1", "", RX_TRUE},
    {"(n + 31)//32*32 - n < 32", "", RX_TRUE},
    {"2*n == 2*m + 1", "", RX_FALSE},
    {"d%8 == 0", "", RX_TRUE},
    {"d//8*8 == d", "", RX_TRUE},
    {"d%16 == 0", "", RX_UNKNOWN},
    {"n <= 2048", "n <= 1024", RX_TRUE},
    {"n*m <= 4096", "n <= 64;m <= 64", RX_TRUE},
    {"n*m <= 4095", "n <= 64;m <= 64", RX_UNKNOWN},
    {"n + m == k", "k == n + m", RX_TRUE},
    {"n == 3", "n == 4", RX_FALSE},
    {"n >= 1", "n*m >= 1", RX_TRUE},
    {"min(n, m) <= n", "", RX_TRUE},
    {"(n - 1)//m + 1 == (n + m - 1)//m", "1 <= m", RX_TRUE},
    {"(n + m - 1)//m*m >= n", "1 <= m", RX_TRUE},
    {"n//m*m <= n", "1 <= m", RX_TRUE},
    {"i*m + j < n*m", "0 <= i;i < n;0 <= j;j < m", RX_TRUE},
    {"i*m + j < n*m", "0 <= i;i < n;0 <= j;j <= m", RX_UNKNOWN},
    {"(i*m + j)//m == i", "0 <= j;j < m", RX_TRUE},
    {"(i*m + j)%m == j", "0 <= j;j < m", RX_TRUE},
    {"(i*8 + j)//8 == i", "0 <= j;j < 8", RX_TRUE},
    {"(i*h + j)*k + l < n*h*k", "0 <= i;i < n;0 <= j;j < h;0 <= l;l < k", RX_TRUE},
    {"n//2 + (n + 1)//2 == n", "", RX_TRUE},
    {"n - n//2 == (n + 1)//2", "", RX_TRUE},
    {"min(n, m) + max(n, m) == m + n", "", RX_TRUE},
    {"n%4 + n//4*4 == n", "", RX_TRUE},
    {"x%3 == y%3", "x == y + 6", RX_TRUE},
    {"x == y", "x <= y;y <= x", RX_TRUE},
    {"a < c", "a < b;b < c", RX_TRUE},
    {"a + 2 <= c", "a < b;b < c", RX_TRUE},
    {"x%6 == 3", "x%2 == 1;x%3 == 0", RX_TRUE},
    {"x%4 == 1", "x%2 == 0", RX_FALSE},
    {"x*x >= 0", "", RX_TRUE},
    {"x*x == -1", "", RX_FALSE},
    {"a*b >= 0", "a <= 0;b <= 0", RX_TRUE},
    {"select(x < 0, -x, x) >= 0", "", RX_TRUE},
    {"abs(x) == max(x, -x)", "", RX_TRUE},
    {"truncdiv(x, 4) <= x", "0 <= x", RX_TRUE},
    {"p or not p", "", RX_TRUE},
    {"q", "p;not p or q", RX_TRUE},
    {"p == q", "", RX_UNKNOWN},
    {"x <= y or y <= x", "", RX_TRUE},
    /* nothing is concluded from what has no value */
    {"select(y == 0, 7, x//y) == 7", "x == 0;y == 0", RX_TRUE},
    {"select(y != 0, x//y, 3) == 3", "", RX_UNKNOWN},
    {"y != 0", "select(y == 0, 1, x//y) == 1;x == 3", RX_UNKNOWN},
    /* the ends of int64 and the limits of i32 */
    {"x < x + 1", "", RX_TRUE},
    {"x + 9223372036854775807 > x", "", RX_TRUE},
    {"n*2147483648 < 9223372036854775807", "n <= 2147483647", RX_TRUE},
    {"n + 1 <= 2147483647", "n <= 2147483647", RX_UNKNOWN},
    {"n + 1 <= 2147483648", "n <= 2147483647", RX_TRUE},
    {"x*4294967296//4294967296 == x", "", RX_TRUE},
    {"x <= 9223372036854775807", "", RX_UNKNOWN},
};

static void claim_rows(void **state)
{
    (void)state;
    volatile int bad = 0;
    for (volatile size_t i = 0; i < RX_COUNT(claims); i++) {
        tl_heap th;
        world w = {.ctx = tl_context(&th)};
        TL_TRY(w.ctx)
        begin(&w, claims[i].facts);
        rx_buf why;
        rx_buf_init(&why, &w.ctx->arena);
        rx_truth t = rx_prove(w.ctx, w.facts, parse(&w, claims[i].claim, RELAX_STRLEN), &why);
        if (t != claims[i].truth) print_error("%s if %s: %d (%s)\n", claims[i].claim, claims[i].facts, t, why.at);
        bad = bad + (t != claims[i].truth || why.n == 0);
        TL_END(w.ctx)
        tl_done(&th, w.ctx);
    }
    assert_int_equal(bad, 0);
}

static const struct { const char *e, *facts, *want;
} simple[] = {
    {"max(n, 0)", "", "n"},
    {"(i*8 + j)//8", "0 <= j;j < 8", "i"},
    {"(i*8 + j)%8", "0 <= j;j < 8", "j"},
    {"(i*64 + j*8 + l)%64//8", "0 <= j;j < 8;0 <= l;l < 8", "j"},
    {"(i*m + j)//m", "0 <= j;j < m", "i"},
    {"(i*m + j)%m", "0 <= j;j < m", "j"},
    {"select(n < 5, min(n, 10), n)", "", "n"},
    {"min(n, 512)", "n <= 100", "n"},
    {"x//4*8 + x%4*2 + y", "", "x*2 + y"},
    {"truncdiv(n, 4)", "", "n//4"},
    {"select(x < y, x, y)", "", "min(x, y)"},
    {"min(max(n, 4), 2)", "", "2"},
    {"(x//4)%8*4 + x%4", "", "x%32"},
    {"x//2 + x%2", "", "(x + 1)//2"},
    {"min(n*4, m*4)", "", "min(m, n)*4"},
    {"abs(n)", "", "n"},
    {"d%8", "", "0"},
    {"x <= 3 and x <= 5", "", "x <= 3"},
    {"x < y and n >= 0", "", "x < y"},
    {"n < 3", "5 <= n", "false"},
    {"x//4*4 < x", "", "1 <= x%4"},
    {"(x%16)//4", "", "x//4%4"},
    {"max(min(x, 7), 9)", "", "9"},
    {"(n + m*64)//64", "n <= 63", "m"},
    {"select(p, x, select(p, y, z))", "", "select(p, x, z)"},
    {"F", "", "F"},
};

static void simplify_rows(void **state)
{
    (void)state;
    volatile int bad = 0;
    for (volatile size_t i = 0; i < RX_COUNT(simple); i++) {
        tl_heap th;
        world w = {.ctx = tl_context(&th)};
        TL_TRY(w.ctx)
        begin(&w, simple[i].facts);
        const char *s = text(w.ctx, rx_simplify(w.ctx, w.facts, parse(&w, simple[i].e, RELAX_STRLEN)));
        if (strcmp(s, simple[i].want))
            print_error("%s if %s: %s, want %s\n", simple[i].e, simple[i].facts, s, simple[i].want), bad = bad + 1;
        TL_END(w.ctx)
        tl_done(&th, w.ctx);
    }
    assert_int_equal(bad, 0);
}

#define NO INT64_MIN
#define YES INT64_MAX
static const struct { const char *e, *facts; int64_t lo, hi, coeff, base;
} ranges[] = {
    {"n", "", 0, YES, 1, 0},
    {"n*4 + 3", "n <= 10", 3, 43, 4, 3},
    {"d", "d <= 100", 0, 96, 8, 0},
    {"x%8", "", 0, 7, 1, 0},
    {"x//8", "0 <= x;x <= 100", 0, 12, 1, 0},
    {"x - y", "x <= y", NO, 0, 1, 0},
    {"n*m", "n <= 5;m <= 7", 0, 35, 1, 0},
    {"min(n, 9)", "", 0, 9, 1, 0},
    {"x", "x%6 == 4;3 <= x;x <= 21", 4, 16, 6, 4},
    {"n - m", "m <= n;n <= 10", 0, 10, 1, 0},
    {"x*2 + y*2", "x + y <= 10;3 <= x;4 <= y", 14, 20, 2, 0},
    {"i*m + j", "0 <= i;i < n;0 <= j;j < m;n*m <= 100", 0, 99, 1, 0},
};

static void range_rows(void **state)
{
    (void)state;
    volatile int bad = 0;
    for (volatile size_t i = 0; i < RX_COUNT(ranges); i++) {
        tl_heap th;
        world w = {.ctx = tl_context(&th)};
        TL_TRY(w.ctx)
        begin(&w, ranges[i].facts);
        int64_t lo, hi, c, b;
        rx_ex e = parse(&w, ranges[i].e, RELAX_STRLEN);
        rx_bounds(w.ctx, w.facts, e, &lo, &hi);
        rx_modular(w.ctx, w.facts, e, &c, &b);
        bool ok = lo == ranges[i].lo && hi == ranges[i].hi && c == ranges[i].coeff && b == ranges[i].base;
        if (!ok)
            print_error("%s: [%lld, %lld], %lld mod %lld\n", ranges[i].e, (long long)lo, (long long)hi, (long long)b,
                        (long long)c);
        bad = bad + !ok;
        TL_END(w.ctx)
        tl_done(&th, w.ctx);
    }
    assert_int_equal(bad, 0);
}

static const struct { const char *e, *value, *want, *cond;
} equations[] = {
    {"2*n", "k", "k//2", "k%2 == 0"}, {"n + 1", "k", "k - 1", "true"},
    {"n", "7", "7", "true"},          {"m*n", "k", "k//m", "k%m == 0 and m != 0"},
    {"3 - n", "k", "3 - k", "true"},  {"4*n + m", "10", "(10 - m)//4", "(2 - m)%4 == 0"},
    {"n*n", "k", NULL, NULL},         {"n//2", "k", NULL, NULL},
    {"m", "k", NULL, NULL},
};

static void equation_rows(void **state)
{
    (void)state;
    for (volatile size_t i = 0; i < RX_COUNT(equations); i++) {
        tl_heap th;
        world w = {.ctx = tl_context(&th)};
        TL_TRY(w.ctx)
        begin(&w, "");
        rx_ex s = NULL, c = NULL;
        bool ok = rx_solve(w.ctx, parse(&w, equations[i].e, RELAX_STRLEN), parse(&w, equations[i].value, RELAX_STRLEN),
                           parse(&w, "n", 1), &s, &c);
        assert_int_equal(ok, equations[i].want != NULL);
        if (ok) {
            assert_ptr_equal(s, parse(&w, equations[i].want, RELAX_STRLEN));
            assert_ptr_equal(c, parse(&w, equations[i].cond, RELAX_STRLEN));
        }
        TL_END(w.ctx)
        tl_done(&th, w.ctx);
    }
}

static bool only_m(void *arg, rx_ex sym)
{
    (void)arg;
    return !strcmp(rx_sym_of(sym)->name, "m");
}

static const struct { const char *e, *facts, *want;
} uppers[] = {
    {"n*m", "n <= 2048", "m*2048"},
    {"n + m", "n <= 2*m", "m*3"},
    {"m - n", "n >= 3", "m - 3"},
    {"n*k", "n*k <= 4096", "4096"},
    {"max(n, m)", "n <= 9", "max(m, 9)"},
    {"min(n, m)", "", "m"},
    {"(n + 31)//32*32", "n <= 100", "128"},
    {"n%m", "1 <= m", "m - 1"},
    {"n", "", NULL},
    {"n*k", "n <= 8", NULL},
    {"n", "n <= k;k <= m", "m"},
};

static void upper_rows(void **state)
{
    (void)state;
    for (volatile size_t i = 0; i < RX_COUNT(uppers); i++) {
        tl_heap th;
        world w = {.ctx = tl_context(&th)};
        TL_TRY(w.ctx)
        begin(&w, uppers[i].facts);
        rx_ex u = rx_upper(w.ctx, w.facts, parse(&w, uppers[i].e, RELAX_STRLEN), only_m, NULL);
        assert_int_equal(u != NULL, uppers[i].want != NULL);
        if (u) assert_string_equal(text(w.ctx, u), uppers[i].want);
        TL_END(w.ctx)
        tl_done(&th, w.ctx);
    }
}

static void facts_nest(void **state)
{
    (void)state;
    tl_heap th;
    world w = {.ctx = tl_context(&th)};
    TL_TRY(w.ctx)
    begin(&w, "n <= 10");
    rx_facts *in = rx_facts_new(w.ctx, &w.ctx->arena, w.facts);
    rx_facts_add(in, parse(&w, "10 <= n", RELAX_STRLEN));
    rx_ex c = parse(&w, "n == 10", RELAX_STRLEN);
    assert_int_equal(rx_prove(w.ctx, in, c, NULL), RX_TRUE);
    assert_int_equal(rx_prove(w.ctx, w.facts, c, NULL), RX_UNKNOWN);
    assert_false(rx_facts_contradict(in));
    rx_facts_add(in, parse(&w, "n*2 == 7 + 2*k", RELAX_STRLEN));
    assert_true(rx_facts_contradict(in));
    assert_false(rx_facts_contradict(w.facts));
    assert_false(rx_facts_contradict(NULL));
    assert_int_equal(rx_prove_eq(w.ctx, NULL, parse(&w, "n", 1), parse(&w, "n", 1)), RX_TRUE);
    assert_int_equal(rx_prove_le(w.ctx, NULL, parse(&w, "n", 1), parse(&w, "n - 1", RELAX_STRLEN)), RX_FALSE);
    TL_END(w.ctx)
    tl_done(&th, w.ctx);
}

/* hard questions end: the budget bounds the time */
static void time_is_bounded(void **state)
{
    (void)state;
    static const char *const hard[] = {
        "a*a*a + b*b*b == c*c*c",
        "(a*b + c)//(a + 7)*(b%13) <= a*b*c//(b + 5) + 12345",
        "min(a//3, b//5)*max(c//7, a//11) == min(b//2, c//3)*max(a//13, b//17)",
        "truncdiv(a*7 + b, 13)*truncmod(b*5 + c, 11) == truncdiv(c, 3)*truncmod(a, 17) + 1000003",
        "x//2 + y//3 + z//5 + a//7 + b//11 + c//13 == 123457",
        "select(p, a//3, b//7) + select(q, b//5, c//3) + select(r, c//11, a//2) <= 100000007",
    };
    for (volatile size_t i = 0; i < RX_COUNT(hard); i++) {
        tl_heap th;
        world w = {.ctx = tl_context(&th)};
        TL_TRY(w.ctx)
        begin(&w, "a >= 1000003;b >= 1000003;c >= 1000003");
        rx_ex e = parse(&w, hard[i], RELAX_STRLEN);
        clock_t t0 = clock();
        rx_prove(w.ctx, w.facts, e, NULL);
        rx_simplify(w.ctx, w.facts, e);
        double ms = (double)(clock() - t0) * 1000 / CLOCKS_PER_SEC;
        if (ms > 1000) print_error("%s took %.0f ms\n", hard[i], ms);
        assert_true(ms < 1000);
        TL_END(w.ctx)
        tl_done(&th, w.ctx);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(claim_rows),      cmocka_unit_test(simplify_rows), cmocka_unit_test(range_rows),
        cmocka_unit_test(equation_rows),   cmocka_unit_test(upper_rows),    cmocka_unit_test(facts_nest),
        cmocka_unit_test(time_is_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
