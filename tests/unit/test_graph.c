/* test_graph.c: annotations and their lattice, deduction through calls, the builder, the verifier's rules, copies. */
#include "testlib.h"

#include "graph/op.h"
#include "op/op.h"

typedef struct fixture { tl_heap heap; relax_context *ctx; relax_module *m; relax_function *f; } fixture;

static void open(fixture *x)
{
    x->ctx = tl_context(&x->heap);
    x->m = NULL;
    TL_TRY(x->ctx) {
        rx_ops_init(x->ctx);
        x->m = rx_module_new(x->ctx);
        x->f = rx_function_new(x->m, "f");
    } TL_END(x->ctx)
}

static void shut(fixture *x)
{
    rx_module_free(x->m);
    tl_done(&x->heap, x->ctx);
}

static rx_ty ty(fixture *x, const char *s)
{
    return rx_fn_type(x->f, s, strlen(s));
}

static const char *text(fixture *x, rx_ty t)
{
    rx_buf b;
    rx_buf_init(&b, rx_scratch(&x->ctx->heap));
    rx_print_type(&b, t);
    return b.at;
}

/* --- annotations --- */

static void print_parse(void **state)
{
    (void)state;
    static const char *const same[] = {
        "Object",
        "Prim(i64)",
        "Prim(i64, n + 1)",
        "Prim(?)",
        "Prim(bool)",
        "Shape(n, 4)",
        "Shape(ndim=2)",
        "Shape(ndim=?)",
        "Shape()",
        "Shape(n)",
        "Tensor((n, 4), f32)",
        "Tensor(ndim=2, f32)",
        "Tensor(ndim=?, ?)",
        "Tensor((), i8)",
        "Tensor((n,), ?)",
        "Tensor((max(m, n)*2, n//4), bf16)",
        "Tuple()",
        "Tuple(Object, Tuple(Prim(f32)))",
        "Callable",
        "Callable(() -> Object)",
        "Callable[impure]((Object) -> Tuple())",
        "Callable((Tensor((a,), f32), Callable) -> Tensor((a*2,), f32))",
    };
    static const struct { const char *in, *out;
    } other[] = {
        {"Tensor((4*n, n + n), f32)", "Tensor((n*4, n*2), f32)"},
        {"Tensor(ndim=0, f32)", "Tensor((), f32)"},
        {"Shape(n, 4,)", "Shape(n, 4)"},
        {"Shape(ndim=0)", "Shape()"},
        {"Callable((Tensor((a,), f32)) -> Tensor((b,), f32))", "Callable((Tensor((a,), f32)) -> Tensor(ndim=1, f32))"},
    };
    fixture x;
    open(&x);
    TL_TRY(x.ctx) {
        for (size_t i = 0; i < RX_COUNT(same); i++) {
            rx_ty t = ty(&x, same[i]);
            assert_string_equal(text(&x, t), same[i]);
            assert_ptr_equal(ty(&x, same[i]), t);
        }
        for (size_t i = 0; i < RX_COUNT(other); i++)
            assert_string_equal(text(&x, ty(&x, other[i].in)), other[i].out);
    } TL_END(x.ctx)
    shut(&x);
}

