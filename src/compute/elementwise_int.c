/*
 * elementwise_int.c -- float64, int64, int32, uint8 and bool loops by AR-9: integer arithmetic
 * wraps and is done unsigned, division truncates, MIN / -1 is MIN, x / 0 is 0 (callers have refused
 * it).
 */
#include "compute/elementwise_int.h"

#include <math.h>

#include "base/dtype.h"

double omi_max_f64(double a, double b) {
    if (a != a || b != b) return (double)NAN;
    return a > b ? a : b > a ? b : signbit(a) ? b : a;
}
double omi_min_f64(double a, double b) {
    if (a != a || b != b) return (double)NAN;
    return a < b ? a : b < a ? b : signbit(a) ? a : b;
}

/* ---- unary --------------------------------------------------------------------------------- */

#define UNARY(name, type, expr)                                                                    \
    static void name(int64_t n, const void *xv, void *yv) {                                        \
        const type *x = xv;                                                                        \
        type *y       = yv;                                                                        \
        for (int64_t i = 0; i < n; i++) {                                                          \
            type v = x[i];                                                                         \
            y[i]   = (type)(expr);                                                                 \
        }                                                                                          \
    }
UNARY(neg_f64, double, v != v ? (double)NAN : -v)
UNARY(abs_f64, double, v != v ? (double)NAN : fabs(v))
UNARY(sqrt_f64, double, sqrt(v))
UNARY(relu_f64, double, 0.0 > v ? 0.0 : v)
UNARY(reciprocal_f64, double, 1.0 / v)
UNARY(neg_i64, int64_t, 0 - (uint64_t)v)
UNARY(abs_i64, int64_t, v < 0 ? 0 - (uint64_t)v : (uint64_t)v)
UNARY(neg_i32, int32_t, 0 - (uint32_t)v)
UNARY(abs_i32, int32_t, v < 0 ? 0 - (uint32_t)v : (uint32_t)v)
UNARY(neg_u8, uint8_t, 0 - v)
UNARY(same_u8, uint8_t, v)
UNARY(relu_i64, int64_t, v < 0 ? 0 : v)
UNARY(relu_i32, int32_t, v < 0 ? 0 : v)
UNARY(not_bool, uint8_t, v == 0)

omi_unary_plain_fn omi_unary_plain(om_unary_kind k, om_dtype t) {
    switch (k) {
    case OM_U_NEG:
        return t == OM_F64   ? neg_f64
               : t == OM_I64 ? neg_i64
               : t == OM_I32 ? neg_i32
               : t == OM_U8  ? neg_u8
                             : NULL;
    case OM_U_ABS:
        return t == OM_F64   ? abs_f64
               : t == OM_I64 ? abs_i64
               : t == OM_I32 ? abs_i32
               : t == OM_U8  ? same_u8
                             : NULL;
    case OM_U_RELU:
        return t == OM_F64   ? relu_f64
               : t == OM_I64 ? relu_i64
               : t == OM_I32 ? relu_i32
               : t == OM_U8  ? same_u8
                             : NULL;
    case OM_U_SQRT:
        return t == OM_F64 ? sqrt_f64 : NULL;
    case OM_U_RECIPROCAL:
        return t == OM_F64 ? reciprocal_f64 : NULL;
    case OM_U_NOT:
        return t == OM_BOOL ? not_bool : NULL;
    default:
        return NULL;
    }
}

/* ---- binary -------------------------------------------------------------------------------- */

#define BINARY(name, type, out, expr)                                                              \
    static void name(int64_t n, const void *av, int sa, const void *bv, int sb, void *yv) {        \
        const type *a = av, *b = bv;                                                               \
        out *r = yv;                                                                               \
        if (sa && sb)                                                                              \
            for (int64_t i = 0; i < n; i++) {                                                      \
                type x = a[i], y = b[i];                                                           \
                r[i] = (out)(expr);                                                                \
            }                                                                                      \
        else                                                                                       \
            for (int64_t i = 0; i < n; i++) {                                                      \
                type x = a[sa ? i : 0], y = b[sb ? i : 0];                                         \
                r[i] = (out)(expr);                                                                \
            }                                                                                      \
    }

