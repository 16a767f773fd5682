/* rtlib.h: a small executable for the tests of pkg/ and rt/, assembled by hand with the writer, and C functions that
 * stand for its kernels. Include after testlib.h. */
#ifndef RTLIB_H
#define RTLIB_H
#include "rt/rt.h"

/* --- kernels: phases in the order of the kernels below --- */
static void span(const rx_kernel_args *a, int64_t n, int64_t *lo, int64_t *hi)
{
    *lo = n * a->part / a->nparts;
    *hi = n * (a->part + 1) / a->nparts;
}

/* y = x + 1, n elements */
static void k_add1(const rx_kernel_args *a)
{
    const float *x = a->bufs[0];
    float *y = a->bufs[1];
    int64_t lo, hi;
    span(a, a->syms[0], &lo, &hi);
    for (int64_t i = lo; i < hi; i++)
        y[i] = x[i] + 1;
}

/* y (n, q) = x (n, p) @ w (p, q) */
static void k_matmul(const rx_kernel_args *a)
{
    const float *x = a->bufs[0], *w = a->bufs[1];
    float *y = a->bufs[2];
    int64_t p = a->syms[1], q = a->syms[2], lo, hi;
    span(a, a->syms[0], &lo, &hi);
    for (int64_t i = lo; i < hi; i++)
        for (int64_t j = 0; j < q; j++) {
            float s = 0;
            for (int64_t k = 0; k < p; k++)
                s += x[i * p + k] * w[k * q + j];
            y[i * q + j] = s;
        }
}

/* two phases: parallel square, then a serial sum of them all into y[0] */
static void k_sumsq_0(const rx_kernel_args *a)
{
    float *x = a->bufs[0];
    int64_t lo, hi;
    span(a, a->syms[0], &lo, &hi);
    for (int64_t i = lo; i < hi; i++)
        x[i] *= x[i];
}

static void k_sumsq_1(const rx_kernel_args *a)
{
    const float *x = a->bufs[0];
    float *y = a->bufs[1];
    y[0] = 0;
    for (int64_t i = 0; i < a->syms[0]; i++)
        y[0] += x[i];
}

/* y[i] = x[index[i]], checked */
static void k_take(const rx_kernel_args *a)
{
    const float *x = a->bufs[0];
    const int64_t *index = a->bufs[1];
    float *y = a->bufs[2];
    for (int64_t i = 0; i < a->syms[1]; i++) {
        if (index[i] < 0 || index[i] >= a->syms[0]) {
            *a->err = RXE_INDEX;
            return;
        }
        y[i] = x[index[i]];
    }
}

TL_UNUSED static const rx_kernel_fn rl_entries[] = {k_add1, k_matmul, k_sumsq_0, k_sumsq_1, k_take};
enum { K_ADD1, K_MATMUL, K_SUMSQ, K_TAKE };

/* --- the writer with short names; w is the writer --- */
#define EQ(ref) ((rx_pkgw_dim){RX_DIM_EQ, (ref)})
#define BIND(slot) ((rx_pkgw_dim){RX_DIM_BIND, (slot)})
#define ANYDIM ((rx_pkgw_dim){RX_DIM_ANY, 0})
#define TENSOR(t, ...)                                                                                                 \
    rx_pkgw_type_tensor(w, t, (int32_t)(sizeof((rx_pkgw_dim[]){__VA_ARGS__}) / sizeof(rx_pkgw_dim)),                   \
                        (rx_pkgw_dim[]){__VA_ARGS__})
#define LIST(...) (int)(sizeof((int32_t[]){__VA_ARGS__}) / sizeof(int32_t)), (int32_t[]){__VA_ARGS__}
#define NOLIST 0, (int32_t *)NULL
#define I(v) rx_pkgw_int(w, v)
#define S(text) rx_pkgw_str(w, text)
#define OP(...) rx_pkgw_op(w, __VA_ARGS__)

