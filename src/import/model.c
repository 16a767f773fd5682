/* model.c: a GGUF decoder model as a module: prefill, decode and embed, built from the traits of its architecture.
 *
 * Input: an opened GGUF file. Output: a module with three functions of one set of weights:
 *   prefill(tokens (1, n) i32, past: Prim(i64, p), k_0 (c, kv heads, head) …, v_0 …; weights) -> (1, vocab) f32
 *                         logits of the last token; the caches hold p positions before and p + n after
 *   decode                the same with n = 1
 *   embed(tokens (1, n) i32; weights) -> (n, width) f32: hidden states after the last norm, without a cache
 * Parameters after the attribute num_inputs are weights, called as in the file: bytes (rows, row bytes) u8 for block
 * formats, else tensors. No weight is read here. What a host must know to run them stands in string attributes
 * "meta.model.…" of decode.
 *
 * One layer: x += norm?(attention(norm(x))); x += norm?(feed_forward(norm(x))), side by side in parallel models. The
 * residual x is f32 always: Gemma's exceeds the range of f16. Traps: keys are rotated before they enter the cache; a
 * window counts the query itself; Gemma's norms hold weight + 1 already. */
#include <math.h>

#include "import/model.h"

typedef relax_value V;
typedef struct maker {
    relax_context *ctx;
    const rx_gguf *g;
    const rx_hparams *h;
    relax_module *m;
    relax_function *f;
    rx_gb gb;
    rx_ex n;                           /* tokens of this call */
    V *past, *first;                   /* number of tokens in the cache (NULL: none), position of the first token */
    V **k, **v;                        /* caches by layer */
    rx_map weights;                    /* interned name -> parameter of f */
} maker;

/* ---- emitting ---- */

static rx_attr attr_int(maker *b, const char *key, int64_t v)
{
    return (rx_attr){ .key = rx_str(b->ctx, key), .kind = RX_A_INT, .u.i = v };
}

static rx_attr attr_bool(maker *b, const char *key, bool v)
{
    return (rx_attr){ .key = rx_str(b->ctx, key), .kind = RX_A_BOOL, .u.i = v };
}

static rx_attr attr_float(maker *b, const char *key, double v)
{
    return (rx_attr){ .key = rx_str(b->ctx, key), .kind = RX_A_FLOAT, .u.f = v };
}

static rx_attr attr_str(maker *b, const char *key, const char *v)
{
    return (rx_attr){ .key = rx_str(b->ctx, key), .kind = RX_A_STR, .u.s = rx_str(b->ctx, v) };
}

static rx_attr attr_dtype(maker *b, const char *key, relax_dtype v)
{
    return (rx_attr){ .key = rx_str(b->ctx, key), .kind = RX_A_DTYPE, .u.dtype = v };
}

static rx_attr attr_ints(maker *b, const char *key, const int64_t *v, uint32_t n)
{
    rx_attr a = { .key = rx_str(b->ctx, key), .kind = RX_A_INTS };
    a.u.ints.at = rx_arena_dup(&b->m->arena, v, n * sizeof *v);
    a.u.ints.n = n;
    return a;
}

static rx_attr attr_exprs1(maker *b, const char *key, rx_ex e)
{
    rx_attr a = { .key = rx_str(b->ctx, key), .kind = RX_A_EXPRS };
    a.u.exprs.at = rx_arena_dup(&b->m->arena, &e, sizeof e);
    a.u.exprs.n = 1;
    return a;
}

static V *emit(maker *b, rx_opcode op, V **args, uint32_t n, const rx_attr *attrs, uint32_t nattrs)
{
    return rx_emit_op(&b->gb, rx_op_get(b->ctx, op), args, n, attrs, nattrs);
}

static V *op1(maker *b, rx_opcode op, V *x) { return emit(b, op, &x, 1, NULL, 0); }
static V *op2(maker *b, rx_opcode op, V *x, V *y) { return emit(b, op, (V *[]){ x, y }, 2, NULL, 0); }

static V *scaled(maker *b, V *x, double by)
{
    return op2(b, RX_OP_MULTIPLY, x, rx_v_scalar(b->m, RELAX_F32, by));
}

static V *as_dtype(maker *b, V *x, relax_dtype t)
{
    if (x->type->dtype == t)
        return x;
    rx_attr a = attr_dtype(b, "dtype", t);
    return emit(b, RX_OP_ASTYPE, &x, 1, &a, 1);
}

