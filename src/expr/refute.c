/* refute.c: shows that a condition cannot hold under facts.
 *
 * In: facts and a condition over index expressions. The expressions are flattened to linear rows over variables; a
 * variable is an atom: a symbol, a quotient, a minimum, a product … What an atom means becomes rows and case
 * splits that hold always:
 *   q = x // c (c > 0):  0 <= x - c*q <= c - 1       m = min(a, b):  m <= a, m <= b, and (m == a or m == b)
 *   x // d:  the same with the product d*q, by the sign of d     x % d = x - d*(x // d)    select, abs, truncdiv:
 *   by case
 *   p = f * g:  McCormick rows from the bounds of f and g, and products of known rows with non-negative variables,
 *   as far as
 *   all their monomials are variables already The search (DPLL fashion): propagate bounds; drop impossible
 *   alternatives of the splits; decide the linear system (linear.c); split on the smallest remaining disjunction;
 *   as a last step split a quotient by the remainder, or a small range by value. A budget bounds the work: when it
 *   is spent the answer is "not refuted". Everything is sound because every step is implied; a division by zero
 *   has no value, so rows may assume divisors other than 0, except under a select. */
#include "expr/impl.h"

#define RX_Q_VARS 160                  /* atoms above this stay without a definition */
#define RX_Q_DEPTH 24                  /* nested splits */
#define RX_Q_FACTS 96                  /* facts that one query looks at */
#define RX_Q_ROWS 200                  /* rows in one state */

typedef struct alts { uint32_t n; bool weak; rx_ex c[]; } alts;       /* a disjunction of conditions */
typedef RX_VEC(const alts *) altvec;
typedef struct prod { uint32_t p, f, g; } prod;                         /* variables: p = f * g */

struct rx_query {
    relax_context *ctx;
    rx_arena *a;
    const rx_facts *f;
    rx_map ids;                        /* RX_KEY(key) -> id + 1 */
    rx_exvec atoms;
    uint32_t nvars;
    rx_rows defs;                      /* rows that hold always */
    altvec splits;                     /* disjunctions that hold always */
    RX_VEC(prod) prods;
    int64_t budget, reserve;
    uint32_t nested;                   /* depth of definitions being made */
    rx_ex signed_[6];                  /* factors with a sign split */
    uint32_t signs, fresh;             /* fresh: products of two atoms made by product_rows */
    bool partial;                      /* a select may hide an undefined quotient: divisors may be 0 */
};

typedef struct st {                    /* what is assumed on the present path */
    rx_rows rows;
    altvec open;
    uint32_t defs_seen, splits_seen;
    bool dead;
} st;

static const rx_row *linear(rx_query *q, rx_ex e, bool eq);
static void assume(rx_query *q, st *s, rx_ex c);

/* ---- rows ---- */
static rx_row *unit(rx_query *q, uint32_t v, int64_t c)
{
    rx_row *r = rx_row_new(q->a, 1, false, 0);
    r->t[0] = (rx_mono){v, c};
    return r;
}

static rx_row *constant(rx_query *q, int64_t k) { return rx_row_new(q->a, 0, false, k); }

/* p*x + c*y as a value */
static const rx_row *mix(rx_query *q, const rx_row *x, int64_t p, const rx_row *y, int64_t c)
{
    return x && y ? rx_row_mix(q->a, x, p, y, c, RX_ROW_FORM) : NULL;
}

static const rx_row *as(rx_query *q, const rx_row *r, bool eq)
{
    if (!r) return NULL;
    rx_row *s = rx_row_new(q->a, r->n, eq, r->k);
    memcpy(s->t, r->t, r->n * sizeof r->t[0]);
    return s;
}

static void define(rx_query *q, const rx_row *r, bool eq)
{
    if (r) rx_push(q->a, &q->defs, as(q, r, eq));
}

static alts *new_alts(rx_query *q, uint32_t n, bool weak)
{
    alts *d = rx_arena_alloc(q->a, sizeof *d + n * sizeof(rx_ex), _Alignof(alts));
    d->n = n;
    d->weak = weak;
    return d;
}

static void split2(rx_query *q, rx_ex x, rx_ex y)
{
    alts *d = new_alts(q, 2, false);
    d->c[0] = x;
    d->c[1] = y;
    rx_push(q->a, &q->splits, d);
}

/* ---- atoms ---- */
static uint32_t var(rx_query *q, rx_ex key);
static bool may_fail(rx_query *q, rx_ex e);
static void define_remainder(rx_query *q, rx_ex e);

