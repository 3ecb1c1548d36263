/*
 * lower_norm.c -- LayerNorm and BatchNorm2d in eval mode (operators 1.6).
 */
#include "trace/lower.h"

static om_status lower_layer_norm(om_lowering *lw, const om_call *call, om_tvalue *const *in,
                                  om_tvalue **out) {
    const om_layer_norm_raw *raw = call->raw;
    om_tvalue *x = in[0], *w = call->n_in > 1 ? in[1] : NULL, *b = call->n_in > 2 ? in[2] : NULL;
    int k = (int)raw->n_axes, from = x->rank - k;
    om_xshape s = omi_lw_shape_of(x);
    int64_t dims[OM_MAX_RANK];
    om_extent unused;
    for (int i = 0; i < k; i++) {
        int ax  = from + i;
        dims[i] = x->e[ax].size;
        if (w && !omi_lw_unify(lw, 0, &x->e[ax], ax, 1, &w->e[i], i, false, &unused))
            return omi_lw_done();
        if (b && !omi_lw_unify(lw, 0, &x->e[ax], ax, 2, &b->e[i], i, false, &unused))
            return omi_lw_done();
        // Without a weight the node still needs a scale, a constant of this size.
        if (!w && !omi_lw_need_static(lw, 0, x, ax, "is normalised over")) return omi_lw_done();
    }
    om_tnode *n =
        omi_lw_node(lw, "LayerNormalization",
                    OMI_INS(x, w ? w : omi_lw_filled(lw, (om_dtype)x->dtype, k, dims, 1), b), 1);
    omi_lw_int(lw, n, "axis", -k);
    omi_lw_float(lw, n, "epsilon", raw->eps);
    omi_lw_int(lw, n, "stash_type", 1);
    out[0] = omi_lw_out(lw, n, 0, (om_dtype)x->dtype, &s);
    return omi_lw_done();
}
const om_lower_rule omi_lower_layer_norm = {.emit = lower_layer_norm};

static om_status lower_batch_norm2d(om_lowering *lw, const om_call *call, om_tvalue *const *in,
                                    om_tvalue **out) {
    const om_batch_norm2d_raw *raw = call->raw;
    om_tvalue *x                   = in[0];
    om_dtype t                     = (om_dtype)x->dtype;
    om_xshape s                    = omi_lw_shape_of(x);
    om_extent unused;
    if (raw->training)
        return omi_fail_trace(
            OM_TRACE_UNSUPPORTED_OPERATION,
            "BatchNorm2d of %s is in training mode: the statistics of the example "
            "would be frozen; switch it to eval (om_nn_train(m, false))",
            OMI_LT(lw, 0));
    for (uint32_t i = 1; i < 5; i++)
        if (in[i] && !omi_lw_unify(lw, 0, &x->e[1], 1, i, &in[i]->e[0], 0, false, &unused))
            return omi_lw_done();
    // Absent ones are written as constants of this size.
    if ((!in[1] || !in[2]) && !omi_lw_need_static(lw, 0, x, 1, "has no scale or no shift"))
        return omi_lw_done();
    int64_t c    = x->e[1].size;
    om_tvalue *w = in[1] ? in[1] : omi_lw_filled(lw, t, 1, &c, 1);
    om_tvalue *b = in[2] ? in[2] : omi_lw_filled(lw, t, 1, &c, 0);
    om_tnode *n  = omi_lw_node(lw, "BatchNormalization", OMI_INS(x, w, b, in[3], in[4]), 1);
    omi_lw_float(lw, n, "epsilon", raw->eps);
    omi_lw_int(lw, n, "training_mode", 0);
    out[0] = omi_lw_out(lw, n, 0, t, &s);
    return omi_lw_done();
}
const om_lower_rule omi_lower_batch_norm2d = {.emit = lower_batch_norm2d};
