/* parse.c: reads one prim func. Grammar (docs/text-form.md):
 *
 *   prim   := name "(" [param {"," param}] [";" name {"," name}] ")" ["where" cond {"," cond}] ["from" string] block
 *   param  := name ":" "Buffer" "(" dims "," dtype ["," "strides" "=" dims] ")"
 *   block  := "{" {stmt [";"]} "}"
 *   stmt   := "for" name [":" how] "in" range ["init" (block | store)] block | block
 *           | "if" cond block ["else" (block | "if" …)] | "let" name ":" dtype "=" expr
 *           | "assert" cond "," error-word [string] | "prefetch" name "[" indices "]" | store
 *           | name "=" "alloc" "(" dims "," dtype "," mem ["," "strides" "=" dims] ")"
 *   how    := ["parallel" | "vector" | "unroll"] ["reduce"]
 *   range  := extent | lo ".." hi | lo "..+" extent
 *   store  := name "[" indices "]" ("=" | "+=" | "-=" | "*=" | "min=" | "max=") expr
 *
 * Input: a lexer after the word "prim". Output: a prim func in the arena of t; semantic rules are the verifier's, save
 * those that the constructors check. Names are looked up innermost first; one that is in scope cannot be defined again.
 * A name in a dim of a parameter that is not known yet becomes a symbol with lower bound 0. */
#include "tir/text.h"

typedef struct def { const char *name; rx_ex sym; relax_buffer *buf; } def;     /* sym or buf */
typedef struct parser {
    rx_lexer *l;
    rx_tb *t;
    RX_VEC(def) scope;
    bool in_params;                    /* unknown names define symbols */
    rx_scope_fns fns;
} parser;

static rx_stmt *block(parser *p);

static const def *find(const parser *p, const char *name)
{
    for (uint32_t i = p->scope.n; i-- > 0;)
        if (p->scope.at[i].name == name)
            return &p->scope.at[i];
    return NULL;
}

static void define(parser *p, const char *name, rx_ex sym, relax_buffer *buf)
{
    def d = {name, sym, buf};
    if (find(p, name))
        rx_lex_fail(p->l, RXE_TEXT_NAME, "'%s' is defined already", name);
    if (rx_tir_reserved(name))
        rx_lex_fail(p->l, RXE_TEXT_NAME, "'%s' is a word of the language and cannot be a name", name);
    rx_push(p->t->a, &p->scope, d);
}

static rx_ex lookup_sym(void *arg, rx_lexer *l, const char *name)
{
    parser *p = arg;
    const def *d = find(p, name);
    if (d && d->buf)
        rx_lex_fail(l, RXE_TEXT_NAME, "'%s' is a buffer: write %s[…]", name, name);
    if (d || !p->in_params || rx_tir_reserved(name))
        return d ? d->sym : NULL;
    rx_ex e = rx_sym_new(p->t->ctx, name, RELAX_I64);
    rx_sym_of(e)->lo = 0;
    define(p, rx_sym_of(e)->name, e, NULL);
    return e;
}

static void check_rank(rx_lexer *l, const relax_buffer *b, uint32_t n)
{
    if (b->ndim != n)
        rx_lex_fail(l, RXE_RANK, "buffer '%s' has %u dims and is indexed with %u", b->name, b->ndim, n);
}

static rx_ex lookup_load(void *arg, rx_lexer *l, const char *name, rx_ex *index, uint32_t n)
{
    parser *p = arg;
    const def *d = find(p, name);
    if (!d || !d->buf)
        rx_lex_fail(l, RXE_TEXT_NAME, "'%s' is not a buffer", name);
    check_rank(l, d->buf, n);
    return rx_at(p->t, d->buf, index, n);
}

static rx_ex expr(parser *p)
{
    return rx_parse_expr(p->l, &p->fns);
}

