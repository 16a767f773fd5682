/* options.c: options of all commands in one table: letter (the key that commands list), names, kind, field, help. */
#include "tools/tools.h"
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

enum kind { FLAG, TEXT, LONG, REAL, SEED, LIST };
typedef struct row {
    char key;
    const char *name, *alias;
    enum kind kind;
    size_t at, count;
    const char *arg, *help;
} row;
#define AT(f) offsetof(options, f)
static const row rows[] = {
    {'o', "--output", "-o", TEXT, AT(output), 0, "FILE", "write to FILE"},
    {'t', "--target", NULL, TEXT, AT(target), 0, "NAME",
     "cpu, cpu:x86-64-v3, cpu:aarch64+dotprod … (default cpu: this machine)"},
    {'b', "--bound", NULL, LIST, AT(bounds), AT(nbounds), "SYM=N",
     "upper bound of a symbol; n=N bounds tokens and cache of a model"},
    {'O', "--opt", "-O", LONG, AT(opt_level), 0, "0..3", "effort of the code generator (default 2)"},
    {'x', "--exact", NULL, FLAG, AT(exact), 0, NULL, "float32 activations and cache"},
    {'P', "--passes", NULL, TEXT, AT(passes), 0, "LIST", "\"default\", or pass,pass(option=value),…"},
    {'B', "--print-before", NULL, TEXT, AT(print_before), 0, "LIST", "print the module before these passes, or all"},
    {'A', "--print-after", NULL, TEXT, AT(print_after), 0, "LIST", "print the module after these passes, or all"},
    {'V', "--verify-each", NULL, FLAG, AT(verify), 0, NULL, "verify the module after every pass"},
    {'T', "--time-passes", NULL, FLAG, AT(time_passes), 0, NULL, "time of each pass on stderr"},
    {'l', "--list", NULL, FLAG, AT(list), 0, NULL, "list the passes"},
    {'g', "--plugin", NULL, LIST, AT(plugins), AT(nplugins), "FILE.so", "load a plugin"},
    {'c', "--code", NULL, FLAG, AT(code), 0, NULL, "bytecode and shape program too"},
    {'w', "--weights", NULL, TEXT, AT(weights), 0, "FILE", "the model's weights"},
    {'p', "--prompt", "-p", TEXT, AT(prompt), 0, "TEXT", "the prompt; without it lines are read from standard input"},
    {'s', "--system", NULL, TEXT, AT(system), 0, "TEXT", "system message"},
    {'i', "--ids", NULL, TEXT, AT(ids), 0, "1,2,…", "token ids instead of a prompt"},
    {'R', "--raw", NULL, FLAG, AT(raw), 0, NULL, "the prompt as it is, without the chat template"},
    {'q', "--print", NULL, TEXT, AT(print), 0, "ids", "print token ids instead of text"},
    {'L', "--logits", NULL, LONG, AT(logits), 0, "K", "the K largest logits of each step, as JSON lines"},
    {'n', "--max-tokens", "-n", LONG, AT(max_tokens), 0, "N", "stop after N tokens (default 512)"},
    {'C', "--context", NULL, LONG, AT(context), 0, "N", "longest context"},
    {'e', "--temperature", NULL, REAL, AT(temperature), 0, "X", "0: the most likely token (default)"},
    {'k', "--top-k", NULL, LONG, AT(top_k), 0, "N", "sample from the N most likely"},
    {'u', "--top-p", NULL, REAL, AT(top_p), 0, "X", "sample from the most likely with a total of X"},
    {'m', "--min-p", NULL, REAL, AT(min_p), 0, "X", "sample from those with at least X of the best one's probability"},
    {'r', "--repetition-penalty", NULL, REAL, AT(penalty), 0, "X", "divide the logits of recent tokens by X"},
    {'y', "--penalty-window", NULL, LONG, AT(penalty_window), 0, "N", "how many recent tokens (default 64)"},
    {'d', "--seed", NULL, SEED, AT(seed), 0, "N", "of the random numbers (default 0)"},
    {'S', "--stop", NULL, LIST, AT(stop), AT(nstop), "TEXT", "stop where the output has TEXT"},
    {'I', "--ignore-end", NULL, FLAG, AT(ignore_end), 0, NULL, "go on after the model's end tokens"},
    {'j', "--threads", "-j", LONG, AT(threads), 0, "N", "threads (default: all cores)"},
    {'h', "--cache", NULL, TEXT, AT(cache), 0, "DIR|none",
     "where compiled models are kept (default: beside the model)"},
    {'z', "--stats", NULL, FLAG, AT(stats), 0, NULL, "times, tokens/s and memory on stderr"},
    {'f', "--profile", NULL, FLAG, AT(profile), 0, NULL, "time of each kernel on stderr"},
    {'J', "--json", NULL, FLAG, AT(json), 0, NULL, "JSON for scripts"},
    {'D', "--detokenize", NULL, FLAG, AT(detokenize), 0, NULL, "JSON id lists to JSON strings"},
    {'N', "--no-special", NULL, FLAG, AT(nospecial), 0, NULL, "markers in the text are plain text"},
    {'a', "--against", NULL, TEXT, AT(against), 0, "FILE.rlx", "a second executable, interleaved"},
    {'E', "--repeat", NULL, LONG, AT(repeat), 0, "N", "rounds (default 5)"},
    {'Q', "--quiet", NULL, FLAG, AT(quiet), 0, NULL, "no progress"},
};
enum { NROWS = sizeof rows / sizeof rows[0] };

