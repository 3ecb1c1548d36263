/*
 * dump.c -- a graph as text, one node a line, for people and for comparing in tests.
 *
 * Names are escaped (base/utf8.h): a line is a line, whatever a file calls its values. Tensors in
 * attributes show their first elements, lists are cut at 32.
 */
#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "base/utf8.h"
#include "graph/graph.h"

#define MOST_ITEMS 32

typedef struct om_dump {
    om_str line;
    om_write_fn write;
    void *ctx;
    int indent;
} om_dump;

static void dump_text(om_dump *d, const char *s) {
    omi_escape(&d->line, s, strlen(s));
}

static om_status dump_line(om_dump *d) {
    om_status st = OM_OK;
    omi_str_puts(&d->line, "\n");
    if (d->line.failed)
        st = om_pending();
    else if (d->write(d->ctx, d->line.v, d->line.n) != 0)
        st = omi_fail(OM_ERR_CANCELLED, "the function that takes the text stopped");
    d->line.n = 0;
    return st;
}

static void dump_start(om_dump *d) {
    for (int i = 0; i < d->indent; i++)
        omi_str_puts(&d->line, "  ");
}

static void dump_dtype(om_dump *d, int32_t dtype) {
    if (om_dtype_size((om_dtype)dtype))
        omi_str_puts(&d->line, om_dtype_name((om_dtype)dtype));
    else
        omi_str_puts(&d->line, dtype == 0 ? "?" : omi_onnx_type_name(dtype));
}

static void dump_type(om_dump *d, const om_graph *root, const om_gvalue *v) {
    if (v->type_text) {
        omi_str_puts(&d->line, v->type_text);
        return;
    }
    dump_dtype(d, v->dtype);
    if (v->rank < 0) return;
    omi_str_puts(&d->line, "[");
    for (int32_t i = 0; i < v->rank; i++) {
        const om_gdim *m = &v->dims[i];
        if (i) omi_str_puts(&d->line, ",");
        if (m->value >= 0)
            omi_str_printf(&d->line, "%lld", (long long)m->value);
        else if (m->sym >= 0)
            dump_text(d, root->symbols[m->sym].name);
        else
            omi_str_puts(&d->line, "?");
    }
    omi_str_puts(&d->line, "]");
}

/* One element of a type that is computed with; the bytes of the others in hexadecimal. Files are
 * little-endian. */
static void dump_element(om_dump *d, int32_t dtype, const uint8_t *p) {
    const om_dtype_info *t = omi_dtype_computed(dtype);
    size_t size            = omi_onnx_elem_size(dtype);
    uint64_t bits = 0, sign = t ? 1ull << (t->bits - 1) : 0;
    uint32_t w;
    float f;
    double g;
    for (size_t i = 0; t && i < size; i++)
        bits |= (uint64_t)p[i] << 8 * i;
    switch (t ? (int)t->class : -1) {
    case OM_CLASS_FLOAT:
        w = (uint32_t)bits;
        memcpy(&f, &w, sizeof f);
        memcpy(&g, &bits, sizeof g);
        omi_str_printf(&d->line, "%.*g", size == sizeof f ? 9 : 17,
                       size == sizeof f ? (double)f : g);
        break;
    case OM_CLASS_SIGNED:
        omi_str_printf(&d->line, "%lld", (long long)(int64_t)((bits ^ sign) - sign));
        break;
    case OM_CLASS_UNSIGNED:
        omi_str_printf(&d->line, "%llu", (unsigned long long)bits);
        break;
    case OM_CLASS_BOOL:
        omi_str_puts(&d->line, bits ? "true" : "false");
        break;
    default:
        for (size_t i = 0; i < size; i++)
            omi_str_printf(&d->line, "%02x", (unsigned)p[i]);
    }
}

