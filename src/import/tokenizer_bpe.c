/* tokenizer_bpe.c: byte-level byte-pair encoding (GGUF's `gpt2` model).
 *
 * A text is cut into words by the pre-tokenizer's pattern (PCRE2, UTF mode); the bytes of a word, each spelled by one
 * code point of the GPT-2 alphabet, are its first symbols; the pair of neighbours with the lowest merge rank is joined,
 * the leftmost first, until no pair has one. Pairs wait in a priority queue, so a word of n bytes costs O(n log n).
 * Merges are kept as (id, id) -> rank; a merge whose parts or result are no tokens can lead to no token and is left
 * out. PCRE2's memory comes from the arenas (its frees do nothing: the arena goes as a whole); a failed allocation
 * unwinds through it, which is safe because it holds nothing else. */
#include "import/tokenizer.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

/* Unicode's White_Space, to stand in a class: PCRE2's own \s has U+180E as well */
#define WS "\\t-\\r \\x{85}\\x{A0}\\x{1680}\\x{2000}-\\x{200A}\\x{2028}\\x{2029}\\x{202F}\\x{205F}\\x{3000}"
#define SPACES "[" WS "]+(?![^" WS "])|[" WS "]+"
#define SUFFIXES "'s|'t|'re|'ve|'m|'ll|'d"
#define PRE_GPT2 SUFFIXES "| ?\\p{L}+| ?\\p{N}+| ?[^" WS "\\p{L}\\p{N}]+|" SPACES
#define PRE_TIKTOKEN(digits) "(?i:" SUFFIXES ")|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|" digits \
    "| ?[^" WS "\\p{L}\\p{N}]+[\\r\\n]*|[" WS "]*[\\r\\n]+|" SPACES
#define PRE_LLAMA3 PRE_TIKTOKEN("\\p{N}{1,3}")
#define PRE_QWEN2 PRE_TIKTOKEN("\\p{N}")
#define PRE_DIGIT "\\p{N}"

typedef struct pretok { const char *name, *pattern[2]; bool whole_words, add_bos; } pretok;
static const pretok pretoks[] = {
#define X(name, first, second, whole, bos) {name, {first, second}, whole, bos},
#include "import/pretok.def"
#undef X
};

struct rx_bpe {
    rx_map ranks;                      /* left id << 32 | right id -> rank + 1 */
    uint32_t *joined;                  /* by rank: the token of the pair */
    pcre2_code *pattern[2];            /* [1] may be NULL */
    bool whole_words;
};

static bool prints(uint32_t b)
{
    return (b >= 33 && b <= 126) || (b >= 161 && b <= 172) || (b >= 174 && b <= 255);
}

uint32_t rx_bpe_char(uint8_t byte)
{
    uint32_t rank = 0;                 /* among the bytes that do not print themselves */
    if (prints(byte))
        return byte;
    for (uint32_t b = 0; b < byte; b++)
        rank += !prints(b);
    return 256 + rank;
}

int rx_bpe_byte(uint32_t cp)
{
    if (cp < 256)
        return prints(cp) ? (int)cp : -1;
    for (uint32_t b = 0, rank = 0; b < 256; b++)
        if (!prints(b) && 256 + rank++ == cp)
            return (int)b;
    return -1;
}

/* a byte spelled in the alphabet: 1 or 2 bytes of UTF-8 */
static unsigned spell(uint8_t byte, char *p)
{
    uint32_t c = rx_bpe_char(byte);
    if (c < 0x80) {
        p[0] = (char)c;
        return 1;
    }
    p[0] = (char)(0xC0 | c >> 6);
    p[1] = (char)(0x80 | (c & 63));
    return 2;
}

static void *pcre_alloc(size_t n, void *arena)
{
    return rx_arena_alloc(arena, n, 16);
}

static void pcre_free(void *p, void *arena)
{
    (void)p;
    (void)arena;
}

static pcre2_code *compile(rx_tokenizer *t, const char *pattern)
{
    int err;
    size_t at;
    if (!pattern)
        return NULL;
    pcre2_general_context *gc = pcre2_general_context_create(pcre_alloc, pcre_free, t->arena);
    pcre2_compile_context *cc = pcre2_compile_context_create(gc);
    pcre2_code *code = pcre2_compile((PCRE2_SPTR)pattern, PCRE2_ZERO_TERMINATED, PCRE2_UTF, &err, &at, cc);
    if (!code)
        rx_fail(t->ctx, RXE_INTERNAL, NULL, "PCRE2 refuses a pre-tokenizer's pattern: error %d at %llu", err,
                (unsigned long long)at);
    return code;
}

