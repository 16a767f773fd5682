/* test_base.c: memory, containers, strings, numbers, operating system of base/. */
#include "testlib.h"

#include <errno.h>
#include <locale.h>
#include <math.h>
#include <sys/stat.h>
#include <unistd.h>

/* --- frames and arenas --- */
static void count_up(void *p)
{
    ++*(int *)p;
}

static void test_frames(void **state)
{
    (void)state;
    tl_heap th = {0};
    rx_heap h;
    rx_frame f, g;
    static int runs;
    runs = 0;
    rx_heap_init(&h, tl_alloc, &th);
    if (RX_ENTER(&h, &f)) {
        rx_defer(&h, count_up, &runs);
        if (RX_ENTER(&h, &g)) {
            rx_defer(&h, count_up, &runs);
            memset(rx_arena_alloc(rx_scratch(&h), 100000, 16), 1, 100000);
            rx_unwind(&h);
        }
        assert_int_equal(runs, 1);
        assert_ptr_equal(h.top, &f);
        rx_leave(&h, &f);
    } else {
        fail_msg("the outer frame must stay");
    }
    assert_int_equal(runs, 2);
    assert_null(h.top);
    assert_int_equal(th.live, 0);
    assert_int_equal(h.live, 0);
    assert_true(h.peak >= 100000);
}

static void test_arena(void **state)
{
    (void)state;
    tl_heap th = {0};
    rx_heap h;
    rx_frame f;
    rx_arena a;
    rx_heap_init(&h, tl_alloc, &th);
    rx_arena_init(&a, &h);
    if (!RX_ENTER(&h, &f))
        fail();
    uint8_t *seen[600];
    size_t size[600];
    for (size_t i = 0; i < RX_COUNT(seen); i++) {
        size_t align = (size_t)1 << i % 7;
        size[i] = i * i % 7000;
        seen[i] = rx_arena_alloc(&a, size[i], align);
        assert_int_equal((uintptr_t)seen[i] % align, 0);
        for (size_t j = 0; j < size[i]; j++)
            assert_int_equal(seen[i][j], 0);
        memset(seen[i], (int)i, size[i]);
    }
    for (size_t i = 0; i < RX_COUNT(seen); i++)
        for (size_t j = 0; j < size[i]; j++)
            assert_int_equal(seen[i][j], i & 255);
    assert_int_equal(th.live, a.bytes);
    rx_leave(&h, &f);
    rx_arena_free(&a);
    assert_int_equal(th.live, 0);
    if (RX_ENTER(&h, &f)) {
        rx_arena_array(&a, SIZE_MAX / 4, 8, 8);
        fail_msg("size overflow must unwind");
    }
    assert_null(h.top);
}

/* every allocation of a small program fails once, then from then on: the heap is empty afterwards */
static bool program(rx_heap *h)
{
    rx_frame f;
    if (!RX_ENTER(h, &f))
        return false;
    rx_arena *a = rx_scratch(h);
    int dummy = 0;
    RX_VEC(int) v = {0};
    rx_map m;
    rx_strs s;
    rx_buf b;
    rx_map_init(&m, a);
    rx_strs_init(&s, a);
    rx_buf_init(&b, a);
    for (int i = 0; i < 5000; i++) {
        rx_push(a, &v, i);
        rx_map_put(&m, (uint64_t)i * 7, &dummy);
        rx_putf(&b, "%d,", i);
        rx_intern(&s, b.at, b.n % 50);
    }
    rx_defer(h, count_up, &dummy);
    rx_leave(h, &f);
    return true;
}

static void test_oom(void **state)
{
    (void)state;
    for (int sticky = 0; sticky < 2; sticky++) {
        bool ok = false;
        int64_t n = 1;
        for (; !ok && n < 1000; n++) {
            tl_heap th = {.fail_at = n, .sticky = sticky};
            rx_heap h;
            rx_heap_init(&h, tl_alloc, &th);
            ok = program(&h);
            assert_int_equal(th.live, 0);
            assert_int_equal(h.live, 0);
            assert_null(h.top);
        }
        assert_true(ok);
        assert_true(n > 10);
    }
}

