/* emit.c: graph functions in planned form become bytecode, binding by binding.
 *
 * A value is a register. Tensors in the arena are made from the frame's memory, those of the result in memory of the
 * caller (OUT), the rest on the heap and dropped after their last use (KILL). Bodies of an IF are emitted in line with
 * forward jumps and leave their result in the IF's register; what a body computes into slots is forgotten behind it
 * (vm_scope). */
#include "codegen/vm/private.h"
#include "op/op.h"

const char *vm_text(vm_emit *e, rx_ty t)
{
    rx_buf b;
    rx_buf_init(&b, e->a);
    rx_print_type(&b, t);
    return b.at;
}

static rx_where where_of(vm_emit *e, const relax_value *v)
{
    return (rx_where){.function = e->f->name, .binding = v->name};
}

static int32_t new_reg(vm_emit *e, relax_value *v)
{
    int32_t r = rx_pkgw_reg(e->w);
    rx_map_put(&e->regs, RX_KEY(v), (void *)(intptr_t)(r + 1));
    return r;
}

/* double constants need their bits; integers and bools are index expressions */
static void prim_leaf(vm_emit *e, int32_t r, relax_value *v)
{
    rx_ex x = v->syms[0];
    if (rx_dtype_is_float(x->dtype)) {
        int32_t ref = rx_pkgw_double(e->w, x->u.f);
        rx_pkgw_op(e->w, RX_BC_PRIM, r, RELAX_ANY_FLOAT, ref);
        return;
    }
    int32_t ref = vm_ref(e, x);
    vm_flush(e);
    rx_pkgw_op(e->w, RX_BC_PRIM, r, RELAX_ANY_INT, ref);
}

static void shape_leaf(vm_emit *e, int32_t r, rx_ex *dims, uint32_t n)
{
    int32_t *refs = RX_NEWN(e->a, int32_t, n + 1);
    for (uint32_t i = 0; i < n; i++) refs[i] = vm_ref(e, dims[i]);
    vm_flush(e);
    rx_pkgw_op(e->w, RX_BC_SHAPE, r, (int)n, refs);
}

/* Leaves are made where they are used: cheap, and right in every branch. */
static int32_t leaf(vm_emit *e, relax_value *v)
{
    int32_t r = rx_pkgw_reg(e->w);
    switch (v->kind) {
    case RX_V_CONST: {
        rx_const *c = v->u.data;
        rx_pkgw_op(e->w, RX_BC_CONST, r, rx_pkgw_const(e->w, c->dtype, (int32_t)c->ndim, c->dims, c->data, c->bytes));
        break;
    }
    case RX_V_SHAPE: shape_leaf(e, r, v->syms, v->nsyms); break;
    case RX_V_PRIM: prim_leaf(e, r, v); break;
    case RX_V_STR: rx_pkgw_op(e->w, RX_BC_STR, r, rx_pkgw_str(e->w, v->ext)); break;
    case RX_V_FUNC: {
        void *n = rx_map_get(&e->fn_of, RX_KEY(v->u.callee));
        rx_where w = where_of(e, v);
        if (!n) rx_fail(e->ctx, RXE_CODEGEN, &w, "tensor program %s cannot be a value", v->u.callee->name);
        rx_pkgw_op(e->w, RX_BC_FUNC, r, (int)((intptr_t)n - 1));
        break;
    }
    default: rx_fail(e->ctx, RXE_INTERNAL, NULL, "value %s has no register", v->name ? v->name : "");
    }
    return r;
}

int32_t vm_reg(vm_emit *e, relax_value *v)
{
    void *r = rx_map_get(&e->regs, RX_KEY(v));
    return r ? (int32_t)((intptr_t)r - 1) : leaf(e, v);
}

static int32_t none_reg(vm_emit *e)
{
    int32_t r = rx_pkgw_reg(e->w);
    rx_pkgw_op(e->w, RX_BC_TUPLE, r, 0, (const int32_t *)NULL);
    return r;
}

