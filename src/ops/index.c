/*
 * index.c -- operators that take a part: Slice, Select, IndexSelect, Split, TopK.
 *
 * Slices forward and selections are views; a slice backwards copies, because tensors have no
 * negative strides. Records keep the index as written (TD-2): -1 and size-1 are the same element
 * here and different ones in a graph with symbolic sizes. Gradients are +0 with the incoming
 * gradient added into the window or to the indices, in row-major order of the index (AR-11.2).
 *
 * Needs: op.h, compute/move.
 */
#include "base/checked.h"
#include "base/str.h"
#include "base/thread.h"
#include "compute/move.h"
#include "compute/scatter.h"
#include "ops/op.h"

/* A zero gradient for input 0 of r. */
static om_tensor *zero_grad(const om_record *r, const om_tensor *g) {
    int rank;
    const int64_t *shape = omi_in_shape(r, 0, &rank);
    return omi_new_zero((om_dtype)g->dtype, rank, shape);
}

/* ---- Slice ----------------------------------------------------------------------------------- */

/* NumPy's rules. OM_END is the open end in either direction. */
static int64_t slice_count(int64_t n, int64_t *start, int64_t end, int64_t step) {
    int64_t low = step > 0 ? 0 : -1, high = step > 0 ? n : n - 1, s = *start;
    if (s < 0) s = s < -n ? low : s + n;
    s = omi_min64(omi_max64(s, low), high);
    if (end == OM_END)
        end = step > 0 ? n : -1;
    else {
        if (end < 0) end = end < -n ? low : end + n;
        end = omi_min64(omi_max64(end, low), high);
    }
    *start = s;
    if (step > 0) return end <= s ? 0 : (end - s - 1) / step + 1;
    if (s <= end) return 0;
    // -(step + 1) cannot overflow where -step could.
    uint64_t width = (uint64_t) - (step + 1) + 1;
    return (int64_t)((uint64_t)(s - end - 1) / width) + 1;
}

static om_status slice_backward(const om_record *r, om_tensor *const *dy, om_tensor **dx) {
    const om_slice_res *res = r->res;
    om_tensor *d            = zero_grad(r, dy[0]);
    if (!d) return omi_pending_status;
    om_view g = omi_view(dy[0]);
    om_view w = omi_narrow(omi_view(d), (int)res->axis, res->start, res->count, res->step);
    omi_accumulate(&g, &w);
    dx[0] = d;
    return OM_OK;
}

om_tensor *om_slice(om_tensor *x, int axis, int64_t start, int64_t end, int64_t step) {
    OMI_ENTER("om_slice");
    om_slice_raw raw = {axis, start, end, step};
    int a;
    if (!omi_args1(x) || omi_axis(axis, x->rank, &a) != OM_OK) return NULL;
    if (step == 0) OM_FAIL_NULL(OM_ERR_ARG, "%s: the step is 0; it must not be", OMI_T(x));
    int64_t n = x->shape[a], count = slice_count(n, &start, end, step);
    if (count <= 1) step = 1; // also keeps a huge step out of the strides
    if (count == n && step == 1 && !omi_traced(x)) return omi_file(x); // TD-20: else recorded
    om_tensor *y = NULL;
    if (step > 0) {
        y = omi_narrowed(x, a, start, count, step);
    } else {
        int64_t shape[OM_MAX_RANK];
        memcpy(shape, x->shape, sizeof shape);
        shape[a] = count;
        if ((y = omi_new((om_dtype)x->dtype, x->rank, shape))) {
            om_view from = omi_narrow(omi_view(x), a, start, count, step), to = omi_view(y);
            omi_copy(&from, &to);
        }
    }
    if (!y) return NULL;
    om_slice_res res = {a, start, count, step};
    return omi_record1(OM_OP_SLICE, &raw, &res, 1, &x, y, slice_backward, 0);
}

/* ---- Select ---------------------------------------------------------------------------------- */

/* v without an axis, at one index of it. */
static om_view dropped_axis(om_view v, int axis, int64_t index) {
    v = omi_narrow(v, axis, index, 1, 1);
    return omi_view_without(&v, axis);
}

static om_status select_backward(const om_record *r, om_tensor *const *dy, om_tensor **dx) {
    const om_select_res *res = r->res;
    om_tensor *d             = zero_grad(r, dy[0]);
    if (!d) return omi_pending_status;
    om_view g = omi_view(dy[0]);
    om_view w = dropped_axis(omi_view(d), (int)res->axis, res->index);
    omi_accumulate(&g, &w);
    dx[0] = d;
    return OM_OK;
}

