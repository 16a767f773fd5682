/* test_deduce.c: deduction row by row: annotation and obligations of a call, or the error that refuses it.
 *
 * Row: parameters of the function, call, and either "annotation" and "obligations" (separated by "; ") or an error. The
 * bulk of deduction is judged by the program oracle; here stand the project's own rules: obligations, messages,
 * operators that the oracle does not have. */
#include "testlib.h"

#include "op/op.h"

typedef struct row { const char *params, *call, *want, *checks; int err; } row;

#define OK(params, call, want, checks) { params, call, want, checks, 0 }
#define NO(params, call, err, message) { params, call, message, NULL, err }
static const row rows[] = {
    /* broadcasting */
    OK("x: Tensor((n, m), f32), y: Tensor((n, m), f32)", "add(x, y)", "Tensor((n, m), f32)", ""),
    OK("x: Tensor((n,), f32), y: Tensor((m,), f32)", "add(x, y)", "Tensor((n,), f32)", "m == n"),
    OK("x: Tensor((n,), f32), y: Tensor((3,), f32)", "add(x, y)", "Tensor((3,), f32)", "n == 1 or n == 3"),
    OK("x: Tensor((n,), f32), y: Tensor((n + 2,), f32)", "add(x, y)", "Tensor((n + 2,), f32)", "n == 1"),
    OK("x: Tensor((2*n,), f32), y: Tensor((n*2,), f32)", "add(x, y)", "Tensor((n*2,), f32)", ""),
    OK("x: Tensor((1, n), f32), y: Tensor((m, 1), f32)", "add(x, y)", "Tensor((m, n), f32)", ""),
    NO("x: Tensor((2, 3), f32), y: Tensor((2, 4), f32)", "add(x, y)", RXE_SHAPE,
       "add: dims 3 and 4 cannot be broadcast"),
    NO("x: Tensor((2,), f32), y: Tensor((2,), i32)", "add(x, y)", RXE_DTYPE,
       "add: operands have different data types, f32 and i32"),
    NO("x: Tensor((2,), bool), y: Tensor((2,), bool)", "add(x, y)", RXE_DTYPE, NULL),
    OK("x: Tensor((2,), bool), y: Tensor((2,), bool)", "maximum(x, y)", "Tensor((2,), bool)", ""),
    OK("x: Tensor((2,), bool), y: Tensor((2,), bool)", "bitwise_xor(x, y)", "Tensor((2,), bool)", ""),
    NO("x: Tensor((2,), f32), y: Tensor((2,), f32)", "bitwise_xor(x, y)", RXE_DTYPE, NULL),
    OK("x: Prim(i64, a), y: Prim(i64, b)", "multiply(x, y)", "Prim(i64, a*b)", ""),
    OK("x: Tensor((n,), i64), y: Prim(i64, b)", "multiply(x, y)", "Tensor((n,), i64)", ""),
    /* inner dims */
    OK("a: Tensor((n, k), f32), b: Tensor((k, m), f32)", "matmul(a, b)", "Tensor((n, m), f32)", ""),
    OK("a: Tensor((n, k), f32), b: Tensor((l, m), f32)", "matmul(a, b)", "Tensor((n, m), f32)", "k == l"),
    OK("a: Tensor((k, n), f32), b: Tensor((m, k), f32)", "matmul(a, b, transpose_a=true, transpose_b=true)",
       "Tensor((n, m), f32)", ""),
    NO("a: Tensor((n, k), f32), b: Tensor((k + 1, m), f32)", "matmul(a, b)", RXE_SHAPE,
       "matmul: the inner dims: k and k + 1 cannot be equal"),
    /* shapes */
    OK("x: Tensor((n, 4), f32)", "reshape(x, shape(-1, 2))", "Tensor((n*2, 2), f32)", ""),
    OK("x: Tensor((n,), f32)", "reshape(x, shape(-1, 2))", "Tensor((n//2, 2), f32)", "n == n//2*2"),
    OK("x: Tensor((n, m), f32)", "reshape(x, shape(m, n))", "Tensor((m, n), f32)", ""),
    OK("x: Tensor((n, m), f32)", "reshape(x, shape(n, 5))", "Tensor((n, 5), f32)", "n*5 == m*n"),
    OK("x: Tensor((n, 0), f32)", "reshape(x, shape(0, 0))", "Tensor((n, 0), f32)", ""),
    NO("x: Tensor((2, 3), f32)", "reshape(x, shape(4, 2))", RXE_SHAPE,
       "reshape: the number of elements: 6 and 8 cannot be equal"),
    NO("x: Tensor((2, 3), f32)", "reshape(x, shape(-1, -1))", RXE_SHAPE, "reshape: only one dim can be -1"),
    OK("x: Tensor((n, 3), f32)", "squeeze(x, axis=[0])", "Tensor((3,), f32)", "n == 1"),
    OK("x: Tensor((n, m), f32)", "broadcast_to(x, shape(5, n, 7))", "Tensor((5, n, 7), f32)", "m == 1 or m == 7"),
    NO("x: Tensor((n, 2), f32)", "permute_dims(x, axes=[0, 0])", RXE_AXIS, "permute_dims: axis 0 is given twice"),
    OK("x: Tensor((n, 2), f32), y: Tensor((m, 2), f32)", "concat(x, y, axis=0)", "Tensor((m + n, 2), f32)", ""),
    OK("x: Tensor((n, a), f32), y: Tensor((n, b), f32)", "stack(x, y, axis=-1)", "Tensor((n, a, 2), f32)", "a == b"),
    OK("x: Tensor((n,), f32)", "split(x, sections=2)",
       "Tuple(Tensor(((n + 1)//2,), f32), Tensor((n - (n + 1)//2,), f32))", ""),
    NO("x: Tensor((n,), f32)", "split(x)", RXE_ATTR, "split: needs sections or indices, not both"),
    NO("x: Tensor((n,), f32)", "split(x, sections=0)", RXE_ATTR, NULL),
    OK("x: Tensor((n,), f32)", "strided_slice(x, axes=[0], begin=[n - 1], end=[n])", "Tensor((min(n, 1),), f32)", ""),
    OK("x: Tensor((n,), f32)", "strided_slice(x, axes=[0], begin=[0], end=[4], assume_inbound=true)",
       "Tensor((4,), f32)", "4 <= n"),
    NO("x: Tensor((n,), f32)", "strided_slice(x, axes=[0], begin=[0], end=[4], strides=[0])", RXE_ATTR, NULL),
    OK("x: Tensor((n, m), f32)", "sum(x, axis=[-1], keepdims=true)", "Tensor((n, 1), f32)", ""),
    NO("x: Tensor((n, m), i32)", "mean(x)", RXE_DTYPE, "mean: elements must be floating-point, not i32"),
    NO("x: Tensor((n, m), f32)", "sum(x, axis=[2])", RXE_AXIS, "sum: axis 2 is out of range for rank 2"),
    NO("x: Tensor((n, m), f32)", "sum(x, axis=[1], keepdim=true)", RXE_ATTR, "sum has no attribute keepdim"),
    NO("x: Tensor((n, m), f32)", "sum(x, x)", RXE_ARITY, NULL),
    /* indexing */
    OK("x: Tensor((n, m), f32), i: Tensor((k, 2), i32)", "take(x, i, axis=-1)", "Tensor((n, k, 2), f32)", ""),
    NO("x: Tensor((n, m), f32), i: Tensor((k,), i32)", "take(x, i)", RXE_RANK,
       "take: without an axis the tensor must be of rank 1"),
    NO("x: Tensor((n,), f32), i: Tensor((k,), i32)", "take(x, i, mode=\"fast\")", RXE_ATTR, NULL),
    OK("x: Tensor((n, m), f32), i: Tensor((k, m), i64)", "gather_elements(x, i)", "Tensor((k, m), f32)", ""),
    OK("x: Tensor((n, m), f32), i: Tensor((k, l), i64)", "gather_elements(x, i)", "Tensor((k, l), f32)", "l <= m"),
    OK("x: Tensor((n, m), f32), v: Tensor((3,), f32), i: Tensor((3,), i64), j: Tensor((1,), i64)",
       "index_put(x, v, i, j)", "Tensor((n, m), f32)", ""),
    OK("x: Tensor((n, m), f32)", "topk(x, k=3)", "Tuple(Tensor((n, 3), f32), Tensor((n, 3), i64))", "3 <= m"),
    OK("x: Tensor((n, m), f32)", "argsort(x, dtype=i32)", "Tensor((n, m), i32)", ""),
    OK("x: Tensor((n, m), f32)", "unique(x, return_counts=true)", "Tuple(Tensor(ndim=1, f32), Tensor(ndim=1, i64))",
       ""),
    /* language models */
    OK("x: Tensor((n, h, 64), f32), p: Prim(i64, past)", "rope(x, p, style=\"neox\")", "Tensor((n, h, 64), f32)", ""),
    NO("x: Tensor((n, h, w), f32), p: Prim(i64, past)", "rope(x, p)", RXE_SHAPE, NULL),
    NO("x: Tensor((n, h, 64), f32), p: Prim(i64, past)", "rope(x, p, style=\"gpt\")", RXE_ATTR, NULL),
    NO("x: Tensor((n, h, 64), f32), p: Tensor((n,), f32)", "rope(x, p)", RXE_DTYPE, NULL),
    OK("x: Tensor((n, h, 64), f32), p: Tensor((k,), i32), f: Tensor((32,), f32)", "rope(x, p, f)",
       "Tensor((n, h, 64), f32)", "k == n"),
    OK("q: Tensor((n, 8, 64), f32), k: Tensor((c, 2, 64), f16), v: Tensor((c, 2, 64), f16), p: Prim(i64, past)",
       "attention_cache(q, k, v, p)", "Tensor((n, 8, 64), f32)", "n + past <= c"),
    NO("q: Tensor((n, 8, 64), f32), k: Tensor((c, 3, 64), f16), v: Tensor((c, 3, 64), f16), p: Prim(i64, past)",
       "attention_cache(q, k, v, p)", RXE_SHAPE, NULL),
    NO("q: Tensor((n, 8, 64), f32), k: Tensor((c, 2, 32), f16), v: Tensor((c, 2, 32), f16), p: Prim(i64, past)",
       "attention_cache(q, k, v, p)", RXE_SHAPE,
       "attention_cache: head widths of queries and keys: 64 and 32 cannot be equal"),
    OK("c: Tensor((c, 2, 64), f16), x: Tensor((n, 2, 64), f32), p: Prim(i64, past)", "kv_append(c, x, p)",
       "Tensor((c, 2, 64), f16)", "n + past <= c"),
    OK("q: Tensor((b, n, 4, 8), f32), k: Tensor((b, m, 2, 8), f32), v: Tensor((b, m, 2, 4), f32)", "attention(q, k, v)",
       "Tensor((b, n, 4, 4), f32)", ""),
    OK("x: Tensor((n, m), f16), w: Tensor((m,), f32)", "rms_norm(x, w)", "Tensor((n, m), f16)", ""),
    /* weights in blocks */
    OK("w: Tensor((n, 288), u8)", "dequantize_gguf(w, type=\"q4_k\")", "Tensor((n, 512), f32)", ""),
    OK("w: Tensor((n, r), u8)", "dequantize_gguf(w, type=\"Q8_0\", dtype=f16)", "Tensor((n, r//34*32), f16)",
       "r%34 == 0"),
    NO("w: Tensor((n, 100), u8)", "dequantize_gguf(w, type=\"q4_k\")", RXE_SHAPE, NULL),
    NO("w: Tensor((n, 100), u8)", "dequantize_gguf(w, type=\"q9\")", RXE_ATTR,
       "dequantize_gguf: the block format q9 is not known"),
    NO("w: Tensor((n, 100), i8)", "dequantize_gguf(w, type=\"q8_0\")", RXE_DTYPE, NULL),
    OK("x: Tensor((m, 512), f32), w: Tensor((n, 288), u8)", "matmul_gguf(x, w, type=\"q4_k\")", "Tensor((m, n), f32)",
       ""),
    OK("x: Tensor((m, k), f32), w: Tensor((n, 288), u8)", "matmul_gguf(x, w, type=\"q4_k\")", "Tensor((m, n), f32)",
       "k == 512"),
    NO("x: Tensor((m, 256), f32), w: Tensor((n, 288), u8)", "matmul_gguf(x, w, type=\"q4_k\")", RXE_SHAPE,
       "matmul_gguf: the inner dims: 256 and 512 cannot be equal"),
    OK("w: Tensor((n, 288), u8), i: Tensor((k,), i32)", "take_gguf(w, i, type=\"q4_k\")", "Tensor((k, 512), f32)", ""),
    /* shapes as values */
    OK("x: Tensor((n, m), f32)", "shape_of(x)", "Shape(n, m)", ""),
    OK("x: Tensor((3,), i64)", "tensor_to_shape(x)", "Shape(ndim=3)", ""),
    OK("x: Tensor((n, m), f32)", "shape_to_tensor(shape(n, m))", "Tensor((2,), i64)", ""),
    /* creation */
    OK("x: Tensor((n,), f32)", "zeros(shape(n, n))", "Tensor((n, n), f32)", ""),
    OK("x: Tensor((n,), f32)", "arange(end=n)", "Tensor((n,), i64)", ""),
    OK("x: Tensor((n,), f32)", "arange(start=1, end=10, step=2.5)", "Tensor((4,), f32)", ""),
    OK("x: Tensor((n,), f32)", "arange(end=0.3, step=0.1)", "Tensor((3,), f32)", ""),
    OK("x: Tensor((n,), f32)", "arange(end=f32(0.3), step=f32(0.1))", "Tensor((4,), f32)", ""),
    OK("x: Tensor((n,), f32)", "arange(end=0.1 + 0.2, step=0.1)", "Tensor((4,), f32)", ""),
    NO("x: Tensor((n,), f32)", "arange(end=n, step=0)", RXE_SHAPE, NULL),
    NO("x: Tensor((n,), f32)", "arange(end=n, step=0.5)", RXE_ATTR, NULL),
    NO("i: Tensor((n,), i64)", "one_hot(i, depth=4, on_value=1, off_value=0.5)", RXE_ATTR, NULL),
};

