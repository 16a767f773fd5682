/* parse.c: modules from text. Grammar in docs/text-form.md.
 *
 * Two passes over the text, so that functions may call each other in any order: the first reads tensor programs and the heads of
 * functions and skips their bodies, the second reads the bodies through the builder, which deduces and checks every binding.
 * A failure anywhere carries file, line and column, and leaves the module without any function of this text.
 *
 * Names. A value's scope ends with its body, or with its dataflow block unless it is an output. Symbols come from the head, from its
 * `where`, and from match_cast; a name that is free again after a body of an if means a new symbol. */
#include "graph/text.h"

typedef struct undo { bool sym; const char *name; } undo;
typedef struct pending { relax_function *f; rx_lexer at; bool pure; } pending;
typedef struct parser {
    rx_lexer *l;
    relax_context *ctx;
    relax_module *m;
    relax_function *f;
    rx_arena *a;                       /* of the whole parse */
    rx_map values, syms;               /* interned name -> relax_value / symbol in scope, or NULL */
    rx_map early;                      /* symbols of the head that no parameter defines: name -> symbol */
    RX_VEC(undo) scope;
    rx_gb gb;
    uint32_t line, col;                /* of the binding that is read */
} parser;

static relax_value *read_rhs(parser *p);
static relax_value *read_body(parser *p, const char *word);

/* --- scopes --- */

static void define_value(parser *p, const char *name, relax_value *v)
{
    undo u = {false, name};
    if (rx_map_get(&p->values, RX_KEY(name)))
        rx_lex_fail(p->l, RXE_TEXT_NAME, "value '%s' is defined already", name);
    rx_map_put(&p->values, RX_KEY(name), v);
    rx_push(p->a, &p->scope, u);
}

static void define_sym(parser *p, const char *name, rx_ex s)
{
    undo u = {true, name};
    rx_map_put(&p->syms, RX_KEY(name), (void *)s);
    rx_push(p->a, &p->scope, u);
}

static void leave_scope(parser *p, uint32_t mark)
{
    while (p->scope.n > mark) {
        undo u = p->scope.at[--p->scope.n];
        rx_map_put(u.sym ? &p->syms : &p->values, RX_KEY(u.name), NULL);
    }
}

static rx_ex known_sym(void *arg, rx_lexer *l, const char *name)
{
    (void)l;
    return rx_map_get(&((parser *)arg)->syms, RX_KEY(name));
}

static bool constant_word(const char *name)
{
    return !strcmp(name, "inf") || !strcmp(name, "nan");
}

/* in annotations of parameters and results: a new name is a new symbol */
static rx_ex head_sym(void *arg, rx_lexer *l, const char *name)
{
    parser *p = arg;
    rx_ex s = known_sym(arg, l, name);
    if (s || constant_word(name))
        return s;
    s = rx_fn_sym(p->f, name);
    define_sym(p, name, s);
    return s;
}

/* in match_cast: a new name is a new symbol, perhaps one whose bounds the head gives */
static rx_ex cast_sym(void *arg, rx_lexer *l, const char *name)
{
    parser *p = arg;
    rx_ex s = known_sym(arg, l, name);
    if (s || constant_word(name))
        return s;
    s = rx_map_get(&p->early, RX_KEY(name));
    rx_map_put(&p->early, RX_KEY(name), NULL);
    if (!s)
        s = rx_fn_sym_fresh(p->f, name);
    define_sym(p, name, s);
    return s;
}

/* in conditions of the head: a name that the head does not define waits for its match_cast */
static rx_ex where_sym(void *arg, rx_lexer *l, const char *name)
{
    parser *p = arg;
    rx_ex s = known_sym(arg, l, name);
    if (!s)
        s = rx_map_get(&p->early, RX_KEY(name));
    if (s || constant_word(name))
        return s;
    s = rx_fn_sym(p->f, name);
    rx_map_put(&p->early, RX_KEY(name), (void *)s);
    return s;
}

