/*
 * test_poison.c -- what is used after it was freed says so by name (C15, CD-42).
 */
#include "harness.h"

#include <stdio.h>

#include "base/alloc.h"
#include "onemodel.h"

static void a_tensor_used_after_its_scope_says_so(void **state) {
    (void)state;
    assert_int_equal(om_debug(OM_DEBUG_POISON), OM_OK);
    om_scope s   = om_scope_begin();
    om_tensor *x = om_ones(OM_F32, OM_DIMS(2, 3)), *y = om_relu(x);
    om_set_name(y, "hidden.state");
    om_scope_end(s);
    for (int i = 0; i < 100; i++) // what takes its place in a library that reuses
        om_zeros(OM_F32, OM_DIMS(2, 3));
    assert_null(om_add(y, y));
    check_error(OM_ERR_STATE, "float32 [2,3] 'hidden.state'", "om_relu", "om_scope_return");
    assert_null(om_data(y));
    check_error(OM_ERR_STATE, "hidden.state");
    assert_int_equal(om_rank(y), 0);
    check_error(OM_ERR_STATE, "hidden.state");
    assert_int_equal(om_dim(y, 0), 1);
    check_error(OM_ERR_STATE, "hidden.state");
    assert_null(om_retain(y));
    check_error(OM_ERR_STATE, "hidden.state");
    om_release(y); // a reference that nobody has
    check_error(OM_ERR_STATE, "hidden.state");
    om_set_name(y, "again");
    check_error(OM_ERR_STATE, "hidden.state");
    s = om_scope_begin();
    assert_null(om_scope_return(s, y));
    check_error(OM_ERR_STATE, "hidden.state");
    assert_null(om_add(x, om_ones(OM_F32, OM_DIMS(2, 3)))); // one without a name
    check_error(OM_ERR_STATE, "float32 [2,3] (made by om_ones)");
    om_scope_drain();
    om_debug(0);
}

static void a_module_freed_twice_says_so(void **state) {
    (void)state;
    om_debug(OM_DEBUG_POISON);
    om_module *root = om_nn_module(), *fc = om_nn_add(root, "fc1", om_nn_linear(3, 2, NULL));
    om_nn_free(root);
    om_module *a = om_nn_linear(2, 2, NULL), *b = om_nn_linear(2, 2, NULL);
    om_nn_free(root);
    check_error(OM_ERR_STATE, "module", "freed before");
    om_nn_free(fc);
    check_error(OM_ERR_STATE, "'fc1' (linear)");
    assert_null(om_forward(fc, om_ones(OM_F32, OM_DIMS(1, 3))));
    check_error(OM_ERR_STATE, "'fc1' (linear)");
    assert_null(om_nn_get(fc, "weight"));
    check_error(OM_ERR_STATE, "fc1");
    assert_null(om_adam(root, 0.1, NULL));
    check_error(OM_ERR_STATE, "freed before");
    assert_ptr_not_equal(a, b);
    om_nn_free(a);
    om_nn_free(b);
    om_scope_drain();
    om_debug(0);
}

static void freed_elements_are_poison(void **state) {
    (void)state;
    om_debug(OM_DEBUG_POISON);
    om_scope s       = om_scope_begin();
    const float *old = om_data(om_full(2, OM_F32, OM_DIMS(5000)));
    om_scope_end(s);
    float v;
    memcpy(&v, (const void *)&old[4999],
           sizeof v); // the mistake: the block waits, so this is no fault
    assert_true(v != v);
    om_debug(0);
}

static char logged[200];
static void note(void *ctx, om_log_level level, const char *message) {
    (void)ctx;
    if (level == OM_LOG_ERROR) snprintf(logged, sizeof logged, "%s", message);
}

static void a_write_after_free_is_logged_and_waiting_is_bounded(void **state) {
    (void)state;
    om_memory_stats a, m;
    om_trim();
    om_memory(&a);
    om_set_log(note, NULL, OM_LOG_ERROR);
    om_debug(OM_DEBUG_POISON);
    char *p = omi_alloc(300);
    omi_free(p, 300);
    om_memory(&m);
    assert_int_equal(m.blocks, a.blocks); // does not count as alive
    assert_true(m.kept >= 300);
    p[77] = 1;
    for (int i = 0; i < 40; i++) {
        omi_free_aligned(omi_alloc_aligned(5 << 20), 5 << 20);
        om_memory(&m);
        assert_in_range(m.kept, 0, 64 << 20);
    }
    assert_non_null(strstr(logged, "byte 77"));
    for (int i = 0; i < 100000; i++) // more blocks than wait
        omi_free(omi_alloc(20), 20);
    void *grown = omi_realloc(omi_alloc(100000), 100000, 200000);
    omi_free(grown, 200000);
    om_set_memory_limit(a.bytes + 300000);
    om_memory(&m);
    assert_in_range(m.bytes + m.kept, 0, a.bytes + 300000);
    p = omi_alloc(290000); // what waits goes first
    assert_non_null(p);
    omi_free(p, 290000);
    om_set_memory_limit(0);
    assert_int_equal(om_debug(0), OM_OK);
    om_memory(&m);
    assert_int_equal(m.kept, 0);
    assert_int_equal(om_debug(2), OM_ERR_ARG);
    check_error(OM_ERR_ARG, "OM_DEBUG_POISON");
    om_set_log(NULL, NULL, OM_LOG_ERROR);
    om_trim();
    om_memory(&m);
    assert_int_equal(m.bytes, a.bytes);
}

/* The same bits, and nothing is told that is no mistake. */
static void training_is_the_same_under_poison(void **state) {
    (void)state;
    char hex[2][65];
    for (int k = 0; k < 2; k++) {
        om_debug(k ? OM_DEBUG_POISON : 0);
        om_seed(3);
        om_module *net = om_nn_sequential();
        om_nn_append(net, om_nn_conv2d(1, 4, 3, 3, NULL));
        om_nn_append(net, om_nn_batch_norm2d(4, NULL));
        om_nn_append(net, om_nn_dropout(0.5f));
        om_optim *o = om_adam(net, 0.01, NULL);
        for (int i = 0; i < 5; i++)
            OM_SCOPE {
                om_zero_grad(o);
                om_backward(om_mean_all(
                    om_relu(om_forward(net, om_rand(NULL, -1, 1, OM_DIMS(8, 1, 9, 9))))));
                om_step(o);
            }
        om_hash(om_nn_get(net, "0.weight"), hex[k]);
        om_optim_free(o);
        om_nn_free(net);
        om_scope_drain();
        check_ok();
    }
    om_debug(0);
    assert_string_equal(hex[0], hex[1]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        OM_TEST(a_tensor_used_after_its_scope_says_so),
        OM_TEST(a_module_freed_twice_says_so),
        OM_TEST(freed_elements_are_poison),
        OM_TEST(a_write_after_free_is_logged_and_waiting_is_bounded),
        OM_TEST(training_is_the_same_under_poison),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
