/* builtin.c: the functions under "rx.", described in rt.h.
 *
 * Order: every element is mapped to a 64-bit key whose unsigned order is the order wanted (floats by their bits, -0 as
 * +0, any NaN as the largest; descending: the complement), so one merge sort of (key, position) pairs serves all data
 * types and is stable. topk keeps a heap of k pairs when k is small. Scratch memory is the VM's recycled tensors. */
#include "rt/rt_int.h"

#include <stdio.h>

typedef struct pair { uint64_t key; int64_t at; } pair;

static uint64_t key_of(relax_dtype t, const void *p)
{
    if (t == RELAX_U64) {
        uint64_t u;
        memcpy(&u, p, sizeof u);
        return u;
    }
    if (!rx_dtype_is_float(t))
        return (uint64_t)rx_load_i64(t, p) ^ (uint64_t)1 << 63;
    double d = rx_load_f64(t, p);
    uint64_t bits;
    if (d != d)
        return UINT64_MAX;
    d = d == 0 ? 0 : d;
    memcpy(&bits, &d, sizeof bits);
    return bits >> 63 ? ~bits : bits | (uint64_t)1 << 63;
}

static bool before(const pair *a, const pair *b)
{
    return a->key != b->key ? a->key < b->key : a->at < b->at;
}

/* bottom-up merge sort; tmp holds n pairs */
static void sort_pairs(pair *a, pair *tmp, int64_t n)
{
    pair *from = a, *to = tmp;
    for (int64_t width = 1; width < n; width *= 2) {
        for (int64_t lo = 0; lo < n; lo += 2 * width) {
            int64_t mid = RX_MIN(lo + width, n), hi = RX_MIN(lo + 2 * width, n), i = lo, j = mid;
            for (int64_t k = lo; k < hi; k++)
                to[k] = i < mid && (j >= hi || !before(&from[j], &from[i])) ? from[i++] : from[j++];
        }
        pair *swap = from;
        from = to;
        to = swap;
    }
    if (from != a)
        memcpy(a, from, (size_t)n * sizeof *a);
}

/* max-heap by `before`: the worst of the kept ones is on top */
static void sift(pair *h, int64_t n, int64_t i)
{
    for (;;) {
        int64_t worst = i, l = 2 * i + 1, r = l + 1;
        if (l < n && before(&h[worst], &h[l]))
            worst = l;
        if (r < n && before(&h[worst], &h[r]))
            worst = r;
        if (worst == i)
            return;
        pair swap = h[i];
        h[i] = h[worst];
        h[worst] = swap;
        i = worst;
    }
}

/* product of dims, INT64_MAX when it does not fit: other dims of an empty tensor may be anything */
static int64_t product(const int64_t *dims, int32_t n)
{
    int64_t p = 1;
    for (int32_t i = 0; i < n; i++)
        if (dims[i] == 0)
            return 0;
    for (int32_t i = 0; i < n; i++)
        if (!rx_mul_ok(p, dims[i], &p))
            return INT64_MAX;
    return p;
}

static int64_t count(const DLTensor *d) { return product(d->shape, d->ndim); }

/* --- lines along an axis --- */
typedef struct lines {
    const char *data;
    relax_dtype t;
    int64_t n, inner, outer;           /* extent of the axis, elements after it, before it */
    size_t elem;
    bool descending;
    rx_tensor *scratch;
} lines;

static relax_status say(const relax_library_call *c, const char *text)
{
    snprintf(c->error, c->error_size, "%s", text);
    return RELAX_E_INVALID;
}

