/*
 * read_graph.c -- GraphProto and NodeProto.
 *
 * Fields may stand in any order, so each kind is taken in a walk of its own: initializers, inputs,
 * nodes, outputs, value_info. An initializer that is also an input (IR 3 asks for it) is a
 * constant, not an input. value_info of names that nothing defines is ignored: optimizers leave it
 * behind.
 */
#include <string.h>

#include "base/utf8.h"
#include "onnx/read.h"

typedef struct om_graph_scan {
    size_t n_nodes, n_inits, n_inputs;
    om_span name;
    bool has_name;
} om_graph_scan;

static bool scan_graph(om_reader *r, om_span s, om_graph_scan *c) {
    om_wire w  = omi_wire_of(s);
    om_field f = {0};
    while (omi_read_next(r, &w, &f)) {
        switch (f.number) {
        case 1:
            c->n_nodes++;
            break;
        case 2:
            if (!omi_read_name(r, &f, "graph.name", &c->name)) return false;
            c->has_name = true;
            continue;
        case 5:
            c->n_inits++;
            break;
        case 11:
            c->n_inputs++;
            break;
        case 12:
        case 13:
            break;
        case 15:
            return omi_read_fail(r, OM_ERR_UNSUPPORTED, f.at,
                                 "the graph has sparse initializers, which cannot be read yet");
        default:
            continue;
        }
        if (!omi_read_expect(r, &f, OM_WIRE_BYTES, "a part of the graph")) return false;
    }
    return !omi_failed();
}

static bool read_init(om_reader *r, om_graph *g, om_span s) {
    om_span name;
    om_ginit t = {0};
    char safe[120];
    if (!omi_read_tensor_name(r, s, &name)) return false;
    if (name.n == 0) return omi_read_fail(r, OM_ERR_MALFORMED, s.p, "an initializer has no name");
    omi_escape_buf(safe, sizeof safe, (const char *)name.p, name.n);
    if (omi_graph_find(g, (const char *)name.p, name.n) != OM_NO_VALUE)
        return omi_read_fail(r, OM_ERR_MALFORMED, s.p, "initializer '%s' is there twice", safe);
    uint32_t v = omi_graph_value_named(g, (const char *)name.p, name.n);
    if (v == OM_NO_VALUE || !omi_read_tensor(r, g, s, &t)) return false;
    bool ok = omi_graph_add_init(g, v, t.dtype, t.rank, t.dims, t.buf, t.offset, t.bytes);
    omi_buffer_release(t.buf);
    return ok;
}

static bool read_input(om_reader *r, om_graph *g, om_span s) {
    om_span name;
    char safe[120];
    if (!omi_read_value_name(r, s, &name)) return false;
    uint32_t v = omi_graph_value_named(g, (const char *)name.p, name.n);
    if (v == OM_NO_VALUE) return false;
    if (g->values[v].init >= 0) return true;
    if (g->values[v].is_input)
        return omi_read_fail(r, OM_ERR_MALFORMED, s.p, "input '%s' is there twice",
                             omi_escape_buf(safe, sizeof safe, (const char *)name.p, name.n));
    return omi_read_value_type(r, g, s, v) && omi_graph_add_input(g, v);
}

static bool read_output(om_reader *r, om_graph *g, om_span s) {
    om_span name;
    if (!omi_read_value_name(r, s, &name)) return false;
    uint32_t v = omi_graph_value_named(g, (const char *)name.p, name.n);
    if (v == OM_NO_VALUE) return false;
    if (g->values[v].init < 0 && !g->values[v].is_input && !omi_read_value_type(r, g, s, v))
        return false;
    return omi_graph_add_output(g, v);
}

static bool read_info(om_reader *r, om_graph *g, om_span s) {
    om_wire w    = omi_wire_of(s);
    om_field f   = {0};
    om_span name = {s.p, 0};
    while (omi_read_next(r, &w, &f))
        if (f.number == 1 && !omi_read_name(r, &f, "value_info.name", &name)) return false;
    if (omi_failed()) return false;
    uint32_t v = name.n ? omi_graph_find(g, (const char *)name.p, name.n) : OM_NO_VALUE;
    if (v == OM_NO_VALUE || g->values[v].init >= 0 || g->values[v].is_input) return true;
    if (g->values[v].is_output && g->values[v].dtype != 0) return true;
    return omi_read_value_type(r, g, s, v);
}

/* ---- nodes -------------------------------------------------------------------------------------
 */

typedef struct om_node_scan {
    size_t n_in, n_out, n_attr;
    om_span op_type, domain, name;
} om_node_scan;

