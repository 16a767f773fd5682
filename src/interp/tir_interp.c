/* tir_interp.c: runs a prim func statement by statement.
 *
 * Values: integers and bools in int64 (u64 as its bits), floats in double. Every node's result is rounded to the node's
 * dtype: integers wrap at the width; f32 is computed in double and rounded once (exact for + - * / sqrt, because double
 * has more than twice its bits); f16, bf16 and f8 are computed as f32 and rounded once more. Integer division by zero
 * gives 0, INT_MIN / -1 wraps, min and max give NaN when one side is NaN, select evaluates one side only, so a load on
 * the other side is not made. Serial, unrolled and reduce loops run in order; PARALLEL and VECTOR loops from their last
 * iteration to the first, so that one which depends on another shows. ALLOCs are filled with 0xA5 bytes, so that
 * reading undefined contents shows. Shared nodes of big expressions are evaluated once a statement (the stamp). */
#include "interp/interp.h"

#include <math.h>

#define CACHE_FROM 32                  /* nodes of at least this size are remembered within a statement */

typedef union val { int64_t i; double f; } val;
typedef struct slot {
    val v;
    uint64_t stamp;
} slot; /* a symbol's value (stamp 0: not set), or a remembered node */
typedef struct view { relax_buffer *b; char *data; int64_t *shape, *strides; } view;
typedef struct machine {
    relax_context *ctx;
    rx_arena *a;
    const rx_prim *p;
    rx_map slots, views;
    uint64_t stamp;                    /* of the statement that runs, from 1 */
    uint32_t steps;                    /* loop iterations since the host was last asked whether to stop */
} machine;

static val eval(machine *m, rx_ex e);

static RX_NORETURN void fail(machine *m, enum rx_err err, const char *text)
{
    rx_fail(m->ctx, err, &(rx_where){.function = m->p->name}, "%s", text);
}

static slot *slot_of(machine *m, rx_ex e)
{
    slot *s = rx_map_get(&m->slots, RX_KEY(e));
    if (!s) {
        s = RX_NEW(m->a, slot);
        rx_map_put(&m->slots, RX_KEY(e), s);
    }
    return s;
}

static void set_sym(machine *m, rx_ex sym, val v)
{
    slot *s = slot_of(m, sym);
    s->v = v;
    s->stamp = 1;
}

/* --- arithmetic --- */

static int64_t wrap(relax_dtype t, int64_t v)
{
    int64_t raw = 0;
    if (t == RELAX_I64)
        return v;
    rx_store_i64(t, &raw, v);
    return rx_load_i64(t, &raw);
}

static double round_to(relax_dtype t, double v)
{
    uint64_t raw = 0;
    if (t == RELAX_F64)
        return v;
    float f = (float)v;
    if (t == RELAX_F32)
        return (double)f;
    rx_store_f64(t, &raw, (double)f);
    return rx_load_f64(t, &raw);
}

/* floor(a / b) and its remainder from a truncating division */
static void floor_div(int64_t a, int64_t b, int64_t *q, int64_t *r)
{
    if (b == -1) {
        *q = (int64_t)(0 - (uint64_t)a);
        *r = 0;
        return;
    }
    *q = a / b;
    *r = a % b;
    if (*r != 0 && (*r < 0) != (b < 0)) {
        *q -= 1;
        *r += b;
    }
}

static int64_t int_division(rx_eop op, bool u, int64_t a, int64_t b)
{
    int64_t q, r;
    bool quotient = op == RX_EX_FLOORDIV || op == RX_EX_TRUNCDIV;
    if (b == 0)
        return 0;
    if (u)
        return (int64_t)(quotient ? (uint64_t)a / (uint64_t)b : (uint64_t)a % (uint64_t)b);
    if (op == RX_EX_FLOORDIV || op == RX_EX_FLOORMOD) {
        floor_div(a, b, &q, &r);
        return quotient ? q : r;
    }
    if (b == -1)
        return quotient ? (int64_t)(0 - (uint64_t)a) : 0;
    return quotient ? a / b : a % b;
}

