/*
 * test_tensor.c -- scopes, storages, copy on write, access, in-place rules (CD-1 to CD-4).
 */
#include "harness.h"

#include <malloc.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>

#include "onemodel/autograd.h"
#include "onemodel/ops.h"
#include "tensor/tensor.h"

static om_tensor *iota(int64_t n) {
    return om_cast(om_arange(0, n, 1), OM_F32);
}

static void test_scope_owns_results(void **state) {
    (void)state;
    int64_t before = om_live_tensors();
    om_scope s     = om_scope_begin();
    om_add(iota(4), iota(4));
    assert_true(om_live_tensors() > before);
    assert_int_equal(om_scope_end(s), OM_OK);
    assert_int_equal(om_live_tensors(), before);
}

static void test_scope_return(void **state) {
    (void)state;
    om_scope out = om_scope_begin(), s = om_scope_begin();
    om_tensor *y = om_scope_return(s, om_neg(iota(3)));
    assert_int_equal(om_live_tensors(), 1);
    assert_true(om_item_f32(om_select(y, 0, 2)) == -2.0f);
    om_scope t = om_scope_begin();
    assert_ptr_equal(om_scope_return(t, y), y); // an outer tensor passes through
    om_scope_end(out);
    assert_int_equal(om_live_tensors(), 0);
}

static void test_outer_end_heals_open_inner(void **state) {
    (void)state;
    om_scope out = om_scope_begin();
    for (int i = 0; i < 10; i++) {
        om_scope inner = om_scope_begin();
        iota(3);
        if (i % 2) om_scope_end(inner);
    }
    om_scope_end(out);
    assert_int_equal(om_live_tensors(), 0);
    om_scope_end(out); // stale mark: nothing happens
    om_scope a = om_scope_begin();
    om_scope_end(out);
    om_tensor *x = iota(2);
    om_scope_end(a);
    (void)x;
    assert_int_equal(om_live_tensors(), 0);
}

static void test_take_drop_retain(void **state) {
    (void)state;
    om_scope s   = om_scope_begin();
    om_tensor *a = om_take(iota(3)), *b = iota(3), *c = om_retain(iota(3));
    om_drop(b);
    om_scope_end(s);
    assert_int_equal(om_live_tensors(), 2);
    om_release(a);
    om_release(c);
    om_release(NULL);
    assert_int_equal(om_live_tensors(), 0);
}

static uint32_t next_random(uint32_t *g) {
    *g = *g * 1664525u + 1013904223u;
    return *g >> 8;
}

/* Scopes against a model of them, while tensors are taken from anywhere in the stack, as a garbage
 * collector does. Every tensor holds its own number; some are filed twice. */
static void test_taken_from_anywhere(void **state) {
    (void)state;
    enum { MOST = 4000, DEEP = 8 };
    static om_tensor *filed[MOST];
    static int level[MOST]; /* of the scope that owns tensor i; -1: nobody */
    om_scope scopes[DEEP];
    uint32_t g = 11;
    int depth = 0, n = 0, owned = 0;
    while (n < MOST) {
        uint32_t what = next_random(&g) % 100;
        if (what < 4 && depth < DEEP)
            scopes[depth++] = om_scope_begin();
        else if (what < 6 && depth) {
            int to = (int)(next_random(&g) % (uint32_t)depth); // an outer one ends those inside
            om_scope_end(scopes[to]);
            depth = to;
            for (int i = 0; i < n; i++)
                if (level[i] > depth) level[i] = -1;
        } else if (what < 55 || n == 0) {
            filed[n]   = om_full(n, OM_F32, OM_DIMS(1));
            level[n++] = depth;
        } else {
            int i = (int)(next_random(&g) % (uint32_t)n);
            if (level[i] < 0) continue;
            if (what < 60) {
                assert_ptr_equal(om_reshape(filed[i], OM_DIMS(1)), filed[i]); // filed once more
                continue;
            }
            om_release(om_retain(filed[i]));
            om_tensor *t = om_take(filed[i]);
            assert_ptr_equal(t, filed[i]);
            assert_true(om_item_f32(t) == (float)i);
            om_release(t);
            level[i] = -2; // may live on where it is filed twice: not looked at again
        }
        for (int i = owned = 0; i < n; i++)
            owned += level[i] >= 0;
        assert_true(om_live_tensors() >= owned);
    }
    om_scope_drain();
    assert_int_equal(om_live_tensors(), 0);
}

