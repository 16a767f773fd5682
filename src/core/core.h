/* core.h: data types, status and diagnostics, context, targets. Everything else has a context. */
#ifndef RX_CORE_H
#define RX_CORE_H
#include <relax.h>
#include "base/base.h"

/* --- dtype.c: relax_dtype (relax.h) is a small integer: RELAX_F32 ... One element is rx_dtype_bytes wide --- */
/* kind: 'i' 'u' 'f' 'b' (bool), 0 unknown */
typedef struct rx_dtype_info { const char *name; uint8_t bits, kind; } rx_dtype_info;
extern const rx_dtype_info rx_dtypes[];                         /* by relax_dtype; [RELAX_DTYPE_UNKNOWN].name is "?" */
size_t rx_dtype_bytes(relax_dtype t);
bool rx_dtype_is_float(relax_dtype t);
bool rx_dtype_is_int(relax_dtype t);                            /* signed or unsigned, not bool */
bool rx_dtype_is_uint(relax_dtype t);
relax_dtype rx_dtype_parse(const char *s, size_t n);            /* RELAX_DTYPE_UNKNOWN if none */
void rx_dtype_int_range(relax_dtype t, int64_t *lo, int64_t *hi);   /* u64: hi = INT64_MAX */
/* element access of any dtype, conversions as documented in docs/semantics.md */
double rx_load_f64(relax_dtype t, const void *p);
int64_t rx_load_i64(relax_dtype t, const void *p);
void rx_store_f64(relax_dtype t, void *p, double v);            /* to int: truncates toward zero, saturates, NaN -> 0 */
void rx_store_i64(relax_dtype t, void *p, int64_t v);           /* to int: wraps at the width */
/* one element, the cast of the language */
void rx_convert(relax_dtype to, void *d, relax_dtype from, const void *s);
void rx_put_element(rx_buf *b, relax_dtype t, const void *p);   /* as text: true, -3, 0.5 */

/* --- diag.c --- */
enum rx_err {
#define RX(num, name, status, text) RXE_##name = num,
#include "core/errors.def"
#undef RX
};
/* where in the program: any part may be NULL/0 */
typedef struct rx_where { const char *function, *binding, *file; uint32_t line, col; } rx_where;
/* Record a diagnostic on ctx and unwind to the innermost frame. %s etc. as printf (no floats). */
RX_NORETURN void rx_fail(relax_context *ctx, enum rx_err e, const rx_where *w, const char *fmt, ...) RX_PRINTF(4, 5);
/* the same with a hint: what the user can do */
RX_NORETURN void rx_fail_hint(relax_context *ctx, enum rx_err e, const rx_where *w, const char *hint, const char *fmt,
                              ...) RX_PRINTF(5, 6);
/* record an error and go on (parsers, verifiers that report all) */
void rx_report(relax_context *ctx, enum rx_err e, const rx_where *w, const char *hint, const char *fmt, ...)
    RX_PRINTF(5, 6);
/* record and return the status that belongs to e: for code outside frames (runtime). ctx may be NULL.
 * Never allocates on OOM. */
relax_status rx_error(relax_context *ctx, enum rx_err e, const rx_where *w, const char *hint, const char *fmt, ...)
    RX_PRINTF(5, 6);
