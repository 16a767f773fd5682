/* test_core.c: data types and casts, diagnostics, context, targets. */
#include "testlib.h"

#include <math.h>

/* --- data types --- */
static void test_dtypes(void **state)
{
    (void)state;
    static const size_t bytes[] = {0, 1, 1, 2, 4, 8, 1, 2, 4, 8, 2, 2, 4, 8, 1, 1};
    for (relax_dtype t = 0; t < RELAX_DTYPE_COUNT; t++) {
        const char *name = rx_dtypes[t].name;
        assert_int_equal(rx_dtype_parse(name, strlen(name)), t);
        assert_int_equal(rx_dtype_bytes(t), bytes[t]);
    }
    assert_int_equal(rx_dtype_parse("f3", 2), RELAX_DTYPE_UNKNOWN);
    assert_int_equal(rx_dtype_bytes(-1), 0);
    assert_int_equal(rx_dtype_bytes(99), 0);
    assert_true(rx_dtype_is_float(RELAX_BF16) && !rx_dtype_is_float(RELAX_I8));
    assert_true(rx_dtype_is_int(RELAX_U8) && !rx_dtype_is_int(RELAX_BOOL));
    assert_true(rx_dtype_is_uint(RELAX_U64) && !rx_dtype_is_uint(RELAX_I64));
    static const struct {
        relax_dtype t;
        int64_t lo, hi;
    } rows[] = {
        {RELAX_BOOL, 0, 1}, {RELAX_I8, -128, 127},      {RELAX_I64, INT64_MIN, INT64_MAX},
        {RELAX_U8, 0, 255}, {RELAX_U32, 0, UINT32_MAX}, {RELAX_U64, 0, INT64_MAX},
        {RELAX_F32, 0, 0},
    };
    for (size_t i = 0; i < RX_COUNT(rows); i++) {
        int64_t lo, hi;
        rx_dtype_int_range(rows[i].t, &lo, &hi);
        assert_true(lo == rows[i].lo && hi == rows[i].hi);
    }
}

static uint64_t as_bits(relax_dtype to, double v)
{
    uint64_t b = 0;
    rx_store_f64(to, &b, v);
    return b;
}

static void test_store_float(void **state)
{
    (void)state;
    static const struct {
        relax_dtype to;
        double v;
        uint64_t bits;
    } rows[] = {
        {RELAX_I8, 127.9, 127},
        {RELAX_I8, 128, 127},
        {RELAX_I8, -1000, 0x80},
        {RELAX_I8, -0.9, 0},
        {RELAX_I8, NAN, 0},
        {RELAX_I8, INFINITY, 127},
        {RELAX_I32, 3e9, 0x7FFFFFFF},
        {RELAX_I32, -3e9, 0x80000000},
        {RELAX_I64, 1e19, INT64_MAX},
        {RELAX_I64, -1e19, 1ull << 63},
        {RELAX_U8, -1, 0},
        {RELAX_U8, 256, 255},
        {RELAX_U32, 4294967295.5, UINT32_MAX},
        {RELAX_U64, 1e19, 10000000000000000000ull},
        {RELAX_U64, 1e20, UINT64_MAX},
        {RELAX_U64, -5, 0},
        {RELAX_U64, NAN, 0},
        {RELAX_BOOL, 0.001, 1},
        {RELAX_BOOL, -0.0, 0},
        {RELAX_BOOL, NAN, 1},
        {RELAX_F16, 65520, 0x7C00},
        {RELAX_F16, -1, 0xBC00},
        {RELAX_BF16, 1e39, 0x7F80},
        {RELAX_F32, 1e39, 0x7F800000},
        {RELAX_F8E4M3, 448, 0x7E},
        {RELAX_F8E4M3, 464, 0x7E},
        {RELAX_F8E4M3, 465, 0x7F},
        {RELAX_F8E4M3, -INFINITY, 0xFF},
        {RELAX_F8E4M3, NAN, 0x7F},
        {RELAX_F8E4M3, 0x1p-9, 1},
        {RELAX_F8E4M3, 0x1p-10, 0},
        {RELAX_F8E4M3, 0x1.8p-9, 2},
        {RELAX_F8E4M3, 1, 0x38},
        {RELAX_F8E5M2, 57344, 0x7B},
        {RELAX_F8E5M2, 61439, 0x7B},
        {RELAX_F8E5M2, 61440, 0x7C},
        {RELAX_F8E5M2, 1, 0x3C},
        {RELAX_F8E5M2, 0x1p-16, 1},
        {RELAX_F8E5M2, -0.0, 0x80},
    };
    for (size_t i = 0; i < RX_COUNT(rows); i++)
        assert_int_equal(as_bits(rows[i].to, rows[i].v), rows[i].bits);
    for (unsigned c = 0; c < 256; c++)
        for (relax_dtype t = RELAX_F8E4M3; t <= RELAX_F8E5M2; t++) {
            double v = rx_load_f64(t, &(uint8_t){(uint8_t)c});
            if (v == v)
                assert_int_equal(as_bits(t, v), c);
        }
}

