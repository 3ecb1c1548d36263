/*
 * visit.c -- an optimizer's state, parameter by parameter: what a binding saves and restores in a
 * format of its own (CD-45). Checkpoints of this library are checkpoint.c.
 */
#include "optim/optim.h"

#define MOST_STEPS 1000000000

om_status om_optim_set_steps(om_optim *o, int64_t steps) {
    OMI_ENTER("om_optim_set_steps");
    if (omi_failed()) return om_pending();
    if (!o || steps < 0)
        return omi_fail(OM_ERR_ARG,
                        o ? "steps is %lld; 0 or more is wanted" : "the optimizer is NULL",
                        (long long)steps);
    o->steps = steps;
    return OM_OK;
}

/* The count, and the powers that so many multiplications make (CD-22). */
static om_status set_steps(const om_optim *o, om_param *p, int64_t steps) {
    if (steps < 0 || steps > MOST_STEPS)
        return omi_fail(OM_ERR_ARG, "steps of '%.80s' is set to %lld; 0 to %d are taken", p->path,
                        (long long)steps, MOST_STEPS);
    p->steps = steps;
    for (int k = 0; k < 2; k++) {
        p->power[k] = 1.0;
        for (int64_t i = 0; i < steps && o->kind != OM_OPTIM_SGD && p->power[k] != 0.0; i++)
            p->power[k] *= o->betas[k];
    }
    return OM_OK;
}

static om_status visit_one(om_optim *o, om_param *p, bool write, om_optim_visit_fn visit,
                           void *ctx) {
    static const char *const of_adam[2] = {"exp_avg", "exp_avg_sq"};
    om_optim_entry e                    = {.path      = p->path,
                                           .parameter = p->t,
                                           .steps     = p->steps,
                                           .group     = p->group,
                                           .n_arrays  = omi_optim_n_state(o)};
    for (int k = 0; k < e.n_arrays; k++) {
        e.names[k]  = o->kind == OM_OPTIM_SGD ? "momentum_buffer" : of_adam[k];
        e.arrays[k] = p->state[k];
    }
    int code = visit(ctx, &e);
    if (omi_failed()) return om_pending();
    if (code) return omi_fail(OM_ERR_CANCELLED, "the visit function stopped with %d", code);
    return write && e.steps != p->steps ? set_steps(o, p, e.steps) : OM_OK;
}

om_status om_optim_visit(om_optim *o, bool write, om_optim_visit_fn visit, void *ctx) {
    OMI_ENTER("om_optim_visit");
    if (omi_failed()) return om_pending();
    if (!o || !visit) return omi_fail(OM_ERR_ARG, "%s is NULL", o ? "visit" : "the optimizer");
    for (size_t i = 0; i < o->params.n && write; i++)
        OM_TRY(omi_param_state(o, &o->params.v[i]));
    for (size_t i = 0; i < o->params.n; i++)
        OM_TRY(visit_one(o, &o->params.v[i], write, visit, ctx));
    return OM_OK;
}
