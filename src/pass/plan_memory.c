/* plan_memory.c: a static plan for the tensors of a function.
 *
 * Every allocation that does not escape (is not returned, not handed to a function that may keep it) gets an offset in
 * one arena of the function. Lifetimes are intervals of positions in program order (bodies of an IF lie behind it, so
 * its branches are intervals too); memory that shares (views, casts, tuples, results of calls) is followed through
 * groups. Storages are recycled greedily: a dead storage is taken when its size is proved equal to what is needed, else
 * when it is proved at least as large, the smallest such constant first; else a new one is added at the end. Offsets
 * are therefore prefix sums of storage sizes, symbolic where sizes are; rx_plan_check verifies the outcome by another
 * road.
 *
 * Alignment: every storage is rounded up to 64 bytes. */
#include "pass/private.h"

enum { ALIGN = 64 };

typedef struct group {                 /* values that share memory */
    int32_t from, to;                  /* positions: first definition, last use */
    bool escapes;
} group;
typedef struct planner {
    rx_pass_run *r;
    relax_function *f;
    rx_valvec all;
    uint32_t *rep;                     /* union-find over value ids */
    group *g;                          /* by id of the representative */
} planner;

static uint32_t find(planner *p, uint32_t id)
{
    while (p->rep[id] != id) id = p->rep[id] = p->rep[p->rep[id]];
    return id;
}

static void unite(planner *p, relax_value *a, relax_value *b)
{
    uint32_t x = find(p, a->id), y = find(p, b->id);
    if (x == y) return;
    p->rep[y] = x;
    p->g[x].from = RX_MIN(p->g[x].from, p->g[y].from);
    p->g[x].to = RX_MAX(p->g[x].to, p->g[y].to);
    p->g[x].escapes |= p->g[y].escapes;
}

static group *group_of(planner *p, const relax_value *v) { return &p->g[find(p, v->id)]; }

static void use(planner *p, relax_value *v, int32_t at)
{
    group *g = group_of(p, v);
    g->to = RX_MAX(g->to, at);
}

/* Sharing and escaping, one rule per kind of binding. */
static void flow(planner *p, relax_value *v)
{
    rx_effect e = rx_v_effect(v);
    for (uint32_t i = 0; i < v->nargs; i++) {
        if (!v->args[i]) continue;
        if (e.alias == -2 || e.alias == (int32_t)i) unite(p, v->args[i], v);
        if (v->kind == RX_V_CALL_PACKED)
            group_of(p, v->args[i])->escapes = true; /* a host function may keep what it is given */
    }
    if (v->kind == RX_V_IF) {
        if (v->u.branch.then->result) unite(p, v->u.branch.then->result, v);
        if (v->u.branch.other->result) unite(p, v->u.branch.other->result, v);
    }
}

static void lifetimes(planner *p)
{
    uint32_t n = p->r->m->next_id + 1;
    p->rep = RX_NEWN(p->r->a, uint32_t, n);
    p->g = RX_NEWN(p->r->a, group, n);
    for (uint32_t i = 0; i < n; i++) {
        p->rep[i] = i;
        p->g[i].from = INT32_MAX;
        p->g[i].to = -1;
    }
    for (uint32_t i = 0; i < p->all.n; i++) {
        relax_value *v = p->all.at[i];
        p->g[v->id].from = p->g[v->id].to = (int32_t)i;
    }
    for (uint32_t i = 0; i < p->all.n; i++) flow(p, p->all.at[i]);
    for (uint32_t i = 0; i < p->all.n; i++)
        for (uint32_t k = 0; k < p->all.at[i]->nargs; k++)
            if (p->all.at[i]->args[k]) use(p, p->all.at[i]->args[k], (int32_t)i);
    /* the result of a branch is alive to the end of the IF's bodies: where its value was taken */
    for (uint32_t i = 0; i < p->all.n; i++) {
        relax_value *v = p->all.at[i];
        if (v->kind != RX_V_IF) continue;
        for (int s = 0; s < 2; s++) {
            rx_body *b = s ? v->u.branch.other : v->u.branch.then;
            if (b->result && b->last && b->last->last) use(p, b->result, group_of(p, b->last->last)->from);
        }
    }
    if (p->f->body.result) group_of(p, p->f->body.result)->escapes = true;
}

