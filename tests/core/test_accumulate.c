/*
 * test_accumulate.c -- gradients of shards joined by a fixed tree (CD-43): against a tree computed
 * here, in any order of shards, with few partial gradients, all or nothing.
 */
#include "harness.h"

#include "onemodel.h"

enum { MOST = 13, N = 37 };

static om_tensor *w, *u; /* u is used by odd shards only */

static void begin_leaves(void) {
    w = om_randn(&(om_rng){.seed = 1}, 0, 1, OM_DIMS(N));
    u = om_randn(&(om_rng){.seed = 2}, 0, 1, OM_DIMS(N));
    om_set_requires_grad(w, true);
    om_set_requires_grad(u, true);
}

static om_tensor *loss_of(int64_t shard) {
    om_tensor *x = om_randn(&(om_rng){.seed = 100 + (uint64_t)shard}, 0, 1, OM_DIMS(N));
    om_tensor *y = om_add(om_tanh(om_mul(w, x)), om_mul(w, om_exp(x)));
    if (shard % 2) y = om_add(y, om_mul(u, x));
    return om_sum_all(y);
}

/* The tree of R11.4 over first .. first + 2^level - 1, by recursion, in plain float. */
static bool tree(float (*of)[N], const bool *there, int64_t shards, int level, int64_t i,
                 float *out) {
    if (level == 0) {
        if (i >= shards || !there[i]) return false;
        memcpy(out, of[i], sizeof(float) * N);
        return true;
    }
    float right[N];
    bool l = tree(of, there, shards, level - 1, 2 * i, out);
    bool r = tree(of, there, shards, level - 1, 2 * i + 1, right);
    for (int k = 0; k < N && r; k++)
        out[k] = l ? out[k] + right[k] : right[k];
    return l || r;
}

static void expect(om_tensor *leaf, int64_t shards, const float *old) {
    float of[MOST][N], want[N];
    bool there[MOST];
    for (int64_t s = 0; s < shards; s++) {
        om_tensor *g;
        assert_int_equal(om_grad(loss_of(s), 1, &leaf, &g, NULL), OM_OK);
        if ((there[s] = g != NULL)) om_copy_out(g, of[s], sizeof of[s]);
    }
    if (!tree(of, there, shards, 4, 0, want)) {
        assert_null(om_grad_of(leaf));
        return;
    }
    for (int k = 0; k < N && old; k++)
        want[k] = old[k] + want[k];
    assert_memory_equal(om_data(om_grad_of(leaf)), want, sizeof want);
}

static void accumulate(int64_t shards, const int64_t *order) {
    assert_int_equal(om_accumulate_begin(shards), OM_OK);
    for (int64_t i = 0; i < shards; i++)
        assert_int_equal(om_accumulate_backward(loss_of(order[i]), order[i]), OM_OK);
    assert_int_equal(om_accumulate_end(), OM_OK);
}

static void shards_join_by_the_tree_in_any_order(void **state) {
    (void)state;
    uint32_t r = 7;
    for (int64_t shards = 2; shards <= MOST; shards++)
        for (int round = 0; round < 5; round++) {
            OM_SCOPE {
                begin_leaves();
                int64_t order[MOST];
                for (int64_t i = 0; i < shards; i++)
                    order[i] = round == 1 ? shards - 1 - i : i;
                for (int64_t i = shards - 1; i > 0 && round > 1; i--) {
                    r         = r * 1664525u + 1013904223u;
                    int64_t k = (r >> 8) % (i + 1), t = order[i];
                    order[i] = order[k];
                    order[k] = t;
                }
                float old[N];
                for (int k = 0; k < N; k++)
                    old[k] = 0.1f * (float)k;
                if (round == 4) om_set_grad(w, om_from(old, OM_F32, OM_DIMS(N)));
                accumulate(shards, order);
                expect(w, shards, round == 4 ? old : NULL);
                expect(u, shards, NULL);
            }
            check_ok();
        }
}

