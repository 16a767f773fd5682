/* op_llm.c: rotary embedding, attention, caches, weights in block formats. Formulas as docs/semantics.md states them,
 * in f64. */
#include "interp/impl.h"

#include <math.h>

void rx_x_rope(rx_opx *o)
{
    const rx_ival *x = o->x[0], *pos = o->x[1], *factors = o->n > 2 ? o->x[2] : NULL;
    int32_t n = x->ndim;
    int64_t d = x->dims[n - 1], rot = rx_iattr(o, "rot_dims", 0), ix[RX_MAX_RANK];
    bool neox = !strcmp(rx_attr_str(o->attrs, "style", "normal"), "neox");
    double base = rx_attr_float(o->attrs, "base", 10000), amp = rx_attr_float(o->attrs, "attn_factor", 1);
    rot = rot ? rot : d;
    for (int64_t i = 0; i < rx_ival_count(x); i++) {
        rx_index(x->dims, n, i, ix);
        int64_t j = ix[n - 1], half = rot / 2, token = ix[n - 3];
        if (j >= rot) {
            rx_put(o->y, i, x, i);
            continue;
        }
        int64_t p = neox ? j % half : j / 2;
        bool second = neox ? j >= half : j % 2;
        int64_t other = i + (second ? -1 : 1) * (neox ? half : 1);
        int64_t at = pos->kind == RX_I_PRIM ? rx_load_i64(pos->dtype, &pos->bits) + token : rx_geti(pos, token);
        double angle =
            (double)at * rx_attr_float(o->attrs, "freq_scale", 1) * pow(base, -2.0 * (double)p / (double)rot);
        if (factors)
            angle /= rx_getf(factors, p);
        double a = rx_getf(x, i), b = rx_getf(x, other), c = cos(angle) * amp, s = sin(angle) * amp;
        rx_setf(o->y, i, second ? b * s + a * c : a * c - b * s);
    }
}

/* one query row against keys and values of its head; key(j), value(j, e) are elements of k and v */
typedef struct att {
    rx_opx *o;
    const rx_ival *q, *k, *v, *mask;
    int64_t q_at, d, e;                /* first element of the query row, widths */
    int64_t kv_step, kv_base;          /* position j of the head: row kv_base + j * kv_step, of d (e) elements */
    int64_t at, m;                     /* the query's position; positions there are */
    const int64_t *mask_ix;            /* batch, head, row */
} att;

static double score(const att *a, int64_t j)
{
    const rx_attrs *at = a->o->attrs;
    double s = 0, cap = rx_attr_float(at, "softcap", 0);
    for (int64_t i = 0; i < a->d; i++)
        s += rx_getf(a->q, a->q_at + i) * rx_getf(a->k, (a->kv_base + j * a->kv_step) * a->d + i);
    s *= rx_attr_float(at, "scale", 1 / sqrt((double)a->d));
    if (cap > 0)
        s = cap * tanh(s / cap);
    if (a->mask) {
        int64_t ix[4] = {a->mask_ix[0], a->mask_ix[1], a->mask_ix[2], j};
        s += rx_getf(a->mask, rx_bcast(a->mask, ix, 4));
    }
    return s;
}

static bool seen(const att *a, int64_t j)
{
    int64_t window = rx_iattr(a->o, "window", 0);
    return (!rx_iattr(a->o, "causal", 0) || j <= a->at) && (window == 0 || j > a->at - window);
}

/* a row that sees nothing, or only -inf, is 0 */
static void attend(const att *a, int64_t out)
{
    double *w = RX_NEWN(a->o->a, double, (size_t)a->m + 1), max = -INFINITY, sum = 0;
    for (int64_t j = 0; j < a->m; j++) {
        w[j] = seen(a, j) ? score(a, j) : -INFINITY;
        max = isnan(w[j]) || isnan(max) ? NAN : fmax(max, w[j]);
    }
    for (int64_t j = 0; j < a->m; j++) {
        w[j] = w[j] == -INFINITY ? 0 : exp(w[j] - max);
        sum += w[j];
    }
    for (int64_t i = 0; i < a->e; i++) {
        double s = 0;
        for (int64_t j = 0; j < a->m; j++)
            if (seen(a, j))
                s += w[j] * rx_getf(a->v, (a->kv_base + j * a->kv_step) * a->e + i);
        rx_setf(a->o->y, out + i, sum == 0 ? 0 : s / sum);
    }
}

