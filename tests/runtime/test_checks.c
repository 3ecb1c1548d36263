/*
 * test_checks.c -- what a file may say about a node and what it may not: every fault of one node is
 * listed by om_graph_check with the node's name, and a session is refused. And what looks like a
 * fault but is none, with the right numbers.
 */
#include "runtime/build.h"

#include "compute/elementwise.h"
#include "compute/matmul.h"
#include "graphops/node.h"

static char listed[4000];
static int lines;

static int collect_line(void *ctx, const char *text, size_t n) {
    (void)ctx;
    size_t used = strlen(listed);
    snprintf(listed + used, sizeof listed - used, "%.*s", (int)n, text);
    lines++;
    return 0;
}

static om_status check_graph(om_graph *g, om_arith arith) {
    listed[0] = 0;
    lines     = 0;
    return om_graph_check(g, arith, collect_line, NULL);
}

/* Operands for every case: image [1,1,8,8], kernel [1,1,3,3] (a constant), list [4], matrix [2,3].
 */
static om_graph *with_operands(int64_t opset) {
    static const float weights[9] = {1, 1, 1, 1, 1, 1, 1, 1, 1};
    om_graph *g                   = begin(opset);
    in(g, "image", OM_F32, "1,1,8,8");
    in(g, "list", OM_F32, "4");
    in(g, "matrix", OM_F32, "2,3");
    constant(g, "kernel", OM_F32, 4, (int64_t[]){1, 1, 3, 3}, weights);
    return g;
}

typedef struct fault {
    const char *type, *from, *to;
    int64_t opset;
    char kind; /* of the attribute: i, l (ints), s, f, 0 none */
    const char *name;
    int n;
    int64_t v[4];
    const char *text; /* must be listed */
} fault;

static om_graph *graph_of(const fault *f, const char *k_name, int n, const int64_t *k) {
    om_graph *g = with_operands(f->opset);
    if (n) constant(g, k_name, OM_I64, 1, (int64_t[]){n}, k);
    int32_t at = node(g, f->type, f->from, f->to);
    if (f->kind == 'i') omi_graph_attr_int(g, at, f->name, f->v[0]);
    if (f->kind == 'l') omi_graph_attr_ints(g, at, f->name, (size_t)f->n, f->v);
    if (f->kind == 's') omi_graph_attr_string(g, at, f->name, "zz");
    if (f->kind == 'f') omi_graph_attr_float(g, at, f->name, (float)f->v[0]);
    out(g, "y");
    return done(g);
}

static void expect_listed(om_graph *g, const fault *f) {
    char who[80];
    snprintf(who, sizeof who, "'op_y' (%s, #0): ", f->type);
    om_status s = check_graph(g, OM_EXACT);
    check_ok();
    if (s != OM_ERR_MALFORMED && s != OM_ERR_VALUE)
        fail_msg("%s: status %d, listed: %s", f->type, (int)s, listed);
    assert_int_equal(lines, 1);
    if (!strstr(listed, who) || !strstr(listed, f->text))
        fail_msg("'%s' is not in: %s", f->text, listed);
    assert_null(om_session_new(g, NULL));
    om_error e;
    assert_int_equal(om_catch(&e), s);
    assert_non_null(strstr(e.message, f->text));
    om_graph_release(g);
}

