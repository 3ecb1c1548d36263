/*
 * seal.c -- the checks every graph passes once, whoever built it.
 *
 * One pass over the nodes: a value is there when it is an input, an initializer, captured from
 * outside, or the output of an earlier node. So a cycle and a wrong order are the same fault, found
 * without sorting. A name that a subgraph does not define is looked up in the graph around it, at
 * the node that holds the subgraph; when that graph does not define it either, it is captured there
 * too, and so on outward. Depth is bounded by OM_GRAPH_DEPTH.
 */
#include <stdio.h>
#include <string.h>

#include "base/thread.h"
#include "base/utf8.h"
#include "graph/graph.h"

static om_status seal_graph(om_graph *g);

static const char *value_text(const char *name, char *buf, size_t n) {
    return omi_escape_buf(buf, n, name, strlen(name));
}

/* Is value v there before node k runs? In a subgraph a value that nothing makes is captured. */
static bool usable(om_graph *g, uint32_t v, uint32_t k) {
    om_gvalue *val = &g->values[v];
    if (val->is_input || val->init >= 0 || val->captured) return true;
    if (val->producer >= 0) return (uint32_t)val->producer < k;
    return val->captured = g->parent != NULL;
}

static om_status refuse_use(const om_graph *g, uint32_t v, const char *user) {
    const om_gvalue *val = &g->values[v];
    char name[120], other[160];
    value_text(val->name, name, sizeof name);
    if (val->producer < 0)
        return omi_fail(OM_ERR_MALFORMED, "%s reads '%s', which nothing produces", user, name);
    return omi_fail(OM_ERR_MALFORMED,
                    "%s reads '%s' before %s produces it; nodes must stand in the order they run, "
                    "without cycles",
                    user, name, omi_node_text(g, (uint32_t)val->producer, other, sizeof other));
}

/* What sub captures must be there in g before node k. */
static om_status check_captures(om_graph *g, uint32_t k, om_graph *sub) {
    char text[160], user[200];
    for (uint32_t i = 0; i < sub->n_values; i++) {
        om_gvalue *inner = &sub->values[i];
        if (!inner->captured) continue;
        uint32_t v = omi_graph_value_named(g, inner->name, strlen(inner->name));
        if (v == OM_NO_VALUE) return om_pending();
        if (!usable(g, v, k)) {
            snprintf(user, sizeof user, "a subgraph of %s", omi_node_text(g, k, text, sizeof text));
            return refuse_use(g, v, user);
        }
    }
    return OM_OK;
}

static om_status seal_node(om_graph *g, uint32_t k) {
    const om_gnode *n = &g->nodes[k];
    char text[160];
    bool any = false;
    if (!*n->op_type) return omi_fail(OM_ERR_MALFORMED, "node #%u has no operator", (unsigned)k);
    for (uint32_t i = 0; i < n->n_in; i++)
        if (n->in[i] != OM_NO_VALUE && !usable(g, n->in[i], k))
            return refuse_use(g, n->in[i], omi_node_text(g, k, text, sizeof text));
    for (uint32_t i = 0; i < n->n_out; i++)
        any = any || n->out[i] != OM_NO_VALUE;
    if (!any)
        return omi_fail(OM_ERR_MALFORMED, "%s has no output",
                        omi_node_text(g, k, text, sizeof text));
    for (uint32_t a = 0; a < n->n_attr; a++)
        for (size_t i = 0; n->attrs[a].graphs && i < n->attrs[a].n; i++) {
            OM_TRY(seal_graph(n->attrs[a].graphs[i]));
            OM_TRY(check_captures(g, k, n->attrs[a].graphs[i]));
        }
    return OM_OK;
}

static om_status seal_graph(om_graph *g) {
    for (uint32_t k = 0; k < g->n_nodes; k++) {
        if (k % 1024 == 0) OM_TRY(omi_check_cancel());
        OM_TRY(seal_node(g, k));
    }
    for (uint32_t i = 0; i < g->n_outputs; i++)
        if (!usable(g, g->outputs[i], g->n_nodes))
            return refuse_use(g, g->outputs[i], "the list of outputs");
    g->sealed = true;
    return OM_OK;
}

/* Merge sort by key, stable; of equal keys the last stays, as in protobuf maps. */
static om_status sort_meta(om_graph *g) {
    uint32_t n = g->n_meta, keep = 0;
    om_meta_entry *a = g->meta;
    om_meta_entry *b = n > 1 ? omi_arena_array(g->arena, n, sizeof *b) : NULL;
    if (n < 2) return OM_OK;
    if (!b) return om_pending();
    for (uint32_t w = 1; w<n; w = w> n / 2 ? n : w * 2) {
        for (uint32_t lo = 0; lo < n;) {
            uint32_t mid = n - lo < w ? n : lo + w, hi = n - mid < w ? n : mid + w;
            for (uint32_t i = lo, j = mid, k = lo; k < hi; k++)
                b[k] = j >= hi || (i < mid && strcmp(a[i].key, a[j].key) <= 0) ? a[i++] : a[j++];
            lo = hi;
        }
        om_meta_entry *t = a;
        a                = b;
        b                = t;
    }
    for (uint32_t i = 0; i < n; i++)
        if (i + 1 == n || strcmp(a[i].key, a[i + 1].key) != 0) a[keep++] = a[i];
    g->meta     = a;
    g->n_meta   = keep;
    g->cap_meta = n;
    return OM_OK;
}

/* Captured values take the type of the value they stand for, however far outside it is. */
static void type_captures(om_graph *sub) {
    for (uint32_t i = 0; i < sub->n_values; i++) {
        om_gvalue *inner = &sub->values[i];
        for (om_graph *up = sub->parent; inner->captured && up; up = up->parent) {
            const om_gvalue *outer =
                &up->values[omi_graph_find(up, inner->name, strlen(inner->name))];
            if (outer->captured) continue;
            inner->dtype     = outer->dtype;
            inner->rank      = outer->rank;
            inner->dims      = outer->dims;
            inner->type_text = outer->type_text;
            break;
        }
    }
}

om_status omi_graph_seal(om_graph *g) {
    OM_TRY(seal_graph(g));
    for (om_graph *s = g->subs; s; s = s->next_sub)
        if (s->sealed) type_captures(s); // one that no attribute holds was never sealed
    return sort_meta(g);
}
