/*
 * argmax.c -- ArgMax and ArgMin (AR-8).
 */
#include "compute/reduce.h"

#include "compute/shape_rules.h"
#include "graphops/rows.h"

typedef struct arg_form {
    int64_t axis;
    bool keep, last;
} arg_form;

om_status omi_parse_arg(om_nctx *c) {
    arg_form *f = omi_form(c, sizeof *f);
    if (!f) return OM_ERR_NOMEM;
    f->axis = omi_int(c, "axis");
    f->keep = omi_flag(c, "keepdims");
    f->last = omi_flag(c, "select_last_index");
    return omi_axis_possible(c, f->axis, c->in[0]);
}

om_status omi_infer_arg(om_nctx *c) {
    const arg_form *f = c->form;
    const om_pval *x  = c->in[0];
    int64_t shape[OM_MAX_RANK];
    int a = 0;
    OM_TRY(omi_norm_axis(c, f->axis, x->rank, &a));
    OM_TRY(
        omi_out_shape(c, 0, omi_reduced_shape(x->rank, x->shape, 1u << a, f->keep, shape), shape));
    if (x->shape[a] == 0 && c->out[0]->numel)
        return omi_problem(c, OM_ERR_SHAPE, "axis %d of '%.60s' is empty: there is no extreme", a,
                           x->name);
    return OM_OK;
}

typedef struct arg_args {
    om_ref x, y;
    int axis;
    bool max, last;
} arg_args;

static om_status run_arg(const om_run_step *s, const om_exec *e) {
    const arg_args *p = s->args;
    om_view x = omi_bind(e, &p->x), y = omi_bind(e, &p->y);
    int64_t n = x.shape[p->axis], *at = y.data, count = omi_view_numel(&y);
    if (!count) return OM_OK;
    if (!p->last) {
        omi_argmax(p->max, &x, p->axis, &y);
        return OM_OK;
    }
    // The last of equal elements is the first when the axis is read from its end.
    x.data = (char *)x.data + (n - 1) * x.strides[p->axis] * (int64_t)om_dtype_size(x.dtype);
    x.strides[p->axis] = -x.strides[p->axis];
    omi_argmax(p->max, &x, p->axis, &y);
    for (int64_t i = 0; i < count; i++)
        at[i] = n - 1 - at[i];
    return OM_OK;
}

om_run_step *omi_sel_arg(om_nctx *c) {
    const arg_form *f = c->form;
    om_run_step *s    = omi_step(c, run_arg, sizeof(arg_args));
    arg_args *a       = s ? s->args : NULL;
    if (!a || omi_norm_axis(c, f->axis, c->in[0]->rank, &a->axis) != OM_OK) return NULL;
    a->x    = omi_ref(c->in[0]);
    a->y    = omi_ref(c->out[0]);
    a->max  = c->def->arg == 1;
    a->last = f->last;
    return s;
}
