/* expr.c: expressions to straight-line LLVM IR.
 *
 * A node is emitted once per statement and mode (scalar or lanes); see emit.h for values. SELECT evaluates both sides,
 * each under a mask that guards its loads. Integer division never traps: x / 0 is 0, INT_MIN / -1 wraps. Index
 * expressions (i64, no loads) are mathematical integers, so their sums and products carry nsw; data expressions wrap.
 * Trap: no branches in here that do not join again; the memo relies on earlier values dominating later code. */
#include "codegen/llvm/emit.h"

#define DEPTH_LIMIT 2000                     /* nesting of an expression: this is recursive */

/* ---- memo ---- */
void rx_ll_forget(rx_ll *e)
{
    e->generation++;
    e->memo_used = 0;
}

static uint32_t slot_of(const rx_ll *e, rx_ex x, rx_ll_mode mode)
{
    uint64_t h = ((uint64_t)x->id * 4 + (uint64_t)mode) * 0x9E3779B97F4A7C15ull;
    return (uint32_t)(h >> 32) & (e->nmemo - 1);
}

rx_ll_memo *rx_ll_recall(rx_ll *e, rx_ex x, rx_ll_mode mode, LV mask)
{
    if (!e->nmemo) return NULL;
    for (uint32_t k = slot_of(e, x, mode); e->memo[k].generation == e->generation; k = (k + 1) & (e->nmemo - 1)) {
        rx_ll_memo *m = &e->memo[k];
        if (m->key == x && m->mode == mode && (!m->mask || m->mask == mask)) return m;
    }
    return NULL;
}

static void grow_memo(rx_ll *e)
{
    rx_ll_memo *old = e->memo;
    uint32_t n = e->nmemo;
    e->nmemo = n ? n * 2 : 1024;
    e->memo = rx_ll_mem(e, e->nmemo * sizeof *e->memo);
    for (uint32_t i = 0; i < n; i++) {
        if (old[i].generation != e->generation) continue;
        uint32_t k = slot_of(e, old[i].key, old[i].mode);
        while (e->memo[k].generation == e->generation) k = (k + 1) & (e->nmemo - 1);
        e->memo[k] = old[i];
    }
}

rx_ll_memo *rx_ll_remember(rx_ll *e, rx_ex x, rx_ll_mode mode, LV mask)
{
    if (e->generation == 0) e->generation = 1;
    if ((e->memo_used + 1) * 2 > e->nmemo) grow_memo(e);
    uint32_t k = slot_of(e, x, mode);
    while (e->memo[k].generation == e->generation) k = (k + 1) & (e->nmemo - 1);
    e->memo_used++;
    e->memo[k] = (rx_ll_memo){.key = x, .generation = e->generation, .mode = mode, .mask = mask};
    return &e->memo[k];
}

/* ---- lanes ---- */
LV rx_ll_splat(rx_ll *e, LV v)
{
    LT t = LLVMTypeOf(v);
    if (LLVMIsConstant(v)) {
        LV all[RX_LL_MAX_LANES];
        for (uint32_t i = 0; i < e->lanes; i++) all[i] = v;
        return LLVMConstVector(all, e->lanes);
    }
    LV one =
        LLVMBuildInsertElement(e->b, LLVMGetPoison(LLVMVectorType(t, e->lanes)), v, LLVMConstInt(e->i64, 0, 0), "");
    return LLVMBuildShuffleVector(e->b, one, LLVMGetPoison(LLVMTypeOf(one)),
                                  LLVMConstNull(LLVMVectorType(e->i32, e->lanes)), "");
}

LV rx_ll_any(rx_ll *e, LV mask)
{
    LT t = LLVMTypeOf(mask), packed = LLVMIntTypeInContext(e->c, LLVMGetVectorSize(t));
    return LLVMBuildICmp(e->b, LLVMIntNE, LLVMBuildBitCast(e->b, mask, packed, ""), LLVMConstNull(packed), "");
}

static bool in_lanes(const rx_ll *e) { return e->lanes && !e->scalar; }

