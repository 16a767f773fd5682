/* vm.c: making, ending and asking a VM. Everything that a call needs is found here once: host functions by name, arrays
 * for the longest operand list, threads. */
#include "rt/rt_int.h"

static void *zeros(rx_memfn m, size_t n, size_t size)
{
    size_t bytes;
    if (!rx_size_mul(n ? n : 1, size, &bytes) || bytes > PTRDIFF_MAX)
        return NULL;
    void *p = m.fn(m.self, NULL, 0, bytes, _Alignof(max_align_t));
    if (p)
        memset(p, 0, bytes);
    return p;
}

static void give(rx_memfn m, void *p, size_t n, size_t size)
{
    if (p)
        m.fn(m.self, p, (n ? n : 1) * size, 0, _Alignof(max_align_t));
}

static relax_status find_libs(relax_vm *vm)
{
    const rx_pkg *p = vm->p;
    for (uint32_t i = 0; i < p->n_libs; i++) {
        const char *name = rx_pkg_str(p, p->libs[i].name);
        if (!rx_lib_find(vm->ctx, name, p->libs[i].kind, &vm->libs[i]))
            return rx_error(vm->ctx, RXE_NO_LIBRARY, NULL, "register it before making the VM",
                            "the executable calls the %s %s, which is not registered",
                            p->libs[i].kind == RX_LIB_DPS ? "library function" : "packed function", name);
        vm->libs[i].name = name;
        if (strncmp(name, "rx.", 3) == 0)
            vm->libs[i].user = vm;
    }
    return RELAX_OK;
}

static bool arrays(relax_vm *vm)
{
    size_t n = rx_vm_list(vm);
    vm->libs = zeros(vm->mem, vm->p->n_libs, sizeof *vm->libs);
    vm->weights = zeros(vm->mem, vm->p->n_weights, sizeof *vm->weights);
    vm->bufs = zeros(vm->mem, n, sizeof *vm->bufs);
    vm->syms = zeros(vm->mem, n, sizeof *vm->syms);
    vm->dl = zeros(vm->mem, n, sizeof *vm->dl);
    vm->dlp = zeros(vm->mem, n, sizeof *vm->dlp);
    vm->dl_dims = zeros(vm->mem, n * RX_PKG_MAX_NDIM, sizeof *vm->dl_dims);
    vm->anys = zeros(vm->mem, n, sizeof *vm->anys);
    return vm->libs && vm->weights && vm->bufs && vm->syms && vm->dl && vm->dlp && vm->dl_dims && vm->anys;
}

relax_status rx_vm_create(relax_context *ctx, relax_executable *e, const rx_vm_options *o, relax_vm **out)
{
    static const rx_vm_options defaults = {0};
    o = o ? o : &defaults;
    rx_memfn m = rx_memfn_of(ctx);
    *out = NULL;
    relax_vm *vm = zeros(m, 1, sizeof *vm);
    if (!vm)
        return rx_error(ctx, RXE_OOM, NULL, NULL, "out of memory");
    vm->ctx = ctx;
    vm->exe = rx_exe_retain(e);
    vm->p = &e->pkg;
    vm->mem = m;
    vm->huge_pages = o->huge_pages;
    relax_status s = arrays(vm) ? find_libs(vm) : rx_error(ctx, RXE_OOM, NULL, NULL, "out of memory");
    if (!s)
        s = rx_pool_create(ctx, o->threads, o->parallel ? o->parallel : ctx->parallel,
                           o->parallel ? o->parallel_user : ctx->parallel_user, &vm->pool);
    if (s) {
        rx_vm_destroy(vm);
        return s;
    }
    vm->threads = rx_pool_threads(vm->pool);
    *out = vm;
    return RELAX_OK;
}

void rx_vm_destroy(relax_vm *vm)
{
    if (!vm)
        return;
    rx_memfn m = vm->mem;
    size_t n = rx_vm_list(vm);
    rx_pool_destroy(vm->pool);
    for (uint32_t i = 0; vm->weights && i < vm->p->n_weights; i++)
        if (vm->weights[i])
            rx_release(&vm->weights[i]->h);
    rx_vm_pool_free(vm);
    rx_vm_arena_free(vm);
    give(m, vm->libs, vm->p->n_libs, sizeof *vm->libs);
    give(m, vm->weights, vm->p->n_weights, sizeof *vm->weights);
    give(m, vm->bufs, n, sizeof *vm->bufs);
    give(m, vm->syms, n, sizeof *vm->syms);
    give(m, vm->dl, n, sizeof *vm->dl);
    give(m, vm->dlp, n, sizeof *vm->dlp);
    give(m, vm->dl_dims, n * RX_PKG_MAX_NDIM, sizeof *vm->dl_dims);
    give(m, vm->anys, n, sizeof *vm->anys);
    give(m, vm->regs, vm->cap_regs, sizeof *vm->regs);
    give(m, vm->slots, vm->cap_slots, sizeof *vm->slots);
    give(m, vm->frames, vm->cap_frames, sizeof *vm->frames);
    give(m, vm->profile, rx_vm_profile_rows(vm), sizeof *vm->profile);
    rx_exe_release(vm->exe);
    give(m, vm, 1, sizeof *vm);
}

