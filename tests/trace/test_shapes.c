/*
 * test_shapes.c -- sizes baked into shapes, and norms, pools, activations: cases A and B, taken
 * from public reports about other tracers (tracing cases, by id). Each refusal has a twin that
 * traces.
 */
#include "trace_test.h"

static om_graph *traced(model_fn f, int rank, const int64_t *dims, int n, const char *const *axes) {
    om_graph *g = trace_one(f, rank, dims, n, axes);
    check_ok();
    assert_non_null(g);
    return g;
}
#define DIMS(g, want)             assert_string_equal(output_axes((g), 0).s, want)
#define OPERAND(g, type, k, want) assert_string_equal(operand_of((g), type, k).s, want)

static om_tensor *a1(om_tensor *x) {
    return om_permute(om_reshape(x, OM_DIMS(5, 12, 2)), OM_DIMS(1, 0, 2));
}
static void test_A1_heads(void **state) {
    (void)state;
    om_graph *g = traced(a1, OM_DIMS(5, 3, 8), OM_AXES("T", "B"));
    OPERAND(g, "Reshape", 0, "Concat(Shape(x,0,1),Mul(Shape(x,1,2),[4]),[2]) allowzero");
    DIMS(g, "(4*B,T,2)");
    om_graph_release(g);
}

static om_tensor *a4(om_tensor *x) {
    x = om_permute(om_reshape(x, OM_DIMS(3, 2, 4, 5, 5)), OM_DIMS(0, 2, 1, 3, 4));
    return om_reshape(x, OM_DIMS(3, 8, 5, 5));
}
static void test_A4_channel_shuffle(void **state) {
    (void)state;
    om_graph *g = traced(a4, OM_DIMS(3, 8, 5, 5), OM_AXES("N"));
    OPERAND(g, "Reshape", 0, "[-1,2,4,5,5]");
    OPERAND(g, "Reshape", 1, "[-1,8,5,5]");
    assert_int_equal(count_nodes(g, "Shape"), 0);
    om_graph_release(g);
}

static om_tensor *a5(om_tensor *x) {
    return om_reshape(x, OM_DIMS(2, 2, 7, 3, 7, 6));
}
static om_tensor *a5_twin(om_tensor *x) {
    return om_reshape(x, OM_DIMS(2, 14, 21, 2, 3));
}
static void test_A5_windows(void **state) {
    (void)state;
    assert_null(trace_one(a5, OM_DIMS(2, 14, 21, 6), OM_AXES(NULL, "H", "W")));
    check_trace_error(OM_TRACE_SYMBOLIC_SHAPE, "om_reshape", "H", "14", "[2,7]");
    om_graph *g = traced(a5_twin, OM_DIMS(2, 14, 21, 6), OM_AXES(NULL, "H", "W"));
    DIMS(g, "(2,H,W,2,3)");
    om_graph_release(g);
}

static om_tensor *a10(om_tensor *x) {
    om_tensor *pos = om_cast(om_arange(0, 7, 1), OM_F32);
    return om_add(x, om_reshape(pos, OM_DIMS(7, 1)));
}
static om_tensor *a10_twin(om_tensor *x) {
    om_tensor *pos = om_cast(om_arange_like(x, 1), OM_F32);
    return om_add(x, om_unsqueeze(pos, OM_DIMS(1)));
}
static void test_A10_arange(void **state) {
    (void)state;
    assert_null(trace_one(a10, OM_DIMS(3, 7, 8), OM_AXES(NULL, "T")));
    check_trace_error(OM_TRACE_SYMBOLIC_SHAPE, "om_add", "fixed size 7", "'T'", "om_arange_like");
    om_graph *g = traced(a10_twin, OM_DIMS(3, 7, 8), OM_AXES(NULL, "T"));
    DIMS(g, "(3,T,8)");
    assert_string_equal(node_list(g).s, "Shape Squeeze Range Cast Unsqueeze Add");
    om_graph_release(g);
}

