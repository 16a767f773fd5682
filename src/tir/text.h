/* text.h: what print.c and parse.c share: the words of the text form. */
#ifndef RX_TIR_TEXT_H
#define RX_TIR_TEXT_H
#include "tir/tir.h"

/* words that cannot name a symbol or buffer, because an expression or a statement may start with them */
bool rx_tir_reserved(const char *name);
extern const char *const rx_mem_text[];             /* by rx_mem */
extern const char *const rx_loop_text[];            /* by rx_loop; "" for serial */
/* stores written with an operator: S[i] op e stands for S[i] = S[i] op e */
typedef struct rx_update { rx_eop op; const char *text; } rx_update;
extern const rx_update rx_updates[];
#define RX_UPDATES 5
/* the words of assert: lower-case names of errors.def */
const char *rx_tir_err_word(uint32_t err);          /* NULL: no such error */
uint32_t rx_tir_err_number(const char *word);       /* 0: no such error */
#endif
