/* oracle.c: `oracle [-v] [part]`: runs every part that is linked in; 1 when a case neither passes nor is listed. */
#include <string.h>

#include "oracle.h"

/* parts of other files join by being defined */
#define PART(name) int oracle_##name(FILE *out, FILE *err, bool verbose) __attribute__((weak));
#include "oracle.def"
#undef PART

static const struct { const char *name; oracle_fn run; } parts[] = {
#define PART(name) {#name, oracle_##name},
#include "oracle.def"
#undef PART
};

int main(int argc, char **argv)
{
    bool verbose = argc > 1 && !strcmp(argv[1], "-v");
    const char *only = argc > 1 + verbose ? argv[1 + verbose] : NULL;
    int bad = 0;
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        if (parts[i].run && (!only || !strcmp(only, parts[i].name))) bad += parts[i].run(stdout, stderr, verbose);
    return bad != 0;
}
