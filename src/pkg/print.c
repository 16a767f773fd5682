/* print.c: an executable as text for people: tables, signatures, bytecode. In: an rx_pkg that rx_pkg_open accepted;
 * runs inside a frame, since rx_buf memory is an arena's. Slots print as s3 or as the symbol that lives there,
 * registers as r3. */
#include "pkg/pkg.h"

typedef struct printer { rx_buf *b; const rx_pkg *p; const rx_pkg_fn *f; } printer;

static void put_ref(const printer *o, int32_t ref)
{
    if (ref < 0) {
        rx_put_i64(o->b, o->p->ints[~ref]);
        return;
    }
    for (int32_t i = 0; o->f && i < o->f->nsyms; i++) {
        const rx_pkg_sym *s = &o->p->syms[o->f->sym0 + i];
        if (s->slot == ref) {
            rx_puts(o->b, rx_pkg_str(o->p, s->name));
            return;
        }
    }
    rx_putf(o->b, "s%d", ref);
}

static void put_dims(const printer *o, const rx_pkg_type *t)
{
    rx_puts(o->b, "(");
    for (int32_t i = 0; i < t->ndim; i++) {
        int32_t mode = o->p->tw[t->first + 2 * i], ref = o->p->tw[t->first + 2 * i + 1];
        rx_puts(o->b, i ? ", " : "");
        rx_puts(o->b, mode == RX_DIM_BIND ? "->" : mode == RX_DIM_ANY ? "?" : "");
        if (mode != RX_DIM_ANY)
            put_ref(o, ref);
    }
    rx_puts(o->b, t->ndim == 1 ? ",)" : ")");
}

static void put_type(const printer *o, int32_t ti)
{
    static const char *const names[] = {"Object", "Prim", "Shape", "Tensor", "Tuple", "Callable"};
    const rx_pkg_type *t = &o->p->types[ti];
    rx_puts(o->b, names[t->kind]);
    if (t->kind == RX_PT_OBJECT || t->kind == RX_PT_FUNC)
        return;
    rx_puts(o->b, "(");
    if (t->ndim < 0) {
        rx_puts(o->b, "ndim=?");
    } else if (t->kind == RX_PT_TUPLE) {
        for (int32_t i = 0; i < t->ndim; i++) {
            rx_puts(o->b, i ? ", " : "");
            put_type(o, o->p->tw[t->first + i]);
        }
    } else if (t->kind != RX_PT_PRIM || t->ndim) {
        put_dims(o, t);
    }
    if (t->kind == RX_PT_TENSOR || t->kind == RX_PT_PRIM)
        rx_putf(o->b, "%s%s", t->kind == RX_PT_PRIM && !t->ndim ? "" : ", ", rx_dtypes[t->dtype].name);
    rx_puts(o->b, ")");
}

static void put_quoted(rx_buf *b, const char *s)
{
    rx_putc(b, '"');
    for (; *s; s++) {
        if (*s == '"' || *s == '\\')
            rx_putf(b, "\\%c", *s);
        else if ((unsigned char)*s < ' ')
            rx_putf(b, "\\x%02x", (unsigned char)*s);
        else
            rx_putc(b, *s);
    }
    rx_putc(b, '"');
}

static void put_shape_ins(const printer *o, int32_t i)
{
    const rx_pkg_shape *s = &o->p->shape[i];
    const char *text = rx_sh_text[s->op];
    bool infix = rx_sh_arity[s->op] == 2 && s->op != RX_SH_MIN && s->op != RX_SH_MAX;
    const int32_t operand[3] = {s->a, s->b, s->c};
    put_ref(o, s->dst);
    rx_puts(o->b, " = ");
    if (!infix && *text)
        rx_putf(o->b, "%s ", text);
    for (int k = 0; k < rx_sh_arity[s->op]; k++) {
        if (k)
            rx_putf(o->b, infix ? " %s " : "%.0s ", text);
        put_ref(o, operand[k]);
    }
}

