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

#ifdef __cplusplus
}
#endif
#endif
