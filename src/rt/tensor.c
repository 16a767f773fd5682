/* tensor.c: tensors and DLPack 1.x in both directions.
 *
 * A tensor of ours is compact, row-major, on the CPU, first element at `data`. What comes from outside is checked
 * (device, dtype, rank, dims, strides, byte_offset, size) and used where it lies when it is compact and aligned to its
 * element; else it is copied once. That the memory really has the size that it claims cannot be checked. */
#include "rt/rt_int.h"

static const struct dl_row { relax_dtype t; uint8_t code, bits; } dl_rows[] = {
    {RELAX_BOOL, kDLBool, 8},      {RELAX_I8, kDLInt, 8},      {RELAX_I16, kDLInt, 16},     {RELAX_I32, kDLInt, 32},
    {RELAX_I64, kDLInt, 64},       {RELAX_U8, kDLUInt, 8},     {RELAX_U16, kDLUInt, 16},    {RELAX_U32, kDLUInt, 32},
    {RELAX_U64, kDLUInt, 64},      {RELAX_F16, kDLFloat, 16},  {RELAX_BF16, kDLBfloat, 16}, {RELAX_F32, kDLFloat, 32},
    {RELAX_F64, kDLFloat, 64},     {RELAX_F8E4M3, kDLFloat8_e4m3fn, 8}, {RELAX_F8E5M2, kDLFloat8_e5m2, 8},
};

bool rx_dtype_from_dl(DLDataType t, relax_dtype *out)
{
    for (size_t i = 0; i < RX_COUNT(dl_rows); i++)
        if (t.lanes == 1 && dl_rows[i].code == t.code && dl_rows[i].bits == t.bits) {
            *out = dl_rows[i].t;
            return true;
        }
    return false;
}

DLDataType rx_dtype_to_dl(relax_dtype t)
{
    for (size_t i = 0; i < RX_COUNT(dl_rows); i++)
        if (dl_rows[i].t == t)
            return (DLDataType){dl_rows[i].code, dl_rows[i].bits, 1};
    return (DLDataType){kDLOpaqueHandle, 8, 1};
}

bool rx_tensor_bytes(relax_dtype t, const int64_t *dims, int32_t ndim, int64_t *bytes)
{
    int64_t n = (int64_t)rx_dtype_bytes(t);
    bool fits = true, empty = false;
    for (int32_t i = 0; i < ndim; i++) {
        if (dims[i] < 0)
            return false;
        empty = empty || dims[i] == 0;
        fits = fits && rx_mul_ok(n, dims[i], &n);
    }
    *bytes = empty ? 0 : n;
    return empty || (fits && n <= PTRDIFF_MAX - 4096);
}

static relax_status oom(relax_context *ctx)
{
    return rx_error(ctx, RXE_OOM, NULL, NULL, "out of memory");
}

static relax_status check_new(relax_context *ctx, relax_dtype t, const int64_t *dims, int32_t ndim, int64_t *bytes)
{
    if (t <= RELAX_DTYPE_UNKNOWN || t >= RELAX_DTYPE_COUNT)
        return rx_error(ctx, RXE_BAD_VALUE, NULL, NULL, "%d is not a data type", t);
    if (ndim < 0 || ndim > RX_PKG_MAX_NDIM)
        return rx_error(ctx, RXE_ARG_RANK, NULL, NULL, "a tensor has 0 to %d dims, not %d", RX_PKG_MAX_NDIM, ndim);
    if (!rx_tensor_bytes(t, dims, ndim, bytes))
        return rx_error(ctx, RXE_LIMIT, NULL, NULL, "a tensor has a negative dim or too many elements");
    return RELAX_OK;
}

static void describe(rx_tensor *t, relax_dtype dt, const int64_t *dims, int32_t ndim, int64_t bytes)
{
    t->dtype = dt;
    t->ndim = ndim;
    t->bytes = bytes;
    if (ndim)
        memcpy(t->dims, dims, (size_t)ndim * sizeof *dims);
}

relax_status rx_tensor_new(relax_context *ctx, relax_dtype t, const int64_t *dims, int32_t ndim, rx_tensor **out)
{
    int64_t bytes;
    *out = NULL;
    relax_status s = check_new(ctx, t, dims, ndim, &bytes);
    if (s)
        return s;
    rx_tensor *x = rx_tensor_alloc(rx_memfn_of(ctx), bytes ? (size_t)bytes : 1);
    if (!x)
        return oom(ctx);
    describe(x, t, dims, ndim, bytes);
    *out = x;
    return RELAX_OK;
}

