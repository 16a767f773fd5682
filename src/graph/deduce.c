/* deduce.c: the annotation of a binding, from the annotations of its operands, and the obligations it needs.
 *
 * Forward only, linear in the program: the builder calls it once per binding, the verifier again to compare, passes
 * after they changed operands. One function per kind of binding; operators bring their own (op.h). A failure unwinds
 * with a diagnostic. */
#include "graph/op.h"

typedef struct deducer {
    relax_context *ctx;
    relax_function *f;
    relax_value *v;
    rx_exvec *checks;
    rx_arena *a;
} deducer;

static rx_where where(const deducer *d)
{
    return (rx_where){.function = d->f->name, .binding = d->v->name};
}

RX_NORETURN RX_PRINTF(3, 4) static void fail(deducer *d, enum rx_err e, const char *fmt, ...)
{
    rx_buf b;
    rx_buf_init(&b, d->a);
    va_list ap;
    va_start(ap, fmt);
    rx_putv(&b, fmt, ap);
    va_end(ap);
    rx_where w = where(d);
    rx_fail(d->ctx, e, &w, "%s", b.at);
}

static const char *type_text(deducer *d, rx_ty t)
{
    rx_buf b;
    rx_buf_init(&b, d->a);
    rx_print_type(&b, t);
    return b.at;
}

/* annotations of args[from..], which must all be there */
static rx_ty *arg_types(deducer *d, uint32_t from)
{
    relax_value *v = d->v;
    rx_ty *t = RX_NEWN(d->a, rx_ty, v->nargs - from + 1);
    for (uint32_t i = from; i < v->nargs; i++) {
        if (!v->args[i] || !v->args[i]->type)
            fail(d, RXE_UNDEF_VALUE, "argument %u is missing", i - from);
        t[i - from] = v->args[i]->type;
    }
    return t;
}

static void need_args(deducer *d, uint32_t n)
{
    if (d->v->nargs != n)
        fail(d, RXE_ARITY, "takes %u operands, has %u", n, d->v->nargs);
    arg_types(d, 0);
}

static rx_ty deduce_op(deducer *d)
{
    relax_value *v = d->v;
    rx_ty *types = RX_NEWN(d->a, rx_ty, v->nargs + 1);
    for (uint32_t i = 0; i < v->nargs; i++)
        types[i] = v->args[i] ? v->args[i]->type : NULL;
    rx_call c = {.ctx = d->ctx,
                 .f = d->f,
                 .op = v->u.op,
                 .args = v->args,
                 .types = types,
                 .n = v->nargs,
                 .attrs = v->attrs,
                 .checks = d->checks,
                 .a = d->a};
    return rx_op_deduce(&c);
}

/* --- calls of functions --- */

static bool bound_by(void *arg, rx_ex sym)
{
    return rx_map_has(arg, RX_KEY(sym));
}

/* declared facts of a callee that is known */
static void callee_facts(deducer *d, const relax_function *callee, const rx_map *binding)
{
    for (uint32_t i = 0; i < callee->fact_list.n; i++) {
        rx_exvec syms = {0};
        rx_ex cond = callee->fact_list.at[i];
        bool all = true;
        rx_free_syms(d->ctx, d->a, cond, &syms);
        for (uint32_t k = 0; k < syms.n; k++)
            all &= rx_map_has(binding, RX_KEY(syms.at[k]));
        if (all)
            rx_require(d->f, d->checks, rx_subst(d->ctx, cond, binding),
                       rx_strf(d->ctx, "a condition of %s", callee->name));
    }
}

