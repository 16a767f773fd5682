/* tokenizer_spm.c: tokenizer of SentencePiece models with scores (GGUF's `llama` model).
 *
 * Spaces become U+2581; the text is cut into code points; the neighbours whose union is the token of the best
 * score are joined, the leftmost first among equals, until none is left. What is no token then is spelled in
 * bytes. Joins wait in a priority queue; entries whose symbols have changed since are dropped when they come out, so
 * n code points cost O(n log n). */
#include "import/tokenizer.h"

#define LOWER_BLOCK "\xE2\x96\x81"     /* U+2581 stands for a space */

typedef struct symbol { uint32_t at, n; int32_t prev, next; } symbol;    /* n == 0: joined to the left */

struct rx_spm_state {
    const rx_tokenizer *t;
    rx_arena *scratch, *a;
    rx_ids *out;
    rx_buf text;
    RX_VEC(symbol) sym;
    rx_pq q;
};
typedef rx_spm_state spm;

static int32_t byte_token(const rx_tokenizer *t, unsigned b)
{
    static const char hex[] = "0123456789ABCDEF";
    char name[6] = {'<', '0', 'x', hex[b >> 4], hex[b & 15], '>'}, one = (char)b;
    int64_t id = rx_names_find(&t->vocab, name, 6);
    return (int32_t)(id >= 0 ? id : rx_names_find(&t->vocab, &one, 1));
}

void rx_spm_init(rx_tokenizer *t, const rx_gguf *g)
{
    rx_gguf_array arr;
    t->scores = RX_NEWN(t->arena, float, t->vocab.n);
    if (rx_gguf_get_array(g, "tokenizer.ggml.scores", &arr)) {
        for (uint32_t i = 0; i < t->vocab.n; i++)
            t->scores[i] = (float)rx_gguf_array_float(g, &arr, i);
    }
    for (unsigned b = 0; b < 256; b++)
        t->byte_ids[b] = byte_token(t, b);
}

/* ascending key for descending scores; -0 and 0 are one */
static uint64_t score_key(float score)
{
    uint32_t bits;
    score += 0.0f;
    memcpy(&bits, &score, 4);
    bits ^= bits >> 31 ? UINT32_MAX : 0x80000000u;
    return UINT32_MAX - bits;
}

static void offer(spm *s, int32_t left, int32_t right)
{
    if (left < 0 || right < 0)
        return;
    uint64_t n = (uint64_t)s->sym.at[left].n + s->sym.at[right].n;
    if (n > s->t->longest)
        return;
    int64_t id = rx_names_find(&s->t->vocab, s->text.at + s->sym.at[left].at, (size_t)n);
    if (id >= 0)
        rx_pq_push(&s->q, (rx_heap_item){score_key(s->t->scores[id]), (uint64_t)left, (uint64_t)right << 32 | n});
}

static void prepare(spm *s, rx_view text, bool space)
{
    s->text.n = 0;
    if (space)
        rx_puts(&s->text, LOWER_BLOCK);
    for (size_t i = 0, run; i < text.n; i += run) {
        for (run = 0; i + run < text.n && text.at[i + run] != ' ';)
            run++;
        rx_putn(&s->text, text.at + i, run);
        if (i + run < text.n) {
            rx_puts(&s->text, LOWER_BLOCK);
            run++;
        }
    }
}

static void cut(spm *s)
{
    s->sym.n = 0;
    for (size_t i = 0; i < s->text.n;) {
        size_t start = i++;
        while (i < s->text.n && ((unsigned char)s->text.at[i] & 0xC0) == 0x80)
            i++;
        int32_t k = (int32_t)s->sym.n;
        rx_push(s->scratch, &s->sym, ((symbol){(uint32_t)start, (uint32_t)(i - start), k - 1, k + 1}));
    }
    s->sym.at[s->sym.n - 1].next = -1;
}

static void join(spm *s)
{
    rx_heap_item x;
    while (rx_pq_pop(&s->q, &x)) {
        int32_t left = (int32_t)x.order, right = (int32_t)(x.data >> 32);
        symbol *l = &s->sym.at[left], *r = &s->sym.at[right];
        if (l->n == 0 || r->n == 0 || l->n + r->n != (uint32_t)x.data)
            continue;
        l->n += r->n;
        r->n = 0;
        l->next = r->next;
        if (r->next >= 0)
            s->sym.at[r->next].prev = left;
        offer(s, l->prev, left);
        offer(s, left, l->next);
    }
}

static void spell(spm *s, const symbol *y)
{
    for (uint32_t i = 0; i < y->n; i++) {
        int32_t id = s->t->byte_ids[(unsigned char)s->text.at[y->at + i]];
        if (id < 0)
            id = s->t->unk;
        if (id >= 0)
            rx_push(s->a, s->out, id);
    }
}

rx_spm_state *rx_spm_begin(const rx_tokenizer *t, rx_arena *scratch, rx_arena *a, rx_ids *out)
{
    spm *s = RX_NEW(scratch, spm);
    s->t = t;
    s->scratch = s->q.a = scratch;
    s->a = a;
    s->out = out;
    rx_buf_init(&s->text, scratch);
    return s;
}

void rx_spm_encode(rx_spm_state *s, rx_view text, bool space)
{
    prepare(s, text, space);
    if (s->text.n == 0)
        return;
    cut(s);
    for (uint32_t i = 1; i < s->sym.n; i++)
        offer(s, (int32_t)i - 1, (int32_t)i);
    join(s);
    for (int32_t i = 0; i >= 0; i = s->sym.at[i].next) {
        const symbol *y = &s->sym.at[i];
        int64_t id = rx_names_find(&s->t->vocab, s->text.at + y->at, y->n);
        if (id >= 0)
            rx_push(s->a, s->out, (int32_t)id);
        else
            spell(s, y);
    }
}
