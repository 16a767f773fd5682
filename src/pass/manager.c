/* manager.c: the table of passes, pipelines from text, and running them.
 *
 * Contract: a pass whose `needs` are not among the module's properties fails before it starts (RXE_CONTRACT);
 * afterwards the properties are (old & keeps) | makes. Running is transactional: each step works on the module while a
 * clone waits; when the step fails, or leaves a module that the verifier refuses, the contents are exchanged back and
 * the error goes on. */
#include "pass/pass.h"

static const rx_pass builtin_passes[] = {
#define PASS(id, name, needs, keeps, makes, options, doc)                                                              \
    {name, needs, keeps, makes, rx_pass_##id, options, doc, NULL, NULL},
#include "pass/passes.def"
#undef PASS
};

void rx_passes_init(relax_context *ctx)
{
    if (ctx->passes) return;
    struct rx_passtab *t = RX_NEW(&ctx->arena, struct rx_passtab);
    rx_map_init(&t->by_name, &ctx->arena);
    for (size_t i = 0; i < RX_COUNT(builtin_passes); i++) {
        rx_push(&ctx->arena, &t->all, &builtin_passes[i]);
        rx_map_put(&t->by_name, RX_KEY(rx_str(ctx, builtin_passes[i].name)), (void *)&builtin_passes[i]);
    }
    ctx->passes = t;
}

const rx_pass *rx_pass_find(relax_context *ctx, const char *name)
{
    rx_passes_init(ctx);
    return rx_map_get(&ctx->passes->by_name, RX_KEY(rx_str(ctx, name)));
}

void rx_pass_add(relax_context *ctx, const rx_pass *p)
{
    if (rx_pass_find(ctx, p->name)) rx_fail(ctx, RXE_DUPLICATE, NULL, "a pass named '%s' exists already", p->name);
    rx_pass *own = rx_arena_dup(&ctx->arena, p, sizeof *p);
    own->name = rx_str(ctx, p->name);
    own->doc = rx_str(ctx, p->doc ? p->doc : "");
    own->options = rx_str(ctx, p->options ? p->options : "");
    rx_push(&ctx->arena, &ctx->passes->all, own);
    rx_map_put(&ctx->passes->by_name, RX_KEY(own->name), own);
}

const char *rx_pass_str(const rx_pass_run *r, const char *key, const char *absent)
{
    for (uint32_t i = 0; i < r->nopts; i++)
        if (!strcmp(r->opts[i].key, key)) return r->opts[i].value;
    return absent;
}

int64_t rx_pass_int(const rx_pass_run *r, const char *key, int64_t absent)
{
    const char *s = rx_pass_str(r, key, NULL);
    int64_t v;
    if (!s) return absent;
    if (rx_read_i64(s, strlen(s), &v) != strlen(s) || !*s)
        rx_fail(r->ctx, RXE_ATTR, NULL, "pass option %s=%s is not an integer", key, s);
    return v;
}

bool rx_pass_bool(const rx_pass_run *r, const char *key, bool absent)
{
    const char *s = rx_pass_str(r, key, NULL);
    if (!s) return absent;
    if (!strcmp(s, "true") || !strcmp(s, "1")) return true;
    if (!strcmp(s, "false") || !strcmp(s, "0")) return false;
    rx_fail(r->ctx, RXE_ATTR, NULL, "pass option %s=%s is neither true nor false", key, s);
}

/* is name an item of "a,b,c"? */
static bool in_list(const char *list, const char *name)
{
    size_t n = strlen(name);
    for (const char *s = list; *s;) {
        const char *e = s + strcspn(s, ",");
        while (*s == ' ') s++;
        if ((size_t)(e - s) == n && !memcmp(s, name, n)) return true;
        s = *e ? e + 1 : e;
    }
    return false;
}

bool rx_name_in_list(const char *list, const char *name)
{
    return list && (in_list(list, name) || in_list(list, "all"));
}

/* ---- pipelines ---- */
static bool is_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_' ||
           c == '.' || c == ':';
}

typedef struct text { relax_context *ctx; const char *s, *all; } text;

static void blanks(text *t) { while (*t->s == ' ' || *t->s == '\n' || *t->s == '\t') t->s++; }

static const char *word(text *t, const char *what)
{
    blanks(t);
    const char *b = t->s;
    while (is_word(*t->s)) t->s++;
    if (t->s == b)
        rx_fail_hint(t->ctx, RXE_SYNTAX, NULL, "a pipeline reads like \"legalize,plan-memory(reuse=false)\"",
                     "pipeline: expected %s at column %u of \"%s\"", what, (unsigned)(b - t->all) + 1, t->all);
    const char *w = rx_strn(t->ctx, b, (size_t)(t->s - b));
    blanks(t);
    return w;
}