/* E1: what a version of a node does not have is not ignored. */
static void test_attributes_a_form_does_not_have_are_listed(void **state) {
    (void)state;
    static const fault faults[] = {
        {"ReduceMean", "matrix", "y", 20, 'l', "axes", 1, {1}, "attribute 'axes' is not defined"},
        {"ReduceMean", "matrix", "y", 18, 'l', "axes", 1, {1}, "attribute 'axes' is not defined"},
        {"ReduceSum", "matrix", "y", 13, 'l', "axes", 1, {1}, "attribute 'axes' is not defined"},
        {"ReduceMean", "matrix", "y", 17, 'i', "noop_with_empty_axes", 1, {1}, "not defined"},
        {"Clip", "list", "y", 13, 'f', "min", 1, {1}, "attribute 'min' is not defined"},
        {"Clip", "list", "y", 11, 'f', "max", 1, {1}, "attribute 'max' is not defined"},
        {"Squeeze", "matrix", "y", 13, 'l', "axes", 1, {0}, "attribute 'axes' is not defined"},
        {"Relu", "list", "y", 20, 'i', "axis", 1, {1}, "attribute 'axis' is not defined"},
        {"Add", "list list", "y", 20, 'i', "broadcast", 1, {1}, "attribute 'broadcast'"},
        {"Softmax", "list", "y", 20, 's', "axis", 1, {1}, "attribute 'axis' is a text"},
        {"Softmax", "list", "y", 20, 'f', "axis", 1, {0}, "it must be an integer"},
        {"Softmax", "list", "y", 20, 'l', "axis", 1, {0}, "attribute 'axis' is integers"},
        {"LayerNormalization", "list list", "y", 20, 'i', "epsilon", 1, {1}, "must be a float"},
        {"Gelu", "list", "y", 20, 's', "approximate", 1, {1}, "'zz'; none, tanh are defined"},
        {"ReduceMax", "list", "y", 20, 'i', "keepdims", 1, {2}, "0 and 1 are defined"},
        {"Concat", "list list", "y", 20, 0, NULL, 0, {0}, "attribute 'axis' is missing"},
        {"Add", "list", "y", 20, 0, NULL, 0, {0}, "it has 1 inputs; at least 2"},
        {"Relu", "list list", "y", 20, 0, NULL, 0, {0}, "it has 2 inputs; 1 are defined"},
        {"Gather", "list list", "y", 20, 0, NULL, 0, {0}, "it must be int32, int64"},
    };
    for (size_t i = 0; i < OM_COUNT(faults); i++)
        expect_listed(graph_of(&faults[i], NULL, 0, NULL), &faults[i]);
}

/* Operands of one letter have one type, whichever comes first. */
static void test_operands_have_one_type(void **state) {
    (void)state;
    for (int swap = 0; swap < 2; swap++) {
        om_graph *g = begin(20);
        in(g, "a", swap ? OM_I64 : OM_F32, "n");
        in(g, "b", swap ? OM_F32 : OM_I64, "n");
        node(g, "Add", "a b", "y");
        out(g, "y");
        assert_non_null(done(g));
        assert_int_equal(check_graph(g, OM_EXACT), OM_ERR_MALFORMED);
        assert_non_null(strstr(listed, "they must have one type"));
        om_graph_release(g);
    }
}

/* E7: values that no node can have. */
static void test_values_no_node_can_have_are_listed(void **state) {
    (void)state;
    const int64_t huge   = (int64_t)1 << 62;
    const fault faults[] = {
        {"Conv", "image kernel", "y", 20, 'l', "strides", 2, {0, 1}, "attribute 'strides' has 0"},
        {"Conv", "image kernel", "y", 20, 'i', "group", 1, {0}, "attribute 'group' is 0"},
        {"Conv", "image kernel", "y", 20, 'i', "group", 1, {-1}, "attribute 'group' is -1"},
        {"Conv", "image kernel", "y", 20, 'l', "pads", 4, {huge, huge, huge, huge}, "'pads'"},
        {"Conv", "image kernel", "y", 20, 'l', "dilations", 2, {1, 0}, "'dilations' has 0"},
        {"Conv", "image kernel", "y", 20, 'l', "strides", 1, {1}, "'strides' has 1 entries"},
        {"MaxPool", "image", "y", 20, 'l', "kernel_shape", 2, {0, 0}, "'kernel_shape' has 0"},
        {"Softmax", "list", "y", 20, 'i', "axis", 1, {99}, "axis 99 is outside rank 1"},
        {"Softmax", "list", "y", 20, 'i', "axis", 1, {-2}, "axis -2 is outside rank 1"},
        {"Gather", "list list_", "y", 20, 'i', "axis", 1, {1}, "axis 1 is outside rank 1"},
        {"Transpose", "matrix", "y", 20, 'l', "perm", 2, {0, 0}, "not a permutation of 2 axes"},
        {"Transpose", "matrix", "y", 20, 'l', "perm", 3, {0, 1, 2}, "3 entries for rank 2"},
        {"ReduceMax", "matrix", "y", 17, 'l', "axes", 1, {2}, "axis 2 is outside rank 2"},
        {"Flatten", "matrix", "y", 20, 'i', "axis", 1, {3}, "axis 3 is outside rank 2"},
        {"ArgMax", "matrix", "y", 20, 'i', "axis", 1, {INT64_MIN}, "outside rank 2"},
        {"Conv", "matrix kernel", "y", 20, 0, NULL, 0, {0}, "'matrix' has rank 2"},
        {"MatMul", "matrix list", "y", 20, 0, NULL, 0, {0}, "the last axis of 'matrix' is 3"},
    };
    for (size_t i = 0; i < OM_COUNT(faults); i++)
        expect_listed(graph_of(&faults[i], "list_", 1, (int64_t[]){0}), &faults[i]);

    const fault step = {"Slice", "list a b a k", "y", 20, 0, NULL, 0, {0}, "step 0 is 0"};
    om_graph *g      = with_operands(20);
    ints(g, "a", 0);
    ints(g, "b", 4);
    ints(g, "k", 0);
    node(g, step.type, step.from, step.to);
    out(g, "y");
    expect_listed(done(g), &step);
    const fault part = {"Split", "list k", "y z", 20, 0, NULL, 0, {0}, "size 1 is -4"};
    expect_listed(graph_of(&part, "k", 2, (int64_t[]){8, -4}), &part);
    const fault two = {"Reshape", "list k", "y", 20, 0, NULL, 0, {0}, "more than one -1"};
    expect_listed(graph_of(&two, "k", 2, (int64_t[]){-1, -1}), &two);
    const fault neg = {"Reshape", "list k", "y", 20, 0, NULL, 0, {0}, "target 1 is -2"};
    expect_listed(graph_of(&neg, "k", 2, (int64_t[]){2, -2}), &neg);
}

