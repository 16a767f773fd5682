/* fuzz_number.c: numbers and UTF-8 of base/: what is read prints as a text that reads back the same. */
#include "base/base.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void check(bool ok)
{
    if (!ok)
        __builtin_trap();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    const char *s = (const char *)data;
    rx_heap h;
    rx_frame f;
    rx_heap_init(&h, NULL, NULL);
    if (!RX_ENTER(&h, &f))
        return 0;
    double v, w;
    int64_t i, j;
    rx_buf b;
    rx_buf_init(&b, rx_scratch(&h));
    size_t used = rx_read_double(s, n, &v);
    check(used <= n && rx_utf8_valid(s, n) <= n);
    if (used) {
        rx_put_double(&b, v);
        check(rx_read_double(b.at, b.n, &w) == b.n && (v != v ? w != w : v == w));
    }
    used = rx_read_i64(s, n, &i);
    check(used <= n);
    if (used) {
        b.n = 0;
        rx_put_i64(&b, i);
        check(rx_read_i64(b.at, b.n, &j) == b.n && i == j);
    }
    rx_leave(&h, &f);
    return 0;
}
