/* oracle_lm.c: two language models, imported in exact mode, built and run through the C API, against an independent
 * float32 program (lm_gemma3_270m, lm_qwen2_0_5b of the oracle).
 *
 * A case passes when a free greedy run gives every recorded id, and when at each step the best logit and its lead, and
 * at the steps that the file names the eight best logits, 64 probes and the log of the sum of exponentials, differ by
 * at most what the file's README allows a float32 program. By default cases with short prompts and the first steps are
 * run; RELAX_FULL=1 runs everything. Only what was run counts. */
#define TL_JSON
#include "testlib.h"

#include <math.h>

#include "oracle.h"

int oracle_lm(FILE *out, FILE *err, bool verbose);

enum { SHORT_PROMPT = 80, SHORT_RUN = 24, LONG_PROMPT = 500, CONTEXT = 2048 };

typedef struct model {
    relax_context *ctx;
    relax_weights *weights;
    relax_executable *exe;
    relax_generator *gen;
} model;

/* false: ctx has the error */
static bool open_model(model *m, const char *path)
{
    relax_model_options mo = RELAX_MODEL_OPTIONS_INIT;
    relax_vm_options vo = RELAX_VM_OPTIONS_INIT;
    mo.exact = 1;
    mo.context = CONTEXT;
    relax_target *t = relax_target_parse(m->ctx, "cpu");
    if (!t || relax_weights_open(m->ctx, path, &m->weights) != RELAX_OK)
        return false;
    relax_module *mod = relax_model_import(m->ctx, m->weights, &mo);
    bool ok = mod && relax_build(mod, t, NULL, &m->exe) == RELAX_OK;
    relax_module_destroy(mod);
    return ok && relax_generator_create(m->exe, m->weights, &vo, &m->gen) == RELAX_OK;
}

static void close_model(model *m)
{
    relax_generator_destroy(m->gen);
    relax_executable_destroy(m->exe);
    relax_weights_close(m->weights);
    relax_context_destroy(m->ctx);
}

/* the larger difference; one that is no number is infinite */
static double worse(double a, double b)
{
    return isnan(a) || isnan(b) ? INFINITY : a > b ? a : b;
}

static double log_sum(const float *x, size_t n, double best)
{
    double s = 0;
    for (size_t i = 0; i < n; i++)
        s += exp((double)x[i] - best);
    return log(s) + best;
}

/* the lead of logit id over the best other one */
static double lead(const float *x, size_t n, int32_t id)
{
    double next = -INFINITY;
    for (size_t i = 0; i < n; i++)
        if (i != (size_t)id && x[i] > next)
            next = x[i];
    return x[id] - next;
}

static double pairs_error(const cJSON *list, const float *x, size_t n)
{
    double worst = 0;
    const cJSON *p;
    cJSON_ArrayForEach(p, list) {
        double id = cJSON_GetArrayItem(p, 0)->valuedouble, want = cJSON_GetArrayItem(p, 1)->valuedouble;
        worst = id < (double)n ? worse(worst, fabs(x[(size_t)id] - want)) : INFINITY;
    }
    return worst;
}

/* largest difference at a step: the best logit, half its lead (a difference of two logits), the checks there */
static double step_error(const cJSON *c, int step, int32_t id, const float *x, size_t n)
{
    const cJSON *check;
    double best = cJSON_GetArrayItem(tl_json_get(c, "top1_logits"), step)->valuedouble;
    double margin = cJSON_GetArrayItem(tl_json_get(c, "margins"), step)->valuedouble;
    double worst = worse(fabs(x[id] - best), fabs(lead(x, n, id) - margin) / 2);
    cJSON_ArrayForEach(check, tl_json_get(c, "checks")) {
        if ((int)tl_json_get(check, "step")->valuedouble != step)
            continue;
        worst = worse(worst, pairs_error(tl_json_get(check, "top8"), x, n));
        worst = worse(worst, pairs_error(tl_json_get(check, "probe"), x, n));
        worst = worse(worst, fabs(log_sum(x, n, x[id]) - tl_json_get(check, "lse")->valuedouble));
    }
    return worst;
}

