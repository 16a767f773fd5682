/* node.c: hash-consing and the public constructors of expressions.
 *
 * In: operands that are nodes of the same context. Out: the one node that stands for the result. Index expressions
 * go to poly.c (sums, products), divmod.c (// and %) and order.c (comparisons, min, max, logic), which
 * canonicalise; data expressions are folded when all operands are constants (fold.c) and are built as they stand
 * otherwise. Trap: constructors never look at the bounds of symbols, because those are set after the symbol is
 * made. */
#include "expr/impl.h"

const char *const rx_eop_text[] = {
#define EX(name, arity, text, prec, doc) text,
#include "expr/exprs.def"
#undef EX
};
const int8_t rx_eop_prec[] = {
#define EX(name, arity, text, prec, doc) prec,
#include "expr/exprs.def"
#undef EX
};
const char *const rx_intrin_text[] = {
#define IN(name, text, arity, doc) text,
#include "expr/intrins.def"
#undef IN
};
const uint8_t rx_intrin_arity[] = {
#define IN(name, text, arity, doc) arity,
#include "expr/intrins.def"
#undef IN
};

rx_exprs *rx_expr_state(relax_context *ctx)
{
    if (!ctx->exprs) {
        rx_exprs *x = RX_NEW(&ctx->arena, rx_exprs);
        x->nslots = 256;
        x->slots = RX_NEWN(&ctx->arena, rx_ex, x->nslots);
        x->next_id = 1;
        rx_map_init(&x->names, &ctx->arena);
        ctx->exprs = x;
    }
    return ctx->exprs;
}

/* ---- interning ---- */
static void grow(relax_context *ctx, rx_exprs *x)
{
    uint32_t n = x->nslots * 2;
    rx_ex *s = RX_NEWN(&ctx->arena, rx_ex, n);
    for (uint32_t i = 0; i < x->nslots; i++) {
        if (!x->slots[i]) continue;
        uint32_t k = (uint32_t)x->slots[i]->hash & (n - 1);
        while (s[k]) k = (k + 1) & (n - 1);
        s[k] = x->slots[i];
    }
    x->slots = s;
    x->nslots = n;
}

/* proto has op, flags, dtype, intrin, u; the hash of u (uhash) is the caller's, because it must not hold addresses */
static rx_ex intern(relax_context *ctx, relax_expr *proto, uint64_t uhash, const rx_ex *a, uint32_t n)
{
    rx_exprs *x = rx_expr_state(ctx);
    uint64_t h = rx_mix(uhash, (uint64_t)proto->op | (uint64_t)proto->dtype << 8 | (uint64_t)proto->intrin << 16
        | (uint64_t)n << 32);
    uint64_t size = 1;
    uint32_t depth = 0;
    for (uint32_t i = 0; i < n; i++) {
        h = rx_mix(h + i, a[i]->hash);
        size += a[i]->size;
        if (a[i]->depth > depth) depth = a[i]->depth;
        proto->flags |= a[i]->flags & RX_EX_HAS_SYM;
    }
    if (depth + 1 > RX_EXPR_DEPTH)
        rx_fail(ctx, RXE_LIMIT, NULL, "an expression is nested deeper than %d levels", RX_EXPR_DEPTH);
    proto->hash = rx_mix(h, h >> 31);
    proto->nargs = n;
    proto->depth = depth + 1;
    proto->size = size > UINT32_MAX ? UINT32_MAX : (uint32_t)size;
    if (x->n * 2 >= x->nslots) grow(ctx, x);
    uint32_t k = (uint32_t)proto->hash & (x->nslots - 1);
    for (; x->slots[k]; k = (k + 1) & (x->nslots - 1)) {
        const relax_expr *e = x->slots[k];
        if (e->hash == proto->hash && e->op == proto->op && e->flags == proto->flags && e->dtype == proto->dtype
            && e->intrin == proto->intrin && e->nargs == n && !memcmp(&e->u, &proto->u, sizeof e->u)
            && (!n || !memcmp(e->a, a, n * sizeof(rx_ex))))
            return e;
    }
    relax_expr *e = rx_arena_alloc(&ctx->arena, sizeof *e + n * sizeof(rx_ex), _Alignof(relax_expr));
    memcpy(e, proto, sizeof *proto);
    if (n) memcpy(e->a, a, n * sizeof(rx_ex));
    e->ctx = ctx;
    e->id = x->next_id++;
    x->slots[k] = e;
    x->n++;
    return e;
}

