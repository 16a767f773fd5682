/* test_rt_lib.c: functions of the host, C functions through libffi, OpenBLAS, builtins compared with slow code, native
 * code. */
#define _GNU_SOURCE
#include "testlib.h"

#include "rtlib.h"

#include <math.h>
#include <stdlib.h>

/* An executable with one function f(args: Object…) that calls one library function and returns what it made. */
typedef struct call {
    const char *lib;
    int32_t kind, nparams, nsyms;
    int64_t syms[8];
    int32_t nouts;                     /* DPS: results */
    relax_dtype out[2];
    int32_t ndim[2];
    int64_t dims[2][4];
} call;

static relax_executable *one_call(relax_context *ctx, const call *c)
{
    relax_executable *volatile e = NULL;
    TL_TRY(ctx)
    {
        rx_pkgw *w = rx_pkgw_new(ctx, rx_scratch(&ctx->heap));
        int32_t regs[8], syms[8], n = 0;
        rx_pkgw_fn_begin(w, rx_pkgw_fn(w, "f", 0));
        for (int32_t i = 0; i < c->nparams; i++, n++) {
            rx_pkgw_param(w, "x", "Object", 0, -1);
            regs[i] = i;
        }
        for (int32_t i = 0; i < c->nsyms; i++)
            syms[i] = I(c->syms[i]);
        int32_t result = rx_pkgw_reg(w);
        if (c->kind == RX_LIB_PACKED) {
            for (int32_t i = 0; i < c->nsyms; i++) {
                regs[n] = rx_pkgw_reg(w);
                OP(RX_BC_PRIM, regs[n++], RELAX_ANY_INT, syms[i]);
            }
            OP(RX_BC_PACKED, rx_pkgw_lib(w, c->lib, RX_LIB_PACKED), n, regs, result);
        } else {
            for (int32_t i = 0; i < c->nparams; i++)
                OP(RX_BC_MATCH, i, rx_pkgw_type_tensor(w, RELAX_DTYPE_UNKNOWN, -1, NULL), i, S("x"));
            for (int32_t i = 0; i < c->nouts; i++) {
                rx_pkgw_dim d[4];
                for (int32_t k = 0; k < c->ndim[i]; k++)
                    d[k] = EQ(I(c->dims[i][k]));
                regs[n] = rx_pkgw_reg(w);
                OP(RX_BC_ALLOC, regs[n++], rx_pkgw_type_tensor(w, c->out[i], c->ndim[i], d));
            }
            OP(RX_BC_LIB, rx_pkgw_lib(w, c->lib, RX_LIB_DPS), n, regs, c->nsyms, syms);
            OP(RX_BC_TUPLE, result, c->nouts, regs + c->nparams);
        }
        OP(RX_BC_RET, result);
        rx_pkgw_fn_end(w, "Object", 0);
        uint8_t *bytes;
        size_t size;
        rx_pkgw_finish(w, &bytes, &size);
        relax_executable *x;
        assert_int_equal(rx_exe_open(ctx, bytes, size, RX_EXE_COPY, &x), RELAX_OK);
        e = x;
    }
    TL_END(ctx)
    return e;
}

static relax_status do_call(relax_context *ctx, const call *c, const relax_any *args, relax_any *r)
{
    relax_executable *e = one_call(ctx, c);
    relax_vm *vm;
    const rx_vm_options o = {.threads = 1};
    relax_status s = rx_vm_create(ctx, e, &o, &vm);
    memset(r, 0, sizeof *r);
    if (!s)
        s = rx_vm_call(vm, 0, args, c->nparams, NULL, 0, r);
    rx_vm_destroy(vm);
    rx_exe_release(e);
    return s;
}

static const rx_tensor *field(const relax_any *r, int32_t i)
{
    assert_int_equal(r->kind, RELAX_ANY_TUPLE);
    const rx_tuple *t = (const rx_tuple *)r->u.obj;
    assert_true(i < t->n && t->at[i].kind == RELAX_ANY_TENSOR);
    return (const rx_tensor *)t->at[i].u.obj;
}

/* --- sorting: all data types against insertion sort --- */
static bool less(relax_dtype t, const void *a, const void *b)
{
    if (!rx_dtype_is_float(t))
        return t == RELAX_U64 ? *(const uint64_t *)a < *(const uint64_t *)b : rx_load_i64(t, a) < rx_load_i64(t, b);
    double x = rx_load_f64(t, a), y = rx_load_f64(t, b);
    return isnan(y) ? !isnan(x) : x < y;
}

