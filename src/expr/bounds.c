/* bounds.c: intervals of index expressions.
 *
 * rx_range_of is interval arithmetic with the ranges of facts, one visit for each distinct node. INT64_MIN and
 * INT64_MAX mean unbounded; every finite bound is computed exactly (128 bits), or widened to unbounded where it
 * does not fit. rx_bounds narrows the result with the linear prover, which sees relations between terms. */
#include "expr/impl.h"

typedef __int128 wide;
typedef struct env { relax_context *ctx; const rx_facts *f; rx_map *done; rx_arena *a; } env;
static const rx_range all = {INT64_MIN, INT64_MAX};

static rx_range range(env *v, rx_ex e);

static bool inf(int64_t x) { return x == INT64_MIN || x == INT64_MAX; }
static int64_t clamp_lo(wide x) { return x <= INT64_MIN || x >= INT64_MAX ? INT64_MIN : (int64_t)x; }
static int64_t clamp_hi(wide x) { return x <= INT64_MIN || x >= INT64_MAX ? INT64_MAX : (int64_t)x; }

static rx_range add(rx_range x, rx_range y)
{
    return (rx_range){inf(x.lo) || inf(y.lo) ? INT64_MIN : clamp_lo((wide)x.lo + y.lo),
                      inf(x.hi) || inf(y.hi) ? INT64_MAX : clamp_hi((wide)x.hi + y.hi)};
}

/* product of two bounds where 0 * unbounded is 0; sets *open to the sign of an unbounded product */
static wide corner(int64_t x, int64_t y, int *open)
{
    *open = 0;
    if (x == 0 || y == 0) return 0;
    if (inf(x) || inf(y)) return *open = (x < 0) == (y < 0) ? 1 : -1, 0;
    return (wide)x * y;
}

static rx_range mul(rx_range x, rx_range y)
{
    int64_t a[2] = {x.lo, x.hi}, b[2] = {y.lo, y.hi};
    wide lo = (wide)1 << 126, hi = -lo;
    bool lo_open = false, hi_open = false;
    for (int i = 0; i < 4; i++) {
        int open;
        wide p = corner(a[i / 2], b[i % 2], &open);
        if (open > 0) hi_open = true;
        else if (open < 0) lo_open = true;
        else lo = p < lo ? p : lo, hi = p > hi ? p : hi;
    }
    return (rx_range){lo_open || lo == (wide)1 << 126 ? INT64_MIN : clamp_lo(lo),
                      hi_open || hi == -((wide)1 << 126) ? INT64_MAX : clamp_hi(hi)};
}

static rx_range join(rx_range x, rx_range y) { return (rx_range){RX_MIN(x.lo, y.lo), RX_MAX(x.hi, y.hi)}; }

static int64_t fdiv(int64_t a, int64_t b)
{
    int64_t q;
    return inf(a) ? ((a < 0) == (b < 0) ? INT64_MAX : INT64_MIN) : rx_floordiv_ok(a, b, &q) ? q : INT64_MAX;
}

static int64_t tdiv(int64_t a, int64_t b) { return inf(a) ? fdiv(a, b) : b == -1 ? -a : a / b; }

/* a division is monotone in both operands on each side of a zero divisor: corners decide; y does not hold 0 */
static rx_range div_side(rx_range x, rx_range y, bool trunc)
{
    int64_t (*f)(int64_t, int64_t) = trunc ? tdiv : fdiv;
    int64_t a[2] = {x.lo, x.hi}, b[2] = {y.lo, y.hi};
    rx_range r = {INT64_MAX, INT64_MIN};
    for (int i = 0; i < 4; i++) {
        int64_t p = a[i / 2], d = b[i % 2], q;
        /* INT64_MAX as a divisor may be the constant or no bound: right for both */
        if (inf(d) && inf(p)) q = (p < 0) == (d < 0) ? INT64_MAX : INT64_MIN;
        else if (inf(d)) q = trunc || p == 0 || (p < 0) == (d < 0) ? 0 : -1;
        else q = f(p, d);
        r = join(r, (rx_range){q, q});
    }
    return r;
}

static rx_range divide(rx_range x, rx_range y, bool trunc)
{
    rx_range r = {INT64_MAX, INT64_MIN};
    if (y.hi >= 1) r = join(r, div_side(x, (rx_range){RX_MAX(y.lo, 1), y.hi}, trunc));
    if (y.lo <= -1) r = join(r, div_side(x, (rx_range){y.lo, RX_MIN(y.hi, -1)}, trunc));
    return r.lo > r.hi ? all : r;      /* the divisor can only be 0: no value, say nothing */
}