rx_ex rx_node(relax_context *ctx, rx_eop op, uint32_t flags, relax_dtype t, const rx_ex *a, uint32_t n)
{
    relax_expr p = {.op = (uint8_t)op, .flags = (uint8_t)flags, .dtype = (uint8_t)t};
    return intern(ctx, &p, 0, a, n);
}

rx_ex rx_node2(relax_context *ctx, rx_eop op, uint32_t flags, relax_dtype t, rx_ex a, rx_ex b)
{
    return rx_node(ctx, op, flags, t, (rx_ex[]){a, b}, 2);
}

/* a node of a canonical sum; the first key is kept so that poly.c need not walk down for it */
rx_ex rx_sum_node(relax_context *ctx, rx_ex l, rx_ex r)
{
    relax_expr p = {.op = RX_EX_ADD, .dtype = RELAX_I64};
    p.u.first = rx_is_sum(l) ? l->u.first : rx_term_of(l).key;
    return intern(ctx, &p, 0, (rx_ex[]){l, r}, 2);
}

/* ---- order ---- */
static int cmp_leaf(rx_ex a, rx_ex b)
{
    if (a->op == RX_EX_SYM) {
        int c = strcmp(a->u.sym->name, b->u.sym->name);
        if (c) return c;
        return a->u.sym->number < b->u.sym->number ? -1 : 1;
    }
    if (a->op == RX_EX_INT && a->u.i != b->u.i) return a->u.i < b->u.i ? -1 : 1;
    return a->hash != b->hash ? (a->hash < b->hash ? -1 : 1) : (a->id < b->id ? -1 : 1);
}

/* the next term of a sum, left to right; stack holds what is left. NULL at the end, or when the stack is too small */
static rx_ex next_term(rx_ex *stack, uint32_t cap, uint32_t *n)
{
    if (!*n) return NULL;
    rx_ex e = stack[--*n];
    for (; rx_is_sum(e); e = e->a[0]) {
        if (*n == cap) return NULL;
        stack[(*n)++] = e->a[1];
    }
    return e;
}

/* Two different sums: by the first terms that differ, which are left in a and b (0: go on with them), a beginning
 * before the whole. How a sum's tree is built follows the numbers of its symbols; the order must not. */
static int cmp_sums(rx_ex *a, rx_ex *b)
{
    rx_ex sa[64] = {*a}, sb[64] = {*b}, x, y;
    uint32_t na = 1, nb = 1;
    do {
        x = next_term(sa, RX_COUNT(sa), &na);
        y = next_term(sb, RX_COUNT(sb), &nb);
    } while (x && x == y);
    if (x && y) {
        *a = x;
        *b = y;
        return 0;
    }
    if (!x && !na) return -1;
    if (!y && !nb) return 1;
    return (*a)->hash < (*b)->hash ? -1 : 1;           /* too deep to be looked at */
}

/* Symbols by name, then by operator; sums by their terms. Equal nodes are equal pointers, so the first pair of
 * operands that differs decides: a loop, no recursion. */
int rx_expr_cmp(rx_ex a, rx_ex b)
{
    for (;;) {
        if (a == b) return 0;
        if (rx_is_sum(a) && rx_is_sum(b)) {
            int c = cmp_sums(&a, &b);
            if (c) return c;
            continue;
        }
        bool sa = a->op == RX_EX_SYM, sb = b->op == RX_EX_SYM;
        if (sa != sb) return sa ? -1 : 1;
        if (a->op != b->op) return a->op < b->op ? -1 : 1;
        if (a->nargs != b->nargs) return a->nargs < b->nargs ? -1 : 1;
        uint32_t i = 0;
        while (i < a->nargs && a->a[i] == b->a[i]) i++;
        if (i == a->nargs) return cmp_leaf(a, b);
        rx_ex x = a->a[i];
        b = b->a[i];
        a = x;
    }
}

/* ---- leaves ---- */
rx_ex rx_const_int(relax_context *ctx, relax_dtype t, int64_t v)
{
    if (rx_dtype_is_float(t)) return rx_const_float(ctx, t, (double)v);
    relax_expr p = {.op = RX_EX_INT, .dtype = (uint8_t)t};
    p.flags = t == RELAX_I64 || t == RELAX_BOOL ? 0 : RX_EX_DATA;
    p.u.i = rx_wrap(t, v);
    return intern(ctx, &p, (uint64_t)p.u.i, NULL, 0);
}