static void define_quotient(rx_query *q, rx_ex e, uint32_t v)
{
    relax_context *ctx = q->ctx;
    rx_ex x = e->a[0], d = e->a[1];
    int64_t c;
    if (rx_is_int(d, &c)) {
        if (c <= 0) return;
        const rx_row *r = mix(q, linear(q, x, false), 1, unit(q, v, 1), -c); /* x - c*q */
        define(q, r, false);
        define(q, mix(q, constant(q, c - 1), 1, r, -1), false);
        if (c > 12 || !r) return;
        alts *w = new_alts(q, (uint32_t)c, true);
        rx_ex rest = rx_sub(ctx, x, rx_muli(ctx, e, c));
        for (int64_t i = 0; i < c; i++) w->c[i] = rx_eq(ctx, rest, rx_int(ctx, i));
        rx_push(q->a, &q->splits, w);
        return;
    }
    rx_ex rest = rx_sub(ctx, x, rx_mul(ctx, d, e)), zero = rx_int(ctx, 0);
    rx_ex pos = rx_and(ctx, rx_le(ctx, zero, rest), rx_lt(ctx, rest, d));
    rx_ex neg = rx_and(ctx, rx_le(ctx, rest, zero), rx_lt(ctx, d, rest));
    bool fails = may_fail(q, e);
    alts *w = new_alts(q, 2 + fails, false);
    w->c[0] = rx_and(ctx, rx_le(ctx, rx_int(ctx, 1), d), pos);
    w->c[1] = rx_and(ctx, rx_le(ctx, d, rx_int(ctx, -1)), neg);
    if (fails) w->c[2] = rx_eq(ctx, d, zero);
    rx_push(q->a, &q->splits, w);
}

static void define_truncdiv(rx_query *q, rx_ex e)
{
    relax_context *ctx = q->ctx;
    rx_ex x = e->a[0], d = e->a[1], zero = rx_int(ctx, 0), minus = rx_int(ctx, -1);
    rx_ex down = rx_eq(ctx, e, rx_div(ctx, x, d));
    rx_ex up = rx_eq(ctx, e, rx_mul(ctx, minus, rx_div(ctx, rx_mul(ctx, minus, x), d)));
    rx_ex xp = rx_le(ctx, zero, x), xn = rx_lt(ctx, x, zero), dp = rx_lt(ctx, zero, d), dn = rx_lt(ctx, d, zero);
    bool fails = may_fail(q, e);
    alts *w = new_alts(q, 4 + fails, false);
    if (fails) w->c[4] = rx_eq(ctx, d, zero);
    w->c[0] = rx_and(ctx, rx_and(ctx, xp, dp), down);
    w->c[1] = rx_and(ctx, rx_and(ctx, xn, dp), up);
    w->c[2] = rx_and(ctx, rx_and(ctx, xp, dn), up);
    w->c[3] = rx_and(ctx, rx_and(ctx, xn, dn), down);
    rx_push(q->a, &q->splits, w);
}

static void define_extremum(rx_query *q, rx_ex e, uint32_t v)
{
    rx_ex x[RX_EXPR_AC];
    uint32_t n = rx_operands(e, e->op, x, RX_EXPR_AC);
    int64_t sign = e->op == RX_EX_MIN ? 1 : -1;
    if (n > RX_EXPR_AC) return;
    alts *w = new_alts(q, n, false);
    for (uint32_t i = 0; i < n; i++) {
        define(q, mix(q, linear(q, x[i], false), sign, unit(q, v, 1), -sign), false);
        w->c[i] = rx_eq(q->ctx, e, x[i]);
    }
    rx_push(q->a, &q->splits, w);
}

/* the sign of a factor, if the bounds do not tell: looked at last */
static void split_sign(rx_query *q, rx_ex f)
{
    relax_context *ctx = q->ctx;
    rx_range r = rx_range_of(ctx, q->f, f);
    if (r.lo > 0 || r.hi < 0 || q->signs >= 6) return;
    for (uint32_t i = 0; i < q->signs; i++)
        if (q->signed_[i] == f) return;
    q->signed_[q->signs++] = f;
    alts *w = new_alts(q, 3, true);
    w->n = 0;
    w->c[w->n++] = rx_eq(ctx, f, rx_int(ctx, 0));
    if (r.hi > 0) w->c[w->n++] = rx_le(ctx, rx_int(ctx, 1), f);
    if (r.lo < 0) w->c[w->n++] = rx_le(ctx, f, rx_int(ctx, -1));
    rx_push(q->a, &q->splits, w);
}

