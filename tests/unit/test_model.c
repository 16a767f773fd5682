/* test_model.c: importing GGUF models (src/import/model*.c), model files and tokenizers behind the API, sampling. The
 * numbers that a model computes are the business of tests/e2e. */
#include "testlib.h"

#include <math.h>
#include <unistd.h>

#include "api/sampler.h"
#include "api/weights.h"
#include "ggufwrite.h"
#include "graph/graph.h"

/* ---- a tiny llama, with one thing wrong on request ---- */
typedef struct spec {
    const char *arch;
    const char *skip_key, *skip_tensor;
    const char *odd_tensor;            /* has one row more */
    const char *typed_tensor; uint32_t type;
    const char *extra_key; uint32_t extra;
    const char *rope_type;
    uint32_t heads, kv_heads, rot, layers;     /* layers 0: as many as there are */
} spec;

enum { WIDTH = 32, FF = 64, VOCAB = 40, LAYERS = 2 };
typedef struct row { char name[64]; uint32_t ndim; uint64_t dims[2]; } row;

static uint32_t tensors_of(const spec *s, row *r)
{
    uint32_t n = 0, hd = WIDTH / 4;
    uint64_t q = s->heads * hd, kv = s->kv_heads * hd;
    r[n++] = (row){ "token_embd.weight", 2, { WIDTH, VOCAB } };
    r[n++] = (row){ "output_norm.weight", 1, { WIDTH } };
    for (int i = 0; i < LAYERS; i++) {
        const row layer[] = {
            { "attn_norm", 1, { WIDTH } },    { "ffn_norm", 1, { WIDTH } },      { "attn_q", 2, { WIDTH, q } },
            { "attn_k", 2, { WIDTH, kv } },   { "attn_v", 2, { WIDTH, kv } },    { "attn_output", 2, { q, WIDTH } },
            { "ffn_gate", 2, { WIDTH, FF } }, { "ffn_up", 2, { WIDTH, FF } },    { "ffn_down", 2, { FF, WIDTH } },
        };
        for (size_t k = 0; k < RX_COUNT(layer); k++) {
            r[n] = layer[k];
            snprintf(r[n++].name, sizeof r->name, "blk.%d.%.20s.weight", i, layer[k].name);
        }
    }
    return n;
}

static void put_u32(gw *w, const spec *s, const char *key, uint32_t v, uint64_t *n)
{
    char full[96];
    snprintf(full, sizeof full, "%s.%s", s->arch, key);
    if (s->skip_key && !strcmp(s->skip_key, key))
        return;
    gw_kv_u32(w, full, v);
    ++*n;
}

static void put_f32(gw *w, const spec *s, const char *key, float v, uint64_t *n)
{
    char full[96];
    snprintf(full, sizeof full, "%s.%s", s->arch, key);
    if (s->skip_key && !strcmp(s->skip_key, key))
        return;
    gw_key(w, full, RX_GGUF_F32);
    gw_float(w, v);
    ++*n;
}

static gw keys_of(const spec *s, uint64_t *n)
{
    gw w = { 0 };
    char full[96];
    gw_kv_str(&w, "general.architecture", s->arch);
    gw_kv_str(&w, "general.name", "tiny");
    gw_kv_u32(&w, "tokenizer.ggml.eos_token_id", 7);
    gw_kv_u32(&w, "tokenizer.ggml.eot_token_id", 3);
    *n = 4;
    put_u32(&w, s, "block_count", s->layers ? s->layers : LAYERS, n);
    put_u32(&w, s, "embedding_length", WIDTH, n);
    put_u32(&w, s, "feed_forward_length", FF, n);
    put_u32(&w, s, "context_length", 128, n);
    put_u32(&w, s, "attention.head_count", s->heads, n);
    put_u32(&w, s, "attention.head_count_kv", s->kv_heads, n);
    put_u32(&w, s, "attention.key_length", WIDTH / 4, n);
    put_u32(&w, s, "attention.value_length", WIDTH / 4, n);
    put_f32(&w, s, "attention.layer_norm_rms_epsilon", 1e-5f, n);
    if (s->rot)
        put_u32(&w, s, "rope.dimension_count", s->rot, n);
    if (s->extra_key)
        put_u32(&w, s, s->extra_key, s->extra, n);
    if (s->rope_type) {
        snprintf(full, sizeof full, "%s.rope.scaling.type", s->arch);
        gw_kv_str(&w, full, s->rope_type);
        ++*n;
    }
    return w;
}

