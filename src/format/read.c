/*
 * read.c -- format v1 to a graph (docs/format.md).
 *
 * The container has checked sizes and checksums, which an attacker can make right too; so every
 * index, count and name is checked here again, before use. Lists are consumed front to back, and a
 * row's "first" index must be what has been consumed so far: one comparison rules out overlap,
 * sharing and holes. At the end everything must have been consumed.
 *
 * Needs: graph, container.h.
 */
#include <string.h>

#include "base/bytes.h"
#include "base/utf8.h"
#include "format/model.h"

/* A section of rows and a pool (write.c: om_part), and how much of each is used up. */
typedef struct om_rows {
    const om_section *s;
    const uint8_t *rows, *pool;
    uint32_t n_rows, n_pool, row_size, pool_size;
    uint32_t row, item;
} om_rows;

typedef struct om_unpacker {
    om_container c;
    om_buffer *file;
    const om_source *o;
    om_graph *root;
    om_rows dims, vals, attr, node, grph, init;
    const uint8_t *strs;
    uint64_t n_strs, data_bytes, data_used, data_at;
    om_graph **graphs;
    uint32_t n_graphs; /* named by an attribute so far, and the root */
} om_unpacker;

static bool bad(om_unpacker *u, const void *at, const char *what) {
    omi_source_fail(u->o, OM_ERR_MALFORMED,
                    (uint64_t)((const uint8_t *)at - (const uint8_t *)u->file->data), "%s", what);
    return false;
}

/* ---- sections ----------------------------------------------------------------------------------
 */

static const om_section *section(om_unpacker *u, const char *tag) {
    const om_section *s = omi_container_find(&u->c, tag);
    if (!s) omi_source_fail(u->o, OM_ERR_MALFORMED, 0, "the file has no section %s", tag);
    return s;
}

static bool open_rows(om_unpacker *u, om_rows *r, const char *tag, uint32_t row, uint32_t item) {
    r->s = section(u, tag);
    if (!r->s) return false;
    const uint8_t *p = r->s->data;
    if (r->s->bytes < 8) return bad(u, p, "a section is too small for its counts");
    r->n_rows    = omi_load_u32(p);
    r->n_pool    = omi_load_u32(p + 4);
    r->row_size  = row;
    r->pool_size = item;
    r->rows      = p + 8;
    // At most 2^32 rows of less than 2^6 bytes and as many items: no overflow in 64 bits.
    if (8 + (uint64_t)r->n_rows * row + (uint64_t)r->n_pool * item != r->s->bytes)
        return bad(u, p, "the size of a section does not fit its counts");
    r->pool = r->rows + (uint64_t)r->n_rows * row;
    return true;
}

/* The next row, or NULL and raised. */
static const uint8_t *next_row(om_unpacker *u, om_rows *r) {
    if (r->row == r->n_rows) return bad(u, r->s->data, "a section has too few rows"), NULL;
    return r->rows + (uint64_t)r->row++ * r->row_size;
}

/* The next n items; first is what the row says. */
static const uint8_t *next_items(om_unpacker *u, om_rows *r, const uint8_t *at, uint32_t first,
                                 uint64_t n) {
    if (first != r->item)
        return bad(u, at, "a list does not begin where the one before ended"), NULL;
    if (n > r->n_pool - r->item) return bad(u, at, "a list reaches past its section"), NULL;
    const uint8_t *p = r->pool + (uint64_t)r->item * r->pool_size;
    r->item += (uint32_t)n;
    return p;
}

static bool used_up(om_unpacker *u, const om_rows *r) {
    return (r->row == r->n_rows && r->item == r->n_pool) ||
           bad(u, r->s->data, "a section has rows that nothing uses");
}

/* ---- strings -----------------------------------------------------------------------------------
 */