/* convert against what C says, through every pair of types that can hold the value exactly */
static void test_convert(void **state)
{
    (void)state;
    static const double exact[] = {0, 1, 2, 3, 5, 96, 120};
    for (size_t i = 0; i < RX_COUNT(exact); i++)
        for (relax_dtype from = 1; from < RELAX_DTYPE_COUNT; from++)
            for (relax_dtype to = 1; to < RELAX_DTYPE_COUNT; to++) {
                if (exact[i] > 1 && (from == RELAX_BOOL || to == RELAX_BOOL))
                    continue;
                if (exact[i] > 96 && (from == RELAX_F8E5M2 || to == RELAX_F8E5M2))
                    continue;
                uint8_t a[9], b[9];
                rx_store_f64(from, a + 1, exact[i]); /* unaligned on purpose */
                rx_convert(to, b + 1, from, a + 1);
                assert_true(rx_load_f64(to, b + 1) == exact[i]);
                assert_int_equal(rx_load_i64(to, b + 1), (int64_t)exact[i]);
            }
    int64_t big = INT64_MIN + 200, wide = ((int64_t)1 << 53) + 1;
    uint64_t all = UINT64_MAX;
    float f;
    double d;
    int8_t c;
    uint16_t h;
    rx_convert(RELAX_I8, &c, RELAX_I64, &big);
    assert_int_equal(c, -56); /* 200 wraps */
    rx_convert(RELAX_F64, &d, RELAX_U64, &all);
    assert_true(d == 0x1p64);
    rx_convert(RELAX_F32, &f, RELAX_U64, &all);
    assert_true(f == 0x1p64f);
    rx_convert(RELAX_BF16, &h, RELAX_U64, &all);
    assert_int_equal(h, 0x5F80);
    rx_convert(RELAX_F64, &d, RELAX_I64, &wide);
    assert_true(d == 0x1p53);
    f = -NAN;
    uint32_t in, out;
    memcpy(&in, &f, 4);
    rx_convert(RELAX_F32, &out, RELAX_F32, &in);
    assert_int_equal(in, out);
}

/* --- diagnostics --- */
static void test_diagnostics(void **state)
{
    (void)state;
    tl_heap th;
    relax_context *ctx = tl_context(&th);
    assert_int_equal(rx_diag_status(ctx), RELAX_OK);
    rx_note(ctx, "dropped");
    char name[] = "main";
    rx_where w = {.function = name, .binding = "y", .file = "a.rx", .line = 3, .col = 7};
    assert_int_equal(rx_error(ctx, RXE_SHAPE, &w, "check n", "%s differs from %d", "n", 4), RELAX_E_SHAPE);
    rx_note(ctx, "first %d", 1);
    rx_note(ctx, "second");
    name[0] = 'X';
    assert_int_equal(rx_error(NULL, RXE_DTYPE, NULL, NULL, "%s", ""), RELAX_E_TYPE);
    assert_int_equal(rx_diag_count(ctx), 1);
    const rx_diag *d = rx_diag_at(ctx, 0);
    assert_int_equal(d->err, 2104);
    assert_string_equal(d->message, "n differs from 4");
    assert_string_equal(d->hint, "check n");
    assert_string_equal(d->where.function, "main");
    assert_string_equal(d->where.binding, "y");
    assert_string_equal(d->where.file, "a.rx");
    assert_int_equal(d->where.line, 3);
    assert_string_equal(d->notes->text, "first 1");
    assert_string_equal(d->notes->next->text, "second");
    assert_null(rx_diag_at(ctx, 1));
    for (int i = 0; i < 3000; i++)
        rx_report(ctx, RXE_SYNTAX, NULL, NULL, "number %d", i);
    uint32_t n = rx_diag_count(ctx);
    assert_true(n >= 1000 && n < 3000);
    assert_string_equal(rx_diag_at(ctx, n - 1)->message, "number 2999");
    rx_diag_truncate(ctx, 1);
    assert_int_equal(rx_diag_status(ctx), RELAX_E_SHAPE);
    rx_diag_clear(ctx);
    assert_int_equal(rx_diag_count(ctx), 0);
    TL_TRY(ctx)
    {
        rx_fail_hint(ctx, RXE_AXIS, NULL, "h", "axis %d", 9);
    }
    TL_END_FAILS(ctx, RXE_AXIS)
    TL_TRY(ctx)
    {
        RX_CHECK(ctx, 1 + 1 == 3);
    }
    TL_END_FAILS(ctx, RXE_INTERNAL)
    tl_done(&th, ctx);
}

