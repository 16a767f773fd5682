/* test_tir_interp.c: what scalar operations mean, and what the interpreter refuses. Rows: dtype, expression over a and
 * b (elements of the input), the result as text. */
#include <math.h>
#include "testlib.h"
#include "tirtest.h"

static const struct { const char *type, *expr; double a, b, want;
} rows[] = {
    /* wrap at the width */
    {"i8", "a + b", 100, 100, -56},
    {"i8", "a * b", 100, 3, 44},
    {"u8", "a - b", 3, 5, 254},
    {"i16", "a + b", 32767, 1, -32768},
    {"u16", "a * b", 300, 300, 24464},
    {"i32", "a + b", 2147483647, 1, -2147483648.0},
    {"u32", "a - b", 0, 1, 4294967295.0},
    {"i8", "-a", -128, 0, -128},
    {"i8", "abs(a)", -128, 0, -128},
    {"u8", "~a", 5, 0, 250},
    {"i8", "~a", 5, 0, -6},
    /* division: floor and trunc, by zero, minimum by -1 */
    {"i32", "a // b", -7, 2, -4},
    {"i32", "a % b", -7, 2, 1},
    {"i32", "a // b", 7, -2, -4},
    {"i32", "a % b", 7, -2, -1},
    {"i32", "truncdiv(a, b)", -7, 2, -3},
    {"i32", "truncmod(a, b)", -7, 2, -1},
    {"i32", "a // b", 7, 0, 0},
    {"i32", "a % b", 7, 0, 0},
    {"i8", "a // b", -128, -1, -128},
    {"i8", "a % b", -128, -1, 0},
    {"u8", "a // b", 255, 2, 127},
    {"u8", "truncmod(a, b)", 255, 16, 15},
    {"i32", "pow(a, b)", -3, 3, -27},
    {"i32", "pow(a, b)", 2, -1, 0},
    {"i32", "pow(a, b)", -1, -3, 0},
    {"u8", "pow(a, b)", 3, 6, 217},
    /* shifts */
    {"i32", "a << b", 1, 31, -2147483648.0},
    {"i32", "a << b", 1, 32, 0},
    {"i32", "a << b", 1, -1, 0},
    {"i8", "a >> b", -128, 3, -16},
    {"i8", "a >> b", -128, 8, -1},
    {"i8", "a >> b", 127, 8, 0},
    {"u8", "a >> b", 128, 3, 16},
    {"u8", "a >> b", 128, 8, 0},
    {"u32", "(a >> b) & 15", 4011, 4, 10},
    {"i32", "a & b", 12, 10, 8},
    {"i32", "a | b", 12, 10, 14},
    {"i32", "a ^ b", 12, 10, 6},
    /* unsigned order */
    {"u8", "min(a, b)", 200, 100, 100},
    {"u8", "max(a, b)", 200, 100, 200},
    {"i8", "min(a, b)", -56, 100, -56},
    /* floats */
    {"f32", "a + b", 16777216, 1, 16777216},
    {"f32", "a / b", 1, 3, 0.3333333432674408},
    {"f64", "a / b", 1, 3, 1.0 / 3},
    {"f32", "min(a, b)", NAN, 1, NAN},
    {"f32", "min(a, b)", 1, NAN, NAN},
    {"f32", "max(a, b)", NAN, 1, NAN},
    {"f32", "max(a, b)", 1, NAN, NAN},
    {"f32", "min(a, b)", 0.0, -0.0, -0.0},
    {"f32", "max(a, b)", -0.0, 0.0, 0.0},
    {"f32", "a / b", 1, 0, INFINITY},
    {"f32", "a * b", INFINITY, 0, NAN},
    {"f32", "round(a)", 2.5, 0, 2},
    {"f32", "round(a)", 3.5, 0, 4},
    {"f32", "round(a)", -0.5, 0, -0.0},
    {"f32", "round(a)", -0.3, 0, -0.0},
    {"f32", "round(a)", INFINITY, 0, INFINITY},
    {"f32", "round(a)", -INFINITY, 0, -INFINITY},
    {"f32", "round(a)", 1e30, 0, 1.0000000150474662e30},
    {"f32", "floor(a)", -1.5, 0, -2},
    {"f32", "ceil(a)", -1.5, 0, -1},
    {"f32", "trunc(a)", -1.5, 0, -1},
    {"f32", "fma(a, b, a)", 3, 4, 15},
    {"f32", "exp(a)", 1, 0, 2.7182817459106445},
    {"f32", "rsqrt(a)", 4, 0, 0.5},
    {"f32", "sqrt(a)", -1, 0, NAN},
    {"f32", "erf(a)", 0.5, 0, 0.5204998850822449},
    {"f32", "log(a)", 0, 0, -INFINITY},
    {"f32", "tanh(a)", 100, 0, 1},
    {"f32", "pow(a, b)", 2, 0.5, 1.4142135381698608},
    {"f32", "a // b", -7.5, 2, -4},
    {"f32", "a % b", -7.5, 2, 0.5},
    {"f32", "select(isnan(a), 1.0, b)", NAN, 7, 1},
    {"f32", "-a", 0, 0, -0.0},
    {"f32", "abs(a)", -0.0, 0, 0},
    /* every node of a narrow float is rounded: 2048 + 1 is 2048 in f16 */
    {"f16", "a + b + b", 2048, 1, 2048},
    {"f16", "f16(f32(a) + f32(b) + f32(b))", 2048, 1, 2050},
    {"f16", "a * b", 60000, 2, INFINITY},
    {"bf16", "a + b", 256, 1, 256},
    {"bf16", "a + b", 258, 1, 260},
    {"f16", "a / b", 1, 3, 0.333251953125},
    /* casts through the type and back */
    {"f32", "f32(i8(a))", 300, 0, 127},
    {"f32", "f32(i8(a))", -300, 0, -128},
    {"f32", "f32(u8(a))", -3.7, 0, 0},
    {"f32", "f32(i32(a))", NAN, 0, 0},
    {"f32", "f32(i32(a))", -3.7, 0, -3},
    {"f32", "f32(i64(a))", 1e30, 0, 9223372036854775808.0},
    {"f32", "f32(bool(a))", 0.5, 0, 1},
    {"f32", "f32(f16(a))", 65520, 0, INFINITY},
    {"i32", "i32(i8(a))", 300, 0, 44},
    {"i32", "i32(u8(a))", -1, 0, 255},
    {"i32", "bitcast(i32, f32(a))", 1, 0, 1065353216},
    {"i32", "i32(a < b)", 1, 2, 1},
    {"i32", "i32(not (a < b) or a == b)", 1, 2, 0},
    {"u64", "u64(i64(a) - 1)", 0, 0, 18446744073709551615.0},
};

