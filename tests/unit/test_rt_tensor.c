/* test_rt_tensor.c: tensors, DLPack in and out, objects, the thread pool. */
#include "testlib.h"

#include "rtlib.h"

typedef struct managed { DLManagedTensorVersioned v1; DLManagedTensor v0; int deleted; } managed;

static void gone_v1(DLManagedTensorVersioned *m) { ((managed *)m->manager_ctx)->deleted++; }
static void gone_v0(DLManagedTensor *m) { ((managed *)m->manager_ctx)->deleted++; }

static managed *make(managed *m, DLTensor d)
{
    *m = (managed){.v1 = {.version = {1, 0}, .manager_ctx = m, .deleter = gone_v1, .dl_tensor = d},
                   .v0 = {.dl_tensor = d, .manager_ctx = m, .deleter = gone_v0}};
    return m;
}

static void import(void **state)
{
    (void)state;
    tl_heap th;
    relax_context *ctx = tl_context(&th);
    static double x[12];
    for (int i = 0; i < 12; i++)
        x[i] = i;
    managed m;
    rx_tensor *t;
    /* compact: shared, given back with the last reference */
    make(&m, rl_dl(RELAX_F64, x, 2, (int64_t[]){3, 4}));
    m.v1.flags = DLPACK_FLAG_BITMASK_READ_ONLY;
    assert_int_equal(rx_tensor_import(ctx, &m.v1, &t), RELAX_OK);
    assert_ptr_equal(t->data, x);
    assert_true(t->h.flags & RX_OBJ_READ_ONLY);
    rx_retain(&t->h);
    rx_release(&t->h);
    assert_int_equal(m.deleted, 0);
    rx_release(&t->h);
    assert_int_equal(m.deleted, 1);
    /* strides that are compact after all, with byte_offset */
    make(&m, rl_dl(RELAX_F64, x, 3, (int64_t[]){2, 1, 4}));
    m.v0.dl_tensor.strides = (int64_t[]){4, 77, 1};
    m.v0.dl_tensor.byte_offset = 16;
    assert_int_equal(rx_tensor_import_old(ctx, &m.v0, &t), RELAX_OK);
    assert_ptr_equal(t->data, x + 2);
    rx_release(&t->h);
    assert_int_equal(m.deleted, 1);
    /* transposed: copied once, given back at once */
    make(&m, rl_dl(RELAX_F64, x, 2, (int64_t[]){4, 3}));
    m.v1.dl_tensor.strides = (int64_t[]){1, 4};
    assert_int_equal(rx_tensor_import(ctx, &m.v1, &t), RELAX_OK);
    assert_int_equal(m.deleted, 1);
    assert_true(((double *)t->data)[1] == 4 && ((double *)t->data)[3] == 1 && t->bytes == 96);
    rx_release(&t->h);
    /* refused: not given back */
    make(&m, rl_dl(RELAX_F64, x, 2, (int64_t[]){4, 3}));
    m.v1.version.major = 2;
    assert_int_equal(rx_tensor_import(ctx, &m.v1, &t), RELAX_E_UNSUPPORTED);
    m.v1.version.major = 1;
    m.v1.dl_tensor.dtype = (DLDataType){kDLComplex, 64, 1};
    assert_int_equal(rx_tensor_import(ctx, &m.v1, &t), RELAX_E_TYPE);
    m.v1.dl_tensor.dtype = rx_dtype_to_dl(RELAX_F64);
    m.v1.dl_tensor.byte_offset = UINT64_MAX;
    assert_int_equal(rx_tensor_import(ctx, &m.v1, &t), RELAX_E_INVALID);
    assert_int_equal(m.deleted, 0);
    assert_null(t);
    /* empty with wild other dims */
    make(&m, rl_dl(RELAX_F64, NULL, 3, (int64_t[]){0, INT64_MAX, INT64_MAX}));
    assert_int_equal(rx_tensor_import(ctx, &m.v1, &t), RELAX_OK);
    assert_int_equal(t->bytes, 0);
    rx_release(&t->h);
    rx_diag_clear(ctx);
    tl_done(&th, ctx);
}

static void export(void **state)
{
    (void)state;
    tl_heap th;
    relax_context *ctx = tl_context(&th);
    rx_tensor *t;
    DLManagedTensorVersioned *v1;
    DLManagedTensor *v0;
    assert_int_equal(rx_tensor_new(ctx, RELAX_BF16, (int64_t[]){2, 3, 5}, 3, &t), RELAX_OK);
    assert_int_equal((uintptr_t)t->data % 64, 0);
    assert_int_equal(rx_tensor_export(ctx, t, &v1), RELAX_OK);
    assert_int_equal(rx_tensor_export_old(ctx, t, &v0), RELAX_OK);
    assert_true(v1->version.major == 1 && v1->flags == 0 && v1->dl_tensor.ndim == 3 && v1->dl_tensor.data == t->data);
    assert_true(v1->dl_tensor.strides[0] == 15 && v1->dl_tensor.strides[1] == 5 && v1->dl_tensor.strides[2] == 1);
    assert_true(v1->dl_tensor.dtype.code == kDLBfloat && v1->dl_tensor.dtype.bits == 16);
    rx_release(&t->h);
    v1->deleter(v1);
    assert_int_equal(v0->dl_tensor.shape[1], 3);
    v0->deleter(v0);
    /* every data type there and back */
    for (relax_dtype d = 1; d < RELAX_DTYPE_COUNT; d++) {
        relax_dtype back;
        assert_true(rx_dtype_from_dl(rx_dtype_to_dl(d), &back));
        assert_int_equal(back, d);
    }
    assert_int_equal(rx_tensor_new(ctx, RELAX_F32, (int64_t[]){-1}, 1, &t), RELAX_E_LIMIT);
    assert_int_equal(rx_tensor_new(ctx, RELAX_F32, (int64_t[]){1ll << 62}, 1, &t), RELAX_E_LIMIT);
    assert_int_equal(rx_tensor_new(ctx, RELAX_DTYPE_COUNT, NULL, 0, &t), RELAX_E_INVALID);
    assert_int_equal(rx_tensor_new(ctx, RELAX_F32, NULL, 17, &t), RELAX_E_SHAPE);
    rx_diag_clear(ctx);
    tl_done(&th, ctx);
}

