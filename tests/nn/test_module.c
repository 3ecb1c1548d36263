/*
 * test_module.c -- the module tree: ownership, names, order, errors that name the module, loading
 * lists.
 */
#include "nn/fixture.h"

#include "base/str.h"
#include "harness.h"

static om_tensor *doubled(void *ctx, om_module *m, om_tensor *x) {
    (void)m;
    if (ctx) ++*(int *)ctx;
    return om_add(x, x);
}
static void count_free(void *ctx) {
    ++*(int *)ctx;
}

static om_module *with_weight(int64_t n) {
    om_module *m = om_nn_module();
    OM_SCOPE om_nn_parameter(m, "weight", om_ones(OM_F32, OM_DIMS(n)));
    return m;
}

static void ownership(void **state) {
    (void)state;
    int freed       = 0;
    om_module *root = om_nn_module(), *enc = om_nn_add(root, "enc", om_nn_module());
    om_module *a = om_nn_add(enc, "a", om_nn_custom(doubled, &freed, count_free));
    assert_non_null(a);
    assert_ptr_equal(a, om_nn_child(root, "enc.a"));
    /* Taken and freed on failure. */
    assert_null(om_nn_add(enc, "a", om_nn_custom(doubled, &freed, count_free)));
    expect_error(OM_ERR_ARG, "'a' is used already");
    assert_int_equal(freed, 1);
    assert_null(om_nn_add(enc, "b.c", om_nn_custom(doubled, &freed, count_free)));
    expect_error(OM_ERR_ARG, "dot");
    assert_null(om_nn_add(enc, "", om_nn_custom(doubled, &freed, count_free)));
    expect_error(OM_ERR_ARG, "empty");
    assert_null(om_nn_add(NULL, "x", om_nn_custom(doubled, &freed, count_free)));
    expect_error(OM_ERR_ARG, "parent");
    assert_null(om_nn_custom(NULL, &freed, count_free));
    expect_error(OM_ERR_ARG, "forward");
    assert_int_equal(freed, 5);
    /* While an error is pending too. */
    om_module *late = om_nn_custom(doubled, &freed, count_free);
    om_nn_get(root, "nothing");
    assert_null(om_nn_add(root, "late", late));
    expect_error(OM_ERR_ARG, "nothing");
    assert_int_equal(freed, 6);
    /* A child of somebody else, and an ancestor, stay where they are. */
    om_module *other = om_nn_module();
    assert_null(om_nn_add(other, "enc", enc));
    expect_error(OM_ERR_STATE, "parent already");
    assert_null(om_nn_add(enc, "root", root));
    expect_error(OM_ERR_STATE, "descendant");
    om_nn_free(enc);
    expect_error(OM_ERR_STATE, "belongs to a parent");
    om_nn_free(other);
    om_nn_free(root);
    om_nn_free(NULL);
    assert_int_equal(freed, 7);
}

static void depth_is_limited(void **state) {
    (void)state;
    om_module *root = om_nn_module(), *m = root;
    for (int i = 1; i < 64; i++)
        m = om_nn_add(m, "m", om_nn_module());
    expect_ok();
    assert_null(om_nn_add(m, "m", om_nn_module()));
    expect_error(OM_ERR_LIMIT, "64");
    om_nn_free(root);
}

static int collect(void *ctx, const char *path, om_tensor *t, bool is_buffer) {
    omi_str_printf(ctx, "%s%s:%d ", path, is_buffer ? "*" : "", (int)om_numel(t));
    return 0;
}
static int stop_at_two(void *ctx, const char *path, om_tensor *t, bool is_buffer) {
    (void)path, (void)t, (void)is_buffer;
    return ++*(int *)ctx == 2 ? 7 : 0;
}

