/*
 * test_autograd.c -- the engine: order, accumulation, versions, custom operators, long chains.
 */
#include "harness.h"

#include <math.h>

#include "autograd/record.h"
#include "onemodel/autograd.h"
#include "onemodel/ops.h"

static om_tensor *leaf(float v) {
    om_tensor *x = om_full(v, OM_F32, OM_DIMS(3));
    om_set_requires_grad(x, true);
    return x;
}
static float at(om_tensor *t, int64_t i) {
    return (float)om_get(t, &i);
}

static void test_chain_and_accumulation(void **state) {
    (void)state;
    om_tensor *x = leaf(2), *y = om_mul(x, x);
    assert_true(om_requires_grad(y));
    assert_int_equal(om_backward(om_sum_all(om_add(y, x))), OM_OK); // 2x + 1
    assert_true(at(om_grad_of(x), 0) == 5);
    assert_int_equal(om_backward(om_sum_all(x)), OM_OK); // accumulates
    assert_true(at(om_grad_of(x), 2) == 6);
    om_clear_grad(x);
    assert_null(om_grad_of(x));
}

/* AR-11.1: contributions are added in the order of the walk from the root, whatever order the calls
 * ran in. */
static void test_order_does_not_depend_on_call_order(void **state) {
    (void)state;
    om_tensor *grads[2];
    for (int swap = 0; swap < 2; swap++) {
        om_tensor *x = leaf(1), *branch[3] = {NULL};
        for (int k = 0; k < 3; k++) {
            int i     = swap ? 2 - k : k;
            branch[i] = om_mul_scalar(x, i == 0 ? 0x1p24 : i == 1 ? 1 : -0x1p24);
        }
        om_backward(om_sum_all(om_add(om_add(branch[0], branch[1]), branch[2])));
        grads[swap] = om_grad_of(x);
        check_ok();
    }
    assert_true(om_bit_equal(grads[0], grads[1]));
}

static void test_grad_leaves_leaves_alone(void **state) {
    (void)state;
    om_tensor *x = leaf(3), *m = om_mul(x, x), *y = om_sum_all(om_mul(m, x)), *out[3];
    om_tensor *other = leaf(1);
    assert_int_equal(om_grad(y, 3, (om_tensor *[]){x, m, other}, out, NULL), OM_OK);
    assert_true(at(out[0], 0) == 27 && at(out[1], 0) == 3);
    assert_null(out[2]);
    assert_null(om_grad_of(x));
}

static void test_used_twice_is_refused(void **state) {
    (void)state;
    om_tensor *x = leaf(3), *y = om_sum_all(om_exp(x));
    assert_int_equal(
        om_backward_with(
            y, &(om_backward_opts){.struct_size = sizeof(om_backward_opts), .retain_graph = true}),
        OM_OK);
    assert_int_equal(om_backward(y), OM_OK);
    assert_int_equal(om_backward(y), OM_ERR_STATE);
    check_error(OM_ERR_STATE, "second time", "retain_graph");
}

static void test_changed_saved_value_names_both(void **state) {
    (void)state;
    om_tensor *x = leaf(3), *w = om_ones(OM_F32, OM_DIMS(3)), *y = om_mul(x, w);
    om_fill_(w, 5);
    assert_int_equal(om_backward(om_sum_all(y)), OM_ERR_STATE);
    check_error(OM_ERR_STATE, "om_mul", "om_fill_", "input 1");
    om_tensor *e = om_exp(x);
    bool g       = om_no_grad_begin();
    om_fill_(e, 5); // e is the saved output of om_exp
    om_no_grad_end(g);
    assert_int_equal(om_backward(om_sum_all(e)), OM_ERR_STATE);
    check_error(OM_ERR_STATE, "om_exp", "om_fill_", "output 0");
}

static void test_roots(void **state) {
    (void)state;
    om_tensor *x = leaf(1), *y = om_neg(x);
    assert_int_equal(om_backward(y), OM_ERR_SHAPE);
    check_error(OM_ERR_SHAPE, "om_backward_with");
    assert_int_equal(om_backward(om_scalar_f32(1)), OM_ERR_STATE);
    check_error(OM_ERR_STATE, "om_set_requires_grad");
    om_tensor *g = om_full(2, OM_F32, OM_DIMS(3));
    assert_int_equal(om_backward_with(y, &(om_backward_opts){.grad = g}), OM_OK);
    assert_true(at(om_grad_of(x), 1) == -2);
    assert_true(at(g, 1) == 2); // the caller's gradient was not added into
    assert_int_equal(om_set_requires_grad(y, true), OM_ERR_STATE);
    check_error(OM_ERR_STATE, "leaves");
    assert_int_equal(om_set_requires_grad(om_scalar_i64(1), true), OM_ERR_DTYPE);
    check_error(OM_ERR_DTYPE, "float32");
}

static void test_no_grad_records_nothing(void **state) {
    (void)state;
    om_tensor *x = leaf(1);
    bool was     = om_no_grad_begin();
    om_tensor *y = om_exp(x);
    om_no_grad_end(was);
    assert_false(om_requires_grad(y));
    assert_true(om_requires_grad(om_exp(x)));
    assert_false(om_requires_grad(om_detach(om_exp(x))));
}

