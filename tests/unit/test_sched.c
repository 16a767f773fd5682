/* test_sched.c: schedules against the interpreter: every program, every target, many shapes. */
#include "testlib.h"
#include "tirtest.h"
#include "sched/sched.h"

static const int64_t sizes[] = {0, 1, 2, 3, 7, 8, 15, 16, 17, 31, 33};
static const char *const targets[] = {"cpu:x86-64-v1", "cpu:x86-64-v3", "cpu:x86-64-v4", "cpu:aarch64"};

/* what the schedule must at least contain: p parallel, v vector, t tiled */
typedef struct row { const char *must, *text; } row;
static const row rows[] = {
#define ROW(must, text) {must, text},
#include "sched_rows.def"
#undef ROW
};

static void run_copy(rx_tb *t, const rx_prim *p, const int64_t *syms, tt_args *a)
{
    tt_args_new(t, p, syms, 42, a);
    rx_interp_prim(t->ctx, p, a->buf, a->value);
    tt_guards(p, a);
}

/* shapes by number: all dims small, or one larger than every block; few elements in all, because the interpreter is
 * slow */
static void shape(uint32_t number, uint32_t n, int64_t *syms)
{
    for (uint32_t i = 0; i < n; i++) {
        syms[i] = sizes[(number * (2 * i + 3) + number / RX_COUNT(sizes) + i * 5) % RX_COUNT(sizes)];
        if (number % 8 == 3)
            syms[i] = i == n - 1 ? 1100 : 2 + i;
    }
    if (n == 3 && syms[0] * syms[1] * syms[2] > 6000)
        syms[number % 3] = 3;
}

static bool fits(const rx_prim *p, const tt_args *a, rx_tb *t)
{
    rx_map env;
    rx_map_init(&env, t->a);
    for (uint32_t i = 0; i < a->syms.n; i++)
        rx_map_put(&env, RX_KEY(a->syms.at[i]), (void *)&a->value[i]);
    for (uint32_t i = 0; i < p->nwhere; i++) {
        int64_t ok = 0;
        assert_int_equal(rx_eval(t->ctx, p->where[i], &env, &ok), RX_EVAL_OK);
        if (!ok)
            return false;
    }
    return true;
}

static void check_row(relax_context *ctx, const row *r, const char *target, bool exact, uint32_t first)
{
    TL_TRY(ctx) {
        rx_tb t = {ctx, rx_scratch(&ctx->heap)};
        rx_prim *p = tt_parse(&t, r->text);
        rx_sched_info info;
        rx_prim *q = rx_schedule(&t, p, rx_target_parse(ctx, target, strlen(target)), exact, &info);
        rx_unproved_vec before = {0}, after = {0};
        assert_int_equal(rx_prim_verify(ctx, p, t.a, &before), 0);
        assert_int_equal(rx_prim_verify(ctx, q, t.a, &after), 0);
        if (!exact && (info.parallel == 0) == (strchr(r->must, 'p') != NULL))
            fail_msg("%s on %s: parallel %u", p->name, target, info.parallel);
        if (!exact && strchr(r->must, 'v') && !info.vector)
            fail_msg("%s on %s: no vectors", p->name, target);
        if (!exact && strchr(r->must, 't') && !info.tiled)
            fail_msg("%s on %s: no tiles", p->name, target);
        const char *text = tt_text(&t, q);
        assert_string_equal(tt_text(&t, tt_parse(&t, text)), text);
        assert_true(!exact || !info.reassociates);
        for (uint32_t k = first; k < first + 8; k++) {
            int64_t syms[8];
            tt_args a, b;
            shape(k, 8, syms);
            rx_exvec names = {0};
            rx_prim_symbols(ctx, t.a, p, &names);
            shape(k, names.n, syms);
            tt_args_new(&t, p, syms, 42, &a);
            if (!fits(p, &a, &t))
                continue;
            run_copy(&t, p, syms, &a);
            run_copy(&t, q, syms, &b);
            double d = tt_difference(p, &a, &b, exact || !info.reassociates);
            if (d > (p->params[p->nparams - 1]->dtype == RELAX_F16 ? 4e-3 : 2e-5))
                fail_msg("%s on %s, shape %u (%d, %d, %d): difference %g\n%s", p->name, target, k, (int)syms[0],
                         names.n > 1 ? (int)syms[1] : -1, names.n > 2 ? (int)syms[2] : -1, d, text);
        }
    } TL_END(ctx)
}

