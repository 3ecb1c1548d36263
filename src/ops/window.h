/*
 * window.h -- checks shared by operators that slide a window over [N,C,H,W].
 *
 * Each option is named when it is outside the limits of compute/window.h, whose constructor then
 * makes the geometry.
 *
 * Needs: op.h, compute/window.  Used by: conv.c, pool.c.
 */
#ifndef OM_OPS_WINDOW_H
#define OM_OPS_WINDOW_H

#include "compute/window.h"
#include "ops/op.h"

/* An option of two integers, each at least `least`. */
OM_INLINE bool omi_window_option(const char *name, const int64_t v[2], int64_t least) {
    if (v[0] >= least && v[1] >= least && v[0] <= INT32_MAX && v[1] <= INT32_MAX) return true;
    omi_fail(OM_ERR_ARG, "option %s is {%lld,%lld}; both must be %lld to 2147483647", name,
             (long long)v[0], (long long)v[1], (long long)least);
    return false;
}
OM_INLINE void omi_window_default(int64_t v[2], int64_t a, int64_t b) {
    if (v[0] == 0) v[0] = a;
    if (v[1] == 0) v[1] = b;
}
/* x is float32 [N,C,H,W]. */
OM_INLINE bool omi_window_input(om_tensor *x) {
    if (!omi_need_dtype(x, OMI_TYPE_F32)) return false;
    if (x->rank == 4 && x->shape[2] < OM_WINDOW_IN && x->shape[3] < OM_WINDOW_IN) return true;
    omi_fail(OM_ERR_SHAPE, "%s must be [N,C,H,W]; use om_reshape or om_unsqueeze", OMI_T(x));
    return false;
}

#endif
