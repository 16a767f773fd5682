/* rt.h: the runtime: objects (tensors, shapes, tuples), executables, the VM, the thread pool, host and library
 * functions.
 *
 * Everything here returns a status through rx_error and checks allocations; nothing unwinds. Threads: an executable is
 * immutable once activated and may be shared; objects are reference-counted atomically and may be released on any
 * thread; a VM and the context that it reports to belong to one thread at a time. Memory of objects, executables and
 * VMs comes from the allocator of the context that made them, called directly (not through the heap's counters), so a
 * host that uses several threads gives an allocator that may be called from all of them, as the default one may. */
#ifndef RX_RT_H
#define RX_RT_H
#include <stdatomic.h>

#include "core/core.h"
#include "pkg/pkg.h"

typedef struct rx_memfn { rx_alloc_fn fn; void *self; } rx_memfn;       /* a host's allocator */
rx_memfn rx_memfn_of(const relax_context *ctx);

/* ================= object.c: reference-counted objects ================= */
/* BORROWED: the memory is not this object's nor its base's: copied when it leaves the call that lent it */
enum { RX_OBJ_BORROWED = 1, RX_OBJ_READ_ONLY = 2 };
struct relax_object {
    _Atomic uint32_t refs;
    _Atomic uint32_t pool;             /* RX_POOL_*: how it is recycled by the VM that made it */
    uint8_t kind, flags;               /* RELAX_ANY_TENSOR, _SHAPE, _TUPLE; RX_OBJ_* */
    uint16_t depth;                    /* TUPLE: nesting of tuples in it, at most RX_TUPLE_DEPTH */
    uint32_t nodes;                    /* TUPLE: values in it, as often as they occur, at most RX_TUPLE_NODES */
    size_t size;                       /* bytes of this allocation */
    rx_memfn mem;
};
#define RX_TUPLE_DEPTH 64
#define RX_TUPLE_NODES (1 << 20)
enum { RX_POOL_NONE = 0, RX_POOL_LIVE, RX_POOL_IDLE };
typedef struct rx_tensor {             /* compact row-major, on the CPU */
    relax_object h;
    void *data;                        /* first element */
    int64_t bytes;                     /* of the elements */
    size_t capacity;                   /* of memory owned by this tensor; 0: not owned */
    relax_object *base;                /* a view keeps its owner */
    DLManagedTensorVersioned *dl;      /* imported: given back when the last reference goes */
    DLManagedTensor *dl_old;
    void (*done)(void *arg); void *done_arg;            /* borrowed host memory: called when the last reference goes */
    relax_dtype dtype;
    int32_t ndim;
    int64_t dims[RX_PKG_MAX_NDIM];
} rx_tensor;
typedef struct rx_shape { relax_object h; int32_t n; int64_t dims[RX_PKG_MAX_NDIM]; } rx_shape;
typedef struct rx_tuple { relax_object h; int32_t n, cap; relax_any at[]; } rx_tuple;
relax_object *rx_retain(relax_object *o);                               /* NULL stays NULL */
void rx_release(relax_object *o);
void rx_any_retain(const relax_any *v);
void rx_any_release(relax_any *v);                                      /* and sets it to NONE */
/* NULL: out of memory. n is at most RX_PKG_MAX_NDIM. */
rx_shape *rx_shape_new(rx_memfn m, const int64_t *dims, int32_t n);
/* takes a reference of each; NULL: out of memory, or nested too deeply */
rx_tuple *rx_tuple_new(rx_memfn m, const relax_any *at, int32_t n);

/* ================= tensor.c ================= */
bool rx_dtype_from_dl(DLDataType t, relax_dtype *out);                  /* false: not one of ours */
DLDataType rx_dtype_to_dl(relax_dtype t);
/* false: a negative dim or too large */
bool rx_tensor_bytes(relax_dtype t, const int64_t *dims, int32_t ndim, int64_t *bytes);
/* contents are undefined */
relax_status rx_tensor_new(relax_context *ctx, relax_dtype t, const int64_t *dims, int32_t ndim, rx_tensor **out);
/* memory of the host, e.g. a mapped file, never copied; done (may be NULL) is called when nothing refers to it */
relax_status rx_tensor_borrow(relax_context *ctx, relax_dtype t, const int64_t *dims, int32_t ndim, void *data,
                              bool read_only, void (*done)(void *arg), void *arg, rx_tensor **out);
