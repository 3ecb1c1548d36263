/*
 * unary.c -- nodes on each element of one operand. Values by AR-7.5.
 */
#include "compute/elementwise.h"

#include "graphops/rows.h"

static om_status unary_kind(om_nctx *c, om_unary_kind *k) {
    static const char *const forms[] = {"none", "tanh"};
    *k                               = (om_unary_kind)c->def->arg;
    int form                         = 0;
    if (*k == OM_U_GELU) {
        OM_TRY(omi_get_choice(c, "approximate", 2, forms, &form));
        if (form == 1) *k = OM_U_GELU_TANH;
    }
    return OM_OK;
}

om_status omi_infer_unary(om_nctx *c) {
    om_unary_kind k;
    OM_TRY(omi_arity(c, 1, 1, 1));
    OM_TRY(unary_kind(c, &k));
    OM_TRY(omi_type(c, 0, OM_TY_ALL));
    int32_t t = c->in[0]->dtype;
    if (t && !omi_unary_supports(k, (om_dtype)t))
        return omi_problem(c, OM_ERR_UNSUPPORTED, "there is no kernel for %s", omi_elem_name(t));
    OM_TRY(omi_out_type(c, 0, t));
    return c->types_only ? OM_OK : omi_out_like(c, 0, c->in[0]);
}

typedef struct unary_args {
    om_ref x, y;
    om_unary_kind k;
    bool fast;
} unary_args;

static om_status run_unary(const om_step *s, const om_exec *e) {
    const unary_args *a = s->args;
    om_view x = omi_bind(e, &a->x), y = omi_bind(e, &a->y);
    omi_unary(a->k, &x, &y, a->fast);
    return OM_OK;
}

static om_step *select_unary(om_nctx *c, bool fast) {
    om_step *s    = omi_step(c, run_unary, sizeof(unary_args));
    unary_args *a = s ? s->args : NULL;
    if (!a || unary_kind(c, &a->k) != OM_OK) return NULL;
    a->x        = omi_ref(c->in[0]);
    a->y        = omi_ref(c->out[0]);
    a->fast     = fast;
    s->in_place = 1;
    return s;
}
om_step *omi_sel_unary(om_nctx *c) {
    return select_unary(c, false);
}
om_step *omi_sel_unary_fast(om_nctx *c) {
    return select_unary(c, true);
}
