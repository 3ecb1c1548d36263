/*
 * rows.h (internal) -- the functions that opset.def names, declared once, for the files that define
 * them.
 */
#ifndef OM_GRAPHOPS_ROWS_H
#define OM_GRAPHOPS_ROWS_H

#include "compute/elementwise.h"
#include "compute/move.h"
#include "compute/reduce.h"
#include "graphops/node.h"

#define OM_NODE(type, since, infer, fold, exact, fast, arg, operands)                              \
    om_status infer(om_nctx *c);                                                                   \
    om_step *exact(om_nctx *c);                                                                    \
    om_step *fast(om_nctx *c);
#include "graphops/opset.def"
#undef OM_NODE

#endif
