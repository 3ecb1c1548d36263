/*
 * topk.c -- TopK: the best of each line and where they stood (AR-8).
 */
#include "compute/reduce.h"

#include <string.h>

#include "graphops/part.h"

typedef struct topk_form {
    int64_t axis;
    bool largest;
    om_either k;
} topk_form;

om_status omi_parse_topk(om_nctx *c) {
    topk_form *f = omi_form(c, sizeof *f);
    if (!f) return OM_ERR_NOMEM;
    f->axis    = omi_int(c, "axis");
    f->largest = c->opset < 11 || omi_flag(c, "largest");
    OM_TRY(omi_axis_possible(c, f->axis, c->in[0]));
    return omi_either(c, "k", 1, &f->k);
}

static om_status read_topk(om_nctx *c, int *axis, int64_t *k) {
    const topk_form *f = c->form;
    om_ints n;
    OM_TRY(omi_norm_axis(c, f->axis, c->in[0]->rank, axis));
    OM_TRY(omi_either_ints(c, &f->k, &n));
    int64_t size = c->in[0]->shape[*axis];
    if (n.n != 1 || n.v[0] < 0 || n.v[0] > size)
        return omi_problem(c, OM_ERR_SHAPE,
                           "k must be one number from 0 to %lld, the size of axis %d",
                           (long long)size, *axis);
    *k = n.v[0];
    return OM_OK;
}

om_status omi_infer_topk(om_nctx *c) {
    int axis  = 0;
    int64_t k = 0, shape[OM_MAX_RANK];
    OM_TRY(read_topk(c, &axis, &k));
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

static om_status run_topk(const om_run_step *s, const om_exec *e) {
    const topk_args *p = s->args;
    om_view x = omi_bind(e, &p->x), v = omi_bind(e, &p->values), i = p->indices.v;
    i.data = p->scratch ? (char *)e->ws + p->scratch_at : e->ptr[p->indices.value];
    if (omi_view_numel(&v)) omi_topk(&x, p->axis, p->k, p->largest, &v, &i, e->ws);
    return OM_OK;
}

om_run_step *omi_sel_topk(om_nctx *c) {
    om_run_step *s = omi_step(c, run_topk, sizeof(topk_args));
    topk_args *a   = s ? s->args : NULL;
    if (!a || read_topk(c, &a->axis, &a->k) != OM_OK) return NULL;
    a->largest  = ((const topk_form *)c->form)->largest;
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
