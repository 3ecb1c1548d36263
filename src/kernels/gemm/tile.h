/*
 * tile.h -- the micro-kernels of matrix product and convolution: mr rows by np panels of 16
 * columns.
 *
 * Each is one chain of fused multiply-adds per output from +0 over kc steps (one block P_b of
 * AR-2.1 or AR-3.1), then stored or added to what is there. All accumulators live in registers: 28
 * of 32 on AVX-512 (14 x 32), 12 of 16 on AVX2 (6 x 16). tests/exact disassembles these functions
 * and fails on a stack reference in a loop, because one spill costs a third of the speed.
 *
 * Needs: simd.h.  Included by gemm/ and conv/ only.
 */
#ifndef OM_KERNELS_GEMM_TILE_H
#define OM_KERNELS_GEMM_TILE_H

#include "kernels/simd.h"

#define VP (16 / W) /* vectors in a row of a panel */

#if W == 16
#    define MRM 14 /* most rows of a tile              */
#    define NPM 2  /* panels of a tile                 */
#    define UPM 8  /* panels of the one-row tile       */
#elif W == 8
#    define MRM 6
#    define NPM 1
#    define UPM 4
#else
#    define MRM 4
#    define NPM 1
#    define UPM 1
#endif
#define UMAX 6 /* most rows of the tiles for few rows, which read a in place */
/* Rows times panels of the largest tiles, and the accumulators of any. */
#if W == 16
#    define TILE_MOST 28
#else
#    define TILE_MOST 6
#endif
#define ACCS (TILE_MOST * VP)

typedef void (*om_tile)(int64_t kc, const float *a, int64_t ars, const float *b, int64_t bps,
                        float *c, int64_t ldc, int into);

OM_INLINE void tile_store(int mr, int nv, const vf *acc, float *c, int64_t ldc, int into) {
    if (into) {
        OM_UNROLL for (int i = 0; i < mr; i++) {
            OM_UNROLL for (int v = 0; v < nv; v++) {
                float *q = c + i * ldc + v * W;
                vstore(q, vadd(vload(q), acc[i * nv + v]));
            }
        }
    } else {
        OM_UNROLL for (int i = 0; i < mr; i++) {
            OM_UNROLL for (int v = 0; v < nv; v++) vstore(c + i * ldc + v * W, acc[i * nv + v]);
        }
    }
}

#if W == 1 && !OM_HAVE_DFMA

/* Sixteen columns of one row without a hardware FMA: exact products and sums in float64, which the
 * compiler vectorises; soft_fma.h says which results need the careful way, and those are rare. */
OM_INLINE void soft_row(float a, const float *b, float *acc) {
    double s[16];
    uint32_t u[32], odd = 0;
    float r[16];
    for (int j = 0; j < 16; j++)
        s[j] = (double)a * (double)b[j] + (double)acc[j];
    memcpy(u, s, sizeof u);
    for (int j = 0; j < 32; j++) /* the upper halves cannot look like this unless tiny or huge */
        odd |= (u[j] & 0x1fffffffu) == 0x10000000u;
    for (int j = 0; j < 16; j++)
        odd |= (uint32_t)(__builtin_fabs(s[j]) < 0x1p-126) & (uint32_t)(s[j] != 0.0);
    for (int j = 0; j < 16; j++)
        r[j] = (float)s[j];
    if (OM_UNLIKELY(odd))
        for (int j = 0; j < 16; j++)
            r[j] = om_soft_fma(a, b[j], acc[j]);
    memcpy(acc, r, sizeof r);
}

OM_INLINE void tile_any(int mr, int np, int64_t kc, const float *a, int64_t ars, int64_t acs,
                        const float *b, int64_t bps, float *c, int64_t ldc, int into) {
    (void)np, (void)bps;
    float acc[UMAX][16] = {{0}};
    for (int64_t k = 0; k < kc; k++)
        for (int i = 0; i < mr; i++)
            soft_row(a[i * ars + k * acs], b + k * 16, acc[i]);
    for (int i = 0; i < mr; i++)
        for (int j = 0; j < 16; j++)
            c[i * ldc + j] = into ? c[i * ldc + j] + acc[i][j] : acc[i][j];
}
/* a packed [kc][mr], b packed */
OM_INLINE void tile_packed(int mr, int np, int64_t kc, const float *a, const float *b, int64_t bps,
                           float *c, int64_t ldc, int into) {
    tile_any(mr, np, kc, a, 1, mr, b, bps, c, ldc, into);
}
/* rows of a at ars, contiguous along k */
OM_INLINE void tile_plain(int mr, int np, int64_t kc, const float *a, int64_t ars, const float *b,
                          int64_t bps, float *c, int64_t ldc, int into) {
    tile_any(mr, np, kc, a, ars, 1, b, bps, c, ldc, into);
}

