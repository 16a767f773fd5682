/* context.c: the context of the command: progress on a terminal, Ctrl-C as cancellation, errors as text. */
#include "tools/tools.h"
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

static volatile sig_atomic_t interrupted;
static void on_interrupt(int sig)
{
    (void)sig;
    interrupted = 1;
}

bool tool_interrupted(void) { return interrupted != 0; }
void tool_interrupt_reset(void) { interrupted = 0; }

double tool_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

long tool_peak_rss_mib(void)
{
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return u.ru_maxrss / 1024;
}

static void on_progress(void *user, const char *phase, int64_t done, int64_t total)
{
    (void)user;
    fprintf(stderr, "\r\033[K%s", "");
    if (done < total) fprintf(stderr, "%-16s %lld/%lld", phase, (long long)done, (long long)total);
    fflush(stderr);
}

static int32_t on_cancel(void *user)
{
    (void)user;
    return interrupted;
}

static void on_log(void *user, relax_log_level level, const char *text)
{
    (void)user;
    if (level <= RELAX_LOG_WARNING) fprintf(stderr, "relax: %s\n", text);
}

relax_context *tool_context(const options *o)
{
    relax_context_options c = RELAX_CONTEXT_OPTIONS_INIT;
    relax_context *ctx = NULL;
    struct sigaction act = { .sa_handler = on_interrupt };
    sigaction(SIGINT, &act, NULL);
    c.log = on_log;
    c.cancel = on_cancel;
    if (!o->quiet && isatty(2)) c.progress = on_progress;
    if (relax_context_create(&c, &ctx)) {
        fprintf(stderr, "relax: out of memory\n");
        return NULL;
    }
    for (int i = 0; i < o->nplugins; i++)
        if (relax_plugin_load(ctx, o->plugins[i])) {
            tool_fail(ctx, o->plugins[i]);
            relax_context_destroy(ctx);
            return NULL;
        }
    return ctx;
}

int tool_fail(relax_context *ctx, const char *what)
{
    uint32_t n = relax_diagnostic_count(ctx);
    for (uint32_t i = n > 8 ? n - 8 : 0; i < n; i++) {
        relax_diagnostic d = RELAX_DIAGNOSTIC_INIT;
        if (relax_diagnostic_get(ctx, i, &d)) continue;
        fprintf(stderr, "%s: %s: ", what, d.id);
        if (d.file) fprintf(stderr, "%s:%u:%u: ", d.file, d.line, d.col);
        if (d.function) fprintf(stderr, "%s: ", d.function);
        if (d.binding) fprintf(stderr, "%s: ", d.binding);
        fprintf(stderr, "%s\n", d.message);
        if (d.hint) fprintf(stderr, "  hint: %s\n", d.hint);
    }
    if (!n) fprintf(stderr, "%s: failed\n", what);
    return interrupted ? EXIT_INTERRUPTED : EXIT_FAILED;
}

char *tool_read_file(const char *path, size_t *size)
{
    FILE *f = strcmp(path, "-") ? fopen(path, "rb") : stdin;
    char *s = NULL;
    size_t n = 0, cap = 0;
    if (!f) {
        fprintf(stderr, "%s: %s\n", path, strerror(errno));
        return NULL;
    }
    for (;;) {
        if (n + 1 >= cap) {
            char *more = realloc(s, cap = cap ? cap * 2 : 1 << 16);
            if (!more) break;
            s = more;
        }
        size_t k = fread(s + n, 1, cap - n - 1, f);
        if (!k) break;
        n += k;
    }
    if (ferror(f) || !s) {
        fprintf(stderr, "%s: cannot be read\n", path);
        free(s);
        s = NULL;
    } else {
        s[n] = 0;
        *size = n;
    }
    if (f != stdin) fclose(f);
    return s;
}

static bool starts_with(const char *path, const char *magic)
{
    char b[8] = { 0 };
    FILE *f = fopen(path, "rb");
    if (!f) return false;
    size_t n = fread(b, 1, strlen(magic), f);
    fclose(f);
    return n == strlen(magic) && !memcmp(b, magic, n);
}

bool tool_is_gguf(const char *path) { return starts_with(path, "GGUF"); }
bool tool_is_executable(const char *path) { return starts_with(path, "RELAXEXE"); }
