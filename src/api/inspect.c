/* inspect.c: looking at functions and values, and rewriting them: what host passes are made of. */
#include "api/builder.h"

const char *relax_function_name(const relax_function *f) { return f ? f->name : NULL; }
int32_t relax_function_is_prim(const relax_function *f) { return f && f->is_prim; }
uint32_t relax_function_param_count(const relax_function *f)
{
    return !f ? 0 : f->is_prim ? f->prim->nparams : f->nparams;
}
relax_value *relax_function_param(relax_function *f, uint32_t i)
{
    return f && !f->is_prim && i < f->nparams ? f->params[i] : NULL;
}
const relax_type *relax_function_result_type(const relax_function *f) { return f ? f->ret : NULL; }
relax_value *relax_function_result(relax_function *f) { return f && !f->is_prim ? f->body.result : NULL; }

typedef struct list { rx_arena *a; RX_VEC(relax_value *) v; } list;
static void collect(void *arg, relax_value *v)
{
    list *l = arg;
    rx_push(l->a, &l->v, v);
}

relax_status relax_function_visit(relax_function *f, int32_t (*visit)(void *user, relax_value *v), void *user)
{
    if (!f || f->is_prim) return RELAX_E_INVALID;
    if (!visit) return api_null(f->mod->ctx, "visit");
    API_TRY(f->mod->ctx) {
        list l = { rx_scratch(&f->mod->ctx->heap), { 0 } };
        rx_fn_visit(f, collect, &l);
        for (uint32_t i = 0; i < l.v.n; i++)
            if (l.v.at[i]->block && visit(user, l.v.at[i])) break;     /* a removed one is in no block */
        API_RETURN(RELAX_OK);
    }
    return api_failed(f->mod->ctx);
}

/* ORDER: RELAX_VALUE_* of relax.h are the kinds in the order of rx_vkind */
_Static_assert(RELAX_VALUE_VIEW == (int)RX_V_VIEW && RX_V_COUNT == RELAX_VALUE_VIEW + 1, "kinds of values");

int32_t relax_value_kind(const relax_value *v) { return v ? (int32_t)v->kind : -1; }
const char *relax_value_op(const relax_value *v) { return v && v->kind == RX_V_OP ? v->u.op->name : NULL; }

const char *relax_value_callee(const relax_value *v)
{
    if (!v) return NULL;
    switch (v->kind) {
    case RX_V_FUNC: case RX_V_CALL_TIR: case RX_V_CALL_TIR_INPLACE: return v->u.callee->name;
    case RX_V_CALL_DPS: return v->u.callee ? v->u.callee->name : v->ext;
    case RX_V_CALL_DPS_LIB: case RX_V_CALL_PACKED: return v->ext;
    case RX_V_CALL: return v->args[0]->kind == RX_V_FUNC ? v->args[0]->u.callee->name : NULL;
    default: return NULL;
    }
}

const char *relax_value_name(const relax_value *v) { return v ? v->name : NULL; }
uint32_t relax_value_arg_count(const relax_value *v) { return v ? v->nargs : 0; }
relax_value *relax_value_arg(const relax_value *v, uint32_t i) { return v && i < v->nargs ? v->args[i] : NULL; }

relax_status relax_value_attr_text(const relax_value *v, const char *key, char *out, size_t size)
{
    if (!v || !key || !v->fn) return RELAX_E_INVALID;
    const rx_attr *a = rx_attr_get(&v->attrs, key);
    if (!a) return RELAX_E_NOT_FOUND;
    API_TRY(v->fn->mod->ctx) {
        rx_buf b;
        rx_buf_init(&b, rx_scratch(&v->fn->mod->ctx->heap));
        rx_print_attr(v->fn->mod->ctx, &b, a);
        api_text(b.at ? b.at : "", b.n, out, size);
        API_RETURN(RELAX_OK);
    }
    return api_failed(v->fn->mod->ctx);
}

uint32_t relax_value_use_count(relax_value *v) { return v && v->fn && !v->fn->is_prim ? rx_v_uses(v->fn, v) : 0; }