static rx_ex read_expr(parser *p)
{
    rx_scope_fns sc = {.name = known_sym, .arg = p};
    return rx_parse_expr(p->l, &sc);
}

static rx_ex read_index(parser *p)
{
    rx_ex e = read_expr(p);
    if (e->dtype != RELAX_I64 || e->flags & RX_EX_DATA)
        rx_lex_fail(p->l, RXE_SYNTAX, "expected an integer expression");
    return e;
}

static rx_ty read_type(parser *p, rx_ex (*names)(void *, rx_lexer *, const char *))
{
    rx_scope_fns sc = {.name = names, .arg = p};
    return rx_parse_type(p->l, &sc);
}

/* ends a list: takes "," and goes on, or takes close */
static bool more(rx_lexer *l, const char *close)
{
    if (rx_lex_take(l, close))
        return false;
    rx_lex_want(l, ",");
    return !rx_lex_take(l, close);
}

static void read_exprs(parser *p, const char *open, const char *close, rx_exvec *out)
{
    rx_lex_want(p->l, open);
    if (rx_lex_take(p->l, close))
        return;
    do
        rx_push(p->a, out, read_index(p));
    while (more(p->l, close));
}

/* --- operands --- */

typedef RX_VEC(relax_value *) value_vec;

static relax_value *read_leaf_shape(parser *p)
{
    rx_exvec d = {0};
    read_exprs(p, "(", ")", &d);
    return rx_v_shape(p->m, d.at, d.n);
}

static relax_value *read_leaf_prim(parser *p)
{
    rx_lex_want(p->l, "(");
    rx_ex e = read_expr(p);
    rx_lex_want(p->l, ")");
    return rx_v_prim(p->m, e);
}

static relax_function *read_function_name(parser *p)
{
    rx_lex_want(p->l, "@");
    const char *name = rx_text_read_name(p->l, "a function");
    relax_function *f = rx_module_get(p->m, name);
    if (!f)
        rx_lex_fail(p->l, RXE_TEXT_NAME, "no function '%s'", name);
    return f;
}

/* may be NULL: "none" */
static relax_value *read_arg(parser *p)
{
    rx_lexer *l = p->l;
    if (rx_lex_take(l, "none"))
        return NULL;
    if (rx_lex_take(l, "const"))
        return rx_text_read_const(l, p->m);
    if (rx_lex_take(l, "shape"))
        return read_leaf_shape(p);
    if (rx_lex_take(l, "prim"))
        return read_leaf_prim(p);
    if (rx_lex_is(l, "@"))
        return rx_v_func(p->m, read_function_name(p));
    if (l->tok == RX_T_STRING) {
        relax_value *v = rx_v_str(p->m, l->text);
        rx_lex_next(l);
        return v;
    }
    if (l->tok == RX_T_INT || l->tok == RX_T_FLOAT)
        rx_lex_fail(l, RXE_SYNTAX, "a bare number is no operand: write const(f32, (), [1.0]) or prim(1)");
    rx_lexer at = *l;
    const char *name = rx_text_read_name(l, "an operand");
    relax_value *v = rx_map_get(&p->values, RX_KEY(name));
    if (!v)
        rx_lex_fail(&at, RXE_TEXT_NAME, "no value '%s'", name);
    return v;
}

static relax_value *need_arg(parser *p)
{
    relax_value *v = read_arg(p);
    if (!v)
        rx_lex_fail(p->l, RXE_SYNTAX, "none is no operand here");
    return v;
}

static void read_tuple(parser *p, value_vec *out)
{
    rx_lex_want(p->l, "(");
    if (rx_lex_take(p->l, ")"))
        return;
    do
        rx_push(p->a, out, need_arg(p));
    while (more(p->l, ")"));
}

/* "key = …" comes next? */
static bool at_key(const rx_lexer *l)
{
    rx_lexer look = *l;
    if (look.tok != RX_T_NAME)
        return false;
    rx_lex_next(&look);
    return rx_lex_is(&look, "=");
}

