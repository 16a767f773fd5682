/* test_pass.c: the pass manager and the checker of memory plans: contracts, transactions (a pass that fails leaves the
 * module as it was), host passes, cancelling, allocations that fail, printing, texts of pipelines. */
#include "testlib.h"

#include "op/op.h"
#include "pass/pass.h"

static const char program[] =
    "private fn tail(x: Tensor((k,), f32)) -> Tensor((k,), f32) {\n  y = exp(x)\n  z = add(y, y)\n  return z\n}\n"
    "fn main(x: Tensor((n, 4), f32), c: Tensor((), bool)) -> Tensor((n*4,), f32) {\n"
    "  a = relu(x)\n  b = flatten(a)\n  d = @tail(b)\n"
    "  r = if c {\n    e = log(d)\n    yield e\n  } else {\n    yield b\n  }\n"
    "  f = softmax(r)\n  g = multiply(f, d)\n  return g\n}\n";

typedef struct world {
    tl_heap heap;
    relax_context *ctx;
    relax_module *m;
} world;

static void begin(world *w, const char *text)
{
    w->ctx = tl_context(&w->heap);
    w->m = relax_module_parse(w->ctx, "test", text, RELAX_STRLEN);
    if (!w->m)
        tl_print_diags(w->ctx);
    assert_non_null(w->m);
}

static void end(world *w)
{
    relax_module_destroy(w->m);
    tl_done(&w->heap, w->ctx);
}

static int32_t append(void *user, const char *text, size_t n)
{
    char **s = user;
    size_t old = strlen(*s);
    *s = realloc(*s, old + n + 1);
    memcpy(*s + old, text, n);
    (*s)[old + n] = 0;
    return 0;
}

/* the module as text; the caller frees it */
static char *text_of(relax_module *m)
{
    char *s = calloc(1, 1);
    assert_int_equal(relax_module_print(m, append, &s), RELAX_OK);
    return s;
}

static void same_text(relax_module *m, const char *want)
{
    char *s = text_of(m);
    assert_string_equal(s, want);
    free(s);
}

static relax_pipeline *pipeline(world *w, const char *text)
{
    relax_pipeline *p = relax_pipeline_parse(w->ctx, text);
    if (!p)
        tl_print_diags(w->ctx);
    assert_non_null(p);
    return p;
}

static void run(world *w, const char *passes)
{
    relax_pipeline *p = pipeline(w, passes);
    relax_pipeline_verify_each(p, 1);
    relax_status st = relax_pipeline_run(p, w->m);
    if (st)
        tl_print_diags(w->ctx);
    assert_int_equal(st, RELAX_OK);
    relax_pipeline_destroy(p);
}

/* ---- contracts ---- */
static void contracts(void **state)
{
    (void)state;
    static const struct { const char *before, *pass; bool ok;
    } rows[] = {
        {"", "lower-calls", false},
        {"", "plan-memory", false},
        {"legalize", "plan-memory", false},
        {"legalize", "lower-calls", true},
        {"legalize,lower-calls", "plan-memory", true},
        {"legalize,lower-calls,inline", "plan-memory", false},          /* inline does not keep dps */
        {"legalize,lower-calls,cse,dce,normalize,guard,schedule,fold-constant", "plan-memory", true},
        {"legalize,fold-constant,cse,dce,normalize,inline", "lower-calls", true},
    };
    for (size_t i = 0; i < RX_COUNT(rows); i++) {
        world w;
        begin(&w, program);
        run(&w, rows[i].before);
        char *before = text_of(w.m);
        relax_pipeline *p = pipeline(&w, rows[i].pass);
        relax_status st = relax_pipeline_run(p, w.m);
        relax_pipeline_destroy(p);
        assert_int_equal(st, rows[i].ok ? RELAX_OK : RELAX_E_INVALID);
        if (!rows[i].ok) {
            assert_int_equal(tl_last_error(w.ctx), RXE_CONTRACT);
            same_text(w.m, before);
        }
        free(before);
        end(&w);
    }
}

