/*
 * test_optim.c -- optimizers, groups, schedules and clipping against PyTorch 2.13.0.
 *
 * The reference (tools/make_optim_reference.py) holds gradients and weights of 100 steps per case.
 * The gradients are given to om_step, so an error would add up, and each step's weights are
 * compared.
 */
#include "nn/fixture.h"

#include "autograd/record.h"
#include "optim/optim.h"

enum { N_W = 12, N_B = 4, N = N_W + N_B, STEPS = 100, N_CASES = 15 };

typedef struct setup {
    om_module *m;
    om_tensor *w, *b;
} setup;

static setup make(const float *start) {
    setup s = {.m = om_nn_module()};
    OM_SCOPE {
        s.w = om_nn_parameter(s.m, "weight", om_from(start, OM_F32, OM_DIMS(4, 3)));
        s.b = om_nn_parameter(s.m, "bias", om_from(start + N_W, OM_F32, OM_DIMS(4)));
    }
    expect_ok();
    return s;
}

/* What backward would leave. */
static void give_gradient(om_tensor *leaf, const float *g) {
    om_scope s         = om_scope_begin();
    om_grad_slot *slot = omi_grad_slot_of(leaf);
    assert_null(slot->grad);
    slot->grad = om_retain(om_from(g, OM_F32, leaf->rank, leaf->shape));
    om_scope_end(s);
    expect_ok();
}

static om_optim *make_case(int c, om_module *m) {
    om_optim *o = NULL;
    switch (c) {
    case 0:
        return om_sgd(m, 0.1, NULL);
    case 1:
        return om_sgd(m, 0.1, OM_OPTS(sgd, .weight_decay = 0.01));
    case 2:
        return om_sgd(m, 0.05, OM_OPTS(sgd, .momentum = 0.9));
    case 3:
        return om_sgd(m, 0.05, OM_OPTS(sgd, .momentum = 0.9, .dampening = 0.3));
    case 4:
        return om_sgd(m, 0.05, OM_OPTS(sgd, .momentum = 0.9, .nesterov = true));
    case 5:
        return om_sgd(m, 0.05,
                      OM_OPTS(sgd, .momentum = 0.8, .nesterov = true, .weight_decay = 0.02));
    case 6:
        return om_adam(m, 0.01, NULL);
    case 7:
        return om_adam(m, 0.01, OM_OPTS(adam, .betas = {0.8, 0.95}, .eps = 1e-6));
    case 8:
        return om_adam(m, 0.01, OM_OPTS(adam, .weight_decay = 0.05));
    case 9:
        return om_adamw(m, 0.01, OM_OPTS(adam, .weight_decay = 0.05));
    case 10:
    case 11:
        return om_sgd(m, 0.1, NULL);
    case 12:
        o = om_sgd(m, 0.1, OM_OPTS(sgd, .momentum = 0.9));
        om_schedule_step(o, 30, 0.5);
        return o;
    case 13:
        o = om_adam(m, 0.02, NULL);
        om_schedule_cosine(o, 80, 0, 0.1);
        return o;
    default:
        o = om_adamw(m, 0.01, OM_OPTS(adam, .weight_decay = 0.1));
        om_optim_group(o, "*.bias", OM_OPTS(group, .lr = 0.03, .no_decay = true), NULL);
        return o;
    }
}

