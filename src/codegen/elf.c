/* elf.c: one relocatable object to one shared object that imports nothing.
 *
 * In: ET_REL for x86-64 or aarch64. Out: ET_DYN with the segments R (headers, dynamic tables, constants), RX (code), RW
 * (pointer tables and GOT, read-only after relocation; then data and bss) and a symbol table for debuggers. Its only
 * exported symbol is rx_entries, so a plain dlopen and dlsym serve, and the loader has RELATIVE relocations alone to
 * do. Every offset, size and index of the input is checked before it is used. Left out: unwind tables, notes, debug
 * sections. Refused: thread-local data, constructors, symbols defined elsewhere. */
#include "codegen/elf.h"

_Static_assert(sizeof(rx_elf_ehdr) == 64 && sizeof(rx_elf_shdr) == 64 && sizeof(rx_elf_sym) == 24 &&
                   sizeof(rx_elf_rela) == 24 && sizeof(rx_elf_phdr) == 56,
               "the file format");

enum {
    SHT_PROGBITS = 1,
    SHT_SYMTAB = 2,
    SHT_STRTAB = 3,
    SHT_RELA = 4,
    SHT_HASH = 5,
    SHT_DYNAMIC = 6,
    SHT_NOTE = 7,
    SHT_NOBITS = 8,
    SHT_REL = 9,
    SHT_DYNSYM = 11,
    SHT_INIT_ARRAY = 14,
    SHT_PREINIT_ARRAY = 16
};
enum { F_WRITE = 1, F_ALLOC = 2, F_EXEC = 4, F_TLS = 0x400 };
#define MAX_SECTIONS 65000u

void rx_elf_bad(rx_elf *e, const char *what)
{
    rx_fail(e->ctx, RXE_FILE_CORRUPT, NULL, "the object file is damaged: %s", what);
}

/* ---- reading ---- */
static const uint8_t *range(rx_elf *e, uint64_t off, uint64_t size, const char *what)
{
    if (off > e->n || size > e->n - off) rx_elf_bad(e, what);
    return e->obj + off;
}

static const char *string_in(rx_elf *e, uint32_t section, uint32_t at)
{
    if (section >= e->nsec || e->sec[section].h.type != SHT_STRTAB) rx_elf_bad(e, "a string table is missing");
    const rx_elf_shdr *h = &e->sec[section].h;
    const uint8_t *s = range(e, h->offset, h->size, "a string table lies outside the file");
    if (at >= h->size || !memchr(s + at, 0, h->size - at)) rx_elf_bad(e, "a name lies outside its table");
    return (const char *)s + at;
}

static bool starts(const char *s, const char *with) { return strncmp(s, with, strlen(with)) == 0; }

static uint8_t part_of(rx_elf *e, const rx_elf_sec *s)
{
    const rx_elf_shdr *h = &s->h;
    if (!(h->flags & F_ALLOC) || h->type == SHT_NOTE || starts(s->name, ".eh_frame") || starts(s->name, ".note"))
        return P_SKIP;
    if (h->flags & F_TLS)
        rx_fail(e->ctx, RXE_CODEGEN, NULL, "the object has thread-local data (section '%s')", s->name);
    if ((h->type >= SHT_INIT_ARRAY && h->type <= SHT_PREINIT_ARRAY) || starts(s->name, ".ctors") ||
        starts(s->name, ".init"))
        rx_fail(e->ctx, RXE_CODEGEN, NULL, "the object has constructors (section '%s')", s->name);
    if (h->type != SHT_PROGBITS && h->type != SHT_NOBITS)
        rx_fail(e->ctx, RXE_CODEGEN, NULL, "the object has section '%s' of type %u", s->name, h->type);
    if (h->flags & F_EXEC) return P_TEXT;
    if (h->type == SHT_NOBITS) return P_BSS;
    if (!(h->flags & F_WRITE)) return P_RODATA;
    return starts(s->name, ".data.rel.ro") ? P_RELRO : P_DATA;
}

