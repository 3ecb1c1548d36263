/*
 * write.c -- the ordered writer: a graph as one ModelProto.
 *
 * Fields go out in number order, dims, ints and floats one by one as ONNX declares them, tensors as
 * raw_data, nothing that the graph does not hold; so equal graphs give equal bytes. A length stands
 * before its message, therefore the same code runs twice: first over a counting sink, noting the
 * size of each message in the order they begin, then over the real one, using the notes.
 *
 * Not written: shapes of inner values (a runtime infers them; files stay small), initializers as
 * inputs (IR 4 and later do not ask for it, so an older graph is written as IR 4).
 *
 * Needs: graph, base/file.
 */
#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "base/file.h"
#include "base/opts.h"
#include "base/utf8.h"
#include "base/vec.h"
#include "graph/graph.h"
#include "onemodel/onnx.h"

#define MOST_BYTES 0x7fffffffu /* of a protobuf message */

typedef struct om_pb {
    om_sink *sink;
    bool counting;
    bool failed; /* a size could not be noted */
    OM_VEC(uint64_t) sizes;
    size_t next;
    bool provenance;
} om_pb;

typedef struct om_pb_mark {
    size_t slot;
    uint64_t start;
} om_pb_mark;

/* ---- the wire ----------------------------------------------------------------------------------
 */

static size_t varint_bytes(uint64_t v) {
    size_t n = 1;
    while (v >>= 7)
        n++;
    return n;
}

static void pb_varint(om_pb *w, uint64_t v) {
    uint8_t b[10];
    size_t n = 0;
    do
        b[n++] = (uint8_t)((v & 0x7f) | (v > 0x7f ? 0x80 : 0));
    while (v >>= 7);
    omi_put(w->sink, b, n);
}

static void pb_int(om_pb *w, uint32_t field, int64_t v) {
    pb_varint(w, (uint64_t)field << 3);
    pb_varint(w, (uint64_t)v);
}

static void pb_bytes(om_pb *w, uint32_t field, const void *p, size_t n) {
    pb_varint(w, (uint64_t)field << 3 | 2);
    pb_varint(w, n);
    omi_put(w->sink, p, n);
}

static void pb_text(om_pb *w, uint32_t field, const char *s) {
    pb_bytes(w, field, s, strlen(s));
}

static void pb_text_if(om_pb *w, uint32_t field, const char *s) {
    if (*s) pb_text(w, field, s);
}

static void pb_float(om_pb *w, uint32_t field, float f) {
    uint32_t bits;
    memcpy(&bits, &f, sizeof bits);
    pb_varint(w, (uint64_t)field << 3 | 5);
    omi_put_u32(w->sink, bits);
}

/* Begins the message of a field; every begin has its end. */
static om_pb_mark pb_begin(om_pb *w, uint32_t field) {
    om_pb_mark m = {0};
    pb_varint(w, (uint64_t)field << 3 | 2);
    if (w->counting) {
        m.slot    = w->sizes.n;
        w->failed = w->failed || !OMI_PUSH(&w->sizes, 0);
    } else
        pb_varint(w, w->sizes.v[w->next++]);
    m.start = w->sink->n;
    return m;
}

static void pb_end(om_pb *w, om_pb_mark m) {
    if (!w->counting || w->failed) return;
    uint64_t size      = w->sink->n - m.start;
    w->sizes.v[m.slot] = size;
    w->sink->n += varint_bytes(size);
}

static void pb_entry(om_pb *w, uint32_t field, const char *key, const char *value) {
    om_pb_mark m = pb_begin(w, field);
    pb_text(w, 1, key);
    pb_text(w, 2, value);
    pb_end(w, m);
}

/* ---- ONNX messages -----------------------------------------------------------------------------
 */

static void write_tensor(om_pb *w, uint32_t field, const om_ginit *t, const char *name) {
    const uint8_t *p = (const uint8_t *)t->buf->data + t->offset;
    om_pb_mark m     = pb_begin(w, field);
    for (int32_t i = 0; i < t->rank; i++)
        pb_int(w, 1, t->dims[i]);
    pb_int(w, 2, t->dtype);
    if (t->dtype == OM_ONNX_STRING) { // STRING: string_data, its number before the name's
        const uint8_t *text = p;
        size_t n            = 0;
        int64_t count       = 1;
        for (int32_t i = 0; i < t->rank; i++)
            count *= t->dims[i];
        text += 8 * ((size_t)count + 1);
        for (int64_t i = 0; i < count; i++, n++) {
            uint64_t from = omi_load_u64(p + 8 * i), to = omi_load_u64(p + 8 * i + 8);
            pb_bytes(w, 6, text + from, (size_t)(to - from));
        }
        pb_text_if(w, 8, name);
    } else {
        pb_text_if(w, 8, name);
        pb_bytes(w, 9, p, t->bytes);
    }
    pb_end(w, m);
}

