/* door.c: the one function that librelax_llvm.so exports, and the compile call: kernels in, relocatable object out.
 *
 * Kernels are emitted in batches; after each batch the host is asked whether to stop. All batches end in one module,
 * which LLVM turns into one object. Ways out of compile(): the end; rx_ll_fail (our errors; LLVM objects are disposed
 * of); LLVM's fatal error handler (a last resort: what LLVM had allocated for this call is leaked, the process lives).
 * Only CPU names "x86-64" and "generic" and features of core/targets.def reach LLVM; the module is verified before any
 * pass. Process-wide state that LLVM forces on us: its target registry (initialised once) and its fatal error handler.
 */
#include "codegen/llvm/emit.h"

#include <llvm-c/Analysis.h>
#include <llvm-c/ErrorHandling.h>
#include <llvm-c/Linker.h>
#include <llvm-c/Target.h>
#include <llvm-c/Transforms/PassBuilder.h>
#include <llvm/Config/llvm-config.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#define BATCH 16

static _Thread_local rx_ll *active;          /* the compile call of this thread, for the fatal error handler */
static pthread_once_t targets_once = PTHREAD_ONCE_INIT;

/* ---- memory and failure ---- */
void rx_ll_fail(rx_ll *e, const char *fmt, ...)
{
    va_list va;
    va_start(va, fmt);
    vsnprintf(e->job->error, sizeof e->job->error, fmt, va);
    va_end(va);
    longjmp(e->fail, 1);
}

void *rx_ll_mem(rx_ll *e, size_t n)
{
    n = (n + 15) & ~(size_t)15;
    rx_ll_block *b = e->blocks;
    if (!b || b->n - b->used < n) {
        size_t size = n > 32768 ? n : 32768;
        rx_ll_block *fresh = calloc(1, sizeof *fresh + size + 16);
        if (!fresh) rx_ll_fail(e, "out of memory");
        fresh->n = size;
        fresh->next = b;
        e->blocks = b = fresh;
    }
    size_t pad = (16 - ((uintptr_t)b->at & 15)) & 15;
    void *p = b->at + pad + b->used;
    b->used += n;
    return p;
}

void *rx_ll_room(rx_ll *e, void *at, uint32_t n, uint32_t *cap, size_t size)
{
    if (n < *cap) return at;
    *cap = *cap ? *cap * 2 : 8;
    void *p = rx_ll_mem(e, *cap * size);
    if (n) memcpy(p, at, n * size);
    return p;
}

static void on_fatal(const char *reason)
{
    rx_ll *e = active;
    if (!e) return;
    snprintf(e->job->error, sizeof e->job->error, "LLVM: %.400s", reason);
    longjmp(e->fail, 2);
}

static void on_diagnostic(LLVMDiagnosticInfoRef d, void *arg)
{
    rx_ll *e = arg;
    if (LLVMGetDiagInfoSeverity(d) != LLVMDSError || e->job->error[0]) return;
    char *text = LLVMGetDiagInfoDescription(d);
    snprintf(e->job->error, sizeof e->job->error, "LLVM: %.400s", text);
    LLVMDisposeMessage(text);
}

/* ---- target ---- */
static void init_targets(void)
{
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86Target();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86AsmPrinter();
    LLVMInitializeAArch64TargetInfo();
    LLVMInitializeAArch64Target();
    LLVMInitializeAArch64TargetMC();
    LLVMInitializeAArch64AsmPrinter();
}

typedef struct feature { uint32_t bit; rx_arch arch; const char *text; } feature;
static const feature features[] = {
#define RX_LEVEL(name, arch, features)
#define RX_FEATURE(name, arch, bit, needs, llvm) {bit, RX_ARCH_##arch, llvm},
#include "core/targets.def"
};

bool rx_ll_has(const rx_ll *e, uint32_t f) { return (e->features & f) == f; }
const char *rx_ll_feature_text(rx_ll *e) { return e->feature_text; }

static void feature_text(rx_ll *e)
{
    size_t n = 0;
    for (uint32_t i = 0; i < RX_COUNT(features); i++) {
        if (features[i].arch != e->job->target->arch || !(e->features & features[i].bit)) continue;
        n += (size_t)snprintf(e->feature_text + n, sizeof e->feature_text - n, "%s%s", n ? "," : "", features[i].text);
        if (n >= sizeof e->feature_text) rx_ll_fail(e, "too many target features");
    }
}

