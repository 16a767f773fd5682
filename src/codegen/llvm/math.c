/* math.c: the scalar functions of intrins.def on f32 and f64 registers, as inline IR without branches and calls.
 *
 * Methods: exp, exp2: reduction to |r| <= ln2 / 2, polynomial, scaling by two powers of two so that denormal results
 * round once. log: mantissa in [sqrt(1/2), sqrt(2)), polynomial (f32) or fdlibm's s = f / (2 + f) series (f64). tanh:
 * odd polynomial near 0, else 1 - 2 / (exp(2x) + 1). erf f32: two polynomials, the outer one in an exponential (N.
 * Juffa); f64: odd polynomial below 1, above it 1 - exp(-x^2) * g((x - 2) / (x + 2)). Polynomials are Chebyshev fits at
 * 60 digits. Errors measured by tests/unit/test_codegen.c. Trap: a conversion of NaN or infinity to an integer is
 * poison in IR; exponents are taken from bits instead. */
#include "codegen/llvm/emit.h"

/* ---- small words ---- */
static bool is64(rx_ll *e, LV x)
{
    LT t = LLVMTypeOf(x);
    return (LLVMGetTypeKind(t) == LLVMVectorTypeKind ? LLVMGetElementType(t) : t) == e->f64;
}

static LV constant(LV like, LV one)
{
    LT t = LLVMTypeOf(like);
    LV all[RX_LL_MAX_LANES];
    if (LLVMGetTypeKind(t) != LLVMVectorTypeKind) return one;
    unsigned n = LLVMGetVectorSize(t);
    for (unsigned i = 0; i < n; i++) all[i] = one;
    return LLVMConstVector(all, n);
}

LV rx_ll_const_like(rx_ll *e, LV like, double v)
{
    return constant(like, LLVMConstReal(is64(e, like) ? e->f64 : e->f32, v));
}

LV rx_ll_int_like(rx_ll *e, LT scalar, LV like, int64_t v)
{
    (void)e;
    return constant(like, LLVMConstInt(scalar, (uint64_t)v, 1));
}

LV rx_ll_fn1(rx_ll *e, const char *name, LV x)
{
    LT t = LLVMTypeOf(x);
    LV fn = LLVMGetIntrinsicDeclaration(e->m, LLVMLookupIntrinsicID(name, strlen(name)), &t, 1);
    return LLVMBuildCall2(e->b, LLVMGlobalGetValueType(fn), fn, &x, 1, "");
}

#define C(v) rx_ll_const_like(e, x, (v))
static LV add(rx_ll *e, LV a, LV b) { return LLVMBuildFAdd(e->b, a, b, ""); }
static LV sub(rx_ll *e, LV a, LV b) { return LLVMBuildFSub(e->b, a, b, ""); }
static LV mul(rx_ll *e, LV a, LV b) { return LLVMBuildFMul(e->b, a, b, ""); }
static LV quot(rx_ll *e, LV a, LV b) { return LLVMBuildFDiv(e->b, a, b, ""); }
static LV sel(rx_ll *e, LV c, LV a, LV b) { return LLVMBuildSelect(e->b, c, a, b, ""); }
static LV less(rx_ll *e, LV a, LV b) { return LLVMBuildFCmp(e->b, LLVMRealOLT, a, b, ""); }
static LV absolute(rx_ll *e, LV x) { return rx_ll_fn1(e, "llvm.fabs", x); }

static LV with_sign(rx_ll *e, LV mag, LV sign)
{
    LT t = LLVMTypeOf(mag);
    LV args[2] = {mag, sign}, fn = LLVMGetIntrinsicDeclaration(e->m, LLVMLookupIntrinsicID("llvm.copysign", 13), &t, 1);
    return LLVMBuildCall2(e->b, LLVMGlobalGetValueType(fn), fn, args, 2, "");
}

static LT bits_type(rx_ll *e, LV x) { return rx_ll_like(e, is64(e, x) ? e->i64 : e->i32, x); }
static LV bits(rx_ll *e, LV x) { return LLVMBuildBitCast(e->b, x, bits_type(e, x), ""); }
static LV ic(rx_ll *e, LV x, int64_t v) { return rx_ll_int_like(e, is64(e, x) ? e->i64 : e->i32, x, v); }
static LV from_bits(rx_ll *e, LV i, LV like) { return LLVMBuildBitCast(e->b, i, LLVMTypeOf(like), ""); }