/* Without second filings the count is exact, and ends of scopes release what is theirs only. */
static void test_holes_keep_their_scopes(void **state) {
    (void)state;
    om_tensor *outer[100], *inner[100];
    for (int round = 0; round < 3; round++) {
        om_scope a = om_scope_begin();
        for (int i = 0; i < 100; i++)
            outer[i] = om_full(i, OM_F32, OM_DIMS(1));
        om_scope b = om_scope_begin();
        for (int i = 0; i < 100; i++)
            inner[i] = om_full(100 + i, OM_F32, OM_DIMS(1));
        for (int i = 0; i < 90; i++) // enough that holes are closed, on both sides of the mark
            om_drop(round == 1 ? outer[99 - i] : outer[i]);
        for (int i = 0; i < 100; i += 2)
            om_drop(inner[i]);
        assert_int_equal(om_live_tensors(), 10 + 50);
        for (int i = 1; i < 100; i += 2)
            assert_true(om_item_f32(inner[i]) == (float)(100 + i));
        om_tensor *kept = round == 2 ? om_scope_return(b, inner[1]) : NULL;
        om_scope_end(b);
        assert_int_equal(om_live_tensors(), 10 + (kept != NULL));
        om_drop(kept);
        om_drop(round == 1 ? outer[9] : outer[90]);
        assert_int_equal(om_live_tensors(), 9);
        for (int i = 91; round != 1 && i < 100; i++)
            assert_true(om_item_f32(outer[i]) == (float)i);
        om_scope_end(a);
        assert_int_equal(om_live_tensors(), 0);
    }
    om_scope a   = om_scope_begin();
    om_tensor *x = om_full(1, OM_F32, OM_DIMS(1)), *y = om_full(2, OM_F32, OM_DIMS(1));
    om_scope b = om_scope_begin();
    om_drop(y); // the hole below the mark stays: what follows is of the inner scope
    om_full(3, OM_F32, OM_DIMS(1));
    om_scope_end(b);
    assert_int_equal(om_live_tensors(), 1);
    assert_true(om_item_f32(x) == 1.0f);
    om_scope_end(a);
}

static void test_pending_error_suspends(void **state) {
    (void)state;
    om_scope s   = om_scope_begin();
    om_tensor *x = iota(3);
    assert_null(om_add(x, iota(4)));
    assert_null(om_add(x, x)); // valid, but an error is pending
    assert_null(om_zeros(OM_F32, OM_DIMS(2)));
    assert_int_equal(om_fill_(x, 0), OM_ERR_SHAPE);
    assert_int_equal(om_rank(NULL), 0);
    assert_int_equal(om_dim(NULL, 3), 1);
    assert_int_equal(om_numel(NULL), 0);
    assert_null(om_data(NULL));
    assert_true(isnan(om_item_f32(NULL)));
    assert_int_equal(om_scope_end(s), OM_ERR_SHAPE);
    check_error(OM_ERR_SHAPE, "om_add", "[3]", "[4]");
}

