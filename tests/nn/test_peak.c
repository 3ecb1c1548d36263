/*
 * test_peak.c -- the most memory that a training step takes, as a promise.
 *
 * At most the parameters with their gradients and the optimizer's two averages, what backward reads
 * of the activations, the gradients of one layer's output and input, and a tenth more. What
 * backward reads is counted by hand, layer by layer.
 */
#include "nn/fixture.h"

typedef struct net {
    om_module *m;
    om_optim *o;
    om_tensor *x, *y;
    int64_t parameters, saved, flow; /* bytes; flow: the gradients on their way */
} net;

static int count_parameter(void *ctx, const char *path, om_tensor *t, bool is_buffer) {
    (void)path;
    int64_t n = 1;
    for (int i = 0; i < om_rank(t); i++)
        n *= om_dim(t, i);
    if (!is_buffer) *(int64_t *)ctx += 4 * n;
    return 0;
}

static void finish(net *n, int64_t classes) {
    om_nn_visit(n->m, count_parameter, &n->parameters);
    n->o     = om_adam(n->m, 1e-3, NULL);
    om_rng g = om_rng_new(5, 0);
    n->y     = om_randint(&g, 0, classes, OM_DIMS(om_dim(n->x, 0)));
    expect_ok();
}

static void step(net *n) {
    OM_SCOPE {
        om_tensor *loss = om_cross_entropy(om_forward(n->m, n->x), n->y);
        om_zero_grad(n->o);
        om_backward(loss);
        om_step(n->o);
    }
    expect_ok();
}

/* Three steps; the third must stay within the promise. */
static void keeps_within(net *n) {
    om_memory_stats before, after;
    om_memory(&before); // with parameters, before gradients and averages
    for (int i = 0; i < 3; i++) {
        om_memory_reset_peak();
        step(n);
    }
    om_memory(&after);
    int64_t took  = after.peak - before.bytes + n->parameters;
    int64_t bound = n->parameters * 4 + n->saved + n->flow;
    print_message("parameters %lld, saved %lld, on their way %lld, took %lld: %.3f of the sum\n",
                  (long long)n->parameters, (long long)n->saved, (long long)n->flow,
                  (long long)took, (double)took / (double)bound);
    assert_true((double)took <= 1.1 * (double)bound);
    om_optim_free(n->o);
    om_nn_free(n->m);
}

/* 784-512-512-10, batch 64: linear reads its input, ReLU its output, which is the next's input; the
 * loss its softmax. */
static void an_mlp(void **state) {
    (void)state;
    OM_SCOPE {
        net n = {.m = om_nn_sequential(), .x = om_ones(OM_F32, OM_DIMS(64, 784))};
        om_nn_append(n.m, om_nn_linear(784, 512, NULL));
        om_nn_append(n.m, om_nn_relu());
        om_nn_append(n.m, om_nn_linear(512, 512, NULL));
        om_nn_append(n.m, om_nn_relu());
        om_nn_append(n.m, om_nn_linear(512, 10, NULL));
        n.saved = 4 * 64 * (512 + 512 + 10);
        n.flow  = 4 * 64 * 2 * 512;
        finish(&n, 10);
        keeps_within(&n);
    }
}

/* Two convolutions with batch norm, ReLU and pooling, then a linear layer, batch 32 of 1x28x28. */
static void a_cnn(void **state) {
    (void)state;
    OM_SCOPE {
        net n = {.m = om_nn_sequential(), .x = om_ones(OM_F32, OM_DIMS(32, 1, 28, 28))};
        om_nn_append(n.m, om_nn_conv2d(1, 16, 3, 3, OM_OPTS(conv2d, .padding = {1, 1})));
        om_nn_append(n.m, om_nn_batch_norm2d(16, NULL));
        om_nn_append(n.m, om_nn_relu());
        om_nn_append(n.m, om_nn_max_pool2d(2, 2, NULL));
        om_nn_append(n.m, om_nn_conv2d(16, 32, 3, 3, OM_OPTS(conv2d, .padding = {1, 1})));
        om_nn_append(n.m, om_nn_batch_norm2d(32, NULL));
        om_nn_append(n.m, om_nn_relu());
        om_nn_append(n.m, om_nn_max_pool2d(2, 2, NULL));
        om_nn_append(n.m, om_nn_flatten(1));
        om_nn_append(n.m, om_nn_linear(32 * 7 * 7, 10, NULL));
        // Batch norm reads its input (the convolution's output), ReLU its output, the next layer
        // the pool's output, the pool the places of the greatest; the widest gradients still on
        // their way when most is held are those of the second pool.
        int64_t big = 16 * 28 * 28, half = 32 * 14 * 14, pooled = 16 * 14 * 14, last = 32 * 7 * 7;
        n.saved = 4 * 32 * (2 * big + 2 * half + 2 * pooled + 2 * last + 10);
        n.flow  = 4 * 32 * (half + last);
        finish(&n, 10);
        keeps_within(&n);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {FIXTURE_TEST(an_mlp), FIXTURE_TEST(a_cnn)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
