/* match.c: checking values against annotations and learning symbols from them.
 *
 * A dim that is a symbol met for the first time is bound to a slot; one that is computable is compared; one that holds
 * a single unknown symbol linearly (2*n, n+1) is solved, with a check that the solution is whole. What cannot be
 * decided yet waits until the other parameters have been matched. */
#include "codegen/vm/private.h"

typedef struct pending { rx_ex dim; int32_t slot; const char *text; } pending;
typedef struct matcher { vm_emit *e; RX_VEC(pending) wait; const char *name; int32_t arg; } matcher;

/* the one symbol of x that has no value yet; NULL: none or several */
static rx_ex unknown_symbol(vm_emit *e, rx_ex x)
{
    rx_exvec syms = { 0 };
    rx_ex one = NULL;
    rx_free_syms(e->ctx, e->a, x, &syms);
    for (uint32_t i = 0; i < syms.n; i++) {
        if (vm_computable(e, syms.at[i])) continue;
        if (one) return NULL;
        one = syms.at[i];
    }
    return one;
}

static bool solve(vm_emit *e, rx_ex dim, int32_t slot, const char *text)
{
    rx_ex sym = unknown_symbol(e, dim), value, cond;
    if (!sym) return false;
    rx_ex found = rx_sym_new(e->ctx, rx_strf(e->ctx, "%s.dim", rx_sym_of(sym)->name), RELAX_I64);
    rx_sym_of(found)->lo = 0;
    if (!rx_solve(e->ctx, dim, found, sym, &value, &cond)) return false;
    vm_know(e, found, slot);
    if (cond) vm_check(e, cond, RXE_ARG_DIM, text);
    vm_know(e, sym, vm_ref(e, value));
    vm_flush(e);
    return true;
}

static rx_pkgw_dim match_dim(matcher *m, rx_ex dim, const char *text)
{
    vm_emit *e = m->e;
    if (vm_computable(e, dim)) return (rx_pkgw_dim){ RX_DIM_EQ, vm_ref(e, dim) };
    int32_t slot = rx_pkgw_slot(e->w);
    if (rx_sym_of(dim)) vm_know(e, dim, slot);
    else {
        pending p = { dim, slot, text };
        rx_push(e->a, &m->wait, p);
    }
    return (rx_pkgw_dim){ RX_DIM_BIND, slot };
}

static int32_t match_type(matcher *m, rx_ty t)
{
    vm_emit *e = m->e;
    rx_pkgw_dim d[RX_PKG_MAX_NDIM];
    if (t->ndim > RX_PKG_MAX_NDIM)
        rx_fail(e->ctx, RXE_LIMIT, NULL, "%s has rank %d; at most %d", m->name, t->ndim, RX_PKG_MAX_NDIM);
    for (int32_t i = 0; (t->kind == RX_TY_TENSOR || t->kind == RX_TY_SHAPE) && t->known && i < t->ndim; i++) {
        rx_buf b;
        rx_buf_init(&b, e->a);
        rx_print_expr(&b, t->dims[i]);
        d[i] = match_dim(m, t->dims[i], rx_strf(e->ctx, "%s: dim %d must be %s", m->name, i, b.at));
    }
    switch (t->kind) {
    case RX_TY_PRIM:
        if (t->known) d[0] = match_dim(m, t->dims[0], rx_strf(e->ctx, "%s: the value does not fit", m->name));
        return rx_pkgw_type_prim(e->w, t->dtype, t->known ? d : NULL);
    case RX_TY_SHAPE: return rx_pkgw_type_shape(e->w, t->ndim, t->known ? d : NULL);
    case RX_TY_TENSOR: return rx_pkgw_type_tensor(e->w, t->dtype, t->ndim, t->known ? d : NULL);
    case RX_TY_TUPLE: {
        int32_t *n = RX_NEWN(e->a, int32_t, t->nelems + 1);
        for (uint32_t i = 0; i < t->nelems; i++) n[i] = match_type(m, t->elems[i]);
        return rx_pkgw_type_tuple(e->w, (int32_t)t->nelems, n);
    }
    default: return vm_type(e, t);
    }
}