static void test_creation(void **state) {
    (void)state;
    assert_int_equal(om_item_i64(om_select(om_arange(5, -4, -3), 0, 2)), -1);
    assert_int_equal(om_numel(om_arange(0, 0, 1)), 0);
    assert_int_equal(om_numel(om_arange(INT64_MIN, INT64_MIN + 3, 2)), 2);
    assert_null(om_arange(0, 1, 0));
    check_error(OM_ERR_ARG, "step");
    assert_null(om_arange(INT64_MIN, INT64_MAX, 1));
    check_error(OM_ERR_SHAPE, "addressed");
    om_tensor *e = om_eye(3, OM_I64);
    assert_true(om_get(e, (int64_t[]){1, 1}) == 1 && om_get(e, (int64_t[]){1, 2}) == 0);
    om_tensor *l = om_linspace(0, 1, 5);
    assert_true(om_get(l, (int64_t[]){-1}) == 1 && om_get(l, (int64_t[]){1}) == 0.25);
    assert_null(om_zeros(OM_F32, OM_DIMS(-1)));
    check_error(OM_ERR_SHAPE, "axis 0");
    assert_null(om_zeros(OM_F32, OM_DIMS(1, 1, 1, 1, 1, 1, 1, 1, 1)));
    check_error(OM_ERR_SHAPE, "rank 9");
    assert_null(om_zeros(OM_F32, OM_DIMS(INT64_MAX, 2)));
    check_error(OM_ERR_SHAPE, "addressed");
    assert_null(om_zeros(OM_F32, OM_DIMS(0, INT64_MAX / 2, 4))); // strides would overflow
    check_error(OM_ERR_SHAPE, "addressed");
    assert_null(om_zeros((om_dtype)10, OM_DIMS(1)));
    check_error(OM_ERR_DTYPE, "10");
    assert_true(om_item_f64(om_full(300, OM_U8, 0, NULL)) == 255); // casts saturate
    uint8_t bytes[] = {0, 7, 1};
    assert_true(om_item_f64(om_select(om_from(bytes, OM_BOOL, OM_DIMS(3)), 0, 1)) == 1);
}

static void freed(void *ctx, void *data) {
    (void)data;
    ++*(int *)ctx;
}
static void test_callers_buffer_and_copy_on_write(void **state) {
    (void)state;
    float mine[4] = {1, 2, 3, 4};
    int n         = 0;
    om_scope s    = om_scope_begin();
    om_tensor *x  = om_from_buffer(mine, OM_F32, OM_DIMS(4), freed, &n);
    assert_ptr_equal(om_data(x), mine);
    om_buffer *shared = omi_buffer_retain(x->storage->buf); // as a captured constant would
    float *p          = om_data_mut(x);
    assert_ptr_not_equal(p, mine); // the write went to a private copy
    p[0] = 9;
    assert_true(mine[0] == 1);
    om_scope_end(s);
    assert_int_equal(n, 0);
    omi_buffer_release(shared);
    assert_int_equal(n, 1);
    assert_null(om_from_buffer((char *)mine + 1, OM_F32, OM_DIMS(1), freed, &n));
    check_error(OM_ERR_ARG, "aligned");
    assert_int_equal(n, 1);
}

static void test_versions_and_ids(void **state) {
    (void)state;
    om_tensor *x = iota(4);
    uint64_t id = om_id(x), v = x->storage->version;
    om_data_mut(x);
    om_fill_(x, 1);
    om_set(x, (int64_t[]){0}, 2);
    assert_int_equal(x->storage->version, v + 3);
    om_drop(x);
    for (int i = 0; i < 100; i++)
        assert_true(om_id(iota(4)) > id);
    assert_int_equal(om_id(NULL), 0);
}

static void test_access_failures(void **state) {
    (void)state;
    om_tensor *x = om_reshape(iota(6), OM_DIMS(2, 3)), *t = om_transpose(x, 0, 1);
    assert_null(om_data(t));
    check_error(OM_ERR_STATE, "om_contiguous", "[3,2]");
    assert_true(isnan(om_item_f32(x)));
    check_error(OM_ERR_SHAPE, "one element");
    om_get(x, (int64_t[]){2, 0});
    check_error(OM_ERR_ARG, "index 2 on axis 0");
    float small[2];
    assert_int_equal(om_copy_out(x, small, sizeof small), OM_ERR_ARG);
    check_error(OM_ERR_ARG, "24 bytes");
    float all[6];
    assert_int_equal(om_copy_out(t, all, sizeof all), OM_OK);
    const float want[6] = {0, 3, 1, 4, 2, 5};
    assert_memory_equal(all, want, sizeof want);
    om_item_i64(om_scalar_f32(1));
    check_error(OM_ERR_DTYPE, "om_cast");
    om_dim(x, 5);
    check_error(OM_ERR_ARG, "axis 5");
    assert_int_equal(om_dim(x, -1), 3);
}

