/*
 * optim.c -- making optimizers, groups, the step.
 *
 * A step first finds everything it needs (gradients packed, weights made private, state allocated)
 * and then changes weights, so that a failure leaves all of them as they were. Weights change
 * through omi_ptr_mut: their version goes up, and a backward through values saved before is refused
 * by name.
 */
#include "optim/optim.h"

#include <math.h>
#include <string.h>

#include "autograd/record.h"
#include "base/opts.h"
#include "base/thread.h"

/* ---- making and freeing -------------------------------------------------------------------- */

void om_optim_free(om_optim *o) {
    if (!o) return;
    for (size_t i = 0; i < o->params.n; i++) {
        om_param *p = &o->params.v[i];
        for (int k = 0; k < 2; k++)
            omi_free_aligned(p->state[k], omi_param_bytes(p));
        om_release(p->t);
    }
    OMI_VEC_FREE(&o->params);
    OMI_VEC_FREE(&o->groups);
    omi_state_list_free(&o->list);
    omi_free(o, sizeof *o);
}

size_t omi_param_bytes(const om_param *p) {
    return (size_t)omi_numel(p->t) * sizeof(float);
}

int omi_optim_n_state(const om_optim *o) {
    return o->kind == OM_OPTIM_SGD ? (o->momentum != 0.0 ? 1 : 0) : 2;
}

om_status omi_param_state(const om_optim *o, om_param *p) {
    for (int k = 0; k < omi_optim_n_state(o); k++) {
        if (p->state[k]) continue;
        p->state[k] = omi_alloc_aligned(omi_param_bytes(p));
        if (!p->state[k]) return om_pending();
        memset(p->state[k], 0, omi_param_bytes(p));
    }
    return OM_OK;
}

static om_status take_params(om_optim *o, om_module *m) {
    OM_TRY(omi_state_list(m, &o->list));
    for (size_t i = 0; i < o->list.v.n; i++) {
        const om_state_entry *e = &o->list.v.v[i];
        if (e->is_buffer || e->tied) continue;
        if (!omi_contiguous(e->t))
            return omi_fail(OM_ERR_STATE,
                            "parameter '%.80s' is a strided view; register a clone of it", e->path);
        om_param p = {.t = e->t, .path = e->path, .power = {1.0, 1.0}};
        if (!OMI_PUSH(&o->params, p)) return om_pending();
        om_retain(e->t);
    }
    return o->params.n ? OM_OK : omi_fail(OM_ERR_ARG, "the module has no parameters");
}

static bool at_least_0(double v, const char *what) {
    if (v >= 0.0 && !isinf(v)) return true;
    omi_fail(OM_ERR_ARG, "%s is %g; it must be a finite number of at least 0", what, v);
    return false;
}

static om_optim *optim_new(om_optim_kind kind, om_module *m, double lr, double wd) {
    if (omi_failed()) return NULL;
    if (!m) OM_FAIL_NULL(OM_ERR_ARG, "the module is NULL");
    if (!at_least_0(lr, "lr") || !at_least_0(wd, "weight_decay")) return NULL;
    om_optim *o = omi_calloc(sizeof *o);
    if (!o) return NULL;
    o->kind    = kind;
    om_group g = {lr, wd};
    if (take_params(o, m) == OM_OK && OMI_PUSH(&o->groups, g)) return o;
    om_optim_free(o);
    return NULL;
}

om_optim *om_sgd(om_module *m, double lr, const om_sgd_opts *opts) {
    OMI_ENTER("om_sgd");
    om_sgd_opts own;
    if (omi_failed() || !OMI_OPTS(&own, opts, nesterov)) return NULL;
    opts = &own;
    if (omi_failed() || !at_least_0(opts->momentum, "momentum") ||
        !at_least_0(opts->dampening, "dampening"))
        return NULL;
    if (opts->nesterov && (opts->momentum == 0.0 || opts->dampening != 0.0))
        OM_FAIL_NULL(OM_ERR_ARG, "nesterov needs a momentum and no dampening");
    om_optim *o = optim_new(OM_OPTIM_SGD, m, lr, opts->weight_decay);
    if (!o) return NULL;
    o->momentum  = opts->momentum;
    o->dampening = opts->dampening;
    o->nesterov  = opts->nesterov;
    return o;
}

