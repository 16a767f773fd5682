/* plugin.h: what the plugins of the tests share. */
#ifndef TEST_PLUGIN_H
#define TEST_PLUGIN_H
#include <relax_plugin.h>
#include <stddef.h>
#include <string.h>

/* a description with one pass, which does nothing */
static relax_status nothing(void *user, relax_module *m)
{
    (void)user;
    (void)m;
    return RELAX_OK;
}
static const relax_plugin_pass one_pass[] = {{"test-nothing", "does nothing", nothing, NULL}};
#define PLUGIN(major, minor, pass, npass, op, nop, lib, nlib)                                                          \
    static const relax_plugin plugin = {sizeof plugin, major, minor, "test", "1.0", "Apache-2.0",                      \
                                        pass,          npass, op,    nop,    lib,   nlib};                             \
    RELAX_PLUGIN_EXPORT const relax_plugin *relax_plugin_query(const relax_host *host)                                 \
    {                                                                                                                  \
        return host->struct_size ? &plugin : NULL;                                                                     \
    }
#endif
