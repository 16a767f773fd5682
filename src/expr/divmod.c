/* divmod.c: canonical floor division and modulo of index expressions.
 *
 * Identities used, all over the integers with floor semantics (c > 0, g > 0 constants; b any nonzero expression):
 *   (c*q + r) // c == q + r // c               (c*q + r) % c == r % c            likewise with b for c
 *   (g*s + r) // (g*c) == (s + r // g) // c    (g*s + r) % (g*c) == g * ((s + r // g) % c) + r % g
 *   (x // d + k) // c == (x + k*d) // (c*d)    (k * (x % d) + r) % c == (k*x + r) % c   if c divides k*d
 *   (g*a) // (g*b) == a // b                   (g*a) % (g*b) == g * (a % b)      for an expression g too A
 *   division by zero has no value, so every identity may assume that the divisor is not zero. Out: coefficients
 *   inside // keep their sign and are smaller than the divisor, those inside % lie in (-c/2, c/2], constants
 *   inside both in [0, c). */
#include "expr/impl.h"

static bool const_mod(rx_ex e, int64_t *d)
{
    return e->op == RX_EX_FLOORMOD && rx_is_index(e) && rx_is_int(e->a[1], d) && *d > 0;
}

/* the value lies in [0, c) whatever the symbols are: a sum of remainders with positive factors */
static bool small(const rx_terms *r, int64_t c)
{
    int64_t hi = r->k, d, w;
    for (uint32_t i = 0; i < r->n; i++)
        if (!const_mod(r->t[i].key, &d) || r->t[i].coef < 0 || !rx_mul_ok(r->t[i].coef, d - 1, &w) ||
            !rx_add_ok(hi, w, &hi))
            return false;
    return r->k >= 0 && hi < c;
}

/* divide coefficients and constant (floor) by g */
static void shrink(rx_terms *r, int64_t g, int64_t *rest)
{
    for (uint32_t i = 0; i < r->n; i++) r->t[i].coef /= g;
    *rest = r->k % g;
    r->k /= g;
}

static rx_ex div_const(relax_context *ctx, rx_ex a, int64_t c)
{
    rx_arena *tmp = rx_temp(ctx);
    rx_terms p, q = {0}, r = {0};
    int64_t g = c, d, shift, prod, rest;
    rx_terms_of(a, tmp, &p);
    q.t = RX_NEWN(tmp, rx_term, p.n + 1);
    r.t = RX_NEWN(tmp, rx_term, p.n + 1);
    for (uint32_t i = 0; i < p.n; i++) {
        rx_term t = p.t[i];
        if (t.coef / c) q.t[q.n++] = (rx_term){t.key, t.coef / c};
        if (t.coef % c) r.t[r.n++] = (rx_term){t.key, t.coef % c};
        if (t.coef % c) g = rx_gcd(g, t.coef % c);
    }
    rx_floordiv_ok(p.k, c, &q.k);
    rx_floormod_ok(p.k, c, &r.k);
    if (r.n == 0) return rx_from_terms(ctx, &q);
    shrink(&r, g, &rest);
    c /= g;
    if (small(&r, c)) return rx_from_terms(ctx, &q);
    rx_ex key = r.t[0].key, e;
    if (r.n == 1 && r.t[0].coef == 1 && key->op == RX_EX_FLOORDIV && rx_is_int(key->a[1], &d) && d > 0
        && rx_mul_ok(c, d, &prod) && rx_mul_ok(r.k, d, &shift))
        e = div_const(ctx, rx_index_add(ctx, key->a[0], rx_int(ctx, shift)), prod);
    else
        e = rx_node2(ctx, RX_EX_FLOORDIV, 0, RELAX_I64, rx_from_terms(ctx, &r), rx_int(ctx, c));
    return rx_index_add(ctx, rx_from_terms(ctx, &q), e);
}

/* the residue of smallest absolute value, positive on a tie; c > 0 */
static int64_t residue(int64_t v, int64_t c)
{
    v %= c;
    if (v > c / 2) v -= c;
    if (v < -((c - 1) / 2)) v += c;
    return v;
}

