/*
 * graph.c -- building a graph: values, nodes, initializers, symbols; its life.
 *
 * Arrays grow inside the arena by doubling, so a graph of known size is one allocation per array
 * (omi_graph_reserve) and a traced one wastes at most as much as it holds. Nothing here asks
 * whether the graph makes sense: seal.c does, once.
 */
#include "graph/graph.h"

#include <string.h>

#include "base/bytes.h"
#include "base/checked.h"
#include "base/utf8.h"
#include "graph/traced.h"

#define MOST_OPSETS 256

om_graph *omi_graph_root(om_graph *g) {
    while (g->parent)
        g = g->parent;
    return g;
}

om_graph *omi_graph_new(const char *name, size_t arena_cap) {
    om_graph *g = omi_calloc(sizeof *g);
    if (!g) return NULL;
    atomic_init(&g->refs, 1);
    g->own_arena.cap    = arena_cap;
    g->arena            = &g->own_arena;
    g->producer         = "";
    g->producer_version = "";
    g->name             = omi_arena_strndup(g->arena, name, strlen(name));
    if (g->name) return g;
    om_graph_release(g);
    return NULL;
}

om_graph *omi_graph_new_sub(om_graph *parent, const char *name) {
    int depth = 0;
    for (om_graph *up = parent; up->parent; up = up->parent)
        depth++;
    if (depth >= OM_GRAPH_DEPTH)
        OM_FAIL_NULL(OM_ERR_LIMIT, "subgraphs are nested more than %d deep", OM_GRAPH_DEPTH);
    om_graph *root = omi_graph_root(parent);
    om_graph *g    = omi_arena_alloc(root->arena, sizeof *g);
    if (!g) return NULL;
    atomic_init(&g->refs, 1);
    g->parent           = parent;
    g->arena            = root->arena;
    g->producer         = "";
    g->producer_version = "";
    g->name             = omi_arena_strndup(g->arena, name, strlen(name));
    if (!g->name) return NULL;
    g->next_sub = root->subs;
    root->subs  = g;
    return g;
}

om_graph *om_graph_retain(om_graph *g) {
    if (g) atomic_fetch_add_explicit(&g->refs, 1, memory_order_relaxed);
    return g;
}

static void drop_contents(om_graph *g) {
    for (uint32_t i = 0; i < g->n_inits; i++)
        omi_buffer_release(g->inits[i].buf);
    for (uint32_t i = 0; i < g->n_nodes; i++)
        for (uint32_t a = 0; a < g->nodes[i].n_attr; a++) {
            const om_attr *attr = &g->nodes[i].attrs[a];
            for (size_t k = 0; attr->tensors && k < attr->n; k++)
                omi_buffer_release(attr->tensors[k].buf);
        }
    omi_strmap_free(&g->by_name);
    omi_strmap_free(&g->symbol_by_name);
    omi_strmap_free(&g->words);
}

void om_graph_release(om_graph *g) {
    if (!g || atomic_fetch_sub_explicit(&g->refs, 1, memory_order_acq_rel) != 1) return;
    for (om_graph *s = g->subs; s; s = s->next_sub)
        drop_contents(s);
    drop_contents(g);
    omi_traced_free(g->traced);
    omi_arena_clear(&g->own_arena);
    omi_free(g, sizeof *g);
}

/* ---- growing -----------------------------------------------------------------------------------
 */

/* v is the address of a pointer of any type, accessed as in base/vec.h. */
static bool grow_to(om_graph *g, void *v, uint32_t n, uint32_t *cap, size_t want, size_t item) {
    if (want <= *cap) return true;
    if (want >= UINT32_MAX) {
        omi_fail(OM_ERR_LIMIT, "a graph cannot hold %zu items of one kind", want);
        return false;
    }
    void *p = omi_arena_array(g->arena, want, item);
    if (!p) return false;
    void *old;
    memcpy(&old, v, sizeof old);
    if (n) memcpy(p, old, n * item);
    memcpy(v, &p, sizeof p);
    *cap = (uint32_t)want;
    return true;
}

/* Room for one more. */
#define GROW(g, array, n, cap)                                                                     \
    ((n) < (cap) || grow_to(g, &(array), n, &(cap), (cap) ? (size_t)(cap)*2 : 8, sizeof *(array)))

