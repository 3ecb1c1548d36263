/*
 * test_fuse.c -- nodes behind a convolution or product that become steps of its epilogue: the same
 * bits as the nodes by themselves, in both modes, for random chains over every kind of head and
 * operand with NaNs and infinities; and how many steps a plan has, so that what must not be taken
 * over is not.
 */
#include "runtime/build.h"

#include <math.h>

#include "compute/epilogue.h"
#include "runtime/plan.h"

static uint32_t seed;
static uint32_t roll(uint32_t n) {
    seed = seed * 1664525u + 1013904223u;
    return (seed >> 8) % n;
}

/* Mostly small numbers, some special. */
static float draw(bool special) {
    static const float odd[] = {INFINITY, -INFINITY, NAN, -0.0f, 0.0f, 3e38f, 1e-40f};
    if (special && roll(12) == 0) return odd[roll(OM_COUNT(odd))];
    return (float)roll(2001) / 500.0f - 2.0f;
}

static void random_const(om_graph *g, const char *name, int rank, const int64_t *dims, bool special,
                         bool positive) {
    int64_t n = 1;
    for (int i = 0; i < rank; i++)
        n *= dims[i];
    float *v = malloc((size_t)n * sizeof *v + 4);
    for (int64_t i = 0; i < n; i++) {
        v[i] = draw(special);
        if (positive) v[i] = fabsf(v[i]) + 0.1f;
    }
    constant(g, name, OM_F32, rank, dims, v);
    free(v);
}

typedef struct head_case {
    const char *name;
    bool conv;
    int rank;
    int64_t x[4], y[4]; /* sizes of the input and of the result */
} head_case;

static const head_case heads[] = {
    {"conv3x3", true, 4, {2, 3, 9, 11}, {2, 8, 9, 11}},
    {"conv1x1", true, 4, {2, 6, 12, 13}, {2, 20, 12, 13}},
    {"depthwise", true, 4, {2, 5, 8, 9}, {2, 5, 8, 9}},
    {"grouped", true, 4, {1, 4, 6, 7}, {1, 6, 6, 7}},
    {"conv1d", true, 3, {3, 4, 30}, {3, 5, 30}},
    {"point", true, 4, {1, 7, 1, 1}, {1, 9, 1, 1}},
    {"matmul", false, 2, {33, 20}, {33, 70}},
    {"rows", false, 3, {4, 5, 20}, {4, 5, 17}},
    {"batched", false, 3, {3, 6, 10}, {3, 6, 19}},
    {"column", false, 2, {40, 20}, {40, 1}},
    {"vector", false, 2, {40, 20}, {40}},
    {"one row", false, 2, {1, 50}, {1, 65}},
    {"gemm", false, 2, {12, 20}, {12, 33}},
    {"gemm with c", false, 2, {12, 20}, {12, 33}},
};

static int result_rank(const head_case *h) {
    return strcmp(h->name, "vector") == 0 ? 1 : h->rank;
}

static void add_head(om_graph *g, const head_case *h) {
    const char *n = h->name;
    if (h->conv) {
        int64_t groups = strcmp(n, "depthwise") == 0 ? 5 : strcmp(n, "grouped") == 0 ? 2 : 1;
        int64_t k      = strcmp(n, "conv1x1") == 0 || strcmp(n, "point") == 0 ? 1 : 3;
        int64_t w[4]   = {h->y[1], h->x[1] / groups, k, k};
        bool bias      = roll(2) != 0;
        random_const(g, "w", h->rank, w, false, false);
        if (bias) random_const(g, "wb", 1, w, false, false);
        int32_t c = node(g, "Conv", bias ? "x w wb" : "x w", "v0");
        set_int(g, c, "group", groups);
        int64_t pads[4] = {k / 2, k / 2, k / 2, k / 2};
        set_ints(g, c, "pads", (size_t)(h->rank - 2) * 2, pads);
        return;
    }
    int64_t k = h->x[h->rank - 1], cols = h->y[result_rank(h) - 1];
    if (strcmp(n, "batched") == 0)
        random_const(g, "w", 3, (int64_t[]){3, k, cols}, false, false);
    else if (strcmp(n, "vector") == 0)
        random_const(g, "w", 1, &k, false, false);
    else
        random_const(g, "w", 2, (int64_t[]){k, cols}, false, false);
    if (strncmp(n, "gemm", 4) != 0) {
        node(g, "MatMul", "x w", "v0");
        return;
    }
    if (n[4]) random_const(g, "wb", 1, &cols, false, false);
    node(g, "Gemm", n[4] ? "x w wb" : "x w", "v0");
}

