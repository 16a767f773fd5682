/* json.c: a pull parser for small JSON documents from untrusted files.
 *
 * Input: bytes that are checked to be UTF-8 when the parser starts. The caller walks the document: enter, next, key, a
 * value, next … Nothing recurses: skipping a value counts its depth, at most 64. Any departure from RFC 8259
 * unwinds with RXE_FILE_CORRUPT and the byte where it stands. Work and memory are linear in the input. */
#include "import/import.h"

#define MAX_DEPTH 64

RX_NORETURN static void bad(const rx_json *j, const char *what)
{
    rx_fail(j->ctx, RXE_FILE_CORRUPT, NULL, "JSON header, byte %llu: %s", (unsigned long long)j->i, what);
}

void rx_json_init(rx_json *j, relax_context *ctx, rx_arena *a, const char *at, size_t n)
{
    *j = (rx_json){.ctx = ctx, .arena = a, .at = at, .n = n};
    j->i = rx_utf8_valid(at, n);
    if (j->i != n)
        bad(j, "not UTF-8");
    j->i = 0;
}

/* the next byte that is not white space, 0 at the end */
static char peek(rx_json *j)
{
    while (j->i < j->n && (j->at[j->i] == ' ' || j->at[j->i] == '\t' || j->at[j->i] == '\n' || j->at[j->i] == '\r'))
        j->i++;
    return j->i < j->n ? j->at[j->i] : 0;
}

static void expect(rx_json *j, char c)
{
    if (peek(j) != c || j->i == j->n)
        bad(j, c == '{' ? "an object is expected" : c == '[' ? "a list is expected" : c == ':' ? "':' is expected"
               : c == '"' ? "a string is expected" : "',' or the end is expected");
    j->i++;
}

void rx_json_enter(rx_json *j, char open)
{
    expect(j, open);
    j->fresh = true;
}

bool rx_json_next(rx_json *j, char close)
{
    bool fresh = j->fresh;
    j->fresh = false;
    if (peek(j) == close) {
        j->i++;
        return false;
    }
    if (!fresh)
        expect(j, ',');
    if (j->i >= j->n)
        bad(j, "the document ends early");
    return true;
}

static uint32_t hex4(rx_json *j)
{
    uint32_t v = 0;
    for (int k = 0; k < 4; k++, j->i++) {
        char c = j->i < j->n ? j->at[j->i] : 0;
        uint32_t d = c >= '0' && c <= '9' ? (uint32_t)(c - '0') : c >= 'a' && c <= 'f' ? (uint32_t)(c - 'a' + 10)
                     : c >= 'A' && c <= 'F' ? (uint32_t)(c - 'A' + 10) : 16;
        if (d == 16)
            bad(j, "four hexadecimal digits are expected");
        v = v << 4 | d;
    }
    return v;
}

/* after "\u": a code point, from a pair of surrogates where needed */
static uint32_t unicode_escape(rx_json *j)
{
    uint32_t c = hex4(j);
    if (c < 0xD800 || c > 0xDFFF)
        return c;
    if (c > 0xDBFF || j->n - j->i < 2 || j->at[j->i] != '\\' || j->at[j->i + 1] != 'u')
        bad(j, "a lone surrogate");
    j->i += 2;
    uint32_t low = hex4(j);
    if (low < 0xDC00 || low > 0xDFFF)
        bad(j, "a lone surrogate");
    return 0x10000 + ((c - 0xD800) << 10) + (low - 0xDC00);
}

/* where unescaped bytes go: never more of them than the escaped text has; at NULL: only checked */
typedef struct sink { char *at; size_t n; } sink;

static void put(sink *o, uint32_t byte)
{
    if (o->at)
        o->at[o->n++] = (char)byte;
}

static void put_utf8(sink *o, uint32_t c)
{
    if (c < 0x80) {
        put(o, c);
        return;
    }
    int more = c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
    static const uint8_t lead[] = {0, 0xC0, 0xE0, 0xF0};
    put(o, lead[more] | c >> (6 * more));
    while (more-- > 0)
        put(o, 0x80 | (c >> (6 * more) & 63));
}

static void escape(rx_json *j, sink *o)
{
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    char c = j->i < j->n ? j->at[j->i++] : 0;
    const char *f = c ? strchr(from, c) : NULL;
    if (f)
        put(o, (unsigned char)to[f - from]);
    else if (c == 'u')
        put_utf8(o, unicode_escape(j));
    else
        bad(j, "an unknown escape");
}

