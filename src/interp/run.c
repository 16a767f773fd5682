/* run.c: runs graph functions binding by binding, at any stage of compilation.
 *
 * Every binding's obligations are checked before it runs, and its value is compared with its annotation afterwards, so
 * a wrong deduction or a pass that breaks one shows where it happens. In the planned form an allocation at an arena
 * offset is poisoned again each time it is made: a tensor that the plan gave away too early is seen as NaN. Calls are
 * recursion with a cap. */
#include "interp/impl.h"

typedef struct act {                   /* one call of a function */
    rx_interp *in;
    relax_context *ctx;
    relax_function *f;
    rx_arena *a;
    rx_map vals;                       /* value -> rx_ival */
    rx_map env;                        /* symbol -> int64_t */
    char *arena;
    int64_t arena_size;
} act;

static rx_ival *run_body(act *t, const rx_body *b);

RX_NORETURN RX_PRINTF(4, 5) static void fail(const act *t, const relax_value *v, enum rx_err e, const char *fmt, ...)
{
    rx_buf b;
    rx_buf_init(&b, rx_scratch(&t->ctx->heap));
    va_list ap;
    va_start(ap, fmt);
    rx_putv(&b, fmt, ap);
    va_end(ap);
    if (v && v->block) {
        rx_puts(&b, " in: ");
        rx_print_value(&b, (relax_value *)v);
    }
    rx_where w = {.function = t->f->name, .binding = v ? v->name : NULL};
    rx_fail(t->ctx, e, &w, "%s", b.at);
}

static int64_t int_of(const act *t, rx_ex e)
{
    return rx_env_int(t->ctx, t->f, &t->env, e);
}

/* --- operands --- */

/* a scalar leaf: index expressions by evaluation, data expressions by folding with the symbols' values */
static rx_ival *scalar(act *t, const relax_value *v)
{
    rx_ex e = v->syms[0];
    rx_ival *r = rx_ival_int(t->a, 0);
    r->dtype = e->dtype;
    if (!(e->flags & RX_EX_DATA)) {
        rx_store_i64(e->dtype, &r->bits, int_of(t, e));
        return r;
    }
    rx_map to;
    rx_map_init(&to, rx_scratch(&t->ctx->heap));
    for (uint32_t i = 0; i < t->env.n; i++)
        rx_map_put(&to, t->env.e[i].key, (void *)rx_int(t->ctx, *(const int64_t *)t->env.e[i].val));
    e = rx_subst(t->ctx, e, &to);
    if (e->op == RX_EX_FLOAT)
        rx_store_f64(e->dtype, &r->bits, e->u.f);
    else if (e->op == RX_EX_INT)
        rx_store_i64(e->dtype, &r->bits, e->u.i);
    else
        fail(t, v, RXE_INTERNAL, "a scalar has no value");
    return r;
}

static rx_ival *leaf(act *t, const relax_value *v)
{
    int64_t d[RX_MAX_RANK];
    rx_ival *r;
    switch (v->kind) {
    case RX_V_CONST:
        return rx_ival_tensor(t->ctx, t->a, v->u.data->dtype, v->u.data->dims, (int32_t)v->u.data->ndim,
                              v->u.data->data);
    case RX_V_SHAPE:
        for (uint32_t i = 0; i < v->nsyms; i++) {
            d[i] = int_of(t, v->syms[i]);
            if (d[i] < -1)
                fail(t, v, RXE_BAD_VALUE, "dim %u of a shape is %lld", i, (long long)d[i]);
        }
        r = rx_ival_shape(t->a, d, (int32_t)v->nsyms);
        for (uint32_t i = 0; i < v->nsyms; i++)
            r->bits |= (uint64_t)rx_is_value(v->syms[i], 0) << i;
        return r;
    case RX_V_PRIM:
        return scalar(t, v);
    case RX_V_FUNC:
        r = rx_ival_int(t->a, 0);
        r->kind = RX_I_FUNC;
        r->fn = v->u.callee;
        return r;
    case RX_V_STR:
        r = rx_ival_int(t->a, 0);
        r->kind = RX_I_STR;
        r->s = v->ext;
        return r;
    default:
        fail(t, v, RXE_INTERNAL, "a value is used before it is computed");
    }
}

static rx_ival *value(act *t, const relax_value *v)
{
    if (!v)
        return NULL;
    rx_ival *r = rx_map_get(&t->vals, RX_KEY(v));
    return r ? r : leaf(t, v);
}

static rx_ival **operands(act *t, const relax_value *v, uint32_t from, uint32_t room)
{
    rx_ival **at = RX_NEWN(t->a, rx_ival *, (size_t)v->nargs + room + 1);
    for (uint32_t i = from; i < v->nargs; i++)
        at[i - from] = value(t, v->args[i]);
    return at;
}

