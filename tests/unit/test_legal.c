/* test_legal.c: tensor programs of operators: verified, in bounds by proof, and right on concrete values.
 *
 * Each row of legal_rows.def is one call with symbolic shapes. Its program must break no rule, every access of it must
 * be proved in bounds, and the interpreter of programs must give the stated results for the stated extents. */
#include "testlib.h"

#include <math.h>

#include "interp/interp.h"
#include "op/op.h"

typedef struct row { const char *params, *call, *syms, *inputs, *results; } row;
static const row rows[] = {
#define R(params, call, syms, inputs, results) { params, call, syms, inputs, results },
#include "legal_rows.def"
#undef R
};

/* one legalised call */
typedef struct made {
    relax_context *ctx;
    relax_module *m;
    relax_value *v;
    const rx_prim *prim;
    rx_exvec order;                    /* symbols as the program takes them */
    int64_t *sym; rx_map env;          /* their values */
} made;

static relax_value *op_of(relax_function *f)
{
    for (rx_iblock *b = f->body.first; b; b = b->next)
        for (relax_value *v = b->first; v; v = v->next)
            if (v->kind == RX_V_OP)
                return v;
    return NULL;
}

/* the value of a symbol in "n=3 m=4" */
static int64_t value_of(const char *syms, const char *name)
{
    size_t n = strlen(name);
    for (const char *p = syms; *p; p += strcspn(p, " "), p += strspn(p, " "))
        if (!strncmp(p, name, n) && p[n] == '=')
            return strtoll(p + n + 1, NULL, 10);
    fail_msg("no value of %s in '%s'", name, syms);
    return 0;
}

static void bind(made *k, rx_ty *in, const char *syms)
{
    rx_arena *a = &k->m->arena;
    rx_exvec own = { 0 };
    for (uint32_t i = 0; i < k->v->nargs; i++)
        if (in[i])
            rx_ty_free_syms(k->ctx, a, in[i], &own);
    rx_ty_free_syms(k->ctx, a, k->v->type, &own);
    rx_prim_symbols(k->ctx, a, k->prim, &k->order);
    k->sym = RX_NEWN(a, int64_t, k->order.n);
    rx_map_init(&k->env, a);
    for (uint32_t i = 0; i < k->order.n; i++) {          /* the program's symbol d<j> is the caller's j-th */
        int64_t j = strtoll(rx_sym_of(k->order.at[i])->name + 1, NULL, 10);
        assert_true(j < own.n);
        k->sym[i] = value_of(syms, rx_sym_of(own.at[j])->name);
        rx_map_put(&k->env, RX_KEY(k->order.at[i]), &k->sym[i]);
    }
}

static made make(relax_context *ctx, const row *r)
{
    char text[1024];
    snprintf(text, sizeof text, "fn f(%s) {\n  result = %s\n  return result\n}\n", r->params, r->call);
    made k = { .ctx = ctx, .m = rx_parse_module(ctx, "row", text, strlen(text)) };
    relax_function *f = rx_module_get(k.m, "f");
    k.v = op_of(f);
    assert_non_null(k.v);
    rx_ty in[8];
    for (uint32_t i = 0; i < k.v->nargs; i++)
        in[i] = k.v->args[i] ? k.v->args[i]->type : NULL;
    rx_exvec syms = { 0 };
    k.prim = rx_op_legalize(k.m, f, k.v->u.op, in, k.v->nargs, k.v->type, &k.v->attrs, &syms)->prim;
    bind(&k, in, r->syms);
    return k;
}

static void check_program(const made *k, const row *r)
{
    rx_unproved_vec open = { 0 };
    assert_false(k->prim->facts && rx_facts_contradict(k->prim->facts));
    assert_int_equal(rx_prim_verify(k->ctx, k->prim, &k->m->arena, &open), 0);
    if (open.n)
        print_error("%s: %u accesses are not proved in bounds\n", r->call, open.n);
    assert_int_equal(open.n, 0);
}

