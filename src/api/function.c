/* function.c: building graph functions. The first error sticks to the builder; every later call passes NULL on. */
#include "api/builder.h"

bool api_builder(const relax_builder *b) { return b && b->magic == API_BUILDER_MAGIC; }

bool api_value_of(relax_builder *b, const relax_value *v)
{
    return v->block || v->kind == RX_V_PARAM ? v->fn == b->fn : true;
}

bool api_operands(relax_builder *b, relax_value *const *args, uint32_t n, const char *what)
{
    if (!api_builder(b) || b->status != RELAX_OK) return false;
    for (uint32_t i = 0; i < n; i++) {
        rx_where w = { .function = b->fn->name };
        if (!args || !args[i]) {
            b->status = rx_error(b->mod->ctx, RXE_NULL_ARG, &w, NULL, "%s: operand %u is NULL", what, i);
            return false;
        }
        if (!api_value_of(b, args[i])) {
            b->status = rx_error(b->mod->ctx, RXE_WRONG_HANDLE, &w, NULL, "%s: operand %u belongs to another function",
                                 what, i);
            return false;
        }
    }
    return true;
}

relax_value *api_stick(relax_builder *b)
{
    if (b->status == RELAX_OK) b->status = api_failed(b->mod->ctx);
    return NULL;
}

static bool good_text(relax_builder *b, const char *s, const char *what)
{
    if (!api_operands(b, NULL, 0, "")) return false;
    if (s) return true;
    b->status = api_null(b->mod->ctx, what);
    return false;
}

/* ---- begin, finish ---- */
static relax_builder *builder_new(relax_module *m, relax_function *f)
{
    relax_builder *b = RX_NEW(&m->arena, relax_builder);
    b->magic = API_BUILDER_MAGIC;
    b->mod = m;
    b->fn = f;
    return b;
}

relax_builder *relax_function_begin(relax_module *m, const char *name)
{
    if (!api_module(m)) return NULL;
    if (!name) {
        api_null(m->ctx, "the name of a function");
        return NULL;
    }
    API_TRY(m->ctx) {
        relax_function *f = rx_function_new(m, name);
        f->pure = true;
        relax_builder *b = builder_new(m, f);
        b->gb = rx_gb_begin(f);
        API_RETURN(b);
    }
    return NULL;
}

void relax_function_abandon(relax_builder *b)
{
    if (!api_builder(b)) return;
    b->magic = 0;
    if (!b->inserting) rx_module_remove(b->mod, b->fn);
}

relax_status relax_function_finish(relax_builder *b, relax_value *result)
{
    if (!api_builder(b)) return RELAX_E_INVALID;
    relax_context *ctx = b->mod->ctx;
    rx_where w = { .function = b->fn->name };
    api_operands(b, &result, 1, "the result");
    if (b->status == RELAX_OK && b->ifs) b->status = rx_error(ctx, RXE_STATE, &w, NULL, "an if has no relax_end_if");
    if (b->status == RELAX_OK && b->inserting)
        b->status = rx_error(ctx, RXE_STATE, &w, NULL, "this builder inserts; end it with relax_insert_end");
    if (b->status == RELAX_OK) {
        API_TRY(ctx) {
            rx_fn_finish(b->fn, &b->gb, result);
            b->magic = 0;
            API_RETURN(RELAX_OK);
        }
        api_stick(b);
    }
    relax_status st = b->status;
    relax_function_abandon(b);
    return st;
}

relax_status relax_builder_status(const relax_builder *b) { return api_builder(b) ? b->status : RELAX_E_INVALID; }
relax_function *relax_builder_function(relax_builder *b) { return api_builder(b) ? b->fn : NULL; }

/* ---- parameters, symbols ---- */
const relax_expr *relax_symbol(relax_builder *b, const char *name)
{
    if (!good_text(b, name, "the name of a symbol")) return NULL;
    API_TRY(b->mod->ctx) {
        rx_ex e = rx_fn_sym(b->fn, name);
        API_RETURN(e);
    }
    api_stick(b);
    return NULL;
}

relax_value *relax_param_typed(relax_builder *b, const char *name, const relax_type *type)
{
    if (!good_text(b, name, "the name of a parameter")) return NULL;
    if (!type || type->ctx != b->mod->ctx) {
        b->status = type ? api_foreign(b->mod->ctx, "an annotation") : api_null(b->mod->ctx, "an annotation");
        return NULL;
    }
    API_TRY(b->mod->ctx) {
        relax_value *v = rx_fn_param(b->fn, name, type);
        API_RETURN(v);
    }
    return api_stick(b);
}

relax_value *relax_param(relax_builder *b, const char *name, const char *type)
{
    const relax_type *t = relax_type_parse(b, type);
    return t ? relax_param_typed(b, name, t) : NULL;
}