/* every pass in every place where its contract allows it leaves a module that verifies */
static void any_order(void **state)
{
    (void)state;
    uint32_t seed = 3;
    for (int round = 0; round < 60; round++) {
        world w;
        begin(&w, program);
        uint32_t npasses = relax_pass_count(w.ctx);
        for (int i = 0; i < 8; i++) {
            const char *name;
            seed = seed * 1664525u + 1013904223u;
            assert_int_equal(relax_pass_describe(w.ctx, (seed >> 8) % npasses, &name, NULL), RELAX_OK);
            relax_pipeline *p = pipeline(&w, name);
            relax_pipeline_verify_each(p, 1);
            relax_status st = relax_pipeline_run(p, w.m);
            if (st && tl_last_error(w.ctx) != RXE_CONTRACT) {
                tl_print_diags(w.ctx);
                fail_msg("round %d: pass %s", round, name);
            }
            relax_diagnostic_clear(w.ctx);
            relax_pipeline_destroy(p);
        }
        char *s = text_of(w.m);
        relax_module *again = relax_module_parse(w.ctx, "again", s, RELAX_STRLEN);
        assert_non_null(again);
        same_text(again, s);
        relax_module_destroy(again);
        free(s);
        end(&w);
    }
}

/* ---- passes of the host ---- */
static relax_value *binding(relax_module *m, const char *op)
{
    for (relax_function *f = m->first; f; f = f->next)
        for (rx_iblock *b = f->is_prim ? NULL : f->body.first; b; b = b->next)
            for (relax_value *v = b->first; v; v = v->next)
                if (v->kind == RX_V_OP && !strcmp(v->u.op->name, op))
                    return v;
    return NULL;
}

static relax_status nothing(void *user, relax_module *m)
{
    (void)m;
    ++*(int *)user;
    return RELAX_OK;
}

static relax_status refuse(void *user, relax_module *m)
{
    relax_value *v = binding(m, "multiply");
    relax_value_replace(v, relax_value_arg(v, 0));      /* what it changed before it failed is undone */
    return *(int *)user;
}

/* an error that the host recorded itself */
static relax_status fail_with_reason(void *user, relax_module *m)
{
    (void)user;
    relax_value *v = binding(m, "relu");
    return relax_value_remove(v);
}

static relax_status use_before_definition(void *user, relax_module *m)
{
    (void)user;
    return relax_value_set_arg(binding(m, "relu"), 0, binding(m, "multiply"));
}

static relax_status wrong_annotation(void *user, relax_module *m)
{
    (void)user;
    relax_value *v = binding(m, "softmax");
    v->type = relax_type_object(m->ctx);
    return RELAX_OK;
}

static relax_status garbage_in_value(void *user, relax_module *m)
{
    binding(m, "softmax")->scratch = user;
    return RELAX_OK;
}

