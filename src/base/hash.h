/*
 * hash.h -- XXH64 (checksums of file sections) and SHA-256 (content identity).
 *
 * Written from their public descriptions; tests hold the published vectors. A checksum finds
 * accidents, not attackers: every reader checks the content as if there were none.
 */
#ifndef OM_BASE_HASH_H
#define OM_BASE_HASH_H

#include "base/sink.h"

uint64_t omi_xxh64(const void *data, size_t n, uint64_t seed);

/* The same, fed piece by piece. */
typedef struct om_xxh64 {
    om_sink sink; /* first: an om_xxh64 is a sink */
    uint64_t acc[4], seed, total;
    uint8_t tail[32];
    size_t n_tail;
} om_xxh64;
void omi_xxh64_init(om_xxh64 *h, uint64_t seed);
void omi_xxh64_add(om_xxh64 *h, const void *data, size_t n);
uint64_t omi_xxh64_end(const om_xxh64 *h);

typedef struct om_sha256 {
    uint32_t state[8];
    uint64_t total;
    uint8_t tail[64];
} om_sha256;
void omi_sha256_init(om_sha256 *h);
void omi_sha256_add(om_sha256 *h, const void *data, size_t n);
void omi_sha256_end(om_sha256 *h, uint8_t out[32]);
/* 64 lower-case digits and a NUL. */
void omi_hex(const uint8_t *data, size_t n, char *out);

#endif
