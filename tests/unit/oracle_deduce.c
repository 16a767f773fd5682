/* oracle_deduce.c: deduction of operators against deduce.jsonl.
 *
 * A case passes when the annotation is proved equal to the wanted one under the case's assumptions and extents >= 1, or
 * is more precise; a refusal passes when a refusal is wanted (either passes where the file says "soft" or "lenient").
 * Cases of operators that the library does not have yet count as neither passed nor failed. */
#define TL_JSON
#include "op/op.h"
#include "oracle.h"
#include "testlib.h"

/* judged otherwise: id and why */
static const struct {
    const char *id, *why;
} listed[] = {
    {"argsort-003", "indices as f16: beyond 2048 elements they are wrong; i32 and i64 are accepted"},
    {"concat-101", "tensors may be given without a tuple around them, so one tensor is a concat of one"},
    {"reshape-067",
     "the file has Shape(pv) for a scalar that is no shape; as written it is the shape of one symbolic dim"},
};

typedef struct run {
    relax_context *ctx;
    relax_module *m;
    relax_function *f;
    rx_facts *judge; /* assumptions and dims >= 1 */
    const cJSON *shape_vars, *types;
    const char *line;
    bool in_args; /* symbols named now are extents */
} run;

/* ---- annotations of the file ---- */

static rx_ex sym(run *r, const char *name)
{
    bool is_new = !rx_map_has(&r->f->symtab, RX_KEY(rx_str(r->ctx, name)));
    rx_ex s = rx_fn_sym(r->f, name);
    if (is_new && !r->in_args)
        rx_sym_of(s)->lo = INT64_MIN;
    if (is_new && r->in_args)
        rx_facts_add(r->judge, rx_le(r->ctx, rx_int(r->ctx, 1), s));
    return s;
}

static rx_ex by_name(void *arg, rx_lexer *l, const char *name)
{
    (void)l;
    return sym(arg, name);
}

static rx_ex expr(run *r, rx_lexer *l)
{
    rx_scope_fns sc = {.name = by_name, .arg = r};
    return rx_parse_expr(l, &sc);
}

static rx_ex expr_text(run *r, const char *s)
{
    rx_lexer l;
    rx_lex_init(&l, r->ctx, "oracle", s, strlen(s));
    return expr(r, &l);
}

typedef struct shape {
    rx_ex d[16];
    int32_t n;
    bool known;
} shape;

static shape dims(run *r, rx_lexer *l)
{
    shape s = {.known = true};
    rx_lex_want(l, "(");
    while (!rx_lex_take(l, ")")) {
        s.d[s.n++] = expr(r, l);
        rx_lex_take(l, ",");
    }
    return s;
}

static int32_t rank(rx_lexer *l)
{
    rx_lex_want(l, "=");
    return rx_lex_take(l, "?") ? -1 : (int32_t)rx_lex_int(l, "rank");
}

static shape shape_var(run *r, const char *name);

static shape shape_of(run *r, rx_lexer *l)
{
    if (rx_lex_take(l, "ndim"))
        return (shape){.n = rank(l)};
    if (rx_lex_take(l, "shape")) {
        rx_lex_want(l, "=");
        return shape_var(r, rx_lex_name(l, "shape variable"));
    }
    return dims(r, l);
}

/* after "Shape" */
static shape shape_text(run *r, rx_lexer *l)
{
    rx_lexer look = *l;
    rx_lex_take(&look, "(");
    if (!rx_lex_is(&look, "ndim"))
        return dims(r, l);
    rx_lex_want(l, "(");
    shape s = shape_of(r, l);
    rx_lex_want(l, ")");
    return s;
}

static shape shape_var(run *r, const char *name)
{
    const cJSON *v = cJSON_GetObjectItem(r->shape_vars, name);
    rx_lexer l;
    rx_lex_init(&l, r->ctx, "oracle", v->valuestring, strlen(v->valuestring));
    rx_lex_want(&l, "Shape");
    return shape_text(r, &l);
}