static void host_passes(void **state)
{
    (void)state;
    int invalid = RELAX_E_INVALID, unsupported = RELAX_E_UNSUPPORTED, calls = 0;
    struct { relax_pass_fn fn; void *user; int err; relax_status status; const char *words;
    } rows[] = {
        {refuse, &invalid, RXE_PASS_FAILED, RELAX_E_INTERNAL, "mine returned status 1 (invalid argument)"},
        {refuse, &unsupported, RXE_PASS_FAILED, RELAX_E_INTERNAL, "mine returned status 7"},
        {fail_with_reason, NULL, RXE_STATE, RELAX_E_INVALID, "the value is used"},
        {use_before_definition, NULL, RXE_PASS_FAILED, RELAX_E_INTERNAL, "pass mine left a module that breaks a rule"},
        {wrong_annotation, NULL, RXE_PASS_FAILED, RELAX_E_INTERNAL, "pass mine left"},
        {garbage_in_value, &invalid, RXE_PASS_FAILED, RELAX_E_INTERNAL, "pass mine left"},
    };
    for (size_t i = 0; i < RX_COUNT(rows); i++) {
        world w;
        begin(&w, program);
        /* an older error is no error of the pass */
        assert_null(relax_pipeline_parse(w.ctx, "nonsense"));
        run(&w, "normalize");
        char *before = text_of(w.m);
        relax_pipeline *p = pipeline(&w, "cse,dce,legalize");
        assert_int_equal(relax_pipeline_insert_after(p, "dce", "mine", rows[i].fn, rows[i].user), RELAX_OK);
        assert_int_equal(relax_pipeline_insert_after(p, "dce", "count", nothing, &calls), RELAX_OK);
        assert_int_equal(relax_pipeline_run(p, w.m), rows[i].status);
        assert_int_equal(tl_last_error(w.ctx), rows[i].err);
        const rx_diag *d = rx_diag_at(w.ctx, rx_diag_count(w.ctx) - 1);
        assert_non_null(strstr(d->message, rows[i].words));
        assert_non_null(d->notes);
        assert_string_equal(d->notes->text, "while pass mine ran");
        same_text(w.m, before);
        assert_int_equal(relax_module_verify(w.m), RELAX_OK);
        run(&w, "default");            /* still good for everything */
        free(before);
        relax_pipeline_destroy(p);
        end(&w);
    }
    assert_int_equal(calls, (int)RX_COUNT(rows));
}

/* an operator that a host puts into a legal module makes it illegal again: nothing is believed */
static relax_status add_operator(void *user, relax_module *m)
{
    (void)user;
    relax_function *f = relax_module_find(m, "main");
    relax_builder *b = relax_insert_before(f->body.last->last);
    relax_value *v = relax_exp(b, f->body.last->last->args[0]);
    assert_int_equal(relax_insert_end(b), RELAX_OK);
    f->body.last->last->args[0] = v;
    return RELAX_OK;
}

static void operators_of_late_passes(void **state)
{
    (void)state;
    world w;
    begin(&w, "fn main(x: Tensor((n,), f32)) { y = exp(x) z = add(y, x) return z }");
    relax_pipeline *p = pipeline(&w, "legalize,lower-calls");
    assert_int_equal(relax_pipeline_insert_after(p, "legalize", "mine", add_operator, NULL), RELAX_OK);
    assert_int_equal(relax_pipeline_run(p, w.m), RELAX_E_INVALID);
    assert_int_equal(tl_last_error(w.ctx), RXE_CONTRACT);
    relax_diagnostic_clear(w.ctx);
    relax_pipeline_destroy(p);
    run(&w, "legalize,lower-calls,plan-memory");
    end(&w);
}

/* a host's pass behind the plan that makes a tensor live longer */
static relax_status live_longer(void *user, relax_module *m)
{
    (void)user;
    relax_function *f = relax_module_find(m, "main");
    relax_value *first = f->body.first->first, *last = f->body.first->last;
    assert_int_equal(first->kind, RX_V_ALLOC);
    assert_int_equal(last->kind, RX_V_CALL_DPS);
    last->args[0] = first;
    return RELAX_OK;
}

static void plans_of_late_passes(void **state)
{
    (void)state;
    world w;
    begin(&w, "fn main(x: Tensor((n,), f32)) { a = exp(x) b = log(a) c = sin(b) d = cos(c) return d }");
    run(&w, "legalize,lower-calls,plan-memory");
    char *before = text_of(w.m);
    relax_pipeline *p = pipeline(&w, "");
    assert_int_equal(relax_pipeline_insert_before(p, NULL, "mine", live_longer, NULL), RELAX_OK);
    assert_int_equal(relax_pipeline_run(p, w.m), RELAX_E_INTERNAL);
    assert_int_equal(tl_last_error(w.ctx), RXE_PASS_FAILED);
    assert_non_null(strstr(rx_diag_at(w.ctx, 0)->message, "memory plan: it overlaps"));
    same_text(w.m, before);
    free(before);
    relax_pipeline_destroy(p);
    end(&w);
}

