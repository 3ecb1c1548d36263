/*
 * rng.c -- Philox4x32-10 and the integer draws (AR-12.1, AR-12.4).
 *
 * Blocks are computed eight at a time in plain loops over lanes, which compilers turn into vector
 * multiplies; the words do not depend on it.
 */
#include "base/rng.h"

#include <math.h>

#define MUL0  0xD2511F53u
#define MUL1  0xCD9E8D57u
#define WEYL0 0x9E3779B9u
#define WEYL1 0xBB67AE85u
#define LANES 8

void omi_philox(uint64_t seed, uint64_t stream, uint64_t block, uint32_t out[4]) {
    uint32_t k0 = (uint32_t)seed, k1 = (uint32_t)(seed >> 32);
    uint32_t c0 = (uint32_t)block, c1 = (uint32_t)(block >> 32);
    uint32_t c2 = (uint32_t)stream, c3 = (uint32_t)(stream >> 32);
    for (int r = 0; r < 10; r++) {
        uint64_t a = (uint64_t)MUL0 * c0, b = (uint64_t)MUL1 * c2;
        c0 = (uint32_t)(b >> 32) ^ c1 ^ k0;
        c1 = (uint32_t)b;
        c2 = (uint32_t)(a >> 32) ^ c3 ^ k1;
        c3 = (uint32_t)a;
        k0 += WEYL0;
        k1 += WEYL1;
    }
    out[0] = c0, out[1] = c1, out[2] = c2, out[3] = c3;
}

static void philox_lanes(uint64_t seed, uint64_t stream, uint64_t block, uint32_t *out) {
    uint64_t c0[LANES], c1[LANES], c2[LANES], c3[LANES]; /* 32-bit values in 64-bit lanes */
    uint64_t k0 = (uint32_t)seed, k1 = seed >> 32;
    for (int l = 0; l < LANES; l++) {
        uint64_t b = block + (uint64_t)l;
        c0[l]      = (uint32_t)b;
        c1[l]      = b >> 32;
        c2[l]      = (uint32_t)stream;
        c3[l]      = stream >> 32;
    }
    for (int r = 0; r < 10; r++) {
        for (int l = 0; l < LANES; l++) {
            uint64_t a = (c0[l] & 0xffffffffu) * MUL0, b = (c2[l] & 0xffffffffu) * MUL1;
            c0[l] = (b >> 32) ^ c1[l] ^ k0;
            c1[l] = b & 0xffffffffu;
            c2[l] = (a >> 32) ^ c3[l] ^ k1;
            c3[l] = a & 0xffffffffu;
        }
        k0 = (uint32_t)(k0 + WEYL0);
        k1 = (uint32_t)(k1 + WEYL1);
    }
    for (int l = 0; l < LANES; l++) {
        out[4 * l]     = (uint32_t)c0[l];
        out[4 * l + 1] = (uint32_t)c1[l];
        out[4 * l + 2] = (uint32_t)c2[l];
        out[4 * l + 3] = (uint32_t)c3[l];
    }
}

void omi_philox_blocks(uint64_t seed, uint64_t stream, uint64_t block, int64_t n, uint32_t *out) {
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES)
        philox_lanes(seed, stream, block + (uint64_t)i, out + 4 * i);
    for (; i < n; i++)
        omi_philox(seed, stream, block + (uint64_t)i, out + 4 * i);
}

float omi_uniform_of(uint32_t w, float lo, float hi) {
    float v = lo + (hi - lo) * omi_u01(w);
    return v >= hi ? nextafterf(hi, -INFINITY) : v;
}

int64_t omi_randint_of(uint64_t r, int64_t lo, int64_t hi) {
    if (hi <= lo) return lo;
    /* high 64 bits of the 128-bit product, by halves: __int128 is not ISO C */
    uint64_t n = (uint64_t)hi - (uint64_t)lo;
    uint64_t a = r >> 32, b = (uint32_t)r, c = n >> 32, d = (uint32_t)n;
    uint64_t mid = a * d + (b * d >> 32), low = b * c + (uint32_t)mid;
    return (int64_t)((uint64_t)lo + a * c + (mid >> 32) + (low >> 32));
}

uint64_t omi_bernoulli_threshold(float p) {
    double t = (double)p * 0x1p32; /* exact */
    return t <= 0 ? 0 : t >= 0x1p32 ? 1ull << 32 : (uint64_t)t;
}

uint64_t omi_rng_value64(uint64_t seed, uint64_t stream, uint64_t first, int64_t i) {
    uint32_t w[4];
    omi_philox(seed, stream, first + (uint64_t)(i / 2), w);
    int k = (int)(i % 2) * 2;
    return (uint64_t)w[k + 1] << 32 | w[k];
}

void omi_permutation(om_rng *r, int64_t n, int64_t *p) {
    for (int64_t i = 0; i < n; i++)
        p[i] = i;
    if (n < 2) return;
    uint64_t first = omi_rng_take64(r, n - 1);
    uint32_t w[4]  = {0};
    for (int64_t i = n - 1, v = 0; i > 0; i--, v++) {
        if (v % 2 == 0) omi_philox(r->seed, r->stream, first + (uint64_t)(v / 2), w);
        int k     = (int)(v % 2) * 2;
        int64_t s = omi_randint_of((uint64_t)w[k + 1] << 32 | w[k], 0, i + 1);
        int64_t t = p[i];
        p[i]      = p[s];
        p[s]      = t;
    }
}
