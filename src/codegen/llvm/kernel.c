/* kernel.c: a prim func to the functions of its phases, rxk_<kernel>_<phase>(const rx_kernel_args *).
 *
 * The statements at the top of the body are grouped: each PARALLEL loop is a phase of its own, split evenly over the
 * parts; runs of other statements between them are serial phases (the verifier admits PARALLEL loops nowhere else; one
 * inside another statement runs serially). A phase of a kernel with checks returns at once when an earlier check has
 * failed. */
#include "codegen/llvm/emit.h"

#include <stdio.h>
#include <stdlib.h>

typedef struct phase { RX_LL_VEC(const rx_stmt *) items; bool parallel; } phase;
typedef RX_LL_VEC(phase) phases;

static void group(rx_ll *e, phases *p, const rx_stmt *s)
{
    if (s->kind == RX_S_SEQ) {
        for (uint32_t i = 0; i < s->u.seq.n; i++) group(e, p, s->u.seq.at[i]);
        return;
    }
    bool parallel = s->kind == RX_S_FOR && s->u.loop.how == RX_PARALLEL && !s->u.loop.init;
    if (parallel || p->n == 0 || p->at[p->n - 1].parallel) rx_ll_push(e, p, ((phase){.parallel = parallel}));
    rx_ll_push(e, &p->at[p->n - 1].items, s);
}

/* ---- functions ---- */
LT rx_ll_args_type(rx_ll *e)
{
    LT f[6] = {e->ptr, e->ptr, e->ptr, e->i64, e->i64, e->ptr};
    _Static_assert(sizeof(rx_kernel_args) == 48, "the struct below follows kernel.h");
    return LLVMStructTypeInContext(e->c, f, 6, 0);
}

LV rx_ll_local(rx_ll *e, LT type, uint64_t n, const char *name)
{
    LLVMBasicBlockRef here = LLVMGetInsertBlock(e->b);
    uint64_t bits = type == e->f64 || type == e->i64   ? 64
                    : type == e->f32 || type == e->i32 ? 32
                                                       : LLVMGetIntTypeWidth(type);
    e->stack += n * bits / 8;
    if (e->stack > RX_LL_STACK_LIMIT)
        rx_ll_fail(e, "the local buffers of a kernel take more than %d bytes", RX_LL_STACK_LIMIT);
    LLVMPositionBuilderBefore(e->b, LLVMGetBasicBlockTerminator(e->entry));
    LV at = LLVMBuildAlloca(e->b, LLVMArrayType2(type, n ? n : 1), name);
    LLVMSetAlignment(at, 64);
    LLVMPositionBuilderAtEnd(e->b, here);
    return at;
}

static void attribute(rx_ll *e, LV fn, const char *key, const char *value)
{
    LLVMAttributeRef a = LLVMCreateStringAttribute(e->c, key, (unsigned)strlen(key), value, (unsigned)strlen(value));
    LLVMAddAttributeAtIndex(fn, LLVMAttributeFunctionIndex, a);
}

void rx_ll_attributes(rx_ll *e, LV fn)
{
    LLVMAttributeRef a = LLVMCreateEnumAttribute(e->c, LLVMGetEnumAttributeKindForName("nounwind", 8), 0);
    LLVMAddAttributeAtIndex(fn, LLVMAttributeFunctionIndex, a);
    attribute(e, fn, "target-cpu", e->x86 ? "x86-64" : "generic");
    attribute(e, fn, "target-features", rx_ll_feature_text(e));
    attribute(e, fn, "no-builtins", "");
    if (e->x86) {
        attribute(e, fn, "prefer-vector-width",
                  rx_ll_has(e, RX_F_AVX512) && e->job->target->vector_bits == 512 ? "512" : "256");
        attribute(e, fn, "min-legal-vector-width", "0");
    }
}

