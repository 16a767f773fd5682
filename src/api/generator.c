/* generator.c: runs an executable of relax_model_import token by token: caches, positions, sampling.
 *
 * Everything is allocated when the generator is made; feeding and sampling allocate nothing. Several tokens go through
 * `prefill` in chunks, a single one through `decode`. A failing call leaves the generator as it was: what it may have
 * written to the caches lies behind the position, where it is overwritten. */
#include "api/sampler.h"
#include "api/weights.h"
#include "rt/rt.h"

enum { CHUNK = 256 };                  /* tokens of one prefill: bounds the memory of activations */

struct relax_generator {
    uint32_t magic;
    relax_context *ctx;
    relax_vm *vm;
    int64_t layers, vocab, context;
    int32_t prefill, decode;           /* functions of the VM */
    int64_t position;
    bool ready;                        /* logits belong to position - 1 */
    relax_any *args; int32_t nargs;    /* tokens, past, caches */
    float *logits;
    int32_t *history;                  /* tokens at positions 0 .. position - 1 */
    api_sampler sampler;
    void *memory; size_t size;         /* of all the arrays */
};
#define GENERATOR_MAGIC 0x47454E52u

static bool alive(const relax_generator *g) { return g && g->magic == GENERATOR_MAGIC; }

/* ---- making ---- */

static relax_status number(const relax_generator *g, const relax_executable *e, const char *key, int64_t most,
                           int64_t *v)
{
    const char *s = relax_executable_property(e, key);
    size_t n = s ? strlen(s) : 0;
    if (n && rx_read_i64(s, n, v) == n && *v >= 1 && *v <= most)
        return RELAX_OK;
    return rx_error(g->ctx, RXE_UNSUPPORTED, NULL, "build it from relax_model_import",
                    "the executable is no language model: '%s' is %s", key, s ? s : "missing");
}

static relax_status find_functions(relax_generator *g, const relax_executable *e)
{
    g->prefill = rx_vm_function(g->vm, "prefill");
    g->decode = rx_vm_function(g->vm, "decode");
    if (g->prefill < 0 || g->decode < 0)
        return rx_error(g->ctx, RXE_NOT_FOUND, NULL, "build it from relax_model_import",
                        "the executable has no functions prefill and decode");
    int32_t most = RX_MIN(e->pkg.fns[g->prefill].nparams, e->pkg.fns[g->decode].nparams);
    if (g->layers > (most - 2) / 2)
        return rx_error(g->ctx, RXE_UNSUPPORTED, NULL, "build it from relax_model_import",
                        "the functions take no caches for %lld layers", (long long)g->layers);
    return RELAX_OK;
}

/* one block for all arrays, each at a multiple of 64 */
static relax_status make_arrays(relax_generator *g)
{
    size_t parts[] = { (size_t)g->nargs * sizeof *g->args, (size_t)g->vocab * sizeof *g->logits,
                       (size_t)g->context * sizeof *g->history, API_SAMPLER_BYTES(g->vocab) };
    size_t at[RX_COUNT(parts)], size = 0;
    for (size_t i = 0; i < RX_COUNT(parts); i++) {
        at[i] = size;
        size += (parts[i] + 63) & ~(size_t)63;
    }
    char *p = rx_heap_alloc(&g->ctx->heap, size, 64);
    if (!p)
        return rx_error(g->ctx, RXE_OOM, NULL, NULL, "no memory for a generator");
    memset(p, 0, size);
    g->memory = p;
    g->size = size;
    g->args = (relax_any *)(p + at[0]);
    g->logits = (float *)(p + at[1]);
    g->history = (int32_t *)(p + at[2]);
    api_sampler_init(&g->sampler, g->vocab, p + at[3]);
    return RELAX_OK;
}

