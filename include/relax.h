/* relax.h: the public interface of librelax. */
#ifndef RELAX_H
#define RELAX_H
#include <stddef.h>
#include <stdint.h>
#ifdef __cplusplus
extern "C" {
#endif
#if defined(__GNUC__)
#define RELAX_API __attribute__((visibility("default")))
#else
#define RELAX_API
#endif

/* ---- status and data types ---- */
typedef int32_t relax_status;
enum {
    RELAX_OK = 0, RELAX_E_INVALID = 1, RELAX_E_NOMEM = 2, RELAX_E_TYPE = 3, RELAX_E_SHAPE = 4, RELAX_E_BOUND = 5,
    RELAX_E_NOT_FOUND = 6, RELAX_E_UNSUPPORTED = 7, RELAX_E_FORMAT = 8, RELAX_E_IO = 9, RELAX_E_INCOMPATIBLE = 10,
    RELAX_E_CANCELLED = 11, RELAX_E_LIMIT = 12, RELAX_E_INTERNAL = 13
};
typedef int32_t relax_dtype;
enum {
    RELAX_DTYPE_UNKNOWN = 0,
    RELAX_BOOL,
    RELAX_I8,
    RELAX_I16,
    RELAX_I32,
    RELAX_I64,
    RELAX_U8,
    RELAX_U16,
    RELAX_U32,
    RELAX_U64,
    RELAX_F16,
    RELAX_BF16,
    RELAX_F32,
    RELAX_F64,
    RELAX_F8E4M3,
    RELAX_F8E5M2,
    RELAX_DTYPE_COUNT
};
typedef int32_t relax_log_level;
enum { RELAX_LOG_ERROR = 0, RELAX_LOG_WARNING, RELAX_LOG_INFO, RELAX_LOG_DEBUG };
#define RELAX_STRLEN ((size_t)-1)      /* a string length: NUL-terminated */

/* ---- opaque handles ---- */
typedef struct relax_context relax_context;
typedef struct relax_target relax_target;
typedef struct relax_expr relax_expr;
typedef struct relax_type relax_type;
typedef struct relax_buffer relax_buffer;
typedef struct relax_value relax_value;
typedef struct relax_function relax_function;
typedef struct relax_module relax_module;
typedef struct relax_builder relax_builder;
typedef struct relax_prim_builder relax_prim_builder;
typedef struct relax_pipeline relax_pipeline;
typedef struct relax_executable relax_executable;
typedef struct relax_vm relax_vm;

/* ---- callbacks ---- */
typedef void *(*relax_alloc_fn)(void *self, void *p, size_t old_size, size_t size, size_t align);
typedef void (*relax_log_fn)(void *user, relax_log_level level, const char *text);
typedef void (*relax_progress_fn)(void *user, const char *phase, int64_t done, int64_t total);
typedef int32_t (*relax_cancel_fn)(void *user);        /* nonzero: stop */
/* run task(arg, i) for i in 0..n, in parallel, return when all are done */
typedef void (*relax_parallel_fn)(void *user, int32_t n, void (*task)(void *arg, int32_t i), void *arg);

/* ---- DLPack 1.x, under its standard names: a host may include dlpack.h before or after this header ---- */
#ifndef DLPACK_DLPACK_H_
#define DLPACK_DLPACK_H_
#define RELAX_OWN_DLPACK 1
#define DLPACK_MAJOR_VERSION 1
#define DLPACK_MINOR_VERSION 1
#define DLPACK_FLAG_BITMASK_READ_ONLY (1UL << 0UL)
#define DLPACK_FLAG_BITMASK_IS_COPIED (1UL << 1UL)
#define DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED (1UL << 2UL)
typedef enum {
    kDLCPU = 1,
    kDLCUDA = 2,
    kDLCUDAHost = 3,
    kDLOpenCL = 4,
    kDLVulkan = 7,
    kDLMetal = 8,
    kDLVPI = 9,
    kDLROCM = 10,
    kDLROCMHost = 11,
    kDLExtDev = 12,
    kDLCUDAManaged = 13,
    kDLOneAPI = 14,
    kDLWebGPU = 15,
    kDLHexagon = 16,
    kDLMAIA = 17
} DLDeviceType;
typedef struct { DLDeviceType device_type; int32_t device_id; } DLDevice;
typedef enum {
    kDLInt = 0U,
    kDLUInt = 1U,
    kDLFloat = 2U,
    kDLOpaqueHandle = 3U,
    kDLBfloat = 4U,
    kDLComplex = 5U,
    kDLBool = 6U,
    kDLFloat8_e3m4 = 7U,
    kDLFloat8_e4m3 = 8U,
    kDLFloat8_e4m3b11fnuz = 9U,
    kDLFloat8_e4m3fn = 10U,
    kDLFloat8_e4m3fnuz = 11U,
    kDLFloat8_e5m2 = 12U,
    kDLFloat8_e5m2fnuz = 13U,
    kDLFloat8_e8m0fnu = 14U,
    kDLFloat6_e2m3fn = 15U,
    kDLFloat6_e3m2fn = 16U,
    kDLFloat4_e2m1fn = 17U
} DLDataTypeCode;
typedef struct { uint8_t code; uint8_t bits; uint16_t lanes; } DLDataType;
typedef struct {
    void *data;
    DLDevice device;
    int32_t ndim;
    DLDataType dtype;
    int64_t *shape;
    int64_t *strides;                  /* in elements; NULL: compact row-major */
    uint64_t byte_offset;
} DLTensor;
typedef struct DLManagedTensor {
    DLTensor dl_tensor;
    void *manager_ctx;
    void (*deleter)(struct DLManagedTensor *self);
} DLManagedTensor;
#endif
#if defined(RELAX_OWN_DLPACK) || !defined(DLPACK_MAJOR_VERSION)         /* ours, or a dlpack.h older than 1.0 */
typedef struct { uint32_t major; uint32_t minor; } DLPackVersion;
typedef struct DLManagedTensorVersioned {
    DLPackVersion version;
    void *manager_ctx;
    void (*deleter)(struct DLManagedTensorVersioned *self);
    uint64_t flags;
    DLTensor dl_tensor;
} DLManagedTensorVersioned;
#endif

/* ---- run-time values: what functions of an executable take and give ---- */
typedef struct relax_object relax_object;               /* reference-counted tensor, shape or tuple */
enum {
    RELAX_ANY_NONE = 0,                /* also the empty tuple */
    RELAX_ANY_INT,                     /* u.i; bool too */
    RELAX_ANY_FLOAT,                   /* u.f */
    RELAX_ANY_TENSOR,                  /* u.obj */
    RELAX_ANY_SHAPE,                   /* u.obj */
    RELAX_ANY_TUPLE,                   /* u.obj */
    RELAX_ANY_FUNC,                    /* u.i: function of the executable */
    RELAX_ANY_STR,                     /* u.s: NUL-terminated, lives as long as the executable */
    RELAX_ANY_DLTENSOR                 /* arguments only, u.dl: a tensor of the host, lent for the call */
};
typedef struct relax_any {
    int32_t kind, reserved;
    union { int64_t i; double f; relax_object *obj; const char *s; const DLTensor *dl; } u;
} relax_any;

/* ---- functions of the host that executables call ---- */
/* Destination-passing style: reads the inputs, writes the outputs, which come last. Tensors are compact row-major. */
typedef struct relax_library_call {
    uint32_t struct_size;
    int32_t nargs, nsyms;
    DLTensor *const *args;             /* inputs, then outputs */
    const int64_t *syms;               /* symbolic arguments */
    char *error;                       /* a failing function may put NUL-terminated text here */
    size_t error_size;
    int32_t threads;                   /* what the VM was given; a library may use as many */
} relax_library_call;
typedef relax_status (*relax_library_fn)(void *user, const relax_library_call *call);
/* Any values in, one value out. args are lent for the call; *result is given to the caller (one reference). */
typedef struct relax_packed_call {
    uint32_t struct_size;
    int32_t nargs;
    const relax_any *args;
    relax_any *result;                 /* NONE before */
    char *error;
    size_t error_size;
    relax_vm *vm;                      /* for making tensors; calling functions of it is refused */
} relax_packed_call;
typedef relax_status (*relax_packed_fn)(void *user, const relax_packed_call *call);

/* ---- version, names ---- */
#define RELAX_VERSION_MAJOR 0
#define RELAX_VERSION_MINOR 1
#define RELAX_VERSION_PATCH 0
RELAX_API void relax_version(int32_t *major, int32_t *minor,
                             int32_t *patch); /* of the library; any pointer may be NULL */
RELAX_API const char *relax_version_string(void);
RELAX_API const char *relax_status_name(relax_status s); /* "ok", "invalid argument", … never NULL */
RELAX_API const char *relax_dtype_name(relax_dtype t);                              /* "f32"; "?" for unknown */
RELAX_API relax_dtype relax_dtype_parse(const char *name);                          /* RELAX_DTYPE_UNKNOWN if none */
RELAX_API int32_t relax_dtype_bytes(relax_dtype t);                                 /* of one element; 0 for unknown */

/* ---- context: owns everything else; used by one thread at a time ---- */
typedef struct relax_context_options {
    uint32_t struct_size;
    uint32_t reserved;
    relax_alloc_fn alloc;
    void *alloc_self; /* NULL: malloc. One function: p NULL = allocate, size 0 = free, else reallocate; NULL result =
                         failed */
    relax_log_fn log; void *log_user;                   /* NULL: quiet */
    relax_progress_fn progress; void *progress_user;    /* long operations: phase, done of total */
    relax_cancel_fn cancel; void *cancel_user;          /* polled between kernels, passes, VM instructions */
    relax_parallel_fn parallel;
    void *parallel_user; /* the host's parallel-for; NULL: own threads (relax_vm_options) */
} relax_context_options;
#define RELAX_CONTEXT_OPTIONS_INIT { sizeof(relax_context_options), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }
/* options may be NULL. On failure *out is NULL. */
RELAX_API relax_status relax_context_create(const relax_context_options *options, relax_context **out);
/* Destroys what the context still owns: pipelines, targets, types. Modules, executables and VMs must be destroyed
 * before. NULL is allowed. */
RELAX_API void relax_context_destroy(relax_context *ctx);

typedef struct relax_diagnostic {
    uint32_t struct_size;
    relax_status status;
    char id[8];                                         /* "RX2104": stable */
    const char *message;                                /* valid until the diagnostics are cleared */
    const char *function, *binding;                     /* place in the IR, NULL if none */
    const char *file; uint32_t line, col;               /* place in a text, 0 if none */
    const char *hint;                                   /* what to do, NULL if none */
} relax_diagnostic;
#define RELAX_DIAGNOSTIC_INIT { sizeof(relax_diagnostic), 0, {0}, 0, 0, 0, 0, 0, 0, 0 }
RELAX_API uint32_t relax_diagnostic_count(const relax_context *ctx); /* oldest first; kept until cleared */
RELAX_API relax_status relax_diagnostic_get(const relax_context *ctx, uint32_t i, relax_diagnostic *out);
RELAX_API void relax_diagnostic_clear(relax_context *ctx);
/* "RX2104: mlp: %3: … (hint: …)" of the newest diagnostic, "" if none; valid until cleared */
RELAX_API const char *relax_last_error(relax_context *ctx);

/* ---- dims: integer expressions over symbols, owned by the context. NULL in, NULL out. ---- */
RELAX_API const relax_expr *relax_dim_const(relax_context *ctx, int64_t v);
RELAX_API const relax_expr *relax_dim_add(const relax_expr *a, const relax_expr *b);
RELAX_API const relax_expr *relax_dim_sub(const relax_expr *a, const relax_expr *b);
RELAX_API const relax_expr *relax_dim_mul(const relax_expr *a, const relax_expr *b);
RELAX_API const relax_expr *relax_dim_floordiv(const relax_expr *a, const relax_expr *b);
RELAX_API const relax_expr *relax_dim_floormod(const relax_expr *a, const relax_expr *b);
RELAX_API const relax_expr *relax_dim_min(const relax_expr *a, const relax_expr *b);
RELAX_API const relax_expr *relax_dim_max(const relax_expr *a, const relax_expr *b);
/* the constant value of e; RELAX_E_NOT_FOUND if it has symbols */
RELAX_API relax_status relax_dim_value(const relax_expr *e, int64_t *out);
/* Text of an expression: writes at most size bytes with the final NUL, returns the length needed. */
RELAX_API size_t relax_dim_text(const relax_expr *e, char *out, size_t size);
enum { RELAX_PROVED_FALSE = 0, RELAX_PROVED_TRUE = 1, RELAX_UNPROVED = 2 };
/* Is a == b, a <= b for all values of the symbols within their bounds? (under the facts of b's function if it is not
 * NULL) */
RELAX_API int32_t relax_prove_equal(relax_builder *b, const relax_expr *x, const relax_expr *y);
RELAX_API int32_t relax_prove_le(relax_builder *b, const relax_expr *x, const relax_expr *y);
/* smallest and largest value, INT64_MIN / INT64_MAX where unbounded */
RELAX_API relax_status relax_dim_bounds(relax_builder *b, const relax_expr *e, int64_t *lo, int64_t *hi);

/* ---- annotations, owned by the context ---- */
RELAX_API const relax_type *relax_type_object(relax_context *ctx);
RELAX_API const relax_type *relax_type_prim(relax_context *ctx, relax_dtype dtype, const relax_expr *value_or_null);
RELAX_API const relax_type *relax_type_shape(relax_context *ctx, const relax_expr *const *dims,
                                             int32_t ndim); /* dims NULL: only the rank; ndim -1: unknown */
RELAX_API const relax_type *relax_type_tensor(relax_context *ctx, const relax_expr *const *dims, int32_t ndim,
                                              relax_dtype dtype);
RELAX_API const relax_type *relax_type_tuple(relax_context *ctx, const relax_type *const *fields, uint32_t n);
RELAX_API const relax_type *relax_type_callable(relax_context *ctx, const relax_type *const *params, uint32_t n,
                                                const relax_type *result, int32_t pure);
RELAX_API const relax_type *
relax_type_parse(relax_builder *b, const char *text); /* in the scope of b's function; new names become symbols of it */
enum {
    RELAX_TYPE_OBJECT = 0,
    RELAX_TYPE_PRIM,
    RELAX_TYPE_SHAPE,
    RELAX_TYPE_TENSOR,
    RELAX_TYPE_TUPLE,
    RELAX_TYPE_CALLABLE
};
RELAX_API int32_t relax_type_kind(const relax_type *t);                             /* -1 for NULL */
RELAX_API relax_dtype relax_type_dtype(const relax_type *t);
RELAX_API int32_t relax_type_ndim(const relax_type *t);                             /* -1: unknown or no tensor/shape */
RELAX_API const relax_expr *relax_type_dim(const relax_type *t,
                                           int32_t i); /* NULL: unknown; negative i counts from the end */
RELAX_API uint32_t relax_type_field_count(const relax_type *t);
RELAX_API const relax_type *relax_type_field(const relax_type *t, uint32_t i);
RELAX_API size_t relax_type_text(const relax_type *t, char *out, size_t size);

/* ---- modules ---- */
RELAX_API relax_module *relax_module_create(relax_context *ctx);                    /* NULL on failure */
RELAX_API void relax_module_destroy(relax_module *m);                               /* NULL is allowed */
RELAX_API relax_module *relax_module_parse(relax_context *ctx, const char *name, const char *text,
                                           size_t length); /* length may be RELAX_STRLEN; name: for messages */
RELAX_API relax_status relax_module_parse_into(relax_module *m, const char *name, const char *text, size_t length);
RELAX_API relax_status relax_module_verify(relax_module *m); /* every break of a rule is a diagnostic */
RELAX_API relax_module *relax_module_clone(relax_module *m);
/* the text form; parses back to the same text. Chunks are passed to write until it returns nonzero. */
RELAX_API relax_status relax_module_print(relax_module *m, int32_t (*write)(void *user, const char *text, size_t n),
                                          void *user);
RELAX_API uint32_t relax_module_function_count(relax_module *m);
RELAX_API relax_function *relax_module_function(relax_module *m, uint32_t i);       /* in order of creation */
RELAX_API relax_function *relax_module_find(relax_module *m, const char *name);     /* NULL if absent */
RELAX_API relax_status relax_module_remove(relax_module *m,
                                           relax_function *f); /* must not be called by another function */

/* ---- functions: building. Errors stick to the builder: a NULL operand is accepted and passed on;
 * relax_function_finish reports the first error. ---- */
RELAX_API relax_builder *relax_function_begin(relax_module *m, const char *name);
RELAX_API relax_status relax_function_finish(
    relax_builder *b, relax_value *result); /* frees b in every case; on error the function is removed again */
RELAX_API void relax_function_abandon(relax_builder *b);             /* frees b, removes the function */
RELAX_API relax_status relax_builder_status(const relax_builder *b); /* RELAX_OK, or the first error's status */
RELAX_API const relax_expr *relax_symbol(relax_builder *b,
                                         const char *name); /* a symbol of the function; made if new */
RELAX_API relax_value *relax_param(relax_builder *b, const char *name,
                                   const char *type); /* first mention of a name in a dim defines it */
RELAX_API relax_value *relax_param_typed(relax_builder *b, const char *name, const relax_type *type);
RELAX_API void relax_bound(relax_builder *b, const char *symbol, int64_t lo,
                           int64_t hi);                             /* lo <= symbol <= hi, checked at entry */
RELAX_API void relax_fact(relax_builder *b, const char *condition); /* e.g. "n * m <= 65536", checked at entry */
RELAX_API void relax_private(relax_builder *b);                     /* not callable from outside the module */
RELAX_API void relax_impure(relax_builder *b);                      /* may call impure host functions */
RELAX_API void relax_result_type(relax_builder *b,
                                 const char *type); /* declares the result (needed for recursion) before finish */
RELAX_API relax_function *relax_builder_function(relax_builder *b);
RELAX_API void relax_dataflow_begin(relax_builder *b);
RELAX_API void relax_dataflow_end(relax_builder *b);
RELAX_API relax_value *relax_value_named(relax_builder *b, relax_value *v,
                                         const char *name); /* gives v a name for printing; returns v */

/* values */
RELAX_API relax_value *relax_constant(relax_builder *b, relax_dtype dtype, const int64_t *dims, int32_t ndim,
                                      const void *data); /* compact row-major, copied */
RELAX_API relax_value *relax_scalar(relax_builder *b, relax_dtype dtype, double v);
RELAX_API relax_value *relax_scalar_int(relax_builder *b, relax_dtype dtype, int64_t v);
RELAX_API relax_value *relax_shape(relax_builder *b, const relax_expr *const *dims, int32_t ndim);
RELAX_API relax_value *relax_shape_text(relax_builder *b, const char *dims);                   /* "(n * 2, 2)" */
RELAX_API relax_value *relax_prim(relax_builder *b, const relax_expr *e); /* an integer as a value */
RELAX_API relax_value *relax_function_value(relax_builder *b, relax_function *f);
RELAX_API relax_value *relax_tuple(relax_builder *b, relax_value *const *fields, uint32_t n);
RELAX_API relax_value *relax_tuple_get(relax_builder *b, relax_value *tuple, uint32_t index);
RELAX_API const relax_type *relax_value_type(const relax_value *v);                            /* NULL for NULL */
RELAX_API const relax_expr *relax_value_dim(const relax_value *v, int32_t axis);               /* NULL if unknown */

/* calls */
RELAX_API relax_value *relax_call(relax_builder *b, relax_function *f, relax_value *const *args, uint32_t n);
RELAX_API relax_value *relax_call_value(relax_builder *b, relax_value *f, relax_value *const *args,
                                        uint32_t n); /* a function as a value */
RELAX_API relax_value *relax_call_tir(relax_builder *b, relax_function *prim, relax_value *const *args, uint32_t n,
                                      const char *out, const relax_expr *const *syms, uint32_t nsyms);
RELAX_API relax_value *relax_call_tir_typed(relax_builder *b, relax_function *prim, relax_value *const *args,
                                            uint32_t n, const relax_type *out, const relax_expr *const *syms,
                                            uint32_t nsyms);
/* inplace[i]: the argument that output i is written over (it must not be used afterwards), -1: fresh */
RELAX_API relax_value *relax_call_tir_inplace(relax_builder *b, relax_function *prim, relax_value *const *args,
                                              uint32_t n, const char *out, const relax_expr *const *syms,
                                              uint32_t nsyms, const int32_t *inplace, uint32_t ninplace);
RELAX_API relax_value *relax_call_dps_library(relax_builder *b, const char *name, relax_value *const *args, uint32_t n,
                                              const char *out);
RELAX_API relax_value *relax_call_packed(relax_builder *b, const char *name, relax_value *const *args, uint32_t n,
                                         const char *out, int32_t pure);
RELAX_API relax_value *relax_match_cast(relax_builder *b, relax_value *v, const char *type);
/* if: begin, build the first branch, relax_else with its result, build the second, relax_end_if with its result */
RELAX_API relax_status relax_if(relax_builder *b, relax_value *cond);
RELAX_API relax_status relax_else(relax_builder *b, relax_value *then_result);
RELAX_API relax_value *relax_end_if(relax_builder *b, relax_value *else_result);

/* any operator by name; attrs as text: "axis=-1, keepdims=true" (NULL: none). An absent optional argument is a NULL
 * with index in n. */
RELAX_API relax_value *relax_op(relax_builder *b, const char *name, relax_value *const *args, uint32_t n,
                                const char *attrs);
RELAX_API uint32_t relax_op_count(relax_context *ctx);
typedef struct relax_op_info {
    uint32_t struct_size;
    const char *name, *attrs, *doc;
    int32_t min_args, max_args;
} relax_op_info;
#define RELAX_OP_INFO_INIT { sizeof(relax_op_info), 0, 0, 0, 0, 0 }
RELAX_API relax_status relax_op_describe(relax_context *ctx, uint32_t i, relax_op_info *out);

/* ---- operators by name (semantics: docs/semantics.md). All deduce their annotation; all accept symbolic dims. ---- */
RELAX_API relax_value *relax_abs(relax_builder *b, relax_value *x);
RELAX_API relax_value *relax_negative(relax_builder *b, relax_value *x);
RELAX_API relax_value *relax_exp(relax_builder *b, relax_value *x);
RELAX_API relax_value *relax_log(relax_builder *b, relax_value *x);
RELAX_API relax_value *relax_sqrt(relax_builder *b, relax_value *x);
RELAX_API relax_value *relax_rsqrt(relax_builder *b, relax_value *x);
RELAX_API relax_value *relax_sin(relax_builder *b, relax_value *x);
RELAX_API relax_value *relax_cos(relax_builder *b, relax_value *x);
RELAX_API relax_value *relax_tanh(relax_builder *b, relax_value *x);
RELAX_API relax_value *relax_sigmoid(relax_builder *b, relax_value *x);
RELAX_API relax_value *relax_silu(relax_builder *b, relax_value *x);
RELAX_API relax_value *relax_gelu(relax_builder *b, relax_value *x);
RELAX_API relax_value *relax_gelu_tanh(relax_builder *b, relax_value *x);
RELAX_API relax_value *relax_erf(relax_builder *b, relax_value *x);
RELAX_API relax_value *relax_relu(relax_builder *b, relax_value *x);
RELAX_API relax_value *relax_square(relax_builder *b, relax_value *x);
RELAX_API relax_value *relax_floor(relax_builder *b, relax_value *x);
RELAX_API relax_value *relax_ceil(relax_builder *b, relax_value *x);
RELAX_API relax_value *relax_round(relax_builder *b, relax_value *x);
RELAX_API relax_value *relax_trunc(relax_builder *b, relax_value *x);
RELAX_API relax_value *relax_isnan(relax_builder *b, relax_value *x);
RELAX_API relax_value *relax_logical_not(relax_builder *b, relax_value *x);
RELAX_API relax_value *relax_clip(relax_builder *b, relax_value *x, double lo, double hi);
RELAX_API relax_value *relax_astype(relax_builder *b, relax_value *x, relax_dtype dtype);
RELAX_API relax_value *relax_add(relax_builder *b, relax_value *x, relax_value *y);
RELAX_API relax_value *relax_subtract(relax_builder *b, relax_value *x, relax_value *y);
RELAX_API relax_value *relax_multiply(relax_builder *b, relax_value *x, relax_value *y);
RELAX_API relax_value *relax_divide(relax_builder *b, relax_value *x, relax_value *y);
RELAX_API relax_value *relax_power(relax_builder *b, relax_value *x, relax_value *y);
RELAX_API relax_value *relax_floor_divide(relax_builder *b, relax_value *x, relax_value *y);
RELAX_API relax_value *relax_floor_mod(relax_builder *b, relax_value *x, relax_value *y);
RELAX_API relax_value *relax_maximum(relax_builder *b, relax_value *x, relax_value *y);
RELAX_API relax_value *relax_minimum(relax_builder *b, relax_value *x, relax_value *y);
RELAX_API relax_value *relax_bitwise_and(relax_builder *b, relax_value *x, relax_value *y);
RELAX_API relax_value *relax_bitwise_or(relax_builder *b, relax_value *x, relax_value *y);
RELAX_API relax_value *relax_bitwise_xor(relax_builder *b, relax_value *x, relax_value *y);
RELAX_API relax_value *relax_left_shift(relax_builder *b, relax_value *x, relax_value *y);
RELAX_API relax_value *relax_right_shift(relax_builder *b, relax_value *x, relax_value *y);
RELAX_API relax_value *relax_equal(relax_builder *b, relax_value *x, relax_value *y);
RELAX_API relax_value *relax_not_equal(relax_builder *b, relax_value *x, relax_value *y);
RELAX_API relax_value *relax_less(relax_builder *b, relax_value *x, relax_value *y);
RELAX_API relax_value *relax_less_equal(relax_builder *b, relax_value *x, relax_value *y);
RELAX_API relax_value *relax_greater(relax_builder *b, relax_value *x, relax_value *y);
RELAX_API relax_value *relax_greater_equal(relax_builder *b, relax_value *x, relax_value *y);
RELAX_API relax_value *relax_logical_and(relax_builder *b, relax_value *x, relax_value *y);
RELAX_API relax_value *relax_logical_or(relax_builder *b, relax_value *x, relax_value *y);
RELAX_API relax_value *relax_where(relax_builder *b, relax_value *cond, relax_value *x, relax_value *y);
/* reductions: axes NULL with naxes 0 = all */
RELAX_API relax_value *relax_sum(relax_builder *b, relax_value *x, const int64_t *axes, uint32_t naxes,
                                 int32_t keepdims);
RELAX_API relax_value *relax_mean(relax_builder *b, relax_value *x, const int64_t *axes, uint32_t naxes,
                                  int32_t keepdims);
RELAX_API relax_value *relax_max(relax_builder *b, relax_value *x, const int64_t *axes, uint32_t naxes,
                                 int32_t keepdims);
RELAX_API relax_value *relax_min(relax_builder *b, relax_value *x, const int64_t *axes, uint32_t naxes,
                                 int32_t keepdims);
RELAX_API relax_value *relax_prod(relax_builder *b, relax_value *x, const int64_t *axes, uint32_t naxes,
                                  int32_t keepdims);
RELAX_API relax_value *relax_variance(relax_builder *b, relax_value *x, const int64_t *axes, uint32_t naxes,
                                      int32_t keepdims);
RELAX_API relax_value *relax_argmax(relax_builder *b, relax_value *x, int64_t axis,
                                    int32_t keepdims); /* i64; first of equals, NaN wins */
RELAX_API relax_value *relax_argmin(relax_builder *b, relax_value *x, int64_t axis, int32_t keepdims);
RELAX_API relax_value *relax_cumsum(relax_builder *b, relax_value *x, int64_t axis, int32_t exclusive);
/* creation */
RELAX_API relax_value *relax_full(relax_builder *b, const char *dims, relax_value *fill,
                                  relax_dtype dtype); /* dims "(n, 4)" */
RELAX_API relax_value *relax_zeros(relax_builder *b, const char *dims, relax_dtype dtype);
RELAX_API relax_value *relax_ones(relax_builder *b, const char *dims, relax_dtype dtype);
RELAX_API relax_value *relax_zeros_like(relax_builder *b, relax_value *x);
RELAX_API relax_value *relax_ones_like(relax_builder *b, relax_value *x);
RELAX_API relax_value *relax_full_like(relax_builder *b, relax_value *x, relax_value *fill);
RELAX_API relax_value *relax_arange(relax_builder *b, const char *start, const char *end, const char *step,
                                    relax_dtype dtype); /* expressions as text */
RELAX_API relax_value *relax_eye(relax_builder *b, const char *n, const char *m, int64_t k, relax_dtype dtype);
RELAX_API relax_value *relax_tril(relax_builder *b, relax_value *x, int64_t k);
RELAX_API relax_value *relax_triu(relax_builder *b, relax_value *x, int64_t k);
RELAX_API relax_value *relax_one_hot(relax_builder *b, relax_value *indices, int64_t depth, double on, double off,
                                     int64_t axis, relax_dtype dtype);
/* indexing */
RELAX_API relax_value *relax_take(relax_builder *b, relax_value *x, relax_value *indices, int64_t axis);
RELAX_API relax_value *relax_strided_slice(relax_builder *b, relax_value *x, const int64_t *axes, uint32_t n,
                                           const relax_expr *const *begin, const relax_expr *const *end,
                                           const relax_expr *const *strides); /* strides NULL: 1 */
RELAX_API relax_value *relax_dynamic_strided_slice(relax_builder *b, relax_value *x, relax_value *begin,
                                                   relax_value *end, relax_value *strides);
RELAX_API relax_value *relax_gather_elements(relax_builder *b, relax_value *x, relax_value *indices, int64_t axis);
RELAX_API relax_value *relax_gather_nd(relax_builder *b, relax_value *x, relax_value *indices, int64_t batch_dims);
RELAX_API relax_value *relax_scatter_elements(relax_builder *b, relax_value *x, relax_value *indices,
                                              relax_value *updates, int64_t axis, const char *reduction);
RELAX_API relax_value *relax_scatter_nd(relax_builder *b, relax_value *x, relax_value *indices, relax_value *updates,
                                        const char *reduction);
RELAX_API relax_value *relax_index_put(relax_builder *b, relax_value *x, relax_value *values,
                                       relax_value *const *indices, uint32_t n, int32_t accumulate);
/* linear algebra, shapes */
RELAX_API relax_value *relax_matmul(relax_builder *b, relax_value *x, relax_value *y);
RELAX_API relax_value *relax_reshape(relax_builder *b, relax_value *x, const char *dims); /* -1: the rest */
RELAX_API relax_value *relax_permute_dims(relax_builder *b, relax_value *x, const int64_t *axes,
                                          uint32_t n); /* NULL, 0: reversed */
RELAX_API relax_value *relax_expand_dims(relax_builder *b, relax_value *x, const int64_t *axes, uint32_t n);
RELAX_API relax_value *relax_squeeze(relax_builder *b, relax_value *x, const int64_t *axes,
                                     uint32_t n); /* NULL, 0: all of extent 1 */
RELAX_API relax_value *relax_broadcast_to(relax_builder *b, relax_value *x, const char *dims);
RELAX_API relax_value *relax_concat(relax_builder *b, relax_value *const *xs, uint32_t n, int64_t axis);
RELAX_API relax_value *relax_stack(relax_builder *b, relax_value *const *xs, uint32_t n, int64_t axis);
RELAX_API relax_value *relax_split(relax_builder *b, relax_value *x, int64_t parts, int64_t axis); /* a tuple */
RELAX_API relax_value *relax_split_at(relax_builder *b, relax_value *x, const int64_t *at, uint32_t n, int64_t axis);
RELAX_API relax_value *relax_tile(relax_builder *b, relax_value *x, const int64_t *repeats, uint32_t n);
RELAX_API relax_value *relax_repeat(relax_builder *b, relax_value *x, int64_t repeats, int64_t axis);
RELAX_API relax_value *relax_flip(relax_builder *b, relax_value *x, int64_t axis);
RELAX_API relax_value *relax_flatten(relax_builder *b, relax_value *x);
/* sorting, sets: unique and nonzero have data-dependent shapes; give them names with relax_match_cast */
RELAX_API relax_value *relax_sort(relax_builder *b, relax_value *x, int64_t axis, int32_t descending);
RELAX_API relax_value *relax_argsort(relax_builder *b, relax_value *x, int64_t axis, int32_t descending,
                                     relax_dtype dtype);
RELAX_API relax_value *relax_topk(relax_builder *b, relax_value *x, int64_t k, int64_t axis,
                                  int32_t largest); /* tuple (values, i64 indices) */
RELAX_API relax_value *relax_unique(relax_builder *b, relax_value *x);
RELAX_API relax_value *relax_nonzero(relax_builder *b, relax_value *x);
/* neural networks */
RELAX_API relax_value *relax_softmax(relax_builder *b, relax_value *x, int64_t axis);
RELAX_API relax_value *relax_log_softmax(relax_builder *b, relax_value *x, int64_t axis);
RELAX_API relax_value *relax_rms_norm(relax_builder *b, relax_value *x, relax_value *weight, double epsilon);
RELAX_API relax_value *relax_layer_norm(relax_builder *b, relax_value *x, relax_value *gamma, relax_value *beta,
                                        double epsilon); /* over the last axis */
RELAX_API relax_value *relax_shape_of(relax_builder *b, relax_value *x);
RELAX_API relax_value *relax_shape_to_tensor(relax_builder *b, relax_value *shape);
RELAX_API relax_value *relax_tensor_to_shape(relax_builder *b, relax_value *x);
RELAX_API relax_value *relax_multinomial_from_uniform(relax_builder *b, relax_value *prob, relax_value *uniform,
                                                      relax_value *rows);

/* ---- tensor programs: buffers, loops, scalar expressions. Errors stick as above. ---- */
RELAX_API relax_prim_builder *relax_prim_begin(relax_module *m, const char *name);
RELAX_API relax_buffer *relax_prim_param(relax_prim_builder *p, const char *name,
                                         const char *type); /* "Buffer((k//8, m), u32)" */
RELAX_API const relax_expr *
relax_prim_symbol(relax_prim_builder *p,
                  const char *name); /* an extra symbolic parameter, unless a buffer's shape defines it */
RELAX_API const relax_expr *relax_loop(relax_prim_builder *p, const char *var,
                                       const char *extent); /* spatial; until relax_loop_end */
RELAX_API const relax_expr *relax_loop_reduce(relax_prim_builder *p, const char *var, const char *extent);
RELAX_API void relax_loop_end(relax_prim_builder *p);
RELAX_API relax_buffer *relax_local(relax_prim_builder *p, const char *name,
                                    const char *type); /* local scratch, to the end of the enclosing loop */
RELAX_API void relax_store(relax_prim_builder *p, relax_buffer *buf, const relax_expr *const *index, uint32_t n,
                           const relax_expr *value);
RELAX_API void relax_store_text(relax_prim_builder *p,
                                const char *statement); /* "W[i, j] = f16((Q[i//8, j] >> u32(i%8*4) & u32(15))) *
                                                           S[i//32, j]" or any statements of the text form */
RELAX_API const relax_expr *relax_load(relax_prim_builder *p, relax_buffer *buf, const relax_expr *const *index,
                                       uint32_t n);
RELAX_API const relax_expr *relax_prim_expr(relax_prim_builder *p,
                                            const char *text); /* a scalar expression in the program's scope */
RELAX_API const relax_expr *relax_prim_const(relax_prim_builder *p, relax_dtype dtype, double v);
/* op: one of + - * / // % min max & | ^ << >> == != < <= > >= and or pow */
RELAX_API const relax_expr *relax_prim_binary(relax_prim_builder *p, const char *op, const relax_expr *a,
                                              const relax_expr *b);
/* f: an intrinsic (exp, sqrt, fma, select, …), a dtype (a cast) */
RELAX_API const relax_expr *relax_prim_call(relax_prim_builder *p, const char *f, const relax_expr *const *args,
                                            uint32_t n);
RELAX_API relax_function *relax_prim_finish(relax_prim_builder *p); /* NULL on error; frees p */

/* ---- inspection and rewriting of any module (host passes use the same calls). Values and functions belong to their
 * module. ---- */
enum {
    RELAX_VALUE_PARAM = 0,
    RELAX_VALUE_CONST,
    RELAX_VALUE_SHAPE,
    RELAX_VALUE_PRIM,
    RELAX_VALUE_FUNCTION,
    RELAX_VALUE_STRING,
    RELAX_VALUE_OP,
    RELAX_VALUE_CALL,
    RELAX_VALUE_CALL_TIR,
    RELAX_VALUE_CALL_TIR_INPLACE,
    RELAX_VALUE_CALL_DPS_LIBRARY,
    RELAX_VALUE_CALL_PACKED,
    RELAX_VALUE_TUPLE,
    RELAX_VALUE_TUPLE_GET,
    RELAX_VALUE_MATCH_CAST,
    RELAX_VALUE_IF,
    RELAX_VALUE_ALLOC,
    RELAX_VALUE_CALL_DPS,
    RELAX_VALUE_VIEW
};
RELAX_API const char *relax_function_name(const relax_function *f);
RELAX_API int32_t relax_function_is_prim(const relax_function *f);
RELAX_API uint32_t relax_function_param_count(const relax_function *f);
RELAX_API relax_value *relax_function_param(relax_function *f, uint32_t i);
RELAX_API const relax_type *relax_function_result_type(const relax_function *f);
RELAX_API relax_value *relax_function_result(relax_function *f);
/* Calls visit for every binding in program order (bodies of an if after the if) until it returns nonzero. visit may
 * replace or remove the value it is given and insert before it. */
RELAX_API relax_status relax_function_visit(relax_function *f, int32_t (*visit)(void *user, relax_value *v),
                                            void *user);
RELAX_API int32_t relax_value_kind(const relax_value *v);                           /* -1 for NULL */
RELAX_API const char *relax_value_op(const relax_value *v);     /* operator's name, NULL if it is none */
RELAX_API const char *relax_value_callee(const relax_value *v); /* function's or library's name, NULL if none */
RELAX_API const char *relax_value_name(const relax_value *v);
RELAX_API uint32_t relax_value_arg_count(const relax_value *v);
RELAX_API relax_value *relax_value_arg(const relax_value *v, uint32_t i); /* NULL: an absent optional argument */
RELAX_API relax_status relax_value_attr_text(const relax_value *v, const char *key, char *out, size_t size);
RELAX_API uint32_t relax_value_use_count(relax_value *v);
RELAX_API relax_status
relax_value_replace(relax_value *v, relax_value *with); /* every use of v becomes with; annotations are deduced again */
RELAX_API relax_status relax_value_set_arg(relax_value *v, uint32_t i, relax_value *arg);
RELAX_API relax_status relax_value_remove(relax_value *v);                          /* must have no uses */
/* a builder that inserts before v; finish it with relax_insert_end */
RELAX_API relax_builder *relax_insert_before(relax_value *v);
RELAX_API relax_status relax_insert_end(relax_builder *b);
RELAX_API size_t relax_function_text(relax_function *f, char *out, size_t size);

/* ---- passes and pipelines ---- */
typedef relax_status (*relax_pass_fn)(void *user,
                                      relax_module *m); /* leaves m valid, or returns a status: then m is as it was */
RELAX_API relax_pipeline *
relax_pipeline_parse(relax_context *ctx, const char *text); /* "default", or "legalize,plan-memory(reuse=false),…" */
RELAX_API void relax_pipeline_destroy(relax_pipeline *p);
RELAX_API relax_status relax_pipeline_insert_after(relax_pipeline *p, const char *after, const char *name,
                                                   relax_pass_fn fn, void *user); /* after NULL: at the front */
RELAX_API relax_status relax_pipeline_insert_before(relax_pipeline *p, const char *before, const char *name,
                                                    relax_pass_fn fn, void *user); /* before NULL: at the end */
RELAX_API relax_status relax_pipeline_remove(relax_pipeline *p, const char *name);
RELAX_API size_t relax_pipeline_text(relax_pipeline *p, char *out, size_t size);
/* print(user, pass name, 0 before / 1 after, text) for passes in the list ("all", "legalize,fold-constant"; NULL: none)
 */
RELAX_API relax_status relax_pipeline_print(relax_pipeline *p, const char *before, const char *after,
                                            void (*print)(void *user, const char *pass, int32_t after,
                                                          const char *text),
                                            void *user);
RELAX_API relax_status relax_pipeline_verify_each(
    relax_pipeline *p, int32_t on); /* the verifier after every pass (host and plugin passes: always) */
RELAX_API relax_status relax_pipeline_set_target(relax_pipeline *p,
                                                 relax_target *t); /* what `schedule` schedules for; NULL: none */
RELAX_API relax_status relax_pipeline_run(relax_pipeline *p,
                                          relax_module *m); /* on failure m is as it was before the failing pass */
RELAX_API uint32_t relax_pipeline_time_count(const relax_pipeline *p);              /* of the last run */
RELAX_API relax_status relax_pipeline_time(const relax_pipeline *p, uint32_t i, const char **name,
                                           int64_t *nanoseconds);
RELAX_API uint32_t relax_pass_count(relax_context *ctx);
RELAX_API relax_status relax_pass_describe(relax_context *ctx, uint32_t i, const char **name, const char **doc);

/* ---- targets and building ---- */
RELAX_API relax_target *
relax_target_parse(relax_context *ctx,
                   const char *text); /* "cpu", "cpu:x86-64-v3", "cpu:aarch64+dotprod"; owned by the context */
RELAX_API const char *relax_target_text(const relax_target *t);
typedef struct relax_build_options {
    uint32_t struct_size;
    int32_t opt_level;                                  /* of the code generator, 0..3 */
    const char *pipeline;                               /* passes before code generation; NULL: "default" */
    int32_t verify;                                     /* nonzero: verifier after each pass */
    int32_t reserved;
} relax_build_options;
#define RELAX_BUILD_OPTIONS_INIT { sizeof(relax_build_options), 2, 0, 0, 0 }
/* Compiles a copy of m (m is unchanged) for t. options may be NULL. */
RELAX_API relax_status relax_build(relax_module *m, relax_target *t, const relax_build_options *options,
                                   relax_executable **out);
/* Runs a function of m in the interpreter, at any stage of lowering: slow, exact; args and result as relax_vm_call. */
RELAX_API relax_status relax_interpret(relax_module *m, const char *function, DLManagedTensorVersioned *const *args,
                                       uint32_t n, DLManagedTensorVersioned **out);

/* ---- plugins: see docs/plugins.md and relax_plugin.h ---- */
RELAX_API relax_status relax_plugin_load(relax_context *ctx, const char *path);

/* ---- executables: immutable, shared by any number of threads; librelax_rt has these without the compiler.
 * Opening and inspecting are safe on untrusted bytes. Activating native code (relax_vm_create) is like running a
 * program. ---- */
RELAX_API relax_status relax_executable_load_file(relax_context *ctx, const char *path,
                                                  relax_executable **out); /* mapped */
/* borrow nonzero: the bytes (at a multiple of 64) are used in place and must stay unchanged; else they are copied */
RELAX_API relax_status relax_executable_load_memory(relax_context *ctx, const void *bytes, size_t size, int32_t borrow,
                                                    relax_executable **out);
RELAX_API void relax_executable_destroy(relax_executable *e);                       /* its VMs keep what they need */
/* Maps the native code. verify (may be NULL) sees its bytes first, nonzero refuses. relax_vm_create does it without a
 * verify when it was not done. Call it once, before the executable is shared between threads. Running native code is
 * running a program: trust it first. */
RELAX_API relax_status relax_executable_activate(relax_executable *e,
                                                 int32_t (*verify)(void *user, const void *bytes, size_t n),
                                                 void *user);
RELAX_API relax_status relax_executable_save(const relax_executable *e,
                                             const char *path); /* the old file or the whole new one, never a part */
RELAX_API relax_status relax_executable_bytes(const relax_executable *e, const void **bytes, size_t *size);
RELAX_API uint32_t relax_executable_function_count(const relax_executable *e);      /* public functions */
RELAX_API const char *relax_executable_function_name(const relax_executable *e, uint32_t i);
RELAX_API size_t relax_executable_signature(const relax_executable *e, const char *function, char *out,
                                            size_t size); /* "mlp(x: Tensor((n, 256), f32), …) -> … where …" */
RELAX_API uint32_t relax_executable_weight_count(const relax_executable *e);
RELAX_API const char *relax_executable_weight_name(const relax_executable *e, uint32_t i);
RELAX_API const char *relax_executable_weight_type(const relax_executable *e, uint32_t i);     /* annotation as text */
/* everything that `relax info` prints; code nonzero: bytecode and shape program too. Returns the length needed. */
RELAX_API size_t relax_executable_text(const relax_executable *e, int32_t code, char *out, size_t size);
RELAX_API const char *relax_executable_property(
    const relax_executable *e,
    const char *key); /* provenance and metadata: "target", "relax.version", "gguf.architecture", …; NULL if absent */
typedef struct relax_sym_value { const char *name; int64_t value; } relax_sym_value;
/* peak activation bytes of one call, before running; the formula as text */
RELAX_API relax_status relax_executable_peak_memory(const relax_executable *e, const char *function,
                                                    const relax_sym_value *syms, uint32_t n, int64_t *bytes);
RELAX_API size_t relax_executable_memory_formula(const relax_executable *e, const char *function, char *out,
                                                 size_t size);

/* ---- VM: runs an executable; one thread at a time, many VMs share one executable and its weights ---- */
typedef struct relax_vm_options {
    uint32_t struct_size;
    int32_t threads; /* 0: all cores; 1: none but the caller's; ignored with a host's parallel-for */
    int32_t profile;                                    /* nonzero: time every kernel */
    int32_t reserved;
    relax_context *context; /* where the VM reports errors and finds library functions; NULL: the executable's. VMs
                             * on different threads need contexts of their own (and an allocator fit for that). */
} relax_vm_options;
#define RELAX_VM_OPTIONS_INIT { sizeof(relax_vm_options), 0, 0, 0, 0 }
RELAX_API relax_status relax_vm_create(relax_executable *e, const relax_vm_options *options, relax_vm **out);
RELAX_API void relax_vm_destroy(relax_vm *vm);
RELAX_API relax_context *relax_vm_context(const relax_vm *vm);                      /* where its errors are */
/* Tensors only: args are lent for the call; *out is the result, to be freed by its deleter (a tuple result: use
 * relax_vm_invoke). */
RELAX_API relax_status relax_vm_call(relax_vm *vm, const char *function, DLManagedTensorVersioned *const *args,
                                     uint32_t n, DLManagedTensorVersioned **out);
/* Results are written into tensors of the host; no allocation. */
RELAX_API relax_status relax_vm_call_into(relax_vm *vm, const char *function, const relax_any *args, uint32_t n,
                                          DLTensor *const *outs, uint32_t nouts);
/* Any values. *result holds one reference, released by relax_any_release. */
RELAX_API relax_status relax_vm_invoke(relax_vm *vm, const char *function, const relax_any *args, uint32_t n,
                                       relax_any *result);
/* Weights are bound by name and never copied: the memory must stay until the VM and its results are gone. */
RELAX_API relax_status relax_vm_bind_weight(relax_vm *vm, const char *name, const DLTensor *t);
RELAX_API relax_status relax_vm_memory(const relax_vm *vm, size_t *held,
                                       size_t *arena_peak); /* bytes kept between calls; largest arena so far */
RELAX_API uint32_t relax_vm_profile_count(const relax_vm *vm);
RELAX_API relax_status relax_vm_profile(const relax_vm *vm, uint32_t i, const char **kernel, int64_t *calls,
                                        int64_t *nanoseconds);
RELAX_API void relax_any_release(relax_any *v); /* drops the reference; v becomes NONE */
RELAX_API relax_any relax_any_retain(const relax_any *v);
RELAX_API uint32_t relax_any_count(const relax_any *v); /* fields of a tuple, dims of a shape, else 0 */
RELAX_API relax_any relax_any_field(const relax_any *v,
                                    uint32_t i); /* borrowed field of a tuple; dim of a shape as INT */
RELAX_API relax_status relax_any_dltensor(const relax_any *v, DLTensor *out);       /* borrowed view of a tensor */
RELAX_API relax_status relax_any_to_dlpack(relax_context *ctx, const relax_any *v,
                                           DLManagedTensorVersioned **out); /* takes one more reference */
RELAX_API relax_status
relax_any_from_dlpack(relax_context *ctx, DLManagedTensorVersioned *t,
                      relax_any *out); /* takes t (calls its deleter when done) also on failure */
RELAX_API relax_status relax_tensor_create(relax_context *ctx, relax_dtype dtype, const int64_t *dims, int32_t ndim,
                                           relax_any *out); /* zeroed */
RELAX_API relax_status relax_shape_create(relax_context *ctx, const int64_t *dims, int32_t ndim, relax_any *out);
RELAX_API relax_status relax_tuple_create(relax_context *ctx, const relax_any *fields, uint32_t n,
                                          relax_any *out); /* retains fields */

/* ---- library functions of the host, per context ---- */
RELAX_API relax_status relax_library_register(relax_context *ctx, const char *name, relax_library_fn fn, void *user);
RELAX_API relax_status relax_packed_register(relax_context *ctx, const char *name, relax_packed_fn fn, void *user);
RELAX_API relax_status relax_library_unregister(relax_context *ctx, const char *name);
/* Any C function by address, called through libffi. signature: result ':' arguments, e.g. "i:pppll": result v (none) or
 * i (int, 0 = success); p the next tensor's first element, i / l the next symbolic argument as int / int64_t, f / d the
 * bits of a double in it as float / double. */
RELAX_API relax_status relax_library_register_foreign(relax_context *ctx, const char *name, void *function,
                                                      const char *signature);
/* "openblas.sgemm" (a, b) -> a @ b; RX4110 with a hint when OpenBLAS is absent */
RELAX_API relax_status relax_openblas_register(relax_context *ctx);

/* ---- GGUF and safetensors: weights stay in the mapped file ---- */
typedef struct relax_weights relax_weights;
RELAX_API relax_status relax_weights_open(relax_context *ctx, const char *path,
                                          relax_weights **out); /* .gguf or .safetensors; untrusted */
RELAX_API void relax_weights_close(relax_weights *w);                               /* after the VMs that use it */
RELAX_API uint32_t relax_weights_count(const relax_weights *w);
/* dims as stored for the compiler: block-quantised tensors are u8 (…, row bytes); type: "q4_k", "f32", … */
RELAX_API relax_status relax_weights_get(const relax_weights *w, uint32_t i, const char **name, const char **type,
                                         DLTensor *t);
RELAX_API size_t relax_weights_text(const relax_weights *w, char *out,
                                    size_t size); /* metadata and tensors, for people */
RELAX_API relax_status
relax_weights_meta(const relax_weights *w, const char *key, char *out,
                   size_t size); /* scalars and strings as text; "librelax.fingerprint": a hash of the file's header */
RELAX_API relax_status relax_vm_bind_weights(relax_vm *vm,
                                             const relax_weights *w); /* binds every weight that the executable names */
typedef struct relax_model_options {
    uint32_t struct_size;
    int32_t exact;                                      /* float32 cache and activations */
    int64_t context; /* bound of tokens and cache; 0: the model's own, at most 4096 */
} relax_model_options;
#define RELAX_MODEL_OPTIONS_INIT { sizeof(relax_model_options), 0, 0 }
/* A module with prefill, decode and embed for a GGUF model of a known family (docs/models.md). */
RELAX_API relax_module *relax_model_import(relax_context *ctx, const relax_weights *w,
                                           const relax_model_options *options);

/* ---- tokenizers from a GGUF file ---- */
typedef struct relax_tokenizer relax_tokenizer;
RELAX_API relax_status relax_tokenizer_create(const relax_weights *w, relax_tokenizer **out);
RELAX_API void relax_tokenizer_destroy(relax_tokenizer *t);
/* Writes at most capacity ids, returns how many there are (call again with room), or -1 on error. special: markers in
 * the text become control tokens. */
RELAX_API int64_t relax_tokenizer_encode(relax_tokenizer *t, const char *text, size_t length, int32_t add_bos,
                                         int32_t special, int32_t *ids, size_t capacity);
RELAX_API int64_t relax_tokenizer_decode(relax_tokenizer *t, const int32_t *ids, size_t n, int32_t special, char *out,
                                         size_t size);
RELAX_API int32_t relax_tokenizer_is_end(const relax_tokenizer *t, int32_t id);
/* the chat prompt of a known template family; roles and contents are NUL-terminated. Returns the length, -1 for an
 * unknown template (see the diagnostic). */
RELAX_API int64_t relax_tokenizer_chat(relax_tokenizer *t, const char *const *roles, const char *const *contents,
                                       uint32_t n, int32_t generation_prompt, char *out, size_t size);

/* ---- generation: an executable of relax_model_import, its weights, a cache ---- */
typedef struct relax_generator relax_generator;
typedef struct relax_sampling {
    uint32_t struct_size;
    float temperature;                                  /* 0: greedy */
    int32_t top_k;                                      /* 0: off */
    float top_p, min_p;                                 /* 1 and 0: off */
    float repetition_penalty;                           /* 1: off */
    int32_t penalty_window;                             /* tokens looked back at */
    uint64_t seed;
} relax_sampling;
#define RELAX_SAMPLING_INIT { sizeof(relax_sampling), 0.0f, 0, 1.0f, 0.0f, 1.0f, 64, 0 }
RELAX_API relax_status relax_generator_create(relax_executable *e, const relax_weights *w,
                                              const relax_vm_options *options, relax_generator **out);
RELAX_API void relax_generator_destroy(relax_generator *g);
RELAX_API relax_vm *relax_generator_vm(relax_generator *g);
RELAX_API relax_status relax_generator_set_sampling(relax_generator *g, const relax_sampling *s);
RELAX_API relax_status relax_generator_reset(relax_generator *g); /* forgets all tokens; memory is kept */
RELAX_API relax_status relax_generator_feed(relax_generator *g, const int32_t *ids,
                                            size_t n); /* runs the model on tokens; logits of the last one */
RELAX_API relax_status relax_generator_logits(relax_generator *g, const float **logits,
                                              size_t *n); /* valid until the next feed */
RELAX_API relax_status relax_generator_sample(relax_generator *g,
                                              int32_t *id); /* picks from the logits; does not feed */
RELAX_API int64_t relax_generator_position(const relax_generator *g);

#ifdef __cplusplus
}
#endif
#endif