static bool at_type(const rx_lexer *l)
{
    static const char *const words[] = {"Tensor", "Shape", "Prim", "Tuple", "Callable", "Object"};
    for (size_t i = 0; i < RX_COUNT(words); i++)
        if (rx_lex_is(l, words[i]))
            return true;
    return false;
}

/* --- attributes --- */

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

static void read_ints(parser *p, rx_attr *x)
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
            while (more(l, close));
    }
    x->u.ints.at = v.at;
    x->u.ints.n = v.n;
}

static void read_attr_value(parser *p, rx_attr *x)
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
        read_ints(p, x);
        break;
    case RX_A_EXPR:
        x->u.e = read_expr(p);
        break;
    case RX_A_EXPRS:
        if (rx_lex_is(l, "(") || rx_lex_is(l, "["))
            read_exprs(p, l->text, rx_lex_is(l, "(") ? ")" : "]", &v);
        else
            rx_push(p->a, &v, read_index(p));
        x->u.exprs.at = v.at;
        x->u.exprs.n = v.n;
        break;
    }
}

typedef RX_VEC(rx_attr) attr_vec;

static void read_op_attr(parser *p, const rx_op *op, attr_vec *out)
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
    read_attr_value(p, &x);
    rx_push(p->a, out, x);
}

/* the kind of an attribute without declaration, from its first tokens */
static rx_akind free_kind(parser *p)
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

static void read_free_attrs(parser *p, rx_attrs *out)
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
    } while (more(l, "}"));
}

/* --- bindings --- */

static relax_value *read_op(parser *p, const rx_op *op)
{
    value_vec args = {0};
    attr_vec attrs = {0};
    rx_lex_want(p->l, "(");
    if (!rx_lex_take(p->l, ")"))
        do {
            if (at_key(p->l))
                read_op_attr(p, op, &attrs);
            else if (attrs.n)
                rx_lex_fail(p->l, RXE_SYNTAX, "an operand behind an attribute");
            else
                rx_push(p->a, &args, read_arg(p));
        } while (more(p->l, ")"));
    return rx_emit_op(&p->gb, op, args.at, args.n, attrs.at, attrs.n);
}

static relax_value *read_direct_call(parser *p)
{
    value_vec args = {0};
    relax_function *f = read_function_name(p);
    read_tuple(p, &args);
    return rx_emit_call(&p->gb, rx_v_func(p->m, f), args.at, args.n, f->pure);
}

static relax_value *read_value_call(parser *p, bool pure)
{
    value_vec args = {0};
    read_tuple(p, &args);
    if (!args.n)
        rx_lex_fail(p->l, RXE_SYNTAX, "the callee is missing");
    return rx_emit_call(&p->gb, args.at[0], args.at + 1, args.n - 1, pure);
}

/* what call_tir, call_tir_inplace, call_dps_library and call_dps have in common */
typedef struct dps {
    relax_function *prim;
    const char *lib;
    value_vec args;
    rx_ty out;
    rx_exvec syms;
    RX_VEC(int32_t) inplace;
} dps;

static void read_callee(parser *p, dps *d, bool lib, bool prim)
{
    rx_lexer *l = p->l;
    if (prim && rx_lex_is(l, "@")) {
        d->prim = read_function_name(p);
        return;
    }
    if (!lib || l->tok != RX_T_STRING)
        rx_lex_fail(l, RXE_SYNTAX, "expected %s", lib ? "the name of a library function in quotes" : "'@' and a tensor program");
    d->lib = l->text;
    rx_lex_next(l);
}

static void read_inplace(parser *p, dps *d)
{
    rx_attr x = {.kind = RX_A_INTS};
    read_ints(p, &x);
    for (uint32_t i = 0; i < x.u.ints.n; i++) {
        int64_t k = x.u.ints.at[i];
        if (k < -1 || k > INT32_MAX)
            rx_lex_fail(p->l, RXE_SYNTAX, "an index in place is -1 or the number of an argument");
        rx_push(p->a, &d->inplace, (int32_t)k);
    }
}

