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

#define OM_NODE(domain, type, since, until, in, out, attrs, parse, infer, fold, select, arg)       \
    om_status parse(om_nctx *c);                                                                   \
    om_status infer(om_nctx *c);                                                                   \
    om_run_step *select(om_nctx *c);
#define OM_FAST(type, select) om_run_step *select(om_nctx *c);
#include "graphops/opset.def"
#undef OM_NODE
#undef OM_FAST

#endif
