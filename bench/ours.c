/* ours.c: the model runner of bench/run for this library; bench/peer.py answers the same commands.
 *
 * ours MODEL.gguf THREADS CONTEXT FILE.rlx: compiles the model into a file, loads that, prints one JSON line with the
 * times, then obeys lines of standard input until it ends: "prefill N" forgets all and feeds N tokens at once,
 * "decode N" makes N greedy tokens, one at a time. Each answers {"tokens", "wall_s", "cpu_s", "peak_kib"}; cpu_s counts
 * all threads of the process. */
#include <relax.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

static double now(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static long peak_kib(void)
{
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return u.ru_maxrss;
}

static long private_kib(void)
{
    long kib = 0;
    char line[256];
    FILE *f = fopen("/proc/self/status", "r");
    while (f && fgets(line, sizeof line, f))
        if (sscanf(line, "RssAnon: %ld", &kib) == 1)
            break;
    if (f)
        fclose(f);
    return kib;
}

static int failed(relax_context *ctx)
{
    for (uint32_t i = 0; i < relax_diagnostic_count(ctx); i++) {
        relax_diagnostic d = { .struct_size = sizeof d };
        if (!relax_diagnostic_get(ctx, i, &d))
            fprintf(stderr, "%s: %s\n", d.id, d.message);
    }
    return 1;
}

static relax_status prefill(relax_generator *g, long n)
{
    int32_t *ids = malloc((size_t)n * sizeof *ids);
    for (long i = 0; ids && i < n; i++)
        ids[i] = (int32_t)(i % 100) + 10;
    relax_status s = ids ? relax_generator_reset(g) : RELAX_E_NOMEM;
    s = s ? s : relax_generator_feed(g, ids, (size_t)n);
    free(ids);
    return s;
}

static relax_status decode(relax_generator *g, long n)
{
    relax_status s = RELAX_OK;
    for (long i = 0; i < n && !s; i++) {
        int32_t id;
        s = relax_generator_sample(g, &id);
        s = s ? s : relax_generator_feed(g, &id, 1);
    }
    return s;
}

static int serve(relax_context *ctx, relax_generator *g)
{
    char line[64], verb[16];
    long n;
    while (fgets(line, sizeof line, stdin) && sscanf(line, "%15s %ld", verb, &n) == 2 && n > 0) {
        double wall = now(CLOCK_MONOTONIC), cpu = now(CLOCK_PROCESS_CPUTIME_ID);
        if (strcmp(verb, "prefill") ? decode(g, n) : prefill(g, n))
            return failed(ctx);
        wall = now(CLOCK_MONOTONIC) - wall;
        cpu = now(CLOCK_PROCESS_CPUTIME_ID) - cpu;
        printf("{\"tokens\": %ld, \"wall_s\": %.6f, \"cpu_s\": %.6f, \"peak_kib\": %ld}\n", n, wall, cpu, peak_kib());
        fflush(stdout);
    }
    return 0;
}

/* the executable as a file; false: the diagnostics say why */
static bool compile(relax_context *ctx, const relax_weights *w, long context, const char *path)
{
    relax_model_options mo = RELAX_MODEL_OPTIONS_INIT;
    relax_build_options bo = RELAX_BUILD_OPTIONS_INIT;
    relax_executable *e = NULL;
    mo.context = context;
    relax_module *m = relax_model_import(ctx, w, &mo);
    relax_target *t = relax_target_parse(ctx, "cpu");
    bool ok = m && t && !relax_build(m, t, &bo, &e) && !relax_executable_save(e, path);
    relax_executable_destroy(e);
    relax_module_destroy(m);
    return ok;
}

int main(int argc, char **argv)
{
    relax_context *ctx;
    relax_weights *w;
    relax_generator *g = NULL;
    relax_vm_options vo = RELAX_VM_OPTIONS_INIT;
    if (argc != 5 || relax_context_create(NULL, &ctx))
        return 2;
    vo.threads = atoi(argv[2]);
    if (relax_weights_open(ctx, argv[1], &w))
        return failed(ctx);
    long before = private_kib();
    double wall = now(CLOCK_MONOTONIC), cpu = now(CLOCK_PROCESS_CPUTIME_ID);
    bool ok = compile(ctx, w, atol(argv[3]), argv[4]);
    double compile_s = now(CLOCK_MONOTONIC) - wall, compile_cpu = now(CLOCK_PROCESS_CPUTIME_ID) - cpu;
    long peak = peak_kib() - before;
    relax_weights_close(w);
    wall = now(CLOCK_MONOTONIC);
    relax_executable *e = NULL;
    if (!ok || relax_weights_open(ctx, argv[1], &w) || relax_executable_load_file(ctx, argv[4], &e) ||
        relax_generator_create(e, w, &vo, &g))
        return failed(ctx);
    printf("{\"compile_s\": %.3f, \"compile_cpu_s\": %.3f, \"compile_peak_kib\": %ld, \"load_s\": %.3f}\n", compile_s,
           compile_cpu, peak, now(CLOCK_MONOTONIC) - wall);
    fflush(stdout);
    int code = serve(ctx, g);
    relax_generator_destroy(g);
    relax_executable_destroy(e);
    relax_weights_close(w);
    relax_context_destroy(ctx);
    return code;
}