static int32_t *arg_regs(vm_emit *e, relax_value *v, uint32_t from)
{
    int32_t *r = RX_NEWN(e->a, int32_t, v->nargs + 1);
    for (uint32_t i = from; i < v->nargs; i++) r[i - from] = v->args[i] ? vm_reg(e, v->args[i]) : none_reg(e);
    return r;
}

/* ---- calls of kernels ---- */
static int32_t kernel_number(vm_emit *e, relax_function *prim, uint32_t nsyms)
{
    void *known = rx_map_get(&e->kernel_no, RX_KEY(prim));
    if (known) return (int32_t)((intptr_t)known - 1);
    void *at = rx_map_get(&e->kernel_of, RX_KEY(prim));
    if (!at) rx_fail(e->ctx, RXE_INTERNAL, NULL, "tensor program %s was not compiled", prim->name);
    const rx_vm_kernel *k = &e->kernels[(intptr_t)at - 1];
    int32_t n = rx_pkgw_kernel(e->w, prim->name, prim->prim->origin ? prim->prim->origin : "",
                               (int32_t)prim->prim->nparams, (int32_t)nsyms, k->parallel, k->nphases);
    rx_map_put(&e->kernel_no, RX_KEY(prim), (void *)(intptr_t)(n + 1));
    return n;
}

/* Scalar operations of a call, roughly: the product of the extents of each nest (decides how many threads are worth
 * it). */
static rx_ex work_of(vm_emit *e, const rx_stmt *s, rx_ex outer)
{
    switch (s->kind) {
    case RX_S_SEQ: {
        rx_ex sum = rx_int(e->ctx, 0);
        for (uint32_t i = 0; i < s->u.seq.n; i++) sum = rx_add(e->ctx, sum, work_of(e, s->u.seq.at[i], outer));
        return sum;
    }
    case RX_S_FOR: return work_of(e, s->u.loop.body, rx_mul(e->ctx, outer, s->u.loop.extent));
    case RX_S_ALLOC: return work_of(e, s->u.alloc.body, outer);
    case RX_S_LET: return work_of(e, s->u.let.body, outer);
    case RX_S_IF: {
        rx_ex a = work_of(e, s->u.branch.then, outer);
        return s->u.branch.other ? rx_max(e->ctx, a, work_of(e, s->u.branch.other, outer)) : a;
    }
    default: return outer;
    }
}

static int32_t work_ref(vm_emit *e, const rx_prim *p, const rx_exvec *names, const rx_exvec *values)
{
    rx_map map;
    rx_map_init(&map, e->a);
    for (uint32_t i = 0; i < names->n; i++) rx_map_put(&map, RX_KEY(names->at[i]), (void *)values->at[i]);
    rx_ex w = rx_subst(e->ctx, work_of(e, p->body, rx_int(e->ctx, 1)), &map);
    /* extents that depend on loop variables, or an expression too large to be worth its slots: unknown */
    if (!vm_computable(e, w) || (w->flags & RX_EX_DATA) || w->size > 100) return rx_pkgw_int(e->w, -1);
    return vm_ref(e, w);
}

static void call_kernel(vm_emit *e, relax_value *v)
{
    rx_prim *p = v->u.callee->prim;
    rx_exvec names = { 0 }, values = { 0 }, checks = { 0 };
    rx_ty *types = RX_NEWN(e->a, rx_ty, v->nargs + 1);
    for (uint32_t i = 0; i < v->nargs; i++) types[i] = v->args[i]->type;
    rx_prim_symbols(e->ctx, e->a, p, &names);
    rx_bind_prim(e->f, p, types, v->nargs, rx_ty_tuple(e->ctx, NULL, 0), v->syms, v->nsyms, &values, &checks);
    int32_t *regs = arg_regs(e, v, 0), *refs = RX_NEWN(e->a, int32_t, values.n + 1);
    for (uint32_t i = 0; i < values.n; i++) refs[i] = vm_ref(e, values.at[i]);
    int32_t work = work_ref(e, p, &names, &values), k = kernel_number(e, v->u.callee, values.n);
    vm_flush(e);
    rx_pkgw_op(e->w, RX_BC_KERNEL, k, (int)v->nargs, regs, (int)values.n, refs, work);
}

