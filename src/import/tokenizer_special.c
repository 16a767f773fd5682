/* tokenizer_special.c: cuts control and user-defined tokens out of a text before the tokenizer proper sees it.
 *
 * Rule: longest tokens first over the whole text, each at its leftmost places that are still free; tokens of one length
 * by id. Algorithm: the tokens are sorted by their bytes once; at each place of the text the sorted range is narrowed
 * byte by byte, which yields all tokens that stand there. Matches of a run of overlapping ones go through a priority
 * queue in the order of the rule. As no later match is longer than an earlier one, it overlaps a taken one exactly if
 * its first or last byte is taken. */
#include "import/tokenizer.h"

static int compare(rx_view x, rx_view y)
{
    int c = memcmp(x.at, y.at, RX_MIN(x.n, y.n));
    return c ? c : x.n < y.n ? -1 : x.n > y.n;
}

/* merge sort of ids by text, equal texts by id */
static void sort_ids(const rx_tokenizer *t, uint32_t *ids, uint32_t *tmp, uint32_t n)
{
    if (n < 2)
        return;
    uint32_t half = n / 2, i = 0, j = half, k = 0;
    sort_ids(t, ids, tmp, half);
    sort_ids(t, ids + half, tmp, n - half);
    while (i < half || j < n) {
        bool first = j == n || (i < half && compare(t->vocab.at[ids[i]], t->vocab.at[ids[j]]) <= 0);
        tmp[k++] = first ? ids[i++] : ids[j++];
    }
    memcpy(ids, tmp, n * sizeof *ids);
}

void rx_special_init(rx_tokenizer *t)
{
    uint32_t n = 0;
    for (uint32_t id = 0; id < t->vocab.n; id++)
        n += t->types[id] >= TYPE_UNKNOWN && t->types[id] <= TYPE_USER && t->vocab.at[id].n > 0;
    t->special = RX_NEWN(t->arena, uint32_t, n);
    for (uint32_t id = 0; id < t->vocab.n; id++)
        if (t->types[id] >= TYPE_UNKNOWN && t->types[id] <= TYPE_USER && t->vocab.at[id].n > 0)
            t->special[t->n_special++] = id;
    sort_ids(t, t->special, RX_NEWN(rx_scratch(&t->ctx->heap), uint32_t, n), n);
    uint32_t i = 0;
    for (uint32_t b = 0; b <= 256; b++) {
        while (i < n && (uint8_t)t->vocab.at[t->special[i]].at[0] < b)
            i++;
        t->special_first[b] = i;
    }
}

typedef struct splitter {
    const rx_tokenizer *t;
    rx_view text;
    bool parse;
    rx_pq q;
    int32_t *owner;                    /* by byte of the text: 0 free, id + 1 where a token begins, -1 inside one */
} splitter;

/* first of special[lo..hi) whose byte at `depth` is not below b */
static uint32_t lower_bound(const rx_tokenizer *t, uint32_t lo, uint32_t hi, uint32_t depth, unsigned b)
{
    while (lo < hi) {
        uint32_t mid = lo + (hi - lo) / 2;
        if ((uint8_t)t->vocab.at[t->special[mid]].at[depth] < b)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

/* Queues all tokens that stand at byte i; returns the end of the longest, i if none. */
static size_t find_at(splitter *s, size_t i)
{
    const rx_tokenizer *t = s->t;
    uint8_t b = (uint8_t)s->text.at[i];
    uint32_t lo = t->special_first[b], hi = t->special_first[b + 1];
    size_t end = i;
    for (uint32_t depth = 1; lo < hi; depth++) {
        for (; lo < hi && t->vocab.at[t->special[lo]].n == depth; lo++) {
            uint32_t id = t->special[lo];
            if (!s->parse && t->types[id] != TYPE_USER)
                continue;
            rx_pq_push(&s->q, (rx_heap_item){(uint64_t)(UINT32_MAX - depth) << 32 | id, i, depth});
            end = i + depth;
        }
        if (i + depth == s->text.n)
            break;
        b = (uint8_t)s->text.at[i + depth];
        lo = lower_bound(t, lo, hi, depth, b);
        hi = lower_bound(t, lo, hi, depth, b + 1u);
    }
    return end;
}

/* gives the queued matches their places */
static void settle(splitter *s)
{
    rx_heap_item m;
    while (rx_pq_pop(&s->q, &m)) {
        size_t i = (size_t)m.order, n = (size_t)m.data;
        if (s->owner[i] || s->owner[i + n - 1])
            continue;
        for (size_t k = 1; k < n; k++)
            s->owner[i + k] = -1;
        s->owner[i] = (int32_t)(uint32_t)m.key + 1;
    }
}

static bool swallows_space(const rx_tokenizer *t, int32_t id)
{
    static const char *const keep[] = {"<unk>", "<s>", "<|endoftext|>"};
    if (!t->strip_after)
        return false;
    for (size_t i = 0; i < RX_COUNT(keep); i++)
        if (rx_view_is(t->vocab.at[id], keep[i]))
            return false;
    return true;
}

static void emit(const splitter *s, rx_arena *scratch, rx_pieces *out)
{
    rx_view text = s->text;
    for (size_t i = 0; i < text.n;) {
        size_t start = i;
        if (s->owner[i] > 0) {
            int32_t id = s->owner[i] - 1;
            i += s->t->vocab.at[id].n;
            rx_push(scratch, out, ((rx_piece){{text.at + start, i - start}, id}));
            while (swallows_space(s->t, id) && i < text.n && !s->owner[i] && memchr(" \t\n\v\f\r", text.at[i], 6))
                i++;
            continue;
        }
        while (i < text.n && s->owner[i] == 0)
            i++;
        rx_push(scratch, out, ((rx_piece){{text.at + start, i - start}, -1}));
    }
}

void rx_special_split(const rx_tokenizer *t, rx_view text, bool parse, rx_arena *scratch, rx_pieces *out)
{
    splitter s = {.t = t, .text = text, .parse = parse, .q = {.a = scratch}};
    s.owner = RX_NEWN(scratch, int32_t, text.n);
    size_t end = 0;                    /* of the current run of overlapping matches */
    for (size_t i = 0; i < text.n; i++) {
        if (i == end)
            settle(&s);
        size_t e = find_at(&s, i);
        end = RX_MAX(RX_MAX(end, e), i + 1);
    }
    settle(&s);
    emit(&s, scratch, out);
}
