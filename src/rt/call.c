/* call.c: the VM's loop. It trusts what pkg/verify.c proved about the bytecode and checks what depends on values.
 *
 * Frames lie on stacks of the VM (registers, slots, frames), not on the C stack, so depth is a number and not a crash.
 * In steady state an instruction allocates nothing: operands go through arrays of the VM, objects and arena are
 * recycled (memory.c). Kernels run phase by phase, a phase marked parallel in as many parts as its estimated work is
 * worth. */
#include "rt/rt_int.h"

#include <stdio.h>

enum { WORK_PER_PART = 16384 };        /* scalar operations that pay for waking another thread */

/* The frame that runs, with pointers into the stacks; set anew after every change of frames. */
typedef struct run {
    relax_vm *vm;
    const rx_pkg *p;
    const rx_pkg_fn *f;
    const int32_t *code;
    rx_reg *regs;
    int64_t *slots;
    relax_any *result;                 /* of the host's call */
} run;

relax_status rx_vm_fail(relax_vm *vm, enum rx_err e, const char *fmt, ...)
{
    char text[512];
    const char *fn = vm->nframes ? rx_pkg_str(vm->p, vm->p->fns[rx_vm_top(vm)->fn].name) : "";
    rx_where w = {.function = fn};
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    if (e == RXE_OOM)
        return rx_error(vm->ctx, e, NULL, NULL, "out of memory");
    return rx_error(vm->ctx, e, &w, NULL, "%s", text);
}

static relax_status oom(run *r) { return rx_vm_fail(r->vm, RXE_OOM, "out of memory"); }
static int64_t ref(const run *r, int32_t x) { return rx_pkg_ref(r->p, r->slots, x); }

/* --- frames --- */
static void load(run *r)
{
    relax_vm *vm = r->vm;
    const rx_vmframe *fr = rx_vm_top(vm);
    r->f = &r->p->fns[fr->fn];
    r->code = r->p->code + r->f->code0;
    r->regs = vm->regs + fr->reg0;
    r->slots = vm->slots + fr->slot0;
}

static relax_status push(run *r, int32_t fn, int32_t result)
{
    relax_vm *vm = r->vm;
    const rx_pkg_fn *f = &r->p->fns[fn];
    void *regs = vm->regs, *slots = vm->slots, *frames = vm->frames;
    size_t nregs = (size_t)f->nregs, nslots = (size_t)f->nslots;
    if (vm->nframes == RX_VM_MAX_DEPTH)
        return rx_vm_fail(vm, RXE_DEPTH, "calls are nested more than %d deep", RX_VM_MAX_DEPTH);
    bool ok = rx_vm_room(vm, &regs, &vm->cap_regs, vm->nregs + nregs, sizeof *vm->regs);
    vm->regs = regs;
    ok = ok && rx_vm_room(vm, &slots, &vm->cap_slots, vm->nslots + nslots, sizeof *vm->slots);
    vm->slots = slots;
    ok = ok && rx_vm_room(vm, &frames, &vm->cap_frames, vm->nframes + 1, sizeof *vm->frames);
    vm->frames = frames;
    if (!ok) {
        if (vm->nframes)
            load(r);
        return oom(r);
    }
    if (nregs)
        memset(vm->regs + vm->nregs, 0, nregs * sizeof *vm->regs);
    if (nslots)
        memset(vm->slots + vm->nslots, 0, nslots * sizeof *vm->slots);
    vm->frames[vm->nframes++] = (rx_vmframe){.fn = fn,
                                             .result = result,
                                             .reg0 = (uint32_t)vm->nregs,
                                             .slot0 = (uint32_t)vm->nslots,
                                             .chunk = vm->chunk,
                                             .used = vm->nchunks ? vm->chunks[vm->chunk].used : 0};
    vm->nregs += nregs;
    vm->nslots += nslots;
    load(r);
    return RELAX_OK;
}

static void pop(run *r)
{
    relax_vm *vm = r->vm;
    const rx_vmframe *fr = rx_vm_top(vm);
    for (size_t i = fr->reg0; i < vm->nregs; i++)
        rx_reg_clear(&vm->regs[i]);
    vm->nregs = fr->reg0;
    vm->nslots = fr->slot0;
    for (uint32_t i = fr->chunk + 1; i < vm->nchunks; i++)
        vm->chunks[i].used = 0;
    vm->chunk = fr->chunk;
    if (vm->nchunks)
        vm->chunks[vm->chunk].used = fr->used;
    vm->nframes--;
    if (vm->nframes)
        load(r);
}

