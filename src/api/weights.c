/* weights.c: model files (GGUF, safetensors) mapped into memory: tensors by name, metadata, a text for people.
 *
 * The file is untrusted; the readers of import/ check it when it is opened. Nothing is copied: views point into the
 * map, which stays until relax_weights_close. */
#include "api/weights.h"
#include "rt/rt.h"

bool api_weights(const relax_weights *w) { return w && w->magic == API_WEIGHTS_MAGIC; }

DLTensor api_weight_view(const api_weight *t)
{
    static const uint8_t codes[] = { ['i'] = kDLInt, ['u'] = kDLUInt, ['f'] = kDLFloat, ['b'] = kDLBool };
    const rx_dtype_info *d = &rx_dtypes[t->dtype];
    uint8_t code = d->kind < sizeof codes ? codes[d->kind] : 0;
    code = t->dtype == RELAX_BF16     ? kDLBfloat
           : t->dtype == RELAX_F8E4M3 ? kDLFloat8_e4m3fn
           : t->dtype == RELAX_F8E5M2 ? kDLFloat8_e5m2
                                      : code;
    return (DLTensor){ .data = (void *)(uintptr_t)t->data, .device = { kDLCPU, 0 }, .ndim = t->ndim,
                       .dtype = { code, d->bits, 1 }, .shape = t->dims };
}

/* ---- opening ---- */

static const char *lower(relax_context *ctx, const char *s)
{
    rx_buf b;
    rx_buf_init(&b, rx_scratch(&ctx->heap));
    for (; *s; s++)
        rx_putc(&b, (char)(*s >= 'A' && *s <= 'Z' ? *s + 32 : *s));
    return rx_strn(ctx, b.at, b.n);
}

static relax_dtype ggml_dtype(uint32_t type)
{
    switch (type) {
    case RX_GGML_F32: return RELAX_F32;
    case RX_GGML_F16: return RELAX_F16;
    case RX_GGML_BF16: return RELAX_BF16;
    case RX_GGML_F64: return RELAX_F64;
    case RX_GGML_I8: return RELAX_I8;
    case RX_GGML_I16: return RELAX_I16;
    case RX_GGML_I32: return RELAX_I32;
    case RX_GGML_I64: return RELAX_I64;
    default: return RELAX_U8;
    }
}

static void list_gguf(relax_weights *w)
{
    w->n = w->gguf->n_tensors;
    w->at = RX_NEWN(&w->arena, api_weight, w->n);
    for (uint32_t i = 0; i < w->n; i++) {
        const rx_gguf_tensor *t = &w->gguf->tensors[i];
        const rx_ggml_type *info = rx_ggml_type_info(t->type);
        api_weight *a = &w->at[i];
        *a = (api_weight){.name = t->name,
                          .type = lower(w->ctx, info->name),
                          .dtype = ggml_dtype(t->type),
                          .ndim = (int32_t)t->ndim,
                          .data = t->data,
                          .bytes = t->bytes};
        a->dims = rx_arena_dup(&w->arena, t->dims, sizeof t->dims);
        if (info->block_values > 1 && t->ndim > 0)
            a->dims[t->ndim - 1] = t->dims[t->ndim - 1] / info->block_values * info->block_bytes;
    }
}

static void list_safetensors(relax_weights *w)
{
    w->n = w->st->n_tensors;
    w->at = RX_NEWN(&w->arena, api_weight, w->n);
    for (uint32_t i = 0; i < w->n; i++) {
        const rx_st_tensor *t = &w->st->tensors[i];
        w->at[i] = (api_weight){.name = t->name,
                                .type = lower(w->ctx, t->dtype_name),
                                .dtype = t->dtype,
                                .ndim = (int32_t)t->ndim,
                                .dims = t->dims,
                                .data = t->data,
                                .bytes = t->bytes};
    }
}

