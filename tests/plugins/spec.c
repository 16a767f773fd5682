/* attributes that cannot be read */
#include "plugin.h"
static const relax_type *deduce(void *user, const relax_op_call *c)
{
    (void)user;
    (void)c;
    (void)one_pass;
    return NULL;
}
static const relax_plugin_op ops[] = {{"test_spec", "cap:floating=3", "", 1, 1, deduce, NULL, NULL}};
PLUGIN(RELAX_PLUGIN_ABI_MAJOR, 0, NULL, 0, ops, 1, NULL, 0)
