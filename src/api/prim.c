/* prim.c: building tensor programs: loops as a stack of open statement lists, names in one scope shared with the text
 * form. The first error sticks to the builder; relax_prim_finish reports it. */
#include "api/builder.h"

typedef struct level {                 /* an open loop, or the body itself */
    struct level *up;
    RX_VEC(rx_stmt *) stmts;
    rx_ex var, extent;
    bool reduce;
    rx_stmt *init;
    relax_buffer *alloc;               /* a local buffer opened here: the rest of the enclosing list is its body */
    uint32_t mark;
} level;
struct relax_prim_builder {
    uint32_t magic;
    relax_module *mod;
    const char *name;
    rx_tb tb;
    rx_tir_scope *scope;
    RX_VEC(relax_buffer *) params;
    rx_exvec syms;
    level *top;
    relax_status status;
};
#define API_PRIM_MAGIC 0x5052494Du

static bool ok(relax_prim_builder *p) { return p && p->magic == API_PRIM_MAGIC && p->status == RELAX_OK; }

static void stick(relax_prim_builder *p)
{
    if (p->status == RELAX_OK) p->status = api_failed(p->mod->ctx);
}

static bool good_text(relax_prim_builder *p, const char *s, const char *what)
{
    if (!ok(p)) return false;
    if (s) return true;
    p->status = api_null(p->mod->ctx, what);
    return false;
}

static bool good_exprs(relax_prim_builder *p, const relax_expr *const *e, uint32_t n, const char *what)
{
    if (!ok(p)) return false;
    for (uint32_t i = 0; i < n; i++)
        if (!e || !e[i] || e[i]->ctx != p->mod->ctx) {
            p->status = e && e[i] ? api_foreign(p->mod->ctx, what) : api_null(p->mod->ctx, what);
            return false;
        }
    return true;
}

relax_prim_builder *relax_prim_begin(relax_module *m, const char *name)
{
    if (!api_module(m)) return NULL;
    if (!name) {
        api_null(m->ctx, "the name of a tensor program");
        return NULL;
    }
    API_TRY(m->ctx) {
        relax_prim_builder *p = RX_NEW(&m->arena, relax_prim_builder);
        p->magic = API_PRIM_MAGIC;
        p->mod = m;
        p->name = rx_str(m->ctx, name);
        p->tb = (rx_tb){ m->ctx, &m->arena };
        p->scope = rx_tir_scope_new(&p->tb);
        p->top = RX_NEW(&m->arena, level);
        API_RETURN(p);
    }
    return NULL;
}

relax_buffer *relax_prim_param(relax_prim_builder *p, const char *name, const char *type)
{
    if (!good_text(p, name, "the name of a buffer") || !good_text(p, type, "the type of a buffer")) return NULL;
    API_TRY(p->mod->ctx) {
        relax_buffer *b = rx_tir_read_buffer(p->scope, name, type, true);
        rx_push(&p->mod->arena, &p->params, b);
        API_RETURN(b);
    }
    stick(p);
    return NULL;
}

const relax_expr *relax_prim_symbol(relax_prim_builder *p, const char *name)
{
    if (!good_text(p, name, "the name of a symbol")) return NULL;
    API_TRY(p->mod->ctx) {
        rx_ex e = rx_tir_lookup(p->scope, name);
        if (!e) {
            e = rx_sym_new(p->mod->ctx, name, RELAX_I64);
            rx_tir_define(p->scope, rx_sym_of(e)->name, e, NULL);
            rx_push(&p->mod->arena, &p->syms, e);
        }
        API_RETURN(e);
    }
    stick(p);
    return NULL;
}

static void push_level(relax_prim_builder *p, level l)
{
    level *n = rx_arena_dup(&p->mod->arena, &l, sizeof l);
    n->up = p->top;
    p->top = n;
}

static const relax_expr *open_loop(relax_prim_builder *p, const char *var, const char *extent, bool reduce)
{
    if (!good_text(p, var, "the name of a loop variable") || !good_text(p, extent, "the extent of a loop")) return NULL;
    API_TRY(p->mod->ctx) {
        level l = { .extent = rx_tir_read_expr(p->scope, extent), .reduce = reduce, .mark = rx_tir_mark(p->scope) };
        l.var = rx_loopvar(&p->tb, var);
        rx_tir_define(p->scope, rx_sym_of(l.var)->name, l.var, NULL);
        push_level(p, l);
        API_RETURN(l.var);
    }
    stick(p);
    return NULL;
}

