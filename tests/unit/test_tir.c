/* test_tir.c: text form, verifier, guards, copies of tensor programs. Rows of text. */
#include "testlib.h"
#include "tirtest.h"

/* --- printing --- */
/* text -> text; NULL: the input itself with its line breaks */
static const struct { const char *in, *out;
} prints[] = {
    {"prim a(X: Buffer((n,), f32), Y: Buffer((n,), f32)) { for i in n { Y[i] = X[i] } }",
     "prim a(X: Buffer((n,), f32), Y: Buffer((n,), f32)) {\n"
     "  for i in n {\n"
     "    Y[i] = X[i]\n"
     "  }\n"
     "}\n"},
    {"prim b(Y: Buffer((), f16)) { S = alloc((2, 3), f64, local) S[0, 1] = 0.1; Y[] = f16(S[0, 1]) }",
     "prim b(Y: Buffer((), f16)) {\n"
     "  S = alloc((2, 3), f64, local)\n"
     "  S[0, 1] = f64(0.1)\n"
     "  Y[] = f16(S[0, 1])\n"
     "}\n"},
    {"prim c(Y: Buffer((n,), i32)) { { S = alloc((), i32, local) S[] = 1 Y[0] = S[] } { let t: i64 = n - 1 Y[t] = 2 } "
     "Y[1] = 3 }",
     "prim c(Y: Buffer((n,), i32)) {\n"
     "  {\n"
     "    S = alloc((), i32, local)\n"
     "    S[] = i32(1)\n"
     "    Y[0] = S[]\n"
     "  }\n"
     "  {\n"
     "    let t: i64 = n - 1\n"
     "    Y[t] = i32(2)\n"
     "  }\n"
     "  Y[1] = i32(3)\n"
     "}\n"},
    {"prim d(X: Buffer((n, m), f32, strides=(m*2, 2)), Y: Buffer((n,), f32); p) where n <= 64, p%4 == 0, p <= m from "
     "\"sum\" {"
     " for i: parallel in n { for r: reduce in p..m init Y[i] = 0.0 { Y[i] += X[i, r] } } }",
     "prim d(X: Buffer((n, m), f32, strides=(m*2, 2)), Y: Buffer((n,), f32); p) where n <= 64, p%4 == 0, p <= m from "
     "\"sum\" {\n"
     "  for i: parallel in n {\n"
     "    for r: reduce in p..m init { Y[i] = 0.0 } {\n"
     "      Y[i] += X[i, r]\n"
     "    }\n"
     "  }\n"
     "}\n"},
    {"prim e(I: Buffer((n,), i64), Y: Buffer((m,), f32)) { for i in I[0]..+I[1] { Y[i] max= 1.0 Y[i] min= 2.0 Y[i] *= "
     "3.0 Y[i] -= 1.0 } }",
     "prim e(I: Buffer((n,), i64), Y: Buffer((m,), f32)) {\n"
     "  for i in I[0]..+I[1] {\n"
     "    Y[i] max= 1.0\n"
     "    Y[i] min= 2.0\n"
     "    Y[i] *= 3.0\n"
     "    Y[i] -= 1.0\n"
     "  }\n"
     "}\n"},
    {"prim f(Y: Buffer((n,), f32)) { for v: vector in 8 { if v < n { Y[v] = 1.0 } else if v == n { Y[0] = 2.0 } else { "
     "} }"
     " for u: unroll in 4 { prefetch Y[u] } for r: vector reduce in 8 { Y[0] += 1.0 } assert 1 < n, div_zero \"a "
     "\\\"b\\\"\" }",
     "prim f(Y: Buffer((n,), f32)) {\n"
     "  for v: vector in 8 {\n"
     "    if v < n {\n"
     "      Y[v] = 1.0\n"
     "    } else {\n"
     "      if n == v {\n"
     "        Y[0] = 2.0\n"
     "      } else {\n"
     "      }\n"
     "    }\n"
     "  }\n"
     "  for u: unroll in 4 {\n"
     "    prefetch Y[u]\n"
     "  }\n"
     "  for r: vector reduce in 8 {\n"
     "    Y[0] += 1.0\n"
     "  }\n"
     "  assert 2 <= n, div_zero \"a \\\"b\\\"\"\n"
     "}\n"},
};

static void test_print(void **state)
{
    (void)state;
    tl_heap th;
    relax_context *ctx = tl_context(&th);
    for (size_t i = 0; i < RX_COUNT(prints); i++) {
        TL_TRY(ctx) {
            rx_tb t = {ctx, rx_scratch(&ctx->heap)};
            rx_prim *p = tt_parse(&t, prints[i].in);
            const char *text = tt_text(&t, p);
            assert_string_equal(text, prints[i].out);
            rx_prim *again = tt_parse(&t, text);
            assert_string_equal(tt_text(&t, again), text);
            assert_true(rx_prim_equal(ctx, p, again));
            assert_true(rx_prim_hash(ctx, p) == rx_prim_hash(ctx, again));
        } TL_END(ctx)
    }
    tl_done(&th, ctx);
}