static LV field(rx_ll *e, uint32_t k, LT type)
{
    LV at = LLVMBuildStructGEP2(e->b, rx_ll_args_type(e), e->args, k, "");
    LV v = LLVMBuildLoad2(e->b, type, at, "");
    LLVMSetMetadata(v, e->md_invariant, LLVMMetadataAsValue(e->c, LLVMMDNodeInContext2(e->c, NULL, 0)));
    return v;
}

static LV slot(rx_ll *e, LV array, LT type, uint32_t k)
{
    LV at = LLVMConstInt(e->i64, k, 0);
    LV v = LLVMBuildLoad2(e->b, type, LLVMBuildInBoundsGEP2(e->b, type, array, &at, 1, ""), "");
    LLVMSetMetadata(v, e->md_invariant, LLVMMetadataAsValue(e->c, LLVMMDNodeInContext2(e->c, NULL, 0)));
    return v;
}

/* !{name, domain}: scopes and domains with a name need no self reference */
static LLVMMetadataRef scope(rx_ll *e, LLVMMetadataRef domain, const char *kind, uint32_t k)
{
    char name[64];
    int n = snprintf(name, sizeof name, "rx.%u.%s.%u", e->kernel, kind, k);
    LLVMMetadataRef parts[2] = {LLVMMDStringInContext2(e->c, name, (size_t)n), domain};
    return LLVMMDNodeInContext2(e->c, parts, domain ? 2 : 1);
}

static void bind_params(rx_ll *e)
{
    const rx_prim *p = e->k->prim;
    LV bufs = field(e, 0, e->ptr);
    LLVMMetadataRef domain = scope(e, NULL, "domain", 0);
    LLVMMetadataRef *all = rx_ll_mem(e, (p->nparams + 1) * sizeof *all),
                    *rest = rx_ll_mem(e, (p->nparams + 1) * sizeof *rest);
    for (uint32_t i = 0; i < p->nparams; i++) all[i] = scope(e, domain, "param", i);
    for (uint32_t i = 0; i < p->nparams; i++) {
        uint32_t n = 0;
        for (uint32_t k = 0; k < p->nparams; k++)
            if (k != i) rest[n++] = all[k];
        rx_ll_buf b = {.buf = p->params[i], .base = slot(e, bufs, e->ptr, i), .read_only = !e->writes[i]};
        b.scope = LLVMMDNodeInContext2(e->c, &all[i], 1);
        b.others = n ? LLVMMDNodeInContext2(e->c, rest, n) : NULL;
        rx_ll_push(e, &e->bufs, b);
    }
    LV syms = field(e, 1, e->ptr);
    for (uint32_t i = 0; i < e->k->nsymbols; i++) {
        rx_ex s = e->k->symbols[i];
        rx_ll_bind_sym(e, s, (rx_ll_val){slot(e, syms, e->i64, i), false}, 0, s->u.sym->lo >= 0);
    }
}

static bool any_check(void *arg, const rx_stmt *s, rx_ex x)
{
    (void)arg;
    return x || s->kind != RX_S_ASSERT;
}

/* entry: allocas; then: parameters, and an early way out */
static void open_function(rx_ll *e, uint32_t number)
{
    char name[48];
    snprintf(name, sizeof name, "rxk_%u_%u", e->kernel, number);
    e->fn = LLVMAddFunction(e->m, name, LLVMFunctionType(e->none, &e->ptr, 1, 0));
    rx_ll_attributes(e, e->fn);
    e->args = LLVMGetParam(e->fn, 0);
    e->entry = LLVMAppendBasicBlockInContext(e->c, e->fn, "entry");
    e->leave = LLVMAppendBasicBlockInContext(e->c, e->fn, "leave");
    LLVMPositionBuilderAtEnd(e->b, e->leave);
    LLVMBuildRetVoid(e->b);
    LLVMBasicBlockRef start = LLVMAppendBasicBlockInContext(e->c, e->fn, "start");
    LLVMPositionBuilderAtEnd(e->b, e->entry);
    LLVMBuildBr(e->b, start);
    LLVMPositionBuilderAtEnd(e->b, start);
    e->binds.n = e->bufs.n = e->accs.n = 0;
    e->stack = 0;
    e->lanes = e->depth = 0;
    e->scalar = false;
    e->mask = (rx_ll_val){0};
    e->sink = NULL;
    rx_ll_forget(e);
    bind_params(e);
    if (rx_ll_walk(e->k->prim->body, any_check, NULL)) return;
    LV err = LLVMBuildLoad2(e->b, e->i32, field(e, 2, e->ptr), "");
    LLVMSetOrdering(err, LLVMAtomicOrderingMonotonic);
    LLVMSetAlignment(err, 4);
    LLVMBasicBlockRef go = LLVMAppendBasicBlockInContext(e->c, e->fn, "go");
    LLVMBuildCondBr(e->b, LLVMBuildICmp(e->b, LLVMIntEQ, err, LLVMConstInt(e->i32, 0, 0), ""), go, e->leave);
    LLVMPositionBuilderAtEnd(e->b, go);
}

