/* build.c: the graph builder: symbols and parameters of functions, leaves, bindings, the end of a function.
 *
 * Every emit function makes one binding at the insertion point, deduces its annotation and records its obligations; a
 * fault unwinds and leaves the function without the binding. A finished function is verified. */
#include "graph/op.h"

static rx_where in(const relax_function *f)
{
    return (rx_where){.function = f->name};
}

/* --- symbols --- */

static rx_ex add_sym(relax_function *f, const char *name)
{
    rx_ex s = rx_sym_new(f->mod->ctx, name, RELAX_I64);
    rx_sym_of(s)->lo = 0;
    rx_sym_of(s)->owner = f;
    rx_map_put(&f->symtab, RX_KEY(name), (void *)s);
    rx_push(&f->mod->arena, &f->syms, s);
    return s;
}

rx_ex rx_fn_sym(relax_function *f, const char *name)
{
    name = rx_str(f->mod->ctx, name);
    rx_ex s = rx_map_get(&f->symtab, RX_KEY(name));
    return s ? s : add_sym(f, name);
}

rx_ex rx_fn_sym_fresh(relax_function *f, const char *wish)
{
    const char *name = rx_str(f->mod->ctx, wish);
    for (uint32_t k = 1; rx_map_get(&f->symtab, RX_KEY(name)); k++)
        name = rx_strf(f->mod->ctx, "%s_%u", wish, k);
    return add_sym(f, name);
}

static rx_ex sym_by_name(void *arg, rx_lexer *l, const char *name)
{
    (void)l;
    return rx_fn_sym(arg, name);
}

rx_ty rx_fn_type(relax_function *f, const char *text, size_t n)
{
    rx_lexer l;
    rx_scope_fns sc = {.name = sym_by_name, .arg = f};
    rx_lex_init(&l, f->mod->ctx, NULL, text, n);
    rx_ty t = rx_parse_type(&l, &sc);
    if (l.tok != RX_T_EOF)
        rx_lex_fail(&l, RXE_SYNTAX, "text behind the annotation");
    return t;
}

void rx_fn_bound(relax_function *f, rx_ex sym, int64_t lo, int64_t hi)
{
    rx_where w = in(f);
    rx_sym *s = rx_sym_of(sym);
    if (!s)
        rx_fail(f->mod->ctx, RXE_BAD_VALUE, &w, "a bound needs a symbol");
    if (lo > hi)
        rx_fail(f->mod->ctx, RXE_BOUND, &w, "the bounds of %s contradict each other: %lld to %lld", s->name,
                (long long)lo, (long long)hi);
    s->lo = lo;
    s->hi = hi;
}

void rx_fn_fact(relax_function *f, rx_ex cond)
{
    rx_where w = in(f);
    if (cond->dtype != RELAX_BOOL || cond->flags & RX_EX_DATA)
        rx_fail(f->mod->ctx, RXE_BAD_VALUE, &w, "a fact must be a condition over symbols");
    rx_push(&f->mod->arena, &f->fact_list, cond);
    rx_facts_add(f->facts, cond);
    if (rx_facts_contradict(f->facts))
        rx_fail(f->mod->ctx, RXE_BOUND, &w, "the facts about the symbols contradict each other");
}

/* --- values --- */

static relax_value *new_value(relax_module *m, rx_vkind kind)
{
    relax_value *v = RX_NEW(&m->arena, relax_value);
    v->kind = kind;
    v->id = m->next_id++;
    v->pure = true;
    return v;
}

relax_value *rx_fn_param(relax_function *f, const char *name, rx_ty t)
{
    relax_module *m = f->mod;
    rx_where w = in(f);
    name = rx_str(m->ctx, name);
    for (uint32_t i = 0; i < f->nparams; i++)
        if (f->params[i]->name == name)
            rx_fail(m->ctx, RXE_DUPLICATE, &w, "two parameters are called %s", name);
    relax_value *v = new_value(m, RX_V_PARAM);
    v->name = name;
    v->type = t;
    v->fn = f;
    v->u.index = f->nparams;
    rx_vec_room(&m->arena, (void **)&f->params, f->nparams, &f->params_cap, sizeof *f->params);
    f->params[f->nparams++] = v;
    return v;
}