static int64_t int_pow(bool u, int64_t a, int64_t b)
{
    uint64_t r = 1, base = (uint64_t)a;
    if (!u && b < 0)
        return 0;
    for (uint64_t n = (uint64_t)b; n; n >>= 1, base *= base)
        if (n & 1)
            r *= base;
    return (int64_t)r;
}

static int64_t int_shift(rx_eop op, relax_dtype t, int64_t a, int64_t b)
{
    int64_t width = (int64_t)rx_dtype_bytes(t) * 8;
    bool outside = b < 0 || b >= width;          /* a u64 count above INT64_MAX is negative here */
    if (op == RX_EX_SHL)
        return outside ? 0 : (int64_t)((uint64_t)a << b);
    if (rx_dtype_is_uint(t))
        return outside ? 0 : (int64_t)((uint64_t)a >> b);
    return outside ? (a < 0 ? -1 : 0) : a >> b;
}

static int64_t int_op(rx_eop op, relax_dtype t, int64_t a, int64_t b)
{
    bool u = rx_dtype_is_uint(t), less = u ? (uint64_t)a < (uint64_t)b : a < b;
    switch (op) {
    case RX_EX_ADD: return (int64_t)((uint64_t)a + (uint64_t)b);
    case RX_EX_SUB: return (int64_t)((uint64_t)a - (uint64_t)b);
    case RX_EX_MUL: return (int64_t)((uint64_t)a * (uint64_t)b);
    case RX_EX_FLOORDIV:
    case RX_EX_FLOORMOD:
    case RX_EX_TRUNCDIV:
    case RX_EX_TRUNCMOD: return int_division(op, u, a, b);
    case RX_EX_MIN: return less ? a : b;
    case RX_EX_MAX: return less ? b : a;
    case RX_EX_POW: return int_pow(u, a, b);
    case RX_EX_BITAND: case RX_EX_AND: return a & b;
    case RX_EX_BITOR: case RX_EX_OR: return a | b;
    case RX_EX_BITXOR: return a ^ b;
    case RX_EX_SHL: case RX_EX_SHR: return int_shift(op, t, a, b);
    case RX_EX_EQ: return a == b;
    case RX_EX_NE: return a != b;
    case RX_EX_LT: return less;
    case RX_EX_LE: return less || a == b;
    default: return 0;
    }
}

static bool compares(rx_eop op)
{
    return op == RX_EX_EQ || op == RX_EX_NE || op == RX_EX_LT || op == RX_EX_LE;
}

static int64_t float_compare(rx_eop op, double a, double b)
{
    return op == RX_EX_EQ ? a == b : op == RX_EX_NE ? a != b : op == RX_EX_LT ? a < b : a <= b;
}

static double float_op(rx_eop op, double a, double b)
{
    switch (op) {
    case RX_EX_ADD: return a + b;
    case RX_EX_SUB: return a - b;
    case RX_EX_MUL: return a * b;
    case RX_EX_DIV: return a / b;
    case RX_EX_FLOORDIV: return floor(a / b);
    case RX_EX_FLOORMOD: {
        double r = fmod(a, b);
        return r != 0 && (r < 0) != (b < 0) ? r + b : r;
    }
    case RX_EX_TRUNCDIV: return trunc(a / b);
    case RX_EX_TRUNCMOD: return fmod(a, b);
    case RX_EX_MIN: return isnan(a) ? a : isnan(b) ? b : a < b ? a : b < a ? b : signbit(a) ? a : b;
    case RX_EX_MAX: return isnan(a) ? a : isnan(b) ? b : a > b ? a : b > a ? b : signbit(a) ? b : a;
    case RX_EX_POW: return pow(a, b);
    default: return 0;
    }
}