/* --- tensors --- */
static relax_status too_large(run *r)
{
    return rx_vm_fail(r->vm, RXE_LIMIT, "a tensor has a negative dim or too many elements");
}

static void set_tensor(run *r, int32_t reg, rx_tensor *t)
{
    const relax_any v = {.kind = RELAX_ANY_TENSOR, .u.obj = &t->h};
    rx_reg_set(&r->regs[reg], &v);
}

static void set_lazy(run *r, int32_t reg, int32_t type, void *data, relax_object *owner)
{
    rx_reg_clear(&r->regs[reg]);
    r->regs[reg] = (rx_reg){.kind = RELAX_ANY_TENSOR, .type = type, .data = data, .u.obj = owner};
}

static relax_status alloc(run *r, int32_t reg, int32_t type)
{
    int64_t dims[RX_PKG_MAX_NDIM], bytes;
    const rx_pkg_type *t = &r->p->types[type];
    if (!rx_pkg_type_bytes(r->p, t, r->slots, dims, &bytes))
        return too_large(r);
    rx_tensor *x = rx_vm_tensor(r->vm, bytes ? (size_t)bytes : 1);
    if (!x)
        return oom(r);
    x->dtype = t->dtype;
    x->ndim = t->ndim;
    x->bytes = bytes;
    memcpy(x->dims, dims, (size_t)t->ndim * sizeof *dims);
    set_tensor(r, reg, x);
    return RELAX_OK;
}

static relax_status out(run *r, const int32_t *x)
{
    rx_tensor *t;
    relax_status s = rx_vm_out(r->vm, x[1], &r->p->types[x[2]], r->slots, &t);
    if (s || !t)
        return s ? s : alloc(r, x[0], x[2]);
    set_tensor(r, x[0], t);
    return RELAX_OK;
}

static relax_status frame(run *r, int64_t size)
{
    rx_vmframe *fr = rx_vm_top(r->vm);
    if (size < 0)
        return rx_vm_fail(r->vm, RXE_LIMIT, "the size of its arena is negative");
    fr->arena = rx_vm_arena(r->vm, size);
    fr->arena_size = size;
    return fr->arena ? RELAX_OK : oom(r);
}

static relax_status arena(run *r, const int32_t *x)
{
    const rx_vmframe *fr = rx_vm_top(r->vm);
    int64_t bytes, at = ref(r, x[2]);
    if (!rx_pkg_type_bytes(r->p, &r->p->types[x[1]], r->slots, NULL, &bytes))
        return too_large(r);
    if (at < 0 || at % RX_PKG_ALIGN || at > fr->arena_size || bytes > fr->arena_size - at)
        return rx_vm_fail(r->vm, RXE_FILE_CORRUPT, "the memory plan is broken: %lld bytes at %lld of %lld",
                          (long long)bytes, (long long)at, (long long)fr->arena_size);
    set_lazy(r, x[0], x[1], fr->arena + at, NULL);
    return RELAX_OK;
}

static relax_status view(run *r, const int32_t *x)
{
    const rx_reg *from = &r->regs[x[1]];
    int64_t bytes;
    if (!rx_pkg_type_bytes(r->p, &r->p->types[x[2]], r->slots, NULL, &bytes))
        return too_large(r);
    if (bytes > rx_reg_bytes(r->vm, from, r->slots))
        return rx_vm_fail(r->vm, RXE_ARG_DIM, "a view of %lld bytes does not fit in %lld", (long long)bytes,
                          (long long)rx_reg_bytes(r->vm, from, r->slots));
    void *data = from->data;
    set_lazy(r, x[0], x[2], data, rx_retain(from->u.obj));
    return RELAX_OK;
}

/* --- kernels and host functions --- */
static bool cancelled(const relax_vm *vm) { return vm->ctx->cancel && rx_cancelled(vm->ctx); }
static relax_status stopped(run *r) { return rx_vm_fail(r->vm, RXE_CANCELLED, "stopped by the host"); }

typedef struct job { rx_kernel_fn fn; rx_kernel_args args; } job;

