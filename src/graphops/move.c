/*
 * move.c -- nodes that move elements: Transpose, Slice, Gather, Concat, Split, Expand, Pad, Trilu,
 * TopK.
 *
 * A part that stays contiguous (a slice or split of the leading axis, one row) is a view without
 * work.
 */
#include "compute/move.h"

#include <string.h>

#include "base/checked.h"
#include "graphops/rows.h"

static om_status moved_type(om_nctx *c) {
    OM_TRY(omi_type(c, 0, OM_TY_ALL));
    return omi_out_type(c, 0, c->in[0]->dtype);
}

/* A step that copies a strided part of input 0, from byte offset on, to output 0. */
typedef struct copy_args {
    om_ref x, y;
    int64_t offset;
} copy_args;

static om_status run_copy(const om_step *s, const om_exec *e) {
    const copy_args *p = s->args;
    om_view x = omi_bind(e, &p->x), y = omi_bind(e, &p->y);
    x.data = (char *)x.data + p->offset;
    omi_copy(&x, &y);
    return OM_OK;
}

/* x: strides and shape of the part; offset in elements. */
static om_step *copy_step(om_nctx *c, const om_view *x, int64_t offset) {
    int64_t bytes = c->in[0]->numel ? offset * (int64_t)om_dtype_size(x->dtype) : 0;
    if (omi_view_contiguous(x)) return omi_step_view(c, bytes);
    om_step *s   = omi_step(c, run_copy, sizeof(copy_args));
    copy_args *a = s ? s->args : NULL;
    if (!a) return NULL;
    a->x      = (om_ref){.value = c->in[0]->index, .v = *x};
    a->y      = omi_ref(c->out[0]);
    a->offset = bytes;
    return s;
}

/* ---- Transpose ----------------------------------------------------------------------------------
 */

static om_status read_perm(om_nctx *c, int64_t *perm) {
    int rank      = c->in[0]->rank;
    uint32_t seen = 0;
    if (!omi_attr(c->node, "perm")) {
        for (int i = 0; i < rank; i++)
            perm[i] = rank - 1 - i;
        return OM_OK;
    }
    OM_TRY(omi_get_ints(c, "perm", (size_t)rank, 0, perm));
    for (int i = 0; i < rank; i++) {
        if (perm[i] < 0 || perm[i] >= rank || (seen >> perm[i] & 1))
            return omi_problem(c, OM_ERR_MALFORMED,
                               "attribute 'perm' is not a permutation of %d axes", rank);
        seen |= 1u << perm[i];
    }
    return OM_OK;
}

om_status omi_infer_transpose(om_nctx *c) {
    int64_t perm[OM_MAX_RANK], shape[OM_MAX_RANK];
    OM_TRY(omi_arity(c, 1, 1, 1));
    OM_TRY(moved_type(c));
    if (c->types_only) return OM_OK;
    OM_TRY(read_perm(c, perm));
    for (int i = 0; i < c->in[0]->rank; i++)
        shape[i] = c->in[0]->shape[perm[i]];
    return omi_out_shape(c, 0, c->in[0]->rank, shape);
}

om_step *omi_sel_transpose(om_nctx *c) {
    int64_t perm[OM_MAX_RANK];
    if (read_perm(c, perm) != OM_OK) return NULL;
    om_view x = omi_ref(c->in[0]).v, v = x;
    for (int i = 0; i < x.rank; i++) {
        v.shape[i]   = x.shape[perm[i]];
        v.strides[i] = x.strides[perm[i]];
    }
    return copy_step(c, &v, 0);
}

/* ---- Slice --------------------------------------------------------------------------------------
 */

typedef struct cut {
    int64_t start[OM_MAX_RANK], count[OM_MAX_RANK], step[OM_MAX_RANK];
} cut;

