/*
 * test_session.c -- sessions: the API, sizes, plans, errors. Expected numbers are worked out by
 * hand or by plain loops here.
 */
#include "runtime/build.h"

#include <math.h>
#include <pthread.h>

#include "graphops/node.h"
#include "runtime/plan.h"
#include "runtime/stats.h"

static om_graph *slice_graph(void) {
    om_graph *g = begin(20);
    in(g, "x", OM_F32, "batch,2");
    constant(g, "w", OM_F32, 2, (int64_t[]){2, 3}, (float[]){1, 2, 3, 4, 5, 6});
    floats(g, "b", 0.5f, -20, 0.25f);
    node(g, "MatMul", "x w", "m");
    node(g, "Add", "m b", "a");
    node(g, "Relu", "a", "y");
    node(g, "Identity", "y", "same");
    ints(g, "k", 2);
    node(g, "TopK", "y k", "top at");
    ints(g, "sizes", 1, 2);
    set_int(g, node(g, "Split", "y sizes", "left right"), "axis", 1);
    out(g, "y");
    out(g, "same");
    out(g, "top");
    out(g, "at");
    out(g, "left");
    out(g, "right");
    return done(g);
}

static void test_slice(void **state) {
    (void)state;
    om_session *s = open_session(slice_graph(), OM_EXACT, 1);
    check_ok();
    OM_SCOPE {
        om_tensor *x    = om_from((float[]){1, 2, -1, 3}, OM_F32, OM_DIMS(2, 2));
        om_tensor *y[6] = {0};
        assert_int_equal(om_session_run(s, 1, &(om_binding){"x", x}, 6, y), OM_OK);
        // [1,2]w+b = 9.5 -8 15.25; [-1,3]w+b = 11.5 -7 15.25
        check_values(y[0], 9.5f, 0, 15.25f, 11.5f, 0, 15.25f);
        check_values(y[1], 9.5f, 0, 15.25f, 11.5f, 0, 15.25f);
        check_values(y[2], 15.25f, 9.5f, 15.25f, 11.5f);
        assert_memory_equal(om_data(y[3]), ((int64_t[]){2, 0, 2, 0}), 4 * sizeof(int64_t));
        check_values(y[4], 9.5f, 11.5f);
        check_values(y[5], 0, 15.25f, 0, 15.25f);
        // A strided input, and a prefix of the outputs.
        om_tensor *t = om_from((float[]){1, -1, 2, 3}, OM_F32, OM_DIMS(2, 2));
        t            = om_permute(t, OM_DIMS(1, 0));
        assert_int_equal(om_session_run(s, 1, &(om_binding){"x", t}, 1, y), OM_OK);
        check_values(y[0], 9.5f, 0, 15.25f, 11.5f, 0, 15.25f);
        om_tensor *none = om_empty(OM_F32, OM_DIMS(0, 2));
        assert_int_equal(om_session_run(s, 1, &(om_binding){"x", none}, 1, y), OM_OK);
        assert_int_equal(om_dim(y[0], 0), 0);
    }
    check_ok();
    om_session_free(s);
}

