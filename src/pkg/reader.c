/* reader.c: from untrusted bytes to arrays of records.
 *
 * In: any bytes. Out: an rx_pkg whose arrays lie inside them, whose sections have the checksums that the table says and
 * whose strings are whole. What the records say is checked by verify.c. Nothing is allocated. */
#include "pkg/pkg.h"

static const char magic[8] = {'R', 'E', 'L', 'A', 'X', 'E', 'X', 'E'};
enum { MAX_SECTIONS = 256 };

static uint64_t table_hash(const uint8_t *bytes, uint32_t nsections)
{
    rx_pkg_header h;
    memcpy(&h, bytes, sizeof h);
    h.table_hash = 0;
    return rx_hash(bytes + sizeof h, nsections * sizeof(rx_pkg_section), rx_hash(&h, sizeof h, 0));
}

static relax_status read_header(relax_context *ctx, const uint8_t *bytes, size_t size, rx_pkg_header *h)
{
    if ((uintptr_t)bytes % RX_PKG_ALIGN)
        return rx_error(ctx, RXE_BAD_VALUE, NULL, NULL, "the bytes of an executable must be aligned to %d",
                        RX_PKG_ALIGN);
    if (size < sizeof *h || memcmp(bytes, magic, sizeof magic) != 0)
        return rx_error(ctx, RXE_FILE_MAGIC, NULL, "it does not begin with RELAXEXE", "not an executable of librelax");
    memcpy(h, bytes, sizeof *h);
    if (h->endian != RX_PKG_ENDIAN)
        return rx_error(ctx, RXE_UNSUPPORTED, NULL, NULL, "the executable was written for the other byte order");
    if (h->major != RX_PKG_MAJOR)
        return rx_error(ctx, RXE_FILE_VERSION, NULL, "build it again with this version",
                        "the executable has format %d.%d, this library reads %d.%d", h->major, h->minor, RX_PKG_MAJOR,
                        RX_PKG_MINOR);
    if (h->file_size != size)
        return rx_error(ctx, RXE_FILE_CORRUPT, NULL, "it may be cut off",
                        "the executable should have %llu bytes, it has %zu", (unsigned long long)h->file_size, size);
    if (h->nsections > MAX_SECTIONS || h->nsections > (size - sizeof *h) / sizeof(rx_pkg_section))
        return rx_error(ctx, RXE_FILE_CORRUPT, NULL, NULL, "the table of %u sections does not fit", h->nsections);
    if (table_hash(bytes, h->nsections) != h->table_hash)
        return rx_error(ctx, RXE_CHECKSUM, NULL, NULL, "the header of the executable is damaged");
    return RELAX_OK;
}

/* the array of a known section in p: its pointer, its count, the size of a record. false: unknown kind */
static bool section_field(rx_pkg *p, uint32_t kind, const void ***at, uint32_t **n, size_t *record)
{
    switch (kind) {
#define SEC(num, name, field, type)      \
    case num:                            \
        *at = (const void **)&p->field;  \
        *n = &p->n_##field;              \
        *record = sizeof(type);          \
        return true;
#include "pkg/sections.def"
#undef SEC
    default:
        return false;
    }
}

static relax_status read_section(relax_context *ctx, rx_pkg *p, const rx_pkg_section *s, uint64_t *end)
{
    if (s->offset % RX_PKG_ALIGN || s->offset < *end || s->offset > p->size || s->size > p->size - s->offset)
        return rx_error(ctx, RXE_FILE_CORRUPT, NULL, NULL, "section %u lies outside the file or over another one",
                        s->kind);
    *end = s->offset + s->size;
    const uint8_t *bytes = p->bytes + s->offset;
    if (rx_hash(bytes, (size_t)s->size, 0) != s->hash)
        return rx_error(ctx, RXE_CHECKSUM, NULL, NULL, "section %u of the executable is damaged", s->kind);
    const void **at;
    uint32_t *n;
    size_t record;
    if (!section_field(p, s->kind, &at, &n, &record)) {
        if (!s->required)
            return RELAX_OK;
        return rx_error(ctx, RXE_FILE_VERSION, NULL, "use a newer version of this library",
                        "the executable (format %d.%d) needs section %u, which this library (%d.%d) does not know",
                        RX_PKG_MAJOR, p->minor, s->kind, RX_PKG_MAJOR, RX_PKG_MINOR);
    }
    if (*at || s->size % record || s->size / record > INT32_MAX)
        return rx_error(ctx, RXE_FILE_CORRUPT, NULL, NULL, "section %u occurs twice or has a broken size", s->kind);
    *at = bytes;
    *n = (uint32_t)(s->size / record);
    return RELAX_OK;
}

static relax_status check_strings(relax_context *ctx, rx_pkg *p)
{
    p->n_strings = p->n_str_at ? p->n_str_at - 1 : 0;
    bool ok = p->n_str_at == 0 ? p->n_str == 0 : p->str_at[0] == 0 && p->str_at[p->n_strings] == p->n_str;
    for (uint32_t i = 0; ok && i < p->n_strings; i++) {
        uint32_t a = p->str_at[i], b = p->str_at[i + 1];
        ok = a < b && b <= p->n_str && memchr(p->str + a, 0, b - a) == p->str + b - 1 &&
             rx_utf8_valid(p->str + a, b - a) == b - a;
    }
    return ok ? RELAX_OK : rx_error(ctx, RXE_FILE_CORRUPT, NULL, NULL, "the strings of the executable are damaged");
}

relax_status rx_pkg_read(relax_context *ctx, const uint8_t *bytes, size_t size, rx_pkg *p)
{
    rx_pkg_header h;
    memset(p, 0, sizeof *p);
    relax_status s = read_header(ctx, bytes, size, &h);
    if (s)
        return s;
    p->bytes = bytes;
    p->size = size;
    p->minor = h.minor;
    const rx_pkg_section *table = (const rx_pkg_section *)(bytes + sizeof h);
    uint64_t end = sizeof h + h.nsections * sizeof *table;
    for (uint32_t i = 0; i < h.nsections; i++) {
        s = read_section(ctx, p, &table[i], &end);
        if (s)
            return s;
    }
    return check_strings(ctx, p);
}

relax_status rx_pkg_open(relax_context *ctx, const uint8_t *bytes, size_t size, rx_pkg *p)
{
    relax_status s = rx_pkg_read(ctx, bytes, size, p);
    return s ? s : rx_pkg_verify(ctx, p);
}

int32_t rx_pkg_find_fn(const rx_pkg *p, const char *name, size_t n)
{
    for (uint32_t i = 0; i < p->n_fns; i++) {
        const char *s = rx_pkg_str(p, p->fns[i].name);
        if (strlen(s) == n && memcmp(s, name, n) == 0)
            return (int32_t)i;
    }
    return -1;
}

void rx_pkg_seal(uint8_t *bytes, size_t size)
{
    rx_pkg_header *h = (rx_pkg_header *)bytes;
    rx_pkg_section *table = (rx_pkg_section *)(bytes + sizeof *h);
    if (size < sizeof *h || h->nsections > (size - sizeof *h) / sizeof *table)
        return;
    h->file_size = size;
    for (uint32_t i = 0; i < h->nsections; i++)
        if (table[i].offset <= size && table[i].size <= size - table[i].offset)
            table[i].hash = rx_hash(bytes + table[i].offset, (size_t)table[i].size, 0);
    h->table_hash = table_hash(bytes, h->nsections);
}
