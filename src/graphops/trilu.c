/*
 * trilu.c -- Trilu: the upper or lower triangle of matrices.
 */
#include "compute/move.h"

#include "base/checked.h"
#include "graphops/part.h"

typedef struct trilu_form {
    bool upper;
    om_either k;
} trilu_form;

om_status omi_parse_trilu(om_nctx *c) {
    trilu_form *f = omi_form(c, sizeof *f);
    if (!f) return OM_ERR_NOMEM;
    f->upper = omi_flag(c, "upper");
    return omi_either(c, "", 1, &f->k);
}

om_status omi_infer_trilu(om_nctx *c) {
    om_ints k;
    OM_TRY(omi_either_ints(c, &((const trilu_form *)c->form)->k, &k));
    if (c->in[0]->rank < 2 || (k.given && k.n != 1))
        return omi_problem(c, OM_ERR_SHAPE, "'%.60s' must be matrices and k one number",
                           c->in[0]->name);
    return omi_out_like(c, 0, c->in[0]);
}

typedef struct trilu_args {
    om_ref x, y;
    bool upper;
    int64_t k;
} trilu_args;

static om_status run_trilu(const om_run_step *s, const om_exec *e) {
    const trilu_args *p = s->args;
    om_view x = omi_bind(e, &p->x), y = omi_bind(e, &p->y);
    if (omi_view_numel(&y)) omi_trilu(&x, p->upper, p->k, &y);
    return OM_OK;
}

om_run_step *omi_sel_trilu(om_nctx *c) {
    const trilu_form *f = c->form;
    om_ints k;
    om_run_step *s = omi_step(c, run_trilu, sizeof(trilu_args));
    trilu_args *a  = s ? s->args : NULL;
    if (!a || omi_either_ints(c, &f->k, &k) != OM_OK) return NULL;
    a->upper = f->upper;
    a->x     = omi_ref(c->in[0]);
    a->y     = omi_ref(c->out[0]);
    a->k     = k.given ? omi_max64(-OM_VALUE_LIMIT, omi_min64(k.v[0], OM_VALUE_LIMIT)) : 0;
    return s;
}
