/* verify.c: the rules of graph functions and modules. Every break is reported on the context (RXE_VERIFY, the rule's
 * number first), none stops the rest.
 *
 *  G1  a value in a body is a binding, stands in one place, and its links are right
 *  G2  every value has an annotation
 *  G3  an operand is a leaf, a parameter, or a binding that dominates the use (a body of an if ends its scope)
 *  G4  a binding of a dataflow block is used outside only if it is an output
 *  G5  a dataflow block holds no impure binding, no if, no destination-passing call
 *  G6  a pure function has no impure call
 *  G7  both bodies of an if have results
 *  G8  a symbol is used only behind its definition: a match_cast, or a parameter's dim that is it or is linear in it
 *  G9  the annotation equals what deduction gives from the operands
 *  G10 deduction accepts the binding: arity, kinds, data types, shapes (reported by deduction, with its own number)
 *  G11 obligations of deduction are proved or recorded; recorded ones are conditions over defined symbols
 *  G12 a callee is in the module, a tensor program where one is needed and a graph function elsewhere
 *  G13 what a call overwrites in place is no constant and is not used behind the call, under any name
 *  G14 attributes follow the operator's declaration
 *  G15 a constant's data fit its shape
 *  G16 the function's result fits its declared annotation, which names symbols of the parameters only
 *  G17 names of functions are unique, every function knows its module
 *  G18 a destination-passing call has no user; memory in the arena has an offset over defined symbols
 *  G19 scratch fields are empty
 *  T…  tensor programs: tir/verify.c
 *
 * The scope of values and symbols is one stack walked with the program: leaving a body pops what it defined. */
#include "graph/op.h"

typedef struct scope_entry { uint64_t key; } scope_entry;
typedef struct verifier {
    relax_context *ctx;
    relax_module *m;
    relax_function *f;
    rx_arena *a;
    rx_map in_scope;                   /* values and symbols -> itself, or NULL once out of scope */
    RX_VEC(scope_entry) stack;         /* what to take out again at the end of a body or dataflow block */
    rx_map order;                      /* value -> 1 + its number in program order */
    uint32_t next_order, breaks;
    rx_ex any;                         /* stands for the value of a dim at run time */
} verifier;

RX_PRINTF(3, 4) static void broken(verifier *c, const relax_value *v, const char *fmt, ...)
{
    rx_buf b;
    rx_buf_init(&b, c->a);
    va_list ap;
    va_start(ap, fmt);
    rx_putv(&b, fmt, ap);
    va_end(ap);
    if (v && v->block) {
        rx_puts(&b, " in: ");
        rx_print_value(&b, (relax_value *)v);
    }
    rx_where w = {.function = c->f ? c->f->name : NULL, .binding = v ? v->name : NULL};
    rx_report(c->ctx, RXE_VERIFY, &w, NULL, "%s", b.at);
    c->breaks++;
}

static void enter(verifier *c, const void *p)
{
    scope_entry e = {RX_KEY(p)};
    rx_map_put(&c->in_scope, e.key, (void *)p);
    rx_push(c->a, &c->stack, e);
}

static void leave_to(verifier *c, uint32_t mark)
{
    while (c->stack.n > mark)
        rx_map_put(&c->in_scope, c->stack.at[--c->stack.n].key, NULL);
}

static bool is_leaf(const relax_value *v)
{
    switch (v->kind) {
    case RX_V_CONST:
    case RX_V_SHAPE:
    case RX_V_PRIM:
    case RX_V_FUNC:
    case RX_V_STR:
        return true;
    case RX_V_PARAM:
    case RX_V_OP:
    case RX_V_CALL:
    case RX_V_CALL_TIR:
    case RX_V_CALL_TIR_INPLACE:
    case RX_V_CALL_DPS_LIB:
    case RX_V_CALL_PACKED:
    case RX_V_TUPLE:
    case RX_V_GET:
    case RX_V_MATCH_CAST:
    case RX_V_IF:
    case RX_V_ALLOC:
    case RX_V_CALL_DPS:
    case RX_V_VIEW:
    case RX_V_COUNT:
        break;
    }
    return false;
}

