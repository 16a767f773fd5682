/* test_api.c: the public interface as a host sees it: wrong handles, sticky errors, allocations that fail, nothing
 * disturbed. */
#include "testlib.h"

#include <errno.h>
#include <fenv.h>
#include <unistd.h>

static relax_context *host(tl_heap *h)
{
    relax_context_options o = RELAX_CONTEXT_OPTIONS_INIT;
    relax_context *ctx = NULL;
    memset(h, 0, sizeof *h);
    o.alloc = tl_alloc;
    o.alloc_self = h;
    assert_int_equal(relax_context_create(&o, &ctx), RELAX_OK);
    return ctx;
}

static void host_done(tl_heap *h, relax_context *ctx)
{
    relax_context_destroy(ctx);
    assert_int_equal(h->blocks, 0);
    assert_int_equal(h->live, 0);
}

/* ---- every public function takes NULL ---- */
static void null_everywhere(void **state)
{
    (void)state;
    int64_t i64 = 0;
    size_t size = 0;
    const char *s = NULL;
    const void *bytes = NULL;
    relax_any any = { 0 };
    DLTensor t = { 0 };
    assert_int_equal(relax_context_create(NULL, NULL), RELAX_E_INVALID);
    relax_context_destroy(NULL);
    relax_diagnostic_clear(NULL);
    assert_int_equal(relax_diagnostic_count(NULL), 0);
    assert_string_equal(relax_last_error(NULL), "");
    assert_int_equal(relax_diagnostic_get(NULL, 0, NULL), RELAX_E_INVALID);
    assert_null(relax_dim_const(NULL, 1));
    assert_null(relax_dim_add(NULL, NULL));
    assert_null(relax_dim_mul(NULL, NULL));
    assert_int_equal(relax_dim_value(NULL, &i64), RELAX_E_INVALID);
    assert_int_equal(relax_dim_text(NULL, NULL, 0), 0);
    assert_int_equal(relax_prove_equal(NULL, NULL, NULL), RELAX_UNPROVED);
    assert_int_equal(relax_prove_le(NULL, NULL, NULL), RELAX_UNPROVED);
    assert_int_equal(relax_dim_bounds(NULL, NULL, &i64, &i64), RELAX_E_INVALID);
    assert_null(relax_type_object(NULL));
    assert_null(relax_type_prim(NULL, RELAX_F32, NULL));
    assert_null(relax_type_tensor(NULL, NULL, 0, RELAX_F32));
    assert_null(relax_type_parse(NULL, "Object"));
    assert_int_equal(relax_type_kind(NULL), -1);
    assert_int_equal(relax_type_ndim(NULL), -1);
    assert_null(relax_type_dim(NULL, 0));
    assert_int_equal(relax_type_text(NULL, NULL, 0), 0);
    assert_null(relax_module_create(NULL));
    relax_module_destroy(NULL);
    assert_null(relax_module_parse(NULL, NULL, "", 0));
    assert_int_equal(relax_module_verify(NULL), RELAX_E_INVALID);
    assert_int_equal(relax_module_print(NULL, NULL, NULL), RELAX_E_INVALID);
    assert_null(relax_module_find(NULL, "f"));
    assert_int_equal(relax_module_function_count(NULL), 0);
    assert_null(relax_function_begin(NULL, "f"));
    assert_int_equal(relax_function_finish(NULL, NULL), RELAX_E_INVALID);
    relax_function_abandon(NULL);
    assert_int_equal(relax_builder_status(NULL), RELAX_E_INVALID);
    assert_null(relax_symbol(NULL, "n"));
    assert_null(relax_param(NULL, "x", "Object"));
    relax_bound(NULL, "n", 0, 1);
    relax_fact(NULL, "n <= 1");
    relax_private(NULL);
    relax_impure(NULL);
    relax_result_type(NULL, "Object");
    relax_dataflow_begin(NULL);
    relax_dataflow_end(NULL);
    assert_null(relax_constant(NULL, RELAX_F32, NULL, 0, &i64));
    assert_null(relax_scalar(NULL, RELAX_F32, 1));
    assert_null(relax_add(NULL, NULL, NULL));
    assert_null(relax_op(NULL, "add", NULL, 0, NULL));
    assert_null(relax_sum(NULL, NULL, NULL, 0, 0));
    assert_null(relax_one_hot(NULL, NULL, 2, 1, 0, -1, RELAX_F32));
    assert_null(relax_index_put(NULL, NULL, NULL, NULL, 0, 0));
    assert_null(relax_call(NULL, NULL, NULL, 0));
    assert_null(relax_call_tir(NULL, NULL, NULL, 0, NULL, NULL, 0));
    assert_null(relax_match_cast(NULL, NULL, NULL));
    assert_int_equal(relax_if(NULL, NULL), RELAX_E_INVALID);
    assert_int_equal(relax_else(NULL, NULL), RELAX_E_INVALID);
    assert_null(relax_end_if(NULL, NULL));
    assert_null(relax_prim_begin(NULL, "p"));
    assert_null(relax_prim_param(NULL, "x", "Buffer((n,), f32)"));
    assert_null(relax_loop(NULL, "i", "n"));
    relax_loop_end(NULL);
    relax_store(NULL, NULL, NULL, 0, NULL);
    relax_store_text(NULL, "");
    assert_null(relax_prim_finish(NULL));
    assert_null(relax_function_name(NULL));
    assert_int_equal(relax_function_visit(NULL, NULL, NULL), RELAX_E_INVALID);
    assert_int_equal(relax_value_kind(NULL), -1);
    assert_null(relax_value_op(NULL));
    assert_null(relax_value_type(NULL));
    assert_null(relax_value_dim(NULL, 0));
    assert_int_equal(relax_value_replace(NULL, NULL), RELAX_E_INVALID);
    assert_int_equal(relax_value_remove(NULL), RELAX_E_INVALID);
    assert_int_equal(relax_value_set_arg(NULL, 0, NULL), RELAX_E_INVALID);
    assert_null(relax_insert_before(NULL));
    assert_int_equal(relax_insert_end(NULL), RELAX_E_INVALID);
    assert_null(relax_pipeline_parse(NULL, "default"));
    relax_pipeline_destroy(NULL);
    assert_int_equal(relax_pipeline_run(NULL, NULL), RELAX_E_INVALID);
    assert_int_equal(relax_pipeline_insert_after(NULL, NULL, NULL, NULL, NULL), RELAX_E_INVALID);
    assert_int_equal(relax_pipeline_remove(NULL, NULL), RELAX_E_INVALID);
    assert_null(relax_target_parse(NULL, "cpu"));
    assert_int_equal(relax_build(NULL, NULL, NULL, NULL), RELAX_E_INVALID);
    assert_int_equal(relax_plugin_load(NULL, NULL), RELAX_E_INVALID);
    assert_int_equal(relax_executable_load_file(NULL, NULL, NULL), RELAX_E_INVALID);
    assert_int_equal(relax_executable_load_memory(NULL, NULL, 0, 0, NULL), RELAX_E_INVALID);
    relax_executable_destroy(NULL);
    assert_int_equal(relax_executable_save(NULL, NULL), RELAX_E_INVALID);
    assert_int_equal(relax_executable_bytes(NULL, &bytes, &size), RELAX_E_INVALID);
    assert_int_equal(relax_executable_function_count(NULL), 0);
    assert_null(relax_executable_property(NULL, "target"));
    assert_int_equal(relax_executable_peak_memory(NULL, NULL, NULL, 0, NULL), RELAX_E_INVALID);
    assert_int_equal(relax_vm_create(NULL, NULL, NULL), RELAX_E_INVALID);
    relax_vm_destroy(NULL);
    assert_int_equal(relax_vm_call(NULL, NULL, NULL, 0, NULL), RELAX_E_INVALID);
    assert_int_equal(relax_vm_invoke(NULL, NULL, NULL, 0, NULL), RELAX_E_INVALID);
    assert_int_equal(relax_vm_call_into(NULL, NULL, NULL, 0, NULL, 0), RELAX_E_INVALID);
    assert_int_equal(relax_vm_bind_weight(NULL, NULL, NULL), RELAX_E_INVALID);
    relax_any_release(NULL);
    assert_int_equal(relax_any_count(NULL), 0);
    assert_int_equal(relax_any_dltensor(&any, &t), RELAX_E_INVALID);
    assert_int_equal(relax_tensor_create(NULL, RELAX_F32, NULL, 0, &any), RELAX_E_INVALID);
    assert_int_equal(relax_library_register(NULL, NULL, NULL, NULL), RELAX_E_INVALID);
    assert_int_equal(relax_weights_open(NULL, NULL, NULL), RELAX_E_INVALID);
    relax_weights_close(NULL);
    assert_int_equal(relax_weights_count(NULL), 0);
    assert_null(relax_model_import(NULL, NULL, NULL));
    assert_int_equal(relax_tokenizer_create(NULL, NULL), RELAX_E_INVALID);
    relax_tokenizer_destroy(NULL);
    assert_int_equal(relax_generator_create(NULL, NULL, NULL, NULL), RELAX_E_INVALID);
    relax_generator_destroy(NULL);
    assert_int_equal(relax_generator_feed(NULL, NULL, 0), RELAX_E_INVALID);
    assert_int_equal(relax_pass_describe(NULL, 0, &s, &s), RELAX_E_INVALID);
}

