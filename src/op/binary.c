/* binary.c: element-wise operators of two arguments with NumPy broadcasting, and where.
 *
 * An operand may be a scalar Prim; two Prims give a Prim, which is no tensor program: its value, when known, is in the
 * annotation. */
#include "op/impl.h"

static rx_ty scalar_or_tensor(rx_call *c, uint32_t i)
{
    rx_ty t = c->types[i];
    return t && t->kind == RX_TY_PRIM ? t : rx_arg_tensor(c, i);
}

/* the known value of an operator on two i64 Prims, NULL: not an index expression */
static rx_ex prim_value(rx_call *c, rx_ty a, rx_ty b)
{
    relax_context *ctx = c->ctx;
    if (a->dtype != RELAX_I64 || b->dtype != RELAX_I64 || !a->known || !b->known)
        return NULL;
    rx_ex x = a->dims[0], y = b->dims[0];
    switch (c->op->code) {
    case RX_OP_ADD: return rx_add(ctx, x, y);
    case RX_OP_SUBTRACT: return rx_sub(ctx, x, y);
    case RX_OP_MULTIPLY: return rx_mul(ctx, x, y);
    case RX_OP_MAXIMUM: return rx_max(ctx, x, y);
    case RX_OP_MINIMUM: return rx_min(ctx, x, y);
    case RX_OP_FLOOR_DIVIDE:
        return rx_prove_eq(ctx, c->f->facts, y, rx_int(ctx, 0)) == RX_FALSE ? rx_div(ctx, x, y) : NULL;
    case RX_OP_FLOOR_MOD:
        return rx_prove_eq(ctx, c->f->facts, y, rx_int(ctx, 0)) == RX_FALSE ? rx_mod(ctx, x, y) : NULL;
    default: return NULL;
    }
}

/* result of operands a and b with elements dt */
static rx_ty pair_type(rx_call *c, rx_ty a, rx_ty b, relax_dtype dt)
{
    if (a->kind == RX_TY_PRIM && b->kind == RX_TY_PRIM)
        return rx_ty_prim(c->ctx, dt, dt == RELAX_I64 ? prim_value(c, a, b) : NULL);
    if (a->kind == RX_TY_PRIM || b->kind == RX_TY_PRIM)
        return rx_retype(c, a->kind == RX_TY_PRIM ? b : a, dt);
    rx_ty t[] = { a, b };
    return rx_broadcast(c, t, 2, dt);
}

rx_ty rx_deduce_binary(rx_call *c)
{
    rx_ty a = scalar_or_tensor(c, 0), b = scalar_or_tensor(c, 1);
    relax_dtype dt = rx_same_dtype(c, a->dtype, b->dtype);
    if (c->op->code != RX_OP_MAXIMUM && c->op->code != RX_OP_MINIMUM)
        rx_want_number(c, dt, "operands");
    return pair_type(c, a, b, dt);
}

rx_ty rx_deduce_binary_bit(rx_call *c)
{
    rx_ty a = scalar_or_tensor(c, 0), b = scalar_or_tensor(c, 1);
    relax_dtype dt = rx_same_dtype(c, a->dtype, b->dtype);
    bool shift = c->op->code == RX_OP_LEFT_SHIFT || c->op->code == RX_OP_RIGHT_SHIFT;
    if (dt != RELAX_BOOL || shift)
        rx_want_int(c, dt, "operands");
    return pair_type(c, a, b, dt);
}

rx_ty rx_deduce_compare(rx_call *c)
{
    return pair_type(c, scalar_or_tensor(c, 0), scalar_or_tensor(c, 1), RELAX_BOOL);
}

rx_ty rx_deduce_logical(rx_call *c)
{
    return pair_type(c, scalar_or_tensor(c, 0), scalar_or_tensor(c, 1), RELAX_BOOL);
}

rx_ty rx_deduce_where(rx_call *c)
{
    rx_ty t[] = { rx_arg_tensor(c, 0), rx_arg_tensor(c, 1), rx_arg_tensor(c, 2) };
    if (t[0]->dtype != RELAX_BOOL && t[0]->dtype != RELAX_DTYPE_UNKNOWN)
        rx_fail_op(c, RXE_DTYPE, "the condition must be bool, not %s", rx_dtypes[t[0]->dtype].name);
    return rx_broadcast(c, t, 3, rx_same_dtype(c, t[1]->dtype, t[2]->dtype));
}

