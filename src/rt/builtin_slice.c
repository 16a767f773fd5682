/* builtin_slice.c: rx.dynamic_strided_slice, whose bounds are values: NumPy's rules (negative bounds count from the
 * end, bounds are clamped to the extent, a negative stride runs backwards). */
#include "rt/rt_int.h"

static int64_t clamp(int64_t v, int64_t n, int64_t lo, int64_t hi)
{
    v = v < 0 ? v + n : v;
    return RX_MIN(RX_MAX(v, lo), hi);
}

/* number of elements from `begin` before `end` by stride (not 0); *first: the first one */
static int64_t extent(int64_t n, int64_t begin, int64_t end, int64_t stride, int64_t *first)
{
    int64_t lo = stride < 0 ? -1 : 0, hi = stride < 0 ? n - 1 : n;
    int64_t from = clamp(begin, n, lo, hi), to = clamp(end, n, lo, hi);
    *first = from;
    if (stride > 0)
        return to > from ? (to - from - 1) / stride + 1 : 0;
    return from > to ? (from - to - 1) / -RX_MAX(stride, -INT64_MAX) + 1 : 0;
}

typedef struct slice {
    const rx_tensor *x;
    int64_t first[RX_PKG_MAX_NDIM], stride[RX_PKG_MAX_NDIM];
    size_t elem;
} slice;

/* copies axis d and those behind it; from: element offset of the part of x */
static char *copy(const slice *s, const int64_t *dims, int32_t d, int64_t from, int64_t below, char *to)
{
    if (d == s->x->ndim) {
        memcpy(to, (const char *)s->x->data + (size_t)from * s->elem, s->elem);
        return to + s->elem;
    }
    int64_t inner = below / RX_MAX(s->x->dims[d], 1);
    for (int64_t i = 0; i < dims[d]; i++)
        to = copy(s, dims, d + 1, from + (s->first[d] + i * s->stride[d]) * inner, inner, to);
    return to;
}

static const char *bad_vector(const rx_tensor *v, int32_t n)
{
    if (!v || v->ndim != 1 || !rx_dtype_is_int(v->dtype))
        return "begin, end and strides are vectors of integers";
    return v->dims[0] == n ? NULL : "begin, end and strides have one element per axis";
}

relax_status rx_builtin_slice(void *user, const relax_packed_call *c)
{
    (void)user;
    const rx_tensor *v[4] = {NULL};
    for (int32_t i = 0; i < 4 && i < c->nargs; i++)
        v[i] = c->args[i].kind == RELAX_ANY_TENSOR ? (const rx_tensor *)c->args[i].u.obj : NULL;
    if (c->nargs != 4 || !v[0])
        return rx_builtin_complain(c, "it takes a tensor, begin, end and strides");
    slice s = {.x = v[0], .elem = rx_dtype_bytes(v[0]->dtype)};
    int64_t dims[RX_PKG_MAX_NDIM], total = 1;
    for (int32_t i = 1; i < 4; i++)
        if (bad_vector(v[i], s.x->ndim))
            return rx_builtin_complain(c, bad_vector(v[i], s.x->ndim));
    for (int32_t d = 0; d < s.x->ndim; d++) {
        int64_t at[3];
        for (int i = 0; i < 3; i++) {
            relax_dtype t = v[i + 1]->dtype;
            at[i] = rx_load_i64(t, (const char *)v[i + 1]->data + (size_t)d * rx_dtype_bytes(t));
        }
        if (at[2] == 0)
            return rx_builtin_complain(c, "a stride is 0");
        s.stride[d] = at[2];
        dims[d] = extent(s.x->dims[d], at[0], at[1], at[2], &s.first[d]);
        total *= dims[d];              /* at most the elements of x */
    }
    rx_tensor *out;
    if (rx_vm_new_tensor(c->vm, s.x->dtype, dims, s.x->ndim, &out))
        return RELAX_E_NOMEM;
    if (total)
        copy(&s, dims, 0, 0, s.x->bytes / (int64_t)s.elem, out->data);
    *c->result = (relax_any){.kind = RELAX_ANY_TENSOR, .u.obj = &out->h};
    return RELAX_OK;
}
