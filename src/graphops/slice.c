/*
 * slice.c -- Slice: a part of each axis, by ONNX's clamping; bounds are inputs since opset 10.
 */
#include "compute/shape_rules.h"
#include "graphops/part.h"

typedef struct slice_form {
    om_either starts, ends, axes, steps;
} slice_form;

om_status omi_parse_slice(om_nctx *c) {
    slice_form *f = omi_form(c, sizeof *f);
    om_ints list;
    bool known = false;
    if (!f) return OM_ERR_NOMEM;
    OM_TRY(omi_either(c, "starts", 1, &f->starts));
    OM_TRY(omi_either(c, "ends", 2, &f->ends));
    OM_TRY(omi_either(c, "axes", 3, &f->axes));
    OM_TRY(omi_either(c, "steps", 4, &f->steps));
    OM_TRY(omi_either_early(c, &f->axes, &list, &known));
    for (int i = 0; known && i < list.n; i++)
        OM_TRY(omi_axis_possible(c, list.v[i], c->in[0]));
    OM_TRY(omi_either_early(c, &f->steps, &list, &known));
    for (int i = 0; known && i < list.n; i++)
        if (list.v[i] == 0) return omi_problem(c, OM_ERR_VALUE, "step %d is 0", i);
    return OM_OK;
}

static om_status read_slice(om_nctx *c, omi_cut *cut) {
    const slice_form *f = c->form;
    const om_pval *x    = c->in[0];
    om_ints starts, ends, axes, steps;
    uint32_t seen = 0;
    OM_TRY(omi_either_ints(c, &f->starts, &starts));
    OM_TRY(omi_either_ints(c, &f->ends, &ends));
    OM_TRY(omi_either_ints(c, &f->axes, &axes));
    OM_TRY(omi_either_ints(c, &f->steps, &steps));
    if (starts.n != ends.n || (axes.given && axes.n != starts.n) ||
        (steps.given && steps.n != starts.n) || starts.n > x->rank)
        return omi_problem(
            c, OM_ERR_SHAPE,
            "starts, ends, axes and steps have %d, %d, %d and %d entries for rank %d", starts.n,
            ends.n, axes.n, steps.n, x->rank);
    for (int i = 0; i < x->rank; i++)
        cut[i] = (omi_cut){0, x->shape[i], 1};
    for (int i = 0; i < starts.n; i++) {
        int a        = i;
        int64_t step = steps.given ? steps.v[i] : 1;
        if (axes.given) OM_TRY(omi_norm_axis(c, axes.v[i], x->rank, &a));
        if (seen >> a & 1) return omi_problem(c, OM_ERR_SHAPE, "axis %d is named twice", a);
        if (step == 0) return omi_problem(c, OM_ERR_VALUE, "the step of axis %d is 0", a);
        seen |= 1u << a;
        cut[a] = omi_rule_cut(x->shape[a], starts.v[i], ends.v[i], step);
    }
    return OM_OK;
}

om_status omi_infer_slice(om_nctx *c) {
    omi_cut cut[OM_MAX_RANK];
    int64_t shape[OM_MAX_RANK];
    OM_TRY(read_slice(c, cut));
    for (int i = 0; i < c->in[0]->rank; i++)
        shape[i] = cut[i].count;
    return omi_out_shape(c, 0, c->in[0]->rank, shape);
}

om_run_step *omi_sel_slice(om_nctx *c) {
    omi_cut cut[OM_MAX_RANK];
    int64_t offset = 0;
    om_view v      = omi_ref(c->in[0]).v;
    if (read_slice(c, cut) != OM_OK) return NULL;
    for (int i = 0; i < v.rank; i++) {
        offset += cut[i].start * v.strides[i];
        v.shape[i]   = cut[i].count;
        v.strides[i] = cut[i].step * v.strides[i];
    }
    return omi_step_part(c, &v, c->out[0]->numel ? offset : 0);
}
