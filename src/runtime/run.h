/*
 * run.h (internal) -- the memory of one run: arena, outputs, and a pointer for every value of its
 * plan.
 */
#ifndef OM_RUNTIME_RUN_H
#define OM_RUNTIME_RUN_H

#include "runtime/plan.h"

struct om_run {
    om_plan *plan;
    om_run *next; /* in a session's list of idle runs          */
    void **ptr;   /* per value                                 */
    void *arena;
    void **own;  /* per output: the run's own buffer, or NULL */
    void **last; /* per output: where the last call wrote     */
    bool owns_outputs, done;
};

/* A run of plan (retained). own_outputs: with buffers for its outputs. NULL and raised. */
om_run *omi_run_new(om_plan *plan, bool own_outputs);
/* One run; pointers were checked. */
om_status omi_run_steps(om_run *r, const void *const *in, void *const *out);

#endif
