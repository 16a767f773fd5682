/* print.c: functions and modules as text; parse.c reads it back to the same program. Grammar in docs/text-form.md.
 *
 * Values and symbols get unique names: parameters keep theirs, a binding gets its wish or the wish with a number;
 * symbols that share a name, or whose name is no identifier, are replaced by renamed ones while the function is printed
 * (so sums keep the order that the parser will give them). Bounds of symbols and declared conditions follow the
 * signature as `where`. */
#include "graph/text.h"

typedef struct printer {
    rx_buf *b;
    relax_context *ctx;
    relax_function *f;
    rx_arena *a;
    rx_map names;                      /* value -> text name */
    rx_map used;                       /* interned name -> next number to try + 1 */
    rx_exvec syms;                     /* symbols of the function in order of appearance */
    rx_map rename;                     /* symbol -> renamed symbol */
    uint32_t indent;
} printer;

/* --- names --- */

static const char *unique(printer *p, const char *wish)
{
    const char *s = rx_str(p->ctx, wish);
    uintptr_t k = (uintptr_t)rx_map_get(&p->used, RX_KEY(s));
    if (k) {
        const char *base = s;
        do
            s = rx_strf(p->ctx, "%s_%u", base, (unsigned)k++);
        while (rx_map_has(&p->used, RX_KEY(s)));
        rx_map_put(&p->used, RX_KEY(base), (void *)k);
    }
    rx_map_put(&p->used, RX_KEY(s), (void *)1);
    return s;
}

static void name_value(void *arg, relax_value *v)
{
    printer *p = arg;
    const char *wish = v->name && *v->name ? v->name : v->kind == RX_V_ALLOC ? "m" : "v";
    if (v->kind != RX_V_CALL_DPS)
        rx_map_put(&p->names, RX_KEY(v), (void *)unique(p, wish));
}

static void see_expr(printer *p, rx_ex e)
{
    if (e)
        rx_free_syms(p->ctx, p->a, e, &p->syms);
}

static void see_value(void *arg, relax_value *v)
{
    printer *p = arg;
    if (v->type && v->kind != RX_V_OP && v->kind != RX_V_CALL && v->kind != RX_V_TUPLE && v->kind != RX_V_GET &&
        v->kind != RX_V_IF)
        rx_ty_free_syms(p->ctx, p->a, v->type, &p->syms);
    for (uint32_t i = 0; i < v->nsyms; i++)
        see_expr(p, v->syms[i]);
    for (uint32_t i = 0; i < v->nchecks; i++)
        see_expr(p, v->checks[i]);
    for (uint32_t i = 0; i < v->attrs.n; i++) {
        const rx_attr *x = &v->attrs.at[i];
        see_expr(p, x->kind == RX_A_EXPR ? x->u.e : NULL);
        for (uint32_t k = 0; x->kind == RX_A_EXPRS && k < x->u.exprs.n; k++)
            see_expr(p, x->u.exprs.at[k]);
    }
    if (v->kind == RX_V_ALLOC && v->u.alloc.arena)
        see_expr(p, v->u.alloc.offset);
    for (uint32_t i = 0; i < v->nargs; i++)
        if (v->args[i] && (v->args[i]->kind == RX_V_SHAPE || v->args[i]->kind == RX_V_PRIM))
            for (uint32_t k = 0; k < v->args[i]->nsyms; k++)
                see_expr(p, v->args[i]->syms[k]);
}

static void collect_syms(printer *p)
{
    relax_function *f = p->f;
    for (uint32_t i = 0; i < f->nparams; i++)
        rx_ty_free_syms(p->ctx, p->a, f->params[i]->type, &p->syms);
    rx_ty_free_syms(p->ctx, p->a, f->ret, &p->syms);
    for (uint32_t i = 0; i < f->fact_list.n; i++)
        see_expr(p, f->fact_list.at[i]);
    see_expr(p, f->arena_bytes);
    rx_fn_visit(f, see_value, p);
    if (f->body.result)
        see_value(p, f->body.result);
}

/* words that an expression gives a meaning of their own */
static bool sym_plain(const char *name)
{
    static const char *const taken[] = {"true", "false", "and", "or", "not", "inf", "nan", "ndim"};
    for (size_t i = 0; i < RX_COUNT(taken); i++)
        if (!strcmp(name, taken[i]))
            return false;
    return rx_text_plain(name);
}

