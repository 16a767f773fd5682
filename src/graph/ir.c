/* ir.c: modules and functions: creation, look-up, removal, deep copy, exchange.
 *
 * A module owns all its functions and values through its arena. Annotations, symbols and expressions belong to the
 * context, so a copy shares the symbols of graph functions with the original; prim funcs are copied with symbols of
 * their own, because loads refer to buffers. The cache of legalized prim funcs is not copied. A removed function has
 * mod == NULL. Traps: maps and facts remember the arena they grow in; whoever moves them to another module tells them.
 */
#include "graph/graph.h"

static void module_open(relax_module *m, relax_context *ctx)
{
    m->magic = RX_MOD_MAGIC;
    m->ctx = ctx;
    m->props = RX_M_NORMAL;
    m->next_id = 1;
    rx_arena_init(&m->arena, &ctx->heap);
    rx_map_init(&m->by_name, &m->arena);
    rx_map_init(&m->prim_cache, &m->arena);
}

relax_module *rx_module_new(relax_context *ctx)
{
    relax_module *m = rx_heap_alloc(&ctx->heap, sizeof *m, _Alignof(relax_module));
    if (!m)
        rx_heap_oom(&ctx->heap);
    memset(m, 0, sizeof *m);
    module_open(m, ctx);
    return m;
}

void rx_module_free(relax_module *m)
{
    if (!m)
        return;
    rx_heap *h = &m->ctx->heap;
    rx_arena_free(&m->arena);
    m->magic = 0;
    rx_heap_free(h, m, sizeof *m);
}

relax_function *rx_module_get(relax_module *m, const char *name)
{
    return rx_map_get(&m->by_name, RX_KEY(rx_str(m->ctx, name)));
}

static void add_function(relax_module *m, relax_function *f)
{
    f->mod = m;
    if (m->last)
        m->last->next = f;
    else
        m->first = f;
    m->last = f;
    rx_map_put(&m->by_name, RX_KEY(f->name), f);
}

static const char *free_name(relax_module *m, const char *name)
{
    size_t n = strlen(name);
    bool star = n && name[n - 1] == '*';
    const char *base = rx_strn(m->ctx, name, star ? n - 1 : n);
    if (!*base)
        rx_fail(m->ctx, RXE_BAD_VALUE, NULL, "a function needs a name");
    if (!rx_module_get(m, base))
        return base;
    if (!star)
        rx_fail(m->ctx, RXE_DUPLICATE, NULL, "the module has a function %s already", base);
    for (uint32_t k = 1;; k++) {
        const char *s = rx_strf(m->ctx, "%s_%u", base, k);
        if (!rx_module_get(m, s))
            return s;
    }
}

relax_function *rx_function_new(relax_module *m, const char *name)
{
    const char *unique = free_name(m, name);
    relax_function *f = RX_NEW(&m->arena, relax_function);
    f->name = unique;
    f->pure = true;
    f->body.fn = f;
    rx_map_init(&f->symtab, &m->arena);
    f->facts = rx_facts_new(m->ctx, &m->arena, NULL);
    add_function(m, f);
    return f;
}

relax_function *rx_function_new_prim(relax_module *m, const char *name, rx_prim *p)
{
    const char *unique = free_name(m, name);
    relax_function *f = RX_NEW(&m->arena, relax_function);
    f->name = unique;
    f->is_prim = true;
    f->pure = true;
    f->prim = p;
    p->name = unique;
    rx_map_init(&f->symtab, &m->arena);
    add_function(m, f);
    return f;
}

/* The removed function stays in the arena: values that name it are a break that the verifier reports. */
void rx_module_remove(relax_module *m, relax_function *f)
{
    relax_function *prev = NULL;
    for (relax_function *p = m->first; p && p != f; p = p->next)
        prev = p;
    if (prev ? prev->next != f : m->first != f)
        return;
    if (prev)
        prev->next = f->next;
    else
        m->first = f->next;
    if (m->last == f)
        m->last = prev;
    f->next = NULL;
    f->mod = NULL;
    rx_map_put(&m->by_name, RX_KEY(f->name), NULL);
    for (uint32_t i = 0; i < m->prim_cache.n; i++)
        if (m->prim_cache.e[i].val == f)
            m->prim_cache.e[i].val = NULL;
}

/* --- deep copy --- */

typedef struct copier {
    relax_module *to;
    rx_arena *a;
    rx_map values;                     /* old value -> new value */
    rx_map functions;
} copier;

static relax_value *copy_value(copier *c, relax_value *v);

static void *dup(rx_arena *a, const void *p, size_t n)
{
    return n ? rx_arena_dup(a, p, n) : NULL;
}

static void copy_body(copier *c, rx_body *d, const rx_body *s, relax_value *owner, relax_function *fn)
{
    d->owner = owner;
    d->fn = fn;
    for (const rx_iblock *b = s->first; b; b = b->next) {
        rx_iblock *nb = RX_NEW(c->a, rx_iblock);
        nb->dataflow = b->dataflow;
        nb->body = d;
        if (d->last)
            d->last->next = nb;
        else
            d->first = nb;
        d->last = nb;
        for (relax_value *v = b->first; v; v = v->next)
            rx_v_append(nb, copy_value(c, v));
    }
    d->result = s->result ? copy_value(c, s->result) : NULL;
}

