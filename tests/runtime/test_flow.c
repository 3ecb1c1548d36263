/*
 * test_flow.c -- If, Loop, Scan and NonZero in a session: right values, captures, sizes met while
 * running, and what a stranger's model may not do (CD-37).
 */
#include "runtime/flow.h"

#include <math.h>

#include "runtime/stats.h"

static om_tensor *vec(int n, const float *v) {
    return om_from(v, OM_F32, OM_DIMS(n));
}
#define VEC(...) vec(sizeof((float[]){__VA_ARGS__}) / 4, (float[]){__VA_ARGS__})

static om_tensor *flag(bool v) {
    return om_from(&v, OM_BOOL, 0, NULL);
}
static om_tensor *number(int64_t v) {
    return om_from(&v, OM_I64, 0, NULL);
}

/* ---- If ---------------------------------------------------------------------------------------
 */

/* y = c ? x + 1 : concat(-x, x), z = y * 2 */
static om_graph *choice(void) {
    om_graph *g = begin(20);
    in(g, "c", OM_BOOL, "");
    in(g, "x", OM_F32, "n");
    floats(g, "one", 1);
    floats(g, "two", 2);
    int32_t k   = node(g, "If", "c", "y");
    om_graph *a = inside(g), *b = inside(g);
    node(a, "Add", "x one", "a");
    out(a, "a");
    node(b, "Neg", "x", "m");
    set_int(b, node(b, "Concat", "m x", "b"), "axis", 0);
    out(b, "b");
    hold(g, k, "then_branch", a);
    hold(g, k, "else_branch", b);
    node(g, "Mul", "y two", "z");
    out(g, "z");
    return g;
}

static om_tensor *run_choice(om_session *s, bool c, om_tensor *x) {
    om_tensor *y = NULL;
    om_session_run(s, 2, (om_binding[]){{"c", flag(c)}, {"x", x}}, 1, &y);
    return y;
}

static void if_runs_the_branch_that_is_taken(void **state) {
    (void)state;
    om_session *s = session(choice());
    OM_SCOPE {
        check_values(run_choice(s, true, VEC(1, 2)), 4, 6);
        check_values(run_choice(s, false, VEC(1, 2)), -2, -4, 2, 4);
        check_values(run_choice(s, true, VEC(5)), 12);
    }
    om_session_free(s);
}

static void the_other_branch_is_never_planned(void **state) {
    (void)state;
    om_graph *g = begin(20);
    in(g, "c", OM_BOOL, "");
    in(g, "x", OM_F32, "n");
    floats(g, "three", 1, 2, 3);
    int32_t k   = node(g, "If", "c", "y");
    om_graph *a = inside(g), *b = inside(g);
    node(a, "Add", "x three", "a"); // only three, or one
    out(a, "a");
    node(b, "Neg", "x", "b");
    out(b, "b");
    hold(g, k, "then_branch", a);
    hold(g, k, "else_branch", b);
    out(g, "y");
    om_session *s = session(g);
    OM_SCOPE {
        check_values(run_choice(s, false, VEC(1, 2)), -1, -2);
        assert_null(run_choice(s, true, VEC(1, 2)));
        check_error(OM_ERR_SHAPE, "op_a");
        check_values(run_choice(s, true, VEC(1, 2, 3)), 2, 4, 6);
    }
    om_session_free(s);
}

/* A branch that gives back what it captures, or a constant: the caller's tensors stay his own. */
static void a_branch_may_hand_on_what_it_captures(void **state) {
    (void)state;
    om_graph *g = begin(20);
    in(g, "c", OM_BOOL, "");
    in(g, "x", OM_F32, "n");
    floats(g, "w", 7, 8);
    int32_t k   = node(g, "If", "c", "y");
    om_graph *a = inside(g), *b = inside(g);
    value_of(a, "x");
    value_of(b, "w");
    out(a, "x");
    out(b, "w");
    hold(g, k, "then_branch", a);
    hold(g, k, "else_branch", b);
    out(g, "y");
    om_session *s = session(g);
    OM_SCOPE {
        om_tensor *x = VEC(1, 2), *y = run_choice(s, true, x);
        check_values(y, 1, 2);
        om_add_(y, y);
        check_values(x, 1, 2);
        om_tensor *w = run_choice(s, false, x);
        check_values(w, 7, 8);
        om_add_(w, w);
        check_values(run_choice(s, false, x), 7, 8);
    }
    om_session_free(s);
}

