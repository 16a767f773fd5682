/* test_pass_build.c: programs that the passes or the bytecode could get wrong, as the interpreter and as an executable:
 * both give the same integers, or the same error. */
#include "testlib.h"

#include "graph/graph.h"

/* arguments: "3": the i32 tensor 1 2 3, "~3" the same in f32, "@5": the integer 5, true or false: a bool of rank 0.
 * want: elements of all tensors of the result, or an error */
typedef struct row { const char *text, *args, *want; int err; } row;

#define REST                                                                                                           \
    "private prim rest(A: Buffer((n,), i32), B: Buffer((n - k,), i32); k) where k <= n {\n"                         \
    "  for i in n - k { B[i] = A[i + k] } }\n"
static const row rows[] = {
    /* what a symbol may be is checked whether a dim, a number, an equation or a cast defines it */
    {"fn main(x: Tensor((n,), i32), p: Prim(i64, k)) { y = full(shape(k), const(i32, (), [7])) return y }", "1 @2",
     "7 7", 0},
    {"fn main(x: Tensor((n,), i32), p: Prim(i64, k)) { y = full(shape(k), const(i32, (), [7])) return y }", "1 @-1",
     NULL, RXE_BOUND_EXCEEDED},
    {"fn main(x: Tensor((n + 1,), i32)) { y = full(shape(n), const(i32, (), [7])) return y }", "2", "7", 0},
    {"fn main(x: Tensor((n + 1,), i32)) { y = full(shape(n), const(i32, (), [7])) return y }", "0", NULL,
     RXE_BOUND_EXCEEDED},
    {"fn main(x: Tensor((2*n,), i32)) { y = full(shape(n), const(i32, (), [7])) return y }", "4", "7 7", 0},
    {"fn main(x: Tensor((2*n,), i32)) { y = full(shape(n), const(i32, (), [7])) return y }", "3", NULL, RXE_ARG_DIM},
    {"fn main(x: Tensor((n,), i32)) where u <= 2 { y = unique(x) z = match_cast(y, Tensor((u,), i32)) return z }", "2",
     "1 2", 0},
    {"fn main(x: Tensor((n,), i32)) where u <= 2 { y = unique(x) z = match_cast(y, Tensor((u,), i32)) return z }", "3",
     NULL, RXE_BOUND_EXCEEDED},
    {"fn main(x: Tensor((n,), i32)) where u % 2 == 0 { y = unique(x) z = match_cast(y, Tensor((u,), i32)) return z }",
     "3", NULL, RXE_BOUND_EXCEEDED},
    {"fn main(x: Tensor((n,), i32)) where n <= 3 { y = add(x, x) return y }", "3", "2 4 6", 0},
    {"fn main(x: Tensor((n,), i32)) where n <= 3 { y = add(x, x) return y }", "4", NULL, RXE_BOUND_EXCEEDED},
    {"fn main(x: Tensor((n,), i32), y: Tensor((m,), i32)) where n*m <= 6 { return y }", "3 3", NULL,
     RXE_BOUND_EXCEEDED},
    /* obligations hold before anything is sized: n - 3 is negative */
    {REST "fn main(x: Tensor((n,), i32)) { y = call_tir(@rest, (x,), Tensor((n - 3,), i32), syms=(3,))\n"
          "z = add(y, y) w = add(z, y) return w }",
     "4", "12", 0},
    {REST "fn main(x: Tensor((n,), i32)) { y = call_tir(@rest, (x,), Tensor((n - 3,), i32), syms=(3,))\n"
          "z = add(y, y) w = add(z, y) return w }",
     "2", NULL, RXE_ARG_DIM},
    {"fn main(x: Tensor((n,), i32), y: Tensor((m,), i32)) { z = add(x, y) w = add(z, z) return w }", "2 2", "4 8", 0},
    {"fn main(x: Tensor((n,), i32), y: Tensor((m,), i32)) { z = add(x, y) w = add(z, z) return w }", "2 3", NULL,
     RXE_ARG_DIM},
    /* also of a function that is called, and where nothing uses the result */
    {"private fn f(x: Tensor((k,), i32), y: Tensor((k,), i32)) -> Tensor((k,), i32) { return x }\n"
     "fn main(x: Tensor((n,), i32), y: Tensor((m,), i32)) { z = @f(x, y) return z }",
     "2 3", NULL, RXE_ARG_DIM},
    {"fn f(x: Tensor((k,), i32)) -> Tensor((k,), i32) where k <= 2 { y = add(x, x) return y }\n"
     "fn main(x: Tensor((n,), i32)) { z = @f(x) return z }",
     "3", NULL, RXE_ARG_DIM},
    {"fn main(x: Tensor((n,), i32), y: Tensor((m,), i32)) { z = add(x, y) return x }", "2 3", NULL, RXE_ARG_DIM},
    /* two caches that begin alike are two; constants are never written over */
    {"fn main(x: Tensor((1,), f32)) { c = zeros(shape(2)) d = zeros(shape(2))\n"
     "e = kv_append(c, x, prim(0)) f = kv_append(d, x, prim(1)) t = (e, f) return t }",
     "~1", "1 0 0 1", 0},
    {"fn store(c: Tensor((3,), f32), x: Tensor((1,), f32), p: Prim(i64, k)) -> Tensor((3,), f32) {\n"
     "d = kv_append(c, x, p) return d }\n"
     "fn main(x: Tensor((1,), f32)) { e = @store(const(f32, (3,), [4.0, 5.0, 6.0]), x, prim(0))\n"
     "f = @store(const(f32, (3,), [4.0, 5.0, 6.0]), x, prim(2)) t = (e, f) return t }",
     "~1", "1 5 6 4 5 1", 0},
    {"fn fresh(c: Tensor((), bool)) -> Tensor((2,), f32) { r = if c { yield const(f32, (2,), [4.0, 5.0]) } else {\n"
     "yield const(f32, (2,), [6.0, 7.0]) } return r }\n"
     "fn main(c: Tensor((), bool), x: Tensor((1,), f32)) { a = @fresh(c) b = kv_append(a, x, prim(0)) d = @fresh(c)\n"
     "t = (b, d) return t }",
     "true ~1", "1 5 4 5", 0},
    {"fn main(x: Tensor((1,), f32)) { c = broadcast_to(const(f32, (1,), [9.0]), shape(2)) d = kv_append(c, x, "
     "prim(1))\n"
     "e = broadcast_to(const(f32, (1,), [9.0]), shape(2)) t = (d, e) return t }",
     "~1", "9 1 9 9", 0},
    {"private prim bump(A: Buffer((n,), i32)) { for i in n { A[i] += 1 } }\n"
     "fn main(x: Tensor((n,), i32)) { a = add(x, x) w = call_tir_inplace(@bump, (a,), Tensor((n,), i32), "
     "inplace=(0,))\n"
     "b = add(x, x) c = (w, b) return c }",
     "2", "3 5 2 4", 0},
    /* branches: what lives across, what one defines, results without bindings */
    {"fn main(c: Tensor((), bool), x: Tensor((n,), i32)) { a = add(x, x) r = if c { b = add(a, x) d = add(b, a) yield "
     "d } else {\n"
     "e = multiply(a, a) f = add(e, x) yield f } g = add(r, a) return g }",
     "true 2", "7 14", 0},
    {"fn main(c: Tensor((), bool), x: Tensor((n,), i32)) { a = add(x, x) r = if c { b = add(a, x) d = add(b, a) yield "
     "d } else {\n"
     "e = multiply(a, a) f = add(e, x) yield f } g = add(r, a) return g }",
     "false 2", "7 22", 0},
    {"fn main(c: Tensor((), bool), x: Tensor((n,), i32)) { r = if c { yield x } else { yield const(i32, (1,), [5]) }\n"
     "s = if c { yield r } else { q = if c { yield x } else { yield r } yield q } return s }",
     "false 2", "5", 0},
    {"fn main(c: Tensor((), bool), x: Tensor((n,), i32)) { u = unique(x) r = if c { v = match_cast(u, Tensor((k,), "
     "i32))\n"
     "w = add(v, v) yield w } else { v = match_cast(u, Tensor((k,), i32)) w = multiply(v, v) yield w } return r }",
     "false 3", "1 4 9", 0},
    /* a branch that is not taken checks nothing */
    {"fn main(c: Tensor((), bool), x: Tensor((n,), i32), y: Tensor((m,), i32)) { r = if c { z = add(x, y) yield z } "
     "else {\n"
     "yield x } return r }",
     "false 1 2", "1", 0},
    {"fn main(c: Tensor((), bool), x: Tensor((n,), i32), y: Tensor((m,), i32)) { r = if c { z = add(x, y) yield z } "
     "else {\n"
     "yield x } return r }",
     "true 2 3", NULL, RXE_ARG_DIM},
    /* recursion: 3 levels, each with an arena of its own */
    {"fn sum(x: Tensor((k,), i32), p: Prim(i64, d)) -> Tensor((k,), i32) { c = greater(p, prim(0)) r = if c { a = "
     "add(x, x)\n"
     "q = subtract(p, prim(1)) b = @sum(a, q) e = add(b, x) yield e } else { yield x } return r }\n"
     "fn main(x: Tensor((n,), i32)) { y = @sum(x, prim(3)) return y }",
     "2", "15 30", 0},
    /* numbers that are no tensors are computed with shapes */
    {"fn main(x: Tensor((n,), i32), p: Prim(i64), q: Prim(i64, k)) { a = add(p, q) b = multiply(a, prim(2)) c = "
     "less(b, prim(n))\n"
     "d = greater_equal(q, prim(0)) e = logical_and(c, d) r = if e { yield x } else { y = add(x, x) yield y } return r "
     "}",
     "3 @-1 @2", "1 2 3", 0},
    {"fn main(x: Tensor((n,), i32), p: Prim(i64), q: Prim(i64, k)) { a = add(p, q) b = multiply(a, prim(2)) c = "
     "less(b, prim(n))\n"
     "d = greater_equal(q, prim(0)) e = logical_and(c, d) r = if e { yield x } else { y = add(x, x) yield y } return r "
     "}",
     "3 @0 @2", "2 4 6", 0},
    /* an arena of no bytes */
    {"fn main(x: Tensor((n,), i32)) { a = zeros(shape(n, 0), dtype=i32) y = add(a, a) z = sum(y, axis=(1,)) return z }",
     "2", "0 0", 0},
    /* a text that claims to be guarded is guarded all the same */
    {"module guarded\n"
     "private prim p(X: Buffer((n,), i32), Y: Buffer((n,), i32)) { for i in n { Y[i] = X[i64(X[i])] } }\n"
     "fn main(x: Tensor((n,), i32)) { y = call_tir(@p, (x,), Tensor((n,), i32)) return y }", "5", NULL, RXE_INDEX},
    /* errors of the run */
    {"fn main(x: Tensor((n,), i32)) { y = floor_divide(x, const(i32, (), [0])) return y }", "1", NULL, RXE_DIV_ZERO},
    {"fn main(x: Tensor((n,), i32)) { y = take(x, x, axis=0) return y }", "1", NULL, RXE_INDEX},
    {"fn main(x: Tensor((n,), i32)) { y = take(x, const(i64, (1,), [-1]), axis=0) return y }", "3", "3", 0},
    /* the same tensor twice, a parameter, a constant as results */
    {"fn main(x: Tensor((n,), i32)) { y = add(x, x) t = (y, x, y, const(i32, (1,), [8])) return t }", "1", "2 1 2 8",
     0},
    {"fn main(x: Tensor((n,), i32)) { y = add(x, x) z = reshape(y, shape(1, n)) t = (z, y) s = (t, t) return s }", "1",
     "2 2 2 2", 0},
};