/* Take a DLPack tensor (on success only): zero copy where it is compact and aligned to the element, else one copy. */
relax_status rx_tensor_import(relax_context *ctx, DLManagedTensorVersioned *m, rx_tensor **out);
relax_status rx_tensor_import_old(relax_context *ctx, DLManagedTensor *m, rx_tensor **out);
/* Give a DLPack tensor that shares the memory; the consumer calls its deleter (any thread). */
relax_status rx_tensor_export(relax_context *ctx, rx_tensor *t, DLManagedTensorVersioned **out);
relax_status rx_tensor_export_old(relax_context *ctx, rx_tensor *t, DLManagedTensor **out);
DLTensor rx_tensor_view(const rx_tensor *t);                            /* lent; strides NULL */
/* Checks a host's DLTensor: device, dtype, rank, dims, sizes. *compact: may be used as it stands (data is then the
 * first element). */
relax_status rx_dl_check(relax_context *ctx, const DLTensor *d, const char *what, relax_dtype *t, int64_t *bytes,
                         bool *compact, void **data);
void rx_dl_copy(const DLTensor *from, size_t elem, void *to);           /* any strides -> compact */

/* ================= exe.c: executables ================= */
struct relax_executable {
    _Atomic uint32_t refs;
    relax_context *ctx;                /* that opened it: default of its VMs */
    rx_memfn mem;
    uint8_t *bytes; size_t size; bool owned;
    rx_pkg pkg;
    void *dl;                          /* native code, after rx_exe_activate */
    const rx_kernel_fn *entries; uint32_t nentries;
    const rx_pkg_native *native;
};
/* BORROW: 64-aligned bytes that stay, unchanged, while the executable lives */
enum { RX_EXE_COPY = 0, RX_EXE_BORROW = 1 };
/* Open: verified or refused; no native code is touched. */
relax_status rx_exe_open(relax_context *ctx, const void *bytes, size_t size, uint32_t flags, relax_executable **out);
relax_status rx_exe_open_file(relax_context *ctx, const char *path, relax_executable **out);
relax_executable *rx_exe_retain(relax_executable *e);
void rx_exe_release(relax_executable *e);
/* Maps the native code that fits this machine best. Running it is like running any program: trust it first. verify (may
 * be NULL) sees the bytes before anything is mapped; nonzero refuses. Once, before the executable is shared. No
 * kernels: nothing to do. */
typedef struct rx_exe_policy {
    bool data_only;
    int32_t (*verify)(void *user, const void *bytes, size_t n);
    void *user;
} rx_exe_policy;
relax_status rx_exe_activate(relax_context *ctx, relax_executable *e, const rx_exe_policy *policy);
relax_status rx_exe_save(relax_context *ctx, const relax_executable *e, const char *path);      /* atomic replace */
/* peak bytes of activations by names of symbols; unnamed symbols are an error */
relax_status rx_exe_peak(relax_context *ctx, const relax_executable *e, const char *fn, const char *const *names,
                         const int64_t *values, uint32_t n, int64_t *bytes);

/* ================= lib.c: functions of the host by name, per context ================= */
/* A name may be registered once; unregister to replace. VMs look names up when they are created. "rx." names are the
 * library's own. */
relax_status rx_lib_register(relax_context *ctx, const char *name, relax_library_fn fn, void *user);
relax_status rx_lib_register_packed(relax_context *ctx, const char *name, relax_packed_fn fn, void *user);
/* A C function by address, called through libffi (opened at the first use). signature: result ':' arguments, e.g.
 * "i:pppll": result v (void) or i (int, 0 = success); arguments p next tensor's first element, i / l next symbolic
 * argument as int / int64_t, f / d the bits of a double in the next symbolic argument as float / double. */
relax_status rx_lib_register_c(relax_context *ctx, const char *name, void *symbol, const char *signature);
relax_status rx_lib_unregister(relax_context *ctx, const char *name);
typedef struct rx_libfn {
    const char *name; int32_t kind;    /* RX_LIB_* */
    relax_library_fn dps; relax_packed_fn packed; void *user;
} rx_libfn;
/* Registers the functions of an external library that this build knows (libraries.def), opening it: RXE_NO_LIBRARY when
 * it is absent. */
relax_status rx_lib_load(relax_context *ctx, const char *library);
bool rx_lib_find(relax_context *ctx, const char *name, int32_t kind, rx_libfn *out);

/* ================= pool.c: fork and join on threads of our own or the host's parallel-for ================= */
typedef struct rx_pool rx_pool;
/* n threads including the caller; 1: no thread, no atomic. host (may be NULL): used instead of own threads. */
relax_status rx_pool_create(relax_context *ctx, int32_t n, relax_parallel_fn host, void *host_user, rx_pool **out);
void rx_pool_destroy(rx_pool *p);
/* task(arg, i) for i in 0 .. n-1, n <= the pool's threads; returns when all are done. One caller at a time. */
void rx_pool_run(rx_pool *p, int32_t n, void (*task)(void *arg, int32_t i), void *arg);
int32_t rx_pool_threads(const rx_pool *p);