/* ---- Loop -------------------------------------------------------------------------------------
 */

/* for i < m: s = i even ? s + x : s - x; q[i] = s / 2. x is made outside, w is a constant there. */
static om_graph *alternate(void) {
    om_graph *g = begin(20);
    in(g, "m", OM_I64, "");
    in(g, "v", OM_F32, "n");
    floats(g, "s0", 10);
    floats(g, "half", 0.5f);
    scalar_int(g, "two", 2);
    node(g, "Neg", "v", "x");
    int32_t k   = node(g, "Loop", "m _ s0", "y ys");
    om_graph *b = loop_body(g);
    any(b, "s");
    node(b, "Div", "i two", "d");
    node(b, "Mul", "d two", "e");
    node(b, "Equal", "e i", "even");
    int32_t f   = node(b, "If", "even", "t");
    om_graph *p = inside(b), *q = inside(b);
    node(p, "Add", "s x", "a");
    out(p, "a");
    node(q, "Sub", "s x", "z");
    out(q, "z");
    hold(b, f, "then_branch", p);
    hold(b, f, "else_branch", q);
    node(b, "Mul", "t half", "h");
    out(b, "t");
    out(b, "h");
    hold(g, k, "body", b);
    out(g, "y");
    out(g, "ys");
    return g;
}

static om_status run_alternate(om_session *s, int64_t m, om_tensor **y) {
    return om_session_run(s, 2, (om_binding[]){{"m", number(m)}, {"v", VEC(-1)}}, 2, y);
}

static void an_if_in_a_loop_captures_through_both(void **state) {
    (void)state;
    om_session *s = session(alternate());
    OM_SCOPE {
        om_tensor *y[2];
        run_alternate(s, 3, y);
        check_values(y[0], 11);
        check_values(y[1], 5.5f, 5, 5.5f);
        assert_int_equal(om_rank(y[1]), 2);
        assert_int_equal(om_dim(y[1], 0), 3);
    }
    om_session_free(s);
}

static void a_loop_may_make_no_iteration(void **state) {
    (void)state;
    om_session *s = session(alternate());
    OM_SCOPE {
        for (int64_t m = -1; m < 1; m++) {
            om_tensor *y[2];
            run_alternate(s, m, y);
            check_values(y[0], 10);
            assert_int_equal(om_numel(y[1]), 0);
            assert_int_equal(om_dim(y[1], 0), 0);
        }
    }
    om_session_free(s);
}

/* Inputs that the file leaves out are not the captures that stand behind them. */
static void a_loop_may_have_a_trip_count_alone(void **state) {
    (void)state;
    om_graph *g = begin(20);
    in(g, "x", OM_F32, "n");
    scalar_int(g, "m", 3);
    int32_t k   = node(g, "Loop", "m", "ys");
    om_graph *b = loop_body(g);
    node(b, "Neg", "x", "q");
    out(b, "q");
    hold(g, k, "body", b);
    out(g, "ys");
    om_session *s = session(g);
    OM_SCOPE {
        check_values(om_session_call(s, VEC(1, 2)), -1, -2, -1, -2, -1, -2);
    }
    om_session_free(s);
}

static void plans_of_parts_are_kept(void **state) {
    (void)state;
    om_session *s = session(alternate());
    om_cache_stats a, b;
    OM_SCOPE {
        om_tensor *y[2];
        run_alternate(s, 4, y);
        omi_session_stats(s, &a);
        run_alternate(s, 9, y);
        omi_session_stats(s, &b);
    }
    assert_int_equal(a.builds, b.builds);
    assert_int_equal(b.evictions, 0);
    om_session_free(s);
}

/* while (sum(s) < 20) s = concat(s, x): sizes change in every iteration. */
static void a_state_may_grow(void **state) {
    (void)state;
    om_graph *g = begin(20);
    in(g, "x", OM_F32, "n");
    floats(g, "most", 20);
    scalar_bool(g, "yes", true);
    int32_t k   = node(g, "Loop", "_ yes x", "y");
    om_graph *b = inside(g);
    any(b, "i");
    any(b, "go");
    any(b, "s");
    set_int(b, node(b, "Concat", "s x", "t"), "axis", 0);
    node(b, "ReduceSum", "t", "sum");
    node(b, "Less", "sum most", "go_on");
    out(b, "go_on");
    out(b, "t");
    hold(g, k, "body", b);
    out(g, "y");
    om_session *s = session(g);
    OM_SCOPE {
        check_values(om_session_call(s, VEC(5)), 5, 5, 5, 5);
        check_values(om_session_call(s, VEC(30)), 30, 30);
    }
    om_session_free(s);
}

