/* str.c: interned strings, a string builder, UTF-8, and numbers as text without the locale.
 *
 * Floats: the C library converts exactly but uses the locale's decimal point. So text goes in and out without
 * one: "%.*e" gives the digits and the exponent (what stands between the first two digits is skipped), and
 * strtod gets only digits and an exponent ("125e-2"). The shortest text is the least number of digits that reads
 * back the same; more digits never read back worse, so it is found by halving. */
#include "base/base.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

uint64_t rx_hash(const void *p, size_t n, uint64_t seed)
{
    return XXH3_64bits_withSeed(n ? p : "", n, seed);
}

/* --- interning: linear probing; every string has its length and hash in front of it --- */
typedef struct str_head {
    uint32_t len, hash;
} str_head;

static str_head head_of(const char *s)
{
    str_head h;
    memcpy(&h, s - sizeof h, sizeof h);
    return h;
}

void rx_strs_init(rx_strs *s, rx_arena *a)
{
    memset(s, 0, sizeof *s);
    s->a = a;
}

static void strs_grow(rx_strs *s)
{
    if (s->nslots > UINT32_MAX / 4)
        rx_heap_oom(s->a->heap);
    uint32_t nslots = s->nslots ? s->nslots * 2 : 64;
    const char **slots = RX_NEWN(s->a, const char *, nslots);
    for (uint32_t i = 0; i < s->nslots; i++) {
        if (!s->slots[i])
            continue;
        uint32_t j = head_of(s->slots[i]).hash & (nslots - 1);
        while (slots[j])
            j = (j + 1) & (nslots - 1);
        slots[j] = s->slots[i];
    }
    s->slots = slots;
    s->nslots = nslots;
}

const char *rx_intern(rx_strs *s, const char *p, size_t n)
{
    if (n > UINT32_MAX)
        rx_heap_oom(s->a->heap);
    if ((s->n + 1) * 2 > s->nslots)
        strs_grow(s);
    str_head h = {(uint32_t)n, (uint32_t)rx_hash(p, n, 0)};
    uint32_t i = h.hash & (s->nslots - 1);
    for (; s->slots[i]; i = (i + 1) & (s->nslots - 1)) {
        str_head o = head_of(s->slots[i]);
        if (o.len == h.len && o.hash == h.hash && (n == 0 || memcmp(s->slots[i], p, n) == 0))
            return s->slots[i];
    }
    char *q = rx_arena_alloc(s->a, sizeof h + n + 1, _Alignof(str_head));
    memcpy(q, &h, sizeof h);
    if (n)
        memcpy(q + sizeof h, p, n);
    s->n++;
    return s->slots[i] = q + sizeof h;
}

/* --- string builder --- */
void rx_buf_init(rx_buf *b, rx_arena *a)
{
    memset(b, 0, sizeof *b);
    b->a = a;
}

/* room for n more bytes and a NUL */
static void buf_room(rx_buf *b, size_t n)
{
    size_t need;
    if (!rx_size_add(b->n, n, &need) || !rx_size_add(need, 1, &need) || need > PTRDIFF_MAX / 2)
        rx_heap_oom(b->a->heap);
    if (need <= b->cap)
        return;
    size_t cap = RX_MAX(need, RX_MAX(b->cap * 2, (size_t)64));
    char *at = rx_arena_alloc(b->a, cap, 1);
    if (b->n)
        memcpy(at, b->at, b->n);
    b->at = at;
    b->cap = cap;
}

void rx_putn(rx_buf *b, const char *s, size_t n)
{
    buf_room(b, n);
    if (n)
        memcpy(b->at + b->n, s, n);
    b->n += n;
    b->at[b->n] = 0;
}

void rx_putc(rx_buf *b, char c)
{
    rx_putn(b, &c, 1);
}

void rx_puts(rx_buf *b, const char *s)
{
    rx_putn(b, s, strlen(s));
}

void rx_putv(rx_buf *b, const char *fmt, va_list ap)
{
    va_list again;
    va_copy(again, ap);
    int n = vsnprintf(NULL, 0, fmt, ap);
    if (n > 0) {
        /* buf_room may unwind past va_end; that is harmless on every ABI we build for */
        buf_room(b, (size_t)n);
        vsnprintf(b->at + b->n, (size_t)n + 1, fmt, again);
        b->n += (size_t)n;
    }
    va_end(again);
}