static double float_call(rx_intrin f, relax_dtype t, const double *x)
{
    switch (f) {
    case RX_IN_EXP: return exp(x[0]);
    case RX_IN_EXP2: return exp2(x[0]);
    case RX_IN_LOG: return log(x[0]);
    case RX_IN_SQRT: return sqrt(x[0]);
    case RX_IN_RSQRT: return 1 / round_to(t == RELAX_F64 ? t : RELAX_F32, sqrt(x[0]));
    case RX_IN_SIN: return sin(x[0]);
    case RX_IN_COS: return cos(x[0]);
    case RX_IN_TANH: return tanh(x[0]);
    case RX_IN_ERF: return erf(x[0]);
    case RX_IN_ABS: return fabs(x[0]);
    case RX_IN_FLOOR: return floor(x[0]);
    case RX_IN_CEIL: return ceil(x[0]);
    case RX_IN_ROUND: return fabs(x[0]) < 0x1p52 ? copysign(x[0] - remainder(x[0], 1.0), x[0]) : x[0];
    case RX_IN_TRUNC: return trunc(x[0]);
    case RX_IN_FMA: return t == RELAX_F64 ? fma(x[0], x[1], x[2]) : (double)fmaf((float)x[0], (float)x[1], (float)x[2]);
    default: return 0;
    }
}

/* --- expressions --- */

static view *view_of(machine *m, relax_buffer *b)
{
    view *v = rx_map_get(&m->views, RX_KEY(b));
    if (!v)
        fail(m, RXE_TIR_VERIFY, rx_strf(m->ctx, "buffer '%s' is used outside its scope", b->name));
    return v;
}

/* the address of an element; unwinds when an index lies outside its dim */
static void *address(machine *m, relax_buffer *b, const rx_ex *index)
{
    view *v = view_of(m, b);
    int64_t at = 0;
    for (uint32_t i = 0; i < b->ndim; i++) {
        int64_t k = eval(m, index[i]).i;
        if (k < 0 || k >= v->shape[i])
            fail(m, RXE_INDEX,
                 rx_strf(m->ctx, "index %lld of axis %u of '%s' lies outside its dim %lld", (long long)k, i, b->name,
                         (long long)v->shape[i]));
        at += k * v->strides[i];
    }
    return v->data + at * (int64_t)rx_dtype_bytes(b->dtype);
}

static val load(relax_dtype t, const void *p)
{
    return rx_dtype_is_float(t) ? (val){.f = rx_load_f64(t, p)} : (val){.i = rx_load_i64(t, p)};
}

static void store(relax_dtype t, void *p, val v)
{
    if (rx_dtype_is_float(t))
        rx_store_f64(t, p, v.f);
    else
        rx_store_i64(t, p, v.i);
}

static val binary(machine *m, rx_ex e)
{
    relax_dtype t = e->a[0]->dtype;
    val a = eval(m, e->a[0]), b = eval(m, e->a[1]);
    if (!rx_dtype_is_float(t))
        return (val){.i = wrap(e->dtype, int_op(e->op, t, a.i, b.i))};
    if (compares(e->op))
        return (val){.i = float_compare(e->op, a.f, b.f)};
    return (val){.f = round_to(t, float_op(e->op, a.f, b.f))};
}

static val unary(machine *m, rx_ex e)
{
    val a = eval(m, e->a[0]);
    if (e->op == RX_EX_NOT || e->dtype == RELAX_BOOL)
        return (val){.i = !a.i};
    if (rx_dtype_is_float(e->dtype))
        return (val){.f = -a.f};
    return (val){.i = wrap(e->dtype, e->op == RX_EX_NEG ? (int64_t)(0 - (uint64_t)a.i) : ~a.i)};
}

/* through memory, as casts of one element are defined */
static val cast(machine *m, rx_ex e)
{
    uint64_t from = 0, to = 0;
    store(e->a[0]->dtype, &from, eval(m, e->a[0]));
    if (e->op == RX_EX_BITCAST)
        to = from;
    else
        rx_convert(e->dtype, &to, e->a[0]->dtype, &from);
    return load(e->dtype, &to);
}

