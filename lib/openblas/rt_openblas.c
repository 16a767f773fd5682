/* rt_openblas.c: OpenBLAS behind call_dps_library, run-time half.
 *
 * openblas.sgemm: A (…, m, k) f32, B (k, n) or (…, k, n) f32 -> C (…, m, n) f32; optional symbolic arguments [transpose
 * A, transpose B] say that the last two dims of A, B are stored the other way round. The library is opened when it is
 * registered and stays open: it keeps threads, so it cannot be closed. How many threads it uses is a setting of the
 * whole process and is left to the host. */
#include "rt/rt.h"

#include <stdio.h>

typedef void (*sgemm_fn)(int order, int ta, int tb, int m, int n, int k, float alpha, const float *a, int lda,
                         const float *b, int ldb, float beta, float *c, int ldc);
enum { ROW_MAJOR = 101, NO_TRANS = 111, TRANS = 112 };

static relax_status say(const relax_library_call *c, const char *text)
{
    snprintf(c->error, c->error_size, "%s", text);
    return RELAX_E_INVALID;
}

static bool is_f32(const DLTensor *d)
{
    return d->dtype.code == kDLFloat && d->dtype.bits == 32 && d->dtype.lanes == 1 && d->ndim >= 2;
}

/* product of all dims but the last two */
static int64_t batch(const DLTensor *d)
{
    int64_t n = 1;
    for (int32_t i = 0; i < d->ndim - 2; i++)
        if (!rx_mul_ok(n, d->shape[i], &n))
            return -1;
    return n;
}

static float *data(const DLTensor *d) { return (float *)((char *)d->data + d->byte_offset); }

static relax_status sgemm(void *user, const relax_library_call *call)
{
    sgemm_fn fn;
    *(void **)&fn = user;
    if (call->nargs != 3 || (call->nsyms != 0 && call->nsyms != 2))
        return say(call, "it takes A, B, C and [transpose A, transpose B]");
    const DLTensor *a = call->args[0], *b = call->args[1], *c = call->args[2];
    if (!is_f32(a) || !is_f32(b) || !is_f32(c))
        return say(call, "A, B and C must be f32 of rank 2 or more");
    bool ta = call->nsyms && call->syms[0], tb = call->nsyms && call->syms[1];
    const int64_t *sa = a->shape + a->ndim - 2, *sb = b->shape + b->ndim - 2, *sc = c->shape + c->ndim - 2;
    int64_t m = sa[ta], k = sa[!ta], n = sb[!tb], rows = batch(a);
    if (sb[tb] != k || sc[0] != m || sc[1] != n || batch(c) != rows || rows < 0 || (b->ndim > 2 && batch(b) != rows))
        return say(call, "the shapes of A, B and C do not fit");
    if (m > INT32_MAX || n > INT32_MAX || k > INT32_MAX)
        return say(call, "a dim does not fit in an int");
    for (int64_t i = 0; m && n && i < rows; i++) {
        float *to = data(c) + i * m * n;
        if (k == 0)
            memset(to, 0, (size_t)(m * n) * sizeof *to);
        else
            fn(ROW_MAJOR, ta ? TRANS : NO_TRANS, tb ? TRANS : NO_TRANS, (int)m, (int)n, (int)k, 1.0f,
               data(a) + i * m * k, (int)sa[1], data(b) + (b->ndim > 2 ? i * k * n : 0), (int)sb[1], 0.0f, to, (int)n);
    }
    return RELAX_OK;
}

relax_status rx_openblas_register(relax_context *ctx)
{
    char why[256] = "";
    rx_libfn known;
    if (rx_lib_find(ctx, "openblas.sgemm", RX_LIB_DPS, &known))
        return RELAX_OK;
    void *dl = rx_dl_open("libopenblas.so.0", why, sizeof why);
    void *fn = dl ? rx_dl_sym(dl, "cblas_sgemm") : NULL;
    if (!fn) {
        if (dl)
            rx_dl_close(dl);
        return rx_error(ctx, RXE_NO_LIBRARY, NULL, "install OpenBLAS (Debian: libopenblas0-pthread)",
                        "OpenBLAS cannot be used: %s", dl ? "it has no cblas_sgemm" : why);
    }
    return rx_lib_register(ctx, "openblas.sgemm", sgemm, fn);
}