/* names that clash, hide, or are no names get others, and the text reads back as the same program */
static void test_names(void **state)
{
    (void)state;
    tl_heap th;
    relax_context *ctx = tl_context(&th);
    TL_TRY(ctx) {
        rx_tb t = {ctx, rx_scratch(&ctx->heap)};
        rx_ex n = rx_sym_new(ctx, "i", RELAX_I64), m = rx_sym_new(ctx, "i", RELAX_I64), dims[2] = {n, m};
        rx_ex i = rx_loopvar(&t, "i"), j = rx_loopvar(&t, "exp"), k = rx_loopvar(&t, "a b");
        relax_buffer *x = rx_buffer(&t, "i", RELAX_F32, RX_MEM_GLOBAL, dims, 2),
                     *s = rx_buffer(&t, "i", RELAX_F32, RX_MEM_LOCAL, NULL, 0);
        rx_ex at[2] = {i, rx_add(ctx, j, rx_muli(ctx, k, 3))};
        rx_stmt *b = rx_store(&t, x, at, 2, rx_add(ctx, rx_at(&t, x, at, 2), rx_at(&t, s, NULL, 0)));
        b = rx_loop_s(&t, i, n, rx_loop_s(&t, j, m, rx_loop_s(&t, k, rx_int(ctx, 1), b)));
        rx_prim *p = rx_prim_new(&t, "names", &x, 1, NULL, 0, rx_alloc_s(&t, s, b));
        assert_string_equal(tt_text(&t, p),
            "prim names(i_2: Buffer((i, i_1), f32)) {\n"
            "  i_3 = alloc((), f32, local)\n"
            "  for i_4 in i {\n"
            "    for exp_1 in i_1 {\n"
            "      for a_b in 1 {\n"
            "        i_2[i_4, a_b*3 + exp_1] += i_3[]\n"
            "      }\n"
            "    }\n"
            "  }\n"
            "}\n");
        const char *text = tt_text(&t, p);
        rx_prim *q = tt_parse(&t, text);
        assert_string_equal(tt_text(&t, q), text);
        rx_sym_of(n)->lo = rx_sym_of(m)->lo = 0;     /* as reading a dim sets it */
        assert_true(rx_prim_equal(ctx, p, q));
        assert_true(rx_prim_hash(ctx, p) == rx_prim_hash(ctx, q));
    } TL_END(ctx)
    tl_done(&th, ctx);
}

/* --- equality --- */
static const struct { bool equal; const char *a, *b;
} pairs[] = {
    {true, "prim a(X: Buffer((n, m), f32)) { for i in n { for j in m { X[i, j] = f32(j*4 + i) } } }",
     "prim b(Z: Buffer((q, p), f32)) { for x in q { for a in p { Z[x, a] = f32(x + 4*a) } } }"},
    {true, "prim a(X: Buffer((z, y), f32)) { if z < y { X[0, 0] = 1.0 } }",
     "prim a(X: Buffer((y, z), f32)) { if y < z { X[0, 0] = 1.0 } }"},
    {false, "prim a(X: Buffer((z, y), f32)) { if z < y { X[0, 0] = 1.0 } }",
     "prim a(X: Buffer((y, z), f32)) { if z < y { X[0, 0] = 1.0 } }"},
    {false, "prim a(X: Buffer((n,), f32)) { for i in n { X[i] = 1.0 } }",
     "prim a(X: Buffer((n,), f32)) { for i: parallel in n { X[i] = 1.0 } }"},
    {false, "prim a(X: Buffer((n,), f32)) { X[0] = 1.0 }", "prim a(X: Buffer((n,), f64)) { X[0] = 1.0 }"},
    {false, "prim a(X: Buffer((n, n), f32)) { X[0, 0] = 1.0 }", "prim a(X: Buffer((n, m), f32)) { X[0, 0] = 1.0 }"},
    {false, "prim a(X: Buffer((n, m), f32)) { X[0, 0] = 1.0 }", "prim a(X: Buffer((n, n), f32)) { X[0, 0] = 1.0 }"},
    {false, "prim a(X: Buffer((n,), f32), Y: Buffer((n,), f32)) { X[0] = Y[0] }",
     "prim a(X: Buffer((n,), f32), Y: Buffer((n,), f32)) { Y[0] = X[0] }"},
    {false, "prim a(X: Buffer((n,), f32)) where n <= 4 { X[0] = 1.0 }",
     "prim a(X: Buffer((n,), f32)) where n <= 5 { X[0] = 1.0 }"},
    {true, "prim a(X: Buffer((n,), i32)) { let a: i32 = X[0] let b: i32 = X[1] X[0] = a - b }",
     "prim a(X: Buffer((n,), i32)) { let b: i32 = X[0] let a: i32 = X[1] X[0] = b - a }"},
    {false, "prim a(X: Buffer((n,), i32)) { let a: i32 = X[0] let b: i32 = X[1] X[0] = a - b }",
     "prim a(X: Buffer((n,), i32)) { let a: i32 = X[0] let b: i32 = X[1] X[0] = b - a }"},
};