static om_tensor *a12(om_tensor *x) {
    return om_expand(x, OM_DIMS(4, 3));
}
static void test_A12_expand(void **state) {
    (void)state;
    om_graph *g = traced(a12, OM_DIMS(4, 1), OM_AXES("N"));
    OPERAND(g, "Expand", 0, "[1,3]");
    DIMS(g, "(N,3)");
    om_graph_release(g);
}

static om_tensor *a15(om_tensor *x) {
    int64_t h = om_dim(x, 2);
    return om_slice(x, 2, (h - 8) / 2, (h - 8) / 2 + 8, 1);
}
static void test_A15_crop(void **state) {
    (void)state;
    assert_null(trace_one(a15, OM_DIMS(2, 3, 12, 11), OM_AXES(NULL, NULL, "H")));
    check_trace_error(OM_TRACE_SYMBOLIC_SHAPE, "om_slice", "'H'", "sliced in part");
    om_graph *g = traced(a15, OM_DIMS(2, 3, 12, 11), OM_AXES("N")); /* only N symbolic */
    DIMS(g, "(N,3,8,11)");
    om_graph_release(g);
}

/* A loop over T, upwards, downwards, and all but the last. */
static om_tensor *steps(om_tensor *x, int64_t from, int64_t to) {
    om_tensor *parts[16];
    int n = 0;
    for (int64_t t = from; t < to; t++)
        parts[n++] = om_select(x, 1, t);
    return om_stack(n, parts, 1);
}
static om_tensor *a18_up(om_tensor *x) {
    return steps(x, 0, om_dim(x, 1));
}
static om_tensor *a18_down(om_tensor *x) {
    return steps(x, -om_dim(x, 1), 0);
}
static om_tensor *a18_some(om_tensor *x) {
    return steps(x, 0, 3);
}
static om_tensor *a18_unused(om_tensor *x) {
    a18_down(x); /* scratch that no output needs */
    return om_neg(x);
}
static void test_A18_loop(void **state) {
    (void)state;
    assert_null(trace_one(a18_up, OM_DIMS(3, 7, 8), OM_AXES(NULL, "T")));
    check_trace_error(OM_TRACE_SYMBOLIC_SHAPE, "om_select", "'T'", "loop");
    assert_null(trace_one(a18_down, OM_DIMS(3, 7, 8), OM_AXES(NULL, "T"))); /* TD-17, at finish */
    check_trace_error(OM_TRACE_SYMBOLIC_SHAPE, "om_trace_finish", "'T'", "unrolled", "7");
    om_graph *g = traced(a18_some, OM_DIMS(3, 7, 8), OM_AXES(NULL, "T"));
    assert_non_null(strstr(om_trace_report(g), "needs a size above it"));
    om_graph_release(g);
    g = traced(a18_up, OM_DIMS(3, 7, 8), OM_AXES("N")); /* the axis is fixed: an honest loop */
    assert_int_equal(count_nodes(g, "Gather"), 7);
    om_graph_release(g);
    g = traced(a18_unused, OM_DIMS(3, 7, 8), OM_AXES(NULL, "T"));
    assert_string_equal(node_list(g).s, "Neg");
    om_graph_release(g);
}

static om_tensor *a19(om_tensor *x) {
    return om_select(x, 1, -1);
}
static void test_A19_last_token(void **state) {
    (void)state;
    om_graph *g        = traced(a19, OM_DIMS(3, 7, 8), OM_AXES("N", "T"));
    const om_ginit *in = init_named(g, "const_1");
    int64_t index;
    assert_non_null(in);
    memcpy(&index, in->buf->data, sizeof index);
    assert_int_equal(index, -1);
    assert_int_equal(in->rank, 0);
    DIMS(g, "(N,8)");
    om_graph_release(g);
}

static om_tensor *a23(om_tensor *x) {
    return om_add(om_mul(om_mean(x, OM_DIMS(2, 3), true), x), x);
}
static void test_A23_squeeze_excite(void **state) {
    (void)state;
    om_graph *g = traced(a23, OM_DIMS(2, 3, 12, 11), OM_AXES(NULL, NULL, "H", "W"));
    assert_string_equal(node_list(g).s, "ReduceMean Mul Add");
    DIMS(g, "(2,3,H,W)");
    om_graph_release(g);
}

