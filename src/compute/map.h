/*
 * map.h -- applies an inner loop over elements to strided operands of one shape.
 *
 * The inner loop sees runs in which each input is contiguous (step 1) or one element (step 0) and
 * the output is contiguous. Inputs that are neither are gathered a block at a time into the stack,
 * so an inner loop never sees a stride.
 *
 * Needs: walk.h.  Used by: elementwise*.c, cast.c.
 */
#ifndef OM_COMPUTE_MAP_H
#define OM_COMPUTE_MAP_H

#include "compute/walk.h"

#define OMI_MAP_IN 3

typedef struct omi_map omi_map;
/* in[k] points to the first element of input k; step[k] is 0 or 1. out[k]: the outputs. first is
 * the row-major index of the first element. */
typedef void (*omi_map_run)(const omi_map *m, int64_t n, int64_t first, const void *const *in,
                            const int *step, void *const *out);

struct omi_map {
    int n_in, n_out; /* outputs are contiguous, of one element size */
    const om_view *in[OMI_MAP_IN];
    const om_view *out[2];
    bool no_scalars; /* the inner loop wants every step 1 */
    int64_t grain;   /* 0: OMI_GRAIN */
    omi_map_run run;
    const void *fn; /* for run: whatever it needs; see OMI_FN */
    const void *arg;
    int kind;
};

void omi_map_apply(const omi_map *m);

#endif
