/* rewrite.c: what passes do to functions: place, remove, replace and visit bindings; effects and aliasing of bindings.
 *
 * Bindings are doubly linked in their block; leaves and parameters stand in no block. Uses are found by walking the
 * function: there are no use lists to keep right. */
#include "graph/op.h"

void rx_v_append(rx_iblock *bl, relax_value *v)
{
    v->block = bl;
    v->fn = bl->body->fn;
    v->prev = bl->last;
    v->next = NULL;
    if (bl->last)
        bl->last->next = v;
    else
        bl->first = v;
    bl->last = v;
}

void rx_v_insert_before(relax_value *at, relax_value *v)
{
    v->block = at->block;
    v->fn = at->fn;
    v->prev = at->prev;
    v->next = at;
    if (at->prev)
        at->prev->next = v;
    else
        at->block->first = v;
    at->prev = v;
}

void rx_v_remove(relax_value *v)
{
    rx_iblock *b = v->block;
    if (!b)
        return;
    if (v->prev)
        v->prev->next = v->next;
    else
        b->first = v->next;
    if (v->next)
        v->next->prev = v->prev;
    else
        b->last = v->prev;
    v->block = NULL;
    v->prev = v->next = NULL;
}

rx_gb rx_gb_before(relax_value *at)
{
    return (rx_gb){.f = at->fn, .body = at->block->body, .block = at->block, .before = at};
}

static void visit_body(rx_body *body, void (*fn)(void *arg, relax_value *v), void *arg)
{
    for (rx_iblock *b = body->first; b; b = b->next)
        for (relax_value *v = b->first, *next; v; v = next) {
            next = v->next;
            fn(arg, v);
            if (v->kind == RX_V_IF) {
                visit_body(v->u.branch.then, fn, arg);
                visit_body(v->u.branch.other, fn, arg);
            }
        }
}

void rx_fn_visit(relax_function *f, void (*fn)(void *arg, relax_value *v), void *arg)
{
    visit_body(&f->body, fn, arg);
}

typedef struct replacing { relax_value *old, *with; uint32_t uses; } replacing;

static void result_of(replacing *r, rx_body *b)
{
    if (b->result != r->old)
        return;
    r->uses++;
    if (r->with)
        b->result = r->with;
}

static void replace_in(void *arg, relax_value *v)
{
    replacing *r = arg;
    for (uint32_t i = 0; i < v->nargs; i++)
        if (v->args[i] == r->old) {
            r->uses++;
            if (r->with)
                v->args[i] = r->with;
        }
    if (v->kind == RX_V_IF) {
        result_of(r, v->u.branch.then);
        result_of(r, v->u.branch.other);
    }
}

void rx_v_replace(relax_function *f, relax_value *old, relax_value *with)
{
    if (old == with)
        return;
    replacing r = {old, with, 0};
    rx_fn_visit(f, replace_in, &r);
    result_of(&r, &f->body);
    if (old->output && with->block)
        with->output = true;
}

uint32_t rx_v_uses(relax_function *f, relax_value *v)
{
    replacing r = {v, NULL, 0};
    rx_fn_visit(f, replace_in, &r);
    result_of(&r, &f->body);
    return r.uses;
}

static rx_effect inplace_effect(const relax_value *v)
{
    if (v->ninplace == 1 && v->inplace[0] >= 0)
        return (rx_effect){false, false, v->inplace[0]};
    return (rx_effect){false, false, -2};
}

rx_effect rx_v_effect(const relax_value *v)
{
    switch (v->kind) {
    case RX_V_PARAM:
    case RX_V_CONST:
    case RX_V_SHAPE:
    case RX_V_PRIM:
    case RX_V_FUNC:
    case RX_V_STR:
        return (rx_effect){false, false, -1};
    case RX_V_OP:
        if (v->u.op->flags & (RX_OPF_VIEW | RX_OPF_INPLACE))
            return (rx_effect){false, false, 0};
        return (rx_effect){false, true, -1};
    case RX_V_CALL:
    case RX_V_CALL_PACKED:
        return (rx_effect){!v->pure, false, -2};
    case RX_V_CALL_TIR:
    case RX_V_CALL_DPS_LIB:
        return (rx_effect){false, true, -1};
    case RX_V_CALL_TIR_INPLACE:
        return inplace_effect(v);
    case RX_V_TUPLE:
        return (rx_effect){false, false, -2};
    case RX_V_GET:
    case RX_V_MATCH_CAST:
    case RX_V_VIEW:
        return (rx_effect){false, false, 0};
    case RX_V_IF:                      /* shares the memory of its bodies' results, which the bodies name */
        return (rx_effect){false, false, -2};
    case RX_V_ALLOC:
        return (rx_effect){false, true, -1};
    case RX_V_CALL_DPS:
        return (rx_effect){true, false, -1};
    case RX_V_COUNT:
        break;
    }
    return (rx_effect){true, false, -2};
}
