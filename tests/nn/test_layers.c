/*
 * test_layers.c -- every layer against PyTorch 2.13.0's outputs and gradients
 * (tools/make_layer_reference.py), and the initialisers against their formulas.
 */
#include "nn/fixture.h"

/* ---- the stored cases ------------------------------------------------------------------------ */

typedef struct stored {
    char name[64];
    om_tensor *t;
} stored;
typedef struct torch_case {
    char name[64];
    int n;
    stored v[32];
} torch_case;

static FILE *open_cases(void) {
    FILE *f = fopen("tests/nn/data/layers.txt", "r");
    assert_non_null(f);
    return f;
}

static om_tensor *read_tensor(FILE *f) {
    char kind[16];
    int rank;
    int64_t dims[8], n = 1;
    assert_int_equal(fscanf(f, "%15s %d", kind, &rank), 2);
    for (int i = 0; i < rank; i++) {
        long long d;
        assert_int_equal(fscanf(f, "%lld", &d), 1);
        n *= dims[i] = d;
    }
    om_tensor *t;
    if (strcmp(kind, "float32") == 0) {
        float *v = malloc((size_t)n * sizeof *v);
        for (int64_t i = 0; i < n; i++)
            assert_int_equal(fscanf(f, "%a", &v[i]), 1);
        t = om_from(v, OM_F32, rank, dims);
        free(v);
    } else {
        int64_t *v = malloc((size_t)n * sizeof *v);
        for (int64_t i = 0; i < n; i++)
            assert_int_equal(fscanf(f, "%" SCNd64, &v[i]), 1);
        t = om_from(v, OM_I64, rank, dims);
        free(v);
    }
    expect_ok();
    return t;
}

/* The case of this name, its tensors in the current scope. */
static void read_case(const char *name, torch_case *c) {
    FILE *f = open_cases();
    char word[64];
    bool mine = false;
    memset(c, 0, sizeof *c);
    while (fscanf(f, "%63s", word) == 1) {
        if (strcmp(word, "case") == 0) {
            if (mine) break;
            assert_int_equal(fscanf(f, "%63s", c->name), 1);
            mine = strcmp(c->name, name) == 0;
        } else if (mine) {
            assert_int_equal(fscanf(f, "%63s", c->v[c->n].name), 1);
            c->v[c->n].t = read_tensor(f);
            c->n++;
        } else {
            int ch;
            while ((ch = fgetc(f)) != '\n' && ch != EOF) {
            }
        }
    }
    fclose(f);
    if (!c->n) fail_msg("there is no case %s", name);
}

static om_tensor *stored_of(const torch_case *c, const char *name) {
    for (int i = 0; i < c->n; i++)
        if (strcmp(c->v[i].name, name) == 0) return c->v[i].t;
    return NULL;
}

/* ---- comparison ------------------------------------------------------------------------------ */

static void compare_to(const char *what, const torch_case *c, om_tensor *got, om_tensor *want) {
    expect_ok();
    if (!got) fail_msg("%s: no %s", c->name, what);
    assert_int_equal(om_rank(got), om_rank(want));
    assert_memory_equal(om_shape_of(got), om_shape_of(want), (size_t)om_rank(got) * 8);
    assert_int_equal(om_dtype_of(got), om_dtype_of(want));
    got = om_contiguous(got);
    if (om_dtype_of(got) == OM_I64) {
        assert_memory_equal(om_data(got), om_data(want), (size_t)om_numel(got) * 8);
        return;
    }
    double e = relative_error(om_data(got), om_data(want), (size_t)om_numel(got));
    if (e > 1e-6) fail_msg("%s: %s differs by %g of the largest", c->name, what, e);
}

static void load_parameters(const torch_case *c, om_module *m) {
    om_named_tensor list[32];
    int n = 0;
    for (int i = 0; i < c->n; i++)
        if (strncmp(c->v[i].name, "p.", 2) == 0)
            list[n++] = (om_named_tensor){c->v[i].name + 2, c->v[i].t};
    om_nn_load_list(m, n, list, NULL); /* strict: names and shapes are PyTorch's */
    expect_ok();
}

