/* test_rt_threads.c: many VMs on many threads over one executable, each with a context of its own: the functions of the
 * executable in any mixture, failures among them, values that pass from thread to thread, handles that end in any
 * order. Meant for ThreadSanitizer as much as for its own checks. */
#include "testlib.h"
#include "rtlib.h"

#include <stdatomic.h>

enum { THREADS = 8, ROUNDS = 60, FN_MLP = 0, FN_CHOOSE = 2, FN_DEEP, FN_DISTINCT, FN_NORM, FN_TAKE, FN_HALVES };

/* x @ w1 is x twice side by side, @ w2 adds the halves: 2 * x */
static const float w1[32] = {1, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0,
                             0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 1};
static const float w2[32] = {1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1,
                             1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1};

typedef struct shared {
    relax_executable *exe;
    relax_any value;                   /* a tensor that all read */
    _Atomic int ready, go;             /* threads that have a VM; the executable may go */
} shared;

typedef struct worker { shared *s; rx_thread t; uint64_t seed; int threads; const char *failed; } worker;

#define OR_FAIL(w, cond) do { if (!(cond)) { (w)->failed = #cond; return false; } } while (0)

static bool bind(worker *w, relax_context *ctx, relax_vm *vm)
{
    rx_tensor *a, *b;
    void *p1 = (void *)(uintptr_t)w1, *p2 = (void *)(uintptr_t)w2;
    OR_FAIL(w, rx_tensor_borrow(ctx, RELAX_F32, (int64_t[]){4, 8}, 2, p1, true, NULL, NULL, &a) == RELAX_OK);
    OR_FAIL(w, rx_tensor_borrow(ctx, RELAX_F32, (int64_t[]){8, 4}, 2, p2, true, NULL, NULL, &b) == RELAX_OK);
    OR_FAIL(w, rx_vm_bind(vm, "layer.w1", a) == 0 && rx_vm_bind(vm, "layer.w2", b) == 0);
    rx_release(&a->h);
    rx_release(&b->h);
    return true;
}

static const float *floats(const relax_any *v) { return ((const rx_tensor *)v->u.obj)->data; }

/* one call of function fn; its result is checked against what that function is in C */
static bool call(worker *w, relax_context *ctx, relax_vm *vm, int32_t fn, int64_t n)
{
    float x[64];
    int64_t idx[2] = {n % 3, 1};
    uint8_t yes = n % 2;
    for (int i = 0; i < 64; i++) x[i] = (float)(i % 7) + (float)n;
    DLTensor dx = rl_dl(RELAX_F32, x, 1, (int64_t[]){n}), dx2 = rl_dl(RELAX_F32, x, 2, (int64_t[]){n, 4}),
             dc = rl_dl(RELAX_BOOL, &yes, 0, NULL), di = rl_dl(RELAX_I64, idx, 1, (int64_t[]){2});
    relax_any a[2] = {ARG_DL(&dx), {0}}, r = {0};
    int32_t nargs = 1;
    if (fn == FN_MLP) a[0] = ARG_DL(&dx2);
    if (fn == FN_TAKE) a[0] = ARG_DL(&di);
    if (fn == FN_CHOOSE) { a[1] = a[0]; a[0] = ARG_DL(&dc); nargs = 2; }
    if (fn == FN_DEEP) { a[0] = ARG_INT(n); a[1] = w->s->value; nargs = 2; }
    OR_FAIL(w, rx_vm_call(vm, fn, a, nargs, NULL, 0, &r) == RELAX_OK);
    if (fn == FN_MLP) OR_FAIL(w, floats(&r)[0] == 1 + x[0] * 2 && floats(&r)[4 * n - 1] == 1 + x[4 * n - 1] * 2);
    if (fn == FN_TAKE) OR_FAIL(w, floats(&r)[0] == 10 * (float)(idx[0] + 1) && floats(&r)[1] == 20);
    if (fn == FN_NORM) OR_FAIL(w, floats(&r)[0] > 0);
    if (fn == FN_DEEP) OR_FAIL(w, r.u.obj == w->s->value.u.obj);         /* the shared tensor itself */
    if (fn == FN_DISTINCT) OR_FAIL(w, floats(&r)[0] == (float)n + 1);
    rx_any_release(&r);
    (void)ctx;
    return true;
}