static void read_file(relax_weights *w)
{
    if (w->file.size >= 4 && !memcmp(w->file.at, "GGUF", 4)) {
        w->gguf = rx_gguf_open(w->ctx, &w->arena, w->file.at, w->file.size);
        list_gguf(w);
    } else {
        w->st = rx_safetensors_open(w->ctx, &w->arena, w->file.at, w->file.size);
        list_safetensors(w);
    }
}

static relax_weights *weights_new(relax_context *ctx, const char *path)
{
    relax_weights *w = rx_heap_alloc(&ctx->heap, sizeof *w, _Alignof(relax_weights));
    if (!w) {
        rx_error(ctx, RXE_OOM, NULL, NULL, "no memory to open %s", path);
        return NULL;
    }
    *w = (relax_weights){ .ctx = ctx };
    rx_arena_init(&w->arena, &ctx->heap);
    int err = rx_file_map(path, &w->file);
    if (!err)
        return w;
    char text[128];
    rx_error(ctx, RXE_FILE_IO, NULL, NULL, "%s: %s", path, rx_os_error(err, text, sizeof text));
    rx_heap_free(&ctx->heap, w, sizeof *w);
    return NULL;
}

static void weights_free(relax_weights *w)
{
    rx_heap *h = &w->ctx->heap;
    w->magic = 0;
    rx_arena_free(&w->arena);
    rx_file_unmap(&w->file);
    rx_heap_free(h, w, sizeof *w);
}

relax_status relax_weights_open(relax_context *ctx, const char *path, relax_weights **out)
{
    if (out)
        *out = NULL;
    if (!rx_ctx_ok(ctx) || !path || !out)
        return api_null(ctx, path ? "out" : "path");
    relax_weights *const w = weights_new(ctx, path);
    if (!w)
        return api_failed(ctx);
    API_TRY(ctx) {
        w->path = rx_arena_dup(&w->arena, path, strlen(path) + 1);
        read_file(w);
        w->magic = API_WEIGHTS_MAGIC;
        *out = w;
        API_RETURN(RELAX_OK);
    }
    weights_free(w);
    return api_failed(ctx);
}

void relax_weights_close(relax_weights *w)
{
    if (api_weights(w))
        weights_free(w);
}

/* ---- reading ---- */

uint32_t relax_weights_count(const relax_weights *w) { return api_weights(w) ? w->n : 0; }

relax_status relax_weights_get(const relax_weights *w, uint32_t i, const char **name, const char **type, DLTensor *t)
{
    if (!api_weights(w))
        return RELAX_E_INVALID;
    if (i >= w->n)
        return rx_error(w->ctx, RXE_NOT_FOUND, NULL, NULL, "%s has %u tensors, there is no number %u", w->path, w->n,
                        i);
    const api_weight *a = &w->at[i];
    if (name)
        *name = a->name;
    if (type)
        *type = a->type;
    if (!t)
        return RELAX_OK;
    if (a->dtype == RELAX_DTYPE_UNKNOWN)
        return rx_error(w->ctx, RXE_UNSUPPORTED, NULL, "read its name and type only",
                        "the tensor '%s' is of type %s, which has no data type here", a->name, a->type);
    *t = api_weight_view(a);
    return RELAX_OK;
}

/* a scalar or string of the metadata; false: an array */
static bool put_value(rx_buf *b, const rx_gguf *g, const char *key, const rx_gguf_kv *kv)
{
    switch (kv->kind) {
    case RX_GGUF_ARRAY: case RX_GGUF_KINDS: return false;
    case RX_GGUF_STR: rx_putn(b, kv->str.at, kv->str.n); return true;
    case RX_GGUF_BOOL: rx_puts(b, rx_gguf_get_bool(g, key, false) ? "true" : "false"); return true;
    case RX_GGUF_F32: rx_put_float(b, (float)rx_gguf_get_float(g, key, 0)); return true;
    case RX_GGUF_F64: rx_put_double(b, rx_gguf_get_float(g, key, 0)); return true;
    case RX_GGUF_U64: {
        uint64_t v = 0;
        for (int i = 8; i-- > 0;)
            v = v << 8 | kv->at[i];
        rx_putf(b, "%llu", (unsigned long long)v);
        return true;
    }
    case RX_GGUF_U8:
    case RX_GGUF_I8:
    case RX_GGUF_U16:
    case RX_GGUF_I16:
    case RX_GGUF_U32:
    case RX_GGUF_I32:
    case RX_GGUF_I64: rx_put_i64(b, rx_gguf_get_int(g, key, 0)); return true;
    }
    return false;
}