static relax_dtype dtype(rx_lexer *l)
{
    if (rx_lex_take(l, "?"))
        return RELAX_DTYPE_UNKNOWN;
    const char *n = rx_lex_name(l, "dtype");
    return rx_dtype_parse(n, strlen(n));
}

static rx_ty shape_type(run *r, shape s)
{
    return s.known ? rx_ty_shape(r->ctx, s.d, s.n) : rx_ty_shape_ndim(r->ctx, s.n);
}

static rx_ty type(run *r, rx_lexer *l);

static rx_ty tensor_type(run *r, rx_lexer *l)
{
    rx_lex_want(l, "(");
    shape s = shape_of(r, l);
    rx_lex_want(l, ",");
    relax_dtype dt = dtype(l);
    rx_lex_want(l, ")");
    return s.known ? rx_ty_tensor(r->ctx, s.d, s.n, dt) : rx_ty_tensor_ndim(r->ctx, s.n, dt);
}

static rx_ty tuple_type(run *r, rx_lexer *l)
{
    rx_ty e[16];
    uint32_t n = 0;
    rx_lex_want(l, "(");
    while (!rx_lex_take(l, ")")) {
        e[n++] = type(r, l);
        rx_lex_take(l, ",");
    }
    return rx_ty_tuple(r->ctx, e, n);
}

static rx_ty type(run *r, rx_lexer *l)
{
    if (rx_lex_take(l, "Tensor"))
        return tensor_type(r, l);
    if (rx_lex_take(l, "Shape"))
        return shape_type(r, shape_text(r, l));
    if (rx_lex_take(l, "Tuple"))
        return tuple_type(r, l);
    if (rx_lex_take(l, "Func"))
        return rx_ty_func_opaque(r->ctx);
    if (rx_lex_take(l, "ShapeVar")) {
        rx_lex_want(l, "(");
        shape s = shape_var(r, rx_lex_name(l, "shape variable"));
        rx_lex_want(l, ")");
        return shape_type(r, s);
    }
    if (rx_lex_take(l, "Prim")) {
        rx_lex_want(l, "(");
        relax_dtype dt = dtype(l);
        rx_ex v = rx_lex_take(l, ",") ? expr(r, l) : NULL;
        rx_lex_want(l, ")");
        if (!v && dt == RELAX_I64)
            v = sym(r, "prim_value");
        return rx_ty_prim(r->ctx, dt, v);
    }
    rx_lex_want(l, "Object");
    return rx_ty_object(r->ctx);
}

static rx_ty type_text(run *r, const char *s)
{
    rx_lexer l;
    rx_lex_init(&l, r->ctx, "oracle", s, strlen(s));
    return type(r, &l);
}

/* ---- attributes ---- */

/* cJSON does not tell 10 from 10.0; the line does */
static bool written_as_float(const run *r, const char *key)
{
    char pat[64];
    snprintf(pat, sizeof pat, "\"%s\":", key);
    const char *p = strstr(r->line, pat);
    size_t n = p ? strcspn(p += strlen(pat), ",}]") : 0;
    return p && (memchr(p, '.', n) || memchr(p, 'e', n));
}

static bool word_attr(const char *key)
{
    static const char *const words[] = {"mode", "reduction", "ret_type", "style", "type"};
    for (size_t i = 0; i < RX_COUNT(words); i++)
        if (!strcmp(key, words[i]))
            return true;
    return false;
}

