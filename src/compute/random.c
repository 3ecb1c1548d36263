/*
 * random.c -- uniform, normal, integer and Bernoulli fills by counter, with our own log, sqrt, sin
 * and cos: nothing of libm reaches a weight (CD-22).
 */
#include "compute/random.h"

#include <math.h>

#include "compute/walk.h"
#include "kernels/table.h"

#define WORDS 256 /* words made at once; a multiple of 4 */

typedef struct draw_job {
    om_draw d;
    float a, b;
    double a64, b64;
    int64_t lo, hi;
    uint64_t threshold;
    float *f32;
    double *f64;
    int64_t *i64;
    uint8_t *u8;
} draw_job;

/* Pieces start at multiples of the grain, which is a multiple of WORDS, so blocks never straddle.
 */
static void words_at(const draw_job *j, int64_t word, int64_t n, uint32_t *w) {
    omi_philox_blocks(j->d.seed, j->d.stream, j->d.block + (uint64_t)(word / 4), omi_ceil_div(n, 4),
                      w);
}

static void uniform_range(void *arg, int64_t begin, int64_t end, int worker) {
    (void)worker;
    const draw_job *j = arg;
    uint32_t w[WORDS];
    for (int64_t i = begin; i < end; i += WORDS) {
        int64_t n = omi_min64(WORDS, end - i);
        words_at(j, i, n, w);
        for (int64_t k = 0; k < n; k++)
            j->f32[i + k] = omi_uniform_of(w[k], j->a, j->b);
    }
}

void omi_fill_uniform(om_draw d, float lo, float hi, int64_t n, float *y) {
    draw_job j = {.d = d, .a = lo, .b = hi, .f32 = y};
    omi_split(n, OMI_GRAIN, uniform_range, &j);
}

/* Box and Muller on word pairs: value 2p is r cos, value 2p + 1 is r sin. */
static void normal_range(void *arg, int64_t begin, int64_t end, int worker) {
    (void)worker;
    const draw_job *j   = arg;
    const om_kernels *k = omi_kernels();
    uint32_t w[WORDS];
    float r[WORDS / 2], t[WORDS / 2], c[WORDS / 2];
    for (int64_t i = begin; i < end; i += WORDS) {
        int64_t n = omi_min64(WORDS, end - i), pairs = omi_ceil_div(n, 2);
        words_at(j, i, n, w);
        for (int64_t p = 0; p < pairs; p++) {
            r[p] = (float)((w[2 * p] >> 8) + 1) * 0x1p-24f;
            t[p] = 0x1.921fb6p+2f * omi_u01(w[2 * p + 1]);
        }
        k->log_f32(pairs, r, r);
        for (int64_t p = 0; p < pairs; p++)
            r[p] = -2.0f * r[p];
        k->sqrt_f32(pairs, r, r);
        k->cos_f32(pairs, t, c);
        k->sin_f32(pairs, t, t);
        for (int64_t q = 0; q < n; q++) {
            float z       = r[q / 2] * (q % 2 ? t[q / 2] : c[q / 2]);
            j->f32[i + q] = j->a + j->b * z;
        }
    }
}

void omi_fill_normal(om_draw d, float mean, float std, int64_t n, float *y) {
    draw_job j = {.d = d, .a = mean, .b = std, .f32 = y};
    omi_split(n, OMI_GRAIN, normal_range, &j);
}

static void wide_range(void *arg, int64_t begin, int64_t end, int worker) {
    (void)worker;
    const draw_job *j = arg;
    uint32_t w[WORDS];
    for (int64_t i = begin; i < end; i += WORDS / 2) {
        int64_t n = omi_min64(WORDS / 2, end - i);
        words_at(j, 2 * i, 2 * n, w);
        for (int64_t k = 0; k < n; k++) {
            if (j->i64) {
                uint64_t r    = (uint64_t)w[2 * k + 1] << 32 | w[2 * k];
                j->i64[i + k] = omi_randint_of(r, j->lo, j->hi);
            } else {
                double v      = j->a64 + (j->b64 - j->a64) * omi_u01_64(w[2 * k], w[2 * k + 1]);
                j->f64[i + k] = v >= j->b64 ? nextafter(j->b64, -INFINITY) : v;
            }
        }
    }
}

void omi_fill_uniform_f64(om_draw d, double lo, double hi, int64_t n, double *y) {
    draw_job j = {.d = d, .a64 = lo, .b64 = hi, .f64 = y};
    omi_split(n, OMI_GRAIN, wide_range, &j);
}

void omi_fill_randint(om_draw d, int64_t lo, int64_t hi, int64_t n, int64_t *y) {
    draw_job j = {.d = d, .lo = lo, .hi = hi, .i64 = y};
    omi_split(n, OMI_GRAIN, wide_range, &j);
}

static void bernoulli_range(void *arg, int64_t begin, int64_t end, int worker) {
    (void)worker;
    const draw_job *j = arg;
    uint32_t w[WORDS];
    for (int64_t i = begin; i < end; i += WORDS) {
        int64_t n = omi_min64(WORDS, end - i);
        words_at(j, i, n, w);
        for (int64_t k = 0; k < n; k++)
            j->u8[i + k] = w[k] < j->threshold;
    }
}

void omi_fill_bernoulli(om_draw d, float p, int64_t n, uint8_t *y) {
    draw_job j = {.d = d, .threshold = omi_bernoulli_threshold(p), .u8 = y};
    omi_split(n, OMI_GRAIN, bernoulli_range, &j);
}
