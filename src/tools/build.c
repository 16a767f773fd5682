/* build.c: build, opt, info: modules and files. */
#include "tools/tools.h"
#include <stdlib.h>
#include <string.h>

static bool parse_bounds(const options *o, relax_model_options *mo)
{
    for (int i = 0; i < o->nbounds; i++) {
        const char *eq = strchr(o->bounds[i], '=');
        char *end;
        long n = eq ? strtol(eq + 1, &end, 10) : 0;
        if (!eq || *end || n <= 0 || strncmp(o->bounds[i], "n=", 2)) {
            fprintf(stderr, "relax: --bound %s: n=N is expected\n", o->bounds[i]);
            return false;
        }
        mo->context = n;
    }
    return true;
}

static relax_module *load_text(relax_context *ctx, const char *path)
{
    size_t n;
    char *text = tool_read_file(path, &n);
    relax_module *m = text ? relax_module_parse(ctx, path, text, n) : NULL;
    free(text);
    return m;
}

int cmd_build(int argc, char **argv)
{
    static const char allowed[] = "otbOxPVgCQ";
    options o;
    if (!options_parse(&o, argc, argv, allowed)) return EXIT_USAGE;
    if (o.help) {
        fprintf(stderr, "relax build MODEL.gguf|MODULE.txt -o OUT.rlx: compile a model or a module in text form\n\n");
        options_help(allowed);
        return EXIT_OK;
    }
    relax_model_options mo = RELAX_MODEL_OPTIONS_INIT;
    if (o.ninputs != 1 || !o.output) return fprintf(stderr, "relax build: one input and -o are expected\n"), EXIT_USAGE;
    mo.context = o.context;
    mo.exact = o.exact;
    if (!parse_bounds(&o, &mo)) return EXIT_USAGE;
    relax_context *ctx = tool_context(&o);
    if (!ctx) return EXIT_FAILED;
    relax_weights *w = NULL;
    relax_module *m = NULL;
    relax_executable *e = NULL;
    relax_build_options bo = RELAX_BUILD_OPTIONS_INIT;
    bo.opt_level = (int32_t)o.opt_level;
    bo.pipeline = o.passes;
    bo.verify = o.verify;
    if (tool_is_gguf(o.inputs[0])) {
        if (!relax_weights_open(ctx, o.inputs[0], &w)) m = relax_model_import(ctx, w, &mo);
    } else m = load_text(ctx, o.inputs[0]);
    relax_target *t = m ? relax_target_parse(ctx, o.target ? o.target : "cpu") : NULL;
    int code = EXIT_OK;
    if (!t || relax_build(m, t, &bo, &e) || relax_executable_save(e, o.output)) code = tool_fail(ctx, o.inputs[0]);
    relax_executable_destroy(e);
    relax_module_destroy(m);
    relax_weights_close(w);
    relax_context_destroy(ctx);
    return code;
}

static int32_t write_text(void *user, const char *text, size_t n) { return fwrite(text, 1, n, user) != n; }

static void print_pass(void *user, const char *pass, int32_t after, const char *text)
{
    fprintf(user, "# %s %s\n%s\n", after ? "after" : "before", pass, text);
}

static int list_passes(relax_context *ctx)
{
    for (uint32_t i = 0; i < relax_pass_count(ctx); i++) {
        const char *name, *doc;
        if (!relax_pass_describe(ctx, i, &name, &doc)) printf("%-16s %s\n", name, doc);
    }
    return EXIT_OK;
}

static int run_passes(relax_context *ctx, const options *o, relax_module *m)
{
    relax_pipeline *p = relax_pipeline_parse(ctx, o->passes ? o->passes : "default");
    relax_target *t = o->target ? relax_target_parse(ctx, o->target) : NULL;
    int code = EXIT_OK;
    if (!p || (o->target && !t) || relax_pipeline_verify_each(p, o->verify) || relax_pipeline_set_target(p, t) ||
        relax_pipeline_print(p, o->print_before, o->print_after, print_pass, stdout) || relax_pipeline_run(p, m))
        code = tool_fail(ctx, o->inputs[0]);
    for (uint32_t i = 0; o->time_passes && i < relax_pipeline_time_count(p); i++) {
        const char *name;
        int64_t ns;
        if (!relax_pipeline_time(p, i, &name, &ns)) fprintf(stderr, "%10.3f ms  %s\n", (double)ns * 1e-6, name);
    }
    if (code == EXIT_OK && !o->print_after && relax_module_print(m, write_text, stdout))
        code = tool_fail(ctx, o->inputs[0]);
    relax_pipeline_destroy(p);
    return code;
}

int cmd_opt(int argc, char **argv)
{
    static const char allowed[] = "PBAVTltgQ";
    options o;
    if (!options_parse(&o, argc, argv, allowed)) return EXIT_USAGE;
    if (o.help) {
        fprintf(
            stderr,
            "relax opt MODULE.txt --passes LIST: run passes over a module (- reads standard input) and print it\n\n");
        options_help(allowed);
        return EXIT_OK;
    }
    if (!o.list && o.ninputs != 1) return fprintf(stderr, "relax opt: one module is expected\n"), EXIT_USAGE;
    relax_context *ctx = tool_context(&o);
    if (!ctx) return EXIT_FAILED;
    int code;
    if (o.list) code = list_passes(ctx);
    else {
        relax_module *m = load_text(ctx, o.inputs[0]);
        code = m ? run_passes(ctx, &o, m) : tool_fail(ctx, o.inputs[0]);
        relax_module_destroy(m);
    }
    relax_context_destroy(ctx);
    return code;
}

static int info_executable(relax_context *ctx, const options *o)
{
    relax_executable *e;
    if (relax_executable_load_file(ctx, o->inputs[0], &e)) return tool_fail(ctx, o->inputs[0]);
    size_t n = relax_executable_text(e, o->code, NULL, 0);
    char *s = malloc(n + 1);
    if (s) {
        relax_executable_text(e, o->code, s, n + 1);
        fwrite(s, 1, n, stdout);
    }
    free(s);
    relax_executable_destroy(e);
    return s ? EXIT_OK : EXIT_FAILED;
}

static int info_weights(relax_context *ctx, const options *o)
{
    relax_weights *w;
    if (relax_weights_open(ctx, o->inputs[0], &w)) return tool_fail(ctx, o->inputs[0]);
    size_t n = relax_weights_text(w, NULL, 0);
    char *s = malloc(n + 1);
    if (s) {
        relax_weights_text(w, s, n + 1);
        fwrite(s, 1, n, stdout);
    }
    free(s);
    relax_weights_close(w);
    return s ? EXIT_OK : EXIT_FAILED;
}

int cmd_info(int argc, char **argv)
{
    static const char allowed[] = "cQ";
    options o;
    if (!options_parse(&o, argc, argv, allowed)) return EXIT_USAGE;
    if (o.help) {
        fprintf(stderr, "relax info FILE.rlx|FILE.gguf|FILE.safetensors: what a file holds; nothing of it is run\n\n");
        options_help(allowed);
        return EXIT_OK;
    }
    if (o.ninputs != 1) return fprintf(stderr, "relax info: one file is expected\n"), EXIT_USAGE;
    relax_context *ctx = tool_context(&o);
    if (!ctx) return EXIT_FAILED;
    const char *dot = strrchr(o.inputs[0], '.');
    bool weights = tool_is_gguf(o.inputs[0]) || (dot && (!strcmp(dot, ".gguf") || !strcmp(dot, ".safetensors")));
    int code = weights ? info_weights(ctx, &o) : info_executable(ctx, &o);
    relax_context_destroy(ctx);
    return code;
}
