/* trig.c: sine and cosine.
 *
 * f32 is computed in f64 and rounded once. Reduction by multiples of pi/2: three 33-bit parts (Cody and Waite, as
 * fdlibm) for |x| <= 10^6, with the error kept in a second word. Larger arguments are rare: when some lane has one,
 * each lane calls a function of the module that multiplies the mantissa by the right 192 bits of 2/pi (Payne and
 * Hanek). Infinity gives NaN. */
#include "codegen/llvm/emit.h"

#define LIMIT 1e6                            /* quotients stay below 2^20, so that quotient * 33 bits is exact */

/* 64 zero bits, then the bits of 2/pi after its point */
static const uint64_t two_over_pi[] = {
    0, 0xa2f9836e4e441529, 0xfc2757d1f534ddc0, 0xdb6295993c439041, 0xfe5163abdebbc561,
    0xb7246e3a424dd2e0, 0x06492eea09d1921c, 0xfe1deb1cb129a73e, 0xe88235f52ebb4484,
    0xe99c7026b45f7e41, 0x3991d639835339f4, 0x9c845f8bbdf9283b, 0x1ff897ffde05980f,
    0xef2f118b5a0a6d1f, 0x6d367ecf27cb09b7, 0x4f463f669e5fea2d, 0x7527bac7ebe5f17b,
    0x3d0739f78a5292ea, 0x6bfb5fb11f8d5d08, 0x56033046fc7b6bab, 0xf0cfbc209af4361d,
};

/* the argument is quadrant * pi/2 + r + low */
typedef struct reduced { LV r, low, quadrant; } reduced;

static LV dc(rx_ll *e, LV like, double v) { return rx_ll_const_like(e, like, v); }
static LV add(rx_ll *e, LV a, LV b) { return LLVMBuildFAdd(e->b, a, b, ""); }
static LV sub(rx_ll *e, LV a, LV b) { return LLVMBuildFSub(e->b, a, b, ""); }
static LV mul(rx_ll *e, LV a, LV b) { return LLVMBuildFMul(e->b, a, b, ""); }

static LV two_sum(rx_ll *e, LV s, LV t, LV *low)
{
    LV h = add(e, s, t), v = sub(e, h, s);
    *low = add(e, sub(e, s, sub(e, h, v)), sub(e, t, v));
    return h;
}

/* ---- |x| <= LIMIT ---- */
static reduced reduce_small(rx_ll *e, LV x)
{
    LV magic = dc(e, x, 0x1.8p52), t = add(e, mul(e, x, dc(e, x, 0.63661977236758134308)), magic), n = sub(e, t, magic);
    LV q = LLVMBuildBitCast(e->b, t, rx_ll_like(e, e->i64, x), "");
    LV e1, e2, a = sub(e, x, mul(e, n, dc(e, x, 1.57079632673412561417e+00)));
    LV b = two_sum(e, a, mul(e, n, dc(e, x, -6.07710050630396597660e-11)), &e1);
    LV c = two_sum(e, b, mul(e, n, dc(e, x, -2.02226624871116645580e-21)), &e2);
    LV low = add(e, add(e, e1, e2), mul(e, n, dc(e, x, -8.47842766036889956997e-32)));
    LV r = two_sum(e, c, low, &low);
    return (reduced){r, low, q};
}

/* ---- any finite |x| >= 2^-10 or so, scalar ---- */
/* the signed 64-bit integer v times 2^scale, as the sum of two exact halves */
static void halves(rx_ll *e, LV v, bool is_signed, double scale, LV *high, LV *low)
{
    LLVMBuilderRef b = e->b;
    LV c32 = LLVMConstInt(e->i64, 32, 0);
    LV h = is_signed ? LLVMBuildAShr(b, v, c32, "") : LLVMBuildLShr(b, v, c32, "");
    LV l = LLVMBuildAnd(b, v, LLVMConstInt(e->i64, 0xFFFFFFFF, 0), "");
    *high = mul(e, LLVMBuildSIToFP(b, h, e->f64, ""), LLVMConstReal(e->f64, scale * 0x1p32));
    *low = mul(e, LLVMBuildSIToFP(b, l, e->f64, ""), LLVMConstReal(e->f64, scale));
}

/* a * b exactly (Dekker); here to serve targets with and without fma alike */
static LV two_product(rx_ll *e, LV a, LV b, LV *low)
{
    LV k = dc(e, a, 134217729.0), h = mul(e, a, b);
    LV ta = mul(e, a, k), ah = sub(e, ta, sub(e, ta, a)), al = sub(e, a, ah);
    LV tb = mul(e, b, k), bh = sub(e, tb, sub(e, tb, b)), bl = sub(e, b, bh);
    LV r = sub(e, mul(e, ah, bh), h);
    *low = add(e, add(e, add(e, r, mul(e, ah, bl)), mul(e, al, bh)), mul(e, al, bl));
    return h;
}

