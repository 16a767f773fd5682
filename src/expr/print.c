/* print.c: the text of expressions, which parse.c reads back to the same node.
 *
 * Minimal parentheses by the precedences of exprs.def. Sums print positive terms first, then negative ones, then
 * the constant: "n*4 - m + 3". The operators * // % stand without spaces in index expressions and with spaces
 * between data. A constant whose type the parser would not guess is written as a cast: i8(3). */
#include "expr/impl.h"

enum { P_OR = -2, P_AND = -1, P_NOT = 0, P_CMP = 1, P_SUM = 6, P_MUL = 7, P_UNARY = 8, P_ATOM = 9 };

typedef struct printer {
    rx_buf *b;                         /* NULL: only the symbols are wanted */
    rx_exvec *syms;
    rx_arena *a;
    rx_map *seen;
} printer;

static void print(printer *p, rx_ex e, int prec, bool typed);

static void put(printer *p, const char *s) { if (p->b) rx_puts(p->b, s); }

static void list(printer *p, const char *name, rx_ex *const a, uint32_t n, const char *open, const char *close)
{
    put(p, name);
    put(p, open);
    for (uint32_t i = 0; i < n; i++) {
        if (i) put(p, ", ");
        print(p, a[i], -9, false);
    }
    put(p, close);
}

/* a term that prints with a minus; INT64_MIN has no opposite and prints as x*(-9223372036854775808) */
static bool negative(rx_ex e)
{
    int64_t c = rx_term_of(e).coef;
    return c < 0 && c != INT64_MIN;
}

static void sum_terms(rx_ex e, rx_arena *a, rx_exvec *pos, rx_exvec *neg)
{
    if (rx_is_sum(e)) {
        sum_terms(e->a[0], a, pos, neg);
        sum_terms(e->a[1], a, pos, neg);
        return;
    }
    bool minus = negative(e) || (e->op == RX_EX_INT && e->u.i < 0);
    if (minus) rx_push(a, neg, e);
    else rx_push(a, pos, e);
}

static void put_int(printer *p, int64_t v) { if (p->b) rx_put_i64(p->b, v); }

static void factors(printer *p, rx_ex key, int prec);

/* |coef| * key, or the constant's absolute value. After a sign (minus) the first factor may not be a bare
 * quotient, because the sign binds tighter: -(n//2), but n - n//2. */
static void magnitude(printer *p, rx_ex e, bool minus)
{
    rx_term t = rx_term_of(e);
    if (e->op == RX_EX_INT) {
        if (p->b && e->u.i != INT64_MIN) rx_put_i64(p->b, e->u.i < 0 ? -e->u.i : e->u.i);
        else put(p, "9223372036854775808");
        return;
    }
    if (rx_is_sum(t.key)) print(p, t.key, P_UNARY, false);
    else factors(p, t.key, minus ? P_UNARY : P_MUL);
    if (t.coef == 1 || t.coef == -1) return;
    put(p, "*");
    if (t.coef == INT64_MIN) put(p, "(-9223372036854775808)");
    else put_int(p, t.coef < 0 ? -t.coef : t.coef);
}

static void sum(printer *p, rx_ex e)
{
    rx_exvec pos = {0}, neg = {0};
    sum_terms(e, p->a, &pos, &neg);
    bool first = true, last_const = neg.n && neg.at[neg.n - 1]->op == RX_EX_INT;
    rx_ex k = pos.n > 1 && pos.at[pos.n - 1]->op == RX_EX_INT && !last_const ? pos.at[--pos.n] : NULL;
    for (uint32_t i = 0; i < pos.n; i++, first = false) {
        if (!first) put(p, " + ");
        magnitude(p, pos.at[i], false);
    }
    for (uint32_t i = 0; i < neg.n; i++, first = false) {
        put(p, first ? "-" : " - ");
        magnitude(p, neg.at[i], first);
    }
    if (k) put(p, " + "), magnitude(p, k, false);
}

