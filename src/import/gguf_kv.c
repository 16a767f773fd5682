/* gguf_kv.c: typed access to the metadata of a GGUF file.
 *
 * A getter never reinterprets: an integer key stored as a string, an array or a float is an error that names the key,
 * what it holds and what was asked for. Widths are free (writers use u32, u64 and i32 for the same key). */
#include "import/import.h"

static const char *const kind_names[RX_GGUF_KINDS] = {
    [RX_GGUF_U8] = "u8",       [RX_GGUF_I8] = "i8",   [RX_GGUF_U16] = "u16",    [RX_GGUF_I16] = "i16",
    [RX_GGUF_U32] = "u32",     [RX_GGUF_I32] = "i32", [RX_GGUF_F32] = "f32",    [RX_GGUF_BOOL] = "bool",
    [RX_GGUF_U64] = "u64",     [RX_GGUF_I64] = "i64", [RX_GGUF_STR] = "string", [RX_GGUF_F64] = "f64",
    [RX_GGUF_ARRAY] = "array",
};

static uint64_t load(const uint8_t *p, unsigned bytes)
{
    uint64_t v = 0;
    for (unsigned i = bytes; i-- > 0;)
        v = v << 8 | p[i];
    return v;
}

/* false: not an integer kind, or a u64 beyond int64 */
static bool int_at(rx_gguf_kind k, const uint8_t *p, int64_t *v)
{
    switch (k) {
    case RX_GGUF_U8: *v = p[0]; return true;
    case RX_GGUF_I8: *v = (int8_t)p[0]; return true;
    case RX_GGUF_U16: *v = (int64_t)load(p, 2); return true;
    case RX_GGUF_I16: *v = (int16_t)load(p, 2); return true;
    case RX_GGUF_U32: *v = (int64_t)load(p, 4); return true;
    case RX_GGUF_I32: *v = (int32_t)load(p, 4); return true;
    case RX_GGUF_U64: *v = (int64_t)load(p, 8); return *v >= 0;
    case RX_GGUF_I64: *v = (int64_t)load(p, 8); return true;
    default: return false;
    }
}

static bool float_at(rx_gguf_kind k, const uint8_t *p, double *v)
{
    uint64_t bits = k == RX_GGUF_F32 ? load(p, 4) : k == RX_GGUF_F64 ? load(p, 8) : 0;
    if (k == RX_GGUF_F64) {
        memcpy(v, &bits, 8);
    } else if (k == RX_GGUF_F32) {
        uint32_t b = (uint32_t)bits;
        float f;
        memcpy(&f, &b, 4);
        *v = f;
    } else {
        return false;
    }
    return true;
}

static unsigned elem_bytes(rx_gguf_kind k)
{
    switch (k) {
    case RX_GGUF_U8: case RX_GGUF_I8: case RX_GGUF_BOOL: return 1;
    case RX_GGUF_U16: case RX_GGUF_I16: return 2;
    case RX_GGUF_U32: case RX_GGUF_I32: case RX_GGUF_F32: return 4;
    default: return 8;
    }
}

RX_NORETURN static void wrong_kind(const rx_gguf *g, const char *key, rx_gguf_kind k, const char *wanted)
{
    rx_fail(g->ctx, RXE_FILE_CORRUPT, NULL, "GGUF: '%s' holds %s (%s) where %s is needed", key,
            k == RX_GGUF_U64 ? "a value out of range" : "a value of another type", kind_names[k], wanted);
}

const rx_gguf_kv *rx_gguf_find(const rx_gguf *g, const char *key)
{
    int64_t i = rx_names_find(&g->keys, key, strlen(key));
    return i < 0 ? NULL : &g->kvs[i];
}

static const rx_gguf_kv *need(const rx_gguf *g, const char *key)
{
    const rx_gguf_kv *kv = rx_gguf_find(g, key);
    if (!kv)
        rx_fail(g->ctx, RXE_NOT_FOUND, NULL, "GGUF: the key '%s' is missing", key);
    return kv;
}

