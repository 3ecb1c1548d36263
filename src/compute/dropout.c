/*
 * dropout.c -- Dropout as a selection by counter (AR-12.5), and the canonical NaN (AR-1.4 b).
 */
#include <math.h>
#include <string.h>

#include "base/rng.h"
#include "compute/elementwise.h"
#include "compute/map.h"
#include "kernels/table.h"

#define WORDS 512 /* words made at once; a multiple of 4 */

typedef struct drop_arg {
    uint64_t seed, stream, block, threshold;
    float scale;
} drop_arg;

static void dropout_run(const omi_map *m, int64_t n, int64_t first, const void *const *in,
                        const int *step, void *const *out) {
    const drop_arg *d = m->arg;
    const float *x    = in[0];
    float *y          = out[0];
    uint32_t w[WORDS + 4];
    (void)step;
    if (d->threshold > UINT32_MAX) {
        memset(y, 0, (size_t)n * sizeof *y);
        return;
    }
    for (int64_t i = 0; i < n;) {
        int64_t at = first + i, skip = at % 4, k = omi_min64(WORDS, n - i);
        omi_philox_blocks(d->seed, d->stream, d->block + (uint64_t)(at / 4),
                          omi_ceil_div(skip + k, 4), w);
        omi_kernels()->dropout_f32(k, x + i, w + skip, (uint32_t)d->threshold, d->scale, y + i);
        i += k;
    }
}

void omi_dropout(const om_view *x, float p, uint64_t seed, uint64_t stream, uint64_t block,
                 const om_view *y) {
    drop_arg d = {.seed      = seed,
                  .stream    = stream,
                  .block     = block,
                  .threshold = omi_bernoulli_threshold(p),
                  .scale     = (float)(1.0 / (1.0 - (double)p))};
    omi_map m  = {.n_in       = 1,
                  .n_out      = 1,
                  .in         = {x},
                  .out        = {y},
                  .no_scalars = true,
                  .run        = dropout_run,
                  .arg        = &d};
    omi_map_apply(&m);
}

static void canonical_f32(void *arg, int64_t begin, int64_t end, int worker) {
    (void)worker;
    omi_kernels()->canonical_nan_f32(end - begin, (float *)arg + begin);
}
static void canonical_f64(void *arg, int64_t begin, int64_t end, int worker) {
    (void)worker;
    for (double *p = (double *)arg + begin, *e = (double *)arg + end; p < e; p++)
        if (*p != *p) *p = (double)NAN;
}

void omi_canonical_nan(const om_view *y) {
    if (y->dtype == OM_F32)
        omi_split(omi_view_numel(y), 4 * OMI_GRAIN, canonical_f32, y->data);
    else if (y->dtype == OM_F64)
        omi_split(omi_view_numel(y), 4 * OMI_GRAIN, canonical_f64, y->data);
}