static void call_library(vm_emit *e, relax_value *v)
{
    int32_t *regs = arg_regs(e, v, 0), *refs = RX_NEWN(e->a, int32_t, v->nsyms + 1);
    for (uint32_t i = 0; i < v->nsyms; i++) refs[i] = vm_ref(e, v->syms[i]);
    vm_flush(e);
    rx_pkgw_op(e->w, RX_BC_LIB, rx_pkgw_lib(e->w, v->ext, RX_LIB_DPS), (int)v->nargs, regs, (int)v->nsyms, refs);
}

/* ---- operators that stay operators: on the host, or with results whose size depends on values ---- */
static void packed(vm_emit *e, const char *name, int32_t n, const int32_t *args, int32_t r)
{
    rx_pkgw_op(e->w, RX_BC_PACKED, rx_pkgw_lib(e->w, name, RX_LIB_PACKED), (int)n, args, r);
}

static int32_t int_reg(vm_emit *e, int64_t i)
{
    int32_t r = rx_pkgw_reg(e->w);
    rx_pkgw_op(e->w, RX_BC_PRIM, r, RELAX_ANY_INT, rx_pkgw_int(e->w, i));
    return r;
}

/* a known shape as a tensor */
static void shape_tensor(vm_emit *e, relax_value *v, int32_t r)
{
    rx_ty t = v->args[0]->type;
    rx_where w = where_of(e, v);
    if (!t->known)
        rx_fail_hint(e->ctx, RXE_CODEGEN, &w, "name its dimensions with match_cast",
                     "shape_to_tensor needs a shape of known rank");
    int32_t *refs = RX_NEWN(e->a, int32_t, (uint32_t)t->ndim + 1), type = vm_type(e, v->type);
    for (int32_t i = 0; i < t->ndim; i++)
        refs[i] = vm_ref(e, t->dims[i]);
    vm_flush(e);
    rx_pkgw_op(e->w, RX_BC_ALLOC, r, type);
    rx_pkgw_op(e->w, RX_BC_LIB, rx_pkgw_lib(e->w, "rx.shape_to_tensor", RX_LIB_DPS), 1, &r, (int)t->ndim, refs);
}

static void host_op(vm_emit *e, relax_value *v, int32_t r)
{
    int32_t args[8], n = 0;
    rx_where w = where_of(e, v);
    if (!(v->u.op->flags & (RX_OPF_HOST | RX_OPF_DYNAMIC)))
        rx_fail(e->ctx, RXE_CONTRACT, &w, "operator %s is not lowered; run legalize before building", v->u.op->name);
    if (v->nargs > RX_COUNT(args)) rx_fail(e->ctx, RXE_CODEGEN, &w, "%s has too many arguments", v->u.op->name);
    for (uint32_t i = 0; i < v->nargs; i++) args[n++] = vm_reg(e, v->args[i]);
    switch (v->u.op->code) {
    case RX_OP_SHAPE_OF:
        if (v->type->known) { shape_leaf(e, r, v->type->dims, (uint32_t)v->type->ndim); return; }
        break;
    case RX_OP_SHAPE_TO_TENSOR: shape_tensor(e, v, r); return;
    case RX_OP_UNIQUE: {
        static const char *const flags[] = { "sorted", "return_index", "return_inverse", "return_counts" };
        for (size_t i = 0; i < RX_COUNT(flags); i++) args[n++] = int_reg(e, rx_attr_int(&v->attrs, flags[i], 0));
        const rx_attr *axis = rx_attr_get(&v->attrs, "axis");
        if (axis) args[n++] = int_reg(e, axis->u.i);
        break;
    }
    default: break;
    }
    vm_flush(e);
    packed(e, rx_strf(e->ctx, "rx.%s", v->u.op->name), n, args, r);
}