static const pretok *find_pretok(rx_tokenizer *t, const rx_gguf *g)
{
    rx_view name = rx_gguf_get_str(g, "tokenizer.ggml.pre");
    if (!name.at)
        name = (rx_view){"default", 7};
    for (size_t i = 0; i < RX_COUNT(pretoks); i++)
        if (rx_view_is(name, pretoks[i].name))
            return &pretoks[i];
    rx_fail_hint(t->ctx, RXE_UNSUPPORTED, NULL, "tokenize outside and pass token ids",
                 "the pre-tokenizer '%.*s' is not known", (int)RX_MIN(name.n, 64), name.at);
}

static void add_merge(rx_tokenizer *t, rx_view m, uint32_t rank, rx_buf *both)
{
    const char *sp = m.n > 1 ? memchr(m.at + 1, ' ', m.n - 1) : NULL;
    if (!sp)
        rx_fail(t->ctx, RXE_FILE_CORRUPT, NULL, "GGUF: tokenizer.ggml.merges: number %u is no pair", rank);
    size_t n = (size_t)(sp - m.at);
    both->n = 0;
    rx_putn(both, m.at, n);
    rx_putn(both, sp + 1, m.n - n - 1);
    int64_t l = rx_names_find(&t->vocab, m.at, n), r = rx_names_find(&t->vocab, sp + 1, m.n - n - 1);
    int64_t j = rx_names_find(&t->vocab, both->at, both->n);
    uint64_t key = (uint64_t)l << 32 | (uint64_t)r;
    if (l < 0 || r < 0 || j < 0 || rx_map_has(&t->bpe->ranks, key))
        return;
    t->bpe->joined[rank] = (uint32_t)j;
    rx_map_put(&t->bpe->ranks, key, (void *)(uintptr_t)(rank + 1));
}

void rx_bpe_init(rx_tokenizer *t, const rx_gguf *g)
{
    rx_gguf_array arr;
    const pretok *pre = find_pretok(t, g);
    rx_bpe *b = t->bpe = RX_NEW(t->arena, rx_bpe);
    b->whole_words = pre->whole_words;
    t->add_bos = pre->add_bos;
    for (int i = 0; i < 2; i++)
        b->pattern[i] = compile(t, pre->pattern[i]);
    for (unsigned i = 0; i < 256; i++) {
        char p[2];
        t->byte_ids[i] = (int32_t)rx_names_find(&t->vocab, p, spell((uint8_t)i, p));
    }
    rx_map_init(&b->ranks, t->arena);
    if (!rx_gguf_get_array(g, "tokenizer.ggml.merges", &arr))
        rx_fail(t->ctx, RXE_FILE_CORRUPT, NULL, "GGUF: the key 'tokenizer.ggml.merges' is missing");
    rx_arena *scratch = rx_scratch(&t->ctx->heap);
    rx_view *merges = rx_gguf_array_strings(g, &arr, scratch);
    rx_buf both;
    rx_buf_init(&both, scratch);
    b->joined = RX_NEWN(t->arena, uint32_t, (size_t)arr.n);
    for (uint32_t i = 0; i < arr.n; i++)
        add_merge(t, merges[i], i, &both);
}

/* id -1: a byte without token; -2: joined to the left */
typedef struct symbol { int32_t id, prev, next; uint8_t byte; } symbol;

struct rx_bpe_state {
    const rx_tokenizer *t;
    rx_arena *scratch, *a;
    rx_ids *out;
    RX_VEC(symbol) sym;
    rx_pq q;
    rx_buf spelled;
    pcre2_match_data *md;
    pcre2_match_context *mc;
};
typedef rx_bpe_state bpe;

static void offer(bpe *s, int32_t left)
{
    int32_t right = left < 0 ? -1 : s->sym.at[left].next;
    if (right < 0 || s->sym.at[left].id < 0 || s->sym.at[right].id < 0)
        return;
    uint64_t pair = (uint64_t)s->sym.at[left].id << 32 | (uint64_t)s->sym.at[right].id;
    uintptr_t rank = (uintptr_t)rx_map_get(&s->t->bpe->ranks, pair);
    if (rank)
        rx_pq_push(&s->q, (rx_heap_item){rank - 1, (uint64_t)left, pair});
}

