/* text.c: the words of the text form of tensor programs, one table for printer and parser. */
#include "tir/text.h"

const char *const rx_mem_text[] = {"global", "shared", "local"};
const char *const rx_loop_text[] = {"", "parallel", "vector", "unroll"};
const rx_update rx_updates[RX_UPDATES] = {
    {RX_EX_ADD, "+"}, {RX_EX_SUB, "-"}, {RX_EX_MUL, "*"}, {RX_EX_MIN, "min"}, {RX_EX_MAX, "max"},
};

static const char *const words[] = {
    "prim",  "for", "in", "init", "if",   "else",  "let", "assert", "prefetch",
    "alloc", "and", "or", "not",  "true", "false", "inf", "nan",
#define EX(name, arity, text, prec, doc) text,
#include "expr/exprs.def"
#undef EX
#define IN(name, text, arity, doc) text,
#include "expr/intrins.def"
#undef IN
};

bool rx_tir_reserved(const char *name)
{
    for (size_t i = 0; i < RX_COUNT(words); i++)
        if (!strcmp(words[i], name))
            return true;
    return rx_dtype_parse(name, strlen(name)) != RELAX_DTYPE_UNKNOWN;
}

static const struct { uint32_t number; const char *name; } errors[] = {
#define RX(num, name, status, text) {num, #name},
#include "core/errors.def"
#undef RX
};
/* errors.def with lower-case names, letter by letter: no ctype, which follows the locale */
static bool same_word(const char *upper, const char *word)
{
    for (; *upper && *word; upper++, word++)
        if ((*upper >= 'A' && *upper <= 'Z' ? *upper + 32 : *upper) != *word)
            return false;
    return *upper == *word;
}

uint32_t rx_tir_err_number(const char *word)
{
    for (size_t i = 0; i < RX_COUNT(errors); i++)
        if (same_word(errors[i].name, word))
            return errors[i].number;
    return 0;
}

const char *rx_tir_err_word(uint32_t err)
{
    for (size_t i = 0; i < RX_COUNT(errors); i++)
        if (errors[i].number == err)
            return errors[i].name;
    return NULL;
}
