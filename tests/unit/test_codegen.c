/* test_codegen.c: prim funcs written as text are compiled for several levels of the CPU, loaded from memory, run, and
 * compared with the interpreter: bit for bit where the semantics are exact, within ulps for the functions of
 * intrins.def. */

#include "testlib.h"

#include "codegen/codegen.h"
#include "interp/interp.h"
#include "pkg/kernel.h"
#include "sched/sched.h"

#include <math.h>
#include <unistd.h>

/* ---- the world: a context with a scratch arena, everything inside one frame ---- */
typedef struct world { tl_heap heap; relax_context *ctx; rx_arena a; rx_tb tb; } world;
static const char *const all_targets[] = {"cpu:x86-64-v1", "cpu:x86-64-v3"};

static void open_world(world *w)
{
    w->ctx = tl_context(&w->heap);
    rx_arena_init(&w->a, &w->ctx->heap);
    w->tb = (rx_tb){w->ctx, &w->a};
}

static void close_world(world *w)
{
    rx_arena_free(&w->a);
    tl_done(&w->heap, w->ctx);
}

static bool runs_here(const relax_target *t)
{
    return t->arch == rx_host_arch() && (t->features & ~rx_host_features()) == 0;
}

static rx_prim *parse(world *w, const char *text)
{
    rx_lexer l;
    rx_lex_init(&l, w->ctx, "test", text, strlen(text));
    rx_lex_want(&l, "prim");
    rx_prim *p = rx_parse_prim(&l, &w->tb);
    if (rx_prim_verify(w->ctx, p, &w->a, NULL)) {
        tl_print_diags(w->ctx);
        fail_msg("%s", text);
    }
    return p;
}

/* ---- compiled kernels ---- */
typedef struct loaded { rx_code code; void *dl; rx_kernel_fn *entries; } loaded;

static void compile(world *w, const char *target, const rx_prim *const *prims, uint32_t n, loaded *l)
{
    char err[256];
    rx_codegen(w->ctx, &w->a, rx_target_parse(w->ctx, target, strlen(target)), prims, n, NULL, &l->code);
    l->dl = NULL;
    if (!runs_here(rx_target_parse(w->ctx, target, strlen(target)))) return;
    int fd = rx_mem_fd("kernels", l->code.so, l->code.so_size);
    assert_true(fd >= 0);
    l->dl = rx_dl_open_fd(fd, err, sizeof err);
    close(fd);
    if (!l->dl) fail_msg("dlopen: %s", err);
    l->entries = (rx_kernel_fn *)rx_dl_sym(l->dl, "rx_entries");
    assert_non_null(l->entries);
}

static int32_t run_kernel(const loaded *l, uint32_t k, void *const *bufs, const int64_t *syms, int64_t nparts)
{
    int32_t err = 0;
    const rx_kernel_code *c = &l->code.kernels[k];
    for (uint32_t p = 0; p < c->nphases; p++) {
        int64_t n = c->parallel[p] ? nparts : 1;
        for (int64_t i = n - 1; i >= 0; i--) {
            rx_kernel_args a = {bufs, syms, &err, i, n, NULL};
            l->entries[c->first + p](&a);
        }
    }
    return err;
}

/* ---- data ---- */
#define MAXN 4096
typedef struct array { relax_dtype t; int64_t n; void *data; } array;

static uint64_t random64(uint64_t *s)
{
    *s = *s * 6364136223846793005ull + 1442695040888963407ull;
    return (*s >> 17) ^ (*s << 23);
}

static const double specials[] = {
    0.0,    -0.0,    1.0,    -1.0,    0.5,     -0.5,     1.5,       2.5,     -2.5,         3.0,          -3.0,
    127.0,  128.0,   -128.0, -129.0,  255.0,   256.0,    65504.0,   65520.0, 1e-8,         -1e-8,        6e-8,
    5.9e-8, 448.0,   465.0,  57344.0, 61440.0, 1e-40,    3e38,      -3e38,   2147483647.0, 2147483648.0, -2147483649.0,
    9.3e18, -9.3e18, 1.9e19, 1e300,   -1e-310, INFINITY, -INFINITY, NAN,     0.1,          100.25,       8388609.0};

static void fill(world *w, array *x, relax_dtype t, int64_t n, uint64_t seed, bool small)
{
    x->t = t;
    x->n = n;
    size_t b = rx_dtype_bytes(t);
    x->data = rx_arena_alloc(&w->a, ((size_t)n + 1) * b, 64);
    for (int64_t i = 0; i < n; i++) {
        char *p = (char *)x->data + (size_t)i * b;
        uint64_t r = random64(&seed);
        if (rx_dtype_is_float(t)) {
            double v = ((double)(int64_t)(r % 20001) - 10000) / (small ? 5000.0 : 100.0);
            if (!small && r % 3 == 0) v = specials[(r >> 20) % RX_COUNT(specials)];
            rx_store_f64(t, p, v);
        } else if (t == RELAX_BOOL) {
            *p = (char)(r & 1);
        } else {
            int64_t v = r % 4 == 0   ? (int64_t)(r >> 8) % 10 - 5
                        : r % 7 == 0 ? INT64_MIN >> (r >> 40) % 60
                                     : (int64_t)(r * 31);
            if (r % 11 == 0) v = INT64_MAX >> (r >> 40) % 60;
            if (small) v = (int64_t)(r >> 8) % 100 - 50;
            rx_store_i64(t, p, v);
        }
    }
}

/* distance in units of the last place of t; NaN equals NaN */
static double ulps(relax_dtype t, double got, double want)
{
    if (isnan(got) && isnan(want)) return 0;
    if (got == want) return 0;
    if (isnan(got) || isnan(want) || isinf(want) || isinf(got)) {
        if (t == RELAX_F32 && fabs(want) > 3.402823e38 && isinf(got)) return 0;
        return 1e30;
    }
    int bits = t == RELAX_F64 ? 53 : t == RELAX_F32 ? 24 : t == RELAX_F16 ? 11 : t == RELAX_BF16 ? 8 : 4;
    int low = t == RELAX_F64 ? -1074 : t == RELAX_F16 ? -24 : t == RELAX_F32 ? -149 : -133;
    int e = want == 0 ? low : RX_MAX(ilogb(want) - bits + 1, low);
    return fabs(got - want) / ldexp(1, e);
}

/* tolerance: 0 bits are equal; > 0 in ulps; < 0 relative, absolute below 1 */
static void compare(const char *what, const array *got, const array *want, double tolerance)
{
    size_t b = rx_dtype_bytes(got->t);
    for (int64_t i = 0; i < got->n; i++) {
        const char *g = (char *)got->data + (size_t)i * b, *x = (char *)want->data + (size_t)i * b;
        if (!memcmp(g, x, b)) continue;
        double gv = rx_load_f64(got->t, g), xv = rx_load_f64(got->t, x);
        if (rx_dtype_is_float(got->t) && isnan(gv) && isnan(xv)) continue;
        if (rx_dtype_is_float(got->t) && tolerance < 0 && fabs(gv - xv) <= -tolerance * fmax(1, fabs(xv))) continue;
        if (rx_dtype_is_float(got->t) && tolerance > 0 && ulps(got->t, gv, xv) <= tolerance) continue;
        fail_msg("%s: element %lld is %.17g (%llx), not %.17g (%llx)", what, (long long)i, gv,
            (unsigned long long)rx_load_i64(got->t, g), xv, (unsigned long long)rx_load_i64(got->t, x));
    }
}