/* positions of a line of n elements `step` bytes apart, in order */
static void slow_sort(relax_dtype t, const char *p, int64_t n, size_t step, bool descending, int64_t *order)
{
    for (int64_t i = 0; i < n; i++) {
        int64_t k = i;
        for (; k > 0; k--) {
            const char *a = p + (size_t)order[k - 1] * step, *b = p + (size_t)i * step;
            if (!(descending ? less(t, a, b) : less(t, b, a)))
                break;
            order[k] = order[k - 1];
        }
        order[k] = i;
    }
}

static void fill(relax_dtype t, char *p, int64_t n, uint64_t seed)
{
    for (int64_t i = 0; i < n; i++) {
        seed = rx_mix(seed, (uint64_t)i);
        double v = (double)((int64_t)(seed >> 40) % 9) - (rx_dtype_is_uint(t) || t == RELAX_BOOL ? 0 : 4);
        if (rx_dtype_is_float(t) && seed % 11 == 0)
            v = NAN;
        if (t == RELAX_BOOL)
            v = v > 3;
        rx_store_f64(t, p + (size_t)i * rx_dtype_bytes(t), v);
    }
    if (t == RELAX_U64 && n)
        memset(p, 0xFF, 8);
}

static void sorting(void **state)
{
    (void)state;
    tl_heap th;
    relax_context *ctx = tl_context(&th);
    static _Alignas(8) char x[3 * 17 * 2 * 8];
    int64_t dims[3] = {3, 17, 2}, order[17];
    for (relax_dtype t = 1; t < RELAX_DTYPE_COUNT; t++) {
        size_t size = rx_dtype_bytes(t);
        fill(t, x, 102, (uint64_t)t);
        DLTensor d = rl_dl(t, x, 3, dims);
        relax_any a = ARG_DL(&d), r;
        for (int descending = 0; descending < 2; descending++) {
            call c = {"rx.sort", RX_LIB_DPS, 1, 2, {1, descending}, 1, {t}, {3}, {{3, 17, 2}}};
            assert_int_equal(do_call(ctx, &c, &a, &r), RELAX_OK);
            call ca = {"rx.argsort", RX_LIB_DPS,  1, 2, {-2, descending}, 1, {descending ? RELAX_I32 : RELAX_I64},
                       {3},          {{3, 17, 2}}};
            relax_any ra, rk;
            assert_int_equal(do_call(ctx, &ca, &a, &ra), RELAX_OK);
            int64_t k = descending ? 2 : 9;             /* heap and full sort */
            call ck = {
                "rx.topk", RX_LIB_DPS, 1, 4, {k, 1, descending, 0}, 2, {t, RELAX_I64}, {3, 3}, {{3, k, 2}, {3, k, 2}}};
            assert_int_equal(do_call(ctx, &ck, &a, &rk), RELAX_OK);
            for (int64_t line = 0; line < 6; line++) {
                size_t base = (size_t)(line / 2 * 34 + line % 2);
                slow_sort(t, x + base * size, 17, 2 * size, descending, order);
                for (int64_t i = 0; i < 17; i++) {
                    size_t at = base + (size_t)i * 2;
                    const char *want = x + (base + (size_t)order[i] * 2) * size;
                    assert_memory_equal((char *)field(&r, 0)->data + at * size, want, size);
                    const rx_tensor *ix = field(&ra, 0);
                    assert_int_equal(rx_load_i64(ix->dtype, (char *)ix->data + at * rx_dtype_bytes(ix->dtype)),
                                     order[i]);
                    if (i >= k)
                        continue;
                    size_t kat = (size_t)(line / 2 * k * 2 + i * 2 + line % 2);
                    assert_memory_equal((char *)field(&rk, 0)->data + kat * size, want, size);
                    assert_int_equal(((int64_t *)field(&rk, 1)->data)[kat], order[i]);
                }
            }
            rx_any_release(&r);
            rx_any_release(&ra);
            rx_any_release(&rk);
        }
    }
    tl_done(&th, ctx);
}

