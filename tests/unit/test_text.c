/* test_text.c: the text form of modules: print(parse(print(x))) == print(x), errors with a place, hostile texts. */
#include "testlib.h"

#include "graph/op.h"
#include "op/op.h"

#define PRIMS                                                                                                          \
    "prim shifted(A: Buffer((n,), f32), B: Buffer((n,), f32); k) {\n  for i in n { B[i] = A[i] * f32(k) }\n}\n"      \
    "private prim bump(A: Buffer((n,), f32)) {\n  for i in n { A[i] += 1.0 }\n}\n"

/* programs that hold every kind of value, block and attribute */
static const char *const good[] = {
    "fn f(x: Tensor((n, 4), f32)) -> Tensor((n, 4), f32) { return x }",
    "private impure fn f(x: Object) { y = call_packed(\"host\", x, \"a\\\"b\\x01\", Object) return y }",
    "fn main(x: Tensor((n, 4), f32)) -> Tensor((n * 2, 2), f32) where 1 <= n <= 2048 {\n"
    "  dataflow { z = reshape(x, shape(n * 2, 2)) output z }\n  return z }",
    "fn f(x: Tensor((n,), f32)) where n <= 8, n % 4 == 0, n*n <= 40 attrs {a = 1, b = -2.5, c = true, d = f16, e = "
    "\"s\", "
    "f = (1, -2), g = expr(n + 1), h = exprs(n, 2), $\"i j\" = inf, k = ()} { return x }",
    "fn f(c: Tensor((), bool), x: Tensor((n,), f32), y: Tensor((m,), f32)) { r = if c { yield x } else { yield y } "
    "return r }",
    "fn f(c: Prim(bool), i: Tensor(ndim=1, i64)) { r = if c { a = match_cast(i, Tensor((m,), i64)) yield a } else {\n"
    "a = match_cast(i, Tensor((m,), i64)) q = if c { yield a } else { yield i } yield q } return r }",
    "fn f(x: Tensor((2*n, m), f32), s: Shape(n, k), p: Prim(i64, q)) -> Tensor((n, 2, m), f32) {\n"
    "y = reshape(x, shape(n, 2, m)) return y }",
    "fn f(n: Prim(i64, k), c: Tensor((), bool), x: Tensor((k,), f32)) -> Tensor((k,), f32) { z = @g(n, c, x) return z "
    "}\n"
    "fn g(n: Prim(i64, k), c: Tensor((), bool), x: Tensor((k,), f32)) -> Tensor((k,), f32) { r = if c { z = @f(n, c, "
    "x)\n"
    "yield z } else { yield x } return r }",
    "fn f(x: Tensor((n,), f32), g: Callable((Tensor((k,), f32)) -> Tensor((k,), f32)), h: Callable,\n"
    "i: Callable[impure](() -> Tuple())) { a = call_pure(g, x) return a }",
    "impure fn f(g: Callable, x: Object) { a = call(g, x, \"t\", prim(1), shape(2), @f) return a }",
    "fn f($\"blk.0.weight\": Tensor((4,), f32), $\"if\": Tensor((4,), f32)) { $\"x y\" = add($\"blk.0.weight\", "
    "$\"if\") "
    "return $\"x y\" }",
    "fn f() { t = () u = (t,) v = (t, u, const(i8, (3,), [1, -2, 127])) w = v[2] return w }",
    "fn f() { t = (const(f32, (2,), [inf, nan]), const(f32, (1,), \"x'0000c0ff'\"), const(bool, (1,), \"x'02'\")) "
    "return t }",
    "fn f() { t = (const(u64, (1,), [18446744073709551615]), const(i64, (1,), [-9223372036854775808]), const(f64, (), "
    "[0.1]),"
    "const(f16, (2,), [0.1, -0.0]), const(bf16, (), [3.0]), const(f32, (0, 3), []), const(bool, (2,), [true, false])) "
    "return t }",
    PRIMS "fn f(x: Tensor((n,), f32)) { y = call_tir(@shifted, (x,), Tensor((n,), f32), syms=(n + 3,)) return y }",
    PRIMS "fn f(x: Tensor((n,), f32), k: Tensor((n,), f32)) { w = call_tir_inplace(@bump, (k,), Tensor((n,), f32), "
          "inplace=(0,)) "
          "return w }",
    "fn f(x: Tensor((n,), f32)) { l = call_dps_library(\"l.f\", (x,), Tuple(Tensor((n,), f32), Tensor((), i32)), "
    "syms=(n,)) "
    "m = l[1] return m }",
    "fn f(x: Tensor((n,), f32)) { a = call_pure_packed(\"p\", x, Tensor((n,), f32)) attrs {note = \"z\"} return a }",
    "module legal, dps, planned\n" PRIMS
    "fn f(x: Tensor((n,), f32)) -> Tensor((2*n,), f16) arena n * 8 { a = alloc(Tensor((n,), f32), arena=0)\n"
    "b = alloc(Tensor((n,), f32)) call_dps(@shifted, (x, a), syms=(2,)) call_dps(\"rx.sort\", (a, b), syms=(0, 1))\n"
    "v = view(b, Tensor((2*n,), f16)) return v }",
    "fn f(x: Tensor((n,), f32), y: Tensor((m,), f32)) { z = add(x, y) where n == m, m % 2 == 0 return z }",
    "fn f(x: Tensor((n,), f32)) { u = unique(x) v = match_cast(u, Tensor((u1,), f32)) w = zeros(shape(u1, n), "
    "dtype=f16) "
    "return w }",
    "fn f(x: Tensor((n,), f32)) where u1 <= 10 { u = unique(x) v = match_cast(u, Tensor((u1,), f32)) return v }",
    "fn f(x: Tensor((4, 8), f32)) { s = strided_slice(x, axes=(0, 1), begin=(0, 1), end=(2, 5)) t = softmax(s, axis=0) "
    "return t }",
    "fn f(x: Tensor(ndim=?, ?), y: Tensor(ndim=2, f32), s: Shape(ndim=?), t: Tuple(), p: Prim(f32), q: Shape()) { "
    "return t }",
    "fn add(add: Tensor((n,), f32), n: Tensor((n,), f32)) { v = add(add, n) v_1 = add(v, v) return v_1 }",
};

