/* oracle_sym.c: sym_simplify, sym_prove, sym_bounds, sym_modular of the oracle against the prover.
 *
 * Every case runs in a context of its own. A case that is judged otherwise stands in the table `listed` with its
 * reason. */
#define TL_JSON
#include "testlib.h"

#include "expr/expr.h"
#include "oracle.h"

int oracle_sym(FILE *out, FILE *err, bool verbose);

static const struct { const char *id, *why; } listed[] = {
    {"", ""},
};

typedef struct world {
    relax_context *ctx;
    rx_map names;
    rx_exvec syms;
    rx_facts *facts;
    rx_exvec conds;
} world;

static rx_ex resolve(void *arg, rx_lexer *l, const char *name)
{
    world *w = arg;
    (void)l;
    return rx_map_get(&w->names, RX_KEY(name));
}

static rx_ex parse(world *w, const char *s)
{
    rx_scope_fns fns = {resolve, NULL, w};
    return rx_parse_expr_text(w->ctx, s, strlen(s), &fns);
}

static void open_world(world *w, const cJSON *j)
{
    const cJSON *v;
    relax_context *ctx = w->ctx;
    rx_map_init(&w->names, &ctx->arena);
    w->facts = rx_facts_new(ctx, &ctx->arena, NULL);
    cJSON_ArrayForEach(v, tl_json_get(j, "vars")) {
        rx_ex s = rx_sym_new(ctx, v->string, strcmp(v->valuestring, "bool") ? RELAX_I64 : RELAX_BOOL);
        rx_map_put(&w->names, RX_KEY(rx_str(ctx, v->string)), (void *)(uintptr_t)s);
        rx_push(&ctx->arena, &w->syms, s);
    }
    cJSON_ArrayForEach(v, tl_json_get(j, "assume")) {
        rx_ex c = parse(w, v->valuestring);
        rx_push(&ctx->arena, &w->conds, c);
        rx_facts_add(w->facts, c);
    }
}

static bool simplify_case(world *w, const cJSON *j)
{
    rx_ex l = parse(w, tl_json_str(j, "lhs")), r = parse(w, tl_json_str(j, "rhs"));
    return rx_prove_eq(w->ctx, w->facts, l, r) == RX_TRUE;
}

static bool prove_case(world *w, const cJSON *j)
{
    rx_ex c = parse(w, tl_json_str(j, "claim"));
    rx_truth t = rx_prove(w->ctx, w->facts, c, NULL);
    return cJSON_IsTrue(tl_json_get(j, "provable")) ? t == RX_TRUE : t != RX_TRUE;
}

static bool modular_case(world *w, const cJSON *j)
{
    int64_t c, b, want_c = (int64_t)tl_json_get(j, "coeff")->valuedouble,
                  want_b = (int64_t)tl_json_get(j, "base")->valuedouble;
    rx_modular(w->ctx, w->facts, parse(w, tl_json_str(j, "expr")), &c, &b);
    if (want_c == 0) return c == 0 && b == want_b;
    return c % want_c == 0 && (b - want_b) % want_c == 0;
}

/* do values from -9 to 9 (a part of them, by a fixed sequence) that satisfy the conditions stay inside [lo, hi]? */
static bool sound_range(world *w, rx_ex e, int64_t lo, int64_t hi)
{
    int64_t v[8], x;
    rx_map env;
    rx_map_init(&env, &w->ctx->arena);
    if (w->syms.n > 8) return true;
    for (uint32_t i = 0; i < w->syms.n; i++) rx_map_put(&env, RX_KEY(w->syms.at[i]), &v[i]);
    uint64_t r = 12345;
    for (int k = 0; k < 3000; k++) {
        bool ok = true;
        for (uint32_t i = 0; i < w->syms.n; i++) {
            r = r * 6364136223846793005ull + 1442695040888963407ull;
            v[i] = (int64_t)((r >> 33) % (k % 3 ? 25 : 3000)) - (k % 3 ? 9 : 1500);
        }
        for (uint32_t i = 0; i < w->conds.n && ok; i++)
            ok = rx_eval(w->ctx, w->conds.at[i], &env, &x) == RX_EVAL_OK && x;
        if (ok && rx_eval(w->ctx, e, &env, &x) == RX_EVAL_OK && (x < lo || x > hi)) return false;
    }
    return true;
}

static bool within(world *w, rx_ex e, const cJSON *want, int64_t bound, bool upper)
{
    if (!want || cJSON_IsNull(want)) return true;
    if (cJSON_IsString(want)) {
        rx_ex b = parse(w, want->valuestring);
        return rx_prove(w->ctx, w->facts, upper ? rx_le(w->ctx, e, b) : rx_le(w->ctx, b, e), NULL) == RX_TRUE;
    }
    return upper ? bound <= (int64_t)want->valuedouble : bound >= (int64_t)want->valuedouble;
}

