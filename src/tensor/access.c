/*
 * access.c -- where user code reads and writes elements: every function here asks the trace seam.
 */
#include <math.h>
#include <string.h>

#include "base/thread.h"
#include "compute/elementwise.h"
#include "compute/move.h"
#include "tensor/seam.h"

/* ---- shape ---------------------------------------------------------------------------------- */

int om_rank(const om_tensor *t) {
    return t && omi_alive(t) ? t->rank : 0;
}

int64_t om_dim(const om_tensor *t, int axis) {
    if (!t || !omi_alive(t)) return 1;
    int a = axis < 0 ? axis + t->rank : axis;
    if (OM_LIKELY(a >= 0 && a < t->rank)) return t->shape[a];
    OMI_ENTER("om_dim"); // only now: sizes are read inside other calls' arguments
    omi_axis(axis, t->rank, &a);
    return 1;
}

const int64_t *om_shape_of(const om_tensor *t) {
    return t && omi_alive(t) ? t->shape : NULL;
}
const int64_t *om_strides_of(const om_tensor *t) {
    return t && omi_alive(t) && t->layout == OM_STRIDED ? t->strides : NULL;
}
int64_t om_numel(const om_tensor *t) {
    return t && omi_alive(t) ? omi_numel(t) : 0;
}
om_dtype om_dtype_of(const om_tensor *t) {
    return t && omi_alive(t) ? (om_dtype)t->dtype : OM_DTYPE_NONE;
}
bool om_is_contiguous(const om_tensor *t) {
    return t && omi_alive(t) && !t->layout && omi_contiguous(t);
}
uint64_t om_id(const om_tensor *t) {
    return t && omi_alive(t) ? t->id : 0;
}
const char *om_name(const om_tensor *t) {
    return t && omi_alive(t) ? t->name : NULL;
}

void om_set_name(om_tensor *t, const char *name) {
    OMI_ENTER("om_set_name");
    if (!omi_alive(t)) return;
    const char *own = t && name ? omi_name_new(name) : NULL;
    if (!t || (name && !own)) return;
    omi_name_release(t->name);
    t->name = own;
}

/* ---- reading -------------------------------------------------------------------------------- */

const void *om_data(const om_tensor *t) {
    OMI_ENTER("om_data");
    if (!t || omi_check_arg(t, "the tensor") != OM_OK) return NULL;
    if (omi_seam_read(t, OM_READ_DATA) != OM_OK) return NULL;
    if (!omi_contiguous(t))
        OM_FAIL_NULL(OM_ERR_STATE, "%s is a strided view; call om_contiguous first", OMI_T(t));
    return omi_ptr(t);
}

void *om_data_mut(om_tensor *t) {
    OMI_ENTER("om_data_mut");
    if (!t || omi_check_arg(t, "the tensor") != OM_OK) return NULL;
    if (omi_seam_write(t, OM_WRITE_DATA) != OM_OK) return NULL;
    if (omi_seam_read(t, OM_READ_DATA) != OM_OK) return NULL; // the pointer reads too
    if (!omi_contiguous(t))
        OM_FAIL_NULL(OM_ERR_STATE, "%s is a strided view; write to its base or to a copy",
                     OMI_T(t));
    return omi_ptr_mut(t, "om_data_mut");
}

static const void *one_element(const om_tensor *t) {
    if (!t || omi_check_arg(t, "the tensor") != OM_OK) return NULL;
    if (omi_seam_read(t, OM_READ_ITEM) != OM_OK) return NULL;
    if (omi_numel(t) != 1)
        OM_FAIL_NULL(OM_ERR_SHAPE, "%s has not one element; reduce or select first", OMI_T(t));
    return omi_ptr(t);
}

double om_item_f64(const om_tensor *t) {
    OMI_ENTER("om_item_f64");
    const void *p = one_element(t);
    return p ? omi_element_to_double(p, (om_dtype)t->dtype) : NAN;
}

float om_item_f32(const om_tensor *t) {
    OMI_ENTER("om_item_f32");
    const void *p = one_element(t);
    if (!p) return NAN;
    if (omi_type_bit((om_dtype)t->dtype) & OM_SET_INTEGER) // rounded once
        return (float)omi_element_to_int(p, (om_dtype)t->dtype);
    return (float)omi_element_to_double(p, (om_dtype)t->dtype);
}

int64_t om_item_i64(const om_tensor *t) {
    OMI_ENTER("om_item_i64");
    const void *p = one_element(t);
    if (!p) return 0;
    if (omi_type_bit((om_dtype)t->dtype) & (OM_SET_INTEGER | OM_SET_BOOL))
        return omi_element_to_int(p, (om_dtype)t->dtype);
    omi_fail(OM_ERR_DTYPE, "%s is no integer; use om_cast or om_item_f64", OMI_T(t));
    return 0;
}

