/*
 * avx2.h -- the vector operations of kernels/simd.h on AVX2 with FMA: 8 float32, 4 float64 lanes.
 */
#ifndef OM_SIMD_LANES_H
#define OM_SIMD_LANES_H

#include <immintrin.h>

#define OM_SIMD_NAME avx2
#define OM_SIMD_COL  OM_COL_AVX2
#define W            8
#define DW           4
#define OM_HAVE_DFMA 1

typedef __m256 vf;   /* W float32  */
typedef __m256i vi;  /* W int32    */
typedef __m256 vm;   /* W booleans, all bits of a lane */
typedef __m256d vd;  /* DW float64 */
typedef __m256i vl;  /* DW int64   */
typedef __m256d vdm; /* DW booleans, all bits of a lane */

/* The first n lanes, as maskload wants them. */
OM_INLINE __m256i om_lanes32(int n) {
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(n), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}
OM_INLINE __m256i om_lanes64(int n) {
    return _mm256_cmpgt_epi64(_mm256_set1_epi64x(n), _mm256_setr_epi64x(0, 1, 2, 3));
}
OM_INLINE __m128i om_lanes32x4(int n) {
    return _mm_cmpgt_epi32(_mm_set1_epi32(n), _mm_setr_epi32(0, 1, 2, 3));
}

/* float32 */
OM_INLINE vf vload(const float *p) {
    return _mm256_loadu_ps(p);
}
OM_INLINE void vstore(float *p, vf a) {
    _mm256_storeu_ps(p, a);
}
OM_INLINE vf vload_n(const float *p, int n) {
    return _mm256_maskload_ps(p, om_lanes32(n));
}
OM_INLINE void vstore_n(float *p, vf a, int n) {
    _mm256_maskstore_ps(p, om_lanes32(n), a);
}
OM_INLINE vf vset1(float a) {
    return _mm256_set1_ps(a);
}
OM_INLINE vf vadd(vf a, vf b) {
    return _mm256_add_ps(a, b);
}
OM_INLINE vf vsub(vf a, vf b) {
    return _mm256_sub_ps(a, b);
}
OM_INLINE vf vmul(vf a, vf b) {
    return _mm256_mul_ps(a, b);
}
OM_INLINE vf vdiv(vf a, vf b) {
    return _mm256_div_ps(a, b);
}
OM_INLINE vf vsqrt(vf a) {
    return _mm256_sqrt_ps(a);
}
OM_INLINE vf vfma(vf a, vf b, vf c) {
    return _mm256_fmadd_ps(a, b, c);
}
OM_INLINE vf vround(vf a) {
    return _mm256_round_ps(a, 0x08);
}
OM_INLINE vf vfloor(vf a) {
    return _mm256_round_ps(a, 0x09);
}
OM_INLINE vf vceil(vf a) {
    return _mm256_round_ps(a, 0x0a);
}
OM_INLINE vf vtrunc(vf a) {
    return _mm256_round_ps(a, 0x0b);
}
OM_INLINE vf vmax_raw(vf a, vf b) {
    return _mm256_max_ps(a, b);
}
OM_INLINE vf vmin_raw(vf a, vf b) {
    return _mm256_min_ps(a, b);
}
OM_INLINE vm vlt(vf a, vf b) {
    return _mm256_cmp_ps(a, b, _CMP_LT_OQ);
}
OM_INLINE vm vle(vf a, vf b) {
    return _mm256_cmp_ps(a, b, _CMP_LE_OQ);
}
OM_INLINE vm vgt(vf a, vf b) {
    return _mm256_cmp_ps(a, b, _CMP_GT_OQ);
}
OM_INLINE vm vge(vf a, vf b) {
    return _mm256_cmp_ps(a, b, _CMP_GE_OQ);
}
OM_INLINE vm veq(vf a, vf b) {
    return _mm256_cmp_ps(a, b, _CMP_EQ_OQ);
}
OM_INLINE vm vunord(vf a, vf b) {
    return _mm256_cmp_ps(a, b, _CMP_UNORD_Q);
}
OM_INLINE vf vsel(vm m, vf a, vf b) {
    return _mm256_blendv_ps(b, a, m);
}

