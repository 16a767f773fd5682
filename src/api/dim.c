/* dim.c: dims and annotations of the public interface. NULL goes in and comes out, so that chains need no checks. */
#include "api/builder.h"

const relax_expr *relax_dim_const(relax_context *ctx, int64_t v)
{
    if (!rx_ctx_ok(ctx)) return NULL;
    API_TRY(ctx) {
        rx_ex e = rx_int(ctx, v);
        API_RETURN(e);
    }
    return NULL;
}

static const relax_expr *binary(rx_eop op, const relax_expr *a, const relax_expr *b)
{
    if (!a || !b || !rx_ctx_ok(a->ctx)) return NULL;
    if (a->ctx != b->ctx) {
        api_foreign(a->ctx, "a dim");
        return NULL;
    }
    API_TRY(a->ctx) {
        rx_ex e = rx_binary(a->ctx, op, a, b);
        API_RETURN(e);
    }
    return NULL;
}

const relax_expr *relax_dim_add(const relax_expr *a, const relax_expr *b) { return binary(RX_EX_ADD, a, b); }
const relax_expr *relax_dim_sub(const relax_expr *a, const relax_expr *b) { return binary(RX_EX_SUB, a, b); }
const relax_expr *relax_dim_mul(const relax_expr *a, const relax_expr *b) { return binary(RX_EX_MUL, a, b); }
const relax_expr *relax_dim_floordiv(const relax_expr *a, const relax_expr *b) { return binary(RX_EX_FLOORDIV, a, b); }
const relax_expr *relax_dim_floormod(const relax_expr *a, const relax_expr *b) { return binary(RX_EX_FLOORMOD, a, b); }
const relax_expr *relax_dim_min(const relax_expr *a, const relax_expr *b) { return binary(RX_EX_MIN, a, b); }
const relax_expr *relax_dim_max(const relax_expr *a, const relax_expr *b) { return binary(RX_EX_MAX, a, b); }

relax_status relax_dim_value(const relax_expr *e, int64_t *out)
{
    if (!e || !out) return RELAX_E_INVALID;
    return rx_is_int(e, out) ? RELAX_OK : RELAX_E_NOT_FOUND;
}

size_t relax_dim_text(const relax_expr *e, char *out, size_t size)
{
    if (!e) return api_text("", 0, out, size);
    API_TRY(e->ctx) {
        rx_buf b;
        rx_buf_init(&b, rx_scratch(&e->ctx->heap));
        rx_print_expr(&b, e);
        size_t n = api_text(b.at, b.n, out, size);
        API_RETURN(n);
    }
    return api_text("", 0, out, size);
}

static const rx_facts *facts_of(const relax_builder *b) { return api_builder(b) ? b->fn->facts : NULL; }

static int32_t prove(relax_builder *b, const relax_expr *x, const relax_expr *y, bool equal)
{
    if (!x || !y || x->ctx != y->ctx) return RELAX_UNPROVED;
    API_TRY(x->ctx) {
        rx_truth t = equal ? rx_prove_eq(x->ctx, facts_of(b), x, y) : rx_prove_le(x->ctx, facts_of(b), x, y);
        API_RETURN(t == RX_TRUE ? RELAX_PROVED_TRUE : t == RX_FALSE ? RELAX_PROVED_FALSE : RELAX_UNPROVED);
    }
    return RELAX_UNPROVED;
}

int32_t relax_prove_equal(relax_builder *b, const relax_expr *x, const relax_expr *y) { return prove(b, x, y, true); }
int32_t relax_prove_le(relax_builder *b, const relax_expr *x, const relax_expr *y) { return prove(b, x, y, false); }

relax_status relax_dim_bounds(relax_builder *b, const relax_expr *e, int64_t *lo, int64_t *hi)
{
    if (!e || !lo || !hi) return RELAX_E_INVALID;
    API_TRY(e->ctx) {
        rx_bounds(e->ctx, facts_of(b), e, lo, hi);
        API_RETURN(RELAX_OK);
    }
    return api_failed(e->ctx);
}

/* ---- annotations ---- */
enum { MAX_NDIM = RX_MAX_RANK };
static bool good_dims(relax_context *ctx, const relax_expr *const *dims, int32_t ndim)
{
    if (!rx_ctx_ok(ctx)) return false;
    if (ndim < -1 || ndim > MAX_NDIM || (ndim < 0 && dims)) {
        rx_error(ctx, RXE_BAD_VALUE, NULL, NULL, "a rank of %d; it must be -1 (unknown) or 0 to %d", ndim, MAX_NDIM);
        return false;
    }
    for (int32_t i = 0; dims && i < ndim; i++)
        if (!dims[i] || dims[i]->ctx != ctx) {
            if (!dims[i]) api_null(ctx, "a dim");
            else api_foreign(ctx, "a dim");
            return false;
        }
    return true;
}

