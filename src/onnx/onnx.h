/*
 * onnx.h (internal) -- ONNX model bytes to a graph and back.
 *
 * Needs: graph.  Used by: format (om_graph_load), tests.
 */
#ifndef OM_ONNX_ONNX_H
#define OM_ONNX_ONNX_H

#include "graph/graph.h"
#include "graph/source.h"

/* Reads file (retained by what points into it). NULL and raised: OM_ERR_MALFORMED with the byte
 * offset, OM_ERR_UNSUPPORTED, OM_ERR_LIMIT, OM_ERR_CANCELLED, OM_ERR_NOMEM. */
om_graph *omi_onnx_read(om_buffer *file, const om_source *opts);

#endif