static void read_sections(rx_elf *e)
{
    rx_elf_ehdr h;
    memcpy(&h, range(e, 0, sizeof h, "it is too short"), sizeof h);
    static const uint8_t want[7] = {0x7F, 'E', 'L', 'F', 2, 1, 1};
    if (memcmp(h.ident, want, sizeof want) || h.type != 1) rx_elf_bad(e, "it is not a relocatable 64-bit ELF file");
    if (h.machine != EM_X86 && h.machine != EM_ARM64) rx_elf_bad(e, "it is for another machine");
    if (h.shentsize != sizeof(rx_elf_shdr) || h.shnum == 0 || h.shnum > MAX_SECTIONS) rx_elf_bad(e, "its sections");
    e->machine = h.machine;
    e->nsec = h.shnum;
    e->sec = RX_NEWN(e->a, rx_elf_sec, e->nsec);
    const uint8_t *at =
        range(e, h.shoff, (uint64_t)h.shnum * sizeof(rx_elf_shdr), "the section table lies outside the file");
    for (uint32_t i = 0; i < e->nsec; i++) memcpy(&e->sec[i].h, at + i * sizeof(rx_elf_shdr), sizeof(rx_elf_shdr));
    for (uint32_t i = 0; i < e->nsec; i++) {
        rx_elf_sec *s = &e->sec[i];
        s->part = P_SKIP;
        if (i == 0) continue;
        s->name = string_in(e, h.shstrndx, s->h.name);
        if (s->h.type == SHT_SYMTAB) e->symtab = i;
        if (s->h.type == SHT_REL) rx_elf_bad(e, "relocations without addends");
        if (s->h.size > (uint64_t)1 << 40) rx_elf_bad(e, "a section is too large");
        if (s->h.type != SHT_NOBITS) range(e, s->h.offset, s->h.size, "a section lies outside the file");
        uint64_t align = s->h.addralign;
        if (align & (align - 1) || align > 4096) rx_elf_bad(e, "the alignment of a section");
        s->part = part_of(e, s);
        if (s->h.type == SHT_NOBITS && s->part == P_TEXT) rx_elf_bad(e, "code without contents");
    }
}

static void read_symbols(rx_elf *e)
{
    if (!e->symtab) return;
    const rx_elf_shdr *h = &e->sec[e->symtab].h;
    if (h->size % sizeof(rx_elf_sym) || h->size / sizeof(rx_elf_sym) > UINT32_MAX / 2)
        rx_elf_bad(e, "the symbol table");
    e->nsym = (uint32_t)(h->size / sizeof(rx_elf_sym));
    e->sym = RX_NEWN(e->a, rx_elf_out_sym, e->nsym);
    for (uint32_t i = 0; i < e->nsym; i++) {
        rx_elf_out_sym *s = &e->sym[i];
        memcpy(&s->in, e->obj + h->offset + (uint64_t)i * sizeof s->in, sizeof s->in);
        s->name = string_in(e, h->link, s->in.name);
        uint16_t k = s->in.shndx;
        if (k >= e->nsec && k < SHN_RESERVED) rx_elf_bad(e, "a symbol in a section that does not exist");
        if ((s->in.info & 15) == 10) rx_fail(e->ctx, RXE_CODEGEN, NULL, "symbol '%s' is an indirect function", s->name);
        if (k < SHN_RESERVED && k && e->sec[k].part != P_SKIP && s->in.value > e->sec[k].h.size)
            rx_elf_bad(e, "a symbol lies outside its section");
        if (k == SHN_COMMON_ &&
            (s->in.value & (s->in.value - 1) || s->in.value > 4096 || s->in.size > (uint64_t)1 << 40))
            rx_elf_bad(e, "a common symbol");
    }
}

/* ---- layout ---- */
static uint64_t align_up(uint64_t v, uint64_t to) { return to > 1 ? (v + to - 1) & ~(to - 1) : v; }

