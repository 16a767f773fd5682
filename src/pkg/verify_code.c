/* verify_code.c: the bytecode of one function, by one forward pass.
 *
 * Jumps only go forwards, so the state before an instruction (what each register holds, which slots are written,
 * whether the arena is taken) is known when the pass reaches it: the state that falls through, joined with the copies
 * that jumps left for this word. A join keeps what all paths agree on. Operand letters (bytecode.def) drive the checks;
 * what they cannot say (arity of a kernel, fields of a tuple) stands in the switch of `special`.
 *
 * After this the VM reads operands without checks. Left to it, because they depend on values: kinds behind MATCH and
 * IF, arity of CALLR, sizes of VIEW and ARENA, results of the shape program. */
#include "pkg/verify.h"

typedef enum kind { K_UNDEF, K_ANY, K_TENSOR, K_SHAPE, K_PRIM, K_TUPLE, K_FUNC, K_STR } kind;
typedef struct vreg {
    int32_t kind, type, arity;
} vreg; /* type: of a MATCHed tuple, else -1; arity: of a tuple, else -1 */

typedef struct state state;
struct state {
    state *next;                       /* of the pending ones, ascending by target */
    int32_t target;
    uint8_t frame;                     /* RX_SLOT_*: FRAME was executed */
    vreg *regs;
    uint8_t *slots;
};
typedef struct flow {
    rx_verifier *v;
    const rx_pkg_fn *f;
    const int32_t *code;
    state *now, *pending;              /* now NULL: unreachable */
    size_t state_size, pending_bytes;
    int32_t at, end;                   /* next operand word; end of the code */
} flow;
enum { PENDING_LIMIT = 64 << 20 };

/* --- states --- */
static state *state_new(flow *w)
{
    state *s = rx_heap_alloc(&w->v->ctx->heap, w->state_size, _Alignof(state));
    if (s) {
        memset(s, 0, w->state_size);
        s->regs = (vreg *)(s + 1);
        s->slots = (uint8_t *)(s->regs + w->f->nregs);
    }
    return s;
}

static void state_free(flow *w, state *s)
{
    rx_heap_free(&w->v->ctx->heap, s, w->state_size);
}

static void state_copy(const flow *w, state *to, const state *from)
{
    memcpy(to->regs, from->regs, (size_t)w->f->nregs * sizeof(vreg));
    memcpy(to->slots, from->slots, (size_t)w->f->nslots);
    to->frame = from->frame;
}

static uint8_t join_bits(uint8_t a, uint8_t b)
{
    return (uint8_t)((a & b & RX_SLOT_SET) | ((a | b) & RX_SLOT_MAYBE));
}

static void state_join(const flow *w, state *to, const state *from)
{
    for (int32_t i = 0; i < w->f->nregs; i++) {
        vreg *a = &to->regs[i];
        const vreg *b = &from->regs[i];
        if (a->kind != b->kind)
            a->kind = a->kind == K_UNDEF || b->kind == K_UNDEF ? K_UNDEF : K_ANY;
        if (a->type != b->type)
            a->type = -1;
        if (a->arity != b->arity)
            a->arity = -1;
        if (a->kind != K_TUPLE)
            a->type = a->arity = -1;
    }
    for (int32_t i = 0; i < w->f->nslots; i++)
        to->slots[i] = join_bits(to->slots[i], from->slots[i]);
    to->frame = join_bits(to->frame, from->frame);
}

/* the state now also arrives at target */
static relax_status jump(flow *w, int32_t target)
{
    if (!rx_verify_pay(w->v, 2 * (int64_t)(w->f->nregs + w->f->nslots)))
        return rx_verify_over_budget(w->v);
    state **p = &w->pending;
    for (; *p && (*p)->target < target; p = &(*p)->next)
        if (!rx_verify_pay(w->v, 1))
            return rx_verify_over_budget(w->v);
    if (*p && (*p)->target == target) {
        state_join(w, *p, w->now);
        return RELAX_OK;
    }
    w->pending_bytes += w->state_size;
    if (w->pending_bytes > PENDING_LIMIT + 8 * w->v->p->size)
        return rx_verify_over_budget(w->v);
    state *s = state_new(w);
    if (!s)
        return rx_error(w->v->ctx, RXE_OOM, NULL, NULL, "out of memory");
    state_copy(w, s, w->now);
    s->target = target;
    s->next = *p;
    *p = s;
    return RELAX_OK;
}

