/*
 * model.h (internal) -- the sections of a model in format v1: row sizes and the reader's entry.
 *
 * docs/format.md is the specification; these are its numbers.
 *
 * Needs: graph, container.h.
 */
#ifndef OM_FORMAT_MODEL_H
#define OM_FORMAT_MODEL_H

#include "format/container.h"
#include "graph/graph.h"

enum {
    OM_META_HEAD    = 40, /* ir, model version, producer, producer version, counts */
    OM_META_ROW     = 16,
    OM_DIMS_ROW     = 32,
    OM_VALS_ROW     = 32,
    OM_VALS_DIM     = 16,
    OM_ATTR_ROW     = 24,
    OM_ATTR_ITEM    = 8,
    OM_NODE_ROW     = 48,
    OM_NODE_OPERAND = 4,
    OM_GRPH_ROW     = 48,
    OM_GRPH_END     = 4,
    OM_INIT_ROW     = 32,
    OM_INIT_DIM     = 8,
    OM_DATA_ALIGN   = 64
};

#define OM_MODEL_TAGS "METASTRSDIMSVALSATTRNODEGRPHINITDATA"

/* A graph from a file; its initializers point into file and retain it. NULL and raised. */
om_graph *omi_model_read(om_buffer *file, const om_source *o);

#endif