static rx_ex expr_of(parser *p, relax_dtype t, const char *what)
{
    rx_ex e = expr(p);
    if (e->dtype != t)
        rx_lex_fail(p->l, RXE_DTYPE, "%s is %s, not %s", what, rx_dtypes[e->dtype].name, rx_dtypes[t].name);
    return e;
}

/* A bare literal takes the dtype that is asked for. */
static rx_ex value_of(parser *p, relax_dtype t, const char *what)
{
    rx_ex e = rx_parse_expr_as(p->l, &p->fns, t);
    if (e->dtype != t)
        rx_lex_fail(p->l, RXE_DTYPE, "%s is %s, not %s", what, rx_dtypes[e->dtype].name, rx_dtypes[t].name);
    return e;
}

/* "(a, b)", "(a,)" or "()" */
static void dims(parser *p, rx_exvec *out)
{
    rx_lex_want(p->l, "(");
    while (!rx_lex_is(p->l, ")")) {
        rx_ex e = expr_of(p, RELAX_I64, "a dim");
        rx_push(p->t->a, out, e);
        if (!rx_lex_take(p->l, ","))
            break;
    }
    rx_lex_want(p->l, ")");
}

static relax_dtype dtype(parser *p)
{
    const char *name = rx_lex_name(p->l, "a data type");
    relax_dtype t = rx_dtype_parse(name, strlen(name));
    if (t == RELAX_DTYPE_UNKNOWN)
        rx_lex_fail(p->l, RXE_TEXT_NAME, "'%s' is not a data type", name);
    return t;
}

static void strides(parser *p, relax_buffer *b)
{
    if (!rx_lex_take(p->l, ","))
        return;
    rx_lex_want(p->l, "strides");
    rx_lex_want(p->l, "=");
    rx_exvec s = {0};
    dims(p, &s);
    if (s.n != b->ndim)
        rx_lex_fail(p->l, RXE_RANK, "buffer '%s' has %u dims and %u strides", b->name, b->ndim, s.n);
    b->strides = rx_arena_dup(p->t->a, s.at, s.n * sizeof *s.at);
}

static rx_mem memory(parser *p)
{
    const char *name = rx_lex_name(p->l, "global, shared or local");
    for (int i = RX_MEM_GLOBAL; i <= RX_MEM_LOCAL; i++)
        if (!strcmp(name, rx_mem_text[i]))
            return (rx_mem)i;
    rx_lex_fail(p->l, RXE_TEXT_NAME, "'%s' is not global, shared or local", name);
}

static void index_list(parser *p, rx_exvec *out)
{
    rx_lex_want(p->l, "[");
    while (!rx_lex_is(p->l, "]")) {
        rx_ex e = expr_of(p, RELAX_I64, "an index");
        rx_push(p->t->a, out, e);
        if (!rx_lex_take(p->l, ","))
            break;
    }
    rx_lex_want(p->l, "]");
}

/* --- statements --- */

/* the rest of the block behind an alloc or a let: one statement */
static rx_stmt *rest(parser *p);

static relax_buffer *buffer_named(parser *p, const char *name)
{
    const def *d = find(p, name);
    if (!d || !d->buf)
        rx_lex_fail(p->l, RXE_TEXT_NAME, "'%s' is not a buffer", name);
    return d->buf;
}

static rx_stmt *alloc(parser *p, const char *name)
{
    rx_lex_want(p->l, "alloc");
    rx_lex_want(p->l, "(");
    rx_exvec shape = {0};
    dims(p, &shape);
    rx_lex_want(p->l, ",");
    relax_dtype t = dtype(p);
    rx_lex_want(p->l, ",");
    relax_buffer *b = rx_buffer(p->t, name, t, memory(p), shape.at, shape.n);
    strides(p, b);
    rx_lex_want(p->l, ")");
    define(p, name, NULL, b);
    return rx_alloc_s(p->t, b, rest(p));
}

