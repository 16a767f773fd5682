/* relax_plugin.h: what a plugin for librelax includes (with relax.h for the types). A plugin is a shared object that
 * exports
 *
 *     RELAX_PLUGIN_EXPORT const relax_plugin *relax_plugin_query(const relax_host *host);
 *
 * and never links librelax: it calls the library through host->api. The host loads it by path (relax_plugin_load). See
 * docs/plugins.md. */
#ifndef RELAX_PLUGIN_H
#define RELAX_PLUGIN_H
#include "relax.h"
#ifdef __cplusplus
extern "C" {
#endif
#if defined(__GNUC__)
#define RELAX_PLUGIN_EXPORT __attribute__((visibility("default")))
#else
#define RELAX_PLUGIN_EXPORT
#endif

/* Majors must agree. A plugin that needs minor k of a major runs on hosts with minor >= k: the table only grows at its
 * end. */
#define RELAX_PLUGIN_ABI_MAJOR 1
#define RELAX_PLUGIN_ABI_MINOR 0

typedef struct relax_op_call relax_op_call; /* one call of a plugin's operator while it is deduced or lowered */

/* The library's functions; each is the one of relax.h with that name. */
typedef struct relax_host_api {
    uint32_t struct_size;
    uint32_t reserved;
    /* messages */
    void (*log)(relax_context *ctx, relax_log_level level, const char *text);
    relax_status (*fail)(relax_context *ctx, relax_status status, const char *text,
                         const char *hint); /* records an error; gives its status back */
    /* modules and functions */
    uint32_t (*module_function_count)(relax_module *m);
    relax_function *(*module_function)(relax_module *m, uint32_t i);
    relax_function *(*module_find)(relax_module *m, const char *name);
    relax_status (*module_parse_into)(relax_module *m, const char *name, const char *text, size_t length);
    relax_status (*module_remove)(relax_module *m, relax_function *f);
    const char *(*function_name)(const relax_function *f);
    int32_t (*function_is_prim)(const relax_function *f);
    uint32_t (*function_param_count)(const relax_function *f);
    relax_value *(*function_param)(relax_function *f, uint32_t i);
    relax_value *(*function_result)(relax_function *f);
    relax_status (*function_visit)(relax_function *f, int32_t (*visit)(void *user, relax_value *v), void *user);
    size_t (*function_text)(relax_function *f, char *out, size_t size);
    /* values */
    int32_t (*value_kind)(const relax_value *v);
    const char *(*value_op)(const relax_value *v);
    const char *(*value_callee)(const relax_value *v);
    const char *(*value_name)(const relax_value *v);
    uint32_t (*value_arg_count)(const relax_value *v);
    relax_value *(*value_arg)(const relax_value *v, uint32_t i);
    relax_status (*value_attr_text)(const relax_value *v, const char *key, char *out, size_t size);
    const relax_type *(*value_type)(const relax_value *v);
    const relax_expr *(*value_dim)(const relax_value *v, int32_t axis);
    uint32_t (*value_use_count)(relax_value *v);
    relax_status (*value_replace)(relax_value *v, relax_value *with);
    relax_status (*value_set_arg)(relax_value *v, uint32_t i, relax_value *arg);
    relax_status (*value_remove)(relax_value *v);
    relax_builder *(*insert_before)(relax_value *v);
    relax_status (*insert_end)(relax_builder *b);
    /* building */
    relax_value *(*op)(relax_builder *b, const char *name, relax_value *const *args, uint32_t n, const char *attrs);
    relax_value *(*constant)(relax_builder *b, relax_dtype dtype, const int64_t *dims, int32_t ndim, const void *data);
    relax_value *(*scalar)(relax_builder *b, relax_dtype dtype, double v);
    relax_value *(*call_dps_library)(relax_builder *b, const char *name, relax_value *const *args, uint32_t n,
                                     const char *out);
    relax_value *(*tuple)(relax_builder *b, relax_value *const *fields, uint32_t n);
    relax_value *(*tuple_get)(relax_builder *b, relax_value *tuple, uint32_t index);
    /* annotations and dims */
    int32_t (*type_kind)(const relax_type *t);
    relax_dtype (*type_dtype)(const relax_type *t);
    int32_t (*type_ndim)(const relax_type *t);
    const relax_expr *(*type_dim)(const relax_type *t, int32_t i);
    const relax_type *(*type_tensor)(relax_context *ctx, const relax_expr *const *dims, int32_t ndim,
                                     relax_dtype dtype);
    const relax_type *(*type_tuple)(relax_context *ctx, const relax_type *const *fields, uint32_t n);
    size_t (*type_text)(const relax_type *t, char *out, size_t size);
    const relax_expr *(*dim_const)(relax_context *ctx, int64_t v);
    const relax_expr *(*dim_add)(const relax_expr *a, const relax_expr *b);
    const relax_expr *(*dim_mul)(const relax_expr *a, const relax_expr *b);
    const relax_expr *(*dim_floordiv)(const relax_expr *a, const relax_expr *b);
    size_t (*dim_text)(const relax_expr *e, char *out, size_t size);
    /* calls of the plugin's own operators */
    relax_context *(*op_call_context)(const relax_op_call *c);
    uint32_t (*op_call_arg_count)(const relax_op_call *c);
    const relax_type *(*op_call_arg)(const relax_op_call *c, uint32_t i);
    const relax_type *(*op_call_result)(const relax_op_call *c);                 /* NULL while deducing */
    int64_t (*op_call_int)(const relax_op_call *c, const char *key, int64_t absent);
    double (*op_call_float)(const relax_op_call *c, const char *key, double absent);
    /* run-time functions */
    relax_status (*library_register)(relax_context *ctx, const char *name, relax_library_fn fn, void *user);
} relax_host_api;

typedef struct relax_host {
    uint32_t struct_size;
    uint32_t abi_major, abi_minor;
    relax_context *context;                             /* that loads the plugin: what it adds is added there */
    const relax_host_api *api;                          /* lives as long as the process has librelax */
} relax_host;

typedef struct relax_plugin_pass { const char *name, *doc; relax_pass_fn run; void *user; } relax_plugin_pass;
/* An operator. deduce gives the annotation of the result (NULL: an error, recorded through api->fail). lower gives the
 * statements of its tensor program in the text form, over buffers x0, x1, … (tensor arguments), y0, … (results) and the
 * symbols of their shapes; the text must live until the next call into the plugin. lower NULL: no tensor program. */
typedef struct relax_plugin_op {
    const char *name, *attrs, *doc;                     /* attrs: "axis:int=-1, eps:float=1e-5, wide:bool?" */
    int32_t min_args, max_args;
    const relax_type *(*deduce)(void *user, const relax_op_call *c);
    const char *(*lower)(void *user, const relax_op_call *c);
    void *user;
} relax_plugin_op;
typedef struct relax_plugin_library { const char *name; relax_library_fn fn; void *user; } relax_plugin_library;
typedef struct relax_plugin {
    uint32_t struct_size;
    uint32_t abi_major, abi_minor;                      /* needed */
    const char *name, *version, *license;
    const relax_plugin_pass *passes; uint32_t npasses;
    const relax_plugin_op *ops; uint32_t nops;
    const relax_plugin_library *libraries; uint32_t nlibraries;
} relax_plugin;
typedef const relax_plugin *(*relax_plugin_query_fn)(const relax_host *host);
RELAX_PLUGIN_EXPORT const relax_plugin *relax_plugin_query(const relax_host *host);

#ifdef __cplusplus
}
#endif
#endif
