/* op_nn.c: matrix product, softmax, normalisations, sampling. Sums in f64, rounded once. */
#include "interp/impl.h"

#include <math.h>

/* one operand of a matrix product: where row i, column k of a batch lies */
typedef struct side { const rx_ival *t; bool vec, swap; int32_t batch; } side;

static side side_of(const rx_opx *o, uint32_t i, const char *key)
{
    const rx_ival *t = o->x[i];
    return (side){t, t->ndim == 1, rx_iattr(o, key, 0) != 0 && t->ndim > 1, RX_MAX(t->ndim - 2, 0)};
}

static int64_t cell(const side *s, const int64_t *batch, int32_t nbatch, int64_t row, int64_t col, bool right)
{
    const rx_ival *t = s->t;
    if (s->vec)
        return right ? row : col;
    int64_t o = 0;
    for (int32_t i = 0; i < s->batch; i++)
        o = o * t->dims[i] + (t->dims[i] == 1 ? 0 : batch[nbatch - s->batch + i]);
    return (o * t->dims[s->batch] + (s->swap ? col : row)) * t->dims[s->batch + 1] + (s->swap ? row : col);
}

/* an element of an integer product in the result's type */
static int64_t as_int(relax_dtype t, const rx_ival *x, int64_t i)
{
    int64_t v = 0;
    rx_convert(t, &v, x->dtype, rx_el(x, i));
    return rx_load_i64(t, &v);
}

void rx_x_matmul(rx_opx *o)
{
    side a = side_of(o, 0, "transpose_a"), b = side_of(o, 1, "transpose_b");
    rx_ival *y = o->y;
    int32_t nb = RX_MAX(a.batch, b.batch);
    int64_t inner = a.vec ? a.t->dims[0] : a.t->dims[a.t->ndim - (a.swap ? 2 : 1)], ix[RX_MAX_RANK];
    for (int64_t i = 0; i < rx_ival_count(y); i++) {
        rx_index(y->dims, y->ndim, i, ix);
        int64_t row = a.vec ? 0 : ix[nb], col = b.vec ? 0 : ix[y->ndim - 1];
        double s = 0;
        uint64_t k = 0;
        for (int64_t j = 0; j < inner; j++) {
            int64_t p = cell(&a, ix, nb, row, j, false), q = cell(&b, ix, nb, j, col, true);
            if (rx_dtype_is_float(y->dtype))
                s += rx_getf(a.t, p) * rx_getf(b.t, q);
            else
                k += (uint64_t)as_int(y->dtype, a.t, p) * (uint64_t)as_int(y->dtype, b.t, q);
        }
        if (rx_dtype_is_float(y->dtype))
            rx_setf(y, i, s);
        else
            rx_seti(y, i, (int64_t)k);
    }
}

void rx_x_softmax(rx_opx *o)
{
    const rx_ival *x = o->x[0];
    int32_t axis = rx_axis(rx_iattr(o, "axis", -1), x->ndim);
    int64_t step = 1, n = x->dims[axis];
    for (int32_t i = axis + 1; i < x->ndim; i++)
        step *= x->dims[i];
    for (int64_t i = 0; i < rx_ival_count(x); i++) {
        int64_t base = i / (n * step) * n * step + i % step;
        double m = -INFINITY, s = 0;
        for (int64_t k = 0; k < n; k++) {
            double v = rx_getf(x, base + k * step);
            m = isnan(v) || isnan(m) ? NAN : fmax(m, v);
        }
        for (int64_t k = 0; k < n; k++)
            s += exp(rx_getf(x, base + k * step) - m);
        double d = rx_getf(x, i) - m;
        rx_setf(o->y, i, o->op->code == RX_OP_SOFTMAX ? exp(d) / s : d - log(s));
    }
}

/* --- normalisations --- */

typedef struct norm {
    bool in[RX_MAX_RANK];
    int32_t order[RX_MAX_RANK], n;
} norm; /* order: axes as gamma has them */

static norm axes_of(const rx_opx *o)
{
    const rx_ival *x = o->x[0];
    const rx_attr *a = o->op->code == RX_OP_LAYER_NORM ? rx_attr_get(o->attrs, "axes") : NULL;
    norm m = {.n = a ? (int32_t)a->u.ints.n : o->op->code == RX_OP_LAYER_NORM ? 1 : o->x[1]->ndim};
    for (int32_t i = 0; i < m.n; i++) {
        m.order[i] = a ? rx_axis(a->u.ints.at[i], x->ndim) : x->ndim - m.n + i;
        m.in[m.order[i]] = true;
    }
    return m;
}

/* mean of (x - shift)^power over the elements that share all axes but the normalised ones with element i */
static double mean_of(const rx_ival *x, const norm *m, int64_t i, double shift, int power)
{
    int64_t ix[RX_MAX_RANK], count = 1, at[RX_MAX_RANK], sub[RX_MAX_RANK];
    double s = 0;
    rx_index(x->dims, x->ndim, i, ix);
    for (int32_t k = 0; k < m->n; k++) {
        sub[k] = x->dims[m->order[k]];
        count *= sub[k];
    }
    for (int64_t j = 0; j < count; j++) {
        rx_index(sub, m->n, j, at);
        for (int32_t k = 0; k < m->n; k++)
            ix[m->order[k]] = at[k];
        double v = rx_getf(x, rx_offset(x->dims, x->ndim, ix)) - shift;
        s += power == 2 ? v * v : v;
    }
    return s / (double)count;
}

void rx_x_norm(rx_opx *o)
{
    const rx_ival *x = o->x[0];
    norm m = axes_of(o);
    bool layer = o->op->code == RX_OP_LAYER_NORM;
    double eps = rx_attr_float(o->attrs, "epsilon", 1e-5);
    int64_t ix[RX_MAX_RANK], at[RX_MAX_RANK];
    for (int64_t i = 0; i < rx_ival_count(x); i++) {
        double mean = layer ? mean_of(x, &m, i, 0, 1) : 0;
        double v = (rx_getf(x, i) - mean) / sqrt(mean_of(x, &m, i, mean, 2) + eps);
        rx_index(x->dims, x->ndim, i, ix);
        for (int32_t k = 0; k < m.n; k++)
            at[k] = ix[m.order[k]];
        if (!layer || rx_iattr(o, "scale", 1))
            v *= rx_getf(o->x[1], rx_offset(o->x[1]->dims, m.n, at));
        if (layer && rx_iattr(o, "center", 1))
            v += rx_getf(o->x[2], rx_offset(o->x[2]->dims, m.n, at));
        rx_setf(o->y, i, v);
    }
}

/* Cumulative sums are rounded step by step, because a comparison shows the difference. */
void rx_x_multinomial(rx_opx *o)
{
    const rx_ival *p = o->x[0], *u = o->x[1], *rows = o->x[2];
    for (int64_t i = 0; i < rx_ival_count(o->y); i++) {
        int64_t row = rx_checked_index(o, rx_geti(rows, i), rx_dtype_is_uint(rows->dtype), p->dims[0], "check"),
                found = p->dims[1] - 1;
        double s = 0, sample = rx_rounded(p->dtype, rx_getf(u, i));
        for (int64_t j = 0; j < p->dims[1]; j++) {
            s = rx_rounded(p->dtype, s + rx_getf(p, row * p->dims[1] + j));
            if (sample < s) {
                found = j;
                break;
            }
        }
        rx_seti(o->y, i, found);
    }
}