/* pairs of scratch per line */
static relax_status lines_init(lines *l, relax_vm *vm, const relax_library_call *c, int64_t axis, bool descending)
{
    const DLTensor *x = c->args[0];
    size_t bytes;
    axis += axis < 0 ? x->ndim : 0;
    if (!rx_dtype_from_dl(x->dtype, &l->t) || (x->ndim ? axis < 0 || axis >= x->ndim : axis != 0 && axis != -1))
        return say(c, "the axis is out of range");
    *l = (lines){.data = (const char *)x->data + x->byte_offset,
                 .t = l->t,
                 .n = 1,
                 .inner = 1,
                 .outer = 1,
                 .elem = rx_dtype_bytes(l->t),
                 .descending = descending};
    if (count(x) == 0) {
        l->n = l->outer = 0;
    } else if (x->ndim) {
        l->outer = product(x->shape, (int32_t)axis);
        l->n = x->shape[axis];
        l->inner = product(x->shape + axis + 1, x->ndim - 1 - (int32_t)axis);
    }
    if (!rx_size_mul((size_t)l->n, 2 * sizeof(pair), &bytes) || bytes > PTRDIFF_MAX)
        return RELAX_E_NOMEM;
    l->scratch = rx_vm_tensor(vm, bytes ? bytes : 1);
    return l->scratch ? RELAX_OK : RELAX_E_NOMEM;
}

static const char *element(const lines *l, int64_t line, int64_t i)
{
    int64_t o = line / l->inner, k = line % l->inner;
    return l->data + (size_t)((o * l->n + i) * l->inner + k) * l->elem;
}

static pair make_pair(const lines *l, int64_t line, int64_t i)
{
    uint64_t key = key_of(l->t, element(l, line, i));
    return (pair){l->descending ? ~key : key, i};
}

/* the first k of a line in order, in the scratch */
static pair *first_of_line(const lines *l, int64_t line, int64_t k)
{
    pair *p = l->scratch->data;
    int64_t kept = k < l->n / 8 ? k : l->n;
    for (int64_t i = 0; i < kept; i++)
        p[i] = make_pair(l, line, i);
    if (kept < l->n && kept) {
        for (int64_t i = kept / 2; i-- > 0;)
            sift(p, kept, i);
        for (int64_t i = kept; i < l->n; i++) {
            pair x = make_pair(l, line, i);
            if (before(&x, &p[0])) {
                p[0] = x;
                sift(p, kept, 0);
            }
        }
    }
    sort_pairs(p, p + kept, kept);
    return p;
}

/* writes values and/or positions of the first k of each line; either may be NULL */
static relax_status write_lines(const lines *l, int64_t k, const DLTensor *values, const DLTensor *indices)
{
    relax_dtype it = RELAX_I64;
    char *v = values ? (char *)values->data + values->byte_offset : NULL;
    char *x = indices ? (char *)indices->data + indices->byte_offset : NULL;
    if (indices)
        rx_dtype_from_dl(indices->dtype, &it);
    size_t isize = rx_dtype_bytes(it);
    for (int64_t line = 0; k && line < l->outer * l->inner; line++) {
        const pair *p = first_of_line(l, line, k);
        for (int64_t i = 0; i < k; i++) {
            size_t at = (size_t)(((line / l->inner) * k + i) * l->inner + line % l->inner);
            if (v)
                memcpy(v + at * l->elem, element(l, line, p[i].at), l->elem);
            if (x)
                rx_store_i64(it, x + at * isize, p[i].at);
        }
    }
    return RELAX_OK;
}

static bool is_index(const DLTensor *d)
{
    relax_dtype t;
    return rx_dtype_from_dl(d->dtype, &t) && rx_dtype_is_int(t);
}

static relax_status sort_like(void *user, const relax_library_call *c, bool indices)
{
    lines l;
    if (c->nargs != 2 || c->nsyms != 2 || count(c->args[0]) != count(c->args[1]))
        return say(c, "it takes one tensor, one result of the same shape and [axis, descending]");
    if (indices ? !is_index(c->args[1]) : memcmp(&c->args[0]->dtype, &c->args[1]->dtype, sizeof(DLDataType)) != 0)
        return say(c, "its result has the wrong data type");
    relax_status s = lines_init(&l, user, c, c->syms[0], c->syms[1] != 0);
    if (s)
        return s;
    s = write_lines(&l, l.n, indices ? NULL : c->args[1], indices ? c->args[1] : NULL);
    rx_release(&l.scratch->h);
    return s;
}

