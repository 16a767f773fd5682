/* linear.c: integer feasibility of systems of linear constraints.
 *
 * In: rows sum(c*v) + k >= 0 or == 0. Method: bounds propagation (rx_rows_propagate); equalities are solved over
 * the integers by unimodular substitution (Euclid on the coefficients, as in Pugh's Omega test, CACM 1992);
 * inequalities by Fourier-Motzkin elimination with every row divided by the gcd of its coefficients and its
 * constant rounded. A system found infeasible has no integer point; the converse is not claimed (no dark shadow).
 * Products are formed in 128 bits; a row that does not fit int64 is dropped, which only weakens the system. */
#include "expr/impl.h"

typedef __int128 wide;
#define INF INT64_MAX
#define RX_FM_ROWS 400                 /* give up above this many rows */

rx_row *rx_row_new(rx_arena *a, uint32_t n, bool eq, int64_t k)
{
    rx_row *r = rx_arena_alloc(a, sizeof *r + n * sizeof(rx_mono), _Alignof(rx_row));
    r->n = n;
    r->eq = eq;
    r->k = k;
    return r;
}

static wide wgcd(wide a, wide b)
{
    a = a < 0 ? -a : a;
    b = b < 0 ? -b : b;
    while (b) { wide t = a % b; a = b; b = t; }
    return a;
}

static wide wfloor(wide a, wide b) { return a / b - (a % b != 0 && (a < 0) != (b < 0)); }
static bool fits(wide v) { return v > INT64_MIN && v < INT64_MAX; }

rx_row *rx_row_mix(rx_arena *a, const rx_row *x, int64_t p, const rx_row *y, int64_t q, rx_rowkind kind)
{
    wide c[256];
    uint32_t v[256], n = 0;
    wide g = 0, k = (wide)p * x->k + (wide)q * y->k;
    if (x->n + y->n > RX_COUNT(c)) return NULL;
    for (uint32_t i = 0, j = 0; i < x->n || j < y->n;) {
        wide s = 0;
        uint32_t at = j == y->n || (i < x->n && x->t[i].v <= y->t[j].v) ? x->t[i].v : y->t[j].v;
        if (i < x->n && x->t[i].v == at) s += (wide)p * x->t[i++].c;
        if (j < y->n && y->t[j].v == at) s += (wide)q * y->t[j++].c;
        if (!s) continue;
        c[n] = s;
        v[n++] = at;
        g = wgcd(g, s);
    }
    bool eq = kind == RX_ROW_EQ;
    if (g < 1 || kind == RX_ROW_FORM || (eq && k % g)) g = 1;
    k = wfloor(k, g);
    if (!fits(k)) return NULL;
    rx_row *r = rx_row_new(a, n, eq, (int64_t)k);
    for (uint32_t i = 0; i < n; i++) {
        if (!fits(c[i] / g)) return NULL;
        r->t[i] = (rx_mono){v[i], (int64_t)(c[i] / g)};
    }
    return r;
}

const rx_row *rx_row_tight(rx_arena *a, const rx_row *r, bool *contra)
{
    int64_t g = 0;
    *contra = false;
    if (!r->n) {
        *contra = r->eq ? r->k != 0 : r->k < 0;
        return NULL;
    }
    for (uint32_t i = 0; i < r->n; i++) g = rx_gcd(g, r->t[i].c);
    if (g <= 1) return r;
    if (r->eq && r->k % g) return *contra = true, NULL;
    rx_row *s = rx_row_new(a, r->n, r->eq, 0);
    rx_floordiv_ok(r->k, g, &s->k);
    for (uint32_t i = 0; i < r->n; i++) s->t[i] = (rx_mono){r->t[i].v, r->t[i].c / g};
    return s;
}

/* ---- bounds propagation ---- */
/* largest value of c * v; false: unbounded */
static bool term_max(const rx_box *b, rx_mono m, wide *out)
{
    int64_t x = m.c > 0 ? b->hi[m.v] : b->lo[m.v];
    *out = (wide)m.c * x;
    return x != INT64_MIN && x != INF;
}

/* v*c >= -rest narrows v; true: empty */
static bool narrow(rx_box *b, rx_mono m, wide rest, bool *changed)
{
    /* v >= ceil(-rest/c), or v <= floor(rest/-c) */
    wide x = m.c > 0 ? -wfloor(rest, m.c) : wfloor(rest, -(wide)m.c);
    if (m.c > 0 && x > b->lo[m.v] && x <= INT64_MAX) {
        b->lo[m.v] = (int64_t)x;
        *changed = true;
    } else if (m.c < 0 && x < b->hi[m.v] && x >= INT64_MIN) {
        b->hi[m.v] = (int64_t)x;
        *changed = true;
    }
    return b->lo[m.v] > b->hi[m.v];
}

