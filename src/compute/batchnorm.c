/*
 * batchnorm.c -- BatchNormalization with running and with batch statistics, and its gradients
 * (AR-4.2, AR-8, AR-11.2). x is [n, c, inner]; a channel's elements are numbered row-major over (n,
 * inner).
 *
 * Work is split by channels. The numbering, not the layout, decides lanes and blocks, so sums take
 * the runs of a channel where they lie and keep the lanes of an unfinished block in memory; runs of
 * a few elements are gathered first. What is done to each element goes run by run, without copies.
 */
#include "compute/norm.h"

#include <math.h>

#include "compute/lanes.h"
#include "compute/walk.h"
#include "kernels/table.h"

void omi_batchnorm_fold(int64_t c, const float *w, const float *b, const float *mean,
                        const float *var, float eps, float *s, float *t) {
    for (int64_t i = 0; i < c; i++) {
        double q = sqrt((double)var[i] + (double)eps);
        s[i]     = (float)((w ? (double)w[i] : 1.0) / q);
        t[i]     = (float)((b ? (double)b[i] : 0.0) - (double)mean[i] * (double)s[i]);
    }
}

typedef struct bn_job {
    int64_t n, c, inner, count;
    const float *x, *w, *b, *s, *t, *g;
    const double *mean_in, *var_in;
    float eps;
    double *mean, *var;
    float *y, *dx, *dw, *db;
    bool training;
} bn_job;

/* ---- running statistics -------------------------------------------------------------------- */

/* Units are planes, or samples when a channel has one element. */
static void bn_apply_range(void *arg, int64_t begin, int64_t end, int worker) {
    (void)worker;
    const bn_job *j     = arg;
    const om_kernels *k = omi_kernels();
    for (int64_t u = begin; u < end; u++) {
        if (j->inner == 1)
            k->scale_shift_f32(j->c, j->x + u * j->c, j->s, j->t, 1, j->y + u * j->c);
        else
            k->scale_shift_f32(j->inner, j->x + u * j->inner, j->s + u % j->c, j->t + u % j->c, 0,
                               j->y + u * j->inner);
    }
}

void omi_batchnorm_apply(int64_t n, int64_t c, int64_t inner, const float *x, const float *s,
                         const float *t, float *y) {
    bn_job j     = {.n = n, .c = c, .inner = inner, .x = x, .s = s, .t = t, .y = y};
    int64_t unit = inner == 1 ? c : inner;
    if (n * c * inner == 0) return;
    omi_split(inner == 1 ? n : n * c, omi_max64(1, OMI_GRAIN / unit), bn_apply_range, &j);
}

/* ---- elements of a channel ------------------------------------------------------------------ */

#define PIECE 256 /* elements gathered at once; divides OM_SUM_BLOCK */
#define RUN                                                                                        \
    128 /* runs from here on are used where they lie; whole rows of lanes from PIECE / 8 on */

/* Elements [at, at + n) of channel ch of x, side by side in buf. */
static const float *bn_gather(const bn_job *j, const float *x, int64_t ch, int64_t at, int64_t n,
                              float *buf) {
    int64_t row = at / j->inner, k = at % j->inner;
    const float *p = x + (row * j->c + ch) * j->inner + k;
    for (int64_t done = 0; done < n; k = 0) {
        int64_t run = omi_min64(j->inner - k, n - done);
        for (int64_t i = 0; i < run; i++)
            buf[done + i] = p[i];
        done += run;
        p += run + (j->c - 1) * j->inner;
    }
    return buf;
}
static void bn_scatter(const bn_job *j, float *y, int64_t ch, int64_t at, int64_t n,
                       const float *buf) {
    int64_t row = at / j->inner, k = at % j->inner;
    float *p = y + (row * j->c + ch) * j->inner + k;
    for (int64_t done = 0; done < n; k = 0) {
        int64_t run = omi_min64(j->inner - k, n - done);
        for (int64_t i = 0; i < run; i++)
            p[i] = buf[done + i];
        done += run;
        p += run + (j->c - 1) * j->inner;
    }
}

/* A walk over a channel in runs that do not cross a block: at, n elements, their offset when they
 * lie in one run, or -1: to be gathered. */
typedef struct bn_run {
    int64_t at, n, off;
} bn_run;

