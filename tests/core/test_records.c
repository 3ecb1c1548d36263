/*
 * test_records.c -- what a record holds and where it leads (CD-31), custom operators that
 * misbehave, and a backward that fails half way.
 */
#include "harness.h"

#include <math.h>

#include "autograd/engine.h"
#include "kernels/table.h"
#include "onemodel/nn.h"
#include "onemodel/ops.h"
#include "onemodel/trace.h"

static om_tensor *leaf(int64_t n, float v) {
    om_tensor *x = om_full((double)v, OM_F32, OM_DIMS(n));
    om_set_requires_grad(x, true);
    return x;
}

static float first(const om_tensor *t) {
    return (float)om_get(t, (int64_t[]){0});
}

/* ---- gradients by inputs -----------------------------------------------------------------------
 */

static om_tensor *div2(om_tensor *a, om_tensor *b) {
    return om_div(a, b);
}
static om_tensor *mul2(om_tensor *a, om_tensor *b) {
    return om_mul(a, b);
}
static om_tensor *matmul2(om_tensor *a, om_tensor *b) {
    return om_matmul(om_reshape(a, OM_DIMS(1, 4)), om_reshape(b, OM_DIMS(4, 1)));
}

/* By what was not marked: refused, whatever the operator saved. */
static void a_gradient_by_an_unmarked_input_is_refused(void **state) {
    (void)state;
    om_tensor *(*const ops[])(om_tensor *, om_tensor *) = {div2, mul2, matmul2};
    for (int k = 0; k < 3; k++)
        for (int marked = 0; marked < 2; marked++) {
            om_tensor *in[2] = {om_full(3, OM_F32, OM_DIMS(4)), om_full(2, OM_F32, OM_DIMS(4))};
            om_tensor *g     = NULL;
            om_set_requires_grad(in[marked], true);
            om_tensor *y = om_sum_all(ops[k](in[0], in[1]));
            om_grad(y, 1, &in[1 - marked], &g, OM_OPTS(backward, .retain_graph = true));
            check_error(OM_ERR_STATE, "om_set_requires_grad", "float32 [4]");
            assert_null(g);
            assert_int_equal(om_grad(y, 1, &in[marked], &g, NULL), OM_OK);
            float want = k == 0 ? marked == 0 ? 0.5f : -0.75f : marked == 0 ? 2.0f : 3.0f;
            assert_float_equal(first(g), want, 0);
        }
}

static void a_given_gradient_is_copied(void **state) {
    (void)state;
    om_tensor *x = leaf(3, 1), *g = om_full(5, OM_F32, OM_DIMS(3));
    assert_int_equal(om_backward_with(x, OM_OPTS(backward, .grad = g)), OM_OK);
    om_fill_(g, 77);
    assert_float_equal(first(om_grad_of(x)), 5, 0);
}

/* A sum hands one gradient to both its terms; what then comes to one is not added into the other's.
 */
static void a_shared_first_term_is_not_added_into(void **state) {
    (void)state;
    om_tensor *w = leaf(3, 1), *x = leaf(3, 1), *g = NULL, *a = om_mul_scalar(w, 2);
    om_tensor *loss =
        om_add(om_sum_all(om_mul_scalar(a, 5)), om_sum_all(om_mul_scalar(om_add(a, x), 3)));
    assert_int_equal(om_grad(loss, 1, &x, &g, OM_OPTS(backward, .retain_graph = true)), OM_OK);
    assert_float_equal(first(g), 3, 0);
    assert_int_equal(om_grad(loss, 1, &a, &g, OM_OPTS(backward, .retain_graph = true)), OM_OK);
    assert_float_equal(first(g), 8, 0);
    assert_int_equal(om_backward(loss), OM_OK);
    assert_float_equal(first(om_grad_of(x)), 3, 0);
    assert_float_equal(first(om_grad_of(w)), 16, 0);
}

/* An elementwise gradient may be written over the one that came: the same bits in every column at
 * every length, and a gradient that the caller or a second reader holds is not touched. */