/* offsets of the sections within their parts; pointer tables get room for rx_entries and the GOT in front */
static void place_sections(rx_elf *e, uint64_t tables)
{
    e->part_size[P_RELRO] = tables;
    for (uint32_t p = 0; p < P_COUNT; p++) e->part_align[p] = 64;
    for (uint32_t i = 1; i < e->nsec; i++) {
        rx_elf_sec *s = &e->sec[i];
        if (s->part == P_SKIP) continue;
        uint64_t *size = &e->part_size[s->part];
        s->addr = align_up(*size, s->h.addralign);
        *size = s->addr + s->h.size;
        e->part_align[s->part] = RX_MAX(e->part_align[s->part], s->h.addralign);
        if (*size > (uint64_t)1 << 30) rx_fail(e->ctx, RXE_LIMIT, NULL, "the object is larger than 1 GiB");
    }
    for (uint32_t i = 0; i < e->nsym; i++) {
        rx_elf_out_sym *s = &e->sym[i];
        if (s->in.shndx != SHN_COMMON_) continue;
        s->common = align_up(e->part_size[P_BSS], s->in.value);
        e->part_size[P_BSS] = s->common + s->in.size;
        e->part_align[P_BSS] = RX_MAX(e->part_align[P_BSS], s->in.value);
        if (e->part_size[P_BSS] > (uint64_t)1 << 30)
            rx_fail(e->ctx, RXE_LIMIT, NULL, "the object is larger than 1 GiB");
    }
}

typedef struct layout {
    uint64_t page, dynsym, dynstr, hash, rela, dynamic, symtab, strtab, shstrtab, shdrs, end;
    uint64_t strtab_size, shstrtab_size, relro_end;
    uint32_t nsyms;                          /* of .symtab */
} layout;

#define NPHDR 7
#define NDYN 11
static const char dyn_strings[] = "\0rx_entries";

/* Addresses equal file offsets up to multiples of the page: the file has no padding between segments. */
static void place_parts(rx_elf *e, layout *l)
{
    uint64_t off = sizeof(rx_elf_ehdr) + NPHDR * sizeof(rx_elf_phdr), shift = 0;
    l->page = e->machine == EM_X86 ? 4096 : 65536;
    l->dynsym = off = align_up(off, 8);
    l->dynstr = off += 2 * sizeof(rx_elf_sym);
    l->hash = off = align_up(off + sizeof dyn_strings, 8);
    l->rela = off = align_up(off + 5 * 4, 8);
    off += (uint64_t)e->nrelative * sizeof(rx_elf_rela);
    bool writable = e->part_size[P_DATA] || e->part_size[P_BSS];
    for (uint32_t p = 0; p < P_COUNT; p++) {
        if (p == P_TEXT || p == P_RELRO) shift += l->page;
        if (p == P_DATA) {                   /* what comes before becomes read-only in whole pages */
            if (writable) off = align_up(off, l->page);
            l->relro_end = align_up(off + shift, l->page);
        }
        off = align_up(off, e->part_align[p]);
        e->part_off[p] = off;
        e->part_addr[p] = off + shift;
        if (p != P_BSS) off += e->part_size[p];
        if (p != P_RELRO) continue;
        l->dynamic = align_up(off, 16);
        off = l->dynamic + NDYN * 16;
    }
    l->symtab = align_up(off, 8);
}

/* ---- tables ---- */
static bool shown(const rx_elf *e, const rx_elf_out_sym *s)
{
    uint32_t kind = s->in.info & 15;
    return s->name[0] && kind <= 2 && s->in.shndx && s->in.shndx < SHN_RESERVED && e->sec[s->in.shndx].part != P_SKIP;
}

/* section numbers of the output */
enum {
    S_NULL,
    S_DYNSYM,
    S_DYNSTR,
    S_HASH,
    S_RELA,
    S_RODATA,
    S_TEXT,
    S_RELRO,
    S_DYNAMIC,
    S_DATA,
    S_BSS,
    S_SYMTAB,
    S_STRTAB,
    S_SHSTRTAB,
    S_COUNT
};
static const char *const section_names[S_COUNT] = {"",        ".dynsym", ".dynstr",      ".hash",    ".rela.dyn",
                                                   ".rodata", ".text",   ".data.rel.ro", ".dynamic", ".data",
                                                   ".bss",    ".symtab", ".strtab",      ".shstrtab"};
static const uint8_t section_of_part[P_COUNT] = {S_RODATA, S_TEXT, S_RELRO, S_DATA, S_BSS};

