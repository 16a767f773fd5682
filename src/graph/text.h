/* text.h: what print.c, text_const.c and parse.c share. */
#ifndef RX_GRAPH_TEXT_H
#define RX_GRAPH_TEXT_H
#include "graph/op.h"

/* a value or function can be written as it is: a plain identifier, no word of the grammar; else it is written $"…" */
bool rx_text_plain(const char *name);
void rx_text_name(rx_buf *b, const char *name);
const char *rx_text_read_name(rx_lexer *l, const char *what);       /* NAME or $"…" */
void rx_text_string(rx_buf *b, const char *s);                      /* quoted, escaped */
/* --- text_const.c --- */
void rx_text_const(rx_buf *b, const rx_const *c);                   /* const(f32, (2,), [1.0, 2.0]) */
relax_value *rx_text_read_const(rx_lexer *l, relax_module *m);      /* behind the word const */

/* --- parse.c, parse_scope.c, parse_attr.c, parse_body.c: one text while it is read --- */
typedef struct rx_undo { bool sym; const char *name; } rx_undo;
typedef struct rx_tparser {
    rx_lexer *l;
    relax_context *ctx;
    relax_module *m;
    relax_function *f;
    rx_arena *a;                       /* of the whole parse */
    rx_map values, syms;               /* interned name -> relax_value / symbol in scope, or NULL */
    rx_map early;                      /* symbols of the head that no parameter defines: name -> symbol */
    RX_VEC(rx_undo) scope;
    rx_gb gb;
    bool pure;                         /* the function is declared so */
    uint32_t line, col;                /* of the binding that is read */
} rx_tparser;
/* --- parse_scope.c --- */
void rx_tp_open(rx_tparser *p);                                     /* empty scopes */
void rx_tp_define(rx_tparser *p, const char *name, relax_value *v);
void rx_tp_define_sym(rx_tparser *p, const char *name, rx_ex s);
void rx_tp_leave(rx_tparser *p, uint32_t mark);                     /* forget what was defined since scope.n was mark */
/* resolvers for rx_scope_fns: names that are known; that a head defines; that a match_cast defines; in conditions of a
 * head */
rx_ex rx_tp_known(void *arg, rx_lexer *l, const char *name);
rx_ex rx_tp_head(void *arg, rx_lexer *l, const char *name);
rx_ex rx_tp_cast(void *arg, rx_lexer *l, const char *name);
rx_ex rx_tp_where(void *arg, rx_lexer *l, const char *name);
rx_ex rx_tp_expr(rx_tparser *p);
rx_ex rx_tp_index(rx_tparser *p);                                   /* an integer expression over known symbols */
void rx_tp_indices(rx_tparser *p, const char *open, const char *close, rx_exvec *out);
rx_ty rx_tp_type(rx_tparser *p, rx_ex (*names)(void *, rx_lexer *, const char *));
bool rx_tp_more(rx_lexer *l, const char *close);                    /* "," and another item, or close (taken) */
void rx_tp_place(rx_tparser *p);                                    /* errors without a place get the current one */
/* --- parse_attr.c --- */
void rx_tp_ints(rx_tparser *p, rx_attr *x);
bool rx_tp_at_key(const rx_lexer *l);                               /* "key =" comes next */
rx_attr rx_tp_op_attr(rx_tparser *p, const rx_op *op);
void rx_tp_attrs(rx_tparser *p, rx_attrs *out);                     /* attrs {…}, if it is there */
/* --- parse_body.c --- */
relax_value *rx_tp_body(rx_tparser *p, const char *word);           /* "{" bindings word result "}" */
#endif
