/* probe.c: what the machine gives at this moment, for bench/run: probe THREADS prints one JSON line.
 *
 * read_gb_s: threads read 128 MiB each, from four places in turn. fma_gflop_s: ten chains of fused multiply-adds in
 * registers. A shared machine changes by a factor of two between minutes: figures without a probe beside them say
 * little. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define BYTES ((size_t)128 << 20)
#define STEPS 8000000
#define CHAINS 10

typedef float v8 __attribute__((vector_size(32)));
typedef long long q4 __attribute__((vector_size(32)));
typedef struct task { const char *data; double read_s, fma_s; float out; } task;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void *work(void *arg)
{
    task *t = arg;
    const q4 *p = (const q4 *)t->data;
    size_t quarter = BYTES / sizeof *p / 4;
    q4 sum[4] = { { 0 } };
    double start = now();
    for (size_t i = 0; i < quarter; i++)
        for (size_t k = 0; k < 4; k++)
            sum[k] ^= p[k * quarter + i];
    t->read_s = now() - start;
    v8 acc[CHAINS], a, b;
    for (int k = 0; k < 8; k++) {
        a[k] = 0.999f;
        b[k] = 0.001f * (float)(sum[0][0] + sum[1][1] + sum[2][2] + sum[3][3] + k);
    }
    for (int i = 0; i < CHAINS; i++)
        acc[i] = b;
    start = now();
    for (int s = 0; s < STEPS; s++)
        for (int i = 0; i < CHAINS; i++)
            acc[i] = acc[i] * a + b;
    t->fma_s = now() - start;
    for (int i = 0; i < CHAINS; i++)
        t->out += acc[i][i % 8];
    return NULL;
}

int main(int argc, char **argv)
{
    int n = argc > 1 ? atoi(argv[1]) : 1;
    if (n < 1 || n > 256)
        return 2;
    task *t = calloc((size_t)n, sizeof *t);
    pthread_t *id = calloc((size_t)n, sizeof *id);
    double read = 0, fma = 0, out = 0;
    for (int i = 0; i < n; i++) {
        char *data = aligned_alloc(4096, BYTES);
        if (!data)
            return 1;
        memset(data, i, BYTES);
        t[i].data = data;
    }
    for (int i = 0; i < n; i++)
        if (pthread_create(&id[i], NULL, work, &t[i]))
            return 1;
    for (int i = 0; i < n; i++) {
        pthread_join(id[i], NULL);
        read += (double)BYTES / t[i].read_s * 1e-9;
        fma += (double)STEPS * CHAINS * 16 / t[i].fma_s * 1e-9;
        out += (double)t[i].out;
    }
    printf("{\"read_gb_s\": %.2f, \"fma_gflop_s\": %.1f, \"check\": %g}\n", read, fma, out);
    return 0;
}