static relax_status make_caches(relax_generator *g, const relax_executable *e)
{
    int64_t heads, key_dim, value_dim, most = (int64_t)1 << 28;
    const char *dt = relax_executable_property(e, "model.cache_dtype");
    relax_dtype t = dt ? rx_dtype_parse(dt, strlen(dt)) : RELAX_DTYPE_UNKNOWN;
    relax_status st = number(g, e, "model.kv_heads", most, &heads);
    if (st == RELAX_OK)
        st = number(g, e, "model.key_dim", most, &key_dim);
    if (st == RELAX_OK)
        st = number(g, e, "model.value_dim", most, &value_dim);
    for (int64_t i = 0; i < 2 * g->layers && st == RELAX_OK; i++) {
        int64_t dims[] = { g->context, heads, i < g->layers ? key_dim : value_dim };
        rx_tensor *c;
        st = rx_tensor_new(g->ctx, t, dims, 3, &c);
        if (st == RELAX_OK)
            g->args[2 + i] = (relax_any){ .kind = RELAX_ANY_TENSOR, .u.obj = &c->h };
    }
    return st;
}

static relax_status bind(relax_generator *g, const relax_executable *e, const relax_weights *w)
{
    for (uint32_t i = 0; i < e->pkg.n_weights; i++) {
        const char *name = rx_pkg_str(&e->pkg, e->pkg.weights[i].name);
        if (!api_weights_find(w, name))
            return rx_error(g->ctx, RXE_NO_WEIGHT, NULL, "give the file that the executable was built from",
                            "%s has no tensor '%s'", w->path, name);
    }
    return relax_vm_bind_weights(g->vm, w);
}

static relax_status make(relax_generator *g, relax_executable *e, const relax_weights *w)
{
    const int64_t most = (int64_t)1 << 28;
    relax_status st = number(g, e, "model.layers", most, &g->layers);
    if (st == RELAX_OK)
        st = number(g, e, "model.vocab", most, &g->vocab);
    if (st == RELAX_OK)
        st = number(g, e, "model.context", most, &g->context);
    if (st == RELAX_OK)
        st = find_functions(g, e);
    g->nargs = (int32_t)(2 + 2 * g->layers);
    if (st == RELAX_OK)
        st = make_arrays(g);
    if (st == RELAX_OK)
        st = make_caches(g, e);
    return st == RELAX_OK && w ? bind(g, e, w) : st;
}

static void destroy(relax_generator *g)
{
    rx_heap *h = &g->ctx->heap;
    for (int32_t i = 2; g->args && i < g->nargs; i++)
        rx_any_release(&g->args[i]);
    if (g->memory)
        rx_heap_free(h, g->memory, g->size);
    relax_vm_destroy(g->vm);
    g->magic = 0;
    rx_heap_free(h, g, sizeof *g);
}

relax_status relax_generator_create(relax_executable *e, const relax_weights *w, const relax_vm_options *options,
                                    relax_generator **out)
{
    relax_vm *vm;
    if (out)
        *out = NULL;
    if (!e)
        return RELAX_E_INVALID;
    if (!out || (w && !api_weights(w)))
        return api_null(e->ctx, out ? "weights" : "out");
    relax_status st = relax_vm_create(e, options, &vm);
    if (st != RELAX_OK)
        return st;
    relax_context *ctx = relax_vm_context(vm);
    relax_generator *g = rx_heap_alloc(&ctx->heap, sizeof *g, _Alignof(relax_generator));
    if (!g) {
        relax_vm_destroy(vm);
        return rx_error(ctx, RXE_OOM, NULL, NULL, "no memory for a generator");
    }
    *g = (relax_generator){ .magic = GENERATOR_MAGIC, .ctx = ctx, .vm = vm };
    st = make(g, e, w);
    if (st == RELAX_OK)
        *out = g;
    else
        destroy(g);
    return st;
}

void relax_generator_destroy(relax_generator *g)
{
    if (alive(g))
        destroy(g);
}

relax_vm *relax_generator_vm(relax_generator *g) { return alive(g) ? g->vm : NULL; }
int64_t relax_generator_position(const relax_generator *g) { return alive(g) ? g->position : -1; }

relax_status relax_generator_set_sampling(relax_generator *g, const relax_sampling *s)
{
    if (!alive(g))
        return RELAX_E_INVALID;
    return s ? api_sampler_set(g->ctx, &g->sampler, s) : api_null(g->ctx, "sampling");
}