/* E7: the axis of a value of unknown rank, and of symbolic sizes, is still no axis 99. */
static void test_axes_without_known_sizes_are_listed(void **state) {
    (void)state;
    om_graph *g = begin(20);
    in(g, "x", OM_F32, "batch,4");
    node(g, "Relu", "x", "h");
    set_int(g, node(g, "Softmax", "h", "y"), "axis", 99);
    set_int(g, node(g, "Softmax", "x", "z"), "axis", 2);
    out(g, "y");
    out(g, "z");
    assert_non_null(done(g));
    assert_int_equal(check_graph(g, OM_EXACT), OM_ERR_MALFORMED);
    check_ok();
    assert_int_equal(lines, 2);
    assert_non_null(strstr(listed, "'op_y' (Softmax, #1): axis 99 is outside every rank up to 8"));
    assert_non_null(strstr(listed, "'op_z' (Softmax, #2): axis 2 is outside rank 2 of 'x'"));
    om_graph_release(g);
}

/* E6: a graph that is wrong is malformed; one that only lacks kernels is unsupported; both: the
 * second, and all of them are listed. */
static void test_check_says_malformed(void **state) {
    (void)state;
    om_graph *g = begin(20);
    in(g, "x", OM_F32, "2,3");
    in(g, "z", OM_F32, "4,5");
    node(g, "Add", "x z", "a");
    node(g, "Relu", "a", "b"); // its input has no size: not listed again
    node(g, "MatMul", "x z", "c");
    out(g, "b");
    out(g, "c");
    assert_non_null(done(g));
    assert_int_equal(check_graph(g, OM_EXACT), OM_ERR_MALFORMED);
    check_ok();
    assert_int_equal(lines, 2);
    assert_non_null(strstr(listed, "'op_a' (Add, #0): 'x' [2,3] and 'z' [4,5] cannot"));
    assert_non_null(strstr(listed, "'op_c' (MatMul, #2): "));
    assert_null(om_session_new(g, NULL));
    check_error(OM_ERR_MALFORMED, "op_a");
    om_graph_release(g);

    g = begin(20);
    in(g, "x", OM_F32, "2,3");
    set_int(g, node(g, "Relu", "x", "a"), "alpha", 1);
    node(g, "Frobnicate", "a", "b");
    out(g, "b");
    assert_non_null(done(g));
    assert_int_equal(check_graph(g, OM_EXACT), OM_ERR_UNSUPPORTED);
    assert_int_equal(lines, 2);
    assert_non_null(strstr(listed, "attribute 'alpha'"));
    assert_non_null(strstr(listed, "no operator Frobnicate"));
    om_graph_release(g);

    g = begin(20); // constants alone: found while they are folded
    ints(g, "a", 7);
    ints(g, "b", 0);
    node(g, "Div", "a b", "y");
    out(g, "y");
    assert_non_null(done(g));
    assert_int_equal(check_graph(g, OM_EXACT), OM_ERR_VALUE);
    check_ok();
    assert_int_equal(lines, 1);
    assert_non_null(strstr(listed, "divisor is zero"));
    om_graph_release(g);

    g = begin(20); // a sequence is no fault of the file
    in(g, "x", OM_DTYPE_NONE, "");
    g->values[value_of(g, "x")].type_text = "seq(tensor(float))";
    node(g, "Identity", "x", "y");
    out(g, "y");
    assert_non_null(done(g));
    assert_int_equal(check_graph(g, OM_EXACT), OM_ERR_UNSUPPORTED);
    assert_non_null(strstr(listed, "input 'x': it is seq(tensor(float)); tensors are computed"));
    om_graph_release(g);

    g = begin(20);
    in(g, "x", OM_F32, "2,3");
    node(g, "Relu", "x", "y");
    out(g, "y");
    assert_non_null(done(g));
    assert_int_equal(check_graph(g, OM_EXACT), OM_OK);
    assert_int_equal(lines, 0);
    om_graph_release(g);
}