static void a_gradient_is_written_over_only_when_nobody_sees_it(void **state) {
    (void)state;
    om_tensor *(*const ops[])(om_tensor *) = {om_relu, om_tanh, om_sigmoid, om_exp, om_erf,
                                              om_gelu, om_silu, om_abs,     om_neg};
    for (om_column c = 0; c < OM_COL_COUNT; c++)
        for (int64_t n = 1; omi_kernels_of(c) && n < 70; n++)
            for (size_t k = 0; k < OM_COUNT(ops); k++) {
                om_scope scope = om_scope_begin();
                omi_kernels_force((int)c);
                om_rng rng   = om_rng_new(3, (uint64_t)n);
                om_tensor *x = om_randn(&rng, 0, 1, OM_DIMS(n)),
                          *g = om_randn(&rng, 0, 1, OM_DIMS(n)), *kept = om_clone(g), *held,
                          *written, *both[2];
                om_set_requires_grad(x, true);
                om_tensor *y = ops[k](x);
                om_grad(y, 1, &x, &held, OM_OPTS(backward, .grad = g));
                // Through two more operators the gradient of y is the engine's own.
                om_tensor *z = om_neg(om_neg(ops[k](x)));
                om_grad(z, 1, &x, &written, OM_OPTS(backward, .grad = g));
                // Here somebody asks for the gradient of y itself.
                y = ops[k](x);
                z = om_neg(om_neg(y));
                om_grad(z, 2, (om_tensor *[]){y, x}, both, OM_OPTS(backward, .grad = g));
                omi_kernels_force(-1);
                check_ok();
                size_t bytes = (size_t)n * 4;
                assert_memory_equal(om_data(g), om_data(kept), bytes);
                assert_memory_equal(om_data(both[0]), om_data(kept), bytes);
                assert_memory_equal(om_data(held), om_data(written), bytes);
                assert_memory_equal(om_data(held), om_data(both[1]), bytes);
                om_scope_end(scope);
            }
}

/* The same through an operator that hands on what it was given, to two leaves. */
static void a_gradient_of_a_leaf_is_its_own(void **state) {
    (void)state;
    om_tensor *x = leaf(3, 1), *z = leaf(3, 1), *g = om_full(5, OM_F32, OM_DIMS(3));
    assert_int_equal(om_backward_with(om_add(x, z), OM_OPTS(backward, .grad = g)), OM_OK);
    om_fill_(g, 77);
    assert_float_equal(first(om_grad_of(x)), 5, 0);
    om_fill_(om_grad_of(x), 9);
    assert_float_equal(first(om_grad_of(z)), 5, 0);
}

static void a_write_from_a_recorded_value_is_refused(void **state) {
    (void)state;
    om_tensor *x = leaf(3, 2), *y = om_mul(x, x), *to = om_zeros(OM_F32, OM_DIMS(3));
    om_copy_(to, y);
    check_error(OM_ERR_STATE, "om_detach");
    om_add_(to, y);
    check_error(OM_ERR_STATE, "om_detach");
    assert_int_equal(om_add_(to, om_detach(y)), OM_OK);
    bool was = om_no_grad_begin();
    assert_int_equal(om_add_(to, y), OM_OK);
    om_no_grad_end(was);
    assert_float_equal(first(to), 8, 0);
}

static void one_tensor_as_mean_and_variance_is_refused(void **state) {
    (void)state;
    om_tensor *x = om_ones(OM_F32, OM_DIMS(2, 3, 4)), *m = om_zeros(OM_F32, OM_DIMS(3));
    om_batch_norm2d(x, NULL, NULL, m, m, OM_OPTS(batch_norm, .training = true));
    check_error(OM_ERR_ARG, "one tensor");
}

/* ---- custom operators --------------------------------------------------------------------------
 */

static int mode;
static om_tensor *kept;

static int forward(void *ctx, int n_in, om_tensor *const *in, int n_out, om_tensor **out) {
    (void)ctx;
    (void)n_in;
    out[0] = mode == 2 ? kept : om_mul_scalar(in[0], 2);
    if (n_out > 1) out[1] = mode == 1 ? out[0] : om_neg(in[0]);
    return 0;
}
static int backward(void *ctx, int n_in, om_tensor *const *in, int n_out, om_tensor *const *out,
                    om_tensor *const *dy, om_tensor **dx) {
    (void)ctx;
    (void)n_in;
    (void)in;
    (void)n_out;
    (void)out;
    dx[0] = mode == 3 ? om_zeros(OM_F32, OM_DIMS(7)) : om_mul_scalar(dy[0], 2);
    return 0;
}
static int lowering(void *ctx, int n_in, om_tensor *const *in, int n_out, om_tensor **out) {
    (void)ctx;
    (void)n_in;
    (void)n_out;
    out[0] = mode == 4 ? om_mul_scalar(in[0], 3) : om_add(in[0], in[0]);
    return 0;
}
static om_custom_op twice = {.struct_size = sizeof(om_custom_op),
                             .name        = "twice",
                             .forward     = forward,
                             .backward    = backward,
                             .lowering    = lowering};

