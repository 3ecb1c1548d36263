/*
 * attrs.c -- attributes of nodes: adding and reading them.
 */
#include <stdio.h>
#include <string.h>

#include "base/utf8.h"
#include "graph/graph.h"

/* Nodes of real models have at most a few dozen; the check for repeated names is quadratic. */
#define MOST_ATTRS 1024

const char *omi_node_text(const om_graph *g, uint32_t node, char *buf, size_t n) {
    const om_gnode *d = &g->nodes[node];
    char name[80], type[48];
    omi_escape_buf(type, sizeof type, d->op_type, strlen(d->op_type));
    if (*d->name)
        snprintf(buf, n, "node '%s' (%s, #%u)",
                 omi_escape_buf(name, sizeof name, d->name, strlen(d->name)), type, (unsigned)node);
    else
        snprintf(buf, n, "node #%u (%s)", (unsigned)node, type);
    return buf;
}

bool omi_graph_reserve_attrs(om_graph *g, int32_t node, size_t n) {
    om_gnode *d = &g->nodes[node];
    if (n <= d->cap_attr) return true;
    if (n > MOST_ATTRS) {
        char text[160];
        omi_fail(OM_ERR_LIMIT, "%s has more than %d attributes",
                 omi_node_text(g, (uint32_t)node, text, sizeof text), MOST_ATTRS);
        return false;
    }
    om_attr *v = omi_arena_array(g->arena, n, sizeof *v);
    if (!v) return false;
    if (d->n_attr) memcpy(v, d->attrs, d->n_attr * sizeof *v);
    d->attrs    = v;
    d->cap_attr = (uint32_t)n;
    return true;
}

static bool make_list(om_graph *g, om_attr *a, size_t n) {
    void *p = NULL;
    switch (a->type) {
    case OM_ATTR_FLOATS:
        p = a->floats = omi_arena_array(g->arena, n, sizeof *a->floats);
        break;
    case OM_ATTR_INTS:
        p = a->ints = omi_arena_array(g->arena, n, sizeof *a->ints);
        break;
    case OM_ATTR_STRINGS:
        p = a->strings = omi_arena_array(g->arena, n, sizeof *a->strings);
        break;
    case OM_ATTR_TENSOR:
    case OM_ATTR_TENSORS:
        p = a->tensors = omi_arena_array(g->arena, n, sizeof *a->tensors);
        break;
    case OM_ATTR_GRAPH:
    case OM_ATTR_GRAPHS:
        p = a->graphs = omi_arena_array(g->arena, n, sizeof *a->graphs);
        break;
    default:
        return true;
    }
    a->n = n;
    return p != NULL;
}

om_attr *omi_graph_attr_new(om_graph *g, int32_t node, const char *name, size_t len,
                            om_attr_type type, size_t n) {
    om_gnode *d = &g->nodes[node];
    for (uint32_t i = 0; i < d->n_attr; i++)
        if (strlen(d->attrs[i].name) == len && memcmp(d->attrs[i].name, name, len) == 0) {
            char text[160], safe[96];
            OM_FAIL_NULL(OM_ERR_MALFORMED, "%s has attribute '%s' twice",
                         omi_node_text(g, (uint32_t)node, text, sizeof text),
                         omi_escape_buf(safe, sizeof safe, name, len));
        }
    size_t want = d->n_attr == d->cap_attr ? (d->cap_attr ? (size_t)d->cap_attr * 2 : 4) : 0;
    if (want > MOST_ATTRS && d->n_attr < MOST_ATTRS) want = MOST_ATTRS;
    if (!omi_graph_reserve_attrs(g, node, want)) return NULL;
    om_attr *a = &d->attrs[d->n_attr];
    *a         = (om_attr){.type = type};
    a->name    = omi_graph_word(g, name, len);
    if (!a->name || !make_list(g, a, n)) return NULL;
    d->n_attr++;
    return a;
}

static om_attr *attr_add(om_graph *g, int32_t node, const char *name, om_attr_type type, size_t n) {
    return omi_graph_attr_new(g, node, name, strlen(name), type, n);
}