static void rl_tables(rx_pkgw *w)
{
    static const uint8_t par[] = {1}, both[] = {1, 0}, ser[] = {0};
    rx_pkgw_kernel(w, "add1", "add", 2, 1, par, 1);
    rx_pkgw_kernel(w, "matmul", "matmul", 3, 3, par, 1);
    rx_pkgw_kernel(w, "sumsq", "", 2, 1, both, 2);
    rx_pkgw_kernel(w, "take", "take", 3, 2, ser, 1);
    rx_pkgw_provenance(w, "library", "librelax 0.1");
    rx_pkgw_provenance(w, "target", "cpu:x86-64-v2");
}

/* mlp(x: (n, 4), w1: weight (4, 8), w2: weight (8, 4)) -> (n, 4): x @ w1 @ w2 + 1, intermediates in the arena, n in
 * 0..4096 */
static void rl_mlp(rx_pkgw *w, int32_t fn)
{
    rx_pkgw_fn_begin(w, fn);
    rx_pkgw_param(w, "x", "Tensor((n, 4), f32)", 0, -1);
    rx_pkgw_param(w, "w1", "Tensor((4, 8), f32)", 0, rx_pkgw_weight(w, "layer.w1", "Tensor((4, 8), f32)"));
    rx_pkgw_param(w, "w2", "Tensor((8, 4), f32)", 0, rx_pkgw_weight(w, "layer.w2", "Tensor((8, 4), f32)"));
    int32_t n = rx_pkgw_slot(w), size = rx_pkgw_slot(w), off = rx_pkgw_slot(w), t = rx_pkgw_slot(w),
            work = rx_pkgw_slot(w);
    int32_t y = rx_pkgw_sym(w, "n", n, 0, 4096, 1, 0, 0);
    OP(RX_BC_MATCH, 0, TENSOR(RELAX_F32, BIND(n), EQ(I(4))), 0, S("x"));
    OP(RX_BC_BOUND, y);
    OP(RX_BC_MATCH, 1, TENSOR(RELAX_F32, EQ(I(4)), EQ(I(8))), 1, S("w1"));
    OP(RX_BC_MATCH, 2, TENSOR(RELAX_F32, EQ(I(8)), EQ(I(4))), 2, S("w2"));
    /* off = align64(n * 32), size = off + n * 16 */
    int32_t first = rx_pkgw_shape(w, RX_SH_MUL, t, n, I(32), 0);
    rx_pkgw_shape(w, RX_SH_ADD, work, t, I(63), 0);
    int32_t q = rx_pkgw_slot(w), r = rx_pkgw_slot(w);
    rx_pkgw_shape(w, RX_SH_FLOORDIV, q, work, I(64), 0);
    rx_pkgw_shape(w, RX_SH_MUL, off, q, I(64), 0);
    rx_pkgw_shape(w, RX_SH_MUL, r, n, I(16), 0);
    rx_pkgw_shape(w, RX_SH_ADD, size, off, r, 0);
    int32_t e4 = rx_pkgw_slot(w);
    rx_pkgw_shape(w, RX_SH_MUL, e4, n, I(4), 0);
    OP(RX_BC_EVAL, first, rx_pkgw_shape_count(w) - first);
    OP(RX_BC_FRAME, size);
    int32_t h = rx_pkgw_reg(w), z = rx_pkgw_reg(w), out = rx_pkgw_reg(w);
    OP(RX_BC_ARENA, h, TENSOR(RELAX_F32, EQ(n), EQ(I(8))), I(0));
    OP(RX_BC_KERNEL, K_MATMUL, LIST(0, 1, h), LIST(n, I(4), I(8)), I(-1));
    OP(RX_BC_ARENA, z, TENSOR(RELAX_F32, EQ(n), EQ(I(4))), off);
    OP(RX_BC_KERNEL, K_MATMUL, LIST(h, 2, z), LIST(n, I(8), I(4)), I(-1));
    OP(RX_BC_OUT, out, 0, TENSOR(RELAX_F32, EQ(n), EQ(I(4))));
    OP(RX_BC_KERNEL, K_ADD1, LIST(z, out), LIST(e4), e4);
    OP(RX_BC_RET, out);
    int32_t m0 = rx_pkgw_slot(w), m1 = rx_pkgw_slot(w), f0 = rx_pkgw_shape(w, RX_SH_MUL, m0, n, I(48), 0);
    rx_pkgw_shape(w, RX_SH_ADD, m1, m0, I(64), 0);
    rx_pkgw_memory(w, "n * 48 + 64", f0, 2, m1);
    rx_pkgw_fn_end(w, "Tensor((n, 4), f32)", 1);
}

