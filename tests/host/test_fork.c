/*
 * test_fork.c -- a child of fork works, whatever other threads were doing at that moment.
 */
#include "runtime/build.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/thread.h"
#include "onemodel/trace.h"

enum { FORKS = 40 };
static atomic_bool enough;
static om_session *shared;

static bool run_session(int64_t n) {
    bool ok = false;
    OM_SCOPE {
        om_tensor *x = om_full(-3.0, OM_F32, OM_DIMS(n, 64)), *y = NULL;
        om_session_run(shared, 1, &(om_binding){"x", x}, 1, &y);
        ok = y && om_item_f32(om_sum(y, 0, NULL, false)) == (float)(192 * n);
    }
    return ok && om_catch(NULL) == OM_OK;
}

/* Names tensors, runs the session at sizes that need new plans, begins and ends traces. */
static void *busy(void *arg) {
    for (int64_t i = 0; !enough; i++) {
        char name[32];
        snprintf(name, sizeof name, "%s.%lld", (const char *)arg, (long long)i);
        OM_SCOPE {
            om_set_name(om_full(1.0, OM_F32, OM_DIMS(2)), name);
            run_session(1 + i % 40);
            om_trace_abort(om_trace_begin(NULL));
        }
    }
    return NULL;
}

static int child(void) {
    om_tensor *t = om_full(1.0, OM_F32, OM_DIMS(2));
    om_set_name(t, "of the child");
    if (!t || strcmp(om_name(t), "of the child") != 0) return 1;
    for (int64_t n = 1; n <= 40; n++) // every plan, also those that another thread had begun
        if (!run_session(n)) return 2;
    for (int i = 0; i < 64; i++) { // slots of the traces of lost threads came back
        om_tracer *tr = om_trace_begin(NULL);
        if (!tr) return 3;
        om_trace_abort(tr);
    }
    om_shutdown();
    return om_pending() == OM_OK ? 0 : 4;
}

static void children_of_a_busy_process_work(void **state) {
    (void)state;
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
    skip(); /* their runtimes have locks of their own, which such a fork leaves held */
#endif
    om_graph *g = begin(20);
    in(g, "x", OM_F32, "n,64");
    node(g, "Abs", "x", "y");
    out(g, "y");
    done(g);
    shared = om_session_new(g, NULL);
    om_graph_release(g);
    assert_non_null(shared);
    om_set_threads(3);
    static char names[3][2] = {"a", "b", "c"};
    pthread_t t[3];
    enough = false;
    for (int i = 0; i < 3; i++)
        assert_int_equal(pthread_create(&t[i], NULL, busy, names[i]), 0);
    int failures = 0;
    for (int i = 0; i < FORKS && !failures; i++) {
        pid_t pid = fork();
        if (pid == 0) {
            alarm(30); // a child that hangs is ended
            _exit(child());
        }
        int status = -1;
        waitpid(pid, &status, 0);
        if (status) print_error("child %d ended with %x\n", i, (unsigned)status);
        failures += status != 0;
    }
    enough = true;
    for (int i = 0; i < 3; i++)
        pthread_join(t[i], NULL);
    om_session_free(shared);
    om_set_threads(0);
    assert_int_equal(failures, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {OM_TEST(children_of_a_busy_process_work)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