/* ---- fused multiply-add ---- */
static bool has_fma(const rx_ll *e) { return !e->x86 || rx_ll_has(e, RX_F_FMA); }

static LV hardware_fma(rx_ll *e, LV a, LV b, LV c)
{
    LT t = LLVMTypeOf(a);
    LV args[3] = {a, b, c}, fn = LLVMGetIntrinsicDeclaration(e->m, LLVMLookupIntrinsicID("llvm.fma", 8), &t, 1);
    return LLVMBuildCall2(e->b, LLVMGlobalGetValueType(fn), fn, args, 3, "");
}

/* s + t exactly, as high and low part (Knuth) */
static LV two_sum(rx_ll *e, LV s, LV t, LV *low)
{
    LV h = add(e, s, t), v = sub(e, h, s);
    *low = add(e, sub(e, s, sub(e, h, v)), sub(e, t, v));
    return h;
}

/* h + low rounded to odd: when inexact, the neighbour of h on low's side whose last bit is 1 */
static LV to_odd(rx_ll *e, LV h, LV low)
{
    LLVMBuilderRef b = e->b;
    LV x = h, u = bits(e, h);
    LV inexact = LLVMBuildFCmp(b, LLVMRealUNE, low, C(0), "");
    LV finite = less(e, absolute(e, h), C(__builtin_inf()));
    LV even = LLVMBuildICmp(b, LLVMIntEQ, LLVMBuildAnd(b, u, ic(e, h, 1), ""), ic(e, h, 0), "");
    LV away = LLVMBuildICmp(b, LLVMIntSGE, LLVMBuildXor(b, u, bits(e, low), ""), ic(e, h, 0), "");
    LV step = sel(e, away, ic(e, h, 1), ic(e, h, -1));
    LV go = LLVMBuildAnd(b, LLVMBuildAnd(b, inexact, even, ""), finite, "");
    return from_bits(e, sel(e, go, LLVMBuildAdd(b, u, step, ""), u), h);
}

/* a * b exactly as high and low part (Dekker; |a|, |b| below 2^970) */
static LV two_product(rx_ll *e, LV a, LV b, LV *low)
{
    LV x = a, k = C(134217729.0), h = mul(e, a, b);
    LV ta = mul(e, a, k), ah = sub(e, ta, sub(e, ta, a)), al = sub(e, a, ah);
    LV tb = mul(e, b, k), bh = sub(e, tb, sub(e, tb, b)), bl = sub(e, b, bh);
    LV r = sub(e, mul(e, ah, bh), h);
    *low = add(e, add(e, add(e, r, mul(e, ah, bl)), mul(e, al, bh)), mul(e, al, bl));
    return h;
}

/* Without the instruction: f32 exactly by f64; f64 after Boldo and Melquiond, exact while nothing over- or underflows.
 */
LV rx_ll_fma(rx_ll *e, LV a, LV b, LV c)
{
    LV low, x = a;
    if (has_fma(e)) return hardware_fma(e, a, b, c);
    if (!is64(e, a)) {
        LT wide = rx_ll_like(e, e->f64, a);
        LV p = mul(e, LLVMBuildFPExt(e->b, a, wide, ""), LLVMBuildFPExt(e->b, b, wide, ""));
        LV s = two_sum(e, p, LLVMBuildFPExt(e->b, c, wide, ""), &low);
        return LLVMBuildFPTrunc(e->b, to_odd(e, s, low), LLVMTypeOf(a), "");
    }
    LV pl, ul, tl, ph = two_product(e, a, b, &pl), uh = two_sum(e, c, pl, &ul), th = two_sum(e, ph, uh, &tl);
    LV vl, vh = two_sum(e, tl, ul, &vl), r = add(e, th, to_odd(e, vh, vl));
    LV plain = add(e, mul(e, a, b), c), fine = less(e, absolute(e, r), C(__builtin_inf()));
    return sel(e, fine, r, plain);
}

LV rx_ll_mad(rx_ll *e, LV a, LV b, LV c) { return has_fma(e) ? hardware_fma(e, a, b, c) : add(e, mul(e, a, b), c); }

LV rx_ll_poly(rx_ll *e, LV x, const double *c, uint32_t n)
{
    LV r = C(c[0]);
    for (uint32_t i = 1; i < n; i++) r = rx_ll_mad(e, r, x, C(c[i]));
    return r;
}
#define POLY(x, c) rx_ll_poly(e, (x), (c), RX_COUNT(c))

