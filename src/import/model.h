/* model.h: what the importers of GGUF models share (model.c, model_params.c). */
#ifndef RX_IMPORT_MODEL_H
#define RX_IMPORT_MODEL_H
#include "import/import.h"
#include "op/op.h"

enum {
    RX_AT_LAYER_NORM = 1, RX_AT_QK_NORM = 2, RX_AT_POST_NORM = 4, RX_AT_QKV_BIAS = 8, RX_AT_ALL_BIAS = 16,
    RX_AT_FUSED_QKV = 32, RX_AT_FUSED_UP = 64, RX_AT_NO_GATE = 128, RX_AT_EMBED_SCALE = 256, RX_AT_OWN_HEAD = 512,
    RX_AT_PARALLEL = 1024
};
typedef struct rx_family {
    const char *name;
    rx_opcode act;
    const char *rope_style;
    int64_t pattern;
    double local_base;
    uint32_t traits;
} rx_family;

/* The numbers of one model, checked. */
typedef struct rx_hparams {
    const rx_family *arch;
    int64_t layers, width, heads, kv_heads, key_dim, value_dim, ff, rot, vocab;
    int64_t context;                   /* bound of tokens and cache */
    int64_t trained;                   /* context of the training */
    int64_t window, pattern;           /* window 0: every layer sees everything */
    double epsilon, rope_base, local_base, freq_scale, local_scale, attn_factor;
    double scale;                      /* of queries times keys */
    double attn_cap, logit_cap;        /* 0: none */
    const char *rope_factors;          /* tensor of divisors of the angles, NULL: none */
    bool parallel, exact;
} rx_hparams;

/* --- model_params.c --- */
/* context 0: the model's own, at most 4096 */
rx_hparams rx_model_params(relax_context *ctx, const rx_gguf *g, bool exact, int64_t context);
bool rx_layer_is_local(const rx_hparams *h, int64_t layer);             /* sees a window only */
#endif