static void make_target(rx_ll *e)
{
    LLVMCodeGenOptLevel levels[] = {LLVMCodeGenLevelNone, LLVMCodeGenLevelLess, LLVMCodeGenLevelDefault,
        LLVMCodeGenLevelAggressive};
    const char *triple = e->x86 ? "x86_64-unknown-linux-gnu" : "aarch64-unknown-linux-gnu";
    int32_t o = e->job->opt_level;
    char *text = NULL;
    LLVMTargetRef t;
    if (LLVMGetTargetFromTriple(triple, &t, &text)) {
        snprintf(e->job->error, sizeof e->job->error, "LLVM: %.400s", text);
        LLVMDisposeMessage(text);
        longjmp(e->fail, 1);
    }
    feature_text(e);
    e->tm = LLVMCreateTargetMachine(t, triple, e->x86 ? "x86-64" : "generic", e->feature_text,
                                    levels[o < 0   ? 0
                                           : o > 3 ? 3
                                                   : o],
                                    LLVMRelocPIC, LLVMCodeModelSmall);
    if (!e->tm) rx_ll_fail(e, "LLVM has no machine for the target");
}

/* ---- modules ---- */
static LLVMModuleRef new_module(rx_ll *e)
{
    LLVMModuleRef m = LLVMModuleCreateWithNameInContext("relax", e->c);
    LLVMTargetDataRef layout = LLVMCreateTargetDataLayout(e->tm);
    LLVMSetModuleDataLayout(m, layout);
    LLVMSetTarget(m, e->x86 ? "x86_64-unknown-linux-gnu" : "aarch64-unknown-linux-gnu");
    LLVMDisposeTargetData(layout);
    e->zeros = NULL;
    return m;
}

static void make_types(rx_ll *e)
{
    e->i1 = LLVMInt1TypeInContext(e->c);
    e->i8 = LLVMInt8TypeInContext(e->c);
    e->i16 = LLVMInt16TypeInContext(e->c);
    e->i32 = LLVMInt32TypeInContext(e->c);
    e->i64 = LLVMInt64TypeInContext(e->c);
    e->half = LLVMHalfTypeInContext(e->c);
    e->f32 = LLVMFloatTypeInContext(e->c);
    e->f64 = LLVMDoubleTypeInContext(e->c);
    e->ptr = LLVMPointerTypeInContext(e->c, 0);
    e->none = LLVMVoidTypeInContext(e->c);
    e->md_scope = LLVMGetMDKindIDInContext(e->c, "alias.scope", 11);
    e->md_noalias = LLVMGetMDKindIDInContext(e->c, "noalias", 7);
    e->md_invariant = LLVMGetMDKindIDInContext(e->c, "invariant.load", 14);
}

static const char *const pipelines[] = {
    "function(sroa,early-cse)",
    ("function(sroa,early-cse<memssa>,instcombine<no-verify-fixpoint>,simplifycfg,loop-mssa(licm),gvn,"
     "instcombine<no-verify-fixpoint>,simplifycfg,dse,adce)"),
    "default<O2>",
    "default<O3>",
};

static void optimise(rx_ll *e)
{
    char *text = NULL;
    if (LLVMVerifyModule(e->m, LLVMReturnStatusAction, &text)) {
        snprintf(e->job->error, sizeof e->job->error, "the emitted code is not valid: %.400s", text);
        LLVMDisposeMessage(text);
        longjmp(e->fail, 1);
    }
    LLVMDisposeMessage(text);
    int32_t o = e->job->opt_level;
    LLVMPassBuilderOptionsRef options = LLVMCreatePassBuilderOptions();
    LLVMPassBuilderOptionsSetLoopVectorization(options, 0);
    LLVMPassBuilderOptionsSetSLPVectorization(options, 0);
    LLVMErrorRef err = LLVMRunPasses(e->m, pipelines[o < 0 ? 0 : o > 3 ? 3 : o], e->tm, options);
    LLVMDisposePassBuilderOptions(options);
    if (err) {
        text = LLVMGetErrorMessage(err);
        snprintf(e->job->error, sizeof e->job->error, "LLVM: %.400s", text);
        LLVMDisposeErrorMessage(text);
        longjmp(e->fail, 1);
    }
}

