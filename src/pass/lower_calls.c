/* lower_calls.c: destination-passing style.
 *
 *   y = call_tir(@f, (x), T)   ->   y = alloc(T); call_dps(@f, (x, y))
 * several results: one allocation each, then a tuple of them. A result that is written over an argument
 * (call_tir_inplace) needs no allocation: the argument stands for it. Obligations stand on the first binding that
 * replaces the call, so that nothing is sized or run before they hold. Calls without results are no dataflow: the
 * blocks become plain ones, in bodies of an IF too. */
#include "pass/private.h"

static bool over_argument(const relax_value *v, uint32_t i)
{
    return v->kind == RX_V_CALL_TIR_INPLACE && i < v->ninplace && v->inplace[i] >= 0;
}

static void lower(rx_pass_run *r, rx_renames *names, relax_value *v)
{
    bool tuple = v->type->kind == RX_TY_TUPLE;
    uint32_t n = tuple ? v->type->nelems : 1;
    rx_gb b = rx_gb_before(v);
    rx_valvec res = { 0 }, args = { 0 };
    relax_value *first = NULL;
    for (uint32_t i = 0; i < v->nargs; i++) rx_push(r->a, &args, v->args[i]);
    for (uint32_t i = 0; i < n; i++) {
        if (over_argument(v, i)) {
            rx_push(r->a, &res, v->args[v->inplace[i]]);
            continue;
        }
        relax_value *d = rx_emit_alloc(&b, tuple ? v->type->elems[i] : v->type);
        d->name = v->name;
        if (!first) first = d;
        rx_push(r->a, &res, d);
        rx_push(r->a, &args, d);
    }
    relax_function *prim = v->kind == RX_V_CALL_DPS_LIB ? NULL : v->u.callee;
    relax_value *call = rx_emit_call_dps(&b, prim, prim ? NULL : v->ext, args.at, args.n, v->syms, v->nsyms);
    rx_pass_oblige(first ? first : call, v->checks, v->nchecks);
    relax_value *with = tuple ? rx_emit_tuple(&b, res.at, n) : res.at[0];
    with->output |= v->output;
    rx_pass_rename(names, v, with);
    rx_v_remove(v);
}

static void plain_blocks(rx_body *b)
{
    for (rx_iblock *bl = b->first; bl; bl = bl->next) bl->dataflow = false;
}

static void lower_calls(rx_pass_run *r, relax_function *f)
{
    rx_valvec all = rx_pass_bindings(r, f);
    rx_renames names = rx_pass_renames(r);
    plain_blocks(&f->body);
    for (uint32_t i = 0; i < all.n; i++) {
        relax_value *v = all.at[i];
        rx_pass_rename_args(&names, v);
        switch (v->kind) {
        case RX_V_CALL_TIR: case RX_V_CALL_TIR_INPLACE: case RX_V_CALL_DPS_LIB: lower(r, &names, v); break;
        case RX_V_IF:
            plain_blocks(v->u.branch.then);
            plain_blocks(v->u.branch.other);
            break;
        default: break;
        }
    }
    rx_pass_rename_rest(&names, f);
}

void rx_pass_lower_calls(rx_pass_run *r) { rx_pass_each(r, lower_calls); }
