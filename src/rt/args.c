/* args.c: values of the host at the door of a call: arguments and weights into the registers of the first frame, memory
 * that the host gives for results. Nothing of the host is trusted: kinds, handles, devices, layouts and numbers are
 * checked here, types and dims by the function's MATCH instructions. */
#include "rt/rt_int.h"

#include <stdio.h>

/* A tensor that is lent for the call. In place, the function writes into the host's memory, so it cannot be a copy. */
static relax_status lend(relax_vm *vm, const rx_pkg_fn *f, int32_t param, const DLTensor *d, bool written, rx_reg *r)
{
    char who[192];
    relax_dtype t;
    int64_t bytes;
    bool compact;
    void *data;
    const char *fn = rx_pkg_str(vm->p, f->name);
    int n = snprintf(who, sizeof who, "%s: ", fn);
    if (n > 0 && (size_t)n < sizeof who)
        rx_vm_param_text(vm->p, f, param, who + n, sizeof who - (size_t)n);
    if (!d)
        return rx_error(vm->ctx, RXE_NULL_ARG, NULL, NULL, "%s is NULL", who);
    relax_status s = rx_dl_check(vm->ctx, d, who, &t, &bytes, &compact, &data);
    if (s)
        return s;
    if (!compact && written)
        return rx_error(vm->ctx, RXE_ARG_STRIDES, NULL, "pass compact memory",
                        "%s is written in place, but its memory is strided or misaligned", who);
    rx_tensor *x = rx_vm_tensor(vm, compact ? 0 : (size_t)bytes);
    if (!x)
        return rx_vm_fail(vm, RXE_OOM, "out of memory");
    x->dtype = t;
    x->ndim = d->ndim;
    x->bytes = bytes;
    if (d->ndim)
        memcpy(x->dims, d->shape, (size_t)d->ndim * sizeof *x->dims);
    if (compact) {
        x->data = data;
        x->h.flags = RX_OBJ_BORROWED;
    } else {
        rx_dl_copy(d, rx_dtype_bytes(t), x->data);
    }
    const relax_any v = {.kind = RELAX_ANY_TENSOR, .u.obj = &x->h};
    rx_reg_set(r, &v);
    return RELAX_OK;
}

static bool sane(const relax_vm *vm, const relax_any *v)
{
    switch (v->kind) {
    case RELAX_ANY_NONE:
    case RELAX_ANY_INT:
    case RELAX_ANY_FLOAT: return true;
    case RELAX_ANY_STR: return v->u.s != NULL;
    case RELAX_ANY_FUNC: return v->u.i >= 0 && v->u.i < (int64_t)vm->p->n_fns;
    case RELAX_ANY_TENSOR:
    case RELAX_ANY_SHAPE:
    case RELAX_ANY_TUPLE: return v->u.obj && v->u.obj->kind == v->kind;
    default: return false;
    }
}

bool rx_vm_sane(const relax_vm *vm, const relax_any *v)
{
    if (!sane(vm, v))
        return false;
    const rx_tuple *t = (const rx_tuple *)v->u.obj;
    for (int32_t i = 0; v->kind == RELAX_ANY_TUPLE && i < t->n; i++)
        if (!rx_vm_sane(vm, &t->at[i]))
            return false;
    return true;
}

static relax_status take(relax_vm *vm, const rx_pkg_fn *f, int32_t param, const relax_any *v, rx_reg *r)
{
    char who[256];
    bool written = vm->p->params[f->param0 + param].flags & RX_PARAM_WRITTEN;
    if (v->kind == RELAX_ANY_DLTENSOR)
        return lend(vm, f, param, v->u.dl, written, r);
    if (!rx_vm_sane(vm, v)) {
        rx_vm_param_text(vm->p, f, param, who, sizeof who);
        return rx_vm_fail(vm, RXE_ARG_KIND, "%s is not a value that can be passed", who);
    }
    if (written && v->kind == RELAX_ANY_TENSOR && (v->u.obj->flags & RX_OBJ_READ_ONLY)) {
        rx_vm_param_text(vm->p, f, param, who, sizeof who);
        return rx_vm_fail(vm, RXE_ARG_STRIDES, "%s is written in place, but its memory is read-only", who);
    }
    rx_any_retain(v);
    rx_reg_set(r, v);
    return RELAX_OK;
}

relax_status rx_vm_args(relax_vm *vm, const rx_pkg_fn *f, rx_reg *regs)
{
    int32_t want = 0, next = 0;
    for (int32_t i = 0; i < f->nparams; i++)
        want += vm->p->params[f->param0 + i].weight < 0;
    if (want != vm->nargs)
        return rx_vm_fail(vm, RXE_ARG_COUNT, "it takes %d arguments, %d are given", want, vm->nargs);
    for (int32_t i = 0; i < f->nparams; i++) {
        int32_t w = vm->p->params[f->param0 + i].weight;
        relax_any v = {.kind = RELAX_ANY_TENSOR};
        if (w >= 0 && !vm->weights[w])
            return rx_vm_fail(vm, RXE_NO_WEIGHT, "weight %s is not bound", rx_pkg_str(vm->p, vm->p->weights[w].name));
        if (w >= 0)
            v.u.obj = &vm->weights[w]->h;
        relax_status s = take(vm, f, i, w >= 0 ? &v : &vm->args[next++], &regs[i]);
        if (s)
            return s;
    }
    return RELAX_OK;
}

