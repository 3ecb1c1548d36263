/*
 * test_state.c -- what operators keep and change: running statistics, generators, saved values, the
 * attributes in a record, and equalities between an operator and its parts.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "ops/op.h"

static om_tensor *f32(int rank, const int64_t *dims, const float *v) {
    return om_from(v, OM_F32, rank, dims);
}
static float at(const om_tensor *t, int64_t i) {
    return ((const float *)om_data(t))[i];
}
static void same(const om_tensor *a, const om_tensor *b) {
    assert_non_null(a);
    assert_non_null(b);
    assert_int_equal(om_numel(a), om_numel(b));
    assert_memory_equal(om_data(a), om_data(b),
                        (size_t)om_numel(a) * om_dtype_size(om_dtype_of(a)));
}
static om_tensor *noise(int rank, const int64_t *dims) {
    static om_rng g = {.seed = 11, .stream = 3};
    return om_randn(&g, 0, 1, rank, dims);
}
static void expect(om_status st, const char *says) {
    om_error e;
    assert_int_equal(om_catch(&e), st);
    if (!strstr(e.message, says)) fail_msg("'%s' does not say '%s'", e.message, says);
}

/* running = (1-m)*running + m*stat, the variance by n/(n-1); evaluation changes nothing. */
static void test_running_statistics(void **state) {
    (void)state;
    OM_SCOPE {
        const float v[]      = {1, 2, 3, 4, 10, 20, 30, 40, 5, 6, 7, 8, 50, 60, 70, 80};
        om_tensor *x         = f32(OM_DIMS(2, 2, 2, 2), v);
        om_tensor *mean      = f32(OM_DIMS(2), (float[]){1, -1}),
                  *var       = f32(OM_DIMS(2), (float[]){2, 3});
        om_batch_norm_opts o = {.training = true, .momentum = 0.25f};
        assert_non_null(om_batch_norm2d(x, NULL, NULL, mean, var, &o));
        // Channel 0: mean 4.5, unbiased variance 6; channel 1: ten times the values.
        assert_true(fabsf(at(mean, 0) - (0.75f * 1 + 0.25f * 4.5f)) < 1e-6f);
        assert_true(fabsf(at(mean, 1) - (0.75f * -1 + 0.25f * 45)) < 1e-5f);
        assert_true(fabsf(at(var, 0) - (0.75f * 2 + 0.25f * 6)) < 1e-6f);
        assert_true(fabsf(at(var, 1) - (0.75f * 3 + 0.25f * 600)) < 1e-4f);
        om_tensor *before = om_clone(mean);
        assert_non_null(om_batch_norm2d(x, NULL, NULL, mean, var, NULL));
        same(before, mean);
        // The default momentum is 0.1.
        o.momentum = 0;
        assert_non_null(om_batch_norm2d(x, NULL, NULL, mean, var, &o));
        assert_true(fabsf(at(mean, 0) - (0.9f * at(before, 0) + 0.1f * 4.5f)) < 1e-6f);
    }
    assert_int_equal(om_pending(), OM_OK);
}

/* A failing call leaves the statistics alone; statistics that need gradients are refused. */
static void test_running_statistics_refused(void **state) {
    (void)state;
    OM_SCOPE {
        om_tensor *x    = noise(OM_DIMS(4, 2));
        om_tensor *mean = om_zeros(OM_F32, OM_DIMS(2)), *var = om_ones(OM_F32, OM_DIMS(2));
        om_tensor *before    = om_clone(mean);
        om_batch_norm_opts o = {.training = true, .momentum = 3};
        assert_null(om_batch_norm2d(x, NULL, NULL, mean, var, &o));
        expect(OM_ERR_ARG, "momentum is 3");
        same(before, mean);
        o.momentum = 0;
        om_set_requires_grad(var, true);
        assert_null(om_batch_norm2d(x, NULL, NULL, mean, var, &o));
        expect(OM_ERR_STATE, "in place");
        same(before, mean);
    }
}

/* In training the gradient uses the batch's statistics, so the running ones may move between; in
 * evaluation they are saved. */