/* calls that must fail leave their diagnostics in this thread's context and nowhere else */
static bool fail_some(worker *w, relax_context *ctx, relax_vm *vm)
{
    int64_t bad = 7;
    DLTensor d = rl_dl(RELAX_I64, &bad, 1, (int64_t[]){1});
    relax_any a = ARG_DL(&d), r = {0};
    uint32_t had = rx_diag_count(ctx);
    OR_FAIL(w, rx_vm_call(vm, FN_TAKE, &a, 1, NULL, 0, &r) == RELAX_E_BOUND);
    OR_FAIL(w, rx_diag_count(ctx) == had + 1 && tl_last_error(ctx) == RXE_INDEX);
    OR_FAIL(w, rx_vm_call(vm, FN_MLP, &a, 0, NULL, 0, &r) == RELAX_E_INVALID);
    OR_FAIL(w, tl_last_error(ctx) == RXE_ARG_COUNT);
    rx_diag_clear(ctx);
    return true;
}

static bool work_with(worker *w, relax_context *ctx, relax_vm *vm)
{
    static const int32_t fns[] = {FN_MLP, FN_CHOOSE, FN_DEEP, FN_DISTINCT, FN_NORM, FN_TAKE};
    if (!bind(w, ctx, vm)) return false;
    atomic_fetch_add(&w->s->ready, 1);
    for (int i = 0; i < ROUNDS; i++) {
        w->seed = rx_mix(w->seed, (uint64_t)i + 1);
        int64_t n = 1 + (int64_t)(w->seed >> 8) % 15;
        if (!call(w, ctx, vm, fns[(w->seed >> 40) % RX_COUNT(fns)], n)) return false;
        if (i % 8 == 0 && !fail_some(w, ctx, vm)) return false;
        relax_any mine = w->s->value;  /* references of one object counted up and down on all threads */
        rx_retain(mine.u.obj);
        rx_any_release(&mine);
    }
    return true;
}

static void work(void *arg)
{
    worker *w = arg;
    relax_context *ctx;
    relax_vm *vm;
    const rx_vm_options o = {.threads = w->threads};
    if (rx_context_create(NULL, NULL, &ctx)) {
        w->failed = "context";
        return;
    }
    if (rx_vm_create(ctx, w->s->exe, &o, &vm) == RELAX_OK) {
        work_with(w, ctx, vm);
        while (!atomic_load(&w->s->go)) rx_cpu_relax();
        if (!w->failed) call(w, ctx, vm, FN_NORM, 5);                    /* after the host let the executable go */
        rx_vm_destroy(vm);
    } else {
        w->failed = "VM";
    }
    rx_context_destroy(ctx);
}

/* the executable and its context's handle on it go while the VMs still run */
static void one_executable(void **state)
{
    (void)state;
    relax_context *ctx;
    shared s = {0};
    static worker w[THREADS];
    rx_tensor *x;
    memset(w, 0, sizeof w);
    assert_int_equal(rx_context_create(NULL, NULL, &ctx), RELAX_OK);
    s.exe = rl_open(ctx);
    void *data = (void *)(uintptr_t)w1;
    assert_int_equal(rx_tensor_borrow(ctx, RELAX_F32, (int64_t[]){8}, 1, data, true, NULL, NULL, &x), RELAX_OK);
    s.value = ARG_OBJ(RELAX_ANY_TENSOR, x);
    for (int i = 0; i < THREADS; i++) {
        w[i] = (worker){.s = &s, .seed = (uint64_t)i * 977, .threads = 1 + i % 3};
        assert_int_equal(rx_thread_start(&w[i].t, work, &w[i]), 0);
    }
    for (int64_t end = rx_now_ns() + 60000000000; atomic_load(&s.ready) < THREADS && rx_now_ns() < end;) rx_cpu_relax();
    rx_exe_release(s.exe);
    atomic_store(&s.go, 1);
    for (int i = 0; i < THREADS; i++) {
        rx_thread_join(&w[i].t);
        if (w[i].failed) print_error("thread %d: %s\n", i, w[i].failed);
        assert_null(w[i].failed);
    }
    assert_int_equal(atomic_load(&x->h.refs), 1);
    rx_any_release(&s.value);
    rx_context_destroy(ctx);
}