static void part(void *arg, int32_t i)
{
    const job *j = arg;
    rx_kernel_args a = j->args;
    a.part = i;
    j->fn(&a);
}

static int32_t parts(const relax_vm *vm, int64_t work)
{
    int64_t n = work < 0 ? vm->threads : work / WORK_PER_PART + 1;
    return (int32_t)RX_MIN(n, (int64_t)vm->threads);
}

static relax_status kernel_failed(run *r, const rx_pkg_kernel *k, int32_t err)
{
    const char *name = rx_pkg_str(r->p, *rx_pkg_str(r->p, k->origin) ? k->origin : k->name);
    if (err == RXE_DIV_ZERO)
        return rx_vm_fail(r->vm, RXE_DIV_ZERO, "%s: an integer is divided by zero", name);
    if (err == RXE_INDEX)
        return rx_vm_fail(r->vm, RXE_INDEX, "%s: an index lies outside the tensor", name);
    return rx_vm_fail(r->vm, RXE_INTERNAL, "%s: a check of the kernel failed (%d)", name, err);
}

static void note(relax_vm *vm, size_t row, int64_t start)
{
    vm->profile[row].calls++;
    vm->profile[row].ns += rx_now_ns() - start;
}

static relax_status kernel(run *r, const int32_t *x)
{
    relax_vm *vm = r->vm;
    const rx_pkg_kernel *k = &r->p->kernels[x[0]];
    const int32_t *syms = x + 2 + k->nbufs + 1;
    int32_t err = 0;
    if (!vm->exe->entries)
        return rx_vm_fail(vm, RXE_STATE, "its native code is not activated");
    if (cancelled(vm))
        return stopped(r);
    for (int32_t i = 0; i < k->nbufs; i++)
        vm->bufs[i] = r->regs[x[2 + i]].data;
    for (int32_t i = 0; i < k->nsyms; i++)
        vm->syms[i] = ref(r, syms[i]);
    job j = {.args = {.bufs = vm->bufs, .syms = vm->syms, .err = &err, .nparts = 1}};
    int32_t n = parts(vm, ref(r, syms[k->nsyms]));
    int64_t start = vm->profiling ? rx_now_ns() : 0;
    for (int32_t i = 0; i < k->nphases && !err; i++) {
        j.fn = vm->exe->entries[k->phase0 + i];
        j.args.nparts = r->p->phases[k->phase0 + i] ? n : 1;
        rx_pool_run(vm->pool, (int32_t)j.args.nparts, part, &j);
    }
    if (vm->profiling)
        note(vm, (size_t)x[0], start);
    return err ? kernel_failed(r, k, err) : RELAX_OK;
}

static DLTensor describe(const run *r, rx_reg *reg, int64_t *dims)
{
    if (reg->type < 0) {
        DLTensor d = rx_tensor_view((const rx_tensor *)reg->u.obj);
        d.data = reg->data;
        return d;
    }
    const rx_pkg_type *t = &r->p->types[reg->type];
    int64_t bytes;
    rx_pkg_type_bytes(r->p, t, r->slots, dims, &bytes);
    return (DLTensor){
        .data = reg->data, .device = {kDLCPU, 0}, .ndim = t->ndim, .dtype = rx_dtype_to_dl(t->dtype), .shape = dims};
}

static relax_status host_failed(run *r, const rx_libfn *f, relax_status s)
{
    if (s == RELAX_E_NOMEM)
        return oom(r);
    r->vm->error[sizeof r->vm->error - 1] = 0;
    return rx_vm_fail(r->vm, s == RELAX_E_BOUND ? RXE_INDEX : RXE_LIBRARY_FAILED, "%s failed: %s", f->name,
                      *r->vm->error ? r->vm->error : "it gives no reason");
}

