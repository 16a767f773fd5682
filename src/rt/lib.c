/* lib.c: functions of the host by name. A table per context, looked through when a VM is created; VMs keep what they
 * found. C functions of any signature go through libffi, opened at the first such registration. Entries live as long as
 * the context (an unregistered one only loses its name), so a VM's copy of a pointer stays good. */
#include <ffi.h>

#include "rt/rt_int.h"

typedef struct cfn cfn;
typedef struct entry {
    struct entry *next;
    rx_libfn fn;                       /* name NULL: unregistered */
    cfn *c;
    size_t size;
    char name[];
} entry;
typedef struct ffi_lib {
    void *dl;
    ffi_status (*prep)(ffi_cif *, ffi_abi, unsigned int, ffi_type *, ffi_type **);
    void (*call)(ffi_cif *, void (*)(void), void *, void **);
    ffi_type *none, *pointer, *i32, *i64, *f32, *f64;
} ffi_lib;
struct rx_libtab { entry *first; ffi_lib ffi; };

enum { MAX_C_ARGS = 32 };
struct cfn {
    void (*symbol)(void);
    void (*call)(ffi_cif *, void (*)(void), void *, void **);
    ffi_cif cif;
    int32_t n, tensors, syms;
    bool has_result;
    char letters[MAX_C_ARGS];
    ffi_type *types[MAX_C_ARGS];
};

static void tab_destroy(relax_context *ctx)
{
    struct rx_libtab *t = ctx->libs;
    while (t->first) {
        entry *e = t->first;
        t->first = e->next;
        if (e->c)
            rx_heap_free(&ctx->heap, e->c, sizeof *e->c);
        rx_heap_free(&ctx->heap, e, e->size);
    }
    if (t->ffi.dl)
        rx_dl_close(t->ffi.dl);
    rx_heap_free(&ctx->heap, t, sizeof *t);
    ctx->libs = NULL;
}

static struct rx_libtab *tab(relax_context *ctx)
{
    if (ctx->libs || ctx->n_at_destroy == RX_COUNT(ctx->at_destroy))
        return ctx->libs;
    ctx->libs = rx_heap_alloc(&ctx->heap, sizeof *ctx->libs, _Alignof(max_align_t));
    if (ctx->libs) {
        memset(ctx->libs, 0, sizeof *ctx->libs);
        ctx->at_destroy[ctx->n_at_destroy++] = tab_destroy;
    }
    return ctx->libs;
}

static entry *find(const relax_context *ctx, const char *name)
{
    for (entry *e = ctx->libs ? ctx->libs->first : NULL; e; e = e->next)
        if (e->fn.name && strcmp(e->fn.name, name) == 0)
            return e;
    return NULL;
}

bool rx_lib_find(relax_context *ctx, const char *name, int32_t kind, rx_libfn *out)
{
    if (strncmp(name, "rx.", 3) == 0)
        return rx_builtin_find(name, kind, out);
    const entry *e = find(ctx, name);
    if (!e || e->fn.kind != kind)
        return false;
    *out = e->fn;
    return true;
}

static relax_status add(relax_context *ctx, const char *name, rx_libfn fn, entry **out)
{
    if (strncmp(name, "rx.", 3) == 0 || !*name)
        return rx_error(ctx, RXE_BAD_VALUE, NULL, NULL,
                        "'%s' cannot be registered: names that begin with rx. are the library's own", name);
    if (find(ctx, name))
        return rx_error(ctx, RXE_DUPLICATE, NULL, "unregister it first", "library function %s is already registered",
                        name);
    size_t n = strlen(name) + 1, size = sizeof(entry) + n;
    struct rx_libtab *t = tab(ctx);
    entry *e = t ? rx_heap_alloc(&ctx->heap, size, _Alignof(max_align_t)) : NULL;
    if (!e)
        return rx_error(ctx, RXE_OOM, NULL, NULL, "out of memory");
    *e = (entry){.next = t->first, .fn = fn, .size = size};
    memcpy(e->name, name, n);
    e->fn.name = e->name;
    t->first = e;
    if (out)
        *out = e;
    return RELAX_OK;
}

relax_status rx_lib_register(relax_context *ctx, const char *name, relax_library_fn fn, void *user)
{
    return add(ctx, name, (rx_libfn){.kind = RX_LIB_DPS, .dps = fn, .user = user}, NULL);
}

relax_status rx_lib_register_packed(relax_context *ctx, const char *name, relax_packed_fn fn, void *user)
{
    return add(ctx, name, (rx_libfn){.kind = RX_LIB_PACKED, .packed = fn, .user = user}, NULL);
}

relax_status rx_lib_unregister(relax_context *ctx, const char *name)
{
    entry *e = find(ctx, name);
    if (!e)
        return rx_error(ctx, RXE_NOT_FOUND, NULL, NULL, "no library function %s is registered", name);
    e->fn.name = NULL;
    return RELAX_OK;
}

/* --- external libraries --- */
#define LIBRARY(name) relax_status rx_##name##_register(relax_context *ctx);
#include "rt/libraries.def"
#undef LIBRARY