static void check_case(const char *name, om_module *m, bool training) {
    OM_SCOPE {
        torch_case c;
        read_case(name, &c);
        assert_non_null(m);
        load_parameters(&c, m);
        om_nn_train(m, training);
        om_tensor *x = stored_of(&c, "x");
        bool needs_x = stored_of(&c, "dx") != NULL;
        if (needs_x) om_set_requires_grad(x, true);
        om_tensor *y = om_forward(m, x);
        compare_to("y", &c, y, stored_of(&c, "y"));
        om_backward_with(y, OM_OPTS(backward, .grad = stored_of(&c, "g")));
        expect_ok();
        if (needs_x) compare_to("dx", &c, om_grad_of(x), stored_of(&c, "dx"));
        int gradients = 0;
        for (int i = 0; i < c.n; i++) {
            const char *n = c.v[i].name;
            if (strncmp(n, "d.", 2) == 0) {
                compare_to(n, &c, om_grad_of(om_nn_get(m, n + 2)), c.v[i].t);
                gradients++;
            } else if (strncmp(n, "after.", 6) == 0)
                compare_to(n, &c, om_nn_get(m, n + 6), c.v[i].t);
            else if (strncmp(n, "p.", 2) == 0) {
                char after[80];
                snprintf(after, sizeof after, "after.%s", n + 2);
                if (!stored_of(&c, after)) compare_to(n, &c, om_nn_get(m, n + 2), c.v[i].t);
            }
        }
        assert_true(needs_x || gradients > 0);
    }
    om_nn_free(m);
}

static void linear(void **state) {
    (void)state;
    check_case("linear", om_nn_linear(5, 3, NULL), true);
    check_case("linear_no_bias", om_nn_linear(5, 3, OM_OPTS(linear, .no_bias = true)), true);
}

static void conv2d(void **state) {
    (void)state;
    check_case(
        "conv2d",
        om_nn_conv2d(4, 6, 3, 2, OM_OPTS(conv2d, .stride = {2, 1}, .padding = {1, 2}, .groups = 2)),
        true);
    check_case(
        "conv2d_dilated",
        om_nn_conv2d(2, 3, 3, 3,
                     OM_OPTS(conv2d, .dilation = {2, 2}, .padding = {2, 2}, .no_bias = true)),
        true);
}

static void norms(void **state) {
    (void)state;
    check_case("batch_norm2d_train", om_nn_batch_norm2d(3, NULL), true);
    check_case("batch_norm2d_eval", om_nn_batch_norm2d(3, NULL), false);
    check_case("layer_norm", om_nn_layer_norm(OM_DIMS(6), NULL), true);
    check_case("layer_norm_2", om_nn_layer_norm(OM_DIMS(3, 4), OM_OPTS(norm, .eps = 1e-3f)), true);
}

static void embedding_and_dropout(void **state) {
    (void)state;
    check_case("embedding",
               om_nn_embedding(7, 4, OM_OPTS(embedding, .has_padding = true, .padding_idx = 2)),
               true);
    check_case("dropout_eval", om_nn_dropout(0.5f), false);
}

static void activations(void **state) {
    (void)state;
    check_case("relu", om_nn_relu(), true);
    check_case("gelu", om_nn_gelu(), true);
    check_case("gelu_tanh", om_nn_gelu_tanh(), true);
    check_case("silu", om_nn_silu(), true);
    check_case("tanh", om_nn_tanh(), true);
    check_case("sigmoid", om_nn_sigmoid(), true);
    check_case("softmax", om_nn_softmax(1), true);
    check_case("log_softmax", om_nn_log_softmax(-1), true);
    check_case("flatten", om_nn_flatten(1), true);
}

static void pools(void **state) {
    (void)state;
    check_case("max_pool2d",
               om_nn_max_pool2d(3, 2, OM_OPTS(pool2d, .stride = {2, 1}, .padding = {1, 1})), true);
    check_case("avg_pool2d",
               om_nn_avg_pool2d(
                   3, 3, OM_OPTS(pool2d, .stride = {2, 2}, .padding = {1, 1}, .exclude_pad = true)),
               true);
    check_case("adaptive_avg_pool2d", om_nn_adaptive_avg_pool2d(2, 3), true);
}

static void sequential(void **state) {
    (void)state;
    om_module *m = om_nn_sequential();
    om_nn_append(m, om_nn_conv2d(1, 4, 3, 3, OM_OPTS(conv2d, .padding = {1, 1}, .no_bias = true)));
    om_nn_append(m, om_nn_batch_norm2d(4, NULL));
    om_nn_append(m, om_nn_relu());
    om_nn_append(m, om_nn_max_pool2d(2, 2, NULL));
    om_nn_append(m, om_nn_flatten(1));
    om_nn_append(m, om_nn_linear(16, 3, NULL));
    check_case("sequential", m, true);
}

/* ---- initial values and settings ---------------------------------------------------------------
 */

/* All elements within the bound, and the largest near it, so near that chance misses it once in
 * e^20. */
static void check_uniform(om_tensor *t, double bound) {
    const float *v = om_data(t);
    double max = 0.0, sum = 0.0;
    int64_t n = om_numel(t);
    for (int64_t i = 0; i < n; i++) {
        double a = fabs((double)v[i]);
        if (a > max) max = a;
        sum += (double)v[i];
    }
    assert_true(max <= bound * (1.0 + 1e-7) && max > bound * (1.0 - 20.0 / (double)n));
    assert_true(fabs(sum / (double)n) < 4.0 * bound / sqrt(3.0 * (double)n));
}