static relax_status sort(void *user, const relax_library_call *c) { return sort_like(user, c, false); }
static relax_status argsort(void *user, const relax_library_call *c) { return sort_like(user, c, true); }

static relax_status topk(void *user, const relax_library_call *c)
{
    lines l;
    int64_t which = c->nsyms == 4 ? c->syms[3] : -1, total;
    if (which < 0 || which > 2 || c->nargs != (which == 0 ? 3 : 2))
        return say(c, "it takes one tensor, results by [k, axis, largest, which] and these four");
    relax_status s = lines_init(&l, user, c, c->syms[1], c->syms[2] != 0);
    if (s)
        return s;
    int64_t k = RX_MIN(RX_MAX(c->syms[0], 0), l.n);
    const DLTensor *values = which == 2 ? NULL : c->args[1], *indices = which == 1 ? NULL : c->args[which == 0 ? 2 : 1];
    total = l.outer * l.inner * k;
    bool ok =
        (!values || (count(values) == total && memcmp(&values->dtype, &c->args[0]->dtype, sizeof(DLDataType)) == 0)) &&
        (!indices || (count(indices) == total && is_index(indices)));
    s = ok ? write_lines(&l, k, values, indices) : say(c, "its results have the wrong shape or data type");
    rx_release(&l.scratch->h);
    return s;
}

static relax_status shape_to_tensor(void *user, const relax_library_call *c)
{
    (void)user;
    relax_dtype t;
    if (c->nargs != 1 || count(c->args[0]) != c->nsyms || !rx_dtype_from_dl(c->args[0]->dtype, &t))
        return say(c, "its result must have one element for each dim");
    char *p = (char *)c->args[0]->data + c->args[0]->byte_offset;
    for (int32_t i = 0; i < c->nsyms; i++)
        rx_store_i64(t, p + (size_t)i * rx_dtype_bytes(t), c->syms[i]);
    return RELAX_OK;
}

/* --- values in, value out --- */
relax_status rx_builtin_complain(const relax_packed_call *c, const char *text)
{
    snprintf(c->error, c->error_size, "%s", text);
    return RELAX_E_INVALID;
}

static const rx_tensor *tensor_arg(const relax_packed_call *c, int32_t i)
{
    return i < c->nargs && c->args[i].kind == RELAX_ANY_TENSOR ? (const rx_tensor *)c->args[i].u.obj : NULL;
}

static void give(const relax_packed_call *c, uint8_t kind, void *obj)
{
    *c->result = (relax_any){.kind = kind, .u.obj = obj};
}

/* a vector of items, each `m` elements, `step` elements apart, made of runs of `run` elements: slices along an axis */
typedef struct items { const rx_tensor *x; int64_t n, m, run, step; } items;

static int64_t item_element(const items *s, int64_t item, int64_t k)
{
    return (k / s->run) * s->n * s->run + item * s->step + k % s->run;
}

static uint64_t item_key(const items *s, int64_t item, int64_t k)
{
    size_t at = (size_t)item_element(s, item, k) * rx_dtype_bytes(s->x->dtype);
    return key_of(s->x->dtype, (const char *)s->x->data + at);
}

static int compare(const items *s, int64_t a, int64_t b)
{
    for (int64_t k = 0; k < s->m; k++) {
        uint64_t x = item_key(s, a, k), y = item_key(s, b, k);
        if (x != y)
            return x < y ? -1 : 1;
    }
    return 0;
}

/* equal and no NaN in it */
static bool same(const items *s, int64_t a, int64_t b)
{
    for (int64_t k = 0; k < s->m; k++) {
        uint64_t x = item_key(s, a, k);
        if (x != item_key(s, b, k) || (x == UINT64_MAX && rx_dtype_is_float(s->x->dtype)))
            return false;
    }
    return true;
}

