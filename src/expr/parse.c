/* parse.c: text to expressions, by precedence climbing over the tokens of lex.c.
 *
 *   expr := or; or := and {("or" | "||") and}; and := not {("and" | "&&") not}; not := "not" not | cmp
 *   cmp := bits [("<" | "<=" | ">" | ">=" | "==" | "!=") bits]; bits, shifts, sums, products as in exprs.def
 *   unary := ("-" | "!" | "~") unary | atom; atom := number | true | false | name | name[expr, …] | dtype(expr) |
 *   f(expr, …) | (expr) A literal has no type of its own until it meets an operand that has one (i64 and `real`
 *   otherwise), so an operand here is a node together with the literal it came from. Chains of + and - over index
 *   expressions are collected and summed once, which keeps long sums linear. Names that are functions here can be
 *   symbols as well, because a call is told by its parenthesis. */
#include "expr/impl.h"

typedef struct operand {
    rx_ex e;
    enum { TYPED, LIT_INT, LIT_FLOAT } lit;
    int64_t i;                         /* LIT_INT: the value, as u64 bits when big */
    double f;                          /* both kinds of literal */
    bool big;
} operand;

typedef struct parser {
    rx_lexer *l;
    relax_context *ctx;
    const rx_scope_fns *sc;
    relax_dtype real;                  /* of a float literal without a typed neighbour */
} parser;

static operand parse_or(parser *p);

static operand typed(rx_ex e) { return (operand){.e = e, .lit = TYPED}; }

static operand literal_int(parser *p, int64_t v, bool big)
{
    return (operand){big ? NULL : rx_int(p->ctx, v), LIT_INT, v, big ? (double)(uint64_t)v : (double)v, big};
}

static operand literal_float(parser *p, double v)
{
    return (operand){rx_const_float(p->ctx, p->real, v), LIT_FLOAT, 0, v, false};
}

static rx_ex node(parser *p, operand x)
{
    if (!x.e) rx_lex_fail(p->l, RXE_SYNTAX, "the number does not fit i64");
    return x.e;
}

/* a literal in the data type t */
static rx_ex as_type(parser *p, operand x, relax_dtype t)
{
    if (x.lit == TYPED || (!x.big && x.e->dtype == t)) return node(p, x);
    if (rx_dtype_is_float(t)) return rx_const_float(p->ctx, t, x.f);
    if (t == RELAX_U64 && x.lit == LIT_INT) return rx_const_int(p->ctx, t, x.i);
    if (x.lit == LIT_INT && rx_dtype_is_int(t)) {
        if (rx_wrap(t, x.i) != x.i || x.big)
            rx_lex_fail(p->l, RXE_DTYPE, "the literal does not fit %s", rx_dtypes[t].name);
        return rx_const_int(p->ctx, t, x.i);
    }
    return node(p, x);
}

static void unify(parser *p, operand *x, uint32_t n, const char *what)
{
    relax_dtype t = RELAX_DTYPE_UNKNOWN;
    for (uint32_t i = 0; i < n; i++)
        if (x[i].lit == TYPED) { t = x[i].e->dtype; break; }
    for (uint32_t i = 0; i < n && !t; i++)
        if (x[i].lit == LIT_FLOAT) t = p->real;
    for (uint32_t i = 0; i < n; i++) {
        if (t) x[i].e = as_type(p, x[i], t);
        if (node(p, x[i])->dtype != node(p, x[0])->dtype)
            rx_lex_fail(p->l, RXE_DTYPE, "the operands of %s have the types %s and %s", what,
                        rx_dtypes[x[0].e->dtype].name, rx_dtypes[x[i].e->dtype].name);
    }
}

static operand binary(parser *p, rx_eop op, operand a, operand b)
{
    operand x[2] = {a, b};
    unify(p, x, 2, rx_eop_text[op]);
    if (!rx_op_takes(op, x[0].e->dtype))
        rx_lex_fail(p->l, RXE_DTYPE, "%s does not take %s", rx_eop_text[op], rx_dtypes[x[0].e->dtype].name);
    return typed(rx_binary(p->ctx, op, x[0].e, x[1].e));
}

static rx_ex want_bool(parser *p, operand x, const char *what)
{
    if (node(p, x)->dtype != RELAX_BOOL)
        rx_lex_fail(p->l, RXE_DTYPE, "%s takes bool, not %s", what, rx_dtypes[x.e->dtype].name);
    return x.e;
}

/* ---- atoms ---- */
static uint32_t arguments(parser *p, const char *close, operand *x, uint32_t cap)
{
    uint32_t n = 0;
    while (!rx_lex_is(p->l, close)) {
        if (n == cap) rx_lex_fail(p->l, RXE_SYNTAX, "more than %u arguments", cap);
        x[n++] = parse_or(p);
        if (!rx_lex_take(p->l, ",")) break;
    }
    rx_lex_want(p->l, close);
    return n;
}

