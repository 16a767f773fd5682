/* op.h: what an operator is. The built-in ones are the rows of op/ops.def (room op/ fills the table of the context);
 * plugins append rows at run time; there are no others. */
#ifndef RX_GRAPH_OP_H
#define RX_GRAPH_OP_H
#include "graph/graph.h"

/* the result's shape depends on values: run by a builtin of the runtime, which allocates the result */
enum { RX_OPF_DYNAMIC = 1,
       /* may share the memory of its first argument (same elements in row-major order) */
       RX_OPF_VIEW = 2,
       RX_OPF_HOST = 4,                /* shape_of and the like: no tensor program */
       /* lowered to a destination-passing call of a library function built into the runtime ("rx.sort") */
       RX_OPF_BUILTIN = 8,
       /* result 0 is written over argument 0, which dies: lowered to call_tir_inplace */
       RX_OPF_INPLACE = 16 };
typedef struct rx_attr_decl { const char *key; rx_akind kind; bool optional, has_def; rx_attr def; } rx_attr_decl;

/* One call while it is deduced. Fails by rx_fail_op; obligations by rx_require(c->f, c->checks, …). */
typedef struct rx_call {
    relax_context *ctx; relax_function *f;          /* f: whose facts count; never NULL */
    const rx_op *op;
    relax_value **args;                /* may be NULL (types only); an absent optional argument is NULL */
    rx_ty *types; uint32_t n;
    rx_attrs attrs;                    /* checked, defaults filled */
    rx_exvec *checks; rx_arena *a;     /* a: memory of checks, scratch */
} rx_call;
/* One call while it is made into a tensor program. */
typedef struct rx_legal {
    relax_context *ctx; rx_tb tb; const rx_op *op;
    /* argument annotations (known shapes), in the symbols of the new prim func; NULL: absent */
    rx_ty *in; uint32_t n;
    rx_ty out;                         /* Tensor or Tuple of Tensors */
    const rx_attrs *attrs;
    /* parameter buffers: of the tensor arguments in order (NULL: absent or no tensor), of the outputs */
    relax_buffer **x, **y;
} rx_legal;
struct rx_op {
    const char *name;
    int32_t code;                      /* rx_opcode of op/op.h; plugin operators: -1 */
    int32_t min_args, max_args;        /* max -1: any number */
    uint32_t flags;
    rx_attr_decl *attrs; uint32_t nattrs;
    const char *attr_spec;             /* the text that attrs were read from */
    rx_ty (*deduce)(rx_call *c);
    rx_stmt *(*legalize)(rx_legal *l); /* body of the prim func; NULL: none */
    const char *doc;
    void *user;                        /* plugin operators */
};
struct rx_optab { rx_arena *a; RX_VEC(const rx_op *) all; rx_map by_name; };
/* op.c (graph/) */
/* an empty table; room op/ fills it (rx_ops_init) */
void rx_optab_init(relax_context *ctx);
const rx_op *rx_op_find(relax_context *ctx, const char *name);                  /* NULL if unknown */
void rx_op_add(relax_context *ctx, const rx_op *op);                            /* RXE_DUPLICATE */
/* "axis:int?, keepdims:bool=false, out_dtype:dtype?" -> declarations (? optional, =default, else required) */
void rx_op_parse_attrs(relax_context *ctx, const char *spec, rx_attr_decl **out, uint32_t *n);
/* checks given attributes against the declaration, converts (int -> float, int list -> expr list), fills defaults,
 * sorts; RXE_ATTR */
rx_attrs rx_op_attrs(relax_context *ctx, rx_arena *a, const rx_op *op, const rx_attr *given, uint32_t n);
rx_ty rx_op_deduce(rx_call *c);        /* checks the number of arguments, then op->deduce */
/* message begins with the operator's name */
RX_NORETURN void rx_fail_op(rx_call *c, enum rx_err e, const char *fmt, ...) RX_PRINTF(3, 4);
#endif
