/* parse.c: modules from text. Grammar in docs/text-form.md.
 *
 * Two passes over the text, so that functions may call each other in any order: the first reads tensor programs and the
 * heads of functions and skips their bodies, the second reads the bodies through the builder, which deduces and checks
 * every binding. A failure anywhere carries file, line and column, and leaves the module without any function of this
 * text.
 *
 * Names. A value's scope ends with its body, or with its dataflow block unless it is an output. Symbols come from the
 * head, from its `where`, and from match_cast; a name that is free again after a body of an if means a new symbol. */
#include "graph/text.h"

typedef struct pending { relax_function *f; rx_lexer at; bool pure; } pending;

/* --- heads --- */

static bool cond_end(const rx_lexer *l)
{
    return rx_lex_is(l, ",") || rx_lex_is(l, "{") || rx_lex_is(l, "attrs") || rx_lex_is(l, "arena");
}

static bool look_int(rx_lexer *l, int64_t *v)
{
    rx_lexer at = *l;
    rx_lex_take(&at, "-");
    if (at.tok != RX_T_INT || at.big)
        return false;
    *v = rx_lex_int(l, "an integer");
    return true;
}

/* "<=" or "<" (or the same with ">" when flipped): how much the bound moves inwards, or -1 */
static int64_t look_order(rx_lexer *l, const char *loose, const char *strict)
{
    return rx_lex_take(l, loose) ? 0 : rx_lex_take(l, strict) ? 1 : -1;
}

/* [int <=] name [<= int], name % int == 0: what the symbol itself keeps. false: another condition, nothing is taken. */
static bool read_bound(rx_tparser *p)
{
    rx_lexer l = *p->l;
    int64_t lo = 0, hi = 0, k, up = -1, low = look_int(&l, &lo) ? look_order(&l, "<=", "<") : -2;
    if (low == -1 || l.tok != RX_T_NAME || !rx_text_plain(l.text))
        return false;
    const char *name = l.text;
    rx_lex_next(&l);
    if (low == -2 && rx_lex_take(&l, "%")) {
        if (!look_int(&l, &k) || k < 1 || !rx_lex_take(&l, "==") || !look_int(&l, &lo) || lo != 0 || !cond_end(&l))
            return false;
        rx_sym_of(rx_tp_where(p, &l, name))->divisor = k;
        *p->l = l;
        return true;
    }
    if (low == -2 && (rx_lex_is(&l, ">=") || rx_lex_is(&l, ">"))) {
        low = look_order(&l, ">=", ">");
        if (!look_int(&l, &lo) || !cond_end(&l))
            return false;
    } else {
        up = look_order(&l, "<=", "<");
        if ((up >= 0 && !look_int(&l, &hi)) || !cond_end(&l) || (low < 0 && up < 0))
            return false;
    }
    if ((low == 1 && lo == INT64_MAX) || (up == 1 && hi == INT64_MIN))
        return false;
    rx_ex s = rx_tp_where(p, &l, name);
    rx_fn_bound(p->f, s, low >= 0 ? lo + low : rx_sym_of(s)->lo, up >= 0 ? hi - up : rx_sym_of(s)->hi);
    *p->l = l;
    return true;
}

static void read_where(rx_tparser *p)
{
    rx_scope_fns sc = {.name = rx_tp_where, .arg = p};
    if (!rx_lex_take(p->l, "where"))
        return;
    do {
        rx_tp_place(p);
        if (!read_bound(p))
            rx_fn_fact(p->f, rx_parse_expr(p->l, &sc));
    } while (rx_lex_take(p->l, ","));
}

static void read_params(rx_tparser *p)
{
    rx_lexer *l = p->l;
    rx_lex_want(l, "(");
    if (rx_lex_take(l, ")"))
        return;
    do {
        rx_lexer at = *l;
        const char *name = rx_text_read_name(l, "a parameter");
        if (at.tok == RX_T_NAME && !rx_text_plain(name))
            rx_lex_fail(&at, RXE_SYNTAX, "'%s' is a word of the language", name);
        rx_lex_want(l, ":");
        rx_tp_define(p, name, rx_fn_param(p->f, name, rx_tp_type(p, rx_tp_head)));
    } while (rx_tp_more(l, ")"));
}

static const char *free_function_name(rx_tparser *p, const char *name)
{
    if (rx_module_get(p->m, name))
        rx_lex_fail(p->l, RXE_TEXT_NAME, "function '%s' is defined already", name);
    return name;
}

/* the body is skipped; second pass: read_function */
static void read_head(rx_tparser *p, bool private, bool pure, pending *out)
{
    rx_lexer *l = p->l;
    rx_tp_place(p);
    const char *name = rx_text_read_name(l, "a function");
    size_t n = strlen(name);
    if (name[n - 1] == '*')
        rx_lex_fail(l, RXE_SYNTAX, "a function's name cannot end with '*'");
    p->f = rx_function_new(p->m, free_function_name(p, name));
    p->f->is_private = private;
    p->f->pure = pure;
    rx_tp_open(p);
    read_params(p);
    if (rx_lex_take(l, "->"))
        p->f->ret = rx_tp_type(p, rx_tp_known);
    read_where(p);
    rx_tp_attrs(p, &p->f->attrs);
    if (rx_lex_take(l, "arena"))
        p->f->arena_bytes = rx_tp_index(p);
    *out = (pending){.f = p->f, .at = *l, .pure = pure};
    rx_lex_want(l, "{");
    for (uint32_t depth = 1; depth; rx_lex_next(l)) {
        if (l->tok == RX_T_EOF)
            rx_lex_fail(l, RXE_SYNTAX, "a body without its end");
        depth += rx_lex_is(l, "{");
        depth -= rx_lex_is(l, "}");
    }
}

