/* upper.c: symbolic upper bounds in terms of chosen symbols, for memory planning.
 *
 * Monotone replacement from the leaves: each part that has a symbol which may not stay is replaced by something
 * that is never smaller (or never larger, where it counts negatively). A part is bounded by a fact that names it
 * (n <= 2*m, n*k <= 4096), by the bounds of its symbols, or through its operands. */
#include "expr/impl.h"

typedef struct up {
    relax_context *ctx;
    const rx_facts *f;
    bool (*keep)(void *, rx_ex);
    void *arg;
    int depth;
} up;

static rx_ex bound(up *u, rx_ex e, bool upper);

static bool kept(up *u, rx_ex e)
{
    rx_exvec syms = {0};
    rx_free_syms(u->ctx, rx_temp(u->ctx), e, &syms);
    for (uint32_t i = 0; i < syms.n; i++)
        if (!u->keep(u->arg, syms.at[i])) return false;
    return true;
}

/* the bound that the comparison c gives for key: coef * key + rest >= 0 */
static rx_ex from_fact(up *u, rx_ex c, rx_ex key, bool upper)
{
    relax_context *ctx = u->ctx;
    rx_terms t;
    if ((c->op != RX_EX_LE && c->op != RX_EX_LT && c->op != RX_EX_EQ) || c->a[0]->dtype != RELAX_I64) return NULL;
    rx_ex d = rx_sub(ctx, c->a[1], c->a[0]);
    if (c->op == RX_EX_LT) d = rx_subi(ctx, d, 1);
    for (int side = 0; side < 1 + (c->op == RX_EX_EQ); side++) {
        if (side) d = rx_muli(ctx, d, -1);
        rx_terms_of(d, rx_temp(ctx), &t);
        for (uint32_t i = 0; i < t.n; i++) {
            int64_t k = t.t[i].coef;
            if (t.t[i].key != key || (k < 0) != upper || k == INT64_MIN) continue;
            rx_ex rest = rx_sub(ctx, d, rx_scale(ctx, key, k));
            rx_ex b = rx_uses(ctx, rest, key) ? NULL : bound(u, rest, true);
            if (b) return upper ? rx_divi(ctx, b, -k) : rx_muli(ctx, rx_divi(ctx, b, k), -1);
        }
    }
    return NULL;
}

static rx_ex product(up *u, rx_ex e)
{
    rx_ex f[RX_EXPR_AC], r = rx_int(u->ctx, 1);
    uint32_t n = rx_factors(e, f, RX_EXPR_AC);
    if (n > RX_EXPR_AC) return NULL;
    for (uint32_t i = 0; i < n; i++) {
        if (rx_range_of(u->ctx, u->f, f[i]).lo < 0) return NULL;
        rx_ex b = bound(u, f[i], true);
        if (!b) return NULL;
        r = rx_mul(u->ctx, r, b);
    }
    return r;
}

static rx_ex sum(up *u, rx_ex e, bool upper)
{
    rx_terms t;
    rx_terms_of(e, rx_temp(u->ctx), &t);
    rx_ex r = rx_int(u->ctx, t.k);
    for (uint32_t i = 0; i < t.n; i++) {
        rx_ex b = bound(u, t.t[i].key, upper == (t.t[i].coef > 0));
        if (!b) return NULL;
        r = rx_add(u->ctx, r, rx_muli(u->ctx, b, t.t[i].coef));
    }
    return r;
}

static rx_ex through(up *u, rx_ex e, bool upper)
{
    relax_context *ctx = u->ctx;
    int64_t c;
    rx_ex a, b;
    switch ((rx_eop)e->op) {
    case RX_EX_ADD: return rx_is_sum(e) ? sum(u, e, upper) : NULL;
    case RX_EX_MUL:
        if (!rx_is_prod(e)) return NULL;
        return e->a[1]->op == RX_EX_INT ? sum(u, e, upper) : upper ? product(u, e) : NULL;
    case RX_EX_FLOORDIV:
        a = bound(u, e->a[0], upper);
        if (!a) return NULL;
        if (rx_is_int(e->a[1], &c) && c > 0) return rx_div(ctx, a, e->a[1]);
        return upper && rx_range_of(ctx, u->f, e->a[0]).lo >= 0 && rx_range_of(ctx, u->f, e->a[1]).lo >= 1 ? a : NULL;
    case RX_EX_FLOORMOD:
        if (!upper) return rx_range_of(ctx, u->f, e->a[1]).lo >= 1 ? rx_int(ctx, 0) : NULL;
        if (rx_range_of(ctx, u->f, e->a[1]).lo < 1) return NULL;
        b = bound(u, e->a[1], true);
        return b ? rx_subi(ctx, b, 1) : NULL;
    case RX_EX_MIN: case RX_EX_MAX:
        a = bound(u, e->a[0], upper);
        b = bound(u, e->a[1], upper);
        if ((e->op == RX_EX_MIN) == upper && (!a || !b)) return a ? a : b;      /* one operand bounds it alone */
        return a && b ? rx_binary(ctx, e->op, a, b) : NULL;
    case RX_EX_SELECT:
        a = bound(u, e->a[1], upper);
        b = bound(u, e->a[2], upper);
        return a && b ? rx_binary(ctx, upper ? RX_EX_MAX : RX_EX_MIN, a, b) : NULL;
    default: return NULL;
    }
}

static rx_ex bound(up *u, rx_ex e, bool upper)
{
    rx_ex r = NULL;
    if (kept(u, e)) return e;
    if (u->depth > 8) return NULL;
    u->depth++;
    bool whole = !rx_is_sum(e) && !(rx_is_prod(e) && e->a[1]->op == RX_EX_INT);
    for (const rx_facts *f = whole ? u->f : NULL; f && !r; f = f->parent)
        for (uint32_t i = 0; i < f->conds.n && !r; i++) r = from_fact(u, f->conds.at[i], e, upper);
    if (!r) r = through(u, e, upper);
    u->depth--;
    if (r) return r;
    rx_range k = rx_range_of(u->ctx, u->f, e);
    int64_t v = upper ? k.hi : k.lo;
    return v == INT64_MIN || v == INT64_MAX ? NULL : rx_int(u->ctx, v);
}

rx_ex rx_upper(relax_context *ctx, const rx_facts *f, rx_ex e, bool (*keep)(void *, rx_ex), void *arg)
{
    up u = {ctx, f, keep, arg, 0};
    return rx_is_index(e) && e->dtype == RELAX_I64 ? bound(&u, e, true) : NULL;
}