relax_status rx_tensor_borrow(relax_context *ctx, relax_dtype t, const int64_t *dims, int32_t ndim, void *data,
                              bool read_only, void (*done)(void *arg), void *arg, rx_tensor **out)
{
    int64_t bytes;
    *out = NULL;
    relax_status s = check_new(ctx, t, dims, ndim, &bytes);
    if (s)
        return s;
    if ((!data && bytes) || (uintptr_t)data % rx_dtype_bytes(t))
        return rx_error(ctx, RXE_ARG_STRIDES, NULL, NULL,
                        "the memory of a tensor is NULL or not aligned to its element");
    rx_tensor *x = rx_tensor_alloc(rx_memfn_of(ctx), 0);
    if (!x)
        return oom(ctx);
    describe(x, t, dims, ndim, bytes);
    x->data = data;
    x->done = done;
    x->done_arg = arg;
    x->h.flags = read_only ? RX_OBJ_READ_ONLY : 0;
    *out = x;
    return RELAX_OK;
}

/* --- from DLPack --- */
static bool is_compact(const DLTensor *d)
{
    int64_t want = 1;
    for (int32_t i = d->ndim - 1; d->strides && i >= 0; i--) {
        if (d->shape[i] != 1 && d->strides[i] != want)
            return false;
        want *= d->shape[i];
    }
    return true;
}

relax_status rx_dl_check(relax_context *ctx, const DLTensor *d, const char *what, relax_dtype *t, int64_t *bytes,
                         bool *compact, void **data)
{
    if (d->device.device_type != kDLCPU && d->device.device_type != kDLCUDAHost && d->device.device_type != kDLROCMHost)
        return rx_error(ctx, RXE_ARG_DEVICE, NULL, "copy it to the CPU",
                        "%s lies on device type %d, expected the CPU (1)", what, (int)d->device.device_type);
    if (!rx_dtype_from_dl(d->dtype, t))
        return rx_error(ctx, RXE_ARG_DTYPE, NULL, NULL,
                        "%s has a data type that is not supported (code %d, %d bits, %d lanes)", what, d->dtype.code,
                        d->dtype.bits, d->dtype.lanes);
    if (d->ndim < 0 || d->ndim > RX_PKG_MAX_NDIM || (d->ndim && !d->shape))
        return rx_error(ctx, RXE_ARG_RANK, NULL, NULL, "%s has %d dims, at most %d are supported", what, d->ndim,
                        RX_PKG_MAX_NDIM);
    if (!rx_tensor_bytes(*t, d->shape, d->ndim, bytes))
        return rx_error(ctx, RXE_ARG_DIM, NULL, NULL, "%s has a negative dim or too many elements", what);
    uintptr_t at;
    if ((!d->data && *bytes) || d->byte_offset > PTRDIFF_MAX ||
        __builtin_add_overflow((uintptr_t)d->data, (uintptr_t)d->byte_offset, &at))
        return rx_error(ctx, RXE_ARG_STRIDES, NULL, NULL, "%s has no memory or an impossible byte_offset", what);
    *data = (void *)at;
    *compact = *bytes == 0 || (is_compact(d) && at % rx_dtype_bytes(*t) == 0);
    return RELAX_OK;
}

/* Walks the elements in row-major order with one counter per dim; offsets may be negative or zero (broadcast). */
void rx_dl_copy(const DLTensor *from, size_t elem, void *to)
{
    int64_t index[RX_PKG_MAX_NDIM] = {0};
    const char *p = (const char *)from->data + from->byte_offset;
    char *out = to;
    for (int32_t i = 0; i < from->ndim; i++)
        if (from->shape[i] == 0)
            return;
    for (;;) {
        memcpy(out, p, elem);
        out += elem;
        int32_t i = from->ndim - 1;
        for (; i >= 0; i--) {
            int64_t stride = from->strides ? from->strides[i] : 0;
            if (!from->strides) {
                stride = 1;
                for (int32_t k = i + 1; k < from->ndim; k++)
                    stride *= from->shape[k];
            }
            p += stride * (int64_t)elem;
            if (++index[i] < from->shape[i])
                break;
            p -= stride * (int64_t)elem * from->shape[i];
            index[i] = 0;
        }
        if (i < 0)
            return;
    }
}

/* the tensor of an imported DLTensor; *copied: the import is not needed any more */
static relax_status import(relax_context *ctx, const DLTensor *d, rx_tensor **out, bool *copied)
{
    relax_dtype t;
    int64_t bytes;
    bool compact;
    void *data;
    *out = NULL;
    relax_status s = rx_dl_check(ctx, d, "the DLPack tensor", &t, &bytes, &compact, &data);
    if (s)
        return s;
    rx_tensor *x = rx_tensor_alloc(rx_memfn_of(ctx), compact ? 0 : (size_t)bytes);
    if (!x)
        return oom(ctx);
    describe(x, t, d->shape, d->ndim, bytes);
    if (compact)
        x->data = data;
    else
        rx_dl_copy(d, rx_dtype_bytes(t), x->data);
    *copied = !compact;
    *out = x;
    return RELAX_OK;
}