static bool propagate_row(const rx_row *r, rx_box *b, int sign, bool *changed)
{
    wide sum = (wide)sign * r->k, x;
    uint32_t open = 0, which = 0;
    for (uint32_t i = 0; i < r->n; i++) {
        if (term_max(b, (rx_mono){r->t[i].v, sign * r->t[i].c}, &x)) sum += x;
        else open++, which = i;
    }
    if (open > 1) return false;
    if (!open && sum < 0) return true;
    for (uint32_t i = 0; i < r->n; i++) {
        rx_mono m = {r->t[i].v, sign * r->t[i].c};
        if (open && i != which) continue;
        wide rest = sum;
        if (!open) { term_max(b, m, &x); rest -= x; }
        if (narrow(b, m, rest, changed)) return true;
    }
    return false;
}

bool rx_rows_propagate(const rx_rows *rows, rx_box *b, int rounds)
{
    bool changed = true;
    for (int k = 0; k < rounds && changed; k++) {
        changed = false;
        for (uint32_t i = 0; i < rows->n; i++) {
            if (propagate_row(rows->at[i], b, 1, &changed)) return true;
            if (rows->at[i]->eq && propagate_row(rows->at[i], b, -1, &changed)) return true;
        }
    }
    return false;
}

/* ---- equalities ---- */
static int64_t coef(const rx_row *r, uint32_t v)
{
    uint32_t lo = 0, hi = r->n;
    while (lo < hi) {
        uint32_t m = (lo + hi) / 2;
        if (r->t[m].v < v) lo = m + 1;
        else hi = m;
    }
    return lo < r->n && r->t[lo].v == v ? r->t[lo].c : 0;
}

/* every row with v gets it replaced through e, in which v has the coefficient c == 1 or -1 */
static bool substitute(rx_arena *a, rx_rows *rows, const rx_row *e, uint32_t v, int64_t c)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < rows->n; i++) {
        const rx_row *r = rows->at[i];
        int64_t k = coef(r, v);
        bool contra = false;
        if (k) {
            rx_row *m = k == INT64_MIN ? NULL : rx_row_mix(a, r, 1, e, c > 0 ? -k : k, r->eq ? RX_ROW_EQ : RX_ROW_GE);
            r = m ? rx_row_tight(a, m, &contra) : NULL;
        }
        if (contra) return true;
        if (r) rows->at[n++] = r;
    }
    rows->n = n;
    return false;
}

/* e without a unit coefficient: v := t - sum(floor(c_i/c_v) * v_i) - floor(k/c_v), t new; returns the row v - t +
 * … == 0 */
static rx_row *euclid(rx_arena *a, const rx_row *e, uint32_t at, uint32_t fresh)
{
    int64_t c = e->t[at].c, q;
    rx_row *d = rx_row_new(a, e->n + 1, true, 0);
    rx_floordiv_ok(e->k, c, &d->k);
    uint32_t n = 0;
    for (uint32_t i = 0; i < e->n; i++) {
        if (!rx_floordiv_ok(e->t[i].c, c, &q)) return NULL;
        if (q) d->t[n++] = (rx_mono){e->t[i].v, q};
    }
    d->t[n++] = (rx_mono){fresh, -1};
    d->n = n;
    return d;
}

static uint64_t magnitude(int64_t c) { return c < 0 ? 0 - (uint64_t)c : (uint64_t)c; }

/* true: contradiction. Removes all equalities it can. */
static bool solve_equalities(rx_arena *a, rx_rows *rows, uint32_t *nvars, int64_t *budget, int64_t keep)
{
    bool contra;
    for (uint32_t i = 0; i < rows->n;) {
        const rx_row *e = rows->at[i];
        if (!e->eq) { i++; continue; }
        e = rx_row_tight(a, e, &contra);
        if (contra) return true;
        rows->at[i] = rows->at[--rows->n];
        if (!e) continue;
        uint32_t best = e->n;
        for (uint32_t j = 0; j < e->n; j++)
            if ((int64_t)e->t[j].v != keep && (best == e->n || magnitude(e->t[j].c) < magnitude(e->t[best].c)))
                best = j;
        /* as two inequalities */
        if (best == e->n || (keep >= 0 && coef(e, (uint32_t)keep)) || (*budget -= rows->n + 8) < 0) {
            rx_row *p = rx_row_new(a, e->n, false, e->k), *m = rx_row_new(a, e->n, false, -e->k);
            for (uint32_t j = 0; j < e->n; j++) p->t[j] = e->t[j], m->t[j] = (rx_mono){e->t[j].v, -e->t[j].c};
            rx_push(a, rows, p);
            rx_push(a, rows, m);
            continue;
        }
        int64_t c = e->t[best].c;
        uint32_t v = e->t[best].v;
        if (c != 1 && c != -1) {
            rx_row *d = euclid(a, e, best, (*nvars)++);
            if (!d) continue;
            rx_row *rest = rx_row_mix(a, e, 1, d, -c, RX_ROW_EQ);
            if (substitute(a, rows, d, v, 1)) return true;
            if (rest) rx_push(a, rows, rest);
        } else if (substitute(a, rows, e, v, c)) {
            return true;
        }
        i = 0;
    }
    return false;
}

