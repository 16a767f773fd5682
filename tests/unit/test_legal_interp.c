/* test_legal_interp.c: tensor programs of operators against the interpreter's own operators, over extents and types.
 *
 * Each line is a call with symbolic extents n and m, and the types its `?` stands for. Extents run through 0, 1, 2, 3,
 * 5, 7, 17; values are small, with NaN and infinities among floats. One program serves all extents. Results must agree
 * to the last bit but for the order of sums and products fused with them. */
#include "testlib.h"

#include <math.h>

#include "interp/interp.h"
#include "op/op.h"

#define FLOATS "f32 f64 f16 bf16"
#define INTS "i8 i16 i32 i64 u8 u16 u32 u64"
#define NUMBERS FLOATS " " INTS
#define ALL NUMBERS " bool"

enum { NORMAL = 0, FINITE = 1, INDEX = 2 /* integers are indices: 0, 1, -1 */, NONZERO = 4 };
static const struct { const char *params, *call, *types; int flags;
} lines[] = {
    {"x: Tensor((n, m), ?)", "abs(x)", NUMBERS, 0},
    {"x: Tensor((n, m), ?)", "negative(x)", NUMBERS, 0},
    {"x: Tensor((n, m), ?)", "square(x)", NUMBERS, 0},
    {"x: Tensor((n, m), ?)", "relu(x)", NUMBERS, 0},
    {"x: Tensor((n, m), ?)", "floor(x)", NUMBERS, 0},
    {"x: Tensor((n, m), ?)", "ceil(x)", NUMBERS, 0},
    {"x: Tensor((n, m), ?)", "round(x)", NUMBERS, 0},
    {"x: Tensor((n, m), ?)", "trunc(x)", NUMBERS, 0},
    {"x: Tensor((n, m), ?)", "exp(x)", FLOATS, 0},
    {"x: Tensor((n, m), ?)", "log(x)", FLOATS, 0},
    {"x: Tensor((n, m), ?)", "sqrt(x)", FLOATS, 0},
    {"x: Tensor((n, m), ?)", "rsqrt(x)", FLOATS, 0},
    {"x: Tensor((n, m), ?)", "sin(x)", FLOATS, 0},
    {"x: Tensor((n, m), ?)", "cos(x)", FLOATS, 0},
    {"x: Tensor((n, m), ?)", "tanh(x)", FLOATS, 0},
    {"x: Tensor((n, m), ?)", "sigmoid(x)", FLOATS, 0},
    {"x: Tensor((n, m), ?)", "silu(x)", FLOATS, 0},
    {"x: Tensor((n, m), ?)", "gelu(x)", FLOATS, 0},
    {"x: Tensor((n, m), ?)", "gelu_tanh(x)", FLOATS, 0},
    {"x: Tensor((n, m), ?)", "erf(x)", FLOATS, 0},
    {"x: Tensor((n, m), ?)", "isnan(x)", ALL, 0},
    {"x: Tensor((n, m), ?)", "logical_not(x)", ALL, 0},
    {"x: Tensor((n, m), ?)", "clip(x, min=-1.5, max=2)", NUMBERS, 0},
    {"x: Tensor((n, m), ?)", "astype(x, dtype=f32)", ALL, 0},
    {"x: Tensor((n, m), ?)", "astype(x, dtype=i8)", ALL, 0},
    {"x: Tensor((n, m), ?)", "astype(x, dtype=u32)", ALL, 0},
    {"x: Tensor((n, m), ?)", "astype(x, dtype=bool)", ALL, 0},
    {"x: Tensor((n, m), ?)", "astype(x, dtype=f16)", ALL, 0},
    {"x: Tensor((n, m), ?)", "astype(x, dtype=bf16)", ALL, 0},
    {"x: Tensor((n, m), ?)", "astype(x, dtype=f64)", ALL, 0},
    {"x: Tensor((n, m), ?)", "astype(x, dtype=i64)", ALL, 0},
    {"x: Tensor((n, m), ?)", "astype(x, dtype=u64)", ALL, 0},
    {"x: Tensor((n, m), ?), y: Tensor((m,), ?)", "add(x, y)", NUMBERS, 0},
    {"x: Tensor((n, 1), ?), y: Tensor((m,), ?)", "subtract(x, y)", NUMBERS, 0},
    {"x: Tensor((n, m), ?), y: Tensor((), ?)", "multiply(x, y)", NUMBERS, 0},
    {"x: Tensor((n, m), ?), y: Tensor((m,), ?)", "divide(x, y)", NUMBERS, NONZERO},
    {"x: Tensor((n, m), ?), y: Tensor((m,), ?)", "power(x, y)", NUMBERS, 0},
    {"x: Tensor((n, m), ?), y: Tensor((m,), ?)", "floor_divide(x, y)", NUMBERS, NONZERO},
    {"x: Tensor((n, m), ?), y: Tensor((m,), ?)", "floor_mod(x, y)", NUMBERS, NONZERO},
    {"x: Tensor((n, m), ?), y: Tensor((m,), ?)", "maximum(x, y)", ALL, 0},
    {"x: Tensor((n, m), ?), y: Tensor((m,), ?)", "minimum(x, y)", ALL, 0},
    {"x: Tensor((n, m), ?), y: Tensor((m,), ?)", "bitwise_and(x, y)", INTS " bool", 0},
    {"x: Tensor((n, m), ?), y: Tensor((m,), ?)", "bitwise_or(x, y)", INTS " bool", 0},
    {"x: Tensor((n, m), ?), y: Tensor((m,), ?)", "bitwise_xor(x, y)", INTS " bool", 0},
    {"x: Tensor((n, m), ?), y: Tensor((m,), ?)", "left_shift(x, y)", INTS, 0},
    {"x: Tensor((n, m), ?), y: Tensor((m,), ?)", "right_shift(x, y)", INTS, 0},
    {"x: Tensor((n, m), ?), y: Tensor((m,), ?)", "equal(x, y)", ALL, 0},
    {"x: Tensor((n, m), ?), y: Tensor((m,), f32)", "not_equal(x, y)", ALL, 0},
    {"x: Tensor((n, m), ?), y: Tensor((m,), i16)", "less(x, y)", ALL, 0},
    {"x: Tensor((n, m), ?), y: Tensor((m,), ?)", "less_equal(x, y)", ALL, 0},
    {"x: Tensor((n, m), ?), y: Tensor((m,), ?)", "greater(x, y)", ALL, 0},
    {"x: Tensor((n, m), ?), y: Tensor((m,), ?)", "greater_equal(x, y)", ALL, 0},
    {"x: Tensor((n, m), ?), y: Tensor((m,), ?)", "logical_and(x, y)", ALL, 0},
    {"x: Tensor((n, m), ?), y: Tensor((m,), ?)", "logical_or(x, y)", ALL, 0},
    {"x: Tensor((n, m), ?), y: Tensor((m,), ?)", "logical_xor(x, y)", ALL, 0},
    {"c: Tensor((n, 1), bool), x: Tensor((n, m), ?), y: Tensor((m,), ?)", "where(c, x, y)", ALL, 0},
    {"x: Tensor((n, m), ?)", "sum(x, axis=[0])", NUMBERS, FINITE},
    {"x: Tensor((n, m), ?)", "sum(x)", NUMBERS, FINITE},
    {"x: Tensor((n, m), ?)", "prod(x, axis=[1], keepdims=true)", NUMBERS, FINITE},
    {"x: Tensor((n, m), ?)", "max(x, axis=[1])", ALL, 0},
    {"x: Tensor((n, m), ?)", "min(x)", ALL, 0},
    {"x: Tensor((n, m), ?)", "mean(x, axis=[1])", FLOATS, FINITE},
    {"x: Tensor((n, m), ?)", "variance(x, axis=[0])", FLOATS, FINITE},
    {"x: Tensor((n, m), ?)", "argmax(x, axis=1)", ALL, 0},
    {"x: Tensor((n, m), ?)", "argmin(x)", ALL, 0},
    {"x: Tensor((n, m), ?)", "cumsum(x, axis=0)", NUMBERS, FINITE},
    {"x: Tensor((n, m), ?)", "cumsum(x, exclusive=true)", NUMBERS, FINITE},
    {"x: Tensor((n, m), ?)", "cumsum(x, axis=1, dtype=i32)", NUMBERS, FINITE},
    {"x: Tensor((n, m), ?)", "zeros_like(x)", ALL, 0},
    {"x: Tensor((n, m), ?)", "ones_like(x)", ALL, 0},
    {"x: Tensor((n, m), ?), y: Tensor((), i32)", "full_like(x, y)", ALL, 0},
    {"x: Tensor((n, m), ?)", "tril(x, k=-1)", ALL, 0},
    {"x: Tensor((n, m), ?)", "triu(x, k=1)", ALL, 0},
    {"x: Tensor((n, m), ?)", "one_hot(x, depth=3)", INTS, 0},
    {"x: Tensor((n, m), ?), i: Tensor((k,), i32)", "take(x, i, axis=1, mode=\"wrap\")", ALL, INDEX},
    {"x: Tensor((n, m), ?), i: Tensor((k,), i64)", "take(x, i, axis=0)", ALL, INDEX},
    {"x: Tensor((n, m), ?)", "strided_slice(x, axes=[0, 1], begin=[1, -1], end=[5, 0], strides=[2, -1])", ALL, 0},
    {"x: Tensor((n, m), ?), i: Tensor((n, k), i64)", "gather_elements(x, i, axis=1)", ALL, INDEX},
    {"x: Tensor((n, m), ?), i: Tensor((k, 1), i64)", "gather_nd(x, i)", ALL, INDEX},
    {"x: Tensor((n, m), ?), i: Tensor((k, m), i64), u: Tensor((k, m), ?)", "scatter_elements(x, i, u)", ALL, INDEX},
    {"x: Tensor((n, m), ?), i: Tensor((k, m), i64), u: Tensor((k, m), ?)",
     "scatter_elements(x, i, u, reduction=\"add\")", NUMBERS, INDEX | FINITE},
    {"x: Tensor((n, m), ?), i: Tensor((k, 1), i64), u: Tensor((k, m), ?)", "scatter_nd(x, i, u, reduction=\"max\")",
     NUMBERS, INDEX},
    {"x: Tensor((n, m), ?), v: Tensor((m,), ?), i: Tensor((k,), i64)", "index_put(x, v, i, accumulate=true)", NUMBERS,
     INDEX | FINITE},
    {"a: Tensor((n, k), ?), b: Tensor((k, m), ?)", "matmul(a, b)", NUMBERS, FINITE},
    {"a: Tensor((2, k, n), ?), b: Tensor((m, k), ?)", "matmul(a, b, transpose_a=true, transpose_b=true)", NUMBERS,
     FINITE},
    {"a: Tensor((n, k), ?), b: Tensor((k,), ?)", "matmul(a, b, out_dtype=f32)", NUMBERS, FINITE},
    {"x: Tensor((n, m), ?)", "reshape(x, shape(m, 1, n))", ALL, 0},
    {"x: Tensor((n, m), ?)", "permute_dims(x)", ALL, 0},
    {"x: Tensor((n, 1, m), ?)", "squeeze(x, axis=[1])", ALL, 0},
    {"x: Tensor((n, m), ?)", "expand_dims(x, axis=[1])", ALL, 0},
    {"x: Tensor((n, 1), ?)", "broadcast_to(x, shape(2, n, 3))", ALL, 0},
    {"x: Tensor((n, m), ?)", "flip(x, axis=0)", ALL, 0},
    {"x: Tensor((n, m), ?)", "flatten(x)", ALL, 0},
    {"x: Tensor((n, m), ?), y: Tensor((k, m), ?)", "concat(x, y, axis=0)", ALL, 0},
    {"x: Tensor((n, m), ?), y: Tensor((n, m), ?)", "stack(x, y, axis=1)", ALL, 0},
    {"x: Tensor((n, m), ?)", "split(x, sections=3, axis=1)", ALL, 0},
    {"x: Tensor((n, m), ?)", "split(x, indices=[1, 4])", ALL, 0},
    {"x: Tensor((n, m), ?)", "tile(x, repeats=[2, 1, 3])", ALL, 0},
    {"x: Tensor((n, m), ?)", "repeat(x, repeats=2, axis=0)", ALL, 0},
    {"x: Tensor((n, m), ?)", "repeat(x, repeats=3)", ALL, 0},
    {"x: Tensor((n, m), ?)", "softmax(x, axis=0)", FLOATS, FINITE},
    {"x: Tensor((n, m), ?)", "log_softmax(x)", FLOATS, FINITE},
    {"x: Tensor((n, m), ?), w: Tensor((m,), ?)", "rms_norm(x, w)", FLOATS, FINITE},
    {"x: Tensor((n, m), ?), w: Tensor((m,), ?), b: Tensor((m,), ?)", "layer_norm(x, w, b)", FLOATS, FINITE},
    {"x: Tensor((n, 2, 16), ?), i: Tensor((n,), i32)", "rope(x, i, style=\"neox\")", FLOATS, FINITE | INDEX},
    {"x: Tensor((n, m, 6), ?), i: Tensor((n,), i32), f: Tensor((2,), f32)", "rope(x, i, f, rot_dims=4, freq_scale=0.5)",
     FLOATS, FINITE | INDEX},
    {"q: Tensor((n, 4, 8), ?), k: Tensor((64, 2, 8), ?), v: Tensor((64, 2, 4), ?), p: Prim(i64, m)",
     "attention_cache(q, k, v, p, window=9, softcap=2.0)", "f32 f16 bf16", FINITE},
    {"q: Tensor((1, n, 2, 3), ?), k: Tensor((1, m, 2, 3), ?), v: Tensor((1, m, 2, 3), ?), s: Tensor((1, 1, n, m), ?)",
     "attention(q, k, v, s, causal=true)", "f32 f16 bf16", FINITE},
    {"p: Tensor((3, m), ?), u: Tensor((n, 1), f32), i: Tensor((n, 1), i64)", "multinomial_from_uniform(p, u, i)",
     FLOATS, FINITE | INDEX},
};

