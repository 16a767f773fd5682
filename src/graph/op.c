/* op.c: the operator table of a context, attributes of calls, deduction of a call.
 *
 * Attributes reach an operator in the order of its declaration, converted to the declared kind, defaults filled; so
 * deduce and legalize functions read them without checks, and equal calls have equal lists. */
#include "graph/op.h"

void rx_optab_init(relax_context *ctx)
{
    if (ctx->ops)
        return;
    rx_optab *t = RX_NEW(&ctx->arena, rx_optab);
    t->a = &ctx->arena;
    rx_map_init(&t->by_name, t->a);
    ctx->ops = t;
}

const rx_op *rx_op_find(relax_context *ctx, const char *name)
{
    return ctx->ops ? rx_map_get(&ctx->ops->by_name, RX_KEY(rx_str(ctx, name))) : NULL;
}

void rx_op_add(relax_context *ctx, const rx_op *op)
{
    rx_optab_init(ctx);
    const char *name = rx_str(ctx, op->name);
    if (rx_map_has(&ctx->ops->by_name, RX_KEY(name)))
        rx_fail(ctx, RXE_DUPLICATE, NULL, "operator %s exists already", name);
    rx_push(ctx->ops->a, &ctx->ops->all, op);
    rx_map_put(&ctx->ops->by_name, RX_KEY(name), (void *)op);
}

/* --- attribute lists --- */

const rx_attr *rx_attr_get(const rx_attrs *a, const char *key)
{
    for (uint32_t i = 0; i < a->n; i++)
        if (a->at[i].key == key || !strcmp(a->at[i].key, key))
            return &a->at[i];
    return NULL;
}

int64_t rx_attr_int(const rx_attrs *a, const char *key, int64_t absent)
{
    const rx_attr *x = rx_attr_get(a, key);
    int64_t v;
    if (!x)
        return absent;
    switch (x->kind) {
    case RX_A_INT:
    case RX_A_BOOL:
        return x->u.i;
    case RX_A_DTYPE:
        return x->u.dtype;
    case RX_A_EXPR:
        return rx_is_int(x->u.e, &v) ? v : absent;
    case RX_A_FLOAT:
    case RX_A_STR:
    case RX_A_INTS:
    case RX_A_EXPRS:
        break;
    }
    return absent;
}

double rx_attr_float(const rx_attrs *a, const char *key, double absent)
{
    const rx_attr *x = rx_attr_get(a, key);
    if (x && x->kind == RX_A_FLOAT)
        return x->u.f;
    return x && x->kind == RX_A_INT ? (double)x->u.i : absent;
}

const char *rx_attr_str(const rx_attrs *a, const char *key, const char *absent)
{
    const rx_attr *x = rx_attr_get(a, key);
    return x && x->kind == RX_A_STR ? x->u.s : absent;
}

bool rx_attr_same(const rx_attr *a, const rx_attr *b)
{
    if (a->kind != b->kind || strcmp(a->key, b->key))
        return false;
    switch (a->kind) {
    case RX_A_INT:
    case RX_A_BOOL:
        return a->u.i == b->u.i;
    case RX_A_FLOAT:
        return !memcmp(&a->u.f, &b->u.f, sizeof a->u.f);
    case RX_A_DTYPE:
        return a->u.dtype == b->u.dtype;
    case RX_A_STR:
        return !strcmp(a->u.s, b->u.s);
    case RX_A_INTS:
        return a->u.ints.n == b->u.ints.n &&
               (!a->u.ints.n || !memcmp(a->u.ints.at, b->u.ints.at, a->u.ints.n * sizeof(int64_t)));
    case RX_A_EXPR:
        return a->u.e == b->u.e;
    case RX_A_EXPRS:
        return a->u.exprs.n == b->u.exprs.n &&
               (!a->u.exprs.n || !memcmp(a->u.exprs.at, b->u.exprs.at, a->u.exprs.n * sizeof(rx_ex)));
    }
    return false;
}

bool rx_attrs_equal(const rx_attrs *a, const rx_attrs *b)
{
    if (a->n != b->n)
        return false;
    for (uint32_t i = 0; i < a->n; i++)
        if (!rx_attr_same(&a->at[i], &b->at[i]))
            return false;
    return true;
}

