/* stmt.c: statements to LLVM IR: loops, stores, branches, checks.
 *
 * VECTOR loops become lanes when lanes.c says so, else plain loops; UNROLL loops of a constant extent are unrolled
 * here, so that indices of local buffers become constants and LLVM keeps these buffers in registers. Vector
 * accumulators (lanes.c) are set to the identity of their operation before their loop, and merged into the buffer after
 * it, in a fixed order. In such an accumulation a product that is added is fused where the target has fma: VECTOR
 * reduce loops allow re-association. */
#include "codegen/llvm/emit.h"

static LV i64c(rx_ll *e, int64_t v) { return LLVMConstInt(e->i64, (uint64_t)v, 1); }
static LLVMBasicBlockRef block(rx_ll *e, const char *name) { return LLVMAppendBasicBlockInContext(e->c, e->fn, name); }

static void enter(rx_ll *e, LLVMBasicBlockRef b)
{
    LLVMPositionBuilderAtEnd(e->b, b);
    rx_ll_forget(e);
}

void rx_ll_bind_sym(rx_ll *e, rx_ex sym, rx_ll_val v, int64_t stride, bool nonneg)
{
    rx_ll_push(e, &e->binds, ((rx_ll_bind){.sym = sym, .val = v, .stride = stride, .nonneg = nonneg}));
}

/* ---- accumulators ---- */
static LV identity(rx_ll *e, rx_eop op, relax_dtype t)
{
    LT type = rx_ll_type(e, t);
    bool f = t == RELAX_F32 || t == RELAX_F64, s = rx_ll_signed(t);
    double inf = __builtin_inf();
    if (f) return LLVMConstReal(type, op == RX_EX_MUL ? 1 : op == RX_EX_MIN ? inf : op == RX_EX_MAX ? -inf : -0.0);
    uint32_t w = LLVMGetIntTypeWidth(type);
    uint64_t all = UINT64_MAX >> (64 - w), top = (uint64_t)1 << (w - 1);
    switch (op) {
    case RX_EX_MUL: return LLVMConstInt(type, 1, 0);
    case RX_EX_AND: case RX_EX_BITAND: return LLVMConstInt(type, all, 0);
    case RX_EX_MIN: return LLVMConstInt(type, s ? all ^ top : all, 0);
    case RX_EX_MAX: return LLVMConstInt(type, s ? top : 0, 0);
    default: return LLVMConstNull(type);
    }
}

static LV acc_slot(rx_ll *e, const rx_ll_acc *a, LV element)
{
    LV at = LLVMBuildNSWMul(e->b, element, i64c(e, a->lanes), "");
    return LLVMBuildInBoundsGEP2(e->b, rx_ll_mem_type(e, a->buf->dtype), a->at, &at, 1, "");
}

static LV acc_load(rx_ll *e, const rx_ll_acc *a, LV at)
{
    LT t = LLVMVectorType(rx_ll_mem_type(e, a->buf->dtype), a->lanes);
    return rx_ll_from_mem(e, a->buf->dtype, LLVMBuildLoad2(e->b, t, at, ""));
}

static void start_accs(rx_ll *e, uint32_t from)
{
    for (uint32_t i = from; i < e->accs.n; i++) {
        rx_ll_acc *a = &e->accs.at[i];
        LT t = rx_ll_mem_type(e, a->buf->dtype);
        uint32_t saved = e->lanes;
        a->at = rx_ll_local(e, t, a->n * a->lanes, "acc");
        e->lanes = a->lanes;
        LV v = rx_ll_to_mem(e, a->buf->dtype, rx_ll_splat(e, identity(e, a->op, a->buf->dtype)));
        e->lanes = saved;
        for (uint64_t k = 0; k < a->n; k++) LLVMBuildStore(e->b, v, acc_slot(e, a, i64c(e, (int64_t)k)));
    }
}

/* halves until the width is odd, then one by one */
static LV horizontal(rx_ll *e, const rx_ll_acc *a, LV v)
{
    uint32_t n = a->lanes;
    LV index[RX_LL_MAX_LANES];
    for (; n % 2 == 0; n /= 2) {
        LV part[2];
        for (uint32_t h = 0; h < 2; h++) {
            for (uint32_t i = 0; i < n / 2; i++) index[i] = LLVMConstInt(e->i32, i + h * n / 2, 0);
            part[h] = LLVMBuildShuffleVector(e->b, v, LLVMGetPoison(LLVMTypeOf(v)), LLVMConstVector(index, n / 2), "");
        }
        v = rx_ll_arith(e, a->op, a->buf->dtype, part[0], part[1], false);
    }
    LV r = LLVMBuildExtractElement(e->b, v, i64c(e, 0), "");
    for (uint32_t i = 1; i < n; i++)
        r = rx_ll_arith(e, a->op, a->buf->dtype, r, LLVMBuildExtractElement(e->b, v, i64c(e, i), ""), false);
    return r;
}