/* bring both to lanes when one is */
static void meet(rx_ll *e, rx_ll_val *a, rx_ll_val *b)
{
    if (a->lanes == b->lanes) return;
    rx_ll_val *u = a->lanes ? b : a;
    u->v = rx_ll_splat(e, u->v);
    u->lanes = true;
}

LV rx_ll_ev_lanes(rx_ll *e, rx_ex x)
{
    rx_ll_val v = rx_ll_ev(e, x);
    return v.lanes ? v.v : rx_ll_splat(e, v.v);
}

LV rx_ll_ev_scalar(rx_ll *e, rx_ex x)
{
    bool saved = e->scalar;
    e->scalar = true;
    rx_ll_val v = rx_ll_ev(e, x);
    e->scalar = saved;
    return v.v;
}

/* ---- symbols and signs ---- */
rx_ll_bind *rx_ll_find(rx_ll *e, rx_ex sym)
{
    for (uint32_t i = e->binds.n; i-- > 0;)
        if (e->binds.at[i].sym == sym) return &e->binds.at[i];
    return NULL;
}

static rx_ll_val symbol(rx_ll *e, rx_ex x)
{
    rx_ll_bind *b = rx_ll_find(e, x);
    if (!b || !b->val.v) rx_ll_fail(e, "symbol '%s' is not defined where it is used", x->u.sym->name);
    if (!in_lanes(e)) {
        if (!b->val.lanes) return b->val;
        return (rx_ll_val){LLVMBuildExtractElement(e->b, b->val.v, LLVMConstInt(e->i64, 0, 0), ""), false};
    }
    if (!b->lane_var) return b->val;
    LV steps[RX_LL_MAX_LANES];
    for (uint32_t i = 0; i < e->lanes; i++) steps[i] = LLVMConstInt(e->i64, i, 0);
    return (rx_ll_val){LLVMBuildNSWAdd(e->b, rx_ll_splat(e, b->val.v), LLVMConstVector(steps, e->lanes), ""), true};
}

static bool positive(rx_ll *e, rx_ex x)
{
    if (x->op == RX_EX_INT) return x->u.i > 0;
    return x->op == RX_EX_SYM && x->u.sym->lo > 0 && rx_ll_nonneg(e, x);
}

/* proved by structure alone: enough for loop variables, dims and what is made of them */
bool rx_ll_nonneg(rx_ll *e, rx_ex x)
{
    if (x->dtype != RELAX_I64) return false;
    if (x->op == RX_EX_INT) return x->u.i >= 0;
    if (x->op == RX_EX_SYM) {
        rx_ll_bind *b = rx_ll_find(e, x);
        return b && b->nonneg;
    }
    if (x->size > 64 || x->nargs < 2) return false;
    switch (x->op) {
    case RX_EX_ADD: case RX_EX_MUL: case RX_EX_MIN:
        return !(x->flags & RX_EX_DATA && x->op != RX_EX_MIN) && rx_ll_nonneg(e, x->a[0]) && rx_ll_nonneg(e, x->a[1]);
    case RX_EX_MAX: return rx_ll_nonneg(e, x->a[0]) || rx_ll_nonneg(e, x->a[1]);
    case RX_EX_FLOORDIV: return rx_ll_nonneg(e, x->a[0]) && positive(e, x->a[1]);
    case RX_EX_FLOORMOD: return positive(e, x->a[1]);
    case RX_EX_SELECT: return rx_ll_nonneg(e, x->a[1]) && rx_ll_nonneg(e, x->a[2]);
    default: return false;
    }
}

/* ---- integer arithmetic ---- */
static LV ic(rx_ll *e, LV like, int64_t v)
{
    LT t = LLVMTypeOf(like);
    return rx_ll_int_like(e, LLVMGetTypeKind(t) == LLVMVectorTypeKind ? LLVMGetElementType(t) : t, like, v);
}

