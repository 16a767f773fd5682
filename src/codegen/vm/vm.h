/* vm.h: from a planned module to an executable's bytecode: the last lowering. Shapes become a shape program over int64
 * slots, bindings become instructions; kernels and native code come from the CPU code generator. */
#ifndef RX_CODEGEN_VM_H
#define RX_CODEGEN_VM_H
#include "graph/op.h"
#include "pkg/pkg.h"

/* What the code generator says of one prim func, by number of kernel. */
typedef struct rx_vm_kernel { relax_function *prim; int32_t nphases; const uint8_t *parallel; } rx_vm_kernel;
/* Emits all graph functions of m (properties LEGAL, DPS) into w; kernels[] lists the prim funcs that calls may name. */
void rx_vm_emit(relax_module *m, rx_pkgw *w, const rx_vm_kernel *kernels, uint32_t nkernels, rx_arena *a);
#endif