static LV local_element(rx_ll *e, const relax_buffer *b, uint64_t k)
{
    LV at = i64c(e, (int64_t)k);
    return LLVMBuildInBoundsGEP2(e->b, rx_ll_mem_type(e, b->dtype), rx_ll_buffer(e, b)->base, &at, 1, "");
}

static void finish_accs(rx_ll *e, uint32_t from)
{
    rx_ll_forget(e);
    for (uint32_t i = from; i < e->accs.n; i++) {
        rx_ll_acc *a = &e->accs.at[i];
        for (uint64_t k = 0; k < a->n; k++) {
            LV h = horizontal(e, a, acc_load(e, a, acc_slot(e, a, i64c(e, (int64_t)k))));
            LV at = a->index ? rx_ll_address(e, a->buf, a->index) : local_element(e, a->buf, k);
            LV old = rx_ll_scalar_load(e, a->buf, at);
            rx_ll_scalar_store(e, a->buf, at, rx_ll_arith(e, a->op, a->buf->dtype, old, h, false));
        }
    }
    e->accs.n = from;
    rx_ll_forget(e);
}

static bool update_acc(rx_ll *e, const rx_stmt *s)
{
    rx_eop op;
    rx_ex a, b;
    bool negate;
    rx_ll_acc *acc = NULL;
    for (uint32_t i = 0; i < e->accs.n && !acc; i++)
        if (e->accs.at[i].buf == s->u.store.buf) acc = &e->accs.at[i];
    if (!acc || acc->lanes != e->lanes || !rx_ll_update(s, &op, &a, &b, &negate) || op != acc->op) return false;
    relax_dtype t = acc->buf->dtype;
    LV element = i64c(e, 0);
    for (uint32_t i = 0; !acc->index && i < acc->buf->ndim; i++) {
        element = LLVMBuildNSWMul(e->b, element, rx_ll_ev_scalar(e, acc->buf->shape[i]), "");
        element = LLVMBuildNSWAdd(e->b, element, rx_ll_ev_scalar(e, s->u.store.index[i]), "");
    }
    LV at = acc_slot(e, acc, element), x = rx_ll_ev_lanes(e, a), y = b ? rx_ll_ev_lanes(e, b) : NULL, r;
    LV old = acc_load(e, acc, at);
    if (negate) x = t == RELAX_F32 || t == RELAX_F64 ? LLVMBuildFNeg(e->b, x, "") : LLVMBuildNeg(e->b, x, "");
    r = y ? rx_ll_mad(e, x, y, old) : rx_ll_arith(e, op, t, old, x, false);
    if (e->mask.v) r = LLVMBuildSelect(e->b, e->mask.v, r, old, "");
    LLVMBuildStore(e->b, rx_ll_to_mem(e, t, r), at);
    rx_ll_forget(e);
    return true;
}

/* ---- loops ---- */
void rx_ll_range(rx_ll *e, const rx_stmt *s, LV start, LV end, bool nonneg)
{
    LLVMBasicBlockRef before = LLVMGetInsertBlock(e->b), body = block(e, "loop"), after = block(e, "after");
    uint32_t nb = e->binds.n, na = e->accs.n;
    LLVMBuildCondBr(e->b, LLVMBuildICmp(e->b, LLVMIntSLT, start, end, ""), body, after);
    if (!e->lanes) {
        LLVMBasicBlockRef first = body;
        rx_ll_find_accs(e, s);
        if (e->accs.n > na) {
            body = block(e, "loop");
            enter(e, first);
            start_accs(e, na);
            LLVMBuildBr(e->b, body);
            before = first;
        }
    }
    enter(e, body);
    LV i = LLVMBuildPhi(e->b, e->i64, s->u.loop.var->u.sym->name);
    LLVMAddIncoming(i, &start, &before, 1);
    rx_ll_bind_sym(e, s->u.loop.var, (rx_ll_val){i, false}, 0, nonneg);
    rx_ll_stmt(e, s->u.loop.body);
    e->binds.n = nb;
    LV next = LLVMBuildNSWAdd(e->b, i, i64c(e, 1), "");
    LLVMBasicBlockRef latch = LLVMGetInsertBlock(e->b), done = e->accs.n > na ? block(e, "merge") : after;
    LLVMAddIncoming(i, &next, &latch, 1);
    LLVMBuildCondBr(e->b, LLVMBuildICmp(e->b, LLVMIntSLT, next, end, ""), body, done);
    if (done != after) {
        enter(e, done);
        finish_accs(e, na);
        LLVMBuildBr(e->b, after);
    }
    enter(e, after);
}