relax_status rx_vm_bind(relax_vm *vm, const char *name, rx_tensor *t)
{
    for (uint32_t i = 0; i < vm->p->n_weights; i++)
        if (strcmp(rx_pkg_str(vm->p, vm->p->weights[i].name), name) == 0) {
            if (t)
                rx_retain(&t->h);
            if (vm->weights[i])
                rx_release(&vm->weights[i]->h);
            vm->weights[i] = t;
            return RELAX_OK;
        }
    return rx_error(vm->ctx, RXE_NOT_FOUND, NULL, NULL, "the executable has no weight %s", name);
}

int32_t rx_vm_function(const relax_vm *vm, const char *name)
{
    int32_t i = rx_pkg_find_fn(vm->p, name, strlen(name));
    return i >= 0 && (vm->p->fns[i].flags & RX_FN_PRIVATE) ? -1 : i;
}

relax_status rx_vm_new_tensor(relax_vm *vm, relax_dtype t, const int64_t *dims, int32_t ndim, rx_tensor **out)
{
    int64_t bytes;
    *out = NULL;
    if (t <= RELAX_DTYPE_UNKNOWN || t >= RELAX_DTYPE_COUNT || ndim < 0 || ndim > RX_PKG_MAX_NDIM ||
        !rx_tensor_bytes(t, dims, ndim, &bytes))
        return rx_error(vm->ctx, RXE_BAD_VALUE, NULL, NULL,
                        "a tensor has an unknown data type, too many dims or too many elements");
    rx_tensor *x = rx_vm_tensor(vm, bytes ? (size_t)bytes : 1);
    if (!x)
        return rx_error(vm->ctx, RXE_OOM, NULL, NULL, "out of memory");
    x->dtype = t;
    x->ndim = ndim;
    x->bytes = bytes;
    if (ndim)
        memcpy(x->dims, dims, (size_t)ndim * sizeof *dims);
    *out = x;
    return RELAX_OK;
}

rx_memfn rx_vm_mem(const relax_vm *vm) { return vm->mem; }
relax_context *rx_vm_context(const relax_vm *vm) { return vm->ctx; }

const relax_executable *rx_vm_executable(const relax_vm *vm) { return vm->exe; }

rx_vm_memory rx_vm_get_memory(const relax_vm *vm)
{
    rx_vm_memory m = {.arena_peak = vm->arena_peak};
    for (uint32_t i = 0; i < vm->nchunks; i++)
        m.arena += vm->chunks[i].size;
    for (size_t i = 0; i < vm->npooled; i++)
        if (vm->pooled[i].o->kind == RELAX_ANY_TENSOR)
            m.pool += ((const rx_tensor *)vm->pooled[i].o)->capacity;
    m.stacks =
        vm->cap_regs * sizeof *vm->regs + vm->cap_slots * sizeof *vm->slots + vm->cap_frames * sizeof *vm->frames;
    return m;
}

/* --- profile --- */
uint32_t rx_vm_profile_rows(const relax_vm *vm) { return vm->p->n_kernels + vm->p->n_libs; }

relax_status rx_vm_profile(relax_vm *vm, bool on)
{
    uint32_t n = rx_vm_profile_rows(vm);
    vm->profiling = false;
    if (!on)
        return RELAX_OK;
    if (!vm->profile)
        vm->profile = zeros(vm->mem, n, sizeof *vm->profile);
    if (!vm->profile)
        return rx_error(vm->ctx, RXE_OOM, NULL, NULL, "out of memory");
    for (uint32_t i = 0; i < n; i++) {
        bool is_kernel = i < vm->p->n_kernels;
        int32_t name = is_kernel ? vm->p->kernels[i].name : vm->p->libs[i - vm->p->n_kernels].name;
        vm->profile[i] = (rx_profile_row){.name = rx_pkg_str(vm->p, name),
                                          .origin = is_kernel ? rx_pkg_str(vm->p, vm->p->kernels[i].origin) : ""};
    }
    vm->profiling = true;
    return RELAX_OK;
}

rx_profile_row rx_vm_profile_row(const relax_vm *vm, uint32_t i)
{
    static const rx_profile_row none = {.name = "", .origin = ""};
    return vm->profile ? vm->profile[i] : none;
}
