/*
 * test_write.c -- building, sealing, the text dump and the ONNX writer, byte for byte.
 */
#include "graph/sample.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* Spelled by hand from the wire format and onnx.proto. */
static const uint8_t small_onnx[] =
    "\x08\x09" /* ir_version 9 */
    "\x12\x08onemodel\x1a\x05"
    "0.1.0"                                                     /* producer */
    "\x3a\x84\x01"                                              /* graph, 132 bytes */
    "\x0a\x13\x0a\x01x\x0a\x01w\x12\x01t\x1a\x03mul\x22\x03Mul" /* node */
    "\x0a\x0e\x0a\x01t\x0a\x01"
    "c\x12\x01y\x22\x03"
    "Add"                                       /* node */
    "\x12\x05small"                             /* name */
    "\x2a\x15\x08\x03\x10\x01\x42\x01w\x4a\x0c" /* w: dims, FLOAT, name, raw */
    "\x00\x00\xc0\x3f\x00\x00\x00\xc0\x00\x00\x80\x3e"
    "\x2a\x0b\x10\x01\x42\x01"
    "c\x4a\x04\x00\x00\xc0\x3f" /* c: scalar */
    "\x5a\x18\x0a\x01x\x12\x13\x0a\x11\x08\x01\x12\x0d\x0a\x07\x12\x05"
    "batch\x0a\x02\x08\x03"
    "\x62\x18\x0a\x01y\x12\x13\x0a\x11\x08\x01\x12\x0d\x0a\x07\x12\x05"
    "batch\x0a\x02\x08\x03"
    "\x42\x02\x10\x14" /* opset 20 */
    "\x72\x10\x0a\x07"
    "classes\x12\x05"
    "0,1,2"; /* metadata */

static void writes_these_bytes(void **state) {
    (void)state;
    int64_t before = live_blocks();
    om_graph *g    = sample_small();
    void *data     = NULL;
    size_t n       = 0;
    assert_non_null(g);
    assert_int_equal(om_graph_save_onnx_memory(g, NULL, &data, &n), OM_OK);
    assert_int_equal(n, sizeof small_onnx - 1);
    assert_memory_equal(data, small_onnx, n);
    om_bytes_free(data, n);
    om_graph_release(g);
    assert_int_equal(live_blocks(), before);
}

static void dump_is_readable_and_safe(void **state) {
    (void)state;
    om_graph *g = sample_small();
    size_t n;
    char *s = dump_string(g, &n);
    assert_string_equal(s, "onnx ir 9, opset 20\n"
                           "meta classes: 0,1,2\n"
                           "graph \"small\"\n"
                           "input x: float32[batch,3]\n"
                           "weight w: float32[3]\n"
                           "weight c: float32[]\n"
                           "t = Mul(x, w) # mul\n"
                           "y = Add(t, c)\n"
                           "output y: float32[batch,3]\n");
    om_bytes_free(s, n);
    om_graph_release(g);
    g = sample_all();
    s = dump_string(g, &n);
    for (const char *p = s; *p; p++)
        assert_true(*p == '\n' || (unsigned char)*p >= 0x20);
    assert_non_null(strstr(s, "odd \\x1b[31m name\\n\xc3\xa9: int64[]"));
    assert_non_null(strstr(s, "axis n: from 2 to 64, multiple of 2\n"));
    assert_non_null(strstr(s, "_, z = test.onemodel.Everything(x, _, odd"));
    assert_non_null(strstr(s, "no_ints=[]"));
    om_bytes_free(s, n);
    om_graph_release(g);
}

static om_graph *empty_graph(void) {
    om_graph *g = omi_graph_new("g", 0);
    assert_non_null(g);
    return g;
}

