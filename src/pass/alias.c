/* alias.c: which values of a function may share memory, which memory is written over; constants that would be.
 *
 * Sharing follows the effects table (rx_v_effect): a binding whose result shares memory of an argument joins that
 * argument's class, an IF those of its bodies' results. A class is what may overlap, not what must. Written over is
 * what an in-place binding takes, and what is handed to a function that may hold such a binding, in any depth: a
 * function value may be any function. */
#include "pass/private.h"

static uint32_t find(rx_alias *a, uint32_t id)
{
    while (a->rep[id] != id) id = a->rep[id] = a->rep[a->rep[id]];
    return id;
}

uint32_t rx_pass_alias_of(rx_alias *a, const relax_value *v) { return find(a, v->id); }

static void unite(rx_alias *a, const relax_value *x, const relax_value *y)
{
    uint32_t i = find(a, x->id), k = find(a, y->id);
    if (i != k) a->rep[k] = i;
}

rx_alias rx_pass_alias(rx_pass_run *r, const rx_valvec *all)
{
    uint32_t n = r->m->next_id + 1;
    rx_alias a = { RX_NEWN(r->a, uint32_t, n) };
    for (uint32_t i = 0; i < n; i++) a.rep[i] = i;
    for (uint32_t i = 0; i < all->n; i++) {
        relax_value *v = all->at[i];
        rx_effect e = rx_v_effect(v);
        for (uint32_t k = 0; k < v->nargs; k++)
            if (v->args[k] && (e.alias == -2 || e.alias == (int32_t)k)) unite(&a, v->args[k], v);
        if (v->kind != RX_V_IF) continue;
        if (v->u.branch.then->result) unite(&a, v->u.branch.then->result, v);
        if (v->u.branch.other->result) unite(&a, v->u.branch.other->result, v);
    }
    return a;
}

/* ---- writing ---- */
static bool in_place(const relax_value *v)
{
    return v->kind == RX_V_CALL_TIR_INPLACE || (v->kind == RX_V_OP && v->u.op->flags & RX_OPF_INPLACE);
}

typedef struct reach { rx_pass_run *r; rx_map seen; RX_VEC(relax_function *) todo; bool writes; } reach;

static void callee(reach *c, relax_function *f)
{
    if (f->is_prim || rx_map_has(&c->seen, RX_KEY(f))) return;
    rx_map_put(&c->seen, RX_KEY(f), f);
    rx_push(c->r->a, &c->todo, f);
}

static void look(void *arg, relax_value *v)
{
    reach *c = arg;
    c->writes |= in_place(v) || v->kind == RX_V_CALL_DPS || v->kind == RX_V_CALL_PACKED;
    if (v->kind != RX_V_CALL) return;
    if (v->args[0]->kind == RX_V_FUNC) callee(c, v->args[0]->u.callee);
    else c->writes = true;
}

static bool may_write(rx_pass_run *r, relax_function *f)
{
    reach c = { r, { 0 }, { 0 }, false };
    rx_map_init(&c.seen, r->a);
    callee(&c, f);
    for (uint32_t i = 0; i < c.todo.n && !c.writes; i++) rx_fn_visit(c.todo.at[i], look, &c);
    return c.writes;
}

bool *rx_pass_overwritten(rx_pass_run *r, const rx_valvec *all, rx_alias *a)
{
    bool *out = RX_NEWN(r->a, bool, r->m->next_id + 1);
    rx_map known;                      /* function -> may_write + 1 */
    rx_map_init(&known, r->a);
    for (uint32_t i = 0; i < all->n; i++) {
        relax_value *v = all->at[i];
        bool writes = in_place(v) || v->kind == RX_V_CALL_PACKED || v->kind == RX_V_CALL;
        if (v->kind == RX_V_CALL && v->args[0]->kind == RX_V_FUNC) {
            relax_function *f = v->args[0]->u.callee;
            if (!rx_map_has(&known, RX_KEY(f))) rx_map_put(&known, RX_KEY(f), (void *)(uintptr_t)(may_write(r, f) + 1));
            writes = (uintptr_t)rx_map_get(&known, RX_KEY(f)) == 2;
        }
        for (uint32_t k = 0; k < v->nargs && writes; k++)
            if (v->args[k]) out[find(a, v->args[k]->id)] = true;
    }
    return out;
}

/* ---- constants ---- */
static bool writes_somewhere(rx_pass_run *r)
{
    reach c = { r, { 0 }, { 0 }, false };
    rx_map_init(&c.seen, r->a);
    for (relax_function *f = r->m->first; f; f = f->next)
        if (!f->is_prim) rx_fn_visit(f, look, &c);
    return c.writes;
}

static relax_value *copied(rx_pass_run *r, rx_gb *b, relax_value *x)
{
    rx_attr to = { .key = rx_str(r->ctx, "dtype"), .kind = RX_A_DTYPE, .u.dtype = x->u.data->dtype };
    return rx_emit_op(b, rx_op_find(r->ctx, "astype"), &x, 1, &to, 1);
}

static void own_result(rx_pass_run *r, rx_alias *alias, const bool *overwritten, rx_body *body, rx_gb end)
{
    relax_value *x = body->result;
    if (!x || x->kind != RX_V_CONST || !overwritten[find(alias, x->id)]) return;
    if (end.block->dataflow) rx_gb_dataflow(&end, false);
    body->result = copied(r, &end, x);
}

void rx_pass_own_constants(rx_pass_run *r, relax_function *f)
{
    rx_valvec all = rx_pass_bindings(r, f);
    rx_alias alias = rx_pass_alias(r, &all);
    bool *overwritten = rx_pass_overwritten(r, &all, &alias);
    if (f->body.result && writes_somewhere(r)) overwritten[find(&alias, f->body.result->id)] = true;
    for (uint32_t i = 0; i < all.n; i++) {
        relax_value *v = all.at[i];
        for (uint32_t k = 0; k < v->nargs && !rx_v_effect(v).fresh; k++) {     /* those with fresh results only read */
            if (!v->args[k] || v->args[k]->kind != RX_V_CONST || !overwritten[find(&alias, v->args[k]->id)]) continue;
            rx_gb b = rx_gb_before(v);
            v->args[k] = copied(r, &b, v->args[k]);
        }
        if (v->kind != RX_V_IF) continue;
        own_result(r, &alias, overwritten, v->u.branch.then, rx_if_then(v));
        own_result(r, &alias, overwritten, v->u.branch.other, rx_if_else(v));
    }
    own_result(r, &alias, overwritten, &f->body, rx_gb_begin(f));
}
