/* solve.c: equations and inequalities solved for one symbol, and symbolic upper bounds.
 *
 * A comparison becomes e >= 0 or e == 0; the part with the symbol is peeled from outside: coefficients, quotients
 * by constants, minima and maxima, until c * sym + rest is left, with the sign of c proved. Symbols under "for
 * all" are replaced in rest by the end of their range that makes it smallest. */
#include "expr/impl.h"

/* e == c * sym + rest with c and rest free of sym? */
static bool affine(relax_context *ctx, rx_ex e, rx_ex sym, rx_ex *c, rx_ex *rest)
{
    rx_terms t;
    rx_ex part;
    rx_terms_of(e, rx_temp(ctx), &t);
    *c = rx_int(ctx, 0);
    *rest = rx_int(ctx, t.k);
    for (uint32_t i = 0; i < t.n; i++) {
        rx_ex term = rx_scale(ctx, t.t[i].key, t.t[i].coef);
        if (!rx_uses(ctx, term, sym)) {
            *rest = rx_add(ctx, *rest, term);
        } else {
            if (!rx_divide_key(ctx, t.t[i].key, sym, &part) || rx_uses(ctx, part, sym)) return false;
            *c = rx_add(ctx, *c, rx_muli(ctx, part, t.t[i].coef));
        }
    }
    return true;
}

bool rx_solve(relax_context *ctx, rx_ex e, rx_ex value, rx_ex sym, rx_ex *solution, rx_ex *cond)
{
    rx_ex c, rest, zero = rx_int(ctx, 0);
    if (!rx_is_index(e) || !rx_is_index(value) || e->dtype != RELAX_I64 || value->dtype != RELAX_I64) return false;
    if (rx_uses(ctx, value, sym) || !affine(ctx, e, sym, &c, &rest) || rx_is_value(c, 0)) return false;
    rx_ex num = rx_sub(ctx, value, rest);
    *solution = rx_div(ctx, num, c);
    *cond = rx_eq(ctx, rx_mod(ctx, num, c), zero);
    if (c->op != RX_EX_INT) *cond = rx_and(ctx, rx_ne(ctx, c, zero), *cond);
    return true;
}

/* ---- sets ---- */
typedef struct task {
    relax_context *ctx;
    const rx_facts *f;
    rx_ex sym;
    const rx_ex *all;
    const int64_t *lo, *hi;
    uint32_t n;
} task;

static const rx_interval unknown = {false, false, NULL, NULL}, everything = {true, false, NULL, NULL},
                         nothing = {true, true, NULL, NULL};

static bool uses_all(task *t, rx_ex e)
{
    for (uint32_t i = 0; i < t->n; i++)
        if (rx_uses(t->ctx, e, t->all[i])) return true;
    return false;
}

/* the smallest value of e over the "for all" symbols, as an expression without them; NULL: unknown */
static rx_ex smallest(task *t, rx_ex e)
{
    relax_context *ctx = t->ctx;
    rx_terms p;
    rx_map m;
    int64_t lo, hi;
    rx_arena *tmp = rx_temp(ctx);
    if (!uses_all(t, e)) return e;
    rx_map_init(&m, tmp);
    rx_terms_of(e, tmp, &p);
    rx_ex free_part = rx_int(ctx, p.k), bound_part = rx_int(ctx, 0);
    for (uint32_t i = 0; i < p.n; i++) {
        rx_ex term = rx_scale(ctx, p.t[i].key, p.t[i].coef);
        if (uses_all(t, term)) bound_part = rx_add(ctx, bound_part, term);
        else free_part = rx_add(ctx, free_part, term);
    }
    rx_facts *g = rx_facts_new(ctx, tmp, t->f);
    for (uint32_t i = 0; i < t->n; i++) {
        rx_facts_add(g, rx_le(ctx, rx_int(ctx, t->lo[i]), t->all[i]));
        rx_facts_add(g, rx_le(ctx, t->all[i], rx_int(ctx, t->hi[i])));
    }
    rx_bounds(ctx, g, bound_part, &lo, &hi);
    if (lo == INT64_MIN) return NULL;
    /* the bound must be attained for the set to be the largest: at a corner */
    rx_ex corner = bound_part;
    for (uint32_t i = 0; i < t->n; i++) {
        rx_ex a, b;
        rx_map_init(&m, tmp);
        rx_map_put(&m, RX_KEY(t->all[i]), (void *)(uintptr_t)rx_int(ctx, t->lo[i]));
        a = rx_subst(ctx, corner, &m);
        rx_map_init(&m, tmp);
        rx_map_put(&m, RX_KEY(t->all[i]), (void *)(uintptr_t)rx_int(ctx, t->hi[i]));
        b = rx_subst(ctx, corner, &m);
        corner = rx_prove_le(ctx, g, a, b) == RX_TRUE ? a : b;
    }
    return rx_is_value(corner, lo) ? rx_add(ctx, free_part, corner) : NULL;
}

static rx_interval meet(relax_context *ctx, rx_interval x, rx_interval y)
{
    if (!x.known || !y.known) return x.empty || y.empty ? nothing : unknown;
    if (x.empty || y.empty) return nothing;
    if (x.lo) y.lo = y.lo ? rx_max(ctx, x.lo, y.lo) : x.lo;
    if (x.hi) y.hi = y.hi ? rx_min(ctx, x.hi, y.hi) : x.hi;
    return y;
}

static rx_interval at_least(task *t, rx_ex e);

