/* expr.h: scalar expressions for symbolic dims AND program bodies.
 *
 * A node is immutable and hash-consed in its context: equal pointers mean equal expressions. Two families share
 * the nodes:
 *  - index expressions: dtype i64 without loads (and bools over them). They are mathematical integers; every
 *    constructor canonicalises (sums of products with integer coefficients in one structural order, so n*4 + m ==
 *    m + 4*n is a pointer comparison) and folds; folding that would overflow int64 is left undone.
 *  - data expressions (flag RX_EX_DATA): floats, fixed-width integers, anything that holds a LOAD. Only constants
 *    are folded, with the semantics of the dtype (wrap at the width, IEEE); no algebra. The order inside canonical
 *    sums is structural (symbol names first), never by address or time of creation. */
#ifndef RX_EXPR_H
#define RX_EXPR_H
#include "core/core.h"

typedef enum rx_eop {
#define EX(name, arity, text, prec, doc) RX_EX_##name,
#include "expr/exprs.def"
#undef EX
    RX_EX_COUNT
} rx_eop;
typedef enum rx_intrin {
#define IN(name, text, arity, doc) RX_IN_##name,
#include "expr/intrins.def"
#undef IN
    RX_IN_COUNT
} rx_intrin;

typedef const relax_expr *rx_ex;
enum { RX_EX_DATA = 1, RX_EX_HAS_SYM = 2 };
struct relax_expr {
    uint8_t op, flags;                 /* rx_eop, RX_EX_* */
    uint8_t dtype;                     /* relax_dtype */
    uint8_t intrin;                    /* CALL: rx_intrin */
    uint32_t nargs;
    uint32_t id;                       /* unique in the context, from 1 */
    uint32_t size;                     /* nodes of the tree, saturating (for budgets) */
    uint32_t depth;                    /* levels, at most 1000 (RXE_LIMIT above): walks may recurse */
    relax_context *ctx;                /* that made it */
    uint64_t hash;                     /* structural: symbols by name and number */
    /* first: canonical sums, its first key */
    union { int64_t i; double f; struct rx_sym *sym; relax_buffer *buf; const relax_expr *first; } u;
    rx_ex a[];
};
typedef struct rx_sym {                /* a symbol; two symbols of one name are different */
    const char *name;
    uint32_t number;                   /* among symbols of that name in the context: 0, 1, … */
    int64_t lo, hi;                    /* declared bounds, INT64_MIN/MAX when none; dims start with lo = 0 */
    int64_t divisor;                   /* the value is a multiple of it (>= 1) */
    void *owner;                       /* function or loop that defines it; informational */
} rx_sym;

/* --- node.c: constructors --- */
rx_ex rx_int(relax_context *ctx, int64_t v);                            /* i64 */
rx_ex rx_bool(relax_context *ctx, bool v);
rx_ex rx_const_int(relax_context *ctx, relax_dtype t, int64_t v);       /* wraps to t's width */
rx_ex rx_const_float(relax_context *ctx, relax_dtype t, double v);      /* rounded to t */
/* a fresh symbol (i64 dims: lo = INT64_MIN; callers that make a dim set lo = 0) */
rx_ex rx_sym_new(relax_context *ctx, const char *name, relax_dtype t);
/* both of one dtype (shifts too); comparisons give bool; fails RXE_DTYPE otherwise */
rx_ex rx_binary(relax_context *ctx, rx_eop op, rx_ex a, rx_ex b);
rx_ex rx_unary(relax_context *ctx, rx_eop op, rx_ex a);                 /* NOT NEG BITNOT */
rx_ex rx_select(relax_context *ctx, rx_ex cond, rx_ex a, rx_ex b);
rx_ex rx_cast(relax_context *ctx, relax_dtype to, rx_ex a);
rx_ex rx_bitcast(relax_context *ctx, relax_dtype to, rx_ex a);
rx_ex rx_intrinsic(relax_context *ctx, rx_intrin f, rx_ex *args, uint32_t n);
rx_ex rx_load(relax_context *ctx, relax_buffer *b, relax_dtype t, rx_ex *index, uint32_t n);
rx_ex rx_sum(relax_context *ctx, rx_ex *terms, uint32_t n);             /* index expressions; linear time */
rx_ex rx_product(relax_context *ctx, rx_ex *factors, uint32_t n);       /* the empty product is 1 */
/* shorthands over rx_binary: a and b of any one dtype */
rx_ex rx_add(relax_context *ctx, rx_ex a, rx_ex b);
rx_ex rx_sub(relax_context *ctx, rx_ex a, rx_ex b);
rx_ex rx_mul(relax_context *ctx, rx_ex a, rx_ex b);
rx_ex rx_div(relax_context *ctx, rx_ex a, rx_ex b);                     /* floats: DIV; integers: FLOORDIV */
rx_ex rx_mod(relax_context *ctx, rx_ex a, rx_ex b);                     /* FLOORMOD */
rx_ex rx_min(relax_context *ctx, rx_ex a, rx_ex b);
rx_ex rx_max(relax_context *ctx, rx_ex a, rx_ex b);
rx_ex rx_eq(relax_context *ctx, rx_ex a, rx_ex b);
rx_ex rx_ne(relax_context *ctx, rx_ex a, rx_ex b);
rx_ex rx_lt(relax_context *ctx, rx_ex a, rx_ex b);
rx_ex rx_le(relax_context *ctx, rx_ex a, rx_ex b);
rx_ex rx_and(relax_context *ctx, rx_ex a, rx_ex b);
rx_ex rx_or(relax_context *ctx, rx_ex a, rx_ex b);
rx_ex rx_not(relax_context *ctx, rx_ex a);
/* a + b, a - b, a * b, a // b, a % b with an integer of a's dtype */
rx_ex rx_addi(relax_context *ctx, rx_ex a, int64_t b);
rx_ex rx_subi(relax_context *ctx, rx_ex a, int64_t b);
rx_ex rx_muli(relax_context *ctx, rx_ex a, int64_t b);
rx_ex rx_divi(relax_context *ctx, rx_ex a, int64_t b);
rx_ex rx_modi(relax_context *ctx, rx_ex a, int64_t b);
rx_ex rx_call1(relax_context *ctx, rx_intrin f, rx_ex a);
bool rx_is_int(rx_ex e, int64_t *v);                                    /* an INT constant? */
bool rx_is_value(rx_ex e, int64_t v);
rx_sym *rx_sym_of(rx_ex e);                                             /* the symbol of a SYM node, else NULL */

