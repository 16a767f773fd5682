/* impl.h: what the files of expr/ share and nobody else sees.
 *
 * Shapes of canonical index expressions (all other files rely on them):
 *  - product: factors sorted by rx_expr_cmp, as a balanced binary tree of MUL nodes (split in the middle: the
 *    shape follows from the number of factors); no factor is an INT.
 *  - term: a product, or MUL(product, INT c) with c other than 0 and 1.
 *  - sum: terms sorted by their products, as a binary tree of ADD nodes whose shape follows from the hashes of the
 *    products (a leaf-oriented treap: the boundary with the largest rx_sum_prio is the root), so a term is added
 *    in O(log n) and equal sums are equal trees; a constant stands apart at the top: ADD(sum, INT c).
 *  - min, max, and, or: operands sorted, balanced tree as for products, the constant last.
 *  - RX_EX_RAW marks an ADD or MUL left undone, because it would overflow int64 or get too long: it counts as an
 *    atom. */
#ifndef RX_EXPR_IMPL_H
#define RX_EXPR_IMPL_H
#include "expr/expr.h"

enum { RX_EX_RAW = 4 };
#define RX_EXPR_DEPTH 1000             /* deepest nesting; recursive walks rely on it */
#define RX_EXPR_AC 64                  /* most operands that one step of *, min, max, and, or puts in order */
#define RX_EXPR_EXPAND 256             /* most terms that a product of sums is multiplied out to */

struct rx_exprs {
    rx_ex *slots;                      /* hash-consing table, open addressing */
    uint32_t n, nslots, next_id;
    rx_map names;                      /* RX_KEY(name) -> number of symbols of that name */
    rx_ex truth[2];
    struct rx_rules *rules;            /* rules.c, parsed at first use */
};

static inline bool rx_is_index(rx_ex e) { return !(e->flags & RX_EX_DATA); }
static inline bool rx_is_sum(rx_ex e) { return e->op == RX_EX_ADD && !(e->flags & (RX_EX_DATA | RX_EX_RAW)); }
static inline bool rx_is_prod(rx_ex e) { return e->op == RX_EX_MUL && !(e->flags & (RX_EX_DATA | RX_EX_RAW)); }

/* node.c */
rx_exprs *rx_expr_state(relax_context *ctx);
rx_ex rx_node(relax_context *ctx, rx_eop op, uint32_t flags, relax_dtype t, const rx_ex *a, uint32_t n);
rx_ex rx_node2(relax_context *ctx, rx_eop op, uint32_t flags, relax_dtype t, rx_ex a, rx_ex b);
rx_ex rx_sum_node(relax_context *ctx, rx_ex l, rx_ex r);
int rx_expr_cmp(rx_ex a, rx_ex b);     /* the structural order; 0 only for a == b */
bool rx_op_takes(rx_eop op, relax_dtype t);
extern const char *const rx_eop_text[];
extern const int8_t rx_eop_prec[];
extern const char *const rx_intrin_text[];
extern const uint8_t rx_intrin_arity[];

/* fold.c: constants of any dtype; NULL: not folded */
int64_t rx_wrap(relax_dtype t, int64_t v);
rx_ex rx_fold_binary(relax_context *ctx, rx_eop op, rx_ex a, rx_ex b);
rx_ex rx_fold_unary(relax_context *ctx, rx_eop op, rx_ex a);
rx_ex rx_fold_cast(relax_context *ctx, relax_dtype to, rx_ex a);
rx_ex rx_fold_call(relax_context *ctx, rx_intrin f, rx_ex *a);
/* op over mathematical integers that fit int64; false: overflow or division by zero */
bool rx_int_op(rx_eop op, int64_t a, int64_t b, int64_t *r);

/* poly.c: sums and products of index expressions */
typedef struct rx_term { rx_ex key; int64_t coef; } rx_term;
typedef struct rx_terms { rx_term *t; uint32_t n; int64_t k; } rx_terms;       /* sum of coef * key, plus k */
rx_term rx_term_of(rx_ex e);           /* a non-sum, non-constant node as coefficient and product */
uint32_t rx_terms_of(rx_ex e, rx_arena *a, rx_terms *out);      /* every index expression as a sum, keys in order */
rx_ex rx_from_terms(relax_context *ctx, const rx_terms *t);     /* keys in any order, may repeat */
rx_ex rx_scale(relax_context *ctx, rx_ex key, int64_t coef);    /* a term */
rx_ex rx_index_add(relax_context *ctx, rx_ex a, rx_ex b);
rx_ex rx_index_mul(relax_context *ctx, rx_ex a, rx_ex b);
uint32_t rx_factors(rx_ex key, rx_ex *out, uint32_t cap);       /* factors in order; cap + 1 when there are more */
/* product / product, rest may be INT 1 */
bool rx_divide_key(relax_context *ctx, rx_ex key, rx_ex by, rx_ex *rest);
int64_t rx_gcd(int64_t a, int64_t b);  /* of absolute values; 0 and 0 give 0; INT64_MIN counts as 1 */

/* divmod.c, order.c */
rx_ex rx_index_floordiv(relax_context *ctx, rx_ex a, rx_ex b);
rx_ex rx_index_floormod(relax_context *ctx, rx_ex a, rx_ex b);
rx_ex rx_index_trunc(relax_context *ctx, rx_eop op, rx_ex a, rx_ex b);         /* TRUNCDIV TRUNCMOD */
rx_ex rx_index_compare(relax_context *ctx, rx_eop op, rx_ex a, rx_ex b);
rx_ex rx_index_extremum(relax_context *ctx, rx_eop op, rx_ex a, rx_ex b);      /* MIN MAX */
rx_ex rx_index_logic(relax_context *ctx, rx_eop op, rx_ex a, rx_ex b);         /* AND OR */
rx_ex rx_index_not(relax_context *ctx, rx_ex a);
/* leaves of a tree of op; cap + 1 when more */
uint32_t rx_operands(rx_ex e, rx_eop op, rx_ex *out, uint32_t cap);