#define COMPARISONS(t, type)                                                                       \
    BINARY(equal_##t, type, uint8_t, x == y)                                                       \
    BINARY(less_##t, type, uint8_t, x < y)                                                         \
    BINARY(less_equal_##t, type, uint8_t, x <= y)                                                  \
    BINARY(greater_##t, type, uint8_t, x > y)                                                      \
    BINARY(greater_equal_##t, type, uint8_t, x >= y)                                               \
    BINARY(not_equal_##t, type, uint8_t, x != y)

#define INTEGERS(t, type, utype)                                                                   \
    BINARY(add_##t, type, type, (utype)x + (utype)y)                                               \
    BINARY(sub_##t, type, type, (utype)x - (utype)y)                                               \
    BINARY(mul_##t, type, type, (utype)x *(utype)y)                                                \
    BINARY(max_##t, type, type, x > y ? x : y)                                                     \
    BINARY(min_##t, type, type, x < y ? x : y)                                                     \
    COMPARISONS(t, type)

INTEGERS(i64, int64_t, uint64_t)
INTEGERS(i32, int32_t, uint32_t)
INTEGERS(u8, uint8_t, uint32_t)
BINARY(div_i64, int64_t, int64_t, y == 0 ? 0 : y == -1 ? (int64_t)(0 - (uint64_t)x) : x / y)
BINARY(div_i32, int32_t, int32_t, y == 0 ? 0 : y == -1 ? (int32_t)(0 - (uint32_t)x) : x / y)
BINARY(div_u8, uint8_t, uint8_t, y == 0 ? 0 : x / y)

BINARY(add_f64, double, double, x + y)
BINARY(sub_f64, double, double, x - y)
BINARY(mul_f64, double, double, x *y)
BINARY(div_f64, double, double, x / y)
BINARY(max_f64, double, double, omi_max_f64(x, y))
BINARY(min_f64, double, double, omi_min_f64(x, y))
COMPARISONS(f64, double)

BINARY(and_bool, uint8_t, uint8_t, (x != 0) & (y != 0))
BINARY(or_bool, uint8_t, uint8_t, (x | y) != 0)
BINARY(xor_bool, uint8_t, uint8_t, (x != 0) != (y != 0))
BINARY(equal_bool, uint8_t, uint8_t, (x != 0) == (y != 0))

// clang-format off
/* The loops of one numeric type by kind; NULL for kinds of bools. */
#define PLAIN_VALUE(ID, kernel, name, t)    [OM_B_##ID] = kernel##_##t,
#define PLAIN_COMPARE(ID, kernel, name, t)  [OM_B_##ID] = name##_##t,
#define PLAIN_SWAPPED(ID, kernel, name, t)  [OM_B_##ID] = name##_##t,
#define PLAIN_INVERTED(ID, kernel, name, t) [OM_B_##ID] = name##_##t,
#define PLAIN_NONE(ID, kernel, name, t)
static const omi_binary_plain_fn loops_f64[OM_B_COUNT] = {
#define OM_BINARY(name, OP, ID, types, result, saves, backward, loop, kernel, made, node, since, node_types, gradient) PLAIN_##loop(ID, kernel, name, f64)
#include "compute/binary.def"
#undef OM_BINARY
};
static const omi_binary_plain_fn loops_i64[OM_B_COUNT] = {
#define OM_BINARY(name, OP, ID, types, result, saves, backward, loop, kernel, made, node, since, node_types, gradient) PLAIN_##loop(ID, kernel, name, i64)
#include "compute/binary.def"
#undef OM_BINARY
};
static const omi_binary_plain_fn loops_i32[OM_B_COUNT] = {
#define OM_BINARY(name, OP, ID, types, result, saves, backward, loop, kernel, made, node, since, node_types, gradient) PLAIN_##loop(ID, kernel, name, i32)
#include "compute/binary.def"
#undef OM_BINARY
};
static const omi_binary_plain_fn loops_u8[OM_B_COUNT] = {
#define OM_BINARY(name, OP, ID, types, result, saves, backward, loop, kernel, made, node, since, node_types, gradient) PLAIN_##loop(ID, kernel, name, u8)
#include "compute/binary.def"
#undef OM_BINARY
};
static const omi_binary_plain_fn loops_bool[OM_B_COUNT] = {
    [OM_B_AND] = and_bool, [OM_B_OR] = or_bool, [OM_B_XOR] = xor_bool,
    [OM_B_EQUAL] = equal_bool, [OM_B_NOT_EQUAL] = xor_bool};
// clang-format on

omi_binary_plain_fn omi_binary_plain(om_binary_kind k, om_dtype t) {
    if ((uint32_t)k >= OM_B_COUNT) return NULL;
    switch (t) {
    case OM_F64:
        return loops_f64[k];
    case OM_I64:
        return loops_i64[k];
    case OM_I32:
        return loops_i32[k];
    case OM_U8:
        return loops_u8[k];
    case OM_BOOL:
        return loops_bool[k];
    default:
        return NULL;
    }
}

/* ---- clip ---------------------------------------------------------------------------------- */

#define CLIP(type, max, min)                                                                       \
    do {                                                                                           \
        const type *s = x;                                                                         \
        type *d = y, l = lo ? *(const type *)lo : 0, h = hi ? *(const type *)hi : 0;               \
        for (int64_t i = 0; i < n; i++) {                                                          \
            type v = s[i];                                                                         \
            if (lo) v = max(v, l);                                                                 \
            if (hi) v = min(v, h);                                                                 \
            d[i] = v;                                                                              \
        }                                                                                          \
    } while (0)
#define MAX2(a, b) ((a) > (b) ? (a) : (b))
#define MIN2(a, b) ((a) < (b) ? (a) : (b))

void omi_clip_plain(om_dtype t, int64_t n, const void *x, const void *lo, const void *hi, void *y) {
    switch (t) {
    case OM_F64:
        CLIP(double, omi_max_f64, omi_min_f64);
        break;
    case OM_I64:
        CLIP(int64_t, MAX2, MIN2);
        break;
    case OM_I32:
        CLIP(int32_t, MAX2, MIN2);
        break;
    case OM_U8:
        CLIP(uint8_t, MAX2, MIN2);
        break;
    default:
        omi_no_type();
    }
}
