/*
 * cpu.c -- CPU detection with a cap, and the settings that may come from the environment.
 */
#include "base/cpu.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#if defined(__x86_64__)
#    include <cpuid.h>
#endif

static _Atomic int chosen = -1; /* fixed at first use */
static _Atomic int cap    = OM_ISA_AVX512;

/* ---- features ---------------------------------------------------------------------------------
 */

/* Each extension that the flags of a column (kernels/CMakeLists.txt) let the compiler use, by the
 * name of its flag; and what the system must save. A house case compares this with the compiler. */
static const struct feature {
    const char *name;
    om_isa isa; /* the first column that needs it */
    int word;
    uint32_t bits;
} features[] = {
    {"sse3", OM_ISA_AVX2, OMI_CPU_1C, 1u << 0},
    {"ssse3", OM_ISA_AVX2, OMI_CPU_1C, 1u << 9},
    {"fma", OM_ISA_AVX2, OMI_CPU_1C, 1u << 12},
    {"sse4_1", OM_ISA_AVX2, OMI_CPU_1C, 1u << 19},
    {"sse4_2", OM_ISA_AVX2, OMI_CPU_1C, 1u << 20}, // crc32 too
    {"movbe", OM_ISA_AVX2, OMI_CPU_1C, 1u << 22},
    {"popcnt", OM_ISA_AVX2, OMI_CPU_1C, 1u << 23},
    {"xsave", OM_ISA_AVX2, OMI_CPU_1C, 1u << 26 | 1u << 27}, // and the system uses it
    {"avx", OM_ISA_AVX2, OMI_CPU_1C, 1u << 28},
    {"f16c", OM_ISA_AVX2, OMI_CPU_1C, 1u << 29},
    {"bmi", OM_ISA_AVX2, OMI_CPU_7B, 1u << 3},
    {"avx2", OM_ISA_AVX2, OMI_CPU_7B, 1u << 5},
    {"bmi2", OM_ISA_AVX2, OMI_CPU_7B, 1u << 8},
    {"lzcnt", OM_ISA_AVX2, OMI_CPU_EXT_1C, 1u << 5},
    {"os:ymm", OM_ISA_AVX2, OMI_CPU_XCR0, 0x06},
    {"avx512f", OM_ISA_AVX512, OMI_CPU_7B, 1u << 16},
    {"avx512dq", OM_ISA_AVX512, OMI_CPU_7B, 1u << 17},
    {"avx512cd", OM_ISA_AVX512, OMI_CPU_7B, 1u << 28},
    {"avx512bw", OM_ISA_AVX512, OMI_CPU_7B, 1u << 30},
    {"avx512vl", OM_ISA_AVX512, OMI_CPU_7B, 1u << 31},
    {"os:zmm", OM_ISA_AVX512, OMI_CPU_XCR0, 0xe6},
};

static const omi_cpu *pretended;
static _Atomic int best = -1; /* cpuid is slow in virtual machines: asked once */

omi_cpu omi_cpu_read(void) {
    omi_cpu cpu = {{0}};
    if (pretended) return *pretended;
#if defined(__x86_64__)
    uint32_t a, b, c, d;
    if (__get_cpuid(1, &a, &b, &c, &d)) cpu.words[OMI_CPU_1C] = c;
    if (__get_cpuid_count(7, 0, &a, &b, &c, &d)) cpu.words[OMI_CPU_7B] = b;
    if (__get_cpuid(0x80000001u, &a, &b, &c, &d)) cpu.words[OMI_CPU_EXT_1C] = c;
    if (cpu.words[OMI_CPU_1C] & 1u << 27) { // without it the instruction is unknown
        __asm__ volatile("xgetbv" : "=a"(a), "=d"(d) : "c"(0));
        cpu.words[OMI_CPU_XCR0] = a;
    }
#endif
    return cpu;
}

static bool has(const omi_cpu *cpu, const struct feature *f) {
    return (cpu->words[f->word] & f->bits) == f->bits;
}

/* The first feature that a column lacks here; NULL: it can run. */
static const char *lacking(const omi_cpu *cpu, om_isa isa) {
    for (size_t i = 0; i < OM_COUNT(features); i++)
        if (features[i].isa <= isa && !has(cpu, &features[i])) return features[i].name;
    return NULL;
}

om_isa omi_isa_of(const omi_cpu *cpu) {
    om_isa isa = OM_ISA_AVX512;
    while (isa > OM_ISA_SCALAR && lacking(cpu, isa))
        isa--;
    return isa;
}

