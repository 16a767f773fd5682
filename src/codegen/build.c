/* build.c: from a module to the bytes of an executable: passes, kernels of the target, bytecode, file.
 *
 * Works on a clone; the caller's module stays as it is. Kernels are deduplicated by structure: prim funcs that are
 * equal but for names share native code (equal layers cost one). */
#include "codegen/build.h"
#include "codegen/codegen.h"
#include "codegen/vm/vm.h"
#include "pass/pass.h"

/* ---- equal tensor programs ---- */
typedef struct unique { relax_module *m; rx_map by_hash; RX_VEC(relax_function *) all; rx_map rep; } unique;

static relax_function *representative(unique *u, relax_function *f, rx_arena *a)
{
    uint64_t h = rx_prim_hash(u->m->ctx, f->prim);
    relax_function *g = rx_map_get(&u->by_hash, h);
    if (g && rx_prim_equal(u->m->ctx, f->prim, g->prim)) return g;
    rx_push(a, &u->all, f);
    if (!g) rx_map_put(&u->by_hash, h, f);
    return f;
}

static void redirect(void *arg, relax_value *v)
{
    rx_map *rep = arg;
    if (v->kind == RX_V_CALL_DPS && v->u.callee) v->u.callee = rx_map_get(rep, RX_KEY(v->u.callee));
}

static void find_unique(unique *u, relax_module *m, rx_arena *a)
{
    u->m = m;
    rx_map_init(&u->by_hash, a);
    rx_map_init(&u->rep, a);
    for (relax_function *f = m->first; f; f = f->next)
        if (f->is_prim) rx_map_put(&u->rep, RX_KEY(f), representative(u, f, a));
    for (relax_function *f = m->first; f; f = f->next)
        if (!f->is_prim) rx_fn_visit(f, redirect, &u->rep);
}

static void metadata(relax_module *m, rx_pkgw *w)
{
    for (relax_function *f = m->first; f; f = f->next)
        for (uint32_t i = 0; i < f->attrs.n; i++)
            if (f->attrs.at[i].kind == RX_A_STR && !strncmp(f->attrs.at[i].key, "meta.", 5))
                rx_pkgw_provenance(w, f->attrs.at[i].key + 5, f->attrs.at[i].u.s);
}

static void emit(relax_module *m, const relax_target *t, const char *pipeline, int32_t opt_level, rx_arena *a,
                 uint8_t **bytes, size_t *size)
{
    relax_context *ctx = m->ctx;
    unique u = { 0 };
    find_unique(&u, m, a);
    const rx_prim **prims = RX_NEWN(a, const rx_prim *, u.all.n + 1);
    for (uint32_t i = 0; i < u.all.n; i++) {
        rx_tb tb = { ctx, &m->arena };         /* a pipeline without the pass, or one that added programs behind it */
        if (!(m->props & RX_M_GUARDED)) u.all.at[i]->prim = rx_prim_guard(&tb, u.all.at[i]->prim);
        prims[i] = u.all.at[i]->prim;
    }
    rx_code code = { 0 };
    rx_codegen_options o = { opt_level };
    rx_codegen(ctx, a, t, prims, u.all.n, &o, &code);
    rx_vm_kernel *k = RX_NEWN(a, rx_vm_kernel, u.all.n + 1);
    for (uint32_t i = 0; i < u.all.n; i++)
        k[i] = (rx_vm_kernel){ u.all.at[i], (int32_t)code.kernels[i].nphases, code.kernels[i].parallel };
    rx_pkgw *w = rx_pkgw_new(ctx, a);
    rx_vm_emit(m, w, k, u.all.n, a);
    if (code.so) rx_pkgw_native(w, t, code.so, code.so_size);
    rx_pkgw_provenance(w, "librelax", relax_version_string());
    rx_pkgw_provenance(w, "target", t->name);
    rx_pkgw_provenance(w, "pipeline", pipeline);
    metadata(m, w);
    rx_pkgw_finish(w, bytes, size);
}

static void free_pipeline(void *p)
{
    rx_pipeline_free(p);
}

void rx_build(relax_module *m, const relax_target *t, const char *pipeline, int32_t opt_level, bool verify, rx_arena *a,
              uint8_t **bytes, size_t *size)
{
    relax_context *ctx = m->ctx;
    if (rx_module_verify(m)) rx_unwind(&ctx->heap);
    relax_module *work = rx_module_clone(m);
    work->props &= ~(uint32_t)RX_M_GUARDED;     /* text may claim it: it counts when this pipeline makes it true */
    rx_frame f;
    if (RX_ENTER(&ctx->heap, &f)) {
        relax_pipeline *q = rx_pipeline_parse(ctx, pipeline ? pipeline : "default");
        rx_defer(&ctx->heap, free_pipeline, q);
        q->verify_each = verify;
        rx_pipeline_run(q, work, t);
        emit(work, t, pipeline ? pipeline : "default", opt_level, a, bytes, size);
        rx_leave(&ctx->heap, &f);
        rx_module_free(work);
        return;
    }
    rx_module_free(work);
    rx_unwind(&ctx->heap);
}