om_tensor *om_select(om_tensor *x, int axis, int64_t index) {
    OMI_ENTER("om_select");
    int a;
    if (!omi_args1(x) || omi_axis(axis, x->rank, &a) != OM_OK) return NULL;
    int64_t n = x->shape[a], at = index < 0 ? index + n : index;
    if (at < 0 || at >= n)
        OM_FAIL_NULL(OM_ERR_ARG, "%s: index %lld along axis %d; it must be -%lld to %lld", OMI_T(x),
                     (long long)index, a, (long long)n, (long long)n - 1);
    om_view v    = dropped_axis(omi_view(x), a, at);
    om_tensor *y = omi_view_of(x, v.rank, v.shape, v.strides, x->offset + at * x->strides[a]);
    if (!y) return NULL;
    om_select_raw raw = {axis, index};
    om_select_res res = {a, at};
    return omi_record1(OM_OP_SELECT, &raw, &res, 1, &x, y, select_backward, 0);
}

/* ---- IndexSelect ----------------------------------------------------------------------------- */

static om_status index_select_backward(const om_record *r, om_tensor *const *dy, om_tensor **dx) {
    const om_index_select_res *res = r->res;
    if (!omi_needs(r, 0)) return OM_OK;
    om_tensor *d = zero_grad(r, dy[0]);
    if (!d) return omi_pending_status;
    om_view to = omi_view(d), idx = omi_view(omi_saved_in(r, 1)), g = omi_view(dy[0]);
    omi_index_add(&to, &idx, (int)res->axis, &g, -1);
    dx[0] = d;
    return OM_OK;
}

om_tensor *omi_gathered(om_tensor *x, om_tensor *idx, int axis) {
    int64_t shape[OM_MAX_RANK];
    int64_t bad;
    int rank = x->rank + idx->rank - 1;
    if (!omi_need_dtype(idx, OMI_TYPE_INDEX)) return NULL;
    if (rank > OM_MAX_RANK)
        OM_FAIL_NULL(OM_ERR_SHAPE, "%s indexed by %s: the result would have more than %d axes",
                     OMI_T(x), OMI_T(idx), OM_MAX_RANK);
    om_view iv = omi_view(idx), xv = omi_view(x);
    if (omi_index_bad(&iv, x->shape[axis], &bad))
        OM_FAIL_NULL(OM_ERR_VALUE, "%s holds index %lld; axis %d of %s takes -%lld to %lld",
                     OMI_T(idx), (long long)bad, axis, OMI_T(x), (long long)x->shape[axis],
                     (long long)x->shape[axis] - 1);
    memcpy(shape, x->shape, (size_t)axis * sizeof *shape);
    memcpy(shape + axis, idx->shape, (size_t)idx->rank * sizeof *shape);
    memcpy(shape + axis + idx->rank, x->shape + axis + 1,
           (size_t)(x->rank - axis - 1) * sizeof *shape);
    if (omi_check_dims(rank, shape, &(int64_t){0}) != OM_OK) return NULL;
    om_tensor *y = omi_new((om_dtype)x->dtype, rank, shape);
    if (!y) return NULL;
    om_view yv = omi_view(y);
    omi_gather(&xv, &iv, axis, &yv);
    return y;
}

om_tensor *om_index_select(om_tensor *x, int axis, om_tensor *idx) {
    OMI_ENTER("om_index_select");
    int a;
    if (!omi_arg(x, "x") || !omi_arg(idx, "idx") || omi_axis(axis, x->rank, &a) != OM_OK)
        return NULL;
    om_tensor *y = omi_gathered(x, idx, a);
    if (!y) return NULL;
    om_tensor *in[2]        = {x, idx};
    om_index_select_raw raw = {.axis = axis};
    om_index_select_res res = {.axis = a};
    return omi_record1(OM_OP_INDEX_SELECT, &raw, &res, 2, in, y, index_select_backward,
                       OM_SAVE_IN(1));
}

/* ---- Split ----------------------------------------------------------------------------------- */

static om_status split_backward(const om_record *r, om_tensor *const *dy, om_tensor **dx) {
    const om_split_res *res = r->res;
    int rank;
    const int64_t *shape = omi_in_shape(r, 0, &rank);
    om_tensor *d         = NULL;
    int64_t start        = 0;
    for (uint32_t i = 0; i < r->n_out; i++) {
        if (!dy[i]) continue;
        if (!d && !(d = omi_new((om_dtype)dy[i]->dtype, rank, shape))) return omi_pending_status;
    }
    for (uint32_t i = 0; d && i < r->n_out; start += res->sizes.v[i++]) {
        om_view to = omi_narrow(omi_view(d), (int)res->axis, start, res->sizes.v[i], 1);
        if (dy[i]) {
            om_view g = omi_view(dy[i]);
            omi_copy(&g, &to);
        } else {
            omi_fill(&to, &(double){0});
        }
    }
    dx[0] = d;
    return OM_OK;
}