relax_status rx_lib_load(relax_context *ctx, const char *library)
{
#define LIBRARY(name)                 \
    if (strcmp(library, #name) == 0)  \
        return rx_##name##_register(ctx);
#include "rt/libraries.def"
#undef LIBRARY
    return rx_error(ctx, RXE_NO_LIBRARY, NULL, NULL, "this build knows no library %s", library);
}

/* --- C functions --- */
static bool load_ffi(ffi_lib *f, char *why, size_t n)
{
    if (f->dl)
        return true;
    void *dl = rx_dl_open("libffi.so.8", why, n);
    if (!dl)
        dl = rx_dl_open("libffi.so.7", why, n);
    if (!dl)
        return false;
    *(void **)&f->prep = rx_dl_sym(dl, "ffi_prep_cif");
    *(void **)&f->call = rx_dl_sym(dl, "ffi_call");
    f->none = rx_dl_sym(dl, "ffi_type_void");
    f->pointer = rx_dl_sym(dl, "ffi_type_pointer");
    f->i32 = rx_dl_sym(dl, "ffi_type_sint32");
    f->i64 = rx_dl_sym(dl, "ffi_type_sint64");
    f->f32 = rx_dl_sym(dl, "ffi_type_float");
    f->f64 = rx_dl_sym(dl, "ffi_type_double");
    if (!f->prep || !f->call || !f->none || !f->pointer || !f->i32 || !f->i64 || !f->f32 || !f->f64) {
        rx_dl_close(dl);
        return false;
    }
    f->dl = dl;
    return true;
}

static relax_status fail(const relax_library_call *c, const char *why)
{
    size_t n = RX_MIN(strlen(why), c->error_size - 1);
    memcpy(c->error, why, n);
    c->error[n] = 0;
    return RELAX_E_INVALID;
}

static relax_status call_c(void *user, const relax_library_call *call)
{
    cfn *f = user;
    union { void *p; int32_t i; int64_t l; float f; double d; } v[MAX_C_ARGS];
    void *args[MAX_C_ARGS];
    ffi_arg result = 0;
    if (call->nargs != f->tensors || call->nsyms != f->syms)
        return fail(call, "the number of tensors or symbolic arguments differs from the registered signature");
    int32_t tensor = 0, sym = 0;
    for (int32_t i = 0; i < f->n; i++) {
        int64_t s = f->letters[i] == 'p' ? 0 : call->syms[sym++];
        args[i] = &v[i];
        switch (f->letters[i]) {
        case 'p': v[i].p = call->args[tensor++]->data; break;
        case 'i':
            if (s < INT32_MIN || s > INT32_MAX)
                return fail(call, "a symbolic argument does not fit in an int");
            v[i].i = (int32_t)s;
            break;
        case 'l': v[i].l = s; break;
        default: memcpy(&v[i].d, &s, sizeof s);
        }
        if (f->letters[i] == 'f')
            v[i].f = (float)v[i].d;
    }
    f->call(&f->cif, f->symbol, &result, args);
    return f->has_result && (int32_t)result != 0 ? fail(call, "it returned an error") : RELAX_OK;
}

static bool parse(cfn *f, const ffi_lib *lib, const char *sig)
{
    if ((sig[0] != 'v' && sig[0] != 'i') || sig[1] != ':')
        return false;
    f->has_result = sig[0] == 'i';
    for (sig += 2; *sig; sig++) {
        if (f->n == MAX_C_ARGS)
            return false;
        f->letters[f->n] = *sig;
        switch (*sig) {
        case 'p': f->types[f->n] = lib->pointer; break;
        case 'i': f->types[f->n] = lib->i32; break;
        case 'l': f->types[f->n] = lib->i64; break;
        case 'f': f->types[f->n] = lib->f32; break;
        case 'd': f->types[f->n] = lib->f64; break;
        default: return false;
        }
        f->tensors += *sig == 'p';
        f->syms += *sig != 'p';
        f->n++;
    }
    return true;
}

relax_status rx_lib_register_c(relax_context *ctx, const char *name, void *symbol, const char *signature)
{
    char why[256] = "";
    struct rx_libtab *t = tab(ctx);
    cfn *f = t ? rx_heap_alloc(&ctx->heap, sizeof *f, _Alignof(max_align_t)) : NULL;
    if (!f)
        return rx_error(ctx, RXE_OOM, NULL, NULL, "out of memory");
    memset(f, 0, sizeof *f);
    relax_status s = RELAX_OK;
    entry *e = NULL;
    if (!load_ffi(&t->ffi, why, sizeof why))
        s = rx_error(ctx, RXE_NO_LIBRARY, NULL, "install libffi, or register a function in destination-passing style",
                     "C functions need libffi.so.8, which cannot be opened: %s", why);
    else if (!parse(f, &t->ffi, signature) || t->ffi.prep(&f->cif, FFI_DEFAULT_ABI, (unsigned)f->n,
                                                          f->has_result ? t->ffi.i32 : t->ffi.none, f->types) != FFI_OK)
        s = rx_error(ctx, RXE_BAD_VALUE, NULL, "as in i:pppll", "'%s' is not the signature of a C function", signature);
    else
        s = add(ctx, name, (rx_libfn){.kind = RX_LIB_DPS, .dps = call_c, .user = f}, &e);
    if (s) {
        rx_heap_free(&ctx->heap, f, sizeof *f);
        return s;
    }
    f->call = t->ffi.call;
    *(void **)&f->symbol = symbol;
    e->c = f;
    return RELAX_OK;
}