static void read_dps(parser *p, dps *d, bool lib, bool prim, bool out, bool inplace)
{
    rx_lexer *l = p->l;
    rx_lex_want(l, "(");
    read_callee(p, d, lib, prim);
    rx_lex_want(l, ",");
    read_tuple(p, &d->args);
    if (out) {
        rx_lex_want(l, ",");
        d->out = read_type(p, known_sym);
    }
    while (rx_lex_take(l, ",")) {
        if (rx_lex_take(l, "syms")) {
            rx_lex_want(l, "=");
            d->syms.n = 0;
            read_exprs(p, "(", ")", &d->syms);
        } else if (inplace && rx_lex_take(l, "inplace")) {
            rx_lex_want(l, "=");
            d->inplace.n = 0;
            read_inplace(p, d);
        } else {
            rx_lex_fail(l, RXE_SYNTAX, inplace ? "expected inplace= or syms=" : "expected syms=");
        }
    }
    rx_lex_want(l, ")");
}

static relax_value *read_call_dps(parser *p)
{
    dps d = {0};
    read_dps(p, &d, true, true, false, false);
    return rx_emit_call_dps(&p->gb, d.prim, d.lib, d.args.at, d.args.n, d.syms.at, d.syms.n);
}

static relax_value *read_packed(parser *p, bool pure)
{
    rx_lexer *l = p->l;
    value_vec args = {0};
    rx_lex_want(l, "(");
    if (l->tok != RX_T_STRING)
        rx_lex_fail(l, RXE_SYNTAX, "expected the name of a host function in quotes");
    const char *name = l->text;
    rx_lex_next(l);
    rx_lex_want(l, ",");
    while (!at_type(l)) {
        rx_push(p->a, &args, need_arg(p));
        rx_lex_want(l, ",");
    }
    rx_ty out = read_type(p, known_sym);
    rx_lex_take(l, ",");
    rx_lex_want(l, ")");
    return rx_emit_call_packed(&p->gb, name, args.at, args.n, out, pure);
}

static relax_value *read_alloc(parser *p)
{
    rx_ex offset = NULL;
    rx_lex_want(p->l, "(");
    rx_ty t = read_type(p, known_sym);
    if (rx_lex_take(p->l, ",")) {
        rx_lex_want(p->l, "arena");
        rx_lex_want(p->l, "=");
        offset = read_index(p);
    }
    rx_lex_want(p->l, ")");
    relax_value *v = rx_emit_alloc(&p->gb, t);
    v->u.alloc.arena = offset != NULL;
    v->u.alloc.offset = offset;
    return v;
}

static relax_value *read_retyped(parser *p, bool cast)
{
    rx_lex_want(p->l, "(");
    relax_value *x = need_arg(p);
    rx_lex_want(p->l, ",");
    rx_ty t = read_type(p, cast ? cast_sym : known_sym);
    rx_lex_want(p->l, ")");
    return cast ? rx_emit_match_cast(&p->gb, x, t) : rx_emit_view(&p->gb, x, t);
}

static relax_value *read_if(parser *p)
{
    rx_lexer *l = p->l;
    if (++l->depth > RX_MAX_DEPTH)
        rx_lex_fail(l, RXE_SYNTAX, "nested more than %d deep", RX_MAX_DEPTH);
    relax_value *v = rx_emit_if(&p->gb, need_arg(p));
    rx_gb outer = p->gb;
    p->gb = rx_if_then(v);
    relax_value *then = read_body(p, "yield");
    rx_lex_want(l, "else");
    p->gb = rx_if_else(v);
    relax_value *other = read_body(p, "yield");
    p->gb = outer;
    rx_if_end(v, then, other);
    l->depth--;
    return v;
}

