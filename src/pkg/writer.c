/* writer.c: the compiler's side of the file format: collects records, lays them out, seals the file.
 *
 * Everything is numbered in order of creation and equal strings, constants and types share a number, so the bytes
 * depend on the sequence of calls alone. Labels are numbers of the current function until rx_pkgw_fn_end puts word
 * offsets in their place. Mistakes of the caller (a body twice, an operand list cut short) are found by rx_pkg_open,
 * which the compiler runs on the result. */
#include "pkg/pkg.h"

typedef struct piece { const void *at; size_t n; } piece;
typedef struct blob { RX_VEC(piece) pieces; size_t size; } blob;          /* pieces, each at a multiple of 64 */
struct rx_pkgw {
    relax_context *ctx;
    rx_arena *a;
    rx_map strings, ints, type_of; /* hash or value -> number + 1; strings with one hash are chained through `same` */
    RX_VEC(int32_t) same;              /* strings: next with the same hash, -1 */
    RX_VEC(uint32_t) str_at;
    RX_VEC(char) str;
    RX_VEC(int64_t) ints_v;
    RX_VEC(rx_pkg_type) types;
    RX_VEC(int32_t) tw;
    RX_VEC(rx_pkg_fn) fns;
    RX_VEC(rx_pkg_param) params;
    RX_VEC(rx_pkg_sym) syms;
    RX_VEC(int32_t) code;
    RX_VEC(rx_pkg_shape) shape;
    RX_VEC(rx_pkg_kernel) kernels;
    RX_VEC(uint8_t) phases;
    RX_VEC(rx_pkg_lib) libs;
    RX_VEC(rx_pkg_weight) weights;
    RX_VEC(rx_pkg_const) consts;
    blob data, native;                 /* memory of the caller */
    RX_VEC(rx_pkg_native) natives;
    RX_VEC(rx_pkg_pair) prov;
    RX_VEC(bool) begun;                /* per function */
    int32_t fn;                        /* being written, -1 none */
    RX_VEC(int32_t) labels;            /* of the current function: word offset, -1 not placed */
    RX_VEC(int32_t) uses;              /* words of `code` that hold a label */
};

rx_pkgw *rx_pkgw_new(relax_context *ctx, rx_arena *a)
{
    rx_pkgw *w = RX_NEW(a, rx_pkgw);
    w->ctx = ctx;
    w->a = a;
    w->fn = -1;
    rx_map_init(&w->strings, a);
    rx_map_init(&w->ints, a);
    rx_map_init(&w->type_of, a);
    rx_push(a, &w->str_at, 0);
    return w;
}

static void *number(int32_t i) { return (void *)(intptr_t)(i + 1); }
static int32_t number_of(const rx_map *m, uint64_t key) { return (int32_t)(intptr_t)rx_map_get(m, key) - 1; }

int32_t rx_pkgw_str(rx_pkgw *w, const char *s)
{
    size_t n = strlen(s) + 1;
    uint64_t h = rx_hash(s, n, 0);
    int32_t first = number_of(&w->strings, h), i = first;
    for (; i >= 0; i = w->same.at[i])
        if (w->str_at.at[i + 1] - w->str_at.at[i] == n && memcmp(w->str.at + w->str_at.at[i], s, n) == 0)
            return i;
    for (size_t k = 0; k < n; k++)
        rx_push(w->a, &w->str, s[k]);
    rx_push(w->a, &w->str_at, w->str.n);
    rx_push(w->a, &w->same, first);
    i = (int32_t)w->same.n - 1;
    rx_map_put(&w->strings, h, number(i));
    return i;
}

int32_t rx_pkgw_int(rx_pkgw *w, int64_t v)
{
    int32_t i = number_of(&w->ints, (uint64_t)v);
    if (i < 0) {
        rx_push(w->a, &w->ints_v, v);
        i = (int32_t)w->ints_v.n - 1;
        rx_map_put(&w->ints, (uint64_t)v, number(i));
    }
    return ~i;
}

int32_t rx_pkgw_double(rx_pkgw *w, double v)
{
    int64_t bits;
    memcpy(&bits, &v, sizeof bits);
    return rx_pkgw_int(w, bits);
}