static void place_tables(rx_elf *e, layout *l)
{
    l->nsyms = 2;                            /* the null symbol, rx_entries */
    l->strtab_size = sizeof dyn_strings;
    for (uint32_t i = 0; i < e->nsym; i++)
        if (shown(e, &e->sym[i])) {
            l->nsyms++;
            l->strtab_size += strlen(e->sym[i].name) + 1;
        }
    l->strtab = l->symtab + (uint64_t)l->nsyms * sizeof(rx_elf_sym);
    l->shstrtab = l->strtab + l->strtab_size;
    l->shstrtab_size = 0;
    for (uint32_t i = 0; i < S_COUNT; i++) l->shstrtab_size += strlen(section_names[i]) + 1;
    l->shdrs = align_up(l->shstrtab + l->shstrtab_size, 8);
    l->end = l->shdrs + S_COUNT * sizeof(rx_elf_shdr);
}

static void put(rx_elf *e, uint64_t off, const void *p, size_t n)
{
    memcpy(e->out + off, p, n);
}

static void write_symtab(rx_elf *e, const layout *l, const rx_elf_sym *entries)
{
    uint64_t at = l->symtab + sizeof(rx_elf_sym), str = l->strtab + sizeof dyn_strings;
    put(e, l->strtab, dyn_strings, sizeof dyn_strings);
    for (uint32_t i = 0; i < e->nsym; i++) {
        const rx_elf_out_sym *s = &e->sym[i];
        if (!shown(e, s)) continue;
        rx_elf_sym o = {.name = (uint32_t)(str - l->strtab), .info = s->in.info & 15, .size = s->in.size};
        o.shndx = section_of_part[e->sec[s->in.shndx].part];
        o.value = rx_elf_sym_addr(e, i);
        put(e, at, &o, sizeof o);
        put(e, str, s->name, strlen(s->name) + 1);
        at += sizeof o;
        str += strlen(s->name) + 1;
    }
    put(e, at, entries, sizeof *entries);
}

static void write_dynamic(rx_elf *e, const layout *l)
{
    const uint64_t d[NDYN][2] = {{4, l->hash},
                                 {5, l->dynstr},
                                 {6, l->dynsym},
                                 {10, sizeof dyn_strings},
                                 {11, sizeof(rx_elf_sym)},
                                 {7, l->rela},
                                 {8, (uint64_t)e->nrelative * sizeof(rx_elf_rela)},
                                 {9, sizeof(rx_elf_rela)},
                                 {0x6FFFFFF9, e->nrelative},
                                 {0x6FFFFFFB, 1 /* now */},
                                 {0, 0}};
    const uint32_t hash[5] = {1, 2, 1, 0, 0}; /* one bucket, two symbols: bucket[0] = 1, chain = {0, 0} */
    put(e, l->dynamic, d, sizeof d);
    put(e, l->hash, hash, sizeof hash);
    put(e, l->dynstr, dyn_strings, sizeof dyn_strings);
    put(e, l->rela, e->relative, (size_t)e->nrelative * sizeof(rx_elf_rela));
}

static void write_phdrs(rx_elf *e, const layout *l)
{
    uint64_t *a = e->part_addr, *o = e->part_off, *z = e->part_size;
    uint64_t ro_end = o[P_RODATA] + z[P_RODATA], data_end = o[P_DATA] + z[P_DATA];
    uint64_t dyn_addr = l->dynamic - o[P_RELRO] + a[P_RELRO];
    uint64_t rw_end = RX_MAX(a[P_BSS] + z[P_BSS], l->relro_end);     /* pages to be protected must be mapped */
    const rx_elf_phdr h[NPHDR] = {
        {6, 4, 64, 64, 64, NPHDR * sizeof(rx_elf_phdr), NPHDR * sizeof(rx_elf_phdr), 8},
        {1, 4, 0, 0, 0, ro_end, ro_end, l->page},
        {1, 5, o[P_TEXT], a[P_TEXT], a[P_TEXT], z[P_TEXT], z[P_TEXT], l->page},
        {1, 6, o[P_RELRO], a[P_RELRO], a[P_RELRO], data_end - o[P_RELRO], rw_end - a[P_RELRO], l->page},
        {2, 6, l->dynamic, dyn_addr, dyn_addr, NDYN * 16, NDYN * 16, 16},
        {0x6474E551, 6, 0, 0, 0, 0, 0, 16},
        {0x6474E552, 4, o[P_RELRO], a[P_RELRO], a[P_RELRO], l->dynamic + NDYN * 16 - o[P_RELRO],
         l->relro_end - a[P_RELRO], 1},
    };
    rx_elf_ehdr eh = {.ident = {0x7F, 'E', 'L', 'F', 2, 1, 1},
                      .type = 3,
                      .machine = e->machine,
                      .version = 1,
                      .phoff = 64,
                      .shoff = l->shdrs,
                      .ehsize = 64,
                      .phentsize = sizeof(rx_elf_phdr),
                      .phnum = NPHDR,
                      .shentsize = sizeof(rx_elf_shdr),
                      .shnum = S_COUNT,
                      .shstrndx = S_SHSTRTAB};
    put(e, 0, &eh, sizeof eh);
    put(e, 64, h, sizeof h);
}

