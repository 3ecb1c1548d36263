/*
 * direct.h -- tiles for few rows that read b in place: no packing, so each element of b is touched
 * once and nothing is written but y.
 *
 * mr rows by nv vectors of columns, one chain of fused multiply-adds per output over kc steps, into
 * out[mr][nv * W]. Three layouts of b: columns are neighbours (whole vectors of a row of b); rows
 * are neighbours (W columns of W steps are transposed in registers); anything else is gathered. The
 * chains are those of the packed tiles, so the bits are too.
 *
 * Needs: tile.h.  Included by gemm_f32.c only.
 */
#ifndef OM_KERNELS_GEMM_DIRECT_H
#define OM_KERNELS_GEMM_DIRECT_H

#include "kernels/gemm/tile.h"

#define DROWS 4 /* most rows of a tile                            */
#define DVECS 8 /* most accumulators of a tile: rows times vectors */

typedef struct om_direct {
    int64_t kc, ars, acs, brs, bcs;
    const float *a, *b;
    int lanes; /* columns that exist in the last vector */
} om_direct;

typedef void (*om_direct_tile)(const om_direct *d, float *out);

#if W == 1
/* Sixteen columns at a time: what the scalar column is fast at. One "vector" is sixteen columns. */
#    define DW_COLS 16
OM_INLINE void direct_any(int mr, int nv, const om_direct *d, float *out) {
    float acc[DROWS][16] = {{0}}, bv[16] = {0};
    (void)nv;
    for (int64_t k = 0; k < d->kc; k++) {
        for (int j = 0; j < d->lanes; j++)
            bv[j] = d->b[k * d->brs + j * d->bcs];
        for (int i = 0; i < mr; i++) {
            float av = d->a[i * d->ars + k * d->acs];
#    if !OM_HAVE_DFMA
            soft_row(av, bv, acc[i]);
#    else
            for (int j = 0; j < 16; j++)
                acc[i][j] = vfma(av, bv[j], acc[i][j]);
#    endif
        }
    }
    memcpy(out, acc, (size_t)mr * sizeof acc[0]);
}
#    define direct_rows direct_any
#    define direct_cols direct_any

#else
#    define DW_COLS W
OM_INLINE void direct_store(int mr, int nv, const vf *acc, float *out) {
    OM_UNROLL for (int i = 0; i < mr; i++) {
        OM_UNROLL for (int v = 0; v < nv; v++) vstore(out + (i * nv + v) * W, acc[i * nv + v]);
    }
}

/* bcs is 1 */
OM_INLINE void direct_rows(int mr, int nv, const om_direct *d, float *out) {
    vf acc[DVECS];
    const float *a = d->a, *b = d->b;
    const int64_t ars = d->ars, acs = d->acs, brs = d->brs;
    const int lanes = d->lanes;
    OM_UNROLL for (int i = 0; i < mr; i++) {
        OM_UNROLL for (int v = 0; v < nv; v++) acc[i * nv + v] = vset1(0.0f);
    }
    OM_KEEP_LOOP for (int64_t k = 0; k < d->kc; k++) {
        vf bv[DVECS];
        OM_UNROLL for (int v = 0; v < nv; v++) bv[v] =
            nv > 1 || lanes == W ? vload(b + v * W) : vload_n(b, lanes);
        OM_UNROLL for (int i = 0; i < mr; i++) {
            vf av = vset1(a[i * ars]);
            OM_UNROLL for (int v = 0; v < nv; v++) acc[i * nv + v] =
                vfma(av, bv[v], acc[i * nv + v]);
        }
        a += acs;
        b += brs;
    }
    direct_store(mr, nv, acc, out);
}

/* brs is 1. Columns that do not exist repeat the last one. */
OM_INLINE void direct_cols(int mr, int nv, const om_direct *d, float *out) {
    vf acc[DVECS];
    const float *a = d->a;
    const int last = (nv - 1) * W + d->lanes - 1;
    int64_t k      = 0;
    OM_UNROLL for (int i = 0; i < mr; i++) {
        OM_UNROLL for (int v = 0; v < nv; v++) acc[i * nv + v] = vset1(0.0f);
    }
    for (; k + W <= d->kc; k += W) {
        OM_UNROLL for (int v = 0; v < nv; v++) {
            vf r[W];
            OM_UNROLL for (int j = 0; j < W; j++) {
                int c = v * W + j;
                r[j]  = vload(d->b + (c < last ? c : last) * d->bcs + k);
            }
            vtranspose(r);
            OM_UNROLL for (int t = 0; t < W; t++) {
                OM_UNROLL for (int i = 0; i < mr; i++) acc[i * nv + v] =
                    vfma(vset1(a[i * d->ars + (k + t) * d->acs]), r[t], acc[i * nv + v]);
            }
        }
    }
    for (; k < d->kc; k++)
        OM_UNROLL for (int v = 0; v < nv; v++) {
            float t[W];
            for (int j = 0; j < W; j++) {
                int c = v * W + j;
                t[j]  = d->b[(c < last ? c : last) * d->bcs + k];
            }
            OM_UNROLL for (int i = 0; i < mr; i++) acc[i * nv + v] =
                vfma(vset1(a[i * d->ars + k * d->acs]), vload(t), acc[i * nv + v]);
        }
    direct_store(mr, nv, acc, out);
}