static void sort_items(const items *s, int64_t *a, int64_t *tmp)
{
    int64_t *from = a, *to = tmp;
    for (int64_t width = 1; width < s->n; width *= 2) {
        for (int64_t lo = 0; lo < s->n; lo += 2 * width) {
            int64_t mid = RX_MIN(lo + width, s->n), hi = RX_MIN(lo + 2 * width, s->n), i = lo, j = mid;
            for (int64_t k = lo; k < hi; k++)
                to[k] = i < mid && (j >= hi || compare(s, from[j], from[i]) >= 0) ? from[i++] : from[j++];
        }
        int64_t *swap = from;
        from = to;
        to = swap;
    }
    if (from != a)
        memcpy(a, from, (size_t)s->n * sizeof *a);
}

/* Groups: first[g] = item that stands for group g, counts[g]; group_of[item]. Returns the number of groups. */
typedef struct groups { int64_t *order, *tmp, *first, *counts, *group_of, n; } groups;

static void find_groups(const items *s, groups *g, bool sorted)
{
    for (int64_t i = 0; i < s->n; i++)
        g->order[i] = i;
    sort_items(s, g->order, g->tmp);
    g->n = 0;
    for (int64_t i = 0; i < s->n; i++) {
        int64_t item = g->order[i];
        if (i == 0 || !same(s, g->first[g->n - 1], item)) {
            g->first[g->n] = item;           /* the sort is stable: the first of its kind */
            g->counts[g->n++] = 0;
        }
        g->counts[g->n - 1]++;
        g->group_of[item] = g->n - 1;
    }
    if (sorted)
        return;
    /* renumber by first appearance: rank[g] in tmp, then permute through order */
    int64_t next = 0;
    for (int64_t i = 0; i < g->n; i++)
        g->tmp[i] = -1;
    for (int64_t item = 0; item < s->n; item++) {
        int64_t old = g->group_of[item];
        if (g->tmp[old] < 0) {
            g->order[next] = old;
            g->tmp[old] = next++;
        }
        g->group_of[item] = g->tmp[old];
    }
    for (int64_t i = 0; i < g->n; i++)
        g->tmp[i] = g->first[g->order[i]];
    memcpy(g->first, g->tmp, (size_t)g->n * sizeof *g->first);
    for (int64_t i = 0; i < g->n; i++)
        g->tmp[i] = g->counts[g->order[i]];
    memcpy(g->counts, g->tmp, (size_t)g->n * sizeof *g->counts);
}

static relax_status vector(const relax_packed_call *c, const int64_t *v, int64_t n, rx_tuple *to)
{
    rx_tensor *t;
    relax_status s = rx_vm_new_tensor(c->vm, RELAX_I64, &n, 1, &t);
    if (s)
        return RELAX_E_NOMEM;
    if (n)
        memcpy(t->data, v, (size_t)n * sizeof *v);
    relax_any x = {.kind = RELAX_ANY_TENSOR, .u.obj = &t->h};
    rx_tuple_add(to, &x);
    rx_any_release(&x);
    return RELAX_OK;
}

static relax_status unique_values(const relax_packed_call *c, const items *s, const groups *g, int64_t axis,
                                  rx_tuple *to)
{
    const rx_tensor *x = s->x;
    int64_t dims[RX_PKG_MAX_NDIM] = {g->n};
    int32_t ndim = axis < 0 ? 1 : x->ndim;
    rx_tensor *v;
    if (axis >= 0) {
        memcpy(dims, x->dims, sizeof dims);
        dims[axis] = g->n;
    }
    if (rx_vm_new_tensor(c->vm, x->dtype, dims, ndim, &v))
        return RELAX_E_NOMEM;
    size_t elem = rx_dtype_bytes(x->dtype);
    items out = *s;
    out.n = g->n;
    for (int64_t i = 0; i < g->n; i++)
        for (int64_t k = 0; k < s->m; k++)
            memcpy((char *)v->data + (size_t)item_element(&out, i, k) * elem,
                   (const char *)x->data + (size_t)item_element(s, g->first[i], k) * elem, elem);
    relax_any a = {.kind = RELAX_ANY_TENSOR, .u.obj = &v->h};
    rx_tuple_add(to, &a);
    rx_any_release(&a);
    return RELAX_OK;
}