static void initial_values(void **state) {
    (void)state;
    om_seed(3);
    om_module *l = om_nn_linear(50, 40, NULL),
              *c = om_nn_conv2d(4, 32, 3, 3, OM_OPTS(conv2d, .groups = 2));
    om_module *e =
        om_nn_embedding(100, 20, OM_OPTS(embedding, .has_padding = true, .padding_idx = 5));
    om_module *b = om_nn_batch_norm2d(3, NULL);
    check_uniform(om_nn_get(l, "weight"), 1.0 / sqrt(50.0));
    check_uniform(om_nn_get(l, "bias"), 1.0 / sqrt(50.0));
    check_uniform(om_nn_get(c, "weight"), 1.0 / sqrt(18.0));
    check_uniform(om_nn_get(c, "bias"), 1.0 / sqrt(18.0));
    const float *v = om_data(om_nn_get(e, "weight"));
    double s2      = 0.0;
    for (int i = 0; i < 2000; i++)
        s2 += (double)v[i] * (double)v[i];
    assert_true(fabs(s2 / 1980.0 - 1.0) < 0.15);
    for (int i = 100; i < 120; i++)
        assert_true(v[i] == 0.0f);
    for (int i = 0; i < 3; i++) {
        const int64_t at[1] = {i};
        assert_true(om_get(om_nn_get(b, "weight"), at) == 1.0);
        assert_true(om_get(om_nn_get(b, "bias"), at) == 0.0);
        assert_true(om_get(om_nn_get(b, "running_mean"), at) == 0.0);
        assert_true(om_get(om_nn_get(b, "running_var"), at) == 1.0);
    }
    assert_int_equal(om_item_i64(om_nn_get(b, "num_batches_tracked")), 0);
    /* The same seed gives the same weights, and other streams do not move them. */
    om_seed(3);
    om_thread_rng(2)->block += 5;
    om_module *again = om_nn_linear(50, 40, NULL);
    assert_true(om_bit_equal(om_nn_get(l, "weight"), om_nn_get(again, "weight")));
    assert_true(om_bit_equal(om_nn_get(l, "bias"), om_nn_get(again, "bias")));
    expect_ok();
    om_nn_free(l);
    om_nn_free(c);
    om_nn_free(e);
    om_nn_free(b);
    om_nn_free(again);
}

static void settings_are_checked(void **state) {
    (void)state;
    assert_null(om_nn_linear(0, 3, NULL));
    expect_error(OM_ERR_ARG, "in is 0");
    assert_null(om_nn_conv2d(4, 6, 3, 3, OM_OPTS(conv2d, .groups = 4)));
    expect_error(OM_ERR_ARG, "groups is 4");
    assert_null(om_nn_conv2d(4, 6, 3, -1, NULL));
    expect_error(OM_ERR_ARG, "kw is -1");
    assert_null(om_nn_embedding(3, 2, OM_OPTS(embedding, .has_padding = true, .padding_idx = 3)));
    expect_error(OM_ERR_ARG, "padding_idx is 3");
    assert_null(om_nn_dropout(1.5f));
    expect_error(OM_ERR_ARG, "p is 1.5");
    assert_null(om_nn_batch_norm2d(2, OM_OPTS(norm, .momentum = 2.0f)));
    expect_error(OM_ERR_ARG, "momentum 2");
    assert_null(om_nn_layer_norm(0, NULL, NULL));
    expect_error(OM_ERR_ARG, "rank is 0");
    om_module *m = om_nn_linear(3, 2, NULL);
    OM_SCOPE {
        assert_null(om_forward(m, om_ones(OM_F32, OM_DIMS(2, 4))));
        om_catch(NULL);
    }
    om_nn_free(m);
}

static void dropout_in_training(void **state) {
    (void)state;
    om_module *m = om_nn_dropout(0.25f);
    OM_SCOPE {
        om_tensor *x = om_ones(OM_F32, OM_DIMS(10000)), *y = om_forward(m, x);
        const float *v = om_data(y);
        int kept       = 0;
        for (int i = 0; i < 10000; i++) {
            assert_true(v[i] == 0.0f || v[i] == (float)(1.0 / 0.75));
            kept += v[i] != 0.0f;
        }
        assert_true(abs(kept - 7500) < 200);
        om_nn_train(m, false);
        assert_ptr_equal(om_forward(m, x), x);
    }
    expect_ok();
    om_nn_free(m);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(linear),
        FIXTURE_TEST(conv2d),
        FIXTURE_TEST(norms),
        FIXTURE_TEST(embedding_and_dropout),
        FIXTURE_TEST(activations),
        FIXTURE_TEST(pools),
        FIXTURE_TEST(sequential),
        FIXTURE_TEST(initial_values),
        FIXTURE_TEST(settings_are_checked),
        FIXTURE_TEST(dropout_in_training),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