static void lattice(void **state)
{
    (void)state;
    static const struct { const char *a, *b; rx_truth sub; const char *lub;
    } rows[] = {
        {"Object", "Object", RX_TRUE, "Object"},
        {"Prim(i64)", "Object", RX_TRUE, "Object"},
        {"Object", "Prim(i64)", RX_UNKNOWN, "Object"},
        {"Prim(i64)", "Shape()", RX_FALSE, "Object"},
        {"Prim(i64, n)", "Prim(i64)", RX_TRUE, "Prim(i64)"},
        {"Prim(i64, n)", "Prim(i64, n)", RX_TRUE, "Prim(i64, n)"},
        {"Prim(i64, 2)", "Prim(i64, 3)", RX_FALSE, "Prim(i64)"},
        {"Prim(f32)", "Prim(i64)", RX_FALSE, "Prim(?)"},
        {"Tensor((n, 4), f32)", "Tensor(ndim=2, f32)", RX_TRUE, "Tensor(ndim=2, f32)"},
        {"Tensor((n, 4), f32)", "Tensor(ndim=?, ?)", RX_TRUE, "Tensor(ndim=?, ?)"},
        {"Tensor(ndim=2, f32)", "Tensor((n, 4), f32)", RX_UNKNOWN, "Tensor(ndim=2, f32)"},
        {"Tensor((n, 4), f32)", "Tensor((n, 5), f32)", RX_FALSE, "Tensor(ndim=2, f32)"},
        {"Tensor((n, 4), f32)", "Tensor((m, 4), f32)", RX_UNKNOWN, "Tensor(ndim=2, f32)"},
        {"Tensor((n*2,), f32)", "Tensor((n + n,), f32)", RX_TRUE, "Tensor((n*2,), f32)"},
        {"Tensor((n,), f32)", "Tensor((n, 1), f32)", RX_FALSE, "Tensor(ndim=?, f32)"},
        {"Tensor((n,), f32)", "Tensor((n,), f16)", RX_FALSE, "Tensor((n,), ?)"},
        {"Tensor((n,), f32)", "Tensor((n,), ?)", RX_TRUE, "Tensor((n,), ?)"},
        {"Shape(n, m)", "Shape(ndim=2)", RX_TRUE, "Shape(ndim=2)"},
        {"Shape(n)", "Shape(n, m)", RX_FALSE, "Shape(ndim=?)"},
        {"Tuple(Prim(i64, 1), Object)", "Tuple(Prim(i64), Object)", RX_TRUE, "Tuple(Prim(i64), Object)"},
        {"Tuple(Object)", "Tuple(Object, Object)", RX_FALSE, "Object"},
        {"Callable(() -> Object)", "Callable", RX_TRUE, "Callable"},
        {"Callable", "Callable(() -> Object)", RX_UNKNOWN, "Callable"},
        {"Callable((Tensor((a,), f32)) -> Tensor((a,), f32))", "Callable((Tensor((b,), f32)) -> Tensor((b,), f32))",
         RX_TRUE, "Callable((Tensor((b,), f32)) -> Tensor((b,), f32))"},
        {"Callable((Tensor(ndim=1, f32)) -> Tensor((4,), f32))", "Callable((Tensor((b,), f32)) -> Tensor(ndim=1, f32))",
         RX_TRUE, "Callable((Tensor((b,), f32)) -> Tensor(ndim=1, f32))"},
        {"Callable((Tensor((4,), f32)) -> Object)", "Callable((Tensor((5,), f32)) -> Object)", RX_FALSE, "Callable"},
        {"Callable[impure](() -> Object)", "Callable(() -> Object)", RX_FALSE, "Callable[impure](() -> Object)"},
    };
    fixture x;
    open(&x);
    TL_TRY(x.ctx) {
        for (size_t i = 0; i < RX_COUNT(rows); i++) {
            rx_ty a = ty(&x, rows[i].a), b = ty(&x, rows[i].b), l = rx_ty_lub(x.ctx, x.f->facts, a, b);
            if (rx_ty_subtype(x.ctx, x.f->facts, a, b) != rows[i].sub || strcmp(text(&x, l), rows[i].lub))
                fail_msg("row %zu: %s %s: %d, %s", i, rows[i].a, rows[i].b, rx_ty_subtype(x.ctx, x.f->facts, a, b),
                         text(&x, l));
            assert_int_not_equal(rx_ty_subtype(x.ctx, x.f->facts, a, l), RX_FALSE);
            assert_int_not_equal(rx_ty_subtype(x.ctx, x.f->facts, b, l), RX_FALSE);
        }
    } TL_END(x.ctx)
    shut(&x);
}