/* ---- a case: one prim, its arrays; run by interpreter and by code ---- */
#define MAXP 6
typedef struct test_case {
    rx_prim *p;
    const char *text;
    array in[MAXP];
    int64_t syms[8];
    double tolerance;
} test_case;

static void sizes(world *w, test_case *c, uint64_t seed, bool small)
{
    rx_exvec s = {0};
    rx_prim_symbols(w->ctx, &w->a, c->p, &s);
    rx_map env;
    rx_map_init(&env, &w->a);
    for (uint32_t i = 0; i < s.n; i++) rx_map_put(&env, RX_KEY(s.at[i]), &c->syms[i]);
    for (uint32_t i = 0; i < c->p->nparams; i++) {
        relax_buffer *b = c->p->params[i];
        int64_t n = 1, d;
        for (uint32_t k = 0; k < b->ndim; k++) {
            assert_int_equal(rx_eval(w->ctx, b->shape[k], &env, &d), RX_EVAL_OK);
            n *= d;
        }
        fill(w, &c->in[i], b->dtype, n, seed + i * 977, small);
    }
}

static void copy_arrays(world *w, const test_case *c, array *to, void **bufs)
{
    for (uint32_t i = 0; i < c->p->nparams; i++) {
        to[i] = c->in[i];
        to[i].data = rx_arena_dup(&w->a, c->in[i].data, ((size_t)c->in[i].n + 1) * rx_dtype_bytes(c->in[i].t));
        bufs[i] = to[i].data;
    }
}

static void run_case(world *w, const loaded *l, uint32_t k, const test_case *c, int64_t nparts, const char *target)
{
    array want[MAXP], got[MAXP];
    void *wb[MAXP], *gb[MAXP];
    copy_arrays(w, c, want, wb);
    copy_arrays(w, c, got, gb);
    rx_interp_prim(w->ctx, c->p, wb, c->syms);
    assert_int_equal(run_kernel(l, k, gb, c->syms, nparts), 0);
    for (uint32_t i = 0; i < c->p->nparams; i++) {
        char what[700];
        snprintf(what, sizeof what, "%s, parameter %u of\n%.600s\n", target, i, c->text);
        compare(what, &got[i], &want[i], c->tolerance);
    }
}

static void run_all(world *w, test_case *cases, uint32_t n, const char *target, int64_t nparts)
{
    loaded l;
    const rx_prim **prims = RX_NEWN(&w->a, const rx_prim *, n);
    for (uint32_t i = 0; i < n; i++) prims[i] = cases[i].p;
    compile(w, target, prims, n, &l);
    if (!l.dl) return;
    for (uint32_t i = 0; i < n; i++) run_case(w, &l, i, &cases[i], nparts, target);
    rx_dl_close(l.dl);
}

/* ---- operators × data types ---- */
static const relax_dtype dtypes[] = {RELAX_BOOL, RELAX_I8,  RELAX_I16, RELAX_I32,  RELAX_I64, RELAX_U8, RELAX_U16,
                                     RELAX_U32,  RELAX_U64, RELAX_F16, RELAX_BF16, RELAX_F32, RELAX_F64};
typedef struct op_row {
    const char *expr, *result;
    const char *kinds;
    double tolerance;
} op_row; /* T: A's dtype; kinds: b i u f */
static const op_row op_rows[] = {
    {"A[i] + B[i]", "T", "iuf", 0},
    {"A[i] - B[i]", "T", "iuf", 0},
    {"A[i] * B[i]", "T", "iuf", 0},
    {"A[i] / B[i]", "T", "f", 0},
    {"A[i] // B[i]", "T", "iuf", 0},
    {"A[i] % B[i]", "T", "iuf", 0},
    {"truncdiv(A[i], B[i])", "T", "iu", 0},
    {"truncmod(A[i], B[i])", "T", "iu", 0},
    {"min(A[i], B[i])", "T", "biuf", 0},
    {"max(A[i], B[i])", "T", "biuf", 0},
    {"pow(A[i], B[i])", "T", "iu", 0},
    {"A[i] & B[i]", "T", "biu", 0},
    {"A[i] | B[i]", "T", "biu", 0},
    {"A[i] ^ B[i]", "T", "biu", 0},
    {"A[i] << B[i]", "T", "iu", 0},
    {"A[i] >> B[i]", "T", "iu", 0},
    {"A[i] >> (B[i] & T(7))", "T", "iu", 0},
    {"A[i] == B[i]", "bool", "biuf", 0},
    {"A[i] != B[i]", "bool", "biuf", 0},
    {"A[i] < B[i]", "bool", "biuf", 0},
    {"A[i] >= B[i]", "bool", "biuf", 0},
    {"A[i] and not B[i] or A[i]", "bool", "b", 0},
    {"-A[i]", "T", "iuf", 0},
    {"~A[i]", "T", "biu", 0},
    {"abs(A[i])", "T", "iuf", 0},
    {"select(A[i] < B[i], A[i], B[i])", "T", "iuf", 0},
    {"floor(A[i])", "T", "f", 0},
    {"ceil(A[i])", "T", "f", 0},
    {"trunc(A[i])", "T", "f", 0},
    {"sqrt(A[i])", "T", "f", 0},
    {"rsqrt(A[i])", "T", "f", 0},
    {"fma(A[i], B[i], A[i])", "T", "f", 0},
    {"isnan(A[i])", "bool", "f", 0},
    {"exp(A[i])", "T", "f", 1.5},
    {"exp2(A[i])", "T", "f", 1.5},
    {"log(A[i])", "T", "f", 1.5},
    {"tanh(A[i])", "T", "f", 2},
    {"erf(A[i])", "T", "f", 2},
    {"sin(A[i])", "T", "f", 1},
    {"cos(A[i])", "T", "f", 1},
    {"pow(A[i], B[i])", "T", "f", 2},
};

static const char *substitute(world *w, const char *s, const char *t)
{
    rx_buf b;
    rx_buf_init(&b, &w->a);
    for (; *s; s++) {
        bool alone = *s == 'T' && !(s[1] >= 'a' && s[1] <= 'z');
        if (alone) rx_puts(&b, t);
        else rx_putc(&b, *s);
    }
    return b.at;
}

static const char *elementwise(world *w, const char *expr, const char *from, const char *to, bool vector)
{
    rx_buf b;
    rx_buf_init(&b, &w->a);
    rx_putf(&b, "prim f(A: Buffer((n,), %s), B: Buffer((n,), %s), C: Buffer((n,), %s)) {\n", from, from, to);
    if (vector) {
        rx_puts(&b, "  for o: parallel in n // 8 { for v: vector in 8 { C[o * 8 + v] = ");
        for (; *expr; expr++) {
            if (!strncmp(expr, "[i]", 3)) {
                rx_puts(&b, "[o * 8 + v]");
                expr += 2;
            } else {
                rx_putc(&b, *expr);
            }
        }
        rx_puts(&b, " } }\n}\n");
    } else {
        rx_putf(&b, "  for i: parallel in n { C[i] = %s }\n}\n", expr);
    }
    return b.at;
}

