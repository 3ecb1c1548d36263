/*
 * window.h -- the geometry of a window that slides over spatial axes: convolutions and pools, of
 * both planes (CD-30).
 *
 * omi_window_make is the one place where it comes into being and where its numbers are checked:
 * kernels, strides, dilations and pads below 2^31, extents below 2^61, so that no position
 * computed from them can overflow. Three axes from the start; what computes today has two.
 *
 * Needs: base.  Used by: compute/conv, compute/pool, ops, graphops.
 */
#ifndef OM_COMPUTE_WINDOW_H
#define OM_COMPUTE_WINDOW_H

#include "base/checked.h"

#define OM_WINDOW_AXES  3
#define OM_WINDOW_LIMIT INT32_MAX          /* of kernel, stride, dilation and one pad */
#define OM_WINDOW_IN    ((int64_t)1 << 61) /* of an extent, exclusive                 */

typedef struct om_window {
    int nd; /* spatial axes: height, width for two */
    int64_t in[OM_WINDOW_AXES], k[OM_WINDOW_AXES], stride[OM_WINDOW_AXES], dil[OM_WINDOW_AXES];
    int64_t before[OM_WINDOW_AXES], after[OM_WINDOW_AXES]; /* pads */
    int64_t out[OM_WINDOW_AXES];                           /* 0: the kernel does not fit */
} om_window;

typedef enum om_window_round {
    OM_WINDOW_FLOOR,
    OM_WINDOW_CEIL,       /* ceil_mode: the last window starts inside the input or the left pad */
    OM_WINDOW_SAME_UPPER, /* auto_pad of ONNX: out = ceil(in / stride), the pads follow         */
    OM_WINDOW_SAME_LOWER
} om_window_round;

/* Takes everything but out (SAME: and the pads) from w and makes the rest. False when a number is
 * outside its limits; then w is not to be used. */
bool omi_window_make(om_window *w, om_window_round round);

/* Extent that a kernel reaches over. */
OM_INLINE int64_t omi_window_reach(const om_window *w, int axis) {
    return (w->k[axis] - 1) * w->dil[axis] + 1;
}

/* Taps [*lo, *hi) of output o whose positions lie in [from, to): those that exist for 0 .. in. */
OM_INLINE void omi_window_taps(const om_window *w, int axis, int64_t o, int64_t from, int64_t to,
                               int64_t *lo, int64_t *hi) {
    int64_t at = o * w->stride[axis] - w->before[axis], d = w->dil[axis]; /* at: of tap 0 */
    *lo = at < from ? omi_min64(omi_ceil_div(from - at, d), w->k[axis]) : 0;
    *hi = at < to ? omi_min64((to - 1 - at) / d + 1, w->k[axis]) : 0;
    *hi = omi_max64(*lo, *hi);
}

/* Outputs [*lo, *hi) all of whose taps exist. */
void omi_window_inside(const om_window *w, int axis, int64_t *lo, int64_t *hi);

#endif
