/* import.h: readers of model files (GGUF, safetensors), decoders of their block formats, tokenizers, chat templates.
 *
 * All input bytes are untrusted. A reader checks every count, length and offset against the bytes that are there
 * before it allocates or reads; a bad file unwinds with RXE_FILE_MAGIC, RXE_FILE_CORRUPT, RXE_FILE_VERSION or
 * RXE_UNSUPPORTED and a message that says where. Memory is at most 16 times the file and 64 MiB.
 * Results live in the arena given and point into the file's bytes, which must stay mapped as long. */
#ifndef RX_IMPORT_H
#define RX_IMPORT_H
#include "core/core.h"

/* Bytes of a file or arena; not NUL-terminated. */
typedef struct rx_view { const char *at; size_t n; } rx_view;
static inline bool rx_view_is(rx_view v, const char *s)
{ size_t n = strlen(s); return v.n == n && (n == 0 || memcmp(v.at, s, n) == 0); }

/* --- table.c: index of names, ranges, heap: what the readers share --- */
/* Names in order of insertion and a hash index over them. `room` names must be announced at init. */
typedef struct rx_names { rx_view *at; uint32_t *slots; uint32_t n, room, nslots; } rx_names;
void rx_names_init(rx_names *t, rx_arena *a, uint32_t room);
int64_t rx_names_find(const rx_names *t, const char *p, size_t n);     /* index of the newest such name, -1 if none */
bool rx_names_add(rx_names *t, const char *p, size_t n); /* false: the name was there (the new one wins) */
/* A span of a file, and who owns it. Sorts by (begin, end) in place. */
typedef struct rx_span { uint64_t begin, end; uint32_t owner; } rx_span;
void rx_spans_sort(rx_span *s, size_t n);
/* Binary min-heap, ordered by (key, order). */
typedef struct rx_heap_item { uint64_t key, order, data; } rx_heap_item;
typedef struct rx_pq { rx_arena *a; RX_VEC(rx_heap_item) v; } rx_pq;
void rx_pq_push(rx_pq *q, rx_heap_item x);
bool rx_pq_pop(rx_pq *q, rx_heap_item *x);                             /* false: empty */

/* --- gguf.c --- */
typedef enum rx_gguf_kind {
    RX_GGUF_U8, RX_GGUF_I8, RX_GGUF_U16, RX_GGUF_I16, RX_GGUF_U32, RX_GGUF_I32, RX_GGUF_F32, RX_GGUF_BOOL, RX_GGUF_STR,
    RX_GGUF_ARRAY, RX_GGUF_U64, RX_GGUF_I64, RX_GGUF_F64, RX_GGUF_KINDS
} rx_gguf_kind;
/* A row of types.def; NULL name: no such type. */
typedef struct rx_ggml_type { const char *name; uint32_t block_values, block_bytes; bool decodable; } rx_ggml_type;
enum {
#define X(id, name, values, bytes, dec) RX_GGML_##name = id,
#include "import/types.def"
#undef X
    RX_GGML_TYPES
};
const rx_ggml_type *rx_ggml_type_info(uint32_t id);                    /* NULL if unknown */
int64_t rx_ggml_type_find(const char *name);                           /* id, -1 if unknown */

typedef struct rx_gguf_array { rx_gguf_kind kind; uint64_t n; const uint8_t *at; size_t bytes; } rx_gguf_array;
/* A metadata entry. Scalars: at their little-endian bytes. Strings: str. Arrays: array. */
typedef struct rx_gguf_kv { rx_gguf_kind kind; const uint8_t *at; rx_view str; rx_gguf_array array; } rx_gguf_kv;
typedef struct rx_gguf_tensor {
    const char *name;                  /* NUL-terminated */
    uint32_t type;                     /* row of types.def */
    uint32_t ndim;                     /* 0..4 */
    int64_t dims[4];                   /* row-major, outermost first; the last one is a multiple of the block */
    int64_t n_values;
    const uint8_t *data; size_t bytes; /* inside the file */
} rx_gguf_tensor;
typedef struct rx_gguf {
    relax_context *ctx; rx_arena *arena;
    const uint8_t *bytes; size_t n;
    uint32_t version, alignment;
    rx_names keys; rx_gguf_kv *kvs;    /* keys.n entries, file order */
    rx_names tensor_names; rx_gguf_tensor *tensors; uint32_t n_tensors;
} rx_gguf;
rx_gguf *rx_gguf_open(relax_context *ctx, rx_arena *a, const uint8_t *bytes, size_t n);
const rx_gguf_tensor *rx_gguf_find_tensor(const rx_gguf *g, const char *name);      /* NULL if absent */
/* --- gguf_kv.c: typed getters. Absent: the default (get) or RXE_NOT_FOUND (need). Another type, or a value that
 * does not fit: RXE_FILE_CORRUPT. An integer may be stored in any width; a float as f32 or f64. --- */
