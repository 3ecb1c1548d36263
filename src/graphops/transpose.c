/*
 * transpose.c -- Transpose: axes in another order.
 */
#include "graphops/part.h"

static om_status read_perm(om_nctx *c, int64_t *perm) {
    int rank      = c->in[0]->rank;
    uint32_t seen = 0;
    if (!omi_attr(c->node, "perm")) {
        for (int i = 0; i < rank; i++)
            perm[i] = rank - 1 - i;
        return OM_OK;
    }
    OM_TRY(omi_get_ints(c, "perm", (size_t)rank, 0, perm));
    for (int i = 0; i < rank; i++) {
        if (perm[i] < 0 || perm[i] >= rank || (seen >> perm[i] & 1))
            return omi_problem(c, OM_ERR_MALFORMED,
                               "attribute 'perm' is not a permutation of %d axes", rank);
        seen |= 1u << perm[i];
    }
    return OM_OK;
}

om_status omi_infer_transpose(om_nctx *c) {
    int64_t perm[OM_MAX_RANK], shape[OM_MAX_RANK];
    OM_TRY(omi_arity(c, 1, 1, 1));
    OM_TRY(omi_out_as_input(c));
    if (c->types_only) return OM_OK;
    OM_TRY(read_perm(c, perm));
    for (int i = 0; i < c->in[0]->rank; i++)
        shape[i] = c->in[0]->shape[perm[i]];
    return omi_out_shape(c, 0, c->in[0]->rank, shape);
}

om_step *omi_sel_transpose(om_nctx *c) {
    int64_t perm[OM_MAX_RANK];
    if (read_perm(c, perm) != OM_OK) return NULL;
    om_view x = omi_ref(c->in[0]).v, v = x;
    for (int i = 0; i < x.rank; i++) {
        v.shape[i]   = x.shape[perm[i]];
        v.strides[i] = x.strides[perm[i]];
    }
    return omi_step_part(c, &v, 0);
}