static void test_bindings(void **state) {
    (void)state;
    om_graph *g = begin(20);
    in(g, "a", OM_F32, "n,4");
    in(g, "b", OM_F32, "4,n");
    node(g, "MatMul", "a b", "y");
    out(g, "y");
    g->symbols[0].hi       = 6;
    g->symbols[0].multiple = 2;
    om_session *s          = session(g);
    OM_SCOPE {
        om_tensor *a = om_ones(OM_F32, OM_DIMS(2, 4)), *b = om_ones(OM_F32, OM_DIMS(4, 2)),
                  *y     = NULL;
        om_binding ok[2] = {{"b", b}, {"a", a}};
        assert_int_equal(om_session_run(s, 2, ok, 1, &y), OM_OK);
        check_values(y, 4, 4, 4, 4);
        om_session_run(s, 1, ok, 1, &y);
        check_error(OM_ERR_ARG, "'a' is missing");
        assert_null(y);
        om_session_run(s, 2, (om_binding[]){{"b", b}, {"b", b}}, 1, &y);
        check_error(OM_ERR_ARG, "'b' is given twice");
        om_session_run(s, 2, (om_binding[]){{"a", a}, {"no\nsuch", b}}, 1, &y);
        check_error(OM_ERR_ARG, "no input 'no\\nsuch'");
        om_tensor *b4 = om_ones(OM_F32, OM_DIMS(4, 4));
        om_session_run(s, 2, (om_binding[]){{"a", a}, {"b", b4}}, 1, &y);
        check_error(OM_ERR_SHAPE, "axis 1 of input 'b' is 4", "axis 0 of input 'a' is 2", "'n'");
        om_tensor *a5 = om_ones(OM_F32, OM_DIMS(2, 5));
        om_session_run(s, 2, (om_binding[]){{"a", a5}, {"b", b}}, 1, &y);
        check_error(OM_ERR_SHAPE, "axis 1 of input 'a' is 5", "declares 4");
        om_tensor *a8 = om_ones(OM_F32, OM_DIMS(8, 4)), *b8 = om_ones(OM_F32, OM_DIMS(4, 8));
        om_session_run(s, 2, (om_binding[]){{"a", a8}, {"b", b8}}, 1, &y);
        check_error(OM_ERR_SHAPE, "'n' must be from 1 to 6");
        om_tensor *a3 = om_ones(OM_F32, OM_DIMS(3, 4)), *b3 = om_ones(OM_F32, OM_DIMS(4, 3));
        om_session_run(s, 2, (om_binding[]){{"a", a3}, {"b", b3}}, 1, &y);
        check_error(OM_ERR_SHAPE, "multiple of 2");
        om_tensor *r1 = om_ones(OM_F32, OM_DIMS(8));
        om_session_run(s, 2, (om_binding[]){{"a", r1}, {"b", b}}, 1, &y);
        check_error(OM_ERR_SHAPE, "rank 1");
        om_tensor *i = om_ones(OM_I64, OM_DIMS(2, 4));
        om_session_run(s, 2, (om_binding[]){{"a", i}, {"b", b}}, 1, &y);
        check_error(OM_ERR_DTYPE, "int64", "float32", "om_cast");
        om_session_run(s, 2, (om_binding[]){{"a", NULL}, {"b", b}}, 1, &y);
        check_error(OM_ERR_ARG, "input 'a' is NULL");
        om_session_run(s, 2, ok, 2, &y);
        check_error(OM_ERR_ARG, "the graph has 1");
        om_session_call(s, a);
        check_error(OM_ERR_ARG, "om_session_run");
    }
    om_session_free(s);
}

/* ---- refusals -------------------------------------------------------------------------------- */

static int collect(void *ctx, const char *text, size_t n) {
    size_t used = strlen(ctx);
    snprintf((char *)ctx + used, 4000 - used, "%.*s", (int)n, text);
    return 0;
}

static void test_unsupported(void **state) {
    (void)state;
    om_graph *g = begin(20);
    in(g, "x", OM_F32, "n,4");
    node(g, "Frobnicate", "x", "a");
    node(g, "Relu", "a", "b");
    node(g, "Twist", "b", "c");
    ints(g, "pads", 0, 1, 0, 1);
    set_text(g, node(g, "Pad", "x pads", "p"), "mode", "reflect");
    node(g, "Shape", "x", "sh");
    node(g, "Gelu", "sh", "gi");
    node(g, "Add", "c p", "y");
    out(g, "y");
    out(g, "gi");
    assert_non_null(done(g));
    assert_null(om_session_new(g, NULL));
    check_error(OM_ERR_UNSUPPORTED, "4 nodes", "'op_a' (Frobnicate", "'op_c' (Twist", "'op_p' (Pad",
                "'op_gi' (Gelu");
    char text[4000] = "";
    assert_int_equal(om_graph_check(g, OM_EXACT, collect, text), OM_ERR_UNSUPPORTED);
    check_ok();
    assert_non_null(
        strstr(text, "node 'op_a' (Frobnicate, #0): there is no operator Frobnicate\n"));
    assert_non_null(strstr(text, "mode 'reflect'"));
    assert_non_null(strstr(text, "there is no kernel for int64"));
    om_graph_release(g);
}

static om_status any_infer(om_nctx *c) {
    return omi_out_like(c, 0, c->in[0]);
}

