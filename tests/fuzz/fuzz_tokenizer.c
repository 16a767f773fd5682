/* fuzz_tokenizer.c: any text through small tokenizers of both kinds: ids to text gives the text again where the
 * vocabulary holds all bytes, and what comes out is always UTF-8. The first byte chooses tokenizer and flags. */
#include "import/import.h"
#include "../unit/ggufwrite.h"

#include <stdio.h>

static const char *const pres[] = {"gpt-2", "llama-bpe", "qwen2", "smollm"};
static const char *const words[] = {"<|a|>", "<|ab|>", "  ", "ab", "abc", "\n\n"};

static void write_types(gw *w, uint64_t n_words, uint64_t n_bytes, uint64_t byte_type)
{
    gw_array(w, "tokenizer.ggml.token_type", RX_GGUF_I32, n_words + n_bytes);
    for (uint64_t i = 0; i < n_words + n_bytes; i++)
        gw_uint(w, i >= n_words ? byte_type : i < 2 ? 3 : i < 3 ? 4 : 1, 4);
}

static void utf8_of(uint32_t c, char *p)
{
    p[c < 0x80 ? 1 : 2] = 0;
    p[0] = (char)(c < 0x80 ? c : 0xC0 | c >> 6);
    if (c >= 0x80)
        p[1] = (char)(0x80 | (c & 63));
}

/* the alphabet of byte-level BPE in any order: bytes that print, then U+0100.. for the others */
static void write_bpe(gw *w, const char *pre)
{
    static const char *const merges[] = {"a b", "ab c", "a a", "b c"};
    char s[4];
    gw_header(w, 3, 0, 5);
    gw_kv_str(w, "tokenizer.ggml.model", "gpt2");
    gw_kv_str(w, "tokenizer.ggml.pre", pre);
    gw_array(w, "tokenizer.ggml.tokens", RX_GGUF_STR, RX_COUNT(words) + 256);
    for (size_t i = 0; i < RX_COUNT(words); i++)
        gw_str(w, words[i]);
    for (uint32_t c = 33; c < 324; c++) {
        if ((c > 126 && c < 161) || c == 173)
            continue;
        utf8_of(c, s);
        gw_str(w, s);
    }
    write_types(w, RX_COUNT(words), 256, 1);
    gw_array(w, "tokenizer.ggml.merges", RX_GGUF_STR, RX_COUNT(merges));
    for (size_t i = 0; i < RX_COUNT(merges); i++)
        gw_str(w, merges[i]);
}

static void write_spm(gw *w)
{
    char s[8];
    gw_header(w, 3, 0, 4);
    gw_kv_str(w, "tokenizer.ggml.model", "llama");
    gw_kv_bool(w, "tokenizer.ggml.add_space_prefix", 0);
    gw_array(w, "tokenizer.ggml.tokens", RX_GGUF_STR, RX_COUNT(words) + 256);
    for (size_t i = 0; i < RX_COUNT(words); i++)
        gw_str(w, words[i]);
    for (unsigned b = 0; b < 256; b++) {
        snprintf(s, sizeof s, "<0x%02X>", b);
        gw_str(w, s);
    }
    write_types(w, RX_COUNT(words), 256, 6);
}

static void round_trip(relax_context *ctx, const gw *w, const char *text, size_t n, uint32_t flags, bool exact)
{
    rx_arena *a = rx_scratch(&ctx->heap);
    const rx_tokenizer *t = rx_tokenizer_open(ctx, a, rx_gguf_open(ctx, a, w->at, w->n));
    rx_ids ids = {0};
    rx_buf b;
    rx_buf_init(&b, a);
    rx_puts(&b, "");
    rx_tokenizer_encode(t, text, n, flags, a, &ids);
    rx_tokenizer_decode(t, ids.at, ids.n, true, &b);
    if (rx_utf8_valid(b.at, b.n) != b.n)
        __builtin_trap();
    if (exact && (b.n != n || memcmp(b.at, text, n) != 0))
        __builtin_trap();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    relax_context *ctx;
    rx_frame f;
    gw w = {0};
    if (n == 0 || rx_context_create(NULL, NULL, &ctx) != RELAX_OK)
        return 0;
    unsigned kind = data[0] % 5;
    if (kind < 4)
        write_bpe(&w, pres[kind]);
    else
        write_spm(&w);
    if (RX_ENTER(&ctx->heap, &f)) {
        const char *text = (const char *)data + 1;
        /* U+2581 is a space in the llama model */
        round_trip(ctx, &w, text, n - 1, data[0] & 0x40 ? RX_TOK_PARSE_SPECIAL : 0, kind < 4);
        rx_leave(&ctx->heap, &f);
    }
    rx_context_destroy(ctx);
    free(w.at);
    return 0;
}
