/*
 * cast.c -- conversions between element types (AR-9.2): float to integer truncates and saturates,
 * NaN gives 0; integers keep their low bits; anything but 0 is true, NaN too; the rest is one
 * rounding.
 */
#include "compute/elementwise.h"

#include "compute/map.h"

OM_INLINE int64_t to_i64(double v) {
    if (v != v) return 0;
    return v >= 0x1p63 ? INT64_MAX : v <= -0x1p63 ? INT64_MIN : (int64_t)v;
}
OM_INLINE int32_t to_i32(double v) {
    if (v != v) return 0;
    return v >= 2147483647.0 ? INT32_MAX : v <= -2147483648.0 ? INT32_MIN : (int32_t)v;
}
OM_INLINE uint8_t to_u8(double v) {
    return !(v > 0.0) ? 0 : v >= 255.0 ? 255 : (uint8_t)v;
}

typedef void (*cast_fn)(int64_t n, const void *x, void *y);

#define CAST(from, to, tx, ty, expr)                                                               \
    static void from##_to_##to(int64_t n, const void *xv, void *yv) {                              \
        const tx *x = xv;                                                                          \
        ty *y       = yv;                                                                          \
        for (int64_t i = 0; i < n; i++) {                                                          \
            tx v = x[i];                                                                           \
            y[i] = (ty)(expr);                                                                     \
        }                                                                                          \
    }
#define CASTS(from, tx, as64, as32, as8)                                                           \
    CAST(from, f32, tx, float, v)                                                                  \
    CAST(from, f64, tx, double, v)                                                                 \
    CAST(from, i64, tx, int64_t, as64)                                                             \
    CAST(from, i32, tx, int32_t, as32)                                                             \
    CAST(from, u8, tx, uint8_t, as8)                                                               \
    CAST(from, b8, tx, uint8_t, v != 0)
CASTS(f32, float, to_i64((double)v), to_i32((double)v), to_u8((double)v))
CASTS(f64, double, to_i64(v), to_i32(v), to_u8(v))
CASTS(i64, int64_t, v, (uint32_t)v, (uint64_t)v)
CASTS(i32, int32_t, v, v, (uint32_t)v)
CASTS(u8, uint8_t, v, v, v)
CASTS(b8, uint8_t, v != 0, v != 0, v != 0)

static int type_row(om_dtype t) {
    switch (t) {
    case OM_F32:
        return 0;
    case OM_F64:
        return 1;
    case OM_I64:
        return 2;
    case OM_I32:
        return 3;
    case OM_U8:
        return 4;
    default:
        return 5;
    }
}

#define ROW(t)                                                                                     \
    { t##_to_f32, t##_to_f64, t##_to_i64, t##_to_i32, t##_to_u8, t##_to_b8 }
static const cast_fn casts[6][6] = {ROW(f32), ROW(f64), ROW(i64), ROW(i32), ROW(u8), ROW(b8)};

static void cast_run(const omi_map *m, int64_t n, int64_t first, const void *const *in,
                     const int *step, void *const *out) {
    (void)first, (void)step;
    casts[type_row(m->in[0]->dtype)][type_row(m->out[0]->dtype)](n, in[0], out[0]);
}

void omi_cast(const om_view *x, const om_view *y) {
    omi_map m = {.n_in = 1, .n_out = 1, .in = {x}, .out = {y}, .no_scalars = true, .run = cast_run};
    omi_map_apply(&m);
}
