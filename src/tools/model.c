/* model.c: chat, run, bench: generation with a GGUF model.
 *
 * The compiled model is kept in a file named by the library's version, target, context and options, beside the model or
 * in --cache; a file that does not fit or is damaged is compiled again. A new file replaces an old one atomically. */
#include "tools/tools.h"
#include <stdlib.h>
#include <string.h>

#define GENERATE "pisRqLnCekumrydSjzfQI"

/* ---- sessions ---- */
static bool cache_path(const options *o, const char *model, const relax_target *t, char *out, size_t size)
{
    if (o->cache && !strcmp(o->cache, "none")) return false;
    const char *slash = strrchr(model, '/'), *base = slash ? slash + 1 : model;
    char target[256];
    snprintf(target, sizeof target, "%s", relax_target_text(t));
    for (char *c = target; *c; c++)
        if (*c == ':' || *c == '/') *c = '-';
    int n;
    if (o->cache) n = snprintf(out, size, "%s/%s", o->cache, base);
    else n = snprintf(out, size, "%s", model);
    n += snprintf(out + n, n < (int)size ? size - (size_t)n : 0, ".%s.%s.c%ld%s.O%ld.rlx", relax_version_string(),
                  target, o->context, o->exact ? ".exact" : "", o->opt_level);
    return n < (int)size;
}

static bool compile(session *s, const options *o, relax_target *t)
{
    relax_model_options mo = RELAX_MODEL_OPTIONS_INIT;
    relax_build_options bo = RELAX_BUILD_OPTIONS_INIT;
    mo.exact = o->exact;
    mo.context = o->context;
    bo.opt_level = (int32_t)o->opt_level;
    bo.verify = o->verify;
    relax_module *m = relax_model_import(s->ctx, s->weights, &mo);
    if (!m) return false;
    relax_status st = relax_build(m, t, &bo, &s->exe);
    relax_module_destroy(m);
    return st == RELAX_OK;
}

static bool finish(session *s, const options *o)
{
    relax_vm_options vo = RELAX_VM_OPTIONS_INIT;
    vo.threads = (int32_t)o->threads;
    vo.profile = o->profile;
    double t = tool_seconds();
    bool ok = !relax_tokenizer_create(s->weights, &s->tok) && !relax_generator_create(s->exe, s->weights, &vo, &s->gen);
    s->load_s += tool_seconds() - t;
    return ok;
}

static bool cached_fits(session *s, const char *path)
{
    FILE *f = fopen(path, "rb");
    if (!f) return false;
    fclose(f);
    const char *model = NULL;
    if (relax_executable_load_file(s->ctx, path, &s->exe) == RELAX_OK)
        model = relax_executable_property(s->exe, "gguf.fingerprint");
    char now[64] = "";
    relax_weights_meta(s->weights, "librelax.fingerprint", now, sizeof now);
    if (model && !strcmp(model, now)) return true;
    relax_executable_destroy(s->exe);
    s->exe = NULL;
    relax_diagnostic_clear(s->ctx);
    return false;
}

bool session_build(session *s, const options *o, const char *model)
{
    char path[4096];
    double t0 = tool_seconds();
    if (relax_weights_open(s->ctx, model, &s->weights)) return false;
    relax_target *t = relax_target_parse(s->ctx, o->target ? o->target : "cpu");
    s->load_s = tool_seconds() - t0;
    if (!t) return false;
    bool cached = cache_path(o, model, t, path, sizeof path);
    if (!cached || !cached_fits(s, path)) {
        t0 = tool_seconds();
        if (!compile(s, o, t)) return false;
        s->compile_s = tool_seconds() - t0;
        if (cached && relax_executable_save(s->exe, path))
            relax_diagnostic_clear(s->ctx); /* a folder that cannot be written is no error */
    }
    return finish(s, o);
}

bool session_open(session *s, const options *o, const char *exe, const char *model)
{
    double t0 = tool_seconds();
    if (relax_executable_load_file(s->ctx, exe, &s->exe) || relax_weights_open(s->ctx, model, &s->weights))
        return false;
    s->load_s = tool_seconds() - t0;
    return finish(s, o);
}

void session_close(session *s)
{
    relax_generator_destroy(s->gen);
    relax_tokenizer_destroy(s->tok);
    relax_executable_destroy(s->exe);
    relax_weights_close(s->weights);
    relax_context_destroy(s->ctx);
}

/* ---- prompts ---- */
typedef struct ids { int32_t *at; size_t n; } ids;