/* factors joined by "*"; the first may be a quotient without parentheses if prec allows */
static void factors(printer *p, rx_ex key, int prec)
{
    rx_ex f[RX_EXPR_AC + 1];
    uint32_t n = rx_factors(key, f, RX_EXPR_AC + 1);
    for (uint32_t i = 0; i < n; i++) {
        if (i) put(p, "*");
        print(p, f[i], i ? P_MUL + 1 : prec, false);
    }
}

static void product(printer *p, rx_ex e)
{
    rx_term t = rx_term_of(e);
    if (negative(e)) put(p, "-");
    if (t.coef != 1) magnitude(p, e, negative(e));
    else factors(p, e, P_MUL);
}

static void chain(printer *p, rx_ex e, rx_eop op, bool first)
{
    for (int i = 0; i < 2; i++) {
        if (e->a[i]->op == op && rx_is_index(e->a[i])) {
            chain(p, e->a[i], op, first && i == 0);
        } else {
            if (!(first && i == 0)) put(p, " "), put(p, rx_eop_text[op]), put(p, " ");
            print(p, e->a[i], rx_eop_prec[op] + 1, false);
        }
    }
}

/* does the text of e, standing alone, read as a literal that takes its type from its neighbour? */
static bool literal(rx_ex e) { return e->op == RX_EX_INT || e->op == RX_EX_FLOAT; }

static void constant(printer *p, rx_ex e, bool typed)
{
    bool plain = typed || e->dtype == RELAX_I64 || e->dtype == RELAX_F32 || e->dtype == RELAX_BOOL;
    if (!p->b) return;
    if (!plain) rx_puts(p->b, rx_dtypes[e->dtype].name), rx_putc(p->b, '(');
    if (e->op == RX_EX_FLOAT && e->dtype == RELAX_F64) rx_put_double(p->b, e->u.f);
    else if (e->op == RX_EX_FLOAT) rx_put_float(p->b, (float)e->u.f);
    else if (e->dtype == RELAX_BOOL) rx_puts(p->b, e->u.i ? "true" : "false");
    else if (e->dtype == RELAX_U64) rx_putf(p->b, "%llu", (unsigned long long)e->u.i);
    else rx_put_i64(p->b, e->u.i);
    if (!plain) rx_putc(p->b, ')');
}

static void infix(printer *p, rx_ex e)
{
    int q = rx_eop_prec[e->op];
    bool cmp = q == P_CMP, tight = q == P_MUL && rx_is_index(e);
    print(p, e->a[0], cmp ? q + 1 : q, literal(e->a[0]) && !literal(e->a[1]));
    if (!tight) put(p, " ");
    put(p, rx_eop_text[e->op]);
    if (!tight) put(p, " ");
    print(p, e->a[1], q + 1, literal(e->a[1]) && !literal(e->a[0]));
}

static void call_form(printer *p, rx_ex e)
{
    put(p, e->op == RX_EX_CALL ? rx_intrin_text[e->intrin] : rx_eop_text[e->op]);
    put(p, "(");
    uint32_t first = e->op == RX_EX_SELECT;
    if (first) print(p, e->a[0], -9, false), put(p, ", ");
    for (uint32_t i = first; i < e->nargs; i++) {
        if (i > first) put(p, ", ");
        bool other = false;
        for (uint32_t j = first; j < e->nargs; j++) other |= !literal(e->a[j]);
        print(p, e->a[i], -9, literal(e->a[i]) && other);
    }
    put(p, ")");
}

/* an index min or max of several operands prints nested from the left: min(min(a, b), c) */
static void extremum(printer *p, rx_ex *x, uint32_t n, rx_eop op)
{
    if (n == 1) { print(p, x[0], -9, false); return; }
    put(p, rx_eop_text[op]);
    put(p, "(");
    extremum(p, x, n - 1, op);
    put(p, ", ");
    print(p, x[n - 1], -9, false);
    put(p, ")");
}