/* one operand at x; returns its words */
static int32_t put_operand(const printer *o, char letter, const int32_t *x)
{
    const rx_pkg *p = o->p;
    switch (letter) {
    case 'd':
    case 'r':
    case 't': rx_putf(o->b, "r%d", *x); break;
    case 's': put_ref(o, *x); break;
    case 'T':
    case 'P': put_type(o, *x); break;
    case 'k': rx_puts(o->b, rx_pkg_str(p, p->kernels[*x].name)); break;
    case 'l': rx_puts(o->b, rx_pkg_str(p, p->libs[*x].name)); break;
    case 'f': rx_putf(o->b, "@%s", rx_pkg_str(p, p->fns[*x].name)); break;
    case 'c': rx_putf(o->b, "c%d", *x); break;
    case 'x': put_quoted(o->b, rx_pkg_str(p, *x)); break;
    case 'y': rx_puts(o->b, rx_pkg_str(p, p->syms[o->f->sym0 + *x].name)); break;
    case 'j': rx_putf(o->b, "-> %d", *x); break;
    case 'p':
        for (int32_t i = 0; i < x[1]; i++) {
            rx_puts(o->b, i ? "; " : "");
            put_shape_ins(o, x[0] + i);
        }
        return 2;
    case 'R':
    case 'B':
    case 'V':
        rx_putc(o->b, '(');
        for (int32_t i = 0; i < *x; i++) {
            rx_puts(o->b, i ? ", " : "");
            put_operand(o, letter == 'V' ? 's' : 'r', x + 1 + i);
        }
        rx_putc(o->b, ')');
        return 1 + *x;
    default: rx_putf(o->b, "%d", *x);
    }
    return 1;
}

/* Names may come from an untrusted file and the text go to a terminal: control characters become '?'. */
static void clean(rx_buf *b, size_t from)
{
    for (size_t i = from; i < b->n; i++) {
        unsigned char c = (unsigned char)b->at[i], next = i + 1 < b->n ? (unsigned char)b->at[i + 1] : 0;
        if ((c < ' ' && c != '\n') || c == 0x7F)
            b->at[i] = '?';
        else if (c == 0xC2 && next < 0xA0)
            b->at[i] = b->at[i + 1] = '?';
    }
}

void rx_pkg_print_fn(rx_buf *b, const rx_pkg *p, int32_t fn)
{
    const rx_pkg_fn *f = &p->fns[fn];
    const printer o = {b, p, f};
    size_t from = b->n;
    for (int32_t pc = 0; pc < f->ncode;) {
        const int32_t *x = p->code + f->code0 + pc;
        rx_putf(b, "%5d  %-6s", pc, rx_bc_names[*x]);
        int32_t n = 1;
        for (const char *letter = rx_bc_operands[*x]; *letter; letter++) {
            rx_putc(b, ' ');
            n += put_operand(&o, *letter, x + n);
        }
        rx_putc(b, '\n');
        pc += n;
    }
    clean(b, from);
}

static void put_facts(const printer *o)
{
    bool first = true;
    for (int32_t i = 0; i < o->f->nsyms; i++) {
        const rx_pkg_sym *s = &o->p->syms[o->f->sym0 + i];
        const char *name = rx_pkg_str(o->p, s->name);
        if (s->lo > 0 || s->hi < INT64_MAX) {
            rx_puts(o->b, first ? " where " : ", ");
            if (s->lo != INT64_MIN && s->lo != 0)
                rx_putf(o->b, "%lld <= ", (long long)s->lo);
            rx_puts(o->b, name);
            if (s->hi != INT64_MAX)
                rx_putf(o->b, " <= %lld", (long long)s->hi);
            first = false;
        }
        if (s->divisor > 1) {
            rx_putf(o->b, "%s%s %% %lld == 0", first ? " where " : ", ", name, (long long)s->divisor);
            first = false;
        }
    }
}