/* --- symbols --- */

static void use_expr(verifier *c, const relax_value *v, rx_ex e, const char *what)
{
    rx_exvec syms = {0};
    if (!e) {
        broken(c, v, "G8: an expression of the %s is missing", what);
        return;
    }
    rx_free_syms(c->ctx, c->a, e, &syms);
    for (uint32_t i = 0; i < syms.n; i++)
        if (!rx_map_get(&c->in_scope, RX_KEY(syms.at[i])))
            broken(c, v, "G8: symbol %s of the %s is not defined here", rx_sym_of(syms.at[i])->name, what);
}

static void use_type(verifier *c, const relax_value *v, rx_ty t, const char *what)
{
    rx_exvec syms = {0};
    rx_ty_free_syms(c->ctx, c->a, t, &syms);
    for (uint32_t i = 0; i < syms.n; i++)
        use_expr(c, v, syms.at[i], what);
}

/* the dims and values of t, in order */
static void list_dims(verifier *c, rx_ty t, rx_exvec *out)
{
    if (t->kind == RX_TY_FUNC)
        return;
    for (uint32_t i = 0; i < t->nelems; i++)
        list_dims(c, t->elems[i], out);
    for (int32_t i = 0; t->known && i < t->ndim; i++)
        rx_push(c->a, out, t->dims[i]);
}

/* Defines what the dims define: bare symbols first, then those that one dim is linear in. */
static void define_dims(verifier *c, const rx_exvec *dims)
{
    for (uint32_t i = 0; i < dims->n; i++)
        if (rx_sym_of(dims->at[i]) && !rx_map_get(&c->in_scope, RX_KEY(dims->at[i])))
            enter(c, dims->at[i]);
    for (bool again = true; again;) {
        again = false;
        for (uint32_t i = 0; i < dims->n; i++) {
            rx_exvec syms = {0};
            rx_ex open = NULL, value, cond;
            uint32_t n = 0;
            rx_free_syms(c->ctx, c->a, dims->at[i], &syms);
            for (uint32_t k = 0; k < syms.n; k++)
                if (!rx_map_get(&c->in_scope, RX_KEY(syms.at[k])) && n++ == 0)
                    open = syms.at[k];
            if (n == 1 && rx_solve(c->ctx, dims->at[i], c->any, open, &value, &cond)) {
                enter(c, open);
                again = true;
            }
        }
    }
}

static void define_type(verifier *c, rx_ty t)
{
    rx_exvec dims = {0};
    list_dims(c, t, &dims);
    define_dims(c, &dims);
}

/* --- operands --- */

static void check_const(verifier *c, const relax_value *user, const relax_value *v)
{
    const rx_const *k = v->u.data;
    int64_t n = (int64_t)rx_dtype_bytes(k->dtype);
    bool ok = rx_ty_is_tensor(v->type, (int32_t)k->ndim, k->dtype);
    for (uint32_t i = 0; i < k->ndim && ok; i++)
        ok = rx_is_value(v->type->dims[i], k->dims[i]) && k->dims[i] >= 0 && rx_mul_ok(n, k->dims[i], &n);
    if (!ok || (size_t)n != k->bytes)
        broken(c, user, "G15: a constant's data do not fit its shape");
}

static void check_leaf(verifier *c, const relax_value *user, const relax_value *v)
{
    if (v->kind == RX_V_CONST)
        check_const(c, user, v);
    else if (v->kind == RX_V_FUNC && (!v->u.callee || v->u.callee->mod != c->m))
        broken(c, user, "G12: function %s is not in the module", v->u.callee ? v->u.callee->name : "(none)");
    else if (v->kind == RX_V_SHAPE || v->kind == RX_V_PRIM)
        for (uint32_t i = 0; i < v->nsyms; i++)
            use_expr(c, user, v->syms[i], "operand");
}