static V *reshaped(maker *b, V *x, rx_ex *dims, uint32_t n)
{
    return op2(b, RX_OP_RESHAPE, x, rx_v_shape(b->m, dims, n));
}

/* (n, heads * dim) <-> (n, heads, dim) */
static V *heads_of(maker *b, V *x, int64_t heads, int64_t dim)
{
    rx_ex d[] = { b->n, rx_int(b->ctx, heads), rx_int(b->ctx, dim) };
    return reshaped(b, x, d, 3);
}

static V *rows_of(maker *b, V *x, int64_t width)
{
    rx_ex d[] = { b->n, rx_int(b->ctx, width) };
    return reshaped(b, x, d, 2);
}

/* ---- weights ---- */

static const rx_gguf_tensor *need_tensor(maker *b, const char *name)
{
    const rx_gguf_tensor *t = rx_gguf_find_tensor(b->g, name);
    if (!t)
        rx_fail_hint(b->ctx, RXE_NO_WEIGHT, NULL,
                     "the file is not complete, or of a variant that is not supported; convert the model again",
                     "the file has no tensor '%s', which '%s' needs", name, b->h->arch->name);
    return t;
}

static relax_dtype plain_dtype(uint32_t type)
{
    return type == RX_GGML_F32    ? RELAX_F32
           : type == RX_GGML_F16  ? RELAX_F16
           : type == RX_GGML_BF16 ? RELAX_BF16
                                  : RELAX_DTYPE_UNKNOWN;
}

static void put_dims(rx_buf *b, const int64_t *dims, uint32_t n)
{
    rx_putc(b, '(');
    for (uint32_t i = 0; i < n; i++)
        rx_putf(b, "%s%lld", i ? ", " : "", (long long)dims[i]);
    rx_putc(b, ')');
}

RX_NORETURN static void wrong_shape(maker *b, const rx_gguf_tensor *t, const int64_t *dims, uint32_t n)
{
    rx_buf text;
    rx_buf_init(&text, rx_scratch(&b->ctx->heap));
    rx_putf(&text, "the tensor '%s' is of shape ", t->name);
    put_dims(&text, t->dims, t->ndim);
    rx_putf(&text, ", but '%s' with these sizes needs ", b->h->arch->name);
    put_dims(&text, dims, n);
    rx_fail_hint(b->ctx, RXE_SHAPE, NULL, "metadata and tensors do not belong together; convert the model again", "%s",
                 text.at);
}

static void check_weight(maker *b, const rx_gguf_tensor *t, const int64_t *dims, uint32_t n)
{
    if (t->ndim != n || memcmp(t->dims, dims, n * sizeof *dims))
        wrong_shape(b, t, dims, n);
    const rx_ggml_type *info = rx_ggml_type_info(t->type);
    if (!info->decodable || (n == 1 && plain_dtype(t->type) == RELAX_DTYPE_UNKNOWN))
        rx_fail_hint(b->ctx, RXE_UNSUPPORTED, NULL,
                     "quantise the model again, to one of q4_0 q4_1 q5_0 q5_1 q8_0 q2_k … q6_k iq4_nl iq4_xs",
                     "the tensor '%s' is of type %s, which is not supported%s", t->name, info->name,
                     n == 1 ? " for vectors" : "");
}

/* the parameter for a tensor of the file; made at its first use in the function */
static V *weight(maker *b, const char *name, const int64_t *dims, uint32_t n)
{
    const rx_gguf_tensor *t = need_tensor(b, name);
    check_weight(b, t, dims, n);
    name = rx_str(b->ctx, name);
    V *v = rx_map_get(&b->weights, RX_KEY(name));
    if (v)
        return v;
    rx_ex d[2];
    for (uint32_t i = 0; i < n; i++)
        d[i] = rx_int(b->ctx, dims[i]);
    relax_dtype dt = plain_dtype(t->type);
    if (dt == RELAX_DTYPE_UNKNOWN) {
        const rx_ggml_type *info = rx_ggml_type_info(t->type);
        d[n - 1] = rx_int(b->ctx, dims[n - 1] / info->block_values * info->block_bytes);
        dt = RELAX_U8;
    }
    v = rx_fn_param(b->f, name, rx_ty_tensor(b->ctx, d, (int32_t)n, dt));
    rx_map_put(&b->weights, RX_KEY(name), v);
    return v;
}

static V *vector(maker *b, const char *name, int64_t n) { return as_dtype(b, weight(b, name, &n, 1), RELAX_F32); }