static rx_ex arith(rx_legal *l, rx_ex a, rx_ex b)
{
    relax_context *ctx = l->ctx;
    bool real = rx_dtype_is_float(a->dtype);
    switch (l->op->code) {
    case RX_OP_ADD: return rx_add(ctx, a, b);
    case RX_OP_SUBTRACT: return rx_sub(ctx, a, b);
    case RX_OP_MULTIPLY: return rx_mul(ctx, a, b);
    case RX_OP_DIVIDE: return real ? rx_div(ctx, a, b) : rx_binary(ctx, RX_EX_TRUNCDIV, a, b);
    case RX_OP_POWER: return rx_binary(ctx, RX_EX_POW, a, b);
    case RX_OP_FLOOR_DIVIDE: return real ? rx_call1(ctx, RX_IN_FLOOR, rx_div(ctx, a, b)) : rx_div(ctx, a, b);
    case RX_OP_FLOOR_MOD:
        return real ? rx_sub(ctx, a, rx_mul(ctx, b, rx_call1(ctx, RX_IN_FLOOR, rx_div(ctx, a, b)))) : rx_mod(ctx, a, b);
    case RX_OP_MAXIMUM: return rx_max(ctx, a, b);
    default: return rx_min(ctx, a, b);
    }
}

static bool divides(int32_t code)
{
    return code == RX_OP_DIVIDE || code == RX_OP_FLOOR_DIVIDE || code == RX_OP_FLOOR_MOD;
}

rx_stmt *rx_legal_binary(rx_legal *l)
{
    rx_ex *v = rx_vars(l, (uint32_t)l->out->ndim);
    rx_ex a = rx_up(l, rx_operand(l, 0, v, l->out)), b = rx_up(l, rx_operand(l, 1, v, l->out));
    rx_stmt *s = rx_store_at(l, l->y[0], v, rx_down(l, l->out->dtype, arith(l, a, b)));
    if (divides(l->op->code) && !rx_dtype_is_float(a->dtype))
        s = rx_seq2(l, rx_check_s(&l->tb, rx_ne(l->ctx, b, rx_zero(l, b->dtype)), RXE_DIV_ZERO,
                                  rx_strf(l->ctx, "%s: a divisor is 0", l->op->name)), s);
    return rx_nest(l, v, l->out->dims, (uint32_t)l->out->ndim, s);
}

rx_stmt *rx_legal_binary_bit(rx_legal *l)
{
    static const rx_eop ops[] = { RX_EX_BITAND, RX_EX_BITOR, RX_EX_BITXOR, RX_EX_SHL, RX_EX_SHR };
    rx_ex *v = rx_vars(l, (uint32_t)l->out->ndim);
    rx_ex a = rx_operand(l, 0, v, l->out), b = rx_operand(l, 1, v, l->out);
    return rx_map_out(l, v, rx_binary(l->ctx, ops[l->op->code - RX_OP_BITWISE_AND], a, b));
}

/* Operands of two types are compared as f64 when one is a float, else as i64. */
static void common(rx_legal *l, rx_ex *a, rx_ex *b)
{
    *a = rx_up(l, *a);
    *b = rx_up(l, *b);
    if ((*a)->dtype == (*b)->dtype)
        return;
    relax_dtype t = rx_dtype_is_float((*a)->dtype) || rx_dtype_is_float((*b)->dtype) ? RELAX_F64 : RELAX_I64;
    *a = rx_cast(l->ctx, t, *a);
    *b = rx_cast(l->ctx, t, *b);
}

rx_stmt *rx_legal_compare(rx_legal *l)
{
    relax_context *ctx = l->ctx;
    rx_ex *v = rx_vars(l, (uint32_t)l->out->ndim), r;
    rx_ex a = rx_operand(l, 0, v, l->out), b = rx_operand(l, 1, v, l->out);
    common(l, &a, &b);
    switch (l->op->code) {
    case RX_OP_EQUAL: r = rx_eq(ctx, a, b); break;
    case RX_OP_NOT_EQUAL: r = rx_ne(ctx, a, b); break;
    case RX_OP_LESS: r = rx_lt(ctx, a, b); break;
    case RX_OP_LESS_EQUAL: r = rx_le(ctx, a, b); break;
    case RX_OP_GREATER: r = rx_lt(ctx, b, a); break;
    default: r = rx_le(ctx, b, a); break;
    }
    return rx_map_out(l, v, r);
}

static rx_ex truth(rx_legal *l, rx_ex x)
{
    return x->dtype == RELAX_BOOL ? x : rx_ne(l->ctx, rx_up(l, x), rx_zero(l, rx_compute_dtype(x->dtype)));
}

rx_stmt *rx_legal_logical(rx_legal *l)
{
    static const rx_eop ops[] = { RX_EX_AND, RX_EX_OR, RX_EX_NE };
    rx_ex *v = rx_vars(l, (uint32_t)l->out->ndim);
    rx_ex a = truth(l, rx_operand(l, 0, v, l->out)), b = truth(l, rx_operand(l, 1, v, l->out));
    return rx_map_out(l, v, rx_binary(l->ctx, ops[l->op->code - RX_OP_LOGICAL_AND], a, b));
}

rx_stmt *rx_legal_where(rx_legal *l)
{
    rx_ex *v = rx_vars(l, (uint32_t)l->out->ndim);
    rx_ex c = rx_operand(l, 0, v, l->out), a = rx_operand(l, 1, v, l->out), b = rx_operand(l, 2, v, l->out);
    return rx_map_out(l, v, rx_select(l->ctx, c, a, b));
}
