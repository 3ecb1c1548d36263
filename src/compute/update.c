/*
 * update.c -- optimizer steps and clipping: splitting the elements among threads.
 */
#include "compute/update.h"

#include "compute/walk.h"
#include "kernels/table.h"

static void sgd_range(void *arg, int64_t begin, int64_t end, int worker) {
    (void)worker;
    omi_kernels()->sgd_f32(arg, begin, end);
}
static void adam_range(void *arg, int64_t begin, int64_t end, int worker) {
    (void)worker;
    omi_kernels()->adam_f32(arg, begin, end);
}

void omi_sgd(const om_sgd_args *u, int64_t n) {
    om_sgd_args copy = *u;
    omi_split(n, OMI_GRAIN, sgd_range, &copy);
}
void omi_adam(const om_adam_args *u, int64_t n) {
    om_adam_args copy = *u;
    omi_split(n, OMI_GRAIN, adam_range, &copy);
}

typedef struct clip_job {
    float *y;
    const float *g;
    float s;
} clip_job;

static void scale_range(void *arg, int64_t begin, int64_t end, int worker) {
    (void)worker;
    const clip_job *j = arg;
    omi_kernels()->mul_f32(end - begin, j->g + begin, 1, &j->s, 0, j->y + begin);
}
static void limit_range(void *arg, int64_t begin, int64_t end, int worker) {
    (void)worker;
    const clip_job *j = arg;
    omi_kernels()->limit_f32(end - begin, j->g + begin, j->s, j->y + begin);
}

void omi_scale_f32(float *y, const float *g, int64_t n, float s) {
    omi_split(n, OMI_GRAIN, scale_range, &(clip_job){y, g, s});
}
void omi_limit_f32(float *y, const float *g, int64_t n, float s) {
    omi_split(n, OMI_GRAIN, limit_range, &(clip_job){y, g, s});
}
