/* test_embed.c: librelax as a guest of a process: two copies of it, loaded and unloaded, after fork, on small stacks,
 * over an allocator that watches its borders, ended in any order. */
#include "testlib.h"
#include "embedlib.h"

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>

#ifndef __has_feature
#define __has_feature(x) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || __has_feature(address_sanitizer)
enum { FRAMES_GROW = 8 };              /* redzones make frames larger */
#else
enum { FRAMES_GROW = 1 };
#endif

/* ---- a second copy of the library, in a folder of its own ---- */
static void copy_file(const char *from, const char *to)
{
    static char block[1 << 16];
    int in = open(from, O_RDONLY), out = open(to, O_WRONLY | O_CREAT | O_EXCL, 0700);
    assert_true(in >= 0 && out >= 0);
    for (ssize_t n; (n = read(in, block, sizeof block)) > 0;) assert_int_equal(write(out, block, (size_t)n), n);
    close(in);
    close(out);
}

typedef struct second { char dir[64], so[96], llvm[96]; } second;

static void second_make(second *s, const char *first)
{
    char llvm[PATH_MAX];
    strcpy(s->dir, "/tmp/relax-embed-XXXXXX");
    assert_non_null(mkdtemp(s->dir));
    snprintf(s->so, sizeof s->so, "%s/librelax.so", s->dir);
    snprintf(s->llvm, sizeof s->llvm, "%s/librelax_llvm.so", s->dir);
    copy_file(first, s->so);
    snprintf(llvm, sizeof llvm, "%.*s/librelax_llvm.so", (int)(strrchr(first, '/') - first), first);
    copy_file(llvm, s->llvm);
}

static void second_remove(const second *s)
{
    unlink(s->so);
    unlink(s->llvm);
    assert_int_equal(rmdir(s->dir), 0);    /* nothing else was written there */
}

typedef struct copy_job { const emb *e; emb_job job; int line; } copy_job;

static void *run_copy(void *p)
{
    copy_job *c = p;
    c->line = emb_run(c->e, &c->job);
    return NULL;
}

static void two_copies(void **state)
{
    (void)state;
    char path[PATH_MAX];
    second s;
    emb a, b;
    emb_library(path, sizeof path);
    second_make(&s, path);
    assert_true(emb_open(&a, path));
    assert_true(emb_open(&b, s.so));
    assert_ptr_not_equal(a.relax_build, b.relax_build);
    /* interleaved in one thread */
    emb_job ja = {.threads = 2}, jb = {.threads = 2}, ja2 = {.threads = 2}, jb2 = {.threads = 2};
    relax_context *ca, *cb;
    relax_executable *xa, *xb;
    assert_int_equal(emb_build(&a, &ja, &ca, &xa), 0);
    assert_int_equal(emb_build(&b, &jb, &cb, &xb), 0);
    assert_int_equal(emb_call(&b, xb, &jb), 0);
    assert_int_equal(emb_call(&a, xa, &ja), 0);
    emb_same(&ja, &jb);
    /* the executable of one in the other */
    relax_executable *other = NULL;
    float kept[16];
    memcpy(kept, ja.result, sizeof kept);
    assert_int_equal(b.relax_executable_load_memory(cb, ja.bytes, ja.size, 0, &other), RELAX_OK);
    assert_int_equal(emb_call(&b, other, &ja), 0);
    assert_memory_equal(kept, ja.result, sizeof kept);
    b.relax_executable_destroy(other);
    a.relax_executable_destroy(xa);
    a.relax_context_destroy(ca);
    assert_int_equal(emb_call(&b, xb, &jb), 0);
    b.relax_executable_destroy(xb);
    b.relax_context_destroy(cb);
    /* at the same time */
    copy_job c[2] = {{&a, ja2, 0}, {&b, jb2, 0}};
    pthread_t t[2];
    for (int i = 0; i < 2; i++) assert_int_equal(pthread_create(&t[i], NULL, run_copy, &c[i]), 0);
    for (int i = 0; i < 2; i++) assert_int_equal(pthread_join(t[i], NULL), 0);
    assert_int_equal(c[0].line, 0);
    assert_int_equal(c[1].line, 0);
    emb_same(&c[0].job, &c[1].job);
    emb_same(&c[0].job, &ja);
    emb_close(&a);                                                       /* the second goes on without the first */
    emb_job last = {.threads = 2};
    assert_int_equal(emb_run(&b, &last), 0);
    emb_same(&last, &ja);
    emb_close(&b);
    second_remove(&s);
    emb_free(&ja);
    emb_free(&jb);
    emb_free(&c[0].job);
    emb_free(&c[1].job);
    emb_free(&last);
}