#else

/* a packed [kc][mr], b packed */
OM_INLINE void tile_packed(int mr, int np, int64_t kc, const float *a, const float *b, int64_t bps,
                           float *c, int64_t ldc, int into) {
    vf acc[ACCS];
    const int nv    = np * VP;
    const float *b1 = b + bps;
    OM_UNROLL for (int i = 0; i < mr; i++) {
        OM_UNROLL for (int v = 0; v < nv; v++) acc[i * nv + v] = vset1(0.0f);
    }
    OM_UNROLL for (int i = 0; i < mr; i++) /* to L2: in L1 they would thrash when ldc is 2^n */
        __builtin_prefetch(c + i * ldc, 0, 2);
    OM_KEEP_LOOP for (int64_t k = 0; k < kc; k++) {
        vf bv[NPM * VP];
        OM_UNROLL for (int v = 0; v < nv; v++) bv[v] = vload((v / VP ? b1 : b) + v % VP * W);
        OM_UNROLL for (int i = 0; i < mr; i++) {
            vf av = vset1(a[i]);
            OM_UNROLL for (int v = 0; v < nv; v++) acc[i * nv + v] =
                vfma(av, bv[v], acc[i * nv + v]);
        }
        a += mr;
        b += 16;
        b1 += 16;
    }
    tile_store(mr, nv, acc, c, ldc, into);
}

/* rows of a at ars, contiguous along k */
OM_INLINE void tile_plain(int mr, int np, int64_t kc, const float *a, int64_t ars, const float *b,
                          int64_t bps, float *c, int64_t ldc, int into) {
    vf acc[ACCS];
    const int nv = np * VP;
    /* three rows share a base, so that few address registers are needed */
    const float *r[5] = {a, a + 3 * ars, a + 6 * ars, a + 9 * ars, a + 12 * ars};
    OM_UNROLL for (int i = 0; i < mr; i++) {
        OM_UNROLL for (int v = 0; v < nv; v++) acc[i * nv + v] = vset1(0.0f);
    }
    OM_KEEP_LOOP for (int64_t k = 0; k < kc; k++) {
        vf bv[UPM * VP];
        OM_UNROLL for (int v = 0; v < nv; v++) bv[v] = vload(b + v / VP * bps + v % VP * W);
        if (mr * np < MRM * NPM) { /* few rows: bound by the stream of b */
            OM_UNROLL for (int p = 0; p < np; p++) __builtin_prefetch(b + p * bps + 48 * 16, 0, 3);
        }
        OM_UNROLL for (int i = 0; i < mr; i++) {
            vf av = vset1(r[i / 3][i % 3 * ars + k]);
            OM_UNROLL for (int v = 0; v < nv; v++) acc[i * nv + v] =
                vfma(av, bv[v], acc[i * nv + v]);
        }
        b += 16;
    }
    tile_store(mr, nv, acc, c, ldc, into);
}
#endif

/* The functions behind the tables. Kept out of line so that the disassembly test finds them. */
#define TILE_P(mr, np)                                                                             \
    static __attribute__((noinline))                                                               \
    OM_UNUSED void om_tile_p##mr##x##np(int64_t kc, const float *a, int64_t ars, const float *b,   \
                                        int64_t bps, float *c, int64_t ldc, int into) {            \
        (void)ars;                                                                                 \
        tile_packed(mr, np, kc, a, b, bps, c, ldc, into);                                          \
    }
#define TILE_U(mr, np)                                                                             \
    static __attribute__((noinline))                                                               \
    OM_UNUSED void om_tile_u##mr##x##np(int64_t kc, const float *a, int64_t ars, const float *b,   \
                                        int64_t bps, float *c, int64_t ldc, int into) {            \
        tile_plain(mr, np, kc, a, ars, b, bps, c, ldc, into);                                      \
    }