static const char *print(relax_context *ctx, relax_module *m)
{
    rx_buf b;
    rx_buf_init(&b, rx_scratch(&ctx->heap));
    rx_print_module(&b, m);
    return b.at ? b.at : "";
}

static relax_module *parse(relax_context *ctx, const char *s)
{
    return rx_parse_module(ctx, "t", s, strlen(s));
}

static void round_trip(void **state)
{
    (void)state;
    for (size_t i = 0; i < RX_COUNT(good); i++) {
        tl_heap th;
        relax_context *ctx = tl_context(&th);
        TL_TRY(ctx) {
            rx_ops_init(ctx);
            relax_module *a = parse(ctx, good[i]);
            const char *s = print(ctx, a);
            relax_module *b = parse(ctx, s);
            assert_string_equal(print(ctx, b), s);
            assert_int_equal(rx_module_verify(b), 0);
            relax_module *c = rx_module_clone(a);
            assert_string_equal(print(ctx, c), s);
            rx_module_swap(b, c);
            assert_string_equal(print(ctx, b), s);
            assert_int_equal(rx_module_verify(b), 0);
            rx_module_free(c);
            assert_string_equal(print(ctx, b), s);
            rx_module_free(a);
            rx_module_free(b);
        } TL_END(ctx)
        tl_done(&th, ctx);
    }
}

/* the exact text of the sketch */
static void golden(void **state)
{
    (void)state;
    static const char text[] =
        "fn main(x: Tensor((n, 4), f32), w: Tensor((4,), f32)) -> Tensor((n*2, 2), f32) where 1 <= n <= 2048 {\n"
        "  dataflow {\n"
        "    y = rms_norm(x, w)\n"
        "    z = reshape(y, shape(n*2, 2))\n"
        "    output z\n"
        "  }\n"
        "  return z\n"
        "}\n";
    tl_heap th;
    relax_context *ctx = tl_context(&th);
    TL_TRY(ctx) {
        rx_ops_init(ctx);
        relax_module *a = parse(ctx, text);
        assert_string_equal(print(ctx, a), text);
        rx_module_free(a);
    } TL_END(ctx)
    tl_done(&th, ctx);
}

