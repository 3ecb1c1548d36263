/*
 * view.h -- a strided block of elements: what eager tensors and session steps hand to compute/.
 *
 * compute/ holds the numeric meaning of every ONNX node we write, over views, with threads. The
 * eager operators and the session's steps both call it and neither has arithmetic of its own, so
 * "eager equals Exact bit for bit" (TD-19, AR-7.1) is true by construction. Below it, kernels/ has
 * the inner loops per instruction set.
 *
 * Contract of every function in compute/: shapes were checked by the caller, data pointers are
 * valid, outputs do not overlap inputs unless the function says so; nothing allocates or fails;
 * workspace is given, its size told by the function's *_workspace twin for a number of workers.
 * Strides are in elements, may be 0 (broadcast) or negative on inputs. Outputs are contiguous
 * unless said otherwise.
 *
 * Needs: base.  Used by: compute, ops, graphops, runtime.
 */
#ifndef OM_COMPUTE_VIEW_H
#define OM_COMPUTE_VIEW_H

#include "base/compiler.h"
#include "onemodel/base.h"

typedef struct om_view {
    void *data;
    om_dtype dtype;
    int32_t rank;
    int64_t shape[OM_MAX_RANK], strides[OM_MAX_RANK];
} om_view;

OM_INLINE int64_t omi_view_numel(const om_view *v) {
    int64_t n = 1;
    for (int i = 0; i < v->rank; i++)
        n *= v->shape[i];
    return n;
}

/* Row-major strides for v->shape; those of size-1 axes are the canonical product too. */
OM_INLINE void omi_view_pack_strides(om_view *v) {
    int64_t s = 1;
    for (int i = v->rank - 1; i >= 0; i--) {
        v->strides[i] = s;
        s *= v->shape[i] > 0 ? v->shape[i] : 1;
    }
}

/* v at index 0 of an axis, without it. */
OM_INLINE om_view omi_view_without(const om_view *v, int axis) {
    om_view r = *v;
    r.rank--;
    for (int i = axis; i < r.rank; i++) {
        r.shape[i]   = v->shape[i + 1];
        r.strides[i] = v->strides[i + 1];
    }
    return r;
}

OM_INLINE bool omi_view_contiguous(const om_view *v) {
    int64_t s = 1;
    for (int i = v->rank - 1; i >= 0; i--) {
        if (v->shape[i] != 1 && v->strides[i] != s) return false;
        s *= v->shape[i];
    }
    return true;
}

/* v read as if it had the given shape, by numpy broadcasting: missing and size-1 axes get stride 0.
 * The caller has checked that it fits. */
OM_INLINE om_view omi_view_broadcast(const om_view *v, int rank, const int64_t *shape) {
    om_view r = {.data = v->data, .dtype = v->dtype, .rank = rank};
    int d     = rank - v->rank;
    for (int i = 0; i < rank; i++) {
        r.shape[i]   = shape[i];
        r.strides[i] = i < d || v->shape[i - d] == 1 ? 0 : v->strides[i - d];
    }
    return r;
}

#endif
