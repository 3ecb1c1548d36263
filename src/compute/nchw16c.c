/*
 * nchw16c.c -- the blocked layout NCHW16c. One image in blocks of 16 channels is the panel16 form
 * of its [hw, c] matrix, so the products' packing makes it.
 */
#include "compute/nchw16c.h"

#include "base/thread.h"
#include "kernels/table.h"

typedef struct layout_run {
    int64_t c, hw, blocks;
    const float *x;
    float *y;
} layout_run;

static void to_blocks(void *arg, int64_t chunk, int worker) {
    (void)worker;
    const layout_run *r = arg;
    int64_t n = chunk / r->blocks, b = chunk % r->blocks;
    omi_kernels()->pack_b16(r->y + n * r->blocks * r->hw * 16, r->x + n * r->c * r->hw, 1, r->hw,
                            r->hw, r->c, b, b + 1);
}

static void from_blocks(void *arg, int64_t chunk, int worker) {
    (void)worker;
    const layout_run *r = arg;
    int64_t n = chunk / r->blocks, b = chunk % r->blocks;
    for (int64_t c = b * 16; c < omi_min64(r->c, b * 16 + 16); c++)
        for (int64_t i = 0; i < r->hw; i++)
            r->y[(n * r->c + c) * r->hw + i] = r->x[(chunk * r->hw + i) * 16 + c % 16];
}

void omi_to_nchw16c(int64_t n, int64_t c, int64_t hw, const float *x, float *y) {
    layout_run r = {.c = c, .hw = hw, .blocks = (c + 15) / 16, .x = x, .y = y};
    omi_parallel(n * r.blocks, to_blocks, &r);
}
void omi_from_nchw16c(int64_t n, int64_t c, int64_t hw, const float *x, float *y) {
    layout_run r = {.c = c, .hw = hw, .blocks = (c + 15) / 16, .x = x, .y = y};
    omi_parallel(n * r.blocks, from_blocks, &r);
}
