/* normalize.c: the form that other passes like to see.
 *
 *   (a, b)[i]            ->  a or b           fields of a tuple that stands in the same function
 *   match_cast(x, T)     ->  x                when x's annotation is T already
 *   view(view(x, A), B)  ->  view(x, B)
 * then neighbouring blocks of one kind are joined and empty ones dropped. Bindings left without uses are dce's
 * business. */
#include "pass/private.h"

static void forward(relax_function *f, relax_value *v)
{
    relax_value *x = v->nargs ? v->args[0] : NULL;
    if (v->kind == RX_V_GET && x->kind == RX_V_TUPLE) rx_v_replace(f, v, x->args[v->u.index]);
    else if (v->kind == RX_V_MATCH_CAST && v->type == x->type && !v->nchecks) rx_v_replace(f, v, x);
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
    for (uint32_t i = 0; i < all.n; i++) forward(f, all.at[i]);
    join_blocks(&f->body);
    for (uint32_t i = 0; i < all.n; i++)
        if (all.at[i]->kind == RX_V_IF) {
            join_blocks(all.at[i]->u.branch.then);
            join_blocks(all.at[i]->u.branch.other);
        }
}

void rx_pass_normalize(rx_pass_run *r) { rx_pass_each(r, normalize); }
