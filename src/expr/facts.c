/* facts.c: sets of conditions that hold.
 *
 * A set keeps its conjuncts and, for the interval arithmetic of bounds.c, a range for each node that a linear
 * conjunct bounds (the others' ranges being known then). Sets nest: a child sees its parents, a parent never its
 * children. */
#include "expr/impl.h"

rx_facts *rx_facts_new(relax_context *ctx, rx_arena *a, const rx_facts *parent)
{
    rx_facts *f = RX_NEW(a, rx_facts);
    f->ctx = ctx;
    f->a = a;
    f->parent = parent;
    rx_map_init(&f->range, a);
    rx_map_init(&f->users, a);
    return f;
}

rx_range rx_facts_range(const rx_facts *f, rx_ex e)
{
    rx_range r = {INT64_MIN, INT64_MAX};
    if (e->op == RX_EX_SYM) {
        rx_sym *s = e->u.sym;
        int64_t q;
        r = (rx_range){s->lo, s->hi};
        if (s->divisor > 1 && r.lo != INT64_MIN && rx_floordiv_ok(-r.lo, s->divisor, &q)) r.lo = -q * s->divisor;
        if (s->divisor > 1 && r.hi != INT64_MAX && rx_floordiv_ok(r.hi, s->divisor, &q)) r.hi = q * s->divisor;
    }
    if (e->dtype == RELAX_BOOL) r = (rx_range){0, 1};
    for (; f; f = f->parent) {
        const rx_range *k = rx_map_get(&f->range, RX_KEY(e));
        if (k && k->lo > r.lo) r.lo = k->lo;
        if (k && k->hi < r.hi) r.hi = k->hi;
    }
    return r;
}

typedef RX_VEC(rx_ex) uses;

/* remember that fact reads the range of e: of the node and of the symbols in it */
static void note(rx_facts *f, rx_ex e, rx_ex fact)
{
    rx_exvec syms = {0};
    rx_push(f->a, &syms, e);
    if (e->size <= 50) rx_free_syms(f->ctx, f->a, e, &syms);
    for (uint32_t i = 0; i < syms.n; i++) {
        uses *u = rx_map_get(&f->users, RX_KEY(syms.at[i]));
        if (!u) {
            u = RX_NEW(f->a, uses);
            rx_map_put(&f->users, RX_KEY(syms.at[i]), u);
        }
        if (!u->n || u->at[u->n - 1] != fact) rx_push(f->a, u, fact);
    }
}

static void narrow(rx_facts *f, rx_ex e, int64_t lo, int64_t hi)
{
    rx_range *r = rx_map_get(&f->range, RX_KEY(e));
    if (!r) {
        r = RX_NEW(f->a, rx_range);
        *r = (rx_range){INT64_MIN, INT64_MAX};
        rx_map_put(&f->range, RX_KEY(e), r);
    }
    if (lo <= r->lo && hi >= r->hi) return;
    if (lo > r->lo) r->lo = lo;
    if (hi < r->hi) r->hi = hi;
    if (r->lo > r->hi) f->empty = true;
    /* who uses the node can learn more now */
    uses *u = rx_map_get(&f->users, RX_KEY(e));
    for (uint32_t i = 0; u && i < u->n; i++) rx_push(f->a, &f->todo, u->at[i]);
}

/* sum(t) + k >= 0: bounds on each key from the ranges of the others */
static void learn_ge(rx_facts *f, const rx_terms *t)
{
    for (uint32_t i = 0; i < t->n && t->n <= 8; i++) {
        __int128 rest = t->k;
        bool open = false;
        for (uint32_t j = 0; j < t->n; j++) {
            if (j == i) continue;
            rx_range r = rx_range_of(f->ctx, f, t->t[j].key);
            int64_t x = t->t[j].coef > 0 ? r.hi : r.lo;
            open |= x == INT64_MIN || x == INT64_MAX;
            rest += (__int128)t->t[j].coef * x;
        }
        int64_t c = t->t[i].coef, q;
        if (open || rest > INT64_MAX || rest < -INT64_MAX || c == INT64_MIN) continue;
        if (c > 0 && rx_floordiv_ok((int64_t)rest, c, &q)) narrow(f, t->t[i].key, -q, INT64_MAX);
        if (c < 0 && rx_floordiv_ok((int64_t)rest, -c, &q)) narrow(f, t->t[i].key, INT64_MIN, q);
    }
}

static void learn(rx_facts *f, rx_ex cond, bool first)
{
    relax_context *ctx = f->ctx;
    if (cond->op != RX_EX_LE && cond->op != RX_EX_LT && cond->op != RX_EX_EQ) return;
    if (cond->a[0]->dtype != RELAX_I64) return;
    rx_ex d = rx_sub(ctx, cond->a[1], cond->a[0]);
    if (cond->op == RX_EX_LT) d = rx_subi(ctx, d, 1);
    rx_terms t;
    rx_arena *tmp = rx_temp(ctx);
    if (d->size > 200) return;
    rx_terms_of(d, tmp, &t);
    for (uint32_t i = 0; first && i < t.n && t.n <= 8; i++) note(f, t.t[i].key, cond);
    learn_ge(f, &t);
    if (cond->op != RX_EX_EQ) return;
    d = rx_sub(ctx, cond->a[0], cond->a[1]);
    rx_terms_of(d, tmp, &t);
    learn_ge(f, &t);
}

static void see_select(void *arg, rx_ex e)
{
    rx_facts *f = arg;
    f->partial |= e->op == RX_EX_SELECT;
}

void rx_facts_add(rx_facts *f, rx_ex cond)
{
    if (!rx_is_index(cond)) return;
    if (cond->op == RX_EX_AND) {
        rx_facts_add(f, cond->a[0]);
        rx_facts_add(f, cond->a[1]);
        return;
    }
    if (cond->op == RX_EX_INT) {
        f->empty |= cond->u.i == 0;
        return;
    }
    rx_exvec syms = {0};
    rx_free_syms(f->ctx, f->a, cond, &syms);
    rx_push(f->a, &f->conds, cond);
    rx_push(f->a, &f->syms, syms);
    rx_visit(f->ctx, cond, see_select, f);
    learn(f, cond, true);
    if (cond->op == RX_EX_SYM) narrow(f, cond, 1, 1);
    if (cond->op == RX_EX_NOT) narrow(f, cond->a[0], 0, 0);
    /* ranges can creep towards each other for ever: a bounded number of steps */
    uint32_t steps = 64 + 4 * f->conds.n;
    for (uint32_t i = 0; i < f->todo.n && i < steps; i++) learn(f, f->todo.at[i], false);
    f->todo.n = 0;
}

bool rx_facts_partial(const rx_facts *f)
{
    for (; f; f = f->parent)
        if (f->partial) return true;
    return false;
}

bool rx_facts_contradict(const rx_facts *f)
{
    for (const rx_facts *g = f; g; g = g->parent)
        if (g->empty) return true;
    return f && rx_prove(f->ctx, f, rx_bool(f->ctx, false), NULL) == RX_TRUE;
}

void rx_facts_rehome(rx_facts *f, rx_arena *a)
{
    f->a = a;
    f->range.a = a;
}