static om_tensor *a25(om_tensor *x) {
    om_tensor *w = filled(3, OM_DIMS(5, 6));
    x            = om_linear(om_reshape(x, OM_DIMS(26, 6)), w, NULL);
    return om_reshape(x, OM_DIMS(2, 13, 5));
}
static void test_A25_flatten(void **state) {
    (void)state;
    om_graph *g = traced(a25, OM_DIMS(2, 13, 6), OM_AXES(NULL, "T"));
    OPERAND(g, "Reshape", 0, "[-1,6]");
    OPERAND(g, "Reshape", 1, "[2,-1,5]");
    DIMS(g, "(2,T,5)");
    om_graph_release(g);
}

static om_tensor *same(om_tensor *x) {
    return om_neg(x);
}
static void test_A28_A29_examples(void **state) {
    (void)state;
    assert_null(trace_one(same, OM_DIMS(1, 3, 8, 8), OM_AXES("N")));
    check_trace_error(OM_TRACE_INVALID_USAGE, "om_trace_input", "axis 0", "'N'", "size 1");
    assert_null(trace_one(same, OM_DIMS(3, 3), OM_AXES("N", "T")));
    check_trace_error(OM_TRACE_INVALID_USAGE, "'N'", "'T'", "3");
    assert_null(trace_one(same, OM_DIMS(3, 4), OM_AXES("N", "N")));
    check_trace_error(OM_TRACE_INVALID_USAGE, "'N'", "3", "4");
    om_graph *g = traced(same, OM_DIMS(3, 3), OM_AXES("N", "N"));
    DIMS(g, "(N,N)");
    om_graph_release(g);
    om_tracer *tr = om_trace_begin(NULL); /* the same name on two inputs is one symbol (TD-11) */
    om_tensor *a  = om_trace_input(tr, "a", example(OM_DIMS(3, 4)), OM_AXES("N"));
    om_tensor *b  = om_trace_input(tr, "b", example(OM_DIMS(3, 4)), OM_AXES("N"));
    om_trace_output(tr, "y", om_add(a, b));
    g = om_trace_finish(tr);
    check_ok();
    DIMS(g, "(N,4)");
    om_graph_release(g);
    tr = om_trace_begin(NULL);
    om_trace_input(tr, "a", example(OM_DIMS(3, 4)), OM_AXES("N"));
    assert_null(om_trace_input(tr, "b", example(OM_DIMS(5, 4)), OM_AXES("N")));
    check_trace_error(OM_TRACE_INVALID_USAGE, "'b'", "'N'", "5", "3");
    assert_null(om_trace_input(tr, "c", example(OM_DIMS(3, 4)), OM_AXES("M")));
    check_trace_error(OM_TRACE_INVALID_USAGE, "'c'", "'M'", "'N'");
    om_trace_abort(tr);
}

static om_tensor *b4(om_tensor *x) {
    return om_embedding(filled(1, OM_DIMS(9, 40)), x, -1);
}
static void test_B4_embedding(void **state) {
    (void)state;
    om_tracer *tr = om_trace_begin(NULL);
    om_tensor *x  = om_trace_input(tr, "x", ids(9, OM_DIMS(2)), OM_AXES("batch"));
    om_trace_output(tr, "y", b4(x));
    om_graph *g = om_trace_finish(tr);
    check_ok();
    DIMS(g, "(batch,40)");
    assert_string_equal(node_list(g).s, "Gather");
    om_graph_release(g);
}

static om_tensor *b6(om_tensor *x) {
    return om_log_softmax(om_softmax(x, 1), 1);
}
static void test_B6_softmax_axis(void **state) {
    (void)state;
    om_graph *g = traced(b6, OM_DIMS(3, 4, 5, 6), OM_AXES("N"));
    assert_int_equal(omi_attr_int(node_k(g, "Softmax", 0), "axis", 99), 1);
    assert_int_equal(omi_attr_int(node_k(g, "LogSoftmax", 0), "axis", 99), 1);
    om_graph_release(g);
}

