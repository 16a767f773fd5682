/* another major version of the interface */
#include "plugin.h"
PLUGIN(RELAX_PLUGIN_ABI_MAJOR + 1, 0, one_pass, 1, NULL, 0, NULL, 0)
