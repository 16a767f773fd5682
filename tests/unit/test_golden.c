/* test_golden.c: files tests/golden/<topic>/<case>.txt: a module, what passes make of it.
 *
 *     # passes: cse,dce                 what runs (a pipeline; may be empty: only parsed, verified, printed)
 *     # target: cpu:x86-64-v3           optional, for schedule
 *     # error: RX2104 some words        optional: it must fail so, and the module must stay as it was before the
 * failing pass fn main(…) { … } # --- the module afterwards, as printed
 *
 * RELAX_BLESS=1 (make bless) rewrites what stands behind the line. Every result is verified, printed, parsed and
 * printed again; a memory plan is checked by rx_plan_check. */
#include "testlib.h"

#include "op/op.h"
#include "pass/pass.h"

#include <dirent.h>

typedef struct golden {
    char path[256], *text;
    char passes[256], target[64], error[128];
    const char *input, *expected;      /* in text; input ends at expected's line */
    size_t input_n;
} golden;

static char *slurp(const char *path)
{
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    fseek(f, 0, SEEK_END);
    size_t n = (size_t)ftell(f);
    rewind(f);
    char *s = malloc(n + 1);
    assert_int_equal(fread(s, 1, n, f), n);
    fclose(f);
    s[n] = 0;
    return s;
}

static bool header(const char *line, const char *key, char *out, size_t size)
{
    if (strncmp(line, key, strlen(key)))
        return false;
    line += strlen(key);
    size_t n = strcspn(line, "\n");
    assert_true(n < size);
    memcpy(out, line, n);
    out[n] = 0;
    return true;
}

static void load(golden *g)
{
    static const char mark[] = "# ---\n";
    g->text = slurp(g->path);
    const char *s = g->text;
    bool passes = false;
    while (*s == '#' && strncmp(s, mark, sizeof mark - 1)) {
        passes |= header(s, "# passes: ", g->passes, sizeof g->passes);
        header(s, "# target: ", g->target, sizeof g->target);
        header(s, "# error: ", g->error, sizeof g->error);
        s += strcspn(s, "\n") + 1;
    }
    if (!passes && !g->error[0])
        fail_msg("%s has no line '# passes: …'", g->path);
    g->input = s;
    const char *e = strstr(s, mark);
    g->input_n = e ? (size_t)(e - s) : strlen(s);
    g->expected = e ? e + sizeof mark - 1 : "";
}

/* one run of one file */
typedef struct world {
    golden *g;
    tl_heap heap;
    relax_context *ctx;
    rx_arena a;                        /* of texts */
    relax_module *m;
    const char *before, *after;        /* the module before the pass that ran last; at the end */
} world;

static const char *print(world *w, relax_module *m)
{
    rx_buf b;
    rx_buf_init(&b, &w->a);
    rx_print_module(&b, m);
    return b.at ? b.at : "";
}

static bool parse(world *w)
{
    rx_frame fr;
    if (RX_ENTER(&w->ctx->heap, &fr)) {
        rx_ops_init(w->ctx);
        w->m = rx_parse_module(w->ctx, w->g->path, w->g->input, w->g->input_n);
        if (rx_module_verify(w->m))
            rx_unwind(&w->ctx->heap);
        rx_leave(&w->ctx->heap, &fr);
        return true;
    }
    return false;
}

static void free_pipeline(void *p)
{
    rx_pipeline_free(p);
}

/* one pass at a time, so that a failing one can be compared with what it was given */
static bool run_passes(world *w)
{
    rx_frame fr;
    if (RX_ENTER(&w->ctx->heap, &fr)) {
        golden *g = w->g;
        relax_pipeline *p = rx_pipeline_parse(w->ctx, g->passes), one;
        rx_defer(&w->ctx->heap, free_pipeline, p);
        const relax_target *t = g->target[0] ? rx_target_parse(w->ctx, g->target, strlen(g->target)) : NULL;
        p->verify_each = true;
        one = *p;
        for (uint32_t i = 0; i < p->steps.n; i++) {
            w->before = print(w, w->m);
            one.steps.at = &p->steps.at[i];
            one.steps.n = 1;
            rx_pipeline_run(&one, w->m, t);
        }
        w->after = print(w, w->m);
        rx_leave(&w->ctx->heap, &fr);
        return true;
    }
    if (!w->before)
        return false;
    TL_TRY(w->ctx) {
        assert_string_equal(print(w, w->m), w->before);
    } TL_END(w->ctx)
    return false;
}

