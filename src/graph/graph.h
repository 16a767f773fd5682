/* graph.h: annotations, graph functions in A-normal form, modules (which hold both levels).
 *
 *
 * A value is the result of one node, so values are nodes (as in an SSA graph): relax_value is a parameter, a leaf
 * (constant, shape, prim value, function reference) or a binding that stands in a block. Leaves may be operands
 * everywhere and belong to no block; every other operand is a binding or parameter that dominates its use. Memory:
 * the module's arena; types: the context's. */
#ifndef RX_GRAPH_H
#define RX_GRAPH_H
#include "tir/tir.h"

#define RX_MAX_RANK 32                /* of a tensor or shape */

/* ================= type.c: annotations, hash-consed in the context (equal pointers = equal) ================= */
typedef enum rx_tkind { RX_TY_OBJECT, RX_TY_PRIM, RX_TY_SHAPE, RX_TY_TENSOR, RX_TY_TUPLE, RX_TY_FUNC } rx_tkind;
struct relax_type {
    rx_tkind kind;
    relax_dtype dtype;                 /* PRIM, TENSOR; RELAX_DTYPE_UNKNOWN: not known */
    int32_t ndim;                      /* TENSOR, SHAPE: rank, -1 = not known */
    /* TENSOR, SHAPE: dims[0..ndim) are known.  PRIM: value known in dims[0] (an i64 index expression) */
    bool known;
    bool pure;                         /* FUNC */
    bool opaque;                       /* FUNC: any parameters and result ("Callable") */
    rx_ex *dims;
    const relax_type **elems; uint32_t nelems;      /* TUPLE fields; FUNC parameters */
    const relax_type *ret;             /* FUNC */
    relax_context *ctx;                /* that made it */
    uint32_t id;
};
typedef const relax_type *rx_ty;
rx_ty rx_ty_object(relax_context *ctx);
rx_ty rx_ty_prim(relax_context *ctx, relax_dtype t, rx_ex value_or_null);
rx_ty rx_ty_shape(relax_context *ctx, rx_ex *dims, int32_t ndim);               /* known dims */
rx_ty rx_ty_shape_ndim(relax_context *ctx, int32_t ndim);                       /* -1: unknown rank */
rx_ty rx_ty_tensor(relax_context *ctx, rx_ex *dims, int32_t ndim, relax_dtype t);
rx_ty rx_ty_tensor_ndim(relax_context *ctx, int32_t ndim, relax_dtype t);
rx_ty rx_ty_tuple(relax_context *ctx, rx_ty *elems, uint32_t n);
rx_ty rx_ty_func(relax_context *ctx, rx_ty *params, uint32_t n, rx_ty ret, bool pure);
rx_ty rx_ty_func_opaque(relax_context *ctx);
rx_ty rx_ty_subst(relax_context *ctx, rx_ty t, const rx_map *syms);
void rx_ty_free_syms(relax_context *ctx, rx_arena *a, rx_ty t, rx_exvec *out);
/* lattice: is every value of a also a value of b? RX_UNKNOWN: needs a run-time check */
rx_truth rx_ty_subtype(relax_context *ctx, const rx_facts *f, rx_ty a, rx_ty b);
rx_ty rx_ty_lub(relax_context *ctx, const rx_facts *f, rx_ty a, rx_ty b);       /* least upper bound */
bool rx_ty_is_tensor(rx_ty t, int32_t ndim, relax_dtype dt);                    /* with known dims; -1 / UNKNOWN: any */
/* t without what depends on symbols for which keep is false: such dims and values become unknown */
rx_ty rx_ty_erase(relax_context *ctx, rx_ty t, bool (*keep)(void *arg, rx_ex sym), void *arg);
rx_ex rx_ty_bytes(relax_context *ctx, rx_ty t);                                 /* of a tensor with known dims */
/* --- type_text.c --- */
void rx_print_type(rx_buf *b, rx_ty t);
rx_ty rx_parse_type(rx_lexer *l, const rx_scope_fns *sc);

