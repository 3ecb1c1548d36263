/*
 * clip.c -- Clip: bounds are inputs; before opset 11 attributes.
 */
#include "compute/elementwise.h"

#include "graphops/rows.h"

om_status omi_infer_clip(om_nctx *c) {
    OM_TRY(omi_arity(c, 1, 3, 1));
    OM_TRY(omi_type(c, 0, OM_TY_F32 | OM_TY_F64 | OM_TY_INT | OM_TY_U8));
    int32_t t = c->in[0]->dtype;
    if (t && !omi_binary_supports(OM_B_MAX, (om_dtype)t))
        return omi_problem(c, OM_ERR_UNSUPPORTED, "there is no kernel for %s", omi_elem_name(t));
    OM_TRY(omi_same_type(c, 0, 1));
    OM_TRY(omi_same_type(c, 0, 2));
    OM_TRY(omi_out_type(c, 0, t));
    if (c->types_only) return OM_OK;
    for (uint32_t i = 1; i < c->n_in; i++)
        if (c->in[i] && c->in[i]->numel != 1)
            return omi_problem(c, OM_ERR_SHAPE, "the bound '%.60s' must have one element",
                               c->in[i]->name);
    return omi_out_like(c, 0, c->in[0]);
}

typedef struct clip_args {
    om_ref x, y;
    uint32_t lo, hi; /* OM_NO_VALUE: none, or the attribute */
    bool has_lo, has_hi;
    float lo_attr, hi_attr;
} clip_args;

static om_status run_clip(const om_step *s, const om_exec *e) {
    const clip_args *p = s->args;
    om_view x = omi_bind(e, &p->x), y = omi_bind(e, &p->y);
    const void *lo = p->has_lo ? &p->lo_attr : NULL, *hi = p->has_hi ? &p->hi_attr : NULL;
    if (p->lo != OM_NO_VALUE) lo = e->ptr[p->lo];
    if (p->hi != OM_NO_VALUE) hi = e->ptr[p->hi];
    omi_clip(&x, lo, hi, &y);
    return OM_OK;
}

om_step *omi_sel_clip(om_nctx *c) {
    om_step *s   = omi_step(c, run_clip, sizeof(clip_args));
    clip_args *a = s ? s->args : NULL;
    if (!a) return NULL;
    a->x  = omi_ref(c->in[0]);
    a->y  = omi_ref(c->out[0]);
    a->lo = c->n_in > 1 && c->in[1] ? c->in[1]->index : OM_NO_VALUE;
    a->hi = c->n_in > 2 && c->in[2] ? c->in[2]->index : OM_NO_VALUE;
    if (c->opset < 11 && c->in[0]->dtype == OM_F32) {
        a->has_lo = omi_attr(c->node, "min") != NULL;
        a->has_hi = omi_attr(c->node, "max") != NULL;
        if (omi_get_float(c, "min", 0, &a->lo_attr) != OM_OK ||
            omi_get_float(c, "max", 0, &a->hi_attr) != OM_OK)
            return NULL;
    }
    return s;
}
