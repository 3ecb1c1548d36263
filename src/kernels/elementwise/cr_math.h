/*
 * cr_math.h -- exp, log, tanh, sigmoid, erf, gelu, sin, cos of a float32 input, correctly rounded
 * (AR-5.1), as float64 vector code.
 *
 * Each om_cr_* takes float32 values widened to float64 and returns a float64 whose conversion to
 * float32 is the correctly rounded result. The float64 error is about one ulp, so only inputs whose
 * true result lies within an ulp of a midpoint between two float32 can go wrong; a run over all
 * 2^32 inputs found them, and they are patched below. vd_fma may be fused or not: both were run and
 * agree (tests/long/long_unary.c repeats the proof in every column).
 *
 * Needs: kernels/simd.h.  Used by: elementwise, softmax.
 */
#ifndef OM_KERNELS_CR_MATH_H
#define OM_KERNELS_CR_MATH_H

#include <string.h>

#include "kernels/elementwise/cr_coef.h"
#include "kernels/simd.h"

#define OM_C(x)     vd_set1(x)
#define OM_SIGN64   vl_set1(INT64_MIN)
#define OM_ROUNDER  0x1.8p52 /* adding it leaves the nearest integer in the low bits */
#define OM_LOG2E    0x1.71547652b82fep+0
#define OM_LN2_HI33 0x1.62e42fee00000p-1 /* 33 bits: exact times any |n| < 2^20 */
#define OM_LN2_LO33 0x1.a39ef35793c76p-33

OM_INLINE vd om_vd_abs(vd x) {
    return vl_bits(vl_and(vd_bits(x), vl_set1(INT64_MAX)));
}
OM_INLINE vd om_vd_neg(vd x) {
    return vl_bits(vl_xor(vd_bits(x), OM_SIGN64));
}
/* v >= 0 with the sign of x */
OM_INLINE vd om_vd_sign(vd v, vd x) {
    return vl_bits(vl_or(vd_bits(v), vl_and(vd_bits(x), OM_SIGN64)));
}
/* into [lo, hi]; NaN passes */
OM_INLINE vd om_vd_clamp(vd x, double lo, double hi) {
    x = vd_sel(vd_lt(x, OM_C(lo)), OM_C(lo), x);
    return vd_sel(vd_gt(x, OM_C(hi)), OM_C(hi), x);
}

OM_INLINE vd om_vd_horner(const double *c, int n, vd x) {
    vd p                                         = OM_C(c[n]);
    OM_UNROLL for (int i = n - 1; i >= 0; i--) p = vd_fma(p, x, OM_C(c[i]));
    return p;
}
/* Even and odd terms apart: half the chain. */
OM_INLINE vd om_vd_poly(const double *c, int n, vd x) {
    vd x2  = vd_mul(x, x);
    int ne = n & ~1, no = (n - 1) | 1;
    vd e = OM_C(c[ne]), o = OM_C(c[no]);
    OM_UNROLL for (int i = ne - 2; i >= 0; i -= 2) e = vd_fma(e, x2, OM_C(c[i]));
    OM_UNROLL for (int i = no - 2; i >= 1; i -= 2) o = vd_fma(o, x2, OM_C(c[i]));
    return vd_fma(o, x, e);
}

/* ---- hard inputs --------------------------------------------------------------------------- */

typedef struct om_hard {
    double x, y;
} om_hard;

static OM_UNUSED __attribute__((noinline, cold)) vd om_hard_fix(vd x, vd y, const om_hard *t,
                                                                int n) {
    double xs[DW], ys[DW];
    vd_store(xs, x);
    vd_store(ys, y);
    for (int i = 0; i < DW; i++)
        for (int j = 0; j < n; j++)
            if (xs[i] == t[j].x) ys[i] = t[j].y;
    return vd_load(ys);
}

/* A float64 on or next to a float32 midpoint (one lane in 2^27) asks the table. */
OM_INLINE vd om_vd_hard(vd x, vd y, const om_hard *t, int n) {
    vl off = vl_and(vl_add(vd_bits(y), vl_set1(0x10000001)), vl_set1(0x1ffffffc));
    if (OM_UNLIKELY(vd_any(vl_eq0(off)))) y = om_hard_fix(x, y, t, n);
    return y;
}

static const om_hard OM_HARD_LOG[]  = {{0x1.827a74p-7, -0x1.1c2b1ep+2},
                                       {0x1.2f1fd6p+3, 0x1.1fcbcep+1},
                                       {0x1.bacb4ap+25, 0x1.1e0696p+4},
                                       {0x1.b121a6p+76, 0x1.a9a3f2p+5},
                                       {0x1.6351d8p+95, 0x1.08b512p+6}};
