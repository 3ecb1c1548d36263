/*
 * gemm.c -- times the library's matrix products and convolutions for bench/gemm.py.
 *
 * Reads one problem per line from standard input, answers with seconds per call (the best of
 * several stretches of about 5 ms), so that the script can interleave us and others on a noisy
 * machine:
 *
 *   mm M N K packed            y[M,N] = a[M,K] b[K,N]; packed 1: b is panel16 already (an inference
 *                              weight); 0: packing counts; b is the transpose of a Linear weight
 *   conv N C H W OC K stride pad dir   dir 0 forward with packed weights, 1 gradient by x, 2 by w
 *   threads T                  answers 0
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "compute/conv.h"
#include "compute/matmul.h"
#include "base/thread.h"

/* With one thread its CPU time, so that a busy machine counts less. */
static double now(void) {
    struct timespec t;
    clock_gettime(om_threads() == 1 ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static float *floats(size_t n) {
    float *p = aligned_alloc(64, (n * sizeof(float) + 4095) / 4096 * 4096);
    if (!p) exit(1);
    uint32_t s = 12345;
    for (size_t i = 0; i < n; i++) {
        s    = s * 1664525u + 1013904223u;
        p[i] = (float)(s >> 8) * 0x1p-24f - 0.5f;
    }
    return p;
}

typedef struct problem {
    om_matmul_plan m;
    om_matmul_ptrs x;
    om_conv_plan c;
    om_conv_gx_plan gx;
    om_conv_gw_plan gw;
    om_conv_ptrs d;
    int kind, workers; /* 0 product; 1, 2, 3 convolution */
    void *ws;
    float *dx;
} problem;

static void once(const problem *p) {
    switch (p->kind) {
    case 0:
        omi_matmul_run(&p->m, &p->x, p->ws);
        break;
    case 1:
        omi_conv_run(&p->c, &p->d, p->ws);
        break;
    case 2:
        omi_conv_gx_run(&p->gx, p->d.y, p->d.weight, p->dx, p->ws);
        break;
    default:
        omi_conv_gw_run(&p->gw, p->d.y, p->d.x, p->dx, p->ws);
    }
}

static double best_time(const problem *p) {
    once(p);
    double t = now();
    once(p);
    double one  = now() - t;
    int reps    = one > 5e-3 ? 1 : (int)(5e-3 / (one + 1e-9)) + 1;
    double best = 1e9;
    for (int s = 0; s < 3; s++) {
        t = now();
        for (int i = 0; i < reps; i++)
            once(p);
        double d = (now() - t) / reps;
        if (d < best) best = d;
    }
    return best;
}

static double time_product(int64_t m, int64_t n, int64_t k, int packed) {
    problem p = {.workers = omi_workers()};
    float *a = floats((size_t)(m * k)), *b = floats((size_t)(n * k)), *y = floats((size_t)(m * n));
    float *pb = aligned_alloc(64, omi_panel16_bytes(k, n));
    if (!pb) exit(1);
    om_matmul_args args = {.a     = {a, OM_F32, 2, {m, k}, {k, 1}},
                           .b     = {b, OM_F32, 2, {k, n}, {1, k}},
                           .y     = {y, OM_F32, 2, {m, n}, {n, 1}},
                           .alpha = 1.0f,
                           .beta  = 1.0f};
    omi_panel16_pack(pb, b, 1, k, k, n, 1);
    if (packed) args.b_packed = pb;
    if (!omi_matmul_plan(&args, p.workers, &p.m)) exit(1);
    p.x      = (om_matmul_ptrs){.a = a, .b = b, .y = y};
    p.ws     = floats(p.m.ws_bytes / 4 + 16);
    double t = best_time(&p);
    free(a), free(b), free(y), free(pb), free(p.ws);
    return t;
}

static double time_conv(const int64_t *v, int dir) {
    problem p      = {.kind = dir + 1, .workers = omi_workers()};
    om_conv_geom g = {.n = v[0], .c = v[1], .oc = v[4], .groups = 1};
    g.win          = (om_window){2,      {v[2], v[3]}, {v[5], v[5]}, {v[6], v[6]},
                                 {1, 1}, {v[7], v[7]}, {v[7], v[7]}, {0}};
    if (!omi_window_make(&g.win, OM_WINDOW_FLOOR)) exit(1);
    size_t xn = (size_t)(g.n * g.c * v[2] * v[3]), wn = (size_t)(g.oc * g.c * v[5] * v[5]);
    float *x = floats(xn), *w = floats(wn);
    float *y  = floats((size_t)(g.n * g.oc * g.win.out[0] * g.win.out[1]));
    float *pw = floats(omi_conv_pack_bytes(&g) / 4);
    omi_conv_pack(&g, w, pw);
    p.d  = (om_conv_ptrs){.x = x, .weight = w, .w_packed = pw, .y = y};
    p.dx = floats(xn > wn ? xn : wn);
    if (!omi_conv_plan(&g, true, p.workers, &p.c) || !omi_conv_gx_plan(&g, p.workers, &p.gx) ||
        !omi_conv_gw_plan(&g, p.workers, &p.gw))
        exit(1);
    size_t bytes = dir == 0 ? p.c.ws_bytes : dir == 1 ? p.gx.ws_bytes : p.gw.ws_bytes;
    p.ws         = floats(bytes / 4 + 16);
    double t     = best_time(&p);
    free(x), free(w), free(y), free(pw), free(p.dx), free(p.ws);
    return t;
}

int main(void) {
    char line[256];
    if (om_config_from_env() != OM_OK ||
        (!getenv("ONEMODEL_THREADS") && om_set_threads(1) != OM_OK))
        return 1;
    while (fgets(line, sizeof line, stdin)) {
        long long v[9] = {0};
        char kind[16];
        int n    = sscanf(line, "%15s %lld %lld %lld %lld %lld %lld %lld %lld %lld", kind, &v[0],
                          &v[1], &v[2], &v[3], &v[4], &v[5], &v[6], &v[7], &v[8]);
        double t = 0;
        if (n == 5 && strcmp(kind, "mm") == 0) {
            t = time_product(v[0], v[1], v[2], (int)v[3]);
        } else if (n == 10 && strcmp(kind, "conv") == 0) {
            int64_t q[8];
            for (int i = 0; i < 8; i++)
                q[i] = v[i];
            t = time_conv(q, (int)v[8]);
        } else if (n != 2 || strcmp(kind, "threads") != 0 || om_set_threads((int)v[0]) != OM_OK) {
            fprintf(stderr, "not understood: %s", line);
            return 2;
        }
        printf("%.9g\n", t);
        fflush(stdout);
    }
    return 0;
}