static rx_const *copy_const(copier *c, const rx_const *k)
{
    rx_const *d = rx_arena_dup(c->a, k, sizeof *k);
    d->dims = dup(c->a, k->dims, k->ndim * sizeof *k->dims);
    void *data = rx_arena_alloc(c->a, k->bytes ? k->bytes : 1, 64);
    if (k->bytes)
        memcpy(data, k->data, k->bytes);
    d->data = data;
    return d;
}

static void copy_parts(copier *c, relax_value *n, const relax_value *v)
{
    relax_function *fn = n->fn;
    n->args = dup(c->a, v->args, v->nargs * sizeof *v->args);
    for (uint32_t i = 0; i < v->nargs; i++)
        n->args[i] = v->args[i] ? copy_value(c, v->args[i]) : NULL;
    n->attrs = rx_attrs_copy(c->to->ctx, c->a, &v->attrs);
    n->syms = dup(c->a, v->syms, v->nsyms * sizeof *v->syms);
    n->inplace = dup(c->a, v->inplace, v->ninplace * sizeof *v->inplace);
    n->checks = dup(c->a, v->checks, v->nchecks * sizeof *v->checks);
    if (v->kind == RX_V_CONST) {
        n->u.data = copy_const(c, v->u.data);
    } else if (v->kind == RX_V_FUNC || v->kind == RX_V_CALL_TIR || v->kind == RX_V_CALL_TIR_INPLACE ||
               v->kind == RX_V_CALL_DPS) {
        if (v->u.callee)
            n->u.callee = rx_map_get(&c->functions, RX_KEY(v->u.callee));
    } else if (v->kind == RX_V_IF) {
        n->u.branch.then = RX_NEW(c->a, rx_body);
        n->u.branch.other = RX_NEW(c->a, rx_body);
        copy_body(c, n->u.branch.then, v->u.branch.then, n, fn);
        copy_body(c, n->u.branch.other, v->u.branch.other, n, fn);
    }
}

static relax_value *copy_value(copier *c, relax_value *v)
{
    relax_value *n = rx_map_get(&c->values, RX_KEY(v));
    if (n)
        return n;
    n = rx_arena_dup(c->a, v, sizeof *v);
    rx_map_put(&c->values, RX_KEY(v), n);
    n->block = NULL;
    n->prev = n->next = NULL;
    n->fn = v->fn ? rx_map_get(&c->functions, RX_KEY(v->fn)) : NULL;
    copy_parts(c, n, v);
    return n;
}

static void copy_function_head(copier *c, const relax_function *f)
{
    relax_context *ctx = c->to->ctx;
    relax_function *n;
    if (f->is_prim) {
        rx_tb t = {ctx, c->a};
        n = rx_function_new_prim(c->to, f->name, rx_prim_copy(&t, f->prim, f->name));
    } else {
        n = rx_function_new(c->to, f->name);
    }
    n->is_private = f->is_private;
    n->pure = f->pure;
    n->ret = f->ret;
    n->arena_bytes = f->arena_bytes;
    n->attrs = rx_attrs_copy(ctx, c->a, &f->attrs);
    for (uint32_t i = 0; i < f->symtab.n; i++)
        rx_map_put(&n->symtab, f->symtab.e[i].key, f->symtab.e[i].val);
    for (uint32_t i = 0; i < f->syms.n; i++)
        rx_push(c->a, &n->syms, f->syms.at[i]);
    for (uint32_t i = 0; i < f->fact_list.n; i++)
        rx_fn_fact(n, f->fact_list.at[i]);
    rx_map_put(&c->functions, RX_KEY(f), n);
}

static void copy_module(relax_module *to, relax_module *m)
{
    copier c = {.to = to, .a = &to->arena};
    rx_arena *scratch = rx_scratch(&to->ctx->heap);
    rx_map_init(&c.values, scratch);
    rx_map_init(&c.functions, scratch);
    for (relax_function *f = m->first; f; f = f->next)
        copy_function_head(&c, f);
    relax_function *n = to->first;
    for (relax_function *f = m->first; f; f = f->next, n = n->next) {
        if (f->is_prim)
            continue;
        n->nparams = f->nparams;
        n->params = RX_NEWN(c.a, relax_value *, f->nparams);
        for (uint32_t i = 0; i < f->nparams; i++)
            n->params[i] = copy_value(&c, f->params[i]);
        copy_body(&c, &n->body, &f->body, NULL, n);
    }
    to->props = m->props;
    to->next_id = m->next_id;
}

relax_module *rx_module_clone(relax_module *m)
{
    rx_frame fr;
    relax_module *to = rx_module_new(m->ctx);
    if (RX_ENTER(&m->ctx->heap, &fr)) {
        copy_module(to, m);
        rx_leave(&m->ctx->heap, &fr);
        return to;
    }
    rx_module_free(to);
    rx_unwind(&m->ctx->heap);
}

/* --- exchange --- */

static void rehome(relax_module *m)
{
    m->by_name.a = &m->arena;
    m->prim_cache.a = &m->arena;
    for (relax_function *f = m->first; f; f = f->next) {
        f->mod = m;
        f->symtab.a = &m->arena;
        if (f->facts)
            rx_facts_rehome(f->facts, &m->arena);
        if (f->is_prim && f->prim->facts)
            rx_facts_rehome(f->prim->facts, &m->arena);
    }
}

void rx_module_swap(relax_module *a, relax_module *b)
{
    relax_module t = *a;
    *a = *b;
    *b = t;
    rehome(a);
    rehome(b);
}
