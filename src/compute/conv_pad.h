/*
 * conv_pad.h -- what Conv and its gradients share: the copy of the input that the kernels read, and
 * the kernel called in pieces.
 *
 * The copy holds a plane per channel. Where windows overlap it is the padded input itself, its
 * columns sorted by phase: column x is at (x % step) * width + x / step, so pixels that are step
 * columns apart are neighbours and vectors load them directly. Where windows leave gaps (strides or
 * dilations beyond the kernel's taps) it holds for each tap only the cells that some output reads.
 * Each axis takes the smaller form, so a copy has at most outputs times taps cells. Missing cells
 * are +0 and take part (AR-3.1).
 */
#ifndef OM_COMPUTE_CONV_PAD_H
#define OM_COMPUTE_CONV_PAD_H

#include "compute/conv.h"
#include "kernels/args.h"

/* For out_rows output rows of the window. */
om_padded omi_padded_of(const om_window *w, int64_t out_rows);
/* Offset of tap (i, j) from the first pixel. */
int64_t omi_padded_tap(const om_padded *p, const om_window *w, int64_t i, int64_t j);

/* Fills the copy of chans planes [h, w] of x; its row 0 is input row top, column 0 input column
 * left (either may be negative). Leaves OM_CONV_SLACK zeroed floats behind. */
void omi_conv_pad(const om_padded *p, const om_kernels *k, const float *x, int64_t chans, int64_t h,
                  int64_t w, int64_t top, int64_t left, float *dst);

/* Rows of weights in tiles 0 .. t of `tiles`. */
OM_INLINE int64_t omi_conv_rows_before(int64_t rows, int64_t tiles, int64_t t) {
    return t * (rows / tiles) + omi_min64(t, rows % tiles);
}

/* conv_f32 on pieces of a's pixels and tiles, asking between them whether to stop; ep (or NULL) is
 * applied to each piece while it is in cache, as rows from row0 and pixels from pixel0 on. */
void omi_conv_pieces(const om_kernels *k, const om_conv_args *a, const om_epilogue *ep,
                     int64_t row0, int64_t pixel0);

/* Channels in one chain of AR-3.1. */
OM_INLINE int64_t omi_conv_block(const om_conv_geom *g) {
    int64_t cb = 1, area = g->win.k[0] * g->win.k[1];
    while (cb < 256 && cb * 2 * area <= 288)
        cb *= 2;
    return cb;
}

#endif