/* add1(x: (n,)) -> (n,): private, result on the heap */
static void rl_add1(rx_pkgw *w, int32_t fn)
{
    rx_pkgw_fn_begin(w, fn);
    rx_pkgw_param(w, "x", "Tensor((n,), f32)", 0, -1);
    int32_t n = rx_pkgw_slot(w), y = rx_pkgw_reg(w);
    OP(RX_BC_MATCH, 0, TENSOR(RELAX_F32, BIND(n)), 0, S("x"));
    OP(RX_BC_OUT, y, 0, TENSOR(RELAX_F32, EQ(n)));
    OP(RX_BC_KERNEL, K_ADD1, LIST(0, y), LIST(n), I(-1));
    OP(RX_BC_RET, y);
    rx_pkgw_fn_end(w, "Tensor((n,), f32)", 1);
}

/* choose(c: bool, x: (n,)) -> Tuple((n,), (n,)): (add1(x) if c else x, x + 1 in the arena) */
static void rl_choose(rx_pkgw *w, int32_t fn, int32_t add1)
{
    rx_pkgw_fn_begin(w, fn);
    rx_pkgw_param(w, "c", "Tensor((), bool)", 0, -1);
    rx_pkgw_param(w, "x", "Tensor((n,), f32)", 0, -1);
    int32_t n = rx_pkgw_slot(w), b = rx_pkgw_slot(w), v = rx_pkgw_reg(w), f = rx_pkgw_reg(w), a = rx_pkgw_reg(w),
            t = rx_pkgw_reg(w);
    OP(RX_BC_MATCH, 1, TENSOR(RELAX_F32, BIND(n)), 1, S("x"));
    OP(RX_BC_EVAL, rx_pkgw_shape(w, RX_SH_MUL, b, n, I(4), 0), 1);
    OP(RX_BC_FRAME, b);
    int32_t other = rx_pkgw_label(w), end = rx_pkgw_label(w);
    OP(RX_BC_IF, 0, other);
    OP(RX_BC_FUNC, f, add1);
    OP(RX_BC_CALLR, f, LIST(1), v);
    OP(RX_BC_JUMP, end);
    rx_pkgw_place(w, other);
    OP(RX_BC_MOVE, v, 1);
    rx_pkgw_place(w, end);
    OP(RX_BC_ARENA, a, TENSOR(RELAX_F32, EQ(n)), I(0));
    OP(RX_BC_KERNEL, K_ADD1, LIST(1, a), LIST(n), n);
    OP(RX_BC_TUPLE, t, LIST(v, a));
    OP(RX_BC_RET, t);
    rx_pkgw_fn_end(w, "Tuple(Tensor((n,), f32), Tensor((n,), f32))", 2);
}

/* deep(n: Prim(i64), x) -> x: calls itself n times */
static void rl_deep(rx_pkgw *w, int32_t fn)
{
    rx_pkgw_fn_begin(w, fn);
    rx_pkgw_param(w, "n", "Prim(i64)", 0, -1);
    rx_pkgw_param(w, "x", "Object", 0, -1);
    int32_t n = rx_pkgw_slot(w), m = rx_pkgw_slot(w), p = rx_pkgw_reg(w), v = rx_pkgw_reg(w), zero = rx_pkgw_label(w);
    OP(RX_BC_MATCH, 0, rx_pkgw_type_prim(w, RELAX_I64, &BIND(n)), 0, S("n"));
    OP(RX_BC_BRANCH, n, zero);
    OP(RX_BC_EVAL, rx_pkgw_shape(w, RX_SH_SUB, m, n, I(1), 0), 1);
    OP(RX_BC_PRIM, p, RELAX_ANY_INT, m);
    OP(RX_BC_CALL, fn, LIST(p, 1), v);
    OP(RX_BC_RET, v);
    rx_pkgw_place(w, zero);
    OP(RX_BC_RET, 1);
    rx_pkgw_fn_end(w, "Object", 0);
}