static void test_equal(void **state)
{
    (void)state;
    tl_heap th;
    relax_context *ctx = tl_context(&th);
    for (size_t i = 0; i < RX_COUNT(pairs); i++) {
        TL_TRY(ctx) {
            rx_tb t = {ctx, rx_scratch(&ctx->heap)};
            rx_prim *a = tt_parse(&t, pairs[i].a), *b = tt_parse(&t, pairs[i].b);
            if (rx_prim_equal(ctx, a, b) != pairs[i].equal || rx_prim_equal(ctx, b, a) != pairs[i].equal)
                fail_msg("pair %d: %s / %s", (int)i, pairs[i].a, pairs[i].b);
            assert_true(!pairs[i].equal || rx_prim_hash(ctx, a) == rx_prim_hash(ctx, b));
            rx_prim *c = rx_prim_copy(&t, a, "copy");
            assert_true(rx_prim_equal(ctx, a, c));
            assert_true(c->params[0] != a->params[0] && c->params[0]->shape[0] != a->params[0]->shape[0]);
        } TL_END(ctx)
    }
    tl_done(&th, ctx);
}

/* --- parse errors: line:column and error --- */
static const struct { uint32_t line, col; int err; const char *text; } bad_text[] = {
    {1, 8, RXE_SYNTAX, "prim a { }"},
    {1, 10, RXE_SYNTAX, "prim a(X Buffer((n,), f32)) { }"},
    {1, 24, RXE_TEXT_NAME, "prim a(X: Buffer((n,), f33)) { }"},
    {1, 27, RXE_SYNTAX, "prim a(X: Buffer((n,), f32) { }"},
    {2, 3, RXE_TEXT_NAME, "prim a(X: Buffer((n,), f32)) {\n  Y[0] = 1.0 }"},
    {2, 10, RXE_TEXT_NAME, "prim a(X: Buffer((n,), f32)) {\n  X[0] = y }"},
    {2, 5, RXE_TEXT_NAME, "prim a(X: Buffer((n,), f32)) {\n  X[k] = 1.0 }"},
    {1, 31, RXE_RANK, "prim a(X: Buffer((n,), f32)) { X[0, 0] = 1.0 }"},
    {1, 31, RXE_DTYPE, "prim a(X: Buffer((n,), f32)) { X[0] = n }"},
    {1, 31, RXE_TEXT_NAME, "prim a(X: Buffer((n,), f32)) { for n in 3 { } }"},
    {1, 31, RXE_TEXT_NAME, "prim a(X: Buffer((n,), f32)) { for exp in 3 { } }"},
    {1, 31, RXE_SYNTAX, "prim a(X: Buffer((n,), f32)) { for i: fast in 3 { } }"},
    {1, 31, RXE_DTYPE, "prim a(X: Buffer((n,), f32)) { for i in 3.0 { } }"},
    {1, 31, RXE_DTYPE, "prim a(X: Buffer((n,), f32)) { if n { } }"},
    {1, 31, RXE_TEXT_NAME, "prim a(X: Buffer((n,), f32)) { assert n < 3, wrong }"},
    {1, 31, RXE_TEXT_NAME, "prim a(X: Buffer((n,), f32)) { S = alloc((), f32, far) }"},
    {1, 31, RXE_TEXT_NAME, "prim a(X: Buffer((n,), f32)) { X = alloc((), f32, local) }"},
    {1, 31, RXE_SYNTAX, "prim a(X: Buffer((n,), f32)) { X[0] 1.0 }"},
    {1, 31, RXE_DTYPE, "prim a(X: Buffer((n,), f32)) { let x: i32 = X[0] }"},
    {1, 31, RXE_TEXT_NAME, "prim a(X: Buffer((n,), f32)) { { let x: i32 = 1 } X[x] = 1.0 }"},
    {1, 29, RXE_TEXT_NAME, "prim a(X: Buffer((n,), f32), X: Buffer((n,), f32)) { }"},
    {1, 30, RXE_RANK, "prim a(X: Buffer((n,), f32, strides=(n, 1))) { }"},
    {1, 33, RXE_DTYPE, "prim a(X: Buffer((n,), f32)) where n { }"},
    {1, 31, RXE_SYNTAX, "prim a(X: Buffer((n,), f32)) { X[0] = 1.0"},
};

