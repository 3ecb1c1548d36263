/*
 * norm.c -- inner loops of LayerNormalization and BatchNormalization (AR-4.2, AR-4.3) and of their
 * gradients: float64 inside, every operation rounded, one final rounding to float32.
 */
#include "kernels/elementwise/tail.h"
#include "kernels/simd.h"

/* One vector of normalize_f32; what is absent and the step are constants where it is called. */
OM_INLINE vd norm_vec(vd x, vd m, vd s, bool has_w, vd w, bool has_b, vd b) {
    vd v = vd_mul(vd_sub(x, m), s);
    if (has_w) v = vd_mul(v, w);
    if (has_b) v = vd_add(v, b);
    return v;
}
OM_INLINE void norm_loop(int64_t n, const float *x, double mean, double rs, bool has_w,
                         const float *w, bool has_b, const float *b, int step, float *y) {
    vd m = vd_set1(mean), s = vd_set1(rs);
    vd w0 = vd_set1(has_w ? (double)*w : 1.0), b0 = vd_set1(has_b ? (double)*b : 0.0);
    int64_t i = 0;
    for (; i + 2 * DW <= n; i += 2 * DW)
        OM_UNROLL for (int v = 0; v < 2; v++) {
            int64_t k = i + v * DW;
            vd wv = has_w && step ? vd_loadf(w + k) : w0, bv = has_b && step ? vd_loadf(b + k) : b0;
            vd_storef(y + k, norm_vec(vd_loadf(x + k), m, s, has_w, wv, has_b, bv));
        }
    for (; i < n; i += DW) {
        int t = om_lanes_at(i, n, DW);
        vd wv = has_w && step ? om_loadf_t(w + i, t) : w0;
        vd bv = has_b && step ? om_loadf_t(b + i, t) : b0;
        om_storef_t(y + i, norm_vec(om_loadf_t(x + i, t), m, s, has_w, wv, has_b, bv), t);
    }
}

/* y = ((x - mean) rs) w + b; w and b have step 1 (arrays) or 0 (one value), or are absent */
void FN(normalize_f32)(int64_t n, const float *x, double mean, double rs, const float *w,
                       const float *b, int step, float *y) {
    OM_COUNT_CALL();
    if (w && b && step)
        norm_loop(n, x, mean, rs, true, w, true, b, 1, y);
    else if (w && b)
        norm_loop(n, x, mean, rs, true, w, true, b, 0, y);
    else if (w)
        norm_loop(n, x, mean, rs, true, w, false, b, step, y);
    else
        norm_loop(n, x, mean, rs, false, w, b != NULL, b, step, y);
}

/* y = x s + t, two float32 roundings; s and t have step 1 or 0 */
void FN(scale_shift_f32)(int64_t n, const float *x, const float *s, const float *t, int step,
                         float *y) {
    OM_COUNT_CALL();
    vf s0 = vset1(*s), t0 = vset1(*t);
    for (int64_t i = 0; i < n; i += W) {
        int k = om_lanes_at(i, n, W);
        vf v  = vmul(om_load_t(x + i, k), step ? om_load_t(s + i, k) : s0);
        om_store_t(y + i, vadd(v, step ? om_load_t(t + i, k) : t0), k);
    }
}

/* sums[0], sums[1]: the totals of AR-4.1 of h = g w and of h xhat, xhat = (x - mean) rs. */
void FN(norm_grad_sums_f32)(int64_t n, const float *x, const float *g, const float *w, int step,
                            double mean, double rs, double *sums) {
    OM_COUNT_CALL();
    enum { VECS = OM_SUM_LANES / DW };
    vd m = vd_set1(mean), r = vd_set1(rs), w0 = vd_set1(w ? (double)*w : 1.0);
    sums[0] = sums[1] = 0.0;
    for (int64_t begin = 0; begin < n; begin += OM_SUM_BLOCK) {
        int64_t end = omi_min64(begin + OM_SUM_BLOCK, n), i = begin;
        vd a[VECS], b[VECS];
        double s[OM_SUM_LANES], t[OM_SUM_LANES];
        OM_UNROLL for (int v = 0; v < VECS; v++) a[v] = b[v] = vd_set1(0.0);
        for (; i + OM_SUM_LANES <= end; i += OM_SUM_LANES) {
            OM_UNROLL for (int v = 0; v < VECS; v++) {
                int64_t k = i + v * DW;
                vd h      = vd_loadf(g + k);
                vd xh     = vd_mul(vd_sub(vd_loadf(x + k), m), r);
                if (w) h = vd_mul(h, step ? vd_loadf(w + k) : w0);
                a[v] = vd_add(a[v], h);
                b[v] = vd_add(b[v], vd_mul(h, xh));
            }
        }
        OM_UNROLL for (int v = 0; v < VECS; v++) {
            vd_store(s + v * DW, a[v]);
            vd_store(t + v * DW, b[v]);
        }
        for (int l = 0; i < end; i++, l++) {
            double h  = w ? (double)g[i] * (double)w[step ? i : 0] : (double)g[i];
            double xh = ((double)x[i] - mean) * rs;
            s[l] += h;
            t[l] += h * xh;
        }
        for (int h = OM_SUM_LANES / 2; h; h /= 2)
            for (int l = 0; l < h; l++) {
                s[l] = s[l] + s[l + h];
                t[l] = t[l] + t[l + h];
            }
        sums[0] += s[0];
        sums[1] += t[0];
    }
}

