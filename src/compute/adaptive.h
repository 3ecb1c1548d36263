/*
 * adaptive.h -- the cells of AdaptiveAvgPool, its averaging matrix and its gradient (AR-8).
 *
 * Output cell i of `out` covers the input positions floor(i*in/out) .. ceil((i+1)*in/out), so cells
 * overlap when the sizes do not divide. The eager operator and the lowering use the same matrices.
 */
#ifndef OM_COMPUTE_ADAPTIVE_H
#define OM_COMPUTE_ADAPTIVE_H

#include "compute/view.h"

OM_INLINE int64_t omi_cell_begin(int64_t i, int64_t in, int64_t out) {
    return i * in / out;
}
OM_INLINE int64_t omi_cell_end(int64_t i, int64_t in, int64_t out) {
    return ((i + 1) * in + out - 1) / out;
}

/* m: [out, in] row-major, or [in, out] when transposed: f(1/cell) inside a cell, +0 outside. */
void omi_adaptive_matrix(int64_t in, int64_t out, bool transposed, float *m);

/* dx [planes, h, w] = +0, then += g/count over each cell, in row-major order of the output position
 * (AR-11.2). dy [planes, oh, ow]; both contiguous float32. */
void omi_adaptive_avg_grad(int64_t planes, int64_t h, int64_t w, int64_t oh, int64_t ow,
                           const float *dy, float *dx);

#endif
