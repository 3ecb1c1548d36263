/*
 * lower_reduce.c -- reductions: one node, so that no element count is written into the graph
 * (operators 1.5, O5).
 */
#include "trace/lower.h"

/* Extents after dropping the axes of mask, or keeping them as 1. */
static om_xshape reduced(const om_tvalue *x, uint64_t mask, bool keepdims) {
    om_xshape s = {0};
    for (int i = 0; i < x->rank; i++)
        if (!(mask >> i & 1))
            s.e[s.rank++] = x->e[i];
        else if (keepdims)
            s.e[s.rank++] = omi_ext_static(1);
    return s;
}

static om_tvalue *cast_to(om_lowering *lw, om_tvalue *x, om_dtype t) {
    if (omi_failed() || !x) return NULL;
    om_xshape s = omi_lw_shape_of(x);
    om_tnode *n = omi_lw_node(lw, "Cast", OMI_INS(x), 1);
    omi_lw_int(lw, n, "to", t);
    return omi_lw_out(lw, n, 0, t, &s);
}

/* All axes: no axes input, since an empty one means the same but reads as none. */
static om_tvalue *reduce(om_lowering *lw, const char *type, om_tvalue *x, const om_list *axes,
                         bool keepdims, uint64_t mask, om_dtype t) {
    if (omi_failed() || !x) return NULL;
    om_xshape s     = reduced(x, mask, keepdims);
    om_tvalue *list = axes->n ? omi_lw_list(lw, axes->n, axes->v) : NULL;
    om_tnode *n     = omi_lw_node(lw, type, OMI_INS(x, list), 1);
    omi_lw_int(lw, n, "keepdims", keepdims);
    return omi_lw_out(lw, n, 0, t, &s);
}

static om_status lower_sum(om_lowering *lw, const om_call *call, om_tvalue *const *in,
                           om_tvalue **out) {
    const om_sum_raw *raw = call->raw;
    const om_sum_res *res = call->res;
    om_dtype t            = (om_dtype)call->out[0]->dtype;
    om_tvalue *x = in[0]->dtype == t ? in[0] : cast_to(lw, in[0], t); // bool counts as int64
    out[0] = reduce(lw, "ReduceSum", x, &raw->axes, raw->keepdims != 0, (uint64_t)res->mask, t);
    return omi_lw_done();
}
const om_lower_rule omi_lower_sum = {.emit = lower_sum};

static om_status lower_mean(om_lowering *lw, const om_call *call, om_tvalue *const *in,
                            om_tvalue **out) {
    const om_mean_raw *raw = call->raw;
    const om_mean_res *res = call->res;
    out[0] = reduce(lw, "ReduceMean", in[0], &raw->axes, raw->keepdims != 0, (uint64_t)res->mask,
                    (om_dtype)call->out[0]->dtype);
    return omi_lw_done();
}
const om_lower_rule omi_lower_mean = {.emit = lower_mean};

static om_status lower_max(om_lowering *lw, const om_call *call, om_tvalue *const *in,
                           om_tvalue **out) {
    const om_max_raw *raw = call->raw;
    const om_max_res *res = call->res;
    out[0] = reduce(lw, "ReduceMax", in[0], &raw->axes, raw->keepdims != 0, (uint64_t)res->mask,
                    (om_dtype)in[0]->dtype);
    return omi_lw_done();
}
const om_lower_rule omi_lower_max = {.emit = lower_max};

static om_status lower_min(om_lowering *lw, const om_call *call, om_tvalue *const *in,
                           om_tvalue **out) {
    const om_min_raw *raw = call->raw;
    const om_min_res *res = call->res;
    out[0] = reduce(lw, "ReduceMin", in[0], &raw->axes, raw->keepdims != 0, (uint64_t)res->mask,
                    (om_dtype)in[0]->dtype);
    return omi_lw_done();
}
const om_lower_rule omi_lower_min = {.emit = lower_min};

static om_tvalue *arg(om_lowering *lw, const char *type, om_tvalue *x, int64_t raw_axis,
                      int64_t axis, bool keepdims) {
    om_xshape s = reduced(x, (uint64_t)1 << axis, keepdims);
    om_tnode *n = omi_lw_node(lw, type, OMI_INS(x), 1);
    omi_lw_int(lw, n, "axis", raw_axis);
    omi_lw_int(lw, n, "keepdims", keepdims);
    omi_lw_int(lw, n, "select_last_index", 0);
    return omi_lw_out(lw, n, 0, OM_I64, &s);
}

static om_status lower_argmax(om_lowering *lw, const om_call *call, om_tvalue *const *in,
                              om_tvalue **out) {
    const om_argmax_raw *raw = call->raw;
    const om_argmax_res *res = call->res;
    out[0]                   = arg(lw, "ArgMax", in[0], raw->axis, res->axis, raw->keepdims != 0);
    return omi_lw_done();
}
const om_lower_rule omi_lower_argmax = {.emit = lower_argmax};

static om_status lower_argmin(om_lowering *lw, const om_call *call, om_tvalue *const *in,
                              om_tvalue **out) {
    const om_argmin_raw *raw = call->raw;
    const om_argmin_res *res = call->res;
    out[0]                   = arg(lw, "ArgMin", in[0], raw->axis, res->axis, raw->keepdims != 0);
    return omi_lw_done();
}
const om_lower_rule omi_lower_argmin = {.emit = lower_argmin};