int64_t rx_gguf_get_int(const rx_gguf *g, const char *key, int64_t def)
{
    const rx_gguf_kv *kv = rx_gguf_find(g, key);
    if (kv && !int_at(kv->kind, kv->at, &def))
        wrong_kind(g, key, kv->kind, "an integer");
    return def;
}

int64_t rx_gguf_need_int(const rx_gguf *g, const char *key)
{
    need(g, key);
    return rx_gguf_get_int(g, key, 0);
}

double rx_gguf_get_float(const rx_gguf *g, const char *key, double def)
{
    const rx_gguf_kv *kv = rx_gguf_find(g, key);
    if (kv && !float_at(kv->kind, kv->at, &def))
        wrong_kind(g, key, kv->kind, "a float");
    return def;
}

double rx_gguf_need_float(const rx_gguf *g, const char *key)
{
    need(g, key);
    return rx_gguf_get_float(g, key, 0);
}

bool rx_gguf_get_bool(const rx_gguf *g, const char *key, bool def)
{
    const rx_gguf_kv *kv = rx_gguf_find(g, key);
    if (!kv)
        return def;
    if (kv->kind != RX_GGUF_BOOL)
        wrong_kind(g, key, kv->kind, "a bool");
    return *kv->at != 0;
}

rx_view rx_gguf_get_str(const rx_gguf *g, const char *key)
{
    const rx_gguf_kv *kv = rx_gguf_find(g, key);
    if (!kv)
        return (rx_view){0};
    if (kv->kind != RX_GGUF_STR)
        wrong_kind(g, key, kv->kind, "a string");
    return kv->str;
}

rx_view rx_gguf_need_str(const rx_gguf *g, const char *key)
{
    need(g, key);
    return rx_gguf_get_str(g, key);
}

bool rx_gguf_get_array(const rx_gguf *g, const char *key, rx_gguf_array *out)
{
    const rx_gguf_kv *kv = rx_gguf_find(g, key);
    if (!kv)
        return false;
    if (kv->kind != RX_GGUF_ARRAY)
        wrong_kind(g, key, kv->kind, "an array");
    *out = kv->array;
    return true;
}

static const uint8_t *element(const rx_gguf *g, const rx_gguf_array *arr, uint64_t i)
{
    if (i >= arr->n)
        rx_fail(g->ctx, RXE_FILE_CORRUPT, NULL, "GGUF: an array has %llu elements; number %llu is needed",
                (unsigned long long)arr->n, (unsigned long long)i);
    return arr->kind == RX_GGUF_STR ? arr->at : arr->at + i * elem_bytes(arr->kind);
}

int64_t rx_gguf_array_int(const rx_gguf *g, const rx_gguf_array *arr, uint64_t i)
{
    int64_t v;
    if (!int_at(arr->kind, element(g, arr, i), &v))
        wrong_kind(g, "an array", arr->kind, "integers");
    return v;
}

double rx_gguf_array_float(const rx_gguf *g, const rx_gguf_array *arr, uint64_t i)
{
    double v;
    if (!float_at(arr->kind, element(g, arr, i), &v))
        wrong_kind(g, "an array", arr->kind, "floats");
    return v;
}

rx_view *rx_gguf_array_strings(const rx_gguf *g, const rx_gguf_array *arr, rx_arena *a)
{
    if (arr->kind != RX_GGUF_STR)
        wrong_kind(g, "an array", arr->kind, "strings");
    rx_view *v = RX_NEWN(a, rx_view, (size_t)arr->n);
    const uint8_t *p = arr->at;
    for (uint64_t i = 0; i < arr->n; i++) {
        v[i].n = (size_t)load(p, 8);   /* lengths were checked when the file was opened */
        v[i].at = (const char *)p + 8;
        p += 8 + v[i].n;
    }
    return v;
}