static size_t const_bytes(relax_context *ctx, relax_dtype t, const int64_t *dims, uint32_t ndim)
{
    int64_t n = (int64_t)rx_dtype_bytes(t);
    bool ok = n > 0 && ndim <= RX_MAX_RANK, zero = false;
    for (uint32_t i = 0; i < ndim && ok; i++) {
        ok = dims[i] >= 0;
        zero |= dims[i] == 0;
    }
    for (uint32_t i = 0; i < ndim && ok && !zero; i++)
        ok = rx_mul_ok(n, dims[i], &n);
    if (!ok)
        rx_fail(ctx, RXE_BAD_VALUE, NULL,
                "a constant needs a data type, at most %d dims, each >= 0, and a size that fits", RX_MAX_RANK);
    return zero ? 0 : (size_t)n;
}

relax_value *rx_v_const(relax_module *m, relax_dtype t, const int64_t *dims, uint32_t ndim, const void *data)
{
    rx_arena *a = &m->arena;
    size_t bytes = const_bytes(m->ctx, t, dims, ndim);
    relax_value *v = new_value(m, RX_V_CONST);
    rx_const *c = RX_NEW(a, rx_const);
    void *p = rx_arena_alloc(a, bytes ? bytes : 1, 64);
    if (bytes)
        memcpy(p, data, bytes);
    *c = (rx_const){.dtype = t, .ndim = ndim, .data = p, .bytes = bytes};
    c->dims = RX_NEWN(a, int64_t, ndim);
    rx_ex *d = RX_NEWN(rx_scratch(&m->ctx->heap), rx_ex, ndim);
    for (uint32_t i = 0; i < ndim; i++) {
        c->dims[i] = dims[i];
        d[i] = rx_int(m->ctx, dims[i]);
    }
    v->u.data = c;
    v->type = rx_ty_tensor(m->ctx, d, (int32_t)ndim, t);
    return v;
}

relax_value *rx_v_scalar(relax_module *m, relax_dtype t, double x)
{
    uint64_t bits = 0;
    rx_store_f64(t, &bits, x);
    return rx_v_const(m, t, NULL, 0, &bits);
}

relax_value *rx_v_shape(relax_module *m, rx_ex *dims, uint32_t n)
{
    if (n > RX_MAX_RANK)
        rx_fail(m->ctx, RXE_RANK, NULL, "a shape has at most %d dims", RX_MAX_RANK);
    for (uint32_t i = 0; i < n; i++)
        if (!dims[i] || dims[i]->dtype != RELAX_I64 || dims[i]->flags & RX_EX_DATA)
            rx_fail(m->ctx, RXE_BAD_VALUE, NULL, "dim %u of a shape is no integer expression", i);
    relax_value *v = new_value(m, RX_V_SHAPE);
    v->syms = n ? rx_arena_dup(&m->arena, dims, n * sizeof *dims) : NULL;
    v->nsyms = n;
    v->type = rx_ty_shape(m->ctx, dims, (int32_t)n);
    return v;
}

relax_value *rx_v_prim(relax_module *m, rx_ex e)
{
    relax_value *v = new_value(m, RX_V_PRIM);
    v->syms = rx_arena_dup(&m->arena, &e, sizeof e);
    v->nsyms = 1;
    v->type = rx_ty_prim(m->ctx, e->dtype, e);
    return v;
}

rx_ty rx_fn_signature(relax_function *f)
{
    relax_context *ctx = f->mod->ctx;
    if (f->is_prim || !f->ret)
        return rx_ty_func_opaque(ctx);
    rx_ty *ps = RX_NEWN(rx_scratch(&ctx->heap), rx_ty, f->nparams);
    for (uint32_t i = 0; i < f->nparams; i++)
        ps[i] = f->params[i]->type;
    return rx_ty_func(ctx, ps, f->nparams, f->ret, f->pure);
}

relax_value *rx_v_func(relax_module *m, relax_function *f)
{
    if (f->mod != m)
        rx_fail(m->ctx, RXE_WRONG_HANDLE, NULL, "function %s belongs to another module", f->name);
    relax_value *v = new_value(m, RX_V_FUNC);
    v->u.callee = f;
    v->type = rx_fn_signature(f);
    return v;
}

relax_value *rx_v_str(relax_module *m, const char *s)
{
    relax_value *v = new_value(m, RX_V_STR);
    v->ext = rx_str(m->ctx, s);
    v->type = rx_ty_object(m->ctx);
    return v;
}

/* --- the insertion point --- */

static rx_iblock *add_block(rx_body *body, bool dataflow)
{
    rx_iblock *b = RX_NEW(&body->fn->mod->arena, rx_iblock);
    b->body = body;
    b->dataflow = dataflow;
    if (body->last)
        body->last->next = b;
    else
        body->first = b;
    body->last = b;
    return b;
}

static rx_gb end_of(rx_body *body)
{
    return (rx_gb){.f = body->fn, .body = body, .block = body->last ? body->last : add_block(body, false)};
}

