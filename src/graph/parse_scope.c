/* parse_scope.c: names in scope while a function is read.
 *
 * Definitions are pushed on one stack and taken out again when their body or dataflow block ends. Symbols have a scope
 * as values have: after a body of an if its symbols are unknown, and the same name in another match_cast is another
 * symbol. */
#include "graph/text.h"

void rx_tp_open(rx_tparser *p)
{
    rx_map_init(&p->values, p->a);
    rx_map_init(&p->syms, p->a);
    rx_map_init(&p->early, p->a);
    p->scope.n = 0;
}

void rx_tp_define(rx_tparser *p, const char *name, relax_value *v)
{
    rx_undo u = {false, name};
    if (rx_map_get(&p->values, RX_KEY(name)))
        rx_lex_fail(p->l, RXE_TEXT_NAME, "value '%s' is defined already", name);
    rx_map_put(&p->values, RX_KEY(name), v);
    rx_push(p->a, &p->scope, u);
}

void rx_tp_define_sym(rx_tparser *p, const char *name, rx_ex s)
{
    rx_undo u = {true, name};
    rx_map_put(&p->syms, RX_KEY(name), (void *)s);
    rx_push(p->a, &p->scope, u);
}

void rx_tp_leave(rx_tparser *p, uint32_t mark)
{
    while (p->scope.n > mark) {
        rx_undo u = p->scope.at[--p->scope.n];
        rx_map_put(u.sym ? &p->syms : &p->values, RX_KEY(u.name), NULL);
    }
}

rx_ex rx_tp_known(void *arg, rx_lexer *l, const char *name)
{
    (void)l;
    return rx_map_get(&((rx_tparser *)arg)->syms, RX_KEY(name));
}

static bool constant_word(const char *name)
{
    return !strcmp(name, "inf") || !strcmp(name, "nan");
}

/* in annotations of parameters and results: a new name is a new symbol */
rx_ex rx_tp_head(void *arg, rx_lexer *l, const char *name)
{
    rx_tparser *p = arg;
    rx_ex s = rx_tp_known(arg, l, name);
    if (s || constant_word(name))
        return s;
    s = rx_fn_sym(p->f, name);
    rx_tp_define_sym(p, name, s);
    return s;
}

/* in match_cast: a new name is a new symbol, perhaps one whose bounds the head gives */
rx_ex rx_tp_cast(void *arg, rx_lexer *l, const char *name)
{
    rx_tparser *p = arg;
    rx_ex s = rx_tp_known(arg, l, name);
    if (s || constant_word(name))
        return s;
    s = rx_map_get(&p->early, RX_KEY(name));
    rx_map_put(&p->early, RX_KEY(name), NULL);
    if (!s)
        s = rx_fn_sym_fresh(p->f, name);
    rx_tp_define_sym(p, name, s);
    return s;
}

/* in conditions of the head: a name that the head does not define waits for its match_cast */
rx_ex rx_tp_where(void *arg, rx_lexer *l, const char *name)
{
    rx_tparser *p = arg;
    rx_ex s = rx_tp_known(arg, l, name);
    if (!s)
        s = rx_map_get(&p->early, RX_KEY(name));
    if (s || constant_word(name))
        return s;
    s = rx_fn_sym(p->f, name);
    rx_map_put(&p->early, RX_KEY(name), (void *)s);
    return s;
}

rx_ex rx_tp_expr(rx_tparser *p)
{
    rx_scope_fns sc = {.name = rx_tp_known, .arg = p};
    return rx_parse_expr(p->l, &sc);
}

rx_ex rx_tp_index(rx_tparser *p)
{
    rx_ex e = rx_tp_expr(p);
    if (e->dtype != RELAX_I64 || e->flags & RX_EX_DATA)
        rx_lex_fail(p->l, RXE_SYNTAX, "expected an integer expression");
    return e;
}

rx_ty rx_tp_type(rx_tparser *p, rx_ex (*names)(void *, rx_lexer *, const char *))
{
    rx_scope_fns sc = {.name = names, .arg = p};
    return rx_parse_type(p->l, &sc);
}

/* ends a list: takes "," and goes on, or takes close */
bool rx_tp_more(rx_lexer *l, const char *close)
{
    if (rx_lex_take(l, close))
        return false;
    rx_lex_want(l, ",");
    return !rx_lex_take(l, close);
}

void rx_tp_indices(rx_tparser *p, const char *open, const char *close, rx_exvec *out)
{
    rx_lex_want(p->l, open);
    if (rx_lex_take(p->l, close))
        return;
    do
        rx_push(p->a, out, rx_tp_index(p));
    while (rx_tp_more(p->l, close));
}

void rx_tp_place(rx_tparser *p)
{
    p->line = p->l->line;
    p->col = p->l->col;
}
