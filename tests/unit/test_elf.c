/* test_elf.c: objects of the C compiler through the ELF writer: run what must work, name what must not, survive damage.
 */
#include "testlib.h"

#include "codegen/codegen.h"
#include "pkg/kernel.h"

#include <unistd.h>

static char folder[] = "/tmp/relax-elf-XXXXXX";
static const char *const program =
    "#include <stdint.h>\n"
    "typedef struct { void *const *bufs; const int64_t *syms; int32_t *err; int64_t part, nparts; void *scratch; } "
    "args;\n"
    "static int add(int a) { return a + 1; } static int twice(int a) { return a * 2; } static int neg(int a) { return "
    "-a; }\n"
    "static int (*const table[])(int) = {add, twice, neg};\n" /* .data.rel.ro */
    "static int (*volatile changed)(int) = neg;\n"            /* .data with an address */
    "static const char *volatile words[3] = {\"zero\", \"one\", \"two\"};\n"
    "int visible = 40; int zeroed[100]; static double other[33] = {1.5, 2.5};\n" /* through the GOT */
    "__attribute__((noinline)) int pick(int k, int v) { return table[k](v); }\n"
    "__attribute__((noinline)) static const char *name(int k) {\n"
    "  switch (k) { case 0: return \"a\"; case 1: return \"bb\"; case 2: return \"ccc\"; case 3: return \"dddd\"; case "
    "4: return \"e\"; case 5: return \"ffffff\"; }\n"
    "  return \"none\"; }\n"
    "void first(const args *a) { int32_t *o = a->bufs[0]; for (int k = 0; k < 3; k++) o[k] = pick(k, "
    "(int)a->syms[0]);\n"
    "  o[3] = changed(5); visible += 2; o[4] = visible; zeroed[99] += 7; o[5] = zeroed[99]; o[6] = words[2][1]; }\n"
    "void second(const args *a) { int32_t *o = a->bufs[0]; const char *s = name((int)a->syms[0]); int n = 0; while "
    "(s[n]) n++;\n"
    "  o[0] = n; o[1] = (int32_t)(other[1] * 2); }\n";

typedef struct object { relax_context *ctx; tl_heap heap; rx_arena a; rx_file file; } object;

static bool build(const char *compiler, const char *flags, const char *text, object *o)
{
    char cmd[1024], path[128];
    snprintf(path, sizeof path, "%s/x.c", folder);
    assert_int_equal(rx_file_write(path, text, strlen(text)), 0);
    snprintf(cmd, sizeof cmd, "%s %s -fno-builtin -w -c %s -o %s/x.o 2>/dev/null", compiler, flags, path, folder);
    if (system(cmd) != 0) return false;
    snprintf(path, sizeof path, "%s/x.o", folder);
    assert_int_equal(rx_file_map(path, &o->file), 0);
    o->ctx = tl_context(&o->heap);
    rx_arena_init(&o->a, &o->ctx->heap);
    return true;
}

static void drop(object *o)
{
    rx_file_unmap(&o->file);
    rx_arena_free(&o->a);
    tl_done(&o->heap, o->ctx);
}

static const char *const names[] = {"first", "second"};

static void run_entries(const rx_kernel_fn *f)
{
    int32_t out[8] = {0}, err = 0;
    int64_t sym = 21;
    void *bufs[1] = {out};
    rx_kernel_args a = {bufs, &sym, &err, 0, 1, NULL};
    f[0](&a);
    assert_true(out[0] == 22 && out[1] == 42 && out[2] == -21 && out[3] == -5 && out[4] == 42 && out[5] == 7 &&
                out[6] == 'w');
    f[0](&a);
    assert_true(out[4] == 44 && out[5] == 14);
    sym = 5;
    f[1](&a);
    assert_true(out[0] == 6 && out[1] == 5);
    sym = 77;
    f[1](&a);
    assert_int_equal(out[0], 4);
}

static void no_complaints(const uint8_t *so, size_t n)
{
    char cmd[512], path[128];
    snprintf(path, sizeof path, "%s/x.so", folder);
    assert_int_equal(rx_file_write(path, so, n), 0);
    if (system("readelf --version >/dev/null 2>&1") != 0) return;
    snprintf(cmd, sizeof cmd, "! readelf -aW %s 2>&1 | grep -E 'rror|arning'", path);
    assert_int_equal(system(cmd), 0);
    snprintf(cmd, sizeof cmd, "test \"$(readelf -Ws --dyn-syms %s | grep -c UND)\" -le 2", path); /* the null symbols */
    assert_int_equal(system(cmd), 0);
}

