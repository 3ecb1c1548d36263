/*
 * wide16.h -- the operations of kernels/simd.h as sixteen plain C lanes; test builds only.
 *
 * It runs the tile shapes, tails and masks of the AVX-512 column on any machine, with the soft FMA,
 * so that what that column computes is proved where AVX-512 is absent. Slow on purpose: clarity
 * only.
 */
#ifndef OM_SIMD_LANES_H
#define OM_SIMD_LANES_H

#include <string.h>

#include "kernels/simd/soft_fma.h"

#define OM_SIMD_NAME wide16
#define OM_SIMD_COL  OM_COL_WIDE16
#define W            16
#define DW           8
#define OM_HAVE_DFMA 0

typedef struct {
    float v[W];
} vf;
typedef struct {
    int32_t v[W];
} vi;
typedef struct {
    double v[DW];
} vd;
typedef struct {
    int64_t v[DW];
} vl;
typedef uint16_t vm; /* bit i: lane i */
typedef uint8_t vdm;

#define OM_LANES(type, n, expr)                                                                    \
    type r;                                                                                        \
    for (int i = 0; i < (n); i++)                                                                  \
        r.v[i] = (expr);                                                                           \
    return r
#define OM_MASK(type, n, expr)                                                                     \
    type r = 0;                                                                                    \
    for (int i = 0; i < (n); i++)                                                                  \
        r = (type)(r | (unsigned)((expr) ? 1 : 0) << i);                                           \
    return r

/* float32 */
OM_INLINE vf vload(const float *p) {
    OM_LANES(vf, W, p[i]);
}
OM_INLINE void vstore(float *p, vf a) {
    memcpy(p, a.v, sizeof a.v);
}
OM_INLINE vf vload_n(const float *p, int n) {
    OM_LANES(vf, W, i < n ? p[i] : 0.0f);
}
OM_INLINE void vstore_n(float *p, vf a, int n) {
    for (int i = 0; i < n; i++)
        p[i] = a.v[i];
}
OM_INLINE vf vset1(float a) {
    OM_LANES(vf, W, a);
}
OM_INLINE vf vadd(vf a, vf b) {
    OM_LANES(vf, W, a.v[i] + b.v[i]);
}
OM_INLINE vf vsub(vf a, vf b) {
    OM_LANES(vf, W, a.v[i] - b.v[i]);
}
OM_INLINE vf vmul(vf a, vf b) {
    OM_LANES(vf, W, a.v[i] * b.v[i]);
}
OM_INLINE vf vdiv(vf a, vf b) {
    OM_LANES(vf, W, a.v[i] / b.v[i]);
}
OM_INLINE vf vsqrt(vf a) {
    OM_LANES(vf, W, __builtin_sqrtf(a.v[i]));
}
OM_INLINE vf vfma(vf a, vf b, vf c) {
    OM_LANES(vf, W, OM_FMA1(a.v[i], b.v[i], c.v[i]));
}
OM_INLINE vf vround(vf a) {
    OM_LANES(vf, W, __builtin_rintf(a.v[i]));
}
OM_INLINE vf vfloor(vf a) {
    OM_LANES(vf, W, __builtin_floorf(a.v[i]));
}
OM_INLINE vf vceil(vf a) {
    OM_LANES(vf, W, __builtin_ceilf(a.v[i]));
}
OM_INLINE vf vtrunc(vf a) {
    OM_LANES(vf, W, __builtin_truncf(a.v[i]));
}
OM_INLINE vf vmax_raw(vf a, vf b) {
    OM_LANES(vf, W, a.v[i] > b.v[i] ? a.v[i] : b.v[i]);
}
OM_INLINE vf vmin_raw(vf a, vf b) {
    OM_LANES(vf, W, a.v[i] < b.v[i] ? a.v[i] : b.v[i]);
}
OM_INLINE vm vlt(vf a, vf b) {
    OM_MASK(vm, W, a.v[i] < b.v[i]);
}
OM_INLINE vm vle(vf a, vf b) {
    OM_MASK(vm, W, a.v[i] <= b.v[i]);
}
OM_INLINE vm vgt(vf a, vf b) {
    OM_MASK(vm, W, a.v[i] > b.v[i]);
}
OM_INLINE vm vge(vf a, vf b) {
    OM_MASK(vm, W, a.v[i] >= b.v[i]);
}
OM_INLINE vm veq(vf a, vf b) {
    OM_MASK(vm, W, a.v[i] == b.v[i]);
}
OM_INLINE vm vunord(vf a, vf b) {
    OM_MASK(vm, W, !(a.v[i] == a.v[i] && b.v[i] == b.v[i]));
}
OM_INLINE vf vsel(vm m, vf a, vf b) {
    OM_LANES(vf, W, m >> i & 1 ? a.v[i] : b.v[i]);
}

/* the even lanes of a, then those of b */
OM_INLINE vf veven(vf a, vf b) {
    OM_LANES(vf, W, i < W / 2 ? a.v[2 * i] : b.v[2 * i - W]);
}