/* ================= builtin.c: functions under "rx." that every context has =================
 * Any rank; negative axes count from the end. Sorting is stable both ways (ties keep their order). NaN counts as larger
 * than every number: last when ascending, first when descending.
 *
 * In destination-passing style: inputs -> outputs [symbolic arguments]
 *   rx.sort             x -> y like x                            [axis, descending]
 *   rx.argsort          x -> y of any integer type               [axis, descending]
 *   rx.topk             x -> values, indices of any integer type [k, axis, largest, which]
 *                       which: 0 both, 1 values only, 2 indices only
 *   rx.shape_to_tensor  -> y: vector of integers                 [dims…]
 *
 * Values in, value out:
 *   rx.unique           (x, sorted, return_index, return_inverse, return_counts[, axis])
 *                       -> values, or a tuple of them and those of index, inverse, counts (i64 vectors) that are asked
 *                       for. Without axis x is flattened; with it, slices along it are compared. sorted 0: in order of
 *                       first appearance. A NaN equals nothing.
 *   rx.dynamic_strided_slice (x, begin, end, strides: integer vectors) -> tensor, by NumPy's rules
 *   rx.nonzero          (x) -> i64 (ndim, count), row-major order of elements; a rank-0 x counts as (1,)
 *   rx.shape_of         (x) -> shape
 *   rx.tensor_to_shape  (x: vector of integers) -> shape */

/* ================= vm.c, call.c: the VM ================= */
typedef struct rx_vm_options {
    int32_t threads;                   /* 0: all cores */
    relax_parallel_fn parallel; void *parallel_user;    /* host's parallel-for; NULL: the context's, else own threads */
    bool huge_pages;                   /* arenas of 2 MiB and more come from the system, not the host's allocator */
} rx_vm_options;
/* ctx: where this VM reports and looks library functions up; belongs to the VM's thread. NULL options: defaults. A
 * library function that is not registered is an error here. */
relax_status rx_vm_create(relax_context *ctx, relax_executable *e, const rx_vm_options *o, relax_vm **out);
void rx_vm_destroy(relax_vm *vm);                                       /* results live on */
/* Bind a weight (keeps a reference; memory is never copied); NULL unbinds. Checked against the annotation when a
 * function is called. */
relax_status rx_vm_bind(relax_vm *vm, const char *name, rx_tensor *t);
int32_t rx_vm_function(const relax_vm *vm, const char *name); /* number for rx_vm_call; -1 absent or private */
/* Call. args: the parameters that are not weights, lent. outs (may be NULL, entries too): memory for tensors of the
 * result in order, tuples flattened; shapes must agree; the result then refers to it (RX_OBJ_BORROWED). *result gets
 * one reference; NONE on failure. Results never share memory of lent arguments (RELAX_ANY_DLTENSOR); they may share
 * that of tensor objects. */
relax_status rx_vm_call(relax_vm *vm, int32_t fn, const relax_any *args, int32_t nargs, const DLTensor *const *outs,
                        int32_t nouts, relax_any *result);
/* recycled; for packed functions */
relax_status rx_vm_new_tensor(relax_vm *vm, relax_dtype t, const int64_t *dims, int32_t ndim, rx_tensor **out);
rx_memfn rx_vm_mem(const relax_vm *vm);
relax_context *rx_vm_context(const relax_vm *vm);
const relax_executable *rx_vm_executable(const relax_vm *vm);
/* bytes that the VM holds now: stacks, arena, recycled tensors; and the largest arena ever used */
typedef struct rx_vm_memory { size_t arena, arena_peak, pool, stacks; } rx_vm_memory;
rx_vm_memory rx_vm_get_memory(const relax_vm *vm);
/* Profile: counts and times every kernel and library function while on (per name; kernels first). */
typedef struct rx_profile_row { const char *name, *origin; int64_t calls, ns; } rx_profile_row;
relax_status rx_vm_profile(relax_vm *vm, bool on);                      /* turning it on resets */
uint32_t rx_vm_profile_rows(const relax_vm *vm);
rx_profile_row rx_vm_profile_row(const relax_vm *vm, uint32_t i);

/* ================= lib/: external libraries, each opened when it is registered ================= */
relax_status rx_openblas_register(relax_context *ctx);                  /* "openblas.sgemm" */

#define RX_VM_MAX_DEPTH 1000           /* nested calls */
#endif