rx_gb rx_gb_begin(relax_function *f)
{
    return end_of(&f->body);
}

void rx_gb_dataflow(rx_gb *b, bool dataflow)
{
    rx_iblock *last = b->body->last;
    b->before = NULL;
    if (last && !last->first)
        last->dataflow = dataflow;
    else if (!last || last->dataflow || dataflow)
        last = add_block(b->body, dataflow);
    b->block = last;
}

/* --- bindings --- */

static relax_value *binding(rx_gb *b, rx_vkind kind, relax_value **args, uint32_t n)
{
    relax_module *m = b->f->mod;
    rx_where w = in(b->f);
    for (uint32_t i = 0; i < n; i++) {
        if (!args[i])
            continue;
        if (args[i]->fn && args[i]->fn != b->f)
            rx_fail(m->ctx, RXE_WRONG_HANDLE, &w, "operand %u belongs to another function", i);
    }
    relax_value *v = new_value(m, kind);
    v->args = n ? rx_arena_dup(&m->arena, args, n * sizeof *args) : NULL;
    v->nargs = n;
    return v;
}

static void place(rx_gb *b, relax_value *v)
{
    if (b->before)
        rx_v_insert_before(b->before, v);
    else
        rx_v_append(b->block, v);
    for (uint32_t i = 0; i < v->nargs; i++)
        if (v->args[i] && !v->args[i]->fn)
            v->args[i]->fn = b->f;
}

static relax_value *emit(rx_gb *b, relax_value *v)
{
    rx_where w = in(b->f);
    rx_v_rededuce(b->f, v);
    if (!v->pure) {
        if (b->block->dataflow)
            rx_fail(b->f->mod->ctx, RXE_PURITY, &w, "an impure call cannot stand in a dataflow block");
        b->f->pure = false;
    }
    place(b, v);
    return v;
}

static void set_syms(relax_module *m, relax_value *v, rx_ex *syms, uint32_t n)
{
    v->syms = n ? rx_arena_dup(&m->arena, syms, n * sizeof *syms) : NULL;
    v->nsyms = n;
}

relax_value *rx_emit_op(rx_gb *b, const rx_op *op, relax_value **args, uint32_t n, const rx_attr *attrs,
                        uint32_t nattrs)
{
    relax_value *v = binding(b, RX_V_OP, args, n);
    v->u.op = op;
    v->attrs = rx_op_attrs(b->f->mod->ctx, &b->f->mod->arena, op, attrs, nattrs);
    return emit(b, v);
}

relax_value *rx_emit_call(rx_gb *b, relax_value *callee, relax_value **args, uint32_t n, bool pure)
{
    relax_function *f = callee->kind == RX_V_FUNC ? callee->u.callee : NULL;
    uint32_t np = f ? f->nparams : callee->type->kind == RX_TY_FUNC ? callee->type->nelems : 0;
    relax_value **all = RX_NEWN(rx_scratch(&b->f->mod->ctx->heap), relax_value *, (size_t)n + 1);
    all[0] = callee;
    for (uint32_t i = 0; i < n; i++)
        all[i + 1] =
            args[i] && n == np ? rx_emit_known(b, args[i], f ? f->params[i]->type : callee->type->elems[i]) : args[i];
    relax_value *v = binding(b, RX_V_CALL, all, n + 1);
    v->pure = pure;
    return emit(b, v);
}

static void known_buffers(rx_gb *b, relax_function *prim, relax_value **args, uint32_t n, relax_value **out)
{
    relax_context *ctx = b->f->mod->ctx;
    const rx_prim *p = prim && prim->is_prim ? prim->prim : NULL;
    for (uint32_t i = 0; i < n; i++) {
        out[i] = args[i];
        if (args[i] && p && i < p->nparams)
            out[i] = rx_emit_known(
                b, args[i], rx_ty_tensor(ctx, p->params[i]->shape, (int32_t)p->params[i]->ndim, p->params[i]->dtype));
    }
}

relax_value *rx_emit_call_tir(rx_gb *b, relax_function *prim, relax_value **args, uint32_t n, rx_ty out, rx_ex *syms,
                              uint32_t nsyms)
{
    relax_value **known = RX_NEWN(rx_scratch(&b->f->mod->ctx->heap), relax_value *, n);
    known_buffers(b, prim, args, n, known);
    relax_value *v = binding(b, RX_V_CALL_TIR, known, n);
    v->u.callee = prim;
    v->type = out;
    set_syms(b->f->mod, v, syms, nsyms);
    return emit(b, v);
}

