/*
 * scalar.h -- the operations of kernels/simd.h on one element at a time: any machine, plain C.
 *
 * Without a hardware FMA, vfma is soft_fma.h and vd_fma is not fused (OM_HAVE_DFMA 0): no
 * definition contains a float64 fma, so it may only stand where the final float32 is proved the
 * same either way.
 */
#ifndef OM_SIMD_LANES_H
#define OM_SIMD_LANES_H

#include <string.h>

#include "kernels/simd/soft_fma.h"

#define OM_SIMD_NAME scalar
#define OM_SIMD_COL  OM_COL_SCALAR
#define W            1
#define DW           1

typedef float vf;
typedef int32_t vi;
typedef int vm; /* 0 or 1 */
typedef double vd;
typedef int64_t vl;
typedef int vdm;

/* the even lanes of a, then those of b */
OM_INLINE vf veven(vf a, vf b) {
    (void)b;
    return a;
}

/* the odd lanes of a, then those of b: of one lane the numbers go on */
OM_INLINE vf vodd(vf a, vf b) {
    (void)a;
    return b;
}

/* float32 */
OM_INLINE vf vload(const float *p) {
    return *p;
}
OM_INLINE void vstore(float *p, vf a) {
    *p = a;
}
OM_INLINE vf vload_n(const float *p, int n) {
    return n > 0 ? *p : 0.0f;
}
OM_INLINE void vstore_n(float *p, vf a, int n) {
    if (n > 0) *p = a;
}
OM_INLINE vf vset1(float a) {
    return a;
}
OM_INLINE vf vadd(vf a, vf b) {
    return a + b;
}
OM_INLINE vf vsub(vf a, vf b) {
    return a - b;
}
OM_INLINE vf vmul(vf a, vf b) {
    return a * b;
}
OM_INLINE vf vdiv(vf a, vf b) {
    return a / b;
}
OM_INLINE vf vsqrt(vf a) {
    return __builtin_sqrtf(a);
}
OM_INLINE vf vfma(vf a, vf b, vf c) {
    return OM_FMA1(a, b, c);
}
OM_INLINE vf vround(vf a) {
    return __builtin_rintf(a);
}
OM_INLINE vf vfloor(vf a) {
    return __builtin_floorf(a);
}
OM_INLINE vf vceil(vf a) {
    return __builtin_ceilf(a);
}
OM_INLINE vf vtrunc(vf a) {
    return __builtin_truncf(a);
}
OM_INLINE vf vmax_raw(vf a, vf b) {
    return a > b ? a : b;
}
OM_INLINE vf vmin_raw(vf a, vf b) {
    return a < b ? a : b;
}
OM_INLINE vm vlt(vf a, vf b) {
    return a < b;
}
OM_INLINE vm vle(vf a, vf b) {
    return a <= b;
}
OM_INLINE vm vgt(vf a, vf b) {
    return a > b;
}
OM_INLINE vm vge(vf a, vf b) {
    return a >= b;
}
OM_INLINE vm veq(vf a, vf b) {
    return a == b;
}
OM_INLINE vm vunord(vf a, vf b) {
    return !(a == a && b == b);
}
OM_INLINE vf vsel(vm m, vf a, vf b) {
    return m ? a : b;
}

OM_INLINE void vtranspose(vf r[W]) {
    (void)r;
}
OM_INLINE vm vm_bits(uint32_t bits) {
    return (vm)(bits & 1);
}

/* int32 */
OM_INLINE vi vi_load(const int32_t *p) {
    return *p;
}
OM_INLINE void vi_store(int32_t *p, vi a) {
    *p = a;
}
OM_INLINE vi vi_load_n(const int32_t *p, int n) {
    return n > 0 ? *p : 0;
}
OM_INLINE void vi_store_n(int32_t *p, vi a, int n) {
    if (n > 0) *p = a;
}
OM_INLINE vi vi_set1(int32_t a) {
    return a;
}
OM_INLINE vi vcast_i(vf a) {
    vi r;
    memcpy(&r, &a, 4);
    return r;
}
OM_INLINE vf vcast_f(vi a) {
    vf r;
    memcpy(&r, &a, 4);
    return r;
}
OM_INLINE vf vi_cvtf(vi a) {
    return (float)a;
}
OM_INLINE vi vcvt_i(vf a) {
    return a >= -0x1p31f && a < 0x1p31f ? (int32_t)a : INT32_MIN;
}
OM_INLINE vi vi_add(vi a, vi b) {
    return (vi)((uint32_t)a + (uint32_t)b);
}
OM_INLINE vi vi_sub(vi a, vi b) {
    return (vi)((uint32_t)a - (uint32_t)b);
}
OM_INLINE vi vi_mul(vi a, vi b) {
    return (vi)((uint32_t)a * (uint32_t)b);
}
OM_INLINE vi vi_and(vi a, vi b) {
    return a & b;
}
OM_INLINE vi vi_or(vi a, vi b) {
    return a | b;
}
OM_INLINE vi vi_xor(vi a, vi b) {
    return a ^ b;
}
OM_INLINE vi vi_sll(vi a, int n) {
    return (vi)((uint32_t)a << n);
}
OM_INLINE vi vi_sra(vi a, int n) {
    return a >> n;
}
OM_INLINE vi vi_srl(vi a, int n) {
    return (vi)((uint32_t)a >> n);
}
OM_INLINE vm vi_eq(vi a, vi b) {
    return a == b;
}
OM_INLINE vm vi_gt(vi a, vi b) {
    return a > b;
}
OM_INLINE vi vi_sel(vm m, vi a, vi b) {
    return m ? a : b;
}

