/*
 * dropout.c -- Dropout for inference: the input, and a mask of ones where it is asked for.
 */
#include "compute/move.h"

#include <string.h>

#include "graphops/rows.h"

typedef struct dropout_form {
    _Alignas(8)
        uint8_t mask[8]; /* an element of the mask: what ONNX Runtime answers for either version */
} dropout_form;

static om_status refuse_training(om_nctx *c) {
    const om_pval *train = omi_in(c, 2);
    if (train && train->known && train->numel == 1 && *(const uint8_t *)train->known)
        return omi_problem(c, OM_ERR_UNSUPPORTED, "training_mode = true is not inference");
    return OM_OK;
}

om_status omi_parse_dropout(om_nctx *c) {
    dropout_form *f = omi_form(c, sizeof *f);
    if (!f) return OM_ERR_NOMEM;
    if (c->opset >= 12) f->mask[0] = 1;
    return refuse_training(c);
}

om_status omi_infer_dropout(om_nctx *c) {
    const om_pval *train = omi_in(c, 2);
    if (train && train->numel != 1)
        return omi_problem(c, OM_ERR_SHAPE, "training_mode '%.60s' must have one element",
                           train->name);
    if (train && !train->known)
        return omi_problem(c, OM_ERR_UNSUPPORTED,
                           "training_mode '%.60s' must be known before the run", train->name);
    OM_TRY(refuse_training(c));
    OM_TRY(omi_out_like(c, 0, c->in[0]));
    return omi_out_like(c, 1, c->in[0]);
}

typedef struct dropout_args {
    om_ref x, y, mask;
    _Alignas(8) uint8_t element[8]; /* of the mask */
} dropout_args;

static om_status run_dropout(const om_run_step *s, const om_exec *e) {
    const dropout_args *p = s->args;
    om_view x = omi_bind(e, &p->x), y = omi_bind(e, &p->y), m = omi_bind(e, &p->mask);
    omi_copy(&x, &y);
    omi_fill(&m, p->element);
    return OM_OK;
}

om_run_step *omi_sel_dropout(om_nctx *c) {
    if (c->n_out < 2 || !c->out[1]) return omi_step_view(c, 0);
    om_run_step *s  = omi_step(c, run_dropout, sizeof(dropout_args));
    dropout_args *a = s ? s->args : NULL;
    if (!a) return NULL;
    a->x    = omi_ref(c->in[0]);
    a->y    = omi_ref(c->out[0]);
    a->mask = omi_ref(c->out[1]);
    memcpy(a->element, ((const dropout_form *)c->form)->mask, sizeof a->element);
    return s;
}
