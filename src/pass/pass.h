/* pass.h: passes over modules. A pass is one row of passes.def and one file; the pipeline is one list in pipeline.c. */
#ifndef RX_PASS_H
#define RX_PASS_H
#include "graph/op.h"

/* what a pass works on while it runs */
typedef struct rx_pass_opt { const char *key, *value; } rx_pass_opt;            /* interned */
typedef struct rx_pass_run {
    relax_context *ctx;
    relax_module *m;
    rx_arena *a;                       /* scratch, freed after the pass */
    const relax_target *target;        /* NULL: none chosen yet (target-neutral pipeline runs) */
    const rx_pass_opt *opts; uint32_t nopts;
} rx_pass_run;
const char *rx_pass_str(const rx_pass_run *r, const char *key, const char *absent);
int64_t rx_pass_int(const rx_pass_run *r, const char *key, int64_t absent);     /* RXE_ATTR when it is no integer */
bool rx_pass_bool(const rx_pass_run *r, const char *key, bool absent);

typedef struct rx_pass {
    const char *name;
    uint32_t needs, keeps, makes;      /* RX_M_*: required before; still true after; true after */
    void (*fn)(rx_pass_run *r);        /* unwinds on error */
    const char *options;               /* keys that it accepts, comma separated */
    const char *doc;
    relax_pass_fn host; void *user;    /* instead of fn: a host's or a plugin's pass */
} rx_pass;

/* --- manager.c --- */
typedef struct rx_step {
    const rx_pass *pass;
    rx_pass_opt *opts; uint32_t nopts;
    int64_t ns;                        /* time of the last run */
} rx_step;
struct relax_pipeline {
    uint32_t magic;
    relax_context *ctx;
    rx_arena arena;
    RX_VEC(rx_step) steps;
    bool verify_each;
    const relax_target *target;        /* NULL: passes that need one leave the module as it is */
    const char *print_before, *print_after;         /* interned lists, NULL: none */
    void (*print)(void *user, const char *pass, int32_t after, const char *text);
    void *print_user;
};
#define RX_PIPE_MAGIC 0x50495045u
struct rx_passtab {
    RX_VEC(const rx_pass *) all; rx_map by_name;
    RX_VEC(void *) plugins; bool closing;           /* shared objects of plugins; closed when the context goes */
};
void rx_passes_init(relax_context *ctx);                                        /* fills ctx->passes; idempotent */
const rx_pass *rx_pass_find(relax_context *ctx, const char *name);              /* NULL if unknown */
void rx_pass_add(relax_context *ctx, const rx_pass *p);                         /* a plugin's; RXE_DUPLICATE */
relax_pipeline *rx_pipeline_parse(relax_context *ctx, const char *text);
void rx_pipeline_free(relax_pipeline *p);
void rx_pipeline_insert(relax_pipeline *p, uint32_t at, const rx_step *s);
int64_t rx_pipeline_find(const relax_pipeline *p, const char *name); /* index of the first step of that name, -1 */
void rx_pipeline_text(rx_buf *b, const relax_pipeline *p);
/* Runs all steps. When one fails, m is as it was before that step and the call unwinds (handles into m are then void).
 */
void rx_pipeline_run(relax_pipeline *p, relax_module *m, const relax_target *target);
bool rx_name_in_list(const char *list, const char *name);                       /* "all" or "a,b,c" */
/* --- pipeline.c --- */
extern const char rx_default_pipeline[];

/* --- the passes: a function per row of passes.def, in the file of its name --- */
#define PASS(id, name, needs, keeps, makes, options, doc) void rx_pass_##id(rx_pass_run *r);
#include "pass/passes.def"
#undef PASS
/* --- plan_memory.c --- */
/* Checks a plan independently: no two tensors that are alive together may overlap. Reports through RXE_VERIFY; number
 * of breaks. */
uint32_t rx_plan_check(relax_function *f);
#endif