static const char *type_name(maker *b, uint32_t type)
{
    char s[16];
    const char *name = rx_ggml_type_info(type)->name;
    size_t n = 0;
    for (; name[n] && n + 1 < sizeof s; n++)
        s[n] = (char)(name[n] >= 'A' && name[n] <= 'Z' ? name[n] + 32 : name[n]);
    return rx_strn(b->ctx, s, n);
}

/* x (…, cols) times the transposed matrix, plus its bias where the file has one (or must have) */
static V *project(maker *b, V *x, const char *stem, int64_t rows, int64_t cols, bool need_bias)
{
    const char *name = rx_strf(b->ctx, "%s.weight", stem), *bias = rx_strf(b->ctx, "%s.bias", stem);
    V *w = weight(b, name, (int64_t[]){ rows, cols }, 2), *y;
    if (w->type->dtype == RELAX_U8) {
        rx_attr a = attr_str(b, "type", type_name(b, need_tensor(b, name)->type));
        y = emit(b, RX_OP_MATMUL_GGUF, (V *[]){ x, w }, 2, &a, 1);
    } else {
        const rx_attr a[] = { attr_bool(b, "transpose_b", true), attr_dtype(b, "out_dtype", RELAX_F32) };
        y = emit(b, RX_OP_MATMUL, (V *[]){ x, w }, 2, a, 2);
    }
    if (need_bias || rx_gguf_find_tensor(b->g, bias))
        y = op2(b, RX_OP_ADD, y, vector(b, bias, rows));
    return y;
}

static const char *blk(maker *b, int64_t layer, const char *what)
{
    return rx_strf(b->ctx, "blk.%lld.%s", (long long)layer, what);
}

/* ---- parts of a layer ---- */

static V *norm(maker *b, V *x, const char *stem, int64_t width)
{
    rx_attr eps = attr_float(b, "epsilon", b->h->epsilon);
    V *w = vector(b, rx_strf(b->ctx, "%s.weight", stem), width);
    if (!(b->h->arch->traits & RX_AT_LAYER_NORM))
        return emit(b, RX_OP_RMS_NORM, (V *[]){ x, w }, 2, &eps, 1);
    V *beta = vector(b, rx_strf(b->ctx, "%s.bias", stem), width);
    return emit(b, RX_OP_LAYER_NORM, (V *[]){ x, w, beta }, 3, &eps, 1);
}

static V *rope(maker *b, V *x, bool local)
{
    const rx_hparams *h = b->h;
    const rx_attr attrs[] = {
        attr_float(b, "base", local ? h->local_base : h->rope_base),
        attr_int(b, "rot_dims", h->rot),
        attr_str(b, "style", h->arch->rope_style),
        attr_float(b, "freq_scale", local ? h->local_scale : h->freq_scale),
        attr_float(b, "attn_factor", h->attn_factor),
    };
    V *args[] = { x, b->first, h->rope_factors ? vector(b, h->rope_factors, h->rot / 2) : NULL };
    return emit(b, RX_OP_ROPE, args, args[2] ? 3 : 2, attrs, RX_COUNT(attrs));
}

typedef struct qkv { V *q, *k, *v; } qkv;

static qkv queries_keys_values(maker *b, V *x, int64_t layer)
{
    const rx_hparams *h = b->h;
    int64_t nq = h->heads * h->key_dim, nk = h->kv_heads * h->key_dim, nv = h->kv_heads * h->value_dim;
    bool bias = h->arch->traits & (RX_AT_QKV_BIAS | RX_AT_ALL_BIAS);
    qkv r;
    if (h->arch->traits & RX_AT_FUSED_QKV) {
        V *all = project(b, x, blk(b, layer, "attn_qkv"), nq + nk + nv, h->width, bias);
        const rx_attr cut[] = { attr_ints(b, "indices", (int64_t[]){ nq, nq + nk }, 2), attr_int(b, "axis", -1) };
        V *parts = emit(b, RX_OP_SPLIT, &all, 1, cut, 2);
        r = (qkv){ rx_emit_get(&b->gb, parts, 0), rx_emit_get(&b->gb, parts, 1), rx_emit_get(&b->gb, parts, 2) };
    } else {
        r.q = project(b, x, blk(b, layer, "attn_q"), nq, h->width, bias);
        r.k = project(b, x, blk(b, layer, "attn_k"), nk, h->width, bias);
        r.v = project(b, x, blk(b, layer, "attn_v"), nv, h->width, bias);
    }
    r.q = heads_of(b, r.q, h->heads, h->key_dim);
    r.k = heads_of(b, r.k, h->kv_heads, h->key_dim);
    r.v = heads_of(b, r.v, h->kv_heads, h->value_dim);
    if (h->arch->traits & RX_AT_QK_NORM) {
        r.q = norm(b, r.q, blk(b, layer, "attn_q_norm"), h->key_dim);
        r.k = norm(b, r.k, blk(b, layer, "attn_k_norm"), h->key_dim);
    }
    bool local = rx_layer_is_local(h, layer);
    r.q = rope(b, r.q, local);
    r.k = rope(b, r.k, local);
    return r;
}