static void join(bpe *s)
{
    rx_heap_item x;
    while (rx_pq_pop(&s->q, &x)) {
        int32_t left = (int32_t)x.order, right = s->sym.at[left].next;
        symbol *l = &s->sym.at[left];
        if (right < 0 || l->id != (int32_t)(x.data >> 32) || s->sym.at[right].id != (int32_t)(uint32_t)x.data)
            continue;
        symbol *r = &s->sym.at[right];
        l->id = (int32_t)s->t->bpe->joined[x.key];
        r->id = -2;
        l->next = r->next;
        if (r->next >= 0)
            s->sym.at[r->next].prev = left;
        offer(s, l->prev);
        offer(s, left);
    }
}

/* the token that is the whole word, -1 if none */
static int64_t whole_word(bpe *s, rx_view w)
{
    if (!s->t->bpe->whole_words || w.n > s->t->longest)
        return -1;
    s->spelled.n = 0;
    for (size_t i = 0; i < w.n; i++) {
        char p[2];
        unsigned n = spell((uint8_t)w.at[i], p);
        rx_putn(&s->spelled, p, n);
    }
    return rx_names_find(&s->t->vocab, s->spelled.at, s->spelled.n);
}

static void encode_word(bpe *s, rx_view w)
{
    int64_t whole = whole_word(s, w);
    if (whole >= 0) {
        rx_push(s->a, s->out, (int32_t)whole);
        return;
    }
    s->sym.n = 0;
    for (size_t i = 0; i < w.n; i++) {
        uint8_t b = (uint8_t)w.at[i];
        int32_t k = (int32_t)i;
        rx_push(s->scratch, &s->sym, ((symbol){s->t->byte_ids[b], k - 1, i + 1 == w.n ? -1 : k + 1, b}));
    }
    for (uint32_t i = 0; i < s->sym.n; i++)
        offer(s, (int32_t)i);
    join(s);
    for (int32_t i = 0; i >= 0; i = s->sym.at[i].next) {
        int32_t id = s->sym.at[i].id < 0 ? s->t->unk : s->sym.at[i].id;
        if (id >= 0)
            rx_push(s->a, s->out, id);
    }
}

/* Cuts w by pattern k and what comes after it; pieces without a further pattern are words. */
static void encode_text(bpe *s, rx_view w, int k)
{
    const pcre2_code *code = k < 2 ? s->t->bpe->pattern[k] : NULL;
    if (!code) {
        encode_word(s, w);
        return;
    }
    size_t at = 0, done = 0;           /* bytes before `done` are encoded */
    while (at < w.n) {
        int rc = pcre2_match(code, (PCRE2_SPTR)w.at, w.n, at, PCRE2_NO_UTF_CHECK, s->md, s->mc);
        if (rc == PCRE2_ERROR_NOMATCH)
            break;
        if (rc < 0)
            rx_fail(s->t->ctx, RXE_LIMIT, NULL, "PCRE2 cannot cut the text into words: error %d", rc);
        const size_t *ov = pcre2_get_ovector_pointer(s->md);
        size_t from = ov[0], to = ov[1];
        if (from > done)
            encode_text(s, (rx_view){w.at + done, from - done}, k + 1);
        if (to > from)
            encode_text(s, (rx_view){w.at + from, to - from}, k + 1);
        done = to;
        at = RX_MAX(to, at + 1);       /* no pattern here matches the empty text */
    }
    if (done < w.n)
        encode_text(s, (rx_view){w.at + done, w.n - done}, k + 1);
}

rx_bpe_state *rx_bpe_begin(const rx_tokenizer *t, rx_arena *scratch, rx_arena *a, rx_ids *out)
{
    bpe *s = RX_NEW(scratch, bpe);
    s->t = t;
    s->scratch = s->q.a = scratch;
    s->a = a;
    s->out = out;
    rx_buf_init(&s->spelled, scratch);
    pcre2_general_context *gc = pcre2_general_context_create(pcre_alloc, pcre_free, scratch);
    s->md = pcre2_match_data_create(1, gc);
    s->mc = pcre2_match_context_create(gc);
    pcre2_set_match_limit(s->mc, UINT32_MAX);  /* the patterns are ours and need linear time */
    pcre2_set_heap_limit(s->mc, UINT32_MAX);
    return s;
}

void rx_bpe_encode(rx_bpe_state *s, rx_view text)
{
    encode_text(s, text, 0);
}
