/*
 * update.h -- the arithmetic of optimizer steps and of gradient clipping (AR-11.3), shared among
 * threads. Coefficients come rounded to float32; what is written outlives the call, so callers ask
 * for the cancel flag first and hold it off (base/thread.h).
 */
#ifndef OM_COMPUTE_UPDATE_H
#define OM_COMPUTE_UPDATE_H

#include "kernels/args.h"

void omi_sgd(const om_sgd_args *u, int64_t n);
void omi_adam(const om_adam_args *u, int64_t n);
/* y = g * s; y = g limited to [-s, s]. y may be g. */
void omi_scale_f32(float *y, const float *g, int64_t n, float s);
void omi_limit_f32(float *y, const float *g, int64_t n, float s);

#endif
