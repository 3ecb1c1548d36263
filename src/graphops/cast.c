/*
 * cast.c -- Cast and CastLike: another element type (AR-9).
 */
#include "compute/elementwise.h"

#include "graphops/rows.h"

om_status omi_parse_cast(om_nctx *c) {
    int64_t to = omi_int(c, "to");
    if (!omi_dtype_computed((int32_t)to))
        return omi_problem(c, OM_ERR_UNSUPPORTED, "there is no cast to %s",
                           omi_elem_name(to > 0 && to < 64 ? (int32_t)to : -1));
    return omi_out_type(c, 0, (int32_t)to);
}

om_status omi_infer_cast(om_nctx *c) {
    return omi_out_like(c, 0, c->in[0]);
}

typedef struct cast_args {
    om_ref x, y;
} cast_args;

static om_status run_cast(const om_run_step *s, const om_exec *e) {
    const cast_args *p = s->args;
    om_view x = omi_bind(e, &p->x), y = omi_bind(e, &p->y);
    omi_cast(&x, &y);
    return OM_OK;
}

om_run_step *omi_sel_cast(om_nctx *c) {
    if (c->in[0]->dtype == c->out[0]->dtype) return omi_step_view(c, 0);
    om_run_step *s = omi_step(c, run_cast, sizeof(cast_args));
    cast_args *a   = s ? s->args : NULL;
    if (!a) return NULL;
    a->x = omi_ref(c->in[0]);
    a->y = omi_ref(c->out[0]);
    return s;
}
