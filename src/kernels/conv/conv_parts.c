/*
 * conv_parts.c -- the rest of convolution: depthwise, patches for the weight gradient, copies
 * of rows, value ranges.
 */
#include <string.h>

#include "kernels/simd.h"

/* ---- depthwise --------------------------------------------------------------------------------
 */

/* rows rows by nv vectors from x; n: pixels to store in each row. */
OM_INLINE void depthwise_tile(const om_depthwise_args *a, const float *x, float *y, int rows,
                              int nv, int64_t n) {
    vf acc[4][2];
    OM_UNROLL for (int r = 0; r < rows; r++) {
        OM_UNROLL for (int v = 0; v < nv; v++) acc[r][v] = vset1(0.0f);
    }
    for (int64_t t = 0; t < a->taps; t++) {
        const float *s = x + a->tap[t];
        vf w           = vset1(a->w[t]);
        OM_UNROLL for (int r = 0; r < rows; r++) {
            OM_UNROLL for (int v = 0; v < nv; v++) acc[r][v] =
                vfma(vload(s + r * a->row_step + v * W), w, acc[r][v]);
        }
    }
    OM_UNROLL for (int r = 0; r < rows; r++) {
        OM_UNROLL for (int v = 0; v < nv; v++) {
            vf s     = a->bias ? vadd(acc[r][v], vset1(*a->bias)) : acc[r][v];
            float *q = y + r * a->out_w + v * W;
            if (n >= (v + 1) * W)
                vstore(q, s);
            else
                vstore_n(q, s, (int)(n - v * W));
        }
    }
}

void FN(depthwise_f32)(const om_depthwise_args *a) {
    OM_COUNT_CALL();
    for (int64_t h = 0; h < a->out_h;) {
        int rows = a->out_h - h >= 4 ? 4 : 1;
        for (int64_t w = 0; w < a->out_w;) {
            const float *x = a->x + h * a->row_step + w;
            float *y       = a->y + h * a->out_w + w;
            int64_t left   = a->out_w - w;
            int nv         = left > W ? 2 : 1;
            if (rows == 4 && nv == 2)
                depthwise_tile(a, x, y, 4, 2, left);
            else if (rows == 4)
                depthwise_tile(a, x, y, 4, 1, left);
            else if (nv == 2)
                depthwise_tile(a, x, y, 1, 2, left);
            else
                depthwise_tile(a, x, y, 1, 1, left);
            w += nv * W;
        }
        h += rows;
    }
}

/* ---- patches, transposed ----------------------------------------------------------------------
 */

/* W pixels of one output row, of which n count. */
OM_INLINE void unfold_step(const om_unfold_args *a, const float *x, float *d, int n) {
    for (int v = 0; v < 16 / W; v++) {
        vf r[W];
        for (int j = 0; j < W; j++)
            r[j] = v * W + j < a->cols ? vload(x + a->col[v * W + j]) : vset1(0.0f);
        vtranspose(r);
        for (int i = 0; i < n; i++)
            vstore(d + i * 16 + v * W, r[i]);
    }
}

void FN(unfold_f32)(const om_unfold_args *a) {
    OM_COUNT_CALL();
    float *d = a->dst;
    for (int64_t p = a->p0; p < a->p1;) {
        int64_t row = p / a->out_w, col = p % a->out_w;
        int64_t len    = omi_min64(a->out_w - col, a->p1 - p);
        const float *x = a->x + row * a->row_step + col;
        int64_t i      = 0;
        for (; i + W <= len; i += W)
            unfold_step(a, x + i, d + i * 16, W);
        if (i < len) unfold_step(a, x + i, d + i * 16, (int)(len - i));
        d += len * 16;
        p += len;
    }
}

/* ---- rows -------------------------------------------------------------------------------------
 */

/* n floats by moves of a fixed size, the last of which overlaps the one before. */
OM_INLINE void copy_run(int64_t n, const float *x, float *y) {
    int64_t i = 0;
    if (n >= 8) {
        for (; i + 8 <= n; i += 8)
            memcpy(y + i, x + i, 32);
        memcpy(y + n - 8, x + n - 8, 32);
    } else if (n >= 4) {
        memcpy(y, x, 16);
        memcpy(y + n - 4, x + n - 4, 16);
    } else {
        for (; i < n; i++)
            y[i] = x[i];
    }
}

void FN(copy_rows_f32)(int64_t rows, int64_t n, const float *x, int64_t x_row, int64_t step,
                       float *y, int64_t y_row) {
    OM_COUNT_CALL();
    for (int64_t r = 0; r < rows; r++, x += x_row, y += y_row) {
        int64_t i = 0;
        if (step == 1) {
            copy_run(n, x, y);
            continue;
        }
        if (step ==
            2) /* one value beyond the last even one is read: it is there but for the last */
            for (; i + W < n; i += W)
                vstore(y + i, veven(vload(x + 2 * i), vload(x + 2 * i + W)));
        for (; i < n; i++)
            y[i] = x[i * step];
    }
}

/* ---- ranges -----------------------------------------------------------------------------------
 */

void FN(abs_range)(const float *x, int64_t n, uint32_t *lo, uint32_t *hi) {
    OM_COUNT_CALL();
    uint32_t least = *lo - 1, most = *hi; /* zero becomes the greatest number */
    for (int64_t i = 0; i < n; i++) {
        uint32_t u;
        memcpy(&u, x + i, 4);
        u &= 0x7fffffffu;
        least = u - 1 < least ? u - 1 : least;
        most  = u > most ? u : most;
    }
    *lo = least + 1;
    *hi = most;
}
