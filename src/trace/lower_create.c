/*
 * lower_create.c -- operators that read only the shape of a traced tensor, so that symbolic lengths
 * survive (operators 1.1). With a static shape the result is a plain constant: no node.
 */
#include <math.h>

#include "trace/lower.h"

static om_status lower_full_like(om_lowering *lw, const om_call *call, om_tvalue *const *in,
                                 om_tvalue **out) {
    const om_full_like_raw *raw = call->raw;
    om_dtype t                  = (om_dtype)call->out[0]->dtype;
    if (omi_lw_is_static(in[0])) return OM_OK;
    int64_t rank = in[0]->rank;
    om_xshape s = omi_lw_shape_of(in[0]), list = omi_lw_static(1, &rank);
    om_tvalue *shape = omi_lw_op(lw, "Shape", OMI_INS(in[0]), OM_I64, &list);
    om_tnode *n      = omi_lw_node(lw, "ConstantOfShape", OMI_INS(shape), 1);
    omi_lw_tensor(lw, n, "value", t, raw->value);
    out[0] = omi_lw_out(lw, n, 0, t, &s);
    return omi_lw_done();
}
const om_lower_rule omi_lower_full_like = {.emit = lower_full_like, .may_fold = 1};

/* The size of one axis as an int64 list of one element. The last axis has no end: -1 + 1 is 0. */
static om_tvalue *axis_size(om_lowering *lw, om_tvalue *x, int64_t axis) {
    int64_t one = 1;
    om_xshape s = omi_lw_static(1, &one);
    om_tnode *n = omi_lw_node(lw, "Shape", OMI_INS(x), 1);
    omi_lw_int(lw, n, "start", axis);
    if (axis != -1) omi_lw_int(lw, n, "end", axis + 1);
    return omi_lw_out(lw, n, 0, OM_I64, &s);
}

static om_status lower_arange_like(om_lowering *lw, const om_call *call, om_tvalue *const *in,
                                   om_tvalue **out) {
    const om_arange_like_raw *raw = call->raw;
    const om_arange_like_res *res = call->res;
    om_extent e                   = in[0]->e[res->axis];
    int64_t zero                  = 0;
    if (omi_ext_is_static(&e)) return OM_OK;
    om_xshape s     = {.rank = 1, .e = {e}};
    om_tvalue *size = axis_size(lw, in[0], raw->axis);
    om_tvalue *limit =
        omi_lw_op(lw, "Squeeze", OMI_INS(size, omi_lw_list(lw, 1, &zero)), OM_I64, NULL);
    om_tvalue *start = omi_lw_scalar(lw, OM_I64, 0), *step = omi_lw_scalar(lw, OM_I64, 1);
    out[0] = omi_lw_op(lw, "Range", OMI_INS(start, limit, step), OM_I64, &s);
    return omi_lw_done();
}
const om_lower_rule omi_lower_arange_like = {.emit = lower_arange_like, .may_fold = 1};

/* Trilu copies, so -inf never meets 0. */
static om_status lower_causal_mask(om_lowering *lw, const om_call *call, om_tvalue *const *in,
                                   om_tvalue **out) {
    (void)call;
    om_extent q = in[0]->e[in[0]->rank - 2], k = in[1]->e[in[1]->rank - 2];
    int64_t two = 2;
    om_xshape s = {.rank = 2, .e = {q, k}}, list = omi_lw_static(1, &two);
    if (omi_ext_is_static(&q) && omi_ext_is_static(&k)) return OM_OK;
    // Of a static operand the size is a constant: it may be no value of the graph at all.
    om_tvalue *lq = omi_ext_is_static(&q) ? omi_lw_list(lw, 1, &q.size) : axis_size(lw, in[0], -2);
    om_tvalue *lk = omi_ext_is_static(&k) ? omi_lw_list(lw, 1, &k.size) : axis_size(lw, in[1], -2);
    om_tnode *cat = omi_lw_node(lw, "Concat", OMI_INS(lq, lk), 1);
    omi_lw_int(lw, cat, "axis", 0);
    om_tnode *fill =
        omi_lw_node(lw, "ConstantOfShape", OMI_INS(omi_lw_out(lw, cat, 0, OM_I64, &list)), 1);
    omi_lw_tensor(lw, fill, "value", OM_F32, -INFINITY);
    om_tnode *n = omi_lw_node(
        lw, "Trilu", OMI_INS(omi_lw_out(lw, fill, 0, OM_F32, &s), omi_lw_scalar(lw, OM_I64, 1)), 1);
    omi_lw_int(lw, n, "upper", 1);
    out[0] = omi_lw_out(lw, n, 0, OM_F32, &s);
    return omi_lw_done();
}
const om_lower_rule omi_lower_causal_mask = {
    .emit = lower_causal_mask, .may_fold = 1, .shape_only = 3};