static void dump_tensor(om_dump *d, const om_ginit *t) {
    size_t size = omi_onnx_elem_size(t->dtype);
    dump_dtype(d, t->dtype);
    omi_str_puts(&d->line, "[");
    for (int32_t i = 0; i < t->rank; i++)
        omi_str_printf(&d->line, "%s%lld", i ? "," : "", (long long)t->dims[i]);
    omi_str_puts(&d->line, "]{");
    for (size_t i = 0; size && i < t->bytes / size; i++) {
        if (i == MOST_ITEMS) {
            omi_str_puts(&d->line, ",...");
            break;
        }
        if (i) omi_str_puts(&d->line, ",");
        dump_element(d, t->dtype, (const uint8_t *)t->buf->data + t->offset + i * size);
    }
    omi_str_puts(&d->line, "}");
}

static void dump_quoted(om_dump *d, om_text t) {
    omi_str_puts(&d->line, "\"");
    omi_escape(&d->line, t.v, t.n);
    omi_str_puts(&d->line, "\"");
}

static void dump_item(om_dump *d, const om_attr *a, size_t i) {
    switch (a->type) {
    case OM_ATTR_FLOATS:
        omi_str_printf(&d->line, "%.9g", (double)a->floats[i]);
        break;
    case OM_ATTR_INTS:
        omi_str_printf(&d->line, "%lld", (long long)a->ints[i]);
        break;
    case OM_ATTR_STRINGS:
        dump_quoted(d, a->strings[i]);
        break;
    case OM_ATTR_TENSORS:
        dump_tensor(d, &a->tensors[i]);
        break;
    default:
        omi_str_puts(&d->line, "graph");
        break;
    }
}

static void dump_attr(om_dump *d, const om_attr *a) {
    dump_text(d, a->name);
    omi_str_puts(&d->line, "=");
    switch (a->type) {
    case OM_ATTR_FLOAT:
        omi_str_printf(&d->line, "%.9g", (double)a->f);
        return;
    case OM_ATTR_INT:
        omi_str_printf(&d->line, "%lld", (long long)a->i);
        return;
    case OM_ATTR_STRING:
        dump_quoted(d, a->s);
        return;
    case OM_ATTR_TENSOR:
        dump_tensor(d, &a->tensors[0]);
        return;
    case OM_ATTR_GRAPH:
        omi_str_puts(&d->line, "graph");
        return;
    case OM_ATTR_OTHER:
        omi_str_puts(&d->line, "(not readable)");
        return;
    default:
        break;
    }
    omi_str_puts(&d->line, "[");
    for (size_t i = 0; i < a->n && i < MOST_ITEMS; i++) {
        if (i) omi_str_puts(&d->line, ",");
        dump_item(d, a, i);
    }
    omi_str_puts(&d->line, a->n > MOST_ITEMS ? ",...]" : "]");
}

static void dump_names(om_dump *d, const om_graph *g, const uint32_t *v, uint32_t n) {
    for (uint32_t i = 0; i < n; i++) {
        if (i) omi_str_puts(&d->line, ", ");
        if (v[i] == OM_NO_VALUE)
            omi_str_puts(&d->line, "_");
        else
            dump_text(d, g->values[v[i]].name);
    }
}

static om_status dump_graph(om_dump *d, const om_graph *root, const om_graph *g);

/* y = Conv(x, w) {group=1} # enc/Conv_1, then its subgraphs. */
static om_status dump_node(om_dump *d, const om_graph *root, const om_graph *g, const om_gnode *n) {
    dump_start(d);
    dump_names(d, g, n->out, n->n_out);
    omi_str_puts(&d->line, " = ");
    if (*n->domain) {
        dump_text(d, n->domain);
        omi_str_puts(&d->line, ".");
    }
    dump_text(d, n->op_type);
    omi_str_puts(&d->line, "(");
    dump_names(d, g, n->in, n->n_in);
    omi_str_puts(&d->line, ")");
    for (uint32_t i = 0; i < n->n_attr; i++) {
        omi_str_puts(&d->line, i ? ", " : " {");
        dump_attr(d, &n->attrs[i]);
    }
    if (n->n_attr) omi_str_puts(&d->line, "}");
    if (*n->name) {
        omi_str_puts(&d->line, " # ");
        dump_text(d, n->name);
    }
    OM_TRY(dump_line(d));
    d->indent++;
    for (uint32_t a = 0; a < n->n_attr; a++)
        for (size_t i = 0; n->attrs[a].graphs && i < n->attrs[a].n; i++)
            OM_TRY(dump_graph(d, root, n->attrs[a].graphs[i]));
    d->indent--;
    return OM_OK;
}