/* ---- arguments ---- */
static relax_any one_argument(relax_context *ctx, const char *s)
{
    relax_any v = {.kind = RELAX_ANY_INT};
    DLTensor t;
    if (*s == '@') {
        v.u.i = atoi(s + 1);
        return v;
    }
    bool flag = *s == 't' || *s == 'f', real = *s == '~';
    int64_t dims = flag ? 0 : atoi(s + real);
    assert_int_equal(relax_tensor_create(ctx,
                                         flag   ? RELAX_BOOL
                                         : real ? RELAX_F32
                                                : RELAX_I32,
                                         &dims, flag ? 0 : 1, &v),
                     RELAX_OK);
    assert_int_equal(relax_any_dltensor(&v, &t), RELAX_OK);
    if (flag)
        *(char *)t.data = *s == 't';
    for (int64_t i = 0; i < dims && real; i++)
        ((float *)t.data)[i] = (float)i + 1;
    for (int64_t i = 0; i < dims && !real; i++)
        ((int32_t *)t.data)[i] = (int32_t)i + 1;
    return v;
}

static uint32_t arguments(relax_context *ctx, const char *s, relax_any *out)
{
    uint32_t n = 0;
    while (*s) {
        size_t len = strcspn(s, " ");
        out[n++] = one_argument(ctx, s);
        s += len + (s[len] == ' ');
    }
    return n;
}