rx_ex rx_int(relax_context *ctx, int64_t v) { return rx_const_int(ctx, RELAX_I64, v); }
rx_ex rx_bool(relax_context *ctx, bool v) { return rx_const_int(ctx, RELAX_BOOL, v); }

rx_ex rx_const_float(relax_context *ctx, relax_dtype t, double v)
{
    if (!rx_dtype_is_float(t))
        rx_fail(ctx, RXE_DTYPE, NULL, "a float constant cannot be of type %s", rx_dtypes[t].name);
    uint64_t raw = 0, bits;
    rx_store_f64(t, &raw, v);
    relax_expr p = {.op = RX_EX_FLOAT, .flags = RX_EX_DATA, .dtype = (uint8_t)t};
    p.u.f = rx_load_f64(t, &raw);
    if (p.u.f != p.u.f) p.u.f = __builtin_nan("");
    memcpy(&bits, &p.u.f, sizeof bits);
    return intern(ctx, &p, bits, NULL, 0);
}

rx_ex rx_sym_new(relax_context *ctx, const char *name, relax_dtype t)
{
    rx_exprs *x = rx_expr_state(ctx);
    rx_sym *s = RX_NEW(&ctx->arena, rx_sym);
    s->name = rx_str(ctx, name);
    uintptr_t number = (uintptr_t)rx_map_get(&x->names, RX_KEY(s->name));
    rx_map_put(&x->names, RX_KEY(s->name), (void *)(number + 1));
    s->number = (uint32_t)number;
    s->lo = INT64_MIN;
    s->hi = INT64_MAX;
    s->divisor = 1;
    relax_expr p = {.op = RX_EX_SYM, .flags = RX_EX_HAS_SYM, .dtype = (uint8_t)t};
    if (t != RELAX_I64 && t != RELAX_BOOL) p.flags |= RX_EX_DATA;
    p.u.sym = s;
    return intern(ctx, &p, rx_mix(rx_hash(name, strlen(name), 1), s->number), NULL, 0);
}

bool rx_is_int(rx_ex e, int64_t *v)
{
    if (e->op != RX_EX_INT) return false;
    *v = e->u.i;
    return true;
}

bool rx_is_value(rx_ex e, int64_t v) { return e->op == RX_EX_INT && e->u.i == v; }
rx_sym *rx_sym_of(rx_ex e) { return e->op == RX_EX_SYM ? e->u.sym : NULL; }

/* ---- operators ---- */
bool rx_op_takes(rx_eop op, relax_dtype t)
{
    switch (op) {
    case RX_EX_AND: case RX_EX_OR: case RX_EX_NOT: return t == RELAX_BOOL;
    case RX_EX_BITAND:
    case RX_EX_BITOR:
    case RX_EX_BITXOR:
    case RX_EX_BITNOT: return t == RELAX_BOOL || rx_dtype_is_int(t);
    case RX_EX_SHL: case RX_EX_SHR: case RX_EX_TRUNCDIV: case RX_EX_TRUNCMOD: return rx_dtype_is_int(t);
    case RX_EX_DIV: return rx_dtype_is_float(t);
    case RX_EX_EQ: case RX_EX_NE: case RX_EX_LT: case RX_EX_LE: case RX_EX_MIN: case RX_EX_MAX: return true;
    default: return t != RELAX_BOOL;
    }
}

static bool is_compare(rx_eop op) { return op >= RX_EX_EQ && op <= RX_EX_LE; }

/* The integer operators without an algebra of their own: shifts by constants become products and quotients, masks
 * become remainders; the rest stays an atom. */
