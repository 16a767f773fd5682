/* dce.c: removes pure bindings without uses (newest first, so that whole chains go in one walk) and private functions
 * that nothing reaches. A binding with obligations stays: its checks are part of the program's meaning. So does a
 * match_cast, which checks too, and may define symbols. What else fails at run time (an index, a division) goes with
 * its result. */
#include "pass/private.h"

static bool removable(const relax_value *v);

static bool removable_body(const rx_body *b)
{
    for (const rx_iblock *bl = b->first; bl; bl = bl->next)
        for (const relax_value *v = bl->first; v; v = v->next)
            if (!removable(v)) return false;
    return true;
}

static bool removable(const relax_value *v)
{
    if (v->nchecks || v->kind == RX_V_MATCH_CAST) return false;
    if (v->kind == RX_V_IF) return removable_body(v->u.branch.then) && removable_body(v->u.branch.other);
    return !rx_v_effect(v).impure;
}

static void unuse(uint32_t *uses, const relax_value *v)
{
    if (v) uses[v->id]--;
}

static void forget(uint32_t *uses, const relax_value *v);

static void forget_body(uint32_t *uses, const rx_body *b)
{
    for (const rx_iblock *bl = b->first; bl; bl = bl->next)
        for (const relax_value *v = bl->first; v; v = v->next) forget(uses, v);
    unuse(uses, b->result);
}

static void forget(uint32_t *uses, const relax_value *v)
{
    for (uint32_t i = 0; i < v->nargs; i++) unuse(uses, v->args[i]);
    if (v->kind != RX_V_IF) return;
    forget_body(uses, v->u.branch.then);
    forget_body(uses, v->u.branch.other);
}

static void sweep(rx_pass_run *r, relax_function *f)
{
    rx_valvec all = rx_pass_bindings(r, f);
    uint32_t *uses = rx_pass_use_counts(r, f);
    for (uint32_t i = all.n; i-- > 0;) {
        relax_value *v = all.at[i];
        if (uses[v->id] || !removable(v)) continue;
        forget(uses, v);
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