static void ops_on(const char *target)
{
    world w;
    open_world(&w);
    TL_TRY(w.ctx) {
        test_case *c = RX_NEWN(&w.a, test_case, 2 * RX_COUNT(op_rows) * RX_COUNT(dtypes));
        uint32_t n = 0;
        for (uint32_t r = 0; r < RX_COUNT(op_rows); r++)
            for (uint32_t d = 0; d < RX_COUNT(dtypes); d++)
                for (int vector = 0; vector < 2; vector++) {
                    const rx_dtype_info *t = &rx_dtypes[dtypes[d]];
                    if (!strchr(op_rows[r].kinds, t->kind)) continue;
                    const char *expr = substitute(&w, op_rows[r].expr, t->name);
                    c[n].text = elementwise(&w, expr, t->name, op_rows[r].result[0] == 'T' ? t->name : "bool", vector);
                    c[n].p = parse(&w, c[n].text);
                    c[n].syms[0] = 328;
                    c[n].tolerance = op_rows[r].tolerance;
                    sizes(&w, &c[n], 1000 + r, false);
                    n++;
                }
        run_all(&w, c, n, target, 3);
    } TL_END(w.ctx)
    close_world(&w);
}

static void test_ops(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < RX_COUNT(all_targets); i++) ops_on(all_targets[i]);
}

/* ---- casts: all pairs ---- */
static void casts_on(const char *target)
{
    world w;
    open_world(&w);
    TL_TRY(w.ctx) {
        test_case *c = RX_NEWN(&w.a, test_case, 2 * RELAX_DTYPE_COUNT * RELAX_DTYPE_COUNT);
        uint32_t n = 0;
        for (relax_dtype f = 1; f < RELAX_DTYPE_COUNT; f++)
            for (relax_dtype t = 1; t < RELAX_DTYPE_COUNT; t++)
                for (int vector = 0; vector < 2; vector++) {
                    const char *expr = rx_strf(w.ctx, "%s(A[i])", rx_dtypes[t].name);
                    c[n].text = elementwise(&w, expr, rx_dtypes[f].name, rx_dtypes[t].name, vector);
                    c[n].p = parse(&w, c[n].text);
                    c[n].syms[0] = 328;
                    sizes(&w, &c[n], 7 + f, false);
                    n++;
                }
        run_all(&w, c, n, target, 2);
    } TL_END(w.ctx)
    close_world(&w);
}

static void test_casts(void **state)
{
    (void)state;
    casts_on("cpu:x86-64-v1");
    casts_on("cpu:x86-64-v3");
}

