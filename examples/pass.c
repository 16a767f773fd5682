/* pass.c: a pass of the host in the default pipeline. It counts operators and rewrites x * x into square(x). */
#include <relax.h>
#include <stdio.h>
#include <string.h>

typedef struct state { int operators, rewritten; } state;

static int32_t look(void *user, relax_value *v)
{
    state *s = user;
    const char *op = relax_value_op(v);
    if (!op) return 0;
    s->operators++;
    if (strcmp(op, "multiply") || relax_value_arg(v, 0) != relax_value_arg(v, 1)) return 0;
    relax_builder *b = relax_insert_before(v);
    relax_value *sq = relax_square(b, relax_value_arg(v, 0));
    if (relax_insert_end(b) || relax_value_replace(v, sq) || relax_value_remove(v)) return 1;
    s->rewritten++;
    return 0;
}

static relax_status my_pass(void *user, relax_module *m)
{
    for (uint32_t i = 0; i < relax_module_function_count(m); i++) {
        relax_function *f = relax_module_function(m, i);
        if (!relax_function_is_prim(f) && relax_function_visit(f, look, user)) return RELAX_E_INTERNAL;
    }
    return RELAX_OK;
}

static int32_t show(void *user, const char *text, size_t n) { return fwrite(text, 1, n, user) != n; }

int main(void)
{
    static const char text[] =
        "fn norm(x: Tensor((n, 8), f32)) -> Tensor((n,), f32) where n <= 64 {\n"
        "  dataflow {\n"
        "    s = multiply(x, x)\n"
        "    y = sum(s, axis=(1,))\n"
        "    output y\n"
        "  }\n"
        "  return y\n"
        "}\n";
    relax_context *ctx = NULL;
    state s = { 0, 0 };
    if (relax_context_create(NULL, &ctx)) return 1;
    relax_module *m = relax_module_parse(ctx, "norm", text, RELAX_STRLEN);
    relax_pipeline *p = relax_pipeline_parse(ctx, "normalize,cse,dce");         /* or "default" */
    int code = !m || !p || relax_pipeline_insert_after(p, "cse", "square", my_pass, &s) || relax_pipeline_run(p, m);
    if (code) fprintf(stderr, "%s\n", relax_last_error(ctx));
    else {
        printf("%d operators, %d rewritten\n", s.operators, s.rewritten);
        relax_module_print(m, show, stdout);
    }
    relax_pipeline_destroy(p);
    relax_module_destroy(m);
    relax_context_destroy(ctx);
    return code;
}
