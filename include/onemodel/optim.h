/*
 * optim.h -- training: optimizers, schedules, clipping, batches, checkpoints.
 *
 *     om_optim *opt = om_adam(net, 1e-3, NULL);
 *     for each batch:
 *         om_scope s = om_scope_begin();
 *         om_tensor *loss = om_cross_entropy(model(net, x), y);
 *         om_zero_grad(opt);
 *         om_backward(loss);
 *         om_step(opt);
 *         if (om_scope_end(s)) break;            // one check; after a failure all of it is skipped
 *     om_optim_free(opt);
 *
 * Hyper-parameters are double and every coefficient is computed in double and rounded once, so
 * training gives the same bits on every machine, with any number of threads, and after a resume.
 * Formulas: docs/arithmetic.md R11.3; they agree with PyTorch's (foreach=False) to rounding.
 *
 * Lifetime: an optimizer and a loader keep references to tensors, not to modules, and are freed by
 * who made them. Threads: one at a time.
 *
 * Needs: nn.h.
 */
#ifndef ONEMODEL_OPTIM_H
#define ONEMODEL_OPTIM_H

#include <onemodel/nn.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- optimizers --------------------------------------------------------------------------- */

typedef struct om_optim om_optim;

typedef struct om_sgd_opts {
    uint32_t struct_size;
    double momentum, dampening, weight_decay; /* 0: none */
    bool nesterov;                            /* needs momentum and no dampening */
} om_sgd_opts;
typedef struct om_adam_opts {
    uint32_t struct_size;
    double betas[2]; /* both 0: 0.9, 0.999 */
    double eps;      /* 0: 1e-8            */
    double
        weight_decay; /* om_adam: added to the gradient; om_adamw: p shrinks by lr * weight_decay */
} om_adam_opts;

/* Optimizers over the parameters of m as they are now, in state-dict order, tied ones once. Frozen
 * parameters and those without a gradient are skipped at each step.
 * Fails: OM_ERR_ARG (negative or NaN setting, no parameter), OM_ERR_NOMEM. */
OM_API om_optim *om_sgd(om_module *m, double lr, const om_sgd_opts *opts);
OM_API om_optim *om_adam(om_module *m, double lr, const om_adam_opts *opts);
OM_API om_optim *om_adamw(om_module *m, double lr, const om_adam_opts *opts);
OM_API void om_optim_free(om_optim *o); /* NULL is fine */

/* Clears the gradients. */
OM_API om_status om_zero_grad(om_optim *o);
/* One step: reads the gradients, changes the parameters in place. Does nothing while an error is
 * pending or the thread's cancel flag is raised, and returns that. */
OM_API om_status om_step(om_optim *o);
/* Steps made; after a resume it goes on. */
OM_API int64_t om_optim_steps(const om_optim *o);
/* For what was saved elsewhere: the number that schedules count from. OM_ERR_ARG below 0. */
OM_API om_status om_optim_set_steps(om_optim *o, int64_t steps);

/* The state of one parameter. Filled by the library and valid during the call that gets it; members
 * are only ever added at the end. */
typedef struct om_optim_entry {
    const char *path;     /* of the parameter, from the module the optimizer was made with  */
    om_tensor *parameter; /* borrowed                                                       */
    int64_t steps;        /* made with a gradient                                           */
    int32_t group;        /* of om_optim_group                                              */
    int32_t n_arrays;     /* 0 to 2, each of om_numel(parameter) float32, row-major         */
    const char *names[2]; /* PyTorch's: "momentum_buffer"; "exp_avg", "exp_avg_sq"          */
    float *arrays[2];     /* NULL where no step has made them                               */
} om_optim_entry;
/* Calls visit for every parameter, in the order of the state dict; tied ones come once. With write,
 * arrays are made where there are none (zero), all before the first call; visit may then change
 * their elements and set steps, 0 to 1,000,000,000, and both hold from its return on. Without, what
 * it changes is not kept and arrays must not be written. Non-zero stops with OM_ERR_CANCELLED (or
 * with the error that visit raised): entries visited before keep what they were given.
 * Fails: OM_ERR_ARG, OM_ERR_NOMEM (nothing visited). */
typedef int (*om_optim_visit_fn)(void *ctx, om_optim_entry *e);
OM_API om_status om_optim_visit(om_optim *o, bool write, om_optim_visit_fn visit, void *ctx);

/* Groups. All parameters start in group 0. om_optim_group moves those whose path is prefix or
 * begins with prefix and a dot into a new group, whose number goes to *group (may be NULL). Fails:
 * OM_ERR_ARG when nothing matches. */
typedef struct om_group_opts {
    uint32_t struct_size;
    double lr;           /* 0: as group 0                                      */
    double weight_decay; /* 0: as group 0                                      */
    bool no_decay;       /* no weight decay                                    */
    /* Further prefixes; prefix itself may then be NULL. "*.bias" stands for every path that ends in
     * ".bias" or is "bias". */
    int n_prefixes;
    const char *const *prefixes;
} om_group_opts;
OM_API om_status om_optim_group(om_optim *o, const char *prefix, const om_group_opts *opts,
                                int *group);
