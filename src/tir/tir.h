/* tir.h: tensor programs (prim funcs): loop nests over buffers with symbolic shapes.
 *
 * A prim func takes buffers (inputs first, outputs last, any may be both) and extra scalar symbols. Symbols that stand
 * alone as a dim of a parameter are defined by it; all others used must be in `syms`. Everything is arena memory of the
 * module; statements are immutable once built (a transformation builds new ones, sharing what is unchanged).
 *
 * Reduction: a loop marked reduce accumulates into the buffers that its body stores and reads back; `init` (may be
 * NULL) runs once before the loop. A *block* is the body of a nest; its axes are the loops around it, spatial or
 * reduce. VECTOR loops have a constant extent (2..64) and are executed as lanes: no iteration may depend on another,
 * except that a VECTOR reduce loop may be re-associated. PARALLEL loops: iterations independent; only outermost. */
#ifndef RX_TIR_H
#define RX_TIR_H
#include "expr/expr.h"

typedef enum rx_mem { RX_MEM_GLOBAL, RX_MEM_SHARED, RX_MEM_LOCAL } rx_mem;
struct relax_buffer {
    const char *name;
    relax_dtype dtype;
    rx_mem scope; /* parameters: global; ALLOC: local (registers/stack, constant size), shared, global (workspace) */
    uint32_t ndim;
    rx_ex *shape;
    rx_ex *strides;                    /* in elements; NULL: row-major, compact */
    int32_t param;                     /* index among the parameters, -1 for an ALLOC */
};
typedef enum rx_loop { RX_SERIAL, RX_PARALLEL, RX_VECTOR, RX_UNROLL } rx_loop;
typedef enum rx_skind {
    RX_S_SEQ,
    RX_S_FOR,
    RX_S_STORE,
    RX_S_ALLOC,
    RX_S_IF,
    RX_S_LET,
    RX_S_ASSERT,
    RX_S_PREFETCH
} rx_skind;
typedef struct rx_stmt rx_stmt;
struct rx_stmt {
    rx_skind kind;
    union {
        struct { rx_stmt **at; uint32_t n; } seq;
        struct {
            rx_ex var, start, extent;
            rx_loop how;
            bool reduce;
            rx_stmt *init, *body;
        } loop; /* start <= var < start + extent; extent <= 0: no iteration */
        struct {
            relax_buffer *buf;
            rx_ex *index, value;
        } store; /* value has the buffer's dtype */
        struct {
            relax_buffer *buf;
            rx_stmt *body;
        } alloc; /* contents undefined at entry of the body */
        struct {
            rx_ex cond;
            rx_stmt *then, *other;
        } branch; /* other may be NULL */
        struct { rx_ex var, value; rx_stmt *body; } let;                                                /* any dtype */
        struct {
            rx_ex cond;
            uint32_t err;
            const char *text;
        } check; /* false: the kernel stops with error RXE_<err> (RXE_INDEX, RXE_DIV_ZERO) */
        struct { relax_buffer *buf; rx_ex *index; } prefetch;
    } u;
};
typedef struct rx_prim {
    const char *name;
    relax_buffer **params; uint32_t nparams;
    rx_ex *syms; uint32_t nsyms;       /* extra symbolic parameters (i64), passed after the buffers */
    rx_stmt *body;
    rx_facts *facts;                   /* of its symbols, may be NULL */
    const char *origin;                /* operator it was made from, or NULL (profiles, remarks) */
    relax_context *ctx;
    rx_ex *where; uint32_t nwhere;     /* the conditions that `facts` was made from: rx_prim_where keeps both in step */
} rx_prim;

/* --- build.c: statements. The arena is the module's. --- */
typedef struct rx_tb {
    relax_context *ctx;
    rx_arena *a;
} rx_tb; /* "tensor-program builder" environment */
relax_buffer *rx_buffer(rx_tb *t, const char *name, relax_dtype dt, rx_mem scope, rx_ex *shape, uint32_t ndim);
rx_ex rx_loopvar(rx_tb *t, const char *name);                                   /* fresh i64 symbol */
rx_stmt *rx_for(rx_tb *t, rx_ex var, rx_ex start, rx_ex extent, rx_loop how, bool reduce, rx_stmt *init, rx_stmt *body);
rx_stmt *rx_loop_s(rx_tb *t, rx_ex var, rx_ex extent, rx_stmt *body);           /* serial spatial from 0 */
rx_stmt *rx_seq(rx_tb *t, rx_stmt **s, uint32_t n); /* flattens; n == 1 gives the statement */
rx_stmt *rx_store(rx_tb *t, relax_buffer *b, rx_ex *index, uint32_t n, rx_ex value); /* casts nothing: dtype must fit */
rx_stmt *rx_alloc_s(rx_tb *t, relax_buffer *b, rx_stmt *body);
rx_stmt *rx_if(rx_tb *t, rx_ex cond, rx_stmt *then, rx_stmt *other);
rx_stmt *rx_let(rx_tb *t, rx_ex var, rx_ex value, rx_stmt *body);
rx_stmt *rx_check_s(rx_tb *t, rx_ex cond, uint32_t err, const char *text);
rx_stmt *rx_prefetch_s(rx_tb *t, relax_buffer *b, rx_ex *index);
rx_ex rx_at(rx_tb *t, relax_buffer *b, rx_ex *index, uint32_t n);               /* load */
rx_prim *rx_prim_new(rx_tb *t, const char *name, relax_buffer **params, uint32_t nparams, rx_ex *syms, uint32_t nsyms,
                     rx_stmt *body);
