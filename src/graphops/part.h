/*
 * part.h (internal) -- what nodes that move elements share: a strided part of input 0 as output 0.
 *
 * A part that stays contiguous (a slice of the leading axis, one row) is a view without work.
 */
#ifndef OM_GRAPHOPS_PART_H
#define OM_GRAPHOPS_PART_H

#include "graphops/rows.h"

/* A step that makes output 0 of a part of input 0: x has its strides and shape, offset is in
 * elements. */
om_run_step *omi_step_part(om_nctx *c, const om_view *x, int64_t offset);

#endif
