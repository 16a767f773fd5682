/* test_gguf.c: the GGUF and safetensors readers: what they read, and that damaged files are refused, soon and small. */
#include "testlib.h"

#include "ggufwrite.h"
#include "import/import.h"

/* --- a file with every value type and some tensors --- */

typedef struct sample { gw w; size_t n_tensors_at, n_kv_at, kv_at, tensors_at, data_at; } sample;

static void write_scalars(gw *w)
{
    static const struct { const char *key; rx_gguf_kind kind; uint64_t bits; int bytes; } rows[] = {
        {"u8", RX_GGUF_U8, 200, 1},    {"i8", RX_GGUF_I8, 0xFE, 1},     {"u16", RX_GGUF_U16, 60000, 2},
        {"i16", RX_GGUF_I16, 0xFFFE, 2}, {"u32", RX_GGUF_U32, 4000000000u, 4}, {"i32", RX_GGUF_I32, 0xFFFFFFFEu, 4},
        {"f32", RX_GGUF_F32, 0x3FC00000u, 4}, {"bool", RX_GGUF_BOOL, 1, 1}, {"u64", RX_GGUF_U64, 1ull << 40, 8},
        {"i64", RX_GGUF_I64, (uint64_t)-2, 8}, {"f64", RX_GGUF_F64, 0x4004000000000000u, 8},
        {"big", RX_GGUF_U64, UINT64_MAX, 8},
    };
    for (size_t i = 0; i < RX_COUNT(rows); i++) {
        gw_key(w, rows[i].key, rows[i].kind);
        gw_uint(w, rows[i].bits, rows[i].bytes);
    }
}

static sample write_sample(uint32_t version, size_t padding)
{
    static const uint64_t dims2[] = {64, 3}, dims1[] = {5}, dims0[] = {0, 7}, dims4[] = {256, 1, 2, 1};
    sample s = {.n_tensors_at = 8, .n_kv_at = 16, .kv_at = 24};
    gw *w = &s.w;
    gw_header(w, version, 5, 18);
    write_scalars(w);
    gw_kv_str(w, "str", "text");
    gw_kv_u32(w, "general.alignment", 64);
    gw_array(w, "ints", RX_GGUF_I16, 3);
    gw_uint(w, 1, 2), gw_uint(w, 0xFFFF, 2), gw_uint(w, 300, 2);
    gw_array(w, "floats", RX_GGUF_F32, 2);
    gw_float(w, 0.5f), gw_float(w, -2);
    gw_array(w, "strs", RX_GGUF_STR, 3);
    gw_str(w, "one"), gw_str(w, ""), gw_str(w, "three");
    gw_array(w, "pad", RX_GGUF_U8, padding);
    for (size_t i = 0; i < padding; i++)
        gw_uint(w, i, 1);
    s.tensors_at = w->n;
    gw_tensor(w, "q", 2, dims2, RX_GGML_Q4_0, 0);            /* 3 rows of 2 blocks: 108 bytes */
    gw_tensor(w, "none", 2, dims0, RX_GGML_F32, 128);
    gw_tensor(w, "f", 1, dims1, RX_GGML_F32, 128);
    gw_tensor(w, "k", 4, dims4, RX_GGML_Q4_K, 192);          /* 288 bytes */
    gw_tensor(w, "scalar", 0, NULL, RX_GGML_F64, 512);
    gw_pad(w, 64);
    s.data_at = w->n;
    for (size_t i = 0; i < 520; i++)
        gw_uint(w, i * 7, 1);
    return s;
}

/* Opens a copy of exactly n bytes, so that a sanitizer sees a read past the end. Returns the error, 0 if it opens. */
static int open_error(relax_context *ctx, const uint8_t *bytes, size_t n, bool safetensors)
{
    rx_frame f;
    volatile bool ok = false;
    uint8_t *copy = malloc(n ? n : 1);
    assert_non_null(copy);
    if (n)
        memcpy(copy, bytes, n);
    if (RX_ENTER(&ctx->heap, &f)) {
        if (safetensors)
            rx_safetensors_open(ctx, rx_scratch(&ctx->heap), copy, n);
        else
            rx_gguf_open(ctx, rx_scratch(&ctx->heap), copy, n);
        ok = true;
        rx_leave(&ctx->heap, &f);
    }
    free(copy);
    int err = ok ? 0 : tl_last_error(ctx);
    rx_diag_clear(ctx);
    return err;
}

