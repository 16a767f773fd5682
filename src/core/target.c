/* target.c: reads a target's text into kind, architecture and feature bits, by the tables of targets.def, and finds
 * what the machine at hand has.
 *
 * Text: "null" · "cpu" · "cpu:LEVEL+feature+feature" with LEVEL one of targets.def or "host". The canonical name
 * never says "host": it is the highest level that the features contain, then what is missing from it, in the order
 * of the table, so a stored name means the same on every machine. */
#include "core/core.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

const rx_feature_info rx_features[] = {
#define RX_LEVEL(name, arch, features)
#define RX_FEATURE(name, arch, bit, needs, llvm) {name, RX_ARCH_##arch, bit, needs, llvm},
#include "core/targets.def"
};
const uint32_t rx_n_features = RX_COUNT(rx_features);

static const struct level {
    const char *name;
    rx_arch arch;
    uint32_t features;
} levels[] = {
#define RX_LEVEL(name, arch, features) {name, RX_ARCH_##arch, features},
#define RX_FEATURE(name, arch, bit, needs, llvm)
#include "core/targets.def"
};

rx_arch rx_host_arch(void)
{
#if defined(__aarch64__)
    return RX_ARCH_AARCH64;
#else
    return RX_ARCH_X86_64;
#endif
}

#if defined(__x86_64__)
static uint64_t xgetbv(void)
{
    uint32_t lo, hi;
    __asm__ volatile("xgetbv" : "=a"(lo), "=d"(hi) : "c"(0));
    return (uint64_t)hi << 32 | lo;
}

/* A feature counts when the processor has it and the system saves its registers (XCR0). */
uint32_t rx_host_features(void)
{
    uint32_t a, b, c, d, b7 = 0, c7 = 0, a71 = 0, cx = 0, f = 0;
    if (!__get_cpuid(1, &a, &b, &c, &d))
        return 0;
    uint32_t c1 = c;
    if (__get_cpuid_count(7, 0, &a, &b, &c, &d)) {
        b7 = b;
        c7 = c;
        if (a >= 1 && __get_cpuid_count(7, 1, &a, &b, &c, &d))
            a71 = a;
    }
    if (__get_cpuid(0x80000001, &a, &b, &c, &d))
        cx = c;
    uint64_t saved = c1 >> 27 & 1 ? xgetbv() : 0;
    bool ymm = (saved & 0x6) == 0x6 && (c1 >> 28 & 1), zmm = ymm && (saved & 0xE0) == 0xE0;
    enum { F = 1 << 16, DQ = 1 << 17, CD = 1 << 28, BW = 1 << 30 };
    const uint32_t avx512 = F | DQ | CD | BW | 1u << 31;     /* and VL */
    f |= (c1 >> 20 & 1) && (c1 >> 23 & 1) ? RX_F_SSE42 : 0;
    f |= ymm && (b7 >> 5 & 1) ? RX_F_AVX2 : 0;
    f |= ymm && (c1 >> 12 & 1) ? RX_F_FMA : 0;
    f |= ymm && (c1 >> 29 & 1) ? RX_F_F16C : 0;
    f |= (b7 >> 3 & 1) && (b7 >> 8 & 1) && (cx >> 5 & 1) ? RX_F_BMI2 : 0;
    f |= ymm && (a71 >> 4 & 1) ? RX_F_AVX_VNNI : 0;
    f |= zmm && (b7 & avx512) == avx512 ? RX_F_AVX512 : 0;
    f |= f & RX_F_AVX512 && (c7 >> 11 & 1) ? RX_F_AVX512_VNNI : 0;
    f |= f & RX_F_AVX512 && (a71 >> 5 & 1) ? RX_F_AVX512_BF16 : 0;
    return f;
}
#elif defined(__aarch64__)
uint32_t rx_host_features(void)
{
    uint64_t h0 = rx_os_hwcap(0), h1 = rx_os_hwcap(1);       /* bits of <asm/hwcap.h> */
    uint32_t f = RX_F_NEON;
    f |= h0 >> 20 & 1 ? RX_F_DOTPROD : 0;
    f |= (h0 >> 9 & 1) && (h0 >> 10 & 1) ? RX_F_FP16 : 0;
    f |= h1 >> 13 & 1 ? RX_F_I8MM : 0;
    f |= h1 >> 14 & 1 ? RX_F_BF16 : 0;
    return f;
}
#else
uint32_t rx_host_features(void) { return 0; }
#endif