/* ---- handles of other contexts, modules, functions ---- */
static void foreign_handles(void **state)
{
    (void)state;
    tl_heap h1, h2;
    relax_context *a = host(&h1), *b = host(&h2);
    relax_module *ma = relax_module_create(a), *mb = relax_module_create(b);
    relax_builder *fa = relax_function_begin(ma, "f"), *ga = relax_function_begin(ma, "g"),
                  *fb = relax_function_begin(mb, "f");
    relax_value *x = relax_param(fa, "x", "Tensor((n,), f32)"), *y = relax_param(ga, "y", "Tensor((n,), f32)");
    assert_null(relax_dim_add(relax_dim_const(a, 1), relax_dim_const(b, 1)));
    assert_string_equal(relax_last_error(a), "RX1003: a dim belongs to another context, module or function");
    assert_null(relax_add(ga, y, x));                                   /* x is of fa's function */
    assert_int_equal(relax_builder_status(ga), RELAX_E_INVALID);
    assert_int_equal(relax_function_finish(ga, y), RELAX_E_INVALID);
    assert_null(relax_param_typed(fb, "z", relax_value_type(x)));
    assert_int_equal(relax_function_finish(fb, NULL), RELAX_E_INVALID);
    assert_int_equal(relax_function_finish(fa, x), RELAX_OK);
    relax_pipeline *p = relax_pipeline_parse(b, "default");
    assert_int_equal(relax_pipeline_run(p, ma), RELAX_E_INVALID);
    relax_executable *e = NULL;
    assert_int_equal(relax_build(ma, relax_target_parse(b, "cpu"), NULL, &e), RELAX_E_INVALID);
    assert_null(e);
    relax_pipeline_destroy(p);
    relax_module_destroy(ma);
    relax_module_destroy(mb);
    host_done(&h1, a);
    host_done(&h2, b);
}

