/* model_params.c: reads and checks the numbers of a GGUF model: architecture, sizes, norms, rope, attention.
 *
 * The keys are those that llama.cpp's converter writes, under the name of the architecture ("qwen2.block_count"). What
 * a converter leaves out has the value that the architecture defines. All numbers come from an untrusted file: sizes
 * are positive and bounded, so that products of two of them fit int64, and so is the number of layers, which bounds
 * the module. */
#include <math.h>

#include "import/model.h"

static const rx_family archs[] = {
#define ARCH(id, text, act, style, pattern, base, traits) { text, RX_OP_##act, #style, pattern, base, traits },
#include "import/arch.def"
#undef ARCH
};

enum { DEFAULT_CONTEXT = 4096, MAX_SIZE = 1 << 28, MAX_CONTEXT = 1 << 24, MAX_LAYERS = 512 };

typedef struct reader { relax_context *ctx; const rx_gguf *g; const char *arch; } reader;

static const char *key(const reader *r, const char *name) { return rx_strf(r->ctx, "%s.%s", r->arch, name); }

static const rx_family *find_arch(relax_context *ctx, const rx_gguf *g)
{
    rx_view name = rx_gguf_need_str(g, "general.architecture");
    for (size_t i = 0; i < RX_COUNT(archs); i++)
        if (rx_view_is(name, archs[i].name))
            return &archs[i];
    rx_buf b;
    rx_buf_init(&b, rx_scratch(&ctx->heap));
    for (size_t i = 0; i < RX_COUNT(archs); i++)
        rx_putf(&b, "%s%s", i ? ", " : "", archs[i].name);
    rx_fail_hint(ctx, RXE_UNSUPPORTED, NULL, rx_strf(ctx, "known architectures: %s", b.at),
                 "general.architecture: '%.*s' is not known", (int)RX_MIN(name.n, 64), name.at);
}

static void check_size(const reader *r, const char *name, int64_t v, int64_t hi)
{
    if (v < 1 || v > hi)
        rx_fail_hint(r->ctx, RXE_FILE_CORRUPT, NULL, "convert the model again",
                     "GGUF: '%s' is %lld, which is not within 1..%lld", name, (long long)v, (long long)hi);
}

static void not_per_layer(const reader *r, const char *k)
{
    const rx_gguf_kv *kv = rx_gguf_find(r->g, k);
    if (kv && kv->kind == RX_GGUF_ARRAY)
        rx_fail_hint(r->ctx, RXE_UNSUPPORTED, NULL, "models whose layers differ in size cannot be imported",
                     "GGUF: '%s' has a value for each layer", k);
}

static int64_t need_size(const reader *r, const char *name)
{
    const char *k = key(r, name);
    not_per_layer(r, k);
    int64_t v = rx_gguf_need_int(r->g, k);
    check_size(r, k, v, MAX_SIZE);
    return v;
}

static int64_t get_size(const reader *r, const char *name, int64_t def)
{
    const char *k = key(r, name);
    not_per_layer(r, k);
    int64_t v = rx_gguf_get_int(r->g, k, def);
    check_size(r, k, v, MAX_SIZE);
    return v;
}

static double get_real(const reader *r, const char *name, double def, double lo, double hi)
{
    const char *k = key(r, name);
    double v = rx_gguf_get_float(r->g, k, def);
    if (!(v >= lo && v <= hi))
        rx_fail_hint(r->ctx, RXE_FILE_CORRUPT, NULL, "convert the model again",
                     "GGUF: the value of '%s' is out of range", k);
    return v;
}

static void read_attention(const reader *r, rx_hparams *h)
{
    h->heads = need_size(r, "attention.head_count");
    h->kv_heads = get_size(r, "attention.head_count_kv", h->heads);
    if (h->heads % h->kv_heads)
        rx_fail(r->ctx, RXE_FILE_CORRUPT, NULL, "GGUF: %lld heads are no multiple of %lld key-value heads",
                (long long)h->heads, (long long)h->kv_heads);
    int64_t dim = RX_MAX(h->width / h->heads, 1);
    h->key_dim = get_size(r, "attention.key_length", dim);
    h->value_dim = get_size(r, "attention.value_length", dim);
    /* the largest Gemma 2 and 3 scale by the width of the model instead of the heads' */
    bool big = (!strcmp(r->arch, "gemma2") && h->layers == 46) || (!strcmp(r->arch, "gemma3") && h->layers == 62);
    h->scale = 1 / sqrt(big ? (double)h->width / (double)h->heads : (double)h->key_dim);
    h->scale = get_real(r, "attention.scale", h->scale, 1e-9, 1e9);
    bool gemma2 = !strcmp(r->arch, "gemma2");
    h->attn_cap = get_real(r, "attn_logit_softcapping", gemma2 ? 50 : 0, 0, 1e9);
    h->logit_cap = get_real(r, "final_logit_softcapping", gemma2 ? 30 : 0, 0, 1e9);
    if (!h->arch->pattern)
        return;
    h->window = rx_gguf_get_int(r->g, key(r, "attention.sliding_window"), gemma2 ? 4096 : 0);
    h->window = RX_MAX(h->window, 0);
    h->pattern = h->arch->pattern;
    const rx_gguf_kv *kv = rx_gguf_find(r->g, key(r, "attention.sliding_window_pattern"));
    if (kv)
        h->pattern = get_size(r, "attention.sliding_window_pattern", h->pattern);
}

