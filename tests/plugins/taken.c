/* its library function and first operator are fine, its second operator has the name of a built-in one */
#include "plugin.h"
static const relax_type *deduce(void *user, const relax_op_call *c)
{
    (void)user;
    (void)c;
    (void)one_pass;
    return NULL;
}
static relax_status library(void *user, const relax_library_call *call)
{
    (void)user;
    (void)call;
    return RELAX_OK;
}
static const relax_plugin_library libs[] = {{"test.library", library, NULL}};
static const relax_plugin_op ops[] = {
    {"test_fine", "", "", 1, 1, deduce, NULL, NULL},
    {"add", "", "", 1, 1, deduce, NULL, NULL},
};
PLUGIN(RELAX_PLUGIN_ABI_MAJOR, 0, NULL, 0, ops, 2, libs, 1)