static void put(char *text, const relax_any *v)
{
    DLTensor t;
    for (uint32_t i = 0; v->kind == RELAX_ANY_TUPLE && i < relax_any_count(v); i++) {
        relax_any f = relax_any_field(v, i);
        put(text, &f);
    }
    if (v->kind != RELAX_ANY_TENSOR)
        return;
    assert_int_equal(relax_any_dltensor(v, &t), RELAX_OK);
    int64_t n = 1;
    for (int32_t i = 0; i < t.ndim; i++)
        n *= t.shape[i];
    const char *data = (char *)t.data + t.byte_offset;
    for (int64_t i = 0; i < n; i++)
        sprintf(text + strlen(text), "%s%d", *text ? " " : "",
                t.dtype.code == kDLFloat ? (int)((const float *)data)[i] : ((const int32_t *)data)[i]);
}

/* ---- with the pipelines that a host may choose ---- */
static const char *const pipelines[] = {"default", "legalize,lower-calls",
                                        "legalize,guard,lower-calls,plan-memory(reuse=false)",
                                        "inline,legalize,cse,dce,lower-calls,plan-memory",
                                        "normalize,cse,fold-constant,legalize,cse,inline,lower-calls,plan-memory"};

static bool backend = true;

static int run_row(const row *r, const char *pipeline, int32_t threads)
{
    tl_heap th;
    relax_context *ctx = tl_context(&th);
    relax_module *m = relax_module_parse(ctx, "row", r->text, RELAX_STRLEN);
    relax_build_options o = RELAX_BUILD_OPTIONS_INIT;
    relax_vm_options vo = RELAX_VM_OPTIONS_INIT;
    relax_executable *e = NULL;
    relax_vm *vm = NULL;
    relax_any args[8], out = {0};
    char got[512] = "";
    int err = 0;
    o.pipeline = pipeline;
    o.verify = 1;
    o.opt_level = 0;
    vo.threads = threads;
    relax_status st = m ? relax_build(m, relax_target_parse(ctx, "cpu"), &o, &e) : RELAX_E_INVALID;
    if (st && tl_last_error(ctx) == RXE_NO_BACKEND) {
        backend = false;
    } else if (!st && (st = relax_vm_create(e, &vo, &vm)) == RELAX_OK) {
        uint32_t n = arguments(ctx, r->args, args);
        for (int call = 0; call < 2; call++) {          /* a call leaves nothing behind */
            got[0] = 0;
            relax_diagnostic_clear(ctx);
            st = relax_vm_invoke(vm, "main", args, n, &out);
            put(got, &out);
            relax_any_release(&out);
        }
        for (uint32_t i = 0; i < n; i++)
            relax_any_release(&args[i]);
    }
    if (st)
        err = tl_last_error(ctx);
    bool ok = !backend || (r->err ? err == r->err : !err && !strcmp(got, r->want));
    if (!ok) {
        tl_print_diags(ctx);
        print_error("%s\n(%s) with \"%s\": wanted %s RX%d, got \"%s\" RX%d\n", r->text, r->args, pipeline,
                    r->want ? r->want : "", r->err, got, err);
    }
    relax_vm_destroy(vm);
    relax_executable_destroy(e);
    relax_module_destroy(m);
    tl_done(&th, ctx);
    return !ok;
}