/* ---- structures: loops, lanes, accumulators, masks, local buffers; each row for several sizes ---- */
typedef struct program { const char *text; double tolerance; } program;
#define ROW(text) {text, 0}
#define NEAR(ulp, text) {text, ulp}
static const program programs[] = {
    ROW("prim scale(A: Buffer((n, m), f32), C: Buffer((n, m), f32)) { for i: parallel in n { for j in m { C[i, j] = "
        "A[i, j] * 2.0 } } }"),
    ROW("prim in_place(A: Buffer((n, m), i32)) { for i in n { for j in m { A[i, j] = A[i, j] * A[i, j] + 1 } } }"),
    ROW("prim transpose(A: Buffer((n, m), i16), C: Buffer((m, n), i16)) { for i in m { for j in n { C[i, j] = A[j, i] "
        "} } }"),
    ROW("prim pad(A: Buffer((n,), f32), C: Buffer((n + 6,), f32)) {"
        " for i in n + 6 { C[i] = select(i >= 3 and i < n + 3, A[i - 3], 9.0) } }"),
    ROW("prim pad_lanes(A: Buffer((n,), f32), C: Buffer((n + 8,), f32)) {"
        " for o in (n + 8) // 8 { for v: vector in 8 { C[o * 8 + v] = select(o * 8 + v >= 3 and o * 8 + v < n + 3, A[o "
        "* 8 + v - 3], 9.0) } } }"),
    ROW("prim reverse_lanes(A: Buffer((n,), i64), C: Buffer((n,), i64)) {"
        " for o in n // 4 { for v: vector in 4 { C[o * 4 + v] = A[n - 1 - (o * 4 + v)] } } }"),
    ROW("prim column_lanes(A: Buffer((n, m), f32), C: Buffer((m, n), f32)) {"
        " for j in m { for o in n // 8 { for v: vector in 8 { C[j, o * 8 + v] = A[o * 8 + v, j] } } } }"),
    ROW("prim scatter_lanes(A: Buffer((n, m), f32), C: Buffer((m, n), f32)) {"
        " for j in m { for o in n // 8 { for v: vector in 8 { C[j, o * 8 + v] = 0.0 } for v: vector in 8 { C[j, o * 8 "
        "+ v] += A[o * 8 + v, j] } } } }"),
    ROW("prim scatter_rows(A: Buffer((n, m), u8), C: Buffer((m, n), u8)) {"
        " for j in n { for o in m // 4 { for v: vector in 4 { C[o * 4 + v, j] = A[j, o * 4 + v] } } } }"),
    ROW("prim masked_tail(A: Buffer((n,), f32), C: Buffer((n,), f32)) {"
        " for o: parallel in (n + 7) // 8 { for v: vector in 8 { if o * 8 + v < n { C[o * 8 + v] = A[o * 8 + v] + 1.0 "
        "} } } }"),
    ROW("prim masked_else(A: Buffer((n,), i8), C: Buffer((n,), i8)) {"
        " for o in (n + 15) // 16 { for v: vector in 16 { if o * 16 + v < n { if A[o * 16 + v] < i8(0) { C[o * 16 + v] "
        "= i8(1) } else { C[o * 16 + v] = A[o * 16 + v] } } } } }"),
    ROW("prim uniform_if(A: Buffer((n, m), f64), C: Buffer((n, m), f64)) { for i in n { if i % 2 == 0 { for o in m // "
        "4 { for v: vector in 4 {"
        " C[i, o * 4 + v] = A[i, o * 4 + v] } } } else { for j in m { C[i, j] = f64(j) } } } }"),
    ROW("prim local_lane(A: Buffer((n, m), f32), C: Buffer((n, m), f32)) { for i in n { for o in m // 8 { for v: "
        "vector in 8 {"
        " T = alloc((3,), f32, local) for k in 3 { T[k] = A[i, o * 8 + v] * f32(k) } S = alloc((), f32, local) S[] = "
        "0.0"
        " for k: reduce in 3 { S[] += T[k] } C[i, o * 8 + v] = S[] } } } }"),
    ROW("prim local_gather(A: Buffer((n, 8), i32), C: Buffer((n, 8), i32)) { for i in n { for v: vector in 8 {"
        " T = alloc((8,), i32, local) for k in 8 { T[k] = A[i, k] * 3 } C[i, v] = T[(v * 5) % 8] } } }"),
    ROW("prim let_lanes(A: Buffer((n, m), f32), C: Buffer((n, m), f32)) { for i in n { for o in m // 8 { for v: vector "
        "in 8 {"
        " let j: i64 = o * 8 + v let x: f32 = A[i, j] * 0.5 C[i, j] = x * x + f32(j) } } } }"),
    ROW("prim blocks(A: Buffer((n, 32), i32), S: Buffer((n, 4), i32), C: Buffer((n, 32), i32)) { for i in n { for o in "
        "4 { for v: vector in 8 {"
        " C[i, o * 8 + v] = A[i, o * 8 + v] * S[i, (o * 8 + v) // 8] + i32((o * 8 + v) % 8) } } } }"),
    ROW("prim nibbles(A: Buffer((n, 16), u8), C: Buffer((n, 32), i8)) { for i in n { for v: vector in 32 {"
        " C[i, v] = i8(select(v < 16, A[i, v % 16] & u8(15), A[i, v % 16] >> u8(4))) - i8(8) } } }"),
    ROW("prim isum(A: Buffer((n, m), i32), C: Buffer((n,), i32)) { for i: parallel in n { for o: reduce in m // 8 init "
        "C[i] = 0 {"
        " for v: vector reduce in 8 { C[i] += A[i, o * 8 + v] } } for t: reduce in m % 8 { C[i] += A[i, m // 8 * 8 + "
        "t] } } }"),
    ROW("prim isub(A: Buffer((n, m), i16), C: Buffer((n,), i16)) { for i: parallel in n { C[i] = i16(5) for o: reduce "
        "in m // 8 {"
        " for v: vector reduce in 8 { C[i] -= A[i, o * 8 + v] } } } }"),
    ROW("prim iminmax(A: Buffer((n, m), u32), C: Buffer((n,), u32), D: Buffer((n,), u32)) { for i: parallel in n { "
        "C[i] = u32(4294967295) D[i] = u32(0)"
        " for o: reduce in m // 4 { for v: vector reduce in 4 { C[i] min= A[i, o * 4 + v] D[i] max= A[i, o * 4 + v] } "
        "} } }"),
    ROW("prim fmax(A: Buffer((n, m), f32), C: Buffer((n,), f32)) { for i in n { S = alloc((), f32, local) S[] = -100.0"
        " for o: reduce in m // 8 { for v: vector reduce in 8 { S[] max= A[i, o * 8 + v] } } C[i] = S[] } }"),
    ROW("prim iprod(A: Buffer((n, m), i64), C: Buffer((n,), i64)) { for i in n { for o: reduce in m // 4 init C[i] = 1 "
        "{"
        " for v: vector reduce in 4 { C[i] *= A[i, o * 4 + v] } } } }"),
    ROW("prim any_all(A: Buffer((n, m), bool), C: Buffer((n,), bool), D: Buffer((n,), bool)) { for i in n { C[i] = "
        "false D[i] = true"
        " for o: reduce in m // 8 { for v: vector reduce in 8 { C[i] = C[i] or A[i, o * 8 + v] D[i] = D[i] and A[i, o "
        "* 8 + v] } } } }"),
    ROW("prim masked_sum(A: Buffer((n, m), i32), C: Buffer((n,), i32)) { for i in n { S = alloc((), i32, local) S[] = 7"
        " for o: reduce in (m + 7) // 8 { for v: vector reduce in 8 { if o * 8 + v < m { S[] += A[i, o * 8 + v] } } } "
        "C[i] = S[] } }"),
    ROW("prim histogram(A: Buffer((n, m), u8), C: Buffer((256,), i32)) { for i: reduce in n init { for k in 256 { C[k] "
        "= 0 } } { for o: reduce in m // 4 {"
        " for v: vector reduce in 4 { C[i64(A[i, o * 4 + v])] += 1 } } } }"),
    ROW("prim two_sums(A: Buffer((n, m), i32), C: Buffer((n, 4), i32)) { for i in n { S = alloc((4,), i32, local) for "
        "k: unroll in 4 { S[k] = i32(k) }"
        " for o: reduce in m // 8 { for k: unroll in 4 { for v: vector reduce in 8 { S[k] += A[i, o * 8 + v] * i32(k + "
        "1) } } }"
        " for k: unroll in 4 { C[i, k] = S[k] } } }"),
    ROW("prim dynamic_acc(A: Buffer((n, m), i32), C: Buffer((n, 4), i32)) { for i in n { S = alloc((4,), i32, local) "
        "for k in 4 { S[k] = i32(k) }"
        " for o: reduce in m // 8 { for k in 4 { for v: vector reduce in 8 { S[k] += A[i, o * 8 + v] * i32(k + 1) } } }"
        " for k in 4 { C[i, k] = S[k] } } }"),
    ROW("prim odd_lanes(A: Buffer((n, 7), i32), C: Buffer((n,), i32)) { for i in n { for v: vector reduce in 7 init "
        "C[i] = 0 { C[i] += A[i, v] } } }"),
    ROW("prim first_max(A: Buffer((n, m), f32), C: Buffer((n,), i64)) { for i in n { B = alloc((), f32, local) B[] = "
        "-1000000.0 C[i] = 0"
        " for j: reduce in m { if A[i, j] > B[] { B[] = A[i, j] C[i] = j } } } }"),
    ROW("prim vector_argmax(A: Buffer((n, 8), f32), C: Buffer((n,), i64)) { for i in n { B = alloc((), f32, local) B[] "
        "= -1000000.0 C[i] = 0"
        " for j: vector reduce in 8 { if A[i, j] > B[] { B[] = A[i, j] C[i] = j } } } }"),
    ROW("prim phases(A: Buffer((n, m), f32), S: Buffer((n,), f32), C: Buffer((n, m), f32)) { for i: parallel in n { "
        "for j: reduce in m init S[i] = 0.0 { S[i] += A[i, j] } }"
        " for i in n { S[i] = S[i] + 1.0 } for i: parallel in n { for j in m { C[i, j] = A[i, j] / S[i] } } }"),
    ROW("prim sliding(A: Buffer((n, m), f32), C: Buffer((n, m), f32); w) { for i in n { for j in m { C[i, j] = "
        "select(j >= w, A[i, max(j - w, 0)], A[i, j]) } } }"),
    ROW("prim strided(A: Buffer((n, 8), i32, strides=(16, 2)), C: Buffer((n, 8), i32)) { for i in n { for v: vector in "
        "8 { C[i, v] = A[i, v] } } }"),
    ROW("prim halves(A: Buffer((n, m), f16), C: Buffer((n, m), f16), D: Buffer((n, m), bf16)) { for i in n { for o in "
        "m // 8 { for v: vector in 8 {"
        " C[i, o * 8 + v] = A[i, o * 8 + v] * A[i, o * 8 + v] + A[i, o * 8 + v] D[i, o * 8 + v] = bf16(A[i, o * 8 + "
        "v]) * bf16(0.3) } } } }"),
    ROW("prim take(A: Buffer((n, m), f32), I: Buffer((n,), i64), C: Buffer((n, m), f32)) { for i in n { for o in m // "
        "4 { for v: vector in 4 {"
        " C[i, o * 4 + v] = A[I[i] % n, o * 4 + v] } } } }"),
    ROW("prim take_lanes(A: Buffer((m,), f32), I: Buffer((n, 8), i32), C: Buffer((n, 8), f32)) { for i in n { for v: "
        "vector in 8 { if m > 0 {"
        " C[i, v] = A[i64(I[i, v]) % max(m, 1)] } } } }"),
    NEAR(16, "prim dot(A: Buffer((n, m), f32), B: Buffer((m,), f32), C: Buffer((n,), f32)) { for i: parallel in n { S "
             "= alloc((), f32, local) S[] = 1000.0"
             " for o: reduce in m // 8 { for v: vector reduce in 8 { S[] += A[i, o * 8 + v] * B[o * 8 + v] } } C[i] = "
             "S[] } }"),
    NEAR(16, "prim dot_fma(A: Buffer((n, m), f64), B: Buffer((m,), f64), C: Buffer((n,), f64)) { for i: parallel in n "
             "{ S = alloc((), f64, local) S[] = 1000.0"
             " for o: reduce in m // 4 { for v: vector reduce in 4 { S[] = fma(A[i, o * 4 + v], B[o * 4 + v], S[]) } } "
             "C[i] = S[] } }"),
    NEAR(16, "prim dot_outer(A: Buffer((n, m), f32), B: Buffer((m,), f32), C: Buffer((n,), f32)) { for i: parallel in "
             "n { S = alloc((), f32, local) S[] = 1000.0"
             " for v: vector reduce in 8 { for o: reduce in m // 8 { S[] += A[i, o * 8 + v] * B[o * 8 + v] } } C[i] = "
             "S[] } }"),
    NEAR(8, "prim softmax(A: Buffer((n, m), f32), C: Buffer((n, m), f32)) { for i: parallel in n { M = alloc((), f32, "
            "local) S = alloc((), f32, local) M[] = -1000000.0 S[] = 0.0"
            " for j: reduce in m { M[] max= A[i, j] } for o in m // 8 { for v: vector in 8 { C[i, o * 8 + v] = "
            "exp(A[i, o * 8 + v] - M[]) } }"
            " for t in m % 8 { C[i, m // 8 * 8 + t] = exp(A[i, m // 8 * 8 + t] - M[]) } for j: reduce in m { S[] += "
            "C[i, j] }"
            " for j in m { C[i, j] = C[i, j] / S[] } } }"),
    NEAR(4, "prim matmul(A: Buffer((n, m), f32), B: Buffer((m, 32), f32), C: Buffer((n, 32), f32)) { for i: parallel "
            "in n { for j in 2 {"
            " S = alloc((2, 8), f32, local) for u: unroll in 2 { for v: vector in 8 { S[u, v] = 0.0 } }"
            " for k: reduce in m { for u: unroll in 2 { for v: vector in 8 { S[u, v] = fma(A[i, k], B[k, j * 16 + u * "
            "8 + v], S[u, v]) } } }"
            " for u: unroll in 2 { for v: vector in 8 { C[i, j * 16 + u * 8 + v] = S[u, v] } } } } }"),
    NEAR(4, "prim rotate(A: Buffer((n, 16), f32), P: Buffer((n,), i32), C: Buffer((n, 16), f32)) { for i in n { for v: "
            "vector in 8 { let t: f32 = f32(P[i]) * exp2(f32(v) * -0.5) * 0.001"
            " C[i, v] = A[i, v] * cos(t) - A[i, v + 8] * sin(t) C[i, v + 8] = A[i, v] * sin(t) + A[i, v + 8] * cos(t) "
            "} } }"),
};
static const int64_t row_sizes[][3] = {{0, 0, 0}, {0, 5, 1},  {5, 0, 2},  {1, 1, 1},   {2, 8, 3},
                                       {3, 7, 2}, {7, 33, 4}, {8, 16, 0}, {17, 31, 5}, {33, 64, 40}};

