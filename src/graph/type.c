/* type.c: annotations, their lattice and their substitution.
 *
 * Annotations are hash-consed in the context: equal pointers mean equal annotations, so passes compare with ==.
 * Order (subtype): Object is the top; an unknown rank, dtype, shape or value is above every known one; tuples compare
 * by field, functions by alpha-renaming with contravariant parameters. Equality of dims is the prover's.
 *
 * Traps. The symbols in a function annotation are bound by it: its constructor replaces them by one symbol per name,
 * shared by all function annotations, so that equal texts are equal pointers and substitution never enters a function
 * annotation. */
#include "graph/graph.h"

typedef struct type_node {
    relax_type t;
    struct type_node *next;
} type_node;

struct rx_types {
    rx_arena *a;
    rx_map by_hash;                    /* hash -> type_node chain */
    rx_map bound;                      /* interned name -> the symbol that function annotations use for it */
    uint32_t n;
};

static rx_types *types_of(relax_context *ctx)
{
    if (!ctx->types) {
        rx_types *ts = RX_NEW(&ctx->arena, rx_types);
        ts->a = &ctx->arena;
        rx_map_init(&ts->by_hash, ts->a);
        rx_map_init(&ts->bound, ts->a);
        ctx->types = ts;
    }
    return ctx->types;
}

static uint64_t type_hash(const relax_type *t)
{
    uint64_t h = rx_mix(0x9E37, (uint64_t)t->kind);
    h = rx_mix(h, (uint64_t)t->dtype);
    h = rx_mix(h, (uint64_t)(int64_t)t->ndim);
    h = rx_mix(h, (uint64_t)(t->known | t->pure << 1 | t->opaque << 2));
    if (t->known)
        for (int32_t i = 0; i < t->ndim; i++)
            h = rx_mix(h, t->dims[i]->id);
    for (uint32_t i = 0; i < t->nelems; i++)
        h = rx_mix(h, t->elems[i]->id);
    return t->ret ? rx_mix(h, t->ret->id) : h;
}

static bool type_same(const relax_type *a, const relax_type *b)
{
    if (a->kind != b->kind || a->dtype != b->dtype || a->ndim != b->ndim || a->known != b->known ||
        a->pure != b->pure || a->opaque != b->opaque || a->nelems != b->nelems || a->ret != b->ret)
        return false;
    if (a->known && a->ndim > 0 && memcmp(a->dims, b->dims, (size_t)a->ndim * sizeof(rx_ex)))
        return false;
    return !a->nelems || !memcmp(a->elems, b->elems, a->nelems * sizeof(rx_ty));
}

/* t is a value on the caller's stack; its arrays are copied only when the annotation is new */
static rx_ty intern(relax_context *ctx, const relax_type *t)
{
    rx_types *ts = types_of(ctx);
    uint64_t h = type_hash(t);
    type_node *head = rx_map_get(&ts->by_hash, h);
    for (type_node *p = head; p; p = p->next)
        if (type_same(&p->t, t))
            return &p->t;
    type_node *p = RX_NEW(ts->a, type_node);
    p->t = *t;
    if (t->known && t->ndim > 0)
        p->t.dims = rx_arena_dup(ts->a, t->dims, (size_t)t->ndim * sizeof(rx_ex));
    if (t->nelems)
        p->t.elems = rx_arena_dup(ts->a, t->elems, t->nelems * sizeof(rx_ty));
    p->t.ctx = ctx;
    p->t.id = ++ts->n;
    p->next = head;
    rx_map_put(&ts->by_hash, h, p);
    return &p->t;
}

rx_ty rx_ty_object(relax_context *ctx)
{
    return intern(ctx, &(relax_type){.kind = RX_TY_OBJECT, .ndim = -1});
}

/* A value that is no index expression (a float, a load) is not part of the annotation. */
rx_ty rx_ty_prim(relax_context *ctx, relax_dtype t, rx_ex value)
{
    rx_ex d[1] = {value};
    bool known = value && !(value->flags & RX_EX_DATA) && (value->dtype == RELAX_I64 || value->dtype == RELAX_BOOL);
    return intern(ctx, &(relax_type){.kind = RX_TY_PRIM, .dtype = t, .ndim = known, .known = known, .dims = d});
}

rx_ty rx_ty_shape(relax_context *ctx, rx_ex *dims, int32_t ndim)
{
    return intern(ctx, &(relax_type){.kind = RX_TY_SHAPE, .ndim = ndim, .known = true, .dims = dims});
}

rx_ty rx_ty_shape_ndim(relax_context *ctx, int32_t ndim)
{
    if (ndim == 0)
        return rx_ty_shape(ctx, NULL, 0);
    return intern(ctx, &(relax_type){.kind = RX_TY_SHAPE, .ndim = ndim});
}

