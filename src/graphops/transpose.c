/*
 * transpose.c -- Transpose: axes in another order.
 */
#include "graphops/part.h"

typedef struct transpose_form {
    int n; /* 0: the axes in reverse order */
    int perm[OM_MAX_RANK];
} transpose_form;

om_status omi_parse_transpose(om_nctx *c) {
    const om_attr *a  = omi_given(c, "perm");
    transpose_form *f = omi_form(c, sizeof *f);
    uint32_t seen     = 0;
    int rank          = c->in[0]->rank;
    if (!f) return OM_ERR_NOMEM;
    if (!a) return OM_OK;
    for (size_t i = 0; i < a->n; i++) {
        int64_t p = a->ints[i];
        if (a->n > OM_MAX_RANK || p < 0 || p >= (int64_t)a->n || (seen >> p & 1))
            return omi_problem(c, OM_ERR_MALFORMED,
                               "attribute 'perm' is not a permutation of %zu axes", a->n);
        seen |= 1u << p;
        f->perm[i] = (int)p;
    }
    f->n = (int)a->n;
    if (rank >= 0 && f->n != rank)
        return omi_problem(c, OM_ERR_MALFORMED, "attribute 'perm' has %d entries for rank %d", f->n,
                           rank);
    return OM_OK;
}

static om_status read_perm(om_nctx *c, int *perm) {
    const transpose_form *f = c->form;
    int rank                = c->in[0]->rank;
    if (f->n && f->n != rank)
        return omi_problem(c, OM_ERR_MALFORMED, "attribute 'perm' has %d entries for rank %d", f->n,
                           rank);
    for (int i = 0; i < rank; i++)
        perm[i] = f->n ? f->perm[i] : rank - 1 - i;
    return OM_OK;
}

om_status omi_infer_transpose(om_nctx *c) {
    int perm[OM_MAX_RANK];
    int64_t shape[OM_MAX_RANK];
    OM_TRY(read_perm(c, perm));
    for (int i = 0; i < c->in[0]->rank; i++)
        shape[i] = c->in[0]->shape[perm[i]];
    return omi_out_shape(c, 0, c->in[0]->rank, shape);
}

om_run_step *omi_sel_transpose(om_nctx *c) {
    int perm[OM_MAX_RANK];
    if (read_perm(c, perm) != OM_OK) return NULL;
    om_view x = omi_ref(c->in[0]).v, v = x;
    for (int i = 0; i < x.rank; i++) {
        v.shape[i]   = x.shape[perm[i]];
        v.strides[i] = x.strides[perm[i]];
    }
    return omi_step_part(c, &v, 0);
}