static test_case program_case(world *w, const rx_prim *p, uint32_t i, uint32_t s)
{
    test_case c = {.p = (rx_prim *)p, .text = programs[i].text, .tolerance = programs[i].tolerance};
    rx_exvec syms = {0};
    for (int k = 0; k < 3; k++) c.syms[k] = row_sizes[s][k];
    rx_prim_symbols(w->ctx, &w->a, c.p, &syms);
    if (syms.n && !strcmp(rx_sym_of(syms.at[0])->name, "m")) {
        c.syms[0] = row_sizes[s][1];
        c.syms[1] = row_sizes[s][0];
    }
    sizes(w, &c, 50 + i, true);
    if (strstr(c.text, "strides"))
        fill(w, &c.in[0], RELAX_I32, 16 * c.syms[0] + 16, 3, true); /* past the compact size */
    return c;
}

static void structures_on(const char *target, int64_t nparts)
{
    world w;
    open_world(&w);
    TL_TRY(w.ctx) {
        uint32_t n = RX_COUNT(programs);
        const rx_prim **prims = RX_NEWN(&w.a, const rx_prim *, n);
        loaded l;
        for (uint32_t i = 0; i < n; i++) prims[i] = parse(&w, programs[i].text);
        compile(&w, target, prims, n, &l);
        for (uint32_t i = 0; l.dl && i < n; i++)
            for (uint32_t s = 0; s < RX_COUNT(row_sizes); s++) {
                test_case c = program_case(&w, prims[i], i, s);
                run_case(&w, &l, i, &c, nparts, target);
            }
        if (l.dl) rx_dl_close(l.dl);
    } TL_END(w.ctx)
    close_world(&w);
}

static void test_structures(void **state)
{
    (void)state;
    structures_on("cpu:x86-64-v1", 1);
    structures_on("cpu:x86-64-v3", 1);
    structures_on("cpu:x86-64-v3", 4);
}

/* ---- accuracy of the functions against long double; RELAX_VERBOSE=1 prints the table ---- */
typedef struct accuracy_row {
    const char *name;
    long double (*exact)(long double);
    double lo, hi, limit32, limit64;
} accuracy_row;
static long double rsqrt_exact(long double x) { return 1 / sqrtl(x); }
static const accuracy_row accuracy_rows[] = {
    {"exp", expl, -110, 90, 1.3, 1.3},
    {"exp", expl, -1, 1, 1.3, 1.3},
    {"exp", expl, -760, 720, 1.3, 1.3},
    {"exp2", exp2l, -155, 130, 1.3, 1.3},
    {"exp2", exp2l, -1085, 1030, 1.3, 1.3},
    {"log", logl, 0, 4, 1.3, 1.3},
    {"log", logl, 0.9, 1.1, 1.3, 1.3},
    {"log", logl, 0, 1e30, 1.3, 1.3},
    {"log", logl, 0, 1e-39, 1.3, 1.3},
    {"tanh", tanhl, -1, 1, 2, 2.5},
    {"tanh", tanhl, -12, 12, 2, 2.5},
    {"erf", erfl, -1.2, 1.2, 2, 2.5},
    {"erf", erfl, -8, 8, 2, 2.5},
    {"sin", sinl, -4, 4, 0.6, 1},
    {"sin", sinl, -1e6, 1e6, 0.6, 1},
    {"sin", sinl, -1e15, 1e15, 0.6, 1},
    {"sin", sinl, -3e38, 3e38, 0.6, 1},
    {"cos", cosl, -4, 4, 0.6, 1},
    {"cos", cosl, -1e6, 1e6, 0.6, 1},
    {"cos", cosl, -1e300, 1e300, 0.6, 1},
    {"sqrt", sqrtl, 0, 1e30, 0.5, 0.5},
    {"rsqrt", rsqrt_exact, 0, 1e30, 1.5, 1.5},
};