static bool training;
static om_tensor *b8(om_tensor *x) {
    om_tensor *ones = om_ones(OM_F32, OM_DIMS(3)), *zeros = om_zeros(OM_F32, OM_DIMS(3));
    return om_batch_norm2d(x, NULL, NULL, zeros, ones, OM_OPTS(batch_norm, .training = training));
}
static om_tensor *b9(om_tensor *x) {
    return om_neg(om_dropout(x, 0.5f, training, NULL));
}
static void test_B8_B9_training(void **state) {
    (void)state;
    training = true;
    assert_null(trace_one(b8, OM_DIMS(4, 3, 5, 6), OM_AXES("N")));
    check_trace_error(OM_TRACE_UNSUPPORTED_OPERATION, "BatchNorm2d", "training", "om_batch_norm2d");
    assert_null(trace_one(b9, OM_DIMS(4, 3), OM_AXES("N")));
    check_trace_error(OM_TRACE_UNSUPPORTED_OPERATION, "Dropout", "training", "om_dropout");
    training    = false;
    om_graph *g = traced(b8, OM_DIMS(4, 3, 5, 6), OM_AXES("N"));
    assert_string_equal(node_list(g).s, "BatchNormalization");
    om_graph_release(g);
    g = traced(b9, OM_DIMS(4, 3), OM_AXES("N"));
    assert_string_equal(node_list(g).s, "Neg");
    om_graph_release(g);
}

/* ---- the rest of the list of SymbolicShape refusals, each with its twin
 * ----------------------------- */

