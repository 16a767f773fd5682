/* simplify.c: full-strength simplification under facts.
 *
 * Bottom up, every distinct node once: intervals decide constants; quotients and remainders drop low parts that
 * cannot carry; extrema, comparisons and conditions are decided by the prover (a bounded number of proofs for a
 * call); then the rules of rules.def, repeated a bounded number of times. The sides of a select are simplified
 * under its condition. A canonical sum is one step: its terms, then the sum as a whole, which keeps long sums
 * linear. */
#include "expr/impl.h"

#define RX_SIMPLIFY_PROOFS 64
#define RX_SIMPLIFY_ROUNDS 8

typedef struct sim {
    relax_context *ctx;
    const rx_facts *f;
    rx_map done;
    int *proofs;
} sim;

static rx_ex simplify(sim *s, rx_ex e);

/* terms of x with coefficients divisible by g, and the rest; low part shifted into [0, g)? */
static bool split_low(sim *s, rx_ex x, int64_t g, rx_ex *high, rx_ex *low)
{
    relax_context *ctx = s->ctx;
    rx_terms t;
    rx_terms_of(x, rx_temp(ctx), &t);
    int64_t k, whole, q;
    rx_floormod_ok(t.k, g, &k);
    *low = rx_int(ctx, k);
    for (uint32_t i = 0; i < t.n; i++)
        if (t.t[i].coef % g) *low = rx_add(ctx, *low, rx_scale(ctx, t.t[i].key, t.t[i].coef));
    rx_range r = rx_range_of(ctx, s->f, *low);
    if (r.lo == INT64_MIN || r.hi == INT64_MAX) return false;
    if (!rx_floordiv_ok(r.lo, g, &q) || !rx_floordiv_ok(r.hi, g, &whole) || q != whole || !rx_mul_ok(q, g, &q))
        return false;
    *low = rx_subi(ctx, *low, q);
    *high = rx_sub(ctx, x, *low);
    return true;
}

/* (g*h + l) // (g*c) == h // c and (g*h + l) % (g*c) == g*(h % c) + l for 0 <= l < g */
static rx_ex carry(sim *s, rx_ex e)
{
    relax_context *ctx = s->ctx;
    int64_t c;
    rx_terms t;
    rx_ex high, low;
    if ((e->op != RX_EX_FLOORDIV && e->op != RX_EX_FLOORMOD) || !rx_is_int(e->a[1], &c) || c <= 1) return e;
    rx_terms_of(e->a[0], rx_temp(ctx), &t);
    if (t.n > 64) return e;
    for (uint32_t i = 0; i <= t.n; i++) {
        int64_t g = i < t.n ? rx_gcd(t.t[i].coef, c) : c;
        if (g <= 1 || !split_low(s, e->a[0], g, &high, &low)) continue;
        if (i < t.n && rx_is_value(low, 0)) continue;
        high = rx_divi(ctx, high, g);
        if (e->op == RX_EX_FLOORDIV) return rx_divi(ctx, high, c / g);
        return rx_add(ctx, rx_muli(ctx, rx_modi(ctx, high, c / g), g), low);
    }
    return e;
}

static rx_ex decide(sim *s, rx_ex e)
{
    if (e->dtype != RELAX_BOOL || e->op == RX_EX_INT || e->op == RX_EX_SYM || *s->proofs <= 0 || e->size > 200)
        return e;
    --*s->proofs;
    rx_truth t = rx_prove_with(s->ctx, s->f, e, RX_EFFORT_QUICK, NULL);
    return t == RX_UNKNOWN ? e : rx_bool(s->ctx, t == RX_TRUE);
}

/* one node whose operands are simple already */
static rx_ex step(sim *s, rx_ex e)
{
    rx_range r = rx_range_of(s->ctx, s->f, e);
    if (r.lo == r.hi && r.lo != INT64_MIN && r.lo != INT64_MAX)
        return e->dtype == RELAX_BOOL ? rx_bool(s->ctx, r.lo) : rx_int(s->ctx, r.lo);
    int64_t c = 1, b;
    if (e->op == RX_EX_FLOORMOD || e->op == RX_EX_TRUNCMOD) rx_modular(s->ctx, s->f, e, &c, &b);
    if (!c) return rx_int(s->ctx, b);
    rx_ex x = carry(s, e);
    if (x == e) x = rx_apply_rules(s->ctx, s->f, e, s->proofs);
    return x == e ? decide(s, e) : x;
}

static rx_ex sum_terms(sim *s, rx_ex e)
{
    rx_terms t;
    rx_arena *tmp = rx_temp(s->ctx);
    rx_terms_of(e, tmp, &t);
    rx_ex *x = RX_NEWN(tmp, rx_ex, t.n + 1);
    bool changed = false;
    for (uint32_t i = 0; i < t.n; i++) {
        rx_ex key = simplify(s, t.t[i].key);
        changed |= key != t.t[i].key;
        x[i] = rx_muli(s->ctx, key, t.t[i].coef);
    }
    x[t.n] = rx_int(s->ctx, t.k);
    return changed ? rx_sum(s->ctx, x, t.n + 1) : e;
}

static rx_ex select_sides(sim *s, rx_ex e)
{
    relax_context *ctx = s->ctx;
    rx_ex side[2], cond = decide(s, simplify(s, e->a[0]));
    if (cond->op == RX_EX_INT) return simplify(s, e->a[cond->u.i ? 1 : 2]);
    for (int k = 0; k < 2; k++) {
        rx_arena *tmp = rx_temp(ctx);
        rx_facts *f = rx_facts_new(ctx, tmp, s->f);
        rx_facts_add(f, k ? rx_not(ctx, cond) : cond);
        sim in = {.ctx = ctx, .f = f, .proofs = s->proofs};
        rx_map_init(&in.done, tmp);
        side[k] = simplify(&in, e->a[1 + k]);
    }
    return rx_select(ctx, cond, side[0], side[1]);
}

static rx_ex operands(sim *s, rx_ex e)
{
    rx_ex few[4], *a = few;
    if (rx_is_sum(e) || (rx_is_prod(e) && e->a[1]->op == RX_EX_INT)) return sum_terms(s, e);
    if (e->op == RX_EX_SELECT && rx_is_index(e)) return select_sides(s, e);
    if (e->nargs > 4) a = RX_NEWN(rx_temp(s->ctx), rx_ex, e->nargs);
    for (uint32_t i = 0; i < e->nargs; i++) a[i] = simplify(s, e->a[i]);
    return rx_rebuild(s->ctx, e, a);
}

static rx_ex simplify(sim *s, rx_ex e)
{
    if (e->op == RX_EX_INT || e->op == RX_EX_FLOAT) return e;
    rx_ex known = e->nargs ? rx_map_get(&s->done, RX_KEY(e)) : NULL;
    if (known) return known;
    if (!e->nargs) return rx_is_index(e) ? step(s, e) : e;
    rx_ex x = e;
    for (int k = 0; k < RX_SIMPLIFY_ROUNDS && x->nargs; k++) {
        rx_ex y = operands(s, x);
        if (rx_is_index(y)) y = step(s, y);
        if (y == x) break;
        x = y;
    }
    rx_map_put(&s->done, RX_KEY(e), (void *)(uintptr_t)x);
    return x;
}

rx_ex rx_simplify(relax_context *ctx, const rx_facts *f, rx_ex e)
{
    int proofs = RX_SIMPLIFY_PROOFS;
    sim s = {.ctx = ctx, .f = f, .proofs = &proofs};
    rx_map_init(&s.done, rx_temp(ctx));
    return simplify(&s, e);
}
