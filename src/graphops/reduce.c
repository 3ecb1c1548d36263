/*
 * reduce.c -- reductions over axes (AR-4).
 *
 * Axes are an input since opset 18 (ReduceSum: 13) and an attribute before; both forms are read.
 */
#include "compute/reduce.h"

#include "compute/shape_rules.h"
#include "graphops/rows.h"

typedef struct reduce_form {
    bool keep, noop;
    om_either axes;
} reduce_form;

om_status omi_parse_reduce(om_nctx *c) {
    reduce_form *f = omi_form(c, sizeof *f);
    om_ints axes;
    bool known = false;
    if (!f) return OM_ERR_NOMEM;
    f->keep = omi_flag(c, "keepdims");
    f->noop = omi_flag(c, "noop_with_empty_axes");
    OM_TRY(omi_either(c, "axes", 1, &f->axes));
    OM_TRY(omi_either_early(c, &f->axes, &axes, &known));
    for (int i = 0; known && i < axes.n; i++)
        OM_TRY(omi_axis_possible(c, axes.v[i], c->in[0]));
    return OM_OK;
}

static om_status reduce_axes(om_nctx *c, uint32_t *mask) {
    const reduce_form *f = c->form;
    om_ints axes;
    int rank = c->in[0]->rank;
    OM_TRY(omi_either_ints(c, &f->axes, &axes));
    *mask = 0;
    if (!axes.n) {
        if (!f->noop) *mask = (1u << rank) - 1;
        return OM_OK;
    }
    for (int i = 0; i < axes.n; i++) {
        int a = 0;
        OM_TRY(omi_norm_axis(c, axes.v[i], rank, &a));
        *mask |= 1u << a;
    }
    return OM_OK;
}

om_status omi_infer_reduce(om_nctx *c) {
    const om_pval *x = c->in[0];
    bool keep        = ((const reduce_form *)c->form)->keep;
    uint32_t mask    = 0;
    int64_t shape[OM_MAX_RANK];
    OM_TRY(reduce_axes(c, &mask));
    return omi_out_shape(c, 0, omi_reduced_shape(x->rank, x->shape, mask, keep, shape), shape);
}

typedef struct reduce_args {
    om_ref x, y;
    uint32_t mask;
    om_reduce_kind k;
    bool none; /* bools of an empty axis: what is neutral */
} reduce_args;

static om_status run_reduce(const om_run_step *s, const om_exec *e) {
    const reduce_args *p = s->args;
    om_view x = omi_bind(e, &p->x), y = omi_bind(e, &p->y);
    uint8_t neutral = p->k == OM_R_MIN;
    if (p->none)
        omi_fill(&y, &neutral);
    else
        omi_reduce(p->k, &x, p->mask, &y);
    return OM_OK;
}

om_run_step *omi_sel_reduce(om_nctx *c) {
    om_run_step *s = omi_step(c, run_reduce, sizeof(reduce_args));
    reduce_args *a = s ? s->args : NULL;
    if (!a || reduce_axes(c, &a->mask) != OM_OK) return NULL;
    a->x = omi_ref(c->in[0]);
    a->y = omi_ref(c->out[0]);
    a->k = (om_reduce_kind)c->def->arg;
    if (c->in[0]->dtype == OM_BOOL) { // any and all: the extremes of 0 and 1
        a->x.v.dtype = a->y.v.dtype = OM_U8;
        a->none                     = c->in[0]->numel == 0;
    }
    // Only noop_with_empty_axes leaves no axis of a ranked input: the node is then an identity (or
    // the square alone). A sum of one element is not one: it turns -0 into +0 (AR-4.1).
    if (!a->mask && c->in[0]->rank > 0 && a->k != OM_R_SUM_SQUARE) return omi_step_view(c, 0);
    return s;
}
