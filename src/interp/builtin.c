/* builtin.c: library functions under "rx.", which legalisation puts in place of operators; here they are those
 * operators again. */
#include "interp/impl.h"

/* attributes of op from the integers of a call, in the order of its INT and BOOL attributes */
static rx_attrs attrs_of(rx_interp *in, const rx_op *op, const int64_t *syms, uint32_t nsyms, uint32_t *used)
{
    RX_VEC(rx_attr) v = {0};
    rx_arena *a = rx_scratch(&in->ctx->heap);
    *used = 0;
    for (uint32_t i = 0; i < op->nattrs && *used < nsyms; i++) {
        const rx_attr_decl *d = &op->attrs[i];
        if (d->kind != RX_A_INT && d->kind != RX_A_BOOL)
            continue;
        rx_attr x = {.key = d->key, .kind = d->kind, .u.i = syms[(*used)++]};
        rx_push(a, &v, x);
    }
    return rx_op_attrs(in->ctx, a, op, v.at, v.n);
}

static void set_attr(rx_interp *in, const rx_op *op, rx_attrs *attrs, rx_attr x)
{
    rx_arena *a = rx_scratch(&in->ctx->heap);
    rx_attrs all = rx_attrs_copy(in->ctx, a, attrs);
    rx_attrs_set(in->ctx, a, &all, &x);
    *attrs = rx_op_attrs(in->ctx, a, op, all.at, all.n);
}

static void copy_out(rx_interp *in, const char *name, rx_ival *to, const rx_ival *from)
{
    rx_where w = {.function = name};
    if (to->kind != RX_I_TENSOR || to->bytes != from->bytes || to->dtype != from->dtype)
        rx_fail(in->ctx, RXE_ARG_DIM, &w, "an output has another shape or data type than the result");
    memcpy(to->data, from->data, from->bytes);
}

bool rx_builtin_dps(rx_interp *in, relax_function *f, const char *name, rx_ival *const *at, uint32_t n,
                    const int64_t *syms, uint32_t nsyms)
{
    rx_where w = {.function = name};
    if (!strcmp(name, "rx.shape_to_tensor")) {
        for (uint32_t i = 0; i < nsyms && n == 1; i++)
            rx_seti(at[0], i, syms[i]);
        return n == 1 && rx_ival_count(at[0]) == nsyms;
    }
    if (strcmp(name, "rx.sort") && strcmp(name, "rx.argsort") && strcmp(name, "rx.topk"))
        return false;
    const rx_op *op = rx_op_find(in->ctx, name + 3);
    uint32_t used;
    rx_attrs attrs = attrs_of(in, op, syms, nsyms, &used);
    if (n < 2)
        rx_fail(in->ctx, RXE_ARG_COUNT, &w, "an input and an output are needed");
    if (op->code == RX_OP_TOPK) {
        static const char *const which[] = {"both", "values", "indices"};
        int64_t k = used < nsyms ? syms[used] : 0;
        set_attr(in, op, &attrs, (rx_attr){.key = "ret_type", .kind = RX_A_STR, .u.s = which[k >= 0 && k < 3 ? k : 0]});
    }
    const rx_ival *last = at[n - 1];
    bool indices =
        op->code == RX_OP_ARGSORT || (op->code == RX_OP_TOPK && strcmp(rx_attr_str(&attrs, "ret_type", ""), "values"));
    if (indices)
        set_attr(in, op, &attrs, (rx_attr){.key = "dtype", .kind = RX_A_DTYPE, .u.dtype = last->dtype});
    rx_ival *y = rx_interp_op(in, f, op, at, 1, &attrs, NULL);
    for (uint32_t i = 1; i < n; i++)
        copy_out(in, name, at[i], y->kind == RX_I_TUPLE ? y->at[i - 1] : y);
    return true;
}

rx_ival *rx_builtin_packed(rx_interp *in, relax_function *f, const char *name, rx_ival *const *at, uint32_t n)
{
    static const char *const names[] = {"unique", "nonzero", "shape_of", "tensor_to_shape", "dynamic_strided_slice"};
    for (size_t i = 0; i < RX_COUNT(names); i++) {
        if (strncmp(name, "rx.", 3) || strcmp(name + 3, names[i]))
            continue;
        const rx_op *op = rx_op_find(in->ctx, names[i]);
        uint32_t nin = i == 4 ? 4 : 1, used;
        int64_t ints[8] = {0};
        uint32_t extra = n > nin ? RX_MIN(n - nin, 8) : 0;
        for (uint32_t k = 0; k < extra; k++)
            ints[k] = rx_load_i64(at[nin + k]->dtype, &at[nin + k]->bits);
        rx_attrs attrs = attrs_of(in, op, ints, extra, &used);
        return rx_interp_op(in, f, op, at, RX_MIN(n, nin), &attrs, NULL);
    }
    return NULL;
}
