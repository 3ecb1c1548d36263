/*
 * fpenv.h -- the floating-point control word of AR-1.3: nearest, no flushing, no traps.
 *
 * Not optional: loading any shared object linked with -ffast-math turns flushing on for the
 * process.
 */
#ifndef OM_BASE_FPENV_H
#define OM_BASE_FPENV_H

#include "base/compiler.h"

#if defined(__x86_64__) || defined(__SSE__)
#    include <xmmintrin.h>
typedef uint32_t omi_fpenv;
OM_INLINE omi_fpenv omi_fp_enter(void) {
    omi_fpenv old = _mm_getcsr();
    if (OM_UNLIKELY((old & 0xffc0u) != 0x1f80u)) _mm_setcsr(0x1f80u);
    return old;
}
OM_INLINE void omi_fp_leave(omi_fpenv old) {
    if (OM_UNLIKELY((old & 0xffc0u) != 0x1f80u)) _mm_setcsr(old);
}
#elif defined(__aarch64__)
typedef uint64_t omi_fpenv;
OM_INLINE omi_fpenv omi_fp_enter(void) {
    uint64_t old;
    __asm__ volatile("mrs %0, fpcr" : "=r"(old));
    if (OM_UNLIKELY(old != 0)) __asm__ volatile("msr fpcr, %0" : : "r"((uint64_t)0));
    return old;
}
OM_INLINE void omi_fp_leave(omi_fpenv old) {
    if (OM_UNLIKELY(old != 0)) __asm__ volatile("msr fpcr, %0" : : "r"(old));
}
#else
#    include <fenv.h>
typedef int omi_fpenv;
OM_INLINE omi_fpenv omi_fp_enter(void) {
    int old = fegetround();
    fesetround(FE_TONEAREST);
    return old;
}
OM_INLINE void omi_fp_leave(omi_fpenv old) {
    fesetround(old);
}
#endif

#endif