/* ---- bindings ---- */
static void body(vm_emit *e, rx_body *b);

static void branch(vm_emit *e, rx_body *b, int32_t r)
{
    vm_scope s = { e->scope, { 0 } };
    rx_map_init(&s.refs, e->a);
    e->scope = &s;
    body(e, b);
    int32_t from = vm_reg(e, b->result);
    vm_flush(e);
    rx_pkgw_op(e->w, RX_BC_MOVE, r, from);
    e->scope = s.up;
}

static void if_else(vm_emit *e, relax_value *v, int32_t r)
{
    int32_t other = rx_pkgw_label(e->w), end = rx_pkgw_label(e->w), cond = vm_reg(e, v->args[0]);
    vm_flush(e);
    rx_pkgw_op(e->w, RX_BC_IF, cond, other);
    branch(e, v->u.branch.then, r);
    rx_pkgw_op(e->w, RX_BC_JUMP, end);
    rx_pkgw_place(e->w, other);
    branch(e, v->u.branch.other, r);
    rx_pkgw_place(e->w, end);
}

static void alloc(vm_emit *e, relax_value *v, int32_t r)
{
    int32_t t = vm_type(e, v->type);
    void *out = rx_map_get(&e->outs, RX_KEY(v));
    if (v->u.alloc.arena) {
        int32_t at = vm_ref(e, v->u.alloc.offset);
        vm_flush(e);
        rx_pkgw_op(e->w, RX_BC_ARENA, r, t, at);
        return;
    }
    vm_flush(e);
    if (out) rx_pkgw_op(e->w, RX_BC_OUT, r, (int)((intptr_t)out - 1), t);
    else rx_pkgw_op(e->w, RX_BC_ALLOC, r, t);
}

/* A result from outside the type system (a host function, a call by value), or a field, whose kind the verifier of
 * executables forgot in the tuple, is checked, so that kernels may rely on it. */
static void trust_after_match(vm_emit *e, relax_value *v, int32_t r, const char *name)
{
    if (v->type->kind != RX_TY_OBJECT) vm_match(e, r, v->type, -1, name);
}

static void call_function(vm_emit *e, relax_value *v, int32_t r)
{
    relax_value *f = v->args[0];
    int32_t *args = arg_regs(e, v, 1), n = (int32_t)v->nargs - 1;
    if (f->kind == RX_V_FUNC) {
        void *fn = rx_map_get(&e->fn_of, RX_KEY(f->u.callee));
        if (!fn)
            rx_fail(e->ctx, RXE_CODEGEN, NULL, "tensor program %s is called as a function; use call_tir",
                    f->u.callee->name);
        vm_flush(e);
        rx_pkgw_op(e->w, RX_BC_CALL, (int)((intptr_t)fn - 1), n, args, r);
    } else {
        int32_t callee = vm_reg(e, f);
        vm_flush(e);
        rx_pkgw_op(e->w, RX_BC_CALLR, callee, n, args, r);
    }
    trust_after_match(e, v, r, f->kind == RX_V_FUNC ? f->u.callee->name : "function value");
}

