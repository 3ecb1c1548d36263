/*
 * binary.c -- nodes on two and on n operands with numpy broadcasting (AR-7.5). A zero integer
 * divisor fails the run (AR-9.1).
 */
#include "compute/elementwise.h"

#include "graphops/fuse.h"
#include "graphops/rows.h"

om_status omi_infer_binary(om_nctx *c) {
    return omi_out_broadcast(c);
}

typedef struct binary_args {
    om_ref a, b, y;
    om_binary_kind k;
    bool divides; /* integers: look for zero first */
} binary_args;

static om_status zero_divisor(const om_run_step *s, const om_exec *e) {
    return omi_step_fail(s, e, OM_ERR_VALUE, "an integer divisor is zero");
}

static om_status run_binary(const om_run_step *s, const om_exec *e) {
    const binary_args *p = s->args;
    om_view a = omi_bind(e, &p->a), b = omi_bind(e, &p->b), y = omi_bind(e, &p->y);
    if (p->divides && omi_view_numel(&y) && omi_any_zero(&b)) return zero_divisor(s, e);
    omi_binary(p->k, &a, &b, &y);
    return OM_OK;
}

om_run_step *omi_sel_binary(om_nctx *c) {
    om_run_step *s = omi_step(c, run_binary, sizeof(binary_args));
    binary_args *a = s ? s->args : NULL;
    if (!a) return NULL;
    const om_pval *y = c->out[0];
    a->k             = (om_binary_kind)c->def->arg;
    a->a             = omi_ref_as(c->in[0], y->rank, y->shape);
    a->b             = omi_ref_as(c->in[1], y->rank, y->shape);
    a->y             = omi_ref(y);
    a->divides       = a->k == OM_B_DIV && omi_type_bit((om_dtype)y->dtype) & OM_SET_INTEGER;
    // The layout only shares bytes of equal size, so a broadcast operand never qualifies.
    if (y->dtype == c->in[0]->dtype) s->in_place = 3;
    return s;
}

/* Sums and products are symmetric but for which NaN is kept, and NaNs are one where they are seen.
 */
bool omi_fuse_binary(const om_nctx *c, uint32_t via, om_fused *f, bool *failed) {
    (void)failed;
    const om_pval *other = c->in[1 - via];
    om_view v            = omi_ref_as(other, f->rank, f->shape).v;
    if (c->def->arg != OM_B_ADD && c->def->arg != OM_B_MUL) return false;
    om_ep_step s = {.kind = c->def->arg == OM_B_ADD ? OM_EP_ADD : OM_EP_MUL};
    return omi_fuse_add(f, s, v.strides, other->index, OM_NO_VALUE);
}

/* ---- n operands: a left fold (AR-7.5) -------------------------------------------------------- */

/* arg: MAX, MIN, ADD for Sum, DIV for Mean. */
static om_binary_kind fold_kind(const om_nctx *c) {
    return c->def->arg == OM_B_DIV ? OM_B_ADD : (om_binary_kind)c->def->arg;
}

om_status omi_infer_many(om_nctx *c) {
    return omi_out_broadcast(c);
}

typedef struct many_args {
    uint32_t n;
    om_binary_kind k;
    bool mean;
    om_ref y;
    om_ref in[];
} many_args;

static om_status run_many(const om_run_step *s, const om_exec *e) {
    const many_args *p = s->args;
    om_view y = omi_bind(e, &p->y), a = omi_bind(e, &p->in[0]);
    if (p->n == 1 && !p->mean) {
        omi_copy(&a, &y);
        return OM_OK;
    }
    for (uint32_t i = 1; i < p->n; i++) {
        om_view b = omi_bind(e, &p->in[i]);
        omi_binary(p->k, &a, &b, &y);
        a = y;
    }
    if (p->mean) {
        float n   = (float)p->n;
        om_view d = {.data = &n, .dtype = OM_F32};
        om_view b = omi_view_broadcast(&d, y.rank, y.shape);
        omi_binary(OM_B_DIV, &a, &b, &y);
    }
    return OM_OK;
}

om_run_step *omi_sel_many(om_nctx *c) {
    om_run_step *s = omi_step(c, run_many, sizeof(many_args) + c->n_in * sizeof(om_ref));
    many_args *a   = s ? s->args : NULL;
    if (!a) return NULL;
    a->n    = c->n_in;
    a->k    = fold_kind(c);
    a->mean = c->def->arg == OM_B_DIV;
    a->y    = omi_ref(c->out[0]);
    for (uint32_t i = 0; i < c->n_in; i++)
        a->in[i] = omi_ref_as(c->in[i], c->out[0]->rank, c->out[0]->shape);
    return s;
}
