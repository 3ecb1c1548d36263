/*
 * test_flow_checks.c -- what files with subgraphs may not have, and what bounds their runs: time,
 * memory, depth, stack.
 */
#include "runtime/flow.h"

#include <pthread.h>
#include <time.h>

#include "base/thread.h"

/* A Loop over x whose body is made by fill; m iterations. */
static om_graph *looped(int64_t m, void (*fill)(om_graph *body)) {
    om_graph *g = begin(20);
    in(g, "x", OM_F32, "n");
    scalar_int(g, "m", m);
    int32_t k   = node(g, "Loop", "m _ x", "y");
    om_graph *b = loop_body(g);
    any(b, "s");
    fill(b);
    hold(g, k, "body", b);
    out(g, "y");
    return g;
}

/* ---- faults of files --------------------------------------------------------------------------
 */

static int first_line(void *ctx, const char *text, size_t n) {
    char *to = ctx;
    if (!*to) snprintf(to, 300, "%.*s", (int)n, text);
    return 0;
}

/* Sealing, or checking, says this; a session is refused with the same status. */
static void refused(om_graph *g, om_status want, const char *word) {
    char line[300] = "";
    g              = done(g);
    check_ok();
    om_status st = om_graph_check(g, OM_EXACT, first_line, line);
    if (st != want || !strstr(line, word)) fail_msg("%s: %s", om_status_name(st), line);
    assert_null(om_session_new(g, NULL));
    check_error(want, word);
    om_graph_release(g);
}

static void no_state(om_graph *b) {
    (void)b;
}
static void other_type(om_graph *b) {
    set_int(b, node(b, "Cast", "s", "t"), "to", OM_I64);
    out(b, "t");
}
static void unknown_node(om_graph *b) {
    node(b, "Frobnicate", "s", "t");
    out(b, "t");
}

static om_graph *branches(const char *cond, const char *a, const char *b, int outs) {
    om_graph *g = begin(20);
    in(g, "c", OM_BOOL, "");
    in(g, "x", OM_F32, "n");
    in(g, "k", OM_I64, "n");
    int32_t n   = node(g, "If", cond, "y");
    om_graph *p = inside(g), *q = inside(g);
    node(p, "Neg", a, "a");
    node(q, "Neg", b, "b");
    out(p, "a");
    for (int i = 0; i < outs; i++)
        out(q, "b");
    hold(g, n, "then_branch", p);
    hold(g, n, "else_branch", q);
    out(g, "y");
    return g;
}

static void subgraphs_that_do_not_fit_are_listed(void **state) {
    (void)state;
    refused(looped(3, no_state), OM_ERR_MALFORMED, "has 1 outputs; it needs 2");
    refused(looped(3, other_type), OM_ERR_MALFORMED, "returns int64 as output 1; it must be float");
    refused(looped(3, unknown_node), OM_ERR_UNSUPPORTED, "there is no operator Frobnicate");
    refused(branches("c", "x", "k", 1), OM_ERR_MALFORMED, "else_branch returns int64");
    refused(branches("c", "x", "x", 2), OM_ERR_MALFORMED, "else_branch has 2 outputs; it needs 1");
    refused(branches("x", "x", "x", 1), OM_ERR_MALFORMED, "it must be bool");
    om_graph *g = begin(20);
    in(g, "c", OM_BOOL, "");
    node(g, "If", "c", "y");
    out(g, "y");
    refused(g, OM_ERR_MALFORMED, "attribute 'then_branch' is missing");
    g = begin(20);
    in(g, "x", OM_F32, "n");
    set_int(g, node(g, "Loop", "_ _ x", "y"), "body", 3);
    out(g, "y");
    refused(g, OM_ERR_MALFORMED, "attribute 'body' is an integer; it must be a graph");
}

static void lists_of_a_scan_have_one_entry_an_output(void **state) {
    (void)state;
    for (int k = 0; k < 2; k++) {
        om_graph *g = begin(20);
        in(g, "x", OM_F32, "n,2");
        int32_t n   = node(g, "Scan", "x", "y z");
        om_graph *b = inside(g);
        any(b, "row");
        node(b, "Neg", "row", "q");
        node(b, "Abs", "row", "r");
        out(b, "q");
        out(b, "r");
        hold(g, n, "body", b);
        set_int(g, n, "num_scan_inputs", 1);
        set_ints(g, n, k ? "scan_output_directions" : "scan_output_axes", 1, (int64_t[]){0});
        out(g, "y");
        refused(g, OM_ERR_MALFORMED, "an entry for each scan output");
    }
}

static void a_name_from_nowhere_is_refused(void **state) {
    (void)state;
    om_graph *g = begin(20);
    in(g, "c", OM_BOOL, "");
    in(g, "x", OM_F32, "n");
    int32_t n   = node(g, "If", "c", "y");
    om_graph *p = inside(g), *q = inside(g);
    node(p, "Neg", "late", "a");
    node(q, "Neg", "x", "b");
    out(p, "a");
    out(q, "b");
    hold(g, n, "then_branch", p);
    hold(g, n, "else_branch", q);
    node(g, "Neg", "y", "late"); // behind the If
    out(g, "late");
    assert_null(done(g));
    check_error(OM_ERR_MALFORMED, "a subgraph of", "late");
}

/* ---- depth and stack --------------------------------------------------------------------------
 */