static bool get_string(om_unpacker *u, const uint8_t *at, om_text *t) {
    uint64_t offset = omi_load_u32(at), n = omi_load_u32(at + 4);
    if (offset >= u->n_strs || n >= u->n_strs - offset || u->strs[offset + n] != 0)
        return bad(u, at, "a string lies outside the section STRS or does not end");
    *t = (om_text){(const char *)u->strs + offset, (size_t)n};
    return true;
}

static bool get_name(om_unpacker *u, const uint8_t *at, bool empty, om_text *t) {
    if (!get_string(u, at, t)) return false;
    if (!omi_utf8_valid(t->v, t->n) || (t->n && memchr(t->v, 0, t->n)))
        return bad(u, at, "a name is not UTF-8 or holds a NUL byte");
    if (t->n == 0 && !empty) return bad(u, at, "a name is missing");
    return true;
}

/* A name as a string of the graph's arena. */
static const char *keep_name(om_unpacker *u, const uint8_t *at, bool empty) {
    om_text t;
    if (!get_name(u, at, empty, &t)) return NULL;
    return t.n ? omi_arena_strndup(u->root->arena, t.v, t.n) : "";
}

/* ---- META and DIMS -----------------------------------------------------------------------------
 */

static bool unpack_meta(om_unpacker *u) {
    const om_section *s = section(u, "META");
    om_graph *g         = u->root;
    om_text key, value;
    if (!s) return false;
    const uint8_t *p = s->data;
    if (s->bytes < OM_META_HEAD) return bad(u, p, "section META is too small");
    uint64_t n_opsets = omi_load_u32(p + 32), n_meta = omi_load_u32(p + 36);
    if (s->bytes != OM_META_HEAD + OM_META_ROW * (n_opsets + n_meta))
        return bad(u, p, "the size of section META does not fit its counts");
    g->ir_version    = omi_load_i64(p);
    g->model_version = omi_load_i64(p + 8);
    if (!(g->producer = keep_name(u, p + 16, true))) return false;
    if (!(g->producer_version = keep_name(u, p + 24, true))) return false;
    p += OM_META_HEAD;
    for (uint64_t i = 0; i < n_opsets; i++, p += OM_META_ROW) {
        if (!get_name(u, p, true, &key)) return false;
        if (omi_load_i64(p + 8) < 1) return bad(u, p, "an operator set has no version");
        if (!omi_graph_add_opset(g, key.v, omi_load_i64(p + 8))) return false;
    }
    for (uint64_t i = 0; i < n_meta; i++, p += OM_META_ROW) {
        if (!get_name(u, p, true, &key) || !get_name(u, p + 8, true, &value)) return false;
        if (i && strcmp(g->meta[i - 1].key, key.v) >= 0)
            return bad(u, p, "metadata is not in the order of its keys");
        if (!omi_graph_add_meta(g, key.v, value.v)) return false;
    }
    return true;
}

static bool read_symbols(om_unpacker *u) {
    om_text name;
    for (uint32_t i = 0; i < u->dims.n_rows; i++) {
        const uint8_t *p = next_row(u, &u->dims);
        if (!p || !get_name(u, p, false, &name)) return false;
        om_symbol s = {NULL, omi_load_i64(p + 8), omi_load_i64(p + 16), omi_load_i64(p + 24)};
        if (s.lo < 0 || s.hi < 0 || (s.hi && s.hi < s.lo) || s.multiple < 1)
            return bad(u, p, "the range of an axis is empty");
        int32_t k = omi_graph_symbol_named(u->root, name.v, name.n);
        if (k < 0) return false;
        if ((uint32_t)k != i) return bad(u, p, "the name of an axis is there twice");
        s.name              = u->root->symbols[k].name;
        u->root->symbols[k] = s;
    }
    return true;
}

/* ---- VALS --------------------------------------------------------------------------------------
 */

