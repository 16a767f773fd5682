/* rt_exe.c: executables: load, inspect, save. Part of librelax_rt. */
#include "api/api.h"
#include "rt/rt.h"

relax_status relax_executable_load_file(relax_context *ctx, const char *path, relax_executable **out)
{
    if (out) *out = NULL;
    if (!rx_ctx_ok(ctx)) return RELAX_E_INVALID;
    if (!path || !out) return api_null(ctx, path ? "out" : "path");
    relax_status st = rx_exe_open_file(ctx, path, out);
    if (st == RELAX_OK) (*out)->ctx = ctx;
    return st;
}

relax_status relax_executable_load_memory(relax_context *ctx, const void *bytes, size_t size, int32_t borrow,
                                          relax_executable **out)
{
    if (out) *out = NULL;
    if (!rx_ctx_ok(ctx)) return RELAX_E_INVALID;
    if (!bytes || !out) return api_null(ctx, bytes ? "out" : "bytes");
    relax_status st = rx_exe_open(ctx, bytes, size, borrow ? RX_EXE_BORROW : RX_EXE_COPY, out);
    if (st == RELAX_OK) (*out)->ctx = ctx;
    return st;
}

void relax_executable_destroy(relax_executable *e)
{
    if (e) rx_exe_release(e);
}

relax_status relax_executable_activate(relax_executable *e, int32_t (*verify)(void *user, const void *bytes, size_t n),
                                       void *user)
{
    if (!e) return RELAX_E_INVALID;
    rx_exe_policy p = { .verify = verify, .user = user };
    return rx_exe_activate(e->ctx, e, &p);
}

relax_status relax_executable_save(const relax_executable *e, const char *path)
{
    if (!e) return RELAX_E_INVALID;
    return path ? rx_exe_save(e->ctx, e, path) : api_null(e->ctx, "path");
}

relax_status relax_executable_bytes(const relax_executable *e, const void **bytes, size_t *size)
{
    if (!e || !bytes || !size) return RELAX_E_INVALID;
    *bytes = e->bytes;
    *size = e->size;
    return RELAX_OK;
}

static bool is_public(const relax_executable *e, uint32_t i) { return !(e->pkg.fns[i].flags & RX_FN_PRIVATE); }

uint32_t relax_executable_function_count(const relax_executable *e)
{
    uint32_t n = 0;
    for (uint32_t i = 0; e && i < e->pkg.n_fns; i++) n += is_public(e, i);
    return n;
}

const char *relax_executable_function_name(const relax_executable *e, uint32_t k)
{
    for (uint32_t i = 0; e && i < e->pkg.n_fns; i++)
        if (is_public(e, i) && !k--) return rx_pkg_str(&e->pkg, e->pkg.fns[i].name);
    return NULL;
}

static int32_t find(const relax_executable *e, const char *function)
{
    return e && function ? rx_pkg_find_fn(&e->pkg, function, strlen(function)) : -1;
}

size_t relax_executable_signature(const relax_executable *e, const char *function, char *out, size_t size)
{
    int32_t fn = find(e, function);
    if (fn < 0) return api_text("", 0, out, size);
    API_TRY(e->ctx) {
        rx_buf b;
        rx_buf_init(&b, rx_scratch(&e->ctx->heap));
        rx_pkg_print_signature(&b, &e->pkg, fn);
        size_t n = api_text(b.at, b.n, out, size);
        API_RETURN(n);
    }
    return api_text("", 0, out, size);
}

uint32_t relax_executable_weight_count(const relax_executable *e) { return e ? e->pkg.n_weights : 0; }

const char *relax_executable_weight_name(const relax_executable *e, uint32_t i)
{
    return e && i < e->pkg.n_weights ? rx_pkg_str(&e->pkg, e->pkg.weights[i].name) : NULL;
}

const char *relax_executable_weight_type(const relax_executable *e, uint32_t i)
{
    return e && i < e->pkg.n_weights ? rx_pkg_str(&e->pkg, e->pkg.weights[i].type) : NULL;
}

size_t relax_executable_text(const relax_executable *e, int32_t code, char *out, size_t size)
{
    if (!e) return api_text("", 0, out, size);
    API_TRY(e->ctx) {
        rx_buf b;
        rx_buf_init(&b, rx_scratch(&e->ctx->heap));
        rx_pkg_print(&b, &e->pkg, code != 0);
        size_t n = api_text(b.at ? b.at : "", b.n, out, size);
        API_RETURN(n);
    }
    return api_text("", 0, out, size);
}

const char *relax_executable_property(const relax_executable *e, const char *key)
{
    for (uint32_t i = 0; e && key && i < e->pkg.n_prov; i++)
        if (!strcmp(rx_pkg_str(&e->pkg, e->pkg.prov[i].key), key)) return rx_pkg_str(&e->pkg, e->pkg.prov[i].value);
    return NULL;
}

relax_status relax_executable_peak_memory(const relax_executable *e, const char *function, const relax_sym_value *syms,
                                          uint32_t n, int64_t *bytes)
{
    enum { MOST = 64 };
    const char *names[MOST];
    int64_t values[MOST];
    if (!e) return RELAX_E_INVALID;
    if (!function || !bytes || (n && !syms)) return api_null(e->ctx, "an argument");
    if (n > MOST) return rx_error(e->ctx, RXE_LIMIT, NULL, NULL, "%u symbols; at most %d", n, MOST);
    for (uint32_t i = 0; i < n; i++) {
        names[i] = syms[i].name;
        values[i] = syms[i].value;
        if (!names[i]) return api_null(e->ctx, "the name of a symbol");
    }
    return rx_exe_peak(e->ctx, e, function, names, values, n, bytes);
}

size_t relax_executable_memory_formula(const relax_executable *e, const char *function, char *out, size_t size)
{
    int32_t fn = find(e, function);
    const char *s = fn < 0 ? "" : rx_pkg_str(&e->pkg, e->pkg.fns[fn].mem_text);
    return api_text(s, strlen(s), out, size);
}
