/* test_rt.c: the VM on a hand-made executable: values, errors, memory. */
#include "testlib.h"

#include "rtlib.h"

typedef struct env { tl_heap th; relax_context *ctx; relax_executable *exe; relax_vm *vm; } env;

static void up(env *e, int32_t threads)
{
    e->ctx = tl_context(&e->th);
    e->exe = rl_open(e->ctx);
    const rx_vm_options o = {.threads = threads};
    assert_int_equal(rx_vm_create(e->ctx, e->exe, &o, &e->vm), RELAX_OK);
}

static void down(env *e)
{
    rx_vm_destroy(e->vm);
    rx_exe_release(e->exe);
    tl_done(&e->th, e->ctx);
}

static relax_status run(env *e, const char *fn, const relax_any *args, int32_t n, relax_any *r)
{
    rx_diag_clear(e->ctx);
    return rx_vm_call(e->vm, rx_vm_function(e->vm, fn), args, n, NULL, 0, r);
}

static void fails(env *e, const char *fn, const relax_any *args, int32_t n, int err, const char *message)
{
    relax_any r = {.kind = 99};
    assert_int_not_equal(run(e, fn, args, n, &r), RELAX_OK);
    assert_int_equal(r.kind, RELAX_ANY_NONE);
    /* tensors of the host that cannot be taken are told without a place, with the function in the message */
    const char *where = rx_diag_at(e->ctx, rx_diag_count(e->ctx) - 1)->where.function;
    if (where)
        assert_string_equal(where, fn);
    if (tl_last_error(e->ctx) != err || (message && strcmp(rl_message(e->ctx), message) != 0))
        fail_msg("RX%d: %s; expected RX%d: %s", tl_last_error(e->ctx), rl_message(e->ctx), err, message ? message : "");
}

static const rx_tensor *tensor(const relax_any *v)
{
    assert_int_equal(v->kind, RELAX_ANY_TENSOR);
    return (const rx_tensor *)v->u.obj;
}

static const rx_tuple *tuple(const relax_any *v, int32_t n)
{
    assert_int_equal(v->kind, RELAX_ANY_TUPLE);
    const rx_tuple *t = (const rx_tuple *)v->u.obj;
    assert_int_equal(t->n, n);
    return t;
}

static void is_f32(const rx_tensor *t, int64_t n, const float *want)
{
    assert_int_equal(t->dtype, RELAX_F32);
    assert_int_equal(t->bytes, n * 4);
    for (int64_t i = 0; i < n; i++)
        if (((const float *)t->data)[i] != want[i])
            fail_msg("element %d is %f, expected %f", (int)i, (double)((const float *)t->data)[i], (double)want[i]);
}

static float w1[32], w2[32];

static void bind_weights(env *e)
{
    rx_tensor *a, *b;
    for (int i = 0; i < 32; i++) {
        w1[i] = (float)(i % 5);
        w2[i] = (float)(i % 3) - 1;
    }
    assert_int_equal(rx_tensor_borrow(e->ctx, RELAX_F32, (int64_t[]){4, 8}, 2, w1, true, NULL, NULL, &a), RELAX_OK);
    assert_int_equal(rx_tensor_borrow(e->ctx, RELAX_F32, (int64_t[]){8, 4}, 2, w2, true, NULL, NULL, &b), RELAX_OK);
    assert_int_equal(rx_vm_bind(e->vm, "layer.w1", a), RELAX_OK);
    assert_int_equal(rx_vm_bind(e->vm, "layer.w2", b), RELAX_OK);
    rx_release(&a->h);
    rx_release(&b->h);
}

static void mlp_want(const float *x, int64_t n, float *y)
{
    for (int64_t i = 0; i < n; i++)
        for (int j = 0; j < 4; j++) {
            float s = 0;
            for (int h = 0; h < 8; h++) {
                float v = 0;
                for (int k = 0; k < 4; k++)
                    v += x[i * 4 + k] * w1[k * 8 + h];
                s += v * w2[h * 4 + j];
            }
            y[i * 4 + j] = s + 1;
        }
}