void relax_bound(relax_builder *b, const char *symbol, int64_t lo, int64_t hi)
{
    if (!good_text(b, symbol, "the name of a symbol")) return;
    API_TRY(b->mod->ctx) {
        if (!rx_map_has(&b->fn->symtab, RX_KEY(rx_str(b->mod->ctx, symbol)))) {
            rx_where w = { .function = b->fn->name };
            rx_fail_hint(b->mod->ctx, RXE_UNDEF_SYM, &w, "define it in a parameter first", "no symbol is named %s",
                         symbol);
        }
        rx_fn_bound(b->fn, rx_fn_sym(b->fn, symbol), lo, hi);
        API_RETURN();
    }
    api_stick(b);
}

rx_ex api_symbol(void *arg, rx_lexer *l, const char *name)
{
    (void)l;
    return rx_map_get(&((relax_function *)arg)->symtab, RX_KEY(name));
}

void relax_fact(relax_builder *b, const char *condition)
{
    if (!good_text(b, condition, "a condition")) return;
    API_TRY(b->mod->ctx) {
        rx_scope_fns sc = { api_symbol, NULL, b->fn };
        rx_fn_fact(b->fn, rx_parse_expr_text(b->mod->ctx, condition, strlen(condition), &sc));
        API_RETURN();
    }
    api_stick(b);
}

void relax_private(relax_builder *b)
{
    if (api_builder(b)) b->fn->is_private = true;
}

void relax_impure(relax_builder *b)
{
    if (api_builder(b)) b->fn->pure = false;
}

void relax_result_type(relax_builder *b, const char *type)
{
    const relax_type *t = relax_type_parse(b, type);
    if (t) b->fn->ret = t;
}

static void dataflow(relax_builder *b, bool on)
{
    if (!api_operands(b, NULL, 0, "")) return;
    API_TRY(b->mod->ctx) {
        rx_gb_dataflow(&b->gb, on);
        API_RETURN();
    }
    api_stick(b);
}

void relax_dataflow_begin(relax_builder *b) { dataflow(b, true); }
void relax_dataflow_end(relax_builder *b) { dataflow(b, false); }

/* ---- leaves ---- */
relax_value *relax_constant(relax_builder *b, relax_dtype dtype, const int64_t *dims, int32_t ndim, const void *data)
{
    if (!api_operands(b, NULL, 0, "")) return NULL;
    relax_context *ctx = b->mod->ctx;
    if (dtype <= 0 || dtype >= RELAX_DTYPE_COUNT || ndim < 0 || ndim > RX_MAX_RANK || (ndim && !dims)) {
        b->status =
            rx_error(ctx, RXE_BAD_VALUE, NULL, NULL, "a constant of data type %d and rank %d", (int)dtype, (int)ndim);
        return NULL;
    }
    int64_t n = (int64_t)rx_dtype_bytes(dtype);
    for (int32_t i = 0; i < ndim; i++)
        if (dims[i] < 0 || !rx_mul_ok(n, dims[i], &n)) {
            b->status = rx_error(ctx, RXE_BAD_VALUE, NULL, NULL, "a constant: dim %d is %lld", i, (long long)dims[i]);
            return NULL;
        }
    if (n && !data) {
        b->status = api_null(ctx, "the data of a constant");
        return NULL;
    }
    API_TRY(ctx) {
        relax_value *v = rx_v_const(b->mod, dtype, dims, (uint32_t)ndim, data);
        API_RETURN(v);
    }
    return api_stick(b);
}

relax_value *relax_scalar(relax_builder *b, relax_dtype dtype, double v)
{
    unsigned char at[8] = { 0 };
    if (dtype > 0 && dtype < RELAX_DTYPE_COUNT) rx_store_f64(dtype, at, v);
    return relax_constant(b, dtype, NULL, 0, at);
}

relax_value *relax_scalar_int(relax_builder *b, relax_dtype dtype, int64_t v)
{
    unsigned char at[8] = { 0 };
    if (dtype > 0 && dtype < RELAX_DTYPE_COUNT) rx_store_i64(dtype, at, v);
    return relax_constant(b, dtype, NULL, 0, at);
}

relax_value *relax_shape(relax_builder *b, const relax_expr *const *dims, int32_t ndim)
{
    if (!api_operands(b, NULL, 0, "")) return NULL;
    const relax_type *t = relax_type_shape(b->mod->ctx, dims, ndim);        /* checks the dims */
    if (!t || ndim < 0) return api_stick(b);
    API_TRY(b->mod->ctx) {
        relax_value *v = rx_v_shape(b->mod, (rx_ex *)dims, (uint32_t)ndim);
        API_RETURN(v);
    }
    return api_stick(b);
}