/* ---- rounding ---- */
static bool has_round(const rx_ll *e) { return !e->x86 || rx_ll_has(e, RX_F_SSE42); }

/* nearest even for any size: adding 2^mantissa drops the fraction */
LV rx_ll_narrow_rint(rx_ll *e, LV x)
{
    if (has_round(e)) return rx_ll_fn1(e, "llvm.roundeven", x);
    LV limit = C(is64(e, x) ? 0x1p52 : 0x1p23), a = absolute(e, x);
    LV r = with_sign(e, sub(e, add(e, a, limit), limit), x);
    return sel(e, less(e, a, limit), r, x);
}

static LV round_toward(rx_ll *e, rx_intrin f, LV x)
{
    LLVMBuilderRef b = e->b;
    if (has_round(e))
        return rx_ll_fn1(e, f == RX_IN_FLOOR ? "llvm.floor" : f == RX_IN_CEIL ? "llvm.ceil" : "llvm.trunc", x);
    LV r = rx_ll_narrow_rint(e, x), one = C(1), fixed;
    if (f == RX_IN_FLOOR) {
        fixed = sel(e, less(e, x, r), sub(e, r, one), r);
    } else if (f == RX_IN_CEIL) {
        fixed = sel(e, less(e, r, x), add(e, r, one), r);
    } else {
        LV a = absolute(e, x), ra = absolute(e, r);
        fixed = sel(e, less(e, a, ra), sub(e, ra, one), ra);
    }
    LV nan = LLVMBuildFCmp(b, LLVMRealUNO, x, x, "");
    return sel(e, nan, x, with_sign(e, fixed, x));
}

/* ---- exp, exp2 ---- */
/* x rounded to an integer as a float, and the same as an integer in i: the bits of x + 1.5 * 2^mantissa */
static LV to_integer(rx_ll *e, LV x, LV scaled, LV *i)
{
    LV magic = C(is64(e, x) ? 0x1.8p52 : 0x1.8p23), t = add(e, scaled, magic);
    *i = LLVMBuildSub(e->b, bits(e, t), bits(e, magic), "");
    return sub(e, t, magic);
}

/* p * 2^i with i in about twice the exponent range */
static LV scale(rx_ll *e, LV p, LV i)
{
    LLVMBuilderRef b = e->b;
    int mant = is64(e, p) ? 52 : 23, bias = is64(e, p) ? 1023 : 127;
    LV half = LLVMBuildAShr(b, i, ic(e, p, 1), ""), rest = LLVMBuildSub(b, i, half, "");
    LV s1 = LLVMBuildShl(b, LLVMBuildAdd(b, half, ic(e, p, bias), ""), ic(e, p, mant), "");
    LV s2 = LLVMBuildShl(b, LLVMBuildAdd(b, rest, ic(e, p, bias), ""), ic(e, p, mant), "");
    return mul(e, mul(e, p, from_bits(e, s1, p)), from_bits(e, s2, p));
}

/* NaN stays: both comparisons are false */
static LV clamp(rx_ll *e, LV x, double lo, double hi)
{
    x = sel(e, less(e, C(hi), x), C(hi), x);
    return sel(e, less(e, x, C(lo)), C(lo), x);
}

static const double exp32[] = {0.001392692661402190648, 0.0083637738744055734983, 0.041666550110305124444,
    0.16666573381900846023, 0.5};
static const double exp64[] = {2.5101346928350340198e-8, 2.76213386691429238e-7, 2.7557266418612303703e-6,
    0.000024801518641395993583, 0.00019841269864380513295, 0.0013888888918939167785, 0.0083333333333297934996,
    0.041666666666620638584, 0.16666666666666667534, 0.5000000000000001128};

static LV exp_any(rx_ll *e, LV arg)
{
    bool d = is64(e, arg);
    LV i, x = clamp(e, arg, d ? -746 : -104, d ? 710 : 89);
    LV n = to_integer(e, x, mul(e, x, C(1.4426950408889634074)), &i);
    LV r = rx_ll_mad(e, n, C(d ? -0x1.62e42fee00000p-1 : -0x1.62e400p-1), x);
    r = rx_ll_mad(e, n, C(d ? -0x1.a39ef35793c76p-33 : -0x1.7f7d1cp-20), r);
    LV q = d ? POLY(r, exp64) : POLY(r, exp32);
    LV p = add(e, rx_ll_mad(e, mul(e, r, r), q, r), C(1));
    return scale(e, p, i);
}

