/* test_pkg.c: the executable's file format: what is written is read, what is damaged is refused, and every check of the
 * verifier is needed: each row of `broken` is a file that breaks one rule. */
#include "testlib.h"

#include "rtlib.h"

/* --- writing and reading --- */
static void round_trip(void **state)
{
    (void)state;
    tl_heap th;
    relax_context *ctx = tl_context(&th);
    TL_TRY(ctx)
    {
        rx_arena *a = rx_scratch(&ctx->heap);
        uint8_t *x, *y;
        size_t n, m;
        rx_pkg p;
        rl_write(ctx, a, &x, &n);
        rl_write(ctx, a, &y, &m);
        assert_int_equal(n, m);
        assert_memory_equal(x, y, n);                   /* deterministic */
        assert_int_equal(rx_pkg_open(ctx, x, n, &p), RELAX_OK);
        assert_int_equal(p.n_fns, 8);
        assert_int_equal(p.n_kernels, 4);
        assert_int_equal(p.n_weights, 2);
        assert_int_equal(rx_pkg_find_fn(&p, "choose", 6), 2);
        assert_int_equal(rx_pkg_find_fn(&p, "choos", 5), -1);
        assert_string_equal(rx_pkg_str(&p, p.prov[1].value), "cpu:x86-64-v2");
        int64_t bytes, syms[] = {100};
        assert_int_equal(rx_pkg_peak(ctx, &p, 0, syms, 1, &bytes), RELAX_OK);
        assert_int_equal(bytes, 4864);
        syms[0] = INT64_MAX / 2;
        assert_int_equal(rx_pkg_peak(ctx, &p, 0, syms, 1, &bytes), RELAX_E_LIMIT);
        assert_int_equal(rx_pkg_peak(ctx, &p, 1, NULL, 0, &bytes), RELAX_E_NOT_FOUND);
        rx_diag_clear(ctx);
    }
    TL_END(ctx)
    tl_done(&th, ctx);
}

static void text(void **state)
{
    (void)state;
    tl_heap th;
    relax_context *ctx = tl_context(&th);
    static const char *const parts[] = {
        "executable, format 1.0",
        "library: librelax 0.1",
        "fn mlp(x: Tensor((n, 4), f32)) -> Tensor((n, 4), f32) where n <= 4096; 2 weights",
        "peak memory: n * 48 + 64 bytes",
        "private fn add1(x: Tensor((n,), f32)) -> Tensor((n,), f32)",
        "norm(x: Tensor((n,), f32) (in place))",
        "MATCH  r0 Tensor((->n, 4), f32) 0 \"x\"",
        "KERNEL matmul (r0, r1, r3) (n, 4, 8) -1",
        "FRAME  s1",
        "IF     r0 -> ",
        "CALLR  r3 (r1) r2",
        "KERNEL sumsq",
        "sumsq: 2 buffers, 1 symbols, 2 phases (ps)",
        "const c0: Tensor((3,), f32), 12 bytes",
        "library rx.unique (values)",
        "weight layer.w1: Tensor((4, 8), f32)",
        "CHECK  s3 4107 \"argument 0 (x): dim 0 must be 2 * m\" s0 s2",
        "EVAL   m = s0 // 2; s2 = m * 2; s3 = s0 == s2",
    };
    TL_TRY(ctx)
    {
        rx_arena *a = rx_scratch(&ctx->heap);
        uint8_t *x;
        size_t n;
        rx_pkg p;
        rx_buf b;
        rl_write(ctx, a, &x, &n);
        assert_int_equal(rx_pkg_open(ctx, x, n, &p), RELAX_OK);
        rx_buf_init(&b, a);
        rx_pkg_print(&b, &p, true);
        for (size_t i = 0; i < RX_COUNT(parts); i++)
            if (!strstr(b.at, parts[i]))
                fail_msg("not in the text: %s\n%s", parts[i], b.at);
    }
    TL_END(ctx)
    tl_done(&th, ctx);
}

/* --- damaged files --- */
static uint8_t *copy(rx_arena *a, const uint8_t *x, size_t n)
{
    uint8_t *y = rx_arena_alloc(a, n + 1, RX_PKG_ALIGN);
    memcpy(y, x, n);
    return y;
}

static void header(void **state)
{
    (void)state;
    tl_heap th;
    relax_context *ctx = tl_context(&th);
    TL_TRY(ctx)
    {
        rx_arena *a = rx_scratch(&ctx->heap);
        uint8_t *x;
        size_t n;
        rx_pkg p;
        rl_write(ctx, a, &x, &n);
        for (size_t cut = 0; cut < n; cut += 7)         /* cut off anywhere */
            assert_int_equal(rx_pkg_open(ctx, x, cut, &p), RELAX_E_FORMAT);
        uint8_t *y = copy(a, x, n);
        y[0] = 'X';
        rx_pkg_seal(y, n);
        assert_int_equal(rx_pkg_open(ctx, y, n, &p), RELAX_E_FORMAT);
        y = copy(a, x, n);
        ((rx_pkg_header *)y)->major = 2;
        rx_pkg_seal(y, n);
        assert_int_equal(rx_pkg_open(ctx, y, n, &p), RELAX_E_INCOMPATIBLE);
        assert_non_null(strstr(rl_message(ctx), "2.0"));
        y = copy(a, x, n);
        ((rx_pkg_header *)y)->minor = 9;                /* a newer minor is read */
        rx_pkg_seal(y, n);
        assert_int_equal(rx_pkg_open(ctx, y, n, &p), RELAX_OK);
        y = copy(a, x, n);
        ((rx_pkg_header *)y)->endian = 0x04030201;
        rx_pkg_seal(y, n);
        assert_int_equal(rx_pkg_open(ctx, y, n, &p), RELAX_E_UNSUPPORTED);
        y = copy(a, x, n);
        y[n - 1] ^= 1;                                  /* a checksum */
        assert_int_equal(rx_pkg_open(ctx, y, n, &p), RELAX_E_FORMAT);
        assert_int_equal(tl_last_error(ctx), RXE_CHECKSUM);
        y = rx_arena_alloc(a, n + 64, RX_PKG_ALIGN);
        memcpy(y, x, n);                                /* bytes after the file */
        assert_int_equal(rx_pkg_open(ctx, y, n + 64, &p), RELAX_E_FORMAT);
        assert_int_equal(rx_pkg_open(ctx, x + 1, n - 1, &p), RELAX_E_INVALID);
        rx_diag_clear(ctx);
    }
    TL_END(ctx)
    tl_done(&th, ctx);
}

static rx_pkg_section *section(uint8_t *x, uint32_t kind)
{
    rx_pkg_header *h = (rx_pkg_header *)x;
    rx_pkg_section *t = (rx_pkg_section *)(h + 1);
    for (uint32_t i = 0; i < h->nsections; i++)
        if (t[i].kind == kind)
            return &t[i];
    fail_msg("no section %u", kind);
    return NULL;
}

