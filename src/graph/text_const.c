/* text_const.c: constants, names and strings as text.
 *
 * A constant is a list of elements while it is short and every element reads back to the same bits; else it is a string
 * of hexadecimal bytes in memory order ("x'00ff'"). So a text holds every constant exactly, NaN payloads and odd bools
 * included. */
#include "graph/text.h"

#define SHORT 64                       /* elements that are written as a list */

static const char *const words[] = {
    "if", "else", "dataflow", "output", "return", "yield", "where", "none", "const", "shape", "prim", "call_tir",
    "call_tir_inplace", "call_dps_library", "call_packed", "call_pure_packed", "call", "call_pure", "match_cast",
    "alloc", "call_dps", "view", "true", "false", "attrs", "arena", "fn", "private", "impure", "Tensor", "Shape",
    "Prim", "Tuple", "Callable", "Object",
};

bool rx_text_plain(const char *name)
{
    for (const char *p = name; *p; p++)
        if (!((*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z') || *p == '_' ||
              (p > name && *p >= '0' && *p <= '9')))
            return false;
    for (size_t i = 0; i < RX_COUNT(words); i++)
        if (!strcmp(words[i], name))
            return false;
    return *name != 0;
}

void rx_text_string(rx_buf *b, const char *s)
{
    rx_putc(b, '"');
    for (; *s; s++) {
        unsigned char c = (unsigned char)*s;
        if (c == '"' || c == '\\')
            rx_putf(b, "\\%c", c);
        else if (c < ' ' || c == 127)
            rx_putf(b, "\\x%02x", c);
        else
            rx_putc(b, (char)c);
    }
    rx_putc(b, '"');
}

void rx_text_name(rx_buf *b, const char *name)
{
    if (rx_text_plain(name)) {
        rx_puts(b, name);
        return;
    }
    rx_putc(b, '$');
    rx_text_string(b, name);
}

const char *rx_text_read_name(rx_lexer *l, const char *what)
{
    if (!rx_lex_take(l, "$"))
        return rx_lex_name(l, what);
    if (l->tok != RX_T_STRING || !*l->text)
        rx_lex_fail(l, RXE_SYNTAX, "expected %s in quotes", what);
    const char *s = l->text;
    rx_lex_next(l);
    return s;
}

/* --- constants --- */

/* does the element survive being written as a number? */
static bool exact(relax_dtype t, const void *p)
{
    uint64_t bits = 0;
    if (rx_dtype_is_float(t))
        rx_store_f64(t, &bits, rx_load_f64(t, p));
    else
        rx_store_i64(t, &bits, rx_load_i64(t, p));
    return !memcmp(&bits, p, rx_dtype_bytes(t));
}

static void put_hex(rx_buf *b, const rx_const *c)
{
    static const char digits[] = "0123456789abcdef";
    rx_puts(b, "\"x'");
    for (size_t i = 0; i < c->bytes; i++) {
        uint8_t x = ((const uint8_t *)c->data)[i];
        rx_putc(b, digits[x >> 4]);
        rx_putc(b, digits[x & 15]);
    }
    rx_puts(b, "'\"");
}

void rx_text_const(rx_buf *b, const rx_const *c)
{
    size_t w = rx_dtype_bytes(c->dtype), n = c->bytes / w;
    bool list = n <= SHORT;
    rx_putf(b, "const(%s, (", rx_dtypes[c->dtype].name);
    for (uint32_t i = 0; i < c->ndim; i++) {
        if (i)
            rx_puts(b, ", ");
        rx_put_i64(b, c->dims[i]);
    }
    rx_puts(b, c->ndim == 1 ? ",), " : "), ");
    for (size_t i = 0; i < n && list; i++)
        list = exact(c->dtype, (const uint8_t *)c->data + i * w);
    if (!list) {
        put_hex(b, c);
    } else {
        rx_putc(b, '[');
        for (size_t i = 0; i < n; i++) {
            if (i)
                rx_puts(b, ", ");
            rx_put_element(b, c->dtype, (const uint8_t *)c->data + i * w);
        }
        rx_putc(b, ']');
    }
    rx_putc(b, ')');
}

static void read_number(rx_lexer *l, relax_dtype t, void *p)
{
    bool minus = rx_lex_take(l, "-");
    double f = 0;
    if (l->tok == RX_T_INT && !rx_dtype_is_float(t)) {
        uint64_t v = (uint64_t)l->ival;
        rx_store_i64(t, p, (int64_t)(minus ? 0 - v : v));
        bool fits = (uint64_t)rx_load_i64(t, p) == (minus ? 0 - v : v);
        if (t == RELAX_BOOL || !fits || (l->big && t != RELAX_U64 && !(minus && v == (uint64_t)INT64_MIN)) ||
            (minus && v && rx_dtype_is_uint(t)))
            rx_lex_fail(l, RXE_SYNTAX, "the number does not fit %s", rx_dtypes[t].name);
        rx_lex_next(l);
        return;
    }
    if (!rx_dtype_is_float(t))
        rx_lex_fail(l, RXE_SYNTAX, "expected a number of type %s", rx_dtypes[t].name);
    if (l->tok == RX_T_FLOAT)
        f = l->fval;
    else if (l->tok == RX_T_INT)
        f = l->big ? (double)(uint64_t)l->ival : (double)l->ival;
    else if (rx_lex_is(l, "inf"))
        f = (double)__builtin_inff();
    else if (rx_lex_is(l, "nan"))
        f = (double)__builtin_nanf("");
    else
        rx_lex_fail(l, RXE_SYNTAX, "expected a number");
    rx_lex_next(l);
    rx_store_f64(t, p, minus ? -f : f);
}

static void read_element(rx_lexer *l, relax_dtype t, void *p)
{
    if (t == RELAX_BOOL && (rx_lex_is(l, "true") || rx_lex_is(l, "false"))) {
        *(uint8_t *)p = l->text[0] == 't';
        rx_lex_next(l);
        return;
    }
    read_number(l, t, p);
}

static int hex(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static void read_hex(rx_lexer *l, uint8_t *out, size_t bytes)
{
    const char *s = l->text;
    size_t n = strlen(s);
    bool ok = n == 2 * bytes + 3 && s[0] == 'x' && s[1] == '\'' && s[n - 1] == '\'';
    for (size_t i = 0; i < bytes && ok; i++) {
        int hi = hex(s[2 + 2 * i]), lo = hex(s[3 + 2 * i]);
        ok = hi >= 0 && lo >= 0;
        if (ok)
            out[i] = (uint8_t)(hi << 4 | lo);
    }
    if (!ok)
        rx_lex_fail(l, RXE_SYNTAX, "expected \"x'…'\" with two hexadecimal digits for each of %zu bytes", bytes);
    rx_lex_next(l);
}

/* The text bounds the memory: a list has as many elements as the shape says, the bytes are all there. */
static size_t read_dims(rx_lexer *l, relax_dtype t, int64_t *dims, uint32_t *ndim)
{
    int64_t n = (int64_t)rx_dtype_bytes(t);
    rx_lex_want(l, "(");
    while (!rx_lex_take(l, ")")) {
        if (*ndim == RX_MAX_RANK)
            rx_lex_fail(l, RXE_SYNTAX, "more than %d dimensions", RX_MAX_RANK);
        int64_t d = rx_lex_int(l, "a dimension");
        if (d < 0 || !rx_mul_ok(n, d, &n))
            rx_lex_fail(l, RXE_SYNTAX, "the shape of the constant is negative or too large");
        dims[(*ndim)++] = d;
        if (!rx_lex_take(l, ",")) {
            rx_lex_want(l, ")");
            break;
        }
    }
    if ((uint64_t)n / rx_dtype_bytes(t) > l->n)
        rx_lex_fail(l, RXE_SYNTAX, "the text is too short for %lld elements",
                    (long long)n / (long long)rx_dtype_bytes(t));
    return (size_t)n;
}

relax_value *rx_text_read_const(rx_lexer *l, relax_module *m)
{
    int64_t dims[RX_MAX_RANK];
    uint32_t ndim = 0;
    rx_lex_want(l, "(");
    const char *name = rx_lex_name(l, "a data type");
    relax_dtype t = rx_dtype_parse(name, strlen(name));
    if (t == RELAX_DTYPE_UNKNOWN)
        rx_lex_fail(l, RXE_SYNTAX, "'%s' is no data type", name);
    rx_lex_want(l, ",");
    size_t bytes = read_dims(l, t, dims, &ndim), w = rx_dtype_bytes(t);
    uint8_t *data = rx_arena_alloc(rx_scratch(&l->ctx->heap), bytes + 8, 64);
    rx_lex_want(l, ",");
    if (l->tok == RX_T_STRING) {
        read_hex(l, data, bytes);
    } else {
        rx_lex_want(l, "[");
        for (size_t i = 0; i < bytes / w; i++) {
            if (i)
                rx_lex_want(l, ",");
            read_element(l, t, data + i * w);
        }
        rx_lex_take(l, ",");
        rx_lex_want(l, "]");
    }
    rx_lex_want(l, ")");
    return rx_v_const(m, t, dims, ndim, data);
}