static bool is_file_error(int e)
{
    return e == RXE_FILE_MAGIC || e == RXE_FILE_CORRUPT || e == RXE_FILE_VERSION || e == RXE_UNSUPPORTED;
}

static void check_tensors(const rx_gguf *g, size_t data_at)
{
    assert_int_equal(g->n_tensors, 5);
    const rx_gguf_tensor *t = rx_gguf_find_tensor(g, "q");
    assert_int_equal(t->ndim, 2);
    assert_true(t->dims[0] == 3 && t->dims[1] == 64 && t->n_values == 192);
    assert_int_equal(t->bytes, 108);
    assert_ptr_equal(t->data, g->bytes + data_at);
    t = rx_gguf_find_tensor(g, "none");
    assert_true(t->n_values == 0 && t->bytes == 0 && t->dims[0] == 7 && t->dims[1] == 0);
    t = rx_gguf_find_tensor(g, "k");
    assert_true(t->ndim == 4 && t->dims[3] == 256 && t->dims[1] == 2 && t->bytes == 288);
    assert_ptr_equal(t->data, g->bytes + data_at + 192);
    t = rx_gguf_find_tensor(g, "scalar");
    assert_true(t->ndim == 0 && t->n_values == 1 && t->bytes == 8);
    assert_string_equal(g->tensors[2].name, "f");
    assert_null(rx_gguf_find_tensor(g, "absent"));
}

static void check_values(const rx_gguf *g, relax_context *ctx)
{
    static const struct { const char *key; int64_t v; } ints[] = {
        {"u8", 200}, {"i8", -2}, {"u16", 60000}, {"i16", -2}, {"u32", 4000000000}, {"i32", -2},
        {"u64", (int64_t)1 << 40}, {"i64", -2}, {"absent", 77},
    };
    for (size_t i = 0; i < RX_COUNT(ints); i++)
        assert_int_equal(rx_gguf_get_int(g, ints[i].key, 77), ints[i].v);
    assert_true(rx_gguf_need_float(g, "f32") == 1.5 && rx_gguf_get_float(g, "f64", 0) == 2.5);
    assert_true(rx_gguf_get_float(g, "absent", 0.25) == 0.25);
    assert_true(rx_gguf_get_bool(g, "bool", false) && rx_gguf_get_bool(g, "absent", true));
    assert_true(rx_view_is(rx_gguf_need_str(g, "str"), "text"));
    assert_null(rx_gguf_get_str(g, "absent").at);
    rx_gguf_array a;
    assert_true(rx_gguf_get_array(g, "ints", &a) && a.n == 3);
    assert_true(rx_gguf_array_int(g, &a, 0) == 1 && rx_gguf_array_int(g, &a, 1) == -1 &&
                rx_gguf_array_int(g, &a, 2) == 300);
    assert_true(rx_gguf_get_array(g, "floats", &a) && a.n == 2);
    assert_true(rx_gguf_array_float(g, &a, 1) == -2);
    assert_true(rx_gguf_get_array(g, "strs", &a) && a.n == 3);
    rx_view *v = rx_gguf_array_strings(g, &a, &ctx->arena);
    assert_true(rx_view_is(v[0], "one") && rx_view_is(v[1], "") && rx_view_is(v[2], "three"));
    assert_false(rx_gguf_get_array(g, "absent", &a));
}

static void test_reads(void **state)
{
    (void)state;
    for (uint32_t version = 2; version <= 3; version++) {
        sample s = write_sample(version, 3);
        tl_heap th;
        relax_context *ctx = tl_context(&th);
        TL_TRY(ctx)
        {
            const rx_gguf *g = rx_gguf_open(ctx, &ctx->arena, s.w.at, s.w.n);
            assert_int_equal(g->version, version);
            assert_int_equal(g->alignment, 64);
            check_tensors(g, s.data_at);
            check_values(g, ctx);
        }
        TL_END(ctx)
        tl_done(&th, ctx);
        free(s.w.at);
    }
}

