/* poly.c: canonical sums and products of index expressions.
 *
 * The shapes are described in impl.h. The treap of a sum gives O(log n) insertion with pointer equality kept: its
 * shape is a function of the set of keys, because the root is always the boundary (two neighbouring keys) of the
 * largest priority, and the priority is a hash of the key right of the boundary (Seidel and Aragon, Randomized
 * search trees, 1996; unique representation). Products of sums are multiplied out while the result has at most
 * RX_EXPR_EXPAND terms. Trap: an operation whose coefficients do not fit int64, or a product with too many terms,
 * is left undone as a node with RX_EX_RAW, which is an atom here. */
#include "expr/impl.h"

int64_t rx_gcd(int64_t a, int64_t b)
{
    if (a == INT64_MIN || b == INT64_MIN) return 1;
    a = a < 0 ? -a : a;
    b = b < 0 ? -b : b;
    while (b) { int64_t t = a % b; a = b; b = t; }
    return a;
}

static rx_ex raw(relax_context *ctx, rx_eop op, rx_ex a, rx_ex b)
{
    bool ia = a->op == RX_EX_INT, ib = b->op == RX_EX_INT, swap = ia != ib ? ia : rx_expr_cmp(a, b) > 0;
    if (swap) { rx_ex t = a; a = b; b = t; }
    return rx_node2(ctx, op, RX_EX_RAW, RELAX_I64, a, b);
}

/* ---- terms and treaps ---- */
rx_term rx_term_of(rx_ex e)
{
    if (rx_is_prod(e) && e->a[1]->op == RX_EX_INT) return (rx_term){e->a[0], e->a[1]->u.i};
    return (rx_term){e, 1};
}

rx_ex rx_scale(relax_context *ctx, rx_ex key, int64_t coef)
{
    if (coef == 0) return rx_int(ctx, 0);
    if (key->op == RX_EX_INT) return rx_index_mul(ctx, key, rx_int(ctx, coef));
    return coef == 1 ? key : rx_node2(ctx, RX_EX_MUL, 0, RELAX_I64, key, rx_int(ctx, coef));
}

static uint64_t prio(rx_ex key) { return rx_mix(key->hash ^ 0x51ED270B27D4EB4Full, 0x9E3779B97F4A7C15ull); }

static rx_ex first_key(rx_ex s) { return rx_is_sum(s) ? s->u.first : rx_term_of(s).key; }

/* all keys of a before those of b; NULL is the empty sum */
static rx_ex join(relax_context *ctx, rx_ex a, rx_ex b)
{
    if (!a || !b) return a ? a : b;
    uint64_t p = prio(first_key(b));
    uint64_t pa = rx_is_sum(a) ? prio(first_key(a->a[1])) : 0, pb = rx_is_sum(b) ? prio(first_key(b->a[1])) : 0;
    if (p >= pa && p > pb) return rx_sum_node(ctx, a, b);
    if (rx_is_sum(a) && (pa > pb || !rx_is_sum(b))) return rx_sum_node(ctx, a->a[0], join(ctx, a->a[1], b));
    if (!rx_is_sum(b)) return rx_sum_node(ctx, a, b);
    return rx_sum_node(ctx, join(ctx, a, b->a[0]), b->a[1]);
}

/* lo: keys before k; mid: the term of k or NULL; hi: keys after k */
static void split(relax_context *ctx, rx_ex s, rx_ex k, rx_ex *lo, rx_ex *mid, rx_ex *hi)
{
    if (!s) { *lo = *mid = *hi = NULL; return; }
    if (!rx_is_sum(s)) {
        int c = rx_expr_cmp(rx_term_of(s).key, k);
        *lo = c < 0 ? s : NULL;
        *mid = c == 0 ? s : NULL;
        *hi = c > 0 ? s : NULL;
        return;
    }
    rx_ex part;
    if (rx_expr_cmp(k, first_key(s->a[1])) < 0) {
        split(ctx, s->a[0], k, lo, mid, &part);
        *hi = join(ctx, part, s->a[1]);
    } else {
        split(ctx, s->a[1], k, &part, mid, hi);
        *lo = join(ctx, s->a[0], part);
    }
}