static void write_graph(om_pb *w, uint32_t field, const om_graph *root, const om_graph *g);

static void write_attr(om_pb *w, const om_graph *root, const om_attr *a) {
    om_pb_mark m = pb_begin(w, 5);
    pb_text(w, 1, a->name);
    switch (a->type) {
    case OM_ATTR_FLOAT:
        pb_float(w, 2, a->f);
        break;
    case OM_ATTR_INT:
        pb_int(w, 3, a->i);
        break;
    case OM_ATTR_STRING:
        pb_bytes(w, 4, a->s.v, a->s.n);
        break;
    case OM_ATTR_TENSOR:
        write_tensor(w, 5, &a->tensors[0], "");
        break;
    case OM_ATTR_GRAPH:
        write_graph(w, 6, root, a->graphs[0]);
        break;
    default:
        break;
    }
    for (size_t i = 0; i < a->n; i++) {
        if (a->type == OM_ATTR_FLOATS) pb_float(w, 7, a->floats[i]);
        if (a->type == OM_ATTR_INTS) pb_int(w, 8, a->ints[i]);
        if (a->type == OM_ATTR_STRINGS) pb_bytes(w, 9, a->strings[i].v, a->strings[i].n);
        if (a->type == OM_ATTR_TENSORS) write_tensor(w, 10, &a->tensors[i], "");
        if (a->type == OM_ATTR_GRAPHS) write_graph(w, 11, root, a->graphs[i]);
    }
    pb_int(w, 20, (int64_t)a->type);
    pb_end(w, m);
}

static void write_node(om_pb *w, const om_graph *root, const om_graph *g, const om_gnode *n) {
    om_pb_mark m = pb_begin(w, 1);
    for (uint32_t i = 0; i < n->n_in; i++)
        pb_text(w, 1, n->in[i] == OM_NO_VALUE ? "" : g->values[n->in[i]].name);
    for (uint32_t i = 0; i < n->n_out; i++)
        pb_text(w, 2, n->out[i] == OM_NO_VALUE ? "" : g->values[n->out[i]].name);
    pb_text_if(w, 3, n->name);
    pb_text(w, 4, n->op_type);
    for (uint32_t i = 0; i < n->n_attr; i++)
        write_attr(w, root, &n->attrs[i]);
    pb_text_if(w, 7, n->domain);
    if (w->provenance && n->site) pb_entry(w, 9, "onemodel.site", n->site);
    pb_end(w, m);
}

static void write_shape(om_pb *w, const om_graph *root, const om_gvalue *v) {
    om_pb_mark shape = pb_begin(w, 2);
    for (int32_t i = 0; i < v->rank; i++) {
        const om_gdim *d = &v->dims[i];
        om_pb_mark m     = pb_begin(w, 1);
        if (d->value >= 0)
            pb_int(w, 1, d->value);
        else if (d->sym >= 0)
            pb_text(w, 2, root->symbols[d->sym].name);
        pb_end(w, m);
    }
    pb_end(w, shape);
}

static void write_value(om_pb *w, uint32_t field, const om_graph *root, const om_gvalue *v) {
    om_pb_mark info = pb_begin(w, field);
    pb_text(w, 1, v->name);
    if (v->dtype != 0) {
        om_pb_mark type = pb_begin(w, 2), tensor = pb_begin(w, 1);
        pb_int(w, 1, v->dtype);
        if (v->rank >= 0) write_shape(w, root, v);
        pb_end(w, tensor);
        pb_end(w, type);
    }
    pb_end(w, info);
}

static void write_graph(om_pb *w, uint32_t field, const om_graph *root, const om_graph *g) {
    om_pb_mark m = pb_begin(w, field);
    for (uint32_t i = 0; i < g->n_nodes; i++)
        write_node(w, root, g, &g->nodes[i]);
    pb_text(w, 2, g->name);
    for (uint32_t i = 0; i < g->n_inits; i++)
        write_tensor(w, 5, &g->inits[i], g->values[g->inits[i].value].name);
    for (uint32_t i = 0; i < g->n_inputs; i++)
        write_value(w, 11, root, &g->values[g->inputs[i]]);
    for (uint32_t i = 0; i < g->n_outputs; i++)
        write_value(w, 12, root, &g->values[g->outputs[i]]);
    pb_end(w, m);
}

