/* pow.c: a to the power of b.
 *
 * exp(b * log|a|), then the sign and the special cases of C's pow. f32 is computed in f64. For f64 the logarithm is a
 * pair of doubles (s = (m - 1) / (m + 1), its series with the first two terms in pairs), because an error of the
 * logarithm counts |b log a| times, up to 745, in the result. */
#include "codegen/llvm/emit.h"

typedef struct pair { LV h, l; } pair;

static LV dc(rx_ll *e, LV like, double v) { return rx_ll_const_like(e, like, v); }
static LV add(rx_ll *e, LV a, LV b) { return LLVMBuildFAdd(e->b, a, b, ""); }
static LV sub(rx_ll *e, LV a, LV b) { return LLVMBuildFSub(e->b, a, b, ""); }
static LV mul(rx_ll *e, LV a, LV b) { return LLVMBuildFMul(e->b, a, b, ""); }
static LV pick(rx_ll *e, LV c, LV a, LV b) { return LLVMBuildSelect(e->b, c, a, b, ""); }

static pair quick(rx_ll *e, LV a, LV b)      /* |a| >= |b| */
{
    LV h = add(e, a, b);
    return (pair){h, sub(e, b, sub(e, h, a))};
}

static pair two_sum(rx_ll *e, LV s, LV t)
{
    LV h = add(e, s, t), v = sub(e, h, s);
    return (pair){h, add(e, sub(e, s, sub(e, h, v)), sub(e, t, v))};
}

static pair two_product(rx_ll *e, LV a, LV b)
{
    LV k = dc(e, a, 134217729.0), h = mul(e, a, b);
    if (!e->x86 || rx_ll_has(e, RX_F_FMA)) return (pair){h, rx_ll_fma(e, a, b, LLVMBuildFNeg(e->b, h, ""))};
    LV ta = mul(e, a, k), ah = sub(e, ta, sub(e, ta, a)), al = sub(e, a, ah);
    LV tb = mul(e, b, k), bh = sub(e, tb, sub(e, tb, b)), bl = sub(e, b, bh);
    LV r = sub(e, mul(e, ah, bh), h);
    return (pair){h, add(e, add(e, add(e, r, mul(e, ah, bl)), mul(e, al, bh)), mul(e, al, bl))};
}

static pair mul2(rx_ll *e, pair a, pair b)
{
    pair p = two_product(e, a.h, b.h);
    return quick(e, p.h, add(e, p.l, add(e, mul(e, a.h, b.l), mul(e, a.l, b.h))));
}

static pair add2(rx_ll *e, pair a, pair b)
{
    pair s = two_sum(e, a.h, b.h);
    return quick(e, s.h, add(e, s.l, add(e, a.l, b.l)));
}

static pair pair_of(rx_ll *e, LV like, double h, double l) { return (pair){dc(e, like, h), dc(e, like, l)}; }

/* 2/5 s^5 and on, over s^3 z: coefficients 2/(2k+1) from k = 9 down to 2, in z = s^2 <= 0.0295 */
static const double tail[] = {2.0 / 21, 2.0 / 19, 2.0 / 17, 2.0 / 15, 2.0 / 13, 2.0 / 11, 2.0 / 9, 2.0 / 7, 2.0 / 5};

/* log of a positive finite f64 */
static pair log_pair(rx_ll *e, LV x)
{
    LLVMBuilderRef b = e->b;
    LT i = rx_ll_like(e, e->i64, x);
    LV tiny = LLVMBuildFCmp(b, LLVMRealOLT, x, dc(e, x, 0x1p-1022), "");
    LV u = LLVMBuildBitCast(b, pick(e, tiny, mul(e, x, dc(e, x, 0x1p54)), x), i, "");
    LV off = rx_ll_int_like(e, e->i64, x, 0x3FE6A09E667F3BCD), c52 = rx_ll_int_like(e, e->i64, x, 52);
    LV k = LLVMBuildAShr(b, LLVMBuildSub(b, u, off, ""), c52, "");
    LV m = LLVMBuildBitCast(b, LLVMBuildSub(b, u, LLVMBuildShl(b, k, c52, ""), ""), LLVMTypeOf(x), "");
    LV n = LLVMBuildSIToFP(b, LLVMBuildTrunc(b, k, rx_ll_like(e, e->i32, x), ""), LLVMTypeOf(x), "");
    n = sub(e, n, pick(e, tiny, dc(e, x, 54), dc(e, x, 0)));
    LV f = sub(e, m, dc(e, x, 1));
    pair g = two_sum(e, m, dc(e, x, 1));     /* s = f / g */
    LV s = LLVMBuildFDiv(b, f, g.h, "");
    pair back = two_product(e, s, g.h);
    LV rest = sub(e, sub(e, sub(e, f, back.h), back.l), mul(e, s, g.l));
    pair sp = quick(e, s, LLVMBuildFDiv(b, rest, g.h, ""));
    pair z = mul2(e, sp, sp),
         cube = mul2(e, mul2(e, z, sp), pair_of(e, x, 0x1.5555555555555p-1, 0x1.5555555555555p-55));
    LV more = mul(e, mul(e, mul(e, z.h, z.h), s), rx_ll_poly(e, z.h, tail, RX_COUNT(tail)));
    pair r = add2(e, (pair){add(e, sp.h, sp.h), add(e, sp.l, sp.l)}, cube);
    r = add2(e, r, (pair){more, dc(e, x, 0)});
    pair ln2 = two_product(e, n, dc(e, x, 0x1.62e42fefa39efp-1));
    ln2.l = add(e, ln2.l, mul(e, n, dc(e, x, 0x1.abc9e3b39803fp-56)));
    return add2(e, ln2, r);
}

