/*
 * topk.c -- TopK: the best of each line and where they stood (AR-8).
 */
#include "compute/reduce.h"

#include <string.h>

#include "graphops/part.h"

static om_status read_topk(om_nctx *c, int *axis, int64_t *k, bool *largest) {
    int64_t a = -1;
    om_ints n;
    OM_TRY(omi_get_int(c, "axis", -1, &a));
    OM_TRY(omi_norm_axis(c, a, c->in[0]->rank, axis));
    OM_TRY(omi_get_flag(c, "largest", true, largest));
    OM_TRY(omi_operand(c, 1, "k", 10, &n));
    int64_t size = c->in[0]->shape[*axis];
    if (!n.given || n.n != 1 || n.v[0] < 0 || n.v[0] > size)
        return omi_problem(c, OM_ERR_SHAPE,
                           "k must be one number from 0 to %lld, the size of axis %d",
                           (long long)size, *axis);
    *k = n.v[0];
    return OM_OK;
}

om_status omi_infer_topk(om_nctx *c) {
    int axis  = 0;
    int64_t k = 0, shape[OM_MAX_RANK];
    bool largest;
    OM_TRY(omi_arity(c, 1, 2, 2));
    OM_TRY(omi_type(c, 0, OM_TY_F32 | OM_TY_F64 | OM_TY_INT | OM_TY_U8));
    OM_TRY(omi_out_type(c, 0, c->in[0]->dtype));
    OM_TRY(omi_out_type(c, 1, OM_I64));
    if (c->types_only) return OM_OK;
    OM_TRY(read_topk(c, &axis, &k, &largest));
    memcpy(shape, c->in[0]->shape, sizeof shape);
    shape[axis] = k;
    OM_TRY(omi_out_shape(c, 0, c->in[0]->rank, shape));
    return omi_out_shape(c, 1, c->in[0]->rank, shape);
}

typedef struct topk_args {
    om_ref x, values, indices;
    int axis;
    int64_t k;
    bool largest, scratch; /* scratch: nobody asked for the indices */
    size_t scratch_at;
} topk_args;

static om_status run_topk(const om_step *s, const om_exec *e) {
    const topk_args *p = s->args;
    om_view x = omi_bind(e, &p->x), v = omi_bind(e, &p->values), i = p->indices.v;
    i.data = p->scratch ? (char *)e->ws + p->scratch_at : e->ptr[p->indices.value];
    if (omi_view_numel(&v)) omi_topk(&x, p->axis, p->k, p->largest, &v, &i, e->ws);
    return OM_OK;
}

om_step *omi_sel_topk(om_nctx *c) {
    om_step *s   = omi_step(c, run_topk, sizeof(topk_args));
    topk_args *a = s ? s->args : NULL;
    if (!a || read_topk(c, &a->axis, &a->k, &a->largest) != OM_OK) return NULL;
    a->x        = omi_ref(c->in[0]);
    a->values   = omi_ref(c->out[0]);
    s->ws_bytes = omi_topk_workspace(&a->x.v, a->axis, c->workers);
    a->scratch  = c->n_out < 2 || !c->out[1];
    om_pval idx = a->scratch ? *c->out[0] : *c->out[1];
    idx.dtype   = OM_I64;
    a->indices  = omi_ref(&idx);
    if (a->scratch) {
        a->scratch_at = (s->ws_bytes + 63) / 64 * 64;
        s->ws_bytes   = a->scratch_at + (size_t)idx.numel * sizeof(int64_t);
    }
    return s;
}
