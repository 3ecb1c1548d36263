/*
 * onnx.h (internal) -- ONNX model bytes to a graph and back.
 *
 * Needs: graph.  Used by: format (om_graph_load), tests.
 */
#ifndef OM_ONNX_ONNX_H
#define OM_ONNX_ONNX_H

#include "graph/graph.h"

typedef struct om_read_opts {
    const char *label;       /* file name for messages, already safe to print; may be "" */
    const char *hint;        /* what the bytes look like when they are no model, or NULL */
    size_t arena_cap;        /* bytes the graph may take                                 */
    const om_cancel *cancel; /* or NULL                                                  */
    bool skip_checksum;
} om_read_opts;

/* Reads file (retained by what points into it). NULL and raised: OM_ERR_MALFORMED with the byte
 * offset, OM_ERR_UNSUPPORTED, OM_ERR_LIMIT, OM_ERR_CANCELLED, OM_ERR_NOMEM. */
om_graph *omi_onnx_read(om_buffer *file, const om_read_opts *opts);

#endif