/* every getter on every key: the right kind or an error, never a reinterpretation */
static void test_wrong_types(void **state)
{
    (void)state;
    static const char *const keys[] = {"u8",  "i8",  "u16", "i16", "u32",  "i32",    "f32",  "bool",  "u64",
                                       "i64", "f64", "big", "str", "ints", "floats", "strs", "absent"};
    /* which of int, float, bool, string, array, need_int succeed */
    static const uint8_t good[] = {33, 33, 33, 33, 33, 33, 2, 4, 33, 33, 2, 0, 8, 16, 16, 16, 31};
    sample s = write_sample(3, 0);
    tl_heap th;
    relax_context *ctx = tl_context(&th);
    for (volatile size_t i = 0; i < RX_COUNT(keys); i++) {
        for (volatile int k = 0; k < 6; k++) {
            rx_frame f;
            volatile bool ok = false;
            if (RX_ENTER(&ctx->heap, &f)) {
                const rx_gguf *g = rx_gguf_open(ctx, rx_scratch(&ctx->heap), s.w.at, s.w.n);
                rx_gguf_array a;
                switch (k) {
                case 0: rx_gguf_get_int(g, keys[i], 0); break;
                case 1: rx_gguf_get_float(g, keys[i], 0); break;
                case 2: rx_gguf_get_bool(g, keys[i], 0); break;
                case 3: rx_gguf_get_str(g, keys[i]); break;
                case 4: rx_gguf_get_array(g, keys[i], &a); break;
                default: rx_gguf_need_int(g, keys[i]); break;
                }
                ok = true;
                rx_leave(&ctx->heap, &f);
            }
            if (ok != (good[i] >> k & 1))
                fail_msg("getter %d of '%s'", k, keys[i]);
            if (!ok)
                assert_int_equal(tl_last_error(ctx), i + 1 == RX_COUNT(keys) ? RXE_NOT_FOUND : RXE_FILE_CORRUPT);
            rx_diag_clear(ctx);
        }
    }
    TL_TRY(ctx)
    {
        rx_gguf_array a;
        const rx_gguf *g = rx_gguf_open(ctx, rx_scratch(&ctx->heap), s.w.at, s.w.n);
        rx_gguf_get_array(g, "ints", &a);
        rx_gguf_array_int(g, &a, 3);
    }
    TL_END_FAILS(ctx, RXE_FILE_CORRUPT)
    TL_TRY(ctx)
    {
        rx_gguf_array a;
        const rx_gguf *g = rx_gguf_open(ctx, rx_scratch(&ctx->heap), s.w.at, s.w.n);
        rx_gguf_get_array(g, "ints", &a);
        rx_gguf_array_strings(g, &a, &ctx->arena);
    }
    TL_END_FAILS(ctx, RXE_FILE_CORRUPT)
    TL_TRY(ctx)
    {
        rx_gguf_array a;
        const rx_gguf *g = rx_gguf_open(ctx, rx_scratch(&ctx->heap), s.w.at, s.w.n);
        rx_gguf_get_array(g, "strs", &a);
        rx_gguf_array_int(g, &a, 0);
    }
    TL_END_FAILS(ctx, RXE_FILE_CORRUPT)
    tl_done(&th, ctx);
    free(s.w.at);
}

/* cut everywhere in the small file, at every 997th byte of a larger one: never opens, never reads past the end */
static void test_truncation(void **state)
{
    (void)state;
    tl_heap th;
    relax_context *ctx = tl_context(&th);
    for (int big = 0; big < 2; big++) {
        sample s = write_sample(3, big ? 200000 : 3);
        for (size_t n = 0; n < s.w.n; n += big ? 997 : 1) {
            int e = open_error(ctx, s.w.at, n, false);
            if (!is_file_error(e))
                fail_msg("cut at %zu of %zu: error %d", n, s.w.n, e);
        }
        assert_int_equal(open_error(ctx, s.w.at, s.w.n, false), 0);
        free(s.w.at);
    }
    tl_done(&th, ctx);
}

/* each byte before the data set to telling values: opens or is refused as a file error, nothing else */
static void test_corruption(void **state)
{
    (void)state;
    static const uint8_t values[] = {0, 1, 0x7F, 0x80, 0xFF};
    tl_heap th;
    relax_context *ctx = tl_context(&th);
    sample s = write_sample(3, 3);
    int refused = 0;
    for (size_t i = 0; i < s.data_at; i++) {
        uint8_t was = s.w.at[i];
        for (size_t k = 0; k < RX_COUNT(values); k++) {
            s.w.at[i] = values[k];
            int e = open_error(ctx, s.w.at, s.w.n, false);
            if (e && !is_file_error(e))
                fail_msg("byte %zu = %d: error %d", i, values[k], e);
            refused += e != 0;
        }
        s.w.at[i] = was;
    }
    assert_true(refused > 500);
    tl_done(&th, ctx);
    free(s.w.at);
}

