/* llvm.h: the door between librelax and its private shared object librelax_llvm.so, which holds all use of LLVM.
 * librelax opens it when the first CPU target is built, and calls the one function it exports. Nothing is linked either
 * way: what the emitter needs from librelax (walking expressions) is plain data. No frame of librelax is ever unwound
 * through LLVM. */
#ifndef RX_LLVM_H
#define RX_LLVM_H
#include "tir/tir.h"

#define RX_LLVM_ABI 1
/* One kernel to emit: a scheduled, verified, guarded prim func. */
typedef struct rx_llvm_kernel {
    const rx_prim *prim;
    rx_ex *symbols; uint32_t nsymbols; /* rx_prim_symbols: order of rx_kernel_args.syms */
} rx_llvm_kernel;
typedef struct rx_llvm_job {
    uint32_t struct_size, abi;
    const relax_target *target;
    const rx_llvm_kernel *kernels; uint32_t nkernels;
    int32_t opt_level;                 /* 0..3 */
    int32_t (*cancelled)(void *user); void *user;
    void (*progress)(void *user, uint32_t done);       /* kernels emitted */
    /* results, valid until release(): */
    void *object; size_t object_size;  /* ELF relocatable: symbols rxk_<kernel>_<phase>, no imports */
    uint32_t *nphases;                 /* per kernel */
    uint8_t **parallel;                /* per kernel, per phase: 1 = split over parts, 0 = part 0 alone does it */
    char error[512];                   /* when the result is not 0 */
} rx_llvm_job;
typedef struct rx_llvm_api {
    uint32_t abi, llvm_version;        /* e.g. 22 */
    int32_t (*compile)(rx_llvm_job *job);               /* 0 = ok */
    void (*release)(rx_llvm_job *job);
} rx_llvm_api;
typedef const rx_llvm_api *(*rx_llvm_query_fn)(uint32_t abi);   /* exported as "rx_llvm_query"; NULL: other ABI */
#endif
