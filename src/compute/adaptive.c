/*
 * adaptive.c -- averaging matrices and gradient of AdaptiveAvgPool. One plane is one unit of work.
 */
#include "compute/adaptive.h"

#include <string.h>

#include "base/thread.h"

void omi_adaptive_matrix(int64_t in, int64_t out, bool transposed, float *m) {
    memset(m, 0, (size_t)(in * out) * sizeof *m);
    for (int64_t i = 0; i < out; i++) {
        int64_t begin = omi_cell_begin(i, in, out), end = omi_cell_end(i, in, out);
        float share = 1.0f / (float)(end - begin);
        for (int64_t k = begin; k < end; k++)
            m[transposed ? k * out + i : i * in + k] = share;
    }
}

typedef struct adaptive_job {
    int64_t h, w, oh, ow;
    const float *dy;
    float *dx;
} adaptive_job;

static void adaptive_plane(void *arg, int64_t plane, int worker) {
    (void)worker;
    const adaptive_job *j = arg;
    const float *g        = j->dy + plane * j->oh * j->ow;
    float *dx             = j->dx + plane * j->h * j->w;
    memset(dx, 0, (size_t)(j->h * j->w) * sizeof *dx);
    for (int64_t oy = 0; oy < j->oh; oy++) {
        int64_t y0 = omi_cell_begin(oy, j->h, j->oh), y1 = omi_cell_end(oy, j->h, j->oh);
        for (int64_t ox = 0; ox < j->ow; ox++) {
            int64_t x0 = omi_cell_begin(ox, j->w, j->ow), x1 = omi_cell_end(ox, j->w, j->ow);
            float share = *g++ / (float)((y1 - y0) * (x1 - x0));
            for (int64_t y = y0; y < y1; y++)
                for (int64_t x = x0; x < x1; x++)
                    dx[y * j->w + x] += share;
        }
    }
}

void omi_adaptive_avg_grad(int64_t planes, int64_t h, int64_t w, int64_t oh, int64_t ow,
                           const float *dy, float *dx) {
    adaptive_job j = {h, w, oh, ow, dy, dx};
    omi_parallel(planes, adaptive_plane, &j);
}
