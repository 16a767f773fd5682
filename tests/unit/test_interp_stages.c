/* test_interp_stages.c: one program, every stage: operators by the interpreter, their tensor programs,
 * destination-passing calls, the planned form. All must agree, each must verify and survive printing and parsing.
 * Shapes 0, 1, 2, primes, tile sizes. */
#include "testlib.h"

#include "graph/op.h"
#include "interp/interp.h"
#include "op/op.h"
#include "pass/pass.h"

#include <math.h>

/* parameters, body, range of integers that are made up */
static const struct { const char *params, *body; int lo, hi;
} rows[] = {
    {"x: Tensor((n, m), f32)", "y = exp(x) z = silu(y) w = gelu(z) v = tanh(w) return v", 0, 0},
    {"x: Tensor((n, m), f32)",
     "a = abs(x) b = sqrt(a) c = rsqrt(a) d = log(a) e = erf(x) f = sigmoid(x) g = gelu_tanh(x) h = sin(x) i = cos(x) "
     "t = (b, c, d, e, f, g, h, i) return t",
     0, 0},
    {"x: Tensor((n, m), f16)",
     "a = negative(x) b = square(a) c = exp(b) d = relu(x) e = floor(x) f = ceil(x) g = round(x) h = trunc(x) "
     "t = (c, d, e, f, g, h) return t",
     0, 0},
    {"x: Tensor((n, m), bf16), y: Tensor((m,), bf16)",
     "a = add(x, y) b = multiply(a, y) c = subtract(b, x) d = maximum(c, y) return d", 0, 0},
    {"x: Tensor((n, m), i8), y: Tensor((n, 1), i8)",
     "a = add(x, y) b = multiply(a, x) c = negative(b) d = abs(c) e = power(x, y) "
     "t = (d, e) return t",
     -90, 90},
    {"x: Tensor((n, m), i32), y: Tensor((m,), i32)",
     "a = divide(x, y) b = floor_divide(x, y) c = floor_mod(x, y) t = (a, b, c) return t", 1, 9},
    {"x: Tensor((n, m), u8), y: Tensor((n, m), u8)",
     "a = left_shift(x, y) b = right_shift(x, y) c = bitwise_xor(a, b) d = bitwise_and(x, c) "
     "e = minimum(x, y) t = (d, e) return t",
     0, 255},
    {"x: Tensor((n, m), f64), y: Tensor((n, m), f64)",
     "a = less(x, y) b = greater_equal(x, y) c = logical_xor(a, b) d = where(a, x, y) "
     "e = not_equal(x, y) t = (c, d, e) return t",
     0, 0},
    {"x: Tensor((n, m), f32), y: Tensor((n, m), f32)",
     "a = floor_divide(x, y) b = floor_mod(x, y) c = divide(x, y) t = (a, b, c) return t", 0, 0},
    {"x: Tensor((n, m), f32)",
     "a = astype(x, dtype=i8) b = astype(a, dtype=f16) c = astype(x, dtype=bool) d = isnan(x) e = clip(x, min=-1.0, "
     "max=0.5) "
     "t = (b, c, d, e) return t",
     0, 0},
    {"x: Tensor((n, m, 3), f32)",
     "a = sum(x, axis=(1,)) b = mean(x, axis=(0, 2), keepdims=true) c = max(x, axis=(-1,)) d = min(x) "
     "e = prod(x, axis=(2,)) f = variance(x, axis=(2,)) t = (a, b, c, d, e, f) return t",
     0, 0},
    {"x: Tensor((n, m), i16)",
     "a = sum(x, axis=(1,)) b = prod(x, axis=(1,)) c = max(x, axis=(0,)) d = argmax(x, axis=1) e = argmin(x) "
     "f = cumsum(x, axis=0) g = cumsum(x, exclusive=true) t = (a, b, c, d, e, f, g) return t",
     -300, 300},
    {"x: Tensor((n, m), f32)",
     "a = argmax(x, axis=1) b = argmin(x, axis=0, keepdims=true) c = cumsum(x, axis=1) t = (a, b, c) return t", 0, 0},
    {"x: Tensor((n, m), f32)",
     "a = zeros(shape(n, m + 1), dtype=f16) b = ones_like(x) c = full(shape(m), const(f32, (), [1.5])) d = "
     "arange(end=n + 2) "
     "e = eye(n=n, m=m, k=1) f = tril(x) g = triu(x, k=-1) t = (a, b, c, d, e, f, g) return t",
     0, 0},
    {"x: Tensor((m, n), f32), i: Tensor((m,), i64)",
     "a = take(x, i, axis=0, mode=clip) b = take(x, i, axis=0, mode=wrap) c = one_hot(i, depth=4) "
     "t = (a, b, c) return t",
     -5, 5},
    {"x: Tensor((4, n), f32), i: Tensor((m, 2), i32)",
     "a = take(x, i, axis=0) b = take(x, i, axis=-2) t = (a, b) return t", -4, 3},
    {"x: Tensor((n, m), f32)",
     "a = strided_slice(x, axes=(0,), begin=(1,), end=(n,)) b = strided_slice(x, axes=(1,), begin=(-1,), end=(-100,), "
     "strides=(-2,)) "
     "c = strided_slice(x, axes=(0, 1), begin=(0, 1), end=(2, 3), strides=(1, 2)) t = (a, b, c) return t",
     0, 0},
    {"x: Tensor((4, n), f32), i: Tensor((2, n), i64), u: Tensor((2, n), f32)",
     "a = gather_elements(x, i) b = scatter_elements(x, i, u) "
     "c = scatter_elements(x, i, u, reduction=add) d = scatter_elements(x, i, u, reduction=max) t = (a, b, c, d) "
     "return t",
     -4, 3},
    {"x: Tensor((3, 4, n), f32), i: Tensor((m, 2), i64), u: Tensor((m, n), f32)",
     "a = gather_nd(x, i) b = scatter_nd(x, i, u) "
     "t = (a, b) return t",
     -3, 2},
    {"x: Tensor((5, n), f32), u: Tensor((m, n), f32), i: Tensor((m,), i64)",
     "a = index_put(x, u, i) b = index_put(x, u, i, accumulate=true) "
     "t = (a, b) return t",
     -5, 4},
    {"x: Tensor((n, m), f32), w: Tensor((m, 6), f32)",
     "a = matmul(x, w) b = matmul(w, x, transpose_a=true, transpose_b=true) t = (a, b) return t", 0, 0},
    {"x: Tensor((n, 3, m), f16), w: Tensor((m,), f16)",
     "a = matmul(x, w) b = matmul(x, x, transpose_b=true) t = (a, b) return t", 0, 0},
    {"x: Tensor((n, m), i8), w: Tensor((m, 3), i8)",
     "a = matmul(x, w) b = matmul(x, w, out_dtype=i32) t = (a, b) return t", -90, 90},
    {"x: Tensor((n, m, 2), f32)",
     "a = reshape(x, shape(m, n*2)) b = permute_dims(x, axes=(2, 0, 1)) c = expand_dims(x, axis=(0, -1)) d = "
     "squeeze(c, axis=(0,)) "
     "e = flatten(x) f = flip(x, axis=1) t = (a, b, d, e, f) return t",
     0, 0},
    {"x: Tensor((n, m), f32), y: Tensor((n, m), f32)",
     "a = concat(x, y, axis=0) b = concat(x, y, x, axis=1) c = stack(x, y, axis=1) d = tile(x, repeats=(2, 1)) "
     "e = repeat(x, repeats=3, axis=1) f = repeat(x, repeats=2) t = (a, b, c, d, e, f) return t",
     0, 0},
    {"x: Tensor((n, m), f32)",
     "s = split(x, sections=2, axis=1) a = s[0] b = s[1] c = split(x, indices=(1, 3), axis=0) d = c[1] e = "
     "broadcast_to(x, shape(2, n, m)) "
     "t = (a, b, d, e) return t",
     0, 0},
    {"x: Tensor((n, m), f32)", "a = sort(x) b = argsort(x, axis=0, descending=true) t = (a, b) return t", 0, 0},
    {"x: Tensor((n, 5), i32)",
     "k = topk(x, k=3) a = k[0] b = k[1] c = topk(x, k=2, largest=false, ret_type=values) t = (a, b, c) return t", -3,
     3},
    {"x: Tensor((n, m), i32)",
     "u = unique(x) v = match_cast(u, Tensor((k,), i32)) w = add(v, v) z = nonzero(x) t = (w, z) return t", -3, 3},
    {"x: Tensor((n, m), f32)", "a = softmax(x) b = softmax(x, axis=0) c = log_softmax(x) t = (a, b, c) return t", 0, 0},
    {"x: Tensor((n, m), f16), w: Tensor((m,), f16), b: Tensor((m,), f16)",
     "a = rms_norm(x, w) c = layer_norm(x, w, b) t = (a, c) return t", 0, 0},
    {"x: Tensor((n, 2, 8), f32), p: Tensor((n,), i64)",
     "a = rope(x, p) b = rope(x, prim(m), style=neox, rot_dims=4, base=500.0) t = (a, b) return t", 0, 50},
    {"q: Tensor((2, n, 4, 8), f32), k: Tensor((2, m, 2, 8), f32), v: Tensor((2, m, 2, 4), f32)",
     "a = attention(q, k, v) b = attention(q, k, v, causal=true, window=3) "
     "c = attention(q, k, v, softcap=2.0, scale=0.5) t = (a, b, c) return t",
     0, 0},
    {"q: Tensor((n, 4, 8), f32), k: Tensor((n + m, 2, 8), f16), v: Tensor((n + m, 2, 8), f16)",
     "a = attention_cache(q, k, v, prim(m)) "
     "b = attention_cache(q, k, v, prim(0), window=2) t = (a, b) return t",
     0, 0},
    {"c: Tensor((n + m, 2), f16), x: Tensor((n, 2), f32)", "d = kv_append(c, x, prim(m)) return d", 0, 0},
    {"x: Tensor((n, m), f32)", "s = shape_of(x) a = shape_to_tensor(shape(n, m)) b = reshape(x, s) t = (a, b) return t",
     0, 0},
    {"p: Tensor((3, m), f32), u: Tensor((n, 1), f32), r: Tensor((n, 1), i64)",
     "a = multinomial_from_uniform(p, u, r) return a", 0, 2},
    {"x: Tensor((n, m), f32), y: Tensor((n, m), f32)",
     "dataflow { a = add(x, y) b = @inner(a, y) c = multiply(b, a) output c } d = exp(c) return d", 0, 0},
    {"x: Tensor((n, m), f32), c: Tensor((), bool)",
     "a = add(x, x) r = if c { b = exp(a) yield b } else { d = add(a, x) yield d } e = add(r, a) return e", 0, 1},
    {"x: Tensor((n, m), f32)",
     "a = reshape(x, shape(m, n)) b = exp(a) c = reshape(b, shape(n, m)) d = add(c, x) e = permute_dims(d) return e", 0,
     0},
};
#define INNER                                                                                                          \
    "private fn inner(x: Tensor((a, b), f32), y: Tensor((a, b), f32)) -> Tensor((a, b), f32) { z = subtract(x, y) w "  \
    "= tanh(z) return w }\n"

