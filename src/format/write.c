/*
 * write.c -- a graph as format v1 (docs/format.md).
 *
 * Graphs are taken breadth first: the main graph, then the subgraphs of its attributes in order,
 * and so on. Every list therefore fills front to back, and each "first" index is what a running
 * counter says; the reader checks that it is. Strings are pooled at first use. Nothing depends on
 * addresses, so equal graphs give equal bytes.
 *
 * Needs: graph, container.h.
 */
#include <string.h>

#include "base/bytes.h"
#include "base/checked.h"
#include "base/map.h"
#include "base/str.h"
#include "base/vec.h"
#include "format/model.h"

/* Growing memory as a sink. */
typedef struct om_str_sink {
    om_sink sink;
    om_str s;
} om_str_sink;

/* A section: rows of one size and a pool of items of one size behind them, both counted. */
typedef struct om_part {
    om_str_sink rows, pool;
    uint32_t n_rows, n_pool;
} om_part;

typedef struct om_packer {
    const om_graph *root;
    om_part meta, dims, vals, attr, node, grph, init;
    om_str_sink strs;
    om_strmap strings; /* text -> offset in strs */
    OM_VEC(const om_graph *) graphs;
    OM_VEC(uint32_t) parents;
    OM_VEC(const om_ginit *) tensors; /* in the order of INIT */
    uint64_t data_bytes;
    bool failed;
} om_packer;

static om_status str_sink_write(om_sink *s, const void *p, size_t n) {
    om_str_sink *m = (om_str_sink *)s;
    omi_str_add(&m->s, p, n);
    return m->s.failed ? om_pending() : OM_OK;
}

static void pack_fail(om_packer *k) {
    k->failed = true;
}

static bool count_row(om_packer *k, uint32_t *n, size_t more) {
    if (more > UINT32_MAX - *n) {
        omi_fail(OM_ERR_LIMIT, "the graph has more items of one kind than the format can count");
        pack_fail(k);
        return false;
    }
    *n += (uint32_t)more;
    return true;
}

/* A reference to a string: offset and length. The empty one is (0, 0). */
static uint64_t pool_string(om_packer *k, const char *s, size_t n) {
    if (n == 0) return 0;
    uintptr_t at = (uintptr_t)omi_strmap_get(&k->strings, s, n);
    if (at == 0) {
        at = k->strs.s.n;
        if (n >= UINT32_MAX || at >= UINT32_MAX - n) {
            omi_fail(OM_ERR_LIMIT, "the names of the graph take more than 4 GiB");
            pack_fail(k);
            return 0;
        }
        if (!omi_strmap_set(&k->strings, s, n, (void *)at)) pack_fail(k);
        omi_put(&k->strs.sink, s, n);
        omi_put_zero(&k->strs.sink, 1);
    }
    return (uint64_t)at | (uint64_t)n << 32;
}

static void put_name(om_packer *k, om_sink *to, const char *s) {
    omi_put_u64(to, pool_string(k, s, strlen(s)));
}

/* ---- rows --------------------------------------------------------------------------------------
 */

static void pack_meta(om_packer *k) {
    const om_graph *g = k->root;
    om_sink *to       = &k->meta.rows.sink;
    omi_put_u64(to, (uint64_t)g->ir_version);
    omi_put_u64(to, (uint64_t)g->model_version);
    put_name(k, to, g->producer);
    put_name(k, to, g->producer_version);
    omi_put_u32(to, g->n_opsets);
    omi_put_u32(to, g->n_meta);
    for (uint32_t i = 0; i < g->n_opsets; i++) {
        put_name(k, to, g->opsets[i].domain);
        omi_put_u64(to, (uint64_t)g->opsets[i].version);
    }
    for (uint32_t i = 0; i < g->n_meta; i++) {
        put_name(k, to, g->meta[i].key);
        put_name(k, to, g->meta[i].value);
    }
    to             = &k->dims.rows.sink;
    k->dims.n_rows = g->n_symbols;
    for (uint32_t i = 0; i < g->n_symbols; i++) {
        put_name(k, to, g->symbols[i].name);
        omi_put_u64(to, (uint64_t)g->symbols[i].lo);
        omi_put_u64(to, (uint64_t)g->symbols[i].hi);
        omi_put_u64(to, (uint64_t)g->symbols[i].multiple);
    }
}