/* --- walk.c --- */
/* Replace: map holds RX_KEY(node) -> node, usually symbols; the result is canonicalised again. Linear in distinct
 * nodes. */
rx_ex rx_subst(relax_context *ctx, rx_ex e, const rx_map *map);
/* General rewrite: f may return another node for the (already rewritten) node e, or e itself. */
rx_ex rx_rewrite(relax_context *ctx, rx_ex e, rx_ex (*f)(void *arg, rx_ex e), void *arg);
/* each distinct node once, arguments first */
void rx_visit(relax_context *ctx, rx_ex e, void (*f)(void *arg, rx_ex e), void *arg);
typedef RX_VEC(rx_ex) rx_exvec;
/* adds symbols not yet in out, in order of first appearance in the printed text */
void rx_free_syms(relax_context *ctx, rx_arena *a, rx_ex e, rx_exvec *out);
bool rx_uses(relax_context *ctx, rx_ex e, rx_ex sym);
/* Integer evaluation of an index expression (i64/bool). env: RX_KEY(sym node) -> (void *)&int64_t. */
typedef enum rx_evalres { RX_EVAL_OK, RX_EVAL_UNBOUND, RX_EVAL_OVERFLOW, RX_EVAL_DIV_ZERO, RX_EVAL_DATA } rx_evalres;
rx_evalres rx_eval(relax_context *ctx, rx_ex e, const rx_map *env, int64_t *out);

/* --- facts.c, bounds.c, modular.c, prove.c, simplify.c --- */
/* a set of true conditions over index expressions; symbols' own bounds always count */
typedef struct rx_facts rx_facts;
/* parent may be NULL; sees its facts */
rx_facts *rx_facts_new(relax_context *ctx, rx_arena *a, const rx_facts *parent);
void rx_facts_add(rx_facts *f, rx_ex cond);
/* it grows in a from now on: modules exchanged their arenas */
void rx_facts_rehome(rx_facts *f, rx_arena *a);
bool rx_facts_contradict(const rx_facts *f);                            /* proved empty */
typedef enum rx_truth { RX_FALSE = 0, RX_TRUE = 1, RX_UNKNOWN = 2 } rx_truth;
/* facts may be NULL. why (may be NULL) gets a sentence. Sound: never TRUE or FALSE without proof; time bounded by
 * a budget. */
rx_truth rx_prove(relax_context *ctx, const rx_facts *f, rx_ex cond, rx_buf *why);
/* RX_FALSE: proved different for all values */
rx_truth rx_prove_eq(relax_context *ctx, const rx_facts *f, rx_ex a, rx_ex b);
rx_truth rx_prove_le(relax_context *ctx, const rx_facts *f, rx_ex a, rx_ex b);
rx_ex rx_simplify(relax_context *ctx, const rx_facts *f, rx_ex e);      /* full strength; equal to e under f */
/* interval of all values; INT64_MIN / INT64_MAX = unbounded (in which case nothing is claimed on that side) */
void rx_bounds(relax_context *ctx, const rx_facts *f, rx_ex e, int64_t *lo, int64_t *hi);
/* e == base (mod coeff); coeff 0: e == base */
void rx_modular(relax_context *ctx, const rx_facts *f, rx_ex e, int64_t *coeff, int64_t *base);
/* a symbolic upper bound of e that uses only symbols for which keep(sym) is true, or NULL (for memory planning) */
rx_ex rx_upper(relax_context *ctx, const rx_facts *f, rx_ex e, bool (*keep)(void *, rx_ex), void *arg);
/* Solve e == value for the one unknown symbol sym that occurs linearly in e (2*n, n+1, m*n with m known):
 * gives the solution expression and the condition (divisibility) under which it exists. false: cannot. */