static gw model_of(const spec *s)
{
    row r[64];
    uint32_t n = tensors_of(s, r), kept = 0;
    uint64_t nkeys, at = 0;
    gw keys = keys_of(s, &nkeys), w = { 0 }, infos = { 0 };
    for (uint32_t i = 0; i < n; i++) {
        uint32_t type = s->typed_tensor && !strcmp(s->typed_tensor, r[i].name) ? s->type : RX_GGML_F32;
        if (s->skip_tensor && !strcmp(s->skip_tensor, r[i].name))
            continue;
        if (s->odd_tensor && !strcmp(s->odd_tensor, r[i].name))
            r[i].dims[r[i].ndim - 1]++;
        const rx_ggml_type *t = rx_ggml_type_info(type);
        uint64_t bytes = r[i].dims[0] / t->block_values * t->block_bytes * (r[i].ndim == 2 ? r[i].dims[1] : 1);
        gw_tensor(&infos, r[i].name, r[i].ndim, r[i].dims, type, at);
        at = (at + bytes + 31) & ~(uint64_t)31;
        kept++;
    }
    gw_header(&w, 3, kept, nkeys);
    gw_raw(&w, keys.at, keys.n);
    gw_raw(&w, infos.at, infos.n);
    gw_pad(&w, 32);
    for (uint64_t i = 0; i < at; i++)
        gw_raw(&w, "", 1);
    free(keys.at);
    free(infos.at);
    return w;
}

static spec good(void) { return (spec){ .arch = "llama", .heads = 4, .kv_heads = 2 }; }

/* imports; the result, or the error */
static relax_module *import(relax_context *ctx, const spec *s, bool exact, int64_t context, int *error)
{
    gw w = model_of(s);
    relax_module *volatile m = NULL;
    rx_frame f;
    if (RX_ENTER(&ctx->heap, &f)) {
        rx_gguf *g = rx_gguf_open(ctx, rx_scratch(&ctx->heap), w.at, w.n);
        m = rx_model_import(ctx, g, exact, context);
        rx_leave(&ctx->heap, &f);
    }
    *error = m ? 0 : tl_last_error(ctx);
    free(w.at);
    return m;
}

static const char *type_text(relax_context *ctx, rx_ty t, char *out, size_t n)
{
    TL_TRY(ctx)
    rx_buf b;
    rx_buf_init(&b, rx_scratch(&ctx->heap));
    rx_print_type(&b, t);
    snprintf(out, n, "%s", b.at);
    TL_END(ctx)
    return out;
}