/* --- memory for results --- */
static bool overlap(const void *a, int64_t na, const void *b, int64_t nb)
{
    uintptr_t x = (uintptr_t)a, y = (uintptr_t)b;
    return na > 0 && nb > 0 && x < y + (uintptr_t)nb && y < x + (uintptr_t)na;
}

/* the sizes were checked, so the product fits */
static bool row_major(const DLTensor *d)
{
    int64_t step = 1;
    for (int32_t i = d->ndim; d->strides && i-- > 0; step *= d->shape[i])
        if (d->shape[i] > 1 && d->strides[i] != step)
            return false;
    return true;
}

static bool over_value(const relax_any *v, const void *data, int64_t bytes)
{
    int64_t n;
    relax_dtype t;
    if (v->kind == RELAX_ANY_TENSOR) {
        const rx_tensor *x = (const rx_tensor *)v->u.obj;
        return overlap(data, bytes, x->data, x->bytes);
    }
    if (v->kind == RELAX_ANY_DLTENSOR) {
        const DLTensor *d = v->u.dl;
        return !rx_dtype_from_dl(d->dtype, &t) || !rx_tensor_bytes(t, d->shape, d->ndim, &n) || !row_major(d) ||
               overlap(data, bytes, (char *)d->data + d->byte_offset, n);
    }
    const rx_tuple *u = (const rx_tuple *)v->u.obj;
    for (int32_t i = 0; v->kind == RELAX_ANY_TUPLE && i < u->n; i++)
        if (over_value(&u->at[i], data, bytes))
            return true;
    return false;
}

/* does memory given for a result lie over an argument? Then the result is made elsewhere and copied at the end. */
static bool over_argument(const relax_vm *vm, const void *data, int64_t bytes)
{
    for (int32_t i = 0; i < vm->nargs; i++)
        if (over_value(&vm->args[i], data, bytes))
            return true;
    return false;
}

static relax_status check_out(relax_vm *vm, int32_t k, relax_dtype t, const int64_t *dims, int32_t ndim, void **data)
{
    char who[64];
    relax_dtype dt;
    int64_t bytes;
    bool compact;
    const DLTensor *d = vm->outs[k];
    snprintf(who, sizeof who, "memory for result %d", k);
    relax_status s = rx_dl_check(vm->ctx, d, who, &dt, &bytes, &compact, data);
    if (s)
        return s;
    if (dt != t)
        return rx_vm_fail(vm, RXE_ARG_DTYPE, "%s has dtype %s, expected %s", who, rx_dtypes[dt].name,
                          rx_dtypes[t].name);
    if (d->ndim != ndim)
        return rx_vm_fail(vm, RXE_ARG_RANK, "%s has rank %d, expected %d", who, d->ndim, ndim);
    for (int32_t i = 0; i < ndim; i++)
        if (d->shape[i] != dims[i])
            return rx_vm_fail(vm, RXE_ARG_DIM, "%s: dim %d is %lld, expected %lld", who, i, (long long)d->shape[i],
                              (long long)dims[i]);
    return compact ? RELAX_OK : rx_vm_fail(vm, RXE_ARG_STRIDES, "%s is strided or misaligned", who);
}

relax_status rx_vm_out(relax_vm *vm, int32_t k, const rx_pkg_type *t, const int64_t *slots, rx_tensor **out)
{
    int64_t dims[RX_PKG_MAX_NDIM], bytes;
    void *data;
    *out = NULL;
    if (vm->nframes != 1 || k >= vm->nouts || !vm->outs[k] || !rx_pkg_type_bytes(vm->p, t, slots, dims, &bytes))
        return RELAX_OK;
    relax_status s = check_out(vm, k, t->dtype, dims, t->ndim, &data);
    if (s || over_argument(vm, data, bytes))
        return s;
    rx_tensor *x = rx_vm_tensor(vm, 0);
    if (!x)
        return rx_vm_fail(vm, RXE_OOM, "out of memory");
    x->dtype = t->dtype;
    x->ndim = t->ndim;
    x->bytes = bytes;
    memcpy(x->dims, dims, (size_t)t->ndim * sizeof *dims);
    x->data = data;
    x->h.flags = RX_OBJ_BORROWED | RX_OBJ_OUT;
    *out = x;
    return RELAX_OK;
}

/* tensor k of the result, tuples flattened; *k counts down */
static const rx_tensor *leaf(const relax_any *v, int32_t *k)
{
    if (v->kind == RELAX_ANY_TENSOR)
        return (*k)-- == 0 ? (const rx_tensor *)v->u.obj : NULL;
    const rx_tuple *t = (const rx_tuple *)v->u.obj;
    for (int32_t i = 0; v->kind == RELAX_ANY_TUPLE && i < t->n; i++) {
        const rx_tensor *found = leaf(&t->at[i], k);
        if (found)
            return found;
    }
    return NULL;
}

relax_status rx_vm_fill_outs(relax_vm *vm, const relax_any *result)
{
    for (int32_t i = 0; i < vm->nouts; i++) {
        int32_t k = i;
        void *data;
        if (!vm->outs[i])
            continue;
        const rx_tensor *t = leaf(result, &k);
        if (!t)
            return rx_vm_fail(vm, RXE_ARG_COUNT,
                              "memory is given for result %d, but the function returns fewer tensors", i);
        relax_status s = check_out(vm, i, t->dtype, t->dims, t->ndim, &data);
        if (s)
            return s;
        if (t->bytes && t->data != data)
            memmove(data, t->data, (size_t)t->bytes);
    }
    return RELAX_OK;
}