/* --- types --- */
static int32_t add_type(rx_pkgw *w, rx_pkg_type t, const int32_t *words, int32_t nwords)
{
    uint64_t h = rx_hash(words, (size_t)nwords * sizeof *words,
                         rx_mix(rx_mix((uint64_t)t.kind, (uint64_t)t.dtype), (uint64_t)t.ndim));
    int32_t i = number_of(&w->type_of, h);
    if (i >= 0) {
        const rx_pkg_type *o = &w->types.at[i];
        if (o->kind == t.kind && o->dtype == t.dtype && o->ndim == t.ndim &&
            (nwords == 0 || memcmp(w->tw.at + o->first, words, (size_t)nwords * sizeof *words) == 0))
            return i;
    }
    t.first = (int32_t)w->tw.n;
    for (int32_t k = 0; k < nwords; k++)
        rx_push(w->a, &w->tw, words[k]);
    rx_push(w->a, &w->types, t);
    i = (int32_t)w->types.n - 1;
    rx_map_put(&w->type_of, h, number(i));
    return i;
}

static int32_t add_dims_type(rx_pkgw *w, rx_ptkind kind, relax_dtype dtype, int32_t ndim, const rx_pkgw_dim *dims)
{
    int32_t words[2 * RX_PKG_MAX_NDIM] = {0};
    if (ndim > RX_PKG_MAX_NDIM)
        rx_fail(w->ctx, RXE_LIMIT, NULL, "an executable holds tensors of at most %d dims, not %d", RX_PKG_MAX_NDIM,
                ndim);
    for (int32_t i = 0; dims && i < ndim; i++) {
        words[2 * i] = dims[i].mode;
        words[2 * i + 1] = dims[i].ref;
    }
    return add_type(w, (rx_pkg_type){kind, dtype, ndim, 0}, words, ndim < 0 ? 0 : 2 * ndim);
}

int32_t rx_pkgw_type_object(rx_pkgw *w) { return add_type(w, (rx_pkg_type){RX_PT_OBJECT, 0, 0, 0}, NULL, 0); }
int32_t rx_pkgw_type_func(rx_pkgw *w) { return add_type(w, (rx_pkg_type){RX_PT_FUNC, 0, 0, 0}, NULL, 0); }

int32_t rx_pkgw_type_prim(rx_pkgw *w, relax_dtype t, const rx_pkgw_dim *value)
{
    return add_dims_type(w, RX_PT_PRIM, t, value ? 1 : 0, value);
}

int32_t rx_pkgw_type_shape(rx_pkgw *w, int32_t ndim, const rx_pkgw_dim *dims)
{
    return add_dims_type(w, RX_PT_SHAPE, RELAX_DTYPE_UNKNOWN, ndim, dims);
}

int32_t rx_pkgw_type_tensor(rx_pkgw *w, relax_dtype t, int32_t ndim, const rx_pkgw_dim *dims)
{
    return add_dims_type(w, RX_PT_TENSOR, t, ndim, dims);
}

int32_t rx_pkgw_type_tuple(rx_pkgw *w, int32_t n, const int32_t *types)
{
    return add_type(w, (rx_pkg_type){RX_PT_TUPLE, 0, n, 0}, types, n < 0 ? 0 : n);
}

/* --- tables --- */
int32_t rx_pkgw_kernel(rx_pkgw *w, const char *name, const char *origin, int32_t nbufs, int32_t nsyms,
                       const uint8_t *parallel, int32_t nphases)
{
    rx_pkg_kernel k = {
        rx_pkgw_str(w, name), rx_pkgw_str(w, origin ? origin : ""), nbufs, nsyms, (int32_t)w->phases.n, nphases};
    for (int32_t i = 0; i < nphases; i++)
        rx_push(w->a, &w->phases, parallel[i] != 0);
    rx_push(w->a, &w->kernels, k);
    return (int32_t)w->kernels.n - 1;
}

int32_t rx_pkgw_lib(rx_pkgw *w, const char *name, int32_t kind)
{
    rx_pkg_lib l = {rx_pkgw_str(w, name), kind};
    for (uint32_t i = 0; i < w->libs.n; i++)
        if (w->libs.at[i].name == l.name && w->libs.at[i].kind == kind)
            return (int32_t)i;
    rx_push(w->a, &w->libs, l);
    return (int32_t)w->libs.n - 1;
}

