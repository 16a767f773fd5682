/* plan_memory.c: a static plan for the tensors of a function.
 *
 * Every allocation that does not escape (is not returned, not handed to a function that may keep it) gets an offset in
 * one arena of the function. Lifetimes are intervals of positions in program order (bodies of an IF lie behind it, so
 * its branches are intervals too) of classes of values that may share memory (alias.c). Storages are recycled greedily:
 * a dead storage is taken when its size is proved equal to what is needed, else when it is proved at least as large,
 * the smallest such constant first; else a new one is added at the end. Offsets are therefore prefix sums of storage
 * sizes, symbolic where sizes are; rx_plan_check verifies the outcome by another road.
 *
 * Alignment: every storage is rounded up to 64 bytes. */
#include "pass/private.h"

enum { ALIGN = 64 };

typedef struct life { int32_t to; bool escapes; } life;        /* of a class: position of the last use */
typedef struct planner {
    rx_pass_run *r;
    relax_function *f;
    rx_valvec all;
    rx_alias alias;
    life *of;                          /* by class */
    rx_map fits;                       /* (needed, storage) -> 1 + proved; sizes repeat often */
} planner;

static life *life_of(planner *p, const relax_value *v) { return &p->of[rx_pass_alias_of(&p->alias, v)]; }

static void use(planner *p, const relax_value *v, int32_t at)
{
    if (v) life_of(p, v)->to = RX_MAX(life_of(p, v)->to, at);
}

/* the position of the last binding of b, bodies within included */
static int32_t end_of(const int32_t *pos, const rx_body *b)
{
    const relax_value *v = NULL;
    for (const rx_iblock *bl = b->first; bl; bl = bl->next)
        if (bl->last) v = bl->last;
    if (!v) return -1;
    if (v->kind != RX_V_IF) return pos[v->id];
    return RX_MAX(pos[v->id], RX_MAX(end_of(pos, v->u.branch.then), end_of(pos, v->u.branch.other)));
}

static void lifetimes(planner *p)
{
    uint32_t n = p->r->m->next_id + 1;
    int32_t *pos = RX_NEWN(p->r->a, int32_t, n);
    p->of = RX_NEWN(p->r->a, life, n);
    for (uint32_t i = 0; i < p->all.n; i++) {
        relax_value *v = p->all.at[i];
        pos[v->id] = (int32_t)i;
        use(p, v, (int32_t)i);
        for (uint32_t k = 0; k < v->nargs; k++) {
            use(p, v->args[k], (int32_t)i);
            /* a host function may keep what it is given */
            if (v->args[k] && v->kind == RX_V_CALL_PACKED) life_of(p, v->args[k])->escapes = true;
        }
    }
    for (uint32_t i = 0; i < p->all.n; i++) {          /* results of bodies are taken at their end */
        relax_value *v = p->all.at[i];
        if (v->kind != RX_V_IF) continue;
        use(p, v->u.branch.then->result, end_of(pos, v->u.branch.then));
        use(p, v->u.branch.other->result, end_of(pos, v->u.branch.other));
    }
    if (p->f->body.result) life_of(p, p->f->body.result)->escapes = true;
}

/* ---- sizes ---- */
/* A dim may be negative until the obligations of its binding were checked; the arena is taken before. */
static rx_ex aligned_bytes(relax_context *ctx, const rx_facts *facts, rx_ty t)
{
    rx_ex b = rx_ty_bytes(ctx, t), zero = rx_int(ctx, 0);
    int64_t coeff, base;
    if (rx_prove_le(ctx, facts, zero, b) != RX_TRUE) b = rx_max(ctx, b, zero);
    rx_modular(ctx, NULL, b, &coeff, &base);
    if (coeff && coeff % ALIGN == 0 && base % ALIGN == 0) return b;
    return rx_muli(ctx, rx_divi(ctx, rx_addi(ctx, b, ALIGN - 1), ALIGN), ALIGN);
}

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

/* ---- storages ---- */
typedef struct storage { rx_ex bytes; int32_t free_at; RX_VEC(relax_value *) users; } storage;

static bool fits(planner *p, rx_ex need, rx_ex bytes)
{
    uint64_t key = (uint64_t)need->id << 32 | bytes->id;
    uintptr_t known = (uintptr_t)rx_map_get(&p->fits, key);
    if (!known) {
        known = 1 + (rx_prove_le(p->r->ctx, p->f->facts, need, bytes) == RX_TRUE);
        rx_map_put(&p->fits, key, (void *)known);
    }
    return known == 2;
}

/* nothing in s is alive together with v, whose position is from */
static bool free_for(planner *p, const storage *s, const relax_value *v, int32_t from)
{
    if (s->free_at < from) return true;
    for (uint32_t i = 0; i < s->users.n; i++)
        if (life_of(p, s->users.at[i])->to >= from && !rx_pass_exclusive(s->users.at[i], v)) return false;
    return true;
}

static int64_t pick(planner *p, storage *s, uint32_t n, rx_ex need, const relax_value *v, int32_t from)
{
    int64_t best = -1, best_size = INT64_MAX;
    for (uint32_t i = 0; i < n; i++) {
        int64_t have;
        if (s[i].free_at >= from && (!v->block->body->owner || !free_for(p, &s[i], v, from))) continue;
        if (s[i].bytes == need) return i;
        if (!fits(p, need, s[i].bytes)) continue;
        if (!rx_is_int(s[i].bytes, &have)) have = INT64_MAX - 1;
        if (have < best_size) { best = i; best_size = have; }
    }
    return best;
}

static void plan(rx_pass_run *r, relax_function *f)
{
    planner p = { .r = r, .f = f, .all = rx_pass_bindings(r, f) };
    p.alias = rx_pass_alias(r, &p.all);
    rx_map_init(&p.fits, r->a);
    lifetimes(&p);
    entry_syms known;
    entry_symbols(&p, &known);
    RX_VEC(storage) st = { 0 };
    bool reuse = rx_pass_bool(r, "reuse", true);
    for (uint32_t i = 0; i < p.all.n; i++) {
        relax_value *v = p.all.at[i];
        if (v->kind != RX_V_ALLOC) continue;
        v->u.alloc.arena = false;      /* of an older plan */
        v->u.alloc.offset = NULL;
        const life *l = life_of(&p, v);
        rx_ex need = aligned_bytes(r->ctx, f->facts, v->type);
        known.all = true;
        rx_visit(r->ctx, need, check_known, &known);
        if (l->escapes || !known.all) continue;
        int64_t k = reuse ? pick(&p, st.at, st.n, need, v, (int32_t)i) : -1;
        if (k < 0) {
            storage s = { .bytes = need, .free_at = -1 };
            k = st.n;
            rx_push(r->a, &st, s);
        }
        st.at[k].free_at = RX_MAX(st.at[k].free_at, l->to);
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
