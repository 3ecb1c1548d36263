/*
 * reduce.c -- reductions over axes, ArgMax and ArgMin, Softmax and LogSoftmax (AR-4, AR-8).
 *
 * Axes are an input since opset 18 (ReduceSum: 13) and an attribute before; both forms are read.
 * Softmax before opset 13 sees its input as a matrix split at the axis, which is only another view.
 */
#include "compute/reduce.h"

#include "graphops/rows.h"

/* ---- Reduce* ------------------------------------------------------------------------------------
 */

static om_status reduce_axes(om_nctx *c, uint32_t *mask, bool *keep) {
    bool noop = false;
    int until = c->def->arg == OM_R_SUM ? 13 : 18;
    om_ints axes;
    OM_TRY(omi_get_flag(c, "keepdims", true, keep));
    OM_TRY(omi_get_flag(c, "noop_with_empty_axes", false, &noop));
    OM_TRY(omi_operand(c, 1, "axes", until, &axes));
    int rank = c->in[0]->rank;
    *mask    = 0;
    if (!axes.n) {
        if (!noop) *mask = (1u << rank) - 1;
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
    uint32_t mask = 0;
    bool keep     = true;
    OM_TRY(omi_arity(c, 1, 2, 1));
    // ONNX gives Max and Min uint8, the sums not.
    bool extreme = c->def->arg == OM_R_MAX || c->def->arg == OM_R_MIN;
    OM_TRY(omi_type(c, 0, OM_TY_F32 | OM_TY_F64 | OM_TY_INT | (extreme ? OM_TY_U8 : 0)));
    OM_TRY(omi_out_type(c, 0, c->in[0]->dtype));
    if (c->types_only) return OM_OK;
    const om_pval *x = c->in[0];
    OM_TRY(reduce_axes(c, &mask, &keep));
    int64_t shape[OM_MAX_RANK];
    int rank = 0;
    for (int i = 0; i < x->rank; i++) {
        if (!(mask >> i & 1))
            shape[rank++] = x->shape[i];
        else if (keep)
            shape[rank++] = 1;
    }
    return omi_out_shape(c, 0, rank, shape);
}

typedef struct reduce_args {
    om_ref x, y;
    uint32_t mask;
    om_reduce_kind k;
} reduce_args;

static om_status run_reduce(const om_step *s, const om_exec *e) {
    const reduce_args *p = s->args;
    om_view x = omi_bind(e, &p->x), y = omi_bind(e, &p->y);
    omi_reduce(p->k, &x, p->mask, &y);
    return OM_OK;
}

om_step *omi_sel_reduce(om_nctx *c) {
    bool keep;
    om_step *s     = omi_step(c, run_reduce, sizeof(reduce_args));
    reduce_args *a = s ? s->args : NULL;
    if (!a || reduce_axes(c, &a->mask, &keep) != OM_OK) return NULL;
    a->x = omi_ref(c->in[0]);
    a->y = omi_ref(c->out[0]);
    a->k = (om_reduce_kind)c->def->arg;
    // Only noop_with_empty_axes leaves no axis of a ranked input: the node is then an identity (or
    // the square alone). A sum of one element is not one: it turns -0 into +0 (AR-4.1).
    if (!a->mask && c->in[0]->rank > 0 && a->k != OM_R_SUM_SQUARE) return omi_step_view(c, 0);
    return s;
}

/* ---- ArgMax, ArgMin -----------------------------------------------------------------------------
 */

static om_status arg_attrs(om_nctx *c, int64_t *axis, bool *keep) {
    bool last = false;
    OM_TRY(omi_get_int(c, "axis", 0, axis));
    OM_TRY(omi_get_flag(c, "keepdims", true, keep));
    OM_TRY(omi_get_flag(c, "select_last_index", false, &last));
    if (last) return omi_problem(c, OM_ERR_UNSUPPORTED, "select_last_index = 1 has no kernel");
    return OM_OK;
}

om_status omi_infer_arg(om_nctx *c) {
    int64_t axis = 0;
    bool keep    = true;
    int a        = 0;
    OM_TRY(omi_arity(c, 1, 1, 1));
    OM_TRY(arg_attrs(c, &axis, &keep));
    OM_TRY(omi_type(c, 0, OM_TY_F32 | OM_TY_F64 | OM_TY_INT | OM_TY_U8));
    OM_TRY(omi_out_type(c, 0, OM_I64));
    if (c->types_only) return OM_OK;
    const om_pval *x = c->in[0];
    OM_TRY(omi_norm_axis(c, axis, x->rank, &a));
    int64_t shape[OM_MAX_RANK];
    int rank = 0;
    for (int i = 0; i < x->rank; i++) {
        if (i != a)
            shape[rank++] = x->shape[i];
        else if (keep)
            shape[rank++] = 1;
    }
    OM_TRY(omi_out_shape(c, 0, rank, shape));
    if (x->shape[a] == 0 && c->out[0]->numel)
        return omi_problem(c, OM_ERR_SHAPE, "axis %d of '%.60s' is empty: there is no extreme", a,
                           x->name);
    return OM_OK;
}

typedef struct arg_args {
    om_ref x, y;
    int axis;
    bool max;
} arg_args;

static om_status run_arg(const om_step *s, const om_exec *e) {
    const arg_args *p = s->args;
    om_view x = omi_bind(e, &p->x), y = omi_bind(e, &p->y);
    if (omi_view_numel(&y)) omi_argmax(p->max, &x, p->axis, &y);
    return OM_OK;
}

om_step *omi_sel_arg(om_nctx *c) {
    int64_t axis;
    bool keep;
    om_step *s  = omi_step(c, run_arg, sizeof(arg_args));
    arg_args *a = s ? s->args : NULL;
    if (!a || arg_attrs(c, &axis, &keep) != OM_OK ||
        omi_norm_axis(c, axis, c->in[0]->rank, &a->axis) != OM_OK)
        return NULL;
    a->x   = omi_ref(c->in[0]);
    a->y   = omi_ref(c->out[0]);
    a->max = c->def->arg == 1;
    return s;
}

/* ---- Softmax, LogSoftmax ------------------------------------------------------------------------
 */

/* The view the kernel works on, and its axis. */
static om_status softmax_view(om_nctx *c, om_view *v, int *axis) {
    int64_t a        = 0;
    const om_pval *x = c->in[0];
    OM_TRY(omi_get_int(c, "axis", c->opset < 13 ? 1 : -1, &a));
    *v = omi_ref(x).v;
    if (c->opset >= 13) {
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
    OM_TRY(omi_arity(c, 1, 1, 1));
    OM_TRY(omi_type(c, 0, OM_TY_F32));
    if (c->in[0]->dtype && c->in[0]->dtype != OM_F32)
        return omi_problem(c, OM_ERR_UNSUPPORTED, "there is no kernel for %s",
                           omi_elem_name(c->in[0]->dtype));
    OM_TRY(omi_out_type(c, 0, c->in[0]->dtype));
    if (c->types_only) return OM_OK;
    OM_TRY(softmax_view(c, &v, &axis));
    return omi_out_like(c, 0, c->in[0]);
}

typedef struct softmax_args {
    om_ref x, y;
    int axis;
    bool log, fast;
} softmax_args;

static om_status run_softmax(const om_step *s, const om_exec *e) {
    const softmax_args *p = s->args;
    om_view x = omi_bind(e, &p->x), y = omi_bind(e, &p->y);
    if (omi_view_numel(&y)) omi_softmax(p->log, &x, p->axis, &y, e->ws, p->fast);
    return OM_OK;
}

static om_step *select_softmax(om_nctx *c, bool fast) {
    om_step *s      = omi_step(c, run_softmax, sizeof(softmax_args));
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
om_step *omi_sel_softmax(om_nctx *c) {
    return select_softmax(c, false);
}
om_step *omi_sel_softmax_fast(om_nctx *c) {
    return select_softmax(c, true);
}