/* take in what jumps left for the word pc */
static relax_status arrive(flow *w, int32_t pc, state *spare)
{
    state *s = w->pending;
    if (!s || s->target > pc)
        return w->now ? RELAX_OK : rx_verify_bad(w->v, "code that no path reaches");
    if (s->target < pc)
        return rx_verify_bad(w->v, "a jump to the middle of an instruction");
    if (!rx_verify_pay(w->v, 2 * (int64_t)(w->f->nregs + w->f->nslots)))
        return rx_verify_over_budget(w->v);
    if (w->now)
        state_join(w, w->now, s);
    else
        state_copy(w, w->now = spare, s);
    w->pending = s->next;
    w->pending_bytes -= w->state_size;
    state_free(w, s);
    return RELAX_OK;
}

/* --- operands --- */
static bool defined(const flow *w, int32_t r)
{
    return rx_verify_index(r, (uint32_t)w->f->nregs) && w->now->regs[r].kind != K_UNDEF;
}

static bool is_tensor(const flow *w, int32_t r)
{
    return defined(w, r) && w->now->regs[r].kind == K_TENSOR;
}

static bool ref_ok(const flow *w, int32_t ref)
{
    return rx_verify_ref(w->v, w->now->slots, w->f->nslots, ref);
}

static void define(flow *w, int32_t r, kind k)
{
    w->now->regs[r] = (vreg){k, -1, -1};
}

static bool concrete_ok(const flow *w, int32_t ti)
{
    const rx_pkg *p = w->v->p;
    if (!rx_verify_index(ti, p->n_types))
        return false;
    const rx_pkg_type *t = &p->types[ti];
    bool ok = t->kind == RX_PT_TENSOR && t->dtype != RELAX_DTYPE_UNKNOWN && t->ndim >= 0;
    for (int32_t i = 0; ok && i < t->ndim; i++)
        ok = p->tw[t->first + 2 * i] == RX_DIM_EQ && ref_ok(w, p->tw[t->first + 2 * i + 1]);
    return ok;
}

/* Slots of a pattern in the order in which MATCH visits them. Depth and size were bounded with the types. */
static bool pattern_ok(flow *w, int32_t ti)
{
    const rx_pkg *p = w->v->p;
    const rx_pkg_type *t = &p->types[ti];
    const int32_t *x = p->tw + t->first;
    if (t->kind == RX_PT_OBJECT || t->kind == RX_PT_FUNC)
        return true;
    for (int32_t i = 0; i < t->ndim; i++) {
        if (t->kind == RX_PT_TUPLE) {
            if (!pattern_ok(w, x[i]))
                return false;
            continue;
        }
        int32_t mode = x[2 * i], ref = x[2 * i + 1];
        if (mode == RX_DIM_EQ && !ref_ok(w, ref))
            return false;
        if (mode == RX_DIM_BIND) {
            if (ref >= w->f->nslots || (w->now->slots[ref] & RX_SLOT_MAYBE))
                return false;
            w->now->slots[ref] = RX_SLOT_SET | RX_SLOT_MAYBE;
        }
    }
    return true;
}

static vreg typed(const rx_pkg *p, int32_t ti)
{
    static const uint8_t kinds[] = {[RX_PT_OBJECT] = K_ANY, [RX_PT_PRIM] = K_PRIM, [RX_PT_SHAPE] = K_SHAPE,
                                    [RX_PT_TENSOR] = K_TENSOR, [RX_PT_TUPLE] = K_TUPLE, [RX_PT_FUNC] = K_FUNC};
    const rx_pkg_type *t = &p->types[ti];
    bool tuple = t->kind == RX_PT_TUPLE;
    return (vreg){kinds[t->kind], tuple && t->ndim >= 0 ? ti : -1, tuple ? t->ndim : -1};
}

static bool list_item_ok(const flow *w, char letter, int32_t x)
{
    return letter == 'R' ? defined(w, x) : letter == 'B' ? is_tensor(w, x) : ref_ok(w, x);
}

static bool list_ok(flow *w, char letter)
{
    int32_t n = w->code[w->at++];
    if (n < 0 || n > w->end - w->at)
        return false;
    for (int32_t i = 0; i < n; i++)
        if (!list_item_ok(w, letter, w->code[w->at++]))
            return false;
    w->v->p->max_list = RX_MAX(w->v->p->max_list, (uint32_t)n);
    return true;
}

