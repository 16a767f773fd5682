/* parse_body.c: bodies of functions: operands, the right sides of bindings, dataflow blocks, conditionals.
 *
 * Everything is made by the builder at the insertion point p->gb, so a text cannot hold what the builder refuses. */
#include "graph/text.h"

static relax_value *read_rhs(rx_tparser *p);

/* --- operands --- */

typedef RX_VEC(relax_value *) value_vec;

static relax_value *read_leaf_shape(rx_tparser *p)
{
    rx_exvec d = {0};
    rx_tp_indices(p, "(", ")", &d);
    return rx_v_shape(p->m, d.at, d.n);
}

static relax_value *read_leaf_prim(rx_tparser *p)
{
    rx_lex_want(p->l, "(");
    rx_ex e = rx_tp_expr(p);
    rx_lex_want(p->l, ")");
    return rx_v_prim(p->m, e);
}

static relax_function *read_function_name(rx_tparser *p)
{
    rx_lex_want(p->l, "@");
    const char *name = rx_text_read_name(p->l, "a function");
    relax_function *f = rx_module_get(p->m, name);
    if (!f)
        rx_lex_fail(p->l, RXE_TEXT_NAME, "no function '%s'", name);
    return f;
}

/* may be NULL: "none" */
static relax_value *read_arg(rx_tparser *p)
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

static relax_value *need_arg(rx_tparser *p)
{
    rx_lexer at = *p->l;
    relax_value *v = read_arg(p);
    if (!v)
        rx_lex_fail(&at, RXE_SYNTAX, "none is no operand here");
    return v;
}

static void read_tuple(rx_tparser *p, value_vec *out)
{
    rx_lex_want(p->l, "(");
    if (rx_lex_take(p->l, ")"))
        return;
    do
        rx_push(p->a, out, need_arg(p));
    while (rx_tp_more(p->l, ")"));
}

static bool at_type(const rx_lexer *l)
{
    static const char *const words[] = {"Tensor", "Shape", "Prim", "Tuple", "Callable", "Object"};
    for (size_t i = 0; i < RX_COUNT(words); i++)
        if (rx_lex_is(l, words[i]))
            return true;
    return false;
}

/* --- bindings --- */

typedef RX_VEC(rx_attr) attr_vec;

static relax_value *read_op(rx_tparser *p, const rx_op *op)
{
    value_vec args = {0};
    attr_vec attrs = {0};
    rx_lex_want(p->l, "(");
    if (!rx_lex_take(p->l, ")"))
        do {
            if (rx_tp_at_key(p->l))
                rx_push(p->a, &attrs, rx_tp_op_attr(p, op));
            else if (attrs.n)
                rx_lex_fail(p->l, RXE_SYNTAX, "an operand behind an attribute");
            else
                rx_push(p->a, &args, read_arg(p));
        } while (rx_tp_more(p->l, ")"));
    return rx_emit_op(&p->gb, op, args.at, args.n, attrs.at, attrs.n);
}

static relax_value *read_direct_call(rx_tparser *p)
{
    value_vec args = {0};
    relax_function *f = read_function_name(p);
    read_tuple(p, &args);
    return rx_emit_call(&p->gb, rx_v_func(p->m, f), args.at, args.n, f->pure);
}

static relax_value *read_value_call(rx_tparser *p, bool pure)
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

static void read_callee(rx_tparser *p, dps *d, bool lib, bool prim)
{
    rx_lexer *l = p->l;
    if (prim && rx_lex_is(l, "@")) {
        d->prim = read_function_name(p);
        return;
    }
    if (!lib || l->tok != RX_T_STRING)
        rx_lex_fail(l, RXE_SYNTAX, "expected %s",
                    lib ? "the name of a library function in quotes" : "'@' and a tensor program");
    d->lib = l->text;
    rx_lex_next(l);
}

static void read_inplace(rx_tparser *p, dps *d)
{
    rx_attr x = {.kind = RX_A_INTS};
    rx_tp_ints(p, &x);
    for (uint32_t i = 0; i < x.u.ints.n; i++) {
        int64_t k = x.u.ints.at[i];
        if (k < -1 || k > INT32_MAX)
            rx_lex_fail(p->l, RXE_SYNTAX, "an index in place is -1 or the number of an argument");
        rx_push(p->a, &d->inplace, (int32_t)k);
    }
}

