/*
 * element.c -- one element of any type from and to float64, by the casts of AR-9.2, and as an
 * integer.
 */
#include <string.h>

#include "base/dtype.h"
#include "compute/move.h"

/* Toward zero, saturating, NaN to 0. The bounds are powers of two, so the comparisons are exact. */
static int64_t saturate(double v, double lo, double hi, int64_t min, int64_t max) {
    if (v != v) return 0;
    if (v >= hi) return max;
    if (v <= lo) return min;
    return (int64_t)v;
}

#define FROM_FLOAT(type, bits) (type) v
#define FROM_SIGNED(type, bits)                                                                    \
    (type) saturate(v, -(double)(1ull << ((bits)-1)), (double)(1ull << ((bits)-1)),                \
                    INT##bits##_MIN, INT##bits##_MAX)
#define FROM_UNSIGNED(type, bits)                                                                  \
    (type) saturate(v, 0, (double)(1ull << (bits)), 0, UINT##bits##_MAX)
#define FROM_BOOL(type, bits) v != 0

#define OM_DTYPE_STORED(number, ONNX, bits, group, class, field, entries)

void omi_element_from_double(double v, om_dtype t, void *element) {
    switch (t) {
#define OM_DTYPE(ID, number, ONNX, name, bits, class, type, npy, field)                            \
    case OM_##ID: {                                                                                \
        type e = FROM_##class(type, bits);                                                         \
        memcpy(element, &e, sizeof e);                                                             \
    } break;
#include "base/dtype.def"
#undef OM_DTYPE
    default:
        omi_no_type();
    }
}

double omi_element_to_double(const void *element, om_dtype t) {
    switch (t) {
#define OM_DTYPE(ID, number, ONNX, name, bits, class, type, npy, field)                            \
    case OM_##ID: {                                                                                \
        type e;                                                                                    \
        memcpy(&e, element, sizeof e);                                                             \
        return (double)e;                                                                          \
    }
#include "base/dtype.def"
#undef OM_DTYPE
    default:
        return omi_no_type(), 0;
    }
}

int64_t omi_element_to_int(const void *element, om_dtype t) {
    switch (t) {
#define TO_FLOAT(e)    (omi_no_type(), 0)
#define TO_SIGNED(e)   (e)
#define TO_UNSIGNED(e) ((int64_t)(e))
#define TO_BOOL(e)     (e)
#define OM_DTYPE(ID, number, ONNX, name, bits, class, type, npy, field)                            \
    case OM_##ID: {                                                                                \
        type e;                                                                                    \
        memcpy(&e, element, sizeof e);                                                             \
        return TO_##class(e);                                                                      \
    }
#include "base/dtype.def"
#undef OM_DTYPE
    default:
        return omi_no_type(), 0;
    }
}
