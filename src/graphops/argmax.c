/*
 * argmax.c -- ArgMax and ArgMin (AR-8).
 */
#include "compute/reduce.h"

#include "graphops/rows.h"

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