static void write_shdrs(rx_elf *e, const layout *l)
{
    uint64_t *a = e->part_addr, *o = e->part_off, *z = e->part_size;
    const rx_elf_shdr h[S_COUNT] = {
        [S_DYNSYM] = {0, SHT_DYNSYM, F_ALLOC, l->dynsym, l->dynsym, 2 * sizeof(rx_elf_sym), S_DYNSTR, 1, 8,
                      sizeof(rx_elf_sym)},
        [S_DYNSTR] = {0, SHT_STRTAB, F_ALLOC, l->dynstr, l->dynstr, sizeof dyn_strings, 0, 0, 1, 0},
        [S_HASH] = {0, SHT_HASH, F_ALLOC, l->hash, l->hash, 20, S_DYNSYM, 0, 8, 4},
        [S_RELA] = {0, SHT_RELA, F_ALLOC, l->rela, l->rela, (uint64_t)e->nrelative * sizeof(rx_elf_rela), S_DYNSYM, 0,
                    8, sizeof(rx_elf_rela)},
        [S_RODATA] = {0, SHT_PROGBITS, F_ALLOC, a[P_RODATA], o[P_RODATA], z[P_RODATA], 0, 0, 64, 0},
        [S_TEXT] = {0, SHT_PROGBITS, F_ALLOC | F_EXEC, a[P_TEXT], o[P_TEXT], z[P_TEXT], 0, 0, 64, 0},
        [S_RELRO] = {0, SHT_PROGBITS, F_ALLOC | F_WRITE, a[P_RELRO], o[P_RELRO], z[P_RELRO], 0, 0, 64, 0},
        [S_DYNAMIC] = {0, SHT_DYNAMIC, F_ALLOC | F_WRITE, l->dynamic - o[P_RELRO] + a[P_RELRO], l->dynamic, NDYN * 16,
                       S_DYNSTR, 0, 16, 16},
        [S_DATA] = {0, SHT_PROGBITS, F_ALLOC | F_WRITE, a[P_DATA], o[P_DATA], z[P_DATA], 0, 0, 64, 0},
        [S_BSS] = {0, SHT_NOBITS, F_ALLOC | F_WRITE, a[P_BSS], o[P_BSS], z[P_BSS], 0, 0, 64, 0},
        [S_SYMTAB] = {0, SHT_SYMTAB, 0, 0, l->symtab, (uint64_t)l->nsyms * sizeof(rx_elf_sym), S_STRTAB, l->nsyms - 1,
                      8, sizeof(rx_elf_sym)},
        [S_STRTAB] = {0, SHT_STRTAB, 0, 0, l->strtab, l->strtab_size, 0, 0, 1, 0},
        [S_SHSTRTAB] = {0, SHT_STRTAB, 0, 0, l->shstrtab, l->shstrtab_size, 0, 0, 1, 0},
    };
    uint64_t name = 0;
    for (uint32_t i = 0; i < S_COUNT; i++) {
        rx_elf_shdr s = h[i];
        s.name = (uint32_t)name;
        put(e, l->shdrs + i * sizeof s, &s, sizeof s);
        put(e, l->shstrtab + name, section_names[i], strlen(section_names[i]) + 1);
        name += strlen(section_names[i]) + 1;
    }
}