static void agrees_with_torch(void **state) {
    (void)state;
    size_t n;
    float *init = fixture_npy("optim_init.npy", &n), *grad, *weight;
    assert_int_equal(n, N_CASES * N);
    grad   = fixture_npy("optim_grad.npy", &n);
    weight = fixture_npy("optim_weight.npy", &n);
    assert_int_equal(n, N_CASES * STEPS * N);
    for (int c = 0; c < N_CASES; c++) {
        setup s     = make(init + c * N);
        om_optim *o = make_case(c, s.m);
        expect_ok();
        double worst = 0.0, moved = 0.0;
        for (int t = 0; t < STEPS; t++) {
            const float *g = grad + (c * STEPS + t) * N, *want = weight + (c * STEPS + t) * N;
            om_zero_grad(o);
            give_gradient(s.w, g);
            give_gradient(s.b, g + N_W);
            double norm;
            if (c == 10) om_clip_norm(o, 0.05, &norm);
            if (c == 11) om_clip_value(o, 0.01);
            om_step(o);
            expect_ok();
            float got[N];
            memcpy(got, om_data(s.w), N_W * sizeof(float));
            memcpy(got + N_W, om_data(s.b), N_B * sizeof(float));
            double e = relative_error(got, want, N);
            if (e > worst) worst = e;
            double d = relative_error(got, init + c * N, N);
            if (d > moved) moved = d;
        }
        if (worst > 1e-6) fail_msg("case %d: weights differ by %g of the largest", c, worst);
        assert_true(moved > 0.01); /* the weights did move */
        assert_int_equal(om_optim_steps(o), STEPS);
        om_optim_free(o);
        om_nn_free(s.m);
    }
    free(init);
    free(grad);
    free(weight);
}

/* The cosine by polynomial against libm's, and the schedules at their corners. */
static void schedules(void **state) {
    (void)state;
    for (int i = 0; i <= 10000; i++) {
        double x = i / 10000.0, want = cos(3.14159265358979323846 * x);
        assert_true(fabs(omi_cospi(x) - want) <= 4.5e-16);
    }
    assert_true(omi_cospi(0.0) == 1.0 && omi_cospi(0.5) == 0.0 && omi_cospi(1.0) == -1.0);
    float start[N] = {0};
    setup s        = make(start);
    om_optim *o    = om_sgd(s.m, 2.0, NULL);
    om_schedule_cosine(o, 10, 3, 0.25);
    const double rise[] = {0.5, 1.0, 1.5, 2.0};
    for (int t = 0; t < 4; t++) {
        assert_true(om_lr(o, 0) == rise[t]);
        om_step(o); /* no gradients: only time goes on */
    }
    while (om_optim_steps(o) < 10)
        om_step(o);
    assert_true(om_lr(o, 0) == 0.5);
    om_step(o);
    assert_true(om_lr(o, 0) == 0.5);
    om_schedule_step(o, 4, 0.5);
    assert_true(om_lr(o, 0) == 0.5); /* 11 / 4 = 2 */
    om_set_lr(o, -1, 8.0);
    assert_true(om_lr(o, 0) == 2.0);
    expect_ok();
    assert_int_equal(om_schedule_step(o, 0, 0.5), OM_ERR_ARG);
    expect_error(OM_ERR_ARG, "every 0");
    assert_int_equal(om_schedule_cosine(o, 5, 5, 0), OM_ERR_ARG);
    expect_error(OM_ERR_ARG, "warmup 5");
    om_optim_free(o);
    om_nn_free(s.m);
}

static void frozen_and_absent_gradients(void **state) {
    (void)state;
    float start[N], g[N];
    for (int i = 0; i < N; i++)
        start[i] = g[i] = 1.0f;
    setup s     = make(start);
    om_optim *o = om_sgd(s.m, 0.5, OM_OPTS(sgd, .weight_decay = 1.0));
    give_gradient(s.w, g);
    om_step(o); /* the bias has no gradient: not even decay touches it */
    assert_true(om_get(s.b, (const int64_t[]){0}) == 1.0);
    assert_true(om_get(s.w, (const int64_t[]){3, 2}) == 0.0);
    om_nn_freeze(s.m, "weight", true);
    assert_false(om_requires_grad(s.w));
    om_zero_grad(o);
    give_gradient(s.w, g);
    give_gradient(s.b, g);
    om_step(o);
    assert_true(om_get(s.w, (const int64_t[]){0, 0}) == 0.0);
    assert_true(om_get(s.b, (const int64_t[]){0}) == 0.0);
    om_nn_freeze(s.m, "", false);
    assert_true(om_requires_grad(s.w));
    expect_ok();
    assert_int_equal(om_nn_freeze(s.m, "wei", true), OM_ERR_ARG);
    expect_error(OM_ERR_ARG, "'wei'");
    om_optim_free(o);
    om_nn_free(s.m);
}