static uint32_t width(LV v)
{
    LT t = LLVMTypeOf(v);
    return LLVMGetIntTypeWidth(LLVMGetTypeKind(t) == LLVMVectorTypeKind ? LLVMGetElementType(t) : t);
}

static LV eq(rx_ll *e, LV a, int64_t v) { return LLVMBuildICmp(e->b, LLVMIntEQ, a, ic(e, a, v), ""); }
static LV sel(rx_ll *e, LV c, LV a, LV b) { return LLVMBuildSelect(e->b, c, a, b, ""); }

/* A divisor that cannot trap: x / 0 is patched by the caller, INT_MIN / -1 == INT_MIN / 1 as it wraps. */
static LV safe_divisor(rx_ll *e, LV a, LV b, bool is_signed)
{
    LV bad = eq(e, b, 0);
    if (is_signed) {
        LV least = eq(e, a, (int64_t)((uint64_t)1 << (width(a) - 1)));
        bad = LLVMBuildOr(e->b, bad, LLVMBuildAnd(e->b, least, eq(e, b, -1), ""), "");
    }
    return sel(e, bad, ic(e, b, 1), b);
}

/* FLOORDIV FLOORMOD TRUNCDIV TRUNCMOD; plain: a >= 0 and b > 0 are known */
static LV divide(rx_ll *e, rx_eop op, LV a, LV b, bool is_signed, bool plain)
{
    LLVMBuilderRef g = e->b;
    bool mod = op == RX_EX_FLOORMOD || op == RX_EX_TRUNCMOD;
    if (plain) return mod ? LLVMBuildURem(g, a, b, "") : LLVMBuildUDiv(g, a, b, "");
    LV d = safe_divisor(e, a, b, is_signed), zero = ic(e, a, 0), r;
    if (!is_signed) {
        r = mod ? LLVMBuildURem(g, a, d, "") : LLVMBuildUDiv(g, a, d, "");
    } else {
        LV q = LLVMBuildSDiv(g, a, d, ""), rem = LLVMBuildSRem(g, a, d, "");
        r = mod ? rem : q;
        if (op == RX_EX_FLOORDIV || op == RX_EX_FLOORMOD) {
            LV differ = LLVMBuildICmp(g, LLVMIntSLT, LLVMBuildXor(g, rem, d, ""), zero, "");
            LV fix = LLVMBuildAnd(g, differ, LLVMBuildICmp(g, LLVMIntNE, rem, zero, ""), "");
            r = mod ? sel(e, fix, LLVMBuildAdd(g, rem, d, ""), rem)
                    : sel(e, fix, LLVMBuildSub(g, q, ic(e, q, 1), ""), q);
        }
    }
    return sel(e, eq(e, b, 0), zero, r);
}

static LV shift(rx_ll *e, rx_eop op, LV a, LV b, bool is_signed)
{
    uint32_t w = width(a);
    LV inside = LLVMBuildICmp(e->b, LLVMIntULT, b, ic(e, b, w), "");
    LV n = sel(e, inside, b, ic(e, b, op == RX_EX_SHR && is_signed ? w - 1 : 0));
    if (op == RX_EX_SHR && is_signed) return LLVMBuildAShr(e->b, a, n, "");
    LV r = op == RX_EX_SHL ? LLVMBuildShl(e->b, a, n, "") : LLVMBuildLShr(e->b, a, n, "");
    return sel(e, inside, r, ic(e, a, 0));
}

/* by squaring, all bits of the exponent; a negative exponent gives 0 */
static LV int_pow(rx_ll *e, LV a, LV b, bool is_signed)
{
    uint32_t w = width(a) - (is_signed ? 1 : 0);
    LV r = ic(e, a, 1), base = a;
    for (uint32_t i = 0; i < w; i++) {
        LV bit = LLVMBuildAnd(e->b, LLVMBuildLShr(e->b, b, ic(e, b, i), ""), ic(e, b, 1), "");
        r = sel(e, eq(e, bit, 0), r, LLVMBuildMul(e->b, r, base, ""));
        base = LLVMBuildMul(e->b, base, base, "");
    }
    return is_signed ? sel(e, LLVMBuildICmp(e->b, LLVMIntSLT, b, ic(e, b, 0), ""), ic(e, a, 0), r) : r;
}

