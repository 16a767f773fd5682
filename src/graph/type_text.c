/* type_text.c: annotations as text. Grammar in docs/text-form.md; what is printed parses back to the same annotation.
 */
#include "graph/graph.h"

static void put_list(rx_buf *b, rx_ty *e, uint32_t n)
{
    rx_putc(b, '(');
    for (uint32_t i = 0; i < n; i++) {
        if (i)
            rx_puts(b, ", ");
        rx_print_type(b, e[i]);
    }
    rx_putc(b, ')');
}

static void put_shape(rx_buf *b, rx_ty t)
{
    if (!t->known) {
        if (t->ndim < 0)
            rx_puts(b, "ndim=?");
        else
            rx_putf(b, "ndim=%d", t->ndim);
    } else if (t->kind == RX_TY_TENSOR) {
        rx_print_dims(b, t->dims, (uint32_t)t->ndim);
    } else {
        for (int32_t i = 0; i < t->ndim; i++) {
            if (i)
                rx_puts(b, ", ");
            rx_print_expr(b, t->dims[i]);
        }
    }
}

void rx_print_type(rx_buf *b, rx_ty t)
{
    if (!t) {
        rx_puts(b, "none");
        return;
    }
    switch (t->kind) {
    case RX_TY_OBJECT:
        rx_puts(b, "Object");
        break;
    case RX_TY_PRIM:
        rx_putf(b, "Prim(%s", rx_dtypes[t->dtype].name);
        if (t->known) {
            rx_puts(b, ", ");
            rx_print_expr(b, t->dims[0]);
        }
        rx_putc(b, ')');
        break;
    case RX_TY_SHAPE:
        rx_puts(b, "Shape(");
        put_shape(b, t);
        rx_putc(b, ')');
        break;
    case RX_TY_TENSOR:
        rx_puts(b, "Tensor(");
        put_shape(b, t);
        rx_putf(b, ", %s)", rx_dtypes[t->dtype].name);
        break;
    case RX_TY_TUPLE:
        rx_puts(b, "Tuple");
        put_list(b, t->elems, t->nelems);
        break;
    case RX_TY_FUNC:
        rx_puts(b, "Callable");
        if (t->opaque)
            break;
        rx_puts(b, t->pure ? "(" : "[impure](");
        put_list(b, t->elems, t->nelems);
        rx_puts(b, " -> ");
        rx_print_type(b, t->ret);
        rx_putc(b, ')');
        break;
    }
}

/* --- reading --- */

static relax_dtype read_dtype(rx_lexer *l)
{
    if (rx_lex_take(l, "?"))
        return RELAX_DTYPE_UNKNOWN;
    relax_dtype t = l->tok == RX_T_NAME ? rx_dtype_parse(l->text, strlen(l->text)) : RELAX_DTYPE_UNKNOWN;
    if (t == RELAX_DTYPE_UNKNOWN)
        rx_lex_fail(l, RXE_SYNTAX, "expected a data type");
    rx_lex_next(l);
    return t;
}

/* "ndim=" was seen: its value, -1 for "?" */
static int32_t read_ndim(rx_lexer *l)
{
    rx_lex_next(l);
    rx_lex_want(l, "=");
    if (rx_lex_take(l, "?"))
        return -1;
    int64_t n = rx_lex_int(l, "a rank");
    if (n < 0 || n > RX_MAX_RANK)
        rx_lex_fail(l, RXE_SYNTAX, "a rank is 0 to %d", RX_MAX_RANK);
    return (int32_t)n;
}

static rx_ex read_dim(rx_lexer *l, const rx_scope_fns *sc)
{
    rx_ex e = rx_parse_expr(l, sc);
    if (e->dtype != RELAX_I64 || e->flags & RX_EX_DATA)
        rx_lex_fail(l, RXE_SYNTAX, "a dimension must be an integer expression");
    return e;
}

/* dims up to ")", which is taken */
static void read_dims(rx_lexer *l, const rx_scope_fns *sc, rx_exvec *out)
{
    rx_arena *a = rx_scratch(&l->ctx->heap);
    while (!rx_lex_take(l, ")")) {
        if (out->n == RX_MAX_RANK)
            rx_lex_fail(l, RXE_SYNTAX, "more than %d dimensions", RX_MAX_RANK);
        rx_push(a, out, read_dim(l, sc));
        if (!rx_lex_take(l, ",")) {
            rx_lex_want(l, ")");
            break;
        }
    }
}

