/* test_expr.c: canonical forms, text, data constants, walks, long sums. Rows of text in, text out. */
#include "testlib.h"

#include <time.h>

#include "expr/expr.h"

typedef struct names { relax_context *ctx; rx_map m; } names;

/* F… is f32, H f16, D f64, I i32, U u64, B i8, p q r are bool, all else i64; every name is made at first use */
static rx_ex by_name(void *arg, rx_lexer *l, const char *name)
{
    names *w = arg;
    (void)l;
    rx_ex s = rx_map_get(&w->m, RX_KEY(name));
    if (s) return s;
    if (!strcmp(name, "unknown") || !strcmp(name, "nan") || !strcmp(name, "inf")) return NULL;
    relax_dtype t = *name == 'F'                       ? RELAX_F32
                    : *name == 'H'                     ? RELAX_F16
                    : *name == 'D'                     ? RELAX_F64
                    : *name == 'I'                     ? RELAX_I32
                    : *name == 'U'                     ? RELAX_U64
                    : *name == 'B'                     ? RELAX_I8
                    : strchr("pqr", *name) && !name[1] ? RELAX_BOOL
                                                       : RELAX_I64;
    s = rx_sym_new(w->ctx, name, t);
    rx_map_put(&w->m, RX_KEY(name), (void *)(uintptr_t)s);
    return s;
}

static rx_ex parse(names *w, const char *s)
{
    rx_scope_fns fns = {by_name, NULL, w};
    return rx_parse_expr_text(w->ctx, s, RELAX_STRLEN, &fns);
}

static const char *text(relax_context *ctx, rx_ex e)
{
    rx_buf b;
    rx_buf_init(&b, &ctx->arena);
    rx_print_expr(&b, e);
    return b.at;
}