/* A node type without an exact kernel: Exact lists it, Fast runs it. */
static void test_no_exact_kernel(void **state) {
    (void)state;
    int32_t oldest;
    om_node_def inexact = *omi_node_def("Relu", "", 20, &oldest);
    om_select_fn fast   = inexact.select;
    inexact.type        = "TestInexact";
    inexact.infer       = any_infer;
    inexact.fold        = NULL;
    inexact.select      = NULL;
    omi_node_def_for_test(&inexact, fast);
    om_graph *g = begin(20);
    in(g, "x", OM_F32, "n");
    node(g, "TestInexact", "x", "h");
    node(g, "TestInexact", "h", "y");
    out(g, "y");
    assert_non_null(done(g));
    assert_null(om_session_new(g, NULL));
    check_error(OM_ERR_UNSUPPORTED, "2 nodes", "'op_h' (TestInexact", "'op_y' (TestInexact");
    char text[4000] = "";
    assert_int_equal(om_graph_check(g, OM_EXACT, collect, text), OM_ERR_UNSUPPORTED);
    assert_non_null(strstr(text, "no exact kernel"));
    assert_int_equal(om_graph_check(g, OM_FAST, collect, text), OM_OK);
    om_session *s = open_session(g, OM_FAST, 1);
    check_ok();
    OM_SCOPE {
        check_values(om_session_call(s, om_from((float[]){-1, 2}, OM_F32, OM_DIMS(2))), 0, 2);
    }
    om_session_free(s);
    omi_node_def_for_test(NULL, NULL);
}

static void expect_refused(om_graph *g, om_status want, const char *word) {
    g             = done(g);
    om_session *s = open_session(g, OM_EXACT, 1);
    assert_null(s);
    check_error(want, word);
}

static void test_hostile_sizes(void **state) {
    (void)state;
    om_graph *g = begin(20);
    in(g, "x", OM_F32, "1");
    ints(g, "huge", INT64_MAX, INT64_MAX);
    node(g, "Expand", "x huge", "y");
    out(g, "y");
    expect_refused(g, OM_ERR_LIMIT, "1 TiB");

    g = begin(20);
    ints(g, "huge", (int64_t)1 << 40, (int64_t)1 << 40, (int64_t)1 << 40);
    node(g, "ConstantOfShape", "huge", "y");
    out(g, "y");
    expect_refused(g, OM_ERR_LIMIT, "1 TiB");

    g = begin(20); // no element, but sizes whose partial products overflow
    ints(g, "huge", (int64_t)1 << 62, 0, (int64_t)1 << 62, 3);
    node(g, "ConstantOfShape", "huge", "y");
    out(g, "y");
    expect_refused(g, OM_ERR_LIMIT, "1 TiB");

    g = begin(20);
    in(g, "x", OM_F32, "1,1,8,8");
    constant(g, "w", OM_F32, 4, (int64_t[]){1, 1, 1, 1}, (float[]){1});
    int32_t c = node(g, "Conv", "x w", "y");
    set_ints(g, c, "strides", 2, (int64_t[]){0, 1});
    out(g, "y");
    expect_refused(g, OM_ERR_MALFORMED, "strides");

    g = begin(20);
    in(g, "x", OM_F32, "1,1,8,8");
    constant(g, "w", OM_F32, 4, (int64_t[]){1, 1, 1, 1}, (float[]){1});
    c = node(g, "Conv", "x w", "y");
    set_ints(g, c, "pads", 4, (int64_t[]){INT64_MAX, 0, INT64_MAX, 0});
    out(g, "y");
    expect_refused(g, OM_ERR_MALFORMED, "pads");

    g = begin(20);
    in(g, "x", OM_F32, "1,1,8,8");
    constant(g, "w", OM_F32, 6, (int64_t[]){1, 1, 1, 1, 1, 1}, (float[]){1});
    node(g, "Conv", "x w", "y");
    out(g, "y");
    expect_refused(g, OM_ERR_UNSUPPORTED, "rank 6");

    g = begin(20);
    in(g, "x", OM_F32, "2,3");
    floats(g, "b", 1, 2, 3, 4);
    node(g, "Add", "x b", "add_bias");
    out(g, "add_bias");
    expect_refused(g, OM_ERR_MALFORMED, "op_add_bias");

    g = begin(9999);
    in(g, "x", OM_F32, "2,3");
    node(g, "Relu", "x", "y");
    out(g, "y");
    expect_refused(g, OM_ERR_UNSUPPORTED, "opset 9999");

    g = begin(20);
    in(g, "x", OM_F32, "2,3");
    int32_t t = node(g, "Transpose", "x", "y");
    set_ints(g, t, "perm", 2, (int64_t[]){1, 1});
    out(g, "y");
    expect_refused(g, OM_ERR_MALFORMED, "permutation");

    g = begin(20);
    in(g, "x", OM_F32, "4096,4096");
    ints(g, "sz", 0, -1);
    node(g, "Reshape", "x sz", "y");
    out(g, "y");
    om_graph *done_g = done(g);
    assert_null(om_session_new(done_g, &(om_session_opts){.struct_size  = sizeof(om_session_opts),
                                                          .memory_limit = 1 << 20}));
    check_error(OM_ERR_LIMIT, "memory_limit");
    om_graph_release(done_g);
}

