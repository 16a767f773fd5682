/* plugin.c: loading plugins: open, ask, negotiate, check everything, then add; a plugin that is refused has added
 * nothing.
 *
 * A plugin's code must stay as long as the context knows its passes and operators, so the shared object is closed when
 * the context is destroyed. Operators of plugins are rows of the same table as the built-in ones; their callbacks see a
 * relax_op_call. */
#include "api/builder.h"
#include "pass/pass.h"
#include "relax_plugin.h"
#include "rt/rt.h"

struct relax_op_call { relax_context *ctx; rx_ty *types; uint32_t n; rx_ty result; const rx_attrs *attrs; };

/* ---- what plugins may ask of a call ---- */
static relax_context *call_context(const relax_op_call *c) { return c ? c->ctx : NULL; }
static uint32_t call_arg_count(const relax_op_call *c) { return c ? c->n : 0; }
static const relax_type *call_arg(const relax_op_call *c, uint32_t i) { return c && i < c->n ? c->types[i] : NULL; }
static const relax_type *call_result(const relax_op_call *c) { return c ? c->result : NULL; }
static int64_t call_int(const relax_op_call *c, const char *key, int64_t absent)
{
    return c && key ? rx_attr_int(c->attrs, key, absent) : absent;
}
static double call_float(const relax_op_call *c, const char *key, double absent)
{
    return c && key ? rx_attr_float(c->attrs, key, absent) : absent;
}

static void host_log(relax_context *ctx, relax_log_level level, const char *text)
{
    if (rx_ctx_ok(ctx) && text) rx_log(ctx, level, "%s", text);
}

static relax_status host_fail(relax_context *ctx, relax_status status, const char *text, const char *hint)
{
    if (rx_ctx_ok(ctx)) rx_error(ctx, RXE_PLUGIN_ERROR, NULL, hint, "%s", text ? text : "a plugin failed");
    return status == RELAX_OK ? RELAX_E_INTERNAL : status;
}

static const relax_host_api host_api = {
    .struct_size = sizeof(relax_host_api),
    .log = host_log,
    .fail = host_fail,
    .module_function_count = relax_module_function_count,
    .module_function = relax_module_function,
    .module_find = relax_module_find,
    .module_parse_into = relax_module_parse_into,
    .module_remove = relax_module_remove,
    .function_name = relax_function_name,
    .function_is_prim = relax_function_is_prim,
    .function_param_count = relax_function_param_count,
    .function_param = relax_function_param,
    .function_result = relax_function_result,
    .function_visit = relax_function_visit,
    .function_text = relax_function_text,
    .value_kind = relax_value_kind,
    .value_op = relax_value_op,
    .value_callee = relax_value_callee,
    .value_name = relax_value_name,
    .value_arg_count = relax_value_arg_count,
    .value_arg = relax_value_arg,
    .value_attr_text = relax_value_attr_text,
    .value_type = relax_value_type,
    .value_dim = relax_value_dim,
    .value_use_count = relax_value_use_count,
    .value_replace = relax_value_replace,
    .value_set_arg = relax_value_set_arg,
    .value_remove = relax_value_remove,
    .insert_before = relax_insert_before,
    .insert_end = relax_insert_end,
    .op = relax_op,
    .constant = relax_constant,
    .scalar = relax_scalar,
    .call_dps_library = relax_call_dps_library,
    .tuple = relax_tuple,
    .tuple_get = relax_tuple_get,
    .type_kind = relax_type_kind,
    .type_dtype = relax_type_dtype,
    .type_ndim = relax_type_ndim,
    .type_dim = relax_type_dim,
    .type_tensor = relax_type_tensor,
    .type_tuple = relax_type_tuple,
    .type_text = relax_type_text,
    .dim_const = relax_dim_const,
    .dim_add = relax_dim_add,
    .dim_mul = relax_dim_mul,
    .dim_floordiv = relax_dim_floordiv,
    .dim_text = relax_dim_text,
    .op_call_context = call_context,
    .op_call_arg_count = call_arg_count,
    .op_call_arg = call_arg,
    .op_call_result = call_result,
    .op_call_int = call_int,
    .op_call_float = call_float,
    .library_register = relax_library_register,
};

/* ---- operators ---- */
/* An allocation failed in a function that the callback used: what it made of that is no answer. */
static void lost_memory(relax_context *ctx, uint32_t errors_before)
{
    if (rx_diag_count(ctx) > errors_before && rx_diag_status(ctx) == RELAX_E_NOMEM) rx_unwind(&ctx->heap);
}

RX_NORETURN static void callback_failed(relax_context *ctx, uint32_t errors_before, const char *op, const char *what)
{
    if (rx_diag_count(ctx) == errors_before)
        rx_fail(ctx, RXE_PLUGIN_ERROR, NULL, "%s: the plugin's %s gave nothing and no reason", op, what);
    rx_unwind(&ctx->heap);
}

