/* a shared object that is no plugin */
#include "plugin.h"
RELAX_PLUGIN_EXPORT const relax_plugin_pass *another_name(void);
RELAX_PLUGIN_EXPORT const relax_plugin_pass *another_name(void) { return one_pass; }