static const char *const stages[] = {
    "legalize,schedule,lower-calls,plan-memory",
    "legalize",
    "normalize,inline,cse,dce",
    "normalize,inline,cse,dce,legalize,cse,dce,lower-calls",
    "legalize,lower-calls,plan-memory",
    "normalize,inline,fold-constant,cse,dce,legalize,cse,dce,lower-calls,plan-memory",
};

static uint32_t next(uint32_t *seed)
{
    *seed = *seed * 1664525u + 1013904223u;
    return *seed >> 8;
}

static rx_ival *made_up(rx_interp *in, rx_ty t, const rx_map *env, int lo, int hi, uint32_t *seed)
{
    int64_t d[RX_MAX_RANK];
    for (int32_t i = 0; i < t->ndim; i++)
        assert_int_equal(rx_eval(in->ctx, t->dims[i], env, &d[i]), RX_EVAL_OK);
    rx_ival *v = rx_ival_tensor(in->ctx, in->a, t->dtype, d, t->ndim, NULL);
    size_t w = rx_dtype_bytes(t->dtype);
    for (int64_t i = 0; i < rx_ival_count(v); i++) {
        char *p = (char *)v->data + (size_t)i * w;
        if (rx_dtype_is_float(t->dtype))
            rx_store_f64(t->dtype, p, (double)(next(seed) % 4001) / 1000 - 2);
        else
            rx_store_i64(t->dtype, p, lo + (int64_t)(next(seed) % (uint32_t)(hi - lo + 1)));
    }
    return v;
}

