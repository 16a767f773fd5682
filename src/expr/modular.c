/* modular.c: what is known of an expression modulo something: e == base (mod coeff), coeff 0 meaning e == base.
 *
 * Rules as in the congruence domain (Granger, 1989). Facts of the form x % c == r, truncmod(x, c) == r and x ==
 * linear form are used for the node x itself; several congruences of one node are combined by the Chinese
 * remainder theorem. */
#include "expr/impl.h"

typedef struct cong { int64_t c, b; } cong;       /* 0 <= b < c, or c == 0 */
static const cong any = {1, 0};

static cong norm(int64_t c, int64_t b)
{
    if (c == INT64_MIN) return any;
    if (c < 0) c = -c;
    int64_t r = b;
    if (c && !rx_floormod_ok(b, c, &r)) return any;
    return (cong){c, r};
}

static cong add(cong x, cong y)
{
    int64_t b;
    return rx_add_ok(x.b, y.b, &b) ? norm(rx_gcd(x.c, y.c), b) : any;
}

static cong mul(cong x, cong y)
{
    int64_t p, q, r, b;
    if (!rx_mul_ok(x.b, y.b, &b) || !rx_mul_ok(x.c, y.c, &p) || !rx_mul_ok(x.c, y.b, &q) || !rx_mul_ok(y.c, x.b, &r))
        return any;
    return norm(rx_gcd(p, rx_gcd(q, r)), b);
}

static cong either(cong x, cong y)
{
    int64_t d;
    return rx_sub_ok(x.b, y.b, &d) ? norm(rx_gcd(rx_gcd(x.c, y.c), d), x.b) : any;
}

/* both hold: Chinese remainder by stepping through x's residues, at most 4096 steps */
static cong both(cong x, cong y)
{
    if (x.c == 0) return x;
    if (y.c == 0) return y;
    if (x.c < y.c) { cong t = x; x = y; y = t; }
    int64_t g = rx_gcd(x.c, y.c), l, v = x.b;
    if (!rx_mul_ok(x.c / g, y.c, &l) || y.c / g > 4096) return x;
    for (int64_t i = 0; i < y.c / g; i++) {
        if (v % y.c == y.b) return norm(l, v);
        if (!rx_add_ok(v, x.c, &v)) return x;
    }
    return x;                          /* contradictory facts: anything is right */
}

typedef struct env { relax_context *ctx; const rx_facts *f; int depth; } env;
static cong of(env *v, rx_ex e);

static cong divide(env *v, rx_ex e, cong x)
{
    int64_t d, q;
    if (!rx_is_int(e->a[1], &d) || d == 0 || d == INT64_MIN || d == -1) return any;
    bool trunc = e->op == RX_EX_TRUNCDIV;
    if (x.c == 0) return trunc ? (cong){0, x.b / d} : rx_floordiv_ok(x.b, d, &q) ? (cong){0, q} : any;
    if (x.c % d) return any;
    if (trunc && x.b % d && rx_range_of(v->ctx, v->f, e->a[0]).lo < 0) return any;
    if (trunc && d < 0 && x.b % d) return any;
    return rx_floordiv_ok(x.b, d, &q) ? norm(x.c / d, q) : any;
}

static cong modulo(env *v, rx_ex e, cong x)
{
    cong y = of(v, e->a[1]);
    int64_t r;
    if (y.c || y.b == 0) return norm(rx_gcd(x.c, rx_gcd(y.c, y.b)), x.b);
    bool trunc = e->op == RX_EX_TRUNCMOD, whole = x.c % y.b == 0;
    if (x.c == 0 && trunc) return (cong){0, y.b == -1 ? 0 : x.b % y.b};
    if (whole && (!trunc || x.b % y.b == 0 || (y.b > 0 && rx_range_of(v->ctx, v->f, e->a[0]).lo >= 0)))
        return rx_floormod_ok(x.b, y.b, &r) ? (cong){0, r} : any;
    return norm(rx_gcd(x.c, y.b), x.b);
}

