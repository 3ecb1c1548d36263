/*
 * update.c -- the coefficients of an optimizer's step, made in double and rounded to float once
 * (AR-11.3). The element loops are compute/update.c.
 */
#include <math.h>

#include "base/fpenv.h"
#include "compute/update.h"
#include "optim/optim.h"

static void update_sgd(const om_optim *o, om_param *p, float *w, const float *g, int64_t n,
                       double lr, double wd) {
    om_sgd_args u   = {.w = w, .g = g, .v = p->state[0]};
    u.first         = p->steps == 0;
    u.decay         = wd != 0.0;
    u.wd            = (float)wd;
    u.momentum      = o->momentum != 0.0;
    u.nesterov      = o->nesterov;
    u.mu            = (float)o->momentum;
    u.one_minus_tau = (float)(1.0 - o->dampening);
    u.lr            = (float)lr;
    omi_sgd(&u, n);
}

static void update_adam(const om_optim *o, om_param *p, float *w, const float *g, int64_t n,
                        double lr, double wd) {
    om_adam_args u = {.w = w, .g = g, .m = p->state[0], .v = p->state[1]};
    p->power[0] *= o->betas[0];
    p->power[1] *= o->betas[1];
    u.l2           = wd != 0.0 && o->kind == OM_OPTIM_ADAM;
    u.shrink       = wd != 0.0 && o->kind == OM_OPTIM_ADAMW;
    u.wd           = (float)wd;
    u.keep         = (float)(1.0 - lr * wd);
    u.b1           = (float)o->betas[0];
    u.one_minus_b1 = (float)(1.0 - o->betas[0]);
    u.b2           = (float)o->betas[1];
    u.one_minus_b2 = (float)(1.0 - o->betas[1]);
    u.rate         = (float)(lr / (1.0 - p->power[0]));
    u.root         = (float)(1.0 / sqrt(1.0 - p->power[1]));
    u.eps          = (float)o->eps;
    omi_adam(&u, n);
}

void omi_update(const om_optim *o, om_param *p, float *w, const float *g, int64_t n, double lr,
                double wd) {
    omi_fpenv fp = omi_fp_enter();
    if (o->kind == OM_OPTIM_SGD)
        update_sgd(o, p, w, g, n, lr, wd);
    else
        update_adam(o, p, w, g, n, lr, wd);
    p->steps++;
    omi_fp_leave(fp);
}
