/*
 * checked.h -- size arithmetic that cannot wrap. Each returns false on overflow.
 */
#ifndef OM_BASE_CHECKED_H
#define OM_BASE_CHECKED_H

#include "base/compiler.h"

OM_INLINE bool omi_add_size(size_t a, size_t b, size_t *out) {
    return !__builtin_add_overflow(a, b, out);
}
OM_INLINE bool omi_mul_size(size_t a, size_t b, size_t *out) {
    return !__builtin_mul_overflow(a, b, out);
}
OM_INLINE bool omi_add_i64(int64_t a, int64_t b, int64_t *out) {
    return !__builtin_add_overflow(a, b, out);
}
OM_INLINE bool omi_mul_i64(int64_t a, int64_t b, int64_t *out) {
    return !__builtin_mul_overflow(a, b, out);
}
/* Product of n non-negative sizes; a zero anywhere gives 0 even where the others would overflow. */
OM_INLINE bool omi_product(const int64_t *v, int n, int64_t *out) {
    int64_t p = 1;
    for (int i = 0; i < n; i++)
        if (v[i] == 0) return *out = 0, true;
    for (int i = 0; i < n; i++)
        if (v[i] < 0 || !omi_mul_i64(p, v[i], &p)) return false;
    return *out = p, true;
}
/* The same product, or INT64_MAX: how much work there is, which is only compared. */
OM_INLINE int64_t omi_product_at_most(const int64_t *v, int n) {
    int64_t p;
    return omi_product(v, n, &p) ? p : INT64_MAX;
}

#endif
