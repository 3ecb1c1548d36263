/*
 * test_cancel.c -- the cancel flag inside long operators: seen soon, in workers too, and nothing
 * that outlives the call is left half written.
 *
 * A timer thread raises the flag and notes how much processor time the caller had used; what the
 * caller uses from then on is bounded. Processor time, because the machine may be busy with other
 * things. The operators here are large enough to run for seconds without it.
 */
#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "base/thread.h"
#include "compute/matmul.h"
#include "harness.h"
#include "onemodel/autograd.h"
#include "onemodel/ops.h"
#include "onemodel/optim.h"

enum { RAISE_AFTER_MS = 20, SEEN_WITHIN_MS = 50 * HARNESS_SLOWER };

/* ---- raising it in the middle ------------------------------------------------------------------
 */

typedef struct timer {
    om_cancel flag;
    clockid_t clock; /* processor time of the caller */
    struct timespec raised;
} timer;

static void *raise_later(void *arg) {
    timer *t = arg;
    struct timespec now, until;
    clock_gettime(t->clock, &until);
    until.tv_nsec += RAISE_AFTER_MS * 1000000L;
    do { // processor time of the caller, so that it is really inside
        nanosleep(&(struct timespec){0, 1000000}, NULL);
        clock_gettime(t->clock, &now);
    } while ((now.tv_sec - until.tv_sec) * 1000000000L + now.tv_nsec - until.tv_nsec < 0);
    t->raised = now;
    __atomic_store_n(&t->flag.raised, 1, __ATOMIC_RELAXED);
    return NULL;
}

typedef struct work {
    om_tensor *a, *b;
    int64_t n;
} work;
typedef om_tensor *(*work_fn)(const work *w);

/* The call is cancelled within SEEN_WITHIN_MS of processor time. */
static void stops(const char *name, work_fn fn, const work *w) {
    timer t = {.flag = {0}};
    pthread_t thread;
    struct timespec now;
    om_error e;
    assert_int_equal(pthread_getcpuclockid(pthread_self(), &t.clock), 0);
    om_set_cancel(&t.flag);
    assert_int_equal(pthread_create(&thread, NULL, raise_later, &t), 0);
    om_tensor *y = fn(w);
    clock_gettime(t.clock, &now);
    while (!y && !__atomic_load_n(&t.flag.raised, __ATOMIC_RELAXED) && om_pending() == OM_OK)
        nanosleep(&(struct timespec){0, 1000000}, NULL);
    om_status st = om_catch(&e);
    if (y) t.flag.raised = 1; // only to end the thread
    pthread_cancel(thread);
    pthread_join(thread, NULL);
    om_set_cancel(NULL);
    if (y) fail_msg("%s ran to its end", name);
    if (st != OM_ERR_CANCELLED) fail_msg("%s: %s", name, e.message);
    double ms = (double)(now.tv_sec - t.raised.tv_sec) * 1e3 +
                (double)(now.tv_nsec - t.raised.tv_nsec) * 1e-6;
    if (ms > SEEN_WITHIN_MS) fail_msg("%s saw the flag after %.0f ms", name, ms);
}

static om_tensor *run_matmul(const work *w) {
    return om_matmul(w->a, w->b);
}
static om_tensor *run_softmax(const work *w) {
    return om_softmax(w->a, -1);
}
static om_tensor *run_log_softmax(const work *w) {
    return om_log_softmax(w->a, -1);
}
static om_tensor *run_layer_norm(const work *w) {
    return om_layer_norm(w->a, 1, NULL, NULL, 1e-5f);
}
static om_tensor *run_sum(const work *w) {
    return om_sum_all(w->a);
}
static om_tensor *run_erf(const work *w) {
    return om_erf(w->a);
}
static om_tensor *run_argmax(const work *w) {
    return om_argmax(w->a, -1, false);
}
static om_tensor *run_topk(const work *w) {
    om_tensor *v = NULL, *i = NULL;
    om_top_k(w->a, w->n, -1, false, &v, &i);
    return v;
}
static om_tensor *wide(om_dtype t, int64_t rows, int64_t cols) {
    om_tensor *one = om_ones(t, 1, (int64_t[]){1});
    return om_expand(one, 2, (int64_t[]){rows, cols});
}

static void check_products(void) {
    OM_SCOPE {
        const om_dtype types[] = {OM_F32, OM_F64, OM_I64, OM_I32};
        for (int k = 0; k < 4; k++) {
            work many = {wide(types[k], 6000, 6000), wide(types[k], 6000, 6000), 0};
            stops("om_matmul, many rows", run_matmul, &many);
            work deep = {wide(types[k], 100, 3000000), wide(types[k], 3000000, 100), 0};
            stops("om_matmul, long inner axis", run_matmul, &deep);
        }
    }
}