const rx_gguf_kv *rx_gguf_find(const rx_gguf *g, const char *key);                  /* NULL if absent */
int64_t rx_gguf_get_int(const rx_gguf *g, const char *key, int64_t def);
int64_t rx_gguf_need_int(const rx_gguf *g, const char *key);
double rx_gguf_get_float(const rx_gguf *g, const char *key, double def);
double rx_gguf_need_float(const rx_gguf *g, const char *key);
bool rx_gguf_get_bool(const rx_gguf *g, const char *key, bool def);
rx_view rx_gguf_get_str(const rx_gguf *g, const char *key);                         /* {NULL, 0} if absent */
rx_view rx_gguf_need_str(const rx_gguf *g, const char *key);
bool rx_gguf_get_array(const rx_gguf *g, const char *key, rx_gguf_array *out);      /* false if absent */
/* element i of an array; the array must hold integers (floats; strings) or the call unwinds; i is checked */
int64_t rx_gguf_array_int(const rx_gguf *g, const rx_gguf_array *arr, uint64_t i);
double rx_gguf_array_float(const rx_gguf *g, const rx_gguf_array *arr, uint64_t i);
/* all strings of an array as views, in arena a: 16 bytes an element */
rx_view *rx_gguf_array_strings(const rx_gguf *g, const rx_gguf_array *arr, rx_arena *a);

/* --- json.c: pull parser for small untrusted documents (header of safetensors); depth <= 64 --- */
typedef struct rx_json { relax_context *ctx; rx_arena *arena; const char *at; size_t n, i; bool fresh; } rx_json;
void rx_json_init(rx_json *j, relax_context *ctx, rx_arena *a, const char *at, size_t n);   /* checks UTF-8 */
void rx_json_enter(rx_json *j, char open);             /* consumes '{' or '[' */
bool rx_json_next(rx_json *j, char close);             /* at the next member or element; false: `close` consumed */
rx_view rx_json_key(rx_json *j);                       /* a string and the ':' after it */
rx_view rx_json_string(rx_json *j);                    /* unescaped; a view of the input when nothing was escaped */
uint64_t rx_json_uint(rx_json *j);                     /* 0 .. 2^64-1, plain digits */
void rx_json_skip(rx_json *j);                         /* any value */
void rx_json_end(rx_json *j);                          /* only white space may follow */

/* --- safetensors.c --- */
typedef struct rx_st_tensor {
    const char *name;                  /* NUL-terminated */
    const char *dtype_name;            /* as in the file: "F32" */
    relax_dtype dtype;                 /* RELAX_DTYPE_UNKNOWN for what relax.h has no name for (F4, F8_E8M0, C64 …) */
    uint32_t ndim; int64_t *dims; int64_t n_values;
    const uint8_t *data; size_t bytes;
} rx_st_tensor;
typedef struct rx_safetensors {
    rx_names names; rx_st_tensor *tensors; uint32_t n_tensors;             /* order of the header */
    uint32_t n_meta; rx_view *meta_keys, *meta_values;                     /* __metadata__ */
} rx_safetensors;
rx_safetensors *rx_safetensors_open(relax_context *ctx, rx_arena *a, const uint8_t *bytes, size_t n);
const rx_st_tensor *rx_safetensors_find(const rx_safetensors *s, const char *name); /* NULL if absent */

/* --- quant.c: plain reference decoders. Products and sums are rounded to f32 one by one (no FMA). --- */
/* n_values must be a multiple of the type's block. false: the type has no decoder, nothing is written. */
bool rx_quant_decode(uint32_t type, const void *src, int64_t n_values, float *dst);