static void seal_refuses_what_is_wrong(void **state) {
    (void)state;
    int64_t before = live_blocks();
    om_graph *g    = empty_graph();
    uint32_t a     = omi_graph_add_value(g, "a", 1, 0, NULL),
             b     = omi_graph_add_value(g, "b", 1, 0, NULL);
    omi_graph_add_node(g, "Relu", "", "first", 1, &a, 1, &b);
    assert_int_equal(omi_graph_seal(g), OM_ERR_MALFORMED);
    assert_string_equal(expect_error(OM_ERR_MALFORMED),
                        "node 'first' (Relu, #0) reads 'a', which nothing produces");
    omi_graph_add_node(g, "Relu", "", "", 1, &b, 1, &a);
    assert_int_equal(omi_graph_seal(g), OM_ERR_MALFORMED);
    assert_non_null(strstr(expect_error(OM_ERR_MALFORMED), "before node #1 (Relu) produces it"));
    assert_int_equal(omi_graph_add_node(g, "Abs", "", "", 1, &b, 1, &a), -1);
    assert_string_equal(expect_error(OM_ERR_MALFORMED), "value 'a' is produced twice");
    assert_int_equal(omi_graph_add_value(g, "a", 1, 0, NULL), OM_NO_VALUE);
    expect_error(OM_ERR_MALFORMED);
    assert_false(omi_graph_attr_int(g, 0, "k", 1) && omi_graph_attr_int(g, 0, "k", 2));
    assert_non_null(strstr(expect_error(OM_ERR_MALFORMED), "attribute 'k' twice"));
    om_graph_release(g);

    g = empty_graph();
    a = omi_graph_add_value(g, "a", 1, 0, NULL);
    omi_graph_add_input(g, a);
    omi_graph_add_node(g, "Relu", "", "", 1, &a, 0, NULL);
    assert_int_equal(omi_graph_seal(g), OM_ERR_MALFORMED);
    expect_error(OM_ERR_MALFORMED);
    om_graph_release(g);

    g          = empty_graph(); // y = Add(x, y): a node that reads what it makes
    uint32_t x = omi_graph_add_value(g, "x", 1, 0, NULL),
             y = omi_graph_add_value(g, "y", 1, 0, NULL);
    omi_graph_add_input(g, x);
    omi_graph_add_node(g, "Add", "", "own", 2, (const uint32_t[]){x, y}, 1, &y);
    omi_graph_add_output(g, y);
    assert_int_equal(omi_graph_seal(g), OM_ERR_MALFORMED);
    assert_non_null(
        strstr(expect_error(OM_ERR_MALFORMED), "reads 'y' before node 'own' (Add, #0)"));
    om_graph_release(g);

    g = empty_graph();
    a = omi_graph_add_value(g, "a", 1, 0, NULL);
    omi_graph_add_output(g, a);
    assert_int_equal(omi_graph_seal(g), OM_ERR_MALFORMED);
    assert_non_null(strstr(expect_error(OM_ERR_MALFORMED), "list of outputs reads 'a'"));
    om_graph_release(g);
    assert_int_equal(live_blocks(), before);
}

static void subgraphs_capture_through_levels(void **state) {
    (void)state;
    om_graph *g = empty_graph();
    uint32_t x  = omi_graph_add_value(g, "x", OM_F32, 0, NULL),
             y  = omi_graph_add_value(g, "y", 0, -1, NULL);
    omi_graph_add_input(g, x);
    om_graph *s1 = omi_graph_new_sub(g, "s1"), *s2 = omi_graph_new_sub(s1, "s2");
    uint32_t a = omi_graph_value_named(s1, "a", 1), b = omi_graph_value_named(s2, "b", 1);
    uint32_t x2 = omi_graph_value_named(s2, "x", 1);
    omi_graph_add_node(s2, "Relu", "", "", 1, &x2, 1, &b);
    omi_graph_add_output(s2, b);
    int32_t k1 = omi_graph_add_node(s1, "Do", "t", "", 0, NULL, 1, &a);
    omi_graph_attr_graph(s1, k1, "body", s2);
    omi_graph_add_output(s1, a);
    int32_t k = omi_graph_add_node(g, "Do", "t", "", 0, NULL, 1, &y);
    omi_graph_attr_graph(g, k, "body", s1);
    assert_int_equal(omi_graph_seal(g), OM_OK);
    uint32_t x1 = omi_graph_find(s1, "x", 1);
    assert_int_not_equal(x1, OM_NO_VALUE);
    assert_true(s1->values[x1].captured && s2->values[x2].captured);
    assert_false(g->values[x].captured);
    assert_int_equal(s1->values[x1].dtype, OM_F32);
    assert_int_equal(s2->values[x2].dtype, OM_F32);
    om_graph_release(g);

    g             = empty_graph();
    om_graph *top = g, *last = NULL;
    for (int i = 0; i < OM_GRAPH_DEPTH; i++)
        assert_non_null(last = omi_graph_new_sub(i ? last : top, ""));
    assert_null(omi_graph_new_sub(last, ""));
    expect_error(OM_ERR_LIMIT);
    om_graph_release(g);
}