static void scan_outputs_of_varied_sizes_are_refused(void **state) {
    (void)state;
    om_graph *g = begin(20);
    in(g, "x", OM_F32, "n");
    scalar_int(g, "m", 3);
    int32_t k   = node(g, "Loop", "m _ x", "y ys");
    om_graph *b = loop_body(g);
    any(b, "s");
    set_int(b, node(b, "Concat", "s x", "t"), "axis", 0);
    node(b, "Neg", "t", "q");
    out(b, "t");
    out(b, "q");
    hold(g, k, "body", b);
    out(g, "y");
    out(g, "ys");
    om_session *s = session(g);
    OM_SCOPE {
        om_tensor *y[2];
        om_session_run(s, 1, &(om_binding){"x", VEC(1, 2)}, 2, y);
        check_error(OM_ERR_SHAPE, "op_y", "scan output 0", "[4]", "[6]");
    }
    om_session_free(s);
}

/* ---- Scan -------------------------------------------------------------------------------------
 */

/* Running sums of the rows of x. */
static om_graph *sums(int64_t back_in, int64_t back_out, int64_t axis_out) {
    om_graph *g = begin(20);
    in(g, "x", OM_F32, "n,2");
    floats(g, "zero", 0, 0);
    int32_t k   = node(g, "Scan", "zero x", "y ys");
    om_graph *b = inside(g);
    any(b, "s");
    any(b, "row");
    node(b, "Add", "s row", "t");
    node(b, "Identity", "t", "q");
    out(b, "t");
    out(b, "q");
    hold(g, k, "body", b);
    set_int(g, k, "num_scan_inputs", 1);
    set_ints(g, k, "scan_input_directions", 1, &back_in);
    set_ints(g, k, "scan_output_directions", 1, &back_out);
    set_ints(g, k, "scan_output_axes", 1, &axis_out);
    out(g, "y");
    out(g, "ys");
    return g;
}

static void check_sums(int64_t back_in, int64_t back_out, int64_t axis_out, const float *want) {
    static const float x[] = {1, 2, 10, 20, 100, 200};
    om_session *s          = session(sums(back_in, back_out, axis_out));
    OM_SCOPE {
        om_tensor *y[2];
        om_binding x2 = {"x", om_from(x, OM_F32, OM_DIMS(3, 2))};
        om_session_run(s, 1, &x2, 2, y);
        check_values(y[0], 111, 222);
        check_floats(y[1], 6, want);
        assert_int_equal(om_dim(y[1], axis_out ? 1 : 0), 3);
        x2.tensor = om_empty(OM_F32, OM_DIMS(0, 2)); // no iteration
        om_session_run(s, 1, &x2, 2, y);
        check_values(y[0], 0, 0);
        assert_int_equal(om_numel(y[1]), 0);
    }
    om_session_free(s);
}

static void scan_goes_both_ways(void **state) {
    (void)state;
    check_sums(0, 0, 0, (float[]){1, 2, 11, 22, 111, 222});
    check_sums(1, 0, 0, (float[]){100, 200, 110, 220, 111, 222});
    check_sums(0, 1, 0, (float[]){111, 222, 11, 22, 1, 2});
    check_sums(1, 1, 0, (float[]){111, 222, 110, 220, 100, 200});
    check_sums(0, 0, -1, (float[]){1, 11, 111, 2, 22, 222});
}

/* ---- NonZero ----------------------------------------------------------------------------------
 */

static void nonzero_knows_minus_zero_nan_and_no_axes(void **state) {
    (void)state;
    om_graph *g = begin(20);
    in(g, "x", OM_F32, "?");
    node(g, "NonZero", "x", "i");
    node(g, "Shape", "i", "n"); // planned from the sizes that were met
    out(g, "i");
    out(g, "n");
    om_session *s = session(g);
    OM_SCOPE {
        om_tensor *y[2];
        om_session_run(s, 1, &(om_binding){"x", VEC(-0.0f, NAN, 0, 1e-45f)}, 2, y);
        check_ok();
        assert_memory_equal(om_data(y[0]), ((int64_t[]){1, 3}), 16);
        assert_memory_equal(om_data(y[1]), ((int64_t[]){1, 2}), 16);
    }
    om_session_free(s);
    g = begin(20);
    in(g, "x", OM_U8, "");
    node(g, "NonZero", "x", "i");
    out(g, "i");
    s = session(g);
    OM_SCOPE { // ONNX: "for scalar input, NonZero produces output shape (0, N)"
        om_tensor *y = om_session_call(s, om_from((uint8_t[]){4}, OM_U8, 0, NULL));
        check_ok();
        assert_int_equal(om_dim(y, 0), 0);
        assert_int_equal(om_dim(y, 1), 1);
    }
    om_session_free(s);
}