static void test_functions(void **state)
{
    (void)state;
    tl_heap h;
    relax_context *ctx = tl_context(&h);
    int error;
    char text[128];
    spec s = good();
    s.typed_tensor = "blk.0.ffn_up.weight";
    s.type = RX_GGML_Q8_0;
    relax_module *m = import(ctx, &s, false, 64, &error);
    assert_non_null(m);
    assert_int_equal(rx_module_verify(m), 0);
    relax_function *pre = rx_module_get(m, "prefill"), *dec = rx_module_get(m, "decode"),
                   *emb = rx_module_get(m, "embed");
    assert_true(pre && dec && emb);
    assert_int_equal(rx_attr_int(&pre->attrs, "num_inputs", 0), 2 + 2 * LAYERS);
    assert_int_equal(rx_attr_int(&emb->attrs, "num_inputs", 0), 1);
    assert_int_equal(pre->nparams, 2 + 2 * LAYERS + 2 + 9 * LAYERS);
    assert_string_equal(type_text(ctx, pre->params[0]->type, text, sizeof text), "Tensor((1, n), i32)");
    assert_string_equal(type_text(ctx, dec->params[0]->type, text, sizeof text), "Tensor((1, 1), i32)");
    assert_string_equal(type_text(ctx, pre->params[1]->type, text, sizeof text), "Prim(i64, p)");
    assert_string_equal(type_text(ctx, pre->params[2]->type, text, sizeof text), "Tensor((c, 2, 8), f16)");
    assert_string_equal(type_text(ctx, pre->ret, text, sizeof text), "Tensor((1, 40), f32)");
    assert_string_equal(type_text(ctx, emb->ret, text, sizeof text), "Tensor((n, 32), f32)");
    for (uint32_t i = 0; i < pre->nparams; i++)
        if (!strcmp(pre->params[i]->name, "blk.0.ffn_up.weight"))
            assert_string_equal(type_text(ctx, pre->params[i]->type, text, sizeof text), "Tensor((64, 34), u8)");
    rx_sym *n = rx_sym_of(rx_map_get(&pre->symtab, RX_KEY(rx_str(ctx, "n"))));
    assert_true(n->lo == 1 && n->hi == 64);
    assert_string_equal(rx_attr_str(&dec->attrs, "meta.model.architecture", ""), "llama");
    assert_string_equal(rx_attr_str(&dec->attrs, "meta.model.context", ""), "64");
    assert_string_equal(rx_attr_str(&dec->attrs, "meta.model.vocab", ""), "40");
    assert_string_equal(rx_attr_str(&dec->attrs, "meta.model.end_tokens", ""), "7,3");
    rx_module_free(m);
    m = import(ctx, &s, true, 0, &error);
    assert_non_null(m);
    pre = rx_module_get(m, "prefill");
    assert_string_equal(type_text(ctx, pre->params[2]->type, text, sizeof text), "Tensor((c, 2, 8), f32)");
    assert_string_equal(rx_attr_str(&rx_module_get(m, "decode")->attrs, "meta.model.context", ""), "128");
    rx_module_free(m);
    tl_done(&h, ctx);
}

