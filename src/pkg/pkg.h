/* pkg.h: the executable's file format: header, sections, bytecode, shape program; writer, reader and verifier,
 * disassembler.
 *
 * A file is a header, a table of sections and the sections, all little-endian, each section at a multiple of 64 and
 * with an XXH3 checksum. Sections are arrays of the fixed records below, used in place: opening allocates nothing but
 * the verifier's scratch. The same program always gives the same bytes: no time, host or path is ever written.
 *
 * Trust: rx_pkg_open checks untrusted bytes once (every index, offset, register, slot, jump, callee, arity, type,
 * definition before use on all paths) in time linear in the file; after it, the accessors and the VM rely on what it
 * checked. Native code is only carried.
 *
 * Values. A function has `nregs` registers (tensor, shape, number, tuple, function, string, none) and `nslots` int64
 * slots. Its parameters arrive in registers 0 .. nparams-1 with kinds unknown: MATCH checks one and binds slots to
 * dims. A *ref* is an operand that is a slot (>= 0) or the constant ints[~ref] (< 0). A *type* names dims as refs of
 * the function that uses it. */
#ifndef RX_PKG_H
#define RX_PKG_H
#include "core/core.h"
#include "pkg/kernel.h"

#define RX_PKG_MAJOR 1                 /* other major: refused */
#define RX_PKG_MINOR 0                 /* newer minor: read, what is unknown and optional is skipped */
#define RX_PKG_ALIGN 64
#define RX_PKG_MAX_NDIM 16
#define RX_PKG_MAX_DEPTH 16            /* nesting of types */

typedef struct rx_pkg_header {
    char magic[8];                     /* "RELAXEXE" */
    uint32_t endian;                   /* RX_PKG_ENDIAN as written by the writer's machine */
    uint16_t major, minor;
    uint64_t file_size;
    uint32_t nsections, reserved;
    uint64_t table_hash;               /* XXH3 of header (this field 0) and table */
    uint64_t reserved2[3];
} rx_pkg_header;
#define RX_PKG_ENDIAN 0x01020304u
/* sections stand in the order of their offsets */
typedef struct rx_pkg_section { uint32_t kind, required; uint64_t offset, size, hash; } rx_pkg_section;

typedef enum rx_ptkind { RX_PT_OBJECT, RX_PT_PRIM, RX_PT_SHAPE, RX_PT_TENSOR, RX_PT_TUPLE, RX_PT_FUNC } rx_ptkind;
enum { RX_DIM_ANY = 0, RX_DIM_EQ, RX_DIM_BIND };        /* not checked; must equal ref; is stored to slot ref */
typedef struct rx_pkg_type {
    int32_t kind, dtype;               /* rx_ptkind; PRIM, TENSOR: relax_dtype, 0 = any */
    /* TENSOR, SHAPE: rank, -1 = any; TUPLE: number of fields, -1 = any; PRIM: 1 with a value, else 0 */
    int32_t ndim;
    /* TENSOR, SHAPE, PRIM: ndim pairs (RX_DIM_*, ref) in tw; TUPLE: ndim types, each lower than its own number */
    int32_t first;
} rx_pkg_type;
typedef struct rx_pkg_fn {
    int32_t name, flags;               /* string; RX_FN_* */
    int32_t param0, nparams;           /* in params */
    int32_t sym0, nsyms;               /* in syms */
    int32_t result;                    /* string: annotation of the result */
    int32_t nregs, nslots;
    int32_t code0, ncode;              /* words */
    int32_t mem_text;                  /* string: peak bytes of activations as a formula over the symbols, "" unknown */
    /* the same as a range of the shape program over the symbols' slots, and where its value is; RX_REF_NONE: unknown */
    int32_t mem0, nmem, mem_ref;
    int32_t nouts;                     /* tensors of the result, tuples flattened; 0 also when unknown */
} rx_pkg_fn;
#define RX_REF_NONE INT32_MIN
enum { RX_FN_PRIVATE = 1 };            /* not callable from outside */
typedef struct rx_pkg_param {
    int32_t name, type;                /* strings: name, annotation as text */
    int32_t flags;                     /* RX_PARAM_* */
    int32_t weight;                    /* index in weights, -1 none: bound by name, not passed by callers outside */
} rx_pkg_param;
/* the function writes this tensor in place: read-only and strided memory is refused */
enum { RX_PARAM_WRITTEN = 1 };
typedef struct rx_pkg_sym {
    int64_t lo, hi, divisor;           /* inclusive; INT64_MIN/MAX none; the value is a multiple of divisor (>= 1) */
    int32_t name, slot;
    int32_t param, dim;                /* where its value comes from, for messages: parameter (-1 none) and dim */
} rx_pkg_sym;
typedef struct rx_pkg_shape { int32_t op, dst, a, b, c; } rx_pkg_shape;
typedef struct rx_pkg_kernel {
    int32_t name, origin;              /* strings; origin: operator it was made from, "" none */
    int32_t nbufs, nsyms;
    int32_t phase0, nphases;           /* in phases; the native code's table of entries has the same order */
} rx_pkg_kernel;
typedef struct rx_pkg_lib { int32_t name, kind; } rx_pkg_lib;           /* kind: RX_LIB_* */
enum { RX_LIB_DPS = 0, RX_LIB_PACKED = 1 };
/* strings; type: annotation in the first function that has it */
typedef struct rx_pkg_weight { int32_t name, type; } rx_pkg_weight;
/* type: TENSOR whose dims are EQ constants */
typedef struct rx_pkg_const { int64_t offset, size; int32_t type, reserved; } rx_pkg_const;
/* target: string; features: RX_F_*, all of which the machine must have */
typedef struct rx_pkg_native {
    int64_t offset, size;
    int32_t target;
    uint32_t arch, features, nentries;
} rx_pkg_native;
typedef struct rx_pkg_pair { int32_t key, value; } rx_pkg_pair;         /* strings */

