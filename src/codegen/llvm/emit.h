/* emit.h: private header of the LLVM emitter (librelax_llvm.so).
 *
 * Input: verified, scheduled prim funcs, as plain structs; no function of librelax is called from here. Output: IR.
 *
 * Values: f32 and f64 are themselves; f16, bf16 and the 8-bit floats live in registers as f32 that hold exactly a value
 * of the narrow type (every node is rounded); integers have their width; bool is i1 (i8 in memory).
 *
 * Lanes: inside a VECTOR loop of extent L a value is *uniform* (scalar, splatted on use) or has one element per lane.
 * Expression code always joins again, so what was emitted for a node can be used until the next statement (memo); a
 * mask says which lanes (or, in scalar code, whether the one path) really reach a load.
 *
 * Failure: rx_ll_fail leaves the whole compile call by longjmp; memory is freed by its owner, compile() in door.c. */
#ifndef RX_LLVM_EMIT_H
#define RX_LLVM_EMIT_H
#include <llvm-c/Core.h>
#include <llvm-c/TargetMachine.h>
#include "codegen/llvm/llvm.h"
#include "core/core.h"
#include "pkg/kernel.h"

typedef LLVMValueRef LV;
typedef LLVMTypeRef LT;

#define RX_LL_MAX_LANES 64
#define RX_LL_STACK_LIMIT (256 * 1024)       /* bytes of local buffers in one phase */
#define RX_LL_NODE_LIMIT   400000 /* expression nodes emitted for one kernel: a runaway unroll ends in an error */
#define RX_LL_UNROLL_LIMIT 64                /* longer UNROLL loops stay loops */

typedef struct rx_ll_val { LV v; bool lanes; } rx_ll_val;
typedef struct rx_ll_bind {                  /* a symbol in scope */
    rx_ex sym;
    rx_ll_val val;
    int64_t stride;                          /* per lane, as rx_ll_stride */
    bool nonneg;
    bool lane_var; /* variable of the VECTOR loop that is being emitted as lanes; val is its start */
} rx_ll_bind;
typedef struct rx_ll_buf {                   /* a buffer in scope */
    const relax_buffer *buf;
    LV base;
    LLVMMetadataRef scope, others;           /* parameters: alias scopes */
    bool read_only;
    bool per_lane; /* allocated inside the VECTOR loop: element i of lane l lies at i * lanes + l */
} rx_ll_buf;
typedef struct rx_ll_acc {                   /* vector accumulators that stand for a buffer during a loop */
    const relax_buffer *buf;
    rx_ex *index;                            /* the one element; NULL: all elements of a local buffer */
    rx_eop op;
    uint32_t lanes;
    uint64_t n;                              /* elements */
    LV at;
} rx_ll_acc;
typedef enum rx_ll_mode { RX_LL_SCALAR, RX_LL_LANES, RX_LL_STRIDE } rx_ll_mode;
typedef struct rx_ll_memo {                  /* what was found out about a node since the last rx_ll_forget */
    rx_ex key;
    uint32_t generation;
    rx_ll_mode mode;
    LV mask;
    rx_ll_val val;
    int64_t stride;
} rx_ll_memo;
typedef struct rx_ll_block { struct rx_ll_block *next; size_t n, used; char at[]; } rx_ll_block;
#define RX_LL_VEC(T) struct { T *at; uint32_t n, cap; }
#define rx_ll_push(e, v, x)                                                                                            \
    ((v)->at = rx_ll_room((e), (v)->at, (v)->n, &(v)->cap, sizeof *(v)->at), (v)->at[(v)->n++] = (x))