/* ---- results made on one thread, read and let go on others ---- */
typedef struct reader { relax_any v; rx_thread t; bool ok; } reader;

static void read_and_release(void *arg)
{
    reader *r = arg;
    r->ok = floats(&r->v)[1] == 20;
    rx_any_release(&r->v);
}

static void results_wander(void **state)
{
    (void)state;
    relax_context *ctx;
    relax_vm *vm;
    reader r[6];
    assert_int_equal(rx_context_create(NULL, NULL, &ctx), RELAX_OK);
    relax_executable *exe = rl_open(ctx);
    const rx_vm_options o = {.threads = 2};
    assert_int_equal(rx_vm_create(ctx, exe, &o, &vm), RELAX_OK);
    for (int round = 0; round < 20; round++) {
        int64_t idx[2] = {0, 1};
        DLTensor d = rl_dl(RELAX_I64, idx, 1, (int64_t[]){2});
        relax_any a = ARG_DL(&d), v;
        assert_int_equal(rx_vm_call(vm, FN_TAKE, &a, 1, NULL, 0, &v), RELAX_OK);
        for (int i = 0; i < 6; i++) {
            rx_retain(v.u.obj);
            r[i] = (reader){.v = v};
            assert_int_equal(rx_thread_start(&r[i].t, read_and_release, &r[i]), 0);
        }
        rx_any_release(&v);
        if (round == 19) {             /* the last results outlive VM and executable */
            rx_vm_destroy(vm);
            rx_exe_release(exe);
        } else {                       /* the VM goes on meanwhile and must not take the tensor for free */
            assert_int_equal(rx_vm_call(vm, FN_TAKE, &a, 1, NULL, 0, &v), RELAX_OK);
            rx_any_release(&v);
        }
        for (int i = 0; i < 6; i++) {
            rx_thread_join(&r[i].t);
            assert_true(r[i].ok);
        }
    }
    rx_context_destroy(ctx);
}

/* ---- VMs come and go on all threads at once ---- */
static void come_and_go(void *arg)
{
    worker *w = arg;
    for (int i = 0; i < 25 && !w->failed; i++) {
        relax_context *ctx;
        relax_vm *vm;
        const rx_vm_options o = {.threads = 1 + (i + w->threads) % 3};
        if (rx_context_create(NULL, NULL, &ctx)) {
            w->failed = "context";
            return;
        }
        if (rx_vm_create(ctx, w->s->exe, &o, &vm) != RELAX_OK) w->failed = "VM";
        else call(w, ctx, vm, FN_NORM, 1 + i % 9);
        rx_vm_destroy(vm);
        rx_context_destroy(ctx);
    }
}

static void vms_come_and_go(void **state)
{
    (void)state;
    relax_context *ctx;
    shared s = {0};
    static worker w[THREADS];
    memset(w, 0, sizeof w);
    assert_int_equal(rx_context_create(NULL, NULL, &ctx), RELAX_OK);
    s.exe = rl_open(ctx);
    for (int i = 0; i < THREADS; i++) {
        w[i] = (worker){.s = &s, .threads = i};
        assert_int_equal(rx_thread_start(&w[i].t, come_and_go, &w[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        rx_thread_join(&w[i].t);
        assert_null(w[i].failed);
    }
    rx_exe_release(s.exe);
    rx_context_destroy(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_executable), cmocka_unit_test(results_wander), cmocka_unit_test(vms_come_and_go),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