static void define_product(rx_query *q, rx_ex e, uint32_t v)
{
    rx_ex f[RX_EXPR_AC], rest;
    uint32_t n = rx_factors(e, f, RX_EXPR_AC);
    if (n < 2 || n > 6) return;
    for (uint32_t i = 0; i < n; i++) {
        if ((i && f[i] == f[i - 1]) || !rx_divide_key(q->ctx, e, f[i], &rest) || rest->op == RX_EX_INT) continue;
        prod p = {v, var(q, f[i]), 0};
        p.g = var(q, rest);
        rx_push(q->a, &q->prods, p);
        split_sign(q, f[i]);
    }
}

static void define_bits(rx_query *q, rx_ex e, uint32_t v)
{
    relax_context *ctx = q->ctx;
    rx_ex x = e->a[0], y = e->a[1];
    rx_range rx = rx_range_of(ctx, q->f, x), ry = rx_range_of(ctx, q->f, y);
    const rx_row *lx = linear(q, x, false), *ly = linear(q, y, false);
    bool natural = rx.lo >= 0 && ry.lo >= 0;
    if (e->op == RX_EX_SHL && rx.lo >= 0) define(q, mix(q, unit(q, v, 1), 1, lx, -1), false);       /* x << n >= x */
    if (e->op == RX_EX_SHR && rx.lo >= 0) define(q, mix(q, lx, 1, unit(q, v, 1), -1), false);
    if (e->op == RX_EX_BITAND) {
        if (rx.lo >= 0) define(q, mix(q, lx, 1, unit(q, v, 1), -1), false);
        if (ry.lo >= 0) define(q, mix(q, ly, 1, unit(q, v, 1), -1), false);
    } else if (natural && (e->op == RX_EX_BITOR || e->op == RX_EX_BITXOR)) {
        define(q, mix(q, mix(q, lx, 1, ly, 1), 1, unit(q, v, 1), -1), false);         /* <= x + y */
        if (e->op == RX_EX_BITOR)
            define(q, mix(q, unit(q, v, 1), 1, lx, -1), false), define(q, mix(q, unit(q, v, 1), 1, ly, -1), false);
    }
}

static void define_atom(rx_query *q, rx_ex e, uint32_t v)
{
    relax_context *ctx = q->ctx;
    rx_range r = rx_range_of(ctx, q->f, e);
    if (r.lo != INT64_MIN && r.lo != INT64_MAX) define(q, mix(q, unit(q, v, 1), 1, constant(q, r.lo), -1), false);
    if (r.hi != INT64_MIN && r.hi != INT64_MAX) define(q, mix(q, constant(q, r.hi), 1, unit(q, v, 1), -1), false);
    switch ((rx_eop)e->op) {
    case RX_EX_SYM:
        if (e->u.sym->divisor > 1) {
            rx_ex part = rx_div(ctx, e, rx_int(ctx, e->u.sym->divisor));
            define(q, mix(q, unit(q, v, 1), 1, linear(q, part, false), -e->u.sym->divisor), true);
        }
        break;
    case RX_EX_FLOORDIV: define_quotient(q, e, v); break;
    case RX_EX_TRUNCDIV: if (!rx_is_value(e->a[1], 0)) define_truncdiv(q, e); break;
    /* only those that may fail come here */
    case RX_EX_FLOORMOD: case RX_EX_TRUNCMOD: define_remainder(q, e); break;
    case RX_EX_MIN: case RX_EX_MAX: define_extremum(q, e, v); break;
    case RX_EX_SELECT:
        split2(q, rx_and(ctx, e->a[0], rx_eq(ctx, e, e->a[1])),
               rx_and(ctx, rx_not(ctx, e->a[0]), rx_eq(ctx, e, e->a[2])));
        break;
    case RX_EX_CALL:
        split2(q, rx_and(ctx, rx_le(ctx, rx_int(ctx, 0), e->a[0]), rx_eq(ctx, e, e->a[0])),
            rx_and(ctx, rx_le(ctx, e->a[0], rx_int(ctx, 0)), rx_eq(ctx, e, rx_mul(ctx, rx_int(ctx, -1), e->a[0]))));
        break;
    case RX_EX_BITAND: case RX_EX_BITOR: case RX_EX_BITXOR: case RX_EX_SHL: case RX_EX_SHR: define_bits(q, e, v); break;
    case RX_EX_MUL: if (rx_is_prod(e)) define_product(q, e, v); break;
    case RX_EX_ADD: if (rx_is_sum(e)) define(q, mix(q, linear(q, e, true), 1, unit(q, v, 1), -1), true); break;
    default: break;
    }
}

