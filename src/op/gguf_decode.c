/* gguf_decode.c: the block formats of GGUF as expressions of tensor programs.
 *
 * A block is decoded in steps of 16 consecutive values; value j0 + v of a step (j0 constant, v the lane) is written as
 * loads of consecutive bytes, so that a step is vector code without gathers. Every value is q * scale, with a term
 * added or subtracted in the formats that have one; q is a small integer, exact in f32, and each product and sum is
 * rounded on its own: bit for bit what GGML's reference decoder gives.
 *
 * Layouts are named from the first value on: "nibbles" of 32 values are 16 bytes, low halves first; a "crumb" is two
 * bits. A table of 16 values is a tree of selects by the bits of the index: three times faster than a gather and
 * nothing to set up. */
#include "op/impl.h"

typedef struct block {
    rx_legal *l;
    const rx_qsrc *src;
    rx_ex d, m;                        /* scales of the block as f32, set when the format has them */
} block;

struct rx_qformat {
    const char *name;
    int32_t values, bytes;
    int32_t d_at, m_at;                /* byte offsets of f16 scales, -1: none */
    rx_ex (*q)(block *b, int64_t j0, rx_ex v);          /* integer of a value */
    rx_ex (*scale)(block *b, int64_t j0);               /* f32 factor of a step; NULL: d */
    rx_ex (*term)(block *b, int64_t j0);                /* f32 term of a step; NULL: none */
    bool add;                          /* the term is added, not subtracted */
};

/* ---- bytes ---- */

static rx_ex byte_v(block *b, int64_t at, rx_ex v)
{
    rx_ex ix[RX_MAX_NDIM], o = rx_addi(b->l->ctx, b->src->off, at);
    for (uint32_t i = 0; i < b->src->nlead; i++)
        ix[i] = b->src->lead[i];
    ix[b->src->nlead] = v ? rx_add(b->l->ctx, o, v) : o;
    return rx_load_at(b->l, b->src->w, ix);
}

static rx_ex byte_at(block *b, int64_t at)
{
    return byte_v(b, at, NULL);
}

static rx_ex k8(block *b, int64_t v)
{
    return rx_const_int(b->l->ctx, RELAX_U8, v);
}

static rx_ex shr(block *b, rx_ex e, int64_t n)
{
    return n ? rx_binary(b->l->ctx, RX_EX_SHR, e, rx_const_int(b->l->ctx, e->dtype, n)) : e;
}

static rx_ex shl(block *b, rx_ex e, int64_t n)
{
    return n ? rx_binary(b->l->ctx, RX_EX_SHL, e, rx_const_int(b->l->ctx, e->dtype, n)) : e;
}

static rx_ex and(block *b, rx_ex e, int64_t mask)
{
    return rx_binary(b->l->ctx, RX_EX_BITAND, e, rx_const_int(b->l->ctx, e->dtype, mask));
}

static rx_ex and8(block *b, rx_ex e, int64_t mask)
{
    return and(b, e, mask);
}

static rx_ex or(block *b, rx_ex x, rx_ex y)
{
    return rx_binary(b->l->ctx, RX_EX_BITOR, x, y);
}

/* a byte minus a constant, as i8: the values stay in range */
static rx_ex minus(block *b, rx_ex e, int64_t n)
{
    relax_context *ctx = b->l->ctx;
    return rx_sub(ctx, rx_bitcast(ctx, RELAX_I8, e), rx_const_int(ctx, RELAX_I8, n));
}

/* a little-endian number of n bytes as type t */
static rx_ex word(block *b, relax_dtype t, int64_t at, int n)
{
    rx_ex e = rx_cast(b->l->ctx, t, byte_at(b, at));
    for (int i = 1; i < n; i++)
        e = or(b, e, shl(b, rx_cast(b->l->ctx, t, byte_at(b, at + i)), 8 * i));
    return e;
}

