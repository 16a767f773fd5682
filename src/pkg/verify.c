/* verify.c: what the records of an executable say: every number in range, every range inside its array.
 *
 * In: what rx_pkg_read accepted. Out: a status; afterwards accessors and VM need no checks of what is checked here.
 * Time: each record once; what one record can make us repeat (types written out, joins of states, ranges of the shape
 * program) is paid from a budget proportional to the file, so no small file is slow. Scratch memory comes from the
 * context's heap. */
#include "pkg/verify.h"

#include <stdio.h>

enum {
    STEPS_PER_BYTE = 256,
    FREE_STEPS = 1 << 26,
    MAX_TYPE = 1 << 16,
    DEPTH_SHIFT = 24,
    MAX_SLOTS = 1 << 20,
    MAX_OUTS = 1 << 16
};

relax_status rx_verify_bad(rx_verifier *v, const char *fmt, ...)
{
    char text[256];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    if (v->fn < 0)
        return rx_error(v->ctx, RXE_FILE_CORRUPT, NULL, NULL, "executable: %s", text);
    if (v->pc < 0)
        return rx_error(v->ctx, RXE_FILE_CORRUPT, NULL, NULL, "executable: function %d: %s", v->fn, text);
    return rx_error(v->ctx, RXE_FILE_CORRUPT, NULL, NULL, "executable: function %d, word %d: %s", v->fn, v->pc, text);
}

relax_status rx_verify_over_budget(rx_verifier *v)
{
    return rx_error(v->ctx, RXE_LIMIT, NULL, NULL, "executable: verification takes more steps than its size allows");
}

static bool str_ok(const rx_verifier *v, int32_t i) { return rx_verify_index(i, v->p->n_strings); }

/* first .. first+n lies inside an array of `total`, and begins where the last one ended */
static bool next_range(int32_t *end, int32_t first, int32_t n, uint32_t total)
{
    if (first != *end || n < 0 || n > (int64_t)total - first)
        return false;
    *end += n;
    return true;
}

static bool dims_ok(const rx_verifier *v, const rx_pkg_type *t)
{
    const rx_pkg *p = v->p;
    int64_t n = t->ndim < 0 ? 0 : t->ndim;
    if (t->first < 0 || t->first + 2 * n > (int64_t)p->n_tw)
        return false;
    for (int64_t i = 0; i < n; i++) {
        int32_t mode = p->tw[t->first + 2 * i], ref = p->tw[t->first + 2 * i + 1];
        bool ok = mode == RX_DIM_ANY || (mode == RX_DIM_BIND && ref >= 0 && ref < MAX_SLOTS) ||
                  (mode == RX_DIM_EQ && (ref >= 0 ? ref < MAX_SLOTS : rx_verify_index(~ref, p->n_ints)));
        if (!ok)
            return false;
    }
    return true;
}

/* Fields are older types, so there are no cycles; cost counts the type written out as a tree. */
static bool fields_ok(rx_verifier *v, const rx_pkg_type *t, int32_t self)
{
    const rx_pkg *p = v->p;
    int64_t n = t->ndim < 0 ? 0 : t->ndim, cost = 1, depth = 0;
    if (t->ndim < -1 || t->first < 0 || t->first + n > (int64_t)p->n_tw)
        return false;
    for (int64_t i = 0; i < n; i++) {
        int32_t f = p->tw[t->first + i];
        if (f < 0 || f >= self)
            return false;
        cost += v->cost[f] & ((1 << DEPTH_SHIFT) - 1);
        depth = RX_MAX(depth, v->cost[f] >> DEPTH_SHIFT);
        if (cost > MAX_TYPE)
            return false;
    }
    v->cost[self] = (int32_t)(cost | (depth + 1) << DEPTH_SHIFT);
    return depth + 1 <= RX_PKG_MAX_DEPTH;
}

static relax_status verify_types(rx_verifier *v)
{
    for (uint32_t i = 0; i < v->p->n_types; i++) {
        const rx_pkg_type *t = &v->p->types[i];
        bool ok = t->dtype >= 0 && t->dtype < RELAX_DTYPE_COUNT;
        v->cost[i] =
            1 +
            (t->kind == RX_PT_OBJECT || t->kind == RX_PT_FUNC || t->ndim < 0 ? 0 : RX_MIN(t->ndim, RX_PKG_MAX_NDIM));
        switch (t->kind) {
        case RX_PT_OBJECT:
        case RX_PT_FUNC: break;
        case RX_PT_PRIM: ok = ok && (t->ndim == 0 || t->ndim == 1) && dims_ok(v, t); break;
        case RX_PT_SHAPE:
        case RX_PT_TENSOR: ok = ok && t->ndim >= -1 && t->ndim <= RX_PKG_MAX_NDIM && dims_ok(v, t); break;
        case RX_PT_TUPLE: ok = ok && fields_ok(v, t, (int32_t)i); break;
        default: ok = false;
        }
        if (!ok)
            return rx_verify_bad(v, "type %u is broken", i);
    }
    return RELAX_OK;
}

