/* test_interp.c: the interpreter of graph functions: results of operators by hand, symbols, control flow, calls,
 * lowered forms, errors. */
#include "testlib.h"

#include "graph/op.h"
#include "interp/interp.h"
#include "op/op.h"

#define PRIMS                                                                                                          \
    "prim scaled(A: Buffer((n,), f32), B: Buffer((n,), f32); k) { for i in n { B[i] = A[i] * f32(k) } }\n"            \
    "prim bump(A: Buffer((n,), f32)) { for i in n { A[i] += 1.0 } }\n"

/* each row: a module whose main takes nothing, and the text of its result; "!" and a number: that error */
static const struct { const char *text, *want;
} rows[] = {
    {"y = add(const(f32, (2,), [1.0, 2.0]), const(f32, (2, 1), [10.0, 20.0])) return y",
     "f32(2, 2)[11.0, 12.0, 21.0, 22.0]"},
    {"y = add(const(i8, (2,), [127, -128]), const(i8, (2,), [1, -1])) return y", "i8(2)[-128, 127]"},
    {"y = divide(const(i32, (2,), [7, -7]), const(i32, (), [2])) return y", "i32(2)[3, -3]"},
    {"y = power(const(i32, (5,), [2, 1, -1, -1, 0]), const(i32, (5,), [-1, -1, -3, 3, 0])) return y",
     "i32(5)[0, 0, 0, -1, 1]"},
    {"y = floor_divide(const(i32, (2,), [7, -7]), const(i32, (), [2])) return y", "i32(2)[3, -4]"},
    {"y = floor_mod(const(i32, (2,), [7, -7]), const(i32, (), [2])) return y", "i32(2)[1, 1]"},
    {"y = floor_divide(const(i32, (1,), [7]), const(i32, (), [0])) return y", "!4114"},
    {"y = maximum(const(f32, (3,), [1.0, nan, -0.0]), const(f32, (3,), [nan, 1.0, -1.0])) return y",
     "f32(3)[nan, nan, -0.0]"},
    {"y = left_shift(const(u8, (2,), [129, 1]), const(u8, (2,), [1, 8])) return y", "u8(2)[2, 0]"},
    {"y = equal(const(f32, (2,), [nan, 1.0]), const(i32, (2,), [1, 1])) return y", "bool(2)[false, true]"},
    {"y = where(const(bool, (2,), [true, false]), const(i8, (2,), [1, 2]), const(i8, (), [9])) return y",
     "i8(2)[1, 9]"},
    {"y = astype(const(f32, (4,), [300.0, -1.5, nan, inf]), dtype=i8) return y", "i8(4)[127, -1, 0, 127]"},
    {"y = clip(const(f32, (3,), [-5.0, nan, 5.0]), min=-1.0, max=1.0) return y", "f32(3)[-1.0, nan, 1.0]"},
    {"y = relu(const(f32, (3,), [-1.0, nan, 2.0])) return y", "f32(3)[0.0, nan, 2.0]"},
    {"y = round(const(f32, (4,), [0.5, 1.5, 2.5, -0.5])) return y", "f32(4)[0.0, 2.0, 2.0, -0.0]"},
    {"y = sum(const(f32, (2, 3), [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]), axis=(1,)) return y", "f32(2)[6.0, 15.0]"},
    {"y = sum(const(f32, (0, 2), []), axis=(0,)) return y", "f32(2)[0.0, 0.0]"},
    {"y = max(const(f32, (0, 2), []), axis=(0,)) return y", "f32(2)[-inf, -inf]"},
    {"y = mean(const(f32, (2, 2), [1.0, 2.0, 3.0, 5.0]), keepdims=true) return y", "f32(1, 1)[2.75]"},
    {"y = variance(const(f32, (4,), [1.0, 2.0, 3.0, 4.0])) return y", "f32()[1.25]"},
    {"y = prod(const(i8, (3,), [100, 2, 2])) return y", "i8()[-112]"},
    {"y = argmax(const(f32, (4,), [1.0, nan, 5.0, nan])) return y", "i64()[1]"},
    {"y = argmin(const(i32, (2, 2), [3, 1, 1, 0]), axis=1) return y", "i64(2)[1, 1]"},
    {"y = cumsum(const(i32, (2, 2), [1, 2, 3, 4]), axis=0) return y", "i32(2, 2)[1, 2, 4, 6]"},
    {"y = cumsum(const(f32, (3,), [1.0, 2.0, 3.0]), exclusive=true) return y", "f32(3)[0.0, 1.0, 3.0]"},
    {"y = full(shape(2), const(f32, (), [1.5])) return y", "f32(2)[1.5, 1.5]"},
    {"y = arange(start=1, end=7, step=2) return y", "i64(3)[1, 3, 5]"},
    {"y = arange(end=0.3, step=0.1) return y", "f32(3)[0.0, 0.1, 0.2]"},
    {"y = arange(end=1.0, step=0.25) return y", "f32(4)[0.0, 0.25, 0.5, 0.75]"},
    {"y = eye(n=2, m=3, k=1) return y", "f32(2, 3)[0.0, 1.0, 0.0, 0.0, 0.0, 1.0]"},
    {"y = tril(const(i8, (2, 2), [1, 2, 3, 4])) return y", "i8(2, 2)[1, 0, 3, 4]"},
    {"y = one_hot(const(i64, (2,), [2, 0]), depth=3) return y", "f32(2, 3)[0.0, 0.0, 1.0, 1.0, 0.0, 0.0]"},
    {"y = take(const(f32, (3,), [1.0, 2.0, 3.0]), const(i64, (2,), [-1, 0])) return y", "f32(2)[3.0, 1.0]"},
    {"y = take(const(f32, (3,), [1.0, 2.0, 3.0]), const(i64, (1,), [3])) return y", "!4109"},
    {"y = take(const(f32, (3,), [1.0, 2.0, 3.0]), const(i64, (2,), [7, -9]), mode=clip) return y", "f32(2)[3.0, 1.0]"},
    {"y = strided_slice(const(i8, (5,), [1, 2, 3, 4, 5]), axes=(0,), begin=(-1,), end=(-9,), strides=(-2,)) return y",
     "i8(3)[5, 3, 1]"},
    {"y = dynamic_strided_slice(const(i8, (5,), [1, 2, 3, 4, 5]), const(i64, (1,), [1]), const(i64, (1,), [9]), "
     "const(i64, (1,), [2])) "
     "return y",
     "i8(2)[2, 4]"},
    {"y = gather_elements(const(i8, (2, 2), [1, 2, 3, 4]), const(i64, (2, 1), [1, 0]), axis=1) return y",
     "i8(2, 1)[2, 3]"},
    {"y = gather_nd(const(i8, (2, 2), [1, 2, 3, 4]), const(i64, (2, 2), [1, 1, 0, 1])) return y", "i8(2)[4, 2]"},
    {"y = scatter_elements(const(i8, (3,), [1, 2, 3]), const(i64, (2,), [0, 0]), const(i8, (2,), [5, 6]), "
     "reduction=add) return y",
     "i8(3)[12, 2, 3]"},
    {"y = scatter_nd(const(i8, (2, 2), [1, 2, 3, 4]), const(i64, (1, 1), [1]), const(i8, (1, 2), [8, 9])) return y",
     "i8(2, 2)[1, 2, 8, 9]"},
    {"y = index_put(const(i8, (2, 2), [1, 2, 3, 4]), const(i8, (), [0]), const(i64, (2,), [0, 1]), const(i64, (), "
     "[1])) return y",
     "i8(2, 2)[1, 0, 3, 0]"},
    {"y = matmul(const(f32, (2, 2), [1.0, 2.0, 3.0, 4.0]), const(f32, (2,), [1.0, 10.0])) return y",
     "f32(2)[21.0, 43.0]"},
    {"y = matmul(const(f32, (2, 1), [1.0, 2.0]), const(f32, (2, 2), [1.0, 2.0, 3.0, 4.0]), transpose_a=true) return y",
     "f32(1, 2)[7.0, 10.0]"},
    {"y = matmul(const(f32, (2, 0), []), const(f32, (0, 1), [])) return y", "f32(2, 1)[0.0, 0.0]"},
    {"y = reshape(const(i8, (2, 3), [1, 2, 3, 4, 5, 6]), shape(3, -1)) return y", "i8(3, 2)[1, 2, 3, 4, 5, 6]"},
    {"y = reshape(const(i8, (2, 2), [1, 2, 3, 4]), shape(0, 1, -1)) return y", "i8(2, 1, 2)[1, 2, 3, 4]"},
    {"y = reshape(const(i8, (0, 3), []), shape(3, 5)) return y", "does not parse"},
    {"y = permute_dims(const(i8, (2, 3), [1, 2, 3, 4, 5, 6])) return y", "i8(3, 2)[1, 4, 2, 5, 3, 6]"},
    {"y = concat(const(i8, (1, 2), [1, 2]), const(i8, (1, 1), [3]), axis=1) return y", "i8(1, 3)[1, 2, 3]"},
    {"y = split(const(i8, (5,), [1, 2, 3, 4, 5]), sections=2) return y", "(i8(3)[1, 2, 3], i8(2)[4, 5])"},
    {"y = stack(const(i8, (2,), [1, 2]), const(i8, (2,), [3, 4]), axis=1) return y", "i8(2, 2)[1, 3, 2, 4]"},
    {"y = tile(const(i8, (2,), [1, 2]), repeats=(2, 2)) return y", "i8(2, 4)[1, 2, 1, 2, 1, 2, 1, 2]"},
    {"y = repeat(const(i8, (2,), [1, 2]), repeats=2) return y", "i8(4)[1, 1, 2, 2]"},
    {"y = flip(const(i8, (3,), [1, 2, 3]), axis=0) return y", "i8(3)[3, 2, 1]"},
    {"y = sort(const(f32, (4,), [2.0, nan, -1.0, 2.0])) return y", "f32(4)[-1.0, 2.0, 2.0, nan]"},
    {"y = argsort(const(f32, (4,), [2.0, nan, -1.0, 2.0]), descending=true) return y", "i64(4)[1, 0, 3, 2]"},
    {"y = topk(const(i8, (2, 3), [1, 3, 2, 9, 9, 7]), k=2) return y", "(i8(2, 2)[3, 2, 9, 9], i64(2, 2)[1, 2, 0, 1])"},
    {"y = unique(const(i8, (5,), [3, 1, 3, 2, 1]), return_index=true, return_inverse=true, return_counts=true) return "
     "y",
     "(i8(3)[1, 2, 3], i64(3)[1, 3, 0], i64(5)[2, 0, 2, 1, 0], i64(3)[2, 1, 2])"},
    {"y = unique(const(i8, (5,), [3, 1, 3, 2, 1]), sorted=false) return y", "i8(3)[3, 1, 2]"},
    {"y = unique(const(i8, (2, 2), [1, 2, 1, 2]), axis=0) return y", "i8(1, 2)[1, 2]"},
    {"y = nonzero(const(i8, (2, 2), [0, 1, 1, 0])) return y", "i64(2, 2)[0, 1, 1, 0]"},
    {"y = softmax(const(f32, (2,), [-inf, -inf])) return y", "f32(2)[nan, nan]"},
    {"y = softmax(const(f32, (2,), [1.0, 1.0])) return y", "f32(2)[0.5, 0.5]"},
    {"y = rms_norm(const(f32, (1, 2), [3.0, 3.0]), const(f32, (2,), [1.0, 2.0]), epsilon=0.0) return y",
     "f32(1, 2)[1.0, 2.0]"},
    {"y = layer_norm(const(f32, (2,), [1.0, 3.0]), const(f32, (2,), [1.0, 1.0]), const(f32, (2,), [0.5, 0.5]), "
     "epsilon=0.0) return y",
     "f32(2)[-0.5, 1.5]"},
    {"y = rope(const(f32, (1, 1, 2), [1.0, 0.0]), prim(0)) return y", "f32(1, 1, 2)[1.0, 0.0]"},
    {"y = attention(const(f32, (1, 1, 1, 1), [1.0]), const(f32, (1, 2, 1, 1), [0.0, 0.0]), const(f32, (1, 2, 1, 1), "
     "[2.0, 4.0])) return y",
     "f32(1, 1, 1, 1)[3.0]"},
    {"y = attention(const(f32, (1, 2, 1, 1), [1.0, 1.0]), const(f32, (1, 1, 1, 1), [0.0]), const(f32, (1, 1, 1, 1), "
     "[2.0]), causal=true) "
     "return y",
     "f32(1, 2, 1, 1)[0.0, 2.0]"},
    {"y = shape_of(const(f32, (2, 3), [1.0, 1.0, 1.0, 1.0, 1.0, 1.0])) return y", "shape(2, 3)"},
    {"y = shape_to_tensor(shape(4, 5)) return y", "i64(2)[4, 5]"},
    {"y = tensor_to_shape(const(i64, (2,), [4, -5])) return y", "!1004"},
    {"y = multinomial_from_uniform(const(f32, (1, 3), [0.25, 0.25, 0.5]), const(f32, (2, 1), [0.3, 1.0]), const(i64, "
     "(2, 1), [0, 0])) return y",
     "i64(2, 1)[1, 2]"},
    {"y = add(prim(2), prim(3)) return y", "5"},
    {"u = unique(const(i8, (3,), [1, 1, 2])) v = match_cast(u, Tensor((m,), i8)) w = zeros(shape(m, m + 1), dtype=i8) "
     "return w",
     "i8(2, 3)[0, 0, 0, 0, 0, 0]"},
    {"u = unique(const(i8, (3,), [1, 1, 2])) v = match_cast(u, Tensor((2*m + 1,), i8)) return v", "!4107"},
    {"u = unique(const(i8, (3,), [1, 1, 2])) v = match_cast(u, Tensor((2*m,), i8)) w = zeros(shape(m), dtype=i8) "
     "return w",
     "i8(1)[0]"},
    {"r = if const(bool, (), [false]) { yield const(i8, (), [1]) } else { yield const(i8, (), [2]) } return r",
     "i8()[2]"},
};

