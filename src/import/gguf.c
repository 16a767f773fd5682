/* gguf.c: opens a GGUF file (versions 2 and 3, little-endian) that lies in memory.
 *
 * Input: untrusted bytes. Output: a table of metadata entries and one of tensors, both with an index by name; values
 * stay where they are in the file. Layout: magic, version, two counts, entries, tensor descriptions, padding to
 * general.alignment, tensor data.
 * Traps: a count is believed only as far as the bytes left can hold that many of the smallest records, so no
 * allocation exceeds a small multiple of the file; offsets are compared by subtraction so that nothing wraps; arrays
 * of arrays are refused, so nothing recurses. */
#include "import/import.h"

#define MAX_DIMS 4
#define MAX_KEY 65535u
#define MAX_ALIGN (1u << 26)

/* bytes of the smallest possible record: a name of one byte, then the fixed part */
enum { MIN_KV = 8 + 1 + 4 + 1, MIN_TENSOR = 8 + 1 + 4 + 4 + 8, MIN_STR = 8 };

static const rx_ggml_type types[RX_GGML_TYPES] = {
#define X(id, name, values, bytes, dec) [id] = {#name, values, bytes, dec},
#include "import/types.def"
#undef X
};

/* bytes of a scalar of each kind, 0: not a scalar */
static const uint8_t kind_bytes[RX_GGUF_KINDS] = {
    [RX_GGUF_U8] = 1,  [RX_GGUF_I8] = 1,  [RX_GGUF_U16] = 2,  [RX_GGUF_I16] = 2, [RX_GGUF_U32] = 4, [RX_GGUF_I32] = 4,
    [RX_GGUF_F32] = 4, [RX_GGUF_BOOL] = 1, [RX_GGUF_U64] = 8, [RX_GGUF_I64] = 8, [RX_GGUF_F64] = 8,
};

const rx_ggml_type *rx_ggml_type_info(uint32_t id)
{
    return id < RX_GGML_TYPES && types[id].name ? &types[id] : NULL;
}

int64_t rx_ggml_type_find(const char *name)
{
    for (uint32_t i = 0; i < RX_GGML_TYPES; i++)
        if (types[i].name && strcmp(types[i].name, name) == 0)
            return i;
    return -1;
}

typedef struct cursor { rx_gguf *g; size_t i; } cursor;     /* i <= g->n always */

static size_t left(const cursor *c)
{
    return c->g->n - c->i;
}

/* the next n bytes */
static const uint8_t *take(cursor *c, uint64_t n, const char *what)
{
    if (n > left(c))
        rx_fail(c->g->ctx, RXE_FILE_CORRUPT, NULL, "GGUF: the file ends inside %s at byte %llu (%llu more needed)",
                what, (unsigned long long)c->i, (unsigned long long)(n - left(c)));
    const uint8_t *p = c->g->bytes + c->i;
    c->i += (size_t)n;
    return p;
}

static uint64_t take_uint(cursor *c, unsigned bytes, const char *what)
{
    const uint8_t *p = take(c, bytes, what);
    uint64_t v = 0;
    for (unsigned i = bytes; i-- > 0;)
        v = v << 8 | p[i];
    return v;
}

static rx_view take_str(cursor *c, const char *what)
{
    uint64_t n = take_uint(c, 8, what);
    return (rx_view){(const char *)take(c, n, what), (size_t)n};
}

/* a key or a tensor's name: UTF-8 without NUL, not empty */
static rx_view take_name(cursor *c, const char *what)
{
    size_t at = c->i;
    rx_view s = take_str(c, what);
    if (s.n == 0 || s.n > MAX_KEY || memchr(s.at, 0, s.n) || rx_utf8_valid(s.at, s.n) != s.n)
        rx_fail(c->g->ctx, RXE_FILE_CORRUPT, NULL, "GGUF: %s at byte %llu is empty, too long or not UTF-8", what,
                (unsigned long long)at);
    return s;
}

static uint32_t take_count(cursor *c, uint64_t count, size_t smallest, const char *what)
{
    if (count > left(c) / smallest || count > UINT32_MAX / 4)
        rx_fail(c->g->ctx, RXE_FILE_CORRUPT, NULL, "GGUF: %llu %s cannot fit in the %llu bytes left in the file",
                (unsigned long long)count, what, (unsigned long long)left(c));
    return (uint32_t)count;
}

static rx_gguf_kind take_kind(cursor *c, rx_view key)
{
    uint64_t k = take_uint(c, 4, "a value's type");
    if (k >= RX_GGUF_KINDS)
        rx_fail(c->g->ctx, RXE_FILE_CORRUPT, NULL, "GGUF: '%.*s' has the unknown value type %llu", (int)key.n, key.at,
                (unsigned long long)k);
    return (rx_gguf_kind)k;
}

