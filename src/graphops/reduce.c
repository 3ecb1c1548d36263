/*
 * reduce.c -- reductions over axes (AR-4).
 *
 * Axes are an input since opset 18 (ReduceSum: 13) and an attribute before; both forms are read.
 */
#include "compute/reduce.h"

#include "graphops/rows.h"

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
