/*
 * create.c -- tensors from the caller's elements and from formulas.
 */
#include "tensor/tensor.h"

#include <string.h>

#include "base/checked.h"
#include "base/opts.h"
#include "base/thread.h"
#include "compute/move.h"

static bool known(om_dtype t) {
    if (om_dtype_size(t)) return true;
    omi_fail(OM_ERR_DTYPE, "element type %d; known are%s", (int)t, omi_dtype_names);
    return false;
}

om_tensor *om_from(const void *data, om_dtype t, int rank, const int64_t *dims) {
    OMI_ENTER("om_from");
    if (omi_failed() || !known(t)) return NULL;
    om_tensor *y = omi_new(t, rank, dims);
    if (!y) return NULL;
    size_t bytes = (size_t)omi_numel(y) * om_dtype_size(t);
    if (!data && bytes) OM_FAIL_NULL(OM_ERR_ARG, "data is NULL for %s", OMI_T(y));
    if (bytes) memcpy(omi_ptr(y), data, bytes);
    if (t == OM_BOOL) // any non-zero byte is true; kernels rely on 0 and 1
        for (size_t i = 0; i < bytes; i++)
            ((uint8_t *)omi_ptr(y))[i] = ((uint8_t *)omi_ptr(y))[i] != 0;
    return y;
}

/* Elements from the first to the last; raised when they cannot be addressed. */
static bool span_of(om_dtype t, int rank, const int64_t *dims, const int64_t *strides,
                    int64_t numel, int64_t *span) {
    *span = numel ? 1 : 0;
    for (int i = 0; i < rank; i++) {
        int64_t reach;
        if (strides[i] < 0)
            return omi_fail(OM_ERR_ARG,
                            "the stride of axis %d is %lld; strides are 0 or more, so copy what "
                            "runs backwards",
                            i, (long long)strides[i]),
                   false;
        if (!numel) continue;
        if (!omi_mul_i64(dims[i] - 1, strides[i], &reach) || !omi_add_i64(*span, reach, span) ||
            *span > INT64_MAX / 16)
            return omi_fail(OM_ERR_SHAPE,
                            "the strides reach further than %s elements can be addressed",
                            om_dtype_name(t)),
                   false;
    }
    return true;
}

/* Kernels rely on 0 and 1, and the bytes are the caller's. */
static bool bools_are_bools(const uint8_t *data, int rank, const int64_t *dims,
                            const int64_t *strides, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        int64_t at = 0, left = i;
        for (int k = rank - 1; k >= 0; left /= dims[k--])
            at += left % dims[k] * strides[k];
        if (data[at] > 1)
            return omi_fail(OM_ERR_VALUE,
                            "byte %lld is %d; a bool is 0 or 1 (om_from makes a copy and takes any "
                            "byte)",
                            (long long)at, data[at]),
                   false;
    }
    return true;
}

/* A tensor over the caller's memory. strides NULL: row-major. */
static om_tensor *over_memory(void *data, om_dtype t, int rank, const int64_t *dims,
                              const int64_t *strides, const om_strided_opts *opts) {
    int64_t n, span, row_major[OM_MAX_RANK];
    if (omi_failed() || !known(t) || omi_check_dims(rank, dims, &n) != OM_OK) return NULL;
    if (!data && n) OM_FAIL_NULL(OM_ERR_ARG, "data is NULL");
    if ((uintptr_t)data % om_dtype_size(t))
        OM_FAIL_NULL(OM_ERR_ARG, "data is not aligned to %zu bytes", om_dtype_size(t));
    omi_strides(rank, dims, row_major);
    if (!strides) strides = row_major;
    if (!span_of(t, rank, dims, strides, n, &span)) return NULL;
    if (t == OM_BOOL && !bools_are_bools(data, rank, dims, strides, n)) return NULL;
    // free_fn must not run when this fails, so it is set once nothing can fail any more.
    om_buffer *b = omi_buffer_wrap(data, (size_t)span * om_dtype_size(t), OM_BUF_USER, NULL, NULL);
    if (!b) return NULL;
    om_tensor *y = omi_from_buffer(b, 0, t, rank, dims);
    if (y) {
        for (int i = rank - 1; i >= 0; i--)
            if (n && dims[i] != 1) y->strides[i] = strides[i];
        b->free_fn   = opts->free_fn;
        b->ctx       = opts->ctx;
        b->read_only = opts->read_only;
    }
    omi_buffer_release(b);
    return y;
}

om_tensor *om_from_buffer(void *data, om_dtype t, int rank, const int64_t *dims,
                          void (*free_fn)(void *, void *), void *ctx) {
    OMI_ENTER("om_from_buffer");
    return over_memory(data, t, rank, dims, NULL,
                       &(om_strided_opts){.free_fn = free_fn, .ctx = ctx});
}

