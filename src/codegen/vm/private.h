/* private.h: the state of one function's emission. */
#ifndef RX_CODEGEN_VM_PRIVATE_H
#define RX_CODEGEN_VM_PRIVATE_H
#include "codegen/vm/vm.h"

/* Where the values of expressions are: a scope per body, because what one branch computed is undefined outside it. */
typedef struct vm_scope { struct vm_scope *up; rx_map refs; } vm_scope;         /* node -> (ref, see vm_box) */
typedef struct vm_emit {
    relax_context *ctx;
    relax_module *m;
    rx_arena *a;
    rx_pkgw *w;
    const rx_vm_kernel *kernels; uint32_t nkernels;
    rx_map kernel_of, fn_of;           /* relax_function -> number + 1 */
    rx_map kernel_no;                  /* prim -> kernel number in w + 1; added when first called */
    rx_map peaks;                      /* relax_function -> its memory formula, NULL: not known */
    rx_map writes;                     /* relax_function -> bool by parameter: written over */
    relax_function *f;
    rx_map regs;                       /* value -> register + 1 */
    rx_map last_use;                   /* value -> position + 1 of its last use */
    rx_map entry;                      /* symbols known at the entry */
    rx_map outs;                       /* ALLOC that is tensor i of the result -> i + 1 */
    vm_scope *scope;
    int32_t pos;                       /* position of the binding being emitted */
    int32_t eval_first, eval_count;    /* shape instructions not yet covered by an EVAL */
} vm_emit;

/* --- shape.c --- */
int32_t vm_ref(vm_emit *e, rx_ex x);                            /* slot or constant of x; instructions are queued */
void vm_flush(vm_emit *e); /* EVAL for what is queued; before every instruction that reads refs */
void vm_know(vm_emit *e, rx_ex x, int32_t ref);                 /* x is in this slot from here on */
bool vm_computable(vm_emit *e, rx_ex x);                        /* all symbols of x are known */
void vm_check(vm_emit *e, rx_ex cond, enum rx_err err, const char *text);       /* CHECK unless it is true already */
int32_t vm_type(vm_emit *e, rx_ty t);                           /* concrete or declared type: known dims EQ */
/* --- writes.c --- */
void vm_find_writes(vm_emit *e);                                /* fills e->writes */
/* --- match.c --- */
void vm_match(vm_emit *e, int32_t reg, rx_ty t, int32_t arg, const char *name);
void vm_entry(vm_emit *e);                                      /* parameters, symbols, bounds, facts, arena */
/* --- emit.c --- */
int32_t vm_reg(vm_emit *e, relax_value *v);
const char *vm_text(vm_emit *e, rx_ty t);
#endif
