/*
 * reduce.c -- reductions over axes, argmax and argmin (AR-4, rows of AR-8).
 *
 * Mean is an operator of its own, never Sum times a constant: the count of a symbolic axis would be
 * frozen into a trace (O5). The kernel writes the kept axes in order, so keepdims is only the shape
 * of the result.
 *
 * Needs: op.h, compute/reduce, compute/elementwise, compute/move.
 */
#include "compute/elementwise.h"
#include "compute/move.h"
#include "compute/reduce.h"
#include "compute/shape_rules.h"
#include "ops/op.h"

/* All four reductions have the same attributes; backward and the shared form use this one. */
typedef om_sum_raw reduce_raw;
typedef om_sum_res reduce_res;
_Static_assert(sizeof(om_sum_raw) == sizeof(om_mean_raw) &&
                   sizeof(om_sum_raw) == sizeof(om_max_raw) &&
                   sizeof(om_sum_raw) == sizeof(om_min_raw),
               "one attribute struct for all reductions");

/* ---- the shared form
 * ---------------------------------------------------------------------------------- */

static bool axes_mask(const om_tensor *x, int n, const int64_t *axes, uint32_t *mask) {
    if (n == 0) return *mask = (1u << x->rank) - 1, true;
    if (n < 0 || !axes)
        return omi_fail(OM_ERR_ARG, "%d axes at %p; n = 0 reduces all axes", n, (const void *)axes),
               false;
    *mask = 0;
    for (int i = 0; i < n; i++) {
        int64_t a = axes[i] < 0 ? axes[i] + x->rank : axes[i];
        if (a < 0 || a >= x->rank)
            return omi_fail(OM_ERR_ARG, "axis %lld of %s; there are %d axes", (long long)axes[i],
                            OMI_T(x), x->rank),
                   false;
        if (*mask & (1u << a))
            return omi_fail(OM_ERR_ARG, "axis %lld of %s is named twice", (long long)axes[i],
                            OMI_T(x)),
                   false;
        *mask |= 1u << a;
    }
    return true;
}

/* t (the result's shape, any strides) with the reduced axes back as size 1. */
static om_view kept_view(const om_tensor *t, int rank, uint32_t mask, bool keepdims) {
    om_view v = omi_view(t);
    if (keepdims) return v;
    om_view k = v;
    int from  = 0;
    k.rank    = rank;
    for (int i = 0; i < rank; i++) {
        bool reduced = (mask & (1u << i)) != 0;
        k.shape[i]   = reduced ? 1 : v.shape[from];
        k.strides[i] = reduced ? 1 : v.strides[from];
        from += !reduced;
    }
    return k;
}

static om_tensor *reduce_op(om_op op, om_reduce_kind k, om_tensor *x, int n, const int64_t *axes,
                            bool keepdims, om_backward_fn backward, uint32_t save) {
    uint32_t mask;
    if (!axes_mask(x, n, axes, &mask)) return NULL;
    int64_t shape[OM_MAX_RANK];
    int rank     = omi_reduced_shape(x->rank, x->shape, mask, keepdims, shape);
    om_tensor *y = omi_new((om_dtype)x->dtype, rank, shape);
    if (!y) return NULL;
    om_view xv = omi_view(x), yv = omi_view(y);
    omi_reduce(k, &xv, mask, &yv);
    reduce_raw a = {.keepdims = keepdims, .axes = {.n = n, .v = axes}};
    reduce_res r = {.mask = mask};
    return omi_record1(op, &a, &r, 1, &x, y, backward, save);
}

/* ---- sum, mean: g, or g/n, broadcast
 * --------------------------------------------------------------------- */

static om_status sum_backward(const om_record *r, om_tensor *const *dy, om_tensor **dx) {
    om_tensor *g = dy[0];
    if (!g || !omi_needs(r, 0)) return OM_OK;
    const reduce_raw *a = r->raw;
    uint32_t mask       = (uint32_t)((const reduce_res *)r->res)->mask;
    int rank;
    const int64_t *shape = omi_in_shape(r, 0, &rank);
    if (r->op == OM_OP_MEAN) {
        double n = 1;
        for (int i = 0; i < rank; i++)
            if (mask & (1u << i)) n *= (double)shape[i];
        om_tensor *q = omi_new_like(g);
        if (!q) return omi_pending_status;
        uint64_t count = 0;
        omi_element_from_double(n, (om_dtype)g->dtype, &count);
        om_view gv = omi_view(g), qv = omi_view(q);
        om_view cv = omi_scalar_view(&count, (om_dtype)g->dtype, &gv);
        omi_binary(OM_B_DIV, &gv, &cv, &qv);
        g = q;
    }
    om_tensor *d = omi_new((om_dtype)g->dtype, rank, shape);
    if (!d) return omi_pending_status;
    om_view gv = kept_view(g, rank, mask, a->keepdims), dv = omi_view(d);
    gv = omi_view_broadcast(&gv, rank, shape);
    omi_copy(&gv, &dv);
    dx[0] = d;
    return OM_OK;
}