void options_help(const char *allowed)
{
    for (int i = 0; i < NROWS; i++) {
        if (!strchr(allowed, rows[i].key)) continue;
        char left[64];
        snprintf(left, sizeof left, "%s%s%s %s", rows[i].alias ? rows[i].alias : "", rows[i].alias ? ", " : "",
                 rows[i].name, rows[i].arg ? rows[i].arg : "");
        fprintf(stderr, "  %-30s %s\n", left, rows[i].help);
    }
}

static bool set(options *o, const row *r, const char *value)
{
    char *end = "", *at = (char *)o + r->at;
    errno = 0;
    switch (r->kind) {
    case FLAG: *(bool *)at = true; return true;
    case TEXT: *(const char **)at = value; return true;
    case LONG: *(long *)at = strtol(value, &end, 10); break;
    case REAL: *(double *)at = strtod(value, &end); break;
    case SEED: *(unsigned long long *)at = strtoull(value, &end, 10); break;
    case LIST: {
        int *n = (int *)((char *)o + r->count);
        if (*n == 8) return false;
        ((const char **)at)[(*n)++] = value;
        return true;
    }
    }
    return !*end && !errno && *value && (r->kind != LONG || *(long *)at >= 0);
}

static const row *find(const char *name, const char *allowed)
{
    for (int i = 0; i < NROWS; i++)
        if (strchr(allowed, rows[i].key) &&
            (!strcmp(name, rows[i].name) || (rows[i].alias && !strcmp(name, rows[i].alias))))
            return &rows[i];
    return NULL;
}

bool options_parse(options *o, int argc, char **argv, const char *allowed)
{
    *o = (options){ .opt_level = 2, .max_tokens = 512, .top_p = 1, .penalty = 1, .penalty_window = 64, .repeat = 5 };
    for (int i = 0; i < argc; i++) {
        char name[64];
        if (argv[i][0] != '-' || !argv[i][1]) {
            if (o->ninputs == 4) return fprintf(stderr, "relax: too many files\n"), false;
            o->inputs[o->ninputs++] = argv[i];
            continue;
        }
        if (!strcmp(argv[i], "--help")) {
            o->help = true;
            return true;
        }
        const char *eq = strchr(argv[i], '=');      /* --name=value */
        snprintf(name, sizeof name, "%.*s", (int)(eq && argv[i][1] == '-' ? eq - argv[i] : 63), argv[i]);
        const row *r = find(name, allowed);
        if (!r) return fprintf(stderr, "relax: unknown option %s (--help lists them)\n", argv[i]), false;
        const char *value = r->kind == FLAG ? "" : eq && argv[i][1] == '-' ? eq + 1 : i + 1 < argc ? argv[++i] : NULL;
        if (!value) return fprintf(stderr, "relax: %s needs %s\n", name, r->arg), false;
        if (!set(o, r, value)) return fprintf(stderr, "relax: %s %s: not a valid %s\n", name, value, r->arg), false;
    }
    return true;
}
