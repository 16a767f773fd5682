/* shape.c: index expressions become the shape program: each distinct expression is computed once per scope into a slot.
 */
#include "codegen/vm/private.h"

static int32_t box(void *p) { return (int32_t)((intptr_t)p - 1); }
/* refs may be negative (constants); slots only are stored, as ref + 1 */
static bool lookup(vm_emit *e, rx_ex x, int32_t *ref)
{
    for (vm_scope *s = e->scope; s; s = s->up)
        if (rx_map_has(&s->refs, RX_KEY(x))) {
            *ref = box(rx_map_get(&s->refs, RX_KEY(x)));
            return true;
        }
    return false;
}

void vm_know(vm_emit *e, rx_ex x, int32_t ref) { rx_map_put(&e->scope->refs, RX_KEY(x), (void *)(intptr_t)(ref + 1)); }

typedef struct seek { vm_emit *e; bool ok; } seek;
static void seek_sym(void *arg, rx_ex x)
{
    seek *s = arg;
    int32_t ref;
    if (rx_sym_of(x) && !lookup(s->e, x, &ref)) s->ok = false;
}

bool vm_computable(vm_emit *e, rx_ex x)
{
    seek s = { e, true };
    rx_visit(e->ctx, x, seek_sym, &s);
    return s.ok;
}

static rx_sh opcode(vm_emit *e, rx_ex x)
{
    switch ((rx_eop)x->op) {
    case RX_EX_ADD: return RX_SH_ADD;
    case RX_EX_SUB: return RX_SH_SUB;
    case RX_EX_MUL: return RX_SH_MUL;
    case RX_EX_FLOORDIV: return RX_SH_FLOORDIV;
    case RX_EX_FLOORMOD: return RX_SH_FLOORMOD;
    case RX_EX_MIN: return RX_SH_MIN;
    case RX_EX_MAX: return RX_SH_MAX;
    case RX_EX_EQ: return RX_SH_EQ;
    case RX_EX_NE: return RX_SH_NE;
    case RX_EX_LT: return RX_SH_LT;
    case RX_EX_LE: return RX_SH_LE;
    case RX_EX_AND: case RX_EX_BITAND: return RX_SH_AND;
    case RX_EX_OR: case RX_EX_BITOR: return RX_SH_OR;
    case RX_EX_NOT: return RX_SH_NOT;
    case RX_EX_SELECT: return RX_SH_SELECT;
    default: {
        rx_where w = { .function = e->f->name };
        rx_buf b;
        rx_buf_init(&b, e->a);
        rx_print_expr(&b, x);
        rx_fail(e->ctx, RXE_CODEGEN, &w, "the shape expression %s cannot be computed at run time", b.at);
    }
    }
}

static int32_t put(vm_emit *e, rx_sh op, int32_t a, int32_t b, int32_t c)
{
    int32_t dst = rx_pkgw_slot(e->w);
    int32_t at = rx_pkgw_shape(e->w, op, dst, a, b, c);
    if (!e->eval_count++) e->eval_first = at;
    return dst;
}

/* Trees are as deep as sums are long, so the walk keeps its own stack: arguments first (rx_visit), each into a slot. */
static void compute(void *arg, rx_ex x)
{
    vm_emit *e = arg;
    int32_t ref, a[3] = { 0, 0, 0 };
    if (lookup(e, x, &ref) || x->op == RX_EX_INT) return;
    if (rx_sym_of(x)) {
        rx_where w = { .function = e->f->name };
        rx_fail(e->ctx, RXE_UNDEF_SYM, &w, "symbol %s has no value here", rx_sym_of(x)->name);
    }
    if (x->op == RX_EX_CAST) {         /* bool <-> i64 */
        vm_know(e, x, vm_ref(e, x->a[0]));
        return;
    }
    rx_sh op = opcode(e, x);
    for (uint32_t i = 0; i < x->nargs; i++) a[i] = vm_ref(e, x->a[i]);
    vm_know(e, x, put(e, op, a[0], a[1], a[2]));
}

int32_t vm_ref(vm_emit *e, rx_ex x)
{
    int32_t ref;
    if (x->op == RX_EX_INT) return rx_pkgw_int(e->w, x->u.i);
    if (lookup(e, x, &ref)) return ref;
    rx_visit(e->ctx, x, compute, e);
    if (!lookup(e, x, &ref)) rx_fail(e->ctx, RXE_INTERNAL, NULL, "shape program: an expression was not computed");
    return ref;
}

void vm_flush(vm_emit *e)
{
    if (e->eval_count) rx_pkgw_op(e->w, RX_BC_EVAL, e->eval_first, e->eval_count);
    e->eval_count = 0;
}

void vm_check(vm_emit *e, rx_ex cond, enum rx_err err, const char *text)
{
    if (cond->op == RX_EX_INT && cond->u.i) return;
    int32_t s = vm_ref(e, cond), found = s, expected = rx_pkgw_int(e->w, 1);
    if (cond->op == RX_EX_EQ || cond->op == RX_EX_LE || cond->op == RX_EX_LT) {
        bool swap = cond->a[0]->op == RX_EX_INT;       /* 1 <= n: n is what was found */
        found = vm_ref(e, cond->a[swap]);
        expected = vm_ref(e, cond->a[!swap]);
    }
    if (!text) {
        rx_buf b;
        rx_buf_init(&b, e->a);
        rx_print_expr(&b, cond);
        text = rx_strf(e->ctx, "%s must hold", b.at);
    }
    vm_flush(e);
    rx_pkgw_op(e->w, RX_BC_CHECK, s, (int)err, rx_pkgw_str(e->w, text), found, expected);
}

int32_t vm_type(vm_emit *e, rx_ty t)
{
    rx_pkgw_dim d[RX_PKG_MAX_NDIM];
    if (t->ndim > RX_PKG_MAX_NDIM)
        rx_fail(e->ctx, RXE_LIMIT, NULL, "a tensor has rank %d; at most %d", t->ndim, RX_PKG_MAX_NDIM);
    switch (t->kind) {
    case RX_TY_OBJECT: return rx_pkgw_type_object(e->w);
    case RX_TY_FUNC: return rx_pkgw_type_func(e->w);
    case RX_TY_PRIM:
        if (t->known) d[0] = (rx_pkgw_dim){ RX_DIM_EQ, vm_ref(e, t->dims[0]) };
        return rx_pkgw_type_prim(e->w, t->dtype, t->known ? d : NULL);
    case RX_TY_SHAPE:
    case RX_TY_TENSOR:
        for (int32_t i = 0; t->known && i < t->ndim; i++) d[i] = (rx_pkgw_dim){ RX_DIM_EQ, vm_ref(e, t->dims[i]) };
        if (t->kind == RX_TY_SHAPE) return rx_pkgw_type_shape(e->w, t->ndim, t->known ? d : NULL);
        return rx_pkgw_type_tensor(e->w, t->dtype, t->ndim, t->known ? d : NULL);
    case RX_TY_TUPLE: {
        int32_t *n = RX_NEWN(e->a, int32_t, t->nelems + 1);
        for (uint32_t i = 0; i < t->nelems; i++) n[i] = vm_type(e, t->elems[i]);
        return rx_pkgw_type_tuple(e->w, (int32_t)t->nelems, n);
    }
    }
    return -1;
}
