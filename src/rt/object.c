/* object.c: reference-counted objects. The last release frees an object, or hands it back to the VM that recycles it.
 *
 * Recycling without locks: a VM owns the objects that it made for results (pool LIVE while someone has a reference).
 * The thread that drops the last reference empties the object and sets LIVE -> IDLE; the VM takes an IDLE object by
 * itself being the only one that does so. A VM that ends turns LIVE into NONE, and then the last release frees. */
#include "rt/rt_int.h"

rx_memfn rx_memfn_of(const relax_context *ctx)
{
    return (rx_memfn){ctx->heap.fn, ctx->heap.self};
}

relax_object *rx_retain(relax_object *o)
{
    if (o)
        atomic_fetch_add_explicit(&o->refs, 1, memory_order_relaxed);
    return o;
}

/* lets go of what the object refers to */
static void empty(relax_object *o)
{
    if (o->kind == RELAX_ANY_TUPLE) {
        rx_tuple *t = (rx_tuple *)o;
        for (int32_t i = 0; i < t->n; i++)
            rx_any_release(&t->at[i]);
        t->n = 0;
        o->depth = 0;
        o->nodes = 0;
    }
    if (o->kind != RELAX_ANY_TENSOR)
        return;
    rx_tensor *t = (rx_tensor *)o;
    rx_release(t->base);
    if (t->dl && t->dl->deleter)
        t->dl->deleter(t->dl);
    if (t->dl_old && t->dl_old->deleter)
        t->dl_old->deleter(t->dl_old);
    if (t->done)
        t->done(t->done_arg);
    t->base = NULL;
    t->dl = NULL;
    t->dl_old = NULL;
    t->done = NULL;
}

void rx_object_destroy(relax_object *o)
{
    if (o->kind == RELAX_ANY_TENSOR) {
        rx_tensor *t = (rx_tensor *)o;
        if (t->capacity)
            o->mem.fn(o->mem.self, t->data, t->capacity, 0, RX_PKG_ALIGN);
    }
    o->mem.fn(o->mem.self, o, o->size, 0, _Alignof(max_align_t));
}

/* Recursion over tuples is bounded by RX_TUPLE_DEPTH. */
void rx_release(relax_object *o)
{
    if (!o || atomic_fetch_sub_explicit(&o->refs, 1, memory_order_acq_rel) != 1)
        return;
    empty(o);
    uint32_t live = RX_POOL_LIVE;
    if (!atomic_compare_exchange_strong_explicit(&o->pool, &live, RX_POOL_IDLE, memory_order_acq_rel,
                                                 memory_order_acquire))
        rx_object_destroy(o);
}

void rx_any_retain(const relax_any *v)
{
    if (v->kind == RELAX_ANY_TENSOR || v->kind == RELAX_ANY_SHAPE || v->kind == RELAX_ANY_TUPLE)
        rx_retain(v->u.obj);
}

void rx_any_release(relax_any *v)
{
    if (v->kind == RELAX_ANY_TENSOR || v->kind == RELAX_ANY_SHAPE || v->kind == RELAX_ANY_TUPLE)
        rx_release(v->u.obj);
    memset(v, 0, sizeof *v);
}

static void *object_new(rx_memfn m, uint8_t kind, size_t size)
{
    relax_object *o = m.fn(m.self, NULL, 0, size, _Alignof(max_align_t));
    if (!o)
        return NULL;
    memset(o, 0, size);
    atomic_init(&o->refs, 1);
    o->kind = kind;
    o->size = size;
    o->mem = m;
    return o;
}

rx_tensor *rx_tensor_alloc(rx_memfn m, size_t capacity)
{
    rx_tensor *t = object_new(m, RELAX_ANY_TENSOR, sizeof *t);
    if (t && capacity) {
        t->data = m.fn(m.self, NULL, 0, capacity, RX_PKG_ALIGN);
        t->capacity = capacity;
        if (!t->data) {
            m.fn(m.self, t, sizeof *t, 0, _Alignof(max_align_t));
            return NULL;
        }
    }
    return t;
}

rx_tuple *rx_tuple_alloc(rx_memfn m, int32_t cap)
{
    rx_tuple *t = object_new(m, RELAX_ANY_TUPLE, sizeof(rx_tuple) + (size_t)cap * sizeof(relax_any));
    if (t)
        t->cap = cap;
    return t;
}

rx_shape *rx_shape_new(rx_memfn m, const int64_t *dims, int32_t n)
{
    rx_shape *s = object_new(m, RELAX_ANY_SHAPE, sizeof *s);
    if (s) {
        s->n = n;
        if (n)
            memcpy(s->dims, dims, (size_t)n * sizeof *dims);
    }
    return s;
}

bool rx_tuple_add(rx_tuple *t, const relax_any *v)
{
    uint32_t nodes = 1;
    if (v->kind == RELAX_ANY_TUPLE) {
        uint16_t depth = (uint16_t)(v->u.obj->depth + 1);
        if (depth > RX_TUPLE_DEPTH)
            return false;
        t->h.depth = RX_MAX(t->h.depth, depth);
        nodes += v->u.obj->nodes;
    }
    if (nodes > RX_TUPLE_NODES - t->h.nodes)
        return false;
    t->h.nodes += nodes;
    rx_any_retain(v);
    t->at[t->n++] = *v;
    return true;
}

rx_tuple *rx_tuple_new(rx_memfn m, const relax_any *at, int32_t n)
{
    rx_tuple *t = rx_tuple_alloc(m, n);
    for (int32_t i = 0; t && i < n; i++)
        if (!rx_tuple_add(t, &at[i])) {
            rx_release(&t->h);
            return NULL;
        }
    return t;
}