void rx_diag_clear(relax_context *ctx);
relax_status rx_diag_status(const relax_context *ctx);          /* status of the newest error, RELAX_OK if none */
uint32_t rx_diag_count(const relax_context *ctx);
/* forget the errors recorded after `count` (a caught try) */
void rx_diag_truncate(relax_context *ctx, uint32_t count);
/* the place in a text of the newest diagnostic, unless it has one; file must be interned or constant */
void rx_diag_locate(relax_context *ctx, const char *file, uint32_t line, uint32_t col);
/* add a note to the newest diagnostic (dropped when there is none, or no memory) */
void rx_note(relax_context *ctx, const char *fmt, ...) RX_PRINTF(2, 3);
typedef struct rx_diag_note { struct rx_diag_note *next; const char *text; size_t size; } rx_diag_note;
typedef struct rx_diag {
    enum rx_err err;
    relax_status status;
    const char *message;               /* never NULL */
    const char *hint;                  /* or NULL */
    rx_where where;
    rx_diag_note *notes;               /* oldest first */
    void *text; size_t text_size;      /* the block that holds all the strings above; diag.c's own */
} rx_diag;
/* the i-th oldest; valid until the store is cleared, truncated or added to. NULL when i is out of range */
const rx_diag *rx_diag_at(const relax_context *ctx, uint32_t i);
relax_status rx_err_status(enum rx_err e);
const char *rx_err_text(enum rx_err e);                         /* the sentence of errors.def */
typedef struct rx_diags rx_diags;
/* for context.c: the store lives in the heap, not in the arena */
rx_diags *rx_diags_create(rx_heap *h);                          /* NULL on failure */
void rx_diags_destroy(rx_heap *h, rx_diags *d);
/* An invariant of ours; costs nothing to keep in release builds. */
#define RX_CHECK(ctx, cond)                                                                                   \
    do {                                                                                                      \
        if (!(cond))                                                                                          \
            rx_fail((ctx), RXE_INTERNAL, NULL, "%s:%d: %s", __FILE_NAME__, __LINE__, #cond);                  \
    } while (0)
#ifndef __FILE_NAME__
#define __FILE_NAME__ __FILE__
#endif

/* --- context.c --- */
typedef struct rx_exprs rx_exprs;      /* expr/ */
typedef struct rx_types rx_types;      /* graph/ */
typedef struct rx_optab rx_optab;      /* op/ */
struct relax_context {
    uint32_t magic;                    /* RX_CTX_MAGIC while alive */
    rx_heap heap;
    rx_arena arena;                    /* lives as long as the context */
    rx_strs strs;                      /* names */
    rx_diags *diags;
    rx_exprs *exprs;                   /* sub-contexts of the compiler rooms, made at first use; NULL in librelax_rt */
    rx_types *types;
    rx_optab *ops;
    struct rx_passtab *passes;         /* pass/: host and plugin passes, dlopened backends */
    struct rx_llvm_lib *llvm;          /* codegen/: the private shared object of LLVM, opened by the first CPU build */
    relax_log_fn log; void *log_user;
    relax_progress_fn progress; void *progress_user;
    relax_cancel_fn cancel; void *cancel_user;
    relax_parallel_fn parallel; void *parallel_user;            /* host's parallel-for, or NULL */
    struct rx_libtab *libs;            /* rt/: library registry */
    void (*at_destroy[8])(relax_context *); uint32_t n_at_destroy;   /* run newest first before the arena goes */
};
#define RX_CTX_MAGIC 0x52454C58u
/* fn NULL: malloc. RELAX_OK or RELAX_E_NOMEM (*out NULL then). Callbacks are set as fields afterwards. */
relax_status rx_context_create(rx_alloc_fn fn, void *self, relax_context **out);
void rx_context_destroy(relax_context *ctx);                    /* NULL is fine */
bool rx_ctx_ok(const relax_context *ctx);                       /* not NULL, alive */
void rx_log(relax_context *ctx, relax_log_level level, const char *fmt, ...) RX_PRINTF(3, 4);
/* progress of a long operation; fails with RXE_CANCELLED (unwinds) when the host's cancel callback says so */
void rx_progress(relax_context *ctx, const char *phase, int64_t done, int64_t total);
bool rx_cancelled(relax_context *ctx);
const char *rx_str(relax_context *ctx, const char *s);          /* intern NUL-terminated */
const char *rx_strn(relax_context *ctx, const char *s, size_t n);
const char *rx_strf(relax_context *ctx, const char *fmt, ...) RX_PRINTF(2, 3);

/* --- target.c: a target is data: kind + feature table. "cpu" == "cpu:host", "cpu:aarch64+dotprod" --- */
typedef enum rx_target_kind { RX_TARGET_CPU, RX_TARGET_NULL } rx_target_kind;
typedef enum rx_arch { RX_ARCH_X86_64, RX_ARCH_AARCH64 } rx_arch;
/* CPU features that code generation may use; targets.def lists the levels */
enum { RX_F_SSE42 = 1u << 0, RX_F_AVX2 = 1u << 1, RX_F_FMA = 1u << 2, RX_F_F16C = 1u << 3,
       RX_F_AVX512 = 1u << 4 /* f bw dq vl cd */,
       RX_F_AVX512_VNNI = 1u << 5, RX_F_AVX512_BF16 = 1u << 6, RX_F_AVX_VNNI = 1u << 7, RX_F_BMI2 = 1u << 8,
       RX_F_NEON = 1u << 16, RX_F_DOTPROD = 1u << 17, RX_F_I8MM = 1u << 18,
       RX_F_FP16 = 1u << 19, RX_F_BF16 = 1u << 20 };
struct relax_target {
    relax_context *ctx;
    rx_target_kind kind; rx_arch arch;
    uint32_t features;                 /* RX_F_* */
    uint32_t vector_bits;              /* preferred vector width: 128, 256, 512 */
    uint32_t threads_hint;
    const char *name;                  /* canonical text, parses back to the same target */
};
/* one row of targets.def; llvm is the attribute text: "+avx2" */
typedef struct rx_feature_info {
    const char *name;
    rx_arch arch;
    uint32_t bit, needs;
    const char *llvm;
} rx_feature_info;
extern const rx_feature_info rx_features[];
extern const uint32_t rx_n_features;
relax_target *rx_target_parse(relax_context *ctx, const char *s, size_t n);     /* unwinds with RXE_TARGET */
uint32_t rx_host_features(void);       /* what this machine has (cpuid, xgetbv) */
rx_arch rx_host_arch(void);
#endif
