/* test_tokenizer.c: tokenizers against recorded ids of two models, small tokenizers written here, streaming. */
#define TL_JSON
#include "testlib.h"

#include "ggufwrite.h"
#include "import/import.h"

/* --- recorded ids --- */

static bool ids_are(const rx_ids *ids, const cJSON *want)
{
    if (!want || (int)ids->n != cJSON_GetArraySize(want))
        return false;
    uint32_t i = 0;
    const cJSON *x;
    cJSON_ArrayForEach(x, want) if (ids->at[i++] != (int32_t)x->valuedouble) return false;
    return true;
}

static void complain(const cJSON *row, const char *what, const rx_ids *ids)
{
    print_error("%s %s:", tl_json_str(row, "id"), what);
    for (uint32_t i = 0; i < ids->n && i < 40; i++)
        print_error(" %d", ids->at[i]);
    print_error("\n");
}

/* The text of a line; cJSON would end it at a NUL. */
static rx_view text_of(relax_context *ctx, const char *line)
{
    rx_json j;
    rx_json_init(&j, ctx, rx_scratch(&ctx->heap), line, strlen(line));
    rx_json_enter(&j, '{');
    while (rx_json_next(&j, '}')) {
        if (rx_view_is(rx_json_key(&j), "text"))
            return rx_json_string(&j);
        rx_json_skip(&j);
    }
    fail();
    return (rx_view){0};
}

/* the ids as recorded, or as the file says where the recorder is known to differ */
static bool encodes(const rx_tokenizer *t, relax_context *ctx, const cJSON *row, rx_view text, uint32_t flags,
                    const char *key, const char *by_file)
{
    rx_ids ids = {0};
    const cJSON *want = tl_json_get(row, key) ? tl_json_get(row, key) : tl_json_get(row, "ids");
    rx_tokenizer_encode(t, text.at, text.n, RX_TOK_ADD_SPECIAL | flags, rx_scratch(&ctx->heap), &ids);
    bool ok = ids_are(&ids, want) || ids_are(&ids, tl_json_get(row, by_file));
    if (!ok)
        complain(row, key, &ids);
    return ok;
}

static bool decodes(const rx_tokenizer *t, relax_context *ctx, const cJSON *row, rx_view text)
{
    rx_ids ids = {0};
    rx_buf b;
    const cJSON *x, *list = tl_json_get(row, "ids");
    rx_arena *a = rx_scratch(&ctx->heap);
    cJSON_ArrayForEach(x, list) rx_push(a, &ids, (int32_t)x->valuedouble);
    rx_buf_init(&b, a);
    rx_puts(&b, "");
    rx_tokenizer_decode(t, ids.at, ids.n, true, &b);
    const char *other = tl_json_str(row, "detok");
    rx_view want = other ? (rx_view){other, strlen(other)} : text;
    bool ok = b.n == want.n && memcmp(b.at, want.at, b.n) == 0;
    if (!ok)
        print_error("%s decodes to: %.*s\n", tl_json_str(row, "id"), (int)b.n, b.at);
    return ok;
}

static void check_model(const char *model, const char *oracle, int at_least)
{
    char path[1024];
    tl_lines l;
    rx_file f;
    tl_heap th;
    if (!tl_oracle(oracle, path, sizeof path) || rx_file_map(model, &f) != 0)
        skip();
    relax_context *ctx = tl_context(&th);
    volatile int bad = 0, rows = 0;
    TL_TRY(ctx)
    {
        const rx_gguf *g = rx_gguf_open(ctx, &ctx->arena, f.at, f.size);
        const rx_tokenizer *t = rx_tokenizer_open(ctx, &ctx->arena, g);
        assert_true(tl_lines_open(&l, path));
        for (char *line; (line = tl_lines_next(&l));) {
            cJSON *j = cJSON_Parse(line);
            assert_non_null(j);
            rx_view text = text_of(ctx, line);
            rows++;
            bool ok = encodes(t, ctx, j, text, RX_TOK_PARSE_SPECIAL, "ids", "ids_by_file");
            ok &= encodes(t, ctx, j, text, 0, "ids_nospecial", "ids_nospecial_by_file");
            ok &= decodes(t, ctx, j, text);
            bad += !ok;
            cJSON_Delete(j);
        }
    }
    TL_END(ctx)
    rx_file_unmap(&f);
    tl_done(&th, ctx);
    print_message("%s: %d of %d strings\n", oracle, rows - bad, rows);
    assert_int_equal(bad, 0);
    assert_true(rows >= at_least);
}