static rx_ty deduce_call(deducer *d)
{
    relax_value *v = d->v;
    if (v->nargs < 1 || !v->args[0] || !v->args[0]->type || v->args[0]->type->kind != RX_TY_FUNC)
        fail(d, RXE_TYPE_KIND, "the callee is not a function");
    const relax_function *callee = v->args[0]->kind == RX_V_FUNC ? v->args[0]->u.callee : NULL;
    rx_ty ft = v->args[0]->type, *args = arg_types(d, 1), ret = ft->ret;
    uint32_t n = v->nargs - 1, np = callee ? callee->nparams : ft->nelems;
    if (callee && callee->is_prim)
        fail(d, RXE_TYPE_KIND, "%s is a tensor program: use call_tir", callee->name);
    if (v->pure && !(callee ? callee->pure : !ft->opaque && ft->pure))
        fail(d, RXE_PURITY, "the callee is impure");
    if (!callee && ft->opaque)
        return rx_ty_object(d->ctx);
    if (n != np)
        fail(d, RXE_ARITY, "the function %s takes %u arguments, %u are given", callee ? callee->name : "value", np, n);
    rx_ty *params = RX_NEWN(d->a, rx_ty, n + 1);
    for (uint32_t i = 0; i < n; i++)
        params[i] = callee ? callee->params[i]->type : ft->elems[i];
    if (callee)
        ret = callee->ret;
    if (!ret)
        fail(d, RXE_STATE, "the result of %s is not known yet: declare it, or finish the function first", callee->name);
    rx_map binding;
    rx_map_init(&binding, d->a);
    rx_bind_call(d->f, params, args, n, &binding, d->checks);
    if (callee)
        callee_facts(d, callee, &binding);
    return rx_ty_subst(d->ctx, rx_ty_erase(d->ctx, ret, bound_by, &binding), &binding);
}

/* --- destination-passing calls --- */

static void check_out(deducer *d, rx_ty out)
{
    if (!out)
        fail(d, RXE_TYPE_KIND, "the annotation of the result is missing");
    uint32_t n = out->kind == RX_TY_TUPLE ? out->nelems : 1;
    for (uint32_t i = 0; i < n; i++) {
        rx_ty t = out->kind == RX_TY_TUPLE ? out->elems[i] : out;
        if (!rx_ty_is_tensor(t, -1, RELAX_DTYPE_UNKNOWN) || t->dtype == RELAX_DTYPE_UNKNOWN)
            fail(d, RXE_TYPE_KIND, "the result must be tensors of known shape and data type, not %s", type_text(d, t));
    }
}

static void check_prim(deducer *d)
{
    const relax_function *p = d->v->u.callee;
    if (!p || !p->is_prim)
        fail(d, RXE_TYPE_KIND, "%s is no tensor program", p ? p->name : "the callee");
}

static rx_ty deduce_tir(deducer *d)
{
    relax_value *v = d->v;
    rx_ty *args = arg_types(d, 0);
    check_prim(d);
    check_out(d, v->type);
    rx_bind_prim(d->f, v->u.callee->prim, args, v->nargs, v->type, v->syms, v->nsyms, NULL, d->checks);
    return v->type;
}

/* An output in place has the annotation of its argument and no buffer of its own. */
static rx_ty deduce_tir_inplace(deducer *d)
{
    relax_value *v = d->v;
    rx_ty *args = arg_types(d, 0), out = v->type;
    check_prim(d);
    check_out(d, out);
    uint32_t n = out->kind == RX_TY_TUPLE ? out->nelems : 1, nfresh = 0;
    if (v->ninplace != n)
        fail(d, RXE_ARITY, "%u outputs, but %u indices of arguments in place", n, v->ninplace);
    rx_ty *fresh = RX_NEWN(d->a, rx_ty, n + 1);
    for (uint32_t i = 0; i < n; i++) {
        rx_ty t = out->kind == RX_TY_TUPLE ? out->elems[i] : out;
        int32_t k = v->inplace[i];
        if (k < 0) {
            fresh[nfresh++] = t;
            continue;
        }
        if ((uint32_t)k >= v->nargs)
            fail(d, RXE_BAD_VALUE, "output %u is in place of argument %d, which does not exist", i, k);
        for (uint32_t j = 0; j < i; j++)
            if (v->inplace[j] == k)
                fail(d, RXE_BAD_VALUE, "two outputs are in place of argument %d", k);
        if (rx_ty_subtype(d->ctx, d->f->facts, args[k], t) != RX_TRUE)
            fail(d, RXE_SHAPE, "output %u is %s, but it is in place of %s", i, type_text(d, t), type_text(d, args[k]));
    }
    rx_bind_prim(d->f, v->u.callee->prim, args, v->nargs, rx_ty_tuple(d->ctx, fresh, nfresh), v->syms, v->nsyms, NULL,
                 d->checks);
    return out;
}