/* masks */
OM_INLINE vm vm_and(vm a, vm b) {
    return a & b;
}
OM_INLINE vm vm_or(vm a, vm b) {
    return a | b;
}
OM_INLINE vm vm_not(vm a) {
    return !a;
}
OM_INLINE bool vm_any(vm a) {
    return a != 0;
}

/* float64 */
OM_INLINE vd vd_load(const double *p) {
    return *p;
}
OM_INLINE void vd_store(double *p, vd a) {
    *p = a;
}
OM_INLINE vd vd_load_n(const double *p, int n) {
    return n > 0 ? *p : 0.0;
}
OM_INLINE void vd_store_n(double *p, vd a, int n) {
    if (n > 0) *p = a;
}
OM_INLINE vd vd_loadf(const float *p) {
    return (double)*p;
}
OM_INLINE void vd_storef(float *p, vd a) {
    *p = (float)a;
}
OM_INLINE vd vd_loadf_n(const float *p, int n) {
    return n > 0 ? (double)*p : 0.0;
}
OM_INLINE void vd_storef_n(float *p, vd a, int n) {
    if (n > 0) *p = (float)a;
}
OM_INLINE vd vd_set1(double a) {
    return a;
}
OM_INLINE vd vd_add(vd a, vd b) {
    return a + b;
}
OM_INLINE vd vd_sub(vd a, vd b) {
    return a - b;
}
OM_INLINE vd vd_mul(vd a, vd b) {
    return a * b;
}
OM_INLINE vd vd_div(vd a, vd b) {
    return a / b;
}
OM_INLINE vd vd_sqrt(vd a) {
    return __builtin_sqrt(a);
}
#if defined(__FMA__) || defined(__aarch64__)
#    define OM_HAVE_DFMA 1
OM_INLINE vd vd_fma(vd a, vd b, vd c) {
    return __builtin_fma(a, b, c);
}
#else
#    define OM_HAVE_DFMA 0
OM_INLINE vd vd_fma(vd a, vd b, vd c) {
    return a * b + c;
}
#endif
/* the float64 value of the float32 quotient 1 / f32(d) */
OM_INLINE vd vd_rcp32(vd d) {
    return (double)(1.0f / (float)d);
}
OM_INLINE vdm vd_lt(vd a, vd b) {
    return a < b;
}
OM_INLINE vdm vd_gt(vd a, vd b) {
    return a > b;
}
OM_INLINE vdm vd_eq(vd a, vd b) {
    return a == b;
}
OM_INLINE vdm vd_unord(vd a) {
    return a != a;
}
OM_INLINE vd vd_sel(vdm m, vd a, vd b) {
    return m ? a : b;
}
OM_INLINE vdm vdm_and(vdm a, vdm b) {
    return a & b;
}
OM_INLINE vdm vdm_or(vdm a, vdm b) {
    return a | b;
}
OM_INLINE vdm vdm_not(vdm a) {
    return !a;
}
OM_INLINE bool vd_any(vdm m) {
    return m != 0;
}

/* int64 */
OM_INLINE vl vl_load(const int64_t *p) {
    return *p;
}
OM_INLINE void vl_store(int64_t *p, vl a) {
    *p = a;
}
OM_INLINE vl vl_set1(int64_t a) {
    return a;
}
OM_INLINE vl vd_bits(vd a) {
    vl r;
    memcpy(&r, &a, 8);
    return r;
}
OM_INLINE vd vl_bits(vl a) {
    vd r;
    memcpy(&r, &a, 8);
    return r;
}
OM_INLINE vl vl_add(vl a, vl b) {
    return (vl)((uint64_t)a + (uint64_t)b);
}
OM_INLINE vl vl_sub(vl a, vl b) {
    return (vl)((uint64_t)a - (uint64_t)b);
}
OM_INLINE vl vl_and(vl a, vl b) {
    return a & b;
}
OM_INLINE vl vl_or(vl a, vl b) {
    return a | b;
}
OM_INLINE vl vl_xor(vl a, vl b) {
    return a ^ b;
}
OM_INLINE vl vl_sll(vl a, int n) {
    return (vl)((uint64_t)a << n);
}
OM_INLINE vl vl_srl(vl a, int n) {
    return (vl)((uint64_t)a >> n);
}
OM_INLINE vdm vl_eq0(vl a) {
    return a == 0;
}
/* t[i], any table; and 16-entry tables, index in the low four bits */
OM_INLINE vd vd_gather(const double *t, vl i) {
    return t[i];
}
OM_INLINE vd vd_table16(const double *t, vl i) {
    return t[i & 15];
}
OM_INLINE vf v_table16(const float *t, vi i) {
    return t[i & 15];
}

#endif
