/*
 * extreme.h -- greater, less and Relu of AR-1.5 on vectors, for every kernel that has them.
 */
#ifndef OM_KERNELS_EXTREME_H
#define OM_KERNELS_EXTREME_H

#include "kernels/simd.h"

/* NaN if either is; +0 above -0 */
OM_INLINE vf om_max2(vf a, vf b) {
    vf r = vsel(veq(a, b), vcast_f(vi_and(vcast_i(a), vcast_i(b))), vmax_raw(a, b));
    return vsel(vunord(a, b), vcast_f(vi_set1(0x7fc00000)), r);
}
OM_INLINE vf om_min2(vf a, vf b) {
    vf r = vsel(veq(a, b), vcast_f(vi_or(vcast_i(a), vcast_i(b))), vmin_raw(a, b));
    return vsel(vunord(a, b), vcast_f(vi_set1(0x7fc00000)), r);
}
/* 0 > x ? +0 : x keeps -0 and NaN */
OM_INLINE vf om_relu1(vf x) {
    return vmax_raw(vset1(0.0f), x);
}

#endif