static void test_default_heap(void **state)
{
    (void)state;
    rx_heap h;
    rx_heap_init(&h, NULL, NULL);
    for (size_t align = 1; align <= 64; align *= 2) {
        char *p = rx_heap_alloc(&h, 100, align);
        memset(p, 7, 100);
        p = rx_heap_realloc(&h, p, 100, 5000, align);
        assert_int_equal((uintptr_t)p % align, 0);
        for (int i = 0; i < 100; i++)
            assert_int_equal(p[i], 7);
        assert_int_equal(h.live, 5000);
        rx_heap_free(&h, p, 5000);
    }
    void *a = rx_heap_alloc(&h, 0, 1), *b = rx_heap_alloc(&h, 0, 1);
    assert_ptr_not_equal(a, b);
    rx_heap_free(&h, a, 0);
    rx_heap_free(&h, b, 0);
    assert_int_equal(h.live, 0);
    assert_null(rx_heap_alloc(&h, SIZE_MAX, 16));
}

/* --- containers --- */
static void test_map(void **state)
{
    (void)state;
    tl_heap th;
    relax_context *ctx = tl_context(&th);
    TL_TRY(ctx)
    {
        rx_map m;
        rx_map_init(&m, rx_scratch(&ctx->heap));
        assert_null(rx_map_get(&m, 3));
        static int vals[3000];
        for (uint64_t i = 0; i < 3000; i++)
            rx_map_put(&m, i * i << (i % 32), &vals[i]);
        uint32_t n = m.n;
        for (uint64_t i = 0; i < 3000; i++)
            rx_map_put(&m, i * i << (i % 32), &vals[2999 - i]);
        assert_int_equal(m.n, n);
        assert_int_equal(m.e[1].key, 2);
        assert_true(rx_map_has(&m, 0));
        assert_false(rx_map_has(&m, 12345));
        for (uint32_t i = 0; i < m.n; i++)
            assert_ptr_equal(rx_map_get(&m, m.e[i].key), m.e[i].val);
    }
    TL_END(ctx)
    tl_done(&th, ctx);
}

static void test_intern(void **state)
{
    (void)state;
    tl_heap th;
    relax_context *ctx = tl_context(&th);
    TL_TRY(ctx)
    {
        const char *kept[2000];
        for (int i = 0; i < 2000; i++)
            kept[i] = rx_strf(ctx, "name%d", i);
        for (int i = 0; i < 2000; i++) {
            char t[32];
            snprintf(t, sizeof t, "name%d", i);
            assert_ptr_equal(rx_str(ctx, t), kept[i]);
            assert_string_equal(kept[i], t);
        }
        assert_ptr_equal(rx_strn(ctx, "a\0b", 3), rx_strn(ctx, "a\0b", 3));
        assert_ptr_not_equal(rx_strn(ctx, "a\0b", 3), rx_strn(ctx, "a\0c", 3));
        assert_string_equal(rx_strn(ctx, NULL, 0), "");
        char big[1000];
        memset(big, 'x', sizeof big);
        assert_int_equal(strlen(rx_strf(ctx, "%.999s", big)), 999);
    }
    TL_END(ctx)
    tl_done(&th, ctx);
}

/* --- numbers --- */
static void test_floor(void **state)
{
    (void)state;
    int64_t q, r;
    for (int64_t a = -20; a <= 20; a++)
        for (int64_t b = -6; b <= 6; b++) {
            if (b == 0)
                continue;
            assert_true(rx_floordiv_ok(a, b, &q));
            assert_true(rx_floormod_ok(a, b, &r));
            assert_int_equal(q, (int64_t)floor((double)a / (double)b));
            assert_int_equal(q * b + r, a);
        }
    assert_false(rx_floordiv_ok(1, 0, &q));
    assert_false(rx_floordiv_ok(INT64_MIN, -1, &q));
    assert_false(rx_floormod_ok(1, 0, &q));
    size_t n;
    assert_true(rx_size_align(65, 64, &n));
    assert_int_equal(n, 128);
    assert_false(rx_size_align(SIZE_MAX - 3, 64, &n));
}