static void metadata_is_sorted_and_guarded(void **state) {
    (void)state;
    om_graph *g = sample_all();
    assert_int_equal(om_graph_n_meta(g), 2);
    assert_string_equal(om_graph_meta_key(g, 0), "alpha");
    assert_string_equal(om_graph_meta(g, "zeta"), "last");
    assert_null(om_graph_meta(g, "none"));
    assert_int_equal(om_graph_set_meta(g, "m", "1"), OM_OK);
    assert_int_equal(om_graph_set_meta(g, "alpha", "2"), OM_OK);
    assert_int_equal(om_graph_set_meta(g, "zeta", NULL), OM_OK);
    assert_int_equal(om_graph_set_meta(g, "zeta", NULL), OM_OK);
    assert_int_equal(om_graph_n_meta(g), 2);
    assert_string_equal(om_graph_meta_key(g, 1), "m");
    assert_string_equal(om_graph_meta(g, "alpha"), "2");
    om_graph_retain(g);
    assert_int_equal(om_graph_set_meta(g, "m", "1"), OM_ERR_STATE);
    expect_error(OM_ERR_STATE);
    om_graph_release(g);
    assert_int_equal(om_graph_set_meta(g, "\xff", "1"), OM_ERR_ARG);
    expect_error(OM_ERR_ARG);
    om_graph_release(g);
}

static void getters_describe_and_refuse(void **state) {
    (void)state;
    om_graph *g = sample_all();
    om_value_info v;
    om_node_info n;
    om_init_info t;
    assert_int_equal(om_graph_input(g, 0, &v), OM_OK);
    assert_int_equal(v.rank, 3);
    assert_string_equal(v.axes[0].symbol, "n");
    assert_int_equal(v.axes[0].size, -1);
    assert_int_equal(v.axes[0].lo, 2);
    assert_int_equal(v.axes[0].hi, 64);
    assert_int_equal(v.axes[1].size, 0);
    assert_null(v.axes[2].symbol);
    assert_int_equal(om_graph_output(g, 0, &v), OM_OK);
    assert_int_equal(v.rank, -1);
    assert_int_equal(om_graph_n_initializers(g), 3);
    assert_int_equal(om_graph_initializer(g, 0, &t), OM_OK);
    assert_int_equal(t.bytes, 1);
    assert_int_equal(*(const char *)t.data, 1);
    assert_int_equal(om_graph_node(g, 1, &n), OM_OK);
    assert_string_equal(n.domain, "test.onemodel");
    assert_string_equal(om_graph_node_input(g, 1, 1), "");
    assert_string_equal(om_graph_node_output(g, 1, 1), "z");
    assert_int_equal(om_graph_opset(g), 20);
    assert_int_equal(om_graph_ir_version(g), 9);
    assert_int_equal(om_graph_input(g, 2, &v), OM_ERR_ARG);
    expect_error(OM_ERR_ARG);
    assert_int_equal(om_graph_node(NULL, 0, &n), OM_ERR_ARG);
    expect_error(OM_ERR_ARG);
    assert_string_equal(om_graph_node_input(g, -1, 0), "");
    expect_error(OM_ERR_ARG);
    assert_int_equal(om_graph_initializer(g, 0, NULL), OM_ERR_ARG);
    expect_error(OM_ERR_ARG);
    om_graph_release(g);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(writes_these_bytes),
        cmocka_unit_test(dump_is_readable_and_safe),
        cmocka_unit_test(seal_refuses_what_is_wrong),
        cmocka_unit_test(subgraphs_capture_through_levels),
        cmocka_unit_test(metadata_is_sorted_and_guarded),
        cmocka_unit_test(getters_describe_and_refuse),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