/* --- every shape from one executable, outputs of the host or of the VM, 1 to 4 threads --- */
static void mlp(void **state)
{
    (void)state;
    static float x[4096 * 4], want[4096 * 4], out[4096 * 4];
    for (int i = 0; i < 4096 * 4; i++)
        x[i] = (float)(i % 7) - 3;
    for (int32_t threads = 1; threads <= 4; threads++) {
        env e;
        up(&e, threads);
        bind_weights(&e);
        static const int64_t sizes[] = {0, 1, 2, 3, 7, 64, 1000, 4096, 5};
        for (size_t i = 0; i < RX_COUNT(sizes); i++) {
            int64_t n = sizes[i], dims[] = {n, 4};
            mlp_want(x, n, want);
            DLTensor d = rl_dl(RELAX_F32, x, 2, dims), o = rl_dl(RELAX_F32, out, 2, dims);
            relax_any r, arg = ARG_DL(&d);
            assert_int_equal(run(&e, "mlp", &arg, 1, &r), RELAX_OK);
            is_f32(tensor(&r), n * 4, want);
            assert_int_equal(tensor(&r)->dims[0], n);
            rx_any_release(&r);
            memset(out, 1, sizeof out);
            const DLTensor *outs[] = {&o};
            assert_int_equal(rx_vm_call(e.vm, 0, &arg, 1, outs, 1, &r), RELAX_OK);
            assert_ptr_equal(tensor(&r)->data, out);
            is_f32(tensor(&r), n * 4, want);
            rx_any_release(&r);
        }
        rx_vm_memory m = rx_vm_get_memory(e.vm);
        assert_true(m.arena_peak >= 4096 * 48 && m.arena <= 4096 * 48 * 2);
        down(&e);
    }
}

/* --- errors name function, argument, dim, expected, found --- */
static void argument_errors(void **state)
{
    (void)state;
    env e;
    up(&e, 1);
    float x[64] = {0};
    DLTensor d = rl_dl(RELAX_F32, x, 2, (int64_t[]){2, 4});
    relax_any a[2] = {ARG_DL(&d)}, r;
    fails(&e, "mlp", a, 1, RXE_NO_WEIGHT, "weight layer.w1 is not bound");
    bind_weights(&e);
    fails(&e, "mlp", a, 0, RXE_ARG_COUNT, "it takes 1 arguments, 0 are given");
    fails(&e, "mlp", a, 2, RXE_ARG_COUNT, "it takes 1 arguments, 2 are given");
    d.shape = (int64_t[]){2, 5};
    fails(&e, "mlp", a, 1, RXE_ARG_DIM, "argument 0 (x): dim 1 is 5, expected 4");
    d.shape = (int64_t[]){4097, 4};
    fails(&e, "mlp", a, 1, RXE_BOUND_EXCEEDED, "argument 0 (x): dim 0: n is 4097, expected 0 to 4096");
    d.shape = (int64_t[]){-1, 4};
    fails(&e, "mlp", a, 1, RXE_ARG_DIM, "mlp: argument 0 (x) has a negative dim or too many elements");
    d.shape = (int64_t[]){1ll << 40, 1ll << 40};
    fails(&e, "mlp", a, 1, RXE_ARG_DIM, "mlp: argument 0 (x) has a negative dim or too many elements");
    d.shape = (int64_t[]){2, 4};
    d.ndim = 1;
    fails(&e, "mlp", a, 1, RXE_ARG_RANK, "argument 0 (x) has rank 1, expected 2");
    d.ndim = 17;
    fails(&e, "mlp", a, 1, RXE_ARG_RANK, "mlp: argument 0 (x) has 17 dims, at most 16 are supported");
    d.ndim = 2;
    d.dtype = rx_dtype_to_dl(RELAX_F16);
    fails(&e, "mlp", a, 1, RXE_ARG_DTYPE, "argument 0 (x) has dtype f16, expected f32");
    d.dtype.lanes = 4;
    fails(&e, "mlp", a, 1, RXE_ARG_DTYPE,
          "mlp: argument 0 (x) has a data type that is not supported (code 2, 16 bits, 4 lanes)");
    d.dtype = rx_dtype_to_dl(RELAX_F32);
    d.device.device_type = kDLCUDA;
    fails(&e, "mlp", a, 1, RXE_ARG_DEVICE, "mlp: argument 0 (x) lies on device type 2, expected the CPU (1)");
    d.device.device_type = kDLCPU;
    d.data = NULL;
    fails(&e, "mlp", a, 1, RXE_ARG_STRIDES, NULL);
    a[0] = ARG_INT(3);
    fails(&e, "mlp", a, 1, RXE_ARG_KIND, "argument 0 (x) is an integer, expected a tensor");
    a[0] = (relax_any){.kind = 42};
    fails(&e, "mlp", a, 1, RXE_ARG_KIND, "argument 0 (x) is not a value that can be passed");
    a[0] = (relax_any){.kind = RELAX_ANY_TENSOR};
    fails(&e, "mlp", a, 1, RXE_ARG_KIND, "argument 0 (x) is not a value that can be passed");
    a[0] = ARG_DL(NULL);
    fails(&e, "mlp", a, 1, RXE_NULL_ARG, "mlp: argument 0 (x) is NULL");
    assert_int_equal(rx_vm_function(e.vm, "add1"), -1);         /* private */
    assert_int_equal(rx_vm_call(e.vm, 1, a, 1, NULL, 0, &r), RELAX_E_NOT_FOUND);
    assert_int_equal(rx_vm_call(e.vm, -1, a, 1, NULL, 0, &r), RELAX_E_NOT_FOUND);
    assert_int_equal(rx_vm_bind(e.vm, "nonsense", NULL), RELAX_E_NOT_FOUND);
    /* a weight of the wrong shape */
    rx_tensor *w;
    assert_int_equal(rx_tensor_new(e.ctx, RELAX_F32, (int64_t[]){4, 7}, 2, &w), RELAX_OK);
    assert_int_equal(rx_vm_bind(e.vm, "layer.w1", w), RELAX_OK);
    d.data = x;
    a[0] = ARG_DL(&d);
    fails(&e, "mlp", a, 1, RXE_ARG_DIM, "weight layer.w1: dim 1 is 7, expected 8");
    rx_release(&w->h);
    down(&e);
}