void omi_cpu_pretend(const omi_cpu *cpu) {
    pretended = cpu;
    atomic_store(&best, -1);
}

om_isa omi_isa_best(void) {
    int isa = atomic_load_explicit(&best, memory_order_relaxed);
    if (OM_LIKELY(isa >= 0)) return (om_isa)isa;
    omi_cpu cpu = omi_cpu_read();
    isa         = (int)omi_isa_of(&cpu);
    atomic_store_explicit(&best, isa, memory_order_relaxed);
    return (om_isa)isa;
}

size_t om_cpu_features(char *out, size_t n) {
    omi_cpu cpu = omi_cpu_read();
    size_t used = 0;
    if (n) out[0] = 0;
#if defined(__x86_64__)
    for (size_t i = 0; i < OM_COUNT(features); i++) {
        size_t room = used < n ? n - used : 0;
        used += (size_t)snprintf(room ? out + used : NULL, room, "%s%s%s", i ? " " : "",
                                 has(&cpu, &features[i]) ? "" : "-", features[i].name);
    }
#else
    (void)cpu;
#endif
    return used;
}

/* ---- the column in use ------------------------------------------------------------------------
 */

/* What the first kernel would run with now. */
om_isa om_get_isa(void) {
    int isa = atomic_load_explicit(&chosen, memory_order_relaxed);
    if (isa >= 0) return (om_isa)isa;
    isa = (int)omi_isa_best();
    return (om_isa)omi_min64(isa, atomic_load(&cap));
}

om_isa omi_isa(void) {
    om_isa isa = om_get_isa();
    atomic_store_explicit(&chosen, (int)isa, memory_order_relaxed);
    return isa;
}

const char *om_isa_name(om_isa isa) {
    static const char *const names[] = {"scalar", "avx2", "avx512"};
    return (unsigned)isa < OM_COUNT(names) ? names[isa] : "unknown";
}

om_status om_set_isa(om_isa isa) {
    OMI_ENTER("om_set_isa");
    if (isa > omi_isa_best()) {
        omi_cpu cpu      = omi_cpu_read();
        const char *what = lacking(&cpu, isa);
        return omi_fail(OM_ERR_UNSUPPORTED, "this machine has no %s: %s is missing",
                        om_isa_name(isa), what ? what : "it");
    }
    int now = atomic_load(&chosen);
    if (now >= 0 && now != (int)isa)
        return omi_fail(OM_ERR_STATE,
                        "kernels already run with %s; set the cap before the first one",
                        om_isa_name((om_isa)now));
    atomic_store(&cap, (int)isa);
    return OM_OK;
}

/* "512M", "2G", "4096": bytes. */
static bool parse_bytes(const char *s, int64_t *out) {
    char *end;
    long long v = strtoll(s, &end, 10);
    int bits    = *end == 'K' ? 10 : *end == 'M' ? 20 : *end == 'G' ? 30 : 0;
    if (bits) end++;
    if (end == s || *end || v < 0 || v > (INT64_MAX >> bits)) return false;
    *out = (int64_t)v << bits;
    return true;
}

om_status om_config_from_env(void) {
    OMI_ENTER("om_config_from_env");
    const char *isa = getenv("ONEMODEL_ISA"), *threads = getenv("ONEMODEL_THREADS");
    const char *memory = getenv("ONEMODEL_MEMORY_LIMIT");
    int64_t bytes      = 0;
    if (isa) {
        int k = 0;
        while (k <= OM_ISA_AVX512 && strcmp(isa, om_isa_name((om_isa)k)) != 0)
            k++;
        if (k > OM_ISA_AVX512)
            return omi_fail(OM_ERR_ARG, "ONEMODEL_ISA is '%s'; scalar, avx2 or avx512 are known",
                            isa);
        OM_TRY(om_set_isa((om_isa)k));
    }
    if (threads) {
        char *end;
        long n = strtol(threads, &end, 10);
        if (end == threads || *end || n < 0 || n > 256)
            return omi_fail(OM_ERR_ARG,
                            "ONEMODEL_THREADS is '%s'; a number from 0 to 256 is wanted", threads);
        OM_TRY(om_set_threads((int)n));
    }
    if (memory) {
        if (!parse_bytes(memory, &bytes))
            return omi_fail(OM_ERR_ARG, "ONEMODEL_MEMORY_LIMIT is '%s'; write bytes, or 512M",
                            memory);
        om_set_memory_limit(bytes);
    }
    return OM_OK;
}
