/* interp.h: runs modules at any stage without code generation: slow, obvious, the oracle of all tests. */
#ifndef RX_INTERP_H
#define RX_INTERP_H
#include "tir/tir.h"

/* --- tir_interp.c --- */
/* Runs p. bufs: for each parameter its first element, laid out as the parameter says (row-major or by its strides); syms: the values of
 * its symbols in the order of rx_prim_symbols. Every access is checked. Unwinds with RXE_INDEX, the error of an ASSERT
 * that fails, RXE_BAD_VALUE for a negative dim, RXE_CANCELLED. What was stored before an error stays stored. */
void rx_interp_prim(relax_context *ctx, const rx_prim *p, void *const *bufs, const int64_t *syms);
#endif
