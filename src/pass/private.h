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
/* adds those of extra[0..n) to v's obligations that are not among them */
void rx_pass_oblige(relax_value *v, rx_ex *extra, uint32_t n);
/* annotations of all bindings anew, after operands became more precise; bodies of an IF before it */
void rx_pass_rededuce(relax_function *f);
/* do they stand in different bodies of one IF? Then they are never alive together */
bool rx_pass_exclusive(const relax_value *v, const relax_value *w);
/* Replacing many values in one walk: bindings are visited in program order; each first brings its operands up to date,
 * then may be replaced; at the end all that is left (results of bodies) follows. Linear, where rx_v_replace walks the
 * function each time. */
typedef struct rx_renames { rx_map to; } rx_renames;
rx_renames rx_pass_renames(rx_pass_run *r);
void rx_pass_rename(rx_renames *n, relax_value *old,
                    relax_value *with); /* old is no longer used; remove it from its block */
void rx_pass_rename_args(rx_renames *n, relax_value *v);
void rx_pass_rename_rest(rx_renames *n, relax_function *f);
/* --- alias.c --- */
/* Which values of a function may share memory, by the effects of bindings: classes, as a union-find over value ids. */
typedef struct rx_alias { uint32_t *rep; } rx_alias;
rx_alias rx_pass_alias(rx_pass_run *r, const rx_valvec *all);
uint32_t rx_pass_alias_of(rx_alias *a, const relax_value *v);                   /* the id of the class */
/* by class: something writes over the memory (in-place calls, here or in a function that is called) */
bool *rx_pass_overwritten(rx_pass_run *r, const rx_valvec *all, rx_alias *a);
/* Constants that may be written over (here, by a function that is called, by a caller) are copied first. */
void rx_pass_own_constants(rx_pass_run *r, relax_function *f);
#endif