static LV int_arith(rx_ll *e, rx_eop op, relax_dtype t, LV a, LV b, bool nsw)
{
    bool s = rx_ll_signed(t);
    LLVMBuilderRef g = e->b;
    switch (op) {
    case RX_EX_ADD: return nsw ? LLVMBuildNSWAdd(g, a, b, "") : LLVMBuildAdd(g, a, b, "");
    case RX_EX_SUB: return nsw ? LLVMBuildNSWSub(g, a, b, "") : LLVMBuildSub(g, a, b, "");
    case RX_EX_MUL: return nsw ? LLVMBuildNSWMul(g, a, b, "") : LLVMBuildMul(g, a, b, "");
    case RX_EX_FLOORDIV:
    case RX_EX_FLOORMOD:
    case RX_EX_TRUNCDIV:
    case RX_EX_TRUNCMOD: return divide(e, op, a, b, s, false);
    case RX_EX_MIN: return sel(e, LLVMBuildICmp(g, s ? LLVMIntSLT : LLVMIntULT, a, b, ""), a, b);
    case RX_EX_MAX: return sel(e, LLVMBuildICmp(g, s ? LLVMIntSGT : LLVMIntUGT, a, b, ""), a, b);
    case RX_EX_POW: return int_pow(e, a, b, s);
    case RX_EX_BITAND: case RX_EX_AND: return LLVMBuildAnd(g, a, b, "");
    case RX_EX_BITOR: case RX_EX_OR: return LLVMBuildOr(g, a, b, "");
    case RX_EX_BITXOR: return LLVMBuildXor(g, a, b, "");
    case RX_EX_SHL: case RX_EX_SHR: return shift(e, op, a, b, s);
    default: rx_ll_fail(e, "operator %d is not one of integers", (int)op);
    }
}

/* ---- floats ---- */
/* NaN wins, and -0 < +0 */
static LV float_extreme(rx_ll *e, bool max, LV a, LV b)
{
    LT t = LLVMTypeOf(a);
    const char *name = max ? "llvm.maximum" : "llvm.minimum";
    LV args[2] = {a, b}, fn = LLVMGetIntrinsicDeclaration(e->m, LLVMLookupIntrinsicID(name, strlen(name)), &t, 1);
    return LLVMBuildCall2(e->b, LLVMGlobalGetValueType(fn), fn, args, 2, "");
}

static LV float_arith(rx_ll *e, rx_eop op, relax_dtype t, LV a, LV b)
{
    LLVMBuilderRef g = e->b;
    LV r;
    switch (op) {
    case RX_EX_ADD: r = LLVMBuildFAdd(g, a, b, ""); break;
    case RX_EX_SUB: r = LLVMBuildFSub(g, a, b, ""); break;
    case RX_EX_MUL: r = LLVMBuildFMul(g, a, b, ""); break;
    case RX_EX_DIV: r = LLVMBuildFDiv(g, a, b, ""); break;
    case RX_EX_FLOORDIV: case RX_EX_FLOORMOD: r = rx_ll_float_division(e, op == RX_EX_FLOORMOD, a, b); break;
    case RX_EX_MIN: return float_extreme(e, false, a, b);
    case RX_EX_MAX: return float_extreme(e, true, a, b);
    case RX_EX_POW: r = rx_ll_pow(e, a, b); break;
    default: rx_ll_fail(e, "operator %d is not one of floats", (int)op);
    }
    return rx_ll_round(e, t, r);
}

static bool is_float(relax_dtype t) { return t >= RELAX_F16 && t <= RELAX_F8E5M2; }

LV rx_ll_arith(rx_ll *e, rx_eop op, relax_dtype t, LV a, LV b, bool nsw)
{
    return is_float(t) ? float_arith(e, op, t, a, b) : int_arith(e, op, t, a, b, nsw);
}