static void sort_edges(void **state)
{
    (void)state;
    tl_heap th;
    relax_context *ctx = tl_context(&th);
    float x[4] = {2, -0.0f, 0.0f, 1};
    DLTensor d = rl_dl(RELAX_F32, x, 1, (int64_t[]){4}), scalar = rl_dl(RELAX_F32, x, 0, NULL),
             empty = rl_dl(RELAX_F32, x, 3, (int64_t[]){0, 1ll << 40, 1ll << 40});
    relax_any a = ARG_DL(&d), s = ARG_DL(&scalar), z = ARG_DL(&empty), r;
    const float want[4] = {-0.0f, 0.0f, 1, 2};
    call c = {"rx.sort", RX_LIB_DPS, 1, 2, {0, 0}, 1, {RELAX_F32}, {1}, {{4}}};
    assert_int_equal(do_call(ctx, &c, &a, &r), RELAX_OK);
    assert_memory_equal(field(&r, 0)->data, want, sizeof want);         /* -0 and 0 are equal and stay in order */
    rx_any_release(&r);
    c = (call){"rx.sort", RX_LIB_DPS, 1, 2, {0, 0}, 1, {RELAX_F32}, {0}, {{0}}};
    assert_int_equal(do_call(ctx, &c, &s, &r), RELAX_OK);
    assert_memory_equal(field(&r, 0)->data, x, 4);
    rx_any_release(&r);
    c = (call){"rx.sort", RX_LIB_DPS, 1, 2, {1, 0}, 1, {RELAX_F32}, {2}, {{0, 7}}};
    assert_int_equal(do_call(ctx, &c, &z, &r), RELAX_OK);
    rx_any_release(&r);
    /* wrong use is a status */
    static const call bad[] = {
        {"rx.sort", RX_LIB_DPS, 1, 2, {1, 0}, 1, {RELAX_F32}, {1}, {{4}}},
        {"rx.sort", RX_LIB_DPS, 1, 2, {-2, 0}, 1, {RELAX_F32}, {1}, {{4}}},
        {"rx.sort", RX_LIB_DPS, 1, 1, {0}, 1, {RELAX_F32}, {1}, {{4}}},
        {"rx.sort", RX_LIB_DPS, 1, 2, {0, 0}, 1, {RELAX_F32}, {1}, {{5}}},
        {"rx.sort", RX_LIB_DPS, 1, 2, {0, 0}, 1, {RELAX_F64}, {1}, {{4}}},
        {"rx.argsort", RX_LIB_DPS, 1, 2, {0, 0}, 1, {RELAX_F32}, {1}, {{4}}},
        {"rx.topk", RX_LIB_DPS, 1, 4, {2, 0, 1, 3}, 1, {RELAX_F32}, {1}, {{2}}},
        {"rx.topk", RX_LIB_DPS, 1, 4, {2, 0, 1, 1}, 1, {RELAX_F32}, {1}, {{3}}},
        {"rx.topk", RX_LIB_DPS, 1, 4, {2, 0, 1, 2}, 1, {RELAX_F32}, {1}, {{2}}},
        {"rx.topk", RX_LIB_DPS, 1, 4, {2, 0, 1, 0}, 1, {RELAX_F32}, {1}, {{2}}},
        {"rx.shape_to_tensor", RX_LIB_DPS, 0, 2, {4, 5}, 1, {RELAX_I64}, {1}, {{3}}},
        {"rx.unique", RX_LIB_PACKED, 1, 3, {1, 0, 0}, 0, {0}, {0}, {{0}}},
        {"rx.unique", RX_LIB_PACKED, 1, 5, {1, 0, 0, 0, 1}, 0, {0}, {0}, {{0}}},
        {"rx.nonzero", RX_LIB_PACKED, 1, 1, {1}, 0, {0}, {0}, {{0}}},
        {"rx.tensor_to_shape", RX_LIB_PACKED, 1, 0, {0}, 0, {0}, {0}, {{0}}},
    };
    for (size_t i = 0; i < RX_COUNT(bad); i++) {
        assert_int_not_equal(do_call(ctx, &bad[i], &a, &r), RELAX_OK);
        assert_int_equal(tl_last_error(ctx), RXE_LIBRARY_FAILED);
        rx_diag_clear(ctx);
    }
    tl_done(&th, ctx);
}

/* --- values in, value out --- */
static void is_i64(const relax_any *v, int64_t n, const int64_t *want)
{
    assert_int_equal(v->kind, RELAX_ANY_TENSOR);
    const rx_tensor *t = (const rx_tensor *)v->u.obj;
    assert_int_equal(t->dtype, RELAX_I64);
    assert_int_equal(t->bytes, n * 8);
    assert_memory_equal(t->data, want, (size_t)n * 8);
}

