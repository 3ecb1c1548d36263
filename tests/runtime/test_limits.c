/*
 * test_limits.c -- memory_limit covers all that a session makes from a file, what nobody reads is
 * never computed, and work grows with the file, not with its square.
 */
#include "runtime/build.h"

#include <time.h>

static double seconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static int64_t peak(void) {
    om_memory_stats m;
    om_memory(&m);
    return m.peak;
}

static om_session *limited(om_graph *g, int64_t limit) {
    om_session_opts o = {.struct_size = sizeof o, .threads = 1, .memory_limit = limit};
    om_session *s     = g ? om_session_new(g, &o) : NULL;
    om_graph_release(g);
    return s;
}

/* A constant of 32 KiB, doubled 15 times by Concat(c, c): 1 GiB. live: the last one is an output.
 */
static om_graph *bomb(bool live) {
    om_graph *g = begin(20);
    char a[8], in2[20], b[8];
    in(g, "x", OM_F32, "2,3");
    ints(g, "s", 8192);
    node(g, "ConstantOfShape", "s", "c0");
    for (int i = 0; i < 15; i++) {
        snprintf(a, sizeof a, "c%d", i);
        snprintf(in2, sizeof in2, "%s %s", a, a);
        snprintf(b, sizeof b, "c%d", i + 1);
        set_int(g, node(g, "Concat", in2, b), "axis", 0);
    }
    node(g, "Relu", "x", "y");
    out(g, "y");
    if (live) out(g, "c15");
    return done(g);
}

static void a_dead_fold_bomb_runs_in_a_megabyte(void **state) {
    (void)state;
    om_memory_reset_peak();
    int64_t before = peak();
    om_session *s  = limited(bomb(false), 1 << 20);
    check_ok();
    om_tensor *y = om_session_call(s, om_full(-1, OM_F32, OM_DIMS(2, 3)));
    assert_true(om_bit_equal(y, om_zeros(OM_F32, OM_DIMS(2, 3))));
    assert_true(peak() - before < 1 << 20);
    om_session_free(s);
}

static void a_live_fold_bomb_is_refused(void **state) {
    (void)state;
    om_memory_reset_peak();
    int64_t before = peak();
    assert_null(limited(bomb(true), 64 << 20));
    check_error(OM_ERR_LIMIT, "memory_limit");
    assert_true(peak() - before < 80 << 20);
}

/* 40,000 constants of 16 KiB, each its own node and all of them used. */
static om_graph *many_constants(void) {
    enum { N = 40000 };
    om_graph *g = begin(20);
    char c[16], two[40], sum[16], next[16];
    in(g, "x", OM_F32, "4096");
    ints(g, "s", 4096);
    snprintf(sum, sizeof sum, "x");
    for (int i = 0; i < N; i++) { // a constant of its own for each, and all of them used
        snprintf(c, sizeof c, "c%d", i);
        node(g, "ConstantOfShape", "s", c);
        snprintf(two, sizeof two, "%s %s", sum, c);
        snprintf(next, sizeof next, "t%d", i);
        node(g, "Add", two, next);
        memcpy(sum, next, sizeof sum);
    }
    out(g, sum);
    return done(g);
}

static int no_line(void *ctx, const char *text, size_t n) {
    (void)ctx;
    (void)n;
    fail_msg("%s", text);
    return 1;
}

static void forty_thousand_small_folds_stay_small(void **state) {
    (void)state;
    om_graph *g = many_constants();
    om_memory_reset_peak();
    int64_t before = peak();
    assert_int_equal(om_graph_check(g, OM_EXACT, no_line, NULL), OM_OK);
    assert_true(peak() - before < 160 << 20); // 640 MiB of zeros, were they kept
    om_session *s = limited(g, 0);
    check_ok();
    assert_true(peak() - before < 160 << 20);
    om_session_free(s);
}

static void a_limit_holds_for_aligned_copies(void **state) {
    (void)state;
    enum { N = 1 << 18 };
    om_buffer *b = omi_buffer_new(4 * N + 1);
    om_graph *g  = begin(20);
    memset(b->data, 0, b->bytes);
    in(g, "x", OM_F32, "1");
    uint32_t w = omi_graph_add_value(g, "w", OM_F32, -1, NULL);
    omi_graph_add_init(g, w, OM_F32, 1, (int64_t[]){N}, b, 1,
                       4 * N); // off by one byte: must be copied
    omi_buffer_release(b);
    node(g, "Add", "x w", "y");
    out(g, "y");
    g = done(g);
    assert_null(limited(om_graph_retain(g), 1 << 19));
    check_error(OM_ERR_LIMIT, "memory_limit");
    om_session *s = limited(g, 16 << 20);
    check_ok();
    om_session_free(s);
}

static void a_limit_holds_for_packed_weights(void **state) {
    (void)state;
    enum { N = 512 };
    float *w = calloc((size_t)N * N, sizeof *w);
    assert_non_null(w);
    for (int k = 0; k < 2; k++) {
        om_graph *g = begin(20);
        in(g, "x", OM_F32, "1,512");
        constant(g, "w", OM_F32, 2, (int64_t[]){N, N}, w);
        node(g, "MatMul", "x w", "y");
        out(g, "y");
        om_session *s = limited(done(g), k ? 4 << 20 : 1 << 19); // the packed form is a MiB
        if (k == 0) check_error(OM_ERR_LIMIT, "packed weights");
        check_ok();
        om_session_free(s);
    }
    free(w);
}

/* Names alike for 60 letters; all given by the caller in reverse. */
static void fifty_thousand_inputs_are_bound_at_once(void **state) {
    (void)state;
    enum { N = 50000 };
    om_graph *g    = begin(20);
    uint32_t *v    = calloc(N, sizeof *v), y;
    om_binding *in = calloc(N, sizeof *in);
    om_gdim d      = OM_DIM_FIXED(1);
    char name[96];
    assert_true(v && in);
    for (int i = 0; i < N; i++) {
        snprintf(name, sizeof name,
                 "a.name.that.begins.like.all.the.other.names.of.this.graph.does.%d", i);
        v[i] = omi_graph_add_value(g, name, OM_F32, 1, &d);
        omi_graph_add_input(g, v[i]);
    }
    y = value_of(g, "y");
    omi_graph_add_node(g, "Sum", "", "sum", N, v, 1, &y);
    out(g, "y");
    om_session *s  = limited(done(g), 0);
    om_tensor *one = om_ones(OM_F32, OM_DIMS(1)), *sum;
    check_ok();
    for (int i = 0; i < N; i++) {
        om_value_info info;
        om_session_input(s, N - 1 - i, &info);
        in[i] = (om_binding){info.name, one};
    }
    double start = seconds();
    assert_int_equal(om_session_run(s, N, in, 1, &sum), OM_OK);
    assert_float_equal(om_item_f32(sum), N, 0);
    assert_true(seconds() - start <
                5 * HARNESS_SLOWER); // 3.9 s for 10,000 when each name was looked for
    in[7] = in[8];
    om_session_run(s, N, in, 1, &sum);
    check_error(OM_ERR_ARG, "is given twice");
    om_session_free(s);
    free(v);
    free(in);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        OM_TEST(a_dead_fold_bomb_runs_in_a_megabyte),
        OM_TEST(a_live_fold_bomb_is_refused),
        OM_TEST(forty_thousand_small_folds_stay_small),
        OM_TEST(a_limit_holds_for_aligned_copies),
        OM_TEST(a_limit_holds_for_packed_weights),
        OM_TEST(fifty_thousand_inputs_are_bound_at_once),
    };
    return cmocka_run_group_tests_name("limits", tests, NULL, NULL);
}