void rx_pkg_print_signature(rx_buf *b, const rx_pkg *p, int32_t fn)
{
    const rx_pkg_fn *f = &p->fns[fn];
    const printer o = {b, p, f};
    int32_t weights = 0, shown = 0;
    size_t from = b->n;
    rx_putf(b, "%s(", rx_pkg_str(p, f->name));
    for (int32_t i = 0; i < f->nparams; i++) {
        const rx_pkg_param *a = &p->params[f->param0 + i];
        if (a->weight >= 0) {
            weights++;
            continue;
        }
        rx_putf(b, "%s%s: %s%s", shown++ ? ", " : "", rx_pkg_str(p, a->name), rx_pkg_str(p, a->type),
                a->flags & RX_PARAM_WRITTEN ? " (in place)" : "");
    }
    rx_putf(b, ") -> %s", rx_pkg_str(p, f->result));
    put_facts(&o);
    if (weights)
        rx_putf(b, "; %d weights", weights);
    clean(b, from);
}

static void put_tables(const printer *o)
{
    const rx_pkg *p = o->p;
    rx_buf *b = o->b;
    for (uint32_t i = 0; i < p->n_kernels; i++) {
        const rx_pkg_kernel *k = &p->kernels[i];
        rx_putf(b, "kernel %s: %d buffers, %d symbols, %d phases (", rx_pkg_str(p, k->name), k->nbufs, k->nsyms,
                k->nphases);
        for (int32_t j = 0; j < k->nphases; j++)
            rx_putc(b, p->phases[k->phase0 + j] ? 'p' : 's');
        rx_putf(b, ")%s%s\n", *rx_pkg_str(p, k->origin) ? " from " : "", rx_pkg_str(p, k->origin));
    }
    for (uint32_t i = 0; i < p->n_natives; i++) {
        const rx_pkg_native *n = &p->natives[i];
        rx_putf(b, "native %s: %lld bytes, features 0x%x\n", rx_pkg_str(p, n->target), (long long)n->size, n->features);
    }
    for (uint32_t i = 0; i < p->n_libs; i++)
        rx_putf(b, "library %s%s\n", rx_pkg_str(p, p->libs[i].name),
                p->libs[i].kind == RX_LIB_PACKED ? " (values)" : "");
    for (uint32_t i = 0; i < p->n_weights; i++)
        rx_putf(b, "weight %s: %s\n", rx_pkg_str(p, p->weights[i].name), rx_pkg_str(p, p->weights[i].type));
    for (uint32_t i = 0; i < p->n_consts; i++) {
        rx_putf(b, "const c%u: ", i);
        put_type(o, p->consts[i].type);
        rx_putf(b, ", %lld bytes\n", (long long)p->consts[i].size);
    }
}

void rx_pkg_print(rx_buf *b, const rx_pkg *p, bool code)
{
    size_t from = b->n;
    rx_putf(b, "executable, format %d.%d, %zu bytes\n", RX_PKG_MAJOR, p->minor, p->size);
    for (uint32_t i = 0; i < p->n_prov; i++)
        rx_putf(b, "%s: %s\n", rx_pkg_str(p, p->prov[i].key), rx_pkg_str(p, p->prov[i].value));
    for (uint32_t i = 0; i < p->n_fns; i++) {
        const rx_pkg_fn *f = &p->fns[i];
        rx_puts(b, f->flags & RX_FN_PRIVATE ? "private fn " : "fn ");
        rx_pkg_print_signature(b, p, (int32_t)i);
        if (*rx_pkg_str(p, f->mem_text))
            rx_putf(b, "\n  peak memory: %s bytes", rx_pkg_str(p, f->mem_text));
        rx_putf(b, "\n  %d registers, %d slots, %d words\n", f->nregs, f->nslots, f->ncode);
        if (code)
            rx_pkg_print_fn(b, p, (int32_t)i);
    }
    put_tables(&(printer){b, p, NULL});
    clean(b, from);
}
