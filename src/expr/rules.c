/* rules.c: matching and applying the rules of rules.def.
 *
 * The lines are parsed once for a context, into canonical nodes over pattern symbols (named "?x": no user name can
 * be so). Matching is first order with commutative operators tried both ways; sums are matched term by term with a
 * common factor. A constant symbol inside a product (x//c*c) stands in the coefficient of the subject's term. */
#include "expr/impl.h"

#define RX_RULE_VARS 26                /* one for each letter */

typedef struct rule { rx_ex lhs, rhs, cond; const char *text; } rule;
struct rx_rules {
    rule *r;
    uint32_t n;
    rx_ex var[RX_RULE_VARS];
    /* rules by the operator of their left side, in the order of the file */
    uint32_t first[RX_EX_COUNT], count[RX_EX_COUNT];
    uint32_t *by_op;
};
typedef struct bindings { rx_ex v[RX_RULE_VARS]; } bindings;

static const char *const texts[][3] = {
#define RULE(lhs, rhs, cond) {lhs, rhs, cond},
#include "expr/rules.def"
#undef RULE
};

uint32_t rx_rule_count(void) { return RX_COUNT(texts); }
const char *const *rx_rule_text(uint32_t i) { return texts[i]; }
bool rx_rule_is_const(char c) { return c >= 'a' && c <= 'd'; }
bool rx_rule_is_bool(char c) { return c >= 'p' && c <= 'r'; }

static rx_ex pattern_symbol(void *arg, rx_lexer *l, const char *name)
{
    struct rx_rules *s = arg;
    char n[3] = {'?', name[0], 0};
    int i = name[0] - 'a';
    if (name[1] || i < 0 || i >= RX_RULE_VARS) return NULL;
    if (!s->var[i]) s->var[i] = rx_sym_new(l->ctx, n, rx_rule_is_bool(name[0]) ? RELAX_BOOL : RELAX_I64);
    return s->var[i];
}

static struct rx_rules *rules(relax_context *ctx)
{
    rx_exprs *x = rx_expr_state(ctx);
    if (x->rules) return x->rules;
    struct rx_rules *s = RX_NEW(&ctx->arena, struct rx_rules);
    rx_scope_fns fns = {pattern_symbol, NULL, s};
    s->n = RX_COUNT(texts);
    s->r = RX_NEWN(&ctx->arena, rule, s->n);
    s->by_op = RX_NEWN(&ctx->arena, uint32_t, s->n);
    for (uint32_t i = 0; i < s->n; i++) {
        s->r[i].lhs = rx_parse_expr_text(ctx, texts[i][0], RELAX_STRLEN, &fns);
        s->r[i].rhs = rx_parse_expr_text(ctx, texts[i][1], RELAX_STRLEN, &fns);
        s->r[i].cond = texts[i][2][0] ? rx_parse_expr_text(ctx, texts[i][2], RELAX_STRLEN, &fns) : rx_bool(ctx, true);
        s->r[i].text = texts[i][0];
        s->count[s->r[i].lhs->op]++;
    }
    for (uint32_t op = 1; op < RX_EX_COUNT; op++) s->first[op] = s->first[op - 1] + s->count[op - 1];
    uint32_t at[RX_EX_COUNT];
    memcpy(at, s->first, sizeof at);
    for (uint32_t i = 0; i < s->n; i++) s->by_op[at[s->r[i].lhs->op]++] = i;
    return x->rules = s;
}

/* ---- matching ---- */
static int var_of(rx_ex p) { return p->op == RX_EX_SYM && p->u.sym->name[0] == '?' ? p->u.sym->name[1] - 'a' : -1; }
static bool is_const_var(rx_ex p) { int v = var_of(p); return v >= 0 && rx_rule_is_const((char)('a' + v)); }

static bool match(relax_context *ctx, rx_ex p, rx_ex s, bindings *b);

static bool bind(rx_ex p, rx_ex s, bindings *b)
{
    int v = var_of(p);
    if (b->v[v]) return b->v[v] == s;
    if (s->dtype != p->dtype || (is_const_var(p) && s->op != RX_EX_INT)) return false;
    b->v[v] = s;
    return true;
}

/* the factors p[0..n) against s[0..n) in some order */
static bool match_factors(relax_context *ctx, rx_ex *p, rx_ex *s, uint32_t n, bindings *b)
{
    if (!n) return true;
    for (uint32_t i = 0; i < n; i++) {
        bindings c = *b;
        rx_ex rest[4];
        uint32_t m = 0;
        if (!match(ctx, p[0], s[i], &c)) continue;
        for (uint32_t j = 0; j < n; j++)
            if (j != i) rest[m++] = s[j];
        if (match_factors(ctx, p + 1, rest, n - 1, &c)) return *b = c, true;
    }
    return false;
}