/* s (constant free) + coef * key; false: a coefficient overflows */
static bool insert(relax_context *ctx, rx_ex *s, rx_ex key, int64_t coef)
{
    rx_ex lo, mid, hi;
    split(ctx, *s, key, &lo, &mid, &hi);
    if (mid && !rx_add_ok(coef, rx_term_of(mid).coef, &coef)) return false;
    *s = join(ctx, join(ctx, lo, coef ? rx_scale(ctx, key, coef) : NULL), hi);
    return true;
}

/* body and constant of an index expression; body NULL when it is a constant */
static void peel(rx_ex e, rx_ex *body, int64_t *k)
{
    *k = 0;
    *body = e;
    if (rx_is_int(e, k)) *body = NULL;
    else if (rx_is_sum(e) && rx_is_int(e->a[1], k)) *body = e->a[0];
}

static rx_ex with_const(relax_context *ctx, rx_ex body, int64_t k)
{
    if (!body) return rx_int(ctx, k);
    return k ? rx_sum_node(ctx, body, rx_int(ctx, k)) : body;
}

static void collect(rx_ex s, rx_arena *a, rx_terms *out, uint32_t *cap)
{
    if (rx_is_sum(s)) {
        collect(s->a[0], a, out, cap);
        collect(s->a[1], a, out, cap);
        return;
    }
    rx_vec_room(a, (void **)&out->t, out->n, cap, sizeof *out->t);
    out->t[out->n++] = rx_term_of(s);
}

uint32_t rx_terms_of(rx_ex e, rx_arena *a, rx_terms *out)
{
    rx_ex body;
    uint32_t cap = 0;
    *out = (rx_terms){0};
    peel(e, &body, &out->k);
    if (body) collect(body, a, out, &cap);
    return out->n;
}

/* Cartesian tree over the boundaries of t[lo..hi) */
static rx_ex build(relax_context *ctx, const rx_term *t, uint32_t lo, uint32_t hi)
{
    if (hi - lo == 1) return rx_scale(ctx, t[lo].key, t[lo].coef);
    uint32_t at = lo + 1;
    for (uint32_t i = lo + 2; i < hi; i++)
        if (prio(t[i].key) >= prio(t[at].key)) at = i;
    return rx_sum_node(ctx, build(ctx, t, lo, at), build(ctx, t, at, hi));
}

/* merge sort by key: no worst case, no library callback */
static void sort(rx_term *t, rx_term *tmp, uint32_t n)
{
    if (n < 2) return;
    uint32_t h = n / 2, i = 0, j = h, k = 0;
    sort(t, tmp, h);
    sort(t + h, tmp, n - h);
    while (i < h && j < n) tmp[k++] = rx_expr_cmp(t[j].key, t[i].key) < 0 ? t[j++] : t[i++];
    while (i < h) tmp[k++] = t[i++];
    memcpy(t, tmp, k * sizeof *t);
}

/* one by one, leaving undone what overflows */
static rx_ex slow_sum(relax_context *ctx, const rx_terms *s)
{
    rx_ex e = rx_int(ctx, s->k);
    for (uint32_t i = 0; i < s->n; i++) e = rx_index_add(ctx, e, rx_scale(ctx, s->t[i].key, s->t[i].coef));
    return e;
}

rx_ex rx_from_terms(relax_context *ctx, const rx_terms *s)
{
    if (s->n == 0) return rx_int(ctx, s->k);
    if (s->n == 1) return with_const(ctx, s->t[0].coef ? rx_scale(ctx, s->t[0].key, s->t[0].coef) : NULL, s->k);
    rx_arena *a = rx_temp(ctx);
    rx_term *t = rx_arena_dup(a, s->t, s->n * sizeof *t), *tmp = RX_NEWN(a, rx_term, s->n);
    uint32_t n = 0;
    sort(t, tmp, s->n);
    for (uint32_t i = 0; i < s->n; i++) {
        if (n && t[n - 1].key == t[i].key) {
            if (!rx_add_ok(t[n - 1].coef, t[i].coef, &t[n - 1].coef)) return slow_sum(ctx, s);
            if (!t[n - 1].coef) n--;
        } else if (t[i].coef) {
            t[n++] = t[i];
        }
    }
    return with_const(ctx, n ? build(ctx, t, 0, n) : NULL, s->k);
}

