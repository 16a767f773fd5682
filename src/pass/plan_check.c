/* plan_check.c: checks a memory plan by another road than the planner took.
 *
 * For each value the set of arena allocations that it may point into is propagated forward through the effects table
 * (no union-find, no classes); an allocation is alive from its binding to the last binding that touches a value
 * pointing into it. Two allocations alive at one position must lie apart: offset + size <= other's offset proved from
 * the symbols' bounds, or, where the prover does not know, true for sample values of the symbols. Also: everything lies
 * inside arena_bytes, and nothing that points into the arena is returned, or given to a host function, which may keep
 * it. */
#include "pass/private.h"

typedef struct checker {
    relax_context *ctx;
    relax_function *f;
    rx_arena *a;
    rx_valvec allocs;
    int32_t at;                        /* position of the binding that is looked at */
    uint64_t **sets;                   /* by value id: bits over allocs, NULL: none */
    uint32_t words, breaks;
    int32_t *from, *to;                /* by alloc */
} checker;

static void join(checker *c, uint32_t into, uint32_t from)
{
    if (!c->sets[from]) return;
    if (!c->sets[into]) c->sets[into] = RX_NEWN(c->a, uint64_t, c->words);
    for (uint32_t w = 0; w < c->words; w++) c->sets[into][w] |= c->sets[from][w];
}

static void touch(checker *c, const relax_value *v)
{
    if (!v || !c->sets[v->id]) return;
    for (uint32_t k = 0; k < c->allocs.n; k++)
        if (c->sets[v->id][k / 64] >> (k % 64) & 1) c->to[k] = RX_MAX(c->to[k], c->at);
}

static void complain(checker *c, const relax_value *v, const char *text)
{
    rx_where w = { .function = c->f->name, .binding = v ? v->name : NULL };
    rx_report(c->ctx, RXE_VERIFY, &w, NULL, "memory plan: %s", text);
    c->breaks++;
}

static rx_ex bytes_of(checker *c, rx_ty t)
{
    rx_ex n = rx_int(c->ctx, (int64_t)rx_dtype_bytes(t->dtype));
    for (int32_t i = 0; i < t->ndim; i++) n = rx_mul(c->ctx, n, t->dims[i]);
    return n;
}

/* cond holds for sample values of its symbols that obey the function's facts */
static bool holds_sampled(checker *c, rx_ex cond)
{
    static const int64_t samples[] = { 0, 1, 2, 3, 7, 16, 17, 64, 1000, 4096 };
    rx_exvec syms = { 0 };
    rx_free_syms(c->ctx, c->a, cond, &syms);
    int64_t *val = RX_NEWN(c->a, int64_t, syms.n + 1);
    for (uint32_t trial = 0; trial < 200; trial++) {
        rx_map env;
        rx_map_init(&env, c->a);
        for (uint32_t i = 0; i < syms.n; i++) {
            rx_sym *s = rx_sym_of(syms.at[i]);
            val[i] = samples[(trial * (i * 3 + 1) + i) % RX_COUNT(samples)];
            val[i] = RX_MAX(RX_MIN(val[i], s->hi), RX_MAX(s->lo, 0));
            rx_map_put(&env, RX_KEY(syms.at[i]), &val[i]);
        }
        int64_t ok;
        bool possible = true;
        for (uint32_t k = 0; k < c->f->fact_list.n && possible; k++)
            possible = rx_eval(c->ctx, c->f->fact_list.at[k], &env, &ok) != RX_EVAL_OK || ok;
        if (possible && rx_eval(c->ctx, cond, &env, &ok) == RX_EVAL_OK && !ok) return false;
    }
    return true;
}

static bool certain(checker *c, rx_ex cond)
{
    rx_truth t = rx_prove(c->ctx, c->f->facts, cond, NULL);
    return t == RX_TRUE || (t == RX_UNKNOWN && holds_sampled(c, cond));
}

