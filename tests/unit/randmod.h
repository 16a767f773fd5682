/* randmod.h: well-typed modules with symbolic shapes, made at random from a seed; test_random.c runs them.
 *
 * A module has main(x0: (n, m) f32, x1: (n, m) f32, x2: (m,) f32, x3: (n,) i32, x4: (n, m) of a random type, c: bool,
 * p: Prim(i64, m)) with n, m <= RM_BOUND, helper functions that it calls, tensor programs in text, and returns a tuple.
 * Operators are tried on random operands; what deduction refuses, or what grows too large, is dropped again. A float
 * that depends on the order of a sum or on a transcendental function is `loose`: it never decides something (a
 * comparison, a rounding, an index), so results of two implementations differ by rounding only. */
#ifndef RANDMOD_H
#define RANDMOD_H
#include "testlib.h"

#include "op/op.h"

enum { RM_BOUND = 20, RM_POOL = 256, RM_LARGEST = 6000 };
typedef struct rm_value { relax_value *v; bool loose; } rm_value;
typedef struct rm {
    relax_context *ctx;
    relax_module *m;
    relax_function *f;
    rx_gb b;
    uint32_t seed, depth;
    rm_value pool[RM_POOL];
    uint32_t n;
    relax_value *cond, *prim_m;
    relax_function *helpers[4];
    uint32_t nhelpers;
    bool no_prims;                     /* helpers that main inlines call no tensor programs: they stay operators */
} rm;

TL_UNUSED static uint32_t rm_next(rm *g, uint32_t n)
{
    g->seed = g->seed * 1664525u + 1013904223u;
    return (g->seed >> 8) % n;
}

/* ---- what a value is ---- */
static bool is_float(const relax_value *v) { return rx_dtype_is_float(v->type->dtype); }
static bool is_int(const relax_value *v) { return rx_dtype_is_int(v->type->dtype); }
static int32_t rank(const relax_value *v) { return v->type->ndim; }

static bool same_shape(const relax_value *a, const relax_value *b)
{
    if (a->type->ndim != b->type->ndim)
        return false;
    for (int32_t i = 0; i < a->type->ndim; i++)
        if (a->type->dims[i] != b->type->dims[i])
            return false;
    return true;
}

/* b broadcasts to a without a condition */
static bool broadcasts(const relax_value *a, const relax_value *b)
{
    int32_t n = rank(a), k = rank(b);
    for (int32_t i = 1; i <= k; i++) {
        if (i > n)
            return false;
        rx_ex x = a->type->dims[n - i], y = b->type->dims[k - i];
        if (x != y && !rx_is_value(y, 1))
            return false;
    }
    return true;
}

/* elements at the bound of all symbols; symbols of casts are below 64 */
static int64_t largest(rm *g, const relax_value *v)
{
    int64_t n = 1, d, bound = RM_BOUND;
    rx_exvec syms = {0};
    rx_map env;
    rx_arena *a = rx_scratch(&g->ctx->heap);
    rx_map_init(&env, a);
    for (int32_t i = 0; i < rank(v); i++)
        rx_free_syms(g->ctx, a, v->type->dims[i], &syms);
    for (uint32_t i = 0; i < syms.n; i++)
        rx_map_put(&env, RX_KEY(syms.at[i]), &bound);
    for (int32_t i = 0; i < rank(v); i++) {
        if (rx_eval(g->ctx, v->type->dims[i], &env, &d) != RX_EVAL_OK || d > RM_LARGEST)
            return INT64_MAX;
        n *= d < 1 ? 1 : d;
    }
    return n;
}

/* ---- the pool ---- */
static void rm_add(rm *g, relax_value *v, bool loose)
{
    if (v && v->type->kind == RX_TY_TENSOR && v->type->known && v->type->dtype != RELAX_DTYPE_UNKNOWN && g->n < RM_POOL)
        g->pool[g->n++] = (rm_value){v, loose && is_float(v)};
}