static void put64(uint8_t *p, uint64_t v)
{
    for (int i = 0; i < 8; i++)
        p[i] = (uint8_t)(v >> (8 * i));
}

/* counts that no file can hold are refused before anything is allocated */
static void test_huge_counts(void **state)
{
    (void)state;
    static const uint64_t counts[] = {UINT64_MAX, UINT64_MAX / 2, (uint64_t)1 << 32, 1000};
    tl_heap th;
    relax_context *ctx = tl_context(&th);
    sample s = write_sample(3, 3);
    const size_t at[] = {s.n_tensors_at, s.n_kv_at, s.kv_at, s.tensors_at, s.tensors_at + 8 + 1 + 4};
    int64_t start = rx_now_ns();
    for (size_t i = 0; i < RX_COUNT(at); i++) {
        for (size_t k = 0; k < RX_COUNT(counts); k++) {
            uint8_t was[8];
            memcpy(was, s.w.at + at[i], 8);
            put64(s.w.at + at[i], counts[k]);
            size_t live = ctx->heap.live;
            ctx->heap.peak = live;
            assert_true(is_file_error(open_error(ctx, s.w.at, s.w.n, false)));
            assert_true(ctx->heap.peak - live < 1 << 20);
            memcpy(s.w.at + at[i], was, 8);
        }
    }
    assert_true(rx_now_ns() - start < 1000000000);
    tl_done(&th, ctx);
    free(s.w.at);
}

/* --- single rules: a file of one tensor or one entry, and the error it must give --- */

static int one_tensor(relax_context *ctx, uint32_t ndim, const uint64_t *dims, uint32_t type, uint64_t offset,
                      size_t data)
{
    gw w = {0};
    gw_header(&w, 3, 1, 0);
    gw_tensor(&w, "t", ndim, dims, type, offset);
    gw_pad(&w, 32);
    for (size_t i = 0; i < data; i++)
        gw_uint(&w, 0, 1);
    int e = open_error(ctx, w.at, w.n, false);
    free(w.at);
    return e;
}

static void test_tensor_rules(void **state)
{
    (void)state;
    enum { BAD = RXE_FILE_CORRUPT, UNS = RXE_UNSUPPORTED };
    static const struct {
        uint32_t ndim;
        uint64_t dims[5];
        uint32_t type;
        uint64_t offset;
        size_t data;
        int want;
    } rows[] = {
        {1, {8}, RX_GGML_F32, 0, 32, 0},
        {1, {8}, RX_GGML_F32, 0, 31, BAD}, /* one byte short */
        {1, {8}, RX_GGML_F32, 32, 64, 0},
        {1, {8}, RX_GGML_F32, 32, 63, BAD},
        {1, {8}, RX_GGML_F32, 16, 64, BAD},              /* not aligned */
        {1, {8}, RX_GGML_F32, UINT64_MAX - 31, 64, BAD}, /* wraps */
        {1, {8}, RX_GGML_F32, (uint64_t)1 << 63, 64, BAD},
        {1, {0}, RX_GGML_F32, 64, 64, 0},
        {1, {0}, RX_GGML_F32, 96, 64, BAD},
        {1, {33}, RX_GGML_Q4_0, 0, 64, BAD}, /* no whole block */
        {2, {32, 3}, RX_GGML_Q4_0, 0, 54, 0},
        {2, {48, 2}, RX_GGML_Q4_0, 0, 64, BAD}, /* whole in sum, not by rows */
        {1, {(uint64_t)1 << 63}, RX_GGML_I8, 0, 64, BAD},
        {1, {INT64_MAX}, RX_GGML_I8, 0, 64, BAD},
        {2, {(uint64_t)1 << 32, (uint64_t)1 << 32}, RX_GGML_I8, 0, 64, BAD}, /* the product wraps to 0 */
        {2, {(uint64_t)1 << 61, 8}, RX_GGML_F32, 0, 64, BAD},
        {3, {(uint64_t)1 << 40, (uint64_t)1 << 40, 0}, RX_GGML_I8, 0, 64, BAD},
        {1, {(uint64_t)1 << 61}, RX_GGML_F64, 0, 64, BAD},
        {5, {1, 1, 1, 1, 1}, RX_GGML_F32, 0, 64, BAD},
        {1, {32}, 4, 0, 64, UNS}, /* a type that was given up */
        {1, {32}, RX_GGML_TYPES, 0, 64, UNS},
        {1, {32}, UINT32_MAX, 0, 64, UNS},
    };
    tl_heap th;
    relax_context *ctx = tl_context(&th);
    for (size_t i = 0; i < RX_COUNT(rows); i++) {
        int e = one_tensor(ctx, rows[i].ndim, rows[i].dims, rows[i].type, rows[i].offset, rows[i].data);
        if (e != rows[i].want)
            fail_msg("row %zu: error %d, wanted %d", i, e, rows[i].want);
    }
    tl_done(&th, ctx);
}