/* the low bits that both sides fix */
static cong bits(rx_eop op, cong x, cong y)
{
    int64_t c = rx_gcd(x.c, y.c), low = c ? c & -c : (int64_t)1 << 62, m = low - 1, r;
    if (op == RX_EX_BITAND) {          /* zeros below a power of two stay zeros */
        int64_t zx = x.c | x.b, zy = y.c | y.b,
                z = RX_MAX(zx ? zx & -zx : (int64_t)1 << 62, zy ? zy & -zy : (int64_t)1 << 62);
        if (z > low && z > 0) return norm(z, 0);
    }
    r = op == RX_EX_BITAND ? x.b & y.b : op == RX_EX_BITOR ? x.b | y.b : x.b ^ y.b;
    return norm(low, r & m);
}

static cong inside(env *v, rx_ex e)
{
    if (e->op == RX_EX_INT) return (cong){0, e->u.i};
    if (e->op == RX_EX_SYM) return norm(e->u.sym->divisor, 0);
    if (!rx_is_index(e) || e->dtype != RELAX_I64) return any;
    cong x = of(v, e->a[e->op == RX_EX_SELECT]), y;
    int64_t s;
    switch ((rx_eop)e->op) {
    case RX_EX_ADD: return add(x, of(v, e->a[1]));
    case RX_EX_MUL: return mul(x, of(v, e->a[1]));
    case RX_EX_FLOORDIV: case RX_EX_TRUNCDIV: return divide(v, e, x);
    case RX_EX_FLOORMOD: case RX_EX_TRUNCMOD: return modulo(v, e, x);
    case RX_EX_MIN: case RX_EX_MAX: return either(x, of(v, e->a[1]));
    case RX_EX_SELECT: return either(x, of(v, e->a[2]));
    case RX_EX_CALL: y = mul(x, (cong){0, -1}); return either(x, y);
    case RX_EX_BITAND: case RX_EX_BITOR: case RX_EX_BITXOR: return bits(e->op, x, of(v, e->a[1]));
    case RX_EX_SHL: return rx_is_int(e->a[1], &s) && s >= 0 && s < 62 ? mul(x, (cong){0, (int64_t)1 << s}) : any;
    default: return any;
    }
}

/* what e == … says: l == r with e in it once, with the coefficient 1 or -1 */
static cong from_equation(env *v, rx_ex l, rx_ex r, rx_ex e)
{
    rx_terms t;
    rx_ex d = rx_sub(v->ctx, l, r);
    rx_terms_of(d, rx_temp(v->ctx), &t);
    for (uint32_t i = 0; i < t.n; i++) {
        if (t.t[i].key != e || (t.t[i].coef != 1 && t.t[i].coef != -1)) continue;
        rx_ex rest = rx_sub(v->ctx, rx_muli(v->ctx, e, t.t[i].coef), d);
        return of(v, rx_muli(v->ctx, rest, t.t[i].coef));
    }
    return any;
}

static cong from_fact(env *v, rx_ex fact, rx_ex e)
{
    int64_t c, k, r;
    rx_ex l = fact->a[0];
    if (fact->op != RX_EX_EQ || l->dtype != RELAX_I64) return any;
    bool mod = (l->op == RX_EX_FLOORMOD || l->op == RX_EX_TRUNCMOD) && rx_is_int(l->a[1], &c) && c &&
               rx_is_int(fact->a[1], &r);
    if (mod && rx_is_int(rx_sub(v->ctx, l->a[0], e), &k) && rx_sub_ok(r, k, &r)) return norm(c, r);
    return from_equation(v, l, fact->a[1], e);
}

static cong of(env *v, rx_ex e)
{
    if (v->depth > 40 || e->size > 500) return e->op == RX_EX_INT ? (cong){0, e->u.i} : any;
    v->depth++;
    cong c = inside(v, e);
    bool leaf = e->op == RX_EX_SYM || e->op == RX_EX_FLOORDIV || e->op == RX_EX_FLOORMOD;
    for (const rx_facts *f = leaf && v->depth < 12 ? v->f : NULL; f; f = f->parent)
        for (uint32_t i = 0; i < f->conds.n && i < 32; i++) c = both(c, from_fact(v, f->conds.at[i], e));
    v->depth--;
    return c;
}

void rx_modular(relax_context *ctx, const rx_facts *f, rx_ex e, int64_t *coeff, int64_t *base)
{
    env v = {ctx, f, 0};
    cong c = of(&v, e);
    *coeff = c.c;
    *base = c.b;
}
