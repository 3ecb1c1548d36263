/*
 * test_kept.c -- large freed blocks are kept for the next one of their size (C19): training steps
 * touch no fresh pages, limits and failing allocations come first, threads and forks share them.
 */
#include "harness.h"

#include <pthread.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "onemodel.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#    define KEPT_HERE 0
#elif defined(__has_feature)
#    if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#        define KEPT_HERE 0
#    endif
#endif
#ifndef KEPT_HERE
#    define KEPT_HERE 1
#endif

static om_memory_stats memory(void) {
    om_memory_stats m;
    om_memory(&m);
    return m;
}

static long faults(void) {
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return u.ru_minflt;
}

/* A convolution with batch norm: several activations of 3 MiB each. */
static void train(om_module *net, om_optim *opt, om_tensor *x) {
    OM_SCOPE {
        om_tensor *loss = om_mean_all(om_relu(om_forward(net, x)));
        om_zero_grad(opt);
        om_backward(loss);
        om_step(opt);
    }
    check_ok();
}

static void training_steps_touch_no_fresh_pages(void **state) {
    (void)state;
    om_module *net = om_nn_sequential();
    om_nn_append(net, om_nn_conv2d(1, 16, 3, 3, NULL));
    om_nn_append(net, om_nn_batch_norm2d(16, NULL));
    om_optim *opt = om_adam(net, 0.001, NULL);
    om_scope s    = om_scope_begin();
    om_tensor *x  = om_ones(OM_F32, OM_DIMS(64, 1, 28, 28));
    for (int i = 0; i < 3; i++)
        train(net, opt, x);
    long before = faults();
    for (int i = 0; i < 10; i++)
        train(net, opt, x);
    long per_step = (faults() - before) / 10;
    print_message("%ld page faults a step\n", per_step);
    if (KEPT_HERE) assert_in_range(per_step, 0, 20);
    om_scope_end(s);
    om_optim_free(opt);
    om_nn_free(net);
}

static void kept_blocks_are_counted_apart_and_trimmed(void **state) {
    (void)state;
    om_trim();
    om_memory_stats a = memory();
    assert_int_equal(a.kept, 0);
    void *p = omi_alloc_aligned(1 << 20), *q = omi_alloc(100000);
    assert_int_equal(memory().bytes - a.bytes, (1 << 20) + 100000);
    omi_free_aligned(p, 1 << 20);
    omi_free(q, 100000);
    om_memory_stats b = memory();
    assert_int_equal(b.bytes, a.bytes);
    assert_int_equal(b.blocks, a.blocks);
    assert_int_equal(b.kept, KEPT_HERE ? (1 << 20) + 100000 : 0);
    if (KEPT_HERE) {
        assert_ptr_equal(omi_alloc_aligned(1 << 20), p); // the same block, once
        void *other = omi_alloc_aligned(1 << 20);
        assert_ptr_not_equal(other, p);
        assert_int_equal(memory().kept, 100000);
        assert_int_equal(memory().bytes - a.bytes, 2 << 20);
        omi_free_aligned(p, 1 << 20);
        omi_free_aligned(other, 1 << 20);
    }
    om_trim();
    assert_int_equal(memory().kept, 0);
    assert_int_equal(memory().blocks, a.blocks);
}

static void what_is_kept_stays_below_its_cap(void **state) {
    (void)state;
    om_trim();
    om_set_memory_kept(1000000);
    void *p[4];
    for (int i = 0; i < 4; i++)
        p[i] = omi_alloc_aligned(400000);
    for (int i = 0; i < 4; i++) {
        omi_free_aligned(p[i], 400000);
        assert_in_range(memory().kept, 0, 1000000);
    }
    if (KEPT_HERE) { // those freed last
        assert_int_equal(memory().kept, 800000);
        assert_ptr_equal(omi_alloc_aligned(400000), p[3]);
        assert_ptr_equal(omi_alloc_aligned(400000), p[2]);
        omi_free_aligned(p[3], 400000);
        omi_free_aligned(p[2], 400000);
    }
    omi_free_aligned(omi_alloc_aligned(1200000), 1200000); // one above the cap pushes nothing out
    assert_int_equal(memory().kept, KEPT_HERE ? 800000 : 0);
    om_set_memory_kept(0);
    assert_int_equal(memory().kept, 0);
    omi_free_aligned(omi_alloc_aligned(400000), 400000);
    assert_int_equal(memory().kept, 0);
    om_set_memory_kept(-1);
}