rx_ty rx_ty_tensor(relax_context *ctx, rx_ex *dims, int32_t ndim, relax_dtype t)
{
    return intern(ctx, &(relax_type){.kind = RX_TY_TENSOR, .dtype = t, .ndim = ndim, .known = true, .dims = dims});
}

rx_ty rx_ty_tensor_ndim(relax_context *ctx, int32_t ndim, relax_dtype t)
{
    if (ndim == 0)
        return rx_ty_tensor(ctx, NULL, 0, t);
    return intern(ctx, &(relax_type){.kind = RX_TY_TENSOR, .dtype = t, .ndim = ndim});
}

rx_ty rx_ty_tuple(relax_context *ctx, rx_ty *elems, uint32_t n)
{
    return intern(ctx, &(relax_type){.kind = RX_TY_TUPLE, .ndim = -1, .elems = elems, .nelems = n});
}

/* --- function annotations --- */

static rx_ex bound_sym(relax_context *ctx, const char *name)
{
    rx_types *ts = types_of(ctx);
    rx_ex s = rx_map_get(&ts->bound, RX_KEY(name));
    if (!s) {
        s = rx_sym_new(ctx, name, RELAX_I64);
        rx_sym_of(s)->lo = 0;
        rx_map_put(&ts->bound, RX_KEY(name), (void *)s);
    }
    return s;
}

/* Maps every symbol of the signature to the shared symbol of its name; a second symbol of one name gets a suffix. */
static void bind_names(relax_context *ctx, rx_arena *a, const rx_exvec *syms, rx_map *out)
{
    rx_map used;
    rx_map_init(&used, a);
    for (uint32_t i = 0; i < syms->n; i++) {
        const char *name = rx_sym_of(syms->at[i])->name;
        const char *unique = name;
        for (uint32_t k = 1; rx_map_has(&used, RX_KEY(unique)); k++)
            unique = rx_strf(ctx, "%s_%u", name, k);
        rx_map_put(&used, RX_KEY(unique), (void *)unique);
        rx_map_put(out, RX_KEY(syms->at[i]), (void *)bound_sym(ctx, unique));
    }
}

typedef struct defined_set { const rx_exvec *syms; } defined_set;
static bool is_defined(void *arg, rx_ex sym)
{
    const rx_exvec *v = ((defined_set *)arg)->syms;
    for (uint32_t i = 0; i < v->n; i++)
        if (v->at[i] == sym)
            return true;
    return false;
}

rx_ty rx_ty_func(relax_context *ctx, rx_ty *params, uint32_t n, rx_ty ret, bool pure)
{
    rx_arena *a = rx_scratch(&ctx->heap);
    rx_exvec syms = {0};
    for (uint32_t i = 0; i < n; i++)
        rx_ty_free_syms(ctx, a, params[i], &syms);
    rx_map names;
    rx_map_init(&names, a);
    bind_names(ctx, a, &syms, &names);
    rx_ty *ps = RX_NEWN(a, rx_ty, n + 1);
    for (uint32_t i = 0; i < n; i++)
        ps[i] = rx_ty_subst(ctx, params[i], &names);
    ret = rx_ty_subst(ctx, rx_ty_erase(ctx, ret, is_defined, &(defined_set){&syms}), &names);
    return intern(ctx,
                  &(relax_type){.kind = RX_TY_FUNC, .ndim = -1, .pure = pure, .elems = ps, .nelems = n, .ret = ret});
}

rx_ty rx_ty_func_opaque(relax_context *ctx)
{
    return intern(ctx, &(relax_type){.kind = RX_TY_FUNC, .ndim = -1, .opaque = true});
}

/* --- substitution, symbols --- */

static rx_ty with_dims(relax_context *ctx, rx_ty t, rx_ex *dims)
{
    relax_type n = *t;
    n.dims = dims;
    return intern(ctx, &n);
}

rx_ty rx_ty_subst(relax_context *ctx, rx_ty t, const rx_map *syms)
{
    if (!t || t->kind == RX_TY_FUNC || t->kind == RX_TY_OBJECT)
        return t;
    rx_arena *a = rx_scratch(&ctx->heap);
    if (t->kind == RX_TY_TUPLE) {
        rx_ty *e = RX_NEWN(a, rx_ty, t->nelems + 1);
        for (uint32_t i = 0; i < t->nelems; i++)
            e[i] = rx_ty_subst(ctx, t->elems[i], syms);
        return rx_ty_tuple(ctx, e, t->nelems);
    }
    if (!t->known || t->ndim == 0)
        return t;
    rx_ex *d = RX_NEWN(a, rx_ex, (size_t)t->ndim);
    for (int32_t i = 0; i < t->ndim; i++)
        d[i] = rx_subst(ctx, t->dims[i], syms);
    return with_dims(ctx, t, d);
}

