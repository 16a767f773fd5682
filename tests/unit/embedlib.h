/* embedlib.h: librelax as a host that knows nothing of its insides: the shared library opened at run time, its
 * functions by name, and one model that is built and run with them. Include after testlib.h.
 *
 *     emb e; assert_true(emb_open(&e, path));  emb_job j = {0}; assert_int_equal(emb_run(&e, &j), 0); emb_close(&e); */
#ifndef EMBEDLIB_H
#define EMBEDLIB_H
#include "relax.h"

#include <dlfcn.h>
#include <limits.h>
#include <unistd.h>

/* the functions that the tests use, each with the type that relax.h gives it */
#define EMB_FUNCTIONS(F)                                                                                              \
    F(relax_context_create) F(relax_context_destroy) F(relax_last_error) F(relax_diagnostic_count)                    \
    F(relax_module_parse) F(relax_module_print) F(relax_module_verify) F(relax_module_destroy)                        \
    F(relax_target_parse) F(relax_build)                                                                              \
    F(relax_executable_bytes) F(relax_executable_text) F(relax_executable_destroy)                                    \
    F(relax_executable_load_memory) F(relax_vm_create) F(relax_vm_destroy) F(relax_vm_invoke)                         \
    F(relax_tensor_create) F(relax_any_dltensor) F(relax_any_release)

typedef struct emb {
    void *dl;
#define EMB_FIELD(f) __typeof__(&f) f;
    EMB_FUNCTIONS(EMB_FIELD)
#undef EMB_FIELD
} emb;

/* librelax.so of the build that this test belongs to: ../lib from the folder of the program */
TL_UNUSED static const char *emb_library(char *buf, size_t n)
{
    char self[PATH_MAX];
    ssize_t k = readlink("/proc/self/exe", self, sizeof self - 1);
    assert_true(k > 0);
    self[k] = 0;
    *strrchr(self, '/') = 0;
    assert_true((size_t)snprintf(buf, n, "%s/../lib/librelax.so", self) < n);
    return buf;
}

TL_UNUSED static bool emb_open(emb *e, const char *path)
{
    memset(e, 0, sizeof *e);
    e->dl = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!e->dl) {
        print_error("%s\n", dlerror());
        return false;
    }
#define EMB_LOAD(f) *(void **)(void *)&e->f = dlsym(e->dl, #f); if (!e->f) return false;
    EMB_FUNCTIONS(EMB_LOAD)
#undef EMB_LOAD
    return true;
}

TL_UNUSED static void emb_close(emb *e)
{
    assert_int_equal(dlclose(e->dl), 0);
    memset(e, 0, sizeof *e);
}

/* floats of every kind in the text, a matmul, a reduction, a gather, a constant that is folded */
static const char emb_model[] =
    "fn f(x: Tensor((n, 8), f32), i: Tensor((k,), i64)) -> Tensor((k, 8), f32) where n <= 512 {\n"
    "  w = multiply(const(f32, (8,), [1.5, -2.25, 0.1, 1e-30, 3e8, -0.0, 7.0, 0.333]), const(f32, (1,), [2.5]))\n"
    "  a = multiply(x, w)\n"
    "  t = permute_dims(x, axes=[1, 0])\n"
    "  b = matmul(a, t)\n"
    "  s = softmax(b, axis=-1)\n"
    "  p = matmul(s, x)\n"
    "  c = clip(p, min=-1.25, max=1234.5)\n"
    "  y = take(c, i, axis=0)\n"
    "  return y\n"
    "}\n";

/* one build and its runs; what came out */
typedef struct emb_job {
    const relax_context_options *options;  /* NULL: none */
    int32_t threads;                       /* of the VM; 0 is taken as 1 */
    int32_t calls;                         /* of the function; 0 is taken as 1 */
    void *bytes; size_t size;              /* the executable; freed by emb_free */
    char *text; size_t ntext;              /* the module and the executable as text */
    float result[2 * 8];
} emb_job;

static int32_t emb_write(void *user, const char *text, size_t n)
{
    emb_job *j = user;
    j->text = realloc(j->text, j->ntext + n + 1);
    memcpy(j->text + j->ntext, text, n);
    j->text[j->ntext += n] = 0;
    return 0;
}