static const om_hard OM_HARD_SIN[]  = {{0x1.33333p+13, -0x1.63f4bap-2},
                                       {-0x1.33333p+13, 0x1.63f4bap-2}};
static const om_hard OM_HARD_COS[]  = {{0x1.3170fp+63, 0x1.fe2976p-1},
                                       {-0x1.3170fp+63, 0x1.fe2976p-1},
                                       {0x1.2b9622p+67, 0x1.f0285ep-1},
                                       {-0x1.2b9622p+67, 0x1.f0285ep-1}};
static const om_hard OM_HARD_GELU[] = {{0x1.954ecap-25, 0x1.954ecap-26},
                                       {0x1.6148dep-16, 0x1.614a62p-17},
                                       {0x1.051d12p-15, 0x1.051ebap-16}};

/* ---- exp, tanh, sigmoid -------------------------------------------------------------------- */

/* x = n ln2 + r: returns expm1(r), and n in the exponent field to be added. */
OM_INLINE vd om_vd_exp_core(vd x, vl *scale) {
    vd t   = vd_fma(x, OM_C(OM_LOG2E), OM_C(OM_ROUNDER));
    vd n   = vd_sub(t, OM_C(OM_ROUNDER));
    vd r   = vd_fma(n, OM_C(-OM_LN2_HI33), x);
    r      = vd_fma(n, OM_C(-OM_LN2_LO33), r);
    *scale = vl_sll(vd_bits(t), 52);
    return vd_mul(r, om_vd_poly(OM_EXPM1_P, 10, r));
}
OM_INLINE vd om_vd_exp(vd x) {
    vl s;
    vd p = vd_add(om_vd_exp_core(x, &s), OM_C(1.0));
    return vl_bits(vl_add(vd_bits(p), s));
}
OM_INLINE vd om_vd_expm1(vd x) {
    vl s;
    vd p   = om_vd_exp_core(x, &s);
    vd two = vl_bits(vl_add(vd_bits(OM_C(1.0)), s));
    return vd_fma(p, two, vd_sub(two, OM_C(1.0)));
}

/* Overflow and subnormals come with the conversion to float32. */
OM_INLINE vd om_cr_exp(vd x) {
    return om_vd_exp(om_vd_clamp(x, -110.0, 100.0));
}

/* exp in float32 pairs: x = n ln2/16 + r, 2^(j/16) (1 + r + s) as yh + yl with an error below 2^-33
 * of it. Where adding that error either way rounds alike the result is settled; other lanes, and
 * those outside +-86, are flagged and left to om_cr_exp. All 2^32 inputs were compared. */
OM_INLINE vf om_cr_exp_pair(vf x, vm *unsure) {
    vf t = vfma(x, vset1(0x1.715476p+4f), vset1(0x1.8p23f));
    vf n = vsub(t, vset1(0x1.8p23f));
    vf h = vfma(n, vset1(-0x1.62e430p-5f), x), l = vmul(n, vset1(0x1.05c610p-33f));
    vf r  = vadd(h, l), q;
    q     = vfma(r, vset1(0x1.111112p-7f), vset1(0x1.555556p-5f));
    q     = vfma(q, r, vset1(0x1.555556p-3f));
    q     = vfma(q, r, vset1(0.5f));
    vf s  = vfma(vmul(r, r), q, l);
    vi j  = vcast_i(t);
    vf th = v_table16(OM_EXP2_HI, j), tl = v_table16(OM_EXP2_LO, j);
    vf ah = vmul(th, h), al = vfma(th, h, vsub(vset1(0.0f), ah));
    vf yh = vadd(th, ah), e = vsub(ah, vsub(yh, th));
    vf yl = vadd(e, vadd(al, vfma(th, s, vfma(tl, h, tl))));
    vf a = vadd(yh, vadd(yl, vset1(0x1p-33f))), b = vadd(yh, vsub(yl, vset1(0x1p-33f)));
    vf m    = vcast_f(vi_and(vcast_i(x), vi_set1(INT32_MAX)));
    *unsure = vm_not(vm_and(veq(a, b), vle(m, vset1(86.0f))));
    return vcast_f(vi_add(vcast_i(a), vi_sll(vi_sra(j, 4), 23)));
}

OM_INLINE vd om_cr_tanh(vd x) {
    vd a = om_vd_abs(x);
    a    = vd_sel(vd_gt(a, OM_C(10.0)), OM_C(10.0), a);
    vd e = om_vd_expm1(vd_add(a, a));
    return om_vd_sign(vd_div(e, vd_add(e, OM_C(2.0))), x);
}

