/*
 * batchnorm.c -- BatchNormalization with running and with batch statistics, and its gradients
 * (AR-4.2, AR-8, AR-11.2). x is [n, c, inner]; a channel's elements are numbered row-major over (n,
 * inner).
 *
 * Work is split by channels. A block of 4,096 elements of a channel is used in place when it is one
 * run, else gathered: the numbering, not the layout, decides lanes and blocks.
 */
#include "compute/norm.h"

#include <math.h>
#include <string.h>

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

/* Elements [at, at + m) of channel ch of x: in place when they are one run. */
static const float *bn_piece(const bn_job *j, const float *x, int64_t ch, int64_t at, int64_t m,
                             float *buf) {
    int64_t row = at / j->inner, k = at % j->inner;
    const float *p = x + (row * j->c + ch) * j->inner + k;
    if (k + m <= j->inner) return p;
    for (int64_t done = 0; done < m;) {
        int64_t run = omi_min64(j->inner - k, m - done);
        if (run == 1)
            buf[done] = *p;
        else
            memcpy(buf + done, p, sizeof *buf * (size_t)run);
        done += run;
        p += run + (j->c - 1) * j->inner;
        k = 0;
    }
    return buf;
}
/* Puts elements [at, at + m) back. */
static void bn_put(const bn_job *j, float *y, int64_t ch, int64_t at, int64_t m, const float *buf) {
    int64_t row = at / j->inner, k = at % j->inner;
    float *p = y + (row * j->c + ch) * j->inner + k;
    for (int64_t done = 0; done < m;) {
        int64_t run = omi_min64(j->inner - k, m - done);
        memcpy(p, buf + done, sizeof *buf * (size_t)run);
        done += run;
        p += run + (j->c - 1) * j->inner;
        k = 0;
    }
}

#define BN_BLOCKS(j, at, m)                                                                        \
    for (int64_t at = 0, m; at < (j)->count && (m = omi_min64(OM_SUM_BLOCK, (j)->count - at)) > 0; \
         at += m)

/* ---- batch statistics ----------------------------------------------------------------------- */

static void bn_train_channel(const bn_job *j, int64_t ch) {
    const om_kernels *k = omi_kernels();
    float buf[OM_SUM_BLOCK];
    double sum = 0.0, dev = 0.0;
    BN_BLOCKS(j, at, m) sum += k->sum_f32(m, bn_piece(j, j->x, ch, at, m, buf));
    double mean = sum / (double)j->count;
    BN_BLOCKS(j, at, m) dev += k->sum_dev_f32(m, bn_piece(j, j->x, ch, at, m, buf), mean);
    double var = dev / (double)j->count, rs = 1.0 / sqrt(var + (double)j->eps);
    j->mean[ch] = mean;
    j->var[ch]  = var;
    BN_BLOCKS(j, at, m) {
        const float *x = bn_piece(j, j->x, ch, at, m, buf);
        k->normalize_f32(m, x, mean, rs, j->w ? j->w + ch : NULL, j->b ? j->b + ch : NULL, 0, buf);
        bn_put(j, j->y, ch, at, m, buf);
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
    float bx[OM_SUM_BLOCK], bg[OM_SUM_BLOCK];
    const float *w = j->w ? j->w + ch : NULL;
    double mean = j->mean_in[ch], rs = 1.0 / sqrt(j->var_in[ch] + (double)j->eps);
    double h[2] = {0}, p[2] = {0}, s[2];
    BN_BLOCKS(j, at, m) {
        const float *x = bn_piece(j, j->x, ch, at, m, bx), *g = bn_piece(j, j->g, ch, at, m, bg);
        k->norm_grad_sums_f32(m, x, g, NULL, 0, mean, rs, s);
        p[0] += s[0];
        p[1] += s[1];
        if (!w || !j->dx) continue;
        k->norm_grad_sums_f32(m, x, g, w, 0, mean, rs, s);
        h[0] += s[0];
        h[1] += s[1];
    }
    if (j->db) j->db[ch] = (float)p[0];
    if (j->dw) j->dw[ch] = (float)p[1];
    if (!j->dx) return;
    const double *q = w ? h : p;
    double m1 = q[0] / (double)j->count, m2 = q[1] / (double)j->count;
    BN_BLOCKS(j, at, m) {
        const float *x = bn_piece(j, j->x, ch, at, m, bx), *g = bn_piece(j, j->g, ch, at, m, bg);
        k->norm_grad_dx_f32(m, x, g, w, 0, mean, rs, m1, m2, bx);
        bn_put(j, j->dx, ch, at, m, bx);
    }
}

/* The running statistics are constants, so this is the float32 node sequence: r = 1 / sqrt(var +
 * eps), dx = (g w) r, xhat = (x - mean) r; dw and db are sums of AR-4.1. */
static void bn_grad_running(const bn_job *j, int64_t ch) {
    const om_kernels *k = omi_kernels();
    float bx[OM_SUM_BLOCK], bg[OM_SUM_BLOCK];
    float mean = (float)j->mean_in[ch], r = 1.0f / sqrtf((float)j->var_in[ch] + j->eps);
    double dw = 0.0, db = 0.0;
    BN_BLOCKS(j, at, m) {
        const float *x = bn_piece(j, j->x, ch, at, m, bx), *g = bn_piece(j, j->g, ch, at, m, bg);
        db += k->sum_f32(m, g);
        for (int64_t i = 0; i < m; i++)
            bx[i] = (x[i] - mean) * r;
        dw += k->sum_mul_f32(m, g, bx);
        if (!j->dx) continue;
        for (int64_t i = 0; i < m; i++)
            bx[i] = (j->w ? g[i] * j->w[ch] : g[i]) * r;
        bn_put(j, j->dx, ch, at, m, bx);
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
