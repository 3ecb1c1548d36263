/*
 * lower_index.c -- Slice, Select, IndexSelect, Split, TopK (operators 1.7).
 *
 * Integer arguments carry no evidence of where they came from, so on a symbolic axis only those
 * that do not depend on its size are taken: index 0, negative indices, the whole range.
 */
#include "trace/lower.h"

static om_status lower_slice(om_lowering *lw, const om_call *call, om_tvalue *const *in,
                             om_tvalue **out) {
    const om_slice_raw *raw = call->raw;
    const om_slice_res *res = call->res;
    om_tvalue *x            = in[0];
    om_xshape s             = omi_lw_shape_of(x);
    int64_t end             = raw->end;
    bool reversed = raw->step == -1 && raw->start == -1 && raw->end == OM_END; // the whole axis
    if (!reversed && !omi_lw_need_static(lw, 0, x, (int)res->axis, "is sliced in part"))
        return omi_lw_done();
    if (!reversed) s.e[res->axis] = omi_ext_static(res->count);
    if (end == OM_END && raw->step < 0) end = INT64_MIN; // ONNX's open end backwards
    out[0] = omi_lw_op(lw, "Slice",
                       OMI_INS(x, omi_lw_list(lw, 1, &raw->start), omi_lw_list(lw, 1, &end),
                               omi_lw_list(lw, 1, &raw->axis), omi_lw_list(lw, 1, &raw->step)),
                       (om_dtype)x->dtype, &s);
    return omi_lw_done();
}
const om_lower_rule omi_lower_slice = {.emit = lower_slice};

/* Raises when the index stands for the example's size. */
static bool select_ok(om_lowering *lw, const om_extent *e, int axis, int64_t raw) {
    if (raw <= 0) return true;
    if (raw == e->size - 1) {
        omi_fail_trace(
            OM_TRACE_SYMBOLIC_SHAPE,
            "index %lld is the last of axis %d of %s, symbolic '%s' (%lld in the example): "
            "write -1 for the last; a loop over the axis would be unrolled at this size",
            (long long)raw, axis, OMI_LT(lw, 0), OMI_EXT(e), (long long)e->size);
        return false;
    }
    omi_tr_note(lw->tr, "%s: index %lld of symbolic axis %d ('%s') needs a size above it",
                OMI_SITE(&lw->site), (long long)raw, axis, OMI_EXT(e));
    return true;
}

static om_status lower_select(om_lowering *lw, const om_call *call, om_tvalue *const *in,
                              om_tvalue **out) {
    const om_select_raw *raw = call->raw;
    const om_select_res *res = call->res;
    om_tvalue *x             = in[0];
    int ax                   = (int)res->axis;
    bool symbolic            = !omi_ext_is_static(&x->e[ax]);
    om_xshape s              = {0};
    if (symbolic && !select_ok(lw, &x->e[ax], ax, raw->index)) return omi_lw_done();
    for (int i = 0; i < x->rank; i++)
        if (i != ax) s.e[s.rank++] = x->e[i];
    om_tnode *n =
        omi_lw_node(lw, "Gather", OMI_INS(x, omi_lw_scalar(lw, OM_I64, (double)raw->index)), 1);
    omi_lw_int(lw, n, "axis", raw->axis);
    out[0]       = omi_lw_out(lw, n, 0, (om_dtype)x->dtype, &s);
    om_tselect t = {.v = x, .out = out[0], .axis = ax, .index = res->index};
    if (symbolic && out[0] && !OMI_PUSH(&lw->tr->selects, t)) return omi_lw_done();
    return omi_lw_done();
}
const om_lower_rule omi_lower_select = {.emit = lower_select};

static om_status lower_index_select(om_lowering *lw, const om_call *call, om_tvalue *const *in,
                                    om_tvalue **out) {
    const om_index_select_raw *raw = call->raw;
    const om_index_select_res *res = call->res;
    om_tvalue *x = in[0], *idx = in[1];
    om_xshape s = {0};
    if (!omi_ext_is_static(&x->e[res->axis]) && idx->kind == OM_TV_CONST)
        omi_tr_note(lw->tr, "%s: constant indices on symbolic axis %d ('%s') need sizes above them",
                    OMI_SITE(&lw->site), (int)res->axis, OMI_EXT(&x->e[res->axis]));
    for (int i = 0; i < x->rank; i++)
        if (i != res->axis)
            s.e[s.rank++] = x->e[i];
        else
            for (int k = 0; k < idx->rank; k++)
                s.e[s.rank++] = idx->e[k];
    om_tnode *n = omi_lw_node(lw, "Gather", OMI_INS(x, idx), 1);
    omi_lw_int(lw, n, "axis", raw->axis);
    out[0] = omi_lw_out(lw, n, 0, (om_dtype)x->dtype, &s);
    return omi_lw_done();
}
const om_lower_rule omi_lower_index_select = {.emit = lower_index_select};

static om_status lower_split(om_lowering *lw, const om_call *call, om_tvalue *const *in,
                             om_tvalue **out) {
    const om_split_raw *raw = call->raw;
    const om_split_res *res = call->res;
    om_tvalue *x            = in[0];
    if (!omi_lw_need_static(lw, 0, x, (int)res->axis, "is split into fixed sizes"))
        return omi_lw_done();
    om_tnode *n = omi_lw_node(lw, "Split", OMI_INS(x, omi_lw_list(lw, res->sizes.n, res->sizes.v)),
                              call->n_out);
    omi_lw_int(lw, n, "axis", raw->axis);
    for (uint32_t i = 0; i < call->n_out; i++) {
        om_xshape s    = omi_lw_shape_of(x);
        s.e[res->axis] = omi_ext_static(res->sizes.v[i]);
        out[i]         = omi_lw_out(lw, n, i, (om_dtype)x->dtype, &s);
    }
    return omi_lw_done();
}
const om_lower_rule omi_lower_split = {.emit = lower_split};

static om_status lower_top_k(om_lowering *lw, const om_call *call, om_tvalue *const *in,
                             om_tvalue **out) {
    const om_top_k_raw *raw = call->raw;
    const om_top_k_res *res = call->res;
    om_tvalue *x            = in[0];
    const om_extent *e      = &x->e[res->axis];
    om_xshape s             = omi_lw_shape_of(x);
    if (!omi_ext_is_static(e) && raw->k == e->size)
        return omi_fail_trace(
            OM_TRACE_SYMBOLIC_SHAPE,
            "k = %lld is the whole of axis %d of %s, symbolic '%s': it would be fixed at "
            "the example's size; use a k that does not come from the shape",
            (long long)raw->k, (int)res->axis, OMI_LT(lw, 0), OMI_EXT(e));
    if (!omi_ext_is_static(e))
        omi_tr_note(lw->tr, "%s: k = %lld on symbolic axis %d ('%s') needs a size of at least that",
                    OMI_SITE(&lw->site), (long long)raw->k, (int)res->axis, OMI_EXT(e));
    s.e[res->axis] = omi_ext_static(raw->k);
    om_tnode *n    = omi_lw_node(lw, "TopK", OMI_INS(x, omi_lw_list(lw, 1, &raw->k)), 2);
    omi_lw_int(lw, n, "axis", raw->axis);
    omi_lw_int(lw, n, "largest", !raw->smallest);
    omi_lw_int(lw, n, "sorted", 1);
    out[0] = omi_lw_out(lw, n, 0, (om_dtype)x->dtype, &s);
    out[1] = omi_lw_out(lw, n, 1, OM_I64, &s);
    return omi_lw_done();
}
const om_lower_rule omi_lower_top_k = {.emit = lower_top_k};