static void executables(void **state)
{
    (void)state;
    int wrong = 0;
    for (size_t i = 0; i < RX_COUNT(rows) && backend; i++) {
        wrong += run_row(&rows[i], "default", 1);
        wrong += run_row(&rows[i], pipelines[1 + i % (RX_COUNT(pipelines) - 1)], 1 + (int32_t)i % 2);
    }
    assert_int_equal(wrong, 0);
    if (!backend)
        skip();
}

/* ---- what does not reach code generation ---- */
static void not_lowered(void **state)
{
    (void)state;
    static const char *const passes[] = {"", "normalize", "legalize", "cse,dce,legalize,guard,schedule"};
    for (size_t i = 0; i < RX_COUNT(passes); i++) {
        tl_heap th;
        relax_context *ctx = tl_context(&th);
        relax_module *m =
            relax_module_parse(ctx, "t", "fn main(x: Tensor((n,), f32)) { y = exp(x) return y }", RELAX_STRLEN);
        relax_build_options o = RELAX_BUILD_OPTIONS_INIT;
        relax_executable *e = NULL;
        o.pipeline = passes[i];
        relax_status st = relax_build(m, relax_target_parse(ctx, "cpu"), &o, &e);
        int err = tl_last_error(ctx);
        relax_module_destroy(m);
        tl_done(&th, ctx);
        if (err == RXE_NO_BACKEND)
            skip();
        assert_int_equal(st, RELAX_E_INVALID);
        assert_int_equal(err, RXE_CONTRACT);
    }
}