static LV table(rx_ll *e)
{
    LV words[RX_COUNT(two_over_pi)], g = LLVMGetNamedGlobal(e->m, "rx.two_over_pi");
    if (g) return g;
    for (uint32_t i = 0; i < RX_COUNT(words); i++) words[i] = LLVMConstInt(e->i64, two_over_pi[i], 0);
    g = LLVMAddGlobal(e->m, LLVMArrayType2(e->i64, RX_COUNT(words)), "rx.two_over_pi");
    LLVMSetInitializer(g, LLVMConstArray2(e->i64, words, RX_COUNT(words)));
    LLVMSetGlobalConstant(g, 1);
    LLVMSetLinkage(g, LLVMInternalLinkage);
    return g;
}

/* x = m * 2^exp; m times 192 bits of 2/pi, those of weight 2 and below; two bits before the point are the quadrant */
static LV product_mod_4(rx_ll *e, LV x, LT wide)
{
    LLVMBuilderRef b = e->b;
    LV u = LLVMBuildBitCast(b, x, e->i64, ""), k52 = LLVMConstInt(e->i64, 52, 0);
    LV expo = LLVMBuildAnd(b, LLVMBuildLShr(b, u, k52, ""), LLVMConstInt(e->i64, 0x7FF, 0), "");
    LV m = LLVMBuildAnd(b, u, LLVMConstInt(e->i64, 0xFFFFFFFFFFFFF, 0), "");
    m = LLVMBuildZExt(b, LLVMBuildOr(b, m, LLVMConstInt(e->i64, (uint64_t)1 << 52, 0), ""), wide, "");
    LV first = LLVMBuildSub(b, expo, LLVMConstInt(e->i64, 1075 - 62, 0), "");
    LV word = LLVMBuildLShr(b, first, LLVMConstInt(e->i64, 6, 0), "");
    LV shift = LLVMBuildZExt(b, LLVMBuildAnd(b, first, LLVMConstInt(e->i64, 63, 0), ""), wide, "");
    LV bits = LLVMConstInt(wide, 0, 0);
    for (unsigned i = 0; i < 4; i++) {
        LV at = LLVMBuildAdd(b, word, LLVMConstInt(e->i64, i, 0), "");
        LV w = LLVMBuildLoad2(b, e->i64, LLVMBuildInBoundsGEP2(b, e->i64, table(e), &at, 1, ""), "");
        bits = LLVMBuildOr(b, LLVMBuildShl(b, bits, LLVMConstInt(wide, 64, 0), ""), LLVMBuildZExt(b, w, wide, ""), "");
    }
    bits = LLVMBuildLShr(b, LLVMBuildShl(b, bits, shift, ""), LLVMConstInt(wide, 64, 0), "");
    LV p = LLVMConstInt(wide, 0, 0);         /* by 64-bit words: a wide multiplication could become a call */
    for (unsigned i = 0; i < 3; i++) {
        LV s = LLVMConstInt(wide, 64 * i, 0), mask = LLVMConstInt(wide, UINT64_MAX, 0);
        LV w = LLVMBuildAnd(b, LLVMBuildLShr(b, bits, s, ""), mask, "");
        LT t128 = LLVMIntTypeInContext(e->c, 128);
        LV part = LLVMBuildMul(b, LLVMBuildTrunc(b, m, t128, ""), LLVMBuildTrunc(b, w, t128, ""), "");
        p = LLVMBuildAdd(b, p, LLVMBuildShl(b, LLVMBuildZExt(b, part, wide, ""), s, ""), "");
    }
    return LLVMBuildShl(b, p, LLVMConstInt(wide, 64, 0), "");
}

static LV reduce_large(rx_ll *e, LV x, LV unused)
{
    (void)unused;
    LLVMBuilderRef b = e->b;
    LT wide = LLVMIntTypeInContext(e->c, 256);
    LV p = product_mod_4(e, x, wide);        /* the 192 bits stand at the top */
    LV half = LLVMBuildShl(b, LLVMConstInt(wide, 1, 0), LLVMConstInt(wide, 253, 0), "");
    LV rounded = LLVMBuildAdd(b, p, half, "");
    LV q = LLVMBuildTrunc(b, LLVMBuildLShr(b, rounded, LLVMConstInt(wide, 254, 0), ""), e->i64, "");
    LV below = LLVMBuildLShr(b, LLVMBuildShl(b, rounded, LLVMConstInt(wide, 2, 0), ""), LLVMConstInt(wide, 2, 0), "");
    LV f = LLVMBuildSub(b, below, half, ""); /* fraction in units of 2^-254, from -1/2 to 1/2 */
    LV top = LLVMBuildTrunc(b, LLVMBuildLShr(b, f, LLVMConstInt(wide, 192, 0), ""), e->i64, "");
    LV mid = LLVMBuildTrunc(b, LLVMBuildLShr(b, f, LLVMConstInt(wide, 128, 0), ""), e->i64, "");
    LV h1, h2, m1, m2, low, l2;
    halves(e, top, true, 0x1p-62, &h1, &h2);
    halves(e, mid, false, 0x1p-126, &m1, &m2);
    LV hi = two_sum(e, h1, h2, &low);
    hi = two_sum(e, hi, add(e, low, add(e, m1, m2)), &low);
    LV pl, r = two_product(e, hi, LLVMConstReal(e->f64, 1.57079632679489655800e+00), &pl);
    pl = add(e, pl, mul(e, hi, LLVMConstReal(e->f64, 6.12323399573676603587e-17)));
    pl = add(e, pl, mul(e, low, LLVMConstReal(e->f64, 1.57079632679489655800e+00)));
    r = two_sum(e, r, pl, &l2);
    LV negative = LLVMBuildFCmp(b, LLVMRealOLT, x, LLVMConstReal(e->f64, 0), "");
    LV out[3] = {LLVMBuildSelect(b, negative, LLVMBuildFNeg(b, r, ""), r, ""),
        LLVMBuildSelect(b, negative, LLVMBuildFNeg(b, l2, ""), l2, ""),
        LLVMBuildSelect(b, negative, LLVMBuildNeg(b, q, ""), q, "")};
    LT fields[3] = {e->f64, e->f64, e->i64};
    LV all = LLVMGetPoison(LLVMStructTypeInContext(e->c, fields, 3, 0));
    for (unsigned i = 0; i < 3; i++) all = LLVMBuildInsertValue(b, all, out[i], i, "");
    return all;
}

