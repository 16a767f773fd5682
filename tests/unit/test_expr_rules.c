/* test_expr_rules.c: every line of rules.def, tried on all small values of its names by an evaluator of its own,
 * and fired once.
 *
 * The text is read here by a small recursive reader, not by the library's parser, because that canonicalises both
 * sides. */
#include "testlib.h"

#include "expr/expr.h"
#include "expr/impl.h"

typedef struct reader {
    const char *s;
    const int64_t *v;                  /* by letter */
    bool undefined;
} reader;

static int64_t read_or(reader *r);

static bool take(reader *r, const char *t)
{
    while (*r->s == ' ') r->s++;
    size_t n = strlen(t);
    if (strncmp(r->s, t, n)) return false;
    bool word = t[0] >= 'a' && t[0] <= 'z', more = r->s[n] >= 'a' && r->s[n] <= 'z';
    if (word && more) return false;
    r->s += n;
    return true;
}

static int64_t floor_div(reader *r, int64_t x, int64_t y)
{
    if (!y) return r->undefined = true, 0;
    return x / y - (x % y != 0 && (x < 0) != (y < 0));
}

static int64_t call(reader *r, const char *f)
{
    int64_t a[3] = {0};
    int n = 0;
    assert_true(take(r, "("));
    if (!strcmp(f, "select")) {        /* the other side need not have a value */
        bool before = r->undefined, side[3] = {false};
        do {
            r->undefined = false;
            a[n] = read_or(r);
            side[n++] = r->undefined;
        } while (take(r, ","));
        r->undefined = before || side[0] || side[a[0] ? 1 : 2];
        assert_true(take(r, ")"));
        return a[a[0] ? 1 : 2];
    }
    do a[n++] = read_or(r);
    while (take(r, ","));
    assert_true(take(r, ")"));
    if (!strcmp(f, "min")) return a[0] < a[1] ? a[0] : a[1];
    if (!strcmp(f, "max")) return a[0] > a[1] ? a[0] : a[1];
    if (!strcmp(f, "abs")) return a[0] < 0 ? -a[0] : a[0];
    if (!a[1]) return r->undefined = true, 0;
    return !strcmp(f, "truncdiv") ? a[0] / a[1] : a[0] % a[1];
}

static int64_t read_atom(reader *r)
{
    static const char *const functions[] = {"min", "max", "abs", "select", "truncdiv", "truncmod"};
    if (take(r, "-")) return -read_atom(r);
    if (take(r, "(")) {
        int64_t x = read_or(r);
        assert_true(take(r, ")"));
        return x;
    }
    for (size_t i = 0; i < RX_COUNT(functions); i++)
        if (take(r, functions[i])) return call(r, functions[i]);
    if (take(r, "true")) return 1;
    if (take(r, "false")) return 0;
    while (*r->s == ' ') r->s++;
    if (*r->s >= '0' && *r->s <= '9') return strtoll(r->s, (char **)&r->s, 10);
    assert_true(*r->s >= 'a' && *r->s <= 'z');
    return r->v[*r->s++ - 'a'];
}

static int64_t read_product(reader *r)
{
    int64_t x = read_atom(r);
    for (;;) {
        if (take(r, "//")) x = floor_div(r, x, read_atom(r));
        else if (take(r, "*")) x *= read_atom(r);
        else if (take(r, "%")) { int64_t y = read_atom(r); x -= floor_div(r, x, y) * y; }
        else return x;
    }
}

static int64_t read_sum(reader *r)
{
    int64_t x = read_product(r);
    for (;;) {
        if (take(r, "+")) x += read_product(r);
        else if (take(r, "-")) x -= read_product(r);
        else return x;
    }
}

static int64_t read_compare(reader *r)
{
    if (take(r, "not")) return !read_compare(r);
    int64_t x = read_sum(r);
    if (take(r, "<=")) return x <= read_sum(r);
    if (take(r, "==")) return x == read_sum(r);
    if (take(r, "!=")) return x != read_sum(r);
    if (take(r, ">=")) return x >= read_sum(r);
    if (take(r, "<")) return x < read_sum(r);
    if (take(r, ">")) return x > read_sum(r);
    return x;
}

static int64_t read_and(reader *r)
{
    int64_t x = read_compare(r);
    while (take(r, "and")) x &= read_compare(r) != 0;
    return x;
}

static int64_t read_or(reader *r)
{
    int64_t x = read_and(r);
    while (take(r, "or")) x |= read_and(r) != 0;
    return x;
}