bool rx_solve(relax_context *ctx, rx_ex e, rx_ex value, rx_ex sym, rx_ex *solution, rx_ex *cond);

/* The largest set of values of sym, an interval, for which the comparison claim holds for ALL values of the
 * symbols in all[0..n) inside their inclusive ranges (lo[i], hi[i]). known false: not found. lo, hi: NULL =
 * unbounded; empty: no value does. */
typedef struct rx_interval { bool known, empty; rx_ex lo, hi; } rx_interval;
rx_interval rx_solve_set(relax_context *ctx, const rx_facts *f, rx_ex claim, rx_ex sym, const rx_ex *all,
                         const int64_t *lo, const int64_t *hi, uint32_t n);

/* --- print.c, lex.c, parse.c --- (a relax_buffer begins with its name: const char *name) */
/* minimal parentheses; symbols by name (number > 0: name_number is the caller's job through unique names) */
void rx_print_expr(rx_buf *b, rx_ex e);
void rx_print_dims(rx_buf *b, rx_ex *d, uint32_t n);                    /* "(n, 4)" "(n,)" "()" */
typedef enum rx_tok { RX_T_EOF, RX_T_NAME, RX_T_INT, RX_T_FLOAT, RX_T_STRING, RX_T_PUNCT } rx_tok;
/* of all text forms; comments: // only where a token cannot start with // (i.e. "#" comments) */
typedef struct rx_lexer {
    relax_context *ctx;
    const char *file, *s;
    size_t n, pos, start;              /* current token is s[start..pos) */
    rx_tok tok;
    int64_t ival; double fval;         /* INT (u64 constants wrap), FLOAT */
    bool big;                          /* the INT does not fit int64: ival holds its u64 bits */
    const char *text;                  /* interned: NAME, STRING (unescaped), PUNCT ("->", "//", "<=", "+=", …) */
    uint32_t line, col, depth;         /* of the current token; nesting depth (capped at RX_MAX_DEPTH) */
    /* of the read position: line, where it starts, nothing on it yet */
    uint32_t line_no; size_t line_at; bool fresh;
} rx_lexer;
#define RX_MAX_DEPTH 128
/* and reads the first token */
void rx_lex_init(rx_lexer *l, relax_context *ctx, const char *file, const char *s, size_t n);
void rx_lex_next(rx_lexer *l);
bool rx_lex_is(const rx_lexer *l, const char *punct_or_name);
bool rx_lex_take(rx_lexer *l, const char *punct_or_name);               /* if it is next, take it */
/* take it or fail RXE_SYNTAX: expected 'x', found 'y' */
void rx_lex_want(rx_lexer *l, const char *punct_or_name);
const char *rx_lex_name(rx_lexer *l, const char *what);                 /* take a NAME or fail "expected <what>" */
int64_t rx_lex_int(rx_lexer *l, const char *what);                      /* with an optional sign */
RX_NORETURN void rx_lex_fail(rx_lexer *l, enum rx_err e, const char *fmt, ...) RX_PRINTF(3, 4);
rx_where rx_lex_where(const rx_lexer *l);
/* names in an expression: a resolver gives the node of a name (a symbol), or of name[index…] (a load); NULL:
 * unknown name */
typedef struct rx_scope_fns {
    rx_ex (*name)(void *arg, rx_lexer *l, const char *name);
    rx_ex (*load)(void *arg, rx_lexer *l, const char *name, rx_ex *index, uint32_t n);     /* may be NULL */
    void *arg;
} rx_scope_fns;
/* Literals: 3 is i64, 1.5 is f32 unless the other operand says otherwise (a literal takes the dtype of the other
 * operand); f16(x), i32(x) … are casts; "and or not && || !" are accepted; "//" floor, "/" float division. */
rx_ex rx_parse_expr(rx_lexer *l, const rx_scope_fns *sc);
/* a lone literal takes the dtype t */
rx_ex rx_parse_expr_as(rx_lexer *l, const rx_scope_fns *sc, relax_dtype t);
rx_ex rx_parse_expr_text(relax_context *ctx, const char *s, size_t n, const rx_scope_fns *sc);     /* the whole text */
/* the same for attributes of operators: 1.5 is f64 unless the other operand says otherwise */
rx_ex rx_parse_attr_expr(rx_lexer *l, const rx_scope_fns *sc);
rx_ex rx_parse_attr_text(relax_context *ctx, const char *s, size_t n, const rx_scope_fns *sc);
#endif