static size_t elements(made *k, const relax_buffer *b)
{
    int64_t n = 1, d;
    for (uint32_t i = 0; i < b->ndim; i++) {
        assert_int_equal(rx_eval(k->ctx, b->shape[i], &k->env, &d), RX_EVAL_OK);
        assert_true(d >= 0);
        n *= d;
    }
    return (size_t)n;
}

static const char *next_number(const char *p, double *v)
{
    char *end;
    *v = strtod(p, &end);
    return end == p ? NULL : end;
}

/* the place after a list's semicolon */
static const char *end_of_list(const char *p)
{
    p += strspn(p, " ");
    if (*p && *p != ';')
        fail_msg("too many numbers: %s", p);
    return *p ? p + 1 : p;
}

/* Reads one list; p at its first character. Gives the place after its semicolon. */
static const char *fill(const relax_buffer *b, void *mem, size_t n, const char *p)
{
    for (size_t i = 0; i < n; i++) {
        double v;
        p = next_number(p, &v);
        assert_non_null(p);
        rx_store_f64(b->dtype, (char *)mem + i * rx_dtype_bytes(b->dtype), v);
    }
    return end_of_list(p);
}

static double tolerance(relax_dtype t, double want)
{
    if (!rx_dtype_is_float(t))
        return 0;
    return (t == RELAX_F16 || t == RELAX_BF16 ? 1e-3 : 2e-5) * (1 + fabs(want));
}

static const char *compare(const row *r, const relax_buffer *b, const void *mem, size_t n, const char *p)
{
    for (size_t i = 0; i < n; i++) {
        double want, got = rx_load_f64(b->dtype, (const char *)mem + i * rx_dtype_bytes(b->dtype));
        p = next_number(p, &want);
        assert_non_null(p);
        bool same = isnan(want) ? isnan(got) : want == got || fabs(want - got) <= tolerance(b->dtype, want);
        if (!same)
            print_error("%s: element %zu is %.9g, wanted %.9g\n", r->call, i, got, want);
        assert_true(same);
    }
    return end_of_list(p);
}

static void run_row(relax_context *ctx, const row *r)
{
    made k = make(ctx, r);
    check_program(&k, r);
    const rx_prim *p = k.prim;
    uint32_t nout = k.v->type->kind == RX_TY_TUPLE ? k.v->type->nelems : 1;
    void *mem[16];
    const char *in = r->inputs, *out = r->results;
    for (uint32_t i = 0; i < p->nparams; i++) {
        size_t n = elements(&k, p->params[i]);
        mem[i] = rx_arena_alloc(&k.m->arena, n * rx_dtype_bytes(p->params[i]->dtype) + 1, 16);
        if (i + nout < p->nparams)
            in = fill(p->params[i], mem[i], n, in);
    }
    rx_interp_prim(ctx, p, mem, k.sym);
    for (uint32_t i = p->nparams - nout; i < p->nparams; i++)
        out = compare(r, p->params[i], mem[i], elements(&k, p->params[i]), out);
    assert_int_equal(*out, 0);
    rx_module_free(k.m);
}

static void try_row(relax_context *ctx, const row *r)
{
    rx_diag_clear(ctx);
    volatile bool ok = false;
    rx_frame f;
    if (RX_ENTER(&ctx->heap, &f)) {
        run_row(ctx, r);
        ok = true;
        rx_leave(&ctx->heap, &f);
    }
    if (!ok) {
        print_error("%s\n", r->call);
        tl_print_diags(ctx);
    }
    assert_true(ok);
}

static void test_rows(void **state)
{
    (void)state;
    tl_heap th;
    relax_context *ctx = tl_context(&th);
    TL_TRY(ctx) { rx_ops_init(ctx); }
    TL_END(ctx);
    for (size_t i = 0; i < RX_COUNT(rows); i++)
        try_row(ctx, &rows[i]);
    tl_done(&th, ctx);
}

