/*
 * test_exact_access.c -- numbers that go in and out unchanged or not at all, scopes that end
 * however they are left, and messages that say what happened.
 */
#include "harness.h"

#include <stdio.h>

#include "onemodel.h"

static void an_int64_is_read_exactly_or_refused(void **state) {
    (void)state;
    const int64_t big = ((int64_t)1 << 53) + 1,
                  odd = ((int64_t)1 << 54) + (1 << 30) + 1; // halfway for float32
    om_tensor *t = om_scalar_i64(odd), *v = om_from(&big, OM_I64, OM_DIMS(1));
    assert_true(om_item_f32(t) == (float)odd); // through a double: rounded down twice
    assert_int_equal(om_item_i64(v), big);
    (void)om_get(v, (int64_t[]){0});
    check_error(OM_ERR_VALUE, "9007199254740993", "om_item_i64");
    assert_null(om_full(1e17, OM_I64, OM_DIMS(2)));
    check_error(OM_ERR_VALUE, "om_from");
    assert_int_not_equal(om_set(v, (int64_t[]){0}, -1e17), OM_OK);
    check_error(OM_ERR_VALUE, "2^53");
    assert_int_not_equal(om_fill_(v, 1e17), OM_OK);
    check_error(OM_ERR_VALUE, "2^53");
    assert_int_equal(om_item_i64(v), big);
    assert_int_equal(om_item_i64(om_full(9007199254740992.0, OM_I64, OM_DIMS(1))), big - 1);
}

static void bools_of_the_caller_are_0_or_1(void **state) {
    (void)state;
    uint8_t bytes[3] = {0, 2, 1};
    assert_null(om_from_buffer(bytes, OM_BOOL, OM_DIMS(3), NULL, NULL));
    check_error(OM_ERR_VALUE, "byte 1 is 2", "om_from");
    om_tensor *t = om_from(bytes, OM_BOOL, OM_DIMS(3));
    bytes[1]     = 1;
    assert_true(om_bit_equal(t, om_from_buffer(bytes, OM_BOOL, OM_DIMS(3), NULL, NULL)));
}

static void a_scope_that_is_left_by_break_ends(void **state) {
    (void)state;
    int64_t before = om_live_tensors();
    OM_SCOPE {
        om_ones(OM_F32, OM_DIMS(2));
        if (before >= 0) break;
        fail();
    }
    assert_int_equal(om_live_tensors(), before);
    OM_SCOPE {
        om_ones(OM_F32, OM_DIMS(2));
        continue;
    }
    assert_int_equal(om_live_tensors(), before);
}

static void batches_end_their_scopes(void **state) {
    (void)state;
    om_tensor *x   = om_rand(NULL, 0, 1, OM_DIMS(10, 2)), *b[1];
    om_loader *l   = om_loader_new(1, &x, 3, NULL);
    int64_t before = om_live_tensors(), rows = 0;
    int n = 0;
    OM_BATCHES(l, b) {
        om_neg(b[0]);
        rows += om_dim(b[0], 0);
        assert_int_equal(om_live_tensors(), before + 2);
        if (n++ == 1) continue;
    }
    assert_int_equal(n, 4);
    assert_int_equal(rows, 10);
    assert_int_equal(om_loader_epoch(l), 1);
    n = 0;
    OM_BATCHES(l, b) {
        om_neg(b[0]);
        if (++n == 2) break;
    }
    assert_int_equal(n, 2);
    OM_BATCHES(l, b) { // goes on where the break was
        n++;
        if (n == 3) om_reshape(b[0], OM_DIMS(77));
    }
    assert_int_equal(n, 3); // an error ends it
    check_error(OM_ERR_SHAPE, "");
    assert_int_equal(om_live_tensors(), before);
    om_loader_free(l);
}