/* without a cache: one batch of n tokens that see each other */
static V *attend_alone(maker *b, qkv x, const rx_attr *attrs, uint32_t n)
{
    rx_attr axis = attr_ints(b, "axis", (int64_t[]){ 0 }, 1);
    V *args[] = { x.q, x.k, x.v };
    for (int i = 0; i < 3; i++)
        args[i] = emit(b, RX_OP_EXPAND_DIMS, &args[i], 1, &axis, 1);
    V *y = emit(b, RX_OP_ATTENTION, args, 3, attrs, n);
    return emit(b, RX_OP_SQUEEZE, &y, 1, &axis, 1);
}

static V *attend(maker *b, V *x, int64_t layer)
{
    const rx_hparams *h = b->h;
    qkv t = queries_keys_values(b, x, layer);
    const rx_attr attrs[] = {
        attr_bool(b, "causal", true), attr_int(b, "window", rx_layer_is_local(h, layer) ? h->window : 0),
        attr_float(b, "softcap", h->attn_cap), attr_float(b, "scale", h->scale),
    };
    V *y;
    if (b->past) {
        relax_dtype dt = b->k[layer]->type->dtype;
        V *keys = emit(b, RX_OP_KV_APPEND, (V *[]){ b->k[layer], as_dtype(b, t.k, dt), b->past }, 3, NULL, 0);
        V *values = emit(b, RX_OP_KV_APPEND, (V *[]){ b->v[layer], as_dtype(b, t.v, dt), b->past }, 3, NULL, 0);
        y = emit(b, RX_OP_ATTENTION_CACHE, (V *[]){ t.q, keys, values, b->past }, 4, attrs, RX_COUNT(attrs));
    } else {
        y = attend_alone(b, t, attrs, RX_COUNT(attrs));
    }
    y = rows_of(b, y, h->heads * h->value_dim);
    return project(b, y, blk(b, layer, "attn_output"), h->width, h->heads * h->value_dim,
                   h->arch->traits & RX_AT_ALL_BIAS);
}

static V *feed_forward(maker *b, V *x, int64_t layer)
{
    const rx_hparams *h = b->h;
    uint32_t at = h->arch->traits;
    bool bias = at & RX_AT_ALL_BIAS;
    V *gate, *up = NULL;
    if (at & RX_AT_FUSED_UP) {
        V *both = project(b, x, blk(b, layer, "ffn_up"), 2 * h->ff, h->width, bias);
        const rx_attr cut[] = { attr_int(b, "sections", 2), attr_int(b, "axis", -1) };
        V *parts = emit(b, RX_OP_SPLIT, &both, 1, cut, 2);
        gate = rx_emit_get(&b->gb, parts, 0);
        up = rx_emit_get(&b->gb, parts, 1);
    } else if (at & RX_AT_NO_GATE) {
        gate = project(b, x, blk(b, layer, "ffn_up"), h->ff, h->width, bias);
    } else {
        gate = project(b, x, blk(b, layer, "ffn_gate"), h->ff, h->width, bias);
        up = project(b, x, blk(b, layer, "ffn_up"), h->ff, h->width, bias);
    }
    V *y = op1(b, h->arch->act, gate);
    y = up ? op2(b, RX_OP_MULTIPLY, y, up) : y;
    return project(b, y, blk(b, layer, "ffn_down"), h->width, h->ff, bias);
}

static V *layer_of(maker *b, V *x, int64_t layer)
{
    const rx_hparams *h = b->h;
    bool post = h->arch->traits & RX_AT_POST_NORM;
    V *a = attend(b, norm(b, x, blk(b, layer, "attn_norm"), h->width), layer);
    if (post)
        a = norm(b, a, blk(b, layer, "post_attention_norm"), h->width);
    V *sum = op2(b, RX_OP_ADD, x, a);
    V *y = feed_forward(b, norm(b, h->parallel ? x : sum, blk(b, layer, "ffn_norm"), h->width), layer);
    if (post)
        y = norm(b, y, blk(b, layer, "post_ffw_norm"), h->width);
    return op2(b, RX_OP_ADD, sum, y);
}

