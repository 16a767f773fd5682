/* needs a function that nobody has */
#include "plugin.h"
int function_that_nobody_has(void);
static relax_status call(void *user, relax_module *m)
{
    return nothing(user, m) + function_that_nobody_has();
}
static const relax_plugin_pass pass[] = {{"test-unresolved", "", call, (void *)one_pass}};
PLUGIN(RELAX_PLUGIN_ABI_MAJOR, 0, pass, 1, NULL, 0, NULL, 0)
