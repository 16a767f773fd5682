/* pool.c: fork and join. The caller does part 0, worker i does part i of a task; static, so a part always runs on the
 * same thread.
 *
 * One word `post` announces a task: a counter in the high bits, the number of parts in the low ones, so that a worker
 * without a part looks at nothing else. Waiting is bounded spinning, then a futex; whoever wakes others looks first
 * whether anyone sleeps. The pair "write my word, read your flag" on both sides needs sequential consistency, else a
 * wake-up can be lost. */
#include "rt/rt_int.h"

enum { PART_BITS = 10, MAX_THREADS = 512, SPIN_NS = 30000, SPIN_CHECK = 32 };

typedef struct worker { rx_thread thread; rx_pool *pool; int32_t part; } worker;
struct rx_pool {
    rx_memfn mem;
    int32_t n;                         /* threads, the caller's included */
    int32_t started;                   /* workers that run */
    int process;
    relax_parallel_fn host; void *host_user;
    void (*task)(void *arg, int32_t i); void *arg;
    _Alignas(64) _Atomic uint32_t post;
    _Alignas(64) _Atomic uint32_t pending;              /* parts that are not done */
    _Alignas(64) _Atomic uint32_t sleepers;             /* workers in the futex */
    _Atomic uint32_t caller_sleeps;
    _Atomic uint32_t stop;
    worker workers[];
};

static size_t pool_size(int32_t n) { return sizeof(rx_pool) + (size_t)n * sizeof(worker); }

/* spins while *word == seen; false: the time is over */
static bool spin_while(_Atomic uint32_t *word, uint32_t seen)
{
    int64_t start = rx_now_ns();
    for (int i = 1; atomic_load_explicit(word, memory_order_acquire) == seen; i++) {
        rx_cpu_relax();
        if (i % SPIN_CHECK == 0 && rx_now_ns() - start > SPIN_NS)
            return false;
    }
    return true;
}

static uint32_t wait_post(rx_pool *p, uint32_t seen)
{
    while (!spin_while(&p->post, seen)) {
        atomic_fetch_add(&p->sleepers, 1);
        if (atomic_load(&p->post) == seen)
            rx_futex_wait(&p->post, seen);
        atomic_fetch_sub(&p->sleepers, 1);
    }
    return atomic_load_explicit(&p->post, memory_order_acquire);
}

static void work(void *arg)
{
    worker *w = arg;
    rx_pool *p = w->pool;
    for (uint32_t seen = 0;;) {
        seen = wait_post(p, seen);
        if (atomic_load(&p->stop))
            return;
        if (w->part >= (int32_t)(seen & ((1u << PART_BITS) - 1)))
            continue;
        p->task(p->arg, w->part);
        if (atomic_fetch_sub(&p->pending, 1) == 1 && atomic_load(&p->caller_sleeps))
            rx_futex_wake(&p->pending, 1);
    }
}

static void announce(rx_pool *p, uint32_t parts)
{
    uint32_t counter = (atomic_load_explicit(&p->post, memory_order_relaxed) >> PART_BITS) + 1;
    atomic_store(&p->post, counter << PART_BITS | parts);
    if (atomic_load(&p->sleepers))
        rx_futex_wake(&p->post, INT32_MAX);
}

static void wait_done(rx_pool *p)
{
    uint32_t left;
    while ((left = atomic_load_explicit(&p->pending, memory_order_acquire)) != 0) {
        if (spin_while(&p->pending, left))
            continue;
        atomic_store(&p->caller_sleeps, 1);
        if (atomic_load(&p->pending) == left)
            rx_futex_wait(&p->pending, left);
        atomic_store(&p->caller_sleeps, 0);
    }
}

void rx_pool_run(rx_pool *p, int32_t n, void (*task)(void *arg, int32_t i), void *arg)
{
    if (n <= 1 || p->n == 1) {
        for (int32_t i = 0; i < n; i++)
            task(arg, i);
        return;
    }
    if (p->host) {
        p->host(p->host_user, n, task, arg);
        return;
    }
    p->task = task;
    p->arg = arg;
    atomic_store_explicit(&p->pending, (uint32_t)n - 1, memory_order_relaxed);
    announce(p, (uint32_t)n);
    task(arg, 0);
    wait_done(p);
}

relax_status rx_pool_create(relax_context *ctx, int32_t n, relax_parallel_fn host, void *host_user, rx_pool **out)
{
    rx_memfn m = rx_memfn_of(ctx);
    *out = NULL;
    n = n <= 0 ? rx_cpu_count() : n;
    n = RX_MIN(RX_MAX(n, 1), MAX_THREADS);
    rx_pool *p = m.fn(m.self, NULL, 0, pool_size(n), 64);
    if (!p)
        return rx_error(ctx, RXE_OOM, NULL, NULL, "out of memory");
    memset(p, 0, pool_size(n));
    p->mem = m;
    p->n = n;
    p->host = host;
    p->host_user = host_user;
    p->process = rx_process_id();
    for (int32_t i = 1; i < n && !host; i++) {
        worker *w = &p->workers[i];
        w->pool = p;
        w->part = i;
        int err = rx_thread_start(&w->thread, work, w);
        if (err) {
            char why[128];
            rx_pool_destroy(p);
            return rx_error(ctx, RXE_LIMIT, NULL, "ask for fewer threads", "thread %d of %d cannot be started: %s", i,
                            n, rx_os_error(err, why, sizeof why));
        }
        p->started = i;
    }
    *out = p;
    return RELAX_OK;
}

/* In a forked child the workers do not exist, so there is nothing to stop. */
void rx_pool_destroy(rx_pool *p)
{
    if (!p)
        return;
    if (p->started && p->process == rx_process_id()) {
        atomic_store(&p->stop, 1);
        announce(p, 0);
        for (int32_t i = 1; i <= p->started; i++)
            rx_thread_join(&p->workers[i].thread);
    }
    rx_memfn m = p->mem;
    m.fn(m.self, p, pool_size(p->n), 0, 64);
}

int32_t rx_pool_threads(const rx_pool *p) { return p->n; }