/* ---- loaded, used, unloaded ---- */
static int entries(const char *folder)
{
    int n = 0;
    DIR *d = opendir(folder);
    assert_non_null(d);
    while (readdir(d)) n++;
    closedir(d);
    return n;
}

/* lines of /proc/self/maps with the word; all lines for "" */
static int mappings(const char *word)
{
    char line[PATH_MAX + 256];
    int n = 0;
    FILE *f = fopen("/proc/self/maps", "r");
    assert_non_null(f);
    while (fgets(line, sizeof line, f)) n += strstr(line, word) != NULL;
    fclose(f);
    return n;
}

static void load_and_unload(void **state)
{
    (void)state;
    char path[PATH_MAX];
    emb_library(path, sizeof path);
    emb_job first = {.threads = 3};
    int fds = 0, threads = 0, maps = 0;
    for (int i = 0; i < 52; i++) {
        emb e;
        emb_job j = {.threads = 3};
        bool builds = i % 10 == 1;     /* the others load what the first built */
        assert_true(emb_open(&e, path));
        if (i == 0) {
            assert_int_equal(emb_run(&e, &first), 0);
        } else if (builds) {
            assert_int_equal(emb_run(&e, &j), 0);
            emb_same(&first, &j);
        } else {
            relax_context *ctx;
            relax_executable *x;
            assert_int_equal(e.relax_context_create(NULL, &ctx), RELAX_OK);
            assert_int_equal(e.relax_executable_load_memory(ctx, first.bytes, first.size, 0, &x), RELAX_OK);
            assert_int_equal(emb_call(&e, x, &j), 0);
            assert_memory_equal(j.result, first.result, sizeof j.result);
            e.relax_executable_destroy(x);
            e.relax_context_destroy(ctx);
        }
        emb_free(&j);
        emb_close(&e);
        if (i == 1) {                  /* LLVM has come and stays */
            fds = entries("/proc/self/fd");
            threads = entries("/proc/self/task");
            maps = mappings("");
        }
    }
    assert_int_equal(entries("/proc/self/fd"), fds);
    assert_int_equal(entries("/proc/self/task"), threads);
    assert_int_equal(mappings("librelax.so"), 0);
    assert_int_equal(mappings("relax-kernels"), 0);
    assert_true(mappings("") <= maps + 8);              /* malloc's own may grow; one a round would be 50 */
    emb_free(&first);
}

/* ---- a forked child may end what it inherited ---- */
static void forked_child(void **state)
{
    (void)state;
    char path[PATH_MAX];
    emb e;
    emb_job j = {0}, again = {0};
    relax_context *ctx;
    relax_executable *x;
    relax_vm *vm;
    relax_vm_options vo = RELAX_VM_OPTIONS_INIT;
    assert_true(emb_open(&e, emb_library(path, sizeof path)));
    assert_int_equal(emb_build(&e, &j, &ctx, &x), 0);
    assert_int_equal(emb_call(&e, x, &j), 0);
    vo.threads = 4;
    assert_int_equal(e.relax_vm_create(x, &vo, &vm), RELAX_OK);
    assert_int_equal(entries("/proc/self/task"), 2 + 4);                 /* "." and "..", this one and three */
    fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        alarm(20);                     /* a join of a thread that is not here would never end */
        e.relax_vm_destroy(vm);
        e.relax_executable_destroy(x);
        e.relax_context_destroy(ctx);
        _exit(dlclose(e.dl) == 0 ? 7 : 8);
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 7);
    again.threads = 3;
    assert_int_equal(emb_call(&e, x, &again), 0);                        /* the parent goes on */
    assert_memory_equal(again.result, j.result, sizeof j.result);
    e.relax_vm_destroy(vm);
    assert_int_equal(entries("/proc/self/task"), 2 + 1);
    e.relax_executable_destroy(x);
    e.relax_context_destroy(ctx);
    emb_close(&e);
    emb_free(&j);
}

/* ---- small stacks ---- */
typedef struct deep_job { const emb *e; emb_job job; relax_executable *x; int line; } deep_job;