/* --- tokenizer.c, tokenizer_spm.c, tokenizer_bpe.c, tokenizer_special.c --- */
typedef struct rx_tokenizer rx_tokenizer;
typedef RX_VEC(int32_t) rx_ids;
enum {
    RX_TOK_ADD_SPECIAL = 1,            /* begin- and end-of-text as the model's rule says */
    RX_TOK_PARSE_SPECIAL = 2           /* control tokens spelled in the text become tokens, else plain text */
};
/* From GGUF metadata; keeps views into the file. RXE_UNSUPPORTED for a model or pre-tokenizer it does not know. */
rx_tokenizer *rx_tokenizer_open(relax_context *ctx, rx_arena *a, const rx_gguf *g);
/* Appends to out (memory from arena a). text must be UTF-8 (RXE_BAD_VALUE), shorter than 1 GiB (RXE_LIMIT). */
void rx_tokenizer_encode(const rx_tokenizer *t, const char *text, size_t n, uint32_t flags, rx_arena *a, rx_ids *out);
int32_t rx_tokenizer_size(const rx_tokenizer *t);
int32_t rx_tokenizer_bos(const rx_tokenizer *t);       /* -1: none; likewise eos, unk */
int32_t rx_tokenizer_eos(const rx_tokenizer *t);
int32_t rx_tokenizer_unk(const rx_tokenizer *t);
bool rx_tokenizer_adds_bos(const rx_tokenizer *t);
bool rx_tokenizer_is_end(const rx_tokenizer *t, int32_t id); /* generation ends here: eos and end-of-turn tokens */
bool rx_tokenizer_is_control(const rx_tokenizer *t, int32_t id);
rx_view rx_tokenizer_text(const rx_tokenizer *t, int32_t id); /* as spelled in the vocabulary; {NULL, 0} out of range */
int32_t rx_tokenizer_find(const rx_tokenizer *t, const char *text, size_t n);      /* -1 if no such token */

/* --- detok.c: ids to text, safe for streaming: only whole code points come out, bytes that are not UTF-8
 * become U+FFFD --- */
typedef struct rx_detok {
    const rx_tokenizer *t;
    bool write_control;                /* spell control tokens out, else leave them out */
    bool strip_space;                  /* the next text token loses one leading space (set where the model adds one) */
    uint8_t held[4]; uint32_t n_held;  /* bytes of an unfinished code point */
} rx_detok;
/* at_start: the ids begin a text (not the continuation of one) */
void rx_detok_init(rx_detok *d, const rx_tokenizer *t, bool write_control, bool at_start);
void rx_detok_put(rx_detok *d, int32_t id, rx_buf *out);   /* RXE_BAD_VALUE: no such id */
void rx_detok_flush(rx_detok *d, rx_buf *out);             /* an unfinished code point becomes U+FFFD */
/* All ids at once; a begin-of-text token in front is left out. */
void rx_tokenizer_decode(const rx_tokenizer *t, const int32_t *ids, size_t n, bool write_control, rx_buf *out);

/* --- chat.c: the known families of chat templates --- */
typedef enum rx_chat_family {
    RX_CHAT_NONE,
#define X(id, name, marker, second) RX_CHAT_##id,
#include "import/chat.def"
#undef X
    RX_CHAT_FAMILIES
} rx_chat_family;
typedef struct rx_chat_message { rx_view role, content; } rx_chat_message;    /* role: system, user, assistant */
rx_chat_family rx_chat_find(const char *name, size_t n);                       /* by name; RX_CHAT_NONE if unknown */
const char *rx_chat_name(rx_chat_family f);
/* From a Jinja template's text. Unwinds with RXE_UNSUPPORTED when no family matches. */
rx_chat_family rx_chat_detect(relax_context *ctx, rx_view jinja);
/* Append the rendered messages; with `generate` also the opening of the assistant's answer. eos: text of the model's
 * end-of-text token (empty: "</s>"), which llama2 and zephyr write. The text holds the markers of control tokens and
 * no begin-of-text: encode it with RX_TOK_ADD_SPECIAL | RX_TOK_PARSE_SPECIAL. RXE_BAD_VALUE: a role that the family
 * does not have. */
void rx_chat_render(relax_context *ctx, rx_chat_family f, const rx_chat_message *m, size_t n, rx_view eos,
                    bool generate, rx_buf *out);

/* --- model.c: the module of a GGUF model: prefill, decode, embed. Unwinds with RXE_UNSUPPORTED, RXE_NO_WEIGHT,
 * RXE_SHAPE and what the getters give, naming key or tensor. context 0: the model's own, at most 4096. exact: caches of
 * f32 --- */
relax_module *rx_model_import(relax_context *ctx, const rx_gguf *g, bool exact, int64_t context);
#endif