static void check_value(relax_context *ctx, size_t i)
{
    char text[512];
    rx_tb t = {ctx, rx_scratch(&ctx->heap)};
    snprintf(text, sizeof text,
             "prim f(A: Buffer((2,), %s), Y: Buffer((), %s)) { let a: %s = A[0] let b: %s = A[1] Y[] = %s }",
             rows[i].type, rows[i].type, rows[i].type, rows[i].type, rows[i].expr);
    rx_prim *p = tt_parse(&t, text);
    relax_dtype dt = p->params[0]->dtype;
    uint64_t a[2] = {0, 0}, y = 0;
    char *second = (char *)a + rx_dtype_bytes(dt);
    if (rx_dtype_is_float(dt)) {
        rx_store_f64(dt, a, rows[i].a);
        rx_store_f64(dt, second, rows[i].b);
    } else {
        rx_store_i64(dt, a, (int64_t)rows[i].a);
        rx_store_i64(dt, second, (int64_t)rows[i].b);
    }
    void *bufs[2] = {a, &y};
    rx_interp_prim(ctx, p, bufs, NULL);
    double got = rx_load_f64(dt, &y);
    if (got != rows[i].want ? !(isnan(got) && isnan(rows[i].want)) : signbit(got) != signbit(rows[i].want))
        fail_msg("%s with a = %.17g, b = %.17g in %s: %.17g, not %.17g", rows[i].expr, rows[i].a, rows[i].b,
                 rows[i].type, got, rows[i].want);
}