/* ---- cancelling, memory ---- */
typedef struct boundaries { char *at[64]; int n; } boundaries;

static void note(void *user, const char *pass, int32_t after, const char *text)
{
    boundaries *b = user;
    (void)pass;
    (void)after;
    assert_true(b->n < 64);
    b->at[b->n++] = strdup(text);
}

/* the texts between the passes of the default pipeline */
static void find_boundaries(boundaries *b)
{
    world w;
    memset(b, 0, sizeof *b);
    begin(&w, program);
    relax_pipeline *p = pipeline(&w, "default");
    assert_int_equal(relax_pipeline_print(p, "all", "plan-memory", note, b), RELAX_OK);
    assert_int_equal(relax_pipeline_run(p, w.m), RELAX_OK);
    assert_int_equal((uint32_t)b->n, relax_pipeline_time_count(p) + 1);
    relax_pipeline_destroy(p);
    end(&w);
}

static bool at_boundary(const boundaries *b, relax_module *m)
{
    char *s = text_of(m);
    bool found = false;
    for (int i = 0; i < b->n; i++)
        found |= !strcmp(b->at[i], s);
    free(s);
    return found;
}

static void free_boundaries(boundaries *b)
{
    for (int i = 0; i < b->n; i++)
        free(b->at[i]);
}

static int32_t countdown(void *user)
{
    int *n = user;
    return --*n <= 0;
}

static void cancelling(void **state)
{
    (void)state;
    boundaries b;
    bool done = false;
    find_boundaries(&b);
    for (int n = 1; !done; n++) {
        world w;
        int left = n;
        begin(&w, program);
        relax_pipeline *p = pipeline(&w, "default");
        w.ctx->cancel = countdown;
        w.ctx->cancel_user = &left;
        relax_status st = relax_pipeline_run(p, w.m);
        w.ctx->cancel = NULL;
        if (st == RELAX_OK)
            done = true;
        else
            assert_int_equal(st, RELAX_E_CANCELLED);
        assert_true(at_boundary(&b, w.m));
        assert_int_equal(relax_module_verify(w.m), RELAX_OK);
        relax_pipeline_destroy(p);
        end(&w);
        assert_true(n < 1000);
        assert_true(!done || n > 20);
    }
    free_boundaries(&b);
}

static void failing_allocations(void **state)
{
    (void)state;
    boundaries b;
    bool done = false;
    find_boundaries(&b);
    for (int64_t n = 1; !done; n += 1 + n / 40) {
        world w;
        begin(&w, program);
        tl_fail(&w.heap, n, n % 2);
        relax_pipeline *p = relax_pipeline_parse(w.ctx, "default");
        relax_status st = p ? relax_pipeline_run(p, w.m) : RELAX_E_NOMEM;
        tl_fail(&w.heap, 0, false);
        if (st == RELAX_OK)
            done = true;
        else
            assert_int_equal(st, RELAX_E_NOMEM);
        assert_true(at_boundary(&b, w.m));
        relax_pipeline_destroy(p);
        end(&w);
        assert_true(n < 100000);
    }
    free_boundaries(&b);
}

/* ---- printing, texts ---- */
typedef struct printed { char names[256]; } printed;

static void note_name(void *user, const char *pass, int32_t after, const char *text)
{
    printed *p = user;
    assert_non_null(strstr(text, "fn main("));
    snprintf(p->names + strlen(p->names), sizeof p->names - strlen(p->names), "%s%s ", after ? "+" : "-", pass);
}

