/* test_plugin.c: the plugin of examples/ works through the public interface; bad ones (tests/plugins) are refused or
 * rolled back: a status, the module as it was, nothing left behind, the process lives. */
#include "testlib.h"

#include "op/op.h"
#include "pass/pass.h"

#include <math.h>
#include <unistd.h>

/* plugins stand in plugins/ beside the test program */
static const char *plugin(const char *name)
{
    static char path[512];
    ssize_t n = readlink("/proc/self/exe", path, sizeof path - 64);
    assert_true(n > 0);
    path[n] = 0;
    *strrchr(path, '/') = 0;
    snprintf(path + strlen(path), 60, "/plugins/%s.so", name);
    return path;
}

static void load(relax_context *ctx, const char *name)
{
    relax_status st = relax_plugin_load(ctx, plugin(name));
    if (st)
        tl_print_diags(ctx);
    assert_int_equal(st, RELAX_OK);
}

static int32_t append(void *user, const char *text, size_t n)
{
    snprintf((char *)user + strlen(user), 4096 - strlen(user), "%.*s", (int)n, text);
    return 0;
}

static void print(relax_module *m, char out[4096])
{
    out[0] = 0;
    assert_int_equal(relax_module_print(m, append, out), RELAX_OK);
}

static relax_module *parse(relax_context *ctx, const char *text)
{
    relax_module *m = relax_module_parse(ctx, "test", text, RELAX_STRLEN);
    if (!m)
        tl_print_diags(ctx);
    assert_non_null(m);
    return m;
}

static relax_status run(relax_context *ctx, relax_module *m, const char *passes)
{
    relax_pipeline *p = relax_pipeline_parse(ctx, passes);
    assert_non_null(p);
    relax_status st = relax_pipeline_run(p, m);
    relax_pipeline_destroy(p);
    return st;
}

/* ---- the example ---- */
static void example_text(void **state)
{
    (void)state;
    tl_heap th;
    char text[4096];
    relax_context *ctx = tl_context(&th);
    load(ctx, "example");
    relax_module *m = parse(ctx, "fn main(x: Tensor((n, 2), f32)) {\n a = negative(x)\n b = negative(a)\n"
                                 " c = softcap(b, cap=2.0)\n d = softcap(c)\n return d }");
    assert_int_equal(run(ctx, m, "fold-double-negative,dce"), RELAX_OK);
    print(m, text);
    assert_string_equal(text, "fn main(x: Tensor((n, 2), f32)) -> Tensor((n, 2), f32) {\n  c = softcap(x, cap=2.0)\n"
                              "  d = softcap(c)\n  return d\n}\n");
    assert_int_equal(run(ctx, m, "legalize"), RELAX_OK);
    print(m, text);
    assert_non_null(strstr(text, "2.0 * tanh("));
    relax_module_destroy(m);
    /* what it refuses */
    assert_null(relax_module_parse(ctx, "t", "fn f(x: Tensor((n,), i32)) { y = softcap(x) return y }", RELAX_STRLEN));
    assert_int_equal(tl_last_error(ctx), RXE_PLUGIN_ERROR);
    assert_non_null(strstr(relax_last_error(ctx), "an f32 tensor is expected"));
    tl_done(&th, ctx);
}

static void example_builder(void **state)
{
    (void)state;
    tl_heap th;
    relax_context *ctx = tl_context(&th);
    load(ctx, "example");
    relax_module *m = relax_module_create(ctx);
    relax_builder *b = relax_function_begin(m, "main");
    relax_value *x = relax_param(b, "x", "Tensor((n, 3), f32)");
    relax_value *y = relax_op(b, "softcap", &x, 1, "cap=4.0");
    assert_int_equal(relax_function_finish(b, y), RELAX_OK);
    relax_op_info info = RELAX_OP_INFO_INIT;
    assert_int_equal(relax_op_describe(ctx, relax_op_count(ctx) - 1, &info), RELAX_OK);
    assert_string_equal(info.name, "softcap");
    relax_module_destroy(m);
    tl_done(&th, ctx);
}

static void check_values(const relax_any *out)
{
    DLTensor t;
    assert_int_equal(relax_any_dltensor(out, &t), RELAX_OK);
    assert_int_equal(t.shape[0], 5);
    for (int i = 0; i < 10; i++)
        assert_true(fabs(((float *)t.data)[i] - 2 * tanh((i - 4) / 2.0)) < 1e-5);
}

