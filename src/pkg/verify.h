/* verify.h: private to pkg/: state of the verifier, shared by verify.c (records) and verify_code.c (bytecode). */
#ifndef RX_PKG_VERIFY_H
#define RX_PKG_VERIFY_H
#include "pkg/pkg.h"

typedef struct rx_verifier {
    relax_context *ctx;
    rx_pkg *p;
    int32_t *cost;                     /* per type: records when written out, depth * 2^24 */
    int64_t budget;                    /* steps left; proportional to the file */
    int32_t fn, pc;                    /* where we are, for messages; -1 none */
} rx_verifier;
/* Reports RXE_FILE_CORRUPT, naming function and word. */
relax_status rx_verify_bad(rx_verifier *v, const char *fmt, ...) RX_PRINTF(2, 3);
static inline bool rx_verify_pay(rx_verifier *v, int64_t steps) { return (v->budget -= steps) >= 0; }
relax_status rx_verify_over_budget(rx_verifier *v);
static inline bool rx_verify_index(int64_t i, uint32_t n) { return i >= 0 && i < n; }
relax_status rx_verify_code(rx_verifier *v, int32_t fn);
/* instructions first .. first+n of the shape program: operands defined, dst written once. slots: RX_SLOT_* of the
 * function */
enum { RX_SLOT_SET = 1, RX_SLOT_MAYBE = 2 };            /* written on all paths; on some path */
relax_status rx_verify_shape(rx_verifier *v, uint8_t *slots, int32_t nslots, int64_t first, int64_t n);
bool rx_verify_ref(const rx_verifier *v, const uint8_t *slots, int32_t nslots, int32_t ref);
#endif