/* every fault is an error that names the key or tensor */
static void test_faults(void **state)
{
    (void)state;
    static const struct { spec s; int error; const char *names;
    } rows[] = {
        {{.arch = "mamba", .heads = 4, .kv_heads = 2}, RXE_UNSUPPORTED, "'mamba'"},
        {{.arch = "llama", .heads = 4, .kv_heads = 2, .skip_key = "block_count"}, RXE_NOT_FOUND, "llama.block_count"},
        {{.arch = "llama", .heads = 4, .kv_heads = 2, .skip_key = "context_length"},
         RXE_NOT_FOUND,
         "llama.context_length"},
        {{.arch = "llama", .heads = 4, .kv_heads = 2, .skip_key = "attention.layer_norm_rms_epsilon"},
         RXE_NOT_FOUND,
         "llama.attention.layer_norm_rms_epsilon"},
        {{.arch = "llama", .heads = 4, .kv_heads = 3}, RXE_FILE_CORRUPT, "3 key-value heads"},
        {{.arch = "llama", .heads = 0, .kv_heads = 1}, RXE_FILE_CORRUPT, "llama.attention.head_count"},
        {{.arch = "llama", .heads = 4, .kv_heads = 2, .rot = 3}, RXE_FILE_CORRUPT, "llama.rope.dimension_count"},
        {{.arch = "llama", .heads = 4, .kv_heads = 2, .rot = 10}, RXE_FILE_CORRUPT, "llama.rope.dimension_count"},
        {{.arch = "llama", .heads = 4, .kv_heads = 2, .extra_key = "expert_count", .extra = 8},
         RXE_UNSUPPORTED,
         "llama.expert_count"},
        {{.arch = "llama", .heads = 4, .kv_heads = 2, .rope_type = "yarn"}, RXE_UNSUPPORTED, "'yarn'"},
        {{.arch = "llama", .heads = 4, .kv_heads = 2, .skip_tensor = "blk.1.attn_k.weight"},
         RXE_NO_WEIGHT,
         "blk.1.attn_k.weight"},
        {{.arch = "llama", .heads = 4, .kv_heads = 2, .skip_tensor = "token_embd.weight"},
         RXE_NO_WEIGHT,
         "token_embd.weight"},
        {{.arch = "llama", .heads = 4, .kv_heads = 2, .odd_tensor = "blk.0.ffn_gate.weight"},
         RXE_SHAPE,
         "'blk.0.ffn_gate.weight' is of shape (65, 32), but 'llama' with these sizes needs (64, 32)"},
        {{.arch = "llama", .heads = 4, .kv_heads = 2, .odd_tensor = "output_norm.weight"},
         RXE_SHAPE,
         "output_norm.weight"},
        {{.arch = "llama", .heads = 4, .kv_heads = 2, .typed_tensor = "blk.0.ffn_gate.weight", .type = RX_GGML_Q8_1},
         RXE_UNSUPPORTED,
         "'blk.0.ffn_gate.weight' is of type Q8_1"},
        {{.arch = "llama", .heads = 4, .kv_heads = 2, .typed_tensor = "blk.0.attn_norm.weight", .type = RX_GGML_Q8_0},
         RXE_UNSUPPORTED,
         "'blk.0.attn_norm.weight' is of type Q8_0"},
        {{.arch = "qwen2", .heads = 4, .kv_heads = 2}, RXE_NO_WEIGHT, "blk.0.attn_q.bias"},
        {{.arch = "qwen3", .heads = 4, .kv_heads = 2}, RXE_NO_WEIGHT, "blk.0.attn_q_norm.weight"},
        {{.arch = "phi3", .heads = 4, .kv_heads = 2}, RXE_NO_WEIGHT, "blk.0.attn_qkv.weight"},
    };
    tl_heap h;
    relax_context *ctx = tl_context(&h);
    for (size_t i = 0; i < RX_COUNT(rows); i++) {
        int error;
        assert_null(import(ctx, &rows[i].s, false, 0, &error));
        const rx_diag *d = rx_diag_at(ctx, rx_diag_count(ctx) - 1);
        if (error != rows[i].error || !strstr(d->message, rows[i].names))
            fail_msg("row %zu: RX%d %s", i, error, d->message);
        rx_diag_clear(ctx);
    }
    tl_done(&h, ctx);
}

static void test_context_option(void **state)
{
    (void)state;
    tl_heap h;
    relax_context *ctx = tl_context(&h);
    spec s = good();
    int error;
    assert_null(import(ctx, &s, false, -1, &error));
    assert_int_equal(error, RXE_BAD_VALUE);
    assert_null(import(ctx, &s, false, INT64_MAX, &error));
    assert_int_equal(error, RXE_BAD_VALUE);
    relax_module *m = import(ctx, &s, false, 1, &error);
    assert_non_null(m);
    rx_module_free(m);
    tl_done(&h, ctx);
}

/* a failed allocation anywhere ends the import and leaves nothing behind */
static void test_no_memory(void **state)
{
    (void)state;
    spec s = good();
    for (int64_t n = 1, done = 0; !done; n += 1 + n / 8) {
        tl_heap h;
        relax_context *ctx = tl_context(&h);
        int error;
        tl_fail(&h, n, false);
        relax_module *m = import(ctx, &s, false, 0, &error);
        done = h.calls < n;
        h.fail_at = 0;
        if (m)
            rx_module_free(m);
        else
            assert_int_equal(error, RXE_OOM);
        tl_done(&h, ctx);
    }
}

/* ---- model files ---- */

static void write_file(char *path, const void *p, size_t n)
{
    strcpy(path, "/tmp/relax-test-model-XXXXXX");
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, p, n), (ssize_t)n);
    close(fd);
}

