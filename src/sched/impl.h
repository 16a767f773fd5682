/* impl.h: what the files of sched/ share. */
#ifndef RX_SCHED_IMPL_H
#define RX_SCHED_IMPL_H
#include "sched/sched.h"

/* --- deps.c --- */
bool rx_loop_independent(rx_tb *t, const rx_facts *f,
                         const rx_stmt *loop); /* no iteration reads or writes what another writes */
/* how the accesses of a statement move when v grows by one */
typedef struct rx_moves {
    uint32_t uniform, unit, other;     /* loads, each counted once: same element, next element, anything else */
    uint32_t store_uniform, store_unit, store_other;            /* stores to buffers that are not allocated inside */
    uint32_t work;                     /* nodes computed */
    bool calls;                        /* uses exp, tanh, … */
    uint32_t bytes;                    /* of the widest dtype computed */
    bool plain;                        /* nothing but SEQ, STORE, LET, loops and local ALLOCs */
    bool loops, spatial;               /* has loops; has loops that are not reductions */
} rx_moves;
void rx_moves_of(rx_tb *t, rx_stmt *s, rx_ex v, rx_moves *m);
bool rx_stmt_stores(const rx_stmt *s, const relax_buffer *b);
bool rx_loads_from(relax_context *ctx, rx_ex e, const relax_buffer *b);
/* the update S[index] = S[index] op e that a store is (op ADD MUL MIN MAX, e without a load of S) */
bool rx_update_of(relax_context *ctx, const rx_stmt *store, rx_eop *op, rx_ex *e);

/* --- jam.c --- */
/* The body for v = base + u * stride, u = 0 … factor - 1, at once: every leaf statement runs for all u before the next
 * one, in a loop of kind how (VECTOR, UNROLL); local buffers allocated inside get a leading dim of factor. The
 * iterations of v must be independent. NULL when the body does not allow it. */
rx_stmt *rx_jam(rx_tb *t, rx_stmt *body, rx_ex v, rx_ex base, int64_t stride, int64_t factor, rx_loop how);

/* --- reduce.c --- */
/* accumulators that a reduce loop keeps in other buffers become local scalars, stored after the loop; loop itself if
 * none */
rx_stmt *rx_privatize(rx_tb *t, rx_stmt *loop);
/* A reduce loop with unroll * lanes partial accumulators that are combined after it (re-associates); NULL when its body
 * is not a list of updates of distinct local scalars. Float accumulators only when floats. */
rx_stmt *rx_rfactor(rx_tb *t, rx_stmt *loop, int64_t lanes, int64_t unroll, bool floats);
rx_stmt *rx_use_fma(rx_tb *t, rx_stmt *s, bool *used); /* S = S + x * y becomes S = fma(x, y, S) (rounds once) */

/* --- loops.c --- */
rx_ex rx_nonneg_extent(rx_tb *t, const rx_facts *f,
                       rx_ex extent); /* extent, or max(0, extent) where it may be negative */
/* start, number and rest of the parts of `factor` that a range has */
typedef struct rx_parts { rx_ex count, rest_start, rest; } rx_parts;
rx_parts rx_split_range(rx_tb *t, rx_ex start, rx_ex extent, int64_t factor);
rx_stmt *rx_subst_one(rx_tb *t, rx_stmt *s, rx_ex sym, rx_ex value);
rx_stmt *rx_skip(rx_tb *t);                                     /* the empty statement */
#endif