static om_tensor *split2(om_tensor *x) {
    om_tensor *out[2] = {NULL, NULL};
    int64_t half      = om_dim(x, 1) / 2;
    om_split(x, 1, 2, (int64_t[]){half, half}, out);
    return out[1];
}
static om_tensor *matmul_w(om_tensor *x) {
    return om_matmul(x, filled(2, OM_DIMS(6, 5)));
}
static om_tensor *top_all(om_tensor *x) {
    om_tensor *v = NULL, *i = NULL;
    om_top_k(x, om_dim(x, 1), 1, false, &v, &i);
    return v;
}
static om_tensor *pool_cells(om_tensor *x) {
    return om_adaptive_avg_pool2d(x, 2, 3);
}
static om_tensor *channels(om_tensor *x) {
    return om_conv2d(x, filled(2, OM_DIMS(4, 6, 1, 1)), NULL, NULL);
}
static om_tensor *ambiguous_expand(om_tensor *x) {
    return om_expand(om_select(om_mean(x, OM_DIMS(1), true), 2, 0), OM_DIMS(3, 7));
}
static om_tensor *squeezed(om_tensor *x) {
    om_tensor *w = filled(2, OM_DIMS(2, 2, 2, 2)); /* 3x2 with stride 2 leaves one row */
    x            = om_conv2d(x, w, NULL, OM_OPTS(conv2d, .stride = {2, 2}));
    return om_squeeze(x, OM_DIMS(2));
}
static om_tensor *norm_all(om_tensor *x) {
    return om_layer_norm(x, 1, NULL, NULL, 1e-5f);
}
static void test_other_refusals(void **state) {
    (void)state;
    static const struct {
        model_fn f;
        int rank;
        int64_t dims[4];
        int bad;  /* axis named in the refusal, "S" */
        int good; /* axis named in the twin */
        const char *word;
    } cases[] = {
        {split2, 2, {3, 6}, 1, 0, "split"},
        {matmul_w, 2, {3, 6}, 1, 0, "fixed size 6"},
        {top_all, 2, {3, 6}, 1, 0, "k = 6"},
        {pool_cells, 4, {5, 2, 6, 9}, 2, 0, "cells"},
        {channels, 4, {5, 6, 7, 8}, 1, 0, "channels"},
        {squeezed, 4, {5, 2, 3, 8}, 2, 0, "size 1 in the example"},
        {norm_all, 2, {3, 6}, 1, 0, "normalised"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *names[4] = {NULL, NULL, NULL, NULL};
        names[cases[i].bad]  = "S";
        assert_null(trace_one(cases[i].f, cases[i].rank, cases[i].dims, cases[i].rank, names));
        check_trace_error(OM_TRACE_SYMBOLIC_SHAPE, cases[i].word, "S");
        names[cases[i].bad]  = NULL;
        names[cases[i].good] = "S";
        om_graph_release(traced(cases[i].f, cases[i].rank, cases[i].dims, cases[i].rank, names));
    }
    om_graph *g = traced(ambiguous_expand, OM_DIMS(3, 5, 8), OM_AXES("B"));
    assert_string_equal(output_axes(g, 0).s, "(B,7)");
    om_graph_release(g);
}

/* Two inputs: Expand to a size that two atoms have; expand_as says which. */
static void test_expand_as(void **state) {
    (void)state;
    for (int as = 0; as < 2; as++) {
        om_tracer *tr = om_trace_begin(NULL);
        om_tensor *x  = om_trace_input(tr, "x", example(OM_DIMS(3, 14)), OM_AXES("B", "H"));
        om_tensor *u  = om_trace_input(tr, "u", example(OM_DIMS(3, 7)), OM_AXES("B", "T"));
        om_tensor *p  = om_reshape(x, OM_DIMS(3, 1, 14, 1));
        om_tensor *h  = om_max_pool2d(p, 2, 1, NULL); /* 7 rows too */
        om_tensor *m  = om_mean(u, OM_DIMS(1), true);
        om_tensor *v  = as ? om_expand_as(m, u) : om_expand(m, OM_DIMS(3, 7));
        om_trace_output(tr, "y", v);
        om_trace_output(tr, "z", h);
        om_graph *g = om_trace_finish(tr);
        if (!as) {
            assert_null(g);
            check_trace_error(OM_TRACE_SYMBOLIC_SHAPE, "om_expand", "'T'", "om_expand_as");
            continue;
        }
        check_ok();
        OPERAND(g, "Expand", 0, "Concat([1],Shape(u,1,2))");
        DIMS(g, "(B,T)");
        om_graph_release(g);
    }
}

/* A size held only by a value the outputs do not need: expand_as keeps it alive. */
static void test_expand_as_keeps_holder(void **state) {
    (void)state;
    om_tracer *tr = om_trace_begin(NULL);
    om_tensor *x  = om_trace_input(tr, "x", example(OM_DIMS(3, 1, 14, 1)), OM_AXES("B", NULL, "H"));
    om_tensor *h  = om_squeeze(om_max_pool2d(x, 2, 1, NULL), OM_DIMS(1, 3));
    om_tensor *u  = om_trace_input(tr, "u", example(OM_DIMS(3, 1)), OM_AXES("B"));
    om_trace_output(tr, "y", om_expand_as(u, h));
    om_graph *g = om_trace_finish(tr);
    check_ok();
    DIMS(g, "(B,Expand_1_dim1)");
    OPERAND(g, "Expand", 0, "Concat([1],Shape(MaxPool_1_out,2,3))");
    om_graph_release(g);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        OM_TEST(test_A1_heads),
        OM_TEST(test_A4_channel_shuffle),
        OM_TEST(test_A5_windows),
        OM_TEST(test_A10_arange),
        OM_TEST(test_A12_expand),
        OM_TEST(test_A15_crop),
        OM_TEST(test_A18_loop),
        OM_TEST(test_A19_last_token),
        OM_TEST(test_A23_squeeze_excite),
        OM_TEST(test_A25_flatten),
        OM_TEST(test_A28_A29_examples),
        OM_TEST(test_B4_embedding),
        OM_TEST(test_B6_softmax_axis),
        OM_TEST(test_B8_B9_training),
        OM_TEST(test_other_refusals),
        OM_TEST(test_expand_as),
        OM_TEST(test_expand_as_keeps_holder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
