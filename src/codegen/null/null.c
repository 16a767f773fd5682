/* null.c: a backend that makes no code, the skeleton to copy for a new one.
 *
 * In: verified, scheduled prim funcs. Out: rx_code with one entry for each kernel. To write a backend: copy this
 * folder, add a row to backends.def, walk each prim's body (tir/tir.h) and its expressions (expr/expr.h), refuse with
 * rx_fail(RXE_CODEGEN) what the target cannot do, put the result into the arena. Say which phases may be split (rt/
 * runs phases with a barrier between them). */
#include "codegen/codegen.h"

static const uint8_t serial[1] = {0};

void rx_codegen_null(relax_context *ctx, rx_arena *a, const relax_target *t, const rx_prim *const *prims, uint32_t n,
    const rx_codegen_options *o, rx_code *out)
{
    (void)t;
    (void)o;
    (void)prims;
    *out = (rx_code){.kernels = RX_NEWN(a, rx_kernel_code, n), .nentries = n};
    for (uint32_t i = 0; i < n; i++) {
        rx_progress(ctx, "codegen", i, n);
        out->kernels[i] = (rx_kernel_code){.first = i, .nphases = 1, .parallel = serial};
    }
}