static void check_use(verifier *c, const relax_value *user, const relax_value *v)
{
    if (!v->type)
        broken(c, user, "G2: an operand has no annotation");
    else if (is_leaf(v))
        check_leaf(c, user, v);
    else if (v->fn != c->f)
        broken(c, user, "G3: operand %s belongs to another function", v->name ? v->name : "(no name)");
    else if (!rx_map_get(&c->in_scope, RX_KEY(v)))
        broken(c, user,
               rx_map_has(&c->in_scope, RX_KEY(v)) && v->block && v->block->dataflow && !v->output
                   ? "G4: operand %s is no output of its dataflow block"
                   : "G3: operand %s is not defined here",
               v->name ? v->name : "(no name)");
    else if (v->kind == RX_V_CALL_DPS)
        broken(c, user, "G18: a destination-passing call has no result");
}

/* --- one binding --- */

static void check_callee(verifier *c, const relax_value *v)
{
    bool tir = v->kind == RX_V_CALL_TIR || v->kind == RX_V_CALL_TIR_INPLACE || (v->kind == RX_V_CALL_DPS && !v->ext);
    if (tir && (!v->u.callee || v->u.callee->mod != c->m))
        broken(c, v, "G12: tensor program %s is not in the module", v->u.callee ? v->u.callee->name : "(none)");
}

static void check_place(verifier *c, const relax_value *v)
{
    const rx_iblock *b = v->block;
    bool dps = v->kind == RX_V_CALL_DPS;
    if (b->dataflow && (!v->pure || dps || v->kind == RX_V_IF))
        broken(c, v, "G5: this binding cannot stand in a dataflow block");
    if (c->f->pure && !v->pure)
        broken(c, v, "G6: an impure call in a pure function");
    if (v->scratch)
        broken(c, v, "G19: a pass left something in the binding");
    if (v->kind == RX_V_ALLOC && v->u.alloc.arena) {
        use_expr(c, v, v->u.alloc.offset, "offset");
        if (!c->f->arena_bytes)
            broken(c, v, "G18: memory in an arena of unknown size");
    }
}

static void check_attrs(verifier *c, relax_value *v)
{
    if (v->kind != RX_V_OP)
        return;
    if (!v->u.op) {
        broken(c, v, "G14: the operator is missing");
        return;
    }
    rx_attrs want = rx_op_attrs(c->ctx, c->a, v->u.op, v->attrs.at, v->attrs.n);
    if (!rx_attrs_equal(&want, &v->attrs))
        broken(c, v, "G14: the attributes of %s are not in the declared form", v->u.op->name);
    for (uint32_t i = 0; i < v->attrs.n; i++) {
        const rx_attr *x = &v->attrs.at[i];
        if (x->kind == RX_A_EXPR)
            use_expr(c, v, x->u.e, "attributes");
        for (uint32_t k = 0; x->kind == RX_A_EXPRS && k < x->u.exprs.n; k++)
            use_expr(c, v, x->u.exprs.at[k], "attributes");
    }
}

static void check_obligations(verifier *c, relax_value *v, const rx_exvec *need)
{
    for (uint32_t i = 0; i < need->n; i++) {
        bool found = false;
        for (uint32_t k = 0; k < v->nchecks; k++)
            found |= v->checks[k] == need->at[i];
        if (!found)
            broken(c, v, "G11: a condition that deduction needs is not recorded");
    }
    for (uint32_t k = 0; k < v->nchecks; k++) {
        if (v->checks[k]->dtype != RELAX_BOOL || v->checks[k]->flags & RX_EX_DATA)
            broken(c, v, "G11: a recorded condition is no condition over symbols");
        use_expr(c, v, v->checks[k], "conditions");
    }
}