static uint64_t seed;
static int below(int n)
{
    seed = seed * 6364136223846793005ull + 1442695040888963407ull;
    return (int)((seed >> 33) % (uint64_t)n);
}

static void random_fill(rx_ival *t, int flags)
{
    bool real = rx_dtype_is_float(t->dtype);
    size_t w = rx_dtype_bytes(t->dtype);
    for (int64_t i = 0; i < rx_ival_count(t); i++) {
        char *at = (char *)t->data + (size_t)i * w;
        double v = real ? (below(81) - 40) / 8.0 : below(256) - 128;
        int odd = below(40);
        if (real && !(flags & FINITE) && odd < 3)
            v = odd == 0 ? NAN : odd == 1 ? INFINITY : -INFINITY;
        if (!real && t->dtype != RELAX_BOOL && (flags & INDEX))
            v = 0;
        if (t->dtype == RELAX_BOOL)
            v = below(2);
        if ((flags & NONZERO) && !real && ((int)v & 127) == 0)
            v = 3;
        if (real)
            rx_store_f64(t->dtype, at, v);
        else
            rx_store_i64(t->dtype, at, (int64_t)v);
    }
}

static double rounding(relax_dtype t)
{
    return t == RELAX_F64 ? 1e-12 : t == RELAX_F32 ? 2e-5 : t == RELAX_F16 ? 2e-3 : t == RELAX_BF16 ? 1.6e-2 : 0;
}

