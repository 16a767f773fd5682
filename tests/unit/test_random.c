/* test_random.c: random modules (randmod.h) through every pass of the default pipeline, and through the executable.
 *
 * Each module is verified, printed and parsed; run by the interpreter as operators, and again after each pass: what ran
 * before must run and give the same: bit for bit, but for the passes that choose another order of computation
 * (legalize, schedule), where rounding may differ. Some are built for the CPU and run by the VM with one and two
 * threads. Shapes: 0, 1, 2, primes, tile sizes and their neighbours, the bound, and one more, which must be refused.
 *
 * RELAX_RANDOM=N: N modules (default 300), RELAX_RANDOM_SEED=S: from seed S on; S alone: only this one, with its text.
 */
#include "randmod.h"

#include "interp/interp.h"
#include "pass/pass.h"

#include <math.h>

static const int64_t sizes[][2] = {{5, 7},  {0, 3},  {1, 1},   {2, 5},  {3, 0}, {8, 16},
                                   {17, 3}, {16, 8}, {20, 20}, {1, 17}, {7, 2}};

/* ---- values ---- */
static uint32_t noise(uint32_t *s)
{
    *s = *s * 1664525u + 1013904223u;
    return *s >> 8;
}

static rx_ival *argument(relax_context *ctx, rx_arena *a, rx_ty t, const rx_map *env, int64_t m, uint32_t *seed)
{
    int64_t d[RX_MAX_RANK];
    if (t->kind == RX_TY_PRIM)
        return rx_ival_int(a, m);
    for (int32_t i = 0; i < t->ndim; i++)
        assert_int_equal(rx_eval(ctx, t->dims[i], env, &d[i]), RX_EVAL_OK);
    rx_ival *v = rx_ival_tensor(ctx, a, t->dtype, d, t->ndim, NULL);
    size_t w = rx_dtype_bytes(t->dtype);
    for (int64_t i = 0; i < rx_ival_count(v); i++) {
        char *p = (char *)v->data + (size_t)i * w;
        if (rx_dtype_is_float(t->dtype))
            rx_store_f64(t->dtype, p, (double)(noise(seed) % 65) / 16 - 2);
        else
            rx_store_i64(t->dtype, p, t->dtype == RELAX_BOOL ? noise(seed) % 2 : (int64_t)(noise(seed) % 9) - 3);
    }
    return v;
}

typedef struct arguments { rx_ival *at[16]; uint32_t n; } arguments;

static arguments make_arguments(relax_context *ctx, rx_arena *a, relax_module *mod, int64_t n, int64_t m)
{
    arguments out = {.n = 0};
    relax_function *f = rx_module_get(mod, "main");
    rx_map env;
    uint32_t seed = (uint32_t)(n * 31 + m + 5);
    rx_map_init(&env, a);
    for (uint32_t i = 0; i < f->syms.n; i++)
        rx_map_put(&env, RX_KEY(f->syms.at[i]), rx_sym_of(f->syms.at[i])->name[0] == 'm' ? &m : &n);
    for (uint32_t i = 0; i < f->nparams; i++)
        out.at[out.n++] = argument(ctx, a, f->params[i]->type, &env, m, &seed);
    return out;
}

/* NULL: the error is in *err */
static rx_ival *interpret(relax_context *ctx, rx_arena *a, relax_module *m, int64_t n, int64_t mm, int *err)
{
    rx_frame fr;
    rx_ival *volatile r = NULL;
    *err = 0;
    if (RX_ENTER(&ctx->heap, &fr)) {
        arguments args = make_arguments(ctx, a, m, n, mm);
        rx_interp in = {.ctx = ctx, .a = a};
        r = rx_interp_run(&in, rx_module_get(m, "main"), args.at, args.n);
        rx_leave(&ctx->heap, &fr);
    } else {
        *err = tl_last_error(ctx);
        rx_diag_clear(ctx);
    }
    return r;
}

