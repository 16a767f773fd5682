/* backend.c: the table of backends, and the CPU backend's way through librelax_llvm.so.
 *
 * LLVM costs 50 ms and 50 MB when it is loaded, so the private shared object that holds all use of it is opened by the
 * first CPU build of a context, from the folder of this library. The handle goes with the context; the code stays
 * loaded (-z nodelete), because LLVM keeps process-wide state.
 *
 * LLVM recurses over the code that it compiles, so it runs on a thread of its own with a stack that suffices, whatever
 * the host's thread has. The host's thread waits meanwhile and makes the host's calls (progress, cancel), so that the
 * host sees them on the thread that called us. One word, `turn`, says whose turn it is; only one side ever waits. */
#include "codegen/codegen.h"
#include "codegen/llvm/llvm.h"

#include <stdatomic.h>

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
enum { LLVM_STACK = 8 << 20 };
enum { TURN_LLVM, TURN_HOST, TURN_ENDED };

typedef struct llvm_run {
    rx_llvm_job job;
    const rx_llvm_api *api;
    relax_context *ctx;
    rx_thread thread;
    _Atomic uint32_t turn;
    uint32_t done;                     /* kernels emitted, for the host */
    bool stop;                         /* the host's answer */
    int32_t result;
} llvm_run;

static void drop_job(void *p)
{
    llvm_run *r = p;
    r->api->release(&r->job);
}

static void give_turn(llvm_run *r, uint32_t turn)
{
    atomic_store(&r->turn, turn);
    rx_futex_wake(&r->turn, 1);
}

/* on LLVM's thread: the host is told and asked in one visit */
static void visit_host(void *user, uint32_t done)
{
    llvm_run *r = user;
    r->done = done;
    give_turn(r, TURN_HOST);
    while (atomic_load(&r->turn) == TURN_HOST) rx_futex_wait(&r->turn, TURN_HOST);
}

static int32_t host_stops(void *user) { return ((const llvm_run *)user)->stop; }

static void llvm_thread(void *arg)
{
    llvm_run *r = arg;
    r->result = r->api->compile(&r->job);
    give_turn(r, TURN_ENDED);
}

/* the host's thread; nothing unwinds here, the thread must be joined */
static void serve_llvm(llvm_run *r)
{
    relax_context *ctx = r->ctx;
    for (uint32_t turn; (turn = atomic_load(&r->turn)) != TURN_ENDED;) {
        if (turn == TURN_LLVM) {
            rx_futex_wait(&r->turn, TURN_LLVM);
            continue;
        }
        if (ctx->progress) ctx->progress(ctx->progress_user, "codegen", r->done, 0);
        r->stop = rx_cancelled(ctx);
        give_turn(r, TURN_LLVM);
    }
    rx_thread_join(&r->thread);
}

static void run_llvm(llvm_run *r)
{
    char why[128];
    int err = rx_thread_start_sized(&r->thread, LLVM_STACK, llvm_thread, r);
    if (err)
        rx_fail_hint(r->ctx, RXE_LIMIT, NULL, "the process may start no more threads or has no memory for one",
                     "the thread of the code generator cannot be started: %s", rx_os_error(err, why, sizeof why));
    serve_llvm(r);
    if (r->result == 0) return;
    if (r->stop) rx_fail(r->ctx, RXE_CANCELLED, NULL, "code generation was cancelled");
    bool theirs = strncmp(r->job.error, "LLVM", 4) == 0;
    rx_fail(r->ctx, theirs ? RXE_LLVM : RXE_CODEGEN, NULL, "%s", r->job.error);
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
    r->ctx = ctx;
    r->job = (rx_llvm_job){.struct_size = sizeof r->job, .abi = RX_LLVM_ABI, .target = t, .kernels = k, .nkernels = n,
        .opt_level = o->opt_level, .cancelled = host_stops, .user = r, .progress = visit_host};
    rx_defer(&ctx->heap, drop_job, r);
    run_llvm(r);
    out->llvm_version = api->llvm_version;
    take_layout(a, &r->job, out);
    if (out->nentries) link_object(ctx, a, &r->job, out);
}