/* part p of n gets extent / n iterations, the first extent % n parts one more */
static void parallel_loop(rx_ll *e, const rx_stmt *s)
{
    LLVMBuilderRef b = e->b;
    LV start = rx_ll_ev_scalar(e, s->u.loop.start), extent = rx_ll_ev_scalar(e, s->u.loop.extent),
       zero = LLVMConstInt(e->i64, 0, 0);
    bool nonneg = rx_ll_nonneg(e, s->u.loop.start);
    extent = LLVMBuildSelect(b, LLVMBuildICmp(b, LLVMIntSGT, extent, zero, ""), extent, zero, "");
    LV part = field(e, 3, e->i64), n = field(e, 4, e->i64);
    LV each = LLVMBuildUDiv(b, extent, n, ""), more = LLVMBuildURem(b, extent, n, "");
    LV early = LLVMBuildICmp(b, LLVMIntULT, part, more, "");
    LV first = LLVMBuildAdd(b, LLVMBuildMul(b, part, each, ""), LLVMBuildSelect(b, early, part, more, ""), "");
    LV count = LLVMBuildAdd(b, each, LLVMBuildZExt(b, early, e->i64, ""), "");
    first = LLVMBuildNSWAdd(b, start, first, "");
    rx_ll_range(e, s, first, LLVMBuildNSWAdd(b, first, count, ""), nonneg);
}

static void emit_phase(rx_ll *e, const phase *p, uint32_t number)
{
    open_function(e, number);
    for (uint32_t i = 0; i < p->items.n; i++) {
        if (p->parallel) parallel_loop(e, p->items.at[i]);
        else rx_ll_stmt(e, p->items.at[i]);
    }
    LLVMBuildBr(e->b, e->leave);
}

/* ---- the kernel ---- */
static bool note_access(void *arg, const rx_stmt *s, rx_ex x)
{
    rx_ll *e = arg;
    if (!x && s->kind == RX_S_STORE && s->u.store.buf->param >= 0) e->writes[s->u.store.buf->param] = true;
    return true;
}

void rx_ll_kernel(rx_ll *e, uint32_t kernel)
{
    rx_llvm_job *job = e->job;
    const rx_prim *p = job->kernels[kernel].prim;
    phases all = {0};
    e->k = &job->kernels[kernel];
    e->kernel = kernel;
    e->nodes = 0;
    for (uint32_t i = 0; i < p->nparams; i++)
        if (p->params[i]->param != (int32_t)i) rx_ll_fail(e, "parameter %u of '%s' is out of order", i, p->name);
    e->writes = rx_ll_mem(e, p->nparams + 1);
    rx_ll_walk(p->body, note_access, e);
    group(e, &all, p->body);
    for (uint32_t i = 0; i < all.n; i++) emit_phase(e, &all.at[i], i);
    job->nphases[kernel] = all.n;
    job->parallel[kernel] = calloc(all.n ? all.n : 1, 1);
    if (!job->parallel[kernel]) rx_ll_fail(e, "out of memory");
    for (uint32_t i = 0; i < all.n; i++) job->parallel[kernel][i] = all.at[i].parallel;
}