static void test_in_place(void **state) {
    (void)state;
    om_tensor *x = om_zeros(OM_F32, OM_DIMS(2, 3));
    assert_int_equal(om_copy_(x, iota(3)), OM_OK);
    assert_int_equal(om_add_(x, x), OM_OK);
    assert_int_equal(om_mul_scalar_(om_select(x, 0, 1), 10), OM_OK); // through a view
    float got[6];
    om_copy_out(x, got, sizeof got);
    const float want[6] = {0, 2, 4, 0, 20, 40};
    assert_memory_equal(got, want, sizeof want);
    assert_int_equal(om_copy_(om_transpose(x, 0, 1), om_ones(OM_F32, OM_DIMS(3, 2))), OM_OK);
    assert_int_equal(om_copy_(x, iota(2)), OM_ERR_SHAPE);
    check_error(OM_ERR_SHAPE, "broadcast");
    assert_int_equal(om_copy_(x, om_arange(0, 3, 1)), OM_ERR_DTYPE);
    check_error(OM_ERR_DTYPE, "om_cast");
    assert_int_equal(om_add_(om_expand(om_ones(OM_F32, OM_DIMS(1, 3)), OM_DIMS(2, 3)), x),
                     OM_ERR_STATE);
    check_error(OM_ERR_STATE, "expanded");
    // A source that overlaps its target is read before it is written.
    om_tensor *v = iota(5);
    assert_int_equal(om_copy_(om_slice(v, 0, 1, OM_END, 1), om_slice(v, 0, 0, 4, 1)), OM_OK);
    assert_true(om_get(v, (int64_t[]){4}) == 3 && om_get(v, (int64_t[]){1}) == 0);
}

static void test_in_place_needs_no_grad(void **state) {
    (void)state;
    om_tensor *w = iota(3);
    om_set_requires_grad(w, true);
    assert_int_equal(om_fill_(w, 1), OM_ERR_STATE);
    check_error(OM_ERR_STATE, "gradients");
    bool was = om_no_grad_begin();
    assert_int_equal(om_fill_(w, 1), OM_OK);
    om_no_grad_end(was);
}

static void test_blocked_layout_is_refused_by_name(void **state) {
    (void)state;
    om_tensor *x = om_to_nchw16c(om_ones(OM_F32, OM_DIMS(1, 3, 2, 2)));
    check_ok();
    assert_null(om_relu(x));
    check_error(OM_ERR_LAYOUT, "NCHW16c", "om_from_nchw16c", "om_relu");
    assert_null(om_data(x));
    check_error(OM_ERR_LAYOUT, "NCHW16c");
    assert_int_equal(om_fill_(x, 0), OM_ERR_LAYOUT);
    check_error(OM_ERR_LAYOUT, "NCHW16c");
    assert_true(om_bit_equal(om_from_nchw16c(x), om_ones(OM_F32, OM_DIMS(1, 3, 2, 2))));
}

static void *in_thread(void *t) {
    om_tensor *y = om_neg(t); // filed in this thread's root scope, drained at its exit
    return (void *)(uintptr_t)(om_item_f32(om_select(y, 0, 1)) == -1.0f);
}
static void test_threads_share_tensors(void **state) {
    (void)state;
    om_tensor *x = om_retain(iota(3));
    pthread_t t[4];
    for (int i = 0; i < 4; i++)
        pthread_create(&t[i], NULL, in_thread, x);
    for (int i = 0; i < 4; i++) {
        void *ok;
        pthread_join(t[i], &ok);
        assert_non_null(ok);
    }
    om_release(x);
}

