/*
 * repair.h -- writes every checksum of a container anew, as whoever forges a file would, so that
 * the readers' own checks stand alone.
 */
#ifndef OM_TESTS_GRAPH_REPAIR_H
#define OM_TESTS_GRAPH_REPAIR_H

#include <string.h>

#include "base/bytes.h"
#include "base/hash.h"

static inline void repair(uint8_t *p, size_t n) {
    uint32_t sections = omi_load_u32(p + 24);
    if (n < 64 || sections > (n - 64) / 32) return;
    for (uint32_t i = 0; i < sections; i++) {
        uint8_t *row = p + 64 + 32 * i;
        uint64_t at = omi_load_u64(row + 8), m = omi_load_u64(row + 16);
        if (at <= n && m <= n - at) omi_store_u64(row + 24, omi_xxh64(p + at, (size_t)m, 0));
    }
    omi_store_u64(p + 32, omi_xxh64(p + 64, 32 * (size_t)sections, 0));
    omi_store_u64(p + 56, omi_xxh64(p, 56, 0));
}

/* Where the section of this tag begins; *bytes is its size. 0 when there is none. */
static inline size_t section_at(const uint8_t *p, const char *tag, size_t *bytes) {
    for (uint32_t i = 0, n = omi_load_u32(p + 24); i < n; i++) {
        const uint8_t *row = p + 64 + 32 * i;
        if (memcmp(row, tag, 4) != 0) continue;
        if (bytes) *bytes = (size_t)omi_load_u64(row + 16);
        return (size_t)omi_load_u64(row + 8);
    }
    return 0;
}

#endif