static void test_weights(void **state)
{
    (void)state;
    tl_heap h;
    relax_context *ctx = tl_context(&h);
    char path[64], text[8192];
    spec s = good();
    s.typed_tensor = "blk.0.ffn_up.weight";
    s.type = RX_GGML_Q8_0;
    gw g = model_of(&s);
    write_file(path, g.at, g.n);
    relax_weights *w;
    assert_int_equal(relax_weights_open(ctx, path, &w), RELAX_OK);
    assert_int_equal(relax_weights_count(w), 2 + 9 * LAYERS);
    const char *name, *type;
    DLTensor t;
    bool found = false;
    for (uint32_t i = 0; i < relax_weights_count(w); i++) {
        assert_int_equal(relax_weights_get(w, i, &name, &type, &t), RELAX_OK);
        if (strcmp(name, "blk.0.ffn_up.weight"))
            continue;
        found = true;
        assert_string_equal(type, "q8_0");
        assert_true(t.ndim == 2 && t.shape[0] == FF && t.shape[1] == 34 && t.dtype.code == kDLUInt &&
                    t.dtype.bits == 8);
    }
    assert_true(found);
    assert_int_equal(relax_weights_get(w, 1000, &name, &type, &t), RELAX_E_NOT_FOUND);
    assert_int_equal(relax_weights_meta(w, "llama.block_count", text, sizeof text), RELAX_OK);
    assert_string_equal(text, "2");
    assert_int_equal(relax_weights_meta(w, "general.name", text, sizeof text), RELAX_OK);
    assert_string_equal(text, "tiny");
    assert_int_equal(relax_weights_meta(w, "general.name", text, 3), RELAX_E_LIMIT);
    assert_int_equal(relax_weights_meta(w, "no.such", text, sizeof text), RELAX_E_NOT_FOUND);
    size_t n = relax_weights_text(w, NULL, 0);
    assert_true(n > 100 && n < sizeof text);
    assert_int_equal(relax_weights_text(w, text, sizeof text), n);
    assert_non_null(strstr(text, "  llama.attention.head_count = 4\n"));
    assert_non_null(strstr(text, "  blk.0.ffn_up.weight: q8_0 (64, 32), 2176 bytes\n"));
    relax_module *m = relax_model_import(ctx, w, NULL);
    assert_non_null(m);
    relax_module_destroy(m);
    relax_tokenizer *tok;
    assert_int_equal(relax_tokenizer_create(w, &tok), RELAX_E_UNSUPPORTED);        /* the file names none */
    assert_null(tok);
    relax_weights_close(w);
    unlink(path);
    free(g.at);
    tl_done(&h, ctx);
}

static void test_bad_files(void **state)
{
    (void)state;
    tl_heap h;
    relax_context *ctx = tl_context(&h);
    char path[64];
    relax_weights *w = (relax_weights *)8;
    assert_int_equal(relax_weights_open(ctx, "/no/such/file", &w), RELAX_E_IO);
    assert_null(w);
    assert_int_equal(relax_weights_open(ctx, NULL, &w), RELAX_E_INVALID);
    assert_int_equal(relax_weights_open(NULL, "x", &w), RELAX_E_INVALID);
    static const char *const texts[] = { "", "GG", "GGUF", "hello, this is no model file at all" };
    for (size_t i = 0; i < RX_COUNT(texts); i++) {
        write_file(path, texts[i], strlen(texts[i]));
        assert_int_equal(relax_weights_open(ctx, path, &w), RELAX_E_FORMAT);
        assert_null(w);
        unlink(path);
    }
    relax_weights_close(NULL);
    assert_int_equal(relax_weights_count(NULL), 0);
    assert_null(relax_model_import(ctx, NULL, NULL));
    relax_tokenizer_destroy(NULL);
    relax_generator_destroy(NULL);
    assert_int_equal(relax_generator_feed(NULL, NULL, 0), RELAX_E_INVALID);
    assert_int_equal(relax_tokenizer_encode(NULL, "", 0, 0, 0, NULL, 0), -1);
    tl_done(&h, ctx);
}