static void example_runs(void **state)
{
    (void)state;
    tl_heap th;
    relax_context *ctx = tl_context(&th);
    load(ctx, "example");
    relax_module *m = parse(ctx, "fn main(x: Tensor((n, 2), f32)) { y = softcap(x, cap=2.0) return y }");
    relax_target *t = relax_target_parse(ctx, "cpu");
    relax_executable *exe = NULL;
    relax_vm *vm = NULL;
    relax_any in, out;
    relax_status st = relax_build(m, t, NULL, &exe);
    if (st && tl_last_error(ctx) == RXE_NO_BACKEND) {
        relax_module_destroy(m);
        tl_done(&th, ctx);
        skip();
    }
    assert_int_equal(st, RELAX_OK);
    assert_int_equal(relax_vm_create(exe, NULL, &vm), RELAX_OK);
    assert_int_equal(relax_tensor_create(ctx, RELAX_F32, (int64_t[]){5, 2}, 2, &in), RELAX_OK);
    DLTensor data;
    assert_int_equal(relax_any_dltensor(&in, &data), RELAX_OK);
    for (int i = 0; i < 10; i++)
        ((float *)data.data)[i] = (float)(i - 4);
    assert_int_equal(relax_vm_invoke(vm, "main", &in, 1, &out), RELAX_OK);
    check_values(&out);
    relax_any_release(&out);
    relax_any_release(&in);
    relax_vm_destroy(vm);
    relax_executable_destroy(exe);
    relax_module_destroy(m);
    tl_done(&th, ctx);
}

/* ---- plugins that are refused ---- */
static void refused(void **state)
{
    (void)state;
    static const struct { const char *name, *words;
    } rows[] = {
        {"major", "it needs plugin ABI 2.0, this library has 1.0"},
        {"minor", "it needs plugin ABI 1.7, this library has 1.0"},
        {"refuses", "relax_plugin_query returned NULL"},
        {"nosymbol", "it does not export relax_plugin_query"},
        {"unresolved", "function_that_nobody_has"},
        {"short", "its description is too short"},
        {"taken", "an operator named 'add' exists already"},
        {"twice", "test-twice"},
        {"spec", "test_spec"},
        {"nulls", "a pass has no name or no function"},
        {"missing", "missing.so"},
    };
    tl_heap th;
    relax_context *ctx = tl_context(&th);
    load(ctx, "good");
    uint32_t nops = relax_op_count(ctx), npasses = relax_pass_count(ctx);
    for (size_t i = 0; i < RX_COUNT(rows); i++)
        for (int again = 0; again < 2; again++) {
            relax_status st = relax_plugin_load(ctx, plugin(rows[i].name));
            if (st == RELAX_OK || tl_last_error(ctx) != RXE_PLUGIN || !strstr(relax_last_error(ctx), rows[i].words)) {
                tl_print_diags(ctx);
                fail_msg("plugin %s: status %d", rows[i].name, (int)st);
            }
            assert_int_equal(st, RELAX_E_INCOMPATIBLE);
            assert_int_equal(relax_op_count(ctx), nops);            /* nothing was added */
            assert_int_equal(relax_pass_count(ctx), npasses);
            assert_null(relax_pipeline_parse(ctx, "test-twice"));
            assert_int_equal(relax_library_unregister(ctx, "test.library"), RELAX_E_NOT_FOUND);
            relax_diagnostic_clear(ctx);
        }
    assert_int_equal(relax_plugin_load(ctx, plugin("good")), RELAX_E_INCOMPATIBLE);      /* its pass is there already */
    assert_int_equal(relax_plugin_load(ctx, "tests/unit/test_plugin.c"), RELAX_E_INCOMPATIBLE); /* no ELF file */
    assert_int_equal(relax_plugin_load(ctx, "tests"), RELAX_E_INCOMPATIBLE);
    assert_int_equal(relax_plugin_load(ctx, ""), RELAX_E_INCOMPATIBLE);
    assert_int_equal(relax_plugin_load(ctx, NULL), RELAX_E_INVALID);
    relax_module *m = parse(ctx, "fn main(x: Tensor((n,), f32)) { y = exp(x) return y }");
    assert_int_equal(run(ctx, m, "test-nothing,default"), RELAX_OK);
    relax_module_destroy(m);
    tl_done(&th, ctx);
}