/* "=" gives -1, an update its row */
static int update(parser *p)
{
    if (rx_lex_take(p->l, "="))
        return -1;
    for (int i = 0; i < RX_UPDATES; i++) {
        if (rx_lex_take(p->l, rx_strf(p->t->ctx, "%s=", rx_updates[i].text)))
            return i;
        if (!rx_lex_is(p->l, rx_updates[i].text))
            continue;
        rx_lex_next(p->l);             /* "min" "=" */
        rx_lex_want(p->l, "=");
        return i;
    }
    rx_lex_want(p->l, "=");
    return -1;
}

/* after the name */
static rx_stmt *store(parser *p, const char *name)
{
    relax_buffer *b = buffer_named(p, name);
    rx_exvec index = {0};
    index_list(p, &index);
    check_rank(p->l, b, index.n);
    int u = update(p);
    rx_ex value = value_of(p, b->dtype, "the value of a store");
    if (u >= 0)
        value = rx_binary(p->t->ctx, rx_updates[u].op, rx_at(p->t, b, index.at, index.n), value);
    return rx_store(p->t, b, index.at, index.n, value);
}

static rx_stmt *init(parser *p)
{
    if (!rx_lex_take(p->l, "init"))
        return NULL;
    return rx_lex_is(p->l, "{") ? block(p) : store(p, rx_lex_name(p->l, "a buffer"));
}

static rx_loop loop_kind(parser *p, bool *reduce)
{
    rx_loop how = RX_SERIAL;
    *reduce = false;
    if (!rx_lex_take(p->l, ":"))
        return how;
    for (int i = RX_PARALLEL; i <= RX_UNROLL && how == RX_SERIAL; i++)
        if (rx_lex_take(p->l, rx_loop_text[i]))
            how = (rx_loop)i;
    *reduce = rx_lex_take(p->l, "reduce");
    if (how == RX_SERIAL && !*reduce)
        rx_lex_fail(p->l, RXE_SYNTAX, "expected parallel, vector, unroll or reduce");
    return how;
}

static rx_stmt *loop(parser *p)
{
    const char *name = rx_lex_name(p->l, "a loop variable");
    bool reduce;
    rx_loop how = loop_kind(p, &reduce);
    rx_lex_want(p->l, "in");
    rx_ex start = rx_int(p->t->ctx, 0), extent = expr_of(p, RELAX_I64, "a loop bound");
    if (rx_lex_take(p->l, "..")) {
        start = extent;
        bool counted = rx_lex_take(p->l, "+");
        extent = expr_of(p, RELAX_I64, "a loop bound");
        if (!counted)
            extent = rx_sub(p->t->ctx, extent, start);
    }
    rx_stmt *first = init(p);
    rx_ex var = rx_loopvar(p->t, name);
    uint32_t mark = p->scope.n;
    define(p, rx_sym_of(var)->name, var, NULL);
    rx_stmt *body = block(p);
    p->scope.n = mark;
    return rx_for(p->t, var, start, extent, how, reduce, first, body);
}

/* every construct that nests passes here; leave() is the other end */
static void enter(parser *p)
{
    if (++p->l->depth > RX_MAX_DEPTH)
        rx_lex_fail(p->l, RXE_LIMIT, "statements are nested deeper than %d", RX_MAX_DEPTH);
}

static void leave(parser *p)
{
    p->l->depth--;
}

static rx_stmt *branch(parser *p)
{
    enter(p);
    rx_ex cond = expr_of(p, RELAX_BOOL, "the condition of an if");
    rx_stmt *then = block(p), *other = NULL;
    if (rx_lex_take(p->l, "else"))
        other = rx_lex_take(p->l, "if") ? branch(p) : block(p);
    leave(p);
    return rx_if(p->t, cond, then, other);
}

static rx_stmt *let(parser *p)
{
    const char *name = rx_lex_name(p->l, "a name");
    rx_lex_want(p->l, ":");
    relax_dtype t = dtype(p);
    rx_lex_want(p->l, "=");
    rx_ex value = value_of(p, t, "the value of a let");
    rx_ex var = rx_sym_new(p->t->ctx, name, t);
    define(p, rx_sym_of(var)->name, var, NULL);
    return rx_let(p->t, var, value, rest(p));
}