/* ---- promises ---------------------------------------------------------------------------------
 */

static om_status whole_life(void *ctx) {
    om_graph *g = done(alternate());
    (void)ctx;
    om_session *s = g ? om_session_new(g, NULL) : NULL;
    om_graph_release(g);
    om_tensor *y[2] = {0};
    om_status st    = s ? run_alternate(s, 3, y) : om_pending();
    if (st == OM_OK) st = run_alternate(s, 5, y);
    om_session_free(s);
    return st;
}

static void every_allocation_may_fail(void **state) {
    (void)state;
    om_scope_drain();
    om_trim();
    assert_true(harness_fail_each(whole_life, NULL) > 100);
}

/* y = x, then 5 times y = softmax(y w) with a sum kept. */
static om_graph *products(void) {
    static float w[64 * 64];
    for (int i = 0; i < 64 * 64; i++)
        w[i] = (float)((i * 7919) % 101) / 50 - 1;
    om_graph *g = begin(20);
    in(g, "x", OM_F32, "n,64");
    constant(g, "w", OM_F32, 2, (int64_t[]){64, 64}, w);
    scalar_int(g, "m", 5);
    int32_t k   = node(g, "Loop", "m _ x", "y ys");
    om_graph *b = loop_body(g);
    any(b, "s");
    node(b, "MatMul", "s w", "t");
    set_int(b, node(b, "Softmax", "t", "u"), "axis", 1);
    node(b, "ReduceSum", "u", "q");
    out(b, "u");
    out(b, "q");
    hold(g, k, "body", b);
    out(g, "y");
    out(g, "ys");
    return g;
}

static void bits_do_not_depend_on_threads(void **state) {
    (void)state;
    char first[65], other[65];
    OM_SCOPE {
        om_tensor *x = om_reshape(om_cast(om_arange(0, 33 * 64, 1), OM_F32), OM_DIMS(33, 64));
        for (int t = 1; t <= 4; t++) {
            om_session *s = open_session(done(products()), OM_EXACT, t);
            om_tensor *y[2];
            om_session_run(s, 1, &(om_binding){"x", x}, 2, y);
            check_ok();
            om_hash(y[0], t > 1 ? other : first);
            if (t > 1) assert_string_equal(first, other);
            om_session_free(s);
        }
    }
}

static void a_saved_model_runs_the_same(void **state) {
    (void)state;
    om_graph *g = done(alternate());
    void *data  = NULL;
    size_t n    = 0;
    assert_int_equal(om_graph_save_memory(g, &data, &n), OM_OK);
    om_graph_release(g);
    g = om_graph_load_memory(data, n, NULL);
    check_ok();
    om_bytes_free(data, n);
    om_session *s = open_session(g, OM_EXACT, 1);
    check_ok();
    OM_SCOPE {
        om_tensor *y[2];
        run_alternate(s, 3, y);
        check_values(y[0], 11);
    }
    om_session_free(s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        OM_TEST(if_runs_the_branch_that_is_taken),
        OM_TEST(the_other_branch_is_never_planned),
        OM_TEST(a_branch_may_hand_on_what_it_captures),
        OM_TEST(an_if_in_a_loop_captures_through_both),
        OM_TEST(a_loop_may_make_no_iteration),
        OM_TEST(a_loop_may_have_a_trip_count_alone),
        OM_TEST(plans_of_parts_are_kept),
        OM_TEST(a_state_may_grow),
        OM_TEST(scan_outputs_of_varied_sizes_are_refused),
        OM_TEST(scan_goes_both_ways),
        OM_TEST(nonzero_knows_minus_zero_nan_and_no_axes),
        OM_TEST(every_allocation_may_fail),
        OM_TEST(bits_do_not_depend_on_threads),
        OM_TEST(a_saved_model_runs_the_same),
    };
    return cmocka_run_group_tests_name("flow", tests, NULL, NULL);
}