static om_status split_sizes(om_tensor *x, int axis, int n, const int64_t *sizes) {
    int64_t sum = 0;
    char text[128];
    for (int i = 0; i < n; i++)
        if (sizes[i] < 0 || !omi_add_i64(sum, sizes[i], &sum))
            return omi_fail(OM_ERR_ARG, "%s: piece %d has size %lld; sizes must be >= 0", OMI_T(x),
                            i, (long long)sizes[i]);
    if (sum == x->shape[axis]) return OM_OK;
    return omi_fail(OM_ERR_SHAPE, "%s: pieces %s sum to %lld; they must sum to axis %d, %lld",
                    OMI_T(x), omi_shape_text(text, sizeof text, n < 16 ? n : 16, sizes),
                    (long long)sum, axis, (long long)x->shape[axis]);
}

om_status om_split(om_tensor *x, int axis, int n, const int64_t *sizes, om_tensor **out) {
    OMI_ENTER("om_split");
    int64_t start = 0;
    int a;
    if (out)
        for (int i = 0; i < n; i++)
            out[i] = NULL;
    if (!omi_args1(x)) return omi_pending_status;
    if (n < 1 || !sizes || !out)
        return omi_fail(OM_ERR_ARG, "%s: %d pieces; give one or more, their sizes and their slots",
                        OMI_T(x), n);
    OM_TRY(omi_axis(axis, x->rank, &a));
    OM_TRY(split_sizes(x, a, n, sizes));
    for (int i = 0; i < n; start += sizes[i++])
        if (!(out[i] = omi_narrowed(x, a, start, sizes[i], 1))) break;
    if (!omi_failed()) {
        om_split_raw raw = {.axis = axis, .sizes = {n, sizes}};
        om_split_res res = {.axis = a, .sizes = {n, sizes}};
        om_call call     = {.op       = OM_OP_SPLIT,
                            .name     = "om_split",
                            .raw      = &raw,
                            .res      = &res,
                            .n_in     = 1,
                            .n_out    = (uint32_t)n,
                            .in       = &x,
                            .out      = out,
                            .backward = split_backward};
        omi_record(&call);
    }
    for (int i = 0; omi_failed() && i < n; i++)
        out[i] = NULL;
    return omi_pending_status;
}

/* ---- TopK ------------------------------------------------------------------------------------ */

static om_status top_k_backward(const om_record *r, om_tensor *const *dy, om_tensor **dx) {
    const om_top_k_res *res = r->res;
    if (!dy[0]) return OM_OK;
    om_tensor *d = zero_grad(r, dy[0]);
    if (!d) return omi_pending_status;
    om_view to = omi_view(d), idx = omi_view(omi_saved_out(r, 1)), g = omi_view(dy[0]);
    omi_scatter_add(&to, &idx, (int)res->axis, &g);
    dx[0] = d;
    return OM_OK;
}

static om_status top_k_run(om_tensor *x, int64_t k, int axis, bool smallest, om_tensor **out) {
    int64_t shape[OM_MAX_RANK];
    omi_work work;
    memcpy(shape, x->shape, sizeof shape);
    shape[axis] = k;
    if (!(out[0] = omi_new((om_dtype)x->dtype, x->rank, shape)) ||
        !(out[1] = omi_new(OM_I64, x->rank, shape)))
        return omi_pending_status;
    om_view xv = omi_view(x), vv = omi_view(out[0]), iv = omi_view(out[1]);
    if (!omi_work_get(&work, omi_topk_workspace(&xv, axis, omi_workers())))
        return omi_pending_status;
    omi_topk(&xv, axis, k, !smallest, &vv, &iv, work.data);
    omi_work_put(&work);
    return OM_OK;
}

om_status om_top_k(om_tensor *x, int64_t k, int axis, bool smallest, om_tensor **values,
                   om_tensor **indices) {
    OMI_ENTER("om_top_k");
    om_tensor *out[2] = {NULL, NULL};
    int a;
    if (values) *values = NULL;
    if (indices) *indices = NULL;
    if (!omi_args1(x) || !omi_need_dtype(x, OMI_TYPE_NUM)) return omi_pending_status;
    OM_TRY(omi_axis(axis, x->rank, &a));
    if (k < 0 || k > x->shape[a])
        return omi_fail(OM_ERR_ARG, "%s: k is %lld; axis %d holds %lld elements", OMI_T(x),
                        (long long)k, a, (long long)x->shape[a]);
    OM_TRY(top_k_run(x, k, a, smallest, out));
    om_top_k_raw raw = {.k = k, .axis = axis, .smallest = smallest};
    om_top_k_res res = {.axis = a};
    om_call call     = {.op        = OM_OP_TOP_K,
                        .name      = "om_top_k",
                        .raw       = &raw,
                        .res       = &res,
                        .n_in      = 1,
                        .n_out     = 2,
                        .save_mask = OM_SAVE_OUT(1),
                        .in        = &x,
                        .out       = out,
                        .backward  = top_k_backward};
    OM_TRY(omi_record(&call));
    if (values) *values = out[0];
    if (indices) *indices = out[1];
    return OM_OK;
}
