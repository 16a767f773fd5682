/* tokenizer.c: opens the tokenizer that a GGUF file describes; text to token ids.
 *
 * Input: metadata under tokenizer.ggml.*, untrusted (ids are checked, arrays may be short or of another type). The
 * vocabulary's texts stay in the file. Encoding: control and user-defined tokens are cut out first, the rest goes to
 * the model's tokenizer; then the begin- and end-of-text rule.
 * Trap: where the file gives two tokens one text, the later one is found. */
#include "import/tokenizer.h"

/* texts of tokens that end an answer, whatever the file calls its end-of-text token */
static const char *const end_texts[] = {
    "<|eot_id|>", "<|im_end|>", "<|end|>", "<end_of_turn>", "<|endoftext|>", "<|eom_id|>", "<EOT>", "<|end_of_text|>",
    "<end_of_utterance>", "<eos>",
};

static int32_t special_id(const rx_tokenizer *t, const rx_gguf *g, const char *key, int32_t def)
{
    int64_t id = rx_gguf_get_int(g, key, def);
    if (id != def && (id < 0 || id >= t->vocab.n))
        return -1;                     /* writers put 2^32-1 for "none" */
    return id < t->vocab.n ? (int32_t)id : -1;
}

static void read_vocabulary(rx_tokenizer *t, const rx_gguf *g)
{
    rx_gguf_array tokens, types;
    if (!rx_gguf_get_array(g, "tokenizer.ggml.tokens", &tokens))
        rx_fail(t->ctx, RXE_UNSUPPORTED, NULL, "the GGUF file holds no vocabulary");
    rx_view *texts = rx_gguf_array_strings(g, &tokens, rx_scratch(&t->ctx->heap));
    rx_names_init(&t->vocab, t->arena, (uint32_t)tokens.n);
    for (uint32_t i = 0; i < tokens.n; i++) {
        rx_names_add(&t->vocab, texts[i].at, texts[i].n);
        t->longest = RX_MAX(t->longest, (uint32_t)RX_MIN(texts[i].n, UINT32_MAX));
    }
    t->types = RX_NEWN(t->arena, uint8_t, t->vocab.n);
    bool typed = rx_gguf_get_array(g, "tokenizer.ggml.token_type", &types);
    for (uint32_t i = 0; i < t->vocab.n; i++) {
        int64_t ty = typed ? rx_gguf_array_int(g, &types, i) : TYPE_NORMAL;
        t->types[i] = ty >= TYPE_NORMAL && ty <= TYPE_BYTE ? (uint8_t)ty : TYPE_NORMAL;
    }
}

static void add_end(rx_tokenizer *t, int64_t id)
{
    if (id >= 0 && t->n_ends < RX_COUNT(t->ends) && !rx_tokenizer_is_end(t, (int32_t)id))
        t->ends[t->n_ends++] = (int32_t)id;
}

static void read_ends(rx_tokenizer *t, const rx_gguf *g)
{
    add_end(t, t->eos);
    add_end(t, special_id(t, g, "tokenizer.ggml.eot_token_id", -1));
    add_end(t, special_id(t, g, "tokenizer.ggml.eom_token_id", -1));
    for (size_t i = 0; i < RX_COUNT(end_texts); i++) {
        int64_t id = rx_names_find(&t->vocab, end_texts[i], strlen(end_texts[i]));
        if (id >= 0 && (t->types[id] == TYPE_CONTROL || t->types[id] == TYPE_USER))
            add_end(t, id);
    }
}

static bool is_phi3(const rx_gguf *g)
{
    rx_view name = rx_gguf_get_str(g, "general.name");
    for (size_t i = 0; i + 4 <= name.n; i++) {
        const char *p = name.at + i;
        if ((p[0] | 32) == 'p' && (p[1] | 32) == 'h' && (p[2] | 32) == 'i'
            && (p[3] == '3' || (p[3] == '-' && i + 5 <= name.n && p[4] == '3')))
            return true;
    }
    return false;
}

