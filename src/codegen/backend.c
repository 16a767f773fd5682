/* backend.c: the table of backends, and the CPU backend's way through librelax_llvm.so.
 *
 * LLVM costs 50 ms and 50 MB when it is loaded, so the private shared object that holds all use of it is opened by the
 * first CPU build of a context, from the folder of this library. The handle goes with the context; the code stays
 * loaded
 * (-z nodelete), because LLVM keeps process-wide state. */
#include "codegen/codegen.h"
#include "codegen/llvm/llvm.h"

const rx_backend rx_backends[] = {
#define BACKEND(name, kind, fn, doc) {#name, RX_TARGET_##kind, doc, fn},
#include "codegen/backends.def"
#undef BACKEND
};
const uint32_t rx_n_backends = RX_COUNT(rx_backends);

const rx_backend *rx_backend_of(const relax_target *t)
{
    for (uint32_t i = 0; i < rx_n_backends; i++)
        if (rx_backends[i].kind == t->kind) return &rx_backends[i];
    return NULL;
}

void rx_codegen(relax_context *ctx, rx_arena *a, const relax_target *t, const rx_prim *const *prims, uint32_t n,
    const rx_codegen_options *o, rx_code *out)
{
    rx_codegen_options plain = RX_CODEGEN_OPTIONS_INIT;
    const rx_backend *b = rx_backend_of(t);
    if (!b) rx_fail(ctx, RXE_CODEGEN, NULL, "no backend makes code for target '%s'", t->name);
    b->compile(ctx, a, t, prims, n, o ? o : &plain, out);
}

/* ---- the shared object of LLVM ---- */
struct rx_llvm_lib { void *dl; const rx_llvm_api *api; };

static void close_llvm(relax_context *ctx)
{
    if (ctx->llvm) rx_dl_close(ctx->llvm->dl);
    ctx->llvm = NULL;
}

static const char *const hint =
    "librelax_llvm.so stands beside librelax.so and needs libLLVM (19 to 22); build it with 'make all'";

static const rx_llvm_api *open_llvm(relax_context *ctx)
{
    char dir[4096], err[512] = "";
    if (ctx->llvm) return ctx->llvm->api;
    if (!rx_dl_self_dir(dir, sizeof dir))
        rx_fail_hint(ctx, RXE_NO_BACKEND, NULL, hint, "the folder of librelax is not known");
    struct rx_llvm_lib *lib = RX_NEW(&ctx->arena, struct rx_llvm_lib);
    void *dl = rx_dl_open(rx_strf(ctx, "%s/librelax_llvm.so", dir), err, sizeof err);
    if (!dl) dl = rx_dl_open(rx_strf(ctx, "%s/../lib/librelax_llvm.so", dir), err, sizeof err);
    if (!dl) rx_fail_hint(ctx, RXE_NO_BACKEND, NULL, hint, "the code generator cannot be loaded: %s", err);
    rx_llvm_query_fn query = NULL;
    void *sym = rx_dl_sym(dl, "rx_llvm_query");
    memcpy(&query, &sym, sizeof query);
    const rx_llvm_api *api = query ? query(RX_LLVM_ABI) : NULL;
    if (!api || ctx->n_at_destroy == RX_COUNT(ctx->at_destroy)) {
        rx_dl_close(dl);
        rx_fail_hint(ctx, RXE_NO_BACKEND, NULL, hint, "librelax_llvm.so belongs to another version of librelax");
    }
    lib->dl = dl;
    lib->api = api;
    ctx->llvm = lib;
    ctx->at_destroy[ctx->n_at_destroy++] = close_llvm;
    return api;
}

/* ---- CPU ---- */
static int32_t host_cancels(void *user) { return rx_cancelled(user); }

typedef struct llvm_run { rx_llvm_job job; const rx_llvm_api *api; relax_context *ctx; } llvm_run;

static void drop_job(void *p)
{
    llvm_run *r = p;
    r->api->release(&r->job);
}

/* no unwinding through LLVM's frames: the host's callback is called plainly, cancelling is asked for apart */
static void tell_progress(void *user, uint32_t done)
{
    relax_context *ctx = user;
    if (ctx->progress) ctx->progress(ctx->progress_user, "codegen", done, 0);
}

static void take_layout(rx_arena *a, const rx_llvm_job *job, rx_code *out)
{
    out->kernels = RX_NEWN(a, rx_kernel_code, job->nkernels);
    for (uint32_t i = 0; i < job->nkernels; i++) {
        uint32_t n = job->nphases[i];
        out->kernels[i] = (rx_kernel_code){out->nentries, n, rx_arena_dup(a, job->parallel[i], n)};
        out->nentries += n;
    }
}

static void link_object(relax_context *ctx, rx_arena *a, const rx_llvm_job *job, rx_code *out)
{
    const char **names = RX_NEWN(a, const char *, out->nentries + 1u);
    uint32_t n = 0;
    for (uint32_t i = 0; i < job->nkernels; i++)
        for (uint32_t p = 0; p < job->nphases[i]; p++) {
            rx_buf b;
            rx_buf_init(&b, a);
            rx_putf(&b, "rxk_%u_%u", i, p);
            names[n++] = b.at;
        }
    rx_elf_link(ctx, a, job->object, job->object_size, names, n, &out->so, &out->so_size);
}

void rx_codegen_cpu(relax_context *ctx, rx_arena *a, const relax_target *t, const rx_prim *const *prims, uint32_t n,
    const rx_codegen_options *o, rx_code *out)
{
    *out = (rx_code){.kernels = NULL};
    if (n == 0) return;
    const rx_llvm_api *api = open_llvm(ctx);
    rx_llvm_kernel *k = RX_NEWN(a, rx_llvm_kernel, n);
    for (uint32_t i = 0; i < n; i++) {
        rx_exvec syms = {0};
        rx_prim_symbols(ctx, a, prims[i], &syms);
        k[i] = (rx_llvm_kernel){prims[i], syms.at, syms.n};
    }
    llvm_run *r = RX_NEW(a, llvm_run);
    r->api = api;
    r->job = (rx_llvm_job){.struct_size = sizeof r->job, .abi = RX_LLVM_ABI, .target = t, .kernels = k, .nkernels = n,
        .opt_level = o->opt_level, .cancelled = host_cancels, .user = ctx, .progress = tell_progress};
    rx_defer(&ctx->heap, drop_job, r);
    if (api->compile(&r->job) != 0) {
        if (rx_cancelled(ctx)) rx_fail(ctx, RXE_CANCELLED, NULL, "code generation was cancelled");
        bool theirs = strncmp(r->job.error, "LLVM", 4) == 0;
        rx_fail(ctx, theirs ? RXE_LLVM : RXE_CODEGEN, NULL, "%s", r->job.error);
    }
    out->llvm_version = api->llvm_version;
    take_layout(a, &r->job, out);
    if (out->nentries) link_object(ctx, a, &r->job, out);
}