void rx_putf(rx_buf *b, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    rx_putv(b, fmt, ap);
    va_end(ap);
}

void rx_put_i64(rx_buf *b, int64_t v)
{
    char t[24], *p = t + sizeof t;
    uint64_t u = v < 0 ? 0 - (uint64_t)v : (uint64_t)v;
    do
        *--p = (char)('0' + u % 10);
    while (u /= 10);
    if (v < 0)
        *--p = '-';
    rx_putn(b, p, (size_t)(t + sizeof t - p));
}

/* --- floats as text --- */
typedef struct decimal {
    char digit[20];                  /* value is 0.d1d2d3... * 10^point, no trailing zeros */
    int n, point;
} decimal;

/* v finite and positive, 1 <= prec <= 17 significant digits */
static decimal to_decimal(double v, int prec)
{
    char t[64];
    snprintf(t, sizeof t, "%.*e", prec - 1, v);
    decimal d = {.n = 0};
    const char *p = t;
    for (; *p && *p != 'e'; p++)
        if (*p >= '0' && *p <= '9' && d.n < 18)
            d.digit[d.n++] = *p;
    d.point = 1;
    if (*p == 'e') {
        bool neg = *++p == '-';
        int e = 0;
        for (p++; *p >= '0' && *p <= '9'; p++)
            e = e * 10 + (*p - '0');
        d.point += neg ? -e : e;
    }
    while (d.n > 1 && d.digit[d.n - 1] == '0')
        d.n--;
    return d;
}

static double from_decimal(const decimal *d, bool single)
{
    char t[64];
    snprintf(t, sizeof t, "%.*se%d", d->n, d->digit, d->point - d->n);
    int saved = errno;
    double v = single ? (double)strtof(t, NULL) : strtod(t, NULL);
    errno = saved;
    return v;
}

static void put_zeros(rx_buf *b, int n)
{
    for (; n > 0; n--)
        rx_putc(b, '0');
}

/* as Python prints floats: plain between 1e-5 and 1e16, else with an exponent */
static void put_decimal(rx_buf *b, const decimal *d)
{
    int e = d->point - 1;
    if (e < -5 || e >= 16) {
        rx_putc(b, d->digit[0]);
        if (d->n > 1) {
            rx_putc(b, '.');
            rx_putn(b, d->digit + 1, (size_t)d->n - 1);
        }
        rx_putc(b, 'e');
        rx_put_i64(b, e);
        return;
    }
    if (d->point <= 0) {
        rx_puts(b, "0.");
        put_zeros(b, -d->point);
        rx_putn(b, d->digit, (size_t)d->n);
        return;
    }
    int whole = RX_MIN(d->n, d->point);
    rx_putn(b, d->digit, (size_t)whole);
    put_zeros(b, d->point - whole);
    rx_putc(b, '.');
    if (d->n > whole)
        rx_putn(b, d->digit + whole, (size_t)(d->n - whole));
    else
        rx_putc(b, '0');
}

static void put_real(rx_buf *b, double v, bool single)
{
    if (v != v) {
        rx_puts(b, "nan");
        return;
    }
    if (signbit(v)) {
        rx_putc(b, '-');
        v = -v;
    }
    if (v > 1.7976931348623157e308) {
        rx_puts(b, "inf");
        return;
    }
    if (v == 0) {
        rx_puts(b, "0.0");
        return;
    }
    int lo = 1, hi = single ? 9 : 17;
    decimal best = to_decimal(v, hi);
    while (lo < hi) {
        int mid = (lo + hi) / 2;
        decimal d = to_decimal(v, mid);
        if (from_decimal(&d, single) == v) {
            best = d;
            hi = mid;
        } else {
            lo = mid + 1;
        }
    }
    put_decimal(b, &best);
}

void rx_put_double(rx_buf *b, double v)
{
    put_real(b, v, false);
}

void rx_put_float(rx_buf *b, float v)
{
    put_real(b, v, true);
}

static bool is_digit(char c) { return c >= '0' && c <= '9'; }
static bool is_word(char c) { return is_digit(c) || c == '_' || ((c | 32) >= 'a' && (c | 32) <= 'z'); }