/* exp(h + l) for a small l */
static LV exp_pair(rx_ll *e, pair p)
{
    LV r = rx_ll_math(e, RX_IN_EXP, p.h), more = mul(e, r, p.l);
    LV fine = LLVMBuildFCmp(e->b, LLVMRealOLT, rx_ll_fn1(e, "llvm.fabs", p.h), dc(e, r, 700), "");
    return pick(e, fine, add(e, r, more), r);
}

static LV magnitude(rx_ll *e, LV a, LV b)
{
    pair l = log_pair(e, a), bp = two_product(e, b, l.h);
    pair p = quick(e, bp.h, add(e, bp.l, mul(e, b, l.l)));
    LV huge = LLVMBuildFCmp(e->b, LLVMRealOLT, rx_ll_fn1(e, "llvm.fabs", bp.h), dc(e, a, 1000), "");
    return pick(e, huge, exp_pair(e, p), rx_ll_math(e, RX_IN_EXP, mul(e, b, l.h)));
}

static LV special_cases(rx_ll *e, LV r, LV x, LV y)
{
    LLVMBuilderRef b = e->b;
    LV a = rx_ll_fn1(e, "llvm.fabs", x), zero = dc(e, x, 0), one = dc(e, x, 1), inf = dc(e, x, __builtin_inf());
    LV nan = dc(e, x, __builtin_nan("")), up = LLVMBuildFCmp(b, LLVMRealOGT, y, zero, "");
    LV a0 = LLVMBuildFCmp(b, LLVMRealOEQ, a, zero, ""), ainf = LLVMBuildFCmp(b, LLVMRealOEQ, a, inf, "");
    LV yinf = LLVMBuildFCmp(b, LLVMRealOEQ, rx_ll_fn1(e, "llvm.fabs", y), inf, "");
    LV grows = LLVMBuildNot(b, LLVMBuildXor(b, LLVMBuildFCmp(b, LLVMRealOGT, a, one, ""), up, ""), "");
    LV limit = pick(e, grows, inf, zero);
    r = pick(e, LLVMBuildOr(b, LLVMBuildOr(b, a0, ainf, ""), yinf, ""), limit, r);
    r = pick(e, LLVMBuildAnd(b, yinf, LLVMBuildFCmp(b, LLVMRealOEQ, a, one, ""), ""), one, r);
    LV whole = LLVMBuildFCmp(b, LLVMRealOEQ, rx_ll_narrow_rint(e, y), y, ""), h = mul(e, y, dc(e, x, 0.5));
    LV odd = LLVMBuildAnd(b, whole, LLVMBuildFCmp(b, LLVMRealONE, rx_ll_narrow_rint(e, h), h, ""), "");
    LV bits = LLVMBuildBitCast(b, x, rx_ll_like(e, e->i64, x), "");
    LV minus = LLVMBuildICmp(b, LLVMIntSLT, bits, rx_ll_int_like(e, e->i64, x, 0), "");
    r = pick(e, LLVMBuildAnd(b, minus, odd, ""), LLVMBuildFNeg(b, r, ""), r);
    LV below = LLVMBuildAnd(b, LLVMBuildFCmp(b, LLVMRealOLT, x, zero, ""), LLVMBuildNot(b, ainf, ""), "");
    r = pick(e, LLVMBuildAnd(b, below, LLVMBuildNot(b, whole, ""), ""), nan, r);
    r = pick(e, LLVMBuildFCmp(b, LLVMRealUNO, x, y, ""), nan, r);
    LV is_one =
        LLVMBuildOr(b, LLVMBuildFCmp(b, LLVMRealOEQ, x, one, ""), LLVMBuildFCmp(b, LLVMRealOEQ, y, zero, ""), "");
    return pick(e, is_one, one, r);
}

LV rx_ll_pow(rx_ll *e, LV a, LV b)
{
    LT t = LLVMTypeOf(a), wide = rx_ll_like(e, e->f64, a);
    bool narrow = t != wide;
    if (narrow) {
        a = LLVMBuildFPExt(e->b, a, wide, "");
        b = LLVMBuildFPExt(e->b, b, wide, "");
    }
    LV m = rx_ll_fn1(e, "llvm.fabs", a);
    LV r = narrow ? rx_ll_math(e, RX_IN_EXP, mul(e, b, rx_ll_math(e, RX_IN_LOG, m))) : magnitude(e, m, b);
    r = special_cases(e, r, a, b);
    return narrow ? LLVMBuildFPTrunc(e->b, r, t, "") : r;
}