/* changes of the table and the strings that only one check can find */
static void change(uint8_t *y, size_t n, int i)
{
    rx_pkg_section *prov = section(y, RX_SEC_PROVENANCE), *at = section(y, RX_SEC_STR_AT),
                   *str = section(y, RX_SEC_STR);
    uint32_t second = ((uint32_t *)(y + at->offset))[1];
    switch (i) {
    case 0: prov->offset += 8, prov->size -= 8; break;                  /* not aligned */
    case 1: section(y, RX_SEC_PHASES)->offset -= 64; break;             /* over another one */
    case 2: prov->kind = RX_SEC_WEIGHTS; break;                         /* twice */
    case 3: prov->size -= 4; break;                                     /* half a record */
    case 4: str->size++; break;                                         /* a byte of no string */
    case 5: y[str->offset + second - 1] = 'x'; break;                   /* no NUL at the end */
    case 6: y[str->offset] = 0; break;                                  /* NUL inside */
    case 7: y[str->offset] = 0xFF; break;                               /* not UTF-8 */
    }
    rx_pkg_seal(y, n);
    if (i == 8)
        prov->required = 0;                                             /* the table's own checksum */
    if (i == 9)
        ((rx_pkg_header *)y)->nsections = 200;
}

static void table(void **state)
{
    (void)state;
    tl_heap th;
    relax_context *ctx = tl_context(&th);
    TL_TRY(ctx)
    {
        rx_arena *a = rx_scratch(&ctx->heap);
        uint8_t *x, *y;
        size_t n;
        rx_pkg p;
        rl_write(ctx, a, &x, &n);
        y = copy(a, x, n);
        for (int i = 0; i < 10; i++) {
            memcpy(y, x, n);
            change(y, n, i);
            if (rx_pkg_open(ctx, y, n, &p) != RELAX_E_FORMAT)
                fail_msg("change %d is accepted", i);
            assert_int_equal(tl_last_error(ctx), i == 8 ? RXE_CHECKSUM : RXE_FILE_CORRUPT);
            rx_diag_clear(ctx);
        }
    }
    TL_END(ctx)
    tl_done(&th, ctx);
}

static void unknown_sections(void **state)
{
    (void)state;
    tl_heap th;
    relax_context *ctx = tl_context(&th);
    TL_TRY(ctx)
    {
        rx_arena *a = rx_scratch(&ctx->heap);
        uint8_t *x;
        size_t n;
        rx_pkg p;
        rl_write(ctx, a, &x, &n);
        section(x, RX_SEC_PROVENANCE)->kind = 999;
        rx_pkg_seal(x, n);
        assert_int_equal(rx_pkg_open(ctx, x, n, &p), RELAX_E_INCOMPATIBLE);
        section(x, 999)->required = 0;
        rx_pkg_seal(x, n);
        assert_int_equal(rx_pkg_open(ctx, x, n, &p), RELAX_OK);
        assert_int_equal(p.n_prov, 0);
        rx_diag_clear(ctx);
    }
    TL_END(ctx)
    tl_done(&th, ctx);
}

static void look_at(relax_context *ctx, const rx_pkg *p)
{
    rx_frame fr;
    if (RX_ENTER(&ctx->heap, &fr)) {
        rx_buf b;
        rx_buf_init(&b, rx_scratch(&ctx->heap));
        rx_pkg_print(&b, p, true);
        assert_true(b.n > 100);
        rx_leave(&ctx->heap, &fr);
    }
}

static void flip(uint8_t *y, size_t n, int i)
{
    uint64_t seed = 7;
    for (int k = 0; k <= i % 3; k++) {
        seed = rx_mix(seed + (uint64_t)i, (uint64_t)k);
        size_t at = (size_t)(seed >> 8) % n;
        y[at] = i % 2 ? (uint8_t)seed : (uint8_t)(y[at] ^ 1u << seed % 8);
    }
}

/* 10,000 files with bytes changed and checksums made right again: refused or harmless to look at, and quick */
static void random_flips(void **state)
{
    (void)state;
    tl_heap th;
    relax_context *ctx = tl_context(&th);
    volatile int accepted = 0;
    TL_TRY(ctx)
    {
        rx_arena *a = rx_scratch(&ctx->heap);
        uint8_t *x, *y;
        size_t n;
        rl_write(ctx, a, &x, &n);
        y = copy(a, x, n);
        for (int i = 0; i < 10000; i++) {
            rx_pkg p;
            memcpy(y, x, n);
            flip(y, n, i);
            rx_pkg_seal(y, n);
            if (rx_pkg_open(ctx, y, n, &p) == RELAX_OK) {
                accepted = accepted + 1;
                look_at(ctx, &p);
            }
            rx_diag_clear(ctx);
        }
    }
    TL_END(ctx)
    assert_in_range(accepted, 100, 9000);
    tl_done(&th, ctx);
}

/* --- the verifier: one broken rule a row. Functions have 2 parameters (objects), 6 more registers, slots 0 (dim of r0,
 * bound), 1..7. r2 holds a tensor (8,), r3 an integer, r4 a tuple (r2, r3), r5 a function, slot 1 is written, FRAME was
 * executed. --- */
typedef void (*body)(rx_pkgw *w);
#define ROW(name, code)                 \
    static void name(rx_pkgw *w) { code; }