/* later ones are likelier */
static rm_value *rm_pick(rm *g)
{
    uint32_t n = g->n, i = rm_next(g, n);
    if (n > 6 && rm_next(g, 2))
        i = n - 1 - rm_next(g, 6);
    return &g->pool[i];
}

typedef bool rm_test(const rm_value *x, const rm_value *with);
static rm_value *rm_find(rm *g, rm_test *ok, const rm_value *with)
{
    for (int i = 0; i < 12; i++) {
        rm_value *x = rm_pick(g);
        if (ok(x, with))
            return x;
    }
    return NULL;
}

static bool any_float(const rm_value *x, const rm_value *w) { (void)w; return is_float(x->v); }
static bool any_number(const rm_value *x, const rm_value *w) { (void)w; return is_float(x->v) || is_int(x->v); }
static bool any_int(const rm_value *x, const rm_value *w) { (void)w; return is_int(x->v); }
static bool any_bool(const rm_value *x, const rm_value *w) { (void)w; return x->v->type->dtype == RELAX_BOOL; }
static bool strict(const rm_value *x, const rm_value *w) { (void)w; return !x->loose; }
static bool strict_number(const rm_value *x, const rm_value *w) { return !x->loose && any_number(x, w); }
static bool matrix(const rm_value *x, const rm_value *w) { return any_number(x, w) && rank(x->v) == 2; }
static bool ranked(const rm_value *x, const rm_value *w) { (void)w; return rank(x->v) >= 1; }
static bool ranked_float(const rm_value *x, const rm_value *w) { return ranked(x, w) && is_float(x->v); }
static bool partner(const rm_value *x, const rm_value *w)
{
    return x->v->type->dtype == w->v->type->dtype && broadcasts(w->v, x->v);
}
static bool twin(const rm_value *x, const rm_value *w)
{
    return x->v->type->dtype == w->v->type->dtype && same_shape(x->v, w->v);
}
static bool bool_over(const rm_value *x, const rm_value *w) { return any_bool(x, w) && broadcasts(w->v, x->v); }
static bool right_factor(const rm_value *x, const rm_value *w)
{
    return x->v->type->dtype == w->v->type->dtype && rank(x->v) == 2 && x->v->type->dims[0] == w->v->type->dims[1];
}
static bool last_axis(const rm_value *x, const rm_value *w)
{
    return x->v->type->dtype == w->v->type->dtype && rank(x->v) == 1 &&
           x->v->type->dims[0] == w->v->type->dims[rank(w->v) - 1];
}
static bool index_vector(const rm_value *x, const rm_value *w) { return any_int(x, w) && rank(x->v) == 1; }

/* ---- emission: NULL when deduction refuses, or the result is too large ---- */
static relax_value *rm_op(rm *g, const char *name, relax_value **args, uint32_t n, const char *attrs)
{
    rx_frame fr;
    uint32_t before = rx_diag_count(g->ctx);
    rx_gb b = g->b;
    if (RX_ENTER(&g->ctx->heap, &fr)) {
        const rx_op *op = rx_op_find(g->ctx, name);
        rx_attrs a = rx_parse_attrs_text(g->f, op, attrs, strlen(attrs));
        relax_value *v = rx_emit_op(&b, op, args, n, a.at, a.n);
        rx_leave(&g->ctx->heap, &fr);
        if (v->type->kind == RX_TY_TENSOR && v->type->known && largest(g, v) > RM_LARGEST) {
            rx_v_remove(v);
            return NULL;
        }
        return v;
    }
    rx_diag_truncate(g->ctx, before);
    return NULL;
}

static relax_value *rm_op1(rm *g, const char *name, relax_value *x, const char *attrs)
{
    return rm_op(g, name, &x, 1, attrs);
}

static relax_value *rm_const(rm *g, relax_dtype t, double v) { return rx_v_scalar(g->m, t, v); }

