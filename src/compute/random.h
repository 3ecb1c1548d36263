/*
 * random.h -- random fills of contiguous memory (AR-12.3, AR-12.4). Value i is a function of (seed,
 * stream, first block, i) alone; take the blocks with omi_rng_take32 / omi_rng_take64 before the
 * call.
 */
#ifndef OM_COMPUTE_RANDOM_H
#define OM_COMPUTE_RANDOM_H

#include "base/rng.h"

typedef struct om_draw {
    uint64_t seed, stream, block;
} om_draw;

/* The blocks for n 32-bit draws (uniform, normal, bernoulli), and for n 64-bit draws (randint,
 * float64 uniform), taken from a generator. */
OM_INLINE om_draw omi_draw32(om_rng *r, int64_t n) {
    return (om_draw){r->seed, r->stream, omi_rng_take32(r, n)};
}
OM_INLINE om_draw omi_draw64(om_rng *r, int64_t n) {
    return (om_draw){r->seed, r->stream, omi_rng_take64(r, n)};
}

void omi_fill_uniform(om_draw d, float lo, float hi, int64_t n, float *y);
void omi_fill_normal(om_draw d, float mean, float std, int64_t n, float *y);
void omi_fill_uniform_f64(om_draw d, double lo, double hi, int64_t n, double *y);
/* [lo, hi), all lo when that is empty */
void omi_fill_randint(om_draw d, int64_t lo, int64_t hi, int64_t n, int64_t *y);
/* 1 with probability p */
void omi_fill_bernoulli(om_draw d, float p, int64_t n, uint8_t *y);

#endif