om_tensor *om_sum(om_tensor *x, int n, const int64_t *axes, bool keepdims) {
    OMI_ENTER("om_sum");
    const uint32_t types = OMI_TYPE_FLOAT | OMI_TYPE_I64 | OMI_TYPE_I32 | OMI_TYPE_BOOL;
    if (!omi_args1(x) || !omi_need_dtype(x, types)) return NULL;
    if (x->dtype == OM_BOOL && !(x = om_cast(x, OM_I64))) return NULL; // counts, as its nodes do
    return reduce_op(OM_OP_SUM, OM_R_SUM, x, n, axes, keepdims, sum_backward, 0);
}

om_tensor *om_mean(om_tensor *x, int n, const int64_t *axes, bool keepdims) {
    OMI_ENTER("om_mean");
    if (!omi_args1(x) || !omi_need_dtype(x, OMI_TYPE_FLOAT)) return NULL;
    return reduce_op(OM_OP_MEAN, OM_R_MEAN, x, n, axes, keepdims, sum_backward, 0);
}

om_tensor *om_sum_all(om_tensor *x) {
    OMI_ENTER("om_sum_all");
    return om_sum(x, 0, NULL, false);
}
om_tensor *om_mean_all(om_tensor *x) {
    OMI_ENTER("om_mean_all");
    return om_mean(x, 0, NULL, false);
}

/* ---- max, min: g split evenly over ties
 * -------------------------------------------------------------------- */

static om_status extreme_backward(const om_record *r, om_tensor *const *dy, om_tensor **dx) {
    om_tensor *g = dy[0];
    if (!g || !omi_needs(r, 0)) return OM_OK;
    const reduce_raw *a = r->raw;
    uint32_t mask       = (uint32_t)((const reduce_res *)r->res)->mask;
    om_tensor *x        = omi_saved_in(r, 0);
    om_tensor *d        = omi_new_like(x);
    if (!d) return omi_pending_status;
    om_view xv = omi_view(x), dv = omi_view(d);
    om_view yv = kept_view(omi_saved_out(r, 0), x->rank, mask, a->keepdims);
    om_view gv = kept_view(g, x->rank, mask, a->keepdims);
    omi_reduce_extreme_grad(&xv, &yv, &gv, mask, &dv);
    dx[0] = d;
    return OM_OK;
}

om_tensor *om_max(om_tensor *x, int n, const int64_t *axes, bool keepdims) {
    OMI_ENTER("om_max");
    if (!omi_args1(x) || !omi_need_dtype(x, OMI_TYPE_NUM)) return NULL;
    return reduce_op(OM_OP_MAX, OM_R_MAX, x, n, axes, keepdims, extreme_backward,
                     OM_SAVE_IN(0) | OM_SAVE_OUT(0));
}
om_tensor *om_min(om_tensor *x, int n, const int64_t *axes, bool keepdims) {
    OMI_ENTER("om_min");
    if (!omi_args1(x) || !omi_need_dtype(x, OMI_TYPE_NUM)) return NULL;
    return reduce_op(OM_OP_MIN, OM_R_MIN, x, n, axes, keepdims, extreme_backward,
                     OM_SAVE_IN(0) | OM_SAVE_OUT(0));
}

/* ---- argmax, argmin
 * ------------------------------------------------------------------------------------------ */

static om_tensor *arg_op(om_op op, bool max, om_tensor *x, int axis, bool keepdims) {
    int at;
    if (!omi_args1(x) || !omi_need_dtype(x, OMI_TYPE_NUM) || omi_axis(axis, x->rank, &at) != OM_OK)
        return NULL;
    if (x->shape[at] == 0)
        OM_FAIL_NULL(OM_ERR_SHAPE, "%s has no element along axis %d to choose from", OMI_T(x),
                     axis);
    int64_t shape[OM_MAX_RANK];
    int rank     = omi_reduced_shape(x->rank, x->shape, 1u << at, keepdims, shape);
    om_tensor *y = omi_new(OM_I64, rank, shape);
    if (!y) return NULL;
    om_view xv = omi_view(x), yv = omi_view(y);
    omi_argmax(max, &xv, at, &yv);
    om_argmax_raw a = {.axis = axis, .keepdims = keepdims};
    om_argmax_res r = {.axis = at};
    return omi_record1(op, &a, &r, 1, &x, y, NULL, 0);
}

om_tensor *om_argmax(om_tensor *x, int axis, bool keepdims) {
    OMI_ENTER("om_argmax");
    return arg_op(OM_OP_ARGMAX, true, x, axis, keepdims);
}
om_tensor *om_argmin(om_tensor *x, int axis, bool keepdims) {
    OMI_ENTER("om_argmin");
    return arg_op(OM_OP_ARGMIN, false, x, axis, keepdims);
}