static bool near(relax_dtype t, const void *a, const void *b, bool exact)
{
    if (exact || !rx_dtype_is_float(t))
        return !memcmp(a, b, rx_dtype_bytes(t)) ||
               (rx_dtype_is_float(t) && isnan(rx_load_f64(t, a)) && isnan(rx_load_f64(t, b)));
    double x = rx_load_f64(t, a), y = rx_load_f64(t, b);
    double e = t == RELAX_F64 || t == RELAX_F32 ? 1e-2 : t == RELAX_F16 ? 8e-2 : 4e-1;
    return (isnan(x) && isnan(y)) || x == y || fabs(x - y) <= e * fmax(1, fmax(fabs(x), fabs(y)));
}

static bool same(const rx_ival *a, const rx_ival *b, bool exact)
{
    if (a->kind != b->kind || a->dtype != b->dtype || a->ndim != b->ndim || a->n != b->n)
        return false;
    for (uint32_t i = 0; i < a->n; i++)
        if (!same(a->at[i], b->at[i], exact))
            return false;
    for (int32_t i = 0; i < a->ndim && a->dims; i++)
        if (a->dims[i] != b->dims[i])
            return false;
    if (a->kind != RX_I_TENSOR)
        return a->bits == b->bits;
    size_t w = rx_dtype_bytes(a->dtype);
    for (size_t i = 0; i < a->bytes; i += w)
        if (!near(a->dtype, (const char *)a->data + i, (const char *)b->data + i, exact))
            return false;
    return true;
}

/* ---- one module ---- */
typedef struct results { rx_ival *at[RX_COUNT(sizes)]; int err[RX_COUNT(sizes)]; } results;

static void run_all(relax_context *ctx, rx_arena *a, relax_module *m, results *r, size_t from, size_t step)
{
    for (size_t i = from; i < RX_COUNT(sizes); i += step)
        r->at[i] = interpret(ctx, a, m, sizes[i][0], sizes[i][1], &r->err[i]);
}

static const char *print(relax_context *ctx, relax_module *m)
{
    rx_buf b;
    rx_buf_init(&b, rx_scratch(&ctx->heap));
    rx_print_module(&b, m);
    return b.at;
}

static void show(const char *what, rx_ival *x, rx_ival *y, int e1, int e2)
{
    tl_heap th;
    relax_context *ctx = tl_context(&th);
    rx_buf b;
    rx_buf_init(&b, &ctx->arena);
    if (x)
        rx_ival_print(&b, x);
    rx_puts(&b, "\n  ");
    if (y)
        rx_ival_print(&b, y);
    fprintf(stderr, "%s: errors %d %d\n  %s\n", what, e1, e2, b.at);
    tl_done(&th, ctx);
}

/* a failing index or division may vanish with dead code; conditions of shapes may not */
static bool agree(const results *x, const results *y, size_t i, bool exact)
{
    if (x->err[i])
        return y->err[i] || x->err[i] == RXE_INDEX || x->err[i] == RXE_DIV_ZERO;
    return !y->err[i] && same(x->at[i], y->at[i], exact);
}

static int compare(const results *x, const results *y, size_t from, size_t step, bool exact, const char *what)
{
    int wrong = 0;
    for (size_t i = from; i < RX_COUNT(sizes); i += step)
        if (!agree(x, y, i, exact)) {
            fprintf(stderr, "n=%d m=%d ", (int)sizes[i][0], (int)sizes[i][1]);
            show(what, x->at[i], y->at[i], x->err[i], y->err[i]);
            wrong++;
        }
    return wrong;
}

static int round_trip(relax_context *ctx, relax_module *m)
{
    const char *text = print(ctx, m);
    relax_module *again = rx_parse_module(ctx, "again", text, strlen(text));
    const char *second = print(ctx, again);
    rx_module_free(again);
    if (!strcmp(text, second))
        return 0;
    size_t i = 0, line = 0;
    for (; text[i] == second[i]; i++)
        line = text[i] == '\n' ? i + 1 : line;
    fprintf(stderr, "printed, parsed and printed:\n%.*s\n%.*s\n", (int)strcspn(text + line, "\n"), text + line,
            (int)strcspn(second + line, "\n"), second + line);
    return 1;
}