static void test_out_of_memory(void **state)
{
    (void)state;
    tl_heap th;
    relax_context *ctx = tl_context(&th);
    for (int i = 0; i < 10; i++) {
        tl_fail(&th, 1, true);
        TL_TRY(ctx)
        {
            rx_arena_alloc(rx_scratch(&ctx->heap), 1 << 20, 8);
        }
        TL_END_FAILS(ctx, RXE_OOM)
        /* a full table, other errors: the newest is always there, with the sentence of the table for its text */
        for (int j = 0; j < 10; j++)
            rx_report(ctx, RXE_SHAPE, NULL, "hint", "long text %d", j);
        assert_int_equal(tl_last_error(ctx), RXE_SHAPE);
        const rx_diag *d = rx_diag_at(ctx, rx_diag_count(ctx) - 1);
        assert_string_equal(d->message, rx_err_text(RXE_SHAPE));
        rx_note(ctx, "dropped");
        rx_error(ctx, RXE_OOM, NULL, NULL, "out of memory");
        assert_int_equal(rx_diag_status(ctx), RELAX_E_NOMEM);
        tl_fail(&th, 0, false);
        rx_diag_clear(ctx);
    }
    tl_done(&th, ctx);
    for (int n = 1; n <= 2; n++) {
        memset(&th, 0, sizeof th);
        th.fail_at = n;
        assert_int_equal(rx_context_create(tl_alloc, &th, &ctx), RELAX_E_NOMEM);
        assert_null(ctx);
        assert_int_equal(th.blocks, 0);
    }
}

/* --- context --- */
static int destroyed;
static void at_destroy_a(relax_context *ctx)
{
    destroyed = destroyed * 10 + 1 + !rx_ctx_ok(ctx);
}
static void at_destroy_b(relax_context *ctx)
{
    destroyed = destroyed * 10 + 3 + !rx_ctx_ok(ctx);
}

static void on_log(void *user, relax_log_level level, const char *text)
{
    snprintf(user, 2000, "%d %s", (int)level, text);
}

static void on_progress(void *user, const char *phase, int64_t done, int64_t total)
{
    (void)phase;
    *(int64_t *)user += done * 100 + total;
}

static int32_t on_cancel(void *user)
{
    return *(int32_t *)user;
}

static void test_context(void **state)
{
    (void)state;
    tl_heap th;
    relax_context *ctx = tl_context(&th);
    char text[2000] = "", big[1500];
    int64_t seen = 0;
    int32_t stop = 0;
    rx_log(ctx, RELAX_LOG_INFO, "nobody listens");
    ctx->log = on_log;
    ctx->log_user = text;
    rx_log(ctx, RELAX_LOG_WARNING, "x = %d", 5);
    assert_string_equal(text, "1 x = 5");
    memset(big, 'y', sizeof big);
    rx_log(ctx, RELAX_LOG_INFO, "%.1500s", big);
    assert_int_equal(strlen(text), 1502);
    ctx->progress = on_progress;
    ctx->progress_user = &seen;
    ctx->cancel = on_cancel;
    ctx->cancel_user = &stop;
    rx_progress(ctx, "test", 2, 7);
    assert_int_equal(seen, 207);
    stop = 1;
    assert_true(rx_cancelled(ctx));
    TL_TRY(ctx)
    {
        rx_progress(ctx, "test", 3, 7);
    }
    TL_END_FAILS(ctx, RXE_CANCELLED)
    ctx->at_destroy[ctx->n_at_destroy++] = at_destroy_a;
    ctx->at_destroy[ctx->n_at_destroy++] = at_destroy_b;
    destroyed = 0;
    assert_true(rx_ctx_ok(ctx));
    assert_false(rx_ctx_ok(NULL));
    tl_done(&th, ctx);
    assert_int_equal(destroyed, 31);
    rx_context_destroy(NULL);
    assert_int_equal(rx_context_create(NULL, NULL, &ctx), RELAX_OK);
    rx_context_destroy(ctx);
}