static rx_range floormod(rx_range x, rx_range y)
{
    rx_range r = {0, 0};
    if (y.lo == 0 && y.hi == 0) return all;
    if (y.hi >= 1) r.hi = inf(y.hi) ? INT64_MAX : y.hi - 1;
    if (y.lo <= -1) r.lo = inf(y.lo) ? INT64_MIN : y.lo + 1;
    if (y.lo >= 1 && x.lo >= 0 && x.hi < r.hi) r.hi = x.hi;
    if (y.lo == y.hi && y.lo > 0 && !inf(x.lo) && !inf(x.hi) && fdiv(x.lo, y.lo) == fdiv(x.hi, y.lo)) {
        int64_t base = fdiv(x.lo, y.lo) * y.lo;
        r = (rx_range){x.lo - base, x.hi - base};
    } else if (x.lo >= 0 && !inf(x.hi) && y.lo > x.hi) {
        r = x;
    }
    return r;
}

static rx_range truncmod(rx_range x, rx_range y)
{
    if (inf(y.lo) || inf(y.hi)) return (rx_range){x.lo >= 0 ? 0 : x.lo, x.hi <= 0 ? 0 : x.hi};
    int64_t m = RX_MAX(y.hi, -y.lo) - 1;
    if (m < 0) return all;
    rx_range r = {x.lo >= 0 ? 0 : RX_MAX(x.lo, -m), x.hi <= 0 ? 0 : RX_MIN(x.hi, m)};
    if (y.lo > x.hi && x.lo >= 0) r = x;
    return r;
}

/* smallest 2^k - 1 >= v */
static int64_t mask(int64_t v)
{
    int64_t m = 0;
    while (m < v) m = m * 2 + 1;
    return m;
}

static rx_range bits(rx_eop op, rx_range x, rx_range y)
{
    if (op == RX_EX_BITAND) {
        if (x.lo >= 0 && y.lo >= 0) return (rx_range){0, RX_MIN(x.hi, y.hi)};
        if (x.lo >= 0 || y.lo >= 0) return (rx_range){0, x.lo >= 0 ? x.hi : y.hi};
        if (x.hi < 0 && y.hi < 0 && !inf(x.lo) && !inf(y.lo))
            return (rx_range){-mask(-RX_MIN(x.lo, y.lo) - 1) - 1, RX_MIN(x.hi, y.hi)};
        return all;
    }
    if (x.lo < 0 || y.lo < 0 || inf(x.hi) || inf(y.hi)) return all;
    int64_t hi = mask(RX_MAX(x.hi, y.hi));
    return (rx_range){op == RX_EX_BITOR ? RX_MAX(x.lo, y.lo) : 0, hi};
}

static rx_range shift(rx_eop op, rx_range x, rx_range y)
{
    if (y.lo < 0) y.lo = 0;            /* a negative count has no value */
    if (y.hi < y.lo) return all;
    if (op == RX_EX_SHR) {
        rx_range d = {(int64_t)1 << RX_MIN(y.lo, 62), y.hi > 62 ? INT64_MAX : (int64_t)1 << y.hi};
        return divide(x, d, false);
    }
    rx_range p = {(int64_t)1 << RX_MIN(y.lo, 62), y.hi > 62 ? INT64_MAX : (int64_t)1 << y.hi};
    return mul(x, p);
}

static rx_range power(rx_range x, rx_range y)
{
    (void)y;
    return x.lo >= 0 ? (rx_range){0, INT64_MAX} : all;
}

static rx_range absolute(rx_range x)
{
    if (x.lo >= 0) return x;
    int64_t lo = inf(x.lo) ? INT64_MAX : -x.lo, hi = inf(x.hi) ? INT64_MAX : x.hi;
    return x.hi <= 0 ? (rx_range){inf(x.hi) ? 0 : -x.hi, lo} : (rx_range){0, RX_MAX(lo, hi)};
}

static rx_range flip(rx_range x)
{
    return (rx_range){inf(x.hi) ? INT64_MIN : -x.hi, inf(x.lo) ? INT64_MAX : -x.lo};
}