void rx_prim_where(rx_tb *t, rx_prim *p, rx_ex *conds,
                   uint32_t n); /* add conditions on its symbols that every caller keeps */

/* --- walk.c --- */
/* rewrite statements bottom-up: fs(stmt) after children, fe on every expression (either may be NULL). Shares what is
 * unchanged. fe sees loop bounds, conditions, indices and values, not the shapes of ALLOC buffers. */
typedef struct rx_stmt_map { void *arg; rx_stmt *(*stmt)(void *arg, rx_stmt *s); rx_ex (*expr)(void *arg, rx_ex e);
    rx_stmt *(*pair)(void *arg, rx_stmt *old, rx_stmt *now);
} rx_stmt_map; /* pair: as stmt, sees the original too */
rx_stmt *rx_stmt_rewrite(rx_tb *t, rx_stmt *s, const rx_stmt_map *m);
void rx_stmt_visit(rx_stmt *s, void (*f)(void *arg, rx_stmt *s), void *arg);     /* parents first */
rx_stmt *rx_stmt_subst(rx_tb *t, rx_stmt *s, const rx_map *exprs,
                       const rx_map *buffers); /* symbols -> expressions, buffers -> buffers */
/* f on every expression of the statement itself, not of its children (an ALLOC's are its buffer's dims and strides) */
void rx_stmt_exprs(const rx_stmt *s, void (*f)(void *arg, rx_ex e), void *arg);

/* --- copy.c --- */
rx_prim *rx_prim_copy(rx_tb *t, const rx_prim *p, const char *name); /* fresh buffers, symbols, loop variables */
rx_stmt *
rx_stmt_copy(rx_tb *t, rx_stmt *s, const rx_map *exprs,
             const rx_map *buffers); /* fresh loop variables, lets, ALLOCs; maps (may be NULL) as in rx_stmt_subst */
uint64_t rx_prim_hash(relax_context *ctx, const rx_prim *p); /* structural, names of symbols and buffers do not count */
bool rx_prim_equal(relax_context *ctx, const rx_prim *a, const rx_prim *b);     /* structural, as the hash */

/* --- analysis.c --- */
typedef struct rx_access { bool reads, writes; } rx_access;
void rx_prim_access(const rx_prim *p, rx_access *per_param);                    /* per parameter */
/* symbols that the parameters' shapes define, then p->syms: the order in which kernels receive them */
void rx_prim_symbols(relax_context *ctx, rx_arena *a, const rx_prim *p, rx_exvec *out);
rx_ex rx_buffer_size(relax_context *ctx, const relax_buffer *b);                /* elements */
rx_ex rx_buffer_offset(relax_context *ctx, const relax_buffer *b, rx_ex *index);        /* linear element offset */

/* --- verify.c: rules T1…; reports each break through rx_report(RXE_TIR_VERIFY / RXE_TIR_BOUNDS); returns the number of
 * breaks. unproved (may be NULL): accesses that could not be proved in bounds (rx_stmt* + text) --- */
typedef struct rx_unproved { rx_stmt *at; relax_buffer *buf; uint32_t axis; rx_ex index;
    rx_ex guard;
} rx_unproved; /* guard: the statement reaches the access only if it holds; NULL: always */
typedef RX_VEC(rx_unproved) rx_unproved_vec;
uint32_t rx_prim_verify(relax_context *ctx, const rx_prim *p, rx_arena *a, rx_unproved_vec *unproved);
/* a copy of p with a check (RXE_INDEX) in front of every access that is not proved in bounds */
rx_prim *rx_prim_guard(rx_tb *t, const rx_prim *p);

/* --- print.c, parse.c: one prim func, grammar in docs/text-form.md --- */
void rx_print_prim(rx_buf *b, const rx_prim *p);
rx_prim *rx_parse_prim(rx_lexer *l, rx_tb *t); /* after "prim" was taken; the rest up to its closing brace */
/* piece by piece, for builders that mix text with calls: the names in scope, one text after another */
typedef struct rx_tir_scope rx_tir_scope;
rx_tir_scope *rx_tir_scope_new(rx_tb *t);                                       /* t must outlive it */
void rx_tir_define(rx_tir_scope *s, const char *name, rx_ex sym, relax_buffer *buf);
rx_ex rx_tir_lookup(rx_tir_scope *s, const char *name);                         /* symbol of that name, NULL if none */
uint32_t rx_tir_mark(const rx_tir_scope *s); /* later definitions are forgotten by reset */
void rx_tir_reset(rx_tir_scope *s, uint32_t mark);
relax_buffer *rx_tir_read_buffer(rx_tir_scope *s, const char *name, const char *text,
                                 bool is_param); /* "Buffer((n, 4), f32)"; a parameter's new names become symbols */
rx_ex rx_tir_read_expr(rx_tir_scope *s, const char *text);
rx_stmt *rx_tir_read_stmts(rx_tir_scope *s, const char *text);
#endif
