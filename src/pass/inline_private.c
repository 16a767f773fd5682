/* inline_private.c: calls of private graph functions are replaced by the callee's body.
 *
 * The body is emitted again in front of the call with parameters replaced by arguments and the callee's symbols by what
 * the call binds them to, so every annotation is deduced anew in the caller, where it may be more precise. Functions
 * that reach themselves are left alone, as are those above max-size bindings (default 10,000). */
#include "pass/private.h"

typedef struct copier {
    rx_pass_run *r;
    relax_function *to;
    rx_map values;                     /* callee value -> caller value */
    rx_map syms;                       /* callee symbol -> caller expression */
} copier;

static relax_value *mapped(copier *c, relax_value *v)
{
    if (!v) return NULL;
    relax_value *w = rx_map_get(&c->values, RX_KEY(v));
    if (w) return w;
    switch (v->kind) {
    case RX_V_SHAPE: {
        rx_ex *d = RX_NEWN(c->r->a, rx_ex, v->nsyms + 1);
        for (uint32_t i = 0; i < v->nsyms; i++) d[i] = rx_subst(c->r->ctx, v->syms[i], &c->syms);
        return rx_v_shape(c->r->m, d, v->nsyms);
    }
    case RX_V_PRIM: return rx_v_prim(c->r->m, rx_subst(c->r->ctx, v->syms[0], &c->syms));
    default: return v;                 /* constants, functions, strings: the same leaf */
    }
}

static relax_value *copy_body(copier *c, rx_body *from, rx_gb *b);

static relax_value *copy_binding(copier *c, relax_value *v, rx_gb *b)
{
    relax_context *ctx = c->r->ctx;
    relax_value **a = RX_NEWN(c->r->a, relax_value *, v->nargs + 1);
    rx_ex *s = RX_NEWN(c->r->a, rx_ex, v->nsyms + 1);
    for (uint32_t i = 0; i < v->nargs; i++) a[i] = mapped(c, v->args[i]);
    for (uint32_t i = 0; i < v->nsyms; i++) s[i] = rx_subst(ctx, v->syms[i], &c->syms);
    rx_ty out = rx_ty_subst(ctx, v->type, &c->syms);
    switch (v->kind) {
    case RX_V_OP: {
        rx_attr *at = rx_arena_dup(c->r->a, v->attrs.at, v->attrs.n * sizeof *at);
        for (uint32_t i = 0; i < v->attrs.n; i++) {
            if (at[i].kind == RX_A_EXPR) at[i].u.e = rx_subst(ctx, at[i].u.e, &c->syms);
            if (at[i].kind != RX_A_EXPRS) continue;
            rx_ex *e = RX_NEWN(c->r->a, rx_ex, at[i].u.exprs.n + 1);
            for (uint32_t k = 0; k < at[i].u.exprs.n; k++) e[k] = rx_subst(ctx, at[i].u.exprs.at[k], &c->syms);
            at[i].u.exprs.at = e;
        }
        return rx_emit_op(b, v->u.op, a, v->nargs, at, v->attrs.n);
    }
    case RX_V_CALL: return rx_emit_call(b, a[0], a + 1, v->nargs - 1, v->pure);
    case RX_V_CALL_TIR: return rx_emit_call_tir(b, v->u.callee, a, v->nargs, out, s, v->nsyms);
    case RX_V_CALL_TIR_INPLACE:
        return rx_emit_call_tir_inplace(b, v->u.callee, a, v->nargs, out, s, v->nsyms, v->inplace, v->ninplace);
    case RX_V_CALL_DPS_LIB: return rx_emit_call_lib(b, v->ext, a, v->nargs, out, s, v->nsyms);
    case RX_V_CALL_PACKED: return rx_emit_call_packed(b, v->ext, a, v->nargs, out, v->pure);
    case RX_V_TUPLE: return rx_emit_tuple(b, a, v->nargs);
    case RX_V_GET: return rx_emit_get(b, a[0], v->u.index);
    case RX_V_VIEW: return rx_emit_view(b, a[0], out);
    case RX_V_MATCH_CAST: {            /* its new symbols are new in the caller too */
        rx_exvec free = { 0 };
        rx_ty_free_syms(ctx, c->r->a, v->type, &free);
        for (uint32_t i = 0; i < free.n; i++) {
            if (rx_map_has(&c->syms, RX_KEY(free.at[i]))) continue;
            const char *name = rx_sym_of(free.at[i])->name;
            uint32_t k = 0;
            while (rx_map_has(&c->to->symtab, RX_KEY(rx_str(ctx, name))))
                name = rx_strf(ctx, "%s_%u", rx_sym_of(free.at[i])->name, ++k);
            rx_map_put(&c->syms, RX_KEY(free.at[i]), (void *)rx_fn_sym(c->to, name));
        }
        return rx_emit_match_cast(b, a[0], rx_ty_subst(ctx, v->type, &c->syms));
    }
    case RX_V_IF: {
        relax_value *iff = rx_emit_if(b, a[0]);
        rx_gb t = rx_if_then(iff), e = rx_if_else(iff);
        relax_value *rt = copy_body(c, v->u.branch.then, &t);
        relax_value *re = copy_body(c, v->u.branch.other, &e);
        rx_if_end(iff, rt, re);
        return iff;
    }
    default:
        rx_fail(ctx, RXE_STATE, NULL, "inline: %s is lowered already; inline before lower-calls",
                v->name ? v->name : "a binding");
    }
}