/* the even lanes of a, then those of b */
OM_INLINE vf veven(vf a, vf b) {
    __m256 t = _mm256_shuffle_ps(a, b, 0x88);
    return _mm256_castpd_ps(_mm256_permute4x64_pd(_mm256_castps_pd(t), 0xd8));
}

/* the odd lanes of a, then those of b */
OM_INLINE vf vodd(vf a, vf b) {
    __m256 t = _mm256_shuffle_ps(a, b, 0xdd);
    return _mm256_castpd_ps(_mm256_permute4x64_pd(_mm256_castps_pd(t), 0xd8));
}

/* r[i] lane j <-> r[j] lane i */
OM_INLINE void vtranspose(vf r[W]) {
    __m256 t[W];
    for (int i = 0; i < 4; i++) {
        t[2 * i]     = _mm256_unpacklo_ps(r[2 * i], r[2 * i + 1]);
        t[2 * i + 1] = _mm256_unpackhi_ps(r[2 * i], r[2 * i + 1]);
    }
    for (int i = 0; i < 2; i++) {
        __m256d a = _mm256_castps_pd(t[4 * i]), b = _mm256_castps_pd(t[4 * i + 1]);
        __m256d c = _mm256_castps_pd(t[4 * i + 2]), d = _mm256_castps_pd(t[4 * i + 3]);
        r[4 * i]     = _mm256_castpd_ps(_mm256_unpacklo_pd(a, c));
        r[4 * i + 1] = _mm256_castpd_ps(_mm256_unpackhi_pd(a, c));
        r[4 * i + 2] = _mm256_castpd_ps(_mm256_unpacklo_pd(b, d));
        r[4 * i + 3] = _mm256_castpd_ps(_mm256_unpackhi_pd(b, d));
    }
    for (int i = 0; i < 4; i++) {
        __m256 a = r[i], b = r[i + 4];
        r[i]     = _mm256_permute2f128_ps(a, b, 0x20);
        r[i + 4] = _mm256_permute2f128_ps(a, b, 0x31);
    }
}
/* lane i: bit i of bits */
OM_INLINE vm vm_bits(uint32_t bits) {
    __m256i one = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128);
    __m256i b   = _mm256_and_si256(_mm256_set1_epi32((int)bits), one);
    return _mm256_castsi256_ps(_mm256_cmpeq_epi32(b, one));
}

/* int32 */
OM_INLINE vi vi_load(const int32_t *p) {
    return _mm256_loadu_si256((const __m256i *)p);
}
OM_INLINE void vi_store(int32_t *p, vi a) {
    _mm256_storeu_si256((__m256i *)p, a);
}
OM_INLINE vi vi_load_n(const int32_t *p, int n) {
    return _mm256_maskload_epi32((const int *)p, om_lanes32(n));
}
OM_INLINE void vi_store_n(int32_t *p, vi a, int n) {
    _mm256_maskstore_epi32((int *)p, om_lanes32(n), a);
}
OM_INLINE vi vi_set1(int32_t a) {
    return _mm256_set1_epi32(a);
}
OM_INLINE vi vcast_i(vf a) {
    return _mm256_castps_si256(a);
}
OM_INLINE vf vcast_f(vi a) {
    return _mm256_castsi256_ps(a);
}
OM_INLINE vf vi_cvtf(vi a) {
    return _mm256_cvtepi32_ps(a);
}
OM_INLINE vi vcvt_i(vf a) {
    return _mm256_cvttps_epi32(a);
}
OM_INLINE vi vi_add(vi a, vi b) {
    return _mm256_add_epi32(a, b);
}
OM_INLINE vi vi_sub(vi a, vi b) {
    return _mm256_sub_epi32(a, b);
}
OM_INLINE vi vi_mul(vi a, vi b) {
    return _mm256_mullo_epi32(a, b);
}
OM_INLINE vi vi_and(vi a, vi b) {
    return _mm256_and_si256(a, b);
}
OM_INLINE vi vi_or(vi a, vi b) {
    return _mm256_or_si256(a, b);
}
OM_INLINE vi vi_xor(vi a, vi b) {
    return _mm256_xor_si256(a, b);
}
#define vi_sll(a, n) _mm256_slli_epi32(a, n)
#define vi_sra(a, n) _mm256_srai_epi32(a, n)
#define vi_srl(a, n) _mm256_srli_epi32(a, n)
OM_INLINE vm vi_eq(vi a, vi b) {
    return _mm256_castsi256_ps(_mm256_cmpeq_epi32(a, b));
}
OM_INLINE vm vi_gt(vi a, vi b) {
    return _mm256_castsi256_ps(_mm256_cmpgt_epi32(a, b));
}
OM_INLINE vi vi_sel(vm m, vi a, vi b) {
    return _mm256_blendv_epi8(b, a, _mm256_castps_si256(m));
}