static rx_gguf_array take_array(cursor *c, rx_view key)
{
    rx_gguf_array arr = {.kind = take_kind(c, key)};
    arr.n = take_uint(c, 8, "an array's length");
    arr.at = c->g->bytes + c->i;
    if (arr.kind == RX_GGUF_ARRAY)
        rx_fail(c->g->ctx, RXE_UNSUPPORTED, NULL, "GGUF: '%.*s' is an array of arrays", (int)key.n, key.at);
    size_t each = kind_bytes[arr.kind];
    if (each) {
        if (arr.n > left(c) / each)
            rx_fail(c->g->ctx, RXE_FILE_CORRUPT, NULL, "GGUF: the array '%.*s' is longer than the file", (int)key.n,
                    key.at);
        take(c, arr.n * each, "an array");
    } else {
        take_count(c, arr.n, MIN_STR, "strings of an array");
        for (uint64_t i = 0; i < arr.n; i++)
            take_str(c, "a string of an array");
    }
    arr.bytes = (size_t)(c->g->bytes + c->i - arr.at);
    return arr;
}

static void read_kv(cursor *c, rx_gguf_kv *kv)
{
    rx_view key = take_name(c, "a key");
    if (!rx_names_add(&c->g->keys, key.at, key.n))
        rx_fail(c->g->ctx, RXE_FILE_CORRUPT, NULL, "GGUF: the key '%.*s' stands twice in the file", (int)key.n, key.at);
    kv->kind = take_kind(c, key);
    kv->at = c->g->bytes + c->i;
    if (kv->kind == RX_GGUF_STR)
        kv->str = take_str(c, "a string");
    else if (kv->kind == RX_GGUF_ARRAY)
        kv->array = take_array(c, key);
    else
        take(c, kind_bytes[kv->kind], "a value");
    if (kv->kind == RX_GGUF_BOOL && *kv->at > 1)
        rx_fail(c->g->ctx, RXE_FILE_CORRUPT, NULL, "GGUF: '%.*s' is neither true nor false", (int)key.n, key.at);
}

/* values and bytes of a tensor from its dims; false when they overflow or the rows are no whole blocks */
static bool tensor_size(rx_gguf_tensor *t, const rx_ggml_type *ty)
{
    uint64_t row = t->ndim ? (uint64_t)t->dims[t->ndim - 1] : 1;
    if (row % ty->block_values != 0)
        return false;
    /* also with a zero dim no partial product may overflow, so that strides always fit */
    int64_t n = 1, bytes, nonzero = 1;
    for (uint32_t i = 0; i < t->ndim; i++)
        if (!rx_mul_ok(n, t->dims[i], &n) || !rx_mul_ok(nonzero, RX_MAX(t->dims[i], 1), &nonzero))
            return false;
    if (!rx_mul_ok(nonzero, ty->block_bytes, &bytes))
        return false;
    t->n_values = n;
    uint64_t size = (uint64_t)n / ty->block_values * ty->block_bytes;
    t->bytes = (size_t)size;
    return t->bytes == size;
}

/* Reads one description; the offset (relative to the data section) is returned. */
static uint64_t read_tensor(cursor *c, rx_gguf_tensor *t)
{
    relax_context *ctx = c->g->ctx;
    rx_view name = take_name(c, "a tensor's name");
    char *copy = rx_arena_alloc(c->g->arena, name.n + 1, 1);
    memcpy(copy, name.at, name.n);
    t->name = copy;
    if (!rx_names_add(&c->g->tensor_names, name.at, name.n))
        rx_fail(ctx, RXE_FILE_CORRUPT, NULL, "GGUF: the tensor '%s' stands twice in the file", copy);
    uint64_t ndim = take_uint(c, 4, "a tensor's rank");
    if (ndim > MAX_DIMS)
        rx_fail(ctx, RXE_FILE_CORRUPT, NULL, "GGUF: the tensor '%s' has %llu dims; at most %d are allowed", copy,
                (unsigned long long)ndim, MAX_DIMS);
    t->ndim = (uint32_t)ndim;
    for (uint32_t i = t->ndim; i-- > 0;) {
        uint64_t d = take_uint(c, 8, "a tensor's dims");
        if (d > INT64_MAX)
            rx_fail(ctx, RXE_FILE_CORRUPT, NULL, "GGUF: a dim of the tensor '%s' is too large", copy);
        t->dims[i] = (int64_t)d;
    }
    uint64_t type = take_uint(c, 4, "a tensor's type");
    const rx_ggml_type *ty = type < RX_GGML_TYPES ? rx_ggml_type_info((uint32_t)type) : NULL;
    if (!ty)
        rx_fail(ctx, RXE_UNSUPPORTED, NULL, "GGUF: the tensor '%s' has the unknown type %llu", copy,
                (unsigned long long)type);
    t->type = (uint32_t)type;
    if (!tensor_size(t, ty))
        rx_fail(ctx, RXE_FILE_CORRUPT, NULL, "GGUF: the dims of the tensor '%s' do not fit its type %s", copy,
                ty->name);
    return take_uint(c, 8, "a tensor's offset");
}

