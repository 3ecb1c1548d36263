/*
 * flat.h -- a tensor's elements in row-major order, for code that writes them out or compares them.
 *
 * A contiguous tensor is read in place; a strided one is copied once.
 *
 * Needs: tensor.h.  Used by: compare, npy.
 */
#ifndef OM_TENSOR_FLAT_H
#define OM_TENSOR_FLAT_H

#include "base/alloc.h"
#include "compute/move.h"
#include "tensor/tensor.h"

typedef struct omi_flat {
    const void *data;
    void *own; /* NULL when data is the tensor's */
    size_t bytes;
} omi_flat;

/* False and raised when memory is out. omi_flat_put in any case. */
OM_INLINE bool omi_flat_get(const om_tensor *t, omi_flat *f) {
    *f = (omi_flat){.data  = omi_ptr(t),
                    .bytes = (size_t)omi_numel(t) * om_dtype_size((om_dtype)t->dtype)};
    if (omi_contiguous(t)) return true;
    if (!(f->own = omi_alloc_aligned(f->bytes))) return false;
    om_view from = omi_view(t), to = from;
    to.data = f->own;
    omi_view_pack_strides(&to);
    omi_copy(&from, &to);
    f->data = f->own;
    return true;
}
OM_INLINE void omi_flat_put(omi_flat *f) {
    if (f->own) omi_free_aligned(f->own, f->bytes);
    f->own = NULL;
}

/* Copies n elements from src to dst as a file or hash sees them: every NaN the canonical one
 * (AR-1.4), little-endian. */
void omi_canonical_copy(void *dst, const void *src, om_dtype t, int64_t n);

#endif
