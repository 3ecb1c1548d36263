/*
 * avx512.h -- the vector operations of kernels/simd.h on AVX-512: 16 float32, 8 float64 lanes.
 */
#ifndef OM_SIMD_LANES_H
#define OM_SIMD_LANES_H

#include <immintrin.h>

#define OM_SIMD_NAME avx512
#define OM_SIMD_COL  OM_COL_AVX512
#define W            16
#define DW           8
#define OM_HAVE_DFMA 1

typedef __m512 vf;    /* W float32  */
typedef __m512i vi;   /* W int32    */
typedef __mmask16 vm; /* W booleans */
typedef __m512d vd;   /* DW float64 */
typedef __m512i vl;   /* DW int64   */
typedef __mmask8 vdm; /* DW booleans */

OM_INLINE __mmask16 vm_first(int n) {
    return (__mmask16)((1u << n) - 1u);
}
OM_INLINE __mmask8 vdm_first(int n) {
    return (__mmask8)((1u << n) - 1u);
}

/* float32 */
OM_INLINE vf vload(const float *p) {
    return _mm512_loadu_ps(p);
}
OM_INLINE void vstore(float *p, vf a) {
    _mm512_storeu_ps(p, a);
}
OM_INLINE vf vload_n(const float *p, int n) {
    return _mm512_maskz_loadu_ps(vm_first(n), p);
}
OM_INLINE void vstore_n(float *p, vf a, int n) {
    _mm512_mask_storeu_ps(p, vm_first(n), a);
}
OM_INLINE vf vset1(float a) {
    return _mm512_set1_ps(a);
}
OM_INLINE vf vadd(vf a, vf b) {
    return _mm512_add_ps(a, b);
}
OM_INLINE vf vsub(vf a, vf b) {
    return _mm512_sub_ps(a, b);
}
OM_INLINE vf vmul(vf a, vf b) {
    return _mm512_mul_ps(a, b);
}
OM_INLINE vf vdiv(vf a, vf b) {
    return _mm512_div_ps(a, b);
}
OM_INLINE vf vsqrt(vf a) {
    return _mm512_sqrt_ps(a);
}
OM_INLINE vf vfma(vf a, vf b, vf c) {
    return _mm512_fmadd_ps(a, b, c);
}
OM_INLINE vf vround(vf a) {
    return _mm512_roundscale_ps(a, 0x08);
}
OM_INLINE vf vfloor(vf a) {
    return _mm512_roundscale_ps(a, 0x09);
}
OM_INLINE vf vceil(vf a) {
    return _mm512_roundscale_ps(a, 0x0a);
}
OM_INLINE vf vtrunc(vf a) {
    return _mm512_roundscale_ps(a, 0x0b);
}
OM_INLINE vf vmax_raw(vf a, vf b) {
    return _mm512_max_ps(a, b);
}
OM_INLINE vf vmin_raw(vf a, vf b) {
    return _mm512_min_ps(a, b);
}
OM_INLINE vm vlt(vf a, vf b) {
    return _mm512_cmp_ps_mask(a, b, _CMP_LT_OQ);
}
OM_INLINE vm vle(vf a, vf b) {
    return _mm512_cmp_ps_mask(a, b, _CMP_LE_OQ);
}
OM_INLINE vm vgt(vf a, vf b) {
    return _mm512_cmp_ps_mask(a, b, _CMP_GT_OQ);
}
OM_INLINE vm vge(vf a, vf b) {
    return _mm512_cmp_ps_mask(a, b, _CMP_GE_OQ);
}
OM_INLINE vm veq(vf a, vf b) {
    return _mm512_cmp_ps_mask(a, b, _CMP_EQ_OQ);
}
OM_INLINE vm vunord(vf a, vf b) {
    return _mm512_cmp_ps_mask(a, b, _CMP_UNORD_Q);
}
OM_INLINE vf vsel(vm m, vf a, vf b) {
    return _mm512_mask_blend_ps(m, b, a);
}

/* the even lanes of a, then those of b */
OM_INLINE vf veven(vf a, vf b) {
    __m512i even = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
    return _mm512_permutex2var_ps(a, even, b);
}

/* the odd lanes of a, then those of b */
OM_INLINE vf vodd(vf a, vf b) {
    __m512i odd = _mm512_setr_epi32(1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31);
    return _mm512_permutex2var_ps(a, odd, b);
}