/* ---- the whole model ---- */

static V *embedding(maker *b, V *tokens)
{
    V *ids = reshaped(b, tokens, &b->n, 1), *x;
    V *w = weight(b, "token_embd.weight", (int64_t[]){ b->h->vocab, b->h->width }, 2);
    if (w->type->dtype == RELAX_U8) {
        rx_attr a = attr_str(b, "type", type_name(b, need_tensor(b, "token_embd.weight")->type));
        x = emit(b, RX_OP_TAKE_GGUF, (V *[]){ w, ids }, 2, &a, 1);
    } else {
        rx_attr a = attr_int(b, "axis", 0);
        x = as_dtype(b, emit(b, RX_OP_TAKE, (V *[]){ w, ids }, 2, &a, 1), RELAX_F32);
    }
    return b->h->arch->traits & RX_AT_EMBED_SCALE ? scaled(b, x, sqrt((double)b->h->width)) : x;
}

/* logits of the last token from the states of all */
static V *head(maker *b, V *x)
{
    const rx_hparams *h = b->h;
    const rx_attr last[] = {
        attr_ints(b, "axes", (int64_t[]){0}, 1),
        attr_exprs1(b, "begin", rx_subi(b->ctx, b->n, 1)),
        attr_exprs1(b, "end", b->n),
        attr_bool(b, "assume_inbound", true),
    };
    int64_t one;
    if (!rx_is_int(b->n, &one))
        x = emit(b, RX_OP_STRIDED_SLICE, &x, 1, last, RX_COUNT(last));
    x = norm(b, x, "output_norm", h->width);
    bool own = (h->arch->traits & RX_AT_OWN_HEAD) || rx_gguf_find_tensor(b->g, "output.weight");
    x = project(b, x, own ? "output" : "token_embd", h->vocab, h->width, false);
    if (h->logit_cap > 0)
        x = scaled(b, op1(b, RX_OP_TANH, scaled(b, x, 1 / h->logit_cap)), h->logit_cap);
    return x;
}

/* the caches: (c, kv heads, dim) for keys of all layers, then values */
static void cache_params(maker *b, rx_ex c)
{
    const rx_hparams *h = b->h;
    relax_dtype dt = h->exact ? RELAX_F32 : RELAX_F16;
    rx_arena *a = rx_scratch(&b->ctx->heap);
    b->k = RX_NEWN(a, V *, (size_t)h->layers);
    b->v = RX_NEWN(a, V *, (size_t)h->layers);
    for (int64_t i = 0; i < 2 * h->layers; i++) {
        bool key = i < h->layers;
        int64_t layer = key ? i : i - h->layers;
        rx_ex d[] = { c, rx_int(b->ctx, h->kv_heads), rx_int(b->ctx, key ? h->key_dim : h->value_dim) };
        V *v = rx_fn_param(b->f, rx_strf(b->ctx, "%s_%lld", key ? "k" : "v", (long long)layer),
                           rx_ty_tensor(b->ctx, d, 3, dt));
        (key ? b->k : b->v)[layer] = v;
    }
}

static V *begin(maker *b, const char *name, bool many, bool cached)
{
    const rx_hparams *h = b->h;
    relax_context *ctx = b->ctx;
    b->f = rx_function_new(b->m, name);
    b->f->pure = true;
    b->gb = rx_gb_begin(b->f);
    rx_gb_dataflow(&b->gb, true);
    rx_map_init(&b->weights, rx_scratch(&ctx->heap));
    b->n = many ? rx_fn_sym(b->f, "n") : rx_int(ctx, 1);
    if (many)
        rx_fn_bound(b->f, b->n, 1, h->context);
    rx_ex d[] = { rx_int(ctx, 1), b->n };
    V *tokens = rx_fn_param(b->f, "tokens", rx_ty_tensor(ctx, d, 2, RELAX_I32));
    b->past = NULL;
    if (cached) {
        rx_ex p = rx_fn_sym(b->f, "p"), c = rx_fn_sym(b->f, "c");
        rx_fn_bound(b->f, p, 0, h->context - 1);
        rx_fn_bound(b->f, c, 1, h->context);
        rx_fn_fact(b->f, rx_le(ctx, rx_add(ctx, p, b->n), c));
        b->past = rx_fn_param(b->f, "past", rx_ty_prim(ctx, RELAX_I64, p));
        cache_params(b, c);
    }
    rx_attr inputs = attr_int(b, "num_inputs", b->f->nparams);
    rx_attrs_set(ctx, &b->m->arena, &b->f->attrs, &inputs);
    b->first = cached ? b->past : rx_v_prim(b->m, rx_int(ctx, 0));
    return tokens;
}