static void test_bad_text(void **state)
{
    (void)state;
    tl_heap th;
    relax_context *ctx = tl_context(&th);
    for (size_t i = 0; i < RX_COUNT(bad_text); i++) {
        bool failed = true;
        rx_frame f;
        if (RX_ENTER(&ctx->heap, &f)) {
            rx_tb t = {ctx, rx_scratch(&ctx->heap)};
            tt_parse(&t, bad_text[i].text);
            failed = false;
            rx_leave(&ctx->heap, &f);
        }
        if (!failed)
            fail_msg("no error: %s", bad_text[i].text);
        const rx_diag *d = rx_diag_at(ctx, rx_diag_count(ctx) - 1);
        if ((int)d->err != bad_text[i].err || d->where.line != bad_text[i].line || d->where.col < bad_text[i].col)
            fail_msg("RX%d at %u:%u (%s): %s", (int)d->err, d->where.line, d->where.col, d->message, bad_text[i].text);
        rx_diag_clear(ctx);
    }
    /* nesting is limited, not the stack */
    static char deep[20000];
    strcpy(deep, "prim a(X: Buffer((n,), f32)) ");
    for (int i = 0; i < 6000; i++)
        strcat(deep, "{ ");
    TL_TRY(ctx) {
        rx_tb t = {ctx, rx_scratch(&ctx->heap)};
        tt_parse(&t, deep);
    } TL_END_FAILS(ctx, RXE_LIMIT)
    tl_done(&th, ctx);
}

/* --- verifier --- */
/* breaks: the words that the last message must hold, or NULL for none; unproved: number of accesses */
static const struct { const char *broken; uint32_t unproved; const char *text;
} verdicts[] = {
    {NULL, 0, "prim a(X: Buffer((n, m), f32)) { for i in n { for j in m { X[i, j] = 1.0 } } }"},
    {NULL, 0, "prim a(X: Buffer((n,), f32)) { for i in n//4 { for u in 4 { X[i*4 + u] = 1.0 } } }"},
    {NULL, 0,
     "prim a(X: Buffer((n,), f32)) { for i in (n + 3)//4 { for u in 4 { if i*4 + u < n { X[i*4 + u] = 1.0 } } } }"},
    {NULL, 0,
     "prim a(X: Buffer((n,), f32), Y: Buffer((n + 2,), f32)) {"
     " for i in n + 2 { Y[i] = select(1 <= i and i < n + 1, X[i - 1], 0.0) } }"},
    {NULL, 1,
     "prim a(X: Buffer((n,), f32), Y: Buffer((n + 2,), f32)) { for i in n + 2 { Y[i] = select(1 <= i, X[i - 1], 0.0) } "
     "}"},
    {NULL, 0, "prim a(X: Buffer((n*2,), f32), Y: Buffer((n,), f32)) { for i in n { Y[i] = X[i*2 + 1] } }"},
    {NULL, 1, "prim a(X: Buffer((n,), f32), Y: Buffer((m,), f32)) { for i in n { Y[i] = X[i] } }"},
    {NULL, 0, "prim a(X: Buffer((n,), f32), Y: Buffer((m,), f32)) where n <= m { for i in n { Y[i] = X[i] } }"},
    {NULL, 1,
     "prim a(I: Buffer((n,), i32), X: Buffer((m,), f32), Y: Buffer((n,), f32)) { for i in n { Y[i] = X[i64(I[i])] } }"},
    {NULL, 0,
     "prim a(I: Buffer((n,), i32), X: Buffer((m,), f32), Y: Buffer((n,), f32)) { for i in n {"
     " let k: i64 = i64(I[i]) assert 0 <= k and k < m, index Y[i] = X[k] } }"},
    {NULL, 0,
     "prim a(I: Buffer((n,), i64), X: Buffer((m,), f32), Y: Buffer((n,), f32)) { for i in n {"
     " assert 0 <= I[i] and I[i] < m, index Y[i] = X[I[i]] } }"},
    {NULL, 1,
     "prim a(I: Buffer((n,), i64), X: Buffer((m,), f32), Y: Buffer((n,), f32)) { for i in n {"
     " assert 0 <= I[i] and I[i] < m, index I[0] = 7 Y[i] = X[I[i]] } }"},
    {NULL, 0, "prim a(X: Buffer((4,), f32)) { if 3 < 2 { X[9] = 1.0 } }"},
    {NULL, 0, "prim a(X: Buffer((n,), f32)) { for i in n { X[n - 1 - i] = 1.0 } }"},
    {NULL, 0, "prim a(X: Buffer((n, m), f32)) { for i in n*m { X[i//m, i%m] = 1.0 } }"},
    {"T10", 0, "prim a(X: Buffer((4,), f32)) { X[4] = 1.0 }"},
    {"T10", 0, "prim a(X: Buffer((n,), f32)) { X[n] = 1.0 }"},
    {"T10", 0, "prim a(X: Buffer((n,), f32)) { for i in n { X[i] = X[i - n] } }"},
    {"T10", 0, "prim a(X: Buffer((n,), f32)) { X[-1] = 1.0 }"},
    {"T2", 0, "prim a(X: Buffer((n*2,), f32)) { }"},
    {NULL, 0, "prim a(X: Buffer((n*2,), f32); n) { }"},
    {"T5", 0, "prim a(X: Buffer((n,), f32)) { for i: vector in n { X[i] = 1.0 } }"},
    {"T5", 0, "prim a(X: Buffer((n,), f32)) { for i: vector in 65 { } }"},
    {"T5", 0, "prim a(X: Buffer((n,), f32)) { for i: unroll in n { X[i] = 1.0 } }"},
    {"T5", 0, "prim a(X: Buffer((n,), f32)) { for i in n { for j: parallel in 4 { X[i] = 1.0 } } }"},
    {"T5", 0, "prim a(X: Buffer((n,), f32)) { S = alloc((), f32, local) for j: parallel in n { X[j] = 1.0 } }"},
    {NULL, 0,
     "prim a(X: Buffer((n,), f32)) { T = alloc((n,), f32, global) for j: parallel in n { T[j] = 1.0 } for j: parallel "
     "in n { X[j] = T[j] } }"},
    {"T5", 0, "prim a(X: Buffer((n,), f32)) { for i: parallel reduce in n { X[0] += 1.0 } }"},
    {"T5", 0, "prim a(X: Buffer((64,), f32)) { for i: vector in 8 { for j: vector in 8 { X[i*8 + j] = 1.0 } } }"},
    {"T6", 0, "prim a(X: Buffer((n,), f32)) { for i in n init { X[0] = 0.0 } { X[i] = 1.0 } }"},
    {"T7", 0, "prim a(X: Buffer((n,), f32)) { S = alloc((n,), f32, local) }"},
    {"T7", 0, "prim a(X: Buffer((n,), f32)) { S = alloc((65537,), f32, local) }"},
};