static rx_attr list_attr(run *r, rx_attr x, const cJSON *v)
{
    uint32_t n = (uint32_t)cJSON_GetArraySize(v), i = 0;
    bool ints = true;
    rx_ex *e = RX_NEWN(&r->m->arena, rx_ex, n);
    int64_t *k = RX_NEWN(&r->m->arena, int64_t, n);
    const cJSON *c;
    cJSON_ArrayForEach(c, v)
    {
        ints &= cJSON_IsNumber(c) != 0;
        k[i] = (int64_t)c->valuedouble;
        e[i++] = cJSON_IsNumber(c) ? rx_int(r->ctx, (int64_t)c->valuedouble) : expr_text(r, c->valuestring);
    }
    x.kind = ints ? RX_A_INTS : RX_A_EXPRS;
    if (ints) {
        x.u.ints.at = k;
        x.u.ints.n = n;
    } else {
        x.u.exprs.at = e;
        x.u.exprs.n = n;
    }
    return x;
}

static rx_attr attr(run *r, const cJSON *v)
{
    rx_attr x = {.key = rx_str(r->ctx, v->string), .kind = RX_A_INT};
    if (cJSON_IsBool(v)) {
        x.kind = RX_A_BOOL;
        x.u.i = cJSON_IsTrue(v);
    } else if (cJSON_IsArray(v)) {
        x = list_attr(r, x, v);
    } else if (cJSON_IsNumber(v) && written_as_float(r, v->string)) {
        x.kind = RX_A_FLOAT;
        x.u.f = v->valuedouble;
    } else if (cJSON_IsNumber(v)) {
        x.u.i = (int64_t)v->valuedouble;
    } else if (!strcmp(v->string, "dtype") || !strcmp(v->string, "out_dtype")) {
        x.kind = RX_A_DTYPE;
        x.u.dtype = rx_dtype_parse(v->valuestring, strlen(v->valuestring));
    } else if (word_attr(v->string)) {
        x.kind = RX_A_STR;
        x.u.s = rx_str(r->ctx, !strcmp(v->valuestring, "updates") ? "update" : v->valuestring);
    } else {
        x.kind = RX_A_EXPR;
        x.u.e = expr_text(r, v->valuestring);
    }
    if (!strcmp(v->string, "indices_or_sections"))
        x.key = rx_str(r->ctx, cJSON_IsArray(v) ? "indices" : "sections");
    return x;
}

/* ---- one case ---- */

static rx_ty deduce(run *r, const cJSON *c, const rx_op *op)
{
    rx_ty types[16];
    rx_attr attrs[16];
    uint32_t n = 0, na = 0;
    const cJSON *v;
    r->in_args = true;
    cJSON_ArrayForEach(v, cJSON_GetObjectItem(c, "args")) types[n++] =
        cJSON_IsString(v) ? type_text(r, v->valuestring) : NULL;
    r->in_args = false;
    cJSON_ArrayForEach(v, cJSON_GetObjectItem(c, "attrs")) if (!cJSON_IsNull(v)) attrs[na++] = attr(r, v);
    cJSON_ArrayForEach(v, cJSON_GetObjectItem(c, "assume"))
    {
        rx_ex e = expr_text(r, v->valuestring);
        rx_facts_add(r->f->facts, e);
        rx_facts_add(r->judge, e);
    }
    rx_exvec checks = {0};
    rx_call call = {.ctx = r->ctx, .f = r->f, .op = op, .types = types, .n = n, .checks = &checks, .a = &r->m->arena};
    call.attrs = rx_op_attrs(r->ctx, call.a, op, attrs, na);
    return rx_op_deduce(&call);
}

static bool dims_equal(run *r, rx_ty got, rx_ty want)
{
    if (want->ndim < 0)
        return true;
    if (got->ndim != want->ndim)
        return false;
    if (!want->known)
        return true;
    for (int32_t i = 0; got->known && i < want->ndim; i++)
        if (rx_prove_eq(r->ctx, r->judge, got->dims[i], want->dims[i]) != RX_TRUE)
            return false;
    return got->known;
}

