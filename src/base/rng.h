/*
 * rng.h -- random numbers by counter: Philox4x32-10 (AR-12).
 *
 * A generator is three words: seed (the key), stream, and the next block of four 32-bit words.
 * Value i of a call uses fixed words of a fixed block, nothing is ever rejected, so values can be
 * computed in any order and on any thread, and a call moves the generator by a number of blocks
 * that depends on its size only. Checkpoints save the three words. Float32 fills are in
 * compute/random.h.
 *
 * Needs: compiler.h, the public om_rng.  Used by: compute, ops, nn, training.
 */
#ifndef OM_BASE_RNG_H
#define OM_BASE_RNG_H

#include "base/compiler.h"
#include "onemodel/tensor.h" /* om_rng: block is the next one unused */

/* The streams of AR-12.6, so that adding draws of one kind does not move another. */
enum {
    OM_STREAM_INIT    = 0,
    OM_STREAM_SHUFFLE = 1,
    OM_STREAM_DROPOUT = 2,
    OM_STREAM_USER    = 3,
    OM_STREAM_SESSION = 16 /* plus the node index */
};

/* The four words of one block. */
void omi_philox(uint64_t seed, uint64_t stream, uint64_t block, uint32_t out[4]);
/* n consecutive blocks, 4n words. */
void omi_philox_blocks(uint64_t seed, uint64_t stream, uint64_t block, int64_t n, uint32_t *out);

/* Takes the blocks for n 32-bit (or 64-bit) values and returns the first of them (AR-12.2). */
OM_INLINE uint64_t omi_rng_take32(om_rng *r, int64_t n) {
    uint64_t first = r->block;
    r->block += (uint64_t)omi_ceil_div(n, 4);
    return first;
}
OM_INLINE uint64_t omi_rng_take64(om_rng *r, int64_t n) {
    uint64_t first = r->block;
    r->block += (uint64_t)omi_ceil_div(n, 2);
    return first;
}

/* [0, 1) on a grid of 2^-24, exact. */
OM_INLINE float omi_u01(uint32_t w) {
    return (float)(w >> 8) * 0x1p-24f;
}
/* lo + (hi - lo) * u01, kept below hi. */
float omi_uniform_of(uint32_t w, float lo, float hi);
/* [0, 1) on a grid of 2^-53 from two words, first one low. */
OM_INLINE double omi_u01_64(uint32_t low, uint32_t high) {
    return (double)(((uint64_t)high << 32 | low) >> 11) * 0x1p-53;
}
/* lo + floor(r * (hi - lo) / 2^64); lo when the range is empty. */
int64_t omi_randint_of(uint64_t r, int64_t lo, int64_t hi);
/* Words below it are successes (Bernoulli) or drops (Dropout): floor(p * 2^32), AR-12.4. p in [0,
 * 1]. */
uint64_t omi_bernoulli_threshold(float p);

/* The 64-bit value i of a call that started at block first. */
uint64_t omi_rng_value64(uint64_t seed, uint64_t stream, uint64_t first, int64_t i);
/* A uniform permutation of 0 .. n-1 into p; takes the blocks of n-1 64-bit values. */
void omi_permutation(om_rng *r, int64_t n, int64_t *p);

#endif
