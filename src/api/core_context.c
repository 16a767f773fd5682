/* core_context.c: version, names, contexts, diagnostics. Part of librelax_rt too. */
#include "api/api.h"

#define STR2(x) #x
#define STR(x) STR2(x)

void relax_version(int32_t *major, int32_t *minor, int32_t *patch)
{
    if (major) *major = RELAX_VERSION_MAJOR;
    if (minor) *minor = RELAX_VERSION_MINOR;
    if (patch) *patch = RELAX_VERSION_PATCH;
}

const char *relax_version_string(void)
{
    return STR(RELAX_VERSION_MAJOR) "." STR(RELAX_VERSION_MINOR) "." STR(RELAX_VERSION_PATCH);
}

const char *relax_status_name(relax_status s)
{
    static const char *const names[] = {
        [RELAX_OK] = "ok",
        [RELAX_E_INVALID] = "invalid argument",
        [RELAX_E_NOMEM] = "out of memory",
        [RELAX_E_TYPE] = "wrong type",
        [RELAX_E_SHAPE] = "wrong shape",
        [RELAX_E_BOUND] = "out of bounds",
        [RELAX_E_NOT_FOUND] = "not found",
        [RELAX_E_UNSUPPORTED] = "unsupported",
        [RELAX_E_FORMAT] = "malformed input",
        [RELAX_E_IO] = "input or output failed",
        [RELAX_E_INCOMPATIBLE] = "incompatible version",
        [RELAX_E_CANCELLED] = "cancelled",
        [RELAX_E_LIMIT] = "limit reached",
        [RELAX_E_INTERNAL] = "internal error",
    };
    return s >= 0 && (size_t)s < RX_COUNT(names) ? names[s] : "unknown status";
}

const char *relax_dtype_name(relax_dtype t)
{
    return rx_dtypes[t >= 0 && t < RELAX_DTYPE_COUNT ? t : RELAX_DTYPE_UNKNOWN].name;
}

relax_dtype relax_dtype_parse(const char *name)
{
    return name ? rx_dtype_parse(name, strlen(name)) : RELAX_DTYPE_UNKNOWN;
}
int32_t relax_dtype_bytes(relax_dtype t) { return t > 0 && t < RELAX_DTYPE_COUNT ? (int32_t)rx_dtype_bytes(t) : 0; }

relax_status api_failed(const relax_context *ctx)
{
    relax_status s = rx_diag_status(ctx);
    return s == RELAX_OK ? RELAX_E_INTERNAL : s;
}

relax_status api_null(relax_context *ctx, const char *what)
{
    return rx_ctx_ok(ctx) ? rx_error(ctx, RXE_NULL_ARG, NULL, NULL, "%s is NULL or was destroyed", what)
                          : RELAX_E_INVALID;
}

relax_status api_foreign(relax_context *ctx, const char *what)
{
    return rx_ctx_ok(ctx)
               ? rx_error(ctx, RXE_WRONG_HANDLE, NULL, NULL, "%s belongs to another context, module or function", what)
               : RELAX_E_INVALID;
}

relax_status api_options(relax_context *ctx, const void *given, void *own, size_t size, const char *what)
{
    uint32_t n;
    if (!given) return RELAX_OK;
    memcpy(&n, given, sizeof n);
    if (n < sizeof n)
        return rx_ctx_ok(ctx)
                   ? rx_error(ctx, RXE_STRUCT_SIZE, NULL, "start from its INIT macro", "%s: struct_size is %u", what, n)
                   : RELAX_E_INCOMPATIBLE;
    for (size_t i = size; i < n; i++)
        if (((const unsigned char *)given)[i])
            return rx_ctx_ok(ctx)
                       ? rx_error(ctx, RXE_STRUCT_SIZE, NULL, "the host was built for a newer librelax",
                                  "%s: the field at offset %u is not known to this version", what, (unsigned)i)
                       : RELAX_E_INCOMPATIBLE;
    memcpy(own, given, RX_MIN(size, n));
    return RELAX_OK;
}

size_t api_text(const char *s, size_t n, char *out, size_t size)
{
    if (out && size) {
        size_t k = RX_MIN(n, size - 1);
        memcpy(out, s, k);
        out[k] = 0;
    }
    return n;
}

relax_status relax_context_create(const relax_context_options *options, relax_context **out)
{
    relax_context_options o = RELAX_CONTEXT_OPTIONS_INIT;
    if (!out) return RELAX_E_INVALID;
    *out = NULL;
    relax_status st = api_options(NULL, options, &o, sizeof o, "relax_context_options");
    if (st == RELAX_OK) st = rx_context_create(o.alloc, o.alloc_self, out);
    if (st != RELAX_OK) return st;
    relax_context *ctx = *out;
    ctx->log = o.log; ctx->log_user = o.log_user;
    ctx->progress = o.progress; ctx->progress_user = o.progress_user;
    ctx->cancel = o.cancel; ctx->cancel_user = o.cancel_user;
    ctx->parallel = o.parallel; ctx->parallel_user = o.parallel_user;
    return RELAX_OK;
}

void relax_context_destroy(relax_context *ctx) { rx_context_destroy(ctx); }

uint32_t relax_diagnostic_count(const relax_context *ctx) { return rx_ctx_ok(ctx) ? rx_diag_count(ctx) : 0; }

relax_status relax_diagnostic_get(const relax_context *ctx, uint32_t i, relax_diagnostic *out)
{
    if (!rx_ctx_ok(ctx) || !out || out->struct_size < sizeof out->struct_size) return RELAX_E_INVALID;
    const rx_diag *d = rx_diag_at(ctx, i);
    if (!d) return RELAX_E_NOT_FOUND;
    relax_diagnostic r = RELAX_DIAGNOSTIC_INIT;
    unsigned num = (unsigned)d->err;
    r.status = d->status;
    r.id[0] = 'R'; r.id[1] = 'X';
    for (int k = 5; k >= 2; k--, num /= 10) r.id[k] = (char)('0' + num % 10);
    r.message = d->message;
    r.function = d->where.function; r.binding = d->where.binding;
    r.file = d->where.file; r.line = d->where.line; r.col = d->where.col;
    r.hint = d->hint;
    r.struct_size = out->struct_size;
    memcpy(out, &r, RX_MIN(sizeof r, out->struct_size));
    return RELAX_OK;
}

void relax_diagnostic_clear(relax_context *ctx)
{
    if (rx_ctx_ok(ctx)) rx_diag_clear(ctx);
}

static void put_error(rx_buf *b, const rx_diag *d)
{
    rx_putf(b, "RX%04u: ", (unsigned)d->err);
    if (d->where.file) rx_putf(b, "%s:%u:%u: ", d->where.file, d->where.line, d->where.col);
    if (d->where.function) rx_putf(b, "%s: ", d->where.function);
    if (d->where.binding) rx_putf(b, "%s: ", d->where.binding);
    rx_puts(b, d->message);
    if (d->hint) rx_putf(b, " (hint: %s)", d->hint);
}

const char *relax_last_error(relax_context *ctx)
{
    if (!rx_ctx_ok(ctx) || !rx_diag_count(ctx)) return "";
    const rx_diag *d = rx_diag_at(ctx, rx_diag_count(ctx) - 1);
    API_TRY(ctx) {
        rx_buf b;
        rx_buf_init(&b, rx_scratch(&ctx->heap));
        put_error(&b, d);
        const char *s = rx_strn(ctx, b.at, b.n);
        API_RETURN(s);
    }
    rx_diag_truncate(ctx, rx_diag_count(ctx) - 1);     /* the failure to print is no news */
    return d->message;
}