static const char *double_text(rx_arena *a, double v)
{
    rx_buf b;
    rx_buf_init(&b, a);
    rx_put_double(&b, v);
    return b.at;
}

static void check_number_text(rx_arena *a)
{
    static const struct {
        double v;
        const char *text;
    } rows[] = {
        {0.0, "0.0"},
        {-0.0, "-0.0"},
        {1, "1.0"},
        {-2.5, "-2.5"},
        {0.1, "0.1"},
        {100, "100.0"},
        {1e15, "1000000000000000.0"},
        {1e16, "1e16"},
        {1.5e300, "1.5e300"},
        {0.001, "0.001"},
        {1e-5, "0.00001"},
        {1e-6, "1e-6"},
        {5e-324, "5e-324"},
        {1.7976931348623157e308, "1.7976931348623157e308"},
        {2.2250738585072014e-308, "2.2250738585072014e-308"},
        {INFINITY, "inf"},
        {-INFINITY, "-inf"},
        {NAN, "nan"},
        {123456.789, "123456.789"},
        {9007199254740993.0, "9007199254740992.0"},
        {3.141592653589793, "3.141592653589793"},
        {120, "120.0"},
        {0.30000000000000004, "0.30000000000000004"},
    };
    for (size_t i = 0; i < RX_COUNT(rows); i++)
        assert_string_equal(double_text(a, rows[i].v), rows[i].text);
    rx_buf b;
    rx_buf_init(&b, a);
    rx_put_float(&b, 0.1f);
    rx_putc(&b, ' ');
    rx_put_float(&b, 16777216.0f);
    rx_putc(&b, ' ');
    rx_put_float(&b, 1e-45f);
    rx_putc(&b, ' ');
    rx_put_i64(&b, INT64_MIN);
    rx_putc(&b, ' ');
    rx_put_i64(&b, 0);
    assert_string_equal(b.at, "0.1 16777216.0 1e-45 -9223372036854775808 0");
    uint64_t seed = 1;
    for (int i = 0; i < 20000; i++) {
        double v, w;
        float s, t;
        seed = rx_mix(seed, (uint64_t)i);
        memcpy(&v, &seed, 8);
        memcpy(&s, &seed, 4);
        const char *text = double_text(a, v);
        assert_int_equal(rx_read_double(text, strlen(text), &w), strlen(text));
        assert_true(v != v ? w != w : v == w);
        b.n = 0;
        rx_put_float(&b, s);
        assert_int_equal(rx_read_double(b.at, b.n, &w), b.n);
        t = (float)w;
        assert_true(s != s ? t != t : s == t);
    }
}

static void test_number_text(void **state)
{
    (void)state;
    tl_heap th;
    relax_context *ctx = tl_context(&th);
    static const char *const locales[] = {"C", "de_DE.UTF-8", "fr_FR.UTF-8", "ar_EG.UTF-8"};
    for (size_t i = 0; i < RX_COUNT(locales); i++) {
        if (!setlocale(LC_ALL, locales[i]))
            continue;
        TL_TRY(ctx)
        {
            check_number_text(rx_scratch(&ctx->heap));
        }
        TL_END(ctx)
    }
    setlocale(LC_ALL, "C");
    tl_done(&th, ctx);
}

