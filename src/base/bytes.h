/*
 * bytes.h -- little-endian numbers at any address. Files are little-endian on every machine.
 */
#ifndef OM_BASE_BYTES_H
#define OM_BASE_BYTES_H

#include <string.h>

#include "base/compiler.h"

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
#    define OM_LE32(v) __builtin_bswap32(v)
#    define OM_LE64(v) __builtin_bswap64(v)
#    define OM_LE16(v) __builtin_bswap16(v)
#else
#    define OM_LE32(v) (v)
#    define OM_LE64(v) (v)
#    define OM_LE16(v) (v)
#endif

OM_INLINE uint32_t omi_load_u32(const void *p) {
    uint32_t v;
    memcpy(&v, p, sizeof v);
    return OM_LE32(v);
}
OM_INLINE uint64_t omi_load_u64(const void *p) {
    uint64_t v;
    memcpy(&v, p, sizeof v);
    return OM_LE64(v);
}
OM_INLINE int64_t omi_load_i64(const void *p) {
    return (int64_t)omi_load_u64(p);
}
OM_INLINE void omi_store_u16(void *p, uint16_t v) {
    v = OM_LE16(v);
    memcpy(p, &v, sizeof v);
}
OM_INLINE void omi_store_u32(void *p, uint32_t v) {
    v = OM_LE32(v);
    memcpy(p, &v, sizeof v);
}
OM_INLINE void omi_store_u64(void *p, uint64_t v) {
    v = OM_LE64(v);
    memcpy(p, &v, sizeof v);
}

#endif
