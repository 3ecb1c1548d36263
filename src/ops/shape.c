/*
 * shape.c -- operators that change how elements are seen, not what they are: Reshape, Permute,
 * Squeeze, Unsqueeze, Expand, Contiguous, Clone, Detach.
 *
 * Views share the storage of their input and still record, so that gradients and traces follow
 * them. What would only repeat its input returns the same handle (CD-2): a reshape or expand to the
 * same shape, contiguous of a contiguous tensor. Of a traced tensor only what repeats it at every
 * size: the rest is recorded with its raw arguments, and the tracer decides (TD-20). Records keep
 * the sizes the caller wrote, -1 included (TD-2). Flatten and Transpose are written as the Reshape
 * and the Permute they are.
 *
 * Needs: op.h, compute/move.
 */
#include "base/str.h"
#include "compute/move.h"
#include "ops/op.h"

#include <stdio.h>

/* ---- views without a record ------------------------------------------------------------------ */

om_tensor *omi_new_zero(om_dtype t, int rank, const int64_t *shape) {
    om_tensor *z = omi_new(t, rank, shape);
    if (z) memset(omi_ptr(z), 0, (size_t)omi_numel(z) * om_dtype_size(t));
    return z;
}

/* Strides that show t's elements in another shape, or false when no strides can. Axes that lie
 * behind each other in memory are joined first; then each new axis must divide what is left of a
 * joined one. */
static bool reshape_strides(const om_tensor *t, int rank, const int64_t *shape, int64_t *out) {
    int64_t size[OM_MAX_RANK], stride[OM_MAX_RANK];
    int n = 0;
    omi_strides(rank, shape, out);
    if (omi_numel(t) == 0) return true;
    for (int i = 0; i < t->rank; i++) {
        if (t->shape[i] == 1) continue;
        if (n > 0 && stride[n - 1] == t->strides[i] * t->shape[i])
            size[n - 1] *= t->shape[i];
        else
            size[n++] = t->shape[i];
        stride[n - 1] = t->strides[i];
    }
    if (n == 0) return true;
    int64_t left = size[--n], step = stride[n];
    for (int i = rank - 1; i >= 0; i--) {
        if (shape[i] == 1) continue;
        if (left == 1) left = size[--n], step = stride[n];
        if (left % shape[i] != 0) return false;
        out[i] = step;
        step *= shape[i];
        left /= shape[i];
    }
    return true;
}

om_tensor *omi_reshaped(om_tensor *t, int rank, const int64_t *shape) {
    int64_t strides[OM_MAX_RANK];
    if (!reshape_strides(t, rank, shape, strides)) {
        if (!(t = omi_pack(t))) return NULL;
        omi_strides(rank, shape, strides);
    }
    return omi_view_of(t, rank, shape, strides, t->offset);
}

om_tensor *omi_narrowed(om_tensor *t, int axis, int64_t start, int64_t count, int64_t step) {
    int64_t shape[OM_MAX_RANK], strides[OM_MAX_RANK], offset = t->offset;
    memcpy(shape, t->shape, sizeof shape);
    memcpy(strides, t->strides, sizeof strides);
    if (count > 0) offset += start * strides[axis];
    if (count > 1) strides[axis] *= step;
    shape[axis] = count;
    return omi_view_of(t, t->rank, shape, strides, offset);
}

static bool shape_is(const om_tensor *t, int rank, const int64_t *shape) {
    return t->rank == rank &&
           (rank == 0 || memcmp(t->shape, shape, (size_t)rank * sizeof *shape) == 0);
}

/* ---- Reshape, Flatten ------------------------------------------------------------------------ */

static om_status reshape_backward(const om_record *r, om_tensor *const *dy, om_tensor **dx) {
    int rank;
    const int64_t *shape = omi_in_shape(r, 0, &rank);
    dx[0]                = omi_reshaped(dy[0], rank, shape);
    return omi_pending_status;
}

static bool bad_target(om_tensor *x, int rank, const int64_t *dims, const char *why) {
    char text[128];
    omi_fail(OM_ERR_SHAPE, "%s to %s: %s", OMI_T(x), omi_shape_text(text, sizeof text, rank, dims),
             why);
    return false;
}

/* The sizes a target with at most one -1 stands for. Text is made only for errors: this runs in
 * every reshape. */
