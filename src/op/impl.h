/* impl.h: what the files of op/ share.
 *
 * Two halves: deduce functions look at annotations only (rx_call, file deduce.c has the common steps); legalize
 * functions build the loop nest of one call whose shapes are known (rx_legal, common steps in nest.c). A family is a
 * pair of both. */
#ifndef RX_OP_IMPL_H
#define RX_OP_IMPL_H
#include "op/op.h"

#define RX_DECL_LEGAL_0(family)
#define RX_DECL_LEGAL_1(family) rx_stmt *rx_legal_##family(rx_legal *l);
#define FAM(family, legal) rx_ty rx_deduce_##family(rx_call *c); RX_DECL_LEGAL_##legal(family)
#include "op/families.def"
#undef FAM

/* ================= deduce.c ================= */
/* argument i as a tensor (a shape, a prim), or RXE_TYPE_KIND */
rx_ty rx_arg_tensor(rx_call *c, uint32_t i);
rx_ty rx_arg_shape(rx_call *c, uint32_t i);
rx_ty rx_arg_prim(rx_call *c, uint32_t i);              /* integer, value known */
/* arguments from `first` on as tensors; a single Tuple stands for its fields */
rx_ty *rx_arg_tensors(rx_call *c, uint32_t first, uint32_t *n);
/* dtype conditions; an unknown dtype passes. `what` names the operand in the message. RXE_DTYPE */
void rx_want_float(rx_call *c, relax_dtype t, const char *what);
void rx_want_int(rx_call *c, relax_dtype t, const char *what);
void rx_want_number(rx_call *c, relax_dtype t, const char *what);        /* not bool */
relax_dtype rx_same_dtype(rx_call *c, relax_dtype a, relax_dtype b);     /* equal or one unknown; unknown if one is */
/* axis in -ndim..ndim-1 -> 0..ndim-1 (RXE_AXIS). ndim < 0: given back as it is */
int32_t rx_norm_axis(rx_call *c, int64_t axis, int32_t ndim);
/* marks the axes of an INTS attribute; absent: all. RXE_AXIS when one repeats */
bool *rx_norm_axes(rx_call *c, const rx_attr *a, int32_t ndim);
/* a and b must be equal: proved, or an obligation; disproved: RXE_SHAPE, both printed */
void rx_same_dim(rx_call *c, rx_ex a, rx_ex b, const char *what);
void rx_require_cond(rx_call *c, rx_ex cond, const char *what);          /* any condition, likewise */
/* NumPy broadcasting of two extents; of shapes with known dims */
rx_ex rx_broadcast_dim(rx_call *c, rx_ex a, rx_ex b);
rx_ty rx_broadcast(rx_call *c, const rx_ty *t, uint32_t n, relax_dtype dt);
rx_ty rx_retype(rx_call *c, rx_ty t, relax_dtype dt);   /* the same shape, another dtype */
rx_ex rx_elements(relax_context *ctx, rx_ty t);         /* product of known dims */
const char *rx_ex_text(rx_call *c, rx_ex e);
relax_dtype rx_attr_dtype(const rx_attrs *a, const char *key, relax_dtype absent);
rx_ex rx_attr_expr(const rx_attrs *a, const char *key, rx_ex absent);
/* What begin:end:stride selects of an axis (NumPy): first index, number of elements. A stride whose sign is not proved
 * counts as positive. inbound: begin and end are taken to lie in 0..extent */
typedef struct rx_slice { rx_ex first, count; bool down; } rx_slice;
rx_slice rx_slice_axis(relax_context *ctx, const rx_facts *f, rx_ex extent, rx_ex begin, rx_ex end, rx_ex stride,
                       bool inbound);

/* ================= nest.c ================= */
#define RX_MAX_NDIM 16
/* one spatial loop per dim around body, outer first; vars gets the loop variables (all before body is built) */
rx_ex *rx_vars(rx_legal *l, uint32_t n);
rx_stmt *rx_nest(rx_legal *l, rx_ex *vars, rx_ex *dims, uint32_t n, rx_stmt *body);
rx_stmt *rx_map_out(rx_legal *l, rx_ex *vars,
                    rx_ex value); /* the nest over the result's dims that stores value at vars */