static void unroll(rx_ll *e, const rx_stmt *s, LV start, int64_t n, bool nonneg)
{
    uint32_t nb = e->binds.n, na = e->accs.n;
    if (!e->lanes) rx_ll_find_accs(e, s);
    start_accs(e, na);
    for (int64_t k = 0; k < n; k++) {
        rx_ll_forget(e);
        rx_ll_bind_sym(e, s->u.loop.var, (rx_ll_val){LLVMBuildNSWAdd(e->b, start, i64c(e, k), ""), false}, 0, nonneg);
        rx_ll_stmt(e, s->u.loop.body);
        e->binds.n = nb;
    }
    finish_accs(e, na);
}

/* true: done as lanes */
static bool vector_loop(rx_ll *e, const rx_stmt *s, LV start, int64_t n, bool nonneg)
{
    uint32_t nb = e->binds.n, na = e->accs.n;
    if (e->lanes || n < 2 || n > RX_LL_MAX_LANES) return false;
    if (s->u.loop.reduce) rx_ll_find_accs(e, s);
    rx_ll_bind_sym(e, s->u.loop.var, (rx_ll_val){start, false}, 1, nonneg);
    e->binds.at[nb].lane_var = true;
    e->lanes = (uint32_t)n;
    bool ok = rx_ll_lanes_ok(e, s);
    if (ok) {
        e->lanes = 0;
        start_accs(e, na);
        e->lanes = (uint32_t)n;
        rx_ll_forget(e);
        rx_ll_stmt(e, s->u.loop.body);
    }
    e->lanes = 0;
    e->binds.n = nb;
    if (ok) finish_accs(e, na);
    e->accs.n = na;
    rx_ll_forget(e);
    return ok;
}

static void loop(rx_ll *e, const rx_stmt *s)
{
    int64_t n;
    if (s->u.loop.init) rx_ll_stmt(e, s->u.loop.init);
    LV start = rx_ll_ev_scalar(e, s->u.loop.start), extent = rx_ll_ev_scalar(e, s->u.loop.extent);
    bool nonneg = rx_ll_nonneg(e, s->u.loop.start);
    if (LLVMIsAConstantInt(extent)) {
        n = LLVMConstIntGetSExtValue(extent);
        if (n <= 0) return;
        if (s->u.loop.how == RX_VECTOR && vector_loop(e, s, start, n, nonneg)) return;
        if (n == 1 || (s->u.loop.how == RX_UNROLL && n <= RX_LL_UNROLL_LIMIT)) {
            unroll(e, s, start, n, nonneg);
            return;
        }
    }
    rx_ll_range(e, s, start, LLVMBuildNSWAdd(e->b, start, extent, ""), nonneg);
}

/* ---- branches and checks ---- */
static void masked_side(rx_ll *e, rx_ll_val c, rx_ll_val saved, const rx_stmt *s)
{
    LV m = c.v;
    if (saved.v) m = LLVMBuildAnd(e->b, m, saved.lanes ? saved.v : rx_ll_splat(e, saved.v), "");
    rx_ll_forget(e);
    e->mask = (rx_ll_val){m, true};
    rx_ll_stmt(e, s);
    e->mask = saved;
}

static void branch(rx_ll *e, const rx_stmt *s)
{
    rx_ll_val c = rx_ll_ev(e, s->u.branch.cond);
    const rx_stmt *then = s->u.branch.then, *other = s->u.branch.other;
    if (c.lanes) {
        LV not = other ? LLVMBuildNot(e->b, c.v, "") : NULL;
        masked_side(e, c, e->mask, then);
        if (other) masked_side(e, (rx_ll_val){not, true}, e->mask, other);
        return;
    }
    LLVMBasicBlockRef yes = block(e, "then"), no = other ? block(e, "else") : NULL, after = block(e, "after");
    LLVMBuildCondBr(e->b, c.v, yes, no ? no : after);
    enter(e, yes);
    rx_ll_stmt(e, then);
    LLVMBuildBr(e->b, after);
    if (no) {
        enter(e, no);
        rx_ll_stmt(e, other);
        LLVMBuildBr(e->b, after);
    }
    enter(e, after);
}

