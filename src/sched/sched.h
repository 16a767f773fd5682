/* sched.h: loop transformations on tensor programs, and the rule that gives every program a schedule.
 *
 * Transformations name a loop by its variable and replace p->body; they return false, and leave p as it was, when the
 * loop is not there or the change would not be legal. All are bit-preserving unless said otherwise. */
#ifndef RX_SCHED_H
#define RX_SCHED_H
#include "tir/tir.h"

/* --- loops.c --- */
typedef enum rx_tail { RX_TAIL_GUARD, RX_TAIL_LOOP } rx_tail;
/* for v in n -> for outer in ceil(n / factor) { for inner in factor { if v < n {…} } }   (GUARD)
 *            -> for outer in n // factor { for inner in factor {…} } and a loop over the rest (LOOP) */
bool rx_sched_split(rx_tb *t, rx_prim *p, rx_ex var, int64_t factor, rx_tail tail, rx_ex *outer, rx_ex *inner);
bool rx_sched_fuse(rx_tb *t, rx_prim *p, rx_ex outer,
                   rx_ex *fused); /* outer and the one loop that is its body; both of one kind */
bool rx_sched_reorder(rx_tb *t, rx_prim *p, rx_ex outer); /* exchanges outer and the one loop that is its body */
bool rx_sched_parallel(rx_tb *t, rx_prim *p, rx_ex var);  /* a top-level loop of independent iterations */
bool rx_sched_vectorize(rx_tb *t, rx_prim *p,
                        rx_ex var); /* constant extent 2..64; independent, or a reduction (re-associates) */
bool rx_sched_unroll(rx_tb *t, rx_prim *p, rx_ex var);                          /* constant extent up to 64 */

/* --- rule.c --- */
typedef struct rx_sched_info {
    bool reassociates;
    uint32_t parallel, vector, tiled;
} rx_sched_info; /* what was done; loops counted */
/* A new prim func for the target, correct for every shape: outer loops parallel, inner loops in vectors, reductions
 * with several accumulators, products in register tiles. exact: only what keeps every bit. info may be NULL. */
rx_prim *rx_schedule(rx_tb *t, const rx_prim *p, const relax_target *target, bool exact, rx_sched_info *info);
rx_prim *rx_schedule_default(rx_tb *t, const rx_prim *p, const relax_target *target);
#endif