static rx_ex mod_const(relax_context *ctx, rx_ex a, int64_t c)
{
    rx_arena *tmp = rx_temp(ctx);
    rx_terms p, r = {0};
    int64_t g = c, d, rest;
    rx_terms_of(a, tmp, &p);
    for (uint32_t i = 0; i < p.n; i++) {
        int64_t whole;
        if (!const_mod(p.t[i].key, &d) || !rx_mul_ok(p.t[i].coef, d, &whole) || whole % c) continue;
        rx_ex out = rx_scale(ctx, p.t[i].key, p.t[i].coef), in = p.t[i].key->a[0];
        rx_ex e = rx_index_mul(ctx, in, rx_int(ctx, p.t[i].coef));
        return mod_const(ctx, rx_index_add(ctx, rx_index_add(ctx, a, rx_index_mul(ctx, out, rx_int(ctx, -1))), e), c);
    }
    r.t = RX_NEWN(tmp, rx_term, p.n + 1);
    for (uint32_t i = 0; i < p.n; i++) {
        int64_t v = residue(p.t[i].coef, c);
        if (!v) continue;
        r.t[r.n++] = (rx_term){p.t[i].key, v};
        g = rx_gcd(g, v);
    }
    rx_floormod_ok(p.k, c, &r.k);
    if (r.n == 0) return rx_int(ctx, r.k);
    shrink(&r, g, &rest);
    c /= g;
    for (uint32_t i = 0; i < r.n; i++) r.t[i].coef = residue(r.t[i].coef, c);
    rx_ex e = rx_from_terms(ctx, &r);
    if (!small(&r, c)) e = rx_node2(ctx, RX_EX_FLOORMOD, 0, RELAX_I64, e, rx_int(ctx, c));
    return rx_index_add(ctx, rx_index_mul(ctx, e, rx_int(ctx, g)), rx_int(ctx, rest));
}

/* ---- symbolic divisors ---- */
typedef struct rational { rx_ex whole, num, den; int64_t coef; rx_ex common; } rational;

static bool term_over(relax_context *ctx, rx_term t, rx_term by, rx_term *q)
{
    if (t.coef == INT64_MIN || t.coef % by.coef || !rx_divide_key(ctx, t.key, by.key, &q->key)) return false;
    q->coef = t.coef / by.coef;
    return true;
}

/* a == q * b exactly? Long division with the first term of b, a bounded number of steps. */
static bool exact(relax_context *ctx, rx_ex a, rx_ex b, rx_ex *quot)
{
    rx_arena *tmp = rx_temp(ctx);
    rx_ex q = rx_int(ctx, 0);
    rx_terms pb, pa;
    if (!rx_terms_of(b, tmp, &pb)) return false;
    for (int step = 0; step < 8 && !rx_is_value(a, 0); step++) {
        rx_term t;
        uint32_t i = 0;
        rx_terms_of(a, tmp, &pa);
        while (i < pa.n && !term_over(ctx, pa.t[i], pb.t[0], &t)) i++;
        if (i == pa.n) return false;
        rx_ex m = rx_scale(ctx, t.key, t.coef);
        q = rx_index_add(ctx, q, m);
        a = rx_index_add(ctx, a, rx_index_mul(ctx, rx_index_mul(ctx, m, b), rx_int(ctx, -1)));
    }
    *quot = q;
    return rx_is_value(a, 0);
}

/* divide all terms by key * coef */
static bool cancel(relax_context *ctx, rx_terms *p, rx_ex key, int64_t coef)
{
    if (key && p->k) return false;
    for (uint32_t i = 0; i < p->n; i++) {
        if (key && !rx_divide_key(ctx, p->t[i].key, key, &p->t[i].key)) return false;
        p->t[i].coef /= coef;
    }
    p->k /= coef;
    return true;
}

static rx_ex from_divided(relax_context *ctx, const rx_terms *p)
{
    rx_ex e = rx_int(ctx, p->k);
    for (uint32_t i = 0; i < p->n; i++) {
        rx_ex t = rx_scale(ctx, p->t[i].key, p->t[i].coef);
        e = rx_index_add(ctx, e, t);
    }
    return e;
}