static void read_dps(rx_tparser *p, dps *d, bool lib, bool prim, bool out, bool inplace)
{
    rx_lexer *l = p->l;
    rx_lex_want(l, "(");
    read_callee(p, d, lib, prim);
    rx_lex_want(l, ",");
    read_tuple(p, &d->args);
    if (out) {
        rx_lex_want(l, ",");
        d->out = rx_tp_type(p, rx_tp_known);
    }
    while (rx_lex_take(l, ",")) {
        if (rx_lex_take(l, "syms")) {
            rx_lex_want(l, "=");
            d->syms.n = 0;
            rx_tp_indices(p, "(", ")", &d->syms);
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

static relax_value *read_call_dps(rx_tparser *p)
{
    dps d = {0};
    read_dps(p, &d, true, true, false, false);
    return rx_emit_call_dps(&p->gb, d.prim, d.lib, d.args.at, d.args.n, d.syms.at, d.syms.n);
}

static relax_value *read_packed(rx_tparser *p, bool pure)
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
    rx_ty out = rx_tp_type(p, rx_tp_known);
    rx_lex_take(l, ",");
    rx_lex_want(l, ")");
    return rx_emit_call_packed(&p->gb, name, args.at, args.n, out, pure);
}

static relax_value *read_alloc(rx_tparser *p)
{
    rx_ex offset = NULL;
    rx_lex_want(p->l, "(");
    rx_ty t = rx_tp_type(p, rx_tp_known);
    if (rx_lex_take(p->l, ",")) {
        rx_lex_want(p->l, "arena");
        rx_lex_want(p->l, "=");
        offset = rx_tp_index(p);
    }
    rx_lex_want(p->l, ")");
    relax_value *v = rx_emit_alloc(&p->gb, t);
    v->u.alloc.arena = offset != NULL;
    v->u.alloc.offset = offset;
    return v;
}

static relax_value *read_retyped(rx_tparser *p, bool cast)
{
    rx_lex_want(p->l, "(");
    relax_value *x = need_arg(p);
    rx_lex_want(p->l, ",");
    rx_ty t = rx_tp_type(p, cast ? rx_tp_cast : rx_tp_known);
    rx_lex_want(p->l, ")");
    return cast ? rx_emit_match_cast(&p->gb, x, t) : rx_emit_view(&p->gb, x, t);
}

static relax_value *read_if(rx_tparser *p)
{
    rx_lexer *l = p->l;
    if (++l->depth > RX_MAX_DEPTH)
        rx_lex_fail(l, RXE_SYNTAX, "nested more than %d deep", RX_MAX_DEPTH);
    relax_value *v = rx_emit_if(&p->gb, need_arg(p));
    rx_gb outer = p->gb;
    p->gb = rx_if_then(v);
    relax_value *then = rx_tp_body(p, "yield");
    rx_lex_want(l, "else");
    p->gb = rx_if_else(v);
    relax_value *other = rx_tp_body(p, "yield");
    p->gb = outer;
    rx_if_end(v, then, other);
    l->depth--;
    return v;
}

static relax_value *read_get(rx_tparser *p)
{
    relax_value *t = need_arg(p);
    rx_lex_want(p->l, "[");
    int64_t i = rx_lex_int(p->l, "a field");
    if (i < 0 || i > INT32_MAX)
        rx_lex_fail(p->l, RXE_SYNTAX, "a field is a number from 0");
    rx_lex_want(p->l, "]");
    return rx_emit_get(&p->gb, t, (uint32_t)i);
}

static relax_value *read_word(rx_tparser *p, bool *found)
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
        return rx_emit_call_tir_inplace(&p->gb, d.prim, d.args.at, d.args.n, d.out, d.syms.at, d.syms.n, d.inplace.at,
                                        d.inplace.n);
    }
    if (rx_lex_take(l, "call_dps_library")) {
        read_dps(p, &d, true, false, true, false);
        return rx_emit_call_lib(&p->gb, d.lib, d.args.at, d.args.n, d.out, d.syms.at, d.syms.n);
    }
    *found = false;
    return NULL;
}

static relax_value *read_rhs(rx_tparser *p)
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
static void read_checks(rx_tparser *p, relax_value *v)
{
    rx_exvec all = {0};
    rx_arena *a = &p->m->arena;
    if (!rx_lex_take(p->l, "where"))
        return;
    do {
        rx_ex e = rx_tp_expr(p);
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

static void read_binding(rx_tparser *p)
{
    rx_lexer *l = p->l, at = *l;
    const char *name = NULL;
    relax_value *v;
    rx_tp_place(p);
    if (rx_lex_take(l, "call_dps")) {
        v = read_call_dps(p);
    } else {
        name = rx_text_read_name(l, "a binding");
        if (rx_map_get(&p->values, RX_KEY(name)))
            rx_lex_fail(&at, RXE_TEXT_NAME, "value '%s' is defined already", name);
        if (at.tok == RX_T_NAME && !rx_text_plain(name))
            rx_lex_fail(&at, RXE_SYNTAX, "'%s' is a word of the language", name);
        rx_lex_want(l, "=");
        v = read_rhs(p);
        v->name = name;
    }
    if (p->pure && !v->pure)
        rx_lex_fail(&at, RXE_PURITY, "an impure call in %s: declare it 'impure fn'", p->f->name);
    if (v->kind != RX_V_OP)
        rx_tp_attrs(p, &v->attrs);
    read_checks(p, v);
    if (name)
        rx_tp_define(p, name, v);
}

static void read_outputs(rx_tparser *p, rx_map *keep)
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
static void read_dataflow(rx_tparser *p)
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
        rx_undo u = p->scope.at[i];
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
relax_value *rx_tp_body(rx_tparser *p, const char *word)
{
    uint32_t mark = p->scope.n;
    rx_lex_want(p->l, "{");
    while (!rx_lex_is(p->l, word)) {
        if (rx_lex_take(p->l, "dataflow"))
            read_dataflow(p);
        else
            read_binding(p);
    }
    rx_tp_place(p);
    rx_lex_next(p->l);
    relax_value *v = need_arg(p);
    rx_lex_want(p->l, "}");
    rx_tp_leave(p, mark);
    return v;
}