static void does_nothing_when_it_should_not(void **state) {
    (void)state;
    float start[N], g[N];
    for (int i = 0; i < N; i++)
        start[i] = g[i] = 1.0f;
    setup s     = make(start);
    om_optim *o = om_adam(s.m, 0.5, NULL);
    give_gradient(s.w, g);
    assert_null(om_nn_get(s.m, "nothing")); /* an error is pending */
    assert_int_equal(om_step(o), OM_ERR_ARG);
    assert_int_equal(om_zero_grad(o), OM_ERR_ARG);
    expect_error(OM_ERR_ARG, "nothing");
    om_cancel c = {1};
    om_set_cancel(&c);
    assert_int_equal(om_step(o), OM_ERR_CANCELLED);
    om_set_cancel(NULL);
    om_catch(NULL);
    assert_int_equal(om_optim_steps(o), 0);
    assert_true(om_get(s.w, (const int64_t[]){0, 0}) == 1.0);
    assert_non_null(om_grad_of(s.w));
    om_step(o);
    assert_true(om_get(s.w, (const int64_t[]){0, 0}) < 1.0);
    om_optim_free(o);

    assert_null(om_sgd(s.m, -1.0, NULL));
    expect_error(OM_ERR_ARG, "lr is -1");
    assert_null(om_sgd(s.m, 0.1, OM_OPTS(sgd, .nesterov = true)));
    expect_error(OM_ERR_ARG, "nesterov");
    assert_null(om_adam(s.m, 0.1, OM_OPTS(adam, .betas = {1.0, 0.9})));
    expect_error(OM_ERR_ARG, "betas");
    om_module *empty = om_nn_module();
    assert_null(om_adam(empty, 0.1, NULL));
    expect_error(OM_ERR_ARG, "no parameters");
    om_nn_free(empty);
    om_nn_free(s.m);
}

/* A gradient that two leaves share is scaled once for each, not twice. */
static void clips_shared_gradients(void **state) {
    (void)state;
    float one[4] = {3, 3, 3, 3};
    om_module *m = om_nn_module();
    om_tensor *a, *b;
    OM_SCOPE {
        a = om_nn_parameter(m, "a", om_zeros(OM_F32, OM_DIMS(4)));
        b = om_nn_parameter(m, "b", om_zeros(OM_F32, OM_DIMS(4)));
        give_gradient(a, one);
        omi_grad_slot_of(b)->grad = om_retain(om_grad_of(a));
    }
    om_optim *o = om_sgd(m, 1.0, NULL);
    double norm;
    om_clip_norm(o, 1.0, &norm);
    expect_ok();
    assert_true(fabs(norm - sqrt(72.0)) < 1e-14);
    double ga = om_get(om_grad_of(a), (const int64_t[]){1}),
           gb = om_get(om_grad_of(b), (const int64_t[]){1});
    assert_true(ga == gb && fabs(ga - 3.0 / sqrt(72.0)) < 1e-6);
    one[2] = INFINITY;
    om_zero_grad(o);
    give_gradient(a, one);
    assert_int_equal(om_clip_norm(o, 1.0, &norm), OM_ERR_VALUE);
    expect_error(OM_ERR_VALUE, "norm");
    assert_true(om_get(om_grad_of(a), (const int64_t[]){0}) == 3.0);
    om_optim_free(o);
    om_nn_free(m);
}