static void test_overlap(void **state)
{
    (void)state;
    static const struct { uint64_t off[3]; int want; } rows[] = {
        {{0, 64, 128}, 0}, {{128, 64, 0}, 0}, {{64, 128, 0}, 0}, {{0, 32, 128}, RXE_FILE_CORRUPT},
        {{128, 64, 96}, RXE_FILE_CORRUPT}, {{64, 64, 0}, RXE_FILE_CORRUPT}, {{0, 64, 192}, RXE_FILE_CORRUPT},
    };
    static const uint64_t dims[] = {16};
    tl_heap th;
    relax_context *ctx = tl_context(&th);
    for (size_t i = 0; i < RX_COUNT(rows); i++) {
        gw w = {0};
        gw_header(&w, 3, 3, 0);
        gw_tensor(&w, "a", 1, dims, RX_GGML_F32, rows[i].off[0]);
        gw_tensor(&w, "b", 1, dims, RX_GGML_F32, rows[i].off[1]);
        gw_tensor(&w, "c", 1, dims, RX_GGML_F32, rows[i].off[2]);
        gw_pad(&w, 32);
        for (int k = 0; k < 192; k++)
            gw_uint(&w, 0, 1);
        int e = open_error(ctx, w.at, w.n, false);
        if (e != rows[i].want)
            fail_msg("row %zu: error %d", i, e);
        free(w.at);
    }
    tl_done(&th, ctx);
}

static int check_file(relax_context *ctx, gw *w)
{
    int e = open_error(ctx, w->at, w->n, false);
    free(w->at);
    *w = (gw){0};
    return e;
}

static void test_header_rules(void **state)
{
    (void)state;
    static const uint64_t dims[] = {1};
    tl_heap th;
    relax_context *ctx = tl_context(&th);
    gw w = {0};
    gw_header(&w, 1, 0, 0);
    assert_int_equal(check_file(ctx, &w), RXE_UNSUPPORTED);
    gw_header(&w, 4, 0, 0);
    assert_int_equal(check_file(ctx, &w), RXE_FILE_VERSION);
    gw_header(&w, 0x03000000, 0, 0);                             /* big-endian */
    assert_int_equal(check_file(ctx, &w), RXE_UNSUPPORTED);
    gw_raw(&w, "GGUX\3\0\0\0", 8);
    assert_int_equal(check_file(ctx, &w), RXE_FILE_MAGIC);
    gw_header(&w, 3, 0, 0);
    assert_int_equal(check_file(ctx, &w), 0);
    gw_header(&w, 3, 0, 2);
    gw_kv_u32(&w, "k", 1), gw_kv_u32(&w, "k", 2);                /* twice */
    assert_int_equal(check_file(ctx, &w), RXE_FILE_CORRUPT);
    gw_header(&w, 3, 2, 0);
    gw_tensor(&w, "t", 1, dims, RX_GGML_F32, 0), gw_tensor(&w, "t", 1, dims, RX_GGML_F32, 32);
    for (int i = 0; i < 128; i++)
        gw_uint(&w, 0, 1);
    assert_int_equal(check_file(ctx, &w), RXE_FILE_CORRUPT);
    static const uint32_t alignments[] = {0, 3, 48, 1u << 31};
    for (size_t i = 0; i < RX_COUNT(alignments); i++) {
        gw_header(&w, 3, 0, 1);
        gw_kv_u32(&w, "general.alignment", alignments[i]);
        assert_int_equal(check_file(ctx, &w), RXE_FILE_CORRUPT);
    }
    gw_header(&w, 3, 0, 1);
    gw_kv_str(&w, "general.alignment", "64");
    assert_int_equal(check_file(ctx, &w), RXE_FILE_CORRUPT);
    gw_header(&w, 3, 0, 1);
    gw_array(&w, "a", RX_GGUF_ARRAY, 1);                         /* nested */
    gw_uint(&w, RX_GGUF_U8, 4), gw_uint(&w, 0, 8);
    assert_int_equal(check_file(ctx, &w), RXE_UNSUPPORTED);
    gw_header(&w, 3, 0, 1);
    gw_key(&w, "b", RX_GGUF_BOOL), gw_uint(&w, 2, 1);
    assert_int_equal(check_file(ctx, &w), RXE_FILE_CORRUPT);
    gw_header(&w, 3, 0, 1);
    gw_kv_u32(&w, "\xFF", 1);
    assert_int_equal(check_file(ctx, &w), RXE_FILE_CORRUPT);
    gw_header(&w, 3, 0, 1);
    gw_kv_u32(&w, "", 1);
    gw_uint(&w, 0, 8);
    assert_int_equal(check_file(ctx, &w), RXE_FILE_CORRUPT);
    gw_header(&w, 3, 0, 1);
    gw_array(&w, "a", RX_GGUF_F64, (UINT64_MAX >> 3) + 2);       /* bytes wrap */
    gw_uint(&w, 0, 8);
    assert_int_equal(check_file(ctx, &w), RXE_FILE_CORRUPT);
    tl_done(&th, ctx);
}

