/*
 * pad.c -- Pad in mode constant; negative pads crop. Pads are inputs since opset 11.
 */
#include "compute/move.h"

#include <string.h>

#include "base/checked.h"
#include "graphops/part.h"

typedef struct pad_form {
    om_either pads, axes;
    float value; /* of the versions that have it as an attribute */
} pad_form;

om_status omi_parse_pad(om_nctx *c) {
    static const char *const modes[] = {"constant", "reflect", "edge", "wrap"};
    pad_form *f                      = omi_form(c, sizeof *f);
    om_ints axes;
    int mode   = 0;
    bool known = false;
    if (!f) return OM_ERR_NOMEM;
    OM_TRY(omi_choice(c, "mode", 4, modes, &mode));
    if (mode != 0)
        return omi_problem(c, OM_ERR_UNSUPPORTED, "mode '%s' has no kernel; 'constant' has",
                           modes[mode]);
    f->value = omi_float(c, "value");
    OM_TRY(omi_either(c, "pads", 1, &f->pads));
    OM_TRY(omi_either(c, "axes", 3, &f->axes));
    OM_TRY(omi_either_early(c, &f->axes, &axes, &known));
    for (int i = 0; known && i < axes.n; i++)
        OM_TRY(omi_axis_possible(c, axes.v[i], c->in[0]));
    return OM_OK;
}

static om_status read_pads(om_nctx *c, int64_t *before, int64_t *after) {
    const pad_form *f = c->form;
    om_ints pads, axes;
    const om_pval *x = c->in[0];
    uint32_t seen    = 0;
    OM_TRY(omi_either_ints(c, &f->pads, &pads));
    OM_TRY(omi_either_ints(c, &f->axes, &axes));
    int n = axes.given ? axes.n : x->rank;
    if (pads.n != 2 * n || n > OM_MAX_RANK)
        return omi_problem(c, OM_ERR_SHAPE, "%d pads are given for %d axes", pads.n, n);
    memset(before, 0, OM_MAX_RANK * sizeof *before);
    memset(after, 0, OM_MAX_RANK * sizeof *after);
    for (int i = 0; i < n; i++) {
        int a = i;
        if (axes.given) OM_TRY(omi_norm_axis(c, axes.v[i], x->rank, &a));
        if (seen >> a & 1) return omi_problem(c, OM_ERR_SHAPE, "axis %d is named twice", a);
        seen |= 1u << a;
        before[a] = pads.v[i];
        after[a]  = pads.v[i + n];
        if (before[a] < -OM_VALUE_LIMIT || before[a] > OM_VALUE_LIMIT ||
            after[a] < -OM_VALUE_LIMIT || after[a] > OM_VALUE_LIMIT)
            return omi_problem(c, OM_ERR_LIMIT, "the pads of axis %d are too large", a);
    }
    return OM_OK;
}

om_status omi_infer_pad(om_nctx *c) {
    int64_t before[OM_MAX_RANK], after[OM_MAX_RANK], shape[OM_MAX_RANK];
    OM_TRY(read_pads(c, before, after));
    const om_pval *x = c->in[0];
    if (c->n_in > 2 && c->in[2] && c->in[2]->numel != 1)
        return omi_problem(c, OM_ERR_SHAPE, "the value '%.60s' must have one element",
                           c->in[2]->name);
    for (int i = 0; i < x->rank; i++) {
        shape[i] = x->shape[i] + before[i] + after[i];
        if (x->shape[i] + omi_min64(before[i], 0) + omi_min64(after[i], 0) < 0)
            return omi_problem(c, OM_ERR_SHAPE, "axis %d of %lld is cropped by more than it has", i,
                               (long long)x->shape[i]);
    }
    return omi_out_shape(c, 0, x->rank, shape);
}

typedef struct pad_args {
    om_ref x, y;
    int64_t offset; /* bytes that negative pads skip */
    int64_t before[OM_MAX_RANK];
    uint32_t value; /* OM_NO_VALUE: the bytes below */
    _Alignas(8) uint8_t bytes[8];
} pad_args;

static om_status run_pad(const om_run_step *s, const om_exec *e) {
    const pad_args *p = s->args;
    om_view x = omi_bind(e, &p->x), y = omi_bind(e, &p->y);
    const void *value = p->value == OM_NO_VALUE ? p->bytes : e->ptr[p->value];
    x.data            = (char *)x.data + p->offset;
    omi_pad_constant(&x, p->before, value, &y);
    return OM_OK;
}

om_run_step *omi_sel_pad(om_nctx *c) {
    int64_t after[OM_MAX_RANK];
    om_run_step *s = omi_step(c, run_pad, sizeof(pad_args));
    pad_args *a    = s ? s->args : NULL;
    if (!a || read_pads(c, a->before, after) != OM_OK) return NULL;
    const om_pval *x = c->in[0];
    a->x             = omi_ref(x);
    a->y             = omi_ref(c->out[0]);
    a->value         = omi_in(c, 2) ? c->in[2]->index : OM_NO_VALUE;
    float narrow     = ((const pad_form *)c->form)->value;
    if (omi_type_bit((om_dtype)x->dtype) & OM_SET_FLOAT)
        omi_element_from_double((double)narrow, (om_dtype)x->dtype, a->bytes);
    for (int i = 0; i < x->rank; i++) { // a negative pad narrows the input instead
        int64_t front = omi_min64(a->before[i], 0), back = omi_min64(after[i], 0);
        a->x.v.shape[i] += front + back;
        a->offset += -front * a->x.v.strides[i];
        a->before[i] -= front;
    }
    a->offset = x->numel ? a->offset * (int64_t)om_dtype_size((om_dtype)x->dtype) : 0;
    return s;
}