/* --- targets --- */
static void test_targets(void **state)
{
    (void)state;
    static const struct {
        const char *text, *name; /* name NULL: refused */
        uint32_t features, bits;
    } rows[] = {
        {"null", "null", 0, 128},
        {"cpu:x86-64-v1", "cpu:x86-64-v1", 0, 128},
        {"cpu:x86-64-v2", "cpu:x86-64-v2", RX_F_SSE42, 128},
        {"cpu:x86-64-v3", "cpu:x86-64-v3", RX_F_SSE42 | RX_F_AVX2 | RX_F_FMA | RX_F_F16C | RX_F_BMI2, 256},
        {"cpu:x86-64-v3+avxvnni", "cpu:x86-64-v3+avxvnni", 0, 256},
        {"cpu:x86-64-v3+avx512", "cpu:x86-64-v4", 0, 512},
        {"cpu:x86-64-v1+avx512bf16+avx512vnni", "cpu:x86-64-v4+avx512vnni+avx512bf16", 0, 512},
        {"cpu:x86-64-v2+fma", "cpu:x86-64-v2+fma", RX_F_SSE42 | RX_F_FMA, 128},
        {"cpu:aarch64", "cpu:aarch64", RX_F_NEON, 128},
        {"cpu:aarch64+i8mm+dotprod", "cpu:aarch64+dotprod+i8mm", RX_F_NEON | RX_F_DOTPROD | RX_F_I8MM, 128},
        {"", NULL, 0, 0},
        {"gpu", NULL, 0, 0},
        {"cpux", NULL, 0, 0},
        {"cpu:", NULL, 0, 0},
        {"cpu:x86-64-v9", NULL, 0, 0},
        {"cpu:x86-64-v3+dotprod", NULL, 0, 0},
        {"cpu:x86-64-v3+", NULL, 0, 0},
        {"cpu:x86-64-v3++fma", NULL, 0, 0},
        {"cpu:host+nothing", NULL, 0, 0},
    };
    tl_heap th;
    relax_context *ctx = tl_context(&th);
    for (size_t i = 0; i < RX_COUNT(rows); i++) {
        const char *s = rows[i].text;
        if (!rows[i].name) {
            TL_TRY(ctx)
            {
                rx_target_parse(ctx, s, strlen(s));
            }
            TL_END_FAILS(ctx, RXE_TARGET)
            continue;
        }
        TL_TRY(ctx)
        {
            relax_target *t = rx_target_parse(ctx, s, strlen(s));
            assert_string_equal(t->name, rows[i].name);
            if (rows[i].features)
                assert_int_equal(t->features, rows[i].features);
            assert_int_equal(t->vector_bits, rows[i].bits);
            relax_target *u = rx_target_parse(ctx, t->name, strlen(t->name));
            assert_ptr_equal(u->name, t->name);
            assert_int_equal(u->features, t->features);
        }
        TL_END(ctx)
    }
    TL_TRY(ctx)
    {
        relax_target *a = rx_target_parse(ctx, "cpu", 3), *b = rx_target_parse(ctx, "cpu:host", 8);
        relax_target *c = rx_target_parse(ctx, a->name, strlen(a->name));
        assert_ptr_equal(a->name, b->name);
        assert_int_equal(a->features, rx_host_features());
        assert_int_equal(c->features & ~a->features, 0);
        assert_ptr_equal(c->name, a->name);
        assert_int_equal(a->arch, rx_host_arch());
    }
    TL_END(ctx)
    /* every row of the table is a bit of its own, and its needs are bits of the same architecture */
    uint32_t seen = 0;
    for (uint32_t i = 0; i < rx_n_features; i++) {
        assert_int_equal(seen & rx_features[i].bit, 0);
        assert_int_equal(rx_features[i].needs & rx_features[i].bit, 0);
        assert_true(rx_features[i].llvm[0] == '+');
        seen |= rx_features[i].bit;
    }
    tl_done(&th, ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_dtypes),      cmocka_unit_test(test_store_float),   cmocka_unit_test(test_convert),
        cmocka_unit_test(test_diagnostics), cmocka_unit_test(test_out_of_memory), cmocka_unit_test(test_context),
        cmocka_unit_test(test_targets),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