OM_INLINE vd om_cr_sigmoid(vd x) {
    vd e = om_vd_exp(om_vd_clamp(om_vd_neg(x), -110.0, 110.0));
    vd y = vd_div(OM_C(1.0), vd_add(OM_C(1.0), e));
    /* near 0 it is 1/2 + x/4 - x^3/48, whose last term float64 loses: a nudge keeps ties decided */
    vd s = vd_sub(vd_fma(x, OM_C(0.25), OM_C(0.5)), om_vd_sign(OM_C(0x1p-52), x));
    y    = vd_sel(vd_eq(x, OM_C(-0x1.250c02p-10)), OM_C(0x1.ffb6bep-2), y);
    return vd_sel(vd_lt(om_vd_abs(x), OM_C(0x1p-14)), s, y);
}

/* ---- erf, gelu ----------------------------------------------------------------------------- */

OM_INLINE vd om_cr_erf(vd x) {
    vd a = om_vd_abs(x);
    a    = vd_sel(vd_gt(a, OM_C(3.95)), OM_C(3.95), a);
    vd q = vd_mul(a, om_vd_poly(OM_ERFQ_P, 24, a));
    vd e = om_vd_expm1(om_vd_neg(q));
    e    = vd_sel(vd_eq(a, OM_C(0x1.81d5acp-13)), OM_C(0x1.b35e28p-13), e);
    return om_vd_sign(om_vd_abs(e), x);
}

/* x Phi(x) with Phi(-a) = exp(-a*a/2) erfcx(a/sqrt 2)/2, one division for both quotients. */
OM_INLINE vd om_cr_gelu(vd x) {
    vd a = om_vd_abs(x);
    a    = vd_sel(vd_gt(a, OM_C(14.5)), OM_C(14.5), a);
    vd u = vd_mul(a, OM_C(0x1.6a09e667f3bcdp-1));
    vd d = vd_add(u, OM_C(3.75)), d2 = vd_fma(OM_C(2.0), u, OM_C(1.0));
    vd v = vd_div(OM_C(0.5), vd_mul(d, d2));
    vd t = vd_mul(vd_mul(vd_sub(u, OM_C(3.75)), vd_add(d2, d2)), v);
    vd r = vd_mul(om_vd_poly(OM_GELU_P, 20, t), vd_mul(d, v));
    vd h = vd_mul(om_vd_exp(vd_mul(vd_mul(a, a), OM_C(-0.5))), r);
    vd p = vd_sel(vd_lt(x, OM_C(0.0)), h, vd_sub(OM_C(1.0), h));
    vd m = vd_sel(vd_lt(x, OM_C(-14.5)), OM_C(-14.5), x);
    /* x/2 of a subnormal may be a tie: Phi is a little off 1/2 */
    vd n = vd_add(OM_C(0.5), om_vd_sign(OM_C(0x1p-52), x));
    p    = vd_sel(vd_lt(a, OM_C(0x1p-60)), n, p);
    return om_vd_hard(x, vd_mul(m, p), OM_HARD_GELU, OM_COUNT(OM_HARD_GELU));
}

/* ---- log ----------------------------------------------------------------------------------- */

OM_INLINE vd om_cr_log(vd x) {
    vl ix  = vd_bits(x);
    vl tmp = vl_sub(ix, vl_set1(0x3fe6600000000000));
    vl k   = vl_srl(vl_add(tmp, vl_set1((int64_t)1024 << 52)), 52);
    vl idx = vl_and(vl_srl(tmp, 48), vl_set1(15));
    vd m   = vl_bits(vl_sub(ix, vl_and(tmp, vl_set1(-((int64_t)1 << 52)))));
    vd kd  = vd_sub(vl_bits(vl_or(k, vl_set1(0x4330000000000000))), OM_C(0x1p52 + 1024.0));
    vd ic = vd_table16(OM_LOG_INVC, idx), lc = vd_table16(OM_LOG_C, idx);
    vd r = vd_fma(m, ic, OM_C(-1.0)), r2 = vd_mul(r, r);
    vd hi = vd_add(vd_mul(kd, OM_C(OM_LN2_HI43)), lc); /* exact: multiples of 2^-43 below 2^7 */
    vd q  = om_vd_poly(OM_LOG1P_P + 1, 7, r);
    vd y  = vd_fma(r2, q, vd_mul(kd, OM_C(OM_LN2_LO43)));
    y     = vd_add(hi, vd_add(r, y));
    y     = om_vd_hard(x, y, OM_HARD_LOG, OM_COUNT(OM_HARD_LOG));
    y     = vd_sel(vd_eq(x, OM_C(0.0)), OM_C(-__builtin_inf()), y);
    y     = vd_sel(vd_lt(x, OM_C(0.0)), OM_C(__builtin_nan("")), y);
    y     = vd_sel(vd_eq(x, OM_C(__builtin_inf())), x, y);
    return vd_sel(vd_unord(x), x, y);
}

/* ---- sin, cos ------------------------------------------------------------------------------ */