static rx_stmt *check(parser *p)
{
    rx_ex cond = expr_of(p, RELAX_BOOL, "the condition of an assert");
    rx_lex_want(p->l, ",");
    const char *word = rx_lex_name(p->l, "the name of an error"), *text = "";
    uint32_t err = rx_tir_err_number(word);
    if (!err)
        rx_lex_fail(p->l, RXE_TEXT_NAME, "'%s' is not the name of an error, such as index or div_zero", word);
    if (p->l->tok == RX_T_STRING) {
        text = p->l->text;
        rx_lex_next(p->l);
    }
    return rx_check_s(p->t, cond, err, text);
}

static rx_stmt *statement(parser *p)
{
    if (rx_lex_is(p->l, "{"))
        return block(p);
    if (rx_lex_take(p->l, "for"))
        return loop(p);
    if (rx_lex_take(p->l, "if"))
        return branch(p);
    if (rx_lex_take(p->l, "let"))
        return let(p);
    if (rx_lex_take(p->l, "assert"))
        return check(p);
    if (rx_lex_take(p->l, "prefetch")) {
        relax_buffer *b = buffer_named(p, rx_lex_name(p->l, "a buffer"));
        rx_exvec index = {0};
        index_list(p, &index);
        check_rank(p->l, b, index.n);
        return rx_prefetch_s(p->t, b, index.at);
    }
    const char *name = rx_lex_name(p->l, "a statement");
    return rx_lex_take(p->l, "=") ? alloc(p, name) : store(p, name);
}

static rx_stmt *rest(parser *p)
{
    RX_VEC(rx_stmt *) list = {0};
    enter(p);
    rx_lex_take(p->l, ";");
    while (!rx_lex_is(p->l, "}")) {
        rx_stmt *s = statement(p);
        rx_push(p->t->a, &list, s);
        rx_lex_take(p->l, ";");
    }
    leave(p);
    return rx_seq(p->t, list.at, list.n);
}

static rx_stmt *block(parser *p)
{
    uint32_t mark = p->scope.n;
    rx_lex_want(p->l, "{");
    rx_stmt *s = rest(p);
    rx_lex_want(p->l, "}");
    p->scope.n = mark;
    return s;
}

/* --- the head --- */

typedef RX_VEC(relax_buffer *) buffers;

static void param(parser *p, buffers *out)
{
    const char *name = rx_lex_name(p->l, "a parameter");
    rx_lex_want(p->l, ":");
    rx_lex_want(p->l, "Buffer");
    rx_lex_want(p->l, "(");
    rx_exvec shape = {0};
    dims(p, &shape);
    rx_lex_want(p->l, ",");
    relax_dtype t = dtype(p);
    relax_buffer *b = rx_buffer(p->t, name, t, RX_MEM_GLOBAL, shape.at, shape.n);
    strides(p, b);
    rx_lex_want(p->l, ")");
    define(p, name, NULL, b);
    rx_push(p->t->a, out, b);
}

static void extra_syms(parser *p, rx_exvec *out)
{
    do {
        const char *name = rx_lex_name(p->l, "a symbol");
        const def *d = find(p, name);
        if (d && d->buf)
            rx_lex_fail(p->l, RXE_TEXT_NAME, "'%s' is defined already", name);
        rx_ex e = d ? d->sym : rx_sym_new(p->t->ctx, name, RELAX_I64);
        if (!d)
            define(p, rx_sym_of(e)->name, e, NULL);
        rx_push(p->t->a, out, e);
    } while (rx_lex_take(p->l, ","));
}