static void emit_object(rx_ll *e, LLVMModuleRef all)
{
    LLVMMemoryBufferRef buf = NULL;
    char *text = NULL;
    if (LLVMTargetMachineEmitToMemoryBuffer(e->tm, all, LLVMObjectFile, &text, &buf)) {
        snprintf(e->job->error, sizeof e->job->error, "LLVM: %.400s", text);
        LLVMDisposeMessage(text);
        longjmp(e->fail, 1);
    }
    size_t n = LLVMGetBufferSize(buf);
    e->job->object = malloc(n ? n : 1);
    if (e->job->object) memcpy(e->job->object, LLVMGetBufferStart(buf), n);
    e->job->object_size = n;
    LLVMDisposeMemoryBuffer(buf);
    if (!e->job->object) rx_ll_fail(e, "out of memory");
    if (e->job->error[0]) longjmp(e->fail, 1);
}

/* ---- compile ---- */
static void run(rx_ll *e, LLVMModuleRef *all)
{
    rx_llvm_job *job = e->job;
    pthread_once(&targets_once, init_targets);
    LLVMInstallFatalErrorHandler(on_fatal);
    make_types(e);
    make_target(e);
    e->b = LLVMCreateBuilderInContext(e->c);
    *all = new_module(e);
    for (uint32_t i = 0; i < job->nkernels; i++) {
        if (!e->m) e->m = new_module(e);
        rx_ll_kernel(e, i);
        if ((i + 1) % BATCH && i + 1 < job->nkernels) continue;
        optimise(e);
        LLVMModuleRef m = e->m;
        e->m = NULL;                         /* linking takes it */
        if (LLVMLinkModules2(*all, m)) longjmp(e->fail, 1);
        if (job->progress) job->progress(job->user, i + 1);
        if (job->cancelled && job->cancelled(job->user)) rx_ll_fail(e, "cancelled");
    }
    emit_object(e, *all);
}

static void release(rx_llvm_job *job)
{
    for (uint32_t i = 0; job->parallel && i < job->nkernels; i++) free(job->parallel[i]);
    free(job->parallel);
    free(job->nphases);
    free(job->object);
    job->parallel = NULL;
    job->nphases = NULL;
    job->object = NULL;
    job->object_size = 0;
}

static void free_blocks(rx_ll *e)
{
    for (rx_ll_block *b = e->blocks, *next; b; b = next) {
        next = b->next;
        free(b);
    }
}

static int32_t compile(rx_llvm_job *job)
{
    job->object = NULL;
    job->object_size = 0;
    job->error[0] = 0;
    job->nphases = calloc(job->nkernels + 1u, sizeof *job->nphases);
    job->parallel = calloc(job->nkernels + 1u, sizeof *job->parallel);
    rx_ll *e = calloc(1, sizeof *e);
    LLVMModuleRef *all = calloc(1, sizeof *all);
    int how = 0;
    if (!e || !all || !job->nphases || !job->parallel) {
        snprintf(job->error, sizeof job->error, "out of memory");
        how = 1;
    } else {
        e->job = job;
        e->features = job->target->features;
        e->x86 = job->target->arch == RX_ARCH_X86_64;
        e->generation = 1;
        e->c = LLVMContextCreate();
        LLVMContextSetDiagnosticHandler(e->c, on_diagnostic, e);
        active = e;
        how = setjmp(e->fail);
        if (how == 0) run(e, all);
        active = NULL;
        if (how != 2) {                      /* after a fatal error LLVM's own state is not to be touched */
            if (e->b) LLVMDisposeBuilder(e->b);
            if (e->m) LLVMDisposeModule(e->m);
            if (*all) LLVMDisposeModule(*all);
            if (e->tm) LLVMDisposeTargetMachine(e->tm);
            LLVMContextDispose(e->c);
        }
        free_blocks(e);
    }
    free(e);
    free(all);
    if (how) {
        release(job);
        if (!job->error[0]) snprintf(job->error, sizeof job->error, "code generation failed");
    }
    return how;
}

static const rx_llvm_api api = {RX_LLVM_ABI, LLVM_VERSION_MAJOR, compile, release};

__attribute__((visibility("default"))) const rx_llvm_api *rx_llvm_query(uint32_t abi)
{
    return abi == RX_LLVM_ABI ? &api : NULL;
}
