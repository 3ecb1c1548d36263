/*
 * cpu.c -- CPU detection with a cap, and the settings that may come from the environment.
 */
#include "base/cpu.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

static _Atomic int chosen = -1; /* fixed at first use */
static _Atomic int cap    = OM_ISA_AVX512;

om_isa omi_isa_best(void) {
#if defined(__x86_64__)
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl"))
        return OM_ISA_AVX512;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return OM_ISA_AVX2;
#endif
    return OM_ISA_SCALAR;
}

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
    if (isa > omi_isa_best())
        return omi_fail(OM_ERR_UNSUPPORTED, "this machine has no %s", om_isa_name(isa));
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
