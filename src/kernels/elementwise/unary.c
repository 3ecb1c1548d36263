/*
 * unary.c -- one-input float32 maps: y[i] = f(x[i]). y may be x.
 *
 * Three groups: correctly rounded functions through float64 (cr_math.h; exp first through float32
 * pairs), Fast mode's float32 ones (fast_math.h), and plain float32 steps. Composite nodes (Silu,
 * Gelu tanh) round every step of their definition (AR-7.5), so that fusing them changes no bits.
 */
#include "kernels/elementwise/cr_math.h"
#include "kernels/elementwise/extreme.h"
#include "kernels/elementwise/fast_math.h"
#include "kernels/elementwise/tail.h"
#include "kernels/simd.h"

#define MAP_F64(name, f)                                                                           \
    void FN(name)(int64_t n, const float *x, float *y) {                                           \
        OM_COUNT_CALL();                                                                           \
        int64_t i = 0;                                                                             \
        for (; i + DW <= n; i += DW)                                                               \
            vd_storef(y + i, f(vd_loadf(x + i)));                                                  \
        if (i < n) vd_storef_n(y + i, f(vd_loadf_n(x + i, (int)(n - i))), (int)(n - i));           \
    }

#if W > 1
/* The lanes of r that are unsure, through float64. */
static __attribute__((noinline)) vf exp_settle(vf x, vf r, vm unsure) {
    float in[W], out[W];
    vstore(in, x);
    for (int i = 0; i < W; i += DW)
        vd_storef(out + i, om_cr_exp(vd_loadf(in + i)));
    return vsel(unsure, vload(out), r);
}
void FN(exp_f32)(int64_t n, const float *x, float *y) {
    OM_COUNT_CALL();
    for (int64_t i = 0; i < n; i += W) {
        vm unsure;
        int t = om_lanes_at(i, n, W);
        vf v = om_load_t(x + i, t), r = om_cr_exp_pair(v, &unsure);
        if (OM_UNLIKELY(vm_any(unsure))) r = exp_settle(v, r, unsure);
        om_store_t(y + i, r, t);
    }
}
#else /* one lane without a fast FMA: float64 is the faster way */
MAP_F64(exp_f32, om_cr_exp)
#endif
MAP_F64(log_f32, om_cr_log)
MAP_F64(tanh_f32, om_cr_tanh)
MAP_F64(sigmoid_f32, om_cr_sigmoid)
MAP_F64(erf_f32, om_cr_erf)
MAP_F64(gelu_f32, om_cr_gelu)
MAP_F64(sin_f32, om_cr_sin)
MAP_F64(cos_f32, om_cr_cos)

#define MAP_F32(name, f)                                                                           \
    void FN(name)(int64_t n, const float *x, float *y) {                                           \
        OM_COUNT_CALL();                                                                           \
        int64_t i = 0;                                                                             \
        for (; i + W <= n; i += W)                                                                 \
            vstore(y + i, f(vload(x + i)));                                                        \
        if (i < n) vstore_n(y + i, f(vload_n(x + i, (int)(n - i))), (int)(n - i));                 \
    }

/* Neg and Abs look at the sign bit, so NaN becomes the canonical one first (AR-1.4). */
OM_INLINE vf quiet(vf x, vf r) {
    return vsel(vunord(x, x), vcast_f(vi_set1(0x7fc00000)), r);
}
OM_INLINE vf neg1(vf x) {
    return quiet(x, vcast_f(vi_xor(vcast_i(x), vi_set1(INT32_MIN))));
}
OM_INLINE vf abs1(vf x) {
    return quiet(x, vcast_f(vi_and(vcast_i(x), vi_set1(INT32_MAX))));
}
OM_INLINE vf sqrt1(vf x) {
    return vsqrt(x);
}
OM_INLINE vf reciprocal1(vf x) {
    return vdiv(vset1(1.0f), x);
}

MAP_F32(neg_f32, neg1)
MAP_F32(abs_f32, abs1)
MAP_F32(sqrt_f32, sqrt1)
MAP_F32(relu_f32, om_relu1)
MAP_F32(reciprocal_f32, reciprocal1)
MAP_F32(exp_fast_f32, om_fast_exp)
MAP_F32(tanh_fast_f32, om_fast_tanh)
MAP_F32(sigmoid_fast_f32, om_fast_sigmoid)

/* ---- composites ---------------------------------------------------------------------------- */

#define PIECE 256

/* r[i] = x[i] * s[i] over a piece */
OM_INLINE void mul_piece(int64_t n, const float *x, const float *s, float *y) {
    int64_t i = 0;
    for (; i + W <= n; i += W)
        vstore(y + i, vmul(vload(x + i), vload(s + i)));
    if (i < n)
        vstore_n(y + i, vmul(vload_n(x + i, (int)(n - i)), vload_n(s + i, (int)(n - i))),
                 (int)(n - i));
}

#define SILU(name, sigmoid)                                                                        \
    void FN(name)(int64_t n, const float *x, float *y) {                                           \
        float s[PIECE];                                                                            \
        for (int64_t i = 0; i < n; i += PIECE) {                                                   \
            int64_t m = omi_min64(PIECE, n - i);                                                   \
            FN(sigmoid)(m, x + i, s);                                                              \
            mul_piece(m, x + i, s, y + i);                                                         \
        }                                                                                          \
    }
SILU(silu_f32, sigmoid_f32)
SILU(silu_fast_f32, sigmoid_fast_f32)

/* c (x + f(0.044715) ((x x) x)), c = f(sqrt(2/pi)) */
OM_INLINE vf gelu_inner(vf x) {
    vf u = vmul(vmul(x, x), x);
    return vmul(vset1(0x1.988454p-1f), vadd(x, vmul(vset1(0.044715f), u)));
}
OM_INLINE vf gelu_outer(vf x, vf t) {
    return vmul(vmul(vset1(0.5f), x), vadd(vset1(1.0f), t));
}

#define GELU_TANH(name, tanh)                                                                      \
    void FN(name)(int64_t n, const float *x, float *y) {                                           \
        float t[PIECE + W];                                                                        \
        for (int64_t i = 0; i < n; i += PIECE) {                                                   \
            int64_t m = omi_min64(PIECE, n - i), k = 0;                                            \
            for (; k + W <= m; k += W)                                                             \
                vstore(t + k, gelu_inner(vload(x + i + k)));                                       \
            if (k < m) vstore(t + k, gelu_inner(vload_n(x + i + k, (int)(m - k))));                \
            FN(tanh)(m, t, t);                                                                     \
            for (k = 0; k + W <= m; k += W)                                                        \
                vstore(y + i + k, gelu_outer(vload(x + i + k), vload(t + k)));                     \
            if (k < m)                                                                             \
                vstore_n(                                                                          \
                    y + i + k,                                                                     \
                    gelu_outer(vload_n(x + i + k, (int)(m - k)), vload_n(t + k, (int)(m - k))),    \
                    (int)(m - k));                                                                 \
        }                                                                                          \
    }
GELU_TANH(gelu_tanh_f32, tanh_f32)
GELU_TANH(gelu_tanh_fast_f32, tanh_fast_f32)
