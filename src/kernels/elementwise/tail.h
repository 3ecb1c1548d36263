/*
 * tail.h -- loads and stores of t <= W lanes that take the plain instruction when the vector is
 * full: masked stores are slow on some machines, and a predicted branch is not.
 */
#ifndef OM_KERNELS_TAIL_H
#define OM_KERNELS_TAIL_H

#include "kernels/simd.h"

OM_INLINE vf om_load_t(const float *p, int t) {
    return t == W ? vload(p) : vload_n(p, t);
}
OM_INLINE void om_store_t(float *p, vf a, int t) {
    if (t == W)
        vstore(p, a);
    else
        vstore_n(p, a, t);
}
OM_INLINE vd om_loadf_t(const float *p, int t) {
    return t == DW ? vd_loadf(p) : vd_loadf_n(p, t);
}
OM_INLINE void om_storef_t(float *p, vd a, int t) {
    if (t == DW)
        vd_storef(p, a);
    else
        vd_storef_n(p, a, t);
}
/* Lanes of the vector that starts at i in n elements. */
OM_INLINE int om_lanes_at(int64_t i, int64_t n, int width) {
    return (int)omi_min64(width, n - i);
}

#endif
