/* levels.c: all three levels in one function: operators, a tensor program of one's own, a library function; and a shape
 * that depends on values.
 *
 * The tensor program decodes 4-bit weights: eight values in a u32, a scale for every 32. */
#include <relax.h>
#include <math.h>
#include <stdio.h>

static int report(relax_context *ctx)
{
    fprintf(stderr, "%s\n", relax_last_error(ctx));
    return 1;
}

static relax_function *decode_q4(relax_module *mod)
{
    relax_prim_builder *p =
        relax_prim_begin(mod, "decode_q4"); /* a tensor program; or relax_module_parse() of its text */
    relax_buffer *Q = relax_prim_param(p, "Q", "Buffer((k//8, m), u32)");
    relax_buffer *S = relax_prim_param(p, "S", "Buffer((k//32, m), f16)");
    relax_buffer *W = relax_prim_param(p, "W", "Buffer((k, m), f16)");
    const relax_expr *i = relax_loop(p, "i", "k"), *j = relax_loop(p, "j", "m");

    /* calls: W[i, j] = f16((Q[i//8, j] >> i%8*4) & 15) - 7) * S[i//32, j] */
    const relax_expr *word = relax_load(p, Q, (const relax_expr *[]){ relax_prim_expr(p, "i // 8"), j }, 2);
    const relax_expr *nibble =
        relax_prim_binary(p, "&", relax_prim_binary(p, ">>", word, relax_prim_expr(p, "u32(i % 8 * 4)")),
                          relax_prim_const(p, RELAX_U32, 15));
    const relax_expr *q =
        relax_prim_binary(p, "-", relax_prim_call(p, "f16", &nibble, 1), relax_prim_const(p, RELAX_F16, 7));
    const relax_expr *scale = relax_load(p, S, (const relax_expr *[]){ relax_prim_expr(p, "i // 32"), j }, 2);
    relax_store(p, W, (const relax_expr *[]){ i, j }, 2, relax_prim_binary(p, "*", q, scale));
    relax_loop_end(p);
    relax_loop_end(p);
    return relax_prim_finish(p);
}

/* a function of the host in destination-passing style: y = 30 tanh(x / 30) */
static relax_status softcap(void *user, const relax_library_call *c)
{
    (void)user;
    const DLTensor *x = c->args[0], *y = c->args[1];
    int64_t n = 1;
    for (int i = 0; i < x->ndim; i++) n *= x->shape[i];
    for (int64_t i = 0; i < n; i++) ((float *)y->data)[i] = 30.0f * tanhf(((const float *)x->data)[i] / 30.0f);
    return RELAX_OK;
}

static int make(relax_context *ctx, relax_module *mod)
{
    relax_function *decode = decode_q4(mod);
    relax_builder *b = relax_function_begin(mod, "main");
    relax_value *x = relax_param(b, "x", "Tensor((n, 64), f32)");
    relax_value *q = relax_param(b, "q", "Tensor((8, 64), u32)");
    relax_value *s = relax_param(b, "s", "Tensor((2, 64), f16)");
    relax_value *ids = relax_param(b, "ids", "Tensor((t,), i64)");

    relax_value *w = relax_call_tir(b, decode, (relax_value *[]){ q, s }, 2, "Tensor((64, 64), f16)", NULL, 0);
    relax_value *mm = relax_matmul(b, x, relax_astype(b, w, RELAX_F32));
    relax_value *z = relax_call_dps_library(b, "mylib.softcap", (relax_value *[]){ mm }, 1, "Tensor((n, 64), f32)");
    relax_value *u =
        relax_match_cast(b, relax_unique(b, ids), "Tensor((m,), i64)"); /* m: known from here on, as a symbol */
    relax_value *rows = relax_take(b, z, u, 0);                         /* deduced: Tensor((m, 64), f32) */
    char text[64];
    relax_type_text(relax_value_type(rows), text, sizeof text);
    printf("rows: %s\n", text);
    return relax_function_finish(b, rows) ? report(ctx) : 0;
}

static int run(relax_context *ctx, relax_module *mod)
{
    relax_executable *exe = NULL;
    relax_vm *vm = NULL;
    if (relax_library_register(ctx, "mylib.softcap", softcap, NULL)) return report(ctx);
    if (relax_build(mod, relax_target_parse(ctx, "cpu"), NULL, &exe) || relax_vm_create(exe, NULL, &vm))
        return report(ctx);
    relax_any args[4] = { { 0 } }, result = { 0 };
    DLTensor t;
    if (relax_tensor_create(ctx, RELAX_F32, (int64_t[]){5, 64}, 2, &args[0]) ||
        relax_tensor_create(ctx, RELAX_U32, (int64_t[]){8, 64}, 2, &args[1]) ||
        relax_tensor_create(ctx, RELAX_F16, (int64_t[]){2, 64}, 2, &args[2]) ||
        relax_tensor_create(ctx, RELAX_I64, (int64_t[]){6}, 1, &args[3]))
        return report(ctx);
    relax_any_dltensor(&args[0], &t);
    for (int i = 0; i < 5 * 64; i++) ((float *)t.data)[i] = (float)(i / 64);           /* row r is all r */
    relax_any_dltensor(&args[1], &t);
    for (int i = 0; i < 8 * 64; i++) ((uint32_t *)t.data)[i] = 0x88888888u;            /* every value 8 - 7 = 1 */
    relax_any_dltensor(&args[2], &t);
    for (int i = 0; i < 2 * 64; i++) ((uint16_t *)t.data)[i] = 0x3000;                 /* 0.125 */
    relax_any_dltensor(&args[3], &t);
    for (int i = 0; i < 6; i++) ((int64_t *)t.data)[i] = (int64_t[]){ 4, 1, 4, 0, 1, 4 }[i];
    int code = relax_vm_invoke(vm, "main", args, 4, &result) ? report(ctx) : relax_any_dltensor(&result, &t);
    for (int64_t r = 0; !code && r < t.shape[0]; r++)
        printf("row %lld: %.4f\n", (long long)r, ((float *)t.data)[r * 64]);
    relax_any_release(&result);
    for (int i = 0; i < 4; i++) relax_any_release(&args[i]);
    relax_vm_destroy(vm);
    relax_executable_destroy(exe);
    return code;
}

int main(void)
{
    relax_context *ctx = NULL;
    if (relax_context_create(NULL, &ctx)) return 1;
    relax_module *mod = relax_module_create(ctx);
    int code = make(ctx, mod) || run(ctx, mod);
    relax_module_destroy(mod);
    relax_context_destroy(ctx);
    return code;
}