static relax_value *read_get(parser *p)
{
    relax_value *t = need_arg(p);
    rx_lex_want(p->l, "[");
    int64_t i = rx_lex_int(p->l, "a field");
    if (i < 0 || i > INT32_MAX)
        rx_lex_fail(p->l, RXE_SYNTAX, "a field is a number from 0");
    rx_lex_want(p->l, "]");
    return rx_emit_get(&p->gb, t, (uint32_t)i);
}

static relax_value *read_word(parser *p, bool *found)
{
    rx_lexer *l = p->l;
    dps d = {0};
    *found = true;
    if (rx_lex_take(l, "if"))
        return read_if(p);
    if (rx_lex_take(l, "match_cast"))
        return read_retyped(p, true);
    if (rx_lex_take(l, "view"))
        return read_retyped(p, false);
    if (rx_lex_take(l, "alloc"))
        return read_alloc(p);
    if (rx_lex_is(l, "call_packed") || rx_lex_is(l, "call_pure_packed")) {
        bool pure = rx_lex_is(l, "call_pure_packed");
        rx_lex_next(l);
        return read_packed(p, pure);
    }
    if (rx_lex_is(l, "call") || rx_lex_is(l, "call_pure")) {
        bool pure = rx_lex_is(l, "call_pure");
        rx_lex_next(l);
        return read_value_call(p, pure);
    }
    if (rx_lex_take(l, "call_tir")) {
        read_dps(p, &d, false, true, true, false);
        return rx_emit_call_tir(&p->gb, d.prim, d.args.at, d.args.n, d.out, d.syms.at, d.syms.n);
    }
    if (rx_lex_take(l, "call_tir_inplace")) {
        read_dps(p, &d, false, true, true, true);
        return rx_emit_call_tir_inplace(&p->gb, d.prim, d.args.at, d.args.n, d.out, d.syms.at, d.syms.n, d.inplace.at, d.inplace.n);
    }
    if (rx_lex_take(l, "call_dps_library")) {
        read_dps(p, &d, true, false, true, false);
        return rx_emit_call_lib(&p->gb, d.lib, d.args.at, d.args.n, d.out, d.syms.at, d.syms.n);
    }
    *found = false;
    return NULL;
}

static relax_value *read_rhs(parser *p)
{
    rx_lexer *l = p->l;
    if (rx_lex_is(l, "@"))
        return read_direct_call(p);
    if (rx_lex_is(l, "(")) {
        value_vec v = {0};
        read_tuple(p, &v);
        return rx_emit_tuple(&p->gb, v.at, v.n);
    }
    bool found;
    relax_value *v = read_word(p, &found);
    if (found)
        return v;
    rx_lexer look = *l;
    if (look.tok == RX_T_NAME) {
        rx_lex_next(&look);
        if (rx_lex_is(&look, "(")) {
            const rx_op *op = rx_op_find(p->ctx, l->text);
            if (!op)
                rx_lex_fail(l, RXE_UNKNOWN_OP, "no operator '%s'", l->text);
            rx_lex_next(l);
            return read_op(p, op);
        }
    }
    if (l->tok != RX_T_NAME && !rx_lex_is(l, "$"))
        rx_lex_fail(l, RXE_SYNTAX, "expected a call, a tuple, a field or an if");
    return read_get(p);
}

/* `where` behind a binding: these conditions, then those of deduction that are missing in the list */
static void read_checks(parser *p, relax_value *v)
{
    rx_exvec all = {0};
    rx_arena *a = &p->m->arena;
    if (!rx_lex_take(p->l, "where"))
        return;
    do {
        rx_ex e = read_expr(p);
        if (e->dtype != RELAX_BOOL || e->flags & RX_EX_DATA)
            rx_lex_fail(p->l, RXE_SYNTAX, "expected a condition over symbols");
        rx_push(a, &all, e);
    } while (rx_lex_take(p->l, ","));
    uint32_t given = all.n;
    for (uint32_t i = 0; i < v->nchecks; i++) {
        bool have = false;
        for (uint32_t k = 0; k < given; k++)
            have |= all.at[k] == v->checks[i];
        if (!have)
            rx_push(a, &all, v->checks[i]);
    }
    v->checks = all.at;
    v->nchecks = all.n;
}

