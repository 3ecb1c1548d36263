/*
 * fast_math.h -- exp, tanh, sigmoid in float32 alone, within 2 ulp: Fast mode only.
 *
 * Fixed sequences of correctly rounded operations, so even these have the same bits in every
 * column; they are not the correctly rounded results of AR-5.1. Without FMA hardware they are
 * slower than the exact ones, but still the same.
 */
#ifndef OM_KERNELS_FAST_MATH_H
#define OM_KERNELS_FAST_MATH_H

#include "kernels/simd.h"

/* x = n ln2 + r: returns expm1(r) and n. */
OM_INLINE vf om_fast_core(vf x, vi *n) {
    vf t = vfma(x, vset1(0x1.715476p+0f), vset1(0x1.8p23f));
    vf k = vsub(t, vset1(0x1.8p23f));
    vf r = vfma(k, vset1(-0x1.62e400p-1f), x);
    r    = vfma(k, vset1(-0x1.7f7d1cp-20f), r);
    vf p = vset1(0x1.6850e4p-10f);
    p    = vfma(p, r, vset1(0x1.123bccp-7f));
    p    = vfma(p, r, vset1(0x1.555b98p-5f));
    p    = vfma(p, r, vset1(0x1.55548ep-3f));
    p    = vfma(p, r, vset1(0x1.fffff8p-2f));
    *n   = vi_sub(vcast_i(t), vi_set1(0x4b400000));
    return vfma(p, vmul(r, r), r);
}
OM_INLINE vf om_fast_pow2(vi n) {
    return vcast_f(vi_add(vi_sll(n, 23), vi_set1(0x3f800000)));
}

OM_INLINE vf om_fast_exp(vf x) {
    vi n;
    vf c = vsel(vgt(x, vset1(104.0f)), vset1(104.0f), x);
    c    = vsel(vlt(c, vset1(-104.0f)), vset1(-104.0f), c);
    vf p = vadd(om_fast_core(c, &n), vset1(1.0f));
    /* 2^n in two exact steps, so that subnormal results are rounded once */
    vi h = vi_sra(n, 1);
    return vmul(vmul(p, om_fast_pow2(h)), om_fast_pow2(vi_sub(n, h)));
}

OM_INLINE vf om_fast_tanh(vf x) {
    vi n, sign = vi_and(vcast_i(x), vi_set1(INT32_MIN));
    vf a = vcast_f(vi_and(vcast_i(x), vi_set1(INT32_MAX)));
    a    = vsel(vgt(a, vset1(10.0f)), vset1(10.0f), a);
    vf p = om_fast_core(vadd(a, a), &n), s = om_fast_pow2(n);
    vf e = vfma(p, s, vsub(s, vset1(1.0f)));
    return vcast_f(vi_or(vcast_i(vdiv(e, vadd(e, vset1(2.0f)))), sign));
}

OM_INLINE vf om_fast_sigmoid(vf x) {
    vf e = om_fast_exp(vcast_f(vi_or(vcast_i(x), vi_set1(INT32_MIN))));
    return vdiv(vsel(vlt(x, vset1(0.0f)), e, vset1(1.0f)), vadd(vset1(1.0f), e));
}

#endif