static void test_safetensors(void **state)
{
    (void)state;
    static const char header[] =
        "{\"__metadata__\":{\"k\":\"v\"},\"w\":{\"dtype\":\"BF16\",\"shape\":[2,2],\"data_offsets\":[0,8]}}";
    tl_heap h;
    relax_context *ctx = tl_context(&h);
    char path[64], text[64];
    gw g = { 0 };
    gw_uint(&g, sizeof header - 1, 8);
    gw_raw(&g, header, sizeof header - 1);
    gw_uint(&g, 0x3F80, 8);
    write_file(path, g.at, g.n);
    relax_weights *w;
    assert_int_equal(relax_weights_open(ctx, path, &w), RELAX_OK);
    const char *name, *type;
    DLTensor t;
    assert_int_equal(relax_weights_get(w, 0, &name, &type, &t), RELAX_OK);
    assert_string_equal(name, "w");
    assert_string_equal(type, "bf16");
    assert_true(t.dtype.code == kDLBfloat && t.dtype.bits == 16 && t.ndim == 2);
    assert_int_equal(relax_weights_meta(w, "k", text, sizeof text), RELAX_OK);
    assert_string_equal(text, "v");
    assert_null(relax_model_import(ctx, w, NULL));
    relax_tokenizer *tok;
    assert_int_equal(relax_tokenizer_create(w, &tok), RELAX_E_UNSUPPORTED);
    relax_weights_close(w);
    unlink(path);
    free(g.at);
    tl_done(&h, ctx);
}

/* ---- sampling ---- */

enum { V = 12 };
typedef struct bench { _Alignas(64) char memory[1024]; api_sampler p; } bench;

static void setup(bench *b, relax_sampling s)
{
    assert_true(API_SAMPLER_BYTES(V) <= sizeof b->memory);
    memset(b->memory, 0, sizeof b->memory);
    api_sampler_init(&b->p, V, b->memory);
    assert_int_equal(api_sampler_set(NULL, &b->p, &s), RELAX_OK);
}

/* how often each token comes in n draws */
static void count(bench *b, const float *logits, const int32_t *history, int64_t nh, int n, int *counts)
{
    memset(counts, 0, V * sizeof *counts);
    for (int i = 0; i < n; i++)
        counts[api_sample(&b->p, logits, history, nh)]++;
}

static void test_greedy(void **state)
{
    (void)state;
    bench b;
    relax_sampling s = RELAX_SAMPLING_INIT;
    setup(&b, s);
    float l[V] = { 0, 3, 1, 3, 2, NAN, -1 };
    assert_int_equal(api_sample(&b.p, l, NULL, 0), 1);          /* first of equals; NaN never */
    s.repetition_penalty = 2;
    setup(&b, s);
    int32_t seen[] = { 1, 1, 9 };
    assert_int_equal(api_sample(&b.p, l, seen, 3), 3);
    assert_int_equal(api_sample(&b.p, l, seen, 3), 3);          /* the marks are gone after a call */
    assert_int_equal(api_sample(&b.p, l, NULL, 0), 1);
    s.penalty_window = 1;                                       /* 1 is out of sight */
    setup(&b, s);
    assert_int_equal(api_sample(&b.p, l, seen, 3), 1);
    float negative[V] = { -1, -1.5f };
    for (int i = 2; i < V; i++)
        negative[i] = -9;
    int32_t zero[] = { 0 };
    assert_int_equal(api_sample(&b.p, negative, zero, 1), 1);   /* a penalty makes negative logits smaller */
    float none[V];
    for (int i = 0; i < V; i++)
        none[i] = -INFINITY;
    s.temperature = 1;
    setup(&b, s);
    assert_int_equal(api_sample(&b.p, none, NULL, 0), 0);
}