void rx_x_attention(rx_opx *o)
{
    const rx_ival *q = o->x[0], *k = o->x[1], *v = o->x[2];
    int64_t n = q->dims[1], h = q->dims[2], g = k->dims[2], m = k->dims[1];
    att a = {.o = o,
             .q = q,
             .k = k,
             .v = v,
             .mask = o->n > 3 ? o->x[3] : NULL,
             .d = q->dims[3],
             .e = v->dims[3],
             .kv_step = g,
             .m = m};
    for (int64_t b = 0; b < q->dims[0]; b++)
        for (int64_t i = 0; i < n; i++)
            for (int64_t head = 0; head < h; head++) {
                int64_t row = (b * n + i) * h + head, ix[3] = {b, head, i};
                a.q_at = row * a.d;
                a.kv_base = b * m * g + head / (h / g);
                a.at = i + m - n;
                a.mask_ix = ix;
                attend(&a, row * a.e);
            }
}

void rx_x_attention_cache(rx_opx *o)
{
    const rx_ival *q = o->x[0], *k = o->x[1], *v = o->x[2];
    int64_t n = q->dims[0], h = q->dims[1], g = k->dims[1], past = (int64_t)o->x[3]->bits;
    att a = {.o = o, .q = q, .k = k, .v = v, .d = q->dims[2], .e = v->dims[2], .kv_step = g, .m = past + n};
    for (int64_t i = 0; i < n; i++)
        for (int64_t head = 0; head < h; head++) {
            a.q_at = (i * h + head) * a.d;
            a.kv_base = head / (h / g);
            a.at = past + i;
            attend(&a, (i * h + head) * a.e);
        }
}

/* the result is the cache itself */
void rx_x_kv_append(rx_opx *o)
{
    const rx_ival *x = o->x[1];
    int64_t past = (int64_t)o->x[2]->bits, row = 1;
    for (int32_t i = 1; i < x->ndim; i++)
        row *= x->dims[i];
    for (int64_t i = 0; i < rx_ival_count(x); i++)
        rx_put(o->y, past * row + i, x, i);
}

/* --- block formats: decoding by the one decoder there is, as a tensor program --- */

static rx_ival *decoded(rx_opx *o, rx_ival *w)
{
    const rx_op *op = rx_op_get(o->ctx, RX_OP_DEQUANTIZE_GGUF);
    rx_attr type = {.key = "type", .kind = RX_A_STR, .u.s = rx_attr_str(o->attrs, "type", "")};
    rx_attrs attrs = rx_op_attrs(o->ctx, o->a, op, &type, 1);
    rx_ty wt = rx_ival_type(o->ctx, w),
          t = o->op->code == RX_OP_MATMUL_GGUF ? rx_ival_type(o->ctx, o->x[0]) : rx_ival_type(o->ctx, o->y);
    int64_t dims[RX_MAX_RANK], values = 0;
    rx_is_int(t->dims[t->ndim - 1], &values);
    for (int32_t i = 0; i < wt->ndim; i++)
        dims[i] = i + 1 < wt->ndim ? w->dims[i] : values;
    rx_ival *y = rx_ival_tensor(o->ctx, o->a, RELAX_F32, dims, wt->ndim, NULL);
    rx_op_by_prim(o->in, op, &w, 1, &attrs, y);
    return y;
}

void rx_x_gguf(rx_opx *o)
{
    const rx_ival *f = decoded(o, o->x[0]);
    for (int64_t i = 0; i < rx_ival_count(o->y); i++)
        rx_put(o->y, i, f, i);
}

void rx_x_matmul_gguf(rx_opx *o)
{
    const rx_ival *x = o->x[0], *w = decoded(o, o->x[1]);
    int64_t k = x->dims[x->ndim - 1], n = w->dims[0];
    for (int64_t i = 0; i < rx_ival_count(o->y); i++) {
        double s = 0;
        for (int64_t j = 0; j < k; j++)
            s += rx_getf(x, i / n * k + j) * rx_getf(w, i % n * k + j);
        rx_setf(o->y, i, s);
    }
}

void rx_x_take_gguf(rx_opx *o)
{
    const rx_ival *w = decoded(o, o->x[0]), *ix = o->x[1];
    int64_t k = o->y->dims[o->y->ndim - 1];
    for (int64_t i = 0; i < rx_ival_count(o->y); i++) {
        int64_t row = rx_checked_index(o, rx_geti(ix, i / k), rx_dtype_is_uint(ix->dtype), w->dims[0], "check");
        rx_put(o->y, i, w, row * k + i % k);
    }
}
