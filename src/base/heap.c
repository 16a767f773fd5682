/* heap.c: the host's allocator and the frames that failures unwind to.
 *
 * A frame is a jmp_buf on the C stack of a public function plus two lists: what rx_defer tied to it and its
 * scratch arena. Leaving a frame, either way, first takes it off the heap's stack, then runs the defers
 * newest first, then frees the scratch arena (defers may still read scratch memory), then gives the thread's errno
 * back: what the C library and LLVM leave in it is no business of the host.
 *
 * Traps: a deferred function must not fail (it would unwind to the frame above and skip its fellows).
 * rx_unwind with no frame is a fault of ours that no status can report; it traps. */
#include "base/base.h"

#include <errno.h>
#include <stdlib.h>

struct rx_defer_node {
    rx_defer_node *next;
    void (*fn)(void *);
    void *arg;
};

static void *aligned_grow(void *p, size_t old_n, size_t n, size_t align)
{
    size_t whole;
    if (!rx_size_align(n, align, &whole))
        return NULL;
    void *q = aligned_alloc(align, whole);
    if (q && p) {
        memcpy(q, p, RX_MIN(old_n, n));
        free(p);
    }
    return q;
}

static void *host_default(void *self, void *p, size_t old_n, size_t n, size_t align)
{
    int saved = errno;                           /* malloc may set it, even when it succeeds in the end */
    void *q = NULL;
    (void)self;
    if (n == 0)
        free(p);
    else
        q = align <= _Alignof(max_align_t) ? realloc(p, n) : aligned_grow(p, old_n, n, align);
    errno = saved;
    return q;
}

void rx_heap_init(rx_heap *h, rx_alloc_fn fn, void *self)
{
    memset(h, 0, sizeof *h);
    h->fn = fn ? fn : host_default;
    h->self = self;
}

/* A request of 0 bytes is served as 1 byte, so that every allocation is a distinct pointer. */
static size_t real_size(size_t n) { return n ? n : 1; }

static void count(rx_heap *h, size_t minus, size_t plus)
{
    h->live = h->live - minus + plus;
    h->peak = RX_MAX(h->peak, h->live);
}

void *rx_heap_alloc(rx_heap *h, size_t n, size_t align)
{
    if (n > PTRDIFF_MAX)
        return NULL;
    void *p = h->fn(h->self, NULL, 0, real_size(n), align);
    if (p)
        count(h, 0, real_size(n));
    return p;
}

void *rx_heap_realloc(rx_heap *h, void *p, size_t old_n, size_t n, size_t align)
{
    if (!p)
        return rx_heap_alloc(h, n, align);
    if (n > PTRDIFF_MAX)
        return NULL;
    void *q = h->fn(h->self, p, real_size(old_n), real_size(n), align);
    if (q)
        count(h, real_size(old_n), real_size(n));
    return q;
}

void rx_heap_free(rx_heap *h, void *p, size_t n)
{
    if (!p)
        return;
    count(h, real_size(n), 0);
    h->fn(h->self, p, real_size(n), 0, 1);
}

void rx_frame_push(rx_heap *h, rx_frame *f)
{
    f->up = h->top;
    f->defers = NULL;
    f->scratch = NULL;
    f->host_errno = errno;
    h->top = f;
}

static void frame_pop(rx_heap *h, rx_frame *f)
{
    h->top = f->up;
    while (f->defers) {
        rx_defer_node d = *f->defers;
        rx_heap_free(h, f->defers, sizeof d);
        f->defers = d.next;
        d.fn(d.arg);
    }
    if (f->scratch) {
        rx_arena_free(f->scratch);
        rx_heap_free(h, f->scratch, sizeof *f->scratch);
    }
    errno = f->host_errno;
}

void rx_leave(rx_heap *h, rx_frame *f)
{
    frame_pop(h, f);
}

void rx_unwind(rx_heap *h)
{
    rx_frame *f = h->top;
    if (!f)
        __builtin_trap();
    frame_pop(h, f);
    longjmp(f->env, 1);
}

void rx_heap_oom(rx_heap *h)
{
    if (h->on_oom)
        h->on_oom(h->on_oom_arg);
    rx_unwind(h);
}

void rx_defer(rx_heap *h, void (*fn)(void *), void *arg)
{
    rx_defer_node *d = rx_heap_alloc(h, sizeof *d, _Alignof(rx_defer_node));
    if (!d) {
        fn(arg);
        rx_heap_oom(h);
    }
    *d = (rx_defer_node){h->top->defers, fn, arg};
    h->top->defers = d;
}

rx_arena *rx_scratch(rx_heap *h)
{
    rx_frame *f = h->top;
    if (f->scratch)
        return f->scratch;
    rx_arena *a = rx_heap_alloc(h, sizeof *a, _Alignof(rx_arena));
    if (!a)
        rx_heap_oom(h);
    rx_arena_init(a, h);
    return f->scratch = a;
}