static om_status dump_value(om_dump *d, const om_graph *root, const char *what,
                            const om_gvalue *v) {
    dump_start(d);
    omi_str_puts(&d->line, what);
    dump_text(d, v->name);
    omi_str_puts(&d->line, ": ");
    dump_type(d, root, v);
    return dump_line(d);
}

static om_status dump_graph(om_dump *d, const om_graph *root, const om_graph *g) {
    dump_start(d);
    omi_str_puts(&d->line, "graph \"");
    dump_text(d, g->name);
    omi_str_puts(&d->line, "\"");
    OM_TRY(dump_line(d));
    for (uint32_t i = 0; i < g->n_inputs; i++)
        OM_TRY(dump_value(d, root, "input ", &g->values[g->inputs[i]]));
    for (uint32_t i = 0; i < g->n_inits; i++)
        OM_TRY(dump_value(d, root, "weight ", &g->values[g->inits[i].value]));
    for (uint32_t i = 0; i < g->n_nodes; i++)
        OM_TRY(dump_node(d, root, g, &g->nodes[i]));
    for (uint32_t i = 0; i < g->n_outputs; i++)
        OM_TRY(dump_value(d, root, "output ", &g->values[g->outputs[i]]));
    return OM_OK;
}

static om_status dump_head(om_dump *d, const om_graph *g) {
    omi_str_printf(&d->line, "onnx ir %lld", (long long)g->ir_version);
    for (uint32_t i = 0; i < g->n_opsets; i++) {
        omi_str_puts(&d->line, ", opset ");
        dump_text(d, g->opsets[i].domain);
        omi_str_printf(&d->line, "%s%lld", *g->opsets[i].domain ? " " : "",
                       (long long)g->opsets[i].version);
    }
    OM_TRY(dump_line(d));
    for (uint32_t i = 0; i < g->n_meta; i++) {
        omi_str_puts(&d->line, "meta ");
        dump_text(d, g->meta[i].key);
        omi_str_puts(&d->line, ": ");
        dump_text(d, g->meta[i].value);
        OM_TRY(dump_line(d));
    }
    for (uint32_t i = 0; i < g->n_symbols; i++) {
        const om_symbol *s = &g->symbols[i];
        if (s->lo == 1 && s->hi == 0 && s->multiple == 1) continue;
        omi_str_puts(&d->line, "axis ");
        dump_text(d, s->name);
        omi_str_printf(&d->line, ": from %lld", (long long)s->lo);
        if (s->hi) omi_str_printf(&d->line, " to %lld", (long long)s->hi);
        if (s->multiple > 1) omi_str_printf(&d->line, ", multiple of %lld", (long long)s->multiple);
        OM_TRY(dump_line(d));
    }
    return OM_OK;
}

om_status om_graph_dump(const om_graph *g, om_write_fn write, void *ctx) {
    OMI_ENTER("om_graph_dump");
    if (omi_failed()) return om_pending();
    if (!g || !write) return omi_fail(OM_ERR_ARG, "the %s is NULL", g ? "function" : "graph");
    om_dump d    = {.write = write, .ctx = ctx};
    om_status st = dump_head(&d, g);
    if (st == OM_OK) st = dump_graph(&d, g, g);
    omi_str_free(&d.line);
    return st;
}