static void head(parser *p, buffers *params, rx_exvec *syms, rx_exvec *where)
{
    rx_lex_want(p->l, "(");
    p->in_params = true;
    while (!rx_lex_is(p->l, ")") && !rx_lex_is(p->l, ";")) {
        param(p, params);
        if (!rx_lex_take(p->l, ","))
            break;
    }
    p->in_params = false;
    if (rx_lex_take(p->l, ";"))
        extra_syms(p, syms);
    rx_lex_want(p->l, ")");
    if (!rx_lex_take(p->l, "where"))
        return;
    do {
        rx_ex cond = expr_of(p, RELAX_BOOL, "a condition");
        rx_push(p->t->a, where, cond);
    } while (rx_lex_take(p->l, ","));
}

rx_prim *rx_parse_prim(rx_lexer *l, rx_tb *t)
{
    parser p = {.l = l, .t = t};
    p.fns = (rx_scope_fns){lookup_sym, lookup_load, &p};
    const char *name = rx_lex_name(l, "the name of a prim func"), *origin = NULL;
    buffers params = {0};
    rx_exvec syms = {0}, where = {0};
    head(&p, &params, &syms, &where);
    if (rx_lex_take(l, "from")) {
        if (l->tok != RX_T_STRING)
            rx_lex_fail(l, RXE_SYNTAX, "expected a string");
        origin = l->text;
        rx_lex_next(l);
    }
    rx_stmt *body = block(&p);
    rx_prim *r = rx_prim_new(t, name, params.at, params.n, syms.at, syms.n, body);
    r->origin = origin;
    rx_prim_where(t, r, where.at, where.n);
    return r;
}

/* --- piece by piece: builders that mix text with calls --- */

struct rx_tir_scope { parser p; rx_lexer l; };

rx_tir_scope *rx_tir_scope_new(rx_tb *t)
{
    rx_tir_scope *s = RX_NEW(t->a, rx_tir_scope);
    s->p.t = t;
    s->p.l = &s->l;
    s->p.fns = (rx_scope_fns){lookup_sym, lookup_load, &s->p};
    return s;
}

static parser *text(rx_tir_scope *s, const char *what, const char *src)
{
    rx_lex_init(&s->l, s->p.t->ctx, what, src, strlen(src));
    return &s->p;
}

static void end(rx_tir_scope *s)
{
    if (s->l.tok != RX_T_EOF)
        rx_lex_fail(&s->l, RXE_SYNTAX, "unexpected text at the end");
}

void rx_tir_define(rx_tir_scope *s, const char *name, rx_ex sym, relax_buffer *buf)
{
    define(text(s, name, ""), name, sym, buf);
}

uint32_t rx_tir_mark(const rx_tir_scope *s) { return s->p.scope.n; }
void rx_tir_reset(rx_tir_scope *s, uint32_t mark) { s->p.scope.n = mark; }

rx_ex rx_tir_lookup(rx_tir_scope *s, const char *name)
{
    const def *d = find(&s->p, rx_str(s->p.t->ctx, name));
    return d ? d->sym : NULL;
}

relax_buffer *rx_tir_read_buffer(rx_tir_scope *s, const char *name, const char *src, bool is_param)
{
    parser *p = text(s, name, src);
    rx_exvec shape = {0};
    p->in_params = is_param;
    rx_lex_want(p->l, "Buffer");
    rx_lex_want(p->l, "(");
    dims(p, &shape);
    rx_lex_want(p->l, ",");
    relax_buffer *b = rx_buffer(p->t, name, dtype(p), is_param ? RX_MEM_GLOBAL : RX_MEM_LOCAL, shape.at, shape.n);
    strides(p, b);
    rx_lex_want(p->l, ")");
    end(s);
    p->in_params = false;
    define(p, b->name, NULL, b);
    return b;
}

rx_ex rx_tir_read_expr(rx_tir_scope *s, const char *src)
{
    parser *p = text(s, "expression", src);
    rx_ex e = expr(p);
    end(s);
    return e;
}

rx_stmt *rx_tir_read_stmts(rx_tir_scope *s, const char *src)
{
    parser *p = text(s, "statement", rx_strf(s->p.t->ctx, "{ %s }", src));
    rx_stmt *st = block(p);
    end(s);
    return st;
}