static int64_t value(const char *text, const int64_t *v, bool *defined)
{
    reader r = {text, v, false};
    int64_t x = read_or(&r);
    while (*r.s == ' ') r.s++;
    if (*r.s) print_error("unread: %s\n", r.s);
    assert_int_equal(*r.s, 0);
    *defined = !r.undefined;
    return x;
}

/* the names of a rule, each once */
static int letters(const char *const *rule, char *out)
{
    int n = 0;
    for (int k = 0; k < 3; k++)
        for (const char *s = rule[k]; *s; s++) {
            bool word = (s > rule[k] && s[-1] >= 'a' && s[-1] <= 'z') || (s[1] >= 'a' && s[1] <= 'z');
            if (*s >= 'a' && *s <= 'z' && !word && !memchr(out, *s, (size_t)n)) out[n++] = *s;
        }
    return n;
}

static void every_rule_holds(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < rx_rule_count(); i++) {
        const char *const *t = rx_rule_text(i);
        char name[26];
        int n = letters(t, name), range = n > 4 ? 3 : n > 3 ? 5 : n > 1 ? 7 : 40;
        int64_t v[26] = {0}, checked = 0, points = 1;
        for (int k = 0; k < n; k++) points *= 2 * range + 1;
        for (int64_t p = 0; p < points; p++) {
            int64_t q = p;
            bool used = true, dl, dr, dc;
            for (int k = 0; k < n; k++) {
                int64_t x = q % (2 * range + 1) - range;
                q /= 2 * range + 1;
                if (rx_rule_is_bool(name[k])) used &= x == 0 || x == 1;
                v[name[k] - 'a'] = x;
            }
            if (!used || (t[2][0] && (!value(t[2], v, &dc) || !dc))) continue;
            int64_t l = value(t[0], v, &dl), r = value(t[1], v, &dr);
            if (!dl) continue;
            checked++;
            if (!dr || l != r) {
                print_error("rule %s => %s if %s: %lld and %lld\n", t[0], t[1], t[2], (long long)l, (long long)r);
                for (int k = 0; k < n; k++) print_error("  %c = %lld\n", name[k], (long long)v[name[k] - 'a']);
                fail();
            }
        }
        if (checked < 10) print_error("rule %s: only %lld values\n", t[0], (long long)checked);
        assert_true(checked >= 10);
    }
}

typedef struct scope { relax_context *ctx; rx_ex v[26]; const int64_t *c; rx_facts *f; } scope;

static rx_ex resolve(void *arg, rx_lexer *l, const char *name)
{
    scope *s = arg;
    int i = name[0] - 'a';
    (void)l;
    if (rx_rule_is_const(name[0])) return rx_int(s->ctx, s->c[i]);
    if (!s->v[i]) s->v[i] = rx_sym_new(s->ctx, name, rx_rule_is_bool(name[0]) ? RELAX_BOOL : RELAX_I64);
    return s->v[i];
}

/* Each rule fires on its own left side for some constants: a rule that the constructors or an earlier form make
 * dead is found. */
static void every_rule_fires(void **state)
{
    (void)state;
    volatile int dead = 0;
    for (volatile uint32_t i = 0; i < rx_rule_count(); i++) {
        const char *const *t = rx_rule_text(i);
        tl_heap th;
        relax_context *ctx = tl_context(&th);
        volatile bool fired = false;
        TL_TRY(ctx)
        for (int k = 0; k < 600 && !fired; k++) {
            int64_t c[4] = {k % 9 - 2, k / 9 % 9 - 1, k % 2 ? 2 + k % 5 : -2 - k % 3, 3};
            scope s = {.ctx = ctx, .c = c};
            if (t[2][0] && !strpbrk(t[2], "xyzw")) {
                bool ok;
                int64_t v[26] = {c[0], c[1], c[2], c[3]};
                if (!value(t[2], v, &ok) || !ok) continue;
            }
            rx_scope_fns fns = {resolve, NULL, &s};
            rx_ex e = rx_parse_expr_text(ctx, t[0], RELAX_STRLEN, &fns);
            rx_facts *f = rx_facts_new(ctx, &ctx->arena, NULL);
            if (t[2][0]) rx_facts_add(f, rx_parse_expr_text(ctx, t[2], RELAX_STRLEN, &fns));
            fired = rx_rule_fires(ctx, i, f, e);
        }
        TL_END(ctx)
        tl_done(&th, ctx);
        if (!fired) print_error("rule %s => %s never fires\n", t[0], t[1]);
        dead = dead + !fired;
    }
    assert_int_equal(dead, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_rule_holds), cmocka_unit_test(every_rule_fires)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
