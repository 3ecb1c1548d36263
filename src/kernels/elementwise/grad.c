/*
 * grad.c -- gradients of the one-input functions, as the float32 node sequences of
 * docs/operators.md read left to right, every step rounded (AR-11.2); those of GELU in float64,
 * rounded once. s is the saved x or y.
 */
#include "kernels/elementwise/gelu_slope.h"
#include "kernels/elementwise/tail.h"
#include "kernels/simd.h"

#define ONE  vset1(1.0f)
#define ZERO vset1(0.0f)

OM_INLINE vf flip(vf x) {
    vf r = vcast_f(vi_xor(vcast_i(x), vi_set1(INT32_MIN)));
    return vsel(vunord(x, x), vcast_f(vi_set1(0x7fc00000)), r);
}
/* +-1, +0 at zeros, NaN */
OM_INLINE vf sign_of(vf x) {
    vf r = vsel(vgt(x, ZERO), ONE, vsel(vlt(x, ZERO), vset1(-1.0f), ZERO));
    return vsel(vunord(x, x), x, r);
}

#define GRAD(name, expr)                                                                           \
    void FN(name)(int64_t n, const float *saved, const float *grad, float *dx) {                   \
        OM_COUNT_CALL();                                                                           \
        int64_t i = 0;                                                                             \
        for (; i + W <= n; i += W) {                                                               \
            vf s = vload(saved + i), g = vload(grad + i);                                          \
            (void)s;                                                                               \
            vstore(dx + i, expr);                                                                  \
        }                                                                                          \
        if (i < n) {                                                                               \
            int t = (int)(n - i);                                                                  \
            vf s = vload_n(saved + i, t), g = vload_n(grad + i, t);                                \
            (void)s;                                                                               \
            vstore_n(dx + i, expr, t);                                                             \
        }                                                                                          \
    }
GRAD(neg_grad_f32, flip(g))
GRAD(abs_grad_f32, vmul(g, sign_of(s)))
GRAD(exp_grad_f32, vmul(g, s))
GRAD(log_grad_f32, vdiv(g, s))
GRAD(sqrt_grad_f32, vdiv(g, vmul(vset1(2.0f), s)))
GRAD(tanh_grad_f32, vmul(g, vsub(ONE, vmul(s, s))))
GRAD(sigmoid_grad_f32, vmul(vmul(g, s), vsub(ONE, s)))
GRAD(relu_grad_f32, vsel(vgt(s, ZERO), g, ZERO))
GRAD(reciprocal_grad_f32, vmul(flip(g), vmul(s, s)))

/* ---- those that need a function of x: a piece at a time ------------------------------------- */

#define PIECE 256

/* t = expr of s (and u), over a piece; t has room for a whole last vector. */
#define STEP(n, out, expr)                                                                         \
    for (int64_t k = 0; k < (n); k += W) {                                                         \
        int r = (int)omi_min64(W, (n)-k);                                                          \
        vf s = om_load_t(saved + i + k, r), g = om_load_t(grad + i + k, r);                        \
        vf t1 = vload(t + k), t2 = vload(u + k);                                                   \
        (void)s, (void)g, (void)t1, (void)t2;                                                      \
        om_store_t((out) + k, expr, r);                                                            \
    }

#define GRAD_PIECES(name, body)                                                                    \
    void FN(name)(int64_t n, const float *saved, const float *grad, float *dx) {                   \
        float t[PIECE + W] = {0}, u[PIECE + W] = {0};                                              \
        for (int64_t i = 0; i < n; i += PIECE) {                                                   \
            int64_t m = omi_min64(PIECE, n - i);                                                   \
            body                                                                                   \
        }                                                                                          \
    }

/* g cos x;  (-g) sin x */
GRAD_PIECES(sin_grad_f32, FN(cos_f32)(m, saved + i, t); STEP(m, dx + i, vmul(g, t1)))
GRAD_PIECES(cos_grad_f32, FN(sin_f32)(m, saved + i, t); STEP(m, dx + i, vmul(flip(g), t1)))
/* (g sigma)(1 + x (1 - sigma)) */
GRAD_PIECES(silu_grad_f32, FN(sigmoid_f32)(m, saved + i, t);
            STEP(m, dx + i, vmul(vmul(g, t1), vadd(ONE, vmul(s, vsub(ONE, t1))))))
/* (g f(2/sqrt pi)) exp(-(x x)) */
GRAD_PIECES(erf_grad_f32, STEP(m, t, flip(vmul(s, s))) FN(exp_f32)(m, t, t);
            STEP(m, dx + i, vmul(vmul(g, vset1(0x1.20dd76p+0f)), t1)))
/* ---- those whose float32 steps would cancel: float64, one rounding -----------------------------
 */

#define GRAD_F64(name, slope)                                                                      \
    void FN(name)(int64_t n, const float *saved, const float *grad, float *dx) {                   \
        OM_COUNT_CALL();                                                                           \
        for (int64_t i = 0; i < n; i += DW) {                                                      \
            int t = om_lanes_at(i, n, DW);                                                         \
            vd s  = slope(om_loadf_t(saved + i, t));                                               \
            om_storef_t(dx + i, vd_mul(om_loadf_t(grad + i, t), s), t);                            \
        }                                                                                          \
    }
GRAD_F64(gelu_grad_f32, om_gelu_slope)
GRAD_F64(gelu_tanh_grad_f32, om_gelu_tanh_slope)