/* floats stay small: what grows is limited */
static void rm_add_limited(rm *g, relax_value *v, bool loose)
{
    if (v && v->type->kind == RX_TY_TENSOR && is_float(v))
        v = rm_op1(g, "clip", v, "min=-4.0, max=4.0");
    rm_add(g, v, loose);
}

/* ---- families ---- */
#define ONE_OF(g, list) ((list)[rm_next((g), (uint32_t)RX_COUNT(list))])

static void unary(rm *g)
{
    static const char *const smooth[] = {"tanh", "sigmoid", "sin", "cos", "erf", "silu", "gelu", "gelu_tanh"};
    static const char *const plain[] = {"abs", "negative", "square", "relu"};
    static const char *const steps[] = {"floor", "ceil", "round", "trunc", "isnan", "logical_not"};
    rm_value *x;
    switch (rm_next(g, 5)) {
    case 0:
    case 1:
        x = rm_find(g, any_float, NULL);
        if (x)
            rm_add(g, rm_op1(g, ONE_OF(g, smooth), x->v, ""), true);
        return;
    case 2:
        x = rm_find(g, any_number, NULL);
        if (x)
            rm_add_limited(g, rm_op1(g, ONE_OF(g, plain), x->v, ""), x->loose);
        return;
    case 3:
        x = rm_find(g, strict_number, NULL);
        if (x)
            rm_add(g, rm_op1(g, ONE_OF(g, steps), x->v, ""), false);
        return;
    default:
        x = rm_find(g, any_float, NULL);
        if (x) {                       /* exp and sqrt where they are tame */
            relax_value *y = rm_op1(g, "clip", x->v, "min=0.5, max=2.0");
            static const char *const tame[] = {"exp", "log", "sqrt", "rsqrt"};
            rm_add_limited(g, y ? rm_op1(g, ONE_OF(g, tame), y, "") : NULL, true);
        }
        return;
    }
}

static void cast(rm *g)
{
    static const char *const to[] = {"dtype=f16", "dtype=f32", "dtype=i32",  "dtype=i8",  "dtype=u8",
                                     "dtype=i64", "dtype=f64", "dtype=bool", "dtype=bf16"};
    rm_value *x = rm_find(g, strict, NULL);
    bool only_float = !x;
    if (only_float)
        x = rm_find(g, any_float, NULL);
    if (x)
        rm_add(g, rm_op1(g, "astype", x->v, only_float ? "dtype=f64" : ONE_OF(g, to)), x->loose);
}

static void binary(rm *g)
{
    static const char *const any[] = {"add", "subtract", "multiply", "maximum", "minimum"};
    static const char *const bits[] = {"bitwise_and", "bitwise_or", "bitwise_xor", "left_shift", "right_shift"};
    static const char *const tests[] = {"equal", "not_equal", "less", "less_equal", "greater", "greater_equal"};
    static const char *const logic[] = {"logical_and", "logical_or", "logical_xor"};
    uint32_t kind = rm_next(g, 9);
    rm_value *x = rm_find(g,
                          kind < 5    ? any_number
                          : kind == 5 ? any_int
                          : kind == 6 ? strict_number
                          : kind == 7 ? any_bool
                                      : any_number,
                          NULL);
    rm_value *y = x ? rm_find(g, rm_next(g, 3) ? twin : partner, x) : NULL;
    if (!y)
        return;
    relax_value *args[] = {x->v, y->v, NULL};
    bool loose = x->loose || y->loose;
    if (kind < 5) {
        rm_add_limited(g, rm_op(g, ONE_OF(g, any), args, 2, ""), loose);
    } else if (kind == 5) {
        rm_add(g, rm_op(g, ONE_OF(g, bits), args, 2, ""), false);
    } else if (kind == 6) {
        if (!loose)
            rm_add(g, rm_op(g, ONE_OF(g, tests), args, 2, ""), false);
    } else if (kind == 7) {
        rm_add(g, rm_op(g, ONE_OF(g, logic), args, 2, ""), false);
    } else {                           /* division by what cannot be 0 */
        relax_dtype t = x->v->type->dtype;
        args[1] = is_float(x->v) ? rm_op1(g, "clip", y->v, "min=0.5, max=3.0") : rm_const(g, t, 3);
        static const char *const quot[] = {"divide", "floor_divide", "floor_mod"};
        if (args[1])
            rm_add_limited(g, rm_op(g, is_float(x->v) && loose ? "divide" : ONE_OF(g, quot), args, 2, ""), loose);
    }
}