static bool near(relax_dtype t, const void *a, const void *b)
{
    if (!rx_dtype_is_float(t))
        return !memcmp(a, b, rx_dtype_bytes(t));
    double x = rx_load_f64(t, a), y = rx_load_f64(t, b),
           e = t == RELAX_F64   ? 1e-12
               : t == RELAX_F32 ? 2e-5
               : t == RELAX_F16 ? 4e-3
                                : 3e-2;
    return (isnan(x) && isnan(y)) || x == y || fabs(x - y) <= e * fmax(1, fmax(fabs(x), fabs(y)));
}

static bool same(const rx_ival *a, const rx_ival *b)
{
    if (a->kind != b->kind || a->dtype != b->dtype || a->ndim != b->ndim || a->n != b->n)
        return false;
    for (uint32_t i = 0; i < a->n; i++)
        if (!same(a->at[i], b->at[i]))
            return false;
    for (int32_t i = 0; i < a->ndim && a->dims; i++)
        if (a->dims[i] != b->dims[i])
            return false;
    if (a->kind != RX_I_TENSOR)
        return a->bits == b->bits;
    size_t w = rx_dtype_bytes(a->dtype);
    for (size_t i = 0; i < a->bytes; i += w)
        if (!near(a->dtype, (const char *)a->data + i, (const char *)b->data + i))
            return false;
    return true;
}