static rx_ex half_at(block *b, int64_t at)
{
    return rx_cast(b->l->ctx, RELAX_F32, rx_bitcast(b->l->ctx, RELAX_F16, word(b, RELAX_U16, at, 2)));
}

static rx_ex f32_of(block *b, rx_ex e)
{
    return rx_cast(b->l->ctx, RELAX_F32, e);
}

static rx_ex mul(block *b, rx_ex x, rx_ex y)
{
    return rx_mul(b->l->ctx, x, y);
}

/* ---- small fields ---- */

/* nibble of value j0 + v among 32 values whose bytes begin at `at` */
static rx_ex nibble(block *b, int64_t at, int64_t j0, rx_ex v)
{
    return j0 < 16 ? and8(b, byte_v(b, at + j0, v), 15) : shr(b, byte_v(b, at + j0 - 16, v), 4);
}

/* the same as i32: the bytes are widened once for both halves */
static rx_ex nibble_wide(block *b, int64_t at, int64_t j0, rx_ex v)
{
    rx_ex e = rx_cast(b->l->ctx, RELAX_I32, byte_v(b, at + j0 % 16, v));
    return j0 < 16 ? and(b, e, 15) : shr(b, e, 4);
}

/* 2 bits of value j0 + v: half h of 256 has 32 bytes, value i of it lies in bits 2*(i/32) of byte i%32 */
static rx_ex crumb(block *b, int64_t at, int64_t j0, rx_ex v)
{
    return and8(b, shr(b, byte_v(b, at + j0 / 128 * 32 + j0 % 32, v), j0 % 128 / 32 * 2), 3);
}

/* nibble in runs of 64 values: 32 bytes hold 32 low halves, then 32 high ones; as i32 */
static rx_ex nibble_k(block *b, int64_t at, int64_t j0, rx_ex v)
{
    rx_ex e = rx_cast(b->l->ctx, RELAX_I32, byte_v(b, at + j0 / 64 * 32 + j0 % 32, v));
    return j0 % 64 < 32 ? and(b, e, 15) : shr(b, e, 4);
}

/* bit j0 / 32 of byte (j0 % 32 + v), at bit position `to` */
static rx_ex plane_bit(block *b, int64_t at, int64_t j0, rx_ex v, int64_t to)
{
    int64_t from = j0 / 32;
    rx_ex e = and8(b, byte_v(b, at + j0 % 32, v), (int64_t)1 << from);
    return from > to ? shr(b, e, from - to) : shl(b, e, to - from);
}

/* value [e & 15] of a table, as i8: a tree of selects */
static rx_ex lookup(block *b, const int8_t *table, rx_ex e)
{
    relax_context *ctx = b->l->ctx;
    rx_ex x[16];
    for (int i = 0; i < 16; i++)
        x[i] = rx_const_int(ctx, RELAX_I8, table[i]);
    for (int bit = 0, n = 8; n; bit++, n /= 2) {
        rx_ex set = rx_ne(ctx, and8(b, e, (int64_t)1 << bit), k8(b, 0));
        for (int i = 0; i < n; i++)
            x[i] = rx_select(ctx, set, x[2 * i + 1], x[2 * i]);
    }
    return x[0];
}

/* ---- formats of 32 values ---- */

static rx_ex q4_0(block *b, int64_t j0, rx_ex v)
{
    return rx_subi(b->l->ctx, nibble_wide(b, 2, j0, v), 8);
}

static rx_ex q4_1(block *b, int64_t j0, rx_ex v)
{
    return nibble_wide(b, 4, j0, v);
}

/* nibbles at `at`, the fifth bits as one u32 in front of them: 0 .. 31 */
static rx_ex five_bits(block *b, int64_t at, int64_t j0, rx_ex v)
{
    relax_context *ctx = b->l->ctx;
    rx_ex w = word(b, RELAX_U32, at - 4, 4), lane = rx_cast(ctx, RELAX_U32, v);
    rx_ex down = j0 ? rx_addi(ctx, lane, j0 - 4) : lane;    /* bit j0 + v to bit 4 */
    rx_ex bit = and(b, rx_binary(ctx, RX_EX_SHR, j0 ? w : shl(b, w, 4), down), 16);
    return or(b, nibble_wide(b, at, j0, v), rx_cast(ctx, RELAX_I32, bit));
}

