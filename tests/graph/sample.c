/*
 * sample.c -- see sample.h.
 */
#include "graph/sample.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"

int64_t live_blocks(void) {
    om_memory_stats m;
    om_trim(); // cached blocks count as alive
    om_memory(&m);
    return m.blocks;
}

const char *expect_error(om_status want) {
    static om_error e;
    om_status got = om_catch(&e);
    if (got != want)
        fail_msg("expected %s, got %s: %s", om_status_name(want), om_status_name(got), e.message);
    assert_null(strchr(e.message, '\n'));
    return e.message;
}

static int collect(void *ctx, const char *text, size_t n) {
    omi_str_add(ctx, text, n);
    return ((om_str *)ctx)->failed;
}

char *dump_string(const om_graph *g, size_t *n) {
    om_str s = {0};
    assert_int_equal(om_graph_dump(g, collect, &s), OM_OK);
    *n = s.cap;
    return s.v;
}

static om_graph *begin_sample(const char *name) {
    om_graph *g = omi_graph_new(name, 0);
    if (!g) return NULL;
    g->ir_version       = 9;
    g->producer         = "onemodel";
    g->producer_version = "0.1.0";
    if (omi_graph_add_opset(g, "", 20)) return g;
    om_graph_release(g);
    return NULL;
}

/* An initializer with its own buffer. */
static uint32_t add_weight(om_graph *g, const char *name, int32_t dtype, int32_t rank,
                           const int64_t *dims, const void *data, size_t bytes) {
    uint32_t v   = omi_graph_add_value(g, name, 0, -1, NULL);
    om_buffer *b = v == OM_NO_VALUE ? NULL : omi_buffer_new(bytes);
    if (!b) return OM_NO_VALUE;
    if (bytes) memcpy(b->data, data, bytes);
    bool ok = omi_graph_add_init(g, v, dtype, rank, dims, b, 0, bytes);
    omi_buffer_release(b);
    return ok ? v : OM_NO_VALUE;
}

static om_graph *seal_sample(om_graph *g) {
    if (!omi_failed() && omi_graph_seal(g) == OM_OK) return g;
    om_graph_release(g);
    return NULL;
}

om_graph *sample_small(void) {
    om_graph *g = begin_sample("small");
    if (!g) return NULL;
    int32_t batch        = omi_graph_symbol(g, "batch");
    const om_gdim axes[] = {OM_DIM_SYM(batch), OM_DIM_FIXED(3)};
    uint32_t x           = omi_graph_add_value(g, "x", OM_F32, 2, axes);
    const float wv[]     = {1.5f, -2.0f, 0.25f};
    uint32_t w           = add_weight(g, "w", OM_F32, 1, (const int64_t[]){3}, wv, sizeof wv);
    uint32_t c           = add_weight(g, "c", OM_F32, 0, NULL, wv, 4);
    uint32_t t           = omi_graph_add_value(g, "t", OM_F32, 2, axes);
    uint32_t y           = omi_graph_add_value(g, "y", OM_F32, 2, axes);
    if (omi_failed()) return seal_sample(g);
    omi_graph_add_input(g, x);
    omi_graph_add_node(g, "Mul", "", "mul", 2, (const uint32_t[]){x, w}, 1, &t);
    omi_graph_add_node(g, "Add", "", "", 2, (const uint32_t[]){t, c}, 1, &y);
    omi_graph_add_output(g, y);
    omi_graph_add_meta(g, "classes", "0,1,2");
    return seal_sample(g);
}

/* then_branch and else_branch of an If: r = Mul(t, half), t captured. */
static om_graph *branch(om_graph *g, const char *name, float factor) {
    om_graph *s = omi_graph_new_sub(g, name);
    if (!s) return NULL;
    uint32_t half = add_weight(s, "half", OM_F32, 0, NULL, &factor, 4);
    uint32_t t    = omi_graph_value_named(s, "t", 1);
    uint32_t r    = omi_graph_add_value(s, "r", OM_F32, -1, NULL);
    if (omi_failed()) return NULL;
    omi_graph_add_node(s, "Mul", "", "", 2, (const uint32_t[]){t, half}, 1, &r);
    omi_graph_add_output(s, r);
    return s;
}