static void host_memory(void **state)
{
    (void)state;
    env e;
    up(&e, 2);
    bind_weights(&e);
    float x[64], want[8], out[64], y[8];
    for (int i = 0; i < 64; i++)
        x[i] = (float)i;
    /* transposed: element (i, j) at j * 2 + i; byte_offset 8; negative strides */
    struct { int64_t strides[2]; uint64_t offset; int64_t first; } rows[] = {
        {{1, 2}, 0, 0}, {{4, 1}, 8, 2}, {{16, 3}, 4, 1}, {{-4, 1}, 16, 4}, {{0, 1}, 0, 0}};
    for (size_t i = 0; i < RX_COUNT(rows); i++) {
        for (int r = 0; r < 2; r++)
            for (int c = 0; c < 4; c++)
                y[r * 4 + c] = x[rows[i].first + r * rows[i].strides[0] + c * rows[i].strides[1]];
        mlp_want(y, 2, want);
        DLTensor d = rl_dl(RELAX_F32, x, 2, (int64_t[]){2, 4});
        d.strides = rows[i].strides;
        d.byte_offset = rows[i].offset;
        relax_any r, a = ARG_DL(&d);
        assert_int_equal(run(&e, "mlp", &a, 1, &r), RELAX_OK);
        is_f32(tensor(&r), 8, want);
        rx_any_release(&r);
    }
    /* misaligned: copied */
    char raw[64];
    memcpy(raw + 1, x, 32);
    mlp_want(x, 2, want);
    DLTensor d = rl_dl(RELAX_F32, raw + 1, 2, (int64_t[]){2, 4}), o = rl_dl(RELAX_F32, out, 2, (int64_t[]){2, 4});
    const DLTensor *outs[] = {&o};
    relax_any r, a = ARG_DL(&d);
    assert_int_equal(run(&e, "mlp", &a, 1, &r), RELAX_OK);
    is_f32(tensor(&r), 8, want);
    rx_any_release(&r);
    /* the result over the argument: as if they were apart */
    memcpy(out, x, 32);
    d = rl_dl(RELAX_F32, out, 2, (int64_t[]){2, 4});
    o.data = out + 2;
    assert_int_equal(rx_vm_call(e.vm, 0, &a, 1, outs, 1, &r), RELAX_OK);
    rx_any_release(&r);
    assert_memory_equal(out + 2, want, 32);
    /* memory for results that does not fit */
    o.shape = (int64_t[]){2, 5};
    assert_int_equal(rx_vm_call(e.vm, 0, &a, 1, outs, 1, &r), RELAX_E_SHAPE);
    assert_string_equal(rl_message(e.ctx), "memory for result 0: dim 1 is 5, expected 4");
    o.shape = (int64_t[]){2, 4};
    o.strides = (int64_t[]){1, 2};
    assert_int_equal(rx_vm_call(e.vm, 0, &a, 1, outs, 1, &r), RELAX_E_INVALID);
    o.strides = NULL;
    const DLTensor *two[] = {NULL, &o};
    assert_int_equal(rx_vm_call(e.vm, 0, &a, 1, two, 2, &r), RELAX_E_INVALID);
    assert_int_equal(tl_last_error(e.ctx), RXE_ARG_COUNT);
    assert_int_equal(r.kind, RELAX_ANY_NONE);
    down(&e);
}

