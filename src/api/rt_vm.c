/* rt_vm.c: running executables; library functions of the host. Part of librelax_rt. */
#include "api/api.h"
#include "rt/rt.h"

relax_status relax_vm_create(relax_executable *e, const relax_vm_options *options, relax_vm **out)
{
    relax_vm_options o = RELAX_VM_OPTIONS_INIT;
    if (out) *out = NULL;
    if (!e) return RELAX_E_INVALID;
    if (!out) return api_null(e->ctx, "out");
    relax_status st = api_options(e->ctx, options, &o, sizeof o, "relax_vm_options");
    if (st != RELAX_OK) return st;
    relax_context *ctx = o.context ? o.context : e->ctx;
    if (!rx_ctx_ok(ctx)) return RELAX_E_INVALID;
    if (o.threads < 0) return rx_error(ctx, RXE_BAD_VALUE, NULL, NULL, "%d threads", (int)o.threads);
    if (!e->dl && (st = rx_exe_activate(ctx, e, NULL)) != RELAX_OK) return st;
    rx_vm_options r = {
        .threads = o.threads, .parallel = ctx->parallel, .parallel_user = ctx->parallel_user, .huge_pages = true};
    st = rx_vm_create(ctx, e, &r, out);
    if (st == RELAX_OK && o.profile && (st = rx_vm_profile(*out, true)) != RELAX_OK) {
        rx_vm_destroy(*out);
        *out = NULL;
    }
    return st;
}

void relax_vm_destroy(relax_vm *vm)
{
    if (vm) rx_vm_destroy(vm);
}

static relax_status lookup(relax_vm *vm, const char *function, int32_t *fn)
{
    relax_context *ctx = rx_vm_context(vm);
    if (!function) return api_null(ctx, "the name of a function");
    *fn = rx_vm_function(vm, function);
    return *fn >= 0 ? RELAX_OK
                    : rx_error(ctx, RXE_NOT_FOUND, NULL, "relax_executable_function_name lists them",
                               "no function is named '%s'", function);
}

relax_status relax_vm_invoke(relax_vm *vm, const char *function, const relax_any *args, uint32_t n, relax_any *result)
{
    int32_t fn;
    relax_any r = { 0 };
    if (!vm) return RELAX_E_INVALID;
    if (n && !args) return api_null(rx_vm_context(vm), "args");
    relax_status st = lookup(vm, function, &fn);
    if (st == RELAX_OK) st = rx_vm_call(vm, fn, args, (int32_t)n, NULL, 0, &r);
    if (result) *result = r;
    else rx_any_release(&r);
    return st;
}

relax_status relax_vm_call_into(relax_vm *vm, const char *function, const relax_any *args, uint32_t n,
                                DLTensor *const *outs, uint32_t nouts)
{
    int32_t fn;
    relax_any r = { 0 };
    if (!vm) return RELAX_E_INVALID;
    if ((n && !args) || (nouts && !outs)) return api_null(rx_vm_context(vm), args ? "outs" : "args");
    relax_status st = lookup(vm, function, &fn);
    if (st == RELAX_OK) st = rx_vm_call(vm, fn, args, (int32_t)n, (const DLTensor *const *)outs, (int32_t)nouts, &r);
    rx_any_release(&r);
    return st;
}

enum { SMALL = 32 };

/* lent tensors as arguments; a read-only one becomes an object that says so, because a DLTensor cannot */
static relax_status lend(relax_vm *vm, DLManagedTensorVersioned *const *args, uint32_t n, relax_any *to)
{
    relax_context *ctx = rx_vm_context(vm);
    for (uint32_t i = 0; i < n; i++) {
        if (!args[i]) return rx_error(ctx, RXE_NULL_ARG, NULL, NULL, "argument %u is NULL", i);
        to[i] = (relax_any){ .kind = RELAX_ANY_DLTENSOR, .u.dl = &args[i]->dl_tensor };
        if (!(args[i]->flags & DLPACK_FLAG_BITMASK_READ_ONLY)) continue;
        relax_dtype t;
        int64_t bytes;
        bool compact;
        void *data;
        rx_tensor *x;
        relax_status st = rx_dl_check(ctx, &args[i]->dl_tensor, "an argument", &t, &bytes, &compact, &data);
        if (st != RELAX_OK) return st;
        if (!compact) continue;        /* copied at entry anyway */
        st = rx_tensor_borrow(ctx, t, args[i]->dl_tensor.shape, args[i]->dl_tensor.ndim, data, true, NULL, NULL, &x);
        if (st != RELAX_OK) return st;
        to[i] = (relax_any){ .kind = RELAX_ANY_TENSOR, .u.obj = &x->h };
    }
    return RELAX_OK;
}