static void test_read_numbers(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        size_t used;
        double v;
    } rows[] = {
        {"1", 1, 1},
        {"+1.5x", 4, 1.5},
        {"-.5", 3, -.5},
        {"1..2", 1, 1},
        {"1.", 1, 1},
        {"1e5", 3, 1e5},
        {"1e", 1, 1},
        {"1e+", 1, 1},
        {"2E-3", 4, 2e-3},
        {"", 0, 0},
        {"-", 0, 0},
        {"x", 0, 0},
        {"inf", 3, INFINITY},
        {"-inf", 4, -INFINITY},
        {"info", 0, 0},
        {"1e999", 5, INFINITY},
        {"1e-999", 6, 0},
        {"0e99999999999999", 16, 0},
        {"1,5", 1, 1},
        {"000.0001", 8, 1e-4},
        {"1e99999999999999999999", 22, INFINITY},
        {"9007199254740993", 16, 9007199254740992.0},
        {"9007199254740993.0000000000000000000000000000000000000001", 57, 9007199254740994.0},
        {"0x10", 1, 0},
    };
    for (size_t i = 0; i < RX_COUNT(rows); i++) {
        double v = 0;
        assert_int_equal(rx_read_double(rows[i].text, strlen(rows[i].text), &v), rows[i].used);
        if (rows[i].used)
            assert_true(v == rows[i].v);
    }
    /* the digit that breaks the tie lies behind all that a double can have */
    char big[2001];
    memset(big, '0', sizeof big);
    memcpy(big, "9007199254740993.", 17);
    big[1999] = '1';
    double v;
    assert_int_equal(rx_read_double(big, 2000, &v), 2000);
    assert_true(v == 9007199254740994.0);
    static const struct {
        const char *text;
        size_t used;
        int64_t v;
    } ints[] = {
        {"0", 1, 0},
        {"-7,", 2, -7},
        {"9223372036854775807", 19, INT64_MAX},
        {"9223372036854775808", 0, 0},
        {"-9223372036854775808", 20, INT64_MIN},
        {"-9223372036854775809", 0, 0},
        {"-", 0, 0},
        {"", 0, 0},
        {"+1", 0, 0},
        {"99999999999999999999999", 0, 0},
        {"007", 3, 7},
    };
    for (size_t i = 0; i < RX_COUNT(ints); i++) {
        int64_t x = 0;
        assert_int_equal(rx_read_i64(ints[i].text, strlen(ints[i].text), &x), ints[i].used);
        assert_int_equal(x, ints[i].v);
    }
}

static void test_utf8(void **state)
{
    (void)state;
    static const struct {
        const char *s;
        size_t n, ok;
    } rows[] = {
        {"", 0, 0},
        {"abc", 3, 3},
        {"a\0b", 3, 3},
        {"\xC3\xA4", 2, 2},
        {"x\xC3", 2, 1},
        {"\xC0\x80", 2, 0},
        {"\xE0\x9F\xBF", 3, 0},
        {"\xE2\x82\xAC", 3, 3},
        {"\xED\xA0\x80", 3, 0},
        {"\xF0\x9F\x98\x80!", 5, 5},
        {"\xF4\x90\x80\x80", 4, 0},
        {"\xF0\x8F\xBF\xBF", 4, 0},
        {"\xF5\x80\x80\x80", 4, 0},
        {"ok\x80", 3, 2},
        {"\xF0\x9F\x98", 3, 0},
        {"\xFF", 1, 0},
    };
    for (size_t i = 0; i < RX_COUNT(rows); i++)
        assert_int_equal(rx_utf8_valid(rows[i].s, rows[i].n), rows[i].ok);
}