static bool of_params(relax_context *ctx, rx_arena *a, const relax_function *f, rx_ex sym)
{
    rx_exvec syms = {0};
    for (uint32_t i = 0; i < f->nparams; i++)
        rx_ty_free_syms(ctx, a, f->params[i]->type, &syms);
    for (uint32_t i = 0; i < syms.n; i++)
        if (syms.at[i] == sym)
            return true;
    return false;
}

static void read_function(rx_tparser *p, pending *it)
{
    relax_function *f = p->f = it->f;
    rx_tp_open(p);
    for (uint32_t i = 0; i < f->nparams; i++)
        rx_tp_define(p, f->params[i]->name, f->params[i]);
    for (uint32_t i = 0; i < f->syms.n; i++) {
        const char *name = rx_sym_of(f->syms.at[i])->name;
        if (of_params(p->ctx, p->a, f, f->syms.at[i]))
            rx_tp_define_sym(p, name, f->syms.at[i]);
        else
            rx_map_put(&p->early, RX_KEY(name), (void *)f->syms.at[i]);
    }
    rx_lexer l = it->at, *outer = p->l;
    p->l = &l;
    p->gb = rx_gb_begin(f);
    p->pure = it->pure;
    relax_value *result = rx_tp_body(p, "return");
    for (uint32_t i = 0; i < p->early.n; i++)
        if (p->early.e[i].val)
            rx_lex_fail(&l, RXE_TEXT_NAME, "symbol '%s' of the conditions is never defined",
                        rx_sym_of(p->early.e[i].val)->name);
    rx_fn_finish(f, &p->gb, result);
    p->l = outer;
}

/* --- modules --- */

static void read_props(rx_tparser *p)
{
    static const struct { const char *word; uint32_t prop; } props[] = {
        {"legal", RX_M_LEGAL}, {"scheduled", RX_M_SCHEDULED}, {"dps", RX_M_DPS}, {"planned", RX_M_PLANNED},
        {"guarded", RX_M_GUARDED},
    };
    do {
        size_t i = 0;
        while (i < RX_COUNT(props) && !rx_lex_is(p->l, props[i].word))
            i++;
        if (i == RX_COUNT(props))
            rx_lex_fail(p->l, RXE_SYNTAX, "expected legal, guarded, scheduled, dps or planned");
        p->m->props |= props[i].prop;
        rx_lex_next(p->l);
    } while (rx_lex_take(p->l, ","));
}

static void read_prim(rx_tparser *p, bool private)
{
    rx_tb t = {p->ctx, &p->m->arena};
    rx_tp_place(p);
    rx_prim *prim = rx_parse_prim(p->l, &t);
    rx_function_new_prim(p->m, free_function_name(p, prim->name), prim)->is_private = private;
}

static void read_module(rx_tparser *p)
{
    RX_VEC(pending) todo = {0};
    rx_lexer *l = p->l;
    if (rx_lex_take(l, "module"))
        read_props(p);
    while (l->tok != RX_T_EOF) {
        bool private = rx_lex_take(l, "private");
        if (rx_lex_take(l, "prim")) {
            read_prim(p, private);
            continue;
        }
        bool impure = rx_lex_take(l, "impure");
        pending it;
        if (!rx_lex_take(l, "fn"))
            rx_lex_fail(l, RXE_SYNTAX, "expected 'fn' or 'prim'");
        read_head(p, private, !impure, &it);
        rx_push(p->a, &todo, it);
    }
    for (uint32_t i = 0; i < todo.n; i++)
        read_function(p, &todo.at[i]);
}

static void parse_text(rx_tparser *p, const char *file, const char *s, size_t n)
{
    rx_lexer l;
    p->l = &l;
    p->a = rx_scratch(&p->ctx->heap);
    p->line = p->col = 1;
    rx_lex_init(&l, p->ctx, file, s, n);
    read_module(p);
}

void rx_parse_into(relax_module *m, const char *file, const char *s, size_t n)
{
    relax_context *const ctx = m->ctx;
    relax_function *const last = m->last;
    const uint32_t props = m->props;
    const char *const name = rx_str(ctx, file ? file : "text");
    rx_tparser *const p = RX_NEW(&m->arena, rx_tparser);       /* read again after a failure, so not on the stack */
    rx_frame fr;
    p->ctx = ctx;
    p->m = m;
    if (RX_ENTER(&ctx->heap, &fr)) {
        parse_text(p, name, s, n);
        rx_leave(&ctx->heap, &fr);
        return;
    }
    rx_diag_locate(ctx, name, p->line, p->col);
    while (m->last != last)
        rx_module_remove(m, m->last);
    m->props = props;
    rx_unwind(&ctx->heap);
}

relax_module *rx_parse_module(relax_context *ctx, const char *file, const char *s, size_t n)
{
    rx_frame fr;
    relax_module *m = rx_module_new(ctx);
    if (RX_ENTER(&ctx->heap, &fr)) {
        rx_parse_into(m, file, s, n);
        rx_leave(&ctx->heap, &fr);
        return m;
    }
    rx_module_free(m);
    rx_unwind(&ctx->heap);
}