static const char *const rows[][2] = {
    {"n*4 + m", "m + n*4"},
    {"m + 4*n", "m + n*4"},
    {"n + n + n", "n*3"},
    {"n - n", "0"},
    {"n*0", "0"},
    {"5 - n", "5 - n"},
    {"-n", "-n"},
    {"-n*4", "-n*4"},
    {"n - m - 3", "n - m - 3"},
    {"(n + 1)*(m + 2)", "m + n*2 + m*n + 2"},
    {"n*m - m*n", "0"},
    {"n*4//4", "n"},
    {"(i*8 + j)//8", "i + j//8"},
    {"(i*8 + j)%8", "j%8"},
    {"(n + 31)//32*32", "(n + 31)//32*32"},
    {"(n - 1)//32", "(n + 31)//32 - 1"},
    {"n*m//m", "n"},
    {"(y + x*z)%z", "y%z"},
    {"(n*a)//(n*b)", "a//b"},
    {"(n + 1)*(m + 2)//(n + 1)", "m + 2"},
    {"x//4//2", "x//8"},
    {"(x%8)%4", "x%4"},
    {"(x%4)%8", "x%4"},
    {"x%4//4", "0"},
    {"(4*x + 2)%6", "(1 - x)%3*2"},
    {"n//(-2)", "(-n)//2"},
    {"-(n//2)", "-(n//2)"},
    {"(x - x%y)%y", "0"},
    {"n//1", "n"},
    {"n%1", "0"},
    {"7//-2", "-4"},
    {"7%-2", "-1"},
    {"-7//2", "-4"},
    {"truncdiv(-7, 2)", "-3"},
    {"truncmod(-7, 2)", "-1"},
    {"truncdiv(x*4, -2)", "-x*2"},
    {"x << 3", "x*8"},
    {"x >> 3", "x//8"},
    {"x & 7", "x%8"},
    {"x | 0", "x"},
    {"x ^ x", "0"},
    {"max(0, n)", "max(n, 0)"},
    {"min(max(x, y), x)", "x"},
    {"min(x + 1, x + 3)", "x + 1"},
    {"min(min(b, a), c)", "min(min(a, b), c)"},
    {"max(min(x, 5), min(x, 5))", "min(x, 5)"},
    {"i < n", "i < n"},
    {"i <= n - 1", "i < n"},
    {"2*i < 2*n", "i < n"},
    {"x*2 >= 50", "25 <= x"},
    {"x*(-2) <= -1", "1 <= x"},
    {"2*n == 2*m + 1", "false"},
    {"n == n + 1", "false"},
    {"m*3 == n*3", "m == n"},
    {"n > m", "m < n"},
    {"not (x < y and y < z)", "y <= x or z <= y"},
    {"p and not p", "false"},
    {"p or not p", "true"},
    {"p and (q or p)", "p"},
    {"p == true", "p"},
    {"p != true", "not p"},
    {"select(true, x, y)", "x"},
    {"select(p, x, x)", "x"},
    {"select(p, true, q)", "p or q"},
    {"i64(p)", "select(p, 1, 0)"},
    {"bool(x)", "x != 0"},
    {"x + 9223372036854775807 + 1", "x + 9223372036854775807 + 1"},
    {"x - 9223372036854775808", "x - 9223372036854775808"},
    {"x*9223372036854775807*2", "x*9223372036854775807*2"},
    {"abs(-3)", "3"},
    {"pow(2, 10)", "1024"},
    {"pow(3, -1)", "0"},
    {"0x1F + x", "x + 31"},
    {"a*b*c*(e//2)", "a*b*c*(e//2)"},
    {"~x", "-x - 1"},
    {"1 + 2*3", "7"},
    /* data: only constants fold */
    {"F*2 + 1", "F * 2.0 + 1.0"},
    {"F + 0", "F + 0.0"},
    {"F - F", "F - F"},
    {"F*(F + 1)", "F * (F + 1.0)"},
    {"(F + 1) + F", "F + 1.0 + F"},
    {"F + (1 + F)", "F + (1.0 + F)"},
    {"I + 1 + 2", "I + 1 + 2"},
    {"I//0", "I // 0"},
    {"i32(2147483647) + i32(1)", "i32(-2147483648)"},
    {"i8(100) + i8(100)", "i8(-56)"},
    {"u8(3) - u8(5)", "u8(254)"},
    {"u64(18446744073709551615)", "u64(18446744073709551615)"},
    {"i8(7) // i8(-2)", "i8(-4)"},
    {"u8(200) >> u8(9)", "u8(0)"},
    {"i8(-1) >> i8(9)", "i8(-1)"},
    {"f16(F)", "f16(F)"},
    {"f16(0.1)", "f16(0.099975586)"},
    {"f64(0.1)", "f64(0.1)"},
    {"D + 0.1", "D + 0.1"},
    {"H + 65504.0", "H + 65504.0"},
    {"f32(0.1) + f32(0.2)", "0.3"},
    {"1.5 + 2.25", "3.75"},
    {"i32(3.99)", "i32(3)"},
    {"i32(-3.99)", "i32(-3)"},
    {"u8(-1.5)", "u8(0)"},
    {"i8(nan)", "i8(0)"},
    {"min(F, nan)", "min(F, nan)"},
    {"1.0/0.0", "inf"},
    {"-1.0/0.0", "-inf"},
    {"select(x < y, F, 2)", "select(x < y, F, 2.0)"},
    {"max(F, 0)", "max(F, 0.0)"},
    {"isnan(F)", "isnan(F)"},
    {"fma(F, 2, 1)", "fma(F, 2.0, 1.0)"},
    {"bitcast(i32, F)", "bitcast(i32, F)"},
    {"F < 1 and F > 0", "F < 1.0 and 0.0 < F"},
    {"-F", "-F"},
    {"-(F*2)", "-(F * 2.0)"},
    {"-(-1.5)*F", "1.5 * F"},
    {"F/F/F", "F / F / F"},
    {"F/(F/F)", "F / (F / F)"},
    {"(I & 3) + 1", "(I & 3) + 1"},
    {"I & 3 + 1", "I & 4"},
    {"exp(-F)", "exp(-F)"},
    {"U + 18446744073709551615", "U + 18446744073709551615"},
    {"1 + 2 + F", "3.0 + F"},
};