/* --- deduction through calls --- */

/* callee's signature and the arguments; the result and the obligations of the call, or "!error" */
static const struct { const char *params, *ret, *args, *want;
} calls[] = {
    {"x: Tensor((k,), f32)", "Tensor((k,), f32)", "Tensor((n,), f32)", "Tensor((n,), f32)"},
    {"x: Tensor((k, j), f32)", "Tensor((k*j,), f32)", "Tensor((n, 4), f32)", "Tensor((n*4,), f32)"},
    {"x: Tensor((2*k,), f32)", "Tensor((k,), f32)", "Tensor((n*2,), f32)", "Tensor((n,), f32)"},
    {"x: Tensor((2*k,), f32)", "Tensor((k,), f32)", "Tensor((6,), f32)", "Tensor((3,), f32)"},
    {"x: Tensor((2*k,), f32)", "Tensor((k,), f32)", "Tensor((7,), f32)", "!2104"},
    {"x: Tensor((2*k,), f32)", "Tensor((k,), f32)", "Tensor((n,), f32)", "Tensor((n//2,), f32) where n%2 == 0"},
    {"x: Tensor((k + 1,), f32)", "Tensor((k,), f32)", "Tensor((n + 1,), f32)", "Tensor((n,), f32)"},
    {"x: Tensor((k + 1,), f32)", "Tensor((k,), f32)", "Tensor((n,), f32)", "Tensor((n - 1,), f32) where 1 <= n"},
    {"x: Tensor((k,), f32), y: Tensor((k,), f32)", "Tensor((k,), f32)", "Tensor((n,), f32); Tensor((m,), f32)",
     "Tensor((n,), f32) where m == n"},
    {"x: Tensor((k,), f32), y: Tensor((k,), f32)", "Tensor((k,), f32)", "Tensor((3,), f32); Tensor((4,), f32)",
     "!2104"},
    {"x: Tensor((k,), f32), y: Tensor((k*2,), f32)", "Tensor((k,), f32)", "Tensor((n,), f32); Tensor((n + n,), f32)",
     "Tensor((n,), f32)"},
    {"x: Tensor((k,), f32), p: Prim(i64, j)", "Tensor((k + j,), f32)", "Tensor((n,), f32); Prim(i64, m)",
     "Tensor((m + n,), f32)"},
    {"s: Shape(k, j)", "Tensor((j, k), f32)", "Shape(n, 4)", "Tensor((4, n), f32)"},
    {"s: Shape(k, j)", "Tensor((j, k), f32)", "Shape(n)", "!2103"},
    {"t: Tuple(Tensor((k,), f32), Object)", "Tensor((k,), f32)", "Tuple(Tensor((n,), f32), Prim(i64))",
     "Tensor((n,), f32)"},
    {"x: Tensor((k,), f32)", "Tensor((k,), f32)", "Tensor((n,), f16)", "!2102"},
    {"x: Tensor((k,), f32)", "Tensor((k,), f32)", "Prim(f32)", "!2101"},
    {"x: Tensor((k,), f32)", "Tensor((k,), f32)", "Tensor((n,), f32); Tensor((n,), f32)", "!2107"},
    {"x: Tensor((k,), f32)", "Tensor((k,), f32)", "Tensor(ndim=1, f32)", "Tensor((d,), f32)"},
    {"x: Tensor(ndim=1, f32)", "Tensor(ndim=1, f32)", "Tensor((n,), f32)", "Tensor(ndim=1, f32)"},
    {"x: Tensor((k, 4), f32)", "Tensor((k,), f32)", "Tensor((n, m), f32)", "Tensor((n,), f32) where m == 4"},
};

