/* mem.c: addresses, loads and stores, scalar and by lanes.
 *
 * A load of a VECTOR loop whose offset is (uniform + lane) is one vector load, a uniform one is a scalar load, others
 * are gathered lane by lane. A masked-off access reads `zeros` or writes `sink` instead of its own address (which may
 * lie outside the buffer), or is an llvm.masked intrinsic. Parameters carry alias scopes: each is its own memory. */
#include "codegen/llvm/emit.h"

rx_ll_buf *rx_ll_buffer(rx_ll *e, const relax_buffer *b)
{
    for (uint32_t i = e->bufs.n; i-- > 0;)
        if (e->bufs.at[i].buf == b) return &e->bufs.at[i];
    rx_ll_fail(e, "buffer '%s' is not in scope", b->name ? b->name : "?");
}

void rx_ll_tag(rx_ll *e, LV inst, const rx_ll_buf *b, bool load)
{
    if (!b->scope) return;
    LLVMSetMetadata(inst, e->md_scope, LLVMMetadataAsValue(e->c, b->scope));
    if (b->others) LLVMSetMetadata(inst, e->md_noalias, LLVMMetadataAsValue(e->c, b->others));
    if (load && b->read_only)
        LLVMSetMetadata(inst, e->md_invariant, LLVMMetadataAsValue(e->c, LLVMMDNodeInContext2(e->c, NULL, 0)));
}

static bool in_lanes(const rx_ll *e) { return e->lanes && !e->scalar; }
static LV i64c(rx_ll *e, int64_t v) { return LLVMConstInt(e->i64, (uint64_t)v, 1); }
static LV add(rx_ll *e, LV a, LV b) { return LLVMBuildNSWAdd(e->b, a, b, ""); }
static LV mul(rx_ll *e, LV a, LV b) { return LLVMBuildNSWMul(e->b, a, b, ""); }

static unsigned elem_bytes(rx_ll *e, const relax_buffer *b)
{
    LT t = rx_ll_mem_type(e, b->dtype);
    return t == e->f32 ? 4 : t == e->f64 ? 8 : LLVMGetIntTypeWidth(t) / 8;
}

/* ---- offsets, in elements ---- */
/* at lane 0 */
static LV offset_scalar(rx_ll *e, const relax_buffer *b, rx_ex *index)
{
    LV r = NULL;
    for (uint32_t i = 0; i < b->ndim; i++) {
        LV x = rx_ll_ev_scalar(e, index[i]);
        if (b->strides) x = mul(e, x, rx_ll_ev_scalar(e, b->strides[i]));
        else if (r) r = mul(e, r, rx_ll_ev_scalar(e, b->shape[i]));
        r = r ? add(e, r, x) : x;
    }
    return r ? r : i64c(e, 0);
}

/* the step of the offset from lane to lane, when every index has a constant one: uniform, may be known only at run time
 */
static bool offset_step(rx_ll *e, const relax_buffer *b, rx_ex *index, LV *step)
{
    LV r = i64c(e, 0);
    for (uint32_t i = 0; i < b->ndim; i++) {
        int64_t s = rx_ll_stride(e, index[i]);
        if (s == RX_LL_VARYING) return false;
        LV x = i64c(e, s);
        if (b->strides) x = mul(e, x, rx_ll_ev_scalar(e, b->strides[i]));
        else r = mul(e, r, rx_ll_ev_scalar(e, b->shape[i]));
        r = add(e, r, x);
    }
    *step = r;
    return true;
}

static LV offset_lanes(rx_ll *e, const relax_buffer *b, rx_ex *index)
{
    LV r = NULL;
    for (uint32_t i = 0; i < b->ndim; i++) {
        LV x = rx_ll_ev_lanes(e, index[i]);
        if (b->strides) x = mul(e, x, rx_ll_ev_lanes(e, b->strides[i]));
        else if (r) r = mul(e, r, rx_ll_ev_lanes(e, b->shape[i]));
        r = r ? add(e, r, x) : x;
    }
    return r ? r : rx_ll_splat(e, i64c(e, 0));
}

static LV element(rx_ll *e, const rx_ll_buf *b, LV offset)
{
    return LLVMBuildInBoundsGEP2(e->b, rx_ll_mem_type(e, b->buf->dtype), b->base, &offset, 1, "");
}

LV rx_ll_address(rx_ll *e, const relax_buffer *buf, rx_ex *index)
{
    rx_ll_buf *b = rx_ll_buffer(e, buf);
    LV at = offset_scalar(e, buf, index);
    return element(e, b, b->per_lane ? mul(e, at, i64c(e, e->lanes)) : at);
}