rx_ex rx_index_add(relax_context *ctx, rx_ex a, rx_ex b)
{
    rx_ex x, y;
    int64_t ka, kb, k;
    peel(a, &x, &ka);
    peel(b, &y, &kb);
    if (!rx_add_ok(ka, kb, &k)) return raw(ctx, RX_EX_ADD, a, b);
    if (!x || !y) return with_const(ctx, x ? x : y, k);
    if (x->size < y->size) { rx_ex t = x; x = y; y = t; }
    if (!rx_is_sum(y)) {
        rx_term t = rx_term_of(y);
        rx_ex s = x;
        return insert(ctx, &s, t.key, t.coef) ? with_const(ctx, s, k) : raw(ctx, RX_EX_ADD, a, b);
    }
    rx_arena *tmp = rx_temp(ctx);
    rx_terms p, q;
    rx_terms_of(y, tmp, &q);
    if (x->size / 32 > y->size) {
        rx_ex s = x;
        for (uint32_t i = 0; i < q.n; i++)
            if (!insert(ctx, &s, q.t[i].key, q.t[i].coef)) return raw(ctx, RX_EX_ADD, a, b);
        return with_const(ctx, s, k);
    }
    rx_terms_of(x, tmp, &p);
    rx_terms m = {RX_NEWN(tmp, rx_term, (size_t)p.n + q.n), 0, k};
    for (uint32_t i = 0, j = 0; i < p.n || j < q.n;) {
        int c = i == p.n ? 1 : j == q.n ? -1 : rx_expr_cmp(p.t[i].key, q.t[j].key);
        rx_term t = c <= 0 ? p.t[i++] : q.t[j++];
        if (c == 0 && !rx_add_ok(t.coef, q.t[j++].coef, &t.coef)) return raw(ctx, RX_EX_ADD, a, b);
        if (t.coef) m.t[m.n++] = t;
    }
    return with_const(ctx, m.n ? build(ctx, m.t, 0, m.n) : NULL, k);
}

rx_ex rx_sum(relax_context *ctx, rx_ex *terms, uint32_t n)
{
    rx_arena *tmp = rx_temp(ctx);
    rx_terms s = {0};
    uint32_t cap = 0;
    for (uint32_t i = 0; i < n; i++) {
        int64_t k;
        rx_ex body;
        if (terms[i]->dtype != RELAX_I64 || !rx_is_index(terms[i])) {      /* data: as it stands */
            rx_ex e = terms[0];
            for (uint32_t j = 1; j < n; j++) e = rx_add(ctx, e, terms[j]);
            return e;
        }
        peel(terms[i], &body, &k);
        if (!rx_add_ok(s.k, k, &s.k)) {
            rx_ex e = rx_int(ctx, 0);
            for (uint32_t j = 0; j < n; j++) e = rx_add(ctx, e, terms[j]);
            return e;
        }
        if (body) collect(body, tmp, &s, &cap);
    }
    return rx_from_terms(ctx, &s);
}

/* ---- products ---- */
static void factors(rx_ex e, rx_ex *out, uint32_t cap, uint32_t *n)
{
    if (rx_is_prod(e)) {
        factors(e->a[0], out, cap, n);
        factors(e->a[1], out, cap, n);
    } else {
        if (*n < cap) out[*n] = e;
        if (*n <= cap) ++*n;
    }
}

uint32_t rx_factors(rx_ex key, rx_ex *out, uint32_t cap)
{
    uint32_t n = 0;
    factors(key, out, cap, &n);
    return n;
}

static rx_ex prod_node(relax_context *ctx, rx_ex *f, uint32_t n)
{
    if (n == 1) return f[0];
    return rx_node2(ctx, RX_EX_MUL, 0, RELAX_I64, prod_node(ctx, f, n / 2), prod_node(ctx, f + n / 2, n - n / 2));
}

static rx_ex mul_keys(relax_context *ctx, rx_ex a, rx_ex b)
{
    rx_ex x[RX_EXPR_AC], y[RX_EXPR_AC], m[2 * RX_EXPR_AC];
    uint32_t nx = rx_factors(a, x, RX_EXPR_AC), ny = rx_factors(b, y, RX_EXPR_AC), n = 0;
    if (nx + ny > RX_EXPR_AC) return raw(ctx, RX_EX_MUL, a, b);
    for (uint32_t i = 0, j = 0; i < nx || j < ny;)
        m[n++] = j == ny || (i < nx && rx_expr_cmp(x[i], y[j]) <= 0) ? x[i++] : y[j++];
    return prod_node(ctx, m, n);
}