/* result of main for n and m; NULL: an error (the same must come at every stage) */
static rx_ival *run(relax_context *ctx, rx_arena *a, relax_module *m, int64_t nn, int64_t mm, int lo, int hi, int *err)
{
    rx_frame fr;
    rx_ival *volatile r = NULL;
    *err = 0;
    if (RX_ENTER(&ctx->heap, &fr)) {
        rx_interp in = {.ctx = ctx, .a = a};
        relax_function *f = rx_module_get(m, "main");
        rx_map env;
        uint32_t seed = 7;
        rx_ival *args[8];
        rx_map_init(&env, a);
        for (uint32_t i = 0; i < f->syms.n; i++)
            rx_map_put(&env, RX_KEY(f->syms.at[i]), rx_sym_of(f->syms.at[i])->name[0] == 'm' ? &mm : &nn);
        for (uint32_t i = 0; i < f->nparams; i++)
            args[i] = f->params[i]->type->kind == RX_TY_PRIM ? rx_ival_int(a, mm)
                                                             : made_up(&in, f->params[i]->type, &env, lo, hi, &seed);
        r = rx_interp_run(&in, f, args, f->nparams);
        rx_leave(&ctx->heap, &fr);
    } else {
        *err = tl_last_error(ctx);
        tl_print_diags(ctx);
        rx_diag_clear(ctx);
    }
    return r;
}

static const char *print(relax_context *ctx, relax_module *m)
{
    rx_buf b;
    rx_buf_init(&b, rx_scratch(&ctx->heap));
    rx_print_module(&b, m);
    return b.at;
}

