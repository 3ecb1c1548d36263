/*
 * update.c -- the element loops of the optimizers and of gradient clipping, in the order of
 * operations of AR-11.3.
 *
 * Only + - * / and sqrt, which IEEE fixes, each rounded by itself: bits do not depend on how a
 * column is vectorised, so these are plain loops that the compiler vectorises with the column's
 * flags.
 */
#include <math.h>

#include "kernels/simd.h"

void FN(sgd_f32)(const om_sgd_args *u, int64_t i0, int64_t i1) {
    OM_COUNT_CALL();
    float *restrict w = u->w, *restrict v = u->v;
    const float *restrict g0 = u->g;
    float wd = u->wd, mu = u->mu, omt = u->one_minus_tau, lr = u->lr;
    for (int64_t i = i0; i < i1; i++) {
        float g = g0[i];
        if (u->decay) g = g + wd * w[i];
        if (u->momentum) {
            v[i] = u->first ? g : mu * v[i] + omt * g;
            g    = u->nesterov ? g + mu * v[i] : v[i];
        }
        w[i] = w[i] - lr * g;
    }
}

void FN(adam_f32)(const om_adam_args *u, int64_t i0, int64_t i1) {
    OM_COUNT_CALL();
    float *restrict w = u->w, *restrict m = u->m, *restrict v = u->v;
    const float *restrict g0 = u->g;
    bool l2 = u->l2, shrink = u->shrink;
    float wd = u->wd, keep = u->keep, b1 = u->b1, ob1 = u->one_minus_b1, b2 = u->b2,
          ob2 = u->one_minus_b2, rate = u->rate, root = u->root, eps = u->eps;
    for (int64_t i = i0; i < i1; i++) {
        float g = g0[i], p = w[i];
        if (l2) g = g + wd * p;
        if (shrink) p = p * keep;
        m[i] = b1 * m[i] + ob1 * g;
        v[i] = b2 * v[i] + (ob2 * g) * g;
        w[i] = p - rate * (m[i] / (sqrtf(v[i]) * root + eps));
    }
}

/* y may be x. A NaN passes. */
void FN(limit_f32)(int64_t n, const float *x, float s, float *y) {
    OM_COUNT_CALL();
    for (int64_t i = 0; i < n; i++)
        y[i] = x[i] < -s ? -s : x[i] > s ? s : x[i];
}