static void test_values(void **state)
{
    (void)state;
    tl_heap th;
    relax_context *ctx = tl_context(&th);
    for (size_t i = 0; i < RX_COUNT(rows); i++) {
        TL_TRY(ctx) {
            check_value(ctx, i);
        } TL_END(ctx)
    }
    tl_done(&th, ctx);
}

/* folding and running agree: constants for a and b give what loads give */
static void test_folding(void **state)
{
    (void)state;
    static const char *const types[] = {"i8", "u8", "i16", "u16", "i32", "u32", "f16", "bf16", "f32", "f64"};
    static const char *const ops[] = {"a + b",  "a - b",      "a * b",       "min(a, b)",   "max(a, b)",
                                      "-a",     "abs(a)",     "i32(a)",      "f32(a)",      "u8(a)",
                                      "f16(b)", "i32(a < b)", "i32(a <= b)", "i32(a == b)", "select(a < b, a, b)"};
    static const double values[] = {0,    1,   -1,  2,     3,      7,     100, 127,  128,
                                    -128, 255, 256, 32767, -32768, 65535, 0.5, -1.5, 2.25};
    tl_heap th;
    relax_context *ctx = tl_context(&th);
    for (size_t k = 0; k < RX_COUNT(types) * RX_COUNT(ops); k++) {
        TL_TRY(ctx) {
            rx_tb t = {ctx, rx_scratch(&ctx->heap)};
            const char *type = types[k % RX_COUNT(types)], *op = ops[k / RX_COUNT(types)];
            char text[512];
            snprintf(
                text, sizeof text,
                "prim f(A: Buffer((2,), %s), Y: Buffer((), f64)) { let a: %s = A[0] let b: %s = A[1] Y[] = f64(%s) }",
                type, type, type, op);
            rx_prim *p = tt_parse(&t, text);
            relax_dtype dt = p->params[0]->dtype;
            rx_stmt *la = p->body, *lb = la->u.let.body;
            for (size_t v = 0; v < RX_COUNT(values) * RX_COUNT(values); v++) {
                uint64_t a[2] = {0, 0};
                double x[2] = {values[v % RX_COUNT(values)], values[v / RX_COUNT(values)]}, run, fold;
                rx_ex c[2];
                rx_map m;
                rx_map_init(&m, t.a);
                for (int i = 0; i < 2; i++) {
                    char *at = (char *)a + (size_t)i * rx_dtype_bytes(dt);
                    rx_store_f64(dt, at, x[i]);
                    c[i] = rx_dtype_is_float(dt) ? rx_const_float(ctx, dt, rx_load_f64(dt, at))
                                                 : rx_const_int(ctx, dt, rx_load_i64(dt, at));
                    rx_map_put(&m, RX_KEY(i ? lb->u.let.var : la->u.let.var), (void *)c[i]);
                }
                void *bufs[2] = {a, &run};
                rx_interp_prim(ctx, p, bufs, NULL);
                rx_ex e = rx_subst(ctx, lb->u.let.body->u.store.value, &m);
                bufs[1] = &fold;
                rx_interp_prim(ctx, rx_prim_new(&t, "g", p->params, 2, NULL, 0, rx_store(&t, p->params[1], NULL, 0, e)),
                               bufs, NULL);
                if (memcmp(&run, &fold, 8) && (run == run || fold == fold))
                    fail_msg("%s in %s, a = %g, b = %g: run %g, folded %g", op, type, x[0], x[1], run, fold);
            }
        } TL_END(ctx)
    }
    tl_done(&th, ctx);
}