/* E3: equal pieces, of which only the last may be shorter. */
static void test_split_into_equal_parts(void **state) {
    (void)state;
    static const struct {
        int64_t n, parts;
        bool fits;
    } cases[] = {{5, 4, false}, {5, 3, true},  {4, 3, false}, {6, 4, false}, {3, 2, true},
                 {1, 2, false}, {1, 3, false}, {9, 5, true},  {10, 7, false}};
    for (size_t i = 0; i < OM_COUNT(cases); i++) {
        char to[64] = "", axis[8];
        om_graph *g = begin(18);
        snprintf(axis, sizeof axis, "%d", (int)cases[i].n);
        for (int64_t k = 0; k < cases[i].parts; k++)
            snprintf(to + strlen(to), sizeof to - strlen(to), "%sy%d", k ? " " : "", (int)k);
        in(g, "x", OM_F32, axis);
        set_int(g, node(g, "Split", "x", to), "num_outputs", cases[i].parts);
        out(g, "y0");
        assert_non_null(done(g));
        om_status s = check_graph(g, OM_EXACT);
        if (s != (cases[i].fits ? OM_OK : OM_ERR_MALFORMED))
            fail_msg("%s into %d: %s", axis, (int)cases[i].parts, listed);
        om_graph_release(g);
    }
}

/* E9: BatchNormalization that trains is refused by name, and its older and newer forms run. */
static void test_batch_norm_of_training_is_refused(void **state) {
    (void)state;
    for (int64_t mode = 0; mode < 2; mode++) {
        om_graph *g = begin(15);
        in(g, "x", OM_F32, "2,1");
        floats(g, "s", 2);
        floats(g, "b", 1);
        floats(g, "m", 3);
        floats(g, "v", 4);
        int32_t at = node(g, "BatchNormalization", "x s b m v", "y");
        set_int(g, at, "training_mode", mode);
        omi_graph_attr_float(g, at, "epsilon", 0);
        out(g, "y");
        assert_non_null(done(g));
        assert_int_equal(check_graph(g, OM_EXACT), mode ? OM_ERR_UNSUPPORTED : OM_OK);
        if (mode) {
            assert_non_null(strstr(listed, "'op_y' (BatchNormalization, #0): training_mode = 1"));
            assert_null(om_session_new(g, NULL));
            check_error(OM_ERR_UNSUPPORTED, "training_mode = 1");
        } else {
            om_session *s = om_session_new(g, NULL);
            check_ok();
            OM_SCOPE {
                float x[2] = {3, 5};
                check_values(om_session_call(s, om_from(x, OM_F32, OM_DIMS(2, 1))), 1, 3);
            }
            om_session_free(s);
        }
        om_graph_release(g);
    }
}

/* F32: axes are an attribute of ReduceMax up to opset 17, and an input from 18 on. */
static void test_axes_attribute_up_to_opset_17(void **state) {
    (void)state;
    static const char *const types[] = {"ReduceMax", "ReduceMin", "ReduceMean", "ReduceProd"};
    static const float want[4][2]    = {{3, 6}, {1, 4}, {2, 5}, {6, 120}};
    for (int64_t opset = 11; opset <= 17; opset++)
        for (int t = 0; t < 4; t++) {
            om_graph *g = begin(opset);
            in(g, "x", OM_F32, "2,3");
            int32_t at = node(g, types[t], "x", "y");
            set_ints(g, at, "axes", 1, (int64_t[]){1});
            set_int(g, at, "keepdims", 0);
            out(g, "y");
            om_session *s = session(g);
            OM_SCOPE {
                float x[6]   = {1, 2, 3, 4, 5, 6};
                om_tensor *y = om_session_call(s, om_from(x, OM_F32, OM_DIMS(2, 3)));
                check_floats(y, 2, want[t]);
            }
            om_session_free(s);
        }
}

