/* legal.c: the tensor program of one operator call, shared between equal calls of a module.
 *
 * The program gets symbols of its own, d0, d1, … in the order in which the call's annotations mention theirs. Two calls
 * share a program when operator, attributes and annotations read the same in those names. What deduction had to require
 * of the call (equal dims, divisibility) is true in every caller, proved or checked, so it becomes the facts of the
 * program.
 *
 * Symbols that stand alone as a dim of a buffer are bound by it; the others become symbolic parameters, in order. */
#include "op/impl.h"

typedef struct legal_run {
    relax_context *ctx; relax_module *m;
    rx_arena *a;                       /* scratch */
    const rx_op *op;
    rx_exvec syms;                     /* the caller's symbols */
    rx_ex *own;                        /* and the program's */
    rx_map map;                        /* caller's -> program's */
    rx_ty *in; uint32_t n; rx_ty out;  /* in the program's symbols */
    rx_attrs attrs;
} legal_run;

static void attr_syms(legal_run *r, const rx_attr *x)
{
    if (x->kind == RX_A_EXPR)
        rx_free_syms(r->ctx, r->a, x->u.e, &r->syms);
    for (uint32_t i = 0; x->kind == RX_A_EXPRS && i < x->u.exprs.n; i++)
        rx_free_syms(r->ctx, r->a, x->u.exprs.at[i], &r->syms);
}

static rx_attr rename_attr(legal_run *r, const rx_attr *x)
{
    rx_attr y = *x;
    if (x->kind == RX_A_EXPR)
        y.u.e = rx_subst(r->ctx, x->u.e, &r->map);
    if (x->kind == RX_A_EXPRS) {
        y.u.exprs.at = RX_NEWN(&r->m->arena, rx_ex, x->u.exprs.n);
        for (uint32_t i = 0; i < x->u.exprs.n; i++)
            y.u.exprs.at[i] = rx_subst(r->ctx, x->u.exprs.at[i], &r->map);
    }
    return y;
}

static void rename_all(legal_run *r, rx_ty *in, rx_ty out, const rx_attrs *attrs)
{
    for (uint32_t i = 0; i < r->n; i++)
        if (in[i])
            rx_ty_free_syms(r->ctx, r->a, in[i], &r->syms);
    rx_ty_free_syms(r->ctx, r->a, out, &r->syms);
    for (uint32_t i = 0; i < attrs->n; i++)
        attr_syms(r, &attrs->at[i]);
    rx_map_init(&r->map, r->a);
    r->own = RX_NEWN(r->a, rx_ex, r->syms.n);
    for (uint32_t i = 0; i < r->syms.n; i++) {
        r->own[i] = rx_sym_new(r->ctx, rx_strf(r->ctx, "d%u", i), RELAX_I64);
        if (rx_sym_of(r->syms.at[i])->lo >= 0)
            rx_sym_of(r->own[i])->lo = 0;
        rx_map_put(&r->map, RX_KEY(r->syms.at[i]), (void *)r->own[i]);
    }
    r->in = RX_NEWN(&r->m->arena, rx_ty, r->n);
    for (uint32_t i = 0; i < r->n; i++)
        r->in[i] = in[i] ? rx_ty_subst(r->ctx, in[i], &r->map) : NULL;
    r->out = rx_ty_subst(r->ctx, out, &r->map);
    r->attrs = (rx_attrs){ RX_NEWN(&r->m->arena, rx_attr, attrs->n), attrs->n };
    for (uint32_t i = 0; i < attrs->n; i++)
        r->attrs.at[i] = rename_attr(r, &attrs->at[i]);
}

static void put_attr(rx_buf *b, const rx_attr *x)
{
    rx_putf(b, "; %s=", x->key);
    switch (x->kind) {
    case RX_A_INT: case RX_A_BOOL: rx_put_i64(b, x->u.i); break;
    case RX_A_FLOAT: rx_put_double(b, x->u.f); break;
    case RX_A_DTYPE: rx_puts(b, rx_dtypes[x->u.dtype].name); break;
    case RX_A_STR: rx_puts(b, x->u.s); break;
    case RX_A_INTS:
        for (uint32_t i = 0; i < x->u.ints.n; i++) {
            rx_putc(b, ' ');
            rx_put_i64(b, x->u.ints.at[i]);
        }
        break;
    case RX_A_EXPR:
        rx_puts(b, rx_dtypes[x->u.e->dtype].name);
        rx_print_expr(b, x->u.e);
        break;
    case RX_A_EXPRS: rx_print_dims(b, x->u.exprs.at, x->u.exprs.n); break;
    }
}

/* operator, annotations and attributes in the program's names: equal texts are equal programs */
static const char *key_of(legal_run *r)
{
    rx_buf b;
    rx_buf_init(&b, r->a);
    rx_puts(&b, r->op->name);
    for (uint32_t i = 0; i < r->n; i++) {
        rx_puts(&b, "; ");
        if (r->in[i])
            rx_print_type(&b, r->in[i]);
    }
    rx_puts(&b, " -> ");
    rx_print_type(&b, r->out);
    for (uint32_t i = 0; i < r->attrs.n; i++)
        put_attr(&b, &r->attrs.at[i]);
    for (uint32_t i = 0; i < r->syms.n; i++)
        rx_putc(&b, rx_sym_of(r->own[i])->lo == 0 ? '+' : '~');
    return rx_strn(r->ctx, b.at, b.n);
}

static bool bare_in(rx_ty t, rx_ex sym)
{
    if (!t)
        return false;
    for (uint32_t i = 0; t->kind == RX_TY_TUPLE && i < t->nelems; i++)
        if (bare_in(t->elems[i], sym))
            return true;
    for (int32_t i = 0; t->kind == RX_TY_TENSOR && i < t->ndim; i++)
        if (t->dims[i] == sym)
            return true;
    return false;
}