static void binding(vm_emit *e, relax_value *v)
{
    for (uint32_t i = 0; i < v->nchecks; i++) vm_check(e, v->checks[i], RXE_ARG_DIM, NULL);
    switch (v->kind) {
    case RX_V_CALL_DPS:
        if (v->u.callee) call_kernel(e, v);
        else call_library(e, v);
        return;
    case RX_V_ALLOC: alloc(e, v, new_reg(e, v)); return;
    case RX_V_VIEW: {
        int32_t from = vm_reg(e, v->args[0]), t = vm_type(e, v->type);
        vm_flush(e);
        rx_pkgw_op(e->w, RX_BC_VIEW, new_reg(e, v), from, t);
        return;
    }
    case RX_V_TUPLE: {
        int32_t *regs = arg_regs(e, v, 0);
        vm_flush(e);
        rx_pkgw_op(e->w, RX_BC_TUPLE, new_reg(e, v), (int)v->nargs, regs);
        return;
    }
    case RX_V_GET: {
        int32_t from = vm_reg(e, v->args[0]), r = new_reg(e, v);
        rx_pkgw_op(e->w, RX_BC_GET, r, from, (int)v->u.index);
        trust_after_match(e, v, r, "field");
        return;
    }
    case RX_V_MATCH_CAST: {
        int32_t from = vm_reg(e, v->args[0]);
        vm_match(e, from, v->type, -1, v->args[0]->name ? v->args[0]->name : "match_cast");
        rx_pkgw_op(e->w, RX_BC_MOVE, new_reg(e, v), from);
        return;
    }
    case RX_V_CALL: call_function(e, v, new_reg(e, v)); return;
    case RX_V_CALL_PACKED: {
        int32_t *regs = arg_regs(e, v, 0), r = new_reg(e, v);
        vm_flush(e);
        packed(e, v->ext, (int32_t)v->nargs, regs, r);
        trust_after_match(e, v, r, v->ext);
        return;
    }
    case RX_V_OP: {
        int32_t r = new_reg(e, v);
        host_op(e, v, r);
        trust_after_match(e, v, r, v->u.op->name);
        return;
    }
    case RX_V_IF: if_else(e, v, new_reg(e, v)); return;
    default: break;
    }
    rx_where w = where_of(e, v);
    rx_fail(e->ctx, RXE_CONTRACT, &w, "a binding is not lowered; run lower-calls before building");
}

/* heap memory goes after its last use; parameters are the caller's, arena memory goes with the frame */
static bool droppable(const relax_value *v)
{
    switch (v->kind) {
    case RX_V_ALLOC: return !v->u.alloc.arena;
    case RX_V_OP:
    case RX_V_CALL:
    case RX_V_CALL_PACKED:
    case RX_V_VIEW:
    case RX_V_TUPLE:
    case RX_V_GET:
    case RX_V_MATCH_CAST: return true;
    default: return false;
    }
}

static void body(vm_emit *e, rx_body *b)
{
    for (rx_iblock *bl = b->first; bl; bl = bl->next)
        for (relax_value *v = bl->first; v; v = v->next) {
            int32_t at = ++e->pos;
            binding(e, v);
            for (uint32_t i = 0; i < v->nargs; i++) {
                relax_value *x = v->args[i];
                if (!x || !droppable(x) || (intptr_t)rx_map_get(&e->last_use, RX_KEY(x)) != at) continue;
                rx_map_put(&e->last_use, RX_KEY(x), NULL);
                rx_pkgw_op(e->w, RX_BC_KILL, vm_reg(e, x));
            }
        }
}

/* positions as in body(): pre-order; results of bodies are used behind everything (no KILL) */
typedef struct uses { vm_emit *e; intptr_t pos; } uses;
static void note_uses(void *arg, relax_value *v)
{
    uses *u = arg;
    u->pos++;
    for (uint32_t i = 0; i < v->nargs; i++)
        if (v->args[i] && (intptr_t)rx_map_get(&u->e->last_use, RX_KEY(v->args[i])) >= 0)
            rx_map_put(&u->e->last_use, RX_KEY(v->args[i]), (void *)u->pos);
    if (v->kind != RX_V_IF) return;
    rx_body *b[2] = { v->u.branch.then, v->u.branch.other };
    for (int i = 0; i < 2; i++)
        if (b[i]->result) rx_map_put(&u->e->last_use, RX_KEY(b[i]->result), (void *)(intptr_t)-1);
}

