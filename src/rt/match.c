/* match.c: MATCH and BOUND: values against types at run time. The quick path compares integers; messages are made on
 * failure only and name function, argument, dim, what was expected and what was found. */
#include "rt/rt_int.h"

#include <stdio.h>

static const char *kind_name(int32_t kind)
{
    static const char *const names[] = {"none",    "an integer", "a float",    "a tensor",
                                        "a shape", "a tuple",    "a function", "a string"};
    return kind >= 0 && kind < (int32_t)RX_COUNT(names) ? names[kind] : "a value";
}

void rx_vm_param_text(const rx_pkg *p, const rx_pkg_fn *f, int32_t param, char *text, size_t n)
{
    const rx_pkg_param *a = &p->params[f->param0 + param];
    int32_t number = 0;
    for (int32_t i = 0; i < param; i++)
        number += p->params[f->param0 + i].weight < 0;
    if (a->weight >= 0)
        snprintf(text, n, "weight %s", rx_pkg_str(p, p->weights[a->weight].name));
    else
        snprintf(text, n, "argument %d (%s)", number, rx_pkg_str(p, a->name));
}

typedef struct matcher {
    relax_vm *vm;
    const rx_pkg_fn *f;
    int64_t *slots;
    int32_t param, label;
    int32_t path[RX_PKG_MAX_DEPTH + 1], depth;          /* fields of nested tuples */
} matcher;

/* "argument 2 (cache) field 0" */
static const char *subject(const matcher *m, char *text, size_t n)
{
    if (m->param >= 0)
        rx_vm_param_text(m->vm->p, m->f, m->param, text, n);
    else
        snprintf(text, n, "%s", rx_pkg_str(m->vm->p, m->label));
    for (int32_t i = 0; i < m->depth; i++) {
        size_t used = strlen(text);
        snprintf(text + used, n - used, " field %d", m->path[i]);
    }
    return text;
}

/* "n = 256" when the slot is a symbol's, else "256" */
static const char *expected(const matcher *m, int32_t ref, char *text, size_t n)
{
    long long v = (long long)rx_pkg_ref(m->vm->p, m->slots, ref);
    snprintf(text, n, "%lld", v);
    for (int32_t i = 0; ref >= 0 && i < m->f->nsyms; i++) {
        const rx_pkg_sym *s = &m->vm->p->syms[m->f->sym0 + i];
        if (s->slot == ref)
            snprintf(text, n, "%s = %lld", rx_pkg_str(m->vm->p, s->name), v);
    }
    return text;
}

static relax_status wrong_kind(const matcher *m, int32_t found, const char *wanted)
{
    char who[256];
    return rx_vm_fail(m->vm, RXE_ARG_KIND, "%s is %s, expected %s", subject(m, who, sizeof who), kind_name(found),
                      wanted);
}

/* one value against one (mode, ref). what: "dim 2 is", … */
static relax_status match_dim(const matcher *m, const int32_t *dim, int64_t v, int32_t number, const char *what)
{
    if (dim[0] == RX_DIM_BIND)
        m->slots[dim[1]] = v;
    if (dim[0] != RX_DIM_EQ || v == rx_pkg_ref(m->vm->p, m->slots, dim[1]))
        return RELAX_OK;
    char who[256], want[128], which[16] = "";
    if (number >= 0)
        snprintf(which, sizeof which, " %d", number);
    return rx_vm_fail(m->vm, RXE_ARG_DIM, "%s: %s%s is %lld, expected %s", subject(m, who, sizeof who), what, which,
                      (long long)v, expected(m, dim[1], want, sizeof want));
}

static relax_status match_dims(const matcher *m, const rx_pkg_type *t, const int64_t *dims, int32_t ndim)
{
    char who[256];
    if (t->ndim < 0)
        return RELAX_OK;
    if (t->ndim != ndim)
        return rx_vm_fail(m->vm, RXE_ARG_RANK, "%s has rank %d, expected %d", subject(m, who, sizeof who), ndim,
                          t->ndim);
    const int32_t *x = m->vm->p->tw + t->first;
    relax_status s = RELAX_OK;
    for (int32_t i = 0; !s && i < ndim; i++)
        s = match_dim(m, x + 2 * i, dims[i], i, "dim");
    return s;
}

static relax_status match_tensor(const matcher *m, const rx_pkg_type *t, const rx_reg *r)
{
    char who[256];
    const rx_pkg *p = m->vm->p;
    relax_dtype dt = rx_reg_dtype(m->vm, r);
    if (t->dtype != RELAX_DTYPE_UNKNOWN && t->dtype != dt)
        return rx_vm_fail(m->vm, RXE_ARG_DTYPE, "%s has dtype %s, expected %s", subject(m, who, sizeof who),
                          rx_dtypes[dt].name, rx_dtypes[t->dtype].name);
    if (r->type < 0) {
        const rx_tensor *x = (const rx_tensor *)r->u.obj;
        return match_dims(m, t, x->dims, x->ndim);
    }
    int64_t dims[RX_PKG_MAX_NDIM], bytes;
    const rx_pkg_type *own = &p->types[r->type];
    rx_pkg_type_bytes(p, own, m->slots, dims, &bytes);
    return match_dims(m, t, dims, own->ndim);
}