/* An operand that broadcasts to the result: any axis may be 1, leading ones may be absent. */
static void add_operand(om_graph *g, const head_case *h, const char *name) {
    int64_t dims[4];
    int rank = result_rank(h), skip = (int)roll(2) ? 0 : (int)roll((uint32_t)rank + 1);
    for (int i = skip; i < rank; i++)
        dims[i - skip] = roll(2) ? h->y[i] : 1;
    random_const(g, name, rank - skip, dims, true, false);
}

static void both_ways(char io[80], const char *a, const char *b) {
    bool swap = roll(2) != 0;
    snprintf(io, 80, "%s %s", swap ? b : a, swap ? a : b);
}

/* One more node, from value `at`; returns the number of the next value. */
static int add_follower(om_graph *g, const head_case *h, int at) {
    char v[16], y[16], io[80], c[4][16];
    int rank = result_rank(h);
    snprintf(v, sizeof v, "v%d", at);
    snprintf(y, sizeof y, "v%d", at + 1);
    for (int i = 0; i < 4; i++)
        snprintf(c[i], sizeof c[i], "c%d_%d", at, i);
    switch (roll(11)) {
    case 0:
    case 1:
        node(g, "Relu", v, y);
        break;
    case 2:
        node(g, roll(2) ? "Tanh" : "Sigmoid", v, y);
        break;
    case 3: {
        bool lo = roll(3) != 0, hi = roll(3) != 0;
        if (lo) random_const(g, c[0], 0, NULL, true, false);
        if (hi) random_const(g, c[1], 0, NULL, true, false);
        snprintf(io, sizeof io, "%s %s %s", v, lo ? c[0] : "_", hi ? c[1] : "_");
        node(g, "Clip", io, y);
        break;
    }
    case 4:
        if (rank < 2) return at;
        for (int i = 0; i < 4; i++)
            random_const(g, c[i], 1, &h->y[1], i < 3 && roll(4) == 0, i == 3);
        snprintf(io, sizeof io, "%s %s %s %s %s", v, c[0], c[1], c[2], c[3]);
        node(g, "BatchNormalization", io, y);
        break;
    case 5: // a residual, computed before or here
        node(g, "Neg", roll(2) ? "r" : "r0", c[0]);
        both_ways(io, v, c[0]);
        node(g, "Add", io, y);
        break;
    case 6: // two users
        node(g, "Abs", v, c[0]);
        snprintf(io, sizeof io, "%s %s", v, c[0]);
        node(g, "Add", io, y);
        break;
    case 7: // an output, too
        out(g, v);
        node(g, "Relu", v, y);
        break;
    case 8: // no step
        node(g, "Sub", (snprintf(io, sizeof io, "%s r", v), io), y);
        break;
    default:
        add_operand(g, h, c[0]);
        both_ways(io, v, c[0]);
        node(g, roll(3) ? "Add" : "Mul", io, y);
        break;
    }
    return at + 1;
}

static om_graph *random_graph(const head_case *h) {
    om_graph *g = begin(20);
    in(g, "x", OM_F32, (const char *[]){"", "", "a,b", "a,b,c", "a,b,c,d"}[h->rank]);
    in(g, "r", OM_F32, (const char *[]){"", "e", "e,f", "e,f,g", "e,f,g,h"}[result_rank(h)]);
    node(g, "Relu", "r", "r0");
    add_head(g, h);
    int at = 0, n = (int)roll(8);
    for (int i = 0; i < n; i++)
        at = add_follower(g, h, at);
    char last[16];
    snprintf(last, sizeof last, "v%d", at);
    out(g, last);
    out(g, "r0");
    return done(g);
}