/* calls that must stop with an error: bad index values, division by zero */
static const struct { row r; int err;
} failing[] = {
    {{"x: Tensor((n,), f32), i: Tensor((k,), i64)", "take(x, i)", "n=3 k=1", "1 2 3; 3", ""}, RXE_INDEX},
    {{"x: Tensor((n,), f32), i: Tensor((k,), i64)", "take(x, i)", "n=3 k=1", "1 2 3; -4", ""}, RXE_INDEX},
    {{"x: Tensor((n,), f32), i: Tensor((k,), u8)", "take(x, i)", "n=3 k=1", "1 2 3; 255", ""}, RXE_INDEX},
    {{"x: Tensor((n,), f32), i: Tensor((k,), i64)", "take(x, i)", "n=0 k=1", "; 0", ""}, RXE_INDEX},
    {{"x: Tensor((n,), f32), i: Tensor((k,), i64)", "gather_elements(x, i)", "n=3 k=1", "1 2 3; 7", ""}, RXE_INDEX},
    {{"x: Tensor((n,), f32), i: Tensor((k,), i64), u: Tensor((k,), f32)", "scatter_elements(x, i, u)", "n=3 k=1",
      "1 2 3; 3; 9", ""},
     RXE_INDEX},
    {{"x: Tensor((n,), i32), y: Tensor((n,), i32)", "divide(x, y)", "n=2", "1 2; 1 0", ""}, RXE_DIV_ZERO},
    {{"x: Tensor((n,), i32), y: Tensor((n,), i32)", "floor_mod(x, y)", "n=2", "1 2; 0 1", ""}, RXE_DIV_ZERO},
    {{"w: Tensor((n, 34), u8), i: Tensor((k,), i32)", "take_gguf(w, i, type=\"q8_0\")", "n=0 k=1", "; 0", ""},
     RXE_INDEX},
};

static void try_failing(const row *r, int err)
{
    tl_heap th;
    relax_context *ctx = tl_context(&th);
    relax_module *volatile m = NULL;
    TL_TRY(ctx) {
        rx_ops_init(ctx);
        made k = make(ctx, r);
        m = k.m;
        void *mem[8];
        const char *in = r->inputs;
        for (uint32_t p = 0; p < k.prim->nparams; p++) {
            size_t n = elements(&k, k.prim->params[p]);
            mem[p] = rx_arena_alloc(&k.m->arena, n * 8 + 1, 16);
            in = p + 1 < k.prim->nparams ? fill(k.prim->params[p], mem[p], n, in) : in;
        }
        rx_interp_prim(ctx, k.prim, mem, k.sym);
    }
    TL_END_FAILS(ctx, err);
    rx_module_free(m);
    tl_done(&th, ctx);
}

static void test_failing(void **state)
{
    (void)state;
    for (size_t i = 0; i < RX_COUNT(failing); i++)
        try_failing(&failing[i].r, failing[i].err);
}

/* Equal calls share one program, also under other names of symbols; unlike ones do not. */
static void test_sharing(void **state)
{
    (void)state;
    static const char text[] =
        "fn f(x: Tensor((n, m), f32), y: Tensor((m, n), f32), z: Tensor((n, n), f32), w: Tensor((n, m), f16)) {\n"
        "  a = softmax(x)\n  b = softmax(y)\n  c = softmax(z)\n  d = softmax(w)\n  e = softmax(x, axis=0)\n  g = "
        "softmax(x, axis=-1)\n"
        "  return g\n}\n";
    tl_heap th;
    relax_context *ctx = tl_context(&th);
    TL_TRY(ctx) {
        rx_ops_init(ctx);
        relax_module *m = rx_parse_module(ctx, "t", text, strlen(text));
        relax_function *f = rx_module_get(m, "f"), *p[6];
        uint32_t n = 0;
        for (relax_value *v = f->body.first->first; v; v = v->next) {
            rx_exvec syms = { 0 };
            p[n++] = rx_op_legalize(m, f, v->u.op, &v->args[0]->type, 1, v->type, &v->attrs, &syms);
            assert_int_equal(syms.n, 0);
        }
        assert_ptr_equal(p[0], p[1]);
        assert_ptr_equal(p[0], p[5]);
        for (uint32_t i = 2; i < 5; i++)
            for (uint32_t j = 0; j < i; j++)
                assert_ptr_not_equal(p[i], p[j]);
        rx_module_free(m);
    }
    TL_END(ctx);
    tl_done(&th, ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_failing),
        cmocka_unit_test(test_sharing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