static void printing(void **state)
{
    (void)state;
    static const struct { const char *before, *after, *want;
    } rows[] = {
        {NULL, NULL, ""},
        {"all", NULL, "-cse -dce -cse "},
        {"dce", "cse", "+cse -dce +cse "},
        {"dce, legalize", "none", "-dce "},
        {"cs", "cse,dce", "+cse +dce +cse "},
    };
    for (size_t i = 0; i < RX_COUNT(rows); i++) {
        world w;
        printed seen = {""};
        begin(&w, program);
        relax_pipeline *p = pipeline(&w, "cse,dce,cse");
        assert_int_equal(relax_pipeline_print(p, rows[i].before, rows[i].after, note_name, &seen), RELAX_OK);
        assert_int_equal(relax_pipeline_run(p, w.m), RELAX_OK);
        assert_string_equal(seen.names, rows[i].want);
        relax_pipeline_destroy(p);
        end(&w);
    }
}

static void texts(void **state)
{
    (void)state;
    static const struct { const char *text, *want; int err;
    } rows[] = {
        {"", "", 0},
        {" ", "", 0},
        {"cse", "cse", 0},
        {" cse ,\n dce ", "cse,dce", 0},
        {"plan-memory(reuse=false)", "plan-memory(reuse=false)", 0},
        {"plan-memory( reuse )", "plan-memory(reuse=true)", 0},
        {"fold-constant(max-bytes=64),inline(max-size=3)", "fold-constant(max-bytes=64),inline(max-size=3)", 0},
        {"default,cse",
         "normalize,inline,fold-constant,cse,dce,legalize,cse,dce,guard,schedule,lower-calls,plan-memory,cse", 0},
        {"cse dce", NULL, RXE_SYNTAX},
        {",cse", NULL, RXE_SYNTAX},
        {"cse,,dce", NULL, RXE_SYNTAX},
        {"cse;dce", NULL, RXE_SYNTAX},
        {"cse(", NULL, RXE_SYNTAX},
        {"cse()", NULL, RXE_SYNTAX},
        {"plan-memory(reuse", NULL, RXE_SYNTAX},
        {"plan-memory(reuse=)", NULL, RXE_SYNTAX},
        {"plan-memory(reuse=false", NULL, RXE_SYNTAX},
        {"plan-memory(reuse=false))", NULL, RXE_SYNTAX},
        {"plan-memory(reus=false)", NULL, RXE_ATTR},
        {"cse(reuse=false)", NULL, RXE_ATTR},
        {"CSE", NULL, RXE_UNKNOWN_PASS},
        {"fuse-everything", NULL, RXE_UNKNOWN_PASS},
        {"default(x=1)", NULL, RXE_SYNTAX},
        {"\xff", NULL, RXE_SYNTAX},
    };
    tl_heap th;
    relax_context *ctx = tl_context(&th);
    for (size_t i = 0; i < RX_COUNT(rows); i++) {
        char text[256];
        relax_pipeline *p = relax_pipeline_parse(ctx, rows[i].text);
        if (!p != !rows[i].want)
            fail_msg("\"%s\" was %s", rows[i].text, p ? "accepted" : "refused");
        if (p) {
            assert_int_equal(relax_pipeline_text(p, text, sizeof text), strlen(rows[i].want));
            assert_string_equal(text, rows[i].want);
        } else {
            assert_int_equal(tl_last_error(ctx), rows[i].err);
        }
        relax_pipeline_destroy(p);
    }
    tl_done(&th, ctx);
}