/* --- IF, function values, tuples, arena memory that must not leave its frame --- */
static void choose(void **state)
{
    (void)state;
    env e;
    up(&e, 1);
    float x[3] = {1, 2, 3};
    const float plus[3] = {2, 3, 4};
    rx_tensor *own;
    assert_int_equal(rx_tensor_new(e.ctx, RELAX_F32, (int64_t[]){3}, 1, &own), RELAX_OK);
    memcpy(own->data, x, sizeof x);
    uint8_t c = 1;
    DLTensor dc = rl_dl(RELAX_BOOL, &c, 0, NULL), dx = rl_dl(RELAX_F32, x, 1, (int64_t[]){3});
    relax_any a[2] = {ARG_DL(&dc), ARG_DL(&dx)}, r;
    assert_int_equal(run(&e, "choose", a, 2, &r), RELAX_OK);
    is_f32(tensor(&tuple(&r, 2)->at[0]), 3, plus);
    is_f32(tensor(&tuple(&r, 2)->at[1]), 3, plus);
    rx_any_release(&r);
    c = 0;
    assert_int_equal(run(&e, "choose", a, 2, &r), RELAX_OK);
    is_f32(tensor(&tuple(&r, 2)->at[0]), 3, x);
    assert_ptr_not_equal(tensor(&tuple(&r, 2)->at[0])->data, x);        /* lent memory is copied */
    rx_any_release(&r);
    a[1] = ARG_OBJ(RELAX_ANY_TENSOR, own);
    a[0] = ARG_INT(0);
    assert_int_equal(run(&e, "choose", a, 2, &r), RELAX_OK);
    assert_ptr_equal(tuple(&r, 2)->at[0].u.obj, own);                   /* an object is shared */
    is_f32(tensor(&tuple(&r, 2)->at[1]), 3, plus);
    rx_any_release(&r);
    /* given memory for the second result only */
    float out[3] = {0};
    DLTensor o = rl_dl(RELAX_F32, out, 1, (int64_t[]){3});
    const DLTensor *outs[] = {NULL, &o};
    assert_int_equal(rx_vm_call(e.vm, rx_vm_function(e.vm, "choose"), a, 2, outs, 2, &r), RELAX_OK);
    assert_memory_equal(out, plus, sizeof out);
    rx_any_release(&r);
    uint32_t word = 0;
    dc = rl_dl(RELAX_U32, &word, 0, NULL);
    a[0] = ARG_DL(&dc);
    fails(&e, "choose", a, 2, RXE_ARG_KIND, "a condition is neither a bool nor a tensor of one bool");
    assert_string_equal(rx_diag_at(e.ctx, 0)->where.function, "choose");
    a[0] = (relax_any){.kind = RELAX_ANY_FLOAT, .u.f = 1};
    fails(&e, "choose", a, 2, RXE_ARG_KIND, NULL);
    rx_release(&own->h);
    down(&e);
}

