/* a newer minor version than the host has */
#include "plugin.h"
PLUGIN(RELAX_PLUGIN_ABI_MAJOR, RELAX_PLUGIN_ABI_MINOR + 7, one_pass, 1, NULL, 0, NULL, 0)