#define F(body) "fn f(x: Tensor((n, 4), f32), c: Tensor((), bool)) {\n  " body "\n}"
static const struct { const char *text; int err; uint32_t line;
} bad[] = {
    {"x", RXE_SYNTAX, 1},
    {"fn", RXE_SYNTAX, 1},
    {"fn f", RXE_SYNTAX, 1},
    {"fn f(", RXE_SYNTAX, 1},
    {"fn f() {", RXE_SYNTAX, 1},
    {"fn f() { }", RXE_SYNTAX, 1},
    {"fn f() { return }", RXE_SYNTAX, 1},
    {"fn f() {\n return q }", RXE_TEXT_NAME, 2},
    {"fn f(x: Tensor) { return x }", RXE_SYNTAX, 1},
    {"fn f(x: Tensor(n, f32)) { return x }", RXE_SYNTAX, 1},
    {"fn f(x: Tensor((n), f99)) { return x }", RXE_SYNTAX, 1},
    {"fn f(x: Tensor((n,), f32), x: Object) { return x }", RXE_DUPLICATE, 1},
    {"fn f(x: Tensor((1.5,), f32)) { return x }", RXE_SYNTAX, 1},
    {"fn f(x: Tensor((n // 2 + m,), f32)) { return x }", RXE_VERIFY, 1},
    {"fn f(x: Tensor(ndim=-1, f32)) { return x }", RXE_SYNTAX, 1},
    {"fn f(x: Tensor(ndim=99, f32)) { return x }", RXE_SYNTAX, 1},
    {"fn f(x: Prim(f32, 1.5)) { return x }", RXE_SYNTAX, 1},
    {"fn f(x: Nothing) { return x }", RXE_SYNTAX, 1},
    {"fn f(x: Object) -> Tensor((k,), f32) { return x }", RXE_TEXT_NAME, 1},
    {"fn f(x: Tensor((n,), f32)) -> Tensor((n, 1), f32) { return x }", RXE_VERIFY, 1},
    {"fn f(x: Object) where k < 3 { return x }", RXE_TEXT_NAME, 1},
    {"fn f(x: Tensor((n,), f32)) where 5 <= n <= 3 { return x }", RXE_BOUND, 1},
    {"fn f(x: Tensor((n,), f32)) where n < n { return x }", RXE_BOUND, 1},
    {"fn f(x: Tensor((n,), f32)) where n + 1 { return x }", RXE_BAD_VALUE, 1},
    {"fn f() { return f }\nfn f() { return f }", RXE_TEXT_NAME, 2},
    {"prim f() { }\nprim f() { }", RXE_TEXT_NAME, 2},
    {"module quick\n", RXE_SYNTAX, 1},
    {"fn f* () { return f }", RXE_SYNTAX, 1},
    {"fn $\"f*\"() { return f }", RXE_SYNTAX, 1},
    {"fn $\"\"() { return f }", RXE_SYNTAX, 1},
    {F("y = nope(x)\n  return y"), RXE_UNKNOWN_OP, 2},
    {F("y = add(x)\n  return y"), RXE_ARITY, 2},
    {F("y = add(x, z)\n  return y"), RXE_TEXT_NAME, 2},
    {F("y = add(x, 1)\n  return y"), RXE_SYNTAX, 2},
    {F("y = softmax(x, axis=7)\n  return y"), RXE_AXIS, 2},
    {F("y = softmax(x, axes=7)\n  return y"), RXE_ATTR, 2},
    {F("y = softmax(x, axis=1, axis=1)\n  return y"), RXE_ATTR, 2},
    {F("y = softmax(axis=1, x)\n  return y"), RXE_SYNTAX, 2},
    {F("y = softmax(x, axis=true)\n  return y"), RXE_SYNTAX, 2},
    {F("y = softmax(x, axis=99999999999999999999)\n  return y"), RXE_SYNTAX, 2},
    {F("x = add(x, x)\n  return x"), RXE_TEXT_NAME, 2},
    {F("if = add(x, x)\n  return x"), RXE_SYNTAX, 2},
    {F("y = x\n  return y"), RXE_SYNTAX, 3},
    {F("y = (x,)\n  z = y[1]\n  return z"), RXE_AXIS, 3},
    {F("z = x[0]\n  return z"), RXE_TYPE_KIND, 2},
    {F("y = (x,)\n  z = y[-1]\n  return z"), RXE_SYNTAX, 3},
    {F("y = match_cast(x, Tensor((n, 5), f32))\n  return y"), RXE_SHAPE, 2},
    {F("y = match_cast(x, Tensor((n, 4), f16))\n  return y"), RXE_SHAPE, 2},
    {F("y = reshape(x, shape(k, 4))\n  return y"), RXE_TEXT_NAME, 2},
    {F("y = reshape(x, shape(n, 4, n + 1, 2))\n  w = match_cast(y, Tensor((n,), f32))\n return w"), RXE_SHAPE, 3},
    {F("y = @g(x)\n  return y"), RXE_TEXT_NAME, 2},
    {F("y = @f(x, c)\n  return y"), RXE_STATE, 2},
    {F("y = call_tir(@f, (x,), Tensor((n, 4), f32))\n  return y"), RXE_TYPE_KIND, 2},
    {F("y = call_tir(\"f\", (x,), Tensor((n, 4), f32))\n  return y"), RXE_SYNTAX, 2},
    {F("y = call_dps_library(\"l\", (x,), Tensor(ndim=2, f32))\n  return y"), RXE_TYPE_KIND, 2},
    {F("y = call_dps_library(\"\", (x,), Tensor((n,), f32))\n  return y"), RXE_BAD_VALUE, 2},
    {F("y = call_dps_library(\"l\", (x,), Tensor((n,), f32), sims=(n,))\n  return y"), RXE_SYNTAX, 2},
    {F("y = call_packed(\"l\", x, Object)\n  return y"), RXE_PURITY, 2},
    {F("dataflow {\n y = call_packed(\"l\", x, Object)\n }\n  return x"), RXE_PURITY, 3},
    {F("dataflow {\n y = if c { yield x } else { yield x }\n }\n  return x"), RXE_PURITY, 3},
    {F("dataflow {\n y = add(x, x)\n }\n  return y"), RXE_TEXT_NAME, 5},
    {F("dataflow {\n y = add(x, x)\n output x }\n  return x"), RXE_SYNTAX, 4},
    {F("dataflow {\n y = add(x, x)\n"), RXE_SYNTAX, 5},
    {F("y = if x { yield x } else { yield x }\n  return y"), RXE_TYPE_KIND, 2},
    {F("y = if c { yield x }\n  return y"), RXE_SYNTAX, 3},
    {F("y = if c { z = add(x, x) yield z } else { yield z }\n  return y"), RXE_TEXT_NAME, 2},
    {F("y = if c { return x } else { yield x }\n  return y"), RXE_SYNTAX, 2},
    {F("y = if c { z = match_cast(x, Tensor((k, 4), f32)) yield z } else { yield x }\n  w = zeros(shape(k)) return w"),
     RXE_TEXT_NAME, 3},
    {F("y = const(f32, (2,), [1.0])\n  return x"), RXE_UNKNOWN_OP, 2},
    {F("y = (const(f32, (2,), [1.0]),)\n  return x"), RXE_SYNTAX, 2},
    {F("y = (const(f32, (1,), [1.0, 2.0]),)\n  return x"), RXE_SYNTAX, 2},
    {F("y = (const(i8, (1,), [128]),)\n  return x"), RXE_SYNTAX, 2},
    {F("y = (const(u8, (1,), [-1]),)\n  return x"), RXE_SYNTAX, 2},
    {F("y = (const(i8, (1,), [1.5]),)\n  return x"), RXE_SYNTAX, 2},
    {F("y = (const(bool, (1,), [1]),)\n  return x"), RXE_SYNTAX, 2},
    {F("y = (const(f32, (-1,), []),)\n  return x"), RXE_SYNTAX, 2},
    {F("y = (const(f32, (99999999999,), []),)\n  return x"), RXE_SYNTAX, 2},
    {F("y = (const(f32, (9999999999, 9999999999), []),)\n  return x"), RXE_SYNTAX, 2},
    {F("y = (const(f32, (1,), \"x'00'\"),)\n  return x"), RXE_SYNTAX, 2},
    {F("y = (const(f32, (1,), \"x'0000c0fg'\"),)\n  return x"), RXE_SYNTAX, 2},
    {F("y = (const(f32, (1,), \"0000c0ff\"),)\n  return x"), RXE_SYNTAX, 2},
    {F("y = alloc(Tensor((n,), f32), arena=0)\n  return x"), RXE_VERIFY, 3},
    {F("y = alloc(Object)\n  return x"), RXE_TYPE_KIND, 2},
    {F("y = view(x, Tensor((n, 5), f32))\n  return x"), RXE_SYNTAX, 0},
    {F("y = add(x, x) where n\n  return x"), RXE_SYNTAX, 3},
    {F("return none"), RXE_SYNTAX, 2},
    {F("y = add(x, none)\n return y"), RXE_TYPE_KIND, 2},
    {F("y = (none,)\n return y"), RXE_SYNTAX, 2},
    {F("y = $5(x)\n return y"), RXE_SYNTAX, 2},
    {F("y = add(x, \"unended\n return y"), RXE_SYNTAX, 2},
    {F("y = add(x, x\n return y"), RXE_SYNTAX, 3},
    {F("y = add(x x)\n return y"), RXE_SYNTAX, 2},
    {F("y = call()\n return y"), RXE_SYNTAX, 3},
    {F("y = call(x, x)\n return y"), RXE_TYPE_KIND, 2},
    {F("y = call_pure(@f, x)\n return y"), RXE_ARITY, 2},
    {F("y = call_packed(h, x, Object)\n return y"), RXE_SYNTAX, 2},
    {F("y = call_packed(\"h\", x)\n return y"), RXE_SYNTAX, 2},
    {F("y = add(x, x) attrs {a = 1}\n return y"), RXE_SYNTAX, 2},
    {PRIMS F("y = call_tir(@shifted, (x,), Tensor((n, 4), f32), syms=(1,))\n return y"), RXE_RANK, 8},
    {PRIMS "fn f(x: Tensor((n,), f16)) {\n y = call_tir(@shifted, (x,), Tensor((n,), f32), syms=(1,))\n return y }",
     RXE_DTYPE, 8},
    {PRIMS "fn f(x: Tensor((n,), f32)) {\n y = call_tir(@shifted, (x,), Tensor((n,), f32))\n return y }", RXE_ARITY, 8},
    {PRIMS "fn f(x: Tensor((n,), f32)) {\n y = call_tir(@shifted, (x, x), Tensor((n,), f32), syms=(1,))\n return y }",
     RXE_ARITY, 8},
    {PRIMS "fn f(x: Tensor((n,), f32)) {\n y = call_tir(@shifted, (x,), Tensor((n + 1,), f32), syms=(1,))\n return y }",
     RXE_SHAPE, 8},
    {PRIMS "fn f(x: Tensor((n,), f32)) {\n y = call_tir(@shifted, (x,), Tensor((n,), f32), syms=(j,))\n return y }",
     RXE_TEXT_NAME, 8},
    {PRIMS
     "fn f(x: Tensor((n,), f32)) {\n y = call_tir_inplace(@bump, (x,), Tensor((n,), f32), inplace=(1,))\n return y }",
     RXE_BAD_VALUE, 8},
    {PRIMS "fn f(x: Tensor((n,), f32)) {\n y = call_tir_inplace(@bump, (x,), Tensor((n,), f32))\n return y }",
     RXE_ARITY, 8},
    {PRIMS
     "fn f(x: Tensor((n,), f32)) {\n y = call_tir_inplace(@bump, (x,), Tensor((n,), f32), inplace=(0,))\n return x }",
     RXE_VERIFY, 9},
};