/* whole modules; main takes nothing */
static const struct { const char *text, *want;
} modules[] = {
    {"fn main() { y = @sq(const(f32, (2,), [1.0, 3.0])) return y }\nfn sq(x: Tensor((n,), f32)) -> Tensor((n,), f32) "
     "{ y = multiply(x, x) return y }",
     "f32(2)[1.0, 9.0]"},
    {"fn main() { y = @half(const(f32, (4,), [1.0, 2.0, 3.0, 4.0])) return y }\nfn half(x: Tensor((2*n,), f32)) -> "
     "Tensor((n, 2), f32) "
     "{ y = reshape(x, shape(n, 2)) return y }",
     "f32(2, 2)[1.0, 2.0, 3.0, 4.0]"},
    {"fn main() { y = @down(prim(3)) return y }\nfn down(n: Prim(i64, k)) -> Prim(i64) { c = equal(n, prim(0)) r = if "
     "c { yield n } else "
     "{ m = @down(prim(k - 1)) yield m } return r }",
     "0"},
    {"fn main() { y = @apply(@sq, const(f32, (1,), [3.0])) return y }\nfn sq(x: Tensor((n,), f32)) -> Tensor((n,), "
     "f32) "
     "{ y = multiply(x, x) return y }\nfn apply(f: Callable((Tensor((n,), f32)) -> Tensor((n,), f32)), x: Tensor((n,), "
     "f32)) -> "
     "Tensor((n,), f32) { y = call_pure(f, x) return y }",
     "f32(1)[9.0]"},
    {"fn main() { y = @loop(const(f32, (1,), [3.0])) return y }\nfn loop(x: Tensor((n,), f32)) -> Tensor((n,), f32) { "
     "y = @loop(x) "
     "return y }",
     "!4112"},
    {PRIMS
     "fn main() { y = call_tir(@scaled, (const(f32, (2,), [1.0, 2.0]),), Tensor((2,), f32), syms=(3,)) return y }",
     "f32(2)[3.0, 6.0]"},
    {PRIMS "fn main() { a = full(shape(2), const(f32, (), [1.0])) y = call_tir_inplace(@bump, (a,), Tensor((2,), f32), "
           "inplace=(0,)) return y }",
     "f32(2)[2.0, 2.0]"},
    {PRIMS "fn main() -> Tensor((2,), f32) arena 16 { a = alloc(Tensor((2,), f32), arena=0) b = alloc(Tensor((2,), "
           "f32), arena=8)\n"
           "call_dps(@scaled, (const(f32, (2,), [1.0, 2.0]), a), syms=(2,)) call_dps(@scaled, (a, b), syms=(2,)) v = "
           "view(b, Tensor((2, 1), f32))\n"
           "w = reshape(v, shape(2)) return w }",
     "f32(2)[4.0, 8.0]"},
    {PRIMS
     "fn main() -> Tensor((2,), f32) arena 16 { a = alloc(Tensor((2,), f32), arena=0)\n"
     "call_dps(@scaled, (const(f32, (2,), [1.0, 2.0]), a), syms=(2,)) b = alloc(Tensor((2,), f32), arena=4) return a }",
     "f32(2)[2.0, nan]"},
    {PRIMS "fn main() arena 8 { a = alloc(Tensor((2,), f32), arena=4) return a }", "!9001"},
    {"fn main() { a = call_dps_library(\"rx.topk\", (const(i8, (3,), [1, 3, 2]),), Tuple(Tensor((2,), i8), "
     "Tensor((2,), i64)), "
     "syms=(2, -1, 1, 0)) return a }",
     "(i8(2)[3, 2], i64(2)[1, 2])"},
    {"fn main() { a = call_dps_library(\"host.twice\", (const(f32, (2,), [1.0, 3.0]),), Tensor((2,), f32)) return a }",
     "f32(2)[2.0, 6.0]"},
    {"fn main() { a = call_dps_library(\"host.none\", (), Tensor((2,), f32)) return a }", "!4110"},
    {"fn main() { a = call_pure_packed(\"host.id\", const(f32, (2,), [1.0, 3.0]), Tensor((2,), f32)) return a }",
     "f32(2)[1.0, 3.0]"},
    {"fn main() { a = call_pure_packed(\"host.id\", const(f32, (2,), [1.0, 3.0]), Tensor((3,), f32)) return a }",
     "!4107"},
    {"fn main() { y = @f(const(f32, (2,), [1.0, 2.0]), const(f32, (2,), [1.0, 2.0])) return y }\n"
     "fn f(x: Tensor((n,), f32), y: Tensor((m,), f32)) -> Tensor((n,), f32) { z = add(x, y) return z }",
     "f32(2)[2.0, 4.0]"},
    {"fn main() { t = (const(f32, (2,), [1.0, 2.0]), const(i8, (), [3])) y = @f(t) return y }\n"
     "fn f(t: Tuple(Tensor((n,), f32), Tensor((), i8))) -> Tensor((), i8) { y = t[1] return y }",
     "i8()[3]"},
};