static uint32_t var(rx_query *q, rx_ex key)
{
    uintptr_t id = (uintptr_t)rx_map_get(&q->ids, RX_KEY(key));
    if (id) return (uint32_t)(id - 1);
    uint32_t v = q->nvars++;
    rx_map_put(&q->ids, RX_KEY(key), (void *)(uintptr_t)(v + 1));
    while (q->atoms.n <= v) rx_push(q->a, &q->atoms, NULL);
    q->atoms.at[v] = key;
    q->budget -= 4;
    if (v < RX_Q_VARS && q->nested < 40 && q->budget > 0) {
        q->nested++;
        define_atom(q, key, v);
        q->nested--;
    }
    return v;
}

/* Under a select a division may stand that has no value, and then nothing may be concluded from it: its node stays
 * a variable whose meaning is one alternative of a split, the other being a divisor of 0. */
static bool may_fail(rx_query *q, rx_ex e)
{
    if (!q->partial) return false;
    rx_range r = rx_range_of(q->ctx, q->f, e->a[1]);
    return r.lo <= 0 && r.hi >= 0;
}

static void define_remainder(rx_query *q, rx_ex e)
{
    relax_context *ctx = q->ctx;
    rx_ex d = e->a[1], zero = rx_int(ctx, 0);
    if (rx_is_value(d, 0)) return;
    rx_ex div = rx_binary(ctx, e->op == RX_EX_FLOORMOD ? RX_EX_FLOORDIV : RX_EX_TRUNCDIV, e->a[0], d);
    rx_ex meaning = rx_eq(ctx, e, rx_sub(ctx, e->a[0], rx_mul(ctx, div, d)));
    split2(q, rx_and(ctx, rx_ne(ctx, d, zero), meaning), rx_eq(ctx, d, zero));
}

/* key of a term as a row: remainders are expanded to x - c*(x // c) */
static const rx_row *term(rx_query *q, rx_ex key)
{
    relax_context *ctx = q->ctx;
    bool floor = key->op == RX_EX_FLOORMOD;
    if ((floor || key->op == RX_EX_TRUNCMOD) && rx_is_index(key) && !may_fail(q, key)) {
        rx_ex d = rx_binary(ctx, floor ? RX_EX_FLOORDIV : RX_EX_TRUNCDIV, key->a[0], key->a[1]);
        return mix(q, linear(q, key->a[0], false), 1, linear(q, rx_mul(ctx, d, key->a[1]), false), -1);
    }
    return unit(q, var(q, key), 1);
}

/* product keys that hold remainders become sums first */
static rx_ex expand_factors(rx_query *q, rx_ex key)
{
    rx_ex f[RX_EXPR_AC], e = rx_int(q->ctx, 1);
    uint32_t n = rx_factors(key, f, RX_EXPR_AC);
    bool any = false;
    if (n < 2 || n > 4) return NULL;
    for (uint32_t i = 0; i < n; i++) any |= f[i]->op == RX_EX_FLOORMOD && !may_fail(q, f[i]);
    if (!any) return NULL;
    for (uint32_t i = 0; i < n; i++) {
        if (f[i]->op == RX_EX_FLOORMOD && !may_fail(q, f[i]))
            f[i] = rx_sub(q->ctx, f[i]->a[0], rx_mul(q->ctx, f[i]->a[1], rx_div(q->ctx, f[i]->a[0], f[i]->a[1])));
        e = rx_mul(q->ctx, e, f[i]);
    }
    return e;
}

static const rx_row *linear(rx_query *q, rx_ex e, bool eq)
{
    rx_terms t;
    if (e->size > 4000 || q->nested > 60) return NULL;
    rx_terms_of(e, q->a, &t);
    const rx_row *r = as(q, constant(q, t.k), true);
    for (uint32_t i = 0; i < t.n && r; i++) {
        rx_ex more = expand_factors(q, t.t[i].key);
        q->nested++;
        r = mix(q, r, 1, more ? linear(q, more, false) : term(q, t.t[i].key), t.t[i].coef);
        q->nested--;
    }
    return as(q, r, eq);
}