om_status om_copy_out(const om_tensor *t, void *dst, size_t bytes) {
    OMI_ENTER("om_copy_out");
    OM_TRY(omi_check_arg(t, "the tensor"));
    OM_TRY(omi_seam_read(t, OM_READ_COPY_OUT));
    size_t want = (size_t)omi_numel(t) * om_dtype_size((om_dtype)t->dtype);
    if (!dst && want)
        return omi_fail(OM_ERR_ARG, "the buffer is NULL; %s needs one of %zu bytes", OMI_T(t),
                        want);
    if (bytes < want)
        return omi_fail(OM_ERR_ARG, "%s needs %zu bytes, the buffer has %zu", OMI_T(t), want,
                        bytes);
    om_view from = omi_view(t), to = from;
    to.data = dst;
    omi_view_pack_strides(&to);
    if (want) omi_copy(&from, &to);
    return omi_check_cancel();
}

/* Offset of t[index], or raises. */
static om_status locate(const om_tensor *t, const int64_t *index, int64_t *out) {
    int64_t at = t->offset;
    if (t->rank && !index) return omi_fail(OM_ERR_ARG, "index is NULL");
    for (int i = 0; i < t->rank; i++) {
        int64_t k = index[i] < 0 ? index[i] + t->shape[i] : index[i];
        if (k < 0 || k >= t->shape[i])
            return omi_fail(OM_ERR_ARG, "index %lld on axis %d of %s", (long long)index[i], i,
                            OMI_T(t));
        at += k * t->strides[i];
    }
    *out = at;
    return OM_OK;
}

double om_get(const om_tensor *t, const int64_t *index) {
    OMI_ENTER("om_get");
    int64_t at;
    if (!t || omi_check_arg(t, "the tensor") != OM_OK || omi_seam_read(t, OM_READ_ITEM) != OM_OK ||
        locate(t, index, &at) != OM_OK)
        return NAN;
    size_t size   = om_dtype_size((om_dtype)t->dtype);
    const char *p = (char *)t->storage->buf->data + (size_t)at * size;
    int64_t i64   = 0;
    if (t->dtype == OM_I64) memcpy(&i64, p, sizeof i64);
    if (i64 > OMI_EXACT_INT || i64 < -OMI_EXACT_INT) {
        omi_fail(
            OM_ERR_VALUE,
            "%s holds %lld there, which a double may not hold; read it with om_item_i64 of om_select",
            OMI_T(t), (long long)i64);
        return NAN;
    }
    return omi_element_to_double(p, (om_dtype)t->dtype);
}

/* ---- writing -------------------------------------------------------------------------------- */

/* CD-3: what may be changed in place. */
static om_status check_in_place(om_tensor *t, om_write_kind k) {
    OM_TRY(omi_check_arg(t, "the tensor"));
    OM_TRY(omi_check_cancel());
    OM_TRY(omi_seam_write(t, k));
    if (omi_needs_grad_hook && omi_needs_grad_hook(t))
        return omi_fail(
            OM_ERR_STATE,
            "%s needs gradients and would be changed in place; do it with gradients off, "
            "or compute a new tensor",
            OMI_T(t));
    return OM_OK;
}

/* A tensor whose elements share memory with themselves cannot be written element by element. */
static om_status check_no_overlap(const om_tensor *t) {
    // From the smallest stride on, each must step over all that those before it reach.
    int axis[OM_MAX_RANK], n = 0;
    for (int i = 0; i < t->rank; i++) {
        if (t->shape[i] == 0) return OM_OK;
        if (t->shape[i] == 1) continue;
        int k = n++;
        for (; k && t->strides[axis[k - 1]] > t->strides[i]; k--)
            axis[k] = axis[k - 1];
        axis[k] = i;
    }
    int64_t reach = 0;
    for (int k = 0; k < n; k++) {
        if (t->strides[axis[k]] <= reach)
            return omi_fail(OM_ERR_STATE,
                            "%s is a view whose elements share memory (expanded, or strided over "
                            "itself); write to what it views or to a copy",
                            OMI_T(t));
        reach += (t->shape[axis[k]] - 1) * t->strides[axis[k]];
    }
    return OM_OK;
}

/* A write that has begun ends, whatever the cancel flag says. */
static void copy_whole(const om_view *from, const om_view *to) {
    bool was = omi_hold_cancel(true);
    omi_copy(from, to);
    omi_hold_cancel(was);
}

om_status om_set(om_tensor *t, const int64_t *index, double v) {
    OMI_ENTER("om_set");
    int64_t at;
    OM_TRY(check_in_place(t, OM_WRITE_SET));
    OM_TRY(check_no_overlap(t));
    OM_TRY(locate(t, index, &at));
    OM_TRY(omi_check_number(v, (om_dtype)t->dtype));
    if (!omi_ptr_mut(t, "om_set")) return omi_pending_status;
    size_t size = om_dtype_size((om_dtype)t->dtype);
    omi_element_from_double(v, (om_dtype)t->dtype,
                            (char *)t->storage->buf->data + (size_t)at * size);
    return OM_OK;
}

