/*
 * test_exact_models.c -- the headline promises on whole models: eager equals the exact session bit
 * for bit; one hash on every kernel column and number of threads; that hash is a constant, so it is
 * the same from every compiler and in every build; a flipped input bit changes it.
 *
 * The constants were accepted when ONNX Runtime agreed with the same outputs (./test oracle runs on
 * the same models and inputs).
 */
#include "harness.h"

#include <stdio.h>

#include "kernels/table.h"
#include "models/models.h"
#include "whole/golden.h"

typedef struct fixture {
    test_model m;
    om_session *s;
} fixture;

static void open_fixture(fixture *f, int which) {
    assert_true(test_model_new(which, &f->m));
    om_graph *g = test_model_trace(&f->m);
    check_ok();
    f->s = om_session_new(g, NULL);
    om_graph_release(g);
    check_ok();
}

static void close_fixture(fixture *f) {
    om_session_free(f->s);
    test_model_free(&f->m);
}

/* Hash of the session's output for input x. */
static void session_hash(fixture *f, om_tensor *x, char *hex) {
    om_tensor *y = om_session_call(f->s, x);
    check_ok();
    assert_int_equal(om_hash(y, hex), OM_OK);
}

static void test_eager_equals_exact(void **state) {
    (void)state;
    for (int which = 0; which < TEST_MODELS; which++) {
        fixture f;
        open_fixture(&f, which);
        for (int k = 0; k < 3; k++) {
            om_scope s   = om_scope_begin();
            om_tensor *x = test_model_input(&f.m, k);
            om_tensor *a = f.m.forward(&f.m, x), *b = om_session_call(f.s, x);
            check_ok();
            if (!om_bit_equal(a, b)) fail_msg("%s differs at size set %d", f.m.name, k);
            om_scope_end(s);
        }
        close_fixture(&f);
    }
}

/* Hash of size set k on one column with one number of threads, from eager and from a session made
 * there (plans hold weights packed for the column they were made on). Empty when the two differ. */
static void hash_on(int which, int k, int column, int threads, char *hex) {
    char eager[65];
    fixture f;
    omi_kernels_force(column);
    om_set_threads(threads);
    open_fixture(&f, which);
    om_scope s   = om_scope_begin();
    om_tensor *x = test_model_input(&f.m, k);
    session_hash(&f, x, hex);
    om_hash(f.m.forward(&f.m, x), eager);
    check_ok();
    if (strcmp(hex, eager) != 0) hex[0] = 0;
    om_scope_end(s);
    close_fixture(&f);
}

static void test_one_hash_everywhere(void **state) {
    (void)state;
    static const int threads[] = {1, 2, 3, 8};
    int runs = 0, bad = 0;
    for (int which = 0; which < TEST_MODELS; which++)
        for (int k = 0; k < 3; k++)
            for (int c = 0; c < OM_COL_COUNT; c++)
                for (size_t t = 0; t < 4 && omi_kernels_of((om_column)c); t++) {
                    char hex[65];
                    hash_on(which, k, c, threads[t], hex);
                    runs++;
                    if (strcmp(hex, golden_hashes[which][k]) == 0) continue;
                    bad++;
                    print_error("model %d, size set %d, column %d, %d threads: %s\n", which, k, c,
                                threads[t], hex);
                }
    omi_kernels_force(-1);
    om_set_threads(0);
    assert_int_equal(bad, 0);
    assert_true(runs >= TEST_MODELS * 3 * 2 * 4);
}

static void test_a_flipped_bit_changes_the_hash(void **state) {
    (void)state;
    for (int which = 0; which < TEST_MODELS; which++) {
        fixture f;
        char a[65], b[65];
        open_fixture(&f, which);
        om_scope s   = om_scope_begin();
        om_tensor *x = test_model_input(&f.m, 0);
        session_hash(&f, x, a);
        if (f.m.dtype == OM_F32)
            ((uint32_t *)om_data_mut(x))[3] ^= 1u << 20;
        else
            ((int64_t *)om_data_mut(x))[3] ^= 1;
        session_hash(&f, x, b);
        assert_string_not_equal(a, b);
        om_scope_end(s);
        close_fixture(&f);
    }
}

/* A row computed alone has the bits it has in a batch: no result depends on the batch (AR-6). */
static void test_batch_invariance(void **state) {
    (void)state;
    for (int which = 0; which < TEST_MODELS; which++) {
        fixture f;
        open_fixture(&f, which);
        om_scope s   = om_scope_begin();
        om_tensor *x = test_model_input(&f.m, 0), *all = om_session_call(f.s, x);
        om_tensor *one = om_contiguous(om_slice(x, 0, 2, 3, 1)), *y = om_session_call(f.s, one);
        check_ok();
        assert_true(om_bit_equal(y, om_contiguous(om_slice(all, 0, 2, 3, 1))));
        om_scope_end(s);
        close_fixture(&f);
    }
}

static void bytes_of(om_graph *g, bool onnx, void **data, size_t *n) {
    om_status st =
        onnx ? om_graph_save_onnx_memory(g, NULL, data, n) : om_graph_save_memory(g, data, n);
    assert_int_equal(st, OM_OK);
}

/* Two traces give equal bytes; saved, loaded and saved again too; the loaded model gives equal
 * outputs. */
static void test_files_round_trip(void **state) {
    (void)state;
    for (int which = 0; which < TEST_MODELS; which++)
        for (int onnx = 0; onnx < 2; onnx++) {
            fixture f;
            void *a, *b, *c;
            size_t na, nb, nc;
            open_fixture(&f, which);
            om_graph *g = test_model_trace(&f.m), *h = test_model_trace(&f.m);
            check_ok();
            bytes_of(g, onnx, &a, &na);
            bytes_of(h, onnx, &b, &nb);
            assert_true(na == nb && memcmp(a, b, na) == 0);
            om_graph *l = om_graph_load_memory(a, na, NULL);
            check_ok();
            bytes_of(l, onnx, &c, &nc);
            assert_true(na == nc && memcmp(a, c, na) == 0);
            om_session *s = om_session_new(l, NULL);
            check_ok();
            om_scope scope = om_scope_begin();
            om_tensor *x   = test_model_input(&f.m, 1);
            assert_true(om_bit_equal(om_session_call(s, x), om_session_call(f.s, x)));
            om_scope_end(scope);
            om_session_free(s);
            om_graph_release(g);
            om_graph_release(h);
            om_graph_release(l);
            om_bytes_free(a, na);
            om_bytes_free(b, nb);
            om_bytes_free(c, nc);
            close_fixture(&f);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        OM_TEST(test_eager_equals_exact),
        OM_TEST(test_one_hash_everywhere),
        OM_TEST(test_a_flipped_bit_changes_the_hash),
        OM_TEST(test_batch_invariance),
        OM_TEST(test_files_round_trip),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
