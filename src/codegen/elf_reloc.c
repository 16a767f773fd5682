/* elf_reloc.c: relocations of x86-64 and aarch64, those that LLVM and gcc emit for position-independent code in the
 * small code model. S symbol, A addend, P place, G slot of the global offset table, L load address.
 *
 * A scan comes first: it counts what needs a GOT slot or a RELATIVE entry, and lists the symbols that are not defined.
 */
#include "codegen/elf.h"

typedef enum form {                          /* what is stored, and how */
    F_ABS64,                                 /* S + A + L, a word the loader finishes */
    F_PC32, F_PC64,                          /* S + A - P */
    F_GOTPC32,                               /* G + A - P */
    F_PAGE21, F_GOTPAGE21,                   /* aarch64: page(S + A) - page(P), page(G) - page(P) in adrp */
    F_ADR21,                                 /* S + A - P in adr */
    F_LO12, F_GOTLO12,                       /* low 12 bits, scaled, in add, ldr, str */
    F_JUMP26, F_JUMP19, F_JUMP14             /* (S + A - P) / 4 */
} form;
typedef struct rule { uint16_t machine, type; uint8_t form, scale; const char *name; } rule;
static const rule rules[] = {
    {EM_X86, 1, F_ABS64, 0, "64"},
    {EM_X86, 2, F_PC32, 0, "PC32"},
    {EM_X86, 4, F_PC32, 0, "PLT32"},
    {EM_X86, 9, F_GOTPC32, 0, "GOTPCREL"},
    {EM_X86, 24, F_PC64, 0, "PC64"},
    {EM_X86, 41, F_GOTPC32, 0, "GOTPCRELX"},
    {EM_X86, 42, F_GOTPC32, 0, "REX_GOTPCRELX"},
    {EM_ARM64, 257, F_ABS64, 0, "ABS64"},
    {EM_ARM64, 260, F_PC64, 0, "PREL64"},
    {EM_ARM64, 261, F_PC32, 0, "PREL32"},
    {EM_ARM64, 273, F_JUMP19, 0, "LD_PREL_LO19"},
    {EM_ARM64, 274, F_ADR21, 0, "ADR_PREL_LO21"},
    {EM_ARM64, 275, F_PAGE21, 0, "ADR_PREL_PG_HI21"},
    {EM_ARM64, 277, F_LO12, 0, "ADD_ABS_LO12_NC"},
    {EM_ARM64, 278, F_LO12, 0, "LDST8_ABS_LO12_NC"},
    {EM_ARM64, 279, F_JUMP14, 0, "TSTBR14"},
    {EM_ARM64, 280, F_JUMP19, 0, "CONDBR19"},
    {EM_ARM64, 282, F_JUMP26, 0, "JUMP26"},
    {EM_ARM64, 283, F_JUMP26, 0, "CALL26"},
    {EM_ARM64, 284, F_LO12, 1, "LDST16_ABS_LO12_NC"},
    {EM_ARM64, 285, F_LO12, 2, "LDST32_ABS_LO12_NC"},
    {EM_ARM64, 286, F_LO12, 3, "LDST64_ABS_LO12_NC"},
    {EM_ARM64, 299, F_LO12, 4, "LDST128_ABS_LO12_NC"},
    {EM_ARM64, 311, F_GOTPAGE21, 0, "ADR_GOT_PAGE"},
    {EM_ARM64, 312, F_GOTLO12, 3, "LD64_GOT_LO12_NC"},
};

static const rule *find_rule(rx_elf *e, uint32_t type)
{
    for (uint32_t i = 0; i < RX_COUNT(rules); i++)
        if (rules[i].machine == e->machine && rules[i].type == type) return &rules[i];
    rx_fail(e->ctx, RXE_CODEGEN, NULL,
            "the object has a relocation of type %u: it is not position-independent small-model code", type);
}

static uint32_t width(const rule *r) { return r->form == F_ABS64 || r->form == F_PC64 ? 8 : 4; }

uint64_t rx_elf_sym_addr(rx_elf *e, uint32_t sym)
{
    const rx_elf_out_sym *s = &e->sym[sym];
    if (s->in.shndx == SHN_COMMON_) return e->part_addr[P_BSS] + s->common;
    return e->sec[s->in.shndx].addr + s->in.value;
}

