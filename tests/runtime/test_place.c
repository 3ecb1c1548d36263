/*
 * test_place.c -- values that share bytes: a step works in place only where nobody else reads those
 * bytes, and an output is written in place only where it is the whole of its block.
 *
 * Each graph is run in a session and beside it by eager operators, which never share.
 */
#include "runtime/build.h"

enum { N = 64 };

static om_tensor *ramp(void) {
    om_rng g = om_rng_new(7, 3);
    return om_rand(&g, 0.1f, 2, OM_DIMS(4, N));
}

static void run(om_graph *g, int n_out, om_tensor **out, om_tensor *x) {
    om_session *s = session(g);
    assert_int_equal(om_session_run(s, 1, &(om_binding){"x", x}, n_out, out), OM_OK);
    om_session_free(s);
}

static void an_operand_read_later_is_not_overwritten(void **state) {
    (void)state;
    om_tensor *x = ramp(), *y[1];
    om_graph *g  = begin(20);
    in(g, "x", OM_F32, "4,64");
    node(g, "Exp", "x", "t");
    node(g, "Neg", "t", "a"); // may not take t's bytes: the Add reads it
    node(g, "Add", "a t", "s");
    node(g, "Mul", "s t", "y"); // nor may the Add
    out(g, "y");
    run(g, 1, y, x);
    om_tensor *t = om_exp(x);
    assert_true(om_bit_equal(y[0], om_mul(om_add(om_neg(t), t), t)));
}

static void a_later_piece_as_an_output_is_copied(void **state) {
    (void)state;
    om_tensor *x = ramp(), *part[2];
    om_graph *g  = begin(20);
    in(g, "x", OM_F32, "4,64");
    ints(g, "sizes", 1, 3);
    node(g, "Exp", "x", "t");
    node(g, "Split", "t sizes",
         "a b"); // axis 0: b is a piece of t, and does not begin where t does
    node(g, "Sqrt", "x", "u");
    node(g, "Abs", "u", "v");
    node(g, "Tanh", "v", "w");
    node(g, "Softmax", "w", "w2");
    set_int(g, node(g, "ReduceSum", "w2", "y"), "keepdims", 1);
    out(g, "b");
    out(g, "y");
    out(g, "u"); // behind them, so that what is written too far meets it and not the heap
    om_session *s    = session(g);
    om_shape shape   = {2, {4, N}};
    om_run *r        = om_session_prepare(s, 1, &shape); // its outputs lie side by side
    const void *data = om_data(x);
    assert_int_equal(om_run_call(r, &data, NULL), OM_OK);
    om_split(om_exp(x), 0, 2, (int64_t[]){1, 3}, part);
    om_tensor *want = om_sum(om_softmax(om_tanh(om_abs(om_sqrt(x))), -1), 0, NULL, true);
    assert_memory_equal(om_run_output(r, 0), om_data(om_contiguous(part[1])), 3 * N * 4);
    assert_memory_equal(om_run_output(r, 1), om_data(want), 4);
    om_run_free(r);
    om_session_free(s);
}

static void an_operand_that_overlaps_another_is_not_overwritten(void **state) {
    (void)state;
    om_tensor *x = ramp(), *y[1];
    om_graph *g  = begin(20);
    in(g, "x", OM_F32, "4,64");
    ints(g, "from", 0);
    ints(g, "to", 1);
    ints(g, "axes", 0);
    node(g, "Exp", "x", "t");
    node(g, "Slice", "t from to axes", "r"); // a row of t, which the Add reads again for each row
    node(g, "Add", "t r", "q");
    set_int(g, node(g, "ReduceSum", "q", "y"), "keepdims", 0);
    out(g, "y");
    run(g, 1, y, x);
    om_tensor *t = om_exp(x);
    assert_true(om_bit_equal(y[0], om_sum_all(om_add(t, om_slice(t, 0, 0, 1, 1)))));
}

static void a_piece_of_a_value_does_not_give_its_bytes_away(void **state) {
    (void)state;
    om_tensor *x = ramp(), *y[1];
    om_graph *g  = begin(20);
    in(g, "x", OM_F32, "4,64");
    ints(g, "sizes", 2, 2);
    node(g, "Exp", "x", "t");
    node(g, "Split", "t sizes", "a b");
    node(g, "Neg", "a", "c"); // in place it would write over t, which the last node reads
    node(g, "Sqrt", "b", "d");
    node(g, "Concat", "c d", "e");
    out(g, "e");
    set_int(g, (int32_t)g->n_nodes - 1, "axis", 0);
    run(g, 1, y, x);
    om_tensor *part[2];
    om_split(om_exp(x), 0, 2, (int64_t[]){2, 2}, part);
    om_tensor *two[2] = {om_neg(part[0]), om_sqrt(part[1])};
    assert_true(om_bit_equal(y[0], om_concat(2, two, 0)));
}

/* What a run of n layers holds; each needs the result of the one before and a buffer of its own. */
static int64_t memory_of_chain(int n) {
    char from[16] = "x", to[16];
    om_graph *g   = begin(20);
    int64_t bytes = 0;
    om_shape size = {2, {13, 20}};
    in(g, "x", OM_F32, "13,20");
    for (int i = 0; i < n; i++) {
        snprintf(to, sizeof to, "t%d", i);
        set_ints(g, node(g, "Transpose", from, to), "perm", 2, (int64_t[]){1, 0});
        memcpy(from, to, sizeof from);
    }
    out(g, from);
    om_session *s = session(g);
    assert_int_equal(om_session_memory(s, 1, &size, &bytes), OM_OK);
    om_session_free(s);
    return bytes;
}

static void a_chain_of_any_length_needs_the_same_memory(void **state) {
    (void)state;
    int64_t few = memory_of_chain(10);
    assert_true(few > 0 && few <= 4 * 1088);
    assert_int_equal(memory_of_chain(2900), few);
    assert_int_equal(memory_of_chain(6200), few); // another way of placing them from here on
    assert_int_equal(memory_of_chain(20000), few);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        OM_TEST(an_operand_read_later_is_not_overwritten),
        OM_TEST(a_later_piece_as_an_output_is_copied),
        OM_TEST(an_operand_that_overlaps_another_is_not_overwritten),
        OM_TEST(a_piece_of_a_value_does_not_give_its_bytes_away),
        OM_TEST(a_chain_of_any_length_needs_the_same_memory),
    };
    return cmocka_run_group_tests_name("place", tests, NULL, NULL);
}