rx_attr rx_attr_copy(relax_context *ctx, rx_arena *a, const rx_attr *x)
{
    rx_attr r = *x;
    r.key = rx_str(ctx, x->key);
    if (x->kind == RX_A_STR)
        r.u.s = rx_str(ctx, x->u.s);
    if (x->kind == RX_A_INTS && x->u.ints.n)
        r.u.ints.at = rx_arena_dup(a, x->u.ints.at, x->u.ints.n * sizeof(int64_t));
    if (x->kind == RX_A_EXPRS && x->u.exprs.n)
        r.u.exprs.at = rx_arena_dup(a, x->u.exprs.at, x->u.exprs.n * sizeof(rx_ex));
    return r;
}

rx_attrs rx_attrs_copy(relax_context *ctx, rx_arena *a, const rx_attrs *x)
{
    rx_attrs r = {RX_NEWN(a, rx_attr, x->n), x->n};
    for (uint32_t i = 0; i < x->n; i++)
        r.at[i] = rx_attr_copy(ctx, a, &x->at[i]);
    return r;
}

void rx_attrs_set(relax_context *ctx, rx_arena *a, rx_attrs *x, const rx_attr *one)
{
    rx_attr *old = (rx_attr *)rx_attr_get(x, one->key);
    if (old) {
        *old = rx_attr_copy(ctx, a, one);
        return;
    }
    rx_attr *at = RX_NEWN(a, rx_attr, (size_t)x->n + 1);
    if (x->n)
        memcpy(at, x->at, x->n * sizeof *at);
    at[x->n] = rx_attr_copy(ctx, a, one);
    x->at = at;
    x->n++;
}

/* --- declarations --- */

static const char *const kind_names[] = {
    [RX_A_INT] = "int", [RX_A_FLOAT] = "float", [RX_A_BOOL] = "bool", [RX_A_DTYPE] = "dtype",
    [RX_A_STR] = "str", [RX_A_INTS] = "ints",   [RX_A_EXPR] = "expr", [RX_A_EXPRS] = "exprs",
};

static const char *skip(const char *p)
{
    while (*p == ' ' || *p == ',')
        p++;
    return p;
}

static const char *word_end(const char *p, const char *stop)
{
    while (*p && !strchr(stop, *p))
        p++;
    return p;
}

RX_NORETURN static void bad_spec(relax_context *ctx, const char *spec)
{
    rx_fail(ctx, RXE_ATTR, NULL, "cannot read the attribute declaration '%s'", spec);
}

static const char *ints_default(relax_context *ctx, const char *p, const char *spec, rx_attr *def)
{
    RX_VEC(int64_t) v = {0};
    char close = *p == '(' ? ')' : ']';
    for (p = skip(p + 1); *p != close; p = skip(p)) {
        int64_t i;
        size_t n = rx_read_i64(p, strlen(p), &i);
        if (!n)
            bad_spec(ctx, spec);
        rx_push(&ctx->arena, &v, i);
        p += n;
    }
    if (def->kind == RX_A_INTS) {
        def->u.ints.at = v.at;
        def->u.ints.n = v.n;
        return p + 1;
    }
    def->u.exprs.n = v.n;
    def->u.exprs.at = RX_NEWN(&ctx->arena, rx_ex, v.n);
    for (uint32_t i = 0; i < v.n; i++)
        def->u.exprs.at[i] = rx_int(ctx, v.at[i]);
    return p + 1;
}