static void text_rows(void **state)
{
    (void)state;
    volatile int bad = 0;
    for (volatile size_t i = 0; i < RX_COUNT(rows); i++) {
        tl_heap th;
        names w = {.ctx = tl_context(&th)};
        TL_TRY(w.ctx)
        rx_map_init(&w.m, &w.ctx->arena);
        rx_ex e = parse(&w, rows[i][0]);
        const char *s = text(w.ctx, e);
        bool same = !strcmp(s, rows[i][1]), back = parse(&w, s) == e;
        if (!same || !back)
            print_error("%s: got %s, want %s%s\n", rows[i][0], s, rows[i][1], back ? "" : "; it reads back as another");
        bad = bad + (!same || !back);
        TL_END(w.ctx)
        tl_done(&th, w.ctx);
    }
    assert_int_equal(bad, 0);
}

static const struct { const char *text; int error; uint32_t col;
} faults[] = {
    {"", RXE_SYNTAX, 1},
    {"n +", RXE_SYNTAX, 4},
    {"(n", RXE_SYNTAX, 3},
    {"n)", RXE_SYNTAX, 2},
    {"n m", RXE_SYNTAX, 3},
    {"n ** 2", RXE_SYNTAX, 4},
    {"a < b < c", RXE_SYNTAX, 7},
    {"F + true", RXE_DTYPE, 0},
    {"n + p", RXE_DTYPE, 0},
    {"n and p", RXE_DTYPE, 0},
    {"F % I", RXE_DTYPE, 0},
    {"F & F", RXE_DTYPE, 0},
    {"n/2", RXE_DTYPE, 0},
    {"not n", RXE_DTYPE, 0},
    {"unknown + 1", RXE_TEXT_NAME, 9},
    {"foo(1)", RXE_TEXT_NAME, 7},
    {"min(1)", RXE_SYNTAX, 7},
    {"min(1, 2, 3)", RXE_SYNTAX, 13},
    {"select(1, 2, 3)", RXE_DTYPE, 0},
    {"99999999999999999999", RXE_SYNTAX, 1},
    {"9223372036854775808", RXE_SYNTAX, 20},
    {"B + 300", RXE_DTYPE, 0},
    {"0x", RXE_SYNTAX, 1},
    {"3abc", RXE_SYNTAX, 1},
    {"n $ 3", RXE_SYNTAX, 3},
    {"n \x01 3", RXE_SYNTAX, 3},
    {"\"abc", RXE_SYNTAX, 1},
    {"bitcast(i64, F)", RXE_DTYPE, 0},
    {"n[3]", RXE_SYNTAX, 2},
};

static void fault_rows(void **state)
{
    (void)state;
    for (size_t i = 0; i < RX_COUNT(faults); i++) {
        tl_heap th;
        names w = {.ctx = tl_context(&th)};
        rx_frame f;
        volatile bool ok = false;
        if (RX_ENTER(&w.ctx->heap, &f)) {
            rx_map_init(&w.m, &w.ctx->arena);
            parse(&w, faults[i].text);
            ok = true;
            rx_leave(&w.ctx->heap, &f);
        }
        if (ok || tl_last_error(w.ctx) != faults[i].error)
            print_error("%s: error %d\n", faults[i].text, tl_last_error(w.ctx));
        assert_false(ok);
        assert_int_equal(tl_last_error(w.ctx), faults[i].error);
        if (faults[i].col) assert_int_equal(rx_diag_at(w.ctx, 0)->where.col, faults[i].col);
        rx_diag_clear(w.ctx);
        tl_done(&th, w.ctx);
    }
}