static rx_ty deduce(rx_call *c)
{
    const relax_plugin_op *p = c->op->user;
    relax_op_call call = { c->ctx, c->types, c->n, NULL, &c->attrs };
    uint32_t before = rx_diag_count(c->ctx);
    rx_ty t = p->deduce(p->user, &call);
    lost_memory(c->ctx, before);
    if (!t) callback_failed(c->ctx, before, p->name, "deduce");
    if (t->ctx != c->ctx)
        rx_fail(c->ctx, RXE_WRONG_HANDLE, NULL, "%s: the plugin's annotation belongs to another context", p->name);
    return t;
}

static void define_symbols(rx_legal *l, rx_tir_scope *s, rx_ty t)
{
    rx_exvec syms = { 0 };
    rx_ty_free_syms(l->ctx, l->tb.a, t, &syms);
    for (uint32_t i = 0; i < syms.n; i++)
        if (!rx_tir_lookup(s, rx_sym_of(syms.at[i])->name))
            rx_tir_define(s, rx_sym_of(syms.at[i])->name, syms.at[i], NULL);
}

static rx_stmt *lower(rx_legal *l)
{
    const relax_plugin_op *p = l->op->user;
    relax_op_call call = { l->ctx, l->in, l->n, l->out, l->attrs };
    rx_tir_scope *s = rx_tir_scope_new(&l->tb);
    uint32_t k = 0, nout = l->out->kind == RX_TY_TUPLE ? l->out->nelems : 1;
    for (uint32_t i = 0; i < l->n; i++) {
        if (!l->in[i]) continue;
        define_symbols(l, s, l->in[i]);
        if (l->in[i]->kind != RX_TY_TENSOR) continue;
        rx_tir_define(s, rx_strf(l->ctx, "x%u", i), NULL, l->x[k++]);
    }
    define_symbols(l, s, l->out);
    for (uint32_t i = 0; i < nout; i++) rx_tir_define(s, rx_strf(l->ctx, "y%u", i), NULL, l->y[i]);
    uint32_t before = rx_diag_count(l->ctx);
    const char *text = p->lower(p->user, &call);
    lost_memory(l->ctx, before);
    if (!text) callback_failed(l->ctx, before, p->name, "lower");
    return rx_tir_read_stmts(s, text);
}

static void add_op(relax_context *ctx, const relax_plugin_op *p)
{
    relax_plugin_op *own = rx_arena_dup(&ctx->arena, p, sizeof *p);
    own->name = rx_str(ctx, p->name);
    rx_op *op = RX_NEW(&ctx->arena, rx_op);
    *op = (rx_op){.name = own->name,
                  .code = -1,
                  .min_args = p->min_args,
                  .max_args = p->max_args,
                  .attr_spec = rx_str(ctx, p->attrs ? p->attrs : ""),
                  .doc = rx_str(ctx, p->doc ? p->doc : ""),
                  .user = own,
                  .deduce = deduce,
                  .legalize = p->lower ? lower : NULL};
    rx_op_parse_attrs(ctx, op->attr_spec, &op->attrs, &op->nattrs);
    rx_op_add(ctx, op);
}

/* ---- loading ---- */
static void close_plugins(relax_context *ctx)
{
    for (uint32_t i = ctx->passes->plugins.n; i-- > 0;) rx_dl_close(ctx->passes->plugins.at[i]);
}

RX_NORETURN static void refuse(relax_context *ctx, const char *path, const char *why, const char *hint)
{
    rx_fail_hint(ctx, RXE_PLUGIN, NULL, hint, "plugin %s: %s", path, why);
}

/* everything is checked before anything is added */
static void check_passes(relax_context *ctx, const char *path, const relax_plugin *p)
{
    for (uint32_t i = 0; i < p->npasses; i++) {
        const char *name = p->passes[i].name;
        if (!name || !p->passes[i].run) refuse(ctx, path, "a pass has no name or no function", NULL);
        bool taken = rx_pass_find(ctx, name) != NULL;
        for (uint32_t k = 0; k < i; k++) taken |= !strcmp(name, p->passes[k].name);
        if (taken) refuse(ctx, path, rx_strf(ctx, "a pass named '%s' exists already", name), NULL);
    }
}

static bool reads(relax_context *ctx, const char *spec)
{
    rx_frame f;
    rx_attr_decl *attrs;
    uint32_t n;
    if (RX_ENTER(&ctx->heap, &f)) {
        rx_op_parse_attrs(ctx, rx_str(ctx, spec), &attrs, &n);
        rx_leave(&ctx->heap, &f);
        return true;
    }
    if (rx_diag_status(ctx) == RELAX_E_NOMEM) rx_unwind(&ctx->heap);
    return false;
}