/* pattern term against subject term; *mult is the common factor, 0 while open */
static bool match_term(relax_context *ctx, rx_term p, rx_term s, int64_t *mult, bindings *b)
{
    rx_ex fp[4], fs[4], np[4];
    uint32_t n = rx_factors(p.key, fp, 4), m = 0;
    int64_t have = s.coef, need = p.coef;
    rx_ex open = NULL;
    if (n > 4) return false;
    for (uint32_t i = 0; i < n; i++) {
        if (!is_const_var(fp[i]) || n == 1) { np[m++] = fp[i]; continue; }
        rx_ex v = b->v[var_of(fp[i])];
        if (!v && open) return false;
        if (!v) open = fp[i];
        else if (!rx_mul_ok(need, v->u.i, &need)) return false;
    }
    if (m == 1 && var_of(np[0]) >= 0 && !is_const_var(np[0])) {
        if (!bind(np[0], s.key, b)) return false;          /* a variable takes the whole product */
    } else if (rx_factors(s.key, fs, 4) != m || !match_factors(ctx, np, fs, m, b)) {
        return false;
    }
    int k = open ? var_of(open) : -1;
    if (k >= 0 && b->v[k]) {                               /* a constant bound by the factors themselves */
        if (!rx_mul_ok(need, b->v[k]->u.i, &need)) return false;
        open = NULL;
    }
    if (!need || have == INT64_MIN || have % need) return false;
    int64_t q = have / need;
    if (open) {
        if (!*mult) *mult = 1;
        return q != INT64_MIN && q % *mult == 0 && bind(open, rx_int(ctx, q / *mult), b);
    }
    if (!*mult) *mult = q;
    return q == *mult;
}

/* pattern terms p[i..n) against unused subject terms */
static bool match_terms(relax_context *ctx, const rx_terms *p, uint32_t i, const rx_terms *s, bool *used, int64_t *mult,
                        bindings *b)
{
    if (i == p->n) return true;
    for (uint32_t j = 0; j < s->n; j++) {
        bindings c = *b;
        int64_t m = *mult;
        if (used[j] || !match_term(ctx, p->t[i], s->t[j], &m, &c)) continue;
        used[j] = true;
        if (match_terms(ctx, p, i + 1, s, used, &m, &c)) return *b = c, *mult = m, true;
        used[j] = false;
    }
    return false;
}

static bool has_const_factor(rx_ex key)
{
    rx_ex f[4];
    uint32_t n = rx_factors(key, f, 4);
    for (uint32_t i = 0; i < n && i < 4; i++)
        if (is_const_var(f[i])) return true;
    return false;
}

/* terms that settle the constants first: quotients and the like before plain variables */
static void order_pattern(rx_terms *p)
{
    for (uint32_t i = 1; i < p->n; i++)
        for (uint32_t j = i; j > 0; j--) {
            int x = has_const_factor(p->t[j - 1].key) + 2 * (var_of(p->t[j - 1].key) >= 0);
            int y = has_const_factor(p->t[j].key) + 2 * (var_of(p->t[j].key) >= 0);
            if (y >= x) break;
            rx_term t = p->t[j];
            p->t[j] = p->t[j - 1];
            p->t[j - 1] = t;
        }
}

#define RX_RULE_TERMS 24               /* sums with more terms are not searched for rules */

/* rest: what the pattern did not take (NULL: it must take all); *mult: common factor */
static bool match_sum(relax_context *ctx, rx_ex pat, rx_ex sub, bindings *b, int64_t *mult, rx_ex *rest)
{
    rx_arena *tmp = rx_temp(ctx);
    rx_terms p, s;
    bool used[RX_RULE_TERMS] = {false};
    rx_terms_of(pat, tmp, &p);
    rx_terms_of(sub, tmp, &s);
    if (s.n < p.n || s.n > RX_RULE_TERMS || (!rest && s.n != p.n)) return false;
    order_pattern(&p);
    int64_t m = rest ? 0 : 1, k;
    if (!match_terms(ctx, &p, 0, &s, used, &m, b)) return false;
    if (!rx_mul_ok(m, p.k, &k) || (!rest && k != s.k)) return false;
    if (mult) *mult = m;
    if (!rest) return true;
    *rest = rx_int(ctx, s.k);
    if (!rx_sub_ok(s.k, k, &k)) return false;
    *rest = rx_int(ctx, k);
    for (uint32_t j = 0; j < s.n; j++)
        if (!used[j]) *rest = rx_index_add(ctx, *rest, rx_scale(ctx, s.t[j].key, s.t[j].coef));
    return true;
}

static bool commutes(uint8_t op)
{
    return op == RX_EX_MIN || op == RX_EX_MAX || op == RX_EX_AND || op == RX_EX_OR || op == RX_EX_EQ || op == RX_EX_NE;
}