static size_t read_special(const char *s, size_t n, size_t i, bool neg, double *v)
{
    bool inf = n - i >= 3 && memcmp(s + i, "inf", 3) == 0;
    bool nan = n - i >= 3 && memcmp(s + i, "nan", 3) == 0;
    if ((!inf && !nan) || (n - i > 3 && is_word(s[i + 3])))
        return 0;
    double x = inf ? (double)INFINITY : (double)NAN;
    *v = neg ? -x : x;
    return i + 3;
}

/* Digits beyond MAX_DIGITS cannot change a double's value except as "more than a tie": 767 decide, one more
 * nonzero digit stands for the rest. */
enum { MAX_DIGITS = 780 };

size_t rx_read_double(const char *s, size_t n, double *v)
{
    char t[MAX_DIGITS + 32];
    size_t i = 0, k = 0;
    bool neg = n && s[0] == '-', any = false, dropped = false;
    i += n && (s[0] == '-' || s[0] == '+');
    int64_t exp = 0;
    for (bool frac = false; i < n; i++) {
        if (s[i] == '.' && !frac && i + 1 < n && is_digit(s[i + 1])) {
            frac = true;
            continue;
        }
        if (!is_digit(s[i]))
            break;
        any = true;
        if (k < MAX_DIGITS) {
            exp -= frac;
            if (k || s[i] != '0')
                t[k++] = s[i];
        } else {
            exp += !frac;
            dropped |= s[i] != '0';
        }
    }
    if (!any)
        return read_special(s, n, i, neg, v);
    size_t j = i + 1;
    if (i < n && (s[i] | 32) == 'e') {
        bool eneg = j < n && s[j] == '-';
        j += j < n && (s[j] == '-' || s[j] == '+');
        if (j < n && is_digit(s[j])) {
            int64_t e = 0;
            for (; j < n && is_digit(s[j]); j++)
                e = e < 100000000 ? e * 10 + (s[j] - '0') : e;
            exp += eneg ? -e : e;
            i = j;
        }
    }
    if (dropped) {
        t[k++] = '1';
        exp--;
    }
    exp = RX_MAX(RX_MIN(exp, (int64_t)1 << 50), -((int64_t)1 << 50));
    double x = 0;
    if (k) {
        snprintf(t + k, sizeof t - k, "e%lld", (long long)exp);
        int saved = errno;
        x = strtod(t, NULL);
        errno = saved;
    }
    *v = neg ? -x : x;
    return i;
}

size_t rx_read_i64(const char *s, size_t n, int64_t *v)
{
    bool neg = n && s[0] == '-';
    size_t i = neg;
    int64_t x = 0;
    for (; i < n && is_digit(s[i]); i++)
        if (!rx_mul_ok(x, 10, &x) || !rx_sub_ok(x, s[i] - '0', &x))
            return 0;                /* counts downwards: INT64_MIN has no positive twin */
    if (i == (size_t)neg || (!neg && x == INT64_MIN))
        return 0;
    *v = neg ? x : -x;
    return i;
}

/* --- UTF-8 as Unicode's table 3-7: no overlong forms, no surrogates, nothing above U+10FFFF --- */
size_t rx_utf8_valid(const char *text, size_t n)
{
    const uint8_t *s = (const uint8_t *)text;
    size_t i = 0;
    while (i < n) {
        uint8_t c = s[i];
        bool two = c >= 0xC2 && c <= 0xDF, three = (c & 0xF0) == 0xE0, four = c >= 0xF0 && c <= 0xF4;
        size_t more = c < 0x80 ? 0 : two ? 1 : three ? 2 : four ? 3 : SIZE_MAX;
        if (more > n - i - 1)
            return i;
        for (size_t j = 1; j <= more; j++)
            if ((s[i + j] & 0xC0) != 0x80)
                return i;
        if ((c == 0xE0 && s[i + 1] < 0xA0) || (c == 0xED && s[i + 1] > 0x9F) || (c == 0xF0 && s[i + 1] < 0x90) ||
            (c == 0xF4 && s[i + 1] > 0x8F))
            return i;
        i += more + 1;
    }
    return i;
}