static val call(machine *m, rx_ex e)
{
    relax_dtype t = e->a[0]->dtype;
    double x[3] = {0, 0, 0};
    if (!rx_dtype_is_float(t)) {
        val a = eval(m, e->a[0]);
        return e->intrin == RX_IN_ABS && !rx_dtype_is_uint(t) && a.i < 0
            ? (val){.i = wrap(t, (int64_t)(0 - (uint64_t)a.i))} : a;
    }
    for (uint32_t i = 0; i < e->nargs && i < 3; i++)
        x[i] = eval(m, e->a[i]).f;
    if (e->intrin == RX_IN_ISNAN)
        return (val){.i = isnan(x[0])};
    return (val){.f = round_to(t, float_call(e->intrin, t, x))};
}

static val compute(machine *m, rx_ex e)
{
    switch ((rx_eop)e->op) {
    case RX_EX_INT: return (val){.i = e->u.i};
    case RX_EX_FLOAT: return (val){.f = e->u.f};
    case RX_EX_SYM: {
        slot *s = slot_of(m, e);
        if (!s->stamp)
            fail(m, RXE_UNDEF_SYM, rx_strf(m->ctx, "symbol '%s' has no value", e->u.sym->name));
        return s->v;
    }
    case RX_EX_LOAD: return load(e->dtype, address(m, e->u.buf, e->a));
    case RX_EX_SELECT: return eval(m, eval(m, e->a[0]).i ? e->a[1] : e->a[2]);
    case RX_EX_NOT: case RX_EX_NEG: case RX_EX_BITNOT: return unary(m, e);
    case RX_EX_CAST: case RX_EX_BITCAST: return cast(m, e);
    case RX_EX_CALL: return call(m, e);
    default: return binary(m, e);
    }
}

static val eval(machine *m, rx_ex e)
{
    if (e->size < CACHE_FROM || e->op == RX_EX_SYM)
        return compute(m, e);
    slot *s = slot_of(m, e);
    if (s->stamp != m->stamp) {
        val v = compute(m, e);
        s->v = v;
        s->stamp = m->stamp;
    }
    return s->v;
}

/* --- statements --- */

static int64_t dim_value(machine *m, const relax_buffer *b, uint32_t axis)
{
    int64_t d = eval(m, b->shape[axis]).i;
    if (d < 0)
        fail(m, RXE_BAD_VALUE, rx_strf(m->ctx, "dim %u of buffer '%s' is negative: %lld", axis, b->name, (long long)d));
    return d;
}

/* shape, strides and the number of elements of a compact layout */
static view *new_view(machine *m, rx_arena *a, relax_buffer *b, void *data, int64_t *count)
{
    view *v = RX_NEW(a, view);
    int64_t n = 1;
    v->b = b;
    v->data = data;
    v->shape = RX_NEWN(a, int64_t, b->ndim);
    v->strides = RX_NEWN(a, int64_t, b->ndim);
    for (uint32_t i = b->ndim; i-- > 0;) {
        v->shape[i] = dim_value(m, b, i);
        v->strides[i] = b->strides ? eval(m, b->strides[i]).i : n;
        if (!rx_mul_ok(n, v->shape[i], &n))
            fail(m, RXE_LIMIT, rx_strf(m->ctx, "buffer '%s' is too large", b->name));
    }
    *count = n;
    rx_map_put(&m->views, RX_KEY(b), v);
    return v;
}

static void run(machine *m, const rx_stmt *s);

/* bytes that hold every element of an ALLOC, by its strides */
static size_t extent_of(machine *m, const view *v, int64_t count)
{
    int64_t last = 0, step, bytes;
    for (uint32_t i = 0; i < v->b->ndim && count; i++)
        if (!rx_mul_ok(v->shape[i] - 1, v->strides[i], &step) || !rx_add_ok(last, step, &last) || step < 0)
            fail(m, RXE_LIMIT, rx_strf(m->ctx, "buffer '%s' has strides that cannot be used", v->b->name));
    if (!rx_mul_ok(count ? last + 1 : 0, (int64_t)rx_dtype_bytes(v->b->dtype), &bytes))
        fail(m, RXE_LIMIT, rx_strf(m->ctx, "buffer '%s' is too large", v->b->name));
    return (size_t)bytes;
}