/* what waits is solved or compared; an error if some is left */
static void settle(matcher *m)
{
    vm_emit *e = m->e;
    for (bool moved = true; moved;) {
        moved = false;
        uint32_t left = 0;
        for (uint32_t i = 0; i < m->wait.n; i++) {
            pending p = m->wait.at[i];
            if (vm_computable(e, p.dim)) {
                rx_ex found = rx_sym_new(e->ctx, "found", RELAX_I64);
                vm_know(e, found, p.slot);
                int32_t want = vm_ref(e, p.dim), ok = rx_pkgw_slot(e->w);
                int32_t at = rx_pkgw_shape(e->w, RX_SH_EQ, ok, p.slot, want, 0);
                if (!e->eval_count++) e->eval_first = at;
                vm_flush(e);
                rx_pkgw_op(e->w, RX_BC_CHECK, ok, (int)RXE_ARG_DIM, rx_pkgw_str(e->w, p.text), p.slot, want);
                moved = true;
            } else if (solve(e, p.dim, p.slot, p.text)) moved = true;
            else m->wait.at[left++] = p;
        }
        m->wait.n = left;
    }
    if (m->wait.n) {
        rx_where w = { .function = e->f->name };
        rx_fail_hint(e->ctx, RXE_UNDEF_SYM, &w, "let a parameter have the symbol as a dimension of its own",
                     "%s: its symbols cannot be found from the arguments", m->wait.at[0].text);
    }
}

/* ---- bounds ---- */
/* is sym a dim of its own of a tensor? Then it is not negative. */
static bool bare_dim(rx_ty t, rx_ex sym)
{
    bool found = false;
    if (t->kind == RX_TY_TUPLE)
        for (uint32_t i = 0; i < t->nelems; i++) found |= bare_dim(t->elems[i], sym);
    if (t->kind == RX_TY_TENSOR)
        for (int32_t i = 0; t->known && i < t->ndim; i++) found |= t->dims[i] == sym;
    return found;
}

static bool lower_bound_matters(const rx_sym *s, bool bare) { return s->lo > 0 || (s->lo > INT64_MIN && !bare); }

/* Conditions are built over another symbol in the same slot: over the symbol itself they would be true by its bounds.
 */
static void check_bounds(vm_emit *e, rx_ex sym, bool bare)
{
    relax_context *ctx = e->ctx;
    const rx_sym *s = rx_sym_of(sym);
    rx_ex x = rx_sym_new(ctx, s->name, RELAX_I64);
    vm_know(e, x, vm_ref(e, sym));
    if (lower_bound_matters(s, bare))
        vm_check(e, rx_le(ctx, rx_int(ctx, s->lo), x), RXE_BOUND_EXCEEDED,
                 rx_strf(ctx, "%s must be at least %lld", s->name, (long long)s->lo));
    if (s->hi < INT64_MAX)
        vm_check(e, rx_le(ctx, x, rx_int(ctx, s->hi)), RXE_BOUND_EXCEEDED,
                 rx_strf(ctx, "%s must be at most %lld", s->name, (long long)s->hi));
    if (s->divisor > 1)
        vm_check(e, rx_eq(ctx, rx_modi(ctx, x, s->divisor), rx_int(ctx, 0)), RXE_BOUND_EXCEEDED,
                 rx_strf(ctx, "%s must be a multiple of %lld", s->name, (long long)s->divisor));
}