static rx_ty read_tensor(rx_lexer *l, const rx_scope_fns *sc)
{
    rx_exvec d = {0};
    int32_t ndim = -1;
    rx_lex_want(l, "(");
    bool known = !rx_lex_is(l, "ndim");
    if (known) {
        rx_lex_want(l, "(");
        read_dims(l, sc, &d);
    } else {
        ndim = read_ndim(l);
    }
    rx_lex_want(l, ",");
    relax_dtype dt = read_dtype(l);
    rx_lex_want(l, ")");
    return known ? rx_ty_tensor(l->ctx, d.at, (int32_t)d.n, dt) : rx_ty_tensor_ndim(l->ctx, ndim, dt);
}

static rx_ty read_shape(rx_lexer *l, const rx_scope_fns *sc)
{
    rx_exvec d = {0};
    rx_lex_want(l, "(");
    if (rx_lex_is(l, "ndim")) {
        int32_t ndim = read_ndim(l);
        rx_lex_want(l, ")");
        return rx_ty_shape_ndim(l->ctx, ndim);
    }
    read_dims(l, sc, &d);
    return rx_ty_shape(l->ctx, d.at, (int32_t)d.n);
}

static rx_ty read_prim(rx_lexer *l, const rx_scope_fns *sc)
{
    rx_lex_want(l, "(");
    relax_dtype dt = read_dtype(l);
    rx_ex value = NULL;
    if (rx_lex_take(l, ",")) {
        value = rx_parse_expr(l, sc);
        if (value->dtype != dt || value->flags & RX_EX_DATA || (dt != RELAX_I64 && dt != RELAX_BOOL))
            rx_lex_fail(l, RXE_SYNTAX, "the value must be an index expression of the data type");
    }
    rx_lex_want(l, ")");
    return rx_ty_prim(l->ctx, dt, value);
}

typedef RX_VEC(rx_ty) type_vec;

/* annotations up to ")", which is taken */
static void read_list(rx_lexer *l, const rx_scope_fns *sc, type_vec *out)
{
    rx_arena *a = rx_scratch(&l->ctx->heap);
    rx_lex_want(l, "(");
    while (!rx_lex_take(l, ")")) {
        rx_push(a, out, rx_parse_type(l, sc));
        if (!rx_lex_take(l, ",")) {
            rx_lex_want(l, ")");
            break;
        }
    }
}

/* Names in a function annotation are its own. */
typedef struct local_scope { rx_map names; } local_scope;
static rx_ex local_name(void *arg, rx_lexer *l, const char *name)
{
    local_scope *s = arg;
    rx_ex e = rx_map_get(&s->names, RX_KEY(name));
    if (!e) {
        e = rx_sym_new(l->ctx, name, RELAX_I64);
        rx_sym_of(e)->lo = 0;
        rx_map_put(&s->names, RX_KEY(name), (void *)e);
    }
    return e;
}

static rx_ty read_callable(rx_lexer *l)
{
    bool pure = true;
    if (rx_lex_take(l, "[")) {
        rx_lex_want(l, "impure");
        rx_lex_want(l, "]");
        pure = false;
    } else if (!rx_lex_is(l, "(")) {
        return rx_ty_func_opaque(l->ctx);
    }
    local_scope s;
    rx_map_init(&s.names, rx_scratch(&l->ctx->heap));
    rx_scope_fns sc = {.name = local_name, .arg = &s};
    type_vec params = {0};
    rx_lex_want(l, "(");
    read_list(l, &sc, &params);
    rx_lex_want(l, "->");
    rx_ty ret = rx_parse_type(l, &sc);
    rx_lex_want(l, ")");
    return rx_ty_func(l->ctx, params.at, params.n, ret, pure);
}

rx_ty rx_parse_type(rx_lexer *l, const rx_scope_fns *sc)
{
    if (++l->depth > RX_MAX_DEPTH)
        rx_lex_fail(l, RXE_SYNTAX, "nested more than %d deep", RX_MAX_DEPTH);
    rx_ty t = NULL;
    if (l->tok != RX_T_NAME)
        rx_lex_fail(l, RXE_SYNTAX, "expected an annotation");
    if (rx_lex_take(l, "Tensor")) {
        t = read_tensor(l, sc);
    } else if (rx_lex_take(l, "Shape")) {
        t = read_shape(l, sc);
    } else if (rx_lex_take(l, "Prim")) {
        t = read_prim(l, sc);
    } else if (rx_lex_take(l, "Callable")) {
        t = read_callable(l);
    } else if (rx_lex_take(l, "Object")) {
        t = rx_ty_object(l->ctx);
    } else if (rx_lex_take(l, "Tuple")) {
        type_vec e = {0};
        read_list(l, sc, &e);
        t = rx_ty_tuple(l->ctx, e.at, e.n);
    } else {
        rx_lex_fail(l, RXE_SYNTAX, "'%s' is no annotation (Tensor, Shape, Prim, Tuple, Callable, Object)", l->text);
    }
    l->depth--;
    return t;
}
