/* elf.h: private header of the ELF writer (elf.c, elf_reloc.c). Own declarations: the host need not be an ELF system.
 * Little endian only, on both sides. */
#ifndef RX_ELF_H
#define RX_ELF_H
#include "codegen/codegen.h"

typedef struct rx_elf_ehdr {
    uint8_t ident[16];
    uint16_t type, machine;
    uint32_t version;
    uint64_t entry, phoff, shoff;
    uint32_t flags;
    uint16_t ehsize, phentsize, phnum, shentsize, shnum, shstrndx;
} rx_elf_ehdr;
typedef struct rx_elf_phdr { uint32_t type, flags; uint64_t offset, vaddr, paddr, filesz, memsz, align; } rx_elf_phdr;
typedef struct rx_elf_shdr {
    uint32_t name, type;
    uint64_t flags, addr, offset, size;
    uint32_t link, info;
    uint64_t addralign, entsize;
} rx_elf_shdr;
typedef struct rx_elf_sym { uint32_t name; uint8_t info, other; uint16_t shndx; uint64_t value, size; } rx_elf_sym;
typedef struct rx_elf_rela { uint64_t offset; uint32_t type, sym; int64_t addend; } rx_elf_rela;
enum {
    EM_X86 = 62,
    EM_ARM64 = 183,
    R_X86_RELATIVE = 8,
    R_ARM64_RELATIVE = 1027,
    SHN_COMMON_ = 0xFFF2,
    SHN_RESERVED = 0xFF00
};

/* parts of the output, in the order of the file */
enum { P_RODATA, P_TEXT, P_RELRO, P_DATA, P_BSS, P_COUNT, P_SKIP = P_COUNT };

typedef struct rx_elf_sec {                  /* of the input */
    rx_elf_shdr h;
    const char *name;
    uint8_t part;
    uint64_t addr;
} rx_elf_sec;
typedef struct rx_elf_out_sym {
    rx_elf_sym in;
    const char *name;
    uint64_t common;
    uint32_t got;                            /* slot + 1, 0: none */
} rx_elf_out_sym;
typedef struct rx_elf {
    relax_context *ctx;
    rx_arena *a;
    const uint8_t *obj;
    size_t n;
    uint16_t machine;
    rx_elf_sec *sec;
    uint32_t nsec;
    rx_elf_out_sym *sym;
    uint32_t nsym;
    uint32_t symtab;                         /* input section of the symbols, 0: none */
    uint32_t ngot, nrelative;                /* slots of the global offset table; relocations left for the loader */
    uint64_t got;                            /* address of the table */
    uint8_t *out;                            /* file image */
    uint64_t part_addr[P_COUNT], part_off[P_COUNT], part_size[P_COUNT], part_align[P_COUNT];
    rx_elf_rela *relative;
    uint32_t made;                           /* relative[] filled so far */
} rx_elf;

void rx_elf_scan_relocs(rx_elf *e);          /* counts GOT slots and RELATIVE entries, refuses undefined symbols */
void rx_elf_apply_relocs(rx_elf *e);
uint64_t rx_elf_sym_addr(rx_elf *e, uint32_t sym);
void rx_elf_relative(rx_elf *e, uint64_t at, uint64_t value); /* the word at address `at` is value + load address */
RX_NORETURN void rx_elf_bad(rx_elf *e, const char *what);
#endif