static void order_and_paths(void **state) {
    (void)state;
    om_module *root = om_nn_module();
    om_module *enc  = om_nn_add(root, "enc", om_nn_sequential());
    om_nn_append(enc, with_weight(2));
    om_nn_append(enc, with_weight(3));
    om_module *head = om_nn_add(root, "head", with_weight(4));
    OM_SCOPE {
        om_nn_buffer(root, "scale", om_ones(OM_F32, OM_DIMS(1)));
        om_nn_parameter(root, "bias", om_ones(OM_F32, OM_DIMS(5)));
        om_nn_parameter(head, "tied", om_nn_get(root, "enc.0.weight"));
    }
    om_str s = {0};
    assert_int_equal(om_nn_visit(root, collect, &s), OM_OK);
    assert_string_equal(s.v,
                        "bias:5 scale*:1 enc.0.weight:2 enc.1.weight:3 head.weight:4 head.tied:2 ");
    omi_str_free(&s);
    om_nn_visit(head, collect, &s);
    assert_string_equal(s.v, "weight:4 tied:2 ");
    omi_str_free(&s);
    assert_int_equal(om_nn_n_parameters(root), 14);
    assert_string_equal(om_nn_path(root), "");
    assert_string_equal(om_nn_path(om_nn_child(root, "enc.1")), "enc.1");
    assert_ptr_equal(om_nn_get(enc, "1.weight"), om_nn_get(root, "enc.1.weight"));
    int n = 0;
    assert_int_equal(om_nn_visit(root, stop_at_two, &n), OM_ERR_CANCELLED);
    expect_error(OM_ERR_CANCELLED, "7");
    assert_int_equal(n, 2);
    assert_null(om_nn_get(root, "enc.9.weight"));
    expect_error(OM_ERR_ARG, "no module '9' in enc");
    assert_null(om_nn_get(root, "enc.1.bias"));
    expect_error(OM_ERR_ARG, "no tensor 'bias'");
    assert_null(om_nn_child(root, "en"));
    expect_error(OM_ERR_ARG, "no module 'en'");
    /* A tree filed under a parent later has new paths. */
    om_module *top = om_nn_module();
    om_nn_add(top, "net", root);
    assert_string_equal(om_nn_path(om_nn_child(top, "net.enc.1")), "net.enc.1");
    om_nn_free(top);
}

static void rejects_tensors(void **state) {
    (void)state;
    om_module *m = om_nn_module();
    OM_SCOPE {
        assert_null(om_nn_parameter(m, "w", om_zeros(OM_I64, OM_DIMS(2))));
        expect_error(OM_ERR_DTYPE, "int64");
        om_tensor *w = om_nn_parameter(m, "w", om_zeros(OM_F32, OM_DIMS(2)));
        assert_true(om_requires_grad(w));
        assert_null(om_nn_parameter(m, "v", om_add(w, w)));
        expect_error(OM_ERR_STATE, "leaves");
        assert_null(om_nn_buffer(m, "w", om_zeros(OM_F32, OM_DIMS(2))));
        expect_error(OM_ERR_ARG, "used already");
        assert_null(om_nn_parameter(m, "n", NULL));
        expect_error(OM_ERR_ARG, "parameter");
    }
    om_nn_free(m);
}

static om_tensor *mismatch(void *ctx, om_module *m, om_tensor *x) {
    (void)ctx, (void)m;
    return om_matmul(x, om_zeros(OM_F32, OM_DIMS(5, 5)));
}
static om_tensor *nothing(void *ctx, om_module *m, om_tensor *x) {
    (void)ctx, (void)m, (void)x;
    return NULL;
}

