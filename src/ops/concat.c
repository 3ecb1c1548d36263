/*
 * concat.c -- Concat, Stack and Pad: results put together from whole inputs.
 *
 * Each input is copied once into its window of the result; the gradient of an input is its window
 * of the incoming gradient, a view. Stack is a composite of Unsqueeze and Concat and is traced
 * through them.
 *
 * Needs: op.h, compute/move.
 */
#include "base/checked.h"
#include "compute/move.h"
#include "ops/op.h"

/* ---- Concat, Stack --------------------------------------------------------------------------- */

static om_status concat_backward(const om_record *r, om_tensor *const *dy, om_tensor **dx) {
    const om_concat_res *res = r->res;
    int64_t start            = 0;
    for (uint32_t i = 0; i < r->n_in; i++) {
        int rank;
        int64_t n = omi_in_shape(r, i, &rank)[res->axis];
        if (omi_needs(r, i) && !(dx[i] = omi_narrowed(dy[0], (int)res->axis, start, n, 1)))
            return omi_pending_status;
        start += n;
    }
    return OM_OK;
}

/* Every input must be the first one but for its size along the axis, which is added up. */
static bool concat_shape(int n, om_tensor *const *xs, int axis, int64_t *shape) {
    om_tensor *first = xs[0];
    memcpy(shape, first->shape, sizeof first->shape);
    for (int i = 1; i < n; i++) {
        om_tensor *x = xs[i];
        bool fits    = x->rank == first->rank;
        if (!omi_same_dtype(first, x)) return false;
        for (int a = 0; fits && a < x->rank; a++)
            fits = a == axis || x->shape[a] == first->shape[a];
        if (!fits) {
            omi_fail(OM_ERR_SHAPE,
                     "%s (first) and %s (number %d) do not join along axis %d: all other sizes "
                     "must be equal",
                     OMI_T(first), OMI_T(x), i + 1, axis);
            return false;
        }
        if (!omi_add_i64(shape[axis], x->shape[axis], &shape[axis])) {
            omi_fail(OM_ERR_SHAPE, "%s joined with %s: the size overflows", OMI_T(first), OMI_T(x));
            return false;
        }
    }
    return omi_check_dims(first->rank, shape, &(int64_t){0}) == OM_OK;
}

static bool concat_args(int n, om_tensor *const *xs) {
    if (omi_failed()) return false;
    if (n < 1 || !xs) {
        omi_fail(OM_ERR_ARG, "%d tensors were given; give one or more", n);
        return false;
    }
    for (int i = 0; i < n; i++)
        if (!omi_arg(xs[i], "xs[i]")) return false;
    return true;
}

om_tensor *om_concat(int n, om_tensor *const *xs, int axis) {
    OMI_ENTER("om_concat");
    int64_t shape[OM_MAX_RANK];
    int64_t start = 0;
    int a;
    if (!concat_args(n, xs)) return NULL;
    if (xs[0]->rank == 0)
        OM_FAIL_NULL(OM_ERR_SHAPE, "%s has no axis to join along; use om_stack", OMI_T(xs[0]));
    if (omi_axis(axis, xs[0]->rank, &a) != OM_OK || !concat_shape(n, xs, a, shape)) return NULL;
    om_tensor *y = omi_new((om_dtype)xs[0]->dtype, xs[0]->rank, shape);
    if (!y) return NULL;
    for (int i = 0; i < n; i++) {
        om_view from = omi_view(xs[i]);
        om_view to   = omi_narrow(omi_view(y), a, start, from.shape[a], 1);
        omi_copy(&from, &to);
        start += from.shape[a];
    }
    om_concat_raw raw = {.axis = axis};
    om_concat_res res = {.axis = a};
    return omi_record1(OM_OP_CONCAT, &raw, &res, (uint32_t)n, xs, y, concat_backward, 0);
}

om_tensor *om_stack(int n, om_tensor *const *xs, int axis) {
    OMI_ENTER("om_stack");
    int64_t at[1] = {axis};
    int a;
    if (!concat_args(n, xs)) return NULL;
    for (int i = 1; i < n; i++)
        if (!omi_same_shape(xs[0], xs[i]))
            OM_FAIL_NULL(OM_ERR_SHAPE, "%s (first) and %s (number %d) do not stack: shapes differ",
                         OMI_T(xs[0]), OMI_T(xs[i]), i + 1);
    if (omi_axis(axis, xs[0]->rank + 1, &a) != OM_OK) return NULL;
    om_tensor **rows = omi_alloc((size_t)n * sizeof *rows);
    if (!rows) return NULL;
    om_scope s = om_scope_begin();
    for (int i = 0; i < n; i++)
        rows[i] = om_unsqueeze(xs[i], 1, at);
    om_tensor *y = om_scope_return(s, omi_failed() ? NULL : om_concat(n, rows, axis));
    omi_free(rows, (size_t)n * sizeof *rows);
    return y;
}

/* ---- Pad ------------------------------------------------------------------------------------- */

static om_status pad_backward(const om_record *r, om_tensor *const *dy, om_tensor **dx) {
    const om_pad_raw *raw = r->raw;
    int rank;
    const int64_t *shape = omi_in_shape(r, 0, &rank);
    om_tensor *g         = dy[0];
    for (int i = 0; g && i < rank; i++)
        if (g->shape[i] != shape[i]) g = omi_narrowed(g, i, raw->before.v[i], shape[i], 1);
    dx[0] = g;
    return omi_pending_status;
}

om_tensor *om_pad(om_tensor *x, int rank, const int64_t *before, const int64_t *after,
                  double value) {
    OMI_ENTER("om_pad");
    int64_t shape[OM_MAX_RANK];
    _Alignas(8) uint8_t element[8];
    if (!omi_args1(x)) return NULL;
    if (rank != x->rank || (rank > 0 && (!before || !after)))
        OM_FAIL_NULL(OM_ERR_ARG, "%s: pads for %d axes were given; give both lists for all %d",
                     OMI_T(x), rank, x->rank);
    for (int i = 0; i < rank; i++) {
        if (before[i] < 0 || after[i] < 0)
            OM_FAIL_NULL(OM_ERR_ARG, "%s: pads %lld and %lld of axis %d; use om_slice to crop",
                         OMI_T(x), (long long)before[i], (long long)after[i], i);
        if (!omi_add_i64(x->shape[i], before[i], &shape[i]) ||
            !omi_add_i64(shape[i], after[i], &shape[i]))
            OM_FAIL_NULL(OM_ERR_SHAPE, "%s: the pads of axis %d overflow its size", OMI_T(x), i);
    }
    if (omi_check_dims(rank, shape, &(int64_t){0}) != OM_OK) return NULL;
    om_tensor *y = omi_new((om_dtype)x->dtype, rank, shape);
    if (!y) return NULL;
    om_view from = omi_view(x), to = omi_view(y);
    omi_element_from_double(value, (om_dtype)x->dtype, element);
    omi_pad_constant(&from, before, element, &to);
    om_pad_raw raw = {.value = value, .before = {rank, before}, .after = {rank, after}};
    return omi_record1(OM_OP_PAD, &raw, NULL, 1, &x, y, pad_backward, 0);
}