TL_UNUSED static void emb_free(emb_job *j)
{
    free(j->bytes);
    free(j->text);
    j->bytes = j->text = NULL;
    j->size = j->ntext = 0;
}

/* the VM's half, over an executable: fills result; the line that failed, 0: none */
TL_UNUSED static int emb_call(const emb *e, relax_executable *x, emb_job *j)
{
    enum { ROWS = 40 };
    relax_context *ctx = NULL;
    relax_vm *vm = NULL;
    relax_any args[2] = {{0}}, r = {0};
    DLTensor t;
    relax_vm_options vo = RELAX_VM_OPTIONS_INIT;
    vo.threads = j->threads ? j->threads : 1;
    if (e->relax_context_create(j->options, &ctx)) return __LINE__;
    vo.context = ctx;
    if (e->relax_vm_create(x, &vo, &vm)) return __LINE__;
    if (e->relax_tensor_create(ctx, RELAX_F32, (int64_t[]){ROWS, 8}, 2, &args[0])) return __LINE__;
    if (e->relax_tensor_create(ctx, RELAX_I64, (int64_t[]){2}, 1, &args[1])) return __LINE__;
    if (e->relax_any_dltensor(&args[0], &t)) return __LINE__;
    for (int k = 0; k < ROWS * 8; k++) ((float *)t.data)[k] = (float)(k % 13 - 6) * 0.125f;
    if (e->relax_any_dltensor(&args[1], &t)) return __LINE__;
    ((int64_t *)t.data)[0] = 3;
    ((int64_t *)t.data)[1] = ROWS - 1;
    for (int32_t k = 0; k < (j->calls ? j->calls : 1); k++) {
        e->relax_any_release(&r);
        if (e->relax_vm_invoke(vm, "f", args, 2, &r)) return __LINE__;
    }
    if (e->relax_any_dltensor(&r, &t)) return __LINE__;
    memcpy(j->result, t.data, sizeof j->result);
    e->relax_any_release(&r);
    e->relax_any_release(&args[0]);
    e->relax_any_release(&args[1]);
    e->relax_vm_destroy(vm);
    e->relax_context_destroy(ctx);
    return 0;
}

/* builds the model and keeps bytes and text; *x and *ctx are the caller's */
TL_UNUSED static int emb_build(const emb *e, emb_job *j, relax_context **ctx, relax_executable **x)
{
    char text[4096];
    const void *bytes;
    if (e->relax_context_create(j->options, ctx)) return __LINE__;
    relax_module *m = e->relax_module_parse(*ctx, "model", emb_model, RELAX_STRLEN);
    if (!m) {
        print_error("%s\n", e->relax_last_error(*ctx));
        return __LINE__;
    }
    if (e->relax_module_print(m, emb_write, j)) return __LINE__;
    if (e->relax_build(m, e->relax_target_parse(*ctx, "cpu"), NULL, x)) {
        print_error("%s\n", e->relax_last_error(*ctx));
        return __LINE__;
    }
    e->relax_module_destroy(m);
    size_t n = e->relax_executable_text(*x, 0, text, sizeof text);
    emb_write(j, text, n < sizeof text ? n : sizeof text - 1);
    if (e->relax_executable_bytes(*x, &bytes, &j->size)) return __LINE__;
    j->bytes = malloc(j->size);
    memcpy(j->bytes, bytes, j->size);
    return 0;
}

TL_UNUSED static int emb_run(const emb *e, emb_job *j)
{
    relax_context *ctx = NULL;
    relax_executable *x = NULL;
    int line = emb_build(e, j, &ctx, &x);
    if (!line) line = emb_call(e, x, j);
    if (line) return line;
    e->relax_executable_destroy(x);
    e->relax_context_destroy(ctx);
    return 0;
}

TL_UNUSED static void emb_same(const emb_job *a, const emb_job *b)
{
    assert_int_equal(a->size, b->size);
    assert_memory_equal(a->bytes, b->bytes, a->size);
    assert_string_equal(a->text, b->text);
    assert_memory_equal(a->result, b->result, sizeof a->result);
}
#endif
