/* quant.c: plain decoders of GGUF's block formats to f32, the second opinion for all faster code.
 *
 * Input: whole blocks in file order. Each decoder is written from the layout of its block (comment above it), value by
 * value. Scales are f16 unless said otherwise; `d` multiplies, `m` is subtracted or added.
 * Trap: results are defined with every product and sum rounded to f32 on its own, so this file must be compiled
 * without contraction to FMA. */
#include "import/import.h"

static float half_at(const uint8_t *p)
{
    return rx_f16_to_f32((uint16_t)(p[0] | p[1] << 8));
}

static void decode_F32(const uint8_t *s, float *y)
{
    uint32_t bits = (uint32_t)s[0] | (uint32_t)s[1] << 8 | (uint32_t)s[2] << 16 | (uint32_t)s[3] << 24;
    memcpy(y, &bits, 4);
}

static void decode_F16(const uint8_t *s, float *y)
{
    *y = half_at(s);
}

static void decode_BF16(const uint8_t *s, float *y)
{
    *y = rx_bf16_to_f32((uint16_t)(s[0] | s[1] << 8));
}

/* 32 values of 4 bits: the low nibbles of 16 bytes are values 0..15, the high nibbles values 16..31 */
static int nibble(const uint8_t *qs, int i)
{
    return i < 16 ? qs[i] & 15 : qs[i - 16] >> 4;
}

/* bit i of a little-endian bit string */
static int bit_at(const uint8_t *p, int i)
{
    return p[i >> 3] >> (i & 7) & 1;
}

/* d, 16 bytes of nibbles; x = d * (q - 8) */
static void decode_Q4_0(const uint8_t *s, float *y)
{
    float d = half_at(s);
    for (int i = 0; i < 32; i++)
        y[i] = (float)(nibble(s + 2, i) - 8) * d;
}

/* d, m, 16 bytes of nibbles; x = d * q + m */
static void decode_Q4_1(const uint8_t *s, float *y)
{
    float d = half_at(s), m = half_at(s + 2);
    for (int i = 0; i < 32; i++)
        y[i] = (float)nibble(s + 4, i) * d + m;
}

/* d, 32 fifth bits, 16 bytes of nibbles; x = d * (q - 16) */
static void decode_Q5_0(const uint8_t *s, float *y)
{
    float d = half_at(s);
    for (int i = 0; i < 32; i++)
        y[i] = (float)((nibble(s + 6, i) | bit_at(s + 2, i) << 4) - 16) * d;
}

/* d, m, 32 fifth bits, 16 bytes of nibbles; x = d * q + m */
static void decode_Q5_1(const uint8_t *s, float *y)
{
    float d = half_at(s), m = half_at(s + 2);
    for (int i = 0; i < 32; i++)
        y[i] = (float)(nibble(s + 8, i) | bit_at(s + 4, i) << 4) * d + m;
}

/* d, 32 signed bytes; x = d * q */
static void decode_Q8_0(const uint8_t *s, float *y)
{
    float d = half_at(s);
    for (int i = 0; i < 32; i++)
        y[i] = (float)(int8_t)s[2 + i] * d;
}

/* Two-bit planes of 256 values: half h (128 values) has 32 bytes, its value i lies in bits 2*(i/32) of byte i%32. */
static int crumb(const uint8_t *qs, int i)
{
    return qs[i / 128 * 32 + i % 32] >> (i % 128 / 32 * 2) & 3;
}

/* 16 bytes (low nibble scale, high nibble minimum of 16 values each), 64 bytes of crumbs, d, dmin */
static void decode_Q2_K(const uint8_t *s, float *y)
{
    float d = half_at(s + 80), dmin = half_at(s + 82);
    for (int i = 0; i < 256; i++) {
        float dl = d * (float)(s[i / 16] & 15), ml = dmin * (float)(s[i / 16] >> 4);
        y[i] = dl * (float)crumb(s + 16, i) - ml;
    }
}

/* 6-bit scale of group g (0..15) from 12 bytes: low nibbles in bytes 0..7, high two bits in bytes 8..11 */
static int scale6(const uint8_t *p, int g)
{
    int lo = g < 8 ? p[g] & 15 : p[g - 8] >> 4;
    return (lo | (p[8 + g % 4] >> (g / 4 * 2) & 3) << 4) - 32;
}

/* 32 bytes of high bits (value i: bit i/32 of byte i%32), 64 bytes of crumbs, 12 bytes of scales, d.
 * The high bit is stored inverted: clear means minus 4. */
static void decode_Q3_K(const uint8_t *s, float *y)
{
    float d = half_at(s + 108);
    for (int i = 0; i < 256; i++) {
        float dl = d * (float)scale6(s + 96, i / 16);
        int high = s[i % 32] >> (i / 32) & 1;
        y[i] = dl * (float)(crumb(s + 32, i) - (high ? 0 : 4));
    }
}

