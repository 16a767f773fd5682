/* test_errors.c: the ids of diagnostics as a host sees them, through relax.h alone: a mistake on the left, its id and
 * status, and words that its message must hold. The rows of a kind of input stand together. */
#include "testlib.h"
#include "embedlib.h"

#include <fcntl.h>
#include <sys/stat.h>

/* the newest diagnostic has this id, this status and these words, and says it in a sentence */
static void expect(relax_context *ctx, const char *id, relax_status status, const char *words, const char *input)
{
    relax_diagnostic d = RELAX_DIAGNOSTIC_INIT;
    uint32_t n = relax_diagnostic_count(ctx);
    if (!n) print_error("%s\n  gives no diagnostic\n", input);
    assert_true(n > 0);
    assert_int_equal(relax_diagnostic_get(ctx, n - 1, &d), RELAX_OK);
    if (strcmp(d.id, id) || d.status != status || !strstr(relax_last_error(ctx), words))
        print_error("%s\n  wanted %s, status %d, \"%s\"; got %s, status %d: %s\n", input, id, (int)status, words, d.id,
                    (int)d.status, relax_last_error(ctx));
    assert_string_equal(d.id, id);
    assert_int_equal(d.status, status);
    assert_non_null(strstr(relax_last_error(ctx), words));
    assert_true(strlen(d.message) > 8);
    relax_diagnostic_clear(ctx);
}

#define X "fn f(x: Tensor((n, 4), f32), i: Tensor((k,), i64), c: Tensor((), bool)) {\n  "
#define END "\n  return y\n}\n"

/* ---- text ---- */
static const struct { const char *text, *id; relax_status status; const char *words; } texts[] = {
    {X "y = exp(shape(n, 4))" END, "RX2101", RELAX_E_TYPE, "exp"},
    {X "y = tuple(x)" END, "RX2108", RELAX_E_NOT_FOUND, "tuple"},
    {X "y = x[3]" END, "RX2101", RELAX_E_TYPE, ""},
    {X "y = add(x, i)" END, "RX2102", RELAX_E_TYPE, "i64"},
    {X "y = take(x, x)" END, "RX2102", RELAX_E_TYPE, "f32"},
    {X "y = permute_dims(x, axes=[0])" END, "RX2105", RELAX_E_SHAPE, "rank 2"},
    {X "y = concat((x, i), axis=0)" END, "RX6101", RELAX_E_FORMAT, "'('"},
    {X "t = (x, i)\n  y = concat(t, axis=0)" END, "RX2102", RELAX_E_TYPE, ""},
    {X "y = matmul(x, c)" END, "RX2103", RELAX_E_SHAPE, ""},
    {X "y = matmul(x, x)\n  z = add(y, const(f32, (7,), [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]))" END, "RX2104",
     RELAX_E_SHAPE, "4"},
    {X "y = add(x, const(f32, (3,), [1.0, 2.0, 3.0]))" END, "RX2104", RELAX_E_SHAPE, "3"},
    {X "y = softmax(x, axis=2)" END, "RX2105", RELAX_E_SHAPE, "2"},
    {X "y = sum(x, axis=[0, 0])" END, "RX2105", RELAX_E_SHAPE, "0"},
    {X "y = softmax(x, axes=1)" END, "RX2106", RELAX_E_INVALID, "axes"},
    {X "y = clip(x, min=4.0, max=true)" END, "RX6101", RELAX_E_FORMAT, "a number"},
    {X "y = add(x)" END, "RX2107", RELAX_E_INVALID, "add"},
    {X "y = abs(x, x)" END, "RX2107", RELAX_E_INVALID, "abs"},
    {X "y = sillymax(x)" END, "RX2108", RELAX_E_NOT_FOUND, "sillymax"},
    {"fn f(x: Tensor((n,), f32)) where n <= 3, 5 <= n {\n  return x\n}\n", "RX2112", RELAX_E_SHAPE, "n"},
    {"fn f(x: Tensor((n,), f32)) -> Tensor((m,), f32) {\n  return x\n}\n", "RX6102", RELAX_E_FORMAT, "m"},
    {"fn f(x: Tensor((n,), f32)) -> Tensor((n + 1,), f32) {\n  return x\n}\n", "RX2111", RELAX_E_INVALID, "G16"},
    {X "y = call_packed(\"host.log\", x, Object)" END, "RX2113", RELAX_E_INVALID, ""},
    {"impure fn f(x: Object) {\n  dataflow {\n    y = call_packed(\"host.log\", x, Object)\n    output y\n  }" END,
     "RX2113", RELAX_E_INVALID, ""},
    {"prim p(x: Buffer((n,), f32)) {\n  for i in n {\n    x[i, i] = 1.0\n  }\n}\n", "RX2103", RELAX_E_SHAPE, "2"},
    {"prim p(x: Buffer((n,), f32)) {\n  for i in n {\n    x[i] = 1.0\n    for i in n { x[i] = 2.0 }\n  }\n}\n",
     "RX6102", RELAX_E_FORMAT, "i"},
    {"prim p(x: Buffer((4,), f32)) {\n  x[4] = 1.0\n}\n", "RX3102", RELAX_E_SHAPE, "4"},
    {"fn f(x: Tensor((n,), f32) {\n  return x\n}\n", "RX6101", RELAX_E_FORMAT, ""},
    {"fn f(x: Tensor((n,), f31)) {\n  return x\n}\n", "RX6101", RELAX_E_FORMAT, "a data type"},
    {"fn f(x: Tensor((n,), f32)) {\n  return z\n}\n", "RX6102", RELAX_E_FORMAT, "z"},
    {"fn f(x: Object, x: Object) {\n  return x\n}\n", "RX1007", RELAX_E_INVALID, "x"},
    {"fn f(x: Object) {\n  return x\n}\nfn f(x: Object) {\n  return x\n}\n", "RX6102", RELAX_E_FORMAT, "f"},
    {"fn f(x: Object) {\n  y = @g(x)" END, "RX6102", RELAX_E_FORMAT, "g"},
    {"fn f(x: Tensor((n % 2 and 1,), f32)) {\n  return x\n}\n", "RX2102", RELAX_E_TYPE, "bool"},
    {"fn f(x: Tensor((9223372036854775808,), f32)) {\n  return x\n}\n", "RX6101", RELAX_E_FORMAT, ""},
};

