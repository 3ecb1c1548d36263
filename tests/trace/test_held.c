/*
 * test_held.c -- lines of the tracer (and one of the program it feeds) that could be changed
 * without a test noticing: F3 to F9, F15 to F18, F33 and F34 of the list of faults, each with the
 * model that tells.
 */
#include "graph/traced.h"
#include "onemodel/session.h"
#include "runtime/build.h"
#include "trace_test.h"

/* The graph of f, equal to eager at dims and at each other size list. */
static om_graph *equal_at(model_fn f, int rank, const int64_t *dims, const char *const *axes,
                          int n_other, const int64_t (*other)[4]) {
    om_graph *g = trace_one(f, rank, dims, rank, axes);
    check_ok();
    om_session *s = om_session_new(g, NULL);
    for (int i = -1; i < n_other; i++) {
        om_tensor *x = filled(17, rank, i < 0 ? dims : other[i]);
        om_tensor *y = om_session_call(s, x), *want = f(x);
        check_ok();
        assert_true(om_bit_equal(y, want));
    }
    om_session_free(s);
    return g;
}
#define EQUAL_AT(f, rank, dims, axes, ...)                                                         \
    equal_at(f, rank, dims, axes, (int)(sizeof((int64_t[][4]){__VA_ARGS__}) / 32),                 \
             (const int64_t[][4]){__VA_ARGS__})

/* ---- F3: who holds a size -----------------------------------------------------------------------
 */

/* The expanded value is the first in the walk that has the padded size; it cannot be asked for it.
 */
static om_tensor *expand_first(om_tensor *x) {
    om_tensor *m = om_mean(x, 1, (int64_t[]){1}, true);
    om_tensor *p = om_pad(x, 2, (int64_t[]){0, 2}, (int64_t[]){0, 0}, 0);
    return om_add(om_relu(om_expand(m, OM_DIMS(3, om_dim(p, 1)))), p);
}
static void F3_no_size_from_its_own_result(void **state) {
    (void)state;
    om_graph *g = EQUAL_AT(expand_first, 2, ((int64_t[]){3, 7}), ((const char *[4]){NULL, "T"}),
                           {3, 4}, {3, 1});
    assert_non_null(strstr(operand_of(g, "Expand", 0).s, "Shape(Pad_1_out,1,2)"));
    om_graph_release(g);
}

/* ---- F4: parameters in one storage --------------------------------------------------------------
 */

static void F4_two_parameters_in_one_storage(void **state) {
    (void)state;
    om_tensor *all = example(OM_DIMS(8)), *a = om_slice(all, 0, 0, 4, 1),
              *b  = om_slice(all, 0, 4, 8, 1);
    om_tracer *tr = fresh_tracer();
    om_tensor *x  = om_trace_input(tr, "x", example(OM_DIMS(3, 4)), OM_AXES("N"));
    om_trace_parameter(tr, "first", a);
    om_trace_parameter(tr, "second", b);
    om_trace_output(tr, "y", om_add(om_mul(x, b), a));
    om_graph *g = om_trace_finish(tr);
    check_ok();
    assert_memory_equal((char *)init_named(g, "first")->buf->data + init_named(g, "first")->offset,
                        om_data(a), 16);
    assert_memory_equal((char *)init_named(g, "second")->buf->data +
                            init_named(g, "second")->offset,
                        om_data(b), 16);
    om_graph_release(g);
}

/* ---- F5, F8, F15, F34: windows ------------------------------------------------------------------
 */

/* 12 rows give 6 windows of either kind, 13 give 7 and 6. */
static om_tensor *two_windows(om_tensor *x) {
    om_tensor *a = om_max_pool2d(x, 3, 3, OM_OPTS(pool2d, .stride = {2, 2}, .padding = {1, 1}));
    om_tensor *b = om_max_pool2d(x, 2, 2, OM_OPTS(pool2d, .stride = {2, 2}));
    return om_add(a, b);
}
static void F5_windows_equal_at_the_example_only(void **state) {
    (void)state;
    om_graph *g = EQUAL_AT(two_windows, 4, ((int64_t[]){1, 1, 12, 10}),
                           ((const char *[4]){NULL, NULL, "H"}), {1, 1, 14, 10}, {1, 1, 2, 10});
    assert_non_null(strstr(om_trace_report(g), "equal at the example sizes only"));
    om_graph_release(g);
}