/* allocations of the top level that are tensors of the result take the caller's memory */
static int32_t find_outs(vm_emit *e, relax_value *v, int32_t n)
{
    if (!v) return n;
    if (v->kind == RX_V_TUPLE) {
        for (uint32_t i = 0; i < v->nargs && n >= 0; i++) n = find_outs(e, v->args[i], n);
        return n;
    }
    if (v->type->kind == RX_TY_TUPLE) return -1;        /* a tuple made elsewhere: its tensors cannot be named */
    if (v->kind == RX_V_ALLOC && v->block->body == &e->f->body && !v->u.alloc.arena && !rx_map_has(&e->outs, RX_KEY(v)))
        rx_map_put(&e->outs, RX_KEY(v), (void *)(intptr_t)(n + 1));
    return v->type->kind == RX_TY_TENSOR ? n + 1 : n;
}

/* ---- the memory formula: arena, known heap allocations, the most that one callee takes ---- */
typedef struct memory { vm_emit *e; rx_ex own, callee; } memory;       /* callee NULL: not known */
static rx_ex peak_of(vm_emit *e, relax_function *f);

static rx_ex callee_peak(vm_emit *e, relax_value *v)
{
    relax_function *g = v->args[0]->u.callee;
    rx_ex peak = peak_of(e, g);
    if (!peak) return NULL;
    rx_map map;
    rx_map_init(&map, e->a);
    rx_exvec checks = { 0 };
    rx_ty *pt = RX_NEWN(e->a, rx_ty, g->nparams + 1), *at = RX_NEWN(e->a, rx_ty, g->nparams + 1);
    for (uint32_t i = 0; i < g->nparams; i++) {
        pt[i] = g->params[i]->type;
        at[i] = v->args[i + 1]->type;
    }
    rx_bind_call(v->fn, pt, at, g->nparams, &map, &checks);
    return rx_subst(e->ctx, peak, &map);
}

static void add_memory(void *arg, relax_value *v)
{
    memory *m = arg;
    relax_context *ctx = m->e->ctx;
    if (v->kind == RX_V_ALLOC && !v->u.alloc.arena) {
        m->own = rx_add(ctx, m->own, rx_ty_bytes(ctx, v->type));
    } else if (v->kind == RX_V_CALL && v->args[0]->kind == RX_V_FUNC) {
        rx_ex peak = m->callee ? callee_peak(m->e, v) : NULL;
        m->callee = peak ? rx_max(ctx, m->callee, peak) : NULL;
    } else if (v->kind == RX_V_CALL || v->kind == RX_V_CALL_PACKED || v->kind == RX_V_OP) {
        m->callee = NULL;
    }
}

/* Over f's symbols; NULL: not known (host functions, recursion, an expression that is no use to anybody). Each function
 * once. */
static rx_ex peak_of(vm_emit *e, relax_function *f)
{
    enum { LARGEST = 2000 };
    if (rx_map_has(&e->peaks, RX_KEY(f))) return rx_map_get(&e->peaks, RX_KEY(f));
    rx_map_put(&e->peaks, RX_KEY(f), NULL);            /* stands while f is looked at: recursion */
    memory m = { e, f->arena_bytes ? f->arena_bytes : rx_int(e->ctx, 0), rx_int(e->ctx, 0) };
    rx_fn_visit(f, add_memory, &m);
    rx_ex peak = m.callee ? rx_add(e->ctx, m.own, m.callee) : NULL;
    if (peak && peak->size > LARGEST) peak = NULL;
    rx_map_put(&e->peaks, RX_KEY(f), (void *)peak);
    return peak;
}

/* known before the call: symbols that a match_cast defines are not */
static bool known_at_entry(vm_emit *e, rx_ex x)
{
    rx_exvec syms = { 0 };
    rx_free_syms(e->ctx, e->a, x, &syms);
    for (uint32_t i = 0; i < syms.n; i++)
        if (!rx_map_has(&e->entry, RX_KEY(syms.at[i]))) return false;
    return true;
}