static void nesting_is_bounded(void **state)
{
    (void)state;
    tl_heap th;
    names w = {.ctx = tl_context(&th)};
    char s[4096];
    memset(s, '(', sizeof s);
    s[sizeof s - 1] = 0;
    rx_map_init(&w.m, &w.ctx->arena);
    TL_TRY(w.ctx)
    parse(&w, s);
    TL_END_FAILS(w.ctx, RXE_LIMIT)
    memset(s, '-', sizeof s);
    s[sizeof s - 1] = 0;
    TL_TRY(w.ctx)
    parse(&w, s);
    TL_END_FAILS(w.ctx, RXE_LIMIT)
    TL_TRY(w.ctx)
    rx_ex e = parse(&w, "n"), m = parse(&w, "m");
    for (int i = 0; i < 2000; i++) e = rx_addi(w.ctx, rx_div(w.ctx, e, m), 1);
    TL_END_FAILS(w.ctx, RXE_LIMIT)
    tl_done(&th, w.ctx);
}

/* a node that is shared again and again: 2^60 paths, 120 nodes */
static void sharing_is_linear(void **state)
{
    (void)state;
    tl_heap th;
    names w = {.ctx = tl_context(&th)};
    TL_TRY(w.ctx)
    relax_context *ctx = w.ctx;
    rx_map_init(&w.m, &ctx->arena);
    rx_ex n = parse(&w, "n"), e = n, p = parse(&w, "p"), c = p;
    for (int i = 0; i < 60; i++) {
        e = rx_max(ctx, rx_div(ctx, e, rx_addi(ctx, n, i + 2)), rx_mod(ctx, e, rx_addi(ctx, n, i + 3)));
        c = rx_eq(ctx, rx_and(ctx, c, rx_lt(ctx, n, rx_int(ctx, i))), rx_or(ctx, c, rx_lt(ctx, rx_int(ctx, 2 * i), n)));
    }
    rx_map m;
    rx_map_init(&m, &ctx->arena);
    rx_map_put(&m, RX_KEY(n), (void *)(uintptr_t)rx_int(ctx, 1000));
    int64_t v = 0, lo, hi, n_value = 1000;
    rx_ex folded = rx_subst(ctx, e, &m);
    assert_true(rx_is_int(folded, &v));
    rx_map env;
    rx_map_init(&env, &ctx->arena);
    rx_map_put(&env, RX_KEY(n), &n_value);
    assert_int_equal(rx_eval(ctx, e, &env, &n_value), RX_EVAL_OK);
    assert_int_equal(n_value, v);
    rx_bounds(ctx, NULL, e, &lo, &hi);
    rx_modular(ctx, NULL, e, &lo, &hi);
    rx_exvec syms = {0};
    rx_free_syms(ctx, &ctx->arena, e, &syms);
    assert_int_equal(syms.n, 1);
    assert_true(rx_uses(ctx, e, n));
    assert_false(rx_uses(ctx, e, p));
    rx_prove(ctx, NULL, c, NULL);
    rx_simplify(ctx, NULL, e);
    rx_not(ctx, c);
    TL_END(w.ctx)
    tl_done(&th, w.ctx);
}

static double ms(clock_t t0) { return (double)(clock() - t0) * 1000 / CLOCKS_PER_SEC; }

