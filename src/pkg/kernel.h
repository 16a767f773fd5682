/* kernel.h: how compiled kernels are called. Fixed for a major version of the executable format. */
#ifndef RX_KERNEL_H
#define RX_KERNEL_H
#include <stdint.h>
typedef struct rx_kernel_args {
    void *const *bufs;                 /* parameters of the prim func in order: first element, compact, aligned */
    const int64_t *syms;               /* its symbols, in the order of rx_prim_symbols */
    int32_t *err;                      /* a failed check writes its RXE number here (0 before); others may still run */
    int64_t part, nparts;              /* this call does part `part` of nparts of the phase's outer parallel loop */
    void *scratch;                     /* reserved, NULL */
} rx_kernel_args;
typedef void (*rx_kernel_fn)(const rx_kernel_args *args);
/* A kernel is a list of phases; a barrier lies between two of them. A serial phase is run by part 0 of 1 only. */
#endif