void rx_elf_relative(rx_elf *e, uint64_t at, uint64_t value)
{
    RX_CHECK(e->ctx, e->made < e->nrelative);
    e->relative[e->made++] =
        (rx_elf_rela){at, e->machine == EM_X86 ? R_X86_RELATIVE : R_ARM64_RELATIVE, 0, (int64_t)value};
}

/* ---- scan ---- */
static void undefined(rx_elf *e, const bool *missing)
{
    rx_buf b;
    uint32_t n = 0;
    rx_buf_init(&b, e->a);
    for (uint32_t i = 0; i < e->nsym; i++) {
        if (!missing[i]) continue;
        if (n < 8) rx_putf(&b, "%s%s", n ? ", " : "", e->sym[i].name);
        n++;
    }
    if (n > 8) rx_putf(&b, " and %u more", n - 8);
    rx_fail(e->ctx, RXE_CODEGEN, NULL, "the object needs symbols that nothing defines: %s", b.at);
}

/* true: the symbol is not defined here */
static bool check_symbol(rx_elf *e, const rx_elf_rela *r)
{
    if (r->sym >= e->nsym || r->sym == 0) rx_elf_bad(e, "a relocation names a symbol that does not exist");
    const rx_elf_out_sym *s = &e->sym[r->sym];
    uint16_t k = s->in.shndx;
    if (k == 0) return true;
    if (k == SHN_COMMON_) return false;
    if (k >= SHN_RESERVED || e->sec[k].part == P_SKIP)
        rx_fail(e->ctx, RXE_CODEGEN, NULL, "the object refers to '%s', which is not in a section that is linked",
                s->name);
    return false;
}

static void read_rela(rx_elf *e, const rx_elf_shdr *h, uint64_t i, rx_elf_rela *r)
{
    memcpy(r, e->obj + h->offset + i * sizeof *r, sizeof *r);
}

/* the section that relocations of section i apply to, or NULL when they are not ours */
static rx_elf_sec *target(rx_elf *e, uint32_t i)
{
    const rx_elf_shdr *h = &e->sec[i].h;
    if (i == 0 || h->type != 4) return NULL;
    if (h->info >= e->nsec) rx_elf_bad(e, "relocations of a section that does not exist");
    rx_elf_sec *t = &e->sec[h->info];
    if (t->part == P_SKIP || h->size == 0) return NULL;
    if (h->link != e->symtab || h->size % sizeof(rx_elf_rela)) rx_elf_bad(e, "a relocation table");
    if (t->part == P_BSS) rx_elf_bad(e, "relocations of a section without contents");
    return t;
}

static void scan_section(rx_elf *e, const rx_elf_sec *s, const rx_elf_shdr *h, bool *missing, bool *some)
{
    for (uint64_t k = 0; k < h->size / sizeof(rx_elf_rela); k++) {
        rx_elf_rela r;
        read_rela(e, h, k, &r);
        if (r.type == 0) continue;
        const rule *w = find_rule(e, r.type);
        if (r.offset > s->h.size || s->h.size - r.offset < width(w)) rx_elf_bad(e, "a relocation outside its section");
        if (check_symbol(e, &r)) *some = missing[r.sym] = true;
        if ((w->form == F_GOTPC32 || w->form == F_GOTPAGE21 || w->form == F_GOTLO12) && !e->sym[r.sym].got)
            e->sym[r.sym].got = ++e->ngot;
        if (w->form != F_ABS64) continue;
        if (s->part != P_RELRO && s->part != P_DATA)
            rx_fail(e->ctx, RXE_CODEGEN, NULL, "section '%s' holds addresses but cannot be written", s->name);
        e->nrelative++;
    }
}

void rx_elf_scan_relocs(rx_elf *e)
{
    bool *missing = RX_NEWN(e->a, bool, e->nsym + 1u), some = false;
    for (uint32_t i = 0; i < e->nsec; i++) {
        const rx_elf_sec *s = target(e, i);
        if (s) scan_section(e, s, &e->sec[i].h, missing, &some);
    }
    if (some) undefined(e, missing);
}