/* Any strides, one vector. */
OM_INLINE void direct_any(int mr, int nv, const om_direct *d, float *out) {
    vf acc[DVECS];
    float t[W] = {0};
    (void)nv;
    for (int i = 0; i < mr; i++)
        acc[i] = vset1(0.0f);
    for (int64_t k = 0; k < d->kc; k++) {
        for (int j = 0; j < d->lanes; j++)
            t[j] = d->b[k * d->brs + j * d->bcs];
        for (int i = 0; i < mr; i++)
            acc[i] = vfma(vset1(d->a[i * d->ars + k * d->acs]), vload(t), acc[i]);
    }
    direct_store(mr, 1, acc, out);
}
#endif

#define DIRECT(kind, mr, nv)                                                                       \
    static __attribute__((noinline)) void om_direct_##kind##mr##x##nv(const om_direct *d,          \
                                                                      float *out) {                \
        direct_##kind(mr, nv, d, out);                                                             \
    }
DIRECT(rows, 1, 1)
DIRECT(rows, 2, 1)
DIRECT(rows, 3, 1)
DIRECT(rows, 4, 1)
DIRECT(cols, 1, 1)
DIRECT(cols, 2, 1)
DIRECT(cols, 3, 1)
DIRECT(cols, 4, 1)
DIRECT(any, 1, 1)
DIRECT(any, 2, 1)
DIRECT(any, 3, 1)
DIRECT(any, 4, 1)
#if W > 1
DIRECT(rows, 1, 8)
DIRECT(rows, 2, 4)
DIRECT(rows, 3, 2)
DIRECT(rows, 4, 2)
#    if W == 16 /* four transposes of sixteen vectors would not stay in registers */
#        define DIRECT_COLS_1  om_direct_cols1x2
#        define DIRECT_COLS_NV 2
DIRECT(cols, 1, 2)
#    else
#        define DIRECT_COLS_1  om_direct_cols1x4
#        define DIRECT_COLS_NV 4
DIRECT(cols, 1, 4)
#    endif
DIRECT(cols, 2, 2)
static const om_direct_tile direct_rows_wide[DROWS + 1] = {
    NULL, om_direct_rows1x8, om_direct_rows2x4, om_direct_rows3x2, om_direct_rows4x2};
static const int direct_rows_nv[DROWS + 1]              = {0, 8, 4, 2, 2};
static const om_direct_tile direct_cols_wide[DROWS + 1] = {NULL, DIRECT_COLS_1, om_direct_cols2x2,
                                                           NULL, NULL};
static const int direct_cols_nv[DROWS + 1]              = {0, DIRECT_COLS_NV, 2, 0, 0};
#endif
static const om_direct_tile direct_rows_one[DROWS + 1] = {
    NULL, om_direct_rows1x1, om_direct_rows2x1, om_direct_rows3x1, om_direct_rows4x1};
static const om_direct_tile direct_cols_one[DROWS + 1] = {
    NULL, om_direct_cols1x1, om_direct_cols2x1, om_direct_cols3x1, om_direct_cols4x1};
static const om_direct_tile direct_any_one[DROWS + 1] = {NULL, om_direct_any1x1, om_direct_any2x1,
                                                         om_direct_any3x1, om_direct_any4x1};

/* The tile for mr rows with left columns to go, and its vectors. */
OM_INLINE om_direct_tile direct_choose(const om_direct *d, int mr, int64_t left, int *nv) {
#if W > 1
    const om_direct_tile *wide = d->bcs == 1 ? direct_rows_wide : direct_cols_wide;
    const int *vecs            = d->bcs == 1 ? direct_rows_nv : direct_cols_nv;
    if ((d->bcs == 1 || d->brs == 1) && wide[mr] && left >= vecs[mr] * W)
        return *nv = vecs[mr], wide[mr];
#else
    (void)left;
#endif
    *nv = 1;
    return d->bcs == 1   ? direct_rows_one[mr]
           : d->brs == 1 ? direct_cols_one[mr]
                         : direct_any_one[mr];
}

#endif