/* 1: they differ */
static int differ(const char *call, const rx_ival *got, const rx_ival *want)
{
    assert_int_equal(got->kind, want->kind);
    if (got->kind == RX_I_TUPLE) {
        int bad = 0;
        for (uint32_t i = 0; i < got->n; i++)
            bad |= differ(call, got->at[i], want->at[i]);
        return bad;
    }
    assert_int_equal(rx_ival_count(got), rx_ival_count(want));
    assert_int_equal(got->dtype, want->dtype);
    size_t w = rx_dtype_bytes(got->dtype);
    for (int64_t i = 0; i < rx_ival_count(got); i++) {
        const char *a = (char *)got->data + (size_t)i * w, *b = (char *)want->data + (size_t)i * w;
        double x = rx_load_f64(got->dtype, a), y = rx_load_f64(want->dtype, b);
        bool same = isnan(y) ? isnan(x) : x == y || fabs(x - y) <= rounding(got->dtype) * (1 + fabs(y));
        if (!rx_dtype_is_float(got->dtype))
            same = !memcmp(a, b, w);
        if (!same) {
            print_error("%s (%s): element %d is %.9g, the interpreter has %.9g\n", call, rx_dtypes[got->dtype].name,
                        (int)i, x, y);
            return 1;
        }
    }
    return 0;
}