bool omi_graph_reserve(om_graph *g, size_t n_values, size_t n_nodes, size_t n_inits) {
    // Nodes first: they are the largest, so a hostile count meets the arena's cap at once.
    return grow_to(g, &g->nodes, g->n_nodes, &g->cap_nodes, n_nodes, sizeof *g->nodes) &&
           grow_to(g, &g->values, g->n_values, &g->cap_values, n_values, sizeof *g->values) &&
           grow_to(g, &g->inits, g->n_inits, &g->cap_inits, n_inits, sizeof *g->inits);
}

/* ---- values ------------------------------------------------------------------------------------
 */

uint32_t omi_graph_find(const om_graph *g, const char *name, size_t len) {
    uintptr_t at = (uintptr_t)omi_strmap_get(&g->by_name, name, len);
    return at ? (uint32_t)(at - 1) : OM_NO_VALUE;
}

static uint32_t new_value(om_graph *g, const char *name, size_t len) {
    if (!GROW(g, g->values, g->n_values, g->cap_values)) return OM_NO_VALUE;
    char *copy = omi_arena_strndup(g->arena, name, len);
    if (!copy || !omi_strmap_set(&g->by_name, copy, len, (void *)((uintptr_t)g->n_values + 1)))
        return OM_NO_VALUE;
    g->values[g->n_values] =
        (om_gvalue){.name = copy, .rank = -1, .producer = -1, .out_index = -1, .init = -1};
    return g->n_values++;
}

uint32_t omi_graph_value_named(om_graph *g, const char *name, size_t len) {
    uint32_t v = omi_graph_find(g, name, len);
    return v != OM_NO_VALUE ? v : new_value(g, name, len);
}

bool omi_graph_set_type(om_graph *g, uint32_t value, int32_t dtype, int32_t rank,
                        const om_gdim *dims) {
    om_gvalue *v = &g->values[value];
    if (rank > OM_FILE_RANK) {
        char name[96];
        omi_fail(OM_ERR_LIMIT, "value '%s' has %d axes; at most %d can be read",
                 omi_escape_buf(name, sizeof name, v->name, strlen(v->name)), (int)rank,
                 OM_FILE_RANK);
        return false;
    }
    om_gdim *copy = NULL;
    if (rank > 0) {
        copy = omi_arena_array(g->arena, (size_t)rank, sizeof *copy);
        if (!copy) return false;
        for (int32_t i = 0; i < rank; i++)
            copy[i] = dims ? dims[i] : OM_DIM_UNKNOWN;
    }
    v->dtype = dtype;
    v->rank  = rank;
    v->dims  = copy;
    return true;
}

/* Raises OM_ERR_MALFORMED about a value. */
static bool value_fail(const char *fmt_problem, const char *name) {
    char safe[160];
    omi_escape_buf(safe, sizeof safe, name, strlen(name));
    omi_fail(OM_ERR_MALFORMED, "value '%s' %s", safe, fmt_problem);
    return false;
}

uint32_t omi_graph_add_value(om_graph *g, const char *name, int32_t dtype, int32_t rank,
                             const om_gdim *dims) {
    size_t len = strlen(name);
    if (omi_graph_find(g, name, len) != OM_NO_VALUE) {
        value_fail("is defined twice", name);
        return OM_NO_VALUE;
    }
    uint32_t v = new_value(g, name, len);
    if (v == OM_NO_VALUE || !omi_graph_set_type(g, v, dtype, rank, dims)) return OM_NO_VALUE;
    return v;
}

bool omi_graph_add_input(om_graph *g, uint32_t value) {
    om_gvalue *v = &g->values[value];
    if (v->is_input || v->init >= 0 || v->producer >= 0)
        return value_fail("is an input and something else too", v->name);
    if (!GROW(g, g->inputs, g->n_inputs, g->cap_inputs)) return false;
    v->is_input              = true;
    g->inputs[g->n_inputs++] = value;
    return true;
}

bool omi_graph_add_output(om_graph *g, uint32_t value) {
    if (!GROW(g, g->outputs, g->n_outputs, g->cap_outputs)) return false;
    g->values[value].is_output = true;
    g->outputs[g->n_outputs++] = value;
    return true;
}

/* ---- symbols, opsets, metadata -----------------------------------------------------------------
 */