static void unique(void **state)
{
    (void)state;
    tl_heap th;
    relax_context *ctx = tl_context(&th);
    int64_t x[8] = {5, 2, 5, -1, 2, 5, 9, -1};
    DLTensor d = rl_dl(RELAX_I64, x, 2, (int64_t[]){2, 4}), dz = rl_dl(RELAX_I64, x, 2, (int64_t[]){0, 4});
    relax_any a = ARG_DL(&d), z = ARG_DL(&dz), r;
    static const struct { int64_t sorted, values[4], index[4], inverse[8], counts[4]; } rows[2] = {
        {1, {-1, 2, 5, 9}, {3, 1, 0, 6}, {2, 1, 2, 0, 1, 2, 3, 0}, {2, 2, 3, 1}},
        {0, {5, 2, -1, 9}, {0, 1, 3, 6}, {0, 1, 0, 2, 1, 0, 3, 2}, {3, 2, 2, 1}}};
    for (int i = 0; i < 2; i++) {
        call c = {"rx.unique", RX_LIB_PACKED, 1, 4, {rows[i].sorted, 1, 1, 1}, 0, {0}, {0}, {{0}}};
        assert_int_equal(do_call(ctx, &c, &a, &r), RELAX_OK);
        const rx_tuple *t = (const rx_tuple *)r.u.obj;
        assert_true(r.kind == RELAX_ANY_TUPLE && t->n == 4);
        is_i64(&t->at[0], 4, rows[i].values);
        is_i64(&t->at[1], 4, rows[i].index);
        is_i64(&t->at[2], 8, rows[i].inverse);
        is_i64(&t->at[3], 4, rows[i].counts);
        rx_any_release(&r);
    }
    /* slices */
    int64_t y[8] = {1, 2, 1, 2, 3, 4, 3, 5}, columns[6] = {1, 2, 2, 3, 4, 5}, inverse[4] = {0, 1, 0, 2};
    d.data = y;
    call c = {"rx.unique", RX_LIB_PACKED, 1, 5, {1, 0, 1, 0, -1}, 0, {0}, {0}, {{0}}};
    assert_int_equal(do_call(ctx, &c, &a, &r), RELAX_OK);
    is_i64(&((const rx_tuple *)r.u.obj)->at[0], 6, columns);
    is_i64(&((const rx_tuple *)r.u.obj)->at[1], 4, inverse);
    rx_any_release(&r);
    /* empty, NaN */
    assert_int_equal(do_call(ctx, &c, &z, &r), RELAX_OK);
    rx_any_release(&r);
    float f[4] = {NAN, 1, NAN, -0.0f};
    DLTensor df = rl_dl(RELAX_F32, f, 1, (int64_t[]){4});
    relax_any af = ARG_DL(&df);
    c = (call){"rx.unique", RX_LIB_PACKED, 1, 4, {1, 0, 0, 0}, 0, {0}, {0}, {{0}}};
    assert_int_equal(do_call(ctx, &c, &af, &r), RELAX_OK);
    const rx_tensor *t = (const rx_tensor *)r.u.obj;
    assert_true(t->dims[0] == 4 && ((float *)t->data)[1] == 1 && isnan(((float *)t->data)[2]) &&
                isnan(((float *)t->data)[3]));
    rx_any_release(&r);
    /* nonzero, shapes */
    const int64_t where[6] = {0, 1, 1, 1, 0, 2};
    int64_t v[6] = {0, 7, 0, -1, 0, 3};
    DLTensor dv = rl_dl(RELAX_I64, v, 2, (int64_t[]){2, 3}), ds = rl_dl(RELAX_I64, v, 0, NULL),
             dn = rl_dl(RELAX_I64, v + 3, 1, (int64_t[]){2});
    relax_any av = ARG_DL(&dv), as = ARG_DL(&ds), an = ARG_DL(&dn);
    c = (call){"rx.nonzero", RX_LIB_PACKED, 1, 0, {0}, 0, {0}, {0}, {{0}}};
    assert_int_equal(do_call(ctx, &c, &av, &r), RELAX_OK);
    is_i64(&r, 6, where);
    rx_any_release(&r);
    assert_int_equal(do_call(ctx, &c, &as, &r), RELAX_OK);
    is_i64(&r, 0, where);
    assert_int_equal(((const rx_tensor *)r.u.obj)->dims[0], 1);
    rx_any_release(&r);
    c.lib = "rx.shape_of";
    assert_int_equal(do_call(ctx, &c, &av, &r), RELAX_OK);
    assert_true(r.kind == RELAX_ANY_SHAPE && ((const rx_shape *)r.u.obj)->dims[1] == 3);
    rx_any_release(&r);
    c.lib = "rx.tensor_to_shape";
    assert_int_equal(do_call(ctx, &c, &an, &r), RELAX_E_INTERNAL);
    assert_string_equal(rl_message(ctx), "rx.tensor_to_shape failed: element 0 is -1, a dim cannot be negative");
    dn.data = v + 4;
    assert_int_equal(do_call(ctx, &c, &an, &r), RELAX_OK);
    assert_true(r.kind == RELAX_ANY_SHAPE && ((const rx_shape *)r.u.obj)->n == 2 &&
                ((const rx_shape *)r.u.obj)->dims[1] == 3);
    rx_any_release(&r);
    rx_diag_clear(ctx);
    tl_done(&th, ctx);
}