static int32_t lib_dps(rx_pkgw *w) { return rx_pkgw_lib(w, "rx.sort", RX_LIB_DPS); }
static int32_t lib_packed(rx_pkgw *w) { return rx_pkgw_lib(w, "rx.unique", RX_LIB_PACKED); }
#define T8 TENSOR(RELAX_F32, EQ(I(8)))
ROW(good, OP(RX_BC_RET, 4))
ROW(no_ret, OP(RX_BC_MOVE, 6, 2))
ROW(undefined_register, OP(RX_BC_RET, 6))
ROW(register_range, OP(RX_BC_RET, 8))
ROW(register_negative, OP(RX_BC_RET, -1))
ROW(dest_range, OP(RX_BC_MOVE, 8, 2); OP(RX_BC_RET, 2))
ROW(killed, OP(RX_BC_KILL, 2); OP(RX_BC_RET, 2))
ROW(kernel_range, OP(RX_BC_KERNEL, 4, LIST(2, 2), LIST(I(8)), I(1)); OP(RX_BC_RET, 2))
ROW(kernel_negative, OP(RX_BC_KERNEL, -1, LIST(2, 2), LIST(I(8)), I(1)); OP(RX_BC_RET, 2))
ROW(kernel_buffers, OP(RX_BC_KERNEL, 0, LIST(2), LIST(I(8)), I(1)); OP(RX_BC_RET, 2))
ROW(kernel_symbols, OP(RX_BC_KERNEL, 0, LIST(2, 2), NOLIST, I(1)); OP(RX_BC_RET, 2))
ROW(kernel_not_tensor, OP(RX_BC_KERNEL, 0, LIST(2, 3), LIST(I(8)), I(1)); OP(RX_BC_RET, 2))
ROW(kernel_unmatched, OP(RX_BC_KERNEL, 0, LIST(2, 1), LIST(I(8)), I(1)); OP(RX_BC_RET, 2))
ROW(kernel_slot, OP(RX_BC_KERNEL, 0, LIST(2, 2), LIST(5), I(1)); OP(RX_BC_RET, 2))
ROW(kernel_const, OP(RX_BC_KERNEL, 0, LIST(2, 2), LIST(-1000), I(1)); OP(RX_BC_RET, 2))
ROW(kernel_work, OP(RX_BC_KERNEL, 0, LIST(2, 2), LIST(I(8)), 5); OP(RX_BC_RET, 2))
ROW(list_negative, OP(RX_BC_TUPLE, 6, -1, (int32_t *)NULL); OP(RX_BC_RET, 2))
ROW(slot_undefined, OP(RX_BC_FRAME, 1); OP(RX_BC_RET, 2))
ROW(slot_range, OP(RX_BC_PRIM, 6, RELAX_ANY_INT, 8); OP(RX_BC_RET, 2))
ROW(frame_twice, OP(RX_BC_FRAME, I(64)); OP(RX_BC_RET, 2))
ROW(alloc_type, OP(RX_BC_ALLOC, 6, 1000); OP(RX_BC_RET, 2))
ROW(alloc_pattern, OP(RX_BC_ALLOC, 6, TENSOR(RELAX_F32, ANYDIM)); OP(RX_BC_RET, 2))
ROW(alloc_bind, OP(RX_BC_ALLOC, 6, TENSOR(RELAX_F32, BIND(5))); OP(RX_BC_RET, 2))
ROW(alloc_slot, OP(RX_BC_ALLOC, 6, TENSOR(RELAX_F32, EQ(5))); OP(RX_BC_RET, 2))
ROW(alloc_rank, OP(RX_BC_ALLOC, 6, rx_pkgw_type_tensor(w, RELAX_F32, -1, NULL)); OP(RX_BC_RET, 2))
ROW(alloc_dtype, OP(RX_BC_ALLOC, 6, TENSOR(RELAX_DTYPE_UNKNOWN, EQ(I(8)))); OP(RX_BC_RET, 2))
ROW(alloc_kind, OP(RX_BC_ALLOC, 6, rx_pkgw_type_object(w)); OP(RX_BC_RET, 2))
ROW(alloc_prim, OP(RX_BC_ALLOC, 6, rx_pkgw_type_prim(w, RELAX_F32, NULL)); OP(RX_BC_RET, 2))
ROW(out_range, OP(RX_BC_OUT, 6, 1, T8); OP(RX_BC_RET, 2))
ROW(out_negative, OP(RX_BC_OUT, 6, -1, T8); OP(RX_BC_RET, 2))
ROW(view_kind, OP(RX_BC_VIEW, 6, 3, T8); OP(RX_BC_RET, 2))
ROW(const_range, OP(RX_BC_CONST, 6, 1); OP(RX_BC_RET, 2))
ROW(get_not_tuple, OP(RX_BC_GET, 6, 2, 0); OP(RX_BC_RET, 2))
ROW(get_unmatched, OP(RX_BC_GET, 6, 1, 0); OP(RX_BC_RET, 2))
ROW(get_index, OP(RX_BC_GET, 6, 4, 2); OP(RX_BC_RET, 2))
ROW(get_negative, OP(RX_BC_GET, 6, 4, -1); OP(RX_BC_RET, 2))
ROW(get_open, OP(RX_BC_MATCH, 1, rx_pkgw_type_tuple(w, -1, NULL), 1, 0); OP(RX_BC_GET, 6, 1, 0); OP(RX_BC_RET, 2))
ROW(get_field_kind, OP(RX_BC_GET, 6, 4, 0); OP(RX_BC_VIEW, 7, 6, T8); OP(RX_BC_RET, 2))
ROW(prim_kind, OP(RX_BC_PRIM, 6, RELAX_ANY_TENSOR, I(0)); OP(RX_BC_RET, 2))
ROW(str_range, OP(RX_BC_STR, 6, 10000); OP(RX_BC_RET, 2))
ROW(func_range, OP(RX_BC_FUNC, 6, 2); OP(RX_BC_RET, 2))
ROW(shape_dims, OP(RX_BC_SHAPE, 6, LIST(-1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1));
    OP(RX_BC_RET, 2))
ROW(eval_range, OP(RX_BC_EVAL, rx_pkgw_shape_count(w), 1); OP(RX_BC_RET, 2))
ROW(eval_negative, OP(RX_BC_EVAL, -1, 1); OP(RX_BC_RET, 2))
ROW(eval_count, OP(RX_BC_EVAL, 0, -1); OP(RX_BC_RET, 2))
ROW(eval_reads, OP(RX_BC_EVAL, rx_pkgw_shape(w, RX_SH_ADD, 5, 0, 6, 0), 1); OP(RX_BC_RET, 2))
ROW(eval_third, OP(RX_BC_EVAL, rx_pkgw_shape(w, RX_SH_SELECT, 5, 0, 0, 6), 1); OP(RX_BC_RET, 2))
ROW(eval_twice, OP(RX_BC_EVAL, rx_pkgw_shape(w, RX_SH_ADD, 0, 0, 0, 0), 1); OP(RX_BC_RET, 2))
ROW(eval_writes, OP(RX_BC_EVAL, rx_pkgw_shape(w, RX_SH_ADD, 8, 0, 0, 0), 1); OP(RX_BC_RET, 2))
ROW(eval_dst_const, OP(RX_BC_EVAL, rx_pkgw_shape(w, RX_SH_ADD, -1, 0, 0, 0), 1); OP(RX_BC_RET, 2))
ROW(match_type, OP(RX_BC_MATCH, 1, 1000, 1, 0); OP(RX_BC_RET, 2))
ROW(match_bind_twice, OP(RX_BC_MATCH, 1, TENSOR(RELAX_F32, BIND(0)), 1, 0); OP(RX_BC_RET, 2))
ROW(match_bind_same, OP(RX_BC_MATCH, 1, TENSOR(RELAX_F32, BIND(5), BIND(5)), 1, 0); OP(RX_BC_RET, 2))
ROW(match_bind_range, OP(RX_BC_MATCH, 1, TENSOR(RELAX_F32, BIND(8)), 1, 0); OP(RX_BC_RET, 2))
ROW(match_eq_undefined, OP(RX_BC_MATCH, 1, TENSOR(RELAX_F32, EQ(5)), 1, 0); OP(RX_BC_RET, 2))
ROW(match_eq_later, OP(RX_BC_MATCH, 1, TENSOR(RELAX_F32, EQ(5), BIND(5)), 1, 0); OP(RX_BC_RET, 2))
ROW(match_nested, OP(RX_BC_MATCH, 1, rx_pkgw_type_tuple(w, LIST(T8, TENSOR(RELAX_F32, EQ(5)))), 1, 0); OP(RX_BC_RET, 2))
ROW(match_param, OP(RX_BC_MATCH, 1, T8, 2, 0); OP(RX_BC_RET, 2))
ROW(match_param_low, OP(RX_BC_MATCH, 1, T8, -2, 0); OP(RX_BC_RET, 2))
ROW(match_label, OP(RX_BC_MATCH, 1, T8, 1, -1); OP(RX_BC_RET, 2))
ROW(bound_range, OP(RX_BC_BOUND, 2); OP(RX_BC_RET, 2))
ROW(bound_undefined, OP(RX_BC_BOUND, 1); OP(RX_BC_RET, 2))
ROW(check_error, OP(RX_BC_CHECK, 0, 1, 0, 0, 0); OP(RX_BC_RET, 2))
ROW(check_value, OP(RX_BC_CHECK, 0, RXE_ARG_DIM, 0, 0, 5); OP(RX_BC_RET, 2))
ROW(lib_range, OP(RX_BC_LIB, 100, LIST(2, 2), NOLIST); OP(RX_BC_RET, 2))
ROW(lib_style, OP(RX_BC_LIB, lib_packed(w), LIST(2, 2), NOLIST); OP(RX_BC_RET, 2))
ROW(packed_style, OP(RX_BC_PACKED, lib_dps(w), LIST(2, 2), 6); OP(RX_BC_RET, 2))
ROW(packed_result, OP(RX_BC_PACKED, lib_packed(w), LIST(2), 6); OP(RX_BC_VIEW, 7, 6, T8); OP(RX_BC_RET, 2))
ROW(call_range, OP(RX_BC_CALL, 2, LIST(2, 2), 6); OP(RX_BC_RET, 2))
ROW(call_arity, OP(RX_BC_CALL, 0, LIST(2), 6); OP(RX_BC_RET, 2))
ROW(call_result, OP(RX_BC_CALL, 0, LIST(2, 2), 6); OP(RX_BC_VIEW, 7, 6, T8); OP(RX_BC_RET, 2))
ROW(callr_kind, OP(RX_BC_CALLR, 1, LIST(2, 2), 6); OP(RX_BC_RET, 2))
ROW(callr_tensor, OP(RX_BC_CALLR, 2, LIST(2, 2), 6); OP(RX_BC_RET, 2))
ROW(if_kind, int32_t l = rx_pkgw_label(w); OP(RX_BC_IF, 4, l); rx_pkgw_place(w, l); OP(RX_BC_RET, 2))
ROW(jump_back, int32_t l = rx_pkgw_label(w); rx_pkgw_place(w, l); OP(RX_BC_MOVE, 6, 2); OP(RX_BC_BRANCH, 0, l);
    OP(RX_BC_RET, 2))