static void rename_syms(printer *p)
{
    rx_map used;
    rx_map_init(&used, p->a);
    for (uint32_t i = 0; i < p->syms.n; i++) {
        const rx_sym *s = rx_sym_of(p->syms.at[i]);
        const char *base = sym_plain(s->name) ? s->name : rx_str(p->ctx, "s"), *name = base;
        for (uint32_t k = 1; rx_map_has(&used, RX_KEY(name)); k++)
            name = rx_strf(p->ctx, "%s_%u", base, k);
        rx_map_put(&used, RX_KEY(name), (void *)name);
        if (name != s->name)
            rx_map_put(&p->rename, RX_KEY(p->syms.at[i]), (void *)rx_sym_new(p->ctx, name, RELAX_I64));
    }
}

static void open(printer *p, rx_buf *b, relax_function *f)
{
    *p = (printer){.b = b, .ctx = f->mod->ctx, .f = f};
    p->a = rx_scratch(&p->ctx->heap);
    rx_map_init(&p->names, p->a);
    rx_map_init(&p->used, p->a);
    rx_map_init(&p->rename, p->a);
    for (uint32_t i = 0; i < f->nparams; i++)
        rx_map_put(&p->names, RX_KEY(f->params[i]), (void *)unique(p, f->params[i]->name));
    rx_fn_visit(f, name_value, p);
    collect_syms(p);
    rename_syms(p);
}

/* --- parts --- */

static void put_expr(printer *p, rx_ex e)
{
    rx_print_expr(p->b, p->rename.n ? rx_subst(p->ctx, e, &p->rename) : e);
}

static void put_type(printer *p, rx_ty t)
{
    rx_print_type(p->b, p->rename.n ? rx_ty_subst(p->ctx, t, &p->rename) : t);
}

static void put_exprs(printer *p, rx_ex *e, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        if (i)
            rx_puts(p->b, ", ");
        put_expr(p, e[i]);
    }
}

static void put_dims(printer *p, rx_ex *e, uint32_t n)
{
    rx_putc(p->b, '(');
    put_exprs(p, e, n);
    rx_puts(p->b, n == 1 ? ",)" : ")");
}

static void put_arg(printer *p, const relax_value *v)
{
    const char *name;
    if (!v) {
        rx_puts(p->b, "none");
    } else if (v->kind == RX_V_CONST) {
        rx_text_const(p->b, v->u.data);
    } else if (v->kind == RX_V_SHAPE || v->kind == RX_V_PRIM) {
        rx_puts(p->b, v->kind == RX_V_SHAPE ? "shape(" : "prim(");
        put_exprs(p, v->syms, v->nsyms);
        rx_putc(p->b, ')');
    } else if (v->kind == RX_V_FUNC) {
        rx_putc(p->b, '@');
        rx_text_name(p->b, v->u.callee->name);
    } else if (v->kind == RX_V_STR) {
        rx_text_string(p->b, v->ext);
    } else if ((name = rx_map_get(&p->names, RX_KEY(v)))) {
        rx_text_name(p->b, name);
    } else {                           /* misplaced: the verifier says so; the text does not parse */
        rx_putf(p->b, "?%u", v->id);
    }
}

static void put_args(printer *p, relax_value *const *v, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        if (i)
            rx_puts(p->b, ", ");
        put_arg(p, v[i]);
    }
}

static void put_tuple(printer *p, relax_value *const *v, uint32_t n)
{
    rx_putc(p->b, '(');
    put_args(p, v, n);
    rx_puts(p->b, n == 1 ? ",)" : ")");
}

static void put_attr_value(printer *p, const rx_attr *x)
{
    switch (x->kind) {
    case RX_A_INT:
        rx_put_i64(p->b, x->u.i);
        break;
    case RX_A_FLOAT:
        rx_put_double(p->b, x->u.f);
        break;
    case RX_A_BOOL:
        rx_puts(p->b, x->u.i ? "true" : "false");
        break;
    case RX_A_DTYPE:
        rx_puts(p->b, rx_dtypes[x->u.dtype].name);
        break;
    case RX_A_STR:
        rx_text_string(p->b, x->u.s);
        break;
    case RX_A_INTS:
        rx_putc(p->b, '(');
        for (uint32_t i = 0; i < x->u.ints.n; i++) {
            if (i)
                rx_puts(p->b, ", ");
            rx_put_i64(p->b, x->u.ints.at[i]);
        }
        rx_puts(p->b, x->u.ints.n == 1 ? ",)" : ")");
        break;
    case RX_A_EXPR:
        put_expr(p, x->u.e);
        break;
    case RX_A_EXPRS:
        put_dims(p, x->u.exprs.at, x->u.exprs.n);
        break;
    }
}

