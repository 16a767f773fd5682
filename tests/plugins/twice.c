/* two passes of one name */
#include "plugin.h"
static const relax_plugin_pass passes[] = {{"test-twice", "", nothing, NULL},
                                           {"test-twice", "", nothing, (void *)one_pass}};
PLUGIN(RELAX_PLUGIN_ABI_MAJOR, 0, passes, 2, NULL, 0, NULL, 0)