/* ---- a plugin that loads, and misbehaves ---- */
static void rolled_back(void **state)
{
    (void)state;
    static const struct { const char *pass; relax_status status; int err; const char *words;
    } rows[] = {
        {"test-corrupt", RELAX_E_INTERNAL, RXE_PASS_FAILED, "pass test-corrupt left a module that breaks a rule"},
        {"test-fails", RELAX_E_INTERNAL, RXE_PASS_FAILED, "pass test-fails returned status 7"},
        {"test-fails-with-text", RELAX_E_INVALID, RXE_PLUGIN_ERROR, "nothing to do here"},
        {"test-adds-nonsense", RELAX_E_FORMAT, RXE_TEXT_NAME, "y"},
    };
    tl_heap th;
    char before[4096], after[4096];
    relax_context *ctx = tl_context(&th);
    load(ctx, "bad");
    relax_module *m = parse(ctx, "fn main(x: Tensor((n,), f32)) { a = exp(x) b = log(a) c = add(b, a) return c }");
    print(m, before);
    for (size_t i = 0; i < RX_COUNT(rows); i++) {
        assert_int_equal(run(ctx, m, rows[i].pass), rows[i].status);
        assert_int_equal(tl_last_error(ctx), rows[i].err);
        assert_non_null(strstr(relax_last_error(ctx), rows[i].words));
        print(m, after);
        assert_string_equal(after, before);
        assert_int_equal(relax_module_verify(m), RELAX_OK);
    }
    assert_int_equal(run(ctx, m, "default"), RELAX_OK);
    relax_module_destroy(m);
    tl_done(&th, ctx);
}

static void bad_operators(void **state)
{
    (void)state;
    static const struct { const char *op; int parse, legalize;
    } rows[] = {
        {"test_no_type", RXE_PLUGIN_ERROR, 0},
        {"test_syntax", 0, RXE_SYNTAX},
        {"test_outside", 0, RXE_TIR_BOUNDS},
        {"test_not_lowered", 0, RXE_UNKNOWN_OP},
    };
    char text[256], before[4096], after[4096];
    for (size_t i = 0; i < RX_COUNT(rows); i++) {
        tl_heap th;
        relax_context *ctx = tl_context(&th);
        load(ctx, "bad");
        snprintf(text, sizeof text, "fn main(x: Tensor((4,), f32)) { y = %s(x) return y }", rows[i].op);
        relax_module *m = relax_module_parse(ctx, "test", text, RELAX_STRLEN);
        assert_int_equal(tl_last_error(ctx), rows[i].parse);
        assert_int_equal(m == NULL, rows[i].parse != 0);
        if (m) {
            print(m, before);
            relax_status st = run(ctx, m, "legalize");
            bool found = false;        /* among the errors: the verifier's own may stand behind */
            for (uint32_t k = 0; k < rx_diag_count(ctx); k++)
                found |= (int)rx_diag_at(ctx, k)->err == rows[i].legalize;
            if (st == RELAX_OK || !found) {
                tl_print_diags(ctx);
                fail_msg("%s: status %d", rows[i].op, (int)st);
            }
            print(m, after);
            assert_string_equal(after, before);
        }
        relax_module_destroy(m);
        tl_done(&th, ctx);
    }
}

/* the n-th allocation fails while a plugin is loaded and used */
static void no_memory(void **state)
{
    (void)state;
    bool done = false;
    for (int64_t n = 1; !done; n += 1 + n / 30) {
        tl_heap th;
        relax_context *ctx = tl_context(&th);
        tl_fail(&th, n, n % 2);
        relax_status st = relax_plugin_load(ctx, plugin("example"));
        relax_module *m = NULL;
        if (st == RELAX_OK) {
            m = relax_module_parse(ctx, "t", "fn main(x: Tensor((n, 2), f32)) { y = softcap(x) return y }",
                                   RELAX_STRLEN);
            relax_pipeline *p = m ? relax_pipeline_parse(ctx, "fold-double-negative,legalize") : NULL;
            st = p ? relax_pipeline_run(p, m) : RELAX_E_NOMEM;
            relax_pipeline_destroy(p);
        }
        tl_fail(&th, 0, false);
        done = st == RELAX_OK;
        if (!done)
            assert_int_equal(st, RELAX_E_NOMEM);
        relax_module_destroy(m);
        tl_done(&th, ctx);
        assert_true(n < 100000);
    }
}

/* two contexts, each with its plugin */
static void two_contexts(void **state)
{
    (void)state;
    tl_heap ha, hb;
    relax_context *a = tl_context(&ha), *b = tl_context(&hb);
    load(a, "good");
    assert_null(relax_pipeline_parse(b, "test-nothing"));
    load(b, "good");
    tl_done(&ha, a);
    relax_module *m = parse(b, "fn main(x: Tensor((n,), f32)) { return x }");
    assert_int_equal(run(b, m, "test-nothing"), RELAX_OK);
    relax_module_destroy(m);
    tl_done(&hb, b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(example_text), cmocka_unit_test(example_builder), cmocka_unit_test(example_runs),
        cmocka_unit_test(refused), cmocka_unit_test(rolled_back), cmocka_unit_test(bad_operators),
        cmocka_unit_test(no_memory), cmocka_unit_test(two_contexts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