static rx_terms copy(rx_arena *a, const rx_terms *p)
{
    return (rx_terms){p->n ? rx_arena_dup(a, p->t, p->n * sizeof *p->t) : NULL, p->n, p->k};
}

/* a over b as whole + num/den * common: divisible terms taken out (floor only), common factors cancelled */
static rational reduce(relax_context *ctx, rx_ex a, rx_ex b, bool floor)
{
    rx_arena *tmp = rx_temp(ctx);
    rational r = {rx_int(ctx, 0), a, b, 1, NULL};
    rx_terms pa, pb;
    rx_terms_of(b, tmp, &pb);
    rx_terms_of(a, tmp, &pa);
    if (exact(ctx, a, b, &r.whole)) return r.num = rx_int(ctx, 0), r;
    r.whole = rx_int(ctx, 0);
    if (floor && pb.n == 1 && !pb.k) {
        rx_terms rest = {RX_NEWN(tmp, rx_term, pa.n + 1), 0, pa.k};
        for (uint32_t i = 0; i < pa.n; i++) {
            rx_term q;
            if (term_over(ctx, pa.t[i], pb.t[0], &q))
                r.whole = rx_index_add(ctx, r.whole, rx_scale(ctx, q.key, q.coef));
            else rest.t[rest.n++] = pa.t[i];
        }
        pa = rest;
    }
    int64_t g = rx_gcd(pa.k, pb.k);
    for (uint32_t i = 0; i < pa.n; i++) g = rx_gcd(g, pa.t[i].coef);
    for (uint32_t i = 0; i < pb.n; i++) g = rx_gcd(g, pb.t[i].coef);
    if (g > 1) {
        cancel(ctx, &pa, NULL, g);
        cancel(ctx, &pb, NULL, g);
        r.coef = g;
    }
    rx_ex f[RX_EXPR_AC];
    uint32_t nf = pb.n ? rx_factors(pb.t[0].key, f, RX_EXPR_AC) : 0;
    for (uint32_t i = 0; i < nf && nf <= RX_EXPR_AC && pa.n && !pa.k && !pb.k; i++) {
        rx_terms ca = copy(tmp, &pa), cb = copy(tmp, &pb);
        if (f[i]->op == RX_EX_INT || !cancel(ctx, &ca, f[i], 1) || !cancel(ctx, &cb, f[i], 1)) continue;
        r.common = r.common ? rx_index_mul(ctx, r.common, f[i]) : f[i];
        rx_ex na = from_divided(ctx, &ca), nb = from_divided(ctx, &cb);      /* a key may have become a constant */
        rx_terms_of(na, tmp, &pa);
        rx_terms_of(nb, tmp, &pb);
    }
    r.num = from_divided(ctx, &pa);
    r.den = from_divided(ctx, &pb);
    return r;
}

#define RX_DIVMOD_TERMS 256            /* longer dividends and divisors stay as they are: keeps the work linear */

rx_ex rx_index_floordiv(relax_context *ctx, rx_ex a, rx_ex b)
{
    int64_t c;
    rx_ex minus = rx_int(ctx, -1);
    if (rx_is_int(b, &c) && c != 0 && c != INT64_MIN) {
        if (c == 1) return a;
        if (c == -1) return rx_index_mul(ctx, a, minus);
        return c < 0 ? div_const(ctx, rx_index_mul(ctx, a, minus), -c) : div_const(ctx, a, c);
    }
    if (rx_is_int(b, &c)) return rx_node2(ctx, RX_EX_FLOORDIV, 0, RELAX_I64, a, b);
    if (a == b) return rx_int(ctx, 1);
    if (rx_is_value(a, 0)) return a;
    if (a->size > RX_DIVMOD_TERMS || b->size > RX_DIVMOD_TERMS)
        return rx_node2(ctx, RX_EX_FLOORDIV, 0, RELAX_I64, a, b);
    rational r = reduce(ctx, a, b, true);
    if (rx_is_value(r.num, 0)) return r.whole;
    rx_ex q = rx_is_int(r.den, &c) ? rx_index_floordiv(ctx, r.num, r.den)
                                   : rx_node2(ctx, RX_EX_FLOORDIV, 0, RELAX_I64, r.num, r.den);
    return rx_index_add(ctx, r.whole, q);
}

