/*
 * builder.h (internal) -- what plan.c and place.c share while a plan is made; gone when it is done.
 */
#ifndef OM_RUNTIME_BUILDER_H
#define OM_RUNTIME_BUILDER_H

#include "graphops/fuse.h"
#include "runtime/plan.h"

typedef struct om_builder {
    om_program *program;
    om_plan *plan;
    om_arena scratch;
    size_t held;     /* bytes that the session holds besides this plan: constants, packed weights */
    om_pval *values; /* the program's, with sizes and folded contents */
    om_pval **slots;
    void **ptr;              /* scratch of omi_program_eval */
    bool *needed;            /* per value: somebody reads it while running */
    bool *done;              /* per node: folded, not needed, or a step of another one      */
    struct om_chain **chain; /* per node: the chain that ends with it, or NULL     */
} om_builder;

/* The chain that node i begins, where there is one (chain.c): its nodes but the last are done, and
 * b->chain of the last has it. */
typedef struct om_chain om_chain;
om_status omi_chain_from(om_builder *b, uint32_t i);
/* What is run in place of the last node. */
om_nctx omi_chain_ctx(om_builder *b, om_chain *ch);
/* Most inputs and outputs of it. */
#define OM_CHAIN_IO (3 + 2 * OM_EP_MAX + 1)

/* Decides where each value lives and drops the steps that only rename; fills patches, places,
 * fixed, output ports, and the workspace offsets of steps. */
om_status omi_place(om_builder *b);

#endif
