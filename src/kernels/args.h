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
    int64_t b_rs, b_cs; /* gemm_direct_f32 only: b in place with any strides              */
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
#define OM_GEMMX_ROWS 64
#define OM_GEMMX_WS   ((OM_GEMM_KB + OM_GEMMX_ROWS) * 16 * 8)

/* AR-4.1: lanes and block length of every sum; part of the definition, not of the machine. */
#define OM_SUM_LANES 16
#define OM_SUM_BLOCK 4096
/* Columns a pass down columns takes at once: acc[OM_SUM_LANES][OM_COL_TILE] stays in the L1 cache.
 */
#define OM_COL_TILE 16

/* ---- conv/: AR-3 ----------------------------------------------------------------------------- */

#define OM_CONV_PIXELS 128 /* pixels whose patches are packed at once  */
#define OM_CONV_KC     512 /* no block of AR-3.1 is longer unless the kernel area is */
#define OM_CONV_SLACK  32  /* floats behind x and packed weights that vectors may touch */

/* Sums over (channel, tap) of w * x for rows of weights and a rectangle of pixels, one group of one
 * image. x is laid out so that a step of one pixel is one float and a tap is a fixed offset: a
 * padded copy, split by column phase when the stride is not 1. Serves Conv and, with the taps of
 * one phase, its input gradient. */
typedef struct om_conv_args {
    int64_t rows;         /* rows of w in all                                      */
    int64_t tile0, tile1; /* tiles of rows to compute                              */
    int64_t chans, cb;    /* contracted channels; channels in one chain P_b        */
    int64_t group;        /* channels in one group of block sums; 0: no groups     */
    int64_t taps;
    const int64_t *tap; /* [taps] offsets in x                                   */
    const float *x;
    int64_t plane;           /* floats from one channel of x to the next              */
    int64_t out_w, row_step; /* pixels in a row; floats of x from one row to the next */
    int64_t first,
        pixels; /* pixels to compute: from first, a multiple of OM_CONV_PIXELS, to pixels */
    bool slack; /* x may be read OM_CONV_SLACK floats beyond its end     */
    const uint16_t *mask; /* [panel of 16 pixels][taps] lanes that exist; NULL: all */
    const float *w;       /* from conv_pack_w                                      */
    const float *bias;    /* [rows] or NULL                                        */
    float *y;
    int64_t y_rs; /* floats from one row to the next; pixels are contiguous */
    float *ws;    /* omi_conv_ws_floats                                    */
} om_conv_args;

OM_INLINE int64_t omi_conv_ws_floats(int64_t rows, int64_t kc, bool grouped) {
    return OM_CONV_PIXELS * kc + OM_CONV_SLACK + (grouped ? rows * OM_CONV_PIXELS : 0) + 64;
}

/* Weights of om_conv_args: element (row, channel, t) at w[row * row_step + channel * chan_step +
 * tap[t]]; dst: rows * chans * taps floats and OM_CONV_SLACK. */
typedef struct om_conv_pack_args {
    int64_t rows, chans, cb, taps;
    const int64_t *tap;
    const float *w;
    int64_t row_step, chan_step;
    float *dst;
} om_conv_pack_args;

/* One channel of a depthwise convolution: one chain over the taps. x as in om_conv_args, with
 * slack. */
typedef struct om_depthwise_args {
    int64_t taps;
    const int64_t *tap;
    const float *w; /* [taps] */
    const float *x;
    int64_t out_h, out_w, row_step;
    const float *bias; /* one number or NULL */
    float *y;
} om_depthwise_args;

/* Pixels [p0, p1) of up to sixteen columns of x (tap offsets) as rows of a panel, for the weight
 * gradient; x as in om_conv_args, with slack. */
typedef struct om_unfold_args {
    const float *x;
    const int64_t *col; /* [cols] */
    int cols;
    int64_t out_w, row_step, p0, p1;
    float *dst; /* [p1 - p0][16], columns beyond cols zero */
} om_unfold_args;

/* ---- elementwise/epilogue.c ------------------------------------------------------------------ */

typedef enum om_ep_op_kind {
    OM_EP_OP_ADD,
    OM_EP_OP_MUL,
    OM_EP_OP_SCALE_SHIFT, /* y * a + b, two roundings      */
    OM_EP_OP_RELU,
    OM_EP_OP_LIMIT /* Clip whose bounds are no NaN, and the upper one not -0 */
} om_ep_op_kind;

#define OM_EP_MAX 6

/* Operands are at row 0, column 0 of the block: rs floats from row to row, and along a row one
 * number, or cs: neighbours. */
typedef struct om_ep_op {
    om_ep_op_kind kind;
    bool cs;
    const float *a, *b;
    int64_t rs;
    float lo, hi;
} om_ep_op;

/* y = all ops in turn, for a block of rows and columns. */
typedef struct om_epilogue_args {
    int64_t rows, cols;
    float *y;
    int64_t y_rs;
    int n;
    om_ep_op op[OM_EP_MAX];
} om_epilogue_args;

/* ---- pool/: AR-1.5, AR-4.5 --------------------------------------------------------------------
 */

/* A run of n outputs of one row whose taps all exist: tap (i, j) of output o is at
 * x[i * row_step + j * col_step + o * step]. Taps are met in row-major order. */
typedef struct om_pool_args {
    const float *x;
    int64_t n, rows, cols; /* outputs; taps along each axis, at least one */
    int64_t row_step, col_step, step;
    int64_t at; /* pool_at: number of x[0] in its plane */
} om_pool_args;

/* ---- optim/: AR-11.3 ------------------------------------------------------------------------- */

/* Coefficients are rounded to float32 from float64 once. v: the momentum, NULL without. */
typedef struct om_sgd_args {
    float *w, *v;
    const float *g;
    bool first, nesterov, momentum, decay; /* first: v has no value yet */
    float wd, mu, one_minus_tau, lr;
} om_sgd_args;

typedef struct om_adam_args {
    float *w, *m, *v;
    const float *g;
    bool l2, shrink; /* decay into the gradient (Adam), or of the weight (AdamW) */
    float wd, keep, b1, one_minus_b1, b2, one_minus_b2, rate, root, eps; /* keep: 1 - lr * wd */
} om_adam_args;

#endif
