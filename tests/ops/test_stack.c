/*
 * test_stack.c -- operators forward and backward on a thread with a stack of 64 KiB.
 *
 * A frame that is larger than the guard page behind a stack does not fault: it is written over
 * whatever lies there, so a small stack once gave wrong gradients without a crash. The values here
 * must be those of a thread with a large stack, and shapes are past one block of every kind.
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "base/hash.h"
#include "base/thread.h"
#include "harness.h"
#include "onemodel/autograd.h"
#include "onemodel/ops.h"

/* Sanitizers put their own things around every variable. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#    define STACK_FACTOR 8
#elif defined(__has_feature)
#    if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) ||                     \
        __has_feature(undefined_behavior_sanitizer)
#        define STACK_FACTOR 8
#    endif
#endif
#ifndef STACK_FACTOR
#    define STACK_FACTOR 1
#endif

enum { SMALL_STACK = STACK_FACTOR * (64 << 10), LARGE_STACK = 8 << 20, MOST = 64 };

typedef struct sums {
    int n;
    const char *name[MOST];
    char sha[MOST][65];
    om_status status;
    char message[256];
} sums;

static void note(sums *s, const char *name, om_tensor *t) {
    om_tensor *c = t ? om_contiguous(t) : NULL;
    if (!c || s->n == MOST) return;
    s->name[s->n] = name;
    om_sha256_of(om_data(c), (size_t)om_numel(c) * om_dtype_size(om_dtype_of(c)), s->sha[s->n++]);
}

/* The result, and the gradient of its sum with fixed weights by x. */
static void both(sums *s, const char *name, om_tensor *x, om_tensor *y) {
    om_tensor *g = NULL;
    if (!y) return;
    om_rng rng   = {.seed = 5};
    om_tensor *c = om_rand(&rng, -1, 1, om_rank(y), om_shape_of(y));
    note(s, name, y);
    if (om_grad(om_sum_all(om_mul(y, c)), 1, &x, &g, &(om_backward_opts){.retain_graph = true}) ==
        OM_OK)
        note(s, name, g);
}

static om_tensor *leaf(uint64_t seed, int rank, const int64_t *dims) {
    om_rng rng   = {.seed = seed};
    om_tensor *x = om_randn(&rng, 0, 1, rank, dims);
    om_set_requires_grad(x, true);
    return x;
}

static void compute_all(sums *s) {
    om_tensor *x = leaf(1, 2, (int64_t[]){300, 70}), *tall = leaf(2, 2, (int64_t[]){5000, 40});
    om_tensor *xt = om_transpose(x, 0, 1), *tt = om_transpose(tall, 0, 1);
    both(s, "sum, strided", tall, om_sum(tt, 1, (int64_t[]){1}, false));
    both(s, "sum, columns", tall, om_sum(tall, 1, (int64_t[]){0}, false));
    both(s, "mean, all of a transpose", tall, om_mean_all(om_mul(tt, tt)));
    both(s, "max, strided", tall, om_max(tt, 1, (int64_t[]){1}, false));
    both(s, "softmax, rows", tall, om_softmax(tall, 1));
    both(s, "softmax, strided", tall, om_softmax(tall, 0));
    both(s, "log softmax, rows", tall, om_log_softmax(om_reshape(tall, 2, (int64_t[]){1, -1}), 1));
    both(s, "log softmax, strided", tall, om_log_softmax(tall, 0));
    om_tensor *w = leaf(3, 1, (int64_t[]){40}), *b = leaf(4, 1, (int64_t[]){40});
    both(s, "layer norm by x", tall, om_layer_norm(tall, 1, w, b, 1e-5f));
    both(s, "layer norm by w", w, om_layer_norm(tall, 1, w, b, 1e-5f));
    both(s, "layer norm by b", b, om_layer_norm(tall, 1, w, b, 1e-5f));
    om_tensor *img = leaf(5, 4, (int64_t[]){3, 4, 45, 45}), *few = leaf(6, 2, (int64_t[]){5000, 4});
    om_tensor *cw            = leaf(7, 1, (int64_t[]){4});
    om_tensor *mean          = om_zeros(OM_F32, 1, (int64_t[]){4}),
              *var           = om_ones(OM_F32, 1, (int64_t[]){4});
    om_batch_norm_opts train = {.training = true};
    both(s, "batch norm by x", img, om_batch_norm2d(img, cw, NULL, mean, var, &train));
    both(s, "batch norm by w", cw, om_batch_norm2d(img, cw, NULL, mean, var, &train));
    both(s, "batch norm of rows", few, om_batch_norm2d(few, cw, NULL, mean, var, &train));
    both(s, "batch norm, evaluated", cw, om_batch_norm2d(img, cw, NULL, mean, var, NULL));
    both(s, "gelu", x, om_gelu(xt));
    both(s, "silu", x, om_silu(xt));
    both(s, "add, strided", x, om_add(xt, om_transpose(om_mul(x, x), 0, 1)));
    both(s, "dropout", x, om_dropout(xt, 0.5f, true, &(om_rng){.seed = 3}));
    both(s, "matmul", x, om_matmul(xt, x));
    both(s, "matmul, deep", tall, om_matmul(tt, tall));
    both(s, "matmul, one row", tall, om_matmul(om_slice(tt, 0, 0, 1, 1), tall));
    both(s, "linear", x, om_linear(x, leaf(8, 2, (int64_t[]){33, 70}), NULL));
    om_tensor *d = om_cast(x, OM_F64);
    both(s, "matmul, float64", x, om_cast(om_matmul(om_transpose(d, 0, 1), d), OM_F32));
    note(s, "normal", om_randn(&(om_rng){.seed = 9}, 0, 1, 1, (int64_t[]){5000}));
    note(s, "integers", om_randint(&(om_rng){.seed = 9}, 0, 99, 1, (int64_t[]){5000}));
    note(
        s, "sum of integers",
        om_sum(om_cast(om_transpose(om_mul_scalar(x, 9), 0, 1), OM_I64), 1, (int64_t[]){1}, false));
}

static void *body(void *arg) {
    sums *s = arg;
    omi_set_worker_cap(1); // all of it on this stack
    OM_SCOPE {
        compute_all(s);
    }
    om_error e;
    s->status = om_catch(&e);
    memcpy(s->message, e.message, sizeof s->message - 1);
    om_trim();
    return NULL;
}

static void on_stack(size_t bytes, sums *s) {
    pthread_attr_t attr;
    pthread_t t;
    assert_int_equal(pthread_attr_init(&attr), 0);
    assert_int_equal(pthread_attr_setstacksize(&attr, bytes), 0);
    assert_int_equal(pthread_create(&t, &attr, body, s), 0);
    pthread_join(t, NULL);
    pthread_attr_destroy(&attr);
    if (s->status != OM_OK) fail_msg("%s", s->message);
}

static void a_stack_of_64_kib_gives_the_same_gradients(void **state) {
    (void)state;
    static sums small, large;
    on_stack(LARGE_STACK, &large);
    on_stack(SMALL_STACK, &small);
    assert_true(large.n > 45);
    assert_int_equal(small.n, large.n);
    for (int i = 0; i < large.n; i++)
        if (strcmp(small.sha[i], large.sha[i]) != 0)
            fail_msg("%s differs on a small stack", large.name[i]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_stack_of_64_kib_gives_the_same_gradients),
    };
    return cmocka_run_group_tests_name("stack", tests, NULL, NULL);
}
