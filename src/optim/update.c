/*
 * update.c -- the element loops of the optimizers, in the order of operations of AR-11.3.
 *
 * Coefficients are made in double and rounded to float once. The loops use + - * / and sqrt, which
 * IEEE fixes, so bits do not depend on compiler, vector width or threads; nothing here may be
 * contracted.
 */
#include <math.h>

#include "base/fpenv.h"
#include "base/thread.h"
#include "optim/optim.h"

#define CHUNK 16384

typedef struct update {
    om_optim_kind kind;
    bool first, nesterov, momentum, decay;
    float *w, *a, *b;
    const float *g;
    int64_t n;
    float wd, keep, mu, one_minus_tau, lr; /* keep: 1 - lr*wd */
    float b1, one_minus_b1, b2, one_minus_b2, rate, root, eps;
} update;

static void sgd_range(const update *u, int64_t i0, int64_t i1) {
    float *restrict w = u->w, *restrict v = u->a;
    const float *restrict g0 = u->g;
    float wd = u->wd, mu = u->mu, omt = u->one_minus_tau, lr = u->lr;
    for (int64_t i = i0; i < i1; i++) {
        float g = g0[i];
        if (u->decay) g = g + wd * w[i];
        if (u->momentum) {
            v[i] = u->first ? g : mu * v[i] + omt * g;
            g    = u->nesterov ? g + mu * v[i] : v[i];
        }
        w[i] = w[i] - lr * g;
    }
}

static void adam_range(const update *u, int64_t i0, int64_t i1) {
    float *restrict w = u->w, *restrict m = u->a, *restrict v = u->b;
    const float *restrict g0 = u->g;
    bool l2 = u->decay && u->kind == OM_OPTIM_ADAM, shrink = u->decay && u->kind == OM_OPTIM_ADAMW;
    float wd = u->wd, keep = u->keep, b1 = u->b1, ob1 = u->one_minus_b1, b2 = u->b2,
          ob2 = u->one_minus_b2, rate = u->rate, root = u->root, eps = u->eps;
    for (int64_t i = i0; i < i1; i++) {
        float g = g0[i], p = w[i];
        if (l2) g = g + wd * p;
        if (shrink) p = p * keep;
        m[i] = b1 * m[i] + ob1 * g;
        v[i] = b2 * v[i] + (ob2 * g) * g;
        w[i] = p - rate * (m[i] / (sqrtf(v[i]) * root + eps));
    }
}

static void update_chunk(void *arg, int64_t chunk, int worker) {
    const update *u = arg;
    int64_t i0 = chunk * CHUNK, i1 = omi_min64(i0 + CHUNK, u->n);
    (void)worker;
    if (u->kind == OM_OPTIM_SGD)
        sgd_range(u, i0, i1);
    else
        adam_range(u, i0, i1);
}

void omi_update(const om_optim *o, om_param *p, float *w, const float *g, int64_t n, double lr,
                double wd) {
    omi_fpenv fp = omi_fp_enter();
    update u     = {.kind = o->kind, .w = w, .g = g, .n = n, .a = p->state[0], .b = p->state[1]};
    u.first      = p->steps == 0;
    u.decay      = wd != 0.0;
    u.wd         = (float)wd;
    p->steps++;
    if (o->kind == OM_OPTIM_SGD) {
        u.momentum      = o->momentum != 0.0;
        u.nesterov      = o->nesterov;
        u.mu            = (float)o->momentum;
        u.one_minus_tau = (float)(1.0 - o->dampening);
        u.lr            = (float)lr;
    } else {
        p->power[0] *= o->betas[0];
        p->power[1] *= o->betas[1];
        u.keep         = (float)(1.0 - lr * wd);
        u.b1           = (float)o->betas[0];
        u.one_minus_b1 = (float)(1.0 - o->betas[0]);
        u.b2           = (float)o->betas[1];
        u.one_minus_b2 = (float)(1.0 - o->betas[1]);
        u.rate         = (float)(lr / (1.0 - p->power[0]));
        u.root         = (float)(1.0 / sqrt(1.0 - p->power[1]));
        u.eps          = (float)o->eps;
    }
    omi_parallel(omi_ceil_div(n, CHUNK), update_chunk, &u);
    omi_fp_leave(fp);
}

void omi_grad_scale(float *y, const float *g, int64_t n, float s) {
    for (int64_t i = 0; i < n; i++)
        y[i] = g[i] * s;
}

void omi_grad_limit(float *y, const float *g, int64_t n, float s) {
    for (int64_t i = 0; i < n; i++)
        y[i] = g[i] < -s ? -s : g[i] > s ? s : g[i];
}
