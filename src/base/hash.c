/*
 * hash.c -- see hash.h. XXH64 by its specification (doc/xxhash_spec.md of xxHash), SHA-256 by FIPS
 * 180-4.
 */
#include "base/hash.h"

#include <string.h>

#include "base/bytes.h"

#define P1 0x9E3779B185EBCA87ull
#define P2 0xC2B2AE3D27D4EB4Full
#define P3 0x165667B19E3779F9ull
#define P4 0x85EBCA77C2B2AE63ull
#define P5 0x27D4EB2F165667C5ull

OM_INLINE uint64_t rol64(uint64_t x, int k) {
    return x << k | x >> (64 - k);
}
OM_INLINE uint64_t xxh_round(uint64_t acc, uint64_t lane) {
    return rol64(acc + lane * P2, 31) * P1;
}

static om_status xxh_sink_write(om_sink *s, const void *p, size_t n) {
    omi_xxh64_add((om_xxh64 *)s, p, n);
    return OM_OK;
}

void omi_xxh64_init(om_xxh64 *h, uint64_t seed) {
    *h = (om_xxh64){.sink = {.write = xxh_sink_write},
                    .acc  = {seed + P1 + P2, seed + P2, seed, seed - P1},
                    .seed = seed};
}

static const uint8_t *xxh_stripes(om_xxh64 *h, const uint8_t *p, size_t n) {
    uint64_t a = h->acc[0], b = h->acc[1], c = h->acc[2], d = h->acc[3];
    for (; n >= 32; n -= 32, p += 32) {
        a = xxh_round(a, omi_load_u64(p));
        b = xxh_round(b, omi_load_u64(p + 8));
        c = xxh_round(c, omi_load_u64(p + 16));
        d = xxh_round(d, omi_load_u64(p + 24));
    }
    h->acc[0] = a, h->acc[1] = b, h->acc[2] = c, h->acc[3] = d;
    return p;
}

void omi_xxh64_add(om_xxh64 *h, const void *data, size_t n) {
    const uint8_t *p = data;
    if (n == 0) return;
    h->total += n;
    if (h->n_tail) {
        size_t k = 32 - h->n_tail < n ? 32 - h->n_tail : n;
        memcpy(h->tail + h->n_tail, p, k);
        h->n_tail += k;
        p += k;
        n -= k;
        if (h->n_tail < 32) return;
        xxh_stripes(h, h->tail, 32);
    }
    xxh_stripes(h, p, n);
    h->n_tail = n % 32;
    if (h->n_tail) memcpy(h->tail, p + (n - h->n_tail), h->n_tail);
}

uint64_t omi_xxh64_end(const om_xxh64 *h) {
    uint64_t x = h->seed + P5;
    if (h->total >= 32) {
        x = rol64(h->acc[0], 1) + rol64(h->acc[1], 7) + rol64(h->acc[2], 12) + rol64(h->acc[3], 18);
        for (int i = 0; i < 4; i++)
            x = (x ^ xxh_round(0, h->acc[i])) * P1 + P4;
    }
    x += h->total;
    const uint8_t *p = h->tail;
    size_t n         = h->n_tail;
    for (; n >= 8; n -= 8, p += 8)
        x = rol64(x ^ xxh_round(0, omi_load_u64(p)), 27) * P1 + P4;
    for (; n >= 4; n -= 4, p += 4)
        x = rol64(x ^ omi_load_u32(p) * P1, 23) * P2 + P3;
    for (; n; n--, p++)
        x = rol64(x ^ *p * P5, 11) * P1;
    x = (x ^ x >> 33) * P2;
    x = (x ^ x >> 29) * P3;
    return x ^ x >> 32;
}

uint64_t omi_xxh64(const void *data, size_t n, uint64_t seed) {
    om_xxh64 h;
    omi_xxh64_init(&h, seed);
    omi_xxh64_add(&h, data, n);
    return omi_xxh64_end(&h);
}

/* ---- SHA-256 -----------------------------------------------------------------------------------
 */

// clang-format off
static const uint32_t sha_k[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};
// clang-format on

OM_INLINE uint32_t ror32(uint32_t x, int k) {
    return x >> k | x << (32 - k);
}

static void sha_block(uint32_t s[8], const uint8_t *p) {
    uint32_t w[64], v[8];
    for (int i = 0; i < 16; i++)
        w[i] = (uint32_t)p[4 * i] << 24 | (uint32_t)p[4 * i + 1] << 16 |
               (uint32_t)p[4 * i + 2] << 8 | p[4 * i + 3];
    for (int i = 16; i < 64; i++) {
        uint32_t a = w[i - 15], b = w[i - 2];
        w[i] = w[i - 16] + w[i - 7] + (ror32(a, 7) ^ ror32(a, 18) ^ a >> 3) +
               (ror32(b, 17) ^ ror32(b, 19) ^ b >> 10);
    }
    memcpy(v, s, sizeof v);
    for (int i = 0; i < 64; i++) {
        uint32_t e = v[4], a = v[0];
        uint32_t t1 = v[7] + (ror32(e, 6) ^ ror32(e, 11) ^ ror32(e, 25)) +
                      ((e & v[5]) ^ (~e & v[6])) + sha_k[i] + w[i];
        uint32_t t2 =
            (ror32(a, 2) ^ ror32(a, 13) ^ ror32(a, 22)) + ((a & v[1]) ^ (a & v[2]) ^ (v[1] & v[2]));
        memmove(v + 1, v, 7 * sizeof v[0]);
        v[4] += t1;
        v[0] = t1 + t2;
    }
    for (int i = 0; i < 8; i++)
        s[i] += v[i];
}

void omi_sha256_init(om_sha256 *h) {
    *h = (om_sha256){.state = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f,
                               0x9b05688c, 0x1f83d9ab, 0x5be0cd19}};
}

void omi_sha256_add(om_sha256 *h, const void *data, size_t n) {
    const uint8_t *p = data;
    size_t have      = h->total % 64;
    if (n == 0) return;
    h->total += n;
    if (have) {
        size_t k = 64 - have < n ? 64 - have : n;
        memcpy(h->tail + have, p, k);
        p += k;
        n -= k;
        if (have + k < 64) return;
        sha_block(h->state, h->tail);
    }
    for (; n >= 64; n -= 64, p += 64)
        sha_block(h->state, p);
    if (n) memcpy(h->tail, p, n);
}

void omi_sha256_end(om_sha256 *h, uint8_t out[32]) {
    static const uint8_t pad[64] = {0x80};
    uint64_t bits                = h->total * 8;
    uint8_t len[8];
    for (int i = 0; i < 8; i++)
        len[i] = (uint8_t)(bits >> (56 - 8 * i));
    omi_sha256_add(h, pad, 1 + (119 - h->total % 64) % 64);
    omi_sha256_add(h, len, 8);
    for (int i = 0; i < 32; i++)
        out[i] = (uint8_t)(h->state[i / 4] >> (24 - 8 * (i % 4)));
}

void omi_hex(const uint8_t *data, size_t n, char *out) {
    static const char hex[] = "0123456789abcdef";
    for (size_t i = 0; i < n; i++) {
        out[2 * i]     = hex[data[i] >> 4];
        out[2 * i + 1] = hex[data[i] & 15];
    }
    out[2 * n] = 0;
}

void om_sha256_of(const void *data, size_t bytes, char hex[65]) {
    om_sha256 h;
    uint8_t digest[32];
    omi_sha256_init(&h);
    omi_sha256_add(&h, data, bytes);
    omi_sha256_end(&h, digest);
    omi_hex(digest, sizeof digest, hex);
}
