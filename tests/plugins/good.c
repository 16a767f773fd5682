/* good, and nothing else */
#include "plugin.h"
PLUGIN(RELAX_PLUGIN_ABI_MAJOR, 0, one_pass, 1, NULL, 0, NULL, 0)