static bool good_dtype(relax_context *ctx, relax_dtype t)
{
    if (t >= 0 && t < RELAX_DTYPE_COUNT) return true;
    rx_error(ctx, RXE_BAD_VALUE, NULL, NULL, "%d is no data type", (int)t);
    return false;
}

const relax_type *relax_type_object(relax_context *ctx)
{
    if (!rx_ctx_ok(ctx)) return NULL;
    API_TRY(ctx) {
        rx_ty t = rx_ty_object(ctx);
        API_RETURN(t);
    }
    return NULL;
}

const relax_type *relax_type_prim(relax_context *ctx, relax_dtype dtype, const relax_expr *value)
{
    if (!good_dims(ctx, value ? &value : NULL, value ? 1 : 0) || !good_dtype(ctx, dtype)) return NULL;
    API_TRY(ctx) {
        rx_ty t = rx_ty_prim(ctx, dtype, value);
        API_RETURN(t);
    }
    return NULL;
}

const relax_type *relax_type_shape(relax_context *ctx, const relax_expr *const *dims, int32_t ndim)
{
    if (!good_dims(ctx, dims, ndim)) return NULL;
    API_TRY(ctx) {
        rx_ty t = dims || ndim == 0 ? rx_ty_shape(ctx, (rx_ex *)dims, ndim) : rx_ty_shape_ndim(ctx, ndim);
        API_RETURN(t);
    }
    return NULL;
}

const relax_type *relax_type_tensor(relax_context *ctx, const relax_expr *const *dims, int32_t ndim, relax_dtype dtype)
{
    if (!good_dims(ctx, dims, ndim) || !good_dtype(ctx, dtype)) return NULL;
    API_TRY(ctx) {
        rx_ty t =
            dims || ndim == 0 ? rx_ty_tensor(ctx, (rx_ex *)dims, ndim, dtype) : rx_ty_tensor_ndim(ctx, ndim, dtype);
        API_RETURN(t);
    }
    return NULL;
}

static bool good_types(relax_context *ctx, const relax_type *const *t, uint32_t n)
{
    if (!rx_ctx_ok(ctx)) return false;
    for (uint32_t i = 0; i < n; i++)
        if (!t || !t[i] || t[i]->ctx != ctx) {
            if (!t || !t[i]) api_null(ctx, "an annotation");
            else api_foreign(ctx, "an annotation");
            return false;
        }
    return true;
}

const relax_type *relax_type_tuple(relax_context *ctx, const relax_type *const *fields, uint32_t n)
{
    if (!good_types(ctx, fields, n)) return NULL;
    API_TRY(ctx) {
        rx_ty t = rx_ty_tuple(ctx, (rx_ty *)fields, n);
        API_RETURN(t);
    }
    return NULL;
}

const relax_type *relax_type_callable(relax_context *ctx, const relax_type *const *params, uint32_t n,
                                      const relax_type *result, int32_t pure)
{
    if (!good_types(ctx, params, n) || !good_types(ctx, &result, 1)) return NULL;
    API_TRY(ctx) {
        rx_ty t = rx_ty_func(ctx, (rx_ty *)params, n, result, pure != 0);
        API_RETURN(t);
    }
    return NULL;
}

const relax_type *relax_type_parse(relax_builder *b, const char *text)
{
    if (!api_operands(b, NULL, 0, "")) return NULL;
    if (!text) {
        b->status = api_null(b->mod->ctx, "the text of an annotation");
        return NULL;
    }
    API_TRY(b->mod->ctx) {
        rx_ty t = rx_fn_type(b->fn, text, strlen(text));
        API_RETURN(t);
    }
    api_stick(b);
    return NULL;
}

int32_t relax_type_kind(const relax_type *t) { return t ? (int32_t)t->kind : -1; }
relax_dtype relax_type_dtype(const relax_type *t) { return t ? t->dtype : RELAX_DTYPE_UNKNOWN; }
int32_t relax_type_ndim(const relax_type *t)
{
    return t && (t->kind == RX_TY_TENSOR || t->kind == RX_TY_SHAPE) ? t->ndim : -1;
}

const relax_expr *relax_type_dim(const relax_type *t, int32_t i)
{
    if (!t || !t->known) return NULL;
    int32_t n = t->kind == RX_TY_PRIM ? 1 : t->ndim;
    if (i < 0) i += n;
    return i >= 0 && i < n ? t->dims[i] : NULL;
}

uint32_t relax_type_field_count(const relax_type *t) { return t ? t->nelems : 0; }
const relax_type *relax_type_field(const relax_type *t, uint32_t i) { return t && i < t->nelems ? t->elems[i] : NULL; }

size_t relax_type_text(const relax_type *t, char *out, size_t size)
{
    if (!t) return api_text("", 0, out, size);
    API_TRY(t->ctx) {
        rx_buf b;
        rx_buf_init(&b, rx_scratch(&t->ctx->heap));
        rx_print_type(&b, t);
        size_t n = api_text(b.at, b.n, out, size);
        API_RETURN(n);
    }
    return api_text("", 0, out, size);
}