static rx_ival *host_packed(void *user, rx_interp *in, const char *name, rx_ival *const *args, uint32_t n)
{
    (void)user;
    (void)in;
    return !strcmp(name, "host.id") && n == 1 ? args[0] : NULL;
}

static bool host_lib(void *user, rx_interp *in, const char *name, rx_ival *const *at, uint32_t n, const int64_t *syms,
                     uint32_t nsyms)
{
    (void)user, (void)in, (void)syms, (void)nsyms;
    if (strcmp(name, "host.twice") || n != 2)
        return false;
    for (int64_t i = 0; i < rx_ival_count(at[0]); i++)
        ((float *)at[1]->data)[i] = 2 * ((const float *)at[0]->data)[i];
    return true;
}

/* runs main of a module, gives the text of the result or "!error" */
static const char *outcome(relax_context *ctx, const char *text, char *buf, size_t size)
{
    rx_frame fr;
    buf[0] = 0;
    if (RX_ENTER(&ctx->heap, &fr)) {
        rx_ops_init(ctx);
        relax_module *m = rx_parse_module(ctx, "t", text, strlen(text));
        rx_interp in = {.ctx = ctx, .a = rx_scratch(&ctx->heap), .host = {.packed = host_packed, .lib = host_lib}};
        rx_buf b;
        rx_buf_init(&b, in.a);
        rx_frame inner;
        if (RX_ENTER(&ctx->heap, &inner)) {
            rx_ival_print(&b, rx_interp_run(&in, rx_module_get(m, "main"), NULL, 0));
            snprintf(buf, size, "%s", b.at);
            rx_leave(&ctx->heap, &inner);
        } else {
            snprintf(buf, size, "!%d", tl_last_error(ctx));
        }
        rx_module_free(m);
        rx_leave(&ctx->heap, &fr);
    } else {
        snprintf(buf, size, "does not parse");
    }
    return buf;
}