static bool solve_case(world *w, const cJSON *j);

static bool bounds_case(world *w, const cJSON *j)
{
    if (!strcmp(tl_json_str(j, "kind"), "solve")) return solve_case(w, j);
    rx_ex e = parse(w, tl_json_str(j, "expr"));
    int64_t lo, hi;
    rx_bounds(w->ctx, w->facts, e, &lo, &hi);
    return within(w, e, tl_json_get(j, "lo"), lo, false) && within(w, e, tl_json_get(j, "hi"), hi, true)
        && sound_range(w, e, lo, hi);
}

/* the stated end: null is unbounded, a text or number must be proved equal */
static bool same_end(world *w, const cJSON *want, rx_ex got)
{
    if (!want) return true;
    if (cJSON_IsNull(want) || !got) return cJSON_IsNull(want) && !got;
    rx_ex b = cJSON_IsString(want) ? parse(w, want->valuestring) : rx_int(w->ctx, (int64_t)want->valuedouble);
    return rx_prove_eq(w->ctx, w->facts, b, got) == RX_TRUE;
}

static bool solve_case(world *w, const cJSON *j)
{
    rx_ex all[8];
    int64_t lo[8], hi[8];
    uint32_t n = 0;
    const cJSON *v;
    cJSON_ArrayForEach(v, tl_json_get(j, "for_all")) {
        all[n] = rx_map_get(&w->names, RX_KEY(rx_str(w->ctx, v->string)));
        lo[n] = (int64_t)cJSON_GetArrayItem(v, 0)->valuedouble;
        hi[n++] = (int64_t)cJSON_GetArrayItem(v, 1)->valuedouble;
    }
    rx_ex sym = rx_map_get(&w->names, RX_KEY(rx_str(w->ctx, tl_json_str(j, "solve"))));
    rx_interval r = rx_solve_set(w->ctx, w->facts, parse(w, tl_json_str(j, "claim")), sym, all, lo, hi, n);
    if (cJSON_IsTrue(tl_json_get(j, "empty"))) return r.known && r.empty;
    return r.known && !r.empty && same_end(w, tl_json_get(j, "lo"), r.lo) && same_end(w, tl_json_get(j, "hi"), r.hi);
}

static bool is_listed(const char *id)
{
    for (size_t i = 0; i < RX_COUNT(listed); i++)
        if (!strcmp(listed[i].id, id)) return true;
    return false;
}

static bool run_case(bool (*f)(world *, const cJSON *), const cJSON *j)
{
    tl_heap th;
    world w = {.ctx = tl_context(&th)};
    volatile bool ok = false;
    rx_frame fr;
    if (RX_ENTER(&w.ctx->heap, &fr)) {
        open_world(&w, j);
        ok = f(&w, j);
        rx_leave(&w.ctx->heap, &fr);
    } else {
        tl_print_diags(w.ctx);
    }
    tl_done(&th, w.ctx);
    return ok;
}

static int run_file(const char *name, bool (*f)(world *, const cJSON *), FILE *out, FILE *err, bool verbose)
{
    char file[64], buf[512];
    tl_lines l;
    int passed = 0, total = 0, skipped = 0;
    snprintf(file, sizeof file, "%s.jsonl", name);
    const char *path = tl_oracle(file, buf, sizeof buf);
    if (!path || !tl_lines_open(&l, path)) return 0;
    for (cJSON *j; (j = tl_json_next(&l)); cJSON_Delete(j)) {
        int64_t t0 = rx_now_ns();
        bool ok = run_case(f, j);
        double ms = (double)(rx_now_ns() - t0) / 1e6;
        total++;
        passed += ok;
        if (!ok && is_listed(tl_json_str(j, "id"))) skipped++;
        if (verbose && (!ok || ms > 50)) {
            char *s = cJSON_PrintUnformatted(j);
            fprintf(err, "%s %.1fms %s\n", ok ? "SLOW" : "FAIL", ms, s);
            free(s);
        }
    }
    oracle_line(out, name, passed, total, skipped);
    return total - passed - skipped;
}

int oracle_sym(FILE *out, FILE *err, bool verbose)
{
    int bad = run_file("sym_simplify", simplify_case, out, err, verbose);
    bad += run_file("sym_prove", prove_case, out, err, verbose);
    bad += run_file("sym_bounds", bounds_case, out, err, verbose);
    return bad + run_file("sym_modular", modular_case, out, err, verbose);
}
