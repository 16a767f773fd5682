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
    RELAX_DTYPE_UNKNOWN = 0, RELAX_BOOL, RELAX_I8, RELAX_I16, RELAX_I32, RELAX_I64, RELAX_U8, RELAX_U16, RELAX_U32, RELAX_U64,
    RELAX_F16, RELAX_BF16, RELAX_F32, RELAX_F64, RELAX_F8E4M3, RELAX_F8E5M2, RELAX_DTYPE_COUNT
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

/* ---- DLPack 1.x, the declarations that tensors cross by (the names of the standard; skipped when dlpack.h came first) ---- */
#ifndef DLPACK_VERSION
#ifndef DLPACK_DLPACK_H_
#define DLPACK_DLPACK_H_
#define DLPACK_MAJOR_VERSION 1
#define DLPACK_MINOR_VERSION 0
#define DLPACK_FLAG_BITMASK_READ_ONLY (1UL << 0UL)
#define DLPACK_FLAG_BITMASK_IS_COPIED (1UL << 1UL)
typedef struct { uint32_t major, minor; } DLPackVersion;
typedef enum { kDLCPU = 1, kDLCUDA = 2, kDLOpenCL = 4, kDLVulkan = 7, kDLMetal = 8, kDLWebGPU = 15 } DLDeviceType;
typedef struct { DLDeviceType device_type; int32_t device_id; } DLDevice;
typedef enum {
    kDLInt = 0, kDLUInt = 1, kDLFloat = 2, kDLOpaqueHandle = 3, kDLBfloat = 4, kDLComplex = 5, kDLBool = 6,
    kDLFloat8_e4m3fn = 10, kDLFloat8_e5m2 = 12
} DLDataTypeCode;
typedef struct { uint8_t code, bits; uint16_t lanes; } DLDataType;
typedef struct {
    void *data; DLDevice device; int32_t ndim; DLDataType dtype; int64_t *shape; int64_t *strides; uint64_t byte_offset;
} DLTensor;
typedef struct DLManagedTensor { DLTensor dl_tensor; void *manager_ctx; void (*deleter)(struct DLManagedTensor *self); } DLManagedTensor;
typedef struct DLManagedTensorVersioned {
    DLPackVersion version; void *manager_ctx; void (*deleter)(struct DLManagedTensorVersioned *self); uint64_t flags; DLTensor dl_tensor;
} DLManagedTensorVersioned;
#endif
#endif

/* END */
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
    kDLCPU = 1, kDLCUDA = 2, kDLCUDAHost = 3, kDLOpenCL = 4, kDLVulkan = 7, kDLMetal = 8, kDLVPI = 9, kDLROCM = 10, kDLROCMHost = 11,
    kDLExtDev = 12, kDLCUDAManaged = 13, kDLOneAPI = 14, kDLWebGPU = 15, kDLHexagon = 16, kDLMAIA = 17
} DLDeviceType;
typedef struct { DLDeviceType device_type; int32_t device_id; } DLDevice;
typedef enum {
    kDLInt = 0U, kDLUInt = 1U, kDLFloat = 2U, kDLOpaqueHandle = 3U, kDLBfloat = 4U, kDLComplex = 5U, kDLBool = 6U, kDLFloat8_e3m4 = 7U,
    kDLFloat8_e4m3 = 8U, kDLFloat8_e4m3b11fnuz = 9U, kDLFloat8_e4m3fn = 10U, kDLFloat8_e4m3fnuz = 11U, kDLFloat8_e5m2 = 12U,
    kDLFloat8_e5m2fnuz = 13U, kDLFloat8_e8m0fnu = 14U, kDLFloat6_e2m3fn = 15U, kDLFloat6_e3m2fn = 16U, kDLFloat4_e2m1fn = 17U
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

#ifdef __cplusplus
}
#endif
#endif