static int check(const char *text, const char *want)
{
    char buf[1024];
    tl_heap th;
    relax_context *ctx = tl_context(&th);
    outcome(ctx, text, buf, sizeof buf);
    bool ok = !strcmp(buf, want);
    if (!ok) {
        print_error("%s\n gave %s\n want %s\n", text, buf, want);
        tl_print_diags(ctx);
    }
    tl_done(&th, ctx);
    return !ok;
}

static void operators(void **state)
{
    (void)state;
    char text[1024];
    volatile int wrong = 0;
    for (size_t i = 0; i < RX_COUNT(rows); i++) {
        snprintf(text, sizeof text, "fn main() { %s }", rows[i].text);
        wrong += check(text, rows[i].want);
    }
    assert_int_equal(wrong, 0);
}

static void functions(void **state)
{
    (void)state;
    volatile int wrong = 0;
    for (size_t i = 0; i < RX_COUNT(modules); i++)
        wrong += check(modules[i].text, modules[i].want);
    assert_int_equal(wrong, 0);
}

/* arguments against the signature: every kind of mismatch has its error */
static void entry(void **state)
{
    (void)state;
    static const char text[] = "fn main(x: Tensor((n, 2), f32), y: Tensor((2*n,), i8), p: Prim(i64, k), s: Shape(n, "
                               "k)) where n <= 4, k % 2 == 0, "
                               "n + k <= 9 { return x }";
    static const struct { int64_t x[2]; relax_dtype xt; int32_t xn; int64_t y, p, s0; int err; } calls[] = {
        {{3, 2}, RELAX_F32, 2, 6, 2, 3, 0},
        {{0, 2}, RELAX_F32, 2, 0, 0, 0, 0},
        {{3, 2}, RELAX_F16, 2, 6, 2, 3, RXE_ARG_DTYPE},
        {{3, 2}, RELAX_F32, 1, 6, 2, 3, RXE_ARG_RANK},
        {{3, 3}, RELAX_F32, 2, 6, 2, 3, RXE_ARG_DIM},
        {{3, 2}, RELAX_F32, 2, 5, 2, 3, RXE_ARG_DIM},
        {{3, 2}, RELAX_F32, 2, 6, 2, 2, RXE_ARG_DIM},
        {{5, 2}, RELAX_F32, 2, 10, 2, 5, RXE_BOUND_EXCEEDED},
        {{3, 2}, RELAX_F32, 2, 6, 3, 3, RXE_BOUND_EXCEEDED},
        {{3, 2}, RELAX_F32, 2, 6, 8, 3, RXE_BOUND_EXCEEDED},
        {{3, 2}, RELAX_F32, 2, 6, -2, 3, RXE_BOUND_EXCEEDED},
    };
    for (size_t i = 0; i < RX_COUNT(calls); i++) {
        tl_heap th;
        relax_context *ctx = tl_context(&th);
        volatile int err = 0;
        rx_frame fr;
        relax_module *volatile m = NULL;
        TL_TRY(ctx) {
            rx_ops_init(ctx);
            m = rx_parse_module(ctx, "t", text, strlen(text));
        } TL_END(ctx)
        if (RX_ENTER(&ctx->heap, &fr)) {
            rx_interp in = {.ctx = ctx, .a = rx_scratch(&ctx->heap)};
            int64_t s[2] = {calls[i].s0, calls[i].p};
            rx_ival *args[] = {rx_ival_tensor(ctx, in.a, calls[i].xt, calls[i].x, calls[i].xn, NULL),
                               rx_ival_tensor(ctx, in.a, RELAX_I8, &calls[i].y, 1, NULL), rx_ival_int(in.a, calls[i].p),
                               rx_ival_shape(in.a, s, 2)};
            assert_ptr_equal(rx_interp_run(&in, rx_module_get(m, "main"), args, 4), args[0]);
            rx_leave(&ctx->heap, &fr);
        } else {
            err = tl_last_error(ctx);
        }
        assert_int_equal(err, calls[i].err);
        rx_module_free(m);
        tl_done(&th, ctx);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(operators), cmocka_unit_test(functions),
                                       cmocka_unit_test(entry)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