/* r[i] lane j <-> r[j] lane i */
OM_INLINE void vtranspose(vf r[W]) {
    __m512 t[W];
    for (int i = 0; i < 8; i++) {
        t[2 * i]     = _mm512_unpacklo_ps(r[2 * i], r[2 * i + 1]);
        t[2 * i + 1] = _mm512_unpackhi_ps(r[2 * i], r[2 * i + 1]);
    }
    for (int i = 0; i < 4; i++) {
        __m512d a = _mm512_castps_pd(t[4 * i]), b = _mm512_castps_pd(t[4 * i + 1]);
        __m512d c = _mm512_castps_pd(t[4 * i + 2]), d = _mm512_castps_pd(t[4 * i + 3]);
        r[4 * i]     = _mm512_castpd_ps(_mm512_unpacklo_pd(a, c));
        r[4 * i + 1] = _mm512_castpd_ps(_mm512_unpackhi_pd(a, c));
        r[4 * i + 2] = _mm512_castpd_ps(_mm512_unpacklo_pd(b, d));
        r[4 * i + 3] = _mm512_castpd_ps(_mm512_unpackhi_pd(b, d));
    }
    for (int i = 0; i < 4; i++) {
        t[i]      = _mm512_shuffle_f32x4(r[i], r[i + 4], 0x88);
        t[i + 4]  = _mm512_shuffle_f32x4(r[i], r[i + 4], 0xdd);
        t[i + 8]  = _mm512_shuffle_f32x4(r[i + 8], r[i + 12], 0x88);
        t[i + 12] = _mm512_shuffle_f32x4(r[i + 8], r[i + 12], 0xdd);
    }
    for (int i = 0; i < 4; i++) {
        r[i]      = _mm512_shuffle_f32x4(t[i], t[i + 8], 0x88);
        r[i + 8]  = _mm512_shuffle_f32x4(t[i], t[i + 8], 0xdd);
        r[i + 4]  = _mm512_shuffle_f32x4(t[i + 4], t[i + 12], 0x88);
        r[i + 12] = _mm512_shuffle_f32x4(t[i + 4], t[i + 12], 0xdd);
    }
}
/* lane i: bit i of bits */
OM_INLINE vm vm_bits(uint32_t bits) {
    return (vm)bits;
}

