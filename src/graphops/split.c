/*
 * split.c -- Split: an axis cut into pieces; pieces of a leading axis are views without work.
 */
#include "compute/move.h"

#include <string.h>

#include "base/checked.h"
#include "graphops/part.h"

/* Sizes of the pieces: given, or even with a shorter last one. */
static om_status split_sizes(om_nctx *c, int *axis, int64_t *size) {
    int64_t a = 0, parts = 0, sum = 0;
    om_ints given;
    OM_TRY(omi_get_int(c, "axis", 0, &a));
    OM_TRY(omi_norm_axis(c, a, c->in[0]->rank, axis));
    OM_TRY(omi_operand(c, 1, "split", 13, &given));
    OM_TRY(omi_get_int(c, "num_outputs", (int64_t)c->n_out, &parts));
    int64_t n = c->in[0]->shape[*axis];
    if (c->n_out > OM_LIST_MAX && given.given)
        return omi_problem(c, OM_ERR_UNSUPPORTED, "more than %d pieces of given sizes",
                           OM_LIST_MAX);
    if (given.given) {
        if (given.n != (int)c->n_out)
            return omi_problem(c, OM_ERR_SHAPE, "%d sizes are given for %u outputs", given.n,
                               c->n_out);
        for (int i = 0; i < given.n; i++) {
            if (given.v[i] < 0 || !omi_add_i64(sum, given.v[i], &sum) || sum > n)
                return omi_problem(c, OM_ERR_SHAPE,
                                   "the sizes do not add up to axis %d, which is %lld", *axis,
                                   (long long)n);
            size[i] = given.v[i];
        }
    } else {
        if (parts != (int64_t)c->n_out)
            return omi_problem(c, OM_ERR_MALFORMED, "num_outputs is %lld for %u outputs",
                               (long long)parts, c->n_out);
        int64_t chunk = omi_ceil_div(n, parts);
        for (int64_t i = 0; i < parts; i++)
            sum += size[i] = omi_max64(0, omi_min64(chunk, n - chunk * i));
        if (c->opset < 18 && n % parts)
            return omi_problem(c, OM_ERR_SHAPE,
                               "axis %d of %lld does not split into %lld equal parts", *axis,
                               (long long)n, (long long)parts);
    }
    if (sum != n)
        return omi_problem(c, OM_ERR_SHAPE, "the sizes add up to %lld, axis %d is %lld",
                           (long long)sum, *axis, (long long)n);
    return OM_OK;
}

#define SPLIT_MAX 1024

om_status omi_infer_split(om_nctx *c) {
    int axis = 0;
    int64_t size[SPLIT_MAX], shape[OM_MAX_RANK];
    OM_TRY(omi_arity(c, 1, 2, SPLIT_MAX));
    if (c->n_out > SPLIT_MAX)
        return omi_problem(c, OM_ERR_UNSUPPORTED, "%u outputs; up to %d are computed", c->n_out,
                           SPLIT_MAX);
    OM_TRY(omi_out_as_input(c));
    for (uint32_t i = 1; i < c->n_out; i++)
        OM_TRY(omi_out_type(c, i, c->in[0]->dtype));
    if (c->types_only) return OM_OK;
    OM_TRY(split_sizes(c, &axis, size));
    memcpy(shape, c->in[0]->shape, sizeof shape);
    for (uint32_t i = 0; i < c->n_out; i++) {
        shape[axis] = size[i];
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

static om_status run_split(const om_step *s, const om_exec *e) {
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
static om_step *split_views(om_nctx *c, int axis, const int64_t *size) {
    const om_pval *x = c->in[0];
    int64_t inner = (int64_t)om_dtype_size((om_dtype)x->dtype), at = 0;
    for (int i = axis + 1; i < x->rank; i++)
        inner *= x->shape[i];
    om_step *s = omi_step_view(c, 0);
    for (uint32_t i = 0; s && i < c->n_out; i++) {
        s->views[i] = at;
        at += size[i] * inner;
    }
    return s;
}

om_step *omi_sel_split(om_nctx *c) {
    int axis = 0;
    int64_t size[SPLIT_MAX], lead = 1;
    if (split_sizes(c, &axis, size) != OM_OK) return NULL;
    const om_pval *x = c->in[0];
    for (int i = 0; i < axis; i++)
        lead *= x->shape[i];
    if (lead == 1) return split_views(c, axis, size);
    om_step *s    = omi_step(c, run_split, sizeof(split_args) + c->n_out * sizeof(om_ref));
    split_args *a = s ? s->args : NULL;
    if (!a) return NULL;
    a->n    = c->n_out;
    a->x    = omi_ref(x);
    a->axis = axis;
    for (uint32_t i = 0; i < c->n_out; i++) {
        om_pval absent     = *x;
        absent.index       = OM_NO_VALUE;
        absent.shape[axis] = size[i];
        a->out[i]          = omi_ref(c->out[i] ? c->out[i] : &absent);
    }
    return s;
}