static LV compare(rx_ll *e, rx_eop op, relax_dtype t, LV a, LV b)
{
    bool s = rx_ll_signed(t);
    if (is_float(t)) {
        LLVMRealPredicate p = op == RX_EX_EQ ? LLVMRealOEQ : op == RX_EX_NE ? LLVMRealUNE : op == RX_EX_LT ? LLVMRealOLT
                                                                                                          : LLVMRealOLE;
        return LLVMBuildFCmp(e->b, p, a, b, "");
    }
    LLVMIntPredicate p = op == RX_EX_EQ   ? LLVMIntEQ
                         : op == RX_EX_NE ? LLVMIntNE
                         : op == RX_EX_LT ? (s ? LLVMIntSLT : LLVMIntULT)
                                          : (s ? LLVMIntSLE : LLVMIntULE);
    return LLVMBuildICmp(e->b, p, a, b, "");
}

/* ---- nodes ---- */
static rx_ll_val binary(rx_ll *e, rx_ex x)
{
    rx_ll_val a = rx_ll_ev(e, x->a[0]), b = rx_ll_ev(e, x->a[1]);
    bool index = x->dtype == RELAX_I64 && !(x->flags & RX_EX_DATA);
    meet(e, &a, &b);
    if (x->op >= RX_EX_EQ && x->op <= RX_EX_LE)
        return (rx_ll_val){compare(e, (rx_eop)x->op, x->a[0]->dtype, a.v, b.v), a.lanes};
    if (x->dtype == RELAX_I64 && (x->op == RX_EX_FLOORDIV || x->op == RX_EX_FLOORMOD) && positive(e, x->a[1])
        && rx_ll_nonneg(e, x->a[0]))
        return (rx_ll_val){divide(e, (rx_eop)x->op, a.v, b.v, true, true), a.lanes};
    return (rx_ll_val){rx_ll_arith(e, (rx_eop)x->op, x->dtype, a.v, b.v, index), a.lanes};
}

static rx_ll_val select_value(rx_ll *e, rx_ex x)
{
    rx_ll_val c = rx_ll_ev(e, x->a[0]), saved = e->mask;
    if (LLVMIsAConstantInt(c.v)) return rx_ll_ev(e, x->a[LLVMConstIntGetZExtValue(c.v) ? 1 : 2]);
    rx_ll_val m = c, n = {LLVMBuildNot(e->b, c.v, ""), c.lanes};
    if (saved.v) {
        rx_ll_val s1 = saved, s2 = saved;
        meet(e, &m, &s1);
        meet(e, &n, &s2);
        m.v = LLVMBuildAnd(e->b, m.v, s1.v, "");
        n.v = LLVMBuildAnd(e->b, n.v, s2.v, "");
    }
    e->mask = m;
    rx_ll_val a = rx_ll_ev(e, x->a[1]);
    e->mask = n;
    rx_ll_val b = rx_ll_ev(e, x->a[2]);
    e->mask = saved;
    meet(e, &a, &b);
    if (c.lanes && !a.lanes) {
        a = (rx_ll_val){rx_ll_splat(e, a.v), true};
        b = (rx_ll_val){rx_ll_splat(e, b.v), true};
    }
    return (rx_ll_val){sel(e, c.v, a.v, b.v), a.lanes};
}

static rx_ll_val call_fma(rx_ll *e, rx_ex x)
{
    rx_ll_val a = rx_ll_ev(e, x->a[0]), b = rx_ll_ev(e, x->a[1]), c = rx_ll_ev(e, x->a[2]);
    meet(e, &a, &b);
    meet(e, &b, &c);
    meet(e, &a, &b);
    return (rx_ll_val){rx_ll_round(e, x->dtype, rx_ll_fma(e, a.v, b.v, c.v)), a.lanes};
}