int32_t rx_pkgw_weight(rx_pkgw *w, const char *name, const char *type)
{
    rx_pkg_weight t = {rx_pkgw_str(w, name), rx_pkgw_str(w, type)};
    for (uint32_t i = 0; i < w->weights.n; i++)
        if (w->weights.at[i].name == t.name)
            return (int32_t)i;
    rx_push(w->a, &w->weights, t);
    return (int32_t)w->weights.n - 1;
}

static int64_t append(rx_pkgw *w, blob *b, const void *p, size_t n)
{
    size_t at;
    if (!rx_size_align(b->size, RX_PKG_ALIGN, &at) || n > INT32_MAX - RX_PKG_ALIGN || at > INT32_MAX - RX_PKG_ALIGN - n)
        rx_fail(w->ctx, RXE_LIMIT, NULL, "constants and native code of an executable are limited to 2 GiB each");
    piece x = {p, n};
    rx_push(w->a, &b->pieces, x);
    b->size = at + n;
    return (int64_t)at;
}

int32_t rx_pkgw_const(rx_pkgw *w, relax_dtype t, int32_t ndim, const int64_t *dims, const void *data, size_t bytes)
{
    rx_pkgw_dim d[RX_PKG_MAX_NDIM];
    for (int32_t i = 0; i < ndim && i < RX_PKG_MAX_NDIM; i++)
        d[i] = (rx_pkgw_dim){RX_DIM_EQ, rx_pkgw_int(w, dims[i])};
    rx_pkg_const c = {0, (int64_t)bytes, rx_pkgw_type_tensor(w, t, ndim, d), 0};
    for (uint32_t i = 0; i < w->consts.n; i++)
        if (w->consts.at[i].type == c.type && w->consts.at[i].size == c.size &&
            (bytes == 0 || memcmp(w->data.pieces.at[i].at, data, bytes) == 0))
            return (int32_t)i;
    c.offset = append(w, &w->data, data, bytes);
    rx_push(w->a, &w->consts, c);
    return (int32_t)w->consts.n - 1;
}

void rx_pkgw_native(rx_pkgw *w, const relax_target *t, const void *so, size_t n)
{
    rx_pkg_native x = {0, (int64_t)n, rx_pkgw_str(w, t->name), (uint32_t)t->arch, t->features, w->phases.n};
    x.offset = append(w, &w->native, so, n);
    rx_push(w->a, &w->natives, x);
}

void rx_pkgw_provenance(rx_pkgw *w, const char *key, const char *value)
{
    rx_pkg_pair x = {rx_pkgw_str(w, key), rx_pkgw_str(w, value)};
    rx_push(w->a, &w->prov, x);
}

/* --- functions. Records of parameters, symbols and code must lie in the order of functions; bodies may be written in
 * any: rx_pkgw_finish puts them in order. --- */
int32_t rx_pkgw_fn(rx_pkgw *w, const char *name, int32_t flags)
{
    rx_pkg_fn f = {.name = rx_pkgw_str(w, name), .flags = flags, .mem_ref = RX_REF_NONE};
    f.result = f.mem_text = rx_pkgw_str(w, "");
    rx_push(w->a, &w->fns, f);
    rx_push(w->a, &w->begun, false);
    return (int32_t)w->fns.n - 1;
}

static rx_pkg_fn *current(rx_pkgw *w)
{
    RX_CHECK(w->ctx, w->fn >= 0);
    return &w->fns.at[w->fn];
}

void rx_pkgw_fn_begin(rx_pkgw *w, int32_t fn)
{
    RX_CHECK(w->ctx, w->fn < 0 && !w->begun.at[fn]);
    w->fn = fn;
    w->begun.at[fn] = true;
    rx_pkg_fn *f = current(w);
    f->param0 = (int32_t)w->params.n;
    f->sym0 = (int32_t)w->syms.n;
    f->code0 = (int32_t)w->code.n;
    w->labels.n = w->uses.n = 0;
}

