/* vec.c: growable arrays in an arena: doubling, the old array stays in the arena until it is freed. */
#include "base/base.h"

void rx_vec_room(rx_arena *a, void **at, uint32_t n, uint32_t *cap, size_t size)
{
    if (n < *cap)
        return;
    if (n > UINT32_MAX / 2)
        rx_heap_oom(a->heap);
    uint32_t more = n < 4 ? 8 : n * 2;
    void *p = rx_arena_array(a, more, size, _Alignof(max_align_t));
    if (n)
        memcpy(p, *at, n * size);
    *at = p;
    *cap = more;
}
