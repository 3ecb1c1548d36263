/*
 * gemm_any.c -- matrix products of the other types: float64 by AR-9.4 (p = p + a*b, two roundings,
 * the blocks and groups of AR-2.1), int64 and int32 wrapping (AR-9.1: any order gives the same
 * bits).
 */
#include <string.h>

#include "base/thread.h"
#include "kernels/simd.h"

#define VD (16 / DW) /* vectors in sixteen columns */

/* kc rows by n columns (at most 16, the rest zero) of b. */
static void pack_f64(double *dst, const double *b, int64_t rs, int64_t cs, int64_t kc, int n) {
    for (int64_t k = 0; k < kc; k++)
        for (int j = 0; j < 16; j++)
            dst[k * 16 + j] = j < n ? b[k * rs + j * cs] : 0.0;
}

/* One row: the chain of kc products into out. */
static void row_f64(const double *a, int64_t cs, const double *b, int64_t kc, double *out) {
    vd acc[VD];
    OM_UNROLL for (int v = 0; v < VD; v++) acc[v] = vd_set1(0.0);
    for (int64_t k = 0; k < kc; k++) {
        vd av = vd_set1(a[k * cs]);
        OM_UNROLL for (int v = 0; v < VD; v++) acc[v] =
            vd_add(acc[v], vd_mul(av, vd_load(b + k * 16 + v * DW)));
    }
    OM_UNROLL for (int v = 0; v < VD; v++) vd_store(out + v * DW, acc[v]);
}

/* Rows of y hold the finished groups; sum[i], behind the packed b in the workspace, the group at
 * work. Both small enough to stay in cache. */
#define ROWS OM_GEMMX_ROWS

static void panel_f64(const om_gemmx_args *g, int64_t i0, int64_t rows, int64_t j0, int n) {
    double(*sum)[16] = (double(*)[16])(void *)((double *)g->ws + OM_GEMM_KB * 16), p[16];
    double *y        = (double *)g->y + i0 * g->y_rs + j0;
    for (int64_t k0 = 0; k0 < g->k; k0 += OM_GEMM_KB) {
        int64_t kc = omi_min64(g->k - k0, OM_GEMM_KB), in_group = k0 % OM_GEMM_SB;
        bool last = k0 + kc == g->k || in_group + OM_GEMM_KB == OM_GEMM_SB;
        if (omi_cut_short()) return;
        pack_f64(g->ws, (const double *)g->b + k0 * g->b_rs + j0 * g->b_cs, g->b_rs, g->b_cs, kc,
                 n);
        for (int64_t i = 0; i < rows; i++) {
            row_f64((const double *)g->a + (i0 + i) * g->a_rs + k0 * g->a_cs, g->a_cs, g->ws, kc,
                    p);
            for (int j = 0; j < 16; j++)
                sum[i][j] = in_group ? sum[i][j] + p[j] : p[j];
            for (int j = 0; last && j < n; j++) {
                double *q = y + i * g->y_rs + j;
                *q        = k0 >= OM_GEMM_SB ? *q + sum[i][j] : sum[i][j];
            }
        }
    }
    for (int64_t i = 0; i < rows; i++)
        for (int j = 0; j < n; j++) {
            double v = g->k ? y[i * g->y_rs + j] : 0.0;
            if (g->alpha != 1.0f) v = (double)g->alpha * v;
            if (g->c) {
                double c = ((const double *)g->c)[(i0 + i) * g->c_rs + (j0 + j) * g->c_cs];
                v        = v + (g->beta == 1.0f ? c : (double)g->beta * c);
            }
            y[i * g->y_rs + j] = v;
        }
}

void FN(gemm_f64)(const om_gemmx_args *g) {
    OM_COUNT_CALL();
    for (int64_t i0 = 0; i0 < g->m; i0 += ROWS)
        for (int64_t j0 = 0; j0 < g->n; j0 += 16)
            panel_f64(g, i0, omi_min64(g->m - i0, ROWS), j0, (int)omi_min64(g->n - j0, 16));
}

/* Between two looks at the cancel flag: rows of b, or one row that is longer. */
#define ASK_K 64
#define ASK_N 65536

void FN(gemm_i64)(const om_gemmx_args *g) {
    OM_COUNT_CALL();
    const uint64_t *a = g->a, *b = g->b, *c = g->c;
    uint64_t alpha = (uint64_t)(int64_t)g->alpha, beta = (uint64_t)(int64_t)g->beta;
    for (int64_t i = 0; i < g->m; i++) {
        uint64_t *y = (uint64_t *)g->y + i * g->y_rs;
        for (int64_t j = 0; j < g->n; j++)
            y[j] = 0;
        for (int64_t k = 0; k < g->k; k++) {
            if ((k % ASK_K == 0 || g->n > ASK_N) && omi_cut_short()) return;
            uint64_t av = a[i * g->a_rs + k * g->a_cs];
            for (int64_t j = 0; j < g->n; j++)
                y[j] += av * b[k * g->b_rs + j * g->b_cs];
        }
        for (int64_t j = 0; j < g->n; j++)
            y[j] = alpha * y[j] + (c ? beta * c[i * g->c_rs + j * g->c_cs] : 0);
    }
}

void FN(gemm_i32)(const om_gemmx_args *g) {
    OM_COUNT_CALL();
    const uint32_t *a = g->a, *b = g->b, *c = g->c;
    uint32_t alpha = (uint32_t)(int32_t)g->alpha, beta = (uint32_t)(int32_t)g->beta;
    for (int64_t i = 0; i < g->m; i++) {
        uint32_t *y = (uint32_t *)g->y + i * g->y_rs;
        for (int64_t j = 0; j < g->n; j++)
            y[j] = 0;
        for (int64_t k = 0; k < g->k; k++) {
            if ((k % ASK_K == 0 || g->n > ASK_N) && omi_cut_short()) return;
            uint32_t av = a[i * g->a_rs + k * g->a_cs];
            for (int64_t j = 0; j < g->n; j++)
                y[j] += av * b[k * g->b_rs + j * g->b_cs];
        }
        for (int64_t j = 0; j < g->n; j++)
            y[j] = alpha * y[j] + (c ? beta * c[i * g->c_rs + j * g->c_cs] : 0);
    }
}
