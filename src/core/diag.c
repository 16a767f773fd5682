/* diag.c: the diagnostics of a context, oldest first.
 *
 * A record's strings are copied into one block of the heap, so they outlive the arenas they came from. Reporting
 * must work when there is no memory: the first records lie in the store itself, a record whose strings cannot be
 * copied keeps the constant sentence of errors.def, and when the table is full and cannot grow (or at MAX_RECORDS)
 * the newest record is replaced, so the newest error is always there to be asked for. */
#include "core/core.h"

#include <stdio.h>

enum { INLINE_RECORDS = 4, MAX_RECORDS = 1024 };

struct rx_diags {
    rx_diag *at;
    uint32_t n, cap;
    rx_diag first[INLINE_RECORDS];
};

static const struct row {
    enum rx_err err;
    relax_status status;
    const char *text;
} rows[] = {
#define RX(num, name, status, text) {RXE_##name, RELAX_E_##status, text},
#include "core/errors.def"
#undef RX
};

static const struct row *row_of(enum rx_err e)
{
    for (size_t i = 0; i < RX_COUNT(rows); i++)
        if (rows[i].err == e)
            return &rows[i];
    return &rows[RX_COUNT(rows) - 1];            /* INTERNAL stands last */
}

relax_status rx_err_status(enum rx_err e)
{
    return row_of(e)->status;
}

const char *rx_err_text(enum rx_err e)
{
    return row_of(e)->text;
}

rx_diags *rx_diags_create(rx_heap *h)
{
    rx_diags *d = rx_heap_alloc(h, sizeof *d, _Alignof(rx_diags));
    if (d) {
        memset(d, 0, sizeof *d);
        d->at = d->first;
        d->cap = INLINE_RECORDS;
    }
    return d;
}

static void record_free(rx_heap *h, rx_diag *d)
{
    while (d->notes) {
        rx_diag_note *n = d->notes;
        d->notes = n->next;
        rx_heap_free(h, n, n->size);
    }
    rx_heap_free(h, d->text, d->text_size);
}

void rx_diags_destroy(rx_heap *h, rx_diags *d)
{
    for (uint32_t i = 0; i < d->n; i++)
        record_free(h, &d->at[i]);
    if (d->at != d->first)
        rx_heap_free(h, d->at, d->cap * sizeof *d->at);
    rx_heap_free(h, d, sizeof *d);
}

/* an empty record at the end */
static rx_diag *record_new(rx_heap *h, rx_diags *d)
{
    if (d->n == d->cap && d->cap < MAX_RECORDS) {
        rx_diag *more = rx_heap_alloc(h, d->cap * 2 * sizeof *more, _Alignof(rx_diag));
        if (more) {
            memcpy(more, d->at, d->n * sizeof *more);
            if (d->at != d->first)
                rx_heap_free(h, d->at, d->cap * sizeof *more);
            d->at = more;
            d->cap *= 2;
        }
    }
    if (d->n == d->cap)
        record_free(h, &d->at[--d->n]);
    rx_diag *r = &d->at[d->n++];
    memset(r, 0, sizeof *r);
    return r;
}

static size_t text_len(const char *s)
{
    return s ? strlen(s) + 1 : 0;
}

static const char *copy(char **to, const char *s)
{
    if (!s)
        return NULL;
    size_t n = strlen(s) + 1;
    char *at = memcpy(*to, s, n);
    *to += n;
    return at;
}

static void record(relax_context *ctx, enum rx_err e, const rx_where *w, const char *hint, const char *fmt, va_list ap)
{
    static const rx_where nowhere = {0};
    const struct row *row = row_of(e);
    w = w ? w : &nowhere;
    /* strings of the caller may lie in the record that a full table gives up: build the text before */
    va_list again;
    va_copy(again, ap);
    int len = vsnprintf(NULL, 0, fmt, ap);
    size_t msg = len < 0 ? 0 : (size_t)len + 1;
    size_t size = msg + text_len(hint) + text_len(w->function) + text_len(w->binding) + text_len(w->file);
    char *text = e == RXE_OOM || msg == 0 ? NULL : rx_heap_alloc(&ctx->heap, size, 1);
    rx_diag new = {.err = e, .status = row->status, .message = row->text};
    new.where.line = w->line;
    new.where.col = w->col;
    if (text) {
        char *to = text + msg;
        vsnprintf(text, msg, fmt, again);
        new.message = text;
        new.hint = copy(&to, hint);
        new.where.function = copy(&to, w->function);
        new.where.binding = copy(&to, w->binding);
        new.where.file = copy(&to, w->file);
        new.text = text;
        new.text_size = size;
    }
    va_end(again);
    *record_new(&ctx->heap, ctx->diags) = new;
}

void rx_fail(relax_context *ctx, enum rx_err e, const rx_where *w, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    record(ctx, e, w, NULL, fmt, ap);
    va_end(ap);
    rx_unwind(&ctx->heap);
}

void rx_fail_hint(relax_context *ctx, enum rx_err e, const rx_where *w, const char *hint, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    record(ctx, e, w, hint, fmt, ap);
    va_end(ap);
    rx_unwind(&ctx->heap);
}

void rx_report(relax_context *ctx, enum rx_err e, const rx_where *w, const char *hint, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    record(ctx, e, w, hint, fmt, ap);
    va_end(ap);
}

relax_status rx_error(relax_context *ctx, enum rx_err e, const rx_where *w, const char *hint, const char *fmt, ...)
{
    if (ctx) {
        va_list ap;
        va_start(ap, fmt);
        record(ctx, e, w, hint, fmt, ap);
        va_end(ap);
    }
    return rx_err_status(e);
}

void rx_note(relax_context *ctx, const char *fmt, ...)
{
    rx_diags *d = ctx->diags;
    if (!d->n)
        return;
    va_list ap;
    va_start(ap, fmt);
    int len = vsnprintf(NULL, 0, fmt, ap);
    va_end(ap);
    size_t size = sizeof(rx_diag_note) + (len < 0 ? 0 : (size_t)len) + 1;
    rx_diag_note *n = len < 0 ? NULL : rx_heap_alloc(&ctx->heap, size, _Alignof(rx_diag_note));
    if (!n)
        return;
    va_start(ap, fmt);
    vsnprintf((char *)(n + 1), (size_t)len + 1, fmt, ap);
    va_end(ap);
    *n = (rx_diag_note){NULL, (char *)(n + 1), size};
    rx_diag_note **at = &d->at[d->n - 1].notes;
    while (*at)
        at = &(*at)->next;
    *at = n;
}

void rx_diag_locate(relax_context *ctx, const char *file, uint32_t line, uint32_t col)
{
    rx_diags *d = ctx->diags;
    rx_diag *r = d->n ? &d->at[d->n - 1] : NULL;
    if (!r || r->where.line)
        return;
    r->where.file = file;
    r->where.line = line;
    r->where.col = col;
}

void rx_diag_truncate(relax_context *ctx, uint32_t count)
{
    rx_diags *d = ctx->diags;
    while (d->n > count)
        record_free(&ctx->heap, &d->at[--d->n]);
}

void rx_diag_clear(relax_context *ctx)
{
    rx_diag_truncate(ctx, 0);
}

uint32_t rx_diag_count(const relax_context *ctx)
{
    return ctx->diags->n;
}

relax_status rx_diag_status(const relax_context *ctx)
{
    const rx_diags *d = ctx->diags;
    return d->n ? d->at[d->n - 1].status : RELAX_OK;
}

const rx_diag *rx_diag_at(const relax_context *ctx, uint32_t i)
{
    return i < ctx->diags->n ? &ctx->diags->at[i] : NULL;
}