static bool scan_node(om_reader *r, om_span s, om_node_scan *c) {
    om_wire w  = omi_wire_of(s);
    om_field f = {0};
    om_span overload;
    c->op_type = c->domain = c->name = (om_span){s.p, 0};
    while (omi_read_next(r, &w, &f)) {
        bool ok = true;
        switch (f.number) {
        case 1:
            c->n_in++;
            break;
        case 2:
            c->n_out++;
            break;
        case 3:
            ok = omi_read_name(r, &f, "node.name", &c->name);
            break;
        case 4:
            ok = omi_read_name(r, &f, "node.op_type", &c->op_type);
            break;
        case 5:
            c->n_attr++;
            ok = omi_read_expect(r, &f, OM_WIRE_BYTES, "node.attribute");
            break;
        case 7:
            ok = omi_read_name(r, &f, "node.domain", &c->domain);
            break;
        case 8:
            ok = omi_read_name(r, &f, "node.overload", &overload);
            break;
        default:
            break;
        }
        if (!ok) return false;
    }
    if (omi_failed()) return false;
    if (c->op_type.n == 0)
        return omi_read_fail(r, OM_ERR_MALFORMED, s.p, "a node has no operator (op_type)");
    return true;
}

/* Operands: in[0..n_in) and out[0..n_out) of one array. */
static bool read_operands(om_reader *r, om_graph *g, om_span s, uint32_t *in, uint32_t *out) {
    om_wire w  = omi_wire_of(s);
    om_field f = {0};
    om_span name;
    while (omi_read_next(r, &w, &f)) {
        if (f.number != 1 && f.number != 2) continue;
        if (!omi_read_name(r, &f, f.number == 1 ? "node.input" : "node.output", &name))
            return false;
        uint32_t v = OM_NO_VALUE;
        if (name.n) {
            v = omi_graph_value_named(g, (const char *)name.p, name.n);
            if (v == OM_NO_VALUE) return false;
        }
        *(f.number == 1 ? in++ : out++) = v;
    }
    return !omi_failed();
}

static OM_LEAF int32_t add_node(om_reader *r, om_graph *g, om_span s, size_t *n_attr) {
    om_node_scan c = {0};
    uint32_t few[32], *list = few;
    if (!scan_node(r, s, &c)) return -1;
    size_t n = c.n_in + c.n_out;
    if (c.n_in > INT32_MAX || c.n_out > INT32_MAX)
        return omi_read_fail(r, OM_ERR_LIMIT, s.p, "a node has too many operands"), -1;
    if (n > OM_COUNT(few) && !(list = omi_alloc(n * sizeof *list))) return -1;
    int32_t k = -1;
    if (read_operands(r, g, s, list, list + c.n_in))
        k = omi_graph_add_node_named(g, (const char *)c.op_type.p, c.op_type.n,
                                     (const char *)c.domain.p, c.domain.n, (const char *)c.name.p,
                                     c.name.n, (uint32_t)c.n_in, list, (uint32_t)c.n_out,
                                     list + c.n_in);
    if (list != few) omi_free(list, n * sizeof *list);
    *n_attr = c.n_attr;
    return k;
}

static bool read_node(om_reader *r, om_graph *g, om_span s) {
    size_t n_attr = 0;
    int32_t node  = add_node(r, g, s, &n_attr);
    if (node < 0) return false;
    if (n_attr && !omi_graph_reserve_attrs(g, node, n_attr)) return false;
    om_wire w  = omi_wire_of(s);
    om_field f = {0};
    while (n_attr && omi_read_next(r, &w, &f))
        if (f.number == 5 && !omi_read_attr(r, g, node, omi_slice_of(&f))) return false;
    return true;
}

/* ---- the graph ---------------------------------------------------------------------------------
 */

static bool each_part(om_reader *r, om_graph *g, om_span s, uint32_t number,
                      bool (*read)(om_reader *, om_graph *, om_span)) {
    om_wire w  = omi_wire_of(s);
    om_field f = {0};
    while (omi_read_next(r, &w, &f))
        if (f.number == number && (!omi_read_go_on(r) || !read(r, g, omi_slice_of(&f))))
            return false;
    return !omi_failed();
}

/* Apart, so that its frame is gone before subgraphs are read. */
static OM_LEAF bool begin_graph(om_reader *r, om_graph *g, om_span s) {
    om_graph_scan c = {0};
    if (!scan_graph(r, s, &c)) return false;
    if (!c.has_name && !g->parent)
        return omi_read_fail(r, OM_ERR_MALFORMED, s.p, "the graph has no name");
    if (c.name.n) {
        g->name = omi_arena_strndup(g->arena, (const char *)c.name.p, c.name.n);
        if (!g->name) return false;
    }
    return omi_graph_reserve(g, c.n_inits + c.n_inputs + c.n_nodes, c.n_nodes, c.n_inits);
}

bool omi_read_graph(om_reader *r, om_graph *g, om_span s) {
    return begin_graph(r, g, s) && each_part(r, g, s, 5, read_init) &&
           each_part(r, g, s, 11, read_input) && each_part(r, g, s, 1, read_node) &&
           each_part(r, g, s, 12, read_output) && each_part(r, g, s, 13, read_info);
}
