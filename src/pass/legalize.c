/* legalize.c: operators become calls of tensor programs.
 *
 * An operator that keeps the elements in row-major order (reshape and its kin) becomes a view of its argument's memory;
 * one that the runtime provides (sort) a call in destination-passing style; operators on the host (shape_of) and those
 * with data-dependent results stay. The rest need known shapes: an operand whose dims are unknown is an error that says
 * that a match_cast would name them. Operators on integers and truth values that are no tensors become expressions.
 * Tuple operands are taken apart first. Equal calls share one tensor program. */
#include "op/op.h"
#include "pass/private.h"

static rx_where where_of(const relax_value *v)
{
    return (rx_where){ .function = v->fn ? v->fn->name : NULL, .binding = v->name };
}

static bool shape_known(rx_ty t)
{
    if (t->kind == RX_TY_TUPLE) {
        for (uint32_t i = 0; i < t->nelems; i++)
            if (!shape_known(t->elems[i])) return false;
        return true;
    }
    return t->kind != RX_TY_TENSOR || (t->known && t->dtype != RELAX_DTYPE_UNKNOWN);
}

static void need_known(relax_context *ctx, const relax_value *v, rx_ty t, const char *what)
{
    if (shape_known(t)) return;
    rx_where w = where_of(v);
    rx_buf b;
    rx_buf_init(&b, rx_scratch(&ctx->heap));
    rx_print_type(&b, t);
    rx_fail_hint(ctx, RXE_SHAPE, &w, "name its dimensions with match_cast before this operator",
                 "%s: %s has the annotation %s; a tensor program needs known dimensions and data type", v->u.op->name,
                 what, b.at);
}

/* operands with tuples replaced by their fields */
static rx_valvec operands(rx_pass_run *r, relax_value *v)
{
    rx_valvec out = { 0 };
    for (uint32_t i = 0; i < v->nargs; i++) {
        relax_value *x = v->args[i];
        if (!x || x->type->kind != RX_TY_TUPLE) { rx_push(r->a, &out, x); continue; }
        for (uint32_t k = 0; k < x->type->nelems; k++) {
            rx_gb b = rx_gb_before(v);
            relax_value *g = x->kind == RX_V_TUPLE ? x->args[k] : rx_emit_get(&b, x, k);
            rx_push(r->a, &out, g);
        }
    }
    return out;
}

/* Symbolic arguments of a runtime builtin: the operator's integers and bools in declared order, then which of topk's
 * results are wanted (0 both, 1 values, 2 indices). */
static relax_value *call_builtin(rx_pass_run *r, relax_value *v, rx_gb *b, rx_valvec *args)
{
    rx_exvec syms = { 0 };
    for (uint32_t i = 0; i < v->u.op->nattrs; i++) {
        const rx_attr_decl *d = &v->u.op->attrs[i];
        if (d->kind == RX_A_INT || d->kind == RX_A_BOOL)
            rx_push(r->a, &syms, rx_int(r->ctx, rx_attr_int(&v->attrs, d->key, 0)));
    }
    const char *which = rx_attr_str(&v->attrs, "ret_type", NULL);
    if (which) rx_push(r->a, &syms, rx_int(r->ctx, !strcmp(which, "both") ? 0 : !strcmp(which, "values") ? 1 : 2));
    return rx_emit_call_lib(b, rx_strf(r->ctx, "rx.%s", v->u.op->name), args->at, args->n, v->type, syms.at, syms.n);
}

static relax_value *call_prim(rx_pass_run *r, relax_function *f, relax_value *v, rx_gb *b, rx_valvec *args)
{
    rx_ty *in = RX_NEWN(r->a, rx_ty, args->n);
    rx_valvec tensors = { 0 };
    for (uint32_t i = 0; i < args->n; i++) {
        relax_value *x = args->at[i];
        if (!x) continue;
        in[i] = x->type;
        need_known(r->ctx, v, x->type, rx_strf(r->ctx, "operand %u", i));
        if (x->type->kind == RX_TY_TENSOR) rx_push(r->a, &tensors, x);
    }
    need_known(r->ctx, v, v->type, "the result");
    rx_exvec syms = { 0 };
    relax_function *prim = rx_op_legalize(r->m, f, v->u.op, in, args->n, v->type, &v->attrs, &syms);
    if (v->u.op->code < 0 && rx_function_verify(prim)) rx_unwind(&r->ctx->heap);       /* from a plugin */
    if (!(v->u.op->flags & RX_OPF_INPLACE))
        return rx_emit_call_tir(b, prim, tensors.at, tensors.n, v->type, syms.at, syms.n);
    int32_t first = 0;
    return rx_emit_call_tir_inplace(b, prim, tensors.at, tensors.n, v->type, syms.at, syms.n, &first, 1);
}

/* ---- operators on scalars: their value as an expression ---- */
static rx_ex scalar_value(relax_value *x)
{
    if (x->kind == RX_V_PRIM) return x->syms[0];
    return x->type->kind == RX_TY_PRIM && x->type->known ? x->type->dims[0] : NULL;
}

