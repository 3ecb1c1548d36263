/*
 * where.c -- Where: one of two operands by a condition, all three broadcast.
 */
#include "compute/elementwise.h"

#include "graphops/rows.h"

om_status omi_infer_where(om_nctx *c) {
    return omi_out_broadcast(c);
}

typedef struct where_args {
    om_ref c, a, b, y;
} where_args;

static om_status run_where(const om_run_step *s, const om_exec *e) {
    const where_args *p = s->args;
    om_view q = omi_bind(e, &p->c), a = omi_bind(e, &p->a), b = omi_bind(e, &p->b),
            y = omi_bind(e, &p->y);
    omi_where(&q, &a, &b, &y);
    return OM_OK;
}

om_run_step *omi_sel_where(om_nctx *c) {
    om_run_step *s = omi_step(c, run_where, sizeof(where_args));
    where_args *a  = s ? s->args : NULL;
    if (!a) return NULL;
    const om_pval *y = c->out[0];
    a->c             = omi_ref_as(c->in[0], y->rank, y->shape);
    a->a             = omi_ref_as(c->in[1], y->rank, y->shape);
    a->b             = omi_ref_as(c->in[2], y->rank, y->shape);
    a->y             = omi_ref(y);
    return s;
}