static int level(rx_ex e)
{
    if (literal(e))
        return e->dtype != RELAX_BOOL && (e->op == RX_EX_INT ? e->u.i < 0 : __builtin_signbit(e->u.f)) ? P_UNARY
                                                                                                       : P_ATOM;
    if (e->op == RX_EX_NOT) return P_NOT;
    if (e->op == RX_EX_AND || e->op == RX_EX_OR) return rx_eop_prec[e->op];
    if (rx_is_prod(e) && negative(e)) return P_SUM;
    return rx_eop_prec[e->op] ? rx_eop_prec[e->op] : P_ATOM;
}

static void body(printer *p, rx_ex e, bool typed)
{
    rx_ex x[RX_EXPR_AC + 1];
    switch ((rx_eop)e->op) {
    case RX_EX_INT: case RX_EX_FLOAT: constant(p, e, typed); return;
    case RX_EX_SYM: put(p, e->u.sym->name); return;
    case RX_EX_LOAD: list(p, *(const char *const *)e->u.buf, (rx_ex *)e->a, e->nargs, "[", "]"); return;
    case RX_EX_NOT: put(p, "not "); print(p, e->a[0], P_NOT + 1, false); return;
    case RX_EX_NEG:
    case RX_EX_BITNOT:
        put(p, rx_eop_text[e->op]);
        print(p, e->a[0], P_UNARY + literal(e->a[0]), false);
        return;
    case RX_EX_CAST: list(p, rx_dtypes[e->dtype].name, (rx_ex *)e->a, 1, "(", ")"); return;
    case RX_EX_BITCAST:
        put(p, "bitcast("); put(p, rx_dtypes[e->dtype].name); put(p, ", ");
        print(p, e->a[0], -9, false); put(p, ")"); return;
    case RX_EX_MIN: case RX_EX_MAX:
        if (rx_is_index(e)) {
            uint32_t n = rx_operands(e, e->op, x, RX_EXPR_AC + 1);
            if (n <= RX_EXPR_AC) { extremum(p, x, n, e->op); return; }
        }
        call_form(p, e); return;
    case RX_EX_AND: case RX_EX_OR:
        if (rx_is_index(e)) chain(p, e, e->op, true);
        else infix(p, e);
        return;
    default: break;
    }
    if (rx_is_sum(e)) sum(p, e);
    else if (rx_is_prod(e)) product(p, e);
    else if (!rx_eop_prec[e->op]) call_form(p, e);
    else infix(p, e);
}

static void print(printer *p, rx_ex e, int prec, bool typed)
{
    if (!p->b) {
        if (!(e->flags & (RX_EX_HAS_SYM | RX_EX_DATA)) || rx_map_has(p->seen, RX_KEY(e))) return;
        rx_map_put(p->seen, RX_KEY(e), NULL);
        if (e->op == RX_EX_SYM) {
            for (uint32_t i = 0; i < p->syms->n; i++)
                if (p->syms->at[i] == e) return;
            rx_push(p->a, p->syms, e);
            return;
        }
    }
    bool paren = level(e) < prec;
    if (paren) put(p, "(");
    body(p, e, typed);
    if (paren) put(p, ")");
}

void rx_print_expr(rx_buf *b, rx_ex e)
{
    printer p = {.b = b, .a = b->a};
    print(&p, e, -9, false);
}

void rx_print_dims(rx_buf *b, rx_ex *d, uint32_t n)
{
    printer p = {.b = b, .a = b->a};
    list(&p, "", d, n, "(", n == 1 ? ",)" : ")");
}

void rx_free_syms(relax_context *ctx, rx_arena *a, rx_ex e, rx_exvec *out)
{
    rx_map seen;
    rx_map_init(&seen, rx_temp(ctx));
    printer p = {.syms = out, .a = a, .seen = &seen};
    print(&p, e, -9, false);
}