static void write_model(om_pb *w, const om_graph *g) {
    pb_int(w, 1, g->ir_version < 4 ? 4 : g->ir_version);
    pb_text_if(w, 2, g->producer);
    pb_text_if(w, 3, g->producer_version);
    if (g->model_version) pb_int(w, 5, g->model_version);
    write_graph(w, 7, g, g);
    for (uint32_t i = 0; i < g->n_opsets; i++) {
        om_pb_mark m = pb_begin(w, 8);
        pb_text_if(w, 1, g->opsets[i].domain);
        pb_int(w, 2, g->opsets[i].version);
        pb_end(w, m);
    }
    for (uint32_t i = 0; i < g->n_meta; i++)
        pb_entry(w, 14, g->meta[i].key, g->meta[i].value);
}

/* ---- what cannot be written --------------------------------------------------------------------
 */

static om_status check_io(const om_graph *g, const uint32_t *list, uint32_t n) {
    for (uint32_t i = 0; i < n; i++) {
        const om_gvalue *v = &g->values[list[i]];
        char name[120];
        if (v->type_text)
            return omi_fail(OM_ERR_UNSUPPORTED, "value '%s' is a %s; only tensors can be saved",
                            omi_escape_buf(name, sizeof name, v->name, strlen(v->name)),
                            v->type_text);
    }
    return OM_OK;
}

/* Subgraphs write the types they know; a value that is no tensor goes without one. */
static om_status check_writable(const om_graph *g) {
    OM_TRY(check_io(g, g->inputs, g->n_inputs));
    OM_TRY(check_io(g, g->outputs, g->n_outputs));
    return omi_graph_check_savable(g);
}

/* ---- entry points ------------------------------------------------------------------------------
 */

static bool take_write_opts(om_pb *w, const om_onnx_opts *opts) {
    om_onnx_opts o;
    if (!OMI_OPTS(&o, opts, provenance)) return false;
    w->provenance = o.provenance;
    return true;
}

/* Counts: sizes noted in w, the whole in *total. */
static om_status count_model(om_pb *w, const om_graph *g, uint64_t *total) {
    om_sink counter = {0};
    OM_TRY(check_writable(g));
    w->sink     = &counter;
    w->counting = true;
    write_model(w, g);
    if (w->failed) return om_pending();
    *total = counter.n;
    if (counter.n > MOST_BYTES)
        return omi_fail(OM_ERR_LIMIT,
                        "the model takes %llu bytes as ONNX, more than the 2 GiB protobuf can "
                        "hold; save it as .om",
                        (unsigned long long)counter.n);
    w->counting = false;
    w->next     = 0;
    return OM_OK;
}

om_status om_graph_save_onnx(const om_graph *g, const char *path, const om_onnx_opts *opts) {
    OMI_ENTER("om_graph_save_onnx");
    if (omi_failed()) return om_pending();
    if (!g || !path) return omi_fail(OM_ERR_ARG, "the %s is NULL", g ? "path" : "graph");
    om_pb w = {0};
    if (!take_write_opts(&w, opts)) return om_pending();
    om_save save;
    uint64_t total = 0;
    om_status st   = count_model(&w, g, &total);
    if (st == OM_OK && (st = omi_save_begin(&save, path)) == OM_OK) {
        w.sink = &save.sink;
        write_model(&w, g);
        st = omi_save_commit(&save);
    }
    OMI_VEC_FREE(&w.sizes);
    return st;
}

om_status om_graph_save_onnx_memory(const om_graph *g, const om_onnx_opts *opts, void **data,
                                    size_t *bytes) {
    OMI_ENTER("om_graph_save_onnx_memory");
    if (omi_failed()) return om_pending();
    if (!g || !data || !bytes)
        return omi_fail(OM_ERR_ARG, "the %s is NULL", g ? "place for the result" : "graph");
    om_pb w = {0};
    if (!take_write_opts(&w, opts)) return om_pending();
    uint64_t total = 0;
    om_status st   = count_model(&w, g, &total);
    void *p        = st == OM_OK ? omi_alloc((size_t)total) : NULL;
    if (p) {
        om_mem_sink mem = omi_mem_sink(p, (size_t)total);
        w.sink          = &mem.sink;
        write_model(&w, g);
        st = mem.sink.status;
        if (st != OM_OK) {
            omi_free(p, (size_t)total);
        } else {
            *data  = p;
            *bytes = (size_t)total;
        }
    } else
        st = om_pending();
    OMI_VEC_FREE(&w.sizes);
    return st;
}