/* If in If, depth levels: y = x doubled in each. */
static om_graph *nested(int depth) {
    om_graph *g = begin(20), *at = g;
    in(g, "c", OM_BOOL, "");
    in(g, "x", OM_F32, "n");
    char name[32];
    for (int d = 0; d < depth; d++) {
        snprintf(name, sizeof name, "y%d", d);
        int32_t n   = node(at, "If", "c", name);
        om_graph *p = inside(at), *q = inside(at);
        char none[32];
        snprintf(none, sizeof none, "none%d", d);
        node(q, "Neg", "x", none);
        out(q, none);
        out(at, name);
        hold(at, n, "then_branch", p);
        hold(at, n, "else_branch", q);
        at = p;
    }
    node(at, "Add", "x x", "deep");
    out(at, "deep");
    return g;
}

static void *deepest_run(void *arg) {
    om_session *s = open_session(done(nested(16)), OM_EXACT, 1);
    om_error e;
    OM_SCOPE {
        bool yes     = true;
        om_tensor *y = NULL, *x = om_from((float[]){3}, OM_F32, OM_DIMS(1));
        if (s)
            om_session_run(s, 2, (om_binding[]){{"c", om_from(&yes, OM_BOOL, 0, NULL)}, {"x", x}},
                           1, &y);
        *(float *)arg = y ? *(const float *)om_data(y) : 0;
    }
    om_session_free(s);
    om_catch(&e);
    return NULL;
}

static void sixteen_levels_run_in_a_small_stack(void **state) {
    (void)state;
    pthread_attr_t a;
    pthread_t t;
    float got = 0;
    pthread_attr_init(&a);
    pthread_attr_setstacksize(&a, 64 << 10);
    assert_int_equal(pthread_create(&t, &a, deepest_run, &got), 0);
    pthread_join(t, NULL);
    pthread_attr_destroy(&a);
    assert_float_equal(got, 6, 0);
    refused(nested(17), OM_ERR_LIMIT, "nested deeper than 16");
}

/* ---- loops that do not end --------------------------------------------------------------------
 */

static void stay(om_graph *b) {
    out(b, "s");
}
static void grow(om_graph *b) {
    set_int(b, node(b, "Concat", "s s", "t"), "axis", 0);
    out(b, "t");
}
static void keep(om_graph *b) {
    node(b, "Neg", "s", "t");
    node(b, "Abs", "t", "q");
    out(b, "t");
    out(b, "q");
}

static void *raise_soon(void *c) {
    nanosleep(&(struct timespec){0, 50 * 1000 * 1000}, NULL);
    om_cancel_raise(c);
    return NULL;
}

static void an_endless_loop_can_be_cancelled(void **state) {
    (void)state;
    om_session *s = session(looped(INT64_MAX, stay));
    om_cancel c   = {0};
    pthread_t t;
    pthread_create(&t, NULL, raise_soon, &c);
    om_set_cancel(&c);
    OM_SCOPE {
        assert_null(om_session_call(s, om_ones(OM_F32, OM_DIMS(4))));
        check_error(OM_ERR_CANCELLED, "");
    }
    om_set_cancel(NULL);
    pthread_join(t, NULL);
    om_session_free(s);
}

static om_session *with_limit(om_graph *g, int64_t limit) {
    g             = done(g);
    om_session *s = om_session_new(g, &(om_session_opts){.struct_size  = sizeof(om_session_opts),
                                                         .memory_limit = limit,
                                                         .threads      = 1});
    om_graph_release(g);
    check_ok();
    return s;
}

static void what_a_loop_makes_counts(void **state) {
    (void)state;
    void (*bodies[])(om_graph *) = {grow, keep};
    for (int k = 0; k < 2; k++) {
        om_session *s = with_limit(looped(INT64_MAX, bodies[k]), 1 << 20);
        OM_SCOPE {
            om_tensor *x = om_ones(OM_F32, OM_DIMS(1024));
            om_memory_stats m;
            om_memory_reset_peak();
            om_memory(&m);
            int64_t before = m.peak;
            assert_null(om_session_call(s, x));
            check_error(OM_ERR_LIMIT, "memory_limit");
            om_memory(&m);
            assert_true(m.peak - before < 3 << 20);
        }
        om_session_free(s);
    }
}

/* ---- what cannot be planned ahead -------------------------------------------------------------
 */

static void parts_are_counted(void **state) {
    (void)state;
    om_graph *g[] = {done(looped(2, stay)), done(nested(3)), begin(20)};
    in(g[2], "x", OM_F32, "n");
    node(g[2], "Relu", "x", "y");
    out(g[2], "y");
    g[2] = done(g[2]);
    for (int i = 0; i < 3; i++) {
        int parts = 0;
        om_graph_parts(g[i], OM_EXACT, &parts);
        check_ok();
        assert_int_equal(parts, ((int[]){2, 4, 1})[i]);
        om_graph_release(g[i]);
    }
}

static void it_cannot_be_prepared(void **state) {
    (void)state;
    om_session *s = session(looped(2, stay));
    om_shape x    = {1, {4}};
    int64_t bytes;
    assert_null(om_session_prepare(s, 1, &x));
    check_error(OM_ERR_UNSUPPORTED, "op_y", "Loop", "om_session_run");
    assert_int_equal(om_session_memory(s, 1, &x, &bytes), OM_ERR_UNSUPPORTED);
    check_error(OM_ERR_UNSUPPORTED, "op_y", "Loop", "om_session_run");
    om_session_free(s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        OM_TEST(subgraphs_that_do_not_fit_are_listed),
        OM_TEST(lists_of_a_scan_have_one_entry_an_output),
        OM_TEST(a_name_from_nowhere_is_refused),
        OM_TEST(sixteen_levels_run_in_a_small_stack),
        OM_TEST(an_endless_loop_can_be_cancelled),
        OM_TEST(what_a_loop_makes_counts),
        OM_TEST(it_cannot_be_prepared),
        OM_TEST(parts_are_counted),
    };
    return cmocka_run_group_tests_name("flow_checks", tests, NULL, NULL);
}