static relax_value *op_of(relax_function *f)
{
    relax_value *v = f->body.first->first;
    while (v->kind != RX_V_OP)
        v = v->next;
    return v;
}

/* the call as a call_tir of its program, in a function of its own with the parameters of f */
typedef struct pair { relax_module *m; relax_function *plain, *legal; } pair;

static pair both(relax_context *ctx, const char *params, const char *call)
{
    char text[2048];
    snprintf(text, sizeof text,
             "fn f(%s) {\n  result = %s\n  return result\n}\nfn g(%s) {\n  result = %s\n  return result\n}\n", params,
             call, params, call);
    pair p = { .m = rx_parse_module(ctx, "line", text, strlen(text)) };
    p.plain = rx_module_get(p.m, "f");
    p.legal = rx_module_get(p.m, "g");
    relax_value *v = op_of(p.legal);
    rx_ty in[8];
    relax_value *tensors[8];
    uint32_t n = 0;
    for (uint32_t i = 0; i < v->nargs; i++) {
        in[i] = v->args[i] ? v->args[i]->type : NULL;
        if (in[i] && in[i]->kind == RX_TY_TENSOR)
            tensors[n++] = v->args[i];
    }
    rx_exvec syms = { 0 };
    relax_function *prim = rx_op_legalize(p.m, p.legal, v->u.op, in, v->nargs, v->type, &v->attrs, &syms);
    rx_gb b = rx_gb_before(v);
    relax_value *t = rx_emit_call_tir(&b, prim, tensors, n, v->type, syms.at, syms.n);
    rx_v_replace(p.legal, v, t);
    rx_v_remove(v);
    return p;
}

