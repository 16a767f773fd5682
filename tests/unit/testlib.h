/* testlib.h: what the unit tests share; header only. Include it first: it brings cmocka in with what that needs.
 *
 *     tl_heap th; relax_context *ctx = tl_context(&th);      a context over a counting allocator
 *     TL_TRY(ctx) { ...code that may unwind... } TL_END(ctx); the block in a frame; tl_ok tells how it ended
 *     tl_done(&th, ctx);                                     destroys it; fails the test when bytes are left
 */
#ifndef TESTLIB_H
#define TESTLIB_H
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifdef TL_JSON
#include <cjson/cJSON.h>
#endif

#include "core/core.h"

#define TL_UNUSED __attribute__((unused))

/* --- an allocator that counts and fails on order. fail_at n > 0: the n-th allocation from now fails (growing a block
 * counts as one), `sticky`: and all after it. calls: allocations asked for so far. --- */
typedef struct tl_heap {
    int64_t live, blocks, calls, fail_at;
    bool sticky;
} tl_heap;

TL_UNUSED static void *tl_alloc(void *self, void *p, size_t old_n, size_t n, size_t align)
{
    tl_heap *h = self;
    if (n) {
        h->calls++;
        if (h->fail_at && (h->calls == h->fail_at || (h->sticky && h->calls > h->fail_at)))
            return NULL;
    }
    void *q = n ? aligned_alloc(align < 16 ? 16 : align, (n + 63) & ~(size_t)63) : NULL;
    if (n && !q)
        return NULL;
    if (p && q)
        memcpy(q, p, old_n < n ? old_n : n);
    if (p) {
        h->live -= (int64_t)old_n;
        h->blocks--;
        free(p);
    }
    if (q) {
        h->live += (int64_t)n;
        h->blocks++;
    }
    return q;
}

/* the n-th allocation after this call fails; 0: none */
TL_UNUSED static void tl_fail(tl_heap *h, int64_t n, bool sticky)
{
    h->calls = 0;
    h->fail_at = n;
    h->sticky = sticky;
}

TL_UNUSED static relax_context *tl_context(tl_heap *h)
{
    relax_context *ctx = NULL;
    memset(h, 0, sizeof *h);
    assert_int_equal(rx_context_create(tl_alloc, h, &ctx), RELAX_OK);
    return ctx;
}

TL_UNUSED static void tl_done(tl_heap *h, relax_context *ctx)
{
    rx_context_destroy(ctx);
    assert_int_equal(h->blocks, 0);
    assert_int_equal(h->live, 0);
}

/* Runs the block in a frame of ctx. Afterwards tl_ok is true when it ran to its end. Do not leave it by return or
 * break, and declare what must survive a failure volatile. */
#define TL_TRY(ctx)                                                                                                    \
    {                                                                                                                  \
        rx_frame tl_frame;                                                                                             \
        volatile bool tl_ok = false;                                                                                   \
        if (RX_ENTER(&(ctx)->heap, &tl_frame)) {
#define TL_END(ctx)                                                                                                    \
            tl_ok = true;                                                                                              \
            rx_leave(&(ctx)->heap, &tl_frame);                                                                         \
        }                                                                                                              \
        if (!tl_ok)                                                                                                    \
            tl_print_diags(ctx);                                                                                       \
        assert_true(tl_ok);                                                                                            \
    }
/* as TL_END for a block that must fail with this error */
#define TL_END_FAILS(ctx, error)                                                                                       \
            tl_ok = true;                                                                                              \
            rx_leave(&(ctx)->heap, &tl_frame);                                                                         \
        }                                                                                                              \
        assert_false(tl_ok);                                                                                           \
        assert_int_equal(tl_last_error(ctx), (error));                                                                 \
        rx_diag_clear(ctx);                                                                                            \
    }

TL_UNUSED static void tl_print_diags(const relax_context *ctx)
{
    for (uint32_t i = 0; i < rx_diag_count(ctx); i++) {
        const rx_diag *d = rx_diag_at(ctx, i);
        print_error("RX%d: %s%s%s\n", (int)d->err, d->message, d->hint ? "; " : "", d->hint ? d->hint : "");
    }
}

TL_UNUSED static int tl_last_error(const relax_context *ctx)
{
    uint32_t n = rx_diag_count(ctx);
    return n ? (int)rx_diag_at(ctx, n - 1)->err : 0;
}

/* --- files of the oracle --- */
/* path of a file of the oracle, or NULL when it is not there (the test then calls skip()) */
TL_UNUSED static const char *tl_oracle(const char *name, char *buf, size_t n)
{
    const char *root = getenv("RELAX_ORACLE");
    snprintf(buf, n, "%s/%s", root ? root : "../shared/oracle", name);
    FILE *f = fopen(buf, "rb");
    if (!f)
        return NULL;
    fclose(f);
    return buf;
}

/* --- lines of a text file --- */
typedef struct tl_lines {
    FILE *f;
    char *line;
    size_t cap;
    int64_t number;                  /* of the line last read, from 1 */
} tl_lines;

TL_UNUSED static bool tl_lines_open(tl_lines *l, const char *path)
{
    memset(l, 0, sizeof *l);
    l->f = fopen(path, "rb");
    return l->f != NULL;
}

/* the next line without its end, valid until the next call; NULL at the end (the file is closed then) */
TL_UNUSED static char *tl_lines_next(tl_lines *l)
{
    size_t n = 0;
    for (int c; (c = getc(l->f)) != EOF && c != '\n';) {
        if (n + 1 >= l->cap) {
            l->cap = l->cap ? l->cap * 2 : 4096;
            l->line = realloc(l->line, l->cap);
            assert_non_null(l->line);
        }
        l->line[n++] = (char)c;
    }
    if (n == 0 && feof(l->f)) {
        fclose(l->f);
        free(l->line);
        memset(l, 0, sizeof *l);
        return NULL;
    }
    if (!l->line) {
        l->cap = 4096;
        l->line = malloc(l->cap);
        assert_non_null(l->line);
    }
    l->line[n] = 0;
    l->number++;
    return l->line;
}

#ifdef TL_JSON
/* the next object of a file with one JSON value in a line; NULL at the end. The caller frees it (cJSON_Delete).
 * cJSON keeps numbers as double: int64 values that do not fit must be written as strings. */
TL_UNUSED static cJSON *tl_json_next(tl_lines *l)
{
    char *s = tl_lines_next(l);
    if (!s)
        return NULL;
    cJSON *j = cJSON_Parse(s);
    assert_non_null(j);
    return j;
}

TL_UNUSED static const char *tl_json_str(const cJSON *j, const char *key)
{
    return cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(j, key));
}

TL_UNUSED static const cJSON *tl_json_get(const cJSON *j, const char *key)
{
    return cJSON_GetObjectItemCaseSensitive(j, key);
}
#endif
#endif