/* ---- states ---- */
static void push_row(rx_query *q, st *s, const rx_row *r)
{
    bool contra;
    if (!r) return;
    r = rx_row_tight(q->a, r, &contra);
    s->dead |= contra;
    if (r && s->rows.n < RX_Q_ROWS) rx_push(q->a, &s->rows, r);
}

static void open_split(rx_query *q, st *s, rx_ex *c, uint32_t n)
{
    alts *d = new_alts(q, n, false);
    memcpy(d->c, c, n * sizeof *c);
    rx_push(q->a, &s->open, d);
}

static void assume_bool(rx_query *q, st *s, rx_ex p, bool value)
{
    const rx_row *u = unit(q, var(q, p), 1);
    push_row(q, s, as(q, mix(q, u, 1, constant(q, value), -1), true));
}

/* a == b or a != b of bools */
static void assume_same(rx_query *q, st *s, rx_ex a, rx_ex b, bool same)
{
    relax_context *ctx = q->ctx;
    rx_ex na = rx_not(ctx, a), nb = rx_not(ctx, b);
    rx_ex c[2] = {rx_and(ctx, a, same ? b : nb), rx_and(ctx, na, same ? nb : b)};
    open_split(q, s, c, 2);
}

static void assume(rx_query *q, st *s, rx_ex c)
{
    relax_context *ctx = q->ctx;
    rx_ex x[RX_EXPR_AC];
    uint32_t n;
    switch ((rx_eop)c->op) {
    case RX_EX_INT: s->dead |= !c->u.i; return;
    case RX_EX_AND: assume(q, s, c->a[0]); assume(q, s, c->a[1]); return;
    case RX_EX_OR:
        n = rx_operands(c, RX_EX_OR, x, RX_EXPR_AC);
        if (n <= RX_EXPR_AC) open_split(q, s, x, n);
        return;
    case RX_EX_EQ: case RX_EX_NE:
        if (c->a[0]->dtype == RELAX_BOOL) { assume_same(q, s, c->a[0], c->a[1], c->op == RX_EX_EQ); return; }
        if (c->op == RX_EX_EQ) {
            push_row(q, s, as(q, mix(q, linear(q, c->a[0], true), 1, linear(q, c->a[1], true), -1), true));
            return;
        }
        x[0] = rx_lt(ctx, c->a[0], c->a[1]);
        x[1] = rx_lt(ctx, c->a[1], c->a[0]);
        open_split(q, s, x, 2);
        return;
    case RX_EX_LE: case RX_EX_LT: {
        const rx_row *r = mix(q, linear(q, c->a[1], false), 1, linear(q, c->a[0], false), -1);
        if (c->op == RX_EX_LT) r = mix(q, r, 1, constant(q, 1), -1);
        push_row(q, s, as(q, r, false));
        return;
    }
    case RX_EX_NOT: {
        rx_ex in = c->a[0];
        if (in->op == RX_EX_SELECT) {
            assume(q, s, rx_select(ctx, in->a[0], rx_not(ctx, in->a[1]), rx_not(ctx, in->a[2])));
        } else if (in->op == RX_EX_AND || in->op == RX_EX_OR) {
            x[0] = rx_not(ctx, in->a[0]);
            x[1] = rx_not(ctx, in->a[1]);
            if (in->op == RX_EX_AND) open_split(q, s, x, 2);
            else assume(q, s, x[0]), assume(q, s, x[1]);
        } else {
            assume_bool(q, s, in, false);
        }
        return;
    }
    case RX_EX_SELECT:
        x[0] = rx_and(ctx, c->a[0], c->a[1]);
        x[1] = rx_and(ctx, rx_not(ctx, c->a[0]), c->a[2]);
        open_split(q, s, x, 2);
        return;
    default: assume_bool(q, s, c, true); return;
    }
}

/* what was defined since this state last looked */
static void pull(rx_query *q, st *s)
{
    for (; s->defs_seen < q->defs.n; s->defs_seen++) push_row(q, s, q->defs.at[s->defs_seen]);
    for (; s->splits_seen < q->splits.n; s->splits_seen++) rx_push(q->a, &s->open, q->splits.at[s->splits_seen]);
}