/* --- functions of the host --- */
static relax_status twice(void *user, const relax_library_call *c)
{
    if (*(int *)user) {
        memcpy(c->error, "no luck", 8);
        return RELAX_E_INVALID;
    }
    for (int64_t i = 0; i < c->args[0]->shape[0]; i++)
        ((float *)c->args[1]->data)[i] = 2 * ((const float *)c->args[0]->data)[i] + (float)c->syms[0];
    return RELAX_OK;
}

static relax_status echo(void *user, const relax_packed_call *c)
{
    (void)user;
    relax_any again;
    if (rx_vm_call(c->vm, 0, NULL, 0, NULL, 0, &again) != RELAX_E_INVALID)      /* the VM is busy */
        return RELAX_E_INTERNAL;
    *c->result = c->args[0];
    rx_any_retain(c->result);
    return RELAX_OK;
}

static relax_status nonsense(void *user, const relax_packed_call *c)
{
    c->result->kind = *(int *)user;
    return RELAX_OK;
}

static int c_axpy(const float *x, float *y, int n, int64_t m, float a, double b)
{
    for (int i = 0; i < n; i++)
        y[i] = a * x[i] + (float)b;
    return m != 7;
}

static void host_functions(void **state)
{
    (void)state;
    tl_heap th;
    relax_context *ctx = tl_context(&th);
    int user = 0, bad = 99;
    float x[3] = {1, 2, 3};
    DLTensor d = rl_dl(RELAX_F32, x, 1, (int64_t[]){3});
    relax_any a = ARG_DL(&d), r;
    call c = {"my.twice", RX_LIB_DPS, 1, 1, {5}, 1, {RELAX_F32}, {1}, {{3}}};
    assert_int_equal(do_call(ctx, &c, &a, &r), RELAX_E_NOT_FOUND);
    assert_string_equal(rl_message(ctx), "the executable calls the library function my.twice, which is not registered");
    assert_int_equal(rx_lib_register_packed(ctx, "my.twice", echo, NULL), RELAX_OK);
    assert_int_equal(do_call(ctx, &c, &a, &r), RELAX_E_NOT_FOUND);      /* the other kind */
    assert_int_equal(rx_lib_register(ctx, "my.twice", twice, &user), RELAX_E_INVALID);
    assert_int_equal(rx_lib_unregister(ctx, "my.twice"), RELAX_OK);
    assert_int_equal(rx_lib_unregister(ctx, "my.twice"), RELAX_E_NOT_FOUND);
    assert_int_equal(rx_lib_register(ctx, "my.twice", twice, &user), RELAX_OK);
    assert_int_equal(rx_lib_register(ctx, "rx.mine", twice, &user), RELAX_E_INVALID);
    assert_int_equal(do_call(ctx, &c, &a, &r), RELAX_OK);
    assert_true(((float *)field(&r, 0)->data)[2] == 11);
    rx_any_release(&r);
    user = 1;
    assert_int_equal(do_call(ctx, &c, &a, &r), RELAX_E_INTERNAL);
    assert_string_equal(rl_message(ctx), "my.twice failed: no luck");
    assert_int_equal(rx_lib_register_packed(ctx, "my.echo", echo, NULL), RELAX_OK);
    c = (call){"my.echo", RX_LIB_PACKED, 1, 0, {0}, 0, {0}, {0}, {{0}}};
    relax_any seven = ARG_INT(7);
    assert_int_equal(do_call(ctx, &c, &seven, &r), RELAX_OK);
    assert_true(r.kind == RELAX_ANY_INT && r.u.i == 7);
    assert_int_equal(do_call(ctx, &c, &a, &r), RELAX_OK);
    assert_ptr_not_equal(((const rx_tensor *)r.u.obj)->data, x);        /* lent memory does not leave the call */
    rx_any_release(&r);
    assert_int_equal(rx_lib_register_packed(ctx, "my.bad", nonsense, &bad), RELAX_OK);
    c.lib = "my.bad";
    static const int kinds[] = {99, RELAX_ANY_TENSOR, RELAX_ANY_TUPLE, RELAX_ANY_STR, RELAX_ANY_DLTENSOR, -1};
    for (size_t i = 0; i < RX_COUNT(kinds); i++) {
        bad = kinds[i];
        assert_int_equal(do_call(ctx, &c, &a, &r), RELAX_E_INTERNAL);
        assert_string_equal(rl_message(ctx), "my.bad failed: it returned a value that cannot be used");
    }
    rx_diag_clear(ctx);
    tl_done(&th, ctx);
}