static const char *checks_text(relax_module *m, const relax_value *v)
{
    rx_buf b;
    rx_buf_init(&b, &m->arena);
    for (uint32_t i = 0; i < v->nchecks; i++) {
        rx_puts(&b, i ? "; " : "");
        rx_print_expr(&b, v->checks[i]);
    }
    return b.at ? b.at : "";
}

static int expect(const row *r, relax_module *m)
{
    relax_value *v = rx_module_get(m, "f")->body.first->first;
    while (v->kind != RX_V_OP)
        v = v->next;
    rx_buf b;
    rx_buf_init(&b, &m->arena);
    rx_print_type(&b, v->type);
    const char *checks = checks_text(m, v);
    if (!r->err && !strcmp(b.at, r->want) && !strcmp(checks, r->checks))
        return 0;
    print_error("%s: %s with '%s', wanted %s with '%s'\n", r->call, b.at, checks, r->err ? "an error" : r->want,
                r->err ? "" : r->checks);
    return 1;
}

/* 1: the row does not hold */
static int try_row(relax_context *ctx, const row *r)
{
    char text[1024];
    snprintf(text, sizeof text, "fn f(%s) {\n  result = %s\n  return result\n}\n", r->params, r->call);
    volatile bool ok = false;
    volatile int bad = 0;
    rx_frame f;
    rx_diag_clear(ctx);
    if (RX_ENTER(&ctx->heap, &f)) {
        relax_module *m = rx_parse_module(ctx, "row", text, strlen(text));
        bad = expect(r, m);
        rx_module_free(m);
        ok = true;
        rx_leave(&ctx->heap, &f);
    }
    if (ok)
        return bad;
    const char *said = rx_diag_at(ctx, rx_diag_count(ctx) - 1)->message;
    if (r->err && tl_last_error(ctx) == r->err && (!r->want || !strcmp(said, r->want)))
        return 0;
    print_error("%s: RX%d '%s', wanted %d '%s'\n", r->call, tl_last_error(ctx), said, r->err, r->want ? r->want : "");
    return 1;
}