static bool resolve_target(om_tensor *x, int rank, const int64_t *dims, int64_t *shape) {
    int64_t numel = omi_numel(x), known = 1;
    int open = -1;
    if (rank > 0 && !dims) {
        omi_fail(OM_ERR_ARG,
                 "the sizes to reshape %s to are NULL; OM_DIMS(...) gives rank and sizes",
                 OMI_T(x));
        return false;
    }
    if (rank < 0 || rank > OM_MAX_RANK) {
        omi_fail(OM_ERR_SHAPE, "%s to rank %d: the rank must be 0 to %d", OMI_T(x), rank,
                 OM_MAX_RANK);
        return false;
    }
    for (int i = 0; i < rank; i++) {
        shape[i] = dims[i];
        if (dims[i] == -1 && open < 0) {
            open     = i;
            shape[i] = 1;
        } else if (dims[i] < 0)
            return bad_target(x, rank, dims, "sizes must be >= 0, and one at most may be -1");
    }
    if (omi_check_dims(rank, shape, &known) != OM_OK) return false;
    if (open >= 0 && known == 0)
        return bad_target(x, rank, dims, "-1 has no one meaning beside a size 0; write the size");
    if (open >= 0) {
        shape[open] = numel / known;
        known *= shape[open];
    }
    if (known == numel) return true;
    char why[80];
    snprintf(why, sizeof why, "it has %lld elements; the sizes must multiply to that",
             (long long)numel);
    return bad_target(x, rank, dims, why);
}

/* joined: the target is the first axes of x as they are, and one that joins the rest. Traced, also
 * a reshape to the same sizes is recorded: it may be another one at other sizes (TD-20). */
static om_tensor *reshape_recorded(om_tensor *x, int rank, const int64_t *dims, bool joined) {
    int64_t shape[OM_MAX_RANK] = {0};
    if (!resolve_target(x, rank, dims, shape)) return NULL;
    if (shape_is(x, rank, shape) && !omi_traced(x)) return omi_file(x);
    om_tensor *y = omi_reshaped(x, rank, shape);
    if (!y) return NULL;
    om_reshape_raw raw = {.target = {rank, dims}, .joined = joined};
    return omi_record1(OM_OP_RESHAPE, &raw, NULL, 1, &x, y, reshape_backward, 0);
}

om_tensor *om_reshape(om_tensor *x, int rank, const int64_t *dims) {
    OMI_ENTER("om_reshape");
    return omi_args1(x) ? reshape_recorded(x, rank, dims, false) : NULL;
}

om_tensor *om_flatten(om_tensor *x, int from_axis) {
    OMI_ENTER("om_flatten");
    int64_t dims[OM_MAX_RANK];
    int64_t kept = 1;
    int axis;
    if (!omi_args1(x) || omi_axis(from_axis, x->rank ? x->rank : 1, &axis) != OM_OK) return NULL;
    if (axis + 1 == x->rank) return omi_file(x); // nothing to join, at any size
    for (int i = 0; i < axis; i++)
        kept *= dims[i] = x->shape[i];
    // The joined axis is "whatever is left", written as -1. Beside a size 0, -1 means
    // nothing, so there the size itself is written.
    dims[axis] = -1;
    if (kept == 0) {
        dims[axis] = 1;
        for (int i = axis; i < x->rank; i++)
            dims[axis] *= x->shape[i];
    }
    return reshape_recorded(x, axis + 1, dims, true);
}

/* ---- Permute, Transpose ---------------------------------------------------------------------- */

static om_tensor *permuted(om_tensor *t, const int64_t *perm) {
    int64_t shape[OM_MAX_RANK], strides[OM_MAX_RANK];
    for (int i = 0; i < t->rank; i++) {
        shape[i]   = t->shape[perm[i]];
        strides[i] = t->strides[perm[i]];
    }
    return omi_view_of(t, t->rank, shape, strides, t->offset);
}

static om_status permute_backward(const om_record *r, om_tensor *const *dy, om_tensor **dx) {
    const om_permute_res *res = r->res;
    int64_t inverse[OM_MAX_RANK];
    for (int64_t i = 0; i < res->perm.n; i++)
        inverse[res->perm.v[i]] = i;
    dx[0] = permuted(dy[0], inverse);
    return omi_pending_status;
}

static om_tensor *permute_recorded(om_tensor *x, const int64_t *raw_perm, const int64_t *perm) {
    om_tensor *y = permuted(x, perm);
    if (!y) return NULL;
    om_permute_raw raw = {.perm = {x->rank, raw_perm}};
    om_permute_res res = {.perm = {x->rank, perm}};
    return omi_record1(OM_OP_PERMUTE, &raw, &res, 1, &x, y, permute_backward, 0);
}

om_tensor *om_permute(om_tensor *x, int rank, const int64_t *perm) {
    OMI_ENTER("om_permute");
    int64_t axes[OM_MAX_RANK];
    uint32_t seen = 0;
    if (!omi_args1(x)) return NULL;
    if (rank != x->rank || (rank > 0 && !perm))
        OM_FAIL_NULL(OM_ERR_ARG, "%s: %d axes were given; name each of its %d axes once", OMI_T(x),
                     rank, x->rank);
    for (int i = 0; i < rank; i++) {
        axes[i] = perm[i] < 0 ? perm[i] + rank : perm[i];
        if (axes[i] < 0 || axes[i] >= rank || (seen >> axes[i] & 1))
            OM_FAIL_NULL(OM_ERR_ARG, "%s: entry %d of the permutation is %lld; name each axis once",
                         OMI_T(x), i, (long long)perm[i]);
        seen |= 1u << axes[i];
    }
    return permute_recorded(x, perm, axes);
}