relax_value *relax_shape_text(relax_builder *b, const char *dims)
{
    if (!good_text(b, dims, "the text of a shape")) return NULL;
    API_TRY(b->mod->ctx) {
        const char *s = rx_strf(b->mod->ctx, "Shape%s", dims);
        rx_ty t = rx_fn_type(b->fn, s, strlen(s));
        relax_value *v = rx_v_shape(b->mod, t->dims, (uint32_t)t->ndim);
        API_RETURN(v);
    }
    return api_stick(b);
}

relax_value *relax_prim(relax_builder *b, const relax_expr *e)
{
    if (!api_operands(b, NULL, 0, "")) return NULL;
    if (!e || e->ctx != b->mod->ctx) {
        b->status = e ? api_foreign(b->mod->ctx, "an expression") : api_null(b->mod->ctx, "an expression");
        return NULL;
    }
    API_TRY(b->mod->ctx) {
        relax_value *v = rx_v_prim(b->mod, e);
        API_RETURN(v);
    }
    return api_stick(b);
}

static bool good_function(relax_builder *b, relax_function *f)
{
    if (!api_operands(b, NULL, 0, "")) return false;
    if (f && f->mod == b->mod) return true;
    b->status = f ? api_foreign(b->mod->ctx, "a function") : api_null(b->mod->ctx, "a function");
    return false;
}

relax_value *relax_function_value(relax_builder *b, relax_function *f)
{
    if (!good_function(b, f)) return NULL;
    API_TRY(b->mod->ctx) {
        relax_value *v = rx_v_func(b->mod, f);
        API_RETURN(v);
    }
    return api_stick(b);
}

/* ---- tuples ---- */
relax_value *relax_tuple(relax_builder *b, relax_value *const *fields, uint32_t n)
{
    if (!api_operands(b, fields, n, "a tuple")) return NULL;
    API_TRY(b->mod->ctx) {
        relax_value *v = rx_emit_tuple(&b->gb, (relax_value **)fields, n);
        API_RETURN(v);
    }
    return api_stick(b);
}

relax_value *relax_tuple_get(relax_builder *b, relax_value *tuple, uint32_t index)
{
    if (!api_operands(b, &tuple, 1, "a tuple's field")) return NULL;
    API_TRY(b->mod->ctx) {
        relax_value *v = rx_emit_get(&b->gb, tuple, index);
        API_RETURN(v);
    }
    return api_stick(b);
}

relax_value *relax_value_named(relax_builder *b, relax_value *v, const char *name)
{
    if (!v || !good_text(b, name, "a name")) return v;
    API_TRY(b->mod->ctx) {
        v->name = rx_str(b->mod->ctx, name);
        API_RETURN(v);
    }
    return api_stick(b);
}

const relax_type *relax_value_type(const relax_value *v) { return v ? v->type : NULL; }
const relax_expr *relax_value_dim(const relax_value *v, int32_t axis)
{
    return v ? relax_type_dim(v->type, axis) : NULL;
}

/* ---- calls ---- */
relax_value *relax_call_value(relax_builder *b, relax_value *f, relax_value *const *args, uint32_t n)
{
    if (!api_operands(b, &f, 1, "a call") || !api_operands(b, args, n, "a call")) return NULL;
    API_TRY(b->mod->ctx) {
        bool pure = f->type->kind != RX_TY_FUNC || f->type->pure;
        relax_value *v = rx_emit_call(&b->gb, f, (relax_value **)args, n, pure);
        API_RETURN(v);
    }
    return api_stick(b);
}

relax_value *relax_call(relax_builder *b, relax_function *f, relax_value *const *args, uint32_t n)
{
    relax_value *v = relax_function_value(b, f);
    return v ? relax_call_value(b, v, args, n) : NULL;
}

static bool good_syms(relax_builder *b, const relax_expr *const *syms, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        if (!syms || !syms[i] || syms[i]->ctx != b->mod->ctx) {
            b->status = api_foreign(b->mod->ctx, "a symbolic argument");
            return false;
        }
    return true;
}

relax_value *relax_call_tir_typed(relax_builder *b, relax_function *prim, relax_value *const *args, uint32_t n,
                                  const relax_type *out, const relax_expr *const *syms, uint32_t nsyms)
{
    if (!out || !api_operands(b, args, n, "call_tir") || !good_function(b, prim) || !good_syms(b, syms, nsyms))
        return NULL;
    API_TRY(b->mod->ctx) {
        relax_value *v = rx_emit_call_tir(&b->gb, prim, (relax_value **)args, n, out, (rx_ex *)syms, nsyms);
        API_RETURN(v);
    }
    return api_stick(b);
}

