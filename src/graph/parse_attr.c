/* parse_attr.c: attributes of operators (kinds by declaration) and of functions and other calls (kinds by the tokens).
 */
#include "graph/text.h"

/* "key = …" comes next? */
bool rx_tp_at_key(const rx_lexer *l)
{
    rx_lexer look = *l;
    if (look.tok != RX_T_NAME)
        return false;
    rx_lex_next(&look);
    return rx_lex_is(&look, "=");
}

static double read_float(rx_lexer *l)
{
    bool minus = rx_lex_take(l, "-");
    double v = 0;
    if (l->tok == RX_T_FLOAT)
        v = l->fval;
    else if (l->tok == RX_T_INT)
        v = l->big ? (double)(uint64_t)l->ival : (double)l->ival;
    else if (rx_lex_is(l, "inf"))
        v = __builtin_inf();
    else if (rx_lex_is(l, "nan"))
        v = __builtin_nan("");
    else
        rx_lex_fail(l, RXE_SYNTAX, "expected a number");
    rx_lex_next(l);
    return minus ? -v : v;
}

void rx_tp_ints(rx_tparser *p, rx_attr *x)
{
    RX_VEC(int64_t) v = {0};
    rx_lexer *l = p->l;
    if (!rx_lex_is(l, "(") && !rx_lex_is(l, "[")) {
        rx_push(p->a, &v, rx_lex_int(l, "an integer"));
    } else {
        const char *close = rx_lex_is(l, "(") ? ")" : "]";
        rx_lex_next(l);
        if (!rx_lex_take(l, close))
            do
                rx_push(p->a, &v, rx_lex_int(l, "an integer"));
            while (rx_tp_more(l, close));
    }
    x->u.ints.at = v.at;
    x->u.ints.n = v.n;
}

static void read_attr_value(rx_tparser *p, rx_attr *x)
{
    rx_lexer *l = p->l;
    rx_exvec v = {0};
    switch (x->kind) {
    case RX_A_INT:
        x->u.i = rx_lex_int(l, "an integer");
        break;
    case RX_A_FLOAT:
        x->u.f = read_float(l);
        break;
    case RX_A_BOOL:
        x->u.i = rx_lex_is(l, "true");
        if (!x->u.i && !rx_lex_is(l, "false"))
            rx_lex_fail(l, RXE_SYNTAX, "expected true or false");
        rx_lex_next(l);
        break;
    case RX_A_DTYPE: {
        const char *s = rx_lex_name(l, "a data type");
        x->u.dtype = rx_dtype_parse(s, strlen(s));
        if (x->u.dtype == RELAX_DTYPE_UNKNOWN)
            rx_lex_fail(l, RXE_SYNTAX, "'%s' is no data type", s);
        break;
    }
    case RX_A_STR:
        if (l->tok != RX_T_STRING && l->tok != RX_T_NAME)
            rx_lex_fail(l, RXE_SYNTAX, "expected a string");
        x->u.s = l->text;
        rx_lex_next(l);
        break;
    case RX_A_INTS:
        rx_tp_ints(p, x);
        break;
    case RX_A_EXPR:
        x->u.e = rx_tp_expr(p);
        break;
    case RX_A_EXPRS:
        if (rx_lex_is(l, "(") || rx_lex_is(l, "["))
            rx_tp_indices(p, l->text, rx_lex_is(l, "(") ? ")" : "]", &v);
        else
            rx_push(p->a, &v, rx_tp_index(p));
        x->u.exprs.at = v.at;
        x->u.exprs.n = v.n;
        break;
    }
}

rx_attr rx_tp_op_attr(rx_tparser *p, const rx_op *op)
{
    rx_lexer at = *p->l;
    rx_attr x = {.key = rx_lex_name(p->l, "an attribute")};
    uint32_t k = 0;
    while (k < op->nattrs && strcmp(op->attrs[k].key, x.key))
        k++;
    if (k == op->nattrs)
        rx_lex_fail(&at, RXE_ATTR, "%s has no attribute %s", op->name, x.key);
    x.kind = op->attrs[k].kind;
    rx_lex_want(p->l, "=");
    if (x.kind == RX_A_EXPR)
        x.u.e = rx_parse_attr_expr(p->l, &(rx_scope_fns){.name = rx_tp_known, .arg = p});
    else
        read_attr_value(p, &x);
    return x;
}

/* the kind of an attribute without declaration, from its first tokens */
static rx_akind free_kind(rx_tparser *p)
{
    rx_lexer *l = p->l, look = *l;
    if (rx_lex_is(l, "expr") || rx_lex_is(l, "exprs")) {
        rx_akind k = rx_lex_is(l, "expr") ? RX_A_EXPR : RX_A_EXPRS;
        rx_lex_next(l);
        if (!rx_lex_is(l, "("))
            rx_lex_want(l, "(");
        return k;
    }
    if (rx_lex_is(l, "true") || rx_lex_is(l, "false"))
        return RX_A_BOOL;
    if (rx_lex_is(l, "("))
        return RX_A_INTS;
    if (l->tok == RX_T_STRING)
        return RX_A_STR;
    rx_lex_take(&look, "-");
    if (look.tok == RX_T_INT)
        return RX_A_INT;
    if (look.tok == RX_T_FLOAT || rx_lex_is(&look, "inf") || rx_lex_is(&look, "nan"))
        return RX_A_FLOAT;
    return RX_A_DTYPE;
}

void rx_tp_attrs(rx_tparser *p, rx_attrs *out)
{
    rx_lexer *l = p->l;
    if (!rx_lex_take(l, "attrs"))
        return;
    rx_lex_want(l, "{");
    if (rx_lex_take(l, "}"))
        return;
    do {
        rx_attr x = {.key = rx_text_read_name(l, "an attribute")};
        rx_lex_want(l, "=");
        x.kind = free_kind(p);
        read_attr_value(p, &x);
        rx_attrs_set(p->ctx, &p->m->arena, out, &x);
    } while (rx_tp_more(l, "}"));
}

rx_attrs rx_parse_attrs_text(relax_function *f, const rx_op *op, const char *s, size_t n)
{
    relax_context *ctx = f->mod->ctx;
    rx_lexer l;
    rx_tparser p = {.l = &l, .ctx = ctx, .m = f->mod, .f = f, .a = &f->mod->arena};
    RX_VEC(rx_attr) v = {0};
    rx_tp_open(&p);
    for (uint32_t i = 0; i < f->symtab.n; i++)
        rx_map_put(&p.syms, f->symtab.e[i].key, f->symtab.e[i].val);
    rx_lex_init(&l, ctx, "attributes", s, n);
    while (l.tok != RX_T_EOF) {
        rx_push(p.a, &v, rx_tp_op_attr(&p, op));
        if (l.tok != RX_T_EOF)
            rx_lex_want(&l, ",");
    }
    return (rx_attrs){v.at, v.n};
}
