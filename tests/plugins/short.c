/* a description of an older, shorter form */
#include "plugin.h"
static const relax_plugin plugin = {24, RELAX_PLUGIN_ABI_MAJOR, 0, "test", "1.0", "", one_pass, 1, NULL, 0, NULL, 0};
RELAX_PLUGIN_EXPORT const relax_plugin *relax_plugin_query(const relax_host *host)
{
    (void)host;
    return &plugin;
}
