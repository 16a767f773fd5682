/* num.c: integers with the rules of the language: checked, floor division and floor modulo. */
#include "base/base.h"

bool rx_floordiv_ok(int64_t a, int64_t b, int64_t *r)
{
    if (b == 0 || (a == INT64_MIN && b == -1))
        return false;
    int64_t q = a / b;
    *r = q - (a % b != 0 && (a < 0) != (b < 0));
    return true;
}

bool rx_floormod_ok(int64_t a, int64_t b, int64_t *r)
{
    if (b == 0 || (a == INT64_MIN && b == -1))
        return false;
    int64_t m = a % b;
    *r = m != 0 && (m < 0) != (b < 0) ? m + b : m;
    return true;
}
