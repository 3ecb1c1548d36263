/*
 * test_visit.c -- state a binding reads and writes itself (CD-45): the differences of a weight list
 * as values, and an optimizer's state parameter by parameter.
 */
#include "harness.h"

#include <stdio.h>

#include "onemodel.h"

/* ---- differences ------------------------------------------------------------------------------
 */

typedef struct seen {
    char text[400];
    char lines[400];
    int stop_at, n, raise;
} seen;

static int see(void *ctx, const om_state_diff *d) {
    seen *s   = ctx;
    size_t at = strlen(s->text);
    snprintf(s->text + at, sizeof s->text - at, "%d %s %d %d;", (int)d->kind, d->name,
             d->have ? (int)om_dim(d->have, 0) : -1, d->given ? (int)om_dim(d->given, 0) : -1);
    if (s->raise) om_raise(OM_ERR_VALUE, "see", "not this one");
    return ++s->n == s->stop_at;
}
static int write_line(void *ctx, const char *text, size_t n) {
    seen *s = ctx;
    strncat(s->lines, text, n);
    return 0;
}

static void differences_come_as_values(void **state) {
    (void)state;
    om_module *net = om_nn_module();
    om_nn_add(net, "fc1", om_nn_linear(3, 2, NULL));
    om_nn_add(net, "fc2", om_nn_linear(2, 5, NULL));
    om_named_tensor list[3] = {{"fc1.weight", om_zeros(OM_F32, OM_DIMS(3, 2))},
                               {"fc1.bias", om_zeros(OM_F32, OM_DIMS(2))},
                               {"head", om_zeros(OM_F32, OM_DIMS(7))}};
    seen s                  = {.text = ""};
    om_state_opts o         = {
                .struct_size = sizeof o, .partial = true, .report = write_line, .ctx = &s, .each = see};
    assert_int_equal(om_nn_load_list(net, 3, list, &o), OM_OK);
    assert_string_equal(s.text, "3 fc1.weight 2 3;1 fc2.weight 5 -1;1 fc2.bias 5 -1;2 head -1 7;");
    assert_string_equal(s.lines, "misshapen fc1.weight float32 [2,3], given float32 [3,2]\n"
                                 "missing fc2.weight float32 [5,2]\nmissing fc2.bias float32 [5]\n"
                                 "unexpected head float32 [7]\n");
    s        = (seen){.stop_at = 2};
    o.report = NULL;
    assert_int_equal(om_nn_load_list(net, 3, list, &o), OM_ERR_CANCELLED);
    check_error(OM_ERR_CANCELLED, "1");
    assert_int_equal(s.n, 2);
    s = (seen){.raise = 1};
    assert_int_equal(om_nn_load_list(net, 3, list, &o), OM_ERR_VALUE);
    check_error(OM_ERR_VALUE, "see");
    s         = (seen){.n = 0};
    o.partial = false;
    assert_int_equal(om_nn_load_list(net, 3, list, &o), OM_ERR_ARG);
    check_error(OM_ERR_ARG, "2 missing", "1 unexpected", "1 misshapen");
    assert_int_equal(s.n, 4);
    // The struct of version 0.1.0 ended before `each`.
    struct {
        uint32_t struct_size;
        bool partial;
        om_write_fn report;
        void *ctx;
    } old = {.struct_size = sizeof old, .partial = true, .report = write_line, .ctx = &s};
    assert_int_equal(om_nn_load_list(net, 3, list, (const om_state_opts *)(const void *)&old),
                     OM_OK);
    om_nn_free(net);
}

/* ---- optimizers -------------------------------------------------------------------------------
 */

/* A small net with fixed weights, and a step of it. */
static om_module *net_of(void) {
    om_seed(5);
    om_module *net = om_nn_sequential();
    om_nn_append(net, om_nn_linear(4, 3, NULL));
    om_nn_append(net, om_nn_linear(3, 2, NULL));
    return net;
}
static void step_of(om_module *net, om_optim *o, int k) {
    OM_SCOPE {
        om_tensor *x = om_full(0.1 * k + 0.3, OM_F32, OM_DIMS(5, 4));
        om_tensor *y = om_forward(net, x);
        om_zero_grad(o);
        om_backward(om_mean_all(om_mul(y, y)));
        om_step(o);
    }
}

typedef struct kept {
    int n;
    int64_t steps[4];
    int32_t group[4];
    float arrays[4][2][16];
    char paths[4][32], names[4][2][16];
} kept;

static int keep_state(void *ctx, om_optim_entry *e) {
    kept *k = ctx;
    int i   = k->n++;
    snprintf(k->paths[i], sizeof k->paths[i], "%s", e->path);
    k->steps[i] = e->steps;
    k->group[i] = e->group;
    for (int a = 0; a < e->n_arrays; a++) {
        snprintf(k->names[i][a], sizeof k->names[i][a], "%s", e->names[a]);
        if (e->arrays[a])
            memcpy(k->arrays[i][a], e->arrays[a], (size_t)om_numel(e->parameter) * sizeof(float));
        else
            k->arrays[i][a][0] = -77;
    }
    e->steps += 1000; // is not kept
    return 0;
}
static int give_state(void *ctx, om_optim_entry *e) {
    kept *k = ctx;
    int i   = k->n++;
    if (strcmp(e->path, k->paths[i])) return 9;
    e->steps = k->steps[i];
    for (int a = 0; a < e->n_arrays; a++)
        memcpy(e->arrays[a], k->arrays[i][a], (size_t)om_numel(e->parameter) * sizeof(float));
    return 0;
}

