/* cases.c: case splits on the expressions themselves, where rows over atoms see too little.
 *
 * In: conditions that are to contradict each other. An equation that gives a symbol is substituted into the
 * others; then one node is taken away by cases: truncdiv and truncmod by the signs of their operands, a minimum,
 * maximum, select or absolute value that stands inside a product or a quotient by which operand it is. After each
 * substitution the constructors canonicalise again, so that terms meet which were apart; the leaves go back to
 * refute.c. */
#include "expr/impl.h"

#define RX_CASE_DEPTH 10

typedef struct finder { rx_ex found; bool inside; bool partial; } finder;

static bool nonlinear(rx_ex e)
{
    return rx_is_index(e) &&
           ((e->op == RX_EX_MUL && e->a[1]->op != RX_EX_INT) || (e->op >= RX_EX_FLOORDIV && e->op <= RX_EX_TRUNCMOD));
}

static bool by_case(rx_ex e)
{
    return e->op == RX_EX_MIN || e->op == RX_EX_MAX || (e->op == RX_EX_SELECT && e->dtype == RELAX_I64) ||
           e->op == RX_EX_CALL;
}

static void find_inner(void *arg, rx_ex e)
{
    finder *f = arg;
    if (!f->found && by_case(e) && rx_is_index(e)) f->found = e;
}

/* arguments are visited first: the innermost node comes out */
static void find(void *arg, rx_ex e)
{
    finder *f = arg;
    if (f->found || !rx_is_index(e)) return;
    if (e->op == RX_EX_TRUNCDIV || e->op == RX_EX_TRUNCMOD) {
        if (!f->partial || (e->a[1]->op == RX_EX_INT && e->a[1]->u.i)) f->found = e;
    } else if (nonlinear(e)) {
        f->inside = true;
    }
}

/* a node to split on, or NULL */
static rx_ex pick(rx_query *q, const rx_exvec *conj)
{
    relax_context *ctx = rx_query_ctx(q);
    for (uint32_t i = 0; i < conj->n; i++) {
        finder f = {NULL, false, rx_query_partial(q)};
        if (conj->at[i]->size > 2000) continue;
        rx_visit(ctx, conj->at[i], find, &f);
        if (!f.found && f.inside) rx_visit(ctx, conj->at[i], find_inner, &f);
        if (f.found) return f.found;
    }
    return NULL;
}

static void put(rx_map *m, rx_ex from, rx_ex to)
{
    if (from != to) rx_map_put(m, RX_KEY(from), (void *)(uintptr_t)to);
}

/* conj with the map applied, plus guard; false: it is plainly contradictory */
static bool one_case(rx_query *q, const rx_exvec *conj, const rx_map *m, rx_ex guard, rx_exvec *out)
{
    relax_context *ctx = rx_query_ctx(q);
    rx_arena *a = rx_query_arena(q);
    *out = (rx_exvec){0};
    rx_push(a, out, guard);
    if (guard->op == RX_EX_INT && !guard->u.i) return false;
    for (uint32_t i = 0; i < conj->n; i++) {
        rx_ex c = rx_subst(ctx, conj->at[i], m);
        if (c->op == RX_EX_INT && !c->u.i) return false;
        if (c->op != RX_EX_INT) rx_push(a, out, c);
    }
    return true;
}

static bool refuted_case(rx_query *q, const rx_exvec *conj, const rx_map *m, rx_ex guard, int depth)
{
    rx_exvec next;
    if (rx_range_of(rx_query_ctx(q), rx_query_facts(q), guard).hi == 0) return true;
    if (!one_case(q, conj, m, guard, &next)) return true;
    return rx_refute_cases(q, &next, depth + 1);
}

static bool split_trunc(rx_query *q, const rx_exvec *conj, rx_ex e, int depth)
{
    relax_context *ctx = rx_query_ctx(q);
    rx_ex x = e->a[0], d = e->a[1], zero = rx_int(ctx, 0), minus = rx_int(ctx, -1);
    rx_ex div = rx_binary(ctx, RX_EX_TRUNCDIV, x, d), mod = rx_binary(ctx, RX_EX_TRUNCMOD, x, d),
          nx = rx_mul(ctx, minus, x);
    for (int k = 0; k < 4; k++) {
        bool xp = k & 1, dp = k & 2;
        rx_map m;
        rx_map_init(&m, rx_query_arena(q));
        rx_ex guard =
            rx_and(ctx, xp ? rx_le(ctx, zero, x) : rx_lt(ctx, x, zero), dp ? rx_lt(ctx, zero, d) : rx_lt(ctx, d, zero));
        rx_ex floor = xp == dp ? rx_div(ctx, x, d) : rx_mul(ctx, minus, rx_div(ctx, nx, d));
        rx_ex pd = dp ? d : rx_mul(ctx, minus, d);
        put(&m, div, floor);
        put(&m, mod, xp ? rx_mod(ctx, x, pd) : rx_mul(ctx, minus, rx_mod(ctx, nx, pd)));
        if (!refuted_case(q, conj, &m, guard, depth)) return false;
    }
    return true;
}

