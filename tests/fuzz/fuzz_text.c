/* fuzz_text.c: the text form of modules. A text is accepted or refused with a diagnostic; what is accepted verifies,
 * and prints as a text that parses to the same text. */
#include "op/op.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void check(bool ok)
{
    if (!ok)
        __builtin_trap();
}

static const char *print(relax_context *ctx, relax_module *m)
{
    rx_buf b;
    rx_buf_init(&b, rx_scratch(&ctx->heap));
    rx_print_module(&b, m);
    return b.at ? b.at : "";
}

/* accepted? */
static bool parses(relax_context *ctx, const char *s, size_t n, char **again)
{
    rx_frame f;
    if (RX_ENTER(&ctx->heap, &f)) {
        rx_ops_init(ctx);
        relax_module *m = rx_parse_module(ctx, "fuzz", s, n);
        const char *text = print(ctx, m);
        *again = rx_arena_dup(&ctx->arena, text, strlen(text) + 1);
        rx_module_free(m);
        rx_leave(&ctx->heap, &f);
        return true;
    }
    check(rx_diag_count(ctx) > 0 && rx_diag_status(ctx) != RELAX_E_INTERNAL);
    return false;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    relax_context *ctx = NULL;
    char *one = NULL, *two = NULL;
    if (rx_context_create(NULL, NULL, &ctx))
        return 0;
    if (parses(ctx, (const char *)data, n, &one))
        check(parses(ctx, one, strlen(one), &two) && !strcmp(one, two));
    rx_context_destroy(ctx);
    return 0;
}
