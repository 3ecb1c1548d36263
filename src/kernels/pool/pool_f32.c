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
    OM_COUNT_CALL();                                                                               \
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

/* y[o] = the greatest of its taps */
void FN(pool_max)(const om_pool_args *a, float *y) {
    POOL_RUN(max_of_taps, PUT_F, PUT_FN)
}

/* y[o] = the sum of its taps, from +0 in their order */
void FN(pool_sum)(const om_pool_args *a, float *y){POOL_RUN(sum_of_taps, PUT_F, PUT_FN)}

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
    POOL_RUN(first_of_taps, PUT_I, PUT_IN)
}