static void test_running_statistics_saved(void **state) {
    (void)state;
    OM_SCOPE {
        om_tensor *x    = noise(OM_DIMS(4, 2));
        om_tensor *mean = om_zeros(OM_F32, OM_DIMS(2)), *var = om_ones(OM_F32, OM_DIMS(2));
        om_set_requires_grad(x, true);
        om_tensor *y =
            om_batch_norm2d(x, NULL, NULL, mean, var, OM_OPTS(batch_norm, .training = true));
        om_fill_(mean, 5);
        assert_int_equal(om_backward(om_sum_all(om_mul(y, y))), OM_OK);
        y = om_batch_norm2d(x, NULL, NULL, mean, var, NULL);
        om_fill_(var, 5);
        assert_int_equal(om_backward(om_sum_all(y)), OM_ERR_STATE);
        expect(OM_ERR_STATE, "om_batch_norm2d");
    }
}

static void test_dropout_generator(void **state) {
    (void)state;
    OM_SCOPE {
        om_rng g = om_rng_new(5, 2), h = g;
        om_tensor *x = om_ones(OM_F32, OM_DIMS(9));
        om_tensor *a = om_dropout(x, 0.5f, true, &g);
        assert_int_equal(g.block, h.block + 3); // ceil(9 / 4) blocks
        om_tensor *b = om_dropout(x, 0.5f, true, &g);
        assert_memory_not_equal(om_data(a), om_data(b), 9 * sizeof(float));
        same(a, om_dropout(x, 0.5f, true, &h)); // the same state, the same mask
        assert_ptr_equal(om_dropout(x, 0.5f, false, &g), x);
        assert_int_equal(g.block, 6);
        assert_null(om_dropout(x, -1, true, &g)); // refused: nothing drawn
        assert_int_equal(om_catch(NULL), OM_ERR_ARG);
        assert_int_equal(g.block, 6);
        om_seed(77);
        om_rng *t      = om_thread_rng(2);
        uint64_t block = t->block;
        om_rng copy    = *t;
        a              = om_dropout(x, 0.5f, true, NULL);
        assert_int_equal(t->block, block + 3);
        same(a, om_dropout(x, 0.5f, true, &copy));
    }
}

/* Only what a gradient will read is saved: a factor whose gradient is not asked for may change. */
static void test_saved_factors(void **state) {
    (void)state;
    OM_SCOPE {
        om_tensor *a = noise(OM_DIMS(3)), *b = noise(OM_DIMS(3)), *c = om_clone(b);
        om_set_requires_grad(a, true);
        om_tensor *y = om_mul(a, b);
        bool was     = om_no_grad_begin();
        om_fill_(a, 9);
        om_no_grad_end(was);
        assert_int_equal(om_backward(om_sum_all(y)), OM_OK);
        same(om_grad_of(a), c);
        y = om_mul(a, b);
        om_fill_(b, 1);
        assert_int_equal(om_backward(om_sum_all(y)), OM_ERR_STATE);
        expect(OM_ERR_STATE, "om_mul");
    }
}

/* The record has its own copy of what the caller wrote, raw and resolved. */
static void test_record_attributes(void **state) {
    (void)state;
    OM_SCOPE {
        om_tensor *x = noise(OM_DIMS(2, 3, 4));
        om_set_requires_grad(x, true);
        int64_t axes[2]       = {-1, 0};
        om_tensor *y          = om_sum(x, 2, axes, true);
        axes[0]               = 77;
        const om_sum_raw *raw = y->record->raw;
        const om_sum_res *res = y->record->res;
        assert_int_equal(raw->axes.n, 2);
        assert_int_equal(raw->axes.v[0], -1);
        assert_int_equal(raw->axes.v[1], 0);
        assert_int_equal(raw->keepdims, 1);
        assert_int_equal(res->mask, 5);
        assert_int_equal(om_backward(om_sum_all(y)), OM_OK);
        assert_int_equal(om_numel(om_grad_of(x)), 24);
    }
}