static void editing(void **state)
{
    (void)state;
    world w;
    char text[256];
    int calls = 0;
    const char *name;
    int64_t ns;
    begin(&w, program);
    relax_pipeline *p = pipeline(&w, "normalize,cse,dce,cse");
    assert_int_equal(relax_pipeline_remove(p, "cse"), RELAX_OK);
    assert_int_equal(relax_pipeline_remove(p, "inline"), RELAX_E_NOT_FOUND);
    assert_int_equal(relax_pipeline_insert_after(p, NULL, "first", nothing, &calls), RELAX_OK);
    assert_int_equal(relax_pipeline_insert_before(p, NULL, "last", nothing, &calls), RELAX_OK);
    assert_int_equal(relax_pipeline_insert_before(p, "dce", "mid", nothing, &calls), RELAX_OK);
    assert_int_equal(relax_pipeline_insert_before(p, "inline", "no", nothing, &calls), RELAX_E_NOT_FOUND);
    assert_int_equal(relax_pipeline_insert_after(p, "dce", NULL, nothing, &calls), RELAX_E_INVALID);
    assert_int_equal(relax_pipeline_insert_after(p, "dce", "no", NULL, &calls), RELAX_E_INVALID);
    relax_pipeline_text(p, text, sizeof text);
    assert_string_equal(text, "first,normalize,mid,dce,cse,last");
    assert_int_equal(relax_pipeline_run(p, w.m), RELAX_OK);
    assert_int_equal(calls, 3);
    assert_int_equal(relax_pipeline_time_count(p), 6);
    for (uint32_t i = 0; i < 6; i++) {
        assert_int_equal(relax_pipeline_time(p, i, &name, &ns), RELAX_OK);
        assert_true(ns >= 0 && strstr(text, name));
    }
    assert_int_equal(relax_pipeline_time(p, 6, &name, &ns), RELAX_E_INVALID);
    relax_pipeline_destroy(p);
    end(&w);
}

static void options(void **state)
{
    (void)state;
    static const struct { const char *passes; int err;
    } rows[] = {
        {"legalize,lower-calls,plan-memory(reuse=maybe)", RXE_ATTR},
        {"fold-constant(max-bytes=ten)", RXE_ATTR},
        {"inline(max-size=1e3)", RXE_ATTR},
        {"inline(max-size=99999999999999999999)", RXE_ATTR},
        {"inline(max-size=0),legalize,lower-calls,plan-memory(reuse=0)", 0},
    };
    for (size_t i = 0; i < RX_COUNT(rows); i++) {
        world w;
        begin(&w, program);
        relax_pipeline *p = pipeline(&w, rows[i].passes);
        assert_int_equal(relax_pipeline_run(p, w.m), rows[i].err ? RELAX_E_INVALID : RELAX_OK);
        assert_int_equal(tl_last_error(w.ctx), rows[i].err);
        relax_pipeline_destroy(p);
        end(&w);
    }
}

/* ---- the checker of plans: every mutation that makes two living tensors overlap is found ---- */
static uint32_t breaks_of(world *w)
{
    volatile uint32_t n = 0;
    TL_TRY(w->ctx) {
        n = rx_plan_check(relax_module_find(w->m, "main"));
    } TL_END(w->ctx)
    relax_diagnostic_clear(w->ctx);
    return n;
}

typedef struct allocs { relax_value *at[64]; int from[64], to[64], n, pos; } allocs;
static void list_allocs(void *arg, relax_value *v)
{
    allocs *a = arg;
    a->pos++;
    for (int i = 0; i < a->n; i++)
        for (uint32_t k = 0; k < v->nargs; k++)
            if (v->args[k] == a->at[i])
                a->to[i] = a->pos;
    if (v->kind != RX_V_ALLOC || !v->u.alloc.arena || a->n == 64)
        return;
    a->from[a->n] = a->to[a->n] = a->pos;
    a->at[a->n++] = v;
}