/* The addresses of all lanes, for accesses that are not contiguous. */
static void addresses(rx_ll *e, const rx_ll_buf *b, rx_ex *index, LV *at)
{
    LV step, base = NULL, all = NULL;
    if (offset_step(e, b->buf, index, &step)) base = offset_scalar(e, b->buf, index);
    else all = offset_lanes(e, b->buf, index);
    for (uint32_t l = 0; l < e->lanes; l++) {
        LV o = base ? add(e, base, mul(e, step, i64c(e, l))) : LLVMBuildExtractElement(e->b, all, i64c(e, l), "");
        if (b->per_lane) o = add(e, mul(e, o, i64c(e, e->lanes)), i64c(e, l));
        at[l] = element(e, b, o);
    }
}

/* ---- masked-off accesses ---- */
static LV zeros(rx_ll *e)
{
    LT t = LLVMArrayType2(e->i64, RX_LL_MAX_LANES);
    if (!e->zeros) {
        e->zeros = LLVMAddGlobal(e->m, t, "rx.zeros");
        LLVMSetInitializer(e->zeros, LLVMConstNull(t));
        LLVMSetGlobalConstant(e->zeros, 1);
        LLVMSetLinkage(e->zeros, LLVMPrivateLinkage);
        LLVMSetAlignment(e->zeros, 64);
    }
    return e->zeros;
}

static LV sink(rx_ll *e)
{
    if (!e->sink) e->sink = rx_ll_local(e, e->i64, RX_LL_MAX_LANES, "sink");
    return e->sink;
}

static LV lane_mask(rx_ll *e, uint32_t l)
{
    return e->mask.lanes ? LLVMBuildExtractElement(e->b, e->mask.v, i64c(e, l), "") : e->mask.v;
}

/* i1: some path reaches the access */
static LV any_mask(rx_ll *e) { return e->mask.lanes ? rx_ll_any(e, e->mask.v) : e->mask.v; }

static LV call_masked(rx_ll *e, const char *name, LT type, LV *args, uint32_t ptr_at, unsigned align)
{
    LT types[2] = {type, e->ptr};
    LV fn = LLVMGetIntrinsicDeclaration(e->m, LLVMLookupIntrinsicID(name, strlen(name)), types, 2);
    uint32_t n = LLVMCountParams(fn);
    LV full[4] = {args[0], args[1], args[2]};
    if (n == 4) {                            /* before LLVM 22 the alignment is an operand after the pointer */
        full[3] = args[2];
        full[2] = ptr_at == 1 ? LLVMConstInt(e->i32, align, 0) : full[2];
        if (ptr_at == 0) full[2] = args[1], full[1] = LLVMConstInt(e->i32, align, 0);
    }
    return LLVMBuildCall2(e->b, LLVMGlobalGetValueType(fn), fn, full, n, "");
}

/* ---- loads ---- */
static LV plain_load(rx_ll *e, const rx_ll_buf *b, LT type, LV at)
{
    LV v = LLVMBuildLoad2(e->b, type, at, "");
    LLVMSetAlignment(v, elem_bytes(e, b->buf));
    rx_ll_tag(e, v, b, true);
    return v;
}

/* The verifier has proved constant indices of local buffers; all others may be out of bounds where the mask is off. */
static bool needs_guard(rx_ll *e, const rx_ll_buf *b, rx_ex *index)
{
    int64_t v;
    if (!e->mask.v || b->scope) return e->mask.v != NULL;
    for (uint32_t i = 0; i < b->buf->ndim; i++)
        if (!rx_ll_int_const(e, index[i], &v)) return true;
    return false;
}

/* the address, or one of spare memory when nothing reaches the access */
static LV guarded(rx_ll *e, const rx_ll_buf *b, rx_ex *index, bool store)
{
    LV at = rx_ll_address(e, b->buf, index);
    if (!needs_guard(e, b, index)) return at;
    return LLVMBuildSelect(e->b, any_mask(e), at, store ? sink(e) : zeros(e), "");
}

static LV load_uniform(rx_ll *e, const rx_ll_buf *b, rx_ex *index)
{
    LV at = guarded(e, b, index, false);
    return plain_load(e, b, rx_ll_mem_type(e, b->buf->dtype), at);
}

static LV load_contiguous(rx_ll *e, const rx_ll_buf *b, rx_ex *index)
{
    LT type = LLVMVectorType(rx_ll_mem_type(e, b->buf->dtype), e->lanes);
    if (!e->mask.lanes || b->per_lane) return plain_load(e, b, type, guarded(e, b, index, false));
    LV args[3] = {rx_ll_address(e, b->buf, index), e->mask.v, LLVMConstNull(type)};
    LV v = call_masked(e, "llvm.masked.load", type, args, 0, elem_bytes(e, b->buf));
    rx_ll_tag(e, v, b, true);
    return v;
}