static int compare_stage(relax_context *ctx, relax_module *m, const char *passes, int lo, int hi)
{
    static const int64_t sizes[][2] = {{0, 3}, {1, 1}, {2, 5}, {3, 4}, {5, 1}, {7, 3}, {8, 16}, {17, 2}};
    relax_module *low = rx_module_clone(m);
    relax_pipeline *p = rx_pipeline_parse(ctx, passes);
    int wrong = 0;
    p->verify_each = true;
    rx_pipeline_run(p, low, rx_target_parse(ctx, "cpu:x86-64-v3", 13));
    rx_pipeline_free(p);
    const char *text = print(ctx, low);
    relax_module *again = rx_parse_module(ctx, "again", text, strlen(text));
    assert_string_equal(print(ctx, again), text);
    for (size_t i = 0; i < RX_COUNT(sizes); i++) {
        rx_arena a;
        int e1, e2;
        rx_arena_init(&a, &ctx->heap);
        rx_ival *x = run(ctx, &a, m, sizes[i][0], sizes[i][1], lo, hi, &e1),
                *y = run(ctx, &a, again, sizes[i][0], sizes[i][1], lo, hi, &e2);
        if (e1 != e2 || (x && !same(x, y))) {
            rx_buf b;
            rx_buf_init(&b, &a);
            if (x && y)
                rx_ival_print(&b, x), rx_puts(&b, "\n  "), rx_ival_print(&b, y);
            print_error("n=%d m=%d errors %d %d\n  %.3000s\n", (int)sizes[i][0], (int)sizes[i][1], e1, e2,
                        b.at ? b.at : "");
            wrong++;
        }
        rx_arena_free(&a);
    }
    if (wrong)
        print_error("after %s:\n%.4000s\n", passes, text);
    rx_module_free(again);
    rx_module_free(low);
    return wrong;
}

static void all_stages(void **state)
{
    (void)state;
    char text[2048];
    volatile int wrong = 0;
    for (volatile size_t i = 0; i < RX_COUNT(rows); i++) {
        tl_heap th;
        relax_context *ctx = tl_context(&th);
        snprintf(text, sizeof text, INNER "fn main(%s, pm: Prim(i64, m), pn: Prim(i64)) { %s }", rows[i].params,
                 rows[i].body);
        rx_frame fr;
        volatile size_t stage = 0;
        if (RX_ENTER(&ctx->heap, &fr)) {
            rx_ops_init(ctx);
            relax_module *m = rx_parse_module(ctx, "row", text, strlen(text));
            for (; stage < RX_COUNT(stages); stage++)
                wrong += compare_stage(ctx, m, stages[stage], rows[i].lo, rows[i].hi);
            rx_module_free(m);
            rx_leave(&ctx->heap, &fr);
            tl_done(&th, ctx);
        } else {
            print_error("row %zu: %s\nstage %s\n", i, text, stages[stage < RX_COUNT(stages) ? stage : 0]);
            tl_print_diags(ctx);
            wrong++;
        }
    }
    assert_int_equal(wrong, 0);
}

/* --- random programs --- */

/* values by shape: 0 (n, m), 1 (m, n), 2 (n, 1), 3 (1, m), 4 (n, n) */
typedef struct gen {
    char text[8192];
    size_t n;
    uint32_t seed, names, depth;
    int of[5][64];
    uint32_t count[5];
} gen;

static void say(gen *g, const char *fmt, ...) RX_PRINTF(2, 3);
static void say(gen *g, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(g->text + g->n, sizeof g->text - g->n, fmt, ap);
    va_end(ap);
    g->n += n > 0 ? (size_t)n : 0;
    assert_true(g->n < sizeof g->text);
}

static int pick(gen *g, int shape)
{
    return g->of[shape][next(&g->seed) % g->count[shape]];
}

static int define(gen *g, int shape)
{
    int name = (int)g->names++;
    if (g->count[shape] < 64)
        g->of[shape][g->count[shape]++] = name;
    return name;
}