ROW(jump_self, int32_t l = rx_pkgw_label(w); rx_pkgw_place(w, l); OP(RX_BC_JUMP, l); OP(RX_BC_RET, 2))
ROW(jump_end, int32_t l = rx_pkgw_label(w); OP(RX_BC_BRANCH, 0, l); OP(RX_BC_RET, 2); rx_pkgw_place(w, l))
ROW(unreachable, OP(RX_BC_RET, 2); OP(RX_BC_RET, 2))
/* joins: a register or slot of one path only; FRAME on one path only is in `late_frame` */
ROW(join_register, int32_t l = rx_pkgw_label(w); OP(RX_BC_BRANCH, 0, l); OP(RX_BC_MOVE, 6, 2); rx_pkgw_place(w, l);
    OP(RX_BC_RET, 6))
ROW(join_kind, int32_t l = rx_pkgw_label(w); OP(RX_BC_MOVE, 6, 2); OP(RX_BC_BRANCH, 0, l); OP(RX_BC_MOVE, 6, 3);
    rx_pkgw_place(w, l); OP(RX_BC_VIEW, 7, 6, T8); OP(RX_BC_RET, 2))
ROW(join_slot, int32_t l = rx_pkgw_label(w); OP(RX_BC_BRANCH, 0, l);
    OP(RX_BC_EVAL, rx_pkgw_shape(w, RX_SH_MOV, 5, 0, 0, 0), 1); rx_pkgw_place(w, l);
    OP(RX_BC_PRIM, 6, RELAX_ANY_INT, 5); OP(RX_BC_RET, 2))
ROW(join_slot_twice, int32_t l = rx_pkgw_label(w); OP(RX_BC_BRANCH, 0, l);
    OP(RX_BC_EVAL, rx_pkgw_shape(w, RX_SH_MOV, 5, 0, 0, 0), 1); rx_pkgw_place(w, l);
    OP(RX_BC_EVAL, rx_pkgw_shape(w, RX_SH_MOV, 5, 0, 0, 0), 1); OP(RX_BC_RET, 2))
ROW(join_arity, int32_t l = rx_pkgw_label(w); OP(RX_BC_MOVE, 6, 4); OP(RX_BC_BRANCH, 0, l); OP(RX_BC_TUPLE, 6, LIST(2));
    rx_pkgw_place(w, l); OP(RX_BC_GET, 7, 6, 1); OP(RX_BC_RET, 2))

typedef struct row { const char *name; body f; } row;
#define R(name) {#name, name}
static const row broken[] = {
    R(no_ret),
    R(undefined_register),
    R(register_range),
    R(register_negative),
    R(dest_range),
    R(killed),
    R(kernel_range),
    R(kernel_negative),
    R(kernel_buffers),
    R(kernel_symbols),
    R(kernel_not_tensor),
    R(kernel_unmatched),
    R(kernel_slot),
    R(kernel_const),
    R(kernel_work),
    R(list_negative),
    R(slot_undefined),
    R(slot_range),
    R(frame_twice),
    R(alloc_type),
    R(alloc_pattern),
    R(alloc_bind),
    R(alloc_slot),
    R(alloc_rank),
    R(alloc_dtype),
    R(alloc_kind),
    R(alloc_prim),
    R(out_range),
    R(out_negative),
    R(view_kind),
    R(const_range),
    R(get_not_tuple),
    R(get_unmatched),
    R(get_index),
    R(get_negative),
    R(get_open),
    R(get_field_kind),
    R(prim_kind),
    R(str_range),
    R(func_range),
    R(shape_dims),
    R(eval_range),
    R(eval_negative),
    R(eval_count),
    R(eval_reads),
    R(eval_third),
    R(eval_twice),
    R(eval_writes),
    R(eval_dst_const),
    R(match_type),
    R(match_bind_twice),
    R(match_bind_same),
    R(match_bind_range),
    R(match_eq_undefined),
    R(match_eq_later),
    R(match_nested),
    R(match_param),
    R(match_param_low),
    R(match_label),
    R(bound_range),
    R(bound_undefined),
    R(check_error),
    R(check_value),
    R(lib_range),
    R(lib_style),
    R(packed_style),
    R(packed_result),
    R(call_range),
    R(call_arity),
    R(call_result),
    R(callr_kind),
    R(callr_tensor),
    R(if_kind),
    R(jump_back),
    R(jump_self),
    R(jump_end),
    R(unreachable),
    R(join_register),
    R(join_kind),
    R(join_slot),
    R(join_slot_twice),
    R(join_arity),
};