TILE_P(1, 1)
TILE_P(2, 1)
TILE_P(3, 1)
TILE_P(4, 1)
#if MRM >= 6
TILE_P(5, 1)
TILE_P(6, 1)
#endif
#if MRM >= 14
TILE_P(7, 1)
TILE_P(8, 1)
TILE_P(9, 1)
TILE_P(10, 1)
TILE_P(11, 1)
TILE_P(12, 1)
TILE_P(13, 1)
TILE_P(14, 1)
TILE_P(1, 2)
TILE_P(2, 2)
TILE_P(3, 2)
TILE_P(4, 2)
TILE_P(5, 2)
TILE_P(6, 2)
TILE_P(7, 2)
TILE_P(8, 2)
TILE_P(9, 2)
TILE_P(10, 2)
TILE_P(11, 2)
TILE_P(12, 2)
TILE_P(13, 2)
TILE_P(14, 2)
#endif

/* tiles_packed[np - 1][mr] */
#if MRM == 14
static OM_UNUSED const om_tile tiles_packed[2][15] = {
    {NULL, om_tile_p1x1, om_tile_p2x1, om_tile_p3x1, om_tile_p4x1, om_tile_p5x1, om_tile_p6x1,
     om_tile_p7x1, om_tile_p8x1, om_tile_p9x1, om_tile_p10x1, om_tile_p11x1, om_tile_p12x1,
     om_tile_p13x1, om_tile_p14x1},
    {NULL, om_tile_p1x2, om_tile_p2x2, om_tile_p3x2, om_tile_p4x2, om_tile_p5x2, om_tile_p6x2,
     om_tile_p7x2, om_tile_p8x2, om_tile_p9x2, om_tile_p10x2, om_tile_p11x2, om_tile_p12x2,
     om_tile_p13x2, om_tile_p14x2}};
#elif MRM == 6
static OM_UNUSED const om_tile tiles_packed[1][7] = {
    {NULL, om_tile_p1x1, om_tile_p2x1, om_tile_p3x1, om_tile_p4x1, om_tile_p5x1, om_tile_p6x1}};
#else
static OM_UNUSED const om_tile tiles_packed[1][5] = {
    {NULL, om_tile_p1x1, om_tile_p2x1, om_tile_p3x1, om_tile_p4x1}};
#endif

/* Rows in nearly equal tiles: a last tile of one row would run at a fraction of the speed. */
typedef struct om_rows {
    int64_t tiles, base, extra;
} om_rows;
OM_INLINE om_rows om_rows_of(int64_t m) {
    om_rows r = {.tiles = (m + MRM - 1) / MRM};
    r.base    = r.tiles ? m / r.tiles : 0;
    r.extra   = r.tiles ? m % r.tiles : 0;
    return r;
}
OM_INLINE int om_rows_height(const om_rows *r, int64_t tile) {
    return (int)(r->base + (tile < r->extra));
}

/* A tile at the right edge goes through a scratch tile, so that c is not written beyond n. Out of
 * line: its frame is nothing the others should set up. */
static __attribute__((noinline)) OM_UNUSED void run_edge_tile(om_tile f, int mr, int np, int64_t kc,
                                                              const float *a, int64_t ars,
                                                              const float *b, int64_t bps, float *c,
                                                              int64_t ldc, int into, int64_t cols) {
    float t[TILE_MOST * 16] __attribute__((aligned(64)));
    f(kc, a, ars, b, bps, t, np * 16, 0);
    for (int i = 0; i < mr; i++)
        for (int64_t j = 0; j < cols; j++) {
            float v        = t[i * np * 16 + j];
            c[i * ldc + j] = into ? c[i * ldc + j] + v : v;
        }
}
OM_INLINE void run_tile(om_tile f, int mr, int np, int64_t kc, const float *a, int64_t ars,
                        const float *b, int64_t bps, float *c, int64_t ldc, int into,
                        int64_t cols) {
    if (OM_LIKELY(cols >= np * 16))
        f(kc, a, ars, b, bps, c, ldc, into);
    else
        run_edge_tile(f, mr, np, kc, a, ars, b, bps, c, ldc, into, cols);
}

#endif