static void depth(void **state)
{
    (void)state;
    env e;
    up(&e, 1);
    relax_any a[2] = {ARG_INT(RX_VM_MAX_DEPTH - 1), ARG_INT(77)}, r;
    assert_int_equal(run(&e, "deep", a, 2, &r), RELAX_OK);
    assert_int_equal(r.kind, RELAX_ANY_INT);
    assert_int_equal(r.u.i, 77);
    a[0] = ARG_INT(RX_VM_MAX_DEPTH);
    fails(&e, "deep", a, 2, RXE_DEPTH, "calls are nested more than 1000 deep");
    a[0] = ARG_INT(INT64_MIN);                  /* m = n - 1 overflows */
    fails(&e, "deep", a, 2, RXE_LIMIT, "a dimension or size does not fit in 64 bits");
    a[0] = (relax_any){.kind = RELAX_ANY_FLOAT, .u.f = 1};
    fails(&e, "deep", a, 2, RXE_ARG_KIND, "argument 0 (n) is a float, expected an integer");
    a[0] = ARG_INT(0);
    assert_int_equal(run(&e, "deep", a, 2, &r), RELAX_OK);              /* the VM is usable after errors */
    down(&e);
}

static void builtins(void **state)
{
    (void)state;
    env e;
    up(&e, 1);
    float x[6] = {3, 1, 3, 2, 1, 9};
    const float want[4] = {2, 3, 4, 10}, sorted[6] = {1, 3, 2, 3, 1, 9};
    DLTensor d = rl_dl(RELAX_F32, x, 1, (int64_t[]){6}), h = rl_dl(RELAX_F32, x, 1, (int64_t[]){3});
    relax_any a[2] = {ARG_DL(&d), ARG_DL(&h)}, r;
    assert_int_equal(run(&e, "distinct", a, 1, &r), RELAX_OK);
    is_f32(tensor(&r), 4, want);
    rx_any_release(&r);
    assert_int_equal(run(&e, "halves", a, 2, &r), RELAX_OK);
    is_f32(tensor(&tuple(&r, 2)->at[0]), 6, sorted);
    assert_int_equal(tensor(&tuple(&r, 2)->at[0])->dims[0], 3);
    assert_int_equal(tuple(&r, 2)->at[1].kind, RELAX_ANY_SHAPE);
    const rx_shape *s = (const rx_shape *)tuple(&r, 2)->at[1].u.obj;
    assert_true(s->n == 2 && s->dims[0] == 3 && s->dims[1] == 2);
    rx_any_release(&r);
    d.shape = (int64_t[]){5};
    fails(&e, "halves", a, 2, RXE_ARG_DIM, "argument 0 (x): dim 0 must be 2 * m: found 5, expected 4");
    d.shape = (int64_t[]){4};
    fails(&e, "halves", a, 2, RXE_ARG_DIM, "argument 1 (y): dim 0 is 3, expected m = 2");
    /* two phases, in place */
    const float sum = 4 + 9 + 16;
    float v[3] = {2, 3, 4}, squares[3] = {4, 9, 16};
    DLTensor dv = rl_dl(RELAX_F32, v, 1, (int64_t[]){3});
    relax_any av = ARG_DL(&dv);
    assert_int_equal(run(&e, "norm", &av, 1, &r), RELAX_OK);
    is_f32(tensor(&r), 1, &sum);
    assert_memory_equal(v, squares, sizeof v);
    rx_any_release(&r);
    dv.strides = (int64_t[]){0};
    fails(&e, "norm", &av, 1, RXE_ARG_STRIDES, NULL);
    rx_tensor *ro;
    assert_int_equal(rx_tensor_borrow(e.ctx, RELAX_F32, (int64_t[]){3}, 1, v, true, NULL, NULL, &ro), RELAX_OK);
    av = ARG_OBJ(RELAX_ANY_TENSOR, ro);
    fails(&e, "norm", &av, 1, RXE_ARG_STRIDES, "argument 0 (x) is written in place, but its memory is read-only");
    rx_release(&ro->h);
    /* an index out of range is found by the kernel */
    int64_t index[2] = {2, 0};
    const float taken[2] = {30, 10};
    DLTensor di = rl_dl(RELAX_I64, index, 1, (int64_t[]){2});
    relax_any ai = ARG_DL(&di);
    assert_int_equal(run(&e, "take", &ai, 1, &r), RELAX_OK);
    is_f32(tensor(&r), 2, taken);
    rx_any_release(&r);
    index[1] = 3;
    fails(&e, "take", &ai, 1, RXE_INDEX, "take: an index lies outside the tensor");
    index[1] = INT64_MIN;
    fails(&e, "take", &ai, 1, RXE_INDEX, NULL);
    down(&e);
}

