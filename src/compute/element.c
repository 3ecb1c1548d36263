/*
 * element.c -- one element of any type from and to float64, by the casts of AR-9.2.
 */
#include <string.h>

#include "compute/move.h"

/* Toward zero, saturating, NaN to 0. The bounds are powers of two, so the comparisons are exact. */
static int64_t saturate(double v, double lo, double hi, int64_t min, int64_t max) {
    if (v != v) return 0;
    if (v >= hi) return max;
    if (v <= lo) return min;
    return (int64_t)v;
}

void omi_element_from_double(double v, om_dtype t, void *element) {
    float f32;
    int64_t i64;
    int32_t i32;
    uint8_t u8;
    switch (t) {
    case OM_F32:
        f32 = (float)v;
        memcpy(element, &f32, sizeof f32);
        break;
    case OM_F64:
        memcpy(element, &v, sizeof v);
        break;
    case OM_I64:
        i64 = saturate(v, -0x1p63, 0x1p63, INT64_MIN, INT64_MAX);
        memcpy(element, &i64, sizeof i64);
        break;
    case OM_I32:
        i32 = (int32_t)saturate(v, -0x1p31, 0x1p31 - 1, INT32_MIN, INT32_MAX);
        memcpy(element, &i32, sizeof i32);
        break;
    case OM_U8:
        u8 = (uint8_t)saturate(v, 0, 255, 0, 255);
        memcpy(element, &u8, sizeof u8);
        break;
    case OM_BOOL:
        *(uint8_t *)element = v != 0;
        break;
    default:
        break;
    }
}

double omi_element_to_double(const void *element, om_dtype t) {
    float f32;
    double f64;
    int64_t i64;
    int32_t i32;
    switch (t) {
    case OM_F32:
        memcpy(&f32, element, sizeof f32);
        return (double)f32;
    case OM_F64:
        memcpy(&f64, element, sizeof f64);
        return f64;
    case OM_I64:
        memcpy(&i64, element, sizeof i64);
        return (double)i64;
    case OM_I32:
        memcpy(&i32, element, sizeof i32);
        return i32;
    case OM_U8:
    case OM_BOOL:
        return *(const uint8_t *)element;
    default:
        return 0;
    }
}