relax_value *rx_emit_call_tir_inplace(rx_gb *b, relax_function *prim, relax_value **args, uint32_t n, rx_ty out,
                                      rx_ex *syms, uint32_t nsyms, const int32_t *inplace, uint32_t ninplace)
{
    relax_value **known = RX_NEWN(rx_scratch(&b->f->mod->ctx->heap), relax_value *, n);
    known_buffers(b, prim, args, n, known);
    relax_value *v = binding(b, RX_V_CALL_TIR_INPLACE, known, n);
    v->u.callee = prim;
    v->type = out;
    v->inplace = ninplace ? rx_arena_dup(&b->f->mod->arena, inplace, ninplace * sizeof *inplace) : NULL;
    v->ninplace = ninplace;
    set_syms(b->f->mod, v, syms, nsyms);
    return emit(b, v);
}

relax_value *rx_emit_call_lib(rx_gb *b, const char *name, relax_value **args, uint32_t n, rx_ty out, rx_ex *syms,
                              uint32_t nsyms)
{
    relax_value *v = binding(b, RX_V_CALL_DPS_LIB, args, n);
    v->ext = rx_str(b->f->mod->ctx, name);
    v->type = out;
    set_syms(b->f->mod, v, syms, nsyms);
    return emit(b, v);
}

relax_value *rx_emit_call_packed(rx_gb *b, const char *name, relax_value **args, uint32_t n, rx_ty out, bool pure)
{
    relax_value *v = binding(b, RX_V_CALL_PACKED, args, n);
    v->ext = rx_str(b->f->mod->ctx, name);
    v->type = out;
    v->pure = pure;
    return emit(b, v);
}

relax_value *rx_emit_tuple(rx_gb *b, relax_value **args, uint32_t n)
{
    return emit(b, binding(b, RX_V_TUPLE, args, n));
}

relax_value *rx_emit_get(rx_gb *b, relax_value *tuple, uint32_t index)
{
    relax_value *v = binding(b, RX_V_GET, &tuple, 1);
    v->u.index = index;
    return emit(b, v);
}

relax_value *rx_emit_match_cast(rx_gb *b, relax_value *x, rx_ty t)
{
    relax_value *v = binding(b, RX_V_MATCH_CAST, &x, 1);
    v->type = t;
    return emit(b, v);
}

/* t with what is not known filled from like, or by fresh symbols; t itself when nothing is missing */
static rx_ty fill(rx_gb *b, rx_ty t, rx_ty like)
{
    relax_context *ctx = b->f->mod->ctx;
    bool need_dims = like->known && !t->known;
    bool need_dtype = t->dtype == RELAX_DTYPE_UNKNOWN && like->dtype != RELAX_DTYPE_UNKNOWN;
    if (t->kind == RX_TY_OBJECT &&
        (like->kind == RX_TY_TENSOR || like->kind == RX_TY_SHAPE || like->kind == RX_TY_PRIM))
        need_dims = like->known;
    else if (t->kind != like->kind || (!need_dims && !need_dtype) ||
             (t->ndim >= 0 && t->kind != RX_TY_PRIM && t->ndim != like->ndim))
        return t;
    relax_dtype dt = like->dtype != RELAX_DTYPE_UNKNOWN ? like->dtype : t->dtype;
    rx_ex d[RX_MAX_RANK];
    for (int32_t i = 0; i < like->ndim && need_dims; i++)
        d[i] = rx_fn_sym_fresh(b->f, "d");
    bool known = need_dims || t->known;
    rx_ex *dims = need_dims ? d : t->dims;
    if (like->kind == RX_TY_PRIM)
        return rx_ty_prim(ctx, dt, known && dt == RELAX_I64 ? dims[0] : NULL);
    if (like->kind == RX_TY_SHAPE)
        return known ? rx_ty_shape(ctx, dims, like->ndim) : rx_ty_shape_ndim(ctx, like->ndim);
    return known ? rx_ty_tensor(ctx, dims, like->ndim, dt) : rx_ty_tensor_ndim(ctx, like->ndim, dt);
}

relax_value *rx_emit_known(rx_gb *b, relax_value *v, rx_ty like)
{
    relax_context *ctx = b->f->mod->ctx;
    rx_ty t = v->type;
    if (!like) {
        if (t->kind != RX_TY_TENSOR || t->known || t->ndim < 0)
            return v;
        rx_ex zeros[RX_MAX_RANK];
        for (int32_t i = 0; i < t->ndim; i++)
            zeros[i] = rx_int(ctx, 0);
        like = rx_ty_tensor(ctx, zeros, t->ndim, t->dtype);
    }
    rx_ty want = fill(b, t, like);
    return want == t ? v : rx_emit_match_cast(b, v, want);
}