static void mark_place(parser *p)
{
    p->line = p->l->line;
    p->col = p->l->col;
}

static void read_binding(parser *p)
{
    rx_lexer *l = p->l;
    const char *name = NULL;
    relax_value *v;
    mark_place(p);
    if (rx_lex_take(l, "call_dps")) {
        v = read_call_dps(p);
    } else {
        rx_lexer at = *l;
        name = rx_text_read_name(l, "a binding");
        if (rx_map_get(&p->values, RX_KEY(name)))
            rx_lex_fail(&at, RXE_TEXT_NAME, "value '%s' is defined already", name);
        if (at.tok == RX_T_NAME && !rx_text_plain(name))
            rx_lex_fail(&at, RXE_SYNTAX, "'%s' is a word of the language", name);
        rx_lex_want(l, "=");
        v = read_rhs(p);
        v->name = name;
    }
    if (v->kind != RX_V_OP)
        read_free_attrs(p, &v->attrs);
    read_checks(p, v);
    if (name)
        define_value(p, name, v);
}

static void read_outputs(parser *p, rx_map *keep)
{
    if (!rx_lex_take(p->l, "output"))
        return;
    do {
        relax_value *v = read_arg(p);
        if (!v || v->block != p->gb.block || !v->block)
            rx_lex_fail(p->l, RXE_SYNTAX, "an output must be a binding of this dataflow block");
        v->output = true;
        rx_map_put(keep, RX_KEY(v), v);
    } while (rx_lex_take(p->l, ","));
}

/* after the block: outputs and symbols stay in scope, the rest goes */
static void read_dataflow(parser *p)
{
    rx_map keep;
    uint32_t mark = p->scope.n;
    rx_map_init(&keep, p->a);
    rx_lex_want(p->l, "{");
    rx_gb_dataflow(&p->gb, true);
    while (!rx_lex_is(p->l, "output") && !rx_lex_is(p->l, "}"))
        read_binding(p);
    read_outputs(p, &keep);
    rx_lex_want(p->l, "}");
    uint32_t n = mark;
    for (uint32_t i = mark; i < p->scope.n; i++) {
        undo u = p->scope.at[i];
        relax_value *v = u.sym ? NULL : rx_map_get(&p->values, RX_KEY(u.name));
        if (u.sym || (v && rx_map_has(&keep, RX_KEY(v))))
            p->scope.at[n++] = u;
        else
            rx_map_put(&p->values, RX_KEY(u.name), NULL);
    }
    p->scope.n = n;
    rx_gb_dataflow(&p->gb, false);
}

/* "{" bindings word result "}" */
static relax_value *read_body(parser *p, const char *word)
{
    uint32_t mark = p->scope.n;
    rx_lex_want(p->l, "{");
    while (!rx_lex_is(p->l, word)) {
        if (rx_lex_take(p->l, "dataflow"))
            read_dataflow(p);
        else
            read_binding(p);
    }
    mark_place(p);
    rx_lex_next(p->l);
    relax_value *v = need_arg(p);
    rx_lex_want(p->l, "}");
    leave_scope(p, mark);
    return v;
}

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
static bool read_bound(parser *p)
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
        rx_sym_of(where_sym(p, &l, name))->divisor = k;
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
    rx_ex s = where_sym(p, &l, name);
    rx_fn_bound(p->f, s, low >= 0 ? lo + low : rx_sym_of(s)->lo, up >= 0 ? hi - up : rx_sym_of(s)->hi);
    *p->l = l;
    return true;
}

static void read_where(parser *p)
{
    rx_scope_fns sc = {.name = where_sym, .arg = p};
    if (!rx_lex_take(p->l, "where"))
        return;
    do {
        mark_place(p);
        if (!read_bound(p))
            rx_fn_fact(p->f, rx_parse_expr(p->l, &sc));
    } while (rx_lex_take(p->l, ","));
}

