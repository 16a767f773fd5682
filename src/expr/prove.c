/* prove.c: the prover's front: truth of a condition, with a reason.
 *
 * Order of attempts: the canonical form itself, interval arithmetic, then refutation of the opposite (refute.c)
 * under a budget. A query runs in a frame of its own, so that its temporary memory goes at once; the reason is
 * written into the caller's buffer. */
#include "expr/impl.h"

#define RX_PROVE_BUDGET 30000          /* row operations; a millisecond or so */
#define RX_QUICK_BUDGET 2000
#define RX_PROVE_SIZE 4000             /* larger conditions are not tried beyond intervals */

static void say(rx_buf *why, rx_ex cond, const char *text)
{
    if (!why) return;
    if (cond) rx_print_expr(why, cond);
    rx_puts(why, text);
}

static bool refuted(relax_context *ctx, rx_arena *a, const rx_facts *f, rx_ex cond, rx_effort effort)
{
    bool full = effort == RX_EFFORT_FULL;
    return rx_refute(rx_query_new(ctx, a, f, full ? RX_PROVE_BUDGET : RX_QUICK_BUDGET, full), cond);
}

/* inside the query's frame; a is its scratch arena */
static rx_truth attempt(relax_context *ctx, rx_arena *a, const rx_facts *f, rx_ex cond, rx_effort effort, rx_buf *why)
{
    rx_sample s;
    rx_sample_points(ctx, a, f, cond, &s);
    if (!s.point[0] && refuted(ctx, a, f, rx_not(ctx, cond), effort)) {
        say(why, cond, ": its opposite contradicts the facts and the definitions of its terms");
        return RX_TRUE;
    }
    if (!s.point[1] && refuted(ctx, a, f, cond, effort)) {
        say(why, cond, cond->op == RX_EX_INT ? ": the two sides differ by a constant"
                                             : " contradicts the facts and the definitions of its terms");
        if (why) rx_sample_say(why, &s, false);
        return RX_FALSE;
    }
    say(why, cond, " is neither proved nor refuted");
    if (why) rx_sample_say(why, &s, true), rx_sample_say(why, &s, false);
    return RX_UNKNOWN;
}

rx_truth rx_prove_with(relax_context *ctx, const rx_facts *f, rx_ex cond, rx_effort effort, rx_buf *why)
{
    if (cond->dtype != RELAX_BOOL || !rx_is_index(cond)) {
        say(why, NULL, "a condition over data is not proved");
        return RX_UNKNOWN;
    }
    if (cond->op == RX_EX_INT && (cond->u.i || !f)) {
        say(why, NULL,
            cond->u.i ? "both sides have one canonical form, or differ by a constant"
                      : "the two sides differ by a constant");
        return cond->u.i ? RX_TRUE : RX_FALSE;
    }
    rx_range r = rx_range_of(ctx, f, cond);
    if (r.lo == 1) return say(why, cond, " follows from the bounds of its terms"), RX_TRUE;
    if (r.hi == 0 && cond->op != RX_EX_INT) return say(why, cond, " contradicts the bounds of its terms"), RX_FALSE;
    if (cond->size > RX_PROVE_SIZE) return say(why, NULL, "the condition is too large"), RX_UNKNOWN;
    rx_frame fr;
    if (!RX_ENTER(&ctx->heap, &fr)) rx_unwind(&ctx->heap);
    rx_truth t = attempt(ctx, rx_scratch(&ctx->heap), f, cond, effort, why);
    rx_leave(&ctx->heap, &fr);
    return t;
}

rx_truth rx_prove(relax_context *ctx, const rx_facts *f, rx_ex cond, rx_buf *why)
{
    return rx_prove_with(ctx, f, cond, RX_EFFORT_FULL, why);
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
        if (r.lo == r.hi && syms.at[i]->dtype == RELAX_I64)
            rx_map_put(&m, RX_KEY(syms.at[i]), (void *)(uintptr_t)rx_int(ctx, r.lo));
    }
    return m.n ? rx_subst(ctx, e, &m) : e;
}

/* a function of its own: its variables do not live across the frame of the caller */
static rx_range narrowed(relax_context *ctx, const rx_facts *f, rx_ex e, rx_range r)
{
    rx_frame fr;
    if (!RX_ENTER(&ctx->heap, &fr)) rx_unwind(&ctx->heap);
    rx_query *q = rx_query_new(ctx, rx_scratch(&ctx->heap), f, RX_PROVE_BUDGET, false);
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