static om_optim *adam_new(om_optim_kind kind, om_module *m, double lr, const om_adam_opts *opts) {
    om_adam_opts own;
    if (omi_failed() || !OMI_OPTS(&own, opts, weight_decay)) return NULL;
    opts      = &own;
    double b1 = opts->betas[0], b2 = opts->betas[1];
    if (b1 == 0.0 && b2 == 0.0) {
        b1 = 0.9;
        b2 = 0.999;
    }
    if (omi_failed() || !at_least_0(opts->eps, "eps")) return NULL;
    if (!(b1 >= 0.0 && b1 < 1.0 && b2 >= 0.0 && b2 < 1.0))
        OM_FAIL_NULL(OM_ERR_ARG, "betas are %g and %g; both must be in [0, 1)", b1, b2);
    om_optim *o = optim_new(kind, m, lr, opts->weight_decay);
    if (!o) return NULL;
    o->betas[0] = b1;
    o->betas[1] = b2;
    o->eps      = opts->eps != 0.0 ? opts->eps : 1e-8;
    return o;
}

om_optim *om_adam(om_module *m, double lr, const om_adam_opts *opts) {
    OMI_ENTER("om_adam");
    return adam_new(OM_OPTIM_ADAM, m, lr, opts);
}

om_optim *om_adamw(om_module *m, double lr, const om_adam_opts *opts) {
    OMI_ENTER("om_adamw");
    return adam_new(OM_OPTIM_ADAMW, m, lr, opts);
}

/* ---- groups and rates ------------------------------------------------------------------------ */

/* A prefix, or "*.name" for every path whose last part is name. */
static bool in_pattern(const char *path, const char *pattern) {
    if (strncmp(pattern, "*.", 2) != 0) return omi_path_matches(path, pattern);
    const char *dot = strrchr(path, '.');
    return strcmp(dot ? dot + 1 : path, pattern + 2) == 0;
}

static bool in_group(const char *path, const char *prefix, const om_group_opts *opts) {
    if (prefix && in_pattern(path, prefix)) return true;
    for (int i = 0; i < opts->n_prefixes; i++)
        if (opts->prefixes[i] && in_pattern(path, opts->prefixes[i])) return true;
    return false;
}

om_status om_optim_group(om_optim *o, const char *prefix, const om_group_opts *opts, int *group) {
    OMI_ENTER("om_optim_group");
    if (omi_failed()) return om_pending();
    if (!o) return omi_fail(OM_ERR_ARG, "the optimizer is NULL");
    om_group_opts own;
    if (!OMI_OPTS(&own, opts, prefixes)) return om_pending();
    opts       = &own;
    om_group g = o->groups.v[0];
    if (opts->lr != 0.0) g.lr = opts->lr;
    if (opts->weight_decay != 0.0) g.weight_decay = opts->weight_decay;
    if (opts->no_decay) g.weight_decay = 0.0;
    if (!at_least_0(g.lr, "lr") || !at_least_0(g.weight_decay, "weight_decay")) return om_pending();
    int n = 0;
    for (size_t i = 0; i < o->params.n; i++)
        n += in_group(o->params.v[i].path, prefix, opts);
    if (!n)
        return omi_fail(OM_ERR_ARG, "no parameter's path matches '%.80s'%s", prefix ? prefix : "",
                        opts->n_prefixes ? " or the further prefixes" : "");
    if (!OMI_PUSH(&o->groups, g)) return om_pending();
    int32_t index = (int32_t)o->groups.n - 1;
    for (size_t i = 0; i < o->params.n; i++)
        if (in_group(o->params.v[i].path, prefix, opts)) o->params.v[i].group = index;
    if (group) *group = index;
    return OM_OK;
}

