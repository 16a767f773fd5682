/* order.c: canonical comparisons, minima, maxima and logic of index expressions.
 *
 * A comparison is brought to sum <= constant (or == != ), divided by the greatest common divisor of the
 * coefficients (rounding the constant in the integers), and printed with positive terms on the left and negative
 * ones on the right; strict forms are used only where they save a constant (i < n for i + 1 <= n). So 2*i < 2*n, i
 * <= n - 1 and n > i are one node. Operands of min, max, and, or are flattened, sorted, made unique; constants are
 * folded; absorption (min(max(x, y), x) == x) and operands that differ by a constant are resolved. */
#include "expr/impl.h"

static rx_ex plain(relax_context *ctx, rx_eop op, rx_ex a, rx_ex b)
{
    return rx_node2(ctx, op, 0, RELAX_BOOL, a, b);
}

/* p - n + k <= 0 (LE), == 0 (EQ) or != 0 (NE) */
static rx_ex from_sides(relax_context *ctx, rx_eop op, const rx_terms *p, const rx_terms *n, int64_t k)
{
    rx_ex l = rx_from_terms(ctx, p), r = rx_from_terms(ctx, n);
    if (op == RX_EX_LE) {
        if (k == 1 && p->n && n->n) return plain(ctx, RX_EX_LT, l, r);
        if (k > 0 && !n->n) return plain(ctx, op, l, rx_int(ctx, -k));
        if (k > 0) return plain(ctx, op, rx_index_add(ctx, l, rx_int(ctx, k)), r);
        if (k < 0 && !p->n) return plain(ctx, op, rx_int(ctx, k), r);
        return plain(ctx, op, l, rx_index_add(ctx, r, rx_int(ctx, -k)));
    }
    if (!p->n) return plain(ctx, op, r, rx_int(ctx, k));
    if (!n->n || k < 0) return plain(ctx, op, l, rx_index_add(ctx, r, rx_int(ctx, -k)));
    return plain(ctx, op, rx_index_add(ctx, l, rx_int(ctx, k)), r);
}

static rx_ex relation(relax_context *ctx, rx_eop op, rx_ex a, rx_ex b)
{
    rx_arena *tmp = rx_temp(ctx);
    rx_terms d, p = {0}, n = {0};
    int64_t g = 0, k;
    rx_ex diff = rx_index_add(ctx, a, rx_index_mul(ctx, b, rx_int(ctx, -1)));
    rx_terms_of(diff, tmp, &d);
    p.t = RX_NEWN(tmp, rx_term, d.n + 1);
    n.t = RX_NEWN(tmp, rx_term, d.n + 1);
    for (uint32_t i = 0; i < d.n; i++) {
        if (d.t[i].coef == INT64_MIN || d.t[i].key->flags & RX_EX_RAW) return plain(ctx, op, a, b);
        g = rx_gcd(g, d.t[i].coef);
    }
    if (!d.n) return rx_bool(ctx, op == RX_EX_LE ? d.k <= 0 : (d.k == 0) == (op == RX_EX_EQ));
    if (d.k == INT64_MIN) return plain(ctx, op, a, b);
    if (op != RX_EX_LE && d.k % g) return rx_bool(ctx, op == RX_EX_NE);
    rx_floordiv_ok(-d.k, g, &k);
    k = -k;
    bool flip = op != RX_EX_LE && d.t[0].coef < 0;
    for (uint32_t i = 0; i < d.n; i++) {
        int64_t c = flip ? -(d.t[i].coef / g) : d.t[i].coef / g;
        if (c > 0) p.t[p.n++] = (rx_term){d.t[i].key, c};
        else n.t[n.n++] = (rx_term){d.t[i].key, -c};
    }
    return from_sides(ctx, op, &p, &n, flip ? -k : k);
}

rx_ex rx_index_compare(relax_context *ctx, rx_eop op, rx_ex a, rx_ex b)
{
    if (a == b) return rx_bool(ctx, op == RX_EX_EQ || op == RX_EX_LE);
    if (op != RX_EX_LT) return relation(ctx, op, a, b);
    rx_ex a1 = rx_index_add(ctx, a, rx_int(ctx, 1));
    if (a1->flags & RX_EX_RAW) return plain(ctx, op, a, b);
    return relation(ctx, RX_EX_LE, a1, b);
}

/* ---- min, max, and, or ---- */
static void operands(rx_ex e, rx_eop op, rx_ex *out, uint32_t cap, uint32_t *n)
{
    if (e->op == op && rx_is_index(e)) {
        operands(e->a[0], op, out, cap, n);
        operands(e->a[1], op, out, cap, n);
    } else {
        if (*n < cap) out[*n] = e;
        if (*n <= cap) ++*n;
    }
}

uint32_t rx_operands(rx_ex e, rx_eop op, rx_ex *out, uint32_t cap)
{
    uint32_t n = 0;
    operands(e, op, out, cap, &n);
    return n;
}

static rx_ex tree(relax_context *ctx, rx_eop op, relax_dtype t, rx_ex *x, uint32_t n)
{
    if (n == 1) return x[0];
    return rx_node2(ctx, op, 0, t, tree(ctx, op, t, x, n / 2), tree(ctx, op, t, x + n / 2, n - n / 2));
}

/* sorted and unique; returns the new count */
static uint32_t order(rx_ex *x, uint32_t n)
{
    uint32_t m = 0;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t j = m;
        rx_ex e = x[i];
        while (j > 0 && rx_expr_cmp(e, x[j - 1]) < 0) j--;
        if (j > 0 && x[j - 1] == e) continue;
        memmove(x + j + 1, x + j, (m - j) * sizeof *x);
        x[j] = e;
        m++;
    }
    return m;
}