static relax_value *call_with(fixture *x, relax_function *callee, const char *args)
{
    relax_value *v[8];
    uint32_t n = 0;
    rx_gb b = rx_gb_begin(x->f);
    while (*args) {
        size_t len = strcspn(args, ";");
        v[n] = rx_fn_param(x->f, rx_strf(x->ctx, "p%u", n), rx_fn_type(x->f, args, len));
        n++;
        args += len;
        args += strspn(args, "; ");
    }
    return rx_emit_call(&b, rx_v_func(x->m, callee), v, n, true);
}

static void call_outcome(fixture *x, size_t i, rx_buf *out)
{
    rx_frame fr;
    if (RX_ENTER(&x->ctx->heap, &fr)) {
        const char *s = rx_strf(x->ctx, "fn g(%s) -> %s { r = call_pure_packed(\"h\", %s) return r }", calls[i].params,
                                calls[i].ret, calls[i].ret);
        rx_parse_into(x->m, "t", s, strlen(s));
        relax_value *v = call_with(x, rx_module_get(x->m, "g"), calls[i].args);
        rx_print_type(out, v->type);
        for (uint32_t k = 0; k < v->nchecks; k++) {
            rx_puts(out, k ? ", " : " where ");
            rx_print_expr(out, v->checks[k]);
        }
        rx_leave(&x->ctx->heap, &fr);
    } else {
        rx_putf(out, "!%d", tl_last_error(x->ctx));
    }
}

static void deduction(void **state)
{
    (void)state;
    volatile int wrong = 0;
    for (volatile size_t i = 0; i < RX_COUNT(calls); i++) {
        fixture x;
        open(&x);
        TL_TRY(x.ctx) {
            rx_buf b;
            rx_buf_init(&b, rx_scratch(&x.ctx->heap));
            call_outcome(&x, i, &b);
            if (strcmp(b.at, calls[i].want)) {
                print_error("(%s) called with %s: %s, want %s\n", calls[i].params, calls[i].args, b.at, calls[i].want);
                tl_print_diags(x.ctx);
                wrong++;
            }
        } TL_END(x.ctx)
        rx_diag_clear(x.ctx);
        shut(&x);
    }
    assert_int_equal(wrong, 0);
}

/* a recursive call: the callee's symbols are the caller's */
static void recursion(void **state)
{
    (void)state;
    static const char s[] = "fn f(x: Tensor((n, m), f32)) -> Tensor((n, m), f32) { y = permute_dims(x) z = @f(y) w = "
                            "permute_dims(z) return w }";
    fixture x;
    open(&x);
    TL_TRY(x.ctx) {
        relax_module *m = rx_parse_module(x.ctx, "t", s, strlen(s));
        relax_value *v = rx_module_get(m, "f")->body.first->first->next;
        assert_int_equal(v->kind, RX_V_CALL);
        assert_string_equal(text(&x, v->type), "Tensor((m, n), f32)");
        assert_int_equal(v->nchecks, 0);
        rx_module_free(m);
    } TL_END(x.ctx)
    shut(&x);
}

/* --- the verifier: break one thing at a time; the rule must be named --- */

static const char victim[] =
    "prim bump(A: Buffer((n,), f32)) { for i in n { A[i] += 1.0 } }\n"
    "fn f(x: Tensor((n, 4), f32), y: Tensor((m, 4), f32), c: Tensor((), bool), k: Tensor((n,), f32)) where n <= 8 {\n"
    "  dataflow {\n    a = add(x, y)\n    b = softmax(a, axis=0)\n    output b\n  }\n"
    "  u = unique(x)\n  v = match_cast(u, Tensor((j,), f32))\n  z = zeros(shape(j))\n"
    "  r = if c {\n    p = exp(b)\n    yield p\n  } else {\n    yield b\n  }\n"
    "  w = call_tir_inplace(@bump, (k,), Tensor((n,), f32), inplace=(0,))\n"
    "  q = (const(f32, (2,), [1.0, 2.0]), r, w, z, v)\n  return q\n}\n"
    "fn g(x: Tensor((n,), f32)) { return x }\n";