/* -1 is the last row, as NumPy counts; a padding row gets no gradient, however it is named. */
static void an_index_of_minus_1_is_the_last_row(void **state) {
    (void)state;
    const int64_t at[3] = {-1, 0, 2};
    om_tensor *w        = om_from((float[]){1, 2, 3, 4, 5, 6}, OM_F32, OM_DIMS(3, 2)),
              *i        = om_from(at, OM_I64, OM_DIMS(3));
    om_set_requires_grad(w, true);
    om_tensor *y = om_embedding(w, i, -1);
    assert_true(om_bit_equal(y, om_from((float[]){5, 6, 1, 2, 5, 6}, OM_F32, OM_DIMS(3, 2))));
    om_backward(om_sum_all(y));
    assert_true(
        om_bit_equal(om_grad_of(w), om_from((float[]){1, 1, 0, 0, 2, 2}, OM_F32, OM_DIMS(3, 2))));
    om_clear_grad(w);
    om_backward(om_sum_all(om_embedding(w, i, 2)));
    assert_true(
        om_bit_equal(om_grad_of(w), om_from((float[]){1, 1, 0, 0, 0, 0}, OM_F32, OM_DIMS(3, 2))));
    om_embedding(w, om_scalar_i64(-4), -1);
    check_error(OM_ERR_VALUE, "-4");
}

static void messages_say_what_was_given(void **state) {
    (void)state;
    om_tensor *x = om_ones(OM_F32, OM_DIMS(4));
    om_copy_out(x, NULL, 16);
    check_error(OM_ERR_ARG, "the buffer is NULL", "16 bytes");
    om_reshape(x, 2, NULL);
    check_error(OM_ERR_ARG, "NULL");
    om_relu(NULL);
    check_error(OM_ERR_ARG, "is NULL", "a call before");
}

static void a_checkpoint_is_no_graph(void **state) {
    (void)state;
    om_module *m    = om_nn_linear(2, 2, NULL);
    om_checkpoint c = {.struct_size = sizeof c, .module = m};
    char path[]     = "/tmp/om_test_XXXXXX";
    int fd          = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(om_checkpoint_save(path, &c), OM_OK);
    assert_null(om_graph_load(path, NULL));
    check_error(OM_ERR_MALFORMED, "checkpoint", "om_checkpoint_load");
    om_nn_free(m);
    remove(path);
}

static void a_copy_from_its_own_transpose(void **state) {
    (void)state;
    om_tensor *t = om_from((float[]){1, 2, 3, 4, 5, 6, 7, 8, 9}, OM_F32, OM_DIMS(3, 3));
    assert_int_equal(om_copy_(t, om_transpose(t, 0, 1)), OM_OK);
    const float want[] = {1, 4, 7, 2, 5, 8, 3, 6, 9};
    assert_memory_equal(om_data(t), want, sizeof want);
    check_ok();
}

static void a_list_with_only_an_extra_tensor_is_refused(void **state) {
    (void)state;
    om_module *m           = om_nn_linear(2, 2, NULL);
    om_named_tensor list[] = {{"weight", om_full(5, OM_F32, OM_DIMS(2, 2))},
                              {"bias", om_full(6, OM_F32, OM_DIMS(2))},
                              {"extra", om_full(7, OM_F32, OM_DIMS(1))}};
    assert_int_equal(om_nn_load_list(m, 3, list, NULL), OM_ERR_ARG);
    check_error(OM_ERR_ARG, "extra", "om_nn_load_list");
    assert_false(om_get(om_nn_get(m, "bias"), (int64_t[]){0}) == 6); // nothing was changed
    assert_int_equal(om_nn_load_list(m, 2, list, NULL), OM_OK);
    assert_true(om_get(om_nn_get(m, "bias"), (int64_t[]){0}) == 6);
    om_nn_free(m);
    check_ok();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        OM_TEST(an_int64_is_read_exactly_or_refused),
        OM_TEST(bools_of_the_caller_are_0_or_1),
        OM_TEST(a_scope_that_is_left_by_break_ends),
        OM_TEST(batches_end_their_scopes),
        OM_TEST(an_index_of_minus_1_is_the_last_row),
        OM_TEST(messages_say_what_was_given),
        OM_TEST(a_checkpoint_is_no_graph),
        OM_TEST(a_copy_from_its_own_transpose),
        OM_TEST(a_list_with_only_an_extra_tensor_is_refused),
    };
    return cmocka_run_group_tests_name("exact_access", tests, NULL, NULL);
}