/* distinct(x: (n,)) -> (m,): unique, then add1 of what came back */
static void rl_distinct(rx_pkgw *w, int32_t fn, int32_t add1)
{
    rx_pkgw_fn_begin(w, fn);
    rx_pkgw_param(w, "x", "Tensor((n,), f32)", 0, -1);
    int32_t m = rx_pkgw_slot(w), yes = rx_pkgw_reg(w), no = rx_pkgw_reg(w), u = rx_pkgw_reg(w), y = rx_pkgw_reg(w);
    OP(RX_BC_MATCH, 0, TENSOR(RELAX_F32, ANYDIM), 0, S("x"));
    OP(RX_BC_PRIM, yes, RELAX_ANY_INT, I(1));
    OP(RX_BC_PRIM, no, RELAX_ANY_INT, I(0));
    OP(RX_BC_PACKED, rx_pkgw_lib(w, "rx.unique", RX_LIB_PACKED), LIST(0, yes, no, no, no), u);
    OP(RX_BC_MATCH, u, TENSOR(RELAX_F32, BIND(m)), -1, S("the result of unique"));
    OP(RX_BC_CALL, add1, LIST(u), y);
    OP(RX_BC_KILL, u);
    OP(RX_BC_RET, y);
    rx_pkgw_fn_end(w, "Tensor((m,), f32)", 1);
}

/* norm(x: (n,), in place) -> (): two phases; table: a constant (3,) taken by index (k,) */
static void rl_norm(rx_pkgw *w, int32_t fn)
{
    rx_pkgw_fn_begin(w, fn);
    rx_pkgw_param(w, "x", "Tensor((n,), f32)", RX_PARAM_WRITTEN, -1);
    int32_t n = rx_pkgw_slot(w), y = rx_pkgw_reg(w);
    OP(RX_BC_MATCH, 0, TENSOR(RELAX_F32, BIND(n)), 0, S("x"));
    OP(RX_BC_ALLOC, y, rx_pkgw_type_tensor(w, RELAX_F32, 0, (rx_pkgw_dim[1]){{0}}));
    OP(RX_BC_KERNEL, K_SUMSQ, LIST(0, y), LIST(n), I(-1));
    OP(RX_BC_RET, y);
    rx_pkgw_fn_end(w, "Tensor((), f32)", 1);
}

static void rl_take(rx_pkgw *w, int32_t fn)
{
    static const float table[3] = {10, 20, 30};
    rx_pkgw_fn_begin(w, fn);
    rx_pkgw_param(w, "i", "Tensor((k,), i64)", 0, -1);
    int32_t k = rx_pkgw_slot(w), c = rx_pkgw_reg(w), y = rx_pkgw_reg(w);
    OP(RX_BC_MATCH, 0, TENSOR(RELAX_I64, BIND(k)), 0, S("i"));
    OP(RX_BC_CONST, c, rx_pkgw_const(w, RELAX_F32, 1, (int64_t[]){3}, table, sizeof table));
    OP(RX_BC_OUT, y, 0, TENSOR(RELAX_F32, EQ(k)));
    OP(RX_BC_KERNEL, K_TAKE, LIST(c, 0, y), LIST(I(3), k), I(-1));
    OP(RX_BC_RET, y);
    rx_pkgw_fn_end(w, "Tensor((k,), f32)", 1);
}