static bool exact_pass(const char *name) { return strcmp(name, "legalize") && strcmp(name, "schedule"); }

/* every pass; each stage against the one before */
static int all_passes(relax_context *ctx, relax_module *m, uint32_t seed, rx_arena *a)
{
    relax_pipeline *p = rx_pipeline_parse(ctx, "default"), one;
    results last = {{NULL}, {0}};
    int wrong = 0, err;
    relax_module *work = rx_module_clone(m);
    run_all(ctx, a, m, &last, 0, 1);
    assert_null(interpret(ctx, a, m, RM_BOUND + 1, 2, &err));
    assert_int_equal(err, RXE_BOUND_EXCEEDED);
    assert_null(interpret(ctx, a, m, 2, RM_BOUND + 1, &err));
    assert_int_equal(err, RXE_BOUND_EXCEEDED);
    p->verify_each = seed % 5 == 0;    /* proving tensor programs takes most of the time */
    one = *p;
    for (uint32_t i = 0; i < p->steps.n && !wrong; i++) {
        results now = last;
        one.steps.at = &p->steps.at[i];
        one.steps.n = 1;
        rx_pipeline_run(&one, work, rx_target_parse(ctx, "cpu:x86-64-v3", 13));
        bool all = i + 1 == p->steps.n;
        size_t from = all ? 0 : (seed + i) % 3, step = all ? 1 : 3;
        run_all(ctx, a, work, &now, from, step);
        const char *name = p->steps.at[i].pass->name;
        wrong += compare(&last, &now, from, step, exact_pass(name), name);
        if (wrong)
            fprintf(stderr, "after %s:\n%s\n", name, print(ctx, work));
        if (!exact_pass(name))
            run_all(ctx, a, work, &now, 0, 1);
        last = now;
    }
    for (relax_function *f = work->first; f; f = f->next)
        wrong += f->is_prim ? 0 : (int)(rx_function_verify(f) + rx_plan_check(f));
    wrong += round_trip(ctx, work);
    rx_module_free(work);
    rx_pipeline_free(p);
    return wrong;
}

/* ---- the executable ---- */
static relax_any to_any(relax_context *ctx, const rx_ival *v)
{
    relax_any x = {.kind = RELAX_ANY_INT, .u.i = (int64_t)v->bits};
    DLTensor t;
    if (v->kind != RX_I_TENSOR)
        return x;
    assert_int_equal(relax_tensor_create(ctx, v->dtype, v->dims, v->ndim, &x), RELAX_OK);
    assert_int_equal(relax_any_dltensor(&x, &t), RELAX_OK);
    if (v->bytes)
        memcpy(t.data, v->data, v->bytes);
    return x;
}

static rx_ival *from_any(relax_context *ctx, rx_arena *a, const relax_any *x, const rx_ival *like)
{
    DLTensor t;
    if (x->kind == RELAX_ANY_TUPLE) {
        uint32_t n = relax_any_count(x);
        assert_int_equal(n, like->n);
        rx_ival **at = RX_NEWN(a, rx_ival *, n + 1);
        for (uint32_t i = 0; i < n; i++) {
            relax_any f = relax_any_field(x, i);
            at[i] = from_any(ctx, a, &f, like->at[i]);
        }
        return rx_ival_tuple(a, at, n);
    }
    assert_int_equal(x->kind, RELAX_ANY_TENSOR);
    assert_int_equal(relax_any_dltensor(x, &t), RELAX_OK);
    return rx_ival_tensor(ctx, a, like->dtype, t.shape, t.ndim, (char *)t.data + t.byte_offset);
}