/* The rate that the next step uses, and the base rate, which a schedule multiplies. group -1: all.
 */
OM_API double om_lr(const om_optim *o, int group); /* NaN for a group that is not there */
OM_API om_status om_set_lr(om_optim *o, int group, double lr);

/* Schedules: the rate of step t (from 0) is base rate times a factor. A new one replaces the old.
 */
/* gamma^floor(t / every). */
OM_API om_status om_schedule_step(om_optim *o, int64_t every, double gamma);
/* From 1 down to floor along half a cosine wave over steps warmup .. total, floor after it; before
 * it (t + 1) / (warmup + 1), a linear rise. */
OM_API om_status om_schedule_cosine(om_optim *o, int64_t total, int64_t warmup, double floor);

/* Both may put a new tensor in a leaf's place of the gradient: ask om_grad_of again after them. */
/* Scales all gradients of o so that their joint 2-norm is at most max; *norm (may be NULL) is the
 * norm before, in double. A norm that is not finite is OM_ERR_VALUE and changes nothing. */
OM_API om_status om_clip_norm(om_optim *o, double max, double *norm);
/* Limits every element of every gradient to [-max, max]. NaN stays. */
OM_API om_status om_clip_value(om_optim *o, double max);

/* ---- batches ------------------------------------------------------------------------------ */

typedef struct om_loader om_loader;

typedef struct om_loader_opts {
    uint32_t struct_size;
    bool shuffle;   /* a new order every epoch, from stream 1 of the thread's generator */
    bool drop_last; /* leave out a last batch that is not full                          */
} om_loader_opts;
/* Batches over the first axis of n tensors of equal first size, which the loader keeps references
 * to. */
OM_API om_loader *om_loader_new(int n, om_tensor *const *tensors, int64_t batch,
                                const om_loader_opts *opts);
/* Batches that fill makes: out[0 .. n-1] (@scoped) for the count items numbered index[..], each
 * below items. Non-zero stops with OM_ERR_CANCELLED, or with the error that fill raised. */
typedef int (*om_fill_fn)(void *ctx, int64_t count, const int64_t *index, int n, om_tensor **out);
OM_API om_loader *om_loader_callback(int64_t items, int64_t batch, int n, om_fill_fn fill,
                                     void *ctx, const om_loader_opts *opts);
OM_API void om_loader_free(om_loader *l);
/* The next batch: out[0 .. n-1], @scoped. False at the end of an epoch, and on failure (om_pending
 * tells which); the call after the end begins the next epoch. */
OM_API bool om_loader_next(om_loader *l, om_tensor **out);
#ifndef __cplusplus
/* One epoch, each batch in a scope of its own, which `break` and `continue` end too:
 *     om_tensor *batch[2];
 *     OM_BATCHES(loader, batch) {
 *         om_backward(om_cross_entropy(model(batch[0]), batch[1]));
 *         om_step(optim);
 *     }
 * Ends early when an error is pending: ask om_pending() behind it. */
#    define OM_BATCHES(loader, out)                                                                \
        for (om_batches out##_each = {(loader), (out), {0, 0}, 0, 0};                              \
             om_batches_next(&out##_each);)                                                        \
            for (out##_each.body = 1; out##_each.body; out##_each.body = 0)
#endif
/* What OM_BATCHES walks with; zero it but for the loader and where batches go. */
typedef struct om_batches {
    om_loader *loader;
    om_tensor **out;
    om_scope scope;
    int32_t open; /* a scope has been begun                        */
    int32_t body; /* not zero when the last body was left by break */
} om_batches;
/* Ends the scope of the last batch and begins the next with its batch. False at the end of an
 * epoch, after a break, and on failure; then no scope is open. */
OM_API bool om_batches_next(om_batches *b);
/* Ends the epoch that is under way. */
OM_API void om_loader_rewind(om_loader *l);
OM_API int64_t om_loader_epoch(const om_loader *l);     /* epochs ended       */
OM_API int64_t om_loader_n_batches(const om_loader *l); /* of one epoch       */

/* ---- checkpoints --------------------------------------------------------------------------- */

/* What a checkpoint holds: weights and buffers, the optimizer's state, the loader's position, the
 * four generators of this thread, and a number of the caller's. Absent parts are NULL. */
typedef struct om_checkpoint {
    uint32_t struct_size;
    om_module *module;
    om_optim *optim;
    om_loader *loader;
    int64_t step;
} om_checkpoint;
/* Writes all of it, atomically. Fails: OM_ERR_IO, OM_ERR_NOMEM. */
OM_API om_status om_checkpoint_save(const char *path, const om_checkpoint *c);
/* Restores it into objects made as they were for the save: then training goes on with the same bits
 * as without the interruption. Sets c->step. Nothing is changed on failure. Fails: OM_ERR_ARG
 * (names or shapes differ, another kind of optimizer, another data set: says which), OM_ERR_IO,
 * OM_ERR_MALFORMED, OM_ERR_NOMEM. */
OM_API om_status om_checkpoint_load(const char *path, om_checkpoint *c);

#ifdef __cplusplus
}
#endif
#endif