static relax_status unique_items(const relax_packed_call *c, const items *s, int64_t axis)
{
    size_t n = (size_t)s->n, bytes;
    if (!rx_size_mul(n ? n : 1, 5 * sizeof(int64_t), &bytes) || bytes > PTRDIFF_MAX)
        return RELAX_E_NOMEM;
    rx_tensor *scratch = rx_vm_tensor(c->vm, bytes);
    rx_tuple *to = scratch ? rx_vm_tuple(c->vm, 4) : NULL;
    if (!to) {
        rx_release(scratch ? &scratch->h : NULL);
        return RELAX_E_NOMEM;
    }
    int64_t *m = scratch->data;
    groups g = {m, m + n, m + 2 * n, m + 3 * n, m + 4 * n, 0};
    find_groups(s, &g, c->args[1].u.i != 0);
    relax_status st = unique_values(c, s, &g, axis, to);
    if (!st && c->args[2].u.i)
        st = vector(c, g.first, g.n, to);
    if (!st && c->args[3].u.i)
        st = vector(c, g.group_of, s->n, to);
    if (!st && c->args[4].u.i)
        st = vector(c, g.counts, g.n, to);
    rx_release(&scratch->h);
    if (st) {
        rx_release(&to->h);
    } else if (to->n == 1) {
        relax_any v = to->at[0];
        rx_any_retain(&v);
        rx_release(&to->h);
        give(c, RELAX_ANY_TENSOR, v.u.obj);
    } else {
        give(c, RELAX_ANY_TUPLE, &to->h);
    }
    return st;
}

static relax_status unique(void *user, const relax_packed_call *c)
{
    (void)user;
    const rx_tensor *x = tensor_arg(c, 0);
    bool ok = x && (c->nargs == 5 || c->nargs == 6);
    for (int32_t i = 1; ok && i < c->nargs; i++)
        ok = c->args[i].kind == RELAX_ANY_INT;
    if (!ok)
        return rx_builtin_complain(c, "it takes a tensor and five or six integers");
    int64_t axis = c->nargs == 6 ? c->args[5].u.i : -1;
    items s = {.x = x, .n = product(x->dims, x->ndim), .m = 1, .run = 1, .step = 1};
    if (c->nargs == 6) {
        axis += axis < 0 ? x->ndim : 0;
        if (axis < 0 || axis >= x->ndim)
            return rx_builtin_complain(c, "the axis is out of range");
        int64_t before = product(x->dims, (int32_t)axis),
                after = product(x->dims + axis + 1, x->ndim - 1 - (int32_t)axis);
        s = (items){.x = x, .n = x->dims[axis], .run = RX_MAX(after, 1), .step = after};
        if (!rx_mul_ok(before, after, &s.m))
            s.m = INT64_MAX;
    }
    return unique_items(c, &s, axis);
}

static bool is_zero(relax_dtype t, const void *p)
{
    return rx_dtype_is_float(t) ? rx_load_f64(t, p) == 0 : rx_load_i64(t, p) == 0;
}

