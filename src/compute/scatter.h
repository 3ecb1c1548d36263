/*
 * scatter.h -- adds along one axis to places named element by element (ONNX ScatterElements{add}).
 */
#ifndef OM_COMPUTE_SCATTER_H
#define OM_COMPUTE_SCATTER_H

#include "compute/view.h"

/* dst[.., idx[.., j, ..], ..] += src[.., j, ..] along axis, adds in row-major order of idx
 * (AR-11.2). dst contiguous float32 or float64 and already set; idx int64, src like it in shape;
 * all sizes but axis equal. Indices are in range. */
void omi_scatter_add(const om_view *dst, const om_view *idx, int axis, const om_view *src);

#endif