static rx_ty deduce_lib(deducer *d)
{
    if (!d->v->ext || !*d->v->ext)
        fail(d, RXE_BAD_VALUE, "the name of the library function is missing");
    arg_types(d, 0);
    check_out(d, d->v->type);
    return d->v->type;
}

static rx_ty deduce_packed(deducer *d)
{
    if (!d->v->ext || !*d->v->ext)
        fail(d, RXE_BAD_VALUE, "the name of the host function is missing");
    arg_types(d, 0);
    if (!d->v->type)
        fail(d, RXE_TYPE_KIND, "the annotation of the result is missing");
    return d->v->type;
}

static rx_ty deduce_dps(deducer *d)
{
    relax_value *v = d->v;
    rx_ty *args = arg_types(d, 0);
    rx_ty none = rx_ty_tuple(d->ctx, NULL, 0);
    if (!v->u.callee) {
        if (!v->ext || !*v->ext)
            fail(d, RXE_BAD_VALUE, "the name of the library function is missing");
        return none;
    }
    check_prim(d);
    rx_bind_prim(d->f, v->u.callee->prim, args, v->nargs, none, v->syms, v->nsyms, NULL, d->checks);
    return none;
}

/* --- the rest --- */

static rx_ty deduce_get(deducer *d)
{
    need_args(d, 1);
    rx_ty t = d->v->args[0]->type;
    if (t->kind == RX_TY_OBJECT)
        return t;
    if (t->kind != RX_TY_TUPLE)
        fail(d, RXE_TYPE_KIND, "%s is no tuple", type_text(d, t));
    if (d->v->u.index >= t->nelems)
        fail(d, RXE_AXIS, "field %u of a tuple of %u", d->v->u.index, t->nelems);
    return t->elems[d->v->u.index];
}

static rx_ty deduce_match_cast(deducer *d)
{
    need_args(d, 1);
    rx_ty have = d->v->args[0]->type, want = d->v->type;
    if (!want)
        fail(d, RXE_TYPE_KIND, "the annotation is missing");
    if (rx_ty_subtype(d->ctx, d->f->facts, have, want) == RX_FALSE)
        fail(d, RXE_SHAPE, "%s can never be %s", type_text(d, have), type_text(d, want));
    return want;
}

/* is sym defined by a match_cast inside the bodies of an IF? */
static bool defined_in(const rx_body *b, rx_ex sym, relax_context *ctx)
{
    for (const rx_iblock *bl = b->first; bl; bl = bl->next)
        for (const relax_value *v = bl->first; v; v = v->next) {
            rx_exvec syms = {0};
            if (v->kind == RX_V_MATCH_CAST)
                rx_ty_free_syms(ctx, rx_scratch(&ctx->heap), v->type, &syms);
            for (uint32_t i = 0; i < syms.n; i++)
                if (syms.at[i] == sym)
                    return true;
            if (v->kind == RX_V_IF &&
                (defined_in(v->u.branch.then, sym, ctx) || defined_in(v->u.branch.other, sym, ctx)))
                return true;
        }
    return false;
}

/* Symbols that only the bodies define are not known behind the IF; a cast inside may also name symbols of the
 * parameters. */
static bool outlives_if(void *arg, rx_ex sym)
{
    deducer *d = arg;
    rx_exvec syms = {0};
    for (uint32_t i = 0; i < d->f->nparams; i++)
        rx_ty_free_syms(d->ctx, d->a, d->f->params[i]->type, &syms);
    for (uint32_t i = 0; i < syms.n; i++)
        if (syms.at[i] == sym)
            return true;
    return !defined_in(d->v->u.branch.then, sym, d->ctx) && !defined_in(d->v->u.branch.other, sym, d->ctx);
}

