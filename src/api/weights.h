/* weights.h: a mapped model file behind relax_weights; shared by the bodies that read it. */
#ifndef RX_API_WEIGHTS_H
#define RX_API_WEIGHTS_H
#include "api/api.h"
#include "import/import.h"

/* A tensor as the compiler sees it: block formats are bytes, one row of blocks after the other. */
typedef struct api_weight {
    const char *name, *type;           /* type: "q4_k", "f32" */
    relax_dtype dtype;                 /* UNKNOWN: no such type; data may not be used then */
    int32_t ndim;
    int64_t *dims;
    const uint8_t *data;
    size_t bytes;
} api_weight;
struct relax_weights {
    uint32_t magic;
    relax_context *ctx;
    rx_arena arena;
    rx_file file;
    const char *path;
    rx_gguf *gguf;                     /* one of these two */
    rx_safetensors *st;
    uint32_t n;
    api_weight *at;
};
#define API_WEIGHTS_MAGIC 0x57454947u
bool api_weights(const relax_weights *w);               /* alive */
DLTensor api_weight_view(const api_weight *t);          /* lent: the file's memory */
const api_weight *api_weights_find(const relax_weights *w, const char *name);     /* NULL if absent */
void api_weights_fingerprint(const relax_weights *w,
                             rx_buf *b); /* names the file's header; stale caches are known by it */
#endif
