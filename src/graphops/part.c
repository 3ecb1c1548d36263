/*
 * part.c -- a strided part of a value as a view without work, or as a copy (part.h).
 */
#include "compute/move.h"

#include "graphops/part.h"

typedef struct copy_args {
    om_ref x, y;
    int64_t offset;
} copy_args;

static om_status run_copy(const om_run_step *s, const om_exec *e) {
    const copy_args *p = s->args;
    om_view x = omi_bind(e, &p->x), y = omi_bind(e, &p->y);
    if (p->offset) x.data = (char *)x.data + p->offset; // an empty value may have no address
    omi_copy(&x, &y);
    return OM_OK;
}

om_run_step *omi_step_part(om_nctx *c, const om_view *x, int64_t offset) {
    int64_t bytes = c->in[0]->numel ? offset * (int64_t)om_dtype_size(x->dtype) : 0;
    if (omi_view_contiguous(x)) return omi_step_view(c, bytes);
    om_run_step *s = omi_step(c, run_copy, sizeof(copy_args));
    copy_args *a   = s ? s->args : NULL;
    if (!a) return NULL;
    a->x      = (om_ref){.value = c->in[0]->index, .v = *x};
    a->y      = omi_ref(c->out[0]);
    a->offset = bytes;
    return s;
}
