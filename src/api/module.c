/* module.c: modules and their text form. */
#include "api/builder.h"

bool api_module(const relax_module *m) { return m && m->magic == RX_MOD_MAGIC; }

relax_module *relax_module_create(relax_context *ctx)
{
    if (!rx_ctx_ok(ctx)) return NULL;
    API_TRY(ctx) {
        rx_ops_init(ctx);
        relax_module *m = rx_module_new(ctx);
        API_RETURN(m);
    }
    return NULL;
}

void relax_module_destroy(relax_module *m)
{
    if (api_module(m)) rx_module_free(m);
}

relax_module *relax_module_parse(relax_context *ctx, const char *name, const char *text, size_t length)
{
    if (!rx_ctx_ok(ctx) || !text) {
        api_null(ctx, "text");
        return NULL;
    }
    API_TRY(ctx) {
        rx_ops_init(ctx);
        relax_module *m =
            rx_parse_module(ctx, name ? name : "text", text, length == RELAX_STRLEN ? strlen(text) : length);
        API_RETURN(m);
    }
    return NULL;
}

relax_status relax_module_parse_into(relax_module *m, const char *name, const char *text, size_t length)
{
    if (!api_module(m)) return RELAX_E_INVALID;
    if (!text) return api_null(m->ctx, "text");
    API_TRY(m->ctx) {
        rx_parse_into(m, name ? name : "text", text, length == RELAX_STRLEN ? strlen(text) : length);
        API_RETURN(RELAX_OK);
    }
    return api_failed(m->ctx);
}

relax_status relax_module_verify(relax_module *m)
{
    if (!api_module(m)) return RELAX_E_INVALID;
    API_TRY(m->ctx) {
        uint32_t breaks = rx_module_verify(m);
        API_RETURN(breaks ? api_failed(m->ctx) : RELAX_OK);
    }
    return api_failed(m->ctx);
}

relax_module *relax_module_clone(relax_module *m)
{
    if (!api_module(m)) return NULL;
    API_TRY(m->ctx) {
        relax_module *c = rx_module_clone(m);
        API_RETURN(c);
    }
    return NULL;
}

relax_status relax_module_print(relax_module *m, int32_t (*write)(void *user, const char *text, size_t n), void *user)
{
    enum { CHUNK = 1 << 16 };
    if (!api_module(m)) return RELAX_E_INVALID;
    if (!write) return api_null(m->ctx, "write");
    API_TRY(m->ctx) {
        rx_buf b;
        rx_buf_init(&b, rx_scratch(&m->ctx->heap));
        rx_print_module(&b, m);
        for (size_t at = 0; at < b.n; at += CHUNK)
            if (write(user, b.at + at, RX_MIN((size_t)CHUNK, b.n - at))) break;
        API_RETURN(RELAX_OK);
    }
    return api_failed(m->ctx);
}

uint32_t relax_module_function_count(relax_module *m)
{
    uint32_t n = 0;
    if (api_module(m))
        for (relax_function *f = m->first; f; f = f->next) n++;
    return n;
}

relax_function *relax_module_function(relax_module *m, uint32_t i)
{
    if (!api_module(m)) return NULL;
    relax_function *f = m->first;
    while (f && i--) f = f->next;
    return f;
}

relax_function *relax_module_find(relax_module *m, const char *name)
{
    if (!api_module(m) || !name) return NULL;
    API_TRY(m->ctx) {
        relax_function *f = rx_module_get(m, name);
        API_RETURN(f);
    }
    return NULL;
}

typedef struct calls { relax_function *of, *found; } calls;
static void find_call(void *arg, relax_value *v)
{
    calls *c = arg;
    bool direct = v->kind == RX_V_CALL_TIR || v->kind == RX_V_CALL_TIR_INPLACE || v->kind == RX_V_CALL_DPS;
    if (direct && v->u.callee == c->of) c->found = v->fn;
    for (uint32_t i = 0; i < v->nargs; i++)
        if (v->args[i] && v->args[i]->kind == RX_V_FUNC && v->args[i]->u.callee == c->of) c->found = v->fn;
}

relax_status relax_module_remove(relax_module *m, relax_function *f)
{
    if (!api_module(m)) return RELAX_E_INVALID;
    if (!f) return api_null(m->ctx, "function");
    if (f->mod != m) return api_foreign(m->ctx, "function");
    calls c = { f, NULL };
    for (relax_function *g = m->first; g; g = g->next)
        if (g != f && !g->is_prim) rx_fn_visit(g, find_call, &c);
    if (c.found) return rx_error(m->ctx, RXE_STATE, NULL, NULL, "%s is called by %s", f->name, c.found->name);
    rx_module_remove(m, f);
    return RELAX_OK;
}
