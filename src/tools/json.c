/* json.c: the little JSON that scripts need: strings and lists of integers. */
#include "tools/tools.h"
#include <stdlib.h>
#include <string.h>

void json_string(FILE *f, const char *s, size_t n)
{
    fputc('"', f);
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)s[i];
        if (c == '"' || c == '\\') fprintf(f, "\\%c", c);
        else if (c == '\n') fputs("\\n", f);
        else if (c < 0x20 || c == 0x7f) fprintf(f, "\\u%04x", c);
        else fputc(c, f);
    }
    fputc('"', f);
}

static int hex4(const char *s)
{
    int v = 0;
    for (int i = 0; i < 4; i++) {
        char c = s[i];
        int d = c >= '0' && c <= '9'   ? c - '0'
                : c >= 'a' && c <= 'f' ? c - 'a' + 10
                : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                       : -1;
        if (d < 0) return -1;
        v = v * 16 + d;
    }
    return v;
}

static size_t put_utf8(char *to, unsigned c)
{
    if (c < 0x80) return to[0] = (char)c, 1;
    if (c < 0x800) return to[0] = (char)(0xC0 | c >> 6), to[1] = (char)(0x80 | (c & 63)), 2;
    if (c < 0x10000)
        return to[0] = (char)(0xE0 | c >> 12), to[1] = (char)(0x80 | (c >> 6 & 63)), to[2] = (char)(0x80 | (c & 63)), 3;
    to[0] = (char)(0xF0 | c >> 18);
    to[1] = (char)(0x80 | (c >> 12 & 63));
    to[2] = (char)(0x80 | (c >> 6 & 63));
    to[3] = (char)(0x80 | (c & 63));
    return 4;
}

/* behind the backslash; advances *s; false: malformed */
static bool escape(const char **s, char *to, size_t *n)
{
    static const char from[] = "\"\\/bfnrt", plain[] = "\"\\/\b\f\n\r\t";
    const char *p = **s ? strchr(from, **s) : NULL;
    if (p) {
        to[(*n)++] = plain[p - from];
        (*s)++;
        return true;
    }
    if (**s != 'u') return false;
    int c = hex4(*s + 1);
    if (c < 0) return false;
    *s += 5;
    if (c >= 0xD800 && c < 0xDC00 && (*s)[0] == '\\' && (*s)[1] == 'u') {
        int d = hex4(*s + 2);
        if (d >= 0xDC00 && d < 0xE000) {
            c = 0x10000 + ((c - 0xD800) << 10) + (d - 0xDC00);
            *s += 6;
        }
    }
    *n += put_utf8(to + *n, c >= 0xD800 && c < 0xE000 ? 0xFFFD : (unsigned)c);
    return true;
}

bool json_read_string(const char **s, char **out, size_t *n)
{
    while (**s == ' ' || **s == '\t') (*s)++;
    if (*(*s)++ != '"') return false;
    char *to = malloc(strlen(*s) + 1);
    size_t k = 0;
    if (!to) return false;
    for (;;) {
        char c = *(*s)++;
        if (c == '"') break;
        if (!c || (c == '\\' && !escape(s, to, &k))) {
            free(to);
            return false;
        }
        if (c != '\\') to[k++] = c;
    }
    to[k] = 0;
    *out = to;
    *n = k;
    return true;
}

bool json_read_ints(const char *s, int32_t **out, size_t *n)
{
    size_t cap = 16, k = 0;
    int32_t *v = malloc(cap * sizeof *v);
    bool open = false;
    while (*s == ' ' || *s == '[') open |= *s++ == '[';
    while (v && *s && *s != ']') {
        char *end;
        long x = strtol(s, &end, 10);
        if (end == s || x < INT32_MIN || x > INT32_MAX) break;
        if (k == cap) {
            int32_t *more = realloc(v, (cap *= 2) * sizeof *v);
            if (!more) break;
            v = more;
        }
        v[k++] = (int32_t)x;
        for (s = end; *s == ' ' || *s == ','; s++) { }
    }
    if (!v || (*s && !(open && *s == ']') && *s != '\n')) {
        free(v);
        return false;
    }
    *out = v;
    *n = k;
    return true;
}
