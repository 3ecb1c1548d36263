/*
 * gather.c -- Gather: rows of an axis by index; one known row of the leading axis is a view.
 */
#include "compute/move.h"

#include <string.h>

#include "graphops/part.h"

typedef struct gather_form {
    int64_t axis;
} gather_form;

om_status omi_parse_gather(om_nctx *c) {
    gather_form *f = omi_form(c, sizeof *f);
    if (!f) return OM_ERR_NOMEM;
    f->axis = omi_int(c, "axis");
    return omi_axis_possible(c, f->axis, c->in[0]);
}

static om_status gather_axis(om_nctx *c, int *axis) {
    return omi_norm_axis(c, ((const gather_form *)c->form)->axis, c->in[0]->rank, axis);
}

om_status omi_infer_gather(om_nctx *c) {
    int axis = 0, rank                  = 0;
    int64_t shape[2 * OM_MAX_RANK], bad = 0;
    OM_TRY(gather_axis(c, &axis));
    const om_pval *x = c->in[0], *idx = c->in[1];
    for (int i = 0; i < axis; i++)
        shape[rank++] = x->shape[i];
    for (int i = 0; i < idx->rank; i++)
        shape[rank++] = idx->shape[i];
    for (int i = axis + 1; i < x->rank; i++)
        shape[rank++] = x->shape[i];
    if (idx->known && idx->numel) {
        om_view v = omi_ref(idx).v;
        memcpy(&v.data, &idx->known, sizeof v.data);
        if (omi_index_bad(&v, x->shape[axis], &bad))
            return omi_problem(c, OM_ERR_VALUE,
                               "index %lld is outside axis %d of '%.60s', which is %lld",
                               (long long)bad, axis, x->name, (long long)x->shape[axis]);
    }
    return omi_out_shape(c, 0, rank, shape);
}

typedef struct gather_args {
    om_ref x, idx, y;
    int axis;
    bool check; /* not when the index was known */
} gather_args;

static om_status run_gather(const om_run_step *s, const om_exec *e) {
    const gather_args *p = s->args;
    om_view x = omi_bind(e, &p->x), idx = omi_bind(e, &p->idx), y = omi_bind(e, &p->y);
    int64_t bad = 0;
    if (p->check && omi_view_numel(&idx) && omi_index_bad(&idx, x.shape[p->axis], &bad))
        return omi_step_fail(s, e, OM_ERR_VALUE, "index %lld is outside axis %d, which is %lld",
                             (long long)bad, p->axis, (long long)x.shape[p->axis]);
    if (omi_view_numel(&y)) omi_gather(&x, &idx, p->axis, &y);
    return OM_OK;
}

/* One known row of the leading axis is a view. */
static bool one_row(const om_nctx *c, int axis, int64_t *offset) {
    const om_pval *x = c->in[0], *idx = c->in[1];
    if (axis != 0 || !idx->known || idx->numel != 1 || !x->numel) return false;
    int64_t i = omi_element_to_int(idx->known, (om_dtype)idx->dtype);
    if (i < 0) i += x->shape[0];
    *offset = i * (x->numel / x->shape[0]) * (int64_t)om_dtype_size((om_dtype)x->dtype);
    return true;
}

om_run_step *omi_sel_gather(om_nctx *c) {
    int axis       = 0;
    int64_t offset = 0;
    if (gather_axis(c, &axis) != OM_OK) return NULL;
    if (one_row(c, axis, &offset)) return omi_step_view(c, offset);
    om_run_step *s = omi_step(c, run_gather, sizeof(gather_args));
    gather_args *a = s ? s->args : NULL;
    if (!a) return NULL;
    a->x     = omi_ref(c->in[0]);
    a->idx   = omi_ref(c->in[1]);
    a->y     = omi_ref(c->out[0]);
    a->axis  = axis;
    a->check = c->in[1]->known == NULL;
    return s;
}
