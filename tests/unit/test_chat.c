/* test_chat.c: families of chat templates: detection, rendering. */
#include "testlib.h"

#include "import/import.h"

#define V(s) {s, sizeof(s) - 1}
static void test_chat(void **state)
{
    (void)state;
    static const rx_chat_message m[] = {
        {V("system"), V("Be brief.")}, {V("user"), V("Hi ")}, {V("assistant"), V("Hello")}, {V("user"), V("Bye")}};
    static const struct { const char *name, *with_system, *without;
    } rows[] = {
        {"chatml",
         "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nHi <|im_end|>\n<|im_start|>assistant\nHello"
         "<|im_end|>\n<|im_start|>user\nBye<|im_end|>\n<|im_start|>assistant\n",
         "<|im_start|>user\nBye<|im_end|>\n<|im_start|>assistant\n"},
        {"qwen2", NULL,
         "<|im_start|>system\nYou are a helpful assistant.<|im_end|>\n<|im_start|>user\nBye<|im_end|>\n"
         "<|im_start|>assistant\n"},
        {"qwen2.5", NULL,
         "<|im_start|>system\nYou are Qwen, created by Alibaba Cloud. You are a helpful assistant.<|im_end|>\n"
         "<|im_start|>user\nBye<|im_end|>\n<|im_start|>assistant\n"},
        {"llama2", "[INST] <<SYS>>\nBe brief.\n<</SYS>>\n\nHi [/INST] Hello </s><s>[INST] Bye [/INST]",
         "[INST] Bye [/INST]"},
        {"llama3",
         "<|start_header_id|>system<|end_header_id|>\n\nBe brief.<|eot_id|><|start_header_id|>user<|end_header_id|>\n\n"
         "Hi<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\nHello<|eot_id|><|start_header_id|>user"
         "<|end_header_id|>\n\nBye<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\n",
         "<|start_header_id|>user<|end_header_id|>\n\nBye<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\n"},
        {"gemma",
         "<start_of_turn>user\nBe brief.\n\nHi<end_of_turn>\n<start_of_turn>model\nHello<end_of_turn>\n"
         "<start_of_turn>user\nBye<end_of_turn>\n<start_of_turn>model\n",
         "<start_of_turn>user\nBye<end_of_turn>\n<start_of_turn>model\n"},
        {"phi3",
         "<|system|>\nBe brief.<|end|>\n<|user|>\nHi <|end|>\n<|assistant|>\nHello<|end|>\n<|user|>\nBye<|end|>\n"
         "<|assistant|>\n",
         "<|user|>\nBye<|end|>\n<|assistant|>\n"},
        {"zephyr",
         "<|system|>\nBe brief.</s>\n<|user|>\nHi </s>\n<|assistant|>\nHello</s>\n<|user|>\nBye</s>\n<|assistant|>\n",
         "<|user|>\nBye</s>\n<|assistant|>\n"},
    };
    tl_heap th;
    relax_context *ctx = tl_context(&th);
    TL_TRY(ctx)
    {
        for (size_t i = 0; i < RX_COUNT(rows); i++) {
            rx_chat_family f = rx_chat_find(rows[i].name, strlen(rows[i].name));
            assert_int_not_equal(f, RX_CHAT_NONE);
            assert_string_equal(rx_chat_name(f), rows[i].name);
            for (int k = 0; k < 2; k++) {
                rx_buf b;
                rx_buf_init(&b, &ctx->arena);
                rx_chat_render(ctx, f, k ? m + 3 : m, k ? 1 : 4, (rx_view){0}, true, &b);
                if (k || rows[i].with_system)
                    assert_string_equal(b.at, k ? rows[i].without : rows[i].with_system);
            }
        }
        assert_int_equal(rx_chat_find("nobody", 6), RX_CHAT_NONE);
    }
    TL_END(ctx)
    tl_done(&th, ctx);
}

static void test_chat_detect(void **state)
{
    (void)state;
    static const struct { const char *jinja, *name;
    } rows[] = {
        {"{% for m in messages %}{{'<|im_start|>' + m['role'] + '\\n' + m['content'] + '<|im_end|>\\n'}}{% endfor %}",
         "chatml"},
        {"{% if loop.first %}{{ '<|im_start|>system\\nYou are a helpful assistant.<|im_end|>\\n' }}{% endif %}",
         "qwen2"},
        {"{{ '<|start_header_id|>' + message['role'] }}{{ '<|eot_id|>' }}", "llama3"},
        {"{{ bos_token + '[INST] ' + '<<SYS>>' }}", "llama2"},
        {"{{ '<start_of_turn>' + role }}{{ '<end_of_turn>' }}", "gemma"},
        {"{{'<|user|>\\n' + c + '<|end|>\\n'}}", "phi3"},
        {"{{ '<|user|>\\n' + message['content'] + eos_token }}", "zephyr"},
    };
    tl_heap th;
    relax_context *ctx = tl_context(&th);
    TL_TRY(ctx)
    {
        for (size_t i = 0; i < RX_COUNT(rows); i++)
            assert_string_equal(rx_chat_name(rx_chat_detect(ctx, (rx_view){rows[i].jinja, strlen(rows[i].jinja)})),
                                rows[i].name);
    }
    TL_END(ctx)
    TL_TRY(ctx) rx_chat_detect(ctx, (rx_view)V("{{ messages }}"));
    TL_END_FAILS(ctx, RXE_UNSUPPORTED)
    TL_TRY(ctx) rx_chat_detect(ctx, (rx_view){0});
    TL_END_FAILS(ctx, RXE_UNSUPPORTED)
    static const rx_chat_message tool = {V("tool"), V("x")};
    for (volatile int f = RX_CHAT_NONE; f < RX_CHAT_FAMILIES; f++) {
        TL_TRY(ctx)
        {
            rx_buf b;
            rx_buf_init(&b, &ctx->arena);
            rx_chat_render(ctx, (rx_chat_family)f, &tool, 1, (rx_view){0}, true, &b);
        }
        TL_END_FAILS(ctx, RXE_BAD_VALUE)
    }
    tl_done(&th, ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_chat),
        cmocka_unit_test(test_chat_detect),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
