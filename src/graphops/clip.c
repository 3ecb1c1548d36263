/*
 * clip.c -- Clip: bounds are inputs; before opset 11 attributes.
 */
#include "compute/elementwise.h"

#include <string.h>

#include "graphops/fuse.h"
#include "graphops/rows.h"

/* Bounds of the versions that have them as attributes, always both: ONNX gives them defaults. */
typedef struct clip_form {
    bool attrs;
    float lo, hi;
} clip_form;

om_status omi_parse_clip(om_nctx *c) {
    clip_form *f = omi_form(c, sizeof *f);
    if (!f) return OM_ERR_NOMEM;
    f->attrs = c->opset < 11;
    f->lo    = omi_float(c, "min");
    f->hi    = omi_float(c, "max");
    return OM_OK;
}

om_status omi_infer_clip(om_nctx *c) {
    for (uint32_t i = 1; i < c->n_in; i++)
        if (c->in[i] && c->in[i]->numel != 1)
            return omi_problem(c, OM_ERR_SHAPE, "the bound '%.60s' must have one element",
                               c->in[i]->name);
    return omi_out_like(c, 0, c->in[0]);
}

typedef struct clip_args {
    om_ref x, y;
    uint32_t lo, hi; /* OM_NO_VALUE: none, or the attribute */
    bool attrs;
    _Alignas(8) uint8_t lo_attr[8], hi_attr[8]; /* of the type of x */
} clip_args;

static om_status run_clip(const om_run_step *s, const om_exec *e) {
    const clip_args *p = s->args;
    om_view x = omi_bind(e, &p->x), y = omi_bind(e, &p->y);
    const void *lo = p->attrs ? p->lo_attr : NULL, *hi = p->attrs ? p->hi_attr : NULL;
    if (p->lo != OM_NO_VALUE) lo = e->ptr[p->lo];
    if (p->hi != OM_NO_VALUE) hi = e->ptr[p->hi];
    omi_clip(&x, lo, hi, &y);
    return OM_OK;
}

static void bound_bytes(int32_t dtype, float v, uint8_t *bytes) {
    omi_element_from_double((double)v, (om_dtype)dtype, bytes);
}

om_run_step *omi_sel_clip(om_nctx *c) {
    om_run_step *s = omi_step(c, run_clip, sizeof(clip_args));
    clip_args *a   = s ? s->args : NULL;
    if (!a) return NULL;
    a->x               = omi_ref(c->in[0]);
    a->y               = omi_ref(c->out[0]);
    a->lo              = omi_in(c, 1) ? c->in[1]->index : OM_NO_VALUE;
    a->hi              = omi_in(c, 2) ? c->in[2]->index : OM_NO_VALUE;
    const clip_form *f = c->form;
    a->attrs           = f->attrs;
    bound_bytes(c->in[0]->dtype, f->lo, a->lo_attr);
    bound_bytes(c->in[0]->dtype, f->hi, a->hi_attr);
    return s;
}

bool omi_fuse_clip(const om_nctx *c, uint32_t via, om_fused *f, bool *failed) {
    static const int64_t none[OM_MAX_RANK] = {0};
    const clip_form *form                  = c->form;
    const om_pval *lo = omi_in(c, 1), *hi = omi_in(c, 2);
    om_ep_step s = {.kind = OM_EP_CLIP};
    (void)via, (void)failed;
    if (form->attrs) s.a = &form->lo, s.b = &form->hi;
    return omi_fuse_add(f, s, none, lo ? lo->index : OM_NO_VALUE, hi ? hi->index : OM_NO_VALUE);
}