/* ONNX clamping: start to [0, n] (n-1 going down), end to [0, n] (-1 going down). */
static void cut_axis(int64_t n, int64_t start, int64_t end, int64_t step, cut *k, int a) {
    bool up = step > 0;
    if (start < 0) start += n;
    if (end < 0) end = end < -n ? (up ? 0 : -1) : end + n;
    start        = omi_max64(0, omi_min64(start, up ? n : n - 1));
    end          = omi_max64(up ? 0 : -1, omi_min64(end, up ? n : n - 1));
    uint64_t mag = up ? (uint64_t)step : 0 - (uint64_t)step;
    int64_t room = n == 0 ? 0 : up ? end - start : start - end;
    k->count[a]  = room <= 0 ? 0 : (int64_t)(((uint64_t)room - 1) / mag) + 1;
    k->start[a]  = k->count[a] ? start : 0;
    k->step[a]   = k->count[a] > 1 ? step : 1; // a step is below n when it is used
}

static om_status read_slice(om_nctx *c, cut *k) {
    om_ints starts, ends, axes, steps;
    const om_pval *x = c->in[0];
    uint32_t seen    = 0;
    OM_TRY(omi_operand(c, 1, "starts", 10, &starts));
    OM_TRY(omi_operand(c, 2, "ends", 10, &ends));
    OM_TRY(omi_operand(c, 3, "axes", 10, &axes));
    OM_TRY(omi_operand(c, 4, NULL, 0, &steps));
    if (!starts.given || !ends.given || starts.n != ends.n || (axes.given && axes.n != starts.n) ||
        (steps.given && steps.n != starts.n) || starts.n > x->rank)
        return omi_problem(
            c, OM_ERR_SHAPE,
            "starts, ends, axes and steps have %d, %d, %d and %d entries for rank %d", starts.n,
            ends.n, axes.n, steps.n, x->rank);
    for (int i = 0; i < x->rank; i++) {
        k->start[i] = 0;
        k->count[i] = x->shape[i];
        k->step[i]  = 1;
    }
    for (int i = 0; i < starts.n; i++) {
        int a        = i;
        int64_t step = steps.given ? steps.v[i] : 1;
        if (axes.given) OM_TRY(omi_norm_axis(c, axes.v[i], x->rank, &a));
        if (seen >> a & 1) return omi_problem(c, OM_ERR_SHAPE, "axis %d is named twice", a);
        if (step == 0) return omi_problem(c, OM_ERR_VALUE, "the step of axis %d is 0", a);
        seen |= 1u << a;
        cut_axis(x->shape[a], starts.v[i], ends.v[i], step, k, a);
    }
    return OM_OK;
}

om_status omi_infer_slice(om_nctx *c) {
    cut k;
    OM_TRY(omi_arity(c, 1, 5, 1));
    OM_TRY(moved_type(c));
    if (c->types_only) return OM_OK;
    OM_TRY(read_slice(c, &k));
    return omi_out_shape(c, 0, c->in[0]->rank, k.count);
}

om_step *omi_sel_slice(om_nctx *c) {
    cut k;
    int64_t offset = 0;
    om_view v      = omi_ref(c->in[0]).v;
    if (read_slice(c, &k) != OM_OK) return NULL;
    for (int i = 0; i < v.rank; i++) {
        offset += k.start[i] * v.strides[i];
        v.shape[i]   = k.count[i];
        v.strides[i] = k.step[i] * v.strides[i];
    }
    return copy_step(c, &v, c->out[0]->numel ? offset : 0);
}

/* ---- Gather -------------------------------------------------------------------------------------
 */

static om_status gather_axis(om_nctx *c, int *axis) {
    int64_t a = 0;
    OM_TRY(omi_get_int(c, "axis", 0, &a));
    return omi_norm_axis(c, a, c->in[0]->rank, axis);
}