static bool read_value_dims(om_unpacker *u, const uint8_t *p, int32_t rank, om_gdim *dims) {
    for (int32_t i = 0; i < rank; i++, p += OM_VALS_DIM) {
        om_gdim d = {omi_load_i64(p), (int32_t)omi_load_u32(p + 8), (int32_t)omi_load_u32(p + 12)};
        if (d.value < -1 || d.sym < -1 || d.expr < -1 || (d.value >= 0 && d.sym >= 0) ||
            (d.sym >= 0 && (uint32_t)d.sym >= u->root->n_symbols) || (d.sym < 0 && d.expr >= 0))
            return bad(u, p, "an axis of a value is wrong");
        dims[i] = d;
    }
    return true;
}

static bool read_value(om_unpacker *u, om_graph *g) {
    om_gdim dims[OM_FILE_RANK];
    om_text name, type;
    const uint8_t *p = next_row(u, &u->vals);
    if (!p || !get_name(u, p, false, &name) || !get_name(u, p + 24, true, &type)) return false;
    int32_t dtype = (int32_t)omi_load_u32(p + 8), rank = (int32_t)omi_load_u32(p + 12);
    if ((dtype != 0 && !omi_onnx_type_known(dtype)) || rank < -1 || rank > OM_FILE_RANK ||
        omi_load_u32(p + 20) != 0)
        return bad(u, p, "the type of a value is wrong");
    const uint8_t *d =
        next_items(u, &u->vals, p, omi_load_u32(p + 16), rank > 0 ? (uint64_t)rank : 0);
    if (!d || !read_value_dims(u, d, rank, dims)) return false;
    uint32_t v = omi_graph_add_value(g, name.v, dtype, rank, dims);
    if (v == OM_NO_VALUE) return false;
    if (type.n == 0) return true;
    return (g->values[v].type_text = omi_arena_strndup(g->arena, type.v, type.n)) != NULL;
}

/* ---- INIT --------------------------------------------------------------------------------------
 */

/* The next tensor; its bytes are the next of DATA. */
static bool unpack_tensor(om_unpacker *u, om_graph *g, om_ginit *out, uint32_t *value) {
    int64_t dims[OM_FILE_RANK];
    const uint8_t *p = next_row(u, &u->init);
    if (!p) return false;
    uint32_t rank   = omi_load_u32(p + 8);
    uint64_t offset = omi_load_u64(p + 16), bytes = omi_load_u64(p + 24);
    uint64_t want = (u->data_used + OM_DATA_ALIGN - 1) & ~(uint64_t)(OM_DATA_ALIGN - 1);
    if (rank > OM_FILE_RANK) return bad(u, p, "a tensor has too many axes");
    if (offset != want || offset > u->data_bytes || bytes > u->data_bytes - offset)
        return bad(u, p, "the bytes of a tensor are not the next of section DATA");
    const uint8_t *data = (const uint8_t *)u->file->data + u->data_at;
    for (uint64_t i = u->data_used; i < offset; i++)
        if (data[i]) return bad(u, data + i, "a gap between tensors is not zero");
    u->data_used     = offset + bytes;
    const uint8_t *d = next_items(u, &u->init, p, omi_load_u32(p + 12), rank);
    if (!d) return false;
    for (uint32_t i = 0; i < rank; i++)
        dims[i] = omi_load_i64(d + 8 * i);
    *value = omi_load_u32(p);
    return omi_graph_tensor(g, out, (int32_t)omi_load_u32(p + 4), (int32_t)rank, dims, u->file,
                            (size_t)(u->data_at + offset), (size_t)bytes);
}

static bool unpack_init(om_unpacker *u, om_graph *g) {
    om_ginit t = {0};
    uint32_t v = OM_NO_VALUE;
    bool ok    = unpack_tensor(u, g, &t, &v);
    if (ok && v >= g->n_values) ok = bad(u, u->init.s->data, "an initializer names no value");
    ok = ok && omi_graph_add_init(g, v, t.dtype, t.rank, t.dims, t.buf, t.offset, t.bytes);
    omi_buffer_release(t.buf);
    return ok;
}

/* ---- ATTR --------------------------------------------------------------------------------------
 */

