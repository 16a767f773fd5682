/* conv.c: types of values in registers and in memory, and the casts between data types.
 *
 * Narrow floats (f16, bf16, f8) are f32 in registers. The conversions are integer code, exact and the same on every
 * target, except f16 where the target converts in one instruction. Rules: docs/semantics.md, section casts;
 * src/core/dtype.c is the reference. Trap: AVX512_BF16's conversion flushes denormals, so it is not used. */
#include "codegen/llvm/emit.h"

/* The layout of a narrow float: codes from `end` on are not finite (infinity first when inf is set). */
typedef struct narrow { uint32_t mbits, bias, end; bool inf; } narrow;
static const narrow half_format = {10, 15, 0x7C00, true};
static const narrow e4m3_format = {3, 7, 0x7F, false};
static const narrow e5m2_format = {2, 15, 0x7C, true};

bool rx_ll_signed(relax_dtype t) { return t >= RELAX_I8 && t <= RELAX_I64; }
static bool is_float(relax_dtype t) { return t >= RELAX_F16 && t <= RELAX_F8E5M2; }
static bool is_narrow(relax_dtype t) { return is_float(t) && t != RELAX_F32 && t != RELAX_F64; }

static LT int_type(rx_ll *e, relax_dtype t)
{
    switch (t) {
    case RELAX_I8: case RELAX_U8: return e->i8;
    case RELAX_I16: case RELAX_U16: return e->i16;
    case RELAX_I32: case RELAX_U32: return e->i32;
    default: return e->i64;
    }
}

LT rx_ll_type(rx_ll *e, relax_dtype t)
{
    if (t <= RELAX_DTYPE_UNKNOWN || t >= RELAX_DTYPE_COUNT) rx_ll_fail(e, "an expression has no data type");
    if (t == RELAX_BOOL) return e->i1;
    if (t == RELAX_F64) return e->f64;
    return is_float(t) ? e->f32 : int_type(e, t);
}

LT rx_ll_mem_type(rx_ll *e, relax_dtype t)
{
    switch (t) {
    case RELAX_BOOL: case RELAX_F8E4M3: case RELAX_F8E5M2: return e->i8;
    case RELAX_F16: case RELAX_BF16: return e->i16;
    default: return rx_ll_type(e, t);
    }
}

LT rx_ll_like(rx_ll *e, LT scalar, LV v)
{
    (void)e;
    LT t = LLVMTypeOf(v);
    return LLVMGetTypeKind(t) == LLVMVectorTypeKind ? LLVMVectorType(scalar, LLVMGetVectorSize(t)) : scalar;
}

/* ---- narrow floats ---- */
static LV ic(rx_ll *e, LV like, int64_t v) { return rx_ll_int_like(e, e->i32, like, v); }
static LV bits(rx_ll *e, LV f) { return LLVMBuildBitCast(e->b, f, rx_ll_like(e, e->i32, f), ""); }
static LV floats(rx_ll *e, LV i) { return LLVMBuildBitCast(e->b, i, rx_ll_like(e, e->f32, i), ""); }

static LV exp2_const(rx_ll *e, LV f, int n)
{
    double v = 1;
    for (; n < 0; n++) v /= 2;
    for (; n > 0; n--) v *= 2;
    return rx_ll_const_like(e, f, v);
}

/* f32 -> code in an i32, sign not set. Normal codes: rebias and round to nearest even on the bits. Denormal codes: an
 * addition that aligns the last place of the code with the last place of the float. */
static LV encode_magnitude(rx_ll *e, const narrow *n, LV a)
{
    LLVMBuilderRef b = e->b;
    uint32_t shift = 23 - n->mbits;
    LV odd = LLVMBuildAnd(b, LLVMBuildLShr(b, a, ic(e, a, shift), ""), ic(e, a, 1), "");
    LV r = LLVMBuildAdd(b, a, ic(e, a, ((int64_t)1 << (shift - 1)) - 1 - ((int64_t)(127 - n->bias) << 23)), "");
    r = LLVMBuildLShr(b, LLVMBuildAdd(b, r, odd, ""), ic(e, a, shift), "");
    LV magic = exp2_const(e, floats(e, a), 24 - (int)n->bias - (int)n->mbits);
    LV small = LLVMBuildSub(b, bits(e, LLVMBuildFAdd(b, floats(e, a), magic, "")), bits(e, magic), "");
    r = LLVMBuildSelect(b, LLVMBuildICmp(b, LLVMIntULT, a, ic(e, a, (int64_t)(128 - n->bias) << 23), ""), small, r, "");
    return LLVMBuildSelect(b, LLVMBuildICmp(b, LLVMIntUGT, r, ic(e, a, n->end), ""), ic(e, a, n->end), r, "");
}