/* walk.c */
rx_ex rx_rebuild(relax_context *ctx, rx_ex e, rx_ex *a);        /* e with operands a, canonicalised again */

/* linear.c: systems of linear constraints over integer variables 0, 1, … Every function may give up (budget,
 * overflow) and is then silent; "true" is always a proof. */
typedef struct rx_mono { uint32_t v; int64_t c; } rx_mono;
typedef struct rx_row {                /* sum of c * v, plus k; eq: == 0, else >= 0. Variables ascend. */
    uint32_t n;
    bool eq;
    int64_t k;
    rx_mono t[];
} rx_row;
typedef RX_VEC(const rx_row *) rx_rows;
typedef struct rx_box { int64_t *lo, *hi; uint32_t n; } rx_box;      /* INT64_MIN / INT64_MAX: unbounded */
rx_row *rx_row_new(rx_arena *a, uint32_t n, bool eq, int64_t k);
/* p * x + q * y; as a condition divided by its gcd (constant rounded), as a form (a value) never; NULL: does not fit */
typedef enum rx_rowkind { RX_ROW_GE, RX_ROW_EQ, RX_ROW_FORM } rx_rowkind;
rx_row *rx_row_mix(rx_arena *a, const rx_row *x, int64_t p, const rx_row *y, int64_t q, rx_rowkind kind);
/* normalised copy; *contra: it has no solution; NULL: it says nothing */
const rx_row *rx_row_tight(rx_arena *a, const rx_row *r, bool *contra);
bool rx_rows_propagate(const rx_rows *rows, rx_box *b, int rounds);            /* true: contradiction */
/* true: no integer solution. With keep: all other variables are eliminated and the bounds of keep are put into
 * *lo, *hi. */
bool rx_rows_infeasible(rx_arena *a, const rx_rows *rows, uint32_t *nvars, int64_t *budget, int64_t keep, int64_t *lo,
                        int64_t *hi);

/* refute.c: from conditions to linear systems, with case splits */
typedef struct rx_query rx_query;
/* cases: may use cases.c */
rx_query *rx_query_new(relax_context *ctx, rx_arena *a, const rx_facts *f, int64_t budget, bool cases);
bool rx_refute(rx_query *q, rx_ex cond);       /* true: cond cannot hold under the facts */
void rx_query_bounds(rx_query *q, rx_ex e, int64_t *lo, int64_t *hi);          /* narrows *lo, *hi */
/* true: the conditions contradict each other */
bool rx_refute_all(rx_query *q, const rx_exvec *conj);
const rx_facts *rx_query_facts(const rx_query *q);
bool rx_query_partial(const rx_query *q);
relax_context *rx_query_ctx(const rx_query *q);
rx_arena *rx_query_arena(const rx_query *q);

/* cases.c: the same after rewriting the conditions themselves, case by case */
bool rx_refute_cases(rx_query *q, const rx_exvec *conj, int depth);

/* facts.c */
struct rx_facts {
    relax_context *ctx;
    rx_arena *a;
    const rx_facts *parent;
    rx_exvec conds;                    /* conjuncts */
    RX_VEC(rx_exvec) syms;             /* their symbols */
    rx_map range;                      /* RX_KEY(node) -> rx_range *: what the conjuncts say about a node */
    rx_map users;                      /* RX_KEY(node) -> the conjuncts that read its range */
    rx_exvec todo;                     /* conjuncts to look at again */
    bool empty;                        /* a conjunct is false */
    bool partial;                      /* a conjunct has a select, which may hide a division by zero */
};
typedef struct rx_range { int64_t lo, hi; } rx_range;
/* of the node itself, without looking inside; symbols' own bounds included */
rx_range rx_facts_range(const rx_facts *f, rx_ex e);

bool rx_facts_partial(const rx_facts *f);

/* bounds.c */
rx_range rx_range_of(relax_context *ctx, const rx_facts *f, rx_ex e);  /* by interval arithmetic alone: linear time */

/* sample.c */
typedef struct rx_sample {
    rx_exvec syms, conds;
    rx_map env;
    int64_t *point[2];                 /* values of syms where the condition is false, true; NULL: none found */
} rx_sample;
void rx_facts_relevant(const rx_facts *f, rx_arena *a, rx_ex cond, rx_exvec *conds, rx_exvec *syms);
void rx_sample_points(relax_context *ctx, rx_arena *a, const rx_facts *f, rx_ex cond, rx_sample *s);
void rx_sample_say(rx_buf *b, const rx_sample *s, bool truth);

/* prove.c */
typedef enum rx_effort { RX_EFFORT_QUICK, RX_EFFORT_FULL } rx_effort;
rx_truth rx_prove_with(relax_context *ctx, const rx_facts *f, rx_ex cond, rx_effort effort, rx_buf *why);

/* rules.c */
/* the first rule that fires, or e; *proofs: how many left */
rx_ex rx_apply_rules(relax_context *ctx, const rx_facts *f, rx_ex e, int *proofs);
uint32_t rx_rule_count(void);
const char *const *rx_rule_text(uint32_t i);   /* lhs, rhs, cond */
bool rx_rule_is_const(char c);                 /* kinds of the names in rules */
bool rx_rule_is_bool(char c);
bool rx_rule_fires(relax_context *ctx, uint32_t i, const rx_facts *f, rx_ex e);      /* for tests */

/* temporary memory of the innermost frame, freed with it */
static inline rx_arena *rx_temp(relax_context *ctx) { return rx_scratch(&ctx->heap); }
#endif