static om_tensor *random_tensor(int rank, const int64_t *dims, bool special) {
    om_tensor *t = om_zeros(OM_F32, rank, dims);
    float *d     = om_data_mut(t);
    for (int64_t i = 0; i < om_numel(t); i++)
        d[i] = draw(special);
    return t;
}

static void run_graph(om_graph *g, om_arith arith, om_tensor *x, om_tensor *r, int n,
                      om_tensor **y) {
    om_session *s = om_session_new(
        g,
        &(om_session_opts){.struct_size = sizeof(om_session_opts), .arith = arith, .threads = 1});
    check_ok();
    om_binding b[2] = {{"x", x}, {"r", r}};
    om_session_run(s, 2, b, n, y);
    check_ok();
    om_session_free(s);
}

static void a_chain_has_the_bits_of_its_nodes(void **state) {
    (void)state;
    for (uint32_t i = 0; i < 1200 / HARNESS_SLOWER; i++) {
        seed               = i * 7919u + 1;
        const head_case *h = &heads[i % OM_COUNT(heads)];
        om_graph *g        = random_graph(h);
        int n              = om_graph_n_outputs(g);
        OM_SCOPE {
            bool special = roll(2) != 0;
            om_tensor *x = random_tensor(h->rank, h->x, special);
            om_tensor *r = random_tensor(result_rank(h), h->y, special);
            om_tensor *want[16], *got[16];
            assert_true(n <= 16);
            om_arith arith = roll(3) ? OM_EXACT : OM_FAST;
            omi_pass_off_for_test("fuse_epilogue");
            run_graph(g, arith, x, r, n, want);
            omi_pass_off_for_test(NULL);
            run_graph(g, arith, x, r, n, got);
            for (int k = 0; k < n; k++)
                if (!om_bit_equal(want[k], got[k]))
                    fail_msg("seed %u (%s), output %d of %d", i, h->name, k, n);
        }
        om_graph_release(g);
    }
}

/* ---- how many steps -------------------------------------------------------------------------- */

/* Steps of a plan for x and r of these sizes. */
static uint32_t steps_of(om_graph *g, om_arith arith, const om_feed *feeds) {
    om_problems pr = {0};
    om_program *p  = omi_program_new(g, arith, 0, &pr);
    assert_int_equal(pr.n, 0);
    omi_problems_free(&pr);
    om_plan *plan = omi_plan_new(p, feeds, 1, 0);
    check_ok();
    uint32_t n = plan->n_steps;
    omi_plan_release(plan);
    omi_program_release(p);
    return n;
}

/* x [1,4,5,5] and r, whose sizes are given, under Conv 1x1 to 4 channels. */
static om_graph *conv_graph(void) {
    om_graph *g = begin(20);
    in(g, "x", OM_F32, "n,4,h,w");
    in(g, "r", OM_F32, "rn,rc,rh,rw");
    seed = 5;
    random_const(g, "w", 4, (int64_t[]){4, 4, 1, 1}, false, false);
    for (int i = 0; i < 4; i++)
        random_const(g, (const char *[]){"g", "b", "m", "v"}[i], 1, (int64_t[]){4}, false, i == 3);
    node(g, "Conv", "x w", "y");
    return g;
}

static uint32_t conv_steps(om_graph *g, int64_t xh, int64_t xw, int64_t rc, int64_t rh,
                           int64_t rw) {
    om_feed f[2] = {{.rank = 4, .shape = {1, 4, xh, xw}}, {.rank = 4, .shape = {1, rc, rh, rw}}};
    assert_non_null(done(g));
    uint32_t n = steps_of(g, OM_EXACT, f);
    om_graph_release(g);
    return n;
}