static void write_body(relax_context *ctx, rx_arena *a, body f, uint8_t **x, size_t *n)
{
    rx_pkgw *w = rx_pkgw_new(ctx, a);
    static const float c[1] = {1};
    rl_tables(w);
    rx_pkgw_const(w, RELAX_F32, 1, (int64_t[]){1}, c, sizeof c);
    int32_t f0 = rx_pkgw_fn(w, "f", 0), f1 = rx_pkgw_fn(w, "g", 0);
    rx_pkgw_fn_begin(w, f0);
    rx_pkgw_param(w, "x", "Object", 0, -1);
    rx_pkgw_param(w, "y", "Object", 0, -1);
    for (int i = 0; i < 6; i++)
        rx_pkgw_reg(w);
    for (int i = 0; i < 8; i++)
        rx_pkgw_slot(w);
    rx_pkgw_sym(w, "n", 0, 0, 10, 1, 0, 0);
    rx_pkgw_sym(w, "m", 7, 0, 10, 1, -1, 0);
    OP(RX_BC_MATCH, 0, TENSOR(RELAX_F32, BIND(0)), 0, S("x"));
    OP(RX_BC_ALLOC, 2, T8);
    OP(RX_BC_PRIM, 3, RELAX_ANY_INT, 0);
    OP(RX_BC_TUPLE, 4, LIST(2, 3));
    OP(RX_BC_FUNC, 5, f1);
    OP(RX_BC_FRAME, I(64));
    f(w);
    rx_pkgw_fn_end(w, "Object", 1);
    rx_pkgw_fn_begin(w, f1);
    rx_pkgw_param(w, "x", "Object", 0, -1);
    OP(RX_BC_RET, 0);
    rx_pkgw_fn_end(w, "Object", 0);
    rx_pkgw_finish(w, x, n);
}

static void verifier(void **state)
{
    (void)state;
    tl_heap th;
    relax_context *ctx = tl_context(&th);
    TL_TRY(ctx)
    {
        rx_arena *a = rx_scratch(&ctx->heap);
        uint8_t *x;
        size_t n;
        rx_pkg p;
        write_body(ctx, a, good, &x, &n);
        assert_int_equal(rx_pkg_open(ctx, x, n, &p), RELAX_OK);
        for (size_t i = 0; i < RX_COUNT(broken); i++) {
            write_body(ctx, a, broken[i].f, &x, &n);
            if (rx_pkg_open(ctx, x, n, &p) != RELAX_E_FORMAT)
                fail_msg("the verifier accepts %s", broken[i].name);
            assert_int_equal(tl_last_error(ctx), RXE_FILE_CORRUPT);
            rx_diag_clear(ctx);
        }
    }
    TL_END(ctx)
    tl_done(&th, ctx);
}

/* --- one broken word a row: section, record, word of the record, value --- */
typedef struct patch { uint32_t section; size_t at; int32_t value; } patch;
#define FIELD(sec, type, record, field, value) {sec, (record) * sizeof(type) + offsetof(type, field), value}
static const patch patches[] = {
    FIELD(RX_SEC_TYPES, rx_pkg_type, 0, kind, 6),
    FIELD(RX_SEC_TYPES, rx_pkg_type, 0, kind, -1),
    FIELD(RX_SEC_TYPES, rx_pkg_type, 0, dtype, RELAX_DTYPE_COUNT),
    FIELD(RX_SEC_TYPES, rx_pkg_type, 0, dtype, -1),
    FIELD(RX_SEC_TYPES, rx_pkg_type, 0, ndim, 17),
    FIELD(RX_SEC_TYPES, rx_pkg_type, 0, ndim, -2),
    FIELD(RX_SEC_TYPES, rx_pkg_type, 0, first, -1),
    FIELD(RX_SEC_TYPES, rx_pkg_type, 0, first, 1 << 20),
    FIELD(RX_SEC_TYPES, rx_pkg_type, 0, kind, RX_PT_TUPLE),
    {RX_SEC_TYPE_WORDS, 0, 3},
    {RX_SEC_TYPE_WORDS, 0, -1},
    {RX_SEC_TYPE_WORDS, 4, -1},
    {RX_SEC_TYPE_WORDS, 12, 1 << 24},
    {RX_SEC_TYPE_WORDS, 12, -1000},
    FIELD(RX_SEC_FNS, rx_pkg_fn, 0, name, -1),
    FIELD(RX_SEC_FNS, rx_pkg_fn, 0, name, 1 << 20),
    FIELD(RX_SEC_FNS, rx_pkg_fn, 0, result, -1),
    FIELD(RX_SEC_FNS, rx_pkg_fn, 0, mem_text, -1),
    FIELD(RX_SEC_FNS, rx_pkg_fn, 0, param0, 1),
    FIELD(RX_SEC_FNS, rx_pkg_fn, 0, nparams, -1),
    FIELD(RX_SEC_FNS, rx_pkg_fn, 0, nparams, 100),
    FIELD(RX_SEC_FNS, rx_pkg_fn, 0, sym0, -1),
    FIELD(RX_SEC_FNS, rx_pkg_fn, 0, nsyms, 50),
    FIELD(RX_SEC_FNS, rx_pkg_fn, 0, nregs, 2),
    FIELD(RX_SEC_FNS, rx_pkg_fn, 0, nregs, 1 << 30),
    FIELD(RX_SEC_FNS, rx_pkg_fn, 0, nregs, -1),
    FIELD(RX_SEC_FNS, rx_pkg_fn, 0, nslots, -1),
    FIELD(RX_SEC_FNS, rx_pkg_fn, 0, nslots, 1 << 30),
    FIELD(RX_SEC_FNS, rx_pkg_fn, 0, nslots, 0),
    FIELD(RX_SEC_FNS, rx_pkg_fn, 0, code0, 1),
    FIELD(RX_SEC_FNS, rx_pkg_fn, 0, ncode, 1 << 20),
    FIELD(RX_SEC_FNS, rx_pkg_fn, 0, ncode, -1),
    FIELD(RX_SEC_FNS, rx_pkg_fn, 7, ncode, 0),
    FIELD(RX_SEC_FNS, rx_pkg_fn, 0, mem0, -1),
    FIELD(RX_SEC_FNS, rx_pkg_fn, 0, nmem, 1 << 20),
    FIELD(RX_SEC_FNS, rx_pkg_fn, 0, nmem, -1),
    FIELD(RX_SEC_FNS, rx_pkg_fn, 0, nmem, 1),
    FIELD(RX_SEC_FNS, rx_pkg_fn, 0, mem_ref, 999),
    FIELD(RX_SEC_FNS, rx_pkg_fn, 0, mem_ref, -999),
    FIELD(RX_SEC_FNS, rx_pkg_fn, 0, nouts, -1),
    FIELD(RX_SEC_FNS, rx_pkg_fn, 0, nouts, 1 << 30),
    FIELD(RX_SEC_PARAMS, rx_pkg_param, 0, name, -1),
    FIELD(RX_SEC_PARAMS, rx_pkg_param, 0, type, 1 << 20),
    FIELD(RX_SEC_PARAMS, rx_pkg_param, 0, weight, 2),
    FIELD(RX_SEC_PARAMS, rx_pkg_param, 0, weight, -2),
    FIELD(RX_SEC_SYMS, rx_pkg_sym, 0, slot, -1),
    FIELD(RX_SEC_SYMS, rx_pkg_sym, 0, slot, 100),
    {RX_SEC_SYMS, 4, 1},
    FIELD(RX_SEC_SYMS, rx_pkg_sym, 0, divisor, 0),
    FIELD(RX_SEC_SYMS, rx_pkg_sym, 0, name, -1),
    FIELD(RX_SEC_SYMS, rx_pkg_sym, 0, param, 3),
    FIELD(RX_SEC_SYMS, rx_pkg_sym, 0, param, -2),
    FIELD(RX_SEC_KERNELS, rx_pkg_kernel, 0, name, -1),
    FIELD(RX_SEC_KERNELS, rx_pkg_kernel, 0, origin, 1 << 20),
    FIELD(RX_SEC_KERNELS, rx_pkg_kernel, 0, nbufs, -1),
    FIELD(RX_SEC_KERNELS, rx_pkg_kernel, 0, nsyms, -1),
    FIELD(RX_SEC_KERNELS, rx_pkg_kernel, 0, phase0, 1),
    FIELD(RX_SEC_KERNELS, rx_pkg_kernel, 0, nphases, -1),
    FIELD(RX_SEC_KERNELS, rx_pkg_kernel, 3, nphases, 2),
    FIELD(RX_SEC_KERNELS, rx_pkg_kernel, 3, nphases, 0),
    FIELD(RX_SEC_LIBS, rx_pkg_lib, 0, kind, 2),
    FIELD(RX_SEC_LIBS, rx_pkg_lib, 0, name, -1),
    FIELD(RX_SEC_WEIGHTS, rx_pkg_weight, 0, name, -1),
    FIELD(RX_SEC_WEIGHTS, rx_pkg_weight, 0, type, 1 << 20),
    FIELD(RX_SEC_CONSTS, rx_pkg_const, 0, offset, 1),
    FIELD(RX_SEC_CONSTS, rx_pkg_const, 0, offset, 64),
    FIELD(RX_SEC_CONSTS, rx_pkg_const, 0, size, 16),
    FIELD(RX_SEC_CONSTS, rx_pkg_const, 0, size, 8),
    FIELD(RX_SEC_CONSTS, rx_pkg_const, 0, type, -1),
    FIELD(RX_SEC_CONSTS, rx_pkg_const, 0, type, 1000),
    FIELD(RX_SEC_CONSTS, rx_pkg_const, 0, type, 0),
    FIELD(RX_SEC_SHAPE, rx_pkg_shape, 0, op, RX_SH_COUNT),
    FIELD(RX_SEC_SHAPE, rx_pkg_shape, 0, op, -1),
    FIELD(RX_SEC_PROVENANCE, rx_pkg_pair, 0, key, -1),
    FIELD(RX_SEC_PROVENANCE, rx_pkg_pair, 0, value, 1 << 20),
    {RX_SEC_CODE, 0, 0},
    {RX_SEC_CODE, 0, RX_BC_COUNT},
    {RX_SEC_CODE, 0, -1},
    {RX_SEC_STR_AT, 0, 1},
    {RX_SEC_STR_AT, 4, 0},
    {RX_SEC_STR_AT, 4, 1 << 20},
    {RX_SEC_STR, 0, -1},
};

