/*
 * pool_f32.c -- runs of outputs of a pooling window, all taps in registers (AR-1.5, AR-4.5).
 *
 * compute/ hands over outputs whose taps all exist. Every output meets its taps in the order of the
 * rule, row-major, while the outputs themselves go in vectors. A stride of two is two loads and the
 * even lanes of both; others are gathered.
 */
#include "kernels/simd.h"

/* AR-1.5: the greater; of equals the one whose sign bit is clear in either; NaN when either is. */
OM_INLINE vf greater_of(vf a, vf b) {
    vf r = vmax_raw(a, b);
    r    = vsel(veq(a, b), vcast_f(vi_and(vcast_i(a), vcast_i(b))), r);
    return vsel(vunord(a, b), vadd(a, b), r);
}

/* W outputs' values of a tap, of which n exist and may be touched; whole: all, and one value more
 * of a stride of two. */
OM_INLINE vf pool_load(const float *x, int64_t step, int n, bool whole) {
    float t[W];
    if (step == 1) return whole ? vload(x) : vload_n(x, n);
    if (step == 2 && whole) return veven(vload(x), vload(x + W));
    if (step == 2) {
        int have = 2 * n - 1;
        return veven(vload_n(x, have < W ? have : W),
                     have > W ? vload_n(x + W, have - W) : vset1(0.0f));
    }
    for (int i = 0; i < W; i++)
        t[i] = i < n ? x[i * step] : 0.0f;
    return vload(t);
}

OM_INLINE vf pool_tap(const om_pool_args *a, const float *x, int64_t i, int64_t j, int64_t step,
                      int n, bool whole) {
    return pool_load(x + i * a->row_step + j * a->col_step, step, n, whole);
}

OM_INLINE vf max_of_taps(const om_pool_args *a, const float *x, int64_t step, int n, bool whole) {
    vf best = vset1(-__builtin_inff());
    for (int64_t i = 0; i < a->rows; i++)
        for (int64_t j = 0; j < a->cols; j++)
            best = greater_of(best, pool_tap(a, x, i, j, step, n, whole));
    return best;
}

OM_INLINE vf sum_of_taps(const om_pool_args *a, const float *x, int64_t step, int n, bool whole) {
    vf sum = vset1(0.0f);
    for (int64_t i = 0; i < a->rows; i++)
        for (int64_t j = 0; j < a->cols; j++)
            sum = vadd(sum, pool_tap(a, x, i, j, step, n, whole));
    return sum;
}

/* The first tap equal to the maximum or the first NaN, as its offset from the output's first. */
OM_INLINE vi first_of_taps(const om_pool_args *a, const float *x, int64_t step, int n, bool whole) {
    vf best = pool_tap(a, x, 0, 0, step, n, whole);
    vi at   = vi_set1(0);
    for (int64_t i = 0; i < a->rows; i++)
        for (int64_t j = 0; j < a->cols; j++) {
            vf v = pool_tap(a, x, i, j, step, n, whole);
            /* greater or unordered, but a NaN stays */
            vm m = vm_and(vm_not(vunord(best, best)), vm_or(vgt(v, best), vunord(v, v)));
            best = vsel(m, v, best);
            at   = vi_sel(m, vi_set1((int32_t)(i * a->row_step + j * a->col_step)), at);
        }
    return at;
}

/* What `of` makes of n outputs, in vectors. A whole vector of stride two touches one value beyond
 * its own, so the last output is left to a part of one. */
#define POOL_RUN(of, store, store_n)                                                               \
    const int64_t step = a->step, last = a->n - (step == 2);                                       \
    for (int64_t o = 0; o < a->n; o += W) {                                                        \
        const float *x = a->x + o * step;                                                          \
        int left       = (int)omi_min64(a->n - o, W);                                              \
        if (o + W <= last && step == 2)                                                            \
            store(o, of(a, x, 2, W, true));                                                        \
        else if (o + W <= last && step == 1)                                                       \
            store(o, of(a, x, 1, W, true));                                                        \
        else if (step == 2)                                                                        \
            store_n(o, of(a, x, 2, left, false), left);                                            \
        else if (step == 1)                                                                        \
            store_n(o, of(a, x, 1, left, false), left);                                            \
        else                                                                                       \
            store_n(o, of(a, x, step, left, false), left);                                         \
    }