/* --- steady state: no allocation, no growth --- */
static void no_allocation(void **state)
{
    (void)state;
    env e;
    up(&e, 2);
    bind_weights(&e);
    static float x[4096 * 4], out[4096 * 4];
    uint8_t c = 1;
    int64_t dims[] = {100, 4};
    DLTensor d = rl_dl(RELAX_F32, x, 2, dims), o = rl_dl(RELAX_F32, out, 2, dims), dc = rl_dl(RELAX_BOOL, &c, 0, NULL),
             dx = rl_dl(RELAX_F32, x, 1, (int64_t[]){50});
    const DLTensor *outs[] = {&o};
    relax_any a = ARG_DL(&d), b[2] = {ARG_DL(&dc), ARG_DL(&dx)}, h[2], r;
    DLTensor dh = rl_dl(RELAX_F32, x, 1, (int64_t[]){25});
    h[0] = b[1];
    h[1] = ARG_DL(&dh);
    int64_t calls = 0, live = 0;
    for (int i = 0; i < 120; i++) {
        if (i == 20) {
            calls = e.th.calls;
            live = e.th.live;
        }
        assert_int_equal(rx_vm_call(e.vm, 0, &a, 1, outs, 1, &r), RELAX_OK);                  /* memory of the host */
        rx_any_release(&r);
        assert_int_equal(rx_vm_call(e.vm, 0, &a, 1, NULL, 0, &r), RELAX_OK);                  /* recycled results */
        rx_any_release(&r);
        c = (uint8_t)(i & 1);
        assert_int_equal(rx_vm_call(e.vm, 2, b, 2, NULL, 0, &r), RELAX_OK);                   /* tuples, nested calls */
        rx_any_release(&r);
        assert_int_equal(rx_vm_call(e.vm, 7, h, 2, NULL, 0, &r), RELAX_OK); /* a library function, a shape */
        rx_any_release(&r);
    }
    assert_int_equal(e.th.calls, calls);
    assert_int_equal(e.th.live, live);
    /* 1,000 calls with n in any order: bounded by the largest */
    size_t most = 0;
    uint64_t seed = 3;
    for (int i = 0; i < 1000; i++) {
        seed = rx_mix(seed, (uint64_t)i);
        dims[0] = i == 0 ? 4096 : (int64_t)(seed >> 20) % 4097;
        assert_int_equal(rx_vm_call(e.vm, 0, &a, 1, NULL, 0, &r), RELAX_OK);
        rx_any_release(&r);
        most = RX_MAX(most, (size_t)e.th.live);
    }
    rx_vm_memory m = rx_vm_get_memory(e.vm);
    assert_true(m.arena <= 4096 * 48 * 3 / 2);
    assert_true(m.pool <= 4096 * 16 * 17);
    assert_true(most <= (size_t)live + 4096 * 48 * 2 + 4096 * 16 * 17);
    down(&e);
}