bool omi_graph_attr_int(om_graph *g, int32_t node, const char *name, int64_t v) {
    om_attr *a = attr_add(g, node, name, OM_ATTR_INT, 0);
    return a ? (a->i = v, true) : false;
}

bool omi_graph_attr_float(om_graph *g, int32_t node, const char *name, float v) {
    om_attr *a = attr_add(g, node, name, OM_ATTR_FLOAT, 0);
    return a ? (a->f = v, true) : false;
}

bool omi_graph_attr_bytes(om_graph *g, int32_t node, const char *name, const void *v, size_t n) {
    om_attr *a = attr_add(g, node, name, OM_ATTR_STRING, 0);
    if (!a) return false;
    a->s.v = omi_arena_strndup(g->arena, v, n);
    a->s.n = n;
    return a->s.v != NULL;
}

bool omi_graph_attr_string(om_graph *g, int32_t node, const char *name, const char *v) {
    return omi_graph_attr_bytes(g, node, name, v, strlen(v));
}

bool omi_graph_attr_ints(om_graph *g, int32_t node, const char *name, size_t n, const int64_t *v) {
    om_attr *a = attr_add(g, node, name, OM_ATTR_INTS, n);
    if (a && n) memcpy(a->ints, v, n * sizeof *v);
    return a != NULL;
}

bool omi_graph_attr_floats(om_graph *g, int32_t node, const char *name, size_t n, const float *v) {
    om_attr *a = attr_add(g, node, name, OM_ATTR_FLOATS, n);
    if (a && n) memcpy(a->floats, v, n * sizeof *v);
    return a != NULL;
}

bool omi_graph_attr_tensor(om_graph *g, int32_t node, const char *name, int32_t dtype, int32_t rank,
                           const int64_t *dims, const void *data, size_t bytes) {
    om_attr *a   = attr_add(g, node, name, OM_ATTR_TENSOR, 1);
    om_buffer *b = a ? omi_buffer_new(bytes) : NULL;
    if (!b) return false;
    if (bytes) memcpy(b->data, data, bytes);
    bool ok = omi_graph_tensor(g, &a->tensors[0], dtype, rank, dims, b, 0, bytes);
    omi_buffer_release(b);
    return ok;
}

bool omi_graph_attr_graph(om_graph *g, int32_t node, const char *name, om_graph *sub) {
    om_attr *a = attr_add(g, node, name, OM_ATTR_GRAPH, 1);
    return a ? (a->graphs[0] = sub, true) : false;
}

/* ---- reading -----------------------------------------------------------------------------------
 */

const om_attr *omi_attr(const om_gnode *n, const char *name) {
    for (uint32_t i = 0; i < n->n_attr; i++)
        if (strcmp(n->attrs[i].name, name) == 0) return &n->attrs[i];
    return NULL;
}

int64_t omi_attr_int(const om_gnode *n, const char *name, int64_t otherwise) {
    const om_attr *a = omi_attr(n, name);
    return a && a->type == OM_ATTR_INT ? a->i : otherwise;
}

float omi_attr_float(const om_gnode *n, const char *name, float otherwise) {
    const om_attr *a = omi_attr(n, name);
    return a && a->type == OM_ATTR_FLOAT ? a->f : otherwise;
}

om_status omi_graph_check_savable(const om_graph *g) {
    for (uint32_t i = 0; i < g->n_nodes; i++)
        for (uint32_t a = 0; a < g->nodes[i].n_attr; a++) {
            const om_attr *attr = &g->nodes[i].attrs[a];
            char name[80], text[160];
            if (attr->type == OM_ATTR_OTHER)
                return omi_fail(OM_ERR_UNSUPPORTED,
                                "%s: attribute '%s' holds a sparse tensor or a type, which cannot "
                                "be saved",
                                omi_node_text(g, i, text, sizeof text),
                                omi_escape_buf(name, sizeof name, attr->name, strlen(attr->name)));
            for (size_t k = 0; attr->graphs && k < attr->n; k++)
                OM_TRY(omi_graph_check_savable(attr->graphs[k]));
        }
    return OM_OK;
}
