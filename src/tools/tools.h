/* tools.h: the relax command. It uses relax.h alone, as any host would. Data goes to stdout, the rest to stderr. */
#ifndef RELAX_TOOLS_H
#define RELAX_TOOLS_H
#include <relax.h>
#include <stdbool.h>
#include <stdio.h>

/* exit codes, documented in docs/command.md */
enum { EXIT_OK = 0, EXIT_FAILED = 1, EXIT_USAGE = 2, EXIT_INTERRUPTED = 130 };

/* --- options.c: one table for all commands; a command names those that it takes --- */
typedef struct options {
    const char *inputs[4]; int ninputs;
    const char *output, *target, *passes, *print_before, *print_after, *weights, *prompt, *system, *ids, *print, *cache,
        *stop[8], *function;
    const char *bounds[8], *against, *plugins[8];
    int nstop, nbounds, nplugins;
    long threads, max_tokens, top_k, logits, context, opt_level, penalty_window, repeat;
    double temperature, top_p, min_p, penalty;
    unsigned long long seed;
    bool exact, stats, json, raw, verify, time_passes, detokenize, code, list, quiet, nospecial, profile, ignore_end,
        help;
} options;
/* false: a message was printed; exit with EXIT_USAGE */
bool options_parse(options *o, int argc, char **argv, const char *allowed);
void options_help(const char *allowed);

/* --- context.c --- */
relax_context *tool_context(const options *o); /* with progress on a terminal, cancel by Ctrl-C; NULL after a message */
int tool_fail(relax_context *ctx,
              const char *what); /* prints the newest diagnostics; EXIT_FAILED or EXIT_INTERRUPTED */
bool tool_interrupted(void);
void tool_interrupt_reset(void);
double tool_seconds(void);
long tool_peak_rss_mib(void);
char *tool_read_file(const char *path, size_t *size);   /* "-": stdin; malloc'd; NULL after a message */
bool tool_is_gguf(const char *path);
bool tool_is_executable(const char *path);

/* --- json.c --- */
void json_string(FILE *f, const char *s, size_t n);
/* Reads a JSON string at *s; malloc'd UTF-8 in *out; false: malformed. Lone surrogates become U+FFFD. */
bool json_read_string(const char **s, char **out, size_t *n);
bool json_read_ints(const char *s, int32_t **out, size_t *n);

/* --- the commands --- */
int cmd_build(int argc, char **argv);
int cmd_opt(int argc, char **argv);
int cmd_info(int argc, char **argv);
int cmd_chat(int argc, char **argv);
int cmd_run(int argc, char **argv);
int cmd_bench(int argc, char **argv);
int cmd_tokenize(int argc, char **argv);
/* --- model.c: what chat, run and bench share --- */
typedef struct session {
    relax_context *ctx;
    relax_weights *weights;
    relax_executable *exe;
    relax_tokenizer *tok;
    relax_generator *gen;
    double compile_s, load_s;
} session;
bool session_build(session *s, const options *o, const char *model);    /* compiles, or takes the cached executable */
bool session_open(session *s, const options *o, const char *exe, const char *model);
void session_close(session *s);
#endif