/* `where` is the running module and the call; afterwards the module around it runs again. */
static void errors_name_the_module(void **state) {
    (void)state;
    om_module *root = om_nn_module(), *enc = om_nn_add(root, "enc", om_nn_sequential());
    for (int i = 0; i < 3; i++)
        om_nn_append(enc, om_nn_custom(doubled, NULL, NULL));
    om_module *third = om_nn_append(enc, om_nn_module());
    om_module *attn  = om_nn_add(third, "attn", om_nn_custom(mismatch, NULL, NULL));
    OM_SCOPE {
        om_tensor *x = om_ones(OM_F32, OM_DIMS(2, 3));
        om_error e;
        assert_null(om_forward(attn, x));
        assert_int_equal(om_catch(&e), OM_ERR_SHAPE);
        assert_string_equal(e.where, "enc.3.attn: om_matmul");
        /* A plain C function as the forward of enc.3. */
        om_nn_enter(third);
        om_tensor *y = om_forward(om_nn_child(enc, "0"), x);
        assert_true(om_get(y, (const int64_t[]){1, 2}) == 2.0);
        om_matmul(y, x);
        om_nn_leave(third);
        om_catch(&e);
        assert_string_equal(e.where, "enc.3: om_matmul");
        om_matmul(x, x);
        om_catch(&e);
        assert_string_equal(e.where, "om_matmul");
        assert_null(om_forward(third, x));
        om_catch(&e);
        assert_string_equal(e.where, "om_forward");
        assert_non_null(strstr(e.message, "no forward function"));
        om_module *bad = om_nn_add(root, "bad", om_nn_custom(nothing, NULL, NULL));
        assert_null(om_forward(bad, x));
        om_catch(&e);
        assert_string_equal(e.where, "bad: om_forward");
        assert_null(om_forward(NULL, x));
        expect_error(OM_ERR_ARG, "module is NULL");
        assert_null(om_forward(bad, NULL));
        expect_error(OM_ERR_ARG, "input of module 'bad'");
        /* Enter and leave balance while an error is pending. */
        om_matmul(x, x);
        om_nn_enter(enc);
        om_nn_leave(enc);
        om_catch(NULL);
        om_matmul(x, x);
        om_catch(&e);
        assert_string_equal(e.where, "om_matmul");
    }
    om_nn_free(root);
}

/* A forward leaves nothing but its result in the scope of the caller. */
static void forward_keeps_only_its_result(void **state) {
    (void)state;
    int calls      = 0;
    om_module *seq = om_nn_sequential();
    for (int i = 0; i < 10; i++)
        om_nn_append(seq, om_nn_custom(doubled, &calls, NULL));
    OM_SCOPE {
        om_tensor *x   = om_ones(OM_F32, OM_DIMS(2));
        int64_t before = om_live_tensors();
        om_tensor *y   = om_forward(seq, x);
        assert_int_equal(om_live_tensors(), before + 1);
        assert_true(om_get(y, (const int64_t[]){0}) == 1024.0);
        assert_int_equal(calls, 10);
        om_tensor *same = om_forward(om_nn_append(seq, om_nn_identity()), x);
        assert_ptr_equal(same, x);
    }
    om_nn_free(seq);
}

static void modes(void **state) {
    (void)state;
    om_module *root = om_nn_module(), *a = om_nn_add(root, "a", om_nn_module());
    assert_true(om_nn_training(a));
    om_nn_train(root, false);
    assert_false(om_nn_training(a) || om_nn_training(root));
    om_nn_train(a, true);
    assert_true(om_nn_training(a) && !om_nn_training(root));
    assert_false(om_nn_training(NULL));
    om_nn_free(root);
}

/* ---- lists --------------------------------------------------------------------------------- */

static int add_text(void *ctx, const char *text, size_t n) {
    omi_str_add(ctx, text, n);
    return 0;
}
static int refuse_text(void *ctx, const char *text, size_t n) {
    (void)ctx, (void)text, (void)n;
    return 3;
}