static void run_alloc(machine *m, const rx_stmt *s)
{
    relax_buffer *b = s->u.alloc.buf;
    rx_frame f;
    /* a frame of its own: the memory goes when the body is done, so loops around do not pile it up */
    if (RX_ENTER(&m->ctx->heap, &f)) {
        int64_t count;
        rx_arena *a = rx_scratch(&m->ctx->heap);
        view *v = new_view(m, a, b, NULL, &count);
        size_t bytes = extent_of(m, v, count);
        v->data = rx_arena_alloc(a, bytes, 64);
        memset(v->data, 0xA5, bytes);
        run(m, s->u.alloc.body);
        rx_map_put(&m->views, RX_KEY(b), NULL);
        rx_leave(&m->ctx->heap, &f);
        return;
    }
    rx_unwind(&m->ctx->heap);
}

static void run_loop(machine *m, const rx_stmt *s)
{
    int64_t start = eval(m, s->u.loop.start).i, extent = eval(m, s->u.loop.extent).i;
    bool backwards = !s->u.loop.reduce && (s->u.loop.how == RX_PARALLEL || s->u.loop.how == RX_VECTOR);
    if (s->u.loop.init)
        run(m, s->u.loop.init);
    for (int64_t i = 0; i < extent; i++) {
        if (++m->steps >= 1u << 20) {
            m->steps = 0;
            if (rx_cancelled(m->ctx))
                fail(m, RXE_CANCELLED, "the host asked to stop");
        }
        set_sym(m, s->u.loop.var, (val){.i = start + (backwards ? extent - 1 - i : i)});
        run(m, s->u.loop.body);
    }
}

static void run(machine *m, const rx_stmt *s)
{
    m->stamp++;
    switch (s->kind) {
    case RX_S_SEQ:
        for (uint32_t i = 0; i < s->u.seq.n; i++)
            run(m, s->u.seq.at[i]);
        break;
    case RX_S_FOR: run_loop(m, s); break;
    case RX_S_STORE: {
        val v = eval(m, s->u.store.value);
        store(s->u.store.buf->dtype, address(m, s->u.store.buf, s->u.store.index), v);
        break;
    }
    case RX_S_ALLOC: run_alloc(m, s); break;
    case RX_S_IF:
        if (eval(m, s->u.branch.cond).i)
            run(m, s->u.branch.then);
        else if (s->u.branch.other)
            run(m, s->u.branch.other);
        break;
    case RX_S_LET:
        set_sym(m, s->u.let.var, eval(m, s->u.let.value));
        run(m, s->u.let.body);
        break;
    case RX_S_ASSERT:
        if (!eval(m, s->u.check.cond).i)
            fail(m, (enum rx_err)s->u.check.err, s->u.check.text);
        break;
    case RX_S_PREFETCH: break;
    }
}

void rx_interp_prim(relax_context *ctx, const rx_prim *p, void *const *bufs, const int64_t *syms)
{
    rx_frame f;
    if (RX_ENTER(&ctx->heap, &f)) {
        rx_arena *a = rx_scratch(&ctx->heap);
        machine m = {.ctx = ctx, .a = a, .p = p, .stamp = 1};
        rx_map_init(&m.slots, a);
        rx_map_init(&m.views, a);
        rx_exvec names = {0};
        int64_t count;
        rx_prim_symbols(ctx, a, p, &names);
        for (uint32_t i = 0; i < names.n; i++)
            set_sym(&m, names.at[i], (val){.i = syms[i]});
        for (uint32_t i = 0; i < p->nparams; i++)
            new_view(&m, a, p->params[i], bufs[i], &count);
        run(&m, p->body);
        rx_leave(&ctx->heap, &f);
        return;
    }
    rx_unwind(&ctx->heap);
}