om_status om_fill_(om_tensor *t, double v) {
    OMI_ENTER("om_fill_");
    OM_TRY(check_in_place(t, OM_WRITE_FILL));
    OM_TRY(omi_check_number(v, (om_dtype)t->dtype));
    if (!omi_ptr_mut(t, "om_fill_")) return omi_pending_status;
    _Alignas(8) uint8_t element[8];
    omi_element_from_double(v, (om_dtype)t->dtype, element);
    om_view to = omi_view(t);
    bool was   = omi_hold_cancel(true);
    omi_fill(&to, element);
    omi_hold_cancel(was);
    return OM_OK;
}

static om_status check_source(om_tensor *t, om_tensor *from) {
    OM_TRY(omi_check_arg(from, "the source"));
    if (from->dtype != t->dtype)
        return omi_fail(OM_ERR_DTYPE, "%s into %s; convert it with om_cast", OMI_T(from), OMI_T(t));
    bool fits = from->rank <= t->rank;
    for (int i = 0; fits && i < from->rank; i++) {
        int64_t have = from->shape[i], want = t->shape[t->rank - from->rank + i];
        fits = have == want || have == 1;
    }
    if (!fits) return omi_fail(OM_ERR_SHAPE, "%s does not broadcast to %s", OMI_T(from), OMI_T(t));
    if (from->record && omi_needs_grad_hook && omi_needs_grad_hook(from))
        return omi_fail(
            OM_ERR_STATE,
            "%s has a gradient to give, which a write in place would cut; write om_detach of it",
            OMI_T(from));
    return check_no_overlap(t);
}

/* What a write reads must not be what it changes. A copy (filed in the scope) when storages are
 * equal. */
static om_tensor *apart(om_tensor *t, om_tensor *from) {
    if (from->storage != t->storage) return from;
    om_tensor *copy = omi_new_like(from);
    if (!copy) return NULL;
    om_view a = omi_view(from), b = omi_view(copy);
    omi_copy(&a, &b);
    return omi_check_cancel() == OM_OK ? copy : NULL;
}

om_status om_copy_(om_tensor *t, om_tensor *from) {
    OMI_ENTER("om_copy_");
    OM_TRY(check_in_place(t, OM_WRITE_COPY_IN));
    OM_TRY(check_source(t, from));
    // Copying a traced value into an untraced tensor would take it out of the trace's sight.
    OM_TRY(omi_seam_take(from));
    om_tensor *source = from;
    from              = apart(t, from);
    if (!from || !omi_ptr_mut(t, "om_copy_")) return omi_pending_status;
    om_view src = omi_view(from), dst = omi_view(t);
    src = omi_view_broadcast(&src, t->rank, t->shape);
    copy_whole(&src, &dst);
    omi_spread_marks(t, source);
    return OM_OK;
}

om_status om_add_(om_tensor *t, om_tensor *other) {
    OMI_ENTER("om_add_");
    OM_TRY(check_in_place(t, OM_WRITE_INPLACE_OP));
    OM_TRY(check_source(t, other));
    OM_TRY(omi_seam_take(other));
    if (!omi_binary_supports(OM_B_ADD, (om_dtype)t->dtype))
        return omi_fail(OM_ERR_DTYPE, "%s cannot be added; use om_or", OMI_T(t));
    om_scope s     = om_scope_begin();
    om_tensor *sum = omi_new_like(t);
    if (!sum || !omi_ptr_mut(t, "om_add_")) return om_scope_end(s);
    om_view a = omi_view(t), b = omi_view(other), y = omi_view(sum);
    b = omi_view_broadcast(&b, t->rank, t->shape);
    omi_binary(OM_B_ADD, &a, &b, &y);
    if (omi_check_cancel() != OM_OK) return om_scope_end(s);
    copy_whole(&y, &a);
    omi_spread_marks(t, other);
    return om_scope_end(s);
}

om_status om_mul_scalar_(om_tensor *t, float v) {
    OMI_ENTER("om_mul_scalar_");
    OM_TRY(check_in_place(t, OM_WRITE_INPLACE_OP));
    OM_TRY(check_no_overlap(t));
    if (t->dtype != OM_F32)
        return omi_fail(OM_ERR_DTYPE, "%s; float32 is wanted (om_cast)", OMI_T(t));
    om_scope s         = om_scope_begin();
    om_tensor *product = omi_new_like(t);
    if (!product || !omi_ptr_mut(t, "om_mul_scalar_")) return om_scope_end(s);
    om_view a = omi_view(t), y = omi_view(product);
    om_view b = {.data = &v, .dtype = OM_F32, .rank = 0};
    b         = omi_view_broadcast(&b, t->rank, t->shape);
    omi_binary(OM_B_MUL, &a, &b, &y);
    if (omi_check_cancel() == OM_OK) copy_whole(&y, &a);
    return om_scope_end(s);
}