static rx_ex index_other(relax_context *ctx, rx_eop op, rx_ex a, rx_ex b)
{
    int64_t v = 0;
    bool has = rx_is_int(b, &v);
    if (a->dtype == RELAX_I64 && has && v >= 0 && v < 62) {
        if (op == RX_EX_SHL) return rx_index_mul(ctx, a, rx_int(ctx, (int64_t)1 << v));
        if (op == RX_EX_SHR) return rx_index_floordiv(ctx, a, rx_int(ctx, (int64_t)1 << v));
    }
    if (op == RX_EX_BITAND || op == RX_EX_BITOR || op == RX_EX_BITXOR) {
        if (a->op == RX_EX_INT || (!has && rx_expr_cmp(a, b) > 0)) return index_other(ctx, op, b, a);
        if (a == b) return op == RX_EX_BITXOR ? rx_int(ctx, 0) : a;
        if (has && (v == 0 || v == -1) && (op != RX_EX_BITXOR || v == 0))
            return (v == 0) == (op == RX_EX_BITAND) ? b : a;
        if (has && op == RX_EX_BITAND && v > 0 && v < INT64_MAX && !(v & (v + 1)))
            return rx_index_floormod(ctx, a, rx_int(ctx, v + 1));
    }
    if (op == RX_EX_TRUNCDIV || op == RX_EX_TRUNCMOD) return rx_index_trunc(ctx, op, a, b);
    if (op == RX_EX_POW && has && v == 1) return a;
    return rx_node2(ctx, op, 0, RELAX_I64, a, b);
}

static rx_ex index_bool(relax_context *ctx, rx_eop op, rx_ex a, rx_ex b)
{
    switch (op) {
    case RX_EX_AND: case RX_EX_BITAND: case RX_EX_MIN: return rx_index_logic(ctx, RX_EX_AND, a, b);
    case RX_EX_OR: case RX_EX_BITOR: case RX_EX_MAX: return rx_index_logic(ctx, RX_EX_OR, a, b);
    case RX_EX_LT: return rx_index_logic(ctx, RX_EX_AND, rx_index_not(ctx, a), b);
    case RX_EX_LE: return rx_index_logic(ctx, RX_EX_OR, rx_index_not(ctx, a), b);
    default: break;
    }
    bool ne = op == RX_EX_NE || op == RX_EX_BITXOR;
    if (a == b) return rx_bool(ctx, ne);
    if (rx_expr_cmp(a, b) > 0) { rx_ex t = a; a = b; b = t; }
    if (a->op == RX_EX_INT) return (a->u.i != 0) != ne ? b : rx_index_not(ctx, b);
    if (b->op == RX_EX_INT) return (b->u.i != 0) != ne ? a : rx_index_not(ctx, a);
    return rx_node2(ctx, ne ? RX_EX_NE : RX_EX_EQ, 0, RELAX_BOOL, a, b);
}

static rx_ex index_binary(relax_context *ctx, rx_eop op, rx_ex a, rx_ex b)
{
    if (a->dtype == RELAX_BOOL) return index_bool(ctx, op, a, b);
    if (is_compare(op)) return rx_index_compare(ctx, op, a, b);
    switch (op) {
    case RX_EX_ADD: return rx_index_add(ctx, a, b);
    case RX_EX_SUB: return rx_index_add(ctx, a, rx_index_mul(ctx, rx_int(ctx, -1), b));
    case RX_EX_MUL: return rx_index_mul(ctx, a, b);
    case RX_EX_FLOORDIV: return rx_index_floordiv(ctx, a, b);
    case RX_EX_FLOORMOD: return rx_index_floormod(ctx, a, b);
    case RX_EX_MIN: case RX_EX_MAX: return rx_index_extremum(ctx, op, a, b);
    default: return index_other(ctx, op, a, b);
    }
}

rx_ex rx_binary(relax_context *ctx, rx_eop op, rx_ex a, rx_ex b)
{
    if (a->dtype != b->dtype)
        rx_fail(ctx, RXE_DTYPE, NULL, "the operands of %s have the types %s and %s", rx_eop_text[op],
            rx_dtypes[a->dtype].name, rx_dtypes[b->dtype].name);
    if (!rx_op_takes(op, a->dtype))
        rx_fail(ctx, RXE_DTYPE, NULL, "%s does not take %s", rx_eop_text[op], rx_dtypes[a->dtype].name);
    rx_ex e = rx_fold_binary(ctx, op, a, b);
    if (e) return e;
    if (rx_is_index(a) && rx_is_index(b)) return index_binary(ctx, op, a, b);
    return rx_node2(ctx, op, RX_EX_DATA, is_compare(op) ? RELAX_BOOL : a->dtype, a, b);
}

