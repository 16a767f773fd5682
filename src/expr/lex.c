/* lex.c: the tokens of all text forms.
 *
 * In: bytes of unknown origin. Out: one token at a time, never a read outside the text, every fault an RXE_SYNTAX
 * with line and column (columns count bytes). Comments: '#' to the end of the line; '//' too where it is the first
 * thing on a line, because a line cannot begin with the floor division. Numbers are read without the locale. */
#include "expr/expr.h"
#include <stdio.h>

rx_where rx_lex_where(const rx_lexer *l)
{
    return (rx_where){.file = l->file ? l->file : "text", .line = l->line, .col = l->col};
}

void rx_lex_fail(rx_lexer *l, enum rx_err e, const char *fmt, ...)
{
    va_list ap;
    char text[512];                    /* rx_fail takes no va_list; longer messages are cut */
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    rx_where w = rx_lex_where(l);
    rx_fail(l->ctx, e, &w, "%s", text);
}

static bool is_alpha(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
static bool is_digit(char c) { return c >= '0' && c <= '9'; }
static char at(const rx_lexer *l, size_t i) { return i < l->n ? l->s[i] : 0; }

/* the text of the current token for messages, cut */
static const char *shown(rx_lexer *l)
{
    size_t n = l->pos - l->start;
    if (l->tok == RX_T_EOF) return "the end of the text";
    return rx_strf(l->ctx, "'%.*s'", (int)(n > 40 ? 40 : n), l->s + l->start);
}

static void skip_space(rx_lexer *l)
{
    for (; l->pos < l->n; l->pos++) {
        char c = l->s[l->pos];
        if (c == '\n') {
            l->line_no++;
            l->line_at = l->pos + 1;
            l->fresh = true;
        } else if (c == '#' || (c == '/' && at(l, l->pos + 1) == '/' && l->fresh)) {
            while (l->pos < l->n && l->s[l->pos] != '\n') l->pos++;
            l->pos--;
        } else if (c != ' ' && c != '\t' && c != '\r') {
            return;
        }
    }
}

static void number(rx_lexer *l)
{
    size_t i = l->pos;
    const char *s = l->s;
    bool is_float = false, hex = s[i] == '0' && (at(l, i + 1) == 'x' || at(l, i + 1) == 'X');
    uint64_t v = 0;
    bool over = false;
    if (hex) {
        for (i += 2; i < l->n; i++) {
            int d = is_digit(s[i]) ? s[i] - '0' : s[i] >= 'a' && s[i] <= 'f' ? s[i] - 'a' + 10
                : s[i] >= 'A' && s[i] <= 'F' ? s[i] - 'A' + 10 : -1;
            if (d < 0) break;
            over |= v >> 60 != 0;
            v = v << 4 | (uint64_t)d;
        }
        if (i == l->pos + 2) rx_lex_fail(l, RXE_SYNTAX, "a hexadecimal number without digits");
    } else {
        for (; is_digit(at(l, i)); i++)
            over |= __builtin_mul_overflow(v, 10, &v) || __builtin_add_overflow(v, (uint64_t)(s[i] - '0'), &v);
        if (at(l, i) == '.' && at(l, i + 1) != '.' && !is_alpha(at(l, i + 1))) {
            is_float = true;
            for (i++; is_digit(at(l, i)); i++) {}
        }
        if (at(l, i) == 'e' || at(l, i) == 'E') {
            size_t j = i + 1 + (at(l, i + 1) == '+' || at(l, i + 1) == '-');
            if (is_digit(at(l, j))) {
                is_float = true;
                for (i = j; is_digit(at(l, i)); i++) {}
            }
        }
    }
    if (is_alpha(at(l, i))) rx_lex_fail(l, RXE_SYNTAX, "a letter inside a number");
    if (!is_float && over) rx_lex_fail(l, RXE_SYNTAX, "the number does not fit 64 bits");
    if (is_float && rx_read_double(s + l->pos, i - l->pos, &l->fval) == 0)
        rx_lex_fail(l, RXE_SYNTAX, "not a number: '%.*s'", (int)RX_MIN(i - l->pos, 40), s + l->pos);
    l->tok = is_float ? RX_T_FLOAT : RX_T_INT;
    l->ival = (int64_t)v;
    l->big = v > INT64_MAX;
    l->pos = i;
}

static int hex_digit(char c)
{
    return is_digit(c) ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

static void string(rx_lexer *l)
{
    rx_buf b;
    rx_buf_init(&b, rx_scratch(&l->ctx->heap));
    for (l->pos++; at(l, l->pos) != '"'; l->pos++) {
        char c = at(l, l->pos);
        if (l->pos >= l->n || c == '\n') rx_lex_fail(l, RXE_SYNTAX, "a string without its end");
        if (c != '\\') { rx_putc(&b, c); continue; }
        c = at(l, ++l->pos);
        int hi = c == 'x' ? hex_digit(at(l, l->pos + 1)) : -1, lo = hi >= 0 ? hex_digit(at(l, l->pos + 2)) : -1;
        if (c == 'n') rx_putc(&b, '\n');
        else if (c == 't') rx_putc(&b, '\t');
        else if (c == 'r') rx_putc(&b, '\r');
        else if (c == '\\' || c == '"' || c == '\'') rx_putc(&b, c);
        else if (lo >= 0) rx_putc(&b, (char)(hi << 4 | lo)), l->pos += 2;
        else rx_lex_fail(l, RXE_SYNTAX, "an unknown escape in a string (known: \\n \\t \\r \\\\ \\\" \\xNN)");
    }
    l->pos++;
    l->tok = RX_T_STRING;
    l->text = rx_strn(l->ctx, b.at ? b.at : "", b.n);
}

static const char puncts[][4] = {"...", "..", "//=", "<<=", ">>=", "->", "//", "<=", ">=", "==", "!=", "+=", "-=",
                                 "*=",  "/=", "|=",  "&=",  "^=",  "%=", "&&", "||", "<<", ">>", "::", "=>"};

static void punct(rx_lexer *l)
{
    size_t n = 0;
    for (size_t i = 0; i < RX_COUNT(puncts) && !n; i++) {
        size_t k = strlen(puncts[i]);
        if (k <= l->n - l->pos && !memcmp(l->s + l->pos, puncts[i], k)) n = k;
    }
    if (!n && !strchr("+-*/%()[]{},:;.<>=!&|^~@$?", l->s[l->pos])) {
        unsigned char c = (unsigned char)l->s[l->pos];
        if (c > ' ' && c < 127) rx_lex_fail(l, RXE_SYNTAX, "unexpected character '%c'", c);
        rx_lex_fail(l, RXE_SYNTAX, "unexpected byte 0x%02x", c);
    }
    if (!n) n = 1;
    if (l->s[l->pos] == 0) rx_lex_fail(l, RXE_SYNTAX, "unexpected byte 0x00");
    l->tok = RX_T_PUNCT;
    l->text = rx_strn(l->ctx, l->s + l->pos, n);
    l->pos += n;
}

void rx_lex_next(rx_lexer *l)
{
    skip_space(l);
    l->start = l->pos;
    l->line = l->line_no;
    l->col = (uint32_t)(l->pos - l->line_at + 1);
    l->fresh = false;
    l->text = "";
    if (l->pos >= l->n) {
        l->tok = RX_T_EOF;
    } else if (is_alpha(l->s[l->pos])) {
        while (is_alpha(at(l, l->pos)) || is_digit(at(l, l->pos))) l->pos++;
        l->tok = RX_T_NAME;
        l->text = rx_strn(l->ctx, l->s + l->start, l->pos - l->start);
    } else if (is_digit(l->s[l->pos]) || (l->s[l->pos] == '.' && is_digit(at(l, l->pos + 1)))) {
        number(l);
    } else if (l->s[l->pos] == '"') {
        string(l);
    } else {
        punct(l);
    }
}

void rx_lex_init(rx_lexer *l, relax_context *ctx, const char *file, const char *s, size_t n)
{
    *l = (rx_lexer){
        .ctx = ctx, .file = file, .s = s, .n = n == RELAX_STRLEN ? strlen(s) : n, .line_no = 1, .fresh = true};
    rx_lex_next(l);
}

bool rx_lex_is(const rx_lexer *l, const char *t)
{
    return (l->tok == RX_T_NAME || l->tok == RX_T_PUNCT) && !strcmp(l->text, t);
}

bool rx_lex_take(rx_lexer *l, const char *t)
{
    if (!rx_lex_is(l, t)) return false;
    rx_lex_next(l);
    return true;
}

void rx_lex_want(rx_lexer *l, const char *t)
{
    if (!rx_lex_take(l, t)) rx_lex_fail(l, RXE_SYNTAX, "expected '%s', found %s", t, shown(l));
}

const char *rx_lex_name(rx_lexer *l, const char *what)
{
    if (l->tok != RX_T_NAME) rx_lex_fail(l, RXE_SYNTAX, "expected %s, found %s", what, shown(l));
    const char *s = l->text;
    rx_lex_next(l);
    return s;
}

int64_t rx_lex_int(rx_lexer *l, const char *what)
{
    bool minus = rx_lex_take(l, "-");
    if (!minus) rx_lex_take(l, "+");
    if (l->tok != RX_T_INT) rx_lex_fail(l, RXE_SYNTAX, "expected %s, found %s", what, shown(l));
    if (l->big && !(minus && l->ival == INT64_MIN)) rx_lex_fail(l, RXE_SYNTAX, "%s does not fit 64 bits", what);
    int64_t v = minus ? (int64_t)(0 - (uint64_t)l->ival) : l->ival;
    rx_lex_next(l);
    return v;
}
