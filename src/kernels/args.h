/*
 * args.h -- the argument structs of kernel entries. Plain pointers, counts and element strides; the
 * caller has checked everything and split the work.
 */
#ifndef OM_KERNELS_ARGS_H
#define OM_KERNELS_ARGS_H

#include "base/compiler.h"

/* ---- gemm/: AR-2 ----------------------------------------------------------------------------- */

#define OM_GEMM_KB   256  /* k in one chain of AR-2.1         */
#define OM_GEMM_SB   4096 /* k in one group of block sums     */
#define OM_GEMM_ROWS 448  /* no column packs more rows at once */
#define OM_GEMM_COLS 512  /* columns of the group buffer      */

/* y[i, j] = epilogue(S(a, b)) for a block of rows and columns. A block of a larger product is this
 * with shifted pointers; a group of its k too, when b_ps stays that of the whole. */
typedef struct om_gemm_args {
    int64_t m, n, k;
    const float *a;
    int64_t a_rs, a_cs; /* any strides                                                    */
    const float *b;     /* panel16, at the first row and panel of the block               */
    int64_t b_ps;       /* floats from one panel to the next: 16 * rows of the whole b    */
    float *y;
    int64_t y_rs;
    bool into;      /* y += the one chain instead of y = (k <= OM_GEMM_KB only)       */
    const float *c; /* NULL: none                                                     */
    int64_t c_rs, c_cs;
    float alpha, beta;
    float *ws; /* omi_gemm_ws_floats(m, k), 64-byte aligned                      */
} om_gemm_args;

OM_INLINE int64_t omi_gemm_ws_floats(int64_t m, int64_t k) {
    int64_t rows = omi_min64(m, OM_GEMM_ROWS), kb = omi_min64(k, OM_GEMM_KB);
    return rows * kb + (k > OM_GEMM_SB ? rows * OM_GEMM_COLS : 0) + 64;
}

/* The other element types: b has plain strides; ws holds one packed block of b. */
typedef struct om_gemmx_args {
    int64_t m, n, k;
    const void *a, *b, *c;
    int64_t a_rs, a_cs, b_rs, b_cs, c_rs, c_cs;
    void *y;
    int64_t y_rs;
    float alpha, beta;
    void *ws; /* OM_GEMMX_WS bytes */
} om_gemmx_args;
#define OM_GEMMX_WS (OM_GEMM_KB * 16 * 8)

/* AR-4.1: lanes and block length of every sum; part of the definition, not of the machine. */
#define OM_SUM_LANES 16
#define OM_SUM_BLOCK 4096
/* Columns a pass down columns takes at once: acc[OM_SUM_LANES][OM_COL_TILE] stays in the L1 cache. */
#define OM_COL_TILE 32

#endif
