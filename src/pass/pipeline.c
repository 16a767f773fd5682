/* pipeline.c: the pipeline as one list, read top to bottom.
 *
 * Order: clean up while everything is an operator (cheap, precise), legalize, clean up what that left, guard, schedule,
 * then the lowering to destination-passing calls and the memory plan. Code generation follows in codegen/. */
#include "pass/pass.h"

const char rx_default_pipeline[] =
    "normalize,"
    "inline,"               /* before folding: arguments of private functions may be constants */
    "fold-constant,"
    "cse,"
    "dce,"
    "legalize,"
    "cse,"                  /* calls of tensor programs that became equal */
    "dce,"
    "guard,"                /* before schedule: plain loops are proved best, and checks stay out of tiled ones */
    "schedule,"
    "lower-calls,"
    "plan-memory";