typedef struct rx_ll {
    rx_llvm_job *job;
    jmp_buf fail;
    rx_ll_block *blocks;
    uint32_t features;
    bool x86;
    char feature_text[256];
    LLVMContextRef c;
    LLVMModuleRef m;
    LLVMBuilderRef b;
    LLVMTargetMachineRef tm;
    LT i1, i8, i16, i32, i64, half, f32, f64, ptr, none;
    unsigned md_scope, md_noalias, md_invariant;
    /* the kernel */
    const rx_llvm_kernel *k;
    uint32_t kernel;
    bool *writes;                            /* per parameter */
    uint32_t nodes;
    /* the function */
    LV fn, args;
    LLVMBasicBlockRef entry, leave;          /* allocas go to the end of entry; a failed check jumps to leave */
    uint64_t stack;
    RX_LL_VEC(rx_ll_bind) binds;
    RX_LL_VEC(rx_ll_buf) bufs;
    RX_LL_VEC(rx_ll_acc) accs;
    LV zeros;                                /* readable memory for masked-off loads; NULL until needed */
    LV sink;                                 /* writable, for masked-off stores */
    /* the place */
    uint32_t lanes;                          /* 0: scalar code */
    bool scalar;                             /* inside lanes: evaluate for lane 0 */
    rx_ll_val mask;                          /* v == NULL: none */
    uint32_t depth;
    rx_ll_memo *memo;
    uint32_t nmemo, memo_used, generation;
    uint32_t loads;                          /* counts loads under a mask, to see which values depend on it */
} rx_ll;

/* --- door.c --- */
RX_NORETURN void rx_ll_fail(rx_ll *e, const char *fmt, ...) RX_PRINTF(2, 3);
void *rx_ll_mem(rx_ll *e, size_t n);                                    /* zeroed, lives until the compile call ends */
void *rx_ll_room(rx_ll *e, void *at, uint32_t n, uint32_t *cap, size_t size);
bool rx_ll_has(const rx_ll *e, uint32_t feature);
const char *rx_ll_feature_text(rx_ll *e); /* "+avx2,+fma": LLVM's names, from our table only */

/* --- kernel.c --- */
void rx_ll_kernel(rx_ll *e, uint32_t kernel);                           /* emits all phases into e->m */
void rx_ll_attributes(rx_ll *e, LV fn);
LT rx_ll_args_type(rx_ll *e);                                          /* struct rx_kernel_args */
LV rx_ll_local(rx_ll *e, LT type, uint64_t n, const char *name); /* stack memory of the function, 64-byte aligned */

/* --- stmt.c --- */
void rx_ll_stmt(rx_ll *e, const rx_stmt *s);
/* runs the body for start <= var < end */
void rx_ll_range(rx_ll *e, const rx_stmt *loop, LV start, LV end, bool nonneg);
void rx_ll_bind_sym(rx_ll *e, rx_ex sym, rx_ll_val v, int64_t stride, bool nonneg);
void rx_ll_alloc(rx_ll *e, const relax_buffer *b);
void rx_ll_let(rx_ll *e, rx_ex var, rx_ex value);

/* --- lanes.c: what the statements and expressions of a VECTOR loop look like from its lanes --- */
/* f on each statement (x NULL) and each of its expressions; stops and answers false when f does */
bool rx_ll_walk(const rx_stmt *s, bool (*f)(void *arg, const rx_stmt *s, rx_ex x), void *arg);
bool rx_ll_has_load(rx_ex x, const relax_buffer *b);                           /* b NULL: any load */
#define RX_LL_VARYING INT64_MIN
int64_t rx_ll_stride(rx_ll *e, rx_ex x); /* x == (x at lane 0) + stride * lane; 0: uniform; RX_LL_VARYING: neither */
int64_t rx_ll_index_stride(rx_ll *e, const relax_buffer *b, rx_ex *index);
/* the loop can be emitted as lanes; its variable is bound already */
bool rx_ll_lanes_ok(rx_ll *e, const rx_stmt *loop);
/* the store is S = S op a, or S = S + a * b (b may be NULL) */
bool rx_ll_update(const rx_stmt *store, rx_eop *op, rx_ex *a, rx_ex *b, bool *negate);
/* pushes the accumulators that this loop can carry, without memory */
void rx_ll_find_accs(rx_ll *e, const rx_stmt *loop);
bool rx_ll_int_const(rx_ll *e, rx_ex x, int64_t *v); /* a constant here (unrolled variables are) */