typedef struct seen {
    int n;
    om_field_kind kind[8];
    int64_t count[8];
    const char *name[8];
} seen;
static void see(void *ctx, const char *name, om_field_kind kind, int64_t count,
                const void *values) {
    seen *s        = ctx;
    s->kind[s->n]  = kind;
    s->count[s->n] = count;
    s->name[s->n]  = name;
    s->n++;
    assert_non_null(values);
}

static void test_visitor(void **state) {
    (void)state;
    seen s           = {0};
    int64_t before[] = {1, 2}, after[] = {3, 4};
    om_pad_raw pad = {.value = 2, .before = {2, before}, .after = {2, after}};
    omi_visit_raw(OM_OP_PAD, &pad, see, &s);
    assert_int_equal(s.n, 3);
    assert_string_equal(s.name[0], "value");
    assert_int_equal(s.kind[0], OM_FIELD_DOUBLE);
    assert_int_equal(s.kind[2], OM_FIELD_LIST);
    assert_int_equal(s.count[2], 2);
    s = (seen){0};
    omi_visit_raw(OM_OP_RELU, &(om_relu_raw){0}, see, &s);
    omi_visit_raw(OM_OP_RELU, NULL, see, &s);
    assert_int_equal(s.n, 0);
    const om_op_layout *l = omi_op_layout(OM_OP_PAD);
    assert_string_equal(l->name, "pad");
    assert_int_equal(l->raw_lists[0], offsetof(om_pad_raw, before) + 1);
    assert_int_equal(l->raw_lists[1], offsetof(om_pad_raw, after) + 1);
    assert_int_equal(l->raw_lists[2], 0);
    assert_int_equal(l->res_lists[0], 0);
    assert_null(omi_op_layout(OM_OP_COUNT));
    assert_string_equal(omi_op_name(OM_OP_MATMUL), "matmul");
    assert_string_equal(omi_op_name(-1), "unknown");
    assert_int_equal(omi_op_arity(OM_OP_LINEAR).in_max, 3);
}

/* An operator that lowers to several nodes has the bits of those nodes (AR-7.1, AR-2.2, AR-7.2). */
static void test_equal_to_parts(void **state) {
    (void)state;
    OM_SCOPE {
        om_tensor *x = noise(OM_DIMS(5, 19)), *w = noise(OM_DIMS(7, 19)), *b = noise(OM_DIMS(7));
        om_tensor *parts = om_add(om_matmul(x, om_transpose(w, 0, 1)), b);
        same(om_linear(x, w, b), parts);
        same(om_linear(om_reshape(x, OM_DIMS(5, 1, 19)), w, b), parts);
        same(om_silu(x), om_mul(x, om_sigmoid(x)));
        om_tensor *t = om_clamp(x, -0.5, 0.5);
        same(om_not_equal(x, t), om_not(om_equal(x, t)));
        same(om_add_scalar(x, 0.1), om_add(x, om_scalar_f32(0.1f)));
        same(om_rdiv_scalar(x, 0.1), om_div(om_scalar_f32(0.1f), x));
        om_tensor *d = om_sub(x, t);
        same(om_mse_loss(x, t), om_mean_all(om_mul(d, d)));
        om_tensor *mask = om_greater(x, t);
        same(om_sum(mask, 0, NULL, false), om_sum_all(om_cast(mask, OM_I64)));
    }
    assert_int_equal(om_pending(), OM_OK);
}

/* A row of a product does not know its neighbours: folding batches into rows changes no bit
 * (AR-2.1). */
static void test_matmul_rows(void **state) {
    (void)state;
    OM_SCOPE {
        om_tensor *a = noise(OM_DIMS(3, 4, 37)), *b = noise(OM_DIMS(37, 9));
        om_tensor *y = om_matmul(a, b);
        for (int64_t i = 0; i < 3; i++)
            same(om_contiguous(om_select(y, 0, i)), om_matmul(om_select(a, 0, i), b));
    }
    assert_int_equal(om_pending(), OM_OK);
}