om_status omi_infer_gather(om_nctx *c) {
    int axis = 0, rank                  = 0;
    int64_t shape[2 * OM_MAX_RANK], bad = 0;
    OM_TRY(omi_arity(c, 2, 2, 1));
    OM_TRY(moved_type(c));
    if (c->in[1]->dtype && !(c->in[1]->dtype == OM_I64 || c->in[1]->dtype == OM_I32))
        return omi_problem(c, OM_ERR_MALFORMED, "the index '%.60s' is %s; integers are needed",
                           c->in[1]->name, omi_elem_name(c->in[1]->dtype));
    if (c->types_only) return OM_OK;
    OM_TRY(gather_axis(c, &axis));
    const om_pval *x = c->in[0], *idx = c->in[1];
    for (int i = 0; i < axis; i++)
        shape[rank++] = x->shape[i];
    for (int i = 0; i < idx->rank; i++)
        shape[rank++] = idx->shape[i];
    for (int i = axis + 1; i < x->rank; i++)
        shape[rank++] = x->shape[i];
    if (idx->known && idx->numel) {
        om_view v = omi_ref(idx).v;
        memcpy(&v.data, &idx->known, sizeof v.data);
        if (omi_index_bad(&v, x->shape[axis], &bad))
            return omi_problem(c, OM_ERR_VALUE,
                               "index %lld is outside axis %d of '%.60s', which is %lld",
                               (long long)bad, axis, x->name, (long long)x->shape[axis]);
    }
    return omi_out_shape(c, 0, rank, shape);
}

typedef struct gather_args {
    om_ref x, idx, y;
    int axis;
    bool check; /* not when the index was known */
} gather_args;

static om_status run_gather(const om_step *s, const om_exec *e) {
    const gather_args *p = s->args;
    om_view x = omi_bind(e, &p->x), idx = omi_bind(e, &p->idx), y = omi_bind(e, &p->y);
    int64_t bad = 0;
    if (p->check && omi_view_numel(&idx) && omi_index_bad(&idx, x.shape[p->axis], &bad))
        return omi_step_fail(s, e, OM_ERR_VALUE, "index %lld is outside axis %d, which is %lld",
                             (long long)bad, p->axis, (long long)x.shape[p->axis]);
    if (omi_view_numel(&y)) omi_gather(&x, &idx, p->axis, &y);
    return OM_OK;
}

/* One known row of the leading axis is a view. */
static bool one_row(const om_nctx *c, int axis, int64_t *offset) {
    const om_pval *x = c->in[0], *idx = c->in[1];
    if (axis != 0 || !idx->known || idx->numel != 1 || !x->numel) return false;
    int64_t i = idx->dtype == OM_I64 ? *(const int64_t *)idx->known : *(const int32_t *)idx->known;
    if (i < 0) i += x->shape[0];
    *offset = i * (x->numel / x->shape[0]) * (int64_t)om_dtype_size((om_dtype)x->dtype);
    return true;
}

om_step *omi_sel_gather(om_nctx *c) {
    int axis       = 0;
    int64_t offset = 0;
    if (gather_axis(c, &axis) != OM_OK) return NULL;
    if (one_row(c, axis, &offset)) return omi_step_view(c, offset);
    om_step *s     = omi_step(c, run_gather, sizeof(gather_args));
    gather_args *a = s ? s->args : NULL;
    if (!a) return NULL;
    a->x     = omi_ref(c->in[0]);
    a->idx   = omi_ref(c->in[1]);
    a->y     = omi_ref(c->out[0]);
    a->axis  = axis;
    a->check = c->in[1]->known == NULL;
    return s;
}

/* ---- Concat -------------------------------------------------------------------------------------
 */

static om_status concat_axis(om_nctx *c, int *axis) {
    int64_t a = 0;
    if (!omi_attr(c->node, "axis"))
        return omi_problem(c, OM_ERR_MALFORMED, "attribute 'axis' is missing");
    OM_TRY(omi_get_int(c, "axis", 0, &a));
    return omi_norm_axis(c, a, c->in[0]->rank, axis);
}