/* ================= attributes of a call: sorted by the operator's declared order ================= */
typedef enum rx_akind {
    RX_A_INT, RX_A_FLOAT, RX_A_BOOL, RX_A_DTYPE, RX_A_STR, RX_A_INTS, RX_A_EXPR, RX_A_EXPRS
} rx_akind;
typedef struct rx_attr {
    const char *key;                   /* interned */
    rx_akind kind;
    union {
        int64_t i; double f; relax_dtype dtype; const char *s; rx_ex e;
        struct { int64_t *at; uint32_t n; } ints;
        struct { rx_ex *at; uint32_t n; } exprs;
    } u;
} rx_attr;
typedef struct rx_attrs { rx_attr *at; uint32_t n; } rx_attrs;
/* key need not be interned; NULL if absent */
const rx_attr *rx_attr_get(const rx_attrs *a, const char *key);
int64_t rx_attr_int(const rx_attrs *a, const char *key, int64_t absent);        /* INT, BOOL, DTYPE */
double rx_attr_float(const rx_attrs *a, const char *key, double absent);        /* FLOAT or INT */
const char *rx_attr_str(const rx_attrs *a, const char *key, const char *absent);
bool rx_attrs_equal(const rx_attrs *a, const rx_attrs *b);
bool rx_attr_same(const rx_attr *a, const rx_attr *b);
rx_attr rx_attr_copy(relax_context *ctx, rx_arena *a, const rx_attr *x);
rx_attrs rx_attrs_copy(relax_context *ctx, rx_arena *a, const rx_attrs *x);
void rx_attrs_set(relax_context *ctx, rx_arena *a, rx_attrs *x, const rx_attr *one);      /* adds or replaces */

/* ================= ir.c: values, blocks, functions, modules ================= */
typedef struct rx_op rx_op;            /* op.h */
typedef enum rx_vkind {
    /* leaves */
    RX_V_PARAM, RX_V_CONST, RX_V_SHAPE, RX_V_PRIM, RX_V_FUNC, RX_V_STR,
    /* bindings */
    RX_V_OP,            /* operator call: op, args, attrs */
    /* args[0] is a function value (RX_V_FUNC leaf: graph function; or any value of FUNC type), then arguments;
     * attr pure */
    RX_V_CALL,
    /* callee prim func, args; result fresh: `out` annotation (Tensor or Tuple of Tensors); syms: extra symbolic
     * arguments */
    RX_V_CALL_TIR,
    /* the same; inplace[i] >= 0: output i is written over args[inplace[i]] (which dies), -1: fresh. The prim func's
     * buffers are the arguments, then the FRESH outputs alone: an output in place has no buffer of its own */
    RX_V_CALL_TIR_INPLACE,
    RX_V_CALL_DPS_LIB,  /* library function `name` in destination-passing style: args, `out`, syms */
    RX_V_CALL_PACKED,   /* host function `name` with any values; out = declared annotation; attr pure */
    RX_V_TUPLE, RX_V_GET,   /* tuple of args; field `index` of args[0] */
    RX_V_MATCH_CAST,    /* args[0] checked against the annotation; defines its new symbols */
    RX_V_IF,            /* args[0] bool scalar tensor or Prim(bool); then/other bodies, each with a result */
    /* made by lowering */
    RX_V_ALLOC,         /* memory for one tensor: annotation; place: see alloc */
    /* callee prim func or library `name`: args = inputs then outputs (already allocated); syms; no result
     * (Tuple()) */
    RX_V_CALL_DPS,
    RX_V_VIEW,          /* args[0]'s memory under another annotation of the same size */
    RX_V_COUNT
} rx_vkind;
/* compact row-major */
typedef struct rx_const { relax_dtype dtype; uint32_t ndim; int64_t *dims; const void *data; size_t bytes; } rx_const;
typedef struct rx_seq_body rx_body;
typedef struct rx_iblock rx_iblock;