/* many small records: memory stays within 16 times the file and 64 MiB */
static void test_memory(void **state)
{
    (void)state;
    enum { N = 200000 };
    tl_heap th;
    relax_context *ctx = tl_context(&th);
    gw w = {0};
    gw_header(&w, 3, N, N);
    char name[16];
    for (int i = 0; i < N; i++) {
        snprintf(name, sizeof name, "%x", i);
        gw_key(&w, name, RX_GGUF_U8), gw_uint(&w, 0, 1);
    }
    for (int i = 0; i < N; i++) {
        snprintf(name, sizeof name, "%x", i);
        gw_tensor(&w, name, 0, NULL, RX_GGML_I8, (uint64_t)i * 32);
    }
    gw_pad(&w, 32);
    size_t header = w.n;
    for (int i = 0; i < N * 32; i++)
        gw_uint(&w, 0, 1);
    size_t live = ctx->heap.live;
    ctx->heap.peak = live;
    assert_int_equal(open_error(ctx, w.at, w.n, false), 0);
    print_message("header %zu bytes, memory %zu\n", header, ctx->heap.peak - live);
    assert_true(ctx->heap.peak - live < 16 * header);
    tl_done(&th, ctx);
    free(w.at);
}

/* a safetensors file with `data` bytes of data */
static size_t write_st(const char *header, size_t data, uint8_t **out)
{
    size_t n = strlen(header);
    uint8_t *p = calloc(1, 8 + n + data + 1);
    assert_non_null(p);
    put64(p, n);
    memcpy(p + 8, header, n);
    *out = p;
    return 8 + n + data;
}

/* every allocation fails once, and all after it */
static void test_oom(void **state)
{
    (void)state;
    sample s = write_sample(3, 3);
    uint8_t *st;
    size_t n_st =
        write_st("{\"a\\u0041\":{\"dtype\":\"F32\",\"shape\":[0],\"data_offsets\":[0,0],\"x\":[1,2]}}", 0, &st);
    for (int kind = 0; kind < 2; kind++) {
        for (int64_t n = 1, done = 0; !done; n++) {
            tl_heap th;
            relax_context *ctx = tl_context(&th);
            tl_fail(&th, n, true);
            int e = kind ? open_error(ctx, st, n_st, true) : open_error(ctx, s.w.at, s.w.n, false);
            assert_true(e == 0 || e == RXE_OOM);
            done = e == 0;
            tl_fail(&th, 0, false);
            tl_done(&th, ctx);
            assert_true(n < 1000);
        }
    }
    free(s.w.at), free(st);
}

/* --- safetensors --- */