/* a * c for a constant c: the keys stay, so does the shape */
static rx_ex scale_tree(relax_context *ctx, rx_ex s, int64_t c, bool *ok)
{
    if (rx_is_sum(s)) {
        rx_ex l = scale_tree(ctx, s->a[0], c, ok), r = *ok ? scale_tree(ctx, s->a[1], c, ok) : s;
        return *ok ? rx_sum_node(ctx, l, r) : s;
    }
    int64_t k;
    rx_term t = rx_term_of(s);
    bool is_int = rx_is_int(s, &k);
    *ok = rx_mul_ok(is_int ? k : t.coef, c, &k);
    return !*ok ? s : is_int ? rx_int(ctx, k) : rx_scale(ctx, t.key, k);
}

static rx_ex mul_const(relax_context *ctx, rx_ex a, int64_t c)
{
    bool ok = true;
    if (c == 0) return rx_int(ctx, 0);
    if (c == 1) return a;
    rx_ex e = scale_tree(ctx, a, c, &ok);
    return ok ? e : raw(ctx, RX_EX_MUL, a, rx_int(ctx, c));
}

/* every term of a times every term of b; false: too many, or an overflow */
static bool expand(relax_context *ctx, rx_ex a, rx_ex b, rx_ex *r)
{
    rx_arena *tmp = rx_temp(ctx);
    rx_terms p, q, m = {0};
    if ((uint64_t)a->size * b->size > (uint64_t)64 * RX_EXPR_EXPAND) return false;
    rx_terms_of(a, tmp, &p);
    rx_terms_of(b, tmp, &q);
    if ((uint64_t)(p.n + 1) * (q.n + 1) > RX_EXPR_EXPAND) return false;
    m.t = RX_NEWN(tmp, rx_term, (size_t)(p.n + 1) * (q.n + 1));
    if (!rx_mul_ok(p.k, q.k, &m.k)) return false;
    for (uint32_t i = 0; i <= p.n; i++)
        for (uint32_t j = 0; j <= q.n; j++) {
            if (i == p.n && j == q.n) continue;
            rx_term t = {i == p.n ? q.t[j].key : j == q.n ? p.t[i].key : mul_keys(ctx, p.t[i].key, q.t[j].key), 0};
            if (!rx_mul_ok(i == p.n ? p.k : p.t[i].coef, j == q.n ? q.k : q.t[j].coef, &t.coef)) return false;
            if (t.coef) m.t[m.n++] = t;
        }
    *r = rx_from_terms(ctx, &m);
    return true;
}

rx_ex rx_index_mul(relax_context *ctx, rx_ex a, rx_ex b)
{
    int64_t c;
    rx_ex r;
    if (rx_is_int(a, &c)) return mul_const(ctx, b, c);
    if (rx_is_int(b, &c)) return mul_const(ctx, a, c);
    if (rx_is_sum(a) || rx_is_sum(b)) return expand(ctx, a, b, &r) ? r : raw(ctx, RX_EX_MUL, a, b);
    rx_term x = rx_term_of(a), y = rx_term_of(b);
    if (!rx_mul_ok(x.coef, y.coef, &c)) return raw(ctx, RX_EX_MUL, a, b);
    return rx_scale(ctx, mul_keys(ctx, x.key, y.key), c);
}

rx_ex rx_product(relax_context *ctx, rx_ex *f, uint32_t n)
{
    rx_ex e = n ? f[0] : rx_int(ctx, 1);
    for (uint32_t i = 1; i < n; i++) e = rx_mul(ctx, e, f[i]);
    return e;
}

bool rx_divide_key(relax_context *ctx, rx_ex key, rx_ex by, rx_ex *rest)
{
    rx_ex x[RX_EXPR_AC], y[RX_EXPR_AC];
    uint32_t nx = rx_factors(key, x, RX_EXPR_AC), ny = rx_factors(by, y, RX_EXPR_AC), n = 0, j = 0;
    if (nx > RX_EXPR_AC || ny > nx) return false;
    for (uint32_t i = 0; i < nx; i++) {
        if (j < ny && x[i] == y[j]) j++;
        else x[n++] = x[i];
    }
    if (j < ny) return false;
    *rest = n ? prod_node(ctx, x, n) : rx_int(ctx, 1);
    return true;
}