/* ---- values checked while running ------------------------------------------------------------ */

static void test_value_checks(void **state) {
    (void)state;
    om_graph *g = begin(20);
    in(g, "x", OM_F32, "5");
    in(g, "i", OM_I64, "n");
    node(g, "Gather", "x i", "y");
    out(g, "y");
    om_session *s = session(g);
    OM_SCOPE {
        om_tensor *x = om_from((float[]){0, 1, 2, 3, 4}, OM_F32, OM_DIMS(5)), *y = NULL;
        om_tensor *i = om_from((int64_t[]){-5, 4}, OM_I64, OM_DIMS(2));
        om_session_run(s, 2, (om_binding[]){{"x", x}, {"i", i}}, 1, &y);
        check_values(y, 0, 4);
        i = om_from((int64_t[]){0, 5}, OM_I64, OM_DIMS(2));
        assert_int_equal(om_session_run(s, 2, (om_binding[]){{"x", x}, {"i", i}}, 1, &y),
                         OM_ERR_VALUE);
        assert_null(y);
        check_error(OM_ERR_VALUE, "op_y", "index 5", "axis 0");
    }
    om_session_free(s);

    g = begin(20);
    in(g, "a", OM_I64, "n");
    in(g, "b", OM_I64, "n");
    node(g, "Div", "a b", "q");
    out(g, "q");
    s = session(g);
    OM_SCOPE {
        om_tensor *a = om_from((int64_t[]){7, INT64_MIN}, OM_I64, OM_DIMS(2)), *q = NULL;
        om_tensor *b = om_from((int64_t[]){-2, -1}, OM_I64, OM_DIMS(2));
        om_session_run(s, 2, (om_binding[]){{"a", a}, {"b", b}}, 1, &q);
        check_ok();
        assert_memory_equal(om_data(q), ((int64_t[]){-3, INT64_MIN}), 16);
        om_tensor *z = om_from((int64_t[]){1, 0}, OM_I64, OM_DIMS(2));
        om_session_run(s, 2, (om_binding[]){{"a", a}, {"b", z}}, 1, &q);
        check_error(OM_ERR_VALUE, "op_q", "divisor is zero");
    }
    om_session_free(s);
}

/* ---- shape chains, outputs of every kind ----------------------------------------------------- */

/* Reshape to [Shape(x)[0] * Shape(x)[1], 2], as a tracer writes it. */
static om_graph *chain_graph(void) {
    om_graph *g = begin(20);
    in(g, "x", OM_F32, "n,t,2");
    ints(g, "two", 2);
    int32_t a = node(g, "Shape", "x", "sn");
    set_int(g, a, "start", 0);
    set_int(g, a, "end", 1);
    int32_t b = node(g, "Shape", "x", "st");
    set_int(g, b, "start", 1);
    set_int(g, b, "end", 2);
    node(g, "Mul", "sn st", "nt");
    set_int(g, node(g, "Concat", "nt two", "target"), "axis", 0);
    set_int(g, node(g, "Reshape", "x target", "y"), "allowzero", 1);
    node(g, "Shape", "y", "ys");
    out(g, "y");
    out(g, "ys");
    out(g, "x");
    return done(g);
}

