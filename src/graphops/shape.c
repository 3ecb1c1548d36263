/*
 * shape.c -- nodes that rename sizes (views without work) and nodes that compute with sizes:
 * Reshape, Flatten, Squeeze, Unsqueeze, Identity, Dropout, Shape, Size, ConstantOfShape, Range.
 *
 * Shape and Size are known as soon as a plan knows sizes, so the chains that tracers write in front
 * of Reshape and Expand fold away (symbolic-axes.md 6).
 */
#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "graphops/rows.h"

om_step *omi_sel_view(om_nctx *c) {
    return omi_step_view(c, 0);
}

om_status omi_infer_identity(om_nctx *c) {
    OM_TRY(omi_arity(c, 1, 1, 1));
    OM_TRY(omi_out_as_input(c));
    return c->types_only ? OM_OK : omi_out_like(c, 0, c->in[0]);
}

/* ---- Reshape ------------------------------------------------------------------------------------
 */

static om_status reshape_sizes(om_nctx *c, const om_ints *t, bool allow_zero, int64_t *shape) {
    const om_pval *x = c->in[0];
    int guessed      = -1;
    int64_t known    = 1;
    for (int i = 0; i < t->n; i++) {
        int64_t v = t->v[i];
        if (v == -1) {
            if (guessed >= 0)
                return omi_problem(c, OM_ERR_SHAPE, "the target has more than one -1");
            guessed = i;
            v       = 1;
        } else if (v == 0 && !allow_zero) {
            if (i >= x->rank)
                return omi_problem(c, OM_ERR_SHAPE,
                                   "target %d is 0 (keep), but '%.60s' has rank %d", i, x->name,
                                   x->rank);
            v = x->shape[i];
        } else if (v < 0)
            return omi_problem(c, OM_ERR_SHAPE, "target %d is %lld", i, (long long)v);
        shape[i] = v;
        if (!omi_mul_i64(known, v, &known))
            return omi_problem(c, OM_ERR_LIMIT, "the target has too many elements");
    }
    if (guessed >= 0) {
        if (known == 0 || x->numel % known)
            return omi_problem(c, OM_ERR_SHAPE, "%lld elements of '%.60s' leave no size for -1",
                               (long long)x->numel, x->name);
        shape[guessed] = x->numel / known;
    } else if (known != x->numel)
        return omi_problem(c, OM_ERR_SHAPE, "'%.60s' has %lld elements, the target %lld", x->name,
                           (long long)x->numel, (long long)known);
    return OM_OK;
}

om_status omi_infer_reshape(om_nctx *c) {
    bool allow_zero = false;
    om_ints t;
    int64_t shape[OM_LIST_MAX];
    OM_TRY(omi_arity(c, 2, 2, 1));
    OM_TRY(omi_get_flag(c, "allowzero", false, &allow_zero));
    OM_TRY(omi_out_as_input(c));
    if (c->types_only) return OM_OK;
    OM_TRY(omi_operand(c, 1, NULL, 0, &t));
    OM_TRY(reshape_sizes(c, &t, allow_zero, shape));
    return omi_out_shape(c, 0, t.n, shape);
}

om_status omi_infer_flatten(om_nctx *c) {
    int64_t axis = 1, shape[2] = {1, 1};
    OM_TRY(omi_arity(c, 1, 1, 1));
    OM_TRY(omi_get_int(c, "axis", 1, &axis));
    OM_TRY(omi_out_as_input(c));
    if (c->types_only) return OM_OK;
    const om_pval *x = c->in[0];
    if (axis < -x->rank || axis > x->rank)
        return omi_problem(c, OM_ERR_SHAPE, "axis %lld is outside rank %d", (long long)axis,
                           x->rank);
    if (axis < 0) axis += x->rank;
    for (int i = 0; i < x->rank; i++)
        if (!omi_mul_i64(shape[i >= axis], x->shape[i], &shape[i >= axis]))
            return omi_problem(c, OM_ERR_LIMIT, "the sizes are too large");
    return omi_out_shape(c, 0, 2, shape);
}

/* ---- Squeeze, Unsqueeze ---------------------------------------------------------------------- */

/* The axes as a mask over rank axes; each once. */
static om_status axes_mask(om_nctx *c, const om_ints *axes, int rank, uint32_t *mask) {
    *mask = 0;
    for (int i = 0; i < axes->n; i++) {
        int a = 0;
        OM_TRY(omi_norm_axis(c, axes->v[i], rank, &a));
        if (*mask >> a & 1) return omi_problem(c, OM_ERR_SHAPE, "axis %d is named twice", a);
        *mask |= 1u << a;
    }
    return OM_OK;
}

