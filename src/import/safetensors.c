/* safetensors.c: opens a safetensors file that lies in memory.
 *
 * Layout: u64 length of the header, a JSON object (name -> {dtype, shape, data_offsets}, optionally __metadata__ with
 * strings), then the data. Input is untrusted; the rules of the format are all enforced: header of at most
 * 100 MB that begins with '{', offsets in order inside the data, exactly as long as dtype and shape say, no overlap, no
 * hole, no name twice. */
#include "import/import.h"

#define MAX_HEADER 100000000u
#define MAX_DIMS 64
/* no member is shorter: "":{"dtype":"U8","shape":[],"data_offsets":[0,0]} has 49 bytes */
#define MIN_MEMBER 46

typedef struct st_dtype { const char *name; relax_dtype dtype; uint8_t bits; } st_dtype;
static const st_dtype dtypes[] = {
    {"BOOL", RELAX_BOOL, 8}, {"U8", RELAX_U8, 8}, {"I8", RELAX_I8, 8}, {"I16", RELAX_I16, 16}, {"U16", RELAX_U16, 16},
    {"F16", RELAX_F16, 16}, {"BF16", RELAX_BF16, 16}, {"I32", RELAX_I32, 32}, {"U32", RELAX_U32, 32},
    {"F32", RELAX_F32, 32}, {"F64", RELAX_F64, 64}, {"I64", RELAX_I64, 64}, {"U64", RELAX_U64, 64},
    {"F8_E4M3", RELAX_F8E4M3, 8}, {"F8_E5M2", RELAX_F8E5M2, 8}, {"F8_E8M0", RELAX_DTYPE_UNKNOWN, 8},
    {"F4", RELAX_DTYPE_UNKNOWN, 4}, {"F6_E2M3", RELAX_DTYPE_UNKNOWN, 6}, {"F6_E3M2", RELAX_DTYPE_UNKNOWN, 6},
    {"C64", RELAX_DTYPE_UNKNOWN, 64},
};

typedef struct reader {
    relax_context *ctx;
    rx_arena *a;
    rx_json j;
    rx_safetensors *s;
    RX_VEC(rx_st_tensor) tensors;
    RX_VEC(rx_span) spans;             /* of the data, one a tensor */
    RX_VEC(rx_view) keys, values;
    uint32_t room;                     /* most members that the header can hold */
} reader;

static const char *cstr(reader *r, rx_view v)
{
    if (memchr(v.at, 0, v.n))
        rx_fail(r->ctx, RXE_FILE_CORRUPT, NULL, "safetensors: a name holds a NUL");
    char *p = rx_arena_alloc(r->a, v.n + 1, 1);
    memcpy(p, v.at, v.n);
    return p;
}

static const st_dtype *read_dtype(reader *r, rx_st_tensor *t)
{
    rx_view v = rx_json_string(&r->j);
    for (size_t i = 0; i < RX_COUNT(dtypes); i++) {
        if (rx_view_is(v, dtypes[i].name)) {
            t->dtype = dtypes[i].dtype;
            t->dtype_name = dtypes[i].name;
            return &dtypes[i];
        }
    }
    rx_fail(r->ctx, RXE_UNSUPPORTED, NULL, "safetensors: the tensor '%s' has the unknown dtype '%.*s'", t->name,
            (int)RX_MIN(v.n, 32), v.at);
}

static void read_shape(reader *r, rx_st_tensor *t)
{
    int64_t dims[MAX_DIMS];
    rx_json_enter(&r->j, '[');
    t->ndim = 0;
    while (rx_json_next(&r->j, ']')) {
        uint64_t d = rx_json_uint(&r->j);
        if (t->ndim == MAX_DIMS || d > INT64_MAX)
            rx_fail(r->ctx, RXE_FILE_CORRUPT, NULL, "safetensors: the shape of '%s' is too large", t->name);
        dims[t->ndim++] = (int64_t)d;
    }
    t->dims = RX_NEWN(r->a, int64_t, t->ndim);
    memcpy(t->dims, dims, t->ndim * sizeof *dims);
}

static void read_offsets(reader *r, rx_span *s)
{
    uint64_t v[2] = {0};
    uint32_t n = 0;
    rx_json_enter(&r->j, '[');
    while (rx_json_next(&r->j, ']')) {
        uint64_t x = rx_json_uint(&r->j);
        if (n < 2)
            v[n] = x;
        n++;
    }
    if (n != 2)
        rx_fail(r->ctx, RXE_FILE_CORRUPT, NULL, "safetensors: data_offsets must be two numbers");
    s->begin = v[0];
    s->end = v[1];
}

/* product of the dims, also checked with zero dims counted as one so that strides fit */
static bool count_values(rx_st_tensor *t, unsigned bits, int64_t *n_bits)
{
    int64_t n = 1, wide = 1;
    for (uint32_t i = 0; i < t->ndim; i++)
        if (!rx_mul_ok(n, t->dims[i], &n) || !rx_mul_ok(wide, RX_MAX(t->dims[i], 1), &wide))
            return false;
    t->n_values = n;
    return rx_mul_ok(wide, bits, &wide) && rx_mul_ok(n, bits, n_bits);
}