/* a lone float of an operator's attribute reads as f64 */
static void put_op_attr_value(printer *p, const rx_attr *x)
{
    rx_ex e = x->kind == RX_A_EXPR && x->u.e->op == RX_EX_FLOAT ? x->u.e : NULL;
    if (!e) {
        put_attr_value(p, x);
    } else if (e->dtype == RELAX_F64) {
        rx_put_double(p->b, e->u.f);
    } else {
        rx_putf(p->b, "%s(", rx_dtypes[e->dtype].name);
        rx_put_float(p->b, (float)e->u.f);
        rx_putc(p->b, ')');
    }
}

/* attributes of an operator that differ from their defaults */
static void put_op_attrs(printer *p, const relax_value *v, bool comma)
{
    const rx_op *op = v->u.op;
    for (uint32_t i = 0; i < v->attrs.n; i++) {
        const rx_attr *x = &v->attrs.at[i];
        bool is_default = false;
        for (uint32_t k = 0; k < op->nattrs; k++)
            is_default |= op->attrs[k].has_def && rx_attr_same(&op->attrs[k].def, x);
        if (is_default)
            continue;
        rx_putf(p->b, "%s%s=", comma ? ", " : "", x->key);
        put_op_attr_value(p, x);
        comma = true;
    }
}

/* attributes without a declaration: kinds that the value does not show are named */
static void put_free_attrs(printer *p, const rx_attrs *a)
{
    if (!a->n)
        return;
    rx_puts(p->b, " attrs {");
    for (uint32_t i = 0; i < a->n; i++) {
        const rx_attr *x = &a->at[i];
        rx_puts(p->b, i ? ", " : "");
        rx_text_name(p->b, x->key);
        rx_puts(p->b, " = ");
        if (x->kind == RX_A_EXPR || x->kind == RX_A_EXPRS)
            rx_puts(p->b, x->kind == RX_A_EXPR ? "expr(" : "exprs");
        put_attr_value(p, x);
        if (x->kind == RX_A_EXPR)
            rx_putc(p->b, ')');
    }
    rx_putc(p->b, '}');
}

/* --- bindings --- */

static void put_syms(printer *p, const relax_value *v)
{
    if (v->nsyms) {
        rx_puts(p->b, ", syms=");
        put_dims(p, v->syms, v->nsyms);
    }
}

static void put_callee(printer *p, const relax_value *v)
{
    if (v->ext) {
        rx_text_string(p->b, v->ext);
    } else {
        rx_putc(p->b, '@');
        rx_text_name(p->b, v->u.callee ? v->u.callee->name : "none");
    }
}

static void put_dps(printer *p, const relax_value *v, const char *word)
{
    rx_putf(p->b, "%s(", word);
    put_callee(p, v);
    rx_puts(p->b, ", ");
    put_tuple(p, v->args, v->nargs);
    if (v->kind != RX_V_CALL_DPS) {
        rx_puts(p->b, ", ");
        put_type(p, v->type);
    }
    if (v->kind == RX_V_CALL_TIR_INPLACE) {
        rx_puts(p->b, ", inplace=(");
        for (uint32_t i = 0; i < v->ninplace; i++)
            rx_putf(p->b, i ? ", %d" : "%d", v->inplace[i]);
        rx_puts(p->b, v->ninplace == 1 ? ",)" : ")");
    }
    put_syms(p, v);
    rx_putc(p->b, ')');
}

static void put_call(printer *p, const relax_value *v)
{
    const relax_value *callee = v->nargs ? v->args[0] : NULL;
    bool direct = callee && callee->kind == RX_V_FUNC && callee->u.callee->pure == v->pure;
    if (direct) {
        put_arg(p, callee);
        rx_putc(p->b, '(');
        put_args(p, v->args + 1, v->nargs - 1);
    } else {
        rx_puts(p->b, v->pure ? "call_pure(" : "call(");
        put_args(p, v->args, v->nargs);
    }
    rx_putc(p->b, ')');
}

