/* interp.h: runs modules at any stage without code generation: slow, obvious, the oracle of all tests. */
#ifndef RX_INTERP_H
#define RX_INTERP_H
#include "graph/graph.h"

/* --- tir_interp.c --- */
/* Runs p. bufs: for each parameter its first element, laid out as the parameter says (row-major or by its strides);
 * syms: the values of its symbols in the order of rx_prim_symbols. Every access is checked. Unwinds with RXE_INDEX, the
 * error of an ASSERT that fails, RXE_BAD_VALUE for a negative dim, RXE_CANCELLED. What was stored before an error stays
 * stored. */
void rx_interp_prim(relax_context *ctx, const rx_prim *p, void *const *bufs, const int64_t *syms);

/* --- value.c: what graph functions compute with. All memory is the arena's that is given; tensors are compact,
 * row-major. --- */
typedef enum rx_ikind { RX_I_TENSOR, RX_I_SHAPE, RX_I_PRIM, RX_I_TUPLE, RX_I_FUNC, RX_I_STR } rx_ikind;
typedef struct rx_ival rx_ival;
struct rx_ival {
    rx_ikind kind;
    relax_dtype dtype;                 /* TENSOR, PRIM */
    int32_t ndim;                      /* TENSOR, SHAPE */
    int64_t *dims;
    void *data;                        /* TENSOR */
    size_t bytes;
    /* PRIM: the element, as in memory. SHAPE: bit i: dim i is a 0 that stands in the program (see reshape) */
    uint64_t bits;
    rx_ival **at; uint32_t n;          /* TUPLE */
    relax_function *fn;                /* FUNC */
    const char *s;                     /* STR */
};
/* copies; data NULL: poisoned */
rx_ival *rx_ival_tensor(relax_context *ctx, rx_arena *a, relax_dtype t, const int64_t *dims, int32_t ndim,
                        const void *data);
rx_ival *rx_ival_shape(rx_arena *a, const int64_t *dims, int32_t ndim);
rx_ival *rx_ival_int(rx_arena *a, int64_t v);                                   /* Prim(i64) */
rx_ival *rx_ival_tuple(rx_arena *a, rx_ival *const *at, uint32_t n);
int64_t rx_ival_count(const rx_ival *t);                                        /* elements of a tensor */
/* its annotation, all dims and i64 values constant; opaque for functions */
rx_ty rx_ival_type(relax_context *ctx, const rx_ival *v);
void rx_ival_print(rx_buf *b, const rx_ival *v);                                /* for messages and tests */

/* --- run.c: graph functions --- */
typedef struct rx_interp rx_interp;
/* Functions of the host. packed: call_packed. lib: a destination-passing library function; at: inputs, then the outputs
 * that it writes. NULL result / false: no such function. "rx." functions are the interpreter's own. */
typedef struct rx_interp_host {
    void *user;
    rx_ival *(*packed)(void *user, rx_interp *in, const char *name, rx_ival *const *args, uint32_t n);
    bool (*lib)(void *user, rx_interp *in, const char *name, rx_ival *const *at, uint32_t n, const int64_t *syms,
                uint32_t nsyms);
} rx_interp_host;
struct rx_interp {
    relax_context *ctx;
    rx_arena *a;                       /* of all values */
    rx_interp_host host;
    uint32_t depth;                    /* of calls */
};
#define RX_INTERP_DEPTH 200
/* Runs f. Arguments are checked against the parameters; they are not copied, so what the program writes in place is
 * seen by the caller. Unwinds with the errors of run time (RXE_ARG_*, RXE_BOUND_EXCEEDED, RXE_INDEX, …), as the runtime
 * gives them. */
rx_ival *rx_interp_run(rx_interp *in, relax_function *f, rx_ival *const *args, uint32_t n);
/* --- op_run.c: one operator; attrs and out may name no symbols but known ones of env (may be NULL: none) --- */
rx_ival *rx_interp_op(rx_interp *in, relax_function *f, const rx_op *op, rx_ival *const *args, uint32_t n,
                      const rx_attrs *attrs, const rx_map *env);
#endif
