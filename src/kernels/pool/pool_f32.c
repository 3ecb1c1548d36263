/*
 * pool_f32.c -- one tap of a pooling window applied to a row of outputs (AR-1.5, AR-4.5).
 *
 * compute/ walks the taps in row-major order and hands over each row's valid outputs, so every
 * output meets its taps in the order of the rule while the outputs themselves go in vectors.
 */
#include "kernels/simd.h"

/* AR-1.5: the greater; of equals the one whose sign bit is clear in either; NaN when either is. */
OM_INLINE vf greater_of(vf a, vf b) {
    vf r = vmax_raw(a, b);
    r    = vsel(veq(a, b), vcast_f(vi_and(vcast_i(a), vcast_i(b))), r);
    return vsel(vunord(a, b), vadd(a, b), r);
}

OM_INLINE float greater_of1(float a, float b) {
    if (a > b) return a;
    if (b > a) return b;
    if (a == b) return __builtin_signbit(a) ? b : a;
    return a + b;
}

/* y[i] = max(y[i], x[i * step]) */
void FN(pool_max)(float *y, const float *x, int64_t n, int64_t step) {
    OM_COUNT_CALL();
    int64_t i = 0;
    if (step == 1)
        for (; i + W <= n; i += W)
            vstore(y + i, greater_of(vload(y + i), vload(x + i)));
    for (; i < n; i++)
        y[i] = greater_of1(y[i], x[i * step]);
}

/* y[i] += x[i * step] */
void FN(pool_add)(float *y, const float *x, int64_t n, int64_t step) {
    OM_COUNT_CALL();
    int64_t i = 0;
    if (step == 1)
        for (; i + W <= n; i += W)
            vstore(y + i, vadd(vload(y + i), vload(x + i)));
    for (; i < n; i++)
        y[i] = y[i] + x[i * step];
}
