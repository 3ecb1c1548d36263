/*
 * exact.h -- shared by the bit tests: generators, hashes, and the kernel columns of this machine.
 *
 * Reference loops in these tests are the rules of docs/arithmetic.md written down once more,
 * element by element, with libm's fmaf; nothing of the library takes part in them.
 */
#ifndef OM_TESTS_EXACT_H
#define OM_TESTS_EXACT_H

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "kernels/table.h"

/* Without OM_WIDE16 there is no such column and calls are not counted. */
#if OM_WIDE16
#    define OM_COUNTS_CALLS 1
#else
#    define OM_COUNTS_CALLS 0
#endif

/* xorshift64, the generator behind the hashes of docs/arithmetic.md */
typedef struct xs {
    uint64_t s;
} xs;
#define XS_SEED ((xs){88172645463325252ull})

OM_INLINE double xs_unit(xs *g) {
    g->s ^= g->s << 13;
    g->s ^= g->s >> 7;
    g->s ^= g->s << 17;
    return (double)(g->s >> 11) * 0x1p-53;
}
OM_INLINE int64_t xs_int(xs *g, int64_t lo, int64_t hi) { /* both ends */
    return lo + (int64_t)(xs_unit(g) * (double)(hi - lo + 1));
}

/* FNV-1a over the little-endian bytes of 32-bit words. */
OM_INLINE uint64_t fnv32(const void *p, size_t words) {
    const uint32_t *q = p;
    uint64_t h        = 1469598103934665603ull;
    for (size_t i = 0; i < words; i++)
        for (int s = 0; s < 32; s += 8)
            h = (h ^ (q[i] >> s & 255)) * 1099511628211ull;
    return h;
}

/* At least n bytes, 64-byte aligned, filled with 0xff. */
OM_INLINE void *test_alloc(size_t n) {
    n       = (n + 127) / 64 * 64;
    void *p = aligned_alloc(64, n);
    assert_non_null(p);
    memset(p, 0xff, n);
    return p;
}

/* Equal bits, a NaN equal to any NaN; on a difference says where. */
OM_INLINE void assert_same_f32(const float *got, const float *want, int64_t n, const char *what) {
    for (int64_t i = 0; i < n; i++) {
        if (got[i] != got[i] && want[i] != want[i]) continue;
        if (memcmp(&got[i], &want[i], 4) == 0) continue;
        fail_msg("%s: element %lld is %a, the rule gives %a", what, (long long)i, (double)got[i],
                 (double)want[i]);
    }
}

/* Runs fn(ctx) once with every column that can run here. */
OM_INLINE void each_column(void (*fn)(const om_kernels *k, void *ctx), void *ctx) {
    int ran = 0;
    for (int c = 0; c < OM_COL_COUNT; c++) {
        const om_kernels *k = omi_kernels_of((om_column)c);
        if (!k) continue;
        assert_int_equal(omi_kernels_force(c), OM_OK);
        uint64_t before = omi_kernel_calls((om_column)c);
        fn(k, ctx);
        assert_true(!OM_COUNTS_CALLS || omi_kernel_calls((om_column)c) > before);
        ran++;
    }
    assert_int_equal(omi_kernels_force(-1), OM_OK);
    assert_true(ran >= 1 + OM_COUNTS_CALLS); /* scalar, and wide16 where it is built */
}

#endif
