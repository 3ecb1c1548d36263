/*
 * info.c -- the public view of a graph: getters, metadata.
 */
#include <string.h>

#include "base/utf8.h"
#include "graph/graph.h"

/* Raises and returns false for a NULL graph or an index outside [0, n). */
static bool index_ok(const om_graph *g, int i, uint32_t n, const char *what) {
    if (omi_failed()) return false;
    if (!g) {
        omi_fail(OM_ERR_ARG, "the graph is NULL");
        return false;
    }
    if (i >= 0 && (uint32_t)i < n) return true;
    omi_fail(OM_ERR_ARG, "%s %d does not exist; the graph has %u", what, i, (unsigned)n);
    return false;
}

static bool out_ok(const void *out) {
    if (!out) omi_fail(OM_ERR_ARG, "the place for the result is NULL");
    return out != NULL;
}

static int count_of(const om_graph *g, uint32_t n) {
    if (!g) omi_fail(OM_ERR_ARG, "the graph is NULL");
    return g ? (int)n : 0;
}

int om_graph_n_inputs(const om_graph *g) {
    OMI_ENTER("om_graph_n_inputs");
    return count_of(g, g ? g->n_inputs : 0);
}
int om_graph_n_outputs(const om_graph *g) {
    OMI_ENTER("om_graph_n_outputs");
    return count_of(g, g ? g->n_outputs : 0);
}
int om_graph_n_nodes(const om_graph *g) {
    OMI_ENTER("om_graph_n_nodes");
    return count_of(g, g ? g->n_nodes : 0);
}
int om_graph_n_initializers(const om_graph *g) {
    OMI_ENTER("om_graph_n_initializers");
    return count_of(g, g ? g->n_inits : 0);
}
int om_graph_n_meta(const om_graph *g) {
    OMI_ENTER("om_graph_n_meta");
    return count_of(g, g ? g->n_meta : 0);
}

static om_status value_info(const om_graph *g, uint32_t value, om_value_info *out) {
    const om_gvalue *v = &g->values[value];
    if (v->rank > OM_MAX_RANK) {
        char name[120];
        return omi_fail(OM_ERR_LIMIT, "value '%s' has %d axes; at most %d are supported",
                        omi_escape_buf(name, sizeof name, v->name, strlen(v->name)), (int)v->rank,
                        OM_MAX_RANK);
    }
    *out = (om_value_info){.name = v->name, .dtype = v->dtype, .rank = v->rank};
    for (int32_t i = 0; i < v->rank; i++) {
        const om_gdim *d = &v->dims[i];
        om_axis_info *a  = &out->axes[i];
        *a               = (om_axis_info){.size = d->value >= 0 ? d->value : -1, .multiple = 1};
        if (d->value >= 0 || d->sym < 0) continue;
        const om_symbol *s = &g->symbols[d->sym];
        *a                 = (om_axis_info){-1, s->name, s->lo, s->hi, s->multiple};
    }
    return OM_OK;
}

om_status om_graph_input(const om_graph *g, int i, om_value_info *out) {
    OMI_ENTER("om_graph_input");
    if (!index_ok(g, i, g ? g->n_inputs : 0, "input") || !out_ok(out)) return om_pending();
    return value_info(g, g->inputs[i], out);
}

om_status om_graph_output(const om_graph *g, int i, om_value_info *out) {
    OMI_ENTER("om_graph_output");
    if (!index_ok(g, i, g ? g->n_outputs : 0, "output") || !out_ok(out)) return om_pending();
    return value_info(g, g->outputs[i], out);
}

om_status om_graph_node(const om_graph *g, int i, om_node_info *out) {
    OMI_ENTER("om_graph_node");
    if (!index_ok(g, i, g ? g->n_nodes : 0, "node") || !out_ok(out)) return om_pending();
    const om_gnode *n = &g->nodes[i];
    *out              = (om_node_info){n->op_type,       n->domain,         n->name,
                                       (int32_t)n->n_in, (int32_t)n->n_out, (int32_t)n->n_attr};
    return OM_OK;
}

static const char *operand(const om_graph *g, int node, int k, bool in) {
    if (!index_ok(g, node, g ? g->n_nodes : 0, "node")) return "";
    const om_gnode *n = &g->nodes[node];
    if (!index_ok(g, k, in ? n->n_in : n->n_out, in ? "node input" : "node output")) return "";
    uint32_t v = in ? n->in[k] : n->out[k];
    return v == OM_NO_VALUE ? "" : g->values[v].name;
}