static int64_t *sym_values(act *t, const relax_value *v)
{
    int64_t *s = RX_NEWN(t->a, int64_t, (size_t)v->nsyms + 1);
    for (uint32_t i = 0; i < v->nsyms; i++)
        s[i] = int_of(t, v->syms[i]);
    return s;
}

/* --- calls --- */

/* outputs of a destination-passing call behind its n arguments in at; returns the call's result */
static rx_ival *add_outputs(act *t, const relax_value *v, rx_ival **at, uint32_t *n)
{
    bool tuple = v->type->kind == RX_TY_TUPLE;
    uint32_t nout = tuple ? v->type->nelems : 1;
    rx_ival **out = RX_NEWN(t->a, rx_ival *, (size_t)nout + 1);
    for (uint32_t i = 0; i < nout; i++) {
        if (v->kind == RX_V_CALL_TIR_INPLACE && v->inplace[i] >= 0) {
            out[i] = at[v->inplace[i]];
            continue;
        }
        out[i] = rx_env_new(t->in, t->f, &t->env, tuple ? v->type->elems[i] : v->type);
        at[(*n)++] = out[i];
    }
    return tuple ? rx_ival_tuple(t->a, out, nout) : out[0];
}

static rx_ival *call_tir(act *t, const relax_value *v)
{
    uint32_t n = v->nargs;
    rx_ival **at = operands(t, v, 0, v->type->kind == RX_TY_TUPLE ? v->type->nelems : 1);
    rx_ival *r = add_outputs(t, v, at, &n);
    rx_prim_run(t->in, v->u.callee->prim, at, n, sym_values(t, v), v->nsyms);
    return r;
}

static void run_library(act *t, const relax_value *v, rx_ival **at, uint32_t n)
{
    const rx_interp_host *h = &t->in->host;
    const int64_t *syms = sym_values(t, v);
    if (rx_builtin_dps(t->in, t->f, v->ext, at, n, syms, v->nsyms))
        return;
    if (!h->lib || !h->lib(h->user, t->in, v->ext, at, n, syms, v->nsyms))
        fail(t, v, RXE_NO_LIBRARY, "library function %s is not registered", v->ext);
}

static rx_ival *call_library(act *t, const relax_value *v)
{
    uint32_t n = v->nargs;
    rx_ival **at = operands(t, v, 0, v->type->kind == RX_TY_TUPLE ? v->type->nelems : 1);
    rx_ival *r = add_outputs(t, v, at, &n);
    run_library(t, v, at, n);
    return r;
}

static rx_ival *call_dps(act *t, const relax_value *v)
{
    rx_ival **at = operands(t, v, 0, 0);
    if (v->u.callee)
        rx_prim_run(t->in, v->u.callee->prim, at, v->nargs, sym_values(t, v), v->nsyms);
    else
        run_library(t, v, at, v->nargs);
    return rx_ival_tuple(t->a, NULL, 0);
}

static rx_ival *call_packed(act *t, const relax_value *v)
{
    const rx_interp_host *h = &t->in->host;
    rx_ival **at = operands(t, v, 0, 0);
    rx_ival *r = rx_builtin_packed(t->in, t->f, v->ext, at, v->nargs);
    if (!r && h->packed)
        r = h->packed(h->user, t->in, v->ext, at, v->nargs);
    if (!r)
        fail(t, v, RXE_NO_LIBRARY, "host function %s is not registered", v->ext);
    rx_match m = {.ctx = t->ctx, .f = t->f, .a = t->a, .env = &t->env};
    rx_match_value(&m, v->type, r, rx_strf(t->ctx, "the result of %s", v->ext));
    rx_match_end(&m);
    return r;
}

static rx_ival *call_function(act *t, const relax_value *v)
{
    rx_ival *callee = value(t, v->args[0]);
    if (callee->kind != RX_I_FUNC || callee->fn->is_prim)
        fail(t, v, RXE_ARG_KIND, "the callee is no function of the graph");
    return rx_interp_run(t->in, callee->fn, operands(t, v, 1, 0), v->nargs - 1);
}

/* --- memory of lowered programs --- */

static rx_ival *alloc(act *t, const relax_value *v)
{
    rx_ival *r = rx_env_new(t->in, t->f, &t->env, v->type);
    if (!v->u.alloc.arena)
        return r;
    int64_t at = int_of(t, v->u.alloc.offset), end;
    if (at < 0 || !rx_add_ok(at, (int64_t)r->bytes, &end) || end > t->arena_size)
        fail(t, v, RXE_INTERNAL, "memory at %lld lies outside an arena of %lld bytes", (long long)at,
             (long long)t->arena_size);
    r->data = t->arena + at;
    memset(r->data, 0xff, r->bytes);
    return r;
}