static void a_custom_operator_returns_what_it_made(void **state) {
    (void)state;
    om_tensor *x = leaf(3, 1), *out[2];
    kept         = leaf(3, 9);
    mode         = 1;
    assert_int_not_equal(om_custom(&twice, 1, &x, 2, out), OM_OK);
    check_error(OM_ERR_ARG, "'twice'", "outputs 0 and 1", "om_clone");
    mode = 2;
    assert_int_not_equal(om_custom(&twice, 1, &x, 1, out), OM_OK);
    check_error(OM_ERR_ARG, "'twice'", "did not make", "om_clone");
    assert_true(om_requires_grad(kept));
    assert_int_equal(om_backward(om_sum_all(kept)), OM_OK); // still a leaf
    assert_float_equal(first(om_grad_of(kept)), 1, 0);
    mode = 0;
    kept = NULL;
}

static void a_custom_gradient_of_another_shape_is_named(void **state) {
    (void)state;
    om_tensor *x = leaf(3, 1), *y;
    mode         = 3;
    assert_int_equal(om_custom(&twice, 1, &x, 1, &y), OM_OK);
    om_backward(om_sum_all(y));
    check_error(OM_ERR_SHAPE, "'twice'", "float32 [7]", "float32 [3]");
    mode = 0;
}

static void a_custom_operator_without_backward_says_so(void **state) {
    (void)state;
    om_custom_op op = twice;
    op.backward     = NULL;
    om_tensor *x    = leaf(3, 1), *y, *z;
    assert_int_equal(om_custom(&op, 1, &x, 1, &y), OM_OK);
    om_backward(om_sum_all(om_add(y, x)));
    check_error(OM_ERR_UNSUPPORTED, "'twice'", "no backward", "om_detach");
    assert_null(om_grad_of(x));
    om_tensor *cut = om_detach(x);
    assert_int_equal(om_custom(&op, 1, &cut, 1, &z), OM_OK);
    assert_int_equal(om_backward(om_sum_all(om_add(z, x))), OM_OK);
    assert_float_equal(first(om_grad_of(x)), 1, 0);
}

static void a_lowering_is_compared_with_the_operator(void **state) {
    (void)state;
    for (mode = 0; mode <= 4; mode += 4) {
        om_tensor *y = NULL, *ex = om_full(3, OM_F32, OM_DIMS(4));
        om_tracer *tr = om_trace_begin(NULL);
        om_tensor *x  = om_trace_input(tr, "x", ex, 0, NULL);
        om_custom(&twice, 1, &x, 1, &y);
        if (mode == 4) check_error(OM_ERR_TRACE, "'twice'", "lowering");
        check_ok();
        om_trace_abort(tr);
    }
    mode = 0;
}

/* ---- what is held ------------------------------------------------------------------------------
 */

static om_tensor *twenty(void *ctx, om_module *m, om_tensor *x) {
    (void)m;
    (void)ctx;
    for (int i = 0; i < 20; i++)
        x = om_add_scalar(x, 1);
    return x;
}

/* Nothing is read by the gradient of x + 1, so nothing is kept for it. */
static void a_chain_of_sums_holds_its_result_only(void **state) {
    (void)state;
    enum { N = 1 << 20 };
    om_tensor *x = leaf(N, 1);
    om_module *m = om_nn_custom(twenty, NULL, NULL);
    om_memory_stats before, after;
    om_memory(&before);
    om_tensor *y = om_forward(m, x);
    om_memory(&after);
    assert_true(after.bytes - before.bytes < 4 * N + (1 << 16));
    assert_int_equal(om_backward(om_sum_all(y)), OM_OK);
    assert_float_equal(first(om_grad_of(x)), 1, 0);
    om_nn_free(m);
}

