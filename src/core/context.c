/* context.c: the root of everything a host makes: allocator, names, callbacks, diagnostics, sub-contexts.
 * The context itself and its diagnostics lie in the heap, all else in its arena. */
#include "core/core.h"

#include <stdio.h>

static void note_oom(void *arg)
{
    rx_error(arg, RXE_OOM, NULL, NULL, "out of memory");
}

relax_status rx_context_create(rx_alloc_fn fn, void *self, relax_context **out)
{
    rx_heap heap;
    *out = NULL;
    rx_heap_init(&heap, fn, self);
    relax_context *ctx = rx_heap_alloc(&heap, sizeof *ctx, _Alignof(relax_context));
    if (!ctx)
        return RELAX_E_NOMEM;
    rx_diags *diags = rx_diags_create(&heap);
    if (!diags) {
        rx_heap_free(&heap, ctx, sizeof *ctx);
        return RELAX_E_NOMEM;
    }
    memset(ctx, 0, sizeof *ctx);
    ctx->magic = RX_CTX_MAGIC;
    ctx->heap = heap;
    ctx->heap.on_oom = note_oom;
    ctx->heap.on_oom_arg = ctx;
    ctx->diags = diags;
    rx_arena_init(&ctx->arena, &ctx->heap);
    rx_strs_init(&ctx->strs, &ctx->arena);
    *out = ctx;
    return RELAX_OK;
}

void rx_context_destroy(relax_context *ctx)
{
    if (!rx_ctx_ok(ctx))
        return;
    while (ctx->n_at_destroy)
        ctx->at_destroy[--ctx->n_at_destroy](ctx);
    rx_arena_free(&ctx->arena);
    rx_heap heap = ctx->heap;
    rx_diags_destroy(&heap, ctx->diags);
    ctx->magic = 0;
    rx_heap_free(&heap, ctx, sizeof *ctx);
}

bool rx_ctx_ok(const relax_context *ctx)
{
    return ctx && ctx->magic == RX_CTX_MAGIC;
}

/* A text too long for the stack goes through the heap; when that fails it is cut. */
void rx_log(relax_context *ctx, relax_log_level level, const char *fmt, ...)
{
    if (!ctx->log)
        return;
    char small[512], *text = small;
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(small, sizeof small, fmt, ap);
    va_end(ap);
    size_t need = n < 0 ? 0 : (size_t)n + 1;
    char *big = need > sizeof small ? rx_heap_alloc(&ctx->heap, need, 1) : NULL;
    if (big) {
        va_start(ap, fmt);
        vsnprintf(big, need, fmt, ap);
        va_end(ap);
        text = big;
    }
    ctx->log(ctx->log_user, level, text);
    rx_heap_free(&ctx->heap, big, need);
}

bool rx_cancelled(relax_context *ctx)
{
    return ctx->cancel && ctx->cancel(ctx->cancel_user) != 0;
}

void rx_progress(relax_context *ctx, const char *phase, int64_t done, int64_t total)
{
    if (ctx->progress)
        ctx->progress(ctx->progress_user, phase, done, total);
    if (rx_cancelled(ctx))
        rx_fail(ctx, RXE_CANCELLED, NULL, "stopped by the host during %s", phase);
}

const char *rx_str(relax_context *ctx, const char *s)
{
    return rx_intern(&ctx->strs, s, strlen(s));
}

const char *rx_strn(relax_context *ctx, const char *s, size_t n)
{
    return rx_intern(&ctx->strs, s, n);
}

const char *rx_strf(relax_context *ctx, const char *fmt, ...)
{
    char small[256];
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(small, sizeof small, fmt, ap);
    va_end(ap);
    if (n >= 0 && (size_t)n < sizeof small)
        return rx_intern(&ctx->strs, small, (size_t)n);
    rx_buf b;
    rx_buf_init(&b, &ctx->arena);
    va_start(ap, fmt);
    rx_putv(&b, fmt, ap);
    va_end(ap);
    return rx_intern(&ctx->strs, b.at ? b.at : "", b.n);
}
