/*
 * create.c -- ConstantOfShape and Range: values that only sizes or three scalars decide.
 */
#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "graphops/rows.h"

static om_status fill_value(om_nctx *c, int32_t *dtype, uint8_t *bytes) {
    const om_attr *a = omi_attr(c->node, "value");
    *dtype           = OM_F32;
    memset(bytes, 0, 8);
    if (!a) return OM_OK;
    if (a->type != OM_ATTR_TENSOR || a->n != 1)
        return omi_problem(c, OM_ERR_MALFORMED, "attribute 'value' must be a tensor");
    const om_ginit *t = &a->tensors[0];
    size_t n          = omi_onnx_elem_size(t->dtype);
    if (t->dtype <= 0 || t->dtype > 31 || !(OM_TY_ALL >> t->dtype & 1))
        return omi_problem(c, OM_ERR_UNSUPPORTED,
                           "attribute 'value' is %s, which has no kernel here",
                           omi_elem_name(t->dtype));
    if (t->bytes != n || !t->buf || t->offset > t->buf->bytes || n > t->buf->bytes - t->offset)
        return omi_problem(c, OM_ERR_MALFORMED, "attribute 'value' must hold one element");
    memcpy(bytes, (const char *)t->buf->data + t->offset, n);
    if (t->dtype == OM_BOOL) bytes[0] = bytes[0] != 0;
    *dtype = t->dtype;
    return OM_OK;
}

om_status omi_infer_constant_of_shape(om_nctx *c) {
    int32_t dtype;
    uint8_t bytes[8];
    om_ints t;
    OM_TRY(omi_arity(c, 1, 1, 1));
    OM_TRY(fill_value(c, &dtype, bytes));
    OM_TRY(omi_out_type(c, 0, dtype));
    if (c->types_only) return OM_OK;
    OM_TRY(omi_operand(c, 0, NULL, 0, &t));
    return omi_out_shape(c, 0, t.n, t.v);
}

typedef struct fill_args {
    om_ref y;
    uint8_t value[8];
} fill_args;

static om_status run_fill(const om_step *s, const om_exec *e) {
    const fill_args *p = s->args;
    om_view y          = omi_bind(e, &p->y);
    omi_fill(&y, p->value);
    return OM_OK;
}

om_step *omi_sel_constant_of_shape(om_nctx *c) {
    int32_t dtype;
    om_step *s   = omi_step(c, run_fill, sizeof(fill_args));
    fill_args *a = s ? s->args : NULL;
    if (!a || fill_value(c, &dtype, a->value) != OM_OK) return NULL;
    a->y = omi_ref(c->out[0]);
    return s;
}

/* ---- Range --------------------------------------------------------------------------------------
 */

static int64_t count_i64(int64_t start, int64_t limit, int64_t step) {
    bool up       = step > 0;
    uint64_t mag  = up ? (uint64_t)step : 0 - (uint64_t)step;
    uint64_t room = up ? (uint64_t)limit - (uint64_t)start : (uint64_t)start - (uint64_t)limit;
    if (up ? limit <= start : limit >= start) return 0;
    uint64_t n = room / mag + (room % mag != 0);
    return n > INT64_MAX ? INT64_MAX : (int64_t)n;
}

static int64_t int_at(const om_pval *v) {
    return v->dtype == OM_I64 ? *(const int64_t *)v->known : *(const int32_t *)v->known;
}

static om_status range_count(om_nctx *c, int64_t *n) {
    if (c->in[0]->dtype != OM_F32) {
        int64_t step = int_at(c->in[2]);
        if (!step) return omi_problem(c, OM_ERR_VALUE, "the step is 0");
        return *n = count_i64(int_at(c->in[0]), int_at(c->in[1]), step), OM_OK;
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
    OM_TRY(omi_arity(c, 3, 3, 1));
    for (uint32_t i = 0; i < 3; i++) {
        OM_TRY(omi_type(c, i, OM_TY_ALL));
        OM_TRY(omi_same_type(c, 0, i));
    }
    int32_t t = c->in[0]->dtype;
    if (t && t != OM_F32 && t != OM_I64 && t != OM_I32)
        return omi_problem(c, OM_ERR_UNSUPPORTED, "there is no kernel for %s", omi_elem_name(t));
    OM_TRY(omi_out_type(c, 0, t));
    if (c->types_only) return OM_OK;
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

static om_status run_range(const om_step *s, const om_exec *e) {
    const range_args *p = s->args;
    om_view y           = omi_bind(e, &p->y);
    omi_range(&y, e->ptr[p->start], e->ptr[p->step]);
    return OM_OK;
}

om_step *omi_sel_range(om_nctx *c) {
    om_step *s    = omi_step(c, run_range, sizeof(range_args));
    range_args *a = s ? s->args : NULL;
    if (!a) return NULL;
    a->y     = omi_ref(c->out[0]);
    a->start = c->in[0]->index;
    a->step  = c->in[2]->index;
    return s;
}
