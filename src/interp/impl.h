/* impl.h: what the files of the graph interpreter share. */
#ifndef RX_INTERP_IMPL_H
#define RX_INTERP_IMPL_H
#include "interp/interp.h"
#include "op/op.h"

/* --- match.c: values against annotations --- */
typedef struct rx_match {
    relax_context *ctx;
    const relax_function *f;
    rx_arena *a;
    rx_map *env;                       /* symbol -> int64_t *: read, and extended by what the annotations define */
    RX_VEC(struct rx_match_dim { rx_ex e; int64_t value; const char *what; }) wait;
} rx_match;
void rx_match_value(rx_match *m, rx_ty t, const rx_ival *v, const char *what);     /* kinds, dtypes, ranks; dims wait */
void rx_match_end(rx_match *m); /* binds, solves, compares; bounds of what was bound */
int64_t rx_env_int(relax_context *ctx, const relax_function *f, const rx_map *env,
                   rx_ex e); /* value of an index expression; unwinds */
bool rx_env_try(relax_context *ctx, const rx_map *env, rx_ex e, int64_t *v);
/* an empty (poisoned) value of annotation t: tensors and tuples of them */
rx_ival *rx_env_new(rx_interp *in, const relax_function *f, const rx_map *env, rx_ty t);

/* --- prim_run.c --- */
/* tensors: one for each buffer of p; syms: values of p's extra symbols */
void rx_prim_run(rx_interp *in, const rx_prim *p, rx_ival *const *tensors, uint32_t n, const int64_t *syms,
                 uint32_t nsyms);
/* an operator by its own tensor program: operators of plugins, block formats */
void rx_op_by_prim(rx_interp *in, const rx_op *op, rx_ival *const *x, uint32_t n, const rx_attrs *attrs, rx_ival *y);

/* --- op_run.c and the files of the families --- */
typedef struct rx_opx {                /* one operator call */
    rx_interp *in;
    relax_context *ctx;
    rx_arena *a;
    const rx_op *op;
    rx_ival *const *x; uint32_t n;     /* operands, NULL: absent; tuples as they are */
    const rx_attrs *attrs;             /* all constants */
    rx_ival *y;                        /* result to fill: NULL for operators whose shape depends on values */
} rx_opx;
RX_NORETURN void rx_opx_fail(const rx_opx *o, enum rx_err e, const char *fmt, ...) RX_PRINTF(3, 4);
static inline void *rx_el(const rx_ival *t, int64_t i)
{
    return (char *)t->data + (size_t)i * rx_dtype_bytes(t->dtype);
}
static inline double rx_getf(const rx_ival *t, int64_t i) { return rx_load_f64(t->dtype, rx_el(t, i)); }
static inline int64_t rx_geti(const rx_ival *t, int64_t i) { return rx_load_i64(t->dtype, rx_el(t, i)); }
static inline void rx_setf(rx_ival *t, int64_t i, double v) { rx_store_f64(t->dtype, rx_el(t, i), v); }
static inline void rx_seti(rx_ival *t, int64_t i, int64_t v) { rx_store_i64(t->dtype, rx_el(t, i), v); }
/* copies element j of s to element i of d, converting */
static inline void rx_put(rx_ival *d, int64_t i, const rx_ival *s, int64_t j)
{ rx_convert(d->dtype, rx_el(d, i), s->dtype, rx_el(s, j)); }
/* a value of a real function of dtype t rounded to the type it is computed in: f32 for all but f64 */
static inline double rx_rounded(relax_dtype t, double v) { return t == RELAX_F64 ? v : (double)(float)v; }
/* row-major indices: the offset of index ix; ix of offset i */
int64_t rx_offset(const int64_t *dims, int32_t ndim, const int64_t *ix);
void rx_index(const int64_t *dims, int32_t ndim, int64_t i, int64_t *ix);
/* offset in t of the element that is broadcast to index ix of a result of rank ndim */
int64_t rx_bcast(const rx_ival *t, const int64_t *ix, int32_t ndim);
int32_t rx_axis(int64_t axis, int32_t ndim);                        /* -1 … -> 0 … */
int64_t rx_iattr(const rx_opx *o, const char *key, int64_t absent);
/* operands from `first` on, a tuple taken apart */
rx_ival *const *rx_spread(const rx_opx *o, uint32_t first, uint32_t *n);
/* an index value for an axis: the modes of take */
int64_t rx_checked_index(const rx_opx *o, int64_t v, bool is_unsigned, int64_t extent, const char *mode);

void rx_x_unary(rx_opx *o);
void rx_x_clip(rx_opx *o);
void rx_x_astype(rx_opx *o); /* op_elem.c */
void rx_x_binary(rx_opx *o);  void rx_x_compare(rx_opx *o); void rx_x_where(rx_opx *o);
void rx_x_reduce(rx_opx *o);
void rx_x_argreduce(rx_opx *o);
void rx_x_cumsum(rx_opx *o); /* op_reduce.c */
void rx_x_full(rx_opx *o);
void rx_x_fill(rx_opx *o);
void rx_x_arange(rx_opx *o); /* op_create.c */
void rx_x_eye(rx_opx *o);     void rx_x_tri(rx_opx *o);     void rx_x_one_hot(rx_opx *o);
void rx_x_take(rx_opx *o);
void rx_x_slice(rx_opx *o);
void rx_x_dyn_slice(rx_opx *o); /* op_index.c */
void rx_x_gather_elements(rx_opx *o); void rx_x_gather_nd(rx_opx *o);
void rx_x_scatter_elements(rx_opx *o); void rx_x_scatter_nd(rx_opx *o); void rx_x_index_put(rx_opx *o);
void rx_x_copy(rx_opx *o);
void rx_x_permute(rx_opx *o);
void rx_x_broadcast(rx_opx *o); /* op_manip.c */
void rx_x_concat(rx_opx *o);  void rx_x_split(rx_opx *o);   void rx_x_stack(rx_opx *o);
void rx_x_tile(rx_opx *o);    void rx_x_repeat(rx_opx *o);  void rx_x_flip(rx_opx *o);
void rx_x_sort(rx_opx *o);
void rx_x_argsort(rx_opx *o);
void rx_x_topk(rx_opx *o); /* op_sort.c */
void rx_x_unique(rx_opx *o);  void rx_x_nonzero(rx_opx *o);
void rx_x_matmul(rx_opx *o);
void rx_x_softmax(rx_opx *o);
void rx_x_norm(rx_opx *o); /* op_nn.c */
void rx_x_multinomial(rx_opx *o);
void rx_x_rope(rx_opx *o);
void rx_x_attention(rx_opx *o);
void rx_x_attention_cache(rx_opx *o); /* op_llm.c */
void rx_x_kv_append(rx_opx *o);
void rx_x_gguf(rx_opx *o);
void rx_x_matmul_gguf(rx_opx *o);
void rx_x_take_gguf(rx_opx *o);
void rx_x_shape_of(rx_opx *o);
void rx_x_shape_to_tensor(rx_opx *o);
void rx_x_tensor_to_shape(rx_opx *o); /* op_create.c */
/* --- builtin.c: library functions under "rx." --- */
/* values: inputs, then outputs that are written. false: no such function */
bool rx_builtin_dps(rx_interp *in, relax_function *f, const char *name, rx_ival *const *at, uint32_t n,
                    const int64_t *syms, uint32_t nsyms);
rx_ival *rx_builtin_packed(rx_interp *in, relax_function *f, const char *name, rx_ival *const *at,
                           uint32_t n); /* NULL: none */
#endif
