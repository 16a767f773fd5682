/* fuzz_safetensors.c: any bytes as a safetensors file: it opens or is refused; then all tensors are read. Memory is
 * checked against the documented limit. */
#include "import/import.h"

#define LIMIT(n) (16 * (n) + (64u << 20))

static volatile uint8_t sink;

static void read_all(const rx_safetensors *s, const uint8_t *data, size_t n)
{
    size_t bytes = 0;
    for (uint32_t i = 0; i < s->n_tensors; i++) {
        const rx_st_tensor *t = &s->tensors[i];
        if (t->bytes && (t->data < data || (size_t)(data + n - t->data) < t->bytes))
            __builtin_trap();
        for (size_t k = 0; k < t->bytes; k++)
            sink ^= t->data[k];
        if (rx_safetensors_find(s, t->name) != t)
            __builtin_trap();
        bytes += t->bytes;
    }
    for (uint32_t i = 0; i < s->n_meta; i++)
        if (rx_utf8_valid(s->meta_values[i].at, s->meta_values[i].n) != s->meta_values[i].n)
            __builtin_trap();
    if (bytes > n)
        __builtin_trap();              /* tensors overlap */
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    relax_context *ctx;
    rx_frame f;
    if (rx_context_create(NULL, NULL, &ctx) != RELAX_OK)
        return 0;
    size_t before = ctx->heap.live;
    if (RX_ENTER(&ctx->heap, &f)) {
        read_all(rx_safetensors_open(ctx, rx_scratch(&ctx->heap), data, n), data, n);
        rx_leave(&ctx->heap, &f);
    }
    if (ctx->heap.peak - before > LIMIT(n))
        __builtin_trap();
    rx_context_destroy(ctx);
    return 0;
}
