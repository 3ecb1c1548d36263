/*
 * graph.h (internal) -- the graph as data: values, nodes, attributes, initializers (CD-26).
 *
 * Knows nothing of tracing, of tensors, or of what a node means. Everything but initializer bytes
 * lives in one arena and dies with the graph; initializer bytes are counted buffers, shared with
 * storages or a file mapping without copy. Readers build a graph with the omi_graph_* functions
 * below, check it once with omi_graph_seal, and never change it after.
 *
 * Needs: base, sym (by name).  Used by: onnx, format, graphops, passes, runtime, trace.
 */
#ifndef OM_GRAPH_GRAPH_H
#define OM_GRAPH_GRAPH_H

#include "base/arena.h"
#include "base/buffer.h"
#include "base/dtype.h"
#include "base/map.h"
#include "onemodel/graph.h"

#define OM_NO_VALUE    UINT32_MAX /* an absent optional input or output */
#define OM_GRAPH_DEPTH 32         /* subgraphs inside subgraphs             */
#define OM_FILE_RANK   64         /* most axes of a value in a file         */

/* An axis: value >= 0 fixed; else sym >= 0 an index into graph->symbols; else unknown. expr >= 0
 * marks a derived extent whose text is symbols[sym].name (such as "4*batch"): it is checked by name
 * equality only. */
typedef struct om_gdim {
    int64_t value;
    int32_t sym, expr;
} om_gdim;
#define OM_DIM_FIXED(n) ((om_gdim){(n), -1, -1})
#define OM_DIM_SYM(s)   ((om_gdim){-1, (s), -1})
#define OM_DIM_UNKNOWN  ((om_gdim){-1, -1, -1})

typedef struct om_symbol {
    const char *name;
    int64_t lo, hi, multiple; /* 1, 0 (no bound), 1 by default */
} om_symbol;

typedef struct om_gvalue {
    const char *name;
    const char *type_text; /* "seq(tensor(float))" when it is no tensor, else NULL */
    int32_t dtype;         /* ONNX number; 0 unknown                        */
    int32_t rank;          /* -1 unknown; may exceed OM_MAX_RANK in files   */
    om_gdim *dims;
    int32_t producer; /* node index, -1: input, initializer or nothing */
    int32_t out_index;
    int32_t init; /* index into inits, -1: none                    */
    bool is_input, is_output;
    bool captured; /* in a subgraph: the value of this name of the graph around it */
} om_gvalue;

/* Elements are little-endian and contiguous. STRING (8): with n elements, n + 1 uint64 offsets from
 * 0 ascending, then the bytes they divide. BOOL: bytes 0 and 1 only. */
typedef struct om_ginit {
    uint32_t value; /* its om_gvalue; OM_NO_VALUE inside an attribute */
    int32_t dtype, rank;
    int64_t *dims;
    om_buffer *buf;
    size_t offset, bytes; /* in buf; may be unaligned */
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
    size_t n;
} om_text;

typedef struct om_attr {
    const char *name;
    om_attr_type type;
    float f;
    int64_t i;
    om_text s;
    size_t n; /* of the list in use */
    float *floats;
    int64_t *ints;
    om_text *strings;
    om_ginit *tensors; /* TENSOR (n = 1) and TENSORS */
    om_graph **graphs; /* GRAPH (n = 1) and GRAPHS; subgraphs share the arena of the root */
} om_attr;

typedef struct om_gnode {
    const char *op_type, *domain, *name; /* domain "" is the default one */
    uint32_t n_in, n_out, n_attr, cap_attr;
    uint32_t *in, *out;
    om_attr *attrs;
    const char *site; /* provenance text, NULL unless a trace kept it */
} om_gnode;

typedef struct om_opset {
    const char *domain;
    int64_t version;
} om_opset;

typedef struct om_meta_entry {
    const char *key, *value;
} om_meta_entry;

struct om_graph {
    _Atomic uint32_t refs;
    om_graph *parent; /* outer graph of a subgraph, not counted */
    om_graph *subs;   /* of the root: every subgraph, linked by next_sub */
    om_graph *next_sub;
    bool sealed;
    om_arena *arena; /* the root's */
    om_arena own_arena;
    const char *name, *producer, *producer_version;
    struct om_traced *traced; /* graph/traced.h; NULL after a load or import: never saved */
    int64_t ir_version, model_version;
    _Atomic uint32_t sessions; /* users that rely on it not changing */

    om_gvalue *values;
    uint32_t n_values, cap_values;
    om_gnode *nodes;
    uint32_t n_nodes, cap_nodes;
    om_ginit *inits;
    uint32_t n_inits, cap_inits;
    uint32_t *inputs; /* values, without initializers */
    uint32_t n_inputs, cap_inputs;
    uint32_t *outputs;
    uint32_t n_outputs, cap_outputs;
    om_symbol *symbols; /* of the root only: dims in subgraphs index the root's symbols */
    uint32_t n_symbols, cap_symbols;
    om_opset *opsets;
    uint32_t n_opsets, cap_opsets;
    om_meta_entry *meta;
    uint32_t n_meta, cap_meta;
    om_strmap by_name; /* value name -> index + 1 */
    om_strmap symbol_by_name;
    om_strmap words; /* of the root: operator, domain and attribute names, each once */
};

/* ---- building. Strings are copied into the arena. Indices, or OM_NO_VALUE / false when raised.
 * ---- */

/* arena_cap: most bytes the graph may take without its initializers; 0: no cap. */
om_graph *omi_graph_new(const char *name, size_t arena_cap);
/* A subgraph of parent for a GRAPH attribute; OM_ERR_LIMIT past OM_GRAPH_DEPTH. It dies with the
 * root. */
