/* test_embed_state.c: what a process has and a library must leave alone: errno, signals, working folder, umask, modes
 * of the processor, names of threads, descriptors, environment, locale; and what librelax must not depend on. */
#include "testlib.h"
#include "embedlib.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <locale.h>
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

extern char **environ;

/* ---- a picture of the process ---- */
typedef struct picture {
    int no, fds, threads;
    sigset_t mask;
    void (*handlers[NSIG])(int);
    int handler_flags[NSIG];
    char cwd[PATH_MAX], name[16], locale[256];
    mode_t umask;
    unsigned control;                  /* of the floating-point unit: rounding, traps, denormals */
    char **env;
    uint64_t env_hash;
    struct rlimit limits[RLIM_NLIMITS];
    int dumpable;
} picture;

static int entries(const char *folder)
{
    int n = 0;
    DIR *d = opendir(folder);
    assert_non_null(d);
    while (readdir(d)) n++;
    closedir(d);
    return n;
}

static unsigned float_control(void)
{
#if defined(__x86_64__)
    return __builtin_ia32_stmxcsr() & ~0x3Fu;           /* the lower bits say what has happened: not a mode */
#elif defined(__aarch64__)
    unsigned long v;
    __asm__("mrs %0, fpcr" : "=r"(v));
    return (unsigned)v;
#else
    return 0;
#endif
}

static void set_float_control(unsigned v)
{
#if defined(__x86_64__)
    __builtin_ia32_ldmxcsr(v);
#else
    (void)v;
#endif
}

static void take(picture *p)
{
    int no = errno;
    memset(p, 0, sizeof *p);
    p->no = no;
    pthread_sigmask(SIG_SETMASK, NULL, &p->mask);
    for (int s = 1; s < NSIG; s++) {
        struct sigaction a = {0};
        sigaction(s, NULL, &a);
        p->handlers[s] = a.sa_handler;
        p->handler_flags[s] = a.sa_flags;
    }
    assert_non_null(getcwd(p->cwd, sizeof p->cwd));
    prctl(PR_GET_NAME, p->name);
    snprintf(p->locale, sizeof p->locale, "%s", setlocale(LC_ALL, NULL));
    p->umask = umask(0);
    umask(p->umask);
    p->control = float_control();
    p->env = environ;
    for (char **e = environ; *e; e++) p->env_hash = rx_hash(*e, strlen(*e), p->env_hash);
    for (int r = 0; r < RLIM_NLIMITS; r++) getrlimit(r, &p->limits[r]);
    p->dumpable = prctl(PR_GET_DUMPABLE);
    p->fds = entries("/proc/self/fd");
    p->threads = entries("/proc/self/task");
}

static void same(const picture *a, const picture *b, const char *after)
{
    const char *what = a->no != b->no                                      ? "errno"
                       : memcmp(&a->mask, &b->mask, sizeof a->mask)        ? "the signal mask"
                       : memcmp(a->handlers, b->handlers, sizeof a->handlers) ||
                                 memcmp(a->handler_flags, b->handler_flags, sizeof a->handler_flags)
                           ? "an action of a signal"
                       : strcmp(a->cwd, b->cwd)                            ? "the working folder"
                       : strcmp(a->name, b->name)                          ? "the name of the thread"
                       : strcmp(a->locale, b->locale)                      ? "the locale"
                       : a->umask != b->umask                              ? "the umask"
                       : a->control != b->control                          ? "the floating-point control"
                       : a->env != b->env || a->env_hash != b->env_hash    ? "the environment"
                       : memcmp(a->limits, b->limits, sizeof a->limits)    ? "a resource limit"
                       : a->dumpable != b->dumpable                        ? "dumpable"
                       : a->fds != b->fds                                  ? "the number of open files"
                       : a->threads != b->threads                          ? "the number of threads"
                                                                           : NULL;
    if (what) print_error("%s changed in %s (errno %d, %d)\n", what, after, a->no, b->no);
    assert_null(what);
}

