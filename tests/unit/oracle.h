/* oracle.h: the parts of the program `oracle`, which judges the library against the outside expectations. A part
 * prints one line for each of its files: name, passed, total, listed (judged otherwise, with a reason in the
 * source). */
#ifndef ORACLE_H
#define ORACLE_H
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

/* verbose: also one line on err for each case that did not pass. Returns the number of cases that neither pass nor
 * are listed. */
typedef int (*oracle_fn)(FILE *out, FILE *err, bool verbose);

static inline void oracle_line(FILE *out, const char *name, int passed, int total, int listed)
{
    fprintf(out, "%s %d %d %d\n", name, passed, total, listed);
}

/* path of a model file */
static inline const char *oracle_model(const char *name, char *buf, size_t n)
{
    const char *dir = getenv("RELAX_MODELS");
    snprintf(buf, n, "%s/%s", dir ? dir : "build/models", name);
    return buf;
}
#endif