static relax_status verify_consts(rx_verifier *v)
{
    const rx_pkg *p = v->p;
    for (uint32_t i = 0; i < p->n_consts; i++) {
        const rx_pkg_const *c = &p->consts[i];
        bool ok = rx_verify_index(c->type, p->n_types) && c->offset >= 0 && c->offset % RX_PKG_ALIGN == 0 &&
                  c->size <= p->n_data - c->offset;
        const rx_pkg_type *t = ok ? &p->types[c->type] : NULL;
        ok = ok && t->kind == RX_PT_TENSOR && t->dtype != RELAX_DTYPE_UNKNOWN && t->ndim >= 0;
        for (int32_t d = 0; ok && d < t->ndim; d++)
            ok = p->tw[t->first + 2 * d] == RX_DIM_EQ && p->tw[t->first + 2 * d + 1] < 0;
        int64_t bytes = -1;
        if (!ok || !rx_pkg_type_bytes(p, t, NULL, NULL, &bytes) || bytes != c->size)
            return rx_verify_bad(v, "constant %u is broken", i);
    }
    return RELAX_OK;
}

static relax_status verify_kernels(rx_verifier *v)
{
    const rx_pkg *p = v->p;
    int32_t phase = 0;
    for (uint32_t i = 0; i < p->n_kernels; i++) {
        const rx_pkg_kernel *k = &p->kernels[i];
        if (!str_ok(v, k->name) || !str_ok(v, k->origin) || k->nbufs < 0 || k->nsyms < 0 ||
            !next_range(&phase, k->phase0, k->nphases, p->n_phases))
            return rx_verify_bad(v, "kernel %u is broken", i);
    }
    if ((uint32_t)phase != p->n_phases)
        return rx_verify_bad(v, "kernels have %d phases, the table has %u", phase, p->n_phases);
    for (uint32_t i = 0; i < p->n_natives; i++) {
        const rx_pkg_native *n = &p->natives[i];
        if (!str_ok(v, n->target) || n->nentries != p->n_phases || n->offset < 0 || n->size < 0 ||
            n->offset % RX_PKG_ALIGN || n->size > p->n_native - n->offset)
            return rx_verify_bad(v, "native code %u is broken", i);
    }
    return RELAX_OK;
}

static relax_status verify_names(rx_verifier *v)
{
    const rx_pkg *p = v->p;
    for (uint32_t i = 0; i < p->n_libs; i++)
        if (!str_ok(v, p->libs[i].name) || (p->libs[i].kind != RX_LIB_DPS && p->libs[i].kind != RX_LIB_PACKED))
            return rx_verify_bad(v, "library function %u is broken", i);
    for (uint32_t i = 0; i < p->n_weights; i++)
        if (!str_ok(v, p->weights[i].name) || !str_ok(v, p->weights[i].type))
            return rx_verify_bad(v, "weight %u is broken", i);
    for (uint32_t i = 0; i < p->n_prov; i++)
        if (!str_ok(v, p->prov[i].key) || !str_ok(v, p->prov[i].value))
            return rx_verify_bad(v, "provenance %u is broken", i);
    for (uint32_t i = 0; i < p->n_params; i++) {
        const rx_pkg_param *a = &p->params[i];
        if (!str_ok(v, a->name) || !str_ok(v, a->type) || a->weight < -1 || a->weight >= (int64_t)p->n_weights)
            return rx_verify_bad(v, "parameter %u is broken", i);
    }
    return RELAX_OK;
}

bool rx_verify_ref(const rx_verifier *v, const uint8_t *slots, int32_t nslots, int32_t ref)
{
    return ref >= 0 ? ref < nslots && (slots[ref] & RX_SLOT_SET) : rx_verify_index(~ref, v->p->n_ints);
}

relax_status rx_verify_shape(rx_verifier *v, uint8_t *slots, int32_t nslots, int64_t first, int64_t n)
{
    const rx_pkg *p = v->p;
    if (first < 0 || n < 0 || first + n > (int64_t)p->n_shape)
        return rx_verify_bad(v, "a range of the shape program lies outside it");
    if (!rx_verify_pay(v, n))
        return rx_verify_over_budget(v);
    for (int64_t i = first; i < first + n; i++) {
        const rx_pkg_shape *s = &p->shape[i];
        if (!rx_verify_index(s->op, RX_SH_COUNT))
            return rx_verify_bad(v, "shape instruction %d: unknown operation %d", (int)i, s->op);
        const int32_t operand[3] = {s->a, s->b, s->c};
        for (int k = 0; k < rx_sh_arity[s->op]; k++)
            if (!rx_verify_ref(v, slots, nslots, operand[k]))
                return rx_verify_bad(v, "shape instruction %d reads an undefined slot", (int)i);
        if (!rx_verify_index(s->dst, (uint32_t)nslots) || (slots[s->dst] & RX_SLOT_MAYBE))
            return rx_verify_bad(v, "shape instruction %d writes a slot twice or outside the frame", (int)i);
        slots[s->dst] = RX_SLOT_SET | RX_SLOT_MAYBE;
    }
    return RELAX_OK;
}