/* --- expr.c --- */
rx_ll_val rx_ll_ev(rx_ll *e, rx_ex x);
LV rx_ll_ev_scalar(rx_ll *e, rx_ex x);               /* a value that must be uniform; in lanes: at lane 0 */
LV rx_ll_ev_lanes(rx_ll *e, rx_ex x);                /* in lanes: splatted when uniform */
void rx_ll_forget(rx_ll *e); /* memory changed or control moved: values of nodes are not reused */
rx_ll_bind *rx_ll_find(rx_ll *e, rx_ex sym);
rx_ll_memo *rx_ll_recall(rx_ll *e, rx_ex x, rx_ll_mode mode, LV mask);         /* NULL: not known */
rx_ll_memo *rx_ll_remember(rx_ll *e, rx_ex x, rx_ll_mode mode, LV mask);       /* the entry to fill */
bool rx_ll_nonneg(rx_ll *e, rx_ex x);
LV rx_ll_splat(rx_ll *e, LV v);
LV rx_ll_any(rx_ll *e, LV mask);                     /* i1: some lane is set */
LV rx_ll_arith(rx_ll *e, rx_eop op, relax_dtype t, LV a, LV b, bool nsw); /* registers in, register out, rounded to t */

/* --- mem.c --- */
rx_ll_buf *rx_ll_buffer(rx_ll *e, const relax_buffer *b);
rx_ll_val rx_ll_load(rx_ll *e, rx_ex load);
void rx_ll_store(rx_ll *e, const relax_buffer *b, rx_ex *index, rx_ll_val v);
LV rx_ll_address(rx_ll *e, const relax_buffer *b, rx_ex *index);               /* at lane 0 */
LV rx_ll_scalar_load(rx_ll *e, const relax_buffer *b, LV at);                   /* one element as a register */
void rx_ll_scalar_store(rx_ll *e, const relax_buffer *b, LV at, LV v);
void rx_ll_tag(rx_ll *e, LV inst, const rx_ll_buf *b, bool load);

/* --- conv.c --- */
LT rx_ll_type(rx_ll *e, relax_dtype t);              /* register type of one value */
LT rx_ll_mem_type(rx_ll *e, relax_dtype t);
LT rx_ll_like(rx_ll *e, LT scalar, LV v);            /* scalar, or a vector of it with v's lanes */
LV rx_ll_to_mem(rx_ll *e, relax_dtype t, LV reg);
LV rx_ll_from_mem(rx_ll *e, relax_dtype t, LV mem);
LV rx_ll_round(rx_ll *e, relax_dtype t, LV reg);     /* an f32 register to a value of a narrow float; else itself */
LV rx_ll_cast(rx_ll *e, relax_dtype to, relax_dtype from, LV v);
LV rx_ll_bitcast(rx_ll *e, relax_dtype to, relax_dtype from, LV v);
bool rx_ll_signed(relax_dtype t);

/* --- math.c, trig.c, pow.c, fmod.c: functions on f32 or f64 registers, scalar or vector, without calls and without
 * branches (except for rare lanes: the huge arguments of sin and cos, the huge quotients of a float modulo) --- */
typedef LV rx_ll_rare_fn(rx_ll *e, LV x, LV y); /* scalar f64 code in a function of the module; may return a struct */
/* `values` (n of them) in the lanes where `rare` is false; in the others the fields of f(x, y). Where no lane is rare,
 * nothing is called; x_safe, y_safe are harmless arguments. The memo stays valid: the code joins again. */
void rx_ll_rare(rx_ll *e, const char *name, rx_ll_rare_fn *f, LV rare, LV x, LV y, double x_safe, double y_safe,
                LV *values, uint32_t n);
LV rx_ll_const_like(rx_ll *e, LV like, double v);    /* float constant of like's type */
LV rx_ll_int_like(rx_ll *e, LT scalar, LV like, int64_t v);
LV rx_ll_fn1(rx_ll *e, const char *name, LV x);      /* a generic LLVM intrinsic that is lowered without a call */
LV rx_ll_math(rx_ll *e, rx_intrin f, LV x);
LV rx_ll_fma(rx_ll *e, LV a, LV b, LV c);            /* rounded once */
LV rx_ll_mad(rx_ll *e, LV a, LV b, LV c);            /* fma where the target has it, else two roundings */
LV rx_ll_sin_cos(rx_ll *e, LV x, bool cosine);
LV rx_ll_pow(rx_ll *e, LV a, LV b);
LV rx_ll_float_division(rx_ll *e, bool mod, LV a, LV b); /* floor(a / b), or the exact remainder with b's sign */
LV rx_ll_poly(rx_ll *e, LV x, const double *c, uint32_t n);     /* c[0] x^(n-1) + … + c[n-1] */
LV rx_ll_narrow_rint(rx_ll *e, LV x);                /* nearest integer, ties to even, any target */
#endif