/* What the compiler reads of a file: everything before the first tensor's data, and the size. */
void api_weights_fingerprint(const relax_weights *w, rx_buf *b)
{
    const uint8_t *end = w->file.at + w->file.size;
    for (uint32_t i = 0; i < w->n; i++)
        if (w->at[i].data && w->at[i].data < end)
            end = w->at[i].data;
    rx_putf(b, "%016llx", (unsigned long long)rx_hash(w->file.at, (size_t)(end - w->file.at), w->file.size));
}

static void meta_text(const relax_weights *w, const char *key, rx_buf *b)
{
    if (!strcmp(key, "librelax.fingerprint")) {
        api_weights_fingerprint(w, b);
        return;
    }
    rx_where at = { .file = w->path };
    const rx_gguf_kv *kv = w->gguf ? rx_gguf_find(w->gguf, key) : NULL;
    for (uint32_t i = 0; w->st && i < w->st->n_meta; i++)
        if (rx_view_is(w->st->meta_keys[i], key)) {
            rx_putn(b, w->st->meta_values[i].at, w->st->meta_values[i].n);
            return;
        }
    if (!kv)
        rx_fail(w->ctx, RXE_NOT_FOUND, &at, "no metadata is called '%s'", key);
    if (!put_value(b, w->gguf, key, kv))
        rx_fail(w->ctx, RXE_DTYPE, &at, "'%s' is an array of %llu", key, (unsigned long long)kv->array.n);
}

relax_status relax_weights_meta(const relax_weights *w, const char *key, char *out, size_t size)
{
    if (!api_weights(w))
        return RELAX_E_INVALID;
    if (!key)
        return api_null(w->ctx, "key");
    API_TRY(w->ctx) {
        rx_buf b;
        rx_buf_init(&b, rx_scratch(&w->ctx->heap));
        rx_puts(&b, "");
        meta_text(w, key, &b);
        bool fits = api_text(b.at ? b.at : "", b.n, out, size) < size;
        if (out && !fits)
            rx_fail(w->ctx, RXE_LIMIT, NULL, "'%s' needs room for %llu bytes", key, (unsigned long long)b.n + 1);
        API_RETURN(RELAX_OK);
    }
    return api_failed(w->ctx);
}

/* at most 100 bytes of a value on one line, bytes that are not printable or not UTF-8 as '?' */
static void put_line(rx_buf *b, const char *s, size_t n)
{
    size_t keep = RX_MIN(n, (size_t)100);
    while (keep < n && keep > 0 && ((uint8_t)s[keep] & 0xC0) == 0x80)
        keep--;
    for (size_t i = 0; i < keep;) {
        size_t ok = rx_utf8_valid(s + i, keep - i);
        for (size_t k = 0; k < ok; k++, i++)
            rx_putc(b, (uint8_t)s[i] < 32 ? ' ' : s[i]);
        if (i < keep) {
            rx_putc(b, '?');
            i++;
        }
    }
    if (keep < n)
        rx_puts(b, " …");
}

