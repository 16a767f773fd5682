/* fuzz_gguf.c: any bytes as a GGUF file: it opens or is refused; then every value, tensor and the tokenizer are read.
 * Memory is checked against the documented limit. */
#include "import/import.h"

#define LIMIT(n) (16 * (n) + (64u << 20))

static volatile uint8_t sink;

static void touch(const uint8_t *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        sink ^= p[i];
}

static void read_array(const rx_gguf *g, const rx_gguf_array *a, rx_arena *arena)
{
    touch(a->at, a->bytes);
    if (a->kind == RX_GGUF_STR) {
        rx_view *v = rx_gguf_array_strings(g, a, arena);
        for (uint64_t i = 0; i < a->n; i++)
            touch((const uint8_t *)v[i].at, v[i].n);
    }
}

static void read_all(const rx_gguf *g, rx_arena *arena)
{
    for (uint32_t i = 0; i < g->keys.n; i++) {
        const rx_gguf_kv *kv = &g->kvs[i];
        touch((const uint8_t *)g->keys.at[i].at, g->keys.at[i].n);
        if (kv->kind == RX_GGUF_STR)
            touch((const uint8_t *)kv->str.at, kv->str.n);
        if (kv->kind == RX_GGUF_ARRAY)
            read_array(g, &kv->array, arena);
    }
    for (uint32_t i = 0; i < g->n_tensors; i++) {
        const rx_gguf_tensor *t = &g->tensors[i];
        touch(t->data, t->bytes);
        if (rx_gguf_find_tensor(g, t->name) != t)
            __builtin_trap();
    }
}

static void use_tokenizer(relax_context *ctx, const rx_gguf *g, rx_arena *arena)
{
    static const char text[] = "Hello  w\xC3\xB6rld 1234 <s>'s\n\n\tabc <|im_end|>";
    const rx_tokenizer *t = rx_tokenizer_open(ctx, arena, g);
    for (uint32_t flags = 0; flags < 4; flags++) {
        rx_ids ids = {0};
        rx_buf b;
        rx_buf_init(&b, arena);
        rx_tokenizer_encode(t, text, sizeof text - 1, flags, arena, &ids);
        rx_tokenizer_decode(t, ids.at, ids.n, flags & 1, &b);
        if (rx_utf8_valid(b.at ? b.at : "", b.n) != b.n)
            __builtin_trap();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    relax_context *ctx;
    rx_frame f;
    if (rx_context_create(NULL, NULL, &ctx) != RELAX_OK)
        return 0;
    size_t before = ctx->heap.live;
    if (RX_ENTER(&ctx->heap, &f)) {
        rx_arena *arena = rx_scratch(&ctx->heap);
        const rx_gguf *g = rx_gguf_open(ctx, arena, data, n);
        read_all(g, arena);
        use_tokenizer(ctx, g, arena);
        rx_leave(&ctx->heap, &f);
    }
    if (ctx->heap.peak - before > LIMIT(n))
        __builtin_trap();
    rx_context_destroy(ctx);
    return 0;
}