static st fork_state(rx_query *q, const st *s)
{
    st t = *s;
    t.rows.at = s->rows.n ? rx_arena_dup(q->a, s->rows.at, s->rows.n * sizeof *s->rows.at) : NULL;
    t.rows.cap = s->rows.n;
    t.open.at = s->open.n ? rx_arena_dup(q->a, s->open.at, s->open.n * sizeof *s->open.at) : NULL;
    t.open.cap = s->open.n;
    return t;
}

static rx_box new_box(rx_query *q)
{
    rx_box b = {NULL, NULL, q->nvars};
    b.lo = RX_NEWN(q->a, int64_t, q->nvars + 1);
    b.hi = RX_NEWN(q->a, int64_t, q->nvars + 1);
    for (uint32_t i = 0; i < q->nvars; i++) b.lo[i] = INT64_MIN, b.hi[i] = INT64_MAX;
    return b;
}

/* ---- products ---- */
/* sign * (p - x*g - y*f + x*y) >= 0, x a bound of f, y one of g */
static void mccormick(rx_query *q, rx_rows *out, prod p, int64_t x, int64_t y, int sign)
{
    int64_t xy;
    if (x == INT64_MIN || x == INT64_MAX || y == INT64_MIN || y == INT64_MAX || !rx_mul_ok(x, y, &xy)) return;
    const rx_row *r = mix(q, unit(q, p.p, 1), 1, unit(q, p.g, 1), -x);
    r = mix(q, r, 1, unit(q, p.f, 1), -y);
    r = mix(q, mix(q, r, 1, constant(q, xy), 1), sign, constant(q, 0), 1);
    if (r) rx_push(q->a, out, as(q, r, false));
}

static void product_bounds(rx_query *q, rx_rows *out, const rx_box *b)
{
    for (uint32_t i = 0; i < q->prods.n; i++) {
        prod p = q->prods.at[i];
        if (p.p >= b->n || p.f >= b->n || p.g >= b->n) continue;
        mccormick(q, out, p, b->lo[p.f], b->lo[p.g], 1);
        mccormick(q, out, p, b->hi[p.f], b->hi[p.g], 1);
        mccormick(q, out, p, b->hi[p.f], b->lo[p.g], -1);
        mccormick(q, out, p, b->lo[p.f], b->hi[p.g], -1);
        if (p.f == p.g) {
            /* f*f >= f, -f, 0 */
            rx_push(q->a, out, as(q, mix(q, unit(q, p.p, 1), 1, unit(q, p.f, 1), -1), false));
            rx_push(q->a, out, as(q, mix(q, unit(q, p.p, 1), 1, unit(q, p.f, 1), 1), false));
        }
    }
}

/* r * v where all monomials are variables already, or a few new products of two symbols */
static const rx_row *times(rx_query *q, const rx_row *r, uint32_t v)
{
    rx_ex by = q->atoms.at[v];
    const rx_row *out = mix(q, unit(q, v, 1), r->k, constant(q, 0), 1);
    for (uint32_t i = 0; i < r->n && out; i++) {
        rx_ex x = r->t[i].v < q->atoms.n ? q->atoms.at[r->t[i].v] : NULL;
        if (!x || x->dtype != RELAX_I64) return NULL;
        rx_term m = rx_term_of(rx_mul(q->ctx, x, by));
        uintptr_t id = (uintptr_t)rx_map_get(&q->ids, RX_KEY(m.key));
        int64_t c;
        if (!id && rx_is_prod(m.key) && m.key->size == 3 && q->fresh < 12) {
            q->fresh++;
            id = var(q, m.key) + 1;
        }
        if (!id || !rx_mul_ok(m.coef, r->t[i].c, &c)) return NULL;
        out = mix(q, out, 1, unit(q, (uint32_t)(id - 1), 1), c);
    }
    return out;
}

static void product_rows(rx_query *q, const st *s, rx_rows *out, const rx_box *b)
{
    bool *factor = RX_NEWN(q->a, bool, b->n + 1);
    for (uint32_t i = 0; i < q->prods.n; i++) {
        if (q->prods.at[i].f < b->n) factor[q->prods.at[i].f] = true;
        if (q->prods.at[i].g < b->n) factor[q->prods.at[i].g] = true;
    }
    for (uint32_t v = 0; v < b->n && q->prods.n; v++) {
        if (!factor[v] || v >= q->atoms.n || !q->atoms.at[v]) continue;
        for (uint32_t i = 0; i < s->rows.n && out->n < RX_Q_ROWS; i++) {
            const rx_row *r = s->rows.at[i];
            if (r->n > 8 || (!r->eq && b->lo[v] < 0 && b->hi[v] > 0)) continue;
            q->budget--;
            const rx_row *m = times(q, r, v);
            if (m && !r->eq && b->lo[v] < 0) m = mix(q, m, -1, constant(q, 0), 1);
            if (m) rx_push(q->a, out, as(q, m, r->eq));
        }
    }
}