static const struct { int err; const char *text;
} refused[] = {
    {RXE_INDEX, "prim f(X: Buffer((4,), f32), Y: Buffer((4,), f32)) { for i in 5 { Y[i] = 1.0 } }"},
    {RXE_INDEX, "prim f(X: Buffer((4,), f32), Y: Buffer((4,), f32)) { for i in 4 { Y[i] = X[i - 1] } }"},
    {RXE_INDEX, "prim f(X: Buffer((4,), f32), Y: Buffer((4,), f32)) { S = alloc((2, 2), f32, local) S[0, 2] = 1.0 }"},
    {RXE_INDEX, "prim f(X: Buffer((4,), f32), Y: Buffer((4,), f32)) { assert 4 < 3, index \"no\" }"},
    {RXE_DIV_ZERO,
     "prim f(X: Buffer((4,), f32), Y: Buffer((4,), f32)) { let k: i64 = 0 assert k != 0, div_zero \"no\" }"},
    {0, "prim f(X: Buffer((4,), f32), Y: Buffer((4,), f32)) { for i in 9 { Y[0] = select(i < 4, X[i], 0.0) } }"},
    {0, "prim f(X: Buffer((4,), f32), Y: Buffer((4,), f32)) { for i in -3 { Y[9] = 1.0 } for i in 2..1 { Y[9] = 1.0 } "
        "prefetch X[77] }"},
};

static void test_refused(void **state)
{
    (void)state;
    tl_heap th;
    relax_context *ctx = tl_context(&th);
    for (size_t i = 0; i < RX_COUNT(refused); i++) {
        volatile bool ok = false;
        rx_frame f;
        if (RX_ENTER(&ctx->heap, &f)) {
            rx_tb t = {ctx, rx_scratch(&ctx->heap)};
            float x[4] = {1, 2, 3, 4}, y[4] = {0};
            void *bufs[2] = {x, y};
            rx_interp_prim(ctx, tt_parse(&t, refused[i].text), bufs, NULL);
            ok = true;
            rx_leave(&ctx->heap, &f);
        }
        if (ok != (refused[i].err == 0) || (!ok && tl_last_error(ctx) != refused[i].err))
            fail_msg("RX%d: %s", tl_last_error(ctx), refused[i].text);
        rx_diag_clear(ctx);
    }
    tl_done(&th, ctx);
}

/* undefined contents show, guards stop what is out of bounds, a cancelled loop ends */
static int32_t stop(void *user)
{
    (void)user;
    return 1;
}

static void test_running(void **state)
{
    (void)state;
    tl_heap th;
    relax_context *ctx = tl_context(&th);
    TL_TRY(ctx) {
        rx_tb t = {ctx, rx_scratch(&ctx->heap)};
        uint8_t y[3] = {0};
        void *bufs[1] = {y};
        rx_interp_prim(
            ctx,
            tt_parse(&t,
                     "prim f(Y: Buffer((3,), u8)) { for i in 3 { S = alloc((2,), u8, local) Y[i] = S[1] S[1] = 0 } }"),
            bufs, NULL);
        assert_int_equal(y[0], 0xA5);
        assert_int_equal(y[2], 0xA5);
    } TL_END(ctx)
    TL_TRY(ctx) {
        rx_tb t = {ctx, rx_scratch(&ctx->heap)};
        rx_prim *p = tt_parse(&t, "prim f(I: Buffer((2,), i64), X: Buffer((n,), f32), Y: Buffer((2,), f32)) { for i in "
                                  "2 { Y[i] = X[I[i]] } }");
        int64_t index[2] = {1, 5}, n = 4;
        float x[4] = {1, 2, 3, 4}, y[2];
        void *bufs[3] = {index, x, y};
        rx_interp_prim(ctx, rx_prim_guard(&t, p), bufs, &n);
    } TL_END_FAILS(ctx, RXE_INDEX)
    ctx->cancel = stop;
    TL_TRY(ctx) {
        rx_tb t = {ctx, rx_scratch(&ctx->heap)};
        float y = 0;
        void *bufs[1] = {&y};
        rx_interp_prim(ctx, tt_parse(&t, "prim f(Y: Buffer((), f32)) { for i in 1 << 40 { Y[] = 1.0 } }"), bufs, NULL);
    } TL_END_FAILS(ctx, RXE_CANCELLED)
    tl_done(&th, ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_values), cmocka_unit_test(test_folding),
                                       cmocka_unit_test(test_refused), cmocka_unit_test(test_running)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