static void custom_node(om_graph *g, uint32_t x, uint32_t y, uint32_t z) {
    const int64_t ints[] = {-1, 0, INT64_MIN, INT64_MAX, 300};
    const float floats[] = {0.5f, -0.0f, 1e-40f};
    const uint32_t in[] = {x, OM_NO_VALUE, y}, out[] = {OM_NO_VALUE, z};
    int32_t n = omi_graph_add_node(g, "Everything", "test.onemodel", "every thing", 3, in, 2, out);
    if (n < 0) return;
    omi_graph_attr_int(g, n, "int", -7);
    omi_graph_attr_float(g, n, "float", 0.1f);
    omi_graph_attr_string(g, n, "string", "text");
    omi_graph_attr_bytes(g, n, "bytes", "a\0\xff", 3);
    omi_graph_attr_ints(g, n, "ints", 5, ints);
    omi_graph_attr_ints(g, n, "no_ints", 0, NULL);
    omi_graph_attr_floats(g, n, "floats", 3, floats);
    om_attr *strings = omi_graph_attr_new(g, n, "strings", 7, OM_ATTR_STRINGS, 2);
    if (strings) {
        strings->strings[0] = (om_text){"one", 3};
        strings->strings[1] = (om_text){"", 0};
    }
    omi_graph_attr_tensor(g, n, "tensor", OM_I64, 2, (const int64_t[]){5, 1}, ints, sizeof ints);
    om_attr *tensors = omi_graph_attr_new(g, n, "tensors", 7, OM_ATTR_TENSORS, 2);
    om_buffer *b     = tensors ? omi_buffer_new(8) : NULL;
    if (b) {
        memcpy(b->data, floats, 8);
        if (omi_graph_tensor(g, &tensors->tensors[0], OM_F32, 1, (const int64_t[]){1}, b, 4, 4))
            omi_graph_tensor(g, &tensors->tensors[1], OM_F32, 1, (const int64_t[]){0}, b, 0, 0);
        omi_buffer_release(b);
    }
    om_graph *lone = omi_graph_new_sub(g, "");
    uint32_t v     = lone ? omi_graph_value_named(lone, "x", 1) : OM_NO_VALUE;
    om_attr *list =
        v == OM_NO_VALUE ? NULL : omi_graph_attr_new(g, n, "graphs", 6, OM_ATTR_GRAPHS, 1);
    if (!list) return;
    omi_graph_add_output(lone, v);
    list->graphs[0] = lone;
}

om_graph *sample_all(void) {
    om_graph *g = begin_sample("all");
    if (!g) return NULL;
    uint8_t text[29] = {[8] = 2, [16] = 5}; // offsets 0, 2, 5, then the bytes
    memcpy(text + 24, "hiyou", 5);
    omi_graph_add_opset(g, "test.onemodel", 3);
    int32_t n = omi_graph_symbol(g, "n"), m = omi_graph_symbol(g, "4*n");
    if (omi_failed()) return seal_sample(g);
    g->symbols[n].lo = 2, g->symbols[n].hi = 64, g->symbols[n].multiple = 2;
    om_gdim four_n           = OM_DIM_SYM(m);
    four_n.expr              = 0;
    const om_gdim in_axes[]  = {OM_DIM_SYM(n), OM_DIM_FIXED(0), OM_DIM_UNKNOWN};
    const om_gdim out_axes[] = {four_n};
    const bool yes           = true;
    uint32_t x               = omi_graph_add_value(g, "x", OM_F32, 3, in_axes);
    uint32_t odd  = omi_graph_add_value(g, "odd \x1b[31m name\n\xc3\xa9", OM_I64, 0, NULL);
    uint32_t cond = add_weight(g, "cond", OM_BOOL, 0, NULL, &yes, 1);
    uint32_t str  = add_weight(g, "words", 8, 1, (const int64_t[]){2}, text, sizeof text);
    uint32_t none = add_weight(g, "none", OM_F64, 2, (const int64_t[]){0, 7}, NULL, 0);
    uint32_t t    = omi_graph_add_value(g, "t", 0, -1, NULL);
    uint32_t z    = omi_graph_add_value(g, "z", OM_F32, 1, out_axes);
    uint32_t u    = omi_graph_add_value(g, "u", OM_F32, -1, NULL);
    if (omi_failed()) return seal_sample(g);
    omi_graph_add_input(g, x);
    omi_graph_add_input(g, odd);
    omi_graph_add_node(g, "Pick", "test.onemodel", "", 3, (const uint32_t[]){x, str, none}, 1, &t);
    custom_node(g, x, odd, z);
    om_graph *yes_branch = branch(g, "then", 0.5f), *no_branch = branch(g, "else", 2.0f);
    int32_t k = omi_failed() ? -1 : omi_graph_add_node(g, "If", "", "choose", 1, &cond, 1, &u);
    if (k < 0) return seal_sample(g);
    omi_graph_attr_graph(g, k, "then_branch", yes_branch);
    omi_graph_attr_graph(g, k, "else_branch", no_branch);
    omi_graph_add_output(g, u);
    omi_graph_add_output(g, z);
    omi_graph_add_meta(g, "zeta", "last");
    omi_graph_add_meta(g, "alpha", "");
    g->model_version = 12;
    return seal_sample(g);
}