static void pack_value(om_packer *k, const om_gvalue *v) {
    om_sink *to = &k->vals.rows.sink, *dims = &k->vals.pool.sink;
    put_name(k, to, v->name);
    omi_put_u32(to, (uint32_t)v->dtype);
    omi_put_u32(to, (uint32_t)v->rank);
    omi_put_u32(to, k->vals.n_pool);
    omi_put_u32(to, 0);
    put_name(k, to, v->type_text ? v->type_text : "");
    for (int32_t i = 0; i < v->rank; i++) {
        omi_put_u64(dims, (uint64_t)v->dims[i].value);
        omi_put_u32(dims, (uint32_t)v->dims[i].sym);
        omi_put_u32(dims, (uint32_t)v->dims[i].expr);
    }
    count_row(k, &k->vals.n_rows, 1);
    count_row(k, &k->vals.n_pool, v->rank > 0 ? (size_t)v->rank : 0);
}

static void pack_tensor(om_packer *k, const om_ginit *t) {
    om_sink *to   = &k->init.rows.sink;
    k->data_bytes = (k->data_bytes + OM_DATA_ALIGN - 1) & ~(uint64_t)(OM_DATA_ALIGN - 1);
    omi_put_u32(to, t->value);
    omi_put_u32(to, (uint32_t)t->dtype);
    omi_put_u32(to, (uint32_t)t->rank);
    omi_put_u32(to, k->init.n_pool);
    omi_put_u64(to, k->data_bytes);
    omi_put_u64(to, t->bytes);
    for (int32_t i = 0; i < t->rank; i++)
        omi_put_u64(&k->init.pool.sink, (uint64_t)t->dims[i]);
    k->data_bytes += t->bytes;
    count_row(k, &k->init.n_rows, 1);
    count_row(k, &k->init.n_pool, (size_t)t->rank);
    if (!OMI_PUSH(&k->tensors, t)) pack_fail(k);
}

static void queue_graph(om_packer *k, const om_graph *g, uint32_t parent) {
    if (!OMI_PUSH(&k->graphs, g) || !OMI_PUSH(&k->parents, parent)) pack_fail(k);
}

static uint32_t float_bits(float f) {
    uint32_t bits;
    memcpy(&bits, &f, sizeof bits);
    return bits;
}

/* The value of an attribute, or the first index of its list; lists go behind their rows. */
static uint64_t attr_value(om_packer *k, const om_attr *a) {
    switch (a->type) {
    case OM_ATTR_FLOAT:
        return float_bits(a->f);
    case OM_ATTR_INT:
        return (uint64_t)a->i;
    case OM_ATTR_STRING:
        return pool_string(k, a->s.v, a->s.n);
    case OM_ATTR_TENSOR:
    case OM_ATTR_TENSORS:
        return k->init.n_rows;
    case OM_ATTR_GRAPH:
    case OM_ATTR_GRAPHS:
        return k->graphs.n;
    default:
        return k->attr.n_pool;
    }
}

static void pack_attr(om_packer *k, const om_attr *a, uint32_t owner) {
    om_sink *to = &k->attr.rows.sink, *items = &k->attr.pool.sink;
    put_name(k, to, a->name);
    omi_put_u32(to, (uint32_t)a->type);
    omi_put_u32(to, (uint32_t)a->n);
    omi_put_u64(to, attr_value(k, a));
    count_row(k, &k->attr.n_rows, 1);
    if (a->n > UINT32_MAX) count_row(k, &k->attr.n_pool, a->n);
    for (size_t i = 0; i < a->n; i++) {
        if (a->tensors)
            pack_tensor(k, &a->tensors[i]);
        else if (a->graphs)
            queue_graph(k, a->graphs[i], owner);
        else
            omi_put_u64(items, a->floats ? float_bits(a->floats[i])
                               : a->ints ? (uint64_t)a->ints[i]
                                         : pool_string(k, a->strings[i].v, a->strings[i].n));
    }
    if (!a->tensors && !a->graphs) count_row(k, &k->attr.n_pool, a->n);
}