enum { MARK = 4242 };                  /* of errno: no call may leave another */
static picture before, after;
#define UNCHANGED(...)                                                                                                 \
    do {                                                                                                               \
        errno = MARK;                                                                                                  \
        take(&before);                                                                                                 \
        errno = MARK;                                                                                                  \
        __VA_ARGS__;                                                                                                   \
        take(&after);                                                                                                  \
        same(&before, &after, #__VA_ARGS__);                                                                           \
    } while (0)

/* the test is linked with librelax's objects, so relax.h can be called plainly */
static void process_unchanged(void **state)
{
    (void)state;
    static const char bad[] = "fn f(x: Tensor((n, 4), f32)) {\n  y = silly(x)\n  return y\n}\n";
    static const char exact[] = "fn g() -> Tensor((3,), f64) {\n  y = log(const(f64, (3,), [0.0, -1.0, 1e308]))\n"
                                "  z = exp(y)\n  return z\n}\n";           /* ERANGE and EDOM in the C library */
    char path[] = "/tmp/relax-embed-XXXXXX", missing[] = "/nonexistent/folder/file";
    relax_context *ctx = NULL;
    relax_module *m, *g;
    relax_target *t;
    relax_executable *x = NULL, *y = NULL;
    relax_vm *vm = NULL, *vm2 = NULL;
    relax_weights *w = NULL;
    relax_any args[2] = {{0}}, r = {0};
    relax_vm_options vo = RELAX_VM_OPTIONS_INIT;
    relax_status s;
    int64_t rows[2] = {40, 8}, two = 2;
    close(mkstemp(path));
    prctl(PR_SET_NAME, "embedding");
    UNCHANGED(s = relax_context_create(NULL, &ctx));
    assert_int_equal(s, RELAX_OK);
    UNCHANGED(m = relax_module_parse(ctx, "m", emb_model, RELAX_STRLEN));
    UNCHANGED(g = relax_module_parse(ctx, "g", exact, RELAX_STRLEN));
    assert_non_null(m);
    assert_non_null(g);
    UNCHANGED(assert_null(relax_module_parse(ctx, "bad", bad, RELAX_STRLEN)));
    UNCHANGED(relax_last_error(ctx));
    UNCHANGED(t = relax_target_parse(ctx, "cpu"));
    UNCHANGED(assert_null(relax_target_parse(ctx, "cpu:pentium")));
    UNCHANGED(s = relax_build(g, t, NULL, &y));
    assert_int_equal(s, RELAX_OK);
    relax_executable_destroy(y);
    UNCHANGED(s = relax_build(m, t, NULL, &x));
    assert_int_equal(s, RELAX_OK);
    UNCHANGED(s = relax_executable_save(x, path));
    assert_int_equal(s, RELAX_OK);
    UNCHANGED(s = relax_executable_save(x, missing));
    assert_int_equal(s, RELAX_E_IO);
    UNCHANGED(s = relax_executable_save(x, "/dev/full"));
    assert_int_equal(s, RELAX_E_IO);
    UNCHANGED(s = relax_executable_load_file(ctx, path, &y));
    assert_int_equal(s, RELAX_OK);
    UNCHANGED(relax_executable_destroy(y));
    UNCHANGED(s = relax_executable_load_file(ctx, missing, &y));
    assert_int_equal(s, RELAX_E_IO);
    UNCHANGED(s = relax_weights_open(ctx, missing, &w));
    assert_int_equal(s, RELAX_E_IO);
    UNCHANGED(s = relax_weights_open(ctx, path, &w));
    assert_int_not_equal(s, RELAX_OK);
    UNCHANGED(s = relax_plugin_load(ctx, missing));
    assert_int_not_equal(s, RELAX_OK);
    UNCHANGED(s = relax_executable_activate(x, NULL, NULL));
    assert_int_equal(s, RELAX_OK);
    UNCHANGED(s = relax_vm_create(x, NULL, &vm); relax_vm_destroy(vm));
    vo.threads = 1;
    UNCHANGED(s = relax_vm_create(x, &vo, &vm));
    assert_int_equal(s, RELAX_OK);
    UNCHANGED(s = relax_tensor_create(ctx, RELAX_F32, rows, 2, &args[0]));
    UNCHANGED(s = relax_tensor_create(ctx, RELAX_I64, &two, 1, &args[1]));
    UNCHANGED(s = relax_vm_invoke(vm, "f", args, 2, &r));
    assert_int_equal(s, RELAX_OK);
    UNCHANGED(relax_any_release(&r));
    UNCHANGED(s = relax_vm_invoke(vm, "f", args, 1, &r));
    assert_int_not_equal(s, RELAX_OK);
    vo.threads = 3;                    /* the threads of a VM are there until it goes */
    UNCHANGED(s = relax_vm_create(x, &vo, &vm2); s = s ? s : relax_vm_invoke(vm2, "f", args, 2, &r);
              relax_vm_destroy(vm2));
    assert_int_equal(s, RELAX_OK);
    UNCHANGED(relax_any_release(&r); relax_any_release(&args[0]); relax_any_release(&args[1]));
    UNCHANGED(relax_vm_destroy(vm));
    UNCHANGED(relax_executable_destroy(x));
    UNCHANGED(relax_module_destroy(m); relax_module_destroy(g));
    UNCHANGED(relax_context_destroy(ctx));
    unlink(path);
}

/* modes that the host has set stay, also those that a library could want otherwise */
static void float_modes(void **state)
{
    (void)state;
#if defined(__x86_64__)
    static const unsigned modes[] = {0x8040 /* denormals are zero */, 0x2000, 0x4000, 0x6000 /* roundings */};
    unsigned plain = __builtin_ia32_stmxcsr();
    emb e;
    char path[PATH_MAX];
    assert_true(emb_open(&e, emb_library(path, sizeof path)));
    for (size_t i = 0; i < RX_COUNT(modes); i++) {
        emb_job j = {.threads = 2};
        set_float_control((plain & ~0xE040u) | modes[i]);
        unsigned set = float_control();
        int line = emb_run(&e, &j);
        unsigned left = float_control();
        set_float_control(plain);
        assert_int_equal(line, 0);
        assert_int_equal(left, set);
        emb_free(&j);
    }
    emb_close(&e);
#else
    skip();
#endif
}

/* ---- the locale ---- */
/* de_DE with UTF-8 made in dir by localedef; false: this machine cannot */
static bool make_locale(const char *dir)
{
    char to[PATH_MAX];
    int status = -1;
    snprintf(to, sizeof to, "%s/de_DE.UTF-8", dir);
    pid_t child = fork();
    if (child == 0) {
        int none = open("/dev/null", O_RDWR);
        dup2(none, 1);
        dup2(none, 2);
        execlp("localedef", "localedef", "-i", "de_DE", "-f", "UTF-8", "--no-archive", to, (char *)NULL);
        _exit(127);
    }
    return child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* a program in text and back, its executable, an error with a number in it */
typedef struct said { emb_job job; char error[256]; } said;

static void speak(said *s)
{
    emb e;
    char path[PATH_MAX];
    relax_context *ctx;
    memset(s, 0, sizeof *s);
    assert_true(emb_open(&e, emb_library(path, sizeof path)));
    assert_int_equal(emb_run(&e, &s->job), 0);
    assert_int_equal(relax_context_create(NULL, &ctx), RELAX_OK);
    assert_null(relax_module_parse(ctx, "bad", "fn f(x: Tensor((n,), f32)) {\n  y = clip(x, min=1.5, max=1,5)\n", -1));
    snprintf(s->error, sizeof s->error, "%s", relax_last_error(ctx));
    relax_context_destroy(ctx);
    emb_close(&e);
}

static void comma_locale(void **state)
{
    (void)state;
    char dir[] = "/tmp/relax-locale-XXXXXX", clean[128], number[32];
    said plain, german;
    speak(&plain);
    assert_non_null(mkdtemp(dir));
    bool made = make_locale(dir);
    if (made) {
        setenv("LOCPATH", dir, 1);     /* read by setlocale */
        made = setlocale(LC_ALL, "de_DE.UTF-8") != NULL;
        unsetenv("LOCPATH");
    }
    if (!made) made = setlocale(LC_ALL, "de_DE.UTF-8") || setlocale(LC_ALL, "de_DE.utf8") ||
                      setlocale(LC_ALL, "fr_FR.UTF-8");
    snprintf(clean, sizeof clean, "rm -rf %s", dir);
    assert_int_equal(system(clean), 0);
    if (!made) skip();
    snprintf(number, sizeof number, "%.1f", 1.5);
    assert_string_equal(number, "1,5");                                  /* the locale does what it is taken for */
    speak(&german);
    setlocale(LC_ALL, "C");
    emb_same(&plain.job, &german.job);
    assert_string_equal(plain.error, german.error);
    assert_non_null(strstr(plain.job.text, "-1.25"));
    emb_free(&plain.job);
    emb_free(&german.job);
}

/* ---- the environment, the folders ---- */
static char *const odd[] = {
    "LANG=de_DE.UTF-8", "LC_ALL=tr_TR.UTF-8", "TZ=Asia/Kathmandu", "HOME=/nonexistent", "TMPDIR=/nonexistent",
    "XDG_CACHE_HOME=/nonexistent", "OMP_NUM_THREADS=1", "OPENBLAS_NUM_THREADS=1", "RELAX_DEBUG=1", "RELAX_THREADS=7",
    "RELAX_TARGET=null", "RELAX_LLVM=/nonexistent", "RELAX_ORACLE=/nonexistent", "LLVM_ENABLE_STATS=1",
    "LLVM_DISABLE_CRASH_REPORT=1", "MALLOC_PERTURB_=165", "NO_COLOR=1", NULL};

/* this program again with only one of its tests' helpers: builds the model, runs it, and writes what came out */
static int helper(void)
{
    emb e;
    emb_job j = {.threads = 2};
    char path[PATH_MAX];
    if (!emb_open(&e, emb_library(path, sizeof path)) || emb_run(&e, &j)) return 1;
    if (write(1, j.bytes, j.size) != (ssize_t)j.size) return 1;
    if (write(1, j.text, j.ntext) != (ssize_t)j.ntext) return 1;
    if (write(1, j.result, sizeof j.result) != sizeof j.result) return 1;
    emb_free(&j);
    emb_close(&e);
    return 0;
}

typedef struct output { char *at; size_t n; } output;

static void helper_in(const char *folder, char *const *env, output *o)
{
    char self[PATH_MAX];
    int ends[2], status = -1;
    ssize_t k = readlink("/proc/self/exe", self, sizeof self - 1);
    self[k] = 0;
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    if (child == 0) {
        dup2(ends[1], 1);
        close(ends[0]);
        close(ends[1]);
        if (chdir(folder) == 0) execve(self, (char *[]){self, "helper", NULL}, env);
        _exit(127);
    }
    close(ends[1]);
    *o = (output){malloc(1 << 20), 0};
    for (ssize_t n; (n = read(ends[0], o->at + o->n, (1 << 20) - o->n)) > 0;) o->n += (size_t)n;
    close(ends[0]);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

/* the same bytes without any environment, with an odd one, from another folder; and no file appears in that folder,
 * which the process takes for its home too */
static void surroundings(void **state)
{
    (void)state;
    char dir[] = "/tmp/relax-embed-XXXXXX", home[64], tmp[64];
    assert_non_null(mkdtemp(dir));
    snprintf(home, sizeof home, "HOME=%s", dir);
    snprintf(tmp, sizeof tmp, "TMPDIR=%s", dir);
    char *const homely[] = {home, tmp, NULL}, *const none[] = {NULL};
    output a, b, c;
    helper_in("/", none, &a);
    helper_in("/tmp", odd, &b);
    helper_in(dir, homely, &c);
    assert_true(a.n > 1000);
    assert_int_equal(a.n, b.n);
    assert_int_equal(a.n, c.n);
    assert_memory_equal(a.at, b.at, a.n);
    assert_memory_equal(a.at, c.at, a.n);
    assert_int_equal(entries(dir), 2);
    assert_int_equal(rmdir(dir), 0);
    free(a.at);
    free(b.at);
    free(c.at);
}

int main(int argc, char **argv)
{
    if (argc == 2 && !strcmp(argv[1], "helper")) return helper();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(process_unchanged), cmocka_unit_test(float_modes), cmocka_unit_test(comma_locale),
        cmocka_unit_test(surroundings),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