/* the first error stays: compare and exchange with 0 */
static void check(rx_ll *e, const rx_stmt *s)
{
    rx_ll_val c = rx_ll_ev(e, s->u.check.cond);
    rx_ll_val bad = {LLVMBuildNot(e->b, c.v, ""), c.lanes};
    if (e->mask.v) {
        LV m = e->mask.v;
        if (bad.lanes && !e->mask.lanes) m = rx_ll_splat(e, m);
        if (!bad.lanes && e->mask.lanes) bad = (rx_ll_val){rx_ll_splat(e, bad.v), true};
        bad.v = LLVMBuildAnd(e->b, bad.v, m, "");
    }
    if (bad.lanes) bad.v = rx_ll_any(e, bad.v);
    LLVMBasicBlockRef fail = block(e, "failed"), ok = block(e, "checked");
    LLVMBuildCondBr(e->b, bad.v, fail, ok);
    enter(e, fail);
    LV at = LLVMBuildStructGEP2(e->b, rx_ll_args_type(e), e->args, 2, ""),
       err = LLVMBuildLoad2(e->b, e->ptr, at, "err");
    LLVMBuildAtomicCmpXchg(e->b, err, LLVMConstInt(e->i32, 0, 0), LLVMConstInt(e->i32, s->u.check.err, 0),
        LLVMAtomicOrderingMonotonic, LLVMAtomicOrderingMonotonic, 0);
    LLVMBuildBr(e->b, e->leave);
    enter(e, ok);
}

/* ---- the rest ---- */
void rx_ll_alloc(rx_ll *e, const relax_buffer *b)
{
    uint64_t n = 1;
    if (b->scope == RX_MEM_GLOBAL) rx_ll_fail(e, "buffer '%s' of global scope is allocated inside a kernel", b->name);
    for (uint32_t i = 0; i < b->ndim; i++) {
        int64_t d;
        if (!rx_ll_int_const(e, b->shape[i], &d)) rx_ll_fail(e, "local buffer '%s' has no constant size", b->name);
        if (d < 0 || (d && n > RX_LL_STACK_LIMIT / (uint64_t)d))
            rx_ll_fail(e, "local buffer '%s' is too large", b->name);
        n *= (uint64_t)d;
    }
    if (b->strides) rx_ll_fail(e, "local buffer '%s' has strides", b->name);
    bool per_lane = e->lanes > 0;
    LV at = rx_ll_local(e, rx_ll_mem_type(e, b->dtype), n * (per_lane ? e->lanes : 1), b->name);
    rx_ll_push(e, &e->bufs, ((rx_ll_buf){.buf = b, .base = at, .per_lane = per_lane}));
}

void rx_ll_let(rx_ll *e, rx_ex var, rx_ex value)
{
    int64_t stride = e->lanes ? rx_ll_stride(e, value) : 0;
    rx_ll_val v = rx_ll_ev(e, value);
    rx_ll_bind_sym(e, var, v, stride ? stride : v.lanes ? RX_LL_VARYING : 0, rx_ll_nonneg(e, value));
}

static void prefetch(rx_ll *e, const rx_stmt *s)
{
    LV at = rx_ll_address(e, s->u.prefetch.buf, s->u.prefetch.index);
    LV fn = LLVMGetIntrinsicDeclaration(e->m, LLVMLookupIntrinsicID("llvm.prefetch", 13), &e->ptr, 1);
    LV args[4] = {at, LLVMConstInt(e->i32, 0, 0), LLVMConstInt(e->i32, 3, 0), LLVMConstInt(e->i32, 1, 0)};
    LLVMBuildCall2(e->b, LLVMGlobalGetValueType(fn), fn, args, 4, "");
}

static void store(rx_ll *e, const rx_stmt *s)
{
    if (e->lanes && e->accs.n && update_acc(e, s)) return;
    rx_ll_val v = e->lanes ? rx_ll_ev(e, s->u.store.value) : (rx_ll_val){rx_ll_ev_scalar(e, s->u.store.value), false};
    rx_ll_store(e, s->u.store.buf, s->u.store.index, v);
    rx_ll_forget(e);
}

void rx_ll_stmt(rx_ll *e, const rx_stmt *s)
{
    uint32_t nb = e->binds.n, nbuf = e->bufs.n;
    if (++e->depth > 1000) rx_ll_fail(e, "statements are nested too deeply");
    switch (s->kind) {
    case RX_S_SEQ:
        for (uint32_t i = 0; i < s->u.seq.n; i++) rx_ll_stmt(e, s->u.seq.at[i]);
        break;
    case RX_S_FOR: loop(e, s); break;
    case RX_S_STORE: store(e, s); break;
    case RX_S_ALLOC:
        rx_ll_alloc(e, s->u.alloc.buf);
        rx_ll_stmt(e, s->u.alloc.body);
        break;
    case RX_S_IF: branch(e, s); break;
    case RX_S_LET:
        rx_ll_let(e, s->u.let.var, s->u.let.value);
        rx_ll_stmt(e, s->u.let.body);
        break;
    case RX_S_ASSERT: check(e, s); break;
    case RX_S_PREFETCH: prefetch(e, s); break;
    }
    e->depth--;
    e->binds.n = nb;
    e->bufs.n = nbuf;
}