/* The kept extent of axis 2 is what eager gives, at every size where eager gives anything. */
static void check_rows(model_fn f) {
    om_graph *g = trace_one(f, OM_DIMS(1, 1, 13, 9), OM_AXES(NULL, NULL, "H"));
    check_ok();
    const om_atoms *t = &g->traced->atoms;
    int64_t v[8], got;
    int seen = 0;
    assert_true(t->list.n < 8);
    for (int64_t h = 1; h < 30; h++) {
        om_error e;
        om_tensor *y = f(example(OM_DIMS(1, 1, h, 9)));
        if (om_catch(&e) != OM_OK) continue;
        v[0] = h;
        assert_true(omi_atoms_eval(t, v));
        assert_true(omi_ext_eval(&g->traced->extents[g->outputs[0]][2], v, &got));
        if (got != om_dim(y, 2))
            print_error("%lld rows: %lld, not %lld\n", (long long)h, (long long)got,
                        (long long)om_dim(y, 2));
        assert_int_equal(got, om_dim(y, 2));
        seen++;
    }
    assert_true(seen > 20);
    om_graph_release(g);
}
static om_tensor *ceil_pool(om_tensor *x) {
    return om_max_pool2d(x, 2, 2, OM_OPTS(pool2d, .stride = {3, 3}, .ceil_mode = true));
}
static om_tensor *ceil_avg(om_tensor *x) {
    return om_avg_pool2d(x, 3, 3, OM_OPTS(pool2d, .stride = {2, 2}, .ceil_mode = true));
}
static void F8_ceil_mode(void **state) {
    (void)state;
    check_rows(ceil_pool);
    check_rows(ceil_avg);
}
static om_tensor *ceil_padded(om_tensor *x) {
    return om_max_pool2d(x, 2, 2,
                         OM_OPTS(pool2d, .stride = {2, 2}, .padding = {1, 1}, .ceil_mode = true));
}
static om_tensor *ceil_wide(om_tensor *x) {
    return om_max_pool2d(x, 3, 3,
                         OM_OPTS(pool2d, .stride = {4, 4}, .padding = {1, 1}, .ceil_mode = true));
}
static void F34_ceil_with_a_begin_pad(void **state) {
    (void)state;
    check_rows(ceil_padded);
    check_rows(ceil_wide);
}
static om_tensor *dilated(om_tensor *x) {
    return om_conv2d(x, filled(5, OM_DIMS(2, 1, 3, 3)), NULL,
                     OM_OPTS(conv2d, .stride = {2, 2}, .dilation = {2, 3}));
}
static om_tensor *dilated_pool(om_tensor *x) {
    return om_max_pool2d(x, 3, 3, OM_OPTS(pool2d, .stride = {1, 1}, .dilation = {3, 1}));
}
static void F15_dilation(void **state) {
    (void)state;
    check_rows(dilated);
    check_rows(dilated_pool);
}

/* ---- F6, F34: how a reshape is read -------------------------------------------------------------
 */

static om_tensor *open_second(om_tensor *x) {
    return om_reshape(x, OM_DIMS(30, -1));
}
static om_tensor *open_first(om_tensor *x) {
    return om_reshape(x, OM_DIMS(-1, 30));
}
static void F6_the_open_size_takes_the_symbols(void **state) {
    (void)state;
    const int64_t dims[3] = {3, 5, 60};
    om_graph *g =
        EQUAL_AT(open_second, 3, dims, ((const char *[4]){"N", "T"}), {4, 2, 60}, {1, 1, 60});
    assert_string_equal(output_axes(g, 0).s, "(30,2*N*T)");
    om_graph_release(g);
    g = EQUAL_AT(open_first, 3, dims, ((const char *[4]){"N", "T"}), {4, 2, 60}, {1, 1, 60});
    assert_string_equal(output_axes(g, 0).s, "(2*N*T,30)");
    om_graph_release(g);
}
/* (3N,2T) or (2T,3N): 12 is a multiple of 4 and of 6, and 24 does not go into it. */
static om_tensor *in_order(om_tensor *x) {
    return om_reshape(x, OM_DIMS(3 * om_dim(x, 0), 2 * om_dim(x, 1)));
}
static void F34_symbols_stay_in_order(void **state) {
    (void)state;
    om_graph *g = EQUAL_AT(in_order, 3, ((int64_t[]){4, 6, 6}), ((const char *[4]){"N", "T"}),
                           {5, 2, 6}, {1, 1, 6});
    assert_string_equal(output_axes(g, 0).s, "(3*N,2*T)");
    assert_non_null(strstr(om_trace_report(g), "reshape read as"));
    om_graph_release(g);
}