/* A view of a gradient shares its storage only: what its holder sees is not scaled under him. */
static void clips_beside_a_view_of_the_gradient(void **state) {
    (void)state;
    const float g[4] = {3, 3, 3, 3};
    om_module *m     = om_nn_module();
    om_tensor *a, *view;
    OM_SCOPE {
        a = om_nn_parameter(m, "a", om_zeros(OM_F32, OM_DIMS(4)));
        give_gradient(a, g);
        om_tensor *grad = om_grad_of(a);
        view            = om_retain(om_reshape(grad, OM_DIMS(2, 2)));
    }
    om_optim *o = om_sgd(m, 1.0, NULL);
    double norm;
    om_clip_norm(o, 1.0, &norm);
    expect_ok();
    assert_true(fabs(norm - 6.0) < 1e-14);
    assert_true(fabs(om_get(om_grad_of(a), (const int64_t[]){1}) - 0.5) < 1e-6);
    assert_true(om_get(view, (const int64_t[]){0, 1}) == 3.0);
    om_clip_value(o, 0.25);
    assert_true(om_get(om_grad_of(a), (const int64_t[]){1}) == 0.25);
    assert_true(om_get(view, (const int64_t[]){0, 1}) == 3.0);
    om_release(view);
    om_optim_free(o);
    om_nn_free(m);
}

/* Dampening spares a parameter's own first step, whenever that is (as torch has it): the velocity
 * begins as the gradient itself. With mu = 1/2 and tau = 1/4 every number below is exact. */
static void a_late_first_gradient_is_not_dampened(void **state) {
    (void)state;
    const float one[1] = {1};
    om_module *m       = om_nn_module();
    om_tensor *early, *late;
    OM_SCOPE {
        early = om_nn_parameter(m, "early", om_zeros(OM_F32, OM_DIMS(1)));
        late  = om_nn_parameter(m, "late", om_zeros(OM_F32, OM_DIMS(1)));
    }
    om_optim *o = om_sgd(m, 1.0, OM_OPTS(sgd, .momentum = 0.5, .dampening = 0.25));
    /* velocities: early 1, 1.25, 1.375; late none, 1, 1.25 */
    const double want[3][2] = {{-1, 0}, {-2.25, -1}, {-3.625, -2.25}};
    for (int t = 0; t < 3; t++) {
        om_zero_grad(o);
        give_gradient(early, one);
        if (t > 0) give_gradient(late, one);
        om_step(o);
        expect_ok();
        assert_true(om_get(early, (const int64_t[]){0}) == want[t][0]);
        assert_true(om_get(late, (const int64_t[]){0}) == want[t][1]);
    }
    om_optim_free(o);
    om_nn_free(m);
}

/* The same bits with any number of threads, for arrays that are split. */
static void threads_do_not_matter(void **state) {
    (void)state;
    enum { BIG = 100003 };
    float *start = malloc(BIG * sizeof *start), *result[2];
    for (int i = 0; i < BIG; i++)
        start[i] = (float)((i * 7919) % 1000) * 1e-3f - 0.5f;
    for (int k = 0; k < 2; k++) {
        om_set_threads(k ? 3 : 1);
        om_module *m = om_nn_module();
        om_tensor *w;
        OM_SCOPE w  = om_nn_parameter(m, "w", om_from(start, OM_F32, OM_DIMS(BIG)));
        om_optim *o = om_adamw(m, 0.01, OM_OPTS(adam, .weight_decay = 0.1));
        for (int t = 0; t < 3; t++) {
            om_zero_grad(o);
            give_gradient(w, start);
            om_step(o);
        }
        expect_ok();
        result[k] = malloc(BIG * sizeof(float));
        memcpy(result[k], om_data(w), BIG * sizeof(float));
        om_optim_free(o);
        om_nn_free(m);
    }
    om_set_threads(0);
    assert_memory_equal(result[0], result[1], BIG * sizeof(float));
    assert_true(memcmp(result[0], start, BIG * sizeof(float)) != 0);
    free(start);
    free(result[0]);
    free(result[1]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(agrees_with_torch),
        FIXTURE_TEST(schedules),
        FIXTURE_TEST(frozen_and_absent_gradients),
        FIXTURE_TEST(does_nothing_when_it_should_not),
        FIXTURE_TEST(clips_shared_gradients),
        FIXTURE_TEST(clips_beside_a_view_of_the_gradient),
        FIXTURE_TEST(a_late_first_gradient_is_not_dampened),
        FIXTURE_TEST(threads_do_not_matter),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