static om_tensor *plus_one(void *ctx, om_module *m, om_tensor *x) {
    (void)m;
    (void)ctx;
    return om_add_scalar(x, 1);
}

/* The input, what a step reads and what it writes. */
static void a_sequence_of_sums_peaks_at_three(void **state) {
    (void)state;
    enum { N = 1 << 20 };
    for (int marked = 0; marked < 2; marked++) {
        om_memory_stats before, after;
        om_memory(&before);
        om_scope scope = om_scope_begin();
        om_tensor *x   = om_full(1, OM_F32, OM_DIMS(N));
        om_set_requires_grad(x, marked);
        om_module *m = om_nn_sequential();
        for (int i = 0; i < 20; i++)
            om_nn_append(m, om_nn_custom(plus_one, NULL, NULL));
        om_memory_reset_peak();
        om_tensor *y = om_forward(m, x);
        om_memory(&after);
        assert_float_equal(first(y), 21, 0);
        assert_true(after.peak - before.bytes < 3 * 4 * N + (1 << 16));
        assert_true(after.bytes - before.bytes < 2 * 4 * N + (1 << 16));
        if (marked) {
            assert_int_equal(om_backward(om_sum_all(y)), OM_OK);
            assert_float_equal(first(om_grad_of(x)), 1, 0);
        }
        om_nn_free(m);
        om_scope_end(scope);
    }
}

static void after_backward_nothing_of_the_graph_is_held(void **state) {
    (void)state;
    enum { N = 1 << 18 };
    om_tensor *x = leaf(N, 0.5f), *loss = NULL;
    om_memory_stats before, after;
    om_memory(&before);
    om_scope s   = om_scope_begin();
    om_tensor *y = x;
    for (int i = 0; i < 5; i++)
        y = om_sigmoid(y);
    loss = om_scope_return(s, om_sum_all(y));
    om_memory(&after);
    assert_true(after.bytes - before.bytes >= 5 * 4 * N); // each keeps its output
    assert_int_equal(om_backward(loss), OM_OK);
    om_memory(&after);
    assert_true(after.bytes - before.bytes <
                4 * N + (1 << 16)); // the gradient of x, though the loss lives
    om_backward(loss);
    check_error(OM_ERR_STATE, "second time");
}

static void a_loss_leaves_one_tensor(void **state) {
    (void)state;
    om_tensor *a = om_ones(OM_F32, OM_DIMS(2, 3)), *b = om_zeros(OM_F32, OM_DIMS(2, 3));
    om_tensor *t   = om_zeros(OM_I64, OM_DIMS(2));
    int64_t before = om_live_tensors();
    om_mse_loss(a, b);
    assert_int_equal(om_live_tensors(), before + 1);
    om_cross_entropy(a, t);
    assert_int_equal(om_live_tensors(), before + 2);
}

/* ---- a backward that fails ---------------------------------------------------------------------
 */

static int64_t countdown;
static void *failing(void *ctx, void *p, size_t old, size_t size, size_t align) {
    (void)ctx;
    (void)old;
    if (size == 0) return free(p), NULL;
    if (countdown > 0 && --countdown == 0) return NULL;
    if (p) return realloc(p, size);
    void *q = NULL;
    return posix_memalign(&q, align, size) ? NULL : q;
}

static om_tensor *net(om_tensor *const *w, om_tensor *x) {
    om_tensor *h = om_tanh(om_linear(x, w[0], w[1]));
    return om_mse_loss(om_mul(om_linear(h, w[2], NULL), w[3]), om_zeros(OM_F32, OM_DIMS(2, 3)));
}

/* Leaves that had a gradient and leaves that had none: with the n-th allocation failing each is as
 * it was, for every n, and after the last n all is as without a failure. */