static void test_default(void **state)
{
    (void)state;
    for (size_t k = 0; k < RX_COUNT(targets); k++) {
        tl_heap th;
        relax_context *ctx = tl_context(&th);
        for (size_t i = 0; i < RX_COUNT(rows); i++)
            check_row(ctx, &rows[i], targets[k], false, (uint32_t)(k * 8));
        tl_done(&th, ctx);
    }
}

static void test_exact(void **state)
{
    (void)state;
    tl_heap th;
    relax_context *ctx = tl_context(&th);
    for (size_t i = 0; i < RX_COUNT(rows); i++)
        check_row(ctx, &rows[i], "cpu:x86-64-v3", true, 32);
    tl_done(&th, ctx);
}

/* --- the transformations by name: what is done to which loop, and whether it is allowed --- */
#define COPY                                                                                                           \
    "prim f(X: Buffer((n, m), f32), Y: Buffer((n, m), f32)) { for i in n { for j in m { Y[i, j] = X[i, j] } } }"
#define SUM                                                                                                            \
    "prim f(X: Buffer((n, m), i32), Y: Buffer((n,), i32)) { for i in n { for r: reduce in m init { Y[i] = 1 } { Y[i] " \
    "+= X[i, r] } } }"
#define ONE(value) "prim f(X: Buffer((n,), f32), Y: Buffer((n*2 + 8,), f32)) { for i in n { " value " } }"
#define TWO(value)                                                                                                     \
    "prim f(X: Buffer((n, m), f32), Y: Buffer((n*m + n + m, n + m), f32)) { for i in n { for j in m { " value " } } }"
static const struct { bool allowed; const char *steps, *text;
} steps[] = {
    {true, "split i 4 guard", COPY},
    {true, "split i 4 loop", COPY},
    {true, "split j 3 loop, split i 2 guard", COPY},
    {true, "split j 8 loop, vectorize ji", COPY},
    {true, "fuse i", COPY},
    {true, "parallel i, fuse i", COPY},
    {true, "reorder i", COPY},
    {true, "parallel i", COPY},
    {true, "reorder i, parallel j", COPY},
    {true, "split j 8 loop, unroll ji", COPY},
    {true, "split r 8 loop, vectorize ri", SUM},
    {true, "parallel i", SUM},
    {true, "split r 4 guard, unroll ri", SUM},
    {false, "vectorize j", COPY},
    {false, "unroll i", COPY},
    {false, "split q 4 loop", COPY},
    {false, "split i 0 loop", COPY},
    {false, "parallel j", COPY},
    {false, "parallel i, fuse i", TWO("Y[i, 0] = X[i, j]")},
    {false, "fuse j", COPY},
    {false, "reorder i", SUM},
    {false, "fuse i", SUM},
    {false, "split i 65 loop, vectorize ii", COPY},
    {true, "parallel i", ONE("Y[i] = X[i]")},
    {true, "parallel i", ONE("Y[2*i + 1] = X[i]")},
    {true, "parallel i", ONE("Y[n - i] = X[i]")},
    {true, "parallel i", ONE("Y[i] = Y[i] + X[i]")},
    {true, "parallel i", ONE("let k: i64 = i//2 Y[i] = X[k]")},
    {true, "parallel i", ONE("S = alloc((4,), f32, local) S[i%4] = X[i] Y[i] = S[i%4]")},
    {true, "parallel i", ONE("for u in 2 { Y[i*2 + u] = X[i] }")},
    {false, "parallel i", ONE("Y[0] = X[i]")},
    {false, "parallel i", ONE("Y[i//2] = X[i]")},
    {false, "parallel i", ONE("Y[i%4] = X[i]")},
    {false, "parallel i", ONE("Y[i] = Y[i + 1]")},
    {false, "parallel i", ONE("Y[i] = Y[0]")},
    {false, "parallel i", ONE("Y[i] = X[i] Y[i + 1] = 1.0")},
    {false, "parallel i", ONE("for u in 3 { Y[i*2 + u] = X[i] }")},
    {false, "parallel i", ONE("Y[i*i] = X[i]")},
    {false, "parallel i", ONE("let k: i64 = i//2 Y[k] = X[i]")},
    {false, "parallel i", ONE("Y[i64(X[i])] = 1.0")},
    {true, "parallel i", TWO("Y[i*m + j, 0] = X[i, j]")},
    {true, "reorder i", TWO("Y[i*m + j, 0] = X[i, j]")},
    {true, "parallel i", TWO("Y[j, i] = X[i, j]")},
    {false, "parallel i", TWO("Y[i + j, 0] = X[i, j]")},
    {false, "reorder i", TWO("Y[i + j, 0] = X[i, j]")},
    {false, "parallel i", TWO("Y[j, 0] = X[i, j]")},
    {false, "reorder i", TWO("Y[0, 0] = X[i, j]")},
    {true, "reorder i", TWO("Y[i, j] = X[i, j]")},
};