/* one operand, except that registers written (d) are defined after all were read */
static bool operand_ok(flow *w, char letter)
{
    const rx_pkg *p = w->v->p;
    if (w->at >= w->end)
        return false;
    if (letter == 'R' || letter == 'B' || letter == 'V')
        return list_ok(w, letter);
    int32_t x = w->code[w->at++];
    switch (letter) {
    case 'd': return rx_verify_index(x, (uint32_t)w->f->nregs);
    case 'r': return defined(w, x);
    case 't': return is_tensor(w, x);
    case 's': return ref_ok(w, x);
    case 'T': return concrete_ok(w, x);
    case 'P': return rx_verify_index(x, p->n_types);
    case 'k': return rx_verify_index(x, p->n_kernels);
    case 'l': return rx_verify_index(x, p->n_libs);
    case 'f': return rx_verify_index(x, p->n_fns);
    case 'c': return rx_verify_index(x, p->n_consts);
    case 'x': return rx_verify_index(x, p->n_strings);
    case 'y': return rx_verify_index(x, (uint32_t)w->f->nsyms);
    case 'j': return x >= w->at && x < w->end;
    case 'p': return w->at++ < w->end;
    default: return true;                        /* i */
    }
}

static bool error_ok(int32_t e)
{
    return e == RXE_ARG_DIM || e == RXE_BOUND_EXCEEDED || e == RXE_INDEX || e == RXE_DIV_ZERO || e == RXE_ARG_KIND;
}

/* --- what operand letters cannot say. x: the operands --- */
static relax_status get(flow *w, const int32_t *x)
{
    const rx_pkg *p = w->v->p;
    vreg t = w->now->regs[x[1]];
    if (t.kind != K_TUPLE || x[2] < 0 || x[2] >= t.arity)
        return rx_verify_bad(w->v, "GET of a value that is not known to have field %d", x[2]);
    w->now->regs[x[0]] = t.type < 0 ? (vreg){K_ANY, -1, -1} : typed(p, p->tw[p->types[t.type].first + x[2]]);
    return RELAX_OK;
}

static relax_status match(flow *w, const int32_t *x)
{
    if (!rx_verify_pay(w->v, 8 * (int64_t)(w->v->cost[x[1]] & 0xFFFFFF)))
        return rx_verify_over_budget(w->v);
    if (!pattern_ok(w, x[1]))
        return rx_verify_bad(w->v, "MATCH reads an undefined slot or writes one twice");
    if (x[2] < -1 || x[2] >= w->f->nparams)
        return rx_verify_bad(w->v, "MATCH names a parameter that does not exist");
    if (w->v->p->types[x[1]].kind != RX_PT_OBJECT)
        w->now->regs[x[0]] = typed(w->v->p, x[1]);
    return RELAX_OK;
}

static relax_status call_arity(flow *w, int64_t given, int64_t wanted, const char *what)
{
    return given == wanted ? RELAX_OK
                           : rx_verify_bad(w->v, "%s takes %d operands, it gets %d", what, (int)wanted, (int)given);
}

static relax_status kernel(flow *w, const int32_t *x)
{
    const rx_pkg_kernel *k = &w->v->p->kernels[x[0]];
    relax_status s = call_arity(w, x[1], k->nbufs, "a kernel");
    return s ? s : call_arity(w, x[2 + x[1]], k->nsyms, "a kernel");
}

static relax_status library(flow *w, const int32_t *x, int32_t kind)
{
    return w->v->p->libs[x[0]].kind == kind ? RELAX_OK
                                            : rx_verify_bad(w->v, "a library function is called in the wrong style");
}

static relax_status frame(flow *w)
{
    if (w->now->frame & RX_SLOT_MAYBE)
        return rx_verify_bad(w->v, "FRAME twice on a path");
    w->now->frame = RX_SLOT_SET | RX_SLOT_MAYBE;
    return RELAX_OK;
}

static relax_status branch(flow *w, int32_t target, bool also_falls)
{
    relax_status s = jump(w, target);
    if (!also_falls)
        w->now = NULL;
    return s;
}