static void c_functions(void **state)
{
    (void)state;
    tl_heap th;
    relax_context *ctx = tl_context(&th);
    float x[3] = {1, 2, 3};
    double a = 2.5, b = -1;
    DLTensor d = rl_dl(RELAX_F32, x, 1, (int64_t[]){3});
    relax_any arg = ARG_DL(&d), r;
    static const char *const wrong[] = {"", "i", "x:p", "i:q", "v:pppppppppppppppppppppppppppppppppp"};
    for (size_t i = 0; i < RX_COUNT(wrong); i++)
        assert_int_equal(rx_lib_register_c(ctx, "c.axpy", (void *)(uintptr_t)c_axpy, wrong[i]), RELAX_E_INVALID);
    assert_int_equal(rx_lib_register_c(ctx, "c.axpy", (void *)(uintptr_t)c_axpy, "i:ppilfd"), RELAX_OK);
    call c = {"c.axpy", RX_LIB_DPS, 1, 4, {3, 7, 0, 0}, 1, {RELAX_F32}, {1}, {{3}}};
    memcpy(&c.syms[2], &a, 8);
    memcpy(&c.syms[3], &b, 8);
    assert_int_equal(do_call(ctx, &c, &arg, &r), RELAX_OK);
    const float want[3] = {1.5f, 4, 6.5f};
    assert_memory_equal(field(&r, 0)->data, want, sizeof want);
    rx_any_release(&r);
    c.syms[1] = 8;
    assert_int_equal(do_call(ctx, &c, &arg, &r), RELAX_E_INTERNAL);
    assert_string_equal(rl_message(ctx), "c.axpy failed: it returned an error");
    c.syms[0] = 1ll << 40;
    assert_int_equal(do_call(ctx, &c, &arg, &r), RELAX_E_INTERNAL);
    c.nsyms = 3;
    assert_int_equal(do_call(ctx, &c, &arg, &r), RELAX_E_INTERNAL);
    rx_diag_clear(ctx);
    tl_done(&th, ctx);
}