static const char *model_path(const char *name, char *buf, size_t n)
{
    const char *dir = getenv("RELAX_MODELS");
    snprintf(buf, n, "%s/%s", dir ? dir : "build/models", name);
    return buf;
}

static void test_gemma3(void **state)
{
    (void)state;
    char path[1024];
    check_model(model_path("gemma-3-270m.gguf", path, sizeof path), "lm/tok_gemma3.jsonl", 168);
}

static void test_qwen2(void **state)
{
    (void)state;
    char path[1024];
    check_model(model_path("qwen2.5-coder-0.5b-instruct.gguf", path, sizeof path), "lm/tok_qwen2.jsonl", 168);
}

static void test_chat_oracle(void **state)
{
    (void)state;
    char path[1024], model[1024];
    tl_lines l;
    rx_file f;
    tl_heap th;
    if (!tl_oracle("lm/lm_qwen2_0_5b.jsonl", path, sizeof path)
        || rx_file_map(model_path("qwen2.5-coder-0.5b-instruct.gguf", model, sizeof model), &f) != 0)
        skip();
    relax_context *ctx = tl_context(&th);
    volatile int checked = 0;
    TL_TRY(ctx)
    {
        const rx_gguf *g = rx_gguf_open(ctx, &ctx->arena, f.at, f.size);
        const rx_tokenizer *t = rx_tokenizer_open(ctx, &ctx->arena, g);
        rx_chat_family fam = rx_chat_detect(ctx, rx_gguf_get_str(g, "tokenizer.chat_template"));
        assert_string_equal(rx_chat_name(fam), "qwen2.5");
        assert_true(rx_tokenizer_is_end(t, 151645) && rx_tokenizer_is_end(t, 151643) && !rx_tokenizer_is_end(t, 0));
        assert_true(tl_lines_open(&l, path));
        for (cJSON *j; (j = tl_json_next(&l)); cJSON_Delete(j)) {
            const cJSON *m, *list = tl_json_get(j, "messages");
            rx_chat_message msg[16];
            size_t n = 0;
            cJSON_ArrayForEach(m, list)
            {
                const char *role = tl_json_str(m, "role"), *content = tl_json_str(m, "content");
                msg[n++] = (rx_chat_message){{role, strlen(role)}, {content, strlen(content)}};
            }
            const char *prompt = tl_json_str(j, "prompt");
            rx_ids ids = {0};
            rx_buf b;
            rx_buf_init(&b, &ctx->arena);
            if (n) {
                rx_chat_render(ctx, fam, msg, n, (rx_view){0}, true, &b);
                assert_string_equal(b.at, prompt);
                checked = checked + 1;
            }
            if (!prompt || !tl_json_get(j, "prompt_ids"))
                continue;
            rx_tokenizer_encode(t, prompt, strlen(prompt), RX_TOK_ADD_SPECIAL | RX_TOK_PARSE_SPECIAL, &ctx->arena,
                                &ids);
            assert_true(ids_are(&ids, tl_json_get(j, "prompt_ids")));
        }
    }
    TL_END(ctx)
    rx_file_unmap(&f);
    tl_done(&th, ctx);
    assert_true(checked >= 1);
}

/* --- small tokenizers --- */

typedef struct word { const char *text; float score; int type; } word;

static void write_vocabulary(gw *w, const char *model, const word *v, uint64_t n)
{
    gw_kv_str(w, "tokenizer.ggml.model", model);
    gw_array(w, "tokenizer.ggml.tokens", RX_GGUF_STR, n);
    for (uint64_t i = 0; i < n; i++)
        gw_str(w, v[i].text);
    gw_array(w, "tokenizer.ggml.scores", RX_GGUF_F32, n);
    for (uint64_t i = 0; i < n; i++)
        gw_float(w, v[i].score);
    gw_array(w, "tokenizer.ggml.token_type", RX_GGUF_I32, n);
    for (uint64_t i = 0; i < n; i++)
        gw_uint(w, (uint64_t)v[i].type, 4);
}

#define SP "\xE2\x96\x81"
static const word spm_words[] = {
    {"<unk>", 0, 2},   {"<s>", 0, 3}, {"</s>", 0, 3},   {"<0x0A>", 0, 6}, {"<0xC3>", 0, 6},
    {"<0xA9>", 0, 6},  {SP, -9, 1},   {"a", -8, 1},     {"b", -8, 1},     {"c", -8, 1},
    {"ab", -1, 1},     {"bc", -2, 1}, {"abc", -7, 1},   {SP "a", -3, 1},  {"aa", -4, 1},
    {"<|end|>", 0, 3}, {"<b>", 0, 4}, {"<b><b>", 0, 4}, {"aaaa", -5, 1},  {"aaa", -4, 1},
};