/* ---- the first error sticks ---- */
static void errors_stick(void **state)
{
    (void)state;
    tl_heap h;
    relax_context *ctx = host(&h);
    relax_module *m = relax_module_create(ctx);
    relax_builder *b = relax_function_begin(m, "f");
    relax_value *x = relax_param(b, "x", "Tensor((n, 4), f32)"), *y = relax_param(b, "y", "Tensor((n, 5), f32)");
    relax_value *z = relax_silu(b, relax_matmul(b, relax_add(b, x, y), x));         /* 4 and 5 cannot be equal */
    assert_null(z);
    assert_int_equal(relax_diagnostic_count(ctx), 1);
    assert_int_equal(relax_function_finish(b, z), RELAX_E_SHAPE);
    relax_diagnostic d = RELAX_DIAGNOSTIC_INIT;
    assert_int_equal(relax_diagnostic_get(ctx, 0, &d), RELAX_OK);
    assert_string_equal(d.id, "RX2104");
    assert_string_equal(d.function, "f");
    assert_non_null(strstr(d.message, "4"));
    assert_non_null(strstr(d.message, "5"));
    assert_null(relax_module_find(m, "f"));                                        /* removed again */
    b = relax_function_begin(m, "f");                                              /* and the name is free */
    assert_int_equal(relax_function_finish(b, relax_param(b, "x", "Tensor((n,), f32)")), RELAX_OK);
    relax_module_destroy(m);
    host_done(&h, ctx);
}

