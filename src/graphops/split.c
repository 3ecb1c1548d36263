/*
 * split.c -- Split: an axis cut into pieces; pieces of a leading axis are views without work.
 */
#include "compute/move.h"

#include <string.h>

#include "base/checked.h"
#include "graphops/part.h"

typedef struct split_form {
    int64_t axis;
    om_either sizes;
    bool uneven; /* without sizes: the last piece may be shorter */
} split_form;

om_status omi_parse_split(om_nctx *c) {
    split_form *f = omi_form(c, sizeof *f);
    om_ints list;
    bool known = false;
    if (!f) return OM_ERR_NOMEM;
    f->axis   = omi_int(c, "axis");
    f->uneven = c->opset >= 18;
    OM_TRY(omi_axis_possible(c, f->axis, c->in[0]));
    OM_TRY(omi_either(c, "split", 1, &f->sizes));
    OM_TRY(omi_either_early(c, &f->sizes, &list, &known));
    for (int i = 0; known && i < list.n; i++)
        if (list.v[i] < 0)
            return omi_problem(c, OM_ERR_SHAPE, "size %d is %lld", i, (long long)list.v[i]);
    int64_t parts = omi_int(c, "num_outputs");
    if (omi_given(c, "num_outputs") && parts != (int64_t)c->n_out)
        return omi_problem(c, OM_ERR_MALFORMED, "num_outputs is %lld for %u outputs",
                           (long long)parts, c->n_out);
    return OM_OK;
}

/* How an axis is cut: by a list, or into equal pieces but a shorter last one. */
typedef struct split_cut {
    om_ints given;
    int64_t n, chunk;
} split_cut;

static int64_t piece(const split_cut *k, uint32_t i) {
    return k->given.given ? k->given.v[i] : omi_min64(k->chunk, k->n - k->chunk * i);
}

static om_status check_given(om_nctx *c, const split_cut *k, int axis) {
    int64_t sum = 0;
    if (k->given.n != (int)c->n_out)
        return omi_problem(c, OM_ERR_SHAPE, "%d sizes are given for %u outputs", k->given.n,
                           c->n_out);
    for (int i = 0; i < k->given.n; i++)
        if (k->given.v[i] < 0 || !omi_add_i64(sum, k->given.v[i], &sum) || sum > k->n)
            return omi_problem(c, OM_ERR_SHAPE, "the sizes do not add up to axis %d, which is %lld",
                               axis, (long long)k->n);
    if (sum != k->n)
        return omi_problem(c, OM_ERR_SHAPE, "the sizes add up to %lld, axis %d is %lld",
                           (long long)sum, axis, (long long)k->n);
    return OM_OK;
}

/* Pieces are equal but for a shorter last one, which is not empty: 5 into 4 would be 2, 2, 1 and
 * nothing, so there is no such split. */
static om_status check_even(om_nctx *c, const split_cut *k, bool uneven, int axis) {
    int64_t parts = c->n_out;
    if (k->n % parts == 0) return OM_OK;
    if (!uneven)
        return omi_problem(c, OM_ERR_SHAPE, "axis %d of %lld does not split into %lld equal parts",
                           axis, (long long)k->n, (long long)parts);
    if (k->n - k->chunk * (parts - 1) < 1)
        return omi_problem(c, OM_ERR_SHAPE,
                           "axis %d of %lld does not split into %lld parts, of which only the last "
                           "may be shorter",
                           axis, (long long)k->n, (long long)parts);
    return OM_OK;
}

static om_status node_split_axis(om_nctx *c, int *axis, split_cut *k) {
    const split_form *f = c->form;
    OM_TRY(omi_norm_axis(c, f->axis, c->in[0]->rank, axis));
    OM_TRY(omi_either_ints(c, &f->sizes, &k->given));
    k->n     = c->in[0]->shape[*axis];
    k->chunk = omi_ceil_div(k->n, c->n_out);
    return k->given.given ? check_given(c, k, *axis) : check_even(c, k, f->uneven, *axis);
}

om_status omi_infer_split(om_nctx *c) {
    int axis = 0;
    split_cut k;
    int64_t shape[OM_MAX_RANK];
    OM_TRY(node_split_axis(c, &axis, &k));
    memcpy(shape, c->in[0]->shape, sizeof shape);
    for (uint32_t i = 0; i < c->n_out; i++) {
        shape[axis] = piece(&k, i);
        OM_TRY(omi_out_shape(c, i, c->in[0]->rank, shape));
    }
    return OM_OK;
}

typedef struct split_args {
    uint32_t n;
    om_ref x; /* strides of the whole input */
    int axis;
    om_ref out[]; /* value OM_NO_VALUE: absent */
} split_args;

static om_status run_split(const om_run_step *s, const om_exec *e) {
    const split_args *p = s->args;
    om_view x           = omi_bind(e, &p->x);
    char *from          = x.data;
    for (uint32_t i = 0; i < p->n; i++) {
        int64_t n        = p->out[i].v.shape[p->axis];
        x.data           = from;
        x.shape[p->axis] = n;
        if (p->out[i].value != OM_NO_VALUE && omi_view_numel(&x)) {
            om_view y = omi_bind(e, &p->out[i]);
            omi_copy(&x, &y);
        }
        from += n * x.strides[p->axis] * (int64_t)om_dtype_size(x.dtype);
    }
    return OM_OK;
}

/* All axes before the split one are 1: the pieces are contiguous parts. */
static om_run_step *split_views(om_nctx *c, int axis, const split_cut *k) {
    const om_pval *x = c->in[0];
    int64_t inner = (int64_t)om_dtype_size((om_dtype)x->dtype), at = 0;
    for (int i = axis + 1; i < x->rank; i++)
        inner *= x->shape[i];
    om_run_step *s = omi_step_view(c, 0);
    for (uint32_t i = 0; s && i < c->n_out; i++) {
        s->views[i] = at;
        at += piece(k, i) * inner;
    }
    return s;
}

om_run_step *omi_sel_split(om_nctx *c) {
    int axis = 0;
    split_cut k;
    int64_t lead = 1;
    if (node_split_axis(c, &axis, &k) != OM_OK) return NULL;
    const om_pval *x = c->in[0];
    for (int i = 0; i < axis; i++)
        lead *= x->shape[i];
    if (lead == 1) return split_views(c, axis, &k);
    om_run_step *s = omi_step(c, run_split, sizeof(split_args) + c->n_out * sizeof(om_ref));
    split_args *a  = s ? s->args : NULL;
    if (!a) return NULL;
    a->n    = c->n_out;
    a->x    = omi_ref(x);
    a->axis = axis;
    for (uint32_t i = 0; i < c->n_out; i++) {
        om_pval absent     = *x;
        absent.index       = OM_NO_VALUE;
        absent.shape[axis] = piece(&k, i);
        a->out[i]          = omi_ref(c->out[i] ? c->out[i] : &absent);
    }
    return s;
}
