/* nest.c: steps that legalize functions share: loops, operands, accumulators, index values.
 *
 * The nests are plain: spatial loops over the result, reduce loops with an init that sets a local accumulator.
 * Schedules are the business of room sched/. Values narrower than f32 are computed in f32 and rounded once at the
 * store. */
#include "op/impl.h"

rx_ex *rx_vars(rx_legal *l, uint32_t n)
{
    rx_ex *v = RX_NEWN(l->tb.a, rx_ex, n + 1);
    for (uint32_t i = 0; i < n; i++)
        v[i] = rx_loopvar(&l->tb, rx_strf(l->ctx, "i%u", i));
    return v;
}

rx_stmt *rx_nest(rx_legal *l, rx_ex *vars, rx_ex *dims, uint32_t n, rx_stmt *body)
{
    while (n-- > 0)
        body = rx_loop_s(&l->tb, vars[n], dims[n], body);
    return body;
}

rx_stmt *rx_map_out(rx_legal *l, rx_ex *vars, rx_ex value)
{
    return rx_nest(l, vars, l->out->dims, (uint32_t)l->out->ndim, rx_store_at(l, l->y[0], vars, value));
}

rx_stmt *rx_reduce_loop(rx_legal *l, rx_ex var, rx_ex extent, rx_stmt *init, rx_stmt *body)
{
    return rx_for(&l->tb, var, rx_int(l->ctx, 0), extent, RX_SERIAL, true, init, body);
}

/* An extent d against the result's extent o: where d is 1 the index is 0. Only for two symbolic or unlike extents the
 * run-time value decides: deduction has made it 1 or o. */
rx_ex *rx_bcast_index(rx_legal *l, rx_ty t, rx_ex *vars, rx_ty out)
{
    relax_context *ctx = l->ctx;
    rx_ex *ix = RX_NEWN(l->tb.a, rx_ex, t->ndim + 1);
    for (int32_t k = 0; k < t->ndim; k++) {
        int32_t at = k + out->ndim - t->ndim;
        rx_ex d = t->dims[k], o = out->dims[at];
        int64_t v;
        if (rx_is_value(d, 1))
            ix[k] = rx_int(ctx, 0);
        else if (d == o || rx_is_int(d, &v) || !rx_is_int(o, &v))
            ix[k] = vars[at];
        else
            ix[k] = rx_select(ctx, rx_eq(ctx, d, rx_int(ctx, 1)), rx_int(ctx, 0), vars[at]);
    }
    return ix;
}

rx_ex rx_operand(rx_legal *l, uint32_t i, rx_ex *vars, rx_ty out)
{
    rx_ty t = l->in[i];
    if (t->kind == RX_TY_PRIM) {
        if (!t->known)
            rx_fail(l->ctx, RXE_TYPE_KIND, NULL,
                    "%s: argument %u is a scalar of unknown value, which no tensor program can take", l->op->name, i);
        return rx_cast(l->ctx, t->dtype, t->dims[0]);
    }
    return rx_load_at(l, l->x[i], rx_bcast_index(l, t, vars, out));
}

rx_ex rx_load_at(rx_legal *l, relax_buffer *b, rx_ex *index)
{
    return rx_at(&l->tb, b, index, b->ndim);
}

rx_stmt *rx_store_at(rx_legal *l, relax_buffer *b, rx_ex *index, rx_ex value)
{
    return rx_store(&l->tb, b, index, b->ndim, value);
}

relax_buffer *rx_local(rx_legal *l, const char *name, relax_dtype dt)
{
    return rx_buffer(&l->tb, name, dt, RX_MEM_LOCAL, NULL, 0);
}

relax_buffer *rx_local_n(rx_legal *l, const char *name, relax_dtype dt, int64_t n)
{
    rx_ex d = rx_int(l->ctx, n);
    return rx_buffer(&l->tb, name, dt, RX_MEM_LOCAL, &d, 1);
}

rx_ex rx_get0(rx_legal *l, relax_buffer *b)
{
    return rx_at(&l->tb, b, NULL, 0);
}

rx_stmt *rx_set0(rx_legal *l, relax_buffer *b, rx_ex value)
{
    return rx_store(&l->tb, b, NULL, 0, value);
}

rx_stmt *rx_seq2(rx_legal *l, rx_stmt *a, rx_stmt *b)
{
    rx_stmt *s[] = { a, b };
    return rx_seq(&l->tb, s, 2);
}

rx_stmt *rx_seq3(rx_legal *l, rx_stmt *a, rx_stmt *b, rx_stmt *c)
{
    rx_stmt *s[] = { a, b, c };
    return rx_seq(&l->tb, s, 3);
}

relax_dtype rx_compute_dtype(relax_dtype t)
{
    if (t == RELAX_BOOL)
        return RELAX_U8;
    return rx_dtype_is_float(t) && t != RELAX_F64 ? RELAX_F32 : t;
}

rx_ex rx_up(rx_legal *l, rx_ex e)
{
    return rx_cast(l->ctx, rx_compute_dtype(e->dtype), e);
}

rx_ex rx_down(rx_legal *l, relax_dtype t, rx_ex e)
{
    return rx_cast(l->ctx, t, e);
}

rx_ex rx_f(rx_legal *l, relax_dtype t, double v)
{
    return rx_dtype_is_float(t) ? rx_const_float(l->ctx, t, v) : rx_const_int(l->ctx, t, (int64_t)v);
}

rx_ex rx_zero(rx_legal *l, relax_dtype t)
{
    return rx_f(l, t, 0);
}

int64_t rx_const_dim(rx_ex e, int64_t absent)
{
    int64_t v;
    return rx_is_int(e, &v) ? v : absent;
}

rx_ex rx_index_var(rx_legal *l, rx_prefix *p, rx_ex value, rx_ex extent, const char *mode)
{
    relax_context *ctx = l->ctx;
    rx_ex zero = rx_int(ctx, 0), v = rx_cast(ctx, RELAX_I64, value), var = rx_loopvar(&l->tb, "at");
    rx_stmt *check = NULL;
    if (strcmp(mode, "clip") == 0)
        v = rx_max(ctx, rx_min(ctx, v, rx_subi(ctx, extent, 1)), zero);
    else if (strcmp(mode, "wrap") == 0)
        v = rx_mod(ctx, v, rx_max(ctx, extent, rx_int(ctx, 1)));
    else if (strcmp(mode, "check") == 0 && !rx_dtype_is_uint(value->dtype))
        v = rx_select(ctx, rx_lt(ctx, v, zero), rx_add(ctx, v, extent), v);
    if (strcmp(mode, "unchecked"))
        check = rx_check_s(&l->tb, rx_and(ctx, rx_le(ctx, zero, var), rx_lt(ctx, var, extent)), RXE_INDEX,
                           rx_strf(ctx, "%s: an index lies outside its axis", l->op->name));
    RX_CHECK(ctx, p->n < RX_COUNT(p->var));
    p->var[p->n] = var;
    p->value[p->n] = v;
    p->check[p->n++] = check;
    return var;
}

rx_stmt *rx_with_prefix(rx_legal *l, const rx_prefix *p, rx_stmt *body)
{
    for (uint32_t i = p->n; i-- > 0;) {
        if (p->check[i])
            body = rx_seq2(l, p->check[i], body);
        body = rx_let(&l->tb, p->var[i], p->value[i], body);
    }
    return body;
}
