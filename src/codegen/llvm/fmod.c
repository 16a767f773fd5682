/* fmod.c: floor division and modulo of floats; and the calls for rare lanes that trig.c shares.
 *
 * The remainder is exact, as C's fmod, then takes the divisor's sign: with t = trunc(a / b) below 2^53, a - t * b
 * rounded once is exact up to one multiple of b, which is put right. Larger quotients are rare and go lane by lane to a
 * function that subtracts scaled divisors, each step exact. f32 and narrower are computed in f64 and rounded once. */
#include "codegen/llvm/emit.h"

static LV dc(rx_ll *e, LV like, double v) { return rx_ll_const_like(e, like, v); }
static LV pick(rx_ll *e, LV c, LV a, LV b) { return LLVMBuildSelect(e->b, c, a, b, ""); }
static LV absolute(rx_ll *e, LV x) { return rx_ll_fn1(e, "llvm.fabs", x); }

/* ---- rare lanes ---- */
static LV rare_function(rx_ll *e, const char *name, rx_ll_rare_fn *make)
{
    LV f = LLVMGetNamedFunction(e->m, name), outer = e->fn;
    if (f) return f;
    LLVMBasicBlockRef here = LLVMGetInsertBlock(e->b);
    LT params[2] = {e->f64, e->f64}, fields[3] = {e->f64, e->f64, e->i64};
    f = LLVMAddFunction(e->m, name, LLVMFunctionType(LLVMStructTypeInContext(e->c, fields, 3, 0), params, 2, 0));
    LLVMSetLinkage(f, LLVMInternalLinkage);
    rx_ll_attributes(e, f);
    e->fn = f;
    LLVMPositionBuilderAtEnd(e->b, LLVMAppendBasicBlockInContext(e->c, f, ""));
    LLVMBuildRet(e->b, make(e, LLVMGetParam(f, 0), LLVMGetParam(f, 1)));
    e->fn = outer;
    LLVMPositionBuilderAtEnd(e->b, here);
    return f;
}

static void call_lanes(rx_ll *e, LV f, LV rare, LV x, LV y, LV *values, uint32_t n)
{
    LLVMBuilderRef b = e->b;
    bool vector = LLVMGetTypeKind(LLVMTypeOf(x)) == LLVMVectorTypeKind;
    unsigned lanes = vector ? LLVMGetVectorSize(LLVMTypeOf(x)) : 1;
    LV made[3] = {values[0], n > 1 ? values[1] : NULL, n > 2 ? values[2] : NULL};
    for (unsigned l = 0; l < lanes; l++) {
        LV at = LLVMConstInt(e->i64, l, 0), args[2] = {x, y};
        for (unsigned i = 0; vector && i < 2; i++) args[i] = LLVMBuildExtractElement(b, args[i], at, "");
        LV all = LLVMBuildCall2(b, LLVMGlobalGetValueType(f), f, args, 2, "");
        for (unsigned k = 0; k < n; k++) {
            LV v = LLVMBuildExtractValue(b, all, k, "");
            made[k] = vector ? LLVMBuildInsertElement(b, made[k], v, at, "") : v;
        }
    }
    for (unsigned k = 0; k < n; k++) values[k] = pick(e, rare, made[k], values[k]);
}

void rx_ll_rare(rx_ll *e, const char *name, rx_ll_rare_fn *make, LV rare, LV x, LV y, double x_safe, double y_safe,
                LV *values, uint32_t n)
{
    LLVMBuilderRef b = e->b;
    LV f = rare_function(e, name, make), old[3], made[3] = {NULL};
    bool vector = LLVMGetTypeKind(LLVMTypeOf(rare)) == LLVMVectorTypeKind;
    LLVMBasicBlockRef here = LLVMGetInsertBlock(b), slow = LLVMAppendBasicBlockInContext(e->c, e->fn, "rare");
    LLVMBasicBlockRef join = LLVMAppendBasicBlockInContext(e->c, e->fn, "join");
    LLVMBuildCondBr(b, vector ? rx_ll_any(e, rare) : rare, slow, join);
    LLVMPositionBuilderAtEnd(b, slow);
    for (uint32_t i = 0; i < n; i++) made[i] = old[i] = values[i];
    call_lanes(e, f, rare, pick(e, rare, x, dc(e, x, x_safe)), pick(e, rare, y, dc(e, y, y_safe)), made, n);
    LLVMBuildBr(b, join);
    LLVMPositionBuilderAtEnd(b, join);
    for (uint32_t i = 0; i < n; i++) {
        values[i] = LLVMBuildPhi(b, LLVMTypeOf(old[i]), "");
        LLVMAddIncoming(values[i], (LV[]){old[i], made[i]}, (LLVMBasicBlockRef[]){here, slow}, 2);
    }
}

/* ---- remainder ---- */
/* 2^n, n within the exponents of f64 */
static LV power_of_two(rx_ll *e, LV n)
{
    LV i = LLVMBuildAdd(e->b, n, LLVMConstInt(e->i64, 1023, 0), "");
    return LLVMBuildBitCast(e->b, LLVMBuildShl(e->b, i, LLVMConstInt(e->i64, 52, 0), ""), e->f64, "");
}

/* y * 2^n for 0 <= n <= 2045, exact unless it overflows */
static LV scaled(rx_ll *e, LV y, LV n)
{
    LV half = LLVMBuildLShr(e->b, n, LLVMConstInt(e->i64, 1, 0), ""), rest = LLVMBuildSub(e->b, n, half, "");
    return LLVMBuildFMul(e->b, LLVMBuildFMul(e->b, y, power_of_two(e, half), ""), power_of_two(e, rest), "");
}