#define PUT_F(o, v)     vstore(y + (o), v)
#define PUT_FN(o, v, n) vstore_n(y + (o), v, n)

/* ---- the common maxima: 2x2 and 3x3, two outputs apart -----------------------------------------
 *
 * Down the rows on whole vectors first, then even and odd columns: a maximum does not mind the
 * order. Without NaNs the greater of two is what both comparisons agree on, and of two zeros the
 * conjunction is the one that AR-1.5 wants; with a NaN in sight the outputs are made as above.
 */

OM_INLINE vf greater_number(vf a, vf b) {
    return vcast_f(vi_and(vcast_i(vmax_raw(a, b)), vcast_i(vmax_raw(b, a))));
}

/* Down `rows` rows: two vectors at x, of which the first n numbers are there. */
OM_INLINE void down_rows(const om_pool_args *a, const float *x, int rows, int n, bool whole, vf *m,
                         vm *nan) {
    int n0 = n < W ? n : W, n1 = n - n0;
    OM_UNROLL for (int i = 0; i < rows; i++) {
        const float *s = x + i * a->row_step;
        vf v0          = whole ? vload(s) : vload_n(s, n0);
        vf v1          = whole ? vload(s + W) : n1 > 0 ? vload_n(s + W, n1) : vset1(0.0f);
        *nan           = vm_or(*nan, vunord(v0, v1));
        m[0]           = i ? greater_number(m[0], v0) : v0;
        m[1]           = i ? greater_number(m[1], v1) : v1;
    }
}

/* k by k taps of up to W outputs from x; of the last vector n exist. */
OM_INLINE vf max_square(const om_pool_args *a, const float *x, int k, int n, bool whole) {
    vf m[2], third[2];
    vm nan   = vunord(vset1(0.0f), vset1(0.0f));
    int have = 2 * n - 2 + k;
    down_rows(a, x, k, have, whole, m, &nan);
    vf r = greater_number(veven(m[0], m[1]), vodd(m[0], m[1]));
    if (k == 3) {
        down_rows(a, x + 2, k, have - 2, whole, third, &nan);
        r = greater_number(r, veven(third[0], third[1]));
    }
    if (OM_UNLIKELY(vm_any(nan))) r = max_of_taps(a, x, 2, n, whole);
    return r;
}

OM_INLINE void max_squares(const om_pool_args *a, int k, float *y) {
    int64_t o = 0; /* a whole vector may touch one number beyond its own: not the last output */
    for (; o + W < a->n; o += W)
        vstore(y + o, max_square(a, a->x + 2 * o, k, W, true));
    for (; o < a->n; o += W) {
        int n = (int)omi_min64(a->n - o, W);
        vstore_n(y + o, max_square(a, a->x + 2 * o, k, n, false), n);
    }
}

static void max_other(const om_pool_args *a, float *y) {
    POOL_RUN(max_of_taps, PUT_F, PUT_FN)
}

/* y[o] = the greatest of its taps */
void FN(pool_max)(const om_pool_args *a, float *y) {
    OM_COUNT_CALL();
    bool two = a->step == 2 && a->col_step == 1;
    if (two && a->rows == 2 && a->cols == 2)
        max_squares(a, 2, y);
    else if (two && a->rows == 3 && a->cols == 3)
        max_squares(a, 3, y);
    else
        max_other(a, y);
}

/* y[o] = the sum of its taps, from +0 in their order */
void FN(pool_sum)(const om_pool_args *a, float *y) {
    OM_COUNT_CALL();
    POOL_RUN(sum_of_taps, PUT_F, PUT_FN)
}

/* at[o] = a->at + o * step + the offset of its winning tap */
OM_INLINE void put_at(const om_pool_args *a, int64_t o, vi v, int n, int32_t *at) {
    int32_t t[W];
    vi_store(t, v);
    for (int i = 0; i < n; i++)
        at[o + i] = t[i] + (int32_t)(a->at + (o + i) * a->step);
}
#define PUT_I(o, v)     put_at(a, o, v, W, at)
#define PUT_IN(o, v, n) put_at(a, o, v, n, at)

void FN(pool_at)(const om_pool_args *a, int32_t *at) {
    OM_COUNT_CALL();
    POOL_RUN(first_of_taps, PUT_I, PUT_IN)
}