rx_ex rx_unary(relax_context *ctx, rx_eop op, rx_ex a)
{
    if (!rx_op_takes(op, a->dtype))
        rx_fail(ctx, RXE_DTYPE, NULL, "%s does not take %s", rx_eop_text[op], rx_dtypes[a->dtype].name);
    rx_ex e = rx_fold_unary(ctx, op, a);
    if (e) return e;
    if (rx_is_index(a)) {
        if (a->dtype == RELAX_BOOL) return rx_index_not(ctx, a);
        if (op == RX_EX_NEG) return rx_index_mul(ctx, rx_int(ctx, -1), a);
        return rx_index_add(ctx, rx_index_mul(ctx, rx_int(ctx, -1), a), rx_int(ctx, -1));
    }
    return rx_node(ctx, op, RX_EX_DATA, a->dtype, &a, 1);
}

rx_ex rx_select(relax_context *ctx, rx_ex cond, rx_ex a, rx_ex b)
{
    if (cond->dtype != RELAX_BOOL)
        rx_fail(ctx, RXE_DTYPE, NULL, "the condition of select is %s", rx_dtypes[cond->dtype].name);
    if (a->dtype != b->dtype)
        rx_fail(ctx, RXE_DTYPE, NULL, "the sides of select have the types %s and %s", rx_dtypes[a->dtype].name,
            rx_dtypes[b->dtype].name);
    if (cond->op == RX_EX_INT) return cond->u.i ? a : b;
    if (a == b) return a;
    bool index = rx_is_index(cond) && rx_is_index(a) && rx_is_index(b);
    if (index && a->dtype == RELAX_BOOL && (a->op == RX_EX_INT || b->op == RX_EX_INT)) {
        if (a->op == RX_EX_INT && a->u.i) return rx_index_logic(ctx, RX_EX_OR, cond, b);
        if (b->op == RX_EX_INT && !b->u.i) return rx_index_logic(ctx, RX_EX_AND, cond, a);
        rx_ex no = rx_index_not(ctx, cond);
        return a->op == RX_EX_INT ? rx_index_logic(ctx, RX_EX_AND, no, b) : rx_index_logic(ctx, RX_EX_OR, no, a);
    }
    rx_ex args[3] = {cond, a, b};
    return rx_node(ctx, RX_EX_SELECT, index ? 0 : RX_EX_DATA, a->dtype, args, 3);
}

rx_ex rx_cast(relax_context *ctx, relax_dtype to, rx_ex a)
{
    if (to <= RELAX_DTYPE_UNKNOWN || to >= RELAX_DTYPE_COUNT)
        rx_fail(ctx, RXE_DTYPE, NULL, "a cast to an unknown type");
    if (a->dtype == to) return a;
    rx_ex e = rx_fold_cast(ctx, to, a);
    if (e) return e;
    if (rx_is_index(a) && to == RELAX_I64) return rx_select(ctx, a, rx_int(ctx, 1), rx_int(ctx, 0));
    if (rx_is_index(a) && to == RELAX_BOOL) return rx_ne(ctx, a, rx_int(ctx, 0));
    return rx_node(ctx, RX_EX_CAST, RX_EX_DATA, to, &a, 1);
}

rx_ex rx_bitcast(relax_context *ctx, relax_dtype to, rx_ex a)
{
    if (to <= RELAX_DTYPE_UNKNOWN || to >= RELAX_DTYPE_COUNT || rx_dtype_bytes(to) != rx_dtype_bytes(a->dtype))
        rx_fail(ctx, RXE_DTYPE, NULL, "bitcast between types of different width");
    return a->dtype == to ? a : rx_node(ctx, RX_EX_BITCAST, RX_EX_DATA, to, &a, 1);
}

rx_ex rx_intrinsic(relax_context *ctx, rx_intrin f, rx_ex *args, uint32_t n)
{
    if ((unsigned)f >= RX_IN_COUNT || n != rx_intrin_arity[f])
        rx_fail(ctx, RXE_ARITY, NULL, "%s takes %d arguments",
                (unsigned)f < RX_IN_COUNT ? rx_intrin_text[f] : "an intrinsic",
                (unsigned)f < RX_IN_COUNT ? rx_intrin_arity[f] : 0);
    for (uint32_t i = 0; i < n; i++)
        if (args[i]->dtype != args[0]->dtype || args[i]->dtype == RELAX_BOOL ||
            (f != RX_IN_ABS && !rx_dtype_is_float(args[i]->dtype)))
            rx_fail(ctx, RXE_DTYPE, NULL, "%s does not take %s", rx_intrin_text[f], rx_dtypes[args[i]->dtype].name);
    rx_ex e = rx_fold_call(ctx, f, args);
    if (e) return e;
    relax_expr p = {.op = RX_EX_CALL, .dtype = args[0]->dtype, .intrin = (uint8_t)f};
    if (f == RX_IN_ISNAN) p.dtype = RELAX_BOOL;
    p.flags = args[0]->flags & RX_EX_DATA;
    return intern(ctx, &p, 0, args, n);
}

