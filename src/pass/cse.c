/* cse.c: common subexpressions within one body. Two pure bindings with equal kind, operands, attributes, symbolic
 * arguments and annotation give equal values, so the later becomes the earlier. Bodies of an IF see what stands before
 * the IF (scopes are a chain); what one branch computes is not visible outside it.
 *
 * Two things stand against it: the later one has an obligation that the earlier lacks (it would be lost), or the memory
 * of one is written over (two caches that begin as zeros must stay two). */
#include "pass/private.h"

typedef struct scope { const struct scope *up; rx_map table; } scope;
typedef struct merger { rx_pass_run *r; rx_renames names; rx_alias alias; bool *overwritten; } merger;

/* leaves that hold no data are equal when they say the same, whatever their id */
static uint64_t operand_key(const relax_value *x)
{
    if (!x) return 0;
    return x->kind == RX_V_SHAPE || x->kind == RX_V_PRIM || x->kind == RX_V_FUNC ? rx_mix(~0ull, x->type->id) : x->id;
}

static uint64_t key_of(const relax_value *v)
{
    uint64_t h = rx_mix(v->kind, v->type->id);
    for (uint32_t i = 0; i < v->nargs; i++) h = rx_mix(h, operand_key(v->args[i]));
    for (uint32_t i = 0; i < v->nsyms; i++) h = rx_mix(h, v->syms[i]->id);
    if (v->kind == RX_V_GET) h = rx_mix(h, v->u.index);
    return h;
}

static bool same_leaf(const relax_value *a, const relax_value *b)
{
    if (a == b) return true;
    if (!a || !b || a->kind != b->kind || a->type != b->type) return false;
    switch (a->kind) {
    case RX_V_SHAPE: case RX_V_PRIM: return true;       /* the annotation holds the value */
    case RX_V_FUNC: return a->u.callee == b->u.callee;
    default: return false;
    }
}

static bool equal(const relax_value *a, const relax_value *b)
{
    if (a->kind != b->kind || a->type != b->type || a->nargs != b->nargs || a->nsyms != b->nsyms || a->ext != b->ext)
        return false;
    for (uint32_t i = 0; i < a->nargs; i++)
        if (!same_leaf(a->args[i], b->args[i])) return false;
    for (uint32_t i = 0; i < a->nsyms; i++)
        if (a->syms[i] != b->syms[i]) return false;
    switch (a->kind) {
    case RX_V_OP: return a->u.op == b->u.op && rx_attrs_equal(&a->attrs, &b->attrs);
    case RX_V_CALL_TIR: return a->u.callee == b->u.callee;
    case RX_V_GET: return a->u.index == b->u.index;
    default: return true;
    }
}

static bool obliges_more(const relax_value *a, const relax_value *b)
{
    for (uint32_t i = 0; i < a->nchecks; i++) {
        bool found = false;
        for (uint32_t k = 0; k < b->nchecks; k++) found |= a->checks[i] == b->checks[k];
        if (!found) return true;
    }
    return false;
}

static bool candidate(merger *m, const relax_value *v)
{
    rx_effect e = rx_v_effect(v);
    if (e.fresh && m->overwritten[rx_pass_alias_of(&m->alias, v)]) return false;
    switch (v->kind) {
    case RX_V_OP: return !e.impure && !(v->u.op->flags & RX_OPF_INPLACE);
    case RX_V_CALL_TIR: case RX_V_CALL_DPS_LIB: case RX_V_TUPLE: case RX_V_GET: case RX_V_VIEW: return true;
    default: return false;
    }
}

static relax_value *earlier(const scope *s, uint64_t key, const relax_value *v)
{
    for (; s; s = s->up) {
        relax_value *e = rx_map_get(&s->table, key);
        if (e && equal(e, v) && !obliges_more(v, e)) return e;
    }
    return NULL;
}

static void walk(merger *m, rx_body *body, const scope *up)
{
    scope s = { up, { 0 } };
    rx_map_init(&s.table, m->r->a);
    for (rx_iblock *bl = body->first; bl; bl = bl->next)
        for (relax_value *v = bl->first, *next; v; v = next) {
            next = v->next;
            rx_pass_rename_args(&m->names, v);
            if (v->kind == RX_V_IF) {
                walk(m, v->u.branch.then, &s);
                walk(m, v->u.branch.other, &s);
            }
            if (!candidate(m, v)) continue;
            uint64_t key = key_of(v);
            relax_value *old = earlier(&s, key, v);
            if (!old) { rx_map_put(&s.table, key, v); continue; }
            old->output |= v->output || old->block != v->block;
            rx_pass_rename(&m->names, v, old);
            rx_v_remove(v);
        }
}

static void cse(rx_pass_run *r, relax_function *f)
{
    rx_valvec all = rx_pass_bindings(r, f);
    merger m = { r, rx_pass_renames(r), rx_pass_alias(r, &all), NULL };
    m.overwritten = rx_pass_overwritten(r, &all, &m.alias);
    walk(&m, &f->body, NULL);
    rx_pass_rename_rest(&m.names, f);
}

void rx_pass_cse(rx_pass_run *r) { rx_pass_each(r, cse); }
