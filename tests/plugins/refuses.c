/* does not want this host */
#include "plugin.h"
RELAX_PLUGIN_EXPORT const relax_plugin *relax_plugin_query(const relax_host *host)
{
    (void)host;
    (void)one_pass;
    return NULL;
}
