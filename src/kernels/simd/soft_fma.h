/*
 * soft_fma.h -- float32 fused multiply-add for machines without one, correctly rounded (AR-1.8).
 *
 * The product of two float32 is exact in float64. Rounding the float64 sum to float32 again is
 * wrong only when the sum was inexact and landed on a midpoint of two float32, or where float32 is
 * subnormal and its last place lies higher; those rare sums are rounded to odd first, which makes
 * the second rounding the only one that counts.
 */
#ifndef OM_SIMD_SOFT_FMA_H
#define OM_SIMD_SOFT_FMA_H

#include <string.h>

#include "base/compiler.h"

static OM_COLD OM_UNUSED float om_fma_odd(double p, double c, double s) {
    double t = s - p, e = (p - (s - t)) + (c - t); /* TwoSum: s + e is exact */
    uint64_t u;
    memcpy(&u, &s, 8);
    if (e != 0.0 && s - s == 0.0 && !(u & 1)) {
        u += (e > 0) == (s > 0) ? 1 : (uint64_t)-1;
        memcpy(&s, &u, 8);
    }
    return (float)s;
}

OM_INLINE float om_soft_fma(float a, float b, float c) {
    double p = (double)a * (double)b, s = p + (double)c;
    uint64_t u;
    memcpy(&u, &s, 8);
    bool middle = (u & 0x1fffffffu) == 0x10000000u;
    bool tiny   = (u << 1) - 1 < (uint64_t)0x7020000000000000u - 1; /* 0 < |s| < 2^-126 */
    if (OM_UNLIKELY(middle || tiny)) return om_fma_odd(p, (double)c, s);
    return (float)s;
}

#if defined(__FMA__) || defined(__aarch64__)
#    define OM_FMA1(a, b, c) __builtin_fmaf(a, b, c)
#else
#    define OM_FMA1(a, b, c) om_soft_fma(a, b, c)
#endif

#endif