static void records(void **state)
{
    (void)state;
    tl_heap th;
    relax_context *ctx = tl_context(&th);
    TL_TRY(ctx)
    {
        rx_arena *a = rx_scratch(&ctx->heap);
        uint8_t *x, *y;
        size_t n;
        rx_pkg p;
        rl_write(ctx, a, &x, &n);
        y = copy(a, x, n);
        for (size_t i = 0; i < RX_COUNT(patches); i++) {
            memcpy(y, x, n);
            rx_pkg_section *s = section(y, patches[i].section);
            assert_true(patches[i].at + 4 <= s->size);
            memcpy(y + s->offset + patches[i].at, &patches[i].value, 4);
            rx_pkg_seal(y, n);
            if (rx_pkg_open(ctx, y, n, &p) != RELAX_E_FORMAT)
                fail_msg("patch %zu of section %u is accepted", i, patches[i].section);
            rx_diag_clear(ctx);
        }
        /* the table itself */
        for (int i = 0; i < 5; i++) {
            memcpy(y, x, n);
            rx_pkg_section *s = section(y, RX_SEC_FNS);
            const uint64_t bad[5] = {s->offset + 32, 0, n + 64, UINT64_MAX - 63, s->offset - 64};
            s->offset = bad[i];
            rx_pkg_seal(y, n);
            assert_int_equal(rx_pkg_open(ctx, y, n, &p), RELAX_E_FORMAT);
            memcpy(y, x, n);
            const uint64_t size[5] = {s->size - 1, UINT64_MAX, n, s->size + 1, UINT64_MAX - s->offset};
            s->size = size[i];
            rx_pkg_seal(y, n);
            assert_int_equal(rx_pkg_open(ctx, y, n, &p), RELAX_E_FORMAT);
        }
        memcpy(y, x, n);
        section(y, RX_SEC_SYMS)->kind = RX_SEC_PARAMS;  /* twice */
        rx_pkg_seal(y, n);
        assert_int_equal(rx_pkg_open(ctx, y, n, &p), RELAX_E_FORMAT);
        ((rx_pkg_header *)y)->nsections = 0x7FFFFFFF;
        assert_int_equal(rx_pkg_open(ctx, y, n, &p), RELAX_E_FORMAT);
        rx_diag_clear(ctx);
    }
    TL_END(ctx)
    tl_done(&th, ctx);
}

/* --- rules that one word cannot break alone: a file with some of everything, most of it unused, and pairs of words ---
 */
enum { RICH_PRIM, RICH_SHAPE, RICH_LONG, RICH_TUPLE, RICH_CONST };

static void write_rich(relax_context *ctx, rx_arena *a, uint8_t **x, size_t *n)
{
    rx_pkgw *w = rx_pkgw_new(ctx, a);
    static const float c[20] = {1};
    const relax_target t = {.name = "cpu:none", .arch = RX_ARCH_X86_64};
    rx_pkgw_dim dims[16];
    for (int i = 0; i < 16; i++)
        dims[i] = EQ(I(3));
    assert_int_equal(rx_pkgw_type_prim(w, RELAX_I64, &dims[0]), RICH_PRIM);
    assert_int_equal(rx_pkgw_type_shape(w, 1, dims), RICH_SHAPE);
    assert_int_equal(rx_pkgw_type_shape(w, 16, dims), RICH_LONG);
    assert_int_equal(rx_pkgw_type_tuple(w, LIST(RICH_PRIM, RICH_SHAPE)), RICH_TUPLE);
    rx_pkgw_const(w, RELAX_F32, 1, (int64_t[]){3}, c, 12);              /* its type is RICH_CONST */
    rx_pkgw_const(w, RELAX_F32, 1, (int64_t[]){20}, c, 80);
    rx_pkgw_kernel(w, "spare", "", 1, 1, (uint8_t[]){1}, 1);
    rx_pkgw_lib(w, "spare", RX_LIB_DPS);
    rx_pkgw_native(w, &t, c, 80);
    rx_pkgw_native(w, &t, c, 80);
    rx_pkgw_fn_begin(w, rx_pkgw_fn(w, "f", 0));
    rx_pkgw_param(w, "x", "Object", 0, -1);
    rx_pkgw_param(w, "unused", "Object", 0, -1);
    rx_pkgw_sym(w, "n", rx_pkgw_slot(w), 0, 10, 1, 0, 0);
    OP(RX_BC_RET, 0);
    rx_pkgw_fn_end(w, "Object", 0);
    rx_pkgw_finish(w, x, n);
}