static void check_verdict(relax_context *ctx, size_t i)
{
    rx_tb t = {ctx, rx_scratch(&ctx->heap)};
    rx_prim *p = tt_parse(&t, verdicts[i].text);
    rx_unproved_vec u = {0};
    uint32_t breaks = rx_prim_verify(ctx, p, t.a, &u);
    const rx_diag *d = breaks ? rx_diag_at(ctx, rx_diag_count(ctx) - 1) : NULL;
    if ((breaks != 0) != (verdicts[i].broken != NULL) || (d && !strstr(d->message, verdicts[i].broken)))
        fail_msg("%u breaks, %s: %s", breaks, d ? d->message : "", verdicts[i].text);
    if (!breaks && u.n != verdicts[i].unproved)
        fail_msg("%u unproved: %s", u.n, verdicts[i].text);
    rx_diag_clear(ctx);
    if (breaks)
        return;
    /* guards make every access proved */
    rx_prim *g = rx_prim_guard(&t, p);
    u.n = 0;
    assert_int_equal(rx_prim_verify(ctx, g, t.a, &u), 0);
    if (u.n)
        fail_msg("%u unproved with guards: %s", u.n, tt_text(&t, g));
    assert_int_equal(rx_prim_equal(ctx, p, g), verdicts[i].unproved == 0);
}

static void test_verify(void **state)
{
    (void)state;
    tl_heap th;
    relax_context *ctx = tl_context(&th);
    for (size_t i = 0; i < RX_COUNT(verdicts); i++) {
        TL_TRY(ctx) {
            check_verdict(ctx, i);
        } TL_END(ctx)
    }
    tl_done(&th, ctx);
}