om_status omi_infer_squeeze(om_nctx *c) {
    om_ints axes;
    uint32_t mask = 0;
    int64_t shape[OM_MAX_RANK];
    int rank = 0;
    OM_TRY(omi_arity(c, 1, 2, 1));
    OM_TRY(omi_out_as_input(c));
    if (c->types_only) return OM_OK;
    const om_pval *x = c->in[0];
    OM_TRY(omi_operand(c, 1, "axes", 13, &axes));
    OM_TRY(axes_mask(c, &axes, x->rank, &mask));
    for (int i = 0; i < x->rank; i++) {
        bool drop = axes.given ? mask >> i & 1 : x->shape[i] == 1;
        if (drop && x->shape[i] != 1)
            return omi_problem(c, OM_ERR_SHAPE, "axis %d of '%.60s' is %lld, not 1", i, x->name,
                               (long long)x->shape[i]);
        if (!drop) shape[rank++] = x->shape[i];
    }
    return omi_out_shape(c, 0, rank, shape);
}

om_status omi_infer_unsqueeze(om_nctx *c) {
    om_ints axes;
    uint32_t mask = 0;
    int64_t shape[OM_MAX_RANK];
    OM_TRY(omi_arity(c, 1, 2, 1));
    OM_TRY(omi_out_as_input(c));
    if (c->types_only) return OM_OK;
    const om_pval *x = c->in[0];
    OM_TRY(omi_operand(c, 1, "axes", 13, &axes));
    if (!axes.given) return omi_problem(c, OM_ERR_MALFORMED, "the axes are missing");
    int rank = x->rank + axes.n;
    if (rank > OM_MAX_RANK)
        return omi_problem(c, OM_ERR_UNSUPPORTED,
                           "the output would have rank %d; up to %d are computed", rank,
                           OM_MAX_RANK);
    OM_TRY(axes_mask(c, &axes, rank, &mask));
    for (int i = 0, k = 0; i < rank; i++)
        shape[i] = mask >> i & 1 ? 1 : x->shape[k++];
    return omi_out_shape(c, 0, rank, shape);
}

/* ---- Shape, Size --------------------------------------------------------------------------------
 */

/* The axes [a, b) that Shape{start, end} takes. */
static om_status shape_range(om_nctx *c, int *a, int *b) {
    int64_t start = 0, end = INT64_MAX, rank = c->in[0]->rank;
    OM_TRY(omi_get_int(c, "start", 0, &start));
    OM_TRY(omi_get_int(c, "end", INT64_MAX, &end));
    if (start < 0) start += rank;
    if (end < 0) end += rank;
    *a = (int)omi_max64(0, omi_min64(start, rank));
    *b = (int)omi_max64(*a, omi_min64(end, rank));
    return OM_OK;
}

om_status omi_infer_shape(om_nctx *c) {
    int a = 0, b = 0;
    OM_TRY(omi_arity(c, 1, 1, 1));
    OM_TRY(omi_type(c, 0, OM_TY_ALL));
    OM_TRY(omi_out_type(c, 0, OM_I64));
    if (c->types_only) return OM_OK;
    OM_TRY(shape_range(c, &a, &b));
    return omi_out_shape(c, 0, 1, (int64_t[]){b - a});
}

om_status omi_infer_size(om_nctx *c) {
    OM_TRY(omi_arity(c, 1, 1, 1));
    OM_TRY(omi_type(c, 0, OM_TY_ALL));
    OM_TRY(omi_out_type(c, 0, OM_I64));
    return c->types_only ? OM_OK : omi_out_shape(c, 0, 0, NULL);
}

typedef struct shape_args {
    uint32_t y;
    int n;
    int64_t v[OM_MAX_RANK];
} shape_args;

static om_status run_shape(const om_step *s, const om_exec *e) {
    const shape_args *p = s->args;
    memcpy(e->ptr[p->y], p->v, (size_t)p->n * sizeof p->v[0]);
    return OM_OK;
}

om_step *omi_sel_shape(om_nctx *c) {
    om_step *s    = omi_step(c, run_shape, sizeof(shape_args));
    shape_args *a = s ? s->args : NULL;
    int from, to;
    if (!a) return NULL;
    a->y = c->out[0]->index;
    if (c->def->arg == 1) {
        a->n    = 1;
        a->v[0] = c->in[0]->numel;
    } else {
        if (shape_range(c, &from, &to) != OM_OK) return NULL;
        for (int i = from; i < to; i++)
            a->v[a->n++] = c->in[0]->shape[i];
    }
    return s;
}