static void pack_node(om_packer *k, const om_gnode *n, uint32_t owner) {
    om_sink *to = &k->node.rows.sink, *operands = &k->node.pool.sink;
    put_name(k, to, n->op_type);
    put_name(k, to, n->domain);
    put_name(k, to, n->name);
    omi_put_u32(to, n->n_in);
    omi_put_u32(to, n->n_out);
    omi_put_u32(to, n->n_attr);
    omi_put_u32(to, k->node.n_pool);
    omi_put_u32(to, k->attr.n_rows);
    omi_put_u32(to, owner);
    for (uint32_t i = 0; i < n->n_in; i++)
        omi_put_u32(operands, n->in[i]);
    for (uint32_t i = 0; i < n->n_out; i++)
        omi_put_u32(operands, n->out[i]);
    for (uint32_t i = 0; i < n->n_attr; i++)
        pack_attr(k, &n->attrs[i], owner);
    count_row(k, &k->node.n_rows, 1);
    count_row(k, &k->node.n_pool, (size_t)n->n_in + n->n_out);
}

static void pack_graph(om_packer *k, uint32_t index) {
    const om_graph *g = k->graphs.v[index];
    om_sink *to = &k->grph.rows.sink, *ends = &k->grph.pool.sink;
    put_name(k, to, g->name);
    omi_put_u32(to, k->parents.v[index]);
    omi_put_u32(to, g->n_values);
    omi_put_u32(to, g->n_nodes);
    omi_put_u32(to, g->n_inits);
    omi_put_u32(to, g->n_inputs);
    omi_put_u32(to, g->n_outputs);
    omi_put_u32(to, k->vals.n_rows);
    omi_put_u32(to, k->node.n_rows);
    omi_put_u32(to, k->init.n_rows);
    omi_put_u32(to, k->grph.n_pool);
    for (uint32_t i = 0; i < g->n_inputs; i++)
        omi_put_u32(ends, g->inputs[i]);
    for (uint32_t i = 0; i < g->n_outputs; i++)
        omi_put_u32(ends, g->outputs[i]);
    for (uint32_t i = 0; i < g->n_values; i++)
        pack_value(k, &g->values[i]);
    for (uint32_t i = 0; i < g->n_inits; i++)
        pack_tensor(k, &g->inits[i]);
    for (uint32_t i = 0; i < g->n_nodes && !k->failed; i++)
        pack_node(k, &g->nodes[i], index);
    count_row(k, &k->grph.n_rows, 1);
    count_row(k, &k->grph.n_pool, (size_t)g->n_inputs + g->n_outputs);
}

/* ---- sections ----------------------------------------------------------------------------------
 */

static void emit_part(om_sink *to, void *ctx) {
    const om_part *p = ctx;
    omi_put_u32(to, p->n_rows);
    omi_put_u32(to, p->n_pool);
    omi_put(to, p->rows.s.v, p->rows.s.n);
    omi_put(to, p->pool.s.v, p->pool.s.n);
}

static void emit_data(om_sink *to, void *ctx) {
    const om_packer *k = ctx;
    uint64_t start     = to->n;
    for (size_t i = 0; i < k->tensors.n; i++) {
        const om_ginit *t = k->tensors.v[i];
        uint64_t pad      = (0 - (to->n - start)) & (OM_DATA_ALIGN - 1);
        omi_put_zero(to, (size_t)pad);
        omi_put(to, (const uint8_t *)t->buf->data + t->offset, t->bytes);
    }
}