static void show_ids(const rx_ids *ids, char *out, size_t n)
{
    size_t at = 0;
    out[0] = 0;
    for (uint32_t i = 0; i < ids->n && at + 16 < n; i++)
        at += (size_t)snprintf(out + at, n - at, i ? " %d" : "%d", ids->at[i]);
}

typedef struct tok_row { const char *text; uint32_t flags; const char *ids; } tok_row;

static void check_rows(relax_context *ctx, const rx_tokenizer *t, const tok_row *rows, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        rx_ids ids = {0};
        char got[512];
        rx_tokenizer_encode(t, rows[i].text, strlen(rows[i].text), rows[i].flags, &ctx->arena, &ids);
        show_ids(&ids, got, sizeof got);
        if (strcmp(got, rows[i].ids) != 0)
            fail_msg("'%s' flags %u: %s, wanted %s", rows[i].text, rows[i].flags, got, rows[i].ids);
    }
}

static void write_spm(gw *w, const char *name)
{
    gw_header(w, 3, 0, 6);
    gw_kv_str(w, "general.name", name);
    gw_kv_bool(w, "tokenizer.ggml.add_eos_token", 1);
    write_vocabulary(w, "llama", spm_words, RX_COUNT(spm_words));
}

static void test_spm(void **state)
{
    (void)state;
    enum { S = RX_TOK_ADD_SPECIAL, P = RX_TOK_PARSE_SPECIAL };
    static const tok_row rows[] = {
        {"", 0, ""},
        {"", S, "1 2"},
        {"a", 0, "13"},                          /* a space goes in front */
        {"abc", 0, "6 12"},                      /* ab (-1) first, then abc; then SP a is gone */
        {"a b", S, "1 13 6 8 2"},
        {"\n", 0, "6 3"},                        /* bytes */
        {"\xC3\xA9", 0, "6 4 5"},
        {"z", 0, "6 0"},                         /* no byte token: unknown */
        {"<b><b><b>", 0, "17 16"},               /* longest first */
        {"<b>a", 0, "16 13"},
        {"a<|end|>a", P, "13 15 13"},
        {"<|end|>", 0, "6 0 0 0 0 0 0 0"},       /* plain text */
        {"aaaaa", 0, "13 18"},
    };
    gw w = {0};
    tl_heap th;
    relax_context *ctx = tl_context(&th);
    write_spm(&w, "toy");
    TL_TRY(ctx)
    {
        const rx_tokenizer *t = rx_tokenizer_open(ctx, &ctx->arena, rx_gguf_open(ctx, &ctx->arena, w.at, w.n));
        check_rows(ctx, t, rows, RX_COUNT(rows));
        assert_int_equal(rx_tokenizer_size(t), RX_COUNT(spm_words));
        assert_int_equal(rx_tokenizer_bos(t), 1);
        assert_int_equal(rx_tokenizer_eos(t), 2);
        assert_int_equal(rx_tokenizer_unk(t), 0);
        assert_true(rx_tokenizer_adds_bos(t));
        assert_true(rx_tokenizer_is_end(t, 15) && rx_tokenizer_is_end(t, 2) && !rx_tokenizer_is_end(t, 7));
        assert_true(rx_tokenizer_is_control(t, 15) && !rx_tokenizer_is_control(t, 16) &&
                    !rx_tokenizer_is_control(t, -1));
        assert_int_equal(rx_tokenizer_find(t, "abc", 3), 12);
        assert_int_equal(rx_tokenizer_find(t, "abcd", 4), -1);
        assert_null(rx_tokenizer_text(t, 20).at);
        assert_true(rx_view_is(rx_tokenizer_text(t, 12), "abc"));
    }
    TL_END(ctx)
    tl_done(&th, ctx);
    free(w.at);
}

static void test_phi3_strip(void **state)
{
    (void)state;
    static const tok_row rows[] = {
        {"<|end|> \n a", RX_TOK_PARSE_SPECIAL, "15 13"},
        {"<s> a", RX_TOK_PARSE_SPECIAL, "1 6 13"},
    };
    gw w = {0};
    tl_heap th;
    relax_context *ctx = tl_context(&th);
    write_spm(&w, "Phi-3 mini");
    TL_TRY(ctx)
    {
        const rx_tokenizer *t = rx_tokenizer_open(ctx, &ctx->arena, rx_gguf_open(ctx, &ctx->arena, w.at, w.n));
        check_rows(ctx, t, rows, RX_COUNT(rows));
    }
    TL_END(ctx)
    tl_done(&th, ctx);
    free(w.at);
}