static bool bn_next(const bn_job *j, int64_t ch, bn_run *r) {
    r->at += r->n;
    if (r->at >= j->count || (r->at % OM_SUM_BLOCK == 0 && omi_cut_short())) return false;
    int64_t block = omi_min64(OM_SUM_BLOCK - r->at % OM_SUM_BLOCK, j->count - r->at);
    if (j->inner < RUN && (j->inner % OM_SUM_LANES != 0 || j->inner < PIECE / 8)) {
        r->n   = omi_min64(PIECE, block);
        r->off = -1;
        return true;
    }
    int64_t row = r->at / j->inner, k = r->at % j->inner;
    r->n   = omi_min64(block, j->inner - k);
    r->off = (row * j->c + ch) * j->inner + k;
    return true;
}
#define BN_RUNS(j, ch, r) for (bn_run r = {0}; bn_next(j, ch, &r);)

static bool bn_block_ends(const bn_job *j, const bn_run *r) {
    return (r->at + r->n) % OM_SUM_BLOCK == 0 || r->at + r->n == j->count;
}
static const float *bn_at(const bn_job *j, const float *x, int64_t ch, const bn_run *r,
                          float *buf) {
    return r->off >= 0 ? x + r->off : bn_gather(j, x, ch, r->at, r->n, buf);
}
/* Where the results of a run go: their place, or buf, which bn_put then brings there. */
static float *bn_to(float *y, const bn_run *r, float *buf) {
    return r->off >= 0 ? y + r->off : buf;
}
static void bn_put(const bn_job *j, float *y, int64_t ch, const bn_run *r, const float *buf) {
    if (r->off < 0) bn_scatter(j, y, ch, r->at, r->n, buf);
}

/* ---- batch statistics ----------------------------------------------------------------------- */

static void bn_train_channel(const bn_job *j, int64_t ch) {
    const om_kernels *k = omi_kernels();
    float buf[PIECE];
    double sum = 0.0, dev = 0.0, acc[OM_SUM_LANES] = {0};
    BN_RUNS(j, ch, r) {
        k->lanes_sum_f32(r.n, bn_at(j, j->x, ch, &r, buf), r.at, acc);
        if (bn_block_ends(j, &r)) sum += omi_lanes_total(acc);
    }
    double mean = sum / (double)j->count;
    BN_RUNS(j, ch, r) {
        k->lanes_sum_dev_f32(r.n, bn_at(j, j->x, ch, &r, buf), mean, r.at, acc);
        if (bn_block_ends(j, &r)) dev += omi_lanes_total(acc);
    }
    double var = dev / (double)j->count, rs = 1.0 / sqrt(var + (double)j->eps);
    j->mean[ch] = mean;
    j->var[ch]  = var;
    BN_RUNS(j, ch, r) {
        k->normalize_f32(r.n, bn_at(j, j->x, ch, &r, buf), mean, rs, j->w ? j->w + ch : NULL,
                         j->b ? j->b + ch : NULL, 0, bn_to(j->y, &r, buf));
        bn_put(j, j->y, ch, &r, buf);
    }
}

static void bn_train_range(void *arg, int64_t begin, int64_t end, int worker) {
    (void)worker;
    for (int64_t ch = begin; ch < end; ch++)
        bn_train_channel(arg, ch);
}

void omi_batchnorm_train(int64_t n, int64_t c, int64_t inner, const float *x, const float *w,
                         const float *b, float eps, double *mean, double *var, float *y) {
    bn_job j = {.n     = n,
                .c     = c,
                .inner = inner,
                .count = n * inner,
                .x     = x,
                .w     = w,
                .b     = b,
                .eps   = eps,
                .mean  = mean,
                .var   = var,
                .y     = y};
    if (j.count == 0) return;
    omi_split(c, omi_max64(1, OMI_GRAIN / 4 / j.count), bn_train_range, &j);
}

void omi_batchnorm_running(int64_t c, int64_t count, const double *mean, const double *var,
                           float momentum, float *running_mean, float *running_var) {
    float keep = (float)(1.0 - (double)momentum);
    for (int64_t i = 0; i < c; i++) {
        float m         = (float)mean[i];
        float v         = (float)(var[i] * (double)count / (double)(count - 1));
        running_mean[i] = keep * running_mean[i] + momentum * m;
        running_var[i]  = keep * running_var[i] + momentum * v;
    }
}

/* ---- gradients ------------------------------------------------------------------------------ */