static bool encode(session *s, const char *text, bool bos, ids *out)
{
    int64_t n = relax_tokenizer_encode(s->tok, text, RELAX_STRLEN, bos, 1, NULL, 0);
    out->at = n < 0 ? NULL : malloc(((size_t)n + 1) * sizeof *out->at);
    if (!out->at) return false;
    out->n = (size_t)relax_tokenizer_encode(s->tok, text, RELAX_STRLEN, bos, 1, out->at, (size_t)n);
    return true;
}

/* one user turn (and the system message in front of the first) in the model's chat template; base models have none: the
 * text as it is */
static bool chat_prompt(session *s, const options *o, const char *text, bool first, ids *out)
{
    const char *roles[2], *contents[2];
    uint32_t n = 0;
    char has[8] = "";
    relax_weights_meta(s->weights, "tokenizer.chat_template", has, sizeof has);
    if (o->raw || !*has) return encode(s, text, first, out);
    if (first && o->system) {
        roles[n] = "system";
        contents[n++] = o->system;
    }
    roles[n] = "user";
    contents[n++] = text;
    int64_t len = relax_tokenizer_chat(s->tok, roles, contents, n, 1, NULL, 0);
    char *buf = len < 0 ? NULL : malloc((size_t)len + 1);
    bool ok = buf && relax_tokenizer_chat(s->tok, roles, contents, n, 1, buf, (size_t)len + 1) == len &&
              encode(s, buf, first, out);
    free(buf);
    return ok;
}

/* ---- generation ---- */
typedef struct output {
    session *s; const options *o;
    int32_t *ids; size_t n;
    char *text; size_t len, shown;     /* all text so far; what was printed */
    double first_s, prompt_s, gen_s; size_t prompt_n;
    bool stopped;
} output;

static void top_logits(session *s, long k, size_t step, int32_t id)
{
    const float *l;
    size_t n;
    if (relax_generator_logits(s->gen, &l, &n)) return;
    int32_t *best = malloc((size_t)k * sizeof *best);
    long m = 0;
    for (size_t i = 0; best && i < n; i++) {
        long j = m < k ? m++ : k;
        while (j > 0 && l[best[j - 1]] < l[i]) {
            if (j < k) best[j] = best[j - 1];
            j--;
        }
        if (j < k) best[j] = (int32_t)i;
    }
    printf("{\"step\": %zu, \"id\": %d, \"top\": [", step, id);
    for (long j = 0; best && j < m; j++) printf("%s[%d, %.6g]", j ? ", " : "", best[j], (double)l[best[j]]);
    printf("]}\n");
    free(best);
}

/* the length of text that may be shown: not a part of a stop string, no half UTF-8 character (the detokenizer keeps
 * those back) */
static size_t safe_length(output *w)
{
    size_t safe = w->len;
    for (int i = 0; i < w->o->nstop; i++) {
        const char *stop = w->o->stop[i], *hit = w->text ? strstr(w->text, stop) : NULL;
        size_t n = strlen(stop);
        if (hit && n) {
            w->stopped = true;
            if ((size_t)(hit - w->text) < safe) safe = (size_t)(hit - w->text);
            continue;
        }
        for (size_t k = n ? n - 1 : 0; k > 0; k--)
            if (w->len >= k && !memcmp(w->text + w->len - k, stop, k)) {
                if (w->len - k < safe) safe = w->len - k;
                break;
            }
    }
    return safe;
}

static bool show(output *w, bool last)
{
    int64_t n = relax_tokenizer_decode(w->s->tok, w->ids, w->n, 0, NULL, 0);
    char *t = n < 0 ? NULL : realloc(w->text, (size_t)n + 1);
    if (!t) return n >= 0;
    w->text = t;
    relax_tokenizer_decode(w->s->tok, w->ids, w->n, 0, t, (size_t)n + 1);
    w->len = (size_t)n;
    while (!last && w->len && (unsigned char)t[w->len - 1] >= 0x80) {       /* an unfinished character at the end */
        size_t k = w->len - 1, want;
        while (k && ((unsigned char)t[k] & 0xC0) == 0x80) k--;
        unsigned char c = (unsigned char)t[k];
        want = c >= 0xF0 ? 4 : c >= 0xE0 ? 3 : c >= 0xC0 ? 2 : 1;
        if (w->len - k >= want && memcmp(t + k, "\xEF\xBF\xBD", 3)) break;
        w->len = k;
        if (want == 1) break;
    }
    size_t safe = safe_length(w);
    if (last && !w->stopped) safe = w->len;
    if (safe > w->shown) fwrite(t + w->shown, 1, safe - w->shown, stdout);
    w->shown = safe > w->shown ? safe : w->shown;
    fflush(stdout);
    return true;
}