static void put_metadata(const relax_weights *w, rx_buf *b)
{
    for (uint32_t i = 0; w->gguf && i < w->gguf->keys.n; i++) {
        rx_buf key, value;
        rx_buf_init(&key, b->a);
        rx_buf_init(&value, b->a);
        rx_putn(&key, w->gguf->keys.at[i].at, w->gguf->keys.at[i].n);
        const rx_gguf_kv *kv = &w->gguf->kvs[i];
        rx_puts(b, "  ");
        put_line(b, key.at ? key.at : "", key.n);
        if (put_value(&value, w->gguf, key.at ? key.at : "", kv)) {
            rx_puts(b, " = ");
            put_line(b, value.at ? value.at : "", value.n);
        } else {
            rx_putf(b, ": array of %llu", (unsigned long long)kv->array.n);
        }
        rx_putc(b, '\n');
    }
    for (uint32_t i = 0; w->st && i < w->st->n_meta; i++) {
        rx_puts(b, "  ");
        put_line(b, w->st->meta_keys[i].at, w->st->meta_keys[i].n);
        rx_puts(b, " = ");
        put_line(b, w->st->meta_values[i].at, w->st->meta_values[i].n);
        rx_putc(b, '\n');
    }
}

static void put_tensors(const relax_weights *w, rx_buf *b)
{
    for (uint32_t i = 0; i < w->n; i++) {
        const int64_t *dims = w->gguf ? w->gguf->tensors[i].dims : w->at[i].dims;
        rx_puts(b, "  ");
        put_line(b, w->at[i].name, strlen(w->at[i].name));
        rx_puts(b, ": ");
        rx_puts(b, w->at[i].type);
        for (int32_t k = 0; k < w->at[i].ndim; k++)
            rx_putf(b, "%s%lld", k ? ", " : " (", (long long)dims[k]);
        rx_putf(b, "%s, %llu bytes\n", w->at[i].ndim ? ")" : "", (unsigned long long)w->at[i].bytes);
    }
}

size_t relax_weights_text(const relax_weights *w, char *out, size_t size)
{
    if (!api_weights(w))
        return 0;
    API_TRY(w->ctx) {
        rx_buf b;
        rx_buf_init(&b, rx_scratch(&w->ctx->heap));
        if (w->gguf)
            rx_putf(&b, "GGUF version %u, %u tensors, %llu bytes\nmetadata:\n", w->gguf->version, w->n,
                    (unsigned long long)w->file.size);
        else
            rx_putf(&b, "safetensors, %u tensors, %llu bytes\nmetadata:\n", w->n, (unsigned long long)w->file.size);
        put_metadata(w, &b);
        rx_puts(&b, "tensors:\n");
        put_tensors(w, &b);
        size_t n = api_text(b.at, b.n, out, size);
        API_RETURN(n);
    }
    return 0;
}

/* ---- binding ---- */

const api_weight *api_weights_find(const relax_weights *w, const char *name)
{
    if (w->gguf) {
        int64_t i = rx_names_find(&w->gguf->tensor_names, name, strlen(name));
        return i < 0 ? NULL : &w->at[i];
    }
    int64_t i = rx_names_find(&w->st->names, name, strlen(name));
    return i < 0 ? NULL : &w->at[i];
}

/* Weights that the file does not have may come from elsewhere: a call names the first that is missing. */
relax_status relax_vm_bind_weights(relax_vm *vm, const relax_weights *w)
{
    if (!api_weights(w))
        return RELAX_E_INVALID;
    if (!vm)
        return api_null(w->ctx, "vm");
    const rx_pkg *p = &rx_vm_executable(vm)->pkg;
    relax_status st = RELAX_OK;
    for (uint32_t i = 0; i < p->n_weights && st == RELAX_OK; i++) {
        const api_weight *t = api_weights_find(w, rx_pkg_str(p, p->weights[i].name));
        if (!t || t->dtype == RELAX_DTYPE_UNKNOWN)
            continue;
        DLTensor view = api_weight_view(t);
        st = relax_vm_bind_weight(vm, t->name, &view);
    }
    return st;
}