om_graph *omi_graph_new_sub(om_graph *parent, const char *name);
om_graph *omi_graph_root(om_graph *g);
/* Room for this many in all, so that adding them never moves an array twice. */
bool omi_graph_reserve(om_graph *g, size_t n_values, size_t n_nodes, size_t n_inits);
/* Index of the value of this name, OM_NO_VALUE (nothing raised) when there is none. */
uint32_t omi_graph_find(const om_graph *g, const char *name, size_t len);
/* The same, adding a value of unknown type when there is none; OM_NO_VALUE when raised. name needs
 * no NUL. */
uint32_t omi_graph_value_named(om_graph *g, const char *name, size_t len);
bool omi_graph_set_type(om_graph *g, uint32_t value, int32_t dtype, int32_t rank,
                        const om_gdim *dims);
/* A value of this name; fails with OM_ERR_MALFORMED when it exists. dims may be NULL (unknown). */
uint32_t omi_graph_add_value(om_graph *g, const char *name, int32_t dtype, int32_t rank,
                             const om_gdim *dims);
bool omi_graph_add_input(om_graph *g, uint32_t value);
bool omi_graph_add_output(om_graph *g, uint32_t value);
/* Index of the symbol of this name, added when new. -1 when raised. */
int32_t omi_graph_symbol(om_graph *g, const char *name);
int32_t omi_graph_symbol_named(om_graph *g, const char *name, size_t len);
/* Makes value an initializer over buf (retained). */
bool omi_graph_add_init(om_graph *g, uint32_t value, int32_t dtype, int32_t rank,
                        const int64_t *dims, om_buffer *buf, size_t offset, size_t bytes);
/* Appends a node and marks its outputs as produced. in and out are copied; attributes follow by
 * omi_graph_attr_*, in the order they should be written. Index, or -1 when raised. */
int32_t omi_graph_add_node(om_graph *g, const char *op_type, const char *domain, const char *name,
                           uint32_t n_in, const uint32_t *in, uint32_t n_out, const uint32_t *out);
int32_t omi_graph_add_node_named(om_graph *g, const char *op_type, size_t n_op, const char *domain,
                                 size_t n_domain, const char *name, size_t n_name, uint32_t n_in,
                                 const uint32_t *in, uint32_t n_out, const uint32_t *out);
/* A copy of s that all nodes of the graph share; NULL when raised. */
const char *omi_graph_word(om_graph *g, const char *s, size_t len);
bool omi_graph_attr_int(om_graph *g, int32_t node, const char *name, int64_t v);
bool omi_graph_attr_float(om_graph *g, int32_t node, const char *name, float v);
bool omi_graph_attr_string(om_graph *g, int32_t node, const char *name, const char *v);
bool omi_graph_attr_ints(om_graph *g, int32_t node, const char *name, size_t n, const int64_t *v);
bool omi_graph_attr_floats(om_graph *g, int32_t node, const char *name, size_t n, const float *v);
/* A tensor attribute: a copy of bytes. */
bool omi_graph_attr_tensor(om_graph *g, int32_t node, const char *name, int32_t dtype, int32_t rank,
                           const int64_t *dims, const void *data, size_t bytes);
bool omi_graph_attr_bytes(om_graph *g, int32_t node, const char *name, const void *v, size_t n);
bool omi_graph_attr_graph(om_graph *g, int32_t node, const char *name, om_graph *sub);
/* For readers: an attribute of this type whose list has room for n zeroed items. OM_ERR_MALFORMED
 * when the node has one of this name. */
om_attr *omi_graph_attr_new(om_graph *g, int32_t node, const char *name, size_t len,
                            om_attr_type type, size_t n);
bool omi_graph_reserve_attrs(om_graph *g, int32_t node, size_t n);
/* Fills *out with bytes of buf (retained, released with the graph) after checking that they are
 * what dtype and dims say. */
bool omi_graph_tensor(om_graph *g, om_ginit *out, int32_t dtype, int32_t rank, const int64_t *dims,
                      om_buffer *buf, size_t offset, size_t bytes);
bool omi_graph_add_opset(om_graph *g, const char *domain, int64_t version);
bool omi_graph_add_meta(om_graph *g, const char *key, const char *value);
/* OM_ERR_UNSUPPORTED when an attribute was kept as a name only (OM_ATTR_OTHER): no file can hold
 * it. */
om_status omi_graph_check_savable(const om_graph *g);
/* Checks what every reader must: each used value exists and is produced before its use, no value
 * has two producers, outputs exist, no cycle; sorts nothing but metadata. OM_ERR_MALFORMED names
 * node and value. In subgraphs it marks captured values, in every graph they pass through. Root
 * only. */
om_status omi_graph_seal(om_graph *g);

/* ---- reading ----------------------------------------------------------------------------------
 */

const om_attr *omi_attr(const om_gnode *n, const char *name); /* NULL when absent */
int64_t omi_attr_int(const om_gnode *n, const char *name, int64_t otherwise);
float omi_attr_float(const om_gnode *n, const char *name, float otherwise);
/* Bytes of one element of any ONNX type with whole-byte elements, 0 for others. */
size_t omi_onnx_elem_size(int32_t dtype);
/* "FLOAT", "INT64", as TensorProto.DataType names them; "type 99" when unknown (static). */
const char *omi_onnx_type_name(int32_t dtype);
bool omi_onnx_type_known(int32_t dtype);
/* Bytes that elements of this type and shape take; false (nothing raised) on overflow, a negative
 * size, or a type without whole-byte elements. */
bool omi_onnx_bytes(int32_t dtype, int32_t rank, const int64_t *dims, size_t *bytes);
/* "node 'enc/MatMul_1' (MatMul, #12)" for messages, control characters replaced. */
const char *omi_node_text(const om_graph *g, uint32_t node, char *buf, size_t n);

#endif