om_tensor *om_transpose(om_tensor *x, int axis_a, int axis_b) {
    OMI_ENTER("om_transpose");
    int64_t perm[OM_MAX_RANK];
    int a, b;
    if (!omi_args1(x) || omi_axis(axis_a, x->rank, &a) != OM_OK ||
        omi_axis(axis_b, x->rank, &b) != OM_OK)
        return NULL;
    for (int i = 0; i < x->rank; i++)
        perm[i] = i == a ? b : i == b ? a : i;
    return permute_recorded(x, perm, perm);
}

/* ---- Squeeze, Unsqueeze ---------------------------------------------------------------------- */

/* Bit mask of a list of axes counted among n; raises for a wrong or repeated one. */
static bool squeezed_axes(om_tensor *x, int n_axes, const int64_t *axes, int n, uint32_t *mask) {
    *mask = 0;
    if (n_axes < 0 || n_axes > OM_MAX_RANK || (n_axes > 0 && !axes)) {
        omi_fail(OM_ERR_ARG, "%s: a list of %d axes; give 0 to %d of them", OMI_T(x), n_axes,
                 OM_MAX_RANK);
        return false;
    }
    for (int i = 0; i < n_axes; i++) {
        int64_t a = axes[i] < 0 ? axes[i] + n : axes[i];
        if (a < 0 || a >= n || (*mask >> a & 1)) {
            omi_fail(OM_ERR_ARG, "%s: axis %lld is %s; axes here are -%d to %d, each at most once",
                     OMI_T(x), (long long)axes[i], a < 0 || a >= n ? "out of range" : "named twice",
                     n, n - 1);
            return false;
        }
        *mask |= 1u << a;
    }
    return true;
}

om_tensor *om_squeeze(om_tensor *x, int n, const int64_t *axes) {
    OMI_ENTER("om_squeeze");
    om_squeeze_raw raw = {.axes = {n, axes}};
    int64_t all[OM_MAX_RANK], shape[OM_MAX_RANK], strides[OM_MAX_RANK];
    uint32_t mask;
    int rank = 0;
    if (!omi_args1(x)) return NULL;
    if (n == 0) { // every axis of size 1, now: the record keeps that none was named (TD-22)
        for (int i = 0; i < x->rank; i++)
            if (x->shape[i] == 1) all[n++] = i;
        axes = all;
    }
    if (!squeezed_axes(x, n, axes, x->rank, &mask)) return NULL;
    if (mask == 0 && !omi_traced(x)) return omi_file(x);
    for (int i = 0; i < x->rank; i++) {
        if (!(mask >> i & 1)) {
            shape[rank]     = x->shape[i];
            strides[rank++] = x->strides[i];
        } else if (x->shape[i] != 1) {
            OM_FAIL_NULL(OM_ERR_SHAPE, "%s: axis %d has size %lld; only axes of size 1 can go",
                         OMI_T(x), i, (long long)x->shape[i]);
        }
    }
    om_tensor *y = omi_view_of(x, rank, shape, strides, x->offset);
    if (!y) return NULL;
    return omi_record1(OM_OP_SQUEEZE, &raw, NULL, 1, &x, y, reshape_backward, 0);
}

om_tensor *om_unsqueeze(om_tensor *x, int n, const int64_t *axes) {
    OMI_ENTER("om_unsqueeze");
    int64_t shape[OM_MAX_RANK], strides[OM_MAX_RANK];
    uint32_t mask;
    if (!omi_args1(x)) return NULL;
    if (n == 0) return omi_file(x);
    if (n > OM_MAX_RANK - x->rank)
        OM_FAIL_NULL(OM_ERR_SHAPE, "%s and %d new axes: the rank must stay within %d", OMI_T(x), n,
                     OM_MAX_RANK);
    int rank = x->rank + n;
    if (!squeezed_axes(x, n, axes, rank, &mask)) return NULL;
    for (int i = 0, from = 0; i < rank; i++) {
        shape[i]   = mask >> i & 1 ? 1 : x->shape[from];
        strides[i] = mask >> i & 1 ? 1 : x->strides[from];
        from += !(mask >> i & 1);
    }
    om_tensor *y = omi_view_of(x, rank, shape, strides, x->offset);
    if (!y) return NULL;
    om_unsqueeze_raw raw = {.axes = {n, axes}};
    return omi_record1(OM_OP_UNSQUEEZE, &raw, NULL, 1, &x, y, reshape_backward, 0);
}