const char *om_graph_node_input(const om_graph *g, int node, int k) {
    OMI_ENTER("om_graph_node_input");
    return operand(g, node, k, true);
}

const char *om_graph_node_output(const om_graph *g, int node, int k) {
    OMI_ENTER("om_graph_node_output");
    return operand(g, node, k, false);
}

om_status om_graph_initializer(const om_graph *g, int i, om_init_info *out) {
    OMI_ENTER("om_graph_initializer");
    if (!index_ok(g, i, g ? g->n_inits : 0, "initializer") || !out_ok(out)) return om_pending();
    const om_ginit *t = &g->inits[i];
    *out              = (om_init_info){g->values[t->value].name,
                                       t->dtype,
                                       t->rank,
                                       t->dims,
                                       (int64_t)t->bytes,
                                       (const char *)t->buf->data + t->offset};
    return OM_OK;
}

int64_t om_graph_ir_version(const om_graph *g) {
    OMI_ENTER("om_graph_ir_version");
    if (!g) omi_fail(OM_ERR_ARG, "the graph is NULL");
    return g ? g->ir_version : 0;
}

int64_t om_graph_opset(const om_graph *g) {
    OMI_ENTER("om_graph_opset");
    if (!g) omi_fail(OM_ERR_ARG, "the graph is NULL");
    for (uint32_t i = 0; g && i < g->n_opsets; i++)
        if (!*g->opsets[i].domain) return g->opsets[i].version;
    return 0;
}

const char *om_graph_producer(const om_graph *g) {
    OMI_ENTER("om_graph_producer");
    if (!g) omi_fail(OM_ERR_ARG, "the graph is NULL");
    return g ? g->producer : "";
}

/* ---- metadata ----------------------------------------------------------------------------------
 */

/* Position of key in the sorted list, or where it belongs. */
static uint32_t meta_at(const om_graph *g, const char *key, bool *there) {
    uint32_t lo = 0, hi = g->n_meta;
    while (lo < hi) {
        uint32_t mid = lo + (hi - lo) / 2;
        if (strcmp(g->meta[mid].key, key) < 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    *there = lo < g->n_meta && strcmp(g->meta[lo].key, key) == 0;
    return lo;
}

const char *om_graph_meta_key(const om_graph *g, int i) {
    OMI_ENTER("om_graph_meta_key");
    return index_ok(g, i, g ? g->n_meta : 0, "metadata entry") ? g->meta[i].key : NULL;
}

const char *om_graph_meta(const om_graph *g, const char *key) {
    OMI_ENTER("om_graph_meta");
    if (!g || !key) OM_FAIL_NULL(OM_ERR_ARG, "the %s is NULL", g ? "key" : "graph");
    bool there;
    uint32_t i = meta_at(g, key, &there);
    return there ? g->meta[i].value : NULL;
}

om_status om_graph_set_meta(om_graph *g, const char *key, const char *value) {
    OMI_ENTER("om_graph_set_meta");
    if (omi_failed()) return om_pending();
    if (!g || !key) return omi_fail(OM_ERR_ARG, "the %s is NULL", g ? "key" : "graph");
    if (!omi_utf8_valid(key, strlen(key)) || (value && !omi_utf8_valid(value, strlen(value))))
        return omi_fail(OM_ERR_ARG, "a metadata key or value is not UTF-8");
    if (atomic_load(&g->refs) != 1 || atomic_load(&g->sessions) != 0)
        return omi_fail(OM_ERR_STATE,
                        "the graph is shared (%u references, %u sessions); set its "
                        "metadata before that",
                        (unsigned)atomic_load(&g->refs), (unsigned)atomic_load(&g->sessions));
    bool there;
    uint32_t i = meta_at(g, key, &there);
    if (!value) {
        if (there) memmove(g->meta + i, g->meta + i + 1, (--g->n_meta - i) * sizeof *g->meta);
        return OM_OK;
    }
    if (there) {
        char *copy = omi_arena_strndup(g->arena, value, strlen(value));
        if (!copy) return om_pending();
        g->meta[i].value = copy;
        return OM_OK;
    }
    if (!omi_graph_add_meta(g, key, value)) return om_pending();
    om_meta_entry last = g->meta[g->n_meta - 1];
    memmove(g->meta + i + 1, g->meta + i, (g->n_meta - 1 - i) * sizeof *g->meta);
    g->meta[i] = last;
    return OM_OK;
}

void om_bytes_free(void *data, size_t bytes) {
    omi_free(data, bytes);
}
