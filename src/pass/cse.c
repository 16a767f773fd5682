/* cse.c: common subexpressions within one body. Two pure bindings with equal kind, operands, attributes, symbolic
 * arguments and annotation give equal values, so the later becomes the earlier. Bodies of an IF see what stands before
 * the IF (scopes are a chain); what one branch computes is not visible outside it. */
#include "pass/private.h"

typedef struct scope { const struct scope *up; rx_map table; } scope;

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

static bool candidate(const relax_value *v)
{
    switch (v->kind) {
    case RX_V_OP: return !rx_v_effect(v).impure;
    case RX_V_CALL_TIR: case RX_V_CALL_DPS_LIB: case RX_V_TUPLE: case RX_V_GET: case RX_V_VIEW: return true;
    default: return false;
    }
}

static void walk(rx_pass_run *r, relax_function *f, rx_body *body, const scope *up)
{
    scope s = { up, { 0 } };
    rx_map_init(&s.table, r->a);
    for (rx_iblock *bl = body->first; bl; bl = bl->next)
        for (relax_value *v = bl->first, *next; v; v = next) {
            next = v->next;
            if (v->kind == RX_V_IF) {
                walk(r, f, v->u.branch.then, &s);
                walk(r, f, v->u.branch.other, &s);
            }
            if (!candidate(v)) continue;
            uint64_t key = key_of(v);
            relax_value *old = NULL;
            for (const scope *c = &s; c && !old; c = c->up) {
                relax_value *e = rx_map_get(&c->table, key);
                if (e && equal(e, v)) old = e;
            }
            if (!old) { rx_map_put(&s.table, key, v); continue; }
            old->output |= v->output || old->block != v->block;
            rx_v_replace(f, v, old);
            rx_v_remove(v);
        }
}

static void cse(rx_pass_run *r, relax_function *f) { walk(r, f, &f->body, NULL); }
void rx_pass_cse(rx_pass_run *r) { rx_pass_each(r, cse); }