static bool match(relax_context *ctx, rx_ex p, rx_ex s, bindings *b)
{
    if (var_of(p) >= 0) return bind(p, s, b);
    if (p == s) return true;
    if (!(p->flags & RX_EX_HAS_SYM)) return false;
    if (rx_is_sum(p)) {
        /* x + a: the constant stands apart, whichever way the pattern was ordered */
        int k = is_const_var(p->a[1]);
        if (k != is_const_var(p->a[0]))
            return rx_is_sum(s) && s->a[1]->op == RX_EX_INT && match(ctx, p->a[k], s->a[1], b) &&
                   match(ctx, p->a[1 - k], s->a[0], b);
        return match_sum(ctx, p, s, b, NULL, NULL);
    }
    if (rx_is_prod(p)) {
        int64_t one = 1;
        return s->op != RX_EX_INT && !rx_is_sum(s) && match_term(ctx, rx_term_of(p), rx_term_of(s), &one, b);
    }
    if (p->op != s->op || p->nargs != s->nargs || p->flags != (s->flags | RX_EX_HAS_SYM) || p->intrin != s->intrin)
        return false;
    bindings c = *b;
    bool ok = true;
    for (uint32_t i = 0; i < p->nargs && ok; i++) ok = match(ctx, p->a[i], s->a[i], &c);
    if (ok) return *b = c, true;
    if (!commutes(p->op)) return false;
    c = *b;
    if (!match(ctx, p->a[0], s->a[1], &c) || !match(ctx, p->a[1], s->a[0], &c)) return false;
    return *b = c, true;
}

/* two operands of an associative operator; *rest: the others, or NULL */
static bool match_pair(relax_context *ctx, rx_ex p, rx_ex s, bindings *b, rx_ex *rest, uint32_t skip)
{
    rx_ex x[16];
    uint32_t n = rx_operands(s, s->op, x, 16);
    if (n > 16) return false;
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t j = 0; j < n; j++) {
            bindings c = {{0}};
            if (i == j || !match(ctx, p->a[0], x[i], &c) || !match(ctx, p->a[1], x[j], &c) || skip-- > 0) continue;
            *rest = NULL;
            for (uint32_t k = 0; k < n; k++)
                if (k != i && k != j) *rest = *rest ? rx_binary(ctx, s->op, *rest, x[k]) : x[k];
            *b = c;
            return true;
        }
    return false;
}

static rx_ex instantiate(relax_context *ctx, struct rx_rules *s, rx_ex e, const bindings *b)
{
    rx_map m;
    rx_map_init(&m, rx_temp(ctx));
    for (int i = 0; i < RX_RULE_VARS; i++)
        if (b->v[i] && s->var[i]) rx_map_put(&m, RX_KEY(s->var[i]), (void *)(uintptr_t)b->v[i]);
    return rx_subst(ctx, e, &m);
}

static bool holds(relax_context *ctx, const rx_facts *f, rx_ex cond, int *proofs)
{
    if (cond->op == RX_EX_INT) return cond->u.i;
    rx_range r = rx_range_of(ctx, f, cond);
    if (r.lo == r.hi) return r.lo == 1;
    if (*proofs <= 0 || cond->size > 200) return false;
    --*proofs;
    return rx_prove_with(ctx, f, cond, RX_EFFORT_QUICK, NULL) == RX_TRUE;
}

static rx_ex apply(relax_context *ctx, struct rx_rules *s, const rule *r, const rx_facts *f, rx_ex e, int *proofs)
{
    bindings b = {{0}};
    rx_ex rest = NULL;
    int64_t mult = 0;
    if (rx_is_sum(r->lhs)) {
        if (!match_sum(ctx, r->lhs, e, &b, &mult, &rest)) return NULL;
        if (!holds(ctx, f, instantiate(ctx, s, r->cond, &b), proofs)) return NULL;
        return rx_index_add(ctx, rest, rx_index_mul(ctx, instantiate(ctx, s, r->rhs, &b), rx_int(ctx, mult)));
    }
    bool pair = e->op == RX_EX_MIN || e->op == RX_EX_MAX || e->op == RX_EX_AND || e->op == RX_EX_OR;
    for (uint32_t k = 0; k < (pair ? 6 : 1); k++) {
        b = (bindings){{0}};
        if (pair ? !match_pair(ctx, r->lhs, e, &b, &rest, k) : !match(ctx, r->lhs, e, &b)) return NULL;
        if (!holds(ctx, f, instantiate(ctx, s, r->cond, &b), proofs)) continue;
        rx_ex x = instantiate(ctx, s, r->rhs, &b);
        return rest ? rx_binary(ctx, e->op, x, rest) : x;
    }
    return NULL;
}

rx_ex rx_apply_rules(relax_context *ctx, const rx_facts *f, rx_ex e, int *proofs)
{
    struct rx_rules *s = rules(ctx);
    if (!rx_is_index(e)) return e;
    for (uint32_t i = 0; i < s->count[e->op]; i++) {
        rx_ex r = apply(ctx, s, &s->r[s->by_op[s->first[e->op] + i]], f, e, proofs);
        if (r && r != e) return r;
    }
    return e;
}

bool rx_rule_fires(relax_context *ctx, uint32_t i, const rx_facts *f, rx_ex e)
{
    int proofs = 8;
    struct rx_rules *s = rules(ctx);
    rx_ex r = s->r[i].lhs->op == e->op ? apply(ctx, s, &s->r[i], f, e, &proofs) : NULL;
    return r && r != e;
}