/* what text cannot say: programs built by hand that break rules */
static void test_verify_built(void **state)
{
    (void)state;
    tl_heap th;
    relax_context *ctx = tl_context(&th);
    TL_TRY(ctx) {
        rx_tb t = {ctx, rx_scratch(&ctx->heap)};
        rx_ex n = rx_sym_new(ctx, "n", RELAX_I64), k = rx_sym_new(ctx, "k", RELAX_I64), i = rx_loopvar(&t, "i"),
              zero = rx_int(ctx, 0);
        relax_buffer *x = rx_buffer(&t, "X", RELAX_F32, RX_MEM_GLOBAL, &n, 1),
                     *y = rx_buffer(&t, "Y", RELAX_F32, RX_MEM_LOCAL, NULL, 0);
        rx_ex one = rx_const_float(ctx, RELAX_F32, 1);
        rx_stmt *store = rx_store(&t, x, &i, 1, one);
        struct { const char *rule; rx_stmt *s; } bad[] = {
            {"T2", store},
            {"T2", rx_loop_s(&t, i, k, store)},
            {"T2", rx_loop_s(&t, i, n, rx_loop_s(&t, i, n, store))},
            {"T3", rx_store(&t, y, NULL, 0, one)},
            {"T3", rx_alloc_s(&t, y, rx_alloc_s(&t, y, rx_seq(&t, NULL, 0)))},
            {"T8", rx_check_s(&t, rx_bool(ctx, true), 12345, "x")},
        };
        for (size_t j = 0; j < RX_COUNT(bad); j++) {
            rx_prim *p = rx_prim_new(&t, "p", &x, 1, NULL, 0, bad[j].s);
            assert_int_not_equal(rx_prim_verify(ctx, p, t.a, NULL), 0);
            bool found = false;
            for (uint32_t e = 0; e < rx_diag_count(ctx); e++)
                found |= strstr(rx_diag_at(ctx, e)->message, bad[j].rule) != NULL;
            if (!found)
                fail_msg("case %d: no %s", (int)j, bad[j].rule);
            rx_diag_clear(ctx);
        }
        relax_buffer *twice[2] = {x, x};
        assert_int_not_equal(
            rx_prim_verify(ctx, rx_prim_new(&t, "p", twice, 2, NULL, 0, rx_seq(&t, NULL, 0)), t.a, NULL), 0);
        rx_stmt *deep = rx_store(&t, x, &zero, 1, one);
        for (int d = 0; d < 300; d++)
            deep = rx_if(&t, rx_lt(ctx, zero, n), deep, NULL);
        x->param = 0;
        assert_int_not_equal(rx_prim_verify(ctx, rx_prim_new(&t, "p", &x, 1, NULL, 0, deep), t.a, NULL), 0);
        rx_diag_clear(ctx);
    } TL_END(ctx)
    TL_TRY(ctx) {
        rx_tb t = {ctx, rx_scratch(&ctx->heap)};
        rx_ex n = rx_sym_new(ctx, "n", RELAX_I64);
        relax_buffer *x = rx_buffer(&t, "X", RELAX_F32, RX_MEM_GLOBAL, &n, 1);
        rx_store(&t, x, &n, 1, rx_int(ctx, 1));
    } TL_END_FAILS(ctx, RXE_DTYPE)
    TL_TRY(ctx) {
        rx_tb t = {ctx, rx_scratch(&ctx->heap)};
        rx_ex n = rx_sym_new(ctx, "n", RELAX_I64);
        rx_at(&t, rx_buffer(&t, "X", RELAX_F32, RX_MEM_GLOBAL, &n, 1), NULL, 0);
    } TL_END_FAILS(ctx, RXE_RANK)
    tl_done(&th, ctx);
}

/* --- analysis --- */
static void test_analysis(void **state)
{
    (void)state;
    tl_heap th;
    relax_context *ctx = tl_context(&th);
    TL_TRY(ctx) {
        rx_tb t = {ctx, rx_scratch(&ctx->heap)};
        rx_prim *p = tt_parse(
            &t,
            "prim a(X: Buffer((n, m*2), f32), Y: Buffer((m, n), f32, strides=(n*3, 1)), Z: Buffer((k,), i32); q, m) {"
            " for i in n { prefetch X[i, 0] Y[0, i] = X[i, 1] Z[0] += 1 } }");
        rx_access a[3];
        rx_prim_access(p, a);
        assert_true(a[0].reads && !a[0].writes && !a[1].reads && a[1].writes && a[2].reads && a[2].writes);
        rx_exvec s = {0};
        rx_prim_symbols(ctx, t.a, p, &s);
        rx_buf b;
        rx_buf_init(&b, t.a);
        rx_print_dims(&b, s.at, s.n);
        rx_putc(&b, ' ');
        rx_print_expr(&b, rx_buffer_size(ctx, p->params[0]));
        rx_ex at[2] = {s.at[0], s.at[1]};
        rx_putc(&b, ' ');
        rx_print_expr(&b, rx_buffer_offset(ctx, p->params[0], at));
        rx_putc(&b, ' ');
        rx_print_expr(&b, rx_buffer_offset(ctx, p->params[1], at));
        assert_string_equal(b.at, "(n, m, k, q) m*n*2 m + m*n*2 m + n*n*3");
    } TL_END(ctx)
    tl_done(&th, ctx);
}

/* --- random programs: print, parse, print; copy, equality, hash; substitution --- */
typedef struct gen { rx_tb *t; uint64_t seed; rx_exvec ints; RX_VEC(relax_buffer *) bufs; uint32_t left; } gen;

static uint32_t pick(gen *g, uint32_t n) { return tt_random(&g->seed) % n; }

static rx_ex gen_index(gen *g, int depth)
{
    relax_context *ctx = g->t->ctx;
    if (depth == 0 || pick(g, 3) == 0)
        return pick(g, 3) ? g->ints.at[pick(g, g->ints.n)] : rx_int(ctx, (int64_t)pick(g, 40) - 9);
    rx_ex a = gen_index(g, depth - 1), b = gen_index(g, depth - 1);
    switch (pick(g, 7)) {
    case 0: return rx_add(ctx, a, b);
    case 1: return rx_sub(ctx, a, b);
    case 2: return rx_muli(ctx, a, (int64_t)pick(g, 9) - 3);
    case 3: return rx_divi(ctx, a, 1 + pick(g, 8));
    case 4: return rx_modi(ctx, a, 1 + pick(g, 8));
    case 5: return rx_min(ctx, a, b);
    default: return rx_select(ctx, rx_lt(ctx, a, b), b, a);
    }
}