static bool split_two(rx_query *q, const rx_exvec *conj, rx_ex e, int depth)
{
    relax_context *ctx = rx_query_ctx(q);
    bool extremum = e->op == RX_EX_MIN || e->op == RX_EX_MAX;
    rx_ex zero = rx_int(ctx, 0), a, b, first;
    if (e->op == RX_EX_SELECT) first = e->a[0], a = e->a[1], b = e->a[2];
    else if (e->op == RX_EX_CALL) first = rx_le(ctx, zero, e->a[0]), a = e->a[0], b = rx_mul(ctx, rx_int(ctx, -1), a);
    else first = rx_le(ctx, e->a[0], e->a[1]), a = e->a[e->op == RX_EX_MAX], b = e->a[e->op == RX_EX_MIN];
    for (int k = 0; k < 2; k++) {
        rx_map m;
        rx_map_init(&m, rx_query_arena(q));
        put(&m, e, k ? b : a);
        if (extremum)
            put(&m, rx_node2(ctx, e->op == RX_EX_MIN ? RX_EX_MAX : RX_EX_MIN, 0, RELAX_I64, e->a[0], e->a[1]),
                k ? a : b);
        if (!refuted_case(q, conj, &m, k ? rx_not(ctx, first) : first, depth)) return false;
    }
    return true;
}

/* sym and the value an equation gives it */
static bool equation(rx_query *q, rx_ex c, rx_ex *sym, rx_ex *value)
{
    relax_context *ctx = rx_query_ctx(q);
    rx_terms t;
    if (c->op != RX_EX_EQ || c->a[0]->dtype != RELAX_I64 || c->size > 500) return false;
    rx_ex d = rx_sub(ctx, c->a[0], c->a[1]);
    rx_terms_of(d, rx_query_arena(q), &t);
    for (uint32_t i = 0; i < t.n; i++) {
        if (t.t[i].key->op != RX_EX_SYM || (t.t[i].coef != 1 && t.t[i].coef != -1)) continue;
        rx_ex rest = rx_sub(ctx, rx_muli(ctx, t.t[i].key, t.t[i].coef), d);
        if (rx_uses(ctx, rest, t.t[i].key)) continue;
        *sym = t.t[i].key;
        *value = rx_muli(ctx, rest, t.t[i].coef);
        return true;
    }
    return false;
}

/* conjuncts one by one; false: one of them is false */
static bool flatten(rx_query *q, rx_ex c, rx_exvec *out)
{
    if (c->op == RX_EX_AND) return flatten(q, c->a[0], out) && flatten(q, c->a[1], out);
    if (c->op != RX_EX_INT) rx_push(rx_query_arena(q), out, c);
    return c->op != RX_EX_INT || c->u.i;
}

static rx_ex own_bounds(relax_context *ctx, rx_ex sym, rx_ex value)
{
    rx_sym *s = sym->u.sym;
    rx_ex c = rx_bool(ctx, true);
    if (s->lo != INT64_MIN) c = rx_and(ctx, c, rx_le(ctx, rx_int(ctx, s->lo), value));
    if (s->hi != INT64_MAX) c = rx_and(ctx, c, rx_le(ctx, value, rx_int(ctx, s->hi)));
    return s->divisor > 1 ? rx_and(ctx, c, rx_eq(ctx, rx_modi(ctx, value, s->divisor), rx_int(ctx, 0))) : c;
}

/* solves equations and fixed symbols away. false: contradiction */
static bool substitute(rx_query *q, rx_exvec *conj, bool *changed)
{
    relax_context *ctx = rx_query_ctx(q);
    rx_arena *a = rx_query_arena(q);
    for (int round = 0; round < 16; round++) {
        rx_exvec flat = {0};
        rx_ex sym = NULL, value = NULL;
        uint32_t at = 0;
        for (uint32_t i = 0; i < conj->n; i++)
            if (!flatten(q, conj->at[i], &flat)) return false;
        *conj = flat;
        while (at < conj->n && !equation(q, conj->at[at], &sym, &value)) at++;
        if (at == conj->n) return true;
        rx_map m;
        rx_map_init(&m, a);
        put(&m, sym, value);
        conj->at[at] = conj->at[--conj->n];
        *changed = true;
        if (!one_case(q, conj, &m, own_bounds(ctx, sym, value), &flat)) return false;
        *conj = flat;
    }
    return true;
}

bool rx_refute_cases(rx_query *q, const rx_exvec *conj, int depth)
{
    rx_exvec c = {0};
    bool changed = depth > 0;
    for (uint32_t i = 0; i < conj->n; i++) rx_push(rx_query_arena(q), &c, conj->at[i]);
    if (!substitute(q, &c, &changed)) return true;
    rx_ex e = depth < RX_CASE_DEPTH ? pick(q, &c) : NULL;
    if (!e) return changed && rx_refute_all(q, &c);
    if (changed && depth > 0 && depth % 3 == 0 && rx_refute_all(q, &c)) return true;
    bool trunc = e->op == RX_EX_TRUNCDIV || e->op == RX_EX_TRUNCMOD;
    return trunc ? split_trunc(q, &c, e, depth) : split_two(q, &c, e, depth);
}
