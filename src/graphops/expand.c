/*
 * expand.c -- Expand: numpy broadcasting to a shape, both ways.
 */
#include "graphops/part.h"

om_status omi_infer_expand(om_nctx *c) {
    om_ints t;
    OM_TRY(omi_input_ints(c, 1, &t));
    if (t.n > OM_MAX_RANK)
        return omi_problem(c, OM_ERR_UNSUPPORTED, "the target has rank %d; up to %d are computed",
                           t.n, OM_MAX_RANK);
    om_pval want     = {.name = "target", .rank = t.n};
    om_pval *both[2] = {c->in[0], &want};
    int rank         = 0;
    int64_t shape[OM_MAX_RANK];
    for (int i = 0; i < t.n; i++) {
        if (t.v[i] < 0)
            return omi_problem(c, OM_ERR_SHAPE, "target %d is %lld", i, (long long)t.v[i]);
        want.shape[i] = t.v[i];
    }
    OM_TRY(omi_broadcast(c, 2, both, &rank, shape));
    return omi_out_shape(c, 0, rank, shape);
}

om_run_step *omi_sel_expand(om_nctx *c) {
    const om_pval *y = c->out[0];
    if (y->numel == c->in[0]->numel) return omi_step_view(c, 0);
    om_view v = omi_ref_as(c->in[0], y->rank, y->shape).v;
    return omi_step_part(c, &v, 0);
}