static bool same_type(verifier *c, rx_ty a, rx_ty b)
{
    return a == b ||
           (rx_ty_subtype(c->ctx, c->f->facts, a, b) == RX_TRUE && rx_ty_subtype(c->ctx, c->f->facts, b, a) == RX_TRUE);
}

/* Deduction and attribute checks unwind on a fault: they run in a frame of their own. */
static void check_deduction(verifier *c, relax_value *v)
{
    rx_frame fr;
    if (RX_ENTER(&c->ctx->heap, &fr)) {
        rx_exvec need = {0};
        check_attrs(c, v);
        rx_ty t = rx_v_deduce(c->f, v, &need);
        if (!same_type(c, t, v->type)) {
            rx_buf b;
            rx_buf_init(&b, rx_scratch(&c->ctx->heap));
            rx_print_type(&b, t);
            rx_puts(&b, ", not ");
            rx_print_type(&b, v->type);
            broken(c, v, "G9: deduction gives %s", b.at);
        }
        check_obligations(c, v, &need);
        rx_leave(&c->ctx->heap, &fr);
        return;
    }
    if (rx_diag_status(c->ctx) == RELAX_E_NOMEM)
        rx_unwind(&c->ctx->heap);
    broken(c, v, "G10: deduction refuses a binding");
}

static void check_body(verifier *c, rx_body *b, relax_value *owner);

static void check_binding(verifier *c, rx_iblock *bl, relax_value *v)
{
    if (is_leaf(v) || v->kind == RX_V_PARAM || v->kind >= RX_V_COUNT || v->block != bl || v->fn != c->f ||
        (v->next && v->next->prev != v) || rx_map_has(&c->order, RX_KEY(v))) {
        broken(c, v, "G1: a value is misplaced in its block");
        return;
    }
    rx_map_put(&c->order, RX_KEY(v), (void *)(uintptr_t)++c->next_order);
    uint32_t before = c->breaks;
    for (uint32_t i = 0; i < v->nargs; i++)
        if (v->args[i])
            check_use(c, v, v->args[i]);
        else if (v->kind != RX_V_OP)
            broken(c, v, "G3: operand %u is missing", i);
    for (uint32_t i = 0; i < v->nsyms; i++)
        use_expr(c, v, v->syms[i], "symbolic arguments");
    check_callee(c, v);
    check_place(c, v);
    if (v->kind == RX_V_IF) {
        check_body(c, v->u.branch.then, v);
        check_body(c, v->u.branch.other, v);
    }
    if (!v->type)
        broken(c, v, "G2: a binding has no annotation");
    if (c->breaks == before) {
        if (v->kind == RX_V_MATCH_CAST)
            define_type(c, v->type);
        use_type(c, v, v->type, "annotation");
        check_deduction(c, v);
    }
    enter(c, v);
}

static void check_body(verifier *c, rx_body *b, relax_value *owner)
{
    uint32_t mark = c->stack.n;
    if (b->fn != c->f || b->owner != owner)
        broken(c, owner, "G1: a body does not know its owner");
    for (rx_iblock *bl = b->first; bl; bl = bl->next) {
        uint32_t block_mark = c->stack.n;
        if (bl->body != b || (!bl->next && b->last != bl))
            broken(c, owner, "G1: a block does not know its body");
        for (relax_value *v = bl->first; v; v = v->next)
            check_binding(c, bl, v);
        if (!bl->dataflow)
            continue;
        for (uint32_t i = block_mark; i < c->stack.n; i++) { /* private bindings end here; symbols and outputs stay */
            relax_value *v = rx_map_get(&c->in_scope, c->stack.at[i].key);
            if (v && rx_map_has(&c->order, RX_KEY(v)) && !v->output)
                rx_map_put(&c->in_scope, c->stack.at[i].key, NULL);
        }
    }
    if (!b->result)
        broken(c, owner, owner ? "G7: a body of an if has no result" : "G16: the function has no result");
    else
        check_use(c, owner, b->result);
    leave_to(c, mark);
}

