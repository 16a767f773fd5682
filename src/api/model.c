/* model.c: from the weights of a GGUF model to its module. */
#include "api/weights.h"
#include "graph/graph.h"

relax_module *relax_model_import(relax_context *ctx, const relax_weights *w, const relax_model_options *options)
{
    if (!rx_ctx_ok(ctx))
        return NULL;
    relax_model_options o = RELAX_MODEL_OPTIONS_INIT;
    if (api_options(ctx, options, &o, sizeof o, "relax_model_options") != RELAX_OK)
        return NULL;
    if (!api_weights(w) || w->ctx != ctx) {
        if (api_weights(w))
            api_foreign(ctx, "weights");
        else
            api_null(ctx, "weights");
        return NULL;
    }
    API_TRY(ctx) {
        rx_where at = { .file = w->path };
        if (!w->gguf)
            rx_fail_hint(ctx, RXE_UNSUPPORTED, &at, "convert it to GGUF",
                         "safetensors files hold no description of a model");
        relax_module *m = rx_model_import(ctx, w->gguf, o.exact != 0, o.context);
        rx_buf b;
        rx_buf_init(&b, rx_scratch(&ctx->heap));
        api_weights_fingerprint(w, &b);
        rx_attr mark = { .key = rx_str(ctx, "meta.gguf.fingerprint"), .kind = RX_A_STR, .u.s = rx_str(ctx, b.at) };
        rx_attrs_set(ctx, &m->arena, &rx_module_get(m, "decode")->attrs, &mark);
        API_RETURN(m);
    }
    return NULL;
}