/* E2: "" and "ai.onnx" are one domain, and a file may name both. */
static void test_both_names_of_the_default_domain(void **state) {
    (void)state;
    om_graph *g = omi_graph_new("test", 0);
    assert_true(omi_graph_add_opset(g, "ai.onnx", 17));
    assert_true(omi_graph_add_opset(g, "", 17));
    in(g, "x", OM_F32, "2");
    uint32_t a = value_of(g, "x"), b = value_of(g, "y");
    omi_graph_add_node(g, "Neg", "ai.onnx", "n", 1, &a, 1, &b);
    node(g, "Neg", "y", "z");
    out(g, "z");
    om_session *s = session(g);
    OM_SCOPE {
        check_values(om_session_call(s, om_from((float[]){3, -5}, OM_F32, OM_DIMS(2))), 3, -5);
    }
    om_session_free(s);
    g = omi_graph_new("test", 0); // two answers to one question are none
    assert_true(omi_graph_add_opset(g, "", 17));
    assert_false(omi_graph_add_opset(g, "ai.onnx", 12));
    check_error(OM_ERR_MALFORMED, "imported twice, as 17 and 12");
    om_graph_release(g);
}

/* E2: any of nothing is false, all of nothing is true. */
static void test_extremes_of_no_bools(void **state) {
    (void)state;
    for (int min = 0; min < 2; min++) {
        om_graph *g = begin(20);
        in(g, "x", OM_BOOL, "2,n");
        ints(g, "a", 1);
        set_int(g, node(g, min ? "ReduceMin" : "ReduceMax", "x a", "y"), "keepdims", 0);
        out(g, "y");
        om_session *s = session(g);
        OM_SCOPE {
            om_tensor *y = om_session_call(s, om_empty(OM_BOOL, OM_DIMS(2, 0)));
            check_ok();
            assert_int_equal(om_dtype_of(y), OM_BOOL);
            assert_memory_equal(om_data(y), ((uint8_t[]){(uint8_t)min, (uint8_t)min}), 2);
        }
        om_session_free(s);
    }
}

/* ---- the table ---------------------------------------------------------------------------------
 */

/* Types that a row admits are those that its kernel has, and versions of a type do not overlap. */
static void test_rows_agree_with_the_kernels(void **state) {
    (void)state;
    size_t n;
    const om_node_def *rows = omi_node_rows(&n);
    assert_true(n > 100);
    for (size_t i = 0; i < n; i++) {
        const om_node_def *d = &rows[i];
        int32_t oldest;
        for (int32_t v = d->since; v <= (d->until ? d->until : OM_OPSET_MAX); v++)
            if (omi_node_def(d->type, "", v, &oldest) != d) fail_msg("%s at %d", d->type, (int)v);
        assert_ptr_equal(omi_node_def(d->type, "ai.onnx", d->since, &oldest), d);
        assert_null(omi_node_def(d->type, "elsewhere", d->since, &oldest));
        assert_int_equal(oldest, 0);
        bool unary = d->infer == omi_node_def("Abs", "", 20, &oldest)->infer;
        bool two   = d->infer == omi_node_def("Add", "", 20, &oldest)->infer;
        for (int t = 1; t < 16 && (unary || two); t++) {
            bool has = unary ? omi_unary_supports((om_unary_kind)d->arg, (om_dtype)t)
                             : omi_binary_supports((om_binary_kind)d->arg, (om_dtype)t);
            if (has != (d->in[0].types >> t & 1)) fail_msg("%s of type %d", d->type, t);
        }
    }
    int32_t oldest, other = 0;
    for (size_t i = 0; i < n; i++)
        other += omi_node_select(&rows[i], true) != omi_node_select(&rows[i], false);
    assert_int_equal(other,
                     8); // Exp, Tanh, Sigmoid, Gelu, and both forms of Softmax and LogSoftmax
    assert_null(omi_node_def("Relu", "", 5, &oldest));
    assert_int_equal(oldest, 6);
    assert_null(omi_node_def("Frobnicate", "", 20, &oldest));
    assert_int_equal(oldest, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        OM_TEST(test_attributes_a_form_does_not_have_are_listed),
        OM_TEST(test_operands_have_one_type),
        OM_TEST(test_values_no_node_can_have_are_listed),
        OM_TEST(test_axes_without_known_sizes_are_listed),
        OM_TEST(test_check_says_malformed),
        OM_TEST(test_split_into_equal_parts),
        OM_TEST(test_batch_norm_of_training_is_refused),
        OM_TEST(test_axes_attribute_up_to_opset_17),
        OM_TEST(test_both_names_of_the_default_domain),
        OM_TEST(test_extremes_of_no_bools),
        OM_TEST(test_rows_agree_with_the_kernels),
    };
    return cmocka_run_group_tests_name("checks", tests, NULL, NULL);
}
