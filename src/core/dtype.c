/* dtype.c: the data types and the casts between them, one element at a time.
 *
 * The cast of the language (docs/semantics.md): int to int wraps at the width; float to int truncates toward zero,
 * saturates, NaN gives 0; anything to bool is "not equal to zero" (NaN is true); f64 and integers go to f16, bf16
 * and f8 through f32; an overflow gives infinity (NaN in f8e4m3, which has no infinity). Elements may be
 * unaligned. */
#include "core/core.h"

#include <math.h>

const rx_dtype_info rx_dtypes[] = {
    [RELAX_DTYPE_UNKNOWN] = {"?", 0, 0},
    [RELAX_BOOL] = {"bool", 8, 'b'},
    [RELAX_I8] = {"i8", 8, 'i'},
    [RELAX_I16] = {"i16", 16, 'i'},
    [RELAX_I32] = {"i32", 32, 'i'},
    [RELAX_I64] = {"i64", 64, 'i'},
    [RELAX_U8] = {"u8", 8, 'u'},
    [RELAX_U16] = {"u16", 16, 'u'},
    [RELAX_U32] = {"u32", 32, 'u'},
    [RELAX_U64] = {"u64", 64, 'u'},
    [RELAX_F16] = {"f16", 16, 'f'},
    [RELAX_BF16] = {"bf16", 16, 'f'},
    [RELAX_F32] = {"f32", 32, 'f'},
    [RELAX_F64] = {"f64", 64, 'f'},
    [RELAX_F8E4M3] = {"f8e4m3", 8, 'f'},
    [RELAX_F8E5M2] = {"f8e5m2", 8, 'f'},
};
_Static_assert(RX_COUNT(rx_dtypes) == RELAX_DTYPE_COUNT, "a row for each data type");

static const rx_dtype_info *info(relax_dtype t)
{
    return &rx_dtypes[t > 0 && t < RELAX_DTYPE_COUNT ? t : 0];
}

size_t rx_dtype_bytes(relax_dtype t)
{
    return info(t)->bits / 8;
}

bool rx_dtype_is_float(relax_dtype t)
{
    return info(t)->kind == 'f';
}

bool rx_dtype_is_int(relax_dtype t)
{
    return info(t)->kind == 'i' || info(t)->kind == 'u';
}

bool rx_dtype_is_uint(relax_dtype t)
{
    return info(t)->kind == 'u';
}

relax_dtype rx_dtype_parse(const char *s, size_t n)
{
    for (relax_dtype t = 1; t < RELAX_DTYPE_COUNT; t++)
        if (strlen(rx_dtypes[t].name) == n && memcmp(rx_dtypes[t].name, s, n) == 0)
            return t;
    return RELAX_DTYPE_UNKNOWN;
}

void rx_dtype_int_range(relax_dtype t, int64_t *lo, int64_t *hi)
{
    const rx_dtype_info *d = info(t);
    *lo = *hi = 0;
    if (d->kind == 'b')
        *hi = 1;
    if (d->kind == 'i') {
        *hi = (int64_t)(UINT64_MAX >> (65 - d->bits));
        *lo = -*hi - 1;
    }
    if (d->kind == 'u')
        *hi = d->bits == 64 ? INT64_MAX : (int64_t)(UINT64_MAX >> (64 - d->bits));
}

/* --- 8-bit floats: mbits 3 is e4m3 (bias 7, no infinity), mbits 2 is e5m2 (bias 15) --- */
static double f8_plain(unsigned c, int mbits)
{
    int e = (int)(c >> mbits), m = (int)(c & ((1u << mbits) - 1)), bias = mbits == 3 ? 7 : 15;
    return e ? ldexp(m + (1 << mbits), e - bias - mbits) : ldexp(m, 1 - bias - mbits);
}

/* the least code that is not finite */
static unsigned f8_end(int mbits) { return mbits == 3 ? 0x7F : 0x7C; }

static float f8_read(uint8_t c, int mbits)
{
    unsigned a = c & 0x7F;
    bool finite = a < f8_end(mbits), inf = mbits == 2 && a == f8_end(mbits);
    double v = finite ? f8_plain(a, mbits) : inf ? (double)INFINITY : (double)NAN;
    return (float)(c & 0x80 ? -v : v);
}

/* nearest code, ties to even: codes are ordered as their values, and the end stands for the next power of two */
static uint8_t f8_write(float f, int mbits)
{
    unsigned sign = signbit(f) ? 0x80 : 0, lo = 0, end = f8_end(mbits), hi = end;
    if (f != f)
        return (uint8_t)(sign | 0x7F);
    double a = fabs((double)f);
    while (lo < hi) {                /* the largest code with value <= a */
        unsigned mid = (lo + hi + 1) / 2;
        if (f8_plain(mid, mbits) <= a)
            lo = mid;
        else
            hi = mid - 1;
    }
    if (lo < end) {
        double down = a - f8_plain(lo, mbits), up = f8_plain(lo + 1, mbits) - a;
        lo += up < down || (up == down && (lo & 1));
    }
    return (uint8_t)(sign | lo);
}

/* --- one element --- */
#define LOAD(T, p) (*(T *)memcpy(&(T){0}, (p), sizeof(T)))
#define STORE(T, p, v) memcpy((p), &(T){(T)(v)}, sizeof(T))

