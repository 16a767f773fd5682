/* oracle_tok.c: tokenizers of two models against tok_gemma3 and tok_qwen2 of the oracle.
 *
 * A string passes when its ids are the recorded ones, with markers parsed and with markers as plain text, and when the
 * ids give the text back (or what the file says they give). Where the recorder is known to differ from the model's own
 * file, either answer passes. */
#define TL_JSON
#include "testlib.h"

#include "import/import.h"
#include "oracle.h"

int oracle_tok(FILE *out, FILE *err, bool verbose);

static bool same_ids(const rx_ids *ids, const cJSON *want)
{
    uint32_t i = 0;
    const cJSON *x;
    if (!want || (int)ids->n != cJSON_GetArraySize(want))
        return false;
    cJSON_ArrayForEach(x, want)
        if (ids->at[i++] != (int32_t)x->valuedouble)
            return false;
    return true;
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
    return (rx_view){0};
}

static bool encodes(relax_context *ctx, const rx_tokenizer *t, rx_view text, uint32_t flags, const cJSON *row,
                    const char *key, const char *by_file)
{
    rx_ids ids = {0};
    const cJSON *want = tl_json_get(row, key) ? tl_json_get(row, key) : tl_json_get(row, "ids");
    rx_tokenizer_encode(t, text.at, text.n, RX_TOK_ADD_SPECIAL | flags, rx_scratch(&ctx->heap), &ids);
    return same_ids(&ids, want) || same_ids(&ids, tl_json_get(row, by_file));
}

static bool decodes(relax_context *ctx, const rx_tokenizer *t, rx_view text, const cJSON *row)
{
    rx_ids ids = {0};
    rx_buf b;
    const cJSON *x;
    const char *other = tl_json_str(row, "detok");
    rx_arena *a = rx_scratch(&ctx->heap);
    cJSON_ArrayForEach(x, tl_json_get(row, "ids"))
        rx_push(a, &ids, (int32_t)x->valuedouble);
    rx_buf_init(&b, a);
    rx_puts(&b, "");
    rx_tokenizer_decode(t, ids.at, ids.n, true, &b);
    rx_view want = other ? (rx_view){other, strlen(other)} : text;
    return b.n == want.n && memcmp(b.at, want.at, b.n) == 0;
}

/* a failure of the library fails the case; memory of a case goes with its frame */
static bool run_case(relax_context *ctx, const rx_tokenizer *t, const cJSON *row, const char *line)
{
    volatile bool ok = false;
    rx_frame f;
    if (RX_ENTER(&ctx->heap, &f)) {
        rx_view text = text_of(ctx, line);
        ok = encodes(ctx, t, text, RX_TOK_PARSE_SPECIAL, row, "ids", "ids_by_file")
            && encodes(ctx, t, text, 0, row, "ids_nospecial", "ids_nospecial_by_file") && decodes(ctx, t, text, row);
        rx_leave(&ctx->heap, &f);
    }
    rx_diag_clear(ctx);
    return ok;
}

/* NULL: the file is no model whose tokenizer can be opened */
static const rx_tokenizer *open_tokenizer(relax_context *ctx, const rx_file *f)
{
    const rx_tokenizer *volatile t = NULL;
    rx_frame fr;
    if (RX_ENTER(&ctx->heap, &fr)) {
        t = rx_tokenizer_open(ctx, &ctx->arena, rx_gguf_open(ctx, &ctx->arena, f->at, f->size));
        rx_leave(&ctx->heap, &fr);
    }
    return t;
}

static int run_file(const char *name, const char *model, FILE *out, FILE *err, bool verbose)
{
    char file[64], path[1024], model_path[1024];
    tl_lines l;
    rx_file f;
    tl_heap th;
    int passed = 0, total = 0;
    snprintf(file, sizeof file, "lm/%s.jsonl", name);
    if (!tl_oracle(file, path, sizeof path) || !tl_lines_open(&l, path))
        return 0;
    if (rx_file_map(oracle_model(model, model_path, sizeof model_path), &f) != 0) {
        fprintf(err, "%s: left out, %s is not there\n", name, model_path);
        return 0;
    }
    relax_context *ctx = tl_context(&th);
    const rx_tokenizer *t = open_tokenizer(ctx, &f);
    for (char *line; (line = tl_lines_next(&l)); total++) {
        cJSON *row = cJSON_Parse(line);
        bool ok = t && run_case(ctx, t, row, line);
        passed += ok;
        if (!ok && verbose)
            fprintf(err, "FAIL %s %s\n", name, line);
        cJSON_Delete(row);
    }
    tl_done(&th, ctx);
    rx_file_unmap(&f);
    oracle_line(out, name, passed, total, 0);
    return total - passed;
}

int oracle_tok(FILE *out, FILE *err, bool verbose)
{
    int bad = run_file("tok_gemma3", "gemma-3-270m.gguf", out, err, verbose);
    return bad + run_file("tok_qwen2", "qwen2.5-coder-0.5b-instruct.gguf", out, err, verbose);
}