static const double exp2_32[] = {0.00015454162087917221139, 0.0013392017405552550765, 0.0096180806652697813272,
    0.055503549289523637268, 0.24022650764548662216, 0.69314718848595429413};
static const double exp2_64[] = {2.573034800923435164e-11, 4.4560247551334641258e-10, 7.0548967224703518333e-9,
    1.0178055912546168555e-7, 1.3215486809848002063e-6, 0.000015252733843864855094, 0.00015403530393369831871,
    0.0013333558146404649312, 0.0096181291076284797367, 0.055504108664821631968, 0.24022650695910071232,
    0.69314718055994530923};

static LV exp2_any(rx_ll *e, LV arg)
{
    bool d = is64(e, arg);
    LV i, x = clamp(e, arg, d ? -1080 : -151, d ? 1025 : 129);
    LV r = sub(e, x, to_integer(e, x, x, &i));
    LV q = d ? POLY(r, exp2_64) : POLY(r, exp2_32);
    return scale(e, rx_ll_mad(e, r, q, C(1)), i);
}

/* ---- log ---- */
static const double log32[] = {7.0376836292e-2, -1.1514610310e-1, 1.1676998740e-1, -1.2420140846e-1, 1.4249322787e-1,
    -1.6668057665e-1, 2.0000714765e-1, -2.4999993993e-1, 3.3333331174e-1};
static const double log64[] = {1.479819860511658591e-01, 1.531383769920937332e-01, 1.818357216161805012e-01,
    2.222219843214978396e-01, 2.857142874366239149e-01, 3.999999999940941908e-01, 6.666666666666735130e-01};

static LV log_any(rx_ll *e, LV x)
{
    LLVMBuilderRef b = e->b;
    bool d = is64(e, x);
    int mant = d ? 52 : 23;
    LV tiny = less(e, x, C(d ? 0x1p-1022 : 0x1p-126));
    LV u = bits(e, sel(e, tiny, mul(e, x, C(d ? 0x1p54 : 0x1p25)), x));
    LV k = LLVMBuildAShr(b, LLVMBuildSub(b, u, ic(e, x, d ? 0x3FE6A09E667F3BCD : 0x3F3504F3), ""), ic(e, x, mant), "");
    LV f = sub(e, from_bits(e, LLVMBuildSub(b, u, LLVMBuildShl(b, k, ic(e, x, mant), ""), ""), x), C(1));
    LV n = LLVMBuildSIToFP(b, LLVMBuildTrunc(b, k, rx_ll_like(e, d ? e->i32 : e->i16, x), ""), LLVMTypeOf(x), "");
    n = sub(e, n, sel(e, tiny, C(d ? 54 : 25), C(0)));
    LV r, ff = mul(e, f, f), half = mul(e, C(0.5), ff);
    if (d) {
        LV s = quot(e, f, add(e, C(2), f)), z = mul(e, s, s);
        r = mul(e, s, rx_ll_mad(e, z, POLY(z, log64), half));
        r = add(e, r, mul(e, n, C(1.90821492927058770002e-10)));
        r = add(e, mul(e, n, C(6.93147180369123816490e-01)), add(e, f, sub(e, r, half)));
    } else {
        r = mul(e, mul(e, ff, f), POLY(f, log32));
        r = sub(e, rx_ll_mad(e, n, C(-2.12194440e-4), r), half);
        r = rx_ll_mad(e, n, C(0.693359375), add(e, f, r));
    }
    LV inf = C(__builtin_inf());
    r = sel(e, LLVMBuildFCmp(b, LLVMRealOEQ, x, inf, ""), inf, r);
    r = sel(e, LLVMBuildFCmp(b, LLVMRealOEQ, x, C(0), ""), C(-__builtin_inf()), r);
    return sel(e, LLVMBuildFCmp(b, LLVMRealUGE, x, C(0), ""), sel(e, LLVMBuildFCmp(b, LLVMRealUNO, x, x, ""), x, r),
        C(__builtin_nan("")));
}

/* ---- tanh, erf ---- */
static const double tanh32[] = {0.0022927448161781423431, -0.008343945515839152048, 0.021768918651028210152,
    -0.053959259577204542744, 0.13333303556915741766, -0.33333333172140361638};