/* reads a default value at p, returns what follows */
static const char *read_default(relax_context *ctx, const char *p, const char *spec, rx_attr *def)
{
    if (*p == '(' || *p == '[') {
        if (def->kind != RX_A_INTS && def->kind != RX_A_EXPRS)
            bad_spec(ctx, spec);
        return ints_default(ctx, p, spec, def);
    }
    const char *e = word_end(p, ", ");
    size_t n = (size_t)(e - p);
    bool ok = true;
    switch (def->kind) {
    case RX_A_INT:
        ok = rx_read_i64(p, n, &def->u.i) == n;
        break;
    case RX_A_FLOAT:
        ok = rx_read_double(p, n, &def->u.f) == n;
        break;
    case RX_A_BOOL:
        def->u.i = n == 4 && !memcmp(p, "true", 4);
        ok = def->u.i || (n == 5 && !memcmp(p, "false", 5));
        break;
    case RX_A_DTYPE:
        def->u.dtype = rx_dtype_parse(p, n);
        ok = def->u.dtype != RELAX_DTYPE_UNKNOWN;
        break;
    case RX_A_STR:
        def->u.s = rx_strn(ctx, p, n);
        break;
    case RX_A_EXPR:
        def->u.e = rx_parse_attr_text(ctx, p, n, &(rx_scope_fns){0});
        break;
    case RX_A_INTS:
    case RX_A_EXPRS:
        ok = false;
    }
    if (!ok)
        bad_spec(ctx, spec);
    return e;
}

void rx_op_parse_attrs(relax_context *ctx, const char *spec, rx_attr_decl **out, uint32_t *n)
{
    RX_VEC(rx_attr_decl) v = {0};
    for (const char *p = skip(spec); *p; p = skip(p)) {
        rx_attr_decl d = {0};
        const char *e = word_end(p, ":");
        d.key = rx_strn(ctx, p, (size_t)(e - p));
        if (*e != ':')
            bad_spec(ctx, spec);
        p = e + 1;
        e = word_end(p, "?=, ");
        uint32_t k = 0;
        while (k < RX_COUNT(kind_names) &&
               (strlen(kind_names[k]) != (size_t)(e - p) || memcmp(kind_names[k], p, (size_t)(e - p))))
            k++;
        if (k == RX_COUNT(kind_names))
            bad_spec(ctx, spec);
        d.kind = (rx_akind)k;
        d.def = (rx_attr){.key = d.key, .kind = d.kind};
        d.optional = *e == '?';
        d.has_def = *e == '=';
        p = d.optional ? e + 1 : d.has_def ? read_default(ctx, e + 1, spec, &d.def) : e;
        rx_push(&ctx->arena, &v, d);
    }
    *out = v.at;
    *n = v.n;
}

/* --- attributes of a call against the declaration --- */

static bool to_ints(rx_arena *a, rx_attr *x)
{
    if (x->kind == RX_A_INT) {
        int64_t *at = rx_arena_dup(a, &x->u.i, sizeof(int64_t));
        x->u.ints.at = at;
        x->u.ints.n = 1;
        return true;
    }
    if (x->kind != RX_A_EXPRS)
        return false;
    uint32_t n = x->u.exprs.n;
    int64_t *at = RX_NEWN(a, int64_t, n);
    for (uint32_t i = 0; i < n; i++)
        if (!rx_is_int(x->u.exprs.at[i], &at[i]))
            return false;
    x->u.ints.at = at;
    x->u.ints.n = n;
    return true;
}

static bool to_exprs(relax_context *ctx, rx_arena *a, rx_attr *x)
{
    rx_ex one = x->kind == RX_A_INT ? rx_int(ctx, x->u.i) : x->kind == RX_A_EXPR ? x->u.e : NULL;
    if (!one && x->kind != RX_A_INTS)
        return false;
    uint32_t n = one ? 1 : x->u.ints.n;
    rx_ex *at = RX_NEWN(a, rx_ex, n);
    for (uint32_t i = 0; i < n; i++)
        at[i] = one ? one : rx_int(ctx, x->u.ints.at[i]);
    x->u.exprs.at = at;
    x->u.exprs.n = n;
    return true;
}

