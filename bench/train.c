/*
 * train.c -- times training steps for bench/train.py: bench_train NAME.
 *
 * NAME is mlp, lenet, cnn or block. Answers each line "time" on standard input with seconds per
 * step (forward, loss, backward, Adam), the best of three stretches of about 20 ms in CPU time of
 * the one thread. Data are random; what a step costs does not depend on them.
 */
#include <onemodel.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

typedef struct net {
    om_module *m;
    om_tensor *(*forward)(om_module *m, om_tensor *x);
    om_tensor *x, *y;
} net;

static om_tensor *sequence(om_module *m, om_tensor *x) {
    return om_forward(m, x);
}

static om_tensor *kept(om_tensor *t) {
    return om_take(t);
}

static net classifier(om_module *m, int rank, const int64_t *dims) {
    om_rng g = om_rng_new(2, 3);
    return (net){m, sequence, kept(om_rand(&g, -0.5f, 0.5f, rank, dims)),
                 kept(om_randint(&g, 0, 10, OM_DIMS(dims[0])))};
}

static net make_mlp(void) {
    om_module *m = om_nn_sequential();
    om_nn_append(m, om_nn_linear(784, 512, NULL));
    om_nn_append(m, om_nn_relu());
    om_nn_append(m, om_nn_linear(512, 512, NULL));
    om_nn_append(m, om_nn_relu());
    om_nn_append(m, om_nn_linear(512, 10, NULL));
    return classifier(m, OM_DIMS(64, 784));
}

static net make_lenet(void) {
    om_module *m = om_nn_sequential();
    om_nn_append(m, om_nn_conv2d(1, 32, 3, 3, NULL));
    om_nn_append(m, om_nn_relu());
    om_nn_append(m, om_nn_conv2d(32, 64, 3, 3, NULL));
    om_nn_append(m, om_nn_relu());
    om_nn_append(m, om_nn_max_pool2d(2, 2, NULL));
    om_nn_append(m, om_nn_flatten(1));
    om_nn_append(m, om_nn_linear(9216, 128, NULL));
    om_nn_append(m, om_nn_relu());
    om_nn_append(m, om_nn_linear(128, 10, NULL));
    return classifier(m, OM_DIMS(64, 1, 28, 28));
}

static net make_cnn(void) {
    om_module *m = om_nn_sequential();
    for (int64_t i = 0, c = 1; i < 2; i++, c = 16 * i) {
        om_nn_append(m, om_nn_conv2d(c, 16 * (i + 1), 3, 3, OM_OPTS(conv2d, .padding = {1, 1})));
        om_nn_append(m, om_nn_batch_norm2d(16 * (i + 1), NULL));
        om_nn_append(m, om_nn_relu());
        om_nn_append(m, om_nn_max_pool2d(2, 2, NULL));
    }
    om_nn_append(m, om_nn_flatten(1));
    om_nn_append(m, om_nn_linear(32 * 7 * 7, 10, NULL));
    return classifier(m, OM_DIMS(64, 1, 28, 28));
}

/* One pre-norm encoder block: 8 sequences of 64 steps, width 128, 4 heads, inner width 512. */
enum { B = 8, T = 64, D = 128, H = 4 };

static om_tensor *heads(om_tensor *x) {
    return om_transpose(om_reshape(x, OM_DIMS(B, T, H, D / H)), 1, 2);
}

static om_tensor *block(om_module *m, om_tensor *x) {
    om_tensor *n = om_forward(om_nn_child(m, "n1"), x),
              *q = heads(om_forward(om_nn_child(m, "q"), n));
    om_tensor *k = heads(om_forward(om_nn_child(m, "k"), n));
    om_tensor *v = heads(om_forward(om_nn_child(m, "v"), n));
    om_tensor *a = om_matmul(om_mul_scalar(q, 0.17677669529663687), om_transpose(k, 2, 3));
    a            = om_matmul(om_softmax(a, -1), v);
    a            = om_reshape(om_transpose(a, 1, 2), OM_DIMS(B, T, D));
    x            = om_add(x, om_forward(om_nn_child(m, "o"), a));
    n            = om_forward(om_nn_child(m, "n2"), x);
    n            = om_gelu(om_forward(om_nn_child(m, "up"), n));
    return om_add(x, om_forward(om_nn_child(m, "down"), n));
}

static net make_block(void) {
    om_module *m = om_nn_module();
    om_rng g     = om_rng_new(2, 3);
    om_nn_add(m, "n1", om_nn_layer_norm(OM_DIMS(D), NULL));
    om_nn_add(m, "n2", om_nn_layer_norm(OM_DIMS(D), NULL));
    om_nn_add(m, "q", om_nn_linear(D, D, NULL));
    om_nn_add(m, "k", om_nn_linear(D, D, NULL));
    om_nn_add(m, "v", om_nn_linear(D, D, NULL));
    om_nn_add(m, "o", om_nn_linear(D, D, NULL));
    om_nn_add(m, "up", om_nn_linear(D, 4 * D, NULL));
    om_nn_add(m, "down", om_nn_linear(4 * D, D, NULL));
    return (net){m, block, kept(om_rand(&g, -0.5f, 0.5f, OM_DIMS(B, T, D))),
                 kept(om_rand(&g, -0.5f, 0.5f, OM_DIMS(B, T, D)))};
}

static net n;
static om_optim *optim;

static void step(void) {
    om_scope s   = om_scope_begin();
    om_tensor *y = n.forward(n.m, n.x);
    om_zero_grad(optim);
    om_backward(om_dtype_of(n.y) == OM_I64 ? om_cross_entropy(y, n.y) : om_mse_loss(y, n.y));
    om_step(optim);
    om_scope_end(s);
}

static double best_time(void) {
    double t = now(), best = 1e9;
    step();
    int reps = (int)(2e-2 / (now() - t + 1e-9)) + 1;
    for (int k = 0; k < 3; k++) {
        t = now();
        for (int i = 0; i < reps; i++)
            step();
        double d = (now() - t) / reps;
        if (d < best) best = d;
    }
    return best;
}

int main(int argc, char **argv) {
    char line[64];
    const char *name = argc == 2 ? argv[1] : "";
    om_set_threads(1);
    om_exit_on_error(true);
    om_seed(1);
    if (strcmp(name, "mlp") == 0) n = make_mlp();
    if (strcmp(name, "lenet") == 0) n = make_lenet();
    if (strcmp(name, "cnn") == 0) n = make_cnn();
    if (strcmp(name, "block") == 0) n = make_block();
    if (!n.m) return 2;
    om_scope_drain();
    optim = om_adam(n.m, 1e-3, NULL);
    step();
    while (fgets(line, sizeof line, stdin)) {
        printf("%.9g\n", best_time());
        fflush(stdout);
    }
    return 0;
}