static int generate(output *w, const ids *prompt)
{
    session *s = w->s;
    const options *o = w->o;
    bool text = !o->print && !o->logits;
    double t0 = tool_seconds();
    if (!prompt->n) {
        fprintf(stderr, "relax: the prompt has no tokens\n");
        return EXIT_FAILED;
    }
    if (relax_generator_feed(s->gen, prompt->at, prompt->n)) return tool_fail(s->ctx, "relax");
    w->prompt_s = tool_seconds() - t0;
    w->prompt_n = prompt->n;
    w->ids = malloc(((size_t)o->max_tokens + 1) * sizeof *w->ids);
    t0 = tool_seconds();
    for (long i = 0; w->ids && i < o->max_tokens && !w->stopped && !tool_interrupted(); i++) {
        int32_t id;
        if (i && relax_generator_feed(s->gen, &w->ids[w->n - 1], 1)) return tool_fail(s->ctx, "relax");
        if (relax_generator_sample(s->gen, &id)) return tool_fail(s->ctx, "relax");
        if (!i) w->first_s = w->prompt_s + tool_seconds() - t0;
        if (o->logits) top_logits(s, o->logits, (size_t)i, id);
        if (!o->ignore_end && relax_tokenizer_is_end(s->tok, id)) break;
        w->ids[w->n++] = id;
        if (o->print && !o->logits) {
            printf("%s%d", i ? "," : "", id);
            fflush(stdout);
        }
        if (text && !show(w, false)) return tool_fail(s->ctx, "relax");
    }
    w->gen_s = tool_seconds() - t0;
    if (text) show(w, true);
    if (!o->logits) printf("\n");
    fflush(stdout);
    return tool_interrupted() ? EXIT_INTERRUPTED : EXIT_OK;
}

static void stats(const output *w)
{
    const session *s = w->s;
    size_t held = 0, arena = 0;
    relax_vm_memory(relax_generator_vm(s->gen), &held, &arena);
    fprintf(stderr,
            "compile %.2f s, load %.2f s; prompt %zu tokens %.2f s (%.1f tokens/s); first token %.2f s; generated %zu "
            "tokens %.2f s (%.1f tokens/s); "
            "activations %.1f MiB, peak memory %ld MiB\n",
            s->compile_s, s->load_s, w->prompt_n, w->prompt_s, (double)w->prompt_n / w->prompt_s, w->first_s, w->n,
            w->gen_s, w->n > 1 ? (double)(w->n - 1) / w->gen_s : 0.0, (double)arena / (1 << 20), tool_peak_rss_mib());
    if (!w->o->profile) return;
    relax_vm *vm = relax_generator_vm(s->gen);
    for (uint32_t i = 0; i < relax_vm_profile_count(vm); i++) {
        const char *name;
        int64_t calls, ns;
        if (!relax_vm_profile(vm, i, &name, &calls, &ns) && calls)
            fprintf(stderr, "%10.2f ms %8lld calls  %s\n", (double)ns * 1e-6, (long long)calls, name);
    }
}

static bool set_sampling(session *s, const options *o)
{
    relax_sampling p = RELAX_SAMPLING_INIT;
    p.temperature = (float)o->temperature;
    p.top_k = (int32_t)o->top_k;
    p.top_p = (float)o->top_p;
    p.min_p = (float)o->min_p;
    p.repetition_penalty = (float)o->penalty;
    p.penalty_window = (int32_t)o->penalty_window;
    p.seed = o->seed;
    return !relax_generator_set_sampling(s->gen, &p);
}

static int one_turn(session *s, const options *o, const char *text, bool first)
{
    ids prompt = { 0 };
    output w = { .s = s, .o = o };
    int code = EXIT_OK;
    if (o->ids) {
        if (!json_read_ints(o->ids, &prompt.at, &prompt.n)) {
            fprintf(stderr, "relax: --ids %s: a list of integers is expected\n", o->ids);
            return EXIT_USAGE;
        }
    } else if (!chat_prompt(s, o, text, first, &prompt)) {
        code = tool_fail(s->ctx, "relax");
    }
    if (code == EXIT_OK) code = generate(&w, &prompt);
    if (code != EXIT_FAILED && o->stats) stats(&w);
    free(prompt.at);
    free(w.ids);
    free(w.text);
    return code;
}

/* turns from standard input until it ends; Ctrl-C ends an answer, at the prompt the program */
static int conversation(session *s, const options *o)
{
    char *line = NULL;
    size_t cap = 0;
    int code = EXIT_OK;
    for (bool first = true; code == EXIT_OK; first = false) {
        fprintf(stderr, "> ");
        ssize_t n = getline(&line, &cap, stdin);
        if (n <= 0 || tool_interrupted()) break;
        if (n && line[n - 1] == '\n') line[n - 1] = 0;
        code = one_turn(s, o, line, first);
        if (code == EXIT_INTERRUPTED) {
            tool_interrupt_reset();
            code = EXIT_OK;
        }
    }
    free(line);
    return code;
}

