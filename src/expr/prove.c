/* prove.c: the prover's front: truth of a condition, with a reason.
 *
 * Order of attempts: the canonical form itself, interval arithmetic, then refutation of the opposite (refute.c) under a budget.
 * A query runs in a frame of its own, so that its temporary memory goes at once; the reason is written into the caller's buffer. */
#include "expr/impl.h"

#define RX_PROVE_BUDGET 30000          /* row operations; a millisecond or so */
#define RX_PROVE_SIZE 4000             /* larger conditions are not tried beyond intervals */

/* the budget goes down with the size of the facts' tree only through the rows themselves */
static bool refuted(relax_context *ctx, const rx_facts *f, rx_ex cond)
{
    rx_frame fr;
    if (!RX_ENTER(&ctx->heap, &fr)) rx_unwind(&ctx->heap);
    rx_query *q = rx_query_new(ctx, rx_scratch(&ctx->heap), f, RX_PROVE_BUDGET);
    bool r = rx_refute(q, cond);
    rx_leave(&ctx->heap, &fr);
    return r;
}

static void say(rx_buf *why, const char *text, rx_ex cond)
{
    if (!why) return;
    if (cond) rx_print_expr(why, cond);
    rx_puts(why, text);
}

/* ---- reasons for "unknown" and "false": values to look at ---- */
typedef struct sample { rx_exvec syms; rx_map env; int64_t *v; } sample;

static bool holds(relax_context *ctx, const rx_facts *f, const rx_map *env)
{
    int64_t v;
    for (; f; f = f->parent)
        for (uint32_t i = 0; i < f->conds.n; i++)
            if (rx_eval(ctx, f->conds.at[i], env, &v) != RX_EVAL_OK || !v) return false;
    return true;
}

/* values that satisfy facts and bounds and give cond the value want */
static bool find(relax_context *ctx, const rx_facts *f, rx_ex cond, bool want, sample *s)
{
    static const int64_t tries[] = {1, 2, 3, 0, 5, 7, 16, -1, 4, 31, 100, -3};
    uint64_t x = 88172645463325252ull;
    for (int k = 0; k < 200; k++) {
        for (uint32_t i = 0; i < s->syms.n; i++) {
            rx_range r = rx_facts_range(f, s->syms.at[i]);
            x ^= x << 13, x ^= x >> 7, x ^= x << 17;
            s->v[i] = tries[(k < 12 ? (uint64_t)k : x >> 8) % RX_COUNT(tries)];
            s->v[i] = RX_MAX(r.lo, RX_MIN(r.hi, s->v[i]));
            if (s->syms.at[i]->u.sym->divisor > 1) s->v[i] -= s->v[i] % s->syms.at[i]->u.sym->divisor;
            if (s->v[i] < r.lo) goto next;
        }
        int64_t v;
        if (holds(ctx, f, &s->env) && rx_eval(ctx, cond, &s->env, &v) == RX_EVAL_OK && (v != 0) == want) return true;
    next:;
    }
    return false;
}

static void say_values(rx_buf *why, const sample *s)
{
    for (uint32_t i = 0; i < s->syms.n; i++)
        rx_putf(why, "%s%s = %lld", i ? ", " : "", s->syms.at[i]->u.sym->name, (long long)s->v[i]);
}

static void say_example(relax_context *ctx, const rx_facts *f, rx_ex cond, bool want, rx_buf *why)
{
    sample s = {0};
    rx_arena *tmp = rx_temp(ctx);
    rx_free_syms(ctx, tmp, cond, &s.syms);
    for (const rx_facts *g = f; g; g = g->parent)
        for (uint32_t i = 0; i < g->conds.n; i++) rx_free_syms(ctx, tmp, g->conds.at[i], &s.syms);
    rx_map_init(&s.env, tmp);
    s.v = RX_NEWN(tmp, int64_t, s.syms.n + 1);
    for (uint32_t i = 0; i < s.syms.n; i++) rx_map_put(&s.env, RX_KEY(s.syms.at[i]), &s.v[i]);
    if (!find(ctx, f, cond, want, &s)) return;
    rx_puts(why, want ? "; it holds for " : "; it does not hold for ");
    say_values(why, &s);
}

