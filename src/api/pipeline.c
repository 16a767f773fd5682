/* pipeline.c: pipelines, host passes, targets, building. */
#include "api/builder.h"
#include "codegen/build.h"
#include "pass/pass.h"

static bool good(const relax_pipeline *p) { return p && p->magic == RX_PIPE_MAGIC; }

relax_pipeline *relax_pipeline_parse(relax_context *ctx, const char *text)
{
    if (!rx_ctx_ok(ctx)) return NULL;
    if (!text) {
        api_null(ctx, "the text of a pipeline");
        return NULL;
    }
    API_TRY(ctx) {
        rx_ops_init(ctx);
        relax_pipeline *p = rx_pipeline_parse(ctx, text);
        API_RETURN(p);
    }
    return NULL;
}

void relax_pipeline_destroy(relax_pipeline *p)
{
    if (good(p)) rx_pipeline_free(p);
}

static relax_status insert(relax_pipeline *p, const char *near, bool after, const char *name, relax_pass_fn fn,
                           void *user)
{
    if (!good(p)) return RELAX_E_INVALID;
    if (!name || !fn) return api_null(p->ctx, name ? "the function of a pass" : "the name of a pass");
    API_TRY(p->ctx) {
        int64_t at = near ? rx_pipeline_find(p, near) : after ? -1 : (int64_t)p->steps.n;
        if (near && at < 0) rx_fail(p->ctx, RXE_UNKNOWN_PASS, NULL, "the pipeline has no pass '%s'", near);
        rx_pass *pass = RX_NEW(&p->arena, rx_pass);
        *pass = (rx_pass){.name = rx_str(p->ctx, name),
                          .keeps = ~(uint32_t)RX_M_GUARDED,
                          .options = "",
                          .doc = "",
                          .host = fn,
                          .user = user};
        rx_step step = { .pass = pass };
        rx_pipeline_insert(p, (uint32_t)(after ? at + 1 : at), &step);
        API_RETURN(RELAX_OK);
    }
    return api_failed(p->ctx);
}

relax_status relax_pipeline_insert_after(relax_pipeline *p, const char *after, const char *name, relax_pass_fn fn,
                                         void *user)
{
    return insert(p, after, true, name, fn, user);
}

relax_status relax_pipeline_insert_before(relax_pipeline *p, const char *before, const char *name, relax_pass_fn fn,
                                          void *user)
{
    return insert(p, before, false, name, fn, user);
}

relax_status relax_pipeline_remove(relax_pipeline *p, const char *name)
{
    if (!good(p)) return RELAX_E_INVALID;
    if (!name) return api_null(p->ctx, "the name of a pass");
    int64_t at = rx_pipeline_find(p, name);
    if (at < 0) return rx_error(p->ctx, RXE_UNKNOWN_PASS, NULL, NULL, "the pipeline has no pass '%s'", name);
    for (uint32_t i = (uint32_t)at + 1; i < p->steps.n; i++) p->steps.at[i - 1] = p->steps.at[i];
    p->steps.n--;
    return RELAX_OK;
}

size_t relax_pipeline_text(relax_pipeline *p, char *out, size_t size)
{
    if (!good(p)) return api_text("", 0, out, size);
    API_TRY(p->ctx) {
        rx_buf b;
        rx_buf_init(&b, rx_scratch(&p->ctx->heap));
        rx_pipeline_text(&b, p);
        size_t n = api_text(b.at ? b.at : "", b.n, out, size);
        API_RETURN(n);
    }
    return api_text("", 0, out, size);
}

relax_status relax_pipeline_print(relax_pipeline *p, const char *before, const char *after,
                                  void (*print)(void *user, const char *pass, int32_t after, const char *text),
                                  void *user)
{
    if (!good(p)) return RELAX_E_INVALID;
    API_TRY(p->ctx) {
        p->print_before = before ? rx_str(p->ctx, before) : NULL;
        p->print_after = after ? rx_str(p->ctx, after) : NULL;
        p->print = print;
        p->print_user = user;
        API_RETURN(RELAX_OK);
    }
    return api_failed(p->ctx);
}

relax_status relax_pipeline_verify_each(relax_pipeline *p, int32_t on)
{
    if (!good(p)) return RELAX_E_INVALID;
    p->verify_each = on != 0;
    return RELAX_OK;
}

relax_status relax_pipeline_set_target(relax_pipeline *p, relax_target *t)
{
    if (!good(p)) return RELAX_E_INVALID;
    if (t && t->ctx != p->ctx) return api_foreign(p->ctx, "the target");
    p->target = t;
    return RELAX_OK;
}

relax_status relax_pipeline_run(relax_pipeline *p, relax_module *m)
{
    if (!good(p)) return RELAX_E_INVALID;
    if (!api_module(m)) return api_null(p->ctx, "the module");
    if (m->ctx != p->ctx) return api_foreign(p->ctx, "the module");
    API_TRY(p->ctx) {
        rx_pipeline_run(p, m, p->target);
        API_RETURN(RELAX_OK);
    }
    return api_failed(p->ctx);
}

uint32_t relax_pipeline_time_count(const relax_pipeline *p) { return good(p) ? p->steps.n : 0; }

relax_status relax_pipeline_time(const relax_pipeline *p, uint32_t i, const char **name, int64_t *nanoseconds)
{
    if (!good(p) || i >= p->steps.n) return RELAX_E_INVALID;
    if (name) *name = p->steps.at[i].pass->name;
    if (nanoseconds) *nanoseconds = p->steps.at[i].ns;
    return RELAX_OK;
}

uint32_t relax_pass_count(relax_context *ctx)
{
    if (!rx_ctx_ok(ctx)) return 0;
    API_TRY(ctx) {
        rx_passes_init(ctx);
        API_RETURN(ctx->passes->all.n);
    }
    return 0;
}

relax_status relax_pass_describe(relax_context *ctx, uint32_t i, const char **name, const char **doc)
{
    if (i >= relax_pass_count(ctx)) return RELAX_E_INVALID;
    if (name) *name = ctx->passes->all.at[i]->name;
    if (doc) *doc = ctx->passes->all.at[i]->doc;
    return RELAX_OK;
}

/* ---- targets, building ---- */
relax_target *relax_target_parse(relax_context *ctx, const char *text)
{
    if (!rx_ctx_ok(ctx)) return NULL;
    if (!text) {
        api_null(ctx, "the text of a target");
        return NULL;
    }
    API_TRY(ctx) {
        relax_target *t = rx_target_parse(ctx, text, strlen(text));
        API_RETURN(t);
    }
    return NULL;
}

const char *relax_target_text(const relax_target *t) { return t ? t->name : NULL; }

relax_status relax_build(relax_module *m, relax_target *t, const relax_build_options *options, relax_executable **out)
{
    relax_build_options o = RELAX_BUILD_OPTIONS_INIT;
    if (out) *out = NULL;
    if (!api_module(m)) return RELAX_E_INVALID;
    if (!out || !t) return api_null(m->ctx, out ? "the target" : "out");
    if (t->ctx != m->ctx) return api_foreign(m->ctx, "the target");
    relax_status st = api_options(m->ctx, options, &o, sizeof o, "relax_build_options");
    if (st != RELAX_OK) return st;
    API_TRY(m->ctx) {
        uint8_t *bytes;
        size_t size;
        rx_build(m, t, o.pipeline, o.opt_level, o.verify != 0, rx_scratch(&m->ctx->heap), &bytes, &size);
        relax_status loaded = relax_executable_load_memory(m->ctx, bytes, size, 0, out);
        API_RETURN(loaded);
    }
    return api_failed(m->ctx);
}
