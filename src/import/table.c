/* table.c: what the readers of model files share: an index of names, spans of a file, a priority queue.
 *
 * Input: views into untrusted bytes whose counts were already checked against the file. The index is open addressing
 * with linear probing over a table at most half full; sorting is heap sort, so no input makes it quadratic and it
 * needs no memory. */
#include "import/import.h"

void rx_names_init(rx_names *t, rx_arena *a, uint32_t room)
{
    uint32_t nslots = 4;
    while (nslots / 2 < room && nslots < (1u << 31))
        nslots *= 2;
    *t = (rx_names){.room = room, .nslots = nslots};
    t->at = RX_NEWN(a, rx_view, room);
    t->slots = RX_NEWN(a, uint32_t, nslots);
}

/* the slot that holds the name, or the free one where it belongs */
static uint32_t slot_of(const rx_names *t, const char *p, size_t n)
{
    uint32_t i = (uint32_t)rx_hash(p, n, 0) & (t->nslots - 1);
    for (;; i = (i + 1) & (t->nslots - 1)) {
        uint32_t e = t->slots[i];
        if (!e)
            return i;
        const rx_view *v = &t->at[e - 1];
        if (v->n == n && (n == 0 || memcmp(v->at, p, n) == 0))
            return i;
    }
}

int64_t rx_names_find(const rx_names *t, const char *p, size_t n)
{
    if (t->n == 0)
        return -1;
    return (int64_t)t->slots[slot_of(t, p, n)] - 1;
}

bool rx_names_add(rx_names *t, const char *p, size_t n)
{
    uint32_t s = slot_of(t, p, n);
    bool fresh = t->slots[s] == 0;
    t->at[t->n++] = (rx_view){p, n};
    t->slots[s] = t->n;
    return fresh;
}

static bool span_less(const rx_span *x, const rx_span *y)
{
    return x->begin != y->begin ? x->begin < y->begin : x->end < y->end;
}

static void span_sift(rx_span *s, size_t i, size_t n)
{
    for (size_t c; (c = 2 * i + 1) < n; i = c) {
        if (c + 1 < n && span_less(&s[c], &s[c + 1]))
            c++;
        if (!span_less(&s[i], &s[c]))
            return;
        rx_span t = s[i];
        s[i] = s[c];
        s[c] = t;
    }
}

void rx_spans_sort(rx_span *s, size_t n)
{
    size_t i = 1;
    while (i < n && !span_less(&s[i], &s[i - 1]))
        i++;
    if (i >= n)
        return;                        /* writers put tensors in order */
    for (i = n / 2; i-- > 0;)
        span_sift(s, i, n);
    for (i = n; i-- > 1;) {
        rx_span t = s[0];
        s[0] = s[i];
        s[i] = t;
        span_sift(s, 0, i);
    }
}

static bool item_less(const rx_heap_item *x, const rx_heap_item *y)
{
    return x->key != y->key ? x->key < y->key : x->order < y->order;
}

void rx_pq_push(rx_pq *q, rx_heap_item x)
{
    rx_push(q->a, &q->v, x);
    rx_heap_item *h = q->v.at;
    uint32_t i = q->v.n - 1;
    for (; i > 0 && item_less(&x, &h[(i - 1) / 2]); i = (i - 1) / 2)
        h[i] = h[(i - 1) / 2];
    h[i] = x;
}

bool rx_pq_pop(rx_pq *q, rx_heap_item *x)
{
    if (q->v.n == 0)
        return false;
    rx_heap_item *h = q->v.at;
    *x = h[0];
    rx_heap_item last = h[--q->v.n];
    uint32_t i = 0;
    for (uint32_t c; (c = 2 * i + 1) < q->v.n; i = c) {
        if (c + 1 < q->v.n && item_less(&h[c + 1], &h[c]))
            c++;
        if (!item_less(&h[c], &last))
            break;
        h[i] = h[c];
    }
    h[i] = last;
    return true;
}
