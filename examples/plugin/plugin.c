/* plugin.c: a plugin that adds an operator, `softcap(x, cap=30.0)`, and a pass, `fold-double-negative`. It includes
 * only headers:
 *
 *     cc -shared -fPIC -fvisibility=hidden $(pkg-config --cflags relax) plugin.c -o plugin.so
 *     relax opt module.txt --plugin ./plugin.so --passes fold-double-negative,dce */
#include <relax_plugin.h>
#include <stdio.h>
#include <string.h>

typedef struct state { const relax_host_api *api; char text[1024]; } state;
static state the_state;                                  /* a plugin may have globals; the library has none */

/* ---- the operator ---- */
static const relax_type *deduce(void *user, const relax_op_call *c)
{
    const relax_host_api *api = ((state *)user)->api;
    const relax_type *t = api->op_call_arg(c, 0);
    if (api->type_kind(t) == RELAX_TYPE_TENSOR && api->type_dtype(t) == RELAX_F32) return t;
    api->fail(api->op_call_context(c), RELAX_E_TYPE, "softcap: an f32 tensor is expected", "cast it with astype");
    return NULL;
}

/* y0[i0, i1] = cap * tanh(x0[i0, i1] / cap), for any rank */
static const char *lower(void *user, const relax_op_call *c)
{
    state *s = user;
    const relax_host_api *api = s->api;
    const relax_type *t = api->op_call_arg(c, 0);
    int rank = api->type_ndim(t);
    double cap = api->op_call_float(c, "cap", 30.0);
    char index[128] = "", dim[128];
    size_t n = 0;
    for (int i = 0; i < rank && n < sizeof s->text - 256; i++) {
        api->dim_text(api->type_dim(t, i), dim, sizeof dim);
        n += (size_t)snprintf(s->text + n, sizeof s->text - n, "for i%d in %s { ", i, dim);
        snprintf(index + strlen(index), sizeof index - strlen(index), "%si%d", i ? ", " : "", i);
    }
    n += (size_t)snprintf(s->text + n, sizeof s->text - n, "y0[%s] = %.9g * tanh(x0[%s] / %.9g)", index, cap, index,
                          cap);
    for (int i = 0; i < rank && n < sizeof s->text - 3; i++)
        n += (size_t)snprintf(s->text + n, sizeof s->text - n, " }");
    return s->text;
}

/* ---- the pass: negative(negative(x)) -> x ---- */
static int32_t visit(void *user, relax_value *v)
{
    const relax_host_api *api = ((state *)user)->api;
    const char *op = api->value_op(v);
    relax_value *x = api->value_arg(v, 0);
    if (!op || strcmp(op, "negative") || !api->value_op(x) || strcmp(api->value_op(x), "negative")) return 0;
    return api->value_replace(v, api->value_arg(x, 0)) != RELAX_OK;
}

static relax_status fold(void *user, relax_module *m)
{
    const relax_host_api *api = ((state *)user)->api;
    for (uint32_t i = 0; i < api->module_function_count(m); i++) {
        relax_function *f = api->module_function(m, i);
        relax_status st = api->function_is_prim(f) ? RELAX_OK : api->function_visit(f, visit, user);
        if (st != RELAX_OK) return st;
    }
    return RELAX_OK;
}

RELAX_PLUGIN_EXPORT const relax_plugin *relax_plugin_query(const relax_host *host)
{
    static const relax_plugin_op ops[] = {
        { "softcap", "cap:float=30.0", "cap * tanh(x / cap)", 1, 1, deduce, lower, &the_state },
    };
    static const relax_plugin_pass passes[] = {
        { "fold-double-negative", "negative(negative(x)) becomes x", fold, &the_state },
    };
    static const relax_plugin plugin = {
        sizeof plugin, RELAX_PLUGIN_ABI_MAJOR, 0, "example", "1.0", "Apache-2.0", passes, 1, ops, 1, NULL, 0,
    };
    if (host->abi_major != RELAX_PLUGIN_ABI_MAJOR) return NULL;
    the_state.api = host->api;
    return &plugin;
}