/* ---- F7: the last index -------------------------------------------------------------------------
 */

static om_tensor *last_by_size(om_tensor *x) {
    return om_select(x, 0, om_dim(x, 0) - 1);
}
static om_tensor *last_by_sign(om_tensor *x) {
    return om_select(x, 0, -1);
}
static void F7_the_last_index(void **state) {
    (void)state;
    assert_null(trace_one(last_by_size, OM_DIMS(7, 4), OM_AXES("T")));
    check_trace_error(OM_TRACE_SYMBOLIC_SHAPE, "om_select", "write -1 for the last");
    om_graph_release(
        EQUAL_AT(last_by_sign, 2, ((int64_t[]){7, 4}), ((const char *[4]){"T"}), {9, 4}, {1, 4}));
    om_graph_release(
        EQUAL_AT(last_by_size, 2, ((int64_t[]){7, 4}), ((const char *[4]){NULL, "C"}), {7, 9}));
}

/* ---- F9: sizes from contents, through a node that folds
 * ------------------------------------------- */

static void F9_contents_through_a_folded_node(void **state) {
    (void)state;
    om_graph *g = begin(20);
    in(g, "x", OM_F32, "n,m");
    in(g, "shape", OM_I64, "2");
    ints(g, "two", 2, 1);
    node(g, "Mul", "shape two", "twice");
    node(g, "Reshape", "x twice", "y");
    out(g, "y");
    assert_int_equal(omi_graph_seal(g), OM_OK);
    om_session *s = om_session_new(g, NULL);
    check_ok();
    om_tensor *x = om_ones(OM_F32, OM_DIMS(2, 6)), *y = NULL;
    for (int64_t k = 1; k < 4; k++) {
        om_tensor *t = om_from(((int64_t[]){k, 6 / k}), OM_I64, OM_DIMS(2));
        om_session_run(s, 2, (om_binding[]){{"x", x}, {"shape", t}}, 1, &y);
        check_ok();
        assert_int_equal(om_dim(y, 0), 2 * k);
    }
    om_session_free(s);
    om_graph_release(g);
}

/* ---- F16, F17, F18 ------------------------------------------------------------------------------
 */

static void F16_memory_of_the_caller_is_copied(void **state) {
    (void)state;
    static float mine[4] = {1, 2, 3, 4};
    om_tensor *w         = om_from_buffer(mine, OM_F32, OM_DIMS(4), NULL, NULL);
    om_tracer *tr        = fresh_tracer();
    om_tensor *x         = om_trace_input(tr, "x", example(OM_DIMS(3, 4)), OM_AXES("N"));
    om_trace_output(tr, "y", om_add(x, w));
    om_graph *g   = om_trace_finish(tr);
    om_session *s = om_session_new(g, NULL);
    om_tensor *z = om_zeros(OM_F32, OM_DIMS(2, 4)), *before = om_session_call(s, z);
    for (int i = 0; i < 4; i++)
        mine[i] = -7;
    om_session *again = om_session_new(g, NULL);
    assert_true(om_bit_equal(om_session_call(again, z), before));
    assert_true(om_bit_equal(om_session_call(s, z), before));
    check_ok();
    om_session_free(s);
    om_session_free(again);
    om_graph_release(g);
}

static void F17_added_random_numbers_stay_marked(void **state) {
    (void)state;
    om_tracer *tr = fresh_tracer();
    om_tensor *x  = om_trace_input(tr, "x", example(OM_DIMS(3, 4)), OM_AXES("N"));
    om_tensor *n  = om_zeros(OM_F32, OM_DIMS(4));
    om_add_(n, om_rand(om_thread_rng(2), 0, 1, OM_DIMS(4)));
    assert_null(om_add(x, om_mul_scalar(n, 2)));
    check_trace_error(OM_TRACE_UNSUPPORTED_OPERATION, "computed from", "om_rand");
    om_trace_abort(tr);
}

static void F18_a_range_that_excludes_the_example(void **state) {
    (void)state;
    om_tracer *tr = fresh_tracer();
    om_trace_input(tr, "x", example(OM_DIMS(6, 4)), OM_AXES("N"));
    static const int64_t bad[][3] = {{1, 0, 4}, {7, 0, 1}, {1, 5, 1}};
    for (int i = 0; i < 3; i++) {
        assert_int_equal(om_trace_axis_range(tr, "N", bad[i][0], bad[i][1], bad[i][2]),
                         OM_ERR_TRACE);
        check_trace_error(OM_TRACE_INVALID_USAGE, "'N'", "example size 6");
    }
    assert_int_equal(om_trace_axis_range(tr, "N", 2, 10, 3), OM_OK);
    om_trace_abort(tr);
}