/* results outlive VM and executable; they may be released anywhere */
static void lifetime(void **state)
{
    (void)state;
    env e;
    up(&e, 1);
    bind_weights(&e);
    float x[8] = {1, 2, 3, 4, 5, 6, 7, 8}, want[8];
    mlp_want(x, 2, want);
    DLTensor d = rl_dl(RELAX_F32, x, 2, (int64_t[]){2, 4});
    relax_any a = ARG_DL(&d), r, q;
    assert_int_equal(run(&e, "mlp", &a, 1, &r), RELAX_OK);
    assert_int_equal(run(&e, "mlp", &a, 1, &q), RELAX_OK);
    DLManagedTensorVersioned *m;
    assert_int_equal(rx_tensor_export(e.ctx, (rx_tensor *)r.u.obj, &m), RELAX_OK);
    rx_any_release(&r);
    rx_vm_destroy(e.vm);
    rx_exe_release(e.exe);
    assert_memory_equal(m->dl_tensor.data, want, sizeof want);
    is_f32(tensor(&q), 8, want);
    m->deleter(m);
    rx_any_release(&q);
    tl_done(&e.th, e.ctx);
}

/* --- the n-th allocation fails: a status, nothing leaks, the next call works --- */
static relax_status whole_life(tl_heap *th, relax_context *ctx, const uint8_t *bytes, size_t size, bool *called)
{
    relax_executable *exe;
    relax_vm *vm = NULL;
    float x[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    uint8_t c = 1;
    DLTensor dc = rl_dl(RELAX_BOOL, &c, 0, NULL), dx = rl_dl(RELAX_F32, x, 1, (int64_t[]){8});
    relax_any a[2] = {ARG_DL(&dc), ARG_DL(&dx)}, r = {0};
    relax_status s = rx_exe_open(ctx, bytes, size, RX_EXE_COPY, &exe);
    if (s)
        return s;
    exe->entries = rl_entries;
    const rx_vm_options o = {.threads = 2};
    s = rx_vm_create(ctx, exe, &o, &vm);
    static const int32_t fns[] = {2, 4, 3, 7};          /* choose distinct deep halves */
    for (int i = 0; i < 4 && !s; i++) {
        dx.shape = (int64_t[]){i == 3 ? 2 : 8};
        relax_any deep[2] = {ARG_INT(40), a[1]}, one = a[1], halves[2] = {a[1], a[1]};
        DLTensor dy = rl_dl(RELAX_F32, x, 1, (int64_t[]){1});
        halves[1] = ARG_DL(&dy);
        s = rx_vm_call(vm, fns[i], i == 0 ? a : i == 1 ? &one : i == 2 ? deep : halves, i == 1 ? 1 : 2, NULL, 0, &r);
        rx_any_release(&r);
    }
    *called = !s;
    if (s && vm) {                                      /* not broken by the failure */
        tl_fail(th, 0, false);
        dx.shape = (int64_t[]){8};
        assert_int_equal(rx_vm_call(vm, 2, a, 2, NULL, 0, &r), RELAX_OK);
        rx_any_release(&r);
    }
    rx_vm_destroy(vm);
    rx_exe_release(exe);
    return s;
}

static void out_of_memory(void **state)
{
    (void)state;
    tl_heap th;
    relax_context *ctx = tl_context(&th);
    TL_TRY(ctx)
    {
        uint8_t *x;
        size_t n;
        rl_write(ctx, rx_scratch(&ctx->heap), &x, &n);
        int64_t live = th.live;
        for (int sticky = 0; sticky < 2; sticky++) {
            bool done = false;
            int i = 1;
            for (; !done; i++) {
                tl_fail(&th, i, sticky);
                relax_status s = whole_life(&th, ctx, x, n, &done);
                tl_fail(&th, 0, false);
                rx_diag_clear(ctx);
                assert_true(done || s == RELAX_E_NOMEM);
                assert_int_equal(th.live, live);
            }
            assert_true(i > 25);
        }
    }
    TL_END(ctx)
    tl_done(&th, ctx);
}

/* --- one executable, a context and a VM for each of several threads --- */
typedef struct job { relax_executable *exe; float x[8], want[8]; bool ok; rx_thread t; } job;

static void work(void *arg)
{
    job *j = arg;
    relax_context *ctx;
    relax_vm *vm;
    if (rx_context_create(NULL, NULL, &ctx))
        return;
    const rx_vm_options o = {.threads = 2};
    rx_tensor *a, *b;
    j->ok = rx_vm_create(ctx, j->exe, &o, &vm) == RELAX_OK &&
            rx_tensor_borrow(ctx, RELAX_F32, (int64_t[]){4, 8}, 2, w1, true, NULL, NULL, &a) == RELAX_OK &&
            rx_tensor_borrow(ctx, RELAX_F32, (int64_t[]){8, 4}, 2, w2, true, NULL, NULL, &b) == RELAX_OK;
    if (!j->ok)
        return;
    rx_vm_bind(vm, "layer.w1", a);
    rx_vm_bind(vm, "layer.w2", b);
    rx_release(&a->h);
    rx_release(&b->h);
    DLTensor d = rl_dl(RELAX_F32, j->x, 2, (int64_t[]){2, 4});
    for (int i = 0; i < 300 && j->ok; i++) {
        relax_any arg1 = ARG_DL(&d), r;
        j->ok = rx_vm_call(vm, 0, &arg1, 1, NULL, 0, &r) == RELAX_OK &&
                memcmp(tensor(&r)->data, j->want, sizeof j->want) == 0;
        rx_any_release(&r);
    }
    rx_vm_destroy(vm);
    rx_context_destroy(ctx);
}

static void threads(void **state)
{
    (void)state;
    env e;
    up(&e, 1);
    bind_weights(&e);
    static job jobs[4];
    for (int i = 0; i < 4; i++) {
        jobs[i].exe = e.exe;
        for (int k = 0; k < 8; k++)
            jobs[i].x[k] = (float)(i + k);
        mlp_want(jobs[i].x, 2, jobs[i].want);
        assert_int_equal(rx_thread_start(&jobs[i].t, work, &jobs[i]), 0);
    }
    for (int i = 0; i < 4; i++) {
        rx_thread_join(&jobs[i].t);
        assert_true(jobs[i].ok);
    }
    down(&e);
}

static void profile(void **state)
{
    (void)state;
    env e;
    up(&e, 1);
    float x[2] = {1, 2};
    DLTensor d = rl_dl(RELAX_F32, x, 1, (int64_t[]){2});
    relax_any a = ARG_DL(&d), r;
    assert_int_equal(rx_vm_profile(e.vm, true), RELAX_OK);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(run(&e, "distinct", &a, 1, &r), RELAX_OK);
        rx_any_release(&r);
    }
    assert_int_equal(rx_vm_profile_rows(e.vm), 4 + 2);
    rx_profile_row k = rx_vm_profile_row(e.vm, K_ADD1), u = rx_vm_profile_row(e.vm, 4);
    assert_string_equal(k.name, "add1");
    assert_string_equal(k.origin, "add");
    assert_true(k.calls == 3 && k.ns >= 0);
    assert_string_equal(u.name, "rx.unique");
    assert_true(u.calls == 3 && u.ns > 0);
    assert_int_equal(rx_vm_profile(e.vm, true), RELAX_OK);              /* resets */
    assert_int_equal(rx_vm_profile_row(e.vm, K_ADD1).calls, 0);
    int64_t bytes;
    const char *names[] = {"n"};
    assert_int_equal(rx_exe_peak(e.ctx, e.exe, "mlp", names, (int64_t[]){10}, 1, &bytes), RELAX_OK);
    assert_int_equal(bytes, 544);
    assert_int_equal(rx_exe_peak(e.ctx, e.exe, "mlp", names, NULL, 0, &bytes), RELAX_E_NOT_FOUND);
    assert_int_equal(rx_exe_peak(e.ctx, e.exe, "nothing", names, NULL, 0, &bytes), RELAX_E_NOT_FOUND);
    down(&e);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mlp),           cmocka_unit_test(argument_errors), cmocka_unit_test(host_memory),
        cmocka_unit_test(choose),        cmocka_unit_test(depth),           cmocka_unit_test(builtins),
        cmocka_unit_test(no_allocation), cmocka_unit_test(lifetime),        cmocka_unit_test(out_of_memory),
        cmocka_unit_test(threads),       cmocka_unit_test(profile),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
