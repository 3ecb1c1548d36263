/*
 * norm.h -- LayerNormalization and BatchNormalization (AR-4.3, AR-8) and their gradients (AR-11.2:
 * float64 inside, one final rounding; with running statistics, which are constants, float32 steps).
 */
#ifndef OM_COMPUTE_NORM_H
#define OM_COMPUTE_NORM_H

#include "compute/view.h"

/* x, y: [rows, n] contiguous float32. w, b: [n] or NULL (the step is then absent). */
typedef struct om_layernorm_args {
    int64_t rows, n;
    const float *x, *w, *b;
    float eps;
    float *y;
} om_layernorm_args;
void omi_layernorm(const om_layernorm_args *a);

/* dx [rows, n], dw [n], db [n]; any may be NULL. dw and db: f(sum64) over rows. */
typedef struct om_layernorm_grad_args {
    int64_t rows, n;
    const float *x, *w, *g;
    float eps;
    float *dx, *dw, *db;
} om_layernorm_grad_args;
size_t omi_layernorm_grad_workspace(const om_layernorm_grad_args *a, int workers);
/* ws: 64-byte aligned, for omi_workers() workers. */
void omi_layernorm_grad(const om_layernorm_grad_args *a, void *ws);

/* x, y: [n, c, inner] contiguous. s, t: [c], from omi_batchnorm_fold. y = x*s + t, two roundings.
 */
void omi_batchnorm_fold(int64_t c, const float *w, const float *b, const float *mean,
                        const float *var, float eps, float *s, float *t);
void omi_batchnorm_apply(int64_t n, int64_t c, int64_t inner, const float *x, const float *s,
                         const float *t, float *y);
/* Training: statistics by AR-4.2 over (n, inner) in float64 per channel, y by AR-4.3. */
void omi_batchnorm_train(int64_t n, int64_t c, int64_t inner, const float *x, const float *w,
                         const float *b, float eps, double *mean, double *var, float *y);
/* running = (1-momentum)*running + momentum*stat (AR-8); var is unbiased by count/(count-1). */
void omi_batchnorm_running(int64_t c, int64_t count, const double *mean, const double *var,
                           float momentum, float *running_mean, float *running_var);
/* training: mean, var are the batch statistics; else the running ones widened. Any output may be
 * NULL. */
void omi_batchnorm_grad(bool training, int64_t n, int64_t c, int64_t inner, const float *x,
                        const float *w, const double *mean, const double *var, float eps,
                        const float *g, float *dx, float *dw, float *db);

#endif