static void errors(void **state)
{
    (void)state;
    volatile int wrong = 0;
    for (volatile size_t i = 0; i < RX_COUNT(bad); i++) {
        tl_heap th;
        relax_context *ctx = tl_context(&th);
        volatile bool parsed = false;
        rx_frame fr;
        if (RX_ENTER(&ctx->heap, &fr)) {
            rx_ops_init(ctx);
            rx_module_free(parse(ctx, bad[i].text));
            parsed = true;
            rx_leave(&ctx->heap, &fr);
        }
        const rx_diag *d = rx_diag_at(ctx, rx_diag_count(ctx) - 1);
        if (bad[i].line &&
            (parsed || (int)d->err != bad[i].err || d->where.line != bad[i].line || !d->where.col || !d->where.file))
            wrong++, print_error("row %zu: %s\ngave RX%d at line %u: %s\n", i, bad[i].text, parsed ? 0 : (int)d->err,
                                 parsed ? 0 : d->where.line, parsed ? "accepted" : d->message);
        tl_done(&th, ctx);
    }
    assert_int_equal(wrong, 0);
}

/* a status for any text: the context answers, nothing leaks; what is accepted must round-trip */
static bool survive(relax_context *ctx, const char *s, size_t n)
{
    volatile bool ok = false;
    rx_frame fr;
    if (RX_ENTER(&ctx->heap, &fr)) {
        rx_ops_init(ctx);
        relax_module *a = rx_parse_module(ctx, "t", s, n);
        const char *one = print(ctx, a);
        relax_module *b = parse(ctx, one);
        assert_string_equal(print(ctx, b), one);
        rx_module_free(a);
        rx_module_free(b);
        ok = true;
        rx_leave(&ctx->heap, &fr);
    } else {
        assert_true(rx_diag_count(ctx) > 0);
        assert_int_not_equal(rx_diag_status(ctx), RELAX_OK);
        assert_int_not_equal(rx_diag_status(ctx), RELAX_E_INTERNAL);
        rx_diag_clear(ctx);
    }
    return ok;
}