/* what follows from another operand: annotations of all users, in program order, to the end of the function */
static void deduce_again(relax_function *f)
{
    list l = { rx_scratch(&f->mod->ctx->heap), { 0 } };
    rx_fn_visit(f, collect, &l);
    for (uint32_t i = 0; i < l.v.n; i++) rx_v_rededuce(f, l.v.at[i]);
}

static relax_status foreign(const relax_value *v, const relax_value *w)
{
    bool ok = !w->fn || !w->block || w->fn == v->fn;
    return ok ? RELAX_OK : api_foreign(v->fn->mod->ctx, "a value");
}

relax_status relax_value_replace(relax_value *v, relax_value *with)
{
    if (!v || !v->fn) return RELAX_E_INVALID;
    if (!with) return api_null(v->fn->mod->ctx, "the replacement");
    relax_status st = foreign(v, with);
    if (st != RELAX_OK) return st;
    API_TRY(v->fn->mod->ctx) {
        with->output |= v->output;
        rx_v_replace(v->fn, v, with);
        if (with->type != v->type) deduce_again(v->fn);
        API_RETURN(RELAX_OK);
    }
    return api_failed(v->fn->mod->ctx);
}

relax_status relax_value_set_arg(relax_value *v, uint32_t i, relax_value *arg)
{
    if (!v || !v->fn) return RELAX_E_INVALID;
    relax_context *ctx = v->fn->mod->ctx;
    if (!arg) return api_null(ctx, "the operand");
    if (i >= v->nargs) return rx_error(ctx, RXE_BAD_VALUE, NULL, NULL, "operand %u of %u", i, v->nargs);
    relax_status st = foreign(v, arg);
    if (st != RELAX_OK) return st;
    API_TRY(ctx) {
        rx_ty before = v->args[i] ? v->args[i]->type : NULL;
        v->args[i] = arg;
        if (arg->type != before) deduce_again(v->fn);
        API_RETURN(RELAX_OK);
    }
    return api_failed(ctx);
}

relax_status relax_value_remove(relax_value *v)
{
    if (!v || !v->fn) return RELAX_E_INVALID;
    relax_context *ctx = v->fn->mod->ctx;
    rx_where w = { .function = v->fn->name, .binding = v->name };
    if (!v->block) return rx_error(ctx, RXE_STATE, &w, NULL, "the value is no binding");
    if (rx_v_uses(v->fn, v)) return rx_error(ctx, RXE_STATE, &w, "replace its uses first", "the value is used");
    API_TRY(ctx) {
        rx_v_remove(v);
        API_RETURN(RELAX_OK);
    }
    return api_failed(ctx);
}

relax_builder *relax_insert_before(relax_value *v)
{
    if (!v || !v->fn) return NULL;
    relax_context *ctx = v->fn->mod->ctx;
    if (!v->block) {
        rx_error(ctx, RXE_STATE, NULL, NULL, "the value is no binding");
        return NULL;
    }
    API_TRY(ctx) {
        relax_builder *b = RX_NEW(&v->fn->mod->arena, relax_builder);
        b->magic = API_BUILDER_MAGIC;
        b->mod = v->fn->mod;
        b->fn = v->fn;
        b->gb = rx_gb_before(v);
        b->inserting = true;
        API_RETURN(b);
    }
    return NULL;
}

relax_status relax_insert_end(relax_builder *b)
{
    if (!api_builder(b)) return RELAX_E_INVALID;
    relax_status st = b->status;
    if (st == RELAX_OK && !b->inserting)
        return rx_error(b->mod->ctx, RXE_STATE, NULL, NULL,
                        "this builder makes a function; end it with relax_function_finish");
    if (st == RELAX_OK && b->ifs) st = rx_error(b->mod->ctx, RXE_STATE, NULL, NULL, "an if has no relax_end_if");
    b->magic = 0;
    return st;
}

size_t relax_function_text(relax_function *f, char *out, size_t size)
{
    if (!f) return api_text("", 0, out, size);
    API_TRY(f->mod->ctx) {
        rx_buf b;
        rx_buf_init(&b, rx_scratch(&f->mod->ctx->heap));
        rx_print_function(&b, f);
        size_t n = api_text(b.at, b.n, out, size);
        API_RETURN(n);
    }
    return api_text("", 0, out, size);
}