static V *body(maker *b, V *tokens)
{
    V *x = embedding(b, tokens);
    for (int64_t i = 0; i < b->h->layers; i++)
        x = layer_of(b, x, i);
    return x;
}

static void meta_int(maker *b, const char *key, int64_t v)
{
    rx_attr a = attr_str(b, key, rx_strf(b->ctx, "%lld", (long long)v));
    rx_attrs_set(b->ctx, &b->m->arena, &b->f->attrs, &a);
}

static void meta_str(maker *b, const char *key, rx_view v)
{
    rx_attr a = attr_str(b, key, rx_strn(b->ctx, v.at, v.n));
    rx_attrs_set(b->ctx, &b->m->arena, &b->f->attrs, &a);
}

/* ids of the tokens that end a text or a turn, as the metadata names them: "151645,151643" */
static void end_tokens(maker *b)
{
    static const char *const keys[] = { "eos", "eot", "eom" };
    rx_buf text;
    rx_buf_init(&text, rx_scratch(&b->ctx->heap));
    for (size_t i = 0; i < RX_COUNT(keys); i++) {
        int64_t id = rx_gguf_get_int(b->g, rx_strf(b->ctx, "tokenizer.ggml.%s_token_id", keys[i]), -1);
        if (id >= 0 && id < b->h->vocab)
            rx_putf(&text, "%s%lld", text.n ? "," : "", (long long)id);
    }
    if (text.n)
        meta_str(b, "meta.model.end_tokens", (rx_view){ text.at, text.n });
}

/* what a host must know to run the functions; the list is in docs/models.md */
static void metadata(maker *b)
{
    const rx_hparams *h = b->h;
    rx_view name = rx_gguf_get_str(b->g, "general.name");
    meta_str(b, "meta.model.architecture", (rx_view){ h->arch->name, strlen(h->arch->name) });
    if (name.n && name.n <= 256 && rx_utf8_valid(name.at, name.n) == name.n)
        meta_str(b, "meta.model.name", name);
    meta_int(b, "meta.model.vocab", h->vocab);
    meta_int(b, "meta.model.width", h->width);
    meta_int(b, "meta.model.context", h->context);
    meta_int(b, "meta.model.layers", h->layers);
    meta_int(b, "meta.model.kv_heads", h->kv_heads);
    meta_int(b, "meta.model.key_dim", h->key_dim);
    meta_int(b, "meta.model.value_dim", h->value_dim);
    const char *dt = rx_dtypes[h->exact ? RELAX_F32 : RELAX_F16].name;
    meta_str(b, "meta.model.cache_dtype", (rx_view){ dt, strlen(dt) });
    end_tokens(b);
}

relax_module *rx_model_import(relax_context *ctx, const rx_gguf *g, bool exact, int64_t context)
{
    rx_ops_init(ctx);
    rx_hparams h = rx_model_params(ctx, g, exact, context);
    maker b = { .ctx = ctx, .g = g, .h = &h };
    const rx_gguf_tensor *embd = need_tensor(&b, "token_embd.weight");
    h.vocab = embd->ndim == 2 ? embd->dims[0] : 0;
    relax_module *const m = b.m = rx_module_new(ctx);
    rx_frame fr;
    if (RX_ENTER(&ctx->heap, &fr)) {
        V *tokens = begin(&b, "prefill", true, true);
        rx_fn_finish(b.f, &b.gb, head(&b, body(&b, tokens)));
        tokens = begin(&b, "decode", false, true);
        metadata(&b);
        rx_fn_finish(b.f, &b.gb, head(&b, body(&b, tokens)));
        tokens = begin(&b, "embed", true, false);
        rx_fn_finish(b.f, &b.gb, norm(&b, body(&b, tokens), "output_norm", h.width));
        rx_leave(&ctx->heap, &fr);
        return m;
    }
    rx_module_free(m);
    rx_unwind(&ctx->heap);
}
