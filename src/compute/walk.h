/*
 * walk.h -- visiting several strided blocks of one shape together.
 *
 * Axes of size 1 go away and neighbours that are one run in every operand are merged, so most walks
 * have one axis and the inner loop sees long runs. Axis 0 of a walk is the innermost. Work is split
 * by flat row-major index with borders that depend on the size only (AR-6); below omi_split's
 * threshold everything stays on the calling thread.
 *
 * Needs: view.h, base/thread.h.  Used by: compute.
 */
#ifndef OM_COMPUTE_WALK_H
#define OM_COMPUTE_WALK_H

#include "base/thread.h"
#include "compute/view.h"

#define OMI_WALK_OPS 4

typedef struct omi_walk {
    int rank, n_ops; /* rank >= 1 */
    int64_t numel;
    int64_t shape[OM_MAX_RANK];
    int64_t stride[OMI_WALK_OPS][OM_MAX_RANK]; /* elements */
} omi_walk;

/* Where a walk stands: coordinates, and the element offset into each operand. */
typedef struct omi_pos {
    int64_t coord[OM_MAX_RANK];
    int64_t off[OMI_WALK_OPS];
} omi_pos;

/* The shape is that of v[0]; the others have the same. */
void omi_walk_init(omi_walk *w, int n_ops, const om_view *const *v);
/* Stands at a flat index below numel. */
void omi_walk_seek(const omi_walk *w, int64_t index, omi_pos *p);
/* Past the end of axis 0: carries into the outer axes. */
void omi_walk_carry(const omi_walk *w, omi_pos *p);

/* Elements left in the inner run, at most room. */
OM_INLINE int64_t omi_walk_run(const omi_walk *w, const omi_pos *p, int64_t room) {
    return omi_min64(w->shape[0] - p->coord[0], room);
}
/* Moves n elements on; n is at most the run. */
OM_INLINE void omi_walk_advance(const omi_walk *w, omi_pos *p, int64_t n) {
    p->coord[0] += n;
    for (int k = 0; k < w->n_ops; k++)
        p->off[k] += n * w->stride[k][0];
    if (p->coord[0] == w->shape[0]) omi_walk_carry(w, p);
}

/* body(arg, begin, end, worker) over [0, n) in pieces of grain; one piece on this thread when there
 * are at most two. */
typedef void (*omi_range_body)(void *arg, int64_t begin, int64_t end, int worker);
void omi_split(int64_t n, int64_t grain, omi_range_body body, void *arg);

/* Elements in a piece of cheap element-wise work. */
#define OMI_GRAIN 16384
/* Contiguous operands up to here skip every set-up. */
#define OMI_SMALL 8192

#endif
