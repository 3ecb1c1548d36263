/*
 * test_kept.c -- what a traced graph keeps of its trace (CD-38), the size algebra (src/sym), and
 * the cost of tracing (TD-29): 20,000 of everything within seconds, where 6,000 took as long.
 */
#include <time.h>

#include "graph/traced.h"
#include "onemodel/session.h"
#include "zoo.h"

/* ---- extents ------------------------------------------------------------------------------------
 */

static int64_t *values_at(const om_graph *g, const zoo_model *m, int k) {
    const om_atoms *t = &g->traced->atoms;
    int64_t *v        = calloc(t->list.n + 1, sizeof *v);
    for (size_t i = 0; i < t->list.n; i++)
        for (int in = 0; in < m->n_in; in++)
            for (int ax = 0; ax < m->in[in].rank; ax++)
                if (t->list.v[i]->kind == OM_ATOM_SYMBOL && m->in[in].axes[ax] &&
                    !strcmp(t->list.v[i]->name, m->in[in].axes[ax]))
                    v[i] = m->in[in].dims[k][ax];
    if (!omi_atoms_eval(t, v)) {
        print_error("%s: the sizes of set %d cannot be evaluated\n", m->name, k);
        fail();
    }
    return v;
}

/* Every output's extents, evaluated at other sizes, are the shapes that the session gives. */
static void check_model(const zoo_model *m, const om_graph *g, int k) {
    int64_t *v = values_at(g, m, k), got;
    om_tensor *in[ZOO_INPUTS], *out[ZOO_OUTPUTS] = {NULL};
    for (int i = 0; i < m->n_in; i++)
        in[i] = zoo_example(m, i, k);
    int n = m->run(in, out);
    check_ok();
    assert_int_equal(n, (int)g->n_outputs);
    for (int i = 0; i < n; i++) {
        const om_extent *e = g->traced->extents[g->outputs[i]];
        assert_non_null(e);
        for (int ax = 0; ax < om_rank(out[i]); ax++) {
            assert_true(omi_ext_eval(&e[ax], v, &got));
            if (got == om_dim(out[i], ax)) continue;
            print_error("%s: axis %d of output %d is %s = %lld, not %lld\n", m->name, ax, i,
                        OMI_EXT(&e[ax]), (long long)got, (long long)om_dim(out[i], ax));
            fail();
        }
    }
    free(v);
}
static void extents_hold_at_other_sizes(void **state) {
    (void)state;
    for (int i = 0; i < zoo_count; i++) {
        om_scope s  = om_scope_begin();
        om_graph *g = zoo_trace(&zoo[i]);
        assert_non_null(g->traced);
        assert_int_equal(g->traced->n_values, g->n_values);
        for (uint32_t v = 0; v < g->n_values; v++) // only what a node or an input gives has them
            assert_true((g->traced->extents[v] != NULL) == (g->values[v].init < 0));
        for (int k = 0; k < 3; k++)
            check_model(&zoo[i], g, k);
        om_graph_release(g);
        om_scope_end(s);
    }
}

static void a_loaded_graph_keeps_no_trace(void **state) {
    (void)state;
    om_graph *g = zoo_trace(&zoo[0]);
    void *data, *again;
    size_t n, n2;
    assert_int_equal(om_graph_save_memory(g, &data, &n), OM_OK);
    assert_non_null(strstr(om_trace_report(g), "inputs:"));
    assert_ptr_equal(om_trace_report(g), om_trace_report(g)); // printed once
    assert_int_equal(om_graph_save_memory(g, &again, &n2), OM_OK);
    assert_int_equal(n, n2);
    assert_memory_equal(data, again, n);
    om_graph *back = om_graph_load_memory(data, n, NULL);
    assert_non_null(back);
    assert_null(back->traced);
    assert_string_equal(om_trace_report(back), "");
    om_bytes_free(data, n);
    om_bytes_free(again, n2);
    om_graph_release(back);
    om_graph_release(g);
}

/* The model, its modules and the tracer are gone when the report is printed. */
static void the_report_outlives_the_model(void **state) {
    (void)state;
    om_module *net = om_nn_module(), *part = om_nn_add(net, "part", om_nn_sequential());
    om_nn_append(part, om_nn_conv2d(1, 2, 3, 3, NULL));
    om_nn_append(part, om_nn_max_pool2d(3, 3, OM_OPTS(pool2d, .stride = {2, 2})));
    om_tracer *tr = fresh_tracer();
    om_trace_params(tr, net);
    om_tensor *x =
        om_trace_input(tr, "x", example(OM_DIMS(1, 1, 13, 17)), OM_AXES(NULL, NULL, "H", "W"));
    om_trace_output(tr, "y", om_forward(part, x));
    om_graph *g = om_trace_finish(tr);
    check_ok();
    om_nn_free(net);
    assert_non_null(strstr(om_trace_report(g), "(floor((H-2-3)/2)+1)")
                        ? ""
                        : strstr(om_trace_report(g), "in part.1"));
    om_graph_release(g);
}

/* ---- the algebra --------------------------------------------------------------------------------
 */

