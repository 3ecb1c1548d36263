/*
 * test_cache.c -- what a session's cache keeps: contents that belong to a plan, and plans in use.
 */
#include "runtime/build.h"

#include "runtime/stats.h"

/* y = x reshaped to t, and t itself. */
static om_graph *reshaped(void) {
    om_graph *g = begin(20);
    in(g, "x", OM_F32, "n");
    in(g, "t", OM_I64, "2");
    node(g, "Reshape", "x t", "y");
    out(g, "y");
    out(g, "t");
    return g;
}

/* F10: a plan has its own copy of contents that decide sizes; the caller's may change after. */
static void a_plan_keeps_its_own_copy_of_contents(void **state) {
    (void)state;
    static int64_t a[2] = {2, 3}, b[2] = {2, 3};
    om_session *s = session(reshaped());
    om_cache_stats st;
    OM_SCOPE {
        om_tensor *x = om_ones(OM_F32, OM_DIMS(6)), *y[2];
        om_tensor *t = om_from_buffer(a, OM_I64, OM_DIMS(2), NULL, NULL);
        om_session_run(s, 2, (om_binding[]){{"x", x}, {"t", t}}, 2, y);
        check_ok();
        assert_memory_equal(om_data(y[1]), b, sizeof b);
        a[0] = a[1] = 99;
        t           = om_from_buffer(b, OM_I64, OM_DIMS(2), NULL, NULL);
        om_session_run(s, 2, (om_binding[]){{"x", x}, {"t", t}}, 2, y);
        check_ok();
        assert_memory_equal(om_data(y[1]), b, sizeof b);
    }
    omi_session_stats(s, &st);
    assert_int_equal(st.builds, 1);
    om_session_free(s);
}

static void run_size(om_session *s, int64_t n) {
    OM_SCOPE {
        om_session_call(s, om_ones(OM_F32, OM_DIMS(n)));
        check_ok();
    }
}

/* F11: a plan that a run holds stays, however full the cache is. */
static void a_plan_in_use_is_not_evicted(void **state) {
    (void)state;
    om_graph *g = begin(20);
    in(g, "x", OM_F32, "n");
    node(g, "Relu", "x", "y");
    out(g, "y");
    g             = done(g);
    om_session *s = om_session_new(
        g, &(om_session_opts){.struct_size = sizeof(om_session_opts), .plan_cache = 1});
    om_graph_release(g);
    check_ok();
    om_cache_stats st;
    om_run *r = om_session_prepare(s, 1, &(om_shape){1, {4}});
    run_size(s, 5);
    run_size(s, 6); // of the two that nobody holds, the older goes
    omi_session_stats(s, &st);
    assert_int_equal(st.builds, 3);
    assert_int_equal(st.evictions, 1);
    run_size(s, 4); // still there
    omi_session_stats(s, &st);
    assert_int_equal(st.builds, 3);
    om_run_free(r);
    run_size(s, 7); // nobody holds it any more
    run_size(s, 4);
    omi_session_stats(s, &st);
    assert_int_equal(st.builds, 5);
    om_session_free(s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        OM_TEST(a_plan_keeps_its_own_copy_of_contents),
        OM_TEST(a_plan_in_use_is_not_evicted),
    };
    return cmocka_run_group_tests_name("cache", tests, NULL, NULL);
}