/* %1 and %2 of a form are operands, shapes in order; the result's shape first */
static const struct { int to, a, b; const char *form;
} forms[] = {
    {0, 0, 0, "add(v%d, v%d)"},
    {0, 0, 2, "add(v%d, v%d)"},
    {0, 0, 3, "multiply(v%d, v%d)"},
    {0, 0, -1, "tanh(v%d)"},
    {0, 0, -1, "sigmoid(v%d)"},
    {0, 1, -1, "permute_dims(v%d)"},
    {0, 1, -1, "reshape(v%d, shape(n, m))"},
    {0, 0, -1, "softmax(v%d)"},
    {0, 0, 0, "maximum(v%d, v%d)"},
    {0, 0, 0, "@inner(v%d, v%d)"},
    {0, 2, -1, "broadcast_to(v%d, shape(n, m))"},
    {0, 0, -1, "flip(v%d, axis=1)"},
    {0, 0, -1, "sort(v%d)"},
    {0, 0, -1, "astype(v%d, dtype=f32)"},
    {0, 0, -1, "match_cast(v%d, Tensor((n, m), f32))"},
    {0, 0, 0, "subtract(v%d, v%d)"},
    {1, 0, -1, "permute_dims(v%d)"},
    {1, 0, -1, "reshape(v%d, shape(m, n))"},
    {1, 1, 1, "minimum(v%d, v%d)"},
    {2, 0, -1, "sum(v%d, axis=(1,), keepdims=true)"},
    {2, 0, -1, "max(v%d, axis=(1,), keepdims=true)"},
    {2, 2, 2, "multiply(v%d, v%d)"},
    {3, 0, -1, "min(v%d, axis=(0,), keepdims=true)"},
    {3, 3, -1, "clip(v%d, min=-1.0, max=1.0)"},
    {4, 0, 1, "matmul(v%d, v%d)"},
    {4, 4, -1, "tanh(v%d)"},
    {0, 4, 0, "matmul(v%d, v%d)"},
};

static void binding(gen *g);

static void branch_of(gen *g, const char *head, const char *tail)
{
    gen save = *g;
    say(g, "%s", head);
    for (uint32_t i = 0; i < 3; i++)
        binding(g);
    say(g, "yield v%d } %s", pick(g, 0), tail);
    memcpy(g->of, save.of, sizeof g->of);        /* what the body defined is not known behind it */
    memcpy(g->count, save.count, sizeof g->count);
}

static void binding(gen *g)
{
    if (next(&g->seed) % 12 == 0 && g->depth < 2) {
        uint32_t name = g->names++;
        g->depth++;
        say(g, "v%u = if c ", name);
        branch_of(g, "{ ", "else ");
        branch_of(g, "{ ", "\n");
        g->depth--;
        g->of[0][g->count[0]++ % 64] = (int)name;
        return;
    }
    size_t k = next(&g->seed) % RX_COUNT(forms);
    if (!g->count[forms[k].a] || (forms[k].b >= 0 && !g->count[forms[k].b]) || g->count[forms[k].to] > 60)
        return;
    int a = pick(g, forms[k].a), b = forms[k].b >= 0 ? pick(g, forms[k].b) : 0;
    char call[96];
    snprintf(call, sizeof call, forms[k].form, a, b);
    say(g, "v%d = %s\n", define(g, forms[k].to), call);
}

static void random_programs(void **state)
{
    (void)state;
    volatile int wrong = 0;
    for (volatile uint32_t seed = 1; seed <= 24; seed++) {
        static gen g;
        memset(&g, 0, sizeof g);
        g.seed = seed * 7919;
        say(&g, INNER
            "fn main(v0: Tensor((n, m), f32), v1: Tensor((n, m), f32), c: Tensor((), bool), pm: Prim(i64, m)) {\n");
        define(&g, 0);
        define(&g, 0);
        for (int i = 0; i < 18; i++)
            binding(&g);
        say(&g, "r = (v%d, v%d, v%d) return r }", g.of[0][g.count[0] - 1], pick(&g, 0), pick(&g, 0));
        tl_heap th;
        relax_context *ctx = tl_context(&th);
        TL_TRY(ctx) {
            rx_ops_init(ctx);
            relax_module *m = rx_parse_module(ctx, "random", g.text, g.n);
            for (size_t i = 1; i < RX_COUNT(stages); i++)
                wrong += compare_stage(ctx, m, stages[i], 0, 1);
            rx_module_free(m);
        } TL_END(ctx)
        if (wrong)
            print_error("seed %u\n%s\n", seed, g.text);
        tl_done(&th, ctx);
        assert_int_equal(wrong, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(all_stages), cmocka_unit_test(random_programs)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