static void test_distribution(void **state)
{
    (void)state;
    bench b;
    int c[V], n = 20000;
    float l[V];
    double sum = 0;
    for (int i = 0; i < V; i++)
        sum += exp(l[i] = (float)(i % 5) * 0.7f);
    relax_sampling s = RELAX_SAMPLING_INIT;
    s.temperature = 1;
    s.seed = 42;
    setup(&b, s);
    count(&b, l, NULL, 0, n, c);
    for (int i = 0; i < V; i++)
        assert_true(fabs(c[i] - n * exp(l[i]) / sum) < 5 * sqrt(n * exp(l[i]) / sum));
    s.top_k = 3;                       /* ids 4, 9 (2.8) and 3 (2.1, first of two) */
    setup(&b, s);
    count(&b, l, NULL, 0, 1000, c);
    assert_int_equal(c[4] + c[9] + c[3], 1000);
    assert_true(c[3] > 0 && c[3] < c[4]);
    s.top_k = 0;
    s.top_p = 0.2f;                    /* the best alone has exp(2.8) / sum = 0.248 */
    setup(&b, s);
    count(&b, l, NULL, 0, 100, c);
    assert_int_equal(c[4], 100);
    s.top_p = 0.45f;                   /* both: 0.495 */
    setup(&b, s);
    count(&b, l, NULL, 0, 1000, c);
    assert_int_equal(c[4] + c[9], 1000);
    s.top_p = 1;
    s.min_p = 0.4f;                    /* exp(-0.7) = 0.497 of the best stays, exp(-1.4) does not */
    setup(&b, s);
    count(&b, l, NULL, 0, 2000, c);
    assert_int_equal(c[4] + c[9] + c[3] + c[8], 2000);
    assert_true(c[3] > 0 && c[8] > 0);
    s.top_k = 4;
    s.min_p = 0;
    s.temperature = 0.01f;
    setup(&b, s);
    count(&b, l, NULL, 0, 1000, c);
    assert_int_equal(c[4] + c[9], 1000);
}

static void test_seed(void **state)
{
    (void)state;
    bench a, b;
    float l[V] = { 0 };
    relax_sampling s = RELAX_SAMPLING_INIT;
    s.temperature = 1;
    s.seed = 1;
    setup(&a, s);
    setup(&b, s);
    int32_t first[64];
    int differ = 0;
    for (int i = 0; i < 64; i++) {
        first[i] = api_sample(&a.p, l, NULL, 0);
        assert_int_equal(first[i], api_sample(&b.p, l, NULL, 0));
    }
    api_sampler_restart(&a.p);
    assert_int_equal(api_sample(&a.p, l, NULL, 0), first[0]);
    s.seed = 2;
    setup(&b, s);
    for (int i = 0; i < 64; i++)
        differ += first[i] != api_sample(&b.p, l, NULL, 0);
    assert_true(differ > 32);
}

static void test_options(void **state)
{
    (void)state;
    tl_heap h;
    relax_context *ctx = tl_context(&h);
    bench b;
    api_sampler_init(&b.p, V, b.memory);
    relax_sampling ok = RELAX_SAMPLING_INIT;
    for (int i = 0; i < 9; i++) {
        relax_sampling s = ok;
        switch (i) {
        case 0: s.temperature = -1; break;
        case 1: s.temperature = NAN; break;
        case 2: s.top_k = -1; break;
        case 3: s.top_p = 0; break;
        case 4: s.top_p = 1.5f; break;
        case 5: s.min_p = -0.1f; break;
        case 6: s.repetition_penalty = 0; break;
        case 7: s.repetition_penalty = NAN; break;
        case 8: s.penalty_window = -1; break;
        }
        assert_int_equal(api_sampler_set(ctx, &b.p, &s), RELAX_E_INVALID);
        assert_int_equal(tl_last_error(ctx), RXE_BAD_VALUE);
    }
    ok.struct_size = 2;
    assert_int_equal(api_sampler_set(ctx, &b.p, &ok), RELAX_E_INCOMPATIBLE);
    tl_done(&h, ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_functions),  cmocka_unit_test(test_faults),       cmocka_unit_test(test_context_option),
        cmocka_unit_test(test_no_memory),  cmocka_unit_test(test_weights),      cmocka_unit_test(test_bad_files),
        cmocka_unit_test(test_safetensors), cmocka_unit_test(test_greedy),      cmocka_unit_test(test_distribution),
        cmocka_unit_test(test_seed),       cmocka_unit_test(test_options),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