static rx_ex gen_load(gen *g, relax_buffer *b)
{
    rx_ex at[4];
    for (uint32_t i = 0; i < b->ndim; i++)
        at[i] = gen_index(g, 2);
    return rx_at(g->t, b, at, b->ndim);
}

static rx_ex gen_value(gen *g, relax_dtype t, int depth)
{
    relax_context *ctx = g->t->ctx;
    bool real = rx_dtype_is_float(t);
    if (depth == 0 || pick(g, 4) == 0) {
        relax_buffer *b = g->bufs.at[pick(g, g->bufs.n)];
        if (pick(g, 2))
            return rx_cast(ctx, t, gen_load(g, b));
        return real ? rx_const_float(ctx, t, ((double)pick(g, 1000) - 500) / 7)
                    : rx_const_int(ctx, t, (int64_t)pick(g, 300) - 100);
    }
    rx_ex a = gen_value(g, t, depth - 1), b = gen_value(g, t, depth - 1), c;
    switch (pick(g, 8)) {
    case 0: return rx_add(ctx, a, b);
    case 1: return rx_sub(ctx, a, b);
    case 2: return rx_mul(ctx, a, b);
    case 3: return rx_min(ctx, a, b);
    case 4: return rx_div(ctx, a, b);
    case 5: return rx_select(ctx, rx_le(ctx, a, b), b, a);
    case 6: c = gen_index(g, 1); return rx_select(ctx, rx_lt(ctx, rx_int(ctx, 3), c), a, b);
    default: return real ? rx_call1(ctx, (rx_intrin)(RX_IN_EXP + pick(g, 14)), a) : rx_unary(ctx, RX_EX_BITNOT, a);
    }
}

static rx_stmt *gen_stmt(gen *g, int depth);

static rx_stmt *gen_block(gen *g, int depth)
{
    rx_stmt *s[3];
    uint32_t n = pick(g, 4), ints = g->ints.n, bufs = g->bufs.n;
    for (uint32_t i = 0; i < n && i < 3; i++)
        s[i] = gen_stmt(g, depth);
    g->ints.n = ints;
    g->bufs.n = bufs;
    return rx_seq(g->t, s, RX_MIN(n, 3));
}

static rx_stmt *gen_loop(gen *g, int depth)
{
    rx_loop how = (rx_loop)pick(g, 4);
    static const char *const names[] = {"i", "j", "k", "n", "exp", "0x"};
    rx_ex v = rx_loopvar(g->t, names[pick(g, 6)]), lo = pick(g, 2) ? rx_int(g->t->ctx, 0) : gen_index(g, 2),
          n = gen_index(g, 2);
    bool reduce = pick(g, 3) == 0;
    rx_stmt *init = reduce && pick(g, 2) ? gen_block(g, depth - 1) : NULL;
    rx_push(g->t->a, &g->ints, v);
    return rx_for(g->t, v, lo, n, how, reduce, init, gen_block(g, depth - 1));
}

static rx_stmt *gen_alloc(gen *g, int depth)
{
    rx_ex dims[2] = {gen_index(g, 1), rx_int(g->t->ctx, 4)};
    static const relax_dtype types[] = {RELAX_F32, RELAX_F16, RELAX_F64, RELAX_I32,
                                        RELAX_U8,  RELAX_I64, RELAX_U64, RELAX_BF16};
    relax_buffer *b = rx_buffer(g->t, pick(g, 2) ? "S" : "X", types[pick(g, 8)], (rx_mem)pick(g, 3), dims, pick(g, 3));
    rx_push(g->t->a, &g->bufs, b);
    return rx_alloc_s(g->t, b, gen_block(g, depth - 1));
}

static rx_stmt *gen_one(gen *g, int depth)
{
    relax_context *ctx = g->t->ctx;
    relax_buffer *b = g->bufs.at[pick(g, g->bufs.n)];
    rx_ex at[4], cond = rx_le(ctx, gen_index(g, 2), gen_index(g, 1));
    for (uint32_t i = 0; i < b->ndim; i++)
        at[i] = gen_index(g, 2);
    uint32_t k = pick(g, depth > 0 && g->left > 0 ? 8 : 4);
    g->left -= g->left > 0;
    switch (k) {
    case 0: case 1: return rx_store(g->t, b, at, b->ndim, gen_value(g, b->dtype, 3));
    case 2: return rx_store(g->t, b, at, b->ndim, rx_add(ctx, rx_at(g->t, b, at, b->ndim), gen_value(g, b->dtype, 1)));
    case 3:
        return pick(g, 2) ? rx_prefetch_s(g->t, b, at)
                          : rx_check_s(g->t, cond, RXE_INDEX, pick(g, 2) ? "a \\ \"b\"\n" : "");
    case 4: return rx_if(g->t, cond, gen_block(g, depth - 1), pick(g, 2) ? gen_block(g, depth - 1) : NULL);
    case 5: return gen_alloc(g, depth);
    case 6: {
        relax_dtype t = pick(g, 2) ? RELAX_I64 : RELAX_F32;
        rx_ex v = rx_sym_new(ctx, pick(g, 2) ? "t" : "i", t), e = t == RELAX_I64 ? gen_index(g, 2) : gen_value(g, t, 2);
        if (t == RELAX_I64)
            rx_push(g->t->a, &g->ints, v);
        return rx_let(g->t, v, e, gen_block(g, depth - 1));
    }
    default: return gen_loop(g, depth);
    }
}