static void choose(rm *g)
{
    rm_value *x = rm_pick(g), *y = rm_find(g, twin, x), *c = rm_find(g, bool_over, x);
    if (!y || !c)
        return;
    relax_value *args[] = {c->v, x->v, y->v};
    rm_add(g, rm_op(g, "where", args, 3, ""), x->loose || y->loose);
}

static void reduce(rm *g)
{
    static const char *const sums[] = {"sum", "mean", "prod", "variance"};
    static const char *const picks[] = {"max", "min"};
    char attrs[64];
    rm_value *x = rm_find(g, ranked, NULL);
    if (!x || x->v->type->dtype == RELAX_BOOL)
        return;
    int32_t axis = (int32_t)rm_next(g, (uint32_t)rank(x->v));
    snprintf(attrs, sizeof attrs, "axis=(%d,), keepdims=%s", axis - (rm_next(g, 2) ? rank(x->v) : 0),
             rm_next(g, 2) ? "true" : "false");
    const char *where = rm_next(g, 4) ? attrs : "";
    switch (rm_next(g, 5)) {
    case 0:
    case 1:
        rm_add_limited(g, rm_op1(g, ONE_OF(g, sums), x->v, where), true);
        return;
    case 2:
        rm_add(g, rm_op1(g, ONE_OF(g, picks), x->v, where), x->loose);
        return;
    case 3:
        snprintf(attrs, sizeof attrs, "axis=%d, exclusive=%s", axis, rm_next(g, 2) ? "true" : "false");
        rm_add_limited(g, rm_op1(g, "cumsum", x->v, attrs), true);
        return;
    default:
        snprintf(attrs, sizeof attrs, "axis=%d, keepdims=%s", axis, rm_next(g, 2) ? "true" : "false");
        if (!x->loose)
            rm_add(g, rm_op1(g, rm_next(g, 2) ? "argmax" : "argmin", x->v, attrs), false);
    }
}

static void create(rm *g)
{
    rm_value *x = rm_pick(g);
    switch (rm_next(g, 6)) {
    case 0: rm_add(g, rm_op1(g, "zeros_like", x->v, ""), false); return;
    case 1: rm_add(g, rm_op1(g, "ones_like", x->v, ""), false); return;
    case 2:
        rm_add(g, rm_op(g, "arange", NULL, 0, rm_next(g, 2) ? "end=n" : "start=2, end=m + 2, step=1, dtype=f32"),
               false);
        return;
    case 3: rm_add(g, rm_op(g, "eye", NULL, 0, "n=n, m=m, k=1"), false); return;
    case 4: {
        relax_value *args[] = {rx_v_shape(g->m, x->v->type->dims, (uint32_t)rank(x->v)), rm_const(g, RELAX_F32, 1.5)};
        rm_add(g, rm_op(g, "full", args, 2, ""), false);
        return;
    }
    default: rm_add(g, rm_op1(g, rm_next(g, 2) ? "tril" : "triu", x->v, "k=1"), x->loose);
    }
}