static double accuracy_of(const accuracy_row *r, const loaded *l, uint32_t k, relax_dtype t)
{
    enum { N = 32768 };
    static char in[N * 8], out[N * 8];
    int64_t n = N;
    uint64_t seed = 42;
    double worst = 0;
    for (int64_t i = 0; i < n; i++) {
        double u = (double)(random64(&seed) >> 11) * 0x1p-53;
        rx_store_f64(t, in + (size_t)i * rx_dtype_bytes(t), r->lo + u * (r->hi - r->lo));
    }
    void *bufs[3] = {in, in, out};
    assert_int_equal(run_kernel(l, k, bufs, &n, 1), 0);
    for (int64_t i = 0; i < n; i++) {
        long double x = (long double)rx_load_f64(t, in + (size_t)i * rx_dtype_bytes(t)), y = r->exact(x);
        double got = rx_load_f64(t, out + (size_t)i * rx_dtype_bytes(t)), e;
        if (t == RELAX_F32 && fabsl(y) > 3.4028235677e38L) y = y > 0 ? (long double)INFINITY : -(long double)INFINITY;
        if (isnan((double)y) || isnan(got)) {
            e = isnan((double)y) && isnan(got) ? 0 : 1e30;
        } else if (isinf((double)y) || isinf(got)) {
            e = isinf((double)y) && got == (double)y ? 0 : 1e30;
        } else {
            int bits = t == RELAX_F64 ? 53 : 24, low = t == RELAX_F64 ? -1074 : -149;
            e = (double)(fabsl((long double)got - y) /
                         ldexpl(1, y == 0 ? low : RX_MAX((y == 0 ? low : ilogbl(y)) - bits + 1, low)));
        }
        if (e > worst) worst = e;
    }
    return worst;
}

static void accuracy_on(const char *target)
{
    world w;
    open_world(&w);
    TL_TRY(w.ctx) {
        const rx_prim *p[2 * RX_COUNT(accuracy_rows)];
        loaded l;
        for (uint32_t i = 0; i < 2 * RX_COUNT(accuracy_rows); i++) {
            const char *t = i % 2 ? "f64" : "f32";
            p[i] = parse(&w, elementwise(&w, rx_strf(w.ctx, "%s(A[i])", accuracy_rows[i / 2].name), t, t, true));
        }
        compile(&w, target, p, RX_COUNT(p), &l);
        for (uint32_t i = 0; l.dl && i < RX_COUNT(p); i++) {
            const accuracy_row *r = &accuracy_rows[i / 2];
            double e = accuracy_of(r, &l, i, i % 2 ? RELAX_F64 : RELAX_F32), limit = i % 2 ? r->limit64 : r->limit32;
            if (getenv("RELAX_VERBOSE"))
                print_message("%-14s %-6s %s [%g, %g]: %.3f ulp\n", target, r->name, i % 2 ? "f64" : "f32", r->lo,
                              r->hi, e);
            if (!(e <= limit)) fail_msg("%s on %s [%g, %g]: %g ulp, limit %g", r->name, target, r->lo, r->hi, e, limit);
        }
        if (l.dl) rx_dl_close(l.dl);
    } TL_END(w.ctx)
    close_world(&w);
}

static void test_accuracy(void **state)
{
    (void)state;
    accuracy_on("cpu:x86-64-v1");
    accuracy_on("cpu:x86-64-v3");
    accuracy_on("cpu:aarch64");
}

/* ---- what the default schedule makes of plain loops ---- */
static const program plain[] = {
    NEAR(-1e-5,
         "prim mm(A: Buffer((n, m), f32), B: Buffer((m, n), f32), C: Buffer((n, n), f32)) { for i in n { for j in n {"
         " for r: reduce in m init C[i, j] = 0.0 { C[i, j] += A[i, r] * B[r, j] } } } }"),
    NEAR(-1e-5,
         "prim mmt(A: Buffer((n, m), f32), B: Buffer((n, m), f32), C: Buffer((n, n), f32)) { for i in n { for j in n {"
         " for r: reduce in m init C[i, j] = 0.0 { C[i, j] += A[i, r] * B[j, r] } } } }"),
    NEAR(-1e-5,
         "prim mmh(A: Buffer((n, m), f32), B: Buffer((n, m), f16), C: Buffer((n, n), f32)) { for i in n { for j in n {"
         " for r: reduce in m init C[i, j] = 0.0 { C[i, j] += A[i, r] * f32(B[j, r]) } } } }"),
    ROW("prim imm(A: Buffer((n, m), i8), B: Buffer((n, m), i8), C: Buffer((n, n), i32)) { for i in n { for j in n {"
        " for r: reduce in m init C[i, j] = 0 { C[i, j] += i32(A[i, r]) * i32(B[j, r]) } } } }"),
    NEAR(-1e-5, "prim rms(X: Buffer((n, m), f32), W: Buffer((m,), f32), Y: Buffer((n, m), f32)) { for i in n { S = "
                "alloc((), f32, local)"
                " for r: reduce in m init S[] = 0.0 { S[] += X[i, r] * X[i, r] } for j in m { Y[i, j] = X[i, j] * "
                "rsqrt(S[] / f32(max(m, 1)) + 1e-6) * W[j] } } }"),
    NEAR(-1e-5, "prim softmax(A: Buffer((n, m), f32), C: Buffer((n, m), f32)) { for i in n { M = alloc((), f32, local) "
                "S = alloc((), f32, local)"
                " for r: reduce in m init M[] = -3e38 { M[] max= A[i, r] } for r: reduce in m init S[] = 0.0 { S[] += "
                "exp(A[i, r] - M[]) }"
                " for j in m { C[i, j] = exp(A[i, j] - M[]) / S[] } } }"),
    NEAR(-1e-5, "prim silu(A: Buffer((n, m), f32), C: Buffer((n, m), f32)) { for i in n { for j in m { C[i, j] = A[i, "
                "j] / (1.0 + exp(-A[i, j])) } } }"),
    NEAR(-2e-3, "prim gelu16(A: Buffer((n, m), f16), C: Buffer((n, m), f16)) { for i in n { for j in m {"
                " C[i, j] = f16(0.5 * f32(A[i, j]) * (1.0 + erf(f32(A[i, j]) * 0.70710678))) } } }"),
    ROW("prim colsum(A: Buffer((n, m), i32), C: Buffer((m,), i32)) { for j in m { for i: reduce in n init C[j] = 0 { "
        "C[j] += A[i, j] } } }"),
    ROW("prim argmax(A: Buffer((n, m), f32), C: Buffer((n,), i64)) { for i in n { V = alloc((), f32, local) V[] = "
        "-3e38 C[i] = 0"
        " for j: reduce in m { if A[i, j] > V[] { V[] = A[i, j] C[i] = j } } } }"),
    ROW("prim reshape(A: Buffer((n, m), f32), C: Buffer((m, n), f32)) { for i in m { for j in n { C[i, j] = A[(i * n + "
        "j) // m, (i * n + j) % m] } } }"),
    ROW("prim heads(A: Buffer((n, 48), f32), C: Buffer((3, n, 16), f32)) { for h in 3 { for i in n { for d in 16 { "
        "C[h, i, d] = A[i, h * 16 + d] } } } }"),
    ROW("prim causal(A: Buffer((n, n), f32), C: Buffer((n, n), f32)) { for i in n { for j in n { C[i, j] = select(j <= "
        "i, A[i, j] * 0.125, -1e30) } } }"),
    ROW("prim concat(A: Buffer((n, m), i16), B: Buffer((n, 5), i16), C: Buffer((n, m + 5), i16)) { for i in n { for j "
        "in m + 5 {"
        " C[i, j] = select(j < m, A[i, j], B[i, j - m]) } } }"),
    ROW("prim decode(Q: Buffer((n, 18), u8), C: Buffer((n, 32), f32)) { for i in n { for j in 32 {"
        " C[i, j] = f32(i32((Q[i, 2 + j % 16] >> u8(j // 16 * 4)) & u8(15)) - i32(8)) * f32(bitcast(f16, u16(Q[i, 0]) "
        "| (u16(Q[i, 1]) << u16(8)) & u16(16383))) } } }"),
};