static void put_body(printer *p, const rx_body *b, const char *word);

static void put_if(printer *p, const relax_value *v)
{
    rx_puts(p->b, "if ");
    put_arg(p, v->nargs ? v->args[0] : NULL);
    rx_putc(p->b, ' ');
    put_body(p, v->u.branch.then, "yield");
    rx_puts(p->b, " else ");
    put_body(p, v->u.branch.other, "yield");
}

static void put_rhs(printer *p, const relax_value *v)
{
    rx_buf *b = p->b;
    switch (v->kind) {
    case RX_V_PARAM:
    case RX_V_CONST:
    case RX_V_SHAPE:
    case RX_V_PRIM:
    case RX_V_FUNC:
    case RX_V_STR:
    case RX_V_COUNT:
        put_arg(p, v);
        break;
    case RX_V_OP:
        rx_putf(b, "%s(", v->u.op ? v->u.op->name : "none");
        put_args(p, v->args, v->nargs);
        if (v->u.op)
            put_op_attrs(p, v, v->nargs > 0);
        rx_putc(b, ')');
        break;
    case RX_V_CALL:
        put_call(p, v);
        break;
    case RX_V_CALL_TIR:
        put_dps(p, v, "call_tir");
        break;
    case RX_V_CALL_TIR_INPLACE:
        put_dps(p, v, "call_tir_inplace");
        break;
    case RX_V_CALL_DPS_LIB:
        put_dps(p, v, "call_dps_library");
        break;
    case RX_V_CALL_DPS:
        put_dps(p, v, "call_dps");
        break;
    case RX_V_CALL_PACKED:
        rx_puts(b, v->pure ? "call_pure_packed(" : "call_packed(");
        rx_text_string(b, v->ext);
        rx_puts(b, v->nargs ? ", " : "");
        put_args(p, v->args, v->nargs);
        rx_puts(b, ", ");
        put_type(p, v->type);
        rx_putc(b, ')');
        break;
    case RX_V_TUPLE:
        put_tuple(p, v->args, v->nargs);
        break;
    case RX_V_GET:
        put_arg(p, v->args[0]);
        rx_putf(b, "[%u]", v->u.index);
        break;
    case RX_V_MATCH_CAST:
    case RX_V_VIEW:
        rx_puts(b, v->kind == RX_V_VIEW ? "view(" : "match_cast(");
        put_arg(p, v->args[0]);
        rx_puts(b, ", ");
        put_type(p, v->type);
        rx_putc(b, ')');
        break;
    case RX_V_IF:
        put_if(p, v);
        break;
    case RX_V_ALLOC:
        rx_puts(b, "alloc(");
        put_type(p, v->type);
        if (v->u.alloc.arena) {
            rx_puts(b, ", arena=");
            put_expr(p, v->u.alloc.offset);
        }
        rx_putc(b, ')');
        break;
    }
    if (v->kind != RX_V_OP)
        put_free_attrs(p, &v->attrs);
    if (v->nchecks) {
        rx_puts(b, " where ");
        put_exprs(p, v->checks, v->nchecks);
    }
}

static void line(printer *p)
{
    rx_putc(p->b, '\n');
    for (uint32_t i = 0; i < p->indent; i++)
        rx_puts(p->b, "  ");
}

static void put_binding(printer *p, const relax_value *v)
{
    const char *name = rx_map_get(&p->names, RX_KEY(v));
    if (name) {
        rx_text_name(p->b, name);
        rx_puts(p->b, " = ");
    }
    put_rhs(p, v);
}

static void put_block(printer *p, const rx_iblock *bl)
{
    if (bl->dataflow) {
        line(p);
        rx_puts(p->b, "dataflow {");
        p->indent++;
    }
    for (const relax_value *v = bl->first; v; v = v->next) {
        line(p);
        put_binding(p, v);
    }
    if (!bl->dataflow)
        return;
    bool any = false;
    for (const relax_value *v = bl->first; v; v = v->next) {
        if (!v->output)
            continue;
        if (!any)
            line(p);
        rx_puts(p->b, any ? ", " : "output ");
        rx_text_name(p->b, rx_map_get(&p->names, RX_KEY(v)));
        any = true;
    }
    p->indent--;
    line(p);
    rx_putc(p->b, '}');
}