static void indexing(rm *g)
{
    char attrs[96];
    rm_value *x = rm_find(g, ranked, NULL), *i = rm_find(g, index_vector, NULL);
    if (!x)
        return;
    int32_t axis = (int32_t)rm_next(g, (uint32_t)rank(x->v));
    switch (rm_next(g, 5)) {
    case 0:
    case 1:
        if (!i)
            return;
        snprintf(attrs, sizeof attrs, "axis=%d, mode=%s", axis, rm_next(g, 2) ? "clip" : "wrap");
        rm_add(g, rm_op(g, "take", (relax_value *[]){x->v, i->v}, 2, attrs), x->loose);
        return;
    case 2:
        snprintf(attrs, sizeof attrs, "axes=(%d,), begin=(%d,), end=(%d,), strides=(%d,)", axis, (int)rm_next(g, 3),
                 (int)rm_next(g, 9), (int)rm_next(g, 2) + 1);
        rm_add(g, rm_op1(g, "strided_slice", x->v, attrs), x->loose);
        return;
    case 3:
        snprintf(attrs, sizeof attrs, "axes=(%d,), begin=(-1,), end=(-%d,), strides=(-1,)", axis,
                 (int)rm_next(g, 30) + 1);
        rm_add(g, rm_op1(g, "strided_slice", x->v, attrs), x->loose);
        return;
    default:
        if (i)
            rm_add(g, rm_op1(g, "one_hot", i->v, "depth=3"), false);
    }
}

static void product(rm *g)
{
    rm_value *x = rm_find(g, matrix, NULL), *y = x ? rm_find(g, right_factor, x) : NULL;
    relax_value *t;
    if (!x)
        return;
    if (y) {
        rm_add_limited(g, rm_op(g, "matmul", (relax_value *[]){x->v, y->v}, 2, ""), true);
    } else if ((t = rm_op1(g, "permute_dims", x->v, ""))) {
        rm_add_limited(g, rm_op(g, "matmul", (relax_value *[]){x->v, t}, 2, ""), true);
    }
}

static void shapes(rm *g)
{
    char attrs[64];
    rm_value *x = rm_find(g, ranked, NULL), *y = x ? rm_find(g, twin, x) : NULL;
    if (!x)
        return;
    relax_value *two[] = {x->v, y ? y->v : x->v};
    bool loose = x->loose || (y && y->loose);
    int32_t axis = (int32_t)rm_next(g, (uint32_t)rank(x->v));
    snprintf(attrs, sizeof attrs, "axis=%d", axis);
    switch (rm_next(g, 13)) {
    case 0: rm_add(g, rm_op1(g, "permute_dims", x->v, ""), x->loose); return;
    case 1: rm_add(g, rm_op1(g, "flatten", x->v, ""), x->loose); return;
    case 2:
        snprintf(attrs, sizeof attrs, "axis=(%d,)", axis);
        rm_add(g, rm_op1(g, "expand_dims", x->v, attrs), x->loose);
        return;
    case 3: rm_add(g, rm_op1(g, "squeeze", x->v, ""), x->loose); return;
    case 4: rm_add(g, rm_op(g, "concat", two, 2, attrs), loose); return;
    case 5: rm_add(g, rm_op(g, "stack", two, 2, attrs), loose); return;
    case 6: rm_add(g, rm_op1(g, "flip", x->v, attrs), x->loose); return;
    case 7:
        snprintf(attrs, sizeof attrs, "repeats=2, axis=%d", axis);
        rm_add(g, rm_op1(g, "repeat", x->v, attrs), x->loose);
        return;
    case 8: rm_add(g, rm_op1(g, "tile", x->v, rank(x->v) == 2 ? "repeats=(2, 1)" : "repeats=(2,)"), x->loose); return;
    case 9: {                          /* the same elements with axes swapped, by value: a reshape through shape_of */
        relax_value *t = rm_op1(g, "permute_dims", x->v, ""), *s = t ? rm_op1(g, "shape_of", t, "") : NULL;
        if (s)
            rm_add(g, rm_op(g, "reshape", (relax_value *[]){x->v, s}, 2, ""), x->loose);
        return;
    }
    case 10: {
        rx_ex d[4] = {rx_int(g->ctx, 2)};
        for (int32_t i = 0; i < rank(x->v) && i < 3; i++)
            d[i + 1] = x->v->type->dims[i];
        if (rank(x->v) <= 3)
            rm_add(
                g,
                rm_op(g, "broadcast_to", (relax_value *[]){x->v, rx_v_shape(g->m, d, (uint32_t)rank(x->v) + 1)}, 2, ""),
                x->loose);
        return;
    }
    case 11: {
        snprintf(attrs, sizeof attrs, "sections=2, axis=%d", axis);
        relax_value *t = rm_op1(g, "split", x->v, attrs);
        if (t && t->type->kind == RX_TY_TUPLE) {
            rm_add(g, rx_emit_get(&g->b, t, 0), x->loose);
            rm_add(g, rx_emit_get(&g->b, t, 1), x->loose);
        }
        return;
    }
    default: {                         /* a tuple and its fields */
        relax_value *t = rx_emit_tuple(&g->b, two, 2);
        rm_add(g, rx_emit_get(&g->b, t, 1), loose);
    }
    }
}

