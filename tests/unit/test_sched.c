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

/* shapes by number: all dims small, or one larger than every block; few elements in all, because the interpreter is slow */
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

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_default), cmocka_unit_test(test_exact)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
