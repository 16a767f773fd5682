/* op.h: the built-in operators. To add one: docs/adding-an-operator.md. */
#ifndef RX_OP_H
#define RX_OP_H
#include "graph/op.h"

typedef enum rx_opcode {
#define OP(NAME, text, min, max, family, attrs, flags, doc) RX_OP_##NAME,
#include "op/ops.def"
#undef OP
    RX_OP_COUNT
} rx_opcode;
/* table.c */
void rx_ops_init(relax_context *ctx);                                           /* fills ctx->ops; idempotent */
const rx_op *rx_op_get(relax_context *ctx, rx_opcode code);
/* legal.c: the prim func of one call; shared through the module's prim_cache when operator, attributes and annotations
 * agree up to renaming of symbols. syms_out: the symbolic arguments for the call, in the caller's symbols. Tuple
 * arguments must have been replaced by their fields; in[i] NULL is an absent optional argument. The result of an
 * in-place operator (RX_OPF_INPLACE) is the last buffer of its prim func, which must be the memory of the first. */
relax_function *rx_op_legalize(relax_module *m, relax_function *f, const rx_op *op, rx_ty *in, uint32_t n, rx_ty out,
                               const rx_attrs *attrs, rx_exvec *syms_out);
#endif