static void the_flag_is_seen_inside_a_product_by_one_thread(void **state) {
    (void)state;
    int cap = omi_set_worker_cap(1);
    check_products();
    omi_set_worker_cap(cap);
}
static void the_flag_is_seen_inside_a_product_by_workers(void **state) {
    (void)state;
    int was = om_threads();
    om_set_threads(3);
    check_products();
    om_set_threads(was);
}

/* One row as long as a whole tensor: nothing to split. */
static void the_flag_is_seen_inside_one_long_row(void **state) {
    (void)state;
    int cap = omi_set_worker_cap(1);
    OM_SCOPE {
        work w = {om_rand(NULL, 0, 1, 2, (int64_t[]){1, 1 << 26}), NULL, 0};
        work t = {om_rand(NULL, 0, 1, 2, (int64_t[]){1, 1 << 24}), NULL, 1 << 22};
        stops("om_softmax", run_softmax, &w);
        stops("om_log_softmax", run_log_softmax, &w);
        stops("om_layer_norm", run_layer_norm, &w);
        stops("om_erf", run_erf, &w);
        stops("om_top_k", run_topk, &t);
        work far = {wide(OM_F32, 1, (int64_t)1 << 32), NULL, 0};
        stops("om_sum_all", run_sum, &far);
        stops("om_argmax", run_argmax, &far);
        work endless = {wide(OM_F32, 1, (int64_t)1 << 55), NULL,
                        0}; // even to skip its blocks one by one takes hours
        stops("om_sum_all without end", run_sum, &endless);
    }
    omi_set_worker_cap(cap);
}

static om_tensor *run_conv2d(const work *w) {
    om_conv2d_opts o = {
        .struct_size = sizeof o, .padding = {1, 1}, .groups = om_dim(w->a, 1) / om_dim(w->b, 1)};
    return om_conv2d(w->a, w->b, NULL, &o);
}
static om_tensor *run_max_pool(const work *w) {
    om_pool2d_opts o = {.struct_size = sizeof o, .stride = {1, 1}, .padding = {200, 200}};
    return om_max_pool2d(w->a, 401, 401, &o);
}
static om_tensor *run_avg_pool(const work *w) {
    om_pool2d_opts o = {.struct_size = sizeof o, .stride = {1, 1}, .padding = {200, 200}};
    return om_avg_pool2d(w->a, 401, 401, &o);
}
static om_tensor *run_backward(const work *w) {
    om_tensor *g = om_ones_like(w->a);
    return om_backward_with(w->a, OM_OPTS(backward, .grad = g)) == OM_OK ? w->a : NULL;
}

static void check_windows(void) {
    OM_SCOPE {
        work c = {om_ones(OM_F32, 4, (int64_t[]){1, 512, 192, 192}),
                  om_ones(OM_F32, 4, (int64_t[]){512, 512, 3, 3}), 0};
        stops("om_conv2d", run_conv2d, &c);
        work d = {om_ones(OM_F32, 4, (int64_t[]){1, 1, 1500, 1500}),
                  om_ones(OM_F32, 4, (int64_t[]){1, 1, 75, 75}), 0};
        stops("om_conv2d, one channel", run_conv2d, &d);
        stops("om_max_pool2d", run_max_pool, &d);
        stops("om_avg_pool2d", run_avg_pool, &d);
        om_tensor *x = om_ones(OM_F32, 4, (int64_t[]){1, 128, 128, 128});
        om_tensor *w = om_ones(OM_F32, 4, (int64_t[]){128, 128, 5, 5});
        for (int k = 0; k < 2; k++) {
            om_set_requires_grad(k ? w : x, true);
            work b = {run_conv2d(&(work){x, w, 0}), NULL, 0};
            stops(k ? "gradient by w" : "gradient by x", run_backward, &b);
            om_set_requires_grad(k ? w : x, false);
        }
    }
}
static void the_flag_is_seen_inside_windows_by_one_thread(void **state) {
    (void)state;
    int cap = omi_set_worker_cap(1);
    check_windows();
    omi_set_worker_cap(cap);
}
static void the_flag_is_seen_inside_windows_by_workers(void **state) {
    (void)state;
    int was = om_threads();
    om_set_threads(3);
    check_windows();
    om_set_threads(was);
}

/* ---- what outlives the call --------------------------------------------------------------------
 */

static void cancelled(om_status st) {
    om_error e;
    assert_int_equal(st, OM_ERR_CANCELLED);
    assert_int_equal(om_catch(&e), OM_ERR_CANCELLED);
}

static void forty_products_with_the_flag_raised_are_refused(void **state) {
    (void)state;
    om_cancel c = {.raised = 1};
    OM_SCOPE {
        om_tensor *a = om_ones(OM_F32, 2, (int64_t[]){8, 8});
        om_set_cancel(&c);
        for (int i = 0; i < 40; i++) {
            assert_null(om_matmul(a, a));
            cancelled(om_pending());
        }
        om_set_cancel(NULL);
        assert_non_null(om_matmul(a, a));
    }
}