static void check_ops(relax_context *ctx, const char *path, const relax_plugin *p)
{
    for (uint32_t i = 0; i < p->nops; i++) {
        const relax_plugin_op *o = &p->ops[i];
        if (!o->name || !o->deduce) refuse(ctx, path, "an operator has no name or no deduce function", NULL);
        bool taken = rx_op_find(ctx, o->name) != NULL;
        for (uint32_t k = 0; k < i; k++) taken |= !strcmp(o->name, p->ops[k].name);
        if (taken) refuse(ctx, path, rx_strf(ctx, "an operator named '%s' exists already", o->name), NULL);
        if (!reads(ctx, o->attrs ? o->attrs : ""))
            refuse(ctx, path, rx_strf(ctx, "the attributes of operator '%s' cannot be read", o->name), NULL);
    }
}

static void check(relax_context *ctx, const char *path, const relax_plugin *p)
{
    if (!p)
        refuse(ctx, path, "relax_plugin_query returned NULL",
               "the plugin does not want this host; see its documentation");
    if (p->abi_major != RELAX_PLUGIN_ABI_MAJOR || p->abi_minor > RELAX_PLUGIN_ABI_MINOR)
        refuse(ctx, path,
               rx_strf(ctx, "it needs plugin ABI %u.%u, this library has %d.%d", p->abi_major, p->abi_minor,
                       RELAX_PLUGIN_ABI_MAJOR, RELAX_PLUGIN_ABI_MINOR),
               "build the plugin for this version of librelax");
    if (p->struct_size < offsetof(relax_plugin, nlibraries) + sizeof p->nlibraries)
        refuse(ctx, path, "its description is too short", NULL);
    if (!p->name || (p->npasses && !p->passes) || (p->nops && !p->ops) || (p->nlibraries && !p->libraries))
        refuse(ctx, path, "its description has a NULL name or table", NULL);
    check_passes(ctx, path, p);
    check_ops(ctx, path, p);
    for (uint32_t i = 0; i < p->nlibraries; i++)
        if (!p->libraries[i].name || !p->libraries[i].fn)
            refuse(ctx, path, "a library function has no name or no function", NULL);
}

static void load(relax_context *ctx, const char *path)
{
    char err[512];
    relax_plugin_query_fn query;
    void *dl = rx_dl_open(path, err, sizeof err);
    if (!dl) refuse(ctx, path, err, NULL);
    rx_frame f;
    if (RX_ENTER(&ctx->heap, &f)) {
        void *sym = rx_dl_sym(dl, "relax_plugin_query");
        if (!sym) refuse(ctx, path, "it does not export relax_plugin_query", "declare it with RELAX_PLUGIN_EXPORT");
        memcpy(&query, &sym, sizeof query);
        const relax_host host = { sizeof host, RELAX_PLUGIN_ABI_MAJOR, RELAX_PLUGIN_ABI_MINOR, ctx, &host_api };
        const relax_plugin *p = query(&host);
        check(ctx, path, p);
        rx_push(&ctx->arena, &ctx->passes->plugins, dl);
        for (uint32_t i = 0; i < p->nlibraries; i++)
            if (relax_library_register(ctx, p->libraries[i].name, p->libraries[i].fn, p->libraries[i].user) != RELAX_OK)
                rx_unwind(&ctx->heap);
        for (uint32_t i = 0; i < p->nops; i++) add_op(ctx, &p->ops[i]);
        for (uint32_t i = 0; i < p->npasses; i++) {
            rx_pass pass = {.name = p->passes[i].name,
                            .keeps = ~(uint32_t)RX_M_GUARDED,
                            .doc = p->passes[i].doc,
                            .host = p->passes[i].run,
                            .user = p->passes[i].user};
            rx_pass_add(ctx, &pass);
        }
        rx_leave(&ctx->heap, &f);
        return;
    }
    if (!ctx->passes->plugins.n || ctx->passes->plugins.at[ctx->passes->plugins.n - 1] != dl) rx_dl_close(dl);
    rx_unwind(&ctx->heap);
}

relax_status relax_plugin_load(relax_context *ctx, const char *path)
{
    if (!rx_ctx_ok(ctx)) return RELAX_E_INVALID;
    if (!path) return api_null(ctx, "path");
    API_TRY(ctx) {
        rx_ops_init(ctx);
        rx_passes_init(ctx);
        if (!ctx->passes->closing) {
            if (ctx->n_at_destroy == RX_COUNT(ctx->at_destroy))
                rx_fail(ctx, RXE_LIMIT, NULL, "too many hooks on a context");
            ctx->at_destroy[ctx->n_at_destroy++] = close_plugins;
            ctx->passes->closing = true;
        }
        load(ctx, path);
        API_RETURN(RELAX_OK);
    }
    return api_failed(ctx);
}