/* is got equal to want, or more precise? */
static bool good(run *r, rx_ty got, rx_ty want)
{
    if (want->kind == RX_TY_OBJECT)
        return true;
    if (got->kind != want->kind)
        return false;
    if (want->kind == RX_TY_TUPLE) {
        for (uint32_t i = 0; got->nelems == want->nelems && i < want->nelems; i++)
            if (!good(r, got->elems[i], want->elems[i]))
                return false;
        return got->nelems == want->nelems;
    }
    if (want->kind != RX_TY_SHAPE && want->dtype != RELAX_DTYPE_UNKNOWN && got->dtype != want->dtype)
        return false;
    return want->kind == RX_TY_PRIM || dims_equal(r, got, want);
}

typedef enum outcome { PASS, FAIL, WRONG_REFUSAL, WRONG_ACCEPT } outcome;

/* text: what was deduced or why it was refused */
static outcome judge(relax_context *ctx, const cJSON *c, const char *line, char *text, size_t size)
{
    bool want_error = cJSON_HasObjectItem(c, "want_error"), soft = cJSON_HasObjectItem(c, "soft");
    bool lenient = cJSON_HasObjectItem(c, "lenient");
    volatile bool refused = true;
    volatile outcome out = PASS;
    relax_module *m = rx_module_new(ctx);
    rx_frame f;
    uint32_t before = rx_diag_count(ctx);
    text[0] = 0;
    if (RX_ENTER(&ctx->heap, &f)) {
        run r = {.ctx = ctx, .m = m, .shape_vars = cJSON_GetObjectItem(c, "shape_vars"), .line = line};
        r.f = rx_function_new(m, "main");
        r.f->facts = rx_facts_new(ctx, &m->arena, NULL);
        r.judge = rx_facts_new(ctx, &m->arena, NULL);
        rx_ty got = deduce(&r, c, rx_op_find(ctx, cJSON_GetObjectItem(c, "op")->valuestring));
        refused = false;
        rx_buf b;
        rx_buf_init(&b, &m->arena);
        rx_print_type(&b, got);
        snprintf(text, size, "%s", b.at);
        if (!want_error) {
            rx_ty want = type_text(&r, cJSON_GetObjectItem(c, "want")->valuestring);
            out = good(&r, got, want) ? PASS : FAIL;
        }
        rx_leave(&ctx->heap, &f);
    }
    rx_diag_truncate(ctx, before);
    rx_module_free(m);
    if (want_error)
        return refused || soft ? PASS : WRONG_ACCEPT;
    return refused ? lenient ? PASS : WRONG_REFUSAL : out;
}

static const char *reason(const char *id)
{
    for (size_t i = 0; i < RX_COUNT(listed); i++)
        if (!strcmp(listed[i].id, id))
            return listed[i].why;
    return NULL;
}

int oracle_deduce(FILE *out, FILE *err, bool verbose)
{
    char path[512], text[1024];
    const char *root = getenv("RELAX_ORACLE");
    snprintf(path, sizeof path, "%s/deduce.jsonl", root ? root : "../shared/oracle");
    FILE *file = fopen(path, "r");
    if (!file)
        return 0;
    static char line[1 << 16];
    int total = 0, passed = 0, judged = 0, bad = 0;
    tl_heap th;
    relax_context *ctx = tl_context(&th);
    TL_TRY(ctx)
    {
        rx_ops_init(ctx);
    }
    TL_END(ctx);
    while (fgets(line, sizeof line, file)) {
        cJSON *c = cJSON_Parse(line);
        const char *id = cJSON_GetObjectItem(c, "id")->valuestring;
        total++;
        if (rx_op_find(ctx, cJSON_GetObjectItem(c, "op")->valuestring)) {
            outcome o = judge(ctx, c, line, text, sizeof text);
            passed += o == PASS;
            judged += o != PASS && reason(id);
            bad += o != PASS && !reason(id);
            if (o != PASS && (verbose || !reason(id)))
                fprintf(err, "%s: %s: %s", id, o == FAIL ? text : o == WRONG_REFUSAL ? "refused" : "accepted", line);
        }
        cJSON_Delete(c);
    }
    fclose(file);
    tl_done(&th, ctx);
    oracle_line(out, "deduce", passed, total, judged);
    return bad;
}
