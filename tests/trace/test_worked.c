/*
 * test_worked.c -- the worked examples of symbolic axes, each by number: extents of the output, the
 * size operand compared as nodes, and whether the report carries a note (TR-4, TD-3 to TD-6,
 * TD-15).
 */
#include "trace_test.h"

/* A reshape target that a model function reads. */
static int64_t target[8];
static int target_rank;
#define TO(...)                                                                                    \
    (memcpy(target, (int64_t[]){__VA_ARGS__}, sizeof((int64_t[]){__VA_ARGS__})),                   \
     target_rank = (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)))

static om_tensor *reshaped(om_tensor *x) {
    return om_reshape(x, target_rank, target);
}

/* Traces f on x(dims){axes} and compares axes of y, the operand of the last node of `type`, notes.
 */
static void check_graph(om_graph *g, const char *type, const char *axes, const char *operand,
                        bool noted, int line) {
    if (!g) {
        om_error e;
        om_catch(&e);
        print_error("line %d: %s: %s\n", line, e.where, e.message);
        fail();
    }
    int last = count_nodes(g, type) - 1;
    text a = output_axes(g, 0), o = operand_of(g, type, last);
    bool note = strstr(om_trace_report(g), "notes:") != NULL;
    if (strcmp(a.s, axes) || (operand && strcmp(o.s, operand)) || note != noted) {
        print_error("line %d: %s by %s, notes %d; report:\n%s\n", line, a.s, o.s, note,
                    om_trace_report(g));
        fail();
    }
    om_graph_release(g);
}
#define CHECK(g, type, axes, operand, noted) check_graph((g), type, axes, operand, noted, __LINE__)
#define AZ                                   " allowzero"

static void test_direct(void **state) {
    (void)state;
    om_graph *g;
    TO(3, 240); /* 1 */
    g = trace_one(reshaped, OM_DIMS(3, 8, 5, 6), OM_AXES("N"));
    CHECK(g, "Reshape", "(N,240)", "[-1,240]", true);
    TO(21, 16); /* 2, the wide reading of TD-6 */
    g = trace_one(reshaped, OM_DIMS(3, 7, 16), OM_AXES("N", "T"));
    CHECK(g, "Reshape", "(N*T,16)", "[-1,16]", false);
    TO(3, 7, 4, 3); /* 4 */
    g = trace_one(reshaped, OM_DIMS(3, 7, 12), OM_AXES("B", "T"));
    CHECK(g, "Reshape", "(B,T,4,3)", "Concat(Shape(x,0,2),[4,3])" AZ, true);
    TO(11, 13, 4, 3); /* 5 */
    g = trace_one(reshaped, OM_DIMS(11, 13, 12), OM_AXES("B", "T"));
    CHECK(g, "Reshape", "(B,T,4,3)", "Concat(Shape(x,0,2),[4,3])" AZ, false);
    TO(255); /* 9 */
    g = trace_one(reshaped, OM_DIMS(5, 3, 17), OM_AXES("N", NULL, "W"));
    CHECK(g, "Reshape", "(3*N*W)", "[-1]", false);
    TO(1, 5, 1, 51); /* 10 */
    g = trace_one(reshaped, OM_DIMS(5, 3, 17), OM_AXES("N", NULL, "W"));
    CHECK(g, "Reshape", "(1,N,1,3*W)", "Concat([1],Shape(x,0,1),[1],Mul(Shape(x,2,3),[3]))" AZ,
          false);
    TO(5, 3, 8); /* 11 */
    g = trace_one(reshaped, OM_DIMS(3, 5, 8), OM_AXES("N", "T"));
    CHECK(g, "Reshape", "(T,N,8)", "Concat(Shape(x,1,2),Shape(x,0,1),[8])" AZ, false);
    TO(6, 2); /* 12: preferred over (3*N,2) */
    g = trace_one(reshaped, OM_DIMS(2, 6), OM_AXES("N"));
    CHECK(g, "Reshape", "(6,N)", "[6,-1]", true);
    TO(51, 2); /* 13 */
    g = trace_one(reshaped, OM_DIMS(17, 6), OM_AXES("N"));
    CHECK(g, "Reshape", "(3*N,2)", "[-1,2]", false);
    TO(2, 8, 8, 19, 23); /* 19 */
    g = trace_one(reshaped, OM_DIMS(2, 64, 19, 23), OM_AXES("N", NULL, "H", "W"));
    CHECK(g, "Reshape", "(N,8,8,H,W)", "Concat(Shape(x,0,1),[8,8],Shape(x,2,4))" AZ, true);
    TO(2, 8, -1); /* 20 */
    g = trace_one(reshaped, OM_DIMS(2, 64, 19, 23), OM_AXES("N", NULL, "H", "W"));
    CHECK(g, "Reshape", "(N,8,8*H*W)",
          "Concat(Shape(x,0,1),[8],Mul(Mul(Shape(x,2,3),Shape(x,3,4)),[8]))" AZ, true);
    TO(286, 30); /* 24 */
    g = trace_one(reshaped, OM_DIMS(11, 13, 60), OM_AXES("N", "T"));
    CHECK(g, "Reshape", "(2*N*T,30)", "[-1,30]", false);
}