static void a_failed_backward_changes_no_leaf(void **state) {
    (void)state;
    om_scope_drain();
    om_trim();
    if (om_set_allocator(failing, NULL) != OM_OK) {
        om_catch(NULL);
        skip();
    }
    om_rng g        = om_rng_new(1, 3);
    om_tensor *w[4] = {om_rand(&g, -1, 1, OM_DIMS(5, 4)), om_rand(&g, -1, 1, OM_DIMS(5)),
                       om_rand(&g, -1, 1, OM_DIMS(3, 5)), om_rand(&g, -1, 1, OM_DIMS(3))};
    om_tensor *x    = om_rand(&g, -1, 1, OM_DIMS(2, 4)), *old[4], *want[4];
    for (int i = 0; i < 4; i++)
        om_set_requires_grad(w[i], true);
    om_backward(om_sum_all(om_mul(w[0], w[0])));
    om_backward(om_sum_all(w[3]));
    for (int i = 0; i < 4; i++)
        old[i] = om_grad_of(w[i]) ? om_clone(om_grad_of(w[i])) : NULL;
    int failed = 0;
    for (int64_t n = 1;; n++) {
        om_scope s      = om_scope_begin();
        om_tensor *loss = net(w, x);
        om_trim(); // cached blocks would hide what is allocated
        countdown    = n;
        om_status st = om_backward(loss);
        bool through = countdown > 0;
        countdown    = 0;
        om_catch(NULL);
        om_scope_end(s);
        if (st == OM_OK && through) break;
        failed += st != OM_OK;
        for (int i = 0; st != OM_OK && i < 4; i++)
            assert_true(old[i] ? om_bit_equal(om_grad_of(w[i]), old[i]) : om_grad_of(w[i]) == NULL);
        if (st == OM_OK) break; // an allocation that may fail without harm
    }
    assert_true(failed > 10);
    for (int i = 0; i < 4; i++) {
        want[i] = om_clone(om_grad_of(w[i]));
        om_clear_grad(w[i]);
    }
    om_backward(om_sum_all(om_mul(w[0], w[0])));
    om_backward(om_sum_all(w[3]));
    om_backward(net(w, x));
    for (int i = 0; i < 4; i++)
        assert_true(om_bit_equal(om_grad_of(w[i]), want[i]));
    om_scope_drain();
    om_trim();
    om_set_allocator(NULL, NULL);
}

/* ---- a flag that is raised while gradients are added up ----------------------------------------
 */

static om_cancel flag;

/* Runs after a backward function and before what it made is added to the leaves. */
static om_status raise_flag(const om_record *r, om_tensor *const *dy, om_tensor *const *dx) {
    (void)r;
    (void)dy;
    (void)dx;
    om_cancel_raise(&flag);
    return OM_OK;
}

static void a_cancelled_sum_of_gradients_reaches_no_leaf(void **state) {
    (void)state;
    om_tensor *x = leaf(100000, 1), *y = om_add(x, x), *g = om_full(5, OM_F32, OM_DIMS(100000));
    om_set_cancel(&flag);
    omi_backward_watch = raise_flag; // y = x + x is the last record: both terms are added after it
    om_status st       = om_backward_with(y, OM_OPTS(backward, .grad = g));
    omi_backward_watch = NULL;
    om_set_cancel(NULL);
    om_cancel_lower(&flag);
    assert_int_equal(st, OM_ERR_CANCELLED);
    om_catch(NULL);
    assert_null(om_grad_of(x));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(
            a_failed_backward_changes_no_leaf), // first: nothing of the library may be alive
        OM_TEST(a_gradient_by_an_unmarked_input_is_refused),
        OM_TEST(a_given_gradient_is_copied),
        OM_TEST(a_shared_first_term_is_not_added_into),
        OM_TEST(a_gradient_is_written_over_only_when_nobody_sees_it),
        OM_TEST(a_gradient_of_a_leaf_is_its_own),
        OM_TEST(a_write_from_a_recorded_value_is_refused),
        OM_TEST(one_tensor_as_mean_and_variance_is_refused),
        OM_TEST(a_custom_operator_returns_what_it_made),
        OM_TEST(a_custom_gradient_of_another_shape_is_named),
        OM_TEST(a_custom_operator_without_backward_says_so),
        OM_TEST(a_lowering_is_compared_with_the_operator),
        OM_TEST(a_chain_of_sums_holds_its_result_only),
        OM_TEST(a_sequence_of_sums_peaks_at_three),
        OM_TEST(after_backward_nothing_of_the_graph_is_held),
        OM_TEST(a_loss_leaves_one_tensor),
        OM_TEST(a_cancelled_sum_of_gradients_reaches_no_leaf),
    };
    return cmocka_run_group_tests_name("records", tests, NULL, NULL);
}
