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
#endif