static operand cast(parser *p, relax_dtype t)
{
    operand x = parse_or(p);
    rx_lex_want(p->l, ")");
    if (x.lit == LIT_FLOAT && rx_dtype_is_float(t)) return typed(rx_const_float(p->ctx, t, x.f));
    if (x.lit == LIT_FLOAT) x.e = rx_const_float(p->ctx, RELAX_F64, x.f);
    if (x.lit == LIT_INT) return typed(rx_const_int(p->ctx, t, x.i));
    return typed(rx_cast(p->ctx, t, node(p, x)));
}

static operand bitcast(parser *p)
{
    const char *s = rx_lex_name(p->l, "a data type");
    relax_dtype t = rx_dtype_parse(s, strlen(s));
    if (!t) rx_lex_fail(p->l, RXE_SYNTAX, "'%s' is not a data type", s);
    rx_lex_want(p->l, ",");
    rx_ex e = node(p, parse_or(p));
    rx_lex_want(p->l, ")");
    if (rx_dtype_bytes(t) != rx_dtype_bytes(e->dtype))
        rx_lex_fail(p->l, RXE_DTYPE, "bitcast between types of different width");
    return typed(rx_bitcast(p->ctx, t, e));
}

static const struct { const char *name; rx_eop op;
} functions[] = {
    {"min", RX_EX_MIN},           {"max", RX_EX_MAX},         {"pow", RX_EX_POW},       {"truncdiv", RX_EX_TRUNCDIV},
    {"truncmod", RX_EX_TRUNCMOD}, {"bits_and", RX_EX_BITAND}, {"bits_or", RX_EX_BITOR}, {"bits_xor", RX_EX_BITXOR},
    {"shl", RX_EX_SHL},           {"shr", RX_EX_SHR},
};

static operand call(parser *p, const char *name)
{
    enum { MAX_ARGS = 3 };
    relax_dtype t = rx_dtype_parse(name, strlen(name));
    if (t) return cast(p, t);
    if (!strcmp(name, "bitcast")) return bitcast(p);
    operand *x = RX_NEWN(rx_temp(p->ctx), operand, MAX_ARGS);           /* not on the stack: calls nest */
    uint32_t n = arguments(p, ")", x, MAX_ARGS);
    if (!strcmp(name, "select")) {
        if (n != 3) rx_lex_fail(p->l, RXE_SYNTAX, "select takes 3 arguments");
        want_bool(p, x[0], "the condition of select");
        unify(p, x + 1, 2, "select");
        return typed(rx_select(p->ctx, x[0].e, x[1].e, x[2].e));
    }
    for (size_t i = 0; i < RX_COUNT(functions); i++) {
        if (strcmp(name, functions[i].name)) continue;
        if (n != 2) rx_lex_fail(p->l, RXE_SYNTAX, "%s takes 2 arguments", name);
        return binary(p, functions[i].op, x[0], x[1]);
    }
    for (int f = 0; f < RX_IN_COUNT; f++) {
        if (strcmp(name, rx_intrin_text[f])) continue;
        if (n != rx_intrin_arity[f]) rx_lex_fail(p->l, RXE_SYNTAX, "%s takes %d arguments", name, rx_intrin_arity[f]);
        unify(p, x, n, name);
        rx_ex a[MAX_ARGS];
        for (uint32_t i = 0; i < n; i++) a[i] = node(p, x[i]);
        return typed(rx_intrinsic(p->ctx, (rx_intrin)f, a, n));
    }
    rx_lex_fail(p->l, RXE_TEXT_NAME, "no function '%s'", name);
}

static operand load(parser *p, const char *name)
{
    enum { MAX_INDEX = 16 };
    operand *x = RX_NEWN(rx_temp(p->ctx), operand, MAX_INDEX);          /* not on the stack: loads nest in indices */
    rx_ex *a = RX_NEWN(rx_temp(p->ctx), rx_ex, MAX_INDEX);
    uint32_t n = arguments(p, "]", x, MAX_INDEX);
    for (uint32_t i = 0; i < n; i++) {
        a[i] = node(p, x[i]);
        if (!rx_dtype_is_int(a[i]->dtype)) rx_lex_fail(p->l, RXE_DTYPE, "an index is %s", rx_dtypes[a[i]->dtype].name);
    }
    rx_ex e = p->sc->load ? p->sc->load(p->sc->arg, p->l, name, a, n) : NULL;
    if (!e) rx_lex_fail(p->l, RXE_TEXT_NAME, "no buffer '%s'", name);
    return typed(e);
}