static rx_ex found;
static const char *wanted;
static void find_var(void *arg, rx_stmt *s)
{
    (void)arg;
    if (s->kind == RX_S_FOR && !strcmp(rx_sym_of(s->u.loop.var)->name, wanted))
        found = s->u.loop.var;
}

static bool do_step(rx_tb *t, rx_prim *p, const char *step)
{
    char what[32], var[32], tail[32] = "";
    int factor = 0;
    rx_ex a, b;
    assert_true(sscanf(step, " %31s %31[^, ] %d %31[a-z]", what, var, &factor, tail) >= 2);
    found = rx_int(t->ctx, 0);
    wanted = var;
    rx_stmt_visit(p->body, find_var, NULL);
    if (!strcmp(what, "split"))
        return rx_sched_split(t, p, found, factor, !strcmp(tail, "guard") ? RX_TAIL_GUARD : RX_TAIL_LOOP, &a, &b);
    return !strcmp(what, "fuse")       ? rx_sched_fuse(t, p, found, &a)
           : !strcmp(what, "reorder")  ? rx_sched_reorder(t, p, found)
           : !strcmp(what, "parallel") ? rx_sched_parallel(t, p, found)
           : !strcmp(what, "unroll")   ? rx_sched_unroll(t, p, found)
                                       : rx_sched_vectorize(t, p, found);
}

static void test_steps(void **state)
{
    (void)state;
    tl_heap th;
    relax_context *ctx = tl_context(&th);
    for (size_t i = 0; i < RX_COUNT(steps); i++) {
        TL_TRY(ctx) {
            rx_tb t = {ctx, rx_scratch(&ctx->heap)};
            rx_prim *p = tt_parse(&t, steps[i].text), *q = rx_prim_copy(&t, p, "f");
            bool ok = true;
            for (const char *s = steps[i].steps; ok && s; s = strchr(s, ',') ? strchr(s, ',') + 1 : NULL)
                ok = do_step(&t, q, s);
            if (ok != steps[i].allowed)
                fail_msg("%s: %s in %s", steps[i].steps, ok ? "allowed" : "refused", steps[i].text);
            assert_int_equal(rx_prim_verify(ctx, q, t.a, NULL), 0);
            for (uint32_t k = 0; k < 8 && ok; k++) {
                int64_t syms[2] = {sizes[k % RX_COUNT(sizes)], sizes[k * 3 % RX_COUNT(sizes)]};
                tt_args a, b;
                tt_args_new(&t, p, syms, k, &a);
                run_copy(&t, p, syms, &a);
                run_copy(&t, q, syms, &b);
                if (tt_difference(p, &a, &b, true) > 0)
                    fail_msg("%s changes the result of %s", steps[i].steps, steps[i].text);
            }
        } TL_END(ctx)
    }
    tl_done(&th, ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_steps), cmocka_unit_test(test_default),
                                       cmocka_unit_test(test_exact)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