static void read_rope(const reader *r, rx_hparams *h)
{
    h->rot = get_size(r, "rope.dimension_count", h->key_dim);
    if (h->rot % 2 || h->rot > h->key_dim)
        rx_fail(r->ctx, RXE_FILE_CORRUPT, NULL, "GGUF: '%s' is %lld: not even, or more than the head width %lld",
                key(r, "rope.dimension_count"), (long long)h->rot, (long long)h->key_dim);
    h->rope_base = get_real(r, "rope.freq_base", 10000, 1e-3, 1e18);
    h->local_base =
        get_real(r, "rope.freq_base_swa", h->arch->local_base > 0 ? h->arch->local_base : h->rope_base, 1e-3, 1e18);
    h->attn_factor = get_real(r, "rope.scaling.attn_factor", 1, 1e-9, 1e9);
    h->freq_scale = 1 / get_real(r, "rope.scale_linear", 1, 1e-9, 1e9);
    rx_view type = rx_gguf_get_str(r->g, key(r, "rope.scaling.type"));
    if (rx_view_is(type, "linear"))
        h->freq_scale = 1 / get_real(r, "rope.scaling.factor", 1, 1e-9, 1e9);
    else if (type.n && !rx_view_is(type, "none") && !rx_view_is(type, "longrope"))
        rx_fail_hint(r->ctx, RXE_UNSUPPORTED, NULL,
                     "known: none, linear, longrope, and factors in the tensor rope_freqs.weight",
                     "GGUF: '%s' is '%.*s', which is not supported", key(r, "rope.scaling.type"),
                     (int)RX_MIN(type.n, 64), type.at);
    h->local_scale = h->arch->local_base > 0 ? 1 : h->freq_scale;
}

/* Long factors serve a context beyond the one that the model was first trained with. */
static void choose_factors(const reader *r, rx_hparams *h)
{
    int64_t original = rx_gguf_get_int(r->g, key(r, "rope.scaling.original_context_length"), h->trained);
    const char *longrope = h->context > original ? "rope_factors_long.weight" : "rope_factors_short.weight";
    h->rope_factors = rx_gguf_find_tensor(r->g, "rope_freqs.weight") ? "rope_freqs.weight"
                      : rx_gguf_find_tensor(r->g, longrope)           ? longrope
                                                                      : NULL;
}

static void refuse_experts(const reader *r)
{
    if (rx_gguf_get_int(r->g, key(r, "expert_count"), 0) > 0)
        rx_fail_hint(r->ctx, RXE_UNSUPPORTED, NULL, "use a dense model of the family",
                     "GGUF: '%s': models with experts cannot be imported", key(r, "expert_count"));
}

bool rx_layer_is_local(const rx_hparams *h, int64_t layer)
{
    if (!h->window)
        return false;
    return h->pattern == 1 || layer % h->pattern < h->pattern - 1;
}

rx_hparams rx_model_params(relax_context *ctx, const rx_gguf *g, bool exact, int64_t context)
{
    rx_hparams h = { .arch = find_arch(ctx, g), .exact = exact };
    reader r = { ctx, g, h.arch->name };
    refuse_experts(&r);
    h.layers = need_size(&r, "block_count");
    check_size(&r, key(&r, "block_count"), h.layers, MAX_LAYERS);
    h.width = need_size(&r, "embedding_length");
    h.ff = need_size(&r, "feed_forward_length");
    h.trained = need_size(&r, "context_length");
    read_attention(&r, &h);
    read_rope(&r, &h);
    bool ln = h.arch->traits & RX_AT_LAYER_NORM;
    const char *eps = ln ? "attention.layer_norm_epsilon" : "attention.layer_norm_rms_epsilon";
    rx_gguf_need_float(g, key(&r, eps));
    h.epsilon = get_real(&r, eps, 0, 0, 1);
    h.parallel = (h.arch->traits & RX_AT_PARALLEL) && rx_gguf_get_bool(g, key(&r, "use_parallel_residual"), true);
    h.context = context > 0 ? context : RX_MIN(h.trained, (int64_t)DEFAULT_CONTEXT);
    if (context < 0 || h.context > MAX_CONTEXT)
        rx_fail_hint(ctx, RXE_BAD_VALUE, NULL, "0 takes the model's own, at most 4096",
                     "a context of %lld tokens is not within 1..%d", (long long)context, (int)MAX_CONTEXT);
    choose_factors(&r, &h);
    return h;
}