#define T(name, dtype, shape, off) "\"" name "\":{\"dtype\":\"" dtype "\",\"shape\":" shape ",\"data_offsets\":" off "}"

static void test_st_reads(void **state)
{
    (void)state;
    tl_heap th;
    uint8_t *p;
    relax_context *ctx = tl_context(&th);
    size_t n = write_st(
        "{\"__metadata__\":{\"format\":\"pt\",\"q\":\"a\\n\\u20ac\\ud83d\\ude00\"}," T(
            "b", "F32", "[2, 3]",
            "[8,32]") ", " T("a", "BF16", "[4]",
                             "[0,8]") ", \"n\" : { \"shape\":[0,5], \"dtype\":\"I64\", \"extra\":[{},[null,-1.5e3]],"
                                      " \"data_offsets\":[32,32]}," T("s", "U8", "[]", "[32,33]") "}   ",
        33, &p);
    TL_TRY(ctx)
    {
        const rx_safetensors *s = rx_safetensors_open(ctx, &ctx->arena, p, n);
        assert_int_equal(s->n_tensors, 4);
        const rx_st_tensor *t = rx_safetensors_find(s, "b");
        assert_true(t && t->dtype == RELAX_F32 && t->ndim == 2 && t->dims[0] == 2 && t->dims[1] == 3 && t->bytes == 24);
        assert_ptr_equal(t->data, p + n - 33 + 8);
        t = rx_safetensors_find(s, "a");
        assert_true(t && t->dtype == RELAX_BF16 && t->n_values == 4);
        t = rx_safetensors_find(s, "n");
        assert_true(t && t->n_values == 0 && t->bytes == 0);
        assert_true(rx_safetensors_find(s, "s")->ndim == 0);
        assert_null(rx_safetensors_find(s, "__metadata__"));
        assert_int_equal(s->n_meta, 2);
        assert_true(rx_view_is(s->meta_keys[0], "format") && rx_view_is(s->meta_values[0], "pt"));
        assert_true(rx_view_is(s->meta_values[1], "a\n\xE2\x82\xAC\xF0\x9F\x98\x80"));
    }
    TL_END(ctx)
    for (size_t i = 0; i < n; i++)
        assert_true(is_file_error(open_error(ctx, p, i, true)));
    int refused = 0;
    static const uint8_t values[] = {0, ' ', '"', '9', '{', ']', '\\', 0x80, 0xFF};
    for (size_t i = 0; i < n - 33; i++) {
        uint8_t was = p[i];
        for (size_t k = 0; k < RX_COUNT(values); k++) {
            p[i] = values[k];
            int e = open_error(ctx, p, n, true);
            assert_true(e == 0 || is_file_error(e));
            refused += e != 0;
        }
        p[i] = was;
    }
    assert_true(refused > 1000);
    tl_done(&th, ctx);
    free(p);
}