static void writes_in_place_are_whole_or_not_begun(void **state) {
    (void)state;
    om_cancel c = {.raised = 1};
    OM_SCOPE {
        int64_t n    = 100000;
        om_tensor *t = om_full(2, OM_F32, 1, &n), *one = om_ones(OM_F32, 1, &n);
        om_set_cancel(&c);
        cancelled(om_add_(t, one));
        cancelled(om_mul_scalar_(t, 3));
        cancelled(om_copy_(t, one));
        cancelled(om_fill_(t, 7));
        om_set_cancel(NULL);
        for (int64_t i = 0; i < n; i++)
            assert_true(((const float *)om_data(t))[i] == 2);
    }
}

static void write_all(void *arg, int64_t chunk, int worker) {
    (void)worker;
    ((int *)arg)[chunk] = 1;
}

/* A job that leaves chunks out is remembered although the flag was lowered; one that is held is
 * made whole. */
static void what_was_left_out_is_remembered(void **state) {
    (void)state;
    om_cancel c  = {.raised = 1};
    int done[64] = {0}, n = 0;
    om_set_cancel(&c);
    omi_parallel(64, write_all, done);
    c.raised = 0;
    for (int i = 0; i < 64; i++)
        n += done[i];
    assert_int_equal(n, 0);
    cancelled(omi_check_cancel());
    assert_int_equal(omi_check_cancel(), OM_OK);
    c.raised = 1;
    bool was = omi_hold_cancel(true);
    omi_parallel(64, write_all, done);
    assert_int_equal(omi_check_cancel(), OM_OK);
    omi_hold_cancel(was);
    c.raised = 0;
    for (int i = 0; i < 64; i++)
        n += done[i];
    assert_int_equal(n, 64);
    assert_int_equal(omi_check_cancel(), OM_OK);
    om_set_cancel(NULL);
}

static void parallel_for(void *ctx, int64_t n, void (*body)(void *, int64_t), void *arg) {
    om_cancel *c = ctx;
    for (int64_t i = 0; i < n; i++) {
        if (i == n / 2) c->raised = 1;
        body(arg, i);
    }
}

static void the_flag_is_seen_under_a_parallel_for_of_the_caller(void **state) {
    (void)state;
    om_cancel c  = {0};
    int done[64] = {0};
    om_set_cancel(&c);
    om_set_parallel_for(parallel_for, &c);
    omi_parallel(64, write_all, done);
    om_set_parallel_for(NULL, NULL);
    c.raised = 0;
    assert_int_equal(done[31], 1);
    assert_int_equal(done[32], 0);
    cancelled(omi_check_cancel());
    om_set_cancel(NULL);
}

/* A packed weight of which only a part was made is not kept: the next one is right. */
static void half_a_packed_weight_is_not_kept(void **state) {
    (void)state;
    enum { N = 20, K = 30 };
    om_cancel c    = {.raised = 1};
    om_buffer *buf = omi_buffer_new(N * K * sizeof(float));
    assert_non_null(buf);
    float *w = buf->data;
    for (int i = 0; i < N * K; i++)
        w[i] = (float)i;
    om_set_cancel(&c);
    bool given   = omi_panel16_cached(buf, 0, N, 1, K, N) != NULL;
    om_status st = om_catch(NULL);
    om_set_cancel(NULL);
    const float *p = omi_panel16_cached(buf, 0, N, 1, K, N);
    int right      = 0;
    for (int k = 0; k < K; k++)
        for (int n = 0; n < N; n++)
            right += p && p[(n / 16 * K + k) * 16 + n % 16] == w[k * N + n];
    omi_buffer_release(buf);
    assert_false(given);
    assert_int_equal(st, OM_ERR_CANCELLED);
    assert_int_equal(right, K * N);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        OM_TEST(the_flag_is_seen_inside_a_product_by_one_thread),
        OM_TEST(the_flag_is_seen_inside_a_product_by_workers),
        OM_TEST(the_flag_is_seen_inside_one_long_row),
        OM_TEST(the_flag_is_seen_inside_windows_by_one_thread),
        OM_TEST(the_flag_is_seen_inside_windows_by_workers),
        OM_TEST(forty_products_with_the_flag_raised_are_refused),
        OM_TEST(writes_in_place_are_whole_or_not_begun),
        OM_TEST(what_was_left_out_is_remembered),
        OM_TEST(the_flag_is_seen_under_a_parallel_for_of_the_caller),
        OM_TEST(half_a_packed_weight_is_not_kept),
    };
    return cmocka_run_group_tests_name("cancel", tests, NULL, NULL);
}