static relax_status special(flow *w, int32_t op, const int32_t *x)
{
    vreg *regs = w->now->regs;
    switch ((rx_bc)op) {
    case RX_BC_KERNEL: return kernel(w, x);
    case RX_BC_LIB: return library(w, x, RX_LIB_DPS);
    case RX_BC_PACKED: define(w, x[2 + x[1]], K_ANY); return library(w, x, RX_LIB_PACKED);
    case RX_BC_OUT:
        define(w, x[0], K_TENSOR);
        return rx_verify_index(x[1], (uint32_t)w->f->nouts)
                   ? RELAX_OK
                   : rx_verify_bad(w->v, "OUT of a result that does not exist");
    case RX_BC_ALLOC:
    case RX_BC_VIEW:
    case RX_BC_CONST: define(w, x[0], K_TENSOR); return RELAX_OK;
    case RX_BC_ARENA:
        define(w, x[0], K_TENSOR);
        return w->now->frame & RX_SLOT_SET ? RELAX_OK : rx_verify_bad(w->v, "ARENA before FRAME");
    case RX_BC_FRAME: return frame(w);
    case RX_BC_TUPLE: regs[x[0]] = (vreg){K_TUPLE, -1, x[1]}; return RELAX_OK;
    case RX_BC_GET: return get(w, x);
    case RX_BC_SHAPE:
        define(w, x[0], K_SHAPE);
        return x[1] <= RX_PKG_MAX_NDIM ? RELAX_OK : rx_verify_bad(w->v, "SHAPE of too many dims");
    case RX_BC_PRIM:
        define(w, x[0], K_PRIM);
        return x[1] == RELAX_ANY_INT || x[1] == RELAX_ANY_FLOAT ? RELAX_OK
                                                                : rx_verify_bad(w->v, "PRIM of an unknown kind");
    case RX_BC_STR: define(w, x[0], K_STR); return RELAX_OK;
    case RX_BC_FUNC: define(w, x[0], K_FUNC); return RELAX_OK;
    case RX_BC_MOVE: regs[x[0]] = regs[x[1]]; return RELAX_OK;
    case RX_BC_KILL: regs[x[0]] = (vreg){K_UNDEF, -1, -1}; return RELAX_OK;
    case RX_BC_EVAL: return rx_verify_shape(w->v, w->now->slots, w->f->nslots, x[0], x[1]);
    case RX_BC_MATCH: return match(w, x);
    case RX_BC_BOUND:
        return ref_ok(w, w->v->p->syms[w->f->sym0 + x[0]].slot) ? RELAX_OK
                                                                : rx_verify_bad(w->v, "BOUND of an undefined symbol");
    case RX_BC_CHECK:
        return error_ok(x[1]) ? RELAX_OK : rx_verify_bad(w->v, "CHECK with an error number that is not allowed");
    case RX_BC_CALL: {
        relax_status s = call_arity(w, x[1], w->v->p->fns[x[0]].nparams, "a function");
        define(w, x[2 + x[1]], K_ANY);
        return s;
    }
    case RX_BC_CALLR: {
        bool is_fn = regs[x[0]].kind == K_FUNC;
        define(w, x[2 + x[1]], K_ANY);
        return is_fn ? RELAX_OK : rx_verify_bad(w->v, "CALLR of a value that is not known to be a function");
    }
    case RX_BC_IF: {
        int32_t k = regs[x[0]].kind;
        if (k != K_TENSOR && k != K_PRIM && k != K_ANY)
            return rx_verify_bad(w->v, "IF of a value that cannot be a bool");
        return branch(w, x[1], true);
    }
    case RX_BC_BRANCH: return branch(w, x[1], true);
    case RX_BC_JUMP: return branch(w, x[0], false);
    case RX_BC_RET: w->now = NULL; return RELAX_OK;
    case RX_BC_COUNT: break;
    }
    return RELAX_OK;
}

static relax_status instruction(flow *w)
{
    int32_t op = w->code[w->at++];
    if (op <= 0 || op >= RX_BC_COUNT)
        return rx_verify_bad(w->v, "unknown instruction %d (this library reads format %d.%d)", op, RX_PKG_MAJOR,
                             RX_PKG_MINOR);
    const int32_t *x = w->code + w->at;
    for (const char *letter = rx_bc_operands[op]; *letter; letter++)
        if (!operand_ok(w, *letter))
            return rx_verify_bad(w->v, "%s: operand %d (%c) is out of range, undefined or of the wrong kind",
                                 rx_bc_names[op], (int)(letter - rx_bc_operands[op]), *letter);
    return special(w, op, x);
}

relax_status rx_verify_code(rx_verifier *v, int32_t fn)
{
    const rx_pkg_fn *f = &v->p->fns[fn];
    flow w = {.v = v, .f = f, .code = v->p->code + f->code0, .end = f->ncode};
    w.state_size = sizeof(state) + (size_t)f->nregs * sizeof(vreg) + (size_t)f->nslots;
    state *mine = w.now = state_new(&w);
    if (!mine)
        return rx_error(v->ctx, RXE_OOM, NULL, NULL, "out of memory");
    for (int32_t i = 0; i < f->nregs; i++)
        mine->regs[i] = (vreg){i < f->nparams ? K_ANY : K_UNDEF, -1, -1};
    relax_status s = RELAX_OK;
    while (!s && w.at < w.end) {
        v->pc = w.at;
        s = arrive(&w, w.at, mine);
        if (!s)
            s = instruction(&w);
    }
    if (!s && w.now)
        s = rx_verify_bad(v, "the function ends without RET");
    if (!s && w.pending)
        s = rx_verify_bad(v, "a jump to the end of the function");
    while (w.pending) {
        state *next = w.pending->next;
        state_free(&w, w.pending);
        w.pending = next;
    }
    state_free(&w, mine);
    return s;
}