static void read_tensor(reader *r, rx_view name)
{
    rx_st_tensor t = {.name = cstr(r, name)};
    rx_span span = {.owner = r->tensors.n};
    const st_dtype *ty = NULL;
    unsigned seen = 0;                 /* bit a member: dtype, shape, data_offsets */
    rx_json_enter(&r->j, '{');
    while (rx_json_next(&r->j, '}')) {
        rx_view k = rx_json_key(&r->j);
        unsigned bit = rx_view_is(k, "dtype") ? 1 : rx_view_is(k, "shape") ? 2 : rx_view_is(k, "data_offsets") ? 4 : 0;
        if (seen & bit)
            rx_fail(r->ctx, RXE_FILE_CORRUPT, NULL, "safetensors: '%s' says %.*s twice", t.name, (int)k.n, k.at);
        seen |= bit;
        if (bit == 1)
            ty = read_dtype(r, &t);
        else if (bit == 2)
            read_shape(r, &t);
        else if (bit == 4)
            read_offsets(r, &span);
        else
            rx_json_skip(&r->j);
    }
    int64_t bits = 0;
    if (seen != 7)
        rx_fail(r->ctx, RXE_FILE_CORRUPT, NULL, "safetensors: the tensor '%s' lacks dtype, shape or data_offsets",
                t.name);
    if (!count_values(&t, ty->bits, &bits) || bits % 8 != 0)
        rx_fail(r->ctx, RXE_FILE_CORRUPT, NULL, "safetensors: the shape of '%s' is too large or no whole bytes",
                t.name);
    if (span.end < span.begin || span.end - span.begin != (uint64_t)(bits / 8))
        rx_fail(r->ctx, RXE_FILE_CORRUPT, NULL, "safetensors: the data_offsets of '%s' do not fit its dtype and shape",
                t.name);
    rx_push(r->a, &r->tensors, t);
    rx_push(r->a, &r->spans, span);
}

static void read_metadata(reader *r)
{
    rx_json_enter(&r->j, '{');
    while (rx_json_next(&r->j, '}')) {
        rx_view k = rx_json_key(&r->j), v = rx_json_string(&r->j);
        rx_push(r->a, &r->keys, k);
        rx_push(r->a, &r->values, v);
    }
}

static void read_header(reader *r)
{
    bool meta = false;
    rx_json_enter(&r->j, '{');
    while (rx_json_next(&r->j, '}')) {
        rx_view name = rx_json_key(&r->j);
        bool is_meta = rx_view_is(name, "__metadata__");
        if (is_meta ? meta : r->s->names.n >= r->room || !rx_names_add(&r->s->names, name.at, name.n))
            rx_fail(r->ctx, RXE_FILE_CORRUPT, NULL, "safetensors: the name '%.*s' stands twice",
                    (int)RX_MIN(name.n, 256), name.at);
        meta |= is_meta;
        if (is_meta)
            read_metadata(r);
        else
            read_tensor(r, name);
    }
    rx_json_end(&r->j);
}

static void place_tensors(reader *r, const uint8_t *data, uint64_t size)
{
    uint64_t at = 0;
    rx_spans_sort(r->spans.at, r->spans.n);
    for (uint32_t i = 0; i < r->spans.n; i++) {
        rx_span s = r->spans.at[i];
        rx_st_tensor *t = &r->tensors.at[s.owner];
        if (s.begin != at || s.end > size)
            rx_fail(r->ctx, RXE_FILE_CORRUPT, NULL, "safetensors: the data of '%s' %s", t->name,
                    s.end > size   ? "lies outside the file"
                    : s.begin < at ? "overlaps another tensor"
                                   : "leaves a hole");
        t->data = data + s.begin;
        t->bytes = (size_t)(s.end - s.begin);
        at = s.end;
    }
    if (at != size)
        rx_fail(r->ctx, RXE_FILE_CORRUPT, NULL, "safetensors: bytes of the file belong to no tensor");
}

rx_safetensors *rx_safetensors_open(relax_context *ctx, rx_arena *a, const uint8_t *bytes, size_t n)
{
    uint64_t header = 0;
    if (n < 9 || bytes[8] != '{')
        rx_fail(ctx, RXE_FILE_MAGIC, NULL, "not a safetensors file");
    for (int i = 8; i-- > 0;)
        header = header << 8 | bytes[i];
    if (header > MAX_HEADER)
        rx_fail(ctx, RXE_FILE_CORRUPT, NULL, "safetensors: the header is longer than 100 MB");
    if (header > n - 8)
        rx_fail(ctx, RXE_FILE_CORRUPT, NULL, "safetensors: the file ends inside its header");
    reader r = {.ctx = ctx, .a = a, .s = RX_NEW(a, rx_safetensors)};
    rx_json_init(&r.j, ctx, a, (const char *)bytes + 8, (size_t)header);
    r.room = (uint32_t)(header / MIN_MEMBER + 2);
    rx_names_init(&r.s->names, a, r.room);
    read_header(&r);
    place_tensors(&r, bytes + 8 + header, n - 8 - header);
    r.s->tensors = r.tensors.at;
    r.s->n_tensors = r.tensors.n;
    r.s->meta_keys = r.keys.at;
    r.s->meta_values = r.values.at;
    r.s->n_meta = r.keys.n;
    return r.s;
}

const rx_st_tensor *rx_safetensors_find(const rx_safetensors *s, const char *name)
{
    int64_t i = rx_names_find(&s->names, name, strlen(name));
    return i < 0 ? NULL : &s->tensors[i];
}