static void windows_evaluate(void **state) {
    (void)state;
    om_arena arena = {0};
    om_atoms t     = {.arena = &arena};
    om_extent h    = omi_ext_atom(omi_atom_symbol(&t, "H", 13)), a, b, c, d, sum;
    // kernel 3, stride 2, pads 1 and 1, dilation 2; the same with another dilation is another size
    assert_true(omi_ext_window(&t, &h, 3, 2, 1, 1, 2, false, 6, &a));
    assert_true(omi_ext_window(&t, &h, 3, 2, 1, 1, 2, false, 6, &b));
    assert_true(omi_ext_equal(&a, &b));
    assert_int_equal(a.a[0]->n_made, 2);
    assert_true(omi_ext_window(&t, &h, 3, 2, 2, 1, 2, false, 6, &b)); // equal at 13 only
    assert_false(omi_ext_equal(&a, &b));
    assert_true(omi_ext_window(&t, &h, 2, 3, 1, 0, 1, true, 5, &c)); // ceil mode, with a begin pad
    assert_true(omi_ext_window(&t, &h, 2, 3, 0, 1, 1, true, 5, &d)); // and without
    assert_false(omi_ext_equal(&c, &d));
    assert_true(omi_ext_sum(&t, 3, (const om_extent *[]){&a, &h, &h}, &sum));
    int64_t v[16] = {14}, got;
    assert_true(omi_atoms_eval(&t, v));
    assert_true(omi_ext_eval(&a, v, &got));
    assert_int_equal(got, (14 + 2 - 2 * 2 - 1) / 2 + 1);
    assert_true(omi_ext_eval(&sum, v, &got));
    assert_int_equal(got, 6 + 28);
    v[0] = 1; // smaller than the kernel: no size
    assert_false(omi_atoms_eval(&t, v));
    omi_atoms_free(&t);
    omi_arena_clear(&arena);
}

/* ---- cost ---------------------------------------------------------------------------------------
 */

enum { MANY = 20000, SIZES = 5000 }; // the tensors of SIZES grow with it

static double seconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}
#define WITHIN(limit, what)                                                                        \
    do {                                                                                           \
        double took_ = seconds() - began;                                                          \
        if (took_ > (limit)*HARNESS_SLOWER) {                                                      \
            print_error("%d %s took %.1f s\n", MANY, what, took_);                                 \
            fail();                                                                                \
        }                                                                                          \
    } while (0)

static void many_parameters(void **state) {
    (void)state;
    double began  = seconds();
    om_tracer *tr = fresh_tracer();
    om_tensor *x = om_trace_input(tr, "x", example(OM_DIMS(3, 1)), OM_AXES("N")), *y = x;
    om_tensor *all = om_zeros(OM_F32, OM_DIMS(MANY));
    for (int i = 0; i < MANY; i++) {
        char name[80];
        om_scope s = om_scope_begin();
        snprintf(name, sizeof name, "a.prefix.that.all.the.names.of.this.model.share.%d.weight", i);
        om_tensor *w = i % 2 ? om_ones(OM_F32, OM_DIMS(1)) : om_slice(all, 0, i, i + 1, 1);
        om_trace_parameter(tr, name, w);
        y = om_scope_return(s, om_add(y, w));
    }
    om_trace_output(tr, "y", y);
    om_graph *g = om_trace_finish(tr);
    check_ok();
    assert_int_equal(g->n_inits, MANY);
    om_graph_release(g);
    WITHIN(5, "parameters");
}

static void many_selects(void **state) {
    (void)state;
    double began  = seconds();
    om_tracer *tr = fresh_tracer();
    om_tensor *x  = om_trace_input(tr, "x", example(OM_DIMS(MANY + 2)), OM_AXES("T"));
    om_tensor *y  = om_select(x, 0, 0);
    for (int i = 1; i < MANY; i++) {
        om_scope s = om_scope_begin();
        y          = om_scope_return(s, om_add(y, om_select(x, 0, i)));
    }
    om_trace_output(tr, "y", y);
    om_graph *g = om_trace_finish(tr);
    check_ok();
    om_graph_release(g);
    WITHIN(5, "selects");
}

/* Each size is derived, has a reshape that asks for it, and is an output. */
static void many_derived_sizes(void **state) {
    (void)state;
    double began  = seconds();
    om_tracer *tr = fresh_tracer();
    om_tensor *x = om_trace_input(tr, "x", example(OM_DIMS(2, 5)), OM_AXES("N", "T")), *y = x;
    for (int i = 0; i < SIZES; i++) {
        char name[16];
        om_scope s   = om_scope_begin();
        om_tensor *p = om_pad(y, 2, (int64_t[]){0, 1}, (int64_t[]){0, 0}, 0);
        om_tensor *r = om_reshape(p, OM_DIMS(om_dim(p, 0), om_dim(p, 1), 1));
        y            = om_slice(om_squeeze(r, 1, (int64_t[]){2}), 1, 0, OM_END, 1);
        y            = om_scope_return(
                       s, om_retain(om_sum(om_unsqueeze(y, 1, (int64_t[]){2}), 1, (int64_t[]){2}, false)));
        om_release(y);
        snprintf(name, sizeof name, "y%d", i);
        if (i % 100 == 0) om_trace_output(tr, name, y);
    }
    om_trace_output(tr, "y", om_sum_all(y));
    om_graph *g = om_trace_finish(tr);
    check_ok();
    om_graph_release(g);
    WITHIN(20, "derived sizes (a quarter)");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        OM_TEST(extents_hold_at_other_sizes),
        OM_TEST(a_loaded_graph_keeps_no_trace),
        OM_TEST(the_report_outlives_the_model),
        OM_TEST(windows_evaluate),
        OM_TEST(many_parameters),
        OM_TEST(many_selects),
        OM_TEST(many_derived_sizes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