static rx_ival *view(act *t, const relax_value *v)
{
    const rx_ival *x = value(t, v->args[0]);
    rx_ival *r = RX_NEW(t->a, rx_ival);
    *r = *x;
    r->dtype = v->type->dtype;
    r->ndim = v->type->ndim;
    r->dims = RX_NEWN(t->a, int64_t, (size_t)r->ndim + 1);
    int64_t bytes = (int64_t)rx_dtype_bytes(r->dtype);
    for (int32_t i = 0; i < r->ndim; i++) {
        r->dims[i] = int_of(t, v->type->dims[i]);
        if (r->dims[i] < 0 || !rx_mul_ok(bytes, r->dims[i], &bytes))
            fail(t, v, RXE_LIMIT, "a view is too large");
    }
    if (x->kind != RX_I_TENSOR || (size_t)bytes != x->bytes)
        fail(t, v, RXE_ARG_DIM, "a view of %zu bytes wants %lld", x->bytes, (long long)bytes);
    return r;
}

/* --- bindings --- */

static rx_ival *match_cast(act *t, const relax_value *v)
{
    rx_ival *x = value(t, v->args[0]);
    rx_match m = {.ctx = t->ctx, .f = t->f, .a = t->a, .env = &t->env};
    rx_match_value(&m, v->type, x, v->name ? rx_strf(t->ctx, "match_cast %s", v->name) : "match_cast");
    rx_match_end(&m);
    return x;
}

static rx_ival *branch(act *t, const relax_value *v)
{
    const rx_ival *c = value(t, v->args[0]);
    const void *p = c->kind == RX_I_PRIM ? (const void *)&c->bits : c->data;
    return run_body(t, *(const uint8_t *)p ? v->u.branch.then : v->u.branch.other);
}

static rx_ival *compute(act *t, const relax_value *v)
{
    rx_ival *x;
    switch (v->kind) {
    case RX_V_OP:
        return rx_interp_op(t->in, t->f, v->u.op, operands(t, v, 0, 0), v->nargs, &v->attrs, &t->env);
    case RX_V_CALL:
        return call_function(t, v);
    case RX_V_CALL_TIR:
    case RX_V_CALL_TIR_INPLACE:
        return call_tir(t, v);
    case RX_V_CALL_DPS_LIB:
        return call_library(t, v);
    case RX_V_CALL_PACKED:
        return call_packed(t, v);
    case RX_V_TUPLE:
        return rx_ival_tuple(t->a, operands(t, v, 0, 0), v->nargs);
    case RX_V_GET:
        x = value(t, v->args[0]);
        if (x->kind != RX_I_TUPLE || v->u.index >= x->n)
            fail(t, v, RXE_ARG_KIND, "no such field");
        return x->at[v->u.index];
    case RX_V_MATCH_CAST:
        return match_cast(t, v);
    case RX_V_IF:
        return branch(t, v);
    case RX_V_ALLOC:
        return alloc(t, v);
    case RX_V_CALL_DPS:
        return call_dps(t, v);
    case RX_V_VIEW:
        return view(t, v);
    case RX_V_PARAM:
    case RX_V_CONST:
    case RX_V_SHAPE:
    case RX_V_PRIM:
    case RX_V_FUNC:
    case RX_V_STR:
    case RX_V_COUNT:
        break;
    }
    fail(t, v, RXE_INTERNAL, "this is no binding");
}

/* Does x have the annotation ty? Symbols that are not known yet are not looked at. */
static bool conforms(const act *t, rx_ty ty, const rx_ival *x)
{
    static const rx_ikind kinds[] = {[RX_TY_PRIM] = RX_I_PRIM, [RX_TY_SHAPE] = RX_I_SHAPE, [RX_TY_TENSOR] = RX_I_TENSOR,
                                     [RX_TY_TUPLE] = RX_I_TUPLE, [RX_TY_FUNC] = RX_I_FUNC};
    int64_t v;
    if (ty->kind == RX_TY_OBJECT)
        return true;
    if (x->kind != kinds[ty->kind] || (ty->dtype != RELAX_DTYPE_UNKNOWN && ty->dtype != x->dtype))
        return false;
    if (ty->kind == RX_TY_PRIM)
        return !ty->known || !rx_env_try(t->ctx, &t->env, ty->dims[0], &v) || v == rx_load_i64(x->dtype, &x->bits);
    if (ty->kind == RX_TY_TUPLE) {
        bool ok = ty->nelems == x->n;
        for (uint32_t i = 0; ok && i < x->n; i++)
            ok = conforms(t, ty->elems[i], x->at[i]);
        return ok;
    }
    if (ty->kind == RX_TY_FUNC || ty->ndim < 0)
        return true;
    bool ok = ty->ndim == x->ndim;
    for (int32_t i = 0; ok && ty->known && i < ty->ndim; i++)
        ok = !rx_env_try(t->ctx, &t->env, ty->dims[i], &v) || v == x->dims[i];
    return ok;
}