static LV encode(rx_ll *e, const narrow *n, LT to, LV f)
{
    LLVMBuilderRef b = e->b;
    uint32_t width = n == &half_format ? 16 : 8;
    LV u = bits(e, f), a = LLVMBuildAnd(b, u, ic(e, u, 0x7FFFFFFF), "");
    LV sign = LLVMBuildLShr(b, LLVMBuildAnd(b, u, ic(e, u, 0x80000000), ""), ic(e, u, 32 - width), "");
    LV nan = ic(e, u, 0x7F);
    if (n == &half_format) {
        LV payload = LLVMBuildAnd(b, LLVMBuildLShr(b, a, ic(e, u, 13), ""), ic(e, u, 0x3FF), "");
        nan = LLVMBuildOr(b, payload, ic(e, u, 0x7E00), "");
    }
    LV is_nan = LLVMBuildICmp(b, LLVMIntUGT, a, ic(e, u, 0x7F800000), "");
    LV r = LLVMBuildSelect(b, is_nan, nan, encode_magnitude(e, n, a), "");
    return LLVMBuildTrunc(b, LLVMBuildOr(b, r, sign, ""), rx_ll_like(e, to, f), "");
}

static LV decode(rx_ll *e, const narrow *n, LV code)
{
    LLVMBuilderRef b = e->b;
    uint32_t width = n == &half_format ? 16 : 8, shift = 23 - n->mbits;
    LV h = LLVMBuildZExt(b, code, rx_ll_like(e, e->i32, code), "");
    LV a = LLVMBuildAnd(b, h, ic(e, h, ((int64_t)1 << (width - 1)) - 1), "");
    LV sign = LLVMBuildShl(b, LLVMBuildLShr(b, h, ic(e, h, width - 1), ""), ic(e, h, 31), "");
    LV payload = LLVMBuildShl(b, a, ic(e, h, shift), "");
    LV r = LLVMBuildAdd(b, payload, ic(e, h, (int64_t)(127 - n->bias) << 23), "");
    LV as_float = LLVMBuildUIToFP(b, a, rx_ll_like(e, e->f32, h), "");
    LV small = bits(e, LLVMBuildFMul(b, as_float, exp2_const(e, as_float, 1 - (int)n->bias - (int)n->mbits), ""));
    r = LLVMBuildSelect(b, LLVMBuildICmp(b, LLVMIntULT, a, ic(e, h, (int64_t)1 << n->mbits), ""), small, r, "");
    LV nan = LLVMBuildOr(b, payload, ic(e, h, 0x7FC00000), "");
    LV bad = LLVMBuildICmp(b, LLVMIntUGE, a, ic(e, h, n->end), "");
    if (n->inf) {
        LV inf = LLVMBuildICmp(b, LLVMIntEQ, a, ic(e, h, n->end), "");
        nan = LLVMBuildSelect(b, inf, ic(e, h, 0x7F800000), nan, "");
    }
    r = LLVMBuildSelect(b, bad, nan, r, "");
    return floats(e, LLVMBuildOr(b, r, sign, ""));
}

static bool half_native(const rx_ll *e) { return !e->x86 || rx_ll_has(e, RX_F_F16C); }

static LV bf16_code(rx_ll *e, LV f)
{
    LLVMBuilderRef b = e->b;
    LV u = bits(e, f), high = LLVMBuildLShr(b, u, ic(e, u, 16), "");
    LV odd = LLVMBuildAnd(b, high, ic(e, u, 1), "");
    LV r = LLVMBuildAdd(b, LLVMBuildAdd(b, u, ic(e, u, 0x7FFF), ""), odd, "");
    r = LLVMBuildLShr(b, r, ic(e, u, 16), "");
    LV is_nan = LLVMBuildFCmp(b, LLVMRealUNO, f, f, "");
    return LLVMBuildSelect(b, is_nan, LLVMBuildOr(b, high, ic(e, u, 0x40), ""), r, "");
}

LV rx_ll_to_mem(rx_ll *e, relax_dtype t, LV v)
{
    switch (t) {
    case RELAX_BOOL: return LLVMBuildZExt(e->b, v, rx_ll_like(e, e->i8, v), "");
    case RELAX_BF16: return LLVMBuildTrunc(e->b, bf16_code(e, v), rx_ll_like(e, e->i16, v), "");
    case RELAX_F8E4M3: return encode(e, &e4m3_format, e->i8, v);
    case RELAX_F8E5M2: return encode(e, &e5m2_format, e->i8, v);
    case RELAX_F16:
        if (!half_native(e)) return encode(e, &half_format, e->i16, v);
        v = LLVMBuildFPTrunc(e->b, v, rx_ll_like(e, e->half, v), "");
        return LLVMBuildBitCast(e->b, v, rx_ll_like(e, e->i16, v), "");
    default: return v;
    }
}

