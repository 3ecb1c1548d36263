/*
 * reduce.c -- sums by AR-4.1 and extremes by AR-1.5, along a contiguous run or down columns.
 *
 * A sum has sixteen float64 lanes per block of 4,096 elements, whatever the vector width: lane l
 * takes elements l, l + 16, ... from +0; a halving tree joins the lanes; block totals are added in
 * order. Down columns the lanes are memory: acc[lane][column], element number of a row mod 16 is
 * its lane, and compute/ joins them when a block of rows is full. Both give the same bits.
 */
#include "base/thread.h"
#include "kernels/elementwise/tail.h"
#include "kernels/simd.h"

#define LANES OM_SUM_LANES
#define VECS  (LANES / DW)
#define ASK   (256 * OM_SUM_BLOCK) /* elements between two looks at the cancel flag */

/* expr(vd of elements i ..) for a whole vector, one(i) for a single element */
#define SUM(name, params, vec, one)                                                                \
    double FN(name) params {                                                                       \
        OM_COUNT_CALL();                                                                           \
        double total = 0.0;                                                                        \
        for (int64_t begin = 0; begin < n; begin += OM_SUM_BLOCK) {                                \
            int64_t end = omi_min64(begin + OM_SUM_BLOCK, n), i = begin;                           \
            if (begin % ASK == 0 && begin && omi_cut_short()) break;                               \
            vd a[VECS];                                                                            \
            double s[LANES];                                                                       \
            OM_UNROLL for (int v = 0; v < VECS; v++) a[v] = vd_set1(0.0);                          \
            for (; i + LANES <= end; i += LANES) {                                                 \
                OM_UNROLL for (int v = 0; v < VECS; v++) {                                         \
                    int64_t k = i + v * DW;                                                        \
                    a[v]      = vd_add(a[v], vec);                                                 \
                }                                                                                  \
            }                                                                                      \
            OM_UNROLL for (int v = 0; v < VECS; v++) vd_store(s + v * DW, a[v]);                   \
            for (int l = 0; i < end; i++, l++)                                                     \
                s[l] += one;                                                                       \
            for (int h = LANES / 2; h; h /= 2)                                                     \
                for (int l = 0; l < h; l++)                                                        \
                    s[l] = s[l] + s[l + h];                                                        \
            total += s[0];                                                                         \
        }                                                                                          \
        return total;                                                                              \
    }

OM_INLINE vd sqr(vd x) {
    return vd_mul(x, x);
}
OM_INLINE double sqr1(double x) {
    return x * x;
}

SUM(sum_f32, (int64_t n, const float *x), vd_loadf(x + k), (double)x[i])
SUM(sum_square_f32, (int64_t n, const float *x), sqr(vd_loadf(x + k)), sqr1(x[i]))
SUM(sum_dev_f32, (int64_t n, const float *x, double mean),
    sqr(vd_sub(vd_loadf(x + k), vd_set1(mean))), sqr1((double)x[i] - mean))
SUM(sum_mul_f32, (int64_t n, const float *x, const float *y),
    vd_mul(vd_loadf(x + k), vd_loadf(y + k)), (double)x[i] * (double)y[i])
SUM(sum_f64, (int64_t n, const double *x), vd_load(x + k), x[i])
SUM(sum_square_f64, (int64_t n, const double *x), sqr(vd_load(x + k)), sqr1(x[i]))

/* ---- a block in pieces --------------------------------------------------------------------- */

/* The same adds in the same lanes: those before lane 0 one by one, whole rows of lanes, the rest.
 */
#define LANES_OF(name, params, vec, one)                                                           \
    void FN(name) params {                                                                         \
        OM_COUNT_CALL();                                                                           \
        int64_t i = 0;                                                                             \
        int l     = (int)(lane % LANES);                                                           \
        for (; l != 0 && i < n; i++, l = (l + 1) % LANES)                                          \
            acc[l] += one;                                                                         \
        if (i + LANES <= n) {                                                                      \
            vd a[VECS];                                                                            \
            OM_UNROLL for (int v = 0; v < VECS; v++) a[v] = vd_load(acc + v * DW);                 \
            for (; i + LANES <= n; i += LANES) {                                                   \
                OM_UNROLL for (int v = 0; v < VECS; v++) {                                         \
                    int64_t k = i + v * DW;                                                        \
                    a[v]      = vd_add(a[v], vec);                                                 \
                }                                                                                  \
            }                                                                                      \
            OM_UNROLL for (int v = 0; v < VECS; v++) vd_store(acc + v * DW, a[v]);                 \
        }                                                                                          \
        for (l = 0; i < n; i++, l++)                                                               \
            acc[l] += one;                                                                         \
    }