/* ---- Expand ---------------------------------------------------------------------------------- */

static om_status expand_backward(const om_record *r, om_tensor *const *dy, om_tensor **dx) {
    dx[0] = omi_unbroadcast_to(dy[0], r, 0);
    return omi_pending_status;
}

static om_tensor *expanded(om_tensor *x, int rank, const int64_t *shape) {
    int64_t strides[OM_MAX_RANK];
    int d = rank - x->rank;
    for (int i = 0; i < rank; i++) {
        int64_t own = i < d ? 1 : x->shape[i - d];
        if (own != shape[i] && own != 1) {
            char text[128];
            OM_FAIL_NULL(OM_ERR_SHAPE,
                         "%s to %s: axis %d has size %lld; only sizes 1 can be expanded", OMI_T(x),
                         omi_shape_text(text, sizeof text, rank, shape), i - d, (long long)own);
        }
        strides[i] = own != shape[i] || i < d ? 0 : x->strides[i - d];
    }
    return omi_view_of(x, rank, shape, strides, x->offset);
}

om_tensor *om_expand(om_tensor *x, int rank, const int64_t *dims) {
    OMI_ENTER("om_expand");
    int64_t shape[OM_MAX_RANK];
    if (!omi_args1(x)) return NULL;
    if (rank < x->rank || rank > OM_MAX_RANK || (rank > 0 && !dims))
        OM_FAIL_NULL(OM_ERR_SHAPE, "%s to rank %d: give a size for each axis, %d to %d of them",
                     OMI_T(x), rank, x->rank, OM_MAX_RANK);
    for (int i = 0, d = rank - x->rank; i < rank; i++) {
        shape[i] = dims[i] == -1 && i >= d ? x->shape[i - d] : dims[i];
        if (shape[i] < 0)
            OM_FAIL_NULL(OM_ERR_SHAPE,
                         "%s: size %d of the target is %lld; sizes are >= 0, or -1 to keep an axis "
                         "that exists",
                         OMI_T(x), i, (long long)dims[i]);
    }
    if (omi_check_dims(rank, shape, &(int64_t){0}) != OM_OK) return NULL;
    if (shape_is(x, rank, shape) && !omi_traced(x)) return omi_file(x);
    om_tensor *y = expanded(x, rank, shape);
    if (!y) return NULL;
    om_expand_raw raw = {.target = {rank, dims}};
    return omi_record1(OM_OP_EXPAND, &raw, NULL, 1, &x, y, expand_backward, 0);
}

om_tensor *om_expand_as(om_tensor *x, om_tensor *like) {
    OMI_ENTER("om_expand_as");
    if (!omi_arg(x, "x") || !omi_arg(like, "like")) return NULL;
    if (like->rank < x->rank)
        OM_FAIL_NULL(OM_ERR_SHAPE, "%s has more axes than %s; an expansion cannot drop axes",
                     OMI_T(x), OMI_T(like));
    if (omi_same_shape(x, like) && !omi_traced(x) && !omi_traced(like)) return omi_file(x);
    om_tensor *y = expanded(x, like->rank, like->shape);
    if (!y) return NULL;
    om_tensor *in[2] = {x, like};
    return omi_record1(OM_OP_EXPAND_AS, NULL, NULL, 2, in, y, expand_backward, 0);
}

/* ---- Contiguous, Clone, Detach --------------------------------------------------------------- */

static om_status same_backward(const om_record *r, om_tensor *const *dy, om_tensor **dx) {
    (void)r;
    dx[0] = dy[0];
    return OM_OK;
}

static om_tensor *copy_recorded(om_op op, om_tensor *x) {
    om_tensor *y = omi_new_like(x);
    if (!y) return NULL;
    om_view from = omi_view(x), to = omi_view(y);
    omi_copy(&from, &to);
    return omi_record1(op, NULL, NULL, 1, &x, y, same_backward, 0);
}

om_tensor *om_contiguous(om_tensor *x) {
    OMI_ENTER("om_contiguous");
    if (!omi_args1(x)) return NULL;
    return omi_contiguous(x) ? omi_file(x) : copy_recorded(OM_OP_CONTIGUOUS, x);
}

om_tensor *om_clone(om_tensor *x) {
    OMI_ENTER("om_clone");
    return omi_args1(x) ? copy_recorded(OM_OP_CLONE, x) : NULL;
}

om_tensor *om_detach(om_tensor *x) {
    OMI_ENTER("om_detach");
    if (!omi_args1(x)) return NULL;
    // A traced tensor stays itself: the trace has no gradients to cut (TR-1).
    if (omi_traced(x)) return omi_file(x);
    om_tensor *y = omi_detached(x);
    return y ? omi_file_owned(y) : NULL;
}