const relax_expr *relax_loop(relax_prim_builder *p, const char *var, const char *extent)
{
    return open_loop(p, var, extent, false);
}
const relax_expr *relax_loop_reduce(relax_prim_builder *p, const char *var, const char *extent)
{
    return open_loop(p, var, extent, true);
}

static void add(relax_prim_builder *p, rx_stmt *s) { rx_push(&p->mod->arena, &p->top->stmts, s); }

/* closes the innermost level into a statement of the one around it */
static void close_level(relax_prim_builder *p)
{
    level *l = p->top;
    rx_stmt *body = rx_seq(&p->tb, l->stmts.at, l->stmts.n);
    p->top = l->up;
    if (l->alloc) add(p, rx_alloc_s(&p->tb, l->alloc, body));
    else add(p, rx_for(&p->tb, l->var, rx_int(p->mod->ctx, 0), l->extent, RX_SERIAL, l->reduce, l->init, body));
    rx_tir_reset(p->scope, l->mark);
}

static void close_locals(relax_prim_builder *p)
{
    while (p->top->alloc) close_level(p);
}

void relax_loop_end(relax_prim_builder *p)
{
    if (!ok(p)) return;
    API_TRY(p->mod->ctx) {
        close_locals(p);
        if (!p->top->up) rx_fail(p->mod->ctx, RXE_STATE, NULL, "%s: relax_loop_end without relax_loop", p->name);
        close_level(p);
        API_RETURN();
    }
    stick(p);
}

relax_buffer *relax_local(relax_prim_builder *p, const char *name, const char *type)
{
    if (!good_text(p, name, "the name of a buffer") || !good_text(p, type, "the type of a buffer")) return NULL;
    API_TRY(p->mod->ctx) {
        level l = { .mark = rx_tir_mark(p->scope) };
        l.alloc = rx_tir_read_buffer(p->scope, name, type, false);
        push_level(p, l);
        API_RETURN(l.alloc);
    }
    stick(p);
    return NULL;
}

void relax_store(relax_prim_builder *p, relax_buffer *buf, const relax_expr *const *index, uint32_t n,
                 const relax_expr *value)
{
    if (!good_exprs(p, index, n, "an index") || !good_exprs(p, &value, 1, "the value of a store")) return;
    if (!buf) {
        p->status = api_null(p->mod->ctx, "the buffer of a store");
        return;
    }
    API_TRY(p->mod->ctx) {
        add(p, rx_store(&p->tb, buf, (rx_ex *)index, n, value));
        API_RETURN();
    }
    stick(p);
}

void relax_store_text(relax_prim_builder *p, const char *statement)
{
    if (!good_text(p, statement, "the text of a statement")) return;
    API_TRY(p->mod->ctx) {
        add(p, rx_tir_read_stmts(p->scope, statement));
        API_RETURN();
    }
    stick(p);
}

const relax_expr *relax_load(relax_prim_builder *p, relax_buffer *buf, const relax_expr *const *index, uint32_t n)
{
    if (!good_exprs(p, index, n, "an index")) return NULL;
    if (!buf) {
        p->status = api_null(p->mod->ctx, "the buffer of a load");
        return NULL;
    }
    API_TRY(p->mod->ctx) {
        if (buf->ndim != n)
            rx_fail(p->mod->ctx, RXE_RANK, NULL, "%s: buffer %s has %u dims and is indexed with %u", p->name, buf->name,
                    buf->ndim, n);
        rx_ex e = rx_at(&p->tb, buf, (rx_ex *)index, n);
        API_RETURN(e);
    }
    stick(p);
    return NULL;
}

const relax_expr *relax_prim_expr(relax_prim_builder *p, const char *text)
{
    if (!good_text(p, text, "the text of an expression")) return NULL;
    API_TRY(p->mod->ctx) {
        rx_ex e = rx_tir_read_expr(p->scope, text);
        API_RETURN(e);
    }
    stick(p);
    return NULL;
}

const relax_expr *relax_prim_const(relax_prim_builder *p, relax_dtype dtype, double v)
{
    if (!ok(p)) return NULL;
    if (dtype <= 0 || dtype >= RELAX_DTYPE_COUNT) {
        p->status = rx_error(p->mod->ctx, RXE_BAD_VALUE, NULL, NULL, "%d is no data type", (int)dtype);
        return NULL;
    }
    API_TRY(p->mod->ctx) {
        int64_t i;
        rx_store_f64(RELAX_I64, &i, v);        /* saturates; NaN is 0 */
        rx_ex e = rx_dtype_is_float(dtype) ? rx_const_float(p->mod->ctx, dtype, v)
                                           : rx_const_int(p->mod->ctx, dtype, i);
        API_RETURN(e);
    }
    stick(p);
    return NULL;
}