static void option_structs(void **state)
{
    (void)state;
    struct { relax_context_options o; unsigned char tail[16]; } big = { RELAX_CONTEXT_OPTIONS_INIT, { 0 } };
    relax_context *ctx = NULL;
    big.o.struct_size = sizeof big; /* a newer host, nothing set that is unknown */
    assert_int_equal(relax_context_create(&big.o, &ctx), RELAX_OK);
    relax_context_destroy(ctx);
    big.tail[3] = 1;
    assert_int_equal(relax_context_create(&big.o, &ctx), RELAX_E_INCOMPATIBLE);
    assert_null(ctx);
    relax_context_options small = RELAX_CONTEXT_OPTIONS_INIT;                      /* an older host */
    small.struct_size = 8;
    assert_int_equal(relax_context_create(&small, &ctx), RELAX_OK);
    relax_context_destroy(ctx);
    small.struct_size = 2;
    assert_int_equal(relax_context_create(&small, &ctx), RELAX_E_INCOMPATIBLE);
}

/* ---- building and running with the n-th allocation failing ---- */
static const char model[] =
    "fn f(x: Tensor((n, 6), f32), i: Tensor((k,), i64)) -> Tensor((k, 6), f32) where n <= 64 {\n"
    "  m = multiply(x, const(f32, (6,), [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]))\n"
    "  s = softmax(m, axis=-1)\n"
    "  a = add(s, x)\n"
    "  t = reshape(a, shape(n * 6))\n"
    "  u = reshape(t, shape(n, 6))\n"
    "  y = take(u, i, axis=0)\n"
    "  return y\n"
    "}\n";

/* the whole way; the first failing status, RELAX_OK at the end. Everything made is destroyed in every case. */
static relax_status build_and_run(relax_context *ctx, bool native, float *sum)
{
    relax_status st;
    relax_executable *e = NULL;
    relax_vm *vm = NULL;
    relax_any args[2] = { { 0 } }, r = { 0 };
    DLTensor t;
    relax_module *m = relax_module_parse(ctx, "model", model, RELAX_STRLEN);
    relax_target *target = m ? relax_target_parse(ctx, native ? "cpu" : "null") : NULL;
    relax_build_options o = RELAX_BUILD_OPTIONS_INIT;
    o.verify = 1;
    st = target ? relax_build(m, target, &o, &e) : RELAX_E_NOMEM;
    if (st == RELAX_OK && native) st = relax_vm_create(e, NULL, &vm);
    if (st == RELAX_OK && native) st = relax_tensor_create(ctx, RELAX_F32, (int64_t[]){ 3, 6 }, 2, &args[0]);
    if (st == RELAX_OK && native) st = relax_tensor_create(ctx, RELAX_I64, (int64_t[]){ 2 }, 1, &args[1]);
    if (st == RELAX_OK && native) st = relax_vm_invoke(vm, "f", args, 2, &r);
    if (st == RELAX_OK && native) {
        assert_int_equal(relax_any_dltensor(&r, &t), RELAX_OK);
        *sum = 0;
        for (int i = 0; i < 12; i++) *sum += ((float *)t.data)[i];
    }
    relax_any_release(&r);
    relax_any_release(&args[0]);
    relax_any_release(&args[1]);
    relax_vm_destroy(vm);
    relax_executable_destroy(e);
    relax_module_destroy(m);
    return st;
}

