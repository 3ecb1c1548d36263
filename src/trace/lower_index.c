/*
 * lower_index.c -- Slice, Select, IndexSelect, Split, TopK (operators 1.7).
 *
 * Integer arguments carry no evidence of where they came from, so on a symbolic axis only those
 * that do not depend on its size are taken: index 0, negative indices, the whole range.
 */
#include <stdio.h>
#include <string.h>

#include "trace/lower.h"

/* TD-20: on a symbolic axis a slice is the whole at every size only from 0 to an open end; to an
 * end that equals the size in the example it is taken for that, with a note. Else raised, with the
 * fix. */
static bool slice_is_whole(om_lowering *lw, const om_slice_raw *raw, const om_extent *e, int axis) {
    bool from_0 = raw->start == 0 && raw->step == 1;
    char end[24];
    if (from_0 && raw->end == OM_END) return true;
    if (from_0 && raw->end == e->size) {
        omi_tr_note(
            lw->tr, OM_NOTE_SLICE, &lw->site,
            "the slice of axis %d ('%s') ends at %lld, its size in the example, and is taken for the "
            "whole (OM_END would say so)",
            axis, OMI_EXT(e), (long long)raw->end);
        return true;
    }
    if (raw->end == OM_END)
        snprintf(end, sizeof end, "OM_END");
    else
        snprintf(end, sizeof end, "%lld", (long long)raw->end);
    omi_fail_trace(
        OM_TRACE_SYMBOLIC_SHAPE,
        "axis %d of %s is symbolic '%s' (%lld in the example) and is sliced in part, from %lld to %s by "
        "%lld: the graph would only fit the example; slice 0 to OM_END, select single elements (0, -1), or "
        "do it before the input",
        axis, OMI_LT(lw, 0), OMI_EXT(e), (long long)e->size, (long long)raw->start, end,
        (long long)raw->step);
    return false;
}

static om_status lower_slice(om_lowering *lw, const om_call *call, om_tvalue *const *in,
                             om_tvalue **out) {
    const om_slice_raw *raw = call->raw;
    const om_slice_res *res = call->res;
    om_tvalue *x            = in[0];
    om_xshape s             = omi_lw_shape_of(x);
    int64_t start = raw->start, end = raw->end, step = raw->step;
    const om_extent *e = &x->e[res->axis];
    bool symbolic      = !omi_ext_is_static(e);
    bool reversed = raw->step == -1 && raw->start == -1 && raw->end == OM_END; // the whole axis
    if (symbolic && !reversed) {
        if (slice_is_whole(lw, raw, e, (int)res->axis)) out[0] = omi_lw_alias(lw, x);
        return omi_lw_done();
    }
    if (!symbolic && res->count == e->size && raw->step > 0) {
        out[0] = omi_lw_alias(lw, x);
        return omi_lw_done();
    }
    if (!symbolic) s.e[res->axis] = omi_ext_static(res->count);
    if (end == OM_END && step < 0) end = INT64_MIN; // ONNX's open end backwards
    // Backwards from before the first element is nothing for NumPy, and the first element for ONNX.
    if (!symbolic && res->count == 0) start = end = 0, step = 1;
    out[0] = omi_lw_op(lw, "Slice",
                       OMI_INS(x, omi_lw_list(lw, 1, &start), omi_lw_list(lw, 1, &end),
                               omi_lw_list(lw, 1, &raw->axis), omi_lw_list(lw, 1, &step)),
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
    omi_tr_note(lw->tr, OM_NOTE_INDEX, &lw->site,
                "index %lld of symbolic axis %d ('%s') needs a size above it", (long long)raw, axis,
                OMI_EXT(e));
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
    om_tselect t = {.v = x, .out = out[0], .axis = ax, .index = raw->index};
    if (symbolic && out[0] && !OMI_PUSH(&lw->tr->selects, t)) return omi_lw_done();
    return omi_lw_done();
}
const om_lower_rule omi_lower_select = {.emit = lower_select};

/* Element i of a captured list of indices. */
static int64_t index_at(const om_tconst *c, int64_t i) {
    int32_t v32;
    int64_t v;
    memcpy(&v32, (const char *)c->buf->data + i * 4, sizeof v32);
    if (c->dtype == OM_I32) return v32;
    memcpy(&v, (const char *)c->buf->data + i * 8, sizeof v);
    return v;
}

/* Whether n indices name all of -1 to -size. Linear in n. */
static bool name_all_from_the_end(om_lowering *lw, const om_tconst *c, int64_t n, int64_t size) {
    int64_t seen = 0;
    if (n < size) return false;
    uint8_t *bits = omi_arena_alloc(&lw->tr->arena, (size_t)size / 8 + 1);
    for (int64_t i = 0; bits && i < n; i++) {
        int64_t k = -1 - index_at(c, i);
        if (k < 0 || k >= size || (bits[k / 8] >> (k % 8) & 1)) continue;
        bits[k / 8] |= (uint8_t)(1 << k % 8);
        seen++;
    }
    return seen == size;
}

bool omi_lw_check_indices(om_lowering *lw, uint32_t i, const om_tvalue *idx, const om_extent *e,
                          int axis) {
    if (omi_failed()) return false;
    if (omi_ext_is_static(e) || idx->kind != OM_TV_CONST) return true;
    const om_tconst *c = idx->c;
    int64_t n          = c->dtype == OM_I64 || c->dtype == OM_I32
                             ? (int64_t)(c->bytes / om_dtype_size((om_dtype)c->dtype))
                             : 0;
    const char *what   = NULL;
    for (int64_t k = 0; k < n && !what; k++)
        if (index_at(c, k) == e->size - 1 && e->size > 1) what = "name its last element";
    if (!what && name_all_from_the_end(lw, c, n, e->size)) what = "run through all of it";
    if (what) {
        omi_fail_trace(
            OM_TRACE_SYMBOLIC_SHAPE,
            "the constant indices %s %s: axis %d of %s, symbolic '%s' (%lld in the example), would be frozen "
            "at this size; write -1 for the last, make them with om_arange_like, or slice with step -1",
            OMI_LT(lw, i), what, axis, OMI_LT(lw, 0), OMI_EXT(e), (long long)e->size);
        return false;
    }
    omi_tr_note(lw->tr, OM_NOTE_INDEX, &lw->site,
                "constant indices on symbolic axis %d ('%s') need sizes above them", axis,
                OMI_EXT(e));
    return !omi_failed();
}

static om_status lower_index_select(om_lowering *lw, const om_call *call, om_tvalue *const *in,
                                    om_tvalue **out) {
    const om_index_select_raw *raw = call->raw;
    const om_index_select_res *res = call->res;
    om_tvalue *x = in[0], *idx = in[1];
    om_xshape s = {0};
    if (!omi_lw_check_indices(lw, 1, idx, &x->e[res->axis], (int)res->axis)) return omi_lw_done();
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
        omi_tr_note(lw->tr, OM_NOTE_INDEX, &lw->site,
                    "k = %lld on symbolic axis %d ('%s') needs a size of at least that",
                    (long long)raw->k, (int)res->axis, OMI_EXT(e));
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