relax_value *rx_emit_if(rx_gb *b, relax_value *cond)
{
    rx_where w = in(b->f);
    if (b->block->dataflow)
        rx_fail(b->f->mod->ctx, RXE_PURITY, &w, "an if cannot stand in a dataflow block");
    relax_value *v = binding(b, RX_V_IF, &cond, 1);
    for (int i = 0; i < 2; i++) {
        rx_body *body = RX_NEW(&b->f->mod->arena, rx_body);
        body->owner = v;
        body->fn = b->f;
        if (i)
            v->u.branch.other = body;
        else
            v->u.branch.then = body;
    }
    place(b, v);
    return v;
}

rx_gb rx_if_then(relax_value *iff)
{
    return end_of(iff->u.branch.then);
}

rx_gb rx_if_else(relax_value *iff)
{
    return end_of(iff->u.branch.other);
}

void rx_if_end(relax_value *iff, relax_value *then_result, relax_value *else_result)
{
    iff->u.branch.then->result = then_result;
    iff->u.branch.other->result = else_result;
    rx_v_rededuce(iff->fn, iff);
}

relax_value *rx_emit_alloc(rx_gb *b, rx_ty tensor)
{
    relax_value *v = binding(b, RX_V_ALLOC, NULL, 0);
    v->type = tensor;
    return emit(b, v);
}

relax_value *rx_emit_call_dps(rx_gb *b, relax_function *prim, const char *lib, relax_value **args, uint32_t n,
                              rx_ex *syms, uint32_t nsyms)
{
    relax_value *v = binding(b, RX_V_CALL_DPS, args, n);
    v->u.callee = prim;
    v->ext = lib ? rx_str(b->f->mod->ctx, lib) : NULL;
    set_syms(b->f->mod, v, syms, nsyms);
    return emit(b, v);
}

relax_value *rx_emit_view(rx_gb *b, relax_value *x, rx_ty t)
{
    relax_value *v = binding(b, RX_V_VIEW, &x, 1);
    v->type = t;
    return emit(b, v);
}

/* --- the end of a function --- */

static void mark_use(relax_value *used, const rx_iblock *at)
{
    if (used && used->block && used->block->dataflow && used->block != at)
        used->output = true;
}

static void mark_uses(void *arg, relax_value *v)
{
    (void)arg;
    for (uint32_t i = 0; i < v->nargs; i++)
        mark_use(v->args[i], v->block);
    if (v->kind == RX_V_IF) {
        mark_use(v->u.branch.then->result, NULL);
        mark_use(v->u.branch.other->result, NULL);
    }
}

void rx_fn_mark_outputs(relax_function *f)
{
    rx_fn_visit(f, mark_uses, NULL);
    mark_use(f->body.result, NULL);
}

typedef struct param_syms { rx_exvec v; } param_syms;
static bool of_params(void *arg, rx_ex sym)
{
    const param_syms *p = arg;
    for (uint32_t i = 0; i < p->v.n; i++)
        if (p->v.at[i] == sym)
            return true;
    return false;
}

void rx_fn_finish(relax_function *f, rx_gb *b, relax_value *result)
{
    relax_context *ctx = f->mod->ctx;
    rx_where w = in(f);
    if (!result || !result->type)
        rx_fail(ctx, RXE_UNDEF_VALUE, &w, "the function has no result");
    if (f->ret && rx_ty_subtype(ctx, f->facts, result->type, f->ret) == RX_UNKNOWN) {
        rx_gb at = b ? *b : end_of(&f->body);
        if (at.block->dataflow)
            rx_gb_dataflow(&at, false);
        result = rx_emit_match_cast(&at, result, f->ret);
    }
    if (!result->fn)
        result->fn = f;
    f->body.result = result;
    rx_fn_mark_outputs(f);
    if (!f->ret) {
        param_syms p = {0};
        for (uint32_t i = 0; i < f->nparams; i++)
            rx_ty_free_syms(ctx, rx_scratch(&ctx->heap), f->params[i]->type, &p.v);
        f->ret = rx_ty_erase(ctx, result->type, of_params, &p);
    }
    uint32_t seen = rx_diag_count(ctx);
    if (rx_function_verify(f)) {
        if (rx_diag_count(ctx) == seen)
            rx_fail(ctx, RXE_VERIFY, &w, "the function breaks a rule");
        rx_unwind(&ctx->heap);
    }
}
