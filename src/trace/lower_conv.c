/*
 * lower_conv.c -- Conv2d: batch carried, channels agree with the weight, space is a window
 * (operators 1.8).
 */
#include "trace/lower.h"

static om_status lower_conv2d(om_lowering *lw, const om_call *call, om_tvalue *const *in,
                              om_tvalue **out) {
    const om_conv2d_raw *raw = call->raw;
    const om_tensor *y       = call->out[0];
    om_tvalue *x = in[0], *w = in[1], *b = call->n_in > 2 ? in[2] : NULL;
    om_xshape s = {.rank = 4, .e = {x->e[0], w->e[0]}};
    int64_t kernel[2];
    om_extent channels;
    if (!omi_lw_need_static(lw, 0, x, 1, "meets the channels of a weight")) return omi_lw_done();
    if (raw->groups == 1 && !omi_lw_unify(lw, 0, &x->e[1], 1, 1, &w->e[1], 1, false, &channels))
        return omi_lw_done();
    if (b && !omi_lw_unify(lw, 1, &w->e[0], 0, 2, &b->e[0], 0, false, &s.e[1]))
        return omi_lw_done();
    for (int i = 0; i < 2; i++) {
        if (!omi_lw_need_static(lw, 1, w, 2 + i, "is the size of a kernel")) return omi_lw_done();
        kernel[i] = w->e[2 + i].size;
        if (!omi_ext_window(lw->tr->atoms, &x->e[2 + i], kernel[i], raw->stride.v[i],
                            raw->pads.v[i], raw->pads.v[2 + i], raw->dilation.v[i], false,
                            y->shape[2 + i], &s.e[2 + i]))
            return omi_lw_done();
    }
    om_tnode *n = omi_lw_node(lw, "Conv", OMI_INS(x, w, b), 1);
    omi_lw_ints(lw, n, "kernel_shape", 2, kernel);
    omi_lw_ints(lw, n, "strides", 2, raw->stride.v);
    omi_lw_ints(lw, n, "pads", 4, raw->pads.v);
    omi_lw_ints(lw, n, "dilations", 2, raw->dilation.v);
    omi_lw_int(lw, n, "group", raw->groups);
    out[0] = omi_lw_out(lw, n, 0, (om_dtype)y->dtype, &s);
    return omi_lw_done();
}
const om_lower_rule omi_lower_conv2d = {.emit = lower_conv2d};