static rx_ival *invoke(relax_context *ctx, rx_arena *a, relax_vm *vm, relax_module *m, size_t i, const rx_ival *like,
                       int *err)
{
    arguments args = make_arguments(ctx, a, m, sizes[i][0], sizes[i][1]);
    relax_any in[16], out = {0};
    for (uint32_t k = 0; k < args.n; k++)
        in[k] = to_any(ctx, args.at[k]);
    relax_status st = relax_vm_invoke(vm, "main", in, args.n, &out);
    *err = st ? tl_last_error(ctx) : 0;
    rx_ival *r = !st && like ? from_any(ctx, a, &out, like) : NULL;
    relax_any_release(&out);
    for (uint32_t k = 0; k < args.n; k++)
        relax_any_release(&in[k]);
    rx_diag_clear(ctx);
    return r;
}

static bool no_backend;

static int executable(relax_context *ctx, relax_module *m, rx_arena *a)
{
    relax_build_options o = RELAX_BUILD_OPTIONS_INIT;
    relax_executable *e = NULL;
    results want = {{NULL}, {0}}, got = {{NULL}, {0}};
    int wrong = 0;
    o.opt_level = 1;
    if (relax_build(m, relax_target_parse(ctx, "cpu"), &o, &e) != RELAX_OK) {
        no_backend = tl_last_error(ctx) == RXE_NO_BACKEND;
        if (!no_backend)
            tl_print_diags(ctx);
        return !no_backend;
    }
    run_all(ctx, a, m, &want, 0, 1);
    for (int32_t threads = 1; threads <= 2; threads++) {
        relax_vm_options vo = RELAX_VM_OPTIONS_INIT;
        relax_vm *vm = NULL;
        vo.threads = threads;
        assert_int_equal(relax_vm_create(e, &vo, &vm), RELAX_OK);
        for (size_t i = 0; i < RX_COUNT(sizes); i++)
            got.at[i] = invoke(ctx, a, vm, m, i, want.at[i], &got.err[i]);
        wrong += compare(&want, &got, 0, 1, false, threads == 1 ? "executable" : "executable, 2 threads");
        relax_vm_destroy(vm);
    }
    relax_executable_destroy(e);
    return wrong;
}

static int number(const char *name, int absent)
{
    const char *s = getenv(name);
    return s ? atoi(s) : absent;
}

static uint32_t first_seed = 1, last_seed;

static void random_modules(void **state)
{
    (void)state;
    volatile int wrong = 0, errors = 0;
    for (volatile uint32_t seed = first_seed; seed <= last_seed; seed++) {
        tl_heap th;
        relax_context *ctx = tl_context(&th);
        rx_arena a;
        rx_frame fr;
        volatile int bad = 0;
        rx_arena_init(&a, &ctx->heap);
        if (RX_ENTER(&ctx->heap, &fr)) {
            relax_module *m = rm_module(ctx, seed, 10 + seed % 25);
            if (first_seed == last_seed)
                fprintf(stderr, "%s\n", print(ctx, m));
            bad += (int)rx_module_verify(m);
            bad += round_trip(ctx, m);
            bad += all_passes(ctx, m, seed, &a);
            if (bad)
                fprintf(stderr, "seed %u:\n%s\n", seed, print(ctx, m));
            if (!bad && (seed % 8 == 0 || first_seed == last_seed) && !no_backend)
                bad += executable(ctx, m, &a);
            if (bad)
                print_error("seed %u\n", seed);
            rx_module_free(m);
            rx_leave(&ctx->heap, &fr);
            rx_arena_free(&a);
            tl_done(&th, ctx);
        } else {
            print_error("seed %u\n", seed);
            tl_print_diags(ctx);
            errors++;
        }
        wrong += bad != 0;
        if (wrong + errors > 5)
            break;
    }
    assert_int_equal(wrong, 0);
    assert_int_equal(errors, 0);
}

int main(void)
{
    bool from = getenv("RELAX_RANDOM_SEED") != NULL;
    first_seed = (uint32_t)number("RELAX_RANDOM_SEED", 1);
    last_seed = first_seed - 1 + (uint32_t)number("RELAX_RANDOM", from ? 1 : 300);
    const struct CMUnitTest tests[] = {cmocka_unit_test(random_modules)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
