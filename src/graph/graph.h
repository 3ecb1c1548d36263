/*
 * graph.h (internal) -- the graph as data: values, nodes, attributes, initializers (CD-26).
 *
 * Knows nothing of tracing, of tensors, or of what a node means. Everything but initializer bytes lives
 * in one arena and dies with the graph; initializer bytes are counted buffers, shared with storages or
 * a file mapping without copy. Readers build a graph with the omi_graph_* functions below, check it
 * once with omi_graph_seal, and never change it after.
 *
 * Needs: base.  Used by: onnx, format, graphops, passes, runtime, trace.
 */
#ifndef OM_GRAPH_GRAPH_H
#define OM_GRAPH_GRAPH_H

#include "base/arena.h"
#include "base/buffer.h"
#include "base/map.h"
#include "onemodel/graph.h"

#define OM_NO_VALUE UINT32_MAX /* an absent optional input or output */

/* An axis: value >= 0 fixed; else sym >= 0 an index into graph->symbols; else unknown. expr >= 0 marks a
 * derived extent whose text is symbols[sym].name (such as "4*batch"): it is checked by name equality
 * only. */
typedef struct om_dim {
    int64_t value;
    int32_t sym, expr;
} om_dim;
#define OM_DIM_FIXED(n) ((om_dim){(n), -1, -1})
#define OM_DIM_SYM(s)   ((om_dim){-1, (s), -1})
#define OM_DIM_UNKNOWN  ((om_dim){-1, -1, -1})

typedef struct om_symbol {
    const char *name;
    int64_t     lo, hi, multiple; /* 1, 0 (no bound), 1 by default */
} om_symbol;

typedef struct om_gvalue {
    const char *name;
    int32_t     dtype;     /* ONNX number; 0 unknown                        */
    int32_t     rank;      /* -1 unknown; may exceed OM_MAX_RANK in files   */
    om_dim     *dims;
    int32_t     producer;  /* node index, -1: input, initializer or nothing */
    int32_t     out_index;
    int32_t     init;      /* index into inits, -1: none                    */
    bool        is_input, is_output;
} om_gvalue;

typedef struct om_ginit {
    uint32_t   value; /* its om_gvalue; OM_NO_VALUE inside an attribute */
    int32_t    dtype, rank;
    int64_t   *dims;
    om_buffer *buf;
    size_t     offset, bytes; /* in buf; may be unaligned */
} om_ginit;

/* ONNX AttributeProto.AttributeType numbers. */
typedef enum om_attr_type {
    OM_ATTR_FLOAT   = 1,
    OM_ATTR_INT     = 2,
    OM_ATTR_STRING  = 3,
    OM_ATTR_TENSOR  = 4,
    OM_ATTR_GRAPH   = 5,
    OM_ATTR_FLOATS  = 6,
    OM_ATTR_INTS    = 7,
    OM_ATTR_STRINGS = 8,
    OM_ATTR_TENSORS = 9,
    OM_ATTR_GRAPHS  = 10,
    OM_ATTR_OTHER   = 99 /* sparse tensors, type protos: kept as a name only */
} om_attr_type;

typedef struct om_text {
    const char *v; /* NUL-terminated copy, may hold NULs inside */
    size_t      n;
} om_text;

typedef struct om_attr {
    const char  *name;
    om_attr_type type;
    float        f;
    int64_t      i;
    om_text      s;
    size_t       n; /* of the list in use */
    float       *floats;
    int64_t     *ints;
    om_text     *strings;
    om_ginit    *tensors; /* TENSOR (n = 1) and TENSORS */
    om_graph   **graphs;  /* GRAPH (n = 1) and GRAPHS; subgraphs share the arena of the root */
} om_attr;

typedef struct om_gnode {
    const char *op_type, *domain, *name; /* domain "" is the default one */
    uint32_t    n_in, n_out, n_attr;
    uint32_t   *in, *out;
    om_attr    *attrs;
    const char *site; /* provenance text, NULL unless a trace kept it */
} om_gnode;

typedef struct om_opset {
    const char *domain;
    int64_t     version;
} om_opset;

typedef struct om_meta_entry {
    const char *key, *value;
} om_meta_entry;