static void in_text(void **state)
{
    (void)state;
    relax_context *ctx;
    assert_int_equal(relax_context_create(NULL, &ctx), RELAX_OK);
    for (size_t i = 0; i < RX_COUNT(texts); i++) {
        relax_module *m = relax_module_parse(ctx, "row", texts[i].text, RELAX_STRLEN);
        if (m) assert_int_not_equal(relax_module_verify(m), RELAX_OK);
        relax_module_destroy(m);
        expect(ctx, texts[i].id, texts[i].status, texts[i].words, texts[i].text);
    }
    relax_context_destroy(ctx);
}

/* ---- building a function ---- */
typedef struct room { relax_context *ctx; relax_module *m; relax_builder *b; relax_value *x; } room;

static void no_result(room *r) { (void)r; }
static void bound_of_nothing(room *r) { relax_bound(r->b, "q", 0, 4); }
static void size_of_nothing(room *r) { relax_arange(r->b, "0", "q", "1", RELAX_I64); }
static void absent_operand(room *r) { relax_op(r->b, "add", (relax_value *[]){r->x, NULL}, 2, NULL); }
static void unknown_operator(room *r) { relax_op(r->b, "sillymax", &r->x, 1, NULL); }
static void unknown_attribute(room *r) { relax_op(r->b, "softmax", &r->x, 1, "axle=1"); }
static void twice_the_name(room *r) { relax_param(r->b, "x", "Object"); }
static void no_type(room *r) { relax_param(r->b, "y", "Tensor((n,), q8)"); }
static void else_without_if(room *r) { relax_else(r->b, r->x); }
static void if_without_end(room *r) { relax_if(r->b, relax_param(r->b, "c", "Tensor((), bool)")); }
static void bad_cast(room *r) { relax_astype(r->b, r->x, (relax_dtype)99); }
static void bad_zeros(room *r) { relax_zeros(r->b, "(n,)", (relax_dtype)-1); }
static void bad_one_hot(room *r) { relax_one_hot(r->b, r->x, 3, 1, 0, -1, RELAX_DTYPE_UNKNOWN); }
static void bad_scalar(room *r) { relax_scalar(r->b, RELAX_DTYPE_COUNT, 1); }
static void bad_index(room *r) { relax_tuple_get(r->b, r->x, 0); }
static void bad_constant(room *r) { relax_constant(r->b, RELAX_F32, (int64_t[]){-1}, 1, r); }

