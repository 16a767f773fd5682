/* value.c: between registers, which are lazy, and values, which are whole objects. A tensor in the arena becomes an
 * object only when something needs one: a tuple, a call, a result. */
#include "rt/rt_int.h"

static bool has_object(int32_t kind)
{
    return kind == RELAX_ANY_TENSOR || kind == RELAX_ANY_SHAPE || kind == RELAX_ANY_TUPLE;
}

void rx_reg_clear(rx_reg *r)
{
    if (has_object(r->kind))
        rx_release(r->u.obj);
    memset(r, 0, sizeof *r);
}

/* The object of a lazy register is a view of the register's owner; without one (arena, constant) its memory is lent. */
bool rx_reg_object(relax_vm *vm, rx_reg *r, const int64_t *slots)
{
    if (r->kind != RELAX_ANY_TENSOR || r->type < 0)
        return true;
    rx_tensor *t = rx_vm_tensor(vm, 0);
    if (!t)
        return false;
    const rx_pkg_type *type = &vm->p->types[r->type];
    t->dtype = type->dtype;
    t->ndim = type->ndim;
    rx_pkg_type_bytes(vm->p, type, slots, t->dims, &t->bytes);
    t->data = r->data;
    t->base = r->u.obj;
    t->h.flags = r->u.obj ? r->u.obj->flags & (RX_OBJ_BORROWED | RX_OBJ_READ_ONLY) : RX_OBJ_BORROWED;
    r->type = -1;
    r->u.obj = &t->h;
    return true;
}

relax_any rx_reg_any(const rx_reg *r)
{
    relax_any v = {.kind = r->kind};
    if (has_object(r->kind))
        v.u.obj = r->u.obj;
    else if (r->kind == RELAX_ANY_FLOAT)
        v.u.f = r->u.f;
    else if (r->kind == RELAX_ANY_STR)
        v.u.s = r->u.s;
    else
        v.u.i = r->u.i;
    return v;
}

void rx_reg_set(rx_reg *r, const relax_any *v)
{
    rx_reg_clear(r);
    r->kind = v->kind;
    r->type = -1;
    if (has_object(v->kind)) {
        r->u.obj = v->u.obj;
        r->data = v->kind == RELAX_ANY_TENSOR ? ((const rx_tensor *)v->u.obj)->data : NULL;
    } else if (v->kind == RELAX_ANY_FLOAT) {
        r->u.f = v->u.f;
    } else if (v->kind == RELAX_ANY_STR) {
        r->u.s = v->u.s;
    } else {
        r->u.i = v->u.i;
    }
}

relax_dtype rx_reg_dtype(const relax_vm *vm, const rx_reg *r)
{
    return r->type >= 0 ? vm->p->types[r->type].dtype : ((const rx_tensor *)r->u.obj)->dtype;
}

int64_t rx_reg_bytes(const relax_vm *vm, const rx_reg *r, const int64_t *slots)
{
    int64_t bytes = 0;
    if (r->type < 0)
        return ((const rx_tensor *)r->u.obj)->bytes;
    rx_pkg_type_bytes(vm->p, &vm->p->types[r->type], slots, NULL, &bytes);
    return bytes;
}

/* --- escape --- */
static bool must_copy(const rx_tensor *t, const rx_vmframe *frame)
{
    if (!(t->h.flags & RX_OBJ_BORROWED))
        return false;
    if (!frame)
        return !(t->h.flags & RX_OBJ_OUT);
    uintptr_t at = (uintptr_t)t->data, lo = (uintptr_t)frame->arena;
    return frame->arena && at >= lo && at - lo < (uintptr_t)RX_MAX(frame->arena_size, 1);
}

static bool copy_tensor(relax_vm *vm, relax_any *v)
{
    const rx_tensor *t = (const rx_tensor *)v->u.obj;
    rx_tensor *c = rx_vm_tensor(vm, t->bytes ? (size_t)t->bytes : 1);
    if (!c)
        return false;
    c->dtype = t->dtype;
    c->ndim = t->ndim;
    c->bytes = t->bytes;
    memcpy(c->dims, t->dims, sizeof c->dims);
    if (t->bytes)
        memcpy(c->data, t->data, (size_t)t->bytes);
    rx_release(v->u.obj);
    v->u.obj = &c->h;
    return true;
}

static bool needs_escape(const relax_any *v, const rx_vmframe *frame)
{
    if (v->kind == RELAX_ANY_TENSOR)
        return must_copy((const rx_tensor *)v->u.obj, frame);
    if (v->kind != RELAX_ANY_TUPLE)
        return false;
    const rx_tuple *t = (const rx_tuple *)v->u.obj;
    for (int32_t i = 0; i < t->n; i++)
        if (needs_escape(&t->at[i], frame))
            return true;
    return false;
}

/* Tuples may be shared, so one with such a field is made anew. */
bool rx_any_escape(relax_vm *vm, relax_any *v, const rx_vmframe *frame)
{
    if (!needs_escape(v, frame))
        return true;
    if (v->kind == RELAX_ANY_TENSOR)
        return copy_tensor(vm, v);
    const rx_tuple *t = (const rx_tuple *)v->u.obj;
    rx_tuple *c = rx_vm_tuple(vm, t->n);
    if (!c)
        return false;
    for (int32_t i = 0; i < t->n; i++) {
        relax_any x = t->at[i];
        rx_any_retain(&x);
        bool ok = rx_any_escape(vm, &x, frame) && rx_tuple_add(c, &x);
        rx_any_release(&x);
        if (!ok) {
            rx_release(&c->h);
            return false;
        }
    }
    rx_release(v->u.obj);
    v->u.obj = &c->h;
    return true;
}