void rx_pkgw_param(rx_pkgw *w, const char *name, const char *type, int32_t flags, int32_t weight)
{
    rx_pkg_fn *f = current(w);
    RX_CHECK(w->ctx, f->nregs == f->nparams);
    rx_pkg_param p = {rx_pkgw_str(w, name), rx_pkgw_str(w, type), flags, weight};
    rx_push(w->a, &w->params, p);
    f->nparams++;
    f->nregs++;
}

int32_t rx_pkgw_sym(rx_pkgw *w, const char *name, int32_t slot, int64_t lo, int64_t hi, int64_t divisor, int32_t param,
                    int32_t dim)
{
    rx_pkg_sym s = {lo, hi, divisor, rx_pkgw_str(w, name), slot, param, dim};
    rx_push(w->a, &w->syms, s);
    return current(w)->nsyms++;
}

int32_t rx_pkgw_reg(rx_pkgw *w) { return current(w)->nregs++; }
int32_t rx_pkgw_slot(rx_pkgw *w) { return current(w)->nslots++; }

int32_t rx_pkgw_label(rx_pkgw *w)
{
    rx_push(w->a, &w->labels, -1);
    return (int32_t)w->labels.n - 1;
}

void rx_pkgw_place(rx_pkgw *w, int32_t label)
{
    w->labels.at[label] = (int32_t)w->code.n - current(w)->code0;
}

void rx_pkgw_op(rx_pkgw *w, rx_bc op, ...)
{
    va_list ap;
    va_start(ap, op);
    rx_push(w->a, &w->code, (int32_t)op);
    for (const char *letter = rx_bc_operands[op]; *letter; letter++) {
        int32_t x = va_arg(ap, int);
        if (*letter == 'j')
            rx_push(w->a, &w->uses, (int32_t)w->code.n);
        rx_push(w->a, &w->code, x);
        if (*letter == 'p') {
            rx_push(w->a, &w->code, va_arg(ap, int));
        } else if (*letter == 'R' || *letter == 'B' || *letter == 'V') {
            const int32_t *at = va_arg(ap, const int32_t *);
            for (int32_t i = 0; i < x; i++)
                rx_push(w->a, &w->code, at[i]);
        }
    }
    va_end(ap);
}

int32_t rx_pkgw_shape(rx_pkgw *w, rx_sh op, int32_t dst, int32_t a, int32_t b, int32_t c)
{
    rx_pkg_shape s = {(int32_t)op, dst, a, rx_sh_arity[op] > 1 ? b : 0, rx_sh_arity[op] > 2 ? c : 0};
    rx_push(w->a, &w->shape, s);
    return (int32_t)w->shape.n - 1;
}

int32_t rx_pkgw_shape_count(const rx_pkgw *w) { return (int32_t)w->shape.n; }

void rx_pkgw_memory(rx_pkgw *w, const char *formula, int32_t first, int32_t count, int32_t ref)
{
    rx_pkg_fn *f = current(w);
    f->mem_text = rx_pkgw_str(w, formula);
    f->mem0 = first;
    f->nmem = count;
    f->mem_ref = ref;
}

void rx_pkgw_fn_end(rx_pkgw *w, const char *result_type, int32_t nouts)
{
    rx_pkg_fn *f = current(w);
    f->result = rx_pkgw_str(w, result_type);
    f->nouts = nouts;
    f->ncode = (int32_t)w->code.n - f->code0;
    for (uint32_t i = 0; i < w->uses.n; i++) {
        int32_t *word = &w->code.at[w->uses.at[i]];
        RX_CHECK(w->ctx, *word >= 0 && *word < (int32_t)w->labels.n && w->labels.at[*word] >= 0);
        *word = w->labels.at[*word];
    }
    w->fn = -1;
}

/* --- layout --- */
static void reorder(rx_pkgw *w)
{
    RX_VEC(rx_pkg_param) params = {0};
    RX_VEC(rx_pkg_sym) syms = {0};
    RX_VEC(int32_t) code = {0};
    for (uint32_t i = 0; i < w->fns.n; i++) {
        rx_pkg_fn *f = &w->fns.at[i];
        RX_CHECK(w->ctx, w->begun.at[i]);
        int32_t param0 = f->param0, sym0 = f->sym0, code0 = f->code0;
        f->param0 = (int32_t)params.n;
        f->sym0 = (int32_t)syms.n;
        f->code0 = (int32_t)code.n;
        for (int32_t k = 0; k < f->nparams; k++)
            rx_push(w->a, &params, w->params.at[param0 + k]);
        for (int32_t k = 0; k < f->nsyms; k++)
            rx_push(w->a, &syms, w->syms.at[sym0 + k]);
        for (int32_t k = 0; k < f->ncode; k++)
            rx_push(w->a, &code, w->code.at[code0 + k]);
    }
    w->params.at = params.at;
    w->syms.at = syms.at;
    w->code.at = code.at;
}