struct relax_value {
    rx_vkind kind;
    bool output;                       /* visible outside its dataflow block */
    uint32_t id;                       /* unique in the module, from 1 */
    const char *name;                  /* wish; printing makes names unique */
    rx_ty type;                        /* deduced annotation; never NULL in a finished function */
    relax_function *fn;                /* owner; NULL for leaves not yet used */
    rx_iblock *block; relax_value *prev, *next;     /* bindings: place in the block */
    relax_value **args; uint32_t nargs;
    rx_attrs attrs;
    rx_ex *syms; uint32_t nsyms;       /* SHAPE: dims; PRIM: the value; CALL_TIR…, CALL_DPS: symbolic arguments */
    union {
        const rx_op *op;               /* OP */
        relax_function *callee;        /* FUNC leaf; CALL_TIR, CALL_TIR_INPLACE, CALL_DPS (NULL: library `ext`) */
        rx_const *data;                /* CONST */
        uint32_t index;                /* GET; PARAM: position */
        struct { rx_body *then, *other; } branch;               /* IF */
        /* ALLOC: in the function's arena at byte offset, else on the heap of the VM (escapes) */
        struct { bool arena; rx_ex offset; } alloc;
    } u;
    const char *ext;                   /* CALL_DPS_LIB, CALL_PACKED, CALL_DPS to a library; STR leaf: the text */
    int32_t *inplace; uint32_t ninplace;            /* CALL_TIR_INPLACE: per output */
    rx_ex *checks; uint32_t nchecks;   /* obligations: conditions that must hold at run time before this binding */
    bool pure;
    void *scratch;                     /* a pass's own; must be NULL outside */
};
struct rx_iblock { bool dataflow; rx_body *body; relax_value *first, *last; rx_iblock *next; };
struct rx_seq_body {
    rx_iblock *first, *last;
    relax_value *result;
    relax_value *owner;                /* the IF, or NULL */
    relax_function *fn;
};

struct relax_function {
    relax_module *mod;
    const char *name;
    bool is_prim;                      /* a tensor program: `prim`; else a graph function */
    bool is_private;                   /* not callable from outside; passes may remove it */
    rx_prim *prim;
    relax_value **params; uint32_t nparams, params_cap;
    rx_ty ret;                         /* deduced or declared */
    bool pure;
    rx_body body;
    rx_map symtab;                     /* interned name -> symbol node: the symbols of this function */
    rx_exvec syms;                     /* in order of definition */
    rx_facts *facts;                   /* bounds and relations between symbols */
    rx_exvec fact_list;                /* the same as conditions, for printing (declared `where`) */
    rx_attrs attrs;                    /* e.g. num_inputs: parameters after them are weights */
    rx_ex arena_bytes;                 /* planned form: size of the arena at entry; NULL before */
    relax_function *next;
};
/* LEGAL: no RX_V_OP left that has a legalize */
enum { RX_M_NORMAL = 1, RX_M_LEGAL = 2, RX_M_SCHEDULED = 4, RX_M_DPS = 8, RX_M_PLANNED = 16,
       RX_M_GUARDED = 32 /* every access of a tensor program is proved in bounds or checked */ };
struct relax_module {
    uint32_t magic;
    relax_context *ctx;
    rx_arena arena;
    relax_function *first, *last;      /* in order of creation */
    rx_map by_name;
    uint32_t props;                    /* RX_M_* */
    uint32_t next_id;
    rx_map prim_cache;                 /* legalize: structural key -> prim function (equal layers share) */
};
#define RX_MOD_MAGIC 0x4D4F4455u
relax_module *rx_module_new(relax_context *ctx);
void rx_module_free(relax_module *m);
relax_function *rx_module_get(relax_module *m, const char *name);               /* NULL if absent */
relax_function *rx_function_new(relax_module *m, const char *name);             /* graph function; RXE_DUPLICATE */
/* name is made unique if it ends with '*' */
relax_function *rx_function_new_prim(relax_module *m, const char *name, rx_prim *p);
void rx_module_remove(relax_module *m, relax_function *f);
relax_module *rx_module_clone(relax_module *m);                                 /* deep copy (transactional passes) */
void rx_module_swap(relax_module *a, relax_module *b);                          /* exchange contents, handles stay */