/* coef * key + rest >= 0, the symbol inside key (a quotient, a minimum, a maximum) */
static rx_interval peel(task *t, rx_ex key, int64_t coef, rx_ex rest)
{
    relax_context *ctx = t->ctx;
    int64_t c;
    rx_ex low = smallest(t, rest);
    if (!low) return unknown;
    /* coef > 0: key >= bound; coef < 0: key <= bound */
    rx_ex bound = coef > 0 ? rx_muli(ctx, rx_divi(ctx, low, coef), -1) : rx_divi(ctx, low, -coef);
    if (key->op == RX_EX_FLOORDIV && rx_is_int(key->a[1], &c) && c > 0) {
        rx_ex x = key->a[0];
        if (coef > 0) return at_least(t, rx_sub(ctx, x, rx_muli(ctx, bound, c)));
        return at_least(t, rx_sub(ctx, rx_addi(ctx, rx_muli(ctx, bound, c), c - 1), x));
    }
    if (key->op != RX_EX_MIN && key->op != RX_EX_MAX) return unknown;
    rx_ex a = key->a[0], b = key->a[1];
    rx_interval x = at_least(t, coef > 0 ? rx_sub(ctx, a, bound) : rx_sub(ctx, bound, a));
    rx_interval y = at_least(t, coef > 0 ? rx_sub(ctx, b, bound) : rx_sub(ctx, bound, b));
    if ((key->op == RX_EX_MIN) == (coef > 0)) return meet(ctx, x, y);          /* both operands have to */
    if (!x.known || !y.known) return unknown;
    bool ax = !x.empty && !x.lo && !x.hi, ay = !y.empty && !y.lo && !y.hi;
    if (ax || ay) return everything;
    return x.empty ? y : y.empty ? x : unknown;
}

/* e >= 0 */
static rx_interval at_least(task *t, rx_ex e)
{
    relax_context *ctx = t->ctx;
    rx_ex c, rest, zero = rx_int(ctx, 0);
    rx_interval r = everything;
    if (!rx_uses(ctx, e, t->sym)) {
        rx_ex low = smallest(t, e);
        rx_truth is = low ? rx_prove_le(ctx, t->f, zero, low) : RX_UNKNOWN;
        return is == RX_TRUE ? everything : is == RX_FALSE ? nothing : unknown;
    }
    if (affine(ctx, e, t->sym, &c, &rest)) {
        rx_ex low = uses_all(t, c) ? NULL : smallest(t, rest);
        if (!low) return unknown;
        if (rx_prove_le(ctx, t->f, rx_int(ctx, 1), c) == RX_TRUE) r.lo = rx_muli(ctx, rx_div(ctx, low, c), -1);
        else if (rx_prove_le(ctx, t->f, c, rx_int(ctx, -1)) == RX_TRUE) r.hi = rx_div(ctx, low, rx_muli(ctx, c, -1));
        else return unknown;
        return r;
    }
    rx_terms p;
    rx_terms_of(e, rx_temp(ctx), &p);
    rx_ex others = rx_int(ctx, p.k);
    int64_t at = -1;
    for (uint32_t i = 0; i < p.n; i++) {
        if (!rx_uses(ctx, p.t[i].key, t->sym)) others = rx_add(ctx, others, rx_scale(ctx, p.t[i].key, p.t[i].coef));
        else if (at >= 0) return unknown;
        else at = i;
    }
    return at < 0 || p.t[at].coef == INT64_MIN ? unknown : peel(t, p.t[at].key, p.t[at].coef, others);
}

static rx_interval equal(task *t, rx_ex e)
{
    relax_context *ctx = t->ctx;
    rx_ex c, rest, zero = rx_int(ctx, 0);
    int64_t lo, hi;
    if (!affine(ctx, e, t->sym, &c, &rest) || uses_all(t, c)) return unknown;
    if (rx_prove(ctx, t->f, rx_ne(ctx, c, zero), NULL) != RX_TRUE) return unknown;
    if (uses_all(t, rest)) {           /* one value of sym cannot serve two values of rest */
        rx_ex low = smallest(t, rest), high = smallest(t, rx_muli(ctx, rest, -1));
        if (!low || !high) return unknown;
        rx_bounds(ctx, t->f, rx_add(ctx, low, high), &lo, &hi);
        return hi < 0 ? nothing : unknown;
    }
    rx_truth whole = rx_prove_eq(ctx, t->f, rx_mod(ctx, rest, c), zero);
    if (whole != RX_TRUE) return whole == RX_FALSE ? nothing : unknown;
    rx_ex v = rx_div(ctx, rx_muli(ctx, rest, -1), c);
    return (rx_interval){true, false, v, v};
}

rx_interval rx_solve_set(relax_context *ctx, const rx_facts *f, rx_ex claim, rx_ex sym, const rx_ex *all,
                         const int64_t *lo, const int64_t *hi, uint32_t n)
{
    task t = {ctx, f, sym, all, lo, hi, n};
    if (claim->op == RX_EX_INT) return claim->u.i ? everything : nothing;
    if (!rx_is_index(claim)) return unknown;
    if (claim->op == RX_EX_AND)
        return meet(ctx, rx_solve_set(ctx, f, claim->a[0], sym, all, lo, hi, n),
                    rx_solve_set(ctx, f, claim->a[1], sym, all, lo, hi, n));
    if ((claim->op != RX_EX_LE && claim->op != RX_EX_LT && claim->op != RX_EX_EQ) || claim->a[0]->dtype != RELAX_I64)
        return unknown;
    rx_ex d = rx_sub(ctx, claim->a[1], claim->a[0]);
    if (claim->op == RX_EX_EQ) return equal(&t, d);
    return at_least(&t, claim->op == RX_EX_LT ? rx_subi(ctx, d, 1) : d);
}