static void put_body(printer *p, const rx_body *b, const char *word)
{
    rx_putc(p->b, '{');
    p->indent++;
    for (const rx_iblock *bl = b->first; bl; bl = bl->next)
        if (bl->first)
            put_block(p, bl);
    line(p);
    rx_putf(p->b, "%s ", word);
    put_arg(p, b->result);
    p->indent--;
    line(p);
    rx_putc(p->b, '}');
}

/* --- functions --- */

static void put_sep(printer *p, bool *first)
{
    rx_puts(p->b, *first ? " where " : ", ");
    *first = false;
}

static void put_where(printer *p)
{
    bool first = true;
    for (uint32_t i = 0; i < p->syms.n; i++) {
        const rx_sym *s = rx_sym_of(p->syms.at[i]);
        bool lo = s->lo != 0 && s->lo != INT64_MIN, hi = s->hi != INT64_MAX;
        if (lo || hi) {
            put_sep(p, &first);
            if (lo || (hi && s->lo == 0 && s->hi < 0)) {
                rx_put_i64(p->b, s->lo);
                rx_puts(p->b, " <= ");
            }
            put_expr(p, p->syms.at[i]);
            if (hi) {
                rx_puts(p->b, " <= ");
                rx_put_i64(p->b, s->hi);
            }
        }
        if (s->divisor > 1) {
            put_sep(p, &first);
            put_expr(p, p->syms.at[i]);
            rx_putf(p->b, " %% %lld == 0", (long long)s->divisor);
        }
    }
    for (uint32_t i = 0; i < p->f->fact_list.n; i++) {
        put_sep(p, &first);
        put_expr(p, p->f->fact_list.at[i]);
    }
}

static void put_head(printer *p)
{
    relax_function *f = p->f;
    rx_buf *b = p->b;
    rx_puts(b, f->is_private ? "private " : "");
    rx_puts(b, f->pure ? "fn " : "impure fn ");
    rx_text_name(b, f->name);
    rx_putc(b, '(');
    for (uint32_t i = 0; i < f->nparams; i++) {
        rx_puts(b, i ? ", " : "");
        rx_text_name(b, f->params[i]->name);
        rx_puts(b, ": ");
        put_type(p, f->params[i]->type);
    }
    rx_putc(b, ')');
    if (f->ret) {
        rx_puts(b, " -> ");
        put_type(p, f->ret);
    }
    put_where(p);
    put_free_attrs(p, &f->attrs);
    if (f->arena_bytes) {
        rx_puts(b, " arena ");
        put_expr(p, f->arena_bytes);
    }
    rx_putc(b, ' ');
}

void rx_print_function(rx_buf *b, relax_function *f)
{
    printer p;
    if (f->is_prim) {
        rx_puts(b, f->is_private ? "private " : "");
        rx_print_prim(b, f->prim);
        return;
    }
    open(&p, b, f);
    put_head(&p);
    put_body(&p, &f->body, "return");
    rx_putc(b, '\n');
}

static const struct { uint32_t prop; const char *text; } props[] = {
    {RX_M_LEGAL, "legal"}, {RX_M_SCHEDULED, "scheduled"}, {RX_M_DPS, "dps"}, {RX_M_PLANNED, "planned"},
    {RX_M_GUARDED, "guarded"},
};

void rx_print_module(rx_buf *b, relax_module *m)
{
    bool first = true;
    for (size_t i = 0; i < RX_COUNT(props); i++)
        if (m->props & props[i].prop) {
            rx_puts(b, first ? "module " : ", ");
            rx_puts(b, props[i].text);
            first = false;
        }
    if (!first)
        rx_putc(b, '\n');
    for (relax_function *f = m->first; f; f = f->next) {
        if (!first)
            rx_putc(b, '\n');
        first = false;
        rx_print_function(b, f);
    }
}

void rx_print_value(rx_buf *b, relax_value *v)
{
    relax_function *f = v->fn;
    printer p;
    if (!f || f->is_prim) {
        rx_puts(b, v->name ? v->name : "v");
        return;
    }
    open(&p, b, f);
    if (v->block)
        put_binding(&p, v);
    else
        put_arg(&p, v);
}

void rx_print_attr(relax_context *ctx, rx_buf *b, const rx_attr *x)
{
    printer p = {.b = b, .ctx = ctx, .a = rx_scratch(&ctx->heap)};
    rx_map_init(&p.rename, p.a);
    put_op_attr_value(&p, x);
}
