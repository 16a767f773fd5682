/* rt_int.h: private to rt/: helpers of objects, the state of a VM. */
#ifndef RX_RT_INT_H
#define RX_RT_INT_H
#include "rt/rt.h"

/* object.c */
rx_tensor *rx_tensor_alloc(rx_memfn m, size_t capacity); /* capacity 0: no memory of its own; NULL: out of memory */
rx_tuple *rx_tuple_alloc(rx_memfn m, int32_t cap);
bool rx_tuple_add(rx_tuple *t, const relax_any *v); /* within its capacity; false: nested too deeply */
void rx_object_destroy(relax_object *o);                                /* nothing refers to it and it is empty */
/* builtin.c */
bool rx_builtin_find(const char *name, int32_t kind, rx_libfn *out);     /* user is to be the VM: scratch memory */

/* --- the VM --- */
enum { RX_OBJ_OUT = 4 };               /* memory that the host gave for this result */
/* A register owns one reference of u.obj where its kind has objects. Tensor: data is the first element;
 * type >= 0: dims are those of that type in this frame's slots, u.obj (NULL: arena, constant) only keeps the memory;
 * type < 0: u.obj is the tensor. */
typedef struct rx_reg {
    int32_t kind;                      /* RELAX_ANY_* */
    int32_t type;
    void *data;
    union { relax_object *obj; int64_t i; double f; const char *s; } u;
} rx_reg;
typedef struct rx_chunk { char *at; size_t size, used; } rx_chunk;
typedef struct rx_vmframe {
    int32_t fn, pc;                    /* pc: next word */
    int32_t result;                    /* register of the caller that gets the value */
    uint32_t reg0, slot0;
    uint32_t chunk; size_t used;       /* arena stack at entry */
    char *arena; int64_t arena_size;   /* taken by FRAME */
} rx_vmframe;
typedef struct rx_pooled { relax_object *o; int64_t used; } rx_pooled;  /* used: number of the call that last took it */
enum { RX_VM_CHUNKS = 32 };
struct relax_vm {
    relax_context *ctx;
    relax_executable *exe;
    const rx_pkg *p;                   /* &exe->pkg */
    rx_memfn mem;
    rx_pool *pool;
    int32_t threads;
    bool huge_pages, busy;
    rx_libfn *libs;                    /* per imported function */
    rx_tensor **weights;               /* per weight, NULL: not bound */
    /* stacks: grow, never shrink */
    rx_reg *regs; size_t nregs, cap_regs;
    int64_t *slots; size_t nslots, cap_slots;
    rx_vmframe *frames; size_t nframes, cap_frames;
    rx_chunk chunks[RX_VM_CHUNKS]; uint32_t nchunks, chunk;
    size_t arena_want, arena_peak;
    /* operands of one instruction, max_list of each */
    void **bufs; int64_t *syms; DLTensor *dl; DLTensor **dlp; int64_t *dl_dims; relax_any *anys;
    /* recycled objects */
    rx_pooled *pooled; size_t npooled, cap_pooled;
    int64_t calls;
    /* the call of the host that runs */
    const DLTensor *const *outs; int32_t nouts;
    const relax_any *args; int32_t nargs;
    rx_profile_row *profile; bool profiling;
    char error[256];                   /* text of a failing host function */
};
static inline size_t rx_vm_list(const relax_vm *vm) { return RX_MAX(vm->p->max_list, 1u); }

/* memory.c: what a VM keeps between calls */
bool rx_vm_room(relax_vm *vm, void **at, size_t *cap, size_t need, size_t size);         /* grow an array */
rx_tensor *rx_vm_tensor(relax_vm *vm, size_t capacity);                 /* capacity 0: only a header; empty, refs 1 */
rx_tuple *rx_vm_tuple(relax_vm *vm, int32_t cap);
rx_shape *rx_vm_shape(relax_vm *vm, const int64_t *dims, int32_t n);
void rx_vm_trim(relax_vm *vm); /* at the end of a call: lets old idle objects go */
void rx_vm_pool_free(relax_vm *vm);
char *rx_vm_arena(relax_vm *vm, int64_t size);                          /* NULL: out of memory */
void rx_vm_arena_reset(relax_vm *vm); /* no frame is left: several chunks become one */
void rx_vm_arena_free(relax_vm *vm);

/* call.c */
/* the message names the running function */
relax_status rx_vm_fail(relax_vm *vm, enum rx_err e, const char *fmt, ...) RX_PRINTF(3, 4);
static inline rx_vmframe *rx_vm_top(relax_vm *vm) { return &vm->frames[vm->nframes - 1]; }
/* match.c */
/* x: operands of MATCH */
relax_status rx_vm_match(relax_vm *vm, const rx_pkg_fn *f, const rx_reg *r, int64_t *slots, const int32_t *x);
relax_status rx_vm_bound(relax_vm *vm, const rx_pkg_fn *f, const int64_t *slots, const rx_pkg_sym *s);
/* "argument 1 (w1)", "weight w1" */
void rx_vm_param_text(const rx_pkg *p, const rx_pkg_fn *f, int32_t param, char *text, size_t n);
/* value.c: registers and values */
void rx_reg_clear(rx_reg *r);
/* a tensor gets an object of its own; false: out of memory */
bool rx_reg_object(relax_vm *vm, rx_reg *r, const int64_t *slots);
relax_any rx_reg_any(const rx_reg *r);                                  /* lent; after rx_reg_object */
void rx_reg_set(rx_reg *r, const relax_any *v);                         /* takes v's reference */
relax_dtype rx_reg_dtype(const relax_vm *vm, const rx_reg *r);
int64_t rx_reg_bytes(const relax_vm *vm, const rx_reg *r, const int64_t *slots);
/* copies what of *v would not outlive `frame` (NULL: this call of the host); replaces *v. false: out of memory */
bool rx_any_escape(relax_vm *vm, relax_any *v, const rx_vmframe *frame);
/* builtin.c, builtin_slice.c */
relax_status rx_builtin_complain(const relax_packed_call *c, const char *text);
relax_status rx_builtin_slice(void *user, const relax_packed_call *c);
/* args.c: values of the host in and out */
relax_status rx_vm_args(relax_vm *vm, const rx_pkg_fn *f, rx_reg *regs);
bool rx_vm_sane(const relax_vm *vm, const relax_any *v); /* a value from outside: known kind, right objects */
/* the host's memory for result k; *out NULL: not given, or not usable before the end of the call */
relax_status rx_vm_out(relax_vm *vm, int32_t k, const rx_pkg_type *t, const int64_t *slots, rx_tensor **out);
relax_status rx_vm_fill_outs(relax_vm *vm, const relax_any *result);
#endif
