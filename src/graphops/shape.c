/*
 * shape.c -- nodes that rename sizes (views without work) and nodes that compute with sizes:
 * Identity, Reshape, Flatten, Squeeze, Unsqueeze, Shape, Size.
 *
 * Shape and Size are known as soon as a plan knows sizes, so the chains that tracers write in front
 * of Reshape and Expand fold away (symbolic-axes.md 6).
 */
#include <string.h>

#include "base/checked.h"
#include "compute/shape_rules.h"
#include "graphops/rows.h"

om_run_step *omi_sel_view(om_nctx *c) {
    return omi_step_view(c, 0);
}

om_status omi_infer_identity(om_nctx *c) {
    return omi_out_like(c, 0, c->in[0]);
}

/* ---- Reshape ------------------------------------------------------------------------------------
 */

typedef struct reshape_form {
    bool allow_zero; /* a 0 is a size, not "keep" */
} reshape_form;

om_status omi_parse_reshape(om_nctx *c) {
    reshape_form *f = omi_form(c, sizeof *f);
    om_ints t       = {0};
    int guessed     = 0;
    if (!f) return OM_ERR_NOMEM;
    f->allow_zero = omi_flag(c, "allowzero");
    if (c->in[1]->known) OM_TRY(omi_input_ints(c, 1, &t));
    for (int i = 0; i < t.n; i++) {
        guessed += t.v[i] == -1;
        if (t.v[i] < -1)
            return omi_problem(c, OM_ERR_SHAPE, "target %d is %lld", i, (long long)t.v[i]);
    }
    if (guessed > 1) return omi_problem(c, OM_ERR_SHAPE, "the target has more than one -1");
    return OM_OK;
}

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
    const reshape_form *f = c->form;
    om_ints t;
    int64_t shape[OM_LIST_MAX];
    OM_TRY(omi_input_ints(c, 1, &t));
    OM_TRY(reshape_sizes(c, &t, f->allow_zero, shape));
    return omi_out_shape(c, 0, t.n, shape);
}

typedef struct flatten_form {
    int64_t axis; /* 0 to rank, or from the end */
} flatten_form;

om_status omi_parse_flatten(om_nctx *c) {
    flatten_form *f = omi_form(c, sizeof *f);
    if (!f) return OM_ERR_NOMEM;
    f->axis = omi_int(c, "axis");
    if (f->axis == c->in[0]->rank) return OM_OK;
    return omi_axis_possible(c, f->axis, c->in[0]);
}

om_status omi_infer_flatten(om_nctx *c) {
    const om_pval *x = c->in[0];
    int64_t axis = ((const flatten_form *)c->form)->axis, shape[2] = {1, 1};
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

/* Of Squeeze and Unsqueeze. */
typedef struct axes_form {
    om_either axes;
} axes_form;

om_status omi_parse_axes(om_nctx *c) {
    axes_form *f = omi_form(c, sizeof *f);
    om_ints axes;
    bool known = false;
    if (!f) return OM_ERR_NOMEM;
    OM_TRY(omi_either(c, "axes", 1, &f->axes));
    OM_TRY(omi_either_early(c, &f->axes, &axes, &known));
    om_pval of = *c->in[0]; // the axes of Unsqueeze are the output's
    if (c->def->arg == 1 && known && of.rank >= 0) of.rank += axes.n;
    for (int i = 0; known && i < axes.n; i++)
        OM_TRY(omi_axis_possible(c, axes.v[i], &of));
    return OM_OK;
}

/* The axes as a mask over rank axes; each once. */
static om_status node_axes_mask(om_nctx *c, const om_ints *axes, int rank, uint32_t *mask) {
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
    const axes_form *f = c->form;
    const om_pval *x   = c->in[0];
    om_ints axes;
    uint32_t mask = 0;
    int64_t shape[OM_MAX_RANK];
    OM_TRY(omi_either_ints(c, &f->axes, &axes));
    if (axes.given && axes.n == 0)
        return omi_problem(c, OM_ERR_UNSUPPORTED,
                           "the list of axes is empty: none by ONNX, all by ONNX Runtime; leave it "
                           "out or name them");
    OM_TRY(node_axes_mask(c, &axes, x->rank, &mask));
    for (int i = 0; i < x->rank; i++) {
        if (!axes.given && x->shape[i] == 1) mask |= 1u << i;
        if (mask >> i & 1 && x->shape[i] != 1)
            return omi_problem(c, OM_ERR_SHAPE, "axis %d of '%.60s' is %lld, not 1", i, x->name,
                               (long long)x->shape[i]);
    }
    return omi_out_shape(c, 0, omi_reduced_shape(x->rank, x->shape, mask, false, shape), shape);
}

om_status omi_infer_unsqueeze(om_nctx *c) {
    const axes_form *f = c->form;
    const om_pval *x   = c->in[0];
    om_ints axes;
    uint32_t mask = 0;
    int64_t shape[OM_MAX_RANK];
    OM_TRY(omi_either_ints(c, &f->axes, &axes));
    int rank = x->rank + axes.n;
    if (rank > OM_MAX_RANK)
        return omi_problem(c, OM_ERR_UNSUPPORTED,
                           "the output would have rank %d; up to %d are computed", rank,
                           OM_MAX_RANK);
    OM_TRY(node_axes_mask(c, &axes, rank, &mask));
    for (int i = 0, k = 0; i < rank; i++)
        shape[i] = mask >> i & 1 ? 1 : x->shape[k++];
    return omi_out_shape(c, 0, rank, shape);
}

/* ---- Shape, Size --------------------------------------------------------------------------------
 */

typedef struct shape_form {
    int64_t start, end;
} shape_form;

om_status omi_parse_shape(om_nctx *c) {
    shape_form *f = omi_form(c, sizeof *f);
    if (!f) return OM_ERR_NOMEM;
    f->start = omi_int(c, "start");
    f->end   = omi_given(c, "end") ? omi_int(c, "end") : INT64_MAX;
    return OM_OK;
}

/* The axes [a, b) that Shape{start, end} takes. */
static void shape_range(const om_nctx *c, int *a, int *b) {
    const shape_form *f = c->form;
    int64_t start = f->start, end = f->end, rank = c->in[0]->rank;
    if (start < 0) start += rank;
    if (end < 0) end += rank;
    *a = (int)omi_max64(0, omi_min64(start, rank));
    *b = (int)omi_max64(*a, omi_min64(end, rank));
}

om_status omi_infer_shape(om_nctx *c) {
    int a = 0, b = 0;
    shape_range(c, &a, &b);
    return omi_out_shape(c, 0, 1, (int64_t[]){b - a});
}

om_status omi_infer_size(om_nctx *c) {
    return omi_out_shape(c, 0, 0, NULL);
}

typedef struct shape_args {
    uint32_t y;
    int n;
    int64_t v[OM_MAX_RANK];
} shape_args;

static om_status run_shape(const om_run_step *s, const om_exec *e) {
    const shape_args *p = s->args;
    memcpy(e->ptr[p->y], p->v, (size_t)p->n * sizeof p->v[0]);
    return OM_OK;
}

om_run_step *omi_sel_shape(om_nctx *c) {
    om_run_step *s = omi_step(c, run_shape, sizeof(shape_args));
    shape_args *a  = s ? s->args : NULL;
    int from, to;
    if (!a) return NULL;
    a->y = c->out[0]->index;
    if (c->def->arg == 1) {
        a->n    = 1;
        a->v[0] = c->in[0]->numel;
    } else {
        shape_range(c, &from, &to);
        for (int i = from; i < to; i++)
            a->v[a->n++] = c->in[0]->shape[i];
    }
    return s;
}