/* Weights in the caller's memory follow it: no packed form of them is kept. */
static void weights_in_the_callers_memory_are_never_cached(void **state) {
    (void)state;
    static float w[16 * 16];
    OM_SCOPE {
        om_tensor *x = noise(4, (int64_t[]){1, 16, 4, 4}), *v = noise(2, (int64_t[]){3, 16});
        om_tensor *cw = om_from_buffer(w, OM_F32, 4, (int64_t[]){16, 16, 1, 1}, NULL, NULL);
        om_tensor *lw = om_from_buffer(w, OM_F32, 2, (int64_t[]){16, 16}, NULL, NULL);
        for (int round = 0; round < 3; round++) {
            for (int i = 0; i < 16 * 16; i++)
                w[i] = (float)(round + 1) * 0.25f * (float)(i % 7);
            same(om_conv2d(x, cw, NULL, NULL), om_conv2d(x, om_clone(cw), NULL, NULL));
            same(om_linear(v, lw, NULL), om_linear(v, om_clone(lw), NULL));
            same(om_matmul(v, lw), om_matmul(v, om_clone(lw)));
        }
    }
}

/* Strides of 0 can ask for more steps than a lifetime has, in few bytes. */
static void a_product_of_2_58_steps_is_refused(void **state) {
    (void)state;
    OM_SCOPE {
        int64_t n = (int64_t)1 << 58, q = (int64_t)1 << 52, p = (int64_t)1 << 56, none = 0;
        om_tensor *one = om_ones(OM_F32, 1, (int64_t[]){1});
        om_tensor *a   = om_expand(one, 1, &n);
        assert_null(om_matmul(a, a));
        expect(OM_ERR_LIMIT, "2^53");
        om_tensor *col = om_expand(one, 2, (int64_t[]){q, 3}),
                  *row = om_expand(one, 2, (int64_t[]){3, q});
        assert_null(om_matmul(row, col));
        expect(OM_ERR_LIMIT, "2^53");
        assert_null(om_matmul(om_expand(om_ones(OM_I64, 1, (int64_t[]){1}), 1, &p),
                              om_expand(om_ones(OM_I64, 1, (int64_t[]){1}), 1, &p)));
        expect(OM_ERR_LIMIT, "2^53");
        assert_null(om_linear(row, row, NULL));
        expect(OM_ERR_LIMIT, "2^53");
        om_tensor *e =
            om_matmul(om_expand(one, 2, (int64_t[]){0, n}), om_expand(one, 2, (int64_t[]){n, 0}));
        assert_non_null(e); // nothing to compute
        assert_int_equal(om_numel(e), 0);
        om_tensor *z = om_zeros(OM_F32, 1, &none);
        assert_true(om_item_f32(om_matmul(z, z)) == 0);
    }
}

/* The dot product of two long vectors reads them where they are. */
static void a_dot_product_takes_no_memory(void **state) {
    (void)state;
    OM_SCOPE {
        int64_t n    = 20000000;
        om_tensor *a = om_expand(om_full(0.5, OM_F32, 1, (int64_t[]){1}), 1, &n);
        om_tensor *b = om_full(3, OM_F32, 1, &n);
        om_memory_stats before, after;
        om_memory(&before);
        om_memory_reset_peak();
        om_tensor *y = om_matmul(a, b);
        om_memory(&after);
        assert_true(om_item_f32(y) == 3e7f);
        assert_true(after.peak - before.bytes < 1 << 20);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_running_statistics),
        cmocka_unit_test(weights_in_the_callers_memory_are_never_cached),
        cmocka_unit_test(a_product_of_2_58_steps_is_refused),
        cmocka_unit_test(a_dot_product_takes_no_memory),
        cmocka_unit_test(test_running_statistics_refused),
        cmocka_unit_test(test_running_statistics_saved),
        cmocka_unit_test(test_dropout_generator),
        cmocka_unit_test(test_saved_factors),
        cmocka_unit_test(test_record_attributes),
        cmocka_unit_test(test_visitor),
        cmocka_unit_test(test_equal_to_parts),
        cmocka_unit_test(test_matmul_rows)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