static relax_status library(run *r, const int32_t *x)
{
    relax_vm *vm = r->vm;
    const rx_libfn *f = &vm->libs[x[0]];
    int32_t n = x[1], nsyms = x[2 + n];
    for (int32_t i = 0; i < n; i++) {
        vm->dl[i] = describe(r, &r->regs[x[2 + i]], vm->dl_dims + (size_t)i * RX_PKG_MAX_NDIM);
        vm->dlp[i] = &vm->dl[i];
    }
    for (int32_t i = 0; i < nsyms; i++)
        vm->syms[i] = ref(r, x[3 + n + i]);
    vm->error[0] = 0;
    const relax_library_call call = {.struct_size = sizeof call,
                                     .nargs = n,
                                     .nsyms = nsyms,
                                     .args = vm->dlp,
                                     .syms = vm->syms,
                                     .error = vm->error,
                                     .error_size = sizeof vm->error,
                                     .threads = vm->threads};
    int64_t start = vm->profiling ? rx_now_ns() : 0;
    relax_status s = f->dps(f->user, &call);
    if (vm->profiling)
        note(vm, r->p->n_kernels + (size_t)x[0], start);
    return s ? host_failed(r, f, s) : RELAX_OK;
}

static relax_status packed(run *r, const int32_t *x)
{
    relax_vm *vm = r->vm;
    const rx_libfn *f = &vm->libs[x[0]];
    int32_t n = x[1];
    for (int32_t i = 0; i < n; i++) {
        if (!rx_reg_object(vm, &r->regs[x[2 + i]], r->slots))
            return oom(r);
        vm->anys[i] = rx_reg_any(&r->regs[x[2 + i]]);
    }
    relax_any result = {0};
    vm->error[0] = 0;
    const relax_packed_call call = {.struct_size = sizeof call,
                                    .nargs = n,
                                    .args = vm->anys,
                                    .result = &result,
                                    .error = vm->error,
                                    .error_size = sizeof vm->error,
                                    .vm = vm};
    int64_t start = vm->profiling ? rx_now_ns() : 0;
    relax_status s = f->packed(f->user, &call);
    if (vm->profiling)
        note(vm, r->p->n_kernels + (size_t)x[0], start);
    if (!s && !rx_vm_sane(vm, &result)) {
        snprintf(vm->error, sizeof vm->error, "it returned a value that cannot be used");
        return host_failed(r, f, RELAX_E_INTERNAL);
    }
    if (s) {
        rx_any_release(&result);
        return host_failed(r, f, s);
    }
    rx_reg_set(&r->regs[x[2 + n]], &result);
    return RELAX_OK;
}

/* --- values --- */
static relax_status tuple(run *r, const int32_t *x)
{
    rx_tuple *t = rx_vm_tuple(r->vm, x[1]);
    if (!t)
        return oom(r);
    for (int32_t i = 0; i < x[1]; i++) {
        rx_reg *reg = &r->regs[x[2 + i]];
        bool made = rx_reg_object(r->vm, reg, r->slots);
        relax_any v = rx_reg_any(reg);
        if (!made || !rx_tuple_add(t, &v)) {
            rx_release(&t->h);
            return made ? rx_vm_fail(r->vm, RXE_LIMIT, "tuples are nested too deeply") : oom(r);
        }
    }
    const relax_any v = {.kind = RELAX_ANY_TUPLE, .u.obj = &t->h};
    rx_reg_set(&r->regs[x[0]], &v);
    return RELAX_OK;
}

static void get(run *r, const int32_t *x)
{
    relax_any v = ((const rx_tuple *)r->regs[x[1]].u.obj)->at[x[2]];
    rx_any_retain(&v);
    rx_reg_set(&r->regs[x[0]], &v);
}

static relax_status shape(run *r, const int32_t *x)
{
    int64_t dims[RX_PKG_MAX_NDIM];
    for (int32_t i = 0; i < x[1]; i++)
        dims[i] = ref(r, x[2 + i]);
    rx_shape *s = rx_vm_shape(r->vm, dims, x[1]);
    if (!s)
        return oom(r);
    const relax_any v = {.kind = RELAX_ANY_SHAPE, .u.obj = &s->h};
    rx_reg_set(&r->regs[x[0]], &v);
    return RELAX_OK;
}

static void prim(run *r, const int32_t *x)
{
    int64_t bits = ref(r, x[2]);
    relax_any v = {.kind = x[1]};
    memcpy(&v.u, &bits, sizeof bits);
    rx_reg_set(&r->regs[x[0]], &v);
}

static void move(run *r, const int32_t *x)
{
    rx_reg v = r->regs[x[1]];
    if (v.kind == RELAX_ANY_TENSOR || v.kind == RELAX_ANY_SHAPE || v.kind == RELAX_ANY_TUPLE)
        rx_retain(v.u.obj);
    rx_reg_clear(&r->regs[x[0]]);
    r->regs[x[0]] = v;
}

