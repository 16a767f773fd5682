/* run_kernels.c: runs compiled kernels on another machine or under an emulator: run_kernels KERNELS.so JOBS RESULTS
 * JOBS: u32 count; per job u32 first entry, u32 phases, u32 buffers, u32 symbols, u8 parallel[phases], i64 values of
 * the symbols, then per buffer u64 size and its bytes. RESULTS: per job i32 error, then the bytes of all buffers.
 * Phases run as 3 parts. */
#include "pkg/kernel.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

static FILE *in, *out;

static void get(void *p, size_t n)
{
    if (n && fread(p, 1, n, in) != n) {
        fprintf(stderr, "the job file is too short\n");
        exit(1);
    }
}

static void run_job(rx_kernel_fn *entries)
{
    uint32_t head[4];
    uint8_t parallel[64];
    int64_t syms[16];
    uint64_t size[16];
    void *bufs[16];
    int32_t err = 0;
    get(head, sizeof head);
    if (head[1] > 64 || head[2] > 16 || head[3] > 16) exit(1);
    get(parallel, head[1]);
    get(syms, head[3] * sizeof *syms);
    for (uint32_t i = 0; i < head[2]; i++) {
        get(&size[i], 8);
        bufs[i] = aligned_alloc(64, (size[i] + 127) & ~(uint64_t)63);
        get(bufs[i], size[i]);
    }
    for (uint32_t p = 0; p < head[1]; p++)
        for (int64_t n = parallel[p] ? 3 : 1, i = 0; i < n; i++)
            entries[head[0] + p](&(rx_kernel_args){bufs, syms, &err, i, n, NULL});
    fwrite(&err, 4, 1, out);
    for (uint32_t i = 0; i < head[2]; i++) {
        fwrite(bufs[i], 1, size[i], out);
        free(bufs[i]);
    }
}

int main(int argc, char **argv)
{
    uint32_t n = 0;
    void *dl = argc == 4 ? dlopen(argv[1], RTLD_NOW) : NULL;
    rx_kernel_fn *entries = dl ? dlsym(dl, "rx_entries") : NULL;
    in = entries ? fopen(argv[2], "rb") : NULL;
    out = in ? fopen(argv[3], "wb") : NULL;
    if (!out) {
        fprintf(stderr, "usage: run_kernels KERNELS.so JOBS RESULTS (%s)\n", dl ? "" : dlerror());
        return 1;
    }
    get(&n, 4);
    for (uint32_t i = 0; i < n; i++) run_job(entries);
    return fclose(out) != 0;
}