static void read_params(parser *p)
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
        define_value(p, name, rx_fn_param(p->f, name, read_type(p, head_sym)));
    } while (more(l, ")"));
}

static void new_scope(parser *p)
{
    rx_map_init(&p->values, p->a);
    rx_map_init(&p->syms, p->a);
    rx_map_init(&p->early, p->a);
    p->scope.n = 0;
}

static const char *free_function_name(parser *p, const char *name)
{
    if (rx_module_get(p->m, name))
        rx_lex_fail(p->l, RXE_TEXT_NAME, "function '%s' is defined already", name);
    return name;
}

/* the body is skipped; second pass: read_function */
static void read_head(parser *p, bool private, bool pure, pending *out)
{
    rx_lexer *l = p->l;
    mark_place(p);
    const char *name = rx_text_read_name(l, "a function");
    size_t n = strlen(name);
    if (name[n - 1] == '*')
        rx_lex_fail(l, RXE_SYNTAX, "a function's name cannot end with '*'");
    p->f = rx_function_new(p->m, free_function_name(p, name));
    p->f->is_private = private;
    p->f->pure = pure;
    new_scope(p);
    read_params(p);
    if (rx_lex_take(l, "->"))
        p->f->ret = read_type(p, known_sym);
    read_where(p);
    read_free_attrs(p, &p->f->attrs);
    if (rx_lex_take(l, "arena"))
        p->f->arena_bytes = read_index(p);
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

static void read_function(parser *p, pending *it)
{
    relax_function *f = p->f = it->f;
    new_scope(p);
    for (uint32_t i = 0; i < f->nparams; i++)
        define_value(p, f->params[i]->name, f->params[i]);
    for (uint32_t i = 0; i < f->syms.n; i++) {
        const char *name = rx_sym_of(f->syms.at[i])->name;
        if (of_params(p->ctx, p->a, f, f->syms.at[i]))
            define_sym(p, name, f->syms.at[i]);
        else
            rx_map_put(&p->early, RX_KEY(name), (void *)f->syms.at[i]);
    }
    rx_lexer l = it->at, *outer = p->l;
    p->l = &l;
    p->gb = rx_gb_begin(f);
    relax_value *result = read_body(p, "return");
    if (it->pure && !f->pure)
        rx_lex_fail(&l, RXE_PURITY, "%s has an impure call: declare it 'impure fn'", f->name);
    for (uint32_t i = 0; i < p->early.n; i++)
        if (p->early.e[i].val)
            rx_lex_fail(&l, RXE_TEXT_NAME, "symbol '%s' of the conditions is never defined", rx_sym_of(p->early.e[i].val)->name);
    rx_fn_finish(f, &p->gb, result);
    p->l = outer;
}

/* --- modules --- */

static void read_props(parser *p)
{
    static const struct { const char *word; uint32_t prop; } props[] = {
        {"legal", RX_M_LEGAL}, {"scheduled", RX_M_SCHEDULED}, {"dps", RX_M_DPS}, {"planned", RX_M_PLANNED},
    };
    do {
        size_t i = 0;
        while (i < RX_COUNT(props) && !rx_lex_is(p->l, props[i].word))
            i++;
        if (i == RX_COUNT(props))
            rx_lex_fail(p->l, RXE_SYNTAX, "expected legal, scheduled, dps or planned");
        p->m->props |= props[i].prop;
        rx_lex_next(p->l);
    } while (rx_lex_take(p->l, ","));
}

static void read_prim(parser *p, bool private)
{
    rx_tb t = {p->ctx, &p->m->arena};
    mark_place(p);
    rx_prim *prim = rx_parse_prim(p->l, &t);
    rx_function_new_prim(p->m, free_function_name(p, prim->name), prim)->is_private = private;
}

static void read_module(parser *p)
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

static void parse_text(parser *p, const char *file, const char *s, size_t n)
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
    parser *const p = RX_NEW(&m->arena, parser);       /* read again after a failure, so not on the stack */
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