static bool bound_by_buffers(const legal_run *r, rx_ex sym)
{
    for (uint32_t i = 0; i < r->n; i++)
        if (bare_in(r->in[i], sym))
            return true;
    return bare_in(r->out, sym);
}

static relax_buffer *param(rx_legal *l, const char *letter, uint32_t i, rx_ty t)
{
    if (t->kind != RX_TY_TENSOR || !t->known || t->dtype == RELAX_DTYPE_UNKNOWN || t->ndim > RX_MAX_NDIM)
        rx_fail(l->ctx, RXE_SHAPE, NULL,
                "%s: a tensor program needs tensors of known shape and data type, of rank %d or less", l->op->name,
                RX_MAX_NDIM);
    return rx_buffer(&l->tb, rx_strf(l->ctx, "%s%u", letter, i), t->dtype, RX_MEM_GLOBAL, t->dims, (uint32_t)t->ndim);
}

/* parameter buffers: the tensors among the arguments, then the results; a result in place is the first argument's
 * buffer */
static relax_buffer **params(rx_legal *l, uint32_t *np)
{
    uint32_t nout = l->out->kind == RX_TY_TUPLE ? l->out->nelems : 1;
    relax_buffer **p = RX_NEWN(l->tb.a, relax_buffer *, l->n + nout);
    l->x = RX_NEWN(l->tb.a, relax_buffer *, l->n + 1);
    l->y = RX_NEWN(l->tb.a, relax_buffer *, nout);
    *np = 0;
    for (uint32_t i = 0; i < l->n; i++)
        if (l->in[i] && l->in[i]->kind == RX_TY_TENSOR)
            p[(*np)++] = l->x[i] = param(l, "X", i, l->in[i]);
    bool inplace = l->op->flags & RX_OPF_INPLACE;
    if (inplace)
        l->y[0] = l->x[0];
    for (uint32_t i = inplace; i < nout; i++)
        p[(*np)++] = l->y[i] = param(l, "Y", i, l->out->kind == RX_TY_TUPLE ? l->out->elems[i] : l->out);
    return p;
}

/* What holds in every caller: the obligations of the operator's deduction, and extents that are not negative. */
static void add_facts(legal_run *r, rx_tb *tb, rx_prim *p)
{
    relax_function f = { .mod = r->m, .name = r->op->name };
    rx_exvec checks = { 0 };
    rx_call c = {.ctx = r->ctx,
                 .f = &f,
                 .op = r->op,
                 .types = r->in,
                 .n = r->n,
                 .attrs = r->attrs,
                 .checks = &checks,
                 .a = r->a};
    rx_op_deduce(&c);
    for (uint32_t i = 0; i < p->nparams; i++)
        for (uint32_t k = 0; k < p->params[i]->ndim; k++) {
            rx_ex d = p->params[i]->shape[k];
            int64_t v;
            if (!rx_is_int(d, &v) && !rx_sym_of(d))
                rx_push(r->a, &checks, rx_le(r->ctx, rx_int(r->ctx, 0), d));
        }
    rx_prim_where(tb, p, checks.at, checks.n);
}

static relax_function *make(legal_run *r, rx_ex *syms, uint32_t nsyms)
{
    rx_legal l = {.ctx = r->ctx,
                  .tb = {r->ctx, &r->m->arena},
                  .op = r->op,
                  .in = r->in,
                  .n = r->n,
                  .out = r->out,
                  .attrs = &r->attrs};
    uint32_t np;
    relax_buffer **p = params(&l, &np);
    rx_stmt *body = r->op->legalize(&l);
    rx_ex *ps = rx_arena_dup(&r->m->arena, syms, nsyms * sizeof *syms);
    const char *name = rx_strf(r->ctx, "%s*", r->op->name);
    rx_prim *prim = rx_prim_new(&l.tb, name, p, np, ps, nsyms, body);
    prim->origin = r->op->name;
    add_facts(r, &l.tb, prim);
    relax_function *f = rx_function_new_prim(r->m, name, prim);
    f->is_private = true;
    return f;
}

relax_function *rx_op_legalize(relax_module *m, relax_function *f, const rx_op *op, rx_ty *in, uint32_t n, rx_ty out,
                               const rx_attrs *attrs, rx_exvec *syms_out)
{
    (void)f;
    relax_context *ctx = m->ctx;
    legal_run r = { .ctx = ctx, .m = m, .a = rx_scratch(&ctx->heap), .op = op, .n = n };
    if (!op->legalize)
        rx_fail(ctx, RXE_UNKNOWN_OP, NULL, "operator %s has no tensor program", op->name);
    if (out->kind != RX_TY_TENSOR && out->kind != RX_TY_TUPLE)
        rx_fail(ctx, RXE_TYPE_KIND, NULL, "%s: only operators on tensors have a tensor program", op->name);
    rename_all(&r, in, out, attrs);
    rx_exvec extra = { 0 };
    for (uint32_t i = 0; i < r.syms.n; i++)
        if (!bound_by_buffers(&r, r.own[i])) {
            rx_push(r.a, &extra, r.own[i]);
            rx_push(&m->arena, syms_out, r.syms.at[i]);
        }
    uint64_t key = RX_KEY(key_of(&r));
    relax_function *prim = rx_map_get(&m->prim_cache, key);
    if (!prim) {
        prim = make(&r, extra.at, extra.n);
        rx_map_put(&m->prim_cache, key, prim);
    }
    return prim;
}