rx_stmt *rx_reduce_loop(rx_legal *l, rx_ex var, rx_ex extent, rx_stmt *init, rx_stmt *body);
/* indices of an operand that was broadcast to the loops `vars` over dims `out`: aligned at the right, 0 where its
 * extent is 1 */
rx_ex *rx_bcast_index(rx_legal *l, rx_ty t, rx_ex *vars, rx_ty out);
/* the operand's element there; a Prim argument gives its value */
rx_ex rx_operand(rx_legal *l, uint32_t i, rx_ex *vars, rx_ty out);
rx_ex rx_load_at(rx_legal *l, relax_buffer *b, rx_ex *index);
rx_stmt *rx_store_at(rx_legal *l, relax_buffer *b, rx_ex *index, rx_ex value);
/* a scalar accumulator: its buffer, its value, a store to it */
relax_buffer *rx_local(rx_legal *l, const char *name, relax_dtype dt);
relax_buffer *rx_local_n(rx_legal *l, const char *name, relax_dtype dt, int64_t n);
rx_ex rx_get0(rx_legal *l, relax_buffer *b);
rx_stmt *rx_set0(rx_legal *l, relax_buffer *b, rx_ex value);
rx_stmt *rx_seq2(rx_legal *l, rx_stmt *a, rx_stmt *b);
rx_stmt *rx_seq3(rx_legal *l, rx_stmt *a, rx_stmt *b, rx_stmt *c);
/* the dtype in which values of t are computed: f32 for the narrower floats, u8 for bool, else t */
relax_dtype rx_compute_dtype(relax_dtype t);
rx_ex rx_up(rx_legal *l, rx_ex e);                      /* e in its compute dtype */
rx_ex rx_down(rx_legal *l, relax_dtype t, rx_ex e);     /* back */
rx_ex rx_f(rx_legal *l, relax_dtype t, double v);       /* constant of any dtype */
rx_ex rx_zero(rx_legal *l, relax_dtype t);
/* Index values read from tensors: each is bound to a variable by a let and checked in front of the body that uses it.
 * modes: "check" negative values count from the end, others outside are RXE_INDEX; "clip", "wrap": an empty
 * axis is RXE_INDEX; "unchecked" */
typedef struct rx_prefix {
    rx_ex var[2 * RX_MAX_NDIM], value[2 * RX_MAX_NDIM];
    rx_stmt *check[2 * RX_MAX_NDIM];
    uint32_t n;
} rx_prefix;
rx_ex rx_index_var(rx_legal *l, rx_prefix *p, rx_ex value, rx_ex extent, const char *mode);
rx_stmt *rx_with_prefix(rx_legal *l, const rx_prefix *p, rx_stmt *body);
int64_t rx_const_dim(rx_ex e, int64_t absent);          /* value of a constant extent */

/* ================= gguf_decode.c: block formats ================= */
#define RX_QLANES 16                                    /* values of one step; all blocks are multiples of it */
typedef struct rx_qformat rx_qformat;
const rx_qformat *rx_qformat_find(const char *name);    /* q4_k, Q4_K, …; NULL if unknown */
/* values and bytes of a block; 1 value: a plain element type, decoded by rx_qplain */
void rx_qformat_size(const rx_qformat *q, int64_t *values, int64_t *bytes);
/* bytes of a row: w[lead…, off + i] is byte i */
typedef struct rx_qsrc { relax_buffer *w; rx_ex *lead; uint32_t nlead; rx_ex off; } rx_qsrc;
/* what to do with 16 values of a block from value j0 on: value is that of lane v, for use in the VECTOR loop over v */
typedef rx_stmt *(*rx_qsink)(rx_legal *l, void *arg, int64_t j0, rx_ex v, rx_ex value);
/* The statement that decodes one block, step by step. Each step is a VECTOR loop around the sink's statement. */
rx_stmt *rx_qblock(rx_legal *l, const rx_qformat *q, const rx_qsrc *src, rx_qsink sink, void *arg);
rx_ex rx_qplain(rx_legal *l, const rx_qformat *q, const rx_qsrc *src);  /* the f32 value of an element at src->off */
#endif