static om_status everything(void *unused) {
    (void)unused;
    om_scope s   = om_scope_begin();
    om_tensor *x = iota(6);
    om_tensor *y = om_reshape(om_transpose(om_reshape(x, OM_DIMS(2, 3)), 0, 1), OM_DIMS(6));
    om_add_(y, x);
    om_copy_(y, om_slice(x, 0, 0, 1, 1));
    om_linspace(0, 1, 9);
    om_eye(4, OM_F64);
    return om_scope_end(s);
}
static void test_every_allocation_may_fail(void **state) {
    (void)state;
    om_scope_drain();
    assert_true(harness_fail_each(everything, NULL) > 20);
}

/* A12: a name is a copy that ends with its tensor and counts. */
static void names_end_with_their_tensors(void **state) {
    (void)state;
    om_memory_stats a, b;
    om_memory(&a);
    char name[200];
    memset(name, 'n', sizeof name);
    om_tensor *t = om_retain(iota(2));
    om_scope_drain();
    om_trim();
    om_memory(&a);
    for (int i = 0; i < 1000; i++) {
        om_tensor *u = iota(2);
        snprintf(name + 180, 20, "%d", i);
        om_set_name(u, name);
    }
    om_memory(&b);
    assert_true(b.bytes - a.bytes > 1000 * 180); // counted
    om_scope_drain();
    size_t held = mallinfo2().uordblks;
    for (int i = 1000; i < 101000; i++) {
        snprintf(name + 180, 20, "%d", i);
        om_set_name(t, name);
    }
    assert_string_equal(om_name(t), name);
    om_trim();
    om_memory(&b);
    assert_in_range(b.bytes - a.bytes, 180, 400); // the last one
    assert_in_range(mallinfo2().uordblks, 0, held + 100000);
    om_set_name(t, om_name(t)); // its own text
    assert_string_equal(om_name(t), name);

    om_set_memory_limit(b.bytes + 16);
    char longer[5000];
    memset(longer, 'l', sizeof longer - 1);
    longer[sizeof longer - 1] = 0;
    om_set_name(t, longer);
    om_set_memory_limit(0);
    check_error(OM_ERR_NOMEM, "om_set_name");
    assert_int_equal(om_name(t)[0], 'n'); // as it was
    om_set_name(t, NULL);
    assert_null(om_name(t));
    om_release(t);
}

/* An alias that a record saved shows the name, whatever becomes of the tensor. */
static void a_name_outlives_its_tensor_in_records(void **state) {
    (void)state;
    om_tensor *w = om_retain(om_ones(OM_F32, OM_DIMS(3)));
    om_set_name(w, "the.weight");
    om_tensor *x = om_ones(OM_F32, OM_DIMS(3));
    om_set_requires_grad(x, true);
    om_tensor *view = om_reshape(w, OM_DIMS(3, 1));
    om_tensor *y    = om_sum_all(om_mul(x, w));
    om_set_name(w, "another");
    om_release(w);
    om_fill_(view, 2);
    assert_int_equal(om_backward(y), OM_ERR_STATE);
    check_error(OM_ERR_STATE, "the.weight");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        OM_TEST(test_scope_owns_results),
        OM_TEST(test_scope_return),
        OM_TEST(test_outer_end_heals_open_inner),
        OM_TEST(test_take_drop_retain),
        OM_TEST(test_taken_from_anywhere),
        OM_TEST(test_holes_keep_their_scopes),
        OM_TEST(test_pending_error_suspends),
        OM_TEST(test_creation),
        OM_TEST(test_callers_buffer_and_copy_on_write),
        OM_TEST(test_versions_and_ids),
        OM_TEST(test_access_failures),
        OM_TEST(test_in_place),
        OM_TEST(test_in_place_needs_no_grad),
        OM_TEST(test_blocked_layout_is_refused_by_name),
        OM_TEST(test_threads_share_tensors),
        OM_TEST(test_every_allocation_may_fail),
        OM_TEST(names_end_with_their_tensors),
        OM_TEST(a_name_outlives_its_tensor_in_records),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
