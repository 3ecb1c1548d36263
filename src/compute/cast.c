/*
 * cast.c -- conversions between element types (AR-9.2): float to integer truncates and saturates,
 * NaN gives 0; integers keep their low bits; anything but 0 is true, NaN too; the rest is one
 * rounding.
 */
#include "compute/elementwise.h"

#include "base/dtype.h"
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
    CAST(from, F32, tx, float, v)                                                                  \
    CAST(from, F64, tx, double, v)                                                                 \
    CAST(from, I64, tx, int64_t, as64)                                                             \
    CAST(from, I32, tx, int32_t, as32)                                                             \
    CAST(from, U8, tx, uint8_t, as8)                                                               \
    CAST(from, BOOL, tx, uint8_t, v != 0)
CASTS(F32, float, to_i64((double)v), to_i32((double)v), to_u8((double)v))
CASTS(F64, double, to_i64(v), to_i32(v), to_u8(v))
CASTS(I64, int64_t, v, (uint32_t)v, (uint64_t)v)
CASTS(I32, int32_t, v, v, (uint32_t)v)
CASTS(U8, uint8_t, v, v, v)
CASTS(BOOL, uint8_t, v != 0, v != 0, v != 0)

/* Where a type stands in the table: rows of the list that are computed with. */
enum {
#define OM_DTYPE_STORED(number, ONNX, bits, group, class, field, entries)
#define OM_DTYPE(ID, number, ONNX, name, bits, class, type, npy, field) AT_##ID,
#include "base/dtype.def"
#undef OM_DTYPE
#undef OM_DTYPE_STORED
    N_TYPES
};
static int type_row(om_dtype t) {
    switch (t) {
#define OM_DTYPE_STORED(number, ONNX, bits, group, class, field, entries)
#define OM_DTYPE(ID, number, ONNX, name, bits, class, type, npy, field)                            \
    case OM_##ID:                                                                                  \
        return AT_##ID;
#include "base/dtype.def"
#undef OM_DTYPE
#undef OM_DTYPE_STORED
    default:
        return -1;
    }
}

#define ROW(ID)                                                                                    \
    [AT_##ID] = {[AT_F32] = ID##_to_F32, [AT_F64] = ID##_to_F64, [AT_I64] = ID##_to_I64,           \
                 [AT_I32] = ID##_to_I32, [AT_U8] = ID##_to_U8,   [AT_BOOL] = ID##_to_BOOL},
#define OM_DTYPE_STORED(number, ONNX, bits, group, class, field, entries)
#define OM_DTYPE(ID, number, ONNX, name, bits, class, type, npy, field) ROW(ID)
static const cast_fn casts[N_TYPES][N_TYPES] = {
#include "base/dtype.def"
#undef OM_DTYPE
#undef OM_DTYPE_STORED
};

static void cast_run(const omi_map *m, int64_t n, int64_t first, const void *const *in,
                     const int *step, void *const *out) {
    (void)first, (void)step;
    (*(const cast_fn *)m->fn)(n, in[0], out[0]);
}

void omi_cast(const om_view *x, const om_view *y) {
    int from = type_row(x->dtype), to = type_row(y->dtype);
    if (from < 0 || to < 0 || !casts[from][to]) {
        omi_no_type();
        return;
    }
    omi_map m = {.n_in       = 1,
                 .n_out      = 1,
                 .in         = {x},
                 .out        = {y},
                 .no_scalars = true,
                 .run        = cast_run,
                 .fn         = &casts[from][to]};
    omi_map_apply(&m);
}