/* float64 inside: dx = rs ((h - mean h) - xhat mean(h xhat)), h = g w. */
static void bn_grad_training(const bn_job *j, int64_t ch) {
    const om_kernels *k = omi_kernels();
    float bx[PIECE], bg[PIECE];
    const float *w = j->w ? j->w + ch : NULL;
    double mean = j->mean_in[ch], rs = 1.0 / sqrt(j->var_in[ch] + (double)j->eps);
    double h[2] = {0}, p[2] = {0}, acc[4][OM_SUM_LANES] = {{0}};
    bool weighted = w && j->dx;
    BN_RUNS(j, ch, r) {
        const float *x = bn_at(j, j->x, ch, &r, bx), *g = bn_at(j, j->g, ch, &r, bg);
        k->lanes_norm_grad_f32(r.n, x, g, NULL, mean, rs, r.at, acc[0], acc[1]);
        if (weighted) k->lanes_norm_grad_f32(r.n, x, g, w, mean, rs, r.at, acc[2], acc[3]);
        if (!bn_block_ends(j, &r)) continue;
        for (int i = 0; i < 2; i++) {
            p[i] += omi_lanes_total(acc[i]);
            h[i] += omi_lanes_total(acc[2 + i]);
        }
    }
    if (j->db) j->db[ch] = (float)p[0];
    if (j->dw) j->dw[ch] = (float)p[1];
    if (!j->dx) return;
    const double *q = w ? h : p;
    double m1 = q[0] / (double)j->count, m2 = q[1] / (double)j->count;
    BN_RUNS(j, ch, r) {
        const float *x = bn_at(j, j->x, ch, &r, bx), *g = bn_at(j, j->g, ch, &r, bg);
        k->norm_grad_dx_f32(r.n, x, g, w, 0, mean, rs, m1, m2, bn_to(j->dx, &r, bx));
        bn_put(j, j->dx, ch, &r, bx);
    }
}

/* The running statistics are constants, so this is the float32 node sequence: r = 1 / sqrt(var +
 * eps), dx = (g w) r, xhat = (x - mean) r; dw and db are sums of AR-4.1. */
static void bn_grad_running(const bn_job *j, int64_t ch) {
    const om_kernels *k = omi_kernels();
    float bx[PIECE], bg[PIECE];
    float mean = (float)j->mean_in[ch], rs = 1.0f / sqrtf((float)j->var_in[ch] + j->eps);
    double dw = 0.0, db = 0.0, aw[OM_SUM_LANES] = {0}, ab[OM_SUM_LANES] = {0};
    BN_RUNS(j, ch, r) {
        int64_t n = r.n = omi_min64(r.n, PIECE); // xhat needs a buffer
        const float *x = bn_at(j, j->x, ch, &r, bx), *g = bn_at(j, j->g, ch, &r, bg);
        k->lanes_sum_f32(n, g, r.at, ab);
        for (int64_t i = 0; i < n; i++)
            bx[i] = (x[i] - mean) * rs;
        k->lanes_sum_mul_f32(n, g, bx, r.at, aw);
        if (bn_block_ends(j, &r)) {
            dw += omi_lanes_total(aw);
            db += omi_lanes_total(ab);
        }
        if (!j->dx) continue;
        float *dx = bn_to(j->dx, &r, bx);
        for (int64_t i = 0; i < n; i++)
            dx[i] = (j->w ? g[i] * j->w[ch] : g[i]) * rs;
        bn_put(j, j->dx, ch, &r, bx);
    }
    if (j->db) j->db[ch] = (float)db;
    if (j->dw) j->dw[ch] = (float)dw;
}

static void bn_grad_range(void *arg, int64_t begin, int64_t end, int worker) {
    (void)worker;
    const bn_job *j = arg;
    for (int64_t ch = begin; ch < end; ch++) {
        if (j->training)
            bn_grad_training(j, ch);
        else
            bn_grad_running(j, ch);
    }
}

void omi_batchnorm_grad(bool training, int64_t n, int64_t c, int64_t inner, const float *x,
                        const float *w, const double *mean, const double *var, float eps,
                        const float *g, float *dx, float *dw, float *db) {
    bn_job j = {.training = training,
                .n        = n,
                .c        = c,
                .inner    = inner,
                .count    = n * inner,
                .x        = x,
                .w        = w,
                .g        = g,
                .mean_in  = mean,
                .var_in   = var,
                .eps      = eps,
                .dx       = dx,
                .dw       = dw,
                .db       = db};
    omi_split(c, omi_max64(1, OMI_GRAIN / 4 / omi_max64(1, j.count)), bn_grad_range, &j);
}