static rx_ll_val call(rx_ll *e, rx_ex x)
{
    if (x->intrin == RX_IN_FMA) return call_fma(e, x);
    rx_ll_val a = rx_ll_ev(e, x->a[0]);
    relax_dtype t = x->a[0]->dtype;
    if (x->intrin == RX_IN_ISNAN) {
        if (!is_float(t)) return (rx_ll_val){LLVMConstInt(e->i1, 0, 0), false};
        return (rx_ll_val){LLVMBuildFCmp(e->b, LLVMRealUNO, a.v, a.v, ""), a.lanes};
    }
    if (is_float(t)) return (rx_ll_val){rx_ll_round(e, t, rx_ll_math(e, (rx_intrin)x->intrin, a.v)), a.lanes};
    switch (x->intrin) {
    case RX_IN_ABS:
        if (!rx_ll_signed(t)) return a;
        return (rx_ll_val){
            sel(e, LLVMBuildICmp(e->b, LLVMIntSLT, a.v, ic(e, a.v, 0), ""), LLVMBuildNeg(e->b, a.v, ""), a.v), a.lanes};
    case RX_IN_FLOOR: case RX_IN_CEIL: case RX_IN_ROUND: case RX_IN_TRUNC: return a;
    default: rx_ll_fail(e, "intrinsic %d takes floats only", (int)x->intrin);
    }
}

static rx_ll_val compute(rx_ll *e, rx_ex x)
{
    rx_ll_val a;
    switch ((rx_eop)x->op) {
    case RX_EX_INT: return (rx_ll_val){LLVMConstInt(rx_ll_type(e, x->dtype), (uint64_t)x->u.i, 1), false};
    case RX_EX_FLOAT: return (rx_ll_val){LLVMConstReal(rx_ll_type(e, x->dtype), x->u.f), false};
    case RX_EX_SYM: return symbol(e, x);
    case RX_EX_LOAD: return rx_ll_load(e, x);
    case RX_EX_NOT: case RX_EX_BITNOT:
        a = rx_ll_ev(e, x->a[0]);
        return (rx_ll_val){LLVMBuildNot(e->b, a.v, ""), a.lanes};
    case RX_EX_NEG:
        a = rx_ll_ev(e, x->a[0]);
        return (rx_ll_val){is_float(x->dtype) ? LLVMBuildFNeg(e->b, a.v, "") : LLVMBuildNeg(e->b, a.v, ""), a.lanes};
    case RX_EX_SELECT: return select_value(e, x);
    case RX_EX_CAST:
        a = rx_ll_ev(e, x->a[0]);
        return (rx_ll_val){rx_ll_cast(e, x->dtype, x->a[0]->dtype, a.v), a.lanes};
    case RX_EX_BITCAST:
        a = rx_ll_ev(e, x->a[0]);
        return (rx_ll_val){rx_ll_bitcast(e, x->dtype, x->a[0]->dtype, a.v), a.lanes};
    case RX_EX_CALL: return call(e, x);
    default: return binary(e, x);
    }
}

rx_ll_val rx_ll_ev(rx_ll *e, rx_ex x)
{
    rx_ll_mode mode = in_lanes(e) ? RX_LL_LANES : RX_LL_SCALAR;
    rx_ll_memo *m = rx_ll_recall(e, x, mode, e->mask.v);
    if (m) {
        e->loads += m->mask != NULL;
        return m->val;
    }
    /* an affine expression that is uniform after all, such as k // 32 within a block of lanes */
    if (mode == RX_LL_LANES && x->dtype == RELAX_I64 && x->nargs == 2 && rx_ll_stride(e, x) == 0)
        return (rx_ll_val){rx_ll_ev_scalar(e, x), false};
    if (++e->depth > DEPTH_LIMIT) rx_ll_fail(e, "an expression is nested deeper than %d", DEPTH_LIMIT);
    if (++e->nodes > RX_LL_NODE_LIMIT)
        rx_ll_fail(e, "the kernel is too large: more than %d operations", RX_LL_NODE_LIMIT);
    uint32_t loads = e->loads;
    rx_ll_val v = compute(e, x);
    e->depth--;
    rx_ll_remember(e, x, mode, e->loads != loads ? e->mask.v : NULL)->val = v;
    return v;
}
