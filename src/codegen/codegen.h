/* codegen.h: from scheduled prim funcs to machine code. */
#ifndef RX_CODEGEN_H
#define RX_CODEGEN_H
#include "tir/tir.h"

/* --- backend.c: the table of backends (backends.def), the private shared object of LLVM --- */
typedef struct rx_codegen_options {
    int32_t opt_level;                 /* 0..3; 1 is the default of the pipeline: our loops are scheduled already */
} rx_codegen_options;
#define RX_CODEGEN_OPTIONS_INIT {1}
typedef struct rx_kernel_code {
    uint32_t first;                    /* index of its first phase in the table rx_entries */
    uint32_t nphases;
    const uint8_t *parallel;           /* per phase: 1 = split over parts, 0 = part 0 alone does it */
} rx_kernel_code;
typedef struct rx_code {
    uint8_t *so; /* an ELF shared object that exports rx_entries; NULL when there are no kernels */
    size_t so_size;
    rx_kernel_code *kernels;           /* per prim */
    uint32_t nentries, llvm_version;   /* llvm_version 0: not made by LLVM */
} rx_code;
typedef struct rx_backend {
    const char *name;
    rx_target_kind kind;
    const char *doc;
    void (*compile)(relax_context *ctx, rx_arena *a, const relax_target *t, const rx_prim *const *prims, uint32_t n,
        const rx_codegen_options *o, rx_code *out);
} rx_backend;
extern const rx_backend rx_backends[];
extern const uint32_t rx_n_backends;
const rx_backend *rx_backend_of(const relax_target *t);        /* NULL: none for the kind */
/* The backend of the target; results in the arena. Unwinds with RXE_CODEGEN, RXE_LLVM, RXE_NO_BACKEND, RXE_CANCELLED.
 * Identical prims are the caller's to merge. */
void rx_codegen(relax_context *ctx, rx_arena *a, const relax_target *t, const rx_prim *const *prims, uint32_t n,
    const rx_codegen_options *o, rx_code *out);
void rx_codegen_cpu(relax_context *ctx, rx_arena *a, const relax_target *t, const rx_prim *const *prims, uint32_t n,
    const rx_codegen_options *o, rx_code *out);
/* --- null/null.c --- */
void rx_codegen_null(relax_context *ctx, rx_arena *a, const relax_target *t, const rx_prim *const *prims, uint32_t n,
    const rx_codegen_options *o, rx_code *out);

/* --- elf.c: a relocatable object (x86-64 or aarch64, from LLVM or a C compiler) to a shared object that imports
 * nothing and exports one symbol, rx_entries: an array of pointers to the functions `entries`, in order. Deterministic.
 * Checks every offset; unwinds with RXE_CODEGEN (undefined symbols, what is not supported) or RXE_FILE_CORRUPT. --- */
void rx_elf_link(relax_context *ctx, rx_arena *a, const uint8_t *obj, size_t n, const char *const *entries,
                 uint32_t nentries, uint8_t **so, size_t *so_size);
#endif