/* NULL: not one that shapes can compute */
static rx_ex scalar_expr(relax_context *ctx, int code, rx_ex a, rx_ex b)
{
    if (a->dtype != b->dtype || (a->dtype != RELAX_I64 && a->dtype != RELAX_BOOL)) return NULL;
    if (a->dtype == RELAX_BOOL)
        return code == RX_OP_LOGICAL_AND ? rx_and(ctx, a, b) : code == RX_OP_LOGICAL_OR ? rx_or(ctx, a, b) : NULL;
    switch (code) {
    case RX_OP_ADD: return rx_add(ctx, a, b);
    case RX_OP_SUBTRACT: return rx_sub(ctx, a, b);
    case RX_OP_MULTIPLY: return rx_mul(ctx, a, b);
    case RX_OP_FLOOR_DIVIDE: return rx_div(ctx, a, b);
    case RX_OP_FLOOR_MOD: return rx_mod(ctx, a, b);
    case RX_OP_MAXIMUM: return rx_max(ctx, a, b);
    case RX_OP_MINIMUM: return rx_min(ctx, a, b);
    case RX_OP_EQUAL: return rx_eq(ctx, a, b);
    case RX_OP_NOT_EQUAL: return rx_ne(ctx, a, b);
    case RX_OP_LESS: return rx_lt(ctx, a, b);
    case RX_OP_LESS_EQUAL: return rx_le(ctx, a, b);
    case RX_OP_GREATER: return rx_lt(ctx, b, a);
    case RX_OP_GREATER_EQUAL: return rx_le(ctx, b, a);
    default: return NULL;
    }
}

/* a cast that names an integer; it is no dim, so it may be negative (the least value would read as "no bound is
 * declared") */
static relax_value *named_number(rx_pass_run *r, relax_value *before, relax_value *x)
{
    rx_gb b = rx_gb_before(before);
    rx_ex sym = rx_fn_sym_fresh(b.f, "s");
    rx_sym_of(sym)->lo = INT64_MIN + 1;
    return rx_emit_match_cast(&b, x, rx_ty_prim(r->ctx, RELAX_I64, sym));
}

/* Numbers without a name get one by a cast. false: v is none of these operators. */
static bool fold_scalar(rx_pass_run *r, rx_renames *names, relax_value *v)
{
    rx_ex e[2] = { NULL, NULL };
    if (v->type->kind != RX_TY_PRIM || v->nargs != 2 || v->nchecks) return false;
    for (uint32_t i = 0; i < v->nargs; i++) {
        relax_value *x = v->args[i];
        if (!x || x->type->kind != RX_TY_PRIM) return false;
        if (!scalar_value(x) && x->type->dtype == RELAX_I64) x = named_number(r, v, x);
        if (!(e[i] = scalar_value(x))) return false;
    }
    rx_ex value = scalar_expr(r->ctx, v->u.op->code, e[0], e[1]);
    if (!value) return false;
    rx_pass_rename(names, v, rx_v_prim(r->m, value));
    rx_v_remove(v);
    return true;
}

static void take_over(rx_renames *names, relax_value *old, relax_value *v)
{
    v->name = old->name;
    v->output = old->output;
    rx_pass_oblige(v, old->checks, old->nchecks);       /* obligations of the operator's shapes come with it */
    rx_pass_rename(names, old, v);
    rx_v_remove(old);
}

static void legalize_one(rx_pass_run *r, relax_function *f, rx_renames *names, relax_value *v)
{
    const rx_op *op = v->u.op;
    if (op->flags & (RX_OPF_HOST | RX_OPF_DYNAMIC)) return;
    rx_valvec args = operands(r, v);
    rx_gb b = rx_gb_before(v);
    if (op->flags & RX_OPF_VIEW) {
        need_known(r->ctx, v, args.at[0]->type, "the operand");
        need_known(r->ctx, v, v->type, "the result");
        take_over(names, v, rx_emit_view(&b, args.at[0], v->type));
    } else if (op->flags & RX_OPF_BUILTIN) {
        need_known(r->ctx, v, v->type, "the result");
        take_over(names, v, call_builtin(r, v, &b, &args));
    } else if (op->legalize) {
        take_over(names, v, call_prim(r, f, v, &b, &args));
    } else {
        rx_where w = where_of(v);
        rx_fail(r->ctx, RXE_UNKNOWN_OP, &w, "operator %s has no tensor program", op->name);
    }
}

static void legalize(rx_pass_run *r, relax_function *f)
{
    rx_pass_own_constants(r, f);
    rx_valvec all = rx_pass_bindings(r, f);
    rx_renames names = rx_pass_renames(r);
    bool scalars = false;
    for (uint32_t i = 0; i < all.n; i++) {
        relax_value *v = all.at[i];
        rx_pass_rename_args(&names, v);
        if (v->kind != RX_V_OP) continue;
        if (fold_scalar(r, &names, v)) scalars = true;
        else legalize_one(r, f, &names, v);
    }
    rx_pass_rename_rest(&names, f);
    if (scalars) rx_pass_rededuce(f);  /* their values are known now */
}

void rx_pass_legalize(rx_pass_run *r) { rx_pass_each(r, legalize); }