static void load_list(void **state) {
    (void)state;
    om_module *m = om_nn_module();
    om_nn_add(m, "a", with_weight(2));
    om_nn_add(m, "b", with_weight(3));
    om_nn_add(m, "c", with_weight(3));
    OM_SCOPE {
        const int64_t at[1]    = {1};
        om_named_tensor list[] = {{"a.weight", om_full(5, OM_F32, OM_DIMS(2))},
                                  {"b.weight", om_full(6, OM_F32, OM_DIMS(4))},
                                  {"d.weight", om_full(7, OM_I64, OM_DIMS(1, 2))}};
        om_str report          = {0};
        assert_int_equal(
            om_nn_load_list(m, 3, list, OM_OPTS(state, .report = add_text, .ctx = &report)),
            OM_ERR_ARG);
        assert_string_equal(report.v, "misshapen b.weight float32 [3], given float32 [4]\n"
                                      "missing c.weight float32 [3]\n"
                                      "unexpected d.weight int64 [1,2]\n");
        expect_error(OM_ERR_ARG, "1 missing (first 'c.weight'), 1 unexpected (first 'd.weight'), 1 "
                                 "misshapen (first 'b.weight')");
        assert_true(om_get(om_nn_get(m, "a.weight"), at) == 1.0); /* nothing was changed */
        omi_str_free(&report);
        assert_int_equal(om_nn_load_list(m, 3, list, OM_OPTS(state, .partial = true)), OM_OK);
        assert_true(om_get(om_nn_get(m, "a.weight"), at) == 5.0);
        assert_true(om_get(om_nn_get(m, "b.weight"), at) == 1.0);
        assert_true(om_requires_grad(om_nn_get(m, "a.weight")));
        om_nn_load_list(m, 3, list, OM_OPTS(state, .partial = true, .report = refuse_text));
        expect_error(OM_ERR_CANCELLED, "stopped with 3");
        om_named_tensor twice[] = {list[0], list[0]};
        om_nn_load_list(m, 2, twice, OM_OPTS(state, .partial = true));
        expect_error(OM_ERR_ARG, "given twice");
        om_named_tensor whole[] = {{"c.weight", om_full(3, OM_F32, OM_DIMS(3))},
                                   {"b.weight", om_full(2, OM_F32, OM_DIMS(3))},
                                   {"a.weight", om_full(1, OM_F32, OM_DIMS(2))}};
        assert_int_equal(om_nn_load_list(m, 3, whole, NULL), OM_OK);
        assert_true(om_get(om_nn_get(m, "c.weight"), at) == 3.0);
        assert_true(om_get(om_nn_get(m, "a.weight"), at) == 1.0);
    }
    expect_ok();
    om_nn_free(m);
}

/* ---- the NaN finder -------------------------------------------------------------------------- */

static om_tensor *log_of(void *ctx, om_module *m, om_tensor *x) {
    (void)ctx, (void)m;
    return om_log(om_sub_scalar(x, 1.0));
}

static void nan_finder(void **state) {
    (void)state;
    om_module *net  = om_nn_module(),
              *gate = om_nn_add(net, "gate", om_nn_custom(log_of, NULL, NULL));
    OM_SCOPE {
        const float v[4] = {2, 3, 1, 0.5f};
        om_tensor *x     = om_from(v, OM_F32, OM_DIMS(2, 2));
        assert_non_null(om_forward(gate, x)); /* off: NaN is a value like another */
        assert_false(om_nan_check(true));
        assert_null(om_forward(gate, x));
        om_error e;
        assert_int_equal(om_catch(&e), OM_ERR_VALUE);
        assert_string_equal(e.where, "gate: om_log");
        assert_non_null(strstr(e.message, "om_log of gate made -inf at [1,0]"));
        assert_non_null(strstr(e.message, "2 of 4 elements"));
        /* Only the first culprit is named: non-finite inputs make non-finite results. */
        om_nan_check(false);
        om_tensor *bad = om_forward(gate, x);
        om_nan_check(true);
        assert_non_null(om_add(bad, bad));
        assert_non_null(om_full_like(x, -INFINITY, OM_DTYPE_NONE));
        /* Gradient: sqrt at 0. */
        om_tensor *z = om_zeros(OM_F32, OM_DIMS(3));
        om_set_requires_grad(z, true);
        assert_int_equal(om_backward(om_sum_all(om_sqrt(z))), OM_ERR_VALUE);
        om_catch(&e);
        assert_non_null(strstr(e.message, "om_sqrt made inf at [0] of its gradient"));
        assert_true(om_nan_check(false));
    }
    om_nn_free(net);
}

/* ---- many names
 * ------------------------------------------------------------------------------ */

