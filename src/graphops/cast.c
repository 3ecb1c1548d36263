/*
 * cast.c -- Cast and CastLike: another element type (AR-9).
 */
#include "compute/elementwise.h"

#include "graphops/rows.h"

om_status omi_infer_cast(om_nctx *c) {
    bool like  = c->def->arg == 1;
    int64_t to = 0;
    OM_TRY(omi_arity(c, like ? 2 : 1, like ? 2 : 1, 1));
    OM_TRY(omi_type(c, 0, OM_TY_ALL));
    if (like)
        to = c->in[1]->dtype;
    else {
        if (!omi_attr(c->node, "to"))
            return omi_problem(c, OM_ERR_MALFORMED, "attribute 'to' is missing");
        OM_TRY(omi_get_int(c, "to", 0, &to));
    }
    if ((!like || to) && (to <= 0 || to > 31 || !(OM_TY_ALL >> to & 1)))
        return omi_problem(c, OM_ERR_UNSUPPORTED, "there is no cast to %s",
                           omi_elem_name(to > 0 && to < 64 ? (int32_t)to : -1));
    OM_TRY(omi_out_type(c, 0, (int32_t)to));
    return c->types_only ? OM_OK : omi_out_like(c, 0, c->in[0]);
}

typedef struct cast_args {
    om_ref x, y;
} cast_args;

static om_status run_cast(const om_step *s, const om_exec *e) {
    const cast_args *p = s->args;
    om_view x = omi_bind(e, &p->x), y = omi_bind(e, &p->y);
    omi_cast(&x, &y);
    return OM_OK;
}

om_step *omi_sel_cast(om_nctx *c) {
    if (c->in[0]->dtype == c->out[0]->dtype) return omi_step_view(c, 0);
    om_step *s   = omi_step(c, run_cast, sizeof(cast_args));
    cast_args *a = s ? s->args : NULL;
    if (!a) return NULL;
    a->x = omi_ref(c->in[0]);
    a->y = omi_ref(c->out[0]);
    return s;
}
