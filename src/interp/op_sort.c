/* op_sort.c: sorting and operators whose result depends on values. One stable insertion order serves all: NaN is larger
 * than every number (last ascending, first descending), -0 equals 0, ties keep their order both ways. */
#include "interp/impl.h"

#include <math.h>

/* -1, 0, 1 */
static int order(const rx_ival *x, int64_t i, int64_t k)
{
    if (rx_dtype_is_float(x->dtype)) {
        double a = rx_getf(x, i), b = rx_getf(x, k);
        if (isnan(a) || isnan(b))
            return isnan(a) - isnan(b);
        return (a > b) - (a < b);
    }
    int64_t a = rx_geti(x, i), b = rx_geti(x, k);
    if (x->dtype == RELAX_U64)
        return ((uint64_t)a > (uint64_t)b) - ((uint64_t)a < (uint64_t)b);
    return (a > b) - (a < b);
}

/* one line along an axis: element j of it is x[base + j * step] */
typedef struct line { const rx_ival *x; int64_t n, base, step; int64_t *pos; } line;

/* positions 0..n of the line in order; insertion keeps equal elements as they come */
static void sort_line(line *l, bool descending)
{
    for (int64_t i = 0; i < l->n; i++) {
        int64_t k = i;
        for (; k > 0; k--) {
            int c = order(l->x, l->base + i * l->step, l->base + l->pos[k - 1] * l->step);
            if (descending ? c <= 0 : c >= 0)
                break;
            l->pos[k] = l->pos[k - 1];
        }
        l->pos[k] = i;
    }
}

typedef struct lines { int64_t outer, n, inner; } lines;

static lines lines_of(const rx_ival *x, int32_t axis)
{
    lines s = {1, x->ndim ? x->dims[axis] : 1, 1};
    for (int32_t i = 0; i < x->ndim; i++) {
        s.outer *= i < axis ? x->dims[i] : 1;
        s.inner *= i > axis ? x->dims[i] : 1;
    }
    return s;
}

/* the first k of each line, as values and as positions (either may be NULL) */
static void sort_all(rx_opx *o, rx_ival *values, rx_ival *positions, int64_t k, bool descending)
{
    const rx_ival *x = o->x[0];
    lines s = lines_of(x, x->ndim ? rx_axis(rx_iattr(o, "axis", -1), x->ndim) : 0);
    line l = {.x = x, .n = s.n, .step = s.inner, .pos = RX_NEWN(o->a, int64_t, (size_t)s.n + 1)};
    k = RX_MIN(k, s.n);
    for (int64_t a = 0; a < s.outer * s.inner; a++) {
        int64_t out = a / s.inner, in = a % s.inner;
        l.base = out * s.n * s.inner + in;
        sort_line(&l, descending);
        for (int64_t j = 0; j < k; j++) {
            int64_t at = (out * k + j) * s.inner + in;
            if (values)
                rx_put(values, at, x, l.base + l.pos[j] * l.step);
            if (positions)
                rx_convert(positions->dtype, rx_el(positions, at), RELAX_I64, &l.pos[j]);
        }
    }
}

void rx_x_sort(rx_opx *o)
{
    sort_all(o, o->y, NULL, INT64_MAX, rx_iattr(o, "descending", 0) != 0);
}

void rx_x_argsort(rx_opx *o)
{
    sort_all(o, NULL, o->y, INT64_MAX, rx_iattr(o, "descending", 0) != 0);
}

void rx_x_topk(rx_opx *o)
{
    const char *ret = rx_attr_str(o->attrs, "ret_type", "both");
    bool both = !strcmp(ret, "both"), values = !strcmp(ret, "values");
    int64_t k = rx_iattr(o, "k", 1);
    sort_all(o,
             both     ? o->y->at[0]
             : values ? o->y
                      : NULL,
             both     ? o->y->at[1]
             : values ? NULL
                      : o->y,
             k < 1 ? INT64_MAX : k, rx_iattr(o, "largest", 1) != 0);
}

/* --- unique --- */

/* items: elements, or slices along an axis; element k of item i */
typedef struct items { const rx_ival *x; int64_t n, size; lines s; bool flat; } items;

static int64_t element(const items *t, int64_t i, int64_t k)
{
    return t->flat ? i : (k / t->s.inner) * t->s.n * t->s.inner + i * t->s.inner + k % t->s.inner;
}

static int order_items(const items *t, int64_t a, int64_t b)
{
    for (int64_t k = 0; k < t->size; k++) {
        int c = order(t->x, element(t, a, k), element(t, b, k));
        if (c)
            return c;
    }
    return 0;
}

static bool has_nan(const items *t, int64_t a)
{
    for (int64_t k = 0; k < t->size; k++)
        if (rx_dtype_is_float(t->x->dtype) && isnan(rx_getf(t->x, element(t, a, k))))
            return true;
    return false;
}