static relax_status match_prim(const matcher *m, const rx_pkg_type *t, const rx_reg *r)
{
    bool is_float = rx_dtype_is_float(t->dtype), number = r->kind == RELAX_ANY_INT || r->kind == RELAX_ANY_FLOAT;
    bool any = t->dtype == RELAX_DTYPE_UNKNOWN && number;
    if (!any && r->kind != (is_float ? RELAX_ANY_FLOAT : RELAX_ANY_INT))
        return wrong_kind(m, r->kind, is_float ? "a float" : "an integer");
    int64_t v = r->u.i;                          /* of a float: its bits */
    if (!t->ndim)
        return RELAX_OK;
    return match_dim(m, m->vm->p->tw + t->first, v, -1, "it");
}

static relax_status match(matcher *m, const rx_pkg_type *t, const rx_reg *r);

static relax_status match_tuple(matcher *m, const rx_pkg_type *t, const rx_tuple *x)
{
    char who[256];
    if (t->ndim < 0)
        return RELAX_OK;
    if (t->ndim != x->n)
        return rx_vm_fail(m->vm, RXE_ARG_COUNT, "%s has %d fields, expected %d", subject(m, who, sizeof who), x->n,
                          t->ndim);
    relax_status s = RELAX_OK;
    for (int32_t i = 0; !s && i < t->ndim; i++) {
        rx_reg field = {0};
        rx_reg_set(&field, &x->at[i]);
        m->path[m->depth++] = i;
        s = match(m, &m->vm->p->types[m->vm->p->tw[t->first + i]], &field);
        m->depth--;
    }
    return s;
}

/* Types nest at most RX_PKG_MAX_DEPTH deep. NONE is also the empty tuple. */
static relax_status match(matcher *m, const rx_pkg_type *t, const rx_reg *r)
{
    static const rx_tuple unit = {.n = 0};
    switch ((rx_ptkind)t->kind) {
    case RX_PT_OBJECT: return RELAX_OK;
    case RX_PT_TENSOR: return r->kind == RELAX_ANY_TENSOR ? match_tensor(m, t, r) : wrong_kind(m, r->kind, "a tensor");
    case RX_PT_PRIM: return match_prim(m, t, r);
    case RX_PT_SHAPE: {
        const rx_shape *s = (const rx_shape *)r->u.obj;
        return r->kind == RELAX_ANY_SHAPE ? match_dims(m, t, s->dims, s->n) : wrong_kind(m, r->kind, "a shape");
    }
    case RX_PT_TUPLE:
        if (r->kind != RELAX_ANY_TUPLE && r->kind != RELAX_ANY_NONE)
            return wrong_kind(m, r->kind, "a tuple");
        return match_tuple(m, t, r->kind == RELAX_ANY_NONE ? &unit : (const rx_tuple *)r->u.obj);
    case RX_PT_FUNC: return r->kind == RELAX_ANY_FUNC ? RELAX_OK : wrong_kind(m, r->kind, "a function");
    }
    return RELAX_OK;
}

relax_status rx_vm_match(relax_vm *vm, const rx_pkg_fn *f, const rx_reg *r, int64_t *slots, const int32_t *x)
{
    matcher m = {.vm = vm, .f = f, .slots = slots, .param = x[2], .label = x[3]};
    return match(&m, &vm->p->types[x[1]], r);
}

relax_status rx_vm_bound(relax_vm *vm, const rx_pkg_fn *f, const int64_t *slots, const rx_pkg_sym *s)
{
    int64_t v = slots[s->slot], rest = 0;
    if (v >= s->lo && v <= s->hi && rx_floormod_ok(v, s->divisor, &rest) && rest == 0)
        return RELAX_OK;
    char who[256] = "", place[288] = "", want[96];
    if (s->param >= 0) {
        rx_vm_param_text(vm->p, f, s->param, who, sizeof who);
        snprintf(place, sizeof place, "%s: dim %d: ", who, s->dim);
    }
    if (v < s->lo || v > s->hi) {
        if (s->hi == INT64_MAX)
            snprintf(want, sizeof want, "at least %lld", (long long)s->lo);
        else if (s->lo == INT64_MIN)
            snprintf(want, sizeof want, "at most %lld", (long long)s->hi);
        else
            snprintf(want, sizeof want, "%lld to %lld", (long long)s->lo, (long long)s->hi);
        return rx_vm_fail(vm, RXE_BOUND_EXCEEDED, "%s%s is %lld, expected %s", place, rx_pkg_str(vm->p, s->name),
                          (long long)v, want);
    }
    return rx_vm_fail(vm, RXE_BOUND_EXCEEDED, "%s%s is %lld, expected a multiple of %lld", place,
                      rx_pkg_str(vm->p, s->name), (long long)v, (long long)s->divisor);
}
