/* fold_constant.c: operators on constants are evaluated in the interpreter, so folding and running cannot disagree.
 *
 * Folded: pure operators with at least one constant tensor whose operands are all constants or constant shapes and
 * numbers, and whose result is no larger than max-bytes (default 1 MiB). A call that would fail at run time (division
 * by zero, an index out of range) is left as it is and fails there. Operators that only create (full, arange) are not
 * folded: their results need no memory. */
#include "interp/interp.h"
#include "pass/private.h"

static bool constant_dims(const rx_ex *d, int32_t n)
{
    for (int32_t i = 0; i < n; i++)
        if (d[i]->op != RX_EX_INT) return false;
    return true;
}

static bool constant_operand(const relax_value *x)
{
    switch (x->kind) {
    case RX_V_CONST: return true;
    case RX_V_SHAPE: return constant_dims(x->syms, (int32_t)x->nsyms);
    case RX_V_PRIM: return x->syms[0]->op == RX_EX_INT && x->syms[0]->dtype == RELAX_I64;
    default: return false;
    }
}

static bool constant_attrs(const rx_attrs *a)
{
    for (uint32_t i = 0; i < a->n; i++) {
        if (a->at[i].kind == RX_A_EXPR && (a->at[i].u.e->flags & RX_EX_HAS_SYM)) return false;
        if (a->at[i].kind == RX_A_EXPRS && !constant_dims(a->at[i].u.exprs.at, (int32_t)a->at[i].u.exprs.n))
            return false;
    }
    return true;
}

static bool small(rx_pass_run *r, rx_ty t)
{
    int64_t n;
    if (t->kind != RX_TY_TENSOR || !t->known || !constant_dims(t->dims, t->ndim)) return false;
    n = (int64_t)rx_dtype_bytes(t->dtype);
    for (int32_t i = 0; i < t->ndim; i++)
        if (!rx_mul_ok(n, t->dims[i]->u.i, &n)) return false;
    return n <= rx_pass_int(r, "max-bytes", 1 << 20);
}

static bool wanted(rx_pass_run *r, const relax_value *v)
{
    bool any = false;
    if (v->kind != RX_V_OP || v->nchecks || rx_v_effect(v).impure || !small(r, v->type) || !constant_attrs(&v->attrs))
        return false;
    for (uint32_t i = 0; i < v->nargs; i++) {
        if (!v->args[i]) continue;
        if (!constant_operand(v->args[i])) return false;
        any |= v->args[i]->kind == RX_V_CONST;
    }
    return any;
}

static rx_ival *operand(rx_pass_run *r, const relax_value *x)
{
    if (!x) return NULL;
    if (x->kind == RX_V_CONST)
        return rx_ival_tensor(r->ctx, r->a, x->u.data->dtype, x->u.data->dims, (int32_t)x->u.data->ndim,
                              x->u.data->data);
    if (x->kind == RX_V_PRIM) return rx_ival_int(r->a, x->syms[0]->u.i);
    int64_t *d = RX_NEWN(r->a, int64_t, x->nsyms + 1);
    for (uint32_t i = 0; i < x->nsyms; i++) d[i] = x->syms[i]->u.i;
    return rx_ival_shape(r->a, d, (int32_t)x->nsyms);
}

/* NULL: it fails at run time too */
static rx_ival *evaluate(rx_pass_run *r, relax_function *f, relax_value *v)
{
    rx_heap *h = &r->ctx->heap;
    rx_interp in = { .ctx = r->ctx, .a = r->a };
    rx_ival **args = RX_NEWN(r->a, rx_ival *, v->nargs + 1);
    for (uint32_t i = 0; i < v->nargs; i++) args[i] = operand(r, v->args[i]);
    const uint32_t before = rx_diag_count(r->ctx);
    rx_frame frame;
    if (RX_ENTER(h, &frame)) {
        rx_ival *res = rx_interp_op(&in, f, v->u.op, args, v->nargs, &v->attrs, NULL);
        rx_leave(h, &frame);
        return res;
    }
    relax_status st = rx_diag_status(r->ctx);
    if (st == RELAX_E_NOMEM || st == RELAX_E_CANCELLED || st == RELAX_E_INTERNAL) rx_unwind(h);
    rx_diag_truncate(r->ctx, before);
    return NULL;
}

static void fold(rx_pass_run *r, relax_function *f)
{
    rx_valvec all = rx_pass_bindings(r, f);
    rx_renames names = rx_pass_renames(r);
    rx_alias alias = rx_pass_alias(r, &all);
    bool *overwritten = rx_pass_overwritten(r, &all, &alias);
    for (uint32_t i = 0; i < all.n; i++) {
        relax_value *v = all.at[i];
        rx_pass_rename_args(&names, v);
        if (!wanted(r, v) || overwritten[rx_pass_alias_of(&alias, v)]) continue;
        rx_ival *x = evaluate(r, f, v);
        if (!x || x->kind != RX_I_TENSOR) continue;
        rx_pass_rename(&names, v, rx_v_const(r->m, x->dtype, x->dims, (uint32_t)x->ndim, x->data));
        rx_v_remove(v);
    }
    rx_pass_rename_rest(&names, f);
}

void rx_pass_fold_constant(rx_pass_run *r)
{
    rx_pass_int(r, "max-bytes", 0);    /* an error also where nothing is folded */
    rx_pass_each(r, fold);
}
