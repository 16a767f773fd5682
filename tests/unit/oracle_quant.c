/* oracle_quant.c: block formats against quant_blocks of the oracle.
 *
 * A block passes when the plain decoder and the tensor program of dequantize_gguf, run by the interpreter, both give
 * the recorded bits (zeros by value). Formats that the reader knows by size alone are not counted. */
#define TL_JSON
#include "testlib.h"

#include "import/import.h"
#include "interp/interp.h"
#include "op/op.h"
#include "oracle.h"

int oracle_quant(FILE *out, FILE *err, bool verbose);

enum { BLOCK_BYTES = 512, BLOCK_VALUES = 256 };

/* not counted: tensors of these formats can be listed, sized and copied, but no operator takes them */
static const struct { const char *type, *why; } no_decoder[] = {
    {"Q8_1", "holds activations at run time, never weights of a file"},
    {"Q8_K", "holds activations at run time, never weights of a file"},
    {"IQ1_S", "needs a code book of 2048 entries; not supported"},
    {"IQ1_M", "needs a code book of 2048 entries; not supported"},
    {"IQ2_XXS", "needs a code book of 256 entries; not supported"},
    {"IQ2_XS", "needs a code book of 512 entries; not supported"},
    {"IQ2_S", "needs a code book of 1024 entries; not supported"},
    {"IQ3_XXS", "needs a code book of 256 entries; not supported"},
    {"IQ3_S", "needs a code book of 512 entries; not supported"},
    {"TQ1_0", "ternary weights; no model that can be imported uses them"},
    {"TQ2_0", "ternary weights; no model that can be imported uses them"},
    {"NVFP4", "a format of one vendor's hardware; not supported"},
    {"Q1_0", "binary weights; no model that can be imported uses them"},
};

typedef struct block { const char *type; uint32_t id; uint8_t bytes[BLOCK_BYTES]; size_t n, values; const char *f32;
} block;

static bool read_block(const cJSON *j, block *b)
{
    const char *hex = tl_json_str(j, "bytes");
    b->type = tl_json_str(j, "type");
    b->f32 = tl_json_str(j, "f32");
    b->n = strlen(hex) / 2;
    b->values = strlen(b->f32) / 8;
    int64_t id = rx_ggml_type_find(b->type);
    if (id < 0 || b->n > BLOCK_BYTES || b->values > BLOCK_VALUES)
        return false;
    b->id = (uint32_t)id;
    for (size_t i = 0; i < b->n; i++) {
        char two[] = {hex[2 * i], hex[2 * i + 1], 0};
        b->bytes[i] = (uint8_t)strtoul(two, NULL, 16);
    }
    const rx_ggml_type *t = rx_ggml_type_info(b->id);
    return b->n / t->block_bytes * t->block_values == b->values;
}

static bool same_bits(const block *b, const float *got)
{
    for (size_t i = 0; i < b->values; i++) {
        char text[9] = {0};
        uint32_t have;
        memcpy(text, b->f32 + 8 * i, 8);
        memcpy(&have, &got[i], 4);
        uint32_t want = (uint32_t)strtoul(text, NULL, 16);
        if (have != want && ((have | want) & 0x7FFFFFFF))
            return false;
    }
    return true;
}

/* the tensor program of dequantize_gguf for a row of these bytes */
static const rx_prim *program(relax_module *m, const block *b)
{
    relax_context *ctx = m->ctx;
    const rx_op *op = rx_op_get(ctx, RX_OP_DEQUANTIZE_GGUF);
    rx_attr type = {.key = rx_str(ctx, "type"), .kind = RX_A_STR, .u.s = b->type};
    relax_function *f = rx_function_new(m, "main");
    rx_ex dims[] = {rx_int(ctx, 1), rx_int(ctx, (int64_t)b->n)};
    rx_ty in = rx_ty_tensor(ctx, dims, 2, RELAX_U8);
    rx_exvec checks = {0}, syms = {0};
    rx_call c = {.ctx = ctx, .f = f, .op = op, .types = &in, .n = 1, .checks = &checks, .a = &m->arena};
    c.attrs = rx_op_attrs(ctx, c.a, op, &type, 1);
    rx_ty out = rx_op_deduce(&c);
    return rx_op_legalize(m, f, op, &in, 1, out, &c.attrs, &syms)->prim;
}

static bool run_case(relax_context *ctx, block *b)
{
    float plain[BLOCK_VALUES], lowered[BLOCK_VALUES];
    volatile bool ok = false;
    rx_frame f;
    if (!rx_quant_decode(b->id, b->bytes, (int64_t)b->values, plain) || !same_bits(b, plain))
        return false;
    relax_module *m = rx_module_new(ctx);
    if (RX_ENTER(&ctx->heap, &f)) {
        void *memory[] = {b->bytes, lowered};
        rx_interp_prim(ctx, program(m, b), memory, NULL);
        ok = same_bits(b, lowered);
        rx_leave(&ctx->heap, &f);
    }
    rx_module_free(m);
    rx_diag_clear(ctx);
    return ok;
}

static const char *reason(const char *type)
{
    for (size_t i = 0; i < RX_COUNT(no_decoder); i++)
        if (!strcmp(no_decoder[i].type, type))
            return no_decoder[i].why;
    return NULL;
}

static void init_operators(relax_context *ctx)
{
    TL_TRY(ctx)
    {
        rx_ops_init(ctx);
    }
    TL_END(ctx)
}

int oracle_quant(FILE *out, FILE *err, bool verbose)
{
    char path[1024];
    tl_lines l;
    tl_heap th;
    int passed = 0, total = 0, skipped = 0;
    if (!tl_oracle("lm/quant_blocks.jsonl", path, sizeof path) || !tl_lines_open(&l, path))
        return 0;
    relax_context *ctx = tl_context(&th);
    init_operators(ctx);
    for (cJSON *j; (j = tl_json_next(&l)); cJSON_Delete(j)) {
        block b;
        bool ok = read_block(j, &b) && run_case(ctx, &b);
        const char *why = ok ? NULL : reason(b.type);
        total += why == NULL;
        passed += ok;
        skipped += why != NULL;
        if (!ok && (verbose || !why))
            fprintf(err, "%s %s %s: %s\n", why ? "NO DECODER" : "FAIL", b.type, tl_json_str(j, "case"), why ? why : "");
    }
    tl_done(&th, ctx);
    fprintf(err, "quant_blocks: %d blocks of formats that have no decoder are not counted\n", skipped);
    oracle_line(out, "quant_blocks", passed, total, 0);
    return total - passed;
}
