/* tirtest.h: running tensor programs in tests. Include after testlib.h. */
#ifndef TIRTEST_H
#define TIRTEST_H
#include "interp/interp.h"
#include "tir/tir.h"

/* one prim func from text; the whole text must be it */
TL_UNUSED static rx_prim *tt_parse(rx_tb *t, const char *text)
{
    rx_lexer l;
    rx_lex_init(&l, t->ctx, "test", text, strlen(text));
    rx_lex_want(&l, "prim");
    rx_prim *p = rx_parse_prim(&l, t);
    assert_int_equal(l.tok, RX_T_EOF);
    return p;
}

TL_UNUSED static const char *tt_text(rx_tb *t, const rx_prim *p)
{
    rx_buf b;
    rx_buf_init(&b, t->a);
    rx_print_prim(&b, p);
    return b.at;
}

TL_UNUSED static uint32_t tt_random(uint64_t *seed)
{
    *seed = *seed * 6364136223846793005ull + 1442695040888963407ull;
    return (uint32_t)(*seed >> 33);
}

typedef struct tt_args {
    void *buf[16];
    int64_t count[16];                 /* elements, by the strides */
    rx_exvec syms;
    int64_t value[16];
} tt_args;

/* memory for all parameters with small random values; a guard word behind each must stay as it is */
TL_UNUSED static void tt_args_new(rx_tb *t, const rx_prim *p, const int64_t *syms, uint64_t seed, tt_args *a)
{
    rx_map env;
    memset(a, 0, sizeof *a);
    rx_map_init(&env, t->a);
    rx_prim_symbols(t->ctx, t->a, p, &a->syms);
    for (uint32_t i = 0; i < a->syms.n; i++) {
        a->value[i] = syms[i];
        rx_map_put(&env, RX_KEY(a->syms.at[i]), &a->value[i]);
    }
    for (uint32_t i = 0; i < p->nparams; i++) {
        const relax_buffer *b = p->params[i];
        int64_t n = 1, last = 0;
        for (uint32_t k = 0; k < b->ndim; k++) {
            int64_t d, s = 0;
            assert_int_equal(rx_eval(t->ctx, b->shape[k], &env, &d), RX_EVAL_OK);
            if (b->strides)
                assert_int_equal(rx_eval(t->ctx, b->strides[k], &env, &s), RX_EVAL_OK);
            n *= d;
            last += (d - 1) * s;
        }
        a->count[i] = n && b->strides ? last + 1 : n;
        size_t bytes = (size_t)a->count[i] * rx_dtype_bytes(b->dtype);
        char *m = rx_arena_alloc(t->a, bytes + 8, 64);
        memset(m + bytes, 0x5C, 8);
        for (int64_t k = 0; k < a->count[i]; k++) {
            void *at = m + (size_t)k * rx_dtype_bytes(b->dtype);
            int64_t r = (int64_t)(tt_random(&seed) % 2001) - 1000;
            if (rx_dtype_is_float(b->dtype))
                rx_store_f64(b->dtype, at, (double)r / 256);
            else
                rx_store_i64(b->dtype, at, b->dtype == RELAX_BOOL ? r & 1 : r);
        }
        a->buf[i] = m;
    }
}

TL_UNUSED static void tt_guards(const rx_prim *p, const tt_args *a)
{
    static const char word[8] = {0x5C, 0x5C, 0x5C, 0x5C, 0x5C, 0x5C, 0x5C, 0x5C};
    for (uint32_t i = 0; i < p->nparams; i++)
        assert_memory_equal((char *)a->buf[i] + (size_t)a->count[i] * rx_dtype_bytes(p->params[i]->dtype), word, 8);
}

/* the largest difference of the two sets of buffers; exact: any differing bit counts as 1 */
TL_UNUSED static double tt_difference(const rx_prim *p, const tt_args *a, const tt_args *b, bool exact)
{
    double worst = 0;
    for (uint32_t i = 0; i < p->nparams; i++) {
        relax_dtype t = p->params[i]->dtype;
        size_t w = rx_dtype_bytes(t);
        for (int64_t k = 0; k < a->count[i]; k++) {
            const char *x = (char *)a->buf[i] + (size_t)k * w, *y = (char *)b->buf[i] + (size_t)k * w;
            if (!memcmp(x, y, w))
                continue;
            if (exact || !rx_dtype_is_float(t))
                return 1;
            double u = rx_load_f64(t, x), v = rx_load_f64(t, y), size = u < 0 ? -u : u;
            double d = (u > v ? u - v : v - u) / (size > 1 ? size : 1);
            if (!(d <= worst))
                worst = d == d ? d : 1;
        }
    }
    return worst;
}
#endif