/* masks */
OM_INLINE vm vm_and(vm a, vm b) {
    return _mm256_and_ps(a, b);
}
OM_INLINE vm vm_or(vm a, vm b) {
    return _mm256_or_ps(a, b);
}
OM_INLINE vm vm_not(vm a) {
    return _mm256_xor_ps(a, _mm256_castsi256_ps(_mm256_set1_epi32(-1)));
}
OM_INLINE bool vm_any(vm a) {
    return _mm256_movemask_ps(a) != 0;
}

/* float64 */
OM_INLINE vd vd_load(const double *p) {
    return _mm256_loadu_pd(p);
}
OM_INLINE void vd_store(double *p, vd a) {
    _mm256_storeu_pd(p, a);
}
OM_INLINE vd vd_load_n(const double *p, int n) {
    return _mm256_maskload_pd(p, om_lanes64(n));
}
OM_INLINE void vd_store_n(double *p, vd a, int n) {
    _mm256_maskstore_pd(p, om_lanes64(n), a);
}
OM_INLINE vd vd_loadf(const float *p) {
    return _mm256_cvtps_pd(_mm_loadu_ps(p));
}
OM_INLINE void vd_storef(float *p, vd a) {
    _mm_storeu_ps(p, _mm256_cvtpd_ps(a));
}
OM_INLINE vd vd_loadf_n(const float *p, int n) {
    return _mm256_cvtps_pd(_mm_maskload_ps(p, om_lanes32x4(n)));
}
OM_INLINE void vd_storef_n(float *p, vd a, int n) {
    _mm_maskstore_ps(p, om_lanes32x4(n), _mm256_cvtpd_ps(a));
}
OM_INLINE vd vd_set1(double a) {
    return _mm256_set1_pd(a);
}
OM_INLINE vd vd_add(vd a, vd b) {
    return _mm256_add_pd(a, b);
}
OM_INLINE vd vd_sub(vd a, vd b) {
    return _mm256_sub_pd(a, b);
}
OM_INLINE vd vd_mul(vd a, vd b) {
    return _mm256_mul_pd(a, b);
}
OM_INLINE vd vd_div(vd a, vd b) {
    return _mm256_div_pd(a, b);
}
OM_INLINE vd vd_sqrt(vd a) {
    return _mm256_sqrt_pd(a);
}
OM_INLINE vd vd_fma(vd a, vd b, vd c) {
    return _mm256_fmadd_pd(a, b, c);
}
/* the float64 value of the float32 quotient 1 / f32(d) */
OM_INLINE vd vd_rcp32(vd d) {
    return _mm256_cvtps_pd(_mm_div_ps(_mm_set1_ps(1.0f), _mm256_cvtpd_ps(d)));
}
OM_INLINE vdm vd_lt(vd a, vd b) {
    return _mm256_cmp_pd(a, b, _CMP_LT_OQ);
}
OM_INLINE vdm vd_gt(vd a, vd b) {
    return _mm256_cmp_pd(a, b, _CMP_GT_OQ);
}
OM_INLINE vdm vd_eq(vd a, vd b) {
    return _mm256_cmp_pd(a, b, _CMP_EQ_OQ);
}
OM_INLINE vdm vd_unord(vd a) {
    return _mm256_cmp_pd(a, a, _CMP_UNORD_Q);
}
OM_INLINE vd vd_sel(vdm m, vd a, vd b) {
    return _mm256_blendv_pd(b, a, m);
}
OM_INLINE vdm vdm_and(vdm a, vdm b) {
    return _mm256_and_pd(a, b);
}
OM_INLINE vdm vdm_or(vdm a, vdm b) {
    return _mm256_or_pd(a, b);
}
OM_INLINE vdm vdm_not(vdm a) {
    return _mm256_xor_pd(a, _mm256_castsi256_pd(_mm256_set1_epi32(-1)));
}
OM_INLINE bool vd_any(vdm m) {
    return _mm256_movemask_pd(m) != 0;
}