static LV load_gather(rx_ll *e, const rx_ll_buf *b, rx_ex *index)
{
    LT type = rx_ll_mem_type(e, b->buf->dtype);
    LV at[RX_LL_MAX_LANES], v = LLVMGetPoison(LLVMVectorType(type, e->lanes));
    addresses(e, b, index, at);
    for (uint32_t l = 0; l < e->lanes; l++) {
        if (e->mask.v) at[l] = LLVMBuildSelect(e->b, lane_mask(e, l), at[l], zeros(e), "");
        v = LLVMBuildInsertElement(e->b, v, plain_load(e, b, type, at[l]), i64c(e, l), "");
    }
    return v;
}

rx_ll_val rx_ll_load(rx_ll *e, rx_ex x)
{
    rx_ll_buf *b = rx_ll_buffer(e, x->u.buf);
    rx_ex *index = (rx_ex *)x->a;
    relax_dtype t = x->u.buf->dtype;
    if (x->nargs != x->u.buf->ndim) rx_ll_fail(e, "a load of '%s' has %u indices", x->u.buf->name, x->nargs);
    e->loads++;
    if (!in_lanes(e)) return (rx_ll_val){rx_ll_from_mem(e, t, load_uniform(e, b, index)), false};
    int64_t s = rx_ll_index_stride(e, x->u.buf, index);
    if (b->per_lane ? s == 0 : s == 1) return (rx_ll_val){rx_ll_from_mem(e, t, load_contiguous(e, b, index)), true};
    if (s == 0) return (rx_ll_val){rx_ll_from_mem(e, t, load_uniform(e, b, index)), false};
    return (rx_ll_val){rx_ll_from_mem(e, t, load_gather(e, b, index)), true};
}

LV rx_ll_scalar_load(rx_ll *e, const relax_buffer *b, LV at)
{
    return rx_ll_from_mem(e, b->dtype, plain_load(e, rx_ll_buffer(e, b), rx_ll_mem_type(e, b->dtype), at));
}

/* ---- stores ---- */
static void plain_store(rx_ll *e, const rx_ll_buf *b, LV v, LV at)
{
    LV s = LLVMBuildStore(e->b, v, at);
    LLVMSetAlignment(s, elem_bytes(e, b->buf));
    rx_ll_tag(e, s, b, false);
}

void rx_ll_scalar_store(rx_ll *e, const relax_buffer *b, LV at, LV v)
{
    plain_store(e, rx_ll_buffer(e, b), rx_ll_to_mem(e, b->dtype, v), at);
}

static void store_contiguous(rx_ll *e, const rx_ll_buf *b, rx_ex *index, LV v)
{
    if (!e->mask.v) {
        plain_store(e, b, v, rx_ll_address(e, b->buf, index));
    } else if (b->per_lane) {
        LV at = guarded(e, b, index, true);
        LV old = plain_load(e, b, LLVMTypeOf(v), at);
        plain_store(e, b, LLVMBuildSelect(e->b, e->mask.lanes ? e->mask.v : rx_ll_splat(e, e->mask.v), v, old, ""), at);
    } else {
        LV args[3] = {v, rx_ll_address(e, b->buf, index), e->mask.lanes ? e->mask.v : rx_ll_splat(e, e->mask.v)};
        LV s = call_masked(e, "llvm.masked.store", LLVMTypeOf(v), args, 1, elem_bytes(e, b->buf));
        rx_ll_tag(e, s, b, false);
    }
}

static void store_scatter(rx_ll *e, const rx_ll_buf *b, rx_ex *index, LV v)
{
    LV at[RX_LL_MAX_LANES];
    addresses(e, b, index, at);
    for (uint32_t l = 0; l < e->lanes; l++) {
        if (e->mask.v) at[l] = LLVMBuildSelect(e->b, lane_mask(e, l), at[l], sink(e), "");
        plain_store(e, b, LLVMBuildExtractElement(e->b, v, i64c(e, l), ""), at[l]);
    }
}

void rx_ll_store(rx_ll *e, const relax_buffer *buf, rx_ex *index, rx_ll_val v)
{
    rx_ll_buf *b = rx_ll_buffer(e, buf);
    if (!in_lanes(e)) {
        rx_ll_scalar_store(e, buf, rx_ll_address(e, buf, index), v.v);
        return;
    }
    int64_t s = rx_ll_index_stride(e, buf, index);
    if (s == 0 && !b->per_lane && !v.lanes && !e->mask.v) {
        rx_ll_scalar_store(e, buf, rx_ll_address(e, buf, index), v.v);
        return;
    }
    LV mem = rx_ll_to_mem(e, buf->dtype, v.lanes ? v.v : rx_ll_splat(e, v.v));
    if (b->per_lane ? s == 0 : s == 1) store_contiguous(e, b, index, mem);
    else store_scatter(e, b, index, mem);
}