typedef struct broken { const char *rule; void (*damage)(relax_module *m, relax_function *f); } broken;

static relax_value *nth(relax_function *f, uint32_t n)
{
    for (rx_iblock *b = f->body.first; b; b = b->next)
        for (relax_value *v = b->first; v; v = v->next)
            if (n-- == 0)
                return v;
    return NULL;
}
enum { A, B, U, V, Z, R, W, Q };

static void d1(relax_module *m, relax_function *f) { (void)m; nth(f, A)->fn = NULL; }
static void d2(relax_module *m, relax_function *f) { (void)m; nth(f, Z)->type = NULL; }
static void d3a(relax_module *m, relax_function *f) { (void)m; nth(f, B)->args[0] = nth(f, U); }
static void d3b(relax_module *m, relax_function *f) { nth(f, B)->args[0] = rx_module_get(m, "g")->params[0]; }
static void d3c(relax_module *m, relax_function *f)
{
    (void)m;
    nth(f, Q)->args[1] = nth(f, R)->u.branch.then->first->first;
}
static void d4(relax_module *m, relax_function *f) { (void)m; nth(f, B)->output = false; }
static void d5(relax_module *m, relax_function *f) { (void)m; nth(f, R)->block->dataflow = true; }
static void d6(relax_module *m, relax_function *f) { (void)m; nth(f, Z)->pure = false; }
static void d7(relax_module *m, relax_function *f) { (void)m; nth(f, R)->u.branch.other->result = NULL; }
static void d8a(relax_module *m, relax_function *f)
{
    relax_value *z = nth(f, Z);
    (void)m;
    rx_v_remove(z);
    rx_v_insert_before(nth(f, U), z);
}
static void d8b(relax_module *m, relax_function *f)
{
    (void)m;
    f->params[0]->type = rx_fn_type(f, "Tensor((o//2, 4), f32)", 22);
}
static void d9(relax_module *m, relax_function *f)
{
    (void)m;
    nth(f, Z)->type = rx_fn_type(f, "Tensor((n,), f32)", 17);
}
static void d10(relax_module *m, relax_function *f) { (void)m; nth(f, B)->args[0] = f->params[2]; }
static void d11a(relax_module *m, relax_function *f) { (void)m; nth(f, A)->nchecks = 0; }
static void d11b(relax_module *m, relax_function *f)
{
    nth(f, B)->checks = RX_NEW(&m->arena, rx_ex);
    nth(f, B)->checks[0] = rx_fn_sym(f, "n");
    nth(f, B)->nchecks = 1;
}
static void d12(relax_module *m, relax_function *f) { (void)f; rx_module_remove(m, rx_module_get(m, "bump")); }
static void d13a(relax_module *m, relax_function *f) { (void)m; nth(f, Q)->args[2] = f->params[3]; }
static void d13b(relax_module *m, relax_function *f)
{
    float one[1] = {1};
    int64_t d[1] = {1};
    rx_ty t = rx_fn_type(f, "Tensor((1,), f32)", 17);
    nth(f, W)->args[0] = rx_v_const(m, RELAX_F32, d, 1, one);
    nth(f, W)->type = t;
    rx_v_rededuce(f, nth(f, Q));
    f->ret = rx_ty_object(m->ctx);
}
static void d14(relax_module *m, relax_function *f) { (void)m; nth(f, B)->attrs.n = 0; }
static void d15(relax_module *m, relax_function *f) { (void)m; nth(f, Q)->args[0]->u.data->dims[0] = 3; }
static void d16a(relax_module *m, relax_function *f)
{
    (void)m;
    f->ret = rx_ty_object(m->ctx);
    f->ret = rx_ty_tuple(m->ctx, NULL, 0);
}
static void d16b(relax_module *m, relax_function *f) { (void)m; f->body.result = NULL; }
static void d17(relax_module *m, relax_function *f) { f->name = rx_str(m->ctx, "other"); }
static void d18(relax_module *m, relax_function *f)
{
    rx_gb b = rx_gb_before(nth(f, Q));
    relax_value *x = rx_emit_call_dps(&b, rx_module_get(m, "bump"), NULL, &f->params[3], 1, NULL, 0);
    nth(f, Q + 1)->args[2] = x;
}
static void d19(relax_module *m, relax_function *f) { nth(f, Z)->scratch = m; }

