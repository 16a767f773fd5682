/* test_legal_gguf.c: block formats in tensor programs against the recorded blocks, bit for bit; matmul and row look-up
 * against the plain decoder of import/. */
#define TL_JSON
#include "testlib.h"

#include <math.h>

#include "import/import.h"
#include "interp/interp.h"
#include "op/op.h"

/* the program of `op` on tensors of constant shape */
static const rx_prim *prim_of(relax_module *m, rx_opcode code, rx_ty *in, uint32_t n, const char *type)
{
    relax_context *ctx = m->ctx;
    const rx_op *op = rx_op_get(ctx, code);
    rx_attr a = { .key = rx_str(ctx, "type"), .kind = RX_A_STR, .u.s = type };
    relax_function *f = rx_function_new(m, rx_strf(ctx, "f%u", m->next_id++));
    rx_exvec checks = { 0 }, syms = { 0 };
    rx_call c = { .ctx = ctx, .f = f, .op = op, .types = in, .n = n, .checks = &checks, .a = &m->arena };
    c.attrs = rx_op_attrs(ctx, c.a, op, &a, 1);
    rx_ty out = rx_op_deduce(&c);
    const rx_prim *p = rx_op_legalize(m, f, op, in, n, out, &c.attrs, &syms)->prim;
    rx_unproved_vec open = { 0 };
    assert_int_equal(checks.n, 0);
    assert_int_equal(rx_prim_verify(ctx, p, &m->arena, &open), 0);
    assert_int_equal(open.n, 0);
    return p;
}

static rx_ty matrix(relax_context *ctx, int64_t rows, int64_t cols, relax_dtype t)
{
    rx_ex d[] = { rx_int(ctx, rows), rx_int(ctx, cols) };
    return rx_ty_tensor(ctx, d, 2, t);
}

static size_t hex_bytes(const char *s, uint8_t *out)
{
    size_t n = strlen(s) / 2;
    for (size_t i = 0; i < n; i++) {
        unsigned v;
        sscanf(s + 2 * i, "%2x", &v);
        out[i] = (uint8_t)v;
    }
    return n;
}

static bool known(const char *type)
{
    int64_t id = rx_ggml_type_find(type);
    return id >= 0 && rx_ggml_type_info((uint32_t)id)->decodable;
}

static void check_block(relax_context *ctx, const cJSON *c, const char *type)
{
    uint8_t bytes[512];
    size_t n = hex_bytes(cJSON_GetObjectItem(c, "bytes")->valuestring, bytes);
    const cJSON *want = cJSON_GetObjectItem(c, "f32");
    const char *hex = want->valuestring;
    size_t values = cJSON_IsArray(want) ? (size_t)cJSON_GetArraySize(want) : strlen(hex) / 8;
    float *got = calloc(values, sizeof *got);
    TL_TRY(ctx) {
        relax_module *m = rx_module_new(ctx);
        rx_ty w = matrix(ctx, 1, (int64_t)n, RELAX_U8);
        void *mem[] = { bytes, got };
        rx_interp_prim(ctx, prim_of(m, RX_OP_DEQUANTIZE_GGUF, &w, 1, type), mem, NULL);
        rx_module_free(m);
    }
    TL_END(ctx);
    for (size_t i = 0; i < values; i++) {
        char text[9] = { 0 };
        memcpy(text, cJSON_IsArray(want) ? cJSON_GetArrayItem(want, (int)i)->valuestring : hex + 8 * i, 8);
        uint32_t bits = (uint32_t)strtoul(text, NULL, 16), have;
        float f;
        memcpy(&f, &bits, 4);
        memcpy(&have, &got[i], 4);
        if (have != bits && !(f == 0 && got[i] == 0))
            fail_msg("%s %s value %zu: %08x, wanted %08x", type, cJSON_GetObjectItem(c, "case")->valuestring, i, have,
                     bits);
    }
    free(got);
}

static void test_blocks(void **state)
{
    (void)state;
    char path[512];
    if (!tl_oracle("lm/quant_blocks.jsonl", path, sizeof path))
        skip();
    tl_heap th;
    relax_context *ctx = tl_context(&th);
    TL_TRY(ctx) { rx_ops_init(ctx); }
    TL_END(ctx);
    FILE *f = fopen(path, "r");
    static char line[1 << 15];
    int n = 0;
    while (fgets(line, sizeof line, f)) {
        cJSON *c = cJSON_Parse(line);
        const char *type = cJSON_GetObjectItem(c, "type")->valuestring;
        if (known(type)) {
            check_block(ctx, c, type);
            n++;
        }
        cJSON_Delete(c);
    }
    fclose(f);
    assert_true(n >= 16 * 4);
    tl_done(&th, ctx);
}