static void test_half(void **state)
{
    (void)state;
    for (uint32_t h = 0; h < 65536; h++) {
        float f = rx_f16_to_f32((uint16_t)h), g = rx_bf16_to_f32((uint16_t)h);
        if (f == f)
            assert_int_equal(rx_f32_to_f16(f), h);
        else
            assert_true(rx_f16_to_f32(rx_f32_to_f16(f)) != rx_f16_to_f32(rx_f32_to_f16(f)));
        if (g == g)
            assert_int_equal(rx_f32_to_bf16(g), h);
        else
            assert_true((rx_f32_to_bf16(g) & 0x7FFF) > 0x7F80);
    }
    static const struct {
        float f;
        uint16_t f16, bf16;
    } rows[] = {
        {1.0f, 0x3C00, 0x3F80},         {65504, 0x7BFF, 0x4780},        {65519.996f, 0x7BFF, 0x4780},
        {65520, 0x7C00, 0x4780},        {-0.0f, 0x8000, 0x8000},        {0x1p-24f, 1, 0x3380},
        {0x1p-25f, 0, 0x3300},          {0x1.000002p-25f, 1, 0x3300},   {0x1.8p-24f, 2, 0x33C0},
        {1e30f, 0x7C00, 0x714A},        {0x1.002p0f, 0x3C00, 0x3F80},   {0x1.006p0f, 0x3C02, 0x3F80},
        {0x1.01p0f, 0x3C04, 0x3F80},    {0x1.03p0f, 0x3C0C, 0x3F82},    {3.4028235e38f, 0x7C00, 0x7F80},
        {0x1.ff8p-15f, 0x03FF, 0x3880}, {0x1.ffcp-15f, 0x0400, 0x3880}, {INFINITY, 0x7C00, 0x7F80},
    };
    for (size_t i = 0; i < RX_COUNT(rows); i++) {
        assert_int_equal(rx_f32_to_f16(rows[i].f), rows[i].f16);
        assert_int_equal(rx_f32_to_bf16(rows[i].f), rows[i].bf16);
    }
}

static void test_hash(void **state)
{
    (void)state;
    assert_true(rx_hash("", 0, 0) == 0x2D06800538D394C2ull); /* XXH3's own test vector */
    assert_true(rx_hash(NULL, 0, 0) == rx_hash("", 0, 0));
    assert_true(rx_hash("a", 1, 0) != rx_hash("a", 1, 1));
}

/* --- operating system --- */
static void test_files(void **state)
{
    (void)state;
    char dir[] = "/tmp/relax-test-XXXXXX", path[64], link[64];
    assert_non_null(mkdtemp(dir));
    snprintf(path, sizeof path, "%s/file", dir);
    snprintf(link, sizeof link, "%s/link", dir);
    rx_file f;
    assert_int_equal(rx_file_map(path, &f), ENOENT);
    assert_int_equal(rx_file_map(dir, &f), EISDIR);
    assert_int_equal(rx_file_map("/dev/null", &f), EINVAL);
    assert_int_equal(rx_file_write(path, "hello", 5), 0);
    assert_int_equal(chmod(path, 0640), 0);
    assert_int_equal(symlink("file", link), 0);
    assert_int_equal(rx_file_map(path, &f), 0);
    assert_int_equal(rx_file_write(link, "", 0), 0);
    assert_memory_equal(f.at, "hello", 5); /* the old bytes stay mapped */
    rx_file_unmap(&f);
    struct stat st;
    assert_int_equal(lstat(link, &st), 0);
    assert_true(S_ISLNK(st.st_mode));
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0640);
    assert_int_equal(rx_file_map(path, &f), 0);
    assert_int_equal(f.size, 0);
    assert_non_null(f.at);
    rx_file_unmap(&f);
    assert_int_equal(rx_file_write("/dev/full", "x", 1), ENOSPC);
    assert_int_equal(rx_file_write("/nowhere/at/all", "x", 1), ENOENT);
    assert_int_equal(rx_file_write(dir, "x", 1), EISDIR);
    char text[64];
    assert_string_equal(rx_os_error(ENOENT, text, sizeof text), "No such file or directory");
    unlink(link);
    unlink(path);
    assert_int_equal(rmdir(dir), 0); /* no temporary file is left */
}

static void test_dl(void **state)
{
    (void)state;
    char err[200] = "", dir[4096];
    assert_null(rx_dl_open("/nowhere.so", err, sizeof err));
    assert_true(strlen(err) > 0);
    void *dl = rx_dl_open("libm.so.6", err, sizeof err);
    if (dl) {
        assert_non_null(rx_dl_sym(dl, "cos"));
        assert_null(rx_dl_sym(dl, "no_such_name"));
    }
    rx_dl_close(dl);
    int fd = rx_mem_fd("x", "not an ELF file", 15);
    assert_true(fd >= 0);
    char b = 0;
    assert_true(write(fd, &b, 1) < 0); /* sealed */
    assert_null(rx_dl_open_fd(fd, err, sizeof err));
    close(fd);
    assert_non_null(rx_dl_self_dir(dir, sizeof dir));
    assert_true(dir[0] == '/');
}