/* converts x to the kind `to` where nothing is lost */
static bool convert(relax_context *ctx, rx_arena *a, rx_attr *x, rx_akind to)
{
    int64_t v;
    bool ok = x->kind == to;
    if (ok)
        return true;
    switch (to) {
    case RX_A_INT:
        if (x->kind == RX_A_EXPR && rx_is_int(x->u.e, &v)) {
            x->u.i = v;
            ok = true;
        }
        break;
    case RX_A_FLOAT:
        if (x->kind == RX_A_INT || (x->kind == RX_A_EXPR && rx_is_int(x->u.e, &x->u.i))) {
            x->u.f = (double)x->u.i;
            ok = true;
        } else if (x->kind == RX_A_EXPR && x->u.e->op == RX_EX_FLOAT) {
            x->u.f = x->u.e->u.f;
            ok = true;
        }
        break;
    case RX_A_BOOL:
        ok = x->kind == RX_A_INT && (x->u.i == 0 || x->u.i == 1);
        break;
    case RX_A_DTYPE:
        if (x->kind == RX_A_STR) {
            x->u.dtype = rx_dtype_parse(x->u.s, strlen(x->u.s));
            ok = x->u.dtype != RELAX_DTYPE_UNKNOWN;
        }
        break;
    case RX_A_STR:
        break;
    case RX_A_INTS:
        ok = to_ints(a, x);
        break;
    case RX_A_EXPR:
        ok = x->kind == RX_A_INT || x->kind == RX_A_FLOAT || x->kind == RX_A_BOOL;
        if (ok)
            x->u.e = x->kind == RX_A_INT     ? rx_int(ctx, x->u.i)
                     : x->kind == RX_A_FLOAT ? rx_const_float(ctx, RELAX_F64, x->u.f)
                                             : rx_bool(ctx, x->u.i != 0);
        break;
    case RX_A_EXPRS:
        ok = to_exprs(ctx, a, x);
        break;
    }
    x->kind = to;
    return ok;
}

rx_attrs rx_op_attrs(relax_context *ctx, rx_arena *a, const rx_op *op, const rx_attr *given, uint32_t n)
{
    rx_attrs all = {(rx_attr *)given, n}, out = {RX_NEWN(a, rx_attr, op->nattrs), 0};
    uint32_t used = 0;
    for (uint32_t i = 0; i < op->nattrs; i++) {
        const rx_attr_decl *d = &op->attrs[i];
        const rx_attr *g = rx_attr_get(&all, d->key);
        if (!g && !d->has_def) {
            if (!d->optional)
                rx_fail(ctx, RXE_ATTR, NULL, "%s: attribute %s is missing", op->name, d->key);
            continue;
        }
        rx_attr x = rx_attr_copy(ctx, a, g ? g : &d->def);
        used += g != NULL;
        if (!convert(ctx, a, &x, d->kind))
            rx_fail(ctx, RXE_ATTR, NULL, "%s: attribute %s must be of kind %s", op->name, d->key, kind_names[d->kind]);
        out.at[out.n++] = x;
    }
    if (used == n)
        return out;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t k = 0;
        while (k < op->nattrs && strcmp(op->attrs[k].key, given[i].key))
            k++;
        if (k == op->nattrs)
            rx_fail(ctx, RXE_ATTR, NULL, "%s has no attribute %s", op->name, given[i].key);
    }
    rx_fail(ctx, RXE_ATTR, NULL, "%s: an attribute is given twice", op->name);
}

/* --- deduction of a call --- */

RX_NORETURN void rx_fail_op(rx_call *c, enum rx_err e, const char *fmt, ...)
{
    rx_buf b;
    rx_buf_init(&b, rx_scratch(&c->ctx->heap));
    va_list ap;
    va_start(ap, fmt);
    rx_putv(&b, fmt, ap);
    va_end(ap);
    rx_where w = {.function = c->f ? c->f->name : NULL};
    rx_fail(c->ctx, e, &w, "%s: %s", c->op->name, b.at ? b.at : "");
}

rx_ty rx_op_deduce(rx_call *c)
{
    const rx_op *op = c->op;
    if (c->n < (uint32_t)op->min_args || (op->max_args >= 0 && c->n > (uint32_t)op->max_args)) {
        if (op->min_args == op->max_args)
            rx_fail_op(c, RXE_ARITY, "takes %d arguments, %u are given", op->min_args, c->n);
        if (op->max_args < 0)
            rx_fail_op(c, RXE_ARITY, "takes %d or more arguments, %u are given", op->min_args, c->n);
        rx_fail_op(c, RXE_ARITY, "takes %d to %d arguments, %u are given", op->min_args, op->max_args, c->n);
    }
    if (!op->deduce)
        rx_fail_op(c, RXE_UNKNOWN_OP, "has no rule of deduction");
    rx_ty t = op->deduce(c);
    if (!t)
        rx_fail_op(c, RXE_INTERNAL, "the rule of deduction gave no annotation");
    return t;
}
