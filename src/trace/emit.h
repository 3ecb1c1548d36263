/*
 * emit.h -- writing provisional nodes into a graph, in the order finish.c walks them.
 *
 * Needs: tracer.h.  Used by: finish.c, emit.c, holders.c.
 */
#ifndef OM_TRACE_EMIT_H
#define OM_TRACE_EMIT_H

#include "trace/tracer.h"

typedef OM_VEC(om_tnode *) om_tnodes;

typedef struct om_emit {
    om_tracer *tr;
    om_graph *g;
    const om_tnodes *order; /* of the first walk */
    om_namer namer;
    om_strmap texts; /* size-computing nodes by text -> value index + 1 */
    uint32_t stamp;  /* of searches */
    uint32_t n_emitted;
    OM_VEC(om_extent *) extents; /* by graph value, kept */
} om_emit;

/* The graph with its symbols and inputs. */
bool omi_emit_begin(om_emit *em);
bool omi_emit_node(om_emit *em, om_tnode *n);
bool omi_emit_output(om_emit *em, om_toutput *o);
/* Dimensions of outputs, checks, report. */
bool omi_emit_end(om_emit *em);
void omi_emit_free(om_emit *em);
/* holders.c: whom n's computed operand asks for each atom. True when it has none. */
bool omi_emit_resolve(om_emit *em, om_tnode *n);

#endif