/* ================= build.c: the graph builder (used by the API, importers, passes) ================= */
/* All unwind with a diagnostic on error; the API layer turns that into sticky errors. */
/* the symbol of that name, made (lo = 0) if new */
rx_ex rx_fn_sym(relax_function *f, const char *name);
/* a new symbol; its name is the wish or the wish with a number */
rx_ex rx_fn_sym_fresh(relax_function *f, const char *wish);
rx_ty rx_fn_type(relax_function *f, const char *text, size_t n);                /* annotation from text in f's scope */
void rx_fn_bound(relax_function *f, rx_ex sym, int64_t lo, int64_t hi);
void rx_fn_fact(relax_function *f, rx_ex cond);
relax_value *rx_fn_param(relax_function *f, const char *name, rx_ty t);
/* insertion point: end of block, or in front of `before` */
typedef struct rx_gb { relax_function *f; rx_body *body; rx_iblock *block; relax_value *before; } rx_gb;
rx_gb rx_gb_begin(relax_function *f);
void rx_gb_dataflow(rx_gb *b, bool dataflow);                                   /* begin a block of that kind */
/* leaves */
/* copies */
relax_value *rx_v_const(relax_module *m, relax_dtype t, const int64_t *dims, uint32_t ndim, const void *data);
relax_value *rx_v_scalar(relax_module *m, relax_dtype t, double v);             /* rank-0 constant */
relax_value *rx_v_shape(relax_module *m, rx_ex *dims, uint32_t n);
relax_value *rx_v_prim(relax_module *m, rx_ex e);
relax_value *rx_v_func(relax_module *m, relax_function *f);
relax_value *rx_v_str(relax_module *m, const char *s);
/* its FUNC annotation; opaque for a prim func or an unknown result */
rx_ty rx_fn_signature(relax_function *f);
/* bindings: append to b, deduce the annotation, record obligations */
relax_value *rx_emit_op(rx_gb *b, const rx_op *op, relax_value **args, uint32_t n, const rx_attr *attrs,
                        uint32_t nattrs);
relax_value *rx_emit_call(rx_gb *b, relax_value *callee, relax_value **args, uint32_t n, bool pure);
relax_value *rx_emit_call_tir(rx_gb *b, relax_function *prim, relax_value **args, uint32_t n, rx_ty out, rx_ex *syms,
                              uint32_t nsyms);
relax_value *rx_emit_call_tir_inplace(rx_gb *b, relax_function *prim, relax_value **args, uint32_t n, rx_ty out,
                                      rx_ex *syms, uint32_t nsyms, const int32_t *inplace, uint32_t ninplace);
relax_value *rx_emit_call_lib(rx_gb *b, const char *name, relax_value **args, uint32_t n, rx_ty out, rx_ex *syms,
                              uint32_t nsyms);
relax_value *rx_emit_call_packed(rx_gb *b, const char *name, relax_value **args, uint32_t n, rx_ty out, bool pure);
relax_value *rx_emit_tuple(rx_gb *b, relax_value **args, uint32_t n);
relax_value *rx_emit_get(rx_gb *b, relax_value *tuple, uint32_t index);
relax_value *rx_emit_match_cast(rx_gb *b, relax_value *v, rx_ty t);
/* v, or a match_cast of v with fresh symbols where `like` (same kind; NULL: v's own annotation) has known dims,
 * dtype or value and v has not */
relax_value *rx_emit_known(rx_gb *b, relax_value *v, rx_ty like);
/* then fill rx_if_then / rx_if_else, rx_if_end deduces */
relax_value *rx_emit_if(rx_gb *b, relax_value *cond);
rx_gb rx_if_then(relax_value *iff);
rx_gb rx_if_else(relax_value *iff);
void rx_if_end(relax_value *iff, relax_value *then_result, relax_value *else_result);
relax_value *rx_emit_alloc(rx_gb *b, rx_ty tensor);
relax_value *rx_emit_call_dps(rx_gb *b, relax_function *prim_or_null, const char *lib, relax_value **args,
                              uint32_t n, rx_ex *syms, uint32_t nsyms);
