/* sample.c: values that satisfy facts, to see that a condition is neither always true nor always false.
 *
 * A condition for which both a true and a false point are found needs no proof attempt; the points also make the
 * best reasons. Points come from a fixed sequence; equations of the facts that give a symbol are used to set it. */
#include "expr/impl.h"

#define RX_SAMPLE_TRIES 48

static bool shares(const rx_exvec *x, const rx_exvec *y)
{
    for (uint32_t i = 0; i < x->n; i++)
        for (uint32_t j = 0; j < y->n; j++)
            if (x->at[i] == y->at[j]) return true;
    return false;
}

static void add_syms(rx_arena *a, rx_exvec *out, const rx_exvec *in)
{
    for (uint32_t i = 0; i < in->n; i++) {
        uint32_t j = 0;
        while (j < out->n && out->at[j] != in->at[i]) j++;
        if (j == out->n) rx_push(a, out, in->at[i]);
    }
}

/* the facts connected to cond by symbols, newest first, and all symbols of both; a condition without symbols takes
 * all facts */
void rx_facts_relevant(const rx_facts *facts, rx_arena *a, rx_ex cond, rx_exvec *conds, rx_exvec *syms)
{
    rx_map taken;
    rx_map_init(&taken, a);
    if (facts) rx_free_syms(facts->ctx, a, cond, syms);
    bool every = !syms->n;
    for (bool again = facts != NULL; again;) {
        again = false;
        for (const rx_facts *f = facts; f; f = f->parent)
            for (uint32_t i = f->conds.n; i-- > 0;) {
                if (rx_map_has(&taken, RX_KEY(&f->conds.at[i])) || (!every && !shares(&f->syms.at[i], syms))) continue;
                rx_map_put(&taken, RX_KEY(&f->conds.at[i]), NULL);
                rx_push(a, conds, f->conds.at[i]);
                add_syms(a, syms, &f->syms.at[i]);
                again = !every;
            }
    }
}

/* x == … and x % c == r set or move x */
static void repair(relax_context *ctx, rx_ex fact, const rx_map *env)
{
    int64_t c, r, *x, v;
    if (fact->op != RX_EX_EQ || fact->a[0]->dtype != RELAX_I64) return;
    rx_ex l = fact->a[0];
    if ((x = rx_map_get(env, RX_KEY(l))) != NULL) {
        if (rx_eval(ctx, fact->a[1], env, &v) == RX_EVAL_OK) *x = v;
    } else if ((x = rx_map_get(env, RX_KEY(fact->a[1]))) != NULL) {
        if (rx_eval(ctx, l, env, &v) == RX_EVAL_OK) *x = v;
    } else if (l->op == RX_EX_FLOORMOD && rx_is_int(l->a[1], &c) && c > 0 && rx_is_int(fact->a[1], &r)
               && (x = rx_map_get(env, RX_KEY(l->a[0]))) != NULL && rx_floormod_ok(*x, c, &v)) {
        rx_add_ok(*x, r - v, x);
    }
}

static bool choose(relax_context *ctx, const rx_facts *f, rx_sample *s, int64_t *v, int k, uint64_t *x)
{
    static const int64_t tries[] = {1, 2, 3, 0, 5, 7, 16, -1, 4, 31, 100, -3};
    for (uint32_t i = 0; i < s->syms.n; i++) {
        rx_range r = rx_facts_range(f, s->syms.at[i]);
        int64_t d = s->syms.at[i]->u.sym->divisor;
        if (r.lo > r.hi) return false;
        *x ^= *x << 13, *x ^= *x >> 7, *x ^= *x << 17;
        v[i] = tries[(k < 12 ? (uint64_t)k : *x >> 8) % RX_COUNT(tries)];
        v[i] = RX_MAX(r.lo, RX_MIN(r.hi, v[i]));
        if (k >= 12 && r.lo > INT64_MIN / 2 && r.hi < INT64_MAX / 2 && r.hi - r.lo < 64)
            v[i] = r.lo + (int64_t)(*x >> 20) % (r.hi - r.lo + 1);
        if (d > 1) v[i] -= v[i] % d;
        if (v[i] < r.lo || v[i] > r.hi) return false;
    }
    for (uint32_t i = 0; i < s->conds.n; i++) repair(ctx, s->conds.at[i], &s->env);
    for (uint32_t i = 0; i < s->syms.n; i++) {
        rx_range r = rx_facts_range(f, s->syms.at[i]);
        if (v[i] < r.lo || v[i] > r.hi || v[i] % s->syms.at[i]->u.sym->divisor) return false;
    }
    return true;
}

static bool holds(relax_context *ctx, const rx_sample *s)
{
    int64_t v;
    for (uint32_t i = 0; i < s->conds.n; i++)
        if (rx_eval(ctx, s->conds.at[i], &s->env, &v) != RX_EVAL_OK || !v) return false;
    return true;
}

void rx_sample_points(relax_context *ctx, rx_arena *a, const rx_facts *f, rx_ex cond, rx_sample *s)
{
    uint64_t x = 88172645463325252ull;
    *s = (rx_sample){0};
    rx_facts_relevant(f, a, cond, &s->conds, &s->syms);
    if (!f) rx_free_syms(ctx, a, cond, &s->syms);
    if (s->syms.n > 64 || cond->size > 2000) return;
    rx_map_init(&s->env, a);
    int64_t *v = RX_NEWN(a, int64_t, s->syms.n + 1), r;
    for (uint32_t i = 0; i < s->syms.n; i++) rx_map_put(&s->env, RX_KEY(s->syms.at[i]), &v[i]);
    for (int k = 0; k < RX_SAMPLE_TRIES && !(s->point[0] && s->point[1]); k++) {
        if (!choose(ctx, f, s, v, k, &x) || !holds(ctx, s) || rx_eval(ctx, cond, &s->env, &r) != RX_EVAL_OK) continue;
        if (!s->point[r != 0]) s->point[r != 0] = rx_arena_dup(a, v, (s->syms.n + 1) * sizeof *v);
    }
}

void rx_sample_say(rx_buf *b, const rx_sample *s, bool truth)
{
    if (!s->point[truth] || !s->syms.n) return;
    rx_puts(b, truth ? "; it holds for " : "; it does not hold for ");
    for (uint32_t i = 0; i < s->syms.n; i++)
        rx_putf(b, "%s%s = %lld", i ? ", " : "", s->syms.at[i]->u.sym->name, (long long)s->point[truth][i]);
}
