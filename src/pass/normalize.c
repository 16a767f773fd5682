/* normalize.c: the form that other passes like to see.
 *
 *   (a, b)[i]            ->  a or b           fields of a tuple that stands in the same function
 *   match_cast(x, T)     ->  x                when x's annotation is T already
 *   view(view(x, A), B)  ->  view(x, B)
 * then neighbouring blocks of one kind are joined and empty ones dropped. Bindings left without uses are dce's
 * business. */
#include "pass/private.h"

static void forward(rx_renames *n, relax_value *v)
{
    relax_value *x = v->nargs ? v->args[0] : NULL;
    if (v->kind == RX_V_GET && x->kind == RX_V_TUPLE) rx_pass_rename(n, v, x->args[v->u.index]);
    else if (v->kind == RX_V_MATCH_CAST && v->type == x->type && !v->nchecks) rx_pass_rename(n, v, x);
    else if (v->kind == RX_V_VIEW && x->kind == RX_V_VIEW) v->args[0] = x->args[0];
}

static void join_blocks(rx_body *body)
{
    rx_iblock **at = &body->first;
    rx_iblock *last = NULL;
    while (*at) {
        rx_iblock *b = *at;
        if (!b->first) { *at = b->next; continue; }
        if (last && last->dataflow == b->dataflow) {
            for (relax_value *v = b->first; v; v = v->next) v->block = last;
            b->first->prev = last->last;
            last->last->next = b->first;
            last->last = b->last;
            *at = b->next;
            continue;
        }
        last = b;
        at = &b->next;
    }
    body->last = last;
}

static void normalize(rx_pass_run *r, relax_function *f)
{
    rx_valvec all = rx_pass_bindings(r, f);
    rx_renames names = rx_pass_renames(r);
    for (uint32_t i = 0; i < all.n; i++) {
        rx_pass_rename_args(&names, all.at[i]);
        forward(&names, all.at[i]);
    }
    rx_pass_rename_rest(&names, f);
    rx_fn_mark_outputs(f);             /* a value may be used in other blocks now */
    join_blocks(&f->body);
    for (uint32_t i = 0; i < all.n; i++)
        if (all.at[i]->kind == RX_V_IF) {
            join_blocks(all.at[i]->u.branch.then);
            join_blocks(all.at[i]->u.branch.other);
        }
}

void rx_pass_normalize(rx_pass_run *r) { rx_pass_each(r, normalize); }