static void sorting(rm *g)
{
    rm_value *x = rm_find(g, ranked, NULL);
    char attrs[64];
    if (!x || x->v->type->dtype == RELAX_BOOL)
        return;
    int32_t axis = (int32_t)rm_next(g, (uint32_t)rank(x->v));
    snprintf(attrs, sizeof attrs, "axis=%d, descending=%s", axis, rm_next(g, 2) ? "true" : "false");
    if (rm_next(g, 2))
        rm_add(g, rm_op1(g, "sort", x->v, attrs), x->loose);
    else if (!x->loose)
        rm_add(g, rm_op1(g, "argsort", x->v, attrs), false);
}

static void layers(rm *g)
{
    rm_value *x = rm_find(g, ranked_float, NULL), *w = x ? rm_find(g, last_axis, x) : NULL;
    if (!x)
        return;
    if (rm_next(g, 2) || !w)
        rm_add_limited(g, rm_op1(g, rm_next(g, 3) ? "softmax" : "log_softmax", x->v, rm_next(g, 2) ? "" : "axis=0"),
                       true);
    else
        rm_add_limited(g, rm_op(g, "rms_norm", (relax_value *[]){x->v, w->v}, 2, "epsilon=0.1"), true);
}

/* a size that is known at run time only, named by a cast; a cast that says what is known */
static void casts(rm *g)
{
    rm_value *x = rm_find(g, strict_number, NULL);
    relax_value *u;
    if (x && is_int(x->v) && (u = rm_op1(g, "unique", x->v, ""))) {
        rx_ex d = rx_fn_sym_fresh(g->f, "u");
        rm_add(g, rx_emit_match_cast(&g->b, u, rx_ty_tensor(g->ctx, &d, 1, x->v->type->dtype)), false);
    } else if (x && rank(x->v) == 2) {
        rx_ex d[2] = {rx_fn_sym_fresh(g->f, "r"), x->v->type->dims[1]};
        rm_add(g, rx_emit_match_cast(&g->b, x->v, rx_ty_tensor(g->ctx, d, 2, x->v->type->dtype)), x->loose);
    }
}

/* a cache that is overwritten in place: its only use */
static void in_place(rm *g)
{
    rm_value *x = rm_find(g, ranked_float, NULL);
    if (!x || rank(x->v) > 3)
        return;
    rx_ex d[3];
    memcpy(d, x->v->type->dims, (size_t)rank(x->v) * sizeof *d);
    d[0] = rx_add(g->ctx, d[0], rx_fn_sym(g->f, "m"));
    relax_value *s = rx_v_shape(g->m, d, (uint32_t)rank(x->v));
    relax_value *c = rm_op1(g, "zeros", s, "dtype=f32");
    if (!c)
        return;
    relax_value *v = rm_op(g, "kv_append", (relax_value *[]){c, x->v, rx_v_prim(g->m, rx_fn_sym(g->f, "m"))}, 3, "");
    rm_add(g, v, x->loose);
}

