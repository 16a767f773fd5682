/* lower_calls.c: destination-passing style.
 *
 *   y = call_tir(@f, (x), T)   ->   y = alloc(T); call_dps(@f, (x, y))
 * several results: one allocation each, then a tuple of them. A result that is written over an argument
 * (call_tir_inplace) needs no allocation: the argument stands for it. Obligations stay on the first binding that
 * replaces the call. */
#include "pass/private.h"

typedef struct results { relax_value *at[64]; uint32_t n; } results;

static void add_result(rx_pass_run *r, relax_value *v, rx_gb *b, results *out, rx_ty t, uint32_t i, rx_valvec *fresh)
{
    if (out->n == RX_COUNT(out->at)) rx_fail(r->ctx, RXE_LIMIT, NULL, "%s has more than 64 results", v->name);
    if (v->kind == RX_V_CALL_TIR_INPLACE && i < v->ninplace && v->inplace[i] >= 0) {
        out->at[out->n++] = v->args[v->inplace[i]];
        return;
    }
    relax_value *a = rx_emit_alloc(b, t);
    a->name = v->name;
    out->at[out->n++] = a;
    rx_push(r->a, fresh, a);
}

static void lower(rx_pass_run *r, relax_function *f, relax_value *v)
{
    bool tuple = v->type->kind == RX_TY_TUPLE;
    uint32_t n = tuple ? v->type->nelems : 1;
    rx_gb b = rx_gb_before(v);
    results res = { .n = 0 };
    rx_valvec args = { 0 };
    for (uint32_t i = 0; i < v->nargs; i++) rx_push(r->a, &args, v->args[i]);
    for (uint32_t i = 0; i < n; i++) add_result(r, v, &b, &res, tuple ? v->type->elems[i] : v->type, i, &args);
    relax_function *prim = v->kind == RX_V_CALL_DPS_LIB ? NULL : v->u.callee;
    relax_value *call = rx_emit_call_dps(&b, prim, prim ? NULL : v->ext, args.at, args.n, v->syms, v->nsyms);
    if (!call->nchecks) {
        call->checks = v->checks;
        call->nchecks = v->nchecks;
    }
    relax_value *with = tuple ? rx_emit_tuple(&b, res.at, n) : res.at[0];
    with->output |= v->output;
    rx_v_replace(f, v, with);
    rx_v_remove(v);
}

static void lower_calls(rx_pass_run *r, relax_function *f)
{
    rx_valvec all = rx_pass_bindings(r, f);
    for (uint32_t i = 0; i < all.n; i++)
        if (all.at[i]->kind == RX_V_CALL_TIR || all.at[i]->kind == RX_V_CALL_TIR_INPLACE ||
            all.at[i]->kind == RX_V_CALL_DPS_LIB)
            lower(r, f, all.at[i]);
    for (rx_iblock *bl = f->body.first; bl; bl = bl->next)
        bl->dataflow = false; /* calls without results are no dataflow */
}

void rx_pass_lower_calls(rx_pass_run *r) { rx_pass_each(r, lower_calls); }