/* ---- sizes ---- */
static rx_ex tensor_bytes(relax_context *ctx, rx_ty t)
{
    rx_ex n = rx_int(ctx, (int64_t)rx_dtype_bytes(t->dtype));
    for (int32_t i = 0; i < t->ndim; i++) n = rx_mul(ctx, n, t->dims[i]);
    return n;
}

static rx_ex aligned_bytes(relax_context *ctx, rx_ty t)
{
    rx_ex b = tensor_bytes(ctx, t);
    int64_t coeff, base;
    rx_modular(ctx, NULL, b, &coeff, &base);
    if (coeff && coeff % ALIGN == 0 && base % ALIGN == 0) return b;
    return rx_muli(ctx, rx_divi(ctx, rx_addi(ctx, b, ALIGN - 1), ALIGN), ALIGN);
}

typedef struct storage { rx_ex bytes; int32_t free_at; RX_VEC(relax_value *) users; } storage;

/* A symbol is known at entry only if the parameters define it: sizes with others (match_cast) cannot be in the arena.
 */
typedef struct entry_syms { rx_map known; bool all; } entry_syms;
static void check_known(void *arg, rx_ex e)
{
    entry_syms *s = arg;
    if (rx_sym_of(e) && !rx_map_has(&s->known, RX_KEY(e))) s->all = false;
}

static void entry_symbols(planner *p, entry_syms *s)
{
    rx_exvec syms = { 0 };
    rx_map_init(&s->known, p->r->a);
    for (uint32_t i = 0; i < p->f->nparams; i++) rx_ty_free_syms(p->r->ctx, p->r->a, p->f->params[i]->type, &syms);
    for (uint32_t i = 0; i < syms.n; i++) rx_map_put(&s->known, RX_KEY(syms.at[i]), (void *)syms.at[i]);
}

static int64_t pick(planner *p, storage *s, uint32_t n, rx_ex need, int32_t from)
{
    int64_t best = -1, best_size = INT64_MAX;
    for (uint32_t i = 0; i < n; i++) {
        int64_t have;
        if (s[i].free_at >= from) continue;
        if (s[i].bytes == need) return i;
        if (rx_prove_le(p->r->ctx, p->f->facts, need, s[i].bytes) != RX_TRUE) continue;
        if (!rx_is_int(s[i].bytes, &have)) have = INT64_MAX - 1;
        if (have < best_size) { best = i; best_size = have; }
    }
    return best;
}

static void plan(rx_pass_run *r, relax_function *f)
{
    planner p = { r, f, rx_pass_bindings(r, f), NULL, NULL };
    lifetimes(&p);
    entry_syms known;
    entry_symbols(&p, &known);
    RX_VEC(storage) st = { 0 };
    bool reuse = rx_pass_bool(r, "reuse", true);
    for (uint32_t i = 0; i < p.all.n; i++) {
        relax_value *v = p.all.at[i];
        group *g = group_of(&p, v);
        if (v->kind != RX_V_ALLOC || g->escapes || v->type->kind != RX_TY_TENSOR || !v->type->known) continue;
        rx_ex need = aligned_bytes(r->ctx, v->type);
        known.all = true;
        rx_visit(r->ctx, need, check_known, &known);
        if (!known.all) continue;
        int64_t k = reuse ? pick(&p, st.at, st.n, need, (int32_t)i) : -1;
        if (k < 0) {
            storage s = { .bytes = need };
            k = st.n;
            rx_push(r->a, &st, s);
        }
        st.at[k].free_at = g->to;
        rx_push(r->a, &st.at[k].users, v);
    }
    rx_exvec sizes = { 0 };
    for (uint32_t k = 0; k < st.n; k++) {
        rx_ex offset = rx_sum(r->ctx, sizes.at, sizes.n);
        for (uint32_t i = 0; i < st.at[k].users.n; i++) {
            st.at[k].users.at[i]->u.alloc.arena = true;
            st.at[k].users.at[i]->u.alloc.offset = offset;
        }
        rx_push(r->a, &sizes, st.at[k].bytes);
    }
    f->arena_bytes = rx_sum(r->ctx, sizes.at, sizes.n);
}

void rx_pass_plan_memory(rx_pass_run *r) { rx_pass_each(r, plan); }
