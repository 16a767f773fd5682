/* tokenizer.h: what the files of the tokenizer share. */
#ifndef RX_IMPORT_TOKENIZER_H
#define RX_IMPORT_TOKENIZER_H
#include "import/import.h"

/* token types as GGUF numbers them */
enum { TYPE_NORMAL = 1, TYPE_UNKNOWN, TYPE_CONTROL, TYPE_USER, TYPE_UNUSED, TYPE_BYTE };

typedef struct rx_bpe rx_bpe;

struct rx_tokenizer {
    relax_context *ctx;
    rx_arena *arena;
    rx_names vocab;                    /* id -> text, text -> id */
    uint8_t *types;                    /* TYPE_* by id */
    float *scores;                     /* by id; llama model only */
    rx_bpe *bpe;                       /* NULL: llama model (SentencePiece scores) */
    int32_t bos, eos, unk;             /* -1: none */
    int32_t ends[16]; uint32_t n_ends;
    bool add_bos, add_eos, add_space;
    bool strip_after;                  /* phi-3: control tokens swallow the white space after them */
    uint32_t longest;                  /* bytes of the longest token */
    int32_t byte_ids[256];             /* token of a single byte, -1 if none */
    uint32_t *special; uint32_t n_special;      /* ids that are split out of texts, sorted by their bytes */
    uint32_t special_first[257];       /* special[first[b] .. first[b + 1]) begin with byte b */
};

/* A piece of a text: a token (id >= 0) or a run of bytes. */
typedef struct rx_piece { rx_view text; int32_t id; } rx_piece;
typedef RX_VEC(rx_piece) rx_pieces;

/* tokenizer_special.c */
void rx_special_init(rx_tokenizer *t);
void rx_special_split(const rx_tokenizer *t, rx_view text, bool parse, rx_arena *scratch, rx_pieces *out);
/* tokenizer_spm.c; a state is made once for a text (in scratch) and takes its runs of bytes one after the other */
typedef struct rx_spm_state rx_spm_state;
void rx_spm_init(rx_tokenizer *t, const rx_gguf *g);
rx_spm_state *rx_spm_begin(const rx_tokenizer *t, rx_arena *scratch, rx_arena *a, rx_ids *out);
void rx_spm_encode(rx_spm_state *s, rx_view text, bool space);     /* space: one goes in front */
/* tokenizer_bpe.c; likewise */
typedef struct rx_bpe_state rx_bpe_state;
void rx_bpe_init(rx_tokenizer *t, const rx_gguf *g);
rx_bpe_state *rx_bpe_begin(const rx_tokenizer *t, rx_arena *scratch, rx_arena *a, rx_ids *out);
void rx_bpe_encode(rx_bpe_state *s, rx_view text);
/* The alphabet of byte-level BPE: the code point that stands for a byte; and back, -1: none. */
uint32_t rx_bpe_char(uint8_t byte);
int rx_bpe_byte(uint32_t cp);

#endif