static void openblas(void **state)
{
    (void)state;
    tl_heap th;
    relax_context *ctx = tl_context(&th);
    assert_int_equal(rx_lib_load(ctx, "nothing"), RELAX_E_NOT_FOUND);
    relax_status s = rx_lib_load(ctx, "openblas");
    rx_diag_clear(ctx);
    if (s) {
        assert_int_equal(s, RELAX_E_NOT_FOUND);
        tl_done(&th, ctx);
        skip();
    }
    assert_int_equal(rx_lib_load(ctx, "openblas"), RELAX_OK);           /* again is nothing */
    float a[2 * 2 * 3], b[2 * 3 * 4];
    for (int i = 0; i < 12; i++)
        a[i] = (float)i;
    for (int i = 0; i < 24; i++)
        b[i] = (float)(i % 5) - 1;
    for (int kind = 0; kind < 4; kind++) {              /* transposes */
        bool ta = kind & 1, tb = kind & 2;
        DLTensor da = rl_dl(RELAX_F32, a, 3, ta ? (int64_t[]){2, 3, 2} : (int64_t[]){2, 2, 3}),
                 db = rl_dl(RELAX_F32, b, 3, tb ? (int64_t[]){2, 4, 3} : (int64_t[]){2, 3, 4});
        relax_any args[2] = {ARG_DL(&da), ARG_DL(&db)}, r;
        call c = {"openblas.sgemm", RX_LIB_DPS, 2, 2, {ta, tb}, 1, {RELAX_F32}, {3}, {{2, 2, 4}}};
        assert_int_equal(do_call(ctx, &c, args, &r), RELAX_OK);
        for (int n = 0; n < 2; n++)
            for (int i = 0; i < 2; i++)
                for (int j = 0; j < 4; j++) {
                    float want = 0;
                    for (int k = 0; k < 3; k++)
                        want += a[n * 6 + (ta ? k * 2 + i : i * 3 + k)] * b[n * 12 + (tb ? j * 3 + k : k * 4 + j)];
                    assert_true(((float *)field(&r, 0)->data)[n * 8 + i * 4 + j] == want);
                }
        rx_any_release(&r);
        c.dims[0][2] = 5;
        assert_int_equal(do_call(ctx, &c, args, &r), RELAX_E_INTERNAL);
        assert_string_equal(rl_message(ctx), "openblas.sgemm failed: the shapes of A, B and C do not fit");
    }
    DLTensor da = rl_dl(RELAX_F32, a, 2, (int64_t[]){2, 0}), db = rl_dl(RELAX_F32, b, 2, (int64_t[]){0, 4});
    relax_any args[2] = {ARG_DL(&da), ARG_DL(&db)}, r;
    call c = {"openblas.sgemm", RX_LIB_DPS, 2, 0, {0}, 1, {RELAX_F32}, {2}, {{2, 4}}};
    assert_int_equal(do_call(ctx, &c, args, &r), RELAX_OK);
    for (int i = 0; i < 8; i++)
        assert_true(((float *)field(&r, 0)->data)[i] == 0);
    rx_any_release(&r);
    rx_diag_clear(ctx);
    tl_done(&th, ctx);
}

/* --- native code: a shared object made by the C compiler stands for the code generator's --- */
static const char source[] =
    "typedef struct { void *const *bufs; const long *syms; int *err; long part, nparts; void *scratch; } args;\n"
    "static void add1(const args *a) { const float *x = a->bufs[0]; float *y = a->bufs[1];\n"
    "  long n = a->syms[0], lo = n * a->part / a->nparts, hi = n * (a->part + 1) / a->nparts;\n"
    "  for (long i = lo; i < hi; i++) y[i] = x[i] + 1; }\n"
    "void (*const rx_entries[])(const args *) = {add1};\n";

static uint8_t *compile(rx_arena *a, size_t *n)
{
    char dir[] = "/tmp/relax-test-XXXXXX", cmd[400], path[64];
    assert_non_null(mkdtemp(dir));
    snprintf(path, sizeof path, "%s/k.c", dir);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(source, f);
    fclose(f);
    snprintf(cmd, sizeof cmd, "cc -O1 -shared -fPIC -nostdlib -o %s/k.so %s 2>/dev/null", dir, path);
    int err = system(cmd);
    snprintf(path, sizeof path, "%s/k.so", dir);
    rx_file so;
    uint8_t *bytes = NULL;
    if (!err && rx_file_map(path, &so) == 0) {
        bytes = rx_arena_dup(a, so.at, so.size);
        *n = so.size;
        rx_file_unmap(&so);
    }
    snprintf(cmd, sizeof cmd, "rm -rf %s", dir);
    assert_int_equal(system(cmd), 0);
    return bytes;
}

static int32_t seen;
static int32_t look(void *user, const void *bytes, size_t n)
{
    seen = n > 4 && memcmp(bytes, "\177ELF", 4) == 0;
    return *(int32_t *)user;
}

static void native_body(relax_context *ctx, rx_arena *a, const uint8_t *so, size_t n, uint32_t extra, uint8_t **bytes,
                        size_t *size)
{
    rx_pkgw *w = rx_pkgw_new(ctx, a);
    relax_target t = {.arch = rx_host_arch(), .features = extra, .name = "cpu:test"};
    rx_pkgw_kernel(w, "add1", "add", 2, 1, (uint8_t[]){1}, 1);
    rl_add1(w, rx_pkgw_fn(w, "add1", 0));
    rx_pkgw_native(w, &t, so, n);
    t.features = 1u << 31;
    t.name = "cpu:future";
    rx_pkgw_native(w, &t, "not code", 8);       /* never chosen */
    rx_pkgw_finish(w, bytes, size);
}

