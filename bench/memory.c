/* memory.c: growth of memory over calls with random shapes, for bench/run. memory [CALLS [SEED]], default 1,000 calls.
 *
 * One executable of a two-layer network with a softmax, its rows n declared as 1 … 2048. Calls with n drawn at random,
 * the result made by the library and freed each time; prints the private memory of the process and what the VM holds
 * along the way. A twin that counts allocations is a unit test (tests/unit/test_steady.c). */
#include <relax.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROWS 2048
#define WIDTH 256

static long private_kib(void)
{
    long kib = 0;
    char line[256];
    FILE *f = fopen("/proc/self/status", "r");
    while (f && fgets(line, sizeof line, f))
        if (sscanf(line, "RssAnon: %ld", &kib) == 1)
            break;
    if (f)
        fclose(f);
    return kib;
}

static relax_executable *network(relax_context *ctx)
{
    relax_executable *e = NULL;
    relax_module *m = relax_module_create(ctx);
    relax_builder *b = relax_function_begin(m, "net");
    relax_value *x = relax_param(b, "x", "Tensor((n, 256), f32)"), *w = relax_param(b, "w", "Tensor((256, 256), f32)");
    relax_bound(b, "n", 1, ROWS);
    relax_value *h = relax_silu(b, relax_matmul(b, x, w));
    relax_value *y = relax_softmax(b, relax_add(b, relax_matmul(b, h, w), x), -1);
    relax_target *cpu = relax_target_parse(ctx, "cpu");
    if (!relax_function_finish(b, y) && cpu && relax_build(m, cpu, NULL, &e))
        e = NULL;
    relax_module_destroy(m);
    return e;
}

static relax_status call(relax_context *ctx, relax_vm *vm, relax_any x, int64_t n, relax_any w, double *sum)
{
    DLTensor view;
    relax_any part, result = { 0 };
    relax_status s = relax_any_dltensor(&x, &view);
    int64_t dims[2] = { n, WIDTH };
    s = s ? s : relax_tensor_create(ctx, RELAX_F32, dims, 2, &part);
    if (s)
        return s;
    DLTensor to;
    relax_any_dltensor(&part, &to);
    memcpy(to.data, view.data, (size_t)n * WIDTH * sizeof(float));
    relax_any args[] = { part, w };
    s = relax_vm_invoke(vm, "net", args, 2, &result);
    if (!s) {
        relax_any_dltensor(&result, &view);
        for (int64_t i = 0; i < view.shape[0] * WIDTH; i++)
            *sum += (double)((const float *)view.data)[i];
    }
    relax_any_release(&result);
    relax_any_release(&part);
    return s;
}

static bool filled(relax_context *ctx, int64_t rows, int period, float scale, relax_any *out)
{
    DLTensor t;
    if (relax_tensor_create(ctx, RELAX_F32, (int64_t[]){ rows, WIDTH }, 2, out))
        return false;
    relax_any_dltensor(out, &t);
    for (int64_t i = 0; i < rows * WIDTH; i++)
        ((float *)t.data)[i] = ((float)(i % period) / (float)period - 0.5f) * scale;
    return true;
}

static bool run(relax_context *ctx, relax_vm *vm, int calls, uint64_t seed)
{
    relax_any x, w;
    int64_t rows = 0;
    if (!filled(ctx, ROWS, 97, 1, &x) || !filled(ctx, WIDTH, 89, 0.1f, &w))
        return false;
    for (int i = 0; i < calls; i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        int64_t n = i == 0 ? ROWS : i == 1 ? 1 : (int64_t)(seed >> 33) % ROWS + 1;
        double sum = 0;
        if (call(ctx, vm, x, n, w, &sum) || fabs(sum - (double)n) > 1e-3 * (double)n) {
            fprintf(stderr, "memory: call %d with n = %lld: sum %g\n", i, (long long)n, sum);
            return false;
        }
        rows += n;
        if (i == 9 || i + 1 == calls || (calls >= 4 && (i + 1) % (calls / 4) == 0)) {
            size_t held = 0, arena = 0;
            relax_vm_memory(vm, &held, &arena);
            printf("call %5d, %8lld rows so far: private memory %ld KiB, VM %zu KiB, largest arena %zu KiB\n", i + 1,
                   (long long)rows, private_kib(), held >> 10, arena >> 10);
        }
    }
    relax_any_release(&x);
    relax_any_release(&w);
    return true;
}

int main(int argc, char **argv)
{
    relax_context *ctx;
    relax_vm *vm;
    if (relax_context_create(NULL, &ctx))
        return 1;
    relax_executable *e = network(ctx);
    bool ok = e && !relax_vm_create(e, NULL, &vm);
    if (ok) {
        ok = run(ctx, vm, argc > 1 ? atoi(argv[1]) : 1000, argc > 2 ? strtoull(argv[2], NULL, 10) : 1);
        relax_vm_destroy(vm);
    }
    if (!ok)
        fprintf(stderr, "memory: %s\n", relax_last_error(ctx));
    relax_executable_destroy(e);
    relax_context_destroy(ctx);
    return !ok;
}
