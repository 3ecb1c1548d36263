/*
 * create.c -- ConstantOfShape and Range: values that only sizes or three scalars decide.
 */
#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "compute/shape_rules.h"
#include "graphops/rows.h"

/* Of ConstantOfShape: what it fills with. */
typedef struct fill_form {
    _Alignas(8) uint8_t value[8];
} fill_form;

om_status omi_parse_fill(om_nctx *c) {
    const om_attr *a = omi_given(c, "value");
    fill_form *f     = omi_form(c, sizeof *f);
    if (!f) return OM_ERR_NOMEM;
    if (!a) return omi_out_type(c, 0, OM_F32);
    if (a->n != 1) return omi_problem(c, OM_ERR_MALFORMED, "attribute 'value' must be a tensor");
    const om_ginit *t = &a->tensors[0];
    size_t n          = omi_onnx_elem_size(t->dtype);
    if (!omi_dtype_computed(t->dtype))
        return omi_problem(c, OM_ERR_UNSUPPORTED,
                           "attribute 'value' is %s, which has no kernel here",
                           omi_elem_name(t->dtype));
    if (t->bytes != n || !t->buf || t->offset > t->buf->bytes || n > t->buf->bytes - t->offset)
        return omi_problem(c, OM_ERR_MALFORMED, "attribute 'value' must hold one element");
    memcpy(f->value, (const char *)t->buf->data + t->offset, n);
    if (t->dtype == OM_BOOL) f->value[0] = f->value[0] != 0;
    return omi_out_type(c, 0, t->dtype);
}

om_status omi_infer_constant_of_shape(om_nctx *c) {
    om_ints t;
    OM_TRY(omi_input_ints(c, 0, &t));
    return omi_out_shape(c, 0, t.n, t.v);
}

typedef struct fill_args {
    om_ref y;
    _Alignas(8) uint8_t value[8];
} fill_args;

static om_status run_fill(const om_run_step *s, const om_exec *e) {
    const fill_args *p = s->args;
    om_view y          = omi_bind(e, &p->y);
    omi_fill(&y, p->value);
    return OM_OK;
}

om_run_step *omi_sel_constant_of_shape(om_nctx *c) {
    om_run_step *s = omi_step(c, run_fill, sizeof(fill_args));
    fill_args *a   = s ? s->args : NULL;
    if (!a) return NULL;
    memcpy(a->value, ((const fill_form *)c->form)->value, sizeof a->value);
    a->y = omi_ref(c->out[0]);
    return s;
}

/* ---- Range --------------------------------------------------------------------------------------
 */

static int64_t int_at(const om_pval *v) {
    return omi_element_to_int(v->known, (om_dtype)v->dtype);
}

static om_status range_count(om_nctx *c, int64_t *n) {
    if (c->in[0]->dtype != OM_F32) {
        int64_t step = int_at(c->in[2]);
        if (!step) return omi_problem(c, OM_ERR_VALUE, "the step is 0");
        return *n = omi_rule_count(int_at(c->in[0]), int_at(c->in[1]), step), OM_OK;
    }
    float start = *(const float *)c->in[0]->known, limit = *(const float *)c->in[1]->known,
          step = *(const float *)c->in[2]->known;
    double k   = ceil(((double)limit - start) / step);
    if (!(step != 0) || !(k < 1e15)) // also not-a-number
        return omi_problem(c, OM_ERR_VALUE, "start, limit and step do not make a finite range");
    *n = k > 0 ? (int64_t)k : 0;
    return OM_OK;
}

om_status omi_infer_range(om_nctx *c) {
    int64_t n = 0;
    for (uint32_t i = 0; i < 3; i++) {
        if (c->in[i]->numel != 1)
            return omi_problem(c, OM_ERR_SHAPE, "'%.60s' must have one element", c->in[i]->name);
        if (!c->in[i]->known)
            return omi_problem(
                c, OM_ERR_UNSUPPORTED,
                "the size depends on the contents of '%.60s', which are computed while "
                "running",
                c->in[i]->name);
    }
    OM_TRY(range_count(c, &n));
    return omi_out_shape(c, 0, 1, &n);
}

typedef struct range_args {
    om_ref y;
    uint32_t start, step;
} range_args;

static om_status run_range(const om_run_step *s, const om_exec *e) {
    const range_args *p = s->args;
    om_view y           = omi_bind(e, &p->y);
    omi_range(&y, e->ptr[p->start], e->ptr[p->step]);
    return OM_OK;
}

om_run_step *omi_sel_range(om_nctx *c) {
    om_run_step *s = omi_step(c, run_range, sizeof(range_args));
    range_args *a  = s ? s->args : NULL;
    if (!a) return NULL;
    a->y     = omi_ref(c->out[0]);
    a->start = c->in[0]->index;
    a->step  = c->in[2]->index;
    return s;
}