#define WORD(sec, type, record, field, value) {sec, (record) * sizeof(type) + offsetof(type, field), value}
#define HIGH(sec, type, record, field, value) {sec, (record) * sizeof(type) + offsetof(type, field) + 4, value}
#define TYPE(i, field, value) WORD(RX_SEC_TYPES, rx_pkg_type, i, field, value)
#define CONST_(field, value) WORD(RX_SEC_CONSTS, rx_pkg_const, 0, field, value)
#define NATIVE(field, value) WORD(RX_SEC_NATIVES, rx_pkg_native, 0, field, value)
#define FN(field, value) WORD(RX_SEC_FNS, rx_pkg_fn, 0, field, value)
enum { TUPLE_WORDS = 2 * (1 + 1 + 16) };        /* first word of RICH_TUPLE */
static const patch pairs[][3] = {
    {TYPE(RICH_PRIM, ndim, 2)},
    {TYPE(RICH_SHAPE, ndim, -2)},
    {TYPE(RICH_SHAPE, ndim, 17)},
    {TYPE(RICH_TUPLE, ndim, -2)},
    {TYPE(RICH_TUPLE, first, -1)},
    {TYPE(RICH_TUPLE, first, TUPLE_WORDS + 6)},
    {{RX_SEC_TYPE_WORDS, TUPLE_WORDS * 4, -1}},
    {{RX_SEC_TYPE_WORDS, TUPLE_WORDS * 4, RICH_TUPLE}},
    {CONST_(offset, -64), HIGH(RX_SEC_CONSTS, rx_pkg_const, 0, offset, -1)},
    {CONST_(offset, 4)},
    {WORD(RX_SEC_CONSTS, rx_pkg_const, 1, offset, 128)},
    {CONST_(type, RICH_SHAPE), TYPE(RICH_SHAPE, dtype, RELAX_F32)},
    {CONST_(size, 0), TYPE(RICH_CONST, dtype, 0)},
    {CONST_(size, 4), TYPE(RICH_CONST, ndim, -1)},
    {{RX_SEC_TYPE_WORDS, (TUPLE_WORDS + 2) * 4, RX_DIM_ANY}},
    {{RX_SEC_TYPE_WORDS, (TUPLE_WORDS + 3) * 4, 0}},
    {NATIVE(offset, -64), HIGH(RX_SEC_NATIVES, rx_pkg_native, 0, offset, -1)},
    {NATIVE(size, -1), HIGH(RX_SEC_NATIVES, rx_pkg_native, 0, size, -1)},
    {NATIVE(offset, 4)},
    {NATIVE(offset, 192)},
    {NATIVE(size, 400)},
    {NATIVE(target, -1)},
    {NATIVE(nentries, 2)},
    {WORD(RX_SEC_KERNELS, rx_pkg_kernel, 0, nbufs, -1)},
    {WORD(RX_SEC_KERNELS, rx_pkg_kernel, 0, nsyms, -1)},
    {WORD(RX_SEC_LIBS, rx_pkg_lib, 0, kind, 2)},
    {FN(nregs, 6)},
    {FN(nslots, -1)},
    {FN(nslots, (1 << 20) + 1)},
    {FN(nparams, 1)},
    {FN(nsyms, 0)},
    {FN(nsyms, 0), FN(nslots, 0), FN(nparams, 3)},
};

static void combinations(void **state)
{
    (void)state;
    tl_heap th;
    relax_context *ctx = tl_context(&th);
    TL_TRY(ctx)
    {
        rx_arena *a = rx_scratch(&ctx->heap);
        uint8_t *x, *y;
        size_t n;
        rx_pkg p;
        write_rich(ctx, a, &x, &n);
        assert_int_equal(rx_pkg_open(ctx, x, n, &p), RELAX_OK);
        assert_int_equal(p.consts[0].type, RICH_CONST);
        y = copy(a, x, n);
        for (size_t i = 0; i < RX_COUNT(pairs); i++) {
            memcpy(y, x, n);
            for (int k = 0; k < 3 && pairs[i][k].section; k++) {
                rx_pkg_section *s = section(y, pairs[i][k].section);
                assert_true(pairs[i][k].at + 4 <= s->size);
                memcpy(y + s->offset + pairs[i][k].at, &pairs[i][k].value, 4);
            }
            rx_pkg_seal(y, n);
            if (rx_pkg_open(ctx, y, n, &p) != RELAX_E_FORMAT)
                fail_msg("row %zu is accepted", i);
            rx_diag_clear(ctx);
        }
    }
    TL_END(ctx)
    tl_done(&th, ctx);
}

/* --- jumps into an instruction, ARENA without FRAME, nests of types: what the writer cannot spell is patched --- */
static void late_frame(void **state)
{
    (void)state;
    tl_heap th;
    relax_context *ctx = tl_context(&th);
    TL_TRY(ctx)
    {
        rx_arena *a = rx_scratch(&ctx->heap);
        for (int kind = 0; kind < 4; kind++) {
            rx_pkgw *w = rx_pkgw_new(ctx, a);
            uint8_t *x;
            size_t n;
            rx_pkg p;
            int32_t f = rx_pkgw_fn(w, "f", 0);
            rx_pkgw_fn_begin(w, f);
            rx_pkgw_param(w, "x", "Object", 0, -1);
            int32_t r = rx_pkgw_reg(w), l = rx_pkgw_label(w);
            if (kind != 2)
                OP(RX_BC_BRANCH, I(1), l);
            if (kind != 1)
                OP(RX_BC_FRAME, I(64));
            rx_pkgw_place(w, l);
            OP(RX_BC_ARENA, r, T8, I(0));
            OP(RX_BC_RET, kind == 3 ? 0 : r);
            rx_pkgw_fn_end(w, "Object", 0);
            rx_pkgw_finish(w, &x, &n);
            if (kind == 3) {            /* BRANCH to the second word of ARENA */
                int32_t *code = (int32_t *)(x + section(x, RX_SEC_CODE)->offset);
                code[2]++;
                rx_pkg_seal(x, n);
            }
            assert_int_equal(rx_pkg_open(ctx, x, n, &p), kind == 2 ? RELAX_OK : RELAX_E_FORMAT);
            rx_diag_clear(ctx);
        }
    }
    TL_END(ctx)
    tl_done(&th, ctx);
}