static relax_status verify_formula(rx_verifier *v, const rx_pkg_fn *f, uint8_t *slots)
{
    if (f->mem_ref == RX_REF_NONE)
        return RELAX_OK;
    memset(slots, 0, (size_t)f->nslots);
    for (int32_t i = 0; i < f->nsyms; i++)
        slots[v->p->syms[f->sym0 + i].slot] = RX_SLOT_SET | RX_SLOT_MAYBE;
    relax_status s = rx_verify_shape(v, slots, f->nslots, f->mem0, f->nmem);
    if (!s && !rx_verify_ref(v, slots, f->nslots, f->mem_ref))
        s = rx_verify_bad(v, "the memory formula has no value");
    return s;
}

static relax_status verify_fn(rx_verifier *v, const rx_pkg_fn *f, int32_t *param, int32_t *sym, int32_t *code)
{
    const rx_pkg *p = v->p;
    if (!str_ok(v, f->name) || !str_ok(v, f->result) || !str_ok(v, f->mem_text))
        return rx_verify_bad(v, "a string is out of range");
    if (!next_range(param, f->param0, f->nparams, p->n_params) || !next_range(sym, f->sym0, f->nsyms, p->n_syms) ||
        !next_range(code, f->code0, f->ncode, p->n_code))
        return rx_verify_bad(v, "its parameters, symbols or code are out of range");
    if (f->nregs < f->nparams || f->nregs > (int64_t)f->nparams + f->ncode || f->nslots < 0 || f->nslots > MAX_SLOTS ||
        f->nouts < 0 || f->nouts > MAX_OUTS)
        return rx_verify_bad(v, "it has an impossible number of registers, slots or results");
    for (int32_t i = 0; i < f->nsyms; i++) {
        const rx_pkg_sym *s = &p->syms[f->sym0 + i];
        if (!str_ok(v, s->name) || !rx_verify_index(s->slot, (uint32_t)f->nslots) || s->lo > s->hi || s->divisor < 1 ||
            s->param < -1 || s->param >= f->nparams)
            return rx_verify_bad(v, "symbol %d is broken", i);
    }
    return RELAX_OK;
}

/* All records of functions first: a call looks at its callee. */
static relax_status verify_fns(rx_verifier *v)
{
    const rx_pkg *p = v->p;
    int32_t param = 0, sym = 0, code = 0;
    relax_status s = RELAX_OK;
    for (v->fn = 0; !s && v->fn < (int32_t)p->n_fns; v->fn++)
        s = verify_fn(v, &p->fns[v->fn], &param, &sym, &code);
    if (s)
        return s;
    v->fn = -1;
    if ((uint32_t)param != p->n_params || (uint32_t)sym != p->n_syms || (uint32_t)code != p->n_code)
        return rx_verify_bad(v, "parameters, symbols or code belong to no function");
    for (v->fn = 0; !s && v->fn < (int32_t)p->n_fns; v->fn++) {
        const rx_pkg_fn *f = &p->fns[v->fn];
        v->pc = -1;
        if (!rx_verify_pay(v, 2 * (int64_t)f->nslots + f->nregs))
            return rx_verify_over_budget(v);
        uint8_t *slots = rx_heap_alloc(&v->ctx->heap, (size_t)f->nslots, 1);
        if (!slots)
            return rx_error(v->ctx, RXE_OOM, NULL, NULL, "out of memory");
        s = verify_formula(v, f, slots);
        rx_heap_free(&v->ctx->heap, slots, (size_t)f->nslots);
        if (!s)
            s = rx_verify_code(v, v->fn);
    }
    return s;
}

relax_status rx_pkg_verify(relax_context *ctx, rx_pkg *p)
{
    rx_verifier v = {.ctx = ctx, .p = p, .fn = -1, .pc = -1};
    v.budget = FREE_STEPS + (int64_t)RX_MIN(p->size, (size_t)INT64_MAX / STEPS_PER_BYTE / 2) * STEPS_PER_BYTE;
    size_t size = p->n_types * sizeof *v.cost;
    v.cost = rx_heap_alloc(&ctx->heap, size, _Alignof(int32_t));
    if (!v.cost)
        return rx_error(ctx, RXE_OOM, NULL, NULL, "out of memory");
    p->max_list = 0;
    relax_status s = verify_types(&v);
    s = s ? s : verify_consts(&v);
    s = s ? s : verify_kernels(&v);
    s = s ? s : verify_names(&v);
    s = s ? s : verify_fns(&v);
    rx_heap_free(&ctx->heap, v.cost, size);
    return s;
}