static bool attr_tensors(om_unpacker *u, om_graph *g, const uint8_t *p, om_attr *a) {
    uint32_t v = 0;
    if (omi_load_u64(p + 16) != u->init.row)
        return bad(u, p, "an attribute's tensor is not the next");
    for (size_t i = 0; i < a->n; i++) {
        if (!unpack_tensor(u, g, &a->tensors[i], &v)) return false;
        if (v != OM_NO_VALUE) return bad(u, p, "an attribute's tensor claims to be a value");
    }
    return true;
}

static bool attr_graphs(om_unpacker *u, om_graph *g, const uint8_t *p, om_attr *a) {
    if (omi_load_u64(p + 16) != u->n_graphs)
        return bad(u, p, "an attribute's graph is not the next");
    for (size_t i = 0; i < a->n; i++) {
        if (u->n_graphs == u->grph.n_rows) return bad(u, p, "an attribute's graph does not exist");
        om_graph *sub = omi_graph_new_sub(g, "");
        if (!sub) return false;
        a->graphs[i] = u->graphs[u->n_graphs++] = sub;
    }
    return true;
}

static bool get_text(om_unpacker *u, om_graph *g, const uint8_t *at, om_text *out) {
    om_text t;
    if (!get_string(u, at, &t)) return false;
    out->v = omi_arena_strndup(g->arena, t.v, t.n);
    out->n = t.n;
    return out->v != NULL;
}

static bool attr_items(om_unpacker *u, om_graph *g, const uint8_t *p, om_attr *a) {
    uint64_t first      = omi_load_u64(p + 16);
    const uint8_t *item = first > UINT32_MAX ? (bad(u, p, "a list lies outside its section"), NULL)
                                             : next_items(u, &u->attr, p, (uint32_t)first, a->n);
    if (!item) return false;
    for (size_t i = 0; i < a->n; i++, item += OM_ATTR_ITEM) {
        uint32_t bits = omi_load_u32(item);
        if (a->floats && omi_load_u32(item + 4) != 0) return bad(u, item, "a float has 64 bits");
        if (a->floats)
            memcpy(&a->floats[i], &bits, sizeof bits);
        else if (a->ints)
            a->ints[i] = omi_load_i64(item);
        else if (!get_text(u, g, item, &a->strings[i]))
            return false;
    }
    return true;
}

static bool attr_scalar(om_unpacker *u, om_graph *g, const uint8_t *p, om_attr *a) {
    uint32_t bits = omi_load_u32(p + 16);
    if (a->type == OM_ATTR_STRING) return get_text(u, g, p + 16, &a->s);
    if (a->type == OM_ATTR_INT) return a->i = omi_load_i64(p + 16), true;
    if (omi_load_u32(p + 20) != 0) return bad(u, p, "a float has 64 bits");
    return memcpy(&a->f, &bits, sizeof bits), true;
}

static bool read_attr(om_unpacker *u, om_graph *g, int32_t node) {
    const uint8_t *p = next_row(u, &u->attr);
    om_text name;
    if (!p || !get_name(u, p, false, &name)) return false;
    uint32_t type = omi_load_u32(p + 8), n = omi_load_u32(p + 12);
    if (type < OM_ATTR_FLOAT || type > OM_ATTR_GRAPHS) return bad(u, p, "an attribute has no type");
    bool list = type >= OM_ATTR_FLOATS, one = type == OM_ATTR_TENSOR || type == OM_ATTR_GRAPH;
    if (!list && n != (one ? 1u : 0u)) return bad(u, p, "an attribute has the wrong count");
    // Each entry takes at least a graph row, a tensor row or an item, so the file bounds the count.
    uint32_t most = type == OM_ATTR_TENSORS  ? u->init.n_rows
                    : type == OM_ATTR_GRAPHS ? u->grph.n_rows
                                             : u->attr.n_pool;
    if (list && n > most) return bad(u, p, "a list reaches past its section");
    om_attr *a = omi_graph_attr_new(g, node, name.v, name.n, (om_attr_type)type, n);
    if (!a) return false;
    if (a->tensors) return attr_tensors(u, g, p, a);
    if (a->graphs) return attr_graphs(u, g, p, a);
    return list ? attr_items(u, g, p, a) : attr_scalar(u, g, p, a);
}