/* terms k * (x % b) of a become k * x, which changes a by a multiple of b; b or -b may stand as the divisor */
static rx_ex drop_mods(relax_context *ctx, rx_ex a, rx_ex b)
{
    rx_terms p;
    rx_ex neg = rx_index_mul(ctx, b, rx_int(ctx, -1));
    rx_terms_of(a, rx_temp(ctx), &p);
    for (uint32_t i = 0; i < p.n; i++) {
        rx_ex key = p.t[i].key;
        if (key->op != RX_EX_FLOORMOD || !rx_is_index(key) || (key->a[1] != b && key->a[1] != neg)) continue;
        rx_ex d = rx_index_add(ctx, key->a[0], rx_index_mul(ctx, key, rx_int(ctx, -1)));
        a = rx_index_add(ctx, a, rx_index_mul(ctx, d, rx_int(ctx, p.t[i].coef)));
    }
    return a;
}

rx_ex rx_index_floormod(relax_context *ctx, rx_ex a, rx_ex b)
{
    int64_t c;
    rx_ex minus = rx_int(ctx, -1);
    if (rx_is_int(b, &c) && c != 0 && c != INT64_MIN) {
        if (c == 1 || c == -1) return rx_int(ctx, 0);
        if (c > 0) return mod_const(ctx, a, c);
        return rx_index_mul(ctx, mod_const(ctx, rx_index_mul(ctx, a, minus), -c), minus);
    }
    if (rx_is_int(b, &c)) return rx_node2(ctx, RX_EX_FLOORMOD, 0, RELAX_I64, a, b);
    if (a == b || rx_is_value(a, 0)) return rx_int(ctx, 0);
    if (a->size > RX_DIVMOD_TERMS || b->size > RX_DIVMOD_TERMS)
        return rx_node2(ctx, RX_EX_FLOORMOD, 0, RELAX_I64, a, b);
    a = drop_mods(ctx, a, b);
    rational r = reduce(ctx, a, b, true);
    if (rx_is_value(r.num, 0)) return r.num;
    rx_ex m = rx_is_int(r.den, &c) ? rx_index_floormod(ctx, r.num, r.den)
                                   : rx_node2(ctx, RX_EX_FLOORMOD, 0, RELAX_I64, r.num, r.den);
    m = rx_index_mul(ctx, m, rx_int(ctx, r.coef));
    return r.common ? rx_index_mul(ctx, m, r.common) : m;
}

/* Rounding to zero keeps only what does not depend on signs: exact quotients, common factors, the sign of a
 * constant divisor. */
rx_ex rx_index_trunc(relax_context *ctx, rx_eop op, rx_ex a, rx_ex b)
{
    int64_t c = 0;
    rx_ex minus = rx_int(ctx, -1);
    bool div = op == RX_EX_TRUNCDIV, known = rx_is_int(b, &c);
    if (known && c < 0 && c != INT64_MIN) {
        rx_ex e = rx_index_trunc(ctx, op, a, rx_int(ctx, -c));
        return div ? rx_index_mul(ctx, e, minus) : e;
    }
    if (known && c == 1) return div ? a : rx_int(ctx, 0);
    if (a == b) return rx_int(ctx, div);
    if (rx_is_value(b, 0) || a->size > RX_DIVMOD_TERMS || b->size > RX_DIVMOD_TERMS)
        return rx_node2(ctx, op, 0, RELAX_I64, a, b);
    rational r = reduce(ctx, a, b, false);
    if (rx_is_value(r.num, 0)) return div ? r.whole : r.num;
    bool same = r.num == a && r.den == b;
    rx_ex e = same ? rx_node2(ctx, op, 0, RELAX_I64, a, b) : rx_fold_binary(ctx, op, r.num, r.den);
    if (!e) e = rx_index_trunc(ctx, op, r.num, r.den);
    if (div) return e;
    e = rx_index_mul(ctx, e, rx_int(ctx, r.coef));
    return r.common ? rx_index_mul(ctx, e, r.common) : e;
}