static double rate_now(const om_optim *o, int group) {
    return o->groups.v[group].lr * omi_schedule_factor(&o->schedule, o->steps);
}

double om_lr(const om_optim *o, int group) {
    if (!o || group < 0 || (size_t)group >= o->groups.n) return NAN;
    return rate_now(o, group);
}

om_status om_set_lr(om_optim *o, int group, double lr) {
    OMI_ENTER("om_set_lr");
    if (omi_failed()) return om_pending();
    if (!o) return omi_fail(OM_ERR_ARG, "the optimizer is NULL");
    if (!at_least_0(lr, "lr")) return om_pending();
    if (group < -1 || group >= (int)o->groups.n)
        return omi_fail(OM_ERR_ARG, "group is %d; there are 0 to %d, and -1 for all", group,
                        (int)o->groups.n - 1);
    for (int i = 0; i < (int)o->groups.n; i++)
        if (group == -1 || group == i) o->groups.v[i].lr = lr;
    return OM_OK;
}

int64_t om_optim_steps(const om_optim *o) {
    return o ? o->steps : 0;
}

/* ---- the step -------------------------------------------------------------------------------- */

om_status om_zero_grad(om_optim *o) {
    OMI_ENTER("om_zero_grad");
    if (omi_failed()) return om_pending();
    if (!o) return omi_fail(OM_ERR_ARG, "the optimizer is NULL");
    for (size_t i = 0; i < o->params.n; i++)
        om_clear_grad(o->params.v[i].t);
    return OM_OK;
}

typedef struct job {
    float *w;
    const float *g;
} job;

/* Pointers for parameter p, or nothing when it is skipped. */
static om_status prepare(om_optim *o, om_param *p, job *j) {
    om_tensor *g = p->t->flags & OM_T_GRAD ? om_grad_of(p->t) : NULL;
    *j           = (job){0};
    if (!g) return OM_OK;
    if (g->dtype != OM_F32 || !omi_same_shape(g, p->t))
        return omi_fail(OM_ERR_STATE, "the gradient of '%.80s' is %s, the parameter %s", p->path,
                        OMI_T(g), OMI_T(p->t));
    if (!(g = omi_pack(g))) return om_pending();
    OM_TRY(omi_param_state(o, p));
    j->w = omi_ptr_mut(p->t, "om_step");
    j->g = omi_ptr(g);
    return j->w ? OM_OK : om_pending();
}

om_status om_step(om_optim *o) {
    OMI_ENTER("om_step");
    if (omi_failed()) return om_pending();
    if (!o) return omi_fail(OM_ERR_ARG, "the optimizer is NULL");
    if (omi_state()->accumulation)
        return omi_fail(OM_ERR_STATE, "an accumulation is open, and gradients are undefined until "
                                      "om_accumulate_end");
    OM_TRY(omi_check_cancel());
    size_t bytes = o->params.n * sizeof(job);
    job *jobs    = omi_alloc(bytes);
    if (!jobs) return om_pending();
    om_scope s   = om_scope_begin();
    om_status st = OM_OK;
    for (size_t i = 0; i < o->params.n && st == OM_OK; i++)
        st = prepare(o, &o->params.v[i], &jobs[i]);
    if (st == OM_OK) st = omi_check_cancel();
    bool was = omi_hold_cancel(true); // from the first write on the step is made whole
    for (size_t i = 0; i < o->params.n && st == OM_OK; i++) {
        om_param *p = &o->params.v[i];
        if (jobs[i].w)
            omi_update(o, p, jobs[i].w, jobs[i].g, omi_numel(p->t), rate_now(o, p->group),
                       o->groups.v[p->group].weight_decay);
    }
    omi_hold_cancel(was);
    if (st == OM_OK) o->steps++;
    (void)om_scope_end(s);
    omi_free(jobs, bytes);
    return st;
}