static void formula(vm_emit *e)
{
    rx_ex x = peak_of(e, e->f);
    if (!x || !known_at_entry(e, x)) return;
    rx_buf b;
    rx_buf_init(&b, e->a);
    rx_print_expr(&b, x);
    /* on its own over the symbols' slots: nothing computed before may be relied on */
    vm_scope own = { NULL, { 0 } };
    rx_map_init(&own.refs, e->a);
    vm_scope *outer = e->scope;
    for (uint32_t i = 0; i < e->entry.n; i++) {
        rx_ex sym = e->entry.e[i].val;
        rx_map_put(&own.refs, RX_KEY(sym), (void *)(intptr_t)(vm_ref(e, sym) + 1));
    }
    e->scope = &own;
    int32_t first = rx_pkgw_shape_count(e->w), ref = vm_ref(e, x);
    rx_pkgw_memory(e->w, b.at, first, rx_pkgw_shape_count(e->w) - first, ref);
    e->eval_count = 0;
    e->scope = outer;
}

static void function(vm_emit *e, relax_function *f)
{
    vm_scope top = { NULL, { 0 } };
    rx_map_init(&top.refs, e->a);
    e->f = f;
    e->scope = &top;
    e->pos = 0;
    rx_map_init(&e->regs, e->a);
    rx_map_init(&e->last_use, e->a);
    rx_map_init(&e->outs, e->a);
    rx_map_init(&e->entry, e->a);
    if (f->body.result) rx_map_put(&e->last_use, RX_KEY(f->body.result), (void *)(intptr_t)-1);
    uses u = { e, 0 };
    rx_fn_visit(f, note_uses, &u);
    int32_t nouts = find_outs(e, f->body.result, 0);
    rx_pkgw_fn_begin(e->w, (int32_t)((intptr_t)rx_map_get(&e->fn_of, RX_KEY(f)) - 1));
    vm_entry(e);
    body(e, &f->body);
    int32_t r = f->body.result ? vm_reg(e, f->body.result) : none_reg(e);
    vm_flush(e);
    rx_pkgw_op(e->w, RX_BC_RET, r);
    formula(e);
    rx_pkgw_fn_end(e->w, vm_text(e, f->ret), nouts < 0 ? 0 : nouts);
}

void rx_vm_emit(relax_module *m, rx_pkgw *w, const rx_vm_kernel *kernels, uint32_t nkernels, rx_arena *a)
{
    vm_emit e = { .ctx = m->ctx, .m = m, .a = a, .w = w, .kernels = kernels, .nkernels = nkernels };
    rx_map_init(&e.kernel_of, a);
    rx_map_init(&e.fn_of, a);
    rx_map_init(&e.kernel_no, a);
    rx_map_init(&e.peaks, a);
    for (uint32_t i = 0; i < nkernels; i++)
        rx_map_put(&e.kernel_of, RX_KEY(kernels[i].prim), (void *)(intptr_t)(i + 1));
    for (relax_function *f = m->first; f; f = f->next)
        if (!f->is_prim)
            rx_map_put(&e.fn_of, RX_KEY(f),
                       (void *)(intptr_t)(rx_pkgw_fn(w, f->name, f->is_private ? RX_FN_PRIVATE : 0) + 1));
    vm_find_writes(&e);
    /* kernels are numbered as the native code's table has them */
    for (uint32_t i = 0; i < nkernels; i++) {
        rx_exvec syms = { 0 };
        rx_prim_symbols(m->ctx, a, kernels[i].prim->prim, &syms);
        kernel_number(&e, kernels[i].prim, syms.n);
    }
    for (relax_function *f = m->first; f; f = f->next)
        if (!f->is_prim) function(&e, f);
}
