/* tables.c: names and operands of the bytecode and the shape program, from their .def tables. */
#include "pkg/pkg.h"

const char *const rx_bc_names[RX_BC_COUNT] = {
    "",
#define BC(num, name, operands, doc) [num] = #name,
#include "pkg/bytecode.def"
#undef BC
};

const char *const rx_bc_operands[RX_BC_COUNT] = {
    "",
#define BC(num, name, operands, doc) [num] = operands,
#include "pkg/bytecode.def"
#undef BC
};

const char *const rx_sh_text[RX_SH_COUNT] = {
#define SH(num, name, n, text, doc) [num] = text,
#include "pkg/shape.def"
#undef SH
};

const uint8_t rx_sh_arity[RX_SH_COUNT] = {
#define SH(num, name, n, text, doc) [num] = n,
#include "pkg/shape.def"
#undef SH
};