/* ---- NODE and GRPH -----------------------------------------------------------------------------
 */

/* Operands as indices of g; the file's own numbers are checked, then copied by the graph. */
static bool get_operands(om_unpacker *u, const om_graph *g, const uint8_t *p, uint32_t *list,
                         uint64_t n) {
    for (uint64_t i = 0; i < n; i++) {
        list[i] = omi_load_u32(p + 4 * i);
        if (list[i] != OM_NO_VALUE && list[i] >= g->n_values)
            return bad(u, p + 4 * i, "a node names a value that does not exist");
    }
    return true;
}

static int32_t unpack_node_row(om_unpacker *u, om_graph *g, uint32_t owner, uint32_t *n_attr) {
    const uint8_t *p = next_row(u, &u->node);
    om_text op, domain, name;
    uint32_t few[32], *list = few;
    if (!p || !get_name(u, p, false, &op) || !get_name(u, p + 8, true, &domain) ||
        !get_name(u, p + 16, true, &name))
        return -1;
    uint32_t n_in = omi_load_u32(p + 24), n_out = omi_load_u32(p + 28);
    uint64_t n              = (uint64_t)n_in + n_out;
    const uint8_t *operands = next_items(u, &u->node, p, omi_load_u32(p + 36), n);
    if (!operands) return -1;
    if (omi_load_u32(p + 40) != u->attr.row || omi_load_u32(p + 44) != owner)
        return bad(u, p, "the attributes of a node are not the next, or it belongs elsewhere"), -1;
    *n_attr = omi_load_u32(p + 32);
    if (*n_attr > u->attr.n_rows - u->attr.row)
        return bad(u, p, "the attributes of a node do not exist"), -1;
    if (n > OM_COUNT(few) && !(list = omi_alloc((size_t)n * sizeof *list))) return -1;
    int32_t k = -1;
    if (get_operands(u, g, operands, list, n))
        k = omi_graph_add_node_named(g, op.v, op.n, domain.v, domain.n, name.v, name.n, n_in, list,
                                     n_out, list + n_in);
    if (list != few) omi_free(list, (size_t)n * sizeof *list);
    return k;
}

static bool unpack_node(om_unpacker *u, om_graph *g, uint32_t owner) {
    uint32_t n_attr = 0;
    int32_t k       = unpack_node_row(u, g, owner, &n_attr);
    if (k < 0 || (n_attr && !omi_graph_reserve_attrs(g, k, n_attr))) return false;
    for (uint32_t i = 0; i < n_attr; i++)
        if (!read_attr(u, g, k)) return false;
    return true;
}

static bool read_ends(om_unpacker *u, om_graph *g, const uint8_t *row) {
    uint32_t n_in = omi_load_u32(row + 24), n_out = omi_load_u32(row + 28);
    const uint8_t *p = next_items(u, &u->grph, row, omi_load_u32(row + 44), (uint64_t)n_in + n_out);
    if (!p) return false;
    for (uint64_t i = 0; i < (uint64_t)n_in + n_out; i++, p += OM_GRPH_END) {
        uint32_t v = omi_load_u32(p);
        if (v >= g->n_values) return bad(u, p, "a graph names a value that does not exist");
        if (i < n_in ? !omi_graph_add_input(g, v) : !omi_graph_add_output(g, v)) return false;
    }
    return true;
}