/* comparisons as 0..1 */
static rx_range compare(env *v, rx_ex e)
{
    if (e->a[0]->dtype != RELAX_I64) return (rx_range){0, 1};
    rx_range x = range(v, e->a[0]), y = range(v, e->a[1]), d = add(x, flip(y));
    switch ((rx_eop)e->op) {
    case RX_EX_LE: return (rx_range){!inf(d.hi) && d.hi <= 0, inf(d.lo) || d.lo <= 0};
    case RX_EX_LT: return (rx_range){!inf(d.hi) && d.hi < 0, inf(d.lo) || d.lo < 0};
    default: break;
    }
    bool apart = (!inf(d.lo) && d.lo > 0) || (!inf(d.hi) && d.hi < 0), same = d.lo == 0 && d.hi == 0;
    return e->op == RX_EX_EQ ? (rx_range){same, !apart} : (rx_range){apart, !same};
}

static rx_range logic(env *v, rx_ex e)
{
    rx_range x = range(v, e->a[0]);
    if (e->op == RX_EX_NOT) return (rx_range){1 - x.hi, 1 - x.lo};
    rx_range y = range(v, e->a[1]);
    return e->op == RX_EX_AND ? (rx_range){x.lo & y.lo, x.hi & y.hi} : (rx_range){x.lo | y.lo, x.hi | y.hi};
}

static rx_range inside(env *v, rx_ex e)
{
    if (e->op == RX_EX_INT) return (rx_range){e->u.i, e->u.i};
    if (!e->nargs || !rx_is_index(e)) return all;
    if (e->op >= RX_EX_EQ && e->op <= RX_EX_LE) return compare(v, e);
    if (e->op == RX_EX_AND || e->op == RX_EX_OR || e->op == RX_EX_NOT) return logic(v, e);
    rx_range x = range(v, e->a[0]), y = e->nargs > 1 ? range(v, e->a[1]) : all;
    switch ((rx_eop)e->op) {
    case RX_EX_ADD: return add(x, y);
    case RX_EX_MUL:
        if (e->a[0] == e->a[1]) x = y = absolute(x);
        return mul(x, y);
    case RX_EX_FLOORDIV: return divide(x, y, false);
    case RX_EX_TRUNCDIV: return divide(x, y, true);
    case RX_EX_FLOORMOD: return floormod(x, y);
    case RX_EX_TRUNCMOD: return truncmod(x, y);
    case RX_EX_MIN: return (rx_range){RX_MIN(x.lo, y.lo), RX_MIN(x.hi, y.hi)};
    case RX_EX_MAX: return (rx_range){RX_MAX(x.lo, y.lo), RX_MAX(x.hi, y.hi)};
    case RX_EX_SELECT: {
        rx_range z = range(v, e->a[2]);
        return x.lo == 1 ? y : x.hi == 0 ? z : join(y, z);
    }
    case RX_EX_BITAND: case RX_EX_BITOR: case RX_EX_BITXOR: return bits(e->op, x, y);
    case RX_EX_SHL: case RX_EX_SHR: return shift(e->op, x, y);
    case RX_EX_POW: return power(x, y);
    case RX_EX_CALL: return absolute(x);
    default: return all;
    }
}

static rx_range range(env *v, rx_ex e)
{
    if (e->op == RX_EX_INT) return (rx_range){e->u.i, e->u.i};
    rx_range *known = v->done && e->nargs ? rx_map_get(v->done, RX_KEY(e)) : NULL;
    if (known) return *known;
    rx_range r = inside(v, e), k = rx_facts_range(v->f, e);
    if (e->dtype == RELAX_BOOL && (r.lo < 0 || r.hi > 1)) r = (rx_range){0, 1};
    if (k.lo > r.lo && k.lo <= r.hi) r.lo = k.lo;
    if (k.hi < r.hi && k.hi >= r.lo) r.hi = k.hi;
    if (v->done && e->nargs) rx_map_put(v->done, RX_KEY(e), rx_arena_dup(v->a, &r, sizeof r));
    return r;
}

rx_range rx_range_of(relax_context *ctx, const rx_facts *f, rx_ex e)
{
    env v = {ctx, f, NULL, NULL};
    rx_map done;
    if (e->size > 64) {                /* shared nodes once; small trees are quicker without the map */
        v.a = rx_temp(ctx);
        rx_map_init(&done, v.a);
        v.done = &done;
    }
    return range(&v, e);
}
