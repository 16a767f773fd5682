/* ggufwrite.h: writes small GGUF files into memory, for tests and seeds of the fuzzers; header only. */
#ifndef GGUFWRITE_H
#define GGUFWRITE_H
#include "import/import.h"

#include <stdlib.h>

typedef struct gw {
    uint8_t *at;
    size_t n, cap;
} gw;

__attribute__((unused)) static void gw_raw(gw *w, const void *p, size_t n)
{
    if (w->n + n > w->cap) {
        w->cap = (w->n + n) * 2 + 256;
        w->at = realloc(w->at, w->cap);
        if (!w->at)
            abort();
    }
    if (n)
        memcpy(w->at + w->n, p, n);
    w->n += n;
}

__attribute__((unused)) static void gw_uint(gw *w, uint64_t v, int bytes)
{
    for (int i = 0; i < bytes; i++) {
        uint8_t b = (uint8_t)(v >> (8 * i));
        gw_raw(w, &b, 1);
    }
}

__attribute__((unused)) static void gw_str(gw *w, const char *s)
{
    gw_uint(w, strlen(s), 8);
    gw_raw(w, s, strlen(s));
}

__attribute__((unused)) static void gw_header(gw *w, uint32_t version, uint64_t tensors, uint64_t kvs)
{
    gw_raw(w, "GGUF", 4);
    gw_uint(w, version, 4);
    gw_uint(w, tensors, 8);
    gw_uint(w, kvs, 8);
}

__attribute__((unused)) static void gw_key(gw *w, const char *key, rx_gguf_kind kind)
{
    gw_str(w, key);
    gw_uint(w, kind, 4);
}

__attribute__((unused)) static void gw_kv_str(gw *w, const char *key, const char *v)
{
    gw_key(w, key, RX_GGUF_STR);
    gw_str(w, v);
}

__attribute__((unused)) static void gw_kv_u32(gw *w, const char *key, uint32_t v)
{
    gw_key(w, key, RX_GGUF_U32);
    gw_uint(w, v, 4);
}

__attribute__((unused)) static void gw_kv_bool(gw *w, const char *key, int v)
{
    gw_key(w, key, RX_GGUF_BOOL);
    gw_uint(w, (uint64_t)v, 1);
}

__attribute__((unused)) static void gw_array(gw *w, const char *key, rx_gguf_kind kind, uint64_t n)
{
    gw_key(w, key, RX_GGUF_ARRAY);
    gw_uint(w, kind, 4);
    gw_uint(w, n, 8);
}

__attribute__((unused)) static void gw_float(gw *w, float f)
{
    uint32_t u;
    memcpy(&u, &f, 4);
    gw_uint(w, u, 4);
}

/* dims as in the file: innermost first */
__attribute__((unused)) static void gw_tensor(gw *w, const char *name, uint32_t ndim, const uint64_t *dims,
                                              uint32_t type, uint64_t offset)
{
    gw_str(w, name);
    gw_uint(w, ndim, 4);
    for (uint32_t i = 0; i < ndim; i++)
        gw_uint(w, dims[i], 8);
    gw_uint(w, type, 4);
    gw_uint(w, offset, 8);
}

__attribute__((unused)) static void gw_pad(gw *w, size_t to)
{
    while (w->n % to)
        gw_raw(w, "", 1);
}
#endif