/* --- control --- */
static relax_status eval(run *r, const int32_t *x)
{
    int32_t at, err = rx_shape_run(r->p, x[0], x[1], r->slots, &at);
    if (!err)
        return RELAX_OK;
    if (err == RXE_DIV_ZERO)
        return rx_vm_fail(r->vm, RXE_DIV_ZERO, "a dimension is divided by zero");
    return rx_vm_fail(r->vm, RXE_LIMIT, "a dimension or size does not fit in 64 bits");
}

static relax_status check(run *r, const int32_t *x)
{
    if (ref(r, x[0]))
        return RELAX_OK;
    return rx_vm_fail(r->vm, (enum rx_err)x[1], "%s: found %lld, expected %lld", rx_pkg_str(r->p, x[2]),
                      (long long)ref(r, x[3]), (long long)ref(r, x[4]));
}

/* A callee's parameters are objects: types of registers speak of the caller's slots. */
static relax_status call(run *r, int32_t fn, const int32_t *args)
{
    int32_t n = args[0], result = args[1 + n];
    const rx_pkg_fn *f = &r->p->fns[fn];
    if (cancelled(r->vm))
        return stopped(r);
    if (n != f->nparams)
        return rx_vm_fail(r->vm, RXE_ARG_COUNT, "%s takes %d arguments, %d are given", rx_pkg_str(r->p, f->name),
                          f->nparams, n);
    for (int32_t i = 0; i < n; i++)
        if (!rx_reg_object(r->vm, &r->regs[args[1 + i]], r->slots))
            return oom(r);
    size_t caller = rx_vm_top(r->vm)->reg0;
    relax_status s = push(r, fn, result);
    for (int32_t i = 0; !s && i < n; i++) {
        relax_any v = rx_reg_any(&r->vm->regs[caller + (size_t)args[1 + i]]);
        rx_any_retain(&v);
        rx_reg_set(&r->regs[i], &v);
    }
    return s;
}

static relax_status truth(run *r, const rx_reg *reg, bool *is)
{
    if (reg->kind == RELAX_ANY_INT) {
        *is = reg->u.i != 0;
        return RELAX_OK;
    }
    if (reg->kind != RELAX_ANY_TENSOR || rx_reg_dtype(r->vm, reg) != RELAX_BOOL ||
        rx_reg_bytes(r->vm, reg, r->slots) != 1)
        return rx_vm_fail(r->vm, RXE_ARG_KIND, "a condition is neither a bool nor a tensor of one bool");
    *is = *(const uint8_t *)reg->data != 0;
    return RELAX_OK;
}

/* The value leaves the frame: what lies in its arena (at the end of the host's call: in any lent memory) is copied. */
static relax_status ret(run *r, int32_t reg, bool *done)
{
    relax_vm *vm = r->vm;
    bool last = vm->nframes == 1;
    if (!rx_reg_object(vm, &r->regs[reg], r->slots))
        return oom(r);
    relax_any v = rx_reg_any(&r->regs[reg]);
    rx_any_retain(&v);
    if (!rx_any_escape(vm, &v, last ? NULL : rx_vm_top(vm))) {
        rx_any_release(&v);
        return oom(r);
    }
    int32_t result = rx_vm_top(vm)->result;
    if (last) {
        relax_status s = rx_vm_fill_outs(vm, &v);
        if (s) {
            rx_any_release(&v);
            return s;
        }
        *r->result = v;
        *done = true;
        return RELAX_OK;
    }
    pop(r);
    rx_reg_set(&r->regs[result], &v);
    return RELAX_OK;
}

/* words of an instruction: the verifier has walked the same letters */
static int32_t length(const int32_t *code)
{
    int32_t n = 1;
    for (const char *letter = rx_bc_operands[*code]; *letter; letter++)
        n += *letter == 'p' ? 2 : *letter == 'R' || *letter == 'B' || *letter == 'V' ? 1 + code[n] : 1;
    return n;
}