static void fail_every(bool sticky, bool native, int64_t step)
{
    int64_t n = 1;
    for (;; n += step) {
        tl_heap h;
        float sum = 0;
        relax_context *ctx = host(&h);
        tl_fail(&h, n, sticky);
        relax_status st = build_and_run(ctx, native, &sum);
        bool reached = h.calls >= n;
        tl_fail(&h, 0, false);
        if (st != RELAX_OK) {
            assert_true(reached);
            assert_int_equal(st, RELAX_E_NOMEM);
            assert_int_equal(build_and_run(ctx, native, &sum), RELAX_OK);         /* the context can be used again */
        }
        if (native) assert_true(sum > 1.99f && sum < 2.01f);                     /* softmax rows add up to 1; x is 0 */
        host_done(&h, ctx);
        if (st == RELAX_OK && !reached) break;
    }
    assert_true(n > 20);
}

static void nth_allocation_fails(void **state)
{
    (void)state;
    fail_every(false, false, 1);
    fail_every(true, false, 1);
}

static void nth_allocation_fails_native(void **state)
{
    (void)state;
    fail_every(false, true, 7);
}

/* ---- nothing of the host is disturbed ---- */
static void host_undisturbed(void **state)
{
    (void)state;
    tl_heap h;
    float sum;
    char path[] = "/tmp/relax-api-XXXXXX";
    int file = mkstemp(path), out = dup(1), err = dup(2);
    unlink(path);
    fflush(stdout);
    fflush(stderr);
    dup2(file, 1);
    dup2(file, 2);
    fesetround(FE_UPWARD);
    errno = 4242;
    relax_context *ctx = host(&h);
    relax_status st = build_and_run(ctx, true, &sum);
    relax_module *bad = relax_module_parse(ctx, "bad", "fn f(", RELAX_STRLEN);
    relax_context_destroy(ctx);
    int round = fegetround(), no = errno;
    fesetround(FE_TONEAREST);
    fflush(stdout);
    fflush(stderr);
    dup2(out, 1);
    dup2(err, 2);
    close(out);
    close(err);
    assert_int_equal(st, RELAX_OK);
    assert_null(bad);
    assert_int_equal(lseek(file, 0, SEEK_END), 0);                               /* not a byte was written */
    assert_int_equal(round, FE_UPWARD);
    assert_true(no == 4242 || no == 0 || no == ENOENT);
    close(file);
    assert_int_equal(h.blocks, 0);
}

/* ---- saving ---- */
static void saving(void **state)
{
    (void)state;
    tl_heap h;
    relax_context *ctx = host(&h);
    relax_module *m = relax_module_parse(ctx, "model", model, RELAX_STRLEN);
    relax_executable *e = NULL, *e2 = NULL;
    const void *a, *b;
    size_t na, nb;
    assert_int_equal(relax_build(m, relax_target_parse(ctx, "cpu"), NULL, &e), RELAX_OK);
    assert_int_equal(relax_executable_save(e, "/dev/full"), RELAX_E_IO);
    assert_int_equal(relax_executable_save(e, "/nonexistent/folder/x.rlx"), RELAX_E_IO);
    char path[] = "/tmp/relax-api-XXXXXX";
    close(mkstemp(path));
    assert_int_equal(relax_executable_save(e, path), RELAX_OK);
    assert_int_equal(relax_executable_load_file(ctx, path, &e2), RELAX_OK);
    relax_executable_bytes(e, &a, &na);
    relax_executable_bytes(e2, &b, &nb);
    assert_int_equal(na, nb);
    assert_memory_equal(a, b, na);
    relax_executable_destroy(e2);
    assert_int_equal(relax_build(m, relax_target_parse(ctx, "cpu"), NULL, &e2),
                     RELAX_OK); /* the same program: the same bytes */
    relax_executable_bytes(e2, &b, &nb);
    assert_int_equal(na, nb);
    assert_memory_equal(a, b, na);
    unlink(path);
    relax_executable_destroy(e2);
    relax_executable_destroy(e);
    relax_module_destroy(m);
    host_done(&h, ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(null_everywhere),      cmocka_unit_test(foreign_handles),
        cmocka_unit_test(errors_stick),         cmocka_unit_test(option_structs),
        cmocka_unit_test(nth_allocation_fails), cmocka_unit_test(nth_allocation_fails_native),
        cmocka_unit_test(host_undisturbed),     cmocka_unit_test(saving),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