static void bombs(void **state)
{
    (void)state;
    tl_heap th;
    relax_context *ctx = tl_context(&th);
    TL_TRY(ctx)
    {
        rx_arena *a = rx_scratch(&ctx->heap);
        uint8_t *x;
        size_t n;
        rx_pkg p;
        /* tuples of tuples: too deep; doubling: too large; many large ones: over the budget */
        for (int kind = 0; kind < 3; kind++) {
            rx_pkgw *w = rx_pkgw_new(ctx, a);
            int32_t t = rx_pkgw_type_object(w);
            for (int i = 0; i < (kind == 0 ? 17 : kind == 1 ? 10 : 14); i++) {
                int32_t four[4] = {t, t, t, t};
                t = rx_pkgw_type_tuple(w, kind == 0 ? 1 : kind == 1 ? 4 : 2, four);
            }
            rx_pkgw_fn_begin(w, rx_pkgw_fn(w, "f", 0));
            rx_pkgw_param(w, "x", "Object", 0, -1);
            for (int i = 0; i < (kind == 2 ? 30000 : 1); i++)
                OP(RX_BC_MATCH, 0, t, 0, S("x"));
            OP(RX_BC_RET, 0);
            rx_pkgw_fn_end(w, "Object", 0);
            rx_pkgw_finish(w, &x, &n);
            int64_t start = rx_now_ns();
            relax_status s = rx_pkg_open(ctx, x, n, &p);
            assert_int_equal(s, kind == 2 ? RELAX_E_LIMIT : RELAX_E_FORMAT);
            assert_true(rx_now_ns() - start < 20000000000);
            rx_diag_clear(ctx);
        }
        /* many jumps over many registers: over the budget, not over the memory */
        rx_pkgw *w = rx_pkgw_new(ctx, a);
        rx_pkgw_fn_begin(w, rx_pkgw_fn(w, "f", 0));
        rx_pkgw_param(w, "x", "Object", 0, -1);
        for (int i = 0; i < 60000; i++)
            OP(RX_BC_MOVE, rx_pkgw_reg(w), 0);
        int32_t labels[20000];
        for (int i = 0; i < 20000; i++)
            OP(RX_BC_BRANCH, I(1), labels[i] = rx_pkgw_label(w));
        for (int i = 20000; i-- > 0;) {
            rx_pkgw_place(w, labels[i]);
            OP(RX_BC_KILL, 1 + i);
        }
        OP(RX_BC_RET, 0);
        rx_pkgw_fn_end(w, "Object", 0);
        rx_pkgw_finish(w, &x, &n);
        size_t before = ctx->heap.peak;
        assert_int_equal(rx_pkg_open(ctx, x, n, &p), RELAX_E_LIMIT);
        assert_true(ctx->heap.peak - before < 16 * n + (64 << 20));
        rx_diag_clear(ctx);
    }
    TL_END(ctx)
    tl_done(&th, ctx);
}

static void out_of_memory(void **state)
{
    (void)state;
    tl_heap th;
    relax_context *ctx = tl_context(&th);
    TL_TRY(ctx)
    {
        rx_arena *a = rx_scratch(&ctx->heap);
        uint8_t *x;
        size_t n;
        rx_pkg p;
        rl_write(ctx, a, &x, &n);
        relax_status s = RELAX_E_NOMEM;
        int tries = 0;
        for (int i = 1; s == RELAX_E_NOMEM; i++) {
            tl_fail(&th, i, false);
            s = rx_pkg_open(ctx, x, n, &p);
            tl_fail(&th, 0, false);
            rx_diag_clear(ctx);
            tries++;
        }
        assert_int_equal(s, RELAX_OK);
        assert_true(tries > 10);
    }
    TL_END(ctx)
    tl_done(&th, ctx);
}

static void shape_program(void **state)
{
    (void)state;
    static const struct { rx_sh op; int64_t a, b, c, want; int32_t err;
    } rows[] = {
        {RX_SH_MOV, 5, 0, 0, 5, 0},
        {RX_SH_ADD, 5, -7, 0, -2, 0},
        {RX_SH_ADD, INT64_MAX, 1, 0, 0, RXE_LIMIT},
        {RX_SH_SUB, INT64_MIN, 1, 0, 0, RXE_LIMIT},
        {RX_SH_MUL, 1ll << 32, 1ll << 31, 0, 0, RXE_LIMIT},
        {RX_SH_MUL, -3, 4, 0, -12, 0},
        {RX_SH_FLOORDIV, -7, 2, 0, -4, 0},
        {RX_SH_FLOORDIV, 7, 0, 0, 0, RXE_DIV_ZERO},
        {RX_SH_FLOORDIV, INT64_MIN, -1, 0, 0, RXE_LIMIT},
        {RX_SH_FLOORMOD, -7, 2, 0, 1, 0},
        {RX_SH_FLOORMOD, 7, -2, 0, -1, 0},
        {RX_SH_FLOORMOD, 7, 0, 0, 0, RXE_DIV_ZERO},
        {RX_SH_MIN, 3, -3, 0, -3, 0},
        {RX_SH_MAX, 3, -3, 0, 3, 0},
        {RX_SH_EQ, 3, 3, 0, 1, 0},
        {RX_SH_NE, 3, 3, 0, 0, 0},
        {RX_SH_LT, 2, 3, 0, 1, 0},
        {RX_SH_LE, 3, 3, 0, 1, 0},
        {RX_SH_AND, 2, 0, 0, 0, 0},
        {RX_SH_AND, 2, 9, 0, 1, 0},
        {RX_SH_OR, 0, 9, 0, 1, 0},
        {RX_SH_NOT, 0, 0, 0, 1, 0},
        {RX_SH_SELECT, 1, 7, 8, 7, 0},
        {RX_SH_SELECT, 0, 7, 8, 8, 0},
    };
    for (size_t i = 0; i < RX_COUNT(rows); i++) {
        const rx_pkg_shape ins = {(int32_t)rows[i].op, 3, 0, 1, 2};
        rx_pkg p = {.shape = &ins, .n_shape = 1};
        int64_t slots[4] = {rows[i].a, rows[i].b, rows[i].c, 0};
        int32_t at = -1, err = rx_shape_run(&p, 0, 1, slots, &at);
        assert_int_equal(err, rows[i].err);
        if (err)
            assert_int_equal(at, 0);
        else
            assert_int_equal(slots[3], rows[i].want);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(round_trip),       cmocka_unit_test(text),          cmocka_unit_test(header),
        cmocka_unit_test(unknown_sections), cmocka_unit_test(verifier),      cmocka_unit_test(records),
        cmocka_unit_test(combinations),
        cmocka_unit_test(table),
        cmocka_unit_test(late_frame),       cmocka_unit_test(bombs),         cmocka_unit_test(random_flips),
        cmocka_unit_test(out_of_memory),    cmocka_unit_test(shape_program),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
