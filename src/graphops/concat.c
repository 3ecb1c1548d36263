/*
 * concat.c -- Concat: values one behind the other along an axis.
 */
#include "compute/move.h"

#include <string.h>

#include "base/checked.h"
#include "graphops/part.h"

typedef struct concat_form {
    int64_t axis;
} concat_form;

om_status omi_parse_concat(om_nctx *c) {
    concat_form *f = omi_form(c, sizeof *f);
    if (!f) return OM_ERR_NOMEM;
    f->axis = omi_int(c, "axis");
    return omi_axis_possible(c, f->axis, c->in[0]);
}

static om_status concat_axis(om_nctx *c, int *axis) {
    return omi_norm_axis(c, ((const concat_form *)c->form)->axis, c->in[0]->rank, axis);
}

om_status omi_infer_concat(om_nctx *c) {
    const om_pval *x = c->in[0];
    int axis         = 0;
    int64_t shape[OM_MAX_RANK];
    OM_TRY(concat_axis(c, &axis));
    memcpy(shape, x->shape, sizeof shape);
    for (uint32_t i = 1; i < c->n_in; i++) {
        const om_pval *v = c->in[i];
        bool fits        = v->rank == x->rank;
        for (int k = 0; fits && k < v->rank; k++)
            fits = k == axis || v->shape[k] == x->shape[k];
        if (!fits)
            return omi_problem(c, OM_ERR_SHAPE, "'%.60s' and '%.60s' differ outside axis %d",
                               x->name, v->name, axis);
        if (!omi_add_i64(shape[axis], v->shape[axis], &shape[axis]))
            return omi_problem(c, OM_ERR_LIMIT, "the sizes are too large");
    }
    return omi_out_shape(c, 0, x->rank, shape);
}

typedef struct concat_args {
    uint32_t n;
    om_ref y; /* strides of the whole output */
    int axis;
    om_ref in[];
} concat_args;

static om_status run_concat(const om_run_step *s, const om_exec *e) {
    const concat_args *p = s->args;
    om_view y            = omi_bind(e, &p->y);
    char *to             = y.data;
    for (uint32_t i = 0; i < p->n; i++) {
        om_view x        = omi_bind(e, &p->in[i]);
        y.data           = to;
        y.shape[p->axis] = x.shape[p->axis];
        if (omi_view_numel(&x)) omi_copy(&x, &y);
        to += x.shape[p->axis] * y.strides[p->axis] * (int64_t)om_dtype_size(y.dtype);
    }
    return OM_OK;
}

om_run_step *omi_sel_concat(om_nctx *c) {
    if (c->n_in == 1) return omi_step_view(c, 0);
    om_run_step *s = omi_step(c, run_concat, sizeof(concat_args) + c->n_in * sizeof(om_ref));
    concat_args *a = s ? s->args : NULL;
    if (!a || concat_axis(c, &a->axis) != OM_OK) return NULL;
    a->n = c->n_in;
    a->y = omi_ref(c->out[0]);
    for (uint32_t i = 0; i < c->n_in; i++)
        a->in[i] = omi_ref(c->in[i]);
    return s;
}
