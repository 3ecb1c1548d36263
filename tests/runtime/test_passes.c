/*
 * test_passes.c -- what a pass may do to a program: values and nodes that it adds, and where they
 * come to stand.
 */
#include "runtime/build.h"

#include "compute/elementwise.h"
#include "runtime/plan.h"
#include "runtime/run.h"

static om_graph *two_nodes(void) {
    om_graph *g = begin(20);
    in(g, "x", OM_F32, "n");
    node(g, "Relu", "x", "y");
    node(g, "Exp", "y", "z");
    out(g, "z");
    return done(g);
}

static om_program *program_of(om_graph *g, size_t limit) {
    om_problems pr = {0};
    om_program *p  = omi_program_new(g, OM_EXACT, limit, &pr);
    assert_int_equal(pr.n, 0);
    omi_problems_free(&pr);
    return p;
}

/* Nodes that a plan takes as one are found in what is planned: a whole program, or the parts of one
 * that is cut; with the pass off in neither. */
static void what_is_planned_is_fused(void **state) {
    (void)state;
    for (int cut = 0; cut < 2; cut++)
        for (int off = 0; off < 2; off++) {
            om_graph *g = begin(20);
            in(g, "x", OM_F32, "2,3");
            in(g, "w", OM_F32, "3,4");
            node(g, "MatMul", "x w", "t");
            node(g, "Relu", "t", "u");
            if (cut) node(g, "NonZero", "u", "i");
            out(g, cut ? "i" : "u");
            done(g);
            omi_pass_off_for_test(off ? "fuse_epilogue" : NULL);
            om_program *p = program_of(g, 0);
            omi_pass_off_for_test(NULL);
            assert_int_equal(p->staged, cut != 0);
            const om_program *planned = cut ? p->stages[0].part : p;
            assert_int_equal(planned->nodes[0].next, off ? 0 : 1);
            assert_int_equal(planned->nodes[0].in_chain, !off);
            if (cut) assert_false(p->nodes[0].in_chain); // nobody plans the whole
            omi_program_release(p);
            om_graph_release(g);
        }
}

static void add_unary(om_program *p, uint32_t before, const char *type, uint32_t from,
                      uint32_t to) {
    int32_t oldest;
    om_unary_kind kind = strcmp(type, "Abs") ? OM_U_NEG : OM_U_ABS;
    om_pnode n         = {.def   = omi_node_def(type, "", 20, &oldest),
                          .form  = &kind,
                          .n_in  = 1,
                          .n_out = 1,
                          .in    = &from,
                          .out   = &to};
    assert_int_equal(omi_program_add_node(p, before, &n, sizeof kind), OM_OK);
}

/* z = exp(-(-(-relu(x)))): three nodes made where the second of two is, their forms and lists gone
 * from the stack when they run. */
static void nodes_that_a_pass_made_run(void **state) {
    (void)state;
    om_graph *g   = two_nodes();
    om_program *p = program_of(g, 0);
    uint32_t t[3], y = p->nodes[0].out[0];
    for (int i = 0; i < 3; i++)
        t[i] = omi_program_add_value(p, "made", OM_F32, -1);
    add_unary(p, 1, "Neg", y, t[0]);
    add_unary(p, 1, "Neg", t[0], t[1]);
    add_unary(p, 1, "Neg", t[1], t[2]);
    assert_int_equal(p->n_nodes, 2); // until the pass is over
    p->nodes[1].in[0] = t[2];
    assert_int_equal(omi_program_settle(p), OM_OK);
    assert_int_equal(p->n_nodes, 5);
    float x[3] = {-1, 0.5f, 2}, z[3];
    om_feed f  = {.rank = 1, .shape = {3}};
    // by_value and sizes know nothing of the new values; no size depends on contents here
    bool none[16] = {0}, *had = p->sizes;
    p->sizes      = none;
    om_plan *plan = omi_plan_new(p, &f, 1, 0);
    om_run *r     = omi_run_new(plan, true);
    check_ok();
    const void *in[1] = {x};
    void *to[1]       = {z};
    assert_int_equal(omi_run_steps(r, in, to), OM_OK);
    OM_SCOPE {
        om_tensor *e = om_exp(om_neg(om_relu(om_from(x, OM_F32, OM_DIMS(3)))));
        assert_memory_equal(z, om_data(e), sizeof z);
    }
    p->sizes = had;
    om_run_free(r);
    omi_plan_release(plan);
    omi_program_release(p);
    om_graph_release(g);
}

/* Many, in any order of places: each stands before its node, in the order of adding, and old ones
 * keep theirs. */
static void added_nodes_stand_where_they_were_put(void **state) {
    (void)state;
    enum { OLD = 40, NEW = 500 };
    om_graph *g = begin(20);
    in(g, "x", OM_F32, "n");
    for (int i = 0; i < OLD; i++) {
        char from[16], to[16];
        snprintf(from, sizeof from, i ? "v%d" : "x", i - 1);
        snprintf(to, sizeof to, "v%d", i);
        node(g, "Neg", from, to);
    }
    out(g, "v39");
    om_program *p  = program_of(done(g), 0);
    uint32_t where = 7;
    for (uint32_t i = 0; i < NEW; i++, where = (where * 29 + 3) % (OLD + 1))
        add_unary(p, where, "Abs", i, where); // its lists hold number and place, to be found again
    assert_int_equal(omi_program_settle(p), OM_OK);
    assert_int_equal(p->n_nodes, OLD + NEW);
    uint32_t old = 0, last = 0;
    for (uint32_t i = 0; i < p->n_nodes; i++) {
        const om_pnode *n = &p->nodes[i];
        if (strcmp(n->def->type, "Neg") == 0) {
            assert_int_equal(n->index, old++);
            last = 0;
            continue;
        }
        assert_int_equal(n->out[0], old);
        assert_true(n->in[0] >= last);
        last = n->in[0];
    }
    assert_int_equal(old, OLD);
    omi_program_release(p);
    om_graph_release(g);
}

/* What a pass adds counts against the limit of the session. */
static void what_a_pass_adds_is_limited(void **state) {
    (void)state;
    om_graph *g   = two_nodes();
    om_program *p = program_of(g, 1 << 20);
    uint32_t v    = 0;
    for (int i = 0; i < 100000 && v != OM_NO_VALUE; i++)
        v = omi_program_add_value(p, "made", OM_F32, -1);
    assert_int_equal(v, OM_NO_VALUE);
    check_error(OM_ERR_LIMIT, "");
    omi_program_release(p);
    om_graph_release(g);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        OM_TEST(what_is_planned_is_fused),
        OM_TEST(nodes_that_a_pass_made_run),
        OM_TEST(added_nodes_stand_where_they_were_put),
        OM_TEST(what_a_pass_adds_is_limited),
    };
    return cmocka_run_group_tests_name("passes", tests, NULL, NULL);
}
