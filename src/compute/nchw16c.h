/*
 * nchw16c.h -- to and from the layout NCHW16c: [n, ceil(c/16), h, w, 16], missing channels zero.
 */
#ifndef OM_COMPUTE_NCHW16C_H
#define OM_COMPUTE_NCHW16C_H

#include "base/compiler.h"

/* x and y hold float32; hw is the product of the spatial sizes. */
void omi_to_nchw16c(int64_t n, int64_t c, int64_t hw, const float *x, float *y);
void omi_from_nchw16c(int64_t n, int64_t c, int64_t hw, const float *x, float *y);

#endif