void vm_match(vm_emit *e, int32_t reg, rx_ty t, int32_t arg, const char *name)
{
    matcher m = { e, { 0 }, name, arg };
    rx_exvec syms = { 0 };
    rx_ty_free_syms(e->ctx, e->a, t, &syms);
    bool *known = RX_NEWN(e->a, bool, syms.n + 1);
    for (uint32_t i = 0; i < syms.n; i++) known[i] = vm_computable(e, syms.at[i]);
    int32_t type = match_type(&m, t);
    vm_flush(e);
    rx_pkgw_op(e->w, RX_BC_MATCH, reg, type, (int)arg, rx_pkgw_str(e->w, name));
    settle(&m);
    for (uint32_t i = 0; i < syms.n; i++)      /* what it has defined */
        if (!known[i]) check_bounds(e, syms.at[i], bare_dim(t, syms.at[i]));
}

/* where a symbol's value comes from, for messages */
static void origin_of(relax_function *f, rx_ex sym, int32_t *param, int32_t *dim)
{
    for (uint32_t i = 0; i < f->nparams; i++) {
        rx_ty t = f->params[i]->type;
        for (int32_t k = 0; t->known && k < (t->kind == RX_TY_PRIM ? 1 : t->ndim); k++)
            if (t->dims[k] == sym) {
                *param = (int32_t)i;
                *dim = k;
                return;
            }
    }
    *param = *dim = -1;
}

static void symbol(vm_emit *e, rx_ex s)
{
    rx_sym *d = rx_sym_of(s);
    int32_t param, dim;
    origin_of(e->f, s, &param, &dim);
    int32_t y = rx_pkgw_sym(e->w, d->name, vm_ref(e, s), d->lo, d->hi, d->divisor, param, dim);
    bool bare = false;
    for (uint32_t i = 0; i < e->f->nparams; i++) bare |= bare_dim(e->f->params[i]->type, s);
    if (lower_bound_matters(d, bare) || d->hi < INT64_MAX || d->divisor > 1) rx_pkgw_op(e->w, RX_BC_BOUND, y);
}

static void uses_arena(void *arg, relax_value *v)
{
    if (v->kind == RX_V_ALLOC && v->u.alloc.arena) *(bool *)arg = true;
}

void vm_entry(vm_emit *e)
{
    relax_function *f = e->f;
    const bool *written = rx_map_get(&e->writes, RX_KEY(f));
    int64_t inputs = rx_attr_int(&f->attrs, "num_inputs", f->nparams);
    for (uint32_t i = 0; i < f->nparams; i++) {
        relax_value *p = f->params[i];
        const char *text = vm_text(e, p->type);
        int32_t weight = i >= inputs ? rx_pkgw_weight(e->w, p->name, text) : -1;
        rx_pkgw_param(e->w, p->name, text, written[i] ? RX_PARAM_WRITTEN : 0, weight);
        rx_map_put(&e->regs, RX_KEY(p), (void *)(intptr_t)(i + 1));
    }
    matcher m = { e, { 0 }, NULL, 0 };
    for (uint32_t i = 0; i < f->nparams; i++) {
        m.name = f->params[i]->name;
        m.arg = (int32_t)i;
        int32_t type = match_type(&m, f->params[i]->type);
        vm_flush(e);
        rx_pkgw_op(e->w, RX_BC_MATCH, (int)i, type, (int)i, rx_pkgw_str(e->w, m.name));
    }
    settle(&m);
    for (uint32_t i = 0; i < f->syms.n; i++)
        if (vm_computable(e, f->syms.at[i])) {
            symbol(e, f->syms.at[i]);
            rx_map_put(&e->entry, RX_KEY(f->syms.at[i]), (void *)f->syms.at[i]);
        }
    for (uint32_t i = 0; i < f->fact_list.n; i++)
        if (vm_computable(e, f->fact_list.at[i])) vm_check(e, f->fact_list.at[i], RXE_BOUND_EXCEEDED, NULL);
    bool arena = false;                /* also one of no bytes, when its tensors have no elements */
    rx_fn_visit(f, uses_arena, &arena);
    if (arena) {
        int32_t s = vm_ref(e, f->arena_bytes);
        vm_flush(e);
        rx_pkgw_op(e->w, RX_BC_FRAME, s);
    }
}
