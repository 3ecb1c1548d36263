/*
 * softmax.c -- Softmax and LogSoftmax (AR-8).
 *
 * Before opset 13 the input is seen as a matrix split at the axis, which is only another view.
 */
#include "compute/reduce.h"

#include "graphops/rows.h"

typedef struct softmax_form {
    int64_t axis;
    bool matrix; /* split at the axis */
} softmax_form;

om_status omi_parse_softmax(om_nctx *c) {
    softmax_form *f  = omi_form(c, sizeof *f);
    const om_pval *x = c->in[0];
    if (!f) return OM_ERR_NOMEM;
    f->axis   = omi_int(c, "axis");
    f->matrix = c->opset < 13;
    if (x->rank == 0 || (f->matrix && f->axis == x->rank)) return OM_OK;
    return omi_axis_possible(c, f->axis, x);
}

/* The view the kernel works on, and its axis. */
static om_status softmax_view(om_nctx *c, om_view *v, int *axis) {
    const softmax_form *f = c->form;
    const om_pval *x      = c->in[0];
    int64_t a             = f->axis;
    *v                    = omi_ref(x).v;
    if (!f->matrix) {
        if (x->rank == 0) { // a rank 0 input is one row of one element
            v->rank     = 1;
            v->shape[0] = v->strides[0] = 1;
        }
        return omi_norm_axis(c, a, v->rank, axis);
    }
    if (a < -x->rank || a > x->rank)
        return omi_problem(c, OM_ERR_SHAPE, "axis %lld is outside rank %d", (long long)a, x->rank);
    if (a < 0) a += x->rank;
    int64_t rows = 1, n = 1;
    for (int i = 0; i < x->rank; i++) {
        if (i < a)
            rows *= x->shape[i];
        else
            n *= x->shape[i];
    }
    *v = (om_view){.dtype = v->dtype, .rank = 2, .shape = {rows, n}};
    omi_view_pack_strides(v);
    *axis = 1;
    return OM_OK;
}

om_status omi_infer_softmax(om_nctx *c) {
    om_view v;
    int axis = 0;
    OM_TRY(softmax_view(c, &v, &axis));
    return omi_out_like(c, 0, c->in[0]);
}

typedef struct softmax_args {
    om_ref x, y;
    int axis;
    bool log, fast;
} softmax_args;

static om_status run_softmax(const om_run_step *s, const om_exec *e) {
    const softmax_args *p = s->args;
    om_view x = omi_bind(e, &p->x), y = omi_bind(e, &p->y);
    if (omi_view_numel(&y)) omi_softmax(p->log, &x, p->axis, &y, e->ws, p->fast);
    return OM_OK;
}

static om_run_step *select_softmax(om_nctx *c, bool fast) {
    om_run_step *s  = omi_step(c, run_softmax, sizeof(softmax_args));
    softmax_args *a = s ? s->args : NULL;
    if (!a) return NULL;
    a->x = omi_ref(c->in[0]);
    a->y = omi_ref(c->out[0]);
    if (softmax_view(c, &a->x.v, &a->axis) != OM_OK) return NULL;
    a->y.v      = a->x.v;
    a->log      = c->def->arg == 1;
    a->fast     = fast;
    s->ws_bytes = omi_softmax_workspace(&a->x.v, a->axis, c->workers);
    return s;
}
om_run_step *omi_sel_softmax(om_nctx *c) {
    return select_softmax(c, false);
}
om_run_step *omi_sel_softmax_fast(om_nctx *c) {
    return select_softmax(c, true);
}