static void native(void **state)
{
    (void)state;
    tl_heap th;
    relax_context *ctx = tl_context(&th);
    volatile bool skipped = false;
    TL_TRY(ctx)
    {
        rx_arena *a = rx_scratch(&ctx->heap);
        size_t n = 0, size;
        uint8_t *so = compile(a, &n), *bytes;
        relax_executable *e;
        relax_vm *vm;
        skipped = so == NULL;
        float x[1000];
        for (int i = 0; i < 1000; i++)
            x[i] = (float)i;
        DLTensor d = rl_dl(RELAX_F32, x, 1, (int64_t[]){1000});
        relax_any arg = ARG_DL(&d), r;
        if (so) {
            native_body(ctx, a, so, n, 0, &bytes, &size);
            char path[] = "/tmp/relax-test-exe-XXXXXX";
            int fd = mkstemp(path);
            assert_true(fd >= 0);
            rx_fd_close(fd);
            assert_int_equal(rx_exe_open(ctx, bytes, size, RX_EXE_BORROW, &e), RELAX_OK);
            assert_int_equal(rx_exe_save(ctx, e, path), RELAX_OK);
            assert_int_equal(rx_exe_save(ctx, e, "/dev/full"), RELAX_E_IO);
            rx_exe_release(e);
            assert_int_equal(rx_exe_open_file(ctx, "/nonexistent/x", &e), RELAX_E_IO);
            assert_int_equal(rx_exe_open_file(ctx, path, &e), RELAX_OK);
            remove(path);
            /* not activated: a status */
            assert_int_equal(rx_vm_create(ctx, e, NULL, &vm), RELAX_OK);
            assert_int_equal(rx_vm_call(vm, 0, &arg, 1, NULL, 0, &r), RELAX_E_INVALID);
            assert_string_equal(rl_message(ctx), "its native code is not activated");
            int32_t answer = 1;
            rx_exe_policy p = {.data_only = true};
            assert_int_equal(rx_exe_activate(ctx, e, &p), RELAX_E_INVALID);
            p = (rx_exe_policy){.verify = look, .user = &answer};
            assert_int_equal(rx_exe_activate(ctx, e, &p), RELAX_E_INVALID);
            assert_true(seen);
            answer = 0;
            assert_int_equal(rx_exe_activate(ctx, e, &p), RELAX_OK);
            assert_string_equal(rx_pkg_str(&e->pkg, e->native->target), "cpu:test");
            assert_int_equal(rx_vm_call(vm, 0, &arg, 1, NULL, 0, &r), RELAX_OK);
            for (int i = 0; i < 1000; i++)
                assert_true(((float *)((rx_tensor *)r.u.obj)->data)[i] == (float)(i + 1));
            rx_any_release(&r);
            rx_vm_destroy(vm);
            rx_exe_release(e);
            /* code for a machine that this is not; bytes that are no shared object */
            native_body(ctx, a, so, n, 1u << 30, &bytes, &size);
            assert_int_equal(rx_exe_open(ctx, bytes, size, RX_EXE_COPY, &e), RELAX_OK);
            assert_int_equal(rx_exe_activate(ctx, e, NULL), RELAX_E_INVALID);
            assert_int_equal(tl_last_error(ctx), RXE_TARGET);
            rx_exe_release(e);
            native_body(ctx, a, (const uint8_t *)"nothing", 7, 0, &bytes, &size);
            assert_int_equal(rx_exe_open(ctx, bytes, size, RX_EXE_COPY, &e), RELAX_OK);
            assert_int_equal(rx_exe_activate(ctx, e, NULL), RELAX_E_FORMAT);
            rx_exe_release(e);
            rx_diag_clear(ctx);
        }
    }
    TL_END(ctx)
    tl_done(&th, ctx);
    if (skipped)
        skip();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sorting),        cmocka_unit_test(sort_edges),  cmocka_unit_test(unique),
        cmocka_unit_test(host_functions), cmocka_unit_test(c_functions), cmocka_unit_test(openblas),
        cmocka_unit_test(native),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
