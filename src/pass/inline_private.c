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
    default: {                         /* constants, functions, strings: a leaf of the caller with the same contents */
        relax_value *leaf = rx_arena_dup(&c->r->m->arena, v, sizeof *v);
        leaf->fn = NULL;
        leaf->id = c->r->m->next_id++;
        return leaf;
    }
    }
}

/* a symbol of the caller for one of the callee that the call does not bind, with its bounds */
static void fresh_symbol(copier *c, rx_ex sym)
{
    if (rx_map_has(&c->syms, RX_KEY(sym))) return;
    const rx_sym *s = rx_sym_of(sym);
    rx_ex own = rx_fn_sym_fresh(c->to, s->name);
    rx_sym *d = rx_sym_of(own);
    d->lo = s->lo;
    d->hi = s->hi;
    d->divisor = s->divisor;
    rx_map_put(&c->syms, RX_KEY(sym), (void *)own);
}

static rx_ty own_type(copier *c, rx_ty t)
{
    rx_exvec syms = { 0 };
    rx_ty_free_syms(c->r->ctx, c->r->a, t, &syms);
    for (uint32_t i = 0; i < syms.n; i++) fresh_symbol(c, syms.at[i]);
    return rx_ty_subst(c->r->ctx, t, &c->syms);
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
    case RX_V_MATCH_CAST: return rx_emit_match_cast(b, a[0], own_type(c, v->type)); /* new symbols are new here too */
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

/* conditions of v that its copy w does not have by deduction */
static void copy_checks(copier *c, const relax_value *v, relax_value *w)
{
    for (uint32_t i = 0; i < v->nchecks; i++) {
        rx_ex cond = rx_subst(c->r->ctx, v->checks[i], &c->syms);
        if (rx_prove(c->r->ctx, c->to->facts, cond, NULL) != RX_TRUE) rx_pass_oblige(w, &cond, 1);
    }
}

static relax_value *copy_body(copier *c, rx_body *from, rx_gb *b)
{
    for (rx_iblock *bl = from->first; bl; bl = bl->next)
        for (relax_value *v = bl->first; v; v = v->next) {
            relax_value *w = copy_binding(c, v, b);
            w->name = v->name;
            w->output = true;
            copy_checks(c, v, w);
            rx_map_put(&c->values, RX_KEY(v), w);
        }
    return mapped(c, from->result);
}

static bool has_if(const relax_function *g)
{
    for (const rx_iblock *bl = g->body.first; bl; bl = bl->next)
        for (const relax_value *v = bl->first; v; v = v->next)
            if (v->kind == RX_V_IF) return true;
    return false;
}

/* parameters stand for arguments; the call's obligations on the first cast, which is made if need be */
static void take_arguments(copier *c, relax_value *call, relax_function *g, rx_gb *b)
{
    relax_value *first = NULL;
    for (uint32_t i = 0; i < g->nparams; i++) {
        relax_value *x = call->args[i + 1];
        rx_ty want = own_type(c, g->params[i]->type);
        bool fits = rx_ty_subtype(c->r->ctx, c->to->facts, x->type, want) == RX_TRUE;
        if (!fits || (call->nchecks && !first && i + 1 == g->nparams)) {
            x = rx_emit_match_cast(b, x, fits ? x->type : want);
            x->name = g->params[i]->name;
            if (!first) rx_pass_oblige(x, call->checks, call->nchecks);
            if (!first) first = x;
        }
        rx_map_put(&c->values, RX_KEY(g->params[i]), x);
    }
}

static void inline_call(rx_pass_run *r, relax_function *f, rx_renames *names, relax_value *call)
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
    }
    rx_exvec checks = { 0 };           /* as those of the call */
    rx_bind_call(f, pt, at, n, &c.syms, &checks);
    if (call->block->dataflow && has_if(g)) call->block->dataflow = false;
    rx_gb b = rx_gb_before(call);
    take_arguments(&c, call, g, &b);
    rx_pass_rename(names, call, copy_body(&c, &g->body, &b));
    rx_v_remove(call);
}

/* ---- which functions ---- */
typedef struct traits { uint32_t size; bool recursive, lowered; } traits;
typedef struct finder { rx_arena *a; rx_map seen; RX_VEC(relax_function *) todo; traits t; } finder;

static void look(void *arg, relax_value *v)
{
    finder *s = arg;
    s->t.size++;
    s->t.lowered |= v->kind == RX_V_ALLOC || v->kind == RX_V_CALL_DPS;
    for (uint32_t i = 0; i < v->nargs; i++) {
        if (!v->args[i] || v->args[i]->kind != RX_V_FUNC) continue;
        relax_function *g = v->args[i]->u.callee;
        if (g->is_prim || rx_map_has(&s->seen, RX_KEY(g))) continue;
        rx_map_put(&s->seen, RX_KEY(g), g);
        rx_push(s->a, &s->todo, g);
    }
}

static const traits *traits_of(rx_pass_run *r, rx_map *known, relax_function *g)
{
    traits *t = rx_map_get(known, RX_KEY(g));
    if (t) return t;
    finder s = { .a = r->a };
    rx_map_init(&s.seen, r->a);
    rx_fn_visit(g, look, &s);
    t = rx_arena_dup(r->a, &s.t, sizeof s.t);
    for (uint32_t i = 0; i < s.todo.n; i++) rx_fn_visit(s.todo.at[i], look, &s);
    t->recursive = rx_map_has(&s.seen, RX_KEY(g));
    rx_map_put(known, RX_KEY(g), t);
    return t;
}

/* 0: leave the call; else 1 + the number of bindings that come in */
static uint32_t wanted(rx_pass_run *r, rx_map *known, relax_function *f, relax_value *v, int64_t max)
{
    if (v->kind != RX_V_CALL || v->args[0]->kind != RX_V_FUNC) return 0;
    relax_function *g = v->args[0]->u.callee;
    if (!g->is_private || g->is_prim || g == f || g->fact_list.n || v->nargs != g->nparams + 1) return 0;
    if (v->nchecks && !g->nparams) return 0;
    const traits *t = traits_of(r, known, g);
    return t->recursive || t->lowered || t->size > max ? 0 : t->size + 1;
}

static void inline_in(rx_pass_run *r, relax_function *f)
{
    int64_t max = rx_pass_int(r, "max-size", 10000), room = 0;
    rx_pass_own_constants(r, f);
    rx_map known;                      /* of other functions: they do not change meanwhile */
    rx_map_init(&known, r->a);
    if (!rx_mul_ok(max, 10, &room)) room = INT64_MAX;
    for (bool again = true; again;) {
        again = false;
        rx_renames names = rx_pass_renames(r);
        rx_valvec all = rx_pass_bindings(r, f);
        for (uint32_t i = 0; i < all.n; i++) {
            relax_value *v = all.at[i];
            rx_pass_rename_args(&names, v);
            uint32_t size = wanted(r, &known, f, v, max);
            if (!size || size > room) continue;
            room -= size;
            inline_call(r, f, &names, v);
            again = true;
        }
        rx_pass_rename_rest(&names, f);
        if (again) rx_pass_rededuce(f);         /* results may be more precise than the callee's declared one */
    }
}

void rx_pass_inline_private(rx_pass_run *r) { rx_pass_each(r, inline_in); }