typedef enum rx_bc {
#define BC(num, name, operands, doc) RX_BC_##name = num,
#include "pkg/bytecode.def"
#undef BC
    RX_BC_COUNT
} rx_bc;
typedef enum rx_sh {
#define SH(num, name, n, text, doc) RX_SH_##name = num,
#include "pkg/shape.def"
#undef SH
    RX_SH_COUNT
} rx_sh;
typedef enum rx_sec {
#define SEC(num, name, field, type) RX_SEC_##name = num,
#include "pkg/sections.def"
#undef SEC
    RX_SEC_COUNT
} rx_sec;
/* names and operand letters by opcode ([0] is empty) */
extern const char *const rx_bc_names[], *const rx_bc_operands[];
extern const char *const rx_sh_text[];
extern const uint8_t rx_sh_arity[];

/* An opened file: pointers into its bytes. */
typedef struct rx_pkg {
    const uint8_t *bytes; size_t size;
    uint16_t minor;
    uint32_t n_strings;
    uint32_t max_list;                 /* longest operand list in the bytecode (rx_pkg_verify) */
#define SEC(num, name, field, type) const type *field; uint32_t n_##field;
#include "pkg/sections.def"
#undef SEC
} rx_pkg;

/* --- reader.c. bytes: 64-aligned, unchanged as long as p is used. scratch: only for the call. --- */
relax_status rx_pkg_open(relax_context *ctx, const uint8_t *bytes, size_t size, rx_pkg *p);    /* reads and verifies */
relax_status rx_pkg_read(relax_context *ctx, const uint8_t *bytes, size_t size, rx_pkg *p);    /* sections, strings */
static inline const char *rx_pkg_str(const rx_pkg *p, int32_t i) { return p->str + p->str_at[i]; }
int32_t rx_pkg_find_fn(const rx_pkg *p, const char *name, size_t n);    /* -1 if absent */
/* recomputes sizes and checksums in place: last step of the writer; also for tools that edit files */
void rx_pkg_seal(uint8_t *bytes, size_t size);

/* --- verify.c: types, functions, bytecode, shape program of what rx_pkg_read accepted --- */
relax_status rx_pkg_verify(relax_context *ctx, rx_pkg *p);

/* --- shape.c --- */
/* Runs n instructions of the shape program. 0, or the error: RXE_LIMIT (overflow), RXE_DIV_ZERO. *at: instruction that
 * failed. */
int32_t rx_shape_run(const rx_pkg *p, int32_t first, int32_t n, int64_t *slots, int32_t *at);
static inline int64_t rx_pkg_ref(const rx_pkg *p, const int64_t *slots, int32_t ref)
{ return ref >= 0 ? slots[ref] : p->ints[~ref]; }
/* bytes of a concrete tensor type; false: negative dim or too large. dims may be NULL. */
bool rx_pkg_type_bytes(const rx_pkg *p, const rx_pkg_type *t, const int64_t *slots, int64_t *dims, int64_t *bytes);
/* Peak bytes of function fn for values of its symbols (in order). RXE_NOT_FOUND when the file has no formula for it. */
relax_status rx_pkg_peak(relax_context *ctx, const rx_pkg *p, int32_t fn, const int64_t *syms, uint32_t nsyms,
                         int64_t *bytes);

/* --- print.c: inside a frame (rx_buf memory). For people; not a format. --- */
/* everything that `relax info` shows; code: bytecode and shape program too */
void rx_pkg_print(rx_buf *b, const rx_pkg *p, bool code);
void rx_pkg_print_fn(rx_buf *b, const rx_pkg *p, int32_t fn);   /* bytecode of one function */
/* mlp(x: Tensor((n, 256), f32), …) -> … where 1 <= n <= 4096 */
void rx_pkg_print_signature(rx_buf *b, const rx_pkg *p, int32_t fn);