/* bytes a..z and 0..9, space (G-dot) and newline (C-dot) of the GPT-2 alphabet, some merges */
#define G "\xC4\xA0"
#define NL "\xC4\x8A"
static const word bpe_words[] = {
    {"a", 0, 1},        {"b", 0, 1},        {"c", 0, 1},  {G, 0, 1},     {NL, 0, 1},      {"1", 0, 1},
    {"2", 0, 1},        {"'", 0, 1},        {"s", 0, 1},  {"ab", 0, 1},  {"bc", 0, 1},    {"abc", 0, 1},
    {G "a", 0, 1},      {"12", 0, 1},       {"'s", 0, 1}, {NL NL, 0, 1}, {"<|x|>", 0, 3}, {"cab", 0, 1},
    {"\xC3\x83", 0, 1}, {"\xC2\xA9", 0, 1}, {G G, 0, 1},  {"122", 0, 1}, {"aa", 0, 1},
};
static const char *const bpe_merges[] = {"b c",     "a b",     "a bc",  G " a", "1 2", "' s",
                                         NL " " NL, "no such", G " " G, "12 2", "a a"};

static void write_bpe(gw *w, const char *pre)
{
    gw_header(w, 3, 0, 6);
    gw_kv_str(w, "tokenizer.ggml.pre", pre);
    write_vocabulary(w, "gpt2", bpe_words, RX_COUNT(bpe_words));
    gw_array(w, "tokenizer.ggml.merges", RX_GGUF_STR, RX_COUNT(bpe_merges));
    for (size_t i = 0; i < RX_COUNT(bpe_merges); i++)
        gw_str(w, bpe_merges[i]);
}

static void check_bpe(const char *pre, const tok_row *rows, size_t n)
{
    gw w = {0};
    tl_heap th;
    relax_context *ctx = tl_context(&th);
    write_bpe(&w, pre);
    TL_TRY(ctx)
    {
        const rx_tokenizer *t = rx_tokenizer_open(ctx, &ctx->arena, rx_gguf_open(ctx, &ctx->arena, w.at, w.n));
        check_rows(ctx, t, rows, n);
    }
    TL_END(ctx)
    tl_done(&th, ctx);
    free(w.at);
}

static void test_bpe(void **state)
{
    (void)state;
    enum { P = RX_TOK_PARSE_SPECIAL };
    static const tok_row gpt2[] = {
        {"", 0, ""}, {"abc", 0, "11"},           /* bc before ab by rank, then a bc */
        {"abab", 0, "9 9"}, {"a a", 0, "0 12"}, {"122", 0, "21"}, {"a's", 0, "0 14"}, {"  a", 0, "3 12"},
        {"\n\na", 0, "4 4 0"}, {"a  ", 0, "0 20"}, {"cab", 0, "2 9"}, {"\xC3\xA9", 0, "18 19"},
        {"a<|x|>b", P, "0 16 1"}, {"aaa", 0, "22 0"}, {"1a", 0, "5 0"},
    };
    static const tok_row llama3[] = {{"cab", 0, "17"}, {"\n\na", 0, "15 0"}, {"'S", 0, "7"}, {"122122", 0, "21 21"}};
    static const tok_row qwen2[] = {{"cab", 0, "2 9"}, {"122", 0, "5 6 6"}, {"  \n\n", 0, "20 15"}};
    static const tok_row smollm[] = {{"122", 0, "5 6 6"}, {"a 12", 0, "0 3 5 6"}, {"abc a", 0, "11 12"}};
    check_bpe("gpt-2", gpt2, RX_COUNT(gpt2));
    check_bpe("llama-bpe", llama3, RX_COUNT(llama3));
    check_bpe("qwen2", qwen2, RX_COUNT(qwen2));
    check_bpe("smollm", smollm, RX_COUNT(smollm));
}