rx_truth rx_prove(relax_context *ctx, const rx_facts *f, rx_ex cond, rx_buf *why)
{
    if (cond->dtype != RELAX_BOOL || !rx_is_index(cond)) {
        say(why, "a condition over data is not proved", NULL);
        return RX_UNKNOWN;
    }
    if (cond->op == RX_EX_INT && cond->u.i) {
        say(why, "both sides have one canonical form, or differ by a constant", NULL);
        return RX_TRUE;
    }
    rx_range r = rx_range_of(ctx, f, cond);
    if (r.lo == 1) return say(why, " follows from the bounds of its terms", cond), RX_TRUE;
    if (r.hi == 0 && cond->op != RX_EX_INT) return say(why, " contradicts the bounds of its terms", cond), RX_FALSE;
    if (cond->size <= RX_PROVE_SIZE) {
        if (refuted(ctx, f, rx_not(ctx, cond)))
            return say(why, ": its opposite contradicts the facts and the definitions of its terms", cond), RX_TRUE;
        if (cond->op == RX_EX_INT) return say(why, "the two sides differ by a constant", NULL), RX_FALSE;
        if (refuted(ctx, f, cond)) {
            say(why, " contradicts the facts and the definitions of its terms", cond);
            if (why) say_example(ctx, f, cond, false, why);
            return RX_FALSE;
        }
    }
    say(why, " is neither proved nor refuted", cond);
    if (why) say_example(ctx, f, cond, true, why), say_example(ctx, f, cond, false, why);
    return RX_UNKNOWN;
}

rx_truth rx_prove_eq(relax_context *ctx, const rx_facts *f, rx_ex a, rx_ex b)
{
    return a == b ? RX_TRUE : a->dtype != b->dtype ? RX_UNKNOWN : rx_prove(ctx, f, rx_eq(ctx, a, b), NULL);
}

rx_truth rx_prove_le(relax_context *ctx, const rx_facts *f, rx_ex a, rx_ex b)
{
    return a == b ? RX_TRUE : a->dtype != b->dtype ? RX_UNKNOWN : rx_prove(ctx, f, rx_le(ctx, a, b), NULL);
}

/* symbols that have only one value under f replaced by it: products with them become linear */
static rx_ex fixed(relax_context *ctx, const rx_facts *f, rx_ex e)
{
    rx_exvec syms = {0};
    rx_map m;
    rx_arena *tmp = rx_temp(ctx);
    rx_map_init(&m, tmp);
    rx_free_syms(ctx, tmp, e, &syms);
    for (uint32_t i = 0; i < syms.n; i++) {
        rx_range r = rx_facts_range(f, syms.at[i]);
        if (r.lo == r.hi && syms.at[i]->dtype == RELAX_I64) rx_map_put(&m, RX_KEY(syms.at[i]), (void *)(uintptr_t)rx_int(ctx, r.lo));
    }
    return m.n ? rx_subst(ctx, e, &m) : e;
}

/* a function of its own: its variables do not live across the frame of the caller */
static rx_range narrowed(relax_context *ctx, const rx_facts *f, rx_ex e, rx_range r)
{
    rx_frame fr;
    if (!RX_ENTER(&ctx->heap, &fr)) rx_unwind(&ctx->heap);
    rx_query *q = rx_query_new(ctx, rx_scratch(&ctx->heap), f, RX_PROVE_BUDGET);
    int64_t lo = r.lo, hi = r.hi;
    rx_query_bounds(q, e, &lo, &hi);
    rx_leave(&ctx->heap, &fr);
    return lo <= hi ? (rx_range){lo, hi} : r;
}

void rx_bounds(relax_context *ctx, const rx_facts *f, rx_ex e, int64_t *lo, int64_t *hi)
{
    if (e->size <= 500 && e->flags & RX_EX_HAS_SYM && rx_is_index(e)) e = fixed(ctx, f, e);
    rx_range r = rx_range_of(ctx, f, e);
    if ((e->nargs || f) && e->size <= 500 && rx_is_index(e) && e->dtype == RELAX_I64 && r.lo != r.hi)
        r = narrowed(ctx, f, e, r);
    int64_t c, b, x;
    if (e->nargs && r.lo != r.hi && e->dtype == RELAX_I64) {
        rx_modular(ctx, f, e, &c, &b);                  /* the ends are congruent to b */
        if (c > 1 && r.lo != INT64_MIN && rx_sub_ok(b, r.lo, &x) && rx_floormod_ok(x, c, &x)) rx_add_ok(r.lo, x, &r.lo);
        if (c > 1 && r.hi != INT64_MAX && rx_sub_ok(r.hi, b, &x) && rx_floormod_ok(x, c, &x)) rx_sub_ok(r.hi, x, &r.hi);
    }
    *lo = r.lo == INT64_MAX ? INT64_MIN : r.lo;
    *hi = r.hi == INT64_MIN ? INT64_MAX : r.hi;
}