static float load_small(relax_dtype t, const void *p)
{
    switch (t) {
    case RELAX_F16: return rx_f16_to_f32(LOAD(uint16_t, p));
    case RELAX_BF16: return rx_bf16_to_f32(LOAD(uint16_t, p));
    case RELAX_F8E4M3: return f8_read(LOAD(uint8_t, p), 3);
    default: return f8_read(LOAD(uint8_t, p), 2);
    }
}

static void store_f32(relax_dtype t, void *p, float f)
{
    switch (t) {
    case RELAX_F16: STORE(uint16_t, p, rx_f32_to_f16(f)); break;
    case RELAX_BF16: STORE(uint16_t, p, rx_f32_to_bf16(f)); break;
    case RELAX_F8E4M3: STORE(uint8_t, p, f8_write(f, 3)); break;
    case RELAX_F8E5M2: STORE(uint8_t, p, f8_write(f, 2)); break;
    default: STORE(float, p, f); break;
    }
}

double rx_load_f64(relax_dtype t, const void *p)
{
    switch (t) {
    case RELAX_F64: return LOAD(double, p);
    case RELAX_F32: return (double)LOAD(float, p);
    case RELAX_F16: case RELAX_BF16: case RELAX_F8E4M3: case RELAX_F8E5M2: return (double)load_small(t, p);
    case RELAX_U64: return (double)LOAD(uint64_t, p);
    default: return (double)rx_load_i64(t, p);
    }
}

/* truncates toward zero, saturates at lo and hi, NaN gives 0; `above` is hi + 1, which is an exact double */
static int64_t to_int(double v, int64_t lo, double above, int64_t hi)
{
    if (v != v)
        return 0;
    return v < (double)lo ? lo : v >= above ? hi : (int64_t)v;
}

int64_t rx_load_i64(relax_dtype t, const void *p)
{
    switch (t) {
    case RELAX_BOOL: return LOAD(uint8_t, p) != 0;
    case RELAX_I8: return LOAD(int8_t, p);
    case RELAX_I16: return LOAD(int16_t, p);
    case RELAX_I32: return LOAD(int32_t, p);
    case RELAX_I64: return LOAD(int64_t, p);
    case RELAX_U8: return LOAD(uint8_t, p);
    case RELAX_U16: return LOAD(uint16_t, p);
    case RELAX_U32: return LOAD(uint32_t, p);
    case RELAX_U64: return (int64_t)LOAD(uint64_t, p);
    case RELAX_DTYPE_UNKNOWN: return 0;
    default: return to_int(rx_load_f64(t, p), INT64_MIN, 0x1p63, INT64_MAX);
    }
}

void rx_store_i64(relax_dtype t, void *p, int64_t v)
{
    switch (t) {
    case RELAX_BOOL: STORE(uint8_t, p, v != 0); break;
    case RELAX_I8: case RELAX_U8: STORE(uint8_t, p, v); break;
    case RELAX_I16: case RELAX_U16: STORE(uint16_t, p, v); break;
    case RELAX_I32: case RELAX_U32: STORE(uint32_t, p, v); break;
    case RELAX_I64: case RELAX_U64: STORE(int64_t, p, v); break;
    case RELAX_F64: STORE(double, p, v); break;
    case RELAX_DTYPE_UNKNOWN: break;
    default: store_f32(t, p, (float)v); break;
    }
}

void rx_store_f64(relax_dtype t, void *p, double v)
{
    int64_t lo, hi;
    if (t == RELAX_F64) {
        STORE(double, p, v);
    } else if (rx_dtype_is_float(t)) {
        store_f32(t, p, (float)v);
    } else if (t == RELAX_BOOL) {
        STORE(uint8_t, p, v != 0);
    } else if (t == RELAX_U64) {
        STORE(uint64_t, p, v >= 0x1p64 ? UINT64_MAX : v > 0 ? (uint64_t)v : 0);
    } else {
        rx_dtype_int_range(t, &lo, &hi);
        rx_store_i64(t, p, to_int(v, lo, t == RELAX_I64 ? 0x1p63 : (double)hi + 1, hi));
    }
}

void rx_convert(relax_dtype to, void *d, relax_dtype from, const void *s)
{
    if (rx_dtype_is_float(from)) {
        if (to == from)
            memcpy(d, s, rx_dtype_bytes(from));  /* NaN payloads stay */
        else
            rx_store_f64(to, d, rx_load_f64(from, s));
    } else if (from == RELAX_U64 && rx_dtype_is_float(to)) {
        uint64_t u = LOAD(uint64_t, s);
        if (to == RELAX_F64)
            STORE(double, d, u);
        else
            store_f32(to, d, (float)u);
    } else {
        rx_store_i64(to, d, rx_load_i64(from, s));
    }
}

void rx_put_element(rx_buf *b, relax_dtype t, const void *p)
{
    if (t == RELAX_BOOL)
        rx_puts(b, *(const uint8_t *)p ? "true" : "false");
    else if (t == RELAX_F64)
        rx_put_double(b, rx_load_f64(t, p));
    else if (rx_dtype_is_float(t))
        rx_put_float(b, (float)rx_load_f64(t, p));
    else if (t == RELAX_U64)
        rx_putf(b, "%llu", (unsigned long long)rx_load_i64(t, p));
    else
        rx_put_i64(b, rx_load_i64(t, p));
}