#define RM_PRIMS                                                                                                       \
    "prim scale(A: Buffer((a, b), f32), B: Buffer((a, b), f32); k) { for i in a { for j in b {\n"                    \
    "  B[i, j] = A[i, j] * 0.5 + f32(k % 3) } } }\n"                                                                   \
    "prim two(A: Buffer((a, b), f32), B: Buffer((b, a), f32), C: Buffer((a,), f32)) { for i in a { C[i] = 0.0\n"      \
    "  for j in b { B[j, i] = A[i, j] C[i] = max(C[i], A[i, j]) } } }\n"                                               \
    "prim bump(A: Buffer((a, b), f32)) { for i in a { for j in b { A[i, j] = A[i, j] * 0.5 } } }\n"

static bool f32_matrix(const rm_value *x, const rm_value *w) { return matrix(x, w) && x->v->type->dtype == RELAX_F32; }

static void programs(rm *g)
{
    rm_value *x = rm_find(g, f32_matrix, NULL);
    if (!x || g->no_prims)
        return;
    rx_ty t = x->v->type;
    rx_ex syms = rx_fn_sym(g->f, "n"), d[2] = {t->dims[1], t->dims[0]};
    switch (rm_next(g, 3)) {
    case 0: rm_add(g, rx_emit_call_tir(&g->b, rx_module_get(g->m, "scale"), &x->v, 1, t, &syms, 1), x->loose); return;
    case 1: {
        rx_ty out[2] = {rx_ty_tensor(g->ctx, d, 2, RELAX_F32), rx_ty_tensor(g->ctx, t->dims, 1, RELAX_F32)};
        relax_value *v =
            rx_emit_call_tir(&g->b, rx_module_get(g->m, "two"), &x->v, 1, rx_ty_tuple(g->ctx, out, 2), NULL, 0);
        rm_add(g, rx_emit_get(&g->b, v, 0), x->loose);
        rm_add(g, rx_emit_get(&g->b, v, 1), x->loose);
        return;
    }
    default: {
        static const int32_t first = 0;
        relax_value *fresh = rm_op1(g, "negative", x->v, "");
        if (fresh)
            rm_add(g, rx_emit_call_tir_inplace(&g->b, rx_module_get(g->m, "bump"), &fresh, 1, t, NULL, 0, &first, 1),
                   x->loose);
    }
    }
}

/* helpers take (a, b) f32 and (a,) f32 and give a tuple or one tensor */
static void calls(rm *g)
{
    rm_value *x = rm_find(g, f32_matrix, NULL);
    if (!x || !g->nhelpers)
        return;
    relax_function *h = g->helpers[rm_next(g, g->nhelpers)];
    relax_value *row = rm_op1(g, "max", x->v, "axis=(1,)");
    if (!row)
        return;
    relax_value *v = rx_emit_call(&g->b, rx_v_func(g->m, h), (relax_value *[]){x->v, row}, 2, true);
    if (v->type->kind == RX_TY_TUPLE)
        for (uint32_t i = 0; i < v->type->nelems; i++)
            rm_add(g, rx_emit_get(&g->b, v, i), true);
    else
        rm_add(g, v, true);
}

static void rm_step(rm *g);

/* both branches give a value like x */
static void branches(rm *g)
{
    if (g->depth >= 2)
        return;
    rm_value x = *rm_pick(g), *y;
    relax_value *iff = rx_emit_if(&g->b, g->cond), *res[2];
    bool loose = false;
    rx_gb outer = g->b;
    uint32_t n = g->n;
    g->depth++;
    for (int i = 0; i < 2; i++) {
        g->b = i ? rx_if_else(iff) : rx_if_then(iff);
        for (uint32_t k = rm_next(g, 6); k > 0; k--)
            rm_step(g);
        y = rm_find(g, twin, &x);
        res[i] = y ? y->v : x.v;
        loose |= y ? y->loose : x.loose;
        g->n = n;
    }
    g->depth--;
    g->b = outer;
    rx_if_end(iff, res[0], res[1]);
    rm_add(g, iff, loose);
}

