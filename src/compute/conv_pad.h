/*
 * conv_pad.h -- the padded copy that convolution kernels read, shared by Conv and its gradients.
 *
 * Channel planes of rows * row floats. A row holds step phases of width floats: column x of the
 * padded input is at (x % step) * width + x / step, so pixels that are step columns apart in the
 * input are neighbours and vectors load them directly. Missing cells are +0 and take part (AR-3.1).
 */
#ifndef OM_COMPUTE_CONV_PAD_H
#define OM_COMPUTE_CONV_PAD_H

#include "base/checked.h"
#include "compute/conv.h"
#include "kernels/args.h"

typedef struct om_padded {
    int64_t rows, step, width, row, plane;
} om_padded;

/* Multiplications of one call, for the question whether it is worth a second thread. */
OM_INLINE int64_t omi_conv_work(const om_conv2d_geom *g) {
    int64_t v[] = {g->n, g->oc, g->oh, g->ow, g->c / g->groups, g->kh, g->kw};
    return omi_product_at_most(v, 7);
}

/* For out_rows output rows of the geometry. */
OM_INLINE om_padded omi_padded_of(const om_conv2d_geom *g, int64_t out_rows) {
    om_padded p = {.step = g->stride[1]};
    p.rows      = (out_rows - 1) * g->stride[0] + (g->kh - 1) * g->dilation[0] + 1;
    int64_t w   = (g->ow - 1) * g->stride[1] + (g->kw - 1) * g->dilation[1] + 1;
    p.width     = omi_ceil_div(w, p.step);
    p.row       = p.step * p.width;
    p.plane     = p.rows * p.row;
    return p;
}

/* Offset of tap (i, j) from the first pixel. */
OM_INLINE int64_t omi_padded_tap(const om_padded *p, const om_conv2d_geom *g, int64_t i,
                                 int64_t j) {
    int64_t x = j * g->dilation[1];
    return i * g->dilation[0] * p->row + x % p->step * p->width + x / p->step;
}

/* Copies chans planes [h, w] of x; row 0 of the copy is input row top, column 0 input column left
 * (either may be negative). Leaves OM_CONV_SLACK zeroed floats behind. */
void omi_conv_pad(const om_padded *p, const float *x, int64_t chans, int64_t h, int64_t w,
                  int64_t top, int64_t left, float *dst);

/* Channels in one chain of AR-3.1. */
OM_INLINE int64_t omi_conv_block(const om_conv2d_geom *g) {
    int64_t cb = 1;
    while (cb < 256 && cb * 2 * g->kh * g->kw <= 288)
        cb *= 2;
    return cb;
}

#endif