static void mutated_plans(void **state)
{
    (void)state;
    static const char *const programs[] = {
        "fn main(x: Tensor((n,), f32)) { a = exp(x) b = log(a) c = sin(b) d = add(c, a) e = cos(d) return e }",
        "fn main(x: Tensor((n, m), f32), y: Tensor((m, 7), f32)) { a = exp(x) b = matmul(a, y) c = sum(a, axis=(0,))\n"
        "d = softmax(b) e = sum(d, axis=(1,)) f = add(c, c) t = (e, f) g = tanh(e) u = (g, f) return u }",
        "fn main(x: Tensor((16, 4), f32)) { a = exp(x) b = permute_dims(a) c = tanh(b) d = matmul(c, a) e = exp(d)\n"
        "return e }",
    };
    for (size_t i = 0; i < RX_COUNT(programs); i++) {
        world w;
        begin(&w, programs[i]);
        run(&w, "legalize,lower-calls,plan-memory");
        allocs a = {.n = 0};
        rx_fn_visit(relax_module_find(w.m, "main"), list_allocs, &a);
        assert_true(a.n >= 3);
        assert_int_equal(breaks_of(&w), 0);
        int found = 0;
        for (int x = 0; x < a.n; x++)
            for (int y = 0; y < a.n; y++) {
                bool alive = a.from[x] <= a.to[y] && a.from[y] <= a.to[x];
                rx_ex old = a.at[y]->u.alloc.offset;
                if (x == y || !alive || old == a.at[x]->u.alloc.offset)
                    continue;
                a.at[y]->u.alloc.offset = a.at[x]->u.alloc.offset;
                assert_true(breaks_of(&w) > 0);
                a.at[y]->u.alloc.offset = old;
                found++;
            }
        assert_true(found >= 2);
        assert_int_equal(breaks_of(&w), 0);
        for (int x = 0; x < a.n; x++) {          /* outside, not aligned, before the arena */
            relax_function *f = relax_module_find(w.m, "main");
            rx_ex old = a.at[x]->u.alloc.offset;
            rx_ex wrong[] = {f->arena_bytes, rx_addi(w.ctx, old, 4), rx_subi(w.ctx, rx_int(w.ctx, 0), 64)};
            for (size_t k = 0; k < RX_COUNT(wrong); k++) {
                a.at[x]->u.alloc.offset = wrong[k];
                assert_true(breaks_of(&w) > 0);
            }
            a.at[x]->u.alloc.offset = old;
        }
        end(&w);
    }
}

/* plans written by hand: what aliases, branches and calls hide */
#define ID "private prim id(A: Buffer((n,), f32), B: Buffer((n,), f32)) { for i in n { B[i] = A[i] } }\n"
#define A(name, at) " " name " = alloc(Tensor((n,), f32), arena=" at ")\n"
static void plans_by_hand(void **state)
{
    (void)state;
    static const struct { const char *body; bool ok;
    } rows[] = {
        {A("a", "0") "call_dps(@id, (x, a))\n b = alloc(Tensor((n,), f32)) call_dps(@id, (a, b)) return b", true},
        {A("a", "0") "call_dps(@id, (x, a)) return a", false},
        {A("a", "0") "call_dps(@id, (x, a)) t = (a,) return t", false},
        {A("a", "0") "call_dps(@id, (x, a)) v = view(a, Tensor((n,), i32)) return v", false},
        {A("a", "0") "call_dps(@id, (x, a)) r = if c { yield a } else { yield x } return r", false},
        {A("a",
           "0") "call_dps(@id, (x, a)) r = if c { q = if c { yield a } else { yield x } yield q } else { yield x }\n"
                "return r",
         false},
        {A("a", "0") "call_dps(@id, (x, a)) r = @same(a) return r", false},
        {A("a", "0") "call_dps(@id, (x, a)) r = call_pure_packed(\"h\", a, Object) return x", false},
        /* b reuses a's memory while v (a view), t (a tuple) or an if's result still points there */
        {A("a", "0") "call_dps(@id, (x, a)) v = view(a, Tensor((n,), f32))\n" A(
             "b", "0") "call_dps(@id, (x, b))\n"
                       "o = alloc(Tensor((n,), f32)) call_dps(\"f\", (v, b, o)) return o",
         false},
        {A("a", "0") "call_dps(@id, (x, a)) t = (x, a)\n" A(
             "b", "0") "call_dps(@id, (x, b)) v = t[0]\n"
                       "o = alloc(Tensor((n,), f32)) call_dps(\"f\", (v, b, o)) return o",
         false},
        {A("a", "0") "call_dps(@id, (x, a)) q = if c { p = if c { yield a } else { yield x } yield p } else { yield x "
                     "}\n" A(
                         "b",
                         "0") "call_dps(@id, (x, b)) o = alloc(Tensor((n,), f32)) call_dps(\"f\", (q, b, o)) return o",
         false},
        /* the same, but apart */
        {A("a", "0") "call_dps(@id, (x, a)) q = if c { p = if c { yield a } else { yield x } yield p } else { yield x "
                     "}\n" A("b", "(n + 15)//16*64") "call_dps(@id, (x, b)) o = alloc(Tensor((n,), f32)) "
                                                     "call_dps(\"f\", (q, b, o))\n"
                                                     "return o",
         true},
        /* branches exclude each other; but not what lives across them */
        {"r = if c {\n" A("a", "0") "call_dps(@id, (x, a)) yield a } else {\n" A(
             "b", "0") "call_dps(@id, (x, b)) yield b }\n"
                       "o = alloc(Tensor((n,), f32)) call_dps(@id, (r, o)) return o",
         true},
        {A("k", "0") "call_dps(@id, (x, k)) r = if c {\n" A(
             "a", "0") "call_dps(@id, (x, a)) yield a } else { yield x }\n"
                       "o = alloc(Tensor((n,), f32)) call_dps(\"f\", (r, k, o)) return o",
         false},
    };
    char text[2048];
    for (size_t i = 0; i < RX_COUNT(rows); i++) {
        world w;
        snprintf(text, sizeof text,
                 "module legal, dps, planned\n" ID "fn same(x: Tensor((n,), f32)) -> Tensor((n,), f32) { return x }\n"
                 "fn main(x: Tensor((n,), f32), c: Tensor((), bool)) -> Object arena (n + 15)//16*128 {\n%s }",
                 rows[i].body);
        begin(&w, text);
        if ((breaks_of(&w) == 0) != rows[i].ok)
            fail_msg("row %zu: %s", i, text);
        end(&w);
    }
}

