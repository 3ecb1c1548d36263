/*
 * slice.c -- Slice: a part of each axis, by ONNX's clamping; bounds are inputs since opset 10.
 */
#include "base/checked.h"
#include "graphops/part.h"

typedef struct cut {
    int64_t start[OM_MAX_RANK], count[OM_MAX_RANK], step[OM_MAX_RANK];
} cut;

/* ONNX clamping: start to [0, n] (n-1 going down), end to [0, n] (-1 going down). */
static void cut_axis(int64_t n, int64_t start, int64_t end, int64_t step, cut *k, int a) {
    bool up = step > 0;
    if (start < 0) start += n;
    if (end < 0) end = end < -n ? (up ? 0 : -1) : end + n;
    start        = omi_max64(0, omi_min64(start, up ? n : n - 1));
    end          = omi_max64(up ? 0 : -1, omi_min64(end, up ? n : n - 1));
    uint64_t mag = up ? (uint64_t)step : 0 - (uint64_t)step;
    int64_t room = n == 0 ? 0 : up ? end - start : start - end;
    k->count[a]  = room <= 0 ? 0 : (int64_t)(((uint64_t)room - 1) / mag) + 1;
    k->start[a]  = k->count[a] ? start : 0;
    k->step[a]   = k->count[a] > 1 ? step : 1; // a step is below n when it is used
}

static om_status read_slice(om_nctx *c, cut *k) {
    om_ints starts, ends, axes, steps;
    const om_pval *x = c->in[0];
    uint32_t seen    = 0;
    OM_TRY(omi_operand(c, 1, "starts", 10, &starts));
    OM_TRY(omi_operand(c, 2, "ends", 10, &ends));
    OM_TRY(omi_operand(c, 3, "axes", 10, &axes));
    OM_TRY(omi_operand(c, 4, NULL, 0, &steps));
    if (!starts.given || !ends.given || starts.n != ends.n || (axes.given && axes.n != starts.n) ||
        (steps.given && steps.n != starts.n) || starts.n > x->rank)
        return omi_problem(
            c, OM_ERR_SHAPE,
            "starts, ends, axes and steps have %d, %d, %d and %d entries for rank %d", starts.n,
            ends.n, axes.n, steps.n, x->rank);
    for (int i = 0; i < x->rank; i++) {
        k->start[i] = 0;
        k->count[i] = x->shape[i];
        k->step[i]  = 1;
    }
    for (int i = 0; i < starts.n; i++) {
        int a        = i;
        int64_t step = steps.given ? steps.v[i] : 1;
        if (axes.given) OM_TRY(omi_norm_axis(c, axes.v[i], x->rank, &a));
        if (seen >> a & 1) return omi_problem(c, OM_ERR_SHAPE, "axis %d is named twice", a);
        if (step == 0) return omi_problem(c, OM_ERR_VALUE, "the step of axis %d is 0", a);
        seen |= 1u << a;
        cut_axis(x->shape[a], starts.v[i], ends.v[i], step, k, a);
    }
    return OM_OK;
}

om_status omi_infer_slice(om_nctx *c) {
    cut k;
    OM_TRY(omi_arity(c, 1, 5, 1));
    OM_TRY(omi_out_as_input(c));
    if (c->types_only) return OM_OK;
    OM_TRY(read_slice(c, &k));
    return omi_out_shape(c, 0, c->in[0]->rank, k.count);
}

om_step *omi_sel_slice(om_nctx *c) {
    cut k;
    int64_t offset = 0;
    om_view v      = omi_ref(c->in[0]).v;
    if (read_slice(c, &k) != OM_OK) return NULL;
    for (int i = 0; i < v.rank; i++) {
        offset += k.start[i] * v.strides[i];
        v.shape[i]   = k.count[i];
        v.strides[i] = k.step[i] * v.strides[i];
    }
    return omi_step_part(c, &v, c->out[0]->numel ? offset : 0);
}