/* int64 */
OM_INLINE vl vl_load(const int64_t *p) {
    return _mm256_loadu_si256((const __m256i *)p);
}
OM_INLINE void vl_store(int64_t *p, vl a) {
    _mm256_storeu_si256((__m256i *)p, a);
}
OM_INLINE vl vl_set1(int64_t a) {
    return _mm256_set1_epi64x(a);
}
OM_INLINE vl vd_bits(vd a) {
    return _mm256_castpd_si256(a);
}
OM_INLINE vd vl_bits(vl a) {
    return _mm256_castsi256_pd(a);
}
OM_INLINE vl vl_add(vl a, vl b) {
    return _mm256_add_epi64(a, b);
}
OM_INLINE vl vl_sub(vl a, vl b) {
    return _mm256_sub_epi64(a, b);
}
OM_INLINE vl vl_and(vl a, vl b) {
    return _mm256_and_si256(a, b);
}
OM_INLINE vl vl_or(vl a, vl b) {
    return _mm256_or_si256(a, b);
}
OM_INLINE vl vl_xor(vl a, vl b) {
    return _mm256_xor_si256(a, b);
}
#define vl_sll(a, n) _mm256_slli_epi64(a, n)
#define vl_srl(a, n) _mm256_srli_epi64(a, n)
OM_INLINE vdm vl_eq0(vl a) {
    return _mm256_castsi256_pd(_mm256_cmpeq_epi64(a, _mm256_setzero_si256()));
}
/* t[i], any table; and 16-entry tables, index in the low four bits */
OM_INLINE vd vd_gather(const double *t, vl i) {
    return _mm256_i64gather_pd(t, i, 8);
}
/* Four permutes and three blends: gathers are slower. */
OM_INLINE vd vd_table16(const double *t, vl i) {
    __m256i ix = _mm256_slli_epi32(_mm256_shuffle_epi32(i, 0xa0), 1); /* both halves of a double */
    ix         = _mm256_add_epi32(ix, _mm256_set1_epi64x((int64_t)1 << 32));
    __m256 a   = _mm256_permutevar8x32_ps(_mm256_castpd_ps(_mm256_loadu_pd(t)), ix);
    __m256 b   = _mm256_permutevar8x32_ps(_mm256_castpd_ps(_mm256_loadu_pd(t + 4)), ix);
    __m256 c   = _mm256_permutevar8x32_ps(_mm256_castpd_ps(_mm256_loadu_pd(t + 8)), ix);
    __m256 d   = _mm256_permutevar8x32_ps(_mm256_castpd_ps(_mm256_loadu_pd(t + 12)), ix);
    __m256d m4 = _mm256_castsi256_pd(_mm256_slli_epi64(i, 61)); /* bit 2, bit 3 as the sign */
    __m256d m8 = _mm256_castsi256_pd(_mm256_slli_epi64(i, 60));
    __m256d lo = _mm256_blendv_pd(_mm256_castps_pd(a), _mm256_castps_pd(b), m4);
    __m256d hi = _mm256_blendv_pd(_mm256_castps_pd(c), _mm256_castps_pd(d), m4);
    return _mm256_blendv_pd(lo, hi, m8);
}
OM_INLINE vf v_table16(const float *t, vi i) {
    __m256 a = _mm256_permutevar8x32_ps(_mm256_loadu_ps(t), i);
    __m256 b = _mm256_permutevar8x32_ps(_mm256_loadu_ps(t + 8), i);
    return _mm256_blendv_ps(a, b, _mm256_castsi256_ps(_mm256_slli_epi32(i, 28)));
}

#endif