relax_status relax_vm_call(relax_vm *vm, const char *function, DLManagedTensorVersioned *const *args, uint32_t n,
                           DLManagedTensorVersioned **out)
{
    relax_any small[SMALL], *a = small, r = { 0 };
    if (out) *out = NULL;
    if (!vm) return RELAX_E_INVALID;
    relax_context *ctx = rx_vm_context(vm);
    if ((n && !args) || !out) return api_null(ctx, out ? "args" : "out");
    rx_memfn mem = rx_vm_mem(vm);
    size_t size = (size_t)n * sizeof *a;
    if (n > SMALL && !(a = mem.fn(mem.self, NULL, 0, size, _Alignof(relax_any))))
        return rx_error(ctx, RXE_OOM, NULL, NULL, "out of memory");
    memset(a, 0, size);
    relax_status st = lend(vm, args, n, a);
    if (st == RELAX_OK) st = relax_vm_invoke(vm, function, a, n, &r);
    for (uint32_t i = 0; i < n; i++)
        if (a[i].kind == RELAX_ANY_TENSOR) rx_any_release(&a[i]);
    if (a != small) mem.fn(mem.self, a, size, 0, 1);
    if (st != RELAX_OK) return st;
    if (r.kind == RELAX_ANY_TENSOR) st = rx_tensor_export(ctx, (rx_tensor *)r.u.obj, out);
    else st = rx_error(ctx, RXE_ARG_KIND, NULL, "use relax_vm_invoke", "%s: the result is no tensor", function);
    rx_any_release(&r);
    return st;
}

relax_status relax_vm_bind_weight(relax_vm *vm, const char *name, const DLTensor *t)
{
    relax_dtype dt;
    int64_t bytes;
    bool compact;
    void *data;
    rx_tensor *x;
    if (!vm) return RELAX_E_INVALID;
    relax_context *ctx = rx_vm_context(vm);
    if (!name || !t) return api_null(ctx, name ? "the weight" : "the name of a weight");
    relax_status st = rx_dl_check(ctx, t, name, &dt, &bytes, &compact, &data);
    if (st != RELAX_OK) return st;
    if (!compact)
        return rx_error(ctx, RXE_ARG_STRIDES, NULL, "give it as a compact row-major tensor",
                        "weight %s is strided or misaligned", name);
    st = rx_tensor_borrow(ctx, dt, t->shape, t->ndim, data, true, NULL, NULL, &x);
    if (st != RELAX_OK) return st;
    st = rx_vm_bind(vm, name, x);
    rx_release(&x->h);
    return st;
}

relax_context *relax_vm_context(const relax_vm *vm) { return vm ? rx_vm_context(vm) : NULL; }

relax_status relax_vm_memory(const relax_vm *vm, size_t *held, size_t *arena_peak)
{
    if (!vm) return RELAX_E_INVALID;
    rx_vm_memory m = rx_vm_get_memory(vm);
    if (held) *held = m.arena + m.pool + m.stacks;
    if (arena_peak) *arena_peak = m.arena_peak;
    return RELAX_OK;
}

uint32_t relax_vm_profile_count(const relax_vm *vm) { return vm ? rx_vm_profile_rows(vm) : 0; }

relax_status relax_vm_profile(const relax_vm *vm, uint32_t i, const char **kernel, int64_t *calls, int64_t *nanoseconds)
{
    if (!vm || i >= rx_vm_profile_rows(vm)) return RELAX_E_INVALID;
    rx_profile_row r = rx_vm_profile_row(vm, i);
    if (kernel) *kernel = r.name;
    if (calls) *calls = r.calls;
    if (nanoseconds) *nanoseconds = r.ns;
    return RELAX_OK;
}

/* ---- library functions ---- */
relax_status relax_library_register(relax_context *ctx, const char *name, relax_library_fn fn, void *user)
{
    if (!rx_ctx_ok(ctx)) return RELAX_E_INVALID;
    return name && fn ? rx_lib_register(ctx, name, fn, user) : api_null(ctx, "a name or function");
}

relax_status relax_packed_register(relax_context *ctx, const char *name, relax_packed_fn fn, void *user)
{
    if (!rx_ctx_ok(ctx)) return RELAX_E_INVALID;
    return name && fn ? rx_lib_register_packed(ctx, name, fn, user) : api_null(ctx, "a name or function");
}

relax_status relax_library_unregister(relax_context *ctx, const char *name)
{
    if (!rx_ctx_ok(ctx)) return RELAX_E_INVALID;
    return name ? rx_lib_unregister(ctx, name) : api_null(ctx, "a name");
}

relax_status relax_library_register_foreign(relax_context *ctx, const char *name, void *function, const char *signature)
{
    if (!rx_ctx_ok(ctx)) return RELAX_E_INVALID;
    return name && function && signature ? rx_lib_register_c(ctx, name, function, signature)
                                         : api_null(ctx, "a name, function or signature");
}

relax_status relax_openblas_register(relax_context *ctx)
{
    return rx_ctx_ok(ctx) ? rx_openblas_register(ctx) : RELAX_E_INVALID;
}
