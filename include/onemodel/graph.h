/*
 * graph.h -- a model as a graph: load, inspect, save.
 *
 * A graph is immutable once om_trace_finish or a load returned it, so threads and sessions share it
 * freely; it is counted. Files: the library's own format v1 (".om", docs/format.md) and ONNX
 * (onnx.h). Loading accepts either and looks at the bytes, not at the name. No file can crash the
 * program or make it read another file.
 *
 * Needs: base.h.
 */
#ifndef ONEMODEL_GRAPH_H
#define ONEMODEL_GRAPH_H

#include <onemodel/base.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct om_graph om_graph;

typedef struct om_load_opts {
    uint32_t struct_size;
    int64_t memory_limit;    /* bytes the loaded graph may need; 0: 16 x file size + 64 MiB     */
    bool copy;               /* read the file instead of mapping it: for files that may change  */
    bool borrow;             /* om_graph_load_memory only: keep pointing into data, which must
                                outlive the graph; false: one copy is made                      */
    bool skip_checksum;      /* format v1: do not check the checksum of the weights            */
    const om_cancel *cancel; /* looked at while reading; NULL: the thread's own                 */
} om_load_opts;

/* Loads a model file. Fails: OM_ERR_IO (cannot be opened, not a regular file), OM_ERR_MALFORMED
 * (with the byte offset), OM_ERR_LIMIT, OM_ERR_CANCELLED, OM_ERR_NOMEM. Loading does not ask
 * whether the operators can be run: om_session_new does.        @retained: release with
 * om_graph_release. */
OM_API om_graph *om_graph_load(const char *path, const om_load_opts *opts);
OM_API om_graph *om_graph_load_memory(const void *data, size_t bytes, const om_load_opts *opts);
OM_API om_graph *om_graph_retain(om_graph *g);
OM_API void om_graph_release(om_graph *g); /* NULL is fine */

/* Saves as format v1. The file appears whole or not at all: it is written beside path and renamed.
 * Equal graphs give equal bytes. Fails: OM_ERR_IO, OM_ERR_NOMEM. */
OM_API om_status om_graph_save(const om_graph *g, const char *path);
/* The same bytes in memory; free with om_bytes_free. */
OM_API om_status om_graph_save_memory(const om_graph *g, void **data, size_t *bytes);
OM_API void om_bytes_free(void *data, size_t bytes);

/* One axis of a value. */
typedef struct om_axis_info {
    int64_t size;       /* -1: symbolic or unknown                              */
    const char *symbol; /* name, NULL when fixed or unknown; owned by the graph */
    int64_t lo, hi;     /* allowed sizes of the symbol; hi 0: no bound          */
    int64_t multiple;   /* size must be a multiple of it; 1: any                */
} om_axis_info;
typedef struct om_value_info {
    const char *name; /* owned by the graph; may hold any UTF-8               */
    int32_t dtype;    /* ONNX number; an om_dtype when the library computes with it */
    int32_t rank;     /* -1: unknown                                          */
    om_axis_info axes[OM_MAX_RANK];
} om_value_info;

OM_API int om_graph_n_inputs(const om_graph *g); /* without initializers */
OM_API int om_graph_n_outputs(const om_graph *g);
OM_API om_status om_graph_input(const om_graph *g, int i, om_value_info *out);
OM_API om_status om_graph_output(const om_graph *g, int i, om_value_info *out);

typedef struct om_node_info {
    const char *op_type, *domain, *name;
    int32_t n_inputs, n_outputs, n_attributes;
} om_node_info;
OM_API int om_graph_n_nodes(const om_graph *g);
OM_API om_status om_graph_node(const om_graph *g, int i, om_node_info *out);
OM_API const char *om_graph_node_input(const om_graph *g, int node, int k);  /* "" when absent */
OM_API const char *om_graph_node_output(const om_graph *g, int node, int k); /* "" when absent */

typedef struct om_init_info {
    const char *name;
    int32_t dtype, rank;
    const int64_t *dims;
    int64_t bytes;
    const void *data; /* little-endian elements, contiguous; may be unaligned in a mapping */
} om_init_info;
OM_API int om_graph_n_initializers(const om_graph *g);
OM_API om_status om_graph_initializer(const om_graph *g, int i, om_init_info *out);

/* Versions written in the file: IR version and the default domain's opset; producer name. */
OM_API int64_t om_graph_ir_version(const om_graph *g);
OM_API int64_t om_graph_opset(const om_graph *g);
OM_API const char *om_graph_producer(const om_graph *g);
/* Metadata: keys and values as UTF-8 text, kept in both file formats. NULL when key is absent. */
OM_API int om_graph_n_meta(const om_graph *g);
OM_API const char *om_graph_meta_key(const om_graph *g, int i);
OM_API const char *om_graph_meta(const om_graph *g, const char *key);
/* Sets (value NULL: removes) a key. Only while the caller holds the one reference and no session
 * uses the graph, else OM_ERR_STATE. */
OM_API om_status om_graph_set_meta(om_graph *g, const char *key, const char *value);

/* Writes the graph as text, one node a line. */
OM_API om_status om_graph_dump(const om_graph *g, om_write_fn write, void *ctx);

#ifdef __cplusplus
}
#endif
#endif
