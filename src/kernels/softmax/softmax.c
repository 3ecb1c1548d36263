/*
 * softmax.c -- Softmax and LogSoftmax over contiguous rows (AR-4.4, AR-8), and their gradients in
 * float64 (AR-11.2).
 */
#include "base/thread.h"
#include "kernels/elementwise/cr_math.h"
#include "kernels/elementwise/tail.h"
#include "kernels/simd.h"

/* A row goes in pieces, between which the cancel flag is seen: most rows are one. */
#define ROW_PIECE 65536
#define PIECES(n, i, m)                                                                            \
    for (int64_t i = 0, m;                                                                         \
         i < (n) && (m = omi_min64(ROW_PIECE, (n)-i), i == 0 || !omi_cut_short()); i += m)

/* The order does not matter here and NaN poisons the row through the sum, so the raw maximum does.
 */
static float greatest(int64_t n, const float *x) {
    vf m = vset1(-__builtin_inff());
    float s[W], r;
    int64_t i = 0;
    PIECES(n, at, len) {
        for (i = at; i + W <= at + len; i += W)
            m = vmax_raw(vload(x + i), m);
    }
    vstore(s, m);
    r = s[0];
    for (int l = 1; l < W; l++)
        r = s[l] > r ? s[l] : r;
    for (i = n - n % W; i < n; i++) // ROW_PIECE is whole vectors
        r = x[i] > r ? x[i] : r;
    return r;
}

static void minus(int64_t n, const float *x, float m, float *y) {
    PIECES(n, at, len) {
        for (int64_t i = at; i < at + len; i += W) {
            int t = om_lanes_at(i, at + len, W);
            om_store_t(y + i, vsub(om_load_t(x + i, t), vset1(m)), t);
        }
    }
}
static void divide(int64_t n, float s, float *y) {
    PIECES(n, at, len) {
        for (int64_t i = at; i < at + len; i += W) {
            int t = om_lanes_at(i, at + len, W);
            om_store_t(y + i, vdiv(om_load_t(y + i, t), vset1(s)), t);
        }
    }
}

#define EXP_ROW(name, exp)                                                                         \
    static void name(int64_t n, float *y) {                                                        \
        PIECES(n, i, m) FN(exp)(m, y + i, y + i);                                                  \
    }
EXP_ROW(exp_row, exp_f32)
EXP_ROW(exp_row_fast, exp_fast_f32)

#define SOFTMAX(name, exp_row)                                                                     \
    void FN(name)(int64_t rows, int64_t n, const float *x, float *y) {                             \
        for (int64_t r = 0; r < rows; r++, x += n, y += n) {                                       \
            minus(n, x, greatest(n, x), y);                                                        \
            exp_row(n, y);                                                                         \
            if (n > ROW_PIECE && omi_cut_short()) return;                                          \
            divide(n, (float)FN(sum_f32)(n, y), y);                                                \
        }                                                                                          \
    }
SOFTMAX(softmax_f32, exp_row)
SOFTMAX(softmax_fast_f32, exp_row_fast)

/* The float64 sum of exp(y), a block of AR-4.1 in pieces. */
#define SUM_PIECE 512
#define SUM_EXP(name, exp)                                                                         \
    static double name(int64_t n, const float *y) {                                                \
        float e[SUM_PIECE];                                                                        \
        double total = 0.0, acc[OM_SUM_LANES];                                                     \
        for (int64_t i = 0; i < n; i += OM_SUM_BLOCK) {                                            \
            int64_t m = omi_min64(OM_SUM_BLOCK, n - i);                                            \
            if (i % ROW_PIECE == 0 && i && omi_cut_short()) return total;                          \
            for (int l = 0; l < OM_SUM_LANES; l++)                                                 \
                acc[l] = 0.0;                                                                      \
            for (int64_t k = 0; k < m; k += SUM_PIECE) {                                           \
                int64_t q = omi_min64(SUM_PIECE, m - k);                                           \
                FN(exp)(q, y + i + k, e);                                                          \
                FN(lanes_sum_f32)(q, e, k, acc);                                                   \
            }                                                                                      \
            for (int h = OM_SUM_LANES / 2; h; h /= 2)                                              \
                for (int l = 0; l < h; l++)                                                        \
                    acc[l] = acc[l] + acc[l + h];                                                  \
            total += acc[0];                                                                       \
        }                                                                                          \
        return total;                                                                              \
    }
SUM_EXP(sum_exp, exp_f32)
SUM_EXP(sum_exp_fast, exp_fast_f32)

#define LOG_SOFTMAX(name, sum)                                                                     \
    void FN(name)(int64_t rows, int64_t n, const float *x, float *y) {                             \
        for (int64_t r = 0; r < rows; r++, x += n, y += n) {                                       \
            minus(n, x, greatest(n, x), y);                                                        \
            float s = (float)sum(n, y);                                                            \
            if (n > ROW_PIECE && omi_cut_short()) return;                                          \
            FN(log_f32)(1, &s, &s);                                                                \
            minus(n, y, s, y);                                                                     \
        }                                                                                          \
    }
LOG_SOFTMAX(log_softmax_f32, sum_exp)
LOG_SOFTMAX(log_softmax_fast_f32, sum_exp_fast)

/* dx = y (g - s), s the float64 sum of g y */
void FN(softmax_grad_f32)(int64_t n, const float *y, const float *g, double s, float *dx) {
    OM_COUNT_CALL();
    vd vs = vd_set1(s);
    for (int64_t i = 0; i < n; i += DW) {
        int t = om_lanes_at(i, n, DW);
        om_storef_t(dx + i, vd_mul(om_loadf_t(y + i, t), vd_sub(om_loadf_t(g + i, t), vs)), t);
    }
}

/* dx = g - exp(y) s, s the float64 sum of g */
void FN(log_softmax_grad_f32)(int64_t n, const float *y, const float *g, double s, float *dx) {
    OM_COUNT_CALL();
    float e[256];
    vd vs = vd_set1(s);
    for (int64_t b = 0; b < n; b += 256) {
        int64_t m = omi_min64(256, n - b);
        FN(exp_f32)(m, y + b, e);
        for (int64_t i = 0; i < m; i += DW) {
            int t = om_lanes_at(i, m, DW);
            vd v  = vd_sub(om_loadf_t(g + b + i, t), vd_mul(om_loadf_t(e + i, t), vs));
            om_storef_t(dx + b + i, v, t);
        }
    }
}
