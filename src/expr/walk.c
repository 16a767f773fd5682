/* walk.c: visiting, rewriting, substituting and evaluating expressions.
 *
 * Expressions are graphs: a node that is shared is visited once, results are kept in a map from node to result.
 * Recursion is bounded by RX_EXPR_DEPTH, which every node keeps. */
#include "expr/impl.h"

rx_ex rx_rebuild(relax_context *ctx, rx_ex e, rx_ex *a)
{
    bool changed = false;
    for (uint32_t i = 0; i < e->nargs; i++) changed |= a[i] != e->a[i];
    if (!changed) return e;
    switch ((rx_eop)e->op) {
    case RX_EX_INT: case RX_EX_FLOAT: case RX_EX_SYM: case RX_EX_COUNT: return e;
    case RX_EX_LOAD: return rx_load(ctx, e->u.buf, e->dtype, a, e->nargs);
    case RX_EX_NOT: case RX_EX_NEG: case RX_EX_BITNOT: return rx_unary(ctx, e->op, a[0]);
    case RX_EX_SELECT: return rx_select(ctx, a[0], a[1], a[2]);
    case RX_EX_CAST: return rx_cast(ctx, e->dtype, a[0]);
    case RX_EX_BITCAST: return rx_bitcast(ctx, e->dtype, a[0]);
    case RX_EX_CALL: return rx_intrinsic(ctx, e->intrin, a, e->nargs);
    default: return rx_binary(ctx, e->op, a[0], a[1]);
    }
}

typedef struct walk {
    relax_context *ctx;
    rx_map done;
    rx_ex (*f)(void *, rx_ex);
    void (*see)(void *, rx_ex);
    void *arg;
    const rx_map *subst;
    bool found;
} walk;

static rx_ex rewrite(walk *w, rx_ex e)
{
    rx_ex r = w->subst ? rx_map_get(w->subst, RX_KEY(e)) : NULL;
    if (r) return r;
    if (w->subst && !(e->flags & RX_EX_HAS_SYM) && !(e->flags & RX_EX_DATA)) return e;
    r = rx_map_get(&w->done, RX_KEY(e));
    if (r) return r;
    rx_ex few[4], *a = few;
    if (e->nargs > 4) a = RX_NEWN(rx_temp(w->ctx), rx_ex, e->nargs);
    for (uint32_t i = 0; i < e->nargs; i++) a[i] = rewrite(w, e->a[i]);
    r = rx_rebuild(w->ctx, e, a);
    if (w->f) r = w->f(w->arg, r);
    rx_map_put(&w->done, RX_KEY(e), (void *)(uintptr_t)r);
    return r;
}

rx_ex rx_subst(relax_context *ctx, rx_ex e, const rx_map *map)
{
    walk w = {.ctx = ctx, .subst = map};
    rx_map_init(&w.done, rx_temp(ctx));
    return rewrite(&w, e);
}

rx_ex rx_rewrite(relax_context *ctx, rx_ex e, rx_ex (*f)(void *arg, rx_ex e), void *arg)
{
    walk w = {.ctx = ctx, .f = f, .arg = arg};
    rx_map_init(&w.done, rx_temp(ctx));
    return rewrite(&w, e);
}

static void visit(walk *w, rx_ex e)
{
    if (rx_map_has(&w->done, RX_KEY(e))) return;
    for (uint32_t i = 0; i < e->nargs; i++) visit(w, e->a[i]);
    rx_map_put(&w->done, RX_KEY(e), NULL);
    w->see(w->arg, e);
}

void rx_visit(relax_context *ctx, rx_ex e, void (*f)(void *arg, rx_ex e), void *arg)
{
    walk w = {.ctx = ctx, .see = f, .arg = arg};
    rx_map_init(&w.done, rx_temp(ctx));
    visit(&w, e);
}

static bool uses(walk *w, rx_ex e, rx_ex sym)
{
    if (e == sym) return true;
    if (!e->nargs || !(e->flags & RX_EX_HAS_SYM) || rx_map_has(&w->done, RX_KEY(e))) return false;
    for (uint32_t i = 0; i < e->nargs; i++)
        if (uses(w, e->a[i], sym)) return true;
    rx_map_put(&w->done, RX_KEY(e), NULL);
    return false;
}

bool rx_uses(relax_context *ctx, rx_ex e, rx_ex sym)
{
    walk w = {.ctx = ctx};
    rx_map_init(&w.done, rx_temp(ctx));
    return uses(&w, e, sym);
}

/* ---- evaluation ---- */
typedef struct eval {
    const rx_map *env;
    rx_map *done;                      /* NULL for small expressions; else node -> int64_t * */
    rx_arena *a;
} eval;

static rx_evalres value(eval *v, rx_ex e, int64_t *out);

static rx_evalres apply(eval *v, rx_ex e, int64_t *out)
{
    int64_t x, y;
    rx_evalres r;
    if (e->op == RX_EX_SELECT) {
        if ((r = value(v, e->a[0], &x))) return r;
        return value(v, e->a[x ? 1 : 2], out);
    }
    if ((r = value(v, e->a[0], &x))) return r;
    if (e->op == RX_EX_NOT) return *out = !x, RX_EVAL_OK;
    if (e->op == RX_EX_CALL) {
        if (x == INT64_MIN) return RX_EVAL_OVERFLOW;
        return *out = x < 0 ? -x : x, RX_EVAL_OK;
    }
    if ((r = value(v, e->a[1], &y))) return r;
    if (rx_int_op(e->op, x, y, out)) return RX_EVAL_OK;
    bool division =
        e->op == RX_EX_FLOORDIV || e->op == RX_EX_FLOORMOD || e->op == RX_EX_TRUNCDIV || e->op == RX_EX_TRUNCMOD;
    return division && y == 0 ? RX_EVAL_DIV_ZERO : RX_EVAL_OVERFLOW;
}

static rx_evalres value(eval *v, rx_ex e, int64_t *out)
{
    if (e->op == RX_EX_INT) return *out = e->u.i, RX_EVAL_OK;
    int64_t *known = e->op == RX_EX_SYM ? rx_map_get(v->env, RX_KEY(e))
                     : v->done          ? rx_map_get(v->done, RX_KEY(e))
                                        : NULL;
    if (known) return *out = *known, RX_EVAL_OK;
    if (e->op == RX_EX_SYM) return RX_EVAL_UNBOUND;
    rx_evalres r = apply(v, e, out);
    if (!r && v->done) rx_map_put(v->done, RX_KEY(e), rx_arena_dup(v->a, out, sizeof *out));
    return r;
}

rx_evalres rx_eval(relax_context *ctx, rx_ex e, const rx_map *env, int64_t *out)
{
    eval v = {.env = env};
    rx_map done;
    if (!rx_is_index(e)) return RX_EVAL_DATA;
    if (e->size > 256) {
        v.a = rx_temp(ctx);
        rx_map_init(&done, v.a);
        v.done = &done;
    }
    return value(&v, e, out);
}
