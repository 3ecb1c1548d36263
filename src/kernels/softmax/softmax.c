/*
 * softmax.c -- Softmax and LogSoftmax over contiguous rows (AR-4.4, AR-8), and their gradients in
 * float64 (AR-11.2).
 */
#include "kernels/elementwise/cr_math.h"
#include "kernels/elementwise/tail.h"
#include "kernels/simd.h"

/* The order does not matter here and NaN poisons the row through the sum, so the raw maximum does.
 */
static float greatest(int64_t n, const float *x) {
    vf m = vset1(-__builtin_inff());
    float s[W], r;
    int64_t i = 0;
    for (; i + W <= n; i += W)
        m = vmax_raw(vload(x + i), m);
    vstore(s, m);
    r = s[0];
    for (int l = 1; l < W; l++)
        r = s[l] > r ? s[l] : r;
    for (; i < n; i++)
        r = x[i] > r ? x[i] : r;
    return r;
}

OM_INLINE void minus(int64_t n, const float *x, float m, float *y) {
    for (int64_t i = 0; i < n; i += W) {
        int t = om_lanes_at(i, n, W);
        om_store_t(y + i, vsub(om_load_t(x + i, t), vset1(m)), t);
    }
}
OM_INLINE void divide(int64_t n, float s, float *y) {
    for (int64_t i = 0; i < n; i += W) {
        int t = om_lanes_at(i, n, W);
        om_store_t(y + i, vdiv(om_load_t(y + i, t), vset1(s)), t);
    }
}

#define SOFTMAX(name, exp)                                                                         \
    void FN(name)(int64_t rows, int64_t n, const float *x, float *y) {                             \
        for (int64_t r = 0; r < rows; r++, x += n, y += n) {                                       \
            minus(n, x, greatest(n, x), y);                                                        \
            FN(exp)(n, y, y);                                                                      \
            divide(n, (float)FN(sum_f32)(n, y), y);                                                \
        }                                                                                          \
    }
SOFTMAX(softmax_f32, exp_f32)
SOFTMAX(softmax_fast_f32, exp_fast_f32)

/* The float64 sum of exp(y), a block of AR-4.1 at a time. */
#define SUM_EXP(name, exp)                                                                         \
    static double name(int64_t n, const float *y) {                                                \
        float e[OM_SUM_BLOCK];                                                                     \
        double total = 0.0;                                                                        \
        for (int64_t i = 0; i < n; i += OM_SUM_BLOCK) {                                            \
            int64_t m = omi_min64(OM_SUM_BLOCK, n - i);                                            \
            FN(exp)(m, y + i, e);                                                                  \
            total += FN(sum_f32)(m, e);                                                            \
        }                                                                                          \
        return total;                                                                              \
    }
SUM_EXP(sum_exp, exp_f32)
SUM_EXP(sum_exp_fast, exp_fast_f32)

#define LOG_SOFTMAX(name, sum)                                                                     \
    void FN(name)(int64_t rows, int64_t n, const float *x, float *y) {                             \
        for (int64_t r = 0; r < rows; r++, x += n, y += n) {                                       \
            minus(n, x, greatest(n, x), y);                                                        \
            float s = (float)sum(n, y);                                                            \
            FN(log_f32)(1, &s, &s);                                                                \
            minus(n, y, s, y);                                                                     \
        }                                                                                          \
    }
LOG_SOFTMAX(log_softmax_f32, sum_exp)
LOG_SOFTMAX(log_softmax_fast_f32, sum_exp_fast)

/* dx = y (g - s), s the float64 sum of g y */
void FN(softmax_grad_f32)(int64_t n, const float *y, const float *g, double s, float *dx) {
    OM_COUNT_CALL();
    vd vs = vd_set1(s);
    for (int64_t i = 0; i < n; i += DW) {
        int t = om_lanes_at(i, n, DW);
        om_storef_t(dx + i, vd_mul(om_loadf_t(y + i, t), vd_sub(om_loadf_t(g + i, t), vs)), t);
    }
}

/* dx = g - exp(y) s, s the float64 sum of g */
void FN(log_softmax_grad_f32)(int64_t n, const float *y, const float *g, double s, float *dx) {
    OM_COUNT_CALL();
    float e[256];
    vd vs = vd_set1(s);
    for (int64_t b = 0; b < n; b += 256) {
        int64_t m = omi_min64(256, n - b);
        FN(exp_f32)(m, y + b, e);
        for (int64_t i = 0; i < m; i += DW) {
            int t = om_lanes_at(i, m, DW);
            vd v  = vd_sub(om_loadf_t(g + b + i, t), vd_mul(om_loadf_t(e + i, t), vs));
            om_storef_t(dx + b + i, v, t);
        }
    }
}
