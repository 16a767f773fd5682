/* mlp.c: build a graph with symbolic shapes, compile it, save it, and run the file for several n.
 *
 *     cc mlp.c $(pkg-config --cflags --libs relax) && ./a.out */
#include <relax.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int report(relax_context *ctx)
{
    fprintf(stderr, "%s\n", relax_last_error(ctx));
    return 1;
}

static relax_module *make(relax_context *ctx)
{
    relax_module *mod = relax_module_create(ctx);
    relax_builder *b = relax_function_begin(mod, "mlp");          /* errors stick to b: no check needed until finish */

    relax_value *x = relax_param(b, "x", "Tensor((n, 256), f32)");      /* first mention of n defines it */
    relax_value *w1 = relax_param(b, "w1", "Tensor((256, 1024), f32)");
    relax_value *w2 = relax_param(b, "w2", "Tensor((1024, 256), f32)");
    relax_bound(b, "n", 1, 4096);                                       /* optional facts on symbols */

    relax_value *h = relax_silu(b, relax_matmul(b, x, w1));
    relax_value *y = relax_add(b, relax_matmul(b, h, w2), x);           /* deduced: Tensor((n, 256), f32) */
    if (relax_function_finish(b, y) == RELAX_OK) return mod;
    relax_module_destroy(mod);
    return NULL;
}

static int build(relax_context *ctx, const char *path)
{
    relax_module *mod = make(ctx);
    relax_target *cpu = relax_target_parse(ctx, "cpu");
    relax_executable *exe = NULL;
    int64_t bytes = 0;
    if (!mod || relax_build(mod, cpu, NULL, &exe) || relax_executable_save(exe, path)) return report(ctx);
    if (relax_executable_peak_memory(exe, "mlp", (relax_sym_value[]){ { "n", 2048 } }, 1, &bytes)) return report(ctx);
    printf("peak memory at n = 2048: %lld bytes\n", (long long)bytes);
    relax_executable_destroy(exe);
    relax_module_destroy(mod);
    return 0;
}

/* a tensor of the host, as DLPack sees it; every element is v */
static DLManagedTensorVersioned *tensor(int64_t rows, int64_t cols, float v)
{
    DLManagedTensorVersioned *t = calloc(1, sizeof *t + 2 * sizeof(int64_t));
    float *data = malloc((size_t)(rows * cols) * sizeof *data + 1);
    int64_t *shape = (int64_t *)(t + 1);
    for (int64_t i = 0; i < rows * cols; i++) data[i] = v;
    shape[0] = rows;
    shape[1] = cols;
    t->version = (DLPackVersion){ 1, 0 };
    t->dl_tensor = (DLTensor){ .data = data, .device = { kDLCPU, 0 }, .ndim = 2, .dtype = { kDLFloat, 32, 1 } };
    t->dl_tensor.shape = shape;
    return t;
}

static void drop(DLManagedTensorVersioned *t)
{
    free(t->dl_tensor.data);
    free(t);
}

static int run(relax_context *ctx, const char *path)
{
    relax_executable *exe = NULL;                                        /* untrusted bytes: verified or refused */
    relax_vm *vm = NULL;                                                 /* one VM a thread, one executable for all */
    if (relax_executable_load_file(ctx, path, &exe) || relax_vm_create(exe, NULL, &vm)) return report(ctx);
    DLManagedTensorVersioned *args[3] = { NULL, tensor(256, 1024, 0.01f), tensor(1024, 256, 0.01f) };
    for (int64_t n = 1; n <= 100; n = n * 3 + 1) {
        DLManagedTensorVersioned *out = NULL;
        args[0] = tensor(n, 256, 1.0f);
        if (relax_vm_call(vm, "mlp", args, 3, &out)) return report(ctx);
        double sum = 0;
        for (int i = 0; i < 256; i++) sum += ((float *)out->dl_tensor.data)[i];
        printf("n = %lld: %lld x %lld, sum of the first row %.3f\n", (long long)n, (long long)out->dl_tensor.shape[0],
               (long long)out->dl_tensor.shape[1], sum);
        out->deleter(out);
        drop(args[0]);
    }
    args[0] = tensor(3, 255, 1.0f);                                      /* a wrong shape is a status */
    DLManagedTensorVersioned *out = NULL;
    if (relax_vm_call(vm, "mlp", args, 3, &out) == RELAX_OK) return 1;
    printf("%s\n", relax_last_error(ctx));
    for (int i = 0; i < 3; i++) drop(args[i]);
    relax_vm_destroy(vm);
    relax_executable_destroy(exe);
    return 0;
}

int main(void)
{
    relax_context *ctx = NULL;
    if (relax_context_create(NULL, &ctx)) return 1;                /* NULL options: defaults, quiet, system allocator */
    char path[] = "mlp.rlx";
    int code = build(ctx, path) || run(ctx, path);
    relax_context_destroy(ctx);
    remove(path);
    return code;
}