/* ---- apply ---- */
static void out_of_range(rx_elf *e, const rule *w, uint32_t sym)
{
    rx_fail(e->ctx, RXE_CODEGEN, NULL, "relocation %s to '%s' is out of range", w->name, e->sym[sym].name);
}

static void need(rx_elf *e, const rule *w, uint32_t sym, int64_t v, uint32_t bits, uint32_t align)
{
    int64_t top = (int64_t)1 << (bits - 1);
    if (v < -top || v >= top || v & (align - 1)) out_of_range(e, w, sym);
}

static void put64(uint8_t *p, uint64_t v) { memcpy(p, &v, 8); }
static void put32(uint8_t *p, uint64_t v) { memcpy(p, &(uint32_t){(uint32_t)v}, 4); }

/* fields of an instruction: `bits` wide at bit `at` */
static void insert(uint8_t *p, uint64_t v, uint32_t bits, uint32_t at)
{
    uint32_t i, mask = ((1u << bits) - 1) << at;
    memcpy(&i, p, 4);
    i = (i & ~mask) | ((uint32_t)(v << at) & mask);
    memcpy(p, &i, 4);
}

static void put_adr(uint8_t *p, uint64_t v)
{
    insert(p, v & 3, 2, 29);
    insert(p, v >> 2, 19, 5);
}

static void apply(rx_elf *e, const rule *w, const rx_elf_rela *r, uint64_t place, uint8_t *p)
{
    uint64_t s = rx_elf_sym_addr(e, r->sym) + (uint64_t)r->addend, g = 0;
    if (e->sym[r->sym].got) g = e->got + (uint64_t)(e->sym[r->sym].got - 1) * 8 + (uint64_t)r->addend;
    int64_t v = (int64_t)(s - place);
    switch ((form)w->form) {
    case F_ABS64:
        put64(p, s);
        rx_elf_relative(e, place, s);
        break;
    case F_PC64: put64(p, (uint64_t)v); break;
    case F_PC32: need(e, w, r->sym, v, 32, 1); put32(p, (uint64_t)v); break;
    case F_GOTPC32: v = (int64_t)(g - place); need(e, w, r->sym, v, 32, 1); put32(p, (uint64_t)v); break;
    case F_GOTPAGE21:
    case F_PAGE21:
        v = (int64_t)(((w->form == F_PAGE21 ? s : g) & ~(uint64_t)4095) - (place & ~(uint64_t)4095));
        need(e, w, r->sym, v, 33, 1);
        put_adr(p, (uint64_t)(v >> 12));
        break;
    case F_ADR21: need(e, w, r->sym, v, 21, 1); put_adr(p, (uint64_t)v); break;
    case F_GOTLO12:
    case F_LO12:
        s = (w->form == F_LO12 ? s : g) & 4095;
        if (s & (((uint64_t)1 << w->scale) - 1)) out_of_range(e, w, r->sym);
        insert(p, s >> w->scale, 12, 10);
        break;
    case F_JUMP26: need(e, w, r->sym, v, 28, 4); insert(p, (uint64_t)v >> 2, 26, 0); break;
    case F_JUMP19: need(e, w, r->sym, v, 21, 4); insert(p, (uint64_t)v >> 2, 19, 5); break;
    case F_JUMP14: need(e, w, r->sym, v, 16, 4); insert(p, (uint64_t)v >> 2, 14, 5); break;
    }
}

void rx_elf_apply_relocs(rx_elf *e)
{
    for (uint32_t i = 0; i < e->nsec; i++) {
        const rx_elf_sec *s = target(e, i);
        const rx_elf_shdr *h = &e->sec[i].h;
        for (uint64_t k = 0; s && k < h->size / sizeof(rx_elf_rela); k++) {
            rx_elf_rela r;
            read_rela(e, h, k, &r);
            if (r.type == 0) continue;
            uint64_t place = s->addr + r.offset;
            apply(e, find_rule(e, r.type), &r, place, e->out + (place - e->part_addr[s->part]) + e->part_off[s->part]);
        }
    }
}