/* ---- the whole ---- */
static void find_entries(rx_elf *e, const char *const *entries, uint32_t n, uint32_t *found)
{
    rx_map names;
    rx_map_init(&names, e->a);
    for (uint32_t i = e->nsym; i-- > 0;)
        if (shown(e, &e->sym[i])) rx_map_put(&names, rx_hash(e->sym[i].name, strlen(e->sym[i].name), 0), &e->sym[i]);
    for (uint32_t i = 0; i < n; i++) {
        rx_elf_out_sym *s = rx_map_get(&names, rx_hash(entries[i], strlen(entries[i]), 0));
        if (!s || strcmp(s->name, entries[i]) || e->sec[s->in.shndx].part != P_TEXT)
            rx_fail(e->ctx, RXE_CODEGEN, NULL, "the object does not define function '%s'", entries[i]);
        found[i] = (uint32_t)(s - e->sym);
    }
}

static void copy_sections(rx_elf *e)
{
    for (uint32_t i = 1; i < e->nsec; i++) {
        rx_elf_sec *s = &e->sec[i];
        if (s->part == P_SKIP) continue;
        uint64_t off = e->part_off[s->part] + s->addr;
        s->addr += e->part_addr[s->part];
        if (s->h.type != SHT_NOBITS && s->h.size) put(e, off, e->obj + s->h.offset, s->h.size);
    }
}

static int by_offset(const rx_elf_rela *a, const rx_elf_rela *b)
{
    return a->offset < b->offset ? -1 : a->offset > b->offset;
}

/* the loader walks them in order of address; shell sort, their number is small */
static void sort_relative(rx_elf *e)
{
    for (uint32_t gap = e->made / 2; gap; gap /= 2)
        for (uint32_t i = gap; i < e->made; i++) {
            rx_elf_rela x = e->relative[i];
            uint32_t k = i;
            for (; k >= gap && by_offset(&e->relative[k - gap], &x) > 0; k -= gap)
                e->relative[k] = e->relative[k - gap];
            e->relative[k] = x;
        }
}

void rx_elf_link(relax_context *ctx, rx_arena *a, const uint8_t *obj, size_t n, const char *const *entries,
                 uint32_t nentries, uint8_t **so, size_t *so_size)
{
    rx_elf e = {.ctx = ctx, .a = a, .obj = obj, .n = n};
    layout l = {0};
    read_sections(&e);
    read_symbols(&e);
    uint32_t *found = RX_NEWN(a, uint32_t, nentries + 1u);
    find_entries(&e, entries, nentries, found);
    rx_elf_scan_relocs(&e);
    e.nrelative += nentries + e.ngot;
    place_sections(&e, ((uint64_t)nentries + e.ngot) * 8);
    place_parts(&e, &l);
    place_tables(&e, &l);
    e.out = rx_arena_alloc(a, l.end, 64);
    e.relative = RX_NEWN(a, rx_elf_rela, e.nrelative + 1u);
    copy_sections(&e);
    uint64_t table = e.part_addr[P_RELRO];
    e.got = table + (uint64_t)nentries * 8;
    for (uint32_t i = 0; i < nentries; i++) rx_elf_relative(&e, table + (uint64_t)i * 8, rx_elf_sym_addr(&e, found[i]));
    for (uint32_t i = 0; i < e.nsym; i++)
        if (e.sym[i].got) rx_elf_relative(&e, e.got + (uint64_t)(e.sym[i].got - 1) * 8, rx_elf_sym_addr(&e, i));
    rx_elf_apply_relocs(&e);
    sort_relative(&e);
    rx_elf_sym exported = {
        .name = 1, .info = 1 << 4 | 1, .shndx = S_RELRO, .value = table, .size = (uint64_t)nentries * 8};
    put(&e, l.dynsym + sizeof exported, &exported, sizeof exported);
    write_symtab(&e, &l, &exported);
    write_dynamic(&e, &l);
    write_phdrs(&e, &l);
    write_shdrs(&e, &l);
    *so = e.out;
    *so_size = l.end;
}