static void test_chain(void **state) {
    (void)state;
    om_session *s = open_session(chain_graph(), OM_EXACT, 1);
    check_ok();
    OM_SCOPE {
        om_tensor *x = om_arange(0, 12, 1), *y[3];
        x            = om_cast(x, OM_F32);
        om_tensor *a = om_reshape(x, OM_DIMS(2, 3, 2));
        om_session_run(s, 1, &(om_binding){"x", a}, 3, y);
        check_values(y[0], 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11);
        assert_int_equal(om_dim(y[0], 0), 6);
        assert_memory_equal(om_data(y[1]), ((int64_t[]){6, 2}), 16);
        assert_int_equal(om_rank(y[2]), 3);
        om_tensor *b = om_reshape(x, OM_DIMS(6, 1, 2));
        om_session_run(s, 1, &(om_binding){"x", b}, 1, y);
        check_ok();
        assert_int_equal(om_dim(y[0], 0), 6);
        om_tensor *e = om_empty(OM_F32, OM_DIMS(0, 5, 2));
        om_session_run(s, 1, &(om_binding){"x", e}, 2, y);
        check_ok();
        assert_memory_equal(om_data(y[1]), ((int64_t[]){0, 2}), 16);
    }
    // The chain costs nothing: a run is one copy, without an arena.
    int64_t bytes  = -1;
    om_shape sizes = {3, {2, 3, 2}};
    om_session_memory(s, 1, &sizes, &bytes);
    assert_int_equal(bytes, 64 + 64 + 64); // y, ys and x: 48, 16 and 48 bytes
    om_cache_stats st;
    omi_session_stats(s, &st);
    assert_int_equal(st.builds, 3);
    om_session_free(s);
}

/* Sizes that come from the contents of an input: part of the signature. */
static void test_by_value(void **state) {
    (void)state;
    om_graph *g = begin(20);
    in(g, "x", OM_F32, "n,m");
    in(g, "shape", OM_I64, "r");
    node(g, "Reshape", "x shape", "y");
    out(g, "y");
    om_session *s = session(g);
    OM_SCOPE {
        om_tensor *x = om_ones(OM_F32, OM_DIMS(2, 6)), *y;
        om_tensor *a = om_from((int64_t[]){3, 4}, OM_I64, OM_DIMS(2));
        om_tensor *b = om_from((int64_t[]){-1, 2}, OM_I64, OM_DIMS(2));
        om_session_run(s, 2, (om_binding[]){{"x", x}, {"shape", a}}, 1, &y);
        check_ok();
        assert_int_equal(om_dim(y, 0), 3);
        om_session_run(s, 2, (om_binding[]){{"x", x}, {"shape", b}}, 1, &y);
        check_ok();
        assert_int_equal(om_dim(y, 0), 6);
        om_session_run(s, 2, (om_binding[]){{"x", x}, {"shape", a}}, 1, &y);
        check_ok();
        om_cache_stats st;
        omi_session_stats(s, &st);
        assert_int_equal(st.builds, 2);
    }
    om_shape shapes[2] = {{2, {2, 6}}, {1, {2}}};
    assert_null(om_session_prepare(s, 2, shapes));
    check_error(OM_ERR_UNSUPPORTED, "op_y", "'shape'");
    om_session_free(s);
}

/* NaNs leave a session as 7fc00000 (AR-1.4 b), computed or passed through. */
static void test_nan(void **state) {
    (void)state;
    om_graph *g = begin(20);
    in(g, "x", OM_F32, "n");
    node(g, "Identity", "x", "same");
    node(g, "Add", "x x", "y");
    out(g, "y");
    out(g, "same");
    om_session *s  = session(g);
    uint32_t odd[] = {0xffc12345u, 0x7f800001u, 0x3f800000u};
    OM_SCOPE {
        om_tensor *x = om_from(odd, OM_F32, OM_DIMS(3)), *y[2];
        om_session_run(s, 1, &(om_binding){"x", x}, 2, y);
        check_ok();
        assert_memory_equal(om_data(y[0]), ((uint32_t[]){0x7fc00000u, 0x7fc00000u, 0x40000000u}),
                            12);
        assert_memory_equal(om_data(y[1]), ((uint32_t[]){0x7fc00000u, 0x7fc00000u, 0x3f800000u}),
                            12);
        assert_memory_equal(om_data(x), odd, 12);
    }
    om_session_free(s);
}

/* ---- plans: cache, threads ------------------------------------------------------------------- */