relax_status rx_tensor_import(relax_context *ctx, DLManagedTensorVersioned *m, rx_tensor **out)
{
    bool copied;
    *out = NULL;
    if (m->version.major != DLPACK_MAJOR_VERSION)
        return rx_error(ctx, RXE_UNSUPPORTED, NULL, NULL,
                        "the DLPack tensor has version %u.%u, this library reads %d.x", m->version.major,
                        m->version.minor, DLPACK_MAJOR_VERSION);
    relax_status s = import(ctx, &m->dl_tensor, out, &copied);
    if (s)
        return s;
    if (copied && m->deleter) {
        m->deleter(m);
    } else if (!copied) {
        (*out)->dl = m;
        (*out)->h.flags = m->flags & DLPACK_FLAG_BITMASK_READ_ONLY ? RX_OBJ_READ_ONLY : 0;
    }
    return RELAX_OK;
}

relax_status rx_tensor_import_old(relax_context *ctx, DLManagedTensor *m, rx_tensor **out)
{
    bool copied;
    relax_status s = import(ctx, &m->dl_tensor, out, &copied);
    if (s)
        return s;
    if (!copied)
        (*out)->dl_old = m;
    else if (m->deleter)
        m->deleter(m);
    return RELAX_OK;
}

/* --- to DLPack --- */
DLTensor rx_tensor_view(const rx_tensor *t)
{
    return (DLTensor){.data = t->data, .device = {kDLCPU, 0}, .ndim = t->ndim, .dtype = rx_dtype_to_dl(t->dtype),
                      .shape = (int64_t *)t->dims};
}

/* What a consumer holds: the struct of the version it asked for, the strides, and a reference to the tensor. */
typedef struct exported {
    union { DLManagedTensorVersioned v1; DLManagedTensor v0; } u;
    rx_tensor *t;
    rx_memfn mem;
    int64_t shape[RX_PKG_MAX_NDIM], strides[RX_PKG_MAX_NDIM];
} exported;

static void export_free(exported *x)
{
    rx_memfn m = x->mem;
    rx_release(&x->t->h);
    m.fn(m.self, x, sizeof *x, 0, _Alignof(max_align_t));
}

static void delete_v1(DLManagedTensorVersioned *self) { export_free(self->manager_ctx); }
static void delete_v0(DLManagedTensor *self) { export_free(self->manager_ctx); }

/* A tensor whose memory is lent is copied, for the consumer may keep it. */
static relax_status export_new(relax_context *ctx, rx_tensor *t, exported **out)
{
    rx_memfn m = rx_memfn_of(ctx);
    exported *x = m.fn(m.self, NULL, 0, sizeof *x, _Alignof(max_align_t));
    if (!x)
        return oom(ctx);
    memset(x, 0, sizeof *x);
    x->mem = m;
    if (t->h.flags & RX_OBJ_BORROWED) {
        relax_status s = rx_tensor_new(ctx, t->dtype, t->dims, t->ndim, &x->t);
        if (s) {
            m.fn(m.self, x, sizeof *x, 0, _Alignof(max_align_t));
            return s;
        }
        if (t->bytes)
            memcpy(x->t->data, t->data, (size_t)t->bytes);
    } else {
        rx_retain(&t->h);
        x->t = t;
    }
    int64_t stride = 1;
    for (int32_t i = t->ndim - 1; i >= 0; i--) {
        x->shape[i] = t->dims[i];
        x->strides[i] = stride;
        if (!rx_mul_ok(stride, t->dims[i], &stride))
            stride = 0;                          /* only with a zero dim, when no stride is used */
    }
    *out = x;
    return RELAX_OK;
}

static DLTensor export_view(exported *x)
{
    DLTensor d = rx_tensor_view(x->t);
    d.shape = x->shape;
    d.strides = x->strides;
    return d;
}

relax_status rx_tensor_export(relax_context *ctx, rx_tensor *t, DLManagedTensorVersioned **out)
{
    exported *x;
    *out = NULL;
    relax_status s = export_new(ctx, t, &x);
    if (s)
        return s;
    x->u.v1 = (DLManagedTensorVersioned){.version = {DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION},
                                         .manager_ctx = x,
                                         .deleter = delete_v1,
                                         .flags = x->t->h.flags & RX_OBJ_READ_ONLY ? DLPACK_FLAG_BITMASK_READ_ONLY : 0,
                                         .dl_tensor = export_view(x)};
    *out = &x->u.v1;
    return RELAX_OK;
}

relax_status rx_tensor_export_old(relax_context *ctx, rx_tensor *t, DLManagedTensor **out)
{
    exported *x;
    *out = NULL;
    relax_status s = export_new(ctx, t, &x);
    if (s)
        return s;
    x->u.v0 = (DLManagedTensor){.dl_tensor = export_view(x), .manager_ctx = x, .deleter = delete_v0};
    *out = &x->u.v0;
    return RELAX_OK;
}
