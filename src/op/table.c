/* table.c: the built-in operators of ops.def as rx_op records of the context's table.
 *
 * Input: ops.def (rows), families.def (functions). State: ctx->ops, filled once; row i of ctx->ops->all is operator i
 * of rx_opcode, because the built-in rows come before any a plugin adds. */
#include "op/impl.h"

#define LEGAL_0(family) NULL
#define LEGAL_1(family) rx_legal_##family
enum {
#define FAM(family, legal) RX_FAM_##family,
#include "op/families.def"
#undef FAM
    RX_FAM_COUNT
};
typedef struct family { rx_ty (*deduce)(rx_call *c); rx_stmt *(*legalize)(rx_legal *l); } family;
static const family families[RX_FAM_COUNT] = {
#define FAM(family, legal) { rx_deduce_##family, LEGAL_##legal(family) },
#include "op/families.def"
#undef FAM
};
typedef struct row { const char *name, *attrs, *doc; int32_t min, max; uint32_t flags, fam; } row;
static const row rows[RX_OP_COUNT] = {
#define OP(NAME, text, min, max, family, attrs, flags, doc) { text, attrs, doc, min, max, flags, RX_FAM_##family },
#include "op/ops.def"
#undef OP
};

void rx_ops_init(relax_context *ctx)
{
    if (ctx->ops && ctx->ops->by_name.n >= RX_OP_COUNT)
        return;
    rx_optab_init(ctx);
    rx_arena *a = ctx->ops->a;
    ctx->ops->all.n = 0;               /* a first try may have run out of memory half way */
    rx_map_init(&ctx->ops->by_name, a);
    for (int32_t i = 0; i < RX_OP_COUNT; i++) {
        const row *r = &rows[i];
        rx_op *op = RX_NEW(a, rx_op);
        *op = (rx_op){.name = rx_str(ctx, r->name),
                      .code = i,
                      .min_args = r->min,
                      .max_args = r->max,
                      .flags = r->flags,
                      .deduce = families[r->fam].deduce,
                      .legalize = families[r->fam].legalize,
                      .doc = r->doc,
                      .attr_spec = r->attrs};
        rx_op_parse_attrs(ctx, r->attrs, &op->attrs, &op->nattrs);
        rx_op_add(ctx, op);
    }
}

const rx_op *rx_op_get(relax_context *ctx, rx_opcode code)
{
    rx_ops_init(ctx);
    return ctx->ops->all.at[code];
}