static void test_eviction(void **state) {
    (void)state;
    om_graph *g   = slice_graph();
    om_session *s = om_session_new(
        g,
        &(om_session_opts){.struct_size = sizeof(om_session_opts), .threads = 1, .plan_cache = 1});
    om_graph_release(g);
    check_ok();
    om_shape two = {2, {2, 2}};
    om_run *run  = om_session_prepare(s, 1, &two);
    check_ok();
    om_cache_stats st;
    for (int64_t n = 3; n < 20; n++)
        OM_SCOPE {
            om_tensor *x = om_ones(OM_F32, OM_DIMS(n, 2)), *y;
            om_session_run(s, 1, &(om_binding){"x", x}, 1, &y);
            check_ok();
            omi_session_stats(s, &st);
            assert_true(st.plans <= 2); // the pinned one and the last
        }
    assert_true(st.evictions >= 15);
    const float x[4] = {1, 2, -1, 3};
    assert_int_equal(om_run_call(run, (const void *[]){x}, NULL), OM_OK);
    assert_memory_equal(om_run_output(run, 0), ((float[]){9.5f, 0, 15.25f, 11.5f, 0, 15.25f}), 24);
    om_session_free(s); // the run holds what it needs
    assert_int_equal(om_run_call(run, (const void *[]){x}, NULL), OM_OK);
    assert_memory_equal(om_run_output(run, 0), ((float[]){9.5f, 0, 15.25f, 11.5f, 0, 15.25f}), 24);
    om_run_free(run);
}

typedef struct worker {
    om_session *s;
    int64_t rows;
    bool ok;
} worker;

static void *run_rows(void *arg) {
    worker *w = arg;
    w->ok     = true;
    for (int k = 0; k < 30; k++)
        OM_SCOPE {
            om_tensor *x = om_ones(OM_F32, OM_DIMS(w->rows, 2)), *y = NULL;
            om_session_run(w->s, 1, &(om_binding){"x", x}, 1, &y);
            const float *v = y ? om_data(y) : NULL;
            w->ok          = w->ok && v && v[0] == 5.5f && v[3 * w->rows - 1] == 9.25f;
        }
    om_scope_drain();
    om_trim();
    return NULL;
}

static void test_threads(void **state) {
    (void)state;
    om_session *s = open_session(slice_graph(), OM_EXACT, 1);
    check_ok();
    pthread_t t[6];
    worker w[6];
    for (int i = 0; i < 6; i++) {
        w[i] = (worker){s, i < 4 ? 7 : 9, false}; // four want one key, two another
        assert_int_equal(pthread_create(&t[i], NULL, run_rows, &w[i]), 0);
    }
    for (int i = 0; i < 6; i++) {
        pthread_join(t[i], NULL);
        assert_true(w[i].ok);
    }
    om_cache_stats st;
    omi_session_stats(s, &st);
    assert_int_equal(st.builds, 2);
    om_session_free(s);
}

/* ---- layout ---------------------------------------------------------------------------------- */

/* No two blocks alive at once share bytes; reuse happens; many blocks take the other algorithm. */
static void check_layout(uint32_t n, uint32_t life) {
    om_block *b   = calloc(n, sizeof *b);
    uint32_t seed = n;
    size_t sum = 0, total = 0;
    for (uint32_t i = 0; i < n; i++) {
        seed       = seed * 1664525u + 1013904223u;
        b[i].bytes = seed >> 20;
        b[i].first = i / 2;
        b[i].last  = i / 2 + (seed >> 8) % life;
        sum += (b[i].bytes + 63) / 64 * 64;
    }
    assert_int_equal(omi_layout(b, n, &total), OM_OK);
    for (uint32_t i = 0; i < n; i++) {
        assert_int_equal(b[i].offset % 64, 0);
        assert_true(b[i].offset + b[i].bytes <= total);
        for (uint32_t k = i + 1; k < n && b[k].first <= b[i].last; k++)
            if (b[i].bytes && b[k].bytes && b[i].offset < b[k].offset + b[k].bytes &&
                b[k].offset < b[i].offset + b[i].bytes)
                fail_msg("blocks %u and %u of %u overlap", i, k, n);
    }
    assert_true(total < sum / 4);
    free(b);
}

static void test_layout(void **state) {
    (void)state;
    check_layout(400, 8);
    check_layout(3000, 40);
    check_layout(20000, 40);
    om_block huge[2] = {{.bytes = SIZE_MAX / 2}, {.bytes = SIZE_MAX / 2}};
    size_t total;
    omi_layout(huge, 2, &total);
    check_error(OM_ERR_LIMIT, "more memory");
}

/* A chain of elementwise nodes needs one buffer: each works in place, the last writes the output.
 */
