/*
 * compiler.h -- attributes and small helpers every file may use.
 *
 * Only gcc and clang build the library, so their attributes are used directly; public headers stay
 * portable.
 */
#ifndef OM_BASE_COMPILER_H
#define OM_BASE_COMPILER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define OM_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
#define OM_COLD              __attribute__((cold, noinline))
#define OM_INLINE            static inline __attribute__((always_inline))
#define OM_UNUSED            __attribute__((unused))
#define OM_LIKELY(x)         __builtin_expect(!!(x), 1)
#define OM_UNLIKELY(x)       __builtin_expect(!!(x), 0)
#define OM_COUNT(a)          (sizeof(a) / sizeof((a)[0]))

OM_INLINE int64_t omi_min64(int64_t a, int64_t b) {
    return a < b ? a : b;
}
OM_INLINE int64_t omi_max64(int64_t a, int64_t b) {
    return a > b ? a : b;
}
OM_INLINE int64_t omi_ceil_div(int64_t a, int64_t b) {
    return (a + b - 1) / b;
}

#endif
