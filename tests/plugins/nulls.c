/* a pass without a function */
#include "plugin.h"
static const relax_plugin_pass passes[] = {{"test-null", "", NULL, (void *)one_pass}};
PLUGIN(RELAX_PLUGIN_ABI_MAJOR, 0, passes, 1, NULL, 0, NULL, 0)