/* Two objects opened one after the other through the same descriptor number are two objects. */
static void test_dl_fd(void **state)
{
    (void)state;
    static const char *const paths[] = {"/lib/x86_64-linux-gnu/libm.so.6", "/lib/aarch64-linux-gnu/libm.so.6",
                                        "/lib64/libm.so.6"};
    rx_file f = {NULL, 0};
    for (size_t i = 0; i < RX_COUNT(paths) && !f.size; i++)
        rx_file_map(paths[i], &f);
    if (!f.size)
        skip();
    void *dl[3], *cosine[3];
    int number = -1;
    char err[200] = "";
    for (int i = 0; i < 3; i++) {
        int fd = rx_mem_fd("libm", f.at, f.size);
        assert_true(fd >= 0);
        number = number < 0 ? fd : number;
        assert_int_equal(fd, number);
        dl[i] = rx_dl_open_fd(fd, err, sizeof err);
        assert_string_equal(err, "");
        close(fd);
        cosine[i] = rx_dl_sym(dl[i], "cos");
        assert_non_null(cosine[i]);
    }
    assert_ptr_not_equal(dl[0], dl[1]);
    assert_ptr_not_equal(cosine[0], cosine[1]);
    assert_ptr_not_equal(cosine[1], cosine[2]);
    for (int i = 0; i < 3; i++)
        rx_dl_close(dl[i]);
    rx_file_unmap(&f);
}

static void test_pages(void **state)
{
    (void)state;
    for (size_t n = 1; n < (size_t)64 << 20; n = n * 3 + 1) {
        char *p = rx_pages_alloc(n);
        assert_non_null(p);
        if (n >= 2 << 20)
            assert_int_equal((uintptr_t)p % (2 << 20), 0);
        p[0] = p[n - 1] = 1;
        rx_pages_free(p, n);
    }
    assert_null(rx_pages_alloc(SIZE_MAX));
    assert_true(rx_peak_rss() > 0);
    assert_true(rx_cpu_count() >= 1);
}

typedef struct ping {
    _Atomic uint32_t turn;
    uint32_t sum;
} ping;

static void pong(void *arg)
{
    ping *p = arg;
    for (uint32_t i = 0; i < 1000; i++) {
        for (uint32_t t; (t = p->turn) != 2 * i + 1;)
            rx_futex_wait(&p->turn, t);
        p->sum += i;
        p->turn = 2 * i + 2;
        rx_futex_wake(&p->turn, 1);
    }
}

static void test_threads(void **state)
{
    (void)state;
    ping p = {0};
    rx_thread t;
    assert_int_equal(rx_thread_start(&t, pong, &p), 0);
    for (uint32_t i = 0; i < 1000; i++) {
        p.turn = 2 * i + 1;
        rx_futex_wake(&p.turn, 1);
        for (uint32_t v; (v = p.turn) != 2 * i + 2;)
            rx_futex_wait(&p.turn, v);
    }
    rx_thread_join(&t);
    assert_int_equal(p.sum, 499500);
    int64_t a = rx_now_ns();
    assert_true(rx_now_ns() >= a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_frames),       cmocka_unit_test(test_arena),       cmocka_unit_test(test_oom),
        cmocka_unit_test(test_default_heap), cmocka_unit_test(test_map),         cmocka_unit_test(test_intern),
        cmocka_unit_test(test_floor),        cmocka_unit_test(test_number_text), cmocka_unit_test(test_read_numbers),
        cmocka_unit_test(test_utf8),         cmocka_unit_test(test_half),        cmocka_unit_test(test_hash),
        cmocka_unit_test(test_files),        cmocka_unit_test(test_dl),          cmocka_unit_test(test_dl_fd),
        cmocka_unit_test(test_pages),        cmocka_unit_test(test_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
