/* test_quant.c: the decoders of block formats against recorded blocks, bit for bit (zeros by value). */
#define TL_JSON
#include "testlib.h"

#include "import/import.h"

static int hex(char c)
{
    return c <= '9' ? c - '0' : (c | 32) - 'a' + 10;
}

static size_t unhex(const char *s, uint8_t *out, size_t max)
{
    size_t n = strlen(s) / 2;
    assert_true(n <= max);
    for (size_t i = 0; i < n; i++)
        out[i] = (uint8_t)(hex(s[2 * i]) << 4 | hex(s[2 * i + 1]));
    return n;
}

static void check_block(const cJSON *row, int *checked, bool seen[])
{
    uint8_t block[512], want[4 * 256];
    float got[256];
    const char *name = tl_json_str(row, "type");
    int64_t id = rx_ggml_type_find(name);
    assert_int_equal(id, (int64_t)tl_json_get(row, "type_id")->valuedouble);
    const rx_ggml_type *ty = rx_ggml_type_info((uint32_t)id);
    assert_int_equal(ty->block_values, (int)tl_json_get(row, "block_values")->valuedouble);
    assert_int_equal(ty->block_bytes, (int)tl_json_get(row, "block_bytes")->valuedouble);
    size_t bytes = unhex(tl_json_str(row, "bytes"), block, sizeof block);
    size_t n = unhex(tl_json_str(row, "f32"), want, sizeof want) / 4;
    assert_int_equal(bytes / ty->block_bytes * ty->block_values, n);
    assert_int_equal(rx_quant_decode((uint32_t)id, block, (int64_t)n, got), ty->decodable);
    if (!ty->decodable)
        return;
    seen[id] = true;
    ++*checked;
    for (size_t i = 0; i < n; i++) {
        uint32_t w = (uint32_t)want[4 * i] << 24 | (uint32_t)want[4 * i + 1] << 16 | (uint32_t)want[4 * i + 2] << 8
                     | want[4 * i + 3];
        uint32_t g;
        memcpy(&g, &got[i], 4);
        if (g != w && ((g | w) & 0x7FFFFFFF))
            fail_msg("%s %s value %zu: %08x, wanted %08x", name, tl_json_str(row, "case"), i, g, w);
    }
}

static void test_oracle(void **state)
{
    (void)state;
    char path[1024];
    tl_lines l;
    if (!tl_oracle("lm/quant_blocks.jsonl", path, sizeof path))
        skip();
    assert_true(tl_lines_open(&l, path));
    bool seen[RX_GGML_TYPES] = {0};
    int checked = 0;
    for (cJSON *j; (j = tl_json_next(&l));) {
        check_block(j, &checked, seen);
        cJSON_Delete(j);
    }
    for (uint32_t i = 0; i < RX_GGML_TYPES; i++) {
        const rx_ggml_type *ty = rx_ggml_type_info(i);
        if (ty && ty->decodable && !seen[i] && i != RX_GGML_F32)
            fail_msg("no recorded block of %s", ty->name);
    }
    print_message("%d blocks\n", checked);
    assert_true(checked >= 80);
}

static void test_refusals(void **state)
{
    (void)state;
    uint8_t block[64] = {0};
    float y[32];
    assert_false(rx_quant_decode(RX_GGML_Q4_0, block, 31, y));
    assert_false(rx_quant_decode(RX_GGML_Q4_0, block, -32, y));
    assert_false(rx_quant_decode(4, block, 32, y));
    assert_false(rx_quant_decode(UINT32_MAX, block, 32, y));
    assert_true(rx_quant_decode(RX_GGML_Q4_0, block, 0, y));
    assert_null(rx_ggml_type_info(RX_GGML_TYPES));
    assert_int_equal(rx_ggml_type_find("Q4_2"), -1);
}

static void test_f32_and_order(void **state)
{
    (void)state;
    const uint8_t f[8] = {0, 0, 0x80, 0x3F, 0, 0, 0x20, 0xC1};
    float y[64];
    assert_true(rx_quant_decode(RX_GGML_F32, f, 2, y));
    assert_true(y[0] == 1.0f && y[1] == -10.0f);
    /* two Q4_0 blocks: d = 1, value i has code i % 16; then all codes 8 */
    uint8_t q[36] = {0x00, 0x3C};
    for (int i = 0; i < 16; i++)
        q[2 + i] = (uint8_t)(i | (15 - i) << 4);
    q[18] = 0, q[19] = 0x40;
    memset(q + 20, 0x98, 16);
    assert_true(rx_quant_decode(RX_GGML_Q4_0, q, 64, y));
    for (int i = 0; i < 16; i++) {
        assert_true(y[i] == (float)(i - 8));
        assert_true(y[16 + i] == (float)(7 - i));
        assert_true(y[32 + i] == 0.0f && y[48 + i] == 2.0f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_oracle),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_f32_and_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
