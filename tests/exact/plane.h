/*
 * plane.h -- what the tests of elementwise, reduction and movement share beyond exact.h: inputs
 * with special values, canonical bits, strided views, columns as a loop.
 */
#ifndef OM_TESTS_PLANE_H
#define OM_TESTS_PLANE_H

#include "compute/view.h"
#include "exact/exact.h"

OM_INLINE uint32_t bits32(float f) {
    uint32_t u;
    memcpy(&u, &f, 4);
    return u;
}
OM_INLINE float from32(uint32_t u) {
    float f;
    memcpy(&f, &u, 4);
    return f;
}
OM_INLINE uint64_t bits64(double f) {
    uint64_t u;
    memcpy(&u, &f, 8);
    return u;
}
/* NaN payloads are not part of any result (AR-1.4). */
OM_INLINE uint32_t canon32(float f) {
    return f != f ? 0x7fc00000u : bits32(f);
}
OM_INLINE uint64_t canon64(double f) {
    return f != f ? 0x7ff8000000000000u : bits64(f);
}

#define HASH_START 1469598103934665603u
OM_INLINE uint64_t hash32(uint64_t h, uint32_t u) {
    return (h ^ u) * 1099511628211u;
}
OM_INLINE uint64_t hash_floats(uint64_t h, const float *y, int64_t n) {
    for (int64_t i = 0; i < n; i++)
        h = hash32(h, canon32(y[i]));
    return h;
}

static xs test_xs = {88172645463325252ull};
OM_INLINE int64_t test_below(int64_t n) {
    return xs_int(&test_xs, 0, n - 1);
}
OM_INLINE float test_uniform(float scale) {
    return ((float)xs_unit(&test_xs) - 0.5f) * scale;
}
static OM_UNUSED const float test_specials[] = {0.0f,
                                                -0.0f,
                                                1.0f,
                                                -1.0f,
                                                0x1p-149f,
                                                -0x1p-149f,
                                                0x1p-126f,
                                                -0x1p-127f,
                                                0x1p127f,
                                                -0x1p127f,
                                                0x1.fffffep127f,
                                                -0x1.fffffep127f,
                                                __builtin_inff(),
                                                -__builtin_inff(),
                                                0x1p-24f,
                                                88.8f,
                                                -103.9f,
                                                0.5f};
/* Ordinary values with NaN, infinities, subnormals and signed zeros among them. */
OM_INLINE void fill_mixed(float *x, int64_t n, float scale, bool nan) {
    for (int64_t i = 0; i < n; i++) {
        int64_t r = test_below(16);
        x[i]      = r == 0          ? test_specials[test_below(OM_COUNT(test_specials))]
                    : r == 1 && nan ? __builtin_nanf("")
                                    : test_uniform(scale);
    }
}
OM_INLINE void fill_plain(float *x, int64_t n, float scale) {
    for (int64_t i = 0; i < n; i++)
        x[i] = test_uniform(scale);
}

/* Runs body once for each column this machine has, with that column forced. */
#define FOR_COLUMNS(col)                                                                           \
    for (int col = 0; col < OM_COL_COUNT; col++)                                                   \
        if (omi_kernels_of((om_column)col) != NULL && omi_kernels_force(col) == OM_OK)

OM_INLINE om_view view_of(void *data, om_dtype t, int rank, const int64_t *shape) {
    om_view v = {.data = data, .dtype = t, .rank = rank};
    for (int i = 0; i < rank; i++)
        v.shape[i] = shape[i];
    omi_view_pack_strides(&v);
    return v;
}
#define VIEW(data, t, ...)                                                                         \
    view_of((data), (t), (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)),                \
            (const int64_t[]){__VA_ARGS__})
/* The element offset of flat row-major index i in a view. */
OM_INLINE int64_t offset_of(const om_view *v, int64_t i) {
    int64_t off = 0;
    for (int a = v->rank - 1; a >= 0; a--) {
        off += i % v->shape[a] * v->strides[a];
        i /= v->shape[a];
    }
    return off;
}
OM_INLINE float at32(const om_view *v, int64_t i) {
    return ((const float *)v->data)[offset_of(v, i)];
}

/* Ways to lay a shape over a buffer of as many elements. */
enum { LAY_DENSE, LAY_ONE, LAY_ROW, LAY_COLUMN, LAY_TRANSPOSED, LAY_BACKWARD, LAY_COUNT };
OM_INLINE om_view lay_out(void *data, om_dtype t, int rank, const int64_t *shape, int layout) {
    om_view v  = view_of(data, t, rank, shape);
    int64_t at = 0, s = 1;
    for (int i = 0; i < rank; i++) {
        if (layout == LAY_ONE || (layout == LAY_ROW && i + 1 < rank) ||
            (layout == LAY_COLUMN && i + 1 == rank))
            v.strides[i] = 0;
        if (layout == LAY_TRANSPOSED) {
            v.strides[i] = s;
            s *= shape[i];
        }
        if (layout == LAY_BACKWARD) {
            at += (shape[i] - 1) * v.strides[i];
            v.strides[i] = -v.strides[i];
        }
    }
    v.data = (char *)data + at * (int64_t)om_dtype_size(t);
    return v;
}

/* AR-4.1 over values already widened to float64. */
OM_INLINE double ref_sum64(int64_t n, const double *x) {
    double total = 0.0;
    for (int64_t b = 0; b < n; b += 4096) {
        double s[16] = {0};
        for (int64_t i = b; i < n && i < b + 4096; i++)
            s[(i - b) % 16] += x[i];
        for (int h = 8; h; h /= 2)
            for (int l = 0; l < h; l++)
                s[l] = s[l] + s[l + h];
        total += s[0];
    }
    return total;
}
/* Max of AR-1.5. */
OM_INLINE float ref_max(float a, float b) {
    if (a != a || b != b) return __builtin_nanf("");
    return a > b ? a : b > a ? b : from32(bits32(a) & bits32(b));
}
OM_INLINE float ref_min(float a, float b) {
    if (a != a || b != b) return __builtin_nanf("");
    return a < b ? a : b < a ? b : from32(bits32(a) | bits32(b));
}
/* exp and log by libm's float64: inputs of these tests stay clear of midpoints, or they would fail.
 */
OM_INLINE float ref_exp(float x) {
    return (float)exp((double)x);
}
OM_INLINE float ref_log(float x) {
    return (float)log((double)x);
}

OM_INLINE void expect_hash(const char *what, uint64_t got, uint64_t want) {
    if (got != want)
        fail_msg("%s: hash %016llx, not %016llx", what, (unsigned long long)got,
                 (unsigned long long)want);
}

#endif