static void test_in_place(void **state) {
    (void)state;
    om_graph *g = begin(20);
    in(g, "x", OM_F32, "n");
    node(g, "Exp", "x", "a");
    node(g, "Neg", "a", "b");
    node(g, "Abs", "b", "c");
    node(g, "Add", "c x", "d");
    node(g, "Relu", "d", "y");
    out(g, "y");
    om_session *s  = session(g);
    int64_t bytes  = 0;
    om_shape sizes = {1, {1000}};
    om_session_memory(s, 1, &sizes, &bytes);
    assert_int_equal(bytes, 2 * 4032);
    om_session_free(s);
}

/* ---- prepared runs --------------------------------------------------------------------------- */

static void test_prepared(void **state) {
    (void)state;
    om_session *s = open_session(slice_graph(), OM_EXACT, 1);
    om_shape two  = {2, {2, 2}}, got;
    om_run *r     = om_session_prepare(s, 1, &two);
    check_ok();
    char h0[65], h1[65];
    assert_null(om_run_output(r, 0));
    assert_int_equal(om_run_hash(r, h0), OM_ERR_STATE);
    om_catch(NULL);
    float x[4] = {1, 2, -1, 3}, y[6];
    assert_int_equal(
        om_run_call(r, (const void *[]){x}, (void *[]){y, NULL, NULL, NULL, NULL, NULL}), OM_OK);
    assert_memory_equal(y, ((float[]){9.5f, 0, 15.25f, 11.5f, 0, 15.25f}), 24);
    assert_memory_equal(om_run_output(r, 4), ((float[]){9.5f, 11.5f}), 8);
    om_run_output_shape(r, 5, &got);
    assert_int_equal(got.rank, 2);
    assert_int_equal(got.dims[1], 2);
    assert_int_equal(om_run_hash(r, h0), OM_OK);
    assert_int_equal(om_run_call(r, (const void *[]){x}, NULL), OM_OK);
    assert_int_equal(om_run_hash(r, h1), OM_OK);
    assert_string_equal(h0, h1); // wherever the results are
    x[0] = nextafterf(x[0], 2) + 1;
    om_run_call(r, (const void *[]){x}, NULL);
    om_run_hash(r, h1);
    assert_string_not_equal(h0, h1);
    om_run_call(r, (const void *[]){NULL}, NULL);
    check_error(OM_ERR_ARG, "input 0 is NULL");
    om_run_call(r, (const void *[]){(const char *)x + 1}, NULL);
    check_error(OM_ERR_ARG, "aligned");
    om_run_output_shape(r, 6, &got);
    check_error(OM_ERR_ARG, "no output 6");
    om_session_prepare(s, 2, &two);
    check_error(OM_ERR_ARG, "has 1 inputs");
    om_session_prepare(s, 1, &(om_shape){2, {-1, 2}});
    check_error(OM_ERR_SHAPE, "negative");
    om_session_prepare(s, 1, &(om_shape){9, {0}});
    check_error(OM_ERR_SHAPE, "rank 9");
    om_run_free(r);
    om_session_free(s);
}

static void test_cancel(void **state) {
    (void)state;
    om_session *s = open_session(slice_graph(), OM_EXACT, 1);
    om_cancel c   = {1};
    OM_SCOPE {
        om_tensor *x = om_ones(OM_F32, OM_DIMS(2, 2)), *y = NULL;
        om_set_cancel(&c);
        om_session_run(s, 1, &(om_binding){"x", x}, 1, &y);
        om_set_cancel(NULL);
        check_error(OM_ERR_CANCELLED, "cancel");
        om_session_run(s, 1, &(om_binding){"x", x}, 1, &y);
        check_ok();
    }
    om_session_free(s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        OM_TEST(test_slice),           OM_TEST(test_bindings),      OM_TEST(test_unsupported),
        OM_TEST(test_no_exact_kernel), OM_TEST(test_hostile_sizes), OM_TEST(test_value_checks),
        OM_TEST(test_chain),           OM_TEST(test_by_value),      OM_TEST(test_nan),
        OM_TEST(test_eviction),        OM_TEST(test_threads),       OM_TEST(test_prepared),
        OM_TEST(test_cancel),          OM_TEST(test_layout),        OM_TEST(test_in_place),
    };
    return cmocka_run_group_tests_name("session", tests, NULL, NULL);
}