__extension__ typedef unsigned __int128 om_u128;
__extension__ typedef __int128 om_i128;

/* Bits of 2/pi behind the point. */
static const uint32_t OM_TWO_OVER_PI[] = {0xA2F9836E, 0x4E441529, 0xFC2757D1,
                                          0xF534DDC0, 0xDB629599, 0x3C439041,
                                          0xFE5163AB, 0xDEBBC561, 0xB7246E3A};

/* Payne and Hanek in integers, for a float32 x > 2^19: r in [-pi/4, pi/4] and the quadrant. */
static OM_UNUSED __attribute__((noinline)) double om_reduce_pi2(double x, int64_t *quadrant) {
    uint64_t b;
    memcpy(&b, &x, 8);
    int e      = (int)((b >> 52) & 2047) - 1075 + 29; /* x = m 2^e, m of 24 bits */
    uint64_t m = ((b & (((uint64_t)1 << 52) - 1)) | (uint64_t)1 << 52) >> 29;
    /* bits of 2/pi whose product with x is a multiple of 4 are dropped */
    int st = e - 2, neg = st < 0 ? -st : 0;
    om_u128 w = 0;
    if (st < 0) st = 0;
    for (int i = 0; i < 4; i++) {
        int bit = st + 32 * i, word = bit >> 5, o = bit & 31;
        uint64_t v = (uint64_t)OM_TWO_OVER_PI[word] << 32 | OM_TWO_OVER_PI[word + 1];
        w          = w << 32 | (uint32_t)(v >> (32 - o));
    }
    w >>= neg;
    om_u128 p = w * m; /* x 2/pi mod 4, in 2^-126 */
    int64_t n = (int64_t)(p >> 126);
    om_i128 f = (om_i128)(p << 2);
    if (f < 0) n++;
    *quadrant = n;
    double fr = (double)(int64_t)(f >> 64) * 0x1p-64 + (double)((uint64_t)f >> 11) * 0x1p-117;
    return fr * 0x1.921fb54442d18p+0;
}

static OM_UNUSED __attribute__((noinline, cold)) void om_reduce_lanes(vd x, vd *r, vl *q) {
    double xs[DW], rs[DW];
    int64_t qs[DW];
    vd_store(xs, x);
    vd_store(rs, *r);
    vl_store(qs, *q);
    for (int i = 0; i < DW; i++) {
        double a = __builtin_fabs(xs[i]);
        if (!(a > 524288.0)) continue;
        if (a > 0x1p128) { /* infinity */
            rs[i] = __builtin_nan("");
            continue;
        }
        rs[i] = om_reduce_pi2(a, &qs[i]);
        if (xs[i] < 0) rs[i] = -rs[i], qs[i] = -qs[i];
    }
    *r = vd_load(rs);
    *q = vl_load(qs);
}

/* sin(x + quarter * pi/2) */
OM_INLINE vd om_vd_sincos(vd x, int quarter) {
    vd t = vd_fma(x, OM_C(0x1.45f306dc9c883p-1), OM_C(OM_ROUNDER));
    vd n = vd_sub(t, OM_C(OM_ROUNDER));
    vl q = vd_bits(t);
    vd r = vd_fma(n, OM_C(-0x1.921fb54400000p+0), x); /* pi/2 in three parts */
    r    = vd_fma(n, OM_C(-0x1.0b4611a600000p-34), r);
    r    = vd_fma(n, OM_C(-0x1.3198a2e037073p-69), r);
    if (OM_UNLIKELY(vd_any(vd_gt(om_vd_abs(x), OM_C(524288.0))))) om_reduce_lanes(x, &r, &q);
    q      = vl_add(q, vl_set1(quarter));
    vd r2  = vd_mul(r, r);
    vd s   = vd_fma(vd_mul(r, r2), om_vd_horner(OM_SIN_P + 1, 5, r2), r);
    vd c   = om_vd_horner(OM_COS_P, 7, r2);
    vl odd = vl_sub(vl_set1(0), vl_and(q, vl_set1(1))); /* all ones in odd quadrants */
    vl y   = vl_or(vl_and(odd, vd_bits(c)), vl_and(vl_xor(odd, vl_set1(-1)), vd_bits(s)));
    return vl_bits(vl_xor(y, vl_sll(vl_and(q, vl_set1(2)), 62)));
}
OM_INLINE vd om_cr_sin(vd x) {
    vd y = om_vd_hard(x, om_vd_sincos(x, 0), OM_HARD_SIN, OM_COUNT(OM_HARD_SIN));
    return vd_sel(vd_eq(x, OM_C(0.0)), x, y);
}
OM_INLINE vd om_cr_cos(vd x) {
    return om_vd_hard(x, om_vd_sincos(x, 1), OM_HARD_COS, OM_COUNT(OM_HARD_COS));
}

#endif