/* The i-th name of three kinds in turn. */
static const char *name_of(int i) {
    static char text[16];
    snprintf(text, sizeof text, "%s%d", i % 3 == 0 ? "p" : i % 3 == 1 ? "b" : "c", i);
    return text;
}

static bool add_number(om_module *m, int i) {
    om_scope s   = om_scope_begin();
    om_tensor *t = om_full(i, OM_F32, OM_DIMS(1));
    om_module *c = i % 3 == 2 ? om_nn_module() : NULL;
    if (c) om_nn_buffer(c, "w", t);
    bool ok = i % 3 == 0   ? om_nn_parameter(m, name_of(i), t) != NULL
              : i % 3 == 1 ? om_nn_buffer(m, name_of(i), t) != NULL
                           : om_nn_add(m, name_of(i), c) != NULL;
    om_scope_end(s);
    return ok;
}

static void expect_numbers(om_module *m, int n) {
    for (int i = 0; i < n; i++) {
        char path[32];
        snprintf(path, sizeof path, "%s%s", name_of(i), i % 3 == 2 ? ".w" : "");
        om_tensor *t = om_nn_get(m, path);
        expect_ok();
        assert_true(((const float *)om_data(t))[0] == (float)i);
    }
}

/* Few are searched, many are in a map: nothing of it shows. */
static void many_names_are_found(void **state) {
    (void)state;
    om_module *m = om_nn_module();
    for (int i = 0; i < 40; i++) {
        assert_true(add_number(m, i));
        expect_numbers(m, i + 1);
        OM_SCOPE for (int k = 0; k <= i; k++) {
            assert_null(k % 2 ? (void *)om_nn_add(m, name_of(k), om_nn_module())
                              : (void *)om_nn_buffer(m, name_of(k), om_zeros(OM_F32, OM_DIMS(1))));
            expect_error(OM_ERR_ARG, "used already");
        }
        assert_null(om_nn_get(m, name_of(i + 1)));
        expect_error(OM_ERR_ARG, "no tensor");
    }
    assert_null(om_nn_get(m, "c2"));
    expect_error(OM_ERR_ARG, "no tensor 'c2'");
    assert_null(om_nn_child(m, "p3"));
    expect_error(OM_ERR_ARG, "no module 'p3'");
    assert_null(om_nn_child(m, "c")); /* the beginning of a name is none */
    expect_error(OM_ERR_ARG, "no module 'c'");
    om_nn_free(m);
}

/* A name that was refused for want of memory is not in the module, and can be given again. */
static om_status job_names(void *ctx) {
    (void)ctx;
    om_status st = OM_OK;
    om_module *m = om_nn_module();
    for (int i = 0; m && i < 15; i++) {
        if (add_number(m, i)) continue;
        om_error e;
        st = om_catch(&e);
        assert_int_equal(st, OM_ERR_NOMEM);
        expect_numbers(m, i);
        assert_null(om_nn_get(m, i % 3 == 2 ? "c2.w.w" : name_of(i)));
        om_catch(NULL);
        assert_null(om_nn_child(m, name_of(i)));
        om_catch(NULL);
        assert_true(add_number(m, i));
    }
    if (m) expect_numbers(m, 15);
    om_nn_free(m);
    return st != OM_OK ? omi_fail(st, "again") : om_pending();
}

static void many_names_when_memory_runs_out(void **state) {
    (void)state;
    assert_int_equal(job_names(NULL), OM_OK); /* names are interned once and stay */
    om_scope_drain();
    om_trim();
    assert_true(harness_fail_each(job_names, NULL) > 30);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(ownership),
        FIXTURE_TEST(depth_is_limited),
        FIXTURE_TEST(order_and_paths),
        FIXTURE_TEST(rejects_tensors),
        FIXTURE_TEST(errors_name_the_module),
        FIXTURE_TEST(forward_keeps_only_its_result),
        FIXTURE_TEST(modes),
        FIXTURE_TEST(load_list),
        FIXTURE_TEST(nan_finder),
        FIXTURE_TEST(many_names_are_found),
        FIXTURE_TEST(many_names_when_memory_runs_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
