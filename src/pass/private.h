/* private.h: small things that several passes share. */
#ifndef RX_PASS_PRIVATE_H
#define RX_PASS_PRIVATE_H
#include "pass/pass.h"

typedef RX_VEC(relax_value *) rx_valvec;
/* --- list.c --- */
/* all bindings of f in program order, bodies of an IF behind it; a snapshot, so that f may be changed while it is
 * walked */
rx_valvec rx_pass_bindings(rx_pass_run *r, relax_function *f);
/* how often each value is used (arguments and results of bodies), by relax_value.id */
uint32_t *rx_pass_use_counts(rx_pass_run *r, relax_function *f);
/* runs fn on every graph function of the module */
void rx_pass_each(rx_pass_run *r, void (*fn)(rx_pass_run *r, relax_function *f));
#endif
