/*
 * reduce.h -- reductions, argmax, softmax: AR-4 and the rows of AR-8.
 *
 * Sums accumulate in float64 over sixteen lanes and 4,096-element blocks of the row-major reduced
 * index space (AR-4.1), so they do not depend on layout, threads or instruction set. Integers wrap.
 */
#ifndef OM_COMPUTE_REDUCE_H
#define OM_COMPUTE_REDUCE_H

#include "compute/view.h"

typedef enum om_reduce_kind {
    OM_R_SUM,
    OM_R_MEAN,
    OM_R_MAX,
    OM_R_MIN,
    OM_R_PROD,
    OM_R_SUM_SQUARE /* f(sum of exact x*x): used by clipping and tests */
} om_reduce_kind;

/* Reduces the axes in the bit mask. y is contiguous with the kept axes in order (reduced ones size
 * 1 or absent: only the element count matters). x may have any strides. */
void omi_reduce(om_reduce_kind k, const om_view *x, uint32_t axes, const om_view *y);
/* The float64 total of AR-4.1 before its rounding, over all elements. sum_square: of x*x. */
double omi_sum64(const om_view *x, bool sum_square);

/* y int64, contiguous. Ties to the lower index, NaN greatest (max) or, for min, also taken first.
 */
void omi_argmax(bool max, const om_view *x, int axis, const om_view *y);

/* Softmax or LogSoftmax along axis (AR-4.4, AR-8); x any strides, y contiguous. */
size_t omi_softmax_workspace(const om_view *x, int axis, int workers);
void omi_softmax(bool log, const om_view *x, int axis, const om_view *y, void *ws, bool fast);
/* dx = y*(g - sum64(g*y)), or g - exp(y)*sum64(g) for log; f64 with one final rounding (AR-11.2).
 */
void omi_softmax_grad(bool log, const om_view *y, const om_view *g, int axis, const om_view *dx);

/* Gradient of Max/Min over axes: dx = (x == y) ? g / count : 0, count = number of equal elements
 * (NaN counts as equal to NaN). y, g have x's rank with reduced axes 1. */
void omi_reduce_extreme_grad(const om_view *x, const om_view *y, const om_view *g, uint32_t axes,
                             const om_view *dx);

#endif