static int talk(session *s, const options *o, bool ready)
{
    int code;
    if (!ready) code = tool_fail(s->ctx, o->inputs[0]);
    else if (!set_sampling(s, o)) code = tool_fail(s->ctx, "relax");
    else code = o->prompt || o->ids ? one_turn(s, o, o->prompt, true) : conversation(s, o);
    session_close(s);
    return code;
}

static int help(const char *use, const char *allowed)
{
    fprintf(stderr, "%s\n\n", use);
    options_help(allowed);
    return EXIT_OK;
}

int cmd_chat(int argc, char **argv)
{
    static const char allowed[] = GENERATE "txOhV";
    options o;
    session s = { 0 };
    if (!options_parse(&o, argc, argv, allowed)) return EXIT_USAGE;
    if (o.help) return help("relax chat MODEL.gguf [-p TEXT]: compile a model if needed and talk to it", allowed);
    if (o.ninputs != 1) return fprintf(stderr, "relax chat: one model file is expected\n"), EXIT_USAGE;
    if (!(s.ctx = tool_context(&o))) return EXIT_FAILED;
    return talk(&s, &o, session_build(&s, &o, o.inputs[0]));
}

int cmd_run(int argc, char **argv)
{
    static const char allowed[] = GENERATE "w";
    options o;
    session s = { 0 };
    if (!options_parse(&o, argc, argv, allowed)) return EXIT_USAGE;
    if (o.help)
        return help("relax run MODEL.rlx --weights MODEL.gguf -p TEXT: generate with a compiled model", allowed);
    if (o.ninputs != 1 || !o.weights)
        return fprintf(stderr, "relax run: a compiled model and --weights are expected\n"), EXIT_USAGE;
    if (!(s.ctx = tool_context(&o))) return EXIT_FAILED;
    return talk(&s, &o, session_open(&s, &o, o.inputs[0], o.weights));
}

/* ---- bench ---- */
static bool measure(session *s, size_t n, long steps, double *prefill, double *decode)
{
    int32_t *p = malloc(n * sizeof *p), id = 1;
    for (size_t i = 0; p && i < n; i++) p[i] = (int32_t)(i % 100) + 10;
    double t0 = tool_seconds();
    bool ok = p && !relax_generator_reset(s->gen) && !relax_generator_feed(s->gen, p, n);
    double t1 = tool_seconds();
    for (long i = 0; ok && i < steps; i++)
        ok = !relax_generator_sample(s->gen, &id) && !relax_generator_feed(s->gen, &id, 1);
    double t2 = tool_seconds();
    *prefill = (double)n / (t1 - t0);
    *decode = (double)steps / (t2 - t1);
    free(p);
    return ok;
}

int cmd_bench(int argc, char **argv)
{
    static const char allowed[] = "txOhjJwaEnQC";
    options o;
    session s[2] = { { 0 }, { 0 } };
    if (!options_parse(&o, argc, argv, allowed)) return EXIT_USAGE;
    if (o.help)
        return help("relax bench MODEL.gguf, or MODEL.rlx --weights MODEL.gguf [--against OTHER.rlx]: tokens/s of a "
                    "prompt of 128 and of generation, interleaved",
                    allowed);
    if (o.ninputs != 1) return fprintf(stderr, "relax bench: one model file is expected\n"), EXIT_USAGE;
    int n = o.against ? 2 : 1, code = EXIT_OK;
    for (int i = 0; i < n && code == EXIT_OK; i++) {
        if (!(s[i].ctx = tool_context(&o))) return EXIT_FAILED;
        bool ok = o.weights ? session_open(&s[i], &o, i ? o.against : o.inputs[0], o.weights)
                            : !o.against && session_build(&s[i], &o, o.inputs[0]);
        if (!ok) code = tool_fail(s[i].ctx, o.inputs[0]);
    }
    for (long r = 0; r < o.repeat && code == EXIT_OK; r++)
        for (int i = 0; i < n && code == EXIT_OK; i++) {
            double prefill, decode;
            if (!measure(&s[i], 128, o.max_tokens == 512 ? 32 : o.max_tokens, &prefill, &decode))
                code = tool_fail(s[i].ctx, "bench");
            else if (o.json)
                printf(
                    "{\"round\": %ld, \"which\": %d, \"prefill_tokens_per_s\": %.3f, \"decode_tokens_per_s\": %.3f}\n",
                    r, i, prefill, decode);
            else
                printf("round %ld %s: prompt of 128: %.1f tokens/s, generation %.1f tokens/s\n", r,
                       i ? o.against : o.inputs[0], prefill, decode);
        }
    for (int i = 0; i < n; i++) session_close(&s[i]);
    return code;
}