rx_tokenizer *rx_tokenizer_open(relax_context *ctx, rx_arena *a, const rx_gguf *g)
{
    rx_tokenizer *t = RX_NEW(a, rx_tokenizer);
    t->ctx = ctx;
    t->arena = a;
    rx_view model = rx_gguf_get_str(g, "tokenizer.ggml.model");
    bool spm = rx_view_is(model, "llama");
    if (!spm && !rx_view_is(model, "gpt2"))
        rx_fail_hint(ctx, RXE_UNSUPPORTED, NULL, "tokenize outside and pass token ids",
                     "the tokenizer '%.*s' is not known", (int)RX_MIN(model.n, 64), model.n ? model.at : "");
    read_vocabulary(t, g);
    t->bos = special_id(t, g, "tokenizer.ggml.bos_token_id", spm ? 1 : -1);
    t->eos = special_id(t, g, "tokenizer.ggml.eos_token_id", spm ? 2 : -1);
    t->unk = special_id(t, g, "tokenizer.ggml.unknown_token_id", spm ? 0 : -1);
    t->add_bos = t->add_space = spm;
    if (spm)
        rx_spm_init(t, g);
    else
        rx_bpe_init(t, g);
    t->add_bos = rx_gguf_get_bool(g, "tokenizer.ggml.add_bos_token", t->add_bos);
    t->add_eos = rx_gguf_get_bool(g, "tokenizer.ggml.add_eos_token", false);
    t->add_space = rx_gguf_get_bool(g, "tokenizer.ggml.add_space_prefix", t->add_space) && spm;
    t->strip_after = spm && is_phi3(g);
    rx_special_init(t);
    read_ends(t, g);
    return t;
}

void rx_tokenizer_encode(const rx_tokenizer *t, const char *text, size_t n, uint32_t flags, rx_arena *a, rx_ids *out)
{
    bool special = flags & RX_TOK_ADD_SPECIAL;
    if (n >= (size_t)1 << 30)
        rx_fail(t->ctx, RXE_LIMIT, NULL, "a text of %llu bytes is too long to tokenize", (unsigned long long)n);
    size_t valid = rx_utf8_valid(text, n);
    if (valid != n)
        rx_fail(t->ctx, RXE_BAD_VALUE, NULL, "the text is not UTF-8 at byte %llu", (unsigned long long)valid);
    rx_arena *scratch = rx_scratch(&t->ctx->heap);
    rx_pieces pieces = {0};
    rx_special_split(t, (rx_view){text, n}, flags & RX_TOK_PARSE_SPECIAL, scratch, &pieces);
    if (special && t->add_bos && t->bos >= 0)
        rx_push(a, out, t->bos);
    rx_bpe_state *bpe = t->bpe ? rx_bpe_begin(t, scratch, a, out) : NULL;
    rx_spm_state *spm = t->bpe ? NULL : rx_spm_begin(t, scratch, a, out);
    bool after_special = true;
    for (uint32_t i = 0; i < pieces.n; i++) {
        rx_piece p = pieces.at[i];
        if (p.id >= 0)
            rx_push(a, out, p.id);
        else if (bpe)
            rx_bpe_encode(bpe, p.text);
        else
            rx_spm_encode(spm, p.text, t->add_space && after_special);
        after_special = p.id >= 0;
    }
    if (special && t->add_eos && t->eos >= 0)
        rx_push(a, out, t->eos);
}

int32_t rx_tokenizer_size(const rx_tokenizer *t) { return (int32_t)t->vocab.n; }
int32_t rx_tokenizer_bos(const rx_tokenizer *t) { return t->bos; }
int32_t rx_tokenizer_eos(const rx_tokenizer *t) { return t->eos; }
int32_t rx_tokenizer_unk(const rx_tokenizer *t) { return t->unk; }
bool rx_tokenizer_adds_bos(const rx_tokenizer *t) { return t->add_bos && t->bos >= 0; }

bool rx_tokenizer_is_end(const rx_tokenizer *t, int32_t id)
{
    for (uint32_t i = 0; i < t->n_ends; i++)
        if (t->ends[i] == id)
            return true;
    return false;
}

bool rx_tokenizer_is_control(const rx_tokenizer *t, int32_t id)
{
    return id >= 0 && (uint32_t)id < t->vocab.n && (t->types[id] == TYPE_CONTROL || t->types[id] == TYPE_UNKNOWN);
}

rx_view rx_tokenizer_text(const rx_tokenizer *t, int32_t id)
{
    return id >= 0 && (uint32_t)id < t->vocab.n ? t->vocab.at[id] : (rx_view){0};
}

int32_t rx_tokenizer_find(const rx_tokenizer *t, const char *text, size_t n)
{
    return (int32_t)rx_names_find(&t->vocab, text, n);
}
