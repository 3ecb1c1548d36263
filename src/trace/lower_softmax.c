/*
 * lower_softmax.c -- Softmax and LogSoftmax along one axis, the opset 13 meaning.
 */
#include "trace/lower.h"

static om_tvalue *softmax_node(om_lowering *lw, const char *type, om_tvalue *x, int64_t axis) {
    om_xshape s = omi_lw_shape_of(x);
    om_tnode *n = omi_lw_node(lw, type, OMI_INS(x), 1);
    omi_lw_int(lw, n, "axis", axis);
    return omi_lw_out(lw, n, 0, (om_dtype)x->dtype, &s);
}

static om_status lower_softmax(om_lowering *lw, const om_call *call, om_tvalue *const *in,
                               om_tvalue **out) {
    const om_softmax_raw *raw = call->raw;
    out[0]                    = softmax_node(lw, "Softmax", in[0], raw->axis);
    return omi_lw_done();
}
const om_lower_rule omi_lower_softmax = {.emit = lower_softmax};

static om_status lower_log_softmax(om_lowering *lw, const om_call *call, om_tvalue *const *in,
                                   om_tvalue **out) {
    const om_log_softmax_raw *raw = call->raw;
    out[0]                        = softmax_node(lw, "LogSoftmax", in[0], raw->axis);
    return omi_lw_done();
}
const om_lower_rule omi_lower_log_softmax = {.emit = lower_log_softmax};