static relax_value *copy_body(copier *c, rx_body *from, rx_gb *b)
{
    for (rx_iblock *bl = from->first; bl; bl = bl->next)
        for (relax_value *v = bl->first; v; v = v->next) {
            relax_value *w = copy_binding(c, v, b);
            w->name = v->name;
            w->output = true;
            rx_map_put(&c->values, RX_KEY(v), w);
        }
    return mapped(c, from->result);
}

static void inline_call(rx_pass_run *r, relax_function *f, relax_value *call)
{
    relax_function *g = call->args[0]->u.callee;
    copier c = { r, f, { 0 }, { 0 } };
    rx_map_init(&c.values, r->a);
    rx_map_init(&c.syms, r->a);
    uint32_t n = g->nparams;
    rx_ty *pt = RX_NEWN(r->a, rx_ty, n + 1), *at = RX_NEWN(r->a, rx_ty, n + 1);
    for (uint32_t i = 0; i < n; i++) {
        pt[i] = g->params[i]->type;
        at[i] = call->args[i + 1]->type;
        rx_map_put(&c.values, RX_KEY(g->params[i]), call->args[i + 1]);
    }
    rx_exvec checks = { 0 };
    rx_bind_call(f, pt, at, n, &c.syms, &checks);
    rx_gb b = rx_gb_before(call);
    relax_value *res = copy_body(&c, &g->body, &b);
    if (call->nchecks) {               /* the call's obligations stay, on a cast that says what is known already */
        res = rx_emit_match_cast(&b, res, res->type);
        res->checks = call->checks;
        res->nchecks = call->nchecks;
    }
    res->output = true;
    rx_v_replace(f, call, res);
    rx_v_remove(call);
}

/* ---- which functions ---- */
typedef struct finder { rx_arena *a; rx_map seen; RX_VEC(relax_function *) todo; uint32_t size; } finder;

static void look(void *arg, relax_value *v)
{
    finder *s = arg;
    s->size++;
    for (uint32_t i = 0; i < v->nargs; i++) {
        if (!v->args[i] || v->args[i]->kind != RX_V_FUNC) continue;
        relax_function *g = v->args[i]->u.callee;
        if (g->is_prim || rx_map_has(&s->seen, RX_KEY(g))) continue;
        rx_map_put(&s->seen, RX_KEY(g), g);
        rx_push(s->a, &s->todo, g);
    }
}

static bool wanted(rx_pass_run *r, relax_function *f, relax_value *v)
{
    if (v->kind != RX_V_CALL || v->args[0]->kind != RX_V_FUNC) return false;
    relax_function *g = v->args[0]->u.callee;
    if (!g->is_private || g->is_prim || g == f || g->fact_list.n) return false;
    finder s = { r->a, { 0 }, { 0 }, 0 };
    rx_map_init(&s.seen, r->a);
    rx_fn_visit(g, look, &s);
    if (s.size > rx_pass_int(r, "max-size", 10000)) return false;
    for (uint32_t i = 0; i < s.todo.n; i++)
        if (!s.todo.at[i]->is_prim) rx_fn_visit(s.todo.at[i], look, &s);
    return !rx_map_has(&s.seen, RX_KEY(g));        /* g does not reach itself */
}

static void inline_in(rx_pass_run *r, relax_function *f)
{
    for (bool again = true; again;) {
        again = false;
        rx_valvec all = rx_pass_bindings(r, f);
        for (uint32_t i = 0; i < all.n; i++)
            if (wanted(r, f, all.at[i])) {
                inline_call(r, f, all.at[i]);
                again = true;
            }
    }
}

void rx_pass_inline_private(rx_pass_run *r) { rx_pass_each(r, inline_in); }