/* terms of many symbols: one sum, a chain of additions in another order, the printed text: one node, in milliseconds */
static void long_sums(void **state)
{
    (void)state;
    tl_heap th;
    names w = {.ctx = tl_context(&th)};
    TL_TRY(w.ctx)
    relax_context *ctx = w.ctx;
    double took[2];
    rx_map_init(&w.m, &ctx->arena);
    for (int k = 0; k < 2; k++) {
        uint32_t n = k ? 20000 : 10000;
        rx_ex *t = RX_NEWN(&ctx->arena, rx_ex, n);
        for (uint32_t i = 0; i < n; i++)
            t[i] = rx_muli(ctx, rx_sym_new(ctx, rx_strf(ctx, "s%d_%u", k, i), RELAX_I64), i % 7 + 1);
        clock_t t0 = clock();
        rx_ex e = rx_sum(ctx, t, n);
        took[k] = ms(t0);
        rx_ex chain = rx_int(ctx, 0);
        for (uint32_t i = 0; i < n; i++) chain = rx_add(ctx, chain, t[i * 7919ull % n]);
        assert_ptr_equal(e, chain);
        assert_true(rx_is_value(rx_sub(ctx, e, chain), 0));
        assert_ptr_equal(rx_divi(ctx, rx_muli(ctx, e, 6), 3), rx_add(ctx, e, e));
        assert_ptr_equal(rx_simplify(ctx, NULL, e), e);
        int64_t lo, hi;
        rx_bounds(ctx, NULL, e, &lo, &hi);
        assert_int_equal(lo, INT64_MIN);
        rx_buf b;
        rx_buf_init(&b, &ctx->arena);
        rx_print_expr(&b, e);
        /* the text of the sum, with names resolved to the same symbols */
        for (uint32_t i = 0; i < n; i++) {
            rx_ex s = t[i]->op == RX_EX_SYM ? t[i] : t[i]->a[0];
            rx_map_put(&w.m, RX_KEY(rx_sym_of(s)->name), (void *)(uintptr_t)s);
        }
        assert_ptr_equal(parse(&w, b.at), e);
    }
    if (took[0] > 100) print_error("a sum of 10,000 terms took %.1f ms\n", took[0]);
    assert_true(took[0] < 100);
    assert_true(took[1] < 6 * took[0] + 20);           /* linear, with room for a busy machine */
    TL_END(w.ctx)
    tl_done(&th, w.ctx);
}