static void test_rows(void **state)
{
    (void)state;
    tl_heap th;
    relax_context *ctx = tl_context(&th);
    TL_TRY(ctx) { rx_ops_init(ctx); }
    TL_END(ctx);
    int bad = 0;
    for (size_t i = 0; i < RX_COUNT(rows); i++)
        bad += try_row(ctx, &rows[i]);
    assert_int_equal(bad, 0);
    tl_done(&th, ctx);
}

/* The table and its texts: each operator has a name, a sentence, a family; defaults are readable. */
static void test_table(void **state)
{
    (void)state;
    tl_heap th;
    relax_context *ctx = tl_context(&th);
    TL_TRY(ctx) {
        rx_ops_init(ctx);
        rx_ops_init(ctx);
        assert_int_equal(ctx->ops->all.n, RX_OP_COUNT);
        for (int32_t i = 0; i < RX_OP_COUNT; i++) {
            const rx_op *op = rx_op_get(ctx, (rx_opcode)i);
            assert_int_equal(op->code, i);
            assert_ptr_equal(rx_op_find(ctx, op->name), op);
            assert_non_null(op->deduce);
            assert_true(strlen(op->doc) > 2);
            assert_true(op->max_args < 0 || op->max_args >= op->min_args);
            assert_true((op->legalize != NULL) != ((op->flags & (RX_OPF_DYNAMIC | RX_OPF_HOST | RX_OPF_BUILTIN)) != 0));
        }
        assert_null(rx_op_find(ctx, "no_such"));
    }
    TL_END(ctx);
    tl_done(&th, ctx);
}

/* Each allocation of the table fails once; the next try completes it. */
static int init_failing(relax_context *ctx, tl_heap *th, int64_t n)
{
    volatile int failed = 1;
    rx_frame f;
    tl_fail(th, n, false);
    if (RX_ENTER(&ctx->heap, &f)) {
        rx_ops_init(ctx);
        failed = 0;
        rx_leave(&ctx->heap, &f);
    }
    tl_fail(th, 0, false);
    return failed;
}

static void test_out_of_memory(void **state)
{
    (void)state;
    int failed = 1;
    for (int64_t n = 1; failed; n++) {
        tl_heap th;
        relax_context *ctx = tl_context(&th);
        failed = init_failing(ctx, &th, n);
        assert_int_equal(init_failing(ctx, &th, 0), 0);
        assert_int_equal(ctx->ops->all.n, RX_OP_COUNT);
        assert_non_null(rx_op_find(ctx, "take_gguf"));
        tl_done(&th, ctx);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_out_of_memory),
        cmocka_unit_test(test_table),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