static void check_result(world *w)
{
    relax_module *m = w->m;
    TL_TRY(w->ctx) {
        assert_int_equal(rx_module_verify(m), 0);
        for (relax_function *f = m->first; f; f = f->next)
            if (!f->is_prim && m->props & RX_M_PLANNED && rx_plan_check(f))
                rx_unwind(&w->ctx->heap);
        relax_module *again = rx_parse_module(w->ctx, "again", w->after, strlen(w->after));
        assert_string_equal(print(w, again), w->after);
        rx_module_free(again);
    } TL_END(w->ctx)
}

static void bless(const golden *g, const char *text)
{
    FILE *f = fopen(g->path, "wb");
    assert_non_null(f);
    fwrite(g->text, 1, (size_t)(g->input - g->text) + g->input_n, f);
    fprintf(f, "# ---\n%s", text);
    fclose(f);
}

/* "RX2104 some words": the id, and the words somewhere in the message */
static void failed_as_wanted(world *w)
{
    const golden *g = w->g;
    const rx_diag *d = rx_diag_at(w->ctx, rx_diag_count(w->ctx) - 1);
    char id[16];
    assert_non_null(d);
    snprintf(id, sizeof id, "RX%d", (int)d->err);
    size_t n = strcspn(g->error, " ");
    if (strlen(id) == n && !strncmp(id, g->error, n) && strstr(d->message, g->error + n + (g->error[n] == ' ')))
        return;
    tl_print_diags(w->ctx);
    fail_msg("%s: wanted %s, got %s %s", g->path, g->error[0] ? g->error : "no error", id, d->message);
}

static void run_file(void **state)
{
    world w = {.g = *state};
    load(w.g);
    w.ctx = tl_context(&w.heap);
    rx_arena_init(&w.a, &w.ctx->heap);
    if (!parse(&w) || !run_passes(&w)) {
        failed_as_wanted(&w);
    } else {
        check_result(&w);
        if (w.g->error[0])
            fail_msg("%s: no error, but\n%s", w.g->path, w.after);
        if (getenv("RELAX_BLESS"))
            bless(w.g, w.after);
        else
            assert_string_equal(w.after, w.g->expected);
    }
    rx_module_free(w.m);
    rx_arena_free(&w.a);
    tl_done(&w.heap, w.ctx);
    free(w.g->text);
}

/* --- the list of files, sorted --- */
static golden *files;
static size_t nfiles;

static int by_path(const void *a, const void *b)
{
    return strcmp(((const golden *)a)->path, ((const golden *)b)->path);
}

static void list(const char *dir, int depth)
{
    DIR *d = opendir(dir);
    if (!d)
        return;
    for (struct dirent *e; (e = readdir(d));) {
        char path[600];
        size_t n = strlen(e->d_name);
        if (e->d_name[0] == '.')
            continue;
        snprintf(path, sizeof path, "%s/%s", dir, e->d_name);
        if (depth) {
            list(path, depth - 1);
        } else if (n > 4 && !strcmp(e->d_name + n - 4, ".txt")) {
            files = realloc(files, (nfiles + 1) * sizeof *files);
            files[nfiles] = (golden){ .text = NULL };
            assert_true(strlen(path) < sizeof files->path);
            strcpy(files[nfiles++].path, path);
        }
    }
    closedir(d);
}

int main(void)
{
    list("tests/golden", 1);
    if (!nfiles) {
        fprintf(stderr, "tests/golden is not below the current folder\n");
        return 1;
    }
    qsort(files, nfiles, sizeof *files, by_path);
    struct CMUnitTest *t = calloc(nfiles, sizeof *t);
    for (size_t i = 0; i < nfiles; i++)
        t[i] = (struct CMUnitTest){ files[i].path + strlen("tests/golden/"), run_file, NULL, NULL, &files[i] };
    int bad = _cmocka_run_group_tests("golden", t, nfiles, NULL, NULL);
    free(t);
    free(files);
    return bad;
}
