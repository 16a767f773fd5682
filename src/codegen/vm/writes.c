/* writes.c: which parameters a function writes over, itself or through the functions it calls.
 *
 * The host is told (RX_PARAM_WRITTEN), so that read-only memory is refused before it is written to. For each value the
 * set of parameters that it may point into is propagated forward through the effects table; what a tensor program or a
 * callee writes flags the parameters of its argument. Callees are looked up in a table of all functions, repeated until
 * nothing is added (recursion). */
#include "codegen/vm/private.h"

typedef struct writer {
    vm_emit *e;
    relax_function *f;
    uint64_t **sets;                   /* by value id: bits over parameters, NULL: none */
    uint32_t words;
    bool *written, changed;            /* of f's parameters */
} writer;

static void join(writer *w, const relax_value *into, const relax_value *from)
{
    if (!w->sets[from->id]) return;
    if (!w->sets[into->id]) w->sets[into->id] = RX_NEWN(w->e->a, uint64_t, w->words);
    for (uint32_t i = 0; i < w->words; i++) w->sets[into->id][i] |= w->sets[from->id][i];
}

static void flag(writer *w, const relax_value *v)
{
    const uint64_t *s = v ? w->sets[v->id] : NULL;
    for (uint32_t i = 0; s && i < w->f->nparams; i++)
        if (s[i / 64] >> (i % 64) & 1 && !w->written[i]) w->written[i] = w->changed = true;
}

static void flag_arguments(writer *w, const relax_value *v)
{
    if (v->kind == RX_V_CALL_DPS && v->u.callee) {
        const rx_prim *p = v->u.callee->prim;
        rx_access *acc = RX_NEWN(w->e->a, rx_access, p->nparams + 1);
        rx_prim_access(p, acc);
        for (uint32_t i = 0; i < v->nargs && i < p->nparams; i++)
            if (acc[i].writes) flag(w, v->args[i]);
    } else if (v->kind == RX_V_CALL) {
        const bool *callee =
            v->args[0]->kind == RX_V_FUNC ? rx_map_get(&w->e->writes, RX_KEY(v->args[0]->u.callee)) : NULL;
        for (uint32_t i = 1; i < v->nargs; i++)
            if (!callee || callee[i - 1]) flag(w, v->args[i]);
    }
}

static void walk(writer *w, const rx_body *b)
{
    for (const rx_iblock *bl = b->first; bl; bl = bl->next)
        for (relax_value *v = bl->first; v; v = v->next) {
            rx_effect e = rx_v_effect(v);
            flag_arguments(w, v);
            for (uint32_t i = 0; i < v->nargs; i++)
                if (v->args[i] && (e.alias == -2 || e.alias == (int32_t)i)) join(w, v, v->args[i]);
            if (v->kind != RX_V_IF) continue;
            walk(w, v->u.branch.then);
            walk(w, v->u.branch.other);
            if (v->u.branch.then->result) join(w, v, v->u.branch.then->result);
            if (v->u.branch.other->result) join(w, v, v->u.branch.other->result);
        }
}

static bool look(vm_emit *e, relax_function *f)
{
    writer w = { .e = e, .f = f, .words = f->nparams / 64 + 1 };
    w.sets = RX_NEWN(e->a, uint64_t *, e->m->next_id + 1);
    w.written = rx_map_get(&e->writes, RX_KEY(f));
    for (uint32_t i = 0; i < f->nparams; i++) {
        uint64_t *s = w.sets[f->params[i]->id] = RX_NEWN(e->a, uint64_t, w.words);
        s[i / 64] |= 1ull << (i % 64);
    }
    walk(&w, &f->body);
    return w.changed;
}

void vm_find_writes(vm_emit *e)
{
    rx_map_init(&e->writes, e->a);
    for (relax_function *f = e->m->first; f; f = f->next)
        if (!f->is_prim) rx_map_put(&e->writes, RX_KEY(f), RX_NEWN(e->a, bool, f->nparams + 1));
    for (bool again = true; again;) {
        again = false;
        for (relax_function *f = e->m->first; f; f = f->next)
            if (!f->is_prim && f->nparams) again |= look(e, f);
    }
}