om_status omi_infer_concat(om_nctx *c) {
    int axis = 0;
    int64_t shape[OM_MAX_RANK];
    OM_TRY(omi_arity(c, 1, UINT32_MAX, 1));
    for (uint32_t i = 0; i < c->n_in; i++) {
        if (!c->in[i]) return omi_problem(c, OM_ERR_MALFORMED, "input %u is absent", i);
        OM_TRY(omi_type(c, i, OM_TY_ALL));
        OM_TRY(omi_same_type(c, 0, i));
    }
    OM_TRY(omi_out_type(c, 0, c->in[0]->dtype));
    if (c->types_only) return OM_OK;
    OM_TRY(concat_axis(c, &axis));
    const om_pval *x = c->in[0];
    memcpy(shape, x->shape, sizeof shape);
    for (uint32_t i = 1; i < c->n_in; i++) {
        const om_pval *v = c->in[i];
        bool fits        = v->rank == x->rank;
        for (int k = 0; fits && k < v->rank; k++)
            fits = k == axis || v->shape[k] == x->shape[k];
        if (!fits)
            return omi_problem(c, OM_ERR_SHAPE, "'%.60s' and '%.60s' differ outside axis %d",
                               x->name, v->name, axis);
        if (!omi_add_i64(shape[axis], v->shape[axis], &shape[axis]))
            return omi_problem(c, OM_ERR_LIMIT, "the sizes are too large");
    }
    return omi_out_shape(c, 0, x->rank, shape);
}

typedef struct concat_args {
    uint32_t n;
    om_ref y; /* strides of the whole output */
    int axis;
    om_ref in[];
} concat_args;

static om_status run_concat(const om_step *s, const om_exec *e) {
    const concat_args *p = s->args;
    om_view y            = omi_bind(e, &p->y);
    char *to             = y.data;
    for (uint32_t i = 0; i < p->n; i++) {
        om_view x        = omi_bind(e, &p->in[i]);
        y.data           = to;
        y.shape[p->axis] = x.shape[p->axis];
        if (omi_view_numel(&x)) omi_copy(&x, &y);
        to += x.shape[p->axis] * y.strides[p->axis] * (int64_t)om_dtype_size(y.dtype);
    }
    return OM_OK;
}

om_step *omi_sel_concat(om_nctx *c) {
    if (c->n_in == 1) return omi_step_view(c, 0);
    om_step *s     = omi_step(c, run_concat, sizeof(concat_args) + c->n_in * sizeof(om_ref));
    concat_args *a = s ? s->args : NULL;
    if (!a || concat_axis(c, &a->axis) != OM_OK) return NULL;
    a->n = c->n_in;
    a->y = omi_ref(c->out[0]);
    for (uint32_t i = 0; i < c->n_in; i++)
        a->in[i] = omi_ref(c->in[i]);
    return s;
}

/* ---- Split --------------------------------------------------------------------------------------
 */

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
    OM_TRY(moved_type(c));
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

/* ---- Expand -------------------------------------------------------------------------------------
 */

om_status omi_infer_expand(om_nctx *c) {
    om_ints t;
    OM_TRY(omi_arity(c, 2, 2, 1));
    OM_TRY(moved_type(c));
    if (c->types_only) return OM_OK;
    OM_TRY(omi_operand(c, 1, NULL, 0, &t));
    if (t.n > OM_MAX_RANK)
        return omi_problem(c, OM_ERR_UNSUPPORTED, "the target has rank %d; up to %d are computed",
                           t.n, OM_MAX_RANK);
    om_pval want     = {.name = "target", .rank = t.n};
    om_pval *both[2] = {c->in[0], &want};
    int rank         = 0;
    int64_t shape[OM_MAX_RANK];
    for (int i = 0; i < t.n; i++) {
        if (t.v[i] < 0)
            return omi_problem(c, OM_ERR_SHAPE, "target %d is %lld", i, (long long)t.v[i]);
        want.shape[i] = t.v[i];
    }
    OM_TRY(omi_broadcast(c, 2, both, &rank, shape));
    return omi_out_shape(c, 0, rank, shape);
}

om_step *omi_sel_expand(om_nctx *c) {
    const om_pval *y = c->out[0];
    if (y->numel == c->in[0]->numel) return omi_step_view(c, 0);
    om_view v = omi_ref_as(c->in[0], y->rank, y->shape).v;
    return copy_step(c, &v, 0);
}

/* ---- Pad ----------------------------------------------------------------------------------------
 */