static uint32_t next(uint32_t *seed)
{
    *seed = *seed * 1664525u + 1013904223u;
    return *seed >> 8;
}

/* delete, double, swap or replace pieces of good programs */
static void mutations(void **state)
{
    (void)state;
    static const char *const pieces[] = {
        "(",      ")",        "{",   "}",     ",",      "=",      "none",
        "n",      "0",        "-1",  "f32",   "\"",     "where",  "if",
        "@f",     "$",        "[0]", "yield", "return", "Tensor", "9223372036854775807",
        "output", "dataflow", "1.5", "\n"};
    char text[2048];
    uint32_t seed = 1;
    int accepted = 0;
    for (int round = 0; round < 1500; round++) {
        tl_heap th;
        const char *src = good[next(&seed) % RX_COUNT(good)];
        size_t n = strlen(src), at = next(&seed) % n, len = 1 + next(&seed) % 6;
        const char *in = next(&seed) % 3 ? pieces[next(&seed) % RX_COUNT(pieces)] : "";
        if (at + len > n)
            len = n - at;
        if (next(&seed) % 2)
            len = 0;
        snprintf(text, sizeof text, "%.*s%s%s", (int)at, src, in, src + at + len);
        relax_context *ctx = tl_context(&th);
        accepted += survive(ctx, text, strlen(text));
        tl_done(&th, ctx);
    }
    assert_true(accepted > 20);
}

