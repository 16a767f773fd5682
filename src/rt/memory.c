/* memory.c: what a VM keeps between calls, so that a call in steady state allocates nothing.
 *
 * Objects: the VM remembers those it made; the last release marks one idle (object.c) and the next request of about its
 * size takes it. Idle for RX_KEEP calls: freed. Still in the host's hands after RX_KEEP_LIVE calls: forgotten, it is
 * then the host's alone. Arena: a stack of chunks. A frame that does not fit opens a new chunk (live pointers cannot
 * move), or replaces the first one while nothing lives in it; after a call that needed several, the next one starts
 * with one that holds the largest need so far and a quarter more (needs that grow step by step then seldom allocate).
 */
#include "rt/rt_int.h"

enum { RX_KEEP = 16, RX_KEEP_LIVE = 64 };

bool rx_vm_room(relax_vm *vm, void **at, size_t *cap, size_t need, size_t size)
{
    if (need <= *cap)
        return true;
    size_t more = RX_MAX(need, *cap * 2), bytes;
    more = RX_MAX(more, (size_t)16);
    if (!rx_size_mul(more, size, &bytes) || bytes > PTRDIFF_MAX)
        return false;
    void *p = vm->mem.fn(vm->mem.self, *at, *cap * size, bytes, _Alignof(max_align_t));
    if (!p)
        return false;
    *at = p;
    *cap = more;
    return true;
}

/* --- objects --- */
static size_t capacity_of(const relax_object *o)
{
    switch (o->kind) {
    case RELAX_ANY_TENSOR: return ((const rx_tensor *)o)->capacity;
    case RELAX_ANY_TUPLE: return (size_t)((const rx_tuple *)o)->cap;
    default: return 0;
    }
}

/* the smallest idle object that holds `need` and not much more (slack: what may be wasted besides a half) */
static relax_object *take_idle(relax_vm *vm, uint8_t kind, size_t need, size_t slack)
{
    rx_pooled *best = NULL;
    size_t best_cap = SIZE_MAX;
    for (size_t i = 0; i < vm->npooled; i++) {
        rx_pooled *e = &vm->pooled[i];
        if (e->o->kind != kind)
            continue;
        size_t cap = capacity_of(e->o);
        bool fits = need == 0 ? cap == 0 : cap >= need && cap / 2 <= need + slack;
        if (fits && cap < best_cap && atomic_load_explicit(&e->o->pool, memory_order_acquire) == RX_POOL_IDLE) {
            best = e;
            best_cap = cap;
        }
    }
    if (!best)
        return NULL;
    best->used = vm->calls;
    best->o->flags = 0;
    atomic_store_explicit(&best->o->refs, 1, memory_order_relaxed);
    atomic_store_explicit(&best->o->pool, RX_POOL_LIVE, memory_order_relaxed);
    return best->o;
}

/* An object that cannot be remembered is an ordinary one. */
static void remember(relax_vm *vm, relax_object *o)
{
    void *at = vm->pooled;
    if (!rx_vm_room(vm, &at, &vm->cap_pooled, vm->npooled + 1, sizeof *vm->pooled))
        return;
    vm->pooled = at;
    vm->pooled[vm->npooled++] = (rx_pooled){o, vm->calls};
    atomic_store_explicit(&o->pool, RX_POOL_LIVE, memory_order_relaxed);
}

rx_tensor *rx_vm_tensor(relax_vm *vm, size_t capacity)
{
    rx_tensor *t = (rx_tensor *)take_idle(vm, RELAX_ANY_TENSOR, capacity, 4096);
    if (!t) {
        t = rx_tensor_alloc(vm->mem, capacity);
        if (t)
            remember(vm, &t->h);
    }
    return t;
}

rx_tuple *rx_vm_tuple(relax_vm *vm, int32_t cap)
{
    cap = RX_MAX(cap, 1);
    rx_tuple *t = (rx_tuple *)take_idle(vm, RELAX_ANY_TUPLE, (size_t)cap, 8);
    if (!t) {
        t = rx_tuple_alloc(vm->mem, cap);
        if (t)
            remember(vm, &t->h);
    }
    return t;
}

