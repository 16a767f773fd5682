/* fuzz_expr.c: expression text -> node -> text -> the same node; simplification and proofs keep the value. */
#include <stdlib.h>

#include "core/core.h"
#include "expr/expr.h"

typedef struct world { relax_context *ctx; rx_map m; rx_map env; int64_t v[8]; int n; } world;

static rx_ex by_name(void *arg, rx_lexer *l, const char *name)
{
    world *w = arg;
    rx_ex s = rx_map_get(&w->m, RX_KEY(name));
    if (s || w->n == 8 || !strcmp(name, "nan") || !strcmp(name, "inf")) return s;
    relax_dtype t = *name == 'F' ? RELAX_F32 : *name == 'I' ? RELAX_I32 : *name == 'p' ? RELAX_BOOL : RELAX_I64;
    s = rx_sym_new(l->ctx, name, t);
    rx_map_put(&w->m, RX_KEY(name), (void *)(uintptr_t)s);
    w->v[w->n] = *name == 'p' ? w->n & 1 : 5 * w->n - 7;
    rx_map_put(&w->env, RX_KEY(s), &w->v[w->n++]);
    return s;
}

static void check(world *w, const char *s, size_t n)
{
    relax_context *ctx = w->ctx;
    rx_scope_fns fns = {by_name, NULL, w};
    rx_buf b;
    int64_t x, y, lo, hi;
    rx_map_init(&w->m, &ctx->arena);
    rx_map_init(&w->env, &ctx->arena);
    rx_ex e = rx_parse_expr_text(ctx, s, n, &fns);
    rx_buf_init(&b, &ctx->arena);
    rx_print_expr(&b, e);
    rx_ex back = rx_parse_expr_text(ctx, b.at, b.n, &fns);
    rx_buf b2;
    rx_buf_init(&b2, &ctx->arena);
    rx_print_expr(&b2, back);
    if (strcmp(b.at, b2.at)) abort();
    if (e->dtype != RELAX_I64 && e->dtype != RELAX_BOOL) return;
    rx_ex t = rx_simplify(ctx, NULL, e);
    rx_bounds(ctx, NULL, e, &lo, &hi);
    if (rx_eval(ctx, e, &w->env, &x) != RX_EVAL_OK) return;
    if (rx_eval(ctx, t, &w->env, &y) == RX_EVAL_OK && x != y) abort();
    if (x < lo || x > hi) abort();
    if (e->dtype != RELAX_BOOL) return;
    rx_truth truth = rx_prove(ctx, NULL, e, NULL);
    if (truth != RX_UNKNOWN && (truth == RX_TRUE) != (x != 0)) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    world w = {0};
    rx_frame f;
    if (size > 2000 || rx_context_create(NULL, NULL, &w.ctx)) return 0;
    if (RX_ENTER(&w.ctx->heap, &f)) {
        check(&w, (const char *)data, size);
        rx_leave(&w.ctx->heap, &f);
    }
    rx_context_destroy(w.ctx);
    return 0;
}