static const struct { void (*make)(room *r); const char *id; relax_status status; const char *name; } builds[] = {
    {no_result, "RX1002", RELAX_E_INVALID, "no result"},
    {bound_of_nothing, "RX2109", RELAX_E_SHAPE, "a bound of an unknown symbol"},
    {size_of_nothing, "RX6102", RELAX_E_FORMAT, "a size with an unknown symbol"},
    {absent_operand, "RX2101", RELAX_E_TYPE, "an operand that is absent"},
    {unknown_operator, "RX2108", RELAX_E_NOT_FOUND, "an unknown operator"},
    {unknown_attribute, "RX2106", RELAX_E_INVALID, "an unknown attribute"},
    {twice_the_name, "RX1007", RELAX_E_INVALID, "a name twice"},
    {no_type, "RX6101", RELAX_E_FORMAT, "an unknown data type"},
    {else_without_if, "RX1009", RELAX_E_INVALID, "else without if"},
    {if_without_end, "RX1009", RELAX_E_INVALID, "an if that does not end"},
    {bad_cast, "RX1004", RELAX_E_INVALID, "a cast to what is no data type"},
    {bad_zeros, "RX1004", RELAX_E_INVALID, "zeros of what is no data type"},
    {bad_one_hot, "RX1004", RELAX_E_INVALID, "one_hot of no data type"},
    {bad_scalar, "RX1004", RELAX_E_INVALID, "a scalar of what is no data type"},
    {bad_index, "RX2101", RELAX_E_TYPE, "a field of a tensor"},
    {bad_constant, "RX1004", RELAX_E_INVALID, "a negative dim"},
};

static void in_builders(void **state)
{
    (void)state;
    for (size_t i = 0; i < RX_COUNT(builds); i++) {
        room r = {0};
        assert_int_equal(relax_context_create(NULL, &r.ctx), RELAX_OK);
        r.m = relax_module_create(r.ctx);
        r.b = relax_function_begin(r.m, "f");
        r.x = relax_param(r.b, "x", "Tensor((n, 4), f32)");
        assert_int_equal(relax_diagnostic_count(r.ctx), 0);
        builds[i].make(&r);
        relax_status s = relax_function_finish(r.b, builds[i].make == no_result ? NULL : r.x);
        if (s != builds[i].status) print_error("%s\n", builds[i].name);
        assert_int_equal(s, builds[i].status);
        expect(r.ctx, builds[i].id, builds[i].status, "", builds[i].name);
        relax_module_destroy(r.m);
        relax_context_destroy(r.ctx);
    }
}

/* ---- passes, targets, files ---- */
static void in_passes(void **state)
{
    (void)state;
    static const struct { const char *pipeline, *id; relax_status status; } rows[] = {
        {"legalise", "RX7101", RELAX_E_NOT_FOUND},       {"legalize,,dce", "RX6101", RELAX_E_FORMAT},
        {"legalize(speed=3)", "RX2106", RELAX_E_INVALID}, {"(legalize)", "RX6101", RELAX_E_FORMAT},
    };
    relax_context *ctx;
    assert_int_equal(relax_context_create(NULL, &ctx), RELAX_OK);
    for (size_t i = 0; i < RX_COUNT(rows); i++) {
        assert_null(relax_pipeline_parse(ctx, rows[i].pipeline));
        expect(ctx, rows[i].id, rows[i].status, "", rows[i].pipeline);
    }
    relax_module *m = relax_module_parse(ctx, "m", X "y = add(x, x)" END, RELAX_STRLEN);
    relax_pipeline *p = relax_pipeline_parse(ctx, "plan-memory");
    assert_int_not_equal(relax_pipeline_run(p, m), RELAX_OK);
    expect(ctx, "RX7102", RELAX_E_INVALID, "plan-memory", "a pass too early");
    assert_int_equal(relax_pipeline_remove(p, "dce"), RELAX_E_NOT_FOUND);
    expect(ctx, "RX7101", RELAX_E_NOT_FOUND, "dce", "a pass that is not in the pipeline");
    relax_pipeline_destroy(p);
    p = relax_pipeline_parse(ctx, "legalize,lower-calls,plan-memory(reuse=maybe)");
    assert_int_equal(relax_pipeline_run(p, m), RELAX_E_INVALID);
    expect(ctx, "RX2106", RELAX_E_INVALID, "maybe", "an option that is neither true nor false");
    relax_pipeline_destroy(p);
    relax_module_destroy(m);
    relax_context_destroy(ctx);
}