/* A chain of a million records is walked and released without recursion (CD-9, decisions.md 10). */
static void test_million_records(void **state) {
    (void)state;
    om_scope out = om_scope_begin();
    om_tensor *x = om_scalar_f32(0), *y = x;
    om_set_requires_grad(x, true);
    for (int i = 0; i < 1000000; i++) {
        om_scope s = om_scope_begin();
        y          = om_scope_return(s, om_add_scalar(y, 1));
    }
    check_ok();
    assert_true(om_item_f32(y) == 1000000);
    assert_int_equal(om_backward(y), OM_OK);
    assert_true(om_item_f32(om_grad_of(x)) == 1);
    om_scope_end(out);
    assert_int_equal(om_live_tensors(), 0);
}

/* Unused outputs have no gradient; a record with several outputs runs once (CD-6). */
static void test_many_outputs(void **state) {
    (void)state;
    om_tensor *x = om_cast(om_arange(0, 10, 1), OM_F32), *part[5], *v, *i;
    om_set_requires_grad(x, true);
    assert_int_equal(om_split(x, 0, 5, (int64_t[]){2, 2, 2, 2, 2}, part), OM_OK);
    om_top_k(om_concat(2, (om_tensor *[]){part[1], part[3]}, 0), 2, 0, false, &v, &i);
    assert_int_equal(om_backward(om_sum_all(om_mul(v, v))), OM_OK);
    const float want[10] = {0, 0, 0, 0, 0, 0, 12, 14, 0, 0};
    float got[10];
    om_copy_out(om_grad_of(x), got, sizeof got);
    assert_memory_equal(got, want, sizeof want);
    assert_false(om_requires_grad(i));
}

/* ---- custom operators
 * ------------------------------------------------------------------------------ */

static int cube(void *ctx, int n_in, om_tensor *const *in, int n_out, om_tensor **out) {
    (void)ctx;
    (void)n_in;
    (void)n_out;
    om_tensor *y   = om_empty(OM_F32, om_rank(in[0]), om_shape_of(in[0]));
    const float *x = om_data(in[0]);
    float *p       = om_data_mut(y);
    for (int64_t i = 0; p && i < om_numel(y); i++)
        p[i] = x[i] * x[i] * x[i];
    out[0] = y;
    return 0;
}
static int cube_back(void *ctx, int n_in, om_tensor *const *in, int n_out, om_tensor *const *out,
                     om_tensor *const *dy, om_tensor **dx) {
    (void)ctx;
    (void)n_in;
    (void)n_out;
    (void)out;
    dx[0] = om_mul(dy[0], om_mul_scalar(om_mul(in[0], in[0]), 3));
    return 0;
}
static int broken(void *ctx, int n_in, om_tensor *const *in, int n_out, om_tensor **out) {
    (void)n_in;
    (void)n_out;
    out[0] = in[0];
    return *(int *)ctx;
}
static void test_custom_operator(void **state) {
    (void)state;
    om_custom_op op = {
        .struct_size = sizeof op, .name = "cube", .forward = cube, .backward = cube_back};
    om_tensor *x = leaf(2), *y;
    assert_int_equal(om_custom(&op, 1, &x, 1, &y), OM_OK);
    assert_true(at(y, 0) == 8);
    assert_int_equal(om_backward(om_sum_all(y)), OM_OK);
    assert_true(at(om_grad_of(x), 2) == 12);
    int code         = 7;
    om_custom_op bad = {.name = "bad", .forward = broken, .ctx = &code};
    assert_int_equal(om_custom(&bad, 1, &x, 1, &y), OM_ERR_VALUE);
    check_error(OM_ERR_VALUE, "'bad'", "7");
    code = 0;
    assert_int_equal(om_custom(&bad, 1, &x, 1, &y), OM_ERR_ARG);
    check_error(OM_ERR_ARG, "om_clone");
}

static om_status training_step(void *unused) {
    (void)unused;
    om_scope s   = om_scope_begin();
    om_tensor *x = leaf(2), *w = leaf(0.5f);
    om_custom_op op = {
        .struct_size = sizeof op, .name = "cube", .forward = cube, .backward = cube_back};
    om_tensor *c = NULL;
    om_custom(&op, 1, &x, 1, &c);
    om_backward(om_sum_all(om_mul(om_add(om_mul(x, w), om_exp(x)), c)));
    return om_scope_end(s);
}
static void test_every_allocation_may_fail(void **state) {
    (void)state;
    assert_true(harness_fail_each(training_step, NULL) > 50);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        OM_TEST(test_chain_and_accumulation),
        OM_TEST(test_order_does_not_depend_on_call_order),
        OM_TEST(test_grad_leaves_leaves_alone),
        OM_TEST(test_used_twice_is_refused),
        OM_TEST(test_changed_saved_value_names_both),
        OM_TEST(test_roots),
        OM_TEST(test_no_grad_records_nothing),
        OM_TEST(test_million_records),
        OM_TEST(test_many_outputs),
        OM_TEST(test_custom_operator),
        OM_TEST(test_every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
