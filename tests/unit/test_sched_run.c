/* test_sched_run.c: scheduled programs compiled and run in several parts, against the interpreter. */
#define _GNU_SOURCE
#include "testlib.h"
#include "tirtest.h"

#include <unistd.h>

#include "codegen/codegen.h"
#include "pkg/kernel.h"
#include "sched/sched.h"

static const char *const rows[] = {
#define ROW(must, text) text,
#include "sched_rows.def"
#undef ROW
};
static const int64_t sizes[] = {0, 1, 2, 3, 7, 8, 15, 16, 17, 31, 33};

static bool fits(rx_tb *t, const rx_prim *p, const rx_exvec *names, int64_t *syms)
{
    rx_map env;
    rx_map_init(&env, t->a);
    for (uint32_t i = 0; i < names->n; i++)
        rx_map_put(&env, RX_KEY(names->at[i]), &syms[i]);
    for (uint32_t i = 0; i < p->nwhere; i++) {
        int64_t ok = 0;
        assert_int_equal(rx_eval(t->ctx, p->where[i], &env, &ok), RX_EVAL_OK);
        if (!ok)
            return false;
    }
    return true;
}

static void run_phases(const rx_kernel_code *k, rx_kernel_fn *entries, tt_args *a, int64_t parts)
{
    int32_t err = 0;
    for (uint32_t p = 0; p < k->nphases; p++) {
        int64_t n = k->parallel[p] ? parts : 1;
        for (int64_t i = n; i-- > 0;) {
            rx_kernel_args args = {a->buf, a->value, &err, i, n, NULL};
            entries[k->first + p](&args);
        }
    }
    assert_int_equal(err, 0);
}

static void check(rx_tb *t, const rx_prim *p, const rx_prim *q, const rx_kernel_code *k, rx_kernel_fn *entries)
{
    rx_exvec names = {0};
    rx_prim_symbols(t->ctx, t->a, p, &names);
    for (uint32_t n = 0; n < 40; n++) {
        int64_t syms[8];
        tt_args a, b;
        for (uint32_t i = 0; i < 8; i++)
            syms[i] = sizes[(n * (2 * i + 3) + n / RX_COUNT(sizes) + i * 5) % RX_COUNT(sizes)];
        if (names.n == 3 && syms[0] * syms[1] * syms[2] > 6000)
            syms[n % 3] = 3;
        if (!fits(t, p, &names, syms))
            continue;
        tt_args_new(t, p, syms, n, &a);
        tt_args_new(t, p, syms, n, &b);
        rx_interp_prim(t->ctx, p, a.buf, a.value);
        run_phases(k, entries, &b, 1 + n % 3);
        tt_guards(p, &b);
        double d = tt_difference(p, &a, &b, false);
        if (d > (p->params[p->nparams - 1]->dtype == RELAX_F16 ? 4e-3 : 2e-5))
            fail_msg("%s, symbols %d %d %d: difference %g\n%s", p->name, (int)syms[0], (int)syms[1], (int)syms[2], d,
                     tt_text(t, q));
    }
}

static void test_run(void **state)
{
    (void)state;
    tl_heap th;
    relax_context *ctx = tl_context(&th);
    for (uint32_t plain = 0; plain < 2; plain++) {
        TL_TRY(ctx) {
            rx_tb t = {ctx, rx_scratch(&ctx->heap)};
            relax_target *target = rx_target_parse(ctx, "cpu", 3);
            const rx_prim *p[RX_COUNT(rows)], *q[RX_COUNT(rows)];
            rx_code code;
            char text[256];
            for (size_t i = 0; i < RX_COUNT(rows); i++) {
                p[i] = tt_parse(&t, rows[i]);
                q[i] = rx_schedule(&t, p[i], target, plain, NULL);
            }
            rx_codegen(ctx, t.a, target, q, RX_COUNT(rows), NULL, &code);
            int fd = rx_mem_fd("kernels", code.so, code.so_size);
            void *dl = rx_dl_open_fd(fd, text, sizeof text);
            close(fd);
            assert_non_null(dl);
            for (size_t i = 0; i < RX_COUNT(rows); i++)
                check(&t, p[i], q[i], &code.kernels[i], (rx_kernel_fn *)rx_dl_sym(dl, "rx_entries"));
            rx_dl_close(dl);
        } TL_END(ctx)
    }
    tl_done(&th, ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_run)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