static void parse_options(text *t, relax_pipeline *p, rx_step *step)
{
    RX_VEC(rx_pass_opt) opts = { 0 };
    do {
        t->s++;
        rx_pass_opt o = { word(t, "an option's name"), "true" };
        if (*t->s == '=') { t->s++; o.value = word(t, "an option's value"); }
        if (!in_list(step->pass->options, o.key))
            rx_fail_hint(t->ctx, RXE_ATTR, NULL, *step->pass->options ? step->pass->options : "it takes none",
                         "pass %s has no option '%s'", step->pass->name, o.key);
        rx_push(&p->arena, &opts, o);
    } while (*t->s == ',');
    if (*t->s != ')')
        rx_fail(t->ctx, RXE_SYNTAX, NULL, "pipeline: expected ')' at column %u of \"%s\"",
                (unsigned)(t->s - t->all) + 1, t->all);
    t->s++;
    blanks(t);
    step->opts = opts.at;
    step->nopts = opts.n;
}

static void parse_steps(relax_pipeline *p, const char *s)
{
    text t = { p->ctx, s, s };
    blanks(&t);
    while (*t.s) {
        const char *name = word(&t, "a pass");
        if (!strcmp(name, "default")) parse_steps(p, rx_default_pipeline);
        else {
            rx_step step = { rx_pass_find(p->ctx, name), NULL, 0, 0 };
            if (!step.pass)
                rx_fail_hint(p->ctx, RXE_UNKNOWN_PASS, NULL, "`relax opt --list` prints the passes",
                             "no pass is named '%s'", name);
            if (*t.s == '(') parse_options(&t, p, &step);
            rx_push(&p->arena, &p->steps, step);
        }
        if (*t.s == ',') { t.s++; blanks(&t);
        } else if (*t.s)
            rx_fail(p->ctx, RXE_SYNTAX, NULL, "pipeline: expected ',' at column %u of \"%s\"", (unsigned)(t.s - s) + 1,
                    s);
    }
}

static void free_pipeline(void *arg) { rx_pipeline_free(arg); }

relax_pipeline *rx_pipeline_parse(relax_context *ctx, const char *s)
{
    rx_passes_init(ctx);
    relax_pipeline *p = rx_heap_alloc(&ctx->heap, sizeof *p, _Alignof(relax_pipeline));
    if (!p) rx_heap_oom(&ctx->heap);
    memset(p, 0, sizeof *p);
    p->magic = RX_PIPE_MAGIC;
    p->ctx = ctx;
    rx_arena_init(&p->arena, &ctx->heap);
    rx_frame f;
    if (RX_ENTER(&ctx->heap, &f)) {
        parse_steps(p, s);
        rx_leave(&ctx->heap, &f);
        return p;
    }
    free_pipeline(p);
    rx_unwind(&ctx->heap);
}

void rx_pipeline_free(relax_pipeline *p)
{
    if (!p) return;
    rx_heap *h = &p->ctx->heap;
    p->magic = 0;
    rx_arena_free(&p->arena);
    rx_heap_free(h, p, sizeof *p);
}

void rx_pipeline_insert(relax_pipeline *p, uint32_t at, const rx_step *s)
{
    rx_push(&p->arena, &p->steps, *s);
    for (uint32_t i = p->steps.n - 1; i > at; i--) p->steps.at[i] = p->steps.at[i - 1];
    p->steps.at[at] = *s;
}

int64_t rx_pipeline_find(const relax_pipeline *p, const char *name)
{
    for (uint32_t i = 0; i < p->steps.n; i++)
        if (!strcmp(p->steps.at[i].pass->name, name)) return i;
    return -1;
}

void rx_pipeline_text(rx_buf *b, const relax_pipeline *p)
{
    for (uint32_t i = 0; i < p->steps.n; i++) {
        const rx_step *s = &p->steps.at[i];
        rx_putf(b, "%s%s", i ? "," : "", s->pass->name);
        for (uint32_t k = 0; k < s->nopts; k++)
            rx_putf(b, "%s%s=%s%s", k ? "," : "(", s->opts[k].key, s->opts[k].value, k + 1 == s->nopts ? ")" : "");
    }
}