/* 3: (N*T,10) after Linear. */
static om_tensor *through_linear(om_tensor *x) {
    om_tensor *w = filled(1, OM_DIMS(10, 16));
    x            = om_linear(om_reshape(x, OM_DIMS(21, 16)), w, NULL);
    return om_reshape(x, OM_DIMS(3, 7, 10));
}

/* 6, 7, 8: (B,T,12) to heads, merged with the batch, and back. */
static om_tensor *heads_merged(om_tensor *x) {
    x = om_permute(om_reshape(x, OM_DIMS(11, 13, 4, 3)), OM_DIMS(0, 2, 1, 3));
    return om_reshape(x, OM_DIMS(44, 13, 3));
}
static om_tensor *heads_split(om_tensor *x) {
    return om_reshape(heads_merged(x), OM_DIMS(11, 4, 13, 3));
}
static om_tensor *heads_joined(om_tensor *x) {
    return om_reshape(om_permute(heads_split(x), OM_DIMS(0, 2, 1, 3)), OM_DIMS(11, 13, 12));
}

/* 14, 15: a strided convolution, its space flattened and back. */
static om_tensor *strided(om_tensor *x) {
    om_tensor *w = filled(2, OM_DIMS(8, 1, 1, 1));
    return om_conv2d(x, w, NULL, OM_OPTS(conv2d, .stride = {2, 2}));
}
static om_tensor *space_flat(om_tensor *x) {
    return om_reshape(strided(x), OM_DIMS(2, 8, 120));
}
static om_tensor *space_back(om_tensor *x) {
    x = om_permute(space_flat(x), OM_DIMS(0, 2, 1));
    return om_reshape(x, OM_DIMS(2, 10, 12, 8));
}

/* 17: mean kept, expanded again. */
static om_tensor *mean_expanded(om_tensor *x) {
    x = om_mean(x, OM_DIMS(1), true);
    return om_expand(x, OM_DIMS(3, 7, 8));
}
/* 18 */
static om_tensor *doubled(om_tensor *x) {
    return om_reshape(om_concat(2, (om_tensor *[]){x, x}, 0), OM_DIMS(2, 3, 8));
}

static void test_through_operators(void **state) {
    (void)state;
    om_graph *g = trace_one(through_linear, OM_DIMS(3, 7, 16), OM_AXES("N", "T"));
    CHECK(g, "Reshape", "(N,T,10)", "Concat(Shape(x,0,2),[10])" AZ, false);
    g = trace_one(heads_merged, OM_DIMS(11, 13, 12), OM_AXES("B", "T"));
    CHECK(g, "Reshape", "(4*B,T,3)", "Concat(Mul(Shape(x,0,1),[4]),Shape(x,1,2),[3])" AZ, false);
    g = trace_one(heads_split, OM_DIMS(11, 13, 12), OM_AXES("B", "T"));
    CHECK(g, "Reshape", "(B,4,T,3)", "Concat(Shape(x,0,1),[4],Shape(x,1,2),[3])" AZ, false);
    g = trace_one(heads_joined, OM_DIMS(11, 13, 12), OM_AXES("B", "T"));
    CHECK(g, "Reshape", "(B,T,12)", "Concat(Shape(x,0,2),[12])" AZ, false);
    g = trace_one(space_flat, OM_DIMS(2, 1, 20, 24), OM_AXES("N", NULL, "H", "W"));
    CHECK(g, "Reshape", "(N,8,Conv_1_dim2*Conv_1_dim3)",
          "Concat(Shape(x,0,1),[8],Mul(Shape(Conv_1_out,2,3),Shape(Conv_1_out,3,4)))" AZ, true);
    g = trace_one(space_back, OM_DIMS(2, 1, 20, 24), OM_AXES("N", NULL, "H", "W"));
    CHECK(g, "Reshape", "(N,Conv_1_dim2,Conv_1_dim3,8)",
          "Concat(Shape(x,0,1),Shape(Conv_1_out,2,4),[8])" AZ, true);
    g = trace_one(mean_expanded, OM_DIMS(3, 7, 8), OM_AXES("B", "T"));
    CHECK(g, "Expand", "(B,T,8)", "Concat([1],Shape(x,1,2),[1])", true);
    g = trace_one(doubled, OM_DIMS(3, 8), OM_AXES("N"));
    CHECK(g, "Reshape", "(2,N,8)", "[2,-1,8]", false);
}