/* The same for a piece of a block, with one weight; the lanes are memory. */
void FN(lanes_norm_grad_f32)(int64_t n, const float *x, const float *g, const float *w, double mean,
                             double rs, int64_t lane, double *acc_h, double *acc_hx) {
    OM_COUNT_CALL();
    enum { VECS = OM_SUM_LANES / DW };
    int64_t i = 0;
    int l     = (int)(lane % OM_SUM_LANES);
    double w1 = w ? (double)*w : 1.0;
    vd m = vd_set1(mean), r = vd_set1(rs), w0 = vd_set1(w1), a[VECS], b[VECS];
#define ONE_LANE()                                                                                 \
    do {                                                                                           \
        double h = w ? (double)g[i] * w1 : (double)g[i];                                           \
        acc_h[l] += h;                                                                             \
        acc_hx[l] += h * (((double)x[i] - mean) * rs);                                             \
    } while (0)
    for (; l != 0 && i < n; i++, l = (l + 1) % OM_SUM_LANES)
        ONE_LANE();
    if (i + OM_SUM_LANES <= n) {
        OM_UNROLL for (int v = 0; v < VECS; v++) {
            a[v] = vd_load(acc_h + v * DW);
            b[v] = vd_load(acc_hx + v * DW);
        }
        for (; i + OM_SUM_LANES <= n; i += OM_SUM_LANES) {
            OM_UNROLL for (int v = 0; v < VECS; v++) {
                int64_t k = i + v * DW;
                vd h      = vd_loadf(g + k);
                vd xh     = vd_mul(vd_sub(vd_loadf(x + k), m), r);
                if (w) h = vd_mul(h, w0);
                a[v] = vd_add(a[v], h);
                b[v] = vd_add(b[v], vd_mul(h, xh));
            }
        }
        OM_UNROLL for (int v = 0; v < VECS; v++) {
            vd_store(acc_h + v * DW, a[v]);
            vd_store(acc_hx + v * DW, b[v]);
        }
    }
    for (l = 0; i < n; i++, l++)
        ONE_LANE();
#undef ONE_LANE
}

/* dx = rs ((h - m1) - xhat m2) */
void FN(norm_grad_dx_f32)(int64_t n, const float *x, const float *g, const float *w, int step,
                          double mean, double rs, double m1, double m2, float *dx) {
    OM_COUNT_CALL();
    vd vm1 = vd_set1(m1), vm2 = vd_set1(m2), s = vd_set1(rs), m = vd_set1(mean);
    vd w0 = vd_set1(w ? (double)*w : 1.0);
    for (int64_t i = 0; i < n; i += DW) {
        int t = om_lanes_at(i, n, DW);
        vd h  = om_loadf_t(g + i, t);
        vd xh = vd_mul(vd_sub(om_loadf_t(x + i, t), m), s);
        if (w) h = vd_mul(h, step ? om_loadf_t(w + i, t) : w0);
        om_storef_t(dx + i, vd_mul(s, vd_sub(vd_sub(h, vm1), vd_mul(xh, vm2))), t);
    }
}

/* Down columns: acc_w[lane][c] += g xhat, acc_b[lane][c] += g, row r with its own mean and rs. */
void FN(norm_grad_cols_f32)(int64_t rows, int64_t cols, const float *x, const float *g,
                            int64_t stride, const double *mean, const double *rs, int64_t lane,
                            double *acc_w, double *acc_b) {
    OM_COUNT_CALL();
    for (int64_t r = 0; r < rows; r++, x += stride, g += stride) {
        int64_t at = (lane + r) % OM_SUM_LANES * OM_COL_TILE;
        vd m = vd_set1(mean[r]), s = vd_set1(rs[r]);
        for (int64_t c = 0; c < cols; c += DW) {
            int t      = om_lanes_at(c, cols, DW);
            vd v       = om_loadf_t(g + c, t);
            vd xh      = vd_mul(vd_sub(om_loadf_t(x + c, t), m), s);
            double *aw = acc_w + at + c, *ab = acc_b + at + c;
            vd_store(aw, vd_add(vd_load(aw), vd_mul(v, xh)));
            vd_store(ab, vd_add(vd_load(ab), v));
        }
    }
}
