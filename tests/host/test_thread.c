/*
 * test_thread.c -- a good guest in the host's threads: signals, processors, jumps, no memory, the
 * end.
 */
#include "harness.h"

#include <dirent.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/os.h"
#include "base/thread.h"
#include "onemodel/ops.h"

/* Before any kernel ran: the first case. */
static void looking_at_the_isa_fixes_nothing(void **state) {
    (void)state;
    om_isa best = om_get_isa();
    assert_int_equal(om_set_isa(OM_ISA_SCALAR), OM_OK);
    assert_int_equal(om_get_isa(), OM_ISA_SCALAR);
    assert_int_equal(om_set_isa(best), OM_OK);
    assert_int_equal(om_get_isa(), best);
}

static void nothing(void *arg, int64_t i, int worker) {
    (void)arg;
    (void)i;
    (void)worker;
    for (volatile int k = 0; k < 1000; k++) {
    }
}

/* The pool runs when the host blocks a signal and waits for it. */
static void workers_take_no_signal(void **state) {
    (void)state;
    om_set_threads(4);
    omi_parallel(64, nothing, NULL);
    sigset_t term, old;
    sigemptyset(&term);
    sigaddset(&term, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &term, &old);
    kill(getpid(), SIGTERM); // a worker that does not block it would end the process here
    struct timespec second = {1, 0};
    assert_int_equal(sigtimedwait(&term, NULL, &second), SIGTERM);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    om_set_threads(0);
}

/* ---- a worker that wakes when its job is over --------------------------------------------------
 */

static atomic_int gate, second_runs, first_ran, second_ran;
static void *(*late_main)(void *);
static void *late_start(void *arg) {
    while (!atomic_load(&gate)) {
    }
    return late_main(arg);
}
/* The worker exists, but comes to the pool only when the gate opens. */
static int create_late(void *t, const void *attr, void *(*fn)(void *), void *arg) {
    late_main = fn;
    return pthread_create((pthread_t *)t, (const pthread_attr_t *)attr, late_start, arg);
}
/* Whatever it joined, it takes its first chunk when the second job has begun. */
static void wait_for_the_second(void) {
    while (!atomic_load(&second_runs)) {
    }
}
static void first_body(void *arg, int64_t i, int worker) {
    (void)arg;
    (void)i;
    (void)worker;
    atomic_fetch_add(&first_ran, 1);
}
static void second_body(void *arg, int64_t i, int worker) {
    (void)arg;
    (void)i;
    atomic_fetch_add(&second_ran, 1);
    atomic_store(&second_runs, 1);
    struct timespec rest = {0, 20000000}; // leaves chunks to the worker
    if (worker == 0) nanosleep(&rest, NULL);
}

static void a_late_worker_joins_no_finished_job(void **state) {
    (void)state;
    int (*create)(void *, const void *, void *(*)(void *), void *) = omi_thread_create;
    struct timespec rest                                           = {0, 50000000};
    om_set_threads(2);
    omi_thread_create = create_late;
    omi_pool_joined   = wait_for_the_second;
    omi_parallel(8, first_body, NULL);
    assert_int_equal(atomic_load(&first_ran), 8);
    atomic_store(&gate, 1);
    nanosleep(&rest, NULL); // time to look at what it was started for
    omi_parallel(8, second_body, NULL);
    assert_int_equal(atomic_load(&first_ran), 8);
    assert_int_equal(atomic_load(&second_ran), 8);
    omi_pool_joined   = NULL;
    omi_thread_create = create;
    om_set_threads(0);
}

static int count_threads(void) {
    int n  = 0;
    DIR *d = opendir("/proc/self/task");
    for (struct dirent *e; d && (e = readdir(d)) != NULL;)
        n += e->d_name[0] != '.';
    if (d) closedir(d);
    return n;
}
static void shutdown_joins_the_workers(void **state) {
    (void)state;
    int before = count_threads();
    om_set_threads(3);
    omi_parallel(64, nothing, NULL);
    if (before) assert_true(count_threads() > before);
    om_shutdown();
    assert_int_equal(count_threads(), before);
    om_tensor *x = om_full(2.0, OM_F32, OM_DIMS(4)); // and everything starts again
    assert_true(om_item_f32(om_sum(x, 0, NULL, false)) == 8.0f);
    om_set_threads(0);
}