static void one_shard_is_plain_backward(void **state) {
    (void)state;
    float old[N], got[N];
    for (int k = 0; k < N; k++)
        old[k] = 1.0f / (float)(k + 3);
    begin_leaves();
    om_set_grad(w, om_from(old, OM_F32, OM_DIMS(N)));
    om_backward(loss_of(0));
    om_copy_out(om_grad_of(w), got, sizeof got);
    om_set_grad(w, om_from(old, OM_F32, OM_DIMS(N)));
    accumulate(1, (int64_t[]){0});
    assert_memory_equal(om_data(om_grad_of(w)), got, sizeof got);
    check_ok();
}

static void shards_in_order_hold_few_gradients(void **state) {
    (void)state;
    enum { BIG = 100000 };
    om_tensor *big = om_zeros(OM_F32, OM_DIMS(BIG));
    om_set_requires_grad(big, true);
    om_memory_stats before, m;
    om_memory(&before);
    om_accumulate_begin(64);
    for (int64_t s = 0; s < 64; s++) {
        OM_SCOPE {
            om_accumulate_backward(om_sum_all(om_mul_scalar(big, (float)s)), s);
        }
        om_memory(&m);
        int64_t held = (m.bytes - before.bytes) / (BIG * 4);
        assert_in_range(held, 1, 7); // log2 64 + 1
    }
    om_accumulate_end();
    assert_float_equal(om_get(om_grad_of(big), (int64_t[]){5}), 63 * 64 / 2, 0);
    check_ok();
}

static void accumulations_that_are_refused(void **state) {
    (void)state;
    begin_leaves();
    om_set_grad(w, om_ones(OM_F32, OM_DIMS(N)));
    assert_int_equal(om_accumulate_begin(0), OM_ERR_ARG);
    check_error(OM_ERR_ARG, "0 shards");
    assert_int_equal(om_accumulate_end(), OM_ERR_STATE);
    check_error(OM_ERR_STATE, "om_accumulate_begin");
    assert_int_equal(om_accumulate_backward(loss_of(0), 0), OM_ERR_STATE);
    check_error(OM_ERR_STATE, "om_accumulate_begin");
    om_accumulate_begin(3);
    assert_int_equal(om_accumulate_begin(3), OM_ERR_STATE);
    check_error(OM_ERR_STATE, "open already");
    assert_int_equal(om_accumulate_backward(loss_of(0), 3), OM_ERR_ARG);
    check_error(OM_ERR_ARG, "shard is 3");
    assert_int_equal(om_accumulate_backward(loss_of(2), 2), OM_OK);
    assert_int_equal(om_accumulate_backward(loss_of(2), 2), OM_ERR_STATE);
    check_error(OM_ERR_STATE, "shard 2");
    assert_int_equal(om_backward(loss_of(0)), OM_ERR_STATE);
    check_error(OM_ERR_STATE, "om_accumulate_backward");
    assert_int_equal(om_accumulate_backward(w, 1), OM_ERR_SHAPE); // fails, and may be repeated
    check_error(OM_ERR_SHAPE, "several elements");
    assert_int_equal(om_accumulate_backward(loss_of(1), 1), OM_OK);
    assert_int_equal(om_accumulate_end(), OM_ERR_STATE);
    check_error(OM_ERR_STATE, "the first is 0");
    assert_float_equal(om_get(om_grad_of(w), (int64_t[]){3}), 1, 0); // as before
    assert_null(om_grad_of(u));
    assert_int_equal(om_backward(loss_of(0)), OM_OK);
    check_ok();
}

static om_status job(void *ctx) {
    (void)ctx;
    om_scope s = om_scope_begin();
    begin_leaves();
    om_accumulate_begin(3);
    for (int64_t i = 2; i >= 0; i--)
        om_accumulate_backward(loss_of(i), i);
    om_accumulate_end();
    return om_scope_end(s);
}
static void memory_runs_out_while_accumulating(void **state) {
    (void)state;
    assert_true(harness_fail_each(job, NULL) > 60);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        OM_TEST(shards_join_by_the_tree_in_any_order), OM_TEST(one_shard_is_plain_backward),
        OM_TEST(shards_in_order_hold_few_gradients),   OM_TEST(accumulations_that_are_refused),
        OM_TEST(memory_runs_out_while_accumulating),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