/* cut at every byte */
static void truncated(void **state)
{
    (void)state;
    const char *src = good[17];
    tl_heap th;
    relax_context *ctx = tl_context(&th);
    for (size_t n = 1; n + 2 < strlen(src); n++)
        survive(ctx, src, n);
    tl_done(&th, ctx);
}

static void deep(void **state)
{
    (void)state;
    static const char *const open[] = {
        "fn f(x: Tuple(",
        "Tuple(",
        "fn f(x: Tensor((",
        "(",
        "fn f(x: Tensor((",
        "-",
        "fn f(x: Callable((",
        "Callable((",
        "fn f(c: Prim(bool)) { a = ",
        "if c { a = ",
        "fn f() { a = ",
        "(",
        "fn f() {",
        "dataflow {",
        "fn f() ",
        "{",
        "prim f() {",
        "for i in 2 {",
        "prim f() {",
        "if true {",
    };
    for (size_t i = 0; i < RX_COUNT(open); i += 2) {
        tl_heap th;
        relax_context *ctx = tl_context(&th);
        size_t n = strlen(open[i]), w = strlen(open[i + 1]), len = n + w * 100000;
        char *s = malloc(len + 1);
        memcpy(s, open[i], n);
        for (size_t k = 0; k < 100000; k++)
            memcpy(s + n + k * w, open[i + 1], w);
        s[len] = 0;
        assert_false(survive(ctx, s, len));
        free(s);
        tl_done(&th, ctx);
    }
}

/* the n-th allocation fails: a status, nothing lost */
static void no_memory(void **state)
{
    (void)state;
    volatile bool done = false;
    for (volatile int64_t n = 1; !done; n++) {
        tl_heap th;
        relax_context *ctx = tl_context(&th);
        relax_module *volatile a = NULL;
        volatile bool ok = false;
        rx_frame fr;
        tl_fail(&th, n, n % 2);
        if (RX_ENTER(&ctx->heap, &fr)) {
            rx_ops_init(ctx);
            a = parse(ctx, good[14]);
            rx_module_free(rx_module_clone(a));
            ok = true;
            rx_leave(&ctx->heap, &fr);
        } else {
            assert_int_equal(rx_diag_status(ctx), RELAX_E_NOMEM);
        }
        tl_fail(&th, 0, false);
        rx_module_free(a);
        tl_done(&th, ctx);
        assert_true(n < 1000);
        done = ok;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(round_trip), cmocka_unit_test(golden), cmocka_unit_test(errors), cmocka_unit_test(mutations),
        cmocka_unit_test(truncated), cmocka_unit_test(deep), cmocka_unit_test(no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