static rx_ex q5_0(block *b, int64_t j0, rx_ex v)
{
    return rx_subi(b->l->ctx, five_bits(b, 6, j0, v), 16);
}

static rx_ex q5_1(block *b, int64_t j0, rx_ex v)
{
    return five_bits(b, 8, j0, v);
}

static rx_ex q8_0(block *b, int64_t j0, rx_ex v)
{
    return rx_bitcast(b->l->ctx, RELAX_I8, byte_v(b, 2 + j0, v));
}

static const int8_t iq4_values[16] = { -127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113 };

static rx_ex iq4_nl(block *b, int64_t j0, rx_ex v)
{
    return lookup(b, iq4_values, nibble(b, 2, j0, v));
}

/* E2M1 doubled, so the scale is halved */
static const int8_t e2m1_values[16] = { 0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12 };

static rx_ex mxfp4(block *b, int64_t j0, rx_ex v)
{
    return lookup(b, e2m1_values, nibble(b, 1, j0, v));
}

/* 2^(e - 127) / 2 from the exponent byte e; the two smallest are subnormal */
static rx_ex mxfp4_scale(block *b, int64_t j0)
{
    (void)j0;
    relax_context *ctx = b->l->ctx;
    rx_ex e = word(b, RELAX_U32, 0, 1), two = rx_const_int(ctx, RELAX_U32, 2), one = rx_const_int(ctx, RELAX_U32, 1);
    rx_ex small = rx_binary(ctx, RX_EX_SHL, rx_const_int(ctx, RELAX_U32, 0x00200000), e);
    rx_ex bits = rx_select(ctx, rx_lt(ctx, e, two), small, shl(b, rx_sub(ctx, e, one), 23));
    return rx_bitcast(ctx, RELAX_F32, bits);
}

static rx_ex block_m(block *b, int64_t j0)
{
    (void)j0;
    return b->m;
}

/* ---- formats of 256 values ---- */

static rx_ex q2_k(block *b, int64_t j0, rx_ex v)
{
    return crumb(b, 16, j0, v);
}

static rx_ex q2_k_scale(block *b, int64_t j0)
{
    return mul(b, b->d, f32_of(b, and8(b, byte_at(b, j0 / 16), 15)));
}

static rx_ex q2_k_min(block *b, int64_t j0)
{
    return mul(b, b->m, f32_of(b, shr(b, byte_at(b, j0 / 16), 4)));
}

/* the high bit is stored inverted: clear means minus 4 */
static rx_ex q3_k(block *b, int64_t j0, rx_ex v)
{
    return minus(b, or(b, crumb(b, 32, j0, v), plane_bit(b, 0, j0, v, 2)), 4);
}

/* 6-bit scales of 16 groups in 12 bytes: low nibbles in bytes 0..7, high two bits in bytes 8..11 */
static rx_ex q3_k_scale(block *b, int64_t j0)
{
    int64_t g = j0 / 16, at = 96;
    rx_ex lo = g < 8 ? and8(b, byte_at(b, at + g), 15) : shr(b, byte_at(b, at + g - 8), 4);
    rx_ex hi = and8(b, shr(b, byte_at(b, at + 8 + g % 4), g / 4 * 2), 3);
    return mul(b, b->d, f32_of(b, minus(b, or(b, lo, shl(b, hi, 4)), 32)));
}

/* 6-bit scale (which 0) or minimum (4) of 8 groups of 32 in 12 bytes at 4: groups 0..3 in the low bits of bytes 0..3
 * and 4..7; groups 4..7 have low nibbles in bytes 8..11 and their high two bits on top of the others */