static operand name(parser *p)
{
    const char *s = p->l->text;
    rx_lex_next(p->l);
    if (rx_lex_take(p->l, "(")) return call(p, s);
    if (rx_lex_is(p->l, "[") && p->sc->load) { rx_lex_next(p->l); return load(p, s); }
    if (!strcmp(s, "true") || !strcmp(s, "false")) return typed(rx_bool(p->ctx, *s == 't'));
    rx_ex e = p->sc->name ? p->sc->name(p->sc->arg, p->l, s) : NULL;
    if (e) return typed(e);
    if (!strcmp(s, "inf")) return literal_float(p, __builtin_inf());
    if (!strcmp(s, "nan")) return literal_float(p, __builtin_nan(""));
    rx_lex_fail(p->l, RXE_TEXT_NAME, "no symbol '%s'", s);
}

static operand atom(parser *p)
{
    rx_lexer *l = p->l;
    operand x;
    if (l->tok == RX_T_INT) { x = literal_int(p, l->ival, l->big); rx_lex_next(l); return x; }
    if (l->tok == RX_T_FLOAT) { x = literal_float(p, l->fval); rx_lex_next(l); return x; }
    if (l->tok == RX_T_NAME) return name(p);
    if (!rx_lex_take(l, "(")) {
        size_t n = l->pos - l->start;
        if (l->tok == RX_T_EOF) rx_lex_fail(l, RXE_SYNTAX, "expected an expression, found the end of the text");
        rx_lex_fail(l, RXE_SYNTAX, "expected an expression, found '%.*s'", (int)(n > 40 ? 40 : n), l->s + l->start);
    }
    x = parse_or(p);
    rx_lex_want(l, ")");
    return x;
}

static operand negate(parser *p, operand x)
{
    if (x.lit == LIT_FLOAT) return literal_float(p, -x.f);
    if (x.lit == LIT_INT && (!x.big || x.i == INT64_MIN)) {
        operand y = literal_int(p, (int64_t)(0 - (uint64_t)x.i), false);
        y.f = -x.f;
        return y;
    }
    if (node(p, x)->dtype == RELAX_BOOL) rx_lex_fail(p->l, RXE_DTYPE, "- does not take bool");
    return typed(rx_unary(p->ctx, RX_EX_NEG, x.e));
}

static operand unary(parser *p)
{
    rx_lexer *l = p->l;
    operand x;
    if (++l->depth > RX_MAX_DEPTH) rx_lex_fail(l, RXE_LIMIT, "nested deeper than %d levels", RX_MAX_DEPTH);
    if (rx_lex_take(l, "-")) {
        x = negate(p, unary(p));
    } else if (rx_lex_take(l, "!")) {
        x = typed(rx_not(p->ctx, want_bool(p, unary(p), "!")));
    } else if (rx_lex_take(l, "~")) {
        x = unary(p);
        if (!rx_op_takes(RX_EX_BITNOT, node(p, x)->dtype))
            rx_lex_fail(l, RXE_DTYPE, "~ does not take %s", rx_dtypes[x.e->dtype].name);
        x = typed(rx_unary(p->ctx, RX_EX_BITNOT, x.e));
    } else {
        x = atom(p);
    }
    l->depth--;
    return x;
}

/* ---- infix ---- */
enum { OR = -2, AND, NOT, COMPARISON, SUM = 6 };                        /* precedences; infix has the others */
static const struct { const char *text; rx_eop op; int prec; bool swap; } infix[] = {
    {"|", RX_EX_BITOR, 2, false}, {"^", RX_EX_BITXOR, 3, false}, {"&", RX_EX_BITAND, 4, false},
    {"<<", RX_EX_SHL, 5, false}, {">>", RX_EX_SHR, 5, false}, {"*", RX_EX_MUL, 7, false}, {"/", RX_EX_DIV, 7, false},
    {"//", RX_EX_FLOORDIV, 7, false}, {"%", RX_EX_FLOORMOD, 7, false},
    {"<", RX_EX_LT, 1, false}, {"<=", RX_EX_LE, 1, false}, {">", RX_EX_LT, 1, true}, {">=", RX_EX_LE, 1, true},
    {"==", RX_EX_EQ, 1, false}, {"!=", RX_EX_NE, 1, false},
};

/* the operator at hand that binds at least as tightly as prec, -1: none */
static int find(const rx_lexer *l, int prec)
{
    if (l->tok != RX_T_PUNCT) return -1;
    for (size_t i = 0; i < RX_COUNT(infix); i++)
        if (infix[i].prec >= prec && !strcmp(infix[i].text, l->text)) return (int)i;
    return -1;
}

static bool can_sum(operand x) { return x.lit != LIT_FLOAT && x.e && x.e->dtype == RELAX_I64 && rx_is_index(x.e); }

static operand climb(parser *p, int prec);

/* a sum of literals is still one */
static operand gathered(parser *p, rx_exvec *v)
{
    int64_t k;
    rx_ex e = rx_sum(p->ctx, v->at, v->n);
    return rx_is_int(e, &k) ? literal_int(p, k, false) : typed(e);
}

