/*
 * unary.c -- nodes on each element of one operand. Values by AR-7.5.
 */
#include "compute/elementwise.h"

#include "graphops/fuse.h"
#include "graphops/rows.h"

/* The form is the kind: a row's own, or the one that Gelu's attribute chooses. */
om_status omi_parse_unary(om_nctx *c) {
    static const char *const ways[] = {"none", "tanh"};
    om_unary_kind *k                = omi_form(c, sizeof *k);
    int way                         = 0;
    if (!k) return OM_ERR_NOMEM;
    *k = (om_unary_kind)c->def->arg;
    if (*k == OM_U_GELU) OM_TRY(omi_choice(c, "approximate", 2, ways, &way));
    if (way == 1) *k = OM_U_GELU_TANH;
    return OM_OK;
}

om_status omi_infer_unary(om_nctx *c) {
    return omi_out_like(c, 0, c->in[0]);
}

typedef struct unary_args {
    om_ref x, y;
    om_unary_kind k;
    bool fast;
} unary_args;

static om_status run_unary(const om_run_step *s, const om_exec *e) {
    const unary_args *a = s->args;
    om_view x = omi_bind(e, &a->x), y = omi_bind(e, &a->y);
    omi_unary(a->k, &x, &y, a->fast);
    return OM_OK;
}

static om_run_step *select_unary(om_nctx *c, bool fast) {
    om_run_step *s = omi_step(c, run_unary, sizeof(unary_args));
    unary_args *a  = s ? s->args : NULL;
    if (!a) return NULL;
    a->k        = *(const om_unary_kind *)c->form;
    a->x        = omi_ref(c->in[0]);
    a->y        = omi_ref(c->out[0]);
    a->fast     = fast;
    s->in_place = 1;
    return s;
}
om_run_step *omi_sel_unary(om_nctx *c) {
    return select_unary(c, false);
}
om_run_step *omi_sel_unary_fast(om_nctx *c) {
    return select_unary(c, true);
}

static bool fuse_unary(const om_nctx *c, om_fused *f, bool fast) {
    static const int64_t none[OM_MAX_RANK] = {0};
    om_ep_step s = {.kind = OM_EP_UNARY, .unary = *(const om_unary_kind *)c->form, .fast = fast};
    return omi_unary_supports(s.unary, OM_F32) &&
           omi_fuse_add(f, s, none, OM_NO_VALUE, OM_NO_VALUE);
}
bool omi_fuse_unary(const om_nctx *c, uint32_t via, om_fused *f, bool *failed) {
    (void)via, (void)failed;
    return fuse_unary(c, f, false);
}
bool omi_fuse_unary_fast(const om_nctx *c, uint32_t via, om_fused *f, bool *failed) {
    (void)via, (void)failed;
    return fuse_unary(c, f, true);
}