/* consumes a string; the result is its text as it stands in the document */
static rx_view string(rx_json *j, sink *o, bool *escaped)
{
    expect(j, '"');
    size_t start = j->i;
    while (j->i < j->n && j->at[j->i] != '"') {
        unsigned char c = (unsigned char)j->at[j->i++];
        if (c < 0x20)
            bad(j, "a control character in a string");
        *escaped |= c == '\\';
        if (c == '\\')
            escape(j, o);
        else
            put(o, c);
    }
    if (j->i >= j->n)
        bad(j, "a string without end");
    return (rx_view){j->at + start, j->i++ - start};
}

rx_view rx_json_string(rx_json *j)
{
    bool escaped = false;
    sink o = {0};
    peek(j);
    size_t start = j->i;
    rx_view raw = string(j, &o, &escaped);
    if (!escaped)
        return raw;
    o.at = rx_arena_alloc(j->arena, raw.n, 1);
    j->i = start;
    string(j, &o, &escaped);
    return (rx_view){o.at, o.n};
}

rx_view rx_json_key(rx_json *j)
{
    rx_view v = rx_json_string(j);
    expect(j, ':');
    return v;
}

uint64_t rx_json_uint(rx_json *j)
{
    uint64_t v = 0;
    peek(j);
    size_t start = j->i;
    for (; j->i < j->n && j->at[j->i] >= '0' && j->at[j->i] <= '9'; j->i++)
        if (__builtin_mul_overflow(v, (uint64_t)10, &v) || __builtin_add_overflow(v, (uint64_t)(j->at[j->i] - '0'), &v))
            bad(j, "a number is too large");
    size_t digits = j->i - start;
    if (digits == 0 || (digits > 1 && j->at[start] == '0'))
        bad(j, "a number without sign or fraction is expected");
    char c = j->i < j->n ? j->at[j->i] : 0;
    if (c == '.' || c == 'e' || c == 'E')
        bad(j, "a number without fraction is expected");
    return v;
}

static size_t run_of_digits(rx_json *j)
{
    size_t start = j->i;
    while (j->i < j->n && j->at[j->i] >= '0' && j->at[j->i] <= '9')
        j->i++;
    return j->i - start;
}

static void skip_number(rx_json *j)
{
    if (j->at[j->i] == '-')
        j->i++;
    size_t start = j->i, digits = run_of_digits(j);
    if (digits == 0 || (digits > 1 && j->at[start] == '0'))
        bad(j, "a value is expected");
    if (j->i < j->n && j->at[j->i] == '.') {
        j->i++;
        if (!run_of_digits(j))
            bad(j, "digits are expected");
    }
    if (j->i < j->n && (j->at[j->i] == 'e' || j->at[j->i] == 'E')) {
        j->i++;
        if (j->i < j->n && (j->at[j->i] == '+' || j->at[j->i] == '-'))
            j->i++;
        if (!run_of_digits(j))
            bad(j, "digits are expected");
    }
}

static void skip_string(rx_json *j)
{
    bool escaped = false;
    string(j, &(sink){0}, &escaped);
}

static void skip_scalar(rx_json *j)
{
    static const char *const words[] = {"true", "false", "null"};
    if (peek(j) == '"') {
        skip_string(j);
        return;
    }
    for (size_t k = 0; k < RX_COUNT(words); k++) {
        size_t n = strlen(words[k]);
        if (j->n - j->i >= n && memcmp(j->at + j->i, words[k], n) == 0) {
            j->i += n;
            return;
        }
    }
    if (j->i >= j->n)
        bad(j, "the document ends early");
    skip_number(j);
}

void rx_json_skip(rx_json *j)
{
    char close[MAX_DEPTH];
    int depth = 0;
    do {
        char c = peek(j);
        if (c == '{' || c == '[') {
            if (depth == MAX_DEPTH)
                bad(j, "nested too deeply");
            close[depth++] = c == '{' ? '}' : ']';
            rx_json_enter(j, c);
        } else {
            skip_scalar(j);
        }
        while (depth && !rx_json_next(j, close[depth - 1]))
            depth--;
        if (depth && close[depth - 1] == '}')
            skip_string(j), expect(j, ':');
    } while (depth);
}

void rx_json_end(rx_json *j)
{
    peek(j);
    if (j->i != j->n)
        bad(j, "text after the end");
}
