/*
 * pack.h -- packed forms: row tiles of a, [tile][kc][mr], and column panels of b, [panel][k][16].
 *
 * Transposes go through registers. A full vector is stored even where fewer lanes count: what it
 * spills over belongs to the next row, which is written later; the last one needs W floats of
 * slack.
 */
#ifndef OM_KERNELS_GEMM_PACK_H
#define OM_KERNELS_GEMM_PACK_H

#include "kernels/gemm/tile.h"

/* mr rows (at most MRM) by kc of a. dst: mr * kc floats and W of slack. */
static OM_UNUSED void pack_a_tile(float *dst, const float *a, int64_t rs, int64_t cs, int mr,
                                  int64_t kc) {
    int64_t k = 0;
    if (cs == 1) {
        if (W >= 8)
            for (; k + W <= kc; k += W) {
                vf r[W];
                for (int i = 0; i < W; i++)
                    r[i] = i < mr ? vload(a + i * rs + k) : vset1(0.0f);
                vtranspose(r);
                for (int i = 0; i < W; i++)
                    vstore(dst + (k + i) * mr, r[i]);
            }
    } else if (rs == 1 && W >= 8) {
        for (; k < kc; k++)
            vstore(dst + k * mr, vload_n(a + k * cs, mr));
    }
    for (; k < kc; k++)
        for (int i = 0; i < mr; i++)
            dst[k * mr + i] = a[i * rs + k * cs];
}

/* One panel: n columns (at most 16, the rest zero) by k of b. dst: 16 * k floats. */
static OM_UNUSED void pack_b_panel(float *dst, const float *b, int64_t rs, int64_t cs, int64_t k,
                                   int n) {
    int64_t i = 0;
    if (cs == 1 && n == 16) {
        for (; i < k; i++)
            for (int v = 0; v < VP; v++)
                vstore(dst + i * 16 + v * W, vload(b + i * rs + v * W));
    } else if (rs == 1 && W >= 8) {
        for (; i + W <= k; i += W)
            for (int v = 0; v < VP; v++) {
                vf r[W];
                for (int j = 0; j < W; j++)
                    r[j] = v * W + j < n ? vload(b + (v * W + j) * cs + i) : vset1(0.0f);
                vtranspose(r);
                for (int j = 0; j < W; j++)
                    vstore(dst + (i + j) * 16 + v * W, r[j]);
            }
    }
    for (; i < k; i++)
        for (int j = 0; j < 16; j++)
            dst[i * 16 + j] = j < n ? b[i * rs + j * cs] : 0.0f;
}

#endif
