/* match.c: values against annotations at run time: what symbols stand for, and whether everything else agrees.
 *
 * As in deduction: a dim that is an unbound symbol binds it; a dim that can be computed is compared; a dim that is
 * linear in one unbound symbol is solved; the rest waits for the other annotations. */
#include "interp/impl.h"

RX_NORETURN RX_PRINTF(3, 4) static void fail(const relax_context *ctx, const relax_function *f, const char *fmt, ...)
{
    relax_context *c = (relax_context *)ctx;
    rx_buf b;
    rx_buf_init(&b, rx_scratch(&c->heap));
    va_list ap;
    va_start(ap, fmt);
    rx_putv(&b, fmt, ap);
    va_end(ap);
    rx_where w = {.function = f ? f->name : NULL};
    rx_fail(c, RXE_INTERNAL, &w, "%s", b.at);
}

bool rx_env_try(relax_context *ctx, const rx_map *env, rx_ex e, int64_t *v)
{
    return rx_eval(ctx, e, env, v) == RX_EVAL_OK;
}

int64_t rx_env_int(relax_context *ctx, const relax_function *f, const rx_map *env, rx_ex e)
{
    int64_t v = 0;
    rx_where w = {.function = f ? f->name : NULL};
    switch (rx_eval(ctx, e, env, &v)) {
    case RX_EVAL_OK:
        return v;
    case RX_EVAL_OVERFLOW:
        rx_fail(ctx, RXE_LIMIT, &w, "a dimension does not fit 64 bits");
    case RX_EVAL_DIV_ZERO:
        rx_fail(ctx, RXE_DIV_ZERO, &w, "a dimension divides by zero");
    case RX_EVAL_UNBOUND:
    case RX_EVAL_DATA:
        break;
    }
    rx_buf b;
    rx_buf_init(&b, rx_scratch(&ctx->heap));
    rx_print_expr(&b, e);
    fail(ctx, f, "the value of %s is not known", b.at);
}

rx_ival *rx_env_new(rx_interp *in, const relax_function *f, const rx_map *env, rx_ty t)
{
    if (t->kind == RX_TY_TUPLE) {
        rx_ival **at = RX_NEWN(in->a, rx_ival *, (size_t)t->nelems + 1);
        for (uint32_t i = 0; i < t->nelems; i++)
            at[i] = rx_env_new(in, f, env, t->elems[i]);
        return rx_ival_tuple(in->a, at, t->nelems);
    }
    int64_t d[RX_MAX_RANK];
    if (t->kind != RX_TY_TENSOR || !t->known || t->dtype == RELAX_DTYPE_UNKNOWN)
        fail(in->ctx, f, "memory of unknown size is asked for");
    for (int32_t i = 0; i < t->ndim; i++)
        d[i] = rx_env_int(in->ctx, f, env, t->dims[i]);
    return rx_ival_tensor(in->ctx, in->a, t->dtype, d, t->ndim, NULL);
}

/* --- kinds, dtypes, ranks --- */

RX_NORETURN static void refuse(rx_match *m, enum rx_err e, const char *what, rx_ty t, const rx_ival *v)
{
    rx_where w = {.function = m->f ? m->f->name : NULL};
    rx_buf b;
    rx_buf_init(&b, m->a);
    rx_puts(&b, "expected ");
    rx_print_type(&b, t);
    rx_puts(&b, ", found ");
    rx_print_type(&b, rx_ival_type(m->ctx, v));
    rx_fail(m->ctx, e, &w, "%s: %s", what, b.at);
}

static void add_dims(rx_match *m, rx_ty t, const rx_ival *v, const char *what)
{
    if (t->ndim >= 0 && t->ndim != v->ndim)
        refuse(m, RXE_ARG_RANK, what, t, v);
    for (int32_t i = 0; t->known && i < t->ndim; i++) {
        struct rx_match_dim d = {t->dims[i], v->dims[i], rx_strf(m->ctx, "%s: dim %d", what, i)};
        rx_push(m->a, &m->wait, d);
    }
}

static const rx_ikind kind_of[] = {
    [RX_TY_PRIM] = RX_I_PRIM, [RX_TY_SHAPE] = RX_I_SHAPE, [RX_TY_TENSOR] = RX_I_TENSOR,
    [RX_TY_TUPLE] = RX_I_TUPLE, [RX_TY_FUNC] = RX_I_FUNC,
};

