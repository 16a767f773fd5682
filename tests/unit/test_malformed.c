/* test_malformed.c: texts that are no modules (malformed_rows.def): the error that is promised, with a place, and
 * nothing left behind, through the public interface. */
#include "testlib.h"

static const struct { int err; const char *text;
} rows[] = {
#define ROW(id, text) {id, text},
#include "malformed_rows.def"
#undef ROW
};

static void refused(void **state)
{
    (void)state;
    int wrong = 0;
    for (size_t i = 0; i < RX_COUNT(rows); i++) {
        tl_heap th;
        relax_context *ctx = tl_context(&th);
        relax_diagnostic d = RELAX_DIAGNOSTIC_INIT;
        char id[16] = "none";
        relax_module *m = relax_module_parse(ctx, "rows", rows[i].text, RELAX_STRLEN);
        uint32_t n = relax_diagnostic_count(ctx);
        bool placed = n && relax_diagnostic_get(ctx, n - 1, &d) == RELAX_OK && d.file && d.line == 1 && d.col >= 1 &&
                      d.message[0];
        if (n)
            memcpy(id, d.id, sizeof d.id);
        if (m || atoi(id + 2) != rows[i].err || !placed) {
            print_error("row %zu: %s: %s, wanted RX%d\n", i, rows[i].text, m ? "accepted" : id, rows[i].err);
            wrong++;
        }
        relax_module_destroy(m);
        tl_done(&th, ctx);
    }
    assert_int_equal(wrong, 0);
}

/* the same texts behind a good function: the module that they were to join stays as it was */
static int32_t append(void *user, const char *text, size_t n)
{
    snprintf((char *)user + strlen(user), 512 - strlen(user), "%.*s", (int)n, text);
    return 0;
}

static void nothing_added(void **state)
{
    (void)state;
    static const char good[] = "fn good(x: Tensor((n,), f32)) -> Tensor((n,), f32) {\n  y = exp(x)\n  return y\n}\n";
    tl_heap th;
    relax_context *ctx = tl_context(&th);
    relax_module *m = relax_module_parse(ctx, "good", good, RELAX_STRLEN);
    assert_non_null(m);
    for (size_t i = 0; i < RX_COUNT(rows); i++) {
        char text[512] = "";
        assert_int_not_equal(relax_module_parse_into(m, "rows", rows[i].text, RELAX_STRLEN), RELAX_OK);
        relax_diagnostic_clear(ctx);
        assert_int_equal(relax_module_print(m, append, text), RELAX_OK);
        if (strcmp(text, good))
            fail_msg("row %zu: %s left\n%s", i, rows[i].text, text);
    }
    relax_module_destroy(m);
    tl_done(&th, ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(refused), cmocka_unit_test(nothing_added)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