static bool at_sum(const rx_lexer *l) { return rx_lex_is(l, "+") || rx_lex_is(l, "-"); }

/* what follows the first term x */
static operand rest_of_sum(parser *p, operand x)
{
    rx_exvec v = {0};
    rx_arena *a = rx_temp(p->ctx);
    while (at_sum(p->l)) {
        bool minus = *p->l->text == '-';
        rx_lex_next(p->l);
        operand y = climb(p, SUM + 1);
        if (minus && y.big && y.i == INT64_MIN) { y = negate(p, y); minus = false; }
        if (can_sum(x) && can_sum(y)) {
            if (!v.n) rx_push(a, &v, x.e);
            rx_push(a, &v, minus ? rx_unary(p->ctx, RX_EX_NEG, y.e) : y.e);
            continue;
        }
        if (v.n) x = gathered(p, &v);
        v.n = 0;
        x = binary(p, minus ? RX_EX_SUB : RX_EX_ADD, x, y);
    }
    if (v.n) x = gathered(p, &v);
    return x;
}

static operand negation(parser *p)
{
    if (++p->l->depth > RX_MAX_DEPTH) rx_lex_fail(p->l, RXE_LIMIT, "nested deeper than %d levels", RX_MAX_DEPTH);
    operand x = typed(rx_not(p->ctx, want_bool(p, climb(p, NOT), "not")));
    p->l->depth--;
    return x;
}

static operand logic(parser *p, operand x, bool is_and)
{
    const char *what = is_and ? "and" : "or";
    rx_ex a = want_bool(p, x, what), b = want_bool(p, climb(p, is_and ? NOT : AND), what);
    return typed(is_and ? rx_and(p->ctx, a, b) : rx_or(p->ctx, a, b));
}

static operand infix_op(parser *p, operand x, int i)
{
    rx_lex_next(p->l);
    operand y = climb(p, infix[i].prec + 1);
    x = infix[i].swap ? binary(p, infix[i].op, y, x) : binary(p, infix[i].op, x, y);
    if (infix[i].prec == COMPARISON && find(p->l, COMPARISON) >= 0)
        rx_lex_fail(p->l, RXE_SYNTAX, "comparisons cannot be chained: join them with 'and'");
    return x;
}

/* operators that bind at least as tightly as prec; one frame for all levels, so that nesting costs little stack */
static operand climb(parser *p, int prec)
{
    rx_lexer *l = p->l;
    operand x = prec <= NOT && rx_lex_take(l, "not") ? negation(p) : unary(p);
    for (int i;;) {
        if (prec <= SUM && at_sum(l))
            x = rest_of_sum(p, x);
        else if ((i = find(l, RX_MAX(prec, COMPARISON))) >= 0)
            x = infix_op(p, x, i);
        else if (prec <= AND && (rx_lex_take(l, "and") || rx_lex_take(l, "&&")))
            x = logic(p, x, true);
        else if (prec <= OR && (rx_lex_take(l, "or") || rx_lex_take(l, "||")))
            x = logic(p, x, false);
        else
            return x;
    }
}

static operand parse_or(parser *p) { return climb(p, OR); }

rx_ex rx_parse_expr(rx_lexer *l, const rx_scope_fns *sc)
{
    parser p = {l, l->ctx, sc, RELAX_F32};
    return node(&p, parse_or(&p));
}

rx_ex rx_parse_attr_expr(rx_lexer *l, const rx_scope_fns *sc)
{
    parser p = {l, l->ctx, sc, RELAX_F64};
    return node(&p, parse_or(&p));
}

rx_ex rx_parse_expr_as(rx_lexer *l, const rx_scope_fns *sc, relax_dtype t)
{
    parser p = {l, l->ctx, sc, RELAX_F32};
    return as_type(&p, parse_or(&p), t);
}

static rx_ex whole_text(relax_context *ctx, const char *s, size_t n, const rx_scope_fns *sc,
                        rx_ex (*parse)(rx_lexer *, const rx_scope_fns *))
{
    rx_lexer l;
    rx_lex_init(&l, ctx, NULL, s, n);
    rx_ex e = parse(&l, sc);
    if (l.tok != RX_T_EOF) rx_lex_fail(&l, RXE_SYNTAX, "unexpected '%s' after the expression", l.text);
    return e;
}

rx_ex rx_parse_expr_text(relax_context *ctx, const char *s, size_t n, const rx_scope_fns *sc)
{
    return whole_text(ctx, s, n, sc, rx_parse_expr);
}

rx_ex rx_parse_attr_text(relax_context *ctx, const char *s, size_t n, const rx_scope_fns *sc)
{
    return whole_text(ctx, s, n, sc, rx_parse_attr_expr);
}
