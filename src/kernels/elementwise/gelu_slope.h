/*
 * gelu_slope.h -- the derivatives of both forms of GELU in float64 (AR-11.2).
 *
 * Phi(x) + x phi(x) cancels at -0.7518 and, taken from float32 parts, far out on the left, where
 * both terms are tiny; so it is one float64 sequence, rounded once after the product with g. Its
 * float64 result is not always on one side of a float32 midpoint, so unlike cr_math.h the sequence
 * itself is the definition: multiplications and additions stand apart, because a fused one would
 * give other bits on other machines. Error: below 2^-44 relative, except within 1e-6 of the zero
 * (2^-27).
 *
 * Needs: cr_math.h.  Used by: grad.c.
 */
#ifndef OM_KERNELS_GELU_SLOPE_H
#define OM_KERNELS_GELU_SLOPE_H

#include "kernels/elementwise/cr_math.h"

/* a b + c, two roundings */
OM_INLINE vd om_step_madd(vd a, vd b, vd c) {
    return vd_add(vd_mul(a, b), c);
}
/* Even and odd terms apart, as om_vd_poly. */
OM_INLINE vd om_step_poly(const double *c, int n, vd x) {
    vd x2  = vd_mul(x, x);
    int ne = n & ~1, no = (n - 1) | 1;
    vd e = OM_C(c[ne]), o = OM_C(c[no]);
    OM_UNROLL for (int i = ne - 2; i >= 0; i -= 2) e = om_step_madd(e, x2, OM_C(c[i]));
    OM_UNROLL for (int i = no - 2; i >= 1; i -= 2) o = om_step_madd(o, x2, OM_C(c[i]));
    return om_step_madd(o, x, e);
}
/* exp of x in [-700, 0], or NaN */
OM_INLINE vd om_step_exp(vd x) {
    vd t = om_step_madd(x, OM_C(OM_LOG2E), OM_C(OM_ROUNDER));
    vd n = vd_sub(t, OM_C(OM_ROUNDER));
    vd r = vd_sub(vd_sub(x, vd_mul(n, OM_C(OM_LN2_HI33))), vd_mul(n, OM_C(OM_LN2_LO33)));
    vd p = om_step_madd(r, om_step_poly(OM_EXPM1_P, 10, r), OM_C(1.0));
    return vl_bits(vl_add(vd_bits(p), vl_sll(vd_bits(t), 52)));
}

/* Phi(-a) = exp(-a a / 2) r with r = erfcx(a / sqrt 2) / 2, so the slope at -a is exp(-a a / 2)
 * times r - a / sqrt(2 pi), and at a it is 1 minus that. Beyond 20 nothing is left of it in
 * float32. */
OM_INLINE vd om_gelu_slope(vd x) {
    vd a = om_vd_abs(x);
    a    = vd_sel(vd_gt(a, OM_C(20.0)), OM_C(20.0), a);
    vd u = vd_mul(a, OM_C(0x1.6a09e667f3bcdp-1));
    vd d = vd_add(u, OM_C(3.75)), d2 = vd_add(vd_add(u, u), OM_C(1.0));
    vd v = vd_div(OM_C(0.5), vd_mul(d, d2));
    vd t = vd_mul(vd_mul(vd_sub(u, OM_C(3.75)), vd_add(d2, d2)), v);
    vd r = vd_mul(om_step_poly(OM_GELU_P, 20, t), vd_mul(d, v));
    vd h = vd_sub(r, vd_mul(a, OM_C(0x1.9884533d43651p-2)));
    h    = vd_mul(om_step_exp(vd_mul(vd_mul(a, a), OM_C(-0.5))), h);
    return vd_sel(vd_lt(x, OM_C(0.0)), h, vd_sub(OM_C(1.0), h));
}

/* With s = sigmoid(2 z), z = k (x + 0.044715 x^3), k = sqrt(2/pi): s (1 + 2 x (1 - s) z'), both of
 * s and 1 - s from e = exp(-|2 z|), so that neither cancels. */
OM_INLINE vd om_gelu_tanh_slope(vd x) {
    vd x2 = vd_mul(x, x);
    vd z =
        vd_mul(vd_mul(OM_C(0x1.9884533d43651p+0), x), om_step_madd(OM_C(0.044715), x2, OM_C(1.0)));
    vd w =
        vd_mul(vd_mul(OM_C(0x1.9884533d43651p+0), x), om_step_madd(OM_C(0.134145), x2, OM_C(1.0)));
    vd m = om_vd_neg(om_vd_abs(z));
    m    = vd_sel(vd_lt(m, OM_C(-700.0)), OM_C(-700.0), m);
    vd e = om_step_exp(m), q = vd_div(OM_C(1.0), vd_add(OM_C(1.0), e));
    vd neg = vd_mul(vd_mul(e, q), om_step_madd(w, q, OM_C(1.0)));
    vd pos = vd_mul(q, om_step_madd(w, vd_mul(e, q), OM_C(1.0)));
    return vd_sel(vd_lt(x, OM_C(0.0)), neg, pos);
}

#endif