/* --- in place (G13) --- */

typedef struct overwritten {
    verifier *c;
    const relax_value *call;           /* the call that overwrites */
    rx_map names;                      /* values that share the memory which dies */
    uint32_t at;
} overwritten;

static bool aliases(overwritten *o, const relax_value *v)
{
    if (v == o->call)
        return false;
    rx_effect e = rx_v_effect(v);
    if (e.alias >= 0)
        return (uint32_t)e.alias < v->nargs && v->args[e.alias] && rx_map_has(&o->names, RX_KEY(v->args[e.alias]));
    for (uint32_t i = 0; e.alias == -2 && i < v->nargs; i++)
        if (v->args[i] && rx_map_has(&o->names, RX_KEY(v->args[i])))
            return v->type && v->type->kind != RX_TY_PRIM && v->type->kind != RX_TY_SHAPE;
    return false;
}

/* the memory's other names: backwards to its roots, forwards through what shares it */
static void roots(overwritten *o, const relax_value *v)
{
    if (rx_map_has(&o->names, RX_KEY(v)))
        return;
    rx_map_put(&o->names, RX_KEY(v), (void *)v);
    bool view =
        v->kind == RX_V_MATCH_CAST || v->kind == RX_V_VIEW || (v->kind == RX_V_OP && v->u.op->flags & RX_OPF_VIEW);
    if (view && v->nargs && v->args[0])
        roots(o, v->args[0]);
}

static void spread(void *arg, relax_value *v)
{
    overwritten *o = arg;
    if (aliases(o, v))
        rx_map_put(&o->names, RX_KEY(v), v);
}

/* does `at` stand in a body of an if that does not hold the call, while the call stands in its other body? */
static bool excludes(const relax_value *call, const relax_value *at)
{
    for (const rx_body *b = at->block->body; b && b->owner; b = b->owner->block->body)
        for (const rx_body *k = call->block->body; k && k->owner; k = k->owner->block->body)
            if (k != b && k->owner == b->owner)
                return true;
    return false;
}

static void late_use(overwritten *o, const relax_value *user, const relax_value *v)
{
    if (v && rx_map_has(&o->names, RX_KEY(v)))
        broken(o->c, user, "G13: memory that was overwritten in place is used behind the call");
}

static void late_uses(void *arg, relax_value *v)
{
    overwritten *o = arg;
    uint32_t at = (uint32_t)(uintptr_t)rx_map_get(&o->c->order, RX_KEY(v));
    if (at <= o->at || excludes(o->call, v))
        return;
    if (v->kind == RX_V_IF) {
        late_use(o, v, v->u.branch.then->result);
        late_use(o, v, v->u.branch.other->result);
    }
    for (uint32_t i = 0; i < v->nargs; i++)
        late_use(o, v, v->args[i]);
}

static void check_inplace(void *arg, relax_value *v)
{
    verifier *c = arg;
    static const int32_t first = 0;
    bool op = v->kind == RX_V_OP && v->u.op->flags & RX_OPF_INPLACE;
    if (!op && v->kind != RX_V_CALL_TIR_INPLACE)
        return;
    const int32_t *inplace = op ? &first : v->inplace;
    overwritten o = {.c = c, .call = v, .at = (uint32_t)(uintptr_t)rx_map_get(&c->order, RX_KEY(v))};
    rx_map_init(&o.names, c->a);
    for (uint32_t i = 0; i < (op ? 1 : v->ninplace); i++) {
        int32_t k = inplace[i];
        if (k < 0 || (uint32_t)k >= v->nargs || !v->args[k])
            continue;
        roots(&o, v->args[k]);
        for (uint32_t j = 0; j < v->nargs; j++)
            if (j != (uint32_t)k && v->args[j] && rx_map_has(&o.names, RX_KEY(v->args[j])))
                broken(c, v, "G13: what is overwritten is also another argument");
    }
    for (uint32_t i = 0; i < o.names.n; i++)
        if (((const relax_value *)o.names.e[i].val)->kind == RX_V_CONST)
            broken(c, v, "G13: a constant would be overwritten");
    if (!o.names.n)
        return;
    rx_fn_visit(c->f, spread, &o);
    rx_fn_visit(c->f, late_uses, &o);
    for (const rx_body *b = v->block->body; b; b = b->owner ? b->owner->block->body : NULL)
        late_use(&o, v, b->result);
}