LV rx_ll_from_mem(rx_ll *e, relax_dtype t, LV v)
{
    switch (t) {
    case RELAX_BOOL: return LLVMBuildICmp(e->b, LLVMIntNE, v, rx_ll_int_like(e, e->i8, v, 0), "");
    case RELAX_BF16:
        v = LLVMBuildZExt(e->b, v, rx_ll_like(e, e->i32, v), "");
        return floats(e, LLVMBuildShl(e->b, v, ic(e, v, 16), ""));
    case RELAX_F8E4M3: return decode(e, &e4m3_format, v);
    case RELAX_F8E5M2: return decode(e, &e5m2_format, v);
    case RELAX_F16:
        if (!half_native(e)) return decode(e, &half_format, v);
        v = LLVMBuildBitCast(e->b, v, rx_ll_like(e, e->half, v), "");
        return LLVMBuildFPExt(e->b, v, rx_ll_like(e, e->f32, v), "");
    default: return v;
    }
}

LV rx_ll_round(rx_ll *e, relax_dtype t, LV v)
{
    if (!is_narrow(t)) return v;
    if (t == RELAX_BF16) return floats(e, LLVMBuildShl(e->b, bf16_code(e, v), ic(e, v, 16), ""));
    return rx_ll_from_mem(e, t, rx_ll_to_mem(e, t, v));
}

/* ---- casts ---- */
static LV float_to_int(rx_ll *e, relax_dtype to, LV v)
{
    const char *name = rx_ll_signed(to) ? "llvm.fptosi.sat" : "llvm.fptoui.sat";
    LT types[2] = {rx_ll_like(e, int_type(e, to), v), LLVMTypeOf(v)};
    LV fn = LLVMGetIntrinsicDeclaration(e->m, LLVMLookupIntrinsicID(name, strlen(name)), types, 2);
    return LLVMBuildCall2(e->b, LLVMGlobalGetValueType(fn), fn, &v, 1, "");
}

static LV to_float(rx_ll *e, relax_dtype to, relax_dtype from, LV v)
{
    LT t = rx_ll_like(e, rx_ll_type(e, to), v);
    if (from == RELAX_BOOL) {
        LV one = LLVMConstReal(rx_ll_type(e, to), 1), zero = LLVMConstReal(rx_ll_type(e, to), 0);
        if (LLVMGetTypeKind(t) != LLVMVectorTypeKind) return LLVMBuildSelect(e->b, v, one, zero, "");
        return LLVMBuildSelect(e->b, v, rx_ll_splat(e, one), rx_ll_splat(e, zero), "");
    }
    if (!is_float(from)) {
        v = rx_ll_signed(from) ? LLVMBuildSIToFP(e->b, v, t, "") : LLVMBuildUIToFP(e->b, v, t, "");
        return rx_ll_round(e, to, v);
    }
    if (to == RELAX_F64) return from == RELAX_F64 ? v : LLVMBuildFPExt(e->b, v, t, "");
    if (from == RELAX_F64) v = LLVMBuildFPTrunc(e->b, v, t, "");
    return from == to ? v : rx_ll_round(e, to, v);
}

static LV to_bool(rx_ll *e, relax_dtype from, LV v)
{
    LV zero = LLVMConstNull(LLVMTypeOf(v));
    if (from == RELAX_BOOL) return v;
    if (is_float(from)) return LLVMBuildFCmp(e->b, LLVMRealUNE, v, zero, "");
    return LLVMBuildICmp(e->b, LLVMIntNE, v, zero, "");
}

LV rx_ll_cast(rx_ll *e, relax_dtype to, relax_dtype from, LV v)
{
    if (to == RELAX_BOOL) return to_bool(e, from, v);
    if (is_float(to)) return to_float(e, to, from, v);
    if (is_float(from)) return float_to_int(e, to, v);
    LT t = rx_ll_like(e, int_type(e, to), v);
    unsigned have = LLVMGetIntTypeWidth(rx_ll_type(e, from)), want = LLVMGetIntTypeWidth(int_type(e, to));
    if (want == have) return v;
    if (want < have) return LLVMBuildTrunc(e->b, v, t, "");
    return rx_ll_signed(from) ? LLVMBuildSExt(e->b, v, t, "") : LLVMBuildZExt(e->b, v, t, "");
}

LV rx_ll_bitcast(rx_ll *e, relax_dtype to, relax_dtype from, LV v)
{
    v = rx_ll_to_mem(e, from, v);
    return rx_ll_from_mem(e, to, LLVMBuildBitCast(e->b, v, rx_ll_like(e, rx_ll_mem_type(e, to), v), ""));
}
