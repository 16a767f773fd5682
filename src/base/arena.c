/* arena.c: memory that is dropped as a whole.
 *
 * Bump allocation in blocks of the heap: the first has 4 KiB, each further one doubles up to 1 MiB; what would
 * take more than a quarter of a block gets a block of its own behind the current one, so that the current one's
 * rest stays in use. Blocks are 64-byte aligned, so padding (and `bytes`) never depends on addresses.
 * Under AddressSanitizer the free part of a block is poisoned, with a gap between two allocations. */
#include "base/base.h"

#if defined(__SANITIZE_ADDRESS__)
#define ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define ASAN 1
#endif
#endif
#ifdef ASAN
#include <sanitizer/asan_interface.h>
#define GAP 16
#else
#define ASAN_POISON_MEMORY_REGION(p, n) ((void)(p), (void)(n))
#define ASAN_UNPOISON_MEMORY_REGION(p, n) ((void)(p), (void)(n))
#define GAP 0
#endif

enum { BLOCK_ALIGN = 64, BLOCK_MIN = 4096, BLOCK_MAX = 1 << 20 };

struct rx_block {
    rx_block *next;
    size_t size;                     /* of the whole block */
    size_t grown;                    /* size of the newest shared block, to double from */
    char pad[BLOCK_ALIGN - 3 * sizeof(size_t)];
};

void rx_arena_init(rx_arena *a, rx_heap *h)
{
    memset(a, 0, sizeof *a);
    a->heap = h;
}

void rx_arena_free(rx_arena *a)
{
    while (a->blocks) {
        rx_block *b = a->blocks;
        a->blocks = b->next;
        ASAN_UNPOISON_MEMORY_REGION(b, b->size);
        rx_heap_free(a->heap, b, b->size);
    }
    a->at = a->end = NULL;
    a->bytes = 0;
}

static rx_block *block_new(rx_arena *a, size_t size)
{
    rx_block *b = rx_heap_alloc(a->heap, size, BLOCK_ALIGN);
    if (!b)
        rx_heap_oom(a->heap);
    b->size = size;
    a->bytes += size;
    ASAN_POISON_MEMORY_REGION(b + 1, size - sizeof *b);
    return b;
}

/* n is padded; gives memory outside the current block */
static char *alloc_slow(rx_arena *a, size_t n)
{
    size_t grown = a->blocks ? RX_MIN(a->blocks->grown * 2, (size_t)BLOCK_MAX) : (size_t)BLOCK_MIN;
    size_t need;
    if (!rx_size_add(n, sizeof(rx_block) + GAP, &need))
        rx_heap_oom(a->heap);
    if (need > grown / 4) {
        rx_block *b = block_new(a, need);
        rx_block **at = a->blocks ? &a->blocks->next : &a->blocks;
        b->grown = BLOCK_MIN / 2;
        b->next = *at;
        *at = b;
        return (char *)(b + 1);
    }
    rx_block *b = block_new(a, grown);
    b->grown = grown;
    b->next = a->blocks;
    a->blocks = b;
    a->at = (char *)(b + 1);
    a->end = (char *)b + b->size;
    char *p = a->at;
    a->at += n;
    return p;
}

void *rx_arena_alloc(rx_arena *a, size_t n, size_t align)
{
    size_t padded;
    if (n > PTRDIFF_MAX || !rx_size_add(n, GAP, &padded))
        rx_heap_oom(a->heap);
    size_t skip = (size_t)(-(uintptr_t)a->at) & (align - 1);
    size_t room = (size_t)(a->end - a->at);
    char *p;
    if (a->at && skip <= room && padded <= room - skip) {
        p = a->at + skip;
        a->at = p + padded;
    } else {
        p = alloc_slow(a, padded);
    }
    ASAN_UNPOISON_MEMORY_REGION(p, n);
    return n ? memset(p, 0, n) : p;
}

void *rx_arena_array(rx_arena *a, size_t n, size_t size, size_t align)
{
    size_t whole;
    if (!rx_size_mul(n, size, &whole))
        rx_heap_oom(a->heap);
    return rx_arena_alloc(a, whole, align);
}

void *rx_arena_dup(rx_arena *a, const void *p, size_t n)
{
    void *q = rx_arena_alloc(a, n, _Alignof(max_align_t));
    return n ? memcpy(q, p, n) : q;
}
