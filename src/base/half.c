/* half.c: IEEE half and bfloat16 to and from float, round to nearest even, by integer arithmetic: the same
 * on every machine and in every rounding mode. NaNs stay NaNs (quiet, upper payload bits kept). */
#include "base/base.h"

static uint32_t bits_of(float f)
{
    uint32_t u;
    memcpy(&u, &f, sizeof u);
    return u;
}

static float float_of(uint32_t u)
{
    float f;
    memcpy(&f, &u, sizeof f);
    return f;
}

float rx_f16_to_f32(uint16_t h)
{
    uint32_t sign = (uint32_t)(h & 0x8000) << 16, e = (h >> 10) & 31, m = h & 0x3FF;
    if (e == 31)
        return float_of(sign | 0x7F800000u | (m ? m << 13 | 0x400000u : 0));
    if (e)
        return float_of(sign | (e + 112) << 23 | m << 13);
    if (!m)
        return float_of(sign);
    int shift = __builtin_clz(m) - 21;       /* brings the leading bit to bit 10 */
    m = m << shift & 0x3FF;
    return float_of(sign | (uint32_t)(113 - shift) << 23 | m << 13);
}

uint16_t rx_f32_to_f16(float f)
{
    uint32_t u = bits_of(f), sign = u >> 16 & 0x8000, a = u & 0x7FFFFFFF;
    if (a > 0x7F800000)
        return (uint16_t)(sign | 0x7E00 | (a >> 13 & 0x3FF));
    if (a >= 0x477FF000)                     /* 65520 and more round to infinity */
        return (uint16_t)(sign | 0x7C00);
    if (a >= 0x38800000) {                   /* normal: rebias, round the low 13 bits */
        a -= 112u << 23;
        return (uint16_t)(sign | (a + 0xFFF + (a >> 13 & 1)) >> 13);
    }
    if (a <= 0x33000000)                     /* 2^-25 is a tie with 0 */
        return (uint16_t)sign;
    uint32_t drop = 126 - (a >> 23), m = (a & 0x7FFFFF) | 0x800000;
    uint32_t half = 1u << (drop - 1), rest = m & ((1u << drop) - 1), r = m >> drop;
    r += rest > half || (rest == half && (r & 1));
    return (uint16_t)(sign | r);
}

float rx_bf16_to_f32(uint16_t h)
{
    return float_of((uint32_t)h << 16);
}

uint16_t rx_f32_to_bf16(float f)
{
    uint32_t u = bits_of(f);
    if ((u & 0x7FFFFFFF) > 0x7F800000)
        return (uint16_t)(u >> 16 | 0x40);
    return (uint16_t)((u + 0x7FFF + (u >> 16 & 1)) >> 16);
}