void rx_ty_free_syms(relax_context *ctx, rx_arena *a, rx_ty t, rx_exvec *out)
{
    if (!t || t->kind == RX_TY_FUNC)
        return;
    for (uint32_t i = 0; i < t->nelems; i++)
        rx_ty_free_syms(ctx, a, t->elems[i], out);
    if (t->known)
        for (int32_t i = 0; i < t->ndim; i++)
            rx_free_syms(ctx, a, t->dims[i], out);
}

static bool dims_keep(relax_context *ctx, rx_ty t, bool (*keep)(void *, rx_ex), void *arg)
{
    rx_exvec syms = {0};
    rx_ty_free_syms(ctx, rx_scratch(&ctx->heap), t, &syms);
    for (uint32_t i = 0; i < syms.n; i++)
        if (!keep(arg, syms.at[i]))
            return false;
    return true;
}

rx_ty rx_ty_erase(relax_context *ctx, rx_ty t, bool (*keep)(void *arg, rx_ex sym), void *arg)
{
    switch (t->kind) {
    case RX_TY_OBJECT:
    case RX_TY_FUNC:
        return t;
    case RX_TY_TUPLE: {
        rx_ty *e = RX_NEWN(rx_scratch(&ctx->heap), rx_ty, t->nelems + 1);
        for (uint32_t i = 0; i < t->nelems; i++)
            e[i] = rx_ty_erase(ctx, t->elems[i], keep, arg);
        return rx_ty_tuple(ctx, e, t->nelems);
    }
    case RX_TY_PRIM:
        return dims_keep(ctx, t, keep, arg) ? t : rx_ty_prim(ctx, t->dtype, NULL);
    case RX_TY_SHAPE:
        return dims_keep(ctx, t, keep, arg) ? t : rx_ty_shape_ndim(ctx, t->ndim);
    case RX_TY_TENSOR:
        return dims_keep(ctx, t, keep, arg) ? t : rx_ty_tensor_ndim(ctx, t->ndim, t->dtype);
    }
    return t;
}

/* --- lattice --- */

static rx_truth both(rx_truth a, rx_truth b)
{
    if (a == RX_FALSE || b == RX_FALSE)
        return RX_FALSE;
    return a == RX_TRUE && b == RX_TRUE ? RX_TRUE : RX_UNKNOWN;
}

static rx_truth sub_dtype(relax_dtype a, relax_dtype b)
{
    if (b == RELAX_DTYPE_UNKNOWN || a == b)
        return RX_TRUE;
    return a == RELAX_DTYPE_UNKNOWN ? RX_UNKNOWN : RX_FALSE;
}

static rx_truth sub_dims(relax_context *ctx, const rx_facts *f, rx_ty a, rx_ty b)
{
    if (b->kind == RX_TY_PRIM) {
        if (!b->known)
            return RX_TRUE;
        return a->known ? rx_prove_eq(ctx, f, a->dims[0], b->dims[0]) : RX_UNKNOWN;
    }
    if (b->ndim < 0)
        return RX_TRUE;
    if (a->ndim < 0)
        return RX_UNKNOWN;
    if (a->ndim != b->ndim)
        return RX_FALSE;
    if (!b->known)
        return RX_TRUE;
    if (!a->known)
        return RX_UNKNOWN;
    rx_truth r = RX_TRUE;
    for (int32_t i = 0; i < a->ndim; i++)
        r = both(r, a->dims[i] == b->dims[i] ? RX_TRUE : rx_prove_eq(ctx, f, a->dims[i], b->dims[i]));
    return r;
}

/* Adds what b's bare dims stand for in a: b's symbol -> a's expression. */
static void alpha(relax_context *ctx, rx_ty a, rx_ty b, rx_map *out)
{
    if (a->kind != b->kind || a->kind == RX_TY_FUNC)
        return;
    for (uint32_t i = 0; i < RX_MIN(a->nelems, b->nelems); i++)
        alpha(ctx, a->elems[i], b->elems[i], out);
    if (a->known && b->known && a->ndim == b->ndim)
        for (int32_t i = 0; i < a->ndim; i++)
            if (rx_sym_of(b->dims[i]) && a->dims[i]->dtype == b->dims[i]->dtype && !rx_map_has(out, RX_KEY(b->dims[i])))
                rx_map_put(out, RX_KEY(b->dims[i]), (void *)a->dims[i]);
}