relax_value *rx_emit_view(rx_gb *b, relax_value *v, rx_ty t);
void rx_fn_finish(relax_function *f, rx_gb *b, relax_value *result);            /* sets ret, verifies */
/* sets `output` of what is used outside its dataflow block */
void rx_fn_mark_outputs(relax_function *f);
/* --- deduce.c --- */
/* The annotation of a binding from its operands' annotations (IF: from its bodies' results); obligations are pushed
 * on checks. Passes that change operands call it again. Kinds with a declared annotation (call_tir…) check it and
 * return it. */
rx_ty rx_v_deduce(relax_function *f, relax_value *v, rx_exvec *checks);
void rx_v_rededuce(relax_function *f, relax_value *v);                          /* sets v->type and adds to v->checks */
/* --- bind.c --- */
/* How a call_tir's buffers bind the prim func's symbols: values for rx_prim_symbols(prim) in order, from argument
 * annotations, `out` and syms; obligations that remain are pushed on checks; a disproved one fails (RXE_SHAPE, both
 * dims named). */
void rx_bind_prim(relax_function *f, const rx_prim *p, rx_ty *args, uint32_t nargs, rx_ty out, rx_ex *syms,
                  uint32_t nsyms, rx_exvec *values, rx_exvec *checks);
/* Match a callee's parameter annotations against argument annotations: binds callee symbols (also through 2*n, n+1),
 * adds obligations. */
void rx_bind_call(relax_function *f, rx_ty *params, rx_ty *args, uint32_t n, rx_map *binding, rx_exvec *checks);
/* Prove cond under f's facts now, or record it as an obligation; disproved: RXE_SHAPE with text naming `what`. */
void rx_require(relax_function *f, rx_exvec *checks, rx_ex cond, const char *what);
/* the same for a == b; disproved: names both */
void rx_require_eq(relax_function *f, rx_exvec *checks, rx_ex a, rx_ex b, const char *what);

/* ================= rewrite.c: what passes use ================= */
void rx_v_insert_before(relax_value *at, relax_value *v);
void rx_v_append(rx_iblock *bl, relax_value *v);
void rx_v_remove(relax_value *v);                                               /* from its block; must have no uses */
/* all uses in f, results of bodies too */
void rx_v_replace(relax_function *f, relax_value *old, relax_value *with);
uint32_t rx_v_uses(relax_function *f, relax_value *v);
/* emit before this binding (the block is split in no way: bindings are inserted) */
rx_gb rx_gb_before(relax_value *at);
/* every binding in program order, bodies of IFs inside their IF (before = pre-order) */
void rx_fn_visit(relax_function *f, void (*fn)(void *arg, relax_value *v), void *arg);
/* Effects and aliasing as data; exhaustive over rx_vkind (a new kind does not compile without a row) */
typedef struct rx_effect {
    bool impure;
    bool fresh;                        /* the result is new memory */
    int32_t alias;                     /* the result shares memory of args[alias]; -1: of none; -2: of any */
} rx_effect;
rx_effect rx_v_effect(const relax_value *v);

/* ================= verify.c: rules G1…; the number of breaks, which are reported on the context ================= */
uint32_t rx_module_verify(relax_module *m);
uint32_t rx_function_verify(relax_function *f);

/* ================= print.c, parse.c: the text form (docs/text-form.md) ================= */
void rx_print_module(rx_buf *b, relax_module *m);
void rx_print_function(rx_buf *b, relax_function *f);
void rx_print_value(rx_buf *b, relax_value *v);                                 /* one binding, for messages */
relax_module *rx_parse_module(relax_context *ctx, const char *file, const char *s, size_t n);
void rx_parse_into(relax_module *m, const char *file, const char *s, size_t n); /* adds functions to m */
void rx_print_attr(relax_context *ctx, rx_buf *b, const rx_attr *x);            /* its value */
/* "axis=-1, keepdims=true": attributes of op over the symbols of f */
rx_attrs rx_parse_attrs_text(relax_function *f, const rx_op *op, const char *s, size_t n);
#endif