typedef struct found { int64_t *first, *group, *count, n; } found;

/* groups in order of first appearance */
static void group_items(const items *t, found *f)
{
    for (int64_t i = 0; i < t->n; i++) {
        int64_t g = 0;
        while (g < f->n && (has_nan(t, i) || order_items(t, f->first[g], i)))
            g++;
        if (g == f->n) {
            f->first[f->n] = i;
            f->count[f->n++] = 0;
        }
        f->group[i] = g;
        f->count[g]++;
    }
}

/* rank[g]: where group g stands among the sorted groups */
static void rank_groups(const items *t, const found *f, int64_t *rank, bool sorted)
{
    for (int64_t g = 0; g < f->n; g++) {
        rank[g] = g;
        if (!sorted)
            continue;
        rank[g] = 0;
        for (int64_t h = 0; h < f->n; h++) {
            int c = order_items(t, f->first[h], f->first[g]);
            rank[g] += c < 0 || (c == 0 && h < g);
        }
    }
}

static rx_ival *vector(rx_opx *o, int64_t n)
{
    return rx_ival_tensor(o->ctx, o->a, RELAX_I64, &n, 1, NULL);
}

static rx_ival *unique_values(rx_opx *o, const items *t, const found *f, const int64_t *rank, int32_t axis)
{
    int64_t dims[RX_MAX_RANK] = {f->n};
    for (int32_t i = 0; !t->flat && i < t->x->ndim; i++)
        dims[i] = i == axis ? f->n : t->x->dims[i];
    rx_ival *v = rx_ival_tensor(o->ctx, o->a, t->x->dtype, dims, t->flat ? 1 : t->x->ndim, NULL);
    items to = *t;
    to.s.n = f->n;
    for (int64_t g = 0; g < f->n; g++)
        for (int64_t k = 0; k < t->size; k++)
            rx_put(v, element(&to, rank[g], k), t->x, element(t, f->first[g], k));
    return v;
}

void rx_x_unique(rx_opx *o)
{
    const rx_ival *x = o->x[0];
    const rx_attr *ax = rx_attr_get(o->attrs, "axis");
    items t = {.x = x, .n = rx_ival_count(x), .size = 1, .flat = !ax || x->ndim == 0};
    int32_t axis = t.flat ? 0 : rx_axis(ax->u.i, x->ndim);
    if (!t.flat) {
        t.s = lines_of(x, axis);
        t.n = t.s.n;
        t.size = t.s.outer * t.s.inner;
    }
    size_t room = (size_t)t.n + 1;
    found f = {RX_NEWN(o->a, int64_t, room), RX_NEWN(o->a, int64_t, room), RX_NEWN(o->a, int64_t, room), 0};
    int64_t *rank = RX_NEWN(o->a, int64_t, room);
    group_items(&t, &f);
    rank_groups(&t, &f, rank, rx_iattr(o, "sorted", 1) != 0);
    rx_ival *out[4] = {unique_values(o, &t, &f, rank, axis)}, *index = vector(o, f.n), *inverse = vector(o, t.n),
            *counts = vector(o, f.n);
    for (int64_t g = 0; g < f.n; g++) {
        rx_seti(index, rank[g], f.first[g]);
        rx_seti(counts, rank[g], f.count[g]);
    }
    for (int64_t i = 0; i < t.n; i++)
        rx_seti(inverse, i, rank[f.group[i]]);
    uint32_t n = 1;
    if (rx_iattr(o, "return_index", 0))
        out[n++] = index;
    if (rx_iattr(o, "return_inverse", 0))
        out[n++] = inverse;
    if (rx_iattr(o, "return_counts", 0))
        out[n++] = counts;
    o->y = n == 1 ? out[0] : rx_ival_tuple(o->a, out, n);
}

void rx_x_nonzero(rx_opx *o)
{
    const rx_ival *x = o->x[0];
    int32_t rank = RX_MAX(x->ndim, 1);
    int64_t n = 0, ix[RX_MAX_RANK] = {0};
    for (int pass = 0; pass < 2; pass++) {
        int64_t dims[2] = {rank, n}, at = 0;
        if (pass)
            o->y = rx_ival_tensor(o->ctx, o->a, RELAX_I64, dims, 2, NULL);
        for (int64_t i = 0; i < rx_ival_count(x); i++) {
            if (rx_dtype_is_float(x->dtype) ? rx_getf(x, i) == 0 : rx_geti(x, i) == 0)
                continue;
            rx_index(x->dims, x->ndim, i, ix);
            for (int32_t k = 0; pass && k < rank; k++)
                rx_seti(o->y, k * n + at, ix[k]);
            at++;
        }
        n = at;
    }
}