/* halves(x: (2 * m,), y: (m,)) -> shape(m, 2): divisibility and an obligation, a view, a library call */
static void rl_halves(rx_pkgw *w, int32_t fn)
{
    rx_pkgw_fn_begin(w, fn);
    rx_pkgw_param(w, "x", "Tensor((2 * m,), f32)", 0, -1);
    rx_pkgw_param(w, "y", "Tensor((m,), f32)", 0, -1);
    int32_t d = rx_pkgw_slot(w), m = rx_pkgw_slot(w), m2 = rx_pkgw_slot(w), ok = rx_pkgw_slot(w);
    int32_t v = rx_pkgw_reg(w), o = rx_pkgw_reg(w), s = rx_pkgw_reg(w), t = rx_pkgw_reg(w);
    rx_pkgw_sym(w, "m", m, 0, INT64_MAX, 1, 0, 0);
    OP(RX_BC_MATCH, 0, TENSOR(RELAX_F32, BIND(d)), 0, S("x"));
    int32_t first = rx_pkgw_shape(w, RX_SH_FLOORDIV, m, d, I(2), 0);
    rx_pkgw_shape(w, RX_SH_MUL, m2, m, I(2), 0);
    rx_pkgw_shape(w, RX_SH_EQ, ok, d, m2, 0);
    OP(RX_BC_EVAL, first, 3);
    OP(RX_BC_CHECK, ok, RXE_ARG_DIM, S("argument 0 (x): dim 0 must be 2 * m"), d, m2);
    OP(RX_BC_MATCH, 1, TENSOR(RELAX_F32, EQ(m)), 1, S("y"));
    OP(RX_BC_VIEW, v, 0, TENSOR(RELAX_F32, EQ(m), EQ(I(2))));
    OP(RX_BC_ALLOC, o, TENSOR(RELAX_F32, EQ(m), EQ(I(2))));
    OP(RX_BC_LIB, rx_pkgw_lib(w, "rx.sort", RX_LIB_DPS), LIST(v, o), LIST(I(-1), I(0)));
    OP(RX_BC_SHAPE, s, LIST(m, I(2)));
    OP(RX_BC_TUPLE, t, LIST(o, s));
    OP(RX_BC_RET, t);
    rx_pkgw_fn_end(w, "Tuple(Tensor((m, 2), f32), Shape(m, 2))", 1);
}

/* the whole executable; bytes in a */
static void rl_write(relax_context *ctx, rx_arena *a, uint8_t **bytes, size_t *size)
{
    rx_pkgw *w = rx_pkgw_new(ctx, a);
    rl_tables(w);
    int32_t mlp = rx_pkgw_fn(w, "mlp", 0), add1 = rx_pkgw_fn(w, "add1", RX_FN_PRIVATE),
            choose = rx_pkgw_fn(w, "choose", 0), deep = rx_pkgw_fn(w, "deep", 0),
            distinct = rx_pkgw_fn(w, "distinct", 0), norm = rx_pkgw_fn(w, "norm", 0), take = rx_pkgw_fn(w, "take", 0),
            halves = rx_pkgw_fn(w, "halves", 0);
    rl_mlp(w, mlp);
    rl_choose(w, choose, add1);        /* bodies in another order than numbers */
    rl_add1(w, add1);
    rl_deep(w, deep);
    rl_distinct(w, distinct, add1);
    rl_norm(w, norm);
    rl_take(w, take);
    rl_halves(w, halves);
    rx_pkgw_finish(w, bytes, size);
}

/* opened, with rl_entries in the place of native code; the bytes are copied */
TL_UNUSED static relax_executable *rl_open(relax_context *ctx)
{
    relax_executable *e = NULL;
    uint8_t *volatile bytes = NULL;
    volatile size_t size = 0;
    rx_frame fr;
    if (RX_ENTER(&ctx->heap, &fr)) {
        uint8_t *b;
        size_t n;
        rl_write(ctx, rx_scratch(&ctx->heap), &b, &n);
        bytes = b;
        size = n;
        assert_int_equal(rx_exe_open(ctx, bytes, size, RX_EXE_COPY, &e), RELAX_OK);
        rx_leave(&ctx->heap, &fr);
    }
    assert_non_null(e);
    e->entries = rl_entries;
    e->nentries = (uint32_t)RX_COUNT(rl_entries);
    return e;
}

/* --- arguments --- */
TL_UNUSED static DLTensor rl_dl(relax_dtype t, void *data, int32_t ndim, int64_t *dims)
{
    return (DLTensor){.data = data, .device = {kDLCPU, 0}, .ndim = ndim, .dtype = rx_dtype_to_dl(t), .shape = dims};
}
#define ARG_DL(d) ((relax_any){.kind = RELAX_ANY_DLTENSOR, .u.dl = (d)})
#define ARG_OBJ(k, o) ((relax_any){.kind = (k), .u.obj = &(o)->h})
#define ARG_INT(v) ((relax_any){.kind = RELAX_ANY_INT, .u.i = (v)})
TL_UNUSED static const char *rl_message(relax_context *ctx)
{
    return rx_diag_count(ctx) ? rx_diag_at(ctx, rx_diag_count(ctx) - 1)->message : "";
}
#endif