struct om_graph {
    _Atomic uint32_t refs;
    om_graph        *parent; /* outer graph of a subgraph, not counted */
    om_arena        *arena;  /* the root's */
    om_arena         own_arena;
    const char      *name, *producer, *producer_version, *report;
    int64_t          ir_version, model_version;
    _Atomic uint32_t sessions; /* users that rely on it not changing */

    om_gvalue *values;
    uint32_t   n_values, cap_values;
    om_gnode  *nodes;
    uint32_t   n_nodes, cap_nodes;
    om_ginit  *inits;
    uint32_t   n_inits, cap_inits;
    uint32_t  *inputs; /* values, without initializers */
    uint32_t   n_inputs, cap_inputs;
    uint32_t  *outputs;
    uint32_t   n_outputs, cap_outputs;
    om_symbol *symbols;
    uint32_t   n_symbols, cap_symbols;
    om_opset  *opsets;
    uint32_t   n_opsets, cap_opsets;
    om_meta_entry *meta;
    uint32_t       n_meta, cap_meta;
    om_strmap      by_name; /* value name -> index + 1 */
};

/* ---- building. Strings are copied into the arena. Indices, or OM_NO_VALUE / false when raised. ---- */

om_graph *omi_graph_new(const char *name, size_t arena_cap);
uint32_t  omi_graph_find(const om_graph *g, const char *name, size_t len);
/* A value of this name; fails with OM_ERR_MALFORMED when it exists. dims may be NULL (unknown). */
uint32_t omi_graph_add_value(om_graph *g, const char *name, int32_t dtype, int32_t rank,
                             const om_dim *dims);
bool     omi_graph_add_input(om_graph *g, uint32_t value);
bool     omi_graph_add_output(om_graph *g, uint32_t value);
/* Index of the symbol of this name, added when new. -1 when raised. */
int32_t omi_graph_symbol(om_graph *g, const char *name);
/* Makes value an initializer over buf (retained). */
bool omi_graph_add_init(om_graph *g, uint32_t value, int32_t dtype, int32_t rank,
                        const int64_t *dims, om_buffer *buf, size_t offset, size_t bytes);
/* Appends a node and marks its outputs as produced. in and out are copied; attributes follow by
 * omi_graph_attr_*, in the order they should be written. Index, or -1 when raised. */
int32_t omi_graph_add_node(om_graph *g, const char *op_type, const char *domain, const char *name,
                           uint32_t n_in, const uint32_t *in, uint32_t n_out, const uint32_t *out);
bool omi_graph_attr_int(om_graph *g, int32_t node, const char *name, int64_t v);
bool omi_graph_attr_float(om_graph *g, int32_t node, const char *name, float v);
bool omi_graph_attr_string(om_graph *g, int32_t node, const char *name, const char *v);
bool omi_graph_attr_ints(om_graph *g, int32_t node, const char *name, size_t n, const int64_t *v);
bool omi_graph_attr_floats(om_graph *g, int32_t node, const char *name, size_t n, const float *v);
/* A tensor attribute: a copy of bytes. */
bool omi_graph_attr_tensor(om_graph *g, int32_t node, const char *name, int32_t dtype, int32_t rank,
                           const int64_t *dims, const void *data, size_t bytes);
bool omi_graph_add_opset(om_graph *g, const char *domain, int64_t version);
bool omi_graph_add_meta(om_graph *g, const char *key, const char *value);
/* Checks what every reader must: each used value exists and is produced before its use, no value has
 * two producers, outputs exist, no cycle; sorts nothing. OM_ERR_MALFORMED names node and value. */
om_status omi_graph_seal(om_graph *g);

/* ---- reading ---------------------------------------------------------------------------------- */

const om_attr *omi_attr(const om_gnode *n, const char *name); /* NULL when absent */
int64_t        omi_attr_int(const om_gnode *n, const char *name, int64_t otherwise);
float          omi_attr_float(const om_gnode *n, const char *name, float otherwise);
/* Bytes of one element of any ONNX type with whole-byte elements, 0 for others. */
size_t omi_onnx_elem_size(int32_t dtype);
/* "node 'enc/MatMul_1' (MatMul, #12)" for messages, control characters replaced. */
const char *omi_node_text(const om_graph *g, uint32_t node, char *buf, size_t n);

#endif