static relax_status nonzero(void *user, const relax_packed_call *c)
{
    (void)user;
    const rx_tensor *x = tensor_arg(c, 0);
    if (!x || c->nargs != 1)
        return rx_builtin_complain(c, "it takes a tensor");
    size_t elem = rx_dtype_bytes(x->dtype);
    int64_t n = x->bytes / (int64_t)elem, found = 0;
    const char *p = x->data;
    for (int64_t i = 0; i < n; i++)
        found += !is_zero(x->dtype, p + (size_t)i * elem);
    int32_t ndim = RX_MAX(x->ndim, 1);
    rx_tensor *out;
    if (rx_vm_new_tensor(c->vm, RELAX_I64, (int64_t[]){ndim, found}, 2, &out))
        return RELAX_E_NOMEM;
    int64_t *to = out->data, k = 0;
    for (int64_t i = 0; i < n; i++) {
        if (is_zero(x->dtype, p + (size_t)i * elem))
            continue;
        int64_t rest = i;
        for (int32_t d = ndim - 1; d >= 0; d--) {
            int64_t extent = d < x->ndim ? x->dims[d] : 1;
            to[d * found + k] = rest % extent;
            rest /= extent;
        }
        k++;
    }
    give(c, RELAX_ANY_TENSOR, &out->h);
    return RELAX_OK;
}

static relax_status give_shape(const relax_packed_call *c, const int64_t *dims, int32_t n)
{
    rx_shape *s = rx_vm_shape(c->vm, dims, n);
    if (!s)
        return RELAX_E_NOMEM;
    give(c, RELAX_ANY_SHAPE, s);
    return RELAX_OK;
}

static relax_status shape_of(void *user, const relax_packed_call *c)
{
    (void)user;
    const rx_tensor *x = tensor_arg(c, 0);
    return x && c->nargs == 1 ? give_shape(c, x->dims, x->ndim) : rx_builtin_complain(c, "it takes a tensor");
}

static relax_status tensor_to_shape(void *user, const relax_packed_call *c)
{
    (void)user;
    const rx_tensor *x = tensor_arg(c, 0);
    int64_t dims[RX_PKG_MAX_NDIM] = {0};
    if (!x || c->nargs != 1 || x->ndim != 1 || !rx_dtype_is_int(x->dtype) || x->dims[0] > RX_PKG_MAX_NDIM)
        return rx_builtin_complain(c, "it takes a vector of at most 16 integers");
    for (int64_t i = 0; i < x->dims[0]; i++) {
        dims[i] = rx_load_i64(x->dtype, (const char *)x->data + (size_t)i * rx_dtype_bytes(x->dtype));
        if (dims[i] < 0) {
            snprintf(c->error, c->error_size, "element %d is %lld, a dim cannot be negative", (int)i,
                     (long long)dims[i]);
            return RELAX_E_INVALID;
        }
    }
    return give_shape(c, dims, (int32_t)x->dims[0]);
}

static const rx_libfn table[] = {
    {.name = "rx.sort", .kind = RX_LIB_DPS, .dps = sort},
    {.name = "rx.argsort", .kind = RX_LIB_DPS, .dps = argsort},
    {.name = "rx.topk", .kind = RX_LIB_DPS, .dps = topk},
    {.name = "rx.shape_to_tensor", .kind = RX_LIB_DPS, .dps = shape_to_tensor},
    {.name = "rx.unique", .kind = RX_LIB_PACKED, .packed = unique},
    {.name = "rx.nonzero", .kind = RX_LIB_PACKED, .packed = nonzero},
    {.name = "rx.dynamic_strided_slice", .kind = RX_LIB_PACKED, .packed = rx_builtin_slice},
    {.name = "rx.shape_of", .kind = RX_LIB_PACKED, .packed = shape_of},
    {.name = "rx.tensor_to_shape", .kind = RX_LIB_PACKED, .packed = tensor_to_shape},
};

bool rx_builtin_find(const char *name, int32_t kind, rx_libfn *out)
{
    for (size_t i = 0; i < RX_COUNT(table); i++)
        if (table[i].kind == kind && strcmp(table[i].name, name) == 0) {
            *out = table[i];
            return true;
        }
    return false;
}
