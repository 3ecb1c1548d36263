/*
 * create.c -- tensors made from the shape of another one, so that symbolic sizes survive a trace.
 *
 * They read no element of their inputs and have no gradient. Values convert by the rules of a cast
 * from float64, as in om_full.
 *
 * Needs: op.h, compute/move.
 */
#include <math.h>

#include "compute/move.h"
#include "ops/op.h"

om_tensor *om_full_like(om_tensor *x, double value, om_dtype t) {
    OMI_ENTER("om_full_like");
    if (!omi_args1(x)) return NULL;
    if (t == OM_DTYPE_NONE) t = (om_dtype)x->dtype;
    if (!omi_type_bit(t))
        OM_FAIL_NULL(OM_ERR_DTYPE, "element type %d is not known; known are%s", (int)t,
                     omi_dtype_names);
    om_tensor *y = omi_new(t, x->rank, x->shape);
    if (!y) return NULL;
    om_view yv       = omi_view(y);
    uint64_t element = 0;
    omi_element_from_double(value, t, &element);
    omi_fill(&yv, &element);
    om_full_like_raw a = {.dtype = t, .value = value};
    return omi_record1(OM_OP_FULL_LIKE, &a, NULL, 1, &x, y, NULL, 0);
}

om_tensor *om_zeros_like(om_tensor *x) {
    OMI_ENTER("om_zeros_like");
    return om_full_like(x, 0, OM_DTYPE_NONE);
}
om_tensor *om_ones_like(om_tensor *x) {
    OMI_ENTER("om_ones_like");
    return om_full_like(x, 1, OM_DTYPE_NONE);
}

om_tensor *om_arange_like(om_tensor *x, int axis) {
    OMI_ENTER("om_arange_like");
    int at;
    if (!omi_args1(x) || omi_axis(axis, x->rank, &at) != OM_OK) return NULL;
    om_tensor *y = omi_new(OM_I64, 1, &x->shape[at]);
    if (!y) return NULL;
    om_view yv          = omi_view(y);
    const int64_t start = 0, step = 1;
    omi_range(&yv, &start, &step);
    om_arange_like_raw a = {.axis = axis};
    om_arange_like_res r = {.axis = at};
    return omi_record1(OM_OP_ARANGE_LIKE, &a, &r, 1, &x, y, NULL, 0);
}

om_tensor *om_causal_mask(om_tensor *q, om_tensor *k) {
    OMI_ENTER("om_causal_mask");
    if (!omi_arg(q, "q") || !omi_arg(k, "k")) return NULL;
    if (q->rank < 2 || k->rank < 2)
        OM_FAIL_NULL(OM_ERR_SHAPE, "q %s and k %s need at least two axes: [.., length, size]",
                     OMI_T(q), OMI_T(k));
    om_tensor *y = omi_new(OM_F32, 2, (int64_t[]){q->shape[q->rank - 2], k->shape[k->rank - 2]});
    if (!y) return NULL;
    // The node is Trilu of a tensor of -inf: it copies or zeroes, so -inf never meets arithmetic.
    const float below = -INFINITY;
    om_view yv = omi_view(y), inf = omi_scalar_view(&below, OM_F32, &yv);
    omi_trilu(&inf, true, 1, &yv);
    return omi_record1(OM_OP_CAUSAL_MASK, NULL, NULL, 2, (om_tensor *[]){q, k}, y, NULL, 0);
}