/* ---- F33: parameters that begin at one place of a storage ---------------------------------------
 */

/* One storage, one offset: 8, then 2 of equal strides, then two forms of all 8. */
static om_tensor *tied[4];
static const char *const tied_names[] = {"of_eight", "of_two", "of_2_4", "of_4_2"};

static om_tensor *tied_model(om_tensor *x) {
    om_tensor *h = om_mul(x, tied[1]), *wide = om_matmul(h, tied[2]);
    om_tensor *two[2] = {wide, om_matmul(om_matmul(wide, tied[3]), tied[2])};
    return om_add(om_concat(2, two, 1), tied[0]);
}

static void declare_tied(om_tracer *tr, int first) {
    for (int i = 0; i < 4; i++)
        om_trace_parameter(tr, tied_names[(first + i) % 4], tied[(first + i) % 4]);
}

static void F33_tied_parameters_of_other_shape(void **state) {
    (void)state;
    tied[0] = example(OM_DIMS(8));
    tied[1] = om_slice(tied[0], 0, 0, 2, 1);
    tied[2] = om_reshape(tied[0], OM_DIMS(2, 4));
    tied[3] = om_reshape(tied[0], OM_DIMS(4, 2));
    for (int first = 0; first < 4; first++) { /* whichever is declared first */
        om_tracer *tr = fresh_tracer();
        om_tensor *x  = om_trace_input(tr, "x", example(OM_DIMS(3, 2)), OM_AXES("N"));
        declare_tied(tr, first);
        om_trace_output(tr, "y", tied_model(x));
        om_graph *g = om_trace_finish(tr);
        check_ok();
        assert_int_equal(g->n_inits, 4);
        for (int i = 0; i < 4; i++) {
            const om_ginit *v = init_named(g, tied_names[i]);
            assert_non_null(v);
            assert_int_equal(v->rank, tied[i]->rank);
            assert_memory_equal(v->dims, tied[i]->shape, (size_t)v->rank * sizeof *v->dims);
            assert_int_equal(v->bytes, om_numel(tied[i]) * 4);
            assert_memory_equal((char *)v->buf->data + v->offset, om_data(tied[i]), v->bytes);
        }
        om_session *s   = om_session_new(g, NULL);
        om_tensor *more = filled(5, 2, (int64_t[]){7, 2});
        om_tensor *y = om_session_call(s, more), *want = tied_model(more);
        check_ok();
        assert_true(om_bit_equal(y, want));
        om_session_free(s);
        om_graph_release(g);
    }
}

/* A refusal names the one that was used, not the first of the storage. */
static void F33_messages_name_the_parameter_used(void **state) {
    (void)state;
    om_tensor *eight = example(OM_DIMS(8)), *two = om_slice(eight, 0, 0, 2, 1);
    om_tensor *rest = om_slice(eight, 0, 2, 4, 1);
    for (int i = 0; i < 2; i++) {
        om_tracer *tr = fresh_tracer();
        om_tensor *x  = om_trace_input(tr, "x", example(OM_DIMS(2)), OM_AXES("N"));
        om_trace_parameter(tr, "of_eight", eight);
        om_trace_parameter(tr, "of_two", two);
        om_trace_parameter(tr, "of_rest", rest);
        assert_null(om_add(x, i ? rest : two));
        check_trace_error(OM_TRACE_SYMBOLIC_SHAPE, i ? "of_rest" : "of_two", "N");
        om_trace_abort(tr);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        OM_TEST(F3_no_size_from_its_own_result),
        OM_TEST(F4_two_parameters_in_one_storage),
        OM_TEST(F5_windows_equal_at_the_example_only),
        OM_TEST(F6_the_open_size_takes_the_symbols),
        OM_TEST(F7_the_last_index),
        OM_TEST(F8_ceil_mode),
        OM_TEST(F9_contents_through_a_folded_node),
        OM_TEST(F15_dilation),
        OM_TEST(F16_memory_of_the_caller_is_copied),
        OM_TEST(F17_added_random_numbers_stay_marked),
        OM_TEST(F18_a_range_that_excludes_the_example),
        OM_TEST(F33_tied_parameters_of_other_shape),
        OM_TEST(F33_messages_name_the_parameter_used),
        OM_TEST(F34_symbols_stay_in_order),
        OM_TEST(F34_ceil_with_a_begin_pad),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