static int done_calls;
static void done(void *arg) { done_calls += *(int *)arg; }

static void borrow(void **state)
{
    (void)state;
    tl_heap th;
    relax_context *ctx = tl_context(&th);
    int one = 1;
    char raw[32];
    rx_tensor *t;
    done_calls = 0;
    assert_int_equal(rx_tensor_borrow(ctx, RELAX_I32, (int64_t[]){2}, 1, raw + 1, false, done, &one, &t),
                     RELAX_E_INVALID);
    assert_int_equal(rx_tensor_borrow(ctx, RELAX_I32, (int64_t[]){2}, 1, NULL, false, done, &one, &t), RELAX_E_INVALID);
    assert_int_equal(rx_tensor_borrow(ctx, RELAX_U8, (int64_t[]){2}, 1, raw + 1, false, done, &one, &t), RELAX_OK);
    assert_int_equal(done_calls, 0);
    /* tuples keep what they hold; nesting and size are bounded */
    relax_any v = {.kind = RELAX_ANY_TENSOR, .u.obj = &t->h};
    rx_tuple *u = rx_tuple_new(rx_memfn_of(ctx), &v, 1);
    rx_release(&t->h);
    assert_int_equal(done_calls, 0);
    for (int i = 0; i < RX_TUPLE_DEPTH; i++) {
        relax_any x = {.kind = RELAX_ANY_TUPLE, .u.obj = &u->h};
        rx_tuple *up = rx_tuple_new(rx_memfn_of(ctx), &x, 1);
        assert_non_null(up);
        rx_release(&u->h);
        u = up;
    }
    relax_any x = {.kind = RELAX_ANY_TUPLE, .u.obj = &u->h};
    assert_null(rx_tuple_new(rx_memfn_of(ctx), &x, 1));
    rx_release(&u->h);
    assert_int_equal(done_calls, 1);
    u = rx_tuple_new(rx_memfn_of(ctx), NULL, 0);
    rx_tuple *up = u;
    for (int i = 0; up && i < 30; i++) {        /* (t, t) again and again */
        relax_any two[2] = {{.kind = RELAX_ANY_TUPLE, .u.obj = &u->h}, {.kind = RELAX_ANY_TUPLE, .u.obj = &u->h}};
        up = rx_tuple_new(rx_memfn_of(ctx), two, 2);
        if (up) {
            rx_release(&u->h);
            u = up;
        }
    }
    assert_null(up);
    rx_release(&u->h);
    rx_diag_clear(ctx);
    tl_done(&th, ctx);
}

/* --- pool --- */
typedef struct sums { int64_t part[64]; _Atomic int calls; int64_t n; } sums;

static void add_up(void *arg, int32_t i)
{
    sums *s = arg;
    for (int64_t k = 0; k < s->n; k++)
        s->part[i] += k;
    atomic_fetch_add(&s->calls, 1);
}

static void pool(void **state)
{
    (void)state;
    tl_heap th;
    relax_context *ctx = tl_context(&th);
    for (int32_t n = 1; n <= 6; n++) {
        rx_pool *p;
        assert_int_equal(rx_pool_create(ctx, n, NULL, NULL, &p), RELAX_OK);
        assert_int_equal(rx_pool_threads(p), n);
        sums s = {.n = 10};
        int total = 0;
        for (int round = 0; round < 400; round++) {
            int32_t parts = round % n + 1;
            rx_pool_run(p, parts, add_up, &s);
            total += parts;
            assert_int_equal(s.calls, total);
            if (round % 100 == 99) {            /* long enough for workers to sleep */
                int64_t start = rx_now_ns();
                while (rx_now_ns() - start < 3000000)
                    rx_cpu_relax();
            }
        }
        int64_t all = 0;
        for (int32_t i = 0; i < n; i++)
            all += s.part[i];
        assert_int_equal(all, (int64_t)total * 45);
        s.n = 3000000;                          /* the caller sleeps */
        rx_pool_run(p, n, add_up, &s);
        rx_pool_destroy(p);
    }
    tl_done(&th, ctx);
}

static void host_parallel(void *user, int32_t n, void (*task)(void *arg, int32_t i), void *arg)
{
    (*(int *)user)++;
    for (int32_t i = n; i-- > 0;)
        task(arg, i);
}

static void host_pool(void **state)
{
    (void)state;
    tl_heap th;
    relax_context *ctx = tl_context(&th);
    rx_pool *p;
    int used = 0;
    sums s = {.n = 10};
    assert_int_equal(rx_pool_create(ctx, 4, host_parallel, &used, &p), RELAX_OK);
    rx_pool_run(p, 4, add_up, &s);
    rx_pool_run(p, 1, add_up, &s);
    assert_int_equal(used, 1);
    assert_int_equal(s.calls, 5);
    rx_pool_destroy(p);
    tl_done(&th, ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(import), cmocka_unit_test(export),    cmocka_unit_test(borrow),
        cmocka_unit_test(pool),   cmocka_unit_test(host_pool),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
