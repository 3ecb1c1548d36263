/*
 * clip.c -- limiting gradients by their joint norm or by value (AR-11.3).
 *
 * A gradient may share its bytes with another leaf's (backward of an addition hands one tensor to
 * both), so it is scaled in place only when nobody else holds it, else into a new tensor that takes
 * its place.
 */
#include <math.h>

#include "autograd/record.h"
#include "base/fpenv.h"
#include "base/thread.h"
#include "compute/reduce.h"
#include "compute/update.h"
#include "optim/optim.h"

static om_tensor *gradient(const om_param *p) {
    return p->t->flags & OM_T_GRAD ? om_grad_of(p->t) : NULL;
}

typedef void (*change_fn)(float *y, const float *g, int64_t n, float s);

/* The gradient's slot gets change(gradient). */
static om_status change_gradient(const om_param *p, om_tensor *g, change_fn change, float s) {
    bool own = atomic_load(&g->refs) == 1 && atomic_load(&g->storage->refs) == 1 &&
               omi_buffer_writable(g->storage->buf) && omi_contiguous(g);
    if (own) {
        float *y = omi_ptr_mut(g, "gradient clipping");
        if (!y) return om_pending();
        change(y, y, omi_numel(g), s);
        return OM_OK;
    }
    om_scope scope  = om_scope_begin();
    om_tensor *from = omi_pack(g), *to = from ? omi_new_like(from) : NULL;
    if (to) {
        change(omi_ptr(to), omi_ptr(from), omi_numel(to), s);
        p->t->grad->grad = om_retain(to);
        om_release(g);
    }
    return om_scope_end(scope);
}

static om_status change_all(om_optim *o, change_fn change, float s) {
    OM_TRY(omi_check_cancel());
    omi_fpenv fp = omi_fp_enter();
    bool was     = omi_hold_cancel(true); // all gradients or none
    om_status st = OM_OK;
    for (size_t i = 0; i < o->params.n && st == OM_OK; i++) {
        om_tensor *g = gradient(&o->params.v[i]);
        if (g) st = change_gradient(&o->params.v[i], g, change, s);
    }
    omi_hold_cancel(was);
    omi_fp_leave(fp);
    return st;
}

om_status om_clip_norm(om_optim *o, double max, double *norm) {
    OMI_ENTER("om_clip_norm");
    if (omi_failed()) return om_pending();
    if (!o || !(max > 0.0))
        return omi_fail(OM_ERR_ARG, "%s", o ? "max must be above 0" : "the optimizer is NULL");
    omi_fpenv fp = omi_fp_enter();
    double total = 0.0;
    for (size_t i = 0; i < o->params.n; i++) {
        om_tensor *g = gradient(&o->params.v[i]);
        if (!g) continue;
        om_view v = omi_view(g);
        total     = total + omi_sum64(&v, true);
    }
    double n = sqrt(total), scale = max / (n + 1e-6);
    omi_fp_leave(fp);
    OM_TRY(omi_check_cancel());
    if (norm) *norm = n;
    if (!isfinite(n))
        return omi_fail(OM_ERR_VALUE,
                        "the norm of the gradients is %g; om_nan_check finds where it began", n);
    return n > max ? change_all(o, omi_scale_f32, (float)scale) : OM_OK;
}

om_status om_clip_value(om_optim *o, double max) {
    OMI_ENTER("om_clip_value");
    if (omi_failed()) return om_pending();
    if (!o || !(max > 0.0))
        return omi_fail(OM_ERR_ARG, "%s", o ? "max must be above 0" : "the optimizer is NULL");
    return change_all(o, omi_limit_f32, (float)max);
}