static void *compile_small(void *p)
{
    deep_job *d = p;
    relax_context *ctx;
    d->line = emb_build(d->e, &d->job, &ctx, &d->x);
    if (d->line) return NULL;
    d->e->relax_executable_destroy(d->x);
    d->e->relax_context_destroy(ctx);
    return NULL;
}

static void *run_small(void *p)
{
    deep_job *d = p;
    relax_context *ctx;
    relax_executable *x;
    if (d->e->relax_context_create(NULL, &ctx) ||
        d->e->relax_executable_load_memory(ctx, d->job.bytes, d->job.size, 0, &x)) {
        d->line = __LINE__;
        return NULL;
    }
    d->line = emb_call(d->e, x, &d->job);
    d->e->relax_executable_destroy(x);
    d->e->relax_context_destroy(ctx);
    return NULL;
}

/* fn on a thread with a stack of so many KiB; returns how many of them were written to */
static size_t on_stack(size_t kib, void *(*fn)(void *), void *arg)
{
    enum { FRESH = 0x5A, GUARD = 65536 };
    size_t n = kib * 1024 * FRAMES_GROW, untouched = 0;
    pthread_attr_t a;
    pthread_t t;
    unsigned char *at = mmap(NULL, n + GUARD, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(at != MAP_FAILED);
    assert_int_equal(mprotect(at + GUARD, n, PROT_READ | PROT_WRITE), 0);
    memset(at + GUARD, FRESH, n);
    assert_int_equal(pthread_attr_init(&a), 0);
    assert_int_equal(pthread_attr_setstack(&a, at + GUARD, n), 0);
    assert_int_equal(pthread_create(&t, &a, fn, arg), 0);
    assert_int_equal(pthread_join(t, NULL), 0);
    pthread_attr_destroy(&a);
    while (untouched < n && at[GUARD + untouched] == FRESH) untouched++;
    munmap(at, n + GUARD);
    return (n - untouched) / 1024;
}

/* text that is nested as deeply as the parser allows, and far deeper: a status on a small stack too */
static char *nested(const char *open, const char *inner, const char *close, int levels)
{
    size_t n = strlen(open) + strlen(close);
    char *s = malloc(n * (size_t)levels + strlen(inner) + 1), *at = s;
    for (int i = 0; i < levels; i++) at = stpcpy(at, open);
    at = stpcpy(at, inner);
    for (int i = 0; i < levels; i++) at = stpcpy(at, close);
    return s;
}

/* what may be deep is verified, printed and built: a status or the result */
static void use_small(const emb *e, relax_context *ctx, relax_module *m)
{
    emb_job j = {0};
    relax_executable *x = NULL;
    e->relax_module_verify(m);
    e->relax_module_print(m, emb_write, &j);
    e->relax_build(m, e->relax_target_parse(ctx, "cpu"), NULL, &x);
    e->relax_executable_destroy(x);
    emb_free(&j);
}

static void *parse_small(void *p)
{
    static const struct { const char *before, *open, *inner, *close, *after; } rows[] = {
        {"fn f(x: Tensor((n, ", "(", "n", ")", "), f32)) {\n  return x\n}\n"},
        {"fn f(x: Tensor((n, ", "1 - (", "n", ")", "), f32)) {\n  return x\n}\n"},
        {"fn f(x: Tensor((n, ", "max(n, 3 - ", "n", ")", "), f32)) {\n  return x\n}\n"},
        {"fn f(x: Tensor((n, ", "n // 2 * ", "n", "", "), f32)) {\n  return x\n}\n"},
        {"fn f(x: Tensor((n,), f32)) where ", "not (", "n <= 5", ")", " {\n  return x\n}\n"},
        {"fn f(x: Tensor((n,), f32)) where ", "n % 7 <= 5 or ", "n <= 5", "", " {\n  return x\n}\n"},
        {"fn f(x: ", "Tuple(", "Object", ")", ") {\n  return x\n}\n"},
        {"fn f(x: ", "Callable((Object) -> ", "Object", ")", ") {\n  return x\n}\n"},
        {"fn f(x: Tensor((n,), f32), c: Tensor((), bool)) {\n", "  y = if c {\n", "",
         "  yield x\n  } else {\n  yield x\n}\n", "  return x\n}\n"},
        {"prim p(x: Buffer((n,), f32)) {\n", "if n > 3 {\n", "x[0] = x[0]\n", "}\n", "}\n"},
        {"prim p(x: Buffer((n,), f32)) {\n", "if n > 3 { x[0] = 1.0 } else ", "{ x[0] = 2.0 }", "", "}\n"},
        {"prim p(x: Buffer((n,), f32)) {\n for i in n {\n  x[i] = ", "exp(", "x[i]", ")", "\n }\n}\n"},
        {"prim p(x: Buffer((n,), f32)) {\n for i in n {\n  x[i] = ", "x[i] / ", "x[i]", "", "\n }\n}\n"},
        {"prim p(x: Buffer((n,), f32)) {\n for i in n {\n  x[i] = ", "x[i] * (", "x[i]", ")", "\n }\n}\n"},
        {"prim p(x: Buffer((n,), i64)) {\n for i in n {\n  x[i] = ", "x[", "i", "]", "\n }\n}\n"},
    };
    static const int depths[] = {2, 60, 120, 2000, 100000};              /* 128 is where the parser stops */
    deep_job *d = p;
    relax_context *ctx;
    if (d->e->relax_context_create(NULL, &ctx)) d->line = __LINE__;
    for (size_t r = 0; r < RX_COUNT(rows) && !d->line; r++)
        for (size_t k = 0; k < RX_COUNT(depths); k++) {
            int levels = depths[k];
            char *middle = nested(rows[r].open, rows[r].inner, rows[r].close, levels);
            char *text = malloc(strlen(middle) + 512);
            sprintf(text, "%s%s%s", rows[r].before, middle, rows[r].after);
            relax_module *m = d->e->relax_module_parse(ctx, "deep", text, RELAX_STRLEN);
            if (m && levels >= 120 && levels <= 2000) use_small(d->e, ctx, m);
            if (!m && levels <= 60) d->line = 1000 + (int)r;
            if (m && levels >= 2000 && *rows[r].close) d->line = 2000 + (int)r;
            d->e->relax_module_destroy(m);
            free(text);
            free(middle);
        }
    d->e->relax_context_destroy(ctx);
    return NULL;
}

static void small_stacks(void **state)
{
    (void)state;
    char path[PATH_MAX];
    emb e;
    deep_job d = {.e = &e};
    assert_true(emb_open(&e, emb_library(path, sizeof path)));
    /* LLVM's own frames are not there: with them it was three times as much */
    assert_true(on_stack(256, compile_small, &d) <= 40 * FRAMES_GROW);
    assert_int_equal(d.line, 0);
    d.job.threads = 2;
    on_stack(64, run_small, &d);
    assert_int_equal(d.line, 0);
    emb_job normal = {0};
    assert_int_equal(emb_run(&e, &normal), 0);
    emb_same(&normal, &d.job);
    on_stack(256, parse_small, &d);
    assert_int_equal(d.line, 0);
    emb_free(&normal);
    emb_free(&d.job);
    emb_close(&e);
}

/* ---- an allocator that watches its borders ---- */
enum { BORDER = 64 };
typedef struct guarded { size_t n, align; unsigned char *block; } guarded;
typedef struct guard { int64_t blocks, bad; } guard;

/* A block is: its record, BORDER bytes, the caller's n bytes at an address that is a multiple of align and of nothing
 * larger, BORDER bytes. Fresh memory is no zeros. */
static guarded *record_of(void *p)
{
    return (guarded *)(void *)((unsigned char *)p - BORDER - sizeof(guarded));
}

static bool borders_whole(const void *p, size_t n)
{
    const unsigned char *at = p;
    for (int i = 0; i < BORDER; i++)
        if (at[-1 - i] != 0xC3 || at[n + (size_t)i] != 0x3C) return false;
    return true;
}

static void *guard_alloc(void *self, void *p, size_t old_n, size_t n, size_t align)
{
    guard *g = self;
    unsigned char *q = NULL;
    if (p && (record_of(p)->n != old_n || !borders_whole(p, old_n))) g->bad++;
    if (n) {
        size_t a = align < 16 ? 16 : align, head = (sizeof(guarded) + BORDER + 2 * a - 1) / (2 * a) * (2 * a) + a;
        if (a & (a - 1)) g->bad++;
        unsigned char *block = aligned_alloc(2 * a, (head + n + BORDER + 2 * a - 1) / (2 * a) * (2 * a));
        if (!block) return NULL;
        q = block + head;
        memset(q - BORDER, 0xC3, BORDER);
        memset(q, 0xA5, n);
        memset(q + n, 0x3C, BORDER);
        guarded r = {n, align, block};
        memcpy(record_of(q), &r, sizeof r);
        g->blocks++;
        if (p) memcpy(q, p, old_n < n ? old_n : n);
    }
    if (p) {
        unsigned char *block = record_of(p)->block;
        memset(p, 0xD7, old_n);        /* what is read after it was given back shows */
        free(block);
        g->blocks--;
    }
    return q;
}

static void borders(void **state)
{
    (void)state;
    char path[PATH_MAX];
    emb e;
    guard g = {0};
    relax_context_options o = RELAX_CONTEXT_OPTIONS_INIT;
    o.alloc = guard_alloc;
    o.alloc_self = &g;
    /* it sees what it shall see */
    unsigned char *p = guard_alloc(&g, NULL, 0, 5, 16);
    p[5] = 1;
    guard_alloc(&g, p, 5, 0, 16);
    p = guard_alloc(&g, NULL, 0, 5, 64);
    assert_int_equal((uintptr_t)p % 128, 64);
    guard_alloc(&g, p, 6, 0, 64);
    assert_int_equal(g.bad, 2);
    g.bad = 0;
    assert_true(emb_open(&e, emb_library(path, sizeof path)));
    emb_job plain = {0}, j = {.options = &o, .threads = 2, .calls = 5};
    assert_int_equal(emb_run(&e, &plain), 0);
    assert_int_equal(emb_run(&e, &j), 0);
    emb_same(&plain, &j);
    assert_int_equal(g.bad, 0);
    assert_int_equal(g.blocks, 0);
    emb_free(&plain);
    emb_free(&j);
    emb_close(&e);
}

/* ---- everything but the context may end in any order ---- */
static void any_order(void **state)
{
    (void)state;
    char path[PATH_MAX];
    emb e;
    assert_true(emb_open(&e, emb_library(path, sizeof path)));
    for (int order = 0; order < 120; order++) {
        guard g = {0};
        relax_context_options o = RELAX_CONTEXT_OPTIONS_INIT;
        relax_context *ctx;
        relax_executable *x;
        relax_vm *vm;
        relax_any arg = {0}, r = {0};
        DLTensor t;
        o.alloc = guard_alloc;
        o.alloc_self = &g;
        assert_int_equal(e.relax_context_create(&o, &ctx), RELAX_OK);
        relax_module *m = e.relax_module_parse(ctx, "m", "fn f(x: Tensor((n,), f32)) -> Tensor((n,), f32) {\n"
                                               "  y = reshape(x, shape(n))\n  return y\n}\n", RELAX_STRLEN);
        assert_non_null(m);
        relax_target *target = e.relax_target_parse(ctx, "null");       /* reshape needs no kernel */
        assert_int_equal(e.relax_build(m, target, NULL, &x), RELAX_OK);
        assert_int_equal(e.relax_vm_create(x, NULL, &vm), RELAX_OK);
        assert_int_equal(e.relax_tensor_create(ctx, RELAX_F32, (int64_t[]){2}, 1, &arg), RELAX_OK);
        assert_int_equal(e.relax_vm_invoke(vm, "f", &arg, 1, &r), RELAX_OK);
        int left[] = {0, 1, 2, 3, 4}, k = order;                         /* the permutation with this number */
        for (int n = 5; n; k /= n, n--) {
            int pick = k % n, what = left[pick];
            left[pick] = left[n - 1];
            if (what == 0) e.relax_module_destroy(m);
            if (what == 1) e.relax_executable_destroy(x);
            if (what == 2) e.relax_vm_destroy(vm);
            if (what == 3) e.relax_any_release(&arg);
            if (what == 4) {
                assert_int_equal(e.relax_any_dltensor(&r, &t), RELAX_OK);
                assert_true(((float *)t.data)[0] == 0 && ((float *)t.data)[1] == 0);
                e.relax_any_release(&r);
            }
        }
        e.relax_context_destroy(ctx);
        assert_int_equal(g.bad, 0);
        assert_int_equal(g.blocks, 0);
    }
    emb_close(&e);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_copies), cmocka_unit_test(load_and_unload), cmocka_unit_test(forked_child),
        cmocka_unit_test(small_stacks), cmocka_unit_test(borders), cmocka_unit_test(any_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