static bool feed_prompt(relax_generator *g, const cJSON *prompt)
{
    size_t n = (size_t)cJSON_GetArraySize(prompt), i = 0;
    int32_t *ids = calloc(n + 1, sizeof *ids);
    const cJSON *p;
    cJSON_ArrayForEach(p, prompt)
        ids[i++] = (int32_t)p->valuedouble;
    bool ok = relax_generator_reset(g) == RELAX_OK && relax_generator_feed(g, ids, n) == RELAX_OK;
    free(ids);
    return ok;
}

/* the worst difference of a free run; infinite when it takes another way or fails */
static double run_case(model *m, const cJSON *c, int steps)
{
    const float *x;
    size_t n;
    int32_t id;
    double worst = 0;
    const cJSON *want = tl_json_get(c, "greedy_ids");
    if (!feed_prompt(m->gen, tl_json_get(c, "prompt_ids")))
        return INFINITY;
    for (int s = 0; s < steps; s++) {
        if (relax_generator_logits(m->gen, &x, &n) != RELAX_OK || relax_generator_sample(m->gen, &id) != RELAX_OK
            || id != (int32_t)cJSON_GetArrayItem(want, s)->valuedouble)
            return INFINITY;
        worst = worse(worst, step_error(c, s, id, x, n));
        if (s + 1 < steps && relax_generator_feed(m->gen, &id, 1) != RELAX_OK)
            return INFINITY;
    }
    return worst;
}

static int run_cases(model *m, const char *name, tl_lines *l, FILE *out, FILE *err, bool verbose)
{
    bool full = getenv("RELAX_FULL") != NULL;
    int passed = 0, total = 0;
    for (cJSON *c; (c = tl_json_next(l)); cJSON_Delete(c)) {
        int n_prompt = cJSON_GetArraySize(tl_json_get(c, "prompt_ids"));
        int all = cJSON_GetArraySize(tl_json_get(c, "greedy_ids"));
        int steps = full ? all : RX_MIN(all, SHORT_RUN);
        double allowed = n_prompt > LONG_PROMPT ? 2e-3 : 1e-3;
        if (!full && n_prompt > SHORT_PROMPT) {
            fprintf(err, "%s: %s is run with RELAX_FULL=1\n", name, tl_json_str(c, "id"));
            continue;
        }
        int64_t start = rx_now_ns();
        double worst = m->gen ? run_case(m, c, steps) : INFINITY;
        bool ok = worst <= allowed;
        total++;
        passed += ok;
        if (!ok || verbose)
            fprintf(err, "%s %s %s: %d of %d steps, largest difference %g, %.1f s %s\n", ok ? "ok" : "FAIL", name,
                    tl_json_str(c, "id"), steps, all, worst, (double)(rx_now_ns() - start) / 1e9,
                    relax_last_error(m->ctx));
    }
    oracle_line(out, name, passed, total, 0);
    return total - passed;
}

static int run_file(const char *name, const char *model_name, FILE *out, FILE *err, bool verbose)
{
    char file[64], path[1024], model_path[1024];
    tl_lines l;
    model m = {0};
    snprintf(file, sizeof file, "lm/%s.jsonl", name);
    if (!tl_oracle(file, path, sizeof path) || !tl_lines_open(&l, path))
        return 0;
    FILE *f = fopen(oracle_model(model_name, model_path, sizeof model_path), "rb");
    if (!f) {
        fprintf(err, "%s: left out, %s is not there\n", name, model_path);
        return 0;
    }
    fclose(f);
    if (relax_context_create(NULL, &m.ctx) != RELAX_OK)
        return 1;
    bool opened = open_model(&m, model_path), left_out = !opened && tl_last_error(m.ctx) == RXE_NO_BACKEND;
    if (!opened)
        fprintf(err, "%s: %s%s\n", name, left_out ? "left out, " : "", relax_last_error(m.ctx));
    int bad = left_out ? 0 : run_cases(&m, name, &l, out, err, verbose);
    close_model(&m);
    return bad;
}

int oracle_lm(FILE *out, FILE *err, bool verbose)
{
    int bad = run_file("lm_gemma3_270m", "gemma-3-270m.gguf", out, err, verbose);
    return bad + run_file("lm_qwen2_0_5b", "qwen2.5-coder-0.5b-instruct.gguf", out, err, verbose);
}