relax_value *relax_call_tir(relax_builder *b, relax_function *prim, relax_value *const *args, uint32_t n,
                            const char *out, const relax_expr *const *syms, uint32_t nsyms)
{
    return relax_call_tir_typed(b, prim, args, n, relax_type_parse(b, out), syms, nsyms);
}

relax_value *relax_call_tir_inplace(relax_builder *b, relax_function *prim, relax_value *const *args, uint32_t n,
                                    const char *out, const relax_expr *const *syms, uint32_t nsyms,
                                    const int32_t *inplace, uint32_t ninplace)
{
    const relax_type *t = relax_type_parse(b, out);
    if (!t || !api_operands(b, args, n, "call_tir_inplace") || !good_function(b, prim) || !good_syms(b, syms, nsyms))
        return NULL;
    if (ninplace && !inplace) {
        b->status = api_null(b->mod->ctx, "inplace");
        return NULL;
    }
    API_TRY(b->mod->ctx) {
        relax_value *v =
            rx_emit_call_tir_inplace(&b->gb, prim, (relax_value **)args, n, t, (rx_ex *)syms, nsyms, inplace, ninplace);
        API_RETURN(v);
    }
    return api_stick(b);
}

relax_value *relax_call_dps_library(relax_builder *b, const char *name, relax_value *const *args, uint32_t n,
                                    const char *out)
{
    const relax_type *t = relax_type_parse(b, out);
    if (!t || !good_text(b, name, "the name of a library function") || !api_operands(b, args, n, name)) return NULL;
    API_TRY(b->mod->ctx) {
        relax_value *v = rx_emit_call_lib(&b->gb, name, (relax_value **)args, n, t, NULL, 0);
        API_RETURN(v);
    }
    return api_stick(b);
}

relax_value *relax_call_packed(relax_builder *b, const char *name, relax_value *const *args, uint32_t n,
                               const char *out, int32_t pure)
{
    const relax_type *t = relax_type_parse(b, out);
    if (!t || !good_text(b, name, "the name of a host function") || !api_operands(b, args, n, name)) return NULL;
    API_TRY(b->mod->ctx) {
        relax_value *v = rx_emit_call_packed(&b->gb, name, (relax_value **)args, n, t, pure != 0);
        API_RETURN(v);
    }
    return api_stick(b);
}

relax_value *relax_match_cast(relax_builder *b, relax_value *v, const char *type)
{
    if (!api_operands(b, &v, 1, "match_cast")) return NULL;
    const relax_type *t = relax_type_parse(b, type);
    if (!t) return NULL;
    API_TRY(b->mod->ctx) {
        relax_value *r = rx_emit_match_cast(&b->gb, v, t);
        API_RETURN(r);
    }
    return api_stick(b);
}

/* ---- if ---- */
relax_status relax_if(relax_builder *b, relax_value *cond)
{
    if (!api_builder(b)) return RELAX_E_INVALID;
    if (!api_operands(b, &cond, 1, "if")) return b->status;
    API_TRY(b->mod->ctx) {
        if (b->gb.block && b->gb.block->dataflow) rx_gb_dataflow(&b->gb, false);
        api_if *i = RX_NEW(&b->mod->arena, api_if);
        i->iff = rx_emit_if(&b->gb, cond);
        i->outer = b->gb;
        i->up = b->ifs;
        b->ifs = i;
        b->gb = rx_if_then(i->iff);
        API_RETURN(RELAX_OK);
    }
    api_stick(b);
    return b->status;
}

relax_status relax_else(relax_builder *b, relax_value *then_result)
{
    if (!api_builder(b)) return RELAX_E_INVALID;
    if (!api_operands(b, &then_result, 1, "if")) return b->status;
    if (!b->ifs || b->ifs->in_else)
        return b->status = rx_error(b->mod->ctx, RXE_STATE, NULL, NULL, "relax_else without relax_if");
    b->ifs->then_result = then_result;
    b->ifs->in_else = true;
    b->gb = rx_if_else(b->ifs->iff);
    return RELAX_OK;
}

relax_value *relax_end_if(relax_builder *b, relax_value *else_result)
{
    if (!api_operands(b, &else_result, 1, "if")) return NULL;
    if (!b->ifs || !b->ifs->in_else) {
        b->status = rx_error(b->mod->ctx, RXE_STATE, NULL, NULL, "relax_end_if without relax_else");
        return NULL;
    }
    API_TRY(b->mod->ctx) {
        api_if *i = b->ifs;
        rx_if_end(i->iff, i->then_result, else_result);
        b->gb = i->outer;
        b->ifs = i->up;
        API_RETURN(i->iff);
    }
    return api_stick(b);
}