/* the odd lanes of a, then those of b */
OM_INLINE vf vodd(vf a, vf b) {
    OM_LANES(vf, W, i < W / 2 ? a.v[2 * i + 1] : b.v[2 * i + 1 - W]);
}

/* r[i] lane j <-> r[j] lane i */
OM_INLINE void vtranspose(vf r[W]) {
    for (int i = 0; i < W; i++)
        for (int j = 0; j < i; j++) {
            float t   = r[i].v[j];
            r[i].v[j] = r[j].v[i];
            r[j].v[i] = t;
        }
}
/* lane i: bit i of bits */
OM_INLINE vm vm_bits(uint32_t bits) {
    return (vm)bits;
}

/* int32 */
OM_INLINE vi vi_load(const int32_t *p) {
    OM_LANES(vi, W, p[i]);
}
OM_INLINE void vi_store(int32_t *p, vi a) {
    memcpy(p, a.v, sizeof a.v);
}
OM_INLINE vi vi_load_n(const int32_t *p, int n) {
    OM_LANES(vi, W, i < n ? p[i] : 0);
}
OM_INLINE void vi_store_n(int32_t *p, vi a, int n) {
    for (int i = 0; i < n; i++)
        p[i] = a.v[i];
}
OM_INLINE vi vi_set1(int32_t a) {
    OM_LANES(vi, W, a);
}
OM_INLINE vi vcast_i(vf a) {
    vi r;
    memcpy(&r, &a, sizeof r);
    return r;
}
OM_INLINE vf vcast_f(vi a) {
    vf r;
    memcpy(&r, &a, sizeof r);
    return r;
}
OM_INLINE vf vi_cvtf(vi a) {
    OM_LANES(vf, W, (float)a.v[i]);
}
OM_INLINE vi vcvt_i(vf a) {
    OM_LANES(vi, W, a.v[i] >= -0x1p31f && a.v[i] < 0x1p31f ? (int32_t)a.v[i] : INT32_MIN);
}
OM_INLINE vi vi_add(vi a, vi b) {
    OM_LANES(vi, W, (int32_t)((uint32_t)a.v[i] + (uint32_t)b.v[i]));
}
OM_INLINE vi vi_sub(vi a, vi b) {
    OM_LANES(vi, W, (int32_t)((uint32_t)a.v[i] - (uint32_t)b.v[i]));
}
OM_INLINE vi vi_mul(vi a, vi b) {
    OM_LANES(vi, W, (int32_t)((uint32_t)a.v[i] * (uint32_t)b.v[i]));
}
OM_INLINE vi vi_and(vi a, vi b) {
    OM_LANES(vi, W, a.v[i] & b.v[i]);
}
OM_INLINE vi vi_or(vi a, vi b) {
    OM_LANES(vi, W, a.v[i] | b.v[i]);
}
OM_INLINE vi vi_xor(vi a, vi b) {
    OM_LANES(vi, W, a.v[i] ^ b.v[i]);
}
OM_INLINE vi vi_sll(vi a, int n) {
    OM_LANES(vi, W, (int32_t)((uint32_t)a.v[i] << n));
}
OM_INLINE vi vi_sra(vi a, int n) {
    OM_LANES(vi, W, a.v[i] >> n);
}
OM_INLINE vi vi_srl(vi a, int n) {
    OM_LANES(vi, W, (int32_t)((uint32_t)a.v[i] >> n));
}
OM_INLINE vm vi_eq(vi a, vi b) {
    OM_MASK(vm, W, a.v[i] == b.v[i]);
}
OM_INLINE vm vi_gt(vi a, vi b) {
    OM_MASK(vm, W, a.v[i] > b.v[i]);
}
OM_INLINE vi vi_sel(vm m, vi a, vi b) {
    OM_LANES(vi, W, m >> i & 1 ? a.v[i] : b.v[i]);
}

/* masks */
OM_INLINE vm vm_and(vm a, vm b) {
    return (vm)(a & b);
}
OM_INLINE vm vm_or(vm a, vm b) {
    return (vm)(a | b);
}
OM_INLINE vm vm_not(vm a) {
    return (vm)~a;
}
OM_INLINE bool vm_any(vm a) {
    return a != 0;
}

