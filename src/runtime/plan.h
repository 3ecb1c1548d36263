/*
 * plan.h (internal) -- a program laid out for one signature of inputs: steps, offsets, pointers
 * (CD-28).
 *
 * The signature is the type and sizes of every input, and the contents of the few inputs whose
 * contents decide sizes (a Reshape target that is a graph input). A plan is immutable and counted;
 * runs bring their own memory.
 *
 * Needs: passes.  Used by: session, run.
 */
#ifndef OM_RUNTIME_PLAN_H
#define OM_RUNTIME_PLAN_H

#include "passes/program.h"

/* One input as the caller has it. */
typedef struct om_feed {
    int32_t rank;
    int64_t shape[OM_MAX_RANK];
    const void *data; /* contents where program->by_value asks for them; else NULL will do */
} om_feed;

/* A value whose address changes with each call: bytes from the start of input or output `io`. */
typedef struct om_patch {
    uint32_t value, io;
    bool output;
    int64_t offset;
} om_patch;

/* A value in the arena. */
typedef struct om_place {
    uint32_t value;
    size_t offset;
} om_place;

typedef struct om_port {
    om_dtype dtype;
    int32_t rank;
    int64_t shape[OM_MAX_RANK], numel;
    size_t bytes;
    uint32_t
        copy_from; /* outputs: this value is copied at the end; OM_NO_VALUE: written in place */
} om_port;

typedef struct om_plan {
    _Atomic uint32_t refs;
    om_program *program;
    om_arena arena; /* steps, arguments, folded contents */
    om_run_step **steps;
    uint32_t n_steps, n_values;
    void **fixed; /* per value: address of constants, else NULL */
    om_patch *patches;
    uint32_t n_patches;
    om_place *places;
    uint32_t n_places;
    om_port *in, *out;
    uint32_t n_in, n_out;
    size_t bytes;     /* of the arena of a run */
    size_t out_bytes; /* of all outputs        */
    uint32_t
        largest; /* the value with most bytes that a step makes, for messages; or OM_NO_VALUE */
    size_t largest_bytes;
    size_t need; /* of a run, the plan and what the session holds besides */
    int workers;
} om_plan;

/* NULL and raised: shapes that do not fit (naming inputs and axes), sizes computed while running,
 * memory, cancelled. feeds in graph order. limit: most bytes of arena and outputs, 0 none. */
om_plan *omi_plan_new(om_program *p, const om_feed *feeds, int workers, int64_t limit);
om_plan *omi_plan_retain(om_plan *p);
void omi_plan_release(om_plan *p);
/* Which value makes a run of this plan large: "; the largest value is 'y' of node ... with N
 * bytes", or "". */
void omi_plan_largest(const om_plan *p, char *out, size_t n);

/* Sizes against the declared ones: fixed sizes, symbols that must agree, ranges. Raises
 * OM_ERR_SHAPE. */
om_status omi_bind_inputs(const om_graph *g, const om_feed *feeds);

/* Lays out n blocks of known lifetime: fills offset of each and returns the total, all multiples of
 * OM_ALIGN. Steps are numbered; a block lives from first to last, both included. */
typedef struct om_block {
    size_t bytes, offset;
    uint32_t first, last;
} om_block;
om_status omi_layout(om_block *b, uint32_t n, size_t *total);

#endif