/* ---- Fourier-Motzkin ---- */
static int row_order(const rx_row *x, const rx_row *y)
{
    if (x->n != y->n) return x->n < y->n ? -1 : 1;
    return memcmp(x->t, y->t, x->n * sizeof x->t[0]);
}

/* add r, or tighten the row with the same left side */
static void put(rx_arena *a, rx_rows *rows, const rx_row *r)
{
    for (uint32_t i = 0; i < rows->n; i++) {
        if (row_order(rows->at[i], r)) continue;
        if (r->k < rows->at[i]->k) rows->at[i] = r;
        return;
    }
    rx_push(a, rows, r);
}

static uint32_t cheapest(const rx_rows *rows, uint32_t nvars, int64_t keep, rx_arena *a)
{
    uint32_t *up = RX_NEWN(a, uint32_t, nvars + 1), *down = RX_NEWN(a, uint32_t, nvars + 1), best = nvars;
    for (uint32_t i = 0; i < rows->n; i++)
        for (uint32_t j = 0; j < rows->at[i]->n; j++) {
            rx_mono m = rows->at[i]->t[j];
            if (m.c > 0) up[m.v]++;
            else down[m.v]++;
        }
    int64_t cost = 0;
    for (uint32_t v = 0; v < nvars; v++) {
        if ((!up[v] && !down[v]) || (int64_t)v == keep) continue;
        int64_t c = (int64_t)up[v] * down[v] - up[v] - down[v];
        if (best == nvars || c < cost) best = v, cost = c;
    }
    return best;
}

static bool eliminate(rx_arena *a, rx_rows *rows, uint32_t v, int64_t *budget)
{
    rx_rows out = {0};
    bool contra;
    for (uint32_t i = 0; i < rows->n; i++)
        if (!coef(rows->at[i], v)) put(a, &out, rows->at[i]);
    for (uint32_t i = 0; i < rows->n; i++) {
        int64_t p = coef(rows->at[i], v);
        if (p <= 0) continue;
        for (uint32_t j = 0; j < rows->n; j++) {
            int64_t m = coef(rows->at[j], v);
            if (m >= 0 || m == INT64_MIN) continue;
            *budget -= 1 + out.n / 8;
            if (*budget < 0 || out.n > RX_FM_ROWS) { rows->n = 0; return false; }
            int64_t g = rx_gcd(p, m);
            const rx_row *r = rx_row_mix(a, rows->at[i], -m / g, rows->at[j], p / g, RX_ROW_GE);
            if (r) r = rx_row_tight(a, r, &contra);
            else contra = false;
            if (contra) return true;
            if (r) put(a, &out, r);
        }
    }
    *rows = out;
    return false;
}

bool rx_rows_infeasible(rx_arena *a, const rx_rows *rows, uint32_t *nvars, int64_t *budget, int64_t keep, int64_t *lo,
                        int64_t *hi)
{
    rx_rows w = {0};
    bool contra = false;
    for (uint32_t i = 0; i < rows->n; i++) {
        const rx_row *r = rx_row_tight(a, rows->at[i], &contra);
        if (contra) return true;
        if (r) rx_push(a, &w, r);
    }
    if (solve_equalities(a, &w, nvars, budget, keep)) return true;
    for (;;) {
        uint32_t v = cheapest(&w, *nvars, keep, a);
        if (v == *nvars || *budget < 0) break;
        if (eliminate(a, &w, v, budget)) return true;
    }
    for (uint32_t i = 0; i < w.n && keep >= 0 && *budget >= 0; i++) {
        const rx_row *r = w.at[i];
        if (r->n != 1 || r->t[0].v != keep) continue;
        int64_t x;
        if (r->t[0].c > 0 && rx_floordiv_ok(r->k, r->t[0].c, &x) && -x > *lo) *lo = -x;
        if (r->t[0].c < 0 && rx_floordiv_ok(r->k, -r->t[0].c, &x) && x < *hi) *hi = x;
    }
    return false;
}