static rx_ex six_bits(block *b, int64_t g, int64_t which)
{
    if (g < 4)
        return and8(b, byte_at(b, 4 + g + which), 63);
    rx_ex lo = which == 0 ? and8(b, byte_at(b, 4 + g + 4), 15) : shr(b, byte_at(b, 4 + g + 4), 4);
    return or(b, lo, shl(b, shr(b, byte_at(b, 4 + g - 4 + which), 6), 4));
}

static rx_ex k_scale(block *b, int64_t j0)
{
    return mul(b, b->d, f32_of(b, six_bits(b, j0 / 32, 0)));
}

static rx_ex k_min(block *b, int64_t j0)
{
    return mul(b, b->m, f32_of(b, six_bits(b, j0 / 32, 4)));
}

static rx_ex q4_k(block *b, int64_t j0, rx_ex v)
{
    return nibble_k(b, 16, j0, v);
}

static rx_ex q5_k(block *b, int64_t j0, rx_ex v)
{
    return or(b, nibble_k(b, 48, j0, v), rx_cast(b->l->ctx, RELAX_I32, plane_bit(b, 16, j0, v, 4)));
}

/* low nibbles in runs of 128 values: 64 low halves, then 64 high ones; high two bits as crumbs */
static rx_ex q6_k(block *b, int64_t j0, rx_ex v)
{
    rx_ex e = byte_v(b, j0 / 128 * 64 + j0 % 64, v);
    e = j0 % 128 < 64 ? and8(b, e, 15) : shr(b, e, 4);
    return minus(b, or(b, e, shl(b, crumb(b, 128, j0, v), 4)), 32);
}

static rx_ex q6_k_scale(block *b, int64_t j0)
{
    return mul(b, b->d, f32_of(b, rx_bitcast(b->l->ctx, RELAX_I8, byte_at(b, 192 + j0 / 16))));
}

static rx_ex iq4_xs(block *b, int64_t j0, rx_ex v)
{
    return lookup(b, iq4_values, nibble(b, 8 + j0 / 32 * 16, j0 % 32, v));
}

/* 6-bit scales of 8 groups of 32: low nibbles in 4 bytes at 4, high two bits in the u16 at 2 */
static rx_ex iq4_xs_scale(block *b, int64_t j0)
{
    int64_t g = j0 / 32;
    rx_ex lo = and8(b, shr(b, byte_at(b, 4 + g / 2), g % 2 * 4), 15);
    rx_ex hi = and8(b, shr(b, byte_at(b, 2 + g / 4), g % 4 * 2), 3);
    return mul(b, b->d, f32_of(b, minus(b, or(b, lo, shl(b, hi, 4)), 32)));
}

static const rx_qformat formats[] = {
    { "f32",    1,   4,   -1,  -1, NULL,   NULL,         NULL,     false },
    { "f16",    1,   2,   -1,  -1, NULL,   NULL,         NULL,     false },
    { "bf16",   1,   2,   -1,  -1, NULL,   NULL,         NULL,     false },
    { "q4_0",   32,  18,  0,   -1, q4_0,   NULL,         NULL,     false },
    { "q4_1",   32,  20,  0,   2,  q4_1,   NULL,         block_m,  true },
    { "q5_0",   32,  22,  0,   -1, q5_0,   NULL,         NULL,     false },
    { "q5_1",   32,  24,  0,   2,  q5_1,   NULL,         block_m,  true },
    { "q8_0",   32,  34,  0,   -1, q8_0,   NULL,         NULL,     false },
    { "iq4_nl", 32,  18,  0,   -1, iq4_nl, NULL,         NULL,     false },
    { "mxfp4",  32,  17,  -1,  -1, mxfp4,  mxfp4_scale,  NULL,     false },
    { "q2_k",   256, 84,  80,  82, q2_k,   q2_k_scale,   q2_k_min, false },
    { "q3_k",   256, 110, 108, -1, q3_k,   q3_k_scale,   NULL,     false },
    { "q4_k",   256, 144, 0,   2,  q4_k,   k_scale,      k_min,    false },
    { "q5_k",   256, 176, 0,   2,  q5_k,   k_scale,      k_min,    false },
    { "q6_k",   256, 210, 208, -1, q6_k,   q6_k_scale,   NULL,     false },
    { "iq4_xs", 256, 136, 0,   -1, iq4_xs, iq4_xs_scale, NULL,     false },
};