/* Graph k: its values, initializers, inputs and outputs, then nodes with their attributes. */
static bool read_graph(om_unpacker *u, uint32_t k) {
    const uint8_t *p = next_row(u, &u->grph);
    om_graph *g      = u->graphs[k];
    if (!p) return false;
    if (!g) return bad(u, p, "a graph belongs to no attribute");
    if (!(g->name = keep_name(u, p, true))) return false;
    uint32_t parent = omi_load_u32(p + 8), n_values = omi_load_u32(p + 12);
    uint32_t n_nodes = omi_load_u32(p + 16), n_inits = omi_load_u32(p + 20);
    bool fits = k == 0 ? parent == OM_NO_VALUE : parent < k && u->graphs[parent] == g->parent;
    if (!fits || omi_load_u32(p + 32) != u->vals.row || omi_load_u32(p + 36) != u->node.row ||
        omi_load_u32(p + 40) != u->init.row)
        return bad(u, p, "the parts of a graph are not the next, or it belongs elsewhere");
    if (n_values > u->vals.n_rows - u->vals.row || n_nodes > u->node.n_rows - u->node.row ||
        n_inits > u->init.n_rows - u->init.row)
        return bad(u, p, "the parts of a graph do not exist");
    if (!omi_graph_reserve(g, n_values, n_nodes, n_inits)) return false;
    for (uint32_t i = 0; i < n_values; i++)
        if (!read_value(u, g)) return false;
    for (uint32_t i = 0; i < n_inits; i++)
        if (!unpack_init(u, g)) return false;
    if (!read_ends(u, g, p)) return false;
    for (uint32_t i = 0; i < n_nodes; i++) {
        if (i % 256 == 0 && omi_source_check(u->o) != OM_OK) return false;
        if (!unpack_node(u, g, k)) return false;
    }
    return true;
}

static bool open_sections(om_unpacker *u) {
    const om_section *strs = section(u, "STRS"), *data = strs ? section(u, "DATA") : NULL;
    if (!data) return false;
    u->strs       = strs->data;
    u->n_strs     = strs->bytes;
    u->data_bytes = data->bytes;
    u->data_at    = omi_container_offset(&u->c, data);
    return open_rows(u, &u->dims, "DIMS", OM_DIMS_ROW, 1) &&
           open_rows(u, &u->vals, "VALS", OM_VALS_ROW, OM_VALS_DIM) &&
           open_rows(u, &u->attr, "ATTR", OM_ATTR_ROW, OM_ATTR_ITEM) &&
           open_rows(u, &u->node, "NODE", OM_NODE_ROW, OM_NODE_OPERAND) &&
           open_rows(u, &u->grph, "GRPH", OM_GRPH_ROW, OM_GRPH_END) &&
           open_rows(u, &u->init, "INIT", OM_INIT_ROW, OM_INIT_DIM);
}

static bool read_sections(om_unpacker *u) {
    if (!open_sections(u) || !unpack_meta(u) || !read_symbols(u)) return false;
    if (u->grph.n_rows == 0) return bad(u, u->grph.s->data, "the file holds no graph");
    u->graphs = omi_calloc(u->grph.n_rows * sizeof *u->graphs);
    if (!u->graphs) return false;
    u->graphs[u->n_graphs++] = u->root;
    for (uint32_t k = 0; k < u->grph.n_rows; k++)
        if (!read_graph(u, k)) return false;
    if (u->data_used != u->data_bytes)
        return bad(u, u->init.s->data, "DATA has bytes nothing uses");
    return used_up(u, &u->dims) && used_up(u, &u->vals) && used_up(u, &u->attr) &&
           used_up(u, &u->node) && used_up(u, &u->grph) && used_up(u, &u->init);
}

om_graph *omi_model_read(om_buffer *file, const om_source *o) {
    om_unpacker *u = omi_calloc(sizeof *u); // its table of sections is too large for a stack
    if (!u) return NULL;
    u->file     = file;
    u->o        = o;
    bool ok     = omi_container_open(&u->c, file, o, OM_MODEL_TAGS) == OM_OK;
    om_graph *g = u->root = ok ? omi_graph_new("", o->arena_cap) : NULL;
    ok                    = g && read_sections(u) && omi_graph_seal(g) == OM_OK;
    if (u->graphs) omi_free(u->graphs, u->grph.n_rows * sizeof *u->graphs);
    omi_free(u, sizeof *u);
    if (ok) return g;
    om_graph_release(g);
    return NULL;
}