static void links_and_runs(const char *compiler, const char *flags)
{
    object o;
    uint8_t *so = NULL, *again = NULL;
    size_t n = 0, m = 0;
    char err[256];
    if (!build(compiler, flags, program, &o)) return;
    TL_TRY(o.ctx) {
        rx_elf_link(o.ctx, &o.a, o.file.at, o.file.size, names, 2, &so, &n);
        rx_elf_link(o.ctx, &o.a, o.file.at, o.file.size, names, 2, &again, &m);
    } TL_END(o.ctx)
    assert_int_equal(n, m);
    assert_memory_equal(so, again, n);
    no_complaints(so, n);
    int fd = rx_mem_fd("test", so, n);
    assert_true(fd >= 0);
    void *dl = rx_dl_open_fd(fd, err, sizeof err);
    close(fd);
    if (!dl) fail_msg("%s %s: %s", compiler, flags, err);
    run_entries((const rx_kernel_fn *)rx_dl_sym(dl, "rx_entries"));
    assert_null(rx_dl_sym(dl, "first"));
    rx_dl_close(dl);
    drop(&o);
}

static void test_run(void **state)
{
    static const char *const flags[] = {"-O0 -fPIC", "-O1 -fPIC", "-O2 -fPIC -fcommon", "-O3 -fPIC -fvisibility=hidden",
        "-O2 -fPIC -ffunction-sections -fdata-sections", "-Os -fpie", "-O2 -fPIC -g"};
    (void)state;
    if (system("cc --version >/dev/null 2>&1") != 0) skip();
    for (uint32_t i = 0; i < RX_COUNT(flags); i++) {
        links_and_runs("gcc", flags[i]);
        links_and_runs("clang", flags[i]);
    }
}

/* the same program for aarch64, run under an emulator: second(args) only reads, first(args) uses every kind of address
 */
static void test_aarch64(void **state)
{
    static const char *const flags[] = {"-O0 -fPIC", "-O2 -fPIC", "-O2 -fPIC -fcommon",
                                        "-O2 -fpie -fvisibility=hidden"};
    char cmd[512], path[128];
    object o;
    uint8_t *so = NULL;
    size_t n = 0;
    (void)state;
    if (system("aarch64-linux-gnu-gcc --version >/dev/null 2>&1 && qemu-aarch64 --version >/dev/null 2>&1") != 0)
        skip();
    snprintf(cmd, sizeof cmd,
             "aarch64-linux-gnu-gcc -std=c17 -D_GNU_SOURCE -O1 -Isrc tests/unit/cross/run_kernels.c -o %s/run -ldl",
             folder);
    assert_int_equal(system(cmd), 0);
    for (uint32_t i = 0; i < RX_COUNT(flags); i++) {
        assert_true(build("aarch64-linux-gnu-gcc", flags[i], program, &o));
        TL_TRY(o.ctx) {
            rx_elf_link(o.ctx, &o.a, o.file.at, o.file.size, names, 2, &so, &n);
        } TL_END(o.ctx)
        no_complaints(so, n);
        struct { uint32_t count, head[4]; uint8_t parallel; } job = {1, {0, 1, 1, 1}, 0};
        uint8_t bytes[21 + 8 + 8 + 32] = {0};
        int64_t sym = 21, size = 32;
        memcpy(bytes, &job, 21);
        memcpy(bytes + 21, &sym, 8);
        memcpy(bytes + 29, &size, 8);
        snprintf(path, sizeof path, "%s/jobs", folder);
        assert_int_equal(rx_file_write(path, bytes, sizeof bytes), 0);
        snprintf(cmd, sizeof cmd, "qemu-aarch64 -L /usr/aarch64-linux-gnu %s/run %s/x.so %s/jobs %s/results", folder,
                 folder, folder, folder);
        assert_int_equal(system(cmd), 0);
        rx_file r;
        int32_t out[9];
        snprintf(path, sizeof path, "%s/results", folder);
        assert_int_equal(rx_file_map(path, &r), 0);
        assert_int_equal(r.size, sizeof out);
        memcpy(out, r.at, sizeof out);
        assert_true(out[1] == 22 && out[2] == 42 && out[3] == -21 && out[4] == -5 && out[5] == 42 && out[6] == 7 &&
                    out[7] == 'w');
        rx_file_unmap(&r);
        drop(&o);
    }
}