static relax_status step(run *r, const int32_t *x, int32_t *next, bool *done)
{
    relax_status s = RELAX_OK;
    bool is = false;
    switch ((rx_bc)x[-1]) {
    case RX_BC_KERNEL: return kernel(r, x);
    case RX_BC_LIB: return library(r, x);
    case RX_BC_PACKED: return packed(r, x);
    case RX_BC_OUT: return out(r, x);
    case RX_BC_ALLOC: return alloc(r, x[0], x[1]);
    case RX_BC_FRAME: return frame(r, ref(r, x[0]));
    case RX_BC_ARENA: return arena(r, x);
    case RX_BC_VIEW: return view(r, x);
    case RX_BC_CONST: {
        const rx_pkg_const *c = &r->p->consts[x[1]];
        set_lazy(r, x[0], c->type, (uint8_t *)(uintptr_t)r->p->data + c->offset, NULL);
        return RELAX_OK;
    }
    case RX_BC_TUPLE: return tuple(r, x);
    case RX_BC_GET: get(r, x); return RELAX_OK;
    case RX_BC_SHAPE: return shape(r, x);
    case RX_BC_PRIM: prim(r, x); return RELAX_OK;
    case RX_BC_STR: {
        const relax_any v = {.kind = RELAX_ANY_STR, .u.s = rx_pkg_str(r->p, x[1])};
        rx_reg_set(&r->regs[x[0]], &v);
        return RELAX_OK;
    }
    case RX_BC_FUNC: {
        const relax_any v = {.kind = RELAX_ANY_FUNC, .u.i = x[1]};
        rx_reg_set(&r->regs[x[0]], &v);
        return RELAX_OK;
    }
    case RX_BC_MOVE: move(r, x); return RELAX_OK;
    case RX_BC_KILL: rx_reg_clear(&r->regs[x[0]]); return RELAX_OK;
    case RX_BC_EVAL: return eval(r, x);
    case RX_BC_MATCH: return rx_vm_match(r->vm, r->f, &r->regs[x[0]], r->slots, x);
    case RX_BC_BOUND: return rx_vm_bound(r->vm, r->f, r->slots, &r->p->syms[r->f->sym0 + x[0]]);
    case RX_BC_CHECK: return check(r, x);
    case RX_BC_CALL: return call(r, x[0], x + 1);
    case RX_BC_CALLR: return call(r, (int32_t)r->regs[x[0]].u.i, x + 1);
    case RX_BC_IF:
        s = truth(r, &r->regs[x[0]], &is);
        *next = !s && !is ? x[1] : *next;
        return s;
    case RX_BC_BRANCH: *next = ref(r, x[0]) ? *next : x[1]; return RELAX_OK;
    case RX_BC_JUMP: *next = x[0]; return RELAX_OK;
    case RX_BC_RET: return ret(r, x[0], done);
    case RX_BC_COUNT: break;
    }
    return RELAX_OK;
}

static relax_status loop(run *r)
{
    relax_status s = RELAX_OK;
    for (bool done = false; !s && !done;) {
        rx_vmframe *fr = rx_vm_top(r->vm);
        const int32_t *at = r->code + fr->pc;
        size_t self = r->vm->nframes;
        int32_t next = fr->pc + length(at);
        fr->pc = next;
        s = step(r, at + 1, &next, &done);
        if (r->vm->nframes == self)
            rx_vm_top(r->vm)->pc = next;
    }
    return s;
}

relax_status rx_vm_call(relax_vm *vm, int32_t fn, const relax_any *args, int32_t nargs, const DLTensor *const *outs,
                        int32_t nouts, relax_any *result)
{
    memset(result, 0, sizeof *result);
    if (fn < 0 || fn >= (int32_t)vm->p->n_fns || (vm->p->fns[fn].flags & RX_FN_PRIVATE))
        return rx_error(vm->ctx, RXE_NOT_FOUND, NULL, NULL, "the executable has no public function %d", fn);
    if (vm->busy)
        return rx_error(vm->ctx, RXE_STATE, NULL, "make another VM for it", "this VM is already running a function");
    run r = {.vm = vm, .p = vm->p, .result = result};
    vm->busy = true;
    vm->calls++;
    vm->args = args;
    vm->nargs = nargs;
    vm->outs = outs;
    vm->nouts = outs ? nouts : 0;
    relax_status s = push(&r, fn, 0);
    if (!s)
        s = rx_vm_args(vm, r.f, r.regs);
    if (!s)
        s = loop(&r);
    while (vm->nframes)
        pop(&r);
    rx_vm_arena_reset(vm);
    rx_vm_trim(vm);
    vm->busy = false;
    return s;
}