/* Ten steps, against four, the state carried into a new optimizer, and six. */
static void carried_state_gives_the_same_bits(om_optim *(*make)(om_module *),
                                              const char *const *names, int n) {
    om_module *a = net_of(), *b = net_of();
    om_optim *oa = make(a), *ob = make(b);
    for (int k = 0; k < 10; k++)
        step_of(a, oa, k);
    for (int k = 0; k < 4; k++)
        step_of(b, ob, k);
    kept s = {.n = 0};
    assert_int_equal(om_optim_visit(ob, false, keep_state, &s), OM_OK);
    assert_int_equal(s.n, 4);
    assert_string_equal(s.paths[0], "0.weight");
    assert_string_equal(s.paths[3], "1.bias");
    assert_int_equal(s.steps[2], 4);
    for (int i = 0; i < n; i++)
        assert_string_equal(s.names[1][i], names[i]);
    int64_t steps = om_optim_steps(ob);
    om_optim_free(ob);
    ob  = make(b);
    s.n = 0;
    assert_int_equal(om_optim_visit(ob, true, give_state, &s), OM_OK);
    assert_int_equal(om_optim_set_steps(ob, steps), OM_OK);
    for (int k = 4; k < 10; k++)
        step_of(b, ob, k);
    check_ok();
    assert_true(om_bit_equal(om_nn_get(a, "0.weight"), om_nn_get(b, "0.weight")));
    assert_true(om_bit_equal(om_nn_get(a, "1.bias"), om_nn_get(b, "1.bias")));
    assert_int_equal(om_optim_steps(oa), om_optim_steps(ob));
    om_optim_free(oa);
    om_optim_free(ob);
    om_nn_free(a);
    om_nn_free(b);
}

static om_optim *adam_of(om_module *m) {
    om_optim *o = om_adam(m, 0.01, NULL);
    om_schedule_cosine(o, 10, 2, 0.1);
    return o;
}
static om_optim *sgd_of(om_module *m) {
    return om_sgd(m, 0.05, OM_OPTS(sgd, .momentum = 0.9, .dampening = 0.1));
}
static om_optim *plain_of(om_module *m) {
    return om_sgd(m, 0.05, NULL);
}

static void state_of_optimizers_is_carried(void **state) {
    (void)state;
    carried_state_gives_the_same_bits(adam_of, (const char *const[]){"exp_avg", "exp_avg_sq"}, 2);
    carried_state_gives_the_same_bits(sgd_of, (const char *const[]){"momentum_buffer"}, 1);
    carried_state_gives_the_same_bits(plain_of, NULL, 0);
}

static int stop_at_second(void *ctx, om_optim_entry *e) {
    (void)e;
    return ++*(int *)ctx == 2 ? 5 : 0;
}
static int raise_here(void *ctx, om_optim_entry *e) {
    (void)ctx;
    return om_raise(OM_ERR_VALUE, "raise_here", e->path) != OM_OK;
}
static int steps_of(void *ctx, om_optim_entry *e) {
    e->steps = *(int64_t *)ctx;
    return 0;
}

static void visits_that_stop_and_steps_that_are_refused(void **state) {
    (void)state;
    om_module *net = net_of();
    om_optim *o    = om_adam(net, 0.01, NULL);
    int n          = 0;
    assert_int_equal(om_optim_visit(o, false, stop_at_second, &n), OM_ERR_CANCELLED);
    check_error(OM_ERR_CANCELLED, "5");
    assert_int_equal(n, 2);
    assert_int_equal(om_optim_visit(o, false, raise_here, NULL), OM_ERR_VALUE);
    check_error(OM_ERR_VALUE, "0.weight");
    kept s = {.n = 0};
    om_optim_visit(o, false, keep_state, &s);
    assert_float_equal(s.arrays[0][0][0], -77, 0); // no step has made them
    assert_int_equal(om_optim_visit(o, true, steps_of, &(int64_t){-1}), OM_ERR_ARG);
    check_error(OM_ERR_ARG, "0.weight", "-1");
    assert_int_equal(om_optim_visit(o, true, steps_of, &(int64_t){1000000001}), OM_ERR_ARG);
    check_error(OM_ERR_ARG, "1000000001");
    assert_int_equal(om_optim_visit(o, true, steps_of, &(int64_t){100000}), OM_OK);
    assert_int_equal(om_optim_visit(NULL, true, steps_of, NULL), OM_ERR_ARG);
    check_error(OM_ERR_ARG, "optimizer");
    assert_int_equal(om_optim_visit(o, true, NULL, NULL), OM_ERR_ARG);
    check_error(OM_ERR_ARG, "visit");
    assert_int_equal(om_optim_set_steps(o, -1), OM_ERR_ARG);
    check_error(OM_ERR_ARG, "-1");
    om_optim_free(o);
    om_nn_free(net);
}

static om_status job(void *ctx) {
    (void)ctx;
    om_scope s     = om_scope_begin();
    om_module *net = net_of();
    om_optim *o    = om_adam(net, 0.01, NULL);
    om_optim_visit(o, true, steps_of, &(int64_t){3});
    om_named_tensor list[1] = {{"2.bias", om_zeros(OM_F32, OM_DIMS(2))}};
    seen all                = {.n = 0};
    om_nn_load_list(
        net, 1, list,
        OM_OPTS(state, .partial = true, .report = write_line, .ctx = &all, .each = see));
    om_optim_free(o);
    om_nn_free(net);
    return om_scope_end(s);
}

static void memory_runs_out_for_visitors(void **state) {
    (void)state;
    job(NULL);
    om_scope_drain();
    assert_true(harness_fail_each(job, NULL) > 30);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        OM_TEST(differences_come_as_values),
        OM_TEST(state_of_optimizers_is_carried),
        OM_TEST(visits_that_stop_and_steps_that_are_refused),
        OM_TEST(memory_runs_out_for_visitors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