/* what a statement defines ends with it */
static rx_stmt *gen_stmt(gen *g, int depth)
{
    uint32_t ints = g->ints.n, bufs = g->bufs.n;
    rx_stmt *s = gen_one(g, depth);
    g->ints.n = ints;
    g->bufs.n = bufs;
    return s;
}

static rx_prim *gen_prim(rx_tb *t, uint64_t seed)
{
    gen g = {.t = t, .seed = seed, .left = 40};
    static const char *const names[] = {"n", "m", "n", "n0", "N"};
    relax_buffer *params[3];
    for (int i = 0; i < 5; i++) {
        rx_ex e = rx_sym_new(t->ctx, names[i], RELAX_I64);
        rx_sym_of(e)->lo = 0;
        rx_push(t->a, &g.ints, e);
    }
    rx_ex syms[2] = {g.ints.at[3], g.ints.at[4]};
    for (uint32_t i = 0; i < 3; i++) {
        rx_ex dims[2] = {g.ints.at[i], i == 2 ? rx_addi(t->ctx, syms[0], 1) : g.ints.at[pick(&g, 3)]};
        params[i] = rx_buffer(t, i ? "Y" : "X", i == 1 ? RELAX_F16 : RELAX_F32, RX_MEM_GLOBAL, dims, 2);
        rx_push(t->a, &g.bufs, params[i]);
    }
    if (pick(&g, 2))
        rx_sym_of(g.ints.at[0])->hi = 2048;
    rx_prim *p = rx_prim_new(t, "random", params, 3, syms, 2, gen_block(&g, 5));
    rx_ex where[2] = {rx_le(t->ctx, g.ints.at[1], g.ints.at[2]),
                      rx_eq(t->ctx, rx_modi(t->ctx, syms[1], 4), rx_int(t->ctx, 0))};
    rx_prim_where(t, p, where, 2);
    return p;
}

static void test_random(void **state)
{
    (void)state;
    tl_heap th;
    relax_context *ctx = tl_context(&th);
    for (uint64_t seed = 1; seed <= 400; seed++) {
        TL_TRY(ctx) {
            rx_tb t = {ctx, rx_scratch(&ctx->heap)};
            rx_prim *p = gen_prim(&t, seed * 77777);
            const char *text = tt_text(&t, p), *again = tt_text(&t, tt_parse(&t, text));
            assert_string_equal(again, text);
            rx_prim *c = rx_prim_copy(&t, p, "random");
            assert_true(rx_prim_equal(ctx, p, c));
            assert_true(rx_prim_hash(ctx, p) == rx_prim_hash(ctx, c));
            assert_string_equal(tt_text(&t, c), text);
            rx_prim_verify(ctx, p, t.a, NULL);         /* whatever it finds, it must end well */
            rx_diag_clear(ctx);
        } TL_END(ctx)
    }
    tl_done(&th, ctx);
}

/* the n-th allocation fails, for every n: the context stays usable */
static void test_oom(void **state)
{
    (void)state;
    tl_heap th;
    relax_context *ctx = tl_context(&th);
    bool done = false;
    for (int n = 1; !done && n < 2000; n++) {
        rx_frame f;
        tl_fail(&th, n, false);
        if (RX_ENTER(&ctx->heap, &f)) {
            rx_tb t = {ctx, rx_scratch(&ctx->heap)};
            rx_prim *p = tt_parse(&t, prints[3].in);
            tt_text(&t, rx_prim_guard(&t, rx_prim_copy(&t, p, "q")));
            done = true;
            rx_leave(&ctx->heap, &f);
        }
        tl_fail(&th, 0, false);
        rx_diag_clear(ctx);
    }
    assert_true(done);
    tl_done(&th, ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_print),    cmocka_unit_test(test_names),  cmocka_unit_test(test_equal),
        cmocka_unit_test(test_bad_text), cmocka_unit_test(test_verify), cmocka_unit_test(test_verify_built),
        cmocka_unit_test(test_analysis), cmocka_unit_test(test_random), cmocka_unit_test(test_oom),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