LANES_OF(lanes_sum_f32, (int64_t n, const float *x, int64_t lane, double *acc), vd_loadf(x + k),
         (double)x[i])
LANES_OF(lanes_sum_square_f32, (int64_t n, const float *x, int64_t lane, double *acc),
         sqr(vd_loadf(x + k)), sqr1(x[i]))
LANES_OF(lanes_sum_dev_f32, (int64_t n, const float *x, double mean, int64_t lane, double *acc),
         sqr(vd_sub(vd_loadf(x + k), vd_set1(mean))), sqr1((double)x[i] - mean))
LANES_OF(lanes_sum_mul_f32, (int64_t n, const float *x, const float *y, int64_t lane, double *acc),
         vd_mul(vd_loadf(x + k), vd_loadf(y + k)), (double)x[i] * (double)y[i])
LANES_OF(lanes_sum_f64, (int64_t n, const double *x, int64_t lane, double *acc), vd_load(x + k),
         x[i])
LANES_OF(lanes_sum_square_f64, (int64_t n, const double *x, int64_t lane, double *acc),
         sqr(vd_load(x + k)), sqr1(x[i]))

/* ---- down columns -------------------------------------------------------------------------- */

#define COLUMNS(name, expr)                                                                        \
    void FN(name)(int64_t rows, int64_t cols, const float *x, int64_t stride, int64_t lane,        \
                  double *acc) {                                                                   \
        OM_COUNT_CALL();                                                                           \
        for (int64_t r = 0; r < rows; r++, x += stride) {                                          \
            double *a = acc + (lane + r) % LANES * OM_COL_TILE;                                    \
            if (cols == OM_COL_TILE) {                                                             \
                OM_UNROLL for (int c = 0; c < OM_COL_TILE; c += DW) {                              \
                    vd v = vd_loadf(x + c);                                                        \
                    vd_store(a + c, vd_add(vd_load(a + c), expr));                                 \
                }                                                                                  \
            } else {                                                                               \
                for (int64_t c = 0; c < cols; c += DW) {                                           \
                    int t = om_lanes_at(c, cols, DW);                                              \
                    vd v  = om_loadf_t(x + c, t);                                                  \
                    vd_store(a + c, vd_add(vd_load(a + c), expr));                                 \
                }                                                                                  \
            }                                                                                      \
        }                                                                                          \
    }
COLUMNS(col_sum_f32, v)
COLUMNS(col_sum_square_f32, vd_mul(v, v))

/* ---- extremes ------------------------------------------------------------------------------ */

OM_INLINE float greater1(float a, float b) {
    return a > b ? a : b > a ? b : __builtin_signbit(a) ? b : a;
}
OM_INLINE float less1(float a, float b) {
    return a < b ? a : b < a ? b : __builtin_signbit(a) ? a : b;
}

/* The greatest (or least) of n >= 1 elements, NaN if there is one, +0 above -0. Vectors compare
 * values only; when the winner is a zero, its sign is looked for afterwards. */
#define EXTREME(name, raw, init, better)                                                           \
    float FN(name)(int64_t n, const float *x) {                                                    \
        OM_COUNT_CALL();                                                                           \
        vf m0 = vset1(init), m1 = m0;                                                              \
        float s[W], r;                                                                             \
        vm bad    = vunord(m0, m0);                                                                \
        int64_t i = 0;                                                                             \
        for (; i + 2 * W <= n; i += 2 * W) {                                                       \
            vf a = vload(x + i), b = vload(x + i + W);                                             \
            bad = vm_or(bad, vunord(a, b));                                                        \
            m0  = raw(a, m0);                                                                      \
            m1  = raw(b, m1);                                                                      \
        }                                                                                          \
        if (vm_any(bad)) return __builtin_nanf("");                                                \
        vstore(s, raw(m1, m0));                                                                    \
        r = s[0];                                                                                  \
        for (int l = 1; l < W; l++)                                                                \
            r = better(r, s[l]);                                                                   \
        for (; i < n; i++) {                                                                       \
            if (x[i] != x[i]) return __builtin_nanf("");                                           \
            r = better(r, x[i]);                                                                   \
        }                                                                                          \
        if (r == 0.0f)                                                                             \
            for (i = 0; i < n; i++)                                                                \
                if (x[i] == 0.0f) r = better(r, x[i]);                                             \
        return r;                                                                                  \
    }
EXTREME(row_max_f32, vmax_raw, -__builtin_inff(), greater1)
EXTREME(row_min_f32, vmin_raw, __builtin_inff(), less1)
