/* detok.c: token ids back to text, one at a time.
 *
 * A token may hold a part of a code point (byte tokens, byte-level BPE); such bytes are held back until the code
 * point is complete, so that what comes out is always UTF-8 and concatenating it gives the text. Bytes that can
 * never become UTF-8 come out as U+FFFD, one for each longest well-formed prefix, as Unicode recommends. */
#include "import/tokenizer.h"

#define REPLACEMENT "\xEF\xBF\xBD"

void rx_detok_init(rx_detok *d, const rx_tokenizer *t, bool write_control, bool at_start)
{
    *d = (rx_detok){.t = t, .write_control = write_control, .strip_space = at_start && t->add_space};
}

/* bytes of the code point that begins with b, 0: none does */
static unsigned length_of(uint8_t b)
{
    return b < 0x80 ? 1 : b >= 0xC2 && b <= 0xDF ? 2 : (b & 0xF0) == 0xE0 ? 3 : b >= 0xF0 && b <= 0xF4 ? 4 : 0;
}

/* can p[0..n) be the beginning of a code point? */
static bool well_formed(const uint8_t *p, uint32_t n)
{
    if (length_of(p[0]) < n)
        return false;
    if (n < 2)
        return true;
    /* the second byte's range excludes overlong forms, surrogates and what lies beyond U+10FFFF */
    uint8_t lo = p[0] == 0xE0 ? 0xA0 : p[0] == 0xF0 ? 0x90 : 0x80;
    uint8_t hi = p[0] == 0xED ? 0x9F : p[0] == 0xF4 ? 0x8F : 0xBF;
    if (p[1] < lo || p[1] > hi)
        return false;
    for (uint32_t i = 2; i < n; i++)
        if ((p[i] & 0xC0) != 0x80)
            return false;
    return true;
}

static void put_byte(rx_detok *d, uint8_t b, rx_buf *out)
{
    d->held[d->n_held++] = b;
    if (!well_formed(d->held, d->n_held)) {
        rx_puts(out, REPLACEMENT);
        bool alone = d->n_held == 1;
        d->n_held = 0;
        if (!alone)
            put_byte(d, b, out);       /* once at most: b now stands alone */
    } else if (length_of(d->held[0]) == d->n_held) {
        rx_putn(out, (const char *)d->held, d->n_held);
        d->n_held = 0;
    }
}

static void put_text(rx_detok *d, rx_view v, rx_buf *out)
{
    for (size_t i = 0; i < v.n; i++)
        put_byte(d, (uint8_t)v.at[i], out);
}

/* a piece of a llama model: U+2581 is a space */
static void put_spm(rx_detok *d, rx_view v, rx_buf *out)
{
    bool strip = d->strip_space;
    d->strip_space = false;
    for (size_t i = 0; i < v.n;) {
        bool space = v.n - i >= 3 && memcmp(v.at + i, "\xE2\x96\x81", 3) == 0;
        if (!(space && strip && i == 0))
            put_byte(d, space ? ' ' : (uint8_t)v.at[i], out);
        i += space ? 3 : 1;
    }
}

/* "<0x0A>"; false if it is spelled otherwise */
static bool byte_of(rx_view v, uint8_t *b)
{
    unsigned x = 0;
    if (v.n != 6 || memcmp(v.at, "<0x", 3) != 0 || v.at[5] != '>')
        return false;
    for (int i = 3; i < 5; i++) {
        char c = v.at[i];
        if (!((c >= '0' && c <= '9') || (c >= 'A' && c <= 'F') || (c >= 'a' && c <= 'f')))
            return false;
        x = x * 16 + (unsigned)(c <= '9' ? c - '0' : (c | 32) - 'a' + 10);
    }
    *b = (uint8_t)x;
    return true;
}

/* a piece in the alphabet of byte-level BPE; other code points stand for themselves */
static void put_bpe(rx_detok *d, rx_view v, rx_buf *out)
{
    for (size_t i = 0; i < v.n;) {
        uint8_t b = (uint8_t)v.at[i];
        bool two = (b & 0xE0) == 0xC0 && i + 1 < v.n;
        uint32_t cp = two ? (uint32_t)(b & 31) << 6 | ((uint8_t)v.at[i + 1] & 63) : b < 0x80 ? b : 0;
        int byte = rx_bpe_byte(cp);
        if (byte < 0) {
            put_byte(d, b, out);
            i++;
            continue;
        }
        put_byte(d, (uint8_t)byte, out);
        i += two ? 2 : 1;
    }
}

void rx_detok_put(rx_detok *d, int32_t id, rx_buf *out)
{
    const rx_tokenizer *t = d->t;
    uint8_t b;
    if (id < 0 || (uint32_t)id >= t->vocab.n)
        rx_fail(t->ctx, RXE_BAD_VALUE, NULL, "there is no token %d (the vocabulary has %u)", id, t->vocab.n);
    rx_view v = t->vocab.at[id];
    switch (t->types[id]) {
    case TYPE_CONTROL:
    case TYPE_UNKNOWN:
        if (d->write_control)
            put_text(d, v, out);
        break;
    case TYPE_UNUSED: break;
    case TYPE_USER: put_text(d, v, out); break;
    case TYPE_BYTE:
        if (byte_of(v, &b)) {
            put_byte(d, b, out);
            break;
        }
        put_text(d, v, out);
        break;
    default:
        if (t->bpe)
            put_bpe(d, v, out);
        else
            put_spm(d, v, out);
    }
}

void rx_detok_flush(rx_detok *d, rx_buf *out)
{
    if (d->n_held)
        rx_puts(out, REPLACEMENT);
    d->n_held = 0;
}

void rx_tokenizer_decode(const rx_tokenizer *t, const int32_t *ids, size_t n, bool write_control, rx_buf *out)
{
    rx_detok d;
    rx_detok_init(&d, t, write_control, true);
    for (size_t i = n && ids[0] == t->bos && t->bos >= 0 && t->add_bos ? 1 : 0; i < n; i++)
        rx_detok_put(&d, ids[i], out);
    rx_detok_flush(&d, out);
}