static int64_t dim_value(relax_context *ctx, rx_ex e, int64_t n, int64_t m, int64_t k)
{
    rx_map env;
    rx_map_init(&env, rx_scratch(&ctx->heap));
    rx_exvec s = { 0 };
    rx_free_syms(ctx, env.a, e, &s);
    for (uint32_t i = 0; i < s.n; i++) {
        const char *name = rx_sym_of(s.at[i])->name;
        rx_map_put(&env, RX_KEY(s.at[i]), !strcmp(name, "n") ? &n : !strcmp(name, "m") ? &m : &k);
    }
    int64_t v = -1;
    assert_int_equal(rx_eval(ctx, e, &env, &v), RX_EVAL_OK);
    return v;
}

static int run_at(rx_interp *in, const pair *p, int flags, const char *call, int64_t n, int64_t m, int64_t k)
{
    rx_ival *args[8];
    for (uint32_t i = 0; i < p->plain->nparams; i++) {
        rx_ty t = p->plain->params[i]->type;
        int64_t dims[16];
        for (int32_t d = 0; t->kind == RX_TY_TENSOR && d < t->ndim; d++)
            dims[d] = dim_value(in->ctx, t->dims[d], n, m, k);
        args[i] = t->kind == RX_TY_PRIM ? rx_ival_int(in->a, dim_value(in->ctx, t->dims[0], n, m, k))
                                        : rx_ival_tensor(in->ctx, in->a, t->dtype, dims, t->ndim, NULL);
        if (args[i]->kind == RX_I_TENSOR)
            random_fill(args[i], flags);
    }
    rx_ival *want = rx_interp_run(in, p->plain, args, p->plain->nparams);
    rx_ival *got = rx_interp_run(in, p->legal, args, p->legal->nparams);
    return differ(call, got, want);
}

static int run_line(relax_context *ctx, const char *params, const char *call, int flags)
{
    static const int64_t extents[] = { 0, 1, 2, 3, 5, 7, 17 };
    pair p = both(ctx, params, call);
    rx_interp in = { .ctx = ctx, .a = rx_scratch(&ctx->heap) };
    int bad = 0;
    for (size_t i = 0; i < RX_COUNT(extents) && !bad; i++)
        for (size_t j = 0; j < RX_COUNT(extents) && !bad; j++) {
            int64_t n = extents[i], m = extents[j], k = extents[(i + 2 * j) % RX_COUNT(extents)];
            if ((flags & INDEX) && (n == 0 || m == 0))
                k = 0;
            bad += run_at(&in, &p, flags, call, n, m, k);
        }
    rx_module_free(p.m);
    return bad;
}

/* text with every "?" replaced by type */
static void with_type(char *out, size_t size, const char *text, const char *type, size_t n)
{
    size_t at = 0;
    for (; *text && at + n + 1 < size; text++) {
        if (*text == '?') {
            memcpy(out + at, type, n);
            at += n;
        } else {
            out[at++] = *text;
        }
    }
    out[at] = 0;
}

static int try_line(relax_context *ctx, const char *params, const char *call, int flags)
{
    volatile bool ok = false;
    volatile int bad = 0;
    rx_frame f;
    rx_diag_clear(ctx);
    if (RX_ENTER(&ctx->heap, &f)) {
        bad = run_line(ctx, params, call, flags);
        ok = true;
        rx_leave(&ctx->heap, &f);
    }
    if (!ok) {
        print_error("%s with %s\n", call, params);
        tl_print_diags(ctx);
    }
    return ok ? bad : 1;
}

static void test_lines(void **state)
{
    (void)state;
    tl_heap th;
    relax_context *ctx = tl_context(&th);
    TL_TRY(ctx) { rx_ops_init(ctx); }
    TL_END(ctx);
    int bad = 0;
    for (size_t i = 0; i < RX_COUNT(lines); i++)
        for (const char *t = lines[i].types; *t; t += strspn(t, " ")) {
            char params[1024];
            size_t n = strcspn(t, " ");
            with_type(params, sizeof params, lines[i].params, t, n);
            seed = i + 1;
            bad += try_line(ctx, params, lines[i].call, lines[i].flags);
            t += n;
        }
    assert_int_equal(bad, 0);
    rx_context_destroy(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lines),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