/* one word of many letters, and many blanks: must not be quadratic */
static void test_long(void **state)
{
    (void)state;
    enum { N = 1 << 20 };
    char *s = malloc(N);
    gw wb = {0}, ws = {0};
    tl_heap th;
    assert_non_null(s);
    relax_context *ctx = tl_context(&th);
    write_bpe(&wb, "qwen2");
    write_spm(&ws, "toy");
    int64_t start = rx_now_ns();
    for (int k = 0; k < 4; k++) {
        memset(s, k & 1 ? ' ' : 'a', N);
        TL_TRY(ctx)
        {
            rx_arena *a = rx_scratch(&ctx->heap);
            const rx_gguf *g = k & 2 ? rx_gguf_open(ctx, a, ws.at, ws.n) : rx_gguf_open(ctx, a, wb.at, wb.n);
            const rx_tokenizer *t = rx_tokenizer_open(ctx, a, g);
            rx_ids ids = {0};
            rx_tokenizer_encode(t, s, N, 0, a, &ids);
            assert_int_equal(ids.n, k == 0 || k == 1 ? N / 2 : k == 2 ? N / 3 + 1 : N + 1);
        }
        TL_END(ctx)
    }
    print_message("4 MiB in %d ms\n", (int)((rx_now_ns() - start) / 1000000));
    assert_true(rx_now_ns() - start < (int64_t)60 * 1000000000);
    tl_done(&th, ctx);
    free(s), free(wb.at), free(ws.at);
}

static void test_refusals(void **state)
{
    (void)state;
    static const struct { const char *pre; int err; } rows[] = {{"nobody", RXE_UNSUPPORTED}};
    gw w = {0}, e = {0}, m = {0};
    tl_heap th;
    relax_context *ctx = tl_context(&th);
    write_bpe(&w, rows[0].pre);
    TL_TRY(ctx) rx_tokenizer_open(ctx, &ctx->arena, rx_gguf_open(ctx, &ctx->arena, w.at, w.n));
    TL_END_FAILS(ctx, rows[0].err)
    gw_header(&e, 3, 0, 0);
    TL_TRY(ctx) rx_tokenizer_open(ctx, &ctx->arena, rx_gguf_open(ctx, &ctx->arena, e.at, e.n));
    TL_END_FAILS(ctx, RXE_UNSUPPORTED)
    gw_header(&m, 3, 0, 4);                      /* fewer scores than tokens */
    gw_kv_str(&m, "tokenizer.ggml.model", "llama");
    gw_array(&m, "tokenizer.ggml.tokens", RX_GGUF_STR, 2);
    gw_str(&m, "a"), gw_str(&m, "b");
    gw_array(&m, "tokenizer.ggml.scores", RX_GGUF_F32, 1);
    gw_float(&m, 0);
    gw_kv_u32(&m, "tokenizer.ggml.bos_token_id", 7);
    TL_TRY(ctx) rx_tokenizer_open(ctx, &ctx->arena, rx_gguf_open(ctx, &ctx->arena, m.at, m.n));
    TL_END_FAILS(ctx, RXE_FILE_CORRUPT)
    static const char *const bad[] = {"a\x80", "\xC0\x80", "\xED\xA0\x80", "\xF4\x90\x80\x80", "\xE2\x96", "\xFF"};
    w.n = 0;
    write_bpe(&w, "qwen2");
    for (volatile size_t i = 0; i < RX_COUNT(bad); i++) {
        TL_TRY(ctx)
        {
            const rx_tokenizer *t = rx_tokenizer_open(ctx, &ctx->arena, rx_gguf_open(ctx, &ctx->arena, w.at, w.n));
            rx_ids ids = {0};
            rx_tokenizer_encode(t, bad[i], strlen(bad[i]), 0, &ctx->arena, &ids);
        }
        TL_END_FAILS(ctx, RXE_BAD_VALUE)
    }
    tl_done(&th, ctx);
    free(w.at), free(e.at), free(m.at);
}

/* every allocation fails once: opening and encoding either work or say so, and nothing leaks */
static void test_oom(void **state)
{
    (void)state;
    gw w = {0};
    tl_heap th;
    write_bpe(&w, "smollm");
    volatile bool done = false;
    for (int64_t n = 1; !done; n++) {
        relax_context *ctx = tl_context(&th);
        rx_frame f;
        tl_fail(&th, n, false);
        volatile bool ok = false;
        if (RX_ENTER(&ctx->heap, &f)) {
            const rx_tokenizer *t = rx_tokenizer_open(ctx, &ctx->arena, rx_gguf_open(ctx, &ctx->arena, w.at, w.n));
            rx_ids ids = {0};
            rx_tokenizer_encode(t, "abc a 12", 8, 0, &ctx->arena, &ids);
            ok = true;
            rx_leave(&ctx->heap, &f);
        }
        if (!ok)
            assert_int_equal(rx_diag_status(ctx), RELAX_E_NOMEM);
        done = ok;
        tl_fail(&th, 0, false);
        tl_done(&th, ctx);
        assert_true(n < 10000);
    }
    free(w.at);
}

