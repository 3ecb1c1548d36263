/*
 * panel16.c -- the packed form of a right operand: panels of sixteen columns (arithmetic.md 2.2).
 */
#include "compute/matmul.h"
#include "compute/pack.h"
#include "compute/split.h"
#include "kernels/table.h"

#define PACK_PANELS 8 /* panels per chunk of a packing job */

typedef struct pack_job {
    float *dst;
    const float *b;
    int64_t rs, cs, k, n;
} pack_job;

size_t omi_panel16_bytes(int64_t k, int64_t n) {
    return (size_t)omi_max64(omi_ceil_div(n, 16) * k * 16, 16) * sizeof(float);
}

static void pack_chunk(void *arg, int64_t chunk, int worker) {
    (void)worker;
    const pack_job *j = arg;
    int64_t p0 = chunk * PACK_PANELS, p1 = omi_min64(p0 + PACK_PANELS, omi_ceil_div(j->n, 16));
    omi_kernels()->pack_b16(j->dst, j->b, j->rs, j->cs, j->k, j->n, p0, p1);
}

void omi_panel16_pack(float *dst, const float *b, int64_t rs, int64_t cs, int64_t k, int64_t n,
                      int workers) {
    pack_job j     = {dst, b, rs, cs, k, n};
    int64_t chunks = omi_ceil_div(omi_ceil_div(n, 16), PACK_PANELS);
    if (k * n < OM_SPLIT_WORK / 4) workers = 1;
    omi_parallel_at_most(workers, chunks, pack_chunk, &j);
}

static void pack_panel16(const void *ctx, float *dst) {
    const pack_job *j = ctx;
    omi_panel16_pack(dst, j->b, j->rs, j->cs, j->k, j->n, omi_workers());
}

const float *omi_panel16_cached(om_buffer *buf, int64_t offset, int64_t rs, int64_t cs, int64_t k,
                                int64_t n) {
    pack_job j = {.b = (const float *)buf->data + offset, .rs = rs, .cs = cs, .k = k, .n = n};
    return omi_pack_cached(buf, OM_PACK_PANEL16, (int64_t[]){offset, rs, cs, k, n}, 5,
                           omi_panel16_bytes(k, n), pack_panel16, &j);
}

const float *omi_panel16_at_second_use(om_buffer *buf, int64_t offset, int64_t rs, int64_t cs,
                                       int64_t k, int64_t n, bool *failed) {
    const int64_t numbers[5] = {offset, rs, cs, k, n};
    *failed                  = false;
    if (!omi_pack_may_cache(buf) || !omi_pack_seen(buf, OM_PACK_PANEL16, numbers, 5)) return NULL;
    const float *p = omi_panel16_cached(buf, offset, rs, cs, k, n);
    *failed        = p == NULL;
    return p;
}