/* 6-bit scale and minimum of group g (0..7) from 12 bytes: groups 0..3 in the low 6 bits of bytes 0..3 and 4..7;
 * groups 4..7 have their low 4 bits in bytes 8..11 and their high 2 bits on top of the others. */
static void scale_min(const uint8_t *p, int g, int *sc, int *mn)
{
    if (g < 4) {
        *sc = p[g] & 63;
        *mn = p[g + 4] & 63;
    } else {
        *sc = (p[g + 4] & 15) | p[g - 4] >> 6 << 4;
        *mn = p[g + 4] >> 4 | p[g] >> 6 << 4;
    }
}

/* 4 low bits of 256 values in runs of 64: 32 bytes hold 32 low nibbles, then 32 high nibbles */
static int nibble_k(const uint8_t *qs, int i)
{
    return qs[i / 64 * 32 + i % 32] >> (i % 64 / 32 * 4) & 15;
}

/* d, dmin, 12 bytes of scales and minima (groups of 32), 128 bytes of nibbles */
static void decode_Q4_K(const uint8_t *s, float *y)
{
    float d = half_at(s), dmin = half_at(s + 2);
    for (int i = 0; i < 256; i++) {
        int sc, mn;
        scale_min(s + 4, i / 32, &sc, &mn);
        float dl = d * (float)sc, ml = dmin * (float)mn;
        y[i] = dl * (float)nibble_k(s + 16, i) - ml;
    }
}

/* as Q4_K with 32 bytes of fifth bits (value i: bit i/32 of byte i%32) before the nibbles */
static void decode_Q5_K(const uint8_t *s, float *y)
{
    float d = half_at(s), dmin = half_at(s + 2);
    for (int i = 0; i < 256; i++) {
        int sc, mn;
        scale_min(s + 4, i / 32, &sc, &mn);
        float dl = d * (float)sc, ml = dmin * (float)mn;
        int q = nibble_k(s + 48, i) | (s[16 + i % 32] >> (i / 32) & 1) << 4;
        y[i] = dl * (float)q - ml;
    }
}

/* 128 bytes of low nibbles (runs of 128: 64 low nibbles, then 64 high), 64 bytes of crumbs, 16 signed scales, d */
static void decode_Q6_K(const uint8_t *s, float *y)
{
    float d = half_at(s + 208);
    for (int i = 0; i < 256; i++) {
        int lo = s[i / 128 * 64 + i % 64] >> (i % 128 / 64 * 4) & 15;
        int q = (lo | crumb(s + 128, i) << 4) - 32;
        float dl = d * (float)(int8_t)s[192 + i / 16];
        y[i] = dl * (float)q;
    }
}

static const int8_t iq4_values[16] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};

/* d, 16 bytes of nibbles that index a table of values */
static void decode_IQ4_NL(const uint8_t *s, float *y)
{
    float d = half_at(s);
    for (int i = 0; i < 32; i++)
        y[i] = d * (float)iq4_values[nibble(s + 2, i)];
}

/* d, u16 of high scale bits (2 a group of 32), 4 bytes of low scale nibbles, 128 bytes of nibbles (16 a group) */
static void decode_IQ4_XS(const uint8_t *s, float *y)
{
    float d = half_at(s);
    int high = s[2] | s[3] << 8;
    for (int i = 0; i < 256; i++) {
        int g = i / 32;
        int sc = ((s[4 + g / 2] >> (g % 2 * 4) & 15) | (high >> (2 * g) & 3) << 4) - 32;
        float dl = d * (float)sc;
        y[i] = dl * (float)iq4_values[nibble(s + 8 + 16 * g, i % 32)];
    }
}

/* doubled E2M1 values, so the scale below is halved */
static const int8_t e2m1_values[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

/* one byte e: scale 2^(e-127) / 2, 16 bytes of nibbles */
static void decode_MXFP4(const uint8_t *s, float *y)
{
    uint32_t bits = s[0] < 2 ? 0x00200000u << s[0] : (uint32_t)(s[0] - 1) << 23;
    float d;
    memcpy(&d, &bits, 4);
    for (int i = 0; i < 32; i++)
        y[i] = d * (float)e2m1_values[nibble(s + 1, i)];
}

typedef void (*decode_fn)(const uint8_t *block, float *out);

static decode_fn decoder_of(uint32_t type)
{
    switch (type) {
#define DECODE_1(name) case RX_GGML_##name: return decode_##name;
#define DECODE_0(name)
#define X(id, name, values, bytes, dec) DECODE_##dec(name)
#include "import/types.def"
#undef X
#undef DECODE_0
#undef DECODE_1
    default: return NULL;
    }
}

bool rx_quant_decode(uint32_t type, const void *src, int64_t n_values, float *dst)
{
    const rx_ggml_type *ty = rx_ggml_type_info(type);
    decode_fn fn = decoder_of(type);
    if (!ty || !fn || n_values < 0 || n_values % ty->block_values != 0)
        return false;
    const uint8_t *s = src;
    for (int64_t i = 0; i < n_values; i += ty->block_values, s += ty->block_bytes)
        fn(s, dst + i);
    return true;
}
