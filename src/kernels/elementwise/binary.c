/*
 * binary.c -- two-input float32 maps, comparisons, clipping, selection by value.
 *
 * An operand's step is 1 (an array) or 0 (one element for all); compute/ brings every broadcast
 * down to that. y may be a or b when their step is 1.
 */
#include "kernels/elementwise/extreme.h"
#include "kernels/elementwise/tail.h"
#include "kernels/simd.h"

/* The three step cases are separate loops: a run-time step keeps compilers from using vectors. */
#define BINARY(name, f)                                                                            \
    void FN(name)(int64_t n, const float *a, int sa, const float *b, int sb, float *y) {           \
        OM_COUNT_CALL();                                                                           \
        int64_t i = 0;                                                                             \
        if (n <= 0) return;                                                                        \
        vf va = vset1(*a), vb = vset1(*b);                                                         \
        int t = (int)(n % W);                                                                      \
        if (sa && sb) {                                                                            \
            for (; i + W <= n; i += W)                                                             \
                vstore(y + i, f(vload(a + i), vload(b + i)));                                      \
            if (t) vstore_n(y + i, f(vload_n(a + i, t), vload_n(b + i, t)), t);                    \
        } else if (sa) {                                                                           \
            for (; i + W <= n; i += W)                                                             \
                vstore(y + i, f(vload(a + i), vb));                                                \
            if (t) vstore_n(y + i, f(vload_n(a + i, t), vb), t);                                   \
        } else {                                                                                   \
            for (; i + W <= n; i += W)                                                             \
                vstore(y + i, f(va, sb ? vload(b + i) : vb));                                      \
            if (t) vstore_n(y + i, f(va, sb ? vload_n(b + i, t) : vb), t);                         \
        }                                                                                          \
    }

BINARY(add_f32, vadd)
BINARY(sub_f32, vsub)
BINARY(mul_f32, vmul)
BINARY(div_f32, vdiv)
BINARY(max_f32, om_max2)
BINARY(min_f32, om_min2)

#define COMPARE(name, op)                                                                          \
    void FN(name)(int64_t n, const float *a, int sa, const float *b, int sb, uint8_t *y) {         \
        OM_COUNT_CALL();                                                                           \
        if (sa && sb)                                                                              \
            for (int64_t i = 0; i < n; i++)                                                        \
                y[i] = a[i] op b[i];                                                               \
        else                                                                                       \
            for (int64_t i = 0; i < n; i++)                                                        \
                y[i] = a[sa ? i : 0] op b[sb ? i : 0];                                             \
    }
COMPARE(equal_f32, ==)
COMPARE(less_f32, <)
COMPARE(less_equal_f32, <=)

/* Min(Max(x, lo), hi), either absent */
void FN(clip_f32)(int64_t n, const float *x, const float *lo, const float *hi, float *y) {
    OM_COUNT_CALL();
    vf l = vset1(lo ? *lo : 0.0f), h = vset1(hi ? *hi : 0.0f);
    for (int64_t i = 0; i < n; i += W) {
        int t = (int)omi_min64(W, n - i);
        vf v  = om_load_t(x + i, t);
        if (lo) v = om_max2(v, l);
        if (hi) v = om_min2(v, h);
        om_store_t(y + i, v, t);
    }
}

/* lo <= x <= hi ? g : +0, absent bounds as infinities that let NaN through as outside */
void FN(clip_grad_f32)(int64_t n, const float *x, const float *lo, const float *hi, const float *g,
                       float *dx) {
    OM_COUNT_CALL();
    vf l = vset1(lo ? *lo : -__builtin_inff()), h = vset1(hi ? *hi : __builtin_inff());
    for (int64_t i = 0; i < n; i += W) {
        int t = (int)omi_min64(W, n - i);
        vf v  = om_load_t(x + i, t);
        vm m  = vm_and(vle(l, v), vle(v, h));
        om_store_t(dx + i, vsel(m, om_load_t(g + i, t), vset1(0.0f)), t);
    }
}

/* da = a wins ? g : tie ? g * 0.5 : +0; a wins when it is greater (s = 1: max) or less (min), or is
 * the only NaN. Two NaNs tie. */
void FN(extreme_grad_f32)(int64_t n, int max, const float *a, const float *b, const float *g,
                          float *da, float *db) {
    OM_COUNT_CALL();
    vf zero = vset1(0.0f);
    for (int64_t i = 0; i < n; i += W) {
        int t = (int)omi_min64(W, n - i);
        vf va = om_load_t(a + i, t), vb = om_load_t(b + i, t), vg = om_load_t(g + i, t);
        vm na = vunord(va, va), nb = vunord(vb, vb);
        vm wa   = vm_or(max ? vgt(va, vb) : vlt(va, vb), vm_and(na, vm_not(nb)));
        vm wb   = vm_or(max ? vgt(vb, va) : vlt(vb, va), vm_and(nb, vm_not(na)));
        vf half = vmul(vg, vset1(0.5f));
        if (da) om_store_t(da + i, vsel(wa, vg, vsel(wb, zero, half)), t);
        if (db) om_store_t(db + i, vsel(wb, vg, vsel(wa, zero, half)), t);
    }
}

/* bits of a where c is not 0, else of b */
void FN(select_u32)(int64_t n, const uint8_t *c, int sc, const uint32_t *a, int sa,
                    const uint32_t *b, int sb, uint32_t *y) {
    OM_COUNT_CALL();
    if (sc && sa && sb)
        for (int64_t i = 0; i < n; i++)
            y[i] = c[i] ? a[i] : b[i];
    else
        for (int64_t i = 0; i < n; i++)
            y[i] = c[sc ? i : 0] ? a[sa ? i : 0] : b[sb ? i : 0];
}

/* kept words only: w >= threshold ? x * scale : +0 (AR-12.5); threshold at most 2^32 - 1 */
void FN(dropout_f32)(int64_t n, const float *x, const uint32_t *w, uint32_t threshold, float scale,
                     float *y) {
    OM_COUNT_CALL();
    for (int64_t i = 0; i < n; i++)
        y[i] = w[i] >= threshold ? x[i] * scale : 0.0f;
}

/* Almost always there is none: eight vectors are only looked at, four comparisons of pairs, and
 * stored where one was found. */
void FN(canonical_nan_f32)(int64_t n, float *y) {
    OM_COUNT_CALL();
    int64_t i = 0;
    while (i < n) {
        int64_t end = omi_min64(n, i + 8 * W);
        if (end - i == 8 * W) {
            vm bad = vunord(vload(y + i), vload(y + i + W));
            bad    = vm_or(bad, vunord(vload(y + i + 2 * W), vload(y + i + 3 * W)));
            bad    = vm_or(bad, vunord(vload(y + i + 4 * W), vload(y + i + 5 * W)));
            bad    = vm_or(bad, vunord(vload(y + i + 6 * W), vload(y + i + 7 * W)));
            if (OM_LIKELY(!vm_any(bad))) {
                i = end;
                continue;
            }
        }
        for (; i < end; i += W) {
            int t = (int)omi_min64(W, end - i);
            vf v  = om_load_t(y + i, t);
            vm q  = vunord(v, v);
            if (vm_any(q)) om_store_t(y + i, vsel(q, vcast_f(vi_set1(0x7fc00000)), v), t);
        }
    }
}
