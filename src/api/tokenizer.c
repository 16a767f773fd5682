/* tokenizer.c: tokenizers of GGUF files: text to ids and back, end tokens, chat prompts. They read the weights' mapped
 * file, which must stay open as long. */
#include "api/weights.h"

struct relax_tokenizer {
    uint32_t magic;
    relax_context *ctx;
    rx_arena arena;
    const rx_gguf *gguf;
    rx_tokenizer *t;
};
#define TOKENIZER_MAGIC 0x544F4B4Eu

static bool alive(const relax_tokenizer *t) { return t && t->magic == TOKENIZER_MAGIC; }

static void tokenizer_free(relax_tokenizer *t)
{
    rx_heap *h = &t->ctx->heap;
    t->magic = 0;
    rx_arena_free(&t->arena);
    rx_heap_free(h, t, sizeof *t);
}

relax_status relax_tokenizer_create(const relax_weights *w, relax_tokenizer **out)
{
    if (out)
        *out = NULL;
    if (!api_weights(w))
        return RELAX_E_INVALID;
    relax_context *ctx = w->ctx;
    if (!out)
        return api_null(ctx, "out");
    rx_where at = { .file = w->path };
    if (!w->gguf)
        return rx_error(ctx, RXE_UNSUPPORTED, &at, "use the GGUF file of the model",
                        "safetensors files hold no tokenizer");
    relax_tokenizer *const t = rx_heap_alloc(&ctx->heap, sizeof *t, _Alignof(relax_tokenizer));
    if (!t)
        return rx_error(ctx, RXE_OOM, NULL, NULL, "no memory for a tokenizer");
    *t = (relax_tokenizer){ .ctx = ctx, .gguf = w->gguf };
    rx_arena_init(&t->arena, &ctx->heap);
    API_TRY(ctx) {
        t->t = rx_tokenizer_open(ctx, &t->arena, w->gguf);
        t->magic = TOKENIZER_MAGIC;
        *out = t;
        API_RETURN(RELAX_OK);
    }
    tokenizer_free(t);
    return api_failed(ctx);
}

void relax_tokenizer_destroy(relax_tokenizer *t)
{
    if (alive(t))
        tokenizer_free(t);
}

int64_t relax_tokenizer_encode(relax_tokenizer *t, const char *text, size_t length, int32_t add_bos, int32_t special,
                               int32_t *ids, size_t capacity)
{
    if (!alive(t))
        return -1;
    if (!text || (!ids && capacity)) {
        api_null(t->ctx, text ? "ids" : "text");
        return -1;
    }
    API_TRY(t->ctx) {
        rx_arena *a = rx_scratch(&t->ctx->heap);
        rx_ids all = { 0 };
        uint32_t flags = (add_bos ? RX_TOK_ADD_SPECIAL : 0) | (special ? RX_TOK_PARSE_SPECIAL : 0);
        rx_tokenizer_encode(t->t, text, length == RELAX_STRLEN ? strlen(text) : length, flags, a, &all);
        size_t n = RX_MIN(capacity, (size_t)all.n);
        if (n)
            memcpy(ids, all.at, n * sizeof *ids);
        API_RETURN((int64_t)all.n);
    }
    return -1;
}

int64_t relax_tokenizer_decode(relax_tokenizer *t, const int32_t *ids, size_t n, int32_t special, char *out,
                               size_t size)
{
    if (!alive(t))
        return -1;
    if (!ids && n) {
        api_null(t->ctx, "ids");
        return -1;
    }
    API_TRY(t->ctx) {
        rx_buf b;
        rx_buf_init(&b, rx_scratch(&t->ctx->heap));
        rx_tokenizer_decode(t->t, ids, n, special != 0, &b);
        int64_t len = (int64_t)api_text(b.at ? b.at : "", b.n, out, size);
        API_RETURN(len);
    }
    return -1;
}

int32_t relax_tokenizer_is_end(const relax_tokenizer *t, int32_t id)
{
    return alive(t) && rx_tokenizer_is_end(t->t, id);
}

static rx_chat_family family_of(relax_tokenizer *t)
{
    rx_view jinja = rx_gguf_get_str(t->gguf, "tokenizer.chat_template");
    if (!jinja.n)
        rx_fail_hint(t->ctx, RXE_NOT_FOUND, NULL, "the model was not trained for chats: give it plain text to continue",
                     "the file has no chat template");
    return rx_chat_detect(t->ctx, jinja);
}

int64_t relax_tokenizer_chat(relax_tokenizer *t, const char *const *roles, const char *const *contents, uint32_t n,
                             int32_t generation_prompt, char *out, size_t size)
{
    if (!alive(t))
        return -1;
    for (uint32_t i = 0; i < n; i++)
        if (!roles || !contents || !roles[i] || !contents[i]) {
            api_null(t->ctx, "a role or content");
            return -1;
        }
    API_TRY(t->ctx) {
        rx_arena *a = rx_scratch(&t->ctx->heap);
        rx_chat_message *m = RX_NEWN(a, rx_chat_message, n);
        for (uint32_t i = 0; i < n; i++)
            m[i] = (rx_chat_message){ { roles[i], strlen(roles[i]) }, { contents[i], strlen(contents[i]) } };
        rx_buf b;
        rx_buf_init(&b, a);
        rx_view eos = rx_tokenizer_text(t->t, rx_tokenizer_eos(t->t));
        rx_chat_render(t->ctx, family_of(t), m, n, eos, generation_prompt != 0, &b);
        int64_t len = (int64_t)api_text(b.at ? b.at : "", b.n, out, size);
        API_RETURN(len);
    }
    return -1;
}
