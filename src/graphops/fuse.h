/*
 * fuse.h (internal) -- nodes that a convolution or product takes over as steps of its epilogue.
 *
 * Which nodes may follow one another is wiring, found once per session (passes/fuse_epilogue.c);
 * whether they fit is a matter of sizes, and decided with each plan: a node that would broadcast
 * the result stays a node of its own. Every node type that can be a step describes itself, next to
 * its select, and the description depends on the select in force: so a Fast session gets the
 * arithmetic of its Fast kernels.
 *
 * Needs: node.h, compute/epilogue.h.  Used by: graphops, passes, runtime.
 */
#ifndef OM_GRAPHOPS_FUSE_H
#define OM_GRAPHOPS_FUSE_H

#include "compute/epilogue.h"
#include "graphops/node.h"

/* What follows a node. The result is seen as a matrix: of a convolution one row per channel and one
 * column per pixel, image by image; of a product the last axis as columns, and the rows of all
 * items. */
typedef struct om_fused {
    om_epilogue ep;
    uint32_t a[OM_EP_MAX], b[OM_EP_MAX]; /* values; OM_NO_VALUE: ep has the address, or none */
    bool images;
    int rank, columns; /* of the result; how many of its last axes are columns */
    int64_t shape[OM_MAX_RANK];
} om_fused;

/* May a node with this select begin a chain? */
bool omi_fuse_head(om_select_fn select);
/* May it be a step? Its result then follows input 0, or with *either input 1. */
bool omi_fuse_follower(om_select_fn select, bool *either);

/* The layout of what node c computes; false: nothing can follow. */
bool omi_fuse_begin(const om_nctx *c, om_fused *f);
/* The node of c as one more step on its input `via`; false: it does not fit. Constants that it
 * computes are in c's arena; *failed: raised. */
bool omi_fuse_step(const om_nctx *c, uint32_t via, om_fused *f, bool *failed);

/* ---- for the descriptions: each adds exactly one step -------------------------------------
 */

typedef bool (*om_fuse_fn)(const om_nctx *c, uint32_t via, om_fused *f, bool *failed);
bool omi_fuse_unary(const om_nctx *c, uint32_t via, om_fused *f, bool *failed);
bool omi_fuse_unary_fast(const om_nctx *c, uint32_t via, om_fused *f, bool *failed);
bool omi_fuse_binary(const om_nctx *c, uint32_t via, om_fused *f, bool *failed);
bool omi_fuse_clip(const om_nctx *c, uint32_t via, om_fused *f, bool *failed);
bool omi_fuse_batch_norm(const om_nctx *c, uint32_t via, om_fused *f, bool *failed);
/* Adds s, whose operand has these element strides over the axes of the result; false: they are no
 * matrix. a, b: the values of s.a and s.b, or OM_NO_VALUE. */
bool omi_fuse_add(om_fused *f, om_ep_step s, const int64_t *strides, uint32_t a, uint32_t b);

/* ---- for the heads
 * -------------------------------------------------------------------------------
 */

/* Takes the first step away where it is the addition of value *a: one number a row (of every image
 * the same), or one a column. */
bool omi_fuse_take_row_bias(om_fused *f, uint32_t *a);
bool omi_fuse_take_sum(om_fused *f, uint32_t *a, int64_t *rs, int64_t *cs);
/* The opposite for a bias of one number a row: in one pass with what follows; false: no room. */
bool omi_fuse_put_row_bias(om_fused *f, uint32_t a);
/* The steps with their addresses; NULL when there are none. */
const om_epilogue *omi_fuse_bind(const om_fused *f, const om_exec *e, om_epilogue *out);

#endif