rx_shape *rx_vm_shape(relax_vm *vm, const int64_t *dims, int32_t n)
{
    rx_shape *s = (rx_shape *)take_idle(vm, RELAX_ANY_SHAPE, 0, 0);
    if (!s) {
        s = rx_shape_new(vm->mem, dims, n);
        if (s)
            remember(vm, &s->h);
        return s;
    }
    s->n = n;
    if (n)
        memcpy(s->dims, dims, (size_t)n * sizeof *dims);
    return s;
}

/* ends the pool's interest; true: the object was idle and is freed */
static bool forget(relax_object *o)
{
    uint32_t live = RX_POOL_LIVE;
    if (atomic_compare_exchange_strong_explicit(&o->pool, &live, RX_POOL_NONE, memory_order_acq_rel,
                                                memory_order_acquire))
        return false;
    rx_object_destroy(o);
    return true;
}

void rx_vm_trim(relax_vm *vm)
{
    size_t kept = 0;
    for (size_t i = 0; i < vm->npooled; i++) {
        rx_pooled e = vm->pooled[i];
        int64_t age = vm->calls - e.used;
        bool idle = age > RX_KEEP && atomic_load_explicit(&e.o->pool, memory_order_acquire) == RX_POOL_IDLE;
        if (idle || age > RX_KEEP_LIVE)
            forget(e.o);
        else
            vm->pooled[kept++] = e;
    }
    vm->npooled = kept;
}

void rx_vm_pool_free(relax_vm *vm)
{
    for (size_t i = 0; i < vm->npooled; i++)
        forget(vm->pooled[i].o);
    if (vm->pooled)
        vm->mem.fn(vm->mem.self, vm->pooled, vm->cap_pooled * sizeof *vm->pooled, 0, _Alignof(max_align_t));
}

/* --- arena --- */
enum { HUGE_MIN = 2 << 20 };

static bool is_pages(const relax_vm *vm, size_t size) { return vm->huge_pages && size >= HUGE_MIN; }

static bool chunk_new(relax_vm *vm, size_t size)
{
    rx_chunk *c = &vm->chunks[vm->nchunks];
    c->at = is_pages(vm, size) ? rx_pages_alloc(size) : vm->mem.fn(vm->mem.self, NULL, 0, size, RX_PKG_ALIGN);
    c->size = size;
    c->used = 0;
    if (c->at)
        vm->nchunks++;
    return c->at != NULL;
}

static void note_peak(relax_vm *vm)
{
    size_t n = 0;
    for (uint32_t i = 0; i <= vm->chunk; i++)
        n += vm->chunks[i].used;
    vm->arena_peak = RX_MAX(vm->arena_peak, n);
}

/* Chunks after the current one are empty leftovers of returned frames. */
char *rx_vm_arena(relax_vm *vm, int64_t size)
{
    size_t n;
    if (!rx_size_align(size ? (size_t)size : 1, RX_PKG_ALIGN, &n) || n > PTRDIFF_MAX / 2)
        return NULL;
    if (vm->chunk == 0 && vm->nchunks && vm->chunks[0].used == 0 && vm->chunks[0].size < n)
        rx_vm_arena_free(vm);
    if (vm->nchunks == 0 && !chunk_new(vm, RX_MAX(n + (vm->arena_peak ? n / 4 : 0), vm->arena_want)))
        return NULL;
    rx_chunk *c = &vm->chunks[vm->chunk];
    while (c->size - c->used < n) {
        if (vm->chunk + 1 == vm->nchunks && (vm->nchunks == RX_VM_CHUNKS || !chunk_new(vm, RX_MAX(n, vm->arena_peak))))
            return NULL;
        c = &vm->chunks[++vm->chunk];
    }
    char *at = c->at + c->used;
    c->used += n;
    note_peak(vm);
    return at;
}

void rx_vm_arena_free(relax_vm *vm)
{
    for (uint32_t i = 0; i < vm->nchunks; i++) {
        rx_chunk *c = &vm->chunks[i];
        if (is_pages(vm, c->size))
            rx_pages_free(c->at, c->size);
        else
            vm->mem.fn(vm->mem.self, c->at, c->size, 0, RX_PKG_ALIGN);
    }
    vm->nchunks = vm->chunk = 0;
}

void rx_vm_arena_reset(relax_vm *vm)
{
    if (vm->nchunks > 1) {
        rx_vm_arena_free(vm);
        vm->arena_want = vm->arena_peak + vm->arena_peak / 4;
    }
}