static uint32_t random_state = 1;
static uint32_t rnd(void)
{
    random_state = random_state * 1664525u + 1013904223u;
    return random_state >> 8;
}

static const char *const types[] = {"q4_0", "q4_1", "q5_0", "q5_1", "q8_0",   "iq4_nl", "mxfp4", "q2_k",
                                    "q3_k", "q4_k", "q5_k", "q6_k", "iq4_xs", "f16",    "bf16",  "f32"};

/* rows of random blocks whose scales are small numbers, and their values by the plain decoder */
static void random_rows(const char *type, int64_t rows, int64_t cols, uint8_t *bytes, float *values)
{
    char upper[16] = { 0 };
    for (size_t i = 0; type[i]; i++)
        upper[i] = (char)(type[i] >= 'a' && type[i] <= 'z' ? type[i] - 32 : type[i]);
    int64_t id = rx_ggml_type_find(upper);
    const rx_ggml_type *t = rx_ggml_type_info((uint32_t)id);
    int64_t blocks = rows * cols / t->block_values;
    for (;;) {
        for (int64_t i = 0; i < blocks * t->block_bytes; i++)
            bytes[i] = (uint8_t)(rnd() & (strcmp(type, "mxfp4") ? 0x3f : 0x7f));
        assert_true(rx_quant_decode((uint32_t)id, bytes, rows * cols, values));
        bool fine = true;
        for (int64_t i = 0; i < rows * cols; i++)
            fine &= isfinite(values[i]);
        if (fine)
            return;
    }
}

static void check_matmul(relax_context *ctx, const char *type, int64_t m, int64_t n, int64_t k, size_t row_bytes)
{
    uint8_t *w = calloc((size_t)n + 1, row_bytes);
    float *v = calloc((size_t)(n * k) + 1, 4), *x = calloc((size_t)(m * k) + 1, 4), *y = calloc((size_t)(m * n) + 1, 4);
    random_rows(type, n, k, w, v);
    for (int64_t i = 0; i < m * k; i++)
        x[i] = (float)((int)(rnd() % 200) - 100) / 100;
    TL_TRY(ctx) {
        relax_module *mod = rx_module_new(ctx);
        rx_ty in[] = { matrix(ctx, m, k, RELAX_F32), matrix(ctx, n, (int64_t)row_bytes, RELAX_U8) };
        void *mem[] = { x, w, y };
        rx_interp_prim(ctx, prim_of(mod, RX_OP_MATMUL_GGUF, in, 2, type), mem, NULL);
        rx_module_free(mod);
    }
    TL_END(ctx);
    for (int64_t i = 0; i < m; i++)
        for (int64_t r = 0; r < n; r++) {
            double want = 0, size = 0;
            for (int64_t c = 0; c < k; c++) {
                want += (double)x[i * k + c] * v[r * k + c];
                size += fabs((double)x[i * k + c] * v[r * k + c]);
            }
            if (fabs(y[i * n + r] - want) > 1e-5 * size)
                fail_msg("%s m=%d: y[%d, %d] is %g, wanted %g", type, (int)m, (int)i, (int)r, (double)y[i * n + r],
                         want);
        }
    free(w);
    free(v);
    free(x);
    free(y);
}

static void test_matmul(void **state)
{
    (void)state;
    tl_heap th;
    relax_context *ctx = tl_context(&th);
    TL_TRY(ctx) { rx_ops_init(ctx); }
    TL_END(ctx);
    static const int64_t ms[] = { 0, 1, 2, 3, 4, 9 };
    for (size_t t = 0; t < RX_COUNT(types); t++) {
        const char *s = types[t];
        bool plain = t >= RX_COUNT(types) - 3;
        char upper[16] = { 0 };
        for (size_t i = 0; s[i]; i++)
            upper[i] = (char)(s[i] >= 'a' && s[i] <= 'z' ? s[i] - 32 : s[i]);
        const rx_ggml_type *info = rx_ggml_type_info((uint32_t)rx_ggml_type_find(upper));
        int64_t k = plain ? 5 : info->block_values == 32 ? 96 : 512;
        size_t row_bytes = (size_t)(k / info->block_values) * info->block_bytes;
        for (size_t i = 0; i < RX_COUNT(ms); i++)
            check_matmul(ctx, s, ms[i], i % 2 ? 3 : 8, k, row_bytes);
    }
    tl_done(&th, ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_blocks),
        cmocka_unit_test(test_matmul),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