static const broken breaks[] = {
    {"G1:", d1},    {"G2:", d2},   {"G3:", d3a},   {"G3:", d3b},   {"G3:", d3c},  {"G4:", d4},   {"G5:", d5},
    {"G6:", d6},    {"G7:", d7},   {"G8:", d8a},   {"G8:", d8b},   {"G9:", d9},   {"G10:", d10}, {"G11:", d11a},
    {"G11:", d11b}, {"G12:", d12}, {"G13:", d13a}, {"G13:", d13b}, {"G14:", d14}, {"G15:", d15}, {"G16:", d16a},
    {"G16:", d16b}, {"G17:", d17}, {"G18:", d18},  {"G19:", d19},
};

static bool reported(relax_context *ctx, const char *rule)
{
    for (uint32_t i = 0; i < rx_diag_count(ctx); i++)
        if (!strncmp(rx_diag_at(ctx, i)->message, rule, strlen(rule)))
            return true;
    return false;
}

static void rules(void **state)
{
    (void)state;
    volatile int wrong = 0;
    for (volatile size_t i = 0; i < RX_COUNT(breaks); i++) {
        fixture x;
        open(&x);
        TL_TRY(x.ctx) {
            relax_module *m = rx_parse_module(x.ctx, "t", victim, strlen(victim));
            assert_int_equal(rx_module_verify(m), 0);
            breaks[i].damage(m, rx_module_get(m, "f"));
            bool found = rx_module_verify(m) > 0;
            if (!found || !reported(x.ctx, breaks[i].rule)) {
                print_error("break %zu: %s was not reported\n", i, breaks[i].rule);
                tl_print_diags(x.ctx);
                wrong++;
            }
            rx_module_free(m);
        } TL_END(x.ctx)
        rx_diag_clear(x.ctx);
        shut(&x);
    }
    assert_int_equal(wrong, 0);
}

/* --- builder and rewriting --- */

static void builder(void **state)
{
    (void)state;
    fixture x;
    open(&x);
    TL_TRY(x.ctx) {
        relax_value *p = rx_fn_param(x.f, "x", ty(&x, "Tensor((n, 4), f32)"));
        rx_fn_bound(x.f, rx_fn_sym(x.f, "n"), 1, 64);
        rx_gb b = rx_gb_begin(x.f);
        rx_gb_dataflow(&b, true);
        relax_value *one[] = {p}, *y = rx_emit_op(&b, rx_op_get(x.ctx, RX_OP_EXP), one, 1, NULL, 0);
        relax_value *two[] = {y, p}, *z = rx_emit_op(&b, rx_op_get(x.ctx, RX_OP_ADD), two, 2, NULL, 0);
        rx_fn_finish(x.f, &b, z);
        assert_true(z->output);
        assert_false(y->output);
        assert_int_equal(rx_v_uses(x.f, p), 2);
        rx_gb at = rx_gb_before(z);
        relax_value *w = rx_emit_op(&at, rx_op_get(x.ctx, RX_OP_TANH), one, 1, NULL, 0);
        assert_ptr_equal(z->prev, w);
        rx_v_replace(x.f, y, w);
        assert_int_equal(rx_v_uses(x.f, y), 0);
        rx_v_remove(y);
        assert_int_equal(rx_module_verify(x.m), 0);
        rx_buf out;
        rx_buf_init(&out, rx_scratch(&x.ctx->heap));
        rx_print_function(&out, x.f);
        assert_string_equal(
            out.at,
            "fn f(x: Tensor((n, 4), f32)) -> Tensor((n, 4), f32) where 1 <= n <= 64 {\n  dataflow {\n    v = tanh(x)\n"
            "    v_1 = add(v, x)\n    output v_1\n  }\n  return v_1\n}\n");
    } TL_END(x.ctx)
    shut(&x);
}

