/*
 * optim.h (internal) -- an optimizer: parameters with their state, groups with their rates, a
 * schedule.
 *
 * One struct serves every kind: what differs is the loop over the elements (update.c). State
 * belongs to the parameter, as in PyTorch: its own step count, so that a parameter thawed late
 * starts afresh.
 *
 * Needs: nn.  Used by: optim.
 */
#ifndef OM_OPTIM_OPTIM_H
#define OM_OPTIM_OPTIM_H

#include "nn/module.h"
#include "onemodel/optim.h"

typedef enum om_optim_kind {
    OM_OPTIM_SGD   = 1,
    OM_OPTIM_ADAM  = 2,
    OM_OPTIM_ADAMW = 3
} om_optim_kind;
typedef enum om_schedule_kind {
    OM_SCHEDULE_NONE   = 0,
    OM_SCHEDULE_STEP   = 1,
    OM_SCHEDULE_COSINE = 2
} om_schedule_kind;

typedef struct om_param {
    om_tensor *t;     /* strong               */
    const char *path; /* in the state list    */
    int32_t group;
    int64_t steps;   /* with a gradient */
    double power[2]; /* beta^steps, by that many multiplications (CD-22)              */
    float *state[2]; /* SGD: velocity; Adam: mean, mean square. NULL before the first step */
} om_param;

typedef struct om_group {
    double lr, weight_decay;
} om_group;

typedef struct om_schedule {
    om_schedule_kind kind;
    int64_t every, total, warmup;
    double gamma, floor;
} om_schedule;

struct om_optim {
    om_optim_kind kind;
    double momentum, dampening, betas[2], eps;
    bool nesterov;
    int64_t steps;
    om_schedule schedule;
    om_state_list list; /* owns the paths */
    OM_VEC(om_param) params;
    OM_VEC(om_group) groups;
};

/* Number of float arrays each parameter has. */
int omi_optim_n_state(const om_optim *o);
/* Allocates the zeroed state of p. */
om_status omi_param_state(const om_optim *o, om_param *p);
size_t omi_param_bytes(const om_param *p); /* of one array */
/* Factor of the schedule at step t. */
double omi_schedule_factor(const om_schedule *s, int64_t t);
/* cos(pi * x) for 0 <= x <= 1 by + - * only, within 1 ulp: the same bits everywhere (AR-7.4). */
double omi_cospi(double x);

/* One parameter's step, over contiguous arrays of n. lr and wd are of its group, now. Advances the
 * step count and powers. */
void omi_update(const om_optim *o, om_param *p, float *w, const float *g, int64_t n, double lr,
                double wd);

#endif
