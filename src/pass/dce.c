/* dce.c: removes pure bindings without uses (newest first, so that whole chains go in one walk) and private functions
 * that nothing reaches. A binding with obligations stays: its checks are part of the program's meaning. */
#include "pass/private.h"

static bool removable(const relax_value *v)
{
    if (v->nchecks) return false;
    if (v->kind == RX_V_MATCH_CAST) return false;     /* defines symbols, may fail */
    if (v->kind == RX_V_IF) return false;
    return !rx_v_effect(v).impure;
}

static void sweep(rx_pass_run *r, relax_function *f)
{
    rx_valvec all = rx_pass_bindings(r, f);
    uint32_t *uses = rx_pass_use_counts(r, f);
    for (uint32_t i = all.n; i-- > 0;) {
        relax_value *v = all.at[i];
        if (uses[v->id] || !removable(v)) continue;
        for (uint32_t k = 0; k < v->nargs; k++)
            if (v->args[k]) uses[v->args[k]->id]--;
        rx_v_remove(v);
    }
}

typedef struct reach { rx_pass_run *r; rx_map seen; RX_VEC(relax_function *) todo; } reach;

static void reach_function(reach *c, relax_function *f)
{
    if (!f || rx_map_has(&c->seen, RX_KEY(f))) return;
    rx_map_put(&c->seen, RX_KEY(f), f);
    rx_push(c->r->a, &c->todo, f);
}

static void reach_value(void *arg, relax_value *v)
{
    reach *c = arg;
    if (v->kind == RX_V_CALL_TIR || v->kind == RX_V_CALL_TIR_INPLACE || v->kind == RX_V_CALL_DPS)
        reach_function(c, v->u.callee);
    for (uint32_t i = 0; i < v->nargs; i++)
        if (v->args[i] && v->args[i]->kind == RX_V_FUNC) reach_function(c, v->args[i]->u.callee);
    if (v->kind == RX_V_IF) {
        relax_value *res[2] = { v->u.branch.then->result, v->u.branch.other->result };
        for (int i = 0; i < 2; i++)
            if (res[i] && res[i]->kind == RX_V_FUNC) reach_function(c, res[i]->u.callee);
    }
}

static void drop_functions(rx_pass_run *r)
{
    reach c = { r, { 0 }, { 0 } };
    rx_map_init(&c.seen, r->a);
    for (relax_function *f = r->m->first; f; f = f->next)
        if (!f->is_private) reach_function(&c, f);
    for (uint32_t i = 0; i < c.todo.n; i++) {
        relax_function *f = c.todo.at[i];
        if (f->is_prim) continue;
        rx_fn_visit(f, reach_value, &c);
        if (f->body.result && f->body.result->kind == RX_V_FUNC) reach_function(&c, f->body.result->u.callee);
    }
    for (relax_function *f = r->m->first, *next; f; f = next) {
        next = f->next;
        if (!rx_map_has(&c.seen, RX_KEY(f))) rx_module_remove(r->m, f);
    }
}

void rx_pass_dce(rx_pass_run *r)
{
    rx_pass_each(r, sweep);
    drop_functions(r);
}