static void test_schedules(void **state)
{
    static const int64_t edge[] = {0, 1, 2, 3, 7, 8, 15, 16, 17, 31, 33, 65};
    world w;
    (void)state;
    open_world(&w);
    TL_TRY(w.ctx) {
        const relax_target *t = rx_target_parse(w.ctx, "cpu", 3);
        const rx_prim *prims[RX_COUNT(plain)], *source[RX_COUNT(plain)];
        loaded l;
        for (uint32_t i = 0; i < RX_COUNT(plain); i++) {
            source[i] = parse(&w, plain[i].text);
            prims[i] = rx_schedule_default(&w.tb, source[i], t);
        }
        compile(&w, "cpu", prims, RX_COUNT(prims), &l);
        for (uint32_t i = 0; l.dl && i < RX_COUNT(plain); i++)
            for (uint32_t a = 0; a < RX_COUNT(edge); a++)
                for (uint32_t b = a % 3; b < RX_COUNT(edge); b += 3) {
                    test_case c = {.p = (rx_prim *)source[i], .text = plain[i].text, .tolerance = plain[i].tolerance};
                    c.syms[0] = edge[a];
                    c.syms[1] = edge[b];
                    sizes(&w, &c, 90 + i, true);
                    run_case(&w, &l, i, &c, 1 + (a + b) % 3, "cpu");
                }
        if (l.dl) rx_dl_close(l.dl);
    } TL_END(w.ctx)
    close_world(&w);
}

/* ---- contexts in two threads compile at the same time ---- */
static void compile_some(void *arg)
{
    world w;
    rx_frame f;
    open_world(&w);
    if (RX_ENTER(&w.ctx->heap, &f)) {
        const rx_prim *prims[RX_COUNT(programs)];
        loaded l;
        for (uint32_t i = 0; i < RX_COUNT(programs); i++) prims[i] = parse(&w, programs[i].text);
        for (int round = 0; round < 2; round++) {
            compile(&w, round ? "cpu:x86-64-v3" : "cpu:aarch64", prims, RX_COUNT(prims), &l);
            if (l.dl) rx_dl_close(l.dl);
        }
        rx_leave(&w.ctx->heap, &f);
        *(bool *)arg = true;
    }
    close_world(&w);
}

static void test_threads(void **state)
{
    rx_thread t[2];
    bool done[2] = {false, false};
    (void)state;
    for (int i = 0; i < 2; i++) assert_int_equal(rx_thread_start(&t[i], compile_some, &done[i]), 0);
    for (int i = 0; i < 2; i++) rx_thread_join(&t[i]);
    assert_true(done[0] && done[1]);
}

/* ---- errors ---- */
static void test_checks(void **state)
{
    static const char *const text = "prim gather(A: Buffer((n,), f32), I: Buffer((m,), i64), C: Buffer((m,), f32)) {"
                                    " for i: parallel in m { assert I[i] >= 0 and I[i] < n, index \"index\" C[i] = "
                                    "A[I[i]] } for i: parallel in m { C[i] = C[i] + 1.0 } }";
    static const char *const lanes = "prim gather(A: Buffer((n,), f32), I: Buffer((m,), i64), C: Buffer((m,), f32)) {"
        " for i: parallel in m // 4 { for v: vector in 4 { if I[i * 4 + v] != -7 {"
        " assert I[i * 4 + v] >= 0 and I[i * 4 + v] < n, index \"index\" C[i * 4 + v] = A[I[i * 4 + v]] } } } }";
    world w;
    (void)state;
    open_world(&w);
    TL_TRY(w.ctx) {
        const rx_prim *p[2] = {parse(&w, text), parse(&w, lanes)};
        loaded l;
        compile(&w, "cpu", p, 2, &l);
        for (uint32_t k = 0; l.dl && k < 2; k++) {
            float a[4] = {10, 20, 30, 40}, c[4] = {0};
            int64_t i[4] = {3, 0, 2, 1}, syms[2] = {4, 4};
            void *bufs[3] = {a, i, c};
            assert_int_equal(run_kernel(&l, k, bufs, syms, 2), 0);
            assert_true(c[0] == (k ? 40 : 41) && c[3] == (k ? 20 : 21));
            i[2] = -7;
            c[2] = 5;
            assert_int_equal(run_kernel(&l, k, bufs, syms, 2), k ? 0 : RXE_INDEX);
            assert_true(c[2] == 5);
            i[1] = INT64_MIN;
            assert_int_equal(run_kernel(&l, k, bufs, syms, 1), RXE_INDEX);
        }
        if (l.dl) rx_dl_close(l.dl);
    } TL_END(w.ctx)
    close_world(&w);
}

static int32_t cancel_at_once(void *user) { return ++*(int *)user > 1; }
static void count_progress(void *user, const char *phase, int64_t done, int64_t total)
{
    (void)total;
    assert_string_equal(phase, "codegen");
    *(int64_t *)user = done;
}

static void test_failures(void **state)
{
    static const char *const good = "prim f(A: Buffer((n,), f32)) { for i in n { A[i] = 1.0 } }";
    world w;
    (void)state;
    open_world(&w);
    rx_prim *p = NULL, *bad = NULL;
    const rx_prim *many[40];
    loaded l;
    TL_TRY(w.ctx) {
        p = parse(&w, good);
        bad = parse(&w, good);
        bad->params[0]->param = 3;
        for (uint32_t i = 0; i < RX_COUNT(many); i++) many[i] = p;
    } TL_END(w.ctx)
    TL_TRY(w.ctx) { compile(&w, "cpu", (const rx_prim *[]){bad}, 1, &l); } TL_END_FAILS(w.ctx, RXE_CODEGEN)
    int calls = 0;
    int64_t done = 0;
    w.ctx->cancel = cancel_at_once;
    w.ctx->cancel_user = &calls;
    TL_TRY(w.ctx) { compile(&w, "cpu", many, RX_COUNT(many), &l); } TL_END_FAILS(w.ctx, RXE_CANCELLED)
    w.ctx->cancel = NULL;
    w.ctx->progress = count_progress;
    w.ctx->progress_user = &done;
    TL_TRY(w.ctx) {
        rx_code again, null;
        rx_target_parse(w.ctx, "cpu", 3);
        compile(&w, "cpu", many, RX_COUNT(many), &l);
        assert_int_equal(done, RX_COUNT(many));
        rx_codegen(w.ctx, &w.a, rx_target_parse(w.ctx, "cpu", 3), many, RX_COUNT(many), NULL, &again);
        assert_int_equal(again.so_size, l.code.so_size);
        assert_memory_equal(again.so, l.code.so, again.so_size);
        rx_dl_close(l.dl);
        rx_codegen_null(w.ctx, &w.a, NULL, many, 3, NULL, &null);
        assert_int_equal(null.nentries, 3);
    } TL_END(w.ctx)
    TL_TRY(w.ctx) { rx_target_parse(w.ctx, "cpu:pentium9+magic", 18); } TL_END_FAILS(w.ctx, RXE_TARGET)
    close_world(&w);
}