static const struct { const char *text; rx_eop op; bool swap;
} binaries[] = {
    {"+", RX_EX_ADD, false},       {"-", RX_EX_SUB, false},      {"*", RX_EX_MUL, false},    {"/", RX_EX_DIV, false},
    {"//", RX_EX_FLOORDIV, false}, {"%", RX_EX_FLOORMOD, false}, {"min", RX_EX_MIN, false},  {"max", RX_EX_MAX, false},
    {"&", RX_EX_BITAND, false},    {"|", RX_EX_BITOR, false},    {"^", RX_EX_BITXOR, false}, {"<<", RX_EX_SHL, false},
    {">>", RX_EX_SHR, false},      {"==", RX_EX_EQ, false},      {"!=", RX_EX_NE, false},    {"<", RX_EX_LT, false},
    {"<=", RX_EX_LE, false},       {">", RX_EX_LT, true},        {">=", RX_EX_LE, true},     {"and", RX_EX_AND, false},
    {"or", RX_EX_OR, false},       {"pow", RX_EX_POW, false},
};

const relax_expr *relax_prim_binary(relax_prim_builder *p, const char *op, const relax_expr *a, const relax_expr *b)
{
    const relax_expr *const ab[] = { a, b };
    if (!good_text(p, op, "an operator") || !good_exprs(p, ab, 2, "an operand")) return NULL;
    API_TRY(p->mod->ctx) {
        for (size_t i = 0; i < RX_COUNT(binaries); i++)
            if (!strcmp(binaries[i].text, op)) {
                rx_ex e = rx_binary(p->mod->ctx, binaries[i].op, ab[binaries[i].swap], ab[!binaries[i].swap]);
                API_RETURN(e);
            }
        rx_fail(p->mod->ctx, RXE_BAD_VALUE, NULL, "'%s' is no operator of expressions", op);
    }
    stick(p);
    return NULL;
}

const relax_expr *relax_prim_call(relax_prim_builder *p, const char *f, const relax_expr *const *args, uint32_t n)
{
    static const struct { const char *text; rx_intrin f; uint32_t arity; } intrins[] = {
#define IN(NAME, text, arity, doc) { text, RX_IN_##NAME, arity },
#include "expr/intrins.def"
#undef IN
    };
    if (!good_text(p, f, "the name of a function") || !good_exprs(p, args, n, "an argument")) return NULL;
    API_TRY(p->mod->ctx) {
        relax_context *c = p->mod->ctx;
        relax_dtype t = rx_dtype_parse(f, strlen(f));
        rx_ex e = NULL;
        if (t != RELAX_DTYPE_UNKNOWN && n == 1) e = rx_cast(c, t, args[0]);
        else if (!strcmp(f, "select") && n == 3) e = rx_select(c, args[0], args[1], args[2]);
        else if (!strcmp(f, "not") && n == 1) e = rx_unary(c, RX_EX_NOT, args[0]);
        for (size_t i = 0; i < RX_COUNT(intrins) && !e; i++)
            if (!strcmp(intrins[i].text, f) && intrins[i].arity == n)
                e = rx_intrinsic(c, intrins[i].f, (rx_ex *)args, n);
        if (!e) rx_fail(c, RXE_NOT_FOUND, NULL, "no function '%s' takes %u arguments", f, n);
        API_RETURN(e);
    }
    stick(p);
    return NULL;
}

relax_function *relax_prim_finish(relax_prim_builder *p)
{
    if (!p || p->magic != API_PRIM_MAGIC) return NULL;
    p->magic = 0;
    if (p->status != RELAX_OK) return NULL;
    relax_context *ctx = p->mod->ctx;
    API_TRY(ctx) {
        while (p->top->up) close_level(p);     /* loops and locals that the host left open end here */
        rx_stmt *body = rx_seq(&p->tb, p->top->stmts.at, p->top->stmts.n);
        rx_prim *prim = rx_prim_new(&p->tb, p->name, p->params.at, p->params.n, p->syms.at, p->syms.n, body);
        if (rx_prim_verify(ctx, prim, rx_scratch(&ctx->heap), NULL)) rx_unwind(&ctx->heap);
        relax_function *f = rx_function_new_prim(p->mod, p->name, prim);
        API_RETURN(f);
    }
    return NULL;
}