static void the_limit_counts_what_is_kept(void **state) {
    (void)state;
    om_trim();
    int64_t used = memory().bytes;
    om_set_memory_limit(used + 1000000);
    omi_free_aligned(omi_alloc_aligned(600000), 600000);
    void *p = omi_alloc_aligned(700000); // fits only without the kept one
    assert_non_null(p);
    assert_int_equal(memory().kept, 0);
    assert_null(omi_alloc_aligned(700001));
    check_error(OM_ERR_NOMEM, "limit");
    omi_free_aligned(p, 700000);
    assert_in_range(memory().bytes + memory().kept, used, used + 1000000);
    om_set_memory_limit(used + 100000); // lowered below what is kept
    assert_int_equal(memory().kept, 0);
    om_set_memory_limit(0);
}

/* Blocks of many sizes, written and read by several threads. */
static void *churn(void *seed) {
    uint32_t r = (uint32_t)(uintptr_t)seed;
    struct {
        uint8_t *p;
        size_t n;
    } held[8]     = {{0}};
    uintptr_t bad = 0;
    for (int i = 0; i < 20000; i++) {
        r     = r * 1664525u + 1013904223u;
        int k = (int)(r >> 29);
        if (held[k].p) {
            bad += held[k].p[0] != (uint8_t)held[k].n || held[k].p[held[k].n - 1] != 0;
            omi_free_aligned(held[k].p, held[k].n);
        }
        held[k].n                = 4097 + (r >> 8) % 64 * 512;
        held[k].p                = omi_alloc_aligned(held[k].n);
        held[k].p[held[k].n - 1] = 0;
        held[k].p[0]             = (uint8_t)held[k].n;
    }
    for (int k = 0; k < 8; k++)
        if (held[k].p) omi_free_aligned(held[k].p, held[k].n);
    return (void *)bad;
}

static void threads_and_forks_share_what_is_kept(void **state) {
    (void)state;
    om_set_memory_kept(300000);
    pthread_t t[4];
    for (uintptr_t i = 0; i < 4; i++)
        pthread_create(&t[i], NULL, churn, (void *)(i + 1));
    int bad = 0;
    // A sanitizer's own allocator is not safe in the child of a process with threads.
    for (int i = 0; i < 10 && KEPT_HERE; i++) {
        pid_t child = fork();
        if (child == 0) _exit(churn((void *)99) != NULL);
        int status;
        waitpid(child, &status, 0);
        bad += status != 0;
    }
    for (int i = 0; i < 4; i++) {
        void *r;
        pthread_join(t[i], &r);
        assert_null(r);
    }
    assert_int_equal(bad, 0);
    assert_in_range(memory().kept, 0, 300000);
    om_set_memory_kept(-1);
    om_trim();
}

/* When the system has no more, what is kept is given back before anything fails. */
static void a_failed_allocation_first_gives_back_what_is_kept(void **state) {
    (void)state;
    if (!KEPT_HERE) return;
    pid_t child = fork();
    if (child == 0) {
        struct rlimit old, room;
        om_set_memory_kept((int64_t)1 << 40);
        size_t big = (size_t)300 << 20;
        getrlimit(RLIMIT_AS, &old);
        char line[64] = "";
        FILE *f       = fopen("/proc/self/statm", "r");
        if (!f || !fgets(line, sizeof line, f)) _exit(77);
        fclose(f);
        size_t now = (size_t)atoll(line) * (size_t)sysconf(_SC_PAGESIZE);
        room       = (struct rlimit){.rlim_cur = now + big + big / 2, .rlim_max = old.rlim_max};
        if (setrlimit(RLIMIT_AS, &room)) _exit(77);
        void *p = omi_alloc_aligned(big);
        if (!p) _exit(2);
        omi_free_aligned(p, big);
        if (memory().kept < (int64_t)big) _exit(3);
        p = omi_alloc_aligned(big + 64); // no room beside the kept one
        if (!p) _exit(4);
        if (memory().kept != 0) _exit(5);
        _exit(0);
    }
    int status;
    waitpid(child, &status, 0);
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) != 77) assert_int_equal(WEXITSTATUS(status), 0);
}

static void shutdown_gives_back_what_is_kept(void **state) {
    (void)state;
    omi_free_aligned(omi_alloc_aligned(1 << 20), 1 << 20);
    om_shutdown();
    assert_int_equal(memory().kept, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        OM_TEST(training_steps_touch_no_fresh_pages),
        OM_TEST(kept_blocks_are_counted_apart_and_trimmed),
        OM_TEST(what_is_kept_stays_below_its_cap),
        OM_TEST(the_limit_counts_what_is_kept),
        OM_TEST(threads_and_forks_share_what_is_kept),
        OM_TEST(a_failed_allocation_first_gives_back_what_is_kept),
        OM_TEST(shutdown_gives_back_what_is_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
