/*
 * softmax.c -- softmax and log-softmax along one axis (AR-4.4, AR-8).
 *
 * One node each. The gradient reads the output only, so the input's memory may go or change.
 *
 * Needs: op.h, compute/reduce.
 */
#include "base/thread.h"
#include "compute/reduce.h"
#include "ops/op.h"

static om_status softmax_backward(const om_record *r, om_tensor *const *dy, om_tensor **dx) {
    if (!dy[0] || !omi_needs(r, 0)) return OM_OK;
    om_tensor *y = omi_saved_out(r, 0), *d = omi_new_like(y);
    if (!d) return omi_pending_status;
    om_view yv = omi_view(y), gv = omi_view(dy[0]), dv = omi_view(d);
    omi_softmax_grad(r->op == OM_OP_LOG_SOFTMAX, &yv, &gv,
                     (int)((const om_softmax_res *)r->res)->axis, &dv);
    dx[0] = d;
    return OM_OK;
}

static om_tensor *softmax_op(om_op op, om_tensor *x, int axis) {
    int at;
    if (!omi_args1(x) || !omi_need_dtype(x, OMI_TYPE_F32) || omi_axis(axis, x->rank, &at) != OM_OK)
        return NULL;
    om_tensor *y = omi_new_like(x);
    if (!y) return NULL;
    om_view xv = omi_view(x), yv = omi_view(y);
    omi_work w;
    if (!omi_work_get(&w, omi_softmax_workspace(&xv, at, omi_workers()))) return NULL;
    omi_softmax(op == OM_OP_LOG_SOFTMAX, &xv, at, &yv, w.data, false);
    omi_work_put(&w);
    om_softmax_raw a = {.axis = axis};
    om_softmax_res r = {.axis = at};
    return omi_record1(op, &a, &r, 1, &x, y, softmax_backward, OM_SAVE_OUT(0));
}

om_tensor *om_softmax(om_tensor *x, int axis) {
    OMI_ENTER("om_softmax");
    return softmax_op(OM_OP_SOFTMAX, x, axis);
}
om_tensor *om_log_softmax(om_tensor *x, int axis) {
    OMI_ENTER("om_log_softmax");
    return softmax_op(OM_OP_LOG_SOFTMAX, x, axis);
}
