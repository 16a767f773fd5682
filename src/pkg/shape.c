/* shape.c: the shape program: straight-line int64 code with checked arithmetic, and the sizes that come from it. */
#include "pkg/pkg.h"

static bool step(rx_sh op, int64_t a, int64_t b, int64_t c, int64_t *r)
{
    switch (op) {
    case RX_SH_MOV: *r = a; return true;
    case RX_SH_ADD: return rx_add_ok(a, b, r);
    case RX_SH_SUB: return rx_sub_ok(a, b, r);
    case RX_SH_MUL: return rx_mul_ok(a, b, r);
    case RX_SH_FLOORDIV: return rx_floordiv_ok(a, b, r);
    case RX_SH_FLOORMOD: return rx_floormod_ok(a, b, r);
    case RX_SH_MIN: *r = RX_MIN(a, b); return true;
    case RX_SH_MAX: *r = RX_MAX(a, b); return true;
    case RX_SH_EQ: *r = a == b; return true;
    case RX_SH_NE: *r = a != b; return true;
    case RX_SH_LT: *r = a < b; return true;
    case RX_SH_LE: *r = a <= b; return true;
    case RX_SH_AND: *r = a && b; return true;
    case RX_SH_OR: *r = a || b; return true;
    case RX_SH_NOT: *r = !a; return true;
    case RX_SH_SELECT: *r = a ? b : c; return true;
    case RX_SH_COUNT: break;
    }
    return false;
}

int32_t rx_shape_run(const rx_pkg *p, int32_t first, int32_t n, int64_t *slots, int32_t *at)
{
    for (int32_t i = first; i < first + n; i++) {
        const rx_pkg_shape *s = &p->shape[i];
        uint8_t arity = rx_sh_arity[s->op];
        int64_t a = rx_pkg_ref(p, slots, s->a);
        int64_t b = arity > 1 ? rx_pkg_ref(p, slots, s->b) : 0;
        int64_t c = arity > 2 ? rx_pkg_ref(p, slots, s->c) : 0;
        if (!step((rx_sh)s->op, a, b, c, &slots[s->dst])) {
            *at = i;
            bool division = s->op == RX_SH_FLOORDIV || s->op == RX_SH_FLOORMOD;
            return division && b == 0 ? RXE_DIV_ZERO : RXE_LIMIT;
        }
    }
    return 0;
}

bool rx_pkg_type_bytes(const rx_pkg *p, const rx_pkg_type *t, const int64_t *slots, int64_t *dims, int64_t *bytes)
{
    int64_t n = (int64_t)rx_dtype_bytes(t->dtype);
    bool fits = true, empty = false;
    for (int32_t i = 0; i < t->ndim; i++) {
        int64_t d = rx_pkg_ref(p, slots, p->tw[t->first + 2 * i + 1]);
        if (d < 0)
            return false;
        if (dims)
            dims[i] = d;
        empty = empty || d == 0;
        fits = fits && rx_mul_ok(n, d, &n);
    }
    *bytes = empty ? 0 : n;
    return empty || (fits && n <= PTRDIFF_MAX - 4096);
}

relax_status rx_pkg_peak(relax_context *ctx, const rx_pkg *p, int32_t fn, const int64_t *syms, uint32_t nsyms,
                         int64_t *bytes)
{
    const rx_pkg_fn *f = &p->fns[fn];
    const char *name = rx_pkg_str(p, f->name);
    if (f->mem_ref == RX_REF_NONE)
        return rx_error(ctx, RXE_NOT_FOUND, NULL, NULL, "%s: the executable has no formula for its memory", name);
    if (nsyms != (uint32_t)f->nsyms)
        return rx_error(ctx, RXE_ARG_COUNT, NULL, NULL, "%s: %d symbols need values, %u are given", name, f->nsyms,
                        nsyms);
    size_t size = (size_t)f->nslots * sizeof(int64_t);
    int64_t *slots = rx_heap_alloc(&ctx->heap, size, _Alignof(int64_t));
    if (!slots)
        return rx_error(ctx, RXE_OOM, NULL, NULL, "out of memory");
    memset(slots, 0, size);
    for (uint32_t i = 0; i < nsyms; i++)
        slots[p->syms[f->sym0 + (int32_t)i].slot] = syms[i];
    int32_t at, err = rx_shape_run(p, f->mem0, f->nmem, slots, &at);
    if (!err)
        *bytes = rx_pkg_ref(p, slots, f->mem_ref);
    rx_heap_free(&ctx->heap, slots, size);
    return err ? rx_error(ctx, (enum rx_err)err, NULL, NULL, "%s: its memory cannot be computed for these values", name)
               : RELAX_OK;
}