/* equality is a pointer comparison whatever the order of construction, and the text does not depend on it either */
static void order_does_not_matter(void **state)
{
    (void)state;
    static char keep[256];
    for (volatile int k = 0; k < 6; k++) {
        static const int perm[6][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
        tl_heap th;
        names w = {.ctx = tl_context(&th)};
        TL_TRY(w.ctx)
        rx_map_init(&w.m, &w.ctx->arena);
        static const char *const part[3] = {"(n + 3)//4", "m*n", "max(k, n)"};
        rx_ex x[3];
        for (int i = 0; i < 3; i++) x[perm[k][i]] = parse(&w, part[perm[k][i]]);
        rx_ex s = rx_add(w.ctx, rx_add(w.ctx, x[perm[k][0]], x[perm[k][1]]), x[perm[k][2]]);
        rx_ex p = rx_mul(w.ctx, rx_mul(w.ctx, x[perm[k][0]], x[perm[k][1]]), x[perm[k][2]]);
        assert_ptr_equal(s, rx_sum(w.ctx, x, 3));
        assert_ptr_equal(p, rx_product(w.ctx, x, 3));
        const char *t = text(w.ctx, rx_sub(w.ctx, s, p));
        if (!keep[0]) snprintf(keep, sizeof keep, "%s", t);
        assert_string_equal(t, keep);
        TL_END(w.ctx)
        tl_done(&th, w.ctx);
    }
}

static rx_ex halve(void *arg, rx_ex e)
{
    int64_t v;
    return rx_is_int(e, &v) && v % 2 == 0 ? rx_int(arg, v / 2) : e;
}

static void walks(void **state)
{
    (void)state;
    tl_heap th;
    names w = {.ctx = tl_context(&th)};
    TL_TRY(w.ctx)
    relax_context *ctx = w.ctx;
    rx_map m, env;
    int64_t n = 7, r;
    rx_map_init(&w.m, &ctx->arena);
    rx_map_init(&m, &ctx->arena);
    rx_map_init(&env, &ctx->arena);
    rx_ex e = parse(&w, "(n*4 + m)//4 + max(n, 3)");
    rx_map_put(&m, RX_KEY(parse(&w, "m")), (void *)(uintptr_t)parse(&w, "8*k"));
    assert_string_equal(text(ctx, rx_subst(ctx, e, &m)), "k*2 + n + max(n, 3)");
    rx_map_put(&env, RX_KEY(parse(&w, "n")), &n);
    assert_int_equal(rx_eval(ctx, e, &env, &r), RX_EVAL_UNBOUND);
    assert_int_equal(rx_eval(ctx, parse(&w, "n*n//(n - 7)"), &env, &r), RX_EVAL_DIV_ZERO);
    assert_int_equal(rx_eval(ctx, parse(&w, "n*9223372036854775807"), &env, &r), RX_EVAL_OVERFLOW);
    assert_int_equal(rx_eval(ctx, parse(&w, "F + 1"), &env, &r), RX_EVAL_DATA);
    assert_int_equal(rx_eval(ctx, parse(&w, "select(n == 7, n + 1, n//(n - 7))"), &env, &r), RX_EVAL_OK);
    assert_int_equal(r, 8);
    assert_string_equal(text(ctx, rx_rewrite(ctx, parse(&w, "F*4 + 2.5"), halve, ctx)), "F * 4.0 + 2.5");
    assert_string_equal(text(ctx, rx_rewrite(ctx, parse(&w, "n*4 + 6"), halve, ctx)), "n*2 + 3");
    rx_exvec syms = {0};
    rx_free_syms(ctx, &ctx->arena, parse(&w, "z - b + n*a"), &syms);
    assert_int_equal(syms.n, 4);
    assert_string_equal(rx_sym_of(syms.at[0])->name, "z");
    assert_string_equal(rx_sym_of(syms.at[3])->name, "b");
    rx_buf b;
    rx_buf_init(&b, &ctx->arena);
    rx_ex dims[2] = {parse(&w, "n"), parse(&w, "4")};
    rx_print_dims(&b, dims, 2);
    rx_print_dims(&b, dims, 1);
    rx_print_dims(&b, dims, 0);
    assert_string_equal(b.at, "(n, 4)(n,)()");
    rx_ex n1 = rx_sym_new(ctx, "n", RELAX_I64);
    assert_ptr_not_equal(n1, parse(&w, "n"));
    assert_int_equal(rx_sym_of(n1)->number, 1);
    TL_END(w.ctx)
    tl_done(&th, w.ctx);
}

/* the n-th allocation fails, for every n: a status, no leak */
static void allocation_failures(void **state)
{
    (void)state;
    volatile bool done = false;
    for (volatile int64_t n = 1; !done; n++) {
        tl_heap th;
        relax_context *ctx = tl_context(&th);
        names w = {.ctx = ctx};
        rx_frame f;
        volatile bool ok = false;
        tl_fail(&th, n, true);
        if (RX_ENTER(&ctx->heap, &f)) {
            rx_map_init(&w.m, &ctx->arena);
            rx_facts *facts = rx_facts_new(ctx, &ctx->arena, NULL);
            rx_facts_add(facts, parse(&w, "n <= m*2"));
            rx_ex e = parse(&w, "(n*8 + m%8)//8 + min(n, m) + max(m, n) - select(p, n, m)//3");
            rx_simplify(ctx, facts, e);
            rx_prove(ctx, facts, rx_le(ctx, e, parse(&w, "n*5 + m")), NULL);
            ok = true;
            rx_leave(&ctx->heap, &f);
        } else {
            assert_int_equal(tl_last_error(ctx), RXE_OOM);
            rx_diag_clear(ctx);
        }
        done = ok;
        tl_fail(&th, 0, false);
        tl_done(&th, ctx);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_rows),
        cmocka_unit_test(fault_rows),
        cmocka_unit_test(nesting_is_bounded),
        cmocka_unit_test(sharing_is_linear),
        cmocka_unit_test(long_sums),
        cmocka_unit_test(order_does_not_matter),
        cmocka_unit_test(walks),
        cmocka_unit_test(allocation_failures),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