static void in_files(void **state)
{
    (void)state;
    relax_context *ctx;
    relax_executable *x = NULL;
    relax_weights *w = NULL;
    unsigned char junk[256] = "RLX?";
    assert_int_equal(relax_context_create(NULL, &ctx), RELAX_OK);
    assert_null(relax_target_parse(ctx, "tpu"));
    expect(ctx, "RX8101", RELAX_E_INVALID, "tpu", "a target");
    assert_int_equal(relax_executable_load_file(ctx, "/nonexistent", &x), RELAX_E_IO);
    expect(ctx, "RX5101", RELAX_E_IO, "/nonexistent", "no file");
    assert_int_equal(relax_executable_load_file(ctx, "/tmp", &x), RELAX_E_IO);
    expect(ctx, "RX5101", RELAX_E_IO, "/tmp", "a folder");
    assert_int_equal(relax_executable_load_memory(ctx, junk, sizeof junk, 0, &x), RELAX_E_FORMAT);
    expect(ctx, "RX5102", RELAX_E_FORMAT, "", "junk");
    assert_int_equal(relax_executable_load_memory(ctx, NULL, 4, 0, &x), RELAX_E_INVALID);
    expect(ctx, "RX1002", RELAX_E_INVALID, "", "NULL");
    assert_int_equal(relax_weights_open(ctx, "/dev/null", &w), RELAX_E_IO);
    expect(ctx, "RX5101", RELAX_E_IO, "/dev/null", "a device");
    assert_int_equal(relax_plugin_load(ctx, "/nonexistent.so"), RELAX_E_INCOMPATIBLE);
    expect(ctx, "RX7104", RELAX_E_INCOMPATIBLE, "/nonexistent.so", "no plugin");
    relax_vm_options vo = RELAX_VM_OPTIONS_INIT;
    relax_vm *vm = NULL;
    relax_any a = {0}, r = {0};
    relax_module *m = relax_module_parse(ctx, "m", "fn f(x: Object) {\n  return x\n}\nfn g(x: Object) {\n"
                                         "  y = call_pure_packed(\"host.g\", x, Object)" END, RELAX_STRLEN);
    assert_int_equal(relax_build(m, relax_target_parse(ctx, "null"), NULL, &x), RELAX_OK);
    vo.threads = -1;
    assert_int_equal(relax_vm_create(x, &vo, &vm), RELAX_E_INVALID);
    expect(ctx, "RX1004", RELAX_E_INVALID, "-1", "threads");
    assert_int_equal(relax_vm_create(x, NULL, &vm), RELAX_E_NOT_FOUND);
    expect(ctx, "RX4110", RELAX_E_NOT_FOUND, "host.g", "no function of the host");
    relax_executable_destroy(x);
    assert_int_equal(relax_module_remove(m, relax_module_find(m, "g")), RELAX_OK);
    assert_int_equal(relax_build(m, relax_target_parse(ctx, "null"), NULL, &x), RELAX_OK);
    assert_int_equal(relax_vm_create(x, NULL, &vm), RELAX_OK);
    assert_int_equal(relax_vm_invoke(vm, "h", &a, 1, &r), RELAX_E_NOT_FOUND);
    expect(ctx, "RX1006", RELAX_E_NOT_FOUND, "h", "no function");
    assert_int_equal(relax_vm_invoke(vm, "f", &a, 0, &r), RELAX_E_INVALID);
    expect(ctx, "RX4101", RELAX_E_INVALID, "f", "no argument");
    a.kind = 77;
    assert_int_equal(relax_vm_invoke(vm, "f", &a, 1, &r), RELAX_E_TYPE);
    expect(ctx, "RX4102", RELAX_E_TYPE, "", "an argument of no kind");
    relax_vm_destroy(vm);
    relax_executable_destroy(x);
    relax_module_destroy(m);
    relax_context_destroy(ctx);
}

/* ---- the code generator beside the library is missing, or is another object ---- */
static void copy(const char *from, const char *to)
{
    char command[2 * PATH_MAX + 16];
    snprintf(command, sizeof command, "cp %s %s", from, to);
    assert_int_equal(system(command), 0);
}

static void without_llvm(void **state)
{
    (void)state;
    char path[PATH_MAX], dir[] = "/tmp/relax-errors-XXXXXX", so[64], llvm[64];
    emb e;
    relax_context *ctx;
    relax_executable *x = NULL;
    emb_library(path, sizeof path);
    assert_non_null(mkdtemp(dir));
    snprintf(so, sizeof so, "%s/librelax.so", dir);
    snprintf(llvm, sizeof llvm, "%s/librelax_llvm.so", dir);
    copy(path, so);
    assert_true(emb_open(&e, so));
    for (int i = 0; i < 2; i++) {
        assert_int_equal(e.relax_context_create(NULL, &ctx), RELAX_OK);
        relax_module *m = e.relax_module_parse(ctx, "m", emb_model, RELAX_STRLEN);
        assert_int_equal(e.relax_build(m, e.relax_target_parse(ctx, "cpu"), NULL, &x), RELAX_E_NOT_FOUND);
        assert_non_null(strstr(e.relax_last_error(ctx), "RX8104"));
        assert_non_null(strstr(e.relax_last_error(ctx), i ? "another version" : "librelax_llvm.so"));
        e.relax_module_destroy(m);
        e.relax_context_destroy(ctx);
        if (i == 0) copy(path, llvm);
    }
    emb_close(&e);
    unlink(so);
    unlink(llvm);
    assert_int_equal(rmdir(dir), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(in_text), cmocka_unit_test(in_builders), cmocka_unit_test(in_passes),
        cmocka_unit_test(in_files), cmocka_unit_test(without_llvm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