/* where the data section begins */
static size_t data_start(cursor *c)
{
    size_t at;
    if (!rx_size_align(c->i, c->g->alignment, &at) || at > c->g->n) {
        if (c->g->n_tensors)
            rx_fail(c->g->ctx, RXE_FILE_CORRUPT, NULL, "GGUF: the file ends before its tensors");
        return c->g->n;
    }
    return at;
}

/* Binds each tensor to its bytes; spans hold the relative offsets in begin. */
static void place_tensors(rx_gguf *g, rx_span *spans, size_t start)
{
    size_t room = g->n - start;
    for (uint32_t i = 0; i < g->n_tensors; i++) {
        rx_gguf_tensor *t = &g->tensors[i];
        uint64_t off = spans[i].begin;
        if (off % g->alignment != 0)
            rx_fail(g->ctx, RXE_FILE_CORRUPT, NULL, "GGUF: the offset of the tensor '%s' is not a multiple of %u",
                    t->name, g->alignment);
        if (off > room || t->bytes > room - off)
            rx_fail(g->ctx, RXE_FILE_CORRUPT, NULL, "GGUF: the data of the tensor '%s' lies outside the file", t->name);
        t->data = g->bytes + start + off;
        spans[i].end = off + t->bytes;
        spans[i].owner = i;
    }
    rx_spans_sort(spans, g->n_tensors);
    const rx_span *prev = NULL;
    for (uint32_t i = 0; i < g->n_tensors; i++) {
        if (spans[i].begin == spans[i].end)
            continue;
        if (prev && spans[i].begin < prev->end)
            rx_fail(g->ctx, RXE_FILE_CORRUPT, NULL, "GGUF: the data of '%s' and '%s' overlap",
                    g->tensors[prev->owner].name, g->tensors[spans[i].owner].name);
        prev = &spans[i];
    }
}

static void read_version(cursor *c)
{
    relax_context *ctx = c->g->ctx;
    uint32_t v = (uint32_t)take_uint(c, 4, "the header");
    if ((v & 0xFFFF) == 0 && v != 0)
        rx_fail(ctx, RXE_UNSUPPORTED, NULL, "GGUF: the file is big-endian");
    if (v > 3)
        rx_fail(ctx, RXE_FILE_VERSION, NULL, "GGUF: version %u is newer than what is known (3)", v);
    if (v < 2)
        rx_fail(ctx, RXE_UNSUPPORTED, NULL, "GGUF: version %u is not supported (2 and 3 are)", v);
    c->g->version = v;
}

static void read_alignment(rx_gguf *g)
{
    int64_t a = rx_gguf_get_int(g, "general.alignment", 32);
    if (a < 1 || a > MAX_ALIGN || (a & (a - 1)) != 0)
        rx_fail(g->ctx, RXE_FILE_CORRUPT, NULL, "GGUF: general.alignment %lld is not a power of two up to %u",
                (long long)a, MAX_ALIGN);
    g->alignment = (uint32_t)a;
}

rx_gguf *rx_gguf_open(relax_context *ctx, rx_arena *a, const uint8_t *bytes, size_t n)
{
    rx_gguf *g = RX_NEW(a, rx_gguf);
    *g = (rx_gguf){.ctx = ctx, .arena = a, .bytes = bytes, .n = n};
    cursor c = {.g = g};
    if (n < 4 || memcmp(bytes, "GGUF", 4) != 0)
        rx_fail(ctx, RXE_FILE_MAGIC, NULL, "not a GGUF file");
    take(&c, 4, "the header");
    read_version(&c);
    uint64_t n_tensors = take_uint(&c, 8, "the header"), n_kv = take_uint(&c, 8, "the header");
    take_count(&c, n_kv, MIN_KV, "metadata entries");
    g->n_tensors = take_count(&c, n_tensors, MIN_TENSOR, "tensors");
    rx_names_init(&g->keys, a, (uint32_t)n_kv);
    g->kvs = RX_NEWN(a, rx_gguf_kv, n_kv);
    for (uint64_t i = 0; i < n_kv; i++)
        read_kv(&c, &g->kvs[i]);
    read_alignment(g);
    take_count(&c, n_tensors, MIN_TENSOR, "tensors");
    rx_names_init(&g->tensor_names, a, g->n_tensors);
    g->tensors = RX_NEWN(a, rx_gguf_tensor, g->n_tensors);
    rx_span *spans = RX_NEWN(a, rx_span, g->n_tensors);
    for (uint32_t i = 0; i < g->n_tensors; i++)
        spans[i].begin = read_tensor(&c, &g->tensors[i]);
    place_tensors(g, spans, data_start(&c));
    return g;
}

const rx_gguf_tensor *rx_gguf_find_tensor(const rx_gguf *g, const char *name)
{
    int64_t i = rx_names_find(&g->tensor_names, name, strlen(name));
    return i < 0 ? NULL : &g->tensors[i];
}