static rx_ty deduce_if(deducer *d)
{
    need_args(d, 1);
    rx_ty c = d->v->args[0]->type;
    bool scalar = c->kind == RX_TY_PRIM || (c->kind == RX_TY_TENSOR && c->ndim == 0);
    if (!scalar || c->dtype != RELAX_BOOL)
        fail(d, RXE_TYPE_KIND, "the condition must be a bool of rank 0, not %s", type_text(d, c));
    const rx_body *t = d->v->u.branch.then, *e = d->v->u.branch.other;
    if (!t->result || !e->result || !t->result->type || !e->result->type)
        fail(d, RXE_UNDEF_VALUE, "a branch has no result");
    rx_ty lub = rx_ty_lub(d->ctx, d->f->facts, t->result->type, e->result->type);
    return rx_ty_erase(d->ctx, lub, outlives_if, d);
}

static rx_ty deduce_alloc(deducer *d)
{
    need_args(d, 0);
    check_out(d, d->v->type);
    if (d->v->type->kind != RX_TY_TENSOR)
        fail(d, RXE_TYPE_KIND, "alloc makes one tensor");
    return d->v->type;
}

static rx_ex bytes_of(deducer *d, rx_ty t)
{
    return rx_muli(d->ctx, rx_product(d->ctx, t->dims, (uint32_t)t->ndim), (int64_t)rx_dtype_bytes(t->dtype));
}

static rx_ty deduce_view(deducer *d)
{
    need_args(d, 1);
    check_out(d, d->v->type);
    rx_ty have = d->v->args[0]->type, want = d->v->type;
    if (!rx_ty_is_tensor(have, -1, RELAX_DTYPE_UNKNOWN) || have->dtype == RELAX_DTYPE_UNKNOWN ||
        want->kind != RX_TY_TENSOR)
        fail(d, RXE_TYPE_KIND, "a view needs tensors of known shape and data type");
    rx_require_eq(d->f, d->checks, bytes_of(d, have), bytes_of(d, want), "a view must have the same size in bytes");
    return want;
}

rx_ty rx_v_deduce(relax_function *f, relax_value *v, rx_exvec *checks)
{
    relax_context *ctx = f->mod->ctx;
    deducer d = {.ctx = ctx, .f = f, .v = v, .checks = checks, .a = rx_scratch(&ctx->heap)};
    switch (v->kind) {
    case RX_V_PARAM:
    case RX_V_CONST:
    case RX_V_SHAPE:
    case RX_V_PRIM:
    case RX_V_FUNC:
    case RX_V_STR:
        return v->type;
    case RX_V_OP:
        return deduce_op(&d);
    case RX_V_CALL:
        return deduce_call(&d);
    case RX_V_CALL_TIR:
        return deduce_tir(&d);
    case RX_V_CALL_TIR_INPLACE:
        return deduce_tir_inplace(&d);
    case RX_V_CALL_DPS_LIB:
        return deduce_lib(&d);
    case RX_V_CALL_PACKED:
        return deduce_packed(&d);
    case RX_V_TUPLE:
        return rx_ty_tuple(ctx, arg_types(&d, 0), v->nargs);
    case RX_V_GET:
        return deduce_get(&d);
    case RX_V_MATCH_CAST:
        return deduce_match_cast(&d);
    case RX_V_IF:
        return deduce_if(&d);
    case RX_V_ALLOC:
        return deduce_alloc(&d);
    case RX_V_CALL_DPS:
        return deduce_dps(&d);
    case RX_V_VIEW:
        return deduce_view(&d);
    case RX_V_COUNT:
        break;
    }
    fail(&d, RXE_INTERNAL, "a value of unknown kind");
}

void rx_v_rededuce(relax_function *f, relax_value *v)
{
    rx_exvec checks = {v->checks, v->nchecks, v->nchecks};
    v->type = rx_v_deduce(f, v, &checks);
    v->checks = checks.at;
    v->nchecks = checks.n;
}