static void check_conditions(act *t, const relax_value *v)
{
    for (uint32_t i = 0; i < v->nchecks; i++) {
        if (int_of(t, v->checks[i]))
            continue;
        rx_buf b;
        rx_buf_init(&b, rx_scratch(&t->ctx->heap));
        rx_print_expr(&b, v->checks[i]);
        fail(t, v, RXE_ARG_DIM, "%s does not hold", b.at);
    }
}

static void run_binding(act *t, const relax_value *v)
{
    check_conditions(t, v);
    rx_ival *r = compute(t, v);
    if (!conforms(t, v->type, r)) {
        rx_buf b;
        rx_buf_init(&b, rx_scratch(&t->ctx->heap));
        rx_print_type(&b, v->type);
        rx_puts(&b, " was deduced, but the value is ");
        rx_print_type(&b, rx_ival_type(t->ctx, r));
        fail(t, v, RXE_INTERNAL, "%s", b.at);
    }
    rx_map_put(&t->vals, RX_KEY(v), r);
}

static rx_ival *run_body(act *t, const rx_body *b)
{
    for (const rx_iblock *bl = b->first; bl; bl = bl->next)
        for (const relax_value *v = bl->first; v; v = v->next) {
            if (rx_cancelled(t->ctx))
                fail(t, NULL, RXE_CANCELLED, "the host asked to stop");
            run_binding(t, v);
        }
    return value(t, b->result);
}

/* --- entry --- */

static void bind_arguments(act *t, rx_ival *const *args)
{
    relax_function *f = t->f;
    rx_where w = {.function = f->name};
    rx_match m = {.ctx = t->ctx, .f = f, .a = t->a, .env = &t->env};
    for (uint32_t i = 0; i < f->nparams; i++) {
        rx_match_value(&m, f->params[i]->type, args[i], rx_strf(t->ctx, "argument %u (%s)", i, f->params[i]->name));
        rx_map_put(&t->vals, RX_KEY(f->params[i]), args[i]);
    }
    rx_match_end(&m);
    for (uint32_t i = 0; i < f->fact_list.n; i++) {
        rx_buf b;
        if (int_of(t, f->fact_list.at[i]))
            continue;
        rx_buf_init(&b, rx_scratch(&t->ctx->heap));
        rx_print_expr(&b, f->fact_list.at[i]);
        rx_fail(t->ctx, RXE_BOUND_EXCEEDED, &w, "%s does not hold", b.at);
    }
}

static void open_arena(act *t)
{
    if (!t->f->arena_bytes)
        return;
    t->arena_size = int_of(t, t->f->arena_bytes);
    if (t->arena_size < 0)
        fail(t, NULL, RXE_INTERNAL, "the size of the arena is negative");
    t->arena = rx_arena_alloc(t->a, (size_t)t->arena_size + 1, 64);
    memset(t->arena, 0xff, (size_t)t->arena_size);
}

rx_ival *rx_interp_run(rx_interp *in, relax_function *f, rx_ival *const *args, uint32_t n)
{
    rx_where w = {.function = f->name};
    act t = {.in = in, .ctx = in->ctx, .f = f, .a = in->a};
    rx_map_init(&t.vals, in->a);
    rx_map_init(&t.env, in->a);
    if (f->is_prim)
        rx_fail(in->ctx, RXE_ARG_KIND, &w, "a tensor program cannot be called so");
    if (n != f->nparams)
        rx_fail(in->ctx, RXE_ARG_COUNT, &w, "takes %u arguments, %u are given", f->nparams, n);
    if (in->depth >= RX_INTERP_DEPTH)
        rx_fail(in->ctx, RXE_DEPTH, &w, "calls are nested deeper than %d", RX_INTERP_DEPTH);
    in->depth++;
    bind_arguments(&t, args);
    open_arena(&t);
    rx_ival *r = run_body(&t, &f->body);
    in->depth--;
    if (f->ret && !conforms(&t, f->ret, r))
        fail(&t, NULL, RXE_INTERNAL, "the result is not of the declared annotation");
    return r;
}
