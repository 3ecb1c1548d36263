/*
 * builder.h (internal) -- what plan.c and place.c share while a plan is made; gone when it is done.
 */
#ifndef OM_RUNTIME_BUILDER_H
#define OM_RUNTIME_BUILDER_H

#include "runtime/plan.h"

typedef struct om_builder {
    om_program *program;
    om_plan *plan;
    om_arena scratch;
    size_t held;     /* bytes that the session holds besides this plan: constants, packed weights */
    om_pval *values; /* the program's, with sizes and folded contents */
    om_pval **slots;
    void **ptr;   /* scratch of omi_program_eval */
    bool *needed; /* per value: somebody reads it while running */
    bool *done;   /* per node: folded, or not needed            */
} om_builder;

/* Decides where each value lives and drops the steps that only rename; fills patches, places,
 * fixed, output ports, and the workspace offsets of steps. */
om_status omi_place(om_builder *b);

#endif