rx_ex rx_call1(relax_context *ctx, rx_intrin f, rx_ex a) { return rx_intrinsic(ctx, f, &a, 1); }

rx_ex rx_load(relax_context *ctx, relax_buffer *b, relax_dtype t, rx_ex *index, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        if (!rx_dtype_is_int(index[i]->dtype))
            rx_fail(ctx, RXE_DTYPE, NULL, "an index of a load is %s", rx_dtypes[index[i]->dtype].name);
    relax_expr p = {.op = RX_EX_LOAD, .flags = RX_EX_DATA, .dtype = (uint8_t)t};
    p.u.buf = b;
    return intern(ctx, &p, 0, index, n);
}

/* ---- shorthands ---- */
rx_ex rx_add(relax_context *ctx, rx_ex a, rx_ex b) { return rx_binary(ctx, RX_EX_ADD, a, b); }
rx_ex rx_sub(relax_context *ctx, rx_ex a, rx_ex b) { return rx_binary(ctx, RX_EX_SUB, a, b); }
rx_ex rx_mul(relax_context *ctx, rx_ex a, rx_ex b) { return rx_binary(ctx, RX_EX_MUL, a, b); }
rx_ex rx_mod(relax_context *ctx, rx_ex a, rx_ex b) { return rx_binary(ctx, RX_EX_FLOORMOD, a, b); }
rx_ex rx_min(relax_context *ctx, rx_ex a, rx_ex b) { return rx_binary(ctx, RX_EX_MIN, a, b); }
rx_ex rx_max(relax_context *ctx, rx_ex a, rx_ex b) { return rx_binary(ctx, RX_EX_MAX, a, b); }
rx_ex rx_eq(relax_context *ctx, rx_ex a, rx_ex b) { return rx_binary(ctx, RX_EX_EQ, a, b); }
rx_ex rx_ne(relax_context *ctx, rx_ex a, rx_ex b) { return rx_binary(ctx, RX_EX_NE, a, b); }
rx_ex rx_lt(relax_context *ctx, rx_ex a, rx_ex b) { return rx_binary(ctx, RX_EX_LT, a, b); }
rx_ex rx_le(relax_context *ctx, rx_ex a, rx_ex b) { return rx_binary(ctx, RX_EX_LE, a, b); }
rx_ex rx_and(relax_context *ctx, rx_ex a, rx_ex b) { return rx_binary(ctx, RX_EX_AND, a, b); }
rx_ex rx_or(relax_context *ctx, rx_ex a, rx_ex b) { return rx_binary(ctx, RX_EX_OR, a, b); }
rx_ex rx_not(relax_context *ctx, rx_ex a) { return rx_unary(ctx, RX_EX_NOT, a); }
rx_ex rx_div(relax_context *ctx, rx_ex a, rx_ex b)
{
    return rx_binary(ctx, rx_dtype_is_float(a->dtype) ? RX_EX_DIV : RX_EX_FLOORDIV, a, b);
}
rx_ex rx_addi(relax_context *ctx, rx_ex a, int64_t b) { return rx_add(ctx, a, rx_const_int(ctx, a->dtype, b)); }
rx_ex rx_subi(relax_context *ctx, rx_ex a, int64_t b) { return rx_sub(ctx, a, rx_const_int(ctx, a->dtype, b)); }
rx_ex rx_muli(relax_context *ctx, rx_ex a, int64_t b) { return rx_mul(ctx, a, rx_const_int(ctx, a->dtype, b)); }
rx_ex rx_divi(relax_context *ctx, rx_ex a, int64_t b) { return rx_div(ctx, a, rx_const_int(ctx, a->dtype, b)); }
rx_ex rx_modi(relax_context *ctx, rx_ex a, int64_t b) { return rx_mod(ctx, a, rx_const_int(ctx, a->dtype, b)); }