/* the widest machines: code is made, not run */
static void test_avx512(void **state)
{
    (void)state;
    structures_on("cpu:x86-64-v4", 1);
    structures_on("cpu:x86-64-v4+avx512vnni+avx512bf16", 1);
    accuracy_on("cpu:x86-64-v4");
}

/* ---- aarch64, under an emulator ---- */
static void put_bytes(rx_buf *b, const void *p, size_t n) { rx_putn(b, p, n); }

static void put_job(world *w, rx_buf *b, const loaded *l, uint32_t k, const test_case *c)
{
    const rx_kernel_code *code = &l->code.kernels[k];
    rx_exvec syms = {0};
    rx_prim_symbols(w->ctx, &w->a, c->p, &syms);
    uint32_t head[4] = {code->first, code->nphases, c->p->nparams, syms.n};
    put_bytes(b, head, sizeof head);
    put_bytes(b, code->parallel, code->nphases);
    put_bytes(b, c->syms, syms.n * sizeof *c->syms);
    for (uint32_t i = 0; i < c->p->nparams; i++) {
        uint64_t size = (uint64_t)c->in[i].n * rx_dtype_bytes(c->in[i].t);
        put_bytes(b, &size, 8);
        put_bytes(b, c->in[i].data, size);
    }
}

static void check_job(world *w, const uint8_t **at, const test_case *c)
{
    array want[MAXP], got[MAXP];
    void *wb[MAXP];
    int32_t err;
    memcpy(&err, *at, 4);
    *at += 4;
    assert_int_equal(err, 0);
    copy_arrays(w, c, want, wb);
    rx_interp_prim(w->ctx, c->p, wb, c->syms);
    for (uint32_t i = 0; i < c->p->nparams; i++) {
        size_t size = (size_t)c->in[i].n * rx_dtype_bytes(c->in[i].t);
        got[i] = c->in[i];
        got[i].data = rx_arena_alloc(&w->a, size + 1, 64);
        memcpy(got[i].data, *at, size);
        *at += size;
        char what[700];
        snprintf(what, sizeof what, "aarch64, parameter %u of\n%.600s\n", i, c->text);
        compare(what, &got[i], &want[i], c->tolerance);
    }
}

static bool shell(const char *command) { return system(command) == 0; }

static void emulate(world *w, const char *dir, test_case *cases, const uint32_t *kernel, uint32_t n, const loaded *l)
{
    char cmd[1024], path[256];
    rx_buf b;
    rx_file out;
    rx_buf_init(&b, &w->a);
    put_bytes(&b, &n, 4);
    for (uint32_t i = 0; i < n; i++) put_job(w, &b, l, kernel[i], &cases[i]);
    snprintf(path, sizeof path, "%s/k.so", dir);
    assert_int_equal(rx_file_write(path, l->code.so, l->code.so_size), 0);
    snprintf(path, sizeof path, "%s/jobs", dir);
    assert_int_equal(rx_file_write(path, b.at, b.n), 0);
    snprintf(cmd, sizeof cmd, "qemu-aarch64 -L /usr/aarch64-linux-gnu %s/run %s/k.so %s/jobs %s/results", dir, dir, dir,
             dir);
    assert_true(shell(cmd));
    snprintf(path, sizeof path, "%s/results", dir);
    assert_int_equal(rx_file_map(path, &out), 0);
    const uint8_t *at = out.at;
    for (uint32_t i = 0; i < n; i++) check_job(w, &at, &cases[i]);
    assert_ptr_equal(at, out.at + out.size);
    rx_file_unmap(&out);
}

static void aarch64_cases(world *w, const char *dir)
{
    uint32_t np = RX_COUNT(programs), n = 0;
    test_case *c = RX_NEWN(&w->a, test_case, 4096);
    const rx_prim **prims = RX_NEWN(&w->a, const rx_prim *, 1024);
    uint32_t *kernel = RX_NEWN(&w->a, uint32_t, 4096);
    loaded l;
    for (uint32_t i = 0; i < np; i++) {
        prims[i] = parse(w, programs[i].text);
        for (uint32_t s = 0; s < RX_COUNT(row_sizes); s++) {
            kernel[n] = i;
            c[n++] = program_case(w, prims[i], i, s);
        }
    }
    for (uint32_t r = 0; r < RX_COUNT(op_rows); r++)
        for (uint32_t d = 0; d < RX_COUNT(dtypes); d++) {
            const rx_dtype_info *t = &rx_dtypes[dtypes[d]];
            if (!strchr(op_rows[r].kinds, t->kind)) continue;
            const char *expr = substitute(w, op_rows[r].expr, t->name);
            c[n].text = elementwise(w, expr, t->name, op_rows[r].result[0] == 'T' ? t->name : "bool", (r + d) % 2);
            prims[np] = c[n].p = parse(w, c[n].text);
            c[n].syms[0] = 328;
            c[n].tolerance = op_rows[r].tolerance;
            sizes(w, &c[n], 1000 + r, false);
            kernel[n++] = np++;
        }
    compile(w, "cpu:aarch64", prims, np, &l);
    emulate(w, dir, c, kernel, n, &l);
}

static void test_aarch64(void **state)
{
    char dir[] = "/tmp/relax-test-XXXXXX", cmd[512];
    (void)state;
    if (!shell("aarch64-linux-gnu-gcc --version >/dev/null 2>&1") || !shell("qemu-aarch64 --version >/dev/null 2>&1"))
        skip();
    assert_non_null(mkdtemp(dir));
    snprintf(cmd, sizeof cmd,
             "aarch64-linux-gnu-gcc -std=c17 -D_GNU_SOURCE -O1 -Isrc tests/unit/cross/run_kernels.c -o %s/run -ldl",
             dir);
    assert_true(shell(cmd));
    world w;
    open_world(&w);
    TL_TRY(w.ctx) { aarch64_cases(&w, dir); } TL_END(w.ctx)
    close_world(&w);
    snprintf(cmd, sizeof cmd, "rm -r %s", dir);
    assert_true(shell(cmd));
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_structures), cmocka_unit_test(test_ops),      cmocka_unit_test(test_casts),
        cmocka_unit_test(test_accuracy),   cmocka_unit_test(test_checks),   cmocka_unit_test(test_failures),
        cmocka_unit_test(test_avx512),     cmocka_unit_test(test_aarch64),
        cmocka_unit_test(test_schedules),  cmocka_unit_test(test_threads),
    };
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
