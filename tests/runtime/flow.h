/*
 * flow.h -- graphs with subgraphs, for the tests of If, Loop and Scan.
 */
#ifndef OM_TESTS_RUNTIME_FLOW_H
#define OM_TESTS_RUNTIME_FLOW_H

#include "runtime/build.h"

/* A subgraph of g, NULL when something failed. Fill it with in, node, out; then hold() it. */
static inline om_graph *inside(om_graph *g) {
    return omi_failed() || !g ? NULL : omi_graph_new_sub(g, "sub");
}
static inline void hold(om_graph *g, int32_t n, const char *attr, om_graph *sub) {
    if (n >= 0 && sub && !omi_failed()) omi_graph_attr_graph(g, n, attr, sub);
}
/* An input without type. */
static inline void any(om_graph *g, const char *name) {
    if (omi_failed() || !g) return;
    uint32_t v = omi_graph_add_value(g, name, 0, -1, NULL);
    if (v != OM_NO_VALUE) omi_graph_add_input(g, v);
}
static inline void scalar_bool(om_graph *g, const char *name, bool v) {
    constant(g, name, OM_BOOL, 0, NULL, &v);
}
static inline void scalar_int(om_graph *g, const char *name, int64_t v) {
    constant(g, name, OM_I64, 0, NULL, &v);
}

/* The head of a body of Loop: iteration "i" and condition "go", which stays what it is. */
static inline om_graph *loop_body(om_graph *g) {
    om_graph *b = inside(g);
    any(b, "i");
    any(b, "go");
    node(b, "Identity", "go", "go_on");
    out(b, "go_on");
    return b;
}

#endif