/* float64 */
OM_INLINE vd vd_load(const double *p) {
    OM_LANES(vd, DW, p[i]);
}
OM_INLINE void vd_store(double *p, vd a) {
    memcpy(p, a.v, sizeof a.v);
}
OM_INLINE vd vd_load_n(const double *p, int n) {
    OM_LANES(vd, DW, i < n ? p[i] : 0.0);
}
OM_INLINE void vd_store_n(double *p, vd a, int n) {
    for (int i = 0; i < n; i++)
        p[i] = a.v[i];
}
OM_INLINE vd vd_loadf(const float *p) {
    OM_LANES(vd, DW, (double)p[i]);
}
OM_INLINE vd vd_loadf_n(const float *p, int n) {
    OM_LANES(vd, DW, i < n ? (double)p[i] : 0.0);
}
OM_INLINE void vd_storef_n(float *p, vd a, int n) {
    for (int i = 0; i < n; i++)
        p[i] = (float)a.v[i];
}
OM_INLINE void vd_storef(float *p, vd a) {
    vd_storef_n(p, a, DW);
}
OM_INLINE vd vd_set1(double a) {
    OM_LANES(vd, DW, a);
}
OM_INLINE vd vd_add(vd a, vd b) {
    OM_LANES(vd, DW, a.v[i] + b.v[i]);
}
OM_INLINE vd vd_sub(vd a, vd b) {
    OM_LANES(vd, DW, a.v[i] - b.v[i]);
}
OM_INLINE vd vd_mul(vd a, vd b) {
    OM_LANES(vd, DW, a.v[i] * b.v[i]);
}
OM_INLINE vd vd_div(vd a, vd b) {
    OM_LANES(vd, DW, a.v[i] / b.v[i]);
}
OM_INLINE vd vd_sqrt(vd a) {
    OM_LANES(vd, DW, __builtin_sqrt(a.v[i]));
}
OM_INLINE vd vd_fma(vd a, vd b, vd c) {
    OM_LANES(vd, DW, a.v[i] * b.v[i] + c.v[i]);
}
/* the float64 value of the float32 quotient 1 / f32(d) */
OM_INLINE vd vd_rcp32(vd d) {
    OM_LANES(vd, DW, (double)(1.0f / (float)d.v[i]));
}
OM_INLINE vdm vd_lt(vd a, vd b) {
    OM_MASK(vdm, DW, a.v[i] < b.v[i]);
}
OM_INLINE vdm vd_gt(vd a, vd b) {
    OM_MASK(vdm, DW, a.v[i] > b.v[i]);
}
OM_INLINE vdm vd_eq(vd a, vd b) {
    OM_MASK(vdm, DW, a.v[i] == b.v[i]);
}
OM_INLINE vdm vd_unord(vd a) {
    OM_MASK(vdm, DW, a.v[i] != a.v[i]);
}
OM_INLINE vd vd_sel(vdm m, vd a, vd b) {
    OM_LANES(vd, DW, m >> i & 1 ? a.v[i] : b.v[i]);
}
OM_INLINE vdm vdm_and(vdm a, vdm b) {
    return (vdm)(a & b);
}
OM_INLINE vdm vdm_or(vdm a, vdm b) {
    return (vdm)(a | b);
}
OM_INLINE vdm vdm_not(vdm a) {
    return (vdm)~a;
}
OM_INLINE bool vd_any(vdm m) {
    return m != 0;
}

/* int64 */
OM_INLINE vl vl_load(const int64_t *p) {
    OM_LANES(vl, DW, p[i]);
}
OM_INLINE void vl_store(int64_t *p, vl a) {
    memcpy(p, a.v, sizeof a.v);
}
OM_INLINE vl vl_set1(int64_t a) {
    OM_LANES(vl, DW, a);
}
OM_INLINE vl vd_bits(vd a) {
    vl r;
    memcpy(&r, &a, sizeof r);
    return r;
}
OM_INLINE vd vl_bits(vl a) {
    vd r;
    memcpy(&r, &a, sizeof r);
    return r;
}
OM_INLINE vl vl_add(vl a, vl b) {
    OM_LANES(vl, DW, (int64_t)((uint64_t)a.v[i] + (uint64_t)b.v[i]));
}
OM_INLINE vl vl_sub(vl a, vl b) {
    OM_LANES(vl, DW, (int64_t)((uint64_t)a.v[i] - (uint64_t)b.v[i]));
}
OM_INLINE vl vl_and(vl a, vl b) {
    OM_LANES(vl, DW, a.v[i] & b.v[i]);
}
OM_INLINE vl vl_or(vl a, vl b) {
    OM_LANES(vl, DW, a.v[i] | b.v[i]);
}
OM_INLINE vl vl_xor(vl a, vl b) {
    OM_LANES(vl, DW, a.v[i] ^ b.v[i]);
}
OM_INLINE vl vl_sll(vl a, int n) {
    OM_LANES(vl, DW, (int64_t)((uint64_t)a.v[i] << n));
}
OM_INLINE vl vl_srl(vl a, int n) {
    OM_LANES(vl, DW, (int64_t)((uint64_t)a.v[i] >> n));
}
OM_INLINE vdm vl_eq0(vl a) {
    OM_MASK(vdm, DW, a.v[i] == 0);
}
/* t[i], any table; and 16-entry tables, index in the low four bits */
OM_INLINE vd vd_gather(const double *t, vl a) {
    OM_LANES(vd, DW, t[a.v[i]]);
}
OM_INLINE vd vd_table16(const double *t, vl a) {
    OM_LANES(vd, DW, t[a.v[i] & 15]);
}
OM_INLINE vf v_table16(const float *t, vi a) {
    OM_LANES(vf, W, t[a.v[i] & 15]);
}

#undef OM_LANES
#undef OM_MASK

#endif