/* of a positive y; the bias is in it */
static LV exponent(rx_ll *e, LV y)
{
    LV tiny = LLVMBuildFCmp(e->b, LLVMRealOLT, y, LLVMConstReal(e->f64, 0x1p-1022), "");
    LV up = pick(e, tiny, LLVMBuildFMul(e->b, y, LLVMConstReal(e->f64, 0x1p54), ""), y);
    LV i = LLVMBuildLShr(e->b, LLVMBuildBitCast(e->b, up, e->i64, ""), LLVMConstInt(e->i64, 52, 0), "");
    return LLVMBuildSub(e->b, i, pick(e, tiny, LLVMConstInt(e->i64, 54, 0), LLVMConstInt(e->i64, 0, 0)), "");
}

/* |a| mod |b|, a finite, b not 0: while a >= b, subtract the largest b * 2^n <= a. */
static LV subtract_divisors(rx_ll *e, LV a, LV b)
{
    LLVMBuilderRef g = e->b;
    LLVMBasicBlockRef start = LLVMGetInsertBlock(g), head = LLVMAppendBasicBlockInContext(e->c, e->fn, ""),
        body = LLVMAppendBasicBlockInContext(e->c, e->fn, ""), done = LLVMAppendBasicBlockInContext(e->c, e->fn, "");
    LV y = absolute(e, b), first = absolute(e, a);
    LLVMBuildBr(g, head);
    LLVMPositionBuilderAtEnd(g, head);
    LV r = LLVMBuildPhi(g, e->f64, "");
    LLVMBuildCondBr(g, LLVMBuildFCmp(g, LLVMRealOGE, r, y, ""), body, done);
    LLVMPositionBuilderAtEnd(g, body);
    LV t = scaled(e, y, LLVMBuildSub(g, exponent(e, r), exponent(e, y), ""));
    LV half = LLVMBuildFMul(g, t, LLVMConstReal(e->f64, 0.5), "");
    t = pick(e, LLVMBuildFCmp(g, LLVMRealOGT, t, r, ""), half, t);
    LV next = LLVMBuildFSub(g, r, t, "");
    LLVMBuildBr(g, head);
    LLVMAddIncoming(r, (LV[]){first, next}, (LLVMBasicBlockRef[]){start, body}, 2);
    LLVMPositionBuilderAtEnd(g, done);
    LT fields[3] = {e->f64, e->f64, e->i64};
    return LLVMBuildInsertValue(g, LLVMGetPoison(LLVMStructTypeInContext(e->c, fields, 3, 0)), r, 0, "");
}

/* C's fmod on f64, for |a|: the sign is the caller's */
static LV magnitude_mod(rx_ll *e, LV a, LV b)
{
    LLVMBuilderRef g = e->b;
    LV inf = dc(e, a, __builtin_inf()), zero = dc(e, a, 0);
    LV t = rx_ll_math(e, RX_IN_TRUNC, LLVMBuildFDiv(g, a, b, ""));
    LV r = rx_ll_fma(e, LLVMBuildFNeg(g, t, ""), b, a);
    r = pick(e, LLVMBuildFCmp(g, LLVMRealOLT, r, zero, ""), LLVMBuildFAdd(g, r, b, ""), r);
    r = pick(e, LLVMBuildFCmp(g, LLVMRealOGE, r, b, ""), LLVMBuildFSub(g, r, b, ""), r);
    LV finite =
        LLVMBuildAnd(g, LLVMBuildFCmp(g, LLVMRealOLT, a, inf, ""), LLVMBuildFCmp(g, LLVMRealONE, b, zero, ""), "");
    LV rare = LLVMBuildAnd(g, finite, LLVMBuildFCmp(g, LLVMRealOGE, t, dc(e, a, 0x1p53), ""), "");
    rx_ll_rare(e, "rx.fmod", subtract_divisors, rare, a, b, 1, 2, &r, 1);
    LV whole =
        LLVMBuildAnd(g, LLVMBuildFCmp(g, LLVMRealOEQ, b, inf, ""), LLVMBuildFCmp(g, LLVMRealOLT, a, inf, ""), "");
    return pick(e, whole, a, r);
}

static LV with_sign(rx_ll *e, LV mag, LV sign)
{
    LT t = LLVMTypeOf(mag);
    LV args[2] = {mag, sign}, fn = LLVMGetIntrinsicDeclaration(e->m, LLVMLookupIntrinsicID("llvm.copysign", 13), &t, 1);
    return LLVMBuildCall2(e->b, LLVMGlobalGetValueType(fn), fn, args, 2, "");
}

LV rx_ll_float_division(rx_ll *e, bool mod, LV a, LV b)
{
    LLVMBuilderRef g = e->b;
    LT t = LLVMTypeOf(a), wide = rx_ll_like(e, e->f64, a);
    bool narrow = t != wide;
    if (narrow) {
        a = LLVMBuildFPExt(g, a, wide, "");
        b = LLVMBuildFPExt(g, b, wide, "");
    }
    LV r;
    if (mod) {
        LV zero = dc(e, a, 0);
        r = with_sign(e, magnitude_mod(e, absolute(e, a), absolute(e, b)), a);
        LV differ =
            LLVMBuildXor(g, LLVMBuildFCmp(g, LLVMRealOLT, r, zero, ""), LLVMBuildFCmp(g, LLVMRealOLT, b, zero, ""), "");
        differ = LLVMBuildAnd(g, differ, LLVMBuildFCmp(g, LLVMRealONE, r, zero, ""), "");
        r = pick(e, differ, LLVMBuildFAdd(g, r, b, ""), r);
    } else {
        r = rx_ll_math(e, RX_IN_FLOOR, LLVMBuildFDiv(g, a, b, ""));
    }
    return narrow ? LLVMBuildFPTrunc(g, r, t, "") : r;
}