om_tensor *om_from_strided(void *data, om_dtype t, int rank, const int64_t *dims,
                           const int64_t *strides, const om_strided_opts *opts) {
    OMI_ENTER("om_from_strided");
    om_strided_opts own;
    if (omi_failed() || !OMI_OPTS(&own, opts, ctx)) return NULL;
    return over_memory(data, t, rank, dims, strides, &own);
}

om_status omi_check_number(double v, om_dtype t) {
    if (t != OM_I64 || !(v > (double)OMI_EXACT_INT || v < -(double)OMI_EXACT_INT)) return OM_OK;
    return omi_fail(
        OM_ERR_VALUE,
        "%.17g is beyond 2^53, where a double no longer holds every integer; give int64 elements with om_from "
        "or om_scalar_i64",
        v);
}

/* value converted by the rules of a cast from float64 (AR-9.2). */
static om_tensor *filled(double value, om_dtype t, int rank, const int64_t *dims) {
    if (omi_failed() || !known(t) || omi_check_number(value, t) != OM_OK) return NULL;
    om_tensor *y = omi_new(t, rank, dims);
    if (!y) return NULL;
    om_view v = omi_view(y);
    _Alignas(8) uint8_t element[8];
    omi_element_from_double(value, t, element);
    omi_fill(&v, element);
    if (omi_check_cancel() != OM_OK) return NULL;
    return y;
}

om_tensor *om_empty(om_dtype t, int rank, const int64_t *dims) {
    OMI_ENTER("om_empty");
    return filled(0, t, rank, dims);
}
om_tensor *om_zeros(om_dtype t, int rank, const int64_t *dims) {
    OMI_ENTER("om_zeros");
    return filled(0, t, rank, dims);
}
om_tensor *om_ones(om_dtype t, int rank, const int64_t *dims) {
    OMI_ENTER("om_ones");
    return filled(1, t, rank, dims);
}
om_tensor *om_full(double value, om_dtype t, int rank, const int64_t *dims) {
    OMI_ENTER("om_full");
    return filled(value, t, rank, dims);
}

om_tensor *om_scalar_f32(float v) {
    OMI_ENTER("om_scalar_f32");
    om_tensor *y = omi_failed() ? NULL : omi_new(OM_F32, 0, NULL);
    if (y) memcpy(omi_ptr(y), &v, sizeof v);
    return y;
}

om_tensor *om_scalar_i64(int64_t v) {
    OMI_ENTER("om_scalar_i64");
    om_tensor *y = omi_failed() ? NULL : omi_new(OM_I64, 0, NULL);
    if (y) memcpy(omi_ptr(y), &v, sizeof v);
    return y;
}

om_tensor *om_eye(int64_t n, om_dtype t) {
    OMI_ENTER("om_eye");
    om_tensor *y = filled(0, t, 2, (int64_t[]){n, n});
    if (!y) return NULL;
    om_view diagonal = {
        .data = omi_ptr(y), .dtype = t, .rank = 1, .shape = {n}, .strides = {n + 1}};
    _Alignas(8) uint8_t one[8];
    omi_element_from_double(1, t, one);
    omi_fill(&diagonal, one);
    return y;
}

om_tensor *om_arange(int64_t start, int64_t end, int64_t step) {
    OMI_ENTER("om_arange");
    if (omi_failed()) return NULL;
    if (step == 0) OM_FAIL_NULL(OM_ERR_ARG, "step is 0");
    // Differences are taken modulo 2^64, where they are right for any two int64.
    uint64_t span = step > 0 ? (uint64_t)end - (uint64_t)start : (uint64_t)start - (uint64_t)end;
    uint64_t each = step > 0 ? (uint64_t)step : 0 - (uint64_t)step;
    bool none     = step > 0 ? end <= start : end >= start;
    uint64_t n    = none ? 0 : (span - 1) / each + 1;
    if (n > INT64_MAX / 16)
        OM_FAIL_NULL(OM_ERR_SHAPE, "the range has more elements than can be addressed");
    om_tensor *y = omi_new(OM_I64, 1, (int64_t[]){(int64_t)n});
    if (!y) return NULL;
    om_view v = omi_view(y);
    omi_range(&v, &start, &step);
    return omi_check_cancel() == OM_OK ? y : NULL;
}

om_tensor *om_linspace(float start, float end, int64_t n) {
    OMI_ENTER("om_linspace");
    if (omi_failed()) return NULL;
    if (n < 0) OM_FAIL_NULL(OM_ERR_ARG, "n is %lld; 0 or more is wanted", (long long)n);
    om_tensor *y = omi_new(OM_F32, 1, (int64_t[]){n});
    if (!y) return NULL;
    // Each value is rounded once from float64, the ends exact.
    float *p = omi_ptr(y);
    for (int64_t i = 0; i < n; i++) {
        double t = n > 1 ? (double)i / (double)(n - 1) : 0;
        p[i]     = (float)((double)start * (1 - t) + (double)end * t);
    }
    return y;
}