static LV pick(rx_ll *e, LV c, LV a, LV b) { return LLVMBuildSelect(e->b, c, a, b, ""); }

static reduced reduce(rx_ll *e, LV x)
{
    LLVMBuilderRef b = e->b;
    reduced s = reduce_small(e, x);
    LV a = rx_ll_fn1(e, "llvm.fabs", x);
    LV finite = LLVMBuildFCmp(b, LLVMRealOLT, a, dc(e, x, __builtin_inf()), "");
    LV big = LLVMBuildAnd(b, finite, LLVMBuildFCmp(b, LLVMRealOGT, a, dc(e, x, LIMIT), ""), "");
    LV values[3] = {s.r, s.low, s.quadrant};
    rx_ll_rare(e, "rx.trig.reduce", reduce_large, big, x, x, 0x1p30, 0x1p30, values, 3);
    return (reduced){values[0], values[1], values[2]};
}

/* ---- kernels on [-pi/4, pi/4] ---- */
static const double sin_poly[] = {-7.5842639960341665692e-13, 1.6058489509558741758e-10, -2.5052105961377000552e-8,
    2.7557319218542834916e-6, -0.00019841269841264020417, 0.0083333333333333309988, -0.16666666666666666665};
static const double cos_poly[] = {4.7445191096480046058e-14, -1.1470437475266498767e-11, 2.0876755640369132689e-9,
    -2.7557319220960078304e-7, 0.000024801587301584065693, -0.0013888888888888887591, 0.041666666666666666666};

static LV kernel_sin(rx_ll *e, LV r, LV low, LV z)
{
    LV p = mul(e, mul(e, z, r), rx_ll_poly(e, z, sin_poly, RX_COUNT(sin_poly)));
    LV tail = mul(e, low, sub(e, dc(e, r, 1), mul(e, dc(e, r, 0.5), z)));
    return add(e, r, add(e, p, tail));
}

static LV kernel_cos(rx_ll *e, LV r, LV low, LV z)
{
    LV half = mul(e, dc(e, r, 0.5), z), one = dc(e, r, 1), w = sub(e, one, half);
    LV p = sub(e, mul(e, mul(e, z, z), rx_ll_poly(e, z, cos_poly, RX_COUNT(cos_poly))), mul(e, r, low));
    return add(e, w, add(e, sub(e, sub(e, one, w), half), p));
}

LV rx_ll_sin_cos(rx_ll *e, LV arg, bool cosine)
{
    LLVMBuilderRef b = e->b;
    LT t = LLVMTypeOf(arg), wide = rx_ll_like(e, e->f64, arg);
    LV x = t == wide ? arg : LLVMBuildFPExt(b, arg, wide, "");
    reduced q = reduce(e, x);
    LV z = mul(e, q.r, q.r), s = kernel_sin(e, q.r, q.low, z), c = kernel_cos(e, q.r, q.low, z);
    LV k = LLVMBuildAdd(b, q.quadrant, rx_ll_int_like(e, e->i64, x, cosine), "");
    LV odd = LLVMBuildTrunc(b, k, rx_ll_like(e, e->i1, x), "");
    LV bit = LLVMBuildLShr(b, k, rx_ll_int_like(e, e->i64, x, 1), "");
    LV v = pick(e, odd, c, s);
    v = pick(e, LLVMBuildTrunc(b, bit, rx_ll_like(e, e->i1, x), ""), LLVMBuildFNeg(b, v, ""), v);
    if (!cosine) v = pick(e, LLVMBuildFCmp(b, LLVMRealOEQ, x, dc(e, x, 0), ""), x, v);   /* keeps -0 */
    v = pick(e, LLVMBuildFCmp(b, LLVMRealOLT, rx_ll_fn1(e, "llvm.fabs", x), dc(e, x, __builtin_inf()), ""), v,
        dc(e, x, __builtin_nan("")));
    return t == wide ? v : LLVMBuildFPTrunc(b, v, t, "");
}
