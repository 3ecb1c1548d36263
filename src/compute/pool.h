/*
 * pool.h -- MaxPool and AveragePool over two axes with their gradients (AR-1.5, AR-4.5, AR-8,
 * AR-11.2).
 *
 * Taps are clipped to those that exist before anything loops over them, so the cost follows the
 * data whatever the kernel's size. A plan has no workspace and cannot fail: the constructor of its
 * window has checked every number, and the caller the size of its tensors. All arrays contiguous
 * float32: x [planes,h,w], y [planes,oh,ow].
 */
#ifndef OM_COMPUTE_POOL_H
#define OM_COMPUTE_POOL_H

#include "compute/window.h"
#include "kernels/table.h"

typedef struct om_pool_geom {
    int64_t planes; /* n * c */
    om_window win;
    bool include_pad; /* AveragePool: the divisor counts padded cells (never a ceil overhang) */
} om_pool_geom;

typedef struct om_pool_plan {
    om_pool_geom g;
    const om_kernels *kern;
    int64_t inside[2][2]; /* per axis: outputs [lo, hi) all of whose taps exist */
    int64_t planes;       /* of a chunk */
} om_pool_plan;

void omi_pool_plan(const om_pool_geom *g, om_pool_plan *p);

/* A window without an existing tap gives -inf. at, unless NULL, gets the place in its plane of the
 * winner of each window: the first tap equal to the maximum, or the first NaN; -1 without a tap.
 * Planes with winners have at most INT32_MAX cells. */
void omi_maxpool(const om_pool_plan *p, const float *x, float *y, int32_t *at);
/* Whether they have. */
#define OM_POOL_WINNERS(g) ((g)->win.in[0] <= INT32_MAX / omi_max64((g)->win.in[1], 1))

/* Adds dy to the winner of its window, in output order. at from omi_maxpool, or NULL: then the
 * winners are found in x again. */
void omi_maxpool_grad(const om_pool_plan *p, const float *x, const int32_t *at, const float *dy,
                      float *dx);
void omi_avgpool(const om_pool_plan *p, const float *x, float *y);
void omi_avgpool_grad(const om_pool_plan *p, const float *dy, float *dx);

#endif
