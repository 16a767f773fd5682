/* builder.h: the builder of graph functions behind relax.h: an insertion point with a sticky first error. */
#ifndef RX_API_BUILDER_H
#define RX_API_BUILDER_H
#include "api/api.h"
#include "op/op.h"

typedef struct api_if { struct api_if *up; relax_value *iff, *then_result; rx_gb outer; bool in_else; } api_if;
struct relax_builder {
    uint32_t magic;
    relax_module *mod;
    relax_function *fn;
    rx_gb gb;
    api_if *ifs;
    relax_status status;               /* of the first error */
    bool inserting;                    /* made by relax_insert_before: the function exists already */
};
#define API_BUILDER_MAGIC 0x4255494Cu
bool api_module(const relax_module *m);                         /* alive; else false (nothing to record it on) */
bool api_builder(const relax_builder *b);
bool api_value_of(relax_builder *b, const relax_value *v); /* v may be an operand in b: a leaf, or of b's function */
/* the sticky rule: false when b is dead, has an error, or an operand is NULL (which becomes the error) or foreign */
bool api_operands(relax_builder *b, relax_value *const *args, uint32_t n, const char *what);
relax_value *api_stick(relax_builder *b);                       /* the frame failed: keep the status; NULL */
/* emit an operator with attributes built here */
relax_value *api_op(relax_builder *b, rx_opcode code, relax_value *const *args, uint32_t n, const rx_attr *attrs,
                    uint32_t nattrs);
rx_attr api_attr_int(relax_context *ctx, const char *key, int64_t v);
rx_ex api_symbol(void *fn, rx_lexer *l, const char *name); /* for rx_scope_fns: the symbols of a function, none new */
#endif