int32_t omi_graph_symbol_named(om_graph *g, const char *name, size_t len) {
    g            = omi_graph_root(g);
    uintptr_t at = (uintptr_t)omi_strmap_get(&g->symbol_by_name, name, len);
    if (at) return (int32_t)(at - 1);
    if (!GROW(g, g->symbols, g->n_symbols, g->cap_symbols)) return -1;
    char *copy = omi_arena_strndup(g->arena, name, len);
    if (!copy ||
        !omi_strmap_set(&g->symbol_by_name, copy, len, (void *)((uintptr_t)g->n_symbols + 1)))
        return -1;
    g->symbols[g->n_symbols] = (om_symbol){.name = copy, .lo = 1, .multiple = 1};
    return (int32_t)g->n_symbols++;
}

int32_t omi_graph_symbol(om_graph *g, const char *name) {
    return omi_graph_symbol_named(g, name, strlen(name));
}

bool omi_graph_add_opset(om_graph *g, const char *domain, int64_t version) {
    if (strcmp(domain, "ai.onnx") == 0) domain = "";
    for (uint32_t i = 0; i < g->n_opsets; i++)
        if (strcmp(g->opsets[i].domain, domain) == 0) {
            char safe[160];
            if (g->opsets[i].version == version) return true; // "" and "ai.onnx" are one
            omi_fail(OM_ERR_MALFORMED,
                     "the operator set of domain '%s' is imported twice, as %lld and %lld",
                     omi_escape_buf(safe, sizeof safe, domain, strlen(domain)),
                     (long long)g->opsets[i].version, (long long)version);
            return false;
        }
    if (g->n_opsets == MOST_OPSETS) {
        omi_fail(OM_ERR_LIMIT, "more than %d operator sets are imported", MOST_OPSETS);
        return false;
    }
    if (!GROW(g, g->opsets, g->n_opsets, g->cap_opsets)) return false;
    char *copy = omi_arena_strndup(g->arena, domain, strlen(domain));
    if (!copy) return false;
    g->opsets[g->n_opsets++] = (om_opset){copy, version};
    return true;
}

bool omi_graph_add_meta(om_graph *g, const char *key, const char *value) {
    if (!GROW(g, g->meta, g->n_meta, g->cap_meta)) return false;
    char *k = omi_arena_strndup(g->arena, key, strlen(key));
    char *v = k ? omi_arena_strndup(g->arena, value, strlen(value)) : NULL;
    if (!v) return false;
    g->meta[g->n_meta++] = (om_meta_entry){k, v};
    return true;
}

/* ---- initializers ------------------------------------------------------------------------------
 */

static bool strings_valid(const uint8_t *p, size_t bytes, int64_t n) {
    size_t table;
    if (!omi_mul_size((size_t)n + 1, 8, &table) || bytes < table) return false;
    uint64_t last = 0;
    for (int64_t i = 0; i <= n; i++) {
        uint64_t at = omi_load_u64(p + 8 * i);
        if (at < last || (i == 0 && at != 0)) return false;
        last = at;
    }
    return last == bytes - table;
}

static bool elements_valid(int32_t dtype, int32_t rank, const int64_t *dims, const uint8_t *p,
                           size_t bytes, const char **why) {
    size_t want;
    int64_t n;
    *why = "its size does not fit its shape";
    for (int32_t i = 0; i < rank; i++)
        if (dims[i] < 0) return false;
    if (dtype == OM_ONNX_STRING)
        return omi_product(dims, rank, &n) && n < INT64_MAX && strings_valid(p, bytes, n);
    if (!omi_onnx_bytes(dtype, rank, dims, &want) || want != bytes) return false;
    *why = "a bool is neither 0 nor 1";
    for (size_t i = 0; dtype == OM_BOOL && i < bytes; i++)
        if (p[i] > 1) return false;
    return true;
}

