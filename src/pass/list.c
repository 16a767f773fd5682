/* list.c: walking functions while they change. */
#include "pass/private.h"

typedef struct lister { rx_pass_run *r; rx_valvec out; } lister;
static void add(void *arg, relax_value *v)
{
    lister *l = arg;
    rx_push(l->r->a, &l->out, v);
}

rx_valvec rx_pass_bindings(rx_pass_run *r, relax_function *f)
{
    lister l = { r, { 0 } };
    rx_fn_visit(f, add, &l);
    return l.out;
}

typedef struct counter { uint32_t *n; } counter;
static void count_result(counter *c, const rx_body *b) { if (b && b->result) c->n[b->result->id]++; }
static void count_uses(void *arg, relax_value *v)
{
    counter *c = arg;
    for (uint32_t i = 0; i < v->nargs; i++)
        if (v->args[i]) c->n[v->args[i]->id]++;
    if (v->kind == RX_V_IF) {
        count_result(c, v->u.branch.then);
        count_result(c, v->u.branch.other);
    }
}

uint32_t *rx_pass_use_counts(rx_pass_run *r, relax_function *f)
{
    counter c = { RX_NEWN(r->a, uint32_t, r->m->next_id + 1) };
    rx_fn_visit(f, count_uses, &c);
    count_result(&c, &f->body);
    return c.n;
}

void rx_pass_each(rx_pass_run *r, void (*fn)(rx_pass_run *r, relax_function *f))
{
    for (relax_function *f = r->m->first, *next; f; f = next) {
        next = f->next;
        if (!f->is_prim) fn(r, f);
        if (rx_cancelled(r->ctx)) rx_fail(r->ctx, RXE_CANCELLED, NULL, "cancelled by the host");
    }
}