static void rm_step(rm *g)
{
    static void (*const family[])(rm *) = {unary,   unary,  cast,     binary,   binary,   binary,   choose, reduce,
                                           reduce,  create, indexing, indexing, product,  shapes,   shapes, shapes,
                                           sorting, layers, casts,    in_place, programs, programs, calls,  branches};
    family[rm_next(g, (uint32_t)RX_COUNT(family))](g);
}

/* ---- functions ---- */
static relax_value *rm_result(rm *g, uint32_t n)
{
    relax_value *fields[8];
    for (uint32_t i = 0; i < n; i++)
        fields[i] = i < 3 && g->n > i ? g->pool[g->n - 1 - i].v : rm_pick(g)->v;
    return n == 1 ? fields[0] : rx_emit_tuple(&g->b, fields, n);
}

static void rm_param(rm *g, const char *name, const char *type)
{
    rm_add(g, rx_fn_param(g->f, name, rx_fn_type(g->f, type, strlen(type))), false);
}

static void rm_begin(rm *g, const char *name)
{
    g->f = rx_function_new(g->m, name);
    g->f->pure = true;
    g->b = rx_gb_begin(g->f);
    g->n = g->depth = 0;
}

static void rm_helper(rm *g, uint32_t i)
{
    char name[16];
    snprintf(name, sizeof name, "h%u", i);
    rm_begin(g, name);
    g->f->is_private = rm_next(g, 3) > 0;
    g->no_prims = true;
    rm_param(g, "x", "Tensor((n, m), f32)");
    rm_param(g, "y", "Tensor((n,), f32)");
    g->cond = rx_v_const(g->m, RELAX_BOOL, NULL, 0, &(char){1});
    for (uint32_t k = 2 + rm_next(g, 8); k > 0; k--)
        rm_step(g);
    rx_fn_finish(g->f, &g->b, rm_result(g, 1 + rm_next(g, 2)));
    g->helpers[g->nhelpers++] = g->f;
    g->no_prims = false;
}

/* a module from a seed; unwinds on errors */
TL_UNUSED static relax_module *rm_module(relax_context *ctx, uint32_t seed, uint32_t steps)
{
    static const char *const types[] = {"Tensor((n, m), f16)", "Tensor((n, m), i8)",  "Tensor((m, n), f32)",
                                        "Tensor((n, m), u8)",  "Tensor((n, 3), f64)", "Tensor((n, m), bf16)"};
    rm g = {.ctx = ctx, .seed = seed * 7919 + 17};
    rx_ops_init(ctx);
    g.m = rx_parse_module(ctx, "prims", RM_PRIMS, strlen(RM_PRIMS));
    for (uint32_t i = 0, n = rm_next(&g, 4); i < n; i++)
        rm_helper(&g, i);
    rm_begin(&g, "main");
    rm_param(&g, "x0", "Tensor((n, m), f32)");
    rm_param(&g, "x1", "Tensor((n, m), f32)");
    rm_param(&g, "x2", "Tensor((m,), f32)");
    rm_param(&g, "x3", "Tensor((n,), i32)");
    rm_param(&g, "x4", ONE_OF(&g, types));
    g.cond = rx_fn_param(g.f, "c", rx_fn_type(g.f, "Tensor((), bool)", 16));
    g.prim_m = rx_fn_param(g.f, "p", rx_fn_type(g.f, "Prim(i64, m)", 12));
    rx_fn_bound(g.f, rx_fn_sym(g.f, "n"), 0, RM_BOUND);
    rx_fn_bound(g.f, rx_fn_sym(g.f, "m"), 0, RM_BOUND);
    rx_gb_dataflow(&g.b, false);
    for (uint32_t i = 0; i < steps; i++)
        rm_step(&g);
    rx_fn_finish(g.f, &g.b, rm_result(&g, 6));
    return g.m;
}
#endif