static void the_nodes_of_a_block_are_one_step(void **state) {
    (void)state;
    om_graph *g = conv_graph();
    node(g, "BatchNormalization", "y g b m v", "t");
    node(g, "Add", "t r", "u");
    node(g, "Relu", "u", "z");
    out(g, "z");
    assert_int_equal(conv_steps(g, 5, 5, 4, 5, 5), 1);
    g = conv_graph(); // the residual is computed behind the convolution
    node(g, "Abs", "r", "s");
    node(g, "Add", "s y", "u");
    node(g, "Relu", "u", "z");
    out(g, "z");
    assert_int_equal(conv_steps(g, 5, 5, 4, 5, 5), 2);
}

/* Of two convolutions under one sum the later one takes it. */
static void a_sum_of_two_convolutions_is_taken_once(void **state) {
    (void)state;
    om_graph *g = conv_graph();
    node(g, "Conv", "r w", "y2");
    node(g, "Add", "y y2", "u");
    node(g, "Relu", "u", "z");
    out(g, "z");
    assert_int_equal(conv_steps(g, 5, 5, 4, 5, 5), 2);
}

static void a_value_with_two_users_stays(void **state) {
    (void)state;
    om_graph *g = conv_graph();
    node(g, "Relu", "y", "t");
    node(g, "Tanh", "y", "u");
    node(g, "Add", "t u", "z");
    out(g, "z");
    assert_int_equal(conv_steps(g, 5, 5, 4, 5, 5), 4);
    g = conv_graph();
    node(g, "Add", "y y", "z"); // one user, twice
    out(g, "z");
    assert_int_equal(conv_steps(g, 5, 5, 4, 5, 5), 2);
}

static void a_value_that_is_an_output_stays(void **state) {
    (void)state;
    om_graph *g = conv_graph();
    node(g, "Relu", "y", "z");
    out(g, "z");
    out(g, "y");
    assert_int_equal(conv_steps(g, 5, 5, 4, 5, 5), 2);
}

/* One graph: the sizes of each plan decide. */
static void a_result_that_is_broadcast_stays(void **state) {
    (void)state;
    for (int k = 0; k < 3; k++) {
        om_graph *g = conv_graph();
        node(g, "Add", "y r", "t");
        node(g, "Relu", "t", "z");
        out(g, "z");
        if (k == 0) assert_int_equal(conv_steps(g, 5, 5, 4, 5, 5), 1);
        if (k == 1) assert_int_equal(conv_steps(g, 1, 1, 4, 5, 5), 3);
        if (k == 2) assert_int_equal(conv_steps(g, 5, 5, 1, 1, 5), 3); // along rows only: no matrix
    }
}

/* Statistics that are computed while running are no constants. */
static void a_batch_norm_of_computed_statistics_stays(void **state) {
    (void)state;
    om_graph *g = conv_graph();
    ints(g, "ax", 0, 2, 3);
    set_int(g, node(g, "ReduceMean", "r ax", "mean"), "keepdims", 0);
    node(g, "BatchNormalization", "y g b mean v", "z");
    out(g, "z");
    assert_int_equal(conv_steps(g, 5, 5, 4, 5, 5), 3);
}

/* More steps than an epilogue has: a second node takes nothing over, and all of it is right. */
static void a_long_chain_is_cut(void **state) {
    (void)state;
    om_graph *g = conv_graph();
    char io[32], y[16];
    for (int i = 0; i < 9; i++) {
        snprintf(io, sizeof io, i ? "t%d r" : "y r", i - 1);
        snprintf(y, sizeof y, "t%d", i);
        node(g, "Add", io, y);
    }
    out(g, "t8");
    assert_int_equal(conv_steps(g, 5, 5, 4, 5, 5), 1 + 9 - OM_EP_MAX);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        OM_TEST(a_chain_has_the_bits_of_its_nodes),
        OM_TEST(the_nodes_of_a_block_are_one_step),
        OM_TEST(a_sum_of_two_convolutions_is_taken_once),
        OM_TEST(a_value_with_two_users_stays),
        OM_TEST(a_value_that_is_an_output_stays),
        OM_TEST(a_result_that_is_broadcast_stays),
        OM_TEST(a_batch_norm_of_computed_statistics_stays),
        OM_TEST(a_long_chain_is_cut),
    };
    return cmocka_run_group_tests_name("fuse", tests, NULL, NULL);
}
