/* map.c: a hash map from 64-bit keys, open addressing with linear probing over indices into the entries, which
 * keep the order of insertion. slots[i] is 0 (free) or 1 + index of the entry. At most half the slots are used.
 * Entries are never removed. State is changed only after the allocations of a call succeeded. */
#include "base/base.h"

void rx_map_init(rx_map *m, rx_arena *a)
{
    memset(m, 0, sizeof *m);
    m->a = a;
}

/* the slot that holds the key, or the free slot where it belongs */
static uint32_t *find(uint32_t *slots, uint32_t nslots, const rx_map_entry *e, uint64_t key)
{
    uint32_t i = (uint32_t)(rx_mix(0, key) >> 16) & (nslots - 1);
    while (slots[i] && e[slots[i] - 1].key != key)
        i = (i + 1) & (nslots - 1);
    return &slots[i];
}

static const rx_map_entry *entry(const rx_map *m, uint64_t key)
{
    if (!m->nslots)
        return NULL;
    uint32_t s = *find(m->slots, m->nslots, m->e, key);
    return s ? &m->e[s - 1] : NULL;
}

void *rx_map_get(const rx_map *m, uint64_t key)
{
    const rx_map_entry *e = entry(m, key);
    return e ? e->val : NULL;
}

bool rx_map_has(const rx_map *m, uint64_t key)
{
    return entry(m, key) != NULL;
}

static void grow(rx_map *m)
{
    if (m->nslots > UINT32_MAX / 4)
        rx_heap_oom(m->a->heap);
    uint32_t nslots = m->nslots ? m->nslots * 2 : 16;
    uint32_t *slots = RX_NEWN(m->a, uint32_t, nslots);
    for (uint32_t i = 0; i < m->n; i++)
        *find(slots, nslots, m->e, m->e[i].key) = i + 1;
    m->slots = slots;
    m->nslots = nslots;
}

void rx_map_put(rx_map *m, uint64_t key, void *val)
{
    rx_map_entry *old = (rx_map_entry *)entry(m, key);
    if (old) {
        old->val = val;
        return;
    }
    rx_vec_room(m->a, (void **)&m->e, m->n, &m->cap, sizeof *m->e);
    if ((m->n + 1) * 2 > m->nslots)
        grow(m);
    m->e[m->n] = (rx_map_entry){key, val};
    *find(m->slots, m->nslots, m->e, key) = ++m->n;
}