static void threads_follow_the_affinity(void **state) {
    (void)state;
#if defined(__linux__)
    cpu_set_t all, one;
    assert_int_equal(sched_getaffinity(0, sizeof all, &all), 0);
    assert_int_equal(omi_os_processors(), CPU_COUNT(&all));
    int cpu = 0;
    while (!CPU_ISSET(cpu, &all))
        cpu++;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
    int n = omi_os_processors();
    sched_setaffinity(0, sizeof all, &all);
    assert_int_equal(n, 1);
#else
    skip();
#endif
}

static jmp_buf out;
static void jump_out(void *ctx, const om_error *e) {
    (void)ctx;
    (void)e;
    longjmp(out, 1);
}
/* Forbidden, but what follows is sound: the frame of the call that was left names nothing. */
static void the_call_after_a_jump_is_sound(void **state) {
    (void)state;
    om_on_error(jump_out, NULL);
    if (setjmp(out) == 0) {
        om_set_threads(-1);
        fail_msg("the callback was not called");
    }
    om_on_error(NULL, NULL);
    om_catch(NULL);
    assert_null(om_full(1.0, OM_F32, -1, NULL));
    om_error e;
    assert_int_equal(om_catch(&e), OM_ERR_SHAPE);
    assert_string_equal(e.where, "om_full");
    om_tensor *x = om_full(2.0, OM_F32, OM_DIMS(4));
    assert_true(om_item_f32(om_sum(om_relu(x), 0, NULL, false)) == 8.0f);
}

static void *without_memory(void *bad) {
    omi_state_of_thread = &omi_state_none; // what a thread has that gets no state
    om_error e;
    atomic_int *wrong = bad;
    *wrong += om_pending() != OM_ERR_NOMEM;
    *wrong += om_full(1.0, OM_F32, OM_DIMS(4)) != NULL;
    OM_SCOPE {
        *wrong += om_relu(NULL) != NULL;
    }
    *wrong += om_set_threads(2) == OM_OK && om_pending() == OM_OK;
    *wrong += om_catch(&e) != OM_ERR_NOMEM;
    *wrong += strstr(e.message, "out of memory") == NULL;
    *wrong += om_pending() != OM_ERR_NOMEM; // until there is memory
    omi_state_of_thread = NULL;
    *wrong += om_pending() != OM_OK; // and now there is
    *wrong += om_full(1.0, OM_F32, OM_DIMS(4)) == NULL;
    return NULL;
}
static void a_thread_without_a_state_says_no_memory(void **state) {
    (void)state;
    atomic_int wrong = 0;
    pthread_t t;
    assert_int_equal(pthread_create(&t, NULL, without_memory, &wrong), 0);
    pthread_join(t, NULL);
    om_set_threads(0);
    assert_int_equal(wrong, 0);
}

static void *raise_flag(void *c) {
    om_cancel_raise(c);
    return NULL;
}
/* Under the thread sanitizer: no race. */
static void cancel_is_raised_by_another_thread(void **state) {
    (void)state;
    om_cancel c = {0};
    om_set_cancel(&c);
    pthread_t t;
    assert_int_equal(pthread_create(&t, NULL, raise_flag, &c), 0);
    while (omi_check_cancel() == OM_OK)
        sched_yield();
    pthread_join(t, NULL);
    check_error(OM_ERR_CANCELLED, "cancel");
    assert_true(om_cancel_raised(&c));
    om_cancel_lower(&c);
    assert_int_equal(omi_check_cancel(), OM_OK);
    om_set_cancel(NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        OM_TEST(looking_at_the_isa_fixes_nothing),
        OM_TEST(workers_take_no_signal),
        OM_TEST(a_late_worker_joins_no_finished_job),
        OM_TEST(shutdown_joins_the_workers),
        OM_TEST(threads_follow_the_affinity),
        OM_TEST(the_call_after_a_jump_is_sound),
        OM_TEST(a_thread_without_a_state_says_no_memory),
        OM_TEST(cancel_is_raised_by_another_thread),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