static const double tanh64[] = {-2.4388316314720878041e-6, 0.000012209921790162781662, -0.000037081069215442333853,
    0.000096041091570262659879, -0.00023888944636751173895, 0.0005899818158388232071, -0.0014558283998303245859,
    0.0035921275075992522291, -0.0088632354998019925691, 0.021869488535133222007, -0.053968253968235901344,
    0.13333333333333320761, -0.33333333333333333319};

static LV tanh_any(rx_ll *e, LV x)
{
    LV a = absolute(e, x), z = mul(e, x, x);
    LV small = rx_ll_mad(e, mul(e, z, x), is64(e, x) ? POLY(z, tanh64) : POLY(z, tanh32), x);
    LV big = sub(e, C(1), quot(e, C(2), add(e, exp_any(e, add(e, a, a)), C(1))));
    return sel(e, less(e, a, C(0.625)), small, with_sign(e, big, x));
}

static const double erf32_inner[] = {-5.96761703e-4, 4.99119423e-3, -2.67681349e-2, 1.12819925e-1, -3.76125336e-1,
    1.28379166e-1};
static const double erf32_outer[] = {-1.72853470e-5, 3.83197126e-4, -3.88396438e-3, 2.42546219e-2, -1.06777877e-1,
    -6.34846687e-1, -1.28717512e-1};
static const double erf64_inner[] = {-4.2309458242953378173e-12, 8.7090451290531066896e-11, -1.2164560057283450081e-9,
    1.4792401209404813002e-8, -1.6364642158167615302e-7, 1.6462045441468418937e-6, -0.000014925647567519332125,
    0.0001205533290288873541, -0.00085483270219348295955, 0.0052239776254232983087, -0.026866170645129840806,
    0.11283791670955120236, -0.37612638903183752379, 0.12837916709551257389};
static const double erf64_outer[] = {-2.8327674392080735723e-7, 4.2098242519876702161e-6, 1.8665379110784541256e-6,
    -0.000014191354642116556166, -0.000027638034176921363769, 0.000027564289065003394644, 0.00017436411420156468351,
    0.000043552337898568213927, -0.0009819770558673943679, -0.00084714310940728725579, 0.0069974617371190019152,
    0.0037328924013653037678, -0.07897858101568097405, 0.241658194242490113, -0.42718584741395862374,
    0.25539567631050571251};

static LV erf_any(rx_ll *e, LV x)
{
    LV a = absolute(e, x), s = mul(e, x, x), inner, outer, limit;
    if (is64(e, x)) {
        inner = rx_ll_mad(e, POLY(s, erf64_inner), x, x);
        LV c = sel(e, less(e, C(6.1), a), C(6.1), a);
        LV t = quot(e, sub(e, c, C(2)), add(e, c, C(2)));
        outer = sub(e, C(1), mul(e, exp_any(e, LLVMBuildFNeg(e->b, mul(e, c, c), "")), POLY(t, erf64_outer)));
        limit = C(1);
    } else {
        inner = rx_ll_mad(e, POLY(s, erf32_inner), x, x);
        LV c = sel(e, less(e, C(10), a), C(10), a);
        LV r = POLY(c, erf32_outer);
        outer = sub(e, C(1), exp_any(e, rx_ll_mad(e, r, c, LLVMBuildFNeg(e->b, c, ""))));
        limit = C(0.927734375);
    }
    return sel(e, less(e, limit, a), with_sign(e, outer, x), inner);
}

LV rx_ll_math(rx_ll *e, rx_intrin f, LV x)
{
    switch (f) {
    case RX_IN_EXP: return exp_any(e, x);
    case RX_IN_EXP2: return exp2_any(e, x);
    case RX_IN_LOG: return log_any(e, x);
    case RX_IN_SQRT: return rx_ll_fn1(e, "llvm.sqrt", x);
    case RX_IN_RSQRT: return quot(e, C(1), rx_ll_fn1(e, "llvm.sqrt", x));
    case RX_IN_SIN: return rx_ll_sin_cos(e, x, false);
    case RX_IN_COS: return rx_ll_sin_cos(e, x, true);
    case RX_IN_TANH: return tanh_any(e, x);
    case RX_IN_ERF: return erf_any(e, x);
    case RX_IN_ABS: return absolute(e, x);
    case RX_IN_FLOOR: case RX_IN_CEIL: case RX_IN_TRUNC: return round_toward(e, f, x);
    case RX_IN_ROUND: return rx_ll_narrow_rint(e, x);
    default: rx_ll_fail(e, "intrinsic %d is not known", (int)f);
    }
}
