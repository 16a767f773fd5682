/* host.c: a host that brings its own memory, threads and output tensors, and can stop a build: everything the library
 * takes from it is a callback. */
#include <relax.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* one function allocates, reallocates and frees; this one counts */
static void *counted(void *self, void *p, size_t old_size, size_t size, size_t align)
{
    long *live = self;
    __atomic_add_fetch(live, (long)size - (long)(p ? old_size : 0), __ATOMIC_RELAXED);
    if (!size) {
        free(p);
        return NULL;
    }
    void *q = align > 16 ? aligned_alloc(align, (size + align - 1) / align * align) : malloc(size);
    if (q && p) {
        memcpy(q, p, old_size < size ? old_size : size);
        free(p);
    }
    return q;
}

/* the host's parallel-for: here two threads of its own */
typedef struct half { void (*task)(void *arg, int32_t i); void *arg; int32_t from, to; } half;
static void *run_half(void *h)
{
    half *w = h;
    for (int32_t i = w->from; i < w->to; i++) w->task(w->arg, i);
    return NULL;
}

static void parallel_for(void *user, int32_t n, void (*task)(void *arg, int32_t i), void *arg)
{
    half first = { task, arg, 0, n / 2 }, second = { task, arg, n / 2, n };
    pthread_t t;
    ++*(int *)user;
    int started = !pthread_create(&t, NULL, run_half, &first);
    run_half(&second);
    if (started) pthread_join(t, NULL);
    else run_half(&first);
}

static void progress(void *user, const char *phase, int64_t done, int64_t total)
{
    (void)phase; (void)done; (void)total;
    ++*(int *)user;
}

static int32_t cancel(void *user) { return *(int *)user; }

int main(void)
{
    long live = 0;
    int loops = 0, steps = 0, stop = 0;
    relax_context_options o = RELAX_CONTEXT_OPTIONS_INIT;
    o.alloc = counted; o.alloc_self = &live;
    o.parallel = parallel_for; o.parallel_user = &loops;
    o.progress = progress; o.progress_user = &steps;
    o.cancel = cancel; o.cancel_user = &stop;
    relax_context *ctx = NULL;
    if (relax_context_create(&o, &ctx)) return 1;

    relax_module *m = relax_module_create(ctx);
    relax_builder *b = relax_function_begin(m, "scale");
    relax_value *x = relax_param(b, "x", "Tensor((n, 512), f32)");
    relax_status st = relax_function_finish(b, relax_multiply(b, x, relax_scalar(b, RELAX_F32, 2.0)));
    relax_target *cpu = relax_target_parse(ctx, "cpu");
    relax_executable *exe = NULL;
    relax_vm *vm = NULL;

    stop = 1;                                                            /* the user changed their mind */
    if (st == RELAX_OK && relax_build(m, cpu, NULL, &exe) != RELAX_E_CANCELLED) return 1;
    stop = 0;
    relax_diagnostic_clear(ctx);
    if (st || relax_build(m, cpu, NULL, &exe) || relax_vm_create(exe, NULL, &vm))
        return fprintf(stderr, "%s\n", relax_last_error(ctx)), 1;

    enum { N = 1024 };
    float *in = malloc(N * 512 * sizeof *in), *out = malloc(N * 512 * sizeof *out);
    for (int i = 0; i < N * 512; i++) in[i] = (float)i;
    int64_t dims[2] = { N, 512 };
    DLTensor ti = { in, { kDLCPU, 0 }, 2, { kDLFloat, 32, 1 }, dims, NULL, 0 }, to = ti;
    to.data = out;
    relax_any arg = { RELAX_ANY_DLTENSOR, 0, { .dl = &ti } };
    DLTensor *outs[1] = { &to };
    if (relax_vm_call_into(vm, "scale", &arg, 1, outs, 1)) return fprintf(stderr, "%s\n", relax_last_error(ctx)), 1;
    printf("out[1000] = %.1f, progress %s, parallel-for %s\n", (double)out[1000], steps ? "seen" : "not seen",
           loops ? "used" : "not used");
    relax_vm_destroy(vm);
    relax_executable_destroy(exe);
    relax_module_destroy(m);
    relax_context_destroy(ctx);
    printf("bytes still allocated: %ld\n", live);
    free(in);
    free(out);
    return live != 0;
}
