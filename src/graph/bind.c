/* bind.c: symbols across a call: what a callee's symbols stand for in the caller, and what must hold for that.
 *
 * In: annotations of parameters and arguments. Out: values of the callee's symbols and obligations, i.e. conditions
 * over the caller's symbols that were not proved and are checked at run time. A symbol is bound by the first dim that
 * is the symbol alone; then by dims that are linear in one unbound symbol (2*n, n + 1); all dims are compared at last.
 * Symbols that no argument determines stay unbound: the callee checks them at its entry.
 *
 * Trap: in a recursive call the callee's symbols are the caller's, so they are renamed before the matching. */
#include "graph/graph.h"

/* --- obligations --- */

static void oblige(relax_function *f, rx_exvec *checks, rx_ex cond)
{
    for (uint32_t i = 0; i < checks->n; i++)
        if (checks->at[i] == cond)
            return;
    rx_push(&f->mod->arena, checks, cond);
}

void rx_require(relax_function *f, rx_exvec *checks, rx_ex cond, const char *what)
{
    relax_context *ctx = f->mod->ctx;
    switch (rx_prove(ctx, f->facts, cond, NULL)) {
    case RX_TRUE:
        return;
    case RX_UNKNOWN:
        oblige(f, checks, cond);
        return;
    case RX_FALSE:
        break;
    }
    rx_buf b;
    rx_buf_init(&b, rx_scratch(&ctx->heap));
    rx_print_expr(&b, cond);
    rx_where w = {.function = f->name};
    if (cond->op == RX_EX_INT)
        rx_fail(ctx, RXE_SHAPE, &w, "%s", what);
    rx_fail(ctx, RXE_SHAPE, &w, "%s: %s is never true", what, b.at);
}

void rx_require_eq(relax_function *f, rx_exvec *checks, rx_ex a, rx_ex b, const char *what)
{
    relax_context *ctx = f->mod->ctx;
    if (a == b)
        return;
    switch (rx_prove_eq(ctx, f->facts, a, b)) {
    case RX_TRUE:
        return;
    case RX_UNKNOWN:
        oblige(f, checks, rx_eq(ctx, a, b));
        return;
    case RX_FALSE:
        break;
    }
    rx_buf t;
    rx_buf_init(&t, rx_scratch(&ctx->heap));
    rx_print_expr(&t, a);
    rx_puts(&t, " and ");
    rx_print_expr(&t, b);
    rx_where w = {.function = f->name};
    rx_fail(ctx, RXE_SHAPE, &w, "%s: %s cannot be equal", what, t.at);
}

/* --- matching parameters with arguments --- */

typedef struct pair { rx_ex p, a; const char *what; bool solved; } pair;
typedef struct matcher {
    relax_context *ctx;
    relax_function *f;
    rx_arena *a;
    RX_VEC(pair) pairs;
    rx_map *binding;
    rx_exvec *checks;
} matcher;

RX_NORETURN static void mismatch(matcher *m, enum rx_err e, const char *what, rx_ty p, rx_ty a)
{
    rx_buf b;
    rx_buf_init(&b, m->a);
    rx_puts(&b, "expected ");
    rx_print_type(&b, p);
    rx_puts(&b, ", found ");
    rx_print_type(&b, a);
    rx_where w = {.function = m->f->name};
    rx_fail(m->ctx, e, &w, "%s: %s", what, b.at);
}

static void add_dims(matcher *m, rx_ty p, rx_ty a, const char *what)
{
    if (p->kind != RX_TY_PRIM && p->ndim >= 0 && a->ndim >= 0 && p->ndim != a->ndim)
        mismatch(m, RXE_RANK, what, p, a);
    if (!p->known || !a->known)
        return;
    for (int32_t i = 0; i < p->ndim; i++) {
        pair x = {p->dims[i], a->dims[i], p->kind == RX_TY_PRIM ? what : rx_strf(m->ctx, "%s, dim %d", what, i), false};
        rx_push(m->a, &m->pairs, x);
    }
}

static void add_types(matcher *m, rx_ty p, rx_ty a, const char *what)
{
    if (p->kind == RX_TY_OBJECT || a->kind == RX_TY_OBJECT)
        return;
    if (p->kind != a->kind)
        mismatch(m, RXE_TYPE_KIND, what, p, a);
    if (p->dtype != a->dtype && p->dtype != RELAX_DTYPE_UNKNOWN && a->dtype != RELAX_DTYPE_UNKNOWN)
        mismatch(m, RXE_DTYPE, what, p, a);
    switch (p->kind) {
    case RX_TY_OBJECT:
        break;
    case RX_TY_PRIM:
    case RX_TY_SHAPE:
    case RX_TY_TENSOR:
        add_dims(m, p, a, what);
        break;
    case RX_TY_TUPLE:
        if (p->nelems != a->nelems)
            mismatch(m, RXE_TYPE_KIND, what, p, a);
        for (uint32_t i = 0; i < p->nelems; i++)
            add_types(m, p->elems[i], a->elems[i], rx_strf(m->ctx, "%s, field %u", what, i));
        break;
    case RX_TY_FUNC:
        if (rx_ty_subtype(m->ctx, m->f->facts, a, p) == RX_FALSE)
            mismatch(m, RXE_TYPE_KIND, what, p, a);
        break;
    }
}

