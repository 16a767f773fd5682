/* print.c: the text of a prim func, such that parsing it and printing again gives the same text.
 *
 * Canonical sums are ordered by names, and a reader knows symbols and buffers by name only. So names are settled first:
 * whatever would hide another name in its scope, or is no identifier, is renamed (suffix _1, _2, …) in a scratch copy,
 * and the copy is printed. ALLOC and LET reach to the end of the enclosing braces, so one that is followed by other
 * statements gets braces of its own. */
#include "tir/text.h"

/* --- names --- */

typedef struct namer {
    rx_tb t;
    RX_VEC(const char *) taken;        /* names in scope */
    rx_map syms, buffers;              /* what has to be renamed */
    rx_map names;                      /* every definition seen -> its name */
} namer;

static bool is_taken(const namer *n, const char *name)
{
    for (uint32_t i = 0; i < n->taken.n; i++)
        if (n->taken.at[i] == name)
            return true;
    return false;
}

/* letters, digits and _, not starting with a digit */
static const char *identifier(namer *n, const char *name)
{
    rx_buf b;
    rx_buf_init(&b, n->t.a);
    if (!*name || (*name >= '0' && *name <= '9'))
        rx_putc(&b, '_');
    for (const char *c = name; *c; c++) {
        bool fine = (*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') || (*c >= '0' && *c <= '9') || *c == '_';
        rx_putc(&b, fine ? *c : '_');
    }
    return rx_str(n->t.ctx, b.at);
}

static const char *claim(namer *n, const void *def, const char *want)
{
    const char *name = rx_map_get(&n->names, RX_KEY(def));
    if (!name) {
        const char *base = identifier(n, want);
        name = base;
        for (uint32_t i = 1; is_taken(n, name) || rx_tir_reserved(name); i++)
            name = rx_strf(n->t.ctx, "%s_%u", base, i);
        rx_map_put(&n->names, RX_KEY(def), (void *)name);
    }
    rx_push(n->t.a, &n->taken, name);
    return name;
}

static void claim_sym(namer *n, rx_ex sym)
{
    rx_sym *old = rx_sym_of(sym);
    bool known = rx_map_has(&n->names, RX_KEY(sym));
    const char *name = claim(n, sym, old->name);
    if (known || !strcmp(name, old->name))
        return;
    rx_ex e = rx_sym_new(n->t.ctx, name, sym->dtype);
    rx_sym *s = rx_sym_of(e);
    s->lo = old->lo;
    s->hi = old->hi;
    s->divisor = old->divisor;
    rx_map_put(&n->syms, RX_KEY(sym), (void *)e);
}

/* the dims of parameters are substituted later, when all symbols are known */
static void claim_buffer(namer *n, relax_buffer *b)
{
    bool known = rx_map_has(&n->names, RX_KEY(b));
    const char *name = claim(n, b, b->name);
    if (known || !strcmp(name, b->name))
        return;
    relax_buffer *r = rx_arena_dup(n->t.a, b, sizeof *b);
    r->name = name;
    rx_map_put(&n->buffers, RX_KEY(b), r);
}

static void name_stmt(namer *n, rx_stmt *s)
{
    uint32_t mark = n->taken.n;
    if (!s)
        return;
    switch (s->kind) {
    case RX_S_SEQ:
        for (uint32_t i = 0; i < s->u.seq.n; i++)
            name_stmt(n, s->u.seq.at[i]);
        break;
    case RX_S_FOR:
        name_stmt(n, s->u.loop.init);
        claim_sym(n, s->u.loop.var);
        name_stmt(n, s->u.loop.body);
        break;
    case RX_S_ALLOC:
        claim_buffer(n, s->u.alloc.buf);
        name_stmt(n, s->u.alloc.body);
        break;
    case RX_S_IF:
        name_stmt(n, s->u.branch.then);
        name_stmt(n, s->u.branch.other);
        break;
    case RX_S_LET:
        claim_sym(n, s->u.let.var);
        name_stmt(n, s->u.let.body);
        break;
    case RX_S_STORE: case RX_S_ASSERT: case RX_S_PREFETCH: break;
    }
    n->taken.n = mark;
}

static void claim_free(void *arg, rx_ex e)
{
    namer *n = arg;
    if (e->op == RX_EX_SYM && !rx_map_has(&n->names, RX_KEY(e)))
        claim_sym(n, e);
}

static void name_prim(namer *n, const rx_prim *p)
{
    for (uint32_t i = 0; i < p->nparams; i++)
        for (uint32_t k = 0; k < p->params[i]->ndim; k++)
            rx_visit(p->ctx, p->params[i]->shape[k], claim_free, n);
    for (uint32_t i = 0; i < p->nsyms; i++)
        claim_free(n, p->syms[i]);
    for (uint32_t i = 0; i < p->nparams; i++)
        claim_buffer(n, p->params[i]);
    name_stmt(n, p->body);
}

/* --- statements --- */

typedef struct printer { relax_context *ctx; rx_buf *b; uint32_t indent; } printer;

static void newline(printer *p)
{
    rx_putc(p->b, '\n');
    for (uint32_t i = 0; i < p->indent; i++)
        rx_puts(p->b, "  ");
}

static void put_index(printer *p, rx_ex *index, uint32_t n)
{
    rx_putc(p->b, '[');
    for (uint32_t i = 0; i < n; i++) {
        rx_puts(p->b, i ? ", " : "");
        rx_print_expr(p->b, index[i]);
    }
    rx_putc(p->b, ']');
}

static void put_type(printer *p, const relax_buffer *b)
{
    rx_print_dims(p->b, b->shape, b->ndim);
    rx_putf(p->b, ", %s", rx_dtypes[b->dtype].name);
}

static void put_strides(printer *p, const relax_buffer *b)
{
    if (!b->strides)
        return;
    rx_puts(p->b, ", strides=");
    rx_print_dims(p->b, b->strides, b->ndim);
}

/* the update that a store is, or NULL */
static const rx_update *update_of(const rx_stmt *s)
{
    rx_ex v = s->u.store.value;
    if (v->nargs != 2 || v->a[0]->op != RX_EX_LOAD || v->a[0]->u.buf != s->u.store.buf)
        return NULL;
    for (uint32_t i = 0; i < s->u.store.buf->ndim; i++)
        if (v->a[0]->a[i] != s->u.store.index[i])
            return NULL;
    for (uint32_t i = 0; i < RX_UPDATES; i++)
        if (rx_updates[i].op == v->op)
            return &rx_updates[i];
    return NULL;
}

static void put_store(printer *p, const rx_stmt *s)
{
    const rx_update *u = update_of(s);
    rx_puts(p->b, s->u.store.buf->name);
    put_index(p, s->u.store.index, s->u.store.buf->ndim);
    rx_putf(p->b, " %s= ", u ? u->text : "");
    rx_print_expr(p->b, u ? s->u.store.value->a[1] : s->u.store.value);
}

static void put_stmt(printer *p, const rx_stmt *s, bool last);

/* the statements of a block on lines of their own, then "}" */
static void put_block(printer *p, const rx_stmt *s)
{
    rx_putc(p->b, '{');
    p->indent++;
    put_stmt(p, s, true);
    p->indent--;
    newline(p);
    rx_putc(p->b, '}');
}

/* n, or lo..hi; lo..+n where hi - lo would not give n again (expressions with loads know no algebra) */
static void put_range(printer *p, rx_ex start, rx_ex extent)
{
    if (rx_is_value(start, 0)) {
        rx_print_expr(p->b, extent);
        return;
    }
    rx_ex end = rx_add(p->ctx, start, extent);
    bool same = rx_sub(p->ctx, end, start) == extent;
    rx_print_expr(p->b, start);
    rx_puts(p->b, same ? ".." : "..+");
    rx_print_expr(p->b, same ? end : extent);
}

static void put_loop(printer *p, const rx_stmt *s)
{
    rx_loop how = s->u.loop.how;
    rx_putf(p->b, "for %s", rx_sym_of(s->u.loop.var)->name);
    if (how != RX_SERIAL || s->u.loop.reduce)
        rx_putf(p->b, ": %s%s%s", rx_loop_text[how], how != RX_SERIAL && s->u.loop.reduce ? " " : "",
                s->u.loop.reduce ? "reduce" : "");
    rx_puts(p->b, " in ");
    put_range(p, s->u.loop.start, s->u.loop.extent);
    rx_putc(p->b, ' ');
    if (s->u.loop.init && s->u.loop.init->kind == RX_S_STORE) {
        rx_puts(p->b, "init { ");
        put_store(p, s->u.loop.init);
        rx_puts(p->b, " } ");
    } else if (s->u.loop.init) {
        rx_puts(p->b, "init ");
        put_block(p, s->u.loop.init);
        rx_putc(p->b, ' ');
    }
    put_block(p, s->u.loop.body);
}

static void put_alloc(printer *p, const rx_stmt *s)
{
    const relax_buffer *b = s->u.alloc.buf;
    rx_putf(p->b, "%s = alloc(", b->name);
    put_type(p, b);
    rx_putf(p->b, ", %s", rx_mem_text[b->scope]);
    put_strides(p, b);
    rx_putc(p->b, ')');
}

static void put_string(printer *p, const char *s)
{
    rx_putc(p->b, '"');
    for (; *s; s++) {
        if (*s == '"' || *s == '\\')
            rx_putf(p->b, "\\%c", *s);
        else if (*s == '\n')
            rx_puts(p->b, "\\n");
        else
            rx_putc(p->b, *s);
    }
    rx_putc(p->b, '"');
}

static void put_assert(printer *p, const rx_stmt *s)
{
    rx_puts(p->b, "assert ");
    rx_print_expr(p->b, s->u.check.cond);
    rx_puts(p->b, ", ");
    const char *word = rx_tir_err_word(s->u.check.err);
    for (const char *c = word ? word : "?"; *c; c++)
        rx_putc(p->b, *c >= 'A' && *c <= 'Z' ? (char)(*c + 32) : *c);
    rx_putc(p->b, ' ');
    put_string(p, s->u.check.text);
}

static void put_branch(printer *p, const rx_stmt *s)
{
    rx_puts(p->b, "if ");
    rx_print_expr(p->b, s->u.branch.cond);
    rx_putc(p->b, ' ');
    put_block(p, s->u.branch.then);
    if (!s->u.branch.other)
        return;
    rx_puts(p->b, " else ");
    put_block(p, s->u.branch.other);
}

/* last: nothing follows in the same braces */
static void put_stmt(printer *p, const rx_stmt *s, bool last)
{
    if (s->kind == RX_S_SEQ) {
        for (uint32_t i = 0; i < s->u.seq.n; i++)
            put_stmt(p, s->u.seq.at[i], last && i + 1 == s->u.seq.n);
        return;
    }
    newline(p);
    if ((s->kind == RX_S_ALLOC || s->kind == RX_S_LET) && !last) {
        put_block(p, s);
        return;
    }
    switch (s->kind) {
    case RX_S_SEQ: break;
    case RX_S_FOR: put_loop(p, s); break;
    case RX_S_STORE: put_store(p, s); break;
    case RX_S_ALLOC:
        put_alloc(p, s);
        put_stmt(p, s->u.alloc.body, true);
        break;
    case RX_S_IF: put_branch(p, s); break;
    case RX_S_LET:
        rx_putf(p->b, "let %s: %s = ", rx_sym_of(s->u.let.var)->name, rx_dtypes[s->u.let.var->dtype].name);
        rx_print_expr(p->b, s->u.let.value);
        put_stmt(p, s->u.let.body, true);
        break;
    case RX_S_ASSERT: put_assert(p, s); break;
    case RX_S_PREFETCH:
        rx_putf(p->b, "prefetch %s", s->u.prefetch.buf->name);
        put_index(p, s->u.prefetch.index, s->u.prefetch.buf->ndim);
        break;
    }
}

/* --- the head --- */

static bool in_dims(const rx_prim *p, rx_ex sym)
{
    for (uint32_t i = 0; i < p->nparams; i++)
        for (uint32_t k = 0; k < p->params[i]->ndim; k++)
            if (rx_uses(p->ctx, p->params[i]->shape[k], sym))
                return true;
    return false;
}

/* The bounds that symbols carry themselves, as conditions. Reading a name in a dim gives it the lower bound 0. */
static void own_bounds(const rx_prim *p, rx_arena *a, rx_exvec *out)
{
    rx_exvec syms = {0};
    rx_prim_symbols(p->ctx, a, p, &syms);
    for (uint32_t i = 0; i < syms.n; i++) {
        rx_ex e = syms.at[i];
        const rx_sym *s = rx_sym_of(e);
        if (s->lo != INT64_MIN && !(s->lo == 0 && in_dims(p, e)))
            rx_push(a, out, rx_le(p->ctx, rx_int(p->ctx, s->lo), e));
        if (s->hi != INT64_MAX)
            rx_push(a, out, rx_le(p->ctx, e, rx_int(p->ctx, s->hi)));
        if (s->divisor > 1)
            rx_push(a, out, rx_eq(p->ctx, rx_modi(p->ctx, e, s->divisor), rx_int(p->ctx, 0)));
    }
}

static bool among(const rx_exvec *v, rx_ex e)
{
    for (uint32_t i = 0; i < v->n; i++)
        if (v->at[i] == e)
            return true;
    return false;
}

static void put_where(printer *out, const rx_prim *p, rx_arena *a)
{
    rx_exvec conds = {0};
    own_bounds(p, a, &conds);
    for (uint32_t i = 0; i < p->nwhere; i++)
        if (!among(&conds, p->where[i]))
            rx_push(a, &conds, p->where[i]);
    for (uint32_t i = 0; i < conds.n; i++) {
        rx_puts(out->b, i ? ", " : " where ");
        rx_print_expr(out->b, conds.at[i]);
    }
}

static void put_prim(printer *out, const rx_prim *p, rx_arena *a)
{
    rx_putf(out->b, "prim %s(", p->name);
    for (uint32_t i = 0; i < p->nparams; i++) {
        rx_putf(out->b, "%s%s: Buffer(", i ? ", " : "", p->params[i]->name);
        put_type(out, p->params[i]);
        put_strides(out, p->params[i]);
        rx_putc(out->b, ')');
    }
    for (uint32_t i = 0; i < p->nsyms; i++)
        rx_putf(out->b, "%s%s", i ? ", " : "; ", rx_sym_of(p->syms[i])->name);
    rx_putc(out->b, ')');
    put_where(out, p, a);
    if (p->origin) {
        rx_puts(out->b, " from ");
        put_string(out, p->origin);
    }
    rx_putc(out->b, ' ');
    put_block(out, p->body);
    rx_putc(out->b, '\n');
}

static rx_ex *renamed(const namer *n, rx_ex *dims, uint32_t count)
{
    rx_ex *r = RX_NEWN(n->t.a, rx_ex, count);
    for (uint32_t i = 0; dims && i < count; i++)
        r[i] = rx_subst(n->t.ctx, dims[i], &n->syms);
    return dims ? r : NULL;
}

/* a scratch copy with the chosen names */
static rx_prim *rename_all(namer *n, const rx_prim *p)
{
    rx_prim *r = rx_arena_dup(n->t.a, p, sizeof *p);
    r->params = rx_arena_dup(n->t.a, p->params, p->nparams * sizeof *p->params);
    for (uint32_t i = 0; i < p->nparams; i++) {
        relax_buffer *known = rx_map_get(&n->buffers, RX_KEY(p->params[i]));
        relax_buffer *b = rx_arena_dup(n->t.a, known ? known : p->params[i], sizeof *b);
        b->shape = renamed(n, b->shape, b->ndim);
        b->strides = renamed(n, b->strides, b->ndim);
        rx_map_put(&n->buffers, RX_KEY(p->params[i]), b);
        r->params[i] = b;
    }
    for (uint32_t i = 0; i < n->buffers.n; i++) {
        relax_buffer *b = n->buffers.e[i].val;
        if (b->param >= 0)
            continue;
        b->shape = renamed(n, b->shape, b->ndim);
        b->strides = renamed(n, b->strides, b->ndim);
    }
    r->syms = renamed(n, p->syms, p->nsyms);
    r->where = renamed(n, p->where, p->nwhere);
    r->body = rx_stmt_subst(&n->t, p->body, &n->syms, &n->buffers);
    return r;
}

void rx_print_prim(rx_buf *b, const rx_prim *p)
{
    rx_frame f;
    if (RX_ENTER(&p->ctx->heap, &f)) {
        namer n = {.t = {p->ctx, rx_scratch(&p->ctx->heap)}};
        rx_map_init(&n.syms, n.t.a);
        rx_map_init(&n.buffers, n.t.a);
        rx_map_init(&n.names, n.t.a);
        name_prim(&n, p);
        const rx_prim *named = n.syms.n || n.buffers.n ? rename_all(&n, p) : p;
        printer out = {p->ctx, b, 0};
        put_prim(&out, named, n.t.a);
        rx_leave(&p->ctx->heap, &f);
        return;
    }
    rx_unwind(&p->ctx->heap);
}
