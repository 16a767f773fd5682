/* list.c: walking functions while they change, replacing many values at once. */
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

void rx_pass_oblige(relax_value *v, rx_ex *extra, uint32_t n)
{
    rx_exvec all = { v->checks, v->nchecks, v->nchecks };
    for (uint32_t i = 0; i < n; i++) {
        bool known = false;
        for (uint32_t k = 0; k < all.n; k++) known |= all.at[k] == extra[i];
        if (!known) rx_push(&v->fn->mod->arena, &all, extra[i]);
    }
    v->checks = all.at;
    v->nchecks = all.n;
}

static void rededuce_body(relax_function *f, rx_body *b)
{
    for (rx_iblock *bl = b->first; bl; bl = bl->next)
        for (relax_value *v = bl->first; v; v = v->next) {
            if (v->kind == RX_V_IF) {
                rededuce_body(f, v->u.branch.then);
                rededuce_body(f, v->u.branch.other);
            }
            rx_v_rededuce(f, v);
        }
}

void rx_pass_rededuce(relax_function *f) { rededuce_body(f, &f->body); }

static const rx_body *outer(const rx_body *b) { return b->owner ? b->owner->block->body : NULL; }

bool rx_pass_exclusive(const relax_value *v, const relax_value *w)
{
    for (const rx_body *b = v->block->body; b && b->owner; b = outer(b))
        for (const rx_body *d = w->block->body; d && d->owner; d = outer(d))
            if (b != d && b->owner == d->owner) return true;
    return false;
}

/* ---- replacing ---- */
rx_renames rx_pass_renames(rx_pass_run *r)
{
    rx_renames n;
    rx_map_init(&n.to, r->a);
    return n;
}

void rx_pass_rename(rx_renames *n, relax_value *old, relax_value *with)
{
    if (old->output && with->block) with->output = true;
    rx_map_put(&n->to, RX_KEY(old), with);
}

static relax_value *now(rx_renames *n, relax_value *v)
{
    for (relax_value *w; v && (w = rx_map_get(&n->to, RX_KEY(v)));) v = w;
    return v;
}

void rx_pass_rename_args(rx_renames *n, relax_value *v)
{
    if (!n->to.n) return;
    for (uint32_t i = 0; i < v->nargs; i++) v->args[i] = now(n, v->args[i]);
}

static void rename_all(void *arg, relax_value *v)
{
    rx_renames *n = arg;
    rx_pass_rename_args(n, v);
    if (v->kind != RX_V_IF) return;
    v->u.branch.then->result = now(n, v->u.branch.then->result);
    v->u.branch.other->result = now(n, v->u.branch.other->result);
}

void rx_pass_rename_rest(rx_renames *n, relax_function *f)
{
    if (!n->to.n) return;
    rx_fn_visit(f, rename_all, n);
    f->body.result = now(n, f->body.result);
}