/* ---- search ---- */
/* bounds of all variables on this path; true: contradiction */
static bool bound(rx_query *q, const st *s, rx_rows *all, rx_box *b)
{
    *b = new_box(q);
    *all = (rx_rows){0};
    for (uint32_t i = 0; i < s->rows.n; i++) rx_push(q->a, all, s->rows.at[i]);
    q->budget -= 1 + s->rows.n / 4;
    if (rx_rows_propagate(all, b, 6)) return true;
    if (!q->prods.n) return false;
    for (int k = 0; k < 2; k++) {
        all->n = s->rows.n;
        product_bounds(q, all, b);
        q->budget -= q->prods.n / 2;
        if (rx_rows_propagate(all, b, 6)) return true;
    }
    return false;
}

/* false in the box? a quick look without new variables */
static bool impossible(rx_query *q, const st *s, rx_ex c)
{
    st t = fork_state(q, s);
    rx_box b;
    rx_rows all;
    assume(q, &t, c);
    pull(q, &t);
    return t.dead || bound(q, &t, &all, &b);
}

/* drops alternatives that cannot be; asserts the last one left. true: none left */
static bool reduce(rx_query *q, st *s)
{
    for (bool again = true; again && q->budget > 0;) {
        again = false;
        for (uint32_t i = 0; i < s->open.n && q->budget > 0; i++) {
            const alts *d = s->open.at[i];
            if (d->weak) continue;
            alts *left = new_alts(q, d->n, false);
            left->n = 0;
            for (uint32_t j = 0; j < d->n; j++)
                if (!impossible(q, s, d->c[j])) left->c[left->n++] = d->c[j];
            if (!left->n) return true;
            if (left->n == d->n && d->n > 1) continue;
            if (left->n == 1) {
                s->open.at[i--] = s->open.at[--s->open.n];
                assume(q, s, left->c[0]);
                pull(q, s);
                if (s->dead) return true;
                again = true;
            } else {
                s->open.at[i] = left;
            }
        }
    }
    return false;
}

static bool search(rx_query *q, st *s, int depth);

static bool all_fail(rx_query *q, st *s, const alts *d, int depth)
{
    for (uint32_t i = 0; i < d->n; i++) {
        st t = fork_state(q, s);
        assume(q, &t, d->c[i]);
        if (!search(q, &t, depth + 1)) return false;
    }
    return true;
}

/* the open split with the fewest alternatives; strong ones first, older ones first */
static const alts *take_split(st *s)
{
    uint32_t best = s->open.n;
    for (uint32_t i = 0; i < s->open.n; i++) {
        const alts *d = s->open.at[i];
        if (best == s->open.n || (d->weak < s->open.at[best]->weak)
            || (d->weak == s->open.at[best]->weak && d->n < s->open.at[best]->n)) best = i;
    }
    if (best == s->open.n) return NULL;
    const alts *d = s->open.at[best];
    memmove(s->open.at + best, s->open.at + best + 1, (s->open.n - best - 1) * sizeof *s->open.at);
    s->open.n--;
    return d;
}

/* a variable that has few values: one case for each */
static bool by_value(rx_query *q, st *s, const rx_box *b, int depth)
{
    uint32_t best = b->n;
    int64_t width = 17;
    for (uint32_t v = 0; v < b->n && v < q->atoms.n; v++) {
        if (!q->atoms.at[v] || b->lo[v] == INT64_MIN || b->hi[v] == INT64_MAX || q->atoms.at[v]->dtype != RELAX_I64)
            continue;
        if (q->atoms.at[v]->op != RX_EX_SYM && q->atoms.at[v]->op != RX_EX_FLOORDIV) continue;
        __int128 w = (__int128)b->hi[v] - b->lo[v];
        if (w > 0 && w < width) best = v, width = (int64_t)w;
    }
    if (best == b->n) return false;
    for (int64_t x = b->lo[best]; x <= b->hi[best]; x++) {
        st t = fork_state(q, s);
        push_row(q, &t, as(q, mix(q, unit(q, best, 1), 1, constant(q, x), -1), true));
        if (!search(q, &t, depth + 1)) return false;
    }
    return true;
}