static void check_pair(checker *c, uint32_t i, uint32_t k)
{
    relax_value *x = c->allocs.at[i], *y = c->allocs.at[k];
    if (c->to[i] < c->from[k] || c->to[k] < c->from[i] || rx_pass_exclusive(x, y)) return;
    rx_ex xo = x->u.alloc.offset, yo = y->u.alloc.offset;
    rx_ex apart = rx_or(c->ctx, rx_le(c->ctx, rx_add(c->ctx, xo, bytes_of(c, x->type)), yo),
                        rx_le(c->ctx, rx_add(c->ctx, yo, bytes_of(c, y->type)), xo));
    if (!certain(c, apart))
        complain(c, y, rx_strf(c->ctx, "it overlaps %s, which is alive", x->name ? x->name : "another tensor"));
}

/* the number of v among the arena's allocations, which are met in program order */
static void begin_alloc(checker *c, const relax_value *v, uint32_t *next)
{
    if (*next >= c->allocs.n || c->allocs.at[*next] != v) return;
    uint32_t k = (*next)++;
    uint64_t *s = c->sets[v->id] = RX_NEWN(c->a, uint64_t, c->words);
    s[k / 64] |= 1ull << (k % 64);
    c->from[k] = c->to[k] = c->at;
}

static void walk(checker *c, const rx_body *b, uint32_t *next);

static void branches(checker *c, relax_value *v, uint32_t *next)
{
    rx_body *b[2] = { v->u.branch.then, v->u.branch.other };
    for (int i = 0; i < 2; i++) {
        walk(c, b[i], next);
        touch(c, b[i]->result);
    }
    for (int i = 0; i < 2; i++)
        if (b[i]->result) join(c, v->id, b[i]->result->id);
}

static void walk(checker *c, const rx_body *b, uint32_t *next)
{
    for (const rx_iblock *bl = b->first; bl; bl = bl->next)
        for (relax_value *v = bl->first; v; v = v->next) {
            rx_effect e = rx_v_effect(v);
            c->at++;
            begin_alloc(c, v, next);
            for (uint32_t i = 0; i < v->nargs; i++) {
                if (!v->args[i]) continue;
                touch(c, v->args[i]);
                if (e.alias == -2 || e.alias == (int32_t)i) join(c, v->id, v->args[i]->id);
                if (v->kind == RX_V_CALL_PACKED && c->sets[v->args[i]->id])
                    complain(c, v, "a host function gets memory of the arena");
            }
            if (v->kind == RX_V_IF) branches(c, v, next);
        }
}

uint32_t rx_plan_check(relax_function *f)
{
    relax_context *ctx = f->mod->ctx;
    rx_pass_run r = { .ctx = ctx, .m = f->mod, .a = rx_scratch(&ctx->heap) };
    checker c = { .ctx = ctx, .f = f, .a = r.a };
    rx_valvec all = rx_pass_bindings(&r, f);
    for (uint32_t i = 0; i < all.n; i++)
        if (all.at[i]->kind == RX_V_ALLOC && all.at[i]->u.alloc.arena) rx_push(c.a, &c.allocs, all.at[i]);
    c.words = c.allocs.n / 64 + 1;
    c.sets = RX_NEWN(c.a, uint64_t *, f->mod->next_id + 1);
    c.from = RX_NEWN(c.a, int32_t, c.allocs.n + 1);
    c.to = RX_NEWN(c.a, int32_t, c.allocs.n + 1);
    uint32_t next = 0;
    walk(&c, &f->body, &next);
    for (uint32_t i = 0; i < c.allocs.n; i++) {
        relax_value *v = c.allocs.at[i];
        rx_ex end = rx_add(ctx, v->u.alloc.offset, bytes_of(&c, v->type));
        rx_ex zero = rx_int(ctx, 0), rest = rx_modi(ctx, v->u.alloc.offset, 64);
        if (!certain(&c, rx_and(ctx, rx_le(ctx, zero, v->u.alloc.offset), rx_eq(ctx, rest, zero))))
            complain(&c, v, "its offset is no multiple of 64");
        if (!f->arena_bytes || !certain(&c, rx_le(ctx, end, f->arena_bytes)))
            complain(&c, v, "it lies outside the arena");
        for (uint32_t k = i + 1; k < c.allocs.n; k++) check_pair(&c, i, k);
    }
    if (f->body.result && c.sets[f->body.result->id]) complain(&c, f->body.result, "the result lies in the arena");
    return c.breaks;
}