static bool same(const char *name, const char *s, size_t n)
{
    return strlen(name) == n && memcmp(name, s, n) == 0;
}

static uint32_t vector_bits(rx_arch arch, uint32_t f)
{
    if (arch == RX_ARCH_AARCH64)
        return 128;
    return f & RX_F_AVX512 ? 512 : f & RX_F_AVX2 ? 256 : 128;
}

static const char *canonical(relax_context *ctx, rx_arch arch, uint32_t f)
{
    const struct level *best = NULL;
    for (size_t i = 0; i < RX_COUNT(levels); i++)
        if (levels[i].arch == arch && (levels[i].features & ~f) == 0)
            best = &levels[i];
    RX_CHECK(ctx, best != NULL);
    rx_buf b;
    rx_buf_init(&b, rx_scratch(&ctx->heap));
    rx_putf(&b, "cpu:%s", best->name);
    for (uint32_t i = 0, have = best->features; i < rx_n_features; i++)
        if (rx_features[i].arch == arch && (f & ~have & rx_features[i].bit))
            rx_putf(&b, "+%s", rx_features[i].name);
    return rx_strn(ctx, b.at, b.n);
}

RX_NORETURN static void bad(relax_context *ctx, const char *what, const char *s, size_t n)
{
    rx_buf b;
    rx_buf_init(&b, rx_scratch(&ctx->heap));
    rx_puts(&b, "cpu, cpu:host, null");
    for (size_t i = 0; i < RX_COUNT(levels); i++)
        rx_putf(&b, ", cpu:%s", levels[i].name);
    rx_puts(&b, "; features:");
    for (uint32_t i = 0; i < rx_n_features; i++)
        rx_putf(&b, " +%s", rx_features[i].name);
    rx_fail_hint(ctx, RXE_TARGET, NULL, rx_strf(ctx, "known targets: %s", b.at), "unknown %s \"%.*s\"", what,
                 (int)RX_MIN(n, (size_t)80), s);
}

/* features of "+a+b" added to t */
static void add_features(relax_context *ctx, relax_target *t, const char *s, size_t n)
{
    while (n) {
        s++, n--;                    /* the '+' */
        const char *end = memchr(s, '+', n);
        size_t len = end ? (size_t)(end - s) : n;
        uint32_t i = 0;
        while (i < rx_n_features && !(rx_features[i].arch == t->arch && same(rx_features[i].name, s, len)))
            i++;
        if (i == rx_n_features)
            bad(ctx, t->arch == RX_ARCH_X86_64 ? "x86-64 feature" : "aarch64 feature", s, len);
        t->features |= rx_features[i].bit | rx_features[i].needs;
        s += len;
        n -= len;
    }
}

relax_target *rx_target_parse(relax_context *ctx, const char *s, size_t n)
{
    relax_target *t = RX_NEW(&ctx->arena, relax_target);
    t->ctx = ctx;
    t->arch = rx_host_arch();
    t->kind = RX_TARGET_CPU;
    if (same("null", s, n)) {
        t->kind = RX_TARGET_NULL;
        t->vector_bits = 128;
        t->name = rx_str(ctx, "null");
        return t;
    }
    if (n < 3 || memcmp(s, "cpu", 3) != 0 || (n > 3 && s[3] != ':'))
        bad(ctx, "target", s, n);
    const char *level = n > 3 ? s + 4 : "host";
    size_t len = n > 3 ? n - 4 : 4;
    const char *plus = memchr(level, '+', len);
    size_t base = plus ? (size_t)(plus - level) : len, i = 0;
    if (same("host", level, base)) {
        t->features = rx_host_features();
    } else {
        while (i < RX_COUNT(levels) && !same(levels[i].name, level, base))
            i++;
        if (i == RX_COUNT(levels))
            bad(ctx, "processor level", level, base);
        t->arch = levels[i].arch;
        t->features = levels[i].features;
    }
    add_features(ctx, t, level + base, len - base);
    t->vector_bits = vector_bits(t->arch, t->features);
    t->name = canonical(ctx, t->arch, t->features);
    return t;
}
