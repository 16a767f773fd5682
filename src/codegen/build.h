/* build.h: from a module to the bytes of an executable. */
#ifndef RX_BUILD_H
#define RX_BUILD_H
#include "graph/graph.h"

/* m is verified and stays as it is; pipeline NULL: the default one. bytes: in the arena, 64-aligned. Unwinds on error.
 */
void rx_build(relax_module *m, const relax_target *t, const char *pipeline, int32_t opt_level, bool verify, rx_arena *a,
              uint8_t **bytes, size_t *size);
#endif