static rx_truth sub_func(relax_context *ctx, rx_ty a, rx_ty b)
{
    if (b->opaque)
        return RX_TRUE;
    if (a->opaque)
        return RX_UNKNOWN;
    if (a->nelems != b->nelems || (b->pure && !a->pure))
        return RX_FALSE;
    rx_map names;
    rx_map_init(&names, rx_scratch(&ctx->heap));
    for (uint32_t i = 0; i < a->nelems; i++)
        alpha(ctx, a->elems[i], b->elems[i], &names);
    rx_truth r = RX_TRUE;
    for (uint32_t i = 0; i < a->nelems; i++)
        r = both(r, rx_ty_subtype(ctx, NULL, rx_ty_subst(ctx, b->elems[i], &names), a->elems[i]));
    return both(r, rx_ty_subtype(ctx, NULL, a->ret, rx_ty_subst(ctx, b->ret, &names)));
}

rx_truth rx_ty_subtype(relax_context *ctx, const rx_facts *f, rx_ty a, rx_ty b)
{
    if (a == b || b->kind == RX_TY_OBJECT)
        return RX_TRUE;
    if (a->kind == RX_TY_OBJECT)
        return RX_UNKNOWN;
    if (a->kind != b->kind)
        return RX_FALSE;
    rx_truth r = RX_TRUE;
    switch (a->kind) {
    case RX_TY_OBJECT:
        return RX_TRUE;
    case RX_TY_PRIM:
    case RX_TY_TENSOR:
        return both(sub_dtype(a->dtype, b->dtype), sub_dims(ctx, f, a, b));
    case RX_TY_SHAPE:
        return sub_dims(ctx, f, a, b);
    case RX_TY_TUPLE:
        if (a->nelems != b->nelems)
            return RX_FALSE;
        for (uint32_t i = 0; i < a->nelems; i++)
            r = both(r, rx_ty_subtype(ctx, f, a->elems[i], b->elems[i]));
        return r;
    case RX_TY_FUNC:
        return sub_func(ctx, a, b);
    }
    return RX_UNKNOWN;
}

static bool dims_equal(relax_context *ctx, const rx_facts *f, rx_ty a, rx_ty b)
{
    if (!a->known || !b->known || a->ndim != b->ndim)
        return false;
    for (int32_t i = 0; i < a->ndim; i++)
        if (a->dims[i] != b->dims[i] && rx_prove_eq(ctx, f, a->dims[i], b->dims[i]) != RX_TRUE)
            return false;
    return true;
}

rx_ty rx_ty_lub(relax_context *ctx, const rx_facts *f, rx_ty a, rx_ty b)
{
    if (a == b)
        return a;
    if (a->kind != b->kind)
        return rx_ty_object(ctx);
    relax_dtype dt = a->dtype == b->dtype ? a->dtype : RELAX_DTYPE_UNKNOWN;
    int32_t ndim = a->ndim == b->ndim ? a->ndim : -1;
    bool eq = dims_equal(ctx, f, a, b);
    switch (a->kind) {
    case RX_TY_OBJECT:
        return a;
    case RX_TY_PRIM:
        return rx_ty_prim(ctx, dt, eq ? a->dims[0] : NULL);
    case RX_TY_SHAPE:
        return eq ? a : rx_ty_shape_ndim(ctx, ndim);
    case RX_TY_TENSOR:
        return eq ? rx_ty_tensor(ctx, a->dims, a->ndim, dt) : rx_ty_tensor_ndim(ctx, ndim, dt);
    case RX_TY_TUPLE: {
        if (a->nelems != b->nelems)
            return rx_ty_object(ctx);
        rx_ty *e = RX_NEWN(rx_scratch(&ctx->heap), rx_ty, a->nelems + 1);
        for (uint32_t i = 0; i < a->nelems; i++)
            e[i] = rx_ty_lub(ctx, f, a->elems[i], b->elems[i]);
        return rx_ty_tuple(ctx, e, a->nelems);
    }
    case RX_TY_FUNC:
        if (rx_ty_subtype(ctx, f, a, b) == RX_TRUE)
            return b;
        return rx_ty_subtype(ctx, f, b, a) == RX_TRUE ? a : rx_ty_func_opaque(ctx);
    }
    return rx_ty_object(ctx);
}

bool rx_ty_is_tensor(rx_ty t, int32_t ndim, relax_dtype dt)
{
    return t && t->kind == RX_TY_TENSOR && t->known && (ndim < 0 || t->ndim == ndim) &&
           (dt == RELAX_DTYPE_UNKNOWN || t->dtype == dt);
}

rx_ex rx_ty_bytes(relax_context *ctx, rx_ty t)
{
    return rx_muli(ctx, rx_product(ctx, t->dims, (uint32_t)t->ndim), (int64_t)rx_dtype_bytes(t->dtype));
}