/* a section: bytes in one piece, or a blob */
typedef struct part { uint32_t kind; const void *at; size_t size; const blob *b; } part;

static size_t place_parts(rx_pkgw *w, const part *parts, uint32_t n, rx_pkg_section *table)
{
    size_t at = sizeof(rx_pkg_header) + n * sizeof(rx_pkg_section);
    for (uint32_t i = 0; i < n; i++) {
        size_t start;
        if (!rx_size_align(at, RX_PKG_ALIGN, &start) || !rx_size_add(start, parts[i].size, &at))
            rx_fail(w->ctx, RXE_LIMIT, NULL, "the executable is too large");
        table[i] = (rx_pkg_section){parts[i].kind, 1, start, parts[i].size, 0};
    }
    return at;
}

static void copy_part(uint8_t *to, const part *p)
{
    if (p->at)
        memcpy(to, p->at, p->size);
    size_t at = 0;
    for (uint32_t i = 0; p->b && i < p->b->pieces.n; i++) {
        const piece *x = &p->b->pieces.at[i];
        rx_size_align(at, RX_PKG_ALIGN, &at);
        if (x->n)
            memcpy(to + at, x->at, x->n);
        at += x->n;
    }
}

void rx_pkgw_finish(rx_pkgw *w, uint8_t **bytes, size_t *size)
{
    RX_CHECK(w->ctx, w->fn < 0);
    reorder(w);
    part parts[RX_SEC_COUNT];
    uint32_t n = 0;
#define PART(kind, vec) \
    if ((vec).n)        \
        parts[n++] = (part){kind, (vec).at, (vec).n * sizeof *(vec).at, NULL};
#define BLOB(kind, x) \
    if ((x).size)     \
        parts[n++] = (part){kind, NULL, (x).size, &(x)};
    PART(RX_SEC_STR_AT, w->str_at)
    PART(RX_SEC_STR, w->str)
    PART(RX_SEC_INTS, w->ints_v)
    PART(RX_SEC_TYPES, w->types)
    PART(RX_SEC_TYPE_WORDS, w->tw)
    PART(RX_SEC_FNS, w->fns)
    PART(RX_SEC_PARAMS, w->params)
    PART(RX_SEC_SYMS, w->syms)
    PART(RX_SEC_CODE, w->code)
    PART(RX_SEC_SHAPE, w->shape)
    PART(RX_SEC_KERNELS, w->kernels)
    PART(RX_SEC_PHASES, w->phases)
    PART(RX_SEC_LIBS, w->libs)
    PART(RX_SEC_WEIGHTS, w->weights)
    PART(RX_SEC_CONSTS, w->consts)
    BLOB(RX_SEC_DATA, w->data)
    PART(RX_SEC_NATIVES, w->natives)
    BLOB(RX_SEC_NATIVE, w->native)
    PART(RX_SEC_PROVENANCE, w->prov)
#undef PART
#undef BLOB
    rx_pkg_section table[RX_SEC_COUNT];
    *size = place_parts(w, parts, n, table);
    *bytes = rx_arena_alloc(w->a, *size, RX_PKG_ALIGN);
    rx_pkg_header h = {.magic = {'R', 'E', 'L', 'A', 'X', 'E', 'X', 'E'},
                       .endian = RX_PKG_ENDIAN,
                       .major = RX_PKG_MAJOR,
                       .minor = RX_PKG_MINOR,
                       .file_size = *size,
                       .nsections = n};
    memcpy(*bytes, &h, sizeof h);
    memcpy(*bytes + sizeof h, table, n * sizeof *table);
    for (uint32_t i = 0; i < n; i++)
        copy_part(*bytes + table[i].offset, &parts[i]);
    rx_pkg_seal(*bytes, *size);
}