void rx_match_value(rx_match *m, rx_ty t, const rx_ival *v, const char *what)
{
    if (t->kind == RX_TY_OBJECT)
        return;
    if (v->kind != kind_of[t->kind])
        refuse(m, RXE_ARG_KIND, what, t, v);
    if (t->dtype != RELAX_DTYPE_UNKNOWN && t->dtype != v->dtype)
        refuse(m, RXE_ARG_DTYPE, what, t, v);
    switch (t->kind) {
    case RX_TY_OBJECT:
    case RX_TY_FUNC:
        break;
    case RX_TY_PRIM:
        if (t->known) {
            struct rx_match_dim d = {t->dims[0], rx_load_i64(v->dtype, &v->bits), what};
            rx_push(m->a, &m->wait, d);
        }
        break;
    case RX_TY_SHAPE:
    case RX_TY_TENSOR:
        add_dims(m, t, v, what);
        break;
    case RX_TY_TUPLE:
        if (t->nelems != v->n)
            refuse(m, RXE_ARG_KIND, what, t, v);
        for (uint32_t i = 0; i < t->nelems; i++)
            rx_match_value(m, t->elems[i], v->at[i], rx_strf(m->ctx, "%s[%u]", what, i));
        break;
    }
}

/* --- dims --- */

static void bind(rx_match *m, rx_ex sym, int64_t v)
{
    int64_t *p = RX_NEW(m->a, int64_t);
    *p = v;
    rx_map_put(m->env, RX_KEY(sym), p);
}

static void check_bounds(rx_match *m, rx_ex sym, int64_t v, const char *what)
{
    const rx_sym *s = rx_sym_of(sym);
    rx_where w = {.function = m->f ? m->f->name : NULL};
    if (v < s->lo || v > s->hi)
        rx_fail(m->ctx, RXE_BOUND_EXCEEDED, &w, "%s: %s is %lld, allowed are %lld to %lld", what, s->name, (long long)v,
                (long long)s->lo, (long long)s->hi);
    if (s->divisor > 1 && v % s->divisor)
        rx_fail(m->ctx, RXE_BOUND_EXCEEDED, &w, "%s: %s is %lld, not a multiple of %lld", what, s->name, (long long)v,
                (long long)s->divisor);
}

static bool solve(rx_match *m, const struct rx_match_dim *d)
{
    rx_exvec syms = {0};
    rx_ex open = NULL, value = NULL, cond = NULL;
    int64_t v, ok = 1;
    rx_free_syms(m->ctx, m->a, d->e, &syms);
    for (uint32_t i = 0; i < syms.n; i++) {
        if (rx_map_has(m->env, RX_KEY(syms.at[i])))
            continue;
        if (open)
            return false;
        open = syms.at[i];
    }
    if (!open || !rx_solve(m->ctx, d->e, rx_int(m->ctx, d->value), open, &value, &cond))
        return false;
    rx_where w = {.function = m->f ? m->f->name : NULL};
    if ((cond && !rx_env_try(m->ctx, m->env, cond, &ok)) || !ok || !rx_env_try(m->ctx, m->env, value, &v))
        rx_fail(m->ctx, RXE_ARG_DIM, &w, "%s is %lld, which no value of %s gives", d->what, (long long)d->value,
                rx_sym_of(open)->name);
    bind(m, open, v);
    check_bounds(m, open, v, d->what);
    return true;
}

static void compare(rx_match *m, const struct rx_match_dim *d, int64_t v)
{
    rx_where w = {.function = m->f ? m->f->name : NULL};
    if (v == d->value)
        return;
    rx_buf b;
    rx_buf_init(&b, m->a);
    rx_print_expr(&b, d->e);
    rx_fail(m->ctx, RXE_ARG_DIM, &w, "%s is %lld, expected %lld (%s)", d->what, (long long)d->value, (long long)v,
            b.at);
}

void rx_match_end(rx_match *m)
{
    bool moved = true;
    while (m->wait.n) {
        uint32_t kept = 0, n = m->wait.n;
        bool may_solve = !moved;
        moved = false;
        for (uint32_t i = 0; i < n; i++) {
            struct rx_match_dim d = m->wait.at[i];
            int64_t v;
            if (rx_env_try(m->ctx, m->env, d.e, &v)) {
                compare(m, &d, v);
                moved = true;
            } else if (rx_sym_of(d.e)) {
                bind(m, d.e, d.value);
                check_bounds(m, d.e, d.value, d.what);
                moved = true;
            } else if (may_solve && !moved && solve(m, &d)) {
                moved = true;
            } else {
                m->wait.at[kept++] = d;
            }
        }
        m->wait.n = kept;
        if (!moved && may_solve)
            fail(m->ctx, m->f, "%s defines no symbol", m->wait.at[0].what);
    }
}