/* --- back to text --- */

static void test_detok(void **state)
{
    (void)state;
    static const word v[] = {
        {"<unk>", 0, 2},  {"<s>", 0, 3},    {"</s>", 0, 3},   {"<0xF0>", 0, 6},      {"<0x9F>", 0, 6},
        {"<0x98>", 0, 6}, {"<0x80>", 0, 6}, {SP "hi", 0, 1},  {"a" SP SP "b", 0, 1}, {"<u> " SP, 0, 4},
        {"x", 0, 5},      {"<0xC3>", 0, 6}, {"<0xE2>", 0, 6},
    };
    static const struct { const char *ids, *text, *control; } rows[] = {
        {"1 7", "hi", "hi"},                     /* the space that encoding adds is taken away */
        {"7 7", "hi hi", "hi hi"},
        {"8", "a  b", "a  b"},
        {"9", "<u> " SP, "<u> " SP},             /* user-defined tokens are literal */
        {"3 4 5 6", "\xF0\x9F\x98\x80", "\xF0\x9F\x98\x80"},
        {"3 4 7", "\xEF\xBF\xBD" "hi", "\xEF\xBF\xBD" "hi"},
        {"3 4", "\xEF\xBF\xBD", "\xEF\xBF\xBD"}, /* flushed */
        {"6 11 8", "\xEF\xBF\xBD\xEF\xBF\xBD" "a  b", "\xEF\xBF\xBD\xEF\xBF\xBD" "a  b"},
        {"12 11 12", "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD", "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD"},
        {"7 2 8 0 10", "hia  b", "hi</s>a  b<unk>"},
    };
    gw w = {0};
    tl_heap th;
    relax_context *ctx = tl_context(&th);
    gw_header(&w, 3, 0, 4);
    write_vocabulary(&w, "llama", v, RX_COUNT(v));
    TL_TRY(ctx)
    {
        const rx_tokenizer *t = rx_tokenizer_open(ctx, &ctx->arena, rx_gguf_open(ctx, &ctx->arena, w.at, w.n));
        for (size_t i = 0; i < RX_COUNT(rows); i++) {
            int32_t ids[16];
            size_t n = 0;
            for (const char *p = rows[i].ids; *p; p += strspn(p, " ")) {
                ids[n++] = (int32_t)strtol(p, NULL, 10);
                p += strcspn(p, " ");
            }
            for (int control = 0; control < 2; control++) {
                rx_buf b;
                rx_buf_init(&b, &ctx->arena);
                rx_puts(&b, "");
                rx_tokenizer_decode(t, ids, n, control, &b);
                assert_string_equal(b.at, control ? rows[i].control : rows[i].text);
                assert_int_equal(rx_utf8_valid(b.at, b.n), b.n);
            }
        }
        /* streaming: nothing comes out before the code point is whole; no space is lost in the middle of a text */
        rx_detok d;
        rx_buf b;
        rx_buf_init(&b, &ctx->arena);
        rx_detok_init(&d, t, false, false);
        static const size_t after[] = {0, 0, 0, 4, 7};
        static const int32_t ids[] = {3, 4, 5, 6, 7};
        for (size_t i = 0; i < RX_COUNT(ids); i++) {
            rx_detok_put(&d, ids[i], &b);
            assert_int_equal(b.n, after[i]);
        }
        assert_string_equal(b.at, "\xF0\x9F\x98\x80 hi");
    }
    TL_END(ctx)
    TL_TRY(ctx)
    {
        const rx_tokenizer *t = rx_tokenizer_open(ctx, &ctx->arena, rx_gguf_open(ctx, &ctx->arena, w.at, w.n));
        rx_buf b;
        rx_buf_init(&b, &ctx->arena);
        rx_tokenizer_decode(t, (const int32_t[]){13}, 1, false, &b);
    }
    TL_END_FAILS(ctx, RXE_BAD_VALUE)
    tl_done(&th, ctx);
    free(w.at);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gemma3),
        cmocka_unit_test(test_qwen2),
        cmocka_unit_test(test_chat_oracle),
        cmocka_unit_test(test_spm),
        cmocka_unit_test(test_phi3_strip),
        cmocka_unit_test(test_bpe),
        cmocka_unit_test(test_long),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_oom),
        cmocka_unit_test(test_detok),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