static void names(void **state)
{
    (void)state;
    fixture x;
    open(&x);
    TL_TRY(x.ctx) {
        assert_string_equal(rx_function_new(x.m, "g*")->name, "g");
        assert_string_equal(rx_function_new(x.m, "g*")->name, "g_1");
        assert_ptr_equal(rx_fn_sym(x.f, "n"), rx_fn_sym(x.f, "n"));
        assert_string_equal(rx_sym_of(rx_fn_sym_fresh(x.f, "n"))->name, "n_1");
        rx_module_remove(x.m, rx_module_get(x.m, "g"));
        assert_null(rx_module_get(x.m, "g"));
        assert_string_equal(rx_function_new(x.m, "g")->name, "g");
        assert_int_equal(x.m->last->next == NULL, 1);
    } TL_END(x.ctx)
    TL_TRY(x.ctx) {
        rx_function_new(x.m, "g");
    } TL_END_FAILS(x.ctx, RXE_DUPLICATE)
    shut(&x);
}

static void attributes(void **state)
{
    (void)state;
    static const struct { rx_attr a; int err; } rows[] = {
        {{.key = "axis", .kind = RX_A_INT, .u.i = 1}, 0},
        {{.key = "axis", .kind = RX_A_FLOAT, .u.f = 1}, RXE_ATTR},
        {{.key = "axle", .kind = RX_A_INT, .u.i = 1}, RXE_ATTR},
    };
    fixture x;
    open(&x);
    for (size_t i = 0; i < RX_COUNT(rows); i++) {
        volatile int err = 0;
        rx_frame fr;
        if (RX_ENTER(&x.ctx->heap, &fr)) {
            rx_attrs a = rx_op_attrs(x.ctx, rx_scratch(&x.ctx->heap), rx_op_get(x.ctx, RX_OP_SOFTMAX), &rows[i].a, 1);
            assert_int_equal(rx_attr_int(&a, "axis", 9), 1);
            rx_leave(&x.ctx->heap, &fr);
        } else {
            err = tl_last_error(x.ctx);
            rx_diag_clear(x.ctx);
        }
        assert_int_equal(err, rows[i].err);
    }
    TL_TRY(x.ctx) {
        rx_attr_decl *d;
        uint32_t n;
        rx_op_parse_attrs(
            x.ctx, "a:int?, b:bool=true, c:dtype=f16, d:ints=(1, -2), e:float=-inf, f:expr=3, g:exprs?, h:str=ab", &d,
            &n);
        assert_int_equal(n, 8);
        assert_true(d[0].optional && !d[0].has_def && d[1].has_def && d[1].def.u.i == 1 &&
                    d[2].def.u.dtype == RELAX_F16);
        assert_true(d[3].def.u.ints.n == 2 && d[3].def.u.ints.at[1] == -2 && d[4].def.u.f < -1e300);
        assert_true(rx_is_value(d[5].def.u.e, 3) && d[6].optional && !strcmp(d[7].def.u.s, "ab"));
    } TL_END(x.ctx)
    TL_TRY(x.ctx) {
        rx_attr_decl *d;
        uint32_t n;
        rx_op_parse_attrs(x.ctx, "a:integer", &d, &n);
    } TL_END_FAILS(x.ctx, RXE_ATTR)
    shut(&x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(print_parse), cmocka_unit_test(lattice),    cmocka_unit_test(deduction),
        cmocka_unit_test(recursion),   cmocka_unit_test(rules),      cmocka_unit_test(builder),
        cmocka_unit_test(names),       cmocka_unit_test(attributes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