/* ---- running ---- */
static const char *props_text(relax_context *ctx, uint32_t props)
{
    static const char *const names[] = { "normal", "legal", "scheduled", "dps", "planned", "guarded" };
    const char *s = "";
    for (uint32_t i = 0; i < RX_COUNT(names); i++)
        if (props >> i & 1) s = rx_strf(ctx, "%s%s%s", s, *s ? ", " : "", names[i]);
    return s;
}

static void print_module(relax_pipeline *p, relax_module *m, const char *name, bool after)
{
    if (!p->print || !rx_name_in_list(after ? p->print_after : p->print_before, name)) return;
    rx_buf b;
    rx_buf_init(&b, rx_scratch(&p->ctx->heap));
    rx_print_module(&b, m);
    p->print(p->print_user, name, after, b.at ? b.at : "");
}

static void run_host(relax_context *ctx, const rx_pass *pass, relax_module *m)
{
    uint32_t before = rx_diag_count(ctx);
    relax_status st = pass->host(pass->user, m);
    if (st == RELAX_OK) return;
    if (rx_diag_count(ctx) == before)
        rx_fail(ctx, RXE_PASS_FAILED, NULL, "pass %s returned status %d (%s)", pass->name, (int)st,
                relax_status_name(st));
    rx_unwind(&ctx->heap);
}

/* ---- a host's pass may do anything: what it left is looked at, not believed ---- */
static void look_at_form(void *arg, relax_value *v)
{
    uint32_t *props = arg;
    if (v->kind == RX_V_OP && !(v->u.op->flags & (RX_OPF_HOST | RX_OPF_DYNAMIC))) *props &= ~(uint32_t)RX_M_LEGAL;
    if (v->kind == RX_V_CALL_TIR || v->kind == RX_V_CALL_TIR_INPLACE || v->kind == RX_V_CALL_DPS_LIB)
        *props &= ~(uint32_t)RX_M_DPS;
}

static void look_at(relax_module *m)
{
    for (relax_function *f = m->first; f; f = f->next)
        if (!f->is_prim) rx_fn_visit(f, look_at_form, &m->props);
}

static bool plan_holds(relax_module *m)
{
    uint32_t breaks = 0;
    for (relax_function *f = m->first; f; f = f->next)
        if (!f->is_prim && m->props & RX_M_PLANNED) breaks += rx_plan_check(f);
    return breaks == 0;
}

static void run_body(relax_pipeline *p, rx_step *s, relax_module *m, const relax_target *target)
{
    relax_context *ctx = p->ctx;
    const rx_pass *pass = s->pass;
    if (pass->needs & ~m->props)
        rx_fail_hint(ctx, RXE_CONTRACT, NULL, "run the passes in the order of the default pipeline",
                     "pass %s needs a module that is %s", pass->name, props_text(ctx, pass->needs & ~m->props));
    int64_t t0 = rx_now_ns();
    if (pass->host) {
        run_host(ctx, pass, m);
    } else {
        rx_pass_run r = { ctx, m, rx_scratch(&ctx->heap), target, s->opts, s->nopts };
        pass->fn(&r);
    }
    s->ns = rx_now_ns() - t0;
    m->props = (m->props & pass->keeps) | pass->makes;
    if (!p->verify_each && !pass->host) return;
    if (pass->host) look_at(m);
    if (rx_module_verify(m) || !plan_holds(m))
        rx_fail(ctx, RXE_PASS_FAILED, NULL, "pass %s left a module that breaks a rule (see the diagnostics before)",
                pass->name);
}

static void run_step(relax_pipeline *p, rx_step *s, relax_module *m, const relax_target *target)
{
    relax_context *ctx = p->ctx;
    relax_module *before = rx_module_clone(m);
    rx_frame f;
    if (RX_ENTER(&ctx->heap, &f)) {
        print_module(p, m, s->pass->name, false);
        run_body(p, s, m, target);
        print_module(p, m, s->pass->name, true);
        rx_leave(&ctx->heap, &f);
        rx_module_free(before);
        return;
    }
    rx_module_swap(m, before);
    rx_module_free(before);
    if (rx_diag_status(ctx) != RELAX_E_NOMEM) rx_note(ctx, "while pass %s ran", s->pass->name);
    rx_unwind(&ctx->heap);
}

void rx_pipeline_run(relax_pipeline *p, relax_module *m, const relax_target *target)
{
    for (uint32_t i = 0; i < p->steps.n; i++) {
        rx_progress(p->ctx, p->steps.at[i].pass->name, i, p->steps.n);
        run_step(p, &p->steps.at[i], m, target);
    }
    rx_progress(p->ctx, "passes", p->steps.n, p->steps.n);
}