static void bind_bare(matcher *m)
{
    for (uint32_t i = 0; i < m->pairs.n; i++) {
        pair *x = &m->pairs.at[i];
        if (rx_sym_of(x->p) && !rx_map_has(m->binding, RX_KEY(x->p)))
            rx_map_put(m->binding, RX_KEY(x->p), (void *)x->a);
    }
}

/* the symbols of e that are not bound yet: their number, and the first */
static uint32_t unbound(matcher *m, rx_ex e, rx_ex *first)
{
    rx_exvec v = {0};
    uint32_t n = 0;
    rx_free_syms(m->ctx, m->a, e, &v);
    for (uint32_t i = 0; i < v.n; i++)
        if (!rx_map_has(m->binding, RX_KEY(v.at[i])) && n++ == 0)
            *first = v.at[i];
    return n;
}

static void bind_linear(matcher *m)
{
    for (bool again = true; again;) {
        again = false;
        for (uint32_t i = 0; i < m->pairs.n; i++) {
            pair *x = &m->pairs.at[i];
            rx_ex sym = NULL, value, cond;
            if (unbound(m, x->p, &sym) != 1)
                continue;
            if (!rx_solve(m->ctx, rx_subst(m->ctx, x->p, m->binding), x->a, sym, &value, &cond))
                continue;
            rx_map_put(m->binding, RX_KEY(sym), (void *)value);
            x->solved = true;
            if (cond)
                rx_require(m->f, m->checks, cond, rx_strf(m->ctx, "%s has no solution", x->what));
            again = true;
        }
    }
}

static void compare(matcher *m)
{
    for (uint32_t i = 0; i < m->pairs.n; i++) {
        pair *x = &m->pairs.at[i];
        rx_ex sym = NULL;
        if (x->solved || unbound(m, x->p, &sym))
            continue;
        rx_ex p = rx_subst(m->ctx, x->p, m->binding);
        if (p->dtype == RELAX_BOOL)
            rx_require(m->f, m->checks, rx_eq(m->ctx, p, x->a), x->what);
        else
            rx_require_eq(m->f, m->checks, p, x->a, x->what);
    }
}

/* the declared bounds of the bound symbols hold for their values */
static void check_bounds(relax_function *f, const rx_map *binding, rx_exvec *checks)
{
    relax_context *ctx = f->mod->ctx;
    for (uint32_t i = 0; i < binding->n; i++) {
        rx_ex key = (rx_ex)(uintptr_t)binding->e[i].key, v = binding->e[i].val;
        const rx_sym *s = rx_sym_of(key);
        if (s->lo != INT64_MIN)
            rx_require(f, checks, rx_le(ctx, rx_int(ctx, s->lo), v), rx_strf(ctx, "the lower bound of %s", s->name));
        if (s->hi != INT64_MAX)
            rx_require(f, checks, rx_le(ctx, v, rx_int(ctx, s->hi)), rx_strf(ctx, "the upper bound of %s", s->name));
        if (s->divisor > 1)
            rx_require(f, checks, rx_eq(ctx, rx_modi(ctx, v, s->divisor), rx_int(ctx, 0)),
                       rx_strf(ctx, "the divisor of %s", s->name));
    }
}

/* Do parameters and arguments share symbols (a recursive call)? Then fresh ones stand for the parameters'; back: fresh
 * -> own. */
static rx_ty *rename_own(matcher *m, rx_ty *params, rx_ty *args, uint32_t n, rx_map *back)
{
    rx_exvec ps = {0}, as = {0};
    for (uint32_t i = 0; i < n; i++) {
        rx_ty_free_syms(m->ctx, m->a, params[i], &ps);
        rx_ty_free_syms(m->ctx, m->a, args[i], &as);
    }
    bool shared = false;
    for (uint32_t i = 0; i < ps.n; i++)
        for (uint32_t k = 0; k < as.n; k++)
            shared |= ps.at[i] == as.at[k];
    if (!shared)
        return params;
    rx_map names;
    rx_map_init(&names, m->a);
    for (uint32_t i = 0; i < ps.n; i++) {
        const rx_sym *s = rx_sym_of(ps.at[i]);
        rx_ex fresh = rx_sym_new(m->ctx, s->name, RELAX_I64);
        rx_sym *d = rx_sym_of(fresh);
        d->lo = s->lo;
        d->hi = s->hi;
        d->divisor = s->divisor;
        rx_map_put(&names, RX_KEY(ps.at[i]), (void *)fresh);
        rx_map_put(back, RX_KEY(fresh), (void *)ps.at[i]);
    }
    rx_ty *out = RX_NEWN(m->a, rx_ty, n + 1);
    for (uint32_t i = 0; i < n; i++)
        out[i] = rx_ty_subst(m->ctx, params[i], &names);
    return out;
}