/* drop operands of the opposite kind that contain another operand */
static uint32_t absorb(rx_eop other, rx_ex *x, uint32_t n)
{
    rx_ex in[RX_EXPR_AC];
    uint32_t m = 0;
    bool drop[2 * RX_EXPR_AC] = {false};
    for (uint32_t i = 0; i < n; i++) {
        if (x[i]->op != other) continue;
        uint32_t k = rx_operands(x[i], other, in, RX_EXPR_AC);
        for (uint32_t j = 0; j < k && k <= RX_EXPR_AC; j++)
            for (uint32_t l = 0; l < n; l++)
                if (x[l] == in[j] && l != i) drop[i] = true;
    }
    for (uint32_t i = 0; i < n; i++)
        if (!drop[i]) x[m++] = x[i];
    return m;
}

#define RX_PAIRS 16                    /* operands up to which all pairs are looked at */

/* of two operands that differ by a constant one is enough */
static uint32_t settle(relax_context *ctx, rx_eop op, rx_ex *x, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t j = i + 1; j < n;) {
            int64_t d;
            if (x[i]->size > 200 || x[j]->size > 200) { j++; continue; }
            rx_ex diff = rx_index_add(ctx, x[i], rx_index_mul(ctx, x[j], rx_int(ctx, -1)));
            if (!rx_is_int(diff, &d)) { j++; continue; }
            if ((d > 0) == (op == RX_EX_MIN)) x[i] = x[j];
            memmove(x + j, x + j + 1, (n - j - 1) * sizeof *x);
            n--;
        }
    return n;
}

rx_ex rx_index_extremum(relax_context *ctx, rx_eop op, rx_ex a, rx_ex b)
{
    rx_ex x[2 * RX_EXPR_AC], k = NULL;
    if (a == b) return a;
    uint32_t n = rx_operands(a, op, x, RX_EXPR_AC), m = 0;
    uint32_t nb = n > RX_EXPR_AC ? 0 : rx_operands(b, op, x + n, RX_EXPR_AC);
    if (n + nb > RX_EXPR_AC) return rx_node2(ctx, op, 0, RELAX_I64, a, b);
    n = order(x, n + nb);
    for (uint32_t i = 0; i < n; i++) {
        if (x[i]->op != RX_EX_INT) x[m++] = x[i];
        else if (!k || (op == RX_EX_MIN) == (x[i]->u.i < k->u.i)) k = x[i];
    }
    if (!m) return k;
    if (m <= RX_PAIRS) m = order(x, settle(ctx, op, x, m));
    m = absorb(op == RX_EX_MIN ? RX_EX_MAX : RX_EX_MIN, x, m);
    rx_ex e = tree(ctx, op, RELAX_I64, x, m);
    return k ? rx_node2(ctx, op, 0, RELAX_I64, e, k) : e;
}

rx_ex rx_index_logic(relax_context *ctx, rx_eop op, rx_ex a, rx_ex b)
{
    rx_ex x[2 * RX_EXPR_AC];
    bool unit = op == RX_EX_AND;
    if (a == b) return a;
    if (a->op == RX_EX_INT) return (a->u.i != 0) == unit ? b : a;
    if (b->op == RX_EX_INT) return (b->u.i != 0) == unit ? a : b;
    uint32_t n = rx_operands(a, op, x, RX_EXPR_AC);
    uint32_t nb = n > RX_EXPR_AC ? 0 : rx_operands(b, op, x + n, RX_EXPR_AC);
    if (n + nb > RX_EXPR_AC) return rx_node2(ctx, op, 0, RELAX_BOOL, a, b);
    n = order(x, n + nb);
    n = absorb(unit ? RX_EX_OR : RX_EX_AND, x, n);
    for (uint32_t i = 0; i < n && n <= RX_PAIRS; i++) {
        if (x[i]->op == RX_EX_AND || x[i]->op == RX_EX_OR) continue;      /* negating these is work, and rarely a hit */
        rx_ex no = rx_index_not(ctx, x[i]);
        for (uint32_t j = 0; j < n; j++)
            if (x[j] == no) return rx_bool(ctx, !unit);
    }
    return tree(ctx, op, RELAX_BOOL, x, n);
}

rx_ex rx_index_not(relax_context *ctx, rx_ex a)
{
    switch ((rx_eop)a->op) {
    case RX_EX_INT: return rx_bool(ctx, !a->u.i);
    case RX_EX_NOT: return a->a[0];
    case RX_EX_EQ: return rx_node2(ctx, RX_EX_NE, 0, RELAX_BOOL, a->a[0], a->a[1]);
    case RX_EX_NE: return rx_node2(ctx, RX_EX_EQ, 0, RELAX_BOOL, a->a[0], a->a[1]);
    case RX_EX_LT: return rx_index_compare(ctx, RX_EX_LE, a->a[1], a->a[0]);
    case RX_EX_LE: return rx_index_compare(ctx, RX_EX_LT, a->a[1], a->a[0]);
    case RX_EX_AND: case RX_EX_OR: {
        /* a tree that is shared inside would be walked once for each path: only small ones are turned */
        if (a->size > 1000) break;
        rx_eop op = a->op == RX_EX_AND ? RX_EX_OR : RX_EX_AND;
        return rx_index_logic(ctx, op, rx_index_not(ctx, a->a[0]), rx_index_not(ctx, a->a[1]));
    }
    default: break;
    }
    return rx_node(ctx, RX_EX_NOT, 0, RELAX_BOOL, &a, 1);
}