static void test_st_rules(void **state)
{
    (void)state;
    enum { BAD = RXE_FILE_CORRUPT, UNS = RXE_UNSUPPORTED };
    static const struct { const char *header; size_t data; int want; } rows[] = {
        {"{}", 0, 0},
        {"{}", 1, BAD},                                                      /* a byte of nobody */
        {"[]", 0, RXE_FILE_MAGIC},
        {"{" T("a", "F32", "[1]", "[0,4]") "}", 4, 0},
        {"{" T("a", "F32", "[1]", "[0,4]") "}", 3, BAD},
        {"{" T("a", "F32", "[1]", "[0,4]") "}", 5, BAD},
        {"{" T("a", "F32", "[1]", "[4,8]") "}", 8, BAD},                     /* hole */
        {"{" T("a", "F32", "[1]", "[0,4]") "," T("b", "F32", "[1]", "[2,6]") "}", 6, BAD},
        {"{" T("a", "F32", "[1]", "[0,4]") "," T("b", "F32", "[1]", "[0,4]") "}", 4, BAD},
        {"{" T("a", "F32", "[1]", "[0,4]") "," T("a", "F32", "[1]", "[4,8]") "}", 8, BAD},
        {"{" T("a", "F32", "[1]", "[0,4]") "," T("\\u0061", "F32", "[1]", "[4,8]") "}", 8, BAD},
        {"{\"__metadata__\":{},\"__metadata__\":{}}", 0, BAD},
        {"{\"__metadata__\":{\"a\":1}}", 0, BAD},
        {"{" T("a", "F33", "[1]", "[0,4]") "}", 4, UNS},
        {"{" T("a", "F4", "[3]", "[0,1]") "}", 1, BAD},                      /* no whole bytes */
        {"{" T("a", "F4", "[4]", "[0,2]") "}", 2, 0},
        {"{" T("a", "F32", "[1]", "[4,0]") "}", 4, BAD},
        {"{" T("a", "F32", "[1]", "[0,4,8]") "}", 4, BAD},
        {"{" T("a", "F32", "[1]", "[0]") "}", 4, BAD},
        {"{" T("a", "F32", "[-1]", "[0,4]") "}", 4, BAD},
        {"{" T("a", "F32", "[1.0]", "[0,4]") "}", 4, BAD},
        {"{" T("a", "F32", "[01]", "[0,4]") "}", 4, BAD},
        {"{" T("a", "F32", "[18446744073709551616]", "[0,4]") "}", 4, BAD},
        {"{" T("a", "F32", "[9223372036854775808]", "[0,4]") "}", 4, BAD},
        {"{" T("a", "U8", "[4294967296,4294967296]", "[0,0]") "}", 0, BAD},
        {"{" T("a", "U8", "[4294967296,4294967296,0]", "[0,0]") "}", 0, BAD},
        {"{" T("a", "U8", "[1]", "[18446744073709551615,18446744073709551615]") "}", 1, BAD},
        {"{" T("a\\u0000b", "U8", "[1]", "[0,1]") "}", 1, BAD},
        {"{" T("\\ud800", "U8", "[1]", "[0,1]") "}", 1, BAD},
        {"{" T("\\x", "U8", "[1]", "[0,1]") "}", 1, BAD},
        {"{" T("a\xFF", "U8", "[1]", "[0,1]") "}", 1, BAD},
        {"{\"a\":{\"dtype\":\"U8\",\"shape\":[1]}}", 1, BAD},
        {"{\"a\":{\"dtype\":\"U8\",\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}", 1, BAD},
        {"{\"a\":[]}", 0, BAD},
        {"{\"a\":{}}", 0, BAD},
        {"{} x", 0, BAD},
        {"{,}", 0, BAD},
        {"{" T("a", "U8", "[1]", "[0,1]") ",}", 1, BAD},
        {"{" T("a", "U8", "[1,]", "[0,1]") "}", 1, BAD},
        {"{\"a\" {}}", 0, BAD},
    };
    tl_heap th;
    relax_context *ctx = tl_context(&th);
    for (size_t i = 0; i < RX_COUNT(rows); i++) {
        uint8_t *p;
        size_t n = write_st(rows[i].header, rows[i].data, &p);
        int e = open_error(ctx, p, n, true);
        if (e != rows[i].want)
            fail_msg("row %zu: error %d, wanted %d", i, e, rows[i].want);
        free(p);
    }
    /* lengths of the header, and depth */
    static const uint64_t lengths[] = {UINT64_MAX, UINT64_MAX - 7, 100000001, 3};
    uint8_t small[12] = {0, 0, 0, 0, 0, 0, 0, 0, '{', '}'};
    for (size_t i = 0; i < RX_COUNT(lengths); i++) {
        put64(small, lengths[i]);
        assert_int_equal(open_error(ctx, small, 10, true), BAD);
    }
    enum { DEEP = 100000 };
    char *deep = malloc(DEEP + 32);
    assert_non_null(deep);
    memcpy(deep, "{\"a\":{\"x\":", 11);
    memset(deep + 10, '[', DEEP);
    deep[DEEP + 10] = 0;
    uint8_t *p;
    size_t n = write_st(deep, 0, &p);
    assert_int_equal(open_error(ctx, p, n, true), BAD);
    free(p), free(deep);
    tl_done(&th, ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reads),
        cmocka_unit_test(test_wrong_types),
        cmocka_unit_test(test_truncation),
        cmocka_unit_test(test_corruption),
        cmocka_unit_test(test_huge_counts),
        cmocka_unit_test(test_tensor_rules),
        cmocka_unit_test(test_overlap),
        cmocka_unit_test(test_header_rules),
        cmocka_unit_test(test_memory),
        cmocka_unit_test(test_oom),
        cmocka_unit_test(test_st_reads),
        cmocka_unit_test(test_st_rules),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