/* ---- what must be refused ---- */
typedef struct refused { const char *flags, *text, *entry, *says; } refused;
static const refused refusals[] = {
    {"-O1 -fPIC", "double exp(double); double f(double x) { return exp(x) + 1; }", "f", "exp"},
    {"-O1 -fPIC", "extern int a; double exp(double); int f(void) { return a + (int)exp(a); }", "f", ", "},
    {"-O1 -fPIC", "_Thread_local int t; int f(void) { return t++; }", "f", "thread-local"},
    {"-O1 -fPIC", "int f(void) { return 1; } int x; __attribute__((constructor)) static void g(void) { x = 1; }", "f",
     "constructor"},
    {"-O1 -fPIC", "int f(void) { return 1; }", "g", "'g'"},
    {"-O1 -fPIC", "int g; int f(void) { return g; }", "g", "'g'"},
    {"-O1 -fno-pic -no-pie -mcmodel=small", "int g[100]; int f(int i) { return g[i]; }", "f", "position-independent"},
};

static void test_refusals(void **state)
{
    (void)state;
    if (system("cc --version >/dev/null 2>&1") != 0 || rx_host_arch() != RX_ARCH_X86_64) skip();
    for (uint32_t i = 0; i < RX_COUNT(refusals); i++) {
        object o;
        uint8_t *so;
        size_t n;
        volatile bool done = false;
        rx_frame f;
        assert_true(build("cc", refusals[i].flags, refusals[i].text, &o));
        if (RX_ENTER(&o.ctx->heap, &f)) {
            rx_elf_link(o.ctx, &o.a, o.file.at, o.file.size, &refusals[i].entry, 1, &so, &n);
            done = true;
            rx_leave(&o.ctx->heap, &f);
        }
        if (done) fail_msg("not refused: %s", refusals[i].text);
        assert_int_equal(tl_last_error(o.ctx), RXE_CODEGEN);
        const char *text = rx_diag_at(o.ctx, rx_diag_count(o.ctx) - 1)->message;
        if (!strstr(text, refusals[i].says)) fail_msg("'%s' does not say '%s'", text, refusals[i].says);
        drop(&o);
    }
}

/* ---- damage: any bytes give a result or an error ---- */
static void try_bytes(object *o, const uint8_t *p, size_t n)
{
    rx_frame f;
    uint8_t *so;
    size_t size;
    if (RX_ENTER(&o->ctx->heap, &f)) {
        rx_elf_link(o->ctx, rx_scratch(&o->ctx->heap), p, n, names, 2, &so, &size);
        rx_leave(&o->ctx->heap, &f);
    } else {
        assert_true(rx_diag_count(o->ctx) > 0);
        rx_diag_clear(o->ctx);
    }
}

static void test_damage(void **state)
{
    object o;
    uint64_t seed = 7;
    (void)state;
    if (system("cc --version >/dev/null 2>&1") != 0 || !build("cc", "-O1 -fPIC", program, &o)) skip();
    size_t n = o.file.size;
    for (size_t cut = 0; cut < n; cut += 1 + cut / 97) {
        uint8_t *p = malloc(cut ? cut : 1);              /* its own block, so that reading past the end shows */
        memcpy(p, o.file.at, cut);
        try_bytes(&o, p, cut);
        free(p);
    }
    uint8_t *p = malloc(n);
    for (uint32_t i = 0; i < 20000; i++) {
        memcpy(p, o.file.at, n);
        uint64_t shoff;
        memcpy(&shoff, p + 40, 8);
        for (uint32_t k = 0; k <= i % 3; k++) {
            seed = seed * 6364136223846793005ull + 1442695040888963407ull;
            size_t at = (size_t)(seed >> 33) % n;
            if (i % 2) at = (size_t)shoff + (size_t)(seed >> 33) % (n - (size_t)shoff);      /* section headers */
            if (i % 8 == 2) at = (size_t)(seed >> 33) % 64;
            p[at] = i % 5 ? (uint8_t)(seed >> 20) : (uint8_t)(0xFF << (seed >> 60));
        }
        try_bytes(&o, p, n);
    }
    free(p);
    drop(&o);
}

static void test_memory(void **state)
{
    object o;
    (void)state;
    if (system("cc --version >/dev/null 2>&1") != 0 || !build("cc", "-O1 -fPIC", program, &o)) skip();
    for (int64_t k = 1; k < 200; k++) {
        tl_fail(&o.heap, k, false);
        try_bytes(&o, o.file.at, o.file.size);
    }
    tl_fail(&o.heap, 0, false);
    drop(&o);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_run),    cmocka_unit_test(test_aarch64), cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_damage), cmocka_unit_test(test_memory),
    };
    char cmd[64];
    if (!mkdtemp(folder)) return 1;
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    snprintf(cmd, sizeof cmd, "rm -r %s", folder);
    return failed + (system(cmd) != 0);
}