void rx_bind_call(relax_function *f, rx_ty *params, rx_ty *args, uint32_t n, rx_map *binding, rx_exvec *checks)
{
    relax_context *ctx = f->mod->ctx;
    rx_arena *a = rx_scratch(&ctx->heap);
    rx_map local, back;
    rx_map_init(&local, a);
    rx_map_init(&back, a);
    matcher m = {.ctx = ctx, .f = f, .a = a, .binding = &local, .checks = checks};
    params = rename_own(&m, params, args, n, &back);
    for (uint32_t i = 0; i < n; i++)
        add_types(&m, params[i], args[i], rx_strf(ctx, "argument %u", i));
    bind_bare(&m);
    bind_linear(&m);
    compare(&m);
    check_bounds(f, &local, checks);
    for (uint32_t i = 0; i < local.n; i++) {
        rx_ex own = rx_map_get(&back, local.e[i].key);
        rx_map_put(binding, own ? RX_KEY(own) : local.e[i].key, local.e[i].val);
    }
}

/* --- prim funcs --- */

static void add_buffer(matcher *m, const rx_prim *p, uint32_t i, rx_ty t)
{
    const relax_buffer *b = p->params[i];
    const char *what = rx_strf(m->ctx, "%s: buffer %u (%s)", p->name, i, b->name);
    rx_ty want = rx_ty_tensor(m->ctx, b->shape, (int32_t)b->ndim, b->dtype);
    if (t->kind != RX_TY_TENSOR)
        mismatch(m, RXE_TYPE_KIND, what, want, t);
    if (!t->known || t->dtype == RELAX_DTYPE_UNKNOWN)
        mismatch(m, t->dtype == RELAX_DTYPE_UNKNOWN ? RXE_DTYPE : RXE_RANK, what, want, t);
    add_types(m, want, t, what);
}

void rx_bind_prim(relax_function *f, const rx_prim *p, rx_ty *args, uint32_t nargs, rx_ty out, rx_ex *syms,
                  uint32_t nsyms, rx_exvec *values, rx_exvec *checks)
{
    relax_context *ctx = f->mod->ctx;
    rx_arena *a = rx_scratch(&ctx->heap);
    rx_map binding;
    rx_map_init(&binding, a);
    matcher m = {.ctx = ctx, .f = f, .a = a, .binding = &binding, .checks = checks};
    rx_where w = {.function = f->name};
    uint32_t nout = out->kind == RX_TY_TUPLE ? out->nelems : 1;
    if (nargs + nout != p->nparams)
        rx_fail(ctx, RXE_ARITY, &w, "%s has %u buffers; %u arguments and %u outputs are given", p->name, p->nparams,
                nargs, nout);
    if (nsyms != p->nsyms)
        rx_fail(ctx, RXE_ARITY, &w, "%s takes %u symbolic arguments, %u are given", p->name, p->nsyms, nsyms);
    for (uint32_t i = 0; i < nsyms; i++)
        rx_map_put(&binding, RX_KEY(p->syms[i]), (void *)syms[i]);
    for (uint32_t i = 0; i < p->nparams; i++)
        add_buffer(&m, p, i, i < nargs ? args[i] : out->kind == RX_TY_TUPLE ? out->elems[i - nargs] : out);
    bind_bare(&m);
    compare(&m);
    check_bounds(f, &binding, checks);
    for (uint32_t i = 0; i < p->nwhere; i++)
        rx_require(f, checks, rx_subst(ctx, p->where[i], &binding), rx_strf(ctx, "a condition of %s", p->name));
    rx_exvec order = {0};
    rx_prim_symbols(ctx, a, p, &order);
    for (uint32_t i = 0; i < order.n; i++) {
        rx_ex v = rx_map_get(&binding, RX_KEY(order.at[i]));
        if (!v)
            rx_fail(ctx, RXE_UNDEF_SYM, &w, "%s: symbol %s is defined by no buffer", p->name,
                    rx_sym_of(order.at[i])->name);
        if (values)
            rx_push(&f->mod->arena, values, v);
    }
}