/* true: no values satisfy s */
static bool search(rx_query *q, st *s, int depth)
{
    rx_box b;
    rx_rows rows;
    pull(q, s);
    if (s->dead || bound(q, s, &rows, &b)) return true;
    if (q->budget <= 0 || depth > RX_Q_DEPTH) return false;
    if (reduce(q, s)) return true;
    if (bound(q, s, &rows, &b)) return true;
    product_rows(q, s, &rows, &b);
    pull(q, s);
    uint32_t nv = q->nvars;
    if (s->dead || rx_rows_infeasible(q->a, &rows, &nv, &q->budget, -1, NULL, NULL)) return true;
    if (q->budget <= 0) return false;
    const alts *d = take_split(s);
    if (d) return all_fail(q, s, d, depth);
    return by_value(q, s, &b, depth);
}

rx_query *rx_query_new(relax_context *ctx, rx_arena *a, const rx_facts *f, int64_t budget, bool cases)
{
    rx_query *q = RX_NEW(a, rx_query);
    *q = (rx_query){.ctx = ctx,
                    .a = a,
                    .f = f,
                    .partial = rx_facts_partial(f),
                    .budget = budget,
                    .reserve = cases ? 2 * budget : 0};
    rx_map_init(&q->ids, a);
    return q;
}

static void find_partial(void *arg, rx_ex e)
{
    rx_query *q = arg;
    if (e->op == RX_EX_SELECT) q->partial = true;
}

static void assume_facts(rx_query *q, st *s, const rx_exvec *conds)
{
    for (const rx_facts *f = q->f; f; f = f->parent) s->dead |= f->empty;
    for (uint32_t i = 0; i < conds->n && i < RX_Q_FACTS; i++) assume(q, s, conds->at[i]);
}

bool rx_refute(rx_query *q, rx_ex cond)
{
    st s = {0};
    rx_exvec conj = {0}, syms = {0};
    rx_visit(q->ctx, cond, find_partial, q);
    assume(q, &s, cond);
    rx_facts_relevant(q->f, q->a, cond, &conj, &syms);
    assume_facts(q, &s, &conj);
    if (search(q, &s, 0)) return true;
    if (!q->reserve) return false;
    if (conj.n > RX_Q_FACTS) conj.n = RX_Q_FACTS;
    rx_push(q->a, &conj, cond);
    q->budget = q->reserve;
    return rx_refute_cases(q, &conj, 0);
}

/* with variables of its own: what earlier cases defined would only be in the way */
bool rx_refute_all(rx_query *q, const rx_exvec *conj)
{
    rx_query *in = rx_query_new(q->ctx, q->a, q->f, q->budget, false);
    st s = {0};
    in->partial = q->partial;
    for (uint32_t i = 0; i < conj->n; i++) assume(in, &s, conj->at[i]);
    bool r = search(in, &s, 0);
    q->budget = in->budget;
    return r;
}

const rx_facts *rx_query_facts(const rx_query *q) { return q->f; }
bool rx_query_partial(const rx_query *q) { return q->partial; }
relax_context *rx_query_ctx(const rx_query *q) { return q->ctx; }
rx_arena *rx_query_arena(const rx_query *q) { return q->a; }


void rx_query_bounds(rx_query *q, rx_ex e, int64_t *lo, int64_t *hi)
{
    st s = {0};
    rx_box b;
    rx_rows rows;
    rx_visit(q->ctx, e, find_partial, q);
    const rx_row *r = linear(q, e, true);
    if (!r) return;
    uint32_t v = q->nvars++;
    push_row(q, &s, as(q, mix(q, r, 1, unit(q, v, 1), -1), true));
    rx_exvec conj = {0}, syms = {0};
    rx_facts_relevant(q->f, q->a, e, &conj, &syms);
    assume_facts(q, &s, &conj);
    pull(q, &s);
    if (s.dead || bound(q, &s, &rows, &b)) return;
    if (reduce(q, &s) || bound(q, &s, &rows, &b)) return;
    if (b.lo[v] > *lo) *lo = b.lo[v];
    if (b.hi[v] < *hi) *hi = b.hi[v];
    product_rows(q, &s, &rows, &b);
    uint32_t nv = q->nvars;
    rx_rows_infeasible(q->a, &rows, &nv, &q->budget, v, lo, hi);
}
