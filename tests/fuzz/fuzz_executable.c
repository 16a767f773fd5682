/* fuzz_executable.c: any bytes as an executable. Checksums are made right first, so that damage reaches the verifier.
 * What it accepts is printed, and its functions run on small arguments with kernels that do nothing: verified bytecode
 * must be safe without native code. Bytes after the file are arguments. Memory, calls and time are bounded as a host
 * would bound them. */
#include <stdlib.h>

#include "rt/rt.h"

enum { MEMORY = 256 << 20, CANCEL_AFTER = 300, RUN_LIMIT = 64 << 20 };

static void *bounded(void *self, void *p, size_t old_n, size_t n, size_t align)
{
    size_t *left = self;
    if (n > old_n && n - old_n > *left)
        return NULL;
    void *q = NULL;
    if (n) {
        q = aligned_alloc(align < 16 ? 16 : align, (n + 63) & ~(size_t)63);
        if (!q)
            return NULL;
        if (p)
            memcpy(q, p, old_n < n ? old_n : n);
    }
    free(p);
    *left = *left + old_n - n;
    return q;
}

static int32_t count_down(void *user)
{
    return --*(int *)user < 0;
}

static void nothing(const rx_kernel_args *a) { (void)a; }
static const rx_kernel_fn kernels[4096] = {[0 ... 4095] = nothing};

static void run(relax_vm *vm, const relax_executable *e, const uint8_t *tail, size_t n)
{
    static float data[4096];
    int64_t dims[4] = {2, 4, 3, 1};
    for (size_t i = 0; i < 4 && i < n; i++)
        dims[i] = tail[i] % 8;
    for (int32_t f = 0; f < (int32_t)e->pkg.n_fns && f < 16; f++) {
        relax_any args[16], result;
        DLTensor d[16];
        int32_t nargs = 0;
        for (int32_t i = 0; i < e->pkg.fns[f].nparams && nargs < 16; i++) {
            uint8_t how = n ? tail[(size_t)(f * 16 + i) % n] : 0;
            d[nargs] = (DLTensor){.data = data,
                                  .device = {kDLCPU, 0},
                                  .ndim = how % 5,
                                  .dtype = rx_dtype_to_dl(1 + how / 8 % 15),
                                  .shape = dims};
            args[nargs] = how & 4 ? (relax_any){.kind = RELAX_ANY_INT, .u.i = how / 8 - 4}
                                  : (relax_any){.kind = RELAX_ANY_DLTENSOR, .u.dl = &d[nargs]};
            nargs += e->pkg.params[e->pkg.fns[f].param0 + i].weight < 0;
        }
        rx_vm_call(vm, f, args, nargs, NULL, 0, &result);
        rx_any_release(&result);
        rx_diag_clear(rx_vm_context(vm));
    }
}

static void run_all(relax_context *ctx, relax_executable *e, const uint8_t *tail, size_t n)
{
    relax_vm *vm;
    const rx_vm_options o = {.threads = 1};
    rx_tensor *w;
    int checks = CANCEL_AFTER;
    ctx->cancel = count_down;
    ctx->cancel_user = &checks;
    e->entries = e->pkg.n_phases <= 4096 ? kernels : NULL;
    if (rx_vm_create(ctx, e, &o, &vm) == RELAX_OK) {
        if (rx_tensor_new(ctx, RELAX_F32, (int64_t[]){4, 8}, 2, &w) == RELAX_OK) {
            for (uint32_t i = 0; i < e->pkg.n_weights; i++)
                rx_vm_bind(vm, rx_pkg_str(&e->pkg, e->pkg.weights[i].name), w);
            rx_release(&w->h);
        }
        run(vm, e, tail, n);
        rx_vm_destroy(vm);
    }
    e->entries = NULL;
}

static void look(relax_context *ctx, const rx_pkg *p)
{
    rx_frame f;
    if (RX_ENTER(&ctx->heap, &f)) {
        rx_buf b;
        rx_buf_init(&b, rx_scratch(&ctx->heap));
        rx_pkg_print(&b, p, true);
        rx_leave(&ctx->heap, &f);
    }
}

/* Half of the changes put a small number into a word of a section, which the verifier has to think about. */
size_t LLVMFuzzerMutate(uint8_t *data, size_t n, size_t max);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t n, size_t max, unsigned seed);

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t n, size_t max, unsigned seed)
{
    uint64_t h = rx_mix(1, seed);
    rx_pkg_header head;
    rx_pkg_section s;
    if (n < sizeof head + sizeof s || h % 2)
        return LLVMFuzzerMutate(data, n, max);
    memcpy(&head, data, sizeof head);
    for (unsigned i = 0; i < 1 + h / 2 % 4; i++) {
        h = rx_mix(h, i);
        size_t at = sizeof head + (head.nsections ? h % head.nsections : 0) * sizeof s;
        if (at + sizeof s > n)
            break;
        memcpy(&s, data + at, sizeof s);
        if (s.size < 4 || s.offset > n || s.size > n - s.offset)
            continue;
        int32_t v = (int32_t)(h >> 40) % 12 - 3;
        memcpy(data + s.offset + (h >> 20) % (s.size / 4) * 4, &v, sizeof v);
    }
    return n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    size_t left = MEMORY, whole = (n + 63) & ~(size_t)63, size = n;
    relax_context *ctx;
    relax_executable *e;
    if (n < sizeof(rx_pkg_header) || n > RUN_LIMIT || rx_context_create(bounded, &left, &ctx) != RELAX_OK)
        return 0;
    uint8_t *copy = aligned_alloc(64, whole);
    memcpy(copy, data, n);
    uint64_t said;
    memcpy(&said, copy + offsetof(rx_pkg_header, file_size), sizeof said);
    if (said >= sizeof(rx_pkg_header) && said < n)
        size = (size_t)said;
    rx_pkg_seal(copy, size);
    if (rx_exe_open(ctx, copy, size, RX_EXE_BORROW, &e) == RELAX_OK) {
        look(ctx, &e->pkg);
        run_all(ctx, e, data + size, n - size);
        rx_exe_release(e);
    }
    rx_context_destroy(ctx);
    if (left != MEMORY)
        __builtin_trap();              /* a leak */
    free(copy);
    return 0;
}