/* functions that call two each, deep: the memory formula must not walk every path */
static void deep_calls(void **state)
{
    (void)state;
    enum { DEEP = 40 };
    char text[8192], *s = text;
    tl_heap th;
    relax_context *ctx = tl_context(&th);
    for (int i = 0; i < DEEP; i++)
        s += i ? sprintf(s, "fn f%d(x: Tensor((n,), i32)) -> Tensor((n,), i32) { a = @f%d(x) b = @f%d(a) return b }\n",
                         i, i - 1, i - 1)
               : sprintf(s,
                         "fn f0(x: Tensor((n,), i32)) -> Tensor((n,), i32) { a = add(x, x) b = add(a, a) return b }\n");
    relax_module *m = relax_module_parse(ctx, "t", text, RELAX_STRLEN);
    relax_executable *e = NULL;
    int64_t bytes = 0;
    assert_non_null(m);
    relax_status st = relax_build(m, relax_target_parse(ctx, "cpu"), NULL, &e);
    if (st && tl_last_error(ctx) != RXE_NO_BACKEND)
        tl_print_diags(ctx);
    bool skipped = st && tl_last_error(ctx) == RXE_NO_BACKEND;
    if (!skipped) {
        relax_sym_value n = {"n", 16};
        assert_int_equal(st, RELAX_OK);
        assert_int_equal(relax_executable_peak_memory(e, "f0", &n, 1, &bytes), RELAX_OK);
        assert_int_equal(bytes, 128);
        assert_int_equal(relax_executable_peak_memory(e, "f39", &n, 1, &bytes), RELAX_OK);
        assert_int_equal(bytes, 128);
    }
    relax_executable_destroy(e);
    relax_module_destroy(m);
    tl_done(&th, ctx);
    if (skipped)
        skip();
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(executables), cmocka_unit_test(not_lowered),
                                       cmocka_unit_test(deep_calls)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
