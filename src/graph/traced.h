/*
 * traced.h -- what a traced graph knows beyond its nodes (CD-38): the extents of its values and a
 * record of the trace.
 *
 * In memory only: a graph that was loaded or imported has none (om_graph.traced is NULL), and saved
 * bytes do not depend on it. Everything lives in the arena here and outlives the tracer, the model
 * and its modules. Report, and later JSON and explanations, are printed from these structs.
 *
 * Needs: sym.  Used by: graph (frees it), trace (fills and prints it).
 */
#ifndef OM_GRAPH_TRACED_H
#define OM_GRAPH_TRACED_H

#include "sym/sym.h"

/* Why a note was made; notes say where one trace had to guess or cannot tell. */
typedef enum om_note_kind {
    OM_NOTE_RESHAPE,   /* a reading was chosen among several, or another is possible        */
    OM_NOTE_LOOKALIKE, /* a fixed size equals the example size of a symbol                  */
    OM_NOTE_EXPAND,    /* an expanded size was taken for a symbol, or is a multiple of one  */
    OM_NOTE_EQUAL,     /* two sizes are equal at the example only                           */
    OM_NOTE_SLICE,     /* an end that equals the example size was taken for the whole       */
    OM_NOTE_INDEX,     /* an index, or a k, that needs a large enough size                  */
    OM_NOTE_FIXED,     /* a fixed padding or piece on a symbolic axis                       */
    OM_NOTE_TIED       /* one tensor has two names                                          */
} om_note_kind;

typedef struct om_note {
    om_note_kind kind;
    const char *site; /* "om_reshape in net.head (net.c:41)", NULL: a declaration */
    const char *text; /* one sentence                                             */
} om_note;

typedef struct om_traced_const {
    const char *name; /* in the graph */
    uint8_t dtype, rank;
    int64_t *shape;
    size_t bytes;
    const char *first; /* site of its first use */
} om_traced_const;

typedef struct om_traced_value {
    const char *name;
    uint8_t dtype, rank;
    bool is_used;
    om_extent *e;
} om_traced_value;

typedef struct om_traced_node { /* pruned */
    const char *type, *site;
} om_traced_node;

typedef struct om_traced {
    om_arena arena;
    om_atoms atoms;
    om_extent **extents; /* by index of graph value: one per axis; NULL: an initializer, whose sizes
                            are fixed */
    uint32_t n_values;
    om_traced_value *inputs, *outputs;
    uint32_t n_inputs, n_outputs;
    om_traced_const *consts;
    size_t n_consts, n_not_needed;
    const char **unused_params;
    size_t n_unused_params;
    om_traced_node *pruned;
    size_t n_pruned;
    uint32_t n_nodes, n_aliases;
    OM_VEC(om_note) notes;
    _Atomic(char *) report; /* printed when first asked for */
    size_t report_bytes;
} om_traced;

om_traced *omi_traced_new(void);
/* NULL is fine. */
void omi_traced_free(om_traced *t);

#endif
