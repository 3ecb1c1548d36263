/*
 * move.h -- nodes that move elements without arithmetic, and the adds that undo them (AR-7.5
 * "copies bits", AR-11.2 index gradients). Any element type, by size, unless said.
 */
#ifndef OM_COMPUTE_MOVE_H
#define OM_COMPUTE_MOVE_H

#include "compute/view.h"

/* y = x, same shape, any strides on both sides: Transpose, Slice, Expand, Concat parts, Contiguous.
 */
void omi_copy(const om_view *x, const om_view *y);
/* y[i * sy] = x[i * sx] for n elements of size bytes: what every gather and scatter of bits is made
 * of. */
void omi_move_run(size_t size, int64_t n, void *y, int64_t sy, const void *x, int64_t sx);
/* Every element of y (any strides) = *value, one element of y's type. */
void omi_fill(const om_view *y, const void *value);
/* One element of type t from or to float64, by the casts of AR-9.2. */
void omi_element_from_double(double v, om_dtype t, void *element);
double omi_element_to_double(const void *element, om_dtype t);
/* One element of an integer type or bool. */
int64_t omi_element_to_int(const void *element, om_dtype t);
/* y[i] = start + i*step; contiguous; int64, int32, float32. start and step have y's type. */
void omi_range(const om_view *y, const void *start, const void *step);
/* Keeps elements on one side of the diagonal k of the last two axes, zero elsewhere. */
void omi_trilu(const om_view *x, bool upper, int64_t k, const om_view *y);

/* Gather{axis}: y[a.., idx.., b..] = x[a.., idx, b..]; idx int64 or int32, negative counts from the
 * end; checked before by omi_index_bad. y contiguous. */
void omi_gather(const om_view *x, const om_view *idx, int axis, const om_view *y);
/* First index outside [-n, n), or false. */
bool omi_index_bad(const om_view *idx, int64_t n, int64_t *value);
/* dst (contiguous float32 or float64, already set) [a.., idx, b..] += src[a.., idx.., b..], adds in
 * row-major order of the index (AR-11.2); entries equal to skip (>= 0) are passed over. */
void omi_index_add(const om_view *dst, const om_view *idx, int axis, const om_view *src,
                   int64_t skip);

/* y (any strides) += x (any strides), same shape, float32 or float64: gradient accumulation. */
void omi_accumulate(const om_view *x, const om_view *y);

/* TopK along axis: values like x, indices int64, both contiguous with k on the axis. NaN greatest,
 * ties to the lower index. */
size_t omi_topk_workspace(const om_view *x, int axis, int workers);
void omi_topk(const om_view *x, int axis, int64_t k, bool largest, const om_view *values,
              const om_view *indices, void *ws);

/* How many elements of x, which is contiguous, are not zero; and their indices: y[k * count + i] is
 * the index along axis k of number i of them. */
int64_t omi_count_nonzero(const om_view *x);
void omi_nonzero(const om_view *x, int64_t count, int64_t *y);
/* Pad, ONNX constant mode with pads >= 0: y[before + i] = x[i], the rest *value. */
void omi_pad_constant(const om_view *x, const int64_t *before, const void *value, const om_view *y);

#endif