/* --- writer.c: for the compiler; arena memory, inside a frame. Everything is numbered in order of creation. ---
 *   rx_pkgw *w = rx_pkgw_new(ctx, a);
 *   int32_t f = rx_pkgw_fn(w, "mlp", 0);       numbers first, so that calls may precede bodies
 *   rx_pkgw_fn_begin(w, f);  rx_pkgw_param(w, …) …  rx_pkgw_op(w, RX_BC_…, …) …  rx_pkgw_fn_end(w, …);
 *   rx_pkgw_finish(w, &bytes, &size);
 * Strings are copied; data of constants and native code must stay until rx_pkgw_finish. */
typedef struct rx_pkgw rx_pkgw;
typedef struct rx_pkgw_dim { int32_t mode, ref; } rx_pkgw_dim;
rx_pkgw *rx_pkgw_new(relax_context *ctx, rx_arena *a);
int32_t rx_pkgw_str(rx_pkgw *w, const char *s);                 /* equal strings share a number */
int32_t rx_pkgw_int(rx_pkgw *w, int64_t v);                     /* a ref (< 0) to a constant, shared */
int32_t rx_pkgw_double(rx_pkgw *w, double v);                   /* a ref to its bits */
/* equal types share a number */
int32_t rx_pkgw_type_object(rx_pkgw *w);
int32_t rx_pkgw_type_func(rx_pkgw *w);
int32_t rx_pkgw_type_prim(rx_pkgw *w, relax_dtype t, const rx_pkgw_dim *value_or_null);
int32_t rx_pkgw_type_shape(rx_pkgw *w, int32_t ndim, const rx_pkgw_dim *dims);           /* dims NULL: all RX_DIM_ANY */
int32_t rx_pkgw_type_tensor(rx_pkgw *w, relax_dtype t, int32_t ndim, const rx_pkgw_dim *dims);
int32_t rx_pkgw_type_tuple(rx_pkgw *w, int32_t n, const int32_t *types);                 /* n -1: any tuple */
int32_t rx_pkgw_kernel(rx_pkgw *w, const char *name, const char *origin, int32_t nbufs, int32_t nsyms,
                       const uint8_t *parallel, int32_t nphases);
int32_t rx_pkgw_lib(rx_pkgw *w, const char *name, int32_t kind);        /* equal names and kinds share */
int32_t rx_pkgw_weight(rx_pkgw *w, const char *name, const char *type); /* equal names share; the first type stays */
/* equal contents share a number */
int32_t rx_pkgw_const(rx_pkgw *w, relax_dtype t, int32_t ndim, const int64_t *dims, const void *data, size_t bytes);
/* one per CPU level, all with the same entries */
void rx_pkgw_native(rx_pkgw *w, const relax_target *t, const void *so, size_t n);
void rx_pkgw_provenance(rx_pkgw *w, const char *key, const char *value);
int32_t rx_pkgw_fn(rx_pkgw *w, const char *name, int32_t flags);                         /* reserve a number */
void rx_pkgw_fn_begin(rx_pkgw *w, int32_t fn);                                           /* its body follows */
void rx_pkgw_param(rx_pkgw *w, const char *name, const char *type, int32_t flags, int32_t weight);
/* returns the y operand of BOUND; param, dim: where the value comes from, for messages (-1 none) */
int32_t rx_pkgw_sym(rx_pkgw *w, const char *name, int32_t slot, int64_t lo, int64_t hi, int64_t divisor, int32_t param,
                    int32_t dim);
int32_t rx_pkgw_reg(rx_pkgw *w);                                /* fresh, after the parameters */
int32_t rx_pkgw_slot(rx_pkgw *w);                               /* fresh */
int32_t rx_pkgw_label(rx_pkgw *w);                                                       /* a label to place later */
void rx_pkgw_place(rx_pkgw *w, int32_t label);
/* One instruction. Operands as int in the order of their letters; a list is (int n, const int32_t *at), p is
 * (int first, int count), a label is its number. */
void rx_pkgw_op(rx_pkgw *w, rx_bc op, ...);
/* appends to the shape program and returns the number of the instruction: EVAL takes ranges */
int32_t rx_pkgw_shape(rx_pkgw *w, rx_sh op, int32_t dst, int32_t a, int32_t b, int32_t c);
int32_t rx_pkgw_shape_count(const rx_pkgw *w);
/* memory formula of the current function */
void rx_pkgw_memory(rx_pkgw *w, const char *text, int32_t first, int32_t count, int32_t ref);
void rx_pkgw_fn_end(rx_pkgw *w, const char *result_type, int32_t nouts);
void rx_pkgw_finish(rx_pkgw *w, uint8_t **bytes, size_t *size); /* 64-aligned, in the arena */
#endif
