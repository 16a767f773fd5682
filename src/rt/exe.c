/* exe.c: an executable in memory. Opening verifies bytes and touches no native code; activating maps it. Immutable
 * afterwards and shared by reference count. Bytes are copied (unless the host says that they stay as they are): a file
 * that changes under a map would undo what the verifier found. */
#include "rt/rt_int.h"

static relax_status open_bytes(relax_context *ctx, const void *bytes, size_t size, uint32_t flags, relax_executable *e)
{
    e->size = size;
    e->owned = !(flags & RX_EXE_BORROW);
    if (!e->owned) {
        e->bytes = (uint8_t *)(uintptr_t)bytes;
        return rx_pkg_open(ctx, e->bytes, size, &e->pkg);
    }
    e->bytes = e->mem.fn(e->mem.self, NULL, 0, size ? size : 1, RX_PKG_ALIGN);
    if (!e->bytes)
        return rx_error(ctx, RXE_OOM, NULL, NULL, "out of memory");
    if (size)
        memcpy(e->bytes, bytes, size);
    return rx_pkg_open(ctx, e->bytes, size, &e->pkg);
}

relax_status rx_exe_open(relax_context *ctx, const void *bytes, size_t size, uint32_t flags, relax_executable **out)
{
    rx_memfn m = rx_memfn_of(ctx);
    *out = NULL;
    relax_executable *e = m.fn(m.self, NULL, 0, sizeof *e, _Alignof(max_align_t));
    if (!e)
        return rx_error(ctx, RXE_OOM, NULL, NULL, "out of memory");
    memset(e, 0, sizeof *e);
    atomic_init(&e->refs, 1);
    e->mem = m;
    relax_status s = open_bytes(ctx, bytes, size, flags, e);
    if (s)
        rx_exe_release(e);
    else
        *out = e;
    return s;
}

relax_status rx_exe_open_file(relax_context *ctx, const char *path, relax_executable **out)
{
    rx_file f;
    char why[128];
    *out = NULL;
    int err = rx_file_map(path, &f);
    if (err)
        return rx_error(ctx, RXE_FILE_IO, NULL, NULL, "%s: %s", path, rx_os_error(err, why, sizeof why));
    relax_status s = rx_exe_open(ctx, f.at, f.size, RX_EXE_COPY, out);
    rx_file_unmap(&f);
    return s;
}

relax_executable *rx_exe_retain(relax_executable *e)
{
    atomic_fetch_add_explicit(&e->refs, 1, memory_order_relaxed);
    return e;
}

void rx_exe_release(relax_executable *e)
{
    if (!e || atomic_fetch_sub_explicit(&e->refs, 1, memory_order_acq_rel) != 1)
        return;
    if (e->dl)
        rx_dl_close(e->dl);
    rx_memfn m = e->mem;
    if (e->owned && e->bytes)
        m.fn(m.self, e->bytes, e->size ? e->size : 1, 0, RX_PKG_ALIGN);
    m.fn(m.self, e, sizeof *e, 0, _Alignof(max_align_t));
}

relax_status rx_exe_save(relax_context *ctx, const relax_executable *e, const char *path)
{
    char why[128];
    int err = rx_file_write(path, e->bytes, e->size);
    return err ? rx_error(ctx, RXE_FILE_IO, NULL, NULL, "%s: %s", path, rx_os_error(err, why, sizeof why)) : RELAX_OK;
}

/* the code for this machine's architecture with the most features that it has */
static const rx_pkg_native *choose(const rx_pkg *p)
{
    const rx_pkg_native *best = NULL;
    uint32_t have = rx_host_features();
    for (uint32_t i = 0; i < p->n_natives; i++) {
        const rx_pkg_native *n = &p->natives[i];
        if (n->arch != (uint32_t)rx_host_arch() || (n->features & ~have))
            continue;
        if (!best || __builtin_popcount(n->features) > __builtin_popcount(best->features))
            best = n;
    }
    return best;
}

static relax_status map_code(relax_context *ctx, relax_executable *e, const void *code, size_t size)
{
    char why[256] = "";
    int fd = rx_mem_fd("relax-kernels", code, size);
    if (fd < 0)
        return rx_error(ctx, RXE_FILE_IO, NULL, NULL, "native code cannot be mapped: %s",
                        rx_os_error(-fd, why, sizeof why));
    void *dl = rx_dl_open_fd(fd, why, sizeof why);
    rx_fd_close(fd);
    const rx_kernel_fn *entries = dl ? rx_dl_sym(dl, "rx_entries") : NULL;
    if (!entries) {
        if (dl)
            rx_dl_close(dl);
        return rx_error(ctx, RXE_FILE_CORRUPT, NULL, NULL, "native code cannot be opened: %s",
                        dl ? "it has no table of entries" : why);
    }
    e->dl = dl;
    e->entries = entries;
    e->nentries = e->pkg.n_phases;
    return RELAX_OK;
}

relax_status rx_exe_activate(relax_context *ctx, relax_executable *e, const rx_exe_policy *policy)
{
    const rx_pkg *p = &e->pkg;
    if (e->dl || p->n_kernels == 0)
        return RELAX_OK;
    if (policy && policy->data_only)
        return rx_error(ctx, RXE_STATE, NULL, NULL, "the executable holds native code, which the host does not allow");
    const rx_pkg_native *n = choose(p);
    if (!n)
        return rx_error(ctx, RXE_TARGET, NULL, "build it for this machine's features",
                        "the executable has code for %s only, which this machine cannot run",
                        p->n_natives ? rx_pkg_str(p, p->natives[0].target) : "no processor");
    const uint8_t *code = p->native + n->offset;
    if (policy && policy->verify && policy->verify(policy->user, code, (size_t)n->size) != 0)
        return rx_error(ctx, RXE_STATE, NULL, NULL, "the host refused the native code of the executable");
    relax_status s = map_code(ctx, e, code, (size_t)n->size);
    if (!s)
        e->native = n;
    return s;
}

relax_status rx_exe_peak(relax_context *ctx, const relax_executable *e, const char *fn, const char *const *names,
                         const int64_t *values, uint32_t n, int64_t *bytes)
{
    const rx_pkg *p = &e->pkg;
    int32_t fi = rx_pkg_find_fn(p, fn, strlen(fn));
    if (fi < 0)
        return rx_error(ctx, RXE_NOT_FOUND, NULL, NULL, "the executable has no function %s", fn);
    const rx_pkg_fn *f = &p->fns[fi];
    size_t size = (size_t)f->nsyms * sizeof(int64_t);
    int64_t *syms = rx_heap_alloc(&ctx->heap, size, _Alignof(int64_t));
    if (!syms)
        return rx_error(ctx, RXE_OOM, NULL, NULL, "out of memory");
    relax_status s = RELAX_OK;
    for (int32_t i = 0; !s && i < f->nsyms; i++) {
        const char *name = rx_pkg_str(p, p->syms[f->sym0 + i].name);
        uint32_t k = 0;
        while (k < n && strcmp(names[k], name) != 0)
            k++;
        if (k < n)
            syms[i] = values[k];
        else
            s = rx_error(ctx, RXE_NOT_FOUND, NULL, NULL, "%s: symbol %s needs a value", fn, name);
    }
    if (!s)
        s = rx_pkg_peak(ctx, p, fi, syms, (uint32_t)f->nsyms, bytes);
    rx_heap_free(&ctx->heap, syms, size);
    return s;
}