static om_status read_pads(om_nctx *c, int64_t *before, int64_t *after) {
    om_ints pads, axes;
    const om_pval *x = c->in[0];
    uint32_t seen    = 0;
    OM_TRY(omi_operand(c, 1, "pads", 11, &pads));
    OM_TRY(omi_operand(c, 3, NULL, 0, &axes));
    int n = axes.given ? axes.n : x->rank;
    if (!pads.given || pads.n != 2 * n || n > OM_MAX_RANK)
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
    static const char *const modes[] = {"constant", "reflect", "edge", "wrap"};
    int mode                         = 0;
    int64_t before[OM_MAX_RANK], after[OM_MAX_RANK], shape[OM_MAX_RANK];
    OM_TRY(omi_arity(c, 1, 4, 1));
    OM_TRY(omi_get_choice(c, "mode", 4, modes, &mode));
    if (mode != 0)
        return omi_problem(c, OM_ERR_UNSUPPORTED, "mode '%s' has no kernel; 'constant' has",
                           modes[mode]);
    OM_TRY(moved_type(c));
    OM_TRY(omi_same_type(c, 0, 2));
    if (c->types_only) return OM_OK;
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
    uint8_t bytes[8];
} pad_args;

static om_status run_pad(const om_step *s, const om_exec *e) {
    const pad_args *p = s->args;
    om_view x = omi_bind(e, &p->x), y = omi_bind(e, &p->y);
    const void *value = p->value == OM_NO_VALUE ? p->bytes : e->ptr[p->value];
    x.data            = (char *)x.data + p->offset;
    omi_pad_constant(&x, p->before, value, &y);
    return OM_OK;
}

om_step *omi_sel_pad(om_nctx *c) {
    int64_t after[OM_MAX_RANK];
    om_step *s  = omi_step(c, run_pad, sizeof(pad_args));
    pad_args *a = s ? s->args : NULL;
    if (!a || read_pads(c, a->before, after) != OM_OK) return NULL;
    const om_pval *x = c->in[0];
    a->x             = omi_ref(x);
    a->y             = omi_ref(c->out[0]);
    a->value         = c->n_in > 2 && c->in[2] ? c->in[2]->index : OM_NO_VALUE;
    if (c->opset < 11 && x->dtype == OM_F32) {
        float v = 0;
        if (omi_get_float(c, "value", 0, &v) != OM_OK) return NULL;
        memcpy(a->bytes, &v, sizeof v);
    }
    for (int i = 0; i < x->rank; i++) { // a negative pad narrows the input instead
        int64_t front = omi_min64(a->before[i], 0), back = omi_min64(after[i], 0);
        a->x.v.shape[i] += front + back;
        a->offset += -front * a->x.v.strides[i];
        a->before[i] -= front;
    }
    a->offset = x->numel ? a->offset * (int64_t)om_dtype_size((om_dtype)x->dtype) : 0;
    return s;
}

/* ---- Trilu --------------------------------------------------------------------------------------
 */

om_status omi_infer_trilu(om_nctx *c) {
    bool upper = true;
    om_ints k;
    OM_TRY(omi_arity(c, 1, 2, 1));
    OM_TRY(omi_get_flag(c, "upper", true, &upper));
    OM_TRY(moved_type(c));
    if (c->types_only) return OM_OK;
    OM_TRY(omi_operand(c, 1, NULL, 0, &k));
    if (c->in[0]->rank < 2 || (k.given && k.n != 1))
        return omi_problem(c, OM_ERR_SHAPE, "'%.60s' must be matrices and k one number",
                           c->in[0]->name);
    return omi_out_like(c, 0, c->in[0]);
}

typedef struct trilu_args {
    om_ref x, y;
    bool upper;
    int64_t k;
} trilu_args;

static om_status run_trilu(const om_step *s, const om_exec *e) {
    const trilu_args *p = s->args;
    om_view x = omi_bind(e, &p->x), y = omi_bind(e, &p->y);
    if (omi_view_numel(&y)) omi_trilu(&x, p->upper, p->k, &y);
    return OM_OK;
}

