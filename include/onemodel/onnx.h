/*
 * onnx.h -- ONNX files: opset 20, IR version 9, written deterministically.
 *
 * om_graph_load reads ONNX too (any well-formed ModelProto). The writer emits protobuf fields in
 * number order and no unknown fields, so equal graphs give equal bytes.
 *
 * Needs: graph.h.
 */
#ifndef ONEMODEL_ONNX_H
#define ONEMODEL_ONNX_H

#include <onemodel/graph.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct om_onnx_opts {
    uint32_t struct_size;
    bool provenance; /* write call sites of traced nodes into metadata_props; default: never */
} om_onnx_opts;

/* Saves as ONNX, atomically. Fails: OM_ERR_IO, OM_ERR_NOMEM, OM_ERR_LIMIT (over 2 GiB, which
 * protobuf cannot hold). */
OM_API om_status om_graph_save_onnx(const om_graph *g, const char *path, const om_onnx_opts *opts);
/* The same bytes in memory; free with om_bytes_free. */
OM_API om_status om_graph_save_onnx_memory(const om_graph *g, const om_onnx_opts *opts, void **data,
                                           size_t *bytes);

#ifdef __cplusplus
}
#endif
#endif