/* int32 */
OM_INLINE vi vi_load(const int32_t *p) {
    return _mm512_loadu_si512(p);
}
OM_INLINE void vi_store(int32_t *p, vi a) {
    _mm512_storeu_si512(p, a);
}
OM_INLINE vi vi_load_n(const int32_t *p, int n) {
    return _mm512_maskz_loadu_epi32(vm_first(n), p);
}
OM_INLINE void vi_store_n(int32_t *p, vi a, int n) {
    _mm512_mask_storeu_epi32(p, vm_first(n), a);
}
OM_INLINE vi vi_set1(int32_t a) {
    return _mm512_set1_epi32(a);
}
OM_INLINE vi vcast_i(vf a) {
    return _mm512_castps_si512(a);
}
OM_INLINE vf vcast_f(vi a) {
    return _mm512_castsi512_ps(a);
}
OM_INLINE vf vi_cvtf(vi a) {
    return _mm512_cvtepi32_ps(a);
}
OM_INLINE vi vcvt_i(vf a) {
    return _mm512_cvttps_epi32(a);
}
OM_INLINE vi vi_add(vi a, vi b) {
    return _mm512_add_epi32(a, b);
}
OM_INLINE vi vi_sub(vi a, vi b) {
    return _mm512_sub_epi32(a, b);
}
OM_INLINE vi vi_mul(vi a, vi b) {
    return _mm512_mullo_epi32(a, b);
}
OM_INLINE vi vi_and(vi a, vi b) {
    return _mm512_and_si512(a, b);
}
OM_INLINE vi vi_or(vi a, vi b) {
    return _mm512_or_si512(a, b);
}
OM_INLINE vi vi_xor(vi a, vi b) {
    return _mm512_xor_si512(a, b);
}
#define vi_sll(a, n) _mm512_slli_epi32(a, n)
#define vi_sra(a, n) _mm512_srai_epi32(a, n)
#define vi_srl(a, n) _mm512_srli_epi32(a, n)
OM_INLINE vm vi_eq(vi a, vi b) {
    return _mm512_cmpeq_epi32_mask(a, b);
}
OM_INLINE vm vi_gt(vi a, vi b) {
    return _mm512_cmpgt_epi32_mask(a, b);
}
OM_INLINE vi vi_sel(vm m, vi a, vi b) {
    return _mm512_mask_blend_epi32(m, b, a);
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
    return _mm512_loadu_pd(p);
}
OM_INLINE void vd_store(double *p, vd a) {
    _mm512_storeu_pd(p, a);
}
OM_INLINE vd vd_load_n(const double *p, int n) {
    return _mm512_maskz_loadu_pd(vdm_first(n), p);
}
OM_INLINE void vd_store_n(double *p, vd a, int n) {
    _mm512_mask_storeu_pd(p, vdm_first(n), a);
}
OM_INLINE vd vd_loadf(const float *p) {
    return _mm512_cvtps_pd(_mm256_loadu_ps(p));
}
OM_INLINE void vd_storef(float *p, vd a) {
    _mm256_storeu_ps(p, _mm512_cvtpd_ps(a));
}
OM_INLINE vd vd_loadf_n(const float *p, int n) {
    return _mm512_cvtps_pd(_mm256_maskz_loadu_ps(vdm_first(n), p));
}
OM_INLINE void vd_storef_n(float *p, vd a, int n) {
    _mm256_mask_storeu_ps(p, vdm_first(n), _mm512_cvtpd_ps(a));
}
OM_INLINE vd vd_set1(double a) {
    return _mm512_set1_pd(a);
}
OM_INLINE vd vd_add(vd a, vd b) {
    return _mm512_add_pd(a, b);
}
OM_INLINE vd vd_sub(vd a, vd b) {
    return _mm512_sub_pd(a, b);
}
OM_INLINE vd vd_mul(vd a, vd b) {
    return _mm512_mul_pd(a, b);
}
OM_INLINE vd vd_div(vd a, vd b) {
    return _mm512_div_pd(a, b);
}
OM_INLINE vd vd_sqrt(vd a) {
    return _mm512_sqrt_pd(a);
}
OM_INLINE vd vd_fma(vd a, vd b, vd c) {
    return _mm512_fmadd_pd(a, b, c);
}
/* the float64 value of the float32 quotient 1 / f32(d) */
OM_INLINE vd vd_rcp32(vd d) {
    return _mm512_cvtps_pd(_mm256_div_ps(_mm256_set1_ps(1.0f), _mm512_cvtpd_ps(d)));
}
OM_INLINE vdm vd_lt(vd a, vd b) {
    return _mm512_cmp_pd_mask(a, b, _CMP_LT_OQ);
}
OM_INLINE vdm vd_gt(vd a, vd b) {
    return _mm512_cmp_pd_mask(a, b, _CMP_GT_OQ);
}
OM_INLINE vdm vd_eq(vd a, vd b) {
    return _mm512_cmp_pd_mask(a, b, _CMP_EQ_OQ);
}
OM_INLINE vdm vd_unord(vd a) {
    return _mm512_cmp_pd_mask(a, a, _CMP_UNORD_Q);
}
OM_INLINE vd vd_sel(vdm m, vd a, vd b) {
    return _mm512_mask_blend_pd(m, b, a);
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
    return _mm512_loadu_si512(p);
}
OM_INLINE void vl_store(int64_t *p, vl a) {
    _mm512_storeu_si512(p, a);
}
OM_INLINE vl vl_set1(int64_t a) {
    return _mm512_set1_epi64(a);
}
OM_INLINE vl vd_bits(vd a) {
    return _mm512_castpd_si512(a);
}
OM_INLINE vd vl_bits(vl a) {
    return _mm512_castsi512_pd(a);
}
OM_INLINE vl vl_add(vl a, vl b) {
    return _mm512_add_epi64(a, b);
}
OM_INLINE vl vl_sub(vl a, vl b) {
    return _mm512_sub_epi64(a, b);
}
OM_INLINE vl vl_and(vl a, vl b) {
    return _mm512_and_si512(a, b);
}
OM_INLINE vl vl_or(vl a, vl b) {
    return _mm512_or_si512(a, b);
}
OM_INLINE vl vl_xor(vl a, vl b) {
    return _mm512_xor_si512(a, b);
}
#define vl_sll(a, n) _mm512_slli_epi64(a, n)
#define vl_srl(a, n) _mm512_srli_epi64(a, n)
OM_INLINE vdm vl_eq0(vl a) {
    return _mm512_testn_epi64_mask(a, a);
}
/* t[i], any table; and 16-entry tables, index in the low four bits */
OM_INLINE vd vd_gather(const double *t, vl i) {
    return _mm512_i64gather_pd(i, t, 8);
}
OM_INLINE vd vd_table16(const double *t, vl i) {
    return _mm512_permutex2var_pd(_mm512_loadu_pd(t), i, _mm512_loadu_pd(t + 8));
}
OM_INLINE vf v_table16(const float *t, vi i) {
    return _mm512_permutexvar_ps(i, _mm512_loadu_ps(t));
}

#endif
