/* loads well; its passes break the module, fail, or both, and its operators give nonsense */
#include "plugin.h"

static const relax_host_api *api;

static relax_value *nth(relax_module *m, int n);

typedef struct seek { int left; relax_value *found; } seek;
static int32_t count(void *user, relax_value *v)
{
    seek *s = user;
    if (s->left-- > 0)
        return 0;
    s->found = v;
    return 1;
}

static relax_value *nth(relax_module *m, int n)
{
    seek s = {n, NULL};
    api->function_visit(api->module_find(m, "main"), count, &s);
    return s.found;
}

/* the first binding reads the last one's result */
static relax_status corrupt(void *user, relax_module *m)
{
    (void)user;
    return api->value_set_arg(nth(m, 0), 0, nth(m, 2));
}

static relax_status fails(void *user, relax_module *m)
{
    (void)user;
    relax_value *v = nth(m, 1);
    api->value_replace(v, api->value_arg(v, 0));
    return RELAX_E_UNSUPPORTED;
}

static relax_context *ctx_of;
static relax_status fails_with_text(void *user, relax_module *m)
{
    fails(user, m);
    return api->fail(ctx_of, RELAX_E_TYPE, "nothing to do here", "go elsewhere");
}

static relax_status adds_nonsense(void *user, relax_module *m)
{
    (void)user;
    return api->module_parse_into(m, "plugin", "fn broken(x: Tensor((n,), f32)) { return y }", RELAX_STRLEN);
}

static const relax_type *gives_nothing(void *user, const relax_op_call *c)
{
    (void)user;
    (void)c;
    (void)one_pass;
    return NULL;
}

static const relax_type *as_first(void *user, const relax_op_call *c)
{
    (void)user;
    return api->op_call_arg(c, 0);
}

static const char *syntax(void *user, const relax_op_call *c)
{
    (void)user;
    (void)c;
    return "for i in { y0[] = ";
}

static const char *outside(void *user, const relax_op_call *c)
{
    (void)user;
    (void)c;
    return "for i in 4 { y0[i + 4] = x0[i] }";
}

static const relax_plugin_pass passes[] = {
    {"test-corrupt", "", corrupt, NULL},
    {"test-fails", "", fails, NULL},
    {"test-fails-with-text", "", fails_with_text, NULL},
    {"test-adds-nonsense", "", adds_nonsense, NULL},
};
static const relax_plugin_op ops[] = {
    {"test_no_type", "", "", 1, 1, gives_nothing, syntax, NULL},
    {"test_syntax", "", "", 1, 1, as_first, syntax, NULL},
    {"test_outside", "", "", 1, 1, as_first, outside, NULL},
    {"test_not_lowered", "", "", 1, 1, as_first, NULL, NULL},
};
static const relax_plugin plugin = {sizeof plugin, RELAX_PLUGIN_ABI_MAJOR, 0, "bad", "1.0", "Apache-2.0",
                                    passes,        4,                      ops, 4,     NULL,  0};
RELAX_PLUGIN_EXPORT const relax_plugin *relax_plugin_query(const relax_host *host)
{
    api = host->api;
    ctx_of = host->context;
    return &plugin;
}