bool omi_graph_tensor(om_graph *g, om_ginit *out, int32_t dtype, int32_t rank, const int64_t *dims,
                      om_buffer *buf, size_t offset, size_t bytes) {
    const char *why = "its bytes lie outside the file";
    bool ok         = rank >= 0 && rank <= OM_FILE_RANK && offset <= buf->bytes &&
              bytes <= buf->bytes - offset &&
              elements_valid(dtype, rank, dims, (const uint8_t *)buf->data + offset, bytes, &why);
    if (!ok) {
        char shape[96];
        omi_fail(OM_ERR_MALFORMED, "a tensor of %s %s with %zu bytes is refused: %s",
                 omi_onnx_type_name(dtype),
                 omi_shape_text(shape, sizeof shape, rank < 0 || rank > 8 ? 0 : rank, dims), bytes,
                 why);
        return false;
    }
    int64_t *copy = omi_arena_array(g->arena, (size_t)rank, sizeof *copy);
    if (!copy) return false;
    if (rank) memcpy(copy, dims, (size_t)rank * sizeof *copy);
    *out = (om_ginit){.value  = OM_NO_VALUE,
                      .dtype  = dtype,
                      .rank   = rank,
                      .dims   = copy,
                      .buf    = omi_buffer_retain(buf),
                      .offset = offset,
                      .bytes  = bytes};
    return true;
}

bool omi_graph_add_init(om_graph *g, uint32_t value, int32_t dtype, int32_t rank,
                        const int64_t *dims, om_buffer *buf, size_t offset, size_t bytes) {
    om_gvalue *v = &g->values[value];
    if (v->is_input || v->init >= 0 || v->producer >= 0)
        return value_fail("is an initializer and something else too", v->name);
    if (!GROW(g, g->inits, g->n_inits, g->cap_inits)) return false;
    om_gdim d[OM_FILE_RANK];
    for (int32_t i = 0; i < rank && i < OM_FILE_RANK; i++)
        d[i] = OM_DIM_FIXED(dims[i]);
    om_ginit *init = &g->inits[g->n_inits];
    if (!omi_graph_set_type(g, value, dtype, rank, d) ||
        !omi_graph_tensor(g, init, dtype, rank, dims, buf, offset, bytes))
        return false;
    init->value = value;
    v->init     = (int32_t)g->n_inits++;
    return true;
}

/* ---- nodes -------------------------------------------------------------------------------------
 */

const char *omi_graph_word(om_graph *g, const char *s, size_t len) {
    om_graph *root = omi_graph_root(g);
    if (len == 0) return "";
    char *word = omi_strmap_get(&root->words, s, len);
    if (word) return word;
    word = omi_arena_strndup(root->arena, s, len);
    return word && omi_strmap_set(&root->words, word, len, word) ? word : NULL;
}

int32_t omi_graph_add_node(om_graph *g, const char *op_type, const char *domain, const char *name,
                           uint32_t n_in, const uint32_t *in, uint32_t n_out, const uint32_t *out) {
    return omi_graph_add_node_named(g, op_type, strlen(op_type), domain, strlen(domain), name,
                                    strlen(name), n_in, in, n_out, out);
}

int32_t omi_graph_add_node_named(om_graph *g, const char *op_type, size_t n_op, const char *domain,
                                 size_t n_domain, const char *name, size_t n_name, uint32_t n_in,
                                 const uint32_t *in, uint32_t n_out, const uint32_t *out) {
    if (!GROW(g, g->nodes, g->n_nodes, g->cap_nodes)) return -1;
    om_gnode *n = &g->nodes[g->n_nodes];
    if (n_domain == 7 && memcmp(domain, "ai.onnx", 7) == 0) n_domain = 0;
    *n         = (om_gnode){.n_in = n_in, .n_out = n_out};
    n->op_type = omi_graph_word(g, op_type, n_op);
    n->domain  = omi_graph_word(g, domain, n_domain);
    n->name    = n_name ? omi_arena_strndup(g->arena, name, n_name) : "";
    if (!n->op_type || !n->domain || !n->name) return -1;
    uint32_t *lists = omi_arena_array(g->arena, (size_t)n_in + n_out, sizeof *lists);
    if (!lists) return -1;
    n->in  = lists;
    n->out = lists + n_in;
    if (n_in) memcpy(n->in, in, n_in * sizeof *in);
    for (uint32_t i = 0; i < n_out; i++) {
        n->out[i] = out[i];
        if (out[i] == OM_NO_VALUE) continue;
        om_gvalue *v = &g->values[out[i]];
        if (v->producer >= 0 || v->is_input || v->init >= 0) {
            value_fail("is produced twice", v->name);
            return -1;
        }
        v->producer  = (int32_t)g->n_nodes;
        v->out_index = (int32_t)i;
    }
    return (int32_t)g->n_nodes++;
}
