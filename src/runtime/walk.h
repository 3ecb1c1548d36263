/*
 * walk.h (internal) -- running a program in stages: run values, frames, and what nodes do whose
 * sizes are met on the way (CD-37).
 *
 * A walk is one om_session_run of such a program. It has a frame for each level of subgraphs: a
 * table of run values by number, filled stage by stage. Parts run by plans of the session's cache;
 * nodes in between are flow.c. Everything a walk makes is counted against memory_limit and goes
 * when its last reader has read it. Recursion is bounded by OM_NEST_DEPTH; nothing large lies on
 * the stack.
 *
 * Needs: cache.  Used by: session.
 */
#ifndef OM_RUNTIME_WALK_H
#define OM_RUNTIME_WALK_H

#include "runtime/cache.h"
#include "tensor/tensor.h"

/* Iterations that all loops of one run may make together. */
#define OM_TURNS_MOST ((int64_t)1 << 26)

/* A run value. Counted; belongs to one walk and its thread. */
typedef struct om_cell {
    uint32_t refs;
    bool own; /* made by this walk: else a constant or the caller's */
    int32_t dtype, rank;
    int64_t shape[OM_MAX_RANK], numel;
    const void *data; /* contiguous; never NULL                           */
    om_buffer *buf;   /* what data lies in, NULL where somebody else's    */
    size_t charged;
} om_cell;

typedef struct om_walk {
    om_cache *cache;
    int workers;
    size_t limit, base, now; /* bytes: allowed (0: all), of the session, of the walk */
    int64_t turns;           /* iterations so far */
} om_walk;

typedef struct om_frame {
    om_walk *w;
    const om_program *p;
    om_cell **slot; /* per value, NULL: not there */
} om_frame;

/* Counts bytes, which a walk is about to take, against the limit. */
om_status omi_walk_charge(om_walk *w, size_t bytes);
/* A value with uninitialised contents. NULL and raised. */
om_cell *omi_cell_new(om_walk *w, int32_t dtype, int rank, const int64_t *shape);
/* A value over somebody's bytes, which outlive it. */
om_cell *omi_cell_over(om_walk *w, int32_t dtype, int rank, const int64_t *shape, const void *data);
om_cell *omi_cell_retain(om_cell *c);
void omi_cell_release(om_walk *w, om_cell *c); /* NULL is fine */
om_view omi_cell_view(const om_cell *c);
OM_INLINE void *omi_cell_ptr(om_cell *c) {
    return c->buf->data; /* of one made by omi_cell_new */
}

/* Value v, for reading: borrowed. NULL and raised. */
om_cell *omi_frame_cell(om_frame *f, uint32_t v);
/* Gives value v (OM_NO_VALUE: nobody wants it) a cell, whose reference it takes. */
void omi_frame_set(om_frame *f, uint32_t v, om_cell *c);
/* Runs program p: in has a cell for each of its inputs (borrowed), out receives its outputs, each a
 * reference, or NULLs where it fails. */
om_status omi_walk_program(om_walk *w, const om_program *p, om_cell *const *in, om_cell **out);
/* Runs one node that has no step; flow.c. */
om_status omi_walk_node(om_frame *f, const om_pnode *n);
/* A node's message: "node 'x' (Loop, #3): ...". */
om_status omi_walk_fail(const om_frame *f, const om_pnode *n, om_status s, const char *fmt, ...)
    OM_PRINTF(4, 5) OM_COLD;

/* The whole: in[i] holds the contiguous elements of input i, which has the sizes of feeds[i].
 * made receives tensors filed in the current scope. */
om_status omi_walk_session(om_cache *c, const om_program *p, int workers, int64_t limit,
                           const om_feed *feeds, const void *const *in, om_tensor **made);

#endif