const rx_qformat *rx_qformat_find(const char *name)
{
    for (size_t i = 0; i < RX_COUNT(formats); i++) {
        const char *p = formats[i].name, *s = name;
        while (*p && (*s == *p || (*s >= 'A' && *s <= 'Z' && *s - 'A' + 'a' == *p))) {
            p++;
            s++;
        }
        if (!*p && !*s)
            return &formats[i];
    }
    return NULL;
}

void rx_qformat_size(const rx_qformat *q, int64_t *values, int64_t *bytes)
{
    *values = q->values;
    *bytes = q->bytes;
}

/* a variable for a let of this value; NULL for none */
static rx_ex bind(block *b, const char *name, rx_ex value)
{
    return value ? rx_sym_new(b->l->ctx, name, value->dtype) : NULL;
}

static rx_stmt *let(block *b, rx_ex var, rx_ex value, rx_stmt *body)
{
    return var ? rx_let(&b->l->tb, var, value, body) : body;
}

static rx_stmt *step(block *b, const rx_qformat *q, int64_t j0, rx_qsink sink, void *arg)
{
    relax_context *ctx = b->l->ctx;
    rx_ex v = rx_loopvar(&b->l->tb, "v");
    rx_ex scale = q->scale ? q->scale(b, j0) : NULL, term = q->term && q->term != block_m ? q->term(b, j0) : NULL;
    rx_ex s = bind(b, "s", scale), t = bind(b, "t", term);
    rx_ex x = mul(b, f32_of(b, q->q(b, j0, v)), s ? s : b->d), add = t ? t : q->term ? b->m : NULL;
    if (add)
        x = q->add ? rx_add(ctx, x, add) : rx_sub(ctx, x, add);
    rx_stmt *body = sink(b->l, arg, j0, v, x);
    rx_stmt *loop = rx_for(&b->l->tb, v, rx_int(ctx, 0), rx_int(ctx, RX_QLANES), RX_VECTOR, false, NULL, body);
    return let(b, s, scale, let(b, t, term, loop));
}

rx_stmt *rx_qblock(rx_legal *l, const rx_qformat *q, const rx_qsrc *src, rx_qsink sink, void *arg)
{
    block b = { .l = l, .src = src };
    rx_ex d = q->d_at >= 0 ? half_at(&b, q->d_at) : NULL, m = q->m_at >= 0 ? half_at(&b, q->m_at) : NULL;
    b.d = bind(&b, "d", d);
    b.m = bind(&b, "m", m);
    rx_stmt *steps[256 / RX_QLANES];
    uint32_t n = 0;
    for (int64_t j0 = 0; j0 < q->values; j0 += RX_QLANES)
        steps[n++] = step(&b, q, j0, sink, arg);
    return let(&b, b.d, d, let(&b, b.m, m, rx_seq(&l->tb, steps, n)));
}

rx_ex rx_qplain(rx_legal *l, const rx_qformat *q, const rx_qsrc *src)
{
    block b = { .l = l, .src = src };
    if (q->bytes == 4)
        return rx_bitcast(l->ctx, RELAX_F32, word(&b, RELAX_U32, 0, 4));
    relax_dtype t = q->name[0] == 'b' ? RELAX_BF16 : RELAX_F16;
    return rx_cast(l->ctx, RELAX_F32, rx_bitcast(l->ctx, t, word(&b, RELAX_U16, 0, 2)));
}