static om_section part_section(const char *tag, om_part *p) {
    om_section s = {.flags = OM_SECTION_CRITICAL, .emit = emit_part, .ctx = p};
    memcpy(s.tag, tag, 4);
    s.bytes = 8 + p->rows.s.n + p->pool.s.n;
    return s;
}

static om_section text_section(const char *tag, const om_str *t) {
    om_section s = {.flags = OM_SECTION_CRITICAL, .data = t->v, .bytes = t->n};
    memcpy(s.tag, tag, 4);
    return s;
}

enum { N_SECTIONS = 9 };

static void list_sections(om_packer *k, om_section s[N_SECTIONS]) {
    s[0] = text_section("META", &k->meta.rows.s);
    s[1] = text_section("STRS", &k->strs.s);
    s[2] = part_section("DIMS", &k->dims);
    s[3] = part_section("VALS", &k->vals);
    s[4] = part_section("ATTR", &k->attr);
    s[5] = part_section("NODE", &k->node);
    s[6] = part_section("GRPH", &k->grph);
    s[7] = part_section("INIT", &k->init);
    s[8] = (om_section){.tag   = "DATA",
                        .flags = OM_SECTION_CRITICAL | OM_SECTION_PAGE,
                        .bytes = k->data_bytes,
                        .emit  = emit_data,
                        .ctx   = k};
}

static void each_buffer(om_packer *k, void (*fn)(om_str_sink *)) {
    om_part *parts[] = {&k->meta, &k->dims, &k->vals, &k->attr, &k->node, &k->grph, &k->init};
    for (size_t i = 0; i < OM_COUNT(parts); i++) {
        fn(&parts[i]->rows);
        fn(&parts[i]->pool);
    }
    fn(&k->strs);
}

static void open_buffer(om_str_sink *b) {
    b->sink.write = str_sink_write;
}
static void close_buffer(om_str_sink *b) {
    omi_str_free(&b->s);
}

static om_status pack_model(om_packer *k, const om_graph *g) {
    OM_TRY(omi_graph_check_savable(g));
    *k = (om_packer){.root = g};
    each_buffer(k, open_buffer);
    omi_put_zero(&k->strs.sink, 1); // so that no string but the empty one is at 0
    pack_meta(k);
    queue_graph(k, g, OM_NO_VALUE);
    for (uint32_t i = 0; i < k->graphs.n && !omi_failed(); i++)
        pack_graph(k, i);
    return om_pending();
}

static void drop_packer(om_packer *k) {
    each_buffer(k, close_buffer);
    omi_strmap_free(&k->strings);
    OMI_VEC_FREE(&k->graphs);
    OMI_VEC_FREE(&k->parents);
    OMI_VEC_FREE(&k->tensors);
}

om_status om_graph_save(const om_graph *g, const char *path) {
    OMI_ENTER("om_graph_save");
    if (omi_failed()) return om_pending();
    if (!g || !path) return omi_fail(OM_ERR_ARG, "the %s is NULL", g ? "path" : "graph");
    om_packer k = {0};
    om_section s[N_SECTIONS];
    om_status st = pack_model(&k, g);
    if (st == OM_OK) {
        list_sections(&k, s);
        st = omi_container_save(path, s, N_SECTIONS);
    }
    drop_packer(&k);
    return st;
}

om_status om_graph_save_memory(const om_graph *g, void **data, size_t *bytes) {
    OMI_ENTER("om_graph_save_memory");
    if (omi_failed()) return om_pending();
    if (!g || !data || !bytes)
        return omi_fail(OM_ERR_ARG, "the %s is NULL", g ? "place for the result" : "graph");
    om_packer k = {0};
    om_section s[N_SECTIONS];
    om_status st = pack_model(&k, g);
    if (st == OM_OK) {
        list_sections(&k, s);
        st = omi_container_memory(s, N_SECTIONS, data, bytes);
    }
    drop_packer(&k);
    return st;
}