/* 16: a past of P steps before T new ones. */
static void test_cache(void **state) {
    (void)state;
    om_tracer *tr   = om_trace_begin(NULL);
    om_tensor *past = om_trace_input(tr, "past", example(OM_DIMS(3, 7, 8)), OM_AXES("B", "P"));
    om_tensor *x    = om_trace_input(tr, "x", example(OM_DIMS(3, 5, 8)), OM_AXES("B", "T"));
    om_tensor *cat  = om_concat(2, (om_tensor *[]){past, x}, 1);
    om_trace_output(tr, "y", om_reshape(cat, OM_DIMS(3, 12, 2, 4)));
    om_graph *g = om_trace_finish(tr);
    CHECK(g, "Reshape", "(B,Concat_1_dim1,2,4)",
          "Concat(Shape(past,0,1),Shape(Concat_1_out,1,2),[2,4])" AZ, false);
}

/* 21, 22, 23 refused. */
static om_tensor *plus_constant(om_tensor *x) {
    return om_add(x, filled(3, OM_DIMS(3, 4)));
}
static om_tensor *plus_row(om_tensor *x) {
    return om_add(x, filled(3, OM_DIMS(1, 4)));
}

static void test_refused(void **state) {
    (void)state;
    TO(3, 4, 3);
    assert_null(trace_one(reshaped, OM_DIMS(3, 12), OM_AXES("N", "T")));
    check_trace_error(OM_TRACE_SYMBOLIC_SHAPE, "om_reshape", "T", "cannot be kept whole", "[4,3]");
    TO(3, 12, 1); /* the twin keeps T whole */
    om_graph *g = trace_one(reshaped, OM_DIMS(3, 12), OM_AXES("N", "T"));
    CHECK(g, "Reshape", "(N,T,1)", "Concat(Shape(x,0,2),[1])" AZ, false);
    assert_null(trace_one(plus_constant, OM_DIMS(3, 4), OM_AXES("N")));
    check_trace_error(OM_TRACE_SYMBOLIC_SHAPE, "om_add", "constant", "[3,4]", "'N'", "axis 0");
    g = trace_one(plus_row, OM_DIMS(3, 4), OM_AXES("N"));
    CHECK(g, "Add", "(N,4)", NULL, false);
    TO(30, 30);
    assert_null(trace_one(reshaped, OM_DIMS(3, 5, 60), OM_AXES("N", "T")));
    check_trace_error(OM_TRACE_SYMBOLIC_SHAPE, "(2*N*T,30)", "(30,2*N*T)", "(10*N,6*T)",
                      "(6*T,10*N)");
}

/* 25: two branches of one geometry; 26: a convolution that keeps the size. */
static om_tensor *two_strided(om_tensor *x) {
    om_tensor *w3 = filled(4, OM_DIMS(6, 2, 3, 3)), *w1 = filled(5, OM_DIMS(6, 2, 1, 1)), *a, *b;
    OM_PAIR(a, om_conv2d(x, w3, NULL, OM_OPTS(conv2d, .stride = {2, 2}, .padding = {1, 1})), b,
            om_conv2d(x, w1, NULL, OM_OPTS(conv2d, .stride = {2, 2})));
    return om_add(a, b);
}
static om_tensor *same_padding(om_tensor *x) {
    om_tensor *w = filled(4, OM_DIMS(2, 2, 3, 3));
    return om_add(om_conv2d(x, w, NULL, OM_OPTS(conv2d, .padding = {1, 1})), x);
}

static void test_convolutions(void **state) {
    (void)state;
    om_graph *g = trace_one(two_strided, OM_DIMS(3, 2, 11, 13), OM_AXES("N", NULL, "H", "W"));
    CHECK(g, "Add", "(N,6,Conv_1_dim2,Conv_1_dim3)", NULL, false);
    g = trace_one(same_padding, OM_DIMS(3, 2, 11, 13), OM_AXES("N", NULL, "H", "W"));
    CHECK(g, "Add", "(N,2,H,W)", NULL, false);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        OM_TEST(test_direct),  OM_TEST(test_through_operators), OM_TEST(test_cache),
        OM_TEST(test_refused), OM_TEST(test_convolutions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