relax_status relax_generator_reset(relax_generator *g)
{
    if (!alive(g))
        return RELAX_E_INVALID;
    g->position = 0;
    g->ready = false;
    api_sampler_restart(&g->sampler);
    return RELAX_OK;
}

/* ---- running ---- */

static relax_status run(relax_generator *g, const int32_t *ids, int64_t n, int64_t past)
{
    int64_t dims[] = { 1, n }, out_dims[] = { 1, g->vocab };
    DLTensor tokens = {
        .data = (void *)(uintptr_t)ids, .device = {kDLCPU, 0}, .ndim = 2, .dtype = {kDLInt, 32, 1}, .shape = dims};
    DLTensor logits = {
        .data = g->logits, .device = {kDLCPU, 0}, .ndim = 2, .dtype = {kDLFloat, 32, 1}, .shape = out_dims};
    const DLTensor *outs[] = { &logits };
    g->args[0] = (relax_any){ .kind = RELAX_ANY_DLTENSOR, .u.dl = &tokens };
    g->args[1] = (relax_any){ .kind = RELAX_ANY_INT, .u.i = past };
    relax_any result = { 0 };
    relax_status st = rx_vm_call(g->vm, n == 1 ? g->decode : g->prefill, g->args, g->nargs, outs, 1, &result);
    rx_any_release(&result);
    g->args[0] = (relax_any){ 0 };
    return st;
}

static relax_status check_ids(relax_generator *g, const int32_t *ids, size_t n)
{
    if (n > (size_t)(g->context - g->position))
        return rx_error(g->ctx, RXE_BOUND_EXCEEDED, NULL,
                        "reset the generator, or import the model with a larger context",
                        "%llu tokens after %lld exceed the context of %lld", (unsigned long long)n,
                        (long long)g->position, (long long)g->context);
    for (size_t i = 0; i < n; i++)
        if (ids[i] < 0 || ids[i] >= g->vocab)
            return rx_error(g->ctx, RXE_INDEX, NULL, NULL, "token %llu is %d, the vocabulary has %lld",
                            (unsigned long long)i, (int)ids[i], (long long)g->vocab);
    return RELAX_OK;
}

relax_status relax_generator_feed(relax_generator *g, const int32_t *ids, size_t n)
{
    if (!alive(g))
        return RELAX_E_INVALID;
    if (!ids && n)
        return api_null(g->ctx, "ids");
    relax_status st = check_ids(g, ids, n);
    if (st != RELAX_OK || n == 0)
        return st;
    g->ready = false;
    for (int64_t done = 0, total = (int64_t)n; done < total;) {
        int64_t k = RX_MIN(total - done, (int64_t)CHUNK);
        st = run(g, ids + done, k, g->position + done);
        if (st != RELAX_OK)
            return st;
        done += k;
        if (g->ctx->progress && total > CHUNK)
            g->ctx->progress(g->ctx->progress_user, "prefill", done, total);
    }
    memcpy(g->history + g->position, ids, n * sizeof *ids);
    g->position += (int64_t)n;
    g->ready = true;
    return RELAX_OK;
}

static relax_status need_logits(relax_generator *g)
{
    return g->ready ? RELAX_OK
                    : rx_error(g->ctx, RXE_STATE, NULL, "feed tokens first",
                               "there are no logits: no token was fed since the start, "
                               "a reset or an error");
}

relax_status relax_generator_logits(relax_generator *g, const float **logits, size_t *n)
{
    if (!alive(g))
        return RELAX_E_INVALID;
    if (!logits || !n)
        return api_null(g->ctx, "logits or n");
    *logits = NULL;
    *n = 0;
    relax_status st = need_logits(g);
    if (st != RELAX_OK)
        return st;
    *logits = g->logits;
    *n = (size_t)g->vocab;
    return RELAX_OK;
}

relax_status relax_generator_sample(relax_generator *g, int32_t *id)
{
    if (!alive(g))
        return RELAX_E_INVALID;
    if (!id)
        return api_null(g->ctx, "id");
    *id = -1;
    relax_status st = need_logits(g);
    if (st == RELAX_OK)
        *id = api_sample(&g->sampler, g->logits, g->history, g->position);
    return st;
}
