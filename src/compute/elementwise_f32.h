/*
 * elementwise_f32.h (internal) -- which inner loop of a column serves a float32 function.
 */
#ifndef OM_COMPUTE_ELEMENTWISE_F32_H
#define OM_COMPUTE_ELEMENTWISE_F32_H

#include "compute/elementwise.h"
#include "kernels/table.h"

typedef void (*omi_unary_f32_fn)(int64_t, const float *, float *);

/* y[i] = f(x[i]); y may be x. NULL: there is none. */
omi_unary_f32_fn omi_unary_f32(const om_kernels *t, om_unary_kind k, bool fast);

#endif
