/* test_sched.c: schedules against the interpreter: every program, every target, many shapes. */
#include "testlib.h"
#include "tirtest.h"
#include "sched/sched.h"

static const int64_t sizes[] = {0, 1, 2, 3, 7, 8, 15, 16, 17, 31, 33};
static const char *const targets[] = {"cpu:x86-64-v1", "cpu:x86-64-v3", "cpu:x86-64-v4", "cpu:aarch64"};

/* what the schedule must at least contain: p parallel, v vector, t tiled */
typedef struct row { const char *must, *text; } row;
static const row rows[] = {
    {"pv", "prim add(X: Buffer((n,), f32), Y: Buffer((n,), f32)) { for i in n { Y[i] = X[i] + 1.5 } }"},
    {"pv", "prim add2(X: Buffer((n, m), f32), W: Buffer((m,), f32), Y: Buffer((n, m), f32)) {"
           " for i in n { for j in m { Y[i, j] = X[i, j] * W[j] } } }"},
    {"pv", "prim cast(X: Buffer((n, m), f16), Y: Buffer((n, m), bf16)) {"
           " for i in n { for j in m { Y[i, j] = bf16(f32(X[i, j]) * 0.3) } } }"},
    {"pv", "prim exps(X: Buffer((n, m), f32), Y: Buffer((m, n), f32)) {"
           " for i in m { for j in n { Y[i, j] = exp(X[j, i] * 0.1) } } }"},
    {"p", "prim transpose(X: Buffer((n, m), f32), Y: Buffer((m, n), f32)) { for i in m { for j in n { Y[i, j] = X[j, i] } } }"},
    {"pv", "prim const_cols(X: Buffer((n, 33), i8), Y: Buffer((n, 33), i8)) {"
           " for i in n { for j in 33 { Y[i, j] = X[i, j] * X[i, j] - 3 } } }"},
    {"pv", "prim block(X: Buffer((n, 4864), f32), Y: Buffer((n, 4864), f32)) where n <= 2 {"
           " for i in n { for j in 4864 { Y[i, j] = X[i, j] - 1.0 } } }"},
    {"pv", "prim pad(X: Buffer((n,), f32), Y: Buffer((n + 4,), f32)) {"
           " for i in n + 4 { Y[i] = select(2 <= i and i < n + 2, X[i - 2], 0.0) } }"},
    {"pv", "prim inplace(X: Buffer((n, m), f32), Y: Buffer((n, m), f32)) {"
           " for i in n { for j in m { Y[i, j] = Y[i, j] + X[i, j] } } }"},
    {"", "prim scan(X: Buffer((n,), f32), Y: Buffer((n + 1,), f32)) { for i in n { Y[i + 1] = Y[i] + X[i] } }"},
    {"p", "prim append(X: Buffer((n, m), f32), C: Buffer((n + 8, m), f32); at) where 0 <= at, at <= 8 {"
          " for i in n { for j in m { C[at + i, j] = X[i, j] } } }"},
    {"", "prim scatter(I: Buffer((n,), i64), X: Buffer((n,), f32), Y: Buffer((8,), f32)) {"
         " for i in n { let k: i64 = I[i] % 8 Y[k] = X[i] } }"},
    {"p", "prim take(I: Buffer((n,), i32), X: Buffer((16, m), f32), Y: Buffer((n, m), f32)) {"
          " for i in n { let k: i64 = i64(I[i]) % 16 for j in m { Y[i, j] = X[k, j] } } }"},
    {"p", "prim flat(X: Buffer((n, m), f32), Y: Buffer((n*m,), f32)) { for i in n { for j in m { Y[i*m + j] = X[i, j] } } }"},
    {"p", "prim tri(X: Buffer((n, n), f32), Y: Buffer((n, n), f32)) { for i in n { for j in i { Y[i, j] = X[i, j] } } }"},
    {"pv", "prim back(X: Buffer((n,), f32), Y: Buffer((n,), f32)) { for i in n - 5 { Y[i + 5] = X[i] } }"},
    {"v", "prim sum(X: Buffer((n,), f32), Y: Buffer((), f32)) {"
          " S = alloc((), f32, local) for r: reduce in n init { S[] = 0.0 } { S[] += X[r] } Y[] = S[] }"},
    {"v", "prim max(X: Buffer((n,), f16), Y: Buffer((), f16)) {"
          " S = alloc((), f16, local) for r: reduce in n init { S[] = f16(-inf) } { S[] max= X[r] } Y[] = S[] }"},
    {"pv", "prim isum(X: Buffer((n, m), i32), Y: Buffer((n,), i32)) {"
           " for i in n { for r: reduce in m init { Y[i] = 7 } { Y[i] += X[i, r] } } }"},
    {"pv", "prim prod(X: Buffer((n, m), u8), Y: Buffer((n,), u8)) {"
           " for i in n { for r: reduce in m init { Y[i] = 1 } { Y[i] *= X[i, r] } } }"},
    {"pv", "prim imin(X: Buffer((n, m), u64), Y: Buffer((n,), u64)) {"
           " for i in n { for r: reduce in m { Y[i] min= X[i, r] } } }"},
    {"pt", "prim colsum(X: Buffer((n, m), f32), Y: Buffer((m,), f32)) {"
           " for j in m { for i: reduce in n init { Y[j] = 0.0 } { Y[j] += X[i, j] } } }"},
    {"pt", "prim midsum(X: Buffer((n, k, m), f32), Y: Buffer((n, m), f32)) {"
           " for i in n { for j in m { for r: reduce in k init { Y[i, j] = 0.0 } { Y[i, j] max= X[i, r, j] } } } }"},
    {"pv", "prim rms(X: Buffer((n, h), f32), W: Buffer((h,), f32), Y: Buffer((n, h), f32)) { for i in n {"
           " S = alloc((), f32, local) for r: reduce in h init { S[] = 0.0 } { S[] += X[i, r] * X[i, r] }"
           " for j in h { Y[i, j] = X[i, j] * rsqrt(S[] / f32(h) + 1e-6) * W[j] } } }"},
    {"pv", "prim softmax(X: Buffer((n, h), f32), Y: Buffer((n, h), f32)) { for i in n {"
           " M = alloc((), f32, local) S = alloc((), f32, local)"
           " for r: reduce in h init { M[] = -inf } { M[] max= X[i, r] }"
           " for r: reduce in h init { S[] = 0.0 } { S[] += exp(X[i, r] - M[]) }"
           " for j in h { Y[i, j] = exp(X[i, j] - M[]) / S[] } } }"},
    {"p", "prim argmax(X: Buffer((n, h), f32), Y: Buffer((n,), i64)) { for i in n {"
          " B = alloc((), f32, local) I = alloc((), i64, local)"
          " for r: reduce in h init { B[] = 0.0 I[] = -1 } { if I[] < 0 or B[] < X[i, r] { B[] = X[i, r] I[] = r } }"
          " Y[i] = I[] } }"},
    {"p", "prim cumsum(X: Buffer((n, h), f32), Y: Buffer((n, h), f32)) { for i in n {"
          " S = alloc((), f32, local) S[] = 0.0 for j in h { S[] += X[i, j] Y[i, j] = S[] } } }"},
    {"pt", "prim matmul(A: Buffer((n, k), f32), B: Buffer((k, m), f32), C: Buffer((n, m), f32)) {"
           " for i in n { for j in m { S = alloc((), f32, local)"
           " for r: reduce in k init { S[] = 0.0 } { S[] += A[i, r] * B[r, j] } C[i, j] = S[] } } }"},
    {"pt", "prim direct(A: Buffer((n, k), f32), B: Buffer((k, m), f32), C: Buffer((n, m), f32)) {"
           " for i in n { for j in m { for r: reduce in k { C[i, j] += A[i, r] * B[r, j] } } } }"},
    {"pt", "prim matmul_t(A: Buffer((n, k), f32), B: Buffer((m, k), f16), D: Buffer((m,), f32), C: Buffer((n, m), f16)) {"
           " for i in n { for j in m { S = alloc((), f32, local)"
           " for r: reduce in k init { S[] = 0.0 } { S[] += A[i, r] * f32(B[j, r]) } C[i, j] = f16(S[] + D[j]) } } }"},
    {"pt", "prim at_b(A: Buffer((k, n), i8), B: Buffer((k, m), i8), C: Buffer((n, m), i32)) {"
           " for i in n { for j in m { for r: reduce in k init { C[i, j] = 0 } { C[i, j] += i32(A[r, i]) * i32(B[r, j]) } } } }"},
    {"pt", "prim batch(A: Buffer((4, n, 16), f32), B: Buffer((2, m, 16), bf16), C: Buffer((4, n, m), f32)) {"
           " for h in 4 { for i in n { for j in m { S = alloc((), f32, local)"
           " for r: reduce in 16 init { S[] = 0.0 } { S[] += A[h, i, r] * f32(B[h//2, j, r]) } C[h, i, j] = S[] * 0.25 } } } }"},
    {"pt", "prim values(P: Buffer((4, n, k), f32), V: Buffer((k, 2, 24), f16), C: Buffer((n, 4, 24), f32)) {"
           " for h in 4 { for i in n { for j in 24 { S = alloc((), f32, local)"
           " for r: reduce in k init { S[] = 0.0 } { S[] += P[h, i, r] * f32(V[r, h//2, j]) } C[i, h, j] = S[] } } } }"},
    {"pt", "prim vecmat(A: Buffer((k,), f32), B: Buffer((k, m), f32), C: Buffer((m,), f32)) {"
           " for j in m { S = alloc((), f32, local)"
           " for r: reduce in k init { S[] = 0.0 } { S[] += A[r] * B[r, j] } C[j] = S[] } }"},
    {"pt", "prim matvec(A: Buffer((1, k), f32), B: Buffer((m, k), f32), C: Buffer((1, m), f32)) {"
           " for i in 1 { for j in m { S = alloc((), f32, local)"
           " for r: reduce in k init { S[] = 0.0 } { S[] += A[i, r] * B[j, r] } C[i, j] = S[] } } }"},
    {"pt", "prim wide(A: Buffer((n, 64), f32), B: Buffer((64, 40), f32), C: Buffer((n, 40), f32)) {"
           " for i in n { for j in 40 { S = alloc((), f32, local)"
           " for r: reduce in 64 init { S[] = 0.0 } { S[] += A[i, r] * B[r, j] } C[i, j] = S[] } } }"},
    {"pt", "prim conv(X: Buffer((n + 2, m + 2), f32), W: Buffer((3, 3), f32), Y: Buffer((n, m), f32)) {"
           " for i in n { for j in m { S = alloc((), f32, local) for a: reduce in 3 init { S[] = 0.0 } { for b: reduce in 3 {"
           " S[] += X[i + a, j + b] * W[a, b] } } Y[i, j] = S[] } } }"},
    {"pv", "prim two(X: Buffer((n, h), f32), Y: Buffer((n, 2), f32)) { for i in n {"
           " S = alloc((), f32, local) Q = alloc((), f32, local)"
           " for r: reduce in h init { S[] = 0.0 Q[] = 0.0 } { S[] += X[i, r] Q[] += X[i, r] * X[i, r] }"
           " Y[i, 0] = S[] Y[i, 1] = Q[] } }"},
    {"pv", "prim phases(X: Buffer((n, m), f32), T: Buffer((n, m), f32), Y: Buffer((n, m), f32)) {"
           " for i in n { for j in m { T[i, j] = X[i, j] * 2.0 } } for i in n { for j in m { Y[i, j] = T[i, j] + X[i, j] } } }"},
    {"pv", "prim strided(X: Buffer((n, m), f32, strides=(m*2, 1)), Y: Buffer((n, m), f32)) {"
           " for i in n { for j in m { Y[i, j] = X[i, j] } } }"},
    {"p", "prim lanes2(X: Buffer((n, m), f32, strides=(m*2, 2)), Y: Buffer((n, m), f32)) {"
          " for i in n { for j in m { Y[i, j] = X[i, j] } } }"},
    {"p", "prim guarded(I: Buffer((n,), i64), X: Buffer((8,), f32), Y: Buffer((n,), f32)) { for i in n {"
          " let k: i64 = I[i] % 8 assert k < 8, index \"k\" Y[i] = X[k] } }"},
    {"pt", "prim lets(A: Buffer((n, k), f32), B: Buffer((k, m), f32), C: Buffer((n, m), f32)) {"
           " for i in n { for j in m { let s: f32 = f32(i + 1) S = alloc((), f32, local)"
           " for r: reduce in k init { S[] = s } { let x: f32 = B[r, j] S[] += A[i, r] * x } C[i, j] = S[] } } }"},
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