/* thousands of bindings, and calls that would grow without end */
static void sizes(void **state)
{
    (void)state;
    enum { N = 3000, DEEP = 40 };
    char *text = malloc(N * 64 + 256), *s = text;
    world w;
    s += sprintf(s, "fn main(x: Tensor((n, 4), f32)) -> Tensor((n, 4), f32) {\n  v0 = exp(x)\n");
    for (int i = 1; i < N; i++)
        s += i % 3 ? sprintf(s, "  v%d = tanh(v%d)\n", i, i - 1)
                   : sprintf(s, "  v%d = reshape(v%d, shape(n, 4))\n", i, i - 1);
    sprintf(s, "  return v%d\n}\n", N - 1);
    begin(&w, text);
    relax_pipeline *p = pipeline(&w, "default");
    assert_int_equal(relax_pipeline_run(p, w.m), RELAX_OK);
    relax_pipeline_destroy(p);
    end(&w);

    s = text;
    for (int i = 0; i < DEEP; i++)
        s += i ? sprintf(
                     s,
                     "private fn f%d(x: Tensor((n,), f32)) -> Tensor((n,), f32) { a = @f%d(x) b = @f%d(a) return b }\n",
                     i, i - 1, i - 1)
               : sprintf(s, "private fn f0(x: Tensor((n,), f32)) -> Tensor((n,), f32) { a = exp(x) return a }\n");
    sprintf(s, "fn main(x: Tensor((n,), f32)) { a = @f%d(x) return a }\n", DEEP - 1);
    begin(&w, text);
    run(&w, "inline(max-size=100),dce");
    char *after = text_of(w.m);
    assert_true(strlen(after) < 200000);
    free(after);
    end(&w);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(contracts),
        cmocka_unit_test(any_order),
        cmocka_unit_test(host_passes),
        cmocka_unit_test(operators_of_late_passes),
        cmocka_unit_test(plans_of_late_passes),
        cmocka_unit_test(cancelling),
        cmocka_unit_test(failing_allocations),
        cmocka_unit_test(printing),
        cmocka_unit_test(texts),
        cmocka_unit_test(editing),
        cmocka_unit_test(options),
        cmocka_unit_test(mutated_plans),
        cmocka_unit_test(plans_by_hand),
        cmocka_unit_test(sizes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
