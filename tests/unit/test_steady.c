/* test_steady.c: one executable for every shape: n from 1 to the bound in any order, compiled once; after a warm-up no
 * call allocates and memory stays as it is. The same with a process's memory and larger sizes: bench/memory.c. */
#include "testlib.h"

#include <math.h>

#define BOUND 2048
#define WIDTH 24
#define LENT(t) { .kind = RELAX_ANY_DLTENSOR, .u.dl = (t) }

typedef struct env {
    tl_heap heap;
    relax_context *ctx;
    relax_executable *exe;
    relax_vm *vm;
    float x[BOUND * WIDTH], y[BOUND * WIDTH], w[WIDTH * WIDTH];
    float rows[BOUND * WIDTH];         /* result of each row, from a call of its own */
} env;

static relax_executable *network(relax_context *ctx)
{
    relax_executable *e = NULL;
    relax_module *m = relax_module_create(ctx);
    relax_builder *b = relax_function_begin(m, "net");
    relax_value *x = relax_param(b, "x", "Tensor((n, 24), f32)"), *w = relax_param(b, "w", "Tensor((24, 24), f32)");
    relax_bound(b, "n", 1, BOUND);
    relax_value *h = relax_silu(b, relax_matmul(b, x, w));
    relax_value *y = relax_softmax(b, relax_add(b, relax_matmul(b, h, w), x), -1);
    assert_int_equal(relax_function_finish(b, y), RELAX_OK);
    assert_int_equal(relax_build(m, relax_target_parse(ctx, "cpu"), NULL, &e), RELAX_OK);
    relax_module_destroy(m);
    return e;
}

static env *up(int32_t threads)
{
    env *e = calloc(1, sizeof *e);
    relax_context_options o = RELAX_CONTEXT_OPTIONS_INIT;
    relax_vm_options v = RELAX_VM_OPTIONS_INIT;
    assert_non_null(e);
    o.alloc = tl_alloc;
    o.alloc_self = &e->heap;
    v.threads = threads;
    assert_int_equal(relax_context_create(&o, &e->ctx), RELAX_OK);
    e->exe = network(e->ctx);
    assert_int_equal(relax_vm_create(e->exe, &v, &e->vm), RELAX_OK);
    for (int i = 0; i < BOUND * WIDTH; i++)
        e->x[i] = (float)(i % 97) / 97.0f - 0.5f;
    for (int i = 0; i < WIDTH * WIDTH; i++)
        e->w[i] = (float)(i % 89) / 89.0f - 0.5f;
    return e;
}

static void down(env *e)
{
    relax_vm_destroy(e->vm);
    relax_executable_destroy(e->exe);
    relax_context_destroy(e->ctx);
    assert_int_equal(e->heap.blocks, 0);
    free(e);
}

/* rows from, from + 1 … of x */
static void call(env *e, int64_t from, int64_t n, float *to)
{
    int64_t dims[] = { n, WIDTH }, square[] = { WIDTH, WIDTH };
    DLDataType f32 = { kDLFloat, 32, 1 };
    DLTensor x = { .data = e->x + from * WIDTH, .device = { kDLCPU, 0 }, .ndim = 2, .dtype = f32, .shape = dims };
    DLTensor w = { .data = e->w, .device = { kDLCPU, 0 }, .ndim = 2, .dtype = f32, .shape = square };
    DLTensor y = { .data = to, .device = { kDLCPU, 0 }, .ndim = 2, .dtype = f32, .shape = dims };
    relax_any args[] = { LENT(&x), LENT(&w) };
    DLTensor *outs[] = { &y };
    assert_int_equal(relax_vm_call_into(e->vm, "net", args, 2, outs, 1), RELAX_OK);
}

static void same_rows(const float *a, const float *b, int64_t n)
{
    for (int64_t i = 0; i < n * WIDTH; i++)
        assert_true(fabsf(a[i] - b[i]) <= 1e-6f);
}