/* --- functions and modules --- */

static void check_params(verifier *c)
{
    rx_exvec dims = {0};
    for (uint32_t i = 0; i < c->f->nparams; i++) {
        relax_value *p = c->f->params[i];
        if (p->kind != RX_V_PARAM || p->fn != c->f || p->u.index != i || !p->type) {
            broken(c, NULL, "G1: parameter %u is misplaced", i);
            continue;
        }
        list_dims(c, p->type, &dims);
        enter(c, p);
    }
    define_dims(c, &dims);
    for (uint32_t i = 0; i < dims.n; i++)
        use_expr(c, NULL, dims.at[i], "parameters");
    for (uint32_t i = 0; i < c->f->fact_list.n; i++)
        use_expr(c, NULL, c->f->fact_list.at[i], "declared conditions");
    if (c->f->arena_bytes)
        use_expr(c, NULL, c->f->arena_bytes, "arena's size");
    if (c->f->ret)
        use_type(c, NULL, c->f->ret, "function's result");
}

static void check_function(verifier *c)
{
    relax_function *f = c->f;
    rx_map_init(&c->in_scope, c->a);
    rx_map_init(&c->order, c->a);
    c->any = rx_sym_new(c->ctx, "rx.dim", RELAX_I64);
    check_params(c);
    check_body(c, &f->body, NULL);
    if (f->body.result && f->body.result->type) {
        if (!f->ret)
            broken(c, NULL, "G16: the annotation of the result is missing");
        else if (rx_ty_subtype(c->ctx, f->facts, f->body.result->type, f->ret) != RX_TRUE)
            broken(c, NULL, "G16: the result does not fit the declared annotation");
    }
    if (!c->breaks)
        rx_fn_visit(f, check_inplace, c);
}

static void check_prim_func(verifier *c)
{
    rx_unproved_vec unproved = {0};
    if (!c->f->prim)
        broken(c, NULL, "G17: the tensor program is missing");
    else
        c->breaks += rx_prim_verify(c->ctx, c->f->prim, c->a, &unproved);
}

uint32_t rx_function_verify(relax_function *f)
{
    relax_context *ctx = f->mod->ctx;
    rx_arena own;                      /* outlives the inner frames, dies with this function */
    rx_frame fr;
    rx_arena_init(&own, &ctx->heap);
    verifier c = {.ctx = ctx, .m = f->mod, .f = f, .a = &own};
    if (RX_ENTER(&ctx->heap, &fr)) {
        if (f->is_prim)
            check_prim_func(&c);
        else
            check_function(&c);
        rx_leave(&ctx->heap, &fr);
        rx_arena_free(&own);
        return c.breaks;
    }
    rx_arena_free(&own);
    rx_unwind(&ctx->heap);
}

uint32_t rx_module_verify(relax_module *m)
{
    uint32_t n = 0;
    for (relax_function *f = m->first; f; f = f->next) {
        rx_where w = {.function = f->name};
        if (f->mod != m || rx_map_get(&m->by_name, RX_KEY(f->name)) != f || (!f->next && m->last != f)) {
            rx_report(m->ctx, RXE_VERIFY, &w, NULL, "G17: a function is not known to its module under its name");
            n++;
        } else {
            n += rx_function_verify(f);
        }
    }
    return n;
}