om_step *omi_sel_trilu(om_nctx *c) {
    om_ints k;
    om_step *s    = omi_step(c, run_trilu, sizeof(trilu_args));
    trilu_args *a = s ? s->args : NULL;
    if (!a || omi_get_flag(c, "upper", true, &a->upper) != OM_OK ||
        omi_operand(c, 1, NULL, 0, &k) != OM_OK)
        return NULL;
    a->x = omi_ref(c->in[0]);
    a->y = omi_ref(c->out[0]);
    a->k = k.given ? omi_max64(-OM_VALUE_LIMIT, omi_min64(k.v[0], OM_VALUE_LIMIT)) : 0;
    return s;
}

/* ---- TopK ---------------------------------------------------------------------------------------
 */

static om_status read_topk(om_nctx *c, int *axis, int64_t *k, bool *largest) {
    int64_t a = -1;
    om_ints n;
    OM_TRY(omi_get_int(c, "axis", -1, &a));
    OM_TRY(omi_norm_axis(c, a, c->in[0]->rank, axis));
    OM_TRY(omi_get_flag(c, "largest", true, largest));
    OM_TRY(omi_operand(c, 1, "k", 10, &n));
    int64_t size = c->in[0]->shape[*axis];
    if (!n.given || n.n != 1 || n.v[0] < 0 || n.v[0] > size)
        return omi_problem(c, OM_ERR_SHAPE,
                           "k must be one number from 0 to %lld, the size of axis %d",
                           (long long)size, *axis);
    *k = n.v[0];
    return OM_OK;
}

om_status omi_infer_topk(om_nctx *c) {
    int axis  = 0;
    int64_t k = 0, shape[OM_MAX_RANK];
    bool largest;
    OM_TRY(omi_arity(c, 1, 2, 2));
    OM_TRY(omi_type(c, 0, OM_TY_F32 | OM_TY_F64 | OM_TY_INT | OM_TY_U8));
    OM_TRY(omi_out_type(c, 0, c->in[0]->dtype));
    OM_TRY(omi_out_type(c, 1, OM_I64));
    if (c->types_only) return OM_OK;
    OM_TRY(read_topk(c, &axis, &k, &largest));
    memcpy(shape, c->in[0]->shape, sizeof shape);
    shape[axis] = k;
    OM_TRY(omi_out_shape(c, 0, c->in[0]->rank, shape));
    return omi_out_shape(c, 1, c->in[0]->rank, shape);
}

typedef struct topk_args {
    om_ref x, values, indices;
    int axis;
    int64_t k;
    bool largest, scratch; /* scratch: nobody asked for the indices */
    size_t scratch_at;
} topk_args;

static om_status run_topk(const om_step *s, const om_exec *e) {
    const topk_args *p = s->args;
    om_view x = omi_bind(e, &p->x), v = omi_bind(e, &p->values), i = p->indices.v;
    i.data = p->scratch ? (char *)e->ws + p->scratch_at : e->ptr[p->indices.value];
    if (omi_view_numel(&v)) omi_topk(&x, p->axis, p->k, p->largest, &v, &i, e->ws);
    return OM_OK;
}

om_step *omi_sel_topk(om_nctx *c) {
    om_step *s   = omi_step(c, run_topk, sizeof(topk_args));
    topk_args *a = s ? s->args : NULL;
    if (!a || read_topk(c, &a->axis, &a->k, &a->largest) != OM_OK) return NULL;
    a->x        = omi_ref(c->in[0]);
    a->values   = omi_ref(c->out[0]);
    s->ws_bytes = omi_topk_workspace(&a->x.v, a->axis, c->workers);
    a->scratch  = c->n_out < 2 || !c->out[1];
    om_pval idx = a->scratch ? *c->out[0] : *c->out[1];
    idx.dtype   = OM_I64;
    a->indices  = omi_ref(&idx);
    if (a->scratch) {
        a->scratch_at = (s->ws_bytes + 63) / 64 * 64;
        s->ws_bytes   = a->scratch_at + (size_t)idx.numel * sizeof(int64_t);
    }
    return s;
}