/* every n from 1 to the bound gives what its rows give alone; no call allocates */
static void every_shape(void **state)
{
    (void)state;
    env *e = up(2);
    for (int64_t i = 0; i < BOUND; i++)
        call(e, i, 1, e->rows + i * WIDTH);
    call(e, 0, BOUND, e->y);
    int64_t calls = e->heap.calls, live = e->heap.live;
    for (int64_t n = 1; n <= BOUND; n += n < 70 ? 1 : 61) {
        memset(e->y, 0xff, sizeof e->y);
        call(e, 0, n, e->y);
        same_rows(e->y, e->rows, n);
        assert_true(n == BOUND || isnan(e->y[n * WIDTH]));      /* nothing behind the result is written */
    }
    call(e, 0, BOUND, e->y);
    same_rows(e->y, e->rows, BOUND);
    assert_int_equal(e->heap.calls, calls);
    assert_int_equal(e->heap.live, live);
    down(e);
}

/* 1,000 calls with n at random: no allocation, no growth */
static void random_shapes(void **state)
{
    (void)state;
    env *e = up(1);
    uint64_t seed = 7;
    size_t held, arena, held2, arena2;
    call(e, 0, BOUND, e->y);
    relax_vm_memory(e->vm, &held, &arena);
    int64_t calls = e->heap.calls, live = e->heap.live;
    for (int i = 0; i < 1000; i++) {
        seed = rx_mix(seed, (uint64_t)i);
        call(e, 0, (int64_t)(seed % BOUND) + 1, e->y);
    }
    relax_vm_memory(e->vm, &held2, &arena2);
    assert_int_equal(e->heap.calls, calls);
    assert_int_equal(e->heap.live, live);
    assert_int_equal(held2, held);
    assert_int_equal(arena2, arena);
    down(e);
}

/* results made by the library: what is kept for reuse is bounded by the largest */
static void made_results(void **state)
{
    (void)state;
    env *e = up(1);
    int64_t square[] = { WIDTH, WIDTH }, most = 0;
    DLDataType f32 = { kDLFloat, 32, 1 };
    DLTensor w = { .data = e->w, .device = { kDLCPU, 0 }, .ndim = 2, .dtype = f32, .shape = square };
    uint64_t seed = 9;
    for (int i = 0; i < 1000; i++) {
        seed = rx_mix(seed, (uint64_t)i);
        int64_t dims[] = { i == 0 ? BOUND : (int64_t)(seed % BOUND) + 1, WIDTH };
        DLTensor x = { .data = e->x, .device = { kDLCPU, 0 }, .ndim = 2, .dtype = f32, .shape = dims };
        relax_any args[] = { LENT(&x), LENT(&w) }, result;
        assert_int_equal(relax_vm_invoke(e->vm, "net", args, 2, &result), RELAX_OK);
        relax_any_release(&result);
        if (i == 100)
            most = e->heap.live;
    }
    assert_true(e->heap.live <= most + (int64_t)sizeof e->y);
    down(e);
}

/* the bound is checked before anything runs */
static void past_the_bound(void **state)
{
    (void)state;
    env *e = up(1);
    int64_t dims[] = { BOUND + 1, WIDTH }, square[] = { WIDTH, WIDTH };
    DLDataType f32 = { kDLFloat, 32, 1 };
    DLTensor x = { .data = e->x, .device = { kDLCPU, 0 }, .ndim = 2, .dtype = f32, .shape = dims };
    DLTensor w = { .data = e->w, .device = { kDLCPU, 0 }, .ndim = 2, .dtype = f32, .shape = square };
    relax_any args[] = { LENT(&x), LENT(&w) }, result;
    assert_int_not_equal(relax_vm_invoke(e->vm, "net", args, 2, &result), RELAX_OK);
    down(e);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_shape),
        cmocka_unit_test(random_shapes),
        cmocka_unit_test(made_results),
        cmocka_unit_test(past_the_bound),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
