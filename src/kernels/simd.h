/*
 * simd.h -- the vector language kernels are written in once and compiled in per column.
 *
 * A kernel source includes this header and defines ordinary functions named FN(entry); the build
 * compiles it once per column (src/kernels/CMakeLists.txt) with one of OM_SIMD_AVX512,
 * OM_SIMD_AVX2, OM_SIMD_WIDE16 set, or none for scalar. Types: vf, vi, vm are W lanes of float32,
 * int32, boolean; vd, vl, vdm are DW lanes of float64, int64, boolean.
 *
 * Only operations that IEEE 754 rounds correctly are here (AR-1.2): no estimates, no horizontal
 * adds, no machine's own min and max (vmax_raw(a, b) is exactly a > b ? a : b). vsel(m, a, b) is m
 * ? a : b. vcvt_i truncates and gives INT32_MIN out of range. Shift counts are constants. vd_fma is
 * fused only where OM_HAVE_DFMA: use it only where the result is proved equal either way.
 *
 * Everything shared is static and always inlined: an ordinary inline function could reach the
 * linker from the AVX-512 object and run on a machine that has none.
 */
#ifndef OM_KERNELS_SIMD_H
#define OM_KERNELS_SIMD_H

#include "base/compiler.h"
#include "kernels/table.h"

#if defined(OM_SIMD_AVX512)
#    include "kernels/simd/avx512.h"
#elif defined(OM_SIMD_AVX2)
#    include "kernels/simd/avx2.h"
#elif defined(OM_SIMD_WIDE16)
#    include "kernels/simd/wide16.h"
#else
#    include "kernels/simd/scalar.h"
#endif

#define OM_CAT2(a, b) a##_##b
#define OM_CAT(a, b)  OM_CAT2(a, b)
#define OM_STR2(a)    #a
#define OM_STR(a)     OM_STR2(a)
/* The name of entry x in this column: omi_gemm_f32_avx2. */
#define FN(x) OM_CAT(OM_CAT(omi, x), OM_SIMD_NAME)

/* Unrolls the loop that follows, up to 16 times. */
#if defined(OM_SIMD_WIDE16) || defined(OM_NO_UNROLL)
#    define OM_UNROLL  /* lanes that are loops already, or sanitizers: it only costs compile time  \
                        */
#elif defined(__clang__)
#    define OM_UNROLL _Pragma("clang loop unroll(full)")
#else
#    define OM_UNROLL _Pragma("GCC unroll 16")
#endif

/* Keeps the loop that follows as it stands. clang would unroll the loop over k of a tile and put
 * accumulators on the stack. */
#if defined(__clang__)
#    define OM_KEEP_LOOP _Pragma("clang loop unroll(disable)")
#else
#    define OM_KEEP_LOOP
#endif

/* First statement of every entry: counts the call for its column in test builds. */
#if OM_WIDE16
#    define OM_COUNT_CALL() omi_kernel_count(OM_SIMD_COL)
#else
#    define OM_COUNT_CALL() ((void)0)
#endif

#define OM_KERNEL(name, ret, params) ret FN(name) params;
#include "kernels/kernels.def"
#undef OM_KERNEL

#endif
